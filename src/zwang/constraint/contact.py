"""Contacts: rows for the normal and for friction, as edges of a pyramid or as an elliptic cone. Source: MuJoCo, "Contact"."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from zwang.algebra.rotations import skew
from zwang.collision import FAR, ContactPoint, Pair, contact_points, passes_broad_phase
from zwang.collision.penetration import with_search_margin
from zwang.constraint.context import RowContext
from zwang.constraint.rows import PER_ROW, Cone, LinkRows, Rows, Screws, array
from zwang.constraint.softness import (
    TINY,
    hard_softness_rows,
    impedance,
    reference,
    regularisation,
    soft_rows,
)
from zwang.kinematics.jacobians import relative_jacobian, world_motion_subspaces
from zwang.mechanism.joints import Softness
from zwang.mechanism.tree import WORLD
from zwang.scalar import absolute, cond, maximum, sqrt, value_is_constant

IMPULSIVE_FACTOR = 1000.0  # the acceleration [m/s^2] that a hard contact is ready for


class Contact(NamedTuple):
    """One gap with its Jacobian J (6, nv): J v is the velocity of b against a in contact axes, normal first, linear first.

    Where one of them is the world, v stands for the six numbers of the other link's screw.

    weight: (of translation, of rotation). friction: condim - 1 coefficients.
    """

    name: str
    pair: Pair
    gap: Any
    J: np.ndarray
    weight: tuple[Any, Any]
    friction: tuple[Any, ...]
    active: Any

    @property
    def hard(self) -> bool:
        """Whether one of the shapes asks for exact contact."""
        return is_hard_contact(self.pair)


def link_screws_at(instant: RowContext) -> Screws:
    """How the links move at this instant."""
    tree = instant.mechanism.tree
    columns = tuple(world_motion_subspaces(tree, instant.poses))
    return Screws(tuple(link.parent for link in tree.links), tuple(link.v for link in tree.links), columns)


def contact_rows(instant: RowContext, pairs: Sequence[Pair], screws: Screws) -> list[Rows]:
    """The rows of those pairs of shapes that touch, or, where values are not known, may touch."""
    spatial_velocities = screws.spatial_velocities(np.array(instant.v))
    return [rows for pair in pairs for rows in _rows_by_link(instant, pair, screws, spatial_velocities)]


def _rows_by_link(instant: RowContext, pair: Pair, screws: Screws, spatial_velocities: list[np.ndarray]) -> list[Rows]:
    """The rows of one pair; if one of its shapes is fixed to the world, by the screw of the other's link first."""
    links = pair.a.place.link, pair.b.place.link
    if WORLD not in links:
        return pair_rows(instant, pair)
    link = max(links)
    B = screws.jacobian(link, instant.mechanism.nv)
    found = pair_rows(instant._replace(v=spatial_velocities[link]), pair)
    return [
        rows.replaced(J=rows.J @ B, on_links=(LinkRows(0, len(rows), link, rows.J),), screws=screws)
        for rows in found
    ]


def pair_rows(instant: RowContext, pair: Pair) -> list[Rows]:
    """The rows of one pair, of each gap only if it acts in some world."""
    close = is_hard_contact(pair) or passes_broad_phase(pair, instant.poses)  # a hard one acts before its shapes are near
    if value_is_constant(close) and not close:
        return []
    parts, columns = [], _columns(instant, pair)
    for k, gap in enumerate(contact_points(with_search_margin(pair) if is_hard_contact(pair) else pair, instant.poses)):
        active = is_active(instant, pair, gap)
        if value_is_constant(active):
            parts += [rows_of_contact(instant, contact_of(instant, pair, gap, k, True))] if active else []
            continue
        idle = _idle(instant, pair, k)
        numbers = cond(
            active,
            lambda k=k, gap=gap, on=active: _numbers(
                rows_of_contact(instant, contact_of(instant, pair, gap, k, on)), columns
            ),
            lambda rows=idle: _numbers(rows, columns),
        )
        parts.append(_with_numbers(idle, {**numbers, "active": [active] * len(idle)}, columns))
    return parts


def is_hard_contact(pair: Pair) -> bool:
    """Whether one of the shapes asks for exact contact."""
    return pair.a.shape.surface.hard or pair.b.shape.surface.hard


