"""The comparison of one MJCF file with MuJoCo, stage by stage; `benchmarks/models.py` runs it in a process
of its own.

    python -m benchmarks.model_comparison floats FILE FOLDER
    python -m benchmarks.model_comparison compiled FILE FOLDER

Each stage prints one line of JSON when it is complete, so that what is known survives a stage that is
stopped. "floats": loading, accelerations and sensors in several states. "compiled": compile time, one step,
200 steps and speeds. Accelerations are compared at tight tolerances of MuJoCo's solver and of its collision
detection; speeds are measured with the options of the model.
"""

from __future__ import annotations

import json
import resource
import sys
import time
import warnings
from dataclasses import dataclass, replace
from typing import Any

import mujoco
import numpy as np

import zwang as zw
from benchmarks.contact_depths import Found, overlap_differences
from benchmarks.model_table import AGREES
from zwang.collision import candidate_pairs
from zwang.collision.narrow_phase import contact_points
from zwang.dynamics.generalised_forces import controlled_forces
from zwang.errors import ZwangError
from zwang.kinematics.kinematics import Kinematics
from zwang.mechanism.force_elements import Actuator

KEYFRAMES, RESTARTS, STEPS, BATCH = 3, 6, 200, 1024
DRIVEN = (10, 60)  # steps after which driven states are compared
STATE = ("qpos", "qvel", "ctrl", "act", "mocap_pos", "mocap_quat")
TOUCH = 1e-9  # [m] of a distance that rounding decides
MEASURED = 0.4  # seconds of each measurement of speed


@dataclass(frozen=True)
class Pair:
    """A model in both programs: with MuJoCo's own options, with tight tolerances, and in zwang."""

    own: Any
    tight: Any
    mechanism: zw.Mechanism


def report(stage: str, **values: Any) -> None:
    """Print the result of a stage."""
    print(json.dumps({"stage": stage, **values}), flush=True)


def loaded(file: str, folder: str) -> Pair | None:
    """The model in both programs; None, with the reason reported, if one of them does not load it."""
    try:
        own = mujoco.MjModel.from_xml_path(file)
    except Exception as error:  # ValueError, and others of its own
        report("mujoco", error=first_line(error))
        return None
    report("mujoco", version=mujoco.__version__, nv=own.nv, ngeom=own.ngeom, nsensor=own.nsensor)
    begin = time.perf_counter()
    try:
        mechanism = zw.load(file, asset_dirs=[folder])
    except ZwangError as error:
        report("load", error=first_line(error), kind=type(error).__name__, lenient=lenient(file, folder))
        return None
    report("load", seconds=time.perf_counter() - begin)
    tight = mujoco.MjModel.from_xml_path(file)
    tight.opt.tolerance, tight.opt.iterations = 1e-15, 300
    tight.opt.ls_tolerance, tight.opt.ls_iterations = 1e-10, 100
    tight.opt.ccd_tolerance, tight.opt.ccd_iterations = 1e-12, 200
    tight.opt.solver = mujoco.mjtSolver.mjSOL_NEWTON
    return Pair(own, tight, mechanism)


def lenient(file: str, folder: str) -> str:
    """Whether the file loads with strict=False: "loads", or the error."""
    try:
        zw.load(file, strict=False, asset_dirs=[folder])
    except ZwangError as error:
        return first_line(error)
    return "loads"


def first_line(error: Exception) -> str:
    return " ".join(str(error).split())[:400]


# ------------------------------------------------------------------------------------------- accelerations


def states(model: Any) -> list[tuple[str, Any]]:
    """MuJoCo's data in the states to compare: zero, keyframes, and along a motion with random controls."""
    zero = mujoco.MjData(model)
    found = [("zero", zero)]
    for k in range(min(model.nkey, KEYFRAMES)):
        data = mujoco.MjData(model)
        mujoco.mj_resetDataKeyframe(model, data, k)
        if any(not np.array_equal(getattr(data, x), getattr(zero, x)) for x in STATE):
            found.append((f"keyframe {k}", data))
    data = driven(model)
    for count in DRIVEN:
        while round(data.time / model.opt.timestep) < count and np.isfinite(data.qacc).all():
            mujoco.mj_step(model, data)
        if data.time == 0 or not np.isfinite(data.qpos).all():
            break
        copy = mujoco.MjData(model)
        mujoco.mj_copyData(copy, model, data)
        found.append((f"driven {count}", copy))
    return found


