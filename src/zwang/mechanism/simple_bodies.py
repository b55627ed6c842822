"""Bodies on slides alone along their principal axes, which MuJoCo calls simple: their inverse weight is one over their mass."""

from __future__ import annotations

from collections.abc import Iterable

from zwang.mechanism.bodies import Body
from zwang.mechanism.joints import Prismatic
from zwang.scalar import is_zero


def simple_bodies(bodies: Iterable[Body]) -> frozenset[str]:
    """The names of the bodies whose inverse weight is one over their mass, whatever the number of their slides.

    A simple body carries no other body, and moves against the world, or against a body fixed to it, on prismatic joints alone. Their
    axes are axes of its frame, in which its centre of mass is the origin and its inertia diagonal. `Body.simple` overrules this.
    Source: MuJoCo, `body_simple` equal to 2.
    """
    bodies = tuple(bodies)
    carriers = {body.parent for body in bodies}
    bases = {"world", *(body.name for body in bodies if body.parent == "world" and not body.joints)}
    return frozenset(
        body.name
        for body in bodies
        if (_slides_alone(body, bases, carriers) if body.simple is None else body.simple)
    )


def _slides_alone(body: Body, bases: set[str], carriers: set[str]) -> bool:
    """Whether the rule of `simple_bodies` holds for a body."""
    if not body.joints or body.parent not in bases or body.name in carriers:
        return False
    off_diagonal = [body.inertia[i][j] for i in range(3) for j in range(i)]
    return all(is_zero(x) for x in (*body.com, *off_diagonal)) and all(
        isinstance(joint, Prismatic)
        and all(is_zero(x) for x in joint.position)
        and sum(not is_zero(x) for x in joint.axis) == 1
        for joint in body.joints
    )
