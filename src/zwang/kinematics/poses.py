"""Where everything is: poses of links and frames, from q."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from zwang.algebra import rotations
from zwang.mechanism.tree import WORLD, Link, Placement, Tree


class Pose(NamedTuple):
    """Rotation R_AB (the columns are B's axes in A) and origin p_AB of a frame B in a frame A [m]."""

    R: np.ndarray
    p: np.ndarray


IDENTITY = Pose(np.eye(3, dtype=int), np.zeros(3, int))


def link_pose(link: Link, q: Any) -> Pose:
    """The link's pose in its parent link, from all of q; quaternions are unit."""
    kind, axis, pitch, *_ = link.move
    if kind == "ball":
        return Pose(link.R @ rotations.from_quaternion(q[link.q]), link.p)
    x = q[link.q][0] - link.reference
    if kind == "slide":
        return Pose(link.R, link.p + link.R @ (np.array(axis) * x))
    R = link.R @ rotations.from_axis_angle(axis, x)
    return Pose(R, link.p + link.R @ (np.array(axis) * (pitch * x)))


def motion_subspace(link: Link) -> np.ndarray:
    """S (6, nv of the link) of the link's own speeds: its velocity against its parent is S v, linear rows first, in link axes."""
    kind, axis, pitch, *_ = link.move
    a = np.array(axis).reshape(3, 1)
    zero = np.zeros((3, 1), int)
    if kind == "ball":
        return np.vstack([np.zeros((3, 3), int), np.eye(3, dtype=int)])
    if kind == "slide":
        return np.vstack([a, zero])
    return np.vstack([pitch * a if kind == "screw" else zero, a])


def link_poses(tree: Tree, q: Any) -> list[Pose]:
    """Every link's pose in the world."""
    poses: list[Pose] = []
    for link in tree.links:
        R, p = link_pose(link, q)
        base = poses[link.parent] if link.parent != WORLD else IDENTITY
        poses.append(Pose(base.R @ R, base.p + base.R @ p))
    return poses


def placement_pose(poses: list[Pose], place: Placement) -> Pose:
    """The world pose of a frame fixed to a link."""
    base = poses[place.link] if place.link != WORLD else IDENTITY
    return Pose(base.R @ place.R, base.p + base.R @ place.p)


def frame_pose(tree: Tree, q: Any, frame: str) -> Pose:
    """The world pose (R, p) of a body's or a named frame. Raises UnknownNameError."""
    place = tree.place(frame)
    pose = place
    R, p = pose.R, pose.p
    at = place.link
    while at != WORLD:  # only the links on the way
        link = tree.links[at]
        R_link, p_link = link_pose(link, q)
        R, p, at = R_link @ R, p_link + R_link @ p, link.parent
    return Pose(R, p)
