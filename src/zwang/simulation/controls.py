"""Controls of a simulation: values over time, or a function of time and state."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from zwang.errors import ShapeError, SimulationError, StateError, UnknownNameError
from zwang.mechanism.mechanism import Mechanism
from zwang.scalar import is_scalar
from zwang.scalar.real import REAL


@dataclass(frozen=True)
class PrescribedControl:
    """Control values (worlds or 1, times or 1, nu), each constant over one step; an axis of length 1 is
    broadcast.
    """

    values: np.ndarray

    def during(self, first: int, count: int, worlds: int) -> np.ndarray:
        """The controls (worlds, count, nu) of `count` steps from the step `first` on; the last value is
        repeated.
        """
        times, nu = self.values.shape[1:]
        if times == 1:
            return np.broadcast_to(self.values, (worlds, count, nu))
        at = np.minimum(np.arange(first, first + count), times - 1)
        return np.broadcast_to(self.values[:, at], (worlds, count, nu))


@dataclass(frozen=True)
class ControlFunction:
    """A user's function control(t, q, v) of one world, which returns an array (nu,) or a dictionary by input
    name.

    Inputs that a dictionary omits are zero.
    """

    function: Callable[[Any, Any, Any], Any]
    names: tuple[str, ...]

    def __post_init__(self) -> None:
        """Raises SimulationError for a function that does not take three positional arguments."""
        check_arguments(self.function, "control")

    def __call__(self, t: Any, q: Any, v: Any) -> np.ndarray:
        """The validated control (nu,) at time t [s], on any scalar; the function receives read-only copies
        of q and v.

        Raises ShapeError, StateError, SimulationError or UnknownNameError for a result that is no control.
        """
        value = self.function(t, read_only(q), read_only(v))
        if isinstance(value, Mapping):
            value = self._by_name(value)
        if value is None:
            raise SimulationError("control(t, q, v) returned None; it must return the control")
        expected = ", ".join(self.names)
        try:
            array = np.atleast_1d(np.asarray(value))
        except ValueError:  # nested sequences of different lengths
            raise ShapeError(
                f"control(t, q, v) returned {str(value)[:60]!r}; it must return one number for each "
                f"of {expected}"
            ) from None
        if array.shape != (len(self.names),):
            raise ShapeError(
                f"control(t, q, v) returned the shape {array.shape}; it must return ({len(self.names)},) for "
                f"{expected}, or a dictionary by these names"
            )
        if array.dtype.kind not in REAL and not (array.dtype.kind == "O" and all(map(_is_real, array.flat))):
            raise StateError(
                f"control(t, q, v) returned {str(value)[:60]}, which are no real numbers; it must "
                f"return one for "
                f"each of {expected}"
            )
        return array

    def _by_name(self, value: Mapping[Any, Any]) -> list[Any]:
        """The values of a dictionary in the order of the inputs."""
        check_input_names(value, self.names)
        values = [value.get(name, 0) for name in self.names]
        for name, x in zip(self.names, values, strict=True):
            if np.ndim(x) > 0:
                raise ShapeError(
                    f"control(t, q, v) returned for {name!r} an array of the shape {np.shape(x)}; "
                    "it must be one number"
                )
        return values


Control = PrescribedControl | ControlFunction


def check_arguments(function: Callable[..., Any], what: str) -> None:
    """Raises SimulationError for a function that does not take three positional arguments; what: its role."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # some functions of extension modules have none
        return
    try:
        signature.bind(0.0, None, None)
    except TypeError:
        raise SimulationError(
            f"{what} is a function with the arguments {signature}; it must take (t, q, v): time, "
            "configuration and velocity"
        ) from None


def control_names(mechanism: Mechanism) -> tuple[str, ...]:
    """The names of the control's elements: the mechanism's inputs, or, if it has none, its generalised
    velocities.
    """
    return mechanism.inputs or mechanism.speed_names


def check_input_names(values: Mapping[Any, Any], names: tuple[str, ...]) -> None:
    """Raises UnknownNameError for a key that is not among the names of the inputs."""
    for key in values:
        if key not in names:
            raise UnknownNameError("input", key, names)


def _is_real(x: Any) -> bool:
    return is_scalar(x) and not isinstance(x, np.timedelta64)  # which NumPy takes for an integer


def read_only(values: Any) -> np.ndarray:
    """A copy that cannot be written to."""
    array = np.array(values)
    array.setflags(write=False)
    return array
