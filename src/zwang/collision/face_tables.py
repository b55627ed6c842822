"""The flat faces of boxes, cylinders and convex polyhedra as tables.

A box has six faces, a mesh those of its convex hull, where coplanar triangles are one polygon, and a cylinder
two caps, which stand as polygons of 16 corners for the clipping of contact manifolds, as in MuJoCo.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from zwang.algebra.convex_hull import hull_polygons
from zwang.scalar import Table, fori_loop, table

CAP_CORNERS = 16  # of the polygon that stands for the cap of a cylinder


class FlatFaces(NamedTuple):
    """The faces begin, ..., end - 1 of tables with the faces of one or more shapes, each in its own axes.

    normals (n, 3): outward. corners (m, 3): of each polygon, clockwise seen from outside, and the first one
    again, to be multiplied by `scale`. starts (n,): the number of the first corner of each face. counts (n,):
    of the corners. ranges: the first face of each shape, and the number of all. degree, most: the largest
    number of faces at one vertex, and of corners of a face. begin, end may be traced indices.
    """

    normals: Table
    corners: Table
    starts: Table
    counts: Table
    ranges: Table
    scale: tuple[Any, Any, Any]
    degree: int
    most: int
    begin: Any
    end: Any

    def of(self, shape: Any) -> FlatFaces:
        """The faces of the shape with this index."""
        return self._replace(begin=self.ranges[shape], end=self.ranges[shape + 1])

    def corner(self, face: Any, k: Any) -> np.ndarray:
        """Corner k of a face; both are indices that are equal in all lanes."""
        return self.corners[self.starts[face] + k] * np.array(self.scale)

    def over_corners(self, face: Any, body: Callable[[Any, Any], Any], carry: Any) -> Any:
        """The carry after `carry = body(k, carry)` for every corner k of a face."""
        return fori_loop(0, self.counts[face], body, carry, unroll=False)

    def over_faces(self, body: Callable[[Any, Any], Any], carry: Any, *, unroll: bool | None = None) -> Any:
        """The carry after `carry = body(k, carry)` for every face k."""
        return fori_loop(self.begin, self.end, body, carry, unroll=unroll)


def box_faces(sizes: Any) -> FlatFaces:
    """The faces of a box with these half edges."""
    return _tables([_cube()])._replace(scale=tuple(sizes))


def cylinder_faces(sizes: Any) -> FlatFaces:
    """The polygons that stand for the caps of a cylinder with this radius and half length."""
    return _tables([_caps()])._replace(scale=(sizes[0], sizes[0], sizes[1]))


def faces_of_polyhedra(polyhedra: Sequence[np.ndarray], *, clockwise: bool) -> FlatFaces | None:
    """The faces of the convex hulls of points (n, 3); None if all are flat. clockwise: the order of their
    corners, as seen from outside.
    """
    order, shapes = 1 if clockwise else -1, []
    for points in polyhedra:
        normals, polygons = _hull_polygons(points.tobytes())
        shapes.append((normals.reshape(-1, 3), [points[polygon[::order]] for polygon in polygons]))
    return _tables(shapes) if any(polygons for _, polygons in shapes) else None


@lru_cache(maxsize=512)
def _hull_polygons(data: bytes) -> tuple[np.ndarray, list[np.ndarray]]:
    """`hull_polygons` of the bytes of points."""
    return hull_polygons(np.frombuffer(data).reshape(-1, 3))


def _tables(shapes: Sequence[tuple[np.ndarray, list[np.ndarray]]]) -> FlatFaces:
    """Tables of the normals and polygons of shapes, with all of their faces."""
    polygons = [polygon for _, own in shapes for polygon in own]
    counts = [len(polygon) for polygon in polygons]
    closed = [np.concatenate([polygon, polygon[:1]]) for polygon in polygons]
    closed.append(np.zeros((max(counts) + 1, 3)))  # so that a corner of any face has an index in the table
    degrees = [
        np.unique(np.concatenate(own), axis=0, return_counts=True)[1].max() for _, own in shapes if own
    ]
    return FlatFaces(
        table(np.concatenate([normals for normals, _ in shapes])), table(np.concatenate(closed)),
        table(np.cumsum([0, *(n + 1 for n in counts[:-1])])), table(counts),
        table(np.cumsum([0, *(len(own) for _, own in shapes)])), (1.0, 1.0, 1.0), max(3, *map(int, degrees)),
        max(counts), 0, len(polygons),
    )  # fmt: skip


@lru_cache(maxsize=1)
def _cube() -> tuple[np.ndarray, list[np.ndarray]]:
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
    return np.array([polygon.mean(axis=0) for polygon in polygons]), polygons


@lru_cache(maxsize=1)
def _caps() -> tuple[np.ndarray, list[np.ndarray]]:
    """Upper and lower cap of the cylinder with radius 1 and height 2."""
    angles = np.arange(CAP_CORNERS) * (2 * np.pi / CAP_CORNERS)
    polygons = [
        np.stack([np.cos(angles), -side * np.sin(angles), np.full(CAP_CORNERS, side)], axis=1)
        for side in (1.0, -1.0)
    ]
    return np.array([[0, 0, 1.0], [0, 0, -1.0]]), polygons
