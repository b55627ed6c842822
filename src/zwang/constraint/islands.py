"""Islands: the kinematic trees that active constraint rows connect, directly or through others."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

from zwang.constraint.rows import JointScrews, RowGroup
from zwang.scalar import (
    MutableArray,
    equal,
    logical_not,
    logical_or,
    maximum,
    minimum,
    while_loop,
    zeros,
)
from zwang.scalar.stacked_pytree import StackedPytree


def trees_of(velocities: Sequence[int], tree_of: Sequence[int]) -> tuple[int, ...]:
    """The kinematic trees of some generalised velocities; tree_of (nv,): that of each."""
    return tuple(sorted({tree_of[k] for k in velocities}))


def constraint_islands(
    groups: Sequence[RowGroup], screws: JointScrews | None, tree_of: Sequence[int]
) -> MutableArray:
    """The island of every kinematic tree: the smallest number of a tree that active rows connect with it.

    groups: all rows; screws: those of `Rows`. tree_of (nv,): the tree of each generalised velocity, numbered
    from 0.
    """
    count = max(tree_of) + 1
    labels = zeros(count)
    for t in range(count):
        labels = labels.set(t, 1.0 * t)
    connections = []
    for group in groups:
        own = [trees_of(velocities, tree_of) for velocities in group.velocities(screws)]
        most = max(map(len, own))
        if most > 1:
            joined = StackedPytree([trees + trees[-1:] * (most - len(trees)) for trees in own])
            connections.append((group, joined))
    if not connections:
        return labels

    def merge(trees: Sequence[Any], carry: Any) -> Any:
        labels, changed = carry
        known = [labels[t] for t in trees]
        least = reduce(minimum, known)
        for t in trees:
            labels = labels.set(t, least)
        return labels, logical_or(changed, logical_not(equal(reduce(maximum, known), least)))

    def merge_all(carry: Any) -> Any:
        carry = carry[0], 1.0 < 0.0
        for group, joined in connections:
            carry = group.active_indices.for_each(lambda k, c, of=joined: merge(of[k], c), carry)
        return carry

    return while_loop(lambda carry: carry[1], merge_all, (labels, 0.0 < 1.0))[0]
