"""Factorisations of matrices: L^T D L with the sparsity of a tree, sparse L^T D L, small dense Cholesky,
elimination.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from zwang.scalar import is_zero, sqrt


def ltdl(H: Any, parents: Sequence[int]) -> tuple[list[list[Any]], list[Any]]:
    """L and 1/D of H = L^T D L with the sparsity of a tree (Featherstone 2008, Table 6.3).

    H: symmetric positive definite (n, n). parents: parents[k] < k is the next generalised velocity towards
    the root, or -1. L is unit lower triangular, with entries L[k][i] for ancestors i of k only: there is no
    fill-in.
    """
    n = len(parents)
    A = [[H[k][i] if i <= k else 0 for i in range(n)] for k in range(n)]
    reciprocals: list[Any] = [None] * n
    for k in reversed(range(n)):
        reciprocals[k] = 1 / A[k][k]
        above = ancestors(parents, k)
        for i in above:
            a = A[k][i] * reciprocals[k]
            for j in [i, *ancestors(parents, i)]:
                A[i][j] = A[i][j] - a * A[k][j]
            A[k][i] = a
    return A, reciprocals


def ltdl_solve(L: Any, reciprocals: Any, parents: Sequence[int], b: Any) -> np.ndarray:
    """x (n,) of L^T D L x = b, with the factors of `ltdl` (Featherstone 2008, Table 6.5)."""
    return solve_unit_lower(L, parents, solve_transposed_unit_lower(L, parents, b) * np.array(reciprocals))


def solve_transposed_unit_lower(L: Any, parents: Sequence[int], b: Any) -> np.ndarray:
    """x (n,) of L^T x = b, with the L of `ltdl` (Featherstone 2008, Table 6.5)."""
    x = list(b)
    for k in reversed(range(len(x))):
        if is_zero(x[k]):
            continue
        for i in ancestors(parents, k):
            x[i] = x[i] - L[k][i] * x[k]
    return np.array(x)


def solve_unit_lower(L: Any, parents: Sequence[int], b: Any) -> np.ndarray:
    """x (n,) of L x = b, with the L of `ltdl` (Featherstone 2008, Table 6.5)."""
    x = list(b)
    for k in range(len(x)):
        for i in ancestors(parents, k):
            x[k] = x[k] - L[k][i] * x[i]
    return np.array(x)


def tree_product(H: Any, parents: Sequence[int], x: Any) -> np.ndarray:
    """H x (n,) for a symmetric matrix (n, n) with the sparsity of a tree, as `ltdl` has it."""
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


def sparse_ltdl(H: Any) -> tuple[list[list[Any]], list[Any]]:
    """L and 1/D of a symmetric positive definite H = L^T D L, as `ltdl`, with the structural sparsity of H
    itself.

    Rows are eliminated from the last to the first, and structural zeros are skipped: the mass matrix of a
    tree has no fill-in.
    """
    n = len(H)
    A = [[H[k][i] if i <= k else 0 for i in range(n)] for k in range(n)]
    reciprocals: list[Any] = [None] * n
    for k in reversed(range(n)):
        reciprocals[k] = 1 / A[k][k]
        row = A[k]
        filled = [i for i in range(k) if not is_zero(row[i])]
        for i in reversed(filled):
            a = row[i] * reciprocals[k]
            for j in filled:
                if j <= i:
                    A[i][j] = A[i][j] - a * row[j]
            row[i] = a
    return A, reciprocals


def sparse_ltdl_solve(L: Any, reciprocals: Any, b: Any) -> np.ndarray:
    """x (n,) of L^T D L x = b, with the factors of `sparse_ltdl`."""
    n = len(L)
    x = list(b)
    filled = [[i for i in range(k) if not is_zero(L[k][i])] for k in range(n)]
    for k in reversed(range(n)):
        for i in filled[k]:
            x[i] = x[i] - L[k][i] * x[k]
    for k in range(n):
        x[k] = x[k] * reciprocals[k]
        for i in filled[k]:
            x[k] = x[k] - L[k][i] * x[i]
    return np.array(x)


def updated_solver(M: Any, A: Any, D: Any) -> tuple[Callable[[Any], np.ndarray], Callable[[Any], np.ndarray]]:
    """The functions solve(b) = (M + A^T D A)^-1 b, for b (n,), and weighted_transpose(y) = A^T D y, for y
    (k,).

    M (n, n): symmetric positive definite. A (k, n). D (k,): a diagonal. The matrix is factored once, by
    `sparse_ltdl`.
    """
    columns = [[j for j, x in enumerate(row) if not is_zero(x)] for row in A]
    H = [[M[i][j] for j in range(i + 1)] for i in range(len(M))]
    for row, filled, d in zip(A, columns, D, strict=True):
        for k in filled:
            for j in (j for j in filled if j <= k):
                H[k][j] = H[k][j] + d * row[k] * row[j]
    factors = sparse_ltdl(H)

    def weighted_transpose(y: Any) -> np.ndarray:
        total: list[Any] = [0] * len(M)
        for row, filled, d, x in zip(A, columns, D, y, strict=True):
            for k in filled:
                total[k] = total[k] + row[k] * (d * x)
        return np.array(total)

    return lambda b: sparse_ltdl_solve(*factors, b), weighted_transpose


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
