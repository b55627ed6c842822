"""Impacts of hard contacts: when a contact closes on a path, and the rows of the change of velocity.

In an impact the configuration is constant, the velocity jumps from v- to v+, and forces that stay finite
(gravity, springs, soft contacts, dry friction of joints) do not act. Gauss's principle holds for the jump:

    minimise 1/2 (v+ - v-)^T M (v+ - v-)   subject to the hard constraints of v+

with J v+ >= -e J v- for each contact that takes part (Newton's law of restitution), impulses in Coulomb's
cone, and J (v+ - v-) = 0 for hard equalities. Without restitution it is Robin's and Carnot's principle. A
closed contact with restitution takes part only when it approaches; so an impulse passes through a row of
touching balls from ball to ball, as in Newton's cradle. Source: Moreau, Unilateral contact and dry friction
in finite freedom dynamics (1988); Brogliato, Nonsmooth Mechanics (2016), Sec. 4.3.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from zwang.algebra.rotations import cross
from zwang.collision import Pair, PairGroup, contact_points_between, pair_groups
from zwang.collision.penetration import with_search_margin
from zwang.constraint.contact import CLOSED_DISTANCE, is_hard_contact
from zwang.constraint.contact_groups import contact_rows
from zwang.constraint.context import RowContext, StepForm
from zwang.constraint.group_kinematics import group_kinematics, links_of
from zwang.constraint.hard import is_hard_constraint, rows_of_constraint
from zwang.constraint.limit import limit_rows
from zwang.constraint.rows import RowGroup, Rows, concatenated
from zwang.constraint.softness import time_stepping_bias
from zwang.scalar import (
    absolute,
    divide,
    fori_loop,
    logical_and,
    logical_or,
    maximum,
    minimum,
    where,
)

NEVER = 1e10  # [s] in place of the time at which no contact closes


def hard_contact_pairs(pairs: Sequence[Pair]) -> list[Pair]:
    """The pairs with a hard contact."""
    return [pair for pair in pairs if is_hard_contact(pair)]


def earliest_closing(context: RowContext, pairs: Sequence[Pair]) -> Any:
    """The time [s] until the first of the approaching hard contacts closes, at constant approach speeds.

    Only contacts that approach faster than the resting speed count. Negative where one of them penetrates;
    NEVER where none approaches. pairs: those with hard contacts.
    """

    def visit(distance: Any, u: Any, earliest: Any) -> Any:
        approaches = u < -context.resting_speed
        time = divide(distance, where(approaches, -u, 1.0))
        return minimum(earliest, where(approaches, time, NEVER))

    return _over_contact_points(context, pairs, visit, NEVER)


def touching_count(context: RowContext, pairs: Sequence[Pair], distance: float) -> Any:
    """The number of hard contacts whose signed distance is smaller than a distance [m], and which do not
    separate faster than the resting speed. pairs: those with hard contacts.
    """

    def visit(d: Any, u: Any, count: Any) -> Any:
        touches = logical_and(absolute(d) < distance, u <= context.resting_speed)
        return count + where(touches, 1.0, 0.0)

    return _over_contact_points(context, pairs, visit, 0.0)


def _over_contact_points(
    context: RowContext, pairs: Sequence[Pair], function: Callable[[Any, Any, Any], Any], carry: Any
) -> Any:
    """The carry after function(signed distance, normal velocity, carry) for the contact points of pairs."""
    pairs = [with_search_margin(pair) for pair in pairs]
    kinematics = group_kinematics(context, pairs)
    for group in pair_groups(pairs, [0] * len(pairs)):
        links = links_of(context.mechanism.tree, group)

        def visit(number: Any, carry: Any, group: PairGroup = group, links: Any = links) -> Any:
            V = kinematics.relative_velocity(links[number])
            for point in contact_points_between(group.pair(number), *group.placed(number, kinematics.shapes)):
                # normal velocity of b relative to a at the contact point: n (v + w x p)
                u = point.frame[0] @ (V[:3] + cross(V[3:], point.position))
                carry = function(point.distance, u, carry)
            return carry

        carry = fori_loop(0, len(group), visit, carry, unroll=group.is_unrolled)
    return carry


def closes_by_impact(rows: Rows, force_of: Callable[[Any], Any], resting_speed: Any, step: StepForm) -> Any:
    """Whether the normal force of a hard contact acts on an approach faster than the resting speed [m/s]: the
    contact closes within the step.

    A contact that lasts approaches by about h |Jdot v| from step to step where the surfaces are curved or
    turn, as after each step its velocity is that of the normal before; up to twice this it is no impact.
    force_of: the force of a row by its number, where the rows of groups follow the others.
    """
    normals = {cone.start for cone in rows.cones} | set(rows.indices("contact"))

    def approaches(velocity: Any, distance: Any, aref: Any) -> Any:
        bias = time_stepping_bias(velocity, distance, aref, step.size, step.closing_damping)
        return velocity < -maximum(resting_speed, 2 * step.size * absolute(bias))

    return any_acting(rows, normals, force_of, approaches)


def any_acting(
    rows: Rows, chosen: set[int], force_of: Callable[[Any], Any], holds: Callable[[Any, Any, Any], Any]
) -> Any:
    """Whether holds(velocity, position, aref) for one of the chosen hard rows, or one of the normals of hard
    contacts in groups, whose force is positive.
    """
    found: Any = 0.0 > 1.0
    for i, hard in enumerate(rows.hard):
        if hard and i in chosen:
            acts = logical_and(force_of(i) > 0, holds(rows.velocity[i], rows.position[i], rows.aref[i]))
            found = logical_or(found, logical_and(rows.active[i], acts))
    start = len(rows)
    for group in rows.row_groups:
        if group.hard:
            found = _any_in_group(group, start, force_of, holds, found)
        start += len(group) * group.size
    return found


def _any_in_group(
    group: RowGroup, start: int, force_of: Callable[[Any], Any], holds: Callable[[Any, Any, Any], Any],
    found: Any,
) -> Any:  # fmt: skip
    """Whether `found`, or it holds for an active contact of a group; start: the number of its first row."""

    def visit(k: Any, found: Any) -> Any:
        so = holds(*(group.read(name, k)[0] for name in ("velocity", "position", "aref")))
        return logical_or(found, logical_and(force_of(start + k * group.size) > 0, so))

    return group.active_indices.for_each(visit, found)


def impact_rows(context: RowContext, pairs: Sequence[Pair]) -> Rows:
    """Rows of the change of velocity in an impact: hard equalities, closed hard limits, and the hard contacts
    that take part.

    pairs: those with hard contacts. aref is the required change of the row's velocity.
    """
    mechanism, impulsive = context.mechanism, context._replace(impulsive=True)
    off = set(mechanism.options.disabled)
    parts: list[Rows] = []
    if "equality" not in off:
        for c in mechanism.constraints:
            if is_hard_constraint(c):
                rows = rows_of_constraint(context, c)
                parts.append(rows.replaced(aref=np.zeros(len(rows), int)))
    if "limit" not in off:
        parts += [_closed_limit(rows) for rows in limit_rows(context) if all(rows.hard)]
    parts.append(contact_rows(impulsive, pairs))
    return concatenated(parts, mechanism.nv)


def _closed_limit(rows: Rows) -> Rows:
    """The row of a hard limit in an impact: without restitution, active where it is closed."""
    return rows.replaced(aref=-rows.velocity, active=np.array([x <= CLOSED_DISTANCE for x in rows.position]))
