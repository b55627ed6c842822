"""Convex shapes by their support functions: the point of a shape farthest along a direction.

Spheres and capsules are a point and a segment with a radius, so that their shallow contacts are exact.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from zwang.algebra.norms import TINY
from zwang.algebra.rotations import cross
from zwang.collision.contact_point import unit
from zwang.collision.convex.polyhedra import polyhedron_of
from zwang.collision.shapes import SEVERAL, PlacedShape, SizesOfKinds
from zwang.scalar import Table, copysign, less, maximum, sqrt, where, without_derivatives

PRISM_EDGES = ((0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 3))  # of the bottom and the top of a prism
Support = Callable[[np.ndarray], np.ndarray]


class ConvexShape(NamedTuple):
    """A convex shape in the world: its kind and placement, the support function of its core in its own axes,
    the radius around the core, and its size [m].

    faces: outward normals of a mesh in its axes, the first of its own, and the end of these; or None.
    """

    kind: str
    placed: PlacedShape
    local_support: Support
    radius: Any
    size: Any
    faces: tuple[Table, Any, Any] | None = None

    @property
    def centre(self) -> np.ndarray:
        """The origin of its axes."""
        return self.placed.p

    @property
    def sides(self) -> np.ndarray:
        """Directions, as columns, of likely least penetration: its axes."""
        return self.placed.R

    def support(self, d: np.ndarray) -> np.ndarray:
        """The point of the core that is farthest along d (3,)."""
        return self.centre + self.sides @ self.local_support(self.sides.T @ d)

    def by_kind(self, function: Callable[..., Any], *operands: Any) -> Any:
        """`function(shape, *operands)`; of a shape of one of several kinds for the one of its own kind, where
        the results of all kinds have the same structure.
        """
        if self.kind != SEVERAL:
            return function(self, *operands)
        return self.placed.sizes.by_kind(lambda kind, *given: function(self._as(kind), *given), *operands)

    @property
    def possible(self) -> list[ConvexShape]:
        """The shape of each kind that it may be of."""
        return [self] if self.kind != SEVERAL else [self._as(kind) for kind in self.placed.sizes.kinds]

    def _as(self, kind: str) -> ConvexShape:
        """The shape if it is of this kind of several."""
        return convex_shape_of(kind, self.placed._replace(sizes=self.placed.sizes.sizes_as(kind)))

    @property
    def numbers(self) -> PlacedShape:
        """Its placement, with those of its sizes that may have derivatives: none of a mesh."""
        if self.kind == SEVERAL:
            return self.placed._replace(sizes=tuple(self.placed.sizes.sizes))
        return self.placed._replace(sizes=()) if self.kind == "mesh" else self.placed

    def at(self, numbers: PlacedShape) -> ConvexShape:
        """The shape with other `numbers`."""
        sizes = numbers.sizes
        if self.kind == "mesh":
            sizes = self.placed.sizes
        if self.kind == SEVERAL:
            sizes = self.placed.sizes._replace(sizes=sizes)
        return convex_shape_of(self.kind, numbers._replace(sizes=sizes))

    def moved(self, shift: np.ndarray) -> ConvexShape:
        """The shape translated by `shift`."""
        return self._replace(placed=self.placed._replace(p=self.centre + shift))


def convex_shape_of(kind: str, shape: PlacedShape) -> ConvexShape:
    """A shape in the world by its support function."""
    if kind == SEVERAL:
        return _shape_of_several_kinds(shape, shape.sizes)
    if kind == "mesh":
        polyhedron = polyhedron_of(shape.sizes)
        return ConvexShape(kind, shape, polyhedron.farthest, 0, polyhedron.size, polyhedron.normals)
    radius = shape.sizes[0] if kind in ("sphere", "capsule") else 0
    size = sqrt(inner_square(shape.sizes)) if kind == "prism" else sum(shape.sizes)
    return ConvexShape(kind, shape, _LOCAL[kind](shape.sizes), radius, size)


def _shape_of_several_kinds(shape: PlacedShape, sizes: SizesOfKinds) -> ConvexShape:
    """The shape of the kind that is read."""

    def of_kind(kind: str) -> ConvexShape:
        return convex_shape_of(kind, shape._replace(sizes=sizes.sizes_as(kind)))

    def measures(kind: str) -> tuple[Any, Any]:
        own = of_kind(kind)
        return 1.0 * own.radius, 1.0 * own.size

    def support(d: np.ndarray) -> np.ndarray:
        return sizes.by_kind(lambda kind: 1.0 * of_kind(kind).local_support(d))

    return ConvexShape(SEVERAL, shape, support, *sizes.by_kind(measures))


def inner_square(corners: np.ndarray) -> Any:
    """The largest squared distance of corners (n, 3) from the origin."""
    return reduce(maximum, [corner @ corner for corner in corners])


def prism_normals(corners: np.ndarray) -> list[np.ndarray]:
    """The unit normals of a prism's faces, of corners (6, 3), the first three at the bottom."""
    low, high = corners[:3], corners[3:]
    normals = [np.array([0.0, 0.0, -1.0]), cross(high[1] - high[0], high[2] - high[0])]
    normals[1] = normals[1] * where(normals[1][2] < 0, -1.0, 1.0)
    for k in range(3):
        side = low[(k + 1) % 3] - low[k]
        normal = np.array([side[1], -side[0], 0.0])
        normals.append(normal * where(normal @ (low[(k + 2) % 3] - low[k]) > 0, -1.0, 1.0))
    return [unit(normal)[0] for normal in normals]


