"""Compile times without and with the cache, memory, and the fraction of the core's peak performance that is
reached.

    python benchmarks/compiling.py

Needs `pip install '.[test]'`. Each measurement runs in a new process, so that nothing is cached in memory.
Times are wall times; memory is the maximum resident set size.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
from dynamics import ROBOTS, data_folder

import zwang as zw
from zwang.compiler.runtime.peak import peak_gflops


def robot(name: str) -> zw.Mechanism:
    return zw.load(data_folder() / ROBOTS[name][0]).replace(forces=(), constraints=())


def branches(count: int, length: int) -> zw.Mechanism:
    """`count` chains of `length` links with revolute joints and full inertias; the axes alternate between x,
    y and z.
    """
    rng = np.random.default_rng(0)
    bodies = []
    for b in range(count):
        for k in range(length):
            bodies.append(
                zw.Body(
                    f"b{b}.{k}",
                    parent=f"b{b}.{k - 1}" if k else "world",
                    joint=zw.Revolute(f"j{b}.{k}", axis=np.eye(3, dtype=int)[k % 3]),
                    position=(0, 0, 0.1),
                    mass=1,
                    com=rng.normal(size=3) * 0.1,
                    inertia=(0.1, 0.12, 0.13, 0.01, 0.01, 0.01),
                )
            )
    return zw.Mechanism(name=f"{count} x {length}", bodies=bodies)


def once(what: str) -> None:
    """Compile one forward dynamics, and print the seconds, megabytes and operations."""
    m = robot(what) if what in ROBOTS else branches(*map(int, what.split("x")))
    zeros = np.zeros((16, m.nv))
    zw.compile  # noqa: B018  import the compiler's modules before the time measurement starts
    begin = time.perf_counter()
    fast = zw.compile(m)
    fast.forward_dynamics(zeros, zeros, zeros)
    seconds = time.perf_counter() - begin
    print(
        seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, fast.count_operations()["total"]
    )


def measured(what: str, folder: str) -> list[float]:
    command = [sys.executable, __file__, what]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, env={**os.environ, "ZWANG_CACHE": folder}
    )
    return [float(x) for x in done.stdout.split()]


def rate(name: str, dtype: str) -> float:
    """GFLOP/s of forward dynamics on one core, with 512 worlds."""
    m = robot(name)
    fast = zw.compile(m, dtype=dtype, threads=1)
    q, v, tau = np.random.default_rng(0).normal(size=(3, 512, m.nv)).astype(dtype)
    fast.forward_dynamics(q, v, tau)
    times = []
    for _ in range(300):
        begin = time.perf_counter()
        fast.forward_dynamics(q, v, tau)
        times.append(time.perf_counter() - begin)
    return fast.count_operations()["flops"] * 512 / statistics.median(times) / 1e9


def million() -> tuple[float, float]:
    """The memory [MB] beyond inputs and outputs, and the time [s], of a million Panda worlds."""
    m = robot("Panda")
    fast = zw.compile(m)
    q, v, tau = np.random.default_rng(0).normal(size=(3, 1_000_000, m.nv))
    fast.forward_dynamics(q[:16], v[:16], tau[:16])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begin = time.perf_counter()
    a = fast.forward_dynamics(q, v, tau)
    seconds = time.perf_counter() - begin
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return (after - before) / 1024 - a.nbytes / 2**20, seconds


def main() -> None:
    print(
        "| forward dynamics of | operations | without cache, s | with cache, s | memory, MB |\n"
        "| --- | --- | --- | --- | --- |"
    )
    for what in ("UR5", "Panda", "Talos", "1x200", "30x10"):
        with tempfile.TemporaryDirectory() as folder:
            fresh = measured(what, folder)
            again = [measured(what, folder)[0] for _ in range(3)]
        print(
            f"| {what} | {fresh[2]:.0f} | {fresh[0]:.2f} | {statistics.median(again):.3f} | {fresh[1]:.0f} |",
            flush=True,
        )
    for dtype in ("float64", "float32"):
        reached = ", ".join(f"{name} {rate(name, dtype):.0f}" for name in ROBOTS)
        print(
            f"\n{dtype}: GFLOP/s of one core: {reached}; "
            f"a kernel of multiply-adds only: {peak_gflops(dtype):.0f}"
        )
    megabytes, seconds = million()
    print(f"\na million Panda worlds: {megabytes:.0f} MB beyond inputs and outputs, {seconds:.2f} s")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        once(sys.argv[1])
    else:
        main()
