"""All constraint rows of a mechanism at one state, in MuJoCo's order: equality, friction, limit, contact."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from zwang.collision import Pair, candidate_pairs
from zwang.constraint.compaction import can_be_compacted, compact_rows, is_worth_compacting
from zwang.constraint.contact import is_hard_contact
from zwang.constraint.contact_groups import contact_rows
from zwang.constraint.context import RowContext
from zwang.constraint.equality import LOOPS, equality_rows
from zwang.constraint.friction import friction_rows
from zwang.constraint.hard import VELOCITY_LEVEL, hard_constraint_rows
from zwang.constraint.limit import limit_rows
from zwang.constraint.rows import Rows, WarmStart, concatenated, no_rows


def constraint_rows(context: RowContext, *, warm_start: WarmStart | None = None) -> Rows:
    """Rows of all constraints of a mechanism, except those that the options disable; those of contacts in
    pair-type groups.

    warm_start: the row status of the step before. With it, rows are as few as possible (one instead of two
    for the limits of a joint), and those of large trees may be compacted.
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
    pairs = candidate_pairs(mechanism) if "contact" not in disabled else ()
    if not pairs:
        return concatenated(parts, mechanism.nv)
    noslip = mechanism.options.noslip_iterations  # it needs the forces
    if warm_start is not None and not noslip and is_worth_compacting(mechanism.tree, pairs):
        other_rows = concatenated(parts, mechanism.nv)
        if _can_compact(context, other_rows, pairs):
            compacted = compact_rows(context, other_rows, pairs, warm_start)
            return replace(no_rows(mechanism.nv), compacted=compacted)
    return concatenated([*parts, contact_rows(context, pairs)], mechanism.nv)


def _can_compact(context: RowContext, other_rows: Rows, pairs: Sequence[Pair]) -> bool:
    """Whether all rows are soft and outside cones."""
    cones = context.mechanism.options.cone != "pyramidal"
    soft = not any(is_hard_contact(pair) or (cones and pair.condim > 1) for pair in pairs)
    return soft and can_be_compacted(other_rows)
