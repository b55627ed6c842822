"""Convex polygons on any scalar: clipping, and the corners that are kept as contact points.

The corners are points (u, v, w) in the axes of a face: u and v in its plane, w the height above it. A polygon
is an array of 3 numbers a corner, and the number of its corners, which may differ between lanes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from zwang.collision.contact_point import TINY
from zwang.scalar import (
    MutableArray,
    absolute,
    clip,
    cond,
    divide,
    empty,
    equal,
    fori_loop,
    lane_maximum,
    less,
    less_equal,
    logical_and,
    logical_not,
    logical_or,
    sqrt,
    where,
    while_loop,
)

IMPROVEMENT = 1 + 1e-9  # of an area, below which one choice of corners is as good as another


class Polygon(NamedTuple):
    """The first `count` corners of `corners` (3 capacity,)."""

    corners: MutableArray
    count: Any

    @property
    def capacity(self) -> int:
        """The largest number of corners."""
        return self.corners.shape[0] // 3

    def corner(self, k: Any) -> np.ndarray:
        """Corner k, a whole number that may differ between lanes."""
        return np.array([self.corners.gather(3 * k + c) for c in range(3)])

    def following(self, k: Any) -> Any:
        """The number of the corner after corner k."""
        return where(less(k + 1, self.count), k + 1, 0.0)

    def with_corner(self, point: Any) -> Polygon:
        """The polygon with one more corner; this one must not be used any more."""
        corners = self.corners
        for c, value in enumerate(point):
            corners = corners.scatter(3 * self.count + c, value)
        return Polygon(corners, self.count + 1)


def no_corners(capacity: int) -> Polygon:
    """A polygon with room for corners."""
    return Polygon(empty(3 * capacity), 0.0)


def clipped(subject: Polygon, clip_polygon: Polygon, highest: Any) -> Polygon:
    """The part of a polygon, or of a segment, over a clockwise convex polygon, where w is at most `highest`.

    The subject has room for the corners of both. Each edge of the clip polygon cuts off what is beyond it.
    Source: Sutherland, Hodgman, Communications of the ACM 17 (1974) 32.
    """
    most = lane_maximum(clip_polygon.count, clip_polygon.capacity)

    def by_edge(e: Any, polygon: Polygon) -> Polygon:
        start = clip_polygon.corner(1.0 * e)
        end = clip_polygon.corner(clip_polygon.following(1.0 * e))
        return cond(
            less(1.0 * e, clip_polygon.count),
            lambda *part: _cut(Polygon(*part), start, end),
            lambda *part: Polygon(*part),
            *polygon,
        )

    return _kept_below(fori_loop(0, most, by_edge, subject), highest)


def _cut(polygon: Polygon, start: np.ndarray, end: np.ndarray) -> Polygon:
    """The part of a polygon to the right of the line from start to end."""
    across = np.array([end[1] - start[1], start[0] - end[0]])
    length = sqrt(across @ across)
    across = across / where(less(TINY, length), length, 1.0)

    def inside(point: np.ndarray) -> Any:
        """Distance from the line, positive to the right."""
        return (point[:2] - start[:2]) @ across

    def side(k: Any, carry: Any) -> Any:
        new, p = carry[0], carry[1]
        q = polygon.corner(polygon.following(1.0 * k))
        at_p, at_q = inside(p), inside(q)
        p_in, q_in = less(-TINY, at_p), less(-TINY, at_q)
        crosses = logical_not(logical_or(logical_and(p_in, q_in), logical_not(logical_or(p_in, q_in))))
        total = at_p - at_q
        apart = less(TINY * TINY, absolute(total))
        t = clip(divide(at_p, where(apart, total, 1.0)), 0, 1)
        new = _appended(new, p + (q - p) * t, logical_and(crosses, apart))
        return _appended(new, q, q_in), q

    def masked(k: Any, carry: Any) -> Any:
        return cond(less(1.0 * k, polygon.count), lambda *c: side(k, c), lambda *c: c, *carry)

    most = lane_maximum(polygon.count, polygon.capacity)
    return fori_loop(0, most, masked, (no_corners(polygon.capacity), polygon.corner(0.0)))[0]


def _appended(polygon: Polygon, point: np.ndarray, condition: Any) -> Polygon:
    """The polygon, with one more corner where the condition holds and there is room."""
    return cond(
        logical_and(condition, less(polygon.count, polygon.capacity)),
        lambda *part: Polygon(*part).with_corner(point),
        lambda *part: Polygon(*part),
        *polygon,
    )


def _kept_below(polygon: Polygon, highest: Any) -> Polygon:
    """The corners whose w is at most `highest`."""

    def keep(k: Any, kept: Polygon) -> Polygon:
        point = polygon.corner(1.0 * k)
        is_low = logical_and(less(1.0 * k, polygon.count), less_equal(point[2], highest))
        return _appended(kept, point, is_low)

    most = lane_maximum(polygon.count, polygon.capacity)
    return fori_loop(0, most, keep, no_corners(polygon.capacity))


# ---------------------------------------------------------------------------------- what is kept of them


def farthest_two(polygon: Polygon) -> tuple[Any, Any]:
    """The numbers of the two corners with the largest distance."""
    most = lane_maximum(polygon.count, polygon.capacity)

    def pair(i: Any, j: Any, best: Any) -> Any:
        d = polygon.corner(1.0 * j) - polygon.corner(1.0 * i)
        square = d @ d
        is_pair = logical_and(less(1.0 * i, 1.0 * j), less(1.0 * j, polygon.count))
        better = logical_and(is_pair, less(best[0], square))
        return tuple(where(better, x, y) for x, y in zip((square, 1.0 * i, 1.0 * j), best, strict=True))

    def outer(i: Any, best: Any) -> Any:
        return fori_loop(0, most, lambda j, best: pair(i, j, best), best)

    _, first, second = fori_loop(0, most, outer, (0.0, 0.0, 1.0))
    return first, second


def large_quadrilateral(polygon: Polygon, start: Any = 0.0, turns: bool = True) -> tuple[Any, Any, Any, Any]:
    """The numbers of four corners of a convex polygon with more than four, which span a large area.

    From the corners start, start + 1, start + 2, start + 3, the last ones move on as long as the area grows.
    With `turns`, so does the first one, once around.
    """

    def area(a: Any, b: Any, c: Any, d: Any) -> Any:
        p, q = polygon.corner(a) - polygon.corner(c), polygon.corner(b) - polygon.corner(d)
        n = np.array([p[1] * q[2] - p[2] * q[1], p[2] * q[0] - p[0] * q[2], p[0] * q[1] - p[1] * q[0]])
        return sqrt(n @ n)

    def climbed(state: Any, moving: tuple[int, ...]) -> Any:
        """The state with one corner moved on, then the corners before it, while the area grows."""

        def moved(state: Any) -> list[Any]:
            corners = list(state[1:5])
            corners[moving[0]] = polygon.following(corners[moving[0]])
            return corners

        def grows(state: Any) -> Any:
            return less(state[0] * IMPROVEMENT, area(*moved(state)))

        def move(state: Any) -> Any:
            corners = moved(state)
            state = (area(*corners), *corners, *corners)
            for other in moving[1:]:
                state = climbed(state, (other,))
            return state

        return while_loop(grows, move, state)

    def turned(a: Any, state: Any) -> Any:
        """The state with the first corner at a; no two corners coincide afterwards."""
        m, _, b, c, d, *best = climbed((state[0], a, *state[2:]), (3, 2, 1))
        b = where(equal(b, a), polygon.following(b), b)
        c = where(equal(c, b), polygon.following(c), c)
        return (m, a, b, c, where(equal(d, c), polygon.following(d), d), *best)

    def masked(a: Any, state: Any) -> Any:
        return cond(less(1.0 * a, polygon.count), lambda *s: turned(1.0 * a, s), lambda *s: s, *state)

    second = polygon.following(start)
    third = polygon.following(second)
    first_four = (start, second, third, polygon.following(third))
    state = (area(*first_four), *first_four, *first_four)
    if turns:
        state = fori_loop(0, lane_maximum(polygon.count, polygon.capacity), masked, state)
    else:
        state = climbed(state, (3, 2, 1))
    return state[5], state[6], state[7], state[8]
