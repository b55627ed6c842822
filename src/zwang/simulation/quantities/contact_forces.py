"""The contacts of a mechanism in one state: position, frame, distance and force of every candidate contact.

Their order is fixed, that of `contact_labels`, so that they are arrays over worlds and motions.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from zwang.collision import FAR, ContactPoint, Pair, PairGroup, candidate_pairs, over_near_pairs
from zwang.constraint.contact import contact_name, is_hard_contact, link_screws_at, pair_inverse_weights
from zwang.constraint.contact_groups import (
    contact_groups,
    in_contact_axes,
    over_contact_points,
    rows_by_contact_velocity,
    surface_velocity_in,
)
from zwang.constraint.context import RowContext
from zwang.constraint.group_kinematics import GroupKinematics, group_kinematics, links_of, spatial_motions
from zwang.constraint.rows import Rows
from zwang.mechanism.mechanism import Mechanism
from zwang.scalar import MutableArray, empty, fori_loop, less_equal, logical_or, where, zeros
from zwang.scalar.stacked_pytree import StackedPytree
from zwang.simulation.constraint_options import contact_enabled
from zwang.solver.cones import forces_of_rows
from zwang.solver.solution import Solution

WRENCH = 6  # components of a contact force: force, then torque


class ContactLabel(NamedTuple):
    """A candidate contact by name, with the pair (a, b) of its shapes, and the number of its point."""

    name: str
    pair: Pair
    number: int


class ContactState(NamedTuple):
    """A candidate contact in one state.

    active: whether its rows are active, or it is at exactly the margin, without force. distance [m]:
    the signed distance. position (3,) [m]: in the world.
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


def contact_states(context: RowContext, rows: Rows | None, solution: Solution) -> list[ContactState]:
    """The states of `contact_labels`, from the constraint rows and the solution of Gauss's problem; on any
    scalar.

    Forces of soft contacts follow from the residual of their rows, that is from the acceleration, unless the
    noslip solver has changed them; those of hard ones are multipliers. Both need the rows.
    """
    mechanism = context.mechanism
    pairs = candidate_pairs(mechanism) if contact_enabled(mechanism) else ()
    if not pairs:
        return []
    kinematics = group_kinematics(context, pairs)
    accelerations = spatial_motions(link_screws_at(context), solution.acceleration)
    moving = kinematics, kinematics._replace(spatial_velocities=accelerations)
    states: dict[int, list[ContactState]] = {}
    for group in contact_groups(pairs, [0] * len(pairs)):
        found, count = _states_of_group(context, group, moving), group.first.count
        for number, pair in enumerate(group.pairs):
            states[id(pair)] = [found.state(number * count + k) for k in range(count)]
    starts, active = ({}, {}) if rows is None else (rows.starts, rows.active_by_name)
    return [
        _with_multipliers(context, pair, k, state, starts, active, solution)
        if _needs_multipliers(context, pair)
        else state
        for pair in pairs
        for k, state in enumerate(states[id(pair)])
    ]


def _needs_multipliers(context: RowContext, pair: Pair) -> bool:
    """Whether the forces of a pair's contacts do not follow from the acceleration."""
    return is_hard_contact(pair) or bool(context.mechanism.options.noslip_iterations)


def _with_multipliers(
    context: RowContext, pair: Pair, number: int, state: ContactState, starts: dict[str, int],
    active_by_name: dict[str, Any], solution: Solution,
) -> ContactState:  # fmt: skip
    """A contact with the force of its rows, which are found by name; a contact without rows is inactive."""
    name = contact_name(pair, number)
    if name not in starts:
        return state._replace(active=0.0, force=np.zeros(WRENCH))
    pyramid = context.mechanism.options.cone == "pyramidal" and not is_hard_contact(pair)
    count = 2 * (pair.condim - 1) if pyramid and pair.condim > 1 else pair.condim
    acts = active_by_name[name]
    own = np.array([solution.force_of(starts[name] + i) for i in range(count)])
    force = [where(acts, x, 0.0) for x in wrench_components(pair, own, pyramid=pyramid)]
    listed = acts if is_hard_contact(pair) else logical_or(acts, less_equal(state.distance, pair.margin))
    return state._replace(active=where(listed, 1.0, 0.0), force=np.array(force))


