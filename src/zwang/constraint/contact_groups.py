"""The rows of soft contacts whose positions are not known yet: family by family of pairs, in loops over arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from zwang.algebra.rotations import cross, skew
from zwang.collision import (
    FAR,
    ContactPoint,
    Pair,
    PairGroup,
    StoredPlacements,
    bounding_spheres_overlap,
    contact_points_between,
    is_fixed_to_world,
    pair_groups,
)
from zwang.constraint.contact import Contact, pair_weight, rows_of_contact
from zwang.constraint.context import RowContext
from zwang.constraint.rows import Cone, RowGroup, Rows, Screws
from zwang.mechanism.tree import Tree
from zwang.scalar import ActiveIndices, MutableArray, cond, divide, empty, fori_loop
from zwang.scalar.stacked_pytree import StackedPytree

FEW = 2  # pairs that are gone through one after the other, with all their numbers in the text
STEP = 4  # a pair's speeds are filled up to a multiple of this many
NOWHERE = ContactPoint(FAR, np.zeros(3), np.eye(3))

RelativeJacobian = Callable[[Any, Any], tuple[np.ndarray, np.ndarray]]


class GroupKinematics(NamedTuple):
    """What pairs read at their shapes, links and speeds: poses of shapes; screws (nv, 6) of the speeds; motions (links + 1, 6), the last one the
    world's; v (nv,)."""

    shapes: StoredPlacements
    screws: MutableArray
    spatial_velocities: MutableArray
    v: MutableArray


class _Filled(NamedTuple):
    """The arrays of a batch on their way; see `Batch`."""

    active: MutableArray
    J: MutableArray
    aref: MutableArray
    D: MutableArray
    acting: Any


def contact_row_groups(instant: RowContext, pairs: Sequence[Pair], screws: Screws) -> tuple[RowGroup, ...]:
    """The rows of pairs of shapes none of which asks for exact contact."""
    tree, scene = instant.mechanism.tree, group_kinematics(instant, pairs, screws)
    grouped = pair_groups(pairs, [len(_speeds(tree, pair)) for pair in pairs])
    return tuple(_batch(instant, scene, family) for family in grouped)


def group_kinematics(instant: RowContext, pairs: Sequence[Pair], screws: Screws) -> GroupKinematics:
    """All that these pairs read."""
    return GroupKinematics(
        StoredPlacements(pairs, instant.poses),
        _stored([column for S in screws.columns for column in S.T]),
        _stored([*screws.spatial_velocities(np.array(instant.v)), np.zeros(6)]),
        _stored(instant.v),
    )


def over_active_contacts(
    family: PairGroup, scene: GroupKinematics, number: Any, work: Callable[[Any, int, Pair, ContactPoint], Any], total: Any
) -> Any:
    """`total` after work(total, k, pair, gap) for each gap k of a family's pair that is within its margin in some world."""
    pair = family.pair(number)
    a, b = family.placed(number, scene.shapes)

    def each(total: Any) -> Any:
        for k, gap in enumerate(contact_points_between(pair, a, b)):
            acts = gap.distance < pair.margin
            total = cond(acts, lambda t, k=k, gap=gap: work(t, k, pair, gap), lambda t: t, total)
        return total

    return cond(bounding_spheres_overlap(pair, a, b), each, lambda t: t, total)


def _stored(values: Any) -> MutableArray:
    """An array as a scratch array."""
    values = np.array(values)
    store = empty(values.shape)
    for place, value in np.ndenumerate(values):
        store = store.set(place, value)
    return store


def _batch(instant: RowContext, scene: GroupKinematics, family: PairGroup) -> RowGroup:
    """The rows of a family's pairs, worked out where some world has the shapes near each other."""
    tree, first = instant.mechanism.tree, family.first
    gaps, fixed = first.count, _fixed(first)
    columns = [(_moving_link(pair),) if fixed else tuple(_speeds(tree, pair)) for pair in family.pairs]
    lever = _lever_of_link(family, scene) if fixed else _lever_of_speeds(tree, family, scene)
    weights = StackedPytree([pair_weight(instant, pair) for pair in family.pairs])
    width = 6 if fixed else len(columns[0])
    like = rows_of_contact_point(instant, first, NOWHERE, (np.zeros((6, width)), np.zeros(width)), (1, 1))
    n, count = len(like), len(family) * gaps

    def turn(number: Any, to: _Filled) -> _Filled:
        for k in range(gaps):
            to = to._replace(active=to.active.set(number * gaps + k, 0.0))
        return over_active_contacts(family, scene, number, lambda to, *gap: fill(to, number, *gap), to)

    def fill(to: _Filled, number: Any, k: int, pair: Pair, gap: ContactPoint) -> _Filled:
        group = number * gaps + k
        rows = rows_of_contact_point(instant, pair, gap, lever(number, gap.position), weights[number])
        return _Filled(
            active=to.active.set(group, 1.0),
            J=_with_row(to.J, group, np.ravel(rows.J)),
            aref=_with_row(to.aref, group, rows.aref),
            D=_with_row(to.D, group, [divide(1, R) for R in rows.R]),
            acting=True,
        )

    shapes = (count,), (count, n * width), (count, n), (count, n)
    start = _Filled(*(empty(shape) for shape in shapes), acting=False)
    filled = fori_loop(0, len(family), turn, start, unroll=len(family) <= FEW)
    each = tuple(own for own in columns for _ in range(gaps))
    return RowGroup(
        like.kinds,
        each,
        fixed,
        filled.active,
        filled.J,
        filled.aref,
        filled.D,
        _cones(instant, family, like),
        filled.acting,
        ActiveIndices(filled.active),
    )


