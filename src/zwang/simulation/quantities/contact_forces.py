"""The contacts of a mechanism in one state: position, frame, distance and force of every candidate contact.

Their order is fixed, that of `contact_labels`, so that they are arrays over worlds and motions.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from zwang.collision import FAR, ContactPoint, Pair, candidate_pairs, contact_points, passes_broad_phase
from zwang.constraint.contact import (
    contact_name,
    is_hard_contact,
    link_screws_at,
    pair_inverse_weights,
    surface_velocity_of,
)
from zwang.constraint.contact_groups import point_transform, rows_of_contact_point
from zwang.constraint.context import RowContext
from zwang.constraint.rows import Rows
from zwang.mechanism.mechanism import Mechanism
from zwang.scalar import cond, where
from zwang.simulation.constraint_options import contact_enabled
from zwang.solver.cones import cone_force, row_force
from zwang.solver.solution import Solution

WRENCH = 6  # components of a contact force: force, then torque


class ContactLabel(NamedTuple):
    """A candidate contact by name, with the pair (a, b) of its shapes, and the number of its point."""

    name: str
    pair: Pair
    number: int


class ContactState(NamedTuple):
    """A candidate contact in one state.

    active: whether its rows are active. distance [m]: the signed distance. position (3,) [m]: in the world.
    frame (3, 3): the contact axes as rows, in world axes: the normal, from shape a to shape b, and two
    tangents. force (6,): the force and the torque on the body of b, in contact axes [N, N m]. Only the
    distance is meaningful where the contact is not active, and it is `FAR` where the shapes are far from each
    other.
    """

    active: Any
    distance: Any
    position: Any
    frame: Any
    force: Any


def contact_labels(mechanism: Mechanism) -> tuple[ContactLabel, ...]:
    """The labels of all candidate contacts."""
    pairs = candidate_pairs(mechanism) if contact_enabled(mechanism) else ()
    return tuple(ContactLabel(contact_name(pair, k), pair, k) for pair in pairs for k in range(pair.count))


def contact_states(context: RowContext, rows: Rows | None, solution: Solution) -> Iterator[ContactState]:
    """The states of `contact_labels`, from the constraint rows and the solution of Gauss's problem; on any
    scalar.

    Forces of soft contacts follow from the residual of their rows, that is from the acceleration, unless the
    noslip solver has changed them; those of hard ones are multipliers. Both need the rows.
    """
    mechanism = context.mechanism
    pairs = candidate_pairs(mechanism) if contact_enabled(mechanism) else ()
    if not pairs:
        return
    screws = link_screws_at(context)
    v, a = np.array(context.v), np.array(solution.acceleration)
    # spatial velocities and accelerations of the links, and of the world, WORLD = -1
    link_v, link_a = ([*screws.spatial_velocities(x), np.zeros(6, int)] for x in (v, a))
    starts, active = ({}, {}) if rows is None else (rows.starts, rows.active_by_name)
    for pair in pairs:
        if is_hard_contact(pair) or mechanism.options.noslip_iterations:
            yield from _contacts_with_rows(context, pair, starts, active, solution)
            continue
        first, second = pair.a.placement.link, pair.b.placement.link
        relative = (moving[second] - moving[first] for moving in (link_v, link_a))
        yield from _soft_contacts(context, pair, *relative)


def _contacts_with_rows(
    context: RowContext,
    pair: Pair,
    starts: dict[str, int],
    active_by_name: dict[str, Any],
    solution: Solution,
) -> Iterator[ContactState]:
    """The contacts of a pair whose forces are those of its rows, which are found by name; contacts without
    rows are inactive.
    """
    pyramid = context.mechanism.options.cone == "pyramidal" and not is_hard_contact(pair)
    count = 2 * (pair.condim - 1) if pyramid and pair.condim > 1 else pair.condim
    for k, point in enumerate(contact_points(pair, context.poses)):
        name, force, active = contact_name(pair, k), np.zeros(WRENCH), 0.0
        if name in starts:
            active = where(active_by_name[name], 1.0, 0.0)
            own = np.array([solution.force_of(starts[name] + i) for i in range(count)])
            force = np.array(
                [where(active > 0, x, 0.0) for x in wrench_components(pair, own, pyramid=pyramid)]
            )
        yield ContactState(active, point.distance, point.position, point.frame, force)


def _soft_contacts(context: RowContext, pair: Pair, V: Any, A: Any) -> list[ContactState]:
    """The contacts of a soft pair, computed only if the shapes are close in some world.

    V, A (6,): the spatial velocity and acceleration of the link of b relative to that of a.
    """

    def found() -> list[Any]:
        return [
            _soft_contact(context, pair, point, V, A)._asdict()
            for k, point in enumerate(contact_points(pair, context.poses))
        ]

    far = ContactState(0.0, FAR, np.zeros(3), np.eye(3), np.zeros(WRENCH))._asdict()
    near = passes_broad_phase(pair, context.poses)
    return [ContactState(**values) for values in cond(near, found, lambda: [far] * pair.count)]


def _soft_contact(context: RowContext, pair: Pair, point: ContactPoint, V: Any, A: Any) -> ContactState:
    """A soft contact, with the force f = -s'(J A - aref)."""
    rows = rows_of_contact_point(
        context, pair, point, (point_transform(point.position), V), pair_inverse_weights(context, pair),
        moving=surface_velocity_of(context, pair, point),
    )  # fmt: skip
    residual, D = rows.J @ A - rows.aref, rows.D
    if rows.cones:
        force = cone_force(rows.cones[0], D, residual)[0]
    else:
        force = [row_force("contact", d, y, 0)[0] for d, y in zip(D, residual, strict=True)]
    active = point.distance < pair.margin
    pyramid = context.mechanism.options.cone == "pyramidal"
    components = [where(active, x, 0.0) for x in wrench_components(pair, force, pyramid=pyramid)]
    return ContactState(
        where(active, 1.0, 0.0), point.distance, point.position, point.frame, np.array(components)
    )


def wrench_components(pair: Pair, f: Any, *, pyramid: bool) -> np.ndarray:
    """The forces f of a contact's rows as force and torque in contact axes (6,).

    The rows are a normal and tangents, or with `pyramid` the edges n +- mu t of a friction pyramid.
    """
    components = list(f[: pair.condim])
    if pyramid and pair.condim > 1:
        tangential = [mu * (f[2 * k] - f[2 * k + 1]) for k, mu in enumerate(pair.friction[: pair.condim - 1])]
        components = [sum(f[1:], start=f[0]), *tangential]
    return np.array([*components, *[0] * (WRENCH - len(components))])
