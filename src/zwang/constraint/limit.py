"""Limits of joints and tendons: a force that pushes back, never pulls."""

from __future__ import annotations

from typing import Any

import numpy as np

from zwang.algebra.rotations import logarithm
from zwang.constraint.context import RowContext
from zwang.constraint.rows import Rows
from zwang.constraint.softness import hard_softness_rows, soft_rows
from zwang.kinematics.tendon_length import tendon_length
from zwang.mechanism.joints import Softness
from zwang.mechanism.mechanism import JointIndex
from zwang.scalar import divide, maximum, sqrt, value_is_constant, where


def limit_rows(instant: RowContext, *, nearer: bool = False) -> list[Rows]:
    """Rows for the lower and the upper end of every joint with limits, then of every tendon.

    nearer: of two ends that cannot act at once, there is only the row of the nearer one.
    """
    parts = []
    for index in instant.mechanism.joints:
        limits = index.joint.limits
        if limits is not None:
            parts += _ball(instant, index) if index.kind == "ball" else _joint(instant, index, nearer)
    for tendon in instant.mechanism.tendons:
        if tendon.limits is not None:
            length, moment = tendon_length(instant.mechanism, tendon, instant.q)
            weight = instant.weights.tendons[tendon.name]
            ends = tendon.limits, length, moment, weight, tendon.limit_softness
            parts += _ends(instant, tendon.name, *ends, nearer)
    return parts


def _joint(instant: RowContext, index: JointIndex, nearer: bool) -> list[Rows]:
    k = index.v.start
    J = np.eye(instant.mechanism.nv, dtype=int)[k]
    weight, softness = instant.weights.speeds[k], index.joint.limit_softness
    q = instant.q[index.q.start]
    return _ends(instant, index.name, index.joint.limits, q, J, weight, softness, nearer)


def _ends(
    instant: RowContext,
    name: str,
    limits: Any,
    x: Any,
    J: np.ndarray,
    weight: Any,
    softness: Softness | None,
    nearer: bool,
) -> list[Rows]:
    """x - lower >= 0 and upper - x >= 0, where these are finite."""
    lower, upper = limits
    if nearer and softness is not None and _apart(lower, upper, softness.margin):
        below = x - lower < upper - x
        either = np.array([where(below, j, -j) for j in J])
        gap = where(below, x - lower, upper - x)
        return [_row(instant, f"limit of {name}", gap, either, weight, softness)]
    ends = [("lower", x - lower, J, lower), ("upper", upper - x, -J, upper)]
    return [
        _row(instant, f"{end} limit of {name}", gap, J_end, weight, softness)
        for end, gap, J_end, limit in ends
        if not (value_is_constant(limit) and np.isinf(limit))
    ]


def _apart(lower: Any, upper: Any, margin: Any) -> bool:
    """Whether both ends are finite, and nothing is within the margin of both."""
    known = all(map(value_is_constant, (lower, upper, margin)))
    return known and bool(2 * margin < upper - lower < np.inf)


def _ball(instant: RowContext, index: JointIndex) -> list[Rows]:
    """The angle of a ball's rotation vector stays below the larger limit; its rate is the speeds' part along the vector."""
    turn = logarithm(instant.q[index.q])
    square = turn @ turn
    angle = where(square > 0, sqrt(square), 0.0)
    axis = [where(square > 0, divide(x, angle), unit) for x, unit in zip(turn, (1.0, 0.0, 0.0), strict=True)]
    J: list[Any] = [0] * instant.mechanism.nv
    for k, x in zip(range(index.v.start, index.v.stop), axis, strict=True):
        J[k] = -x
    weight = instant.weights.speeds[index.v.start]
    gap = maximum(*index.joint.limits) - angle
    return [_row(instant, f"limit of {index.name}", gap, np.array(J), weight, index.joint.limit_softness)]


def _row(
    instant: RowContext, name: str, gap: Any, J: np.ndarray, weight: Any, softness: Softness | None
) -> Rows:
    J = J.reshape(1, -1)
    if softness is None:
        return hard_softness_rows(name, "limit", J, instant.v, [gap], weight=weight, timestep=instant.timestep)
    margin = softness.margin
    return soft_rows(
        name, "limit", J, instant.v, [gap], softness, weight=weight, margin=margin, shortest_time=instant.shortest_time,
        active=gap < margin,
    )  # fmt: skip
