"""The mechanism in the elements that MJCF has; what MJCF cannot say is noted and replaced or omitted."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from zwang.io.equivalents import (
    in_depth_first_order,
    with_elementary_joints,
    with_references,
    with_split_bodies,
)
from zwang.io.export_notes import ExportNotes
from zwang.io.mjcf.inexact_in_mujoco import has_joint_after_ball
from zwang.io.mjcf.write.mjcf_output import DEFAULT
from zwang.io.mjcf.write.write_fluids import writable_drags
from zwang.io.unique_names import UniqueNames
from zwang.mechanism.bodies import Body, Frame
from zwang.mechanism.constraints import Connect, JointCoupling, Weld
from zwang.mechanism.force_elements import (
    Actuator,
    Damper,
    EllipsoidDrag,
    FluidDrag,
    GravityCompensation,
    Motor,
    PointSpring,
    Spring,
    Wrench,
)
from zwang.mechanism.joints import Ball, Free, MovingJoint, Prismatic, Revolute
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.numbers import IDENTITY
from zwang.mechanism.sensors import JointSensor, Sensor, SiteSensor
from zwang.mechanism.tendon_elements import Tendon, TendonCoupling

MOST_COEFFICIENTS = 5  # of a coupling
MOST_DEGREES = 6  # of freedom of a body
IMPLICIT = "; its steps by 'implicitfast' differ by their error, as bias forces are implicit for free joints"


def mjcf_equivalent(mechanism: Mechanism, notes: ExportNotes, sensors: Sequence[Sensor] = ()) -> Mechanism:
    """The mechanism with elements of MJCF alone.

    Its joints are revolute, prismatic, ball or free, their references are the default configuration, and its
    bodies are in depth-first order. Each note of kind "unsupported" is on a part that is missing or softer.
    sensors: those of the file, of which some may not measure the parts in other words.
    """
    m = _with_forces(_with_equalities(mechanism, notes), notes, sensors)
    for joint in m.joints:
        if joint.kind == "screw":
            notes.unsupported(
                f"joint {joint.name!r}", "MJCF has no screw joint",
                "it is a hinge and a slide joint with a soft coupling",
            )  # fmt: skip
    actuators = [f for f in m.forces if isinstance(f, Actuator)]
    free = {j.name for j in m.joints if j.kind == "free"}
    m, parts = with_elementary_joints(m, lambda body, joint: _is_joint_of_mjcf(m, body, joint))
    for a in actuators:
        if a.joint in free and a.joint in parts:
            notes.unsupported(
                f"actuator {a.name!r}", f"MJCF has no free joint such as {a.joint!r}, away from the origin"
            )
    for name, new in parts.items():
        error = IMPLICIT if name in free and m.options.integrator == "implicitfast" else ""
        notes.changed(f"it is written as the joints {', '.join(map(repr, new))}{error}", f"joint {name!r}")
    m = _with_equalities(m, None)  # as the couplings of screw joints are hard
    moved = _moved_by_constraints(m)
    m, added = with_split_bodies(m, lambda joints: _groups(joints, moved))
    for name, new in added.items():
        notes.changed(f"its joints are on the further bodies {', '.join(map(repr, new))}", f"body {name!r}")
    m = _at_home(m, notes)
    ordered = in_depth_first_order(m)
    if ordered.coordinate_names != m.coordinate_names:
        notes.changed(
            "MJCF numbers the bodies depth first: the joints are in the order "
            f"{', '.join(j.name for j in ordered.joints)}",
            "order of the coordinates",
        )
    return ordered


# ---------------------------------------------------------------------------------------- constraints


def _with_equalities(m: Mechanism, notes: ExportNotes | None) -> Mechanism:
    """The mechanism with constraints, active or not, as MJCF has them; without notes, silently."""
    constraints, inactive = (
        tuple(kept for c in group for kept in _constraint(c, notes))
        for group in (m.constraints, m.inactive_constraints)
    )
    return m.replace(constraints=constraints, inactive_constraints=inactive)


def _constraint(c: Any, notes: ExportNotes | None) -> list[Any]:
    """The constraint as MJCF has it, in a list, which is empty if MJCF has none; without notes, silently."""
    where = f"{type(c).__name__} {c.name!r}"
    if not isinstance(c, Connect | Weld | JointCoupling | TendonCoupling):
        if notes is not None:
            notes.unsupported(where, f"MJCF has no equality of type {type(c).__name__}")
        return []
    if isinstance(c, JointCoupling | TendonCoupling):
        coefficients = c.coefficients
        while len(coefficients) > MOST_COEFFICIENTS and coefficients[-1] == 0:
            coefficients = coefficients[:-1]
        if len(coefficients) > MOST_COEFFICIENTS:
            if notes is not None:
                notes.unsupported(where, f"a polynomial of MJCF has at most {MOST_COEFFICIENTS} coefficients")
            return []
        c = replace(c, coefficients=coefficients)
    if c.softness is None:
        if notes is not None:
            notes.unsupported(where, "MJCF has no hard constraint", "it has MuJoCo's default softness")
        return [replace(c, softness=DEFAULT)]
    return [c]


# --------------------------------------------------------------------------------------------- forces


def _with_forces(m: Mechanism, notes: ExportNotes, sensors: Sequence[Sensor]) -> Mechanism:
    """The mechanism with springs, dampers and wrenches as MJCF has them: one of each on a joint.

    A further spring on a joint, or one between two joints, becomes a tendon, as does one between two points.
    """
    tendon_names = UniqueNames({t.name for t in m.tendons})
    frame_names = UniqueNames({"world", *(b.name for b in m.bodies), *(f.name for f in m.frames)})
    forces: list[Any] = []
    drags = writable_drags(m, notes)
    wrenches: list[Any] = []  # after the actuators, as in `Mechanism.inputs`
    tendons, frames = list(m.tendons), list(m.frames)
    sprung: set[str] = set()
    for force in m.forces:
        match force:
            case Spring(relative_to=None) if force.joint not in sprung:
                sprung.add(force.joint)
                forces.append(_spring(force, notes))
            case Spring():
                tendons += _spring_tendon(m, force, tendon_names, notes)
            case PointSpring():
                ends = [_frame_at(frames, frame_names, end, f"end of a spring on {end[0]}")
                        for end in (force.a, force.b)]  # fmt: skip
                tendons.append(_point_spring_tendon(force, ends, tendon_names, notes))
            case FluidDrag() | EllipsoidDrag():
                pass
            case Wrench():
                wrenches += _wrench(m, force, frames, frame_names, notes, sensors)
            case _:
                forces.append(force)
    forces = _with_one_damper([*forces, *drags, *wrenches], notes)
    return m.replace(forces=forces, tendons=tendons, frames=frames)


def _frame_at(frames: list[Frame], names: UniqueNames, end: Any, name: str) -> str:
    """The name of a frame at a point of a body, which is added unless there is one with the body's axes."""
    body, point = end
    for frame in frames:
        if (frame.body, frame.position, frame.orientation) == (body, point, IDENTITY):
            return frame.name
    frames.append(Frame(names.new(name), body, point))
    return frames[-1].name


