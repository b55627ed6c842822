"""The gaps of a pair of shapes, from the poses of the links: one function a pair of kinds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from zwang.contact import boxed, boxes, convex, flat, patch, rounded
from zwang.contact.gap import Gap
from zwang.contact.kinds import COUNTS, Placed
from zwang.contact.pairs import Pair, Solid
from zwang.errors import UnsupportedError
from zwang.kinematics.poses import Pose, place_pose

FUNCTIONS: dict[tuple[str, str], Callable[[Placed, Placed, Any], tuple[Gap, ...]]] = {
    ("plane", "sphere"): flat.plane_sphere,
    ("plane", "capsule"): flat.plane_capsule,
    ("plane", "ellipsoid"): flat.plane_ellipsoid,
    ("plane", "cylinder"): flat.plane_cylinder,
    ("plane", "box"): flat.plane_box,
    ("plane", "mesh"): flat.plane_mesh,
    ("sphere", "sphere"): rounded.sphere_sphere,
    ("sphere", "capsule"): rounded.sphere_capsule,
    ("sphere", "cylinder"): rounded.sphere_cylinder,
    ("sphere", "box"): boxed.sphere_box,
    ("capsule", "capsule"): rounded.capsule_capsule,
    ("capsule", "box"): boxed.capsule_box,
    ("box", "box"): boxes.box_box,
}


def _convex(kinds: tuple[str, str]) -> Callable[[Placed, Placed, Any], tuple[Gap, ...]]:
    if COUNTS[kinds] == 1:
        return lambda a, b, reach: (convex.convex_gap(*kinds, a, b),)
    return lambda a, b, reach: patch.patch_gaps(*kinds, a, b)


FUNCTIONS |= {kinds: _convex(kinds) for kinds in COUNTS if kinds not in FUNCTIONS}


def placed(solid: Solid, poses: Sequence[Pose]) -> Placed:
    """A shape in the world, for the poses of the links."""
    R, p = place_pose(list(poses), solid.place)
    return Placed(solid.sizes, R, p)


def gaps(pair: Pair, poses: Sequence[Pose]) -> tuple[Gap, ...]:
    """The gaps of a pair: `pair.count` of them, some perhaps FAR. Raises UnsupportedError for kinds without a function."""
    return gaps_between(pair, placed(pair.a, poses), placed(pair.b, poses))


def gaps_between(pair: Pair, a: Placed, b: Placed) -> tuple[Gap, ...]:
    """`gaps` of a pair's shapes where they are."""
    if pair.kinds not in FUNCTIONS:
        raise UnsupportedError(
            f"the contact of {pair.a.name!r} with {pair.b.name!r}: {' with '.join(pair.kinds)} is not supported"
        )
    return FUNCTIONS[pair.kinds](a, b, pair.margin + pair.gap)
