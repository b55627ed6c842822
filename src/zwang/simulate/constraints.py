"""The stage of a step at which restrictions act: what restricts a mechanism, and the efforts with which it does."""

from __future__ import annotations

from typing import Any

import numpy as np

from zwang.errors import SimulationError
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.shapes import Geometry
from zwang.scalar import are_constant


def constraint_forces(mechanism: Mechanism, q: Any, v: Any, tau: Any) -> np.ndarray:
    """The efforts (nv,) of the restrictions under applied efforts tau [N m or N]; zero where nothing restricts."""
    return np.zeros(mechanism.nv, int)


def restrictions(mechanism: Mechanism) -> tuple[str, ...]:
    """Everything that may restrict the motion, each in words, with what the options switch off left out."""
    off = set(mechanism.options.disabled)
    found = [f"{type(c).__name__.lower()} {c.name!r}" for c in mechanism.constraints if "equality" not in off]
    parts = [(f"joint {j.name!r}", j.joint) for j in mechanism.joints] + [(f"tendon {t.name!r}", t) for t in mechanism.tendons]
    for name, part in parts:
        if "limit" not in off and has_limits(part.limits):
            found.append(f"limits of {name}")
        if "frictionloss" not in off and part.friction != 0:
            found.append(f"dry friction of {name}")
    if mechanism.options.contact and "contact" not in off and may_touch(mechanism):
        found.append("contacts of shapes")
    return tuple(found)


def has_limits(limits: Any) -> bool:
    """Is there an end that a motion could reach?"""
    return limits is not None and any(not are_constant(end) or abs(end) < np.inf for end in limits)


def may_touch(mechanism: Mechanism) -> bool:
    """Are there two shapes on different bodies whose bit masks, or a pair, let them touch?"""
    if any(hasattr(contact, "geometry") for contact in mechanism.contacts):
        return True
    groups: list[tuple[Geometry, ...]] = [mechanism.geometry, *(body.geometry for body in mechanism.bodies)]
    shapes = [(k, g.surface) for k, group in enumerate(groups) for g in group if not g.visual_only]
    masks = {(k, s.contype, s.conaffinity) for k, s in shapes}
    return any(a[0] != b[0] and (a[1] & b[2] or b[1] & a[2]) for a in masks for b in masks)


def check_restrictions(mechanism: Mechanism) -> None:
    """Raises SimulationError for a mechanism with restrictions, by name."""
    found = restrictions(mechanism)
    if found:
        more = f" and {len(found) - 1} more" if len(found) > 1 else ""
        raise SimulationError(f"mechanism {mechanism.name!r} is restricted by {found[0]}{more}")
