"""Bias Jdot v of hard contacts: the change of the contact velocity J v at constant generalised velocities.

The contact point and its frame move over both surfaces. They are differentiated along the motion by dual
numbers, so that a sphere that rolls on a plane has no bias, and the tip of a rod that turns about it has
omega^2 times its distance from the centre of mass.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from zwang.algebra.dual import Dual, values_and_derivatives
from zwang.algebra.rotations import cross, skew
from zwang.collision import ContactPoint, Pair, contact_points_between
from zwang.collision.shapes import PlacedShape
from zwang.kinematics.kinematics import Kinematics
from zwang.mechanism.tree import WORLD

DIFFERENTIABLE = {
    *(("plane", kind) for kind in ("sphere", "capsule", "ellipsoid", "cylinder", "box")),
    *(("sphere", kind) for kind in ("sphere", "capsule", "cylinder", "box")),
}
"""Pairs of shapes whose contact points are expressions; those of others by searches or iterations."""


class LinkMotion(NamedTuple):
    """Spatial velocity (6,) of a link at the world's origin, linear first, and its rate (6,) at constant
    generalised velocities, both in world axes.
    """

    velocity: np.ndarray
    rate: np.ndarray


AT_REST = LinkMotion(np.zeros(6, int), np.zeros(6, int))


def link_motion(kinematics: Kinematics, link: int) -> LinkMotion:
    """The motion of a link; the world is at rest."""
    if link == WORLD:
        return AT_REST
    R, o = kinematics.poses[link]
    v, w = (R @ x for x in kinematics.velocities[link])
    a, alpha = (R @ x for x in kinematics.bias_accelerations[link])
    rate = a - cross(alpha, o) - cross(w, v)
    return LinkMotion(np.concatenate([v - cross(w, o), w]), np.concatenate([rate, alpha]))


def contact_biases(
    pair: Pair, a: PlacedShape, b: PlacedShape, motion_a: LinkMotion, motion_b: LinkMotion
) -> list[np.ndarray]:
    """Jdot v (6,) of b relative to a at every contact point of a pair, in the contact's axes, linear first.

    a, b: the shapes, placed in the world. It is zero for kinds of shapes that are not in `DIFFERENTIABLE`.
    """
    if pair.kinds not in DIFFERENTIABLE:
        return [np.zeros(6)] * pair.count
    points = contact_points_between(pair, _moving(a, motion_a), _moving(b, motion_b))
    velocity, rate = motion_b.velocity - motion_a.velocity, motion_b.rate - motion_a.rate
    return [_bias(point, velocity, rate) for point in points]


def _moving(shape: PlacedShape, motion: LinkMotion) -> PlacedShape:
    """The shape with its position and rotation as dual numbers along the motion."""
    v, w = motion.velocity[:3], motion.velocity[3:]
    R_rate, p_rate = skew(w) @ shape.R, v + cross(w, shape.p)
    return PlacedShape(shape.sizes, _duals(shape.R, R_rate), _duals(shape.p, p_rate))


def _duals(values: Any, rates: Any) -> np.ndarray:
    found = np.empty(np.shape(values), dtype=object)
    for index, x in np.ndenumerate(np.asarray(values, dtype=object)):
        found[index] = Dual(x, rates[index])
    return found


def _bias(point: ContactPoint, velocity: np.ndarray, rate: np.ndarray) -> np.ndarray:
    """Derivative of F (v + w x p) and F w along the motion, with the frame F and the position p of a contact
    point.
    """
    F, F_rate = values_and_derivatives(point.frame)
    p, p_rate = values_and_derivatives(point.position)
    w, alpha = velocity[3:], rate[3:]
    linear = F_rate @ (velocity[:3] + cross(w, p)) + F @ (rate[:3] + cross(alpha, p) + cross(w, p_rate))
    return np.concatenate([linear, F_rate @ w + F @ alpha])
