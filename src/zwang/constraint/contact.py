"""Contact rows: the normal and friction, as edges of a pyramid or as an elliptic cone. Source: MuJoCo
documentation, Computation, "Contact".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from zwang.algebra.rotations import skew
from zwang.collision import FAR, ContactPoint, Pair, contact_points, passes_broad_phase
from zwang.collision.narrow_phase import placed
from zwang.collision.penetration import with_search_margin
from zwang.constraint.contact_bias import compute_motions, contact_biases, link_motion
from zwang.constraint.context import RowContext
from zwang.constraint.rows import PER_ROW, Cone, JointScrews, LinkRows, Rows, array
from zwang.constraint.softness import (
    TINY,
    hard_softness_rows,
    impedance,
    reference,
    regularisation,
    soft_rows,
)
from zwang.kinematics.jacobians import relative_jacobian
from zwang.mechanism.joints import Softness
from zwang.mechanism.tree import WORLD
from zwang.scalar import absolute, cond, maximum, sqrt, value_is_constant

IMPULSIVE_ACCELERATION = 1000.0  # [m/s^2] up to which a hard contact is active before it closes


class Contact(NamedTuple):
    """A contact point with its Jacobian and the parameters of its pair.

    J (6, nv): J v is the velocity of b relative to a in contact axes, normal first, linear before angular.
    Where a or b is the world, v stands for the spatial velocity (6,) of the other link. distance [m]: the
    signed distance. inverse_weight: (of translation [1/kg], of rotation [1/(kg m^2)]). friction: condim - 1
    coefficients. bias: Jdot v (6,) of a hard contact.
    """

    name: str
    pair: Pair
    distance: Any
    J: np.ndarray
    inverse_weight: tuple[Any, Any]
    friction: tuple[Any, ...]
    active: Any
    bias: Any = (0,) * 6

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


def contact_rows(context: RowContext, pairs: Sequence[Pair], screws: JointScrews) -> list[Rows]:
    """Rows of the pairs of shapes that are in contact or, where values are traced, may be."""
    spatial_velocities = screws.spatial_velocities(np.array(context.v))
    if any(is_hard_contact(pair) for pair in pairs):
        compute_motions(context.kinematics)
    return [rows for pair in pairs for rows in _rows_by_link(context, pair, screws, spatial_velocities)]


def _rows_by_link(
    context: RowContext, pair: Pair, screws: JointScrews, spatial_velocities: list[np.ndarray]
) -> list[Rows]:
    """Rows of one pair; if one shape is fixed to the world, they are known by the spatial velocity of the
    other's link too.
    """
    links = pair.a.placement.link, pair.b.placement.link
    if WORLD not in links:
        return pair_rows(context, pair)
    link = max(links)
    B = screws.jacobian(link, context.mechanism.nv)
    found = pair_rows(context._replace(v=spatial_velocities[link]), pair)
    return [
        rows.replaced(J=rows.J @ B, link_rows=(LinkRows(0, len(rows), link, rows.J),), screws=screws)
        for rows in found
    ]


def pair_rows(context: RowContext, pair: Pair) -> list[Rows]:
    """Rows of one pair; each contact point is evaluated only if it is active in some world."""
    # hard contacts are active before the bounding spheres overlap
    near = is_hard_contact(pair) or passes_broad_phase(pair, context.poses)
    if value_is_constant(near) and not near:
        return []
    parts, columns = [], _columns(context, pair)
    for k, point in enumerate(
        contact_points(with_search_margin(pair) if is_hard_contact(pair) else pair, context.poses)
    ):
        active = is_active(context, pair, point)
        if value_is_constant(active):
            parts += [rows_of_contact(context, contact_of(context, pair, point, k, True))] if active else []
            continue
        inactive = _inactive_rows(context, pair, k)
        values = cond(
            active,
            lambda k=k, point=point, on=active: _state_dependent(
                rows_of_contact(context, contact_of(context, pair, point, k, on)), columns
            ),
            lambda rows=inactive: _state_dependent(rows, columns),
        )
        parts.append(_with_values(inactive, {**values, "active": [active] * len(inactive)}, columns))
    return parts


def is_hard_contact(pair: Pair) -> bool:
    """Whether the contact is hard, because one of the shapes has a hard surface."""
    return pair.a.shape.surface.hard or pair.b.shape.surface.hard


def restitution(pair: Pair) -> Any:
    """Coefficient of restitution of a hard contact: the larger one of the two shapes."""
    return maximum(pair.a.shape.surface.restitution, pair.b.shape.surface.restitution)


def is_active(context: RowContext, pair: Pair, point: ContactPoint) -> Any:
    """Whether the distance is within the pair's margin. A hard contact is active as soon as one step could
    close it.
    """
    if not is_hard_contact(pair):
        return point.distance < pair.margin
    J = _jacobian(context, pair, point.position)
    speed = absolute(point.frame[0] @ J[:3] @ np.array(context.v))
    h = context.timestep
    return point.distance < 2 * h * speed + IMPULSIVE_ACCELERATION * h * h


def _inactive_rows(context: RowContext, pair: Pair, number: int) -> Rows:
    """Inactive rows of the form that the pair's contact point has."""
    no_contact = ContactPoint(FAR, np.zeros(3), np.eye(3))
    rows = rows_of_contact(context, contact_of(context, pair, no_contact, number, False))
    zero, one = np.zeros(len(rows)), np.ones(len(rows))
    return rows.replaced(
        J=np.zeros(rows.J.shape),
        aref=zero,
        R=rows.R if any(rows.hard) else one,
        position=zero,
        velocity=zero,
        margin=zero,
        impedance=zero,
        inverse_weight=one,
        bound=zero,
        active=np.array([False] * len(rows)),
    )


