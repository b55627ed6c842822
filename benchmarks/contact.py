"""Steps per second of models with contact, limits and joints' armature: zwang's compiled rollout against MuJoCo's, one run.

Both start from the same random states above the ground, take the same controls, time step, semi-implicit Euler and cone, with
all threads asked for. MuJoCo runs with its own tolerance (1e-8), zwang with 1e-11.

    python benchmarks/contact.py model.xml ... [--worlds 1024] [--steps 200] [--threads 2]
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from pathlib import Path

import mujoco
import mujoco.rollout
import numpy as np

import zwang as zw

ROUNDS = 3


def starts(model: mujoco.MjModel, worlds: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """q, v and control of every world."""
    rng = np.random.default_rng(0)
    q = np.repeat(model.qpos0[None], worlds, axis=0)
    for row in q:
        mujoco.mj_integratePos(model, row, 0.1 * rng.normal(size=model.nv), 1.0)
    low, high = model.actuator_ctrlrange.T
    return q, 0.1 * rng.normal(size=(worlds, model.nv)), rng.uniform(low, high, size=(worlds, model.nu))


def best(run: Callable[[], object]) -> float:
    """The shortest time of a few runs [s], after one that is not counted."""
    run()
    times = []
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        run()
        times.append(time.perf_counter() - begin)
    return min(times)


def of_mujoco(model: mujoco.MjModel, worlds: int, steps: int, threads: int) -> float:
    """Steps per second of mujoco.rollout."""
    q, v, u = starts(model, worlds)
    datas = [mujoco.MjData(model) for _ in range(threads)]
    state = np.zeros((worlds, mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_FULLPHYSICS)))
    state[:, 1 : 1 + model.nq], state[:, 1 + model.nq : 1 + model.nq + model.nv] = q, v
    control = np.repeat(u[:, None], steps, axis=1)
    with mujoco.rollout.Rollout(nthread=threads) as roller:
        return (
            worlds
            * steps
            / best(lambda: roller.rollout([model] * worlds, datas, state, control, nstep=steps))
        )


def of_zwang(mechanism: zw.Mechanism, model: mujoco.MjModel, worlds: int, steps: int, threads: int) -> float:
    """Steps per second of the compiled rollout."""
    q, v, u = starts(model, worlds)
    fast = zw.compile(mechanism, threads=threads)
    run = best(lambda: fast.rollout(q, v, u, steps=steps, every=steps, integrator="euler"))
    return worlds * steps / run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--worlds", type=int, default=1024)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    given = parser.parse_args()
    print(
        f"{'model':20} {'mujoco':>12} {'zwang':>12} {'ratio':>6}   steps/s, {given.threads} threads, {given.worlds} worlds"
    )
    for path in given.models:
        model = mujoco.MjModel.from_xml_path(path)
        model.opt.integrator = mujoco.mjtIntegrator.mjINT_EULER
        theirs = of_mujoco(model, given.worlds, given.steps, given.threads)
        ours = of_zwang(zw.load(path, strict=False), model, given.worlds, given.steps, given.threads)
        print(f"{Path(path).stem:20} {theirs:12.0f} {ours:12.0f} {ours / theirs:6.1f}")


if __name__ == "__main__":
    main()