def driven(model: Any) -> Any:
    """The data in the first keyframe or in the initial state, with random controls and small velocities."""
    data, rng = mujoco.MjData(model), np.random.default_rng(1)
    if model.nkey:
        mujoco.mj_resetDataKeyframe(model, data, 0)
    data.time = 0.0
    low, high = np.where(model.actuator_ctrllimited[:, None], model.actuator_ctrlrange, (-1, 1)).T
    data.ctrl[:] = rng.uniform(low, high)
    data.qvel[:] += 0.1 * rng.normal(size=model.nv)
    return data


def solved(model: Any, data: Any) -> None:
    """Solve the data forward, restarted from the solution until it does not change."""
    for _ in range(RESTARTS):
        before = data.qacc.copy()
        mujoco.mj_forward(model, data)
        data.qacc_warmstart[:] = data.qacc
        if np.array_equal(before, data.qacc):
            break


def at_mocap(mechanism: zw.Mechanism, data: Any) -> zw.Mechanism:
    """The mechanism with its mocap bodies at the poses in the data."""
    if not any(body.mocap for body in mechanism.bodies):
        return mechanism
    moved, values = zw.with_mocap_parameters(mechanism)
    poses = np.hstack([data.mocap_pos, data.mocap_quat]).ravel()
    return moved.subs(dict(zip(values, poses.tolist(), strict=True)))


def relative(found: Any, expected: Any) -> float:
    """The largest difference, relative to the largest expected number or 1."""
    if not np.size(expected):
        return 0.0
    scale = max(1.0, float(np.abs(expected).max()))
    return float(np.abs(np.asarray(found) - expected).max() / scale)


def inputs_of(mechanism: zw.Mechanism, model: Any, data: Any) -> tuple[np.ndarray, np.ndarray]:
    """Control and activation of the data in the order of the mechanism, whose actuators keep their order."""
    actuators = [f for f in mechanism.forces if isinstance(f, Actuator)]
    names = {f.name: k for k, f in enumerate(actuators)}
    if not mechanism.inputs:  # then the control is the generalised force
        return np.zeros(len(mechanism.inputs) or model.nv), np.zeros(0)
    control = np.array([data.ctrl[model.actuator_ctrladr[names[name]]] for name in mechanism.inputs])
    addresses = [
        int(model.actuator_actadr[k]) + i for k, f in enumerate(actuators) for i in range(len(f.states))
    ]
    return control, data.act[addresses]


def compare_state(pair: Pair, name: str, data: Any) -> None:
    """Report the errors of acceleration and sensors in one state."""
    solved(pair.tight, data)
    m, q, v = at_mocap(pair.mechanism, data), data.qpos.copy(), data.qvel.copy()
    control, z = inputs_of(m, pair.tight, data)
    states = [name for f in m.forces if isinstance(f, Actuator) for name in f.states]
    by_name = dict(zip(m.inputs, control, strict=False)), dict(zip(states, z, strict=True))
    tau = np.asarray(controlled_forces(m, q, v, *by_name, data.time), float)
    begin = time.perf_counter()
    found = zw.constrained_dynamics(m, q, v, tau, time=data.time)
    seconds = time.perf_counter() - begin
    error, more = relative(found.acceleration, data.qacc), {}
    if not error <= AGREES:
        contacts = contacts_of(m, q, v)
        distances = [abs(contact.distance) for contact in contacts] + [abs(c.dist) for c in data.contact]
        more = {
            "smooth": error_without_contacts(pair.tight, m, data, by_name),
            "overlaps": overlap_differences(pair.tight, data, contacts),
            "touch": min(distances, default=1.0) < TOUCH,
        }
    M = np.zeros((pair.tight.nv, pair.tight.nv))
    mujoco.mj_fullM(pair.tight, data, M)
    report(
        "state", name=name, qacc=error, seconds=seconds, **more,
        mass=relative(zw.mass_matrix(m, q), M), force=relative(tau, data.qfrc_actuator),
        rows=[len(found.force), int(data.nefc)], contacts=int(data.ncon), converged=bool(found.converged),
    )  # fmt: skip
    if pair.tight.nsensordata:
        values = zw.sensors(m, q, v, control, z, data.time)
        errors = sensor_errors(pair.tight, data, values)
        worst = max(errors, key=lambda kind: errors[kind])
        report("sensors", name=name, error=errors[worst], worst=worst)


def contacts_of(m: zw.Mechanism, q: np.ndarray, v: np.ndarray) -> list[Found]:
    """The contact points of zwang, far ones too."""
    poses = Kinematics(m.tree, q, v).poses
    return [
        Found((pair.a.index, pair.b.index), np.array(point.frame[0], float), float(point.distance))
        for pair in candidate_pairs(m)
        for point in contact_points(pair, poses)
    ]


