"""The functions of a mechanism in other programs: overhead of a call, and rate of a batch.

    python benchmarks/interop.py [--worlds 4096] [--repetitions 101] [--robot Panda]
    python benchmarks/interop.py --loops

Needs `pip install '.[test]'`; programs that are not installed are left out. Each repetition measures every
function once, for some milliseconds where that is possible; the shortest times are printed as Markdown
tables, because other processes only add to them. The overhead is the time beyond that of the method of the
compiled mechanism. With --loops, forward dynamics alone is called in loops of 20, the programs in turn, and
the shortest processor times are printed: those of warm caches.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import warnings
from collections.abc import Callable
from importlib.util import find_spec

import numpy as np

import zwang as zw
from benchmarks.dynamics import ROBOTS, data_folder, interleaved_times

STEP = {"step": 0.002, "integrator": "rk4"}
Work = dict[str, tuple[Callable[[], object], int]]


def native(fast, arrays, worlds: int) -> Work:
    repeat = 20 if worlds == 1 else 5
    return {
        "forward dynamics": (lambda: fast.forward_dynamics(*arrays), 20),
        "its Jacobian": (
            lambda: fast.compiled_function(("jacobian", "forward_dynamics", ("q", "v", "tau")))(*arrays),
            repeat,
        ),
        "step (RK4)": (lambda: fast.step(*arrays, **STEP), repeat),
    }


def in_jax(fast, arrays, worlds: int) -> Work:
    import jax  # noqa: PLC0415

    jax.config.update("jax_enable_x64", True)
    import zwang.interop.jax as zwang_jax  # noqa: PLC0415

    function = zwang_jax.function(fast.forward_dynamics)
    given = [jax.numpy.asarray(x) for x in arrays]
    values = jax.jit(function if worlds == 1 else jax.vmap(function))
    gradient = jax.jit(jax.grad(lambda *x: function(*x).sum(), argnums=(0, 1, 2)))
    step = jax.jit(zwang_jax.function(fast.step, **STEP))
    repeat = 20 if worlds == 1 else 5
    return {
        "forward dynamics": (lambda: values(*given).block_until_ready(), 20),
        "its Jacobian": (lambda: jax.block_until_ready(gradient(*given)), repeat),
        "step (RK4)": (lambda: jax.block_until_ready(step(*given)), repeat),
    }


def in_casadi(fast, arrays, worlds: int, **form) -> Work:
    if worlds > 1:
        return {}
    import zwang.interop.casadi as zwang_casadi  # noqa: PLC0415

    function = zwang_casadi.function(fast.forward_dynamics, **form)
    jacobian = function.jacobian()
    given = [*arrays, np.zeros(arrays[1].shape)]
    buffers = [(f, *f.buffer()) for f in (function, jacobian)]
    works = {}
    for name, (f, buffer, trigger) in zip(("forward dynamics", "its Jacobian"), buffers, strict=True):
        for k in range(f.n_in()):
            buffer.set_arg(k, memoryview(given[k]))
        results = [np.zeros(f.nnz_out(k)) for k in range(f.n_out())]
        for k, result in enumerate(results):
            buffer.set_res(k, memoryview(result))
        works[name] = (lambda trigger=trigger, kept=(given, results, buffer): trigger(), 20)
    return works


def in_casadi_callback(fast, arrays, worlds: int) -> Work:
    return in_casadi(fast, arrays, worlds, library=False)


def in_casadi_library(fast, arrays, worlds: int) -> Work:
    folder = tempfile.mkdtemp()
    return in_casadi(fast, arrays, worlds, library=f"{folder}/dynamics")


def in_casadi_symbols(fast, arrays, worlds: int) -> Work:
    return in_casadi(fast, arrays, worlds, symbolic=True)


def in_torch(fast, arrays, worlds: int) -> Work:
    import torch  # noqa: PLC0415

    import zwang.interop.torch as zwang_torch  # noqa: PLC0415

    torch.set_num_threads(1)  # of PyTorch's own operations, which wait long where other processes compute
    function = zwang_torch.function(fast.forward_dynamics)
    given = [torch.from_numpy(x) for x in arrays]
    step = zwang_torch.function(fast.step, **STEP)
    leaves = [x.clone().requires_grad_() for x in given]
    repeat = 20 if worlds == 1 else 5
    return {
        "forward dynamics": (lambda: function(*given), 20),
        "its Jacobian": (lambda: torch.autograd.grad(function(*leaves).sum(), leaves), repeat),
        "step (RK4)": (lambda: step(*given), repeat),
    }


PROGRAMS = {
    "JAX (jit)": ("jax", in_jax),
    "PyTorch": ("torch", in_torch),
    "CasADi, callback": ("casadi", in_casadi_callback),
    "CasADi, library": ("casadi", in_casadi_library),
    "CasADi, SX": ("casadi", in_casadi_symbols),
}


def table(fast, worlds: int, count: int) -> list[str]:
    """The rows of the table for this number of worlds, times in microseconds."""
    mechanism = fast.mechanism
    rng = np.random.default_rng(0)
    shape = (worlds,) if worlds > 1 else ()
    arrays = [rng.normal(size=(*shape, n)) for n in (mechanism.nq, mechanism.nv, mechanism.nv)]
    works = {("native", name): work for name, work in native(fast, arrays, worlds).items()}
    for program, (library, make) in PROGRAMS.items():
        if find_spec(library) is not None:
            works |= {(program, name): work for name, work in make(fast, arrays, worlds).items()}
    times = interleaved_times({str(key): work for key, work in works.items()}, count)
    shortest = {key: min(times[str(key)]) for key in works}
    rows = []
    for (program, name), seconds in shortest.items():
        own = shortest["native", name]
        rows.append(
            f"| {program} | {name} | {worlds} | {seconds * 1e6:.1f} | {(seconds - own) * 1e6:.1f} | "
            f"{100 * own / seconds:.0f} % |"
        )
    return rows


def loops(fast, worlds: int, count: int) -> list[str]:
    """The rows of forward dynamics in loops of calls, processor times in microseconds."""
    mechanism, rng = fast.mechanism, np.random.default_rng(0)
    shape = (worlds,) if worlds > 1 else ()
    arrays = [rng.normal(size=(*shape, n)) for n in (mechanism.nq, mechanism.nv, mechanism.nv)]
    calls = {"native": native(fast, arrays, worlds)["forward dynamics"][0]}
    for program in ("JAX (jit)", "PyTorch"):
        library, make = PROGRAMS[program]
        if find_spec(library) is not None:
            calls[program] = make(fast, arrays, worlds)["forward dynamics"][0]
    shortest = dict.fromkeys(calls, float("inf"))
    for _ in range(count):
        for program, call in calls.items():
            call()
            began = time.process_time()
            for _ in range(20):
                call()
            shortest[program] = min(shortest[program], (time.process_time() - began) / 20)
    own = shortest["native"]
    return [
        f"| {program} | forward dynamics | {worlds} | {seconds * 1e6:.1f} | {(seconds - own) * 1e6:.1f} | "
        f"{100 * own / seconds:.0f} % |"
        for program, seconds in shortest.items()
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worlds", type=int, default=4096)
    parser.add_argument("--repetitions", type=int, default=101)
    parser.add_argument("--robot", choices=ROBOTS, default="Panda")
    parser.add_argument("--loops", action="store_true", help="forward dynamics alone, in loops of calls")
    options = parser.parse_args()
    warnings.simplefilter("ignore", zw.errors.PlausibilityWarning)
    mechanism = zw.load(data_folder() / ROBOTS[options.robot][0]).replace(forces=(), constraints=())
    fast = zw.compile(mechanism)
    print("| program | function | worlds | microseconds | beyond native | of the native rate |")
    print("| --- | --- | --- | --- | --- | --- |")
    for worlds in (1, options.worlds):
        print("\n".join((loops if options.loops else table)(fast, worlds, options.repetitions)))


if __name__ == "__main__":
    main()
