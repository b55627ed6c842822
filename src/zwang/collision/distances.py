"""The signed distance of any two shapes of a mechanism, and their nearest points, also where they are far
apart.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np

from zwang.collision.convex.nearest_points import nearest_points
from zwang.collision.convex.support_functions import convex_shape_of
from zwang.collision.narrow_phase import contact_points_between
from zwang.collision.pair_groups import PairGroup, StoredPlacements
from zwang.collision.pairs import CollisionShape, Pair
from zwang.collision.shapes import ORDER, PlacedShape, sizes_of, type_of_shape
from zwang.errors import UnsupportedError
from zwang.kinematics.poses import Pose
from zwang.mechanism.geometry import Geometry
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.tree import Placement
from zwang.scalar import MutableArray, empty, fori_loop, less, where

_CLOSED = {("sphere", "sphere"), ("sphere", "capsule"), ("sphere", "cylinder"), ("sphere", "box"),
           ("capsule", "capsule")}  # fmt: skip
"""Pairs of kinds, besides those with a plane, whose contact points are exact at any distance."""


_NUMBERS = 10  # of a `ShapeDistance`


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


def shape_distances(
    pairs: Sequence[tuple[CollisionShape, CollisionShape]], poses: Sequence[Pose], reaches: Sequence[Any]
) -> list[ShapeDistance]:
    """The signed distance of the shapes of each pair at the world poses of the links; the reach for two
    planes.

    reaches [m]: for each pair the largest distance of interest. Closed forms where there are some, else the
    algorithm of Gilbert, Johnson and Keerthi; traced, of many pairs in a loop. Raises UnsupportedError for
    height fields.
    """
    ordered = [(b, a) if ORDER.index(a.kind) > ORDER.index(b.kind) else (a, b) for a, b in pairs]
    groups: dict[Hashable, list[int]] = {}
    for number, (a, b) in enumerate(ordered):
        if "heightfield" in (a.kind, b.kind):
            raise UnsupportedError(
                f"the distance of {a.name!r} and {b.name!r}: height fields are not supported; leave it "
                "out, or describe the terrain by boxes"
            )
        groups.setdefault((a.kind, b.kind) if _is_closed(a, b) else None, []).append(number)
    found: dict[int, ShapeDistance] = {}
    for numbers in groups.values():
        own = [_pair(*ordered[k], reaches[k]) for k in numbers]
        found |= dict(zip(numbers, _distances_of_group(own, poses), strict=True))
    for number, (pair, (first, _)) in enumerate(zip(pairs, ordered, strict=True)):
        if pair[0] is not first:
            distance, n, p, q = found[number]
            found[number] = ShapeDistance(distance, -n, q, p)
    return [found[number] for number in range(len(pairs))]


def _is_closed(a: CollisionShape, b: CollisionShape) -> bool:
    """Whether the distance of shapes, the first of which comes first in `ORDER`, has a closed form."""
    return a.kind == "plane" or (a.kind, b.kind) in _CLOSED


def _pair(a: CollisionShape, b: CollisionShape, reach: Any) -> Pair:
    """The shapes as a pair, of which only the distance matters."""
    return Pair(a, b, 1, (1, 1, 1, 1, 1), (0.02, 1), (), (0.9, 0.95, 0.001, 0.5, 2), reach, 0)


def _distances_of_group(pairs: Sequence[Pair], poses: Sequence[Pose]) -> list[ShapeDistance]:
    """The distances of pairs of the same kinds, or of any kinds without a closed form."""
    meshes = dict.fromkeys(s.sizes.tables for p in pairs for s in (p.a, p.b) if s.kind == "mesh")
    group, stored = PairGroup(tuple(pairs), tuple(meshes)), StoredPlacements(pairs, poses)

    def visit(number: Any, results: MutableArray) -> MutableArray:
        near = _distance(group.pair(number), *group.placed(number, stored))
        for i, x in enumerate([near.distance, *near.normal, *near.first, *near.second]):
            results = results.set((number, i), x)
        return results

    results = fori_loop(0, len(pairs), visit, empty((len(pairs), _NUMBERS)))
    rows = [[results[k, i] for i in range(_NUMBERS)] for k in range(len(pairs))]
    return [ShapeDistance(x[0], *np.array(x[1:]).reshape(3, 3)) for x in rows]


def _distance(pair: Pair, a: PlacedShape, b: PlacedShape) -> ShapeDistance:
    """The distance of two shapes that are placed in the world, the first of which comes first in `ORDER`."""
    zero = np.zeros(3, int)
    best = ShapeDistance(pair.reach, zero, zero, zero)
    if pair.kinds == ("plane", "plane"):
        return best
    if not _is_closed(pair.a, pair.b):
        shapes = (convex_shape_of(s.kind, own) for s, own in zip((pair.a, pair.b), (a, b), strict=True))
        near = nearest_points(*shapes)
        return ShapeDistance(near.distance, near.normal, near.first, near.second)
    for point in contact_points_between(pair, a, b):
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
