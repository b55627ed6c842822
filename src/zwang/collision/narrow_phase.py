"""The gaps of a pair of shapes, from the poses of the links: one function a pair of kinds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from zwang.collision import box_box as boxes
from zwang.collision import convex, manifold, sphere_capsule_box, sphere_capsule_cylinder
from zwang.collision import plane as flat
from zwang.collision.contact_point import ContactPoint
from zwang.collision.pairs import CollisionShape, Pair
from zwang.collision.shapes import COUNTS, PlacedShape
from zwang.errors import UnsupportedError
from zwang.kinematics.poses import Pose, placement_pose

FUNCTIONS: dict[tuple[str, str], Callable[[PlacedShape, PlacedShape, Any], tuple[ContactPoint, ...]]] = {
    ("plane", "sphere"): flat.plane_sphere,
    ("plane", "capsule"): flat.plane_capsule,
    ("plane", "ellipsoid"): flat.plane_ellipsoid,
    ("plane", "cylinder"): flat.plane_cylinder,
    ("plane", "box"): flat.plane_box,
    ("plane", "mesh"): flat.plane_mesh,
    ("sphere", "sphere"): sphere_capsule_cylinder.sphere_sphere,
    ("sphere", "capsule"): sphere_capsule_cylinder.sphere_capsule,
    ("sphere", "cylinder"): sphere_capsule_cylinder.sphere_cylinder,
    ("sphere", "box"): sphere_capsule_box.sphere_box,
    ("capsule", "capsule"): sphere_capsule_cylinder.capsule_capsule,
    ("capsule", "box"): sphere_capsule_box.capsule_box,
    ("box", "box"): boxes.box_box,
}


def _convex(kinds: tuple[str, str]) -> Callable[[PlacedShape, PlacedShape, Any], tuple[ContactPoint, ...]]:
    if COUNTS[kinds] == 1:
        return lambda a, b, reach: (convex.convex_contact(*kinds, a, b),)
    return lambda a, b, reach: manifold.contact_manifold(*kinds, a, b)


FUNCTIONS |= {kinds: _convex(kinds) for kinds in COUNTS if kinds not in FUNCTIONS}


def placed(solid: CollisionShape, poses: Sequence[Pose]) -> PlacedShape:
    """A shape in the world, for the poses of the links."""
    R, p = placement_pose(list(poses), solid.place)
    return PlacedShape(solid.sizes, R, p)


def contact_points(pair: Pair, poses: Sequence[Pose]) -> tuple[ContactPoint, ...]:
    """The gaps of a pair: `pair.count` of them, some perhaps FAR. Raises UnsupportedError for kinds without a function."""
    return contact_points_between(pair, placed(pair.a, poses), placed(pair.b, poses))


def contact_points_between(pair: Pair, a: PlacedShape, b: PlacedShape) -> tuple[ContactPoint, ...]:
    """`gaps` of a pair's shapes where they are."""
    if pair.kinds not in FUNCTIONS:
        raise UnsupportedError(
            f"the contact of {pair.a.name!r} with {pair.b.name!r}: {' with '.join(pair.kinds)} is not supported"
        )
    return FUNCTIONS[pair.kinds](a, b, pair.margin + pair.gap)
