"""Forward dynamics by the articulated-body algorithm (ABA): Featherstone 2008, Table 7.1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from zwang.algebra.factorization import factor
from zwang.algebra.rotations import cross, skew
from zwang.dynamics.crba import symmetric
from zwang.dynamics.rnea import vee
from zwang.errors import DescriptionError
from zwang.kinematics.kinematics import Kinematics
from zwang.kinematics.poses import Pose
from zwang.mechanism.tree import WORLD, Tree

BiasTerms = list[tuple[np.ndarray, np.ndarray]]


def aba(tree: Tree, q: Any, v: Any, tau: Any) -> np.ndarray:
    """Generalised accelerations (nv,) by the articulated-body algorithm (Featherstone 2008, Table 7.1).

    q (nq,), v (nv,), tau (nv,): configuration, generalised velocities and generalised forces [N m or N]. The
    result satisfies M(q) a + h(q, v) = tau, as that of `forward_dynamics_crba`. Accelerations of links are
    classical ones of their origins. Raises DescriptionError for tendons with armature.
    """
    return aba_of(Kinematics(tree, q, v), tau)


def aba_of(kinematics: Kinematics, tau: Any) -> np.ndarray:
    """Generalised accelerations a (nv,) for the generalised forces tau (nv,), as `aba`, at a state whose
    poses are known.
    """
    tree, poses, subspaces = kinematics.tree, kinematics.joint_poses, kinematics.motion_subspaces
    if tree.tendon_inertias:
        raise DescriptionError(
            "the articulated-body algorithm has no tendons with armature, which act between bodies; use "
            "forward_dynamics_crba"
        )
    bias = _bias_terms(tree, poses, subspaces, kinematics.v)
    articulated = [rigid_inertia(link.mass, link.h, link.J) for link in tree.links]
    wrenches = [
        np.concatenate([W @ link.h, vee(W @ link.J)]) for link, (_, W) in zip(tree.links, bias, strict=True)
    ]
    joints: list[Any] = [None] * len(tree.links)
    for i, link in reversed(list(enumerate(tree.links))):
        # U = I^A S,  D = S^T U + armature,  u = tau - S^T (p^A + I^A c)
        S, (c, _) = subspaces[i], bias[i]
        U = articulated[i] @ S
        D = symmetric(S.T @ U) + np.diag([link.armature] * link.joint.nv)
        u = np.array(tau[link.v]) - S.T @ (wrenches[i] + articulated[i] @ c)
        gain = _solve_joint(D, U.T)
        joints[i] = (gain, _solve_joint(D, u.reshape(-1, 1))[:, 0])
        if link.parent != WORLD:
            # I^a = I^A - U D^-1 U^T,  p^a = p^A + I^A c + U D^-1 u, transformed to the parent and added there
            rest = symmetric(articulated[i] - U @ gain)
            wrench = wrenches[i] + articulated[i] @ c + U @ joints[i][1]
            articulated[link.parent] = articulated[link.parent] + _transform_spatial_inertia(rest, *poses[i])
            wrenches[link.parent] = wrenches[link.parent] + _transform_wrench(wrench, *poses[i])
    return _accelerations(tree, poses, subspaces, bias, joints)


def _bias_terms(tree: Tree, poses: Sequence[Pose], subspaces: Sequence[np.ndarray], v: Any) -> BiasTerms:
    """For each link the velocity-product acceleration c (6,) and W = [w]x [w]x (pass 1 of Table 7.1)."""
    zero = np.zeros(3, int)
    velocities: list[Any] = []
    found = []
    for link, (R, p), S in zip(tree.links, poses, subspaces, strict=True):
        # c = (R^T W p + 2 (R^T w) x S_u v_i, (R^T w) x S_w v_i)
        w, W = velocities[link.parent] if link.parent != WORLD else (zero, np.zeros((3, 3), int))
        u = S @ v[link.v]
        w_parent = R.T @ w
        c = np.concatenate([R.T @ (W @ p) + 2 * cross(w_parent, u[:3]), cross(w_parent, u[3:])])
        w = w_parent + u[3:]
        W = skew(w) @ skew(w)
        velocities.append((w, W))
        found.append((c, W))
    return found


def _accelerations(
    tree: Tree, poses: Sequence[Pose], subspaces: Sequence[np.ndarray], bias: BiasTerms, joints: Sequence[Any]
) -> np.ndarray:
    """Generalised accelerations (nv,) from the world to the leaves (pass 3 of Table 7.1)."""
    frames: list[np.ndarray] = []
    result: list[Any] = [0] * tree.nv
    for i, link in enumerate(tree.links):
        base = (
            frames[link.parent] if link.parent != WORLD else np.concatenate([-tree.gravity, np.zeros(3, int)])
        )
        # a' = X a_parent,  qdd = D^-1 (u - U^T a'),  a = a' + c + S qdd
        R, p = poses[i]
        transformed = np.concatenate([R.T @ (base[:3] + cross(base[3:], p)), R.T @ base[3:]])
        gain, u = joints[i]
        x = u - gain @ transformed
        result[link.v] = x
        frames.append(transformed + bias[i][0] + subspaces[i] @ x)
    return np.array(result)


def rigid_inertia(m: Any, h: Any, J: Any) -> np.ndarray:
    """Spatial inertia (6, 6) about the origin, linear first: [[m 1, -[h]x], [[h]x, tr(J) 1 - J]].

    m, h, J: mass, first moment (3,) and second moment (3, 3) of mass.
    """
    one = np.eye(3, dtype=int)
    return np.block([[m * one, -skew(h)], [skew(h), (J[0, 0] + J[1, 1] + J[2, 2]) * one - J]])


def _transform_spatial_inertia(I: Any, R: Any, p: Any) -> np.ndarray:
    """X I X^T: a spatial inertia (6, 6) in another frame, in which the frame of I has the pose (R, p).

    With the blocks A, B, D of I rotated by R, X = [[1, 0], [[p]x, 1]].
    """
    A, B, D = (R @ block @ R.T for block in (I[:3, :3], I[:3, 3:], I[3:, 3:]))
    A, D, P = symmetric(A), symmetric(D), skew(p)
    C = B + A @ P.T
    return np.block([[A, C], [C.T, symmetric(D + P @ C + B.T @ P.T)]])


def _transform_wrench(f: Any, R: Any, p: Any) -> np.ndarray:
    """A wrench (6,) in another frame, in which the frame of f has the pose (R, p)."""
    force = R @ f[:3]
    return np.concatenate([force, R @ f[3:] + cross(p, force)])


def _solve_joint(D: Any, B: Any) -> np.ndarray:
    """D^-1 B for the small symmetric matrix D of one joint."""
    chain = [k - 1 for k in range(len(D))]
    factors = factor(D, chain)
    return np.stack([factors.solve(column) for column in B.T], axis=1)
