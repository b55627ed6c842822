"""Bodies with prismatic joints along their principal axes alone, which MuJoCo calls simple."""

from __future__ import annotations

from collections.abc import Iterable

from zwang.mechanism.bodies import Body
from zwang.mechanism.joints import Prismatic
from zwang.scalar import is_zero


def simple_bodies(bodies: Iterable[Body]) -> frozenset[str]:
    """The names of the bodies whose inverse weight is 1 / mass, regardless of the number of their joints.

    A simple body has no children. It is connected to the world, or to a body fixed to the world, by prismatic
    joints alone, whose axes are axes of the body frame; the origin of this frame is the centre of mass, and
    the inertia is diagonal in it. `Body.simple` takes precedence.
    Source: MuJoCo, mjModel.body_simple equal to 2.
    """
    bodies = tuple(bodies)
    parents = {body.parent for body in bodies}
    bases = {"world", *(body.name for body in bodies if body.parent == "world" and not body.joints)}
    return frozenset(
        body.name
        for body in bodies
        if (_translates_only(body, bases, parents) if body.simple is None else body.simple)
    )


def _translates_only(body: Body, bases: set[str], parents: set[str]) -> bool:
    """Whether the body is simple by the rule of `simple_bodies`."""
    if not body.joints or body.parent not in bases or body.name in parents:
        return False
    off_diagonal = [body.inertia[i][j] for i in range(3) for j in range(i)]
    return all(is_zero(x) for x in (*body.com, *off_diagonal)) and all(
        isinstance(joint, Prismatic)
        and all(is_zero(x) for x in joint.position)
        and sum(not is_zero(x) for x in joint.axis) == 1
        for joint in body.joints
    )
