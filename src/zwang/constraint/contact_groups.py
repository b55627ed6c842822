"""Rows of soft contacts at traced positions, pair-type group by pair-type group, in loops over arrays."""

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
from zwang.constraint.contact import Contact, pair_inverse_weights, rows_of_contact
from zwang.constraint.context import RowContext
from zwang.constraint.rows import Cone, JointScrews, RowGroup, Rows
from zwang.mechanism.tree import Tree
from zwang.scalar import ActiveIndices, MutableArray, cond, divide, empty, fori_loop
from zwang.scalar.stacked_pytree import StackedPytree

UNROLLED_PAIRS = 2  # up to this many pairs the loop over a group is unrolled
COLUMN_MULTIPLE = 4  # the columns of a pair are padded to a multiple of this
NO_CONTACT_POINT = ContactPoint(FAR, np.zeros(3), np.eye(3))

RelativeJacobian = Callable[[Any, Any], tuple[np.ndarray, np.ndarray]]


class GroupKinematics(NamedTuple):
    """Arrays that the pairs read by index: placements of the shapes; motion subspaces `screws` (nv, 6) of
    the velocities; spatial velocities (links + 1, 6) of the links, the world's last; v (nv,).
    """

    shapes: StoredPlacements
    screws: MutableArray
    spatial_velocities: MutableArray
    v: MutableArray


class _GroupArrays(NamedTuple):
    """The arrays of a `RowGroup` while they are filled."""

    active: MutableArray
    J: MutableArray
    aref: MutableArray
    D: MutableArray
    any_active: Any


def contact_row_groups(
    context: RowContext, pairs: Sequence[Pair], screws: JointScrews
) -> tuple[RowGroup, ...]:
    """Rows of soft contacts by pair-type group. pairs: none of them may be hard."""
    tree, kinematics = context.mechanism.tree, group_kinematics(context, pairs, screws)
    grouped = pair_groups(pairs, [len(_columns(tree, pair)) for pair in pairs])
    return tuple(_row_group(context, kinematics, group) for group in grouped)


def group_kinematics(context: RowContext, pairs: Sequence[Pair], screws: JointScrews) -> GroupKinematics:
    """The kinematics of these pairs as arrays."""
    return GroupKinematics(
        StoredPlacements(pairs, context.poses),
        _mutable_array([column for S in screws.columns for column in S.T]),
        _mutable_array([*screws.spatial_velocities(np.array(context.v)), np.zeros(6)]),
        _mutable_array(context.v),
    )


def over_active_contacts(
    group: PairGroup,
    kinematics: GroupKinematics,
    number: Any,
    function: Callable[[Any, int, Pair, ContactPoint], Any],
    carry: Any,
) -> Any:
    """The carry after function(carry, k, pair, point) for every contact point k of a pair that is active in
    some world.
    """
    pair = group.pair(number)
    a, b = group.placed(number, kinematics.shapes)

    def visit_points(carry: Any) -> Any:
        for k, point in enumerate(contact_points_between(pair, a, b)):
            active = point.distance < pair.margin
            carry = cond(active, lambda t, k=k, point=point: function(t, k, pair, point), lambda t: t, carry)
        return carry

    return cond(bounding_spheres_overlap(pair, a, b), visit_points, lambda t: t, carry)


def _mutable_array(values: Any) -> MutableArray:
    """These values as a mutable array."""
    values = np.array(values)
    store = empty(values.shape)
    for index, value in np.ndenumerate(values):
        store = store.set(index, value)
    return store


def _row_group(context: RowContext, kinematics: GroupKinematics, group: PairGroup) -> RowGroup:
    """Rows of the pairs of a group, evaluated where the bounding spheres overlap in some world."""
    tree, first = context.mechanism.tree, group.first
    count_of_pair, fixed = first.count, _has_fixed_shape(first)
    columns = [(_moving_link(pair),) if fixed else tuple(_columns(tree, pair)) for pair in group.pairs]
    relative_jacobian = (
        _jacobian_of_link(group, kinematics) if fixed else _jacobian_of_velocities(tree, group, kinematics)
    )
    inverse_weights = StackedPytree([pair_inverse_weights(context, pair) for pair in group.pairs])
    width = 6 if fixed else len(columns[0])
    template = rows_of_contact_point(
        context, first, NO_CONTACT_POINT, (np.zeros((6, width)), np.zeros(width)), (1, 1)
    )
    n, count = len(template), len(group) * count_of_pair

    def visit(number: Any, arrays: _GroupArrays) -> _GroupArrays:
        for k in range(count_of_pair):
            arrays = arrays._replace(active=arrays.active.set(number * count_of_pair + k, 0.0))
        return over_active_contacts(
            group, kinematics, number, lambda arrays, *point: store_rows(arrays, number, *point), arrays
        )

    def store_rows(
        arrays: _GroupArrays, number: Any, k: int, pair: Pair, point: ContactPoint
    ) -> _GroupArrays:
        block = number * count_of_pair + k
        rows = rows_of_contact_point(
            context, pair, point, relative_jacobian(number, point.position), inverse_weights[number]
        )
        return _GroupArrays(
            active=arrays.active.set(block, 1.0),
            J=_with_row(arrays.J, block, np.ravel(rows.J)),
            aref=_with_row(arrays.aref, block, rows.aref),
            D=_with_row(arrays.D, block, [divide(1, R) for R in rows.R]),
            any_active=True,
        )

    shapes = (count,), (count, n * width), (count, n), (count, n)
    start = _GroupArrays(*(empty(shape) for shape in shapes), any_active=False)
    filled = fori_loop(0, len(group), visit, start, unroll=len(group) <= UNROLLED_PAIRS)
    block_columns = tuple(own for own in columns for _ in range(count_of_pair))
    return RowGroup(
        template.kinds,
        block_columns,
        fixed,
        filled.active,
        filled.J,
        filled.aref,
        filled.D,
        _cones(context, group, template),
        filled.any_active,
        ActiveIndices(filled.active),
    )


