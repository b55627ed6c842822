"""Writes the figures of tests/cases/mujoco_oracle with the MuJoCo that is installed.

    python -m tests.oracles.mujoco_figures [name ...]

The states of an existing case are kept. Those of a new case are drawn: some at random in the air, others
along falls. At each state the Newton method of MuJoCo is restarted from its own solution until the
optimality conditions M qacc = qfrc_smooth + J^T efc_force are satisfied to rounding; one call of mj_forward
leaves residuals of 1e-8.
"""

from __future__ import annotations

import gzip
import json
import sys
from importlib import metadata
from typing import Any

import mujoco
import numpy as np

from tests.cases import FOLDER, checksum, mjcf, model_file, stored
from tests.oracles.mujoco_models import full_mass_matrix

CASES = FOLDER / "mujoco_oracle"
GYMNASIUM = {
    name: f"gymnasium/envs/mujoco/assets/{name}.xml" for name in ("ant", "half_cheetah", "hopper", "humanoid")
}
OURS = ("car", "muscle_arm", "slider_crank")
STATES, IN_THE_AIR = 20, 5  # the number of states of a case, and of those that are not along a fall
RESTARTS = 12
CONES = {"pyramidal": mujoco.mjtCone.mjCONE_PYRAMIDAL, "elliptic": mujoco.mjtCone.mjCONE_ELLIPTIC}
STATE = ("qpos", "qvel", "ctrl", "act")
SMOOTH = ("qfrc_bias", "qfrc_passive", "qfrc_actuator", "ten_length", "qacc_smooth", "xpos")
ROWS = ("efc_aref", "efc_R", "efc_force")


def written(name: str) -> float:
    """Write the case of that name. Returns the largest optimality residual of its figures."""
    model = {"file": f"{name}.xml"}
    if name in GYMNASIUM:
        model = {"package": "gymnasium", "version": metadata.version("gymnasium"), "file": GYMNASIUM[name]}
        model["sha256"] = checksum(located(model))
    text = mjcf(located(model))
    engine = mujoco.MjModel.from_xml_string(text)
    states = states_of(name, engine)
    references, worst = [], 0.0
    for cone in CONES:
        for number, state in enumerate(states):
            figures, residual = figures_of(engine, cone, state)
            references.append({"cone": cone, "state": number, **state, **figures})
            worst = max(worst, residual)
    data = {
        "id": f"MJ-{name}",
        "title": f"MuJoCo's dynamics, constraints and next states: {name}",
        "source": f"MuJoCo {mujoco.__version__}, tests/oracles/mujoco_figures.py",
        "parameters": {"units": "SI", "model": model, "timestep": engine.opt.timestep},
        "reference": references,
        "kkt_residual_max": worst,
        "tolerance": {"qM": 1e-9, "bias": 1e-9, "qacc_rel": 1e-6, "efc_force_rel": 1e-5, "geometry": 1e-8},
    }
    with open(CASES / f"{name}.json.gz", "wb") as file, gzip.GzipFile("", "wb", 9, file, mtime=0) as packed:
        packed.write(json.dumps(data).encode())
    return worst


def located(model: dict[str, str]) -> Any:
    """The file of a model whose checksum may not be known yet."""
    if "package" not in model or "sha256" in model:
        return model_file(model, CASES)
    files = metadata.files(model["package"]) or ()
    return next(path.locate() for path in files if path.as_posix() == model["file"])


def states_of(name: str, engine: Any) -> list[dict[str, list[float]]]:
    """The states of a stored case, or random states for a new one."""
    if (CASES / f"{name}.json.gz").exists():
        references = stored("mujoco_oracle", name)["reference"][:STATES]
        return [{key: state[key] for key in STATE} for state in references]
    rng = np.random.default_rng(sum(map(ord, name)))
    return [drawn(engine, rng, k >= IN_THE_AIR) for k in range(STATES)]


