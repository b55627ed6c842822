"""Lengths of tendons, and their Jacobians (moment arms)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from zwang.algebra.norms import TINY
from zwang.kinematics.jacobians import placement_jacobian
from zwang.kinematics.kinematics import Kinematics
from zwang.kinematics.poses import Pose, placement_pose
from zwang.kinematics.wrapping import wrap_around
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.tendon_elements import Tendon, Wrap
from zwang.mechanism.tree import WORLD, Placement, Tree
from zwang.scalar import are_constant, divide, is_zero, less, sqrt, where


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


def has_moment_arms(mechanism: Mechanism, tendon: Tendon) -> bool:
    """Whether joints change the length of a tendon: not that of one whose branches are on one body each, with
    all around which they wrap.
    """
    if not tendon.path:
        return not all(is_zero(coefficient) for _, coefficient in tendon.joints)
    links: list[set[int]] = [set()]
    for name in tendon.path:
        if name is None:  # a pulley
            links.append(set())
        else:
            links[-1].add(mechanism.tree.placement(name).link)
    return any(len(branch) > 1 for branch in links)


class PathSegment(NamedTuple):
    """A segment of a tendon's path: its ends with the names of their frames, the body around which it may
    wrap, and the divisor of its branch.
    """

    first: PathPoint
    last: PathPoint
    frames: tuple[str, str]
    wrapped: tuple[Wrap, Placement] | None
    wrapped_frame: str
    divisor: Any


def _segments(mechanism: Mechanism, tendon: Tendon, poses: Sequence[Pose]) -> Iterator[PathSegment]:
    """The segments of a spatial tendon's path."""
    tree = mechanism.tree
    wraps = {wrap.at: wrap for wrap in tendon.wraps}
    divisors = iter(tendon.divisors or (1,))
    divisor = next(divisors) if tendon.path[0] is not None else 1
    last: tuple[str, PathPoint] | None = None
    wrapped: tuple[Wrap, Placement] | None = None
    around = ""
    for k, name in enumerate(tendon.path):
        if name is None:  # a pulley: the next branch begins
            last, divisor = None, next(divisors)
            continue
        placement = tree.placement(name)
        if k in wraps:
            wrapped, around = (wraps[k], placement), name
            continue
        point = PathPoint(placement, placement_pose(poses, placement).p)
        if last is not None:
            yield PathSegment(last[1], point, (last[0], name), wrapped, around, divisor)
        last, wrapped, around = (name, point), None, ""


def _path_length(mechanism: Mechanism, tendon: Tendon, poses: Sequence[Pose]) -> tuple[Any, np.ndarray]:
    """Length of a spatial tendon [m] and its Jacobian (nv,), summed over the segments of its path."""
    length, moment = 0, np.zeros(mechanism.nv, int)
    for part in _segments(mechanism, tendon, poses):
        segment, jacobian = _segment(mechanism, poses, part.first, part.last, part.wrapped)
        length, moment = length + segment / part.divisor, moment + jacobian / part.divisor
    return length, moment


def tendon_loads(
    mechanism: Mechanism, tendon: Tendon, poses: Sequence[Pose]
) -> list[tuple[str, np.ndarray, np.ndarray]]:
    """The forces of a spatial tendon at unit tension, as (frame, point (3,) [m], force (3,)), in world axes.

    The tendon pulls each end of a straight segment towards the other, and the wrapping body at the points of
    tangency. frame: the frame on whose body the force acts.
    """
    loads: list[tuple[str, np.ndarray, np.ndarray]] = []
    for part in _segments(mechanism, tendon, poses):
        (first, last), (one, two) = (part.first.p, part.last.p), part.frames
        pull = _direction(first, last) / part.divisor
        if part.wrapped is None:
            loads += [(one, first, pull), (two, last, -pull)]
            continue
        wrap, placement = part.wrapped
        side = None if wrap.side is None else placement_pose(poses, mechanism.tree.placement(wrap.side)).p
        around = wrap_around(
            wrap,
            placement_pose(poses, placement),
            first,
            last,
            side,
            side_is_inside(mechanism, wrap, placement),
        )
        before = _direction(first, around.first) / part.divisor
        after = _direction(around.last, last) / part.divisor
        chosen = [
            np.array([where(around.touches, x, y) for x, y in zip(bent, straight, strict=True)])
            for bent, straight in ((before, pull), (-after, -pull), (-before, 0 * pull), (after, 0 * pull))
        ]
        loads += [(one, first, chosen[0]), (two, last, chosen[1])]
        loads += [(part.wrapped_frame, around.first, chosen[2]), (part.wrapped_frame, around.last, chosen[3])]
    return loads


