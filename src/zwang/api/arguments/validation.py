"""Validation of arguments of public functions; an error names the argument."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal

import numpy as np

from zwang.collision import candidate_count
from zwang.errors import (
    ArgumentError,
    CompileError,
    ParameterError,
    ShapeError,
    SimulationError,
    StateError,
    UnknownNameError,
    WriteError,
    ZwangError,
)
from zwang.mechanism.labelled_arrays import without_labels
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.mocap import moved_mocap_bodies
from zwang.mechanism.options import Keyframe
from zwang.mechanism.symbols import values_for_symbols
from zwang.mechanism.type_validation import short_repr as short_repr
from zwang.mechanism.type_validation import validated_arguments as validated_arguments
from zwang.scalar import are_constant, real_array
from zwang.scalar.real import remedy_for
from zwang.simulation.applied_forces import activations
from zwang.simulation.controls import control_names

FLOAT = np.dtype(float)
SMALLEST_QUATERNION = 1e-9  # length; shorter ones have no direction
QUATERNION_ROUNDING = 2.0**-49  # of |q|^2, up to which q stays, also in `normalized_configuration`


@contextmanager
def write_errors(path: Any) -> Iterator[None]:
    """A context in which errors of the file system become a WriteError with the reason."""
    try:
        yield
    except ZwangError:
        raise
    except (OSError, ValueError) as error:  # a path with a NUL character is a ValueError
        reason = getattr(error, "strerror", None) or error
        raise WriteError(
            f"{str(path)!r} cannot be written: {reason}; give a file in a folder that is there and may "
            f"be written to"
        ) from error


def checked_mechanism(mechanism: Any) -> Mechanism:
    """The mechanism, which may have symbols. Raises ArgumentError for another object."""
    if not isinstance(mechanism, Mechanism):
        raise ArgumentError(
            f"the first argument is a {type(mechanism).__name__}; give a zw.Mechanism, as zw.load(path) "
            f"returns"
        )
    return mechanism


def numeric_mechanism(mechanism: Any) -> Mechanism:
    """The mechanism, without symbols. Raises ArgumentError or ParameterError."""
    mechanism = checked_mechanism(mechanism)
    if mechanism.symbols:
        raise ParameterError(
            f"mechanism {mechanism.name!r} has symbols without values; give them with "
            f"{values_for_symbols(mechanism)}"
        )
    return mechanism


def vector(value: Any, size: int, name: str, what: str) -> np.ndarray:
    """`value` as `size` finite floats. Raises ShapeError or StateError, naming the argument."""
    try:
        array = real_array(value)
    except (TypeError, ValueError, OverflowError):
        raise StateError(
            f"{name} must be {size} real numbers ({what}); it is {_shown(value)}{remedy_for(value)}"
        ) from None
    if array.shape != (size,):
        raise ShapeError(f"{name} must have the shape ({size},) ({what}); its shape is {array.shape}")
    if not np.isfinite(array).all():
        first = int(np.flatnonzero(~np.isfinite(array))[0])
        raise StateError(f"{name}[{first}] is {array[first]}; every element of {name} must be finite")
    return array


def real_values(value: Any, name: str, *, copy: bool = True) -> np.ndarray:
    """`value` as floats of any shape. Raises StateError, with the name of the argument, for other values.

    copy: whether the result is a copy even if `value` is such an array.
    """
    if not copy and type(value) is np.ndarray and value.dtype is FLOAT:
        return value
    try:
        return real_array(value)
    except (TypeError, ValueError, OverflowError):
        raise StateError(f"{name} must hold real numbers; it is {_shown(value)}{remedy_for(value)}") from None


def real(value: Any, name: str, what: str) -> float:
    """`value` as one finite float. Raises StateError, naming the argument."""
    try:
        number = real_array(value)
    except (TypeError, ValueError, OverflowError):
        number = np.zeros(0)
    if number.shape != () or not np.isfinite(number):
        raise StateError(f"{name} is {_shown(value)}; it must be {what}, one finite real number")
    return float(number)


def values_by_name(values: Any, default: Any, names: Sequence[str], kind: str, where: str) -> Any:
    """The values of a dictionary by name, the others as in `default`, worlds first; those of a labelled array
    in the order of the names; other values as they are.

    kind, where: for errors, what the names are and the argument. Raises UnknownNameError, StateError, or
    ShapeError for labels that are not the names.
    """
    if not isinstance(values, Mapping):
        return without_labels(values, names, where)
    for key in values:
        if key not in names:
            raise UnknownNameError(kind, key, names)
    columns = []
    for name, x in zip(names, default, strict=True):
        try:
            columns.append(real_array(values.get(name, x)))
        except (TypeError, ValueError, OverflowError):
            raise StateError(
                f"{where}[{name!r}] must hold real numbers; it is {_shown(values.get(name, x))}"
            ) from None
    try:
        return np.stack(np.broadcast_arrays(*columns), axis=-1) if columns else np.zeros(0)
    except ValueError:
        shapes = ", ".join(f"{key!r}: {np.shape(x)}" for key, x in values.items())
        raise ShapeError(f"the values in {where} have shapes that do not fit each other: {shapes}") from None


def expressions_by_name(values: Any, default: Any, names: Sequence[str], kind: str, where: str) -> Any:
    """`values_by_name` of one world, whose values may also be expressions, which are not validated."""
    if not isinstance(values, Mapping):
        return values_by_name(values, default, names, kind, where)
    for key in values:
        if key not in names:
            raise UnknownNameError(kind, key, names)
    return [values.get(name, x) for name, x in zip(names, default, strict=True)]


def as_entries(value: Any, where: str) -> np.ndarray:
    """The entries of a vector of numbers and expressions, which are not validated. Raises ShapeError."""
    try:
        return np.array(value, dtype=object)
    except ValueError:
        raise ShapeError(f"{where} has rows of different lengths: {_shown(value)}") from None


def values_of_elements(
    mechanism: Mechanism,
    values: Any,
    part: Literal["q", "v"],
    where: str,
    entries: Callable[[Any, str], np.ndarray] = real_values,
) -> Any:
    """A dictionary by names with the elements of joints that have several in place of the names of these
    joints, such as {"wrist.wx": 1, "wrist.wy": 2, "wrist.wz": 3} for {"wrist": [1, 2, 3]}; other values as
    they are.

    part: "q" for coordinates, or "v" for generalised velocities. The elements of a joint are the last axis of
    its value, as `entries` reads it with its place. Raises ShapeError for another number of them, and
    StateError for what is no number, an element that is given twice, and a joint with the name of an element
    of another one.
    """
    if not isinstance(values, Mapping):
        return values
    table = {joint.name: joint.coordinates if part == "q" else joint.speeds for joint in mechanism.joints}
    several = {name: elements for name, elements in table.items() if len(elements) > 1}
    owners = {element: name for name, elements in several.items() for element in elements}
    found: dict[Any, Any] = {}
    for key, value in values.items():
        if key in several and key in owners:
            raise StateError(
                f"{where} has {key!r}, which names a joint and an element of joint {owners[key]!r}; give the "
                f"elements of the joint, {', '.join(map(repr, several[key]))}, or all of {owners[key]!r}"
            )
        if key not in several:
            found[key] = value
            continue
        if twice := [element for element in several[key] if element in values]:
            raise StateError(f"{where} has values for both {key!r} and its element {twice[0]!r}; give one")
        columns = _last_axis(several[key], entries(value, f"{where}[{key!r}]"), f"{where}[{key!r}]")
        found |= dict(zip(several[key], columns, strict=True))
    return found


def _last_axis(names: Sequence[str], array: np.ndarray, where: str) -> np.ndarray:
    """The value of each name, which are the elements of the last axis. Raises ShapeError."""
    if array.shape[-1:] != (len(names),):
        raise ShapeError(
            f"{where} must have the elements {', '.join(names)}, the shape ({len(names)},), or one row for "
            f"each world; its shape is {array.shape}"
        )
    return np.moveaxis(array, -1, 0)


def keyframe_of(mechanism: Mechanism, name: str) -> Keyframe:
    """The keyframe of that name. Raises UnknownNameError, and SimulationError if it moves mocap bodies that
    are no parameters.
    """
    keyframe = mechanism.keyframe(name)
    if moved := moved_mocap_bodies(mechanism, keyframe.mocap):
        raise SimulationError(
            f"keyframe {name!r} moves mocap body {moved[0]!r}, whose pose is fixed in this mechanism; make "
            f"it a parameter: m, params = zw.with_mocap_parameters(mechanism, {name!r}), and use m and params"
        )
    return keyframe


def named_keyframe(mechanism: Mechanism, q: Any) -> Keyframe:
    """The keyframe that a configuration names, whose velocities, control and activations are then the
    defaults; one without values if q is no name. Raises what `keyframe_of` does.
    """
    return keyframe_of(mechanism, q) if isinstance(q, str) else Keyframe("default")


def or_of_keyframe(mechanism: Mechanism, q: Any, **given: Any) -> tuple[Any, ...]:
    """The given parts of a state (v, control, activation); in place of None, and of the elements that a
    dictionary by name leaves out, those of the keyframe which q names, if it has them.
    """
    keyframe = named_keyframe(mechanism, q)
    names = {"v": mechanism.speed_names, "control": control_names(mechanism)}
    if "v" in given:
        given["v"] = values_of_elements(mechanism, given["v"], "v", "v")
    return tuple(_completed(x, getattr(keyframe, name), names.get(name, ())) for name, x in given.items())


def _completed(given: Any, default: Sequence[Any], names: Sequence[str]) -> Any:
    """The given values, with the default in place of None and of what a dictionary by name leaves out."""
    if not default:
        return given
    if isinstance(given, Mapping):
        return {**dict(zip(names, default, strict=False)), **given}
    return default if given is None else given


def coordinates(mechanism: Mechanism, q: Any, where: str) -> Any:
    """The coordinates (..., nq) of the keyframe of that name, or of a dictionary by the names of coordinates
    or joints, of which the others take their values in the home or the neutral configuration; other values as
    they are.

    where: the argument, for errors. Raises UnknownNameError, StateError or ShapeError.
    """
    home = mechanism.home or mechanism.neutral
    q = (keyframe_of(mechanism, q).q or home) if isinstance(q, str) else q
    q = values_of_elements(mechanism, q, "q", where)
    return values_by_name(q, home, mechanism.coordinate_names, "coordinate", where)


def configuration(mechanism: Mechanism, q: Any) -> np.ndarray:
    """q (nq,) with its quaternions at unit length.

    q may also be the name of a keyframe, or a dictionary by the names of coordinates or joints, of which the
    others take their values in the home or the neutral configuration. Raises ShapeError, UnknownNameError,
    and StateError for NaN and zero quaternions.
    """
    q = coordinates(mechanism, q, "q")
    q = vector(q, mechanism.nq, "q", f"nq of mechanism {mechanism.name!r}")
    normalise_quaternions(mechanism, q)
    return q


def normalise_quaternions(mechanism: Mechanism, q: np.ndarray, where: str = "") -> None:
    """Bring the quaternions of configurations (..., nq) to unit length, in place.

    where: follows the place of a quaternion in a message; by default its row. Raises StateError for a zero
    one.
    """
    for joint in mechanism.joints:
        if joint.kind in ("ball", "free"):
            first, end = joint.q.stop - 4, joint.q.stop
            part = q[..., first:end]
            square = np.sum(part * part, axis=-1, keepdims=True)
            length = np.sqrt(square)
            if not (length > SMALLEST_QUATERNION).all():
                if not where and length.size > 1:
                    index = np.argwhere(~(length > SMALLEST_QUATERNION))[0][:-1]
                    where = f" in row {', '.join(map(str, index))}"
                raise StateError(
                    f"the quaternion of joint {joint.name!r}, q[{first}:{end}]{where}, is zero; "
                    "give a unit quaternion (w, x, y, z), such as (1, 0, 0, 0)"
                )
            np.divide(part, length, out=part, where=np.abs(square - 1) > QUATERNION_ROUNDING)


def nv_vector(mechanism: Mechanism, value: Any, name: str) -> np.ndarray:
    """v, tau or a (nv,), finite, also as a dictionary by the names of speeds or joints, of which the others
    are zero.

    Raises ShapeError, StateError or UnknownNameError.
    """
    value = values_of_elements(mechanism, value, "v", name)
    value = values_by_name(value, np.zeros(mechanism.nv), mechanism.speed_names, "speed", name)
    return vector(value, mechanism.nv, name, f"nv of mechanism {mechanism.name!r}")


def control_vector(mechanism: Mechanism, value: Any) -> np.ndarray:
    """The control (nu,), finite, also as a dictionary by the names of inputs, of which the others are zero.

    Raises ShapeError, StateError or UnknownNameError.
    """
    names = control_names(mechanism)
    value = values_by_name(value, np.zeros(len(names)), names, "input", "control")
    return vector(value, len(names), "control", f"inputs of mechanism {mechanism.name!r}")


def activation_vector(mechanism: Mechanism, value: Any) -> np.ndarray:
    """The activations (nz,), finite. Raises ShapeError or StateError."""
    check_activation(mechanism, value)
    size = len(activations(mechanism))
    return vector(value, size, "activation", f"states of the actuators of mechanism {mechanism.name!r}")


def check_activation(mechanism: Mechanism, activation: Any) -> None:
    """Raises ShapeError if no activations (..., nz) are given and the mechanism has some, and StateError for
    other values than numbers.
    """
    if real_values(activation, "activation", copy=False).shape[-1:] != (0,):
        return
    names = activations(mechanism)
    if names:
        size, some = len(names), ", ".join(map(repr, names[:3])) + ", ..." * (len(names) > 3)
        raise ShapeError(
            f"activation is missing: the actuators of mechanism {mechanism.name!r} have states ({some}); "
            f"give activation=..., of the shape ({size},) for one world, or (..., {size}) for many"
        )


MOST_SPEEDS = 5_000
"""The largest number of generalised velocities of a compiled mechanism, as the loops over joints are
unrolled.
"""
MOST_PAIRS = 100_000
"""The largest number of nonzero elements of the mass matrix in unrolled code."""
MOST_SPEEDS_IN_PYTHON, SECONDS_IN_PYTHON = 20_000, 4e-4  # a step, for each velocity
MOST_CANDIDATES_IN_PYTHON = 5_000
SECONDS, MEGABYTES = 0.025, 0.25  # compile time on one core, and memory, of one velocity of a chain


def check_compilable(mechanism: Mechanism, matrix: str = "") -> None:
    """Raises CompileError, with size and estimated cost, for a mechanism that is too large for machine code.

    matrix: the function, if its code contains every element of the mass matrix. The check takes only the
    sizes.
    """
    nv, pairs = _sizes(mechanism)
    if nv > MOST_SPEEDS:
        raise CompileError(
            f"mechanism {mechanism.name!r} has nv = {nv:,} speeds; machine code is made for at most "
            f"{MOST_SPEEDS:,}, as it has every "
            f"joint's arithmetic in a row: this would take about {max(1, round(nv * SECONDS / 60)):,} "
            f"minutes and "
            f"{nv * MEGABYTES / 1000:.1f} GB. Split the mechanism, or give bodies that hardly move "
            f"against each other zw.Fixed joints"
        )
    if matrix and pairs > MOST_PAIRS:
        raise CompileError(
            f"mechanism {mechanism.name!r} has a mass matrix of {pairs:,} elements that are not zero "
            f"(nv = {nv:,}); machine code of {matrix} "
            f"has each of them in a row, and is made for at most {MOST_PAIRS:,}, as of a chain of 446 "
            f"hinges: more take many minutes. Shorten the "
            "longest chains; what needs no mass matrix, such as forward_dynamics without constraints "
            "and limits, is compiled for larger ones"
        )


def check_interpretable(mechanism: Mechanism) -> None:
    """Raises SimulationError, with size and estimated cost, for a mechanism whose steps take more than about
    ten seconds each without machine code. The check takes only the sizes.
    """
    nv, elements = _sizes(mechanism)
    name, remedy = mechanism.name, "simulate it with compiled=True, or split it"
    if nv > MOST_SPEEDS_IN_PYTHON:
        raise SimulationError(
            f"mechanism {name!r} has nv = {nv:,} speeds; with compiled=False every step evaluates each joint "
            f"in Python, about {nv * SECONDS_IN_PYTHON:.0f} s a step, and at most {MOST_SPEEDS_IN_PYTHON:,} "
            "are simulated so: split the mechanism"
        )
    if elements > MOST_PAIRS and is_restrained(mechanism):
        raise SimulationError(
            f"mechanism {name!r} has a mass matrix of {elements:,} elements that are not zero, and its "
            f"constraints need it: with compiled=False it may have at most {MOST_PAIRS:,}; split it"
        )
    if (candidates := candidate_count(mechanism)) > MOST_CANDIDATES_IN_PYTHON:
        raise SimulationError(
            f"mechanism {name!r} has {candidates:,} pairs of shapes that may touch; with compiled=False each "
            f"step tests all in Python, and at most {MOST_CANDIDATES_IN_PYTHON:,} are simulated so: {remedy}"
        )


def _sizes(mechanism: Mechanism) -> tuple[int, int]:
    """nv, and the number of elements of the mass matrix at and below the diagonal that are not zero."""
    depths: dict[str, int] = {}
    nv = elements = 0
    for body in mechanism.bodies:
        own = sum(joint.nv for joint in body.joints)
        above = depths.get(body.parent, 0)
        depths[body.name] = above + own
        nv += own
        elements += own * above + own * (own + 1) // 2
    return nv, elements


def is_restrained(mechanism: Mechanism) -> bool:
    """Whether constraints, limits or dry friction may act, so that a step needs the mass matrix; not of
    contacts.
    """
    parts = (*(index.joint for index in mechanism.joints), *mechanism.tendons)
    return bool(mechanism.constraints) or any(_has_limits(part) for part in parts)


def _has_limits(part: Any) -> bool:
    friction = getattr(part, "friction", 0)
    return getattr(part, "limits", None) is not None or not are_constant(friction) or friction != 0


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 60 else text[:57] + "..."