class _StoredStates(NamedTuple):
    """The contacts of a group: distances (n,), and in each row of `values` (n, 19) the other numbers."""

    distances: MutableArray
    values: MutableArray

    def with_state(self, number: Any, state: ContactState) -> _StoredStates:
        """The same with another state of this contact."""
        values = self.values
        numbers = [state.active, *state.position, *np.ravel(state.frame), *state.force]
        for c, x in enumerate(numbers):
            values = values.set((number, c), x)
        return _StoredStates(self.distances.set(number, state.distance), values)

    def state(self, number: int) -> ContactState:
        """The state of this contact."""
        active, *x = (self.values[number, c] for c in range(self.values.shape[1]))
        frame = np.array(x[3:12]).reshape(3, 3)
        return ContactState(active, self.distances[number], np.array(x[:3]), frame, np.array(x[12:]))


def _states_of_group(
    context: RowContext, group: PairGroup, moving: tuple[GroupKinematics, GroupKinematics]
) -> _StoredStates:
    """The contacts of a pair-type group, computed where the shapes are close in some world; without force
    where it does not follow from the acceleration. moving: the kinematics with the spatial velocities, and
    with the spatial accelerations.
    """
    count, links = group.first.count, links_of(context.mechanism.tree, group)
    weights = StackedPytree(pair_inverse_weights(context, group.pairs))

    def visit(number: Any, stored: _StoredStates) -> _StoredStates:
        def store(stored: _StoredStates, k: Any, pair: Pair, point: ContactPoint) -> _StoredStates:
            active, force = 0.0, np.zeros(WRENCH)
            if not _needs_multipliers(context, group.first):
                V, A = (in_contact_axes(point, own.relative_velocity(links[number])) for own in moving)
                surface = surface_velocity_in(group, moving[0], number, point)
                rows = rows_by_contact_velocity(context, pair, point, V, weights[number], surface)
                active, force = _soft_force(context, pair, point, rows, A)
            state = ContactState(active, point.distance, point.position, point.frame, force)
            return stored.with_state(number * count + k, state)

        return over_contact_points(group, moving[0], number, store, stored)

    contacts = len(group) * count
    far = fori_loop(0, contacts, lambda k, x: x.set(k, FAR), empty(contacts), unroll=False)
    return over_near_pairs(
        group, moving[0].shapes, visit, _StoredStates(far, zeros((contacts, 13 + WRENCH))),
        beyond_margin=is_hard_contact(group.first), unroll=group.is_unrolled,
    )  # fmt: skip


def _soft_force(
    context: RowContext, pair: Pair, point: ContactPoint, rows: Rows, A: Any
) -> tuple[Any, np.ndarray]:
    """Whether a soft contact is within the margin, and its force f = -s'(J A - aref) (6,), zero at exactly
    the margin. A (6,): the acceleration that its rows multiply.
    """
    acts, force = point.distance < pair.margin, forces_of_rows(rows, rows.J @ A - rows.aref)
    pyramid = context.mechanism.options.cone == "pyramidal"
    components = [where(acts, x, 0.0) for x in wrench_components(pair, force, pyramid=pyramid)]
    return where(less_equal(point.distance, pair.margin), 1.0, 0.0), np.array(components)


def wrench_components(pair: Pair, f: Any, *, pyramid: bool) -> np.ndarray:
    """The forces f of a contact's rows as force and torque in contact axes (6,).

    The rows are a normal and tangents, or with `pyramid` the edges n +- mu t of a friction pyramid.
    """
    components = list(f[: pair.condim])
    if pyramid and pair.condim > 1:
        tangential = [mu * (f[2 * k] - f[2 * k + 1]) for k, mu in enumerate(pair.friction[: pair.condim - 1])]
        components = [sum(f[1:], start=f[0]), *tangential]
    return np.array([*components, *[0] * (WRENCH - len(components))])
