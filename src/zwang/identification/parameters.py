"""The parameters pi in which inverse dynamics is linear: names, units, values, and the rows of pi."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from zwang.errors import ArgumentError, DescriptionError, UnknownNameError
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
from zwang.mechanism.joint_index import JointIndex
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.numbers import IDENTITY
from zwang.mechanism.tendon_elements import Tendon
from zwang.mechanism.type_validation import short_repr
from zwang.scalar import is_zero

KINDS = ("inertia", "armature", "damping", "friction", "offset", "stiffness")
"""The kinds of parameters. "inertia" stands for the ten inertial parameters of every moving body."""

WITH_CONTROL = (*KINDS, "motor")
"""The kinds of parameters of a regressor that is given the inputs of the motors."""

OF_INVERSE_DYNAMICS = ("inertia", "armature", "damping", "stiffness")
"""The kinds of which inverse dynamics consists."""

NONNEGATIVE = ("mass", "armature", "damping", "friction", "load friction", "Stribeck velocity")
"""The kinds of parameters that no physical mechanism has negative, besides moments of inertia."""

MOTOR = "motor constant"
"""The kind of a motor's constant: its force by its input, the torque constant times the gear ratio."""

INERTIAL_NAMES = ("m", "mc_x", "mc_y", "mc_z", "I_xx", "I_xy", "I_yy", "I_xz", "I_yz", "I_zz")
INERTIAL_KINDS = ("mass", *["first moment"] * 3, *["inertia"] * 6)
INERTIAL_UNITS = ("kg", *["kg m"] * 3, *["kg m^2"] * 6)


@dataclass(frozen=True)
class Parameter:
    """One parameter of pi.

    name: such as "m_BODY", "mc_BODY_x", "I_BODY_xx", "armature_JOINT", "damping_JOINT". kind: "mass", "first
    moment" (mass times centre of mass), "inertia" (at the origin of the body's frame), "armature", "damping",
    "friction", "offset" or "stiffness", and in a fit also "load friction", "Stribeck friction", "Stribeck
    velocity" and "motor constant". of: the body, joint, tendon or force element, of an offset the generalised
    velocity. unit: in SI, of a joint with lengths and angles both units. value:
    that of the mechanism. element: for damping, stiffness and motor constants, the force element with unit
    coefficient.
    """

    name: str
    kind: str
    of: str
    unit: str
    value: Any
    element: Any = None

    @property
    def is_nonnegative(self) -> bool:
        """Whether no physical mechanism has a negative value."""
        return self.kind in NONNEGATIVE or (self.kind == "inertia" and self.name[-2:] in ("xx", "yy", "zz"))


@dataclass(frozen=True)
class BodyOrigin:
    """A moving body with all bodies rigidly attached to it: its link, and the origin of its frame there."""

    name: str
    link: int
    p: np.ndarray
    attached: tuple[str, ...]


def body_origins(mechanism: Mechanism) -> list[BodyOrigin]:
    """The bodies with joints, in order. Bodies that are rigidly attached to them count as parts of them."""
    placements = mechanism.tree.placements
    moving = {placements[b.name].link: b.name for b in mechanism.bodies if b.joints}
    attached: dict[int, list[str]] = {link: [] for link in moving}
    for body in mechanism.bodies:
        link = placements[body.name].link
        if link in moving and moving[link] != body.name:
            attached[link].append(body.name)
    return [BodyOrigin(name, k, placements[name].p, tuple(attached[k])) for k, name in moving.items()]


def inertial_values(mechanism: Mechanism, origin: BodyOrigin) -> np.ndarray:
    """pi (10,) of one moving body with all that is attached to it, about the origin of its frame."""
    link, d = mechanism.tree.links[origin.link], origin.p
    # moments about the origin d: h' = h - m d,  J' = J - h d^T - d h^T + m d d^T,  I = tr(J') 1 - J'
    h = link.h - link.mass * d
    J = link.J - np.outer(link.h, d) - np.outer(d, link.h) + link.mass * np.outer(d, d)
    I = (J[0, 0] + J[1, 1] + J[2, 2]) * np.array(IDENTITY) - J
    return np.array([link.mass, *h, I[0, 0], I[0, 1], I[1, 1], I[0, 2], I[1, 2], I[2, 2]])


