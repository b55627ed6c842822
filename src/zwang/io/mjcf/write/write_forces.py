"""Actuators and tendons of an MJCF file."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from zwang.io.mjcf.read.pid_plugins import FIELDS, PLUGIN
from zwang.io.mjcf.write.mjcf_output import MjcfOutput, limit_attributes, softness_attributes, unless
from zwang.io.mjcf.write.write_geoms import wrapping_geom
from zwang.io.xml_writer import XmlElement
from zwang.mechanism.bodies import Frame
from zwang.mechanism.controllers import Pid
from zwang.mechanism.force_elements import Actuator, Motor, Muscle
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.tendon_elements import Tendon, Wrap

MOST = 3  # coefficients of the spring or damper of a tendon
COMPUTED = -1.0  # a spring length of MJCF that stands for the length in the default configuration


def actuator_nodes(out: MjcfOutput) -> list[XmlElement]:
    """The elements <general> of motors and actuators."""
    found = []
    for force in out.mechanism.forces:
        if isinstance(force, Motor):
            found.append(_general(out, Actuator(force.name, force.joint, gear=(force.gear,),
                                                control_range=force.control_range)))  # fmt: skip
        elif isinstance(force, Actuator):
            found.append(_general(out, force))
    return found


def _general(out: MjcfOutput, a: Actuator) -> XmlElement:
    attributes: dict[str, Any] = {
        "name": out.name("actuator", a.name),
        **_target(out, a),
        "gear": a.gear,
        **limit_attributes("ctrl", a.control_range),
        **limit_attributes("force", a.force_range),
        **limit_attributes("act", a.activation_range),
    }
    if a.activation is not None:
        kind, parameters = a.activation
        attributes |= {"dyntype": kind, "dynprm": parameters or None, "actearly": unless(a.early, False)}
    if a.pid is not None:
        return XmlElement("plugin", {**attributes, **_pid(a)}, _configuration(a.pid))
    if a.muscle is not None:
        attributes |= _muscle(out, a, a.muscle)
    else:
        affine = any(x != 0 for x in a.gain[1:])
        attributes |= {"gaintype": "affine" if affine else "fixed", "gainprm": a.gain}
        if any(x != 0 for x in a.bias):
            attributes |= {"biastype": "affine", "biasprm": a.bias}
    return XmlElement("general", attributes)


def _pid(a: Actuator) -> dict[str, Any]:
    """The attributes of an actuator of MuJoCo's plugin for PID controllers."""
    return {"plugin": PLUGIN, "actdim": len(a.states) or None}


def _configuration(pid: Pid) -> list[XmlElement]:
    """The configuration of a PID controller."""
    values = {key: getattr(pid, name) for key, name in FIELDS.items()}
    return [
        XmlElement("config", {"key": key, "value": value})
        for key, value in values.items()
        if value is not None and (value != 0 or key in ("imax", "slewmax"))
    ]


def _target(out: MjcfOutput, a: Actuator) -> dict[str, Any]:
    """The attributes of the transmission."""
    if a.joint is not None:
        return {"jointinparent" if a.in_parent else "joint": out.name("joint", a.joint)}
    if a.tendon is not None:
        return {"tendon": out.name("tendon", a.tendon)}
    if a.body is not None:
        return {"body": out.name("body", a.body)}
    site = out.site(str(a.frame))
    if a.slider is None:
        reference = None if a.reference is None else out.site(a.reference)
        return {"site": site, "refsite": reference}
    return {"cranksite": site, "slidersite": out.site(a.slider), "cranklength": a.rod}


def _muscle(out: MjcfOutput, a: Actuator, muscle: Muscle) -> dict[str, Any]:
    """The attributes of a muscle, whose gain and bias have the same parameters."""
    if muscle.strength < 0:
        out.notes.unsupported(
            f"actuator {a.name!r}", "a muscle of MJCF has no negative strength", "its strength is 0"
        )
    parameters = (
        *muscle.operating_range, max(muscle.strength, 0), 1, muscle.shortest, muscle.longest, muscle.fastest,
        muscle.passive, muscle.lengthening,
    )  # fmt: skip
    return {
        "gaintype": "muscle",
        "biastype": "muscle",
        "gainprm": parameters,
        "biasprm": parameters,
        "lengthrange": muscle.length_range,
    }