def _jacobian(context: RowContext, pair: Pair, p: Any) -> np.ndarray:
    """Jacobian J (6, nv) of b relative to a at the point p; against the world J (6, 6), by the spatial
    velocity of the moving link.
    """
    a, b = pair.a.placement.link, pair.b.placement.link
    if WORLD not in (a, b):
        return relative_jacobian(context.mechanism.tree, context.poses, a, b, p)
    sign, one = (1 if a == WORLD else -1), np.eye(3, dtype=int)
    return sign * np.block([[one, -skew(p)], [0 * one, one]])  # v + w x p


def _columns(context: RowContext, pair: Pair) -> list[int]:
    """The velocities that move the pair's bodies relative to each other, or the six components of a spatial
    velocity.
    """
    tree = context.mechanism.tree
    if WORLD in (pair.a.placement.link, pair.b.placement.link):
        return list(range(6))
    paths = [set(tree.path(geom.placement.link)) for geom in (pair.a, pair.b)]
    return [
        k for i in sorted(paths[0] ^ paths[1]) for k in range(tree.links[i].v.start, tree.links[i].v.stop)
    ]


def _state_dependent(rows: Rows, columns: list[int]) -> dict[str, Any]:
    """The values of rows that depend on the state: R unless it is zero, and the nonzero columns of J."""
    changing = [name for name in PER_ROW if name != "R" or not any(rows.hard)]
    return {"J": rows.J[:, columns], **{name: getattr(rows, name) for name in changing}}


def _with_values(rows: Rows, numbers: dict[str, Any], columns: list[int]) -> Rows:
    """These rows with other values."""
    n = len(rows)
    J = np.zeros(rows.J.shape, int).astype(object)
    J[:, columns] = numbers["J"]
    changes = {name: np.array(list(values)) for name, values in numbers.items() if name != "J"}
    return rows.replaced(J=J, **{**changes, "active": np.array([numbers["active"][0]] * n)})


def contact_of(context: RowContext, pair: Pair, point: ContactPoint, number: int, active: Any) -> Contact:
    """Contact record of a contact point; number: of the point in the pair, from 0."""
    J = _jacobian(context, pair, point.position)
    J = np.concatenate([point.frame @ J[:3], point.frame @ J[3:]])
    inverse_weight = pair_inverse_weights(context, pair)
    return Contact(
        contact_name(pair, number),
        pair,
        point.distance,
        J,
        inverse_weight,
        tuple(pair.friction[: pair.condim - 1]),
        active,
        _hard_bias(context, pair, number) if active is not False and is_hard_contact(pair) else (0,) * 6,
    )


def _hard_bias(context: RowContext, pair: Pair, number: int) -> np.ndarray:
    """Jdot v (6,) of a contact point of a hard pair."""
    a, b = (placed(geom, context.poses) for geom in (pair.a, pair.b))
    motions = [link_motion(context.kinematics, geom.placement.link) for geom in (pair.a, pair.b)]
    return contact_biases(with_search_margin(pair), a, b, *motions)[number]


