"""Numbers of a record as tables and arrays hold them: with missing values, and with times of other types."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta
from typing import Any

import numpy as np

from zwang.api.arguments import validation
from zwang.errors import StateError
from zwang.mechanism.labelled_arrays import without_labels

MISSING = ("NoneType", "NAType", "NaTType", "MaskedConstant")  # the types of missing values


def recorded_values(value: Any, name: str, columns: Sequence[str]) -> np.ndarray:
    """`value` as floats of any shape, in the order of these columns where it has labels; missing values, such
    as masked ones and pandas.NA, are nan.

    Raises ShapeError, and StateError for what is no number, with the remedy for dates and durations.
    """
    value = without_labels(value, columns, name)
    try:
        array = np.asarray(value)
    except Exception:  # of any type: values of other libraries, rows of different lengths
        return validation.real_values(value, name)
    masked = (
        np.ma.getmaskarray(value) if isinstance(value, np.ma.MaskedArray) else np.zeros(array.shape, bool)
    )
    if array.dtype.kind == "O":
        masked = masked | np.array([type(x).__name__ in MISSING for x in array.flat], bool).reshape(
            array.shape
        )
    present = array[~masked]
    _check_no_time(present, name)
    if not masked.any():
        return validation.real_values(array, name)
    filled = np.full(array.shape, np.nan)
    filled[~masked] = validation.real_values(present, name)
    return filled


def check_finite(x: np.ndarray, name: str, columns: Sequence[str]) -> None:
    """Raises StateError, with the column and the sample, for values (N,) or (N, columns) that are not
    finite.
    """
    bad = np.argwhere(~np.isfinite(x))
    if len(bad):
        column = columns[bad[0][1]] if x.ndim > 1 else columns[0]
        raise StateError(
            f"{name} of {column!r} is {x[tuple(bad[0])]} in sample {bad[0][0]} ({len(bad)} values are not "
            "finite); leave such samples out, or interpolate them"
        )


def _check_no_time(values: np.ndarray, name: str) -> None:
    """Raises StateError for dates and durations, which are no numbers of seconds."""
    kind, first = values.dtype.kind, values.flat[0] if values.size else None
    if kind == "M" or isinstance(first, date):
        raise StateError(
            f"{name} holds dates and times, such as {first}; give seconds as floats, for example "
            f"({name} - {name}[0]) / numpy.timedelta64(1, 's')"
        )
    if kind == "m" or isinstance(first, timedelta):
        raise StateError(
            f"{name} holds durations, such as {first}; give seconds as floats, for example "
            f"{name} / numpy.timedelta64(1, 's')"
        )
