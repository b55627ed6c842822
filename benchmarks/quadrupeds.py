"""Quadrupeds that learn, in zwang and in mjbatch: a joystick, a backflip, and the robot of mjbatch's example.

    python -m benchmarks.quadrupeds joystick|flip|FILE [--worlds 1024] [--repeats 40] [--threads 1]

joystick: a step of `examples/joystick_quadruped.py`, 0.02 s, in zwang with observation, reward and resets.
flip: the simulation of a generation of `examples/backflip.py`, 1.8 s, in zwang with the cost. FILE: the
Go1 of MuJoCo Menagerie with the changes of mjbatch's example `go1_joystick` and without pictures; a step of
0.02 s in both programs. mjbatch simulates the same model with the settings of its example (implicitfast, at
most ten iterations of projected Gauss-Seidel); observations, rewards and costs, which it leaves to NumPy, are
left out. The programs take turns in one process, whose processor time is shown. mjbatch 0.1.4 requires MuJoCo
3.14.0.
"""

from __future__ import annotations

import argparse
import importlib
import re
import sys
import time
from collections.abc import Callable
from functools import partial
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
Task = tuple[dict[str, Step], Callable[[np.random.Generator], np.ndarray]]
"""What each program does with controls, or with motions; and these, drawn at random."""


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


def go1_task(file: Path, count: int, threads: int) -> Task:
    """Steps of the simulation of the Go1."""
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
    steps["mjbatch"] = in_mjbatch(spec, q, v, threads)
    return steps, lambda rng: STAND + 0.3 * rng.normal(size=(count, 12))


def joystick_task(count: int, threads: int) -> Task:
    """Steps of examples/joystick_quadruped.py, and of its simulation by mjbatch."""
    joystick = importlib.import_module("joystick_quadruped")
    steps: dict[str, Step] = {}
    for dtype in ("float64", "float32"):
        envs = zwang.gym.VectorEnv(joystick.WALK, num_envs=count, dtype=dtype, threads=threads)
        envs.reset(seed=0)
        steps[dtype] = envs.step
    spec = with_settings(mujoco.MjSpec.from_file(str(EXAMPLES / "models/quadruped.xml")))
    q, v = np.array(envs.worlds.q, float), np.array(envs.worlds.v, float)
    steps["mjbatch"] = in_mjbatch(spec, q, v, threads)
    return steps, lambda rng: joystick.STAND[7:] + 0.3 * rng.normal(size=(count, 12))


def flip_task(count: int, threads: int) -> Task:
    """Generations of examples/backflip.py, and their simulation by mjbatch."""
    backflip = importlib.import_module("backflip")
    mechanism, start = backflip.quadruped(), backflip.quadruped().keyframes[0].q
    steps: dict[str, Step] = {}
    for dtype in ("float64", "float32"):
        worlds = zw.Worlds(
            mechanism, count, step=STEP, dtype=dtype, threads=threads, observe=backflip.observe
        )
        steps[dtype] = lambda motions, worlds=worlds: backflip.costs(worlds, motions)
    spec = with_settings(mujoco.MjSpec.from_file(str(EXAMPLES / "models/quadruped.xml")))
    for actuator in spec.actuators:
        actuator.forcelimited = mujoco.mjtLimited.mjLIMITED_TRUE
        actuator.forcerange = [-backflip.TORQUE, backflip.TORQUE]
    batch = Batch(spec.compile(), count, num_threads=threads)
    qpos, qvel, ctrl = (batch.bind(name) for name in ("qpos", "qvel", "ctrl"))

    def by_mjbatch(motions: np.ndarray) -> None:
        qpos[:], qvel[:] = start, 0
        for targets in backflip.servo_targets(motions):
            ctrl[:] = targets
            batch.step(nstep=SUBSTEPS)

    stand = np.tile(backflip.STAND, (backflip.KNOTS, 1))

    def draw(rng: np.random.Generator) -> np.ndarray:
        return stand + 0.5 * rng.normal(size=(count, *stand.shape))

    return steps | {"mjbatch": by_mjbatch}, draw


def main() -> None:
    """Print a row for each program."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("task")
    parser.add_argument("--worlds", type=int, default=1024)
    parser.add_argument("--repeats", type=int, default=40)
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    sys.path.insert(0, str(EXAMPLES))
    tasks = {"joystick": joystick_task, "flip": flip_task}
    steps, draw = tasks.get(given.task, partial(go1_task, Path(given.task)))(given.worlds, given.threads)
    rng, times = np.random.default_rng(1), {name: [] for name in steps}
    for _ in range(given.repeats):
        drawn = draw(rng)
        for name, step in steps.items():
            start = time.process_time()
            step(drawn)
            times[name].append(time.process_time() - start)
    medians = {name: float(np.median(x[given.repeats // 8 :])) for name, x in times.items()}
    for name, seconds in medians.items():
        print(f"| {name} | {1e3 * seconds:.2f} | {medians['mjbatch'] / seconds:.1f} |")


if __name__ == "__main__":
    main()
