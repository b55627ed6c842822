"""Rows of all contacts, pair-type group by pair-type group, in loops over arrays."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
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
    is_swept,
    over_near_pairs,
    pair_groups,
)
from zwang.collision.penetration import with_search_margin
from zwang.collision.shapes import CONVEX
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
from zwang.constraint.row_arrays import WRENCH, RowArrays
from zwang.constraint.rows import Cone, JointScrews, RowGroup, Rows, WarmStart, no_rows
from zwang.constraint.world_rows import Gathering, world_rows
from zwang.mechanism.tree import WORLD, Tree
from zwang.scalar import ActiveIndices, AppendedIndices, MutableArray, cond, empty, zeros
from zwang.scalar.compact_loop import pack_signs
from zwang.scalar.stacked_pytree import StackedPytree

LINK_COLUMNS = 6  # of J by the spatial velocity of a link; shorter paths have no more velocities
MOST_FIXED_COLUMNS = 12  # of J by velocities where the spatial velocity of one link suffices
COLUMN_MULTIPLE = 4  # the columns of a pair are padded to a multiple of this
NO_CONTACT_POINT = ContactPoint(FAR, np.zeros(3), np.eye(3))

RelativeJacobian = Callable[[Any, Any], tuple[np.ndarray, np.ndarray]]
Store = Callable[[Any, Any, Any, Rows], Any]  # (storage, number of the pair, block, rows) -> storage


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
        at_rest = self.spatial_velocities.shape[0] - 1
        V_a, V_b = (
            np.zeros(6, int)
            if isinstance(link, int) and link == at_rest
            else np.array([self.spatial_velocities[link, e] for e in range(6)])
            for link in links
        )
        return V_b - V_a


class _Layout(NamedTuple):
    """The form of the rows of a pair-type group, and their first row and entry of J in the arrays of all.

    columns: see `RowGroup`, by pair.
    """

    group: PairGroup
    template: Rows
    columns: tuple[tuple[int, ...], ...]
    row: int
    entry: int

    @property
    def width(self) -> int:
        """The number of columns of J."""
        return len(self.columns[0]) if self.columns else WRENCH

    @property
    def blocks(self) -> int:
        """The number of contacts."""
        return len(self.group) * self.group.first.count

    def after(self) -> tuple[int, int]:
        """The row and the entry of J behind those of this group."""
        rows = self.blocks * len(self.template)
        return self.row + rows, self.entry + rows * self.width

    def stored(self, arrays: RowArrays, number: Any, block: Any, rows: Rows) -> RowArrays:
        """The arrays with the rows of a block; number: of its pair in the group."""
        n = len(self.template)
        at = self.row + block * n, self.entry + block * (n * self.width)
        return arrays.stored(*at, rows.J, rows.stored_values)

    def gathered(self, screws: JointScrews, status: MutableArray) -> Store:
        """The function that stores the rows of a block with wrenches in a `Gathering`; status: see there."""
        nv, n = screws.velocities[-1].stop, len(self.template)
        signs = [screws.signs(links_of_pair(pair)) for pair in self.group.pairs]
        words = StackedPytree([tuple(pack_signs([own.get(k, 0) for k in range(nv)])) for own in signs])
        return lambda gathering, number, block, rows: gathering.stored(
            self.row + block * n, rows, words[number], status
        )


class _Filling(NamedTuple):
    """The storage of the rows of a group, `RowArrays` or `Gathering`, while they are filled in; active
    (count,): 1 where a block is, else 0; indices: of its active blocks, in a swept group.
    """

    storage: Any
    active: MutableArray
    indices: AppendedIndices | None
    any_active: Any

    def flagged(self, block: Any, flag: float) -> _Filling:
        """The storage of a swept group with the flag of a block."""
        return self if self.indices is None else self._replace(indices=self.indices.set(block, flag))

    def appended(self, block: Any) -> _Filling:
        """The storage of a swept group with the index of a block, if its flag is set."""
        return self if self.indices is None else self._replace(indices=self.indices.append(block))


def contact_rows(context: RowContext, pairs: Sequence[Pair]) -> Rows:
    """Rows of the contacts of all pairs, by pair-type group."""
    screws = link_screws_at(context)
    layouts, end = _layouts(context, pairs, _columns_of_pairs(screws, pairs), 0)
    arrays, filled = _filled_groups(
        context, pairs, layouts, RowArrays.of_size(*end), lambda layout: layout.stored
    )
    row_groups = _row_groups(layouts, filled, arrays, pairs)
    return replace(no_rows(context.mechanism.nv), row_groups=row_groups, screws=screws)


def rows_of_worlds(context: RowContext, pairs: Sequence[Pair], others: Rows, warm_start: WarmStart) -> Rows:
    """The other rows, those of the contacts of all pairs, and the rows of each world, `Rows.of_worlds`."""
    screws = link_screws_at(context)
    layouts, (count, _) = _layouts(context, pairs, [() for _ in pairs], len(others))
    status, filled = warm_start(count), list[_Filling]()

    def fill(gathering: Gathering) -> Gathering:
        gathering, own = _filled_groups(
            context, pairs, layouts, gathering, lambda layout: layout.gathered(screws, status)
        )
        filled.extend(own)
        return gathering

    found = world_rows(others, screws, count, status, fill)
    row_groups = _row_groups(layouts, filled, found.arrays, pairs)
    return replace(others, row_groups=row_groups, screws=screws, of_worlds=found)


def _layouts(
    context: RowContext, pairs: Sequence[Pair], columns: Sequence[tuple[int, ...]], rows: int
) -> tuple[list[_Layout], tuple[int, int]]:
    """The layouts of all pair-type groups, and the row and the entry of J behind them.

    columns: of the J of each pair, none for wrenches. rows: the number of rows before those of contacts.
    """
    own, layouts, at = dict(zip(map(id, pairs), columns, strict=True)), [], (rows, WRENCH * rows)
    for group in contact_groups(pairs, [len(of_pair) for of_pair in columns]):
        of_pairs = tuple(own[id(pair)] for pair in group.pairs if own[id(pair)])
        width = len(of_pairs[0]) if of_pairs else WRENCH
        layouts.append(_Layout(group, template_rows(context, group, width), of_pairs, *at))
        at = layouts[-1].after()
    return layouts, at


def _filled_groups(
    context: RowContext, pairs: Sequence[Pair], layouts: Sequence[_Layout], storage: Any,
    store_of: Callable[[_Layout], Store],
) -> tuple[Any, list[_Filling]]:  # fmt: skip
    """The storage with the rows of all groups, and each group as it was filled."""
    kinematics, filled = group_kinematics(context, pairs), []
    for layout in layouts:
        filled.append(_filled(context, kinematics, layout, storage, store_of(layout)))
        storage = filled[-1].storage
    return storage, filled


def _row_groups(
    layouts: Sequence[_Layout], filled: Sequence[_Filling], arrays: RowArrays, pairs: Sequence[Pair]
) -> tuple[RowGroup, ...]:
    """The rows of all groups in the arrays."""
    places = dict(zip(map(id, pairs), np.cumsum([0, *(pair.count for pair in pairs)]).tolist(), strict=False))
    both = zip(layouts, filled, strict=True)
    return tuple(_row_group(layout, own, arrays, places) for layout, own in both)


def contact_groups(pairs: Sequence[Pair], forms: Sequence[Hashable]) -> list[PairGroup]:
    """Pair-type groups of pairs that are alike hard, with the same restitution; forms: a value for each pair,
    such as the width of J, equal in a group."""
    both = zip(forms, pairs, strict=True)
    return pair_groups(pairs, [(form, is_hard_contact(pair), restitution(pair)) for form, pair in both])


def group_kinematics(context: RowContext, pairs: Sequence[Pair]) -> GroupKinematics:
    """The kinematics of these pairs as arrays."""
    screws, rates = link_screws_at(context), None
    if any(map(is_hard_contact, pairs)):
        links = range(len(context.mechanism.tree.links))
        rates = _mutable_array([*(link_motion(context.kinematics, i).rate for i in links), np.zeros(6)])
    return GroupKinematics(
        StoredPlacements(pairs, context.poses),
        _mutable_array([column for S in screws.columns for column in S.T]),
        spatial_motions(screws, context.v),
        _mutable_array(context.v),
        rates,
    )


def spatial_motions(screws: JointScrews, x: Any) -> MutableArray:
    """The array (links + 1, 6) of the spatial velocities, or accelerations, J x of all links, the world's
    last.
    """
    return _mutable_array([*screws.spatial_velocities(np.array(x)), np.zeros(6)])


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


def _filled(
    context: RowContext, kinematics: GroupKinematics, layout: _Layout, storage: Any, store: Store
) -> _Filling:
    """The storage with the rows of a group, evaluated where the contact is active in some world."""
    group, points, hard = layout.group, range(layout.group.first.count), is_hard_contact(layout.group.first)
    if layout.columns:
        relative_jacobian = _jacobian_by_velocities(link_screws_at(context), layout, kinematics)
    else:
        relative_jacobian = _jacobian_by_wrench(context.mechanism.tree, group, kinematics)
    inverse_weights = StackedPytree([pair_inverse_weights(context, pair) for pair in group.pairs])
    # where few of many blocks are active, their flags are not searched
    swept = is_swept(group, beyond_margin=hard)

    def visit(number: Any, filling: _Filling) -> _Filling:
        blocks = [number * len(points) + k for k in points] if swept else []
        for block in blocks:
            filling = filling.flagged(block, 0.0)
        filling = over_active_contacts(
            context, group, kinematics, number, lambda t, *point: store_rows(t, number, *point), filling
        )
        for block in blocks:
            filling = filling.appended(block)
        return filling

    def store_rows(filling: _Filling, number: Any, k: int, pair: Pair, point: ContactPoint) -> _Filling:
        block = number * len(points) + k
        rows = rows_of_contact_point(
            context, pair, point, relative_jacobian(number, point.position), inverse_weights[number],
            contact_bias(context, group, kinematics, number, k, pair),
            surface_velocity_in(group, kinematics, number, point),
        )  # fmt: skip
        storage = store(filling.storage, number, block, rows)
        return filling.flagged(block, 1.0)._replace(
            storage=storage, active=filling.active.set(block, 1.0), any_active=True
        )

    indices = AppendedIndices.none(layout.blocks) if swept else None
    start = _Filling(storage, zeros(layout.blocks), indices, any_active=False)
    return over_near_pairs(
        group, kinematics.shapes, visit, start, beyond_margin=hard, unroll=group.is_unrolled
    )


def _row_group(layout: _Layout, filled: _Filling, arrays: RowArrays, places: dict[int, int]) -> RowGroup:
    """The rows of a group in the arrays; places: the number of the first contact of every pair, by the
    identity of the pair.
    """
    group, points = layout.group, range(layout.group.first.count)
    return RowGroup(
        layout.template.kinds, tuple(contact_name(pair, k) for pair in group.pairs for k in points),
        tuple(places[id(pair)] + k for pair in group.pairs for k in points),
        tuple(links_of_pair(pair) for pair in group.pairs for _ in points),
        tuple(own for own in layout.columns for _ in points), arrays, layout.row, layout.entry,
        any(layout.template.hard), filled.active, _cones(group, layout.template), filled.any_active,
        ActiveIndices(filled.active) if filled.indices is None else filled.indices,
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


def in_contact_axes(point: ContactPoint, motion: Any) -> np.ndarray:
    """The velocity (6,) at a contact point in contact axes, linear first, of a spatial velocity (6,)."""
    linear = motion[:3] + cross(motion[3:], point.position)
    return np.concatenate([point.frame @ linear, point.frame @ motion[3:]])


def rows_by_contact_velocity(
    context: RowContext, pair: Pair, point: ContactPoint, velocity: Any, inverse_weight: tuple[Any, Any],
    moving: Any = None,
) -> Rows:  # fmt: skip
    """Rows of one soft contact point, whose J multiplies the relative velocity (6,) of `in_contact_axes`.

    velocity: this velocity now. moving: the surface velocity of a `Contact`.
    """
    friction = tuple(pair.friction[: pair.condim - 1])
    contact = Contact(
        "", pair, point.distance, np.eye(6, dtype=int), inverse_weight, friction, True,
        surface_velocity=moving,
    )  # fmt: skip
    return rows_of_contact(context._replace(v=velocity), contact)


def point_transform(p: Any) -> np.ndarray:
    """Jacobian (6, 6) of the velocity at a point p by the spatial velocity: v + w x p, and w."""
    one = np.eye(3, dtype=int)
    return np.block([[one, -skew(p)], [0 * one, one]])


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


def links_of_pair(pair: Pair) -> tuple[int, int]:
    """The links of both shapes."""
    return pair.a.placement.link, pair.b.placement.link


def _columns_of_pairs(screws: JointScrews, pairs: Sequence[Pair]) -> list[tuple[int, ...]]:
    """`_columns` of every pair, padded to the same number for pairs of the same kinds whose contact points
    are found by iteration: this is a long program, of which one is enough for all of them. Those with a shape
    that is fixed to the world have columns, too, where the others have as many, and not too many.
    """
    found = [_columns(screws, pair) for pair in pairs]
    widest: dict[tuple[str, str], int] = {}
    for pair, own in zip(pairs, found, strict=True):
        if pair.kinds in CONVEX:
            widest[pair.kinds] = max(widest.get(pair.kinds, 0), len(own))

    def padded(pair: Pair, own: tuple[int, ...]) -> tuple[int, ...]:
        width = widest.get(pair.kinds, 0)
        if not own and width <= MOST_FIXED_COLUMNS:
            moving = tuple(screws.signs(links_of_pair(pair)))
            own = moving if len(moving) <= width else ()
        return own + own[-1:] * (width - len(own))

    return [padded(pair, own) for pair, own in zip(pairs, found, strict=True)]


def _columns(screws: JointScrews, pair: Pair) -> tuple[int, ...]:
    """The velocities that move b relative to a, padded by the last of them; none where J multiplies the
    spatial velocity of a link, because a shape is fixed to the world and the tree has long paths.
    """
    links = links_of_pair(pair)
    fixed, found = WORLD in links, tuple(screws.signs(links))
    if fixed and _longest_path(screws, max(links)) > LINK_COLUMNS:
        return ()
    return found + found[-1:] * (-len(found) % (LINK_COLUMNS if fixed else COLUMN_MULTIPLE))


def _longest_path(screws: JointScrews, link: int) -> int:
    """The largest number of velocities that move a link of the tree to which this link belongs."""
    root = min(screws.path(link))
    paths = [path for path in map(screws.path, range(len(screws.parents))) if root in path]
    return max(sum(screws.velocities[i].stop - screws.velocities[i].start for i in path) for path in paths)


def _jacobian_by_wrench(tree: Tree, group: PairGroup, kinematics: GroupKinematics) -> RelativeJacobian:
    """Relative Jacobian by the spatial velocity of b relative to a: a point p has the velocity v + w x p."""
    links = links_of(tree, group)
    return lambda number, p: (point_transform(p), kinematics.relative_velocity(links[number]))


def _jacobian_by_velocities(
    screws: JointScrews, layout: _Layout, kinematics: GroupKinematics
) -> RelativeJacobian:
    """Relative Jacobian by the generalised velocities that move one of the links; padded columns are zero."""
    entries = []
    for pair, speeds in zip(layout.group.pairs, layout.columns, strict=True):
        own = screws.signs(links_of_pair(pair))
        entries.append((speeds, [*map(float, own.values()), *[0.0] * (len(speeds) - len(own))]))
    stacked = StackedPytree(entries)

    def relative_jacobian(number: Any, p: Any) -> tuple[np.ndarray, np.ndarray]:
        columns = []
        for speed, sign in zip(*stacked[number], strict=True):
            S = np.array([kinematics.screws[speed, k] for k in range(6)])
            columns.append(sign * np.concatenate([S[:3] + cross(S[3:], p), S[3:]]))
        return np.stack(columns, axis=1), np.array([kinematics.v[speed] for speed in stacked[number][0]])

    return relative_jacobian
