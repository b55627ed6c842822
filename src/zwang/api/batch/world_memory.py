"""The memory of many worlds, in the layout of vector registers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate

import numpy as np

from zwang.compiler.ir.program import Port

ALIGNMENT = 64  # bytes: a cache line; other libraries share memory only if it is aligned so
INTEGERS = "int16"  # holds small integers


def aligned_array(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """An array of zeros whose memory is aligned as other libraries require for sharing it."""
    size = int(np.prod(shape, dtype=int)) * np.dtype(dtype).itemsize
    memory = np.zeros(size + ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % ALIGNMENT
    return memory[start : start + size].view(dtype).reshape(shape)


def lane_major_arrays(ports: Sequence[Port], worlds: int, dtype: str, lanes: int) -> dict[str, np.ndarray]:
    """Zeros (worlds, size) by the names of the ports, one after another in memory.

    The values of consecutive worlds are neighbours, as in vector registers; the distance of two elements of a
    world is an odd number of cache lines, so that they do not compete for few sets of the cache. Numbers that
    are small integers are stored as such. For fewer worlds than lanes, the elements of a world are
    neighbours, and all are of type `dtype`.
    """
    if worlds < lanes:
        return {port.name: aligned_array((worlds, port.size), dtype) for port in ports}
    largest = np.iinfo(INTEGERS).max
    small = {port.name: port.size for port in ports if 0 < port.largest <= largest}
    others = {port.name: port.size for port in ports if port.name not in small}
    found = _rows(others, worlds, dtype) | _rows(small, worlds, INTEGERS)
    return {port.name: found[port.name] for port in ports}


def _rows(sizes: Mapping[str, int], worlds: int, dtype: str) -> dict[str, np.ndarray]:
    """Zeros (worlds, size) by name, with a row of memory for each element."""
    line = ALIGNMENT // np.dtype(dtype).itemsize
    padded = (-(-worlds // line) | 1) * line
    starts = [0, *accumulate(sizes.values())]
    rows = aligned_array((starts[-1], padded), dtype)
    return {
        name: rows[start : start + size, :worlds].T
        for (name, size), start in zip(sizes.items(), starts, strict=False)
    }
