"""Configurations as a manifold: a step along speeds, the speeds between two, and q_dot = G(q) v.

Only a ball's quaternion is not a plain coordinate. Its speeds are the angular velocity in body axes, so that
q_dot = q (0, v) / 2, and a step along constant speeds is q exp(v dt).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from zwang.algebra import rotations
from zwang.mechanism.tree import Link, Tree
from zwang.scalar import sqrt


def integrate_configuration(tree: Tree, q: Any, v: Any, dt: Any = 1) -> np.ndarray:
    """The configuration (nq,) after the time dt [s] at constant speeds v (nv,); quaternions come out at unit length.

    Source: MuJoCo's mj_integratePos; Sola et al., A micro Lie theory (2018), Eq. 25, for the group of unit quaternions.
    """
    q, v = np.asarray(q), np.asarray(v)
    return _by_link(tree, lambda link: _integrated(link, q[link.q], v[link.v], dt))


def difference_configuration(tree: Tree, q1: Any, q0: Any) -> np.ndarray:
    """The constant speeds (nv,) that lead from q0 to q1 in one second; for a ball the shorter way round.

    The inverse of `integrate_configuration`: integrate_configuration(tree, q0, difference_configuration(tree, q1, q0)) = q1.
    """
    q1, q0 = np.asarray(q1), np.asarray(q0)
    return _by_link(tree, lambda link: _difference(link, q1[link.q], q0[link.q]))


def configuration_rate(tree: Tree, q: Any, v: Any) -> np.ndarray:
    """q_dot (nq,) = G(q) v [rad/s, m/s, 1/s]: the coordinates' rates at the speeds v."""
    q, v = np.asarray(q), np.asarray(v)
    return _by_link(tree, lambda link: _rate(link, q[link.q], v[link.v]))


def velocities_of_rate(tree: Tree, q: Any, q_dot: Any) -> np.ndarray:
    """v (nv,) = G(q)^+ q_dot: the speeds with which the coordinates change at q_dot; a quaternion's part along itself is left out."""
    q, q_dot = np.asarray(q), np.asarray(q_dot)
    return _by_link(tree, lambda link: _speeds(link, q[link.q], q_dot[link.q]))


def displacement_rate(tree: Tree, u: Any, v: Any) -> np.ndarray:
    """u_dot (nv,): for a configuration displaced by u from a fixed one, how u changes at the speeds v.

    With q = integrate_configuration(tree, q0, u), q_dot = G(q) v. v itself but for balls, whose axes turn meanwhile.
    """
    u, v = np.asarray(u), np.asarray(v)
    return _by_link(tree, lambda link: _slope(link, u[link.v], v[link.v]))


def normalized_configuration(tree: Tree, q: Any) -> np.ndarray:
    """q with its quaternions at unit length."""
    q = np.asarray(q)
    return _by_link(tree, lambda link: _unit(q[link.q]) if link.move.kind == "ball" else q[link.q])


def _by_link(tree: Tree, part: Any) -> np.ndarray:
    parts = [part(link) for link in tree.links]
    return np.concatenate(parts) if parts else np.zeros(0)


def _integrated(link: Link, q: np.ndarray, v: np.ndarray, dt: Any) -> np.ndarray:
    if link.move.kind == "ball":
        return _unit(rotations.multiply(q, rotations.exponential(v * dt)))
    return q + v * dt


def _difference(link: Link, q1: np.ndarray, q0: np.ndarray) -> np.ndarray:
    if link.move.kind == "ball":
        return rotations.logarithm(rotations.multiply(_conjugate(q0), q1))
    return q1 - q0


def _rate(link: Link, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    if link.move.kind == "ball":
        return rotations.multiply(q, (0, *v)) / 2
    return v


def _speeds(link: Link, q: np.ndarray, q_dot: np.ndarray) -> np.ndarray:
    if link.move.kind == "ball":
        return 2 * rotations.multiply(_conjugate(q), q_dot)[1:]
    return q_dot


def _slope(link: Link, u: np.ndarray, v: np.ndarray) -> np.ndarray:
    return rotations.exponential_rate(u, v) if link.move.kind == "ball" else v


def _conjugate(q: np.ndarray) -> np.ndarray:
    w, x, y, z = q
    return np.array([w, -x, -y, -z])


def _unit(q: np.ndarray) -> np.ndarray:
    return q / sqrt(sum(x * x for x in q))
