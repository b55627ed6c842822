"""Inverse kinematics of 10,000 random poses of Puma 560, UR5 and Panda, and batched Jacobians: success and
speed.

    python benchmarks/inverse_kinematics.py [--poses 10000] [--repeat 5]

The target poses are those of uniform random configurations within the joint limits. The initial guesses are
independent of them: the middle of the limits, then a fixed list. Success is checked by products of
Denavit-Hartenberg matrices, not by zwang: an error below 1e-5 m and 1e-5 rad, and coordinates within the
limits. Times are CPU times of the whole call from Python on one thread. They are compared with published
times of Robotics Toolbox's ik_LM (reference case G03, another machine), and with Pinocchio's Jacobians on
this machine.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import zwang as zw
from tests.cases import case
from tests.robot import dh

try:
    import pinocchio as pin
except ImportError:  # the comparison is then omitted
    pin = None

PEER = {
    "puma560": 133.07,
    "ur5": 103.20,
    "panda": 251.12,
}  # microseconds of CPU time per pose: G03, "rtb ik_LM chan, 100 restarts"


def seconds_of_cpu(call: Callable[[], Any], repeat: int) -> float:
    """The median CPU time of a call."""
    times = []
    for _ in range(repeat):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return float(np.median(times))


def inverse_kinematics(name: str, poses: int, repeat: int) -> None:
    """One line of the table: success rate, iterations, time per pose, and the speedup over the peer."""
    setting = case("robot_analysis", "G03_ik_benchmark")["parameters"]["arms"][name]
    limits = np.array(setting["limits"])
    q = np.random.default_rng(setting["seed"]).uniform(*limits.T, (10_000, len(limits)))
    np.testing.assert_array_equal(q[:3], setting["first_3_q"])
    R, p = dh.pose(name, q[:poses])
    m = dh.arm(name, setting["limits"])
    first = time.perf_counter()
    solution = zw.robot.solve_ik(m, "tip", (R, p), threads=1)
    first = time.perf_counter() - first
    position, orientation = dh.errors(name, solution.q, R, p)
    within = ((solution.q >= limits[:, 0]) & (solution.q <= limits[:, 1])).all(axis=1)
    success = (position < 1e-5) & (orientation < 1e-5) & within
    wrong = int((solution.converged & ~success).sum())
    cpu = 1e6 * seconds_of_cpu(lambda: zw.robot.solve_ik(m, "tip", (R, p), threads=1), repeat) / poses
    print(
        f"{name:8} success {100 * success.mean():7.3f} %   wrongly reported as converged {wrong}   "
        f"iterations {solution.iterations.mean():5.1f}   "
        f"starts {solution.starts.mean():4.2f} (at most {solution.starts.max()})   {cpu:5.2f} us/pose   "
        f"speedup over ik_LM {PEER[name] / cpu:4.0f}   first call {first:.2f} s"
    )


def jacobians(name: str, repeat: int, worlds: int = 4096) -> None:
    """Print the time of a frame Jacobian per world, and that of Pinocchio called in a Python loop."""
    m = dh.arm(name)
    q = np.random.default_rng(0).uniform(-2, 2, (worlds, m.nq))
    fast = zw.compile(m, threads=1)
    calls = 20

    def batches() -> None:
        for _ in range(calls):
            fast.frame_jacobian(q, "tip")

    batches()
    ours = 1e9 * seconds_of_cpu(batches, repeat) / (calls * worlds)
    line = f"{name:8} Jacobian {ours:6.1f} ns/world of {worlds}"
    if pin is not None:
        model, frame = pinocchio_model(name)
        data = model.createData()
        some = q

        def loop() -> None:
            for row in some:
                pin.computeFrameJacobian(model, data, row, frame, pin.LOCAL_WORLD_ALIGNED)

        J = pin.computeFrameJacobian(model, data, q[0], frame, pin.LOCAL_WORLD_ALIGNED)
        difference = np.abs(J - fast.frame_jacobian(q[0], "tip")).max()
        peer = 1e9 * seconds_of_cpu(loop, repeat) / len(some)
        line += f"   Pinocchio {pin.__version__} {peer:6.0f} ns/call from Python   {peer / ours:4.0f} x"
        line += f"   difference {difference:.1e}"
    print(line)


def pinocchio_model(name: str) -> tuple[Any, int]:
    """The same arm in Pinocchio: revolute joints about z, with placements from the
    Denavit-Hartenberg table.
    """
    t = dh.table(name)
    model = pin.Model()
    joint, placement = 0, pin.SE3.Identity()
    for d, a, alpha in zip(t["d"], t["a"], t["alpha"], strict=True):
        twist = pin.SE3(dh._translation(a, 0, 0) @ dh._rx(alpha))
        slide = pin.SE3(dh._translation(0, 0, d))
        before = placement * twist if t["convention"] == "modified" else placement
        joint = model.addJoint(joint, pin.JointModelRZ(), before, f"q{model.njoints}")
        placement = slide if t["convention"] == "modified" else slide * twist
    return model, model.addFrame(pin.Frame("tip", joint, 0, placement, pin.FrameType.OP_FRAME))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--poses", type=int, default=10_000)
    parser.add_argument("--repeat", type=int, default=5)
    given = parser.parse_args()
    for name in dh.ARMS:
        inverse_kinematics(name, given.poses, given.repeat)
    for name in dh.ARMS:
        jacobians(name, given.repeat)


if __name__ == "__main__":
    main()
