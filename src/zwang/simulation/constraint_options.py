"""Which constraints, limits, friction and contacts of a mechanism its options enable."""

from __future__ import annotations

from typing import Any

import numpy as np

from zwang.constraint.coulomb_friction import coulomb_frictions
from zwang.constraint.hard import equality_enabled
from zwang.mechanism.constraints import CoulombFriction
from zwang.mechanism.contact_pairs import ContactPair
from zwang.mechanism.mechanism import Mechanism
from zwang.scalar import are_constant


def describe_constraints(mechanism: Mechanism) -> tuple[str, ...]:
    """Everything that may constrain the motion and that the options enable, each in words."""
    off = set(mechanism.options.disabled)
    if "constraint" in off:
        return ()
    found = [f"{type(c).__name__.lower()} {c.name!r}" for c in mechanism.constraints if "equality" not in off]
    parts: list[tuple[str, Any]] = [(f"joint {j.name!r}", j.joint) for j in mechanism.joints]
    parts += [(f"tendon {t.name!r}", t) for t in mechanism.tendons]
    for name, part in parts:
        if "limit" not in off and has_limits(part.limits):
            found.append(f"limits of {name}")
        if "frictionloss" not in off and not (are_constant(part.friction) and part.friction == 0):
            found.append(f"dry friction of {name}")
    if contact_enabled(mechanism) and may_touch(mechanism):
        found.append("contacts of shapes")
    return tuple(found)


def with_acting_constraints(m: Mechanism) -> Mechanism:
    """The mechanism without the constraints that its options disable."""
    laws, equalities = coulomb_frictions(m), equality_enabled(m)
    acting = [c for c in m.constraints if (c in laws if isinstance(c, CoulombFriction) else equalities)]
    return m if len(acting) == len(m.constraints) else m.replace(constraints=acting)


def is_constrained(mechanism: Mechanism) -> bool:
    """Whether anything may constrain the motion, so that each step solves Gauss's problem."""
    return bool(describe_constraints(mechanism))


def contact_enabled(mechanism: Mechanism) -> bool:
    """Whether the options enable contacts."""
    return mechanism.options.contact and not {"constraint", "contact"} & set(mechanism.options.disabled)


def has_limits(limits: Any) -> bool:
    """Whether a range (lower, upper) has a finite end; None is no range."""
    return limits is not None and any(not are_constant(end) or abs(end) < np.inf for end in limits)


def may_touch(mechanism: Mechanism) -> bool:
    """Whether the bit masks, or an explicit pair, allow contact between shapes of different bodies."""
    if any(isinstance(contact, ContactPair) for contact in mechanism.contacts):
        return True
    groups = [mechanism.geometry, *(body.geometry for body in mechanism.bodies)]
    masks = {
        (k, g.surface.contype, g.surface.conaffinity)
        for k, group in enumerate(groups)
        for g in group
        if not g.visual_only
    }
    return any(a[0] != b[0] and (a[1] & b[2] or b[1] & a[2]) for a in masks for b in masks)
