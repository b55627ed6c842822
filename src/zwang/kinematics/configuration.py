"""The configuration manifold: integration along velocities, difference of configurations, and q_dot = G(q) v.

Only the quaternion of a ball joint is not a vector of plain coordinates. Its generalised velocities are the
angular velocity in body axes, so that q_dot = q (0, v) / 2, and q exp(v dt) is the quaternion after the time
dt at constant v.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from zwang.algebra import rotations
from zwang.mechanism.tree import Link, Tree
from zwang.scalar import equal, sqrt, where


def integrate_configuration(tree: Tree, q: Any, v: Any, dt: Any = 1) -> np.ndarray:
    """Configuration (nq,) after the time dt [s] at constant generalised velocities v (nv,), from q (nq,).

    Quaternions are normalised. Source: MuJoCo's `mj_integratePos`; Sola et al., "A micro Lie theory for state
    estimation in robotics" (2018), Eq. 25, for unit quaternions.
    """
    q, v = np.asarray(q), np.asarray(v)
    return _for_each_link(tree, lambda link: _integrated(link, q[link.q], v[link.v], dt))


def difference_configuration(tree: Tree, q1: Any, q0: Any) -> np.ndarray:
    """Constant generalised velocities (nv,) that lead from q0 (nq,) to q1 (nq,) in one second.

    For ball joints the shorter of the two rotations is taken. This is the inverse of
    `integrate_configuration`: integrate_configuration(tree, q0, difference_configuration(tree, q1, q0)) = q1.
    """
    q1, q0 = np.asarray(q1), np.asarray(q0)
    return _for_each_link(tree, lambda link: _difference(link, q1[link.q], q0[link.q]))


def configuration_rate(tree: Tree, q: Any, v: Any) -> np.ndarray:
    """q_dot (nq,) = G(q) v, the time derivative of q (nq,) at the generalised velocities v (nv,) [rad/s, m/s
    or 1/s].
    """
    q, v = np.asarray(q), np.asarray(v)
    return _for_each_link(tree, lambda link: _rate(link, q[link.q], v[link.v]))


def velocities_of_rate(tree: Tree, q: Any, q_dot: Any) -> np.ndarray:
    """Generalised velocities v (nv,) = G(q)^+ q_dot for the time derivative q_dot (nq,) of q.

    The component of a quaternion's derivative along the quaternion itself is ignored.
    """
    q, q_dot = np.asarray(q), np.asarray(q_dot)
    return _for_each_link(tree, lambda link: _velocities(link, q[link.q], q_dot[link.q]))


def displacement_rate(tree: Tree, u: Any, v: Any) -> np.ndarray:
    """u_dot (nv,): time derivative of the displacement u of the configuration from a fixed one, at the
    velocities v (nv,); of several, in columns, (nv, ...).

    With q = integrate_configuration(tree, q0, u), it belongs to q_dot = G(q) v. It equals v but for ball
    joints, whose body axes rotate with u.
    """
    u, v = np.asarray(u), np.asarray(v)
    return _for_each_link(tree, lambda link: _displacement_rate(link, u[link.v], v[link.v]))


def normalized_configuration(tree: Tree, q: Any) -> np.ndarray:
    """The configuration q (nq,) with its quaternions normalised to unit length.

    Those of unit length to rounding, as `integrate_configuration` returns them, stay as they are, bit for
    bit.
    """
    q = np.asarray(q)
    return _for_each_link(
        tree, lambda link: _unit_once(q[link.q]) if link.joint.kind == "ball" else q[link.q]
    )


def _for_each_link(tree: Tree, part: Callable[[Link], np.ndarray]) -> np.ndarray:
    parts = [part(link) for link in tree.links]
    return np.concatenate(parts) if parts else np.zeros(0)


def _integrated(link: Link, q: np.ndarray, v: np.ndarray, dt: Any) -> np.ndarray:
    if link.joint.kind == "ball":
        return _unit(rotations.multiply(q, rotations.exponential(v * dt)))  # q exp(v dt)
    return q + v * dt


def _difference(link: Link, q1: np.ndarray, q0: np.ndarray) -> np.ndarray:
    if link.joint.kind == "ball":
        return rotations.logarithm(rotations.multiply(_conjugate(q0), q1))  # log(q0^-1 q1)
    return q1 - q0


def _rate(link: Link, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    if link.joint.kind == "ball":
        return rotations.multiply(q, (0, *v)) / 2  # q (0, v) / 2
    return v


def _velocities(link: Link, q: np.ndarray, q_dot: np.ndarray) -> np.ndarray:
    if link.joint.kind == "ball":
        return 2 * rotations.multiply(_conjugate(q), q_dot)[1:]  # vector part of 2 q^-1 q_dot
    return q_dot


def _displacement_rate(link: Link, u: np.ndarray, v: np.ndarray) -> np.ndarray:
    return rotations.exponential_rate(u, v) if link.joint.kind == "ball" else v


def _conjugate(q: np.ndarray) -> np.ndarray:
    w, x, y, z = q
    return np.array([w, -x, -y, -z])


def _unit(q: np.ndarray) -> np.ndarray:
    return q / sqrt(sum(x * x for x in q))


def _unit_once(q: np.ndarray) -> np.ndarray:
    """q / |q|, or q where |q|^2 is 1 to eight units of rounding: to six it is after a normalisation."""
    square = sum(x * x for x in q)
    # r is rounded to zero there, but has the derivatives of (|q|^2 - 1) / 16; |q| = 1 + 8 r - 32 r^2 + O(r^3)
    # numbers have the same spacing above and below 1.5, which they have not at 1
    r = (1.5 + (square - 1) / 16) - 1.5
    return q / where(equal(r, 0), 1 + 8 * r - 32 * r * r, sqrt(square))
