"""Rows listed as they act: first those of limits, dry friction and couplings, then family after family of soft contacts without cones.

What is near in some world is worked out for all of them, as in `contact_row_groups`, but every world has a list of its own rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from zwang.algebra.rotations import skew
from zwang.collision import ContactPoint, Pair, PairGroup, pair_groups
from zwang.constraint.compacted_rows import CompactedRow, CompactedRows, encode_signs
from zwang.constraint.contact import pair_weight
from zwang.constraint.contact_groups import (
    FEW,
    NOWHERE,
    GroupKinematics,
    group_kinematics,
    over_active_contacts,
    rows_of_contact_point,
    signs,
)
from zwang.constraint.context import RowContext
from zwang.constraint.rows import Rows, Screws, WarmStart
from zwang.mechanism.tree import WORLD, Tree
from zwang.scalar import MutableArray, cond, divide, empty, equal, fori_loop, is_zero, lane_maximum, where
from zwang.scalar.stacked_pytree import StackedPytree

MANY = 64  # entries of rows that touch several speeds, all of which every listed row is asked about
SPEEDS = 20  # of a tree, from which on its rows are listed
PATHS, ROWS = (
    3000,
    1000,
)  # links on all paths to the world, and rows, up to which they are: there is room for a product of each two rows
BOUNDS = {"equality": lambda bound: (-np.inf, np.inf), "friction": lambda bound: (-bound, bound)}


class _Filled(NamedTuple):
    """A list on its way; see `Listed`."""

    table: MutableArray
    numbers: MutableArray
    first: Any
    last: Any


def is_worth_compacting(tree: Tree, pairs: Sequence[Pair]) -> bool:
    """Whether there are trees of many speeds, not so long or so many that text or room for all rows would be too much.

    Of many small bodies more rows act than there are speeds: then the speeds are the better unknowns.
    """
    trees = sum(link.parent == WORLD for link in tree.links)
    paths = sum(len(tree.path(i)) for i in range(len(tree.links)))
    edges = [1 if pair.condim == 1 else 2 * (pair.condim - 1) for pair in pairs]
    most = sum(pair.count * n for pair, n in zip(pairs, edges, strict=True)) + 4 * tree.nv
    return tree.nv >= SPEEDS * trees and paths <= PATHS and most <= ROWS


def can_be_compacted(rows: Rows) -> bool:
    """Whether these rows are soft, outside cones, and touch few speeds."""
    return (
        not any(rows.hard)
        and not rows.cones
        and not rows.row_groups
        and sum(len(_speeds(J)) for J in rows.J if len(_speeds(J)) > 1) <= MANY
    )


def compact_rows(instant: RowContext, rows: Rows, pairs: Sequence[Pair], screws: Screws, warm_start: WarmStart) -> CompactedRows:
    """The list of `rows` and of the contacts of soft pairs in pyramids.

    recall: what is remembered of so many rows, 1 of those without force. They are listed from the end on, so that those that push are together.
    """
    nv = instant.mechanism.nv
    grouped = pair_groups(pairs, [0] * len(pairs))
    kinds = [len(_like(instant, family)) * family.first.count for family in grouped]
    size = len(rows) + sum(n * len(family) for n, family in zip(kinds, grouped, strict=True))
    bounded = any(kind in BOUNDS for kind in rows.kinds)
    width = len(CompactedRow(np.zeros(6), 0, 0, 0, 0, encode_signs([0] * nv)).record(bounded))
    codes = warm_start(size)
    filled = _Filled(empty((size, width)), empty(size), 0.0, 0.0)
    S = np.concatenate(screws.columns, axis=1)
    for i in range(len(rows)):
        if not _speeds(rows.J[i]):  # between bodies that do not move
            continue
        filled = _with_row(filled, i, rows, S, codes, bounded)
    scene, offset = group_kinematics(instant, pairs, screws), len(rows)
    for n, family in zip(kinds, grouped, strict=True):
        filled = _with_family(filled, offset, instant, scene, family, codes, bounded)
        offset += n * len(family)
    others = {i: rows.J[i] for i in range(len(rows)) if len(_speeds(rows.J[i])) > 1}
    count, numbers, known, records = _closed_up(filled, codes)
    return CompactedRows(size, count, numbers, known, records, bounded, S, others)


def _closed_up(filled: _Filled, codes: MutableArray) -> tuple[Any, MutableArray, MutableArray, MutableArray]:
    """How many rows act; and numbers, codes and records of those listed from the beginning on, then of those from the end on."""
    (size, width), first = filled.table.shape, filled.first
    count = first + filled.last

    def close(k: Any, lists: Any) -> Any:
        inside = 1.0 * k < count
        place = where(1.0 * k < first, 1.0 * k, size - 1 - (1.0 * k - first))
        number = where(inside, filled.numbers.gather(where(inside, place, 0.0)), 0.0)
        values = [filled.table.gather(number * width + c) for c in range(width)]
        numbers, known, records = lists
        for c, x in enumerate(values):
            records = records.set((k, c), where(inside, x, 0.0))
        code = where(inside, codes.gather(number), 0.0)
        return numbers.set(k, number), known.set(k, code), records

    blank = tuple(empty(shape) for shape in ((size,), (size,), (size, width)))
    return count, *fori_loop(0, lane_maximum(count, size), close, blank)


def _speeds(J: np.ndarray) -> list[int]:
    """Those that a row touches."""
    return [k for k, x in enumerate(J) if not is_zero(x)]


def _with_row(filled: _Filled, i: int, rows: Rows, S: np.ndarray, codes: MutableArray, bounded: bool) -> _Filled:
    """The list with row i where it acts: of one speed, along its screw s, w = J s / s^2."""
    j, *more = _speeds(rows.J[i])
    s, bound = S[:, j], rows.bound[i]
    low, high = BOUNDS.get(rows.kinds[i], lambda bound: (0.0, np.inf))(bound)

    def entry(filled: _Filled) -> _Filled:
        w = s * (rows.J[i, j] / (s @ s))
        signs = [float(k == j and not more) for k in range(S.shape[1])]
        row = CompactedRow(w, rows.aref[i], divide(1, rows.R[i]), low, high, encode_signs(signs))
        return _appended(filled, i, [row.record(bounded)], codes)

    return cond(rows.active[i], entry, lambda filled: filled, filled)


def _appended(filled: _Filled, number: Any, records: Sequence[Sequence[Any]], codes: MutableArray) -> _Filled:
    """The list with the rows `number`, number + 1, ..."""
    table, numbers, first, last = filled
    size = numbers.shape[0]
    for i, record in enumerate(records):
        for c, x in enumerate(record):
            table = table.set((number + i, c), x)
        idle = equal(codes[number + i], 1.0)
        numbers = numbers.scatter(where(idle, size - 1 - last, first), 1.0 * (number + i))
        first, last = first + where(idle, 0.0, 1.0), last + where(idle, 1.0, 0.0)
    return _Filled(table, numbers, first, last)


def _like(instant: RowContext, family: PairGroup) -> Rows:
    return rows_of_contact_point(instant, family.first, NOWHERE, (np.zeros((6, 6)), np.zeros(6)), (1, 1))


def _with_family(
    filled: _Filled,
    offset: int,
    instant: RowContext,
    scene: GroupKinematics,
    family: PairGroup,
    codes: MutableArray,
    bounded: bool,
) -> _Filled:
    tree, n, gaps = instant.mechanism.tree, len(_like(instant, family)), family.first.count
    links = StackedPytree(
        [tuple(_row_of(tree, side.place.link) for side in (pair.a, pair.b)) for pair in family.pairs]
    )
    words = StackedPytree([tuple(encode_signs(_signs(tree, pair))) for pair in family.pairs])
    weights = StackedPytree([pair_weight(instant, pair) for pair in family.pairs])
    one = np.eye(3, dtype=int)

    def append(filled: _Filled, number: Any, k: int, pair: Pair, gap: ContactPoint) -> _Filled:
        a, b = links[number]
        v = np.array([scene.spatial_velocities[b, e] - scene.spatial_velocities[a, e] for e in range(6)])
        lever = np.block([[one, -skew(gap.position)], [0 * one, one]])
        rows = rows_of_contact_point(instant, pair, gap, (lever, v), weights[number])
        numbers = zip(rows.J, rows.aref, rows.R, strict=True)
        records = [
            CompactedRow(w, aref, divide(1, R), 0.0, np.inf, words[number]).record(bounded)
            for w, aref, R in numbers
        ]
        return _appended(filled, offset + (number * gaps + k) * n, records, codes)

    return fori_loop(0, len(family), lambda number, filled: over_active_contacts(
            family, scene, number, lambda filled, *gap: append(filled, number, *gap), filled
        ), filled, unroll=len(family) <= FEW)


def _row_of(tree: Tree, link: int) -> int:
    """Where a link's motion stands in the scene; the world's, which is at rest, behind the last."""
    return len(tree.links) if link == WORLD else link


def _signs(tree: Tree, pair: Pair) -> list[float]:
    found = signs(tree, pair)
    return [found.get(k, 0.0) for k in range(tree.nv)]
