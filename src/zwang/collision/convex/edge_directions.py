"""Directions across an edge of each of two convex shapes, next to a direction of locally least overlap.

The difference of two polyhedra has faces of three kinds: those of the first, those of the second, and
parallelograms along an edge of each, whose normals are the cross products of the edges. The overlap has a
local minimum at many faces, so that the least one may be at a face beside the one that is found.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np

from zwang.algebra.rotations import cross
from zwang.collision.contact_point import unit
from zwang.collision.convex.flat_faces import appended
from zwang.collision.convex.gjk import inner
from zwang.collision.convex.least_overlap import OverlapDirection, better
from zwang.collision.convex.polyhedra import polyhedron_of
from zwang.collision.convex.support_functions import ConvexShape
from zwang.scalar import (
    MutableArray,
    cond,
    empty,
    fori_loop,
    lane_maximum,
    less,
    logical_and,
    not_equal,
    where,
)

MOST_EDGES = 40  # at a corner of a mesh; with more, as at the tip of a cone, they would be too many to cross


def better_across_edges(
    a: ConvexShape, b: ConvexShape, best: OverlapDirection, A: np.ndarray, B: np.ndarray
) -> OverlapDirection:
    """The best of a direction and those across an edge of each shape, at the corners A and B (4, 3) that are
    farthest along it. Other shapes than meshes have their axes as edges, whose directions with each other
    have been tried at the beginning.
    """
    if "mesh" not in (a.kind, b.kind):
        return best
    (first, m), (second, n) = _edges_at(a, A, best.normal), _edges_at(b, B, -best.normal)
    normal = best.normal

    def with_first(i: Any, best: OverlapDirection) -> OverlapDirection:
        x = np.array([first[3 * i + c] for c in range(3)])

        def with_second(j: Any, best: OverlapDirection) -> OverlapDirection:
            d = unit(cross(x, np.array([second[3 * j + c] for c in range(3)])), normal)[0]
            d = d * where(less(inner(d, normal), 0), -1.0, 1.0)
            is_pair = logical_and(less(1.0 * i, m), less(1.0 * j, n))  # other worlds may have more edges
            return cond(is_pair, lambda best: better(a, b, d, best), lambda best: best, best)

        return fori_loop(0, lane_maximum(n, second.shape[0] // 3), with_second, best)

    return fori_loop(0, lane_maximum(m, first.shape[0] // 3), with_first, best)


def _edges_at(shape: ConvexShape, corners: np.ndarray, towards: np.ndarray) -> tuple[MutableArray, Any]:
    """The edges of a shape, as vectors in the world in an array, at some of its corners (4, 3), which are
    farthest along a direction; and their number.
    """
    faces = polyhedron_of(shape.placed.sizes).faces() if shape.kind == "mesh" else None
    if faces is None or faces.degree > MOST_EDGES:
        found = empty(9)
        for k, x in enumerate(shape.sides.T.ravel()):
            found = found.set(k, x * 1.0)
        return found, 3.0
    polyhedron, R = polyhedron_of(shape.placed.sizes), shape.sides
    numbers = [polyhedron.number_at(R.T @ towards, R.T @ (x - shape.centre)) for x in corners]
    carry: tuple[MutableArray, Any] = empty(3 * faces.degree * len(numbers)), 0.0
    for k, number in enumerate(numbers):
        is_new = reduce(logical_and, [not_equal(number, x) for x in numbers[:k]], 1.0 > 0.0)

        def with_face(face: Any, at: Any, carry: Any, is_new: Any = is_new) -> Any:
            (edges, count), edge = carry, R @ (faces.corner(face, at + 1) - faces.corner(face, at))
            return appended(edges, count, list(edge), is_new)

        carry = faces.over_faces_at(number, with_face, carry)
    return carry
