"""The shortest path of a tendon around a sphere or a cylinder.

In the plane across the cylinder's axis, or in the plane of both end points and the sphere's centre, the path
consists of two tangents to a circle and an arc between them. The direction from the centre turns by the angle
phi between the end points. Each tangent covers acos(r / distance) of it, and the arc covers the remainder.
Where the remainder is negative, the path is straight and does not touch the body. Source: MuJoCo
documentation, "Tendon" and "spatial/geom/sidesite".
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np

from zwang.algebra.norms import TINY, norm
from zwang.algebra.rotations import cross
from zwang.kinematics.inside_wrapping import touching_point
from zwang.kinematics.poses import Pose
from zwang.scalar import (
    absolute,
    acos,
    atan2,
    cos,
    less,
    less_equal,
    logical_and,
    logical_not,
    logical_or,
    minimum,
    sin,
    sqrt,
    where,
)

PI = float(np.pi)


class WrappedSegment(NamedTuple):
    """The part of a path on a body: first and last point (3,) in the world, length [m], and whether it
    touches.
    """

    first: np.ndarray
    last: np.ndarray
    length: Any
    touches: Any


class WrapShape(NamedTuple):
    """A sphere or cylinder of a radius [m] around which a path wraps."""

    kind: Literal["sphere", "cylinder"]
    radius: Any


def wrap_around(
    wrap: WrapShape,
    pose: Pose,
    first: np.ndarray,
    last: np.ndarray,
    side: np.ndarray | None,
    inside: bool | None = False,
) -> WrappedSegment:
    """The wrapped part of the shortest path between two world points around a body.

    pose: world pose of the body. first, last: end points (3,) [m]. side: a world point (3,) on the side on
    which the path passes the body, or None for the shorter side. inside: whether that point is within the
    radius from the body's origin, so that the path passes through the body; None if it depends on the
    configuration.
    """
    p, q = pose.R.T @ (first - pose.p), pose.R.T @ (last - pose.p)
    if side is None or inside is False:
        return _in_world(pose, _around(wrap, p, q, None if side is None else pose.R.T @ (side - pose.p)))
    through = _through(wrap, p, q)
    if inside:
        return _in_world(pose, through)
    s = pose.R.T @ (side - pose.p)
    within = less(s @ s, wrap.radius * wrap.radius)
    around = _around(wrap, p, q, s)
    entry, leave = (
        np.array([where(within, a, b) for a, b in zip(one, other, strict=True)])
        for one, other in ((through.first, around.first), (through.last, around.last))
    )
    touches = logical_or(
        logical_and(within, through.touches), logical_and(logical_not(within), around.touches)
    )
    return _in_world(pose, WrappedSegment(entry, leave, where(within, 0, around.length), touches))


def _in_world(pose: Pose, segment: WrappedSegment) -> WrappedSegment:
    """The segment with its points in the world instead of in the body's frame."""
    first, last = (pose.p + pose.R @ point for point in (segment.first, segment.last))
    return segment._replace(first=first, last=last)


def _through(wrap: WrapShape, p: np.ndarray, q: np.ndarray) -> WrappedSegment:
    """The segment along the inner surface, one point, in the body's frame."""
    x, y = _plane(wrap, p, q)
    start, end = np.array([x @ p, y @ p]), np.array([x @ q, y @ q])
    touches, (a, b) = touching_point(start, end, wrap.radius)
    point = a * x + b * y
    if wrap.kind == "cylinder":  # on the unrolled cylinder the path is straight
        before, after = (norm((c - point)[:2]) for c in (p, q))
        total = before + after
        point = np.array([*point[:2], p[2] + (q[2] - p[2]) * before / where(less(0, total), total, 1.0)])
    return WrappedSegment(point, point, 0, touches)


