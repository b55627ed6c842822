"""The Delassus matrix A = J M^-1 J^T of rows J whose number is known only at run time, and the solver of M +
J^T D J by Woodbury's identity.

    (M + J^T D J)^-1 = M^-1 - M^-1 J^T (A + D^-1)^-1 J M^-1

Its cost depends on the number of rows, not on the size of M. Source: Golub, Van Loan, Matrix Computations
(2013), Sec. 2.1.4.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from zwang.algebra.dynamic_ldlt import SIDE, solve_dynamic_ldlt
from zwang.algebra.factorization import Factors
from zwang.scalar import ActiveIndices, MutableArray, empty, fori_loop, logical_and, table, where


class DelassusMatrix(NamedTuple):
    """A = X D^-1 X^T (size, size) of n rows, with the factors M = L^T D L and X = L^-T J^T (size, nv), row by
    row; size is a multiple of the block size, and `blocks` the number of blocks with the n rows.
    """

    M: Factors
    n: Any
    blocks: Any
    X: MutableArray
    A: MutableArray

    @staticmethod
    def of(M: Factors, X: MutableArray, n: Any) -> DelassusMatrix:
        """The Delassus matrix of the first n rows of X, block by block, so that few numbers are read for many
        products.
        """
        size, nv = X.shape
        blocks = _quotient(n, size, SIDE)
        whole = [(a, b) for a in range(SIDE) for b in range(SIDE)]
        lower = [(a, b) for a, b in whole if b <= a]

        def block_row(K: Any, A: MutableArray) -> MutableArray:
            rows = [SIDE * K + c for c in range(SIDE)]
            scaled = [_row(X, k) * M.reciprocals for k in rows]

            def block(J: Any, A: MutableArray, entries: list[tuple[int, int]] = whole) -> MutableArray:
                columns = [SIDE * J + c for c in range(SIDE)]
                sums: dict[tuple[int, int], Any] = dict.fromkeys(entries, 0)
                for j in range(nv):
                    others = [X[l, j] for l in columns]
                    sums = {(a, b): x + scaled[a][j] * others[b] for (a, b), x in sums.items()}
                for (a, b), x in sums.items():
                    A = A.set((rows[a], columns[b]), x).set((columns[b], rows[a]), x)
                return A

            return block(K, fori_loop(0, K, block, A), lower)

        return DelassusMatrix(M, n, blocks, X, fori_loop(0, blocks, block_row, empty((size, size))))

    @property
    def size(self) -> int:
        """The capacity in rows."""
        return self.X.shape[0]

    def accelerations(self, f: MutableArray) -> np.ndarray:
        """M^-1 J^T f (nv,) = L^-1 D^-1 X^T f for the forces f (size,)."""
        start = np.zeros(self.X.shape[1])
        return self.M.solve_scaled(fori_loop(0, self.n, lambda k, g: g + f[k] * _row(self.X, k), start))

    def with_product(
        self, y: MutableArray, number: Any, part: Callable[[Any], tuple[Any, Any]]
    ) -> MutableArray:
        """y + A f (size,) for f with `number` entries, part(i) = (row, value)."""

        def block(b: Any, total: MutableArray) -> MutableArray:
            rows = [SIDE * b + c for c in range(SIDE)]

            def add(i: Any, sums: Any) -> Any:
                column, value = part(i)
                return [x + self.A[k, column] * value for x, k in zip(sums, rows, strict=True)]

            for k, x in zip(rows, fori_loop(0, number, add, [y[k] for k in rows]), strict=True):
                total = total.set(k, x)
            return total

        return fori_loop(0, self.blocks, block, empty(self.size))

    def update(self, D: MutableArray, chosen: MutableArray) -> DelassusFactors:
        """The solver of (A + D^-1) f = b on the chosen rows, that is of M + J^T D J with D = 0 elsewhere.

        chosen (size,): 1 for a row that is chosen in a world, else 0. The system is gathered from the rows
        that are chosen in some world; the equation of a row that is not chosen in a world is f = 0 there.
        """
        rows = ActiveIndices(chosen, self.n)
        blocks = _quotient(rows.count, self.size, SIDE)
        own = fori_loop(0, rows.count, lambda i, own: own.set(i, chosen[rows[i]]), empty(self.size))
        own = fori_loop(rows.count, SIDE * blocks, lambda i, own: own.set(i, 0.0), own)
        return DelassusFactors(self, D, rows, own, blocks)


class DelassusFactors(NamedTuple):
    """The solver of (A + D^-1) f = b on some rows. rows: their numbers. own (size,): 1 for a gathered row
    that is chosen in this world, else 0.
    """

    delassus: DelassusMatrix
    D: MutableArray
    rows: ActiveIndices
    own: MutableArray
    blocks: Any

    def solve(self, b: Callable[[Any], Any]) -> MutableArray:
        """f (size,) by gathered rows; b(k): of row k."""
        A, D, rows, own = self.delassus.A, self.D, self.rows, self.own

        def entry(i: Any, j: Any) -> Any:
            if i is j:
                k = rows[i]
                return where(own[i] > 0, A[k, k] + 1 / where(own[i] > 0, D[k], 1.0), 1.0)
            return where(logical_and(own[i] > 0, own[j] > 0), A[rows[i], rows[j]], 0.0)

        def right(i: Any) -> Any:
            return where(own[i] > 0, b(rows[i]), 0.0)

        return solve_dynamic_ldlt(self.blocks, self.delassus.size // SIDE, entry, right)

    def with_product(self, y: MutableArray, f: MutableArray) -> MutableArray:
        """y + A f (size,), for f by gathered rows."""
        return self.delassus.with_product(y, SIDE * self.blocks, lambda i: (self.rows[i], f[i]))

    def scattered(self, f: MutableArray, others: MutableArray) -> MutableArray:
        """The values f of the gathered rows at the numbers of the rows, and those of all others."""

        def scatter(i: Any, found: MutableArray) -> MutableArray:
            k = self.rows[i]
            return found.set(k, where(self.own[i] > 0, f[i], found[k]))

        return fori_loop(0, self.rows.count, scatter, others)


def _quotient(n: Any, most: int, divisor: int) -> Any:
    """n / divisor, rounded up, for an index n of at most `most`."""
    return table([-(-k // divisor) for k in range(most + 1)])[n]


def _row(X: MutableArray, k: Any) -> np.ndarray:
    """Row k of a matrix."""
    return np.array([X[k, j] for j in range(X.shape[1])])
