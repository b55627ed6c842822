"""The exact step along a direction: the zero of the slope of Gauss's problem, which rises along any line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from zwang.scalar import absolute, logical_and, logical_not, logical_or, maximum, where, while_loop

TRIALS = 50
NARROW = 1e-3  # of a bracket, relative to its end and the tolerance
UNBOUNDED = 1e30


class _Search(NamedTuple):
    """The step tried, slope and curvature there, the bracket, and the number of trials."""

    step: Any
    slope: Any
    curvature: Any
    low: Any
    high: Any
    trials: Any


def exact_step(
    slope_at: Callable[[Any], tuple[Any, Any]],
    downhill: Any,
    first: Any = 1.0,
    tolerance: float = 1e-7,
    noise: Any = 0.0,
) -> Any:
    """The step at which the slope is zero, to `tolerance` times `downhill`, its (negative) value at step 0, or to `noise`.

    slope_at: slope and positive curvature at a step. Newton's method from `first`, kept within a bracket by
    bisection, until the slope is that small or the bracket narrow.
    """
    goal = maximum(tolerance * absolute(downhill), noise)

    def wanted(s: _Search) -> Any:
        open_still = NARROW * tolerance * s.high < s.high - s.low
        return logical_and(logical_and(goal < absolute(s.slope), open_still), s.trials < TRIALS)

    def improve(s: _Search) -> _Search:
        low, high = where(s.slope < 0, s.step, s.low), where(s.slope < 0, s.high, s.step)
        newton = s.step - s.slope / s.curvature
        outside = logical_or(logical_not(low < newton), logical_not(newton < high))
        step = where(outside, where(high < UNBOUNDED, (low + high) / 2, 2 * s.step), newton)
        return _Search(step, *slope_at(step), low, high, s.trials + 1)

    start = _Search(first, *slope_at(first), 0.0, UNBOUNDED, 1.0)
    return while_loop(wanted, improve, start).step
