"""Where the forces of contacts and of constraints between points act, and how they push: arrows for a picture, loads for an engineer.

Each has a fixed place in `acting(mechanism)`, so that they are arrays over a motion. Couplings, formulas, limits and dry friction act on
the speeds of joints and have no point; the turning parts of welds and of rolling or torsional friction are no forces.
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
from zwang.mechanism.constraints import Connect, Distance, Holonomic, NonIdeal, NoSideSlip, Rolling, Weld
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.tree import WORLD
from zwang.scalar import cond, divide, sqrt, where
from zwang.simulation.constraint_stage import contacts_on, equalities_on
from zwang.solver.cones import cone_force, row_force
from zwang.solver.solution import Solution

BETWEEN_POINTS = (Connect, Weld, Distance, NoSideSlip, Rolling)
ROW_COUNTS = {Connect: 3, Weld: 6, Rolling: 3}
CONTACT, CONSTRAINT = "contact", "constraint"


class PointForceLabel(NamedTuple):
    """A force by name, its kind ("contact" or "constraint"), the body that it acts on, and the one that feels its opposite."""

    name: str
    kind: str
    body: str
    other: str


class PointForce(NamedTuple):
    """A force and where it acts, both (3,) in world axes [m, N]."""

    position: Any
    force: Any


NO_FORCE = PointForce(np.zeros(3, int), np.zeros(3, int))


def point_force_labels(mechanism: Mechanism) -> tuple[PointForceLabel, ...]:
    """All forces with a point that may act in a mechanism: of constraints in their order, then of contacts."""
    found = []
    if equalities_on(mechanism):
        for c in mechanism.constraints:
            if isinstance(c, BETWEEN_POINTS):
                name = c.name or type(c).__name__.lower()
                found.append(PointForceLabel(name, CONSTRAINT, *_bodies(c)))
    if contacts_on(mechanism):
        for pair in candidate_pairs(mechanism):
            one, other = (pair.a, pair.b) if _on_first(pair) else (pair.b, pair.a)
            found += [PointForceLabel(contact_name(pair, k), CONTACT, one.body, other.body) for k in range(pair.count)]
    return tuple(found)


def point_forces(instant: RowContext, rows: Rows, solution: Solution) -> list[PointForce]:
    """What each of `acting(mechanism)` does at one instant, from its rows and the solution of Gauss's problem.

    A contact that does not act has no force, and stands anywhere.
    """
    return [*_of_constraints(instant, solution.force), *_of_contacts(instant, rows, solution)]


# ------------------------------------------------------------------------------------------ constraints


def _bodies(c: Any) -> tuple[str, str]:
    if isinstance(c, Weld):
        return c.a, c.b
    return (c.a[0], c.b[0]) if isinstance(c, Connect | Distance) else (c.body, c.on)


def _of_constraints(instant: RowContext, force: Any) -> Iterator[PointForce]:
    """Constraints' rows come first, in the order of the constraints."""
    at = 0
    for c in instant.mechanism.constraints if equalities_on(instant.mechanism) else ():
        if isinstance(c, NonIdeal):
            continue
        count = len(c.expressions) if isinstance(c, Holonomic) else ROW_COUNTS.get(type(c), 1)
        if isinstance(c, BETWEEN_POINTS):
            yield _push_of(instant, c, force[at : at + count])
        at += count


def _push_of(instant: RowContext, c: Any, f: Any) -> PointForce:
    """The forces of a constraint's rows as one force on its first body."""
    match c:
        case Connect():
            return PointForce(_point(instant, *c.a), f)
        case Weld():
            return PointForce(_point(instant, c.a, c.position), f[:3])
        case Distance():
            d = _point(instant, *c.a) - _point(instant, *c.b)
            return PointForce(_point(instant, *c.a), d * divide(f[0], sqrt(d @ d)))
        case NoSideSlip():
            R, _ = placement_pose(instant.poses, instant.mechanism.tree.placement(c.body))
            return PointForce(_point(instant, c.body, c.point), R @ np.array(c.direction) * f[0])
    point, axes = rolling_contact(instant.mechanism.tree, instant.poses, c)
    return PointForce(point, axes.T @ f)


