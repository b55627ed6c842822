"""Candidates for all solutions of a general chain of six revolute joints, by elimination.

The last joint's axis is a line with a point, mapped by B_2^-1 Z(-t_2) ... T from the hand and by
Z(t_3) B_3 Z(t_4) B_4 Z(t_5) B_5 from the base. Fourteen functions of it, the position p, the direction l,
p.p, p.l, p x l and (p.p) l - 2 (p.l) p, are linear in (cos t, sin t, 1) of each of these angles: a rigid
motion acts on them linearly (they are coordinates of a point and a line in conformal geometry). So

    P(t_3) m(t_4, t_5) = Q m(t_1, t_2),     m the nine products of z^-1, 1, z with z = exp(i t).

Eliminating t_1 and t_2 leaves six equations; with their products by z_4 they are twelve in twelve
monomials, a polynomial in z_3 of degree two, whose roots are 24 generalised eigenvalues. Eight are at 0 and
infinity, up to 16 on the unit circle. The coefficients are found by interpolation.
Source: Raghavan, Roth, ASME J. Mechanical Design 115 (1993) 502; Manocha, Canny, IEEE Trans. Robotics and
Automation 10 (1994) 648, for the eigenvalues. They use the tangents of half the angles, which are infinite
at half a revolution.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg import eig

from zwang.robot.six_revolute.revolute_chain import JOINTS, about_z, inverse_pose

NODES = np.array([0, 2, 4]) * np.pi / 3
INTERPOLATION = np.linalg.inv(np.exp(1j * np.outer(NODES, [-1, 0, 1])))
"""From the values at the nodes to the coefficients of z^-1, 1 and z."""

FURTHEST = (
    3.0  # eigenvalues with |z| between its inverse and it are candidates, which Newton's method decides
)


def candidates(B: np.ndarray, T: np.ndarray) -> np.ndarray:
    """Angles (n, 6), about the solutions of the chain B (7, 4, 4) for the pose T (4, 4), and others.

    The closed chain begins at each of its joints in turn, since for arms of special geometry the elimination
    is singular from some of them.
    """
    # Z(t_1) C_1 Z(t_2) ... Z(t_6) C_6 = 1
    closed = [*B[1:JOINTS], B[JOINTS] @ inverse_pose(T) @ B[0]]
    found = [np.zeros((0, JOINTS))]
    for first in range(JOINTS):
        links = [*closed[first:], *closed[:first]]
        found.append(np.roll(_from_first_joint(links), first, axis=1))
    return np.concatenate(found)


def _from_first_joint(C: list[np.ndarray]) -> np.ndarray:
    """Candidates (n, 6) of Z(t_1) C_1 Z(t_2) ... Z(t_6) C_6 = 1."""

    def left(t3: np.ndarray, t4: np.ndarray, t5: np.ndarray) -> np.ndarray:
        return line_functions(about_z(t3) @ C[2] @ about_z(t4) @ C[3] @ about_z(t5) @ C[4])

    def right(t1: np.ndarray, t2: np.ndarray) -> np.ndarray:
        back = inverse_pose(C[1]) @ about_z(-t2) @ inverse_pose(C[0]) @ about_z(-t1)
        return line_functions(back @ inverse_pose(C[5]))

    P = _coefficients(left, 3)
    Q = np.moveaxis(_coefficients(right, 2), -1, 0).reshape(14, 9)
    constant, Q = Q[:, 4], np.delete(Q, 4, axis=1)
    # E(z_3) m(z_4, z_5) = 0: the part of P m - constant that Q cannot supply
    outside = np.linalg.svd(Q)[0][:, 8:].conj().T
    E = np.einsum("ai,cdei->cdea", outside, P)
    E[1, 1, 1] -= outside @ constant
    E = np.moveaxis(E, -1, 1).reshape(3, 6, 9)
    A = np.zeros((3, 12, 12), complex)
    A[:, :6, :9] = A[:, 6:, 3:] = E
    z3, vectors = _polynomial_eigenvalues(A)
    found = []
    for z, v in zip(z3, vectors, strict=True):
        v = v.reshape(4, 3)
        z4 = _ratio(v[1:], v[:-1])
        z5 = _ratio(v[:, 1:], v[:, :-1])
        if not (np.isfinite([z4, z5]).all() and z4 and z5):
            continue
        powers = [np.array([1 / x, 1, x]) for x in (z, z4, z5)]
        supplied = np.einsum("c,d,e,cdei->i", *powers, P) - constant
        m = np.insert(np.linalg.lstsq(Q, supplied, rcond=None)[0], 4, 1).reshape(3, 3)
        found.append(np.angle([m[2, 1], m[1, 2], z, z4, z5]))
    if not found:
        return np.zeros((0, JOINTS))
    t = np.array(found)
    # t_6 from Z(t_6) = (Z(t_1) C_1 ... Z(t_5) C_5)^-1 C_6^-1
    chain = np.eye(4)
    for k in range(JOINTS - 1):
        chain = chain @ about_z(t[:, k]) @ C[k]
    last = inverse_pose(chain) @ inverse_pose(C[5])
    t6 = np.arctan2(last[:, 1, 0] - last[:, 0, 1], last[:, 0, 0] + last[:, 1, 1])
    return np.concatenate([t, t6[:, None]], axis=1)


def line_functions(T: np.ndarray) -> np.ndarray:
    """The fourteen functions (..., 14) of the origin p and the z axis l of poses T (..., 4, 4)."""
    p, axis = T[..., :3, 3], T[..., :3, 2]
    pp, pl = (p * p).sum(-1, keepdims=True), (p * axis).sum(-1, keepdims=True)
    return np.concatenate([p, axis, pp, pl, np.cross(p, axis), pp * axis - 2 * pl * p], axis=-1)


def _coefficients(function: Callable[..., np.ndarray], count: int) -> np.ndarray:
    """Coefficients (3, ..., 3, 14) of the products of z_k^-1, 1 and z_k of a function of `count` angles."""
    values = function(*np.meshgrid(*[NODES] * count, indexing="ij")).astype(complex)
    for k in range(count):
        values = np.moveaxis(np.tensordot(INTERPOLATION, values, axes=(1, k)), 0, k)
    return values


def _polynomial_eigenvalues(A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """z (n,) near the unit circle and v (n, 12) with (A_0 + A_1 z + A_2 z^2) v = 0, by linearisation."""
    zero, one = np.zeros_like(A[0]), np.eye(len(A[0]))
    first, second = np.block([[zero, one], [-A[0], -A[1]]]), np.block([[one, zero], [zero, A[2]]])
    found: Any = eig(first, second, homogeneous_eigvals=True)
    (numerator, denominator), vectors = found
    near = (np.abs(numerator) < FURTHEST * np.abs(denominator)) & (
        np.abs(denominator) < FURTHEST * np.abs(numerator)
    )
    return numerator[near] / denominator[near], vectors[: len(one), near].T


def _ratio(x: np.ndarray, y: np.ndarray) -> complex:
    """The factor by which x is a multiple of y, in the least-squares sense; NaN for y = 0."""
    square = float(np.sum(np.abs(y) ** 2))
    return complex(np.sum(x * y.conj()) / square) if square > 0 else complex(np.nan)
