"""The Euler-Lagrange equations by differentiation of L = K - P, with Hamel's terms of ball joints.

With the momenta p_k = dL/dv_k the equations are p_dot_k - X_k L = Q_k, where X_k is the derivative along the
coordinate rates at unit velocity k. Where velocities are rates of coordinates, X_k = d/dq_k (Lagrange). The
velocities of a ball joint are its angular velocity w in body axes, which is not the rate of coordinates, and
its three equations are p_dot + w x p - X L = Q.
Source: Fu, ME331 Robot Modeling and Control, Section 11, "The Euler-Lagrange Equations"; Hamel, Die
Lagrange-Eulerschen Gleichungen der Mechanik (1904); Holm, Marsden, Ratiu (1998).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from zwang.algebra.dual import Dual, SecondOrder
from zwang.algebra.rotations import cross
from zwang.dynamics.crba import armature
from zwang.kinematics.configuration import configuration_rate
from zwang.kinematics.poses import Pose, motion_subspace, placement_pose
from zwang.mechanism.tree import WORLD, Tree
from zwang.symbolic.derivation import (
    ProjectedEquations,
    SymbolicState,
    poses_with_summed_angles,
    symmetric_product,
)


def by_lagrange(state: SymbolicState) -> ProjectedEquations:
    """The Euler-Lagrange equations in v, projected by V: V^T (p_dot + w x p - X L - Q) = 0."""
    tree, q, v, n = state.tree, state.q, state.v, state.tree.nv
    poses, q_dot = poses_with_summed_angles(tree, q)[0], configuration_rate(tree, q, v)
    p = [_momentum(tree, poses, v, k) for k in range(n)]
    # p = M v is linear in v, so the columns of M are the momenta at unit velocities
    upper = {(i, j): _momentum(tree, poses, _unit(n, j), i) for j in range(n) for i in range(j + 1)}
    M = np.array([[upper[min(i, j), max(i, j)] for j in range(n)] for i in range(n)], dtype=object)
    # p_dot, with the poses and velocities as dual numbers
    moving = poses_with_summed_angles(tree, _seeded(Dual, q, q_dot))[0]
    v_moving = _seeded(Dual, v, state.v_rate)
    p_dot = np.array([_rate(_momentum(tree, moving, v_moving, k), Dual) for k in range(n)], dtype=object)
    derivatives = np.array([_lagrangian_derivative(tree, q, v, k) for k in range(n)], dtype=object)
    inertial = p_dot + _hamel_terms(tree, v, p) - derivatives
    return ProjectedEquations(
        symmetric_product(state.V, M @ state.V), state.V.T @ (state.generalized_forces - inertial)
    )


def kinetic_energy(tree: Tree, poses: list[Pose], v: Any) -> Any:
    """Kinetic energy [J]: the sum of 1/2 (m x_dot^2 + w I w), velocities from link to link."""
    zero, velocities = np.zeros(3, int), []
    for link, (R, p) in zip(tree.links, poses, strict=True):
        u, w = velocities[link.parent] if link.parent != WORLD else (zero, zero)
        if link.parent != WORLD:
            u = u + cross(w, p - poses[link.parent].p)
        S = motion_subspace(link)
        velocities.append((u + R @ (S[:3] @ v[link.v]), w + R @ (S[3:] @ v[link.v])))
    total: Any = sum((x * (a * x) for a, x in zip(armature(tree), v, strict=True)), start=0)
    for body in tree.rigid_bodies:
        if body.placement.link == WORLD:
            continue
        u, w = velocities[body.placement.link]
        R, c = placement_pose(poses, body.placement)
        x_dot, w_body = u + cross(w, c - poses[body.placement.link].p), R.T @ w
        total = total + body.mass * (x_dot @ x_dot) + w_body @ (np.array(body.inertia) @ w_body)
    return total / 2


def gravitational_energy(tree: Tree, poses: list[Pose]) -> Any:
    """Potential energy of gravity [J]; springs are among the generalised forces."""
    heights = (s.mass * (tree.gravity @ placement_pose(poses, s.placement).p) for s in tree.rigid_bodies)
    return -sum(heights, start=0)


def _momentum(tree: Tree, poses: list[Pose], v: Any, k: int) -> Any:
    """p_k = dL/dv_k, by a dual number."""
    return _rate(kinetic_energy(tree, poses, _seeded(SecondOrder, v, _unit(tree.nv, k))), SecondOrder)


def _lagrangian_derivative(tree: Tree, q: Any, v: Any, k: int) -> Any:
    """X_k L: the derivative of L at constant v, while the configuration changes with unit velocity k."""
    poses, _ = poses_with_summed_angles(
        tree, _seeded(SecondOrder, q, configuration_rate(tree, q, _unit(tree.nv, k)))
    )
    return _rate(kinetic_energy(tree, poses, v) - gravitational_energy(tree, poses), SecondOrder)


def _hamel_terms(tree: Tree, v: Any, p: list[Any]) -> np.ndarray:
    """w x p of every ball joint, since its velocities are not rates of coordinates (Hamel 1904)."""
    terms: list[Any] = [0] * tree.nv
    for link in tree.links:
        if link.joint.kind == "ball":
            terms[link.v] = cross(v[link.v], np.array(p[link.v], dtype=object))
    return np.array(terms, dtype=object)


def _seeded(kind: type[Dual], x: Any, rates: Any) -> np.ndarray:
    """x as dual numbers with these rates."""
    duals = np.empty(len(x), dtype=object)
    duals[:] = [a if _absent(r) else kind(a, r) for a, r in zip(x, rates, strict=True)]
    return duals


def _absent(x: Any) -> bool:
    return type(x) is int and x == 0


def _rate(x: Any, kind: type[Dual]) -> Any:
    return x.derivative if type(x) is kind else 0


def _unit(n: int, k: int) -> np.ndarray:
    return np.array([1 if i == k else 0 for i in range(n)], dtype=object)