def _direction(first: np.ndarray, last: np.ndarray) -> np.ndarray:
    """Unit vector (3,) from the first point to the last; 0 where they coincide."""
    d = last - first
    square = d @ d
    apart = less(TINY * TINY, square)
    distance = sqrt(where(apart, square, 1.0))
    return np.array([where(apart, divide(x, distance), 0) for x in d])


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
    around = wrap_around(wrap, pose, first.p, last.p, side, side_is_inside(mechanism, wrap, placement))
    # The points of tangency do no work when they slide along the surface: they count as fixed to the body.
    tangency = [PathPoint(_fixed(placement, pose, p), p) for p in (around.first, around.last)]
    before, jacobian_before = _straight(mechanism, poses, first, tangency[0])
    after, jacobian_after = _straight(mechanism, poses, tangency[1], last)
    columns = zip(jacobian_before, jacobian_after, jacobian, strict=True)
    chosen = np.array([where(around.touches, x + y, z) for x, y, z in columns])
    return where(around.touches, before + around.length + after, straight), chosen


def side_is_inside(mechanism: Mechanism, wrap: Wrap, placement: Placement) -> bool | None:
    """Whether the side frame is within the radius of a wrapping body; None if the mechanism does not tell.

    placement: of the wrapping body.
    """
    if wrap.side is None:
        return False
    d = _constant_offset(mechanism.tree, placement, mechanism.tree.placement(wrap.side))
    if d is None or not are_constant(wrap.radius):
        return None
    return bool(d @ d < wrap.radius * wrap.radius)


def _constant_offset(tree: Tree, a: Placement, b: Placement) -> np.ndarray | None:
    """The offset (3,) between two origins in one configuration, if their distance is that in all of them:
    both are on one link, or one of them is on the axis of the joint between their links. None if it varies,
    or depends on symbols.
    """
    if a.link == b.link:
        d = b.p - a.p
        return d if are_constant(*d) else None
    for outer, inner in ((a, b), (b, a)):
        if outer.link == WORLD or tree.links[outer.link].parent != inner.link:
            continue
        link = tree.links[outer.link]
        kind, axis, pitch, *_ = link.joint
        c = link.R.T @ (inner.p - link.p)  # the inner point in the axes of the outer link
        if not are_constant(*outer.p, *c, *axis, pitch) or kind == "prismatic" or pitch != 0:
            return None
        off_axis = [p if kind == "ball" else np.cross(axis, p) for p in (outer.p, c)]
        return c - outer.p if any(not np.any(x) for x in off_axis) else None
    return None


def _fixed(placement: Placement, pose: Pose, p: np.ndarray) -> Placement:
    """The world point p, fixed to the link of the placement whose world pose is given."""
    return Placement(placement.link, placement.R, placement.p + placement.R @ (pose.R.T @ (p - pose.p)))


def _straight(
    mechanism: Mechanism, poses: Sequence[Pose], first: PathPoint, last: PathPoint
) -> tuple[Any, np.ndarray]:
    """Distance [m] of two points and its Jacobian (nv,), n (J_last - J_first) with the unit vector n between
    them; exact zeros for two points of one body.
    """
    tree = mechanism.tree
    d = last.p - first.p
    square = d @ d
    apart = less(TINY * TINY, square)
    distance = sqrt(where(apart, square, 1.0))
    n = np.array([where(apart, divide(x, distance), 0) for x in d])
    if first.placement.link == last.placement.link:
        return where(apart, distance, 0.0), np.zeros(mechanism.nv, int)
    J_last = placement_jacobian(tree, poses, last.placement)[:3]
    J = J_last - placement_jacobian(tree, poses, first.placement)[:3]
    return where(apart, distance, 0.0), n @ J
