"""Constraint forces as loads (force and torque) on the connected bodies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from zwang.collision import Pair, candidate_pairs
from zwang.constraint.contact import link_screws_at, pair_rows
from zwang.constraint.context import RowContext
from zwang.constraint.hard import velocity_level_rows
from zwang.dynamics.free_body_diagram import FreeBodyDiagram, Load
from zwang.kinematics.poses import placement_pose
from zwang.mechanism.tree import WORLD, Placement


def constraint_loads(
    free: FreeBodyDiagram, forces: Mapping[str, Any], t: Any = 0
) -> dict[str, dict[str, Load]]:
    """Loads of the rows' forces by constraint and body; constraints on generalised velocities without bodies
    are omitted.

    forces: the forces of the rows by constraint [N, N m]; a constraint without forces is omitted. t [s]: the
    time.
    """
    found: dict[str, dict[str, Load]] = {}
    still = np.zeros(free.mechanism.nv, int)
    for c in free.mechanism.constraints:
        if c.name in forces:
            A = velocity_level_rows(free.mechanism, c, free.q, still, t).A
            found[c.name] = free.loads(A.T @ np.asarray(forces[c.name]))
    return found


def contact_loads(context: RowContext, forces: Mapping[str, np.ndarray]) -> dict[str, dict[str, Load]]:
    """Loads of the rows' forces by contact and body, about the world's origin; on floats."""
    found: dict[str, dict[str, Load]] = {}
    for name, (body, link), (other, other_link), J in _seen_by_screws(context):
        f, origin = J.T @ forces[name], np.zeros(3)
        found[name] = {body: Load(link, origin, f[:3], f[3:])}
        if other_link != WORLD:
            found[name][other] = Load(other_link, origin, -f[:3], -f[3:])
    return found


Side = tuple[str, int]


def _seen_by_screws(context: RowContext) -> Iterator[tuple[str, Side, Side, np.ndarray]]:
    """For each contact its name, the moving body and its link, the other body and its link, and J (n, 6).

    J multiplies the spatial velocity of the first body. The other body is treated as the ground: it is fixed
    at its current placement, and the first body moves with the relative velocity.
    """
    moved = link_screws_at(context).spatial_velocities(np.asarray(context.v))
    spatial_velocities = {WORLD: np.zeros(6), **dict(enumerate(moved))}
    for pair in candidate_pairs(context.mechanism):
        a, b = (pair.a.body, pair.a.placement.link), (pair.b.body, pair.b.placement.link)
        first, other = (a, b) if b[1] == WORLD else (b, a)
        relative = spatial_velocities[first[1]] - spatial_velocities[other[1]]
        for rows in pair_rows(context._replace(v=relative), _frozen(context, pair)):
            yield rows.names[0], first, other, rows.J


def _frozen(context: RowContext, pair: Pair) -> Pair:
    """The pair with its first shape fixed to the world at its current placement, unless a shape is fixed
    already.
    """
    if WORLD in (pair.a.placement.link, pair.b.placement.link):
        return pair
    R, p = placement_pose(context.poses, pair.a.placement)
    return replace(pair, a=replace(pair.a, placement=Placement(WORLD, R, p)))
