"""Inertias as MuJoCo accepts them: principal moments that satisfy the triangle inequality exactly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from zwang.algebra.inertia import LEAST_MOMENT, parallel_axis_term
from zwang.algebra.rotations import to_quaternion
from zwang.io.equivalents import rigid_group
from zwang.io.export_notes import ExportNotes
from zwang.io.xml_writer import XmlElement
from zwang.mechanism.bodies import Body
from zwang.mechanism.force_elements import FluidDrag, GravityCompensation
from zwang.mechanism.mechanism import Mechanism

LEAST = 1e-15  # kg and kg m^2: mjMINVAL, the least mass and moment of a moving body
WRITTEN_INSTEAD = 2e-15  # of zero
ROUNDING = 1e-12  # relative violation of the triangle inequality that is rounding


@dataclass(frozen=True)
class Inertial:
    """Mass [kg], centre of mass [m], principal moments [kg m^2] and the rotation of the principal axes."""

    mass: float
    com: tuple[float, ...]
    moments: np.ndarray
    R: np.ndarray

    @property
    def violation(self) -> float:
        """The violation of 0 <= a and c <= a + b, relative to the largest moment; 0 for a rounded zero."""
        a, b, c = sorted(self.moments)
        excess = max(c - a - b, -a, 0.0)
        return 0.0 if excess <= LEAST_MOMENT else float(excess / max(c, -a))

    @property
    def moves_nothing(self) -> bool:
        """Whether MuJoCo regards this as no mass."""
        return self.mass < LEAST or min(self.moments) < LEAST

    def node(self) -> XmlElement:
        """The element <inertial>."""
        identity = np.array_equal(self.R, np.eye(3))
        return XmlElement(
            "inertial",
            {
                "pos": self.com,
                "quat": None if identity else to_quaternion(self.R).tolist(),
                "mass": self.mass,
                "diaginertia": self.moments.tolist(),
            },
        )


def inertials(mechanism: Mechanism, notes: ExportNotes) -> dict[str, XmlElement]:
    """The element <inertial> of every body that has one, by body."""
    found: dict[str, XmlElement] = {}
    done: set[str] = set()
    by_name = {body.name: body for body in mechanism.bodies}
    boxes = {f.body: np.array(f.orientation, float) for f in mechanism.forces if isinstance(f, FluidDrag)}
    compensated = {f.body for f in mechanism.forces if isinstance(f, GravityCompensation)}
    for body in mechanism.bodies:
        if body.name in done:
            continue
        names = rigid_group(mechanism.bodies, body.name)
        done.update(names)
        group = [by_name[name] for name in names]
        merge = compensated.isdisjoint(names)  # else the mass of each body has a meaning of its own
        found |= {name: inertial.node() for name, inertial in _of_group(group, merge, boxes, notes).items()}
    return found


def _of_group(
    group: list[Body], merge: bool, boxes: dict[str, np.ndarray], notes: ExportNotes
) -> dict[str, Inertial]:
    """The inertials of bodies that are fixed to the first of them, which moves or is fixed to the world.

    merge: whether the first of them may have the inertia of all. boxes: principal axes that bodies must have.
    """
    own = {
        b.name: _principal(b.mass, b.com, b.inertia, boxes.get(b.name))
        for b in group
        if b.mass or np.any(b.inertia)
    }
    moves = bool(group[0].joints)
    bad = [name for name, x in own.items() if x.violation > ROUNDING or x.mass < 0]
    if bad and moves and merge and len(own) > 1:
        total = _total(group)
        if total.violation <= ROUNDING and total.mass >= 0:
            notes.changed(
                f"the inertia of {', '.join(map(repr, bad))} is that of no body; the sum over the bodies "
                "that are fixed to each other, which MuJoCo accepts, is written here",
                f"body {group[0].name!r}",
            )
            own, bad = {group[0].name: total}, []
    for name in bad:
        if moves:
            notes.unsupported(
                f"body {name!r}",
                "MuJoCo requires that no moment of inertia exceeds the sum of the others (one does, "
                f"by {own[name].violation:.2g} of the largest)",
                "the smallest moment is larger",
            )
        else:
            notes.ignored("its inertia is that of no body, and it does not move", f"body {name!r}")
    own = {name: _possible(x) for name, x in own.items()}
    if moves:
        own |= _first_of_moving(group[0], own, notes)
    return own


def _first_of_moving(body: Body, own: dict[str, Inertial], notes: ExportNotes) -> dict[str, Inertial]:
    """The inertial of a moving body if it lacks mass or inertia, which MuJoCo requires.

    A massless body to which a body with mass is fixed needs none.
    """
    first = own.get(body.name)
    others = [x for name, x in own.items() if name != body.name]
    if first is None and any(not x.moves_nothing for x in others):
        return {}
    if first is not None and not first.moves_nothing:
        return {}
    if first is None:
        first = Inertial(0.0, (0, 0, 0), np.zeros(3), np.eye(3))
    notes.changed(
        f"MuJoCo requires mass and inertia of a moving body; {WRITTEN_INSTEAD} (SI units) stands for zero",
        f"body {body.name!r}",
    )
    moments = np.maximum(first.moments, WRITTEN_INSTEAD)
    return {body.name: _possible(Inertial(max(first.mass, WRITTEN_INSTEAD), first.com, moments, first.R))}


def _principal(mass: Any, com: Any, inertia: Any, axes: np.ndarray | None = None) -> Inertial:
    """The principal moments and axes of an inertia matrix; exact if it is diagonal. Given axes are used."""
    I = np.array(inertia, float)
    com = tuple(float(x) for x in com)
    if axes is not None:
        return Inertial(float(mass), com, np.diag(axes.T @ I @ axes).copy(), axes)
    if not (I - np.diag(np.diag(I))).any():
        return Inertial(float(mass), com, np.diag(I).copy(), np.eye(3))
    moments, R = np.linalg.eigh(I)
    return Inertial(float(mass), com, moments, R if np.linalg.det(R) > 0 else -R)


def _possible(x: Inertial) -> Inertial:
    """The inertial with the smallest moment raised until the floats satisfy the triangle inequality."""
    moments = np.maximum(x.moments, 0.0)
    a, b, c = np.argsort(moments)
    moments[a] = max(moments[a], moments[c] - moments[b])
    while moments[a] + moments[b] < moments[c]:
        moments[a] = np.nextafter(moments[a], np.inf)
    return Inertial(max(x.mass, 0.0), x.com, moments, x.R)


def _total(group: list[Body]) -> Inertial:
    """The inertial of all bodies of a group together, in the frame of the first one."""
    poses = {group[0].name: (np.eye(3), np.zeros(3))}
    mass, moment, about = 0.0, np.zeros(3), np.zeros((3, 3))
    for body in group:
        if body.name not in poses:
            R, p = poses[body.parent]
            poses[body.name] = (
                R @ np.array(body.orientation, float), p + R @ np.array(body.position, float)
            )  # fmt: skip
        R, p = poses[body.name]
        m, c = float(body.mass), p + R @ np.array(body.com, float)
        mass, moment = mass + m, moment + m * c
        about = about + R @ np.array(body.inertia, float) @ R.T + parallel_axis_term(m, c)
    com = moment / mass if mass else np.zeros(3)
    I = about - parallel_axis_term(mass, com)
    return _principal(mass, com, (I + I.T) / 2)
