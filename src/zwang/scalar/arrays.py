"""Constant tables and scratch arrays, read and written at indices."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from zwang.scalar.backend import backend_of


def clamped_index(position: Any, length: int) -> int:
    """A whole number as a place in an array of this length: outside it, that of the nearest element; 0 of NaN."""
    return int(min(position, length - 1)) if position > 0 else 0


def flat_position(shape: tuple[int, ...], index: Any) -> Any:
    """Where the entry `index`, an integer or a tuple of them, lies in a row-major array of this shape."""
    indices = index if isinstance(index, tuple) else (index,)
    if len(indices) != len(shape):
        raise IndexError(f"{len(shape)} indices are needed for the shape {shape}, {len(indices)} were given")
    position: Any = 0
    for i, length in zip(indices, shape, strict=True):
        if isinstance(i, (int, np.integer)) and not 0 <= i < length:
            raise IndexError(f"the index {i} is outside 0 ... {length - 1}")
        position = position * length + i
    return int(position) if isinstance(position, np.integer) else position


class Table:
    """Constants that a loop reads at its index: `t[i]`, `t[i, j]`, or `t[i]` for a row of a matrix.

    A table of integers gives indices, which may be used to read further tables and scratch arrays.
    """

    __slots__ = ("entries", "shape")

    def __init__(self, values: Any) -> None:
        array = np.asarray(values)
        if array.dtype.kind not in "iuf" or array.ndim == 0:
            raise TypeError("a table holds constant numbers: give a list or array of floats or of integers")
        self.shape = array.shape
        self.entries: tuple[float, ...] | tuple[int, ...] = tuple(array.ravel().tolist())

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: Any) -> Any:
        indices = index if isinstance(index, tuple) else (index,)
        rest = self.shape[len(indices) :]
        if not rest:
            position = flat_position(self.shape, indices)
            return backend_of(position).gather_table(self, position)
        row = np.empty(rest, dtype=object)
        for inner in np.ndindex(*rest):
            row[inner] = self[(*indices, *inner)]
        return row


class MutableArray:
    """A scratch array of reals with a value's manners: `a[i]` reads, `b = a.set(i, x)` gives the array after it.

    An array is written in place where it is compiled, so after `a.set(...)` only the new one may be used, and a loop
    that changes an array has to carry it.
    """

    __slots__ = ("_elements", "shape")

    def __init__(self, shape: tuple[int, ...], elements: list | None) -> None:
        self.shape = shape
        self._elements = elements

    def __getitem__(self, index: Any) -> Any:
        return self._load(flat_position(self.shape, index))

    def set(self, index: Any, value: Any) -> MutableArray:
        """The array with the element at `index` replaced; this one may not be used any more."""
        return self._store(flat_position(self.shape, index), value)

    def gather(self, position: Any) -> Any:
        """The element at a position that is a whole number, but may differ from lane to lane; outside, the nearest one."""
        return self._load(clamped_index(position, math.prod(self.shape)))

    def scatter(self, position: Any, value: Any) -> MutableArray:
        """The array with the element that `gather` gives replaced; this one may not be used any more."""
        return self._store(clamped_index(position, math.prod(self.shape)), value)

    def _load(self, position: Any) -> Any:
        return self._alive()[position]

    def _store(self, position: Any, value: Any) -> MutableArray:
        elements = self._alive()
        self._elements = None
        elements[position] = value
        return MutableArray(self.shape, elements)

    def _alive(self) -> list:
        if self._elements is None:
            raise ValueError("this scratch array was changed by set(): use the array that set() returned")
        return self._elements