def _point(instant: RowContext, body: str, p: Any) -> np.ndarray:
    R, origin = placement_pose(instant.poses, instant.mechanism.tree.placement(body))
    return origin + R @ np.array(p)


# --------------------------------------------------------------------------------------------- contacts


def _on_first(pair: Pair) -> bool:
    """Whether a contact's force is told as it acts on the first shape's body: where the second is the world's."""
    return pair.b.placement.link == WORLD


def _of_contacts(instant: RowContext, rows: Rows, solution: Solution) -> Iterator[PointForce]:
    """Soft contacts push by what their rows miss at the solution's acceleration; exact ones have rows of their own."""
    mechanism = instant.mechanism
    pairs = candidate_pairs(mechanism) if contacts_on(mechanism) else ()
    if not pairs:
        return
    screws = link_screws_at(instant)
    v, a = np.array(instant.v), np.array(solution.acceleration)
    spatial_velocities = screws.spatial_velocities(v), screws.spatial_velocities(a)
    starts = {name: k for k, name in reversed(list(enumerate(rows.names)))}
    for pair in pairs:
        if is_hard_contact(pair):
            yield from _of_exact(instant, pair, starts, solution.force)
            continue
        link = max(pair.a.placement.link, pair.b.placement.link)
        fixed = WORLD in (pair.a.placement.link, pair.b.placement.link)
        own = (spatial_velocities[0][link], spatial_velocities[1][link]) if fixed else (v, a)
        yield from _where_near(instant._replace(v=own[0]), pair, own[1])


def _of_exact(instant: RowContext, pair: Pair, starts: dict[str, int], force: Any) -> Iterator[PointForce]:
    """The contacts of a pair with exact rows, found by their names; those without do not act."""
    for k, gap in enumerate(contact_points(pair, instant.poses)):
        start = starts.get(contact_name(pair, k))
        yield (
            NO_FORCE if start is None else contact_point_force(instant, pair, gap, force[start : start + pair.condim])
        )


def _where_near(instant: RowContext, pair: Pair, a: Any) -> list[PointForce]:
    """The contacts of a soft pair, worked out only if some world has its shapes near each other; a: as the pair's J multiplies it."""

    def found() -> list[Any]:
        return [
            _soft_push(instant, pair, gap, k, a)._asdict() for k, gap in enumerate(contact_points(pair, instant.poses))
        ]

    nothing = [PointForce(np.zeros(3), np.zeros(3))._asdict()] * pair.count
    return [PointForce(**push) for push in cond(passes_broad_phase(pair, instant.poses), found, lambda: nothing)]


def _soft_push(instant: RowContext, pair: Pair, gap: ContactPoint, number: int, a: Any) -> PointForce:
    """A soft contact's rows answer what they miss."""
    rows = rows_of_contact(instant, contact_of(instant, pair, gap, number, True))
    missed, D = rows.J @ a - rows.aref, rows.D
    if rows.cones:
        force = cone_force(rows.cones[0], D, missed)[0]
    else:
        force = [row_force("contact", d, y, 0)[0] for d, y in zip(D, missed, strict=True)]
    push = contact_point_force(instant, pair, gap, force)
    active = gap.distance < pair.margin
    return push._replace(force=np.array([where(active, x, 0.0) for x in push.force]))


def contact_point_force(instant: RowContext, pair: Pair, gap: ContactPoint, f: Any) -> PointForce:
    """The forces of a contact's rows, of a normal and a cone or of a pyramid's edges n +- friction t, as one force in the world."""
    if pair.condim == 1 or is_hard_contact(pair) or instant.mechanism.options.cone != "pyramidal":
        along = np.array(f[:3])
    else:
        slide = [mu * (f[2 * k] - f[2 * k + 1]) for k, mu in enumerate(pair.friction[: pair.condim - 1])]
        along = np.array([sum(f[1:], start=f[0]), *slide[:2]])
    push = gap.frame[: len(along)].T @ along
    return PointForce(gap.position, -push if _on_first(pair) else push)
