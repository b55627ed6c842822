"""Contact point of two convex shapes by their support functions, for pairs without a closed form.

The distance of separate shapes is found by the algorithm of Gilbert, Johnson and Keerthi (IEEE J. Robotics
Automation 4 (1988) 193), which descends to the point of the Minkowski difference b - a nearest to the
origin. Overlapping shapes are moved apart along a direction; the direction of their nearest points is then a
better one. At a fixed point of this iteration the penetration depth has a local minimum.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from zwang.algebra.rotations import cross
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
SEPARATION = 1e-3  # distance to which overlapping shapes are moved apart, relative to their size
OVERLAP = 1e-9  # distance below which cores count as overlapping, relative to their size
ITERATIONS = 100  # of the GJK algorithm
PENETRATION_ITERATIONS = 50


class Simplex(NamedTuple):
    """Four points W of the Minkowski difference b - a (some may coincide), the points A of a, and the
    weights of the point nearest to the origin.
    """

    W: np.ndarray
    A: np.ndarray
    weights: np.ndarray
    nearest: np.ndarray
    open: Any
    iterations: Any


class Nearest(NamedTuple):
    """Signed distance of two shapes, the unit normal from the first to the second, and their nearest
    points.
    """

    distance: Any
    normal: np.ndarray
    first: np.ndarray
    second: np.ndarray


def convex_contact(kind_a: str, kind_b: str, a: PlacedShape, b: PlacedShape) -> ContactPoint:
    """The contact point of two convex shapes."""
    found = nearest_points(convex_shape_of(kind_a, a), convex_shape_of(kind_b, b))
    return ContactPoint(found.distance, (found.first + found.second) / 2, contact_frame(found.normal))


def nearest_points(a: ConvexShape, b: ConvexShape) -> Nearest:
    """The nearest points of two shapes, or the points of deepest penetration."""
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
    """Inner product."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


# ---------------------------------------------------------------------------------------------- apart


def closest_to_origin(a: ConvexShape, b: ConvexShape, scale: Any) -> Simplex:
    """The point of b - a nearest to the origin, by the algorithm of Gilbert, Johnson and Keerthi."""
    direction = unit(b.centre - a.centre)[0]
    start = a.support(direction)
    w = b.support(-direction) - start
    one = np.array([1, 0, 0, 0]) * 1.0
    state = Simplex(np.array([w] * 4), np.array([start] * 4), one, w, True, 0.0)

    def iterate(s: Simplex) -> Simplex:
        v = s.nearest
        point = a.support(v)
        w = b.support(-v) - point
        square = _dot(v, v)
        converged = less_equal(square - _dot(v, w), TOLERANCE * scale * sqrt(square))
        new = _with_point(s, w, point)
        stagnated = logical_or(converged, less_equal(square, _dot(new.nearest, new.nearest)))
        inside = less_equal(_dot(new.nearest, new.nearest), (OVERLAP * scale) * (OVERLAP * scale))
        kept = _choose(stagnated, s, new)
        return kept._replace(open=logical_not(logical_or(stagnated, inside)), iterations=s.iterations + 1)

    return while_loop(lambda s: logical_and(s.open, less(s.iterations, ITERATIONS)), iterate, state)


def _choose(condition: Any, one: Simplex, other: Simplex) -> Simplex:
    """One of two simplices."""
    arrays = [_where(condition, x, y) for x, y in zip(one[:4], other[:4], strict=True)]
    return Simplex(arrays[0], arrays[1], arrays[2], arrays[3], one.open, one.iterations)