def contact_name(pair: Pair, number: int) -> str:
    """Name of a pair's contact point of this number, from 0."""
    name = pair.name or f"contact of {pair.a.name} and {pair.b.name}"
    return f"{name} #{number + 1}" if pair.count > 1 else name


def pair_inverse_weights(context: RowContext, pair: Pair) -> tuple[Any, Any]:
    """Sum of the inverse weights (of translation, of rotation) of both bodies."""
    first, second = (context.inverse_weights.bodies[geom.body] for geom in (pair.a, pair.b))
    return first[0] + second[0], first[1] + second[1]


def rows_of_contact(context: RowContext, contact: Contact) -> Rows:
    """Rows of one contact: frictionless, pyramidal or elliptic; hard contacts with friction are always
    elliptic.
    """
    if contact.pair.condim == 1:
        return _unilateral_rows(context, contact, contact.J[:1], contact.inverse_weight[0])
    if contact.hard:
        return _hard_cone_rows(context, contact)
    return (_pyramid_rows if context.mechanism.options.cone == "pyramidal" else _cone_rows)(context, contact)


def _unilateral_rows(
    context: RowContext, contact: Contact, J: np.ndarray, inverse_weight: Any, smallest_R: Any = TINY
) -> Rows:
    """Rows with f >= 0 and the contact's distance; smallest_R: the lower bound of R."""
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
            timestep=context.timestep,
            active=active,
            restitution=restitution(contact.pair),
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
        smallest_R=smallest_R,
    )


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
    inverse_weight = 2 * mu_squared * (1 + friction_squared) * contact.inverse_weight[0]
    return _unilateral_rows(context, contact, np.array(edges), inverse_weight, 2 * mu_squared * TINY)


def _cone_rows(context: RowContext, contact: Contact) -> Rows:
    """Elliptic cone: the normal row has the contact's softness; friction rows have no stiffness, and R_j
    friction_j^2 = R_1 friction_1^2.
    """
    pair, n = contact.pair, contact.pair.condim
    J, r = contact.J[:n], contact.distance - contact.pair.margin
    velocity = J @ np.array(context.v)
    d = impedance(pair.solimp, r)
    K, B = reference(pair.solref, pair.solimp, context.shortest_time)
    solref_tangent = pair.solreffriction if any(pair.solreffriction) else pair.solref
    _, B_tangent = reference(solref_tangent, pair.solimp, context.shortest_time)
    ratio = maximum(TINY, context.mechanism.options.impratio)
    R_normal, f = regularisation(d, contact.inverse_weight[0]), contact.friction
    R = [R_normal, *(R_normal / ratio * (f[0] * f[0]) / (x * x) for x in f)]
    aref = [-B * velocity[0] - K * d * r, *(-B_tangent * u for u in velocity[1:])]
    zeros = [0] * (n - 1)
    return Rows(
        (contact.name,) * n,
        ("cone",) * n,
        J,
        array(aref),
        array(R),
        array([contact.distance, *zeros]),
        velocity,
        array([pair.margin, *zeros]),
        array([d] * n),
        array([x * d / (1 - d) for x in R]),
        array([0] * n),
        np.array([contact.active] * n),
        (Cone(0, f, f[0] / sqrt(ratio)),),
    )


def _hard_cone_rows(context: RowContext, contact: Contact) -> Rows:
    """Elliptic cone with R = 0: after the step the normal velocity closes the distance at most, and the slip
    is zero inside the friction cone.
    """
    n, f, h = contact.pair.condim, contact.friction, context.timestep
    inverse_weights = [
        contact.inverse_weight[0],
        *(contact.inverse_weight[0] * (f[0] * f[0]) / (x * x) for x in f),
    ]
    rows = hard_softness_rows(
        contact.name,
        "contact",
        contact.J[:n],
        context.v,
        [contact.distance, *[0] * (n - 1)],
        inverse_weight=inverse_weights,
        bias=list(contact.bias[:n]),
        timestep=h,
        active=contact.active,
        restitution=restitution(contact.pair),
    )
    return rows.as_cone(Cone(0, f, f[0]))