def rows_of_contact_point(
    instant: RowContext, pair: Pair, gap: ContactPoint, lever: tuple[np.ndarray, np.ndarray], weight: tuple[Any, Any]
) -> Rows:
    """The rows of one gap; lever: J (6, width) of b against a at the gap, world axes, and what of v it multiplies."""
    J, v = lever
    J = np.concatenate([gap.frame @ J[:3], gap.frame @ J[3:]])
    touch = Contact("", pair, gap.distance, J, weight, tuple(pair.friction[: pair.condim - 1]), True)
    return rows_of_contact(instant._replace(v=v), touch)


def _with_row(store: MutableArray, row: Any, values: Any) -> MutableArray:
    for k, value in enumerate(values):
        store = store.set((row, k), value)
    return store


def _cones(instant: RowContext, family: PairGroup, like: Rows) -> Callable[[Any], Cone | None]:
    """The cone of a group by its number; None where there are only edges."""
    if not like.cones:
        return lambda group: None
    frictions = [pair.friction[: pair.condim - 1] for pair in family.pairs for _ in range(pair.count)]
    stacked, ratio = StackedPytree(frictions), like.cones[0].mu / like.cones[0].friction[0]

    def cone(group: Any) -> Cone:
        friction = stacked[group]
        return Cone(0, friction, friction[0] * ratio)

    return cone


def _fixed(pair: Pair) -> bool:
    """Whether one of the shapes is fixed to the world."""
    return is_fixed_to_world(pair.a) or is_fixed_to_world(pair.b)


def _moving_link(pair: Pair) -> int:
    return max(pair.a.place.link, pair.b.place.link)


def signs(tree: Tree, pair: Pair) -> dict[int, float]:
    """The speeds that move b against a, with -1 for those that move a; links that carry both move neither."""
    a, b = (set(tree.path(solid.place.link)) for solid in (pair.a, pair.b))
    spans = {i: range(tree.links[i].v.start, tree.links[i].v.stop) for i in sorted(a ^ b)}
    return {k: 1.0 if i in b else -1.0 for i, span in spans.items() for k in span}


def _speeds(tree: Tree, pair: Pair) -> list[int]:
    """The speeds that move b against a, filled up with the last of them; none where one of the shapes is fixed to the world."""
    if _fixed(pair):
        return []
    found = list(signs(tree, pair))
    return found + found[-1:] * (-len(found) % STEP)


def _lever_of_link(family: PairGroup, scene: GroupKinematics) -> RelativeJacobian:
    """For pairs with the world: J by the screw of the link that moves, which moves a point p with v + w x p."""
    links = StackedPytree([_moving_link(pair) for pair in family.pairs])
    sign, one = (1 if is_fixed_to_world(family.first.a) else -1), np.eye(3, dtype=int)

    def lever(number: Any, p: Any) -> tuple[np.ndarray, np.ndarray]:
        link = links[number]
        v = np.array([scene.spatial_velocities[link, k] for k in range(6)])
        return sign * np.block([[one, -skew(p)], [0 * one, one]]), v

    return lever


def _lever_of_speeds(tree: Tree, family: PairGroup, scene: GroupKinematics) -> RelativeJacobian:
    """For pairs that both move: J by the speeds between them; those that only fill up have zeros."""
    entries = []
    for pair in family.pairs:
        own, speeds = signs(tree, pair), _speeds(tree, pair)
        entries.append((speeds, [*own.values(), *[0.0] * (len(speeds) - len(own))]))
    stacked = StackedPytree(entries)

    def lever(number: Any, p: Any) -> tuple[np.ndarray, np.ndarray]:
        columns = []
        for speed, sign in zip(*stacked[number], strict=True):
            S = np.array([scene.screws[speed, k] for k in range(6)])
            columns.append(sign * np.concatenate([S[:3] + cross(S[3:], p), S[3:]]))
        return np.stack(columns, axis=1), np.array([scene.v[speed] for speed in stacked[number][0]])

    return lever
