"""Trajectory optimisation by iLQR: iterations a second on a humanoid with contact; an arm against Crocoddyl.

    PYTHONPATH=. python benchmarks/trajectory_optimisation.py [--humanoid model.xml] [--knots 50] [--repeat 7]

Humanoid (by default examples/models/humanoid.xml): from a pushed start it is to keep its posture; steps of
10 ms, semi-implicit Euler, one thread. An iteration is one that lowers the cost; the time of those that do
not is included. Its parts are measured alone at the first guess.

Arm: Panda without limits and damping goes from rest to a configuration in 0.5 s; 50 steps of semi-implicit
Euler in both programs, the same quadratic cost, the same start without torques. Crocoddyl (PyPI) solves
it by SolverDDP and SolverFDDP on one thread, with the derivatives of Pinocchio. Its armature is set to zero
explicitly: where it is not set, Crocoddyl 3.2.1 on Pinocchio 4.1.0 computes accelerations without gravity.
Times are CPU times, the programs by turns, medians.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin

import zwang as zw
from benchmarks.equations import panda_file
from benchmarks.simulation import panda
from zwang.control import Quadratic, ilqr

crocoddyl: Any
try:
    import crocoddyl
except ImportError:  # the comparison is then omitted
    crocoddyl = None

MODEL = Path(__file__).parents[1] / "examples" / "models" / "humanoid.xml"
STEP = 0.01


def seconds_of_cpu(call: Callable[[], Any]) -> tuple[float, Any]:
    """The CPU time of a call, and its result."""
    start = time.process_time()
    result = call()
    return time.process_time() - start, result


def humanoid(path: Path, knots: int, repeat: int) -> None:
    """Iterations a second from random pushes, and what the parts of an iteration take."""
    m = zw.load(path)
    fast, nv, nu = zw.compile(m, threads=1), m.nv, len(m.inputs)
    q0, rng = np.array(m.home or m.neutral, dtype=float), np.random.default_rng(0)
    of_q, of_v = np.r_[np.full(6, 20.0), np.full(nv - 6, 1.0)], np.r_[np.full(6, 1.0), np.full(nv - 6, 0.01)]
    W = np.concatenate([of_q, of_v])
    cost = Quadratic(q0, W, np.full(nu, 0.02), 10 * W)
    options: dict[str, Any] = {"step": STEP, "integrator": "euler"}
    u = np.zeros((knots, nu))

    def solve(v0: np.ndarray, iterations: int) -> Any:
        bounds = (-1.0, 1.0)
        return ilqr(
            fast,
            q0,
            v0,
            u,
            cost,
            iterations=iterations,
            tolerance=0.0,
            bounds=bounds,
            feedback=False,
            **options,
        )

    solve(np.zeros(nv), 1)  # compiles
    rates, parts = [], []
    for _ in range(repeat):
        v0 = np.r_[rng.uniform(-0.5, 0.5, 2), np.zeros(nv - 2)]
        used, found = seconds_of_cpu(lambda v0=v0: solve(v0, 30))
        rates.append(found.iterations / used)
        q, v, z = (np.repeat(x[:1], 8, axis=0) for x in found[:3])
        controls = np.broadcast_to(found.control, (8, *found.control.shape))
        derivatives, _ = seconds_of_cpu(
            lambda x=found: fast.step_derivatives(
                x.q[:-1], x.v[:-1], x.control, activation=x.activation[:-1], **options
            )
        )
        search, _ = seconds_of_cpu(
            lambda x=found, c=controls, s=(q, v, z): fast.feedback_rollout(
                s[0], s[1], c, x.gain, x[:3], activation=s[2], **options
            )
        )
        parts.append((1e3 * derivatives, 1e3 * search, 1e3 * used / found.iterations))
    derivatives, search, whole = np.median(parts, axis=0)
    print(
        "| model | n, nu | knots | iterations/s | ms an iteration | derivatives | rollouts of 8 step sizes |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- |")
    row = (path.stem, f"{2 * nv}, {nu}", knots, f"{np.median(rates):.0f}")
    print("|", *(f"{x} |" for x in (*row, *(f"{ms:.1f}" for ms in (whole, derivatives, search)))), flush=True)


def arm(knots: int, repeat: int) -> None:
    """Panda against Crocoddyl: cost, controls and time."""
    m = panda()
    fast, n = zw.compile(m, threads=1), m.nv
    start = np.array([0.0, -0.5, 0, -2.0, 0, 1.6, 0.8, 0.02, 0.02])
    goal = start + np.array([0.8, 0.6, -0.5, 0.7, 0.4, -0.5, 0.6, 0.01, 0.01])
    W, R, final = (
        np.r_[np.full(n, 1.0), np.full(n, 0.1)],
        np.full(n, 1e-3),
        np.r_[np.full(n, 1e3), np.full(n, 1e2)],
    )
    cost, u = Quadratic(goal, W, R, final), np.zeros((knots, n))

    def ours() -> Any:
        return ilqr(
            fast, start, np.zeros(n), u, cost, step=STEP, integrator="euler", iterations=200, tolerance=1e-9,
            feedback=False,
        )  # fmt: skip

    ours()
    print("| arm | iterations | cost | CPU ms | ms an iteration | largest difference of controls |")
    print("| --- | --- | --- | --- | --- | --- |")
    if crocoddyl is None:
        used, found = seconds_of_cpu(ours)
        print(f"| zwang | {found.iterations} | {found.cost:.9g} | {1e3 * used:.1f} | - | - |")
        return
    problem, solvers = crocoddyl_problem(start, goal, W, R, final, knots), ("SolverDDP", "SolverFDDP")
    times: dict[str, list[float]] = {name: [] for name in ("zwang", *solvers)}
    results: dict[str, Any] = {}
    for _ in range(repeat):
        for name in times:
            if name == "zwang":
                used, found = seconds_of_cpu(ours)
                results[name] = found.iterations, found.cost, found.control
            else:
                solver = getattr(crocoddyl, name)(problem)
                solver.th_stop = 1e-9
                xs = problem.rollout(list(u))
                used, _ = seconds_of_cpu(lambda s=solver, x=xs: s.solve(list(x), list(u), 200, False))
                results[name] = solver.iter, solver.cost, np.array(solver.us.tolist())
            times[name].append(used)
    for name, (iterations, value, control) in results.items():
        ms = 1e3 * float(np.median(times[name]))
        apart = np.abs(control - results["zwang"][2]).max()
        print(f"| {name} | {iterations} | {value:.9g} | {ms:.1f} | {ms / iterations:.2f} | {apart:.1e} |")
    for name in solvers:
        ratio = np.median(np.array(times[name]) / np.array(times["zwang"]))
        print(f"{name} takes {ratio:.2f} times as long as zwang")


def crocoddyl_problem(
    start: np.ndarray, goal: np.ndarray, W: np.ndarray, R: np.ndarray, final: np.ndarray, knots: int
) -> Any:
    """The same problem for Crocoddyl. The cost of a step is multiplied by its size there."""
    model = pin.buildModelFromUrdf(str(panda_file()))
    state = crocoddyl.StateMultibody(model)
    actuation = crocoddyl.ActuationModelFull(state)
    target = np.concatenate([goal, np.zeros(model.nv)])

    def dynamics(of_state: np.ndarray, of_control: np.ndarray) -> Any:
        costs = crocoddyl.CostModelSum(state, actuation.nu)
        for name, residual, weights in (
            ("state", crocoddyl.ResidualModelState(state, target, actuation.nu), of_state),
            ("control", crocoddyl.ResidualModelControl(state, actuation.nu), of_control),
        ):
            activation = crocoddyl.ActivationModelWeightedQuad(weights)
            costs.addCost(name, crocoddyl.CostModelResidual(state, activation, residual), 1.0)
        model = crocoddyl.DifferentialActionModelFreeFwdDynamics(state, actuation, costs)
        model.armature = np.zeros(actuation.nu)  # see the docstring
        return model

    running = crocoddyl.IntegratedActionModelEuler(dynamics(W / STEP, R / STEP), STEP)
    last = crocoddyl.IntegratedActionModelEuler(dynamics(final, 0 * R), 0.0)
    problem = crocoddyl.ShootingProblem(np.concatenate([start, np.zeros(model.nv)]), [running] * knots, last)
    problem.nthreads = 1
    return problem


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--humanoid", type=Path, default=MODEL)
    parser.add_argument("--knots", type=int, default=50)
    parser.add_argument("--repeat", type=int, default=7)
    given = parser.parse_args()
    humanoid(given.humanoid, given.knots, given.repeat)
    arm(given.knots, given.repeat)


if __name__ == "__main__":
    main()
