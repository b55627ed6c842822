"""What a call costs: steps of one world and of many, inside a rollout and call by call; and `mj_step`.

    python -m benchmarks.calls [--steps 100] [--repeats 50] [--worlds 1024] [name=file.xml ...]

All go through the same states, those of a fall with constant random controls. The measurements are
interleaved, and the figure is that of the best repeat. The models are the half-cheetah and the hopper of
Gymnasium, and files of MJCF.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import gymnasium
import mujoco
import numpy as np

import zwang as zw

ASSETS = Path(gymnasium.__file__).parent / "envs/mujoco/assets"
FALL = 100  # steps before the measurement


def best_times(candidates: dict[str, Callable[[], None]], repeats: int) -> dict[str, float]:
    """The shortest time of each candidate [s], interleaved."""
    best = dict.fromkeys(candidates, np.inf)
    for _ in range(repeats):
        for name, function in candidates.items():
            start = time.perf_counter()
            function()
            best[name] = min(best[name], time.perf_counter() - start)
    return best


class Fall:
    """Worlds that have fallen for some steps, and can be set back to this instant.

    `u` are their controls (worlds, inputs).
    """

    def __init__(self, mechanism: zw.Mechanism, count: int, threads: int):
        rng = np.random.default_rng(0)
        self.worlds = zw.Worlds(mechanism, count, integrator="euler", threads=threads)
        self.worlds.reset(v=0.1 * rng.normal(size=(count, mechanism.nv)))
        self.u = 0.2 * rng.normal(size=(count, len(mechanism.inputs)))
        self.worlds.step(self.u, substeps=FALL)
        w = self.worlds
        self.start = w.q.copy(), w.v.copy(), w.time

    def set_back(self) -> None:
        q, v, t = self.start
        self.worlds.reset()
        self.worlds.set(q=q, v=v, time=t, control=self.u)


def one_world(mechanism: zw.Mechanism, file: Path, steps: int, repeats: int) -> dict[str, float]:
    """Microseconds of a step of one world, by the way in which it is called."""
    fall, fast = Fall(mechanism, 1, 1), zw.compile(mechanism, threads=1)
    worlds, u = fall.worlds, fall.u[0]
    q, v = fall.start[0][0], fall.start[1][0]
    run = fast.rollout(q, v, u, steps=steps, integrator="euler")
    states = [(q, v), *zip(run.q[:-1], run.v[:-1], strict=True)]
    model = mujoco.MjModel.from_xml_path(str(file))
    model.opt.integrator = mujoco.mjtIntegrator.mjINT_EULER
    data = mujoco.MjData(model)

    def inside() -> None:
        worlds.step(substeps=steps)

    def by_worlds() -> None:
        for _ in range(steps):
            worlds.step(u)

    def by_step() -> None:
        for x in states:
            fast.step(*x, u, integrator="euler")

    def by_rollout() -> None:
        for x in states:
            fast.rollout(*x, u, steps=1, integrator="euler")

    def by_mujoco() -> None:
        for _ in range(steps):
            mujoco.mj_step(model, data)

    def set_back() -> None:
        fall.set_back()
        mujoco.mj_resetData(model, data)
        data.qpos[:], data.qvel[:], data.ctrl[:] = q, v, u

    ways = {"inside": inside, "Worlds.step": by_worlds, "fast.step": by_step, "fast.rollout": by_rollout}
    best: dict[str, float] = {}
    for _ in range(repeats):
        for name, way in (ways | {"mj_step": by_mujoco}).items():
            set_back()
            seconds = best_times({name: way}, 1)[name]
            best[name] = min(best.get(name, np.inf), 1e6 * seconds / steps)
    return best


def many_worlds(
    mechanism: zw.Mechanism, count: int, threads: int, steps: int, repeats: int
) -> tuple[float, float]:
    """Microseconds of a step of a world, inside a rollout and step by step with new controls."""
    fall = Fall(mechanism, count, threads)
    best = [np.inf, np.inf]
    for _ in range(repeats):
        for k in range(2):
            fall.set_back()
            start = time.perf_counter()
            if k == 0:
                fall.worlds.step(substeps=steps)
            else:
                for _ in range(steps):
                    fall.worlds.step(fall.u)
            best[k] = min(best[k], time.perf_counter() - start)
    inside, by_steps = (1e6 * x / steps / count for x in best)
    return inside, by_steps


def main() -> None:
    """Print a table of the times."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", help="name=file.xml")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=50)
    parser.add_argument("--worlds", type=int, default=1024)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    files = {"half-cheetah": ASSETS / "half_cheetah.xml", "hopper": ASSETS / "hopper.xml"}
    files |= {name: Path(file) for name, file in (x.split("=", 1) for x in given.models)}
    for name, file in files.items():
        mechanism = zw.load(file)
        best = one_world(mechanism, file, given.steps, given.repeats)
        print(f"{name}, one world, us:", "  ".join(f"{way} {x:.2f}" for way, x in best.items()), flush=True)
        for threads in (1, 2):
            inside, by_steps = many_worlds(mechanism, given.worlds, threads, given.steps, given.repeats)
            print(
                f"{name}, {given.worlds} worlds, {threads} thread(s), us a world: inside {inside:.4f}  "
                f"step by step {by_steps:.4f}, {by_steps / inside:.2f} times",
                flush=True,
            )


if __name__ == "__main__":
    main()
