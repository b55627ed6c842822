"""Elementary functions of compiled programs: time per value, compared with NumPy, and largest observed error.

    python benchmarks/elementary.py

One thread, data in the first-level cache, medians of many interleaved runs. Errors are in units in the last
place, at random arguments, relative to mpmath for doubles and to NumPy's doubles for floats; the tests check
more arguments.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import mpmath as mp
import numpy as np

from zwang import scalar
from zwang.compiler.frontend.trace import trace
from zwang.compiler.runtime.compiled_function import CompiledFunction
from zwang.compiler.runtime.peak import peak_gflops

REPETITIONS = 300
WORLDS = 512
RANGES = {
    "sin": (-10, 10),
    "cos": (-10, 10),
    "tan": (-10, 10),
    "asin": (-1, 1),
    "acos": (-1, 1),
    "exp": (-10, 10),
    "log": (0.01, 10),
    "atan2": (-3, 3),
    "power": (0.1, 3),
}
NUMPY = {"asin": "arcsin", "acos": "arccos", "atan2": "arctan2"}


def compiled(name: str, dtype: str, size: int = 16) -> CompiledFunction:
    """A compiled function of `size` numbers at once."""
    call = getattr(scalar, name)
    if name in ("atan2", "power"):
        program = trace(
            lambda x, y: [call(a, b) for a, b in zip(x, y, strict=True)], {"x": (size,), "y": (size,)}
        )
    else:
        program = trace(lambda x: [call(a) for a in x], {"x": (size,)})
    return CompiledFunction(program, dtype=dtype, threads=1)


def nanoseconds(runs: list[Callable[[], object]], values: int) -> list[float]:
    """The median time per value of each function."""
    times: list[list[float]] = [[] for _ in runs]
    for _ in range(REPETITIONS):
        for run, kept in zip(runs, times, strict=True):
            begin = time.perf_counter()
            run()
            kept.append(time.perf_counter() - begin)
    return [statistics.median(kept) / values * 1e9 for kept in times]


def error(name: str, x: list[np.ndarray], y: np.ndarray) -> float:
    """The largest error in units in the last place."""
    columns = [a.ravel()[:4000] for a in x]
    y = y.ravel()[:4000]
    if y.dtype == np.float32:
        right = getattr(np, NUMPY.get(name, name))(*(a.astype(np.float64) for a in columns))
        return float(np.max(abs(y - right) / np.spacing(abs(right.astype(np.float32)))))
    with mp.workprec(120):
        exact = [getattr(mp, name)(*map(mp.mpf, map(float, row))) for row in zip(*columns, strict=True)]
        errors = [
            abs(mp.mpf(float(b)) - e) / mp.mpf(float(np.spacing(abs(b))))
            for b, e in zip(y, exact, strict=True)
        ]
        return float(max(errors))


def main() -> None:
    rng = np.random.default_rng(0)
    for dtype in ("float64", "float32"):
        print(f"{dtype}: the peak performance of a core is {peak_gflops(dtype):.0f} GFLOP/s")
        print("function      zwang      NumPy   [ns/value]    error [ulp]")
        for name, (low, high) in RANGES.items():
            arity = 2 if name in ("atan2", "power") else 1
            x = [rng.uniform(low, high, (WORLDS, 16)).astype(dtype) for _ in range(arity)]
            function, peer = compiled(name, dtype), getattr(np, NUMPY.get(name, name))
            y = function(*x)
            assert isinstance(y, np.ndarray)
            runs: list[Callable[[], object]] = [
                lambda f=function, x=x: f(*x),
                lambda f=peer, x=x: f(*x),
            ]
            ours, theirs = nanoseconds(runs, y.size)
            print(f"{name:10} {ours:8.3f}   {theirs:8.3f}   {'':12} {error(name, x, y):10.2f}")


if __name__ == "__main__":
    main()
