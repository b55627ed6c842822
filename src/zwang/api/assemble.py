"""Assembly: consistent initial states of mechanisms with hard constraints."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from zwang.api import validation
from zwang.constraint.assembly import assemble_state
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.type_validation import validated_arguments


@validated_arguments()
def assemble(
    mechanism: Mechanism, q: npt.ArrayLike, v: npt.ArrayLike | None = None, time: float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """The state (q, v) nearest to the given one that satisfies all hard constraints, redundant ones included.

    mechanism: a mechanism without symbols.
    q: approximate coordinates (nq,) [rad, m, unit quaternions].
    v: approximate generalised velocities (nv,) [rad/s, m/s], by default zero.
    time: of time-dependent constraints [s], default 0.

    Returns q (nq,) and v (nv,). Raises SolveError, with the name of a constraint that cannot be satisfied;
    ShapeError, StateError or ParameterError.
    """
    m = validation.numeric_mechanism(mechanism)
    guess = validation.configuration(m, q)
    velocities = np.zeros(m.nv) if v is None else validation.nv_vector(m, v, "v")
    found = assemble_state(m, guess, velocities, time)
    return found.q, found.v
