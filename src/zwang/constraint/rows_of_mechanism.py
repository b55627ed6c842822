"""All constraint rows of a mechanism at one state, in MuJoCo's order: equality, friction, limit, contact."""

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


def constraint_rows(
    context: RowContext, *, grouped: bool = True, warm_start: WarmStart | None = None
) -> Rows:
    """Rows of all constraints of a mechanism, except those that the options disable.

    grouped: soft contacts at traced positions may be returned in pair-type groups. warm_start: the row
    status of the step before. With it, rows are as few as possible (one instead of two for the limits of a
    joint), and those of large trees may be compacted.
    """
    mechanism, disabled = context.mechanism, context.mechanism.options.disabled
    parts: list[Rows] = []
    if "constraint" in disabled:
        return concatenated(parts, mechanism.nv)
    if "equality" not in disabled:
        for c in mechanism.constraints:
            if isinstance(c, LOOPS):
                parts.append(equality_rows(context, c))
            elif isinstance(c, VELOCITY_LEVEL):
                parts.append(hard_constraint_rows(context, c))
    if "frictionloss" not in disabled:
        parts += friction_rows(context)
    if "limit" not in disabled:
        parts += limit_rows(context, nearest_only=warm_start is not None)
    if "contact" not in disabled and mechanism.options.contact:
        pairs = candidate_pairs(mechanism)
        if warm_start is not None and is_worth_compacting(mechanism.tree, pairs):
            other_rows = concatenated(parts, mechanism.nv)
            if _can_compact(context, other_rows, pairs):
                compacted = compact_rows(context, other_rows, pairs, link_screws_at(context), warm_start)
                return replace(no_rows(mechanism.nv), compacted=compacted)
        parts += _contacts(context, grouped)
    return concatenated(parts, mechanism.nv)


def _can_compact(context: RowContext, other_rows: Rows, pairs: Sequence[Pair]) -> bool:
    """Whether all rows are soft and outside cones, and there are contacts."""
    cones = context.mechanism.options.cone != "pyramidal"
    soft = not any(is_hard_contact(pair) or (cones and pair.condim > 1) for pair in pairs)
    return bool(pairs) and soft and can_be_compacted(other_rows)


def _contacts(context: RowContext, grouped: bool) -> list[Rows]:
    """Contact rows: pair by pair where positions are numbers, else in pair-type groups as far as contacts
    are soft.
    """
    pairs = candidate_pairs(context.mechanism)
    if not pairs:
        return []
    screws, nv = link_screws_at(context), context.mechanism.nv
    if not grouped or are_constant(*context.q):
        return contact_rows(context, pairs, screws)
    soft = [pair for pair in pairs if not is_hard_contact(pair)]
    row_groups = contact_row_groups(context, soft, screws) if soft else ()
    found = contact_rows(context, [pair for pair in pairs if is_hard_contact(pair)], screws)
    return [*found, replace(no_rows(nv), row_groups=row_groups, screws=screws)]
