"""Consistent starts at the door: states that close loops and obey runners and rolling."""

from __future__ import annotations

from typing import Any

import numpy as np

from zwang import door
from zwang.constraint.consistent import consistent_state
from zwang.mechanism.mechanism import Mechanism


def assemble(mechanism: Mechanism, q: Any, v: Any = None, time: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """The state (q, v) nearest to the given one that holds all exact constraints, redundant ones too.

    q (nq,) [rad, m, unit quaternions]; v (nv,), by default zero. time [s]: at which constraints that depend on it are taken.
    Raises SolveError, naming the constraint that cannot be closed; ShapeError, StateError, ParameterError.
    """
    m = door.numeric(mechanism)
    start = door.configuration(m, q)
    speeds = np.zeros(m.nv) if v is None else door.speeds(m, v, "v")
    found = consistent_state(m, start, speeds, time)
    return found.q, found.v
