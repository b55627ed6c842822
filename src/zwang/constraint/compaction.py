"""Compaction of active rows: first limits, dry friction and couplings, then soft contacts group by group of
pairs.

A contact that is near in some world of a vector register is evaluated in all of them, as in
`contact_row_groups`, but each world stores only its own active rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from zwang.collision import ContactPoint, Pair, PairGroup
from zwang.constraint.compacted_rows import CompactedRow, CompactedRows, encode_signs
from zwang.constraint.contact import link_screws_at, pair_inverse_weights
from zwang.constraint.contact_groups import (
    UNROLLED_PAIRS,
    GroupKinematics,
    contact_groups,
    group_kinematics,
    links_of,
    over_active_contacts,
    point_jacobian,
    rows_of_contact_point,
    signs,
    template_rows,
)
from zwang.constraint.context import RowContext
from zwang.constraint.rows import Rows, WarmStart
from zwang.mechanism.tree import WORLD, Tree
from zwang.scalar import MutableArray, cond, divide, empty, equal, fori_loop, is_zero, lane_maximum, where
from zwang.scalar.stacked_pytree import StackedPytree

MOST_DENSE_ENTRIES = (
    64  # in rows on several velocities, which are compared with the number of every compacted row
)
FEWEST_VELOCITIES = 20  # of a tree on average, from which on rows are compacted
# Rows are compacted up to these numbers, because the Delassus matrix has an append for every two rows.
MOST_PATH_LINKS = 3000  # links on the paths from all links to the world
MOST_ROWS = 1000
FORCE_BOUNDS = {"equality": lambda bound: (-np.inf, np.inf), "friction": lambda bound: (-bound, bound)}


class _Compaction(NamedTuple):
    """The arrays while they are filled. table (size, record): records by row number. row_numbers (size,):
    rows with a force from the front, inactive ones from the back; front, back: how many there are of each.
    """

    table: MutableArray
    row_numbers: MutableArray
    front: Any
    back: Any


def is_worth_compacting(tree: Tree, pairs: Sequence[Pair]) -> bool:
    """Whether the dual form with compacted rows is the faster one for this mechanism.

    It is for few trees of many velocities each, unless the paths or the rows are too many for code size or
    memory. Many small bodies have more active rows than velocities, so that the primal form is faster.
    """
    trees = sum(link.parent == WORLD for link in tree.links)
    path_links = sum(len(tree.path(i)) for i in range(len(tree.links)))
    edges = [1 if pair.condim == 1 else 2 * (pair.condim - 1) for pair in pairs]
    most_rows = sum(pair.count * n for pair, n in zip(pairs, edges, strict=True)) + 4 * tree.nv
    return tree.nv >= FEWEST_VELOCITIES * trees and path_links <= MOST_PATH_LINKS and most_rows <= MOST_ROWS


def can_be_compacted(rows: Rows) -> bool:
    """Whether these rows are soft, outside cones, and on few velocities."""
    return (
        not any(rows.hard)
        and not rows.cones
        and not rows.row_groups
        and sum(len(_columns(J)) for J in rows.J if len(_columns(J)) > 1) <= MOST_DENSE_ENTRIES
    )


def compact_rows(
    context: RowContext, rows: Rows, pairs: Sequence[Pair], warm_start: WarmStart
) -> CompactedRows:
    """Compacted rows: `rows`, and the contacts of soft pairs with pyramidal cones.

    warm_start: the stored status of the rows (see `CompactedRows`). Rows that were inactive (status 1) are
    stored from the end on, so that rows with a force are contiguous.
    """
    nv = context.mechanism.nv
    groups = contact_groups(pairs, [0] * len(pairs))
    row_counts = [len(template_rows(context, group, 6)) * group.first.count for group in groups]
    size = len(rows) + sum(n * len(group) for n, group in zip(row_counts, groups, strict=True))
    has_bounds = any(kind in FORCE_BOUNDS for kind in rows.kinds)
    width = len(CompactedRow(np.zeros(6), 0, 0, 0, 0, encode_signs([0] * nv)).record(has_bounds))
    status = warm_start(size)
    compaction = _Compaction(empty((size, width)), empty(size), 0.0, 0.0)
    S = np.concatenate(link_screws_at(context).columns, axis=1)
    for i in range(len(rows)):
        if not _columns(rows.J[i]):  # a row between bodies that do not move
            continue
        compaction = _with_row(compaction, i, rows, S, status, has_bounds)
    kinematics, offset = group_kinematics(context, pairs), len(rows)
    for n, group in zip(row_counts, groups, strict=True):
        compaction = _with_group(compaction, offset, context, kinematics, group, status, has_bounds)
        offset += n * len(group)
    coupling_rows = {i: rows.J[i] for i in range(len(rows)) if len(_columns(rows.J[i])) > 1}
    count, row_numbers, packed_status, records = _closed(compaction, status)
    return CompactedRows(size, count, row_numbers, packed_status, records, has_bounds, S, coupling_rows)


def _closed(
    compaction: _Compaction, status: MutableArray
) -> tuple[Any, MutableArray, MutableArray, MutableArray]:
    """(count, numbers, status, records): the rows stored from the front, followed by those stored from the
    back.
    """
    (size, width), front = compaction.table.shape, compaction.front
    count = front + compaction.back

    def copy(k: Any, arrays: Any) -> Any:
        inside = 1.0 * k < count
        index = where(1.0 * k < front, 1.0 * k, size - 1 - (1.0 * k - front))
        number = where(inside, compaction.row_numbers.gather(where(inside, index, 0.0)), 0.0)
        values = [compaction.table.gather(number * width + c) for c in range(width)]
        row_numbers, packed_status, records = arrays
        for c, x in enumerate(values):
            records = records.set((k, c), where(inside, x, 0.0))
        code = where(inside, status.gather(number), 0.0)
        return row_numbers.set(k, number), packed_status.set(k, code), records

    arrays = tuple(empty(shape) for shape in ((size,), (size,), (size, width)))
    return count, *fori_loop(0, lane_maximum(count, size), copy, arrays)


def _columns(J: np.ndarray) -> list[int]:
    """The velocities that a row depends on."""
    return [k for k, x in enumerate(J) if not is_zero(x)]


def _with_row(
    compaction: _Compaction, i: int, rows: Rows, S: np.ndarray, status: MutableArray, has_bounds: bool
) -> _Compaction:
    """The arrays with row i added where it is active. A row on one velocity with motion subspace s has w = J
    s / s^2.
    """
    j, *more = _columns(rows.J[i])
    s, bound = S[:, j], rows.bound[i]
    lower, upper = FORCE_BOUNDS.get(rows.kinds[i], lambda bound: (0.0, np.inf))(bound)

    def append(compaction: _Compaction) -> _Compaction:
        w = s * (rows.J[i, j] / (s @ s))
        signs = [float(k == j and not more) for k in range(S.shape[1])]
        row = CompactedRow(w, rows.aref[i], divide(1, rows.R[i]), lower, upper, encode_signs(signs))
        return _appended(compaction, i, [row.record(has_bounds)], status)

    return cond(rows.active[i], append, lambda compaction: compaction, compaction)


def _appended(
    compaction: _Compaction, number: Any, records: Sequence[Sequence[Any]], status: MutableArray
) -> _Compaction:
    """The arrays with the rows `number`, number + 1, ... added."""
    table, row_numbers, front, back = compaction
    size = row_numbers.shape[0]
    for i, record in enumerate(records):
        for c, x in enumerate(record):
            table = table.set((number + i, c), x)
        is_inactive = equal(status[number + i], 1.0)
        row_numbers = row_numbers.scatter(where(is_inactive, size - 1 - back, front), 1.0 * (number + i))
        front, back = front + where(is_inactive, 0.0, 1.0), back + where(is_inactive, 1.0, 0.0)
    return _Compaction(table, row_numbers, front, back)


def _with_group(
    compaction: _Compaction,
    offset: int,
    context: RowContext,
    kinematics: GroupKinematics,
    group: PairGroup,
    status: MutableArray,
    has_bounds: bool,
) -> _Compaction:
    """The arrays with the active contacts of a group added; offset: the number of its first row."""
    tree, n, points = context.mechanism.tree, len(template_rows(context, group, 6)), group.first.count
    links = links_of(tree, group)
    sign_words = StackedPytree([tuple(encode_signs(_sign_list(tree, pair))) for pair in group.pairs])
    inverse_weights = StackedPytree([pair_inverse_weights(context, pair) for pair in group.pairs])

    def append(compaction: _Compaction, number: Any, k: int, pair: Pair, point: ContactPoint) -> _Compaction:
        v = kinematics.relative_velocity(links[number])
        J = point_jacobian(point.position), v
        rows = rows_of_contact_point(context, pair, point, J, inverse_weights[number])
        entries = zip(rows.J, rows.aref, rows.R, strict=True)
        records = [
            CompactedRow(w, aref, divide(1, R), 0.0, np.inf, sign_words[number]).record(has_bounds)
            for w, aref, R in entries
        ]
        return _appended(compaction, offset + (number * points + k) * n, records, status)

    return fori_loop(
        0,
        len(group),
        lambda number, compaction: over_active_contacts(
            context,
            group,
            kinematics,
            number,
            lambda compaction, *point: append(compaction, number, *point),
            compaction,
        ),
        compaction,
        unroll=len(group) <= UNROLLED_PAIRS,
    )


def _sign_list(tree: Tree, pair: Pair) -> list[float]:
    """Sign of every velocity for a pair of shapes."""
    found = signs(tree, pair)
    return [found.get(k, 0.0) for k in range(tree.nv)]
