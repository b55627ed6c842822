"""Steps of a quadruped's learning environment in zwang, and the steps of its simulation in mjbatch.

    python -m benchmarks.joystick [--worlds 1024] [--repeats 40] [--threads 1] [--go1 go1.xml]

The task is that of mjbatch's example `go1_joystick`: 1,024 robots with position servos follow commanded
velocities, 0.02 s a step, five steps of the implicitfast integrator. zwang runs
`examples/joystick_quadruped.py` with observation, reward, termination and resets. mjbatch runs the same model
with the settings of its example (at most ten iterations of projected Gauss-Seidel); the observations and
rewards, which that example computes in NumPy, are left out. --go1: the file of MuJoCo Menagerie's Go1, with
the changes of the example and without pictures; then both programs run the simulation only. All take turns in
one process; the times are those of the process. mjbatch 0.1.4 requires MuJoCo 3.14.0.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
from mjbatch import Batch

import zwang as zw
import zwang.gym
from zwang.io.mjcf.read.read_mjcf import read_mjcf

EXAMPLES = Path(__file__).parents[1] / "examples"
STEP, SUBSTEPS = 0.004, 5
ROTOR_INERTIA, FEET = 0.000111842, ("FR", "FL", "RR", "RL")  # of the Go1 [kg m^2]
STAND = np.array([0.1, 0.9, -1.8, -0.1, 0.9, -1.8] * 2)

Step = Callable[[np.ndarray], Any]


def with_settings(spec: Any) -> Any:
    """The settings of mjbatch's example."""
    options = spec.option
    options.timestep, options.impratio, options.iterations = STEP, 1.0, 10
    options.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    options.cone, options.solver = mujoco.mjtCone.mjCONE_PYRAMIDAL, mujoco.mjtSolver.mjSOL_PGS
    return spec


def go1(file: Path) -> Any:
    """The robot of mjbatch's example on a floor, on which its feet alone may stand."""
    text = re.sub(r'<mesh [^>]*/>|<geom class="visual"[^>]*mesh[^>]*/>', "", file.read_text())
    spec = with_settings(mujoco.MjSpec.from_string(text))
    spec.worldbody.add_geom(name="floor", type=mujoco.mjtGeom.mjGEOM_PLANE, size=[0, 0, 0.1])
    for geom in spec.geoms:
        if geom.name in FEET:
            geom.condim, geom.solimp, geom.margin = 3, [0.9, 0.95, 0.001, 0.5, 2.0], 0.0
        elif geom.name != "floor":
            geom.contype = geom.conaffinity = 0
    for joint in spec.joints[1:]:
        gear = 9 if joint.name.endswith("calf_joint") else 6
        joint.damping, joint.frictionloss, joint.armature = [0.0] * 3, 0.0, ROTOR_INERTIA * gear**2
    for actuator in spec.actuators:
        actuator.set_to_position(kp=35.0, kv=0.5)
        actuator.ctrllimited = mujoco.mjtLimited.mjLIMITED_FALSE
    return spec


def in_mjbatch(spec: Any, q: np.ndarray, v: np.ndarray, threads: int) -> Step:
    """A step of all robots by mjbatch."""
    batch = Batch(spec.compile(), len(q), num_threads=threads)
    qpos, qvel, ctrl = (batch.bind(name) for name in ("qpos", "qvel", "ctrl"))
    qpos[:], qvel[:] = q, v

    def step(control: np.ndarray) -> None:
        ctrl[:] = control
        batch.step(nstep=SUBSTEPS)

    return step


def go1_steps(file: Path, count: int, threads: int) -> tuple[dict[str, Step], np.ndarray]:
    """The steps of the simulation of the Go1, and its controls at rest."""
    spec, rng = go1(file), np.random.default_rng(0)
    q = np.tile(spec.compile().qpos0, (count, 1))
    q[:, 2], q[:, 7:] = 0.3, STAND + rng.uniform(-0.1, 0.1, (count, 12))
    v = rng.uniform(-0.2, 0.2, (count, 18))
    xml = re.sub(r'solver="PGS"|iterations="10"', "", spec.to_xml())
    mechanism = read_mjcf("go1.xml", text=xml)
    steps: dict[str, Step] = {}
    for dtype in ("float64", "float32"):
        worlds = zw.Worlds(mechanism, count, dtype=dtype, threads=threads)
        worlds.reset(q=q, v=v)
        steps[dtype] = lambda control, worlds=worlds: worlds.step(control, SUBSTEPS)
    return steps | {"mjbatch": in_mjbatch(spec, q, v, threads)}, STAND


def example_steps(count: int, threads: int) -> tuple[dict[str, Step], np.ndarray]:
    """The steps of examples/joystick_quadruped.py, and of its simulation by mjbatch; the controls at rest."""
    sys.path.insert(0, str(EXAMPLES))
    import joystick_quadruped as joystick  # noqa: PLC0415, a script

    steps: dict[str, Step] = {}
    for dtype in ("float64", "float32"):
        envs = zwang.gym.VectorEnv(joystick.WALK, num_envs=count, dtype=dtype, threads=threads)
        envs.reset(seed=0)
        steps[dtype] = envs.step
    spec = with_settings(mujoco.MjSpec.from_file(str(EXAMPLES / "models/quadruped.xml")))
    q, v = np.array(envs.worlds.q, float), np.array(envs.worlds.v, float)
    return steps | {"mjbatch": in_mjbatch(spec, q, v, threads)}, joystick.STAND[7:]


def main() -> None:
    """Print a row for each program."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worlds", type=int, default=1024)
    parser.add_argument("--repeats", type=int, default=40)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--go1", type=Path)
    given = parser.parse_args()
    size = given.worlds, given.threads
    steps, rest = go1_steps(given.go1, *size) if given.go1 else example_steps(*size)
    rng, times = np.random.default_rng(1), {name: [] for name in steps}
    for _ in range(given.repeats):
        control = rest + 0.3 * rng.normal(size=(given.worlds, 12))
        for name, step in steps.items():
            start = time.process_time()
            step(control)
            times[name].append(time.process_time() - start)
    medians = {name: float(np.median(x[5:])) for name, x in times.items()}
    for name, seconds in medians.items():
        print(
            f"| {name} | {given.worlds / seconds:,.0f} | {1e3 * seconds:.2f} "
            f"| {medians['mjbatch'] / seconds:.1f} |"
        )


if __name__ == "__main__":
    main()
