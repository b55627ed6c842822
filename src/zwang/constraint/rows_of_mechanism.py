"""All constraint rows of a mechanism at one state, in MuJoCo's order: equality, friction, limit, contact."""

from __future__ import annotations

from zwang.collision import candidate_pairs
from zwang.constraint.contact_groups import contact_rows, rows_of_worlds
from zwang.constraint.context import RowContext
from zwang.constraint.equality import LOOPS
from zwang.constraint.friction import friction_rows
from zwang.constraint.hard import VELOCITY_LEVEL, rows_of_constraint
from zwang.constraint.limit import limit_rows
from zwang.constraint.rows import Rows, WarmStart, concatenated
from zwang.constraint.world_rows import have_own_rows


def constraint_rows(context: RowContext, *, warm_start: WarmStart | None = None) -> Rows:
    """Rows of all constraints of a mechanism, except those that the options disable; those of contacts in
    pair-type groups.

    warm_start: the row status of the step before. With it, rows are as few as possible (one instead of two
    for the limits of a joint), and with large trees each world may have its own, `Rows.of_worlds`.
    """
    mechanism, disabled = context.mechanism, context.mechanism.options.disabled
    parts: list[Rows] = []
    if "constraint" in disabled:
        return concatenated(parts, mechanism.nv)
    if "equality" not in disabled:
        for c in mechanism.constraints:
            if isinstance(c, (*LOOPS, *VELOCITY_LEVEL)):
                parts.append(rows_of_constraint(context, c))
    if "frictionloss" not in disabled:
        parts += friction_rows(context)
    if "limit" not in disabled:
        parts += limit_rows(context, nearest_only=warm_start is not None)
    pairs = candidate_pairs(mechanism) if "contact" not in disabled else ()
    others = concatenated(parts, mechanism.nv)
    if not pairs:
        return others
    noslip = mechanism.options.noslip_iterations  # it reads the rows by velocities
    if warm_start is not None and not noslip and have_own_rows(mechanism, others, pairs):
        return rows_of_worlds(context, pairs, others, warm_start)
    return concatenated([others, contact_rows(context, pairs)], mechanism.nv)
