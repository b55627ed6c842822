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
    contact_points_between,
    if_volumes_overlap,
    is_swept,
    over_near_pairs,
    pair_groups,
)
from zwang.collision.penetration import with_search_margin
from zwang.constraint.contact import (
    Contact,
    PairInverseWeights,
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
from zwang.constraint.contact_bias import contact_biases
from zwang.constraint.context import RowContext
from zwang.constraint.coupled_rows import Gathering, are_kept_by_world, coupled_rows
from zwang.constraint.group_kinematics import GroupKinematics, group_kinematics, links_of
from zwang.constraint.row_arrays import OWN, WRENCH, ContactForm, CoupledRows, RowArrays, pyramid_edges
from zwang.constraint.rows import Cone, JointScrews, RowGroup, Rows, no_rows
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.tree import WORLD, Tree
from zwang.scalar import ActiveIndices, AppendedIndices, MutableArray, cond, fori_loop, zeros
from zwang.scalar.compact_loop import pack_signs
from zwang.scalar.stacked_pytree import StackedPytree

LINK_COLUMNS = 6  # of J by the spatial velocity of a link; shorter paths have no more velocities
MOST_FIXED_COLUMNS = 12  # of J by velocities where the spatial velocity of one link suffices
COLUMN_MULTIPLE = 4  # the columns of a pair are padded to a multiple of this
NO_CONTACT_POINT = ContactPoint(FAR, np.zeros(3), np.eye(3))

RelativeJacobian = Callable[[Any, Any], tuple[np.ndarray, np.ndarray]]
# (storage, number of the pair, block, rows, J of the contact axes) -> storage
Store = Callable[[Any, Any, Any, Rows, np.ndarray], Any]


class _Layout(NamedTuple):
    """The form of the rows of a pair-type group, and their first row and entry of J in the arrays of all.

    columns: see `RowGroup`, by pair. has_edges: whether the J of the contact axes is stored for the edges of
    a pyramid.
    """

    group: PairGroup
    template: Rows
    columns: tuple[tuple[int, ...], ...]
    row: int
    entry: int
    has_edges: bool

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
        return self.row + self.blocks * len(self.template), self.entry + self.blocks * self._entries

    @property
    def _entries(self) -> int:
        """The number of entries of J that are stored of a block."""
        return (self.group.first.condim if self.has_edges else len(self.template)) * self.width

    def stored(self, arrays: RowArrays, number: Any, block: Any, rows: Rows, axes: np.ndarray) -> RowArrays:
        """The arrays with the rows of a block; number: of its pair in the group."""
        at = self.row + block * len(self.template), self.entry + block * self._entries
        if not self.has_edges:
            return arrays.stored(*at, rows.J, rows.stored_values)
        values = {name: x if name in OWN else x[:1] for name, x in rows.stored_values.items()}
        return arrays.stored(*at, axes, values)

    @property
    def form(self) -> ContactForm:
        """The form of its contacts."""
        cones, n = self.template.cones, len(self.template)
        ratio = cones[0].mu / cones[0].friction[0] if cones else None
        return ContactForm(
            self.template.kinds, self.group.first.condim if self.has_edges else n, self.has_edges, ratio
        )

    def gathered(self, screws: JointScrews) -> Store:
        """The function that stores the rows of a block with wrenches in a `Gathering`."""
        nv, first = screws.velocities[-1].stop, self.row // len(self.template)
        signs = [screws.signs(pair.links) for pair in self.group.pairs]
        words = StackedPytree([tuple(pack_signs([own.get(k, 0) for k in range(nv)])) for own in signs])
        friction = StackedPytree([tuple(pair.friction[: pair.condim - 1]) for pair in self.group.pairs])

        def store(gathering: Gathering, number: Any, block: Any, rows: Rows, axes: np.ndarray) -> Gathering:
            arrays = self.stored(gathering.arrays, number, block, rows, axes)
            return gathering.with_contact(first + block, arrays, words[number], friction[number])

        return store


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


def contact_rows(context: RowContext, pairs: Sequence[Pair], coupled: Sequence[Pair] = ()) -> Rows:
    """Rows of the contacts of all pairs, by pair-type group. coupled: some of the pairs, whose rows are kept
    by world (`CoupledRows`), by the number of their contact axes; their groups are the last.
    """
    screws, nv, kept = link_screws_at(context), context.mechanism.nv, set(map(id, coupled))
    kinematics, others = group_kinematics(context, pairs), [pair for pair in pairs if id(pair) not in kept]
    layouts, end = _layouts(context, others, _columns_of_pairs(screws, others), pairs)
    arrays, filled = _filled_groups(
        context, kinematics, layouts, RowArrays.of_size(*end), lambda layout: layout.stored
    )
    places = dict(zip(map(id, pairs), np.cumsum([0, *(pair.count for pair in pairs)]).tolist(), strict=False))
    row_groups = _row_groups(layouts, filled, arrays, places)
    rows = replace(no_rows(nv), row_groups=row_groups, screws=screws)
    if not coupled:
        return rows
    groups, found = list(row_groups), list[CoupledRows]()
    for condim in sorted({pair.condim for pair in coupled}):
        own = [pair for pair in coupled if pair.condim == condim]
        layouts, (count, _) = _layouts(context, own, [()] * len(own), pairs)
        filled = list[_Filling]()

        def fill(gathering: Gathering, layouts: Any = layouts, filled: Any = filled) -> Gathering:
            gathering, of_layouts = _filled_groups(
                context, kinematics, layouts, gathering, lambda layout: layout.gathered(screws)
            )
            filled += of_layouts
            return gathering

        form = layouts[0].form
        coupled_of_form, arrays = coupled_rows(form, screws, nv, count // len(form.kinds), fill)
        found.append(coupled_of_form)
        both = _row_groups(layouts, filled, arrays, places)
        groups += [replace(group, is_coupled=True) for group in both]
    return replace(rows, row_groups=tuple(groups), coupled=tuple(found))


def pairs_kept_by_world(mechanism: Mechanism, others: Rows, pairs: Sequence[Pair]) -> list[Pair]:
    """The pairs whose rows are kept by world: those of two moving links, and costly ones of the same form;
    none where this is not worth it. others: the rows of other constraints.
    """
    moving = [pair for pair in pairs if WORLD not in pair.links]
    costly = {(pair.count, pair.condim) for pair in moving if pair.is_costly}
    chosen = [
        pair
        for pair in pairs
        if WORLD not in pair.links or (pair.is_costly and (pair.count, pair.condim) in costly)
    ]
    return chosen if chosen and are_kept_by_world(mechanism, others, chosen) else []


def _layouts(
    context: RowContext,
    pairs: Sequence[Pair],
    columns: Sequence[tuple[int, ...]],
    among: Sequence[Pair],
) -> tuple[list[_Layout], tuple[int, int]]:
    """The layouts of all pair-type groups, and the row and the entry of J behind them.

    columns: of the J of each pair, none for wrenches. among: all pairs, which share tables of meshes.
    """
    own, layouts = dict(zip(map(id, pairs), columns, strict=True)), list[_Layout]()
    row, entry = 0, 0
    for group in contact_groups(pairs, [len(of_pair) for of_pair in columns], among):
        of_pairs = tuple(own[id(pair)] for pair in group.pairs if own[id(pair)])
        width = len(of_pairs[0]) if of_pairs else WRENCH
        template = template_rows(context, group, width)
        has_edges = group.first.condim > 1 and not template.cones
        layouts.append(_Layout(group, template, of_pairs, row, entry, has_edges))
        row, entry = layouts[-1].after()
    return layouts, (row, entry)


def _filled_groups(
    context: RowContext, kinematics: GroupKinematics, layouts: Sequence[_Layout], storage: Any,
    store_of: Callable[[_Layout], Store],
) -> tuple[Any, list[_Filling]]:  # fmt: skip
    """The storage with the rows of all groups, and each group as it was filled."""
    filled = []
    for layout in layouts:
        filled.append(_filled(context, kinematics, layout, storage, store_of(layout)))
        storage = filled[-1].storage
    return storage, filled


def _row_groups(
    layouts: Sequence[_Layout], filled: Sequence[_Filling], arrays: RowArrays, places: dict[int, int]
) -> tuple[RowGroup, ...]:
    """The rows of all groups in the arrays; places: the number of the first contact of every pair, by the
    identity of the pair.
    """
    both = zip(layouts, filled, strict=True)
    return tuple(_row_group(layout, own, arrays, places) for layout, own in both)


def contact_groups(
    pairs: Sequence[Pair], forms: Sequence[Hashable], among: Sequence[Pair] = ()
) -> list[PairGroup]:
    """Pair-type groups of pairs that are alike hard, with the same restitution; forms: a value for each pair,
    such as the width of J, equal in a group. among: as for `pair_groups`.
    """
    own = [(form, is_hard_contact(pair), restitution(pair)) for form, pair in zip(forms, pairs, strict=True)]
    return pair_groups(pairs, own, among)


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
    function: Callable[[Any, Any, Pair, ContactPoint], Any],
    carry: Any,
) -> Any:
    """The carry after function(carry, k, pair, point) for every contact point k of a pair that is active in
    some world.
    """
    hard = is_hard_contact(group.first)

    def visit(carry: Any, k: Any, pair: Pair, point: ContactPoint) -> Any:
        velocity, acceleration = np.zeros(3), None
        if hard:
            links = links_of(context.mechanism.tree, group)[number]
            v = kinematics.relative_velocity(links)
            velocity = v[:3] + cross(v[3:], point.position)
            if kinematics.accelerations is not None:
                motion = kinematics._replace(spatial_velocities=kinematics.accelerations)
                J_a = in_contact_axes(point, motion.relative_velocity(links))
                acceleration = J_a[0] + contact_bias(context, group, kinematics, number, k, pair)[0]
        active = is_active(context, pair, point, velocity, acceleration)
        return cond(active, lambda t: function(t, k, pair, point), lambda t: t, carry)

    return over_contact_points(group, kinematics, number, visit, carry)


def over_contact_points(
    group: PairGroup,
    kinematics: GroupKinematics,
    number: Any,
    function: Callable[[Any, Any, Pair, ContactPoint], Any],
    carry: Any,
) -> Any:
    """The carry after function(carry, k, pair, point) for every contact point k of a pair, if it is hard, or
    if its bounding volumes overlap in some world.
    """
    pair, hard = group.pair(number), is_hard_contact(group.first)
    pair = with_search_margin(pair) if hard else pair
    a, b = group.placed(number, kinematics.shapes)

    def visit_points(carry: Any) -> Any:
        points = contact_points_between(pair, a, b)
        if len(points) > 1 and pair.is_costly and not hard:
            stored = StackedPytree(points)
            return fori_loop(
                0, len(points), lambda k, t: function(t, k, pair, stored[k]), carry, unroll=False
            )
        for k, point in enumerate(points):
            carry = function(carry, k, pair, point)
        return carry

    # hard contacts are active before the bounding volumes overlap
    return visit_points(carry) if hard else if_volumes_overlap(pair, a, b, visit_points, carry)


def _filled(
    context: RowContext, kinematics: GroupKinematics, layout: _Layout, storage: Any, store: Store
) -> _Filling:
    """The storage with the rows of a group, evaluated where the contact is active in some world."""
    group, points, hard = layout.group, range(layout.group.first.count), is_hard_contact(layout.group.first)
    if layout.columns:
        relative_jacobian = _jacobian_by_velocities(link_screws_at(context), layout, kinematics)
    else:
        relative_jacobian = _jacobian_by_wrench(context.mechanism.tree, group, kinematics)
    inverse_weights = StackedPytree(pair_inverse_weights(context, group.pairs))
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

    def store_rows(filling: _Filling, number: Any, k: Any, pair: Pair, point: ContactPoint) -> _Filling:
        block = number * len(points) + k
        J, v = relative_jacobian(number, point.position)
        contact = contact_at(
            pair, point, J, inverse_weights[number],
            contact_bias(context, group, kinematics, number, k, pair),
            surface_velocity_in(group, kinematics, number, point), impulsive=context.impulsive,
        )  # fmt: skip
        rows = rows_of_contact(context._replace(v=v), contact)
        storage = store(filling.storage, number, block, rows, contact.J[: pair.condim])
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
        tuple(pair.links for pair in group.pairs for _ in points),
        tuple(own for own in layout.columns for _ in points), arrays, layout.row, layout.entry,
        any(layout.template.hard), filled.active, _cones(group, layout.template), filled.any_active,
        ActiveIndices(filled.active) if filled.indices is None else filled.indices,
        _edges(group) if layout.has_edges else None,
    )  # fmt: skip


