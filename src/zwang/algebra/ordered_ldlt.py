"""Blocked L^T D L factorisation in an order of elimination that keeps the fill-in small.

For matrices whose blocks are coupled only by the rows active in a state, as those of many bodies in contact
are. Each world has an order of its own, that of minimum degree: the next block row to be eliminated is one
that is coupled with few of the others. As in multiple elimination, all rows of a degree are eliminated in one
pass. Source: George, Liu, "The evolution of the minimum degree ordering algorithm" (SIAM Review 31, 1989).

Coupled rows are therefore eliminated lane by lane, and rows without coupling in all lanes together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from zwang.algebra.blocked_ldlt import (
    Arrays,
    BlockedFactors,
    BlockedLDLT,
    BlockPattern,
    with_values,
)
from zwang.scalar import (
    MutableArray,
    cond,
    empty,
    equal,
    fori_loop,
    lane_by_lane,
    lane_maximum,
    less,
    logical_not,
    maximum,
    minimum,
    where,
    while_loop,
    zeros,
)
from zwang.scalar.compact_loop import IndexSet


class CouplingGraph(NamedTuple):
    """The couplings of block rows, also those that fill-in has added: for each row the number of its
    neighbours, these, and how many of them are not yet eliminated. couplings: the number of all.
    """

    sizes: MutableArray
    neighbours: MutableArray
    degrees: MutableArray
    couplings: Any


class _SymbolicElimination(NamedTuple):
    """State of the symbolic elimination: remaining: the coupled rows that are not eliminated, `left` of them;
    done: 1 for each row that is. limit: the largest degree of a row that is eliminated in this pass.
    """

    graph: CouplingGraph
    pattern: BlockPattern
    remaining: MutableArray
    left: Any
    done: MutableArray
    limit: Any


def blocked_ldlt(n: int, entries: Iterable[tuple[int, int]]) -> BlockedLDLT:
    """The storage of a matrix (n, n) with these entries in every state: in an order of its own if these
    couple no blocks.
    """
    entries = list(entries)
    natural = BlockedLDLT(n, entries)
    return natural if natural.is_coupled else OrderedLDLT(n, entries)


class OrderedLDLT(BlockedLDLT):
    """Storage, factorisation and solution of a symmetric positive definite matrix (n, n), as `BlockedLDLT`.

    A block beside the diagonal is stored where its lower block row is, transposed once the other one has been
    eliminated.
    """

    def pattern(self, mark: Callable[[Any], Any]) -> BlockPattern:
        """The nonzero blocks after fill-in, and the order of elimination, of each world."""
        n = self.count
        graph = CouplingGraph(zeros(n), empty((n, n)), zeros(n), 0.0)
        pattern = BlockPattern(zeros(n), empty((n, n)), empty(n), 0.0, zeros(n))

        def of_lane(carry: tuple[CouplingGraph, BlockPattern]) -> tuple[CouplingGraph, BlockPattern]:
            graph, pattern = mark(carry[0]), carry[1]
            is_any = graph.couplings > 0
            return cond(is_any, self._eliminated_graph, lambda *carry: carry, graph, pattern)

        return lane_by_lane(of_lane, (graph, pattern))[1]

    def over_active(self, active: IndexSet, body: Callable[[Any, Any], Any], carry: Any) -> Any:
        """The carry after body(k, carry) for the blocks of rows that are active in a world."""
        return active.for_each(body, carry)

    def marked(self, marks: CouplingGraph, I: Any, J: Any) -> CouplingGraph:
        """The graph with the coupling of two block rows, if they are different ones."""

        def compare(k: Any, is_known: Any) -> Any:
            return maximum(is_known, where(equal(marks.neighbours[I, k], 1.0 * J), 1.0, 0.0))

        known = where(equal(1.0 * I, 1.0 * J), 1.0, 0.0)
        known = fori_loop(0, lane_maximum(marks.sizes[I], self.count), compare, known)

        def join(graph: CouplingGraph) -> CouplingGraph:
            sizes, neighbours, degrees, couplings = graph
            for row, other in ((I, J), (J, I)):
                place = lane_maximum(sizes[row], self.count - 1)
                neighbours = neighbours.set((row, place), 1.0 * other)
                sizes, degrees = sizes.set(row, sizes[row] + 1), degrees.set(row, degrees[row] + 1)
            return CouplingGraph(sizes, neighbours, degrees, couplings + 1)

        return cond(known < 1, join, lambda graph: graph, marks)

    def _eliminated_graph(
        self, graph: CouplingGraph, pattern: BlockPattern
    ) -> tuple[CouplingGraph, BlockPattern]:
        """The graph with the fill-in, and the pattern of the world whose graph this is."""
        n = self.count

        def find(K: Any, found: tuple[MutableArray, MutableArray, Any]) -> Any:
            def append(coupled: MutableArray, rows: MutableArray, number: Any) -> Any:
                return coupled.set(K, 1.0), rows.set(lane_maximum(number, n - 1), 1.0 * K), number + 1

            return cond(graph.degrees[K] > 0, append, lambda *found: found, *found)

        coupled, rows, number = fori_loop(0, n, find, (pattern.coupled, empty(n), 0.0), unroll=False)
        pattern = pattern._replace(coupled=coupled)
        start = _SymbolicElimination(graph, pattern, rows, number, zeros(n), 1.0)
        last = while_loop(lambda s: s.left > 0, self._passed, start)
        return last.graph, last.pattern

    def _passed(self, s: _SymbolicElimination) -> _SymbolicElimination:
        """State after a pass over the remaining rows, which eliminates those of a degree up to the limit."""

        def visit(p: Any, carry: tuple[_SymbolicElimination, Any]) -> tuple[_SymbolicElimination, Any]:
            s, kept = carry
            K = lane_maximum(s.remaining[p], self.count - 1)

            def keep(s: _SymbolicElimination, kept: Any) -> tuple[_SymbolicElimination, Any]:
                place = lane_maximum(kept, self.count - 1)
                return s._replace(remaining=s.remaining.set(place, 1.0 * K)), kept + 1

            return cond(
                s.graph.degrees[K] <= s.limit,
                lambda s, kept: (self._eliminated_row(s, K), kept),
                keep,
                s,
                kept,
            )

        s, kept = fori_loop(0, lane_maximum(s.left, self.count), visit, (s, 0.0))
        return s._replace(left=kept, limit=where(less(kept, s.left), s.limit, s.limit + 1))

    def _eliminated_row(self, s: _SymbolicElimination, K: Any) -> _SymbolicElimination:
        """State after the elimination of a row, which couples all its neighbours."""
        graph, pattern, done = s.graph, s.pattern, s.done.set(K, 1.0)

        def collect(k: Any, carry: tuple[MutableArray, Any]) -> tuple[MutableArray, Any]:
            J = lane_maximum(graph.neighbours[K, k], self.count - 1)

            def append(columns: MutableArray, number: Any) -> tuple[MutableArray, Any]:
                return columns.set((K, lane_maximum(number, self.count - 1)), 1.0 * J), number + 1

            return cond(done[J] < 1, append, lambda *carry: carry, *carry)

        size = lane_maximum(graph.sizes[K], self.count)
        columns, number = fori_loop(0, size, collect, (pattern.columns, 0.0))
        place = lane_maximum(pattern.number, self.count - 1)
        pattern = BlockPattern(
            pattern.counts.set(K, number), columns, pattern.order.set(place, 1.0 * K), pattern.number + 1,
            pattern.coupled,
        )  # fmt: skip

        def join(t: Any, graph: CouplingGraph) -> CouplingGraph:
            I = self._column(pattern, K, t)
            graph = graph._replace(degrees=graph.degrees.set(I, graph.degrees[I] - 1))
            return fori_loop(0, t, lambda u, g: self.marked(g, I, self._column(pattern, K, u)), graph)

        graph = fori_loop(0, self._row_count(pattern, K), join, graph)
        return s._replace(graph=graph, pattern=pattern, done=done)

    # ------------------------------------------------------------------------------ in the order of a world

    def _with_coupled_rows(
        self, pattern: BlockPattern, of_lane: Callable[[Any, Any], Any], carry: Any
    ) -> Any:
        """The carry after of_lane(number of coupled rows, carry), lane by lane where there are any."""

        def each(carry: Any) -> Any:
            return lane_by_lane(lambda carry: of_lane(lane_maximum(pattern.number, self.count), carry), carry)

        is_any = 1.0 * lane_maximum(pattern.number, 1) > 0
        return cond(is_any, each, lambda carry: carry, carry)

    def _over_single_rows(self, pattern: BlockPattern, body: Callable[[Any, Any], Any], carry: Any) -> Any:
        """The carry after body(K, carry) for the rows that are not coupled."""

        def visit(K: Any, carry: Any) -> Any:
            is_single = pattern.coupled[K] < 1
            return cond(is_single, lambda carry: body(K, carry), lambda carry: carry, carry)

        return fori_loop(0, self.count, visit, carry, unroll=False)

    def _ordered(self, pattern: BlockPattern, r: Any) -> Any:
        """The block row that is eliminated at place r of the order."""
        return lane_maximum(pattern.order[r], self.count - 1)

    def _cleared_blocks(self, A: MutableArray, pattern: BlockPattern) -> MutableArray:
        def clear(number: Any, A: MutableArray) -> MutableArray:
            return fori_loop(
                0, number, lambda r, A: self._cleared_row(A, pattern, self._ordered(pattern, r)), A
            )

        A = fori_loop(0, self.count, lambda K, A: self._cleared_block(A, K, K), A, unroll=False)
        return self._with_coupled_rows(pattern, clear, A)

    def factor(self, A: MutableArray, pattern: BlockPattern) -> BlockedFactors:
        """Factors of the matrix whose entries are in A, which becomes part of them."""

        def eliminate(K: Any, arrays: Arrays) -> Arrays:
            return self._with_row_factored(arrays, pattern, K)

        def coupled(number: Any, arrays: Arrays) -> Arrays:
            return fori_loop(0, number, lambda r, a: eliminate(self._ordered(pattern, r), a), arrays)

        arrays = A, empty(self.count * self.side)
        arrays = self._with_coupled_rows(pattern, coupled, arrays)
        DL, reciprocals = self._over_single_rows(pattern, eliminate, arrays)
        return BlockedFactors(DL, reciprocals, pattern)

    def _over_rows_backward(self, factors: BlockedFactors, x: MutableArray) -> MutableArray:
        pattern = factors.pattern

        def coupled(number: Any, x: MutableArray) -> MutableArray:
            return fori_loop(0, number, lambda r, x: self._backward(factors, self._ordered(pattern, r), x), x)

        x = self._with_coupled_rows(pattern, coupled, x)
        return self._over_single_rows(pattern, lambda K, x: self._backward(factors, K, x), x)

    def _over_rows_forward(self, factors: BlockedFactors, x: MutableArray) -> MutableArray:
        pattern = factors.pattern

        def coupled(number: Any, x: MutableArray) -> MutableArray:
            return fori_loop(
                0, number, lambda r, x: self._forward(factors, self._ordered(pattern, r), x), x, reverse=True
            )

        x = self._with_coupled_rows(pattern, coupled, x)
        return self._over_single_rows(pattern, lambda K, x: self._forward(factors, K, x), x)

    # ------------------------------------------------------------------------------ blocks of both triangles

    def _start(self, I: Any, J: Any) -> Any:
        """Position of the first entry of block (I, J), or of (J, I) if that is in the lower triangle."""
        if I is J:
            return super()._start(I, J)
        i, j, last = 1.0 * I, 1.0 * J, self.count - 1
        return super()._start(lane_maximum(maximum(i, j), last), lane_maximum(minimum(i, j), last))

    def _divided(self, A: MutableArray, K: Any, J: Any, l: list[list[Any]]) -> MutableArray:
        """The array with l^-T A_KJ, with the rows of K, in place of the block (K, J) or (J, K)."""
        start, side = self._start(K, J), self.side

        def transpose(A: MutableArray) -> MutableArray:
            a = self._block_at(A, start)
            return with_values(A, start, [a[j][k] for k in range(side) for j in range(side)])

        A = cond(less(1.0 * K, 1.0 * J), transpose, lambda A: A, A)
        return super()._divided(A, K, J, l)

    def _over_columns_until(
        self, pattern: BlockPattern, K: Any, t: Any, body: Callable[[Any, Any], Any], carry: Any
    ) -> Any:
        """The carry after body(J, carry) for the blocks (K, J) of the row that are not right of block t."""
        end = 1.0 * self._column(pattern, K, t)

        def visit(u: Any, carry: Any) -> Any:
            J = self._column(pattern, K, u)
            is_right = less(end, 1.0 * J)
            return cond(logical_not(is_right), lambda carry: body(J, carry), lambda carry: carry, carry)

        return fori_loop(0, self._row_count(pattern, K), visit, carry)
