"""Simulation without contact, compared with MuJoCo's batched stepping (mujoco.batch) in one run.

    python benchmarks/simulation.py [--worlds 4096] [--steps 200] [--repetitions 7]

Needs `pip install '.[test]'`. Both programs use the same initial states, controls, integrator and step size,
on all cores, and return the final state. Each repetition measures both once. The script prints the medians,
the median of the ratios, and the difference of the final states.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from xml.sax.saxutils import quoteattr

import mujoco
import numpy as np
import pinocchio as pin
from mujoco.batch import Batch

import zwang as zw
from zwang.algebra.rotations import to_quaternion
from zwang.mechanism.samples import double_pendulum

STEP = 0.002
INTEGRATORS = {"euler": "Euler", "rk4": "RK4"}


def panda() -> zw.Mechanism:
    """Panda with its gripper, nine joints, without limits, couplings and damping."""
    for folder in Path(pin.__file__).parents:
        for share in (folder / "share", folder / "cmeel.prefix" / "share"):
            file = share / "example-robot-data" / "robots" / "panda_description" / "urdf" / "panda.urdf"
            if file.exists():
                return free_of_constraints(zw.load(file, strict=False))
    raise SystemExit("the package example-robot-data is missing: pip install '.[test]'")


def free_of_constraints(mechanism: zw.Mechanism) -> zw.Mechanism:
    """The mechanism reduced to bodies and joints, which both programs model identically."""
    options = zw.Options(timestep=STEP, contact=False, disabled=("constraint",))
    return mechanism.replace(forces=(), constraints=(), options=options)


def mjcf(mechanism: zw.Mechanism, integrator: str, *, constrained: bool = False, damping: float = 0.0) -> str:
    """The mechanism's bodies and joints with one coordinate as MJCF; MuJoCo requires a non-zero inertia of
    every body.

    constrained: with the joints' limits. damping: of all joints [N m s/rad or N s/m].
    """
    children: dict[str, list[zw.Body]] = {}
    for body in mechanism.bodies:
        children.setdefault(body.parent, []).append(body)

    def numbers(values) -> str:
        return quoteattr(" ".join(repr(float(x)) for x in np.ravel(values)))

    def element(body: zw.Body) -> str:
        rotation = to_quaternion(np.array(body.orientation, dtype=float))
        text = f"<body name={quoteattr(body.name)} pos={numbers(body.position)} quat={numbers(rotation)}>"
        for joint in body.joints:
            kind = {"revolute": "hinge", "prismatic": "slide"}[joint.kind]
            text += f"<joint name={quoteattr(joint.name)} type='{kind}'"
            text += f" axis={numbers(joint.axis)} pos={numbers(joint.position)}"
            text += f" armature='{float(joint.armature)!r}' ref='{float(joint.reference)!r}'"
            if constrained and joint.limits is not None:
                text += f" limited='true' range={numbers(joint.limits)}"
            text += f" damping='{damping!r}'/>"
        if body.mass:
            I = np.array(body.inertia, dtype=float)
            full = I[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]
            if not I.any():
                full = [1e-12, 1e-12, 1e-12, 0, 0, 0]
            text += (
                f"<inertial pos={numbers(body.com)} mass='{float(body.mass)!r}' fullinertia={numbers(full)}/>"
            )
        return text + "".join(map(element, children.get(body.name, ()))) + "</body>"

    head = f"<option timestep='{STEP}' integrator='{INTEGRATORS[integrator]}'"
    head += f" gravity={numbers(mechanism.gravity)}>"
    head += f"<flag constraint='{'enable' if constrained else 'disable'}'/></option>"
    head += "<compiler angle='radian' balanceinertia='true'/>"
    return f"<mujoco>{head}<worldbody>{''.join(map(element, children['world']))}</worldbody></mujoco>"


class Comparison:
    """One mechanism in both programs, with the same random initial states."""

    def __init__(self, mechanism: zw.Mechanism, integrator: str, worlds: int, steps: int):
        self.mechanism, self.integrator, self.worlds, self.steps = mechanism, integrator, worlds, steps
        rng = np.random.default_rng(0)
        self.q, self.v = 0.5 * rng.normal(size=(2, worlds, mechanism.nv))
        self.fast = zw.compile(mechanism)
        self.model = mujoco.MjModel.from_xml_string(mjcf(mechanism, integrator))
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        self.batch = Batch(self.model, worlds, nthread=cores)
        self.qpos, self.qvel = self.batch.bind("qpos"), self.batch.bind("qvel")

    def ours(self) -> np.ndarray:
        """The final q of zwang's rollout."""
        tau = np.zeros(self.mechanism.nv)
        end = self.fast.rollout(
            self.q, self.v, tau, steps=self.steps, every=self.steps, step=STEP, integrator=self.integrator
        )
        return end.q[:, -1]

    def theirs(self) -> np.ndarray:
        """The final q of MuJoCo's batched stepping with one thread per core."""
        self.qpos[:], self.qvel[:] = self.q, self.v
        self.batch.step(nstep=self.steps)
        return self.qpos.copy()

    def with_recording(self) -> np.ndarray:
        """The final q of `zw.simulate`, which records ten samples with energies."""
        run = zw.simulate(
            self.mechanism,
            self.q,
            self.v,
            duration=self.steps * STEP,
            step=STEP,
            integrator=self.integrator,
            record=max(1, self.steps // 10),
            progress=False,
        )
        return run.q.values[:, -1]


def seconds(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--worlds", type=int, default=4096)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--repetitions", type=int, default=7)
    options = parser.parse_args()
    print(
        f"{options.worlds} worlds, {options.steps} steps, MuJoCo {mujoco.__version__}, "
        f"{len(os.sched_getaffinity(0))} cores\n"
    )
    print(
        "| mechanism, integrator | zwang, steps/s | with recording | MuJoCo, steps/s | ratio "
        "| difference of the states |"
    )
    print("| --- | --- | --- | --- | --- | --- |")
    for name, mechanism in {
        "double pendulum": free_of_constraints(double_pendulum()),
        "Panda": panda(),
    }.items():
        for integrator in INTEGRATORS:
            comparison = Comparison(mechanism, integrator, options.worlds, options.steps)
            difference = np.abs(comparison.ours() - comparison.theirs()).max()
            comparison.with_recording()
            times = [
                [seconds(w) for w in (comparison.ours, comparison.with_recording, comparison.theirs)]
                for _ in range(options.repetitions)
            ]
            ours, recorded, theirs = (statistics.median(column) for column in zip(*times, strict=True))
            ratio = statistics.median(row[2] / row[0] for row in times)
            total = options.worlds * options.steps
            print(
                f"| {name}, {integrator} | {total / ours:.3g} | {total / recorded:.3g} "
                f"| {total / theirs:.3g} | {ratio:.0f} | {difference:.1e} |"
            )


if __name__ == "__main__":
    main()
