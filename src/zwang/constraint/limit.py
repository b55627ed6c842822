"""Limit rows of joints and tendons: a unilateral force that keeps a coordinate or length within its
limits.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from zwang.algebra.norms import TINY, max_abs, root_of_square
from zwang.algebra.rotations import logarithm
from zwang.constraint.context import RowContext
from zwang.constraint.rows import Rows
from zwang.constraint.softness import can_close, hard_softness_rows, soft_rows
from zwang.kinematics.tendon_length import has_moment_arms, tendon_bias, tendon_length
from zwang.mechanism.joints import Softness
from zwang.mechanism.mechanism import JointIndex, Mechanism
from zwang.scalar import divide, is_zero, less, logical_and, maximum, tan, value_is_constant, where


def has_hard_limits(mechanism: Mechanism) -> bool:
    """Whether a joint or a tendon has limits without softness."""
    elements = [*(index.joint for index in mechanism.joints), *mechanism.tendons]
    return any(x.limits is not None and x.limit_softness is None for x in elements)


def limit_rows(context: RowContext, *, nearest_only: bool = False) -> list[Rows]:
    """Rows for the lower and the upper limit of every joint with limits, then of every tendon whose length
    can change.

    nearest_only: of two limits that cannot be active at once, return only the row of the nearer one.
    """
    parts = []
    for index in context.mechanism.joints:
        limits = index.joint.limits
        if limits is not None:
            parts += _ball(context, index) if index.kind == "ball" else _joint(context, index, nearest_only)
    for tendon in context.mechanism.tendons:
        if tendon.limits is not None and has_moment_arms(context.mechanism, tendon):
            length, moment = tendon_length(context.mechanism, tendon, context.kinematics)
            inverse_weight = context.inverse_weights.tendons[tendon.name]
            softness = tendon.limit_softness
            # MuJoCo's soft rows omit the bias
            bias = tendon_bias(context.mechanism, tendon, context.kinematics) if softness is None else 0
            ends = tendon.limits, length, moment, inverse_weight, softness
            least_R = context.inverse_weights.tendon_R[tendon.name]
            parts += _ends(context, tendon.name, *ends, nearest_only, bias, least_R)
    return parts


def _joint(context: RowContext, index: JointIndex, nearest_only: bool) -> list[Rows]:
    """Limit rows of a joint with one coordinate."""
    k = index.v.start
    J = np.eye(context.mechanism.nv, dtype=int)[k]
    inverse_weight, softness = context.inverse_weights.speeds[k], index.joint.limit_softness
    q = context.q[index.q.start]
    return _ends(context, index.name, index.joint.limits, q, J, inverse_weight, softness, nearest_only)


def _ends(
    context: RowContext,
    name: str,
    limits: Any,
    x: Any,
    J: np.ndarray,
    inverse_weight: Any,
    softness: Softness | None,
    nearest_only: bool,
    bias: Any = 0,
    least_R: Any = TINY,
) -> list[Rows]:
    """Rows x - lower >= 0 and upper - x >= 0; an infinite limit has no row. bias: Jdot v of x, for hard
    rows. least_R: the smallest R, of soft ones.
    """
    lower, upper = limits
    if nearest_only and softness is not None and _are_separate(lower, upper, softness.margin):
        lower_is_nearer = x - lower < upper - x
        J_nearest = np.array([j if is_zero(j) else where(lower_is_nearer, j, -j) for j in J])
        distance = where(lower_is_nearer, x - lower, upper - x)
        return [_row(context, f"limit of {name}", distance, J_nearest, inverse_weight, softness, 0, least_R)]
    ends = [("lower", x - lower, J, bias, lower), ("upper", upper - x, -J, -bias, upper)]
    return [
        _row(context, f"{end} limit of {name}", distance, J_end, inverse_weight, softness, bias_end, least_R)
        for end, distance, J_end, bias_end, limit in ends
        if not (value_is_constant(limit) and np.isinf(limit))
    ]


def _are_separate(lower: Any, upper: Any, margin: Any) -> bool:
    """Whether both limits are finite, and no value is within the margin of both, by the numbers of the
    description; limits that are symbols may not be separate, and keep a row each.
    """
    known = all(map(value_is_constant, (lower, upper, margin)))
    return known and bool(2 * margin < upper - lower < np.inf)


def _ball(context: RowContext, index: JointIndex) -> list[Rows]:
    """Row of a ball joint: the angle of its rotation vector stays below the larger limit; its rate is w .
    axis.

    The axis e itself moves, so that angle'' = e . w' + (|w|^2 - (e . w)^2) / (2 tan(angle / 2)).
    """
    rotation_vector = logarithm(context.q[index.q])
    square = rotation_vector @ rotation_vector
    angle = root_of_square(square)
    length = where(square > 0, angle, 1.0)
    axis = [
        where(square > 0, divide(x, length), unit)
        for x, unit in zip(rotation_vector, (1.0, 0.0, 0.0), strict=True)
    ]
    J: list[Any] = [0] * context.mechanism.nv
    for k, x in zip(range(index.v.start, index.v.stop), axis, strict=True):
        J[k] = -x
    inverse_weight = context.inverse_weights.speeds[index.v.start]
    limits = index.joint.limits
    assert limits is not None
    distance, softness = maximum(*limits) - angle, index.joint.limit_softness
    bias: Any = 0
    if softness is None:
        w = np.asarray(context.v)[index.v]
        along, tangent = np.array(axis) @ w, 2 * tan(angle / 2)
        bias = where(square > 0, -divide(w @ w - along * along, where(square > 0, tangent, 1.0)), 0.0)
    return [_row(context, f"limit of {index.name}", distance, np.array(J), inverse_weight, softness, bias)]


def _row(
    context: RowContext,
    name: str,
    distance: Any,
    J: np.ndarray,
    inverse_weight: Any,
    softness: Softness | None,
    bias: Any,
    least_R: Any = TINY,
) -> Rows:
    """One limit row, soft or hard; bias: Jdot v of a hard one; least_R: the smallest R of a soft one."""
    J = J.reshape(1, -1)
    if softness is None:
        # The bias matters near the limit only. That of a string is infinite at length zero.
        near = can_close(distance, (J @ np.asarray(context.v))[0], context.step.size)
        bias = where(near, bias, 0)
        return hard_softness_rows(
            name, "limit", J, context.v, [context.distance_on_motion(distance, bias)],
            inverse_weight=inverse_weight, bias=bias,
            timestep=context.step.size, damping=context.step.closing_damping,
        )  # fmt: skip
    margin = softness.margin
    return soft_rows(
        name,
        "limit",
        J,
        context.v,
        [distance],
        softness,
        inverse_weight=inverse_weight,
        margin=margin,
        shortest_time=context.shortest_time,
        # a tendon that does not touch its wrapping body may have no moment arm
        active=logical_and(distance < margin + context.widening, less(0, max_abs(J[0]))),
        smallest_R=least_R,
    )