def _where(condition: Any, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Elementwise selection of an array."""
    return np.array([where(condition, p, q) for p, q in zip(x.flat, y.flat, strict=True)]).reshape(x.shape)


def _with_point(s: Simplex, w: np.ndarray, point: np.ndarray) -> Simplex:
    """The simplex with a new point in place of the one of least weight, and its point nearest to the
    origin.
    """
    least = [_is_least(s.weights, k) for k in range(4)]
    W = np.array([[where(least[k], new, old) for new, old in zip(w, s.W[k], strict=True)] for k in range(4)])
    A = np.array(
        [[where(least[k], new, old) for new, old in zip(point, s.A[k], strict=True)] for k in range(4)]
    )
    weights = _nearest_weights(W)
    return Simplex(W, A, weights, weights @ W, s.open, s.iterations)


def _is_least(weights: np.ndarray, k: int) -> Any:
    """Whether weight k is the first of the least weights."""
    inside_all: Any = True
    for i in range(4):
        if i != k:
            inside_all = logical_and(inside_all, (less if i < k else less_equal)(weights[k], weights[i]))
    return inside_all


def _nearest_weights(W: np.ndarray) -> np.ndarray:
    """Weights of the point of a tetrahedron that is nearest to the origin.

    The point lies on an edge, in the interior of a triangle, or is the origin itself.
    """
    best, square = np.array([1, 0, 0, 0]) * 1.0, _dot(W[0], W[0])
    sides = [_edge(W, i, j) for i, j in combinations(range(4), 2)]
    sides += [_triangle(W, *chosen) for chosen in combinations(range(4), 3)]
    for weights, valid in [*sides, _tetrahedron(W)]:
        v = weights @ W
        candidate = _dot(v, v)
        iterate = logical_and(valid, less(candidate, square))
        best = _where(iterate, weights, best)
        square = where(iterate, candidate, square)
    return best


def _edge(W: np.ndarray, i: int, j: int) -> tuple[np.ndarray, Any]:
    """Weights of the point of an edge nearest to the origin, and whether the edge has a length."""
    e = W[j] - W[i]
    square = _dot(e, e)
    is_edge = less(TINY * TINY, square)
    t = clip(divide(-_dot(W[i], e), where(is_edge, square, 1.0)), 0, 1)
    return np.array([1 - t if k == i else t if k == j else 0 for k in range(4)]), is_edge


def _triangle(W: np.ndarray, i: int, j: int, k: int) -> tuple[np.ndarray, Any]:
    """Weights of the projection of the origin on a triangle, and whether it lies inside; cross products stay
    accurate for thin triangles.
    """
    e, f, o = W[j] - W[i], W[k] - W[i], -W[i]
    n = cross(e, f)
    square = _dot(n, n)
    is_triangle = less(1e-20 * (_dot(e, e) * _dot(f, f)), square)
    square = where(is_triangle, square, 1.0)
    s, t = divide(_dot(cross(o, f), n), square), divide(_dot(cross(e, o), n), square)
    weights = [1 - s - t if m == i else s if m == j else t if m == k else 0 for m in range(4)]
    return np.array(weights), logical_and(is_triangle, _all_positive(1 - s - t, s, t))


def _tetrahedron(W: np.ndarray) -> tuple[np.ndarray, Any]:
    """Barycentric coordinates of the origin, and whether it lies inside the tetrahedron."""
    e, f, g = W[1] - W[0], W[2] - W[0], W[3] - W[0]
    fg, ge, ef = cross(f, g), cross(g, e), cross(e, f)
    volume = _dot(e, fg)
    is_tetrahedron = less(
        1e-12 * sqrt(_dot(e, e) * _dot(f, f) * _dot(g, g)), where(less(volume, 0), -volume, volume)
    )
    volume = where(is_tetrahedron, volume, 1.0)
    r, s, t = (divide(-_dot(W[0], n), volume) for n in (fg, ge, ef))
    return np.array([1 - r - s - t, r, s, t]), logical_and(
        is_tetrahedron, _all_positive(1 - r - s - t, r, s, t)
    )


def _all_positive(*weights: Any) -> Any:
    """Whether no weight is negative."""
    inside_all: Any = True
    for weight in weights:
        inside_all = logical_and(inside_all, less_equal(0, weight))
    return inside_all


# ---------------------------------------------------------------------------------------------- overlapping


def penetration_of(a: ConvexShape, b: ConvexShape, scale: Any) -> tuple[Any, ...]:
    """Normal of least penetration (a local minimum), and the points of a and b on it."""
    n, depth = _initial_direction(a, b)
    zero = np.zeros(3) * 1.0
    state = (n, depth, zero, zero, True, 0.0)

    def iterate(state: Any) -> Any:
        n, depth, first, second, _, directions = state
        shift = n * (depth + SEPARATION * scale)
        simplex = closest_to_origin(a, b.moved(shift), scale)
        new = unit(simplex.nearest)[0]
        point = simplex.weights @ simplex.A
        shorter = _overlap(a, b, new)
        accepted = less_equal(shorter, depth + TOLERANCE * scale)
        more = less(shorter, depth * (1 - 1e-13) - TOLERANCE * scale)
        return (
            _where(accepted, new, n),
            where(accepted, shorter, depth),
            _where(accepted, point, first),
            _where(accepted, point + simplex.nearest - shift, second),
            more,
            directions + 1,
        )

    n, depth, first, second, *_ = while_loop(
        lambda state: logical_and(state[4], less(state[5], PENETRATION_ITERATIONS)), iterate, state
    )
    # the midpoint of both points, in the middle of the overlap along n
    middle = (first + second) / 2
    middle = middle - n * (_dot(n, middle) - (_dot(n, a.support(n)) + _dot(n, b.support(-n))) / 2)
    return (*n, *(middle + n * (depth / 2)), *(middle - n * (depth / 2)))


def _overlap(a: ConvexShape, b: ConvexShape, n: np.ndarray) -> Any:
    """The displacement of b along n that separates it from a."""
    return _dot(n, a.support(n) - b.support(-n))


def _initial_direction(a: ConvexShape, b: ConvexShape) -> tuple[np.ndarray, Any]:
    """Direction of least overlap among the axes of the shapes, their cross products, and the line of the
    centres.

    For meshes the face normals and uniformly distributed directions are tested too. In a deep overlap of
    meshes (over about a tenth of their size) another direction may have less overlap.
    """
    n = unit(b.centre - a.centre)[0]
    depth = _overlap(a, b, n)
    directions = [sides[:, k] for sides in (a.sides, b.sides) for k in range(3)]
    directions += [unit(cross(a.sides[:, i], b.sides[:, j]), n)[0] for i in range(3) for j in range(3)]

    def shorter(direction: np.ndarray, best: Any) -> Any:
        n, depth = best
        new = _overlap(a, b, direction)
        iterate = less(new, depth)
        return _where(iterate, direction * 1.0, n), where(iterate, new, depth)

    best = n, depth
    for direction in (*directions, *(-direction for direction in directions)):
        best = shorter(direction, best)
    for shape, sign in ((a, 1), (b, -1)):
        if len(shape.faces):
            best = for_each(
                shape.faces, lambda row, best, R=shape.sides, s=sign: shorter(s * (R @ row), best), best
            )
    if len(a.faces) or len(b.faces):
        best = for_each(_SPHERE_DIRECTIONS, shorter, best)
    return best


def _sphere_directions(count: int) -> np.ndarray:
    """Uniformly distributed unit vectors (count, 3), on a golden-angle spiral."""
    z = 1 - (2 * np.arange(count) + 1) / count
    angle = np.arange(count) * np.pi * (3 - 5**0.5)
    return np.stack([np.sqrt(1 - z * z) * np.cos(angle), np.sqrt(1 - z * z) * np.sin(angle), z], axis=1)


_SPHERE_DIRECTIONS = _sphere_directions(64)
