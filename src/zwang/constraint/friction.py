"""Dry friction of joints and tendons: a force up to a bound, against the motion."""

from __future__ import annotations

from typing import Any

import numpy as np

from zwang.constraint.context import RowContext
from zwang.constraint.rows import Rows
from zwang.constraint.softness import hard_softness_rows, soft_rows
from zwang.kinematics.tendon_length import tendon_length
from zwang.mechanism.joints import Softness
from zwang.scalar import is_zero


def friction_rows(instant: RowContext) -> list[Rows]:
    """A row for every speed of a joint with friction, then one for every tendon with friction."""
    mechanism, parts = instant.mechanism, []
    unit = np.eye(mechanism.nv, dtype=int)
    for index in mechanism.joints:
        joint = index.joint
        if is_zero(joint.friction):
            continue
        for k in range(index.v.start, index.v.stop):
            weight = instant.weights.speeds[k]
            parts.append(_row(instant, index.name, unit[k], joint.friction, weight, joint.friction_softness))
    for tendon in mechanism.tendons:
        if not is_zero(tendon.friction):
            moment = tendon_length(mechanism, tendon, instant.q)[1]
            weight = instant.weights.tendons[tendon.name]
            parts.append(
                _row(instant, tendon.name, moment, tendon.friction, weight, tendon.friction_softness)
            )
    return parts


def _row(
    instant: RowContext, name: str, J: np.ndarray, bound: Any, weight: Any, softness: Softness | None
) -> Rows:
    name, J, v = f"friction of {name}", J.reshape(1, -1), instant.v
    if softness is None:
        return hard_softness_rows(name, "friction", J, v, [0], weight=weight, bound=bound, timestep=instant.timestep)
    time = instant.shortest_time
    return soft_rows(name, "friction", J, v, [0], softness, weight=weight, bound=bound, shortest_time=time)
