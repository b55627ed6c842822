"""The signed distance of any two shapes of a mechanism, and their nearest points, also where they are far
apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from zwang.collision.convex.nearest_points import nearest_points
from zwang.collision.convex.support_functions import convex_shape_of
from zwang.collision.narrow_phase import contact_points, placed
from zwang.collision.pairs import CollisionShape, Pair
from zwang.collision.shapes import ORDER, sizes_of, type_of_shape
from zwang.kinematics.poses import Pose
from zwang.mechanism.geometry import Geometry
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.tree import Placement
from zwang.scalar import less, where

_CLOSED = {("sphere", "sphere"), ("sphere", "capsule"), ("sphere", "cylinder"), ("sphere", "box"),
           ("capsule", "capsule")}  # fmt: skip
"""Pairs of kinds, besides those with a plane, whose contact points are exact at any distance."""


class ShapeDistance(NamedTuple):
    """Signed distance [m], the unit normal (3,) from the first shape to the second, zero beyond the distance
    of interest, the nearest point of the first shape and that of the second (3,), in the world.
    """

    distance: Any
    normal: np.ndarray
    first: np.ndarray
    second: np.ndarray


def placed_shapes(mechanism: Mechanism) -> list[CollisionShape]:
    """All shapes of a mechanism with their bodies, those of the world first, visual ones included."""
    shapes = [("world", shape) for shape in mechanism.geometry]
    shapes += [(body.name, shape) for body in mechanism.bodies for shape in body.geometry]
    return [_placed(mechanism, body, shape, number) for number, (body, shape) in enumerate(shapes)]


def _placed(mechanism: Mechanism, body: str, shape: Geometry, number: int) -> CollisionShape:
    base = mechanism.tree.placements[body]
    place = Placement(
        base.link, base.R @ np.array(shape.orientation), base.p + base.R @ np.array(shape.position)
    )
    return CollisionShape(type_of_shape(shape), sizes_of(shape), place, body, shape, number)


def shape_distance(a: CollisionShape, b: CollisionShape, poses: Sequence[Pose], reach: Any) -> ShapeDistance:
    """The signed distance of two shapes at the world poses of the links; `reach` for two planes.

    reach [m]: the largest distance of interest. Closed forms where there are some, else the algorithm of
    Gilbert, Johnson and Keerthi. Raises UnsupportedError for kinds without a function.
    """
    if ORDER.index(a.kind) > ORDER.index(b.kind):
        found = shape_distance(b, a, poses, reach)
        return ShapeDistance(found.distance, -found.normal, found.second, found.first)
    zero = np.zeros(3, int)
    if (a.kind, b.kind) == ("plane", "plane"):
        return ShapeDistance(reach, zero, zero, zero)
    if a.kind != "plane" and (a.kind, b.kind) not in _CLOSED:
        shapes = [convex_shape_of(shape.kind, placed(shape, poses)) for shape in (a, b)]
        near = nearest_points(*shapes)
        return ShapeDistance(near.distance, near.normal, near.first, near.second)
    pair = Pair(a, b, 1, (1, 1, 1, 1, 1), (0.02, 1), (), (0.9, 0.95, 0.001, 0.5, 2), reach, 0)
    best = ShapeDistance(reach, zero, zero, zero)
    for point in contact_points(pair, poses):
        d, n = point.distance, point.frame[0]
        half = n * (d / 2)
        best = nearer(best, ShapeDistance(d, n, point.position - half, point.position + half))
    return best


def nearer(one: ShapeDistance, other: ShapeDistance) -> ShapeDistance:
    """The one of less distance; the first one if both are the same."""
    better = less(other.distance, one.distance)
    vectors = [
        np.array([where(better, y, x) for x, y in zip(p, q, strict=True)])
        for p, q in zip(one[1:], other[1:], strict=True)
    ]
    return ShapeDistance(where(better, other.distance, one.distance), *vectors)
