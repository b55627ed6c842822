"""Blocked L^T D L factorisation of sparse symmetric matrices, in loops over square blocks.

Which blocks are nonzero is known only at run time: a mass matrix has a diagonal block for each kinematic
tree, and the active rows of a state couple some of these trees. Blocks that stay zero are not touched, so
that the cost is that of the nonzero blocks after fill-in. The compiled program is short.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from itertools import chain, pairwise
from typing import Any, NamedTuple

import numpy as np

from zwang.scalar import (
    ActiveIndices,
    MutableArray,
    cond,
    empty,
    for_each,
    fori_loop,
    is_zero,
    lane_maximum,
    table,
    zeros,
)
from zwang.scalar.compact_loop import IndexSet

SIDES = (6, 4)  # sides of blocks: a free body has six velocities; of two that need the same padding the first


class BlockMarks(NamedTuple):
    """Marks of blocks (I, J) with J <= I: for each block row whether it has any, and those of all blocks."""

    rows: MutableArray
    blocks: MutableArray


class BlockPattern(NamedTuple):
    """The nonzero blocks left of the diagonal after fill-in, the same in all lanes.

    counts: their number in each block row. columns: in row K the block columns of block row K, ascending.
    In a `FixedLDLT` both are tables, the columns of all block rows one after the other. In an `OrderedLDLT`
    each world has a pattern of its own, with columns in any order. order: its coupled block rows, in the
    order of elimination; number: of these; coupled: 1 for each of them, else 0.
    """

    counts: Any
    columns: Any
    order: Any = None
    number: Any = 0
    coupled: Any = None


class BlockedFactors(NamedTuple):
    """Factors of L^T D L: l of the diagonal blocks and D L beside them, and the reciprocals of D."""

    DL: MutableArray
    reciprocals: MutableArray
    pattern: BlockPattern


Arrays = tuple[MutableArray, MutableArray]


class BlockedLDLT:
    """Storage, factorisation and solution of a symmetric positive definite matrix (n, n).

    n: size. entries: the positions (i, j), i >= j, of the entries that may be nonzero in every state; others
    are those of the blocks that `pattern` marks. Rows of padding precede the diagonal parts that no entry
    connects, so that the size of each is a multiple of that of the blocks.
    """

    def __init__(self, n: int, entries: Iterable[tuple[int, int]]) -> None:
        entries = list(entries)
        parts = {side: _diagonal_parts(n, entries, side) for side in SIDES}
        padded = {side: sum(size + -size % side for size in sizes) for side, sizes in parts.items()}
        self.n, self.side = n, min(SIDES, key=lambda side: padded[side])
        self.count, sizes = padded[self.side] // self.side, parts[self.side]
        self._at: list[int] = []  # the padded row of each row
        for size in sizes:
            start = self._at[-1] + 1 if self._at else 0
            self._at += [start + -size % self.side + k for k in range(size)]
        self._first = table([K * (K + 1) // 2 for K in range(self.count)])
        self._coupled = sorted({pair for i, j in entries for pair in self.block_pairs((i, j))})
        size = self.side**2
        self._row_start = table(
            [self._first[at // self.side] * size + at % self.side * self.side for at in self._at]
        )
        self._column_start = table([at // self.side * size + at % self.side for at in self._at])

    @property
    def size(self) -> int:
        """Length of the array of all blocks on and left of the diagonal."""
        return self._places * self.side**2

    @property
    def _places(self) -> int:
        """The number of blocks on and left of the diagonal, zero or not."""
        return self.count * (self.count + 1) // 2

    def place(self, i: Any, j: Any) -> Any:
        """Position of the entry (i, j) in the array of all blocks; the block of i is not left of that of
        j.
        """
        return self._row_start[i] + self._column_start[j]

    @property
    def is_coupled(self) -> bool:
        """Whether some block beside the diagonal may be nonzero in every state."""
        return bool(self._coupled)

    def pattern(self, mark: Callable[[Any], Any]) -> BlockPattern:
        """The nonzero blocks of matrices with the entries of every state and the blocks that `mark` marks.

        `mark` calls `marked` outside of conditions that differ from lane to lane.
        """
        marks = BlockMarks(zeros(self.count), empty(self._places))
        if self._coupled:
            marks = for_each(self._coupled, lambda at, marks: self.marked(marks, *at), marks)
        start = mark(marks), BlockPattern(zeros(self.count), empty((self.count, self.count)))

        def eliminate(r: Any, carry: Any) -> Any:
            K, (marks, _) = self.count - 1 - r, carry
            return cond(marks.rows[K] > 0, lambda *c: self._eliminated(K, *c), lambda *c: c, *carry)

        return fori_loop(0, self.count, eliminate, start, unroll=False)[1]

    def block_pairs(self, columns: Sequence[int]) -> list[tuple[int, int]]:
        """The blocks (I, J), J < I, that hold the entries of a dense matrix with these rows and columns."""
        blocks = sorted({self._at[k] // self.side for k in columns})
        return [(I, J) for I in blocks for J in blocks if J < I]

    def over_active(self, active: IndexSet, body: Callable[[Any, Any], Any], carry: Any) -> Any:
        """The carry after body(k, carry) for the blocks of rows that are active in some lane."""
        return fori_loop(0, active.count, lambda p, carry: body(active[p], carry), carry)

    def marked(self, marks: Any, I: Any, J: Any) -> BlockMarks:
        """The marks, with block (I, J), J <= I, marked. Those of a row are cleared with the first one."""
        first = self._first[I]

        def clear(blocks: MutableArray) -> MutableArray:
            return fori_loop(0, I, lambda k, blocks: blocks.set(first + k, 0.0), blocks)

        blocks = cond(marks.rows[I] < 1, clear, lambda blocks: blocks, marks.blocks)
        return BlockMarks(marks.rows.set(I, 1.0), blocks.set(first + J, 1.0))

    def _eliminated(
        self, K: Any, marks: BlockMarks, pattern: BlockPattern
    ) -> tuple[BlockMarks, BlockPattern]:
        """The pattern with block row K, and the marks with the fill-in of its elimination."""
        first = self._first[K]
        row = fori_loop(0, K, lambda J, row: row.set(J, marks.blocks[first + J]), empty(self.count))
        found = ActiveIndices(row, K)

        def fill(t: Any, carry: tuple[BlockMarks, MutableArray]) -> tuple[BlockMarks, MutableArray]:
            marks, columns = carry
            marks = fori_loop(0, t, lambda u, marks: self.marked(marks, found[t], found[u]), marks)
            return marks, columns.set((K, t), 1.0 * found[t])

        marks, columns = fori_loop(0, found.count, fill, (marks, pattern.columns))
        return marks, BlockPattern(pattern.counts.set(K, 1.0 * found.count), columns)

    def cleared(self, A: MutableArray, pattern: BlockPattern) -> MutableArray:
        """The array with zeros in the nonzero blocks, and ones in the diagonal of the padding."""

        A = self._cleared_blocks(A, pattern)
        padding = sorted(set(range(self.count * self.side)) - set(self._at))
        ones = [
            self._start(at // self.side, at // self.side) + at % self.side * (self.side + 1) for at in padding
        ]
        return for_each(ones, lambda place, A: A.set(place, 1.0), A) if ones else A

    def _cleared_blocks(self, A: MutableArray, pattern: BlockPattern) -> MutableArray:
        """The array with zeros in the nonzero blocks."""

        def clear(K: Any, A: MutableArray) -> MutableArray:
            return self._cleared_row(self._cleared_block(A, K, K), pattern, K)

        return fori_loop(0, self.count, clear, A, unroll=False)

    def _cleared_row(self, A: MutableArray, pattern: BlockPattern, K: Any) -> MutableArray:
        """The array with zeros in the nonzero blocks of block row K beside the diagonal."""
        return self._over_row(pattern, K, lambda J, A: self._cleared_block(A, K, J), A)

    def _cleared_block(self, A: MutableArray, I: Any, J: Any) -> MutableArray:
        """The array with zeros in block (I, J)."""
        return with_values(A, self._start(I, J), [0.0] * self.side**2)

    def factor(self, A: MutableArray, pattern: BlockPattern) -> BlockedFactors:
        """Factors of the matrix whose entries are in A, which becomes part of them (Featherstone 2008, Table
        6.3).

        Blocks that are zero, in the pattern or not, change no bit of the result.
        """

        def block_row(r: Any, arrays: Arrays) -> Arrays:
            return self._with_row_factored(arrays, pattern, self.count - 1 - r)

        arrays = A, empty(self.count * self.side)
        DL, reciprocals = fori_loop(0, self.count, block_row, arrays, unroll=False)
        return BlockedFactors(DL, reciprocals, pattern)

    def _with_row_factored(self, arrays: Arrays, pattern: BlockPattern, K: Any) -> Arrays:
        """The factors and the reciprocals of D with those of block row K, and the remaining matrix."""
        # A_KK = l^T d l, A_KJ <- d L_KJ = l^-T A_KJ, and A_IJ -= L_KI^T A_KJ for all J, I in the row
        A, reciprocals = arrays
        l, own = _factor_block(self._lower_triangle(A, self._start(K, K)))
        for k in range(self.side):
            A = with_values(A, self._start(K, K) + self.side * k, l[k])
        A = self._over_row(pattern, K, lambda J, A: self._divided(A, K, J, l), A)
        A = self._with_row_eliminated(A, pattern, K, own)
        return A, with_values(reciprocals, self.side * K, own)

    def solve(self, factors: BlockedFactors, b: Any) -> np.ndarray:
        """x (n,) of L^T D L x = b (Featherstone 2008, Table 6.5)."""
        x = self._over_rows_backward(factors, self._padded_vector(b))
        return self._vector_of(self._over_rows_forward(factors, x))

    def solve_transposed(self, factors: BlockedFactors, b: Any) -> np.ndarray:
        """x of L^T x = b, with the rows of padding."""
        x = self._over_rows_backward(factors, self._padded_vector(b))
        return np.array([x[k] for k in range(self.count * self.side)])

    def solve_scaled(self, factors: BlockedFactors, b: Any) -> np.ndarray:
        """x (n,) of D L x = b, where b has the rows of padding."""
        x = with_values(empty(self.count * self.side), 0, b)
        return self._vector_of(self._over_rows_forward(factors, x))

    def _padded_vector(self, b: Any) -> MutableArray:
        """The array of a vector, with zeros in the rows of padding."""
        x = zeros(self.count * self.side)
        for at, value in zip(self._at, b, strict=True):
            x = x.set(at, value)
        return x

    def _vector_of(self, x: MutableArray) -> np.ndarray:
        """The vector (n,) in an array with rows of padding."""
        return np.array([x[at] for at in self._at])

    def _over_rows_backward(self, factors: BlockedFactors, x: MutableArray) -> MutableArray:
        """The vector x with all block rows of L^T y = b solved."""
        n = self.count
        return fori_loop(0, n, lambda r, x: self._backward(factors, n - 1 - r, x), x, unroll=False)

    def _over_rows_forward(self, factors: BlockedFactors, x: MutableArray) -> MutableArray:
        """The vector x with all block rows of D L x = y solved."""
        return fori_loop(0, self.count, lambda K, x: self._forward(factors, K, x), x, unroll=False)

    def _backward(self, factors: BlockedFactors, K: Any, x: MutableArray) -> MutableArray:
        """The vector x with block row K of L^T y = b solved."""
        side, DL = self.side, factors.DL
        own, l = self._vector(x, K), self._lower_triangle(DL, self._start(K, K))
        for k in reversed(range(side)):
            for i in range(k):
                own[i] = own[i] - l[k][i] * own[k]
        scaled = [y * d for y, d in zip(own, self._vector(factors.reciprocals, K), strict=True)]

        def subtract(I: Any, x: MutableArray) -> MutableArray:  # y_I - (D L_KI)^T D^-1 y_K
            values, block = self._vector(x, I), self._block_at(DL, self._start(K, I))
            for k in reversed(range(side)):
                values = [y - block[k][i] * scaled[k] for i, y in enumerate(values)]
            return with_values(x, side * I, values)

        return self._over_row(factors.pattern, K, subtract, with_values(x, side * K, own))

    def _forward(self, factors: BlockedFactors, K: Any, x: MutableArray) -> MutableArray:
        """The vector x with block row K of D L x = y solved."""
        side, DL = self.side, factors.DL

        def subtract(I: Any, own: list[Any]) -> list[Any]:
            values, block = self._vector(x, I), self._block_at(DL, self._start(K, I))
            for i in range(side):
                own = [y - block[k][i] * values[i] for k, y in enumerate(own)]
            return own

        own = self._over_row(factors.pattern, K, subtract, self._vector(x, K))
        own = [y * d for y, d in zip(own, self._vector(factors.reciprocals, K), strict=True)]
        l = self._lower_triangle(DL, self._start(K, K))
        for k in range(side):
            for i in range(k):
                own[k] = own[k] - l[k][i] * own[i]
        return with_values(x, side * K, own)

    def _start(self, I: Any, J: Any) -> Any:
        """Position of the first entry of block (I, J), J <= I, in the array of all blocks."""
        return (self._first[I] + J) * self.side**2

    def _column(self, pattern: BlockPattern, K: Any, t: Any) -> Any:
        """The block column of nonzero block t of block row K."""
        return lane_maximum(pattern.columns[K, t], self.count - 1)

    def _row_count(self, pattern: BlockPattern, K: Any) -> Any:
        """The number of nonzero blocks left of the diagonal in block row K."""
        return lane_maximum(pattern.counts[K], self.count - 1)

    def _over_row(self, pattern: BlockPattern, K: Any, body: Callable[[Any, Any], Any], carry: Any) -> Any:
        """The carry after body(J, carry) for these blocks (K, J)."""
        return fori_loop(
            0,
            self._row_count(pattern, K),
            lambda t, carry: body(self._column(pattern, K, t), carry),
            carry,
        )

    def _divided(self, A: MutableArray, K: Any, J: Any, l: list[list[Any]]) -> MutableArray:
        """The array with l^-T A_KJ in place of the block A_KJ beside the diagonal."""
        start = self._start(K, J)
        a = self._block_at(A, start)
        for k in reversed(range(self.side)):
            for i in range(k):
                a[i] = [x - l[k][i] * y for x, y in zip(a[i], a[k], strict=True)]
        return with_values(A, start, chain(*a))

    def _with_row_eliminated(
        self, A: MutableArray, pattern: BlockPattern, K: Any, reciprocals: list[Any]
    ) -> MutableArray:
        """The array with A_IJ - L_KI^T D L_KJ for the nonzero blocks J <= I of block row K."""
        side = self.side

        def eliminate(t: Any, A: MutableArray) -> MutableArray:
            I = self._column(pattern, K, t)
            rows = zip(self._block_at(A, self._start(K, I)), reciprocals, strict=True)
            L = [[x * reciprocal for x in row] for row, reciprocal in rows]

            def subtract(J: Any, A: MutableArray) -> MutableArray:
                target, block = self._start(I, J), self._block_at(A, self._start(K, J))
                for i in range(side):
                    values = [A[target + side * i + j] for j in range(side)]
                    for k in reversed(range(side)):
                        values = [x - L[k][i] * y for x, y in zip(values, block[k], strict=True)]
                    A = with_values(A, target + side * i, values)
                return A

            return self._over_columns_until(pattern, K, t, subtract, A)

        return fori_loop(0, self._row_count(pattern, K), eliminate, A)

    def _over_columns_until(
        self, pattern: BlockPattern, K: Any, t: Any, body: Callable[[Any, Any], Any], carry: Any
    ) -> Any:
        """The carry after body(J, carry) for the blocks (K, J) that are not right of block t of the row."""
        return fori_loop(0, t + 1, lambda u, carry: body(self._column(pattern, K, u), carry), carry)

    def _block_at(self, A: MutableArray, start: Any) -> list[list[Any]]:
        """The block that begins at this position."""
        return [[A[start + self.side * k + j] for j in range(self.side)] for k in range(self.side)]

    def _lower_triangle(self, A: MutableArray, start: Any) -> list[list[Any]]:
        """The lower triangle of the block that begins at this position."""
        return [[A[start + self.side * k + j] for j in range(k + 1)] for k in range(self.side)]

    def _vector(self, x: MutableArray, K: Any) -> list[Any]:
        """The entries of a vector in block row K."""
        return [x[self.side * K + k] for k in range(self.side)]


def _diagonal_parts(n: int, entries: Sequence[tuple[int, int]], side: int) -> list[int]:
    """The sizes of diagonal parts of a matrix without an entry between them: the smallest ones, of which
    neighbours share a block of this side where they fit into one.
    """
    lowest = list(range(n + 1))
    for i, j in entries:
        lowest[i] = min(lowest[i], j)
    for i in reversed(range(n)):
        lowest[i] = min(lowest[i], lowest[i + 1])
    starts = [i for i in range(n + 1) if lowest[i] == i]
    sizes: list[int] = []
    for a, b in pairwise(starts):
        if sizes and sizes[-1] + b - a <= side:
            sizes[-1] += b - a
        else:
            sizes.append(b - a)
    return sizes


def _factor_block(a: list[list[Any]]) -> tuple[list[list[Any]], list[Any]]:
    """L and the reciprocals of D of one diagonal block, from its lower triangle."""
    side = len(a)
    reciprocals: list[Any] = [None] * side
    l: list[list[Any]] = [[] for _ in range(side)]
    for k in reversed(range(side)):
        reciprocals[k] = math.inf if is_zero(a[k][k]) else 1 / a[k][k]
        l[k] = [a[k][i] * reciprocals[k] for i in range(k)]
        for i in range(k):
            for j in range(i + 1):
                a[i][j] = a[i][j] - l[k][i] * a[k][j]
    return l, reciprocals


def with_values(array: MutableArray, start: Any, values: Iterable[Any]) -> MutableArray:
    """The array with these values stored from the position `start` on."""
    for k, value in enumerate(values):
        array = array.set(start + k, value)
    return array
