"""Controls of a simulation: values over time, or a function of time and state."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from zwang.errors import (
    MOST_NAMES,
    ShapeError,
    SimulationError,
    StateError,
    UnknownNameError,
    nearest_names,
)
from zwang.mechanism.force_elements import Actuator, Motor, Wrench
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
    mechanism: Mechanism

    def __post_init__(self) -> None:
        """Raises SimulationError for a function that does not take three positional arguments."""
        check_arguments(self.function, "control")

    def __call__(self, t: Any, q: Any, v: Any) -> np.ndarray:
        """The validated control (nu,) at time t [s], on any scalar.

        Raises ShapeError, StateError, SimulationError or UnknownNameError for a result that is no control.
        """
        value = called_at_state(self.function, self.mechanism, "control", t, q, v)
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


def called_at_state(
    function: Callable[[Any, Any, Any], Any], mechanism: Mechanism, what: str, t: Any, q: Any, v: Any
) -> Any:
    """The value of a user's function(t, q, v), which receives read-only copies of q and v; what: its role.

    Raises SimulationError if it reads an attribute that arrays do not have, such as `v.vz`. An IndexError, as
    of `v["vz"]`, gets a note with the elements of q and v.
    """
    q, v = read_only(q), read_only(v)
    try:
        return function(t, q, v)
    except AttributeError as error:
        for letter, array, names in (("q", q, mechanism.coordinate_names), ("v", v, mechanism.speed_names)):
            if error.obj is array:
                raise SimulationError(
                    f"{what} reads {letter}.{error.name}, but {letter} is an array, whose elements are read "
                    f"by position: {_elements(letter, names, str(error.name))}"
                ) from error
        raise
    except IndexError as error:
        q_and_v = f"{_elements('q', mechanism.coordinate_names)}; {_elements('v', mechanism.speed_names)}"
        error.add_note(f"{what} receives arrays q and v, whose elements are read by position: {q_and_v}")
        raise


def _elements(letter: str, names: tuple[str, ...], wanted: str = "") -> str:
    """The elements of q or v with their names, first those named like `wanted`; of many the first ones."""
    near = [name for name in names if wanted and name.rpartition(".")[2] == wanted]
    near += [name for name in nearest_names(wanted, names) if name not in near]
    ordered = [*near, *(name for name in names if name not in near)]
    shown = ordered[: max(MOST_NAMES, len(near))]
    listed = ", ".join(f"{letter}[{names.index(name)}] is {name!r}" for name in shown)
    others = len(names) - len(shown)
    return listed + (f", and {others} others" if others else "")


def control_names(mechanism: Mechanism) -> tuple[str, ...]:
    """The names of the control's elements: the mechanism's inputs, or, if it has none, its generalised
    velocities.
    """
    return mechanism.inputs or mechanism.speed_names


def control_ranges(mechanism: Mechanism) -> np.ndarray:
    """The least and the largest control (2, nu) that acts: the control ranges of motors and actuators, and
    0 ... 1 by the activation dynamics of muscles; without inputs the actuator ranges of the joints. An input
    that drives a wrench as well, which has no range, acts beyond that of its motor.
    """
    names = control_names(mechanism)
    shared = {force.input for force in mechanism.forces if isinstance(force, Wrench)}
    limits = dict.fromkeys(names, (-np.inf, np.inf))
    for force in mechanism.forces:
        if isinstance(force, Motor | Actuator) and force.name not in shared:
            ends = np.array(force.control_range or limits[force.name], float)
            activation = force.activation if isinstance(force, Actuator) else None
            is_muscle = activation is not None and activation[0] == "muscle"
            limits[force.name] = tuple(np.clip(ends, 0, 1) if is_muscle else ends)
    for joint in () if mechanism.inputs else mechanism.joints:
        if (given := getattr(joint.joint, "actuator_range", None)) is not None:
            limits |= dict.fromkeys(names[joint.v], tuple(map(float, given)))
    return np.array([limits[name] for name in names]).reshape(-1, 2).T


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