def without_derivatives_of_shapes(function: Callable, a: ConvexShape, b: ConvexShape, *operands: Any) -> Any:
    """`function(a, b, *operands)`, with plain numbers where the shapes or the operands have derivatives."""

    def call(a_placed: PlacedShape, b_placed: PlacedShape, *values: Any) -> Any:
        shapes = [shape.at(placed) for shape, placed in ((a, a_placed), (b, b_placed))]
        return function(*shapes, *values)

    return without_derivatives(call, a.numbers, b.numbers, *operands)


def _ball(sizes: Any) -> Support:
    """Support function of a sphere's core."""
    return lambda d: np.zeros(3, int)


def _capsule(sizes: Any) -> Support:
    """Support function of a capsule's core."""
    return lambda d: np.array([0, 0, copysign(sizes[1], d[2])])


def _ellipsoid(sizes: Any) -> Support:
    """Support function of an ellipsoid."""
    s = np.array(sizes)
    return lambda d: s * unit(s * d)[0]


def _cylinder(sizes: Any) -> Support:
    """Support function of a cylinder."""

    def support(d: np.ndarray) -> np.ndarray:
        square = d[0] * d[0] + d[1] * d[1]
        upright = less(square, TINY * TINY)
        scale = where(upright, 0, sizes[0] / sqrt(where(upright, 1.0, square)))
        return np.array([d[0] * scale, d[1] * scale, copysign(sizes[1], d[2])])

    return support


def _box(sizes: Any) -> Support:
    """Support function of a box."""
    return lambda d: np.array([copysign(s, x) for s, x in zip(sizes, d, strict=True)])


def _prism(corners: Any) -> Support:
    """Support function of a prism."""

    def support(d: np.ndarray) -> np.ndarray:
        best, *others = corners
        reached = best @ d
        for corner in others:
            projection = corner @ d
            better = less(reached, projection)
            best = np.array([where(better, x, y) for x, y in zip(corner, best, strict=True)])
            reached = where(better, projection, reached)
        return best

    return support


_LOCAL: dict[str, Callable[[Any], Support]] = {
    "sphere": _ball,
    "capsule": _capsule,
    "ellipsoid": _ellipsoid,
    "cylinder": _cylinder,
    "box": _box,
    "prism": _prism,
}
