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
    starts: the first vertex of each cell in `corners` (m, 3), where they are in the order of the polyhedron;
    padded, so that every sum of a first cell and of a cell in another polyhedron is an index. numbers (m,):
    those of the vertices among all vertices of all polyhedra. firsts (n, 3): the first vertex of each
    polyhedron. most: cells of a polyhedron.
    """

    sides: Table
    cells: Table
    starts: Table
    corners: Table
    numbers: Table
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
            return farther(self.corners[k], d, best)

        return np.array(self._over_cell(polyhedron, d, visit, start)[1:])

    def number_at(self, polyhedron: Any, d: np.ndarray, x: np.ndarray) -> Any:
        """The number of the vertex nearest to x (3,), which is one of those that are farthest along d (3,);
        both are plain numbers.
        """

        def visit(k: Any, best: Any) -> Any:
            return nearer(self.corners[k], 1.0 * self.numbers[k], x, best)

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
        table(np.concatenate(polyhedra)[np.concatenate(numbers)]),
        table(np.concatenate(numbers)),
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
    """The numbers of the vertices (n, 3) of each cell."""
    vertices = np.frombuffer(data).reshape(-1, 3)
    found: dict[tuple[int, int, int], np.ndarray] = {}
    for face in range(6):
        _divide(vertices, np.arange(len(vertices)), face, (0, 0), side, side, found)
    return tuple(found[cell] for cell in np.ndindex(6, side, side))


def _divide(
    vertices: np.ndarray,
    numbers: np.ndarray,
    face: int,
    first: tuple[int, int],
    size: int,
    side: int,
    found: dict[tuple[int, int, int], np.ndarray],
) -> None:
    """Enter into `found` the vertices, of those with these numbers, of all cells of a square of size x size
    cells, of which `first` is one corner, on a face of the cube. Squares are divided into 4 x 4 or fewer:
    what is not farthest in one is not farthest in its parts.
    """
    part = -(-size // 4)
    i_of, j_of = (start + np.arange(0, size, part) for start in first)
    parts = _extreme(vertices[numbers], _corner_directions(face, i_of, j_of, part, side))
    for cell, chosen in zip(((int(i), int(j)) for i in i_of for j in j_of), parts, strict=True):
        if max(cell) >= side or any(c >= start + size for c, start in zip(cell, first, strict=True)):
            continue
        if part == 1:
            found[face, *cell] = numbers[chosen]
        else:
            _divide(vertices, numbers[chosen], face, cell, part, side, found)


def _corner_directions(face: int, i_of: np.ndarray, j_of: np.ndarray, size: int, side: int) -> np.ndarray:
    """The directions (len(i_of) len(j_of), 4, 3) at the corners of squares of cells from the cells (i, j) of
    a face of the cube; they end with the face.
    """
    k, sign = divmod(face, 2)
    found = np.empty((len(i_of), len(j_of), 2, 2, 3))
    u, v = (2 * np.minimum([start, start + size], side).T / side - 1 for start in (i_of, j_of))
    found[..., k] = 1 - 2 * sign
    found[..., (k + 1) % 3] = u[:, None, :, None]
    found[..., (k + 2) % 3] = v[None, :, None, :]
    return found.reshape(-1, 4, 3)


def _extreme(vertices: np.ndarray, corners: np.ndarray) -> list[np.ndarray]:
    """The numbers of the vertices that may be farthest along a direction in each of some cells, between their
    corners (cells, 4, 3).
    """
    slack, cells = TIE * np.abs(vertices).max(), np.arange(len(corners))[:, None]
    numbers = np.arange(len(vertices))
    reach = (corners.reshape(-1, 3) @ vertices.T).reshape(len(cells), 4, -1)
    chosen = np.ones((len(cells), len(vertices)), bool)
    for weights in (_WEIGHTS[[len(_WEIGHTS) // 2]], _WEIGHTS):  # the middle leaves few
        farthest = np.argmax(weights @ reach, axis=2)
        best = np.moveaxis(reach[cells, :, farthest], 1, 2)  # (cells, 4, weights)
        chosen &= (best[..., None] - reach[:, :, None] <= slack).any(axis=1).all(axis=1)
        kept = chosen.any(axis=0)  # in some of the cells
        numbers, chosen, reach = numbers[kept], chosen[:, kept], reach[..., kept]
    return [numbers[own] for own in chosen]


_WEIGHTS = np.array([[(1 - s) * (1 - t), (1 - s) * t, s * (1 - t), s * t] for s in SAMPLES for t in SAMPLES])
"""Of the corners of a cell in the directions to compare at."""
