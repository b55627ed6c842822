"""The stage of a step at which restrictions act: what restricts a mechanism, and the efforts with which it does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from zwang.constraint.assemble import constraint_rows
from zwang.constraint.equality import LOOPS
from zwang.constraint.exact import VELOCITY, depends_on_time
from zwang.constraint.instant import instant_of
from zwang.constraint.weights import Weights, weights
from zwang.errors import SimulationError
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.restrictions import ContactPair, NonIdeal
from zwang.scalar import are_constant
from zwang.simulate.constrained import constrained

KINDS = (*LOOPS, *VELOCITY, NonIdeal)
SETTLING_STEPS = 10  # an exact loop that has drifted apart closes again with this many steps as time constant


@dataclass(frozen=True)
class Restraint:
    """A mechanism that something restricts, with the constants that its rows need; h [s]: the step."""

    mechanism: Mechanism
    weights: Weights
    h: float


def restraint_of(mechanism: Mechanism, h: float) -> Restraint | None:
    """What restricts a mechanism, or None where nothing does. Raises SimulationError for what has no rows."""
    if not restrictions(mechanism):
        return None
    for constraint in mechanism.constraints:
        if isinstance(constraint, (*VELOCITY, NonIdeal)) and depends_on_time(constraint):
            raise SimulationError(
                f"constraint {constraint.name!r} depends on the time t, and a step knows no time; give its rate instead, "
                "as zw.Pfaffian(name, {speed: 1}, rate=-omega) does for a constant speed"
            )
        if not isinstance(constraint, KINDS):
            raise SimulationError(
                f"constraint {constraint.name!r} of type {type(constraint).__name__} is not simulated; "
                f"those that are: {', '.join(kind.__name__ for kind in KINDS)}"
            )
    return Restraint(mechanism, weights(mechanism), h)


def constraint_forces(restraint: Restraint | None, q: Any, v: Any, tau: Any) -> np.ndarray:
    """The efforts J^T f (nv,) of the restrictions under applied efforts tau [N m or N], by Gauss's principle.

    a makes 1/2 (a - a_free)^T M (a - a_free) + sum s_i(J_i a - aref_i) least. Source: seed 002; `zwang.solve`.
    """
    if restraint is None:
        return np.zeros(len(tau), int)
    settling = SETTLING_STEPS * restraint.h
    found = constrained(
        restraint.mechanism, q, v, tau, timestep=restraint.h, known=restraint.weights, settling_time=settling
    )
    return found.efforts


def widest_gap(mechanism: Mechanism, q: Any, v: Any) -> tuple[str, float]:
    """The exact constraint that is furthest from holding at q and v, by name, and by how much [rad or m]; ("", 0.0) without any."""
    if not any(isinstance(c, LOOPS) and c.softness is None for c in mechanism.constraints):
        return "", 0.0
    rows = constraint_rows(instant_of(mechanism, q, v))
    gaps = [(abs(float(rows.position[i])), rows.names[i]) for i in rows.indices("equality") if rows.hard[i]]
    size, name = max(gaps, default=(0.0, ""))
    return name, size


def restrictions(mechanism: Mechanism) -> tuple[str, ...]:
    """Everything that may restrict the motion, each in words, less what the options switch off."""
    off = set(mechanism.options.disabled)
    if "constraint" in off:
        return ()
    found = [f"{type(c).__name__.lower()} {c.name!r}" for c in mechanism.constraints if "equality" not in off]
    parts = [(f"joint {j.name!r}", j.joint) for j in mechanism.joints]
    parts += [(f"tendon {t.name!r}", t) for t in mechanism.tendons]
    for name, part in parts:
        if "limit" not in off and has_limits(part.limits):
            found.append(f"limits of {name}")
        if "frictionloss" not in off and not (are_constant(part.friction) and part.friction == 0):
            found.append(f"dry friction of {name}")
    if mechanism.options.contact and "contact" not in off and may_touch(mechanism):
        found.append("contacts of shapes")
    return tuple(found)


def has_limits(limits: Any) -> bool:
    """Is there an end that a motion could reach?"""
    return limits is not None and any(not are_constant(end) or abs(end) < np.inf for end in limits)


def may_touch(mechanism: Mechanism) -> bool:
    """Are there two shapes on different bodies whose bit masks, or a pair, let them touch?"""
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
