"""L D L^T of symmetric matrices whose size is known only when it comes to it: by square tiles, row after row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from zwang.algebra.tiles import SIDE, with_values
from zwang.scalar import Scratch, Span, for_each, scratch, table


def solved_in_tiles(
    tiles: Any, most: int, entry: Callable[[Any, Any], Any], right: Callable[[Any], Any]
) -> Scratch:
    """x (SIDE most,) of B x = b for the positive definite B of `tiles` tiles a side, an index of at most `most`.

    entry(i, j): B_ij, j <= i. right(i): b_i. Each row of tiles is worked out from those before.
    In whatever tiles entries lie, they are worked out in the same order: further rows, zero but for B_ii = 1, change no bit. Source: Golub, Van Loan, Matrix Computations, 4.2.
    """
    first = table([K * (K + 1) // 2 * SIDE * SIDE for K in range(most)])
    L, row = (
        scratch(most * (most + 1) // 2 * SIDE * SIDE, blank=True),
        scratch(most * SIDE * SIDE, blank=True),
    )
    reciprocals, x = scratch(most * SIDE, blank=True), scratch(most * SIDE, blank=True)
    within = range(SIDE)

    def tile(store: Scratch, start: Any) -> list[list[Any]]:
        return [[store[start + SIDE * a + b] for b in within] for a in within]

    def each_row(K: Any, carry: Any) -> Any:
        """Row K of L D, then of L; and what it takes from b."""
        L, row, reciprocals, x = carry

        def column(I: Any, row: Scratch) -> Scratch:
            own = [[entry(SIDE * K + a, SIDE * I + b) for b in within] for a in within]

            def take_out(J: Any, own: Any) -> Any:
                left, right = tile(row, SIDE * SIDE * J), tile(L, first[I] + SIDE * SIDE * J)
                return [[_less(own[a][b], left[a], right[b]) for b in within] for a in within]

            own, l = for_each(Span(0, I), take_out, own), tile(L, first[I] + SIDE * SIDE * I)
            for b in within:
                for a in within:
                    own[a][b] = _less(own[a][b], own[a][:b], l[b][:b])
            return with_values(row, SIDE * SIDE * I, [y for line in own for y in line])

        row = for_each(Span(0, K), column, row)
        here = [SIDE * K + a for a in within]
        own = [[entry(here[a], here[b]) for b in range(a + 1)] for a in within]
        mine = [right(i) for i in here]

        def finish(J: Any, carry: Any) -> Any:
            L, own, mine = carry
            y = tile(row, SIDE * SIDE * J)
            l = [[y[a][c] * reciprocals[SIDE * J + c] for c in within] for a in within]
            before = [x[SIDE * J + c] for c in within]
            own = [[_less(own[a][b], y[a], l[b]) for b in range(a + 1)] for a in within]
            mine = [_less(mine[a], l[a], before) for a in within]
            return with_values(L, first[K] + SIDE * SIDE * J, [z for line in l for z in line]), own, mine

        L, own, mine = for_each(Span(0, K), finish, (L, own, mine))
        l, inverse = [[0.0] * SIDE for _ in within], []
        for c in within:
            inverse.append(1 / own[c][c])
            for a in range(c + 1, SIDE):
                l[a][c] = own[a][c] * inverse[c]
                mine[a] = mine[a] - l[a][c] * mine[c]
                for b in range(c + 1, a + 1):
                    own[a][b] = own[a][b] - own[a][c] * l[b][c]
        L = with_values(L, first[K] + SIDE * SIDE * K, [z for line in l for z in line])
        return L, row, with_values(reciprocals, SIDE * K, inverse), with_values(x, SIDE * K, mine)

    def back(K: Any, x: Scratch) -> Scratch:
        """Row K of L^T, of those below it taken out already."""
        own, l = [x[SIDE * K + c] for c in within], tile(L, first[K] + SIDE * SIDE * K)
        for c in reversed(within):
            for a in reversed(range(c + 1, SIDE)):
                own[c] = own[c] - l[a][c] * own[a]

        def take_out(J: Any, x: Scratch) -> Scratch:
            l = tile(L, first[K] + SIDE * SIDE * J)
            above = [_less(x[SIDE * J + c], [l[a][c] for a in reversed(within)], own[::-1]) for c in within]
            return with_values(x, SIDE * J, above)

        return for_each(Span(0, K), take_out, with_values(x, SIDE * K, own))

    def scale(K: Any, x: Scratch) -> Scratch:
        return with_values(x, SIDE * K, [x[SIDE * K + c] * reciprocals[SIDE * K + c] for c in within])

    L, row, reciprocals, x = for_each(Span(0, tiles), each_row, (L, row, reciprocals, x))
    return for_each(Span(0, tiles, backwards=True), back, for_each(Span(0, tiles), scale, x))


def _less(x: Any, left: list[Any], right: list[Any]) -> Any:
    """x - left . right."""
    for a, b in zip(left, right, strict=True):
        x = x - a * b
    return x
