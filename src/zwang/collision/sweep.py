"""Sweep of a pair-type group: the pairs whose shapes share a cell, without a test of every pair.

Space is divided into cells as wide as the largest shape. Shapes are visited in their order; each one meets
those before it that lie in the same slices along the axis on which the centres have the largest variance, and
is then put into these slices. So the cost is that of the pairs that share a slice, and the pairs that share a
cell are found in the order of their numbers. Source: Ericson, Real-Time Collision Detection (2005), Sec. 7.1
and 7.5.

A pair is found if it shares a cell in some world of a vector register. Which other pairs are found does not
change the result of a world, because the narrow phase discards them there.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from zwang.collision.pair_groups import PairGroup, StoredPlacements
from zwang.collision.pairs import Pair
from zwang.collision.shapes import radius
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
    group: PairGroup, stored: StoredPlacements, visit: Visit, carry: Any, *, beyond_margin: bool = False,
    unroll: bool = False,
) -> Any:  # fmt: skip
    """The carry after `carry = visit(number, carry)` for the pairs of a group that may be near each other, in
    the order of their numbers; for all pairs of a small group, or of one with planes.

    beyond_margin: whether pairs act at any distance, as hard contacts do, so that all are visited.
    unroll: whether the loop over all pairs of a small group is unrolled.
    """
    is_swept = len(group) >= FEWEST_PAIRS and "plane" not in group.first.kinds and not beyond_margin
    if not is_swept or not _is_ordered(group):
        return fori_loop(0, len(group), visit, carry, unroll=unroll)
    return _Sweep(group, stored).over_pairs(visit, carry)


def _key(pair: Pair) -> tuple[int, int]:
    """The numbers of both shapes, the lower one first."""
    return min(pair.a.index, pair.b.index), max(pair.a.index, pair.b.index)


def _is_ordered(group: PairGroup) -> bool:
    """Whether the pairs are in the order of their shapes, and no two have the same ones."""
    keys = [_key(pair) for pair in group.pairs]
    return all(a < b for a, b in pairwise(keys))


class _Shapes(NamedTuple):
    """The shapes of a group in their order: indices of their placements, and half the width of their
    intervals.
    """

    placements: Any
    half_widths: Any


class _NearPairs(NamedTuple):
    """The pairs found so far: how many there are with each lower shape, and their numbers in its row. Of
    every slice the number of shapes in it, and these; of every shape the first and the last cell along the
    three axes.
    """

    counts: MutableArray
    pairs: MutableArray
    sizes: MutableArray
    members: MutableArray
    ranges: MutableArray


class _Sweep:
    """The tables of a group, and the placements of its shapes."""

    def __init__(self, group: PairGroup, stored: StoredPlacements) -> None:
        shapes = {shape.index: shape for pair in group.pairs for shape in (pair.a, pair.b)}
        ordered = [shapes[index] for index in sorted(shapes)]
        position = {shape.index: k for k, shape in enumerate(ordered)}
        self.count, self.most, self.stored = len(ordered), len(group), stored
        margin = _largest([maximum(pair.margin, 0) for pair in group.pairs])
        half_widths = [radius(shape.kind, shape.sizes) + margin for shape in ordered]
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
        axes, mean = self._axes()
        start = _NearPairs(zeros(n), empty((n, n)), zeros(n), empty((n, n)), empty((n, 6)))

        def add(shape: Any, found: _NearPairs) -> _NearPairs:
            cells = self._cells(shape, axes, mean)
            lower, upper = cells[:2]
            for k, cell in enumerate(cells):
                found = found._replace(ranges=found.ranges.set((shape, k), 1.0 * cell))

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
        """The pairs with that of two shapes in a slice, where it is the first one that they share, and where
        they overlap on the other axes too.
        """
        one, two = ([found.ranges[shape, k] for k in range(6)] for shape in (low, high))
        overlap = equal(maximum(one[0], two[0]), 1.0 * cell)
        for k in (2, 4):
            overlap = logical_and(overlap, logical_and(one[k] <= two[k + 1], two[k] <= one[k + 1]))

        def append(found: _NearPairs) -> _NearPairs:
            number = self.numbers[low, high]
            return cond(1.0 * number < self.most, with_number, lambda _, found: found, number, found)

        def with_number(number: Any, found: _NearPairs) -> _NearPairs:
            count = found.counts[low]
            pairs = found.pairs.set((low, lane_maximum(count, self.count - 1)), 1.0 * number)
            return found._replace(pairs=pairs, counts=found.counts.set(low, count + 1))

        return cond(overlap, append, lambda found: found, found)

    def _centre(self, shape: Any) -> np.ndarray:
        """The position of a shape (3,) in the world."""
        return self.stored.position(self.shapes[shape].placements)

    def _axes(self) -> tuple[np.ndarray, Any]:
        """The coordinate axes (3, 3) in cyclic order, first that along which the centres have the largest
        variance, and the mean of the centres.
        """

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
        return np.array([np.roll(axis, k) for k in range(3)]), mean

    def _cells(self, shape: Any, axes: np.ndarray, mean: Any) -> list[Any]:
        """Along each axis the first and the last cell that a shape touches in some world; those beyond the
        ends count as the ends.
        """
        last, half_width, cells = self.count - 1, self.shapes[shape].half_widths, []
        for x in axes @ (self._centre(shape) - mean):
            lower, upper = (
                floor((x + side * half_width) / self.width) + float(self.count // 2) for side in (-1, 1)
            )
            cells += [last - lane_maximum(last - lower, last), lane_maximum(upper, last)]
        return cells


def _largest(values: list[Any]) -> Any:
    """The largest of several scalars."""
    largest = values[0]
    for value in dict.fromkeys(values[1:]):
        largest = maximum(largest, value)
    return largest
