"""A method of a compiled mechanism as a function of flat arrays, with its arguments and results by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MethodType
from typing import Any

import numpy as np

from zwang.api.arguments.parameter_values import values_by_name
from zwang.api.compilation.compiled import CompiledMechanism
from zwang.api.compilation.programs import NOT_COMPILED, PARAMETERS, Key
from zwang.api.functions.function_table import ARGUMENTS, FUNCTIONS, check_axes
from zwang.api.functions.sensor_functions import BodyQuantities, by_sensor
from zwang.dynamics.energy import Energy
from zwang.errors import ArgumentError, ShapeError, StateError
from zwang.integrator.fixed_step import State
from zwang.interop.array_function import ArrayFunction, CompiledArrayFunction, FunctionWithJacobian
from zwang.interop.step_function import StepFunction
from zwang.kinematics.poses import Pose
from zwang.mechanism.labelled_arrays import has_labels
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.type_validation import short_repr
from zwang.simulation.applied_forces import time_dependent_parts

STEP_ARGUMENTS = ("q", "v", "control", "activation", "time")
OPTIONAL = ("control", "activation", "time")
STRUCTURES: dict[str, Callable[..., Any]] = {
    "frame_pose": Pose,
    "energy": Energy,
    "body_quantities": BodyQuantities,
}
"""What holds the results of functions that have several, beside the step."""

FUNCTION_NAMES = (*(name for name in FUNCTIONS if name not in (*NOT_COMPILED, "zwang_by_body")), "step")


@dataclass(frozen=True)
class BoundArgument:
    """An argument: its name, its shape in one world, (n,) or (), and whether it may be left out (zeros)."""

    name: str
    shape: tuple[int, ...]
    optional: bool

    @property
    def size(self) -> int:
        """The number of elements in one world."""
        return self.shape[0] if self.shape else 1

    def leading_shape(self, shape: tuple[int, ...], function: str) -> tuple[int, ...]:
        """The leading shape of an array of this shape. Raises ShapeError."""
        length = len(self.shape)
        if shape[len(shape) - length :] != self.shape or len(shape) < length:
            wanted = f"(..., {self.shape[0]})" if self.shape else "(...)"
            raise ShapeError(f"{self.name!r} has the shape {shape}; {function} takes {wanted}")
        return shape[: len(shape) - length]


@dataclass(frozen=True)
class BoundFunction:
    """A method of a compiled mechanism with its options.

    function: of flat arrays. arguments: in the order of the method. inputs: in the order of the flat arrays;
    the values of the symbols are the last one. shapes: of the results in one world.
    """

    name: str
    mechanism: Mechanism
    function: ArrayFunction
    arguments: tuple[BoundArgument, ...]
    inputs: tuple[BoundArgument, ...]
    shapes: tuple[tuple[int, ...], ...]

    def given(self, args: Sequence[Any], keywords: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments by name; those that are left out are None. Raises ArgumentError."""
        names = [argument.name for argument in self.arguments]
        if len(args) == len(names) and not keywords and not [x for x in args if x is None]:
            return dict(zip(names, args, strict=True))
        usage = f"{self.function.name} takes {', '.join(names)}"
        if len(args) > len(names):
            raise ArgumentError(f"{len(args)} arguments were given; {usage}")
        found = dict(zip(names, args, strict=False))
        for name, value in keywords.items():
            if name not in names or name in found:
                problem = "is given twice" if name in found else "is no argument"
                raise ArgumentError(
                    f"{name!r} {problem}: {usage}; frames and settings are given to function()"
                )
            found[name] = value
        for argument in self.arguments:
            if found.get(argument.name) is None and not argument.optional:
                timed = time_dependent_parts(self.mechanism) if argument.name == "time" else ()
                why = f"{timed[0]} depends on the time t, and " if timed else ""
                raise ArgumentError(f"{argument.name!r} is missing: {why}{usage}")
        return {name: found.get(name) for name in names}

    def without_labels(self, name: str, value: Any) -> Any:
        """The value of an argument; a labelled array as one of NumPy, in the order of the mechanism."""
        if name not in ARGUMENTS or not has_labels(value):
            return value
        return np.asarray(ARGUMENTS[name].without_labels(self.mechanism, value, name))

    def parameters(self, params: Mapping[Any, Any] | None) -> list[Any]:
        """The values of the symbols in their order. Raises ParameterError, with the name of the symbol."""
        values = values_by_name(self.mechanism, params)
        return [values[name] for name in self.mechanism.symbols]

    def structured(self, results: Sequence[Any]) -> Any:
        """The results as the method returns them, from arrays in their shapes."""
        if self.name == "step":  # the time comes last, if parts depend on it
            return State(*results[:3])
        if self.name == "sensors":
            return by_sensor(self.mechanism, results[0])
        structure = STRUCTURES.get(self.name)
        return structure(*results) if structure is not None else results[0]


