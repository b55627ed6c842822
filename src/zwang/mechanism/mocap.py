"""The poses of mocap bodies as parameters of a mechanism."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from zwang.algebra.rotations import from_quaternion, to_quaternion
from zwang.errors import DescriptionError
from zwang.mechanism.bodies import Body
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.numbers import IDENTITY
from zwang.mechanism.type_validation import validated_arguments
from zwang.scalar import are_constant, symbol

COORDINATES = ("x", "y", "z", "qw", "qx", "qy", "qz")


class MocapParameters(NamedTuple):
    """A mechanism whose mocap bodies have symbols as poses, and the values of these symbols by name.

    The symbols of a body are `BODY.x`, `BODY.y`, `BODY.z` [m] and `BODY.qw`, `BODY.qx`, `BODY.qy`, `BODY.qz`,
    a quaternion, which need not have unit length.
    """

    mechanism: Mechanism
    values: dict[str, float]


@validated_arguments()
def with_mocap_parameters(mechanism: Mechanism, keyframe: str | None = None) -> MocapParameters:
    """The mechanism with the poses of its mocap bodies as parameters, and their values.

    mechanism: one with bodies that have `mocap=True`, as those of an MJCF file. keyframe: the name of a
    keyframe, whose mocap poses are then the values; by default they are the poses in the description.

    The values are the `params` of compiled functions and of `zw.simulate`. They may differ from world to
    world and from call to call of `step`, so that a body follows a measured motion; its velocity counts as
    zero, as in MuJoCo. The lengths and inverse weights of tendons in the home configuration remain those of
    the poses in the description, the `home_pose` of the bodies. Raises DescriptionError for a mechanism
    without mocap bodies, or with symbols in their poses, and UnknownNameError.
    """
    moved = [body for body in mechanism.bodies if body.mocap]
    if not moved:
        raise DescriptionError(
            f"mechanism {mechanism.name!r} has no mocap bodies; give a fixed body of the world mocap=True"
        )
    for body in moved:
        if not are_constant(*body.position, *(x for row in body.orientation for x in row)):
            raise DescriptionError(
                f"the pose of mocap body {body.name!r} already contains symbols; give it as numbers, or set "
                "the symbols that it has"
            )
    values = mocap_values((body.name, body.position, to_quaternion(body.orientation)) for body in moved)
    if keyframe is not None:
        values |= mocap_values(mechanism.keyframe(keyframe).mocap)
    bodies = [_with_symbols(body) if body.mocap else body for body in mechanism.bodies]
    return MocapParameters(mechanism.replace(bodies=bodies), values)


def mocap_values(poses: Iterable[tuple[str, Any, Any]]) -> dict[str, float]:
    """By name the values of the symbols of mocap bodies at poses (name, position, quaternion)."""
    return {
        f"{name}.{c}": float(x)
        for name, position, quaternion in poses
        for c, x in zip(COORDINATES, (*position, *quaternion), strict=True)
    }


def _with_symbols(body: Body) -> Body:
    """The body at a pose of symbols; R = 1 + (R(q) - 1) / |q|^2 for a quaternion q of any length."""
    x, y, z, *q = (symbol(f"{body.name}.{c}") for c in COORDINATES)
    square: Any = sum((a * a for a in q), start=0)
    one = np.array(IDENTITY)
    R = one + (from_quaternion(q) - one) / square
    home = body.home_pose or (body.position, body.orientation)
    return replace(body, position=(x, y, z), orientation=tuple(map(tuple, R)), home_pose=home)


def with_home_poses(mechanism: Mechanism) -> Mechanism:
    """The mechanism with its mocap bodies at their home poses."""
    if all(body.home_pose is None for body in mechanism.bodies):
        return mechanism
    return mechanism.replace(bodies=[_at_home(body) for body in mechanism.bodies])


def _at_home(body: Body) -> Body:
    if body.home_pose is None:
        return body
    position, orientation = body.home_pose
    return replace(body, position=position, orientation=orientation, home_pose=None)


def moved_mocap_bodies(mechanism: Mechanism, poses: Iterable[tuple[str, Any, Any]]) -> list[str]:
    """The names of the mocap bodies that these poses (name, position, quaternion) move to another place than
    the description does; bodies with symbols as poses do not count.
    """
    found = []
    for name, position, quaternion in poses:
        body = mechanism.body(name)
        here: Any = (*body.position, *(x for row in body.orientation for x in row))
        if not all(isinstance(x, int | float) for x in here):
            continue
        R = from_quaternion(np.array(quaternion) / np.linalg.norm(quaternion))
        if not np.allclose(here, (*position, *R.ravel()), rtol=0, atol=1e-9):
            found.append(name)
    return found


def mocap_groups(bodies: Iterable[Body]) -> dict[str, str]:
    """For each mocap body, and each body fixed to one, the name of the mocap body."""
    found: dict[str, str] = {}
    for body in bodies:
        if body.mocap:
            found[body.name] = body.name
        elif body.parent in found and not body.joints:
            found[body.name] = found[body.parent]
    return found
