"""Sweep of a pair-type group: the pairs whose shapes are near each other, without a test of every pair.

Space is divided into cubic cells, four times as wide as the mean radius of the shapes, and cells are mapped
to buckets by a hash. Shapes are visited in their order. Each one is tested with those before it that lie in
the buckets of the cells that its bounding sphere touches, and is then put into these buckets. So the cost is
proportional to the number of shapes where each has few neighbours. A shape that touches many cells is tested
with all shapes. Source: Ericson, Real-Time Collision Detection (2005), Sec. 7.1.

A pair is found if the bounding spheres overlap in some world of a vector register. Which other pairs are
found does not change the result of a world, because the narrow phase discards them there.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from math import isqrt
from typing import Any, NamedTuple

import numpy as np

from zwang.collision.link_pairs import has_link_pairs, over_link_pairs
from zwang.collision.pair_groups import PairGroup, StoredPlacements
from zwang.collision.pairs import Pair
from zwang.collision.shapes import radius
from zwang.scalar import (
    MutableArray,
    cond,
    empty,
    floor,
    fori_loop,
    lane_maximum,
    maximum,
    where,
    zeros,
)
from zwang.scalar.control_flow import table
from zwang.scalar.stacked_pytree import StackedPytree

FEWEST_PAIRS = 500  # of a group: fewer are tested one by one in the same time
ALLOWANCE = 1.001  # by which bounding spheres are enlarged, above the rounding error of their distance
WIDTH = 4  # of a cell, in mean radii: a shape touches 3.4 cells in the mean
MOST_CELLS = 27  # three along each axis; shapes that touch more are tested with all

Visit = Callable[[Any, Any], Any]


def over_near_pairs(
    group: PairGroup, stored: StoredPlacements, visit: Visit, carry: Any, *, beyond_margin: bool = False,
    unroll: bool = False,
) -> Any:  # fmt: skip
    """The carry after `carry = visit(number, carry)` for the pairs of a group that may be near each other, in
    the order of their numbers; for all pairs of a group that is not swept.

    beyond_margin: see `is_swept`. unroll: whether the loop over all pairs of a small group is unrolled.
    """
    if is_swept(group, beyond_margin=beyond_margin):
        return _Sweep(group, stored).over_pairs(visit, carry)
    if has_link_pairs(group) and not beyond_margin:
        return over_link_pairs(group, stored, visit, carry)
    return fori_loop(0, len(group), visit, carry, unroll=unroll)


def is_swept(group: PairGroup, *, beyond_margin: bool = False) -> bool:
    """Whether a group is swept: it is large, and has no planes.

    beyond_margin: whether pairs act at any distance, as hard contacts do, so that all are visited.
    """
    is_large = len(group) >= FEWEST_PAIRS and "plane" not in group.first.kinds
    return is_large and not beyond_margin and _is_ordered(group)


def _key(pair: Pair) -> tuple[int, int]:
    """The numbers of both shapes, the lower one first."""
    return min(pair.a.index, pair.b.index), max(pair.a.index, pair.b.index)


def _is_ordered(group: PairGroup) -> bool:
    """Whether the pairs are in the order of their shapes, and no two have the same ones."""
    keys = [_key(pair) for pair in group.pairs]
    return all(a < b for a, b in pairwise(keys))


class _Shapes(NamedTuple):
    """The shapes of a group in their order: indices of their placements, and radii of bounding spheres with
    margin.
    """

    placements: Any
    radii: Any


class _NearPairs(NamedTuple):
    """The pairs found so far: how many there are with each lower shape, and their numbers in its row.

    tested: for each shape, one more than the last shape that it was tested with. Of every bucket the number
    of shapes in it, these, and one more than the last of them.
    """

    counts: MutableArray
    pairs: MutableArray
    tested: MutableArray
    sizes: MutableArray
    members: MutableArray
    newest: MutableArray


class _Sweep:
    """The tables of a group, and the placements of its shapes."""

    def __init__(self, group: PairGroup, stored: StoredPlacements) -> None:
        shapes = {shape.index: shape for pair in group.pairs for shape in (pair.a, pair.b)}
        ordered = [shapes[index] for index in sorted(shapes)]
        position = {shape.index: k for k, shape in enumerate(ordered)}
        self.count, self.most, self.stored = len(ordered), len(group), stored
        margin = _largest([maximum(pair.reach, 0) for pair in group.pairs])
        radii = [ALLOWANCE * (radius(shape.kind, shape.sizes) + margin) for shape in ordered]
        self.width = WIDTH * sum(radii) / self.count
        self.shapes = StackedPytree(
            [_Shapes(stored.numbers[s.index], r) for s, r in zip(ordered, radii, strict=True)]
        )
        # the number of the pair of two shapes, one more than the last where there is none
        numbers = np.full((self.count, self.count), self.most)
        for number, pair in enumerate(group.pairs):
            low, high = (position[index] for index in _key(pair))
            numbers[low, high] = number
        self.numbers = table(numbers)
        # the hash of a cell: the sum of its numbers along the axes, times odd factors, modulo a power of two
        self.buckets = 1 << (2 * self.count).bit_length()
        factors = 1, isqrt(self.buckets) | 1, self.buckets * 5 // 8 | 1
        self.cells = 4 * self.count
        self.of_cell = [table(np.arange(self.cells) * factor % self.buckets) for factor in factors]
        self.of_sum = table(np.arange(3 * self.buckets) % self.buckets)

    def over_pairs(self, visit: Visit, carry: Any) -> Any:
        """The carry after a visit of every pair that is found."""
        found = self._near_pairs()

        def of_shape(low: Any, carry: Any) -> Any:
            def visit_pair(k: Any, carry: Any) -> Any:
                return visit(lane_maximum(found.pairs[low, k], self.most - 1), carry)

            return fori_loop(0, lane_maximum(found.counts[low], self.count - 1), visit_pair, carry)

        return fori_loop(0, self.count, of_shape, carry, unroll=False)

    def _near_pairs(self) -> _NearPairs:
        """The pairs whose bounding spheres overlap."""
        n, buckets = self.count, self.buckets + 1  # the last one is that of the shapes that touch many cells
        mean = self._mean()
        start = _NearPairs(
            zeros(n), empty((n, n)), empty(n), zeros(buckets), empty((buckets, n)), zeros(buckets)
        )

        def add(shape: Any, found: _NearPairs) -> _NearPairs:
            cells = self._cells(shape, mean)
            number = 1.0
            for lower, upper in cells:
                number = number * (1.0 * upper - 1.0 * lower + 1)
            return cond(
                number <= MOST_CELLS,
                lambda found: self._added_to_cells(found, shape, cells),
                lambda found: self._added_to_all(found, shape),
                found._replace(tested=found.tested.set(shape, 1.0 * shape + 1)),
            )

        return fori_loop(0, n, add, start, unroll=False)

    def _added_to_all(self, found: _NearPairs, shape: Any) -> _NearPairs:
        """The pairs with those of a shape that is tested with all before it."""
        found = fori_loop(0, shape, lambda low, found: self._tested(found, low, shape), found)
        return self._with_member(found, self.buckets, shape)

    def _added_to_cells(self, found: _NearPairs, shape: Any, cells: list[tuple[Any, Any]]) -> _NearPairs:
        """The pairs with those of a shape that is tested with the shapes in its cells, from the first to the
        last along each axis.
        """
        found = self._with_bucket(found, self.buckets, shape)

        def meet(found: _NearPairs, axis: int, place: Any) -> _NearPairs:
            if axis == len(cells):
                bucket = self.of_sum[place]
                return self._with_member(self._with_bucket(found, bucket, shape), bucket, shape)
            lower, upper = cells[axis]
            return fori_loop(
                lower,
                upper + 1,
                lambda cell, found: meet(found, axis + 1, place + self.of_cell[axis][cell]),
                found,
            )

        return meet(found, 0, 0)

    def _with_bucket(self, found: _NearPairs, bucket: Any, shape: Any) -> _NearPairs:
        """The pairs with those of a shape and the shapes in a bucket that it has not been tested with."""

        def visit(k: Any, found: _NearPairs) -> _NearPairs:
            low = lane_maximum(found.members[bucket, k], self.count - 1)
            return cond(
                found.tested[low] < 1.0 * shape + 1,
                lambda found: self._tested(found, low, shape),
                lambda found: found,
                found,
            )

        return fori_loop(0, lane_maximum(found.sizes[bucket], self.count), visit, found)

    def _with_member(self, found: _NearPairs, bucket: Any, shape: Any) -> _NearPairs:
        """The pairs with a shape in a bucket, unless it is there already."""

        def add(found: _NearPairs) -> _NearPairs:
            size = found.sizes[bucket]
            return found._replace(
                members=found.members.set((bucket, lane_maximum(size, self.count - 1)), 1.0 * shape),
                sizes=found.sizes.set(bucket, size + 1),
                newest=found.newest.set(bucket, 1.0 * shape + 1),
            )

        return cond(found.newest[bucket] < 1.0 * shape + 1, add, lambda found: found, found)

    def _tested(self, found: _NearPairs, low: Any, high: Any) -> _NearPairs:
        """The pairs with that of two shapes, if their bounding spheres overlap in some world."""
        d, reach = self._centre(high) - self._centre(low), self.shapes[low].radii + self.shapes[high].radii
        near = lane_maximum(where(d @ d < reach * reach, 1.0, 0.0), 1)

        def append(found: _NearPairs) -> _NearPairs:
            number = self.numbers[low, high]
            return cond(1.0 * number < self.most, with_number, lambda _, found: found, number, found)

        def with_number(number: Any, found: _NearPairs) -> _NearPairs:
            count = found.counts[low]
            pairs = found.pairs.set((low, lane_maximum(count, self.count - 1)), 1.0 * number)
            return found._replace(pairs=pairs, counts=found.counts.set(low, count + 1))

        found = found._replace(tested=found.tested.set(low, 1.0 * high + 1))
        return cond(1.0 * near > 0, append, lambda found: found, found)

    def _centre(self, shape: Any) -> np.ndarray:
        """The position of a shape (3,) in the world."""
        return self.stored.position(self.shapes[shape].placements)

    def _mean(self) -> np.ndarray:
        """The mean of the positions of all shapes."""
        total = fori_loop(0, self.count, lambda k, total: total + self._centre(k), np.zeros(3), unroll=False)
        return total / self.count

    def _cells(self, shape: Any, mean: np.ndarray) -> list[tuple[Any, Any]]:
        """Along each axis the first and the last cell that the bounding sphere of a shape touches in some
        world; those beyond the ends count as the ends. The mean is in the middle of a cell.
        """
        last, r, middle = self.cells - 1, self.shapes[shape].radii, self.cells // 2
        found = []
        for x in self._centre(shape) - mean:
            lower, upper = (floor((x + side * r) / self.width + 0.5) + middle for side in (-1, 1))
            found.append((last - lane_maximum(last - lower, last), lane_maximum(upper, last)))
        return found


def _largest(values: list[Any]) -> Any:
    """The largest of several scalars."""
    largest = values[0]
    for value in dict.fromkeys(values[1:]):
        largest = maximum(largest, value)
    return largest
