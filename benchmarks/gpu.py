"""Rates of functions on an NVIDIA GPU: zwang's PTX, launched by CuPy, against all cores of the processor.

    python -m benchmarks.gpu half_cheetah=FILE ... [--function step] [--worlds 262144]

The states are those of 4,096 worlds after 60 steps of random controls, in contact where the model has any,
repeated; the outputs are compared bit for bit. Medians of interleaved runs of one call each, in millions of
worlds a second. PTX is loaded before: the driver compiles it.
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


def measure(name: str, file: Path, function: str, dtype: str, count: int) -> str:
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

    works: list[Callable[[], object]] = [on_gpu, lambda: compiled(*inputs)]
    seconds = [[_seconds(work) for work in works] for _ in range(REPETITIONS)]
    gpu, processor = (statistics.median(times) for times in zip(*seconds, strict=True))
    same = all(np.array_equal(x.get().T, y) for x, y in zip(outputs, expected, strict=True))
    return (
        f"{name} {function} {dtype}: GPU {count / gpu / 1e6:.4g}, processor {count / processor / 1e6:.4g}, "
        f"loaded in {loading:.1f} s, {'same bits' if same else 'OTHER BITS'}"
    )


def _seconds(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n", maxsplit=1)[0])
    parser.add_argument("models", nargs="+", metavar="NAME=FILE")
    parser.add_argument("--function", default="step")
    parser.add_argument("--worlds", type=int, default=262144, help="a multiple of 4096")
    options = parser.parse_args()
    for model in options.models:
        name, _, file = model.partition("=")
        for dtype in ("float64", "float32"):
            print(measure(name, Path(file), options.function, dtype, options.worlds), flush=True)


if __name__ == "__main__":
    main()
