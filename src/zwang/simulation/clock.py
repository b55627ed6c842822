"""The clock of a world: the number of its steps, from which its time follows.

In double precision it is one number. In single precision, in which whole numbers end at 2^24, it is two: the
steps since the last multiple of 2^20, and these multiples.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from zwang.scalar import less, where

MULTIPLE = 2**20  # steps; of 2^24 numbers for the rest, some are left for parts of a step


def clock_size(dtype: npt.DTypeLike) -> int:
    """The numbers of a clock in arrays of this type."""
    return 1 if np.dtype(dtype).itemsize >= 8 else 2


def clock_time(clock: Any, h: float) -> Any:
    """The time [s] of a clock; h: the step size [s]. In single precision it is rounded; it does not drift."""
    return clock[0] * h if len(clock) == 1 else (clock[1] * MULTIPLE + clock[0]) * h


def advanced_clock(clock: Any, advances: Any) -> np.ndarray:
    """The clock after a step, where `advances` is true."""
    rest = clock[0] + where(advances, 1, 0)
    if len(clock) == 1:
        return np.array([rest])
    below = less(rest, MULTIPLE)
    return np.array([where(below, rest, rest - MULTIPLE), where(below, clock[1], clock[1] + 1)])


def clock_of(steps: np.ndarray, size: int) -> np.ndarray:
    """The clocks (worlds, size) after these numbers of steps (worlds,), which need not be whole."""
    if size == 1:
        return steps[:, None]
    multiples = np.trunc(steps / MULTIPLE)
    return np.stack([steps - MULTIPLE * multiples, multiples], axis=1)


def clock_times(clocks: np.ndarray, h: float) -> np.ndarray:
    """The times (worlds,) [s] of clocks (worlds, size), in double precision."""
    return clock_time(clocks.T.astype(float), h)
