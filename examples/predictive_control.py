"""Model predictive control by sampling in real time: swing-up of a pole on a cart and of an acrobot, and a
humanoid that stands while it is pushed.

    python examples/predictive_control.py [cart_pole acrobot humanoid] [--seconds 5] [--save folder]

Each plan is chosen from 128 noisy copies of the last one, whose rollouts run in one call.
"""

import argparse
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

import zwang as zw
from zwang.control import lqr, predictive_sampling

MODELS = Path(os.environ.get("ZWANG_ROOT", Path(__file__).parents[1])) / "examples/models"
SAMPLES = 128


@dataclass(frozen=True)
class Problem:
    """A mechanism that starts at q, at rest, and the cost (samples,) of states and controls.

    horizon [s], with steps of step [s] and this number of knots; a new plan is made after each `hold` steps.
    noise: of the knots. bounds: of the controls. pushes: changes of v by the time [s]. regulator: the control
    at states that a linear regulator holds, None at others. reached: whether a state is where it is to be.
    """

    mechanism: zw.Mechanism
    q: np.ndarray
    cost: Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]
    reached: Callable[[np.ndarray], bool]
    horizon: float
    step: float
    knots: int
    noise: float
    bounds: tuple[float, float]
    hold: int = 1
    temperature: float = 0.1
    seconds: float = 5.0
    pushes: dict[float, np.ndarray] = field(default_factory=dict)
    regulator: Callable[[np.ndarray, np.ndarray], np.ndarray | None] = lambda q, v: None


def cart_pole() -> Problem:
    """A pole on a cart that begins hanging; the force on the cart is at most 15 N."""
    bodies = [
        zw.Body("cart", zw.Prismatic("slide", (1, 0, 0)), mass=1.0),
        zw.Body("pole", zw.Revolute("hinge", (0, 1, 0)), parent="cart", mass=0.2, com=(0, 0, 0.5)),
    ]
    m = zw.Mechanism("cart pole", bodies, forces=[zw.Motor("push", "slide", control_range=(-15, 15))])

    def cost(q, v, u):
        height = 1 - np.cos(q[..., 1])
        slow = 0.02 * v[..., 1] ** 2 * (height < 0.5)
        return (height + slow + 0.1 * q[..., 0] ** 2 + 1e-4 * u[..., 0] ** 2).sum(axis=1)

    def upright(q):
        return np.cos(q[1]) > 0.95

    return Problem(m, np.array([0, np.pi]), cost, upright, 1.0, 0.02, 8, 5.0, (-15.0, 15.0))


def acrobot() -> Problem:
    """Two links of 1 m that begin hanging, with a motor of at most 20 N m at the elbow only.

    Near the top a linear regulator takes over; its cost-to-go is in the cost of the plans.
    """
    link = {"mass": 1.0, "com": (0, 0, 0.5), "inertia": (0.083, 0.083, 0.0, 0.0, 0.0, 0.0)}
    bodies = [
        zw.Body("upper", zw.Revolute("shoulder", (0, 1, 0)), **link),
        zw.Body("lower", zw.Revolute("elbow", (0, 1, 0)), parent="upper", position=(0, 0, 1), **link),
    ]
    m = zw.Mechanism("acrobot", bodies, forces=[zw.Motor("torque", "elbow", control_range=(-20, 20))])
    top = lqr(zw.linearize(m, [0, 0], step=0.02), [10, 10, 1, 1], [0.1])

    def state(q, v):
        return np.concatenate([(q + np.pi) % (2 * np.pi) - np.pi, np.clip(v, -30, 30)], axis=-1)

    def cost_to_go(x):
        return np.einsum("...i,ij,...j->...", x, top.cost, x)

    def cost(q, v, u):
        height = 2 - np.cos(q[..., 0]) - np.cos(q[..., 0] + q[..., 1])
        far = 1 - np.exp(-cost_to_go(state(q, v)) / 3000)
        running = height + 2 * far + 1e-4 * u[..., 0] ** 2
        return running.sum(axis=1) + 20 * running[:, -1]

    def regulator(q, v):
        x = state(q, v)
        return np.clip(-top.K @ x, -20, 20) if cost_to_go(x) < 300 else None

    def upright(q):
        return np.cos(q[0]) + np.cos(q[0] + q[1]) > 1.9

    return Problem(
        m, np.array([np.pi, 0.0]), cost, upright, 1.2, 0.02, 10, 6.0, (-20.0, 20.0), seconds=8.0,
        regulator=regulator,
    )  # fmt: skip


