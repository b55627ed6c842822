"""Dynamics of robots, compared with Pinocchio in one run: time per world and core, and of one world from
Python.

    python benchmarks/dynamics.py [--worlds 4096] [--repetitions 21]

Needs `pip install '.[test]'` (Pinocchio and the URDF files of the robots). Both programs get the same states.
Each repetition measures every function once; the medians and the medians of the ratios are printed as a
Markdown table.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pinocchio as pin

import zwang as zw
from zwang.api.compilation.compiled import CompiledMechanism

ROBOTS = {
    "UR5": ("ur_description/urdf/ur5_robot.urdf", "wrist_3_link"),
    "Panda": ("panda_description/urdf/panda.urdf", "panda_hand"),
    "Talos": ("talos_data/robots/talos_reduced.urdf", "gripper_left_base_link"),
}


def data_folder() -> Path:
    """The folder of the robots in the package example-robot-data."""
    for folder in Path(pin.__file__).parents:
        found = folder / "share" / "example-robot-data" / "robots"
        if found.exists():
            return found
        found = folder / "cmeel.prefix" / "share" / "example-robot-data" / "robots"
        if found.exists():
            return found
    raise SystemExit("the package example-robot-data is missing: pip install '.[test]'")


def seconds(work: Callable[[], object], repeat: int) -> float:
    begin = time.perf_counter()
    for _ in range(repeat):
        work()
    return (time.perf_counter() - begin) / repeat


def interleaved_times(
    works: dict[str, tuple[Callable[[], object], int]], count: int
) -> dict[str, list[float]]:
    """The times [s] of each function in each repetition; a repetition calls every function once."""
    for work, _ in works.values():
        work()
    times: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(count):
        for name, (work, repeat) in works.items():
            times[name].append(seconds(work, repeat))
    return times


def ratio(ours: list[float], theirs: list[float]) -> float:
    return statistics.median(b / a for a, b in zip(ours, theirs, strict=True))


class Arm:
    """One robot in both programs, with the same random states in the coordinate order of each."""

    def __init__(self, path: Path, frame: str, worlds: int):
        self.frame = frame
        self.mechanism = zw.load(path)
        # Pinocchio's functions do not include the joint damping of the URDF
        self.mechanism = self.mechanism.replace(forces=(), constraints=())
        self.model = pin.buildModelFromUrdf(str(path))
        self.data = self.model.createData()
        self.model.armature[:] = 0
        rng = np.random.default_rng(0)
        self.q, self.v, self.tau, self.a = rng.normal(size=(4, worlds, self.mechanism.nv))
        order = [self.model.names[k] for k in range(1, self.model.njoints)]
        ours = [self.mechanism.joint(name).v.start for name in order]
        self.theirs = [np.asfortranarray(x[:, ours].T) for x in (self.q, self.v, self.tau, self.a)]
        self.rows = [np.ascontiguousarray(x.T) for x in self.theirs]
        self.order = ours
        self.worlds = worlds

    def check(self, fast: CompiledMechanism) -> float:
        """The largest relative difference of the forward dynamics over some worlds."""
        ours = fast.forward_dynamics(self.q[:50], self.v[:50], self.tau[:50])[:, self.order]
        theirs = [pin.aba(self.model, self.data, *(x[k] for x in self.rows[:3])).copy() for k in range(50)]
        return float(np.max(np.abs(ours - theirs) / np.abs(theirs).max(axis=1, keepdims=True)))


def batch_table(arm: Arm, name: str, count: int) -> list[str]:
    """The rows of the table: time [ns] per world and core of each function in double and float, of the peer,
    and the ratio.
    """
    double = zw.compile(arm.mechanism, threads=1)
    single = zw.compile(arm.mechanism, threads=1, dtype="float32")
    q, v, tau, a = arm.q, arm.v, arm.tau, arm.a
    small = [x.astype("float32") for x in (q, v, tau, a)]
    model, data, rows = arm.model, arm.data, arm.rows
    Q, V, T, A = arm.theirs
    pool, out = pin.ModelPool(model, 1), np.zeros_like(V)
    frame = model.getFrameId(arm.frame)
    some = range(min(256, arm.worlds))

    def each(function: Callable[[int], object]) -> Callable[[], object]:
        return lambda: [function(k) for k in some]

    peers = {
        "forward dynamics": ("abaInParallel", lambda: pin.abaInParallel(1, pool, Q, V, T, out), arm.worlds),
        "inverse dynamics": ("rneaInParallel", lambda: pin.rneaInParallel(1, pool, Q, V, A, out), arm.worlds),
        "mass matrix": (
            "crba, called from Python",
            each(lambda k: pin.crba(model, data, rows[0][k])),
            len(some),
        ),
        "frame Jacobian": (
            "computeFrameJacobian, called from Python",
            each(lambda k: pin.computeFrameJacobian(model, data, rows[0][k], frame)),
            len(some),
        ),
        "derivatives of forward dynamics": (
            "computeABADerivatives, called from Python",
            each(lambda k: pin.computeABADerivatives(model, data, rows[0][k], rows[1][k], rows[2][k])),
            len(some),
        ),
    }
    calls = {
        "forward dynamics": lambda f, q, v, t, a: f.forward_dynamics(q, v, t),
        "inverse dynamics": lambda f, q, v, t, a: f.inverse_dynamics(q, v, a),
        "mass matrix": lambda f, q, v, t, a: f.mass_matrix(q),
        "frame Jacobian": lambda f, q, v, t, a: f.frame_jacobian(q, arm.frame),
        "derivatives of forward dynamics": lambda f, q, v, t, a: f.forward_dynamics_derivatives(q, v, t),
    }
    table = []
    for what, (peer, theirs, worlds) in peers.items():
        call = calls[what]
        times = interleaved_times(
            {
                "double": (lambda call=call: call(double, q, v, tau, a), 3),
                "float": (lambda call=call: call(single, *small), 3),
                "peer": (theirs, 1),
            },
            count,
        )
        per = {k: [t / (worlds if k == "peer" else arm.worlds) for t in ts] for k, ts in times.items()}
        ns = {k: 1e9 * statistics.median(ts) for k, ts in per.items()}
        times_faster = ratio(per["double"], per["peer"])
        table.append(
            f"| {name} | {what} | {ns['double']:.1f} | {ns['float']:.1f} | {ns['peer']:.0f} ({peer}) "
            f"| {times_faster:.0f} |"
        )
    return table


def single_row(arm: Arm, name: str, count: int) -> str:
    """The row of the table for one world called from Python [microseconds]."""
    fast = zw.compile(arm.mechanism)
    q, v, tau = (np.ascontiguousarray(x[0]) for x in (arm.q, arm.v, arm.tau))
    pq, pv, pt = (row[0].copy() for row in arm.rows[:3])
    times = interleaved_times(
        {
            "ours": (lambda: fast.forward_dynamics(q, v, tau), 2000),
            "peer": (lambda: pin.aba(arm.model, arm.data, pq, pv, pt), 2000),
        },
        count,
    )
    us = {k: 1e6 * statistics.median(ts) for k, ts in times.items()}
    return f"| {name} | {us['ours']:.2f} | {us['peer']:.2f} | {ratio(times['ours'], times['peer']):.1f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worlds", type=int, default=4096)
    parser.add_argument("--repetitions", type=int, default=21)
    options = parser.parse_args()
    arms = {n: Arm(data_folder() / path, frame, options.worlds) for n, (path, frame) in ROBOTS.items()}
    print("operations of forward dynamics, and its largest relative difference from Pinocchio's aba:")
    for name, arm in arms.items():
        fast = zw.compile(arm.mechanism)
        counts = fast.count_operations()
        print(f"  {name}: {counts['total']} operations, {counts['flops']} flops, {arm.check(fast):.1e}")
    print(
        f"\n{options.worlds} worlds on one core, ns per world "
        f"(medians of {options.repetitions} repetitions):\n"
    )
    print(
        "| robot | function | double | float | Pinocchio | speedup (double) |\n"
        "| --- | --- | --- | --- | --- | --- |"
    )
    for name, arm in arms.items():
        print("\n".join(batch_table(arm, name, options.repetitions)), flush=True)
    print("\none world called from Python, microseconds:\n")
    print("| robot | zwang | Pinocchio aba | speedup |\n| --- | --- | --- | --- |")
    for name, arm in arms.items():
        print(single_row(arm, name, options.repetitions), flush=True)


if __name__ == "__main__":
    main()
