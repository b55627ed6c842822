"""The mass matrix M(q): by the composite-rigid-body algorithm (CRBA), and as the sum of J_k^T M_k J_k over
the bodies.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from zwang.algebra.rotations import cross
from zwang.dynamics.rnea import vee
from zwang.dynamics.tendon_armature import tendon_mass_matrix
from zwang.kinematics.jacobians import placement_jacobian
from zwang.kinematics.kinematics import Kinematics
from zwang.kinematics.poses import Pose, link_poses, placement_pose
from zwang.mechanism.tree import WORLD, Tree


def armature(tree: Tree) -> np.ndarray:
    """Armature (nv,): reflected inertia of the rotors, added to the diagonal of the mass matrix."""
    return np.array([link.armature for link in tree.links for _ in range(link.joint.nv)])


def mass_matrix_from_jacobians(tree: Tree, q: Any) -> np.ndarray:
    """Mass matrix M (nv, nv) = sum_k J_k^T M_k J_k over the bodies, plus armature, as Gauss's principle gives
    it.

    J_k is the Jacobian of body k at its centre of mass. Slower than `crba`, and independent of it.
    Source: Gauss's principle for a tree of rigid bodies, M(q) qdd + h(q, v) = J^T w.
    """
    poses = link_poses(tree, q)
    M = np.diag(armature(tree))
    for body in tree.rigid_bodies:
        # M += m J_v^T J_v + (R^T J_w)^T I (R^T J_w)
        J = placement_jacobian(tree, poses, body.placement)
        R = placement_pose(poses, body.placement).R
        Jw = R.T @ J[3:]
        M = M + body.mass * (J[:3].T @ J[:3]) + Jw.T @ body.inertia @ Jw
    return M + tendon_mass_matrix(Kinematics.at_poses(tree, q, None, poses))


def symmetric(A: np.ndarray) -> np.ndarray:
    """A matrix that is symmetric in exact arithmetic, with its lower triangle copied from the upper one."""
    return np.array([[A[min(i, j), max(i, j)] for j in range(len(A))] for i in range(len(A))])


def crba(tree: Tree, q: Any) -> np.ndarray:
    """Mass matrix M (nv, nv) by the composite-rigid-body algorithm (Featherstone 2008, Table 6.2), with the
    armature of joints and tendons.

    q (nq,): configuration, with unit quaternions. The unit of H_ij is kg m^2, kg m or kg.
    """
    return crba_of(Kinematics(tree, q))


def crba_of(kinematics: Kinematics) -> np.ndarray:
    """Mass matrix M (nv, nv), as `crba`, at a configuration whose poses are known."""
    tree, poses, subspaces = kinematics.tree, kinematics.joint_poses, kinematics.motion_subspaces
    composites = [(link.mass, link.h, link.J) for link in tree.links]
    M = np.zeros((tree.nv, tree.nv), int).astype(object)
    for i, link in reversed(list(enumerate(tree.links))):
        # F = I^c_i S_i, and column k of M from the links between i and the world: H_jk = S_j^T (X F)
        m, h, J = composites[i]
        for k, s in zip(range(link.v.start, link.v.stop), subspaces[i].T, strict=True):
            f, n = composite_wrench(m, h, J, s)
            _project(tree, poses, subspaces, M, i, k, f, n)
        # I^c_parent += X I^c_i X^T
        if link.parent != WORLD:
            moments = transform_inertia(m, h, J, *poses[i])
            composites[link.parent] = _sum_of_inertias(composites[link.parent], moments)
    return np.diag(armature(tree)) + M + tendon_mass_matrix(kinematics)


def composite_wrench(m: Any, h: Any, J: Any, s: Any) -> tuple[np.ndarray, np.ndarray]:
    """Wrench (f, n), about the origin, that gives a body at rest the acceleration s (6,), linear first.

    f = m s_v + [s_w]x h and n = vee(F - F^T) with F = [s_w]x J + s_v h^T. m, h, J: mass, first and second
    moments of mass.
    """
    x, y, z = s[3:]
    W = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return m * s[:3] + W @ h, vee(W @ J + np.outer(s[:3], h))


def transform_inertia(m: Any, h: Any, J: Any, R: Any, p: Any) -> tuple[Any, np.ndarray, np.ndarray]:
    """Mass, first moment (3,) and second moment (3, 3) of a body in another frame; (R, p) is the pose of the
    body there.

    r' = p + R r gives h' = m p + R h and J' = R J R^T + p (R h)^T + (R h) p^T + m p p^T.
    """
    Rh = R @ h
    hp = np.outer(Rh + m * p, p)
    return m, m * p + Rh, symmetric(R @ J @ R.T + hp + np.outer(p, Rh))


def _sum_of_inertias(a: Any, b: Any) -> tuple[Any, Any, Any]:
    return a[0] + b[0], a[1] + b[1], a[2] + b[2]


def _project(
    tree: Tree,
    poses: Sequence[Pose],
    subspaces: Sequence[np.ndarray],
    M: np.ndarray,
    i: int,
    k: int,
    f: Any,
    n: Any,
) -> None:
    """Fill column k of M: project the wrench (f, n) on link i onto the joints of that link and of its
    ancestors.
    """
    link = tree.links[i]
    while True:
        # H_jk = S_j^T (f, n)
        for j, s in zip(range(link.v.start, link.v.stop), subspaces[i].T, strict=True):
            if j <= k:
                M[j, k] = M[k, j] = s[:3] @ f + s[3:] @ n
        if link.parent == WORLD:
            return
        # f' = R f,  n' = R n + p x R f
        R, p = poses[i]
        f = R @ f
        n = R @ n + cross(p, f)
        i, link = link.parent, tree.links[link.parent]
