"""Steps per second of models with contacts and limits: zwang's compiled rollout and MuJoCo's batched
stepping.

    python benchmarks/contact.py [name or model.xml ...] [--worlds 1024] [--steps 200] [--repetitions 7]
    [--tolerance 1e-8] [--settle 0] [--integrator euler] [--dtype float64]

Needs `pip install '.[test]'`, which provides the ant, half-cheetah and hopper. The humanoid of MuJoCo's
repository is in no package: set ZWANG_HUMANOID to its file model/humanoid/humanoid.xml. Both programs start
from the same random states above the ground, or after so many steps without control, and use the same
controls, step size, friction cone and integrator, with one thread per core. Each repetition measures zwang,
`mujoco.batch` and `mujoco.rollout` one after the other. The script prints medians, and the median of the
ratios to the faster of MuJoCo's two functions. "One world" compares one world on one thread with `mj_step`,
without a loop in Python on either side. The scenes spheres25, spheres100, spheres400, boxes5 and boxes25
(bodies on a floor, none touching another) and heap100 (100 spheres on each other) run only when they are
named, best with few worlds.

Accuracy: at the final states, MuJoCo's constraint cost evaluates the accelerations of both programs.
"Gradient" is the gradient of the cost relative to the largest generalised force in it; "excess" is the cost
above its minimum relative to it; both as the median and the maximum over the worlds. MuJoCo solves to
--tolerance (1e-8 is its default), zwang always to a relative gradient of 1e-11 or to rounding.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import mujoco
import mujoco.rollout
import numpy as np
from mujoco.batch import Batch

import zwang as zw
from benchmarks.simulation import mjcf, panda
from tests.cases import case
from zwang.io.mjcf.read.read_mjcf import read_mjcf

STORED = ("half_cheetah", "hopper", "ant")
HUMANOID = "ZWANG_HUMANOID"  # environment variable with the path of MuJoCo's humanoid.xml
WALKER = Path(__file__).parents[1] / "examples" / "models" / "walker2d.xml"
SCENES = {"spheres25": 25, "spheres100": 100, "spheres400": 400, "heap100": 100, "boxes5": 5, "boxes25": 25}
NAMES = ("humanoid", *STORED, "walker2d", "panda")
INTEGRATORS = {"euler": mujoco.mjtIntegrator.mjINT_EULER, "rk4": mujoco.mjtIntegrator.mjINT_RK4}
EVALUATED_WORLDS = 64  # number of worlds whose accelerations are evaluated
TORQUE = (
    5.0  # largest random motor torque of Panda [N m]; with gravity, a third of the joints are at their limits
)


def text_of(name: str) -> str:
    """The MJCF of a model. Raises SystemExit if it is not found."""
    if name in STORED:
        return case("mujoco_oracle", name)["parameters"]["xml"]
    if name in SCENES:
        return bodies_on_floor(SCENES[name], "box" if "box" in name else "sphere", heaped="heap" in name)
    if name == "panda":
        return limited(mjcf(panda(), "euler", constrained=True, damping=1.0))
    if name == "humanoid" and HUMANOID not in os.environ:
        raise SystemExit(
            f"set {HUMANOID} to the model/humanoid/humanoid.xml of github.com/google-deepmind/mujoco"
        )
    file = {"walker2d": WALKER, "humanoid": Path(os.environ.get(HUMANOID, ""))}.get(name, Path(name))
    if not file.exists():
        raise SystemExit(f"there is no model {name!r}; it must be one of {', '.join(NAMES)}, or a file")
    return file.read_text()


def bodies_on_floor(count: int, kind: str, *, heaped: bool) -> str:
    """The MJCF of free spheres or boxes on a floor, 0.3 m apart; heaped: in layers of 25, touching each
    other.
    """
    side = 5 if heaped else int(np.ceil(np.sqrt(count)))
    rng, bodies = np.random.default_rng(0), []
    for k in range(count):
        x, y, layer = k % side, k // side % side, k // side**2
        position = np.array([x, y, layer]) * (0.21 if heaped else 0.3) + [0, 0, 0.1]
        position[:2] += heaped * 0.01 * rng.normal(size=2)
        size = "0.1 0.1 0.1" if kind == "box" else "0.1"
        at = " ".join(map(str, position))
        bodies.append(f"<body pos='{at}'><freejoint/><geom type='{kind}' size='{size}'/></body>")
    return (
        "<mujoco><option timestep='0.005'/><worldbody><geom type='plane' size='0 0 1'/>"
        f"{''.join(bodies)}</worldbody></mujoco>"
    )


def limited(text: str) -> str:
    """The MJCF with a motor for each joint, for a model without motors."""
    model = mujoco.MjModel.from_xml_string(text)
    motors = "".join(
        f"<motor joint='{model.joint(k).name}' ctrlrange='-{TORQUE} {TORQUE}' ctrllimited='true'/>"
        for k in range(model.njnt)
    )
    return text.replace("</mujoco>", f"<actuator>{motors}</actuator></mujoco>")


class Accuracy(NamedTuple):
    """Relative gradients of the cost, and its relative excess over the minimum, (worlds,) each."""

    gradient: np.ndarray
    excess: np.ndarray

    def __str__(self) -> str:
        return " | ".join(f"{np.median(x):.0e}, {x.max():.0e}" for x in self)


class Comparison:
    """One model in both programs, with the same random initial states."""

    def __init__(self, name: str, options: argparse.Namespace):
        text, worlds, tolerance = text_of(name), options.worlds, options.tolerance
        self.steps, self.cores, self.integrator = options.steps, cores(), options.integrator
        self.model = mujoco.MjModel.from_xml_string(text)
        option = self.model.opt
        option.integrator, option.jacobian = INTEGRATORS[options.integrator], mujoco.mjtJacobian.mjJAC_DENSE
        option.tolerance, option.ls_tolerance, option.iterations, option.ls_iterations = (
            tolerance,
            0.01,
            100,
            50,
        )
        self.mechanism = read_mjcf(f"{Path(name).stem}.xml", strict=False, text=text)
        self.fast = zw.compile(self.mechanism, dtype=options.dtype)
        self.single = zw.compile(self.mechanism, dtype=options.dtype, threads=1)
        self.q, self.v, self.u = initial_states(self.model, worlds, 0.0 if name in SCENES else 0.1)
        # without motors zwang's input is the generalised force
        self.inputs = self.u if self.model.nu else np.zeros((worlds, self.model.nv))
        if options.settle:
            self._settle(options.settle)
        self.batch = Batch(self.model, worlds, nthread=self.cores)
        self.state = np.concatenate([np.zeros((worlds, 1)), self.q, self.v], axis=1)
        self.controls = np.repeat(self.u[:, None], self.steps, axis=1)
        self.datas = [mujoco.MjData(self.model) for _ in range(self.cores)]
        self.rollout = mujoco.rollout.Rollout(nthread=self.cores)

    def _settle(self, steps: int) -> None:
        """Begin after so many steps without control, and stay without."""
        self.u, self.inputs = 0 * self.u, 0 * self.inputs
        alone = zw.compile(self.mechanism)
        end = alone.rollout(self.q, self.v, self.inputs, steps=steps, every=steps, integrator="euler")
        self.q, self.v = end.q[:, -1], end.v[:, -1]

    def zwang(self) -> tuple[np.ndarray, np.ndarray]:
        """The final q and v of zwang's rollout."""
        end = self.fast.rollout(
            self.q, self.v, self.inputs, steps=self.steps, every=self.steps, integrator=self.integrator
        )
        return end.q[:, -1], end.v[:, -1]

    def by_batch(self) -> None:
        """Run `mujoco.batch` from the initial states."""
        self.batch.bind("qpos")[:], self.batch.bind("qvel")[:] = self.q, self.v
        self.batch.bind("qacc_warmstart")[:], self.batch.bind("ctrl")[:] = 0, self.u
        self.batch.step(nstep=self.steps)

    def by_rollout(self) -> None:
        """Run `mujoco.rollout` from the initial states."""
        self.rollout.rollout(
            [self.model] * len(self.q), self.datas, self.state, self.controls, nstep=self.steps
        )

    def zwang_alone(self) -> None:
        """Run zwang's rollout of the first world on one thread."""
        self.single.rollout(
            self.q[0],
            self.v[0],
            self.inputs[0],
            steps=self.steps,
            every=self.steps,
            integrator=self.integrator,
        )

    def mujoco_alone(self) -> None:
        """Run the first world by `mj_step`, with the loop in C."""
        data = self.datas[0]
        mujoco.mj_resetData(self.model, data)
        data.qpos[:], data.qvel[:], data.ctrl[:] = self.q[0], self.v[0], self.u[0]
        mujoco.mj_step(self.model, data, self.steps)

    def accuracy(self) -> tuple[float, Accuracy, Accuracy]:
        """The mean number of rows per world at the end, and the accuracy of zwang and MuJoCo there."""
        u, h = self.u[:EVALUATED_WORLDS], self.model.opt.timestep
        run = self.single.rollout(
            self.q[:EVALUATED_WORLDS],
            self.v[:EVALUATED_WORLDS],
            self.inputs[:EVALUATED_WORLDS],
            steps=self.steps + 1,
            every=1,
            integrator="euler",
        )
        q, v, after = run.q[:, -2], run.v[:, -2], run.v[:, -1]
        evaluate = ConstraintCost(self.model)
        mean_acceleration = (after - v) / h
        found = [evaluate(*state) for state in zip(q, v, u, mean_acceleration, strict=True)]
        rows, *columns = map(np.array, zip(*found, strict=True))
        ours, theirs = Accuracy(*columns[:2]), Accuracy(*columns[2:])
        return rows.mean(), ours, theirs


