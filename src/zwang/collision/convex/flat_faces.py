"""The flat faces of a convex shape that contain a given point of its surface, and the edges that do.

A capsule has no flat faces. The straight edges of a cylinder and of a capsule are the lines of their sides.
A face of a mesh contains its corners, though it may not be quite flat.
"""

from __future__ import annotations

from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from zwang.algebra.norms import TINY
from zwang.collision.convex.face_tables import FlatFaces
from zwang.collision.convex.gjk import select_array
from zwang.collision.convex.polygons import unchanged
from zwang.collision.convex.polyhedra import polyhedron_of
from zwang.collision.shapes import PlacedShape
from zwang.scalar import (
    MutableArray,
    absolute,
    cond,
    divide,
    empty,
    equal,
    lane_maximum,
    less,
    less_equal,
    logical_and,
    logical_or,
    not_equal,
    sqrt,
    where,
)

CONTAINS = 5e-5  # distance, relative to a shape's size, up to which a point counts as on a face or an edge
FACE, EDGE, VERTEX = 3, 2, 1  # what of a shape is nearest to the other one, by its dimension plus one


class SurfacePoint(NamedTuple):
    """What of a shape is at a point of its surface.

    dimension: FACE, EDGE or VERTEX. faces (4 degree,): the outward normals in the world and numbers of the
    faces that contain the point, `face_count` of them. edges (6 degree,): both ends, in the world, of the
    edges that contain it, `edge_count` of them.
    """

    dimension: Any
    faces: MutableArray
    face_count: Any
    edges: MutableArray
    edge_count: Any

    @property
    def face_bound(self) -> Any:
        """An upper bound of the number of faces, the same in all lanes, for loops."""
        return lane_maximum(self.face_count, self.faces.shape[0] // 4)

    @property
    def edge_bound(self) -> Any:
        """An upper bound of the number of edges, the same in all lanes, for loops."""
        return lane_maximum(self.edge_count, self.edges.shape[0] // 6)

    def face(self, i: Any) -> tuple[np.ndarray, Any]:
        """Normal and number of face i of this point."""
        n = np.array([self.faces[4 * i + c] for c in range(3)])
        return n, self.faces[4 * i + 3]

    def edge(self, i: Any) -> tuple[np.ndarray, np.ndarray]:
        """Both ends of edge i of this point."""
        values = [self.edges[6 * i + c] for c in range(6)]
        return np.array(values[:3]), np.array(values[3:])


# ------------------------------------------------------------------------------------- at a surface point


def surface_point(kind: str, shape: PlacedShape, point: np.ndarray, size: Any, room: int) -> SurfacePoint:
    """What of a box, a cylinder or a capsule is at a point of its surface in the world; size [m] of the
    shape. A shape without faces counts as a face. room: for how many faces and edges.
    """
    if kind in ("cylinder", "capsule"):
        return _point_of_round_shape(kind, shape, point, size, room)
    if kind == "box":
        return _point_of_box(shape, point, size, room)
    return SurfacePoint(FACE, empty(4 * room), 0.0, empty(6 * room), 0.0)


def point_of_mesh(
    shape: PlacedShape, faces: FlatFaces | None, corners: np.ndarray, towards: np.ndarray, room: int
) -> SurfacePoint:
    """What of a mesh is at the point between some of its vertices, corners (4, 3) in its axes, of which some
    may be equal: their number, the faces that contain all of them, and the edges from the first one, or
    between two of them. towards: direction in the world, along which these vertices are farthest. room: for
    how many faces and edges, at least the degree of the faces.
    """
    if faces is None:
        return SurfacePoint(FACE, empty(4 * room), 0.0, empty(6 * room), 0.0)
    polyhedron, d = polyhedron_of(shape.sizes), shape.R.T @ towards
    numbers = [polyhedron.number_at(d, corner) for corner in corners]
    first, *others = numbers
    different: Any = 1.0
    second = first
    for k, number in enumerate(others):
        is_new = reduce(logical_and, [not_equal(number, x) for x in numbers[: k + 1]])
        second = where(logical_and(is_new, equal(different, 1)), number, second)
        different = different + where(is_new, 1.0, 0.0)
    is_vertex, is_edge = equal(different, 1), equal(different, 2)

    def with_face(k: Any, at_corner: Any, carry: Any) -> Any:
        at_faces, face_count, at_edges, edge_count = carry
        corner, after = faces.corner(k, at_corner), faces.corner(k, at_corner + 1)

        def with_corner(j: Any, found: Any) -> Any:
            marks, end = found
            here = 1.0 * faces.vertices[faces.starts[k] + j]
            marks = [where(equal(here, x), 1.0, mark) for mark, x in zip(marks, others, strict=True)]
            return marks, select_array(equal(here, second), faces.corner(k, j), end)

        marks = [where(equal(x, first), 1.0, 0.0) for x in others]
        marks, end = faces.over_corners(k, with_corner, (marks, corner))
        contains = less(len(others) - 0.5, sum(marks))
        face = [*(shape.R @ faces.normals[k]), 1.0 * k]
        at_faces, face_count = appended(at_faces, face_count, face, contains)
        is_side = logical_and(is_edge, logical_and(contains, equal(edge_count, 0)))
        end = select_array(is_edge, end, after)
        ends = [*(shape.p + shape.R @ corner), *(shape.p + shape.R @ end)]
        at_edges, edge_count = appended(at_edges, edge_count, ends, logical_or(is_vertex, is_side))
        return at_faces, face_count, at_edges, edge_count

    carry = (empty(4 * room), 0.0, empty(6 * room), 0.0)
    carry = faces.over_faces_at(first, with_face, carry)
    dimension = where(is_vertex, VERTEX, where(is_edge, EDGE, FACE))
    return SurfacePoint(dimension, *carry)


def _point_of_box(shape: PlacedShape, point: np.ndarray, size: Any, room: int) -> SurfacePoint:
    """What of a box is at a point; faces and edges in the order of the axes."""
    x, slack = shape.R.T @ (point - shape.p), CONTAINS * size
    signs = [where(less(x[c], 0), -1, 1) for c in range(3)]
    corner = np.array([sign * s for sign, s in zip(signs, shape.sizes, strict=True)])
    at_side = [less_equal(absolute(x[c] - corner[c]), slack) for c in range(3)]
    at_faces, at_edges, face_count, edge_count = empty(4 * room), empty(6 * room), 0.0, 0.0
    for c in range(3):
        face = [*(signs[c] * shape.R[:, c]), 2.0 * c + where(less(x[c], 0), 1, 0)]
        at_faces, face_count = appended(at_faces, face_count, face, at_side[c])
        flipped = np.array([-y if k == c else y for k, y in enumerate(corner)])
        ends = [*(shape.p + shape.R @ corner), *(shape.p + shape.R @ flipped)]
        is_edge = logical_and(at_side[c - 1], at_side[c - 2])
        at_edges, edge_count = appended(at_edges, edge_count, ends, is_edge)
    dimension = where(less(2, face_count), VERTEX, where(equal(face_count, 2), EDGE, FACE))
    return SurfacePoint(dimension, at_faces, face_count, at_edges, edge_count)


def appended(array: MutableArray, count: Any, row: list[Any], condition: Any) -> tuple[MutableArray, Any]:
    """The array with one more row, and their number, where the condition holds."""

    def append(array: MutableArray, count: Any) -> tuple[MutableArray, Any]:
        for c, value in enumerate(row):
            array = array.scatter(len(row) * count + c, value)
        return array, count + 1

    return cond(condition, append, unchanged, array, count)


def side_line(cylinder: PlacedShape, direction: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Both ends of the line on a cylinder's side that is farthest along a direction in the world."""
    x = cylinder.R.T @ direction
    length = sqrt(x[0] * x[0] + x[1] * x[1])
    has_side = less(TINY, length)
    scale = where(has_side, divide(cylinder.sizes[0], where(has_side, length, 1.0)), 0.0)
    ends = [np.array([x[0] * scale, x[1] * scale, side * cylinder.sizes[1]]) for side in (-1, 1)]
    return cylinder.p + cylinder.R @ ends[0], cylinder.p + cylinder.R @ ends[1]


def _point_of_round_shape(
    kind: str, shape: PlacedShape, point: np.ndarray, size: Any, room: int
) -> SurfacePoint:
    """What of a cylinder or a capsule is at a point: the cap of a cylinder, the line of a capsule's side."""
    x, half = shape.R.T @ (point - shape.p), shape.sizes[1]
    at_faces, at_edges = empty(4 * room), empty(6 * room)
    at_cap: Any = False
    ends = [shape.p + shape.R @ np.array([x[0], x[1], side * half]) for side in (-1, 1)]
    if kind == "cylinder":
        at_cap = less_equal(half - CONTAINS * size, absolute(x[2]))
    below = less(x[2], 0)
    for c, value in enumerate([*(where(below, -1, 1) * shape.R[:, 2]), where(below, 1.0, 0.0)]):
        at_faces = at_faces.set(c, value * 1.0)
    for c, value in enumerate([*ends[0], *ends[1]]):
        at_edges = at_edges.set(c, value)
    dimension = VERTEX if kind == "capsule" else where(at_cap, VERTEX, EDGE)
    return SurfacePoint(dimension, at_faces, where(at_cap, 1.0, 0.0), at_edges, 1.0)