def drawn(engine: Any, rng: np.random.Generator, falls: bool) -> dict[str, list[float]]:
    """A random state, with joints up to a tenth of their range beyond their limits.

    falls: the state some time later, under constant controls.
    """
    data = mujoco.MjData(engine)
    moved = 0.3 * rng.normal(size=engine.nv)
    mujoco.mj_integratePos(engine, data.qpos, moved, 1.0)
    for k in range(engine.njnt):
        if engine.jnt_limited[k] and engine.jnt_type[k] != mujoco.mjtJoint.mjJNT_BALL:
            low, high = engine.jnt_range[k]
            data.qpos[engine.jnt_qposadr[k]] = rng.uniform(low - (high - low) / 10, high + (high - low) / 10)
    data.qvel[:] = rng.normal(size=engine.nv)
    low, high = np.where(engine.actuator_ctrllimited[:, None], engine.actuator_ctrlrange, (-1, 1)).T
    data.ctrl[:] = rng.uniform(low, high)
    data.act[:] = rng.uniform(0, 1, size=engine.na)
    if falls:
        for _ in range(int(rng.uniform(0.1, 1.0) / engine.opt.timestep)):
            mujoco.mj_step(engine, data)
    elif engine.jnt_type[0] == mujoco.mjtJoint.mjJNT_FREE:
        data.qpos[2] += 1.0
    return {key: getattr(data, key).tolist() for key in STATE}


def figures_of(engine: Any, cone: str, state: dict[str, list[float]]) -> tuple[dict[str, Any], float]:
    """MuJoCo's figures at a state, and the relative residual of the optimality conditions."""
    engine.opt.cone = CONES[cone]
    data, residual = solved(engine, state)
    contacts = [contact_of(data.contact[k]) for k in range(data.ncon)]
    found = {
        "qM": full_mass_matrix(engine, data).tolist(),
        **{key: getattr(data, key).tolist() for key in (*SMOOTH, *ROWS)},
        "qacc": data.qacc.tolist(),
        "nefc": data.nefc,
        "efc_J": data.efc_J.reshape(data.nefc, engine.nv).tolist(),
        "contacts": contacts,
        "next": {name: stepped(engine, data, advance) for name, advance in INTEGRATORS.items()},
    }
    return found, residual


def solved(engine: Any, state: dict[str, list[float]]) -> tuple[Any, float]:
    """MuJoCo's data at a state, of the restart with the least residual."""
    best, least = None, np.inf
    data = mujoco.MjData(engine)
    for key in STATE:
        getattr(data, key)[:] = state[key]
    for _ in range(RESTARTS):
        mujoco.mj_forward(engine, data)
        residual = residual_of(engine, data)
        if best is None or residual < least:
            best, least = mujoco.MjData(engine), residual
            mujoco.mj_copyData(best, engine, data)
        data.qacc_warmstart[:] = data.qacc
    return best, least


def residual_of(engine: Any, data: Any) -> float:
    """The largest entry of M qacc - qfrc_smooth - J^T efc_force, relative to the largest of its terms."""
    inertial = full_mass_matrix(engine, data) @ data.qacc
    constrained = data.efc_J.reshape(data.nefc, engine.nv).T @ data.efc_force
    scale = max(1.0, *(np.abs(x).max() for x in (inertial, data.qfrc_smooth, constrained)))
    return float(np.abs(inertial - data.qfrc_smooth - constrained).max() / scale)


def contact_of(contact: Any) -> dict[str, Any]:
    """A contact's geometry and friction."""
    return {
        "geom": contact.geom.tolist(),
        "dist": contact.dist,
        "pos": contact.pos.tolist(),
        "frame": contact.frame.tolist(),
        "friction": contact.friction.tolist(),
        "dim": int(contact.dim),
        "includemargin": contact.includemargin,
    }


def stepped(engine: Any, data: Any, advance: Any) -> dict[str, list[float]]:
    """The state after one step from the converged acceleration."""
    after = mujoco.MjData(engine)
    mujoco.mj_copyData(after, engine, data)
    advance(engine, after)
    return {"qpos": after.qpos.tolist(), "qvel": after.qvel.tolist()}


def implicitfast(engine: Any, data: Any) -> None:
    """One step of MuJoCo's implicitfast."""
    before, engine.opt.integrator = engine.opt.integrator, mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    mujoco.mj_implicit(engine, data)
    engine.opt.integrator = before


INTEGRATORS = {
    "Euler": mujoco.mj_Euler,
    "RK4": lambda engine, data: mujoco.mj_RungeKutta(engine, data, 4),
    "implicitfast": implicitfast,
}

if __name__ == "__main__":
    for name in sys.argv[1:] or (*GYMNASIUM, *OURS):
        print(f"{name}: optimality residual at most {written(name):.1e}")
