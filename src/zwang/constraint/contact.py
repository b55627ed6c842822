"""Contact rows: the normal and friction, as edges of a pyramid or as an elliptic cone. Source: MuJoCo
documentation, Computation, "Contact".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from zwang.algebra.norms import TINY
from zwang.algebra.rotations import cross
from zwang.collision import ContactPoint, Pair, PlacedShape
from zwang.collision.narrow_phase import placed
from zwang.collision.shapes import extents, sizes_of, type_of_shape
from zwang.constraint.context import RowContext
from zwang.constraint.inverse_weights import InverseWeights, smallest_R
from zwang.constraint.rows import Cone, JointScrews, Rows, rows_of_kind
from zwang.constraint.softness import (
    can_close,
    hard_softness_rows,
    impedance,
    reference,
    regularisation,
    soft_rows,
)
from zwang.mechanism.geometry import Geometry, HeightField, Plane
from zwang.mechanism.joints import Softness
from zwang.scalar import absolute, logical_and, logical_or, maximum, sqrt

CLOSED_TIME = 1e-6  # [steps] contacts that close within this time of an impact take part in it
CLOSED_DISTANCE = 1e-12  # [m] above the rounding errors of positions


class PairInverseWeights(NamedTuple):
    """Inverse weights of a pair of bodies, of translation [1/kg] and of rotation [1/(kg m^2)], and the
    smallest R [1/kg] of the normal row of a soft contact.
    """

    translation: Any
    rotation: Any
    smallest_R: Any = TINY


class Contact(NamedTuple):
    """A contact point with its Jacobian and the parameters of its pair.

    J (6, nv): J v is the velocity of b relative to a in contact axes, normal first, linear before angular.
    Where a or b is the world, v stands for the spatial velocity (6,) of the other link. distance [m]: the
    signed distance. inverse_weight: that of its pair. friction: condim - 1 coefficients. bias: Jdot v (6,) of
    a hard contact. surface_velocity: that of the materials of moving surfaces (6,), in contact axes, in
    addition to J v.
    """

    name: str
    pair: Pair
    distance: Any
    J: np.ndarray
    inverse_weight: PairInverseWeights
    friction: tuple[Any, ...]
    active: Any
    bias: Any = (0,) * 6
    surface_velocity: Any = None

    @property
    def hard(self) -> bool:
        """Whether the contact is hard."""
        return is_hard_contact(self.pair)


def link_screws_at(context: RowContext) -> JointScrews:
    """The joint screws of all links in this context."""
    tree = context.mechanism.tree
    columns = tuple(context.kinematics.world_motion_subspaces)
    return JointScrews(
        tuple(link.parent for link in tree.links), tuple(link.v for link in tree.links), columns
    )


def is_hard_contact(pair: Pair) -> bool:
    """Whether the contact is hard, because one of the shapes has a hard surface."""
    return pair.a.shape.surface.hard or pair.b.shape.surface.hard


def restitution(pair: Pair) -> Any:
    """Coefficient of restitution of a hard contact: the larger one of the two shapes."""
    return maximum(pair.a.shape.surface.restitution, pair.b.shape.surface.restitution)


def is_active(
    context: RowContext, pair: Pair, point: ContactPoint, velocity: Any, free_acceleration: Any = None
) -> Any:
    """Whether the distance is within the pair's margin. A hard contact is active as soon as one step could
    close it; for an impact, see `takes_part_in_impact`.

    velocity (3,): of b relative to a at the contact point [m/s]. free_acceleration [m/s^2]: of the contact
    along its normal, where the context has one.
    """
    if not is_hard_contact(pair):
        return point.distance < pair.margin + context.widening
    u, h = point.frame[0] @ velocity, context.step.size
    if context.impulsive:
        return takes_part_in_impact(context, pair, point.distance, u)
    near = can_close(point.distance, u, h)
    resting_speed = context.resting_speed
    if free_acceleration is not None:
        resting_speed = maximum(resting_speed, h * absolute(free_acceleration))
    return logical_and(near, logical_or(context.approaching_active, u >= -resting_speed))


def takes_part_in_impact(context: RowContext, pair: Pair, distance: Any, u: Any) -> Any:
    """Whether a hard contact with the normal velocity u [m/s] takes part in an impact: closed, and either
    approaching faster than the resting speed or without restitution.
    """
    closed = distance < CLOSED_TIME * context.step.size * absolute(u) + CLOSED_DISTANCE
    return logical_and(closed, logical_or(u < -context.resting_speed, restitution(pair) <= 0))


def surface_velocity_of(context: RowContext, pair: Pair, point: ContactPoint) -> np.ndarray | None:
    """The `surface_velocity` at a contact point of a pair; None if no surface moves."""
    if not has_moving_surface(pair):
        return None
    shapes = placed(pair.a, context.poses), placed(pair.b, context.poses)
    return surface_velocity(surface_velocities(pair), shapes, point)


def has_moving_surface(pair: Pair) -> bool:
    """Whether the material of one of the surfaces moves."""
    return pair.a.shape.surface.is_moving or pair.b.shape.surface.is_moving


def surface_velocities(pair: Pair) -> tuple[Any, Any]:
    """The velocities (6,) of the materials of both surfaces, each in the axes of its shape."""
    return tuple(pair.a.shape.surface.velocity), tuple(pair.b.shape.surface.velocity)


def surface_velocity(
    velocities: tuple[Any, Any], shapes: tuple[PlacedShape, PlacedShape], point: ContactPoint
) -> np.ndarray:
    """Velocity (6,) of the material of b relative to a at the contact point, in contact axes, linear first.

    The normal and the rolling velocities are zero. Source: MuJoCo documentation, XML reference,
    geom/surfacevel.
    """
    total: Any = np.zeros(6, int)
    for sign, velocity, shape in zip((-1, 1), velocities, shapes, strict=True):
        u, w = shape.R @ np.array(velocity[:3]), shape.R @ np.array(velocity[3:])
        total = total + sign * np.concatenate([u + cross(w, point.position - shape.p), w])
    linear, angular = point.frame @ total[:3], point.frame @ total[3:]
    return np.array([0, *linear[1:], angular[0], 0, 0])


def contact_name(pair: Pair, number: int) -> str:
    """Name of a pair's contact point of this number, from 0."""
    name = pair.name or f"contact of {pair.a.name} and {pair.b.name}"
    return f"{name} #{number + 1}" if pair.count > 1 else name


