"""Validation of what `Worlds` is given: counts, commands, and rows of states, controls and parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from zwang.errors import ArgumentError, ShapeError, StateError, UnknownNameError
from zwang.mechanism.labelled_arrays import without_labels
from zwang.mechanism.type_validation import short_repr
from zwang.scalar.real import real_array


def whole_number(value: Any, name: str, what: str = "a whole number", least: int = 1) -> int:
    """The value as an integer. Raises ArgumentError for what is none, or is below the least."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ArgumentError(f"{name} is {short_repr(value)}; it must be {what}, at least {least}")
    return int(value)


def world_count(count: Any) -> int:
    """A number of worlds. Raises ArgumentError."""
    return whole_number(count, "count", "a whole number of worlds")


def checked_seed(seed: Any) -> int | None:
    """A seed as an integer, or None. Raises ArgumentError for what is no seed."""
    if seed is None:
        return None
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise ArgumentError(f"a seed is {short_repr(seed)}; it must be a whole number, at least 0, or None")
    return int(seed)


def checked_commands(commands: Any) -> dict[str, np.ndarray]:
    """The values of commands as arrays. Raises ArgumentError."""
    if commands is not None and not isinstance(commands, Mapping):
        raise ArgumentError(
            f"commands is {short_repr(commands)}; give a dictionary from names to numbers or arrays"
        )
    found: dict[str, np.ndarray] = {}
    for name, value in (commands or {}).items():
        try:
            found[name] = np.array(real_array(value))
        except (TypeError, ValueError, OverflowError):
            found[name] = np.full(1, np.nan)
        if not isinstance(name, str) or not found[name].size or not np.isfinite(found[name]).all():
            raise ArgumentError(
                f"commands[{short_repr(name)}] is {short_repr(value)}; give a name, and a finite number or "
                "an array of such numbers"
            )
    return found


def step_size(step: Any) -> float:
    """A step size [s]. Raises ArgumentError."""
    if not 0 < float(step) < np.inf:
        raise ArgumentError(f"step is {step!r}; it must be a positive time in seconds")
    return float(step)


def rows_of(value: Any, shape: tuple[int, ...], name: str, default: Any, finite: bool = True) -> np.ndarray:
    """`value` as real numbers of this shape, (n,) or (n, size): one for each of n worlds, or one for all;
    `default` for None. Raises ShapeError or StateError.
    """
    if value is None:
        return np.broadcast_to(np.asarray(default, float), shape)
    try:
        array = real_array(value)
    except (TypeError, ValueError, OverflowError):
        raise StateError(f"{name} must hold real numbers; it is {str(value)[:60]!r}") from None
    if finite and not np.isfinite(array).all():
        raise StateError(f"{name} must hold finite numbers; it is {str(value)[:60]}")
    own = array.reshape(1) if array.shape == () and shape[1:] == (1,) else array
    if own.shape in (shape, shape[1:], (1, *shape[1:])):
        return np.broadcast_to(own, shape)
    one = f"{shape[1:]} for all worlds or " if len(shape) > 1 else "one number or "
    raise ShapeError(f"{name} must have the shape {one}{shape}; its shape is {array.shape}")


def merged_rows(value: Any, present: np.ndarray, names: tuple[str, ...], name: str) -> np.ndarray:
    """Rows (n, size) with a value, or with those of a dictionary by name, in place of the present ones."""
    if not isinstance(value, Mapping):
        value = without_labels(value, names, name)
        return np.array(rows_of(value, present.shape, name, present), float)
    merged = np.array(present, float)
    for key, x in value.items():
        if key not in names:
            raise UnknownNameError("coordinate, speed or input", key, names)
        merged[:, names.index(key)] = rows_of(x, (len(present),), f"{name}[{key!r}]", 0.0)
    return merged