def template_rows(context: RowContext, group: PairGroup, width: int) -> Rows:
    """Rows of the same form as those of every contact of a group, with J (n, width)."""
    nothing = np.zeros((6, width)), np.zeros(width)
    return rows_of_contact_point(context, group.first, NO_CONTACT_POINT, nothing, PairInverseWeights(1, 1))


def rows_of_contact_point(
    context: RowContext,
    pair: Pair,
    point: ContactPoint,
    relative_jacobian: tuple[np.ndarray, np.ndarray],
    inverse_weight: PairInverseWeights,
    bias: Any = (0,) * 6,
    moving: Any = None,
) -> Rows:
    """Rows of one contact point.

    relative_jacobian: J (6, width) of b relative to a at the point in world axes, and the velocities that it
    multiplies. bias: Jdot v (6,) of a hard contact, in contact axes. moving: the surface velocity of a
    `Contact`.
    """
    J, v = relative_jacobian
    contact = contact_at(pair, point, J, inverse_weight, bias, moving, impulsive=context.impulsive)
    return rows_of_contact(context._replace(v=v), contact)


def contact_at(
    pair: Pair, point: ContactPoint, J: np.ndarray, inverse_weight: PairInverseWeights, bias: Any,
    moving: Any, *, impulsive: bool,
) -> Contact:  # fmt: skip
    """The contact of a pair at a point; J (6, width) of b relative to a there, in world axes, other arguments
    as for `rows_of_contact_point`.
    """
    J = np.concatenate([point.frame @ J[:3], point.frame @ J[3:]])
    distance = 0.0 if impulsive else point.distance  # in an impact the contact is closed
    friction = tuple(pair.friction[: pair.condim - 1])
    return Contact("", pair, distance, J, inverse_weight, friction, True, bias, moving)