def pair_inverse_weights(context: RowContext, pairs: Sequence[Pair]) -> list[PairInverseWeights]:
    """For each pair the sum of the inverse weights of both bodies, and the smallest R, from points of both
    shapes.
    """
    weights, found = context.inverse_weights, list[PairInverseWeights]()
    shapes = {shape.index: shape for pair in pairs for shape in (pair.a, pair.b)}
    A = {k: _inverse_weight_at_surface(weights, shape.body, shape.shape) for k, shape in shapes.items()}
    for pair in pairs:
        first, second = weights.bodies[pair.a.body], weights.bodies[pair.b.body]
        translation, rotation = first[0] + second[0], first[1] + second[1]
        least = smallest_R(translation, A[pair.a.index] + A[pair.b.index])
        found.append(PairInverseWeights(translation, rotation, least))
    return found


def _inverse_weight_at_surface(weights: InverseWeights, body: str, shape: Geometry) -> Any:
    """The mean inverse weight [1/kg] of points of a shape: of the corners of its box, or of the origin of a
    plane or a height field.
    """
    if isinstance(shape, Plane | HeightField):
        return weights.at_point(body, shape.position)
    low, high = extents(type_of_shape(shape), sizes_of(shape))
    R = np.array(shape.orientation)
    centre = np.array(shape.position) + R @ ((low + high) / 2)
    return weights.at_point(body, centre, (R * ((high - low) / 2)).T)


def rows_of_contact(context: RowContext, contact: Contact) -> Rows:
    """Rows of one contact: frictionless, pyramidal or elliptic; hard contacts with friction are always
    elliptic.
    """
    if contact.surface_velocity is not None:  # J v + c = (J, c) (v, 1)
        extended = np.concatenate([contact.J, np.array(contact.surface_velocity).reshape(6, 1)], axis=1)
        moving = contact._replace(J=extended, surface_velocity=None)
        rows = rows_of_contact(context._replace(v=np.array([*context.v, 1])), moving)
        return rows.replaced(J=rows.J[:, :-1])
    if contact.hard:
        contact = contact._replace(distance=context.distance_on_motion(contact.distance, contact.bias[0]))
    if contact.pair.condim == 1:
        weights = contact.inverse_weight
        return _unilateral_rows(context, contact, contact.J[:1], weights.translation, weights.smallest_R)
    if contact.hard:
        return _hard_cone_rows(context, contact)
    return (_pyramid_rows if context.mechanism.options.cone == "pyramidal" else _cone_rows)(context, contact)


