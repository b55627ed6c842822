"""Convex shapes by their support functions: the point of a shape that lies farthest along a direction.

Balls and capsules are a point and a stretch, with a radius around, so that their shallow contacts are exact.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from zwang.algebra.convex_hull import convex_hull
from zwang.collision.contact_point import TINY, unit
from zwang.collision.shapes import PlacedShape
from zwang.scalar import copysign, for_each, less, sqrt, table, where

MOST_FACES = 300
Support = Callable[[np.ndarray], np.ndarray]


class ConvexShape(NamedTuple):
    """A convex shape in the world: its core's support function, the radius around the core, its centre and size [m].

    sides: directions, as columns, along which the shape is likely to be left soonest; faces: a mesh's outward normals
    (n, 3) on these axes.
    """

    support: Support
    radius: Any
    centre: np.ndarray
    size: Any
    sides: np.ndarray
    faces: np.ndarray = np.zeros((0, 3))

    def moved(self, shift: np.ndarray) -> ConvexShape:
        """The shape elsewhere."""
        return self._replace(support=lambda d: self.support(d) + shift, centre=self.centre + shift)


def convex_shape_of(kind: str, shape: PlacedShape) -> ConvexShape:
    """A shape in the world by its support function."""
    R, p = shape.R, shape.p
    local = _LOCAL[kind](shape.sizes)
    radius = shape.sizes[0] if kind in ("sphere", "capsule") else 0
    size = float(np.abs(np.asarray(shape.sizes, float)).max()) if kind == "mesh" else sum(shape.sizes)
    faces = face_normals(shape.sizes) if kind == "mesh" else np.zeros((0, 3))
    return ConvexShape(lambda d: p + R @ local(R.T @ d), radius, p, size, R, faces)


def face_normals(corners: Any) -> np.ndarray:
    """The outward normals (n, 3) of a convex hull's faces; none of a flat one, or where there are too many."""
    normals = convex_hull(corners).planes[:, :3]
    different = normals[np.sort(np.unique(np.round(normals, 6), axis=0, return_index=True)[1])]
    return different if len(different) <= MOST_FACES else np.zeros((0, 3))


def _ball(sizes: Any) -> Support:
    return lambda d: np.zeros(3, int)


def _capsule(sizes: Any) -> Support:
    return lambda d: np.array([0, 0, copysign(sizes[1], d[2])])


def _ellipsoid(sizes: Any) -> Support:
    s = np.array(sizes)
    return lambda d: s * unit(s * d)[0]


def _cylinder(sizes: Any) -> Support:
    def support(d: np.ndarray) -> np.ndarray:
        square = d[0] * d[0] + d[1] * d[1]
        upright = less(square, TINY * TINY)
        scale = where(upright, 0, sizes[0] / sqrt(where(upright, 1.0, square)))
        return np.array([d[0] * scale, d[1] * scale, copysign(sizes[1], d[2])])

    return support


def _box(sizes: Any) -> Support:
    return lambda d: np.array([copysign(s, x) for s, x in zip(sizes, d, strict=True)])


def _mesh(corners: Any) -> Support:
    rows = table(np.asarray(corners, float))

    def support(d: np.ndarray) -> np.ndarray:
        def farther(corner: Any, best: Any) -> Any:
            height = corner @ d
            better = less(best[0], height)
            return [where(better, x, y) for x, y in zip([height, *corner], best, strict=True)]

        first = [float(x) for x in np.asarray(corners, float)[0]]
        return np.array(for_each(rows, farther, [np.array(first) @ d, *first])[1:])

    return support


_LOCAL: dict[str, Callable[[Any], Support]] = {
    "sphere": _ball, "capsule": _capsule, "ellipsoid": _ellipsoid, "cylinder": _cylinder, "box": _box, "mesh": _mesh,
}  # fmt: skip
