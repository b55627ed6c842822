"""Broad phase: pairs that cannot touch, by bounding spheres and boxes of their shapes, need no narrow phase.

Boxes are compared along the axes of both, where the narrow phase takes long. Source: Gottschalk, Lin,
Manocha, OBBTree, SIGGRAPH (1996) 171, without the cross products of the axes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from zwang.collision.height_field import may_be_near
from zwang.collision.narrow_phase import placed
from zwang.collision.pairs import Pair
from zwang.collision.shapes import PlacedShape, extents, radius
from zwang.kinematics.poses import Pose
from zwang.mechanism.geometry import HeightField
from zwang.scalar import absolute, clip, cond, less, logical_and, maximum

ALLOWANCE = 1 + 1e-9  # by which boxes are enlarged, above the rounding error of their distance


def passes_broad_phase(pair: Pair, poses: Sequence[Pose]) -> Any:
    """Whether bounding volumes of both shapes, enlarged by the pair's reach, overlap; always true for a
    plane with another shape than a mesh.
    """
    return bounding_volumes_overlap(pair, placed(pair.a, poses), placed(pair.b, poses))


def bounding_volumes_overlap(pair: Pair, a: PlacedShape, b: PlacedShape) -> Any:
    """`passes_broad_phase` for shapes already placed in the world."""
    return if_volumes_overlap(pair, a, b, lambda _: 1.0, 0.0) > 0


def if_volumes_overlap(
    pair: Pair, a: PlacedShape, b: PlacedShape, function: Callable[[Any], Any], carry: Any
) -> Any:
    """function(carry) where the `bounding_volumes_overlap`, else the carry.

    What only the function and the test of boxes need, such as the orientations, is read where bounding
    spheres overlap.
    """

    def where_true(condition: Any, function: Callable[[Any], Any], carry: Any) -> Any:
        return cond(condition, function, lambda carry: carry, carry)

    margin = maximum(pair.reach, 0)
    if "plane" in pair.kinds:
        if "mesh" not in pair.kinds:
            return function(carry)
        height = a.R[:, 2] @ (b.p - a.p)
        return where_true(height < radius("mesh", b.sizes) * ALLOWANCE + margin, function, carry)
    if isinstance(pair.a.shape, HeightField):
        near = may_be_near(pair.a.shape, radius(pair.b.kind, b.sizes) + margin, a, b)
        return where_true(near, function, carry)
    reach = radius(pair.a.kind, a.sizes) + radius(pair.b.kind, b.sizes) + margin
    d = b.p - a.p
    near = d @ d < reach * reach
    if pair.is_costly:
        closer: Callable[[], Any] = lambda: _boxes_overlap(pair, a, b, margin)  # noqa: E731
    elif pair.kinds == ("capsule", "capsule"):
        closer = lambda: logical_and(_is_near_axis(a, b, margin), _is_near_axis(b, a, margin))  # noqa: E731
    else:
        return where_true(near, function, carry)
    return where_true(near, lambda carry: where_true(closer(), function, carry), carry)


def _is_near_axis(a: PlacedShape, b: PlacedShape, margin: Any) -> Any:
    """Whether the bounding sphere of a capsule b reaches another one, a."""
    d, axis = b.p - a.p, a.R[:, 2]
    to_axis = d - axis * clip(axis @ d, -a.sizes[1], a.sizes[1])
    reach = a.sizes[0] * ALLOWANCE + radius("capsule", b.sizes) * ALLOWANCE + margin
    return less(to_axis @ to_axis, reach * reach)


def _boxes_overlap(pair: Pair, a: PlacedShape, b: PlacedShape, margin: Any) -> Any:
    """Whether the bounding boxes of two shapes in their own axes overlap along all of these axes."""
    (low_a, high_a), (low_b, high_b) = extents(pair.a.kind, a.sizes), extents(pair.b.kind, b.sizes)
    half_a, half_b = (high_a - low_a) / 2, (high_b - low_b) / 2
    d = b.p + b.R @ ((high_b + low_b) / 2) - a.p - a.R @ ((high_a + low_a) / 2)
    C = a.R.T @ b.R
    turned = np.array([[absolute(x) for x in row] for row in C])
    along_a = half_a + turned @ half_b, a.R.T @ d
    along_b = half_b + turned.T @ half_a, b.R.T @ d
    overlap: Any = True
    for reaches, distances in (along_a, along_b):
        for reach, distance in zip(reaches, distances, strict=True):
            overlap = logical_and(overlap, less(absolute(distance), reach * ALLOWANCE + margin))
    return overlap
