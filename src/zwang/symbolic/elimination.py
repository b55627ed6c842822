"""Linear equations over a generic scalar, by elimination that prefers numeric pivots and parameters."""

from __future__ import annotations

from typing import Any

import numpy as np

from zwang.errors import DescriptionError
from zwang.scalar import are_constant
from zwang.symbolic.cancellation import cancelled_entries
from zwang.symbolic.numeric_probe import RANK
from zwang.symbolic.polynomial import Polynomial

SINGULAR = "the independent velocities are linearly dependent in every configuration; choose others"


def solve_exactly(K: np.ndarray, right: np.ndarray, near: np.ndarray) -> np.ndarray:
    """X of K X = right over a generic scalar.

    near: K (n, n) at numbers in general position, whose rows and columns may be scaled; a pivot that vanishes
    there is not taken. For a positive definite K it may be the identity: the pivots are on the diagonal.

    Pivots that are numbers or products of parameters come first. The remaining equations are solved by
    Cramer's rule if they contain polynomials, and otherwise by elimination in the order of complete pivoting
    in numbers. Raises DescriptionError if the remaining determinant vanishes identically, or at the numbers.
    """
    K, X = np.array(K, dtype=object), cancelled_entries(np.array(right, dtype=object))
    n = len(K)
    numbers = np.array(near, dtype=float)  # what remains to be eliminated, in numbers
    rows, columns = set(range(n)), set(range(n))
    row_of: dict[int, int] = {}  # the pivot row of each eliminated column
    while (found := _simple_pivot(K, numbers, rows, columns)) is not None:
        _eliminate(K, X, *found, n)
        numbers = _remainder(numbers, *found)
        row_of[found[1]] = found[0]
        rows.discard(found[0])
        columns.discard(found[1])
    left_rows, left_columns = sorted(rows), sorted(columns)
    if left_rows and any(type(x) is Polynomial for x in K[np.ix_(left_rows, left_columns)].flat):
        return cancelled_entries(_by_cramer(K, X, row_of, left_rows, left_columns))
    for i, j in _complete_pivots(numbers, len(left_rows)):
        _eliminate(K, X, i, j, n)
        row_of[j] = i
    return cancelled_entries(np.array([X[row_of[j]] for j in range(n)], dtype=object))


def solve_transposed(K: np.ndarray, right: np.ndarray, near: np.ndarray) -> np.ndarray:
    """X of K^T X = right, with the pivots of K; see `solve_exactly`."""
    return solve_exactly(K.T, right, near.T)


def _complete_pivots(numbers: np.ndarray, count: int) -> list[tuple[int, int]]:
    """The order of so many pivots (row, column) by complete pivoting.

    Raises DescriptionError if the rank is smaller.
    """
    order = []
    for _ in range(count):
        i, j = (int(x) for x in np.unravel_index(np.argmax(np.abs(numbers)), numbers.shape))
        if abs(numbers[i, j]) < RANK:
            raise DescriptionError(SINGULAR)
        order.append((i, j))
        numbers = _remainder(numbers, i, j)
    return order


def _remainder(numbers: np.ndarray, i: int, j: int) -> np.ndarray:
    """The matrix after the elimination of row i and column j, which are zero."""
    left = numbers - np.outer(numbers[:, j], numbers[i]) / numbers[i, j]
    left[i], left[:, j] = 0, 0
    return left


def _simple_pivot(
    K: np.ndarray, numbers: np.ndarray, rows: set[int], columns: set[int]
) -> tuple[int, int] | None:
    """The pivot with the fewest other entries in its row among numbers and products of parameters.

    Division by such a pivot does not make expressions longer.
    """
    best: tuple[int, int, int] | None = None
    for i in sorted(rows):
        filled = sum(1 for j in columns if not _is_zero(K[i, j]))
        for j in sorted(columns):
            is_pivot = abs(numbers[i, j]) > RANK and _is_simple(K[i, j])
            if is_pivot and (best is None or filled < best[0]):
                best = (filled, i, j)
    return None if best is None else (best[1], best[2])


def _is_zero(x: Any) -> bool:
    if type(x) is Polynomial:
        return not x.terms
    return are_constant(x) and x == 0


def _is_simple(x: Any) -> bool:
    """Whether x is a number or a product of parameters that cannot vanish."""
    if type(x) is Polynomial:
        ring = x.ring
        return len(x.terms) == 1 and all(
            ring.is_atom(n) and ring.generators[n][1].is_nonzero
            for n, _ in ring.exponents(next(iter(x.terms)))
        )
    return are_constant(x) and abs(x) > RANK


def _eliminate(K: np.ndarray, X: np.ndarray, i: int, j: int, n: int) -> None:
    """Eliminate column j from all rows but i, in place."""
    pivot = K[i, j]
    if not (are_constant(pivot) and pivot == 1):
        K[i] = [0 if _is_zero(x) else x / pivot for x in K[i]]
        X[i] = [0 if _is_zero(x) else x / pivot for x in X[i]]
    for other in range(n):
        factor = K[other, j]
        if other == i or _is_zero(factor):
            continue
        K[other] = [x if _is_zero(y) else x - factor * y for x, y in zip(K[other], K[i], strict=True)]
        K[other, j] = 0
        X[other] = [x if _is_zero(y) else x - factor * y for x, y in zip(X[other], X[i], strict=True)]


def _by_cramer(
    K: np.ndarray, X: np.ndarray, row_of: dict[int, int], rows: list[int], columns: list[int]
) -> np.ndarray:
    """The remaining unknowns by Cramer's rule, then the eliminated ones by substitution."""
    n, p = len(K), len(rows)
    block = K[np.ix_(rows, columns)]
    whole = determinant(block, tuple(range(p)), {})
    if _is_zero(whole):
        raise DescriptionError(SINGULAR)
    solution: dict[int, np.ndarray] = {}
    for position, j in enumerate(columns):
        values = []
        for c in range(X.shape[1]):
            replaced = block.copy()
            replaced[:, position] = X[rows, c]
            numerator = determinant(replaced, tuple(range(p)), {})
            values.append(0 if _is_zero(numerator) else numerator / whole)
        solution[j] = np.array(values, dtype=object)
    for j, i in row_of.items():
        x = X[i]
        for other in columns:
            if not _is_zero(K[i, other]):
                x = x - K[i, other] * solution[other]
        solution[j] = x
    return np.array([solution[j] for j in range(n)], dtype=object)


def determinant(A: np.ndarray, columns: tuple[int, ...], known: dict[tuple[int, ...], Any]) -> Any:
    """The determinant of the last rows of A in these columns, by expansion with cached minors."""
    if not columns:
        return 1
    if columns in known:
        return known[columns]
    row, total = len(A) - len(columns), 0
    for k, j in enumerate(columns):
        if _is_zero(A[row, j]):
            continue
        minor = A[row, j] * determinant(A, columns[:k] + columns[k + 1 :], known)
        total = total + minor if k % 2 == 0 else total - minor
    known[columns] = total
    return total
