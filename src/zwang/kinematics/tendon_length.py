"""Tendons: their lengths and how these change with the speeds."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from zwang.kinematics.jacobians import placement_jacobian
from zwang.kinematics.poses import Pose, link_poses, placement_pose
from zwang.kinematics.wrapping import wrap_around
from zwang.mechanism.constraints import Tendon, Wrap
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.tree import Placement
from zwang.scalar import divide, less, sqrt, where

TINY = 1e-15  # m: a shorter piece has no direction


class PathPoint(NamedTuple):
    """A point of a path: its place, whose link carries it, and its position in the world."""

    place: Placement
    p: np.ndarray


def tendon_length(mechanism: Mechanism, tendon: Tendon, q: Any) -> tuple[Any, np.ndarray]:
    """Length [m, or the coordinates' unit] and its derivative (nv,) with respect to the speeds.

    Fixed: sum of coefficient * q. Spatial: the straight pieces between neighbouring frames of the path and around the
    bodies that it wraps, each branch over its pulley's divisor. Source: MuJoCo documentation, "Tendon".
    """
    if tendon.path:
        return _path_length(mechanism, tendon, q)
    length: Any = 0
    moment: list[Any] = [0] * mechanism.nv
    for name, coefficient in tendon.joints:
        joint = mechanism.joint(name)
        length = length + coefficient * q[joint.q.start]
        moment[joint.v.start] = moment[joint.v.start] + coefficient
    return length, np.array(moment)


def _path_length(mechanism: Mechanism, tendon: Tendon, q: Any) -> tuple[Any, np.ndarray]:
    tree = mechanism.tree
    poses = link_poses(tree, q)
    wraps = {wrap.at: wrap for wrap in tendon.wraps}
    divisors = iter(tendon.divisors or (1,))
    divisor = next(divisors) if tendon.path[0] is not None else 1
    length, moment = 0, np.zeros(mechanism.nv, int)
    last: PathPoint | None = None
    over: tuple[Wrap, Placement] | None = None
    for at, name in enumerate(tendon.path):
        if name is None:
            last, divisor = None, next(divisors)
            continue
        place = tree.place(name)
        if at in wraps:
            over = (wraps[at], place)
            continue
        spot = PathPoint(place, placement_pose(poses, place).p)
        if last is not None:
            piece, slope = _piece(mechanism, poses, last, spot, over)
            length, moment = length + piece / divisor, moment + slope / divisor
        last, over = spot, None
    return length, moment


def _piece(
    mechanism: Mechanism, poses: list[Pose], first: PathPoint, last: PathPoint, over: tuple[Wrap, Placement] | None
) -> tuple[Any, np.ndarray]:
    """The length of a path between two frames, straight or around a body, and its derivative (nv,)."""
    straight, slope = _straight(mechanism, poses, first, last)
    if over is None:
        return straight, slope
    wrap, place = over
    pose = placement_pose(poses, place)
    side = None if wrap.side is None else placement_pose(poses, mechanism.tree.place(wrap.side)).p
    bend = wrap_around(wrap, pose, first.p, last.p, side)
    touches = [PathPoint(_fixed(place, pose, p), p) for p in (bend.first, bend.last)]
    before, slope_before = _straight(mechanism, poses, first, touches[0])
    after, slope_after = _straight(mechanism, poses, touches[1], last)
    bent = np.array(
        [where(bend.touches, x + y, z) for x, y, z in zip(slope_before, slope_after, slope, strict=True)]
    )
    return where(bend.touches, before + bend.length + after, straight), bent


def _fixed(place: Placement, pose: Pose, p: np.ndarray) -> Placement:
    """The place of a world point, fixed to the link of another place."""
    return Placement(place.link, place.R, place.p + place.R @ (pose.R.T @ (p - pose.p)))


def _straight(mechanism: Mechanism, poses: list[Pose], first: PathPoint, last: PathPoint) -> tuple[Any, np.ndarray]:
    """The distance of two points and its derivative (nv,): n (J_last - J_first)."""
    tree = mechanism.tree
    d = last.p - first.p
    square = d @ d
    apart = less(TINY * TINY, square)
    piece = sqrt(where(apart, square, 1.0))
    n = np.array([where(apart, divide(x, piece), 0) for x in d])
    J = placement_jacobian(tree, poses, last.place)[:3] - placement_jacobian(tree, poses, first.place)[:3]
    return where(apart, piece, 0.0), n @ J
