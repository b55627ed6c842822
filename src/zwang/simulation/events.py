"""Events of a simulation: zeros of functions of the state, located between the steps and recorded.

Between two steps the configuration follows Hermite's cubic on the configuration manifold, which has the
positions and the velocities of both steps. For the methods of Euler's kind, whose velocities lag half a step
behind, it is the parabola of the leapfrog method. An event is located on this path.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from zwang.errors import ShapeError, SimulationError, ZwangWarning
from zwang.integrator.fixed_step import displacement_at
from zwang.integrator.root_location import crosses, locate_root
from zwang.kinematics.configuration import (
    difference_configuration,
    displacement_rate,
    integrate_configuration,
)
from zwang.mechanism.tree import Tree
from zwang.scalar import is_scalar
from zwang.simulation.controls import read_only
from zwang.simulation.initial_state import InitialState
from zwang.simulation.status import NONE, TERMINAL_EVENT

INVERSION_STEPS = 12  # of the velocity from the rate of the displacement; each gains about three digits

EventFunction = Callable[[Any, Any, Any, Mapping[str, Any]], Any]
"""An event function of t, q, v and the values of the parameters by name, on any scalar."""


@dataclass(frozen=True)
class Event:
    """An event of a simulation: a function of the state crosses zero.

    function: a function(t, q, v) of one world, which returns a number, or an expression. Symbols of an
    expression with the name of a coordinate stand for it, NAME_dot for the generalised velocity NAME, and
    `t` for the time; all others are symbols of the mechanism. direction: 1 for crossings from negative to
    positive values, -1 for the others, 0 for both. terminal: True if the world's simulation ends at the
    event, or a number n if it ends at the n-th one. Raises SimulationError for other values.
    """

    function: Any
    direction: int = 0
    terminal: bool | int = False

    def __post_init__(self):
        whole = isinstance(self.direction, int | float | np.number) and not isinstance(self.direction, bool)
        if not whole or self.direction not in (-1, 0, 1):
            raise SimulationError(f"direction of an event is {self.direction!r}; it must be -1, 0 or 1")
        if not isinstance(self.terminal, bool | int | np.integer) or self.terminal < 0:
            raise SimulationError(
                f"terminal of an event is {self.terminal!r}; it must be True, False or the number of "
                "occurrences after which the simulation ends"
            )


class NamedEvent(NamedTuple):
    """An event with its name and its function on any scalar, see `EventFunction`."""

    name: str
    function: EventFunction
    direction: int
    terminal: int

    def __call__(self, t: Any, q: Any, v: Any, params: Mapping[str, Any]) -> Any:
        """The value at the state; q and v are read-only copies. Raises ShapeError if it is no number."""
        value = self.function(t, read_only(q), read_only(v), params)
        if isinstance(value, np.ndarray) and value.size == 1:
            value = value.reshape(())[()]
        if not is_scalar(value) or isinstance(value, bool | np.bool_):
            raise ShapeError(
                f"event {self.name!r} returned {str(value)[:60]!r}, a {type(value).__name__}; an event "
                "function(t, q, v) must return one real number"
            )
        return value


class EventOccurrence(NamedTuple):
    """Event `index` occurred at the time t [s] in the state q (nq,), v (nv,)."""

    index: int
    t: float
    q: np.ndarray
    v: np.ndarray


class EventRecords(NamedTuple):
    """All occurrences: times (worlds, events, n) [s], q (worlds, events, n, nq) and v (worlds, events, n,
    nv), where n is the largest number of occurrences, and missing ones are NaN. names: of the events.
    """

    names: tuple[str, ...]
    times: np.ndarray
    q: np.ndarray
    v: np.ndarray


def event_records(
    names: Sequence[str], worlds: Sequence[Sequence[EventOccurrence]], nq: int, nv: int
) -> EventRecords:
    """The occurrences of each world as padded arrays."""
    counts = np.zeros((len(worlds), len(names)), int)
    for w, occurrences in enumerate(worlds):
        for occurrence in occurrences:
            counts[w, occurrence.index] += 1
    shape = (*counts.shape, int(counts.max(initial=0)))
    times, q, v = (np.full((*shape, *size), np.nan) for size in ((), (nq,), (nv,)))
    for w, occurrences in enumerate(worlds):
        number = dict.fromkeys(range(len(names)), 0)
        for occurrence in occurrences:
            at = w, occurrence.index, number[occurrence.index]
            times[at], q[at], v[at] = occurrence.t, occurrence.q, occurrence.v
            number[occurrence.index] += 1
    return EventRecords(tuple(names), times, q, v)


@dataclass(frozen=True)
class StepPath:
    """The path of one world between two steps of size h [s], from (q0, v0) to (q1, v1).

    lags: whether the velocities are those of half a step before, as for Euler's method.
    """

    tree: Tree
    h: float
    lags: bool
    q0: np.ndarray
    v0: np.ndarray
    q1: np.ndarray
    v1: np.ndarray

    def at(self, share: float) -> tuple[np.ndarray, np.ndarray]:
        """q and v after a share of the step."""
        displacement = np.asarray(difference_configuration(self.tree, self.q1, self.q0), float)
        change = self.v1 - self.v0
        lag = change / 2 if self.lags else 0 * change
        end = self.v1 + lag
        if not self.lags:
            end = np.asarray(displacement_rate(self.tree, displacement, end), float)
        x, rate = displacement_at(displacement / self.h, self.v0 + lag, end, share, self.h)
        q = np.asarray(integrate_configuration(self.tree, self.q0, x), float)
        return q, (rate if self.lags else self._velocity(x, rate)) - lag

    def _velocity(self, x: np.ndarray, rate: np.ndarray) -> np.ndarray:
        """The velocities at which the displacement x has this rate, by fixed-point iteration."""
        v = rate
        for _ in range(INVERSION_STEPS):
            v = v + rate - np.asarray(displacement_rate(self.tree, x, v), float)
        return v


def event_values_in_python(
    events: Sequence[NamedEvent], initial: InitialState, times: np.ndarray, q: np.ndarray, v: np.ndarray
) -> np.ndarray:
    """The values (worlds, n, events) at states (worlds, n, ...), evaluated one by one."""
    values = np.empty((*times.shape, len(events)))
    for w in range(len(times)):
        params = initial.parameters_of_world(w)
        for k, state in enumerate(zip(times[w].tolist(), q[w], v[w], strict=True)):
            values[w, k] = [float(event(*state, params)) for event in events]
    return values


def warn_of_missing_values(
    events: Sequence[NamedEvent], values: np.ndarray, times: np.ndarray, told: set[str]
) -> None:
    """Warn of events whose values (..., events) at the times (...) are NaN; those in `told` are known, and
    the others are added.
    """
    for k, event in enumerate(events):
        missing = np.isnan(values[..., k])
        if event.name not in told and missing.any():
            told.add(event.name)
            warnings.warn(
                f"event {event.name!r} is NaN at t = {times[missing].min():.6g}; where it has no value, no "
                "crossing is found",
                ZwangWarning,
                stacklevel=2,
            )


class EventSearch:
    """Finds the events of all worlds of a simulation with steps of fixed size.

    values(times, q, v): the values (worlds, n, events) at states (worlds, n, ...), n times each. worlds of
    terminal events are marked with the status TERMINAL_EVENT, so that they are not continued.
    """

    def __init__(
        self,
        tree: Tree,
        events: Sequence[NamedEvent],
        initial: InitialState,
        values: Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray],
        h: float,
        lags: bool,
    ):
        self.events, self.tree, self.h, self.lags = events, tree, h, lags
        self.occurrences: list[list[EventOccurrence]] = [[] for _ in range(initial.worlds)]
        self._values, self._initial, self._at_start = values, initial, True
        self._before = values(np.zeros((initial.worlds, 1)), initial.q[:, None], initial.v[:, None])[:, 0]
        self._told: set[str] = set()
        warn_of_missing_values(events, self._before, np.zeros(initial.worlds), self._told)

    def locate(
        self, before: Mapping[str, np.ndarray], records: dict[str, np.ndarray], state: dict[str, np.ndarray]
    ) -> None:
        """Find the events in consecutive steps, and end worlds at their terminal events.

        before: the state of all worlds before the first step. records: clock, q, v, z after each step,
        (worlds, n, ...). state: that after the last one. The latter two are changed in place.
        """
        times = records["clock"][..., 0] * self.h
        after = self._values(times, records["q"], records["v"])
        has_state = np.isfinite(records["q"]).all(axis=-1) & np.isfinite(records["v"]).all(axis=-1)
        warn_of_missing_values(self.events, after[has_state], times[has_state], self._told)
        known = np.concatenate([self._before[:, None], after], axis=1)
        directions = np.array([event.direction for event in self.events])
        first = (np.arange(known.shape[1] - 1) == 0) & self._at_start
        crossed = crosses(known[:, :-1], known[:, 1:], directions, first=first[:, None])
        running = before["status"][:, 0] == NONE
        names = ("clock", "q", "v", "z")
        whole = {name: np.concatenate([before[name][:, None], records[name]], axis=1) for name in names}
        for w in np.flatnonzero(crossed.any(axis=(1, 2)) & running):
            for k in np.flatnonzero(crossed[w].any(axis=1)):
                end = self._examine_step(int(w), int(k), whole, known[w], crossed[w, k])
                if end is not None:
                    for name, x in end.items():
                        records[name][w, k:] = x
                        state[name][w] = x
                    state["status"][w] = TERMINAL_EVENT
                    break
        self._before, self._at_start = after[:, -1], False

    def _examine_step(
        self, w: int, k: int, whole: Mapping[str, np.ndarray], values: np.ndarray, crossed: np.ndarray
    ) -> dict[str, Any] | None:
        """Record the events of step k of one world; the state at a terminal one, or None."""
        path = StepPath(
            self.tree, self.h, self.lags, *(whole[name][w, i] for i in (k, k + 1) for name in ("q", "v"))
        )
        clock, params = whole["clock"][w, k, 0], self._initial.parameters_of_world(w)
        located = []
        for index in np.flatnonzero(crossed).tolist():
            event = self.events[index]

            def value(share: float, event: NamedEvent = event) -> float:
                return float(event((clock + share) * self.h, *path.at(share), params))

            ends = float(values[k, index]), float(values[k + 1, index])
            located.append((float(locate_root(value, 0.0, 1.0, *ends)), index))
        for share, index in sorted(located):
            q, v = path.at(share)
            self.occurrences[w].append(EventOccurrence(index, (clock + share) * self.h, q, v))
            if is_last(self.events[index], index, self.occurrences[w]):
                z = (1 - share) * whole["z"][w, k] + share * whole["z"][w, k + 1]
                return {"clock": clock + share, "q": q, "v": v, "z": z}
        return None

    def records(self) -> EventRecords:
        """The occurrences until now."""
        names = [event.name for event in self.events]
        return event_records(names, self.occurrences, self._initial.q.shape[1], self._initial.v.shape[1])


def is_last(event: NamedEvent, index: int, occurrences: Sequence[EventOccurrence]) -> bool:
    """Whether the simulation of a world ends with the latest occurrence of an event."""
    return 0 < event.terminal <= sum(occurrence.index == index for occurrence in occurrences)