class ConstraintCost:
    """MuJoCo's constraint cost of accelerations at a state, and its minimum by MuJoCo's solver with a tight
    tolerance.
    """

    def __init__(self, model: mujoco.MjModel):
        self.model, self.data = model, mujoco.MjData(model)

    def __call__(self, q: np.ndarray, v: np.ndarray, u: np.ndarray, acceleration: np.ndarray) -> list[float]:
        """The number of rows, and the accuracy of zwang and of MuJoCo.

        acceleration: zwang's, (v' - v) / h of one step, which treats joint damping implicitly.
        """
        model, data = self.model, self.data
        data.qpos[:], data.qvel[:], data.ctrl[:], data.qacc_warmstart[:] = q, v, u, 0
        mujoco.mj_forward(model, data)
        theirs = data.qacc.copy()
        M = np.zeros((model.nv, model.nv))
        mujoco.mj_fullM(model, data, M)
        ours = np.linalg.solve(
            M,
            (M + model.opt.timestep * np.diag(model.dof_damping.reshape(model.nv, -1)[:, 0])) @ acceleration,
        )
        minimum = self._minimum(ours)
        evaluated = [self._gradient_and_cost(M, a) for a in (ours, theirs)]
        scale = max(abs(minimum), 1e-12)
        return [
            data.nefc,
            *(x for gradient, cost in evaluated for x in (gradient, max(cost - minimum, 0) / scale)),
        ]

    def _gradient_and_cost(self, M: np.ndarray, a: np.ndarray) -> tuple[float, float]:
        """The relative gradient and the cost of an acceleration."""
        model, data = self.model, self.data
        cost, required_force = np.zeros(1), M @ a - data.qfrc_smooth
        J = np.zeros((data.nefc, model.nv))
        if data.nefc:
            J[:] = data.efc_J.reshape(J.shape)
            mujoco.mj_constraintUpdate(model, data, J @ a - data.efc_aref, cost, 0)
        constraint_force = J.T @ data.efc_force[: data.nefc]
        size = np.abs(required_force).max() + np.abs(constraint_force).max()
        return float(np.abs(required_force - constraint_force).max() / max(size, 1e-300)), float(
            cost[0] + required_force @ (a - data.qacc_smooth) / 2
        )

    def _minimum(self, a: np.ndarray) -> float:
        """The minimum of the cost: MuJoCo's solver is restarted from `a` until the cost no
        longer decreases.
        """
        model, data, option = self.model, self.data, self.model.opt
        previous = option.tolerance, option.ls_tolerance
        option.tolerance, option.ls_tolerance = 0, 1e-10
        M = np.zeros((model.nv, model.nv))
        costs = []
        for _ in range(4):
            data.qacc_warmstart[:] = a
            mujoco.mj_forward(model, data)
            mujoco.mj_fullM(model, data, M)
            a = data.qacc.copy()
            costs.append(self._gradient_and_cost(M, a)[1])
        option.tolerance, option.ls_tolerance = previous
        return min(costs)


