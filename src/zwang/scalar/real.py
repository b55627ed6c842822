"""Validated conversion of input to real numbers: only what is a real number is accepted."""

from __future__ import annotations

from typing import Any

import numpy as np

REAL = "fiub"  # kinds of NumPy types: floats, signed and unsigned integers, booleans


def real_array(values: Any) -> np.ndarray:
    """`values` as an array of floats.

    Raises TypeError for complex numbers (even with a zero imaginary part), strings, dates, times, None and
    masked arrays, which NumPy would convert, and ValueError for rows of different lengths.
    """
    if isinstance(values, np.ma.MaskedArray):
        raise TypeError("a masked array has elements without values")
    array = np.asarray(values)
    if array.dtype.kind == "O":  # numbers of other libraries, one by one
        array = np.array([real_number(x) for x in array.flat], dtype=float).reshape(array.shape)
    if array.dtype.kind not in REAL:
        raise TypeError(f"{array.dtype} is not a type of real numbers")
    return np.array(array, dtype=float)


def real_number(value: Any) -> float:
    """`value` as a float. Raises TypeError where it is not a real number, ValueError where a float cannot
    hold it.
    """
    if isinstance(value, np.generic | np.ndarray) and value.dtype.kind not in REAL + "O":
        raise TypeError(f"{value.dtype} is not a type of real numbers")
    if isinstance(value, str | bytes | bytearray | complex):
        raise TypeError(f"a {type(value).__name__} is not a real number")
    try:
        return float(value)
    except OverflowError:
        raise ValueError("the integer is too large for a float") from None
