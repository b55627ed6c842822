"""The gap of two convex shapes by their support functions, for pairs without a closed form.

Apart, by the descent of Gilbert, Johnson and Keerthi (1988) to the point of the difference b - a that is nearest to
the origin. Overlapping, one shape is moved out along a direction until they come apart; the direction in which they
then lie nearest is a better one to move along, and where the two are the same the way out is shortest.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from zwang.collision.contact_point import TINY, ContactPoint, contact_frame, unit
from zwang.collision.shapes import PlacedShape
from zwang.collision.support_functions import ConvexShape, convex_shape_of
from zwang.scalar import (
    clip,
    cond,
    divide,
    for_each,
    less,
    less_equal,
    logical_and,
    logical_not,
    logical_or,
    sqrt,
    where,
    while_loop,
)

TOLERANCE = 1e-12  # of a distance, relative to the size of the shapes
APART = 1e-3  # how far shapes are moved apart beyond touching, relative to their size
OVERLAP = 1e-9  # distance under which cores count as overlapping, relative to their size
MOST_STEPS = 100
MOST_WAYS = 50


class Simplex(NamedTuple):
    """Four points of the difference b - a (some perhaps the same), those of a, and weights of the point nearest to 0."""

    W: np.ndarray
    A: np.ndarray
    weights: np.ndarray
    nearest: np.ndarray
    open: Any
    steps: Any


class Nearest(NamedTuple):
    """Signed distance of two shapes, the unit direction from the first to the second, and their nearest points."""

    distance: Any
    normal: np.ndarray
    first: np.ndarray
    second: np.ndarray


def convex_contact(kind_a: str, kind_b: str, a: PlacedShape, b: PlacedShape) -> ContactPoint:
    """The gap of two convex shapes."""
    found = nearest_points(convex_shape_of(kind_a, a), convex_shape_of(kind_b, b))
    return ContactPoint(found.distance, (found.first + found.second) / 2, contact_frame(found.normal))


def nearest_points(a: ConvexShape, b: ConvexShape) -> Nearest:
    """The nearest points of two shapes, or those that are deepest in the other."""
    scale = a.size + b.size
    simplex = closest_to_origin(a, b, scale)
    length = sqrt(_dot(simplex.nearest, simplex.nearest))

    def apart(*numbers: Any) -> tuple[Any, ...]:
        first = simplex.weights @ simplex.A
        return (*unit(simplex.nearest)[0], *first, *(first + simplex.nearest))

    def overlapping(*numbers: Any) -> tuple[Any, ...]:
        return penetration_of(a, b, scale)

    numbers = cond(less(OVERLAP * scale, length), apart, overlapping, length)
    n, first, second = (np.array(numbers[k : k + 3]) for k in (0, 3, 6))
    distance = (second - first) @ n - a.radius - b.radius
    return Nearest(distance, n, first + n * a.radius, second - n * b.radius)


def _dot(a: Any, b: Any) -> Any:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


# ---------------------------------------------------------------------------------------------- apart


def closest_to_origin(a: ConvexShape, b: ConvexShape, scale: Any) -> Simplex:
    """The point of b - a nearest to the origin."""
    direction = unit(b.centre - a.centre)[0]
    start = a.support(direction)
    w = b.support(-direction) - start
    one = np.array([1, 0, 0, 0]) * 1.0
    state = Simplex(np.array([w] * 4), np.array([start] * 4), one, w, True, 0.0)

    def better(s: Simplex) -> Simplex:
        v = s.nearest
        point = a.support(v)
        w = b.support(-v) - point
        square = _dot(v, v)
        arrived = less_equal(square - _dot(v, w), TOLERANCE * scale * sqrt(square))
        new = _with_point(s, w, point)
        stuck = logical_or(arrived, less_equal(square, _dot(new.nearest, new.nearest)))
        inside = less_equal(_dot(new.nearest, new.nearest), (OVERLAP * scale) * (OVERLAP * scale))
        kept = _choose(stuck, s, new)
        return kept._replace(open=logical_not(logical_or(stuck, inside)), steps=s.steps + 1)

    return while_loop(lambda s: logical_and(s.open, less(s.steps, MOST_STEPS)), better, state)


def _choose(condition: Any, one: Simplex, other: Simplex) -> Simplex:
    arrays = [_where(condition, x, y) for x, y in zip(one[:4], other[:4], strict=True)]
    return Simplex(arrays[0], arrays[1], arrays[2], arrays[3], one.open, one.steps)


def _where(condition: Any, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.array([where(condition, p, q) for p, q in zip(x.flat, y.flat, strict=True)]).reshape(x.shape)


def _with_point(s: Simplex, w: np.ndarray, point: np.ndarray) -> Simplex:
    """The simplex with a new point instead of the one of least weight, and its point nearest to the origin."""
    least = [_is_least(s.weights, k) for k in range(4)]
    W = np.array([[where(least[k], new, old) for new, old in zip(w, s.W[k], strict=True)] for k in range(4)])
    A = np.array(
        [[where(least[k], new, old) for new, old in zip(point, s.A[k], strict=True)] for k in range(4)]
    )
    weights = _nearest_weights(W)
    return Simplex(W, A, weights, weights @ W, s.open, s.steps)


def _is_least(weights: np.ndarray, k: int) -> Any:
    """Is this the first of the least weights?"""
    found: Any = True
    for i in range(4):
        if i != k:
            found = logical_and(found, (less if i < k else less_equal)(weights[k], weights[i]))
    return found


def _nearest_weights(W: np.ndarray) -> np.ndarray:
    """The weights of the point of a tetrahedron that is nearest to the origin.

    It lies on an edge (with its ends), within a triangle, or is the origin itself.
    """
    best, square = np.array([1, 0, 0, 0]) * 1.0, _dot(W[0], W[0])
    sides = [_edge(W, i, j) for i, j in combinations(range(4), 2)]
    sides += [_triangle(W, *chosen) for chosen in combinations(range(4), 3)]
    for weights, valid in [*sides, _tetrahedron(W)]:
        v = weights @ W
        candidate = _dot(v, v)
        better = logical_and(valid, less(candidate, square))
        best = _where(better, weights, best)
        square = where(better, candidate, square)
    return best


def _edge(W: np.ndarray, i: int, j: int) -> tuple[np.ndarray, Any]:
    e = W[j] - W[i]
    square = _dot(e, e)
    long = less(TINY * TINY, square)
    t = clip(divide(-_dot(W[i], e), where(long, square, 1.0)), 0, 1)
    return np.array([1 - t if k == i else t if k == j else 0 for k in range(4)]), long


def _triangle(W: np.ndarray, i: int, j: int, k: int) -> tuple[np.ndarray, Any]:
    """By areas: products of vectors lose no digits where the triangle is thin."""
    e, f, o = W[j] - W[i], W[k] - W[i], -W[i]
    n = np.cross(e, f)
    square = _dot(n, n)
    wide = less(1e-20 * (_dot(e, e) * _dot(f, f)), square)
    square = where(wide, square, 1.0)
    s, t = divide(_dot(np.cross(o, f), n), square), divide(_dot(np.cross(e, o), n), square)
    weights = [1 - s - t if m == i else s if m == j else t if m == k else 0 for m in range(4)]
    return np.array(weights), logical_and(wide, _all_positive(1 - s - t, s, t))


def _tetrahedron(W: np.ndarray) -> tuple[np.ndarray, Any]:
    e, f, g = W[1] - W[0], W[2] - W[0], W[3] - W[0]
    fg, ge, ef = np.cross(f, g), np.cross(g, e), np.cross(e, f)
    volume = _dot(e, fg)
    thick = less(1e-12 * sqrt(_dot(e, e) * _dot(f, f) * _dot(g, g)), where(less(volume, 0), -volume, volume))
    volume = where(thick, volume, 1.0)
    r, s, t = (divide(-_dot(W[0], n), volume) for n in (fg, ge, ef))
    return np.array([1 - r - s - t, r, s, t]), logical_and(thick, _all_positive(1 - r - s - t, r, s, t))


def _all_positive(*weights: Any) -> Any:
    found: Any = True
    for weight in weights:
        found = logical_and(found, less_equal(0, weight))
    return found


# ---------------------------------------------------------------------------------------------- overlapping


def penetration_of(a: ConvexShape, b: ConvexShape, scale: Any) -> tuple[Any, ...]:
    """Direction, and points of a and b, of the shortest way (or one that nothing near betters) to take them apart."""
    n, depth = _first_way(a, b)
    zero = np.zeros(3) * 1.0
    state = (n, depth, zero, zero, True, 0.0)

    def better(state: Any) -> Any:
        n, depth, first, second, _, ways = state
        shift = n * (depth + APART * scale)
        simplex = closest_to_origin(a, b.moved(shift), scale)
        new = unit(simplex.nearest)[0]
        point = simplex.weights @ simplex.A
        shorter = _overlap(a, b, new)
        accepted = less_equal(shorter, depth + TOLERANCE * scale)
        more = less(shorter, depth * (1 - 1e-13) - TOLERANCE * scale)
        return (
            _where(accepted, new, n), where(accepted, shorter, depth), _where(accepted, point, first),
            _where(accepted, point + simplex.nearest - shift, second), more, ways + 1,
        )  # fmt: skip

    n, depth, first, second, *_ = while_loop(
        lambda state: logical_and(state[4], less(state[5], MOST_WAYS)), better, state
    )
    # the second point is where the way out of that length along n leads from the first
    middle = (first + second) / 2
    middle = middle - n * (_dot(n, middle) - (_dot(n, a.support(n)) + _dot(n, b.support(-n))) / 2)
    return (*n, *(middle + n * (depth / 2)), *(middle - n * (depth / 2)))


def _overlap(a: ConvexShape, b: ConvexShape, n: np.ndarray) -> Any:
    """How far b must go along n to leave a."""
    return _dot(n, a.support(n) - b.support(-n))


def _first_way(a: ConvexShape, b: ConvexShape) -> tuple[np.ndarray, Any]:
    """The shortest way out along the sides of the shapes, across two of them, or between centres.

    Of meshes along their faces too, and along even directions: their edges may cross anyhow. In a deep overlap of
    meshes (over about a tenth of their size) another way may still be shorter.
    """
    n = unit(b.centre - a.centre)[0]
    depth = _overlap(a, b, n)
    ways = [sides[:, k] for sides in (a.sides, b.sides) for k in range(3)]
    ways += [unit(np.cross(a.sides[:, i], b.sides[:, j]), n)[0] for i in range(3) for j in range(3)]

    def shorter(way: np.ndarray, best: Any) -> Any:
        n, depth = best
        new = _overlap(a, b, way)
        better = less(new, depth)
        return _where(better, way * 1.0, n), where(better, new, depth)

    best = n, depth
    for way in (*ways, *(-way for way in ways)):
        best = shorter(way, best)
    for shape, sign in ((a, 1), (b, -1)):
        if len(shape.faces):
            best = for_each(
                shape.faces, lambda row, best, R=shape.sides, s=sign: shorter(s * (R @ row), best), best
            )
    if len(a.faces) or len(b.faces):
        best = for_each(_EVEN, shorter, best)
    return best


def _evenly(count: int) -> np.ndarray:
    """Unit vectors (count, 3) spread evenly: a spiral by the golden angle."""
    z = 1 - (2 * np.arange(count) + 1) / count
    turn = np.arange(count) * np.pi * (3 - 5**0.5)
    return np.stack([np.sqrt(1 - z * z) * np.cos(turn), np.sqrt(1 - z * z) * np.sin(turn), z], axis=1)


_EVEN = _evenly(64)
