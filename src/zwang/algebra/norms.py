"""Norms of vectors of any scalar, and the precision and the resolution of numbers."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from typing import Any

from zwang.scalar import absolute, equal, less_equal, maximum, minimum, sqrt, where

TINY = 1e-15  # MuJoCo's mjMINVAL, below which a number counts as zero
DOUBLE_RESOLUTION = 1e-12  # a relative difference that double precision resolves and single precision not


def norm(values: Iterable[Any]) -> Any:
    """The length of a vector, 0 for no values; the derivative at the zero vector is 0."""
    return root_of_square(sum((x * x for x in values), start=0))


def root_of_square(x: Any) -> Any:
    """The square root of x >= 0, with the derivative 0 at x = 0, where that of the root itself is infinite.

    A sum of squares has the derivative 0 there, and 0 is between the one-sided derivatives of its root.
    """
    is_zero = less_equal(x, 0)
    return where(is_zero, 0.0, sqrt(where(is_zero, 1.0, x)))


def max_abs(values: Iterable[Any]) -> Any:
    """The largest absolute value (the maximum norm), 0 for no values."""
    return reduce(maximum, [absolute(x) for x in values], 0.0)


def is_single_precision(x: Any) -> Any:
    """Whether x, which may be traced, has single precision; also true of 0."""
    return equal(x + DOUBLE_RESOLUTION * x, x)


def by_precision(x: Any, double: float, single: float) -> Any:
    """The number for double or for single precision, by that of x, which may be 0 or infinite."""
    return where(is_single_precision(1.0 + minimum(absolute(x), 1.0)), single, double)
