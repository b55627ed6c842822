"""Joints that nothing resists: they would make the mass matrix singular, and their accelerations infinite."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from zwang.errors import DescriptionError
from zwang.mechanism.bodies import Body
from zwang.mechanism.tree import WORLD, Link, build_tree
from zwang.scalar import are_constant

SMALL_ARMATURE = 1e-6  # kg m^2 or kg
RELATIVE_ZERO = 1e-12

Moments = tuple[float, np.ndarray, np.ndarray]
"""Mass, first and second moment about an origin."""


def joints_without_inertia(bodies: Iterable[Body]) -> dict[str, str]:
    """The joints, by name, whose move meets no inertia at all, each with the reason; symbolic ones are trusted.

    Raises DescriptionError for inertias that overflow.
    """
    links = build_tree(bodies).links
    found: dict[str, str] = {}
    moments: list[Moments | None] = [None] * len(links)
    for i in range(len(links) - 1, -1, -1):
        link = links[i]
        own = _floats(link.mass, link.h, link.J)
        if own is None or not are_constant(link.armature, *link.R.flat, *link.p):
            return {}
        carried = moments[i]
        total = own if carried is None else _sum(own, carried)
        if not np.isfinite(total[2]).all():
            raise DescriptionError(
                f"what joint {link.name!r} carries has an inertia beyond all numbers (overflow)"
            )
        if link.armature <= 0 and (reason := _unresisted(link, *total)):
            found.setdefault(link.name, reason)
        if link.parent != WORLD:
            above = _in_parent(link, *total)
            others = moments[link.parent]
            moments[link.parent] = above if others is None else _sum(others, above)
    return found


def _floats(mass: Any, h: Any, J: Any) -> Moments | None:
    if not are_constant(mass, *np.ravel(h), *np.ravel(J)):
        return None
    return float(mass), np.asarray(h, float), np.asarray(J, float)


def _sum(a: Moments, b: Moments) -> Moments:
    return a[0] + b[0], a[1] + b[1], a[2] + b[2]


def _in_parent(link: Link, mass: float, h: np.ndarray, J: np.ndarray) -> Moments:
    """The moments about the parent's origin, in its axes, with the link at rest."""
    R, p = np.asarray(link.R, float), np.asarray(link.p, float)
    Rh = R @ h
    return mass, Rh + mass * p, R @ J @ R.T + np.outer(Rh, p) + np.outer(p, Rh) + mass * np.outer(p, p)


def _unresisted(link: Link, mass: float, h: np.ndarray, J: np.ndarray) -> str:
    """Why the link's move meets no inertia; empty if it does."""
    if mass == 0 and not J.any():
        return (
            "neither it nor what it carries has mass; give it a mass and an inertia, or make the joint fixed"
        )
    if link.joint.kind == "prismatic":
        return "" if mass > 0 else "neither it nor what it carries has mass"
    I = np.trace(J) * np.eye(3) - J
    axis = np.asarray(link.joint.axis, float)
    least = float(np.linalg.eigvalsh(I)[0] if link.joint.kind == "ball" else axis @ I @ axis)
    if link.joint.kind == "screw":
        least += float(link.joint.pitch) ** 2 * mass
    if least > RELATIVE_ZERO * np.trace(J):
        return ""
    return (
        "nothing that it carries has any inertia about its axis; give an inertia, or a mass beside the axis"
    )
