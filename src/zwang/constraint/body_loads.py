"""Constraint forces as loads (force and torque) on the connected bodies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from zwang.constraint.hard import velocity_level_rows
from zwang.dynamics.free_body_diagram import FreeBodyDiagram, Load


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