def restitution(pair: Pair) -> Any:
    """How a hard contact bounces: the larger number of the two shapes."""
    return maximum(pair.a.shape.surface.restitution, pair.b.shape.surface.restitution)


def is_active(instant: RowContext, pair: Pair, gap: ContactPoint) -> Any:
    """Whether the gap is within the pair's margin; a hard one has to act before it closes: as soon as one step could close it."""
    if not is_hard_contact(pair):
        return gap.distance < pair.margin
    J = _jacobian(instant, pair, gap.position)
    speed = absolute(gap.frame[0] @ J[:3] @ np.array(instant.v))
    h = instant.timestep
    return gap.distance < 2 * h * speed + IMPULSIVE_FACTOR * h * h


def _idle(instant: RowContext, pair: Pair, number: int) -> Rows:
    """Rows of the right shape that do not act."""
    nowhere = ContactPoint(FAR, np.zeros(3), np.eye(3))
    rows = rows_of_contact(instant, contact_of(instant, pair, nowhere, number, False))
    zero, one = np.zeros(len(rows)), np.ones(len(rows))
    return rows.replaced(
        J=np.zeros(rows.J.shape), aref=zero, R=rows.R if any(rows.hard) else one, position=zero, velocity=zero, margin=zero, impedance=zero, weight=one,
        bound=zero, active=np.array([False] * len(rows)),
    )  # fmt: skip


def _jacobian(instant: RowContext, pair: Pair, p: Any) -> np.ndarray:
    """J (6, nv) of b against a at p; against the world J (6, 6), by the screw of the one link."""
    a, b = pair.a.place.link, pair.b.place.link
    if WORLD not in (a, b):
        return relative_jacobian(instant.mechanism.tree, instant.poses, a, b, p)
    sign, one = (1 if a == WORLD else -1), np.eye(3, dtype=int)
    return sign * np.block([[one, -skew(p)], [0 * one, one]])  # v + w x p


def _columns(instant: RowContext, pair: Pair) -> list[int]:
    """The speeds that move the pair's bodies against each other, or all six of a link's screw."""
    tree = instant.mechanism.tree
    if WORLD in (pair.a.place.link, pair.b.place.link):
        return list(range(6))
    paths = [set(tree.path(solid.place.link)) for solid in (pair.a, pair.b)]
    return [
        k for i in sorted(paths[0] ^ paths[1]) for k in range(tree.links[i].v.start, tree.links[i].v.stop)
    ]


def _numbers(rows: Rows, columns: list[int]) -> dict[str, Any]:
    """The numbers of rows that depend on the state: R unless it is zero, and of J those columns that are not."""
    changing = [name for name in PER_ROW if name != "R" or not any(rows.hard)]
    return {"J": rows.J[:, columns], **{name: getattr(rows, name) for name in changing}}


def _with_numbers(rows: Rows, numbers: dict[str, Any], columns: list[int]) -> Rows:
    """These rows with other numbers."""
    n = len(rows)
    J = np.zeros(rows.J.shape, int).astype(object)
    J[:, columns] = numbers["J"]
    changes = {name: np.array(list(values)) for name, values in numbers.items() if name != "J"}
    return rows.replaced(J=J, **{**changes, "active": np.array([numbers["active"][0]] * n)})


def contact_of(instant: RowContext, pair: Pair, gap: ContactPoint, number: int, active: Any) -> Contact:
    """A gap with its Jacobian and the numbers of its contact."""
    J = _jacobian(instant, pair, gap.position)
    J = np.concatenate([gap.frame @ J[:3], gap.frame @ J[3:]])
    weight = pair_weight(instant, pair)
    return Contact(
        contact_name(pair, number),
        pair,
        gap.distance,
        J,
        weight,
        tuple(pair.friction[: pair.condim - 1]),
        active,
    )


def contact_name(pair: Pair, number: int) -> str:
    """What a pair's contact of that number, from 0 on, is called."""
    name = pair.name or f"contact of {pair.a.name} and {pair.b.name}"
    return f"{name} #{number + 1}" if pair.count > 1 else name


def pair_weight(instant: RowContext, pair: Pair) -> tuple[Any, Any]:
    """The inverse masses (of translation, of rotation) of both bodies together."""
    first, second = (instant.weights.bodies[solid.body] for solid in (pair.a, pair.b))
    return first[0] + second[0], first[1] + second[1]


