"""The algorithm of Gilbert, Johnson and Keerthi: the nearest points of two convex shapes by their support
functions.

It descends to the point of the Minkowski difference b - a nearest to the origin, on simplices of four of its
points. Source: IEEE J. Robotics Automation 4 (1988) 193.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from zwang.algebra.norms import TINY, by_precision
from zwang.algebra.rotations import cross
from zwang.collision.convex.support_functions import ConvexShape
from zwang.scalar import (
    clip,
    cond,
    divide,
    equal,
    less,
    less_equal,
    logical_and,
    logical_not,
    logical_or,
    sqrt,
    where,
    while_loop,
)

# in double and in single precision
TOLERANCE = 1e-10, 1e-6  # of a distance, relative to the size of the shapes, before Newton's method
OVERLAP = 1e-9, 1e-3  # distance below which cores count as overlapping, relative to their size
FLAT = 1e-10, 1e-6  # sine of the angle below which the edges of a triangle are parallel
LEVEL = 1e-12, 1e-6  # volume, relative to the lengths of its edges, below which a tetrahedron has none
ITERATIONS = 100  # the limit


class Simplex(NamedTuple):
    """Four points W of the Minkowski difference b - a (some may coincide), the points A of a, and the
    weights of the point nearest to the origin.

    direction (3,), overlap: of the unit vectors along which the search went the one with the least overlap,
    which is negative where it separates the shapes. open: whether the search goes on.
    """

    W: np.ndarray
    A: np.ndarray
    weights: np.ndarray
    nearest: np.ndarray
    direction: np.ndarray
    overlap: Any
    open: Any
    iterations: Any


def inner(a: Any, b: Any) -> Any:
    """Inner product."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def select_array(condition: Any, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Elementwise selection of an array."""
    return np.array([where(condition, p, q) for p, q in zip(x.flat, y.flat, strict=True)]).reshape(x.shape)


def closest_to_origin(
    a: ConvexShape, b: ConvexShape, scale: Any, direction: np.ndarray, reach: Any = None,
    points: tuple[np.ndarray, np.ndarray] | None = None,
) -> Simplex:  # fmt: skip
    """The point of b - a nearest to the origin, by the algorithm of Gilbert, Johnson and Keerthi.

    direction (3,): unit vector in which the search begins, from a to b. reach: distance [m] beyond which the
    nearest point does not matter: the search ends with a direction that separates the shapes by more. points:
    four points of b - a and those of a, (4, 3) each, from which the search begins instead.
    """
    begins_at_point = points is None
    if points is None:
        start = a.support(direction)
        points = np.array([b.support(-direction) - start] * 4), np.array([start] * 4)
        weights = np.array([1, 0, 0, 0]) * 1.0
    else:
        weights = nearest_weights(points[0])
    W, A = points
    nearest = weights @ W
    tolerance, overlapping = (scale * by_precision(nearest[0], *x) for x in (TOLERANCE, OVERLAP))
    state = Simplex(W, A, weights, nearest, direction * 1.0, -inner(direction, nearest), True, 0.0)

    def iterate(s: Simplex) -> Simplex:
        v = s.nearest
        square = inner(v, v)
        length = sqrt(square)
        n = v / where(less(0, length), length, 1.0)
        point = a.support(n)
        w = b.support(-n) - point
        converged = less_equal(square - inner(v, w), tolerance * length)
        new = _with_point(s, w, point, begins_at_point=begins_at_point)
        stagnated = logical_or(converged, less_equal(square, inner(new.nearest, new.nearest)))
        ended = logical_or(stagnated, less_equal(inner(new.nearest, new.nearest), overlapping * overlapping))
        kept = _choose(stagnated, s, new)
        along = -inner(n, w)
        better = logical_and(less(along, s.overlap), less(0, length))
        if reach is not None:
            ended = logical_or(ended, less(along, -reach))
        return kept._replace(
            direction=select_array(better, n, s.direction),
            overlap=where(better, along, s.overlap),
            open=logical_not(ended),
            iterations=s.iterations + 1,
        )

    return while_loop(lambda s: logical_and(s.open, less(s.iterations, ITERATIONS)), iterate, state)


def _choose(condition: Any, one: Simplex, other: Simplex) -> Simplex:
    """One of two simplices."""
    arrays = [select_array(condition, x, y) for x, y in zip(one[:4], other[:4], strict=True)]
    return one._replace(W=arrays[0], A=arrays[1], weights=arrays[2], nearest=arrays[3])


