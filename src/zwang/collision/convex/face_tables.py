"""The flat faces of boxes, cylinders and convex polyhedra as tables.

A box has six faces, a mesh those of its convex hull, where coplanar triangles are one polygon, and a cylinder
two caps, which stand as polygons of 16 corners for the clipping of contact manifolds, as in MuJoCo.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from zwang.scalar import Table, fori_loop, lane_by_lane, lane_maximum, table

CAP_CORNERS = 16  # of the polygon that stands for the cap of a cylinder


class FlatFaces(NamedTuple):
    """Tables of the faces of one or more shapes, each in its own axes.

    normals (n, 3): outward. points (p, 3): the vertices of all shapes, to be multiplied by `scale`. vertices
    (m,): their numbers at the corners of each polygon, clockwise seen from outside, and at the first one
    again. starts (n,): the number of the first corner of each face. counts (n,): of the corners.
    faces_at (k,), corners_at (k,): the faces at each vertex, and its number among their corners, for one
    vertex after the other; starts_at: the first of each. degree, most: the largest number of faces at one
    vertex, and of corners of a face.
    """

    normals: Table
    points: Table
    vertices: Table
    faces_at: Table
    corners_at: Table
    starts_at: Table
    starts: Table
    counts: Table
    scale: tuple[Any, Any, Any]
    degree: int
    most: int

    def corner(self, face: Any, k: Any) -> np.ndarray:
        """Corner k of a face; both are indices that are equal in all lanes."""
        return self.points[self.vertices[self.starts[face] + k]] * np.array(self.scale)

    def over_corners_of(self, number: Any, body: Callable[[np.ndarray, Any], Any], carry: Any) -> Any:
        """The carry after `carry = body(corner, carry)` for every corner (3,) of the face with this number,
        which may differ from lane to lane.
        """

        def of_lane(carry: Any) -> Any:
            face = lane_maximum(number, self.counts.shape[0] - 1)
            return self.over_corners(face, lambda k, carry: body(self.corner(face, k), carry), carry)

        return lane_by_lane(of_lane, carry)

    def over_faces_at(self, vertex: Any, body: Callable[[Any, Any, Any], Any], carry: Any) -> Any:
        """The carry after `carry = body(face, k, carry)` for every face whose corner k is the vertex with
        this number, which may differ from lane to lane.
        """

        def of_lane(carry: Any) -> Any:
            number = lane_maximum(vertex, self.starts_at.shape[0] - 2)
            begin, end = self.starts_at[number], self.starts_at[number + 1]

            def visit(i: Any, carry: Any) -> Any:
                return body(self.faces_at[i], self.corners_at[i], carry)

            return fori_loop(begin, end, visit, carry, unroll=False)

        return lane_by_lane(of_lane, carry)

    def over_corners(self, face: Any, body: Callable[[Any, Any], Any], carry: Any) -> Any:
        """The carry after `carry = body(k, carry)` for every corner k of a face."""
        return fori_loop(0, self.counts[face], body, carry, unroll=False)


class Faces(NamedTuple):
    """The faces of a shape: outward normals (n, 3), points (m, 3), and for each face the numbers of its
    corners among the points, clockwise seen from outside.
    """

    normals: np.ndarray
    points: np.ndarray
    polygons: Sequence[Sequence[int] | np.ndarray]


def box_faces(sizes: Any) -> FlatFaces:
    """The faces of a box with these half edges."""
    return _tables([_cube()])._replace(scale=tuple(sizes))


def cylinder_faces(sizes: Any) -> FlatFaces:
    """The polygons that stand for the caps of a cylinder with this radius and half length."""
    return _tables([_caps()])._replace(scale=(sizes[0], sizes[0], sizes[1]))


def faces_of_polyhedra(polyhedra: Sequence[Faces], *, clockwise: bool) -> FlatFaces | None:
    """The faces of polyhedra; None if all are flat. clockwise: the order of their corners, as seen from
    outside.
    """
    if not any(faces.polygons for faces in polyhedra):
        return None
    return _tables(polyhedra if clockwise else [_reversed(faces) for faces in polyhedra])


def _reversed(faces: Faces) -> Faces:
    """The faces with their corners in the opposite order."""
    return faces._replace(polygons=[polygon[::-1] for polygon in faces.polygons])


def _tables(shapes: Sequence[Faces]) -> FlatFaces:
    """Tables of the faces of all shapes, one after the other."""
    polygons = [polygon for faces in shapes for polygon in faces.polygons]
    counts = np.array([len(polygon) for polygon in polygons])
    starts = np.cumsum(counts + 1) - (counts + 1)
    faces_at = np.repeat(np.arange(len(counts)), counts)
    corners_at = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    first_vertices = np.cumsum([0, *(len(faces.points) for faces in shapes)])
    first_of_face = np.repeat(first_vertices[:-1], [len(faces.polygons) for faces in shapes])
    owners = first_of_face[faces_at] + np.concatenate(polygons)
    # so many more that a corner of any face has an index in the table
    vertices = np.zeros(starts[-1] + counts[-1] + counts.max() + 2, int)
    vertices[starts[faces_at] + corners_at] = owners
    vertices[starts + counts] = vertices[starts]
    points = np.concatenate([faces.points for faces in shapes])
    order = np.argsort(owners, kind="stable")
    degrees = np.bincount(owners, minlength=first_vertices[-1])
    return FlatFaces(
        table(np.concatenate([faces.normals for faces in shapes])), table(points), table(vertices),
        table(faces_at[order]), table(corners_at[order]), table(np.cumsum([0, *degrees])),
        table(starts), table(counts), (1.0, 1.0, 1.0), max(3, int(degrees.max())), int(counts.max()),
    )  # fmt: skip


@lru_cache(maxsize=1)
def _cube() -> Faces:
    """Faces of the cube with edges of length 2; which corner is the first matters for large polygons."""
    signs = [
        ((1, 1, 1), (1, 1, -1), (1, -1, -1), (1, -1, 1)),
        ((-1, 1, -1), (-1, 1, 1), (-1, -1, 1), (-1, -1, -1)),
        ((-1, 1, -1), (1, 1, -1), (1, 1, 1), (-1, 1, 1)),
        ((-1, -1, 1), (1, -1, 1), (1, -1, -1), (-1, -1, -1)),
        ((-1, 1, 1), (1, 1, 1), (1, -1, 1), (-1, -1, 1)),
        ((1, 1, -1), (-1, 1, -1), (-1, -1, -1), (1, -1, -1)),
    ]
    polygons = [np.array(corners, float) for corners in signs]
    return _separate_polygons(np.array([polygon.mean(axis=0) for polygon in polygons]), polygons)


@lru_cache(maxsize=1)
def _caps() -> Faces:
    """Upper and lower cap of the cylinder with radius 1 and height 2."""
    angles = np.arange(CAP_CORNERS) * (2 * np.pi / CAP_CORNERS)
    polygons = [
        np.stack([np.cos(angles), -side * np.sin(angles), np.full(CAP_CORNERS, side)], axis=1)
        for side in (1.0, -1.0)
    ]
    return _separate_polygons(np.array([[0, 0, 1.0], [0, 0, -1.0]]), polygons)


def _separate_polygons(normals: np.ndarray, polygons: list[np.ndarray]) -> Faces:
    """Faces with these normals and corners (n, 3), which share no points."""
    ends = np.cumsum([0, *map(len, polygons)])
    numbers = [np.arange(start, end) for start, end in pairwise(ends)]
    return Faces(normals, np.concatenate(polygons), numbers)