def tendon_nodes(out: MjcfOutput) -> list[XmlElement]:
    """The elements <fixed> and <spatial>."""
    return [_tendon(out, tendon) for tendon in out.mechanism.tendons]


def _tendon(out: MjcfOutput, t: Tendon) -> XmlElement:
    where = f"tendon {t.name!r}"
    limits = t.limits is not None and t.limit_softness is None
    friction = bool(t.friction) and t.friction_softness is None
    for hard, what in ((limits, "limit"), (friction, "dry friction")):
        if hard:
            out.notes.unsupported(
                where, f"MJCF has no hard {what} of a tendon", "it has MuJoCo's default softness"
            )
    if t.actuator_range is not None and _leaves_range_out(out.mechanism, t):
        out.notes.unsupported(
            where, "MuJoCo does not clamp plugins to a tendon's actuatorfrcrange", "the range is left out"
        )
        t = replace(t, actuator_range=None)
    margin = t.limit_softness.margin if t.limit_softness is not None else 0
    node = XmlElement(
        "spatial" if t.path else "fixed",
        {
            "name": out.name("tendon", t.name),
            **limit_attributes("", t.limits),
            **limit_attributes("actuatorfrc", t.actuator_range),
            **softness_attributes(t.limit_softness, "limit"),
            "margin": unless(margin, 0),
            "frictionloss": unless(t.friction, 0),
            **softness_attributes(t.friction_softness, "friction"),
            "stiffness": _polynomial(out, t, "stiffness"),
            "damping": _polynomial(out, t, "damping"),
            "armature": unless(t.armature, 0),
            "springlength": _spring_length(t) if t.has_spring else None,
        },
    )
    if t.path:
        node.children += _path(out, t)
    else:
        node.children += [
            XmlElement("joint", {"joint": out.name("joint", name), "coef": coefficient})
            for name, coefficient in t.joints
        ]
    return node


def _leaves_range_out(m: Mechanism, t: Tendon) -> bool:
    """Whether MuJoCo clamps the PID controllers of a tendon to its range nowhere: it does where another kind
    of actuator drives a tendon with a range.
    """
    drives = [f for f in m.forces if isinstance(f, Actuator) and f.tendon is not None]
    clamped = {x.name for x in m.tendons if x.actuator_range is not None}
    is_clamping = any(f.pid is None and f.tendon in clamped for f in drives)
    return not is_clamping and any(f.tendon == t.name for f in drives)


def _polynomial(out: MjcfOutput, t: Tendon, name: str) -> tuple[Any, ...] | None:
    """The coefficients of the spring or damper of a tendon, of which MJCF has at most three."""
    values = (getattr(t, name), *getattr(t, f"higher_{name}"))
    if len(values) > MOST:
        out.notes.unsupported(
            f"tendon {t.name!r}",
            f"the {name} of MJCF has at most {MOST} coefficients",
            f"it has the first {MOST}",
        )
    return None if not any(values) else values[:MOST]


def _spring_length(t: Tendon) -> tuple[float, float]:
    """The slack range; (-1, -1), which has a meaning of its own, is changed by a rounding error."""
    lower, upper = (float(x) for x in t.spring_length)
    if lower == upper == COMPUTED:
        lower = upper = math.nextafter(COMPUTED, -2)
    return lower, upper


def _path(out: MjcfOutput, t: Tendon) -> list[XmlElement]:
    """The sites, wrapping geoms and pulleys of a spatial tendon."""
    wraps = {wrap.at: wrap for wrap in t.wraps}
    divisors = iter(t.divisors or (1,))
    found = []
    if t.path[0] is not None and (first := next(divisors)) != 1:
        found.append(XmlElement("pulley", {"divisor": first}))
    for k, name in enumerate(t.path):
        if name is None:
            found.append(XmlElement("pulley", {"divisor": next(divisors)}))
        elif k in wraps:
            found.append(_wrap(out, name, wraps[k]))
        else:
            found.append(XmlElement("site", {"site": out.site(name)}))
    return found


def _wrap(out: MjcfOutput, name: str, wrap: Wrap) -> XmlElement:
    frames = {frame.name: frame for frame in out.mechanism.frames}
    geom = wrapping_geom(out, frames.get(name) or Frame(f"{name} (wrapping)", name), wrap)
    return XmlElement("geom", {"geom": geom, "sidesite": out.site(wrap.side) if wrap.side else None})
