"""Elements <inertial> that MuJoCo accepts: consistent moments, and mass in every moving body."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from zwang.algebra.inertia import parallel_axis_term
from zwang.algebra.rotations import to_quaternion
from zwang.io.equivalents import rigid_group
from zwang.io.export_notes import ExportNotes
from zwang.io.principal_inertia import ROUNDING, PrincipalInertia, principal_inertia
from zwang.io.xml_writer import XmlElement
from zwang.mechanism.bodies import Body
from zwang.mechanism.force_elements import FluidDrag, GravityCompensation
from zwang.mechanism.mechanism import Mechanism

LEAST = 1e-15  # kg and kg m^2: mjMINVAL, the least mass and moment of a moving body
WRITTEN_INSTEAD = 2e-15  # of zero


def moves_nothing(x: PrincipalInertia) -> bool:
    """Whether MuJoCo regards this as no mass."""
    return x.mass < LEAST or min(x.moments) < LEAST


def node(x: PrincipalInertia) -> XmlElement:
    """The element <inertial>."""
    identity = np.array_equal(x.R, np.eye(3))
    return XmlElement(
        "inertial",
        {
            "pos": x.com,
            "quat": None if identity else to_quaternion(x.R).tolist(),
            "mass": x.mass,
            "diaginertia": x.moments.tolist(),
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
        found |= {name: node(x) for name, x in _of_group(group, merge, boxes, notes).items()}
    return found


def _of_group(
    group: list[Body], merge: bool, boxes: dict[str, np.ndarray], notes: ExportNotes
) -> dict[str, PrincipalInertia]:
    """The inertials of bodies that are fixed to the first of them, which moves or is fixed to the world.

    merge: whether the first of them may have the inertia of all. boxes: principal axes that bodies must have.
    """
    own = {
        b.name: principal_inertia(b.mass, b.com, b.inertia, boxes.get(b.name))
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
    own = {name: x.consistent() for name, x in own.items()}
    if moves:
        own |= _first_of_moving(group[0], own, notes)
    own |= {b.name: _massless(b) for b in group if b.name not in own and (moves or b.com != b.position)}
    return own


def _massless(body: Body) -> PrincipalInertia:
    """The inertial of a body without mass, whose com is the place of its inverse weight, and of sensors.

    Without this element MuJoCo takes the position of the body in its parent for that place.
    """
    return PrincipalInertia(0.0, tuple(map(float, body.com)), np.zeros(3), np.eye(3))


def _first_of_moving(
    body: Body, own: dict[str, PrincipalInertia], notes: ExportNotes
) -> dict[str, PrincipalInertia]:
    """The inertial of a moving body if it lacks mass or inertia, which MuJoCo requires.

    A massless body to which a body with mass is fixed needs none.
    """
    first = own.get(body.name)
    others = [x for name, x in own.items() if name != body.name]
    if first is None and any(not moves_nothing(x) for x in others):
        return {}
    if first is not None and not moves_nothing(first):
        return {}
    if first is None:
        first = _massless(body)
    notes.changed(
        f"MuJoCo requires mass and inertia of a moving body; {WRITTEN_INSTEAD} (SI units) stands for zero",
        f"body {body.name!r}",
    )
    first = replace(first, mass=max(first.mass, WRITTEN_INSTEAD))
    return {body.name: first.consistent(WRITTEN_INSTEAD)}


def _total(group: list[Body]) -> PrincipalInertia:
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
    return principal_inertia(mass, com, (I + I.T) / 2)
