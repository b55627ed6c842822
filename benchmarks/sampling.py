"""Swing-up of a pole on a cart by predictive sampling, in zwang and in mjbatch, if it is installed.

    python -m benchmarks.sampling [--plans 150] [--repeats 3] [--threads 1]

The problem is that of mjbatch's example `cartpole_mpc`: the same model, cost, horizon, number of samples and
rule for the noise, and the same random numbers for both programs, which run one after the other in each
repetition. mjbatch 0.1.4 requires MuJoCo 3.14.0. Source of the method: Howell et al., "Predictive sampling"
(2022), arXiv:2212.00541.
"""

from __future__ import annotations

import argparse
import importlib.util
import time
from collections.abc import Callable
from typing import Any

import mujoco
import numpy as np

import zwang as zw
from zwang.io.mjcf.read.read_mjcf import read_mjcf
from zwang.scalar import cos

MODEL = """
<mujoco model="cart-pole">
  <option timestep="0.01"><flag contact="disable"/></option>
  <worldbody>
    <body name="cart" pos="0 0 .75">
      <joint name="slide" type="slide" axis="1 0 0" range="-1 1" solreflimit=".08 1" damping=".05"/>
      <geom type="box" size=".12 .1 .06" mass="1"/>
      <body name="pole">
        <joint name="hinge" axis="0 1 0" damping=".01"/>
        <geom type="capsule" fromto="0 0 0 0 0 .6" size=".025" mass=".3"/>
      </body>
    </body>
  </worldbody>
  <actuator><motor name="push" joint="slide" gear="15" ctrlrange="-1 1"/></actuator>
</mujoco>
"""
SAMPLES, KNOTS, SUBSTEPS, NOISE = 1024, 25, 4, 0.3
HANGING = np.array([0.0, np.pi])

Planner = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]
"""The costs (samples,) of controls (samples, knots) from a state q (2,), v (2,)."""
Step = Callable[[np.ndarray, np.ndarray, float], tuple[np.ndarray, np.ndarray]]


def running_cost(x: Any, angle: Any, x_dot: Any, angle_dot: Any, u: Any, cosine: Any) -> Any:
    """The cost of a state and a control."""
    return 1 - cosine(angle) + 0.1 * x**2 + 0.01 * (x_dot**2 + angle_dot**2) + 0.2 * u**2


def swing_up(costs: Planner, step: Step, plans: int) -> np.ndarray:
    """The configuration after this many plans, each of which is executed for one knot."""
    rng, plan, scale = np.random.default_rng(0), np.zeros(KNOTS), 1.0
    q, v = HANGING, np.zeros(2)
    for _ in range(plans):
        tried = np.clip(plan + scale * NOISE * rng.normal(size=(SAMPLES, KNOTS)), -1, 1)
        tried[0] = plan
        total = costs(q, v, tried)
        best = tried[total.argmin()]
        scale = np.clip(total.min() / KNOTS / 0.2, 0.1, 1.0)
        q, v = step(q, v, best[0])
        plan = np.append(best[1:], best[-1])
    return q


def in_zwang(threads: int) -> tuple[Planner, Step]:
    """The costs and a step by zwang: the cost is part of the compiled step."""
    m = read_mjcf("cart_pole.xml", text=MODEL)

    def observe(s: zw.WorldView) -> dict[str, Any]:
        state = s.q("slide"), s.q("hinge"), s.v("slide"), s.v("hinge")
        return {"cost": running_cost(*state, s.control("push"), cos)}

    samples, system = zw.Worlds(m, SAMPLES, observe=observe, threads=threads), zw.Worlds(m)

    def costs(q: np.ndarray, v: np.ndarray, controls: np.ndarray) -> np.ndarray:
        samples.reset(q=q, v=v)
        total = np.zeros(SAMPLES)
        for k in range(KNOTS):
            samples.step(controls[:, k : k + 1], SUBSTEPS)
            total += samples.observation["cost"]
        return total

    def step(q: np.ndarray, v: np.ndarray, control: float) -> tuple[np.ndarray, np.ndarray]:
        system.set(q=q, v=v)
        system.step([control], SUBSTEPS)
        return system.q[0].copy(), system.v[0].copy()

    return costs, step


def in_mjbatch(threads: int) -> tuple[Planner, Step]:
    """The costs by mjbatch, and a step by MuJoCo."""
    model = mujoco.MjModel.from_xml_string(MODEL)
    batch = importlib.import_module("mjbatch").Batch(model, SAMPLES, num_threads=threads)
    position, velocity, control_of, now = (batch.bind(x) for x in ("qpos", "qvel", "ctrl", "time"))
    data = mujoco.MjData(model)

    def costs(q: np.ndarray, v: np.ndarray, controls: np.ndarray) -> np.ndarray:
        position[:], velocity[:], now[:] = q, v, 0
        total = np.zeros(SAMPLES)
        for k in range(KNOTS):
            control_of[:, 0] = controls[:, k]
            batch.step(nstep=SUBSTEPS)
            (x, angle), (x_dot, angle_dot) = position.T, velocity.T
            total += running_cost(x, angle, x_dot, angle_dot, controls[:, k], np.cos)
        return total

    def step(q: np.ndarray, v: np.ndarray, control: float) -> tuple[np.ndarray, np.ndarray]:
        data.qpos[:], data.qvel[:], data.ctrl[0] = q, v, control
        mujoco.mj_step(model, data, SUBSTEPS)
        return data.qpos.copy(), data.qvel.copy()

    return costs, step


def main() -> None:
    """Print the time of the swing-up by each program."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--plans", type=int, default=150)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    programs = {"zwang": in_zwang(given.threads)}
    if importlib.util.find_spec("mjbatch") is not None:
        programs["mjbatch"] = in_mjbatch(given.threads)
    for name, program in programs.items():
        start = time.perf_counter()
        swing_up(*program, 1)
        print(f"{name}: the first plan, with compilation, takes {time.perf_counter() - start:.2f} s")
    best = dict.fromkeys(programs, np.inf)
    for _ in range(given.repeats):
        for name, program in programs.items():
            start = time.perf_counter()
            q = swing_up(*program, given.plans)
            best[name] = min(best[name], time.perf_counter() - start)
            tilt = abs((q[1] + np.pi) % (2 * np.pi) - np.pi)
            print(f"{name}: tilt {tilt:.3f} rad, cart at {q[0]:+.3f} m", flush=True)
    for name, seconds in best.items():
        print(f"{name}: {seconds:.2f} s, {1e3 * seconds / given.plans:.2f} ms a plan")
    if len(best) > 1:
        print(f"{best['mjbatch'] / best['zwang']:.1f} times")


if __name__ == "__main__":
    main()
