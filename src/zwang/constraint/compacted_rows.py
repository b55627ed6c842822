"""Rows as lists of those that act, each world its own: the record that `listing` fills and `solve.listed` reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from zwang.scalar import MutableArray, floor

SPEEDS_A_WORD = 12  # 24 bits, which single precision holds


@dataclass(frozen=True)
class CompactedRows:
    """Rows outside cones, for each world a list of those that act in it, so that all worlds go through theirs together.

    A row's force is -D y between its bounds, y = J a - aref; J is w (B_b - B_a), of the screws of two links, S (6, nv) those of the speeds.
    size: of all rows that there are; count: of those that act. By their place in the list, and zeros behind the last: numbers (size,) of
    the rows; codes (size,), what is remembered of each (of a row, not of a group as in `solve.memory`); records (size, numbers of a
    `CompactedRow`). bounded: whether bounds are other than 0 and inf. others: J (nv,), by number, of the rows for which no w gives it.
    """

    size: int
    count: Any
    numbers: MutableArray
    codes: MutableArray
    records: MutableArray
    bounded: bool
    S: np.ndarray
    others: dict[int, np.ndarray]

    def row(self, k: Any) -> CompactedRow:
        """The row at place k."""
        return CompactedRow.of([self.records[k, c] for c in range(self.records.shape[1])], self.bounded)


class CompactedRow(NamedTuple):
    """A row of `Listed`: w (6,), aref, D, its bounds, and which speeds move b or a, as `encode_signs` puts it."""

    w: Any
    aref: Any
    D: Any
    low: Any
    high: Any
    words: Sequence[Any]

    @staticmethod
    def of(record: Sequence[Any], bounded: bool) -> CompactedRow:
        """From the table."""
        w, (aref, D), rest = np.array(record[:6]), record[6:8], record[8:]
        low, high = rest[:2] if bounded else (0.0, np.inf)
        return CompactedRow(w, aref, D, low, high, rest[2:] if bounded else rest)

    def record(self, bounded: bool) -> list[Any]:
        """For the table."""
        return [*self.w, self.aref, self.D, *((self.low, self.high) if bounded else ()), *self.words]


def encode_signs(signs: Sequence[float]) -> list[int]:
    """Words of digits to the base 4, one a speed: 2 where it moves b, 0 where it moves a, 1 where both or none."""
    digits = [1 + int(sign) for sign in signs]
    words = [digits[k : k + SPEEDS_A_WORD] for k in range(0, len(digits), SPEEDS_A_WORD)]
    return [sum(digit * 4**k for k, digit in enumerate(word)) for word in words]


def decode_signs(words: Sequence[Any], nv: int) -> list[Any]:
    """1, -1 or 0 of every speed, from `encode_signs`."""
    signs: list[Any] = []
    for word in words:
        number = min(nv - len(signs), SPEEDS_A_WORD)
        rest = [word, *(floor(word * 0.25**k) for k in range(1, number))]
        signs += [x - 4 * y - 1 for x, y in pairwise(rest)] + [rest[-1] - 1]
    return signs
