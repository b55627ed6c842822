"""Broad phase: pairs that cannot touch, by the bounding spheres of their shapes, need no narrow phase."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from zwang.collision.narrow_phase import placed
from zwang.collision.pairs import Pair
from zwang.collision.shapes import PlacedShape
from zwang.kinematics.poses import Pose
from zwang.scalar import maximum, sqrt


def passes_broad_phase(pair: Pair, poses: Sequence[Pose]) -> Any:
    """Whether the bounding spheres of both shapes, enlarged by the pair's margin, overlap; always true for a
    plane.
    """
    return bounding_spheres_overlap(pair, placed(pair.a, poses), placed(pair.b, poses))


def bounding_spheres_overlap(pair: Pair, a: PlacedShape, b: PlacedShape) -> Any:
    """`passes_broad_phase` for shapes already placed in the world."""
    if "plane" in pair.kinds:
        return True
    reach = radius(pair.a.kind, a) + radius(pair.b.kind, b) + maximum(pair.margin, 0)
    d = b.p - a.p
    return d @ d < reach * reach


def radius(kind: str, shape: PlacedShape) -> Any:
    """Radius [m] of a shape's bounding sphere about its origin."""
    sizes = shape.sizes
    match kind:
        case "sphere":
            return sizes[0]
        case "capsule":
            return sizes[0] + sizes[1]
        case "cylinder" | "box":
            return sqrt(sum(x * x for x in sizes))
        case "ellipsoid":
            return maximum(maximum(sizes[0], sizes[1]), sizes[2])
    return float(np.linalg.norm(np.asarray(sizes, float), axis=-1).max())
