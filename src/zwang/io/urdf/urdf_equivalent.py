"""The mechanism in the elements that URDF has; what URDF cannot say is noted and replaced or omitted."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from zwang.io.equivalents import with_elementary_joints, with_references, with_split_bodies
from zwang.io.export_notes import ExportNotes
from zwang.mechanism.bodies import Body
from zwang.mechanism.constraints import JointCoupling
from zwang.mechanism.contact_pairs import ContactPair
from zwang.mechanism.force_elements import Damper
from zwang.mechanism.joints import Ball, Fixed, Free, MovingJoint, Planar, Prismatic, Revolute, Softness
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.options import Options

GRAVITY = (0, 0, -9.81)
DEFAULT = Softness()


def urdf_equivalent(mechanism: Mechanism, notes: ExportNotes) -> Mechanism:
    """The mechanism with elements of URDF alone.

    Every body has at most one joint, which is revolute, prismatic, planar or free, has the reference 0, and
    an axis through the origin of the body frame, which is z for a planar joint. Each note of kind
    "unsupported" is on a part that is missing.
    """
    _note_settings(mechanism, notes)
    constraints = tuple(kept for c in mechanism.constraints for kept in _constraint(mechanism, c, notes))
    forces = tuple(kept for f in mechanism.forces for kept in _force(f, notes))
    for tendon in mechanism.tendons:
        notes.unsupported(f"tendon {tendon.name!r}", "URDF has no tendons")
    for contact in mechanism.contacts:
        if isinstance(contact, ContactPair):
            notes.unsupported(f"contact pair {' and '.join(map(repr, contact.geometry))}",
                              "URDF has no contact pairs")  # fmt: skip
        else:
            notes.ignored(
                "the shapes of a URDF do not collide with each other",
                f"contact exclusion of {' and '.join(map(repr, contact.bodies))}",
            )
    m = mechanism.replace(
        sensors=(),
        cameras=(),
        constraints=constraints, inactive_constraints=(), forces=forces, tendons=(), contacts=(),
        keyframes=(), home=None, gravity=GRAVITY, options=Options(),
    )  # fmt: skip
    for joint in m.joints:
        if joint.kind == "screw":
            notes.unsupported(f"joint {joint.name!r}", "URDF has no screw joint",
                              "it is a continuous and a prismatic joint with a mimic")  # fmt: skip
    m = _without_balls(m, notes)
    m, parts = with_elementary_joints(
        m, lambda body, joint: isinstance(joint, Revolute | Prismatic | Planar | Free)
    )
    for name, new in parts.items():
        notes.changed(f"it is written as the joints {', '.join(map(repr, new))}", f"joint {name!r}")
    m, added = with_split_bodies(m, lambda joints: [[joint] for joint in joints], at_joints=True)
    for name, new in added.items():
        notes.changed(
            "the frame of a URDF link is that of its joint: the joints are on the further links "
            f"{', '.join(map(repr, new))}",
            f"body {name!r}",
        )
    m = with_references(m, {j.name: 0 for j in m.joints if j.joint.nq == 1})
    return _with_mimics(m, notes).replace(contacts=())


def _note_settings(m: Mechanism, notes: ExportNotes) -> None:
    """Notes on gravity, options, keyframes and the default configuration."""
    if tuple(m.gravity) != GRAVITY:
        notes.unsupported("gravity", f"URDF does not state it, and zwang reads {GRAVITY}")
    changed = [f.name for f in fields(Options) if getattr(m.options, f.name) != f.default]
    if changed:
        values = ", ".join(f"{name}={getattr(m.options, name)!r}" for name in changed)
        notes.unsupported("options", f"URDF has none ({values})")
    for key in m.keyframes:
        notes.unsupported(f"keyframe {key.name!r}", "URDF has no keyframes")
    home = m.home or m.neutral
    moved = [j.name for j in m.joints if home[j.q] != (m.neutral[j.q] if j.joint.nq > 1 else (0,))]
    if moved:
        notes.unsupported(
            "default configuration", f"URDF has none (joints {', '.join(map(repr, moved))})", "it is 0"
        )


def _constraint(m: Mechanism, c: Any, notes: ExportNotes) -> list[Any]:
    """The constraint, in a list, which is empty if URDF has none such. A mimic joint is hard and linear."""
    where = f"{type(c).__name__} {c.name!r}"
    if not isinstance(c, JointCoupling):
        notes.unsupported(where, f"URDF has no constraint of type {type(c).__name__}")
        return []
    coefficients = c.coefficients
    while len(coefficients) > 1 and coefficients[-1] == 0:
        coefficients = coefficients[:-1]
    why = (
        "a mimic joint of URDF follows another joint" if c.to is None
        else "a mimic joint of URDF is linear" if len(coefficients) > 2
        else ""
    )  # fmt: skip
    if why:
        notes.unsupported(where, why)
        return []
    if c.softness is not None:
        notes.unsupported(
            where, "a mimic joint of URDF is hard", "it is a mimic joint, which zwang reads as hard"
        )
    padded = (*coefficients, *[0] * (2 - len(coefficients)))
    return [replace(c, coefficients=padded, softness=None)]


def _with_mimics(m: Mechanism, notes: ExportNotes) -> Mechanism:
    """The mechanism with at most one coupling for each joint, and none in a cycle."""
    to: dict[str, str] = {}
    kept = []
    for c in m.constraints:
        end: str | None = c.to
        while end is not None and end != c.joint:
            end = to.get(end)
        if c.joint in to or end == c.joint:
            why = "has one mimic" if c.joint in to else "cannot follow itself through others"
            notes.unsupported(f"JointCoupling {c.name!r}", f"a joint of URDF {why}")
            continue
        to[c.joint] = c.to
        kept.append(c)
        if c.name != f"mimic {c.joint}":
            notes.changed(f"its name is read as 'mimic {c.joint}'", f"JointCoupling {c.name!r}")
    return m.replace(constraints=kept)


def _force(force: Any, notes: ExportNotes) -> list[Any]:
    """The force element as URDF has it, in a list: dampers alone, with one coefficient."""
    if isinstance(force, Damper):
        if any(force.higher):
            notes.unsupported(
                f"the damper on joint {force.joint!r}",
                "a damper of URDF has one coefficient",
                "it has the first",
            )
        return [Damper(force.joint, force.coefficient)]
    kind = type(force).__name__
    name = getattr(force, "name", None)
    target = getattr(force, "joint", None) or getattr(force, "body", None) or getattr(force, "a", ("",))[0]
    where = f"{kind} {name!r}" if name else f"{kind} on {target!r}"
    notes.unsupported(where, f"URDF has no {kind}")
    return []


def _without_balls(m: Mechanism, notes: ExportNotes) -> Mechanism:
    """The mechanism with fixed joints in place of ball joints."""
    balls = {j.name for j in m.joints if isinstance(j.joint, Ball)}
    if not balls:
        return m
    for name in sorted(balls):
        notes.unsupported(f"joint {name!r}", "URDF has no ball joint", "it is fixed")

    def rigid(body: Body) -> Body:
        joints: tuple[MovingJoint, ...] = tuple(j for j in body.joints if j.name not in balls)
        return replace(body, joint=joints or Fixed()) if len(joints) < len(body.joints) else body

    forces = tuple(f for f in m.forces if f.joint not in balls)  # type: ignore[union-attr]
    return m.replace(bodies=[rigid(b) for b in m.bodies], forces=forces)