def _spring(spring: Spring, notes: ExportNotes) -> Spring:
    if len(spring.stiffness) > 3:  # type: ignore[arg-type]
        notes.unsupported(
            f"the spring on joint {spring.joint!r}", "a spring of MJCF has at most 3 coefficients",
            "it has the first 3",
        )  # fmt: skip
        return replace(spring, stiffness=spring.stiffness[:3])  # type: ignore[index]
    return spring


def _spring_tendon(m: Mechanism, spring: Spring, names: UniqueNames, notes: ExportNotes) -> list[Tendon]:
    """A spring on the difference of two joints, or a further one on a joint, as a fixed tendon."""
    where = f"the spring on joint {spring.joint!r}"
    if m.joint(spring.joint).joint.nv > 1:
        notes.unsupported(where, "a ball or free joint of MJCF has one spring")
        return []
    stiffness, *higher = _spring(spring, notes).stiffness  # type: ignore[misc]
    ends = [(spring.joint, 1)] + ([(spring.relative_to, -1)] if spring.relative_to else [])
    tendon = Tendon(
        names.new(f"spring on {spring.joint}"),
        joints=tuple(ends),  # type: ignore[arg-type]
        stiffness=stiffness,
        spring_length=(spring.rest, spring.rest),
        higher_stiffness=tuple(higher),
    )
    notes.changed(f"it is written as the tendon {tendon.name!r}", where)
    return [tendon]


