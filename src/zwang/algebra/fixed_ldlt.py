"""Blocked L^T D L factorisation of sparse symmetric matrices whose nonzero blocks are known beforehand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import accumulate, chain
from typing import Any

import numpy as np

from zwang.algebra.blocked_ldlt import BlockedFactors, BlockedLDLT, BlockPattern
from zwang.scalar import empty, table


class FixedLDLT(BlockedLDLT):
    """Storage, factorisation and solution of a symmetric positive definite matrix (n, n), as `BlockedLDLT`,
    without other entries in any state: which blocks are nonzero is known beforehand.
    """

    def __init__(self, n: int, entries: Iterable[tuple[int, int]]) -> None:
        super().__init__(n, entries)
        rows: list[set[int]] = [set() for _ in range(self.count)]
        for I, J in self._coupled:
            rows[I].add(J)
        for own in reversed(rows):  # the fill-in of each elimination
            for I in own:
                rows[I] |= {J for J in own if J < I}
        columns = [sorted(own) for own in rows]
        self._starts = table([0, *accumulate(map(len, columns[:-1]))])
        # a bound of the places is the sum of the largest start and the largest count
        padding = [0] * max(map(len, columns), default=0)
        self._fixed = BlockPattern(
            table([len(own) for own in columns]), table([*chain(*columns), *padding, 0])
        )

    def factors(self, entries: Mapping[tuple[int, int], Any]) -> BlockedFactors:
        """The factors of the matrix with these entries (i, j), i >= j."""
        A = self.cleared(empty(self.size), self._fixed)
        for (i, j), value in entries.items():
            A = A.set(self.place(i, j), value)
        return self.factor(A, self._fixed)

    def solve_transposed(self, factors: BlockedFactors, b: Any) -> np.ndarray:
        """x (n,) of L^T x = b."""
        return self._vector_of(self._over_rows_backward(factors, self._padded_vector(b)))

    def solve_scaled(self, factors: BlockedFactors, b: Any) -> np.ndarray:
        """x (n,) of D L x = b (n,)."""
        return self._vector_of(self._over_rows_forward(factors, self._padded_vector(b)))

    def reciprocals(self, factors: BlockedFactors) -> np.ndarray:
        """1/D (n,)."""
        return self._vector_of(factors.reciprocals)

    def _column(self, pattern: BlockPattern, K: Any, t: Any) -> Any:
        return pattern.columns[self._starts[K] + t]

    def _row_count(self, pattern: BlockPattern, K: Any) -> Any:
        return pattern.counts[K]
