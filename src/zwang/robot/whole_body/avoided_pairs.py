"""Which pairs of shapes keep a distance from each other, and the Jacobian of their distance."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from zwang.collision.distances import ShapeDistance, placed_shapes
from zwang.collision.pairs import CollisionShape, candidate_pairs
from zwang.errors import DescriptionError, UnknownNameError
from zwang.kinematics.kinematics import Kinematics
from zwang.mechanism.mechanism import Mechanism
from zwang.robot.whole_body.weighted_tasks import CollisionAvoidance


def avoided_pairs(
    m: Mechanism, avoidance: CollisionAvoidance
) -> Iterable[tuple[CollisionShape, CollisionShape]]:
    """The pairs of shapes of a `CollisionAvoidance`.

    Raises UnknownNameError for an unknown body, and DescriptionError for a pair of bodies that has no shapes
    or cannot move relative to each other.
    """
    if avoidance.pairs is None:
        found = [(pair.a, pair.b) for pair in candidate_pairs(m)]
        if not found:
            raise DescriptionError(
                f"no shapes of mechanism {m.name!r} can be in contact; give pairs of bodies to "
                "CollisionAvoidance"
            )
        return found
    shapes = [shape for shape in placed_shapes(m) if not shape.shape.visual_only]
    names = ("world", *(body.name for body in m.bodies))
    found = []
    for bodies in avoidance.pairs:
        for name in bodies:
            if name not in names:
                raise UnknownNameError("body", name, names)
        first, second = ([shape for shape in shapes if shape.body == name] for name in bodies)
        own = [(a, b) for a in first for b in second if a.placement.link != b.placement.link]
        if not own:
            raise DescriptionError(
                f"the bodies {bodies[0]!r} and {bodies[1]!r} of CollisionAvoidance have no shapes that move "
                "relative to each other; give other pairs, or geometry"
            )
        found += own
    return found


def distance_jacobian(
    kinematics: Kinematics, a: CollisionShape, b: CollisionShape, near: ShapeDistance
) -> np.ndarray:
    """The derivative J (nv,) of the signed distance d [m] of two shapes: d(q + x) = d + J x to first order.

    J x is the relative displacement of the nearest points along the normal.
    """
    J_a = kinematics.point_jacobian(a.placement.link, near.first)[:3]
    J_b = kinematics.point_jacobian(b.placement.link, near.second)[:3]
    return near.normal @ (J_b - J_a)
