"""Symmetric positive definite matrices M + J^T D J: storage, and solution by the factorisation that suits the
size.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np

from zwang.algebra.blocked_ldlt import BlockedLDLT
from zwang.algebra.factorization import sparse_ltdl, sparse_ltdl_solve
from zwang.scalar import MutableArray, cond, zeros

# up to this number of multiplications the factorisation is unrolled entry by entry
UNROLLED_MULTIPLICATIONS = 10_000
FILL_IN_RATIO = 4  # fill-in is tested for where it multiplies the cost of the factorisation by this

Entries = Iterable[tuple[int, int]]


class UpdatedMatrix:
    """Matrices (n, n) of one sparsity, as arrays of their lower triangle.

    entries: the positions (i, j), i >= j, that may be nonzero. fill_in: further ones, which are nonzero only
    where an update says so. position: the place of each in the array, of length `size`.
    """

    def __init__(self, n: int, entries: Entries, fill_in: Entries) -> None:
        self.n, self.entries = n, set(entries)
        self.filled = self.entries | set(fill_in)
        large = factorization_cost(self.filled) > UNROLLED_MULTIPLICATIONS
        self._blocked = BlockedLDLT(n, self.filled) if large else None
        if self._blocked is None:
            self.size, self.position = len(self.filled), {e: k for k, e in enumerate(sorted(self.filled))}
        else:
            self.size = self._blocked.size
            self.position = {e: self._blocked.place(*e) for e in self.filled}

    def array(self, M: Any, more: int = 0) -> MutableArray:
        """The array of M, followed by this number of zeros."""
        H = zeros(self.size + more)
        for (i, j), k in self.position.items():
            H = H.set(k, M[i][j])
        return H

    def solve(self, H: MutableArray, b: Any, is_filled: Any = True) -> np.ndarray:
        """x (n,) of H x = b; is_filled: whether an entry of the fill-in may be nonzero."""
        ratio = factorization_cost(self.filled) / max(factorization_cost(self.entries), 1.0)
        if ratio < FILL_IN_RATIO:
            return self._solve_filled(H, b)
        return cond(
            is_filled, lambda H: self._solve_filled(H, b), lambda H: self._solve_sparse(self.entries, H, b), H
        )

    def _solve_filled(self, H: MutableArray, b: Any) -> np.ndarray:
        if self._blocked is None:
            return self._solve_sparse(self.filled, H, b)
        return self._blocked.solve(self._blocked.factor(H), b)

    def _solve_sparse(self, entries: set[tuple[int, int]], H: MutableArray, b: Any) -> np.ndarray:
        n = range(self.n)
        lower = [[H[self.position[i, j]] if (i, j) in entries else 0 for j in range(i + 1)] for i in n]
        return sparse_ltdl_solve(*sparse_ltdl(lower), b)


def factorization_cost(entries: Entries) -> float:
    """Approximate number of multiplications that factorise a matrix with these entries."""
    return sum(n * n / 2 for n in Counter(i for i, _ in entries).values())