def _with_point(s: Simplex, w: np.ndarray, point: np.ndarray, begins_at_point: bool) -> Simplex:
    """The simplex with a new point last, without that of least weight, and its point nearest to the origin.

    A point of the others alone is not nearer than before. begins_at_point: whether the points of the first
    simplex coincide. The second one is an edge then, and the third a triangle.
    """
    least = [_is_least(s.weights, k) for k in range(4)]
    W, A = (
        np.array([*(select_array(least[k], old[3], old[k]) for k in range(3)), new])
        for new, old in ((w, s.W), (point, s.A))
    )

    def later() -> np.ndarray:
        return nearest_weights(W, PARTS_WITH_LAST)

    def second() -> np.ndarray:
        return cond(equal(s.iterations, 1), lambda: nearest_weights(W, TRIANGLE_WITH_LAST), later)

    def first() -> np.ndarray:
        return cond(equal(s.iterations, 0), lambda: nearest_weights(W, EDGE_WITH_LAST), second)

    weights = first() if begins_at_point else later()
    return s._replace(W=W, A=A, weights=weights, nearest=weights @ W)


def _is_least(weights: np.ndarray, k: int) -> Any:
    """Whether weight k is the first of the least weights."""
    inside_all: Any = True
    for i in range(4):
        if i != k:
            inside_all = logical_and(inside_all, (less if i < k else less_equal)(weights[k], weights[i]))
    return inside_all


PARTS = tuple(chosen for n in (2, 3, 4) for chosen in combinations(range(4), n))
"""The edges, the sides and the whole of a tetrahedron, by their corners."""
PARTS_WITH_LAST = tuple(chosen for chosen in PARTS if 3 in chosen)
EDGE_WITH_LAST = ((0, 3),)  # all parts with the last corner of the second simplex: 0, 1 and 2 coincide
TRIANGLE_WITH_LAST = ((0, 3), (1, 3), (0, 1, 3))  # the same of the third one, where 2 is 0 or 1


def nearest_weights(W: np.ndarray, parts: Sequence[tuple[int, ...]] = PARTS) -> np.ndarray:
    """Weights of the point of a tetrahedron that is nearest to the origin, of those on some of its parts.

    The point lies on an edge, in the interior of a triangle, or is the origin itself.
    """
    first = 0 if (0, 1) in parts else 3  # the last one where all parts contain it
    best, square = np.eye(4)[first], inner(W[first], W[first])
    for chosen in parts:
        weights, valid = (_edge, _triangle, _tetrahedron)[len(chosen) - 2](W, *chosen)
        v = weights @ W
        candidate = inner(v, v)
        iterate = logical_and(valid, less(candidate, square))
        best = select_array(iterate, weights, best)
        square = where(iterate, candidate, square)
    return best


def _edge(W: np.ndarray, i: int, j: int) -> tuple[np.ndarray, Any]:
    """Weights of the point of an edge nearest to the origin, and whether the edge has a length."""
    e = W[j] - W[i]
    square = inner(e, e)
    is_edge = less(TINY * TINY, square)
    t = clip(divide(-inner(W[i], e), where(is_edge, square, 1.0)), 0, 1)
    return np.array([1 - t if k == i else t if k == j else 0 for k in range(4)]), is_edge


def _triangle(W: np.ndarray, i: int, j: int, k: int) -> tuple[np.ndarray, Any]:
    """Weights of the projection of the origin on a triangle, and whether it lies inside; cross products stay
    accurate for thin triangles.
    """
    e, f, o = W[j] - W[i], W[k] - W[i], -W[i]
    n = cross(e, f)
    square = inner(n, n)
    flat = by_precision(square, FLAT[0] * FLAT[0], FLAT[1] * FLAT[1])
    is_triangle = less(flat * (inner(e, e) * inner(f, f)), square)
    square = where(is_triangle, square, 1.0)
    s, t = divide(inner(cross(o, f), n), square), divide(inner(cross(e, o), n), square)
    weights = [1 - s - t if m == i else s if m == j else t if m == k else 0 for m in range(4)]
    return np.array(weights), logical_and(is_triangle, _all_positive(1 - s - t, s, t))


def _tetrahedron(W: np.ndarray, i: int, j: int, k: int, m: int) -> tuple[np.ndarray, Any]:
    """Barycentric coordinates of the origin, and whether it lies inside the tetrahedron."""
    e, f, g = W[j] - W[i], W[k] - W[i], W[m] - W[i]
    fg, ge, ef = cross(f, g), cross(g, e), cross(e, f)
    volume = inner(e, fg)
    is_tetrahedron = less(
        by_precision(volume, *LEVEL) * sqrt(inner(e, e) * inner(f, f) * inner(g, g)),
        where(less(volume, 0), -volume, volume),
    )
    volume = where(is_tetrahedron, volume, 1.0)
    r, s, t = (divide(-inner(W[i], n), volume) for n in (fg, ge, ef))
    return np.array([1 - r - s - t, r, s, t]), logical_and(
        is_tetrahedron, _all_positive(1 - r - s - t, r, s, t)
    )


def _all_positive(*weights: Any) -> Any:
    """Whether no weight is negative."""
    inside_all: Any = True
    for weight in weights:
        inside_all = logical_and(inside_all, less_equal(0, weight))
    return inside_all
