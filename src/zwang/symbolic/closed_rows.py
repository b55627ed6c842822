"""Velocity-level rows of hard constraints for the derivation of equations."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from zwang.constraint.context import RowContext, StepForm
from zwang.constraint.equality import closed_weld
from zwang.constraint.hard import VelocityLevelRows, hard_constraints, velocity_level_rows
from zwang.constraint.inverse_weights import zero_inverse_weights
from zwang.kinematics.kinematics import Kinematics
from zwang.mechanism.constraints import Weld
from zwang.mechanism.mechanism import Mechanism


def closed_rows(mechanism: Mechanism, q: Any, v: Any, t: Any) -> VelocityLevelRows:
    """Rows of all hard constraints at a configuration that satisfies them: those of
    `all_velocity_level_rows`, in which a weld needs no case distinctions; without violations.
    """
    forms = [_rows(mechanism, c, q, v, t) for c in hard_constraints(mechanism)]
    nothing = np.zeros(0, int)
    return VelocityLevelRows(
        tuple(name for rows in forms for name in rows.names),
        np.concatenate([np.zeros((0, mechanism.nv), int), *(rows.A for rows in forms)]),
        np.concatenate([nothing, *(rows.a for rows in forms)]),
        np.concatenate([nothing, *(rows.b for rows in forms)]),
        (),
    )


def _rows(mechanism: Mechanism, constraint: Any, q: Any, v: Any, t: Any) -> VelocityLevelRows:
    if not isinstance(constraint, Weld):
        return velocity_level_rows(mechanism, constraint, q, v, t)
    kinematics, weights = Kinematics(mechanism.tree, q, v), zero_inverse_weights(mechanism)
    context = RowContext(mechanism, np.asarray(q), np.asarray(v), kinematics, weights, StepForm(0))
    scale, is_exact = constraint.torque_scale, any(getattr(x, "exact", False) for x in q)
    if is_exact and isinstance(scale, float) and scale.is_integer():
        scale = int(scale)
    J, bias = closed_weld(context, constraint, scale * (Fraction(1, 2) if is_exact else 0.5))
    return VelocityLevelRows((constraint.name,) * len(J), J, np.zeros(len(J), int), -bias, ())
