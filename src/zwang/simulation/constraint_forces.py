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
from zwang.collision import FAR, ContactPoint, Pair, candidate_pairs, contact_points, passes_broad_phase
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
from zwang.mechanism.constraints import Connect, Distance, Holonomic, NonIdeal, NoSideSlip, Rolling, Weld
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
    """The forces of constraints."""
    for c, f in _forces_of_rows(context, force):
        if isinstance(c, BETWEEN_POINTS):
            yield _constraint_point_force(context, c, f)


def weld_torques(context: RowContext, solution: Solution) -> dict[str, np.ndarray]:
    """The torque (3,) [N m] of each weld on its first body, by name, in world axes: J^T f of its rotational
    rows.
    """
    found = {}
    for c, f in _forces_of_rows(context, solution.force):
        if isinstance(c, Weld):
            a, b = (placement_pose(context.poses, context.mechanism.tree.placement(n)) for n in (c.a, c.b))
            s, *e = to_quaternion_generic(b.R.T @ a.R @ np.array(c.orientation))
            quaternion_rate = (s * np.eye(3, dtype=int) - skew(np.array(e))) / 2
            found[c.name] = c.torque_scale * (b.R @ quaternion_rate.T @ np.array(f[3:]))
    return found


def _forces_of_rows(context: RowContext, force: Any) -> Iterator[tuple[Any, Any]]:
    """Each constraint with the forces of its rows, which precede all others, in the order of the
    constraints.
    """
    at = 0
    for c in context.mechanism.constraints if equality_enabled(context.mechanism) else ():
        if isinstance(c, NonIdeal):
            continue
        count = len(c.expressions) if isinstance(c, Holonomic) else ROW_COUNTS.get(type(c), 1)
        yield c, force[at : at + count]
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


class ContactWrench(NamedTuple):
    """A contact of a pair and the wrench that it exerts on the body of the pair's second shape.

    exists: 1 if the signed distance [m] is within margin and gap, else 0.
    position (3,) [m] and frame (3, 3), in world axes; the rows of the frame are the normal, from the first
    shape to the second, and two tangents. force (3,) [N] and torque (3,) [N m], about the position, in the
    axes of the frame; 0 for an inactive contact, whose position and frame are meaningless.
    """

    exists: Any
    distance: Any
    position: np.ndarray
    frame: np.ndarray
    force: np.ndarray
    torque: np.ndarray


def contact_wrenches(context: RowContext, rows: Rows, solution: Solution) -> list[tuple[Pair, ContactWrench]]:
    """All contacts of the candidate pairs, in their order, `pair.count` of each.

    The forces of soft contacts follow from the residual of their rows, those of hard ones are the multipliers
    of theirs.
    """
    mechanism = context.mechanism
    pairs = candidate_pairs(mechanism) if contact_enabled(mechanism) else ()
    if not pairs:
        return []
    screws = link_screws_at(context)
    v, a = np.array(context.v), np.array(solution.acceleration)
    spatial_velocities = (
        screws.spatial_velocities(v),
        screws.spatial_velocities(a),
    )  # spatial velocities and accelerations of the links
    starts = {name: k for k, name in reversed(list(enumerate(rows.names)))}
    found: list[tuple[Pair, ContactWrench]] = []
    for pair in pairs:
        if is_hard_contact(pair):
            found += [(pair, wrench) for wrench in _of_hard_pair(context, pair, starts, solution.force)]
            continue
        link = max(pair.a.placement.link, pair.b.placement.link)
        fixed = WORLD in (pair.a.placement.link, pair.b.placement.link)
        own = (spatial_velocities[0][link], spatial_velocities[1][link]) if fixed else (v, a)
        found += [(pair, wrench) for wrench in _of_soft_pair(context._replace(v=own[0]), pair, own[1])]
    return found


def _of_contacts(context: RowContext, rows: Rows, solution: Solution) -> Iterator[PointForce]:
    """The forces of contacts, as they act on the body of their label."""
    for pair, wrench in contact_wrenches(context, rows, solution):
        force = wrench.frame.T @ wrench.force
        yield PointForce(wrench.position, -force if _acts_on_first(pair) else force)


def _of_hard_pair(
    context: RowContext, pair: Pair, starts: dict[str, int], force: Any
) -> Iterator[ContactWrench]:
    """The wrenches of a pair with hard rows, which are found by name; contacts without rows are inactive."""
    for k, contact in enumerate(contact_points(pair, context.poses)):
        start = starts.get(contact_name(pair, k))
        f = [0] * pair.condim if start is None else force[start : start + pair.condim]
        yield _contact_wrench(context, pair, contact, f)


def _of_soft_pair(context: RowContext, pair: Pair, a: Any) -> list[ContactWrench]:
    """The wrenches of a soft pair, computed only if the shapes are close in some world.

    a: the acceleration that the Jacobian of the pair multiplies.
    """

    def found() -> list[Any]:
        return [
            _soft_contact_wrench(context, pair, contact, k, a)._asdict()
            for k, contact in enumerate(contact_points(pair, context.poses))
        ]

    zero = np.zeros(3)
    nothing = [ContactWrench(0.0, FAR, zero, np.eye(3), zero, zero)._asdict()] * pair.count
    return [
        ContactWrench(**values)
        for values in cond(passes_broad_phase(pair, context.poses), found, lambda: nothing)
    ]


def _soft_contact_wrench(
    context: RowContext, pair: Pair, contact: ContactPoint, number: int, a: Any
) -> ContactWrench:
    """The wrench of a soft contact, with the forces f = -s'(J a - aref) of its rows."""
    rows = rows_of_contact(context, contact_of(context, pair, contact, number, True))
    residual, D = rows.J @ a - rows.aref, rows.D
    if rows.cones:
        force = cone_force(rows.cones[0], D, residual)[0]
    else:
        force = [row_force("contact", d, y, 0)[0] for d, y in zip(D, residual, strict=True)]
    active = contact.distance < pair.margin
    return _contact_wrench(context, pair, contact, [where(active, x, 0.0) for x in force])


def _contact_wrench(context: RowContext, pair: Pair, contact: ContactPoint, f: Any) -> ContactWrench:
    """The forces f of a contact's rows as a wrench in its frame.

    The rows are a normal, tangents and the torques about these axes (elliptic cone), or the edges n +- mu t
    of a friction pyramid.
    """
    components = list(f)
    if pair.condim > 1 and not is_hard_contact(pair) and context.mechanism.options.cone == "pyramidal":
        edges = enumerate(pair.friction[: pair.condim - 1])
        components = [sum(f[1:], start=f[0]), *(mu * (f[2 * k] - f[2 * k + 1]) for k, mu in edges)]
    components += [0] * (6 - len(components))
    exists = where(contact.distance < pair.margin + pair.gap, 1.0, 0.0)
    return ContactWrench(
        exists,
        contact.distance,
        contact.position,
        contact.frame,
        np.array(components[:3]),
        np.array(components[3:]),
    )
