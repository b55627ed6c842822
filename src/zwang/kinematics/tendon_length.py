"""Lengths of tendons, and their Jacobians (moment arms)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from zwang.kinematics.jacobians import placement_jacobian
from zwang.kinematics.kinematics import Kinematics
from zwang.kinematics.poses import Pose, placement_pose
from zwang.kinematics.wrapping import wrap_around
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.tendon_elements import Tendon, Wrap
from zwang.mechanism.tree import Placement
from zwang.scalar import divide, less, sqrt, where

TINY = 1e-15  # m: a shorter segment has no direction


class PathPoint(NamedTuple):
    """A point of a tendon's path: where it is fixed to a link, and its position p (3,) in the world [m]."""

    placement: Placement
    p: np.ndarray


def tendon_length(mechanism: Mechanism, tendon: Tendon, kinematics: Kinematics) -> tuple[Any, np.ndarray]:
    """Length of a tendon [m, or the unit of the coordinates] and its Jacobian (nv,) at one configuration.

    Fixed tendon: sum of coefficient times coordinate. Spatial tendon: the straight segments between
    neighbouring frames of the path and the segments wrapped around bodies; the length of each branch is
    divided by its pulley's divisor. Source: MuJoCo documentation, "Tendon".
    """
    if tendon.path:
        return _path_length(mechanism, tendon, kinematics.poses)
    length: Any = 0
    moment: list[Any] = [0] * mechanism.nv
    for name, coefficient in tendon.joints:
        joint = mechanism.joint(name)
        length = length + coefficient * kinematics.q[joint.q.start]
        moment[joint.v.start] = moment[joint.v.start] + coefficient
    return length, np.array(moment)


def _path_length(mechanism: Mechanism, tendon: Tendon, poses: Sequence[Pose]) -> tuple[Any, np.ndarray]:
    """Length of a spatial tendon [m] and its Jacobian (nv,), summed over the segments of its path."""
    tree = mechanism.tree
    wraps = {wrap.at: wrap for wrap in tendon.wraps}
    divisors = iter(tendon.divisors or (1,))
    divisor = next(divisors) if tendon.path[0] is not None else 1
    length, moment = 0, np.zeros(mechanism.nv, int)
    last: PathPoint | None = None
    wrapped: tuple[Wrap, Placement] | None = None
    for k, name in enumerate(tendon.path):
        if name is None:  # a pulley: the next branch begins
            last, divisor = None, next(divisors)
            continue
        placement = tree.placement(name)
        if k in wraps:
            wrapped = (wraps[k], placement)
            continue
        point = PathPoint(placement, placement_pose(poses, placement).p)
        if last is not None:
            segment, jacobian = _segment(mechanism, poses, last, point, wrapped)
            length, moment = length + segment / divisor, moment + jacobian / divisor
        last, wrapped = point, None
    return length, moment


def _segment(
    mechanism: Mechanism,
    poses: Sequence[Pose],
    first: PathPoint,
    last: PathPoint,
    wrapped: tuple[Wrap, Placement] | None,
) -> tuple[Any, np.ndarray]:
    """Length [m] and Jacobian (nv,) of the path between two frames, straight or wrapped around a body."""
    straight, jacobian = _straight(mechanism, poses, first, last)
    if wrapped is None:
        return straight, jacobian
    wrap, placement = wrapped
    pose = placement_pose(poses, placement)
    side = None if wrap.side is None else placement_pose(poses, mechanism.tree.placement(wrap.side)).p
    around = wrap_around(wrap, pose, first.p, last.p, side)
    # The points of tangency do no work when they slide along the surface: they count as fixed to the body.
    tangency = [PathPoint(_fixed(placement, pose, p), p) for p in (around.first, around.last)]
    before, jacobian_before = _straight(mechanism, poses, first, tangency[0])
    after, jacobian_after = _straight(mechanism, poses, tangency[1], last)
    columns = zip(jacobian_before, jacobian_after, jacobian, strict=True)
    chosen = np.array([where(around.touches, x + y, z) for x, y, z in columns])
    return where(around.touches, before + around.length + after, straight), chosen


def _fixed(placement: Placement, pose: Pose, p: np.ndarray) -> Placement:
    """The world point p, fixed to the link of the placement whose world pose is given."""
    return Placement(placement.link, placement.R, placement.p + placement.R @ (pose.R.T @ (p - pose.p)))


def _straight(
    mechanism: Mechanism, poses: Sequence[Pose], first: PathPoint, last: PathPoint
) -> tuple[Any, np.ndarray]:
    """Distance [m] of two points and its Jacobian (nv,), n (J_last - J_first) with the unit vector n between
    them.
    """
    tree = mechanism.tree
    d = last.p - first.p
    square = d @ d
    apart = less(TINY * TINY, square)
    distance = sqrt(where(apart, square, 1.0))
    n = np.array([where(apart, divide(x, distance), 0) for x in d])
    J_last = placement_jacobian(tree, poses, last.placement)[:3]
    J = J_last - placement_jacobian(tree, poses, first.placement)[:3]
    return where(apart, distance, 0.0), n @ J
