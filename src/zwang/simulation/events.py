"""Events of a simulation: zeros of functions of the state, located between the steps and recorded.

An event is located on the path between two steps, see `StepPath`. Impacts of hard contacts and stops of
Coulomb friction divide it into pieces; at an impact the value of an event may jump.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from zwang.constraint.coulomb_friction import coulomb_frictions
from zwang.constraint.friction import has_hard_friction
from zwang.constraint.limit import has_hard_limits
from zwang.errors import ShapeError, SimulationError, ZwangWarning
from zwang.integrator.root_location import crosses, locate_root, without_rounding
from zwang.mechanism.mechanism import Mechanism
from zwang.scalar import is_scalar
from zwang.simulation.hard_touches import HardTouches, StateAt, Touch, may_turn
from zwang.simulation.impact_stage import has_hard_contacts, logged_impacts
from zwang.simulation.initial_state import InitialState
from zwang.simulation.status import NONE, TERMINAL_EVENT
from zwang.simulation.step_path import StepPath, pieces_between_impacts

ZERO_RELATIVE = 1e-9  # of the largest value of an event so far, within which a body at rest is at a contact
ZERO_ABSOLUTE = 1e-12
GRADUAL = 1e4  # times this tolerance: of a value that decreases to zero as the rest of a closing distance

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
        """The value at the state. Raises ShapeError if it is no number."""
        value = self.function(t, q, v, params)
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


class _Located(NamedTuple):
    """Event `index` occurs at the time `elapsed` [s] of a step, after a share of the piece of this number."""

    elapsed: float
    index: int
    piece: int
    share: float


class ZeroTolerance:
    """Within what the values of events are zero: not at all for most mechanisms.

    A body that rests at a hard contact or limit is there to rounding, so that its distance has either sign;
    and so has the velocity of a body that hard friction holds.
    """

    def __init__(self, mechanism: Mechanism):
        at_limits = has_hard_contacts(mechanism) or has_hard_limits(mechanism)
        self.is_needed = at_limits or has_hard_friction(mechanism) or bool(coulomb_frictions(mechanism))

    def of(self, values: np.ndarray) -> np.ndarray:
        """The tolerance of later values, if the largest ones so far are these."""
        if not self.is_needed:
            return np.zeros_like(values)
        return np.fmax(ZERO_RELATIVE * np.abs(values), ZERO_ABSOLUTE)


def is_gradual(before: Any, after: Any, zero: Any) -> bool:
    """Whether a value that ends a step within this tolerance of zero was close to it already before."""
    return bool(after == 0 and 0 < abs(before) <= GRADUAL * zero)


def warn_of_gradual_closing(event: NamedEvent, t: float, told: set[str]) -> None:
    """Warn that the value of an event came to zero at the time t [s] without an impact, but for events in
    `told`, to which it is added.
    """
    if event.name not in told:
        told.add(event.name)
        warnings.warn(
            f"event {event.name!r} came to zero gradually, and is within rounding of it from t = {t:.6g} on, "
            "its recorded time; by this integrator the hard limit or contact closes, or hard dry friction "
            "stops the motion, over about 20 steps. Use a threshold before zero, a smaller step, the "
            "integrator 'euler', for contacts 'rk4', or for friction zw.CoulombFriction",
            ZwangWarning,
            stacklevel=2,
        )


def touched(
    touches: HardTouches, event: NamedEvent, params: Mapping[str, float], span: tuple[float, float],
    values: tuple[float, float], at: StateAt, rates: dict[float, float] | None = None,
) -> float | None:  # fmt: skip
    """The time at which the value of an event turns round in the span of time by a hard touch, or None.

    values: at both ends of the span; other arguments as for `HardTouches.find`. Warns of the first touch of
    each event.
    """
    before, after = values
    if not before * after > 0 or before * event.direction > 0:
        return None
    rates = {} if rates is None else rates
    found = touches.find(lambda t, q, v: float(event(t, q, v, params)), params, span, before, at, rates)
    if found is None:
        return None
    _warn_of_touch(event, found, touches.told)
    return found.t


def _warn_of_touch(event: NamedEvent, touch: Touch, told: set[str]) -> None:
    if event.name not in told:
        told.add(event.name)
        warnings.warn(
            f"event {event.name!r} did not come to zero: its value turned round at {touch.value:.3g} at t = "
            f"{touch.t:.6g}, its recorded time; by this integrator the hard limit or contact closes over "
            "about 20 steps, within which a force pushed the bodies back. Use a threshold before zero, a "
            "smaller step, the integrator 'euler', or for contacts 'rk4'",
            ZwangWarning,
            stacklevel=2,
        )


class EventSearch:
    """Finds the events of all worlds of a simulation with steps of size h [s].

    values(times, q, v): the values (worlds, n, events) at states (worlds, n, ...), n times each. lag [s]: see
    `StepPath`. needs_impacts: whether the steps are divided, so that the search needs their logs. worlds of
    terminal events are marked with the status TERMINAL_EVENT, so that they are not continued.
    """

    def __init__(
        self,
        mechanism: Mechanism,
        events: Sequence[NamedEvent],
        initial: InitialState,
        values: Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray],
        h: float,
        lag: float,
        needs_impacts: bool,
    ):
        self.events, self.mechanism, self.h, self.lag = events, mechanism, h, lag
        self.needs_impacts = needs_impacts
        self.occurrences: list[list[EventOccurrence]] = [[] for _ in range(initial.worlds)]
        self._values, self._initial, self._at_start = values, initial, True
        self._before = values(np.zeros((initial.worlds, 1)), initial.q[:, None], initial.v[:, None])[:, 0]
        self._tolerance, self._told, self._gradual = ZeroTolerance(mechanism), set[str](), set[str]()
        self._zero = self._tolerance.of(self._before)
        self._touches, self._last = HardTouches(mechanism, h), np.full_like(self._before, np.nan)
        self._finds_touches = self._touches.is_needed and not lag
        warn_of_missing_values(events, self._before, np.zeros(initial.worlds), self._told)

    def locate(
        self, before: Mapping[str, np.ndarray], records: dict[str, np.ndarray], state: dict[str, np.ndarray]
    ) -> None:
        """Find the events in consecutive steps, and end worlds at their terminal events.

        before: the state of all worlds before the first step. records: clock, q, v, z after each step, and
        of divided steps the logs of impacts and stops, (worlds, n, ...). state: that after the last
        one. The latter two are changed in place.
        """
        times = records["clock"][..., 0] * self.h
        after = self._values(times, records["q"], records["v"])
        has_state = np.isfinite(records["q"]).all(axis=-1) & np.isfinite(records["v"]).all(axis=-1)
        warn_of_missing_values(self.events, after[has_state], times[has_state], self._told)
        known = np.concatenate([self._before[:, None], after], axis=1)
        zero = np.maximum.accumulate(self._tolerance.of(known), axis=1)
        zero = np.maximum(zero, self._zero[:, None])
        known = without_rounding(known, zero)
        directions = np.array([event.direction for event in self.events])
        first = (np.arange(known.shape[1] - 1) == 0) & self._at_start
        crossed = crosses(known[:, :-1], known[:, 1:], directions, first=first[:, None]).any(axis=2)
        if self._finds_touches:
            earlier = np.concatenate([self._last[:, None], known[:, :-2]], axis=1)
            crossed |= may_turn(earlier, known[:, :-1], known[:, 1:]).any(axis=2)
        if "impacts" in records:
            crossed |= records["impacts"][..., 0] > 0
        running = before["status"][:, 0] == NONE
        names = ("clock", "q", "v", "z")
        whole = {name: np.concatenate([before[name][:, None], records[name]], axis=1) for name in names}
        for w in np.flatnonzero(crossed.any(axis=1) & running):
            for k in np.flatnonzero(crossed[w]):
                pieces = self._pieces(int(w), int(k), whole, records.get("impacts"))
                found = self._in_step(int(w), whole["clock"][w, k, 0], pieces, known[w], zero[w], int(k))
                end = self._recorded(int(w), int(k), whole, pieces, found)
                if end is not None:
                    for name, x in end.items():
                        records[name][w, k:] = x
                        state[name][w] = x
                    state["status"][w] = TERMINAL_EVENT
                    break
        self._before, self._at_start, self._zero = after[:, -1], False, zero[:, -1]
        self._last = known[:, -2]

    def _pieces(
        self, w: int, k: int, whole: Mapping[str, np.ndarray], impacts: np.ndarray | None
    ) -> list[tuple[float, StepPath]]:
        """The pieces of the path of step k of one world, with their beginnings [s] in the step."""
        ends = (whole[name][w, i] for i in (k, k + 1) for name in ("q", "v"))
        path = StepPath(self.mechanism.tree, self.h, self.lag, *ends)
        logged = [] if impacts is None else logged_impacts(self.mechanism, impacts[w, k])
        return pieces_between_impacts(path, logged)

    def _in_step(
        self, w: int, clock: float, pieces: Sequence[tuple[float, StepPath]], known: np.ndarray,
        zero: np.ndarray, k: int,
    ) -> list[_Located]:  # fmt: skip
        """The events in step k of one world, which begins at this clock, in the order of time.

        known, zero (n + 1, events): the values at the ends of the steps, and within what they are zero. At an
        impact a value may jump.
        """
        params, located = self._initial.parameters_of_world(w), []
        for index, event in enumerate(self.events):

            def value(piece: int, share: float, event: NamedEvent = event) -> float:
                begin, path = pieces[piece]
                return float(event(clock * self.h + begin + share * path.h, *path.at(share), params))

            def value_at_end(piece: int, share: float, index: int = index, value: Any = value) -> float:
                return float(without_rounding(value(piece, share), zero[k + 1, index]))

            before = known[k, index]
            for piece in range(len(pieces)):
                if piece:
                    start = value_at_end(piece, 0.0)
                    if crosses(before, start, event.direction):
                        located.append(_Located(pieces[piece][0], index, piece, 0.0))
                    before = start
                after = known[k + 1, index] if piece == len(pieces) - 1 else value_at_end(piece, 1.0)
                first = self._at_start and k == 0 and piece == 0
                if crosses(before, after, event.direction, first=first):
                    ends = float(before), float(after)
                    share = float(locate_root(partial(value, piece), 0.0, 1.0, *ends))
                    elapsed = pieces[piece][0] + share * pieces[piece][1].h
                    located.append(_Located(elapsed, index, piece, share))
                    if not self.lag and len(pieces) == 1 and is_gradual(before, after, zero[k + 1, index]):
                        warn_of_gradual_closing(event, clock * self.h + elapsed, self._gradual)
                if self._finds_touches:
                    located += self._touched(
                        index, params, clock * self.h, piece, pieces, (float(before), float(after))
                    )
                before = after
        return sorted(located)

    def _touched(
        self, index: int, params: Mapping[str, float], t: float, piece: int,
        pieces: Sequence[tuple[float, StepPath]], values: tuple[float, float],
    ) -> list[_Located]:  # fmt: skip
        """The hard touch of an event in a piece of a step from the time t [s] on; values: at both ends."""
        begin, path = pieces[piece]
        start = t + begin

        def at(time: float) -> tuple[np.ndarray, np.ndarray]:
            return path.at((time - start) / path.h)

        if not path.h:
            return []
        found = touched(self._touches, self.events[index], params, (start, start + path.h), values, at)
        if found is None:
            return []
        return [_Located(found - t, index, piece, (found - start) / path.h)]

    def _recorded(
        self, w: int, k: int, whole: Mapping[str, np.ndarray], pieces: Sequence[tuple[float, StepPath]],
        located: Sequence[_Located],
    ) -> dict[str, Any] | None:  # fmt: skip
        """Record the events of step k of one world; the state at a terminal one, or None."""
        clock = whole["clock"][w, k, 0]
        for elapsed, index, piece, share in located:
            of_step = elapsed / self.h
            q, v = pieces[piece][1].at(share)
            self.occurrences[w].append(EventOccurrence(index, (clock + of_step) * self.h, q, v))
            if is_last(self.events[index], index, self.occurrences[w]):
                z = (1 - of_step) * whole["z"][w, k] + of_step * whole["z"][w, k + 1]
                return {"clock": clock + of_step, "q": q, "v": v, "z": z}
        return None

    def records(self) -> EventRecords:
        """The occurrences until now."""
        names = [event.name for event in self.events]
        return event_records(names, self.occurrences, self._initial.q.shape[1], self._initial.v.shape[1])


def is_last(event: NamedEvent, index: int, occurrences: Sequence[EventOccurrence]) -> bool:
    """Whether the simulation of a world ends with the latest occurrence of an event."""
    return 0 < event.terminal <= sum(occurrence.index == index for occurrence in occurrences)
