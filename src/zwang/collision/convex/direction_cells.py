"""The vertex of a polyhedron that is farthest along a direction, found by cells of directions.

The directions are divided into the cells of a grid on the faces of a cube. Each cell has a list of the
vertices that are farthest along some direction in it, a few of perhaps thousands; a vertex is left out where
another one is farther along all four corners of the cell, and so along all directions in it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from zwang.scalar import (
    Table,
    absolute,
    clip,
    cond,
    equal,
    floor,
    fori_loop,
    lane_maximum,
    less,
    less_equal,
    logical_and,
    table,
    where,
    while_loop,
    without_derivatives,
)

FINEST = 16  # cells along an edge of the cube
SAMPLES = np.linspace(0.0, 1.0, 3)  # positions along the sides of a cell, of directions to compare at
TIE = 1e-12  # difference of distances, relative to the size of the polyhedron, below which both are farthest


class DirectionCells(NamedTuple):
    """The vertices of polyhedra by cells.

    sides (n,): cells along an edge of the cube of each polyhedron. cells (n,): the number of its first cell.
    starts: the first vertex of each cell in `numbers` (m,), where they are in the order of the polyhedron;
    padded, so that every sum of a first cell and of a cell in another polyhedron is an index. numbers: those
    of the vertices among the `points` (k, 3), the vertices of all polyhedra. firsts (n, 3): the first vertex
    of each polyhedron. most: cells of a polyhedron.
    """

    sides: Table
    cells: Table
    starts: Table
    numbers: Table
    points: Table
    firsts: Table
    most: int

    def farthest(self, polyhedron: Any, d: np.ndarray) -> np.ndarray:
        """The first vertex (3,) of a polyhedron, by its index, that is farthest along d (3,)."""
        return without_derivatives(lambda d: self._farthest(polyhedron, d), d)

    def _farthest(self, polyhedron: Any, d: np.ndarray) -> np.ndarray:
        """`farthest` of a plain direction."""
        first = self.firsts[polyhedron]
        start = (first @ d, *(1.0 * x for x in first))

        def visit(k: Any, best: Any) -> Any:
            return farther(self.points[self.numbers[k]], d, best)

        return np.array(self._over_cell(polyhedron, d, visit, start)[1:])

    def number_at(self, polyhedron: Any, d: np.ndarray, x: np.ndarray) -> Any:
        """The number of the vertex nearest to x (3,), which is one of those that are farthest along d (3,);
        both are plain numbers.
        """

        def visit(k: Any, best: Any) -> Any:
            number = self.numbers[k]
            return nearer(self.points[number], 1.0 * number, x, best)

        return self._over_cell(polyhedron, d, visit, (np.inf, 0.0))[1]

    def _over_cell(
        self, polyhedron: Any, d: np.ndarray, visit: Callable[[Any, Any], Any], start: tuple[Any, ...]
    ) -> Any:
        """The carry after `carry = visit(k, carry)` for every vertex k in the cell of a direction. Lanes
        whose directions are in one cell share a loop.
        """
        number = _cell_of(d, self.sides[polyhedron])
        number = where(less_equal(0, number), number, 0.0)  # also where it is no number

        def of_lanes(state: Any) -> Any:
            cell = lane_maximum(where(less(state[0], 0.5), number, 0.0), self.most - 1)
            is_own, cell_number = equal(number, 1.0 * cell), self.cells[polyhedron] + cell
            begin, end = self.starts[cell_number], self.starts[cell_number + 1]

            def search(*best: Any) -> Any:
                return tuple(fori_loop(begin, end, visit, list(best), unroll=False))

            return (where(is_own, 1.0, 0.0), *cond(is_own, search, lambda *best: best, *state[1:]))

        return while_loop(lambda state: less(state[0], 0.5), of_lanes, (0.0, *start))[1:]


def direction_cells(polyhedra: Sequence[np.ndarray]) -> DirectionCells:
    """The cells of polyhedra, each by its vertices (n, 3)."""
    sides = [max(1, min(FINEST, round(np.sqrt(len(vertices)) / 2))) for vertices in polyhedra]
    lists = [_lists(vertices.tobytes(), side) for vertices, side in zip(polyhedra, sides, strict=True)]
    firsts = np.cumsum([0, *map(len, polyhedra[:-1])])
    numbers = [first + np.concatenate(cells) for first, cells in zip(firsts, lists, strict=True)]
    lengths, most = [len(chosen) for cells in lists for chosen in cells], max(map(len, lists))
    return DirectionCells(
        table(np.array(sides, float)),
        table(np.cumsum([0, *(len(cells) for cells in lists[:-1])])),
        table(np.cumsum([0, *lengths, *[0] * most])),
        table(np.concatenate(numbers)),
        table(np.concatenate(polyhedra)),
        table(np.array([vertices[0] for vertices in polyhedra])),
        most,
    )


def farther(corner: np.ndarray, d: np.ndarray, best: Any) -> Any:
    """The corner with its projection on d, or `best` where that is not less."""
    projection = corner @ d
    better = less(best[0], projection)
    return [where(better, x, y) for x, y in zip([projection, *corner], best, strict=True)]


def nearer(corner: np.ndarray, number: Any, x: np.ndarray, best: Any) -> Any:
    """The square of the corner's distance from x and its number, or `best` where that is not farther."""
    square = (corner - x) @ (corner - x)
    better = less(square, best[0])
    return [where(better, new, old) for new, old in zip([square, number], best, strict=True)]


