"""The Jacobian of the centre of mass."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from zwang.api.arguments import validation
from zwang.api.compilation.cache_key import IdentityKey
from zwang.dynamics.energy import mass_centre_jacobian
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.type_validation import validated_arguments
from zwang.robot.batch_functions import BatchFunction, compiled_over_batch
from zwang.robot.task_space import configurations


@validated_arguments()
def com_jacobian(mechanism: Mechanism, q: ArrayLike) -> np.ndarray:
    """Jacobian J (..., 3, nv) of the centre of mass of all bodies, by recursion over the links.

    q: configuration (nq,), or configurations (..., nq), which are evaluated in machine code. J v is the
    velocity of the centre of mass [m/s], in world axes, for generalised velocities v (nv,). Bodies that are
    fixed to the world count with their mass.
    Raises ShapeError, StateError, ParameterError for symbols without values, and DescriptionError for a
    mechanism without mass.
    """
    m = validation.numeric_mechanism(mechanism)
    values = configurations(m, q)
    if values.ndim == 1:
        return np.asarray(mass_centre_jacobian(m.tree, values), dtype=float)
    return _compiled(IdentityKey(m))(values)[0]


@lru_cache(maxsize=64)
def _compiled(same: IdentityKey) -> BatchFunction:
    m = same.mechanism

    def function(q: Any) -> Any:
        return mass_centre_jacobian(m.tree, q)

    return compiled_over_batch(function, {"q": (m.nq,)})
