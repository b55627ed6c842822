"""Force elements of a compiled MJCF model: actuators, springs, dampers, gravity compensation and fluids."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from zwang.io.mjcf.mujoco_library import mujoco, numbers_of
from zwang.io.mjcf.read.compiled_model import MjcfModel
from zwang.io.mjcf.read.pid_plugins import PidPlugin
from zwang.io.mjcf.read.read_bodies import zeroed
from zwang.io.structural_numbers import matrix_of
from zwang.mechanism.force_elements import (
    Actuator,
    Damper,
    EllipsoidDrag,
    FluidDrag,
    Force,
    GravityCompensation,
    Muscle,
    Spring,
)
from zwang.mechanism.inertia_box import SMALLEST, inertia_box
from zwang.mechanism.numbers import Names

TRANSMISSION, DYNAMICS, GAIN, BIAS, JOINT, GEOM = (
    numbers_of(kind)
    for kind in (
        mujoco.mjtTrn,
        mujoco.mjtDyn,
        mujoco.mjtGain,
        mujoco.mjtBias,
        mujoco.mjtJoint,
        mujoco.mjtGeom,
    )
)
_ACTIVATIONS = {
    DYNAMICS.mjDYN_INTEGRATOR: "integrator",
    DYNAMICS.mjDYN_FILTER: "filter",
    DYNAMICS.mjDYN_FILTEREXACT: "filterexact",
    DYNAMICS.mjDYN_MUSCLE: "muscle",
}
_TRANSMISSIONS = {
    TRANSMISSION.mjTRN_JOINT, TRANSMISSION.mjTRN_JOINTINPARENT, TRANSMISSION.mjTRN_SITE,
    TRANSMISSION.mjTRN_SLIDERCRANK, TRANSMISSION.mjTRN_BODY,
}  # fmt: skip
_UNSUPPORTED_DYNAMICS = {
    getattr(DYNAMICS, f"mjDYN_{name.upper()}"): name
    for name in ("dcmotor", "pid", "user") if hasattr(DYNAMICS, f"mjDYN_{name.upper()}")
}  # fmt: skip


def passive(source: MjcfModel, disabled: Names) -> list[Force]:
    """Springs and dampers of joints, including the damping of actuators, gravity compensation and fluids.

    disabled: the names of the disable flags.
    """
    m = source.model
    found: list[Force] = []
    for j in range(m.njnt):
        with source.at("joint", j):
            if "spring" not in disabled:
                found.extend(_springs(source, j))
            if "damper" not in disabled:
                found.extend(_dampers(source, j))
    without_passive = {"spring", "damper"} <= set(disabled)  # MuJoCo then omits all passive forces
    if "gravity" not in disabled and not without_passive:
        found.extend(_compensations(source))
    if not without_passive and (m.opt.density > 0 or m.opt.viscosity > 0):
        found.extend(_drags(source))
    return found


def _springs(source: MjcfModel, j: int) -> list[Force]:
    m = source.model
    k = zeroed([m.jnt_stiffness[j], *m.jnt_stiffnesspoly[j]])
    while k and k[-1] == 0:
        k = k[:-1]
    if not k:
        return []
    rotational = m.jnt_type[j] in (JOINT.mjJNT_BALL, JOINT.mjJNT_FREE)
    if rotational and len(k) > 1:
        source.unsupported(
            f"the polynomial spring of the ball or free joint {source.name('joint', j)!r}",
            source.location("joint", j),
        )
        k = k[:1]
    rest = 0 if rotational else zeroed([m.qpos_spring[m.jnt_qposadr[j]]])[0]
    return [Spring(source.name("joint", j), k, rest)]


def _dampers(source: MjcfModel, j: int) -> list[Force]:
    m = source.model
    dof = int(m.jnt_dofadr[j])
    c = np.array([m.dof_damping[dof], *m.dof_dampingpoly[dof]], float)
    for k in source.actuators_on_joints.get(j, ()):
        c = c + m.actuator_gear[k][0] ** 2 * np.array([m.actuator_damping[k], *m.actuator_dampingpoly[k]])
    if not c.any():
        return []
    higher = zeroed(c[1:]) if c[1:].any() else ()
    return [Damper(source.name("joint", j), zeroed(c)[0], higher)]


def _compensations(source: MjcfModel) -> list[Force]:
    m = source.model
    found: list[Force] = []
    effective = bool(np.any(m.body_gravcomp > 0))
    for i in range(1, m.nbody):
        if not m.body_gravcomp[i] or not m.body_mass[i]:
            continue
        if not effective:
            what = f"the gravcomp {m.body_gravcomp[i]:g} of body {source.name('body', i)!r}"
            source.note(
                "ignored",
                f"{what}: MuJoCo compensates gravity only if a body has a positive gravcomp",
                source.location("body", i),
            )
            continue
        found.append(GravityCompensation(source.name("body", i), float(m.body_gravcomp[i])))
    return found


def _drags(source: MjcfModel) -> list[Force]:
    """The drag of a fluid on every body with mass, as on its ellipsoids or on a box with its inertia."""
    m, found = source.model, []
    for i in range(1, m.nbody):
        if m.body_mass[i] < SMALLEST:
            continue
        geoms = range(m.body_geomadr[i], m.body_geomadr[i] + m.body_geomnum[i])
        ellipsoids = [_ellipsoid(source, i, g) for g in geoms if m.geom_fluid[g][0] > 0]
        if ellipsoids:
            found += ellipsoids
            continue
        rotation = np.empty(9)
        mujoco.mju_quat2Mat(rotation, m.body_iquat[i])
        drag = FluidDrag(
            source.name("body", i), inertia_box(float(m.body_mass[i]), m.body_inertia[i].tolist()),
            float(m.opt.density), float(m.opt.viscosity), zeroed(m.body_ipos[i]), rotation.reshape(3, 3),
            zeroed(m.opt.wind),
        )  # fmt: skip
        found.append(drag)
    return found


def _ellipsoid(source: MjcfModel, i: int, g: int) -> EllipsoidDrag:
    """The drag of a fluid on geom g of body i, as on an ellipsoid."""
    m, size = source.model, source.model.geom_size[g]
    semiaxes = {
        GEOM.mjGEOM_SPHERE: (size[0], size[0], size[0]),
        GEOM.mjGEOM_CAPSULE: (size[0], size[0], size[1] + size[0]),
        GEOM.mjGEOM_CYLINDER: (size[0], size[0], size[1]),
    }.get(int(m.geom_type[g]), size)
    coefficients = dict(
        zip(("blunt", "slender", "angular", "kutta", "magnus"), zeroed(m.geom_fluid[g][1:6]), strict=True)
    )
    return EllipsoidDrag(
        source.name("body", i), zeroed(semiaxes), float(m.opt.density), float(m.opt.viscosity),
        **coefficients, virtual_mass=zeroed(m.geom_fluid[g][6:9]),
        virtual_inertia=zeroed(m.geom_fluid[g][9:12]), position=zeroed(m.geom_pos[g]),
        orientation=matrix_of(m.geom_quat[g]), wind=zeroed(m.opt.wind),
    )  # fmt: skip


def actuators(source: MjcfModel, disabled: Names, kept_tendons: set[str]) -> list[Force]:
    """The actuators of the model; those that zwang does not support are reported.

    kept_tendons: the names of the tendons that were read.
    """
    found: list[Force] = []
    for k in range(source.model.nactuator):
        with source.at("actuator", k):
            feature = _unsupported_feature(source, k, kept_tendons)
            if source.without_actuation:
                source.note(
                    "ignored",
                    f"actuator {source.name('actuator', k)!r}: actuation is disabled by the option flag",
                    source.location("actuator", k),
                )
                if feature:
                    continue
            elif feature:
                source.unsupported(
                    f"actuator {source.name('actuator', k)!r} with {feature}", source.location("actuator", k)
                )
                continue
            found.append(_actuator(source, k, disabled))
    return found


def _unsupported_feature(source: MjcfModel, k: int, kept_tendons: set[str]) -> str:
    """The feature of actuator k that is not supported; empty if there is none."""
    m = source.model
    dynamics, gain, bias = (
        int(m.actuator_dyntype[k]),
        int(m.actuator_gaintype[k]),
        int(m.actuator_biastype[k]),
    )
    if m.actuator_delay[k] > 0:
        return "a delay"
    if _pid_plugin(source, k) is not None:
        if source.without_actuation or _is_of_disabled_group(m, k):
            return "a PID controller in a group that the options disable"
        return _unsupported_transmission(source, k, kept_tendons)
    if dynamics in _UNSUPPORTED_DYNAMICS:
        return f"{_UNSUPPORTED_DYNAMICS[dynamics]} dynamics"
    if gain == GAIN.mjGAIN_MUSCLE or bias == BIAS.mjBIAS_MUSCLE:
        same = gain == GAIN.mjGAIN_MUSCLE and bias == BIAS.mjBIAS_MUSCLE
        if not (same and np.array_equal(m.actuator_gainprm[k][:9], m.actuator_biasprm[k][:9])):
            return "a muscle whose gain and bias differ"
    elif gain not in (GAIN.mjGAIN_FIXED, GAIN.mjGAIN_AFFINE):
        return f"gain type {mujoco.mjtGain(gain).name[7:].lower()}"
    elif bias not in (BIAS.mjBIAS_NONE, BIAS.mjBIAS_AFFINE):
        return f"bias type {mujoco.mjtBias(bias).name[7:].lower()}"
    if m.actuator_plugin[k] >= 0:
        return "a plugin"
    return _unsupported_transmission(source, k, kept_tendons)


def _unsupported_transmission(source: MjcfModel, k: int, kept_tendons: set[str]) -> str:
    """The feature of the transmission of actuator k that is not supported; empty if there is none."""
    m = source.model
    kind, target = int(m.actuator_trntype[k]), int(m.actuator_trnid[k][0])
    if kind == TRANSMISSION.mjTRN_BODY and target == 0:
        return "the adhesion of the world, which is no body"
    if kind in _TRANSMISSIONS:
        return "a rotational set point with an activation" if _is_activated_rotation(m, k) else ""
    if kind == TRANSMISSION.mjTRN_TENDON:
        return "" if source.name("tendon", target) in kept_tendons else "a tendon that is not supported"
    return "an unsupported kind of transmission"


def _pid_plugin(source: MjcfModel, k: int) -> PidPlugin | None:
    """The PID controller of actuator k, if it has one."""
    m = source.model
    if m.actuator_gaintype[k] != GAIN.mjGAIN_USER:
        return None
    index, line = (int(x) for x in m.actuator_gainprm[k][:2])
    return source.pids.get((index, line))


def _is_activated_rotation(m: Any, k: int) -> bool:
    """Whether actuator k is a rotational servo with an activation, from which MuJoCo removes full turns."""
    is_servo = (
        m.actuator_dyntype[k] != DYNAMICS.mjDYN_NONE
        and m.actuator_gaintype[k] == GAIN.mjGAIN_FIXED
        and m.actuator_biastype[k] == BIAS.mjBIAS_AFFINE
        and m.actuator_gainprm[k][0] == -m.actuator_biasprm[k][1]
    )
    if m.actuator_trntype[k] == TRANSMISSION.mjTRN_SITE:
        return bool(is_servo and m.actuator_trnid[k][1] >= 0 and not m.actuator_gear[k][:3].any())
    on_joint = m.actuator_trntype[k] in (TRANSMISSION.mjTRN_JOINT, TRANSMISSION.mjTRN_JOINTINPARENT)
    return bool(is_servo and on_joint and m.jnt_type[m.actuator_trnid[k][0]] == JOINT.mjJNT_BALL)


def _actuator(source: MjcfModel, k: int, disabled: Names) -> Actuator:
    m = source.model
    kind, target = int(m.actuator_trntype[k]), int(m.actuator_trnid[k][0])
    transmission = {
        TRANSMISSION.mjTRN_TENDON: "tendon",
        TRANSMISSION.mjTRN_SITE: "site",
        TRANSMISSION.mjTRN_SLIDERCRANK: "crank",
        TRANSMISSION.mjTRN_BODY: "body",
    }.get(kind, "joint")
    axes = {"tendon": 1, "site": 6, "crank": 1, "body": 1}.get(transmission) or {0: 6, 1: 3}.get(
        int(m.jnt_type[target]), 1
    )
    targets: dict[str, Any] = (
        {transmission: source.name(transmission, target)}
        if transmission in ("joint", "tendon", "body")
        else {}
    )
    if transmission in ("site", "crank"):
        targets = {"frame": source.name("site", target)}
        if transmission == "site" and m.actuator_trnid[k][1] >= 0:
            targets |= {"reference": source.name("site", int(m.actuator_trnid[k][1]))}
    if kind == TRANSMISSION.mjTRN_JOINTINPARENT:
        targets |= {"in_parent": axes > 1}
    if transmission == "crank":
        slider = source.name("site", int(m.actuator_trnid[k][1]))
        targets |= {"slider": slider, "rod": float(m.actuator_cranklength[k])}
    gain = zeroed(m.actuator_gainprm[k][:3])
    if m.actuator_gaintype[k] == GAIN.mjGAIN_FIXED:
        gain = (gain[0], 0, 0)
    muscle = _muscle(m, k) if m.actuator_gaintype[k] == GAIN.mjGAIN_MUSCLE else None
    plugin = _pid_plugin(source, k)
    activation = _activation(m, k, None if plugin is None else plugin.dynamics)
    if muscle is not None or plugin is not None:
        gain = (1, 0, 0)
    bias = zeroed(m.actuator_biasprm[k][:3]) if m.actuator_biastype[k] == BIAS.mjBIAS_AFFINE else (0, 0, 0)
    actuator = Actuator(
        name=source.name("actuator", k),
        **targets,
        gear=(1,) if transmission == "body" else zeroed(m.actuator_gear[k][:axes]),
        gain=gain,
        bias=bias,
        control_range=_control_range(m, k, () if plugin is not None and activation is None else disabled),
        force_range=_range(m.actuator_forcelimited[k], m.actuator_forcerange[k]),
        activation=activation,
        activation_range=_range(m.actuator_actlimited[k], m.actuator_actrange[k]),
        muscle=muscle,
        pid=None if plugin is None else plugin.pid,
        early=bool(m.actuator_actearly[k]) and activation is not None,
    )
    if source.without_actuation:  # MuJoCo then clips neither forces nor activations
        return _without_force(replace(actuator, force_range=None, activation_range=None))
    return _without_force(actuator) if _is_of_disabled_group(m, k) else actuator


def _is_of_disabled_group(m: Any, k: int) -> bool:
    """Whether the group of actuator k is disabled (actuatorgroupdisable)."""
    group = int(m.actuator_group[k])
    return 0 <= group < 31 and bool(m.opt.disableactuator & (1 << group))


def _without_force(actuator: Actuator) -> Actuator:
    """The actuator with the force zero, clipped to its range, and a constant activation; its input
    remains.
    """
    constant: dict[str, Any] = {"gain": (0, 0, 0), "bias": (0, 0, 0), "muscle": None}
    if actuator.activation is not None:
        constant |= {"activation": ("integrator", ()), "control_range": (0, 0)}
    return replace(actuator, **constant)


def _muscle(m: Any, k: int) -> Muscle:
    """The muscle model; gainprm is (range[2], force, scale, lmin, lmax, vmax, fpmax, fvmax)."""
    low, high, force, scale, *rest = (float(x) for x in m.actuator_gainprm[k][:9])
    strength = force if force >= 0 else scale / max(1e-15, float(m.actuator_acc0[k]))
    lengths = tuple(float(x) for x in m.actuator_lengthrange[k])
    return Muscle(strength, (lengths[0], lengths[1]), (low, high), *rest)


def _control_range(m: Any, k: int, disabled: Names) -> tuple[float, float] | None:
    control = int(m.actuator_ctrladr[k])
    limited = bool(m.actuator_ctrllimited[control]) and "clampctrl" not in disabled
    return _range(limited, m.actuator_ctrlrange[control])


def _range(limited: Any, ends: Any) -> tuple[float, float] | None:
    return (float(ends[0]), float(ends[1])) if limited else None


def _activation(m: Any, k: int, dynamics: str | None) -> tuple[str, tuple[float, ...]] | None:
    """The activation dynamics of actuator k; dynamics: their name where it is not that of the model."""
    kind = _ACTIVATIONS.get(int(m.actuator_dyntype[k])) if dynamics is None else dynamics
    if kind in (None, "none"):
        return None
    if kind == "muscle":
        return kind, tuple(float(x) for x in m.actuator_dynprm[k][:3])
    return kind, () if kind == "integrator" else (max(1e-15, float(m.actuator_dynprm[k][0])),)
