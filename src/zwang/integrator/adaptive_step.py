"""Error-controlled integration with dense output, by SciPy's solvers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice, pairwise, takewhile
from typing import Any, NamedTuple, Protocol

import numpy as np
import scipy  # its integrators load when they are first used

from zwang.errors import SimulationError
from zwang.integrator.root_location import Crossing, locate_crossings
from zwang.scalar import real_number

METHODS = {
    "dop853": "DOP853",
    "rk45": "RK45",
    "radau": "Radau",
    "bdf": "BDF",
    "lsoda": "LSODA",
}
IMPLICIT = ("radau", "bdf", "lsoda")  # the methods that use a Jacobian of the derivative
WITHOUT_PROJECTION = ("lsoda",)  # its history is internal, so that the state cannot be changed between steps
TERMINATED = "a terminal event occurred"
SMALL_STEP = 1e-10  # of the whole time; SMALL_STEPS of them in succession are no progress
SMALL_STEPS = 300
SWITCHES_AT_ONCE = 50  # switches of modes within SMALL_STEP that are no progress
STAGNATED = "the step size decreased without end: the derivative jumps in this state"
LEAST_RTOL = 3e-14  # the smallest relative tolerance that SciPy's solvers accept


@dataclass(frozen=True)
class Adaptive:
    """Settings of an error-controlled integrator.

    method: "dop853" or "rk45" for smooth motions, "radau", "bdf" or "lsoda" for stiff ones. rtol, atol: the
    local error of a step is kept below atol + rtol |y|, for each coordinate [rad or m] and each velocity.
    max_step [s]: the largest step; the step size of the simulation is an upper bound, too, with hard contacts
    and while Coulomb friction holds something at rest.
    Raises SimulationError for an unknown method, and for tolerances that are not positive numbers.
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


@dataclass(frozen=True)
class IntegrationEvents:
    """Events of an integration: zeros of functions of the time and the solution.

    values(t, y): the values of all of them (events,). directions: see `crosses`. occurs(t, k, y): called for
    each event k, in the order of time; the integration ends there if it returns true.
    arrives(t, k, before): called first where the value is zero at the end of a step; before: at its start.
    touches(start, end, before, after, at): further events between these times, where the values are before
    and after (events,) and the solution is at(t).
    """

    values: Callable[[float, np.ndarray], np.ndarray]
    directions: Sequence[int]
    occurs: Callable[[float, int, np.ndarray], bool]
    arrives: Callable[[float, int, float], None] = lambda t, k, before: None
    touches: Callable[..., list[Crossing]] = lambda start, end, before, after, at: []

    def end_of_step(
        self, times: Sequence[float], before: np.ndarray, at: Callable[[float], np.ndarray], first: bool
    ) -> tuple[np.ndarray, float | None]:
        """The values at the end of a step, and the time of a terminal event in it, or None.

        times: the start of the step, those within at which zeros are looked for, and the end. before: the
        values at the start. at(t): the solution within the step. first: see `crosses`.
        """
        for start, end in pairwise(times):
            before, terminal = self._between(start, before, end, at, first)
            if terminal is not None:
                return before, terminal
            first = False
        return before, None

    def _between(
        self, start: float, before: np.ndarray, end: float, at: Callable[[float], np.ndarray], first: bool
    ) -> tuple[np.ndarray, float | None]:
        """As `end_of_step`, with zeros that the values at the start and at the end show."""
        after = np.asarray(self.values(end, at(end)), dtype=float)
        functions = [partial(self._value, k, at) for k in range(len(after))]
        crossings = locate_crossings(functions, self.directions, start, end, before, after, first=first)
        for crossing in sorted([*crossings, *self.touches(start, end, before, after, at)]):
            if after[crossing.index] == 0:
                self.arrives(crossing.t, crossing.index, float(before[crossing.index]))
            if self.occurs(crossing.t, crossing.index, at(crossing.t)):
                return after, crossing.t
        return after, None

    def _value(self, k: int, at: Callable[[float], np.ndarray], t: float) -> float:
        return float(self.values(t, at(t))[k])


class Modes(Protocol):
    """The modes of a derivative that is smooth between switches, such as sticking and sliding."""

    @property
    def largest_step(self) -> float:
        """The largest step [s] in which a switch of the present modes is noticed."""
        ...

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
    jacobian: Callable[[float, np.ndarray, float], np.ndarray] | None = None,
    events: IntegrationEvents | None = None,
    modes: Modes | None = None,
) -> DenseTrajectory:
    """The solution of y_dot = derivative(t, y, since) at the given times, by an error-controlled method of
    SciPy.

    y0: initial value. times [s]: increasing, the first being the initial time; between steps the method's
    dense output is evaluated. discontinuities: times at which the derivative jumps; the integration restarts
    there, and `since` is the latest restart. is_admissible(y): the integration ends where it is false.
    tick(t): progress callback, after each step. project(t, y): replaces y after each step, for example by its
    projection onto constraints; not available for the methods in `WITHOUT_PROJECTION`. jacobian(t, y, since):
    the matrix of the derivative's derivatives by y, for the methods in `IMPLICIT`; by default SciPy's
    differences. events: located on the dense output between the steps and the given times; a terminal one
    ends the integration. modes: of the derivative, at whose switches the integration restarts. Raises
    IntegrationInterrupted on KeyboardInterrupt.
    """
    rows = [np.array(y0, dtype=float)]
    try:
        steps = _Steps(rows, times, is_admissible, tick, project, modes, events)
        return _integrated(derivative, steps, integrator, discontinuities, jacobian)
    except KeyboardInterrupt:
        reached = DenseTrajectory(
            np.array(rows), float(times[len(rows) - 1]), "the integration was interrupted"
        )
        raise IntegrationInterrupted(reached) from None


