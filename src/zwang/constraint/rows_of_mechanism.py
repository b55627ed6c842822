"""All constraint rows of a mechanism at one state, in MuJoCo's order: equality, friction, limit, contact."""

from __future__ import annotations

from zwang.collision import candidate_pairs
from zwang.constraint.contact_groups import contact_rows, pairs_kept_by_world
from zwang.constraint.context import RowContext
from zwang.constraint.equality import LOOPS
from zwang.constraint.friction import friction_rows
from zwang.constraint.hard import VELOCITY_LEVEL, rows_of_constraint
from zwang.constraint.limit import limit_rows
from zwang.constraint.rows import Rows, concatenated
from zwang.kinematics.tendon_length import has_moment_arms
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.tendon_elements import TendonCoupling


def constraint_rows(context: RowContext, *, by_world: bool = False, nearest_only: bool = False) -> Rows:
    """Rows of all constraints of a mechanism, except those that the options disable; those of contacts in
    pair-type groups.

    by_world: whether contacts between moving links may have their rows in `Rows.coupled`, which Newton's
    method reads. nearest_only: whether the limits of a joint that are never active together share a row.
    """
    mechanism, disabled = context.mechanism, context.mechanism.options.disabled
    parts: list[Rows] = []
    if "constraint" in disabled:
        return concatenated(parts, mechanism.nv)
    if "equality" not in disabled:
        for c in mechanism.constraints:
            if isinstance(c, (*LOOPS, *VELOCITY_LEVEL)) and not _is_idle(mechanism, c):
                parts.append(rows_of_constraint(context, c))
    if "frictionloss" not in disabled:
        parts += friction_rows(context)
    if "limit" not in disabled:
        parts += limit_rows(context, nearest_only=nearest_only)
    pairs = candidate_pairs(mechanism) if "contact" not in disabled else ()
    others = concatenated(parts, mechanism.nv)
    if not pairs:
        return others
    coupled = pairs_kept_by_world(mechanism, others, pairs) if by_world else []
    return concatenated([others, contact_rows(context, pairs, coupled)], mechanism.nv)


def _is_idle(mechanism: Mechanism, constraint: object) -> bool:
    """Whether a constraint couples only tendons whose length no joint changes: it has no force."""
    if not isinstance(constraint, TendonCoupling):
        return False
    tendons = [t for t in mechanism.tendons if t.name in (constraint.tendon, constraint.to)]
    return not any(has_moment_arms(mechanism, tendon) for tendon in tendons)
