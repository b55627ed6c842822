"""Blocked L^T D L factorisation of sparse symmetric matrices, in loops over square blocks.

The compiled program stays short for matrices whose factorisation, written entry by entry, would be too long
to compile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from zwang.scalar import MutableArray, Table, empty, fori_loop, table, zeros

SIDE = 4


class BlockedFactors(NamedTuple):
    """Factors of L^T D L: the unit lower triangular L, stored by blocks, and the reciprocals of D."""

    L: MutableArray
    reciprocals: MutableArray


class BlockedLDLT:
    """Storage, factorisation and solution of a symmetric positive definite matrix (n, n) with a given
    sparsity.

    n: size. entries: the positions (i, j), i >= j, of the entries that may be nonzero. Only blocks that are
    nonzero after fill-in are stored. Rows of padding precede the first row, so that the size is a multiple of
    the block size.
    """

    def __init__(self, n: int, entries: Iterable[tuple[int, int]]) -> None:
        self.n, self.padding = n, -n % SIDE
        self.count = (n + self.padding) // SIDE
        blocks = {(k, k) for k in range(self.count)}
        blocks |= {((i + self.padding) // SIDE, (j + self.padding) // SIDE) for i, j in entries}
        for K in reversed(range(self.count)):  # symbolic elimination: fill-in
            left = [J for J in range(K) if (K, J) in blocks]
            blocks |= {(I, J) for I in left for J in left if J <= I}
        self._start = {block: k * SIDE * SIDE for k, block in enumerate(sorted(blocks))}

    @property
    def size(self) -> int:
        """Length of the array of all stored blocks."""
        return len(self._start) * SIDE * SIDE

    def place(self, i: int, j: int) -> int:
        """Position of the entry (i, j), i >= j, in the array of all blocks."""
        i, j = i + self.padding, j + self.padding
        return self._start[i // SIDE, j // SIDE] + i % SIDE * SIDE + j % SIDE

    def factor(self, A: MutableArray) -> BlockedFactors:
        """Factors of the matrix whose entries are in A, an array of length `size` (Featherstone 2008, Table
        6.3).

        The blocks change the loops, not the order of the operations on an entry.
        """
        start, order = self._start, [*reversed(range(self.count))]
        diagonal = table([start[I, I] for I in order])
        below, below_end = _lists([self._below(I) for I in order])
        beside, beside_end = _lists([[(start[I, J],) for J in self._beside(I)] for I in order])

        def block_row(r: Any, arrays: tuple[MutableArray, MutableArray, MutableArray]) -> Any:
            # A_IJ -= L_KI^T A_KJ for the rows K below; then A_II = l^T d l, and L_IJ beside the diagonal
            A, L, reciprocals = arrays
            A = _each(below, below_end, r, _eliminate(L), A)
            d = diagonal[r]
            l, own = _factor_block([[A[d + SIDE * k + j] for j in range(k + 1)] for k in range(SIDE)])
            for k in range(SIDE):
                L = with_values(L, d + SIDE * k, l[k])
            reciprocals = with_values(reciprocals, SIDE * (self.count - 1 - r), own)
            A, L = _each(beside, beside_end, r, _divide(l, own), (A, L))
            return A, L, reciprocals

        own = fori_loop(0, self.size, lambda k, own, given=A: own.set(k, given[k]), empty(self.size))
        for k in range(self.padding):
            own = own.set(k * SIDE + k, 1.0)
        arrays = own, empty(self.size), empty(self.count * SIDE)
        _, L, reciprocals = fori_loop(0, self.count, block_row, arrays, unroll=False)
        return BlockedFactors(L, reciprocals)

    def solve(self, factors: BlockedFactors, b: Any) -> np.ndarray:
        """x (n,) of L^T D L x = b (Featherstone 2008, Table 6.5)."""
        L, x = factors.L, with_values(zeros(self.count * SIDE), self.padding, b)
        start, within = self._start, [(k, i) for k in range(SIDE) for i in range(k)]
        diagonal = table([start[K, K] for K in range(self.count)])
        beside, end = _lists([[(start[K, I], SIDE * I) for I in self._beside(K)] for K in range(self.count)])

        def backward(K: Any, x: MutableArray) -> MutableArray:  # L^T y = b
            own, d = [x[SIDE * K + k] for k in range(SIDE)], diagonal[K]
            for k, i in reversed(within):
                own[i] = own[i] - L[d + SIDE * k + i] * own[k]
            return _each(beside, end, K, _back_substitute(L, own), with_values(x, SIDE * K, own))

        def forward(K: Any, x: MutableArray) -> MutableArray:  # L x = D^-1 y
            own = [x[SIDE * K + k] * factors.reciprocals[SIDE * K + k] for k in range(SIDE)]
            own = _each(beside, end, K, _forward_substitute(L, x), own)
            for k, i in within:
                own[k] = own[k] - L[diagonal[K] + SIDE * k + i] * own[i]
            return with_values(x, SIDE * K, own)

        x = fori_loop(0, self.count, lambda r, x: backward(self.count - 1 - r, x), x, unroll=False)
        x = fori_loop(0, self.count, forward, x, unroll=False)
        return np.array([x[self.padding + k] for k in range(self.n)])

    def _beside(self, row: int) -> list[int]:
        """The block columns left of the diagonal with a stored block in this block row."""
        return [J for J in range(row) if (row, J) in self._start]

    def _below(self, I: int) -> list[tuple[int, int, int]]:
        """Start positions of the blocks (I, J), (K, I), (K, J) for each block row K that is eliminated from
        row I.
        """
        start = self._start
        rows = [K for K in reversed(range(I + 1, self.count)) if (K, I) in start]
        both = [(K, J) for K in rows for J in range(I + 1) if (K, J) in start]
        return [(start[I, J], start[K, I], start[K, J]) for K, J in both]


def _factor_block(a: list[list[Any]]) -> tuple[list[list[Any]], list[Any]]:
    """L and the reciprocals of D of one diagonal block, from its lower triangle."""
    reciprocals: list[Any] = [None] * SIDE
    l: list[list[Any]] = [[] for _ in range(SIDE)]
    for k in reversed(range(SIDE)):
        reciprocals[k] = 1 / a[k][k]
        l[k] = [a[k][i] * reciprocals[k] for i in range(k)]
        for i in range(k):
            for j in range(i + 1):
                a[i][j] = a[i][j] - l[k][i] * a[k][j]
    return l, reciprocals


def _eliminate(L: MutableArray) -> Callable[[Any, MutableArray], MutableArray]:
    def body(at: Any, A: MutableArray) -> MutableArray:
        """A_IJ - L_KI^T A_KJ."""
        here, left, right = at
        block = [A[here + k] for k in range(SIDE * SIDE)]
        for k in reversed(range(SIDE)):
            row = [A[right + SIDE * k + j] for j in range(SIDE)]
            for i in range(SIDE):
                factor = L[left + SIDE * k + i]
                for j in range(SIDE):
                    block[SIDE * i + j] = block[SIDE * i + j] - factor * row[j]
        return with_values(A, here, block)

    return body


def _divide(l: list[list[Any]], reciprocals: list[Any]) -> Callable[[Any, Any], Any]:
    def body(at: Any, arrays: tuple[MutableArray, MutableArray]) -> tuple[MutableArray, MutableArray]:
        """A block beside the diagonal: D L, and L = D^-1 (D L)."""
        (A, L), here = arrays, at[0]
        a = [[A[here + SIDE * k + j] for j in range(SIDE)] for k in range(SIDE)]
        for k in reversed(range(SIDE)):
            for i in range(k):
                a[i] = [x - l[k][i] * y for x, y in zip(a[i], a[k], strict=True)]
        for k in range(SIDE):
            A = with_values(A, here + SIDE * k, a[k])
            L = with_values(L, here + SIDE * k, [x * reciprocals[k] for x in a[k]])
        return A, L

    return body


def _back_substitute(L: MutableArray, own: list[Any]) -> Callable[[Any, MutableArray], MutableArray]:
    def body(at: Any, x: MutableArray) -> MutableArray:
        """x_I - L_KI^T x_K."""
        block, start = at
        values = [x[start + i] for i in range(SIDE)]
        for k in reversed(range(SIDE)):
            values = [value - L[block + SIDE * k + i] * own[k] for i, value in enumerate(values)]
        return with_values(x, start, values)

    return body


def _forward_substitute(L: MutableArray, x: MutableArray) -> Callable[[Any, list[Any]], list[Any]]:
    def body(at: Any, own: list[Any]) -> list[Any]:
        """x_K - L_KI x_I."""
        block, start = at
        for i in range(SIDE):
            own = [value - L[block + SIDE * k + i] * x[start + i] for k, value in enumerate(own)]
        return own

    return body


def _lists(rows: Sequence[Sequence[tuple[int, ...]]]) -> tuple[list[Table], Table]:
    """Lists of tuples of positions, one list a block row, as a table for each place in the tuple, and the
    ends of the lists.
    """
    entries, ends = [entry for row in rows for entry in row], np.cumsum([0, *map(len, rows)])
    return [table(list(column)) for column in zip(*entries, strict=True)], table(ends.tolist())


def _each(positions: list[Table], ends: Table, row: Any, body: Callable[[Any, Any], Any], carry: Any) -> Any:
    """The carry after `body` for each tuple of positions of a block row."""
    if not positions:
        return carry
    return fori_loop(ends[row], ends[row + 1], lambda k, t: body([c[k] for c in positions], t), carry)


def with_values(array: MutableArray, start: Any, values: Iterable[Any]) -> MutableArray:
    """The array with these values stored from the position `start` on."""
    for k, value in enumerate(values):
        array = array.set(start + k, value)
    return array
