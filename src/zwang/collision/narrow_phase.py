"""Narrow phase: the contact points of a pair of shapes, with one function for each pair of kinds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from zwang.collision import box_box as box_shapes
from zwang.collision import plane as plane_shapes
from zwang.collision import sphere_capsule_box, sphere_capsule_cylinder
from zwang.collision.contact_point import ContactPoint
from zwang.collision.convex import manifold
from zwang.collision.convex import nearest_points as convex
from zwang.collision.height_field import height_table, prism_contact
from zwang.collision.pairs import CollisionShape, Pair
from zwang.collision.shapes import CONVEX, COUNTS, PlacedShape
from zwang.errors import UnsupportedError
from zwang.kinematics.poses import Pose, placement_pose
from zwang.mechanism.geometry import HeightField

FUNCTIONS: dict[tuple[str, str], Callable[[PlacedShape, PlacedShape, Any], tuple[ContactPoint, ...]]] = {
    ("plane", "sphere"): plane_shapes.plane_sphere,
    ("plane", "capsule"): plane_shapes.plane_capsule,
    ("plane", "ellipsoid"): plane_shapes.plane_ellipsoid,
    ("plane", "cylinder"): plane_shapes.plane_cylinder,
    ("plane", "box"): plane_shapes.plane_box,
    ("plane", "mesh"): plane_shapes.plane_mesh,
    ("sphere", "sphere"): sphere_capsule_cylinder.sphere_sphere,
    ("sphere", "capsule"): sphere_capsule_cylinder.sphere_capsule,
    ("sphere", "cylinder"): sphere_capsule_cylinder.sphere_cylinder,
    ("sphere", "box"): sphere_capsule_box.sphere_box,
    ("capsule", "capsule"): sphere_capsule_cylinder.capsule_capsule,
    ("capsule", "box"): sphere_capsule_box.capsule_box,
    ("box", "box"): box_shapes.box_box,
}


def _convex(
    kinds: tuple[str, str], count: int
) -> Callable[[PlacedShape, PlacedShape, Any], tuple[ContactPoint, ...]]:
    """The function for a pair of kinds without a closed form, with so many points."""
    if count == 1:
        return lambda a, b, reach: (convex.convex_contact(*kinds, a, b, reach),)
    return lambda a, b, reach: manifold.contact_manifold(*kinds, a, b, reach, count)


FUNCTIONS |= {k: _convex(k, COUNTS[k]) for k in CONVEX if "heightfield" not in k}


def placed(shape: CollisionShape, poses: Sequence[Pose]) -> PlacedShape:
    """A shape in the world, for the poses of the links."""
    R, p = placement_pose(list(poses), shape.placement)
    heights = height_table(shape.shape) if isinstance(shape.shape, HeightField) else None
    return PlacedShape(shape.sizes, R, p, heights)


def contact_points(pair: Pair, poses: Sequence[Pose]) -> tuple[ContactPoint, ...]:
    """Contact points of a pair, `pair.count` of them, some perhaps FAR. Raises UnsupportedError for kinds
    without a function.
    """
    return contact_points_between(pair, placed(pair.a, poses), placed(pair.b, poses))


def contact_points_between(pair: Pair, a: PlacedShape, b: PlacedShape) -> tuple[ContactPoint, ...]:
    """`contact_points` for shapes already placed in the world."""
    if isinstance(pair.a.shape, HeightField):
        return (prism_contact(pair.a.shape, pair.b.kind, a, b, pair.reach),)
    if pair.in_order and pair.kinds == ("plane", "box"):
        return plane_shapes.plane_box_in_order(a, b)
    if pair.is_iterated:
        return _convex(pair.kinds, pair.count)(a, b, pair.reach)
    if pair.kinds not in FUNCTIONS:
        raise UnsupportedError(
            f"the contact of {pair.a.name!r} with {pair.b.name!r}: {' with '.join(pair.kinds)} is not "
            "supported"
        )
    return FUNCTIONS[pair.kinds](a, b, pair.reach)
