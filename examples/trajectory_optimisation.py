"""Trajectories by iLQR: swing-ups of a pole on a cart, of an acrobot and of Furuta's pendulum; a quadruped
that trots; a humanoid that keeps its balance while it is pushed.

    python examples/trajectory_optimisation.py [cart_pole acrobot furuta trot balance] [--short]

Each plan is simulated by `zw.simulate`: under its controls, and from a disturbed start under its feedback.
The humanoid replans every 50 ms, because nobody tells it of the pushes.
"""

import argparse
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from predictive_control import humanoid as humanoid_with_servos

import zwang as zw
from zwang.api.compilation.compiled import CompiledMechanism
from zwang.control import Quadratic, TrajectoryResult, ilqr
from zwang.mechanism.samples import FURUTA
from zwang.mechanism.samples import furuta as furuta_pendulum

MODELS = Path(os.environ.get("ZWANG_ROOT", Path(__file__).parents[1])) / "examples/models"
STEEL, RED = (0.30, 0.47, 0.66, 1.0), (0.80, 0.35, 0.24, 1.0)


def rod(length: float, color: tuple[float, float, float, float]) -> tuple[zw.Capsule, ...]:
    """A capsule of this length [m] along z, for pictures."""
    return (zw.Capsule(0.04, length, position=(0, 0, length / 2), color=color, visual_only=True),)


@dataclass(frozen=True)
class Problem:
    """A mechanism that starts at q, v, a cost over the steps of `guess` (steps, nu), the step [s], and the
    bounds of the controls. disturbance (2 nv,): a change of the start in the tangent space.
    """

    mechanism: zw.Mechanism
    q: np.ndarray
    v: np.ndarray
    guess: np.ndarray
    cost: Quadratic
    step: float
    integrator: str
    bounds: tuple[float, float]
    disturbance: np.ndarray
    iterations: int = 300


def cart_pole() -> Problem:
    """A pole on a cart that begins hanging; the force on the cart is at most 8 N."""
    bodies = [
        zw.Body(
            "cart",
            zw.Prismatic("slide", (1, 0, 0)),
            mass=1.0,
            geometry=[zw.Box(0.3, 0.2, 0.1, color=STEEL, visual_only=True)],
        ),
        zw.Body(
            "pole",
            zw.Revolute("hinge", (0, 1, 0)),
            parent="cart",
            mass=0.2,
            com=(0, 0, 0.5),
            geometry=rod(1.0, RED),
        ),
    ]
    m = zw.Mechanism("cart pole", bodies, forces=[zw.Motor("push", "slide")])
    cost = Quadratic([0, 0], [0.05, 0.05, 0.01, 0.01], [1e-3], [500, 500, 50, 50])
    guess = 2 * np.sin(0.12 * np.arange(120))[:, None]
    off = np.array([0.02, -0.03, 0, 0])
    return Problem(m, np.array([0, np.pi]), np.zeros(2), guess, cost, 0.02, "rk4", (-8.0, 8.0), off)


def acrobot() -> Problem:
    """Two links of 1 m that begin hanging, with a motor of at most 20 N m at the elbow only."""
    link = {"mass": 1.0, "com": (0, 0, 0.5), "inertia": (0.083, 0.083, 0.0, 0.0, 0.0, 0.0)}
    bodies = [
        zw.Body("upper", zw.Revolute("shoulder", (0, 1, 0)), **link, geometry=rod(1.0, STEEL)),
        zw.Body(
            "lower",
            zw.Revolute("elbow", (0, 1, 0)),
            parent="upper",
            position=(0, 0, 1),
            **link,
            geometry=rod(1.0, RED),
        ),
    ]
    m = zw.Mechanism("acrobot", bodies, forces=[zw.Motor("torque", "elbow")])
    cost = Quadratic([0, 0], [0.01, 0.01, 0.01, 0.01], [1e-3], [1000, 1000, 100, 100])
    guess = np.sin(3.0 * 0.02 * np.arange(200))[:, None]
    off = np.array([0.02, 0.02, 0, 0])
    return Problem(m, np.array([np.pi, 0.0]), np.zeros(2), guess, cost, 0.02, "rk4", (-20.0, 20.0), off)


def furuta() -> Problem:
    """A motor of at most 0.03 N m turns an arm that carries a pendulum, which begins hanging."""
    m = furuta_pendulum(**FURUTA | {"B_p": 2e-5, "B_r": 2e-4})
    cost = Quadratic([0, 0], [0.02, 0.02, 1e-4, 1e-4], [30.0], [100, 100, 1, 1])
    guess = 0.005 * np.sin(10.0 * 0.01 * np.arange(150))[:, None]
    off = np.array([0.05, 0.05, 0, 0])
    return Problem(m, np.array([0, np.pi]), np.zeros(2), guess, cost, 0.01, "rk4", (-0.03, 0.03), off)


def planned(problem: Problem, fast=None, feedback: bool = True) -> TrajectoryResult:
    """The optimised trajectory; feedback: as for `ilqr`."""
    p = problem
    fast = zw.compile(p.mechanism) if fast is None else fast
    return ilqr(
        fast, p.q, p.v, p.guess, p.cost, step=p.step, integrator=p.integrator, bounds=p.bounds,
        iterations=p.iterations, feedback=feedback,
    )  # fmt: skip


