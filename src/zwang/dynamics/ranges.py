"""Numbers within ranges, such as controls, actuator forces and activations.

At an end of a range the derivative is that on its inside, as in MuJoCo's `mjd_transitionFD`: a control at the
end can still be moved back. Beyond the range, and where both ends are equal, it is zero. The activation of a
muscle that equals its control has the time constant of deactivation, also at the lower end.
"""

from __future__ import annotations

from typing import Any

from zwang.mechanism.numbers import Interval
from zwang.scalar import clip, less, less_equal, logical_or, maximum, minimum, where


def clipped(x: Any, limits: Interval | None) -> Any:
    """x within the limits, if there are any."""
    if limits is None:
        return x
    lower, upper = limits
    # of two equal arguments, the derivatives of minimum and maximum are those of the second
    return where(less(lower, upper), minimum(upper, maximum(lower, x)), clip(x, lower, upper))


def rate_within(rate: Any, x: Any, limits: Interval | None) -> Any:
    """The time derivative of x, 0 where x is at or beyond a limit and would move outwards."""
    if limits is None:
        return rate
    lower, upper = limits
    rate = where(logical_or(less(x, upper), less_equal(rate, 0)), rate, 0)
    return where(logical_or(less(lower, x), less_equal(0, rate)), rate, 0)
