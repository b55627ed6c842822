"""Broad phase by links: the pairs of shapes of two links are tested only where spheres around all of these
shapes overlap.

A robot has many shapes on few links, so that most pairs of shapes need no test of their own. Pairs are
visited if the spheres of their links overlap in some world of a vector register; the narrow phase discards
them in the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from itertools import groupby
from operator import attrgetter
from typing import Any

import numpy as np

from zwang.collision.pair_groups import PairGroup, StoredPlacements
from zwang.collision.pairs import CollisionShape
from zwang.collision.shapes import radius
from zwang.kinematics.poses import Pose
from zwang.mechanism.tree import WORLD
from zwang.scalar import MutableArray, empty, fori_loop, lane_maximum, maximum, minimum, sqrt, where
from zwang.scalar.stacked_pytree import StackedPytree

PAIRS_PER_TEST = 3  # pairs of shapes for each pair of links, on average, from which on the test pays
ALLOWANCE = 1.001  # by which spheres are enlarged, above the rounding error of their distance
UNBOUNDED = {"plane", "heightfield"}


def has_link_pairs(group: PairGroup) -> bool:
    """Whether the pairs of a group are tested by links, of which two have many pairs, one after the other."""
    if UNBOUNDED & set(group.first.kinds):
        return False
    spans = [links for links, _ in groupby(group.pairs, attrgetter("links"))]
    return PAIRS_PER_TEST * len(spans) <= len(group)


def over_link_pairs(
    group: PairGroup, stored: StoredPlacements, visit: Callable[[Any, Any], Any], carry: Any
) -> Any:
    """The carry after `carry = visit(number, carry)` for the pairs of all links that may be near each other
    in some world.
    """
    spheres, of_links, reaches, spans = _Spheres(stored.poses), [], [], [(0, 0)]
    for _, own in groupby(group.pairs, attrgetter("links")):
        pairs, start = list(own), spans[-1][1]
        (a, r_a), (b, r_b) = (spheres.around(map(side, pairs)) for side in (attrgetter("a"), attrgetter("b")))
        of_links.append((a, b))
        reaches.append((ALLOWANCE * (r_a + r_b + reduce(maximum, [pair.reach for pair in pairs], 0)),))
        spans.append((start, start + len(pairs)))
    both, reach, span = map(StackedPytree, (of_links, reaches, spans[1:]))
    centres = spheres.centres()

    def of_two_links(k: Any, carry: Any) -> Any:
        (a, b), (start, stop) = both[k], span[k]
        d = [centres[b, c] - centres[a, c] for c in range(3)]
        near = where(sum(x * x for x in d) < reach[k][0] * reach[k][0], 1.0, 0.0)

        def visit_pairs(_: Any, carry: Any) -> Any:
            return fori_loop(start, stop, visit, carry, unroll=False)

        return fori_loop(0, lane_maximum(near, 1), visit_pairs, carry)

    return fori_loop(0, len(reaches), of_two_links, carry, unroll=False)


class _Spheres:
    """Spheres around shapes of one link each, with centres in the axes of the links."""

    def __init__(self, poses: Sequence[Pose]) -> None:
        self.poses = poses
        self._numbers: dict[frozenset[int], tuple[int, Any]] = {}
        self._centres: list[tuple[int, np.ndarray]] = []

    def around(self, shapes: Iterable[CollisionShape]) -> tuple[int, Any]:
        """The index and the radius of the sphere around shapes of one link."""
        own = {shape.index: shape for shape in shapes}
        key = frozenset(own)
        if key not in self._numbers:
            both = [(np.array(x.placement.p), radius(x.kind, x.sizes)) for x in own.values()]
            low = [reduce(minimum, [p[c] - r for p, r in both]) for c in range(3)]
            high = [reduce(maximum, [p[c] + r for p, r in both]) for c in range(3)]
            centre = (np.array(low) + np.array(high)) / 2
            reaches = [sqrt((p - centre) @ (p - centre)) + r for p, r in both]
            self._numbers[key] = len(self._centres), reduce(maximum, reaches)
            self._centres.append((next(iter(own.values())).placement.link, centre))
        return self._numbers[key]

    def centres(self) -> MutableArray:
        """The centres of all spheres in the world (n, 3)."""
        found = empty((len(self._centres), 3))
        for k, (link, centre) in enumerate(self._centres):
            placed = centre if link == WORLD else self.poses[link].p + self.poses[link].R @ centre
            for c, x in enumerate(placed):
                found = found.set((k, c), x)
        return found
