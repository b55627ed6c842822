"""Steps of fixed size of systems with dry friction: the step is divided where a sliding speed becomes zero.

Between these times every sliding speed keeps its sign, so that the motion is smooth and a Runge-Kutta method
has its order. The time at which a sliding speed becomes zero is located by regula falsi on the method itself;
from there on the friction is that of a body at rest. Source: Hairer, Norsett, Wanner, Solving Ordinary
Differential Equations I (1993), Sec. II.6 (discontinuities).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from zwang.integrator.fixed_step import State
from zwang.scalar import (
    absolute,
    divide,
    equal,
    less,
    logical_and,
    logical_not,
    logical_or,
    maximum,
    minimum,
    where,
    while_loop,
)

ZERO_SPEED = 1e-12  # [m/s or rad/s] at which a sliding speed counts as zero
SUBSTEPS = 100  # trial substeps of one step; one without a stop, and about three more for each stop
SECANTS = (
    12  # iterations for a stop before the bracket is halved, so that it shrinks whatever the function is
)

Substep = Callable[[State, np.ndarray, Any, Any], tuple[State, Any, np.ndarray]]


class SubstepResult(NamedTuple):
    """The state at the end of a step, the worst status of its substeps, and whether the end was reached."""

    state: State
    status: Any
    is_complete: Any


class _Progress(NamedTuple):
    """The state after the accepted substeps, with the signs (m,) of the sliding speeds there; the time
    elapsed and remaining; the substep to try next; the bracket (lower, upper) of the first stop, with the
    smallest sliding speed at both ends; the worst status; the number of trials, and that of the present
    bracket.
    """

    state: State
    signs: np.ndarray
    elapsed: Any
    remaining: Any
    trial: Any
    lower: Any
    lower_speed: Any
    upper: Any
    upper_speed: Any
    status: Any
    trials: Any
    located: Any


def step_with_stops(
    substep: Substep, speeds: Callable[[State, Any], Any], signs_of: Callable[[Any], np.ndarray],
    state: State, h: Any,
) -> SubstepResult:  # fmt: skip
    """The state after a step of size h [s], which is divided where a sliding speed becomes zero.

    substep(state, signs, elapsed, size): the state and the status after a substep that begins at the time
    `elapsed` within the step, with sliding speeds of these signs (m,), 0 for those at rest; and the signs
    with which it should have begun, which differ where something at rest begins to slide. speeds(state,
    elapsed): the sliding speeds (m,). signs_of(speeds): their signs, 0 where they count as rest.
    """

    def unfinished(s: _Progress) -> Any:
        goes_on = logical_and(s.remaining > 0, equal(s.status, 0))
        return logical_and(goes_on, s.trials < SUBSTEPS)

    def iterate(s: _Progress) -> _Progress:
        end, status, begun = substep(s.state, s.signs, s.elapsed, s.trial)
        u = speeds(end, s.elapsed + s.trial)
        speed, whole = _smallest(s.signs, u), equal(s.trial, s.remaining)
        beyond = speed <= 0
        unresolved = logical_and(s.located > 0, logical_or(equal(s.trial, s.lower), equal(s.trial, s.upper)))
        at_stop = logical_or(less(absolute(speed), ZERO_SPEED), unresolved)
        same = reduce(logical_and, [equal(x, y) for x, y in zip(begun, s.signs, strict=True)])
        accepted = logical_and(same, logical_or(at_stop, logical_and(whole, speed > 0)))
        signs = np.array([where(accepted, x, y) for x, y in zip(signs_of(u), begun, strict=True)])
        remaining = where(accepted, where(whole, 0.0, s.remaining - s.trial), s.remaining)
        # the bracket of the stop; after an accepted substep, the next one is the whole rest of the step
        lower = where(accepted, 0.0, where(beyond, s.lower, s.trial))
        lower_speed = where(accepted, _smallest(signs, u), where(beyond, s.lower_speed, speed))
        upper = where(beyond, s.trial, s.upper)
        upper_speed = where(beyond, speed, s.upper_speed)
        located = where(accepted, 0.0, s.located + 1)
        halved = logical_or(located > SECANTS, lower_speed >= np.inf)  # no speed of what begins to slide
        share = where(halved, 0.5, divide(lower_speed, lower_speed - upper_speed))
        inside = lower + share * (upper - lower)
        trial = where(accepted, remaining, where(same, inside, s.trial))
        none = logical_not(same)
        return _Progress(
            State(*(where(accepted, new, old) for new, old in zip(end, s.state, strict=True))),
            signs, where(accepted, s.elapsed + s.trial, s.elapsed), remaining, trial,
            where(none, s.lower, lower), where(none, s.lower_speed, lower_speed), where(none, s.upper, upper),
            where(none, s.upper_speed, upper_speed), maximum(s.status, status), s.trials + 1, located,
        )  # fmt: skip

    u = speeds(state, 0.0)
    signs = signs_of(u)
    start = _Progress(state, signs, 0.0, h, h, 0.0, _smallest(signs, u), h, 0.0, 0, 0.0, 0.0)
    last = while_loop(unfinished, iterate, start)
    return SubstepResult(last.state, last.status, logical_not(last.remaining > 0))


def _smallest(signs: Any, speeds: Any) -> Any:
    """The smallest sliding speed along its sign; inf if all are at rest. It is negative after a reversal."""
    along = [where(equal(s, 0), np.inf, s * u) for s, u in zip(signs, speeds, strict=True)]
    return reduce(minimum, along, np.inf)
