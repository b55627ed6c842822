"""Constant tables and mutable arrays, read and written at indices."""

from __future__ import annotations

import hashlib
import math
from functools import cached_property
from typing import Any

import numpy as np

from zwang.scalar.backend import backend_of


def clamped_index(position: Any, length: int) -> int:
    """A whole number clamped to the indices 0 ... length - 1 of an array; 0 for NaN."""
    return int(min(position, length - 1)) if position > 0 else 0


def flat_position(shape: tuple[int, ...], index: Any) -> Any:
    """Position of the element at `index`, an integer or a tuple of integers, in a row-major array of this
    shape.

    Raises IndexError for a wrong number of indices, and for integers outside the shape.
    """
    # plain integers, which are most indices of an algorithm on floats
    if type(index) is int and len(shape) == 1 and 0 <= index < shape[0]:
        return index
    if type(index) is tuple and len(index) == 2 and len(shape) == 2:
        (i, j), (rows, columns) = index, shape
        if type(i) is int and type(j) is int and 0 <= i < rows and 0 <= j < columns:
            return i * columns + j
    indices = index if isinstance(index, tuple) else (index,)
    if len(indices) != len(shape):
        raise IndexError(f"an array of shape {shape} takes {len(shape)} indices; {len(indices)} were given")
    position: Any = 0
    for i, length in zip(indices, shape, strict=True):
        if isinstance(i, (int, np.integer)) and not 0 <= i < length:
            raise IndexError(f"the index {i} is outside 0 ... {length - 1}")
        position = position * length + i
    return int(position) if isinstance(position, np.integer) else position


class Entries(tuple[Any, ...]):
    """The entries of a table: tables are equal if their bits are. What programs ask of long tables often is
    computed only once.
    """

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Entries) and self.digest == other.digest)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self.digest)

    @property
    def are_indices(self) -> bool:
        """Whether the entries are integers, which are indices."""
        return type(self[0]) is int

    @cached_property
    def numbers(self) -> np.ndarray:
        """The entries as an array of 64-bit reals or integers."""
        return np.array(self, np.int64 if self.are_indices else np.float64)

    @cached_property
    def digest(self) -> str:
        """A text of hexadecimal digits that tells tables of other bits, or of the other kind, apart."""
        return hashlib.sha256(self.numbers.dtype.char.encode() + self.numbers.tobytes()).hexdigest()

    @cached_property
    def bounds(self) -> tuple[Any, Any]:
        """The smallest and the largest entry."""
        return min(self), max(self)

    @cached_property
    def are_equal(self) -> bool:
        """Whether all entries have the same bits."""
        bits = self.numbers.view(np.int64)
        return bool((bits == bits[0]).all())


class Table:
    """A constant table, read at indices: `t[i]`, `t[i, j]`, or `t[i]` for a row of a matrix.

    The entries of a table of integers are indices, which can be used to read other tables and arrays.
    """

    __slots__ = ("entries", "shape")

    def __init__(self, values: Any) -> None:
        array = np.asarray(values)
        if array.dtype.kind not in "iuf" or array.ndim == 0:
            raise TypeError(
                "a table consists of constant numbers: give a list or array of floats or of integers"
            )
        self.shape = array.shape
        self.entries = Entries(array.ravel().tolist())

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
    """An array of reals with functional updates: `a[i]` reads an element, `b = a.set(i, x)` returns the new
    array.

    Compiled code writes in place. So after `a.set(...)` only the returned array may be used, and a loop that
    changes an array has to carry it.
    """

    __slots__ = ("_elements", "shape")

    def __init__(self, shape: tuple[int, ...], elements: list | None) -> None:
        self.shape = shape
        self._elements = elements

    def __getitem__(self, index: Any) -> Any:
        return self._load(flat_position(self.shape, index))

    def segment(self, start: Any, count: int) -> list[Any]:
        """The elements of a vector at `count` indices from `start` on."""
        if type(self) is MutableArray and type(start) is int and 0 <= start <= self.shape[0] - count:
            return self._alive()[start : start + count]  # on floats
        return [self[start + i] for i in range(count)]

    def set(self, index: Any, value: Any) -> MutableArray:
        """The array with the element at `index` replaced by `value`; this one must not be used any more."""
        return self._store(flat_position(self.shape, index), value)

    def gather(self, position: Any) -> Any:
        """The element at a position, a whole number that may differ between lanes; clamped to the array."""
        return self._load(clamped_index(position, math.prod(self.shape)))

    def scatter(self, position: Any, value: Any) -> MutableArray:
        """The array with the element that `gather` reads replaced; this one must not be used any more."""
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
            raise ValueError("this array was changed by set(): use the array that set() returned")
        return self._elements