def _integrated(
    derivative: Callable[[float, np.ndarray, float], np.ndarray],
    steps: _Steps,
    integrator: Adaptive,
    discontinuities: Sequence[float],
    jacobian: Callable[[float, np.ndarray, float], np.ndarray] | None,
) -> DenseTrajectory:
    """As `integrate_error_controlled`; the solution is appended to the rows, which begin with y0."""
    times, rows, modes = steps.times, steps.rows, steps.modes
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
            rtol=max(integrator.rtol, LEAST_RTOL), atol=integrator.atol,
            max_step=min(integrator.max_step, np.inf if modes is None else modes.largest_step),
            **_jacobian_option(integrator, jacobian, since),
        )  # fmt: skip
        found = steps.to_end(solver, begin, y)
        if found.failure:
            return DenseTrajectory(np.array(rows), found.end, found.failure)
        begin, y = found.end, found.y
        if modes is not None and found.is_switch:
            modes.switch(begin, y)
            switches = [*switches[1 - SWITCHES_AT_ONCE :], begin]
            passed = begin - switches[0]
            if len(switches) == SWITCHES_AT_ONCE and passed <= SMALL_STEP * (times[-1] - times[0]):
                return DenseTrajectory(np.array(rows), begin, STAGNATED)
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


@dataclass
class _Steps:
    """The steps of an integration, which append the solution at the given times to `rows`; arguments as for
    `integrate_error_controlled`. values: of the events at the last step.
    """

    rows: list[np.ndarray]
    times: np.ndarray | Sequence[float]
    is_admissible: Callable[[np.ndarray], Any]
    tick: Callable[[float], None]
    project: Callable[[float, np.ndarray], np.ndarray] | None
    modes: Modes | None
    events: IntegrationEvents | None
    values: np.ndarray | None = None

    def to_end(self, solver: Any, begin: float, y: np.ndarray) -> _Segment:
        """The steps of a solver up to its end, to the first switch of the modes, or to a terminal event."""
        if self.events is not None and self.values is None:
            self.values = np.asarray(self.events.values(begin, y), dtype=float)
        small_steps, small = 0, SMALL_STEP * (self.times[-1] - self.times[0])
        while solver.status == "running":
            message = _step(solver)
            if solver.status == "failed" or not self.is_admissible(solver.y):
                # a step that failed leaves the time and the state of its start
                end = solver.t if solver.status == "failed" else solver.t_old
                return _Segment(float(end), solver.y, failure=message or "the state left its bounds")
            projected = solver.y if self.project is None else self.project(solver.t, solver.y)
            if not self.is_admissible(projected):
                return _Segment(float(solver.t_old), solver.y, failure="the projection of the state failed")
            small_steps = small_steps + 1 if solver.t - solver.t_old < small else 0
            if small_steps == SMALL_STEPS:
                return _Segment(float(solver.t), solver.y, failure=STAGNATED)
            at = partial(_solution_at, solver.dense_output(), self.project)
            switch = None if self.modes is None else self.modes.next_switch(solver.t_old, solver.t, at)
            reached, terminal = solver.t if switch is None else switch, None
            if self.events is not None and self.values is not None:
                first = solver.t_old == self.times[0]
                times = [solver.t_old, *self._within(solver.t_old, reached), reached]
                self.values, terminal = self.events.end_of_step(times, self.values, at, first)
            self._record(reached if terminal is None else terminal, at)
            if terminal is not None:
                return _Segment(terminal, at(terminal), failure=TERMINATED)
            self.tick(reached)
            if switch is not None:
                return _Segment(float(switch), at(switch), True)
            _restart_from(solver, projected)
        return _Segment(float(solver.t), solver.y)

    def _within(self, start: float, end: float) -> list[float]:
        """The given times between the start and the end of a step, which the next rows have."""
        later = islice(self.times, len(self.rows), None)
        return [t for t in takewhile(lambda t: t < end, later) if t > start]

    def _record(self, reached: float, at: Callable[[float], np.ndarray]) -> None:
        """Append the solution at the times up to the one that was reached."""
        while len(self.rows) < len(self.times) and self.times[len(self.rows)] <= reached:
            self.rows.append(at(self.times[len(self.rows)]))


def _solution_at(
    dense: Callable[[float], np.ndarray],
    project: Callable[[float, np.ndarray], np.ndarray] | None,
    t: float,
) -> np.ndarray:
    """The solution within a step, by the dense output, and projected if asked for."""
    return dense(t) if project is None else project(t, dense(t))


def _jacobian_option(
    integrator: Adaptive, jacobian: Callable[[float, np.ndarray, float], np.ndarray] | None, since: float
) -> dict[str, Any]:
    """The argument `jac` of an implicit method; nothing for the others."""
    if jacobian is None or integrator.method not in IMPLICIT:
        return {}
    return {"jac": partial(_with_segment_start, jacobian, since)}


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
