"""Forces of contacts and of constraints between points, with their points of application.

The forces have a fixed order, that of `point_force_labels`, so that they are arrays over a motion. Couplings,
constraints by formula, limits and dry friction act on joints and have no point of application. The torques
of welds, of rolling friction and of torsional friction are not included.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from zwang.collision import ContactPoint, Pair, candidate_pairs, contact_points, passes_broad_phase
from zwang.constraint.contact import (
    contact_name,
    contact_of,
    is_hard_contact,
    link_screws_at,
    rows_of_contact,
)
from zwang.constraint.context import RowContext
from zwang.constraint.hard import rolling_contact
from zwang.constraint.rows import Rows
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
from zwang.scalar import cond, divide, sqrt, where
from zwang.simulation.constraint_options import contact_enabled, equality_enabled
from zwang.solver.cones import cone_force, row_force
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


NO_FORCE = PointForce(np.zeros(3, int), np.zeros(3, int))


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
    if contact_enabled(mechanism):
        for pair in candidate_pairs(mechanism):
            one, other = (pair.a, pair.b) if _acts_on_first(pair) else (pair.b, pair.a)
            names = (contact_name(pair, k) for k in range(pair.count))
            found += [PointForceLabel(name, CONTACT, one.body, other.body) for name in names]
    return tuple(found)


def point_forces(context: RowContext, rows: Rows, solution: Solution) -> list[PointForce]:
    """The forces of `point_force_labels` in one state, from the constraint rows and the solution of Gauss's
    problem.

    The position of an inactive contact is meaningless.
    """
    return [*_of_constraints(context, solution.force), *_of_contacts(context, rows, solution)]


# ------------------------------------------------------------------------------------------ constraints


def _bodies(c: Any) -> tuple[str, str]:
    if isinstance(c, Weld):
        return c.a, c.b
    return (c.a[0], c.b[0]) if isinstance(c, Connect | Distance) else (c.body, c.on)


def _of_constraints(context: RowContext, force: Any) -> Iterator[PointForce]:
    """The forces of constraints; their rows precede all others, in the order of the constraints."""
    at = 0
    for c in context.mechanism.constraints if equality_enabled(context.mechanism) else ():
        if isinstance(c, NonIdeal | CoulombFriction):
            continue
        count = len(c.expressions) if isinstance(c, Holonomic) else ROW_COUNTS.get(type(c), 1)
        if isinstance(c, BETWEEN_POINTS):
            yield _constraint_point_force(context, c, force[at : at + count])
        at += count


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
    """The forces of contacts: soft ones by the residual of their rows, hard ones by the multipliers of
    theirs.
    """
    mechanism = context.mechanism
    pairs = candidate_pairs(mechanism) if contact_enabled(mechanism) else ()
    if not pairs:
        return
    screws = link_screws_at(context)
    v, a = np.array(context.v), np.array(solution.acceleration)
    spatial_velocities = (
        screws.spatial_velocities(v),
        screws.spatial_velocities(a),
    )  # spatial velocities and accelerations of the links
    starts = {name: k for k, name in reversed(list(enumerate(rows.names)))}
    for pair in pairs:
        if is_hard_contact(pair):
            yield from _of_hard_pair(context, pair, starts, solution.force)
            continue
        link = max(pair.a.placement.link, pair.b.placement.link)
        fixed = WORLD in (pair.a.placement.link, pair.b.placement.link)
        own = (spatial_velocities[0][link], spatial_velocities[1][link]) if fixed else (v, a)
        yield from _of_soft_pair(context._replace(v=own[0]), pair, own[1])


def _of_hard_pair(
    context: RowContext, pair: Pair, starts: dict[str, int], force: Any
) -> Iterator[PointForce]:
    """The forces of a pair with hard rows, which are found by name; contacts without rows are inactive."""
    for k, contact in enumerate(contact_points(pair, context.poses)):
        start = starts.get(contact_name(pair, k))
        yield (
            NO_FORCE
            if start is None
            else contact_point_force(context, pair, contact, force[start : start + pair.condim])
        )


def _of_soft_pair(context: RowContext, pair: Pair, a: Any) -> list[PointForce]:
    """The forces of a soft pair, computed only if the shapes are close in some world.

    a: the acceleration that the Jacobian of the pair multiplies.
    """

    def found() -> list[Any]:
        return [
            _soft_contact_force(context, pair, contact, k, a)._asdict()
            for k, contact in enumerate(contact_points(pair, context.poses))
        ]

    nothing = [PointForce(np.zeros(3), np.zeros(3))._asdict()] * pair.count
    return [
        PointForce(**values)
        for values in cond(passes_broad_phase(pair, context.poses), found, lambda: nothing)
    ]


def _soft_contact_force(
    context: RowContext, pair: Pair, contact: ContactPoint, number: int, a: Any
) -> PointForce:
    """The force of a soft contact, f = -s'(J a - aref)."""
    rows = rows_of_contact(context, contact_of(context, pair, contact, number, True))
    residual, D = rows.J @ a - rows.aref, rows.D
    if rows.cones:
        force = cone_force(rows.cones[0], D, residual)[0]
    else:
        force = [row_force("contact", d, y, 0)[0] for d, y in zip(D, residual, strict=True)]
    at_point = contact_point_force(context, pair, contact, force)
    active = contact.distance < pair.margin
    return at_point._replace(force=np.array([where(active, x, 0.0) for x in at_point.force]))


def contact_point_force(context: RowContext, pair: Pair, contact: ContactPoint, f: Any) -> PointForce:
    """The forces f of a contact's rows as one force in world axes.

    The rows are a normal and tangents (elliptic cone), or the edges n +- mu t of a friction pyramid.
    """
    if pair.condim == 1 or is_hard_contact(pair) or context.mechanism.options.cone != "pyramidal":
        components = np.array(f[:3])
    else:
        tangential = [mu * (f[2 * k] - f[2 * k + 1]) for k, mu in enumerate(pair.friction[: pair.condim - 1])]
        components = np.array([sum(f[1:], start=f[0]), *tangential[:2]])
    force = contact.frame[: len(components)].T @ components
    return PointForce(contact.position, -force if _acts_on_first(pair) else force)
