"""Simulation options and keyframes of a compiled MJCF model."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from zwang.io.mjcf.mujoco_library import SLEEP_POLICY, flags_of, mujoco
from zwang.io.mjcf.read.compiled_model import MjcfModel
from zwang.io.mjcf.read.read_bodies import zeroed
from zwang.mechanism.force_elements import Actuator
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.options import DISABLED, ENABLED, Keyframe, Options
from zwang.mechanism.sleep_policy import SLEEP, sleep_policies
from zwang.mechanism.tendon_elements import TendonCoupling

# the enable flags that change the motion
_UNSUPPORTED_FLAGS = {"override", "diagexact", "ipc", "speculative"}
# of the line search and of the iterations by which MuJoCo finds contacts; zwang's end where they converge
_UNUSED = ("ls_iterations", "ls_tolerance", "ccd_iterations", "ccd_tolerance", "sdf_iterations",
           "sdf_initpoints")  # fmt: skip
_INTEGRATORS = ("euler", "rk4", "implicit", "implicitfast", "discrete")


def options(source: MjcfModel) -> Options:
    """The options of the model.

    Options that zwang does not support and that change the motion are reported.
    """
    o = source.model.opt
    disabled = flags_of(mujoco.mjtDisableBit, o.disableflags, DISABLED)
    enabled = flags_of(mujoco.mjtEnableBit, o.enableflags, ENABLED)
    for name in enabled:
        if name in _UNSUPPORTED_FLAGS:
            source.unsupported(f"the option flag {name!r}", _location(source, name))
    if not (o.density > 0 or o.viscosity > 0) and np.any(o.wind):
        what = "wind has no effect without the density or viscosity of a fluid"
        source.note("ignored", what, _location(source, "wind"))
    boxes = np.count_nonzero(source.model.geom_type == int(mujoco.mjtGeom.mjGEOM_BOX))
    if o.noslip_iterations > 0 and boxes > 1:
        what = "the noslip solver ends before it converges, and may take the contacts of two boxes in another"
        what = f"{what} order than MuJoCo: accelerations may differ by about 1e-3"
        source.note("read", what, _location(source, "noslip_iterations"))
    _note_unused(source)
    integrator = _INTEGRATORS[int(o.integrator)]
    if integrator == "discrete":
        source.unsupported("the integrator 'discrete'", _location(source, "integrator"))
        integrator = "euler"
    return Options(
        timestep=float(o.timestep),
        integrator=integrator,
        cone=("pyramidal", "elliptic")[int(o.cone)],
        impratio=float(o.impratio),
        solver=("pgs", "cg", "newton")[int(o.solver)],
        iterations=int(o.iterations),
        tolerance=float(o.tolerance),
        noslip_iterations=max(0, int(o.noslip_iterations)),
        noslip_tolerance=_noslip_tolerance(source),
        contact="contact" not in disabled and "constraint" not in disabled,
        disabled=disabled,
        enabled=enabled,
        magnetic_field=zeroed(o.magnetic),
        sleep_tolerance=max(0.0, float(getattr(o, "sleep_tolerance", Options.sleep_tolerance))),
    )


def _note_unused(source: MjcfModel) -> None:
    """Note the settings in the file of iterations that end where they converge."""
    for element in source.files.elements():
        unused = [repr(name) for name in _UNUSED if name in element.attributes]
        if element.name == "option" and unused:
            what = f"{', '.join(unused)} of {element.title}, as zwang's iterations end where they converge"
            source.note("ignored", what, f"{element.source}, line {element.line}")


def _location(source: MjcfModel, attribute: str) -> str:
    """The place of the last option or flag that sets the attribute, or the file."""
    places = [
        f"{element.source}, line {element.line}"
        for element in source.files.own_elements()
        if element.name in ("option", "flag") and attribute in element.attributes
    ]
    return places[-1] if places else source.files.source


def supported_sleep(source: MjcfModel, mechanism: Mechanism) -> Options:
    """The options; without "sleep", which is reported, if the bodies would not sleep as MuJoCo's do."""
    m, options, policies, what = source.model, mechanism.options, sleep_policies(mechanism), None
    assert SLEEP_POLICY is not None  # the version has the flag
    awake = {SLEEP_POLICY.mjSLEEP_NEVER, SLEEP_POLICY.mjSLEEP_AUTO_NEVER}
    differing = [
        int(m.dof_bodyid[m.tree_dofadr[t]])
        for t in range(m.ntree)
        if (int(m.tree_sleep_policy[t]) in awake) != (policies[t] == "never")
    ]
    if differing:
        what = f"of body {source.name('body', differing[0])!r}, on which parts of several trees act,"
    elif all(policy == "never" for policy in policies):
        source.note("ignored", "the option flag 'sleep', as no body may sleep", _location(source, SLEEP))
    elif options.integrator == "rk4":
        what = "with the integrator 'RK4'"
    elif any(isinstance(constraint, TendonCoupling) for constraint in mechanism.constraints):
        what = "with couplings of tendons"
    elif "island" in options.disabled:
        what = "without islands"
    if what is None:
        return options
    source.unsupported(f"the option flag 'sleep' {what}", _location(source, SLEEP))
    return replace(options, enabled=tuple(name for name in options.enabled if name != SLEEP))


def _noslip_tolerance(source: MjcfModel) -> float:
    """The tolerance of the noslip solver, relative to the mean inertia in the default configuration, which a
    file may replace.
    """
    m = source.model
    given = max(0.0, float(m.opt.noslip_tolerance))
    replaced = any(e.name == "statistic" and "meaninertia" in e.attributes for e in source.files.elements())
    if not replaced or not m.nv:
        return given
    return given * float(m.stat.meaninertia) / float(np.mean(m.dof_M0))


def keyframes(source: MjcfModel, kept: list[Actuator]) -> tuple[Keyframe, ...]:
    """The keyframes of the model; `kept` are the actuators that were read, in their order."""
    m = source.model
    names = [source.name("actuator", k) for k in range(m.nactuator)]
    indices = [names.index(actuator.name) for actuator in kept]
    controls = [int(m.actuator_ctrladr[k]) for k in indices]
    states = [
        int(m.actuator_actadr[k]) + i
        for k, actuator in zip(indices, kept, strict=True)
        for i in range(len(actuator.states))
    ]
    return tuple(
        Keyframe(
            source.name("key", k),
            q=tuple(m.key_qpos[k].tolist()),
            v=tuple(m.key_qvel[k].tolist()),
            control=tuple(float(m.key_ctrl[k][c]) for c in controls),
            activation=tuple(float(m.key_act[k][s]) for s in states),
            time=float(m.key_time[k]),
            mocap=_mocap_poses(source, k),
        )
        for k in range(m.nkey)
    )


def _mocap_poses(source: MjcfModel, k: int) -> tuple[tuple[str, tuple[float, ...], tuple[float, ...]], ...]:
    """The poses of all mocap bodies in keyframe k."""
    m = source.model
    positions, quaternions = (np.reshape(x[k], (-1, n)) for x, n in ((m.key_mpos, 3), (m.key_mquat, 4)))
    bodies = [i for i in range(m.nbody) if m.body_mocapid[i] >= 0]
    return tuple(
        (
            source.name("body", i),
            tuple(positions[m.body_mocapid[i]].tolist()),
            tuple(quaternions[m.body_mocapid[i]].tolist()),
        )
        for i in bodies
    )
