"""Validation of a control: constants, values over time, or a function of time and state."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from zwang.errors import ShapeError, SimulationError, StateError
from zwang.mechanism.labelled_arrays import without_labels
from zwang.mechanism.mechanism import Mechanism
from zwang.scalar import real_array
from zwang.simulation.controls import (
    Control,
    ControlFunction,
    PrescribedControl,
    check_input_names,
    control_names,
)

ControlLike = (
    npt.ArrayLike
    | Mapping[str, npt.ArrayLike]
    | Callable[[float, np.ndarray, np.ndarray], npt.ArrayLike | Mapping[str, float]]
)
"""What users may give for `control`."""


def control_input(mechanism: Mechanism, control: ControlLike | None, steps: int, worlds: int) -> Control:
    """The validated control of a simulation.

    control: None for zero; a function control(t, q, v); a number, if there is one input; a dictionary by
    input name of numbers or of values over time; an array (nu,), constant; (times, nu); or (worlds, times,
    nu), of which some worlds may contain NaN. Raises ShapeError, StateError, UnknownNameError or
    SimulationError.
    """
    names = control_names(mechanism)
    if control is None:
        return PrescribedControl(np.zeros((1, 1, len(names))))
    if callable(control):
        return ControlFunction(control, names, mechanism)
    values: Any = (
        _by_name(control, names)
        if isinstance(control, Mapping)
        else _over_worlds_and_times(without_labels(control, names, "control"))
    )
    try:
        array = real_array(values)
    except (TypeError, ValueError):
        raise SimulationError(
            f"control is {str(values)[:60]!r}; give a function control(t, q, v), a dictionary by name, "
            "or an array of real numbers"
        ) from None
    return PrescribedControl(_over_time(array, names, steps, worlds))


def worlds_of_control(control: ControlLike | None) -> int | None:
    """The number of worlds for which a control is given; None if it is the same in all."""
    if control is None or callable(control):
        return None
    try:
        if isinstance(control, Mapping):
            counts = [np.shape(x)[0] for x in control.values() if np.ndim(x) == 2]
        elif sizes := getattr(control, "sizes", None):  # with labels
            counts = [sizes.get("world", 1)]
        else:
            counts = [np.shape(control)[0]] if np.ndim(control) == 3 else []
    except ValueError:  # nested sequences of different lengths, an error of `control_input`
        return None
    return max((n for n in counts if n > 1), default=None)


def _over_worlds_and_times(control: Any) -> Any:
    """A labelled control of worlds at one time (worlds, nu) as (worlds, 1, nu); others as they are."""
    dims = getattr(control, "dims", ())
    return np.asarray(control)[:, None] if "world" in dims and "time" not in dims else control


def _over_time(array: np.ndarray, names: tuple[str, ...], steps: int, worlds: int) -> np.ndarray:
    """The control as (worlds or 1, times or 1, nu)."""
    n = len(names)
    if array.ndim == 0 and n == 1:
        array = array[None, None, None]
    elif array.ndim == 1 and array.shape == (n,):
        array = array[None, None]
    elif array.ndim == 2:
        array = array[None]
    elif array.ndim != 3:
        raise ShapeError(f"control has the shape {array.shape}; {_allowed_shapes(names, steps, worlds)}")
    count, times, inputs = array.shape
    if count not in (1, worlds) or times not in (1, steps, steps + 1) or inputs != n:
        raise ShapeError(
            f"control is given for {count} worlds, {times} times and {inputs} inputs; "
            f"{_allowed_shapes(names, steps, worlds)}"
        )
    if not np.isfinite(array).all(axis=(1, 2)).any():  # single worlds with NaN fail alone, when they reach it
        raise StateError("control holds NaN or infinity; every element must be finite")
    return array


def _allowed_shapes(names: tuple[str, ...], steps: int, worlds: int) -> str:
    n = len(names)
    inputs = ", ".join(names) or "no inputs"
    return f"give ({n},), ({steps}, {n}) or ({worlds}, {steps}, {n}): worlds, steps, and {inputs}"


def _by_name(values: Mapping[str, Any], names: tuple[str, ...]) -> np.ndarray:
    """An array (nu,), (times, nu) or (worlds, times, nu) from arrays (), (times,) or (worlds, times) by
    name.
    """
    check_input_names(values, names)
    columns = []
    for name in names:
        try:
            columns.append(real_array(values.get(name, 0.0)))
        except (TypeError, ValueError):
            raise SimulationError(
                f"control[{name!r}] is {str(values[name])[:60]!r}; give a real number or an array of these"
            ) from None
    return np.stack(np.broadcast_arrays(*columns), axis=-1) if columns else np.zeros(0)