def simulated(problem: Problem, plan: TrajectoryResult, disturbance=None):
    """The recording of the simulation under the planned controls and the feedback, from a disturbed start."""
    p, m = problem, problem.mechanism
    dq, dv = np.split(np.zeros(2 * m.nv) if disturbance is None else disturbance, 2)

    def control(t, q, v):
        k = min(round(t / p.step), len(plan.control) - 1)
        dx = np.concatenate([zw.difference_configuration(m, q, plan.q[k]), v - plan.v[k]])
        return np.clip(plan.control[k] + plan.gain[k] @ dx, *p.bounds)

    q = zw.integrate_configuration(m, p.q, dq, 1.0)
    return zw.simulate(
        m, q, p.v + dv, duration=p.step * len(plan.control), step=p.step, integrator=p.integrator,
        control=control, record={"forces": True}, progress=False,
    )  # fmt: skip


def leg(x: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Hip, thigh and knee (..., 3) [rad] of a foot at (x, z) [m] from its hip; both links are 0.2 m long."""
    half = np.arccos(np.hypot(x, z) / 0.4)
    return np.stack([np.zeros_like(x), half + np.arctan2(-x, -z), -2 * half], axis=-1)


PERIOD, SPEED, LIFT, RAMP = 0.5, 0.5, 0.05, 0.5  # of the trot: [s], [m/s], [m], and its beginning [s]


def trot(seconds: float = 3.0) -> Problem:
    """A quadruped with position servos that begins standing, and is to trot forwards.

    The goal is a trunk that moves level at a constant speed, above feet that move as those of a massless
    robot would: diagonal pairs swing by turns. Nothing is said about forces.
    """
    m, h = zw.load(MODELS / "quadruped.xml"), 0.005
    stand = np.array(m.keyframes[0].q)
    t = h * np.arange(round(seconds / h) + 1)
    speed = SPEED * np.clip(t / RAMP, 0, 1)
    q = np.tile(stand, (len(t), 1))
    q[:, 0] = np.cumsum(speed) * h
    for at, phase in zip((7, 10, 13, 16), (0, 0.5, 0.5, 0), strict=True):  # the legs, diagonal pairs together
        p = (t / PERIOD + phase) % 1
        swings, stride = p < 0.5, speed * PERIOD / 2
        x = stride * np.where(swings, -0.5 * np.cos(2 * np.pi * p), 0.5 - 2 * (p - 0.5))
        z = -0.293 + LIFT * np.where(swings, np.sin(2 * np.pi * p), 0) * np.clip(t / RAMP, 0, 1)
        q[:, at : at + 3] = leg(x, z)
    v = np.zeros((len(t), m.nv))
    v[:, 0] = speed
    of_q = [20.0, 20, 100, 20, 20, 20, *[2.0] * 12]
    of_v = [1.0, 0.2, 0.2, 0.1, 0.1, 0.1, *[1e-3] * 12]
    guess = q[1:, 7:]
    cost = Quadratic(q, [*of_q, *of_v], np.full(12, 0.5), [*of_q, *of_v], v=v, rest=guess)
    off = np.zeros(36)
    off[[18, 19]] = -0.1, 0.1  # [m/s]
    return Problem(m, stand, np.zeros(m.nv), guess, cost, h, "implicitfast", (-2.6, 2.2), off, iterations=60)


PUSH, LASTING = 250.0, 0.1  # on the pelvis [N], [s]


def balance() -> Problem:
    """A humanoid with position servos that stands, with a horizon of 0.6 s. Without a plan it falls."""
    m, h = humanoid_with_servos().mechanism, 0.01
    q = np.array(m.home or m.neutral, dtype=float)
    steps, joints, nu = 60, m.nv - 6, len(m.inputs)
    of_q = [5.0, 5, 50, 20, 20, 20, *[0.5] * joints]
    of_v = [1.0, 1, 1, 0.1, 0.1, 0.1, *[0.01] * joints]
    weights = np.array([*of_q, *of_v])
    cost = Quadratic(q, weights, np.full(nu, 0.05), 20 * weights)
    still, guess = np.zeros(m.nv), np.zeros((steps, nu))
    off = np.zeros(2 * m.nv)
    off[m.nv + 1] = 0.1
    return Problem(m, q, still, guess, cost, h, "implicitfast", (-1.0, 1.0), off, iterations=2)


@dataclass
class Replanning:
    """A control function that plans again after each `hold` steps, and executes plans under their feedback.

    Each plan begins as the last one goes on, and is improved by a few iterations. force: of the time, on the
    pelvis [N]; no plan knows of it. times: the processor time of each plan [s].
    """

    problem: Problem
    fast: CompiledMechanism
    force: Callable[[float], np.ndarray]
    hold: int = 5

    def __post_init__(self) -> None:
        self.guess, self.times = self.problem.guess, []

    def __call__(self, t, q, v):
        p = self.problem
        since = round(t / p.step) % self.hold
        if since == 0:
            start = time.process_time()
            self.plan = planned(replace(p, q=q, v=v, guess=self.guess), self.fast, feedback=False)
            self.times.append(time.process_time() - start)
            later = self.plan.control[self.hold :]
            self.guess = np.concatenate([later, np.repeat(later[-1:], self.hold, axis=0)])
        dq = zw.difference_configuration(p.mechanism, q, self.plan.q[since])
        u = self.plan.control[since] + self.plan.gain[since] @ np.concatenate([dq, v - self.plan.v[since]])
        return np.concatenate([np.clip(u, *p.bounds), self.force(t), np.zeros(3)])


def pushes(t: float) -> np.ndarray:
    """The force of pushes to the left, the right, forwards and backwards, one each second."""
    directions = [[0, 1, 0], [0, -1, 0], [1, 0, 0], [-1, 0, 0]]
    number, since = divmod(t - 0.3, 1.0)
    return PUSH * np.array(directions[int(number) % 4]) * (number >= 0 and since < LASTING)


def balanced(problem: Problem, fast, seconds: float, force=pushes):
    """The recording of the pushed humanoid that replans, and the processor time of each plan [s]."""
    control = Replanning(problem, fast, force)
    pushed = zw.with_applied_wrenches(problem.mechanism, "pelvis")
    run = zw.simulate(
        pushed, problem.q, duration=seconds, step=problem.step, integrator=problem.integrator,
        control=control, progress=False,
    )  # fmt: skip
    return run, np.array(control.times)


def feet_on_the_floor(run) -> np.ndarray:
    """Whether each foot of the quadruped (samples, 4) carries more than 1 N: front left, front right, rear
    left, rear right.
    """
    force = np.linalg.norm(run.force.values[0], axis=-1)
    body = run.point_force_body.values
    feet = ("front_left_shin", "front_right_shin", "rear_left_shin", "rear_right_shin")
    return np.stack([force[:, body == name].sum(axis=1) > 1 for name in feet], axis=1)


def gait(run) -> tuple[float, int]:
    """The share of samples in which exactly one diagonal pair carries, and how often the pair changes."""
    on = feet_on_the_floor(run)
    first, second = on[:, 0] & on[:, 3], on[:, 1] & on[:, 2]
    pair = np.where(first & ~on[:, 1] & ~on[:, 2], 1, np.where(second & ~on[:, 0] & ~on[:, 3], -1, 0))
    of_one = pair[pair != 0]
    return float(np.mean(pair != 0)), int((np.diff(of_one) != 0).sum())


def report_plan(problem: Problem, fast) -> None:
    """Plan and simulate; print where a swing-up ends, and how a quadruped trots."""
    used = time.process_time()
    plan = planned(problem, fast)
    used = time.process_time() - used
    print(f"  {plan.iterations} iterations in {used:.2f} s, cost {plan.costs[0]:.1f} -> {plan.cost:.2f}")
    for name, change in (("as planned", None), ("disturbed", problem.disturbance)):
        run = simulated(problem, plan, change)
        q, v = run.q.values[0], run.v.values[0]
        if problem.mechanism.nv == 2:
            off = np.abs(q[-1] - problem.cost.q).max()
            print(f"  {name}: ends {off:.3f} from upright, with velocities to {np.abs(v[-1]).max():.3f}")
        else:
            x, y, z = q[:, :3].T
            share, changes = gait(run)
            print(f"  {name}: {x[-1]:.2f} m forward, {y[-1]:+.3f} m sideways,")
            print(f"    trunk at {z.min():.3f} to {z.max():.3f} m; one diagonal pair carries in", end=" ")
            print(f"{100 * share:.0f} % of the time, and changes {changes} times")


def report_balance(problem: Problem, fast, seconds: float) -> None:
    """Replan while the humanoid is pushed; print how it stands."""
    run, times = balanced(problem, fast, seconds)
    print(
        f"  pelvis at {run.q.values[0, :, 2].min():.3f} m or above, pushed by {PUSH:g} N for {LASTING} s\n"
        f"  processor time of a plan: {1e3 * times[1:].mean():.0f} ms, at most {1e3 * times[1:].max():.0f} ms"
    )


PROBLEMS = {"cart_pole": cart_pole, "acrobot": acrobot, "furuta": furuta, "trot": trot, "balance": balance}


def main():
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("problems", nargs="*", metavar="PROBLEM", help=", ".join(PROBLEMS))
    parser.add_argument("--short", action="store_true", help="one second of the trot, 0.2 s of the balance")
    given = parser.parse_args()
    for name in given.problems:
        if name not in PROBLEMS:
            parser.error(f"{name!r} is no problem; the problems are {', '.join(PROBLEMS)}")
    for name in given.problems or PROBLEMS:
        print(name)
        problem = trot(1.0) if name == "trot" and given.short else PROBLEMS[name]()
        fast = zw.compile(problem.mechanism)
        if name == "balance":
            report_balance(problem, fast, 0.2 if given.short else 5.0)
        else:
            report_plan(problem, fast)


if __name__ == "__main__":
    main()
