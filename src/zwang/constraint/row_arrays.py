"""Constraint rows in arrays, one row after the other, and the active rows of each world, without gaps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from zwang.scalar import MutableArray, cond, empty, fori_loop
from zwang.scalar.compact_loop import CompactedItems

PER_ROW = ("aref", "R", "position", "velocity", "margin", "impedance", "inverse_weight", "bound", "active")
STORED = ("D", *(name for name in PER_ROW if name != "active"))  # the fields of rows in arrays
HARD = {"D": np.inf, "R": 0}  # their values where rows are hard, which are not stored
OWN = ("aref", "velocity", "bound")  # the fields in which the edges of a friction pyramid differ
WRENCH = 6  # entries of a body wrench, force and torque


class Cone(NamedTuple):
    """Rows start, start + 1, ... of one elliptic cone: the normal, then one row for each entry of
    `friction`.

    mu: the slope of the cone in the metric of R, friction[0] sqrt(R[start + 1] / R[start]).
    """

    start: int
    friction: tuple[Any, ...]
    mu: Any

    @property
    def stop(self) -> int:
        """The number of the row after the last."""
        return self.start + 1 + len(self.friction)


class RowArrays(NamedTuple):
    """The entries of the J of all rows, row by row, and the values of each field of `STORED`. Of the edges of
    a friction pyramid the J of the contact axes is stored, of which theirs are combinations, and values that
    they have in common are stored for the first one.
    """

    J: MutableArray
    values: dict[str, MutableArray]

    @staticmethod
    def of_size(rows: int, entries: int) -> RowArrays:
        """Undefined arrays for this number of rows, and of entries of J."""
        return RowArrays(empty(entries), {name: empty(rows) for name in STORED})

    def stored(self, row: Any, entry: Any, J: Any, values: Mapping[str, Any]) -> RowArrays:
        """The arrays with the values of some rows from a row on, and their J from an entry on."""
        entries, fields = self.J, dict(self.values)
        for k, x in enumerate(np.ravel(J)):
            entries = entries.set(entry + k, x)
        for name, own in values.items():
            for k, x in enumerate(own):
                fields[name] = fields[name].set(row + k, x)
        return RowArrays(entries, fields)


class ContactForm(NamedTuple):
    """What the contacts of a `CoupledRows` have in common.

    kinds (n,): of the rows of a contact. axis_count: m, of its axes. has_edges: whether its rows are the
    edges of a friction pyramid, combinations of the axes. ratio: mu of a cone over its first friction; None
    otherwise.
    """

    kinds: tuple[str, ...]
    axis_count: int
    has_edges: bool
    ratio: Any


class CoupledRows(NamedTuple):
    """The rows of contacts between moving links that each world has, one block for each contact, without
    gaps: block k is the k-th of the active contacts of a world. It reads as a `RowGroup`.

    items: their numbers among `count` contacts. blocks: the largest number of them in any lane. J (m size,
    nv): of the contact axes. values: aref (n size,), and D (n size,) or, of pyramids, (size,). friction
    ((m - 1) size,). All are defined where a world has the contact. overfull: whether this world has more
    contacts than there is memory for.
    """

    form: ContactForm
    items: CompactedItems
    blocks: Any
    J: MutableArray
    values: dict[str, MutableArray]
    friction: MutableArray
    overfull: Any

    by_wrench = False
    hard = False

    def __len__(self) -> int:
        return self.J.shape[0] // self.form.axis_count

    @property
    def count(self) -> int:
        """The number of contacts, active or not."""
        return self.items.size

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kind of each row of a block."""
        return self.form.kinds

    @property
    def size(self) -> int:
        """n, the number of rows in a block."""
        return len(self.form.kinds)

    @property
    def width(self) -> int:
        """The number of columns of J."""
        return self.J.shape[1]

    @property
    def any_active(self) -> Any:
        """Whether this world has a block."""
        return self.items.count > 0

    @property
    def active_indices(self) -> CoupledRows:
        """The blocks, with the methods of `ActiveIndices`."""
        return self

    def has(self, k: Any) -> Any:
        """Whether this world has block k."""
        return self.items.has(k)

    def for_each(self, body: Callable[[Any, Any], Any], init: Any) -> Any:
        """The carry after `carry = body(k, carry)` for each block of this world."""

        def masked(k: Any, carry: Any) -> Any:
            return cond(self.has(k), lambda carry: body(k, carry), lambda carry: carry, carry)

        return fori_loop(0, self.blocks, masked, init)

    def axes(self, k: Any) -> np.ndarray:
        """The J of the contact axes (m, nv) of block k."""
        m = range(self.form.axis_count)
        return np.array([[self.J[k * len(m) + i, j] for j in range(self.width)] for i in m])

    @property
    def edges(self) -> Callable[[Any], np.ndarray] | None:
        """The combinations (n, m) of the axes of block k that are its rows; None where these are the axes."""
        return (lambda k: pyramid_edges(self._frictions(k))) if self.form.has_edges else None

    def cone(self, k: Any) -> Cone | None:
        """The cone of block k, or None."""
        if self.form.ratio is None:
            return None
        friction = self._frictions(k)
        return Cone(0, friction, friction[0] * self.form.ratio)

    def _frictions(self, k: Any) -> tuple[Any, ...]:
        n = self.form.axis_count - 1
        return tuple(self.friction[k * n + i] for i in range(n))

    def read(self, name: str, k: Any) -> np.ndarray:
        """The values (n,) of one field of block k; those of a bound, which only friction has, are zero."""
        if name not in self.values:
            return np.zeros(self.size, int)
        if self.form.has_edges and name not in OWN:
            return np.array([self.values[name][k]] * self.size)
        return np.array(self.values[name].segment(k * self.size, self.size))

    def number(self, k: Any) -> Any:
        """The number of block k, which differs between worlds."""
        return self.items.numbers[k]

    def value_in(self, array: MutableArray, start: int, k: Any) -> Any:
        """The entry of block k in an array that has those of all `count` contacts from a start on."""
        return array.gather(start + self.items.numbers[k])

    def with_values_in(self, array: MutableArray, start: int, k: Any, values: Sequence[Any]) -> MutableArray:
        """The array with as many entries for each contact, with those of block k replaced in the worlds that
        have it.
        """
        first = start + len(values) * self.items.numbers[k]
        for i, x in enumerate(values):
            array = array.scatter(first + i, x)
        return array


def pyramid_edges(friction: Sequence[Any]) -> np.ndarray:
    """The edges (2 (m - 1), m) of a friction pyramid as combinations of the contact axes."""
    m = len(friction) + 1
    rows = [
        [1, *(s * mu if j == i else 0 for j in range(1, m))]
        for i, mu in enumerate(friction, start=1)
        for s in (1, -1)
    ]
    return np.array(rows, object)