def _unilateral_rows(
    context: RowContext, contact: Contact, J: np.ndarray, inverse_weight: Any, least_R: Any
) -> Rows:
    """Rows with f >= 0 and the contact's distance; least_R: the lower bound of R."""
    distances, active = [contact.distance] * len(J), contact.active
    if contact.hard:
        return hard_softness_rows(
            contact.name,
            "contact",
            J,
            context.v,
            distances,
            inverse_weight=inverse_weight,
            bias=contact.bias[0],
            **_time_stepping(context, contact),
            active=active,
        )
    softness = Softness(contact.pair.solref, contact.pair.solimp)
    return soft_rows(
        contact.name,
        "contact",
        J,
        context.v,
        distances,
        softness,
        inverse_weight=inverse_weight,
        margin=contact.pair.margin,
        shortest_time=context.shortest_time,
        active=active,
        smallest_R=least_R,
    )


def _time_stepping(context: RowContext, contact: Contact) -> dict[str, Any]:
    """The step size and the damping of a hard contact, or the restitution of an impact, whose rows give the
    change of v.
    """
    if context.impulsive:
        return {"timestep": 1, "restitution": restitution(contact.pair)}
    return {"timestep": context.step.size, "damping": context.step.closing_damping}


def _pyramid_rows(context: RowContext, contact: Contact) -> Rows:
    """Pyramidal cone: two edges J_normal +- friction J_direction for each friction direction, with R = 2
    mu^2 R_normal.

    With this R the pyramid has the tangential stiffness of the elliptic cone. R_normal has the inverse
    weight of the first edge, (1 + friction^2) times that of the contact.
    """
    n, *directions = contact.J[: contact.pair.condim]
    edges = [n + s * mu * t for mu, t in zip(contact.friction, directions, strict=True) for s in (1, -1)]
    friction_squared = contact.friction[0] * contact.friction[0]
    mu_squared = friction_squared / maximum(TINY, context.mechanism.options.impratio)
    inverse_weight = 2 * mu_squared * (1 + friction_squared) * contact.inverse_weight.translation
    least = 2 * mu_squared * contact.inverse_weight.smallest_R
    return _unilateral_rows(context, contact, np.array(edges), inverse_weight, least)


def _cone_rows(context: RowContext, contact: Contact) -> Rows:
    """Elliptic cone: the normal row has the contact's softness; friction rows have no stiffness, and R_j
    friction_j^2 = R_1 friction_1^2.
    """
    pair, n = contact.pair, contact.pair.condim
    J, r = contact.J[:n], contact.distance - contact.pair.margin
    velocity = J @ np.array(context.v)
    d = impedance(pair.solimp, r)
    K, B = reference(pair.solref, pair.solimp, context.shortest_time)
    _, B_tangent = reference(pair.solreffriction or pair.solref, pair.solimp, context.shortest_time)
    ratio = maximum(TINY, context.mechanism.options.impratio)
    R_normal = regularisation(d, contact.inverse_weight.translation, contact.inverse_weight.smallest_R)
    f = contact.friction
    R = [R_normal, *(R_normal / ratio * (f[0] * f[0]) / (x * x) for x in f)]
    aref = [-B * velocity[0] - K * d * r, *(-B_tangent * u for u in velocity[1:])]
    zeros = [0] * (n - 1)
    rows = rows_of_kind(
        contact.name, "cone", J, aref, R=R, position=[contact.distance, *zeros], velocity=velocity,
        margin=[pair.margin, *zeros], impedance=d, inverse_weight=[x * d / (1 - d) for x in R],
        active=contact.active,
    )  # fmt: skip
    return rows.as_cone(Cone(0, f, f[0] / sqrt(ratio)))


def _hard_cone_rows(context: RowContext, contact: Contact) -> Rows:
    """Elliptic cone with R = 0: after the step the normal velocity closes the distance at most, and the slip
    is zero inside the friction cone.
    """
    n, f = contact.pair.condim, contact.friction
    inverse_weights = [
        contact.inverse_weight.translation,
        *(contact.inverse_weight.translation * (f[0] * f[0]) / (x * x) for x in f),
    ]
    rows = hard_softness_rows(
        contact.name,
        "contact",
        contact.J[:n],
        context.v,
        [contact.distance, *[0] * (n - 1)],
        inverse_weight=inverse_weights,
        bias=list(contact.bias[:n]),
        **_time_stepping(context, contact),
        active=contact.active,
    )
    return rows.as_cone(Cone(0, f, f[0]))
