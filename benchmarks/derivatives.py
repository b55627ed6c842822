"""Exact derivatives of a step with contacts, against MuJoCo's finite differences.

    python benchmarks/derivatives.py [name or model.xml ...] [--worlds 256] [--repetitions 7]
    python benchmarks/derivatives.py [name or model.xml ...] --rollout 1000 [--worlds 64]

Needs `pip install '.[test]'`. Both give A and B of the same states, on one thread: zwang by
`step_derivatives`, MuJoCo by `mjd_transitionFD`, one-sided with eps = 1e-6, both for semi-implicit Euler.
Each repetition measures zwang and MuJoCo one after the other; the script prints medians, and the median of
the ratios. "Error" is the largest
difference to Richardson's extrapolation of zwang's central differences, relative to the largest derivative,
as the median over the worlds: that of zwang, and that of MuJoCo's one-sided differences.

With --rollout the script measures gradients of rollouts of so many steps by all controls and the start, with
and without checkpoints, and the rollouts themselves. "Memory" is the largest with checkpoints, but for the
results, in states of what a step carries, over the square root of the number of steps: configuration,
velocities, and row statuses of the warm start. "Error" is the largest difference to the chained derivatives A
and B of all steps, relative to the largest element, in the worst of a few worlds.
"""

from __future__ import annotations

import argparse
import statistics
import time
import tracemalloc

import mujoco
import numpy as np

import zwang as zw
from benchmarks.contact import NAMES, text_of
from zwang.compiler.runtime.rollout_kernel import state_sizes
from zwang.io.mjcf.read.read_mjcf import read_mjcf

COMPARED = 16  # number of worlds whose derivatives are compared
EPSILON = 1e-6
EULER = "euler"


