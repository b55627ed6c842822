"""Joints that move neither mass nor inertia, and therefore make the mass matrix singular."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from zwang.errors import DescriptionError
from zwang.mechanism.bodies import Body
from zwang.mechanism.tree import WORLD, Link, build_tree
from zwang.scalar import are_constant

SMALL_ARMATURE = 1e-6  # kg m^2 or kg, for the repair of such a joint
RELATIVE_ZERO = 1e-12

Moments = tuple[float, np.ndarray, np.ndarray]
"""Mass, first and second moment of mass about an origin."""


def joints_without_inertia(bodies: Iterable[Body]) -> dict[str, str]:
    """The names of the joints without any inertia in the direction of their motion, each with the reason.

    A mechanism with symbolic inertias is not checked. Raises DescriptionError for inertias that overflow.
    """
    links = build_tree(bodies).links
    found: dict[str, str] = {}
    moments: list[Moments | None] = [None] * len(links)
    # composite inertia of the subtree of each link, from the leaves to the root
    for i in range(len(links) - 1, -1, -1):
        link = links[i]
        own = _floats(link.mass, link.h, link.J)
        if own is None or not are_constant(link.armature, *link.R.flat, *link.p):
            return {}
        carried = moments[i]
        total = own if carried is None else _sum(own, carried)
        if not np.isfinite(total[2]).all():
            raise DescriptionError(f"the inertia that joint {link.name!r} moves overflows")
        if link.armature <= 0 and (reason := _reason(link, *total)):
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
    """The moments about the origin of the parent link, in its axes, at the reference of the joint."""
    R, p = np.asarray(link.R, float), np.asarray(link.p, float)
    Rh = R @ h
    return mass, Rh + mass * p, R @ J @ R.T + np.outer(Rh, p) + np.outer(p, Rh) + mass * np.outer(p, p)


def _reason(link: Link, mass: float, h: np.ndarray, J: np.ndarray) -> str:
    """Why the link has no inertia in the direction of its joint; empty if it has. h, J: of the subtree."""
    if mass == 0 and not J.any():
        return (
            "neither it nor its descendants have mass; give it a mass and an inertia, or make the joint fixed"
        )
    if link.joint.kind == "prismatic":
        return "" if mass > 0 else "neither it nor its descendants have mass"
    I = np.trace(J) * np.eye(3) - J
    axis = np.asarray(link.joint.axis, float)
    least = float(np.linalg.eigvalsh(I)[0] if link.joint.kind == "ball" else axis @ I @ axis)
    if link.joint.kind == "screw":
        least += float(link.joint.pitch) ** 2 * mass
    if least > RELATIVE_ZERO * np.trace(J):
        return ""
    return (
        "neither it nor its descendants have inertia about its axis; give an inertia, or a mass off the axis"
    )
