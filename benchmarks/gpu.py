"""Rates of functions on an NVIDIA GPU: zwang's PTX, launched by CuPy, against all cores of the processor.

    python -m benchmarks.gpu half_cheetah=FILE ... [--function step] [--worlds 262144] [--warp]

The states are those of 4,096 worlds after 60 steps of random controls, in contact where the model has any,
repeated; the outputs are compared bit for bit. Medians of interleaved runs of one call each, in millions of
worlds a second. PTX is loaded before: the driver compiles it. With --warp, steps of MuJoCo Warp as well, in
single precision (pip install mujoco_warp).
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import cupy
import numpy as np

import zwang as zw

BASE, REPETITIONS, THREADS = 4096, 7, 128


def states(mechanism: zw.Mechanism) -> dict[str, np.ndarray]:
    """Inputs of functions (BASE, size), by name."""
    worlds, rng = zw.Worlds(mechanism, BASE), np.random.default_rng(0)
    for _ in range(60):
        worlds.step(rng.uniform(-1, 1, worlds.control.shape))
    found = {name: np.array(getattr(worlds, name)) for name in ("q", "v", "activation", "control")}
    return {**found, **{name: rng.normal(size=(BASE, mechanism.nv)) for name in ("tau", "a")}}


def measure(name: str, file: Path, function: str, dtype: str, count: int, with_warp: bool) -> str:
    fast = zw.compile(zw.load(file, strict=False), dtype=dtype)
    key = fast.step_key() if function == "step" else function
    compiled, given = fast.compiled_function(key), states(fast.mechanism)
    inputs = [np.tile(given[port.name].astype(dtype), (count // BASE, 1)) for port in compiled.program.inputs]
    results = compiled(*inputs)
    expected = [x for x in (results if isinstance(results, tuple) else (results,)) if x.shape[1]]
    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder) / "function.ptx"
        text.write_text(fast.source("ptx", key))
        begin = time.perf_counter()
        kernel = cupy.RawModule(path=str(text)).get_function("zwang")
        loading = time.perf_counter() - begin
    arrays = [cupy.asarray(np.ascontiguousarray(x.T)) for x in (*inputs, *expected) if x.shape[1]]
    outputs = arrays[-len(expected) :]
    for x in outputs:
        x.fill(np.nan)
    arguments = [a for x in arrays for a in (x, np.int64(1), np.int64(count))]

    def on_gpu() -> None:
        kernel((-(-count // THREADS),), (THREADS,), (*arguments, np.int64(count)))
        cupy.cuda.Device().synchronize()

    works: dict[str, Callable[[], object]] = {"GPU": on_gpu, "processor": lambda: compiled(*inputs)}
    differences = ""
    if with_warp:
        from benchmarks.mujoco_warp_steps import by_warp  # noqa: PLC0415

        works["MuJoCo Warp"], positions = by_warp(file, given, count)
        difference = np.abs(positions - expected[0][: len(positions)]).max(axis=1)
        differences = f", its q differs by {np.median(difference):.1g} (median), {difference.max():.1g}"
    seconds = [[_seconds(work) for work in works.values()] for _ in range(REPETITIONS)]
    medians = map(statistics.median, zip(*seconds, strict=True))
    rates = ", ".join(
        f"{which} {count / median / 1e6:.4g}" for which, median in zip(works, medians, strict=True)
    )
    same = all(np.array_equal(x.get().T, y) for x, y in zip(outputs, expected, strict=True))
    bits = "same bits" if same else "OTHER BITS"
    return f"{name} {function} {dtype}: {rates}{differences}; loaded in {loading:.1f} s, {bits}"


def _seconds(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n", maxsplit=1)[0])
    parser.add_argument("models", nargs="+", metavar="NAME=FILE")
    parser.add_argument("--function", default="step")
    parser.add_argument("--worlds", type=int, default=262144, help="a multiple of 4096")
    parser.add_argument("--warp", action="store_true", help="steps of MuJoCo Warp as well")
    options = parser.parse_args()
    if options.warp and options.function != "step":
        parser.error("--warp compares steps")
    for model in options.models:
        name, _, file = model.partition("=")
        for dtype in ("float64", "float32"):
            with_warp = options.warp and dtype == "float32"
            print(measure(name, Path(file), options.function, dtype, options.worlds, with_warp), flush=True)


if __name__ == "__main__":
    main()
