"""Sweep of a pair-type group: the pairs whose shapes share a cell along one axis, without a test of every pair.

Along the axis on which the centres have the largest variance, space is divided into cells as wide as the
largest shape. Shapes are visited in their order; each one meets those before it that lie in the same cells,
and is then put into these cells. So the cost is that of the pairs that share a cell, and the pairs are found
in the order of their numbers. Source: Ericson, Real-Time Collision Detection (2005), Sec. 7.1 and 7.5.

A pair is found if it shares a cell in some world of a vector register. Which other pairs are found does not
change the result of a world, because the narrow phase discards them there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from zwang.collision.broad_phase import radius
from zwang.collision.pair_groups import PairGroup, StoredPlacements
from zwang.collision.pairs import CollisionShape, Pair
from zwang.collision.shapes import PlacedShape
from zwang.scalar import (
    MutableArray,
    cond,
    empty,
    equal,
    floor,
    fori_loop,
    lane_maximum,
    logical_and,
    maximum,
    where,
    zeros,
)
from zwang.scalar.control_flow import table
from zwang.scalar.stacked_pytree import StackedPytree

FEWEST_PAIRS = 500  # of a group: fewer are tested one by one in the same time

Visit = Callable[[Any, Any], Any]


def over_near_pairs(
    group: PairGroup, stored: StoredPlacements, visit: Visit, carry: Any, *, unroll: bool = False
) -> Any:
    """The carry after `carry = visit(number, carry)` for the pairs of a group that may be near each other, in
    the order of their numbers; for all pairs of a small group, or of one with planes.

    unroll: whether the loop over all pairs of a small group is unrolled.
    """
    if len(group) < FEWEST_PAIRS or "plane" in group.first.kinds or not _is_ordered(group):
        return fori_loop(0, len(group), visit, carry, unroll=unroll)
    return _Sweep(group, stored).over_pairs(visit, carry)


def _key(pair: Pair) -> tuple[int, int]:
    """The numbers of both shapes, the lower one first."""
    return min(pair.a.index, pair.b.index), max(pair.a.index, pair.b.index)


def _is_ordered(group: PairGroup) -> bool:
    """Whether the pairs are in the order of their shapes, and no two have the same ones."""
    keys = [_key(pair) for pair in group.pairs]
    return all(a < b for a, b in zip(keys, keys[1:], strict=False))


class _Shapes(NamedTuple):
    """The shapes of a group in their order: indices of their placements, and half the width of their
    intervals.
    """

    placements: Any
    half_widths: Any


class _NearPairs(NamedTuple):
    """The pairs found so far: how many there are with each lower shape, and their numbers in its row. Of every cell the number of shapes in it, and these; of every shape the first cell.
    """

    counts: MutableArray
    pairs: MutableArray
    sizes: MutableArray
    members: MutableArray
    first_cells: MutableArray


class _Sweep:
    """The tables of a group, and the placements of its shapes."""

    def __init__(self, group: PairGroup, stored: StoredPlacements) -> None:
        shapes = {shape.index: shape for pair in group.pairs for shape in (pair.a, pair.b)}
        ordered = [shapes[index] for index in sorted(shapes)]
        position = {shape.index: k for k, shape in enumerate(ordered)}
        self.count, self.most, self.stored = len(ordered), len(group), stored
        margin = _largest([maximum(pair.margin, 0) for pair in group.pairs])
        half_widths = [_radius(shape) + margin for shape in ordered]
        self.width = 2 * _largest(half_widths)
        self.shapes = StackedPytree(
            [_Shapes(stored.numbers[s.index], r) for s, r in zip(ordered, half_widths, strict=True)]
        )
        # the number of the pair of two shapes, one more than the last where there is none
        numbers = np.full((self.count, self.count), self.most)
        for number, pair in enumerate(group.pairs):
            low, high = (position[index] for index in _key(pair))
            numbers[low, high] = number
        self.numbers = table(numbers)

    def over_pairs(self, visit: Visit, carry: Any) -> Any:
        """The carry after a visit of every pair that is found."""
        found = self._near_pairs()

        def of_shape(low: Any, carry: Any) -> Any:
            def visit_pair(k: Any, carry: Any) -> Any:
                return visit(lane_maximum(found.pairs[low, k], self.most - 1), carry)

            return fori_loop(0, lane_maximum(found.counts[low], self.count - 1), visit_pair, carry)

        return fori_loop(0, self.count, of_shape, carry, unroll=False)

    def _near_pairs(self) -> _NearPairs:
        """The pairs that share a cell."""
        n = self.count
        axis, mean = self._axis()
        start = _NearPairs(zeros(n), empty((n, n)), zeros(n), empty((n, n)), empty(n))

        def add(shape: Any, found: _NearPairs) -> _NearPairs:
            lower, upper = self._cells(shape, axis, mean)
            found = found._replace(first_cells=found.first_cells.set(shape, 1.0 * lower))

            def meet(cell: Any, found: _NearPairs) -> _NearPairs:
                def with_member(k: Any, found: _NearPairs) -> _NearPairs:
                    return self._with_pair(found, lane_maximum(found.members[cell, k], n - 1), shape, cell)

                size = found.sizes[cell]
                found = fori_loop(0, lane_maximum(size, n), with_member, found)
                members = found.members.set((cell, lane_maximum(size, n - 1)), 1.0 * shape)
                return found._replace(members=members, sizes=found.sizes.set(cell, size + 1))

            return fori_loop(lower, upper + 1, meet, found)

        return fori_loop(0, n, add, start, unroll=False)

    def _with_pair(self, found: _NearPairs, low: Any, high: Any, cell: Any) -> _NearPairs:
        """The pairs with that of two shapes in a cell, where it is the first cell that they share."""
        number = self.numbers[low, high]
        both = maximum(found.first_cells[low], found.first_cells[high])
        is_first = logical_and(equal(both, 1.0 * cell), 1.0 * number < self.most)

        def append(found: _NearPairs) -> _NearPairs:
            count = found.counts[low]
            pairs = found.pairs.set((low, lane_maximum(count, self.count - 1)), 1.0 * number)
            return found._replace(pairs=pairs, counts=found.counts.set(low, count + 1))

        return cond(is_first, append, lambda found: found, found)

    def _centre(self, shape: Any) -> np.ndarray:
        """The position of a shape (3,) in the world."""
        return self.stored.position(self.shapes[shape].placements)

    def _axis(self) -> tuple[np.ndarray, Any]:
        """The coordinate axis (3,) along which the centres have the largest variance, and their mean on it."""

        def add(shape: Any, sums: tuple[Any, Any]) -> tuple[Any, Any]:
            p = self._centre(shape)
            return sums[0] + p, sums[1] + p * p

        zero = np.zeros(3)
        total, squares = fori_loop(0, self.count, add, (zero, zero), unroll=False)
        mean = total / self.count
        x, y, z = squares / self.count - mean * mean
        along_x = logical_and(x >= y, x >= z)
        along_y = logical_and(y > x, y >= z)
        axis = np.array([where(along_x, 1.0, 0.0), where(along_y, 1.0, 0.0), 0.0])
        axis[2] = 1 - axis[0] - axis[1]
        return axis, mean @ axis

    def _cells(self, shape: Any, axis: np.ndarray, mean: Any) -> tuple[Any, Any]:
        """The first and the last cell that a shape touches in some world; those beyond the ends count as the
        ends.
        """
        x, last = self._centre(shape) @ axis - mean, self.count - 1
        half_width = self.shapes[shape].half_widths
        lower, upper = (
            floor((x + side * half_width) / self.width) + float(self.count // 2) for side in (-1, 1)
        )
        return last - lane_maximum(last - lower, last), lane_maximum(upper, last)


def _largest(values: list[Any]) -> Any:
    """The largest of several scalars."""
    largest = values[0]
    for value in dict.fromkeys(values[1:]):
        largest = maximum(largest, value)
    return largest


def _radius(shape: CollisionShape) -> Any:
    """Radius [m] of a shape's bounding sphere."""
    return radius(shape.kind, PlacedShape(shape.sizes, np.eye(3), np.zeros(3)))
