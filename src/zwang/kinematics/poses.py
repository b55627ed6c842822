"""Forward kinematics: the poses of links and frames as functions of the configuration q."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from zwang.algebra import rotations
from zwang.mechanism.tree import WORLD, Link, Placement, Tree


class Pose(NamedTuple):
    """Pose of a frame B in a frame A: rotation R_AB, whose columns are the axes of B in A, and origin p_AB
    [m].
    """

    R: np.ndarray
    p: np.ndarray


IDENTITY = Pose(np.eye(3, dtype=int), np.zeros(3, int))


def link_pose(link: Link, q: Any) -> Pose:
    """Pose of a link in its parent link (Featherstone 2008, Table 4.1), from the whole configuration q (nq,).

    The quaternions in q must have unit length.
    """
    kind, axis, pitch, *_ = link.joint
    if kind == "ball":
        return Pose(link.R @ rotations.from_quaternion(q[link.q]), link.p)
    x = q[link.q][0] - link.reference
    if kind == "prismatic":
        return Pose(link.R, link.p + link.R @ (np.array(axis) * x))
    R = link.R @ rotations.from_axis_angle(axis, x)
    return Pose(R, link.p + link.R @ (np.array(axis) * (pitch * x)))


def motion_subspace(link: Link) -> np.ndarray:
    """Motion subspace S (6, nv of the link) of the link's joint (Featherstone 2008, Table 4.1).

    The velocity of the link relative to its parent is S v, linear rows first, in the axes of the link.
    """
    kind, axis, pitch, *_ = link.joint
    a = np.array(axis).reshape(3, 1)
    zero = np.zeros((3, 1), int)
    if kind == "ball":
        return np.vstack([np.zeros((3, 3), int), np.eye(3, dtype=int)])
    if kind == "prismatic":
        return np.vstack([a, zero])
    return np.vstack([pitch * a if kind == "screw" else zero, a])


def compose_poses(tree: Tree, joint_poses: Iterable[Pose]) -> list[Pose]:
    """World pose of every link, by composing the poses of the links in their parents, in the order of the
    tree.
    """
    poses: list[Pose] = []
    for link, (R, p) in zip(tree.links, joint_poses, strict=True):
        # R_0i = R_0,parent R_i,  p_0i = p_0,parent + R_0,parent p_i
        base = poses[link.parent] if link.parent != WORLD else IDENTITY
        poses.append(Pose(base.R @ R, base.p + base.R @ p))
    return poses


def link_poses(tree: Tree, q: Any) -> list[Pose]:
    """World pose of every link at the configuration q (nq,), in the order of the tree."""
    return compose_poses(tree, (link_pose(link, q) for link in tree.links))


def placement_pose(poses: Sequence[Pose], placement: Placement) -> Pose:
    """World pose of a frame that is fixed to a link, from the world poses of the links."""
    base = poses[placement.link] if placement.link != WORLD else IDENTITY
    return Pose(base.R @ placement.R, base.p + base.R @ placement.p)


def frame_pose(tree: Tree, q: Any, frame: str) -> Pose:
    """World pose (R, p) of a body's frame or of a named frame at the configuration q (nq,).

    Only the links between the frame and the world are evaluated. Raises UnknownNameError for an unknown
    frame.
    """
    placement = tree.placement(frame)
    R, p, i = placement.R, placement.p, placement.link
    while i != WORLD:
        link = tree.links[i]
        R_link, p_link = link_pose(link, q)
        R, p, i = R_link @ R, p_link + R_link @ p, link.parent
    return Pose(R, p)
