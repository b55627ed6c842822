"""The mass matrix H(q), twice: as Gauss's sum over the bodies, and by composite inertias."""

from __future__ import annotations

from typing import Any

import numpy as np

from zwang.algebra.rotations import cross
from zwang.dynamics.rnea import vee
from zwang.kinematics.jacobians import placement_jacobian
from zwang.kinematics.poses import link_pose, link_poses, motion_subspace, placement_pose
from zwang.mechanism.tree import WORLD, Tree


def armature(tree: Tree) -> np.ndarray:
    """The diagonal (nv,) that rotors add to the mass matrix."""
    return np.array([link.armature for link in tree.links for _ in range(link.move.nv)])


def mass_matrix_from_jacobians(tree: Tree, q: Any) -> np.ndarray:
    """H (nv, nv) = sum_k J_k^T M_k J_k over the bodies, J_k at the centre of mass in world axes; plus armature.

    Source: seed 000, H(q) of Gauss's principle.
    """
    poses = link_poses(tree, q)
    H = np.diag(armature(tree))
    for solid in tree.rigid_bodies:
        J = placement_jacobian(tree, poses, solid.place)
        R = placement_pose(poses, solid.place).R
        Jw = R.T @ J[3:]
        H = H + solid.mass * (J[:3].T @ J[:3]) + Jw.T @ solid.inertia @ Jw
    return H


def symmetric(A: np.ndarray) -> np.ndarray:
    """A matrix known to be symmetric, its lower half taken from its upper one."""
    return np.array([[A[min(i, j), max(i, j)] for j in range(len(A))] for i in range(len(A))])


def crba(tree: Tree, q: Any) -> np.ndarray:
    """H (nv, nv) by composite inertias [kg m^2, kg m, kg].

    From the leaves: each link's mass, first and second moments (m, h, J) are added to its parent's, about the parent's origin.
    A unit acceleration S of a speed asks for the wrench f = m s_v + s_w x h, n = vee(F - F^T), F = [s_w]x J + s_v h^T, which the joints
    down to the world feel. Source: Featherstone, RBDA (2008), Table 6.2; seed 002's composite pass.
    """
    poses = [link_pose(link, q) for link in tree.links]
    composites = [(link.mass, link.h, link.J) for link in tree.links]
    H = np.zeros((tree.nv, tree.nv), int).astype(object)
    for i, link in reversed(list(enumerate(tree.links))):
        m, h, J = composites[i]
        for k, s in zip(range(link.v.start, link.v.stop), motion_subspace(link).T, strict=True):
            f, n = composite_wrench(m, h, J, s)
            _project(tree, poses, H, i, k, f, n)
        if link.parent != WORLD:
            composites[link.parent] = _sum_of_inertias(composites[link.parent], transform_inertia(m, h, J, *poses[i]))
    return np.diag(armature(tree)) + H


def composite_wrench(m: Any, h: Any, J: Any, s: Any) -> tuple[np.ndarray, np.ndarray]:
    """The wrench (f, n about the origin) that accelerates a resting body by s = (linear, angular)."""
    x, y, z = s[3:]
    W = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return m * s[:3] + W @ h, vee(W @ J + np.outer(s[:3], h))


def transform_inertia(m: Any, h: Any, J: Any, R: Any, p: Any) -> tuple[Any, np.ndarray, np.ndarray]:
    """Mass and moments of a body about another frame's origin and in its axes; (R, p) is the body's pose there.

    r' = p + R r gives h' = m p + R h and J' = R J R^T + p (R h)^T + (R h) p^T + m p p^T.
    """
    Rh = R @ h
    hp = np.outer(Rh + m * p, p)
    return m, m * p + Rh, symmetric(R @ J @ R.T + hp + np.outer(p, Rh))


def _sum_of_inertias(a: Any, b: Any) -> tuple[Any, Any, Any]:
    return a[0] + b[0], a[1] + b[1], a[2] + b[2]


def _project(tree: Tree, poses: Any, H: np.ndarray, i: int, k: int, f: Any, n: Any) -> None:
    """Column k of H: what the speeds of link i (up to k) and of its ancestors feel of the wrench (f, n)."""
    link = tree.links[i]
    while True:
        for j, s in zip(range(link.v.start, link.v.stop), motion_subspace(link).T, strict=True):
            if j <= k:
                H[j, k] = H[k, j] = s[:3] @ f + s[3:] @ n
        if link.parent == WORLD:
            return
        R, p = poses[i]
        f = R @ f
        n = R @ n + cross(p, f)
        i, link = link.parent, tree.links[link.parent]
