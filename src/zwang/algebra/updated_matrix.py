"""Symmetric positive definite matrices M + J^T D J: storage, and solution by the factorisation that suits the
size: unrolled entry by entry, or in loops over the blocks that are nonzero in the present state.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from zwang.algebra.blocked_ldlt import BlockedFactors, BlockedLDLT, BlockPattern
from zwang.algebra.factorization import Factors, factor
from zwang.algebra.ordered_ldlt import blocked_ldlt
from zwang.algebra.woodbury import RowRoots, Woodbury
from zwang.scalar import (
    MutableArray,
    cond,
    empty,
    fori_loop,
    is_zero,
    logical_or,
)
from zwang.scalar.compact_loop import IndexSet
from zwang.scalar.stacked_pytree import StackedPytree

# up to this number of multiplications the factorisation is unrolled entry by entry
UNROLLED_MULTIPLICATIONS = 10_000
FILL_IN_RATIO = 4  # fill-in is tested for where it multiplies the cost of the factorisation by this, ...
UNROLLED_FILL_IN = 4_000  # ... and is then unrolled up to this number of multiplications

Entries = Iterable[tuple[int, int]]
Columns = Sequence[int]
PlacesOfBlock = Callable[[Any], list[tuple[int, int, Any]]]


class RowBlocks(NamedTuple):
    """Blocks of rows of J with the same number of columns, ascending, that may be nonzero.

    active: the active blocks of this state; any_active: whether there are any.
    """

    columns: Sequence[Columns]
    active: IndexSet
    any_active: Any


class UpdatedMatrix:
    """Matrices M + J^T D J (n, n) with the same M and the same active rows, as arrays of their entries.

    M (n, n): symmetric, with the sparsity of a tree with these parents. entries: the positions (i, j),
    i >= j, at which M, or J^T D J whichever rows are active, may be nonzero. row_blocks: the rows of J that
    are active in some states. size: length of the arrays.
    """

    def __init__(
        self, M: Any, parents: Sequence[int], entries: Entries, row_blocks: Sequence[RowBlocks]
    ) -> None:
        self.n, self._entries, self._M = len(M), set(entries), M
        self._filled = _filled(self.n, self._entries, row_blocks)
        self._blocked, self._position = None, dict[tuple[int, int], int]()
        cost = factorization_cost(self._filled)
        self._fills_in = cost >= FILL_IN_RATIO * max(factorization_cost(self._entries), 1.0)
        if cost > (UNROLLED_FILL_IN if self._fills_in else UNROLLED_MULTIPLICATIONS):
            self._blocked = blocked_ldlt(
                self.n, self._entries | {(i, j) for i, j in enumerate(parents) if j >= 0}
            )
            self.size = self._blocked.size
            self._pattern = _pattern(self._blocked, row_blocks)
            nonzero = [(i, j) for i, j in sorted(self._entries) if not is_zero(M[i][j])]
            self._stored_M = StackedPytree([(self.place(i, j), M[i][j]) for i, j in nonzero])
        else:
            self._position = {e: k for k, e in enumerate(sorted(self._filled))}
            self.size = len(self._filled)
            active = [b.any_active for b in row_blocks if any(not self._has(own) for own in b.columns)]
            self._is_filled = reduce(logical_or, active, False)

    def place(self, i: int, j: int) -> int:
        """The place of the entry (i, j), i >= j, in the array."""
        return self._position[i, j] if self._blocked is None else self._blocked.place(i, j)

    def places(self, columns: Sequence[Columns]) -> PlacesOfBlock:
        """The function of k, which may be a traced index, to (i, j, place) of all entries i >= j of the dense
        matrix with the rows and columns columns[k].

        Columns that only pad a block repeat the last one; their entries are zero.
        """
        pairs = [(i, j) for i in range(len(columns[0])) for j in range(i + 1)]
        if self._blocked is None:
            stacked = StackedPytree([[self._position[own[i], own[j]] for i, j in pairs] for own in columns])
            return lambda k: [(i, j, place) for (i, j), place in zip(pairs, stacked[k], strict=True)]
        blocked, stacked = self._blocked, StackedPytree([tuple(own) for own in columns])

        def of_block(k: Any) -> list[tuple[int, int, Any]]:
            own = stacked[k]
            return [(i, j, blocked.place(own[i], own[j])) for i, j in pairs]

        return of_block

    def array(self) -> MutableArray:
        """The array of M, to which entries of J^T D J are added."""
        if self._blocked is None:
            H = empty(self.size)
            for (i, j), k in self._position.items():
                H = H.set(k, self._M[i][j])
            return H
        H, stored = self._blocked.cleared(empty(self.size), self._pattern), self._stored_M

        def store(k: Any, H: MutableArray) -> MutableArray:
            place, value = stored[k]
            return H.set(place, value)

        return fori_loop(0, len(stored.pytrees), store, H)

    def solved(self, H: MutableArray, b: Any) -> np.ndarray:
        """x (n,) of H x = b; the array H must not be used any more."""
        if self._blocked is not None or not self._fills_in:
            return self.factors(H).solve(b)
        return cond(
            self._is_filled,
            lambda H: self._unrolled(self._filled, H).solve(b),
            lambda H: self._unrolled(self._entries, H).solve(b),
            H,
        )

    def factors(self, H: MutableArray) -> Factors | _BlockedFactors:
        """The factors of H, with fill-in; the array H must not be used any more."""
        if self._blocked is None:
            return self._unrolled(self._filled, H)
        return _BlockedFactors(self._blocked, self._blocked.factor(H, self._pattern))

    def _unrolled(self, entries: set[tuple[int, int]], H: MutableArray) -> Factors:
        """The factors of the matrix, of which these entries may be nonzero, entry by entry."""
        lower = [
            [H[self._position[i, j]] if (i, j) in entries else 0 for j in range(i + 1)] for i in range(self.n)
        ]
        return factor(lower, most=UNROLLED_MULTIPLICATIONS)

    def _has(self, columns: Columns) -> bool:
        """Whether the dense matrix with these rows and columns has entries of every state only."""
        return dense_entries(columns) <= self._entries


class UpdatedFactors(NamedTuple):
    """The solver of a matrix M + J^T D J, for one right-hand side."""

    matrix: UpdatedMatrix
    H: MutableArray

    def solve(self, b: Any) -> np.ndarray:
        """(M + J^T D J)^-1 b (n,)."""
        return self.matrix.solved(self.H, b)

    def update(self, roots: Sequence[RowRoots]) -> Woodbury:
        """The solver of H + C^T C for further rows C."""
        return Woodbury.of(self.matrix.factors(self.H), roots)


class _BlockedFactors(NamedTuple):
    """Factors in blocks, as `Factors`."""

    matrix: BlockedLDLT
    factors: BlockedFactors

    @property
    def reciprocals(self) -> np.ndarray:
        """1/D, with the rows of padding."""
        found = self.factors.reciprocals
        return np.array([found[k] for k in range(found.shape[0])])

    def solve(self, b: Any) -> np.ndarray:
        """H^-1 b (n,)."""
        return self.matrix.solve(self.factors, b)

    def solve_transposed(self, b: Any) -> np.ndarray:
        """x of L^T x = b, with the rows of padding."""
        return self.matrix.solve_transposed(self.factors, b)

    def solve_scaled(self, b: Any) -> np.ndarray:
        """x (n,) of D L x = b, where b has the rows of padding."""
        return self.matrix.solve_scaled(self.factors, b)


def dense_entries(columns: Columns) -> set[tuple[int, int]]:
    """Lower triangle of the dense matrix with these rows and columns."""
    return {(i, j) for i in columns for j in columns if j <= i}


def factorization_cost(entries: Entries) -> float:
    """Approximate number of multiplications that factorise a matrix with these entries."""
    return sum(n * n / 2 for n in Counter(i for i, _ in entries).values())


def _filled(n: int, entries: set[tuple[int, int]], row_blocks: Sequence[RowBlocks]) -> set[tuple[int, int]]:
    """The entries, and those of row blocks, as far as the factorisation may be unrolled."""
    filled = set(entries)
    for columns in (columns for own in row_blocks for columns in own.columns):
        # n rows with N entries in all cost at least N^2 / 2n multiplications
        if len(filled) ** 2 > 2 * n * UNROLLED_MULTIPLICATIONS:
            break
        filled |= dense_entries(columns)
    return filled


def _pattern(matrix: BlockedLDLT, row_blocks: Sequence[RowBlocks]) -> BlockPattern:
    """The nonzero blocks in this state."""

    def mark(marks: Any) -> Any:
        for own in row_blocks:
            pairs = [matrix.block_pairs(columns) for columns in own.columns]
            most = max(map(len, pairs), default=0)
            # a diagonal block stands where a block of rows has fewer blocks than others
            stacked = StackedPytree([[*found, *[(0, 0)] * (most - len(found))] for found in pairs])
            if most:
                marks = _with_marks(matrix, own, stacked, marks)
        return marks

    return matrix.pattern(mark)


def _with_marks(matrix: BlockedLDLT, own: RowBlocks, pairs: StackedPytree, marks: Any) -> Any:
    """The marks, with those of the blocks with active rows."""

    def mark(block: Any, marks: Any) -> Any:
        for I, J in pairs[block]:
            marks = matrix.marked(marks, I, J)
        return marks

    return matrix.over_active(own.active, mark, marks)
