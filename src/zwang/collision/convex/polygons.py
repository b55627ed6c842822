"""Convex polygons on any scalar: clipping, and the corners that are kept as contact points.

The corners are points (u, v, w) in the axes of a face: u and v in its plane, w the height above it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from zwang.algebra.norms import TINY, by_precision
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
    minimum,
    sqrt,
    where,
    while_loop,
)

IMPROVEMENT = 1e-9, 2e-6  # of an area, relative, below which one choice of corners is as good as another
ON_LINE = TINY, 1e-7  # [m] beyond an edge, up to which a corner counts as on it; double and single precision


class Polygon(NamedTuple):
    """A polygon: the first `count` corners in an array (3 capacity + 6,), which may be read a little beyond
    them.
    """

    corners: MutableArray
    count: Any

    @property
    def capacity(self) -> int:
        """The largest number of corners."""
        return self.corners.shape[0] // 3 - 2

    @property
    def bound(self) -> Any:
        """An upper bound of the number of corners, the same in all lanes, for loops."""
        return lane_maximum(self.count, self.capacity)

    def corner(self, k: Any) -> np.ndarray:
        """Corner k, an index that is the same in all lanes."""
        return np.array([self.corners[3 * k + c] for c in range(3)])

    def next_corner(self, k: Any) -> np.ndarray:
        """The corner after corner k."""
        is_last = less_equal(self.count, 1.0 * k + 1)
        return np.array(
            [where(is_last, x, y) for x, y in zip(self.corner(0), self.corner(k + 1), strict=True)]
        )

    def gathered(self, k: Any) -> np.ndarray:
        """Corner k, a whole number that may differ between lanes."""
        return np.array([self.corners.gather(3 * k + c) for c in range(3)])

    def following(self, k: Any) -> Any:
        """The number of the corner after corner k."""
        return where(less(k + 1, self.count), k + 1, 0.0)

    def with_corner(self, point: Any, condition: Any) -> Polygon:
        """The polygon, with one more corner where the condition holds and there is room; this one must not
        be used any more.
        """

        def append(corners: MutableArray, count: Any) -> tuple[MutableArray, Any]:
            for c, value in enumerate(point):
                corners = corners.scatter(3 * count + c, value)
            return corners, count + 1

        has_room = logical_and(condition, less(self.count, self.capacity))
        return Polygon(*cond(has_room, append, lambda *same: same, self.corners, self.count))


def no_corners(capacity: int) -> Polygon:
    """A polygon with room for corners."""
    return Polygon(empty(3 * capacity + 6), 0.0)


def clipped_polygon(subject: Polygon, clip_polygon: Polygon, highest: Any) -> Polygon:
    """The part of a polygon, or of a segment, over a clockwise convex polygon, where w is at most `highest`.

    The subject has room for the corners of both. Each edge of the clip polygon cuts off what is beyond it.
    Source: Sutherland, Hodgman, Communications of the ACM 17 (1974) 32.
    """

    def by_edge(e: Any, carry: Any) -> Any:
        start, end = clip_polygon.corner(e), clip_polygon.next_corner(e)
        is_edge = less(1.0 * e, clip_polygon.count)
        return cond(is_edge, lambda p, first, free: _cut(p, first, free, start, end), unchanged, *carry)

    carry = subject, 0.0, no_corners(subject.capacity).corners
    polygon, first, free = fori_loop(0, clip_polygon.bound, by_edge, carry)
    return _kept_below(polygon, first, free, highest)


def _cut(
    polygon: Polygon, first: Any, free: MutableArray, start: np.ndarray, end: np.ndarray
) -> tuple[Polygon, Any, MutableArray]:
    """The part of a polygon to the right of the line from start to end, the number of its first corner, and
    an array of the same size.

    first: the number of the polygon's first corner. The corners of the part are in the order of the sides, of
    which the one that begins at this corner comes first; each side gives where it crosses the line, and its
    end. So a polygon that is not cut begins at its next corner. The choice of contact points depends on the
    first corner, which is MuJoCo's.
    """
    across = np.array([end[1] - start[1], start[0] - end[0]])
    length = sqrt(across @ across)
    across = across / where(less(TINY, length), length, 1.0)
    slack = by_precision(length, *ON_LINE)

    def inside(point: np.ndarray) -> Any:
        """Distance from the line, positive to the right."""
        return (point[:2] - start[:2]) @ across

    def least(k: Any, distance: Any) -> Any:
        return where(less(1.0 * k, polygon.count), minimum(distance, inside(polygon.corner(k))), distance)

    def side(k: Any, new: Polygon, p: np.ndarray, at_p: Any, new_first: Any) -> Any:
        new_first = where(equal(1.0 * k, first), new.count, new_first)
        q = polygon.next_corner(k)
        at_q = inside(q)
        p_in, q_in = less(-slack, at_p), less(-slack, at_q)
        crosses = logical_or(logical_and(p_in, logical_not(q_in)), logical_and(q_in, logical_not(p_in)))
        apart = less(TINY * TINY, absolute(at_p - at_q))
        t = clip(divide(at_p, where(apart, at_p - at_q, 1.0)), 0, 1)
        new = new.with_corner(p + (q - p) * t, logical_and(crosses, apart))
        return new.with_corner(q, q_in), q, at_q, new_first

    def cut(polygon: Polygon, first: Any, free: MutableArray) -> tuple[Polygon, Any, MutableArray]:
        def masked(k: Any, carry: Any) -> Any:
            return cond(less(1.0 * k, polygon.count), lambda *c: side(k, *c), unchanged, *carry)

        p = polygon.corner(0)
        new, _, _, first = fori_loop(0, polygon.bound, masked, (Polygon(free, 0.0), p, inside(p), 0.0))
        return _copied(new, polygon.corners), where(less(first, new.count), first, 0.0), new.corners

    def whole(polygon: Polygon, first: Any, free: MutableArray) -> tuple[Polygon, Any, MutableArray]:
        return polygon, polygon.following(first), free

    # most edges of a face with many corners leave the polygon whole
    distance = fori_loop(0, polygon.bound, least, np.inf)
    return cond(less(-slack, distance), whole, cut, polygon, first, free)


def _copied(polygon: Polygon, array: MutableArray) -> Polygon:
    """The polygon in another array of the same size."""

    def copy(k: Any, array: MutableArray) -> MutableArray:
        for c in range(3):
            array = array.set(3 * k + c, polygon.corners[3 * k + c])
        return array

    return Polygon(fori_loop(0, polygon.bound, copy, array), polygon.count)


def unchanged(*carry: Any) -> Any:
    """The carry as it is, as the other branch of `cond`."""
    return carry


def _kept_below(polygon: Polygon, first: Any, free: MutableArray, highest: Any) -> Polygon:
    """The corners whose w is at most `highest`, from the first one on, in the free array."""

    def keep(k: Any, carry: tuple[Polygon, Any]) -> tuple[Polygon, Any]:
        kept, number = carry
        point = polygon.gathered(number)
        is_low = logical_and(less(1.0 * k, polygon.count), less_equal(point[2], highest))
        return kept.with_corner(point, is_low), polygon.following(number)

    return fori_loop(0, polygon.bound, keep, (Polygon(free, 0.0), first))[0]


# ---------------------------------------------------------------------------------- what is kept of them


def farthest_two(polygon: Polygon) -> tuple[Any, Any]:
    """The numbers of the two corners with the largest distance."""

    def pair(i: Any, j: Any, best: Any) -> Any:
        d = polygon.corner(j) - polygon.corner(i)
        square = d @ d
        is_pair = logical_and(less(1.0 * i, 1.0 * j), less(1.0 * j, polygon.count))
        better = logical_and(is_pair, less(best[0], square))
        return tuple(where(better, x, y) for x, y in zip((square, 1.0 * i, 1.0 * j), best, strict=True))

    def outer(i: Any, best: Any) -> Any:
        return fori_loop(0, polygon.bound, lambda j, best: pair(i, j, best), best)

    _, first, second = fori_loop(0, polygon.bound, outer, (0.0, 0.0, 1.0))
    return first, second


def large_quadrilateral(polygon: Polygon, start: Any = 0.0, turns: bool = True) -> tuple[Any, Any, Any, Any]:
    """The numbers of four corners of a convex polygon with more than four, which span a large area.

    From the corners start, start + 1, start + 2, start + 3, the last ones move on as long as the area grows.
    With `turns`, so does the first one, once around.
    """

    def area(a: Any, b: Any, c: Any, d: Any) -> Any:
        p = polygon.gathered(a) - polygon.gathered(c)
        q = polygon.gathered(b) - polygon.gathered(d)
        n = np.array([p[1] * q[2] - p[2] * q[1], p[2] * q[0] - p[0] * q[2], p[0] * q[1] - p[1] * q[0]])
        return sqrt(n @ n)

    def climbed(state: Any, moving: tuple[int, ...]) -> Any:
        """The state with one corner moved on, then the corners before it, while the area grows."""

        def moved(state: Any) -> list[Any]:
            corners = list(state[1:5])
            corners[moving[0]] = polygon.following(corners[moving[0]])
            return corners

        def grows(state: Any) -> Any:
            return less(state[0] * enough, area(*moved(state)))

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

    enough = 1 + by_precision(polygon.corners[0], *IMPROVEMENT)
    second = polygon.following(start)
    third = polygon.following(second)
    first_four = (start, second, third, polygon.following(third))
    state = (area(*first_four), *first_four, *first_four)
    if turns:
        state = fori_loop(0, polygon.bound, masked, state)
    else:
        state = climbed(state, (3, 2, 1))
    return state[5], state[6], state[7], state[8]
