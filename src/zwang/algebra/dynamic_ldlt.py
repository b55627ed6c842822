"""L D L^T of symmetric matrices whose size is known only when it comes to it: by square tiles, row after row."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import Any, NamedTuple

from zwang.algebra.blocked_ldlt import SIDE, with_values
from zwang.scalar import MutableArray, Table, empty, fori_loop, table

TILE = SIDE * SIDE
WITHIN = range(SIDE)


def solve_dynamic_ldlt(
    tiles: Any, most: int, entry: Callable[[Any, Any], Any], right: Callable[[Any], Any]
) -> MutableArray:
    """x (SIDE most,) of B x = b for the positive definite B of `tiles` tiles a side, an index of at most `most`.

    entry(i, j): B_ij, j <= i. right(i): b_i. Each row of tiles is worked out from those before. In whatever tiles entries lie, they are worked out
    in the same order: further rows, zero but for B_ii = 1, change no bit. Source: Golub, Van Loan, Matrix Computations, 4.2.
    """
    first = table([K * (K + 1) // 2 * TILE for K in range(most)])
    L, row = (empty(size * TILE) for size in (most * (most + 1) // 2, most))
    reciprocals, x = (empty(most * SIDE) for _ in range(2))
    e = _Elimination(first, entry, right)
    L, _, reciprocals, x = fori_loop(0, tiles, e.row, (L, row, reciprocals, x))

    def scale(K: Any, x: MutableArray) -> MutableArray:
        return with_values(x, SIDE * K, [x[SIDE * K + c] * reciprocals[SIDE * K + c] for c in WITHIN])

    x = fori_loop(0, tiles, scale, x)
    return fori_loop(0, tiles, lambda K, x: _back(first, L, K, x), x, reverse=True)


class _Elimination(NamedTuple):
    """The matrix B and b, and from which place on a row of tiles of L is kept."""

    first: Table
    entry: Callable[[Any, Any], Any]
    right: Callable[[Any], Any]

    def row(self, K: Any, carry: Any) -> Any:
        """Row K of L and 1/D, and of x of L x = b; `row` is that of L D on its way."""
        L, row, reciprocals, x = carry
        row = fori_loop(0, K, lambda I, row: self._column(K, I, L, row), row)
        here = [SIDE * K + a for a in WITHIN]
        own = [[self.entry(here[a], here[b]) for b in range(a + 1)] for a in WITHIN]
        mine = [self.right(i) for i in here]

        def take_out(J: Any, carry: Any) -> Any:
            """What the tile in column J takes from the one on the diagonal and from b, and that tile of L."""
            L, own, mine = carry
            y = _tile(row, TILE * J)
            l = [[y[a][c] * reciprocals[SIDE * J + c] for c in WITHIN] for a in WITHIN]
            own = [[_less(own[a][b], y[a], l[b]) for b in range(a + 1)] for a in WITHIN]
            mine = [_less(mine[a], l[a], [x[SIDE * J + c] for c in WITHIN]) for a in WITHIN]
            return with_values(L, self.first[K] + TILE * J, chain(*l)), own, mine

        L, own, mine = fori_loop(0, K, take_out, (L, own, mine))
        l, inverse = [[0.0] * SIDE for _ in WITHIN], []
        for c in WITHIN:
            inverse.append(1 / own[c][c])
            for a in range(c + 1, SIDE):
                l[a][c] = own[a][c] * inverse[c]
                mine[a] = mine[a] - l[a][c] * mine[c]
                for b in range(c + 1, a + 1):
                    own[a][b] = own[a][b] - own[a][c] * l[b][c]
        L = with_values(L, self.first[K] + TILE * K, chain(*l))
        return L, row, with_values(reciprocals, SIDE * K, inverse), with_values(x, SIDE * K, mine)

    def _column(self, K: Any, I: Any, L: MutableArray, row: MutableArray) -> MutableArray:
        """The row of L D with its tile in column I, from those before."""
        own = [[self.entry(SIDE * K + a, SIDE * I + b) for b in WITHIN] for a in WITHIN]

        def take_out(J: Any, own: Any) -> Any:
            left, right = _tile(row, TILE * J), _tile(L, self.first[I] + TILE * J)
            return [[_less(own[a][b], left[a], right[b]) for b in WITHIN] for a in WITHIN]

        own, l = fori_loop(0, I, take_out, own), _tile(L, self.first[I] + TILE * I)
        for b in WITHIN:
            for a in WITHIN:
                own[a][b] = _less(own[a][b], own[a][:b], l[b][:b])
        return with_values(row, TILE * I, chain(*own))


def _back(first: Table, L: MutableArray, K: Any, x: MutableArray) -> MutableArray:
    """x of L^T x = b in row K, those below it being taken out already; and it taken out of those above."""
    own, l = [x[SIDE * K + c] for c in WITHIN], _tile(L, first[K] + TILE * K)
    for c in reversed(WITHIN):
        for a in reversed(range(c + 1, SIDE)):
            own[c] = own[c] - l[a][c] * own[a]

    def take_out(J: Any, x: MutableArray) -> MutableArray:
        l = _tile(L, first[K] + TILE * J)
        above = [_less(x[SIDE * J + c], [l[a][c] for a in reversed(WITHIN)], own[::-1]) for c in WITHIN]
        return with_values(x, SIDE * J, above)

    return fori_loop(0, K, take_out, with_values(x, SIDE * K, own))


def _tile(store: MutableArray, start: Any) -> list[list[Any]]:
    return [[store[start + SIDE * a + b] for b in WITHIN] for a in WITHIN]


def _less(x: Any, left: list[Any], right: list[Any]) -> Any:
    """x - left . right."""
    for a, b in zip(left, right, strict=True):
        x = x - a * b
    return x