def parameters_of(mechanism: Mechanism, kinds: Sequence[str] | None = None) -> tuple[Parameter, ...]:
    """The parameters pi of a mechanism, in the order of the columns of its regressor.

    kinds: some of `WITH_CONTROL`. By default those of which inverse dynamics consists: the inertia of every
    moving body, and armature, damping and stiffness where the mechanism has them. "armature", "damping" and
    "friction" give a parameter for every joint, "offset" for every generalised velocity, "stiffness" for
    every spring and "motor" for every motor of the mechanism. Springs or dampers whose forces differ by the
    coefficient alone count as one, with the sum of their coefficients.
    Raises UnknownNameError, and DescriptionError for constant wrenches, gravity compensation, drag of a
    fluid, tendons with armature, and actuators whose force is not linear in constants.
    """
    for force in mechanism.forces:
        if isinstance(force, GravityCompensation | FluidDrag | EllipsoidDrag) or (
            isinstance(force, Wrench) and force.input is None
        ):
            raise DescriptionError(
                f"mechanism {mechanism.name!r} has a {type(force).__name__} on body {force.body!r}, whose "
                "force is not linear in the parameters alone; subtract it from tau, and leave it out with "
                "mechanism.replace(forces=...)"
            )
    for tendon in mechanism.tendons:
        if not is_zero(tendon.armature) or tendon.higher_stiffness or tendon.higher_damping:
            raise DescriptionError(
                f"tendon {tendon.name!r} has an armature, or a polynomial spring or damper, which are no "
                "parameters; subtract their forces from tau, and set armature=0, higher_stiffness=() and "
                "higher_damping=()"
            )
    wanted = KINDS if kinds is None else kinds_of(kinds, WITH_CONTROL)
    every = kinds is not None
    found: list[Parameter] = []
    if "inertia" in wanted:
        found += [p for origin in body_origins(mechanism) for p in _inertial(mechanism, origin)]
    if "armature" in wanted:
        found += _of_joints(mechanism, "armature", every)
    if "damping" in wanted:
        found += _damping(mechanism, every)
    if "friction" in wanted and every:
        found += _of_joints(mechanism, "friction", every)
    if "offset" in wanted and every:
        found += _offsets(mechanism)
    if "stiffness" in wanted:
        found += _stiffness(mechanism)
    if "motor" in wanted:
        found += _motor_constants(mechanism)
    return tuple(_with_unique_names(_merged(found)))


def _merged(found: list[Parameter]) -> list[Parameter]:
    """The parameters, those of one unit element as one with the sum of their values, in the place of the
    first.
    """
    merged: dict[Any, Parameter] = {}
    for k, parameter in enumerate(found):
        key = k if parameter.element is None else parameter.element
        first = merged.get(key)
        merged[key] = parameter if first is None else replace(first, value=first.value + parameter.value)
    return list(merged.values())


def _with_unique_names(found: list[Parameter]) -> Iterator[Parameter]:
    """The parameters, the second and further ones of one name with a number, as of two springs of a joint."""
    seen: dict[str, int] = {}
    for parameter in found:
        count = seen[parameter.name] = seen.get(parameter.name, 0) + 1
        yield parameter if count == 1 else replace(parameter, name=f"{parameter.name}~{count}")


def _inertial(mechanism: Mechanism, origin: BodyOrigin) -> Iterator[Parameter]:
    values = inertial_values(mechanism, origin)
    for name, kind, unit, value in zip(INERTIAL_NAMES, INERTIAL_KINDS, INERTIAL_UNITS, values, strict=True):
        head, _, tail = name.partition("_")
        full = f"{head}_{origin.name}" + (f"_{tail}" if tail else "")
        yield Parameter(full, kind, origin.name, unit, value)


