"""Symmetric positive definite systems with many right-hand sides: dense L D L^T, in loops over blocks."""

from __future__ import annotations

from typing import Any, NamedTuple

from zwang.algebra.dynamic_ldlt import IN_BLOCK, SIDE, DynamicFactors, factor_dynamic_ldlt, minus_dot
from zwang.scalar import MutableArray, fori_loop, zeros

AT_ONCE = 2  # right-hand sides that are solved for together, so that the factors are read once for them


def padded(n: int) -> int:
    """The number of rows and columns of the array that stores a matrix (n, n), a multiple of the blocks'."""
    return -(-n // SIDE) * SIDE


def empty_system(n: int, count: int) -> tuple[MutableArray, MutableArray]:
    """Arrays of zeros for a matrix (n, n), with ones on the diagonal of its padding, and for `count`
    right-hand sides or a few more, one in each row.
    """
    size = padded(n)
    H = zeros((size, size))
    for k in range(n, size):
        H = H.set((k, k), 1.0)
    return H, zeros((-(-count // AT_ONCE) * AT_ONCE, size))


class DenseFactors(NamedTuple):
    """The factors of a symmetric positive definite matrix."""

    factors: DynamicFactors
    blocks: int

    @staticmethod
    def of(H: MutableArray) -> DenseFactors:
        """The factors of the matrix whose lower triangle is in an array of `empty_system`. Source: Golub,
        Van Loan, Matrix Computations (2013), Sec. 4.1.2 and 4.2.
        """
        blocks = H.shape[0] // SIDE
        return DenseFactors(factor_dynamic_ldlt(blocks, blocks, lambda i, j: H[i, j]), blocks)

    def solved(self, X: MutableArray) -> MutableArray:
        """The array of right-hand sides b with H^-1 b in their places."""

        def solve(k: Any, X: MutableArray) -> MutableArray:
            rows = [AT_ONCE * k + i for i in range(AT_ONCE)]
            X = fori_loop(0, self.blocks, lambda K, X: self._forward(rows, K, X), X, unroll=False)
            return fori_loop(
                0, self.blocks, lambda K, X: self._backward(rows, K, X), X, reverse=True, unroll=False
            )

        return fori_loop(0, X.shape[0] // AT_ONCE, solve, X, unroll=False)

    def _forward(self, rows: list[Any], K: Any, X: MutableArray) -> MutableArray:
        """Block row K of the solutions of L x = b."""

        def subtract(J: Any, parts: Any) -> Any:
            l, x = self.factors.block(K, J), [_part(X, r, J) for r in rows]
            return [
                [minus_dot(part[a], l[a], own) for a in IN_BLOCK] for part, own in zip(parts, x, strict=True)
            ]

        parts, l = fori_loop(0, K, subtract, [_part(X, r, K) for r in rows]), self.factors.block(K, K)
        for part in parts:
            for a in IN_BLOCK:
                part[a] = minus_dot(part[a], l[a][:a], part[:a])
        return _with_parts(X, rows, K, parts)

    def _backward(self, rows: list[Any], K: Any, X: MutableArray) -> MutableArray:
        """Block row K of the solutions of D L^T x = b, from those of the rows below."""
        d = [self.factors.reciprocals[SIDE * K + a] for a in IN_BLOCK]

        def subtract(I: Any, parts: Any) -> Any:
            l, x = self.factors.block(I, K), [_part(X, r, I) for r in rows]
            columns = [[l[c][a] for c in IN_BLOCK] for a in IN_BLOCK]
            both = zip(parts, x, strict=True)
            return [[minus_dot(part[a], columns[a], own) for a in IN_BLOCK] for part, own in both]

        scaled = [[x * y for x, y in zip(_part(X, r, K), d, strict=True)] for r in rows]
        parts, l = fori_loop(K + 1, self.blocks, subtract, scaled), self.factors.block(K, K)
        for part in parts:
            for a in reversed(IN_BLOCK):
                below = range(a + 1, SIDE)
                part[a] = minus_dot(part[a], [l[c][a] for c in below], [part[c] for c in below])
        return _with_parts(X, rows, K, parts)


def _part(X: MutableArray, row: Any, K: Any) -> list[Any]:
    """Block K of a row."""
    return [X[row, SIDE * K + a] for a in IN_BLOCK]


def _with_parts(X: MutableArray, rows: list[Any], K: Any, parts: list[list[Any]]) -> MutableArray:
    """The array with block K of these rows replaced."""
    for row, part in zip(rows, parts, strict=True):
        for a in IN_BLOCK:
            X = X.set((row, SIDE * K + a), part[a])
    return X
