"""Exact line search: the zero of the slope phi'(t) of a convex cost along a direction."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from zwang.scalar import absolute, logical_and, logical_not, logical_or, maximum, where, while_loop

ITERATIONS = 50  # the limit of slopes, as in MuJoCo
SMALLEST_BRACKET = 1e-3  # relative to the upper end of the bracket, and times the tolerance
UNBOUNDED = 1e30  # the upper end of a bracket that has none yet


class _LineSearchState(NamedTuple):
    """Step t, slope phi'(t), curvature phi''(t), lower and upper end of the bracket, number of slopes
    evaluated.
    """

    step: Any
    slope: Any
    curvature: Any
    low: Any
    high: Any
    iterations: Any


def exact_line_search(
    slope_at: Callable[[Any], tuple[Any, Any]],
    initial_slope: Any,
    first_step: Any = 1.0,
    tolerance: float = 1e-7,
    noise: Any = 0.0,
) -> Any:
    """Step length t >= 0 at which the slope of a convex cost vanishes, by Newton's method safeguarded by
    bisection.

    slope_at: the slope and the positive curvature of the cost at a step. initial_slope: the slope at step 0,
    which is negative. first_step: the first step tried, by default 1. tolerance: of the slope, relative to
    initial_slope. noise: rounding error of the slope, below which it counts as zero. The search also ends
    when the bracket is narrower than the tolerance requires or after `ITERATIONS` slopes.
    """
    slope_tolerance = maximum(tolerance * absolute(initial_slope), noise)

    def unfinished(s: _LineSearchState) -> Any:
        bracket_is_wide = SMALLEST_BRACKET * tolerance * s.high < s.high - s.low
        return logical_and(
            logical_and(slope_tolerance < absolute(s.slope), bracket_is_wide), s.iterations < ITERATIONS
        )

    def iterate(s: _LineSearchState) -> _LineSearchState:
        # the slope increases with the step, so that its sign says which side of the zero the step is on
        low, high = where(s.slope < 0, s.step, s.low), where(s.slope < 0, s.high, s.step)
        # Newton's step t - phi'(t) / phi''(t); outside the bracket bisection, or doubling where there is no
        # upper end
        newton = s.step - s.slope / s.curvature
        outside = logical_or(logical_not(low < newton), logical_not(newton < high))
        step = where(outside, where(high < UNBOUNDED, (low + high) / 2, 2 * s.step), newton)
        return _LineSearchState(step, *slope_at(step), low, high, s.iterations + 1)

    start = _LineSearchState(first_step, *slope_at(first_step), 0.0, UNBOUNDED, 1.0)
    return while_loop(unfinished, iterate, start).step
