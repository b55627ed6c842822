"""Velocities and accelerations of the links, by recursion from the world to the leaves."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from zwang.algebra.rotations import cross
from zwang.kinematics.poses import Pose, link_pose, motion_subspace
from zwang.mechanism.tree import WORLD, Tree


class SpatialVector(NamedTuple):
    """Linear part (3,), of the origin of a frame, and angular part (3,) of a velocity or an acceleration."""

    linear: np.ndarray
    angular: np.ndarray


def propagate_velocities(
    tree: Tree, joint_poses: Iterable[Pose], subspaces: Iterable[np.ndarray], v: Any
) -> list[SpatialVector]:
    """Velocity of every link relative to the world, in the link's axes, from the poses of the links in their
    parents.

    joint_poses, subspaces: pose in the parent and motion subspace (6, nv of the link) of each link. v:
    generalised velocities (nv,). Source: Featherstone 2008, Eq. 5.14.
    """
    found: list[SpatialVector] = []
    rest = SpatialVector(np.zeros(3, int), np.zeros(3, int))
    for link, (R, p), S in zip(tree.links, joint_poses, subspaces, strict=True):
        # u_i = R^T (u + w x p) + S_u v_i,  w_i = R^T w + S_w v_i
        u, w = found[link.parent] if link.parent != WORLD else rest
        s = S @ v[link.v]
        found.append(SpatialVector(R.T @ (u + cross(w, p)) + s[:3], R.T @ w + s[3:]))
    return found


def link_velocities(tree: Tree, q: Any, v: Any) -> list[SpatialVector]:
    """Velocity of every link relative to the world, in the link's axes, at (q, v): of its origin, and
    angular.
    """
    joint_poses = (link_pose(link, q) for link in tree.links)
    return propagate_velocities(tree, joint_poses, (motion_subspace(link) for link in tree.links), v)


def propagate_accelerations(
    tree: Tree,
    joint_poses: Iterable[Pose],
    subspaces: Iterable[np.ndarray],
    velocities: Sequence[SpatialVector],
    v: Any,
    a: Any,
) -> list[SpatialVector]:
    """Acceleration of every link relative to the world, in the link's axes: of its origin, and angular.

    velocities: as `propagate_velocities` returns them. v, a: generalised velocities and accelerations (nv,);
    with a = 0 the result is the bias acceleration. Linear accelerations are classical ones of the origins,
    not spatial ones. Source: Featherstone 2008, Eq. 5.15, for classical accelerations.
    """
    found: list[SpatialVector] = []
    rest = SpatialVector(np.zeros(3, int), np.zeros(3, int))
    for link, (R, p), S in zip(tree.links, joint_poses, subspaces, strict=True):
        # a_i = R^T (a + wd x p + w x (w x p)) + S_u a_i + 2 (R^T w) x S_u v_i
        # wd_i = R^T wd + S_w a_i + (R^T w) x S_w v_i
        inner = link.parent != WORLD
        acc, wd = found[link.parent] if inner else rest
        w = velocities[link.parent].angular if inner else rest.angular
        u, s = S @ v[link.v], S @ a[link.v]
        linear = R.T @ (acc + cross(wd, p) + cross(w, cross(w, p))) + s[:3] + 2 * cross(R.T @ w, u[:3])
        found.append(SpatialVector(linear, R.T @ wd + s[3:] + cross(R.T @ w, u[3:])))
    return found