def _point_spring_tendon(
    spring: PointSpring, ends: list[str], names: UniqueNames, notes: ExportNotes
) -> Tendon:
    tendon = Tendon(
        names.new(f"spring from {spring.a[0]} to {spring.b[0]}"),
        path=tuple(ends),
        stiffness=spring.stiffness,
        damping=spring.damping,
        spring_length=(spring.length, spring.length),
    )
    notes.changed(
        f"it is written as the tendon {tendon.name!r}", f"the spring from {spring.a[0]!r} to {spring.b[0]!r}"
    )
    return tendon


def _wrench(
    m: Mechanism,
    wrench: Wrench,
    frames: list[Frame],
    names: UniqueNames,
    notes: ExportNotes,
    sensors: Sequence[Sensor],
) -> list[Actuator]:
    """A wrench with an input, in the axes of the body, as an actuator on a frame."""
    where = f"the wrench on body {wrench.body!r}"
    others = [f for f in m.forces if f is not wrench and wrench.input is not None
              and wrench.input in (getattr(f, "name", None), getattr(f, "input", None))]  # fmt: skip
    why = (
        "MJCF has no constant wrench" if wrench.input is None
        else "MJCF has no wrench in world axes" if wrench.axes == "world"
        else f"MJCF has no input of several force elements ({wrench.input!r})" if others
        else ""
    )  # fmt: skip
    if why:
        notes.unsupported(where, why)
        return []
    frame = _frame_at(frames, names, (wrench.body, wrench.point), f"point of wrench {wrench.input}")
    written = f"it is written as the actuator {wrench.input!r}"
    differences = _differences(m, wrench, sensors)
    for difference in differences:
        notes.unsupported(where, difference, written)
    if not differences:
        notes.changed(written, where)
    return [Actuator(str(wrench.input), frame=frame, gear=(*wrench.force, *wrench.torque))]


def _differences(m: Mechanism, wrench: Wrench, sensors: Sequence[Sensor]) -> list[str]:
    """What MuJoCo computes otherwise for an actuator on a site than for a wrench with an input."""
    moving = [joint for name in _ancestors(m, wrench.body) for joint in m.body(name).joints]
    names = {joint.name for joint in moving}
    left_out = [s.name for s in sensors if isinstance(s, SiteSensor) and _measures(m, s, wrench)]
    counted = [s.name for s in sensors
               if isinstance(s, JointSensor) and s.kind == "actuator_force" and s.joint in names]  # fmt: skip
    clipped = [j.name for j in moving if getattr(j, "actuator_range", None) is not None]
    acts = any(isinstance(f, Motor | Actuator) for f in m.forces)
    compensates = any(isinstance(f, GravityCompensation) for f in m.forces)
    carried = [j.name for j in m.joints if j.joint.actuator_gravity_compensation and compensates and not acts]
    return [
        f"MuJoCo {what} {part}{'s' * (len(found) > 1)} {', '.join(map(repr, found))}"
        for what, part, found in (
            ("leaves out actuators on sites in the value of", "sensor", left_out),
            ("counts actuators on sites in the value of", "sensor", counted),
            ("clips the forces of actuators on sites to the actuatorfrcrange of", "joint", clipped),
            ("compensates gravity, beside an actuator on a site, by the actuators of", "joint", carried),
        )
        if found
    ]


def _ancestors(m: Mechanism, body: str) -> list[str]:
    """The body and those before it, up to the world, which is not among them."""
    parents = {b.name: b.parent for b in m.bodies}
    found = []
    while body in parents:
        found.append(body)
        body = parents[body]
    return found