def _cell_of(d: np.ndarray, side: Any) -> Any:
    """The number of the cell of a direction: by the cube's face that it meets, and the place on that face."""
    a, b, c = (absolute(x) for x in d)
    is_x = logical_and(less_equal(b, a), less_equal(c, a))
    is_y = less_equal(c, b)
    axis, along = (where(is_x, x, where(is_y, y, z)) for x, y, z in ((0.0, 1.0, 2.0), tuple(d)))
    u = where(is_x, d[1], where(is_y, d[2], d[0]))
    v = where(is_x, d[2], where(is_y, d[0], d[1]))
    length, half = absolute(along), side / 2
    scale = half / where(less(0, length), length, 1.0)
    i, j = (clip(floor(x * scale + half), 0, side - 1) for x in (u, v))
    face = 2 * axis + where(less(along, 0), 1.0, 0.0)
    return (face * side + i) * side + j


@lru_cache(maxsize=512)
def _lists(data: bytes, side: int) -> tuple[np.ndarray, ...]:
    """The numbers of the vertices (n, 3) of each cell.

    The faces of the cube are divided into 4 x 4 squares of cells or fewer, and these into cells: a vertex
    that is not farthest in a square is not farthest in its parts.
    """
    vertices = np.frombuffer(data).reshape(-1, 3)
    slack, before = TIE * np.abs(vertices).max(), side
    square, number = np.divmod(np.arange(6 * len(vertices)), len(vertices))
    for size in sorted({side, -(-side // 4), 1}, reverse=True):
        row, count = np.arange(0, side, size) // before, -(-side // before)
        parents = ((np.arange(6)[:, None, None] * count + row[:, None]) * count + row).ravel()
        begin, end = (np.searchsorted(square, parents, place) for place in ("left", "right"))
        lengths, ends = end - begin, np.cumsum(end - begin)
        square = np.repeat(np.arange(len(parents)), lengths)
        number = number[np.arange(len(square)) + np.repeat(end - ends, lengths)]
        reach = np.einsum("pck,pk->cp", _corners(side, size)[square], vertices[number])
        square, number = _extreme(square, number, reach, slack)
        before = size
    return tuple(np.split(number, np.flatnonzero(np.diff(square)) + 1))


def _corners(side: int, size: int) -> np.ndarray:
    """The directions (squares, 4, 3) at the corners of squares of cells on the faces of the cube, in the
    order of the cells; the last ones end with the face.
    """
    start = np.arange(0, side, size)
    u = 2 * np.minimum([start, start + size], side).T / side - 1
    found = np.empty((3, 2, len(start), len(start), 2, 2, 3))
    for k in range(3):
        found[k, ..., k] = np.array([1, -1])[:, None, None, None, None]
        found[k, ..., (k + 1) % 3] = u[:, None, :, None]
        found[k, ..., (k + 2) % 3] = u[None, :, None, :]
    return found.reshape(-1, 4, 3)


def _extreme(
    square: np.ndarray, number: np.ndarray, reach: np.ndarray, slack: float
) -> tuple[np.ndarray, np.ndarray]:
    """Those of some pairs (n,) of a square of cells and the number of a vertex that may be farthest along a
    direction in it. Pairs are in the order of the squares. reach: (4, n), along the corners of the square.
    """
    for weights in (_WEIGHTS[[len(_WEIGHTS) // 2]], _WEIGHTS):  # the middle leaves few
        begin, kept = np.flatnonzero(np.diff(square, prepend=-1)), np.ones(len(square), bool)
        lengths = np.diff(begin, append=len(square))
        for along in weights @ reach:
            places = np.flatnonzero(along == np.repeat(np.maximum.reduceat(along, begin), lengths))
            farthest = places[np.searchsorted(places, begin)]
            least = reach[:, farthest] - slack
            kept &= np.logical_or.reduce(
                [x >= np.repeat(y, lengths) for x, y in zip(reach, least, strict=True)]
            )
        square, number, reach = square[kept], number[kept], reach[:, kept]
    return square, number


_WEIGHTS = np.array([[(1 - s) * (1 - t), (1 - s) * t, s * (1 - t), s * t] for s in SAMPLES for t in SAMPLES])
"""Of the corners of a cell in the directions to compare at."""