def _offsets(mechanism: Mechanism) -> list[Parameter]:
    """The offset of the force of every generalised velocity."""
    return [
        Parameter(f"offset_{name}", "offset", name, _FORCES[unit], 0.0)
        for joint in mechanism.joints
        for name, unit in zip(joint.speeds, joint.displacement_units, strict=True)
    ]


def _of_joints(mechanism: Mechanism, kind: str, every: bool) -> list[Parameter]:
    """The armature or the friction of the joints; only those that are not zero unless `every`."""
    found = []
    for index in mechanism.joints:
        value = getattr(index.joint, kind)
        unit = _units(index, _FORCES if kind == "friction" else _INERTIAS)
        if every or not is_zero(value):
            found.append(Parameter(f"{kind}_{index.name}", kind, index.name, unit, value))
    return found


def _damping(mechanism: Mechanism, every: bool) -> list[Parameter]:
    """The coefficients of the dampers of joints, tendons and point springs, each with its unit element."""
    found = []
    dampers = [f for f in mechanism.forces if isinstance(f, Damper)]
    for index in mechanism.joints:
        value = sum((d.coefficient for d in dampers if d.joint == index.name), start=0)
        if every or not is_zero(value):
            unit = _units(index, _damping_units())
            element = Damper(index.name, 1)
            found.append(Parameter(f"damping_{index.name}", "damping", index.name, unit, value, element))
    for damper in dampers:
        for power, value in enumerate(damper.higher, start=2):
            higher = (*[0] * (power - 2), 1)
            element = Damper(damper.joint, 0, higher=higher)
            name = f"damping_{damper.joint}_{power}"
            unit = _units(mechanism.joint(damper.joint), _damping_units(power))
            found.append(Parameter(name, "damping of a power", damper.joint, unit, value, element))
    for k, spring in enumerate(f for f in mechanism.forces if isinstance(f, PointSpring)):
        if not is_zero(spring.damping):
            element = replace(spring, stiffness=0, damping=1)
            found.append(Parameter(f"damping_spring{k}", "damping", _ends(spring), "N s/m",
                                   spring.damping, element))  # fmt: skip
    for tendon in mechanism.tendons:
        if not is_zero(tendon.damping):
            element = replace(tendon, stiffness=0, damping=1)
            name = f"damping_{tendon.name}"
            unit = _tendon_unit(mechanism, tendon, _damping_units())
            found.append(Parameter(name, "damping", tendon.name, unit, tendon.damping, element))
    return found


def _stiffness(mechanism: Mechanism) -> list[Parameter]:
    """The stiffnesses of the springs of joints, tendons and points, each with its unit element."""
    found = []
    for force in mechanism.forces:
        if isinstance(force, Spring):
            for k, value in enumerate(force.stiffness):
                element = replace(force, stiffness=(*[0] * k, 1))
                name = f"stiffness_{force.joint}" + (f"_{k + 1}" if k else "")
                unit = _units(mechanism.joint(force.joint), _stiffness_units(k + 1))
                found.append(Parameter(name, "stiffness", force.joint, unit, value, element))
    for k, spring in enumerate(f for f in mechanism.forces if isinstance(f, PointSpring)):
        element = replace(spring, stiffness=1, damping=0)
        found.append(
            Parameter(f"stiffness_spring{k}", "stiffness", _ends(spring), "N/m", spring.stiffness, element)
        )
    for tendon in mechanism.tendons:
        if not is_zero(tendon.stiffness):
            element = replace(tendon, stiffness=1, damping=0)
            name = f"stiffness_{tendon.name}"
            unit = _tendon_unit(mechanism, tendon, _stiffness_units())
            found.append(Parameter(name, "stiffness", tendon.name, unit, tendon.stiffness, element))
    return found


def _motor_constants(mechanism: Mechanism) -> list[Parameter]:
    """The constants of motors and actuators, each with its unit element: the force by the input, and of
    actuators those by their length and velocity that are not zero.
    """
    found = []
    for force in mechanism.forces:
        if isinstance(force, Motor):
            unit = f"{_units(mechanism.joint(force.joint), _FORCES)}/unit"
            element = replace(force, gear=1)
            found.append(Parameter(f"motor_{force.name}", MOTOR, force.name, unit, force.gear, element))
        elif isinstance(force, Actuator):
            found += _actuator_constants(mechanism, force)
        elif isinstance(force, Wrench):
            raise DescriptionError(
                f"the wrench with the input {force.input!r} is not a motor; subtract its force from tau, and "
                "leave it out with mechanism.replace(forces=...)"
            )
    return found


