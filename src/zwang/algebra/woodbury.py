"""The solver of H + C^T C for rows C whose number is known only at run time, from the factors H = L^T d L.

With the rows X = C L^-1 it is, by Woodbury's identity or directly,

    (H + C^T C)^-1 = L^-1 (d^-1 - d^-1 X^T (X d^-1 X^T + 1)^-1 X d^-1) L^-T    few rows
                   = L^-1 (d + X^T X)^-1 L^-T                                  many rows

Each world uses the form that suits its number of rows, so that the cost does not grow with the fill-in that
the rows would cause in H, nor with the cube of their number. X d^-1 X^T is the Delassus matrix of the rows.
Source: Golub, Van Loan, Matrix Computations (2013), Sec. 2.1.4.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from zwang.algebra.dynamic_ldlt import SIDE, solve_dynamic_ldlt
from zwang.algebra.norms import by_precision
from zwang.scalar import (
    ActiveIndices,
    MutableArray,
    cond,
    empty,
    fori_loop,
    lane_maximum,
    maximum,
    minimum,
    sqrt,
    table,
    where,
)

SINGULAR = 1e-14, 1e-6  # of a pivot, relative to its entry of W, in double and single precision
FEW = 2  # rows of a world, relative to the order of H: neighbours that differ take the time of both forms


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
    """Rows of C in blocks of m: row(k, i) (n,), row i of block k. number: how many blocks a world has, of the
    first `blocks`; counts (size,): 1 for each of these that counts in it, else 0.
    """

    m: int
    counts: MutableArray
    number: Any
    blocks: Any
    row: Callable[[Any, int], np.ndarray]

    @property
    def size(self) -> int:
        """The largest number of rows."""
        return self.m * self.counts.shape[0]


class Woodbury(NamedTuple):
    """The solver of H + C^T C.

    X (rows, m): the first rows L^-T C_i^T, all of them in worlds with few rows; zeros where a row does not
    count in a world. A (size, size): the lower triangle of X d^-1 X^T + 1 or, in worlds with many rows, of
    d + X^T X, and then of ones; order: the number of its blocks of rows. has_many: whether the world has
    many rows.
    """

    H: LDLFactors
    X: MutableArray
    A: MutableArray
    order: Any
    has_many: Any

    @staticmethod
    def of(H: LDLFactors, roots: Sequence[RowRoots]) -> Woodbury:
        """The solver with the rows of all these blocks that count in some world."""
        width = len(H.reciprocals)
        found = [_counting_rows(H, own) for own in roots]
        limits, firsts, has_many = [own.size for own in roots], [count for _, count in found], False
        if sum(limits) > FEW * width:
            has_many = sum(own.m * own.number for own in roots) > 1.0 * FEW * width
            limits = [min(own.size, FEW * width) for own in roots]
            few = [where(has_many, 0.0, own.m * own.number) for own in roots]
            firsts = [
                lane_maximum(minimum(x, 1.0 * count), limit)
                for x, count, limit in zip(few, firsts, limits, strict=True)
            ]
        size = padded(max(sum(limits), width))
        X, count, number = _joined(found, firsts, size)
        order, of_many = _quotient(number, sum(limits), SIDE), where(has_many, padded(width) / SIDE, 0.0)
        if has_many is not False:
            order = lane_maximum(maximum(1.0 * order, of_many), size // SIDE)
        X = _padded_rows(X, count, order)
        if len(found) == 1:
            found = [(X, count)]

        def with_squares(A: MutableArray) -> MutableArray:
            A = _cleared(A, has_many, order)
            for j, x in enumerate(H.reciprocals):
                A = A.set((j, j), where(has_many, 1 / x, A[j, j]))
            for rows, count in found:
                A = _with_squares(A, rows, count, has_many)
            return A

        A = delassus_matrix(X, H.reciprocals, order, size, SIDE, lambda _: 1)
        return Woodbury(H, X, cond(has_many, with_squares, lambda A: A, A), order, has_many)

    def solve(self, b: Any) -> np.ndarray:
        """x (n,) of (H + C^T C) x = b.

        With y = L^-T b, the forces are f = A^-1 X d^-1 y, and x = L^-1 d^-1 (y - X^T f); or x = L^-1 A^-1 y.
        """
        X, d_inverse, size = self.X, self.H.reciprocals, self.A.shape[0]
        y = self.H.solve_transposed(b)
        scaled, own = y * d_inverse, empty(size)
        if self.has_many is not False:

            def enter(own: MutableArray) -> MutableArray:
                for j in range(size):
                    own = own.set(j, y[j] if j < len(y) else 0.0)
                return own

            own = cond(self.has_many, enter, lambda own: own, own)

        def right(i: Any) -> Any:
            found = sum(X[i, j] * x for j, x in enumerate(scaled))
            return found if self.has_many is False else where(self.has_many, own[i], found)

        f = solve_dynamic_ldlt(self.order, size // SIDE, lambda i, j: self.A[i, j], right)

        def subtract(i: Any, y: np.ndarray) -> np.ndarray:
            return np.array([x - X[i, j] * f[i] for j, x in enumerate(y)])

        def of_many(rest: np.ndarray) -> np.ndarray:
            return np.array([where(self.has_many, f[j] / d_inverse[j], x) for j, x in enumerate(rest)])

        rest = fori_loop(0, SIDE * self.order, subtract, y)
        return self.H.solve_scaled(cond(self.has_many, of_many, lambda rest: rest, rest))


def _counting_rows(H: LDLFactors, own: RowRoots) -> tuple[MutableArray, Any]:
    """The rows L^-T C_i^T of the blocks that count in some world, zeros in the others, with columns and space
    for whole blocks; and how many these are.
    """
    chosen, width = ActiveIndices(own.counts, own.blocks), len(H.reciprocals)

    def enter(p: Any, X: MutableArray) -> MutableArray:
        k = chosen[p]
        for i in range(own.m):
            row = H.solve_transposed(own.row(k, i))
            for j in range(X.shape[1]):
                x = where(own.counts[k] > 0, row[j], 0.0) if j < width else 0.0
                X = X.set((own.m * p + i, j), x)
        return X

    X = empty((padded(max(own.size, width)), padded(width)))
    return fori_loop(0, chosen.count, enter, X), own.m * chosen.count


def _joined(
    found: Sequence[tuple[MutableArray, Any]], firsts: Sequence[Any], size: int
) -> tuple[MutableArray, Any, Any]:
    """The first rows of all groups in one array, the number of rows that are defined in it, and the number of
    these first rows, of which there are at most `size`.
    """
    if len(found) == 1:
        return *found[0], firsts[0]
    X, number = empty((size, found[0][0].shape[1])), 0
    for (rows, _), first in zip(found, firsts, strict=True):

        def copy(i: Any, X: MutableArray, rows: MutableArray = rows, start: Any = number) -> MutableArray:
            for j in range(X.shape[1]):
                X = X.set((start + i, j), rows[i, j])
            return X

        X, number = fori_loop(0, first, copy, X), number + first
    return X, number, number


def _padded_rows(X: MutableArray, count: Any, order: Any) -> MutableArray:
    """X with rows of zeros from row `count` on."""

    def pad(i: Any, X: MutableArray) -> MutableArray:
        for j in range(X.shape[1]):
            X = X.set((i, j), 0.0)
        return X

    return fori_loop(count, SIDE * order, pad, X)


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


def delassus_matrix(
    X: MutableArray,
    d_inverse: Any,
    order: Any,
    size: int,
    side: int,
    diagonal: Callable[[Any], Any],
    coupled: Callable[[Any, Any], Any] | None = None,
) -> MutableArray:
    """The lower triangle of X d^-1 X^T + diag(diagonal(i)), in an array (size, size), for `order` blocks of
    `side` rows: few numbers are read for many products.

    coupled(K, J): whether the rows of two blocks may have columns in common; by default all have.
    """
    width = len(d_inverse)
    whole = [(a, b) for a in range(side) for b in range(side)]
    lower = [(a, b) for a, b in whole if b <= a]

    def block_row(K: Any, A: MutableArray) -> MutableArray:
        rows = [side * K + c for c in range(side)]
        scaled = [[X[k, j] * d_inverse[j] for j in range(width)] for k in rows]

        def block(J: Any, A: MutableArray, entries: list[tuple[int, int]] = whole) -> MutableArray:
            columns = [side * J + c for c in range(side)]
            own = [diagonal(rows[a]) if entries is lower and a == b else 0 for a, b in entries]

            def products() -> list[Any]:
                sums = own
                for j in range(width):
                    others = [X[l, j] for l in columns]
                    parts = zip(sums, entries, strict=True)
                    sums = [x + scaled[a][j] * others[b] for x, (a, b) in parts]
                return sums

            if coupled is None or entries is lower:
                sums = products()
            else:
                sums = cond(coupled(K, J), products, lambda: [0.0 for _ in entries])
            for (a, b), x in zip(entries, sums, strict=True):
                A = A.set((rows[a], columns[b]), x)
            return A

        return block(K, fori_loop(0, K, block, A), lower)

    return fori_loop(0, order, block_row, empty((size, size)))


def _cleared(A: MutableArray, condition: Any, order: Any) -> MutableArray:
    """A with the lower triangle of the unit matrix in worlds for which the condition holds."""

    def row(i: Any, A: MutableArray) -> MutableArray:
        A = fori_loop(0, i, lambda j, A: A.set((i, j), where(condition, 0.0, A[i, j])), A)
        return A.set((i, i), where(condition, 1.0, A[i, i]))

    return fori_loop(0, SIDE * order, row, A)


def _with_squares(A: MutableArray, Y: MutableArray, count: Any, condition: Any) -> MutableArray:
    """A with the lower triangle of Y^T Y, of `count` rows, added block by block in worlds for which the
    condition holds.
    """

    def block_row(K: Any, A: MutableArray) -> MutableArray:
        def block(J: Any, A: MutableArray) -> MutableArray:
            rows, columns = ([SIDE * B + c for c in range(SIDE)] for B in (K, J))
            entries = [(k, l) for k in rows for l in columns]

            def add(i: Any, sums: list[Any]) -> list[Any]:
                left, right = [Y[i, k] for k in rows], [Y[i, l] for l in columns]
                products = [x * y for x in left for y in right]
                return [x + y for x, y in zip(sums, products, strict=True)]

            sums = fori_loop(0, count, add, [0.0 for _ in entries])
            for (k, l), x in zip(entries, sums, strict=True):
                A = A.set((k, l), A[k, l] + where(condition, x, 0.0))
            return A

        return fori_loop(0, K + 1, block, A)

    return fori_loop(0, Y.shape[1] // SIDE, block_row, A, unroll=False)


def _quotient(n: Any, most: int, divisor: int) -> Any:
    """n / divisor, rounded up, for an index n of at most `most`."""
    return table([-(-k // divisor) for k in range(most + 1)])[n]
