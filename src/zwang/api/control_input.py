"""What drives a mechanism: constants, values over time, or a function of time and state."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from zwang.errors import ShapeError, SimulationError, StateError, UnknownNameError
from zwang.mechanism.mechanism import Mechanism
from zwang.scalar import is_scalar, real_array
from zwang.scalar.real import REAL


@dataclass(frozen=True)
class PrescribedControl:
    """Controls given beforehand, (worlds or 1, times, nu); each is held for one step. One time stands for all."""

    values: np.ndarray

    def during(self, first: int, count: int, worlds: int) -> np.ndarray:
        """The controls (worlds, count, nu) of the steps from `first` on; after the last one, the last one."""
        times, nu = self.values.shape[1:]
        if times == 1:
            return np.broadcast_to(self.values, (worlds, count, nu))
        at = np.minimum(np.arange(first, first + count), times - 1)
        return np.broadcast_to(self.values[:, at], (worlds, count, nu))


@dataclass(frozen=True)
class ControlFunction:
    """A function control(t, q, v) of one world, giving an array (nu,) or a dictionary by name; the rest is zero."""

    function: Callable[[Any, Any, Any], Any]
    names: tuple[str, ...]

    def __call__(self, t: Any, q: Any, v: Any) -> np.ndarray:
        """The control (nu,), checked; on any scalar. The function gets arrays of its own, which it can only read."""
        value = self.function(t, _to_read(q), _to_read(v))
        if isinstance(value, Mapping):
            _check_names(value, self.names)
            value = [value.get(name, 0) for name in self.names]
            for name, x in zip(self.names, value, strict=True):
                if np.ndim(x) > 0:
                    raise ShapeError(
                        f"control(t, q, v) returned for {name!r} an array of the shape {np.shape(x)}; it must be one number"
                    )
        if value is None:
            raise SimulationError("control(t, q, v) returned None; it must return the control")
        try:
            array = np.atleast_1d(np.asarray(value))
        except ValueError:  # rows of different lengths
            raise ShapeError(
                f"control(t, q, v) returned {str(value)[:60]!r}; it must return one number for each of {', '.join(self.names)}"
            ) from None
        if array.shape != (len(self.names),):
            raise ShapeError(
                f"control(t, q, v) returned the shape {array.shape}; it must return ({len(self.names)},) for "
                f"{', '.join(self.names)}, or a dictionary by these names"
            )
        if array.dtype.kind not in REAL and not (array.dtype.kind == "O" and all(map(_is_real, array.flat))):
            raise StateError(
                f"control(t, q, v) returned {str(value)[:60]}, which are no real numbers; it must return one for each of "
                f"{', '.join(self.names)}"
            )
        return array


def _is_real(x: Any) -> bool:
    return is_scalar(x) and not isinstance(x, np.timedelta64)  # which NumPy takes for an integer


def _to_read(values: Any) -> np.ndarray:
    """A copy that cannot be written to."""
    array = np.array(values)
    array.setflags(write=False)
    return array


def control_names(mechanism: Mechanism) -> tuple[str, ...]:
    """The names that control drives: the mechanism's inputs, or, where it has none, its speeds."""
    return mechanism.inputs or mechanism.speed_names


def control_input(mechanism: Mechanism, control: Any, steps: int, worlds: int) -> PrescribedControl | ControlFunction:
    """The user's `control`, checked.

    None: nothing drives. A function (t, q, v). A number, where one input is driven. A dictionary by name of numbers or of values over time. An array (nu,), held all
    the time; (times, nu); or (worlds, times, nu), of which some worlds may hold NaN. Raises ShapeError, StateError, UnknownNameError or SimulationError.
    """
    names = control_names(mechanism)
    if control is None:
        return PrescribedControl(np.zeros((1, 1, len(names))))
    if callable(control):
        return ControlFunction(control, names)
    if isinstance(control, Mapping):
        control = _by_name(control, names)
    try:
        array = real_array(control)
    except (TypeError, ValueError):
        raise SimulationError(
            f"control is {str(control)[:60]!r}; give a function control(t, q, v), a dictionary by name, or an array of real numbers"
        ) from None
    return PrescribedControl(_over_time(array, names, steps, worlds))


def _over_time(array: np.ndarray, names: tuple[str, ...], steps: int, worlds: int) -> np.ndarray:
    """(worlds or 1, times, nu)."""
    n = len(names)
    if array.ndim == 0 and n == 1:
        array = array[None, None, None]
    elif array.ndim == 1 and array.shape == (n,):
        array = array[None, None]
    elif array.ndim == 2:
        array = array[None]
    elif array.ndim != 3:
        raise ShapeError(f"control has the shape {array.shape}; {_shapes(names, steps, worlds)}")
    count, times, inputs = array.shape
    if count not in (1, worlds) or times not in (1, steps, steps + 1) or inputs != n:
        raise ShapeError(
            f"control is given for {count} worlds, {times} times and {inputs} inputs; {_shapes(names, steps, worlds)}"
        )
    if (
        not np.isfinite(array).all(axis=(1, 2)).any()
    ):  # a world that is given some stops there, and the others go on
        raise StateError("control holds NaN or infinity; every element must be finite")
    return array


def _shapes(names: tuple[str, ...], steps: int, worlds: int) -> str:
    n = len(names)
    return f"give ({n},), ({steps}, {n}) or ({worlds}, {steps}, {n}): worlds, steps, and {', '.join(names) or 'no inputs'}"


def _by_name(values: Mapping, names: tuple[str, ...]) -> np.ndarray:
    """An array (nu,), (times, nu) or (worlds, times, nu) from numbers, (times,) or (worlds, times) by name."""
    _check_names(values, names)
    columns = []
    for name in names:
        try:
            columns.append(real_array(values.get(name, 0.0)))
        except (TypeError, ValueError):
            raise SimulationError(
                f"control[{name!r}] is {str(values[name])[:60]!r}; give a real number or an array of these"
            ) from None
    return np.stack(np.broadcast_arrays(*columns), axis=-1) if columns else np.zeros(0)


def _check_names(values: Mapping, names: tuple[str, ...]) -> None:
    for key in values:
        if key not in names:
            raise UnknownNameError("input", key, names)