def _around(wrap: WrapShape, p: np.ndarray, q: np.ndarray, s: np.ndarray | None) -> WrappedSegment:
    """The segment around the body, in the body's frame, past the point s (3,) if there is one."""
    x, y = _plane(wrap, p, q)
    r = wrap.radius
    start, end = np.array([x @ p, y @ p]), np.array([x @ q, y @ q])
    phi = _angle(start, end)
    if s is not None:
        via = np.array([x @ s, y @ s])
        phi = _angle(start, via) + _angle(via, end)
    sign = where(less(phi, 0), -1, 1)
    # arc = |phi| - acos(r / |start|) - acos(r / |end|)
    tangent_start, tangent_end = _tangent_angle(start, r), _tangent_angle(end, r)
    arc = absolute(phi) - tangent_start - tangent_end
    touches = logical_and(less(0, arc), logical_and(_outside(start, r), _outside(end, r)))
    # polar angles of the two points of tangency
    alpha = atan2(start[1], start[0]) + sign * tangent_start
    omega = atan2(end[1], end[0]) - sign * tangent_end
    points = [r * (cos(angle) * x + sin(angle) * y) for angle in (alpha, omega)]
    length = r * where(touches, arc, 0.0)
    if wrap.kind == "cylinder":
        points, length = _helix(points, length, p, q)
    return WrappedSegment(points[0], points[1], length, touches)


def _plane(wrap: WrapShape, p: np.ndarray, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Two orthonormal vectors that span the plane of the circle, in the body's frame."""
    if wrap.kind == "cylinder":
        return np.array([1, 0, 0]), np.array([0, 1, 0])
    x = _unit(p, np.array([1, 0, 0]))
    # Where the end points are in line with the centre, the plane is MuJoCo's: it contains the vector of ones
    # with zero at the largest component of x.
    a, b, c = absolute(x[0]), absolute(x[1]), absolute(x[2])
    second, third = logical_and(less(a, b), less(c, b)), logical_and(less(a, c), less(b, c))
    first = logical_not(logical_or(second, third))
    other = cross(x, np.array([where(is_largest, 0, 1) for is_largest in (first, second, third)]))
    return x, cross(_unit(cross(p, q), _unit(other, other)), x)


def _unit(a: np.ndarray, otherwise: np.ndarray) -> np.ndarray:
    """The vector a at unit length, or `otherwise` where a has no direction."""
    square = a @ a
    long = less(TINY * TINY, square)
    length = sqrt(where(long, square, 1.0))
    return np.array([where(long, u / length, v) for u, v in zip(a, otherwise, strict=True)])


def _angle(a: np.ndarray, b: np.ndarray) -> Any:
    """The angle from a to b in the plane, in [-pi, pi]."""
    return atan2(a[0] * b[1] - a[1] * b[0], a @ b)


def _outside(a: np.ndarray, r: Any) -> Any:
    """Whether the point a lies outside the circle of radius r, or on it."""
    return less_equal(r * r, a @ a)


def _tangent_angle(a: np.ndarray, r: Any) -> Any:
    """Angle at the centre between the point a and the point where its tangent touches the circle: acos(r /
    |a|).
    """
    square = a @ a
    distance = sqrt(where(less(0, square), square, 1.0))
    return acos(minimum(r / distance, 1.0))


def _helix(points: list[np.ndarray], arc: Any, p: np.ndarray, q: np.ndarray) -> tuple[list[np.ndarray], Any]:
    """The points of tangency with their heights along a cylinder, and the length of the helix between them.

    On the unrolled cylinder the path is straight: its height grows in proportion to its length in the plane.
    """
    before, after = (norm((a - b)[:2]) for a, b in ((p, points[0]), (q, points[1])))
    total = before + arc + after
    whole = where(less(0, total), total, 1.0)
    rise = q[2] - p[2]
    heights = [p[2] + rise * before / whole, p[2] + rise * (before + arc) / whole]
    climb = heights[1] - heights[0]
    raised = [np.array([point[0], point[1], z]) for point, z in zip(points, heights, strict=True)]
    return raised, norm((arc, climb))
