"""The kinds of shapes as contact sees them: their half sizes, and how many gaps each pair of kinds can have."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from zwang.errors import UnsupportedError
from zwang.mechanism.shapes import Box, Capsule, Cylinder, Ellipsoid, Geometry, Mesh, Plane, Sphere

ORDER = ("plane", "sphere", "capsule", "ellipsoid", "cylinder", "box", "mesh")


class Placed(NamedTuple):
    """A shape in the world: half sizes (or a mesh's vertices), rotation, and position of its centre."""

    sizes: Any
    R: np.ndarray
    p: np.ndarray


def kind_of(shape: Geometry) -> str:
    """The name of a shape's kind. Raises UnsupportedError for a shape that contact does not know."""
    kind = type(shape).__name__.lower()
    if kind not in ORDER:
        raise UnsupportedError(
            f"contact does not know shapes of the kind {kind!r}; it knows {', '.join(ORDER)}"
        )
    return kind


def sizes_of(shape: Geometry) -> tuple[Any, ...]:
    """Radius and half length, half edges, semi-axes; nothing for a plane or a mesh."""
    match shape:
        case Sphere():
            return (shape.radius,)
        case Capsule() | Cylinder():
            return (shape.radius, shape.length / 2)
        case Box():
            return (shape.x / 2, shape.y / 2, shape.z / 2)
        case Ellipsoid():
            return (shape.x, shape.y, shape.z)
        case Plane() | Mesh():
            return ()
    return ()


# How many gaps each pair of kinds can have, in the order of the kinds.
COUNTS: dict[tuple[str, str], int] = {
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
}

# Pairs of kinds whose gaps every scalar can compute.
TRACEABLE = frozenset(COUNTS) - {("plane", "mesh")}
