"""Coulomb friction in symbolic equations: the generalised force of sliding, with symbols for the loads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import sympy as sp

from zwang import scalar
from zwang.constraint.coulomb_friction import coulomb_frictions
from zwang.constraint.hard import formula
from zwang.mechanism.constraints import CoulombFriction
from zwang.mechanism.mechanism import Mechanism
from zwang.scalar import is_zero

_SPEED = sp.Symbol("u", real=True)


def load_names(mechanism: Mechanism) -> list[str]:
    """The names of the loads of all laws: of the constraint or of the joint, and with a collar its axial
    load.
    """
    found = []
    for law in coulomb_frictions(mechanism):
        found.append(law.constraint or law.joint or "")
        if law.has_collar:
            found.append(_axial(law))
    return found


def friction_forces(mechanism: Mechanism, q: Any, v: Any, t: Any, loads: Mapping[str, Any]) -> np.ndarray:
    """The generalised forces -mu N sign(u) T (nv,) of all laws of Coulomb friction in sliding.

    loads: N of each law, by `load_names`. At rest sign(u) stands for a number from -1 to 1, times mu_s / mu.
    """
    total = np.array([0] * mechanism.nv, dtype=object)
    for law in coulomb_frictions(mechanism):
        row: list[Any] = [0] * mechanism.nv
        for name, coefficient in law.sliding or ((mechanism.joint(law.joint or "").speeds[0], 1),):
            row[mechanism.speed_names.index(name)] = formula(mechanism, coefficient, q, t)
        u = sum((T * x for T, x in zip(row, v, strict=True) if not is_zero(T)), start=0)
        load = loads[law.constraint or law.joint or ""]
        if law.radius is not None:
            load = law.radius * load
        if law.has_collar:
            load = load + law.collar_radius * loads[_axial(law)]
        bound = formula(mechanism, law.coefficient, q, t) * load
        direction = scalar.substitute(sp.sign(_SPEED), {_SPEED: u})
        total = total - np.array([bound * direction * T if not is_zero(T) else 0 for T in row], dtype=object)
    return total


def _axial(law: CoulombFriction) -> str:
    return f"{law.joint}_axial"
