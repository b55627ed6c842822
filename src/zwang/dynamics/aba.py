"""Forward dynamics by articulated bodies: no mass matrix, and work that grows only linearly with the links."""

from __future__ import annotations

from typing import Any

import numpy as np

from zwang.algebra.factorization import ltdl, ltdl_solve
from zwang.algebra.rotations import skew
from zwang.dynamics.crba import symmetric
from zwang.dynamics.rnea import vee
from zwang.kinematics.poses import link_pose, motion_subspace
from zwang.mechanism.tree import WORLD, Tree


def aba(tree: Tree, q: Any, v: Any, tau: Any) -> np.ndarray:
    """The accelerations (nv,) that the efforts tau give, as `forward_dynamics_crba`, in O(links).

    A link with all that hangs on it answers an acceleration a of its frame with the wrench I_A a + p_A. Outwards: velocities
    and the forces p of the speeds; inwards: U = I_A S, D = S^T U + armature, I_A and p_A less what the joint gives way; outwards:
    accelerations. The recursion uses classical accelerations of the origins. Source: Featherstone, RBDA (2008), Table 7.1.
    """
    poses = [link_pose(link, q) for link in tree.links]
    subspaces = [motion_subspace(link) for link in tree.links]
    bias = _velocity_parts(tree, poses, subspaces, v)
    articulated = [rigid_inertia(link.mass, link.h, link.J) for link in tree.links]
    wrenches = [
        np.concatenate([W @ link.h, vee(W @ link.J)]) for link, (_, W) in zip(tree.links, bias, strict=True)
    ]
    joints: list[Any] = [None] * len(tree.links)
    for i, link in reversed(list(enumerate(tree.links))):
        S, (c, _) = subspaces[i], bias[i]
        U = articulated[i] @ S
        D = symmetric(S.T @ U) + np.diag([link.armature] * link.move.nv)
        u = np.array(tau[link.v]) - S.T @ (wrenches[i] + articulated[i] @ c)
        gain = _solved(D, U.T)
        joints[i] = (gain, _solved(D, u.reshape(-1, 1))[:, 0])
        if link.parent != WORLD:
            rest = symmetric(articulated[i] - U @ gain)
            wrench = wrenches[i] + articulated[i] @ c + U @ joints[i][1]
            articulated[link.parent] = articulated[link.parent] + _moved_inertia(rest, *poses[i])
            wrenches[link.parent] = wrenches[link.parent] + _moved_wrench(wrench, *poses[i])
    return _accelerations(tree, poses, subspaces, bias, joints)


def _velocity_parts(tree: Tree, poses: Any, subspaces: Any, v: Any) -> list[tuple[np.ndarray, np.ndarray]]:
    """For each link the acceleration (6,) of its frame that the speeds give beside its parent's, and W = [w]x [w]x."""
    zero = np.zeros(3, int)
    speeds: list[Any] = []
    found = []
    for link, (R, p), S in zip(tree.links, poses, subspaces, strict=True):
        w, W = speeds[link.parent] if link.parent != WORLD else (zero, np.zeros((3, 3), int))
        u = S @ v[link.v]
        w_parent = R.T @ w
        c = np.concatenate([R.T @ (W @ p) + 2 * np.cross(w_parent, u[:3]), np.cross(w_parent, u[3:])])
        w = w_parent + u[3:]
        W = skew(w) @ skew(w)
        speeds.append((w, W))
        found.append((c, W))
    return found


def _accelerations(tree: Tree, poses: Any, subspaces: Any, bias: Any, joints: Any) -> np.ndarray:
    """The last pass: a = D^-1 (u - U^T a_parent), outwards."""
    frames: list[np.ndarray] = []
    result: list[Any] = [0] * tree.nv
    for i, link in enumerate(tree.links):
        base = (
            frames[link.parent] if link.parent != WORLD else np.concatenate([-tree.gravity, np.zeros(3, int)])
        )
        R, p = poses[i]
        carried = np.concatenate([R.T @ (base[:3] + np.cross(base[3:], p)), R.T @ base[3:]])
        gain, u = joints[i]
        x = u - gain @ carried
        result[link.v] = x
        frames.append(carried + bias[i][0] + subspaces[i] @ x)
    return np.array(result)


def rigid_inertia(m: Any, h: Any, J: Any) -> np.ndarray:
    """The 6x6 inertia about the origin, linear first: [[m 1, -[h]x], [[h]x, tr(J) 1 - J]]."""
    one = np.eye(3, dtype=int)
    return np.block([[m * one, -skew(h)], [skew(h), (J[0, 0] + J[1, 1] + J[2, 2]) * one - J]])


def _moved_inertia(I: Any, R: Any, p: Any) -> np.ndarray:
    """A 6x6 inertia about another frame's origin and in its axes; (R, p) is its pose there.

    With blocks A, B, D of I turned by R: X = [[1, 0], [[p]x, 1]] gives X I X^T.
    """
    A, B, D = (R @ block @ R.T for block in (I[:3, :3], I[:3, 3:], I[3:, 3:]))
    A, D, P = symmetric(A), symmetric(D), skew(p)
    C = B + A @ P.T
    return np.block([[A, C], [C.T, symmetric(D + P @ C + B.T @ P.T)]])


def _moved_wrench(f: Any, R: Any, p: Any) -> np.ndarray:
    force = R @ f[:3]
    return np.concatenate([force, R @ f[3:] + np.cross(p, force)])


def _solved(D: Any, B: Any) -> np.ndarray:
    """D^-1 B for the joint's own small symmetric D."""
    chain = [k - 1 for k in range(len(D))]
    L, reciprocals = ltdl(D, chain)
    return np.stack([ltdl_solve(L, reciprocals, chain, column) for column in B.T], axis=1)
