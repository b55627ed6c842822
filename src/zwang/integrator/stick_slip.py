"""Steps of fixed size of systems with dry friction: the step is divided where a sliding speed becomes zero.

Between these times every sliding speed keeps its sign, so that the motion is smooth and a Runge-Kutta method
has its order. The time at which a sliding speed becomes zero is located by regula falsi on the method itself;
from there on the friction is that of a body at rest. Source: Hairer, Norsett, Wanner, Solving Ordinary
Differential Equations I (1993), Sec. II.6 (discontinuities).

On tangents the time T of a stop has the derivative of the root of the sliding speed s(T, p) at its end,

    dT = -s_p dp / s_T                                   (implicit function theorem)

A trial of the constant size T has the derivative s_p dp, and one whose size has the derivative one s_p dp +
s_T. So two more trials give dT, and one of this size is the substep.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from zwang.algebra.dual_control_flow import Tangent, parts, value_of
from zwang.algebra.selection import where_leaves
from zwang.integrator.fixed_step import State
from zwang.scalar import (
    absolute,
    cond,
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
SUBSTEPS = 100  # trial substeps of one step, or of a part up to a stop; about three for each stop
SECANTS = (
    12  # iterations for a stop before the bracket is halved, so that it shrinks whatever the function is
)
CLOSE_SPEED = 1e-6  # [m/s or rad/s] of a sliding speed, within which derivatives are one-sided
CONSTANT_SIZE, UNIT_RATE, FOUND = 0.0, 1.0, 2.0  # derivatives of the size of the next trial


class TrialSubstep(NamedTuple):
    """A trial substep: the state at its end and its status; `signs`, with which it should have begun, which
    differ where something at rest begins to slide; is_switching(): whether its derivatives are one-sided,
    which is asked for where it is accepted.
    """

    state: Any
    status: Any
    signs: np.ndarray
    is_switching: Callable[[], Any]


class SlidingSystem(NamedTuple):
    """The functions of a step of a system with m sliding speeds, whose state has any form.

    substep(state, signs, elapsed, size): a trial that begins at the time `elapsed` within the step, with
    sliding speeds of these signs (m,), 0 for those at rest. speeds(state, elapsed): the sliding speeds (m,).
    signs(speeds): their signs, 0 where they count as rest. logged(log, state, elapsed): the log with a stop
    in this state; needed with a log only.
    """

    substep: Callable[[Any, np.ndarray, Any, Any], TrialSubstep]
    speeds: Callable[[Any, Any], Any]
    signs: Callable[[Any], np.ndarray]
    logged: Callable[[Any, Any, Any], Any] | None = None


class SubstepResult(NamedTuple):
    """The state at the end of a step, the worst status of its substeps, and whether the end was reached.

    switching: whether the derivatives are one-sided; None where it is not to be found out. log: of the stops.
    """

    state: State
    status: Any
    is_complete: Any
    switching: Any
    log: Any = None


class PartToStop(NamedTuple):
    """The part of a step that ends at the first stop: its size [s], and the signs (m,) of the sliding speeds
    in it, 0 for those at rest. is_whole: whether nothing stops before the end of the step. is_found: whether
    the stop was located; otherwise the size is that of the step. switching: see `SubstepResult`.
    """

    size: Any
    signs: np.ndarray
    is_whole: Any
    is_found: Any
    switching: Any


class _StopBracket(NamedTuple):
    """The sizes (lower, upper) between which the first stop lies, with the smallest sliding speed at both
    ends. trials: made to locate it.
    """

    lower: Any
    lower_speed: Any
    upper: Any
    upper_speed: Any
    trials: Any


class _WithSigns(NamedTuple):
    """A state, with the signs (m,) of the sliding speeds in the substep that led to it."""

    state: State
    signs: np.ndarray


class _Progress(NamedTuple):
    """The state after the accepted substeps, with the signs (m,) of the sliding speeds there; the time
    elapsed and remaining; the substep to try next; the bracket of the first stop; the worst status, and the
    number of trials.

    phase: CONSTANT_SIZE, UNIT_RATE or FOUND, the derivative of the size of the next trial. rate: that of the
    sliding speed after a trial of constant size. switching, log: see `SubstepResult`.
    """

    state: Any
    signs: np.ndarray
    elapsed: Any
    remaining: Any
    trial: Any
    bracket: _StopBracket
    status: Any
    trials: Any
    phase: Any
    rate: Any
    switching: Any
    log: Any = None


def step_with_stops(
    system: SlidingSystem,
    state: State,
    h: Any,
    *,
    tangents: bool = False,
    switching: bool = False,
    log: Any = None,
) -> SubstepResult:
    """The state after a step of size h [s], which is divided where a sliding speed becomes zero.

    tangents: whether the state is tangents; the times of the stops then have their derivatives. switching:
    whether it is to be found out if the derivatives are one-sided. log: to which the stops within the step
    are added, see `SlidingSystem`; None for no log.
    """
    start = _start(system, state, h, switching)._replace(log=log)
    last = while_loop(_unfinished, lambda s: _after_trial(system, s, tangents), start)
    return SubstepResult(last.state, last.status, logical_not(last.remaining > 0), last.switching, last.log)


def part_to_stop(
    system: SlidingSystem, state: State, h: Any, *, tangents: bool = False, switching: bool = False
) -> PartToStop:
    """The part of a step of size h [s] up to the first time at which a sliding speed becomes zero.

    tangents, switching: as for `step_with_stops`.
    """

    def substep(s: Any, signs: np.ndarray, elapsed: Any, size: Any) -> TrialSubstep:
        found = system.substep(s.state, signs, elapsed, size)
        return found._replace(state=_WithSigns(found.state, signs))

    marked = SlidingSystem(substep, lambda s, elapsed: system.speeds(s.state, elapsed), system.signs)
    signs = system.signs(system.speeds(state, 0.0))
    last = while_loop(
        lambda s: logical_and(_unfinished(s), s.elapsed <= 0),
        lambda s: _after_trial(marked, s, tangents),
        _start(marked, _WithSigns(state, signs), h, switching),
    )
    moved, whole = last.elapsed > 0, logical_not(last.remaining > 0)
    size, signs = where_leaves(moved, (last.elapsed, last.state.signs), (h, last.signs))
    return PartToStop(size, signs, whole, logical_or(moved, whole), last.switching)


def _start(system: SlidingSystem, state: Any, h: Any, switching: bool) -> _Progress:
    """The progress before the first trial, which is the whole step of size h [s]."""
    u = system.speeds(state, 0.0)
    signs = system.signs(u)
    bracket = _StopBracket(0.0, _smallest(signs, u), h, 0.0, 0.0)
    return _Progress(
        state, signs, 0.0, h, h, bracket, 0, 0.0, CONSTANT_SIZE, 0.0, 0.0 > 1.0 if switching else None
    )


def _unfinished(s: _Progress) -> Any:
    """Whether another trial is to be made."""
    goes_on = logical_and(s.remaining > 0, equal(s.status, 0))
    return logical_and(goes_on, s.trials < SUBSTEPS)


def _after_trial(system: SlidingSystem, s: _Progress, tangents: bool) -> _Progress:
    """The progress after a trial: accepted, or to be repeated with another size or other signs."""
    end, status, begun, is_switching = system.substep(s.state, s.signs, s.elapsed, s.trial)
    u = system.speeds(end, s.elapsed + s.trial)
    speed, whole = _smallest(s.signs, u), equal(s.trial, s.remaining)
    at_stop, bracket = _is_stop(s.bracket, s.trial, speed), _narrowed(s.bracket, s.trial, speed)
    same = reduce(logical_and, [equal(x, y) for x, y in zip(begun, s.signs, strict=True)])
    trial, phase, rate, is_derived = _inside(bracket), s.phase, s.rate, True
    if tangents:
        is_derived = logical_or(whole, equal(s.phase, FOUND))
        derived = _with_derivative(s, speed)
        trial, phase, rate = where_leaves(at_stop, derived, (value_of(trial), phase, rate))
        bracket = where_leaves(at_stop, s.bracket, bracket)
    ends = logical_or(logical_and(at_stop, is_derived), logical_and(whole, speed > 0))
    accepted = logical_and(same, ends)
    signs = np.array([where(accepted, x, y) for x, y in zip(system.signs(u), begun, strict=True)])
    # after an accepted substep, the next one is the whole rest of the step; where something begins to slide,
    # the trial is repeated
    repeated = (s.trial, s.phase, s.rate, s.bracket)
    remaining = where(accepted, where(whole, 0.0, s.remaining - s.trial), s.remaining)
    following = (remaining, CONSTANT_SIZE, 0.0, _StopBracket(0.0, _smallest(signs, u), remaining, 0.0, 0.0))
    searched = where_leaves(same, (trial, phase, rate, bracket), repeated)
    trial, phase, rate, bracket = where_leaves(accepted, following, searched)
    switching = s.switching
    if switching is not None:
        near = _slow_count(s.signs, u) > where(whole, 0.0, 1.0)
        of_substep = cond(accepted, lambda: logical_or(near, is_switching()), lambda: 0.0 > 1.0)
        switching = logical_or(switching, of_substep)
    log, logged = s.log, system.logged
    if log is not None and logged is not None:
        stops = logical_and(accepted, logical_not(whole))
        log = cond(stops, lambda log: logged(log, end, s.elapsed + s.trial), lambda log: log, log)
    return _Progress(
        where_leaves(accepted, end, s.state), signs, where(accepted, s.elapsed + s.trial, s.elapsed),
        remaining, trial, bracket, maximum(s.status, status), s.trials + 1, phase, rate, switching, log,
    )  # fmt: skip


def _is_stop(bracket: _StopBracket, size: Any, speed: Any) -> Any:
    """Whether the smallest sliding speed after a trial is zero, or its root is not resolved any better."""
    at_an_end = logical_or(equal(size, bracket.lower), equal(size, bracket.upper))
    return logical_or(less(absolute(speed), ZERO_SPEED), logical_and(bracket.trials > 0, at_an_end))


def _narrowed(b: _StopBracket, size: Any, speed: Any) -> _StopBracket:
    """The bracket of the stop after a trial."""
    trials = b.trials + 1
    below = _StopBracket(size, speed, b.upper, b.upper_speed, trials)
    above = _StopBracket(b.lower, b.lower_speed, size, speed, trials)
    return where_leaves(speed <= 0, above, below)


def _inside(b: _StopBracket) -> Any:
    """The size of the next trial: by regula falsi, or the middle of the bracket."""
    # what begins to slide has no speed at the lower end
    halved = logical_or(b.trials > SECANTS, b.lower_speed >= np.inf)
    share = where(halved, 0.5, divide(b.lower_speed, b.lower_speed - b.upper_speed))
    return b.lower + share * (b.upper - b.lower)


def _with_derivative(s: _Progress, speed: Any) -> tuple[Any, Any, Any]:
    """The size of the next trial at the time of a stop with its derivative, the phase, and the rate."""
    size, before, rate = value_of(s.trial), value_of(s.rate), parts(speed)[1]
    constant = equal(s.phase, CONSTANT_SIZE)
    found = where(value_of(constant), 1.0, divide(-before, rate - before))
    return Tangent(size, found), where(constant, UNIT_RATE, FOUND), where(constant, rate, s.rate)


def _smallest(signs: Any, speeds: Any) -> Any:
    """The smallest sliding speed along its sign; inf if all are at rest. It is negative after a reversal."""
    along = [where(equal(s, 0), np.inf, s * u) for s, u in zip(signs, speeds, strict=True)]
    return reduce(minimum, along, np.inf)


def _slow_count(signs: Any, speeds: Any) -> Any:
    """The number of sliding speeds that are close to zero."""
    slow = [logical_and(abs(s) > 0, s * u < CLOSE_SPEED) for s, u in zip(signs, speeds, strict=True)]
    return sum((where(x, 1.0, 0.0) for x in slow), start=0.0)
