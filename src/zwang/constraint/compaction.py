"""Compaction of active rows: first limits, dry friction and couplings, then soft contacts group by group of
pairs.

A contact that is near in some world of a vector register is evaluated in all of them, as in
`contact_row_groups`, but each world stores only its own active rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from zwang.collision import ContactPoint, Pair, PairGroup
from zwang.constraint.compacted_rows import CompactedRow, CompactedRows
from zwang.constraint.contact import link_screws_at, pair_inverse_weights
from zwang.constraint.contact_groups import (
    UNROLLED_PAIRS,
    GroupKinematics,
    contact_groups,
    group_kinematics,
    links_of,
    over_active_contacts,
    point_transform,
    rows_of_contact_point,
    signs,
    surface_velocity_in,
    template_rows,
)
from zwang.constraint.context import RowContext
from zwang.constraint.rows import Rows, WarmStart
from zwang.mechanism.tree import WORLD, Tree
from zwang.scalar import MutableArray, cond, divide, equal, fori_loop, is_zero
from zwang.scalar.compact_loop import Appender, compact, pack_signs
from zwang.scalar.stacked_pytree import StackedPytree

MOST_DENSE_ENTRIES = (
    64  # in rows on several velocities, which are compared with the number of every compacted row
)
FEWEST_VELOCITIES = 20  # of a tree on average, from which on rows are compacted
# Rows are compacted up to these numbers, because the Delassus matrix has an append for every two rows.
MOST_PATH_LINKS = 3000  # links on the paths from all links to the world
MOST_ROWS = 1000
FORCE_BOUNDS = {"equality": lambda bound: (-np.inf, np.inf), "friction": lambda bound: (-bound, bound)}


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
    width = len(CompactedRow(np.zeros(6), 0, 0, 0, 0, 0, pack_signs([0] * nv)).record(has_bounds))
    S, kinematics = np.concatenate(link_screws_at(context).columns, axis=1), group_kinematics(context, pairs)
    status = warm_start(size)

    def fill(appender: Appender) -> Appender:
        for i in range(len(rows)):
            if _columns(rows.J[i]):  # not a row between bodies that do not move
                appender = _with_row(appender, i, rows, S, status, has_bounds)
        offset = len(rows)
        for n, group in zip(row_counts, groups, strict=True):
            appender = _with_group(appender, offset, context, kinematics, group, status, has_bounds)
            offset += n * len(group)
        return appender

    coupling_rows = {i: rows.J[i] for i in range(len(rows)) if len(_columns(rows.J[i])) > 1}
    return CompactedRows(compact(size, width, fill), has_bounds, S, coupling_rows)


def _columns(J: np.ndarray) -> list[int]:
    """The velocities that a row depends on."""
    return [k for k, x in enumerate(J) if not is_zero(x)]


def _with_row(
    appender: Appender, i: int, rows: Rows, S: np.ndarray, status: MutableArray, has_bounds: bool
) -> Appender:
    """The rows with row i appended where it is active. A row on one velocity with motion subspace s has w = J
    s / s^2.
    """
    j, *more = _columns(rows.J[i])
    s, bound = S[:, j], rows.bound[i]
    lower, upper = FORCE_BOUNDS.get(rows.kinds[i], lambda bound: (0.0, np.inf))(bound)

    def append(appender: Appender) -> Appender:
        w = s * (rows.J[i, j] / (s @ s))
        signs = pack_signs([float(k == j and not more) for k in range(S.shape[1])])
        row = CompactedRow(w, rows.aref[i], divide(1, rows.R[i]), status[i], lower, upper, signs)
        return _appended(appender, i, row, has_bounds)

    return cond(rows.active[i], append, lambda appender: appender, appender)


def _appended(appender: Appender, number: Any, row: CompactedRow, has_bounds: bool) -> Appender:
    """The rows with one more; those that were inactive (status 1) are stored last."""
    return appender.append(number, row.record(has_bounds), equal(row.status, 1.0))


def _with_group(
    appender: Appender,
    offset: int,
    context: RowContext,
    kinematics: GroupKinematics,
    group: PairGroup,
    status: MutableArray,
    has_bounds: bool,
) -> Appender:
    """The arrays with the active contacts of a group added; offset: the number of its first row."""
    tree, n, points = context.mechanism.tree, len(template_rows(context, group, 6)), group.first.count
    links = links_of(tree, group)
    sign_words = StackedPytree([tuple(pack_signs(_sign_list(tree, pair))) for pair in group.pairs])
    inverse_weights = StackedPytree([pair_inverse_weights(context, pair) for pair in group.pairs])

    def append(appender: Appender, number: Any, k: int, pair: Pair, point: ContactPoint) -> Appender:
        J = point_transform(point.position), kinematics.relative_velocity(links[number])
        moving = surface_velocity_in(group, kinematics, number, point)
        rows = rows_of_contact_point(context, pair, point, J, inverse_weights[number], moving=moving)
        first = offset + (number * points + k) * n
        for i, (w, aref, R) in enumerate(zip(rows.J, rows.aref, rows.R, strict=True)):
            code = status[first + i]
            row = CompactedRow(w, aref, divide(1, R), code, 0.0, np.inf, sign_words[number])
            appender = _appended(appender, first + i, row, has_bounds)
        return appender

    return fori_loop(
        0,
        len(group),
        lambda number, appender: over_active_contacts(
            context,
            group,
            kinematics,
            number,
            lambda appender, *point: append(appender, number, *point),
            appender,
        ),
        appender,
        unroll=len(group) <= UNROLLED_PAIRS,
    )


def _sign_list(tree: Tree, pair: Pair) -> list[float]:
    """Sign of every velocity for a pair of shapes."""
    found = signs(tree, pair)
    return [found.get(k, 0.0) for k in range(tree.nv)]
