"""The clock of a world or of a rollout: the number of its steps, from which its time follows.

In double precision it is one number. In single precision, which lacks whole numbers above 2^24, it is two:
the rounded number of steps, and what the rounding has left out.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from zwang.scalar import absolute, less, where


def clock_size(dtype: npt.DTypeLike) -> int:
    """The numbers of a clock in arrays of this type."""
    return 1 if np.dtype(dtype).itemsize >= 8 else 2


def first_clock() -> np.ndarray:
    """The clock before the first step, for programs of either precision."""
    return np.zeros(clock_size(np.float32))


def advanced_clock(clock: Any, advances: Any) -> np.ndarray:
    """The clock after a step, where `advances` is true."""
    one = where(advances, 1, 0)
    if len(clock) == 1:
        return np.array([clock[0] + one])
    # Dekker's fast two-sum: rounded + remainder is the exact number of steps, up to 2^48
    added = clock[1] + one
    rounded = clock[0] + added
    return np.array([rounded, added - (rounded - clock[0])])


def clock_time(clock: Any, h: float) -> Any:
    """The time [s] of a clock with steps of the size h [s], rounded as any input of a program is."""
    # selected, as a product alone is fused with what is added to it, and then is not rounded
    return where(less(absolute(clock[0]), np.inf), clock[0] * h, np.nan)


def clock_of(steps: np.ndarray, dtype: npt.DTypeLike) -> np.ndarray:
    """The clocks (worlds, size) after these numbers of steps (worlds,), which need not be whole."""
    rounded = steps.astype(dtype)
    parts = [rounded, steps - rounded]
    return np.stack(parts[: clock_size(dtype)], axis=1)


def clock_times(clocks: np.ndarray, h: float) -> np.ndarray:
    """The times (worlds,) [s] of clocks (worlds, size), in double precision; h: the step size [s]."""
    return clocks.sum(axis=1, dtype=float) * h
