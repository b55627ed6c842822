"""All rows of a mechanism at one instant, in MuJoCo's order: equality, friction, limits, contacts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from zwang.collision import Pair, candidate_pairs
from zwang.constraint.compaction import can_be_compacted, compact_rows, is_worth_compacting
from zwang.constraint.contact import contact_rows, is_hard_contact, link_screws_at
from zwang.constraint.contact_groups import contact_row_groups
from zwang.constraint.context import RowContext
from zwang.constraint.equality import LOOPS, equality_rows
from zwang.constraint.friction import friction_rows
from zwang.constraint.hard import VELOCITY_LEVEL, hard_constraint_rows
from zwang.constraint.limit import limit_rows
from zwang.constraint.rows import Rows, WarmStart, concatenated, no_rows
from zwang.scalar import are_constant


def constraint_rows(instant: RowContext, *, grouped: bool = True, warm_start: WarmStart | None = None) -> Rows:
    """The rows of everything that restricts, less what the options disable; batched: traced soft contacts may come in batches.

    recall: what is remembered of so many rows, of steps that follow each other; then rows are as few as can be, not one for each end of a
    limit, and those of large mechanisms may come as a list.
    """
    mechanism, disabled = instant.mechanism, instant.mechanism.options.disabled
    parts: list[Rows] = []
    if "constraint" in disabled:
        return concatenated(parts, mechanism.nv)
    if "equality" not in disabled:
        for c in mechanism.constraints:
            if isinstance(c, LOOPS):
                parts.append(equality_rows(instant, c))
            elif isinstance(c, VELOCITY_LEVEL):
                parts.append(hard_constraint_rows(instant, c))
    if "frictionloss" not in disabled:
        parts += friction_rows(instant)
    if "limit" not in disabled:
        parts += limit_rows(instant, nearer=warm_start is not None)
    if "contact" not in disabled and mechanism.options.contact:
        pairs = candidate_pairs(mechanism)
        if warm_start is not None and is_worth_compacting(mechanism.tree, pairs):
            others = concatenated(parts, mechanism.nv)
            if _listable(instant, others, pairs):
                listed = compact_rows(instant, others, pairs, link_screws_at(instant), warm_start)
                return replace(no_rows(mechanism.nv), listed=listed)
        parts += _contacts(instant, grouped)
    return concatenated(parts, mechanism.nv)


def _listable(instant: RowContext, others: Rows, pairs: Sequence[Pair]) -> bool:
    """Whether all rows are soft and outside cones, and there are contacts."""
    cones = instant.mechanism.options.cone != "pyramidal"
    soft = not any(is_hard_contact(pair) or (cones and pair.condim > 1) for pair in pairs)
    return bool(pairs) and soft and can_be_compacted(others)


def _contacts(instant: RowContext, grouped: bool) -> list[Rows]:
    """The rows of contacts: pair by pair where positions are numbers, else as far as they are soft in batches."""
    pairs = candidate_pairs(instant.mechanism)
    if not pairs:
        return []
    screws, nv = link_screws_at(instant), instant.mechanism.nv
    if not grouped or are_constant(*instant.q):
        return contact_rows(instant, pairs, screws)
    soft = [pair for pair in pairs if not is_hard_contact(pair)]
    row_groups = contact_row_groups(instant, soft, screws) if soft else ()
    found = contact_rows(instant, [pair for pair in pairs if is_hard_contact(pair)], screws)
    return [*found, replace(no_rows(nv), row_groups=row_groups, screws=screws)]
