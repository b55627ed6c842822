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
from zwang.mechanism.constraints import Connect, Distance, NoSideSlip, Rolling, Weld
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.tendon_elements import TendonCoupling
from zwang.mechanism.tree import WORLD


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
            if isinstance(c, (*LOOPS, *VELOCITY_LEVEL)) and not is_idle(mechanism, c):
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


def is_idle(mechanism: Mechanism, constraint: object) -> bool:
    """Whether no joint changes the violation of a constraint, which then has no rows and no force: a coupling
    of tendons whose length no joint changes, or a soft loop or no-slip constraint between parts that cannot
    move.

    Hard loops keep their rows: a violation that no motion can remove is an error. Source: MuJoCo, which omits
    an equality whose Jacobian is empty.
    """
    match constraint:
        case TendonCoupling():
            tendons = [t for t in mechanism.tendons if t.name in (constraint.tendon, constraint.to)]
            return not any(has_moment_arms(mechanism, tendon) for tendon in tendons)
        case Weld():
            bodies = (constraint.a, constraint.b)
        case Connect() | Distance():
            bodies = (constraint.a[0], constraint.b[0])
        case NoSideSlip() | Rolling():
            bodies = (constraint.body, constraint.on)
        case _:
            return False
    is_static = all(mechanism.tree.placement(body).link == WORLD for body in bodies)
    return is_static and constraint.softness is not None
