"""Rows of all contacts, pair-type group by pair-type group, in loops over arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from zwang.algebra.rotations import cross, skew
from zwang.collision import (
    FAR,
    ContactPoint,
    Pair,
    PairGroup,
    StoredPlacements,
    bounding_volumes_overlap,
    contact_points_between,
    is_fixed_to_world,
    is_swept,
    over_near_pairs,
    pair_groups,
)
from zwang.collision.penetration import with_search_margin
from zwang.constraint.contact import (
    Contact,
    contact_name,
    has_moving_surface,
    is_active,
    is_hard_contact,
    link_screws_at,
    pair_inverse_weights,
    restitution,
    rows_of_contact,
    surface_velocities,
    surface_velocity,
)
from zwang.constraint.contact_bias import LinkMotion, contact_biases, link_motion
from zwang.constraint.context import RowContext
from zwang.constraint.rows import HARD, STORED, Cone, RowGroup, Rows, no_rows
from zwang.mechanism.tree import WORLD, Tree
from zwang.scalar import ActiveIndices, AppendedIndices, MutableArray, are_constant, cond, empty, zeros
from zwang.scalar.stacked_pytree import StackedPytree

UNROLLED_PAIRS = 2  # up to this many pairs the loop over a group is unrolled
LINK_COLUMNS = 6  # of J by the spatial velocity of a link; shorter paths have no more velocities
COLUMN_MULTIPLE = 4  # the columns of a pair are padded to a multiple of this
NO_CONTACT_POINT = ContactPoint(FAR, np.zeros(3), np.eye(3))

RelativeJacobian = Callable[[Any, Any], tuple[np.ndarray, np.ndarray]]


class GroupKinematics(NamedTuple):
    """Arrays that the pairs read by index: placements of the shapes; motion subspaces `screws` (nv, 6) of
    the velocities; spatial velocities (links + 1, 6) of the links, the world's last; v (nv,); spatial_rates:
    of the spatial velocities at constant v, where there are hard contacts.
    """

    shapes: StoredPlacements
    screws: MutableArray
    spatial_velocities: MutableArray
    v: MutableArray
    spatial_rates: MutableArray | None = None

    def motion(self, link: Any) -> LinkMotion:
        """The motion of the link with this index."""
        assert self.spatial_rates is not None
        velocity, rate = (
            np.array([values[link, e] for e in range(6)])
            for values in (self.spatial_velocities, self.spatial_rates)
        )
        return LinkMotion(velocity, rate)

    def relative_velocity(self, links: tuple[Any, Any]) -> np.ndarray:
        """Spatial velocity (6,) of the second of two links, by their indices, relative to the first."""
        a, b = links
        return np.array([self.spatial_velocities[b, e] - self.spatial_velocities[a, e] for e in range(6)])


class _GroupArrays(NamedTuple):
    """The arrays of a `RowGroup` while they are filled; indices: of its active blocks, in a swept group."""

    active: MutableArray
    indices: AppendedIndices | None
    J: MutableArray
    values: dict[str, MutableArray]
    any_active: Any

    def flagged(self, block: Any, flag: float) -> _GroupArrays:
        """The arrays of a swept group with the flag of a block."""
        return self if self.indices is None else self._replace(indices=self.indices.set(block, flag))

    def appended(self, block: Any) -> _GroupArrays:
        """The arrays of a swept group with the index of a block, if its flag is set."""
        return self if self.indices is None else self._replace(indices=self.indices.append(block))


def contact_rows(context: RowContext, pairs: Sequence[Pair]) -> Rows:
    """Rows of the contacts of all pairs, by pair-type group."""
    tree, kinematics = context.mechanism.tree, group_kinematics(context, pairs)
    groups = contact_groups(pairs, [len(_columns(tree, pair)) for pair in pairs])
    places = dict(zip(map(id, pairs), np.cumsum([0, *(pair.count for pair in pairs)]).tolist(), strict=False))
    row_groups = tuple(_row_group(context, kinematics, group, places) for group in groups)
    return replace(no_rows(tree.nv), row_groups=row_groups, screws=link_screws_at(context))


def contact_groups(pairs: Sequence[Pair], width: Sequence[int]) -> list[PairGroup]:
    """Pair-type groups of pairs that are alike hard, with the same restitution; width: of J, equal in
    a group."""
    return pair_groups(pairs, [(n, *_impact_law(pair)) for n, pair in zip(width, pairs, strict=True)])


def _impact_law(pair: Pair) -> tuple[Any, ...]:
    """Whether a contact is hard, and its coefficient of restitution, where that is a number."""
    e = restitution(pair)
    return is_hard_contact(pair), e if are_constant(e) else id(pair)


def group_kinematics(context: RowContext, pairs: Sequence[Pair]) -> GroupKinematics:
    """The kinematics of these pairs as arrays."""
    screws, rates = link_screws_at(context), None
    if any(map(is_hard_contact, pairs)):
        links = range(len(context.mechanism.tree.links))
        rates = _mutable_array([*(link_motion(context.kinematics, i).rate for i in links), np.zeros(6)])
    return GroupKinematics(
        StoredPlacements(pairs, context.poses),
        _mutable_array([column for S in screws.columns for column in S.T]),
        _mutable_array([*screws.spatial_velocities(np.array(context.v)), np.zeros(6)]),
        _mutable_array(context.v),
        rates,
    )


def contact_bias(
    context: RowContext, group: PairGroup, kinematics: GroupKinematics, number: Any, k: int, pair: Pair
) -> Any:
    """Jdot v (6,) of contact point k of a pair of a group; 0 for soft contacts, and in impacts."""
    if not is_hard_contact(group.first) or context.impulsive:
        return (0,) * 6
    a, b = group.placed(number, kinematics.shapes)
    motions = [kinematics.motion(link) for link in links_of(context.mechanism.tree, group)[number]]
    return contact_biases(pair, a, b, *motions)[k]


def surface_velocity_in(
    group: PairGroup, kinematics: GroupKinematics, number: Any, point: ContactPoint
) -> np.ndarray | None:
    """The `surface_velocity` of a contact point of a pair; None if no surface of the group moves."""
    if not any(map(has_moving_surface, group.pairs)):
        return None
    velocities = StackedPytree([surface_velocities(pair) for pair in group.pairs])[number]
    return surface_velocity(velocities, group.placed(number, kinematics.shapes), point)


def over_active_contacts(
    context: RowContext,
    group: PairGroup,
    kinematics: GroupKinematics,
    number: Any,
    function: Callable[[Any, int, Pair, ContactPoint], Any],
    carry: Any,
) -> Any:
    """The carry after function(carry, k, pair, point) for every contact point k of a pair that is active in
    some world.
    """
    pair, hard = group.pair(number), is_hard_contact(group.first)
    pair = with_search_margin(pair) if hard else pair
    a, b = group.placed(number, kinematics.shapes)

    def visit_points(carry: Any) -> Any:
        for k, point in enumerate(contact_points_between(pair, a, b)):
            velocity = np.zeros(3)
            if hard:
                v = kinematics.relative_velocity(links_of(context.mechanism.tree, group)[number])
                velocity = v[:3] + cross(v[3:], point.position)
            active = is_active(context, pair, point, velocity)
            carry = cond(active, lambda t, k=k, point=point: function(t, k, pair, point), lambda t: t, carry)
        return carry

    # hard contacts are active before the bounding volumes overlap
    near = hard or bounding_volumes_overlap(pair, a, b)
    return cond(near, visit_points, lambda t: t, carry)


def links_of(tree: Tree, group: PairGroup) -> StackedPytree:
    """The links (a, b) of every pair as indices of spatial velocities; that of the world, at rest, is the
    last.
    """
    both = [(pair.a.placement.link, pair.b.placement.link) for pair in group.pairs]
    return StackedPytree([tuple(len(tree.links) if i == WORLD else i for i in links) for links in both])


def _mutable_array(values: Any) -> MutableArray:
    """These values as a mutable array."""
    values = np.array(values)
    store = empty(values.shape)
    for index, value in np.ndenumerate(values):
        store = store.set(index, value)
    return store


def _row_group(
    context: RowContext, kinematics: GroupKinematics, group: PairGroup, places: dict[int, int]
) -> RowGroup:
    """Rows of the pairs of a group, evaluated where the contact is active in some world.

    places: the number of the first contact of every pair, by the identity of the pair.
    """
    tree, first = context.mechanism.tree, group.first
    points, by_link = range(first.count), not _columns(tree, first)
    columns = [tuple(_columns(tree, pair)) or (_moving_link(pair),) for pair in group.pairs]
    relative_jacobian = (
        _jacobian_of_link(group, kinematics) if by_link else _jacobian_of_velocities(tree, group, kinematics)
    )
    inverse_weights = StackedPytree([pair_inverse_weights(context, pair) for pair in group.pairs])
    width = LINK_COLUMNS if by_link else len(columns[0])
    template = template_rows(context, group, width)
    n, count, hard = len(template), len(group) * first.count, any(template.hard)
    # where few of many blocks are active, their flags are not searched
    swept = is_swept(group, beyond_margin=is_hard_contact(first))

    def visit(number: Any, arrays: _GroupArrays) -> _GroupArrays:
        blocks = [number * first.count + k for k in points] if swept else []
        for block in blocks:
            arrays = arrays.flagged(block, 0.0)
        arrays = over_active_contacts(
            context, group, kinematics, number, lambda t, *point: store_rows(t, number, *point), arrays
        )
        for block in blocks:
            arrays = arrays.appended(block)
        return arrays

    def store_rows(
        arrays: _GroupArrays, number: Any, k: int, pair: Pair, point: ContactPoint
    ) -> _GroupArrays:
        block = number * first.count + k
        rows = rows_of_contact_point(
            context, pair, point, relative_jacobian(number, point.position), inverse_weights[number],
            contact_bias(context, group, kinematics, number, k, pair),
            surface_velocity_in(group, kinematics, number, point),
        )  # fmt: skip
        return arrays.flagged(block, 1.0)._replace(
            active=arrays.active.set(block, 1.0),
            J=_with_row(arrays.J, block, np.ravel(rows.J)),
            values={
                name: _with_row(store, block, getattr(rows, name)) for name, store in arrays.values.items()
            },
            any_active=True,
        )

    values = {name: empty((count, n)) for name in STORED if not (hard and name in HARD)}
    indices = AppendedIndices.none(count) if swept else None
    start = _GroupArrays(zeros(count), indices, empty((count, n * width)), values, any_active=False)
    filled = over_near_pairs(
        group, kinematics.shapes, visit, start,
        beyond_margin=is_hard_contact(first), unroll=len(group) <= UNROLLED_PAIRS,
    )  # fmt: skip
    active = ActiveIndices(filled.active) if filled.indices is None else filled.indices
    return RowGroup(
        template.kinds, tuple(contact_name(pair, k) for pair in group.pairs for k in points),
        tuple(places[id(pair)] + k for pair in group.pairs for k in points),
        tuple(own for own in columns for _ in points), by_link, hard, filled.active, filled.J, filled.values,
        _cones(group, template), filled.any_active, active,
    )  # fmt: skip


def template_rows(context: RowContext, group: PairGroup, width: int) -> Rows:
    """Rows of the same form as those of every contact of a group, with J (n, width)."""
    nothing = np.zeros((6, width)), np.zeros(width)
    return rows_of_contact_point(context, group.first, NO_CONTACT_POINT, nothing, (1, 1))


def rows_of_contact_point(
    context: RowContext,
    pair: Pair,
    point: ContactPoint,
    relative_jacobian: tuple[np.ndarray, np.ndarray],
    inverse_weight: tuple[Any, Any],
    bias: Any = (0,) * 6,
    moving: Any = None,
) -> Rows:
    """Rows of one contact point.

    relative_jacobian: J (6, width) of b relative to a at the point in world axes, and the velocities that it
    multiplies. bias: Jdot v (6,) of a hard contact, in contact axes. moving: the surface velocity of a
    `Contact`.
    """
    J, v = relative_jacobian
    J = np.concatenate([point.frame @ J[:3], point.frame @ J[3:]])
    distance = 0.0 if context.impulsive else point.distance  # in an impact the contact is closed
    contact = Contact(
        "", pair, distance, J, inverse_weight, tuple(pair.friction[: pair.condim - 1]), True, bias, moving
    )
    return rows_of_contact(context._replace(v=v), contact)


def wrench_rows(context: RowContext, pairs: Sequence[Pair]) -> list[tuple[Pair, int, np.ndarray]]:
    """(pair, number of the contact point, J) of every active contact, on floats.

    J (n, 6) multiplies the spatial velocity of body b relative to a; J^T f is the wrench on b about the
    world's origin.
    """
    kinematics, tree = group_kinematics(context, pairs), context.mechanism.tree
    found: list[tuple[Pair, int, np.ndarray]] = []
    for group in contact_groups(pairs, [0] * len(pairs)):
        for number, own in enumerate(group.pairs):
            relative_velocity = kinematics.relative_velocity(links_of(tree, group)[number])

            def visit(carry: Any, k: int, pair: Pair, point: ContactPoint, v: Any = relative_velocity) -> Any:
                rows = rows_of_contact_point(
                    context, pair, point, (point_transform(point.position), v), (1, 1)
                )
                return [*carry, (k, rows.J)]

            contacts = over_active_contacts(context, group, kinematics, number, visit, [])
            found += [(own, k, J) for k, J in contacts]
    return found


def point_transform(p: Any) -> np.ndarray:
    """Jacobian (6, 6) of the velocity at a point p by the spatial velocity: v + w x p, and w."""
    one = np.eye(3, dtype=int)
    return np.block([[one, -skew(p)], [0 * one, one]])


def _with_row(store: MutableArray, row: Any, values: Any) -> MutableArray:
    """The array with the values of one row replaced."""
    for k, value in enumerate(values):
        store = store.set((row, k), value)
    return store


def _cones(group: PairGroup, template: Rows) -> Callable[[Any], Cone | None]:
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
    """The velocities that move b relative to a, padded by the last of them; none where J multiplies the
    spatial velocity of a link, because a shape is fixed to the world and the tree has long paths.
    """
    fixed, found = _has_fixed_shape(pair), list(signs(tree, pair))
    if fixed and _longest_path(tree, _moving_link(pair)) > LINK_COLUMNS:
        return []
    return found + found[-1:] * (-len(found) % (LINK_COLUMNS if fixed else COLUMN_MULTIPLE))


def _longest_path(tree: Tree, link: int) -> int:
    """The largest number of velocities that move a link of the tree to which this link belongs."""
    root = min(tree.path(link))
    paths = [path for path in map(tree.path, range(len(tree.links))) if root in path]
    return max(sum(tree.links[i].v.stop - tree.links[i].v.start for i in path) for path in paths)


def _jacobian_of_link(group: PairGroup, kinematics: GroupKinematics) -> RelativeJacobian:
    """Relative Jacobian of pairs with the world, by the spatial velocity of the moving link: a point p has
    the velocity v + w x p.
    """
    links = StackedPytree([_moving_link(pair) for pair in group.pairs])
    sign = 1 if is_fixed_to_world(group.first.a) else -1

    def relative_jacobian(number: Any, p: Any) -> tuple[np.ndarray, np.ndarray]:
        link = links[number]
        v = np.array([kinematics.spatial_velocities[link, k] for k in range(6)])
        return sign * point_transform(p), v

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