def humanoid() -> Problem:
    """A humanoid of 24 degrees of freedom with position servos, pushed at its pelvis each second."""
    m = zw.load(MODELS / "humanoid.xml")
    servos = [
        replace(
            f,
            gear=(1.0,),
            gain=(f.gear[0], 0, 0),
            bias=(0, -f.gear[0], -0.05 * f.gear[0]),
            control_range=(-1.0, 1.0),
        )
        if isinstance(f, zw.Actuator)
        else f
        for f in m.forces
    ]
    m = m.replace(forces=servos)
    q = np.array(m.home or m.neutral, dtype=float)

    def cost(q, v, u):
        lean = q[..., 4] ** 2 + q[..., 5] ** 2  # 2 (x^2 + y^2) = 1 - cosine of the tilt
        place = ((q[..., :2] + 0.3 * v[..., :2]) ** 2).sum(axis=-1)
        height = (q[..., 2] - 0.92) ** 2
        effort = 0.02 * (u**2).mean(axis=-1)
        running = 10 * lean + 5 * place + 20 * height + effort + 0.01 * (v[..., 3:6] ** 2).sum(axis=-1)
        return running.sum(axis=1) + 10 * running[:, -1]

    def stands(q):
        return q[2] > 0.8

    x, y = 0.15 * np.eye(m.nv)[:2]  # [m/s]
    pushes = {1.0: y, 2.0: -y, 3.0: x, 4.0: -x}
    return Problem(m, q, cost, stands, 0.5, 0.01, 5, 0.15, (-1.0, 1.0), hold=2, pushes=pushes)


def control(problem: Problem, fast, seconds: float, rng: np.random.Generator):
    """States (steps + 1, nq) of the compiled mechanism in closed loop, and the time of each plan [s]."""
    p, h = problem, problem.step
    steps, inputs = round(p.horizon / h), len(p.mechanism.inputs)
    q, v, knots = p.q, np.zeros(p.mechanism.nv), np.zeros((p.knots, inputs))
    pushes = {round(t / h): dv for t, dv in p.pushes.items()}
    at = np.linspace(0, steps - 1, p.knots)
    states, times = [q], []
    for k in range(0, round(seconds / h), p.hold):
        start = time.perf_counter()
        plan = predictive_sampling(
            fast, q, v, knots, p.cost, steps=steps, step=h, noise=p.noise, samples=SAMPLES,
            temperature=p.temperature, seed=rng, bounds=p.bounds,
        )  # fmt: skip
        # the next plan begins `hold` steps later
        later = np.minimum(at + p.hold, steps - 1)
        knots = np.stack([np.interp(later, np.arange(steps), u) for u in plan.control.T], axis=1)
        times.append(time.perf_counter() - start)
        for i in range(p.hold):
            v = v + pushes.get(k + i, 0)
            held = p.regulator(q, v)
            q, v, _ = fast.step(q, v, plan.control[i] if held is None else held, step=h)
            states.append(q)
    return np.array(states), np.array(times)


PROBLEMS = {"cart_pole": cart_pole, "acrobot": acrobot, "humanoid": humanoid}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("problems", nargs="*", default=list(PROBLEMS))
    parser.add_argument(
        "--seconds", type=float, help="duration of the motion, by default that of the problem"
    )
    parser.add_argument("--save", type=Path, help="folder for the motions, files for NumPy")
    given = parser.parse_args()
    for name in given.problems:
        problem = PROBLEMS[name]()
        seconds = problem.seconds if given.seconds is None else given.seconds
        fast = zw.compile(problem.mechanism)
        control(problem, fast, 2 * problem.step * problem.hold, np.random.default_rng(1))  # compiles
        used = time.process_time()
        states, times = control(problem, fast, seconds, np.random.default_rng(0))
        used = (time.process_time() - used) / len(times)
        held = [problem.reached(q) for q in states[-round(1 / problem.step) :]]
        print(
            f"{name}: {1 / times.mean():.0f} plans a second ({1e3 * used:.1f} ms of all cores each), "
            f"{problem.hold * problem.step / times.mean():.1f} times real time; "
            f"in the last second {100 * np.mean(held):.0f} % of the states are where they are to be"
        )
        if given.save:
            np.savez_compressed(given.save / f"{name}.npz", states=states, times=times)


if __name__ == "__main__":
    main()