def error_without_contacts(model: Any, mechanism: zw.Mechanism, data: Any, inputs: Any) -> float:
    """The error of the acceleration in the same state if both programs omit contacts.

    inputs: the control and the activation, by name.
    """
    other = mujoco.MjData(model)
    mujoco.mj_copyData(other, model, data)
    flags = model.opt.disableflags
    model.opt.disableflags = flags | mujoco.mjtDisableBit.mjDSBL_CONTACT
    solved(model, other)
    model.opt.disableflags = flags
    without = mechanism.replace(options=replace(mechanism.options, contact=False))
    q, v = data.qpos.copy(), data.qvel.copy()
    tau = np.asarray(controlled_forces(without, q, v, *inputs, data.time), float)
    found = zw.constrained_dynamics(without, q, v, tau, time=data.time)
    return relative(found.acceleration, other.qacc)


def sensor_errors(model: Any, data: Any, values: dict[str, np.ndarray]) -> dict[str, float]:
    """The largest error of each type of sensor; a quaternion and its opposite are the same orientation."""
    errors: dict[str, float] = {}
    for i, found in enumerate(values.values()):
        start = model.sensor_adr[i]
        expected = data.sensordata[start : start + model.sensor_dim[i]]
        kind = mujoco.mjtSensor(model.sensor_type[i]).name[7:].lower()
        if kind in ("framequat", "ballquat") and found @ expected < 0:
            found = -found
        errors[kind] = max(errors.get(kind, 0.0), relative(found, expected))
    return errors


def floats(pair: Pair) -> None:
    """Compare all states, with all bodies awake."""
    pair.tight.opt.enableflags &= ~int(mujoco.mjtEnableBit.mjENBL_SLEEP)
    for name, data in states(pair.tight):
        try:
            compare_state(pair, name, data)
        except Exception as error:  # every defect is a result
            report("state", name=name, error=f"{type(error).__name__}: {first_line(error)}")


# ------------------------------------------------------------------------------------------------ compiled


def compiled(pair: Pair) -> None:
    """Report compile time, the errors of one step and of 200 steps, and speeds."""
    data = driven(pair.tight)
    m = at_mocap(pair.mechanism, data)
    control, z = inputs_of(m, pair.own, data)
    fast = zw.compile(m, threads=1)
    start = data.qpos.copy(), data.qvel.copy()
    begin = time.perf_counter()
    end = fast.rollout(*start, control, steps=STEPS, activation=z)
    report("compile", seconds=time.perf_counter() - begin, memory=peak_memory())
    errors = drift(pair.tight, data, end)
    report("drift", step=errors[0], steps=max(errors), finite=bool(np.isfinite(end[0]).all()))
    ours = seconds_of(lambda: fast.rollout(*start, control, steps=STEPS, activation=z)) / STEPS
    theirs = seconds_of_mujoco(pair.own, start, data)
    report("speed", one=theirs / ours)
    many = [np.tile(x, (BATCH, 1)) for x in (*start, control, z)]
    steps = max(1, min(STEPS, int(MEASURED / (ours * BATCH))))

    def batch() -> None:
        fast.rollout(*many[:3], steps=steps, every=steps, activation=many[3])

    batch()
    report("speed", one=theirs / ours, many=theirs / (seconds_of(batch) / steps / BATCH))


def drift(model: Any, data: Any, end: Any) -> list[float]:
    """The error of the configuration after each step, relative to its size or 1."""
    errors = []
    for q in end[0]:
        mujoco.mj_step(model, data)
        errors.append(relative(q, data.qpos))
    return [e if np.isfinite(e) else np.inf for e in errors]


def seconds_of(call: Any) -> float:
    """Time of one call, the least of the repetitions."""
    best, begin = np.inf, time.perf_counter()
    while time.perf_counter() - begin < MEASURED:
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
    return best


def seconds_of_mujoco(model: Any, start: Any, driven: Any) -> float:
    """Time of one step of MuJoCo along the same motion, called once for all steps."""
    data = mujoco.MjData(model)

    def run() -> None:
        mujoco.mj_resetData(model, data)
        data.qpos[:], data.qvel[:], data.ctrl[:] = *start, driven.ctrl
        mujoco.mj_step(model, data, STEPS)

    return seconds_of(run) / STEPS


def peak_memory() -> float:
    """Gigabytes of memory that this process has used at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def main(stage: str, file: str, folder: str) -> None:
    """Compare one file."""
    warnings.simplefilter("ignore")
    pair = loaded(file, folder)
    if pair is not None:
        (floats if stage == "floats" else compiled)(pair)
    report("end")


if __name__ == "__main__":
    main(*sys.argv[1:])
