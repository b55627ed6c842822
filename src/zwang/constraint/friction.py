"""Dry-friction rows of joints and tendons: a bounded force that opposes the motion."""

from __future__ import annotations

from typing import Any

import numpy as np

from zwang.algebra.norms import TINY
from zwang.constraint.context import RowContext
from zwang.constraint.rows import Rows
from zwang.constraint.softness import hard_softness_rows, soft_rows
from zwang.kinematics.tendon_length import has_moment_arms, tendon_bias, tendon_length
from zwang.mechanism.joints import Softness
from zwang.mechanism.mechanism import Mechanism
from zwang.scalar import is_zero


def has_hard_friction(mechanism: Mechanism) -> bool:
    """Whether a joint or a tendon has dry friction without softness."""
    elements = [*(index.joint for index in mechanism.joints), *mechanism.tendons]
    return any(not is_zero(x.friction) and x.friction_softness is None for x in elements)


def friction_rows(context: RowContext) -> list[Rows]:
    """One row for every velocity of a joint with dry friction, then one for every tendon with dry friction
    whose length can change.
    """
    mechanism, parts = context.mechanism, []
    unit = np.eye(mechanism.nv, dtype=int)
    for index in mechanism.joints:
        joint = index.joint
        if is_zero(joint.friction):
            continue
        for k in range(index.v.start, index.v.stop):
            inverse_weight = context.inverse_weights.speeds[k]
            parts.append(
                _row(context, index.name, unit[k], joint.friction, inverse_weight, joint.friction_softness)
            )
    for tendon in mechanism.tendons:
        if not is_zero(tendon.friction) and has_moment_arms(mechanism, tendon):
            moment = tendon_length(mechanism, tendon, context.kinematics)[1]
            inverse_weight, softness = context.inverse_weights.tendons[tendon.name], tendon.friction_softness
            # MuJoCo's soft rows omit the bias
            bias = tendon_bias(mechanism, tendon, context.kinematics) if softness is None else 0
            least_R = context.inverse_weights.tendon_R[tendon.name]
            row = _row(context, tendon.name, moment, tendon.friction, inverse_weight, softness, bias, least_R)
            parts.append(row)
    return parts


def _row(
    context: RowContext,
    name: str,
    J: np.ndarray,
    bound: Any,
    inverse_weight: Any,
    softness: Softness | None,
    bias: Any = 0,
    least_R: Any = TINY,
) -> Rows:
    """One friction row, soft or hard; bias: Jdot v of a hard one; least_R: the smallest R of a soft one."""
    name, J, v = f"friction of {name}", J.reshape(1, -1), context.v
    if softness is None:
        return hard_softness_rows(
            name, "friction", J, v, [0], inverse_weight=inverse_weight, bias=bias, bound=bound,
            timestep=context.step.size,
        )  # fmt: skip
    time = context.shortest_time
    return soft_rows(
        name, "friction", J, v, [0], softness, inverse_weight=inverse_weight, bound=bound,
        shortest_time=time, smallest_R=least_R,
    )  # fmt: skip
