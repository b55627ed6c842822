"""Pairs of shapes alike but for their numbers, so that one text, in a loop, finds the gaps of them all."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from zwang.collision.narrow_phase import placed
from zwang.collision.pairs import CollisionShape, Pair
from zwang.collision.shapes import PlacedShape
from zwang.kinematics.poses import Pose
from zwang.mechanism.tree import WORLD
from zwang.scalar import MutableArray, are_constant, empty
from zwang.scalar.stacked_pytree import StackedPytree

_PER_POSE = 12


class StoredPlacements:
    """Where the shapes of pairs are, to be read at a traced number."""

    def __init__(self, pairs: Sequence[Pair], poses: Sequence[Pose]) -> None:
        solids = {solid.index: solid for pair in pairs for solid in (pair.a, pair.b)}
        self.numbers = {index: k for k, index in enumerate(solids)}
        self._entries: MutableArray = empty((len(solids), _PER_POSE))
        for k, solid in enumerate(solids.values()):
            _, R, p = placed(solid, poses)
            for c, x in enumerate([*np.ravel(R), *p]):
                self._entries = self._entries.set((k, c), x)

    def __getitem__(self, number: Any) -> tuple[np.ndarray, np.ndarray]:
        """R and p in the world of the shape with this number among `numbers`."""
        x = [self._entries[number, k] for k in range(_PER_POSE)]
        return np.array(x[:9]).reshape(3, 3), np.array(x[9:])


@dataclass(frozen=True)
class PairGroup:
    """Pairs of the same kinds and form of contact, whose sizes, places and coefficients are read by the pair's number."""

    pairs: tuple[Pair, ...]

    @property
    def first(self) -> Pair:
        """One of the pairs, for what they have in common."""
        return self.pairs[0]

    def __len__(self) -> int:
        return len(self.pairs)

    @cached_property
    def _numbers(self) -> StackedPytree:
        return StackedPytree([_numbers(pair) for pair in self.pairs])

    def pair(self, number: Any) -> Pair:
        """Pair `number`, which may be a traced index; names, places and shapes are the first pair's, all numbers its own."""
        a, b, friction, margin, gap = self._numbers[number]
        sides = [
            solid if solid.kind == "mesh" else replace(solid, sizes=sizes)
            for solid, sizes in ((self.first.a, a), (self.first.b, b))
        ]
        return replace(self.first, a=sides[0], b=sides[1], friction=friction, margin=margin, gap=gap)

    def placed(self, number: Any, stored: StoredPlacements) -> tuple[PlacedShape, PlacedShape]:
        """Both shapes of pair `number` in the world."""
        pair = self.pair(number)
        sides = (pair.a, [p.a for p in self.pairs]), (pair.b, [p.b for p in self.pairs])
        a, b = (PlacedShape(own.sizes, *_place_among(solids, number, stored)) for own, solids in sides)
        return a, b


def pair_groups(pairs: Sequence[Pair], width: Sequence[int]) -> list[PairGroup]:
    """The pairs, grouped; only pairs of one `width`, a number for each, come together."""
    groups: dict[Hashable, list[Pair]] = {}
    for pair, size in zip(pairs, width, strict=True):
        groups.setdefault((_form(pair), size), []).append(pair)
    return [PairGroup(tuple(group)) for group in groups.values()]


def is_fixed_to_world(solid: CollisionShape) -> bool:
    """Whether the shape is fixed to the world; the pairs of a family agree on that."""
    return solid.place.link == WORLD


def _place_among(solids: Sequence[CollisionShape], number: Any, stored: StoredPlacements) -> tuple[np.ndarray, np.ndarray]:
    """R and p in the world of solid `number`; plain numbers where all are one shape of the world, such as the ground."""
    one = solids[0]
    if is_fixed_to_world(one) and all(solid.index == one.index for solid in solids):
        return one.place.R, one.place.p
    return stored[StackedPytree([stored.numbers[solid.index] for solid in solids])[number]]


def _form(pair: Pair) -> Hashable:
    """What the pairs of a family have in common: kinds, meshes, who is fixed to the world, the form and softness of contact."""
    softness = (*pair.solref, *pair.solreffriction, *pair.solimp)
    meshes = [
        np.asarray(solid.sizes, float).tobytes() if solid.kind == "mesh" else b""
        for solid in (pair.a, pair.b)
    ]
    return (
        *pair.kinds, *meshes, is_fixed_to_world(pair.a), is_fixed_to_world(pair.b), pair.condim,
        softness if are_constant(*softness) else id(pair),
    )  # fmt: skip


def _numbers(pair: Pair) -> tuple[Any, ...]:
    sizes = [() if solid.kind == "mesh" else tuple(solid.sizes) for solid in (pair.a, pair.b)]
    return (*sizes, tuple(pair.friction), pair.margin, pair.gap)