def states(
    m: zw.Mechanism, worlds: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Random states about the home configuration, and controls."""
    home = np.array(m.home or m.neutral, float)
    q = np.stack([zw.integrate_configuration(m, home, d, 1.0) for d in rng.normal(size=(worlds, m.nv)) * 0.1])
    return q, rng.normal(size=(worlds, m.nv)), rng.uniform(-0.5, 0.5, (worlds, len(m.inputs)))


def mujoco_derivatives(
    model: mujoco.MjModel, q: np.ndarray, v: np.ndarray, u: np.ndarray
) -> list[np.ndarray]:
    """[A, B] of every world, by one-sided differences."""
    data, n = mujoco.MjData(model), 2 * model.nv + model.na
    found = []
    for k in range(len(q)):
        A, B = np.zeros((n, n)), np.zeros((n, model.nu))
        mujoco.mj_resetData(model, data)
        data.qpos[:], data.qvel[:], data.ctrl[:] = q[k], v[k], u[k]
        mujoco.mjd_transitionFD(model, data, EPSILON, 0, A, B, None, None)
        found.append(np.hstack([A, B]))
    return found


def difference_quotients(fast: zw.api.compiled.CompiledMechanism, q, v, u) -> np.ndarray:
    """[A, B] of one world by Richardson's extrapolation of central differences."""
    nv, n = len(v), 2 * len(v) + len(u)

    def central(eps: float) -> np.ndarray:
        D = np.concatenate([np.eye(n), -np.eye(n)]) * eps
        dq, dv, du = np.split(D, [nv, 2 * nv], axis=1)
        after = fast.step(fast.integrate_configuration(q, dq, 1.0), v + dv, u + du, integrator=EULER)
        dq = fast.difference_configuration(after[0][:n], after[0][n:])
        return (np.concatenate([dq, after[1][:n] - after[1][n:]], axis=1) / (2 * eps)).T

    return (4 * central(1e-5) - central(2e-5)) / 3


def measure(name: str, worlds: int, repetitions: int) -> None:
    text = text_of(name)
    m, model = read_mjcf(f"{name}.xml", text=text), mujoco.MjModel.from_xml_string(text)
    model.opt.integrator = mujoco.mjtIntegrator.mjINT_EULER
    fast, rng = zw.compile(m, threads=1), np.random.default_rng(0)
    q, v, u = states(m, worlds, rng)
    start = time.perf_counter()
    found = fast.step_derivatives(q, v, u, integrator=EULER)
    compiling = time.perf_counter() - start
    ours, theirs = [], []
    few = max(1, worlds // 16)
    for _ in range(repetitions):
        start = time.perf_counter()
        fast.step_derivatives(q, v, u, integrator=EULER)
        ours.append((time.perf_counter() - start) / worlds)
        start = time.perf_counter()
        differences = mujoco_derivatives(model, q[:few], v[:few], u[:few])
        theirs.append((time.perf_counter() - start) / few)
    ratio = statistics.median(b / a for a, b in zip(ours, theirs, strict=True))
    errors = []
    for k in range(min(COMPARED, few)):
        exact = difference_quotients(fast, q[k], v[k], u[k])
        AB = np.hstack([found.A[k], found.B[k]])
        scale = np.abs(exact).max()
        errors.append((np.abs(AB - exact).max() / scale, np.abs(differences[k] - exact).max() / scale))
    error, other = np.median(errors, axis=0)
    print(
        f"| {name} | {found.A.shape[-1]} x {found.A.shape[-1] + found.B.shape[-1]} "
        f"| {1e6 * statistics.median(ours):.1f} | {1e6 * statistics.median(theirs):.1f} | {ratio:.1f} "
        f"| {error:.0e}, {other:.0e} | {compiling:.1f} |",
        flush=True,
    )


def measure_rollout(name: str, worlds: int, repetitions: int, steps: int) -> None:
    """Print the time of a rollout and that of its gradient, one after the other in each repetition."""
    m = read_mjcf(f"{name}.xml", text=text_of(name))
    fast, rng = zw.compile(m, threads=1), np.random.default_rng(0)
    q, v, u = states(m, worlds, rng)
    controls = np.repeat(u[:, None], steps, axis=1)
    cotangents = rng.normal(size=(worlds, steps, 2 * m.nv))
    found = fast.rollout_gradient(cotangents, q, v, controls, integrator=EULER)
    before = [np.concatenate([x[:, None], y[:, :-1]], axis=1) for x, y in zip((q, v), found, strict=False)]
    expected = np.zeros((COMPARED, 2 * m.nv))
    for k in reversed(range(steps)):
        one = fast.step_derivatives(*(x[:COMPARED, k] for x in before), u[:COMPARED], integrator=EULER)
        expected = np.einsum("wij,wi->wj", one.A, expected + cotangents[:COMPARED, k])
    error = np.abs(found.start[:COMPARED] - expected).max(axis=1) / np.abs(expected).max(axis=1)
    times: list[list[float]] = []
    for _ in range(repetitions):
        at = [time.process_time()]
        fast.rollout(q, v, controls, steps=steps, integrator=EULER)
        at.append(time.process_time())
        for checkpoints in (False, True):
            fast.rollout_gradient(cotangents, q, v, controls, integrator=EULER, checkpoints=checkpoints)
            at.append(time.process_time())
        times.append(list(np.diff(at) / worlds / steps))
    forward = 1e6 * statistics.median(row[0] for row in times)
    ratios = [statistics.median(row[k] / row[0] for row in times) for k in (1, 2)]
    memory = memory_of_gradient(fast, cotangents, q, v, controls)
    print(
        f"| {name} | {forward:.2f} | {' | '.join(f'{r:.1f}' for r in ratios)} | {memory:.1f} "
        f"| {np.nanmax(error):.0e} |",
        flush=True,
    )


def memory_of_gradient(fast: zw.api.compiled.CompiledMechanism, *arguments) -> float:
    """The largest memory of a gradient with checkpoints beyond that of its results, in states a world, over
    the square root of the number of steps.
    """
    tracemalloc.start()
    found = fast.rollout_gradient(*arguments, integrator=EULER, checkpoints=True)
    largest = tracemalloc.get_traced_memory()[1] - sum(x.nbytes for x in found)
    tracemalloc.stop()
    worlds, steps, _ = found.control.shape
    program = fast.compiled_function(("rollout_solution", *fast.step_key(integrator=EULER)[1:])).program
    state = sum(state_sizes(program).values())
    return largest / (found.control.itemsize * worlds * state * steps**0.5)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", default=[name for name in NAMES if name != "panda"])
    parser.add_argument("--worlds", type=int, default=256)
    parser.add_argument("--repetitions", type=int, default=7)
    parser.add_argument("--rollout", type=int, default=0, help="number of steps")
    given = parser.parse_args()
    if given.rollout:
        print("| model | rollout, us a step | gradient / rollout | with checkpoints | memory | error |")
        print("| --- | --- | --- | --- | --- | --- |")
        for name in given.names:
            measure_rollout(name, given.worlds, given.repetitions, given.rollout)
        return
    print("| model | [A B] | zwang, us a world | MuJoCo, us | ratio | error: zwang, MuJoCo | compile, s |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for name in given.names:
        measure(name, given.worlds, given.repetitions)


if __name__ == "__main__":
    main()
