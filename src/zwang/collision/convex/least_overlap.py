"""Directions along which two convex shapes overlap least, by a search that takes only support functions.

The overlap along a unit vector n is the displacement of the second shape along n that separates it from the
first. Its least value over all n is the penetration depth. It may have several local minima.
"""

from __future__ import annotations

from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from zwang.algebra.rotations import cross
from zwang.collision.contact_point import unit
from zwang.collision.convex.gjk import inner, select_array
from zwang.collision.convex.support_functions import PRISM_EDGES, ConvexShape, prism_normals
from zwang.scalar import cond, empty, for_each, fori_loop, less, maximum, where

TURNS = (2.0, 4.0, 10.0, 25.0, 60.0, 150.0)  # multiples of a turn that are tried, where it converges slowly
SHALLOW = 1e-2  # overlap, relative to the size of the shapes, up to which a local minimum suffices
KEPT = 4  # points of the Minkowski difference that stay while directions are tried


class OverlapDirection(NamedTuple):
    """A unit vector (3,), the overlap along it [m], and points (8, 3) of the Minkowski difference a - b.

    A point w bounds the overlap along every n from below, as it is at least n w. So directions along which
    the overlap cannot be less are not tried. points: first `KEPT` that stay, then those of the last
    directions.
    """

    normal: np.ndarray
    overlap: Any
    points: np.ndarray

    def with_kept_points(self, points: np.ndarray) -> OverlapDirection:
        """The same direction with other points that stay."""
        return self._replace(points=np.array([*points, *self.points[KEPT:]]))


def farthest_difference(a: ConvexShape, b: ConvexShape, n: np.ndarray) -> np.ndarray:
    """The point of a - b that is farthest along n (3,)."""
    return a.support(n) - b.support(-n)


def better(a: ConvexShape, b: ConvexShape, n: np.ndarray, best: OverlapDirection) -> OverlapDirection:
    """The direction n, or the best one so far."""

    def compared(best: OverlapDirection) -> OverlapDirection:
        w = farthest_difference(a, b, n)
        new = inner(n, w)
        shorter = less(new, best.overlap)
        points = [*best.points[:KEPT], w, *best.points[KEPT:-1]]
        normal = select_array(shorter, n * 1.0, best.normal)
        return OverlapDirection(normal, where(shorter, new, best.overlap), np.array(points))

    def bound(points: np.ndarray) -> Any:
        return reduce(maximum, [inner(n, w) for w in points])

    # mostly the points that stay suffice to exclude the direction
    first = bound(best.points[:KEPT])
    least = cond(
        less(first, best.overlap), lambda x: maximum(x, bound(best.points[KEPT:])), lambda x: x, first
    )
    return cond(less(least, best.overlap), compared, lambda best: best, best)


def direction_along_turn(
    a: ConvexShape, b: ConvexShape, old: np.ndarray, new: np.ndarray, points: np.ndarray
) -> OverlapDirection:
    """The direction of least overlap among `new` and multiples of the turn from `old` to it; points: see
    `OverlapDirection`.

    An iteration with slow linear convergence turns always in nearly the same direction.
    """
    turn = new - old
    return for_each(
        [(x,) for x in TURNS],
        lambda row, best: better(a, b, unit(old + row[0] * turn)[0], best),
        OverlapDirection(new * 1.0, inner(new, farthest_difference(a, b, new)), points),
        unroll=False,
    )


def initial_direction(a: ConvexShape, b: ConvexShape, first: OverlapDirection) -> OverlapDirection:
    """The direction of least overlap among `first`, the axes of the shapes, their cross products, the face
    normals of meshes and the line of the centres.
    """
    n = unit(b.centre - a.centre)[0]
    best = better(a, b, n, first._replace(normal=first.normal * 1.0))
    directions = [*a.sides.T, *b.sides.T]
    directions += [unit(cross(x, y), n)[0] for x in a.sides.T for y in b.sides.T]
    for shape, other in ((a, b), (b, a)):
        directions += _prism_directions(shape, other, n) if shape.kind == "prism" else []
    directions = [x for direction in directions for x in (direction, -direction)]
    stored = empty((len(directions), 3))
    for (k, c), x in np.ndenumerate(np.array(directions)):
        stored = stored.set((k, c), x)
    best = fori_loop(
        0,
        len(directions),
        lambda k, best: better(a, b, np.array([stored[k, c] for c in range(3)]), best),
        best,
        unroll=False,
    )

    def with_face_normals(own: ConvexShape, best: OverlapDirection, sign: int) -> OverlapDirection:
        if own.faces is None:
            return best
        normals, begin, end = own.faces

        def compare(k: Any, best: OverlapDirection) -> OverlapDirection:
            return better(a, b, sign * (own.sides @ normals[k]), best)

        return fori_loop(begin, end, compare, best)

    best = a.by_kind(with_face_normals, best, 1)
    return b.by_kind(with_face_normals, best, -1)


def _prism_directions(prism: ConvexShape, other: ConvexShape, default: np.ndarray) -> list[np.ndarray]:
    """The normals of the sides of a prism, and the cross products of its edges and the other's axes."""
    corners = prism.placed.sizes
    edges = [corners[end] - corners[start] for start, end in PRISM_EDGES]
    found = [prism.sides @ normal for normal in prism_normals(corners)]
    return found + [
        unit(cross(prism.sides @ edge, axis), default)[0] for edge in edges for axis in other.sides.T
    ]


def shorter(one: OverlapDirection, other: OverlapDirection) -> OverlapDirection:
    """The direction of less overlap, with the points of the first one."""
    shorter = less(one.overlap, other.overlap)
    normal = select_array(shorter, one.normal, other.normal)
    return OverlapDirection(normal, where(shorter, one.overlap, other.overlap), one.points)
