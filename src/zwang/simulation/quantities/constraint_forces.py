"""Forces of contacts and of constraints between points, with their points of application.

The forces have a fixed order, that of `point_force_labels`, so that they are arrays over a motion. Couplings,
constraints by formula, limits and dry friction act on joints and have no point of application. The torques
of welds, of rolling friction and of torsional friction are not included.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from zwang.algebra.rotations import skew, to_quaternion_generic
from zwang.collision import Pair
from zwang.constraint.context import RowContext
from zwang.constraint.hard import equality_enabled, is_hard_constraint, rolling_contact, rows_of_constraint
from zwang.constraint.rows import Rows
from zwang.constraint.rows_of_mechanism import is_idle
from zwang.kinematics.poses import placement_pose
from zwang.mechanism.constraints import (
    Connect,
    CoulombFriction,
    Distance,
    Holonomic,
    NonIdeal,
    NoSideSlip,
    Rolling,
    Weld,
)
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.tree import WORLD
from zwang.scalar import divide, sqrt
from zwang.simulation.quantities.contact_forces import contact_labels, contact_states
from zwang.solver.solution import Solution

BETWEEN_POINTS = (Connect, Weld, Distance, NoSideSlip, Rolling)
ROW_COUNTS = {Connect: 3, Weld: 6, Rolling: 3}
CONTACT, CONSTRAINT = "contact", "constraint"


class PointForceLabel(NamedTuple):
    """A force by name, its kind ("contact" or "constraint"), the body it acts on, and the body of the
    reaction.
    """

    name: str
    kind: str
    body: str
    other: str


class PointForce(NamedTuple):
    """A force and its point of application, both (3,) in world axes [N, m]."""

    position: Any
    force: Any


def point_force_labels(mechanism: Mechanism) -> tuple[PointForceLabel, ...]:
    """The labels of all forces with a point of application: constraints in their order, then candidate
    contacts.
    """
    found = []
    if equality_enabled(mechanism):
        for c in mechanism.constraints:
            if isinstance(c, BETWEEN_POINTS):
                name = c.name or type(c).__name__.lower()
                found.append(PointForceLabel(name, CONSTRAINT, *_bodies(c)))
    for label in contact_labels(mechanism):
        a, b = label.pair.a.body, label.pair.b.body
        one, other = (a, b) if _acts_on_first(label.pair) else (b, a)
        found.append(PointForceLabel(label.name, CONTACT, one, other))
    return tuple(found)


def point_forces(context: RowContext, rows: Rows, solution: Solution) -> list[PointForce]:
    """The forces of `point_force_labels` in one state, from the constraint rows and the solution of Gauss's
    problem.

    The position of an inactive contact is meaningless.
    """
    return [*constraint_point_forces(context, solution), *_of_contacts(context, rows, solution)]


# ------------------------------------------------------------------------------------------ constraints


def _bodies(c: Any) -> tuple[str, str]:
    if isinstance(c, Weld):
        return c.a, c.b
    return (c.a[0], c.b[0]) if isinstance(c, Connect | Distance) else (c.body, c.on)


def constraint_point_forces(context: RowContext, solution: Solution) -> Iterator[PointForce]:
    """The forces of constraints between points, which precede those of contacts in `point_force_labels`."""
    for c, f in forces_of_constraints(context, solution):
        if isinstance(c, BETWEEN_POINTS):
            yield _constraint_point_force(context, c, f)


def weld_torques(context: RowContext, solution: Solution) -> dict[str, np.ndarray]:
    """The torque (3,) [N m] of each weld on its first body, by name, in world axes: J^T f of its rotational
    rows.
    """
    found = {}
    for c, f in forces_of_constraints(context, solution):
        if isinstance(c, Weld):
            a, b = (placement_pose(context.poses, context.mechanism.tree.placement(n)) for n in (c.a, c.b))
            s, *e = to_quaternion_generic(b.R.T @ a.R @ np.array(c.orientation))
            quaternion_rate = (s * np.eye(3, dtype=int) - skew(np.array(e))) / 2
            found[c.name] = c.torque_scale * (b.R @ quaternion_rate.T @ np.array(f[3:]))
    return found


def forces_of_constraints(context: RowContext, solution: Solution) -> Iterator[tuple[Any, np.ndarray]]:
    """Each constraint with the forces of its rows.

    Soft ones follow from the residual of their rows, unless the noslip solver has changed the acceleration;
    hard ones are multipliers, which precede all others in the order of the constraints. Those without rows
    have no force.
    """
    at = 0
    for c in context.mechanism.constraints if equality_enabled(context.mechanism) else ():
        if isinstance(c, NonIdeal | CoulombFriction):
            continue
        count = len(c.expressions) if isinstance(c, Holonomic) else ROW_COUNTS.get(type(c), 1)
        if is_idle(context.mechanism, c):
            yield c, np.zeros(count, int)
            continue
        if is_hard_constraint(c) or context.mechanism.options.noslip_iterations:
            yield c, solution.force[at : at + count]
        else:
            yield c, _soft_forces(context, c, solution.acceleration)
        at += count


def _soft_forces(context: RowContext, c: Any, a: Any) -> np.ndarray:
    """The forces of a soft constraint's rows, f = -(J a - aref) / R."""
    rows = rows_of_constraint(context, c)
    return np.array([-y * D for y, D in zip(rows.J @ np.array(a) - rows.aref, rows.D, strict=True)])


def _constraint_point_force(context: RowContext, c: Any, f: Any) -> PointForce:
    """The forces f of a constraint's rows as one force on its first body."""
    match c:
        case Connect():
            return PointForce(_point(context, *c.a), f)
        case Weld():
            return PointForce(_point(context, c.a, c.position), f[:3])
        case Distance():
            d = _point(context, *c.a) - _point(context, *c.b)
            return PointForce(_point(context, *c.a), d * divide(f[0], sqrt(d @ d)))
        case NoSideSlip():
            R, _ = placement_pose(context.poses, context.mechanism.tree.placement(c.body))
            return PointForce(_point(context, c.body, c.point), R @ np.array(c.direction) * f[0])
    point, axes = rolling_contact(context.mechanism.tree, context.poses, c)
    return PointForce(point, axes.T @ f)


def _point(context: RowContext, body: str, p: Any) -> np.ndarray:
    R, origin = placement_pose(context.poses, context.mechanism.tree.placement(body))
    return origin + R @ np.array(p)


# --------------------------------------------------------------------------------------------- contacts


def _acts_on_first(pair: Pair) -> bool:
    """Whether the force is given as it acts on the first shape's body: if the second shape belongs to the
    world.
    """
    return pair.b.placement.link == WORLD


def _of_contacts(context: RowContext, rows: Rows, solution: Solution) -> Iterator[PointForce]:
    """The forces of contacts."""
    labels = contact_labels(context.mechanism)
    for label, state in zip(labels, contact_states(context, rows, solution), strict=True):
        force = np.array(state.frame).T @ state.force[:3]
        yield PointForce(state.position, -force if _acts_on_first(label.pair) else force)
