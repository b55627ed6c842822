"""Inverse dynamics: the efforts that a motion asks for, by the recursion of Newton and Euler over the links.

A link's acceleration is that of its origin, a, and the matrix U with which its other points accelerate: a + U r, with
U = [wd]x + [w]x [w]x. Its inertia is mass m, first moment h and second moment J. Then
    force  f = m a + U h,      moment  n = vee(F - F^T)  with  F = U J + a h^T,
both about the link's origin: the integral of r x acceleration over the mass, without a special case.
Source: Luh, Walker, Paul (1980), in the form of second moments as in Legnani et al., Mech. Mach. Theory 31 (1996) 573.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from zwang.algebra.rotations import cross, skew
from zwang.kinematics.poses import link_pose, motion_subspace
from zwang.mechanism.tree import WORLD, Tree


def vee(F: np.ndarray) -> np.ndarray:
    """The vector n of the antisymmetric part: [n]x = F - F^T."""
    return np.array([F[2, 1] - F[1, 2], F[0, 2] - F[2, 0], F[1, 0] - F[0, 1]])


def rnea(tree: Tree, q: Any, v: Any, a: Any) -> np.ndarray:
    """tau (nv,): H(q) a + h(q, v), the efforts [N m or N] beside springs and dampers for the accelerations a.

    Gravity enters as an upward acceleration of the world. Source: Featherstone, RBDA (2008), Table 5.1; see above.
    """
    zero = np.zeros(3, int)
    world = (zero, zero, -tree.gravity, np.zeros((3, 3), int))  # w, wd, a, U
    motions: list[Any] = []
    poses = [link_pose(link, q) for link in tree.links]
    for link, (R, p) in zip(tree.links, poses, strict=True):
        w, wd, acc, U = motions[link.parent] if link.parent != WORLD else world
        S = motion_subspace(link)
        u, s = S @ v[link.v], S @ a[link.v]
        # p' = p + U p and the slide's own part
        w_parent = R.T @ w
        acc = R.T @ (acc + U @ p) + 2 * cross(w_parent, u[:3]) + s[:3]
        wd = R.T @ wd + cross(w_parent, u[3:]) + s[3:]
        w = w_parent + u[3:]
        motions.append((w, wd, acc, skew(wd) + skew(w) @ skew(w)))
    wrenches = []
    for link, (_, _, acc, U) in zip(tree.links, motions, strict=True):
        F = U @ link.J + np.outer(acc, link.h)
        wrenches.append((link.mass * acc + U @ link.h, vee(F)))
    tau = [0] * tree.nv
    for i, link in reversed(list(enumerate(tree.links))):
        f, n = wrenches[i]
        tau[link.v] = motion_subspace(link).T @ np.concatenate([f, n]) + link.armature * a[link.v]
        if link.parent != WORLD:
            R, p = poses[i]
            f_parent, n_parent = wrenches[link.parent]
            f = R @ f
            wrenches[link.parent] = (f_parent + f, n_parent + R @ n + cross(p, f))
    return np.array(tau)


def bias_forces(tree: Tree, q: Any, v: Any) -> np.ndarray:
    """h (nv,): the efforts that keep the speeds from changing: Coriolis, centrifugal and gravity [N m or N]."""
    return rnea(tree, q, v, np.zeros(tree.nv, int))
