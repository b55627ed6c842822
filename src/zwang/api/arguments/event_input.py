"""Validation of events: functions of the state, or expressions, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from zwang.constraint.hard import formula
from zwang.errors import SimulationError, UnknownNameError
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.type_validation import short_repr
from zwang.scalar import is_scalar, symbols_of
from zwang.simulation.controls import called_at_state, check_arguments
from zwang.simulation.events import Event, EventFunction, NamedEvent

EventsLike = Mapping[str, Event | Callable[[float, np.ndarray, np.ndarray], float] | Any]
"""What users may give for `events`: by name an `Event`, a function(t, q, v) or an expression."""


def event_input(mechanism: Mechanism, events: EventsLike | None) -> tuple[NamedEvent, ...]:
    """The validated events of a simulation.

    A function may have the attributes `direction` and `terminal`, as in SciPy's solve_ivp. Raises
    SimulationError for what is no event, and UnknownNameError for an unknown symbol of an expression.
    """
    if events is None:
        return ()
    if not isinstance(events, Mapping):
        raise SimulationError(
            f"events is {short_repr(events)}; give a dictionary from names to functions(t, q, v), "
            "expressions or zw.Event(...)"
        )
    return tuple(_named(mechanism, name, event) for name, event in events.items())


def _named(mechanism: Mechanism, name: Any, given: Any) -> NamedEvent:
    """One event with its name."""
    if not isinstance(name, str) or not name:
        raise SimulationError(f"the name of an event is {short_repr(name)}; it must be a text")
    event = given if isinstance(given, Event) else _event_of(given)
    if callable(event.function) and not is_scalar(event.function):
        check_arguments(event.function, f"event {name!r}")
        function = _called(mechanism, name, event.function)
    elif is_scalar(event.function) and symbols_of(event.function):
        function = _expression(mechanism, name, event.function)
    else:
        raise SimulationError(
            f"event {name!r} is {short_repr(event.function)}; give a function(t, q, v) that returns a "
            "number, or an expression of the coordinates"
        )
    return NamedEvent(name, function, int(event.direction), int(event.terminal))


def _event_of(given: Any) -> Event:
    """A function with the attributes of SciPy's events, or an expression, as an event."""
    direction = getattr(given, "direction", 0) if callable(given) else 0
    terminal = getattr(given, "terminal", False) if callable(given) else False
    sign = int(np.sign(direction)) if isinstance(direction, int | float) else direction
    return Event(given, sign, terminal)


def _called(mechanism: Mechanism, name: str, function: Callable[[Any, Any, Any], Any]) -> EventFunction:
    """A user's function(t, q, v), which does not depend on the parameters."""
    return lambda t, q, v, params: called_at_state(function, mechanism, f"event {name!r}", t, q, v)


def _expression(mechanism: Mechanism, name: str, expression: Any) -> EventFunction:
    """An expression of the coordinates, the velocities, the time and the symbols of the mechanism."""
    speeds = [f"{speed}_dot" for speed in mechanism.speed_names]
    known = (*mechanism.coordinate_names, *speeds, "t", *mechanism.symbols)
    for symbol in symbols_of(expression):
        if str(symbol) in mechanism.speed_names and str(symbol) not in known:
            raise SimulationError(
                f"event {name!r} has the symbol {str(symbol)!r}, the name of a generalised velocity; in "
                f"expressions it has the ending _dot: write {f'{symbol}_dot'!r}"
            )
        if str(symbol) not in known:
            raise UnknownNameError(f"symbol of event {name!r}", str(symbol), known)
        if known.count(str(symbol)) > 1:
            raise SimulationError(
                f"the symbol {str(symbol)!r} of event {name!r} has two meanings: coordinates are named after "
                "their joints, velocities NAME_dot, and the time t; rename the joint, or give a function"
            )

    def function(t: Any, q: Any, v: Any, params: Mapping[str, Any]) -> Any:
        values = {**params, **dict(zip(speeds, v, strict=True))}
        return formula(mechanism, expression, q, t, values)

    return function
