"""Broad phase: pairs that cannot touch, by the bounding spheres of their shapes, need no narrow phase."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from zwang.collision.height_field import may_be_near
from zwang.collision.narrow_phase import placed
from zwang.collision.pairs import Pair
from zwang.collision.shapes import PlacedShape, radius
from zwang.kinematics.poses import Pose
from zwang.mechanism.geometry import HeightField
from zwang.scalar import maximum


def passes_broad_phase(pair: Pair, poses: Sequence[Pose]) -> Any:
    """Whether the bounding spheres of both shapes, enlarged by the pair's margin, overlap; always true for a
    plane.
    """
    return bounding_spheres_overlap(pair, placed(pair.a, poses), placed(pair.b, poses))


def bounding_spheres_overlap(pair: Pair, a: PlacedShape, b: PlacedShape) -> Any:
    """`passes_broad_phase` for shapes already placed in the world."""
    if "plane" in pair.kinds:
        return True
    if isinstance(pair.a.shape, HeightField):
        return may_be_near(pair.a.shape, radius(pair.b.kind, b.sizes), a, b)
    reach = radius(pair.a.kind, a.sizes) + radius(pair.b.kind, b.sizes) + maximum(pair.margin, 0)
    d = b.p - a.p
    return d @ d < reach * reach