def rows_of_contact_point(
    context: RowContext,
    pair: Pair,
    point: ContactPoint,
    relative_jacobian: tuple[np.ndarray, np.ndarray],
    inverse_weight: tuple[Any, Any],
) -> Rows:
    """Rows of one contact point.

    relative_jacobian: J (6, width) of b relative to a at the point in world axes, and the velocities that it
    multiplies.
    """
    J, v = relative_jacobian
    J = np.concatenate([point.frame @ J[:3], point.frame @ J[3:]])
    contact = Contact(
        "", pair, point.distance, J, inverse_weight, tuple(pair.friction[: pair.condim - 1]), True
    )
    return rows_of_contact(context._replace(v=v), contact)


def _with_row(store: MutableArray, row: Any, values: Any) -> MutableArray:
    """The array with the values of one row replaced."""
    for k, value in enumerate(values):
        store = store.set((row, k), value)
    return store


def _cones(context: RowContext, group: PairGroup, template: Rows) -> Callable[[Any], Cone | None]:
    """The cone of a block by its index; None for pyramids."""
    if not template.cones:
        return lambda block: None
    frictions = [pair.friction[: pair.condim - 1] for pair in group.pairs for _ in range(pair.count)]
    stacked, ratio = StackedPytree(frictions), template.cones[0].mu / template.cones[0].friction[0]

    def cone(block: Any) -> Cone:
        friction = stacked[block]
        return Cone(0, friction, friction[0] * ratio)

    return cone


def _has_fixed_shape(pair: Pair) -> bool:
    """Whether one of the shapes is fixed to the world."""
    return is_fixed_to_world(pair.a) or is_fixed_to_world(pair.b)


def _moving_link(pair: Pair) -> int:
    """The link of the shape that is not fixed to the world."""
    return max(pair.a.placement.link, pair.b.placement.link)


def signs(tree: Tree, pair: Pair) -> dict[int, float]:
    """The velocities that move b (sign 1) or a (sign -1) of a pair; velocities that move both are omitted."""
    a, b = (set(tree.path(solid.placement.link)) for solid in (pair.a, pair.b))
    spans = {i: range(tree.links[i].v.start, tree.links[i].v.stop) for i in sorted(a ^ b)}
    return {k: 1.0 if i in b else -1.0 for i, span in spans.items() for k in span}


def _columns(tree: Tree, pair: Pair) -> list[int]:
    """The velocities that move b relative to a, padded by the last of them; none where a shape is fixed to
    the world.
    """
    if _has_fixed_shape(pair):
        return []
    found = list(signs(tree, pair))
    return found + found[-1:] * (-len(found) % COLUMN_MULTIPLE)


def _jacobian_of_link(group: PairGroup, kinematics: GroupKinematics) -> RelativeJacobian:
    """Relative Jacobian of pairs with the world, by the spatial velocity of the moving link: a point p has
    the velocity v + w x p.
    """
    links = StackedPytree([_moving_link(pair) for pair in group.pairs])
    sign, one = (1 if is_fixed_to_world(group.first.a) else -1), np.eye(3, dtype=int)

    def relative_jacobian(number: Any, p: Any) -> tuple[np.ndarray, np.ndarray]:
        link = links[number]
        v = np.array([kinematics.spatial_velocities[link, k] for k in range(6)])
        return sign * np.block([[one, -skew(p)], [0 * one, one]]), v

    return relative_jacobian


def _jacobian_of_velocities(tree: Tree, group: PairGroup, kinematics: GroupKinematics) -> RelativeJacobian:
    """Relative Jacobian of pairs of moving shapes, by the generalised velocities between them; padded
    columns are zero.
    """
    entries = []
    for pair in group.pairs:
        own, speeds = signs(tree, pair), _columns(tree, pair)
        entries.append((speeds, [*own.values(), *[0.0] * (len(speeds) - len(own))]))
    stacked = StackedPytree(entries)

    def relative_jacobian(number: Any, p: Any) -> tuple[np.ndarray, np.ndarray]:
        columns = []
        for speed, sign in zip(*stacked[number], strict=True):
            S = np.array([kinematics.screws[speed, k] for k in range(6)])
            columns.append(sign * np.concatenate([S[:3] + cross(S[3:], p), S[3:]]))
        return np.stack(columns, axis=1), np.array([kinematics.v[speed] for speed in stacked[number][0]])

    return relative_jacobian
