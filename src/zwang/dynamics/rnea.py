"""Inverse dynamics by the recursive Newton-Euler algorithm (RNEA): Featherstone 2008, Table 5.1.

The recursion uses classical accelerations of the link origins and second moments of mass. With the
acceleration a of a link's origin, the acceleration of its point r is a + U r, where U = [wd]x + [w]x [w]x.
With the mass m, the first moment h = integral r dm and the second moment J = integral r r^T dm, the inertial
wrench about the origin is
    force   f = m a + U h,
    moment  n = vee(F - F^T),  F = U J + a h^T,
because n = integral r x (a + U r) dm. Source: Luh, Walker, Paul 1980; in second moments as in Legnani et al.,
Mechanism and Machine Theory 31 (1996) 573.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from zwang.algebra.rotations import cross, skew
from zwang.dynamics.tendon_armature import tendon_inertial_force
from zwang.kinematics.kinematics import Kinematics
from zwang.mechanism.tree import WORLD, Tree


class LinkAcceleration(NamedTuple):
    """Motion of a link in its own axes: angular velocity w and angular acceleration wd, acceleration of the
    origin less that of gravity, and U = [wd]x + [w]x [w]x.
    """

    w: np.ndarray
    wd: np.ndarray
    acceleration: np.ndarray
    U: np.ndarray


def vee(F: np.ndarray) -> np.ndarray:
    """The vector n (3,) of the antisymmetric matrix [n]x = F - F^T."""
    return np.array([F[2, 1] - F[1, 2], F[0, 2] - F[2, 0], F[1, 0] - F[0, 1]])


def rnea(tree: Tree, q: Any, v: Any, a: Any) -> np.ndarray:
    """Generalised forces tau (nv,) = M(q) a + h(q, v) by the recursive Newton-Euler algorithm (Featherstone
    2008, Table 5.1).

    q (nq,), v (nv,), a (nv,): configuration, generalised velocities and generalised accelerations.
    tau [N m or N] includes gravity and the armature of joints and tendons, and excludes passive forces
    such as springs and dampers.
    """
    return rnea_of(Kinematics(tree, q, v), a)


def link_motions(kinematics: Kinematics, a: Any) -> list[LinkAcceleration]:
    """Motion of every link for the generalised accelerations a (nv,): the forward pass of `rnea`."""
    tree, v = kinematics.tree, kinematics.v
    zero = np.zeros(3, int)
    # The world accelerates by -g, which stands for gravity: (w, wd, a, U).
    world = LinkAcceleration(zero, zero, -tree.gravity, np.zeros((3, 3), int))
    motions: list[LinkAcceleration] = []
    for link, (R, p), S in zip(tree.links, kinematics.joint_poses, kinematics.motion_subspaces, strict=True):
        w, wd, acc, U = motions[link.parent] if link.parent != WORLD else world
        u, s = S @ v[link.v], S @ a[link.v]
        # a_i = R^T (a + U p) + 2 (R^T w) x S_u v_i + S_u a_i
        w_parent = R.T @ w
        acc = R.T @ (acc + U @ p) + 2 * cross(w_parent, u[:3]) + s[:3]
        # wd_i = R^T wd + (R^T w) x S_w v_i + S_w a_i,  w_i = R^T w + S_w v_i
        wd = R.T @ wd + cross(w_parent, u[3:]) + s[3:]
        w = w_parent + u[3:]
        motions.append(LinkAcceleration(w, wd, acc, skew(wd) + skew(w) @ skew(w)))
    return motions


def rnea_of(kinematics: Kinematics, a: Any) -> np.ndarray:
    """Generalised forces tau (nv,) for the generalised accelerations a (nv,), as `rnea`, at a state whose
    poses are known.
    """
    tree, poses, subspaces = kinematics.tree, kinematics.joint_poses, kinematics.motion_subspaces
    motions = link_motions(kinematics, a)
    # Equation of motion of each link: f = m a + U h,  n = vee(F - F^T)
    wrenches = []
    for link, (_, _, acc, U) in zip(tree.links, motions, strict=True):
        F = U @ link.J + np.outer(acc, link.h)
        wrenches.append((link.mass * acc + U @ link.h, vee(F)))
    # Backward pass: tau_i = S_i^T f_i + armature a_i,  f_parent += X f_i
    tau = [0] * tree.nv
    for i, link in reversed(list(enumerate(tree.links))):
        f, n = wrenches[i]
        tau[link.v] = subspaces[i].T @ np.concatenate([f, n]) + link.armature * a[link.v]
        if link.parent != WORLD:
            R, p = poses[i]
            f_parent, n_parent = wrenches[link.parent]
            f = R @ f
            wrenches[link.parent] = (f_parent + f, n_parent + R @ n + cross(p, f))
    return np.array(tau) + tendon_inertial_force(kinematics, a)


def bias_forces(tree: Tree, q: Any, v: Any) -> np.ndarray:
    """Bias forces h(q, v) (nv,) by RNEA at a = 0: Coriolis, centrifugal and gravity terms [N m or N]."""
    return bias_forces_of(Kinematics(tree, q, v))


def bias_forces_of(kinematics: Kinematics) -> np.ndarray:
    """Bias forces h(q, v) (nv,), as `bias_forces`, at a state whose poses are known."""
    return rnea_of(kinematics, np.zeros(kinematics.tree.nv, int))