def _measures(m: Mechanism, sensor: SiteSensor, wrench: Wrench) -> bool:
    """Whether the value of a force or torque sensor contains a wrench as an external load.

    It is that on the subtree of the sensor's body; on the body itself the torque may be zero in all states.
    """
    frame = next((f for f in m.frames if f.name == sensor.frame), Frame("origin", sensor.frame))
    on_subtree = frame.body in (*_ancestors(m, wrench.body), "world")
    if wrench.body == "world" or not on_subtree or sensor.kind not in ("force", "torque"):
        return False
    force, torque = np.array(wrench.force, float), np.array(wrench.torque, float)
    arm = np.array(wrench.point, float) - np.array(frame.position, float)
    if wrench.body == frame.body and sensor.kind == "torque":
        return bool((torque + np.cross(arm, force)).any())
    return bool(force.any() or (torque.any() and sensor.kind == "torque"))


def _with_one_damper(forces: list[Any], notes: ExportNotes) -> list[Any]:
    """The force elements with the dampers on each joint added up."""
    totals: dict[str, np.ndarray] = {}
    for force in forces:
        if isinstance(force, Damper):
            own = np.array([force.coefficient, *force.higher], dtype=float)
            sums = totals.get(force.joint, np.zeros(1))
            size = max(len(own), len(sums))
            totals[force.joint] = np.pad(own, (0, size - len(own))) + np.pad(sums, (0, size - len(sums)))
    dampers = []
    for joint, sums in totals.items():
        if np.any(sums[3:]):
            notes.unsupported(
                f"the damper on joint {joint!r}", "a damper of MJCF has at most 3 coefficients",
                "it has the first 3",
            )  # fmt: skip
        dampers.append(Damper(joint, float(sums[0]), tuple(float(c) for c in sums[1:3])))
    return [*(f for f in forces if not isinstance(f, Damper)), *dampers]


# --------------------------------------------------------------------------------------------- joints


def _is_joint_of_mjcf(m: Mechanism, body: Body, joint: MovingJoint) -> bool:
    """Whether MJCF has the joint: revolute, prismatic, ball; free if its coordinates are the pose."""
    if isinstance(joint, Free):
        at_world = body.parent == "world" and body.orientation == IDENTITY and body.joints[0] is joint
        return at_world and not any((*body.position, *joint.position))
    return isinstance(joint, Revolute | Prismatic | Ball)


def _moved_by_constraints(m: Mechanism) -> set[str]:
    """The joints that move an end of a Connect or a Weld, active or not."""
    found: set[str] = set()
    for c in (*m.constraints, *m.inactive_constraints):
        ends = (c.a[0], c.b[0]) if isinstance(c, Connect) else (c.a, c.b) if isinstance(c, Weld) else ()
        for end in ends:
            found |= {joint.name for name in _ancestors(m, end) for joint in m.body(name).joints}
    return found


def _groups(joints: Any, moved: Container[str]) -> list[list[MovingJoint]]:
    """The joints in groups that a body of MJCF can have: six degrees of freedom, no rotation after a ball.

    moved: the joints that constraints between bodies move; no joint of theirs is after a ball.
    """
    groups: list[list[MovingJoint]] = []
    for joint in joints:
        last = groups[-1] if groups else []
        turns = isinstance(joint, Revolute | Ball) and any(isinstance(other, Ball) for other in last)
        free = isinstance(joint, Free) or any(isinstance(other, Free) for other in last)
        inexact = joint.name in moved and has_joint_after_ball([isinstance(j, Ball) for j in (*last, joint)])
        fits = sum(j.nv for j in (*last, joint)) <= MOST_DEGREES
        if last and fits and not (turns or free or inexact):
            last.append(joint)
        else:
            groups.append([joint])
    return groups


def _at_home(m: Mechanism, notes: ExportNotes) -> Mechanism:
    """The mechanism with the default configuration as the references of its joints."""
    if m.home is None:
        return m
    home, references = m.home, {}
    for joint in m.joints:
        if joint.joint.nq == 1:
            references[joint.name] = home[joint.q.start]
        elif joint.kind == "ball" and tuple(home[joint.q]) != (1, 0, 0, 0):
            notes.unsupported(
                f"joint {joint.name!r}", "a ball joint of MJCF has the identity as its default",
                "the default configuration of this joint is the identity",
            )  # fmt: skip
            home = (*home[: joint.q.start], 1, 0, 0, 0, *home[joint.q.stop :])
    return with_references(m, references).replace(home=home)
