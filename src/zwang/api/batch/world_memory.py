"""The memory of many worlds, in the layout of vector registers."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate

import numpy as np

ALIGNMENT = 64  # bytes: a cache line; other libraries share memory only if it is aligned so


def aligned_array(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """An array of zeros whose memory is aligned as other libraries require for sharing it."""
    size = int(np.prod(shape, dtype=int)) * np.dtype(dtype).itemsize
    memory = np.zeros(size + ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % ALIGNMENT
    return memory[start : start + size].view(dtype).reshape(shape)


def lane_major_arrays(sizes: Mapping[str, int], worlds: int, dtype: str, lanes: int) -> dict[str, np.ndarray]:
    """Zeros (worlds, size) by name, one after another in memory.

    The values of consecutive worlds are neighbours, as in vector registers; the distance of two elements of a
    world is an odd number of cache lines, so that they do not compete for few sets of the cache. For fewer
    worlds than lanes, the elements of a world are neighbours.
    """
    if worlds < lanes:
        return {name: aligned_array((worlds, size), dtype) for name, size in sizes.items()}
    line = ALIGNMENT // np.dtype(dtype).itemsize
    padded = (-(-worlds // line) | 1) * line
    starts = [0, *accumulate(sizes.values())]
    rows = aligned_array((starts[-1], padded), dtype)
    return {
        name: rows[start : start + size, :worlds].T
        for (name, size), start in zip(sizes.items(), starts, strict=False)
    }
