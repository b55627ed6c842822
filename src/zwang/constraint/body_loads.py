"""Constraints' forces as forces and torques on the bodies that they hold: rows seen by bodies cut free."""

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


def constraint_loads(free: FreeBodyDiagram, forces: Mapping[str, Any], t: Any = 0) -> dict[str, dict[str, Load]]:
    """By constraint, and by body, the loads that the forces of its rows are; constraints on speeds of joints are left out.

    forces: the rows' forces by constraint [N, N m]; a constraint that has none is left out. t [s]: the time.
    """
    found: dict[str, dict[str, Load]] = {}
    still = np.zeros(free.mechanism.nv, int)
    for c in free.mechanism.constraints:
        if c.name in forces:
            A = velocity_level_rows(free.mechanism, c, free.q, still, t).A
            found[c.name] = free.loads(A.T @ np.asarray(forces[c.name]))
    return found


def contact_loads(instant: RowContext, forces: Mapping[str, np.ndarray]) -> dict[str, dict[str, Load]]:
    """By contact, and by body, the loads that the forces of its rows are, about the world's origin; on floats."""
    found: dict[str, dict[str, Load]] = {}
    for name, (body, link), (other, other_link), J in _seen_by_screws(instant):
        f, origin = J.T @ forces[name], np.zeros(3)
        found[name] = {body: Load(link, origin, f[:3], f[3:])}
        if other_link != WORLD:
            found[name][other] = Load(other_link, origin, -f[:3], -f[3:])
    return found


Side = tuple[str, int]


def _seen_by_screws(instant: RowContext) -> Iterator[tuple[str, Side, Side, np.ndarray]]:
    """Each contact's name, the body that moves and its link, the other one and its link, and J (n, 6) by the screw of the first.

    The other body counts as the ground: it is frozen where it is, and the first moves with the relative velocity.
    """
    moved = link_screws_at(instant).spatial_velocities(np.asarray(instant.v))
    spatial_velocities = {WORLD: np.zeros(6), **dict(enumerate(moved))}
    for pair in candidate_pairs(instant.mechanism):
        a, b = (pair.a.body, pair.a.place.link), (pair.b.body, pair.b.place.link)
        first, other = (a, b) if b[1] == WORLD else (b, a)
        relative = spatial_velocities[first[1]] - spatial_velocities[other[1]]
        for rows in pair_rows(instant._replace(v=relative), _frozen(instant, pair)):
            yield rows.names[0], first, other, rows.J


def _frozen(instant: RowContext, pair: Pair) -> Pair:
    """The pair with its first shape fixed to the world where it is, unless the second one is."""
    if WORLD in (pair.a.place.link, pair.b.place.link):
        return pair
    R, p = placement_pose(instant.poses, pair.a.place)
    return replace(pair, a=replace(pair.a, place=Placement(WORLD, R, p)))
