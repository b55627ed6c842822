"""Constraint rows in arrays, one row after the other, and the rows of each world there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from zwang.scalar import MutableArray, empty, equal, is_zero, logical_and, where
from zwang.scalar.compact_loop import CompactedItems, unpack_signs

PER_ROW = ("aref", "R", "position", "velocity", "margin", "impedance", "inverse_weight", "bound", "active")
STORED = ("D", *(name for name in PER_ROW if name != "active"))  # the fields of rows in arrays
HARD = {"D": np.inf, "R": 0}  # their values where rows are hard, which are not stored
WRENCH = 6  # entries of a body wrench, force and torque


class RowArrays(NamedTuple):
    """The entries of the J of all rows, row by row, and the values of each field of `STORED`."""

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


class WorldRows(NamedTuple):
    """The active rows of each world; arrays over all rows are read at their numbers.

    items: the rows. arrays: of every row w (6,), aref and D. J is w (B_b - B_a) with the Jacobians B of two
    links. status (count,): in a similar problem. signs (count, words): which velocities move link b (1), link
    a (-1) or neither (0), packed. bounds (rows outside groups, 2): of the forces, None where all are 0 and
    inf. S (6, nv): motion subspaces. couplings: J (nv,), by number, of the rows that are of another form.
    """

    items: CompactedItems
    arrays: RowArrays
    status: MutableArray
    signs: MutableArray
    bounds: MutableArray | None
    S: np.ndarray
    couplings: dict[int, np.ndarray]

    def value(self, name: str, k: Any) -> Any:
        """A field of the row at index k."""
        return self.items.read(self.arrays.values[name], k, 1)[0]

    def known_status(self, k: Any) -> Any:
        """The status of the row at index k in the similar problem; 0 where it is not known."""
        return self.items.read(self.status, k, 1)[0]

    def force_bounds(self, k: Any) -> tuple[Any, Any]:
        """The lower and the upper bound of the force of the row at index k."""
        if self.bounds is None:
            return 0.0, np.inf
        in_group = self.items.numbers[k] >= self.bounds.shape[0]
        lower, upper = self.items.read(self.bounds, k, 2)
        return where(in_group, 0.0, lower), where(in_group, np.inf, upper)

    def jacobian(self, k: Any) -> np.ndarray:
        """J (nv,) of the row at index k."""
        w = np.array(self.items.read(self.arrays.J, k, WRENCH))
        words = self.items.read(self.signs, k, self.signs.shape[1])
        J = np.array(unpack_signs(words, self.S.shape[1])) * (w @ self.S)
        for i, other in self.couplings.items():
            is_this_row = logical_and(self.items.has(k), equal(self.items.numbers[k], i))
            both = zip(J, other, strict=True)
            J = np.array([x if is_zero(o) else where(is_this_row, o, x) for x, o in both])
        return J