def cores() -> int:
    """The number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def initial_states(
    model: mujoco.MjModel, worlds: int, displacement: float = 0.1
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Initial q and v, and the control, of every world; displacement: standard deviation of the coordinates
    [m, rad].
    """
    rng = np.random.default_rng(0)
    q = np.repeat(model.qpos0[None], worlds, axis=0)
    for row in q:
        mujoco.mj_integratePos(model, row, displacement * rng.normal(size=model.nv), 1.0)
    low, high = model.actuator_ctrlrange.T
    return q, 0.1 * rng.normal(size=(worlds, model.nv)), rng.uniform(low, high, size=(worlds, model.nu))


def seconds(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def interleaved(works: list[Callable[[], object]], repetitions: int) -> np.ndarray:
    """Times (repetitions, functions) [s], after one repetition that is not measured."""
    for work in works:
        work()
    return np.array([[seconds(work) for work in works] for _ in range(repetitions)])


def line(name: str, options: argparse.Namespace) -> str:
    """The row of the table for one model."""
    comparison = Comparison(name, options)
    times = interleaved([comparison.zwang, comparison.by_batch, comparison.by_rollout], options.repetitions)
    alone = interleaved([comparison.zwang_alone, comparison.mujoco_alone], options.repetitions)
    ours, *theirs = np.median(times, axis=0)
    faster = 1 + int(np.argmin(theirs))
    ratio = statistics.median(times[:, faster] / times[:, 0])
    single = statistics.median(alone[:, 1] / alone[:, 0])
    total = options.worlds * options.steps
    rows, our_accuracy, their_accuracy = comparison.accuracy()
    way = ("batch", "rollout")[faster - 1]
    return (
        f"| {Path(name).stem} | {rows:.1f} | {total / ours:.3g} | {total / theirs[faster - 1]:.3g} ({way}) "
        f"| {ratio:.1f} | {single:.2f} "
        f"| {our_accuracy} | {their_accuracy} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="*", default=NAMES)
    parser.add_argument("--worlds", type=int, default=1024)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--repetitions", type=int, default=7)
    parser.add_argument("--tolerance", type=float, default=1e-8, help="MuJoCo's solver tolerance")
    parser.add_argument("--settle", type=int, default=0, help="steps without control before the measurement")
    parser.add_argument("--integrator", choices=list(INTEGRATORS), default="euler")
    parser.add_argument("--dtype", choices=("float64", "float32"), default="float64", help="zwang's numbers")
    options = parser.parse_args()
    print(
        f"{options.worlds} worlds, {options.steps} steps, "
        f"MuJoCo {mujoco.__version__} with tolerance {options.tolerance:g}, {cores()} cores\n"
    )
    print(
        "| model | rows | zwang, steps/s | MuJoCo, steps/s | speedup | one world: speedup "
        "| zwang's gradient (median, maximum) | excess | MuJoCo's gradient | excess |"
    )
    print("|" + " --- |" * 10)
    for name in options.models:
        print(line(name, options), flush=True)


if __name__ == "__main__":
    main()
