"""Euler's and Lagrange's equations, by differentiating L = K - P; for balls with the terms of Boltzmann and Hamel.

With momenta p_k = dL/dv_k the equations are p_dot_k - X_k L = Q_k, X_k the derivative along the coordinates' rates at the unit speed
k. Where speeds are rates of coordinates, X_k = d/dq_k: Lagrange's. A ball's speeds are its angular velocity w in body axes, no rates
of coordinates: turns do not commute, and its three equations become p_dot + w x p - X L = Q.
Source: seed 004; Hamel, Die Lagrange-Eulerschen Gleichungen der Mechanik (1904); Holm, Marsden, Ratiu (1998).
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
    """Euler and Lagrange, in the speeds v, then projected by V: V^T (p_dot + transposition - X L - Q) = 0."""
    tree, q, v, n = state.tree, state.q, state.v, state.tree.nv
    poses, q_dot = poses_with_summed_angles(tree, q)[0], configuration_rate(tree, q, v)
    p = [_momentum(tree, poses, v, k) for k in range(n)]
    # momenta are linear in the speeds, p = H v, so that H has those at unit speeds as its columns
    upper = {(i, j): _momentum(tree, poses, _unit(n, j), i) for j in range(n) for i in range(j + 1)}
    H = np.array([[upper[min(i, j), max(i, j)] for j in range(n)] for i in range(n)], dtype=object)
    moving = poses_with_summed_angles(tree, _seeded(Dual, q, q_dot))[0]
    v_moving = _seeded(Dual, v, state.v_rate)
    p_dot = np.array([_rate(_momentum(tree, moving, v_moving, k), Dual) for k in range(n)], dtype=object)
    slopes = np.array([_slope(tree, q, v, k) for k in range(n)], dtype=object)
    inertial = p_dot + _transposition(tree, v, p) - slopes
    return ProjectedEquations(symmetric_product(state.V, H @ state.V), state.V.T @ (state.efforts - inertial))


def kinetic(tree: Tree, poses: list[Pose], v: Any) -> Any:
    """The energy of motion [J]: every body's 1/2 (m x_dot^2 + w I w), velocities passed on from link to link in world axes."""
    zero, motions = np.zeros(3, int), []
    for link, (R, p) in zip(tree.links, poses, strict=True):
        u, w = motions[link.parent] if link.parent != WORLD else (zero, zero)
        if link.parent != WORLD:
            u = u + cross(w, p - poses[link.parent].p)
        S = motion_subspace(link)
        motions.append((u + R @ (S[:3] @ v[link.v]), w + R @ (S[3:] @ v[link.v])))
    total: Any = sum((x * (a * x) for a, x in zip(armature(tree), v, strict=True)), start=0)
    for solid in tree.rigid_bodies:
        if solid.place.link == WORLD:
            continue
        u, w = motions[solid.place.link]
        R, c = placement_pose(poses, solid.place)
        x_dot, w_body = u + cross(w, c - poses[solid.place.link].p), R.T @ w
        total = total + solid.mass * (x_dot @ x_dot) + w_body @ (np.array(solid.inertia) @ w_body)
    return total / 2


def potential(tree: Tree, poses: list[Pose]) -> Any:
    """The energy of height [J]; springs are among the efforts."""
    heights = (s.mass * (tree.gravity @ placement_pose(poses, s.place).p) for s in tree.rigid_bodies)
    return -sum(heights, start=0)


def _momentum(tree: Tree, poses: list[Pose], v: Any, k: int) -> Any:
    """p_k = dL/dv_k, exactly: by a dual."""
    return _rate(kinetic(tree, poses, _seeded(SecondOrder, v, _unit(tree.nv, k))), SecondOrder)


def _slope(tree: Tree, q: Any, v: Any, k: int) -> Any:
    """X_k L: the derivative of L, speeds held, while the configuration changes at the unit speed k."""
    poses, _ = poses_with_summed_angles(tree, _seeded(SecondOrder, q, configuration_rate(tree, q, _unit(tree.nv, k))))
    return _rate(kinetic(tree, poses, v) - potential(tree, poses), SecondOrder)


def _transposition(tree: Tree, v: Any, p: list[Any]) -> np.ndarray:
    """w x p of every ball: what the equations gain because its speeds are no rates of coordinates."""
    terms: list[Any] = [0] * tree.nv
    for link in tree.links:
        if link.move.kind == "ball":
            terms[link.v] = cross(v[link.v], np.array(p[link.v], dtype=object))
    return np.array(terms, dtype=object)


def _seeded(kind: type[Dual], x: Any, rates: Any) -> np.ndarray:
    seeds = np.empty(len(x), dtype=object)
    seeds[:] = [a if _absent(r) else kind(a, r) for a, r in zip(x, rates, strict=True)]
    return seeds


def _absent(x: Any) -> bool:
    return type(x) is int and x == 0


def _rate(x: Any, kind: type[Dual]) -> Any:
    return x.derivative if type(x) is kind else 0


def _unit(n: int, k: int) -> np.ndarray:
    return np.array([1 if i == k else 0 for i in range(n)], dtype=object)
