"""Pair-type groups: pairs that differ in their numbers only, so that one loop finds the contact points of
all.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from operator import attrgetter
from typing import Any

import numpy as np

from zwang.collision.convex.polyhedra import Polyhedron, PolyhedronTables, polyhedron_tables
from zwang.collision.narrow_phase import placed
from zwang.collision.pairs import CollisionShape, Pair
from zwang.collision.shapes import CONVEX, PlacedShape
from zwang.kinematics.poses import Pose
from zwang.mechanism.geometry import HeightField
from zwang.mechanism.tree import WORLD
from zwang.scalar import MutableArray, empty
from zwang.scalar.stacked_pytree import StackedPytree

VALUES = "friction", "solref", "solreffriction", "solimp", "margin", "gap"  # of a pair, read by index
UNROLLED_PAIRS = 2  # the loop over so few pairs of a group is unrolled, if their points have a closed form
_POSE_SIZE = 12  # entries of R and p


class StoredPlacements:
    """Placements of the shapes of pairs in the world, in an array that is read at traced indices."""

    def __init__(self, pairs: Sequence[Pair], poses: Sequence[Pose]) -> None:
        shapes = {shape.index: shape for pair in pairs for shape in (pair.a, pair.b)}
        self.poses = poses
        self.numbers = {index: k for k, index in enumerate(shapes)}
        self._entries: MutableArray = empty((len(shapes), _POSE_SIZE))
        self.heights: dict[int, MutableArray | None] = {}
        for k, shape in enumerate(shapes.values()):
            _, R, p, self.heights[shape.index] = placed(shape, poses)
            for c, x in enumerate([*np.ravel(R), *p]):
                self._entries = self._entries.set((k, c), x)

    def __getitem__(self, number: Any) -> tuple[np.ndarray, np.ndarray]:
        """R and p in the world of the shape with this index in `numbers`."""
        x = [self._entries[number, k] for k in range(_POSE_SIZE)]
        return np.array(x[:9]).reshape(3, 3), np.array(x[9:])

    def position(self, number: Any) -> np.ndarray:
        """p (3,) in the world of the shape with this index in `numbers`."""
        return np.array([self._entries[number, k] for k in range(_POSE_SIZE - 3, _POSE_SIZE)])


@dataclass(frozen=True)
class PairGroup:
    """Pairs of the same kinds and form of contact, whose sizes, placements and `VALUES` are read by index;
    meshes: all that may be among their shapes, perhaps more, so that groups share tables.
    """

    pairs: tuple[Pair, ...]
    meshes: tuple[PolyhedronTables, ...] = ()

    @property
    def first(self) -> Pair:
        """One of the pairs, for what they have in common."""
        return self.pairs[0]

    def __len__(self) -> int:
        return len(self.pairs)

    @property
    def is_unrolled(self) -> bool:
        """Whether the loop over so few pairs is unrolled. The search for contact points without a closed form
        is a long program, of which one is enough.
        """
        return len(self) <= (1 if self.first.kinds in CONVEX else UNROLLED_PAIRS)

    @cached_property
    def _polyhedra(self) -> PolyhedronTables:
        return polyhedron_tables(self.meshes)

    @cached_property
    def _pair_values(self) -> StackedPytree:
        numbers = {mesh: k for k, mesh in enumerate(self.meshes)}
        return StackedPytree([_pair_values(pair, numbers) for pair in self.pairs])

    def pair(self, number: Any) -> Pair:
        """Pair `number`, which may be a traced index; names, placements and shapes are those of the first
        pair, all values its own.
        """
        a, b, contact = self._pair_values[number]
        first, second = self._with_sizes(self.first.a, a), self._with_sizes(self.first.b, b)
        return replace(self.first, a=first, b=second, **dict(zip(VALUES, contact, strict=True)))

    def _with_sizes(self, shape: CollisionShape, sizes: Any) -> CollisionShape:
        """The shape with other sizes; those of a mesh are its number."""
        if shape.kind == "mesh":
            return replace(shape, sizes=Polyhedron(self._polyhedra, sizes[0]))
        return replace(shape, sizes=sizes)

    def placed(self, number: Any, stored: StoredPlacements) -> tuple[PlacedShape, PlacedShape]:
        """Both shapes of pair `number` in the world."""
        pair = self.pair(number)
        shapes_of_pair = (pair.a, [p.a for p in self.pairs]), (pair.b, [p.b for p in self.pairs])
        a, b = (
            PlacedShape(
                one_shape.sizes, *_placement_of(shapes, number, stored), stored.heights[one_shape.index]
            )
            for one_shape, shapes in shapes_of_pair
        )
        return a, b


def pair_groups(pairs: Sequence[Pair], forms: Sequence[Hashable]) -> list[PairGroup]:
    """The pairs in groups; forms: a value for each pair, equal in a group."""
    groups: dict[Hashable, list[Pair]] = {}
    for pair, form in zip(pairs, forms, strict=True):
        groups.setdefault((_group_key(pair), form), []).append(pair)
    shapes = [shape for pair in pairs for shape in (pair.a, pair.b) if shape.kind == "mesh"]
    meshes = tuple(dict.fromkeys(shape.sizes.tables for shape in shapes))
    return [PairGroup(tuple(_by_links(group)), meshes) for group in groups.values()]


def _by_links(pairs: list[Pair]) -> list[Pair]:
    """The pairs, those of the same two links one after the other if these have several."""
    several = len({pair.links for pair in pairs}) < len(pairs)
    return sorted(pairs, key=attrgetter("links")) if several else pairs


def is_fixed_to_world(shape: CollisionShape) -> bool:
    """Whether the shape is fixed to the world."""
    return shape.placement.link == WORLD


def _placement_of(
    shapes: Sequence[CollisionShape], number: Any, stored: StoredPlacements
) -> tuple[np.ndarray, np.ndarray]:
    """R and p in the world of shape `number`; constants where all are one shape of the world, such as the
    ground.
    """
    one = shapes[0]
    if is_fixed_to_world(one) and all(shape.index == one.index for shape in shapes):
        return one.placement.R, one.placement.p
    if isinstance(number, int):
        return stored[stored.numbers[shapes[number].index]]
    return stored[StackedPytree([stored.numbers[shape.index] for shape in shapes])[number]]


def _group_key(pair: Pair) -> Hashable:
    """What the pairs of a group have in common: kinds, height fields, and form of contact; its softness and
    which shape is fixed to the world, too, except for kinds whose contact points are found by iteration: this
    is a long program, of which one is enough for all of them. They have the exponent of `solimp` in common.
    """
    softness = tuple(pair.solref), tuple(pair.solreffriction), tuple(pair.solimp)
    own: Hashable = (is_fixed_to_world(pair.a), is_fixed_to_world(pair.b), *softness)
    if pair.kinds in CONVEX:
        own = (
            len(pair.solreffriction),
            tuple(pair.solimp[-1:]),
            pair.explicit,
        )  # explicit ones have no order
    return *pair.kinds, _grid(pair.a), _grid(pair.b), own, pair.condim


def _grid(shape: CollisionShape) -> Hashable:
    """The numbers of a height field; nothing for other shapes."""
    field = shape.shape
    return (field.heights, field.extent, field.base) if isinstance(field, HeightField) else b""


def _pair_values(pair: Pair, numbers: Mapping[PolyhedronTables, int]) -> tuple[Any, ...]:
    """The values in which the pairs of a group differ; of a mesh its number."""
    sizes = [
        (numbers[shape.sizes.tables],) if shape.kind == "mesh" else tuple(shape.sizes)
        for shape in (pair.a, pair.b)
    ]
    return *sizes, tuple(getattr(pair, name) for name in VALUES)