def bound_function(
    method: Any, options: Mapping[str, Any], jacobian: Callable[..., np.ndarray] | None = None
) -> BoundFunction:
    """The function that a method of a compiled mechanism is, with its options: frames, settings of a step.

    jacobian: its Jacobian (..., m, n), all results by all inputs, as a function of the flat inputs; by
    default the exact one of the expression graph. Raises ArgumentError for another object, and what the
    method raises for its options.
    """
    name = getattr(method, "__name__", "")
    owner = getattr(method, "__self__", None)
    if not isinstance(method, MethodType) or not isinstance(owner, CompiledMechanism):
        raise ArgumentError(
            f"the first argument is {short_repr(method)}; give a method of zw.compile(mechanism), such as "
            "fast.forward_dynamics"
        )
    if name not in FUNCTION_NAMES:
        raise ArgumentError(
            f"{name} is no function that can be used here; give one of {', '.join(FUNCTION_NAMES)}"
        )
    mechanism = owner.mechanism
    key = _key(owner, name, options)
    kind = StepFunction if name == "step" else CompiledArrayFunction
    compiled = kind(owner, key, f"{name} of mechanism {mechanism.name!r}")
    function: ArrayFunction = compiled
    if jacobian is not None:
        function = FunctionWithJacobian(function, jacobian)
    inputs = tuple(_argument(mechanism, port.name, name) for port in compiled.program.inputs)
    by_name = {argument.name: argument for argument in inputs}
    order = STEP_ARGUMENTS if name == "step" else FUNCTIONS[name].arguments
    arguments = tuple(by_name[argument] for argument in order if argument in by_name)
    shapes = tuple(tuple(port.shape) for port in compiled.program.outputs)
    return BoundFunction(name, mechanism, function, arguments, inputs, shapes)


def _argument(mechanism: Mechanism, name: str, function: str) -> BoundArgument:
    """An argument of a program's input."""
    if name == PARAMETERS:
        return BoundArgument(name, (len(mechanism.symbols),), False)
    shape = ARGUMENTS[name].shape_in(mechanism)
    optional = name in OPTIONAL and (function != "step" or shape == 0)
    return BoundArgument(name, (shape,) if isinstance(shape, int) else (), optional)


def _key(owner: CompiledMechanism, name: str, options: Mapping[str, Any]) -> Key:
    """The key of a function with its options. Raises ArgumentError, and what the method raises."""
    if name == "step":
        known = ("step", "integrator", "coordinate_reduction")
        _check_known(name, options, known)
        return owner.step_key(
            options.get("step"), options.get("integrator"), options.get("coordinate_reduction", False)
        )
    known = FUNCTIONS[name].options
    _check_known(name, options, known)
    if not known:
        return name
    if "frame" not in options:
        raise ArgumentError(f"frame is missing: {name} is that of a body or a frame; give frame=...")
    owner.mechanism.tree.placement(options["frame"])
    values = {"axes": "world"} | dict(options) if "axes" in known else dict(options)
    check_axes(values)
    return (name, *(values[option] for option in known))


def _check_known(name: str, options: Mapping[str, Any], known: Sequence[str]) -> None:
    for option in options:
        if option not in known:
            valid = f"its options are {', '.join(known)}" if known else "it has no options"
            raise ArgumentError(f"{option!r} is no option of {name}; {valid}")


def check_dtype(function: BoundFunction, name: str, dtype: np.dtype, remedy: str) -> None:
    """Raises StateError if an argument does not have the function's type; integers are accepted.

    name: of the argument. remedy: a sentence on what to do about floats of another size.
    """
    if dtype.kind == "f" and dtype != function.function.dtype:
        raise wrong_float(function, name, dtype.name, remedy)
    if dtype.kind not in "fiu":
        raise wrong_kind(function, name, dtype.name)


def remedy_by_conversion(conversion: str, dtype: str) -> str:
    """What to do about floats of this type: the conversion, or a function of the type if there can be one."""
    own = f", or use zw.compile(mechanism, dtype={dtype!r})" if dtype in ("float32", "float64") else ""
    return f"convert it by {conversion}{own}"


def wrong_float(function: BoundFunction, name: str, dtype: str, remedy: str) -> StateError:
    """The error for an argument of floats of another size; arguments as for `check_dtype`."""
    own = function.function
    return StateError(f"{name!r} is {dtype}, and {own.name} computes in {own.dtype.name}: {remedy}")


def wrong_kind(function: BoundFunction, name: str, dtype: str) -> StateError:
    """The error for an argument that has no real numbers."""
    own = function.function.dtype.name
    return StateError(f"{name!r} is an array of {dtype}; give real numbers of the type {own}")
