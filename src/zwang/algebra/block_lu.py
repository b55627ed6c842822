"""L U elimination of block matrices, without symmetry, whose number of blocks is known only at run time."""

from __future__ import annotations

from typing import Any

import numpy as np

from zwang.scalar import MutableArray, cond, divide, empty, fori_loop, minimum


def solve_block_lu(
    count: Any, width: int, A: MutableArray, coupled: MutableArray, b: MutableArray
) -> tuple[MutableArray, Any]:
    """x of A x = b by block elimination without pivoting, which passes over the blocks that are zero, and the
    least determinant of a diagonal block of U, whose products are the leading principal minors of A.

    count: number of blocks a side, an index. width: rows of a block. A (n, n) with n >= count width, and b
    (n,); both are overwritten. coupled (n / width, n / width): 1 where a block is not zero, 0 where all its
    entries are 0; overwritten with the fill-in. A matrix that needs pivoting gives large or nonfinite
    numbers, which the caller must check. Source: Golub, Van Loan, Matrix Computations (2013), Section 3.2.
    """
    inside = range(width)
    capacity = coupled.shape[0]

    def load(M: MutableArray, I: Any, J: Any) -> list[list[Any]]:
        return [[M[width * I + a, width * J + c] for c in inside] for a in inside]

    def subtract(l: list[list[Any]], K: Any, I: Any, J: Any, carry: Any) -> Any:
        """A_IJ - L_IK U_KJ."""
        A, coupled = carry
        block, u = load(A, I, J), load(A, K, J)
        for a in inside:
            for c in inside:
                x = block[a][c] - sum(l[a][e] * u[e][c] for e in inside)
                A = A.set((width * I + a, width * J + c), x)
        return A, coupled.set((I, J), 1.0)

    def eliminate(I: Any, K: Any, carry: Any) -> Any:
        """Row I minus L_IK times row K, with L_IK = A_IK U_KK^-1."""
        A, coupled, inverses, b, least = carry
        l = _product(load(A, I, K), [[inverses[K, width * a + c] for c in inside] for a in inside])

        def column(J: Any, carry: Any) -> Any:
            return cond(carry[1][K, J] > 0, lambda x: subtract(l, K, I, J, x), lambda x: x, carry)

        A, coupled = fori_loop(K + 1, count, column, (A, coupled))
        for a in inside:
            b = b.set(width * I + a, b[width * I + a] - sum(l[a][e] * b[width * K + e] for e in inside))
        return A, coupled, inverses, b, least

    def row(I: Any, carry: Any) -> Any:
        def step(K: Any, carry: Any) -> Any:
            return cond(carry[1][I, K] > 0, lambda x: eliminate(I, K, x), lambda x: x, carry)

        A, coupled, inverses, b, least = fori_loop(0, I, step, carry)
        inverse, determinant = inverse_and_determinant(load(A, I, I))
        for a in inside:
            for c in inside:
                inverses = inverses.set((I, width * a + c), inverse[a][c])
        return A, coupled, inverses, b, minimum(least, determinant)

    initial = A, coupled, empty((capacity, width * width)), b, np.inf
    A, coupled, inverses, b, least = fori_loop(0, count, row, initial)

    return _back_substituted(count, width, A, coupled, inverses, b), least


def _back_substituted(
    count: Any, width: int, A: MutableArray, coupled: MutableArray, inverses: MutableArray, b: MutableArray
) -> MutableArray:
    """x of U x = b, with the inverses of the diagonal blocks of U."""
    inside = range(width)

    def back(I: Any, x: MutableArray) -> MutableArray:
        """x_I = U_II^-1 (b_I - sum_J U_IJ x_J)."""

        def add(J: Any, right: Any) -> Any:
            def product(right: Any) -> Any:
                u = [[A[width * I + a, width * J + c] for c in inside] for a in inside]
                return [right[a] - sum(u[a][e] * x[width * J + e] for e in inside) for a in inside]

            return cond(coupled[I, J] > 0, product, lambda right: right, right)

        right = fori_loop(I + 1, count, add, [x[width * I + a] for a in inside])
        for a in inside:
            x = x.set(width * I + a, sum(inverses[I, width * a + e] * right[e] for e in inside))
        return x

    return fori_loop(0, count, back, b, reverse=True)


def inverse_and_determinant(block: list[list[Any]]) -> tuple[list[list[Any]], Any]:
    """Inverse and determinant of a small matrix by Gauss-Jordan elimination without pivoting."""
    n, determinant = len(block), 1
    rows = [list(row) for row in block]
    for k in range(n):
        determinant, pivot = determinant * rows[k][k], divide(1, rows[k][k])
        rows[k] = [pivot if j == k else x * pivot for j, x in enumerate(rows[k])]
        for i in range(n):
            if i != k:
                factor = rows[i][k]
                rows[i] = [
                    -factor * pivot if j == k else x - factor * y
                    for j, (x, y) in enumerate(zip(rows[i], rows[k], strict=True))
                ]
    return rows, determinant


def _product(A: list[list[Any]], B: list[list[Any]]) -> list[list[Any]]:
    inside = range(len(B))
    return [[sum(A[a][e] * B[e][c] for e in inside) for c in inside] for a in inside]
