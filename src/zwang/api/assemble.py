"""Consistent starts at the door: states that close loops and obey runners and rolling."""

from __future__ import annotations

from typing import Any

import numpy as np

from zwang.api import validation
from zwang.constraint.assembly import assemble_state
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.type_validation import validated_arguments


@validated_arguments()
def assemble(mechanism: Mechanism, q: Any, v: Any = None, time: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """The state (q, v) nearest to the given one that holds all exact constraints, redundant ones too.

    q (nq,) [rad, m, unit quaternions]; v (nv,), by default zero. time [s]: at which constraints that depend on it are taken.
    Raises SolveError, naming the constraint that cannot be closed; ShapeError, StateError, ParameterError.
    """
    m = validation.numeric_mechanism(mechanism)
    start = validation.configuration(m, q)
    speeds = np.zeros(m.nv) if v is None else validation.nv_vector(m, v, "v")
    found = assemble_state(m, start, speeds, time)
    return found.q, found.v
