"""Compacted rows: the active rows of each world, stored contiguously. `compaction` fills them and
`dual_form` solves them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from zwang.scalar import MutableArray, floor

VELOCITIES_PER_WORD = 12  # 24 bits, which single precision holds


@dataclass(frozen=True)
class CompactedRows:
    """Rows outside cones, compacted: each world has its active rows in its own arrays, so that all worlds
    loop over them together.

    The force of a row is -D y between its bounds, with y = J a - aref. J is w (B_b - B_a) with the Jacobians
    B of two links; S (6, nv) has the motion subspaces of all velocities. size: the number of all rows,
    active or not; count: the number of active ones. Arrays by compacted index, zero behind the last active
    row: numbers (size,) of the rows; row_status (size,), the stored status of each (of a row, not of a block
    as in `warm_start`); records (size, length of a `CompactedRow`). has_bounds: whether some bounds are
    other than 0 and inf. coupling_rows: J (nv,), by row number, of the rows that are not of the form w (B_b
    - B_a).
    """

    size: int
    count: Any
    numbers: MutableArray
    row_status: MutableArray
    records: MutableArray
    has_bounds: bool
    S: np.ndarray
    coupling_rows: dict[int, np.ndarray]

    def row(self, k: Any) -> CompactedRow:
        """The row at compacted index k."""
        return CompactedRow.of([self.records[k, c] for c in range(self.records.shape[1])], self.has_bounds)


class CompactedRow(NamedTuple):
    """One row of `CompactedRows`: w (6,), aref, D, lower and upper bound of the force, and the signs of the
    velocities.

    sign_words: which velocities move link b (1), link a (-1) or neither (0), as `encode_signs` packs them.
    """

    w: Any
    aref: Any
    D: Any
    lower: Any
    upper: Any
    sign_words: Sequence[Any]

    @staticmethod
    def of(record: Sequence[Any], has_bounds: bool) -> CompactedRow:
        """The row stored in a record."""
        w, (aref, D), quotients = np.array(record[:6]), record[6:8], record[8:]
        lower, upper = quotients[:2] if has_bounds else (0.0, np.inf)
        return CompactedRow(w, aref, D, lower, upper, quotients[2:] if has_bounds else quotients)

    def record(self, has_bounds: bool) -> list[Any]:
        """The record in which the row is stored."""
        return [
            *self.w,
            self.aref,
            self.D,
            *((self.lower, self.upper) if has_bounds else ()),
            *self.sign_words,
        ]


def encode_signs(signs: Sequence[float]) -> list[int]:
    """Signs packed into words, to the base 4 with one digit 1 + sign a velocity.

    A velocity that moves link b has the digit 2, one that moves link a 0, and one that moves both or neither
    1.
    """
    digits = [1 + int(sign) for sign in signs]
    sign_words = [digits[k : k + VELOCITIES_PER_WORD] for k in range(0, len(digits), VELOCITIES_PER_WORD)]
    return [sum(digit * 4**k for k, digit in enumerate(word)) for word in sign_words]


def decode_signs(sign_words: Sequence[Any], nv: int) -> list[Any]:
    """The sign 1, -1 or 0 of every velocity, from `encode_signs`."""
    signs: list[Any] = []
    for word in sign_words:
        number = min(nv - len(signs), VELOCITIES_PER_WORD)
        quotients = [word, *(floor(word * 0.25**k) for k in range(1, number))]
        signs += [x - 4 * y - 1 for x, y in pairwise(quotients)] + [quotients[-1] - 1]
    return signs