def rows_of_contact(instant: RowContext, touch: Contact) -> Rows:
    """One contact's rows: frictionless, pyramidal or elliptic; with friction and hard always elliptic."""
    if touch.pair.condim == 1:
        return _edges(instant, touch, touch.J[:1], touch.weight[0])
    if touch.hard:
        return _ellipse_hard(instant, touch)
    return (_pyramid if instant.mechanism.options.cone == "pyramidal" else _ellipse)(instant, touch)


def _edges(instant: RowContext, touch: Contact, J: np.ndarray, weight: Any, least: Any = TINY) -> Rows:
    """Rows that are not negative, all with the contact's gap; least: of R."""
    gap, active = [touch.gap] * len(J), touch.active
    if touch.hard:
        return hard_softness_rows(
            touch.name, "contact", J, instant.v, gap, weight=weight, timestep=instant.timestep, active=active,
            restitution=restitution(touch.pair),
        )  # fmt: skip
    softness = Softness(touch.pair.solref, touch.pair.solimp)
    return soft_rows(
        touch.name, "contact", J, instant.v, gap, softness, weight=weight, margin=touch.pair.margin,
        shortest_time=instant.shortest_time, active=active, least=least,
    )  # fmt: skip


def _pyramid(instant: RowContext, touch: Contact) -> Rows:
    """Two edges for each direction of friction: J_normal +- friction J_direction. Their common R is 2 mu^2 R_normal.

    So the pyramid is as stiff across as the elliptic cone. R_normal is made with the first edge's weight (1 + friction^2) weight.
    """
    n, *directions = touch.J[: touch.pair.condim]
    edges = [n + s * mu * t for mu, t in zip(touch.friction, directions, strict=True) for s in (1, -1)]
    slope = touch.friction[0] * touch.friction[0]
    mu_squared = slope / maximum(TINY, instant.mechanism.options.impratio)
    weight = 2 * mu_squared * (1 + slope) * touch.weight[0]
    return _edges(instant, touch, np.array(edges), weight, 2 * mu_squared * TINY)


def _ellipse(instant: RowContext, touch: Contact) -> Rows:
    """A cone: the normal with the contact's softness; friction rows without stiffness, R_j friction_j^2 = R_1 friction_1^2."""
    pair, n = touch.pair, touch.pair.condim
    J, r = touch.J[:n], touch.gap - touch.pair.margin
    velocity = J @ np.array(instant.v)
    d = impedance(pair.solimp, r)
    K, B = reference(pair.solref, pair.solimp, instant.shortest_time)
    slipping = pair.solreffriction if any(pair.solreffriction) else pair.solref
    _, B_slip = reference(slipping, pair.solimp, instant.shortest_time)
    ratio = maximum(TINY, instant.mechanism.options.impratio)
    normal, f = regularisation(d, touch.weight[0]), touch.friction
    R = [normal, *(normal / ratio * (f[0] * f[0]) / (x * x) for x in f)]
    aref = [-B * velocity[0] - K * d * r, *(-B_slip * u for u in velocity[1:])]
    rest = [0] * (n - 1)
    return Rows(
        (touch.name,) * n, ("cone",) * n, J, array(aref), array(R), array([touch.gap, *rest]), velocity,
        array([pair.margin, *rest]), array([d] * n), array([x * d / (1 - d) for x in R]), array([0] * n),
        np.array([touch.active] * n), (Cone(0, f, f[0] / sqrt(ratio)),),
    )  # fmt: skip


def _ellipse_hard(instant: RowContext, touch: Contact) -> Rows:
    """A cone with R = 0: after the step the gap is closed at most, and nothing slips unless friction's bound is reached."""
    n, f, h = touch.pair.condim, touch.friction, instant.timestep
    weights = [touch.weight[0], *(touch.weight[0] * (f[0] * f[0]) / (x * x) for x in f)]
    rows = hard_softness_rows(
        touch.name, "contact", touch.J[:n], instant.v, [touch.gap, *[0] * (n - 1)], weight=weights, timestep=h,
        active=touch.active, restitution=restitution(touch.pair),
    )  # fmt: skip
    return rows.as_cone(Cone(0, f, f[0]))
