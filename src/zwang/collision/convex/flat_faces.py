"""The flat faces of a convex shape that contain a given point of its surface, and the edges that do.

A capsule has no flat faces. The straight edges of a cylinder and of a capsule are the lines of their sides.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from zwang.collision.contact_point import TINY
from zwang.collision.convex.face_tables import FlatFaces
from zwang.collision.shapes import PlacedShape
from zwang.scalar import (
    MutableArray,
    absolute,
    cond,
    divide,
    empty,
    equal,
    less,
    less_equal,
    logical_and,
    sqrt,
    where,
)

CONTAINS = 5e-5  # distance, relative to a shape's size, up to which a point counts as on a face or an edge
FACE, EDGE, VERTEX = 3, 2, 1  # what of a shape is nearest to the other one, by its dimension plus one


class SurfacePoint(NamedTuple):
    """What of a shape is at a point of its surface.

    dimension: FACE, EDGE or VERTEX. faces (4 degree,): the outward normals in the world and numbers of the
    faces that contain the point, `face_count` of them. edges (12 degree,): both ends, in the world, of the
    edges that contain it, `edge_count` of them.
    """

    dimension: Any
    faces: MutableArray
    face_count: Any
    edges: MutableArray
    edge_count: Any

    @property
    def most_faces(self) -> int:
        """The largest number of faces at a point."""
        return self.faces.shape[0] // 4

    @property
    def most_edges(self) -> int:
        """The largest number of edges at a point."""
        return self.edges.shape[0] // 6

    def face(self, i: Any) -> tuple[np.ndarray, Any]:
        """Normal and number of face i of this point."""
        n = np.array([self.faces[4 * i + c] for c in range(3)])
        return n, self.faces[4 * i + 3]

    def edge(self, i: Any) -> tuple[np.ndarray, np.ndarray]:
        """Both ends of edge i of this point."""
        values = [self.edges[6 * i + c] for c in range(6)]
        return np.array(values[:3]), np.array(values[3:])


# ------------------------------------------------------------------------------------- at a surface point


def surface_point(
    kind: str, shape: PlacedShape, faces: FlatFaces | None, point: np.ndarray, size: Any
) -> SurfacePoint:
    """What of a shape is at a point of its surface in the world; size [m] of the shape."""
    if kind in ("cylinder", "capsule"):
        return _point_of_round_shape(kind, shape, point, size)
    if kind == "box":
        return _point_of_box(shape, point, size)
    if faces is None:
        return SurfacePoint(FACE, empty(4), 0.0, empty(6), 0.0)
    x = shape.R.T @ (point - shape.p)
    slack, capacity = CONTAINS * size, faces.degree
    carry = (empty(4 * capacity), 0.0, empty(12 * capacity), 0.0)

    def with_face(k: Any, carry: Any) -> Any:
        n = faces.normals[k]
        distance = n @ (x - faces.corner(k, 0))
        contains = logical_and(less_equal(absolute(distance), slack), less(carry[1], capacity))
        return cond(contains, lambda *carry: _with_face(faces, shape, x, slack, k, carry), _as_it_is, *carry)

    at_faces, face_count, at_edges, edge_count = faces.over_faces(with_face, carry)
    dimension = where(less(2, face_count), VERTEX, where(equal(face_count, 2), EDGE, FACE))
    return SurfacePoint(dimension, at_faces, face_count, at_edges, edge_count)


def _as_it_is(*carry: Any) -> Any:
    return carry


def _with_face(faces: FlatFaces, shape: PlacedShape, x: np.ndarray, slack: Any, k: Any, carry: Any) -> Any:
    """The carry with face k, and with those of its edges that contain x, but not at their end."""
    at_faces, face_count, at_edges, edge_count = carry
    for c, value in enumerate([*(shape.R @ faces.normals[k]), 1.0 * k]):
        at_faces = at_faces.scatter(4 * face_count + c, value)

    def with_edge(j: Any, carry: Any) -> Any:
        start, end = faces.corner(k, j), faces.corner(k, j + 1)
        step = end - start
        length = sqrt(step @ step)
        has_length = less(TINY, length)
        length = where(has_length, length, 1.0)
        along = divide((x - start) @ step, length)
        rest = x - start - step * divide(along, length)
        is_there = logical_and(less_equal(-slack, along), less(along, length - slack))
        is_on = logical_and(less_equal(rest @ rest, slack * slack), logical_and(has_length, is_there))

        ends = [*(shape.p + shape.R @ start), *(shape.p + shape.R @ end)]
        return _appended(carry[0], carry[1], ends, logical_and(is_on, less(carry[1], 2 * faces.degree)))

    at_edges, edge_count = faces.over_corners(k, with_edge, (at_edges, edge_count))
    return at_faces, face_count + 1, at_edges, edge_count


def _point_of_box(shape: PlacedShape, point: np.ndarray, size: Any) -> SurfacePoint:
    """What of a box is at a point; faces and edges in the order of the axes."""
    x, slack = shape.R.T @ (point - shape.p), CONTAINS * size
    signs = [where(less(x[c], 0), -1, 1) for c in range(3)]
    corner = np.array([sign * s for sign, s in zip(signs, shape.sizes, strict=True)])
    at_side = [less_equal(absolute(x[c] - corner[c]), slack) for c in range(3)]
    at_faces, at_edges, face_count, edge_count = empty(12), empty(18), 0.0, 0.0
    for c in range(3):
        face = [*(signs[c] * shape.R[:, c]), 2.0 * c + where(less(x[c], 0), 1, 0)]
        at_faces, face_count = _appended(at_faces, face_count, face, at_side[c])
        flipped = np.array([-y if k == c else y for k, y in enumerate(corner)])
        ends = [*(shape.p + shape.R @ corner), *(shape.p + shape.R @ flipped)]
        is_edge = logical_and(at_side[c - 1], at_side[c - 2])
        at_edges, edge_count = _appended(at_edges, edge_count, ends, is_edge)
    dimension = where(less(2, face_count), VERTEX, where(equal(face_count, 2), EDGE, FACE))
    return SurfacePoint(dimension, at_faces, face_count, at_edges, edge_count)


def _appended(array: MutableArray, count: Any, row: list[Any], condition: Any) -> tuple[MutableArray, Any]:
    """The array with one more row, and their number, where the condition holds."""

    def append(array: MutableArray, count: Any) -> tuple[MutableArray, Any]:
        for c, value in enumerate(row):
            array = array.scatter(len(row) * count + c, value)
        return array, count + 1

    return cond(condition, append, _as_it_is, array, count)


def side_line(cylinder: PlacedShape, direction: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Both ends of the line on a cylinder's side that is farthest along a direction in the world."""
    x = cylinder.R.T @ direction
    length = sqrt(x[0] * x[0] + x[1] * x[1])
    has_side = less(TINY, length)
    scale = where(has_side, divide(cylinder.sizes[0], where(has_side, length, 1.0)), 0.0)
    ends = [np.array([x[0] * scale, x[1] * scale, side * cylinder.sizes[1]]) for side in (-1, 1)]
    return cylinder.p + cylinder.R @ ends[0], cylinder.p + cylinder.R @ ends[1]


def _point_of_round_shape(kind: str, shape: PlacedShape, point: np.ndarray, size: Any) -> SurfacePoint:
    """What of a cylinder or a capsule is at a point: the cap of a cylinder, the line of a capsule's side."""
    x, half = shape.R.T @ (point - shape.p), shape.sizes[1]
    at_faces, at_edges = empty(4), empty(6)
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