def in_contact_axes(point: ContactPoint, motion: Any) -> np.ndarray:
    """The velocity (6,) at a contact point in contact axes, linear first, of a spatial velocity (6,)."""
    linear = motion[:3] + cross(motion[3:], point.position)
    return np.concatenate([point.frame @ linear, point.frame @ motion[3:]])


def rows_by_contact_velocity(
    context: RowContext, pair: Pair, point: ContactPoint, velocity: Any, inverse_weight: PairInverseWeights,
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


def _edges(group: PairGroup) -> Callable[[Any], np.ndarray]:
    """The edges of the friction pyramid of a block by its index, as combinations of the contact axes."""
    frictions = [tuple(pair.friction[: pair.condim - 1]) for pair in group.pairs for _ in range(pair.count)]
    stacked = StackedPytree(frictions)
    return lambda block: pyramid_edges(stacked[block])


def _columns_of_pairs(screws: JointScrews, pairs: Sequence[Pair]) -> list[tuple[int, ...]]:
    """`_columns` of every pair, padded to the same number for costly pairs, so that one program is enough
    for them. Those with a shape that is fixed to the world have columns, too, where the others have
    as many, and not too many.
    """
    found = [_columns(screws, pair) for pair in pairs]
    widest = max((len(own) for pair, own in zip(pairs, found, strict=True) if pair.is_costly), default=0)

    def padded(pair: Pair, own: tuple[int, ...]) -> tuple[int, ...]:
        width = widest if pair.is_costly else 0
        if not own and width <= MOST_FIXED_COLUMNS:
            moving = tuple(screws.signs(pair.links))
            own = moving if len(moving) <= width else ()
        return own + own[-1:] * (width - len(own))

    return [padded(pair, own) for pair, own in zip(pairs, found, strict=True)]


def _columns(screws: JointScrews, pair: Pair) -> tuple[int, ...]:
    """The velocities that move b relative to a, padded by the last of them; none where J multiplies the
    spatial velocity of a link, because a shape is fixed to the world and the tree has long paths.
    """
    links = pair.links
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
        own = screws.signs(pair.links)
        entries.append((speeds, [*map(float, own.values()), *[0.0] * (len(speeds) - len(own))]))
    stacked = StackedPytree(entries)

    def relative_jacobian(number: Any, p: Any) -> tuple[np.ndarray, np.ndarray]:
        columns = []
        for speed, sign in zip(*stacked[number], strict=True):
            S = np.array([kinematics.screws[speed, k] for k in range(6)])
            columns.append(sign * np.concatenate([S[:3] + cross(S[3:], p), S[3:]]))
        return np.stack(columns, axis=1), np.array([kinematics.v[speed] for speed in stacked[number][0]])

    return relative_jacobian
