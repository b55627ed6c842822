"""Which pairs cannot touch, from the balls around their shapes: to skip what need not be worked out."""

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
    """Whether the balls around both shapes, and the pair's margin, meet; always true for a plane, which has no ball."""
    return bounding_spheres_overlap(pair, placed(pair.a, poses), placed(pair.b, poses))


def bounding_spheres_overlap(pair: Pair, a: PlacedShape, b: PlacedShape) -> Any:
    """`near` of a pair's shapes where they are."""
    if "plane" in pair.kinds:
        return True
    reach = radius(pair.a.kind, a) + radius(pair.b.kind, b) + maximum(pair.margin, 0)
    d = b.p - a.p
    return d @ d < reach * reach


def radius(kind: str, shape: PlacedShape) -> Any:
    """The radius of the ball around a shape's origin that holds it [m]."""
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
