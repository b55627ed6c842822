"""Kinds of collision shapes: their half sizes, and the number of contact points of each pair of kinds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from zwang.collision.convex.polyhedra import hull_of, polyhedron_of
from zwang.errors import UnsupportedError
from zwang.mechanism.geometry import Box, Capsule, Cylinder, Ellipsoid, Geometry, Mesh, Sphere
from zwang.scalar import Table, cond, less, maximum, sqrt

ORDER = ("plane", "heightfield", "sphere", "capsule", "ellipsoid", "cylinder", "box", "mesh")
SEVERAL = "several"  # the kind of a shape that is of one of several kinds
MOST_SIZES = 3  # half sizes of a shape that is no mesh


class PlacedShape(NamedTuple):
    """A shape in the world: half sizes (of a mesh a `Polyhedron`, or its vertices), rotation, and position of
    its centre.

    heights: those of a height field, whose half sizes are the number of a prism (row, column, side).
    """

    sizes: Any
    R: np.ndarray
    p: np.ndarray
    heights: Table | None = None


class SizesOfKinds(NamedTuple):
    """The half sizes of a shape of the kind `SEVERAL`: one loop visits shapes of several kinds.

    kinds: those that it may be of. number: the place of its own among them, perhaps read at the index of the
    loop, so that it is equal in all lanes. sizes (MOST_SIZES,): its half sizes, then zeros. mesh: its
    `Polyhedron`, if it may be a mesh. radius: see `radius`. low, high (3,): see `extents`.
    """

    kinds: tuple[str, ...]
    number: Any
    sizes: Any
    mesh: Any
    radius: Any
    low: np.ndarray
    high: np.ndarray

    def by_kind(self, function: Callable[..., Any], *operands: Any) -> Any:
        """`function(kind, *operands)` for its kind; the results of all kinds have the same structure."""
        return self._by_kind_from(0, function, operands)

    def sizes_as(self, kind: str) -> Any:
        """The half sizes of a shape of this kind."""
        return self.mesh if kind == "mesh" else tuple(self.sizes[: SIZE_COUNTS[kind]])

    def _by_kind_from(self, k: int, function: Callable[..., Any], operands: tuple) -> Any:
        if k == len(self.kinds) - 1:
            return function(self.kinds[k], *operands)
        return cond(
            less(self.number, k + 0.5),
            lambda *given: function(self.kinds[k], *given),
            lambda *given: self._by_kind_from(k + 1, function, given),
            *operands,
        )


def type_of_shape(shape: Geometry) -> str:
    """Name of a shape's kind. Raises UnsupportedError for a shape without collision functions."""
    kind = type(shape).__name__.lower()
    if kind not in ORDER:
        raise UnsupportedError(
            f"shapes of the kind {kind!r} have no collision functions; those with them are {', '.join(ORDER)}"
        )
    return kind


def sizes_of(shape: Geometry) -> Any:
    """Radius and half length, half edges, semi-axes, or the convex hull of a mesh; empty for a plane."""
    match shape:
        case Sphere():
            return (shape.radius,)
        case Capsule() | Cylinder():
            return (shape.radius, shape.length / 2)
        case Box():
            return (shape.x / 2, shape.y / 2, shape.z / 2)
        case Ellipsoid():
            return (shape.x, shape.y, shape.z)
        case Mesh():
            return hull_of(shape)
    return ()


def radius(kind: str, sizes: Any) -> Any:
    """Radius [m] of a shape's bounding sphere about its origin."""
    if kind == SEVERAL:
        return sizes.radius
    match kind:
        case "sphere":
            return sizes[0]
        case "capsule":
            return sizes[0] + sizes[1]
        case "cylinder" | "box":
            return sqrt(sum(x * x for x in sizes))
        case "ellipsoid":
            return maximum(maximum(sizes[0], sizes[1]), sizes[2])
    return polyhedron_of(sizes).radius


def extents(kind: str, sizes: Any) -> tuple[np.ndarray, np.ndarray]:
    """The least and the largest coordinates (3,) [m] of a shape in its own axes."""
    if kind == SEVERAL:
        return sizes.low, sizes.high
    match kind:
        case "mesh":
            return polyhedron_of(sizes).extents
        case "sphere":
            high = np.array([sizes[0]] * 3)
        case "capsule":
            high = np.array([sizes[0], sizes[0], sizes[0] + sizes[1]])
        case "cylinder":
            high = np.array([sizes[0], sizes[0], sizes[1]])
        case _:
            high = np.array(sizes)
    return -high, high


SIZE_COUNTS = {"sphere": 1, "capsule": 2, "ellipsoid": 3, "cylinder": 2, "box": 3}  # numbers in `sizes_of`

# The largest number of contact points of each pair of kinds, in the order of the kinds.
COUNTS: dict[tuple[str, str], int] = {
    **{("heightfield", kind): 1 for kind in ("sphere", "capsule", "ellipsoid", "cylinder", "box", "mesh")},
    ("plane", "sphere"): 1,
    ("plane", "capsule"): 2,
    ("plane", "ellipsoid"): 1,
    ("plane", "cylinder"): 4,
    ("plane", "box"): 4,
    ("plane", "mesh"): 4,
    ("sphere", "sphere"): 1,
    ("sphere", "capsule"): 1,
    ("sphere", "cylinder"): 1,
    ("sphere", "box"): 1,
    ("capsule", "capsule"): 2,
    ("capsule", "box"): 2,
    ("box", "box"): 12,
    ("sphere", "ellipsoid"): 1,
    ("sphere", "mesh"): 1,
    ("capsule", "ellipsoid"): 1,
    ("ellipsoid", "ellipsoid"): 1,
    ("ellipsoid", "cylinder"): 1,
    ("ellipsoid", "box"): 1,
    ("ellipsoid", "mesh"): 1,
    ("capsule", "cylinder"): 2,
    ("capsule", "mesh"): 2,
    ("cylinder", "cylinder"): 4,
    ("cylinder", "box"): 4,
    ("cylinder", "mesh"): 4,
    ("box", "mesh"): 4,
    ("mesh", "mesh"): 4,
}

_CLOSED_FORM = ("plane", "sphere", "capsule", "cylinder", "box")
# The pairs of kinds whose contact points are found by iteration; and those of them that have a manifold.
CONVEX = {kinds for kinds in COUNTS if "plane" not in kinds and not set(kinds) <= set(_CLOSED_FORM)}
CONVEX |= {("capsule", "cylinder"), ("cylinder", "cylinder"), ("cylinder", "box")}
MANIFOLDS = {kinds for kinds in CONVEX if COUNTS[kinds] > 1}
