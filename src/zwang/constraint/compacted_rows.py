"""Compacted rows: the active rows of each world, stored contiguously. `compaction` fills them and
`dual_form` solves them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from zwang.scalar import equal, is_zero, logical_and, where
from zwang.scalar.compact_loop import CompactedRecords, unpack_signs


@dataclass(frozen=True)
class CompactedRows:
    """Rows outside cones, compacted: each world has its active rows in its own arrays, so that all worlds
    loop over them together.

    The force of a row is -D y between its bounds, with y = J a - aref. J is w (B_b - B_a) with the Jacobians
    B of two links; S (6, nv) has the motion subspaces of all velocities. rows: the records of `CompactedRow`.
    has_bounds: whether some bounds are other than 0 and inf. coupling_rows: J (nv,), by row number, of the
    rows that are not of the form w (B_b - B_a).
    """

    rows: CompactedRecords
    has_bounds: bool
    S: np.ndarray
    coupling_rows: dict[int, np.ndarray]

    def row(self, k: Any) -> CompactedRow:
        """The row at compacted index k."""
        return CompactedRow.of(self.rows[k], self.has_bounds)

    def jacobian(self, k: Any) -> np.ndarray:
        """J (nv,) of the row at compacted index k."""
        row, nv = self.row(k), self.S.shape[1]
        J = np.array(unpack_signs(row.packed_signs, nv)) * (row.w @ self.S)
        for i, other in self.coupling_rows.items():
            is_this_row = logical_and(1.0 * k < self.rows.count, equal(self.rows.numbers[k], i))
            both = zip(J, other, strict=True)
            J = np.array([x if is_zero(o) else where(is_this_row, o, x) for x, o in both])
        return J


class CompactedRow(NamedTuple):
    """One row of `CompactedRows`: w (6,), aref, D, lower and upper bound of the force.

    status: the stored one of this row (of a row, not of a block as in `warm_start`). packed_signs: which
    velocities move link b (1), link a (-1) or neither (0).
    """

    w: Any
    aref: Any
    D: Any
    status: Any
    lower: Any
    upper: Any
    packed_signs: Sequence[Any]

    @staticmethod
    def of(record: Sequence[Any], has_bounds: bool) -> CompactedRow:
        """The row stored in a record."""
        w, (aref, D, status), rest = np.array(record[:6]), record[6:9], record[9:]
        lower, upper = rest[:2] if has_bounds else (0.0, np.inf)
        return CompactedRow(w, aref, D, status, lower, upper, rest[2:] if has_bounds else rest)

    def record(self, has_bounds: bool) -> list[Any]:
        """The record in which the row is stored."""
        return [
            *self.w,
            self.aref,
            self.D,
            self.status,
            *((self.lower, self.upper) if has_bounds else ()),
            *self.packed_signs,
        ]
