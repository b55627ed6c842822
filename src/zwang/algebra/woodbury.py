"""The solver of H + C^T C for rows C whose number is known only at run time, by Woodbury's identity.

    (H + C^T C)^-1 = H^-1 - H^-1 C^T (C H^-1 C^T + 1)^-1 C H^-1

Its cost grows with the number of rows, not with the fill-in that they would cause in H. C H^-1 C^T is the
Delassus matrix of the rows. Source: Golub, Van Loan, Matrix Computations (2013), Sec. 2.1.4.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from zwang.algebra.dynamic_ldlt import SIDE, solve_dynamic_ldlt
from zwang.algebra.norms import by_precision
from zwang.scalar import ActiveIndices, MutableArray, empty, fori_loop, sqrt, table, where

SINGULAR = 1e-14, 1e-6  # of a pivot, relative to its entry of W, in double and single precision


class LDLFactors(Protocol):
    """Factors H = L^T d L of a symmetric positive definite matrix."""

    @property
    def reciprocals(self) -> np.ndarray:
        """1/d (m,)."""
        ...

    def solve_transposed(self, b: Any) -> np.ndarray:
        """x (m,) of L^T x = b."""
        ...

    def solve_scaled(self, b: Any) -> np.ndarray:
        """x (n,) of d L x = b."""
        ...


class RowRoots(NamedTuple):
    """Rows of C in blocks of m: row(k, i) (n,), row i of block k. counts (size,): 1 for each of the first
    `blocks` blocks that counts in a world, else 0.
    """

    m: int
    counts: MutableArray
    blocks: Any
    row: Callable[[Any, int], np.ndarray]


class Woodbury(NamedTuple):
    """The solver of H + C^T C.

    X (size, m): the rows L^-T C_i^T of the rows i that count in some world, where size is a multiple of the
    side of blocks and `blocks` the number of blocks with rows; zeros where a row does not count in a world.
    A (size, size): the lower triangle of X d^-1 X^T + 1.
    """

    H: LDLFactors
    blocks: Any
    X: MutableArray
    A: MutableArray

    @staticmethod
    def of(H: LDLFactors, roots: Sequence[RowRoots]) -> Woodbury:
        """The solver with the rows of all these blocks that count in some world."""
        width = len(H.reciprocals)
        X = empty((padded(sum(own.m * own.counts.shape[0] for own in roots)), width))
        number: Any = 0
        for own in roots:
            X, number = _with_rows(X, number, H, own)
        blocks = _quotient(number, X.shape[0], SIDE)

        def pad(i: Any, X: MutableArray) -> MutableArray:
            for j in range(width):
                X = X.set((i, j), 0.0)
            return X

        X = fori_loop(number, SIDE * blocks, pad, X)
        return Woodbury(H, blocks, X, _delassus_matrix(X, H.reciprocals, blocks))

    def solve(self, b: Any) -> np.ndarray:
        """x (n,) of (H + J^T D J) x = b.

        With y = L^-T b, the forces are f = A^-1 X d^-1 y, and x = L^-1 d^-1 (y - X^T f).
        """
        X, size = self.X, self.X.shape[0]
        y = self.H.solve_transposed(b)
        scaled = y * self.H.reciprocals

        def right(i: Any) -> Any:
            return sum(X[i, j] * x for j, x in enumerate(scaled))

        f = solve_dynamic_ldlt(self.blocks, size // SIDE, lambda i, j: self.A[i, j], right)

        def subtract(i: Any, y: np.ndarray) -> np.ndarray:
            return np.array([x - X[i, j] * f[i] for j, x in enumerate(y)])

        return self.H.solve_scaled(fori_loop(0, SIDE * self.blocks, subtract, y))


def _with_rows(X: MutableArray, first: Any, H: LDLFactors, own: RowRoots) -> tuple[MutableArray, Any]:
    """X with the rows of blocks from row `first` on, and the number of the row after them."""
    chosen = ActiveIndices(own.counts, own.blocks)

    def enter(p: Any, X: MutableArray) -> MutableArray:
        k = chosen[p]
        for i in range(own.m):
            for j, x in enumerate(H.solve_transposed(own.row(k, i))):
                X = X.set((first + own.m * p + i, j), where(own.counts[k] > 0, x, 0.0))
        return X

    return fori_loop(0, chosen.count, enter, X), first + own.m * chosen.count


def padded(n: int) -> int:
    """n, rounded up to a multiple of the side of blocks."""
    return -(-n // SIDE) * SIDE


def upper_root(W: np.ndarray) -> dict[tuple[int, int], Any]:
    """The entries (i, j), i <= j, of the upper triangular C with W = C^T C (n, n), which may be singular.

    A pivot that is zero but for rounding has a row of zeros.
    """
    n, C = len(W), dict[tuple[int, int], Any]()
    for i in range(n):
        pivot = W[i, i] - sum(C[k, i] * C[k, i] for k in range(i))
        is_regular = pivot > by_precision(pivot, *SINGULAR) * W[i, i]
        C[i, i] = where(is_regular, sqrt(where(is_regular, pivot, 1.0)), 0.0)
        for j in range(i + 1, n):
            rest = W[i, j] - sum(C[k, i] * C[k, j] for k in range(i))
            C[i, j] = where(is_regular, rest / where(is_regular, C[i, i], 1.0), 0.0)
    return C


def _delassus_matrix(X: MutableArray, reciprocals: Any, blocks: Any) -> MutableArray:
    """The lower triangle of X d^-1 X^T + 1, block by block: few numbers are read for many products."""
    size, width = X.shape
    whole = [(a, b) for a in range(SIDE) for b in range(SIDE)]
    lower = [(a, b) for a, b in whole if b <= a]

    def block_row(K: Any, A: MutableArray) -> MutableArray:
        rows = [SIDE * K + c for c in range(SIDE)]
        scaled = [[X[k, j] * reciprocals[j] for j in range(width)] for k in rows]

        def block(J: Any, A: MutableArray, entries: list[tuple[int, int]] = whole) -> MutableArray:
            columns = [SIDE * J + c for c in range(SIDE)]
            sums: dict[tuple[int, int], Any] = {(a, b): int(entries is lower and a == b) for a, b in entries}
            for j in range(width):
                others = [X[l, j] for l in columns]
                sums = {(a, b): x + scaled[a][j] * others[b] for (a, b), x in sums.items()}
            for (a, b), x in sums.items():
                A = A.set((rows[a], columns[b]), x)
            return A

        return block(K, fori_loop(0, K, block, A), lower)

    return fori_loop(0, blocks, block_row, empty((size, size)))


def _quotient(n: Any, most: int, divisor: int) -> Any:
    """n / divisor, rounded up, for an index n of at most `most`."""
    return table([-(-k // divisor) for k in range(most + 1)])[n]
