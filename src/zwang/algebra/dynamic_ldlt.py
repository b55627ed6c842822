"""Blocked L D L^T factorisation of symmetric matrices whose size is known only at run time, by block rows."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import Any, NamedTuple

from zwang.algebra.blocked_ldlt import with_values
from zwang.scalar import MutableArray, Table, empty, fori_loop, table

SIDE = 4  # of a block, whose entries fit into the vector registers
BLOCK = SIDE * SIDE
IN_BLOCK = range(SIDE)


def solve_dynamic_ldlt(
    block_rows: Any, most: int, entry: Callable[[Any, Any], Any], right: Callable[[Any], Any]
) -> MutableArray:
    """x (SIDE most,) of B x = b for a positive definite matrix B of dynamic size, by blocked L D L^T
    factorisation.

    block_rows: number of blocks a side, an index of at most `most`. entry(i, j): B_ij for j <= i. right(i):
    b_i. The order of the operations on an entry does not depend on the block in which it lies: further rows
    that are zero but for B_ii = 1 change no bit of the result. Source: Golub, Van Loan, Matrix Computations
    (2013), Sec. 4.1.2 and 4.2.
    """
    (first, L, reciprocals), x = _eliminated(block_rows, most, entry, right)

    def scale(K: Any, x: MutableArray) -> MutableArray:
        return with_values(x, SIDE * K, [x[SIDE * K + c] * reciprocals[SIDE * K + c] for c in IN_BLOCK])

    x = fori_loop(0, block_rows, scale, x)
    return fori_loop(0, block_rows, lambda K, x: _back(first, L, K, x), x, reverse=True)


class DynamicFactors(NamedTuple):
    """The factors of a matrix: L by blocks, of which block row K starts at first[K], and 1/D."""

    first: Table
    L: MutableArray
    reciprocals: MutableArray

    def block(self, K: Any, J: Any) -> list[list[Any]]:
        """Block (K, J) of L, J <= K; the diagonal of L, of ones, is not stored."""
        return _load_block(self.L, self.first[K] + BLOCK * J)


def factor_dynamic_ldlt(block_rows: Any, most: int, entry: Callable[[Any, Any], Any]) -> DynamicFactors:
    """The factors of `solve_dynamic_ldlt`."""
    return _eliminated(block_rows, most, entry, lambda i: 0.0)[0]


def _eliminated(
    block_rows: Any, most: int, entry: Callable[[Any, Any], Any], right: Callable[[Any], Any]
) -> tuple[DynamicFactors, MutableArray]:
    """The factors of a matrix, and the solution of L x = b."""
    first = table([K * (K + 1) // 2 * BLOCK for K in range(most)])
    L, row = (empty(size * BLOCK) for size in (most * (most + 1) // 2, most))
    reciprocals, x = (empty(most * SIDE) for _ in range(2))
    e = _Elimination(first, entry, right)
    L, _, reciprocals, x = fori_loop(0, block_rows, e.row, (L, row, reciprocals, x))
    return DynamicFactors(first, L, reciprocals), x


class _Elimination(NamedTuple):
    """The matrix B, the right-hand side b, and the start positions of the block rows of L."""

    first: Table
    entry: Callable[[Any, Any], Any]
    right: Callable[[Any], Any]

    def row(self, K: Any, carry: Any) -> Any:
        """Block row K of L and 1/D, and of the solution of L x = b; `row` is the block row of L D."""
        L, row, reciprocals, x = carry
        row = fori_loop(0, K, lambda I, row: self._column(K, I, L, row), row)
        indices = [SIDE * K + a for a in IN_BLOCK]
        block = [[self.entry(indices[a], indices[b]) for b in range(a + 1)] for a in IN_BLOCK]
        rhs = [self.right(i) for i in indices]

        def subtract(J: Any, carry: Any) -> Any:
            """L_KJ, and the diagonal block and b minus the products with it."""
            L, block, rhs = carry
            y = _load_block(row, BLOCK * J)
            l = [[y[a][c] * reciprocals[SIDE * J + c] for c in IN_BLOCK] for a in IN_BLOCK]
            block = [[minus_dot(block[a][b], y[a], l[b]) for b in range(a + 1)] for a in IN_BLOCK]
            rhs = [minus_dot(rhs[a], l[a], [x[SIDE * J + c] for c in IN_BLOCK]) for a in IN_BLOCK]
            return with_values(L, self.first[K] + BLOCK * J, chain(*l)), block, rhs

        L, block, rhs = fori_loop(0, K, subtract, (L, block, rhs))
        # factorisation of the diagonal block, and forward substitution in it
        l, inverse = [[0.0] * SIDE for _ in IN_BLOCK], []
        for c in IN_BLOCK:
            inverse.append(1 / block[c][c])
            for a in range(c + 1, SIDE):
                l[a][c] = block[a][c] * inverse[c]
                rhs[a] = rhs[a] - l[a][c] * rhs[c]
                for b in range(c + 1, a + 1):
                    block[a][b] = block[a][b] - block[a][c] * l[b][c]
        L = with_values(L, self.first[K] + BLOCK * K, chain(*l))
        return L, row, with_values(reciprocals, SIDE * K, inverse), with_values(x, SIDE * K, rhs)

    def _column(self, K: Any, I: Any, L: MutableArray, row: MutableArray) -> MutableArray:
        """The block row of L D with its block in column I: B_KI - sum_J (L D)_KJ L_IJ^T, solved with L_II."""
        block = [[self.entry(SIDE * K + a, SIDE * I + b) for b in IN_BLOCK] for a in IN_BLOCK]

        def subtract(J: Any, block: Any) -> Any:
            left, right = _load_block(row, BLOCK * J), _load_block(L, self.first[I] + BLOCK * J)
            return [[minus_dot(block[a][b], left[a], right[b]) for b in IN_BLOCK] for a in IN_BLOCK]

        block, l = fori_loop(0, I, subtract, block), _load_block(L, self.first[I] + BLOCK * I)
        for b in IN_BLOCK:
            for a in IN_BLOCK:
                block[a][b] = minus_dot(block[a][b], block[a][:b], l[b][:b])
        return with_values(row, BLOCK * I, chain(*block))


def _back(first: Table, L: MutableArray, K: Any, x: MutableArray) -> MutableArray:
    """Back substitution: x of L^T x = b in block row K, subtracted from the rows above."""
    block, l = [x[SIDE * K + c] for c in IN_BLOCK], _load_block(L, first[K] + BLOCK * K)
    for c in reversed(IN_BLOCK):
        for a in reversed(range(c + 1, SIDE)):
            block[c] = block[c] - l[a][c] * block[a]

    def subtract(J: Any, x: MutableArray) -> MutableArray:
        l = _load_block(L, first[K] + BLOCK * J)
        above = [
            minus_dot(x[SIDE * J + c], [l[a][c] for a in reversed(IN_BLOCK)], block[::-1]) for c in IN_BLOCK
        ]
        return with_values(x, SIDE * J, above)

    return fori_loop(0, K, subtract, with_values(x, SIDE * K, block))


def _load_block(array: MutableArray, start: Any) -> list[list[Any]]:
    return [[array[start + SIDE * a + b] for b in IN_BLOCK] for a in IN_BLOCK]


def minus_dot(x: Any, left: list[Any], right: list[Any]) -> Any:
    """x - left . right, from the first term on."""
    for a, b in zip(left, right, strict=True):
        x = x - a * b
    return x
