"""L^T D L of larger matrices, by square tiles: loops over tiles, whose text stays short where that of all entries would be too long to compile."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from zwang.scalar import MutableArray, empty, fori_loop, table, zeros

SIDE = 4


class BlockedFactors(NamedTuple):
    """L (unit lower, below the diagonal), by tiles, and the reciprocals of D, of a matrix L^T D L."""

    L: MutableArray
    reciprocals: MutableArray


class BlockedLDLT:
    """Where the entries (i >= j) of a symmetric matrix (n, n) with this structure lie, tile by tile, and how it is factored and solved.

    Rows are filled up at the beginning to a multiple of the tiles' side. Tiles that stay zero have no place.
    """

    def __init__(self, n: int, entries: Iterable[tuple[int, int]]) -> None:
        self.n, self.filling = n, -n % SIDE
        self.count = (n + self.filling) // SIDE
        own = {(k, k) for k in range(self.count)}
        own |= {((i + self.filling) // SIDE, (j + self.filling) // SIDE) for i, j in entries}
        for K in reversed(range(self.count)):  # what elimination fills in
            left = [J for J in range(K) if (K, J) in own]
            own |= {(I, J) for I in left for J in left if J <= I}
        self._start = {tile: k * SIDE * SIDE for k, tile in enumerate(sorted(own))}

    @property
    def size(self) -> int:
        """How many numbers all tiles hold."""
        return len(self._start) * SIDE * SIDE

    def place(self, i: int, j: int) -> int:
        """Where the entry (i, j), i >= j, lies."""
        i, j = i + self.filling, j + self.filling
        return self._start[i // SIDE, j // SIDE] + i % SIDE * SIDE + j % SIDE

    def factor(self, A: MutableArray) -> BlockedFactors:
        """The factors of the positive definite matrix with these entries.

        From the last row of tiles to the first, each taking out the rows below it and then finishing itself. Source: Featherstone, RBDA
        (2008), Table 6.3, row by row the same numbers.
        """
        L, reciprocals = empty(self.size), empty(self.count * SIDE)
        A = fori_loop(0, self.size, lambda k, own, given=A: own.set(k, given[k]), empty(self.size))
        for k in range(self.filling):
            A = A.set(k * SIDE + k, 1.0)
        for I in reversed(range(self.count)):
            A = _each(self._below(I), _taken_out(L), A)
            d = self._start[I, I]
            l, own = _diagonal([[A[d + SIDE * k + j] for j in range(k + 1)] for k in range(SIDE)])
            for k in range(SIDE):
                L = with_values(L, d + SIDE * k, l[k])
            reciprocals = with_values(reciprocals, SIDE * I, own)
            A, L = _each([(self._start[I, J],) for J in self._beside(I)], _finished(l, own), (A, L))
        return BlockedFactors(L, reciprocals)

    def solve(self, factors: BlockedFactors, b: Any) -> np.ndarray:
        """x of L^T D L x = b. Source: Featherstone, RBDA (2008), Table 6.5."""
        L, x = factors.L, with_values(zeros(self.count * SIDE), self.filling, b)
        within = [(k, i) for k in range(SIDE) for i in range(k)]
        for K in reversed(range(self.count)):
            own, d = [x[SIDE * K + k] for k in range(SIDE)], self._start[K, K]
            for k, i in reversed(within):
                own[i] = own[i] - L[d + SIDE * k + i] * own[k]
            x = with_values(x, SIDE * K, own)
            x = _each([(self._start[K, I], SIDE * I) for I in self._beside(K)], _pushed(L, own), x)
        for K in range(self.count):
            d = self._start[K, K]
            own = [x[SIDE * K + k] * factors.reciprocals[SIDE * K + k] for k in range(SIDE)]
            own = _each([(self._start[K, I], SIDE * I) for I in self._beside(K)], _pulled(L, x), own)
            for k, i in within:
                own[k] = own[k] - L[d + SIDE * k + i] * own[i]
            x = with_values(x, SIDE * K, own)
        return np.array([x[self.filling + k] for k in range(self.n)])

    def _beside(self, row: int) -> list[int]:
        """The columns left of the diagonal in which this row of tiles has one."""
        return [J for J in range(row) if (row, J) in self._start]

    def _below(self, I: int) -> list[tuple[int, int, int]]:
        """For each row of tiles K that is taken out of row I, and each tile (I, J) there: where (I, J), (K, I) and (K, J) begin."""
        start = self._start
        rows = [K for K in reversed(range(I + 1, self.count)) if (K, I) in start]
        both = [(K, J) for K in rows for J in range(I + 1) if (K, J) in start]
        return [(start[I, J], start[K, I], start[K, J]) for K, J in both]


def _diagonal(a: list[list[Any]]) -> tuple[list[list[Any]], list[Any]]:
    """L and the reciprocals of D of one tile (its lower half)."""
    reciprocals: list[Any] = [None] * SIDE
    l: list[list[Any]] = [[] for _ in range(SIDE)]
    for k in reversed(range(SIDE)):
        reciprocals[k] = 1 / a[k][k]
        l[k] = [a[k][i] * reciprocals[k] for i in range(k)]
        for i in range(k):
            for j in range(i + 1):
                a[i][j] = a[i][j] - l[k][i] * a[k][j]
    return l, reciprocals


def _taken_out(L: MutableArray) -> Callable[[Any, MutableArray], MutableArray]:
    def body(at: Any, A: MutableArray) -> MutableArray:
        """A_IJ - L_KI^T A_KJ."""
        here, left, right = at
        tile = [A[here + k] for k in range(SIDE * SIDE)]
        for k in reversed(range(SIDE)):
            row = [A[right + SIDE * k + j] for j in range(SIDE)]
            for i in range(SIDE):
                factor = L[left + SIDE * k + i]
                for j in range(SIDE):
                    tile[SIDE * i + j] = tile[SIDE * i + j] - factor * row[j]
        return with_values(A, here, tile)

    return body


def _finished(l: list[list[Any]], reciprocals: list[Any]) -> Callable[[Any, Any], Any]:
    def body(at: Any, arrays: tuple[MutableArray, MutableArray]) -> tuple[MutableArray, MutableArray]:
        """The rows of a tile beside the diagonal: those of D L, and L."""
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


def _pushed(L: MutableArray, own: list[Any]) -> Callable[[Any, MutableArray], MutableArray]:
    def body(at: Any, x: MutableArray) -> MutableArray:
        """x_I - L_KI^T x_K."""
        tile, start = at
        values = [x[start + i] for i in range(SIDE)]
        for k in reversed(range(SIDE)):
            values = [value - L[tile + SIDE * k + i] * own[k] for i, value in enumerate(values)]
        return with_values(x, start, values)

    return body


def _pulled(L: MutableArray, x: MutableArray) -> Callable[[Any, list[Any]], list[Any]]:
    def body(at: Any, own: list[Any]) -> list[Any]:
        """x_K - L_KI x_I."""
        tile, start = at
        for i in range(SIDE):
            own = [value - L[tile + SIDE * k + i] * x[start + i] for k, value in enumerate(own)]
        return own

    return body


def _each(places: Sequence[tuple[int, ...]], body: Callable[[Any, Any], Any], carry: Any) -> Any:
    """`body` at all these places, in a loop where they are several."""
    if len(places) < 2:
        return body(places[0], carry) if places else carry
    columns = [table([place[c] for place in places]) for c in range(len(places[0]))]
    return fori_loop(0, len(places), lambda k, carry: body([c[k] for c in columns], carry), carry, unroll=False)


def with_values(store: MutableArray, start: Any, values: Iterable[Any]) -> MutableArray:
    """The array with these values from a place on."""
    for k, value in enumerate(values):
        store = store.set(start + k, value)
    return store
