"""Options and keyframes of an MJCF file."""

from __future__ import annotations

from typing import Any

from zwang.algebra.rotations import to_quaternion
from zwang.io.mjcf.write.mjcf_output import MjcfOutput, unless
from zwang.io.xml_writer import XmlElement
from zwang.mechanism.force_elements import (
    Actuator,
    Damper,
    EllipsoidDrag,
    FluidDrag,
    Force,
    Motor,
    Spring,
    Wrench,
)
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.options import Keyframe, Options
from zwang.scalar import is_zero

INTEGRATORS = {"euler": "Euler", "rk4": "RK4", "implicit": "implicit", "implicitfast": "implicitfast"}
SOLVERS = {"newton": "Newton", "cg": "CG", "pgs": "PGS"}
DEFAULT = Options()
GRAVITY = (0, 0, -9.81)


def option_node(out: MjcfOutput) -> XmlElement:
    """The element <option>."""
    m, options = out.mechanism, out.mechanism.options
    integrator = INTEGRATORS.get(options.integrator)
    if integrator is None:
        out.notes.unsupported(
            "options", f"MuJoCo has no integrator {options.integrator!r}", "the integrator is Euler"
        )
    node = XmlElement(
        "option",
        {
            "timestep": options.timestep,
            "gravity": unless(tuple(m.gravity), GRAVITY),
            **_fluid(m),
            "magnetic": unless(tuple(options.magnetic_field), DEFAULT.magnetic_field),
            "integrator": integrator or "Euler",
            "cone": unless(options.cone, DEFAULT.cone),
            "impratio": unless(options.impratio, DEFAULT.impratio),
            "solver": unless(SOLVERS[options.solver], "Newton"),
            "iterations": unless(options.iterations, DEFAULT.iterations),
            "tolerance": unless(options.tolerance, DEFAULT.tolerance),
            "noslip_iterations": unless(options.noslip_iterations, 0),
            "sleep_tolerance": unless(options.sleep_tolerance, DEFAULT.sleep_tolerance),
            "noslip_tolerance": unless(options.noslip_tolerance, DEFAULT.noslip_tolerance),
        },
    )
    contact = options.contact or "constraint" in options.disabled
    disabled = dict.fromkeys((*options.disabled, *(() if contact else ("contact",))))
    applied = _applied(m)
    for flag in [flag for flag in disabled if applied.get(flag)]:
        del disabled[flag]
        out.notes.changed(f"it is not written, as the mechanism has {applied[flag]}", f"option flag {flag!r}")
    flags = {flag: "disable" for flag in disabled} | {flag: "enable" for flag in options.enabled}
    if flags:
        node.add("flag", **flags)
    return node


def _fluid(m: Mechanism) -> dict[str, Any]:
    """The attributes of the fluid, which is the same around all bodies."""
    drag = next((f for f in m.forces if isinstance(f, FluidDrag | EllipsoidDrag)), None)
    if drag is None:
        return {}
    wind = unless(tuple(drag.wind), (0, 0, 0))
    return {"density": unless(drag.density, 0), "viscosity": unless(drag.viscosity, 0), "wind": wind}


def _applied(m: Mechanism) -> dict[str, str]:
    """What zwang applies although a flag of MuJoCo would disable it, by flag."""
    ranges = [f.control_range for f in m.forces if isinstance(f, Motor | Actuator)]
    found = {
        "spring": any(isinstance(f, Spring) for f in m.forces) or any(t.has_spring for t in m.tendons),
        "damper": any(isinstance(f, Damper | FluidDrag | EllipsoidDrag) for f in m.forces)
        or any(t.has_damper for t in m.tendons),
        "gravity": any(m.gravity),
        "actuation": is_actuated(m),
        "clampctrl": any(ends is not None for ends in ranges),
    }
    names = {"spring": "springs", "damper": "dampers", "gravity": "gravity", "actuation": "inputs",
             "clampctrl": "control ranges"}  # fmt: skip
    return {flag: names[flag] for flag, used in found.items() if used}


def is_actuated(m: Mechanism) -> bool:
    """Whether an input may have an effect, or actuators compensate gravity."""
    compensated = [j.joint for j in m.joints if j.joint.actuator_gravity_compensation]
    carried = any(joint.actuator_range != (0, 0) for joint in compensated)
    return any(_has_effect(force) for force in m.forces) or bool(m.inputs and carried)


def _has_effect(force: Force) -> bool:
    """Whether an input may cause a force of this force element, or change its activation."""
    if not isinstance(force, Actuator):
        return isinstance(force, Motor) or (isinstance(force, Wrench) and force.input is not None)
    has_gain = not all(is_zero(x) for x in (*force.gain, *force.bias)) or force.muscle is not None
    is_constant = force.activation is None or (
        force.activation[0] == "integrator" and force.control_range == (0, 0)
    )
    return has_gain or force.pid is not None or force.force_range is not None or not is_constant


def keyframe_nodes(out: MjcfOutput, inputs: tuple[str, ...]) -> list[XmlElement]:
    """The elements <key>. inputs: the names to which the numbers of `Keyframe.control` belong."""
    m = out.mechanism
    actuators = [f for f in m.forces if isinstance(f, Motor | Actuator)]
    states = [name for f in actuators if isinstance(f, Actuator) for name in f.states]
    found = []
    for key in m.keyframes:
        control: Any = None
        if key.control and len(key.control) == len(inputs):
            values = dict(zip(inputs, key.control, strict=True))
            control = [values[f.name] for f in actuators] or None
        elif key.control:
            out.notes.unsupported(
                f"keyframe {key.name!r}",
                f"it has {len(key.control)} control inputs, and the mechanism has {len(inputs)}",
                "they are omitted",
            )
        activation = key.activation or None
        if activation is not None and len(activation) != len(states):
            out.notes.unsupported(
                f"keyframe {key.name!r}",
                f"it has {len(activation)} activations, and the mechanism has {len(states)}",
                "they are omitted",
            )
            activation = None
        found.append(
            XmlElement(
                "key",
                {
                    "name": out.name("keyframe", key.name) if key.name else None,
                    "time": unless(key.time, 0),
                    "qpos": key.q or None,
                    "qvel": key.v or None,
                    "act": activation,
                    "ctrl": control,
                    **_mocap_poses(m, key),
                },
            )
        )
    return found


def _mocap_poses(m: Mechanism, key: Keyframe) -> dict[str, Any]:
    """The poses of all mocap bodies: those of the keyframe, or else of the description."""
    if not key.mocap:
        return {}
    given = {name: (position, quaternion) for name, position, quaternion in key.mocap}
    poses = [
        given.get(body.name, (body.position, to_quaternion(body.orientation)))
        for body in m.bodies
        if body.mocap
    ]
    return {name: [x for pose in poses for x in pose[i]] for i, name in enumerate(("mpos", "mquat"))}
