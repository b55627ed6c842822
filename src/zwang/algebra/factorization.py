"""Factorisations of matrices: sparse L^T D L, entry by entry or in blocks, small dense Cholesky,
elimination.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from zwang.algebra.blocked_ldlt import BlockedFactors
from zwang.algebra.fixed_ldlt import FixedLDLT
from zwang.scalar import MutableArray, empty, fori_loop, is_zero, maximum, sqrt
from zwang.scalar.stacked_pytree import StackedPytree

UNROLLED_MULTIPLICATIONS = 5_000  # up to which a factorisation is unrolled entry by entry
UNROLLED_WITH_ROWS = 1_000  # the same of a matrix to which rows are added


class UnrolledFactors(NamedTuple):
    """The factors of a symmetric positive definite matrix H = L^T D L (n, n), see `factor`.

    L is unit lower triangular: its row k has entries in columns[k], and ones on the diagonal, which are not
    stored. reciprocals (n,): 1/D.
    """

    H: Any
    columns: Sequence[Sequence[int]]
    L: Any
    reciprocals: np.ndarray

    def pivots(self) -> np.ndarray:
        """D (n,)."""
        return 1 / self.reciprocals

    def solve(self, b: Any) -> np.ndarray:
        """H^-1 b (n,) = L^-1 D^-1 L^-T b (Featherstone 2008, Table 6.5)."""
        return self.solve_scaled(self.solve_transposed(b))

    def solve_rows(self, B: MutableArray) -> MutableArray:
        """The array B (k, n), with H^-1 b in place of each row b."""
        return fori_loop(0, B.shape[0], lambda k, B: _with_row_solved(self, B, k), B)

    def inverse_diagonal(self, J: Any) -> list[Any]:
        """The diagonal (k,) of J H^-1 J^T, for J (k, n)."""
        columns = (zip(self.solve_transposed(row), self.reciprocals, strict=True) for row in J)
        return [sum((x * x * d for x, d in own if not is_zero(x)), start=0) for own in columns]

    def update(self, J: Any, D: Any) -> Factors:
        """The factors of H + J^T D J, for J (k, n) and the diagonal D (k,)."""
        return factor(_with_rows(self.H, J, D), most=UNROLLED_WITH_ROWS)

    def solve_transposed(self, b: Any) -> np.ndarray:
        """x (n,) of L^T x = b: the vector whose square x^T D^-1 x is b^T H^-1 b."""
        x = list(b)
        for k in reversed(range(len(x))):
            if is_zero(x[k]):
                continue
            for i in self.columns[k]:
                x[i] = x[i] - self.L[k][i] * x[k]
        return np.array(x)

    def solve_scaled(self, b: Any) -> np.ndarray:
        """x (n,) of D L x = b."""
        x = list(b * self.reciprocals)
        for k in range(len(x)):
            for i in self.columns[k]:
                x[k] = x[k] - self.L[k][i] * x[i]
        return np.array(x)


class BlockFactors(NamedTuple):
    """The factors of a large matrix H (n, n), as `UnrolledFactors`, in loops over blocks.

    The compiled program does not grow with the cube of the length of a chain of bodies.
    """

    H: Any
    matrix: FixedLDLT
    factors: BlockedFactors

    @staticmethod
    def of(H: Any, columns: Sequence[Sequence[int]]) -> BlockFactors:
        """The factors of H, in whose row k the columns[k] left of the diagonal are not zero."""
        entries = {(k, i): H[k][i] for k, own in enumerate(columns) for i in (*own, k)}
        matrix = FixedLDLT(len(H), entries)
        return BlockFactors(H, matrix, matrix.factors(entries))

    @property
    def reciprocals(self) -> np.ndarray:
        """1/D (n,)."""
        return self.matrix.reciprocals(self.factors)

    def pivots(self) -> np.ndarray:
        """D (n,)."""
        return 1 / self.reciprocals

    def solve(self, b: Any) -> np.ndarray:
        """H^-1 b (n,)."""
        return self.matrix.solve(self.factors, b)

    def solve_rows(self, B: MutableArray) -> MutableArray:
        """The array B (k, n), with H^-1 b in place of each row b."""
        return fori_loop(0, B.shape[0], lambda k, B: _with_row_solved(self, B, k), B, unroll=False)

    def inverse_diagonal(self, J: Any) -> list[Any]:
        """The diagonal (k,) of J H^-1 J^T, for J (k, n)."""
        rows, reciprocals = StackedPytree([tuple(row) for row in J]), self.reciprocals

        def visit(k: Any, found: MutableArray) -> MutableArray:
            x = self.solve_transposed(np.array(rows[k]))
            return found.set(k, (x * x) @ reciprocals)

        found = fori_loop(0, len(J), visit, empty(len(J)))
        return [found[k] for k in range(len(J))]

    def update(self, J: Any, D: Any) -> Factors:
        """The factors of H + J^T D J, for J (k, n) and the diagonal D (k,)."""
        return factor(_with_rows(self.H, J, D), most=UNROLLED_WITH_ROWS)

    def solve_transposed(self, b: Any) -> np.ndarray:
        """x (n,) of L^T x = b."""
        return self.matrix.solve_transposed(self.factors, b)

    def solve_scaled(self, b: Any) -> np.ndarray:
        """x (n,) of D L x = b."""
        return self.matrix.solve_scaled(self.factors, b)


Factors = UnrolledFactors | BlockFactors


def _with_row_solved(factors: Factors, B: MutableArray, k: Any) -> MutableArray:
    """The array B with H^-1 b in place of its row k, b."""
    x = factors.solve(np.array([B[k, j] for j in range(B.shape[1])]))
    for j in range(B.shape[1]):
        B = B.set((k, j), x[j] * 1.0)
    return B


def factor(
    H: Any,
    parents: Sequence[int] | None = None,
    smallest_pivots: Sequence[Any] | None = None,
    most: int = UNROLLED_MULTIPLICATIONS,
) -> Factors:
    """The factors of a symmetric positive definite matrix H (n, n), whose lower triangle is read, with its
    sparsity (Featherstone 2008, Table 6.3).

    Rows are eliminated from the last to the first. parents: H has the sparsity of a tree, where parents[k] <
    k is the next generalised velocity towards the root, or -1; then there is no fill-in. By default the
    structural zeros of H are passed over, but for those that fill in. smallest_pivots (n,): take the place of
    smaller entries of D. With these, or up to `most` multiplications, H is factorised entry by entry,
    otherwise in blocks.
    """
    n = len(H)
    columns = _with_fill_in(H) if parents is None else [ancestors(parents, k) for k in range(n)]
    if smallest_pivots is None and sum(len(own) ** 2 / 2 for own in columns) > most:
        return BlockFactors.of(H, columns)
    A = [[H[k][i] if i <= k else 0 for i in range(n)] for k in range(n)]
    reciprocals: list[Any] = [None] * n
    for k in reversed(range(n)):
        if smallest_pivots is not None:
            A[k][k] = maximum(smallest_pivots[k], A[k][k])
        # what moves without inertia has an infinite acceleration, also where its zero is a constant
        reciprocals[k] = math.inf if is_zero(A[k][k]) else 1 / A[k][k]
        for i in sorted(columns[k], reverse=True):
            a = A[k][i] * reciprocals[k]
            for j in (j for j in columns[k] if j <= i):
                A[i][j] = A[i][j] - a * A[k][j]
            A[k][i] = a
    return UnrolledFactors(H, columns, A, np.array(reciprocals))


def _with_rows(H: Any, J: Any, D: Any) -> list[list[Any]]:
    """The lower triangle of H + J^T D J."""
    found = [[H[i][j] for j in range(i + 1)] for i in range(len(H))]
    for row, filled, d in zip(J, _filled_columns(J), D, strict=True):
        for k in filled:
            for j in (j for j in filled if j <= k):
                found[k][j] = found[k][j] + d * row[k] * row[j]
    return found


def _with_fill_in(H: Any) -> list[list[int]]:
    """The columns left of the diagonal of each row of L that are not zero, from the structural zeros of H."""
    columns = [{i for i in range(k) if not is_zero(H[k][i])} for k in range(len(H))]
    for own in reversed(columns):
        for i in own:
            columns[i] |= {j for j in own if j < i}
    return [sorted(own) for own in columns]


def weighted_transpose(J: Any, D: Any, y: Any) -> np.ndarray:
    """J^T D y (n,), for J (k, n), the diagonal D (k,) and y (k,)."""
    total: list[Any] = [0] * np.shape(J)[1]
    for row, filled, d, x in zip(J, _filled_columns(J), D, y, strict=True):
        for k in filled:
            total[k] = total[k] + row[k] * (d * x)
    return np.array(total)


def _filled_columns(J: Any) -> list[list[int]]:
    """The columns of each row that are not structurally zero."""
    return [[j for j, x in enumerate(row) if not is_zero(x)] for row in J]


def tree_product(H: Any, parents: Sequence[int], x: Any) -> np.ndarray:
    """H x (n,) for a symmetric matrix (n, n) with the sparsity of a tree, as `factor` has it."""
    columns: list[list[int]] = [[*reversed(ancestors(parents, i)), i] for i in range(len(parents))]
    for i in range(len(parents)):
        for j in ancestors(parents, i):
            columns[j].append(i)
    return np.array([sum((H[i][j] * x[j] for j in own), start=0) for i, own in enumerate(columns)])


def ancestors(parents: Sequence[int], k: int) -> list[int]:
    """The ancestors of k, from its parent to the root."""
    found = []
    while (k := parents[k]) >= 0:
        found.append(k)
    return found


def cholesky(A: Any) -> list[list[Any]]:
    """Cholesky factor L of a small dense symmetric positive definite A = L L^T, with reciprocals on its
    diagonal.
    """
    n = len(A)
    L: list[list[Any]] = [[0] * n for _ in range(n)]
    for j in range(n):
        d = A[j][j] - sum((L[j][k] * L[j][k] for k in range(j)), start=0)
        L[j][j] = 1 / sqrt(d)
        for i in range(j + 1, n):
            L[i][j] = (A[i][j] - sum((L[i][k] * L[j][k] for k in range(j)), start=0)) * L[j][j]
    return L


def cholesky_solve(L: Any, b: Any) -> np.ndarray:
    """x (n,) of L L^T x = b, with the L of `cholesky`."""
    n = len(L)
    x = list(b)
    for i in range(n):
        x[i] = (x[i] - sum((L[i][k] * x[k] for k in range(i)), start=0)) * L[i][i]
    for i in reversed(range(n)):
        x[i] = (x[i] - sum((L[k][i] * x[k] for k in range(i + 1, n)), start=0)) * L[i][i]
    return np.array(x)


def gaussian_elimination(A: Any, b: Any) -> np.ndarray:
    """x (n,) of A x = b by Gaussian elimination without pivoting; structural zeros are skipped.

    Matrices whose symmetric part is positive definite need no pivoting. Source: Golub, Van Loan, Matrix
    Computations (2013), Sec. 4.1.4.
    """
    n = len(b)
    rows = [[*A[k], b[k]] for k in range(n)]
    for k in range(n):
        for i in range(k + 1, n):
            if is_zero(rows[i][k]):
                continue
            factor = rows[i][k] / rows[k][k]
            for j in range(k + 1, n + 1):
                if not is_zero(rows[k][j]):
                    rows[i][j] = rows[i][j] - factor * rows[k][j]
    x: list[Any] = [0] * n
    for k in reversed(range(n)):
        rest = sum((rows[k][j] * x[j] for j in range(k + 1, n) if not is_zero(rows[k][j])), start=0)
        x[k] = (rows[k][n] - rest) / rows[k][k]
    return np.array(x)
