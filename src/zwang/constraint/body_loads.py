"""Constraint forces as loads (force and torque) on the connected bodies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from zwang.collision import candidate_pairs
from zwang.constraint.contact import contact_name
from zwang.constraint.contact_groups import wrench_rows
from zwang.constraint.context import RowContext
from zwang.constraint.hard import velocity_level_rows
from zwang.dynamics.free_body_diagram import FreeBodyDiagram, Load
from zwang.mechanism.tree import WORLD


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
    for pair, number, J in wrench_rows(context, candidate_pairs(context.mechanism)):
        name, origin = contact_name(pair, number), np.zeros(3)
        f = J.T @ forces[name]  # the wrench on body b
        for geom, sign in ((pair.b, 1), (pair.a, -1)):
            link = geom.placement.link
            if link != WORLD:
                found.setdefault(name, {})[geom.body] = Load(link, origin, sign * f[:3], sign * f[3:])
    return found
