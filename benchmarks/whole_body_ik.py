"""Whole-body inverse kinematics of a humanoid: both feet fixed, targets of a hand and of the centre of mass.

    PYTHONPATH=. python benchmarks/whole_body_ik.py [--targets 1000] [--steps 12] [--repeat 5]

The targets are those of random postures with the feet in place. Both programs take the same differential
steps from the same start: feet, hand and centre of mass with the same weights, joint limits, damping 1e-6,
the configuration integrated after each. The residual, the largest position error of a task, is computed for
both by zwang's functions after each step. mink (PyPI) is called in a loop from Python, as it is used, with
the solver DAQP. Times are CPU times on one thread. The floor is what the poses and Jacobians of the tasks
alone take.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import zwang as zw
from zwang.robot import ComTask, FrameTask, PostureTask, com_jacobian, differential_ik, whole_body_ik

try:
    import mink
    import mujoco
except ImportError:  # the comparison is then omitted
    mink = None

MODEL = Path(__file__).parents[1] / "examples" / "models" / "humanoid.xml"
FEET, HAND, DAMPING = ("right_foot", "left_foot"), "right_forearm", 1e-6
TASKS = (
    *(FrameTask(name, weight=10) for name in FEET),
    FrameTask(HAND, weight=(1, 1, 1, 0, 0, 0)),
    ComTask(weight=2),
)


def seconds_of_cpu(call: Callable[[], Any], repeat: int) -> float:
    """The median CPU time of a call."""
    times = []
    for _ in range(repeat):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return float(np.median(times))


def setting(m: Any, count: int) -> tuple[np.ndarray, list[Any]]:
    """The start (nq,), and the targets of the tasks, of which `count` can be reached."""
    start = np.array(m.home or m.neutral, dtype=float)
    start[7:] = 0.05  # with exactly parallel legs the pelvis cannot sway to first order
    for index in m.joints:
        for part, angle in (("knee", 0.5), ("hip_swing", -0.25), ("ankle", -0.25), ("elbow", -0.6)):
            if part in index.name:
                start[index.q] = angle
    feet = [(pose.R, pose.p) for pose in (zw.frame_pose(m, start, name) for name in FEET)]
    q = np.tile(start, (2 * count, 1))
    q[:, 7:] += 0.3 * np.random.default_rng(1).standard_normal((2 * count, m.nq - 7))
    found = whole_body_ik(m, TASKS[:2], feet, q)
    standing = found.q[found.converged][:count]
    fast = zw.compile(m)
    return start, [*feet, fast.frame_pose(standing, HAND).p, fast.mass_centre(standing)]


def residuals(fast: Any, q: np.ndarray, targets: list[Any]) -> np.ndarray:
    """The largest position error [m] of a task at each q (N, nq)."""
    errors = [
        np.linalg.norm(fast.frame_pose(q, name).p - p, axis=-1)
        for name, p in zip((*FEET, HAND), (targets[0][1], targets[1][1], targets[2]), strict=True)
    ]
    errors.append(np.linalg.norm(fast.mass_centre(q) - targets[3], axis=-1))
    return np.max(errors, axis=0)


def zwang_steps(m: Any, start: np.ndarray, targets: list[Any], steps: int, repeat: int) -> list[tuple]:
    """The residuals and the seconds a step of one target, for each step."""
    fast, count = zw.compile(m), len(targets[2])
    q, table = np.tile(start, (count, 1)), []
    differential_ik(m, TASKS, targets, q, 1.0, threads=1)
    for _ in range(steps):

        def step(q: np.ndarray = q) -> Any:
            return differential_ik(m, TASKS, targets, q, 1.0, damping=DAMPING, threads=1)

        seconds = seconds_of_cpu(step, repeat) / count
        q = step().q
        table.append((residuals(fast, q, targets), seconds))
    return table


def mink_steps(m: Any, start: np.ndarray, targets: list[Any], steps: int, count: int) -> list[tuple]:
    """The same for mink, for the first `count` targets."""
    model = mujoco.MjModel.from_xml_path(str(MODEL))
    fast, limits = zw.compile(m), [mink.ConfigurationLimit(model, gain=1.0)]
    feet = [mink.FrameTask(name, "body", 10.0, 10.0) for name in FEET]
    hand, com = mink.FrameTask(HAND, "body", 1.0, 0.0), mink.ComTask(2.0)
    for task, (R, p) in zip(feet, targets[:2], strict=True):
        task.set_target(mink.SE3.from_rotation_and_translation(mink.SO3.from_matrix(R), p))
    q, seconds = np.zeros((steps, count, m.nq)), np.zeros((steps, count))
    for k in range(count):
        configuration = mink.Configuration(model, start.copy())
        hand.set_target(mink.SE3.from_translation(targets[2][k]))
        com.set_target(targets[3][k])
        for i in range(steps):
            begin = time.process_time()
            v = mink.solve_ik(configuration, [*feet, hand, com], 1.0, "daqp", DAMPING, limits=limits)
            configuration.integrate_inplace(v, 1.0)
            seconds[i, k] = time.process_time() - begin
            q[i, k] = configuration.q
    own = [*targets[:2], targets[2][:count], targets[3][:count]]
    return [(residuals(fast, q[i], own), float(np.median(seconds[i]))) for i in range(steps)]


def floor(m: Any, start: np.ndarray, count: int, repeat: int) -> float:
    """The seconds of the poses and Jacobians of the tasks alone."""
    fast, q = zw.compile(m, threads=1), np.tile(start, (count, 1))

    def jacobians() -> None:
        for name in (*FEET, HAND):
            fast.frame_pose(q, name)
            fast.frame_jacobian(q, name)
        fast.mass_centre(q)
        com_jacobian(m, q)

    jacobians()
    return seconds_of_cpu(jacobians, repeat) / count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--targets", type=int, default=1000)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--peer-targets", type=int, default=100)
    parser.add_argument("--repeat", type=int, default=5)
    given = parser.parse_args()
    m = zw.load(MODEL)
    start, targets = setting(m, given.targets)
    ours = zwang_steps(m, start, targets, given.steps, given.repeat)
    peers = mink_steps(m, start, targets, given.steps, given.peer_targets) if mink is not None else None
    print("step   zwang: us, median residual [m]      mink: us, median residual [m]   ratio")
    for i, (residual, seconds) in enumerate(ours):
        line = f"{i + 1:4} {1e6 * seconds:10.2f}  {np.median(residual[: given.peer_targets]):.2e}"
        if peers is not None:
            line += f"   {1e6 * peers[i][1]:28.1f}  {np.median(peers[i][0]):.2e}"
            line += f"   {peers[i][1] / seconds:9.0f}"
        print(line)
    mean = np.mean([seconds for _, seconds in ours])
    lowest = floor(m, start, given.targets, given.repeat)
    print(f"floor (poses and Jacobians) {1e6 * lowest:.2f} us; mean step {1e6 * mean:.2f} us")
    if peers is not None:
        print(f"ratio of the mean steps {np.mean([seconds for _, seconds in peers]) / mean:.0f}")
    for tasks, goals in ((TASKS, targets), ((*TASKS, PostureTask()), [*targets, start])):
        whole_body_ik(m, tasks, goals, start, threads=1)
        begin = time.process_time()
        found = whole_body_ik(m, tasks, goals, start, threads=1)
        seconds = time.process_time() - begin
        at_once = f"{len(tasks)} tasks, {given.targets} targets at once"
        print(f"{at_once}: {1e3 * seconds:.0f} ms, {found.iterations.mean():.1f} iterations; {found}")


if __name__ == "__main__":
    main()
