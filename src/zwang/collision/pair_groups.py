"""Pair-type groups: pairs that differ in their numbers only, so that one loop finds the contact points of
all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from operator import attrgetter
from typing import Any

import numpy as np

from zwang.collision.convex.polyhedra import Polyhedron, PolyhedronTables, polyhedron_tables
from zwang.collision.narrow_phase import placed
from zwang.collision.pairs import CollisionShape, Pair
from zwang.collision.shapes import MOST_SIZES, SEVERAL, PlacedShape, SizesOfKinds, extents, radius
from zwang.kinematics.poses import Pose
from zwang.mechanism.geometry import HeightField
from zwang.mechanism.tree import WORLD
from zwang.scalar import MutableArray, Table, empty
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
        self.heights: dict[int, Table | None] = {}
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
    """Pairs of the same form of contact, whose sizes, placements and `VALUES` are read by index. They are of
    the same kinds, or iterated, with as many points. meshes: all that may be among their shapes, perhaps
    more, so that groups share tables.
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
        """Whether the loop over so few pairs is unrolled."""
        return len(self) <= (1 if self.first.is_costly else UNROLLED_PAIRS)

    @cached_property
    def _polyhedra(self) -> PolyhedronTables:
        return polyhedron_tables(self.meshes)

    @cached_property
    def _kinds(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The kinds among the first shapes of the pairs, the most frequent first, and among the second."""
        first, second = (Counter(kinds) for kinds in zip(*(pair.kinds for pair in self.pairs), strict=True))
        return tuple(kind for kind, _ in first.most_common()), tuple(kind for kind, _ in second.most_common())

    @cached_property
    def _pair_values(self) -> StackedPytree:
        numbers = {mesh: k for k, mesh in enumerate(self.meshes)}
        values = []
        for pair in self.pairs:
            both = zip((pair.a, pair.b), self._kinds, strict=True)
            sizes = [_stored_sizes(shape, kinds, numbers) for shape, kinds in both]
            values.append((*sizes, tuple(getattr(pair, name) for name in VALUES)))
        return StackedPytree(values)

    def pair(self, number: Any) -> Pair:
        """Pair `number`, which may be a traced index; names, placements and shapes are those of the first
        pair, all values its own.
        """
        a, b, contact = self._pair_values[number]
        first, second = (
            self._with_sizes(shape, kinds, stored)
            for shape, kinds, stored in zip((self.first.a, self.first.b), self._kinds, (a, b), strict=True)
        )
        values = dict(zip(VALUES, contact, strict=True))
        return replace(self.first, a=first, b=second, points=self.first.count, **values)

    def _with_sizes(self, shape: CollisionShape, kinds: tuple[str, ...], stored: Any) -> CollisionShape:
        """The shape with the `_stored_sizes` of another one."""
        if kinds == ("mesh",):
            return replace(shape, sizes=Polyhedron(self._polyhedra, stored[0]))
        if len(kinds) == 1:
            return replace(shape, sizes=stored)
        kind, mesh, sizes, size, low, high = stored
        polyhedron = Polyhedron(self._polyhedra, mesh) if "mesh" in kinds else None
        own = SizesOfKinds(kinds, kind, sizes, polyhedron, size, np.array(low), np.array(high))
        return replace(shape, kind=SEVERAL, sizes=own)

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


def pair_groups(
    pairs: Sequence[Pair], forms: Sequence[Hashable], among: Sequence[Pair] = ()
) -> list[PairGroup]:
    """The pairs in groups; forms: a value for each pair, equal in a group. among: pairs of which these are
    some; the tables of meshes are those of all, which are shared.
    """
    groups: dict[Hashable, list[Pair]] = {}
    for pair, form in zip(pairs, forms, strict=True):
        groups.setdefault((_group_key(pair), form), []).append(pair)
    shapes = [shape for pair in among or pairs for shape in (pair.a, pair.b) if shape.kind == "mesh"]
    shapes.sort(key=attrgetter("index"))
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
    which shape is fixed to the world, too, except for costly ones, which have the exponent of `solimp` in
    common, so that one program is enough for them. Those that are iterated are of any kinds with as many
    points.
    """
    if pair.is_costly:
        # explicit ones have no order
        own = len(pair.solreffriction), tuple(pair.solimp[-1:]), pair.explicit
        return pair.count, _grid(pair.a), own, pair.condim
    softness = tuple(pair.solref), tuple(pair.solreffriction), tuple(pair.solimp)
    return *pair.kinds, is_fixed_to_world(pair.a), is_fixed_to_world(pair.b), *softness, pair.condim


def _grid(shape: CollisionShape) -> Hashable:
    """The numbers of a height field; nothing for other shapes."""
    field = shape.shape
    return (field.heights, field.extent, field.base) if isinstance(field, HeightField) else b""


def _stored_sizes(
    shape: CollisionShape, kinds: tuple[str, ...], numbers: Mapping[PolyhedronTables, int]
) -> tuple[Any, ...]:
    """What is stored of the sizes of a shape that is of one of these kinds; of a mesh its number. Where there
    are several, the numbers of its kind and of its mesh, its half sizes, radius and extents.
    """
    is_mesh = shape.kind == "mesh"
    number = numbers[shape.sizes.tables] if is_mesh else 0
    own = () if is_mesh else tuple(shape.sizes)
    if len(kinds) == 1:
        return (number,) if is_mesh else own
    low, high = extents(shape.kind, shape.sizes)
    sizes = own + (0.0,) * (MOST_SIZES - len(own))
    kind = float(kinds.index(shape.kind))
    return kind, number, sizes, radius(shape.kind, shape.sizes), tuple(low), tuple(high)
