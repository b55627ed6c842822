"""Non-ideal constraints: the working part of a constraint's force, prescribed, and dependent on the size N of the whole.

The prescribed force is C = C0 + N S, with N = |lambda| the size of the constraint's force as it is with C acting. As lambda = l0 + N d is
affine in N, the size follows from N = |l0 + N d|: one positive root where |d| < 1, and none, or two, where friction acts
back on the constraint too strongly (Painleve). Source: seed 003, Eqs. 47-50; Udwadia, Kalaba (2002).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from zwang.constraint.exact import working_forces
from zwang.errors import WorkingForceError
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.restrictions import NonIdeal
from zwang.scalar import divide, sqrt, value_is_constant, where

SWEEPS = 12  # over several non-ideal constraints, which may act on each other


def working_efforts(
    mechanism: Mechanism, q: Any, v: Any, names: Sequence[str], forces_under: Callable[[Any], Any], t: Any = 0
) -> np.ndarray:
    """C (nv,) of all non-ideal constraints [N m or N]. `forces_under` gives all rows' forces, of these names, for a C.

    Raises WorkingForceError, naming the constraint, where no size of its force fits (on floats; traced, the result is nan).
    """
    laws = [c for c in mechanism.constraints if isinstance(c, NonIdeal)]
    sizes: dict[str, Any] = {c.constraint: 0 for c in laws}
    for _ in range(SWEEPS if len(sizes) > 1 else 1):
        for name in sizes:
            rows = [i for i, row in enumerate(names) if row == name]
            without = working_forces(mechanism, q, v, t, {**sizes, name: 0})
            with_unit = working_forces(mechanism, q, v, t, {**sizes, name: 1})
            l0 = np.asarray(forces_under(without))[rows]
            d = np.asarray(forces_under(with_unit))[rows] - l0
            sizes[name] = _size(name, l0, d)
    return working_forces(mechanism, q, v, t, sizes)


def _size(name: str, l0: Any, d: Any) -> Any:
    """N >= 0 of N = |l0 + N d|."""
    feedback, along, square = d @ d, l0 @ d, l0 @ l0
    if value_is_constant(feedback) and feedback >= 1:
        raise WorkingForceError(
            f"the non-ideal force of constraint {name!r} has no solution, or more than one, in this state: a unit of the constraint's force "
            f"brings back {float(np.sqrt(feedback)):.3g} of itself (Painleve); lower the friction, or give the constraint a softness"
        )
    rest = where(feedback < 1, 1 - feedback, np.nan)
    return divide(along + sqrt(along * along + rest * square), rest)
