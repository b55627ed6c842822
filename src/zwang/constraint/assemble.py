"""All rows of a mechanism at one instant, in MuJoCo's order: equality, friction, limits, contacts."""

from __future__ import annotations

from zwang.constraint.contact_rows import contact_rows
from zwang.constraint.equality import LOOPS, equality_rows
from zwang.constraint.exact import VELOCITY, velocity_rows
from zwang.constraint.friction import friction_rows
from zwang.constraint.instant import Instant
from zwang.constraint.limit import limit_rows
from zwang.constraint.rows import Rows, concatenated


def constraint_rows(instant: Instant) -> Rows:
    """The rows of everything that restricts, less what the options disable."""
    mechanism, disabled = instant.mechanism, instant.mechanism.options.disabled
    parts: list[Rows] = []
    if "constraint" in disabled:
        return concatenated(parts, mechanism.nv)
    if "equality" not in disabled:
        for c in mechanism.constraints:
            if isinstance(c, LOOPS):
                parts.append(equality_rows(instant, c))
            elif isinstance(c, VELOCITY):
                parts.append(velocity_rows(instant, c))
    if "frictionloss" not in disabled:
        parts += friction_rows(instant)
    if "limit" not in disabled:
        parts += limit_rows(instant)
    if "contact" not in disabled and mechanism.options.contact:
        parts += contact_rows(instant)
    return concatenated(parts, mechanism.nv)
