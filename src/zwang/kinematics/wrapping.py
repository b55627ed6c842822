"""The shortest way of a taut string past a ball or around a cylinder.

Seen along the axis (of a ball: across the plane of both points and the centre) the string is a circle's two tangents
and an arc. From the first point to the last it turns by the angle phi around the centre; of this the tangents take
acos(r / distance) each, and what is left is the arc: without a rest, the string passes the circle straight.
Source: MuJoCo documentation, "Tendon" and "spatial/geom/sidesite".
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from zwang.algebra.rotations import cross
from zwang.kinematics.poses import Pose
from zwang.mechanism.constraints import Wrap
from zwang.scalar import (
    absolute,
    acos,
    atan2,
    cos,
    less,
    less_equal,
    logical_and,
    minimum,
    sin,
    sqrt,
    where,
)

PI = float(np.pi)
TINY = 1e-15


class WrappedSegment(NamedTuple):
    """Where a string meets and leaves a body, in the world, its length on it [m], and whether it touches it at all."""

    first: np.ndarray
    last: np.ndarray
    length: Any
    touches: Any


def wrap_around(wrap: Wrap, pose: Pose, first: np.ndarray, last: np.ndarray, side: np.ndarray | None) -> WrappedSegment:
    """How a string between two points bends around a body; `side` is a point that says which way around."""
    p, q = pose.R.T @ (first - pose.p), pose.R.T @ (last - pose.p)
    x, y = _plane(wrap, p, q)
    r = wrap.radius
    start, end = np.array([x @ p, y @ p]), np.array([x @ q, y @ q])
    turn = _angle(start, end)
    if side is not None:
        s = pose.R.T @ (side - pose.p)
        by = np.array([x @ s, y @ s])
        turn = _angle(start, by) + _angle(by, end)
    sign = where(less(turn, 0), -1, 1)
    lean_start, lean_end = _lean(start, r), _lean(end, r)
    arc = absolute(turn) - lean_start - lean_end
    touches = logical_and(less(0, arc), logical_and(_outside(start, r), _outside(end, r)))
    alpha = atan2(start[1], start[0]) + sign * lean_start
    omega = atan2(end[1], end[0]) - sign * lean_end
    points = [r * (cos(angle) * x + sin(angle) * y) for angle in (alpha, omega)]
    length = r * where(touches, arc, 0.0)
    if wrap.kind == "cylinder":
        points, length = _rising(points, length, p, q)
    met, left = (pose.p + pose.R @ point for point in points)
    return WrappedSegment(met, left, length, touches)


def _plane(wrap: Wrap, p: np.ndarray, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Two unit vectors that span the plane of the circle, in the body's frame."""
    if wrap.kind == "cylinder":
        return np.array([1, 0, 0]), np.array([0, 1, 0])
    x = _unit(p, np.array([1, 0, 0]))
    steep = less(
        absolute(x[0]), 0.7
    )  # where the points lie in line with the centre, any plane through them will do
    other = cross(x, np.array([where(steep, 1, 0), where(steep, 0, 1), 0]))
    return x, cross(_unit(cross(p, q), _unit(other, other)), x)


def _unit(a: np.ndarray, otherwise: np.ndarray) -> np.ndarray:
    square = a @ a
    long = less(TINY * TINY, square)
    length = sqrt(where(long, square, 1.0))
    return np.array([where(long, u / length, v) for u, v in zip(a, otherwise, strict=True)])


def _angle(a: np.ndarray, b: np.ndarray) -> Any:
    """The angle from a to b, in [-pi, pi]."""
    return atan2(a[0] * b[1] - a[1] * b[0], a @ b)


def _outside(a: np.ndarray, r: Any) -> Any:
    return less_equal(r * r, a @ a)


def _lean(a: np.ndarray, r: Any) -> Any:
    """The angle at the centre between a point and where its tangent touches the circle."""
    square = a @ a
    distance = sqrt(where(less(0, square), square, 1.0))
    return acos(minimum(r / distance, 1.0))


def _rising(points: list[np.ndarray], arc: Any, p: np.ndarray, q: np.ndarray) -> tuple[list[np.ndarray], Any]:
    """Along a cylinder the string rises evenly: unrolled, it is straight."""
    before, after = (sqrt((a - b)[:2] @ (a - b)[:2]) for a, b in ((p, points[0]), (q, points[1])))
    total = before + arc + after
    whole = where(less(0, total), total, 1.0)
    rise = q[2] - p[2]
    heights = [p[2] + rise * before / whole, p[2] + rise * (before + arc) / whole]
    climb = heights[1] - heights[0]
    raised = [np.array([point[0], point[1], z]) for point, z in zip(points, heights, strict=True)]
    return raised, sqrt(arc * arc + climb * climb)