def _actuator_constants(mechanism: Mechanism, force: Actuator) -> Iterator[Parameter]:
    """The coefficients of gain and bias of an actuator that are not zero."""
    ranges = {tendon.name: tendon.actuator_range for tendon in mechanism.tendons}
    for what, given in (
        ("activation dynamics", force.activation),
        ("a muscle", force.muscle),
        ("a PID controller", force.pid),
        ("a force_range", force.force_range),
        ("a tendon with an actuator_range", ranges.get(force.tendon or "")),
    ):
        if given is not None:
            raise DescriptionError(
                f"actuator {force.name!r} has {what}, by which its force is not linear in its constants; "
                "leave it out with mechanism.replace(forces=...)"
            )
    suffixes = ("", "_length", "_velocity")
    zero = replace(force, gain=(0, 0, 0), bias=(0, 0, 0))
    for part in ("gain", "bias"):
        for k, (value, suffix) in enumerate(zip(getattr(force, part), suffixes, strict=True)):
            if not is_zero(value):
                element = replace(zero, **{part: tuple(int(i == k) for i in range(3))})
                head = "motor" if part == "gain" else "bias"
                yield Parameter(f"{head}_{force.name}{suffix}", MOTOR, force.name, "SI", value, element)


_FORCES = {"m": "N", "rad": "N m"}
"""The unit of a generalised force by that of its displacement."""
_INERTIAS = {"m": "kg", "rad": "kg m^2"}


def _stiffness_units(power: int = 1) -> dict[str, str]:
    """The units of k, of a force k x^power, by that of x."""
    exponent = "" if power == 1 else f"^{power}"
    return {unit: f"{force}/{unit}{exponent}" for unit, force in _FORCES.items()}


def _damping_units(power: int = 1) -> dict[str, str]:
    """The units of c, of a force c v^power, by that of the displacement."""
    exponent = "" if power == 1 else f"^{power}"
    return {unit: f"{force} s{exponent}/{unit}{exponent}" for unit, force in _FORCES.items()}


def _units(index: JointIndex, of: dict[str, str]) -> str:
    """The units of a joint's parameter by those of its displacements, such as "N, N m" of a free joint."""
    return ", ".join(dict.fromkeys(of[unit] for unit in index.displacement_units))


def _tendon_unit(mechanism: Mechanism, tendon: Tendon, of: dict[str, str]) -> str:
    """The unit of a tendon's parameter: its length is in m, or in the units of the joints of a fixed tendon;
    "SI" where these differ.
    """
    lengths = {u for name, _ in tendon.joints for u in mechanism.joint(name).displacement_units} or {"m"}
    return of[lengths.pop()] if len(lengths) == 1 else "SI"


def _ends(spring: PointSpring) -> str:
    return f"{spring.a[0]}, {spring.b[0]}"


def index_of(parameters: Sequence[Parameter], name: str) -> int:
    """The place of a parameter. Raises UnknownNameError."""
    names = [p.name for p in parameters]
    if name not in names:
        raise UnknownNameError("parameter", name, names)
    return names.index(name)


def kinds_of(kinds: Any, known: Sequence[str] = KINDS) -> tuple[str, ...]:
    """Kinds of parameters by name. Raises UnknownNameError, and ArgumentError for other than names."""
    found = (kinds,) if isinstance(kinds, str) else tuple(kinds) if isinstance(kinds, Iterable) else (kinds,)
    for kind in found:
        if not isinstance(kind, str):
            raise ArgumentError(f"kinds is {short_repr(kinds)}; give names out of {', '.join(known)}")
        if kind not in known:
            raise UnknownNameError("kind of parameter", kind, known)
    return found
