"""Error-controlled integration with dense output, by SciPy's solvers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np
import scipy  # its integrators load when they are first used

from zwang.errors import SimulationError
from zwang.scalar import real_number

METHODS = {
    "dop853": "DOP853",
    "rk45": "RK45",
    "radau": "Radau",
    "bdf": "BDF",
    "lsoda": "LSODA",
}
WITHOUT_PROJECTION = ("lsoda",)  # its history is internal, so that the state cannot be changed between steps
SMALL_STEP = 1e-10  # of the whole time; SMALL_STEPS of them in succession are no progress
SMALL_STEPS = 300
SWITCHES_AT_ONCE = 50  # switches of modes within SMALL_STEP that are no progress
STALLED = "the step size decreased without end: the derivative jumps in this state"
LEAST_RTOL = 3e-14  # the smallest relative tolerance that SciPy's solvers accept


@dataclass(frozen=True)
class Adaptive:
    """Settings of an error-controlled integrator.

    method: "dop853" or "rk45" for smooth motions, "radau", "bdf" or "lsoda" for stiff ones. rtol, atol: the
    local error of a step is kept below atol + rtol |y|, for each coordinate [rad or m] and each velocity.
    max_step [s]. Raises SimulationError for an unknown method, and for tolerances that are not positive
    numbers.
    """

    method: str = "dop853"
    rtol: float = 1e-9
    atol: float = 1e-11
    max_step: float = np.inf

    def __post_init__(self):
        for name in ("rtol", "atol", "max_step"):
            if not isinstance(getattr(self, name), int | float | np.number):
                raise SimulationError(
                    f"{name} of the integrator is {getattr(self, name)!r}; it must be a number"
                )
        if str(self.method).lower() not in METHODS:
            raise SimulationError(
                f"{self.method!r} is not an error-controlled method; the methods are {', '.join(METHODS)}"
            )
        object.__setattr__(self, "method", self.method.lower())
        for name in ("rtol", "atol", "max_step"):
            try:
                value = real_number(getattr(self, name))
            except (TypeError, ValueError):
                value = np.nan
            if not value > 0:
                raise SimulationError(
                    f"{name} of the integrator is {getattr(self, name)!r}; it must be a positive number"
                )
            object.__setattr__(self, name, value)


@dataclass(frozen=True)
class DenseTrajectory:
    """Result of an integration.

    y (n, size): the solution at the first n of the requested times. end: the time that was reached [s].
    failure: the reason why the integration ended early, or empty.
    """

    y: np.ndarray
    end: float
    failure: str = ""


class Modes(Protocol):
    """The modes of a derivative that is smooth between switches, such as sticking and sliding."""

    def start(self, t: float, y: np.ndarray) -> None:
        """Choose the modes of the initial state y at the time t."""
        ...

    def next_switch(self, t_old: float, t: float, state: Callable[[float], np.ndarray]) -> float | None:
        """The time of the first switch within a step, whose solution is state(t); None without a switch."""
        ...

    def switch(self, t: float, y: np.ndarray) -> None:
        """Make the switch that `next_switch` found."""
        ...


class IntegrationInterrupted(KeyboardInterrupt):
    """An integration was interrupted; `trajectory` is its result up to then."""

    def __init__(self, trajectory: DenseTrajectory):
        super().__init__()
        self.trajectory = trajectory


def integrate_error_controlled(
    derivative: Callable[[float, np.ndarray, float], np.ndarray],
    y0: np.ndarray,
    times: np.ndarray | Sequence[float],
    integrator: Adaptive,
    *,
    discontinuities: Sequence[float] = (),
    is_admissible: Callable[[np.ndarray], Any] = lambda y: np.isfinite(y).all(),
    tick: Callable[[float], None] = lambda t: None,
    project: Callable[[float, np.ndarray], np.ndarray] | None = None,
    modes: Modes | None = None,
) -> DenseTrajectory:
    """The solution of y_dot = derivative(t, y, since) at the given times, by an error-controlled method of
    SciPy.

    y0: initial value. times [s]: increasing, the first being the initial time; between steps the method's
    dense output is evaluated. discontinuities: times at which the derivative jumps; the integration restarts
    there, and `since` is the latest restart. is_admissible(y): the integration ends where it is false.
    tick(t): progress callback, after each step. project(t, y): replaces y after each step, for example by its
    projection onto constraints; not available for the methods in `WITHOUT_PROJECTION`. modes: of the
    derivative, at whose switches the integration restarts. Raises IntegrationInterrupted on
    KeyboardInterrupt.
    """
    rows = [np.array(y0, dtype=float)]
    try:
        return _integrated(
            derivative, rows, times, integrator, discontinuities, is_admissible, tick, project, modes
        )
    except KeyboardInterrupt:
        reached = DenseTrajectory(
            np.array(rows), float(times[len(rows) - 1]), "the integration was interrupted"
        )
        raise IntegrationInterrupted(reached) from None


def _integrated(
    derivative: Callable[[float, np.ndarray, float], np.ndarray],
    rows: list[np.ndarray],
    times: np.ndarray | Sequence[float],
    integrator: Adaptive,
    discontinuities: Sequence[float],
    is_admissible: Callable[[np.ndarray], Any],
    tick: Callable[[float], None],
    project: Callable[[float, np.ndarray], np.ndarray] | None,
    modes: Modes | None,
) -> DenseTrajectory:
    """As `integrate_error_controlled`; the solution is appended to `rows`, which begins with y0."""
    y = rows[0].copy()
    ends = [t for t in discontinuities if times[0] < t < times[-1]] + [times[-1]]
    begin = since = float(times[0])
    switches: list[float] = []
    if modes is not None:
        modes.start(begin, y)
    while ends:
        if not np.isfinite(derivative(begin, y, since)).all():
            return DenseTrajectory(np.array(rows), begin, "the derivative is not a finite number")
        solver = getattr(scipy.integrate, METHODS[integrator.method])(
            partial(_with_segment_start, derivative, since), begin, y, ends[0],
            rtol=max(integrator.rtol, LEAST_RTOL), atol=integrator.atol, max_step=integrator.max_step,
        )  # fmt: skip
        found = _segment(solver, begin, rows, times, is_admissible, tick, project, modes)
        if found.failure:
            return DenseTrajectory(np.array(rows), found.end, found.failure)
        begin, y = found.end, found.y
        if modes is not None and found.is_switch:
            modes.switch(begin, y)
            switches = [*switches[1 - SWITCHES_AT_ONCE :], begin]
            passed = begin - switches[0]
            if len(switches) == SWITCHES_AT_ONCE and passed <= SMALL_STEP * (times[-1] - times[0]):
                return DenseTrajectory(np.array(rows), begin, STALLED)
        if begin >= ends[0]:
            ends, since = ends[1:], begin
    return DenseTrajectory(np.array(rows), float(times[-1]))


class _Segment(NamedTuple):
    """The end of a segment [s] and the solution there; whether a mode switches there; the reason of a
    failure, or empty.
    """

    end: float
    y: np.ndarray
    is_switch: bool = False
    failure: str = ""


def _segment(
    solver: Any,
    begin: float,
    rows: list[np.ndarray],
    times: np.ndarray | Sequence[float],
    is_admissible: Callable[[np.ndarray], Any],
    tick: Callable[[float], None],
    project: Callable[[float, np.ndarray], np.ndarray] | None,
    modes: Modes | None,
) -> _Segment:
    """The steps of a solver up to its end or to the first switch of the modes; appends the solution to
    `rows`.
    """
    small_steps = 0
    while solver.status == "running":
        message = _step(solver)
        if solver.status == "failed" or not is_admissible(solver.y):
            why = message or "the state left its bounds"
            return _Segment(float(solver.t_old or begin), solver.y, failure=why)
        projected = solver.y if project is None else project(solver.t, solver.y)
        if not is_admissible(projected):
            return _Segment(float(solver.t_old), solver.y, failure="the projection of the state failed")
        is_small = solver.t - solver.t_old < SMALL_STEP * (times[-1] - times[0])
        small_steps = small_steps + 1 if is_small else 0
        if small_steps == SMALL_STEPS:
            return _Segment(float(solver.t), solver.y, failure=STALLED)
        dense = _projected_within(solver.dense_output(), project)
        switch = None if modes is None else modes.next_switch(solver.t_old, solver.t, dense)
        reached = solver.t if switch is None else switch
        while len(rows) < len(times) and times[len(rows)] <= reached:
            rows.append(dense(times[len(rows)]))
        tick(reached)
        if switch is not None:
            return _Segment(float(switch), dense(switch), True)
        _restart_from(solver, projected)
    return _Segment(float(solver.t), solver.y)


def _projected_within(
    dense: Callable[[float], np.ndarray], project: Callable[[float, np.ndarray], np.ndarray] | None
) -> Callable[[float], np.ndarray]:
    """The solution within a step, projected as its end is."""
    return dense if project is None else lambda t: project(t, dense(t))


def _step(solver: Any) -> str | None:
    """Take one step; the reason of a failure, or None. Implicit methods raise where values are not finite."""
    try:
        with np.errstate(all="ignore"):
            return solver.step()
    except (ValueError, np.linalg.LinAlgError) as error:
        solver.status = "failed"
        return str(error)


def _restart_from(solver: Any, y: np.ndarray) -> None:
    """Continue from another state y: set its derivative, or for BDF the newest backward difference."""
    if y is solver.y or np.array_equal(y, solver.y):
        return
    if isinstance(solver, scipy.integrate.BDF):
        solver.D[0] = y
    else:
        solver.f = solver.fun(solver.t, y)
    solver.y = y


def _with_segment_start(
    derivative: Callable[..., np.ndarray], since: float, t: float, y: np.ndarray
) -> np.ndarray:
    return derivative(t, y, since)
