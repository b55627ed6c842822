"""Commands that measure and demonstrate: `zwang bench` and `zwang demo`."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from cyclopts import Parameter
from rich.markup import escape
from rich.table import Table

import zwang as zw
from zwang.cli.command_options import FILE_OPTIONS, FileOptions, Model, Strict, Values
from zwang.cli.console import out
from zwang.cli.initial_states import displaced_configurations
from zwang.cli.inputs import check_counts, model_of
from zwang.errors import SimulationError
from zwang.lazy_imports import import_module


def bench(
    model: Model,
    *,
    worlds: Annotated[int, Parameter(help="Number of worlds evaluated in one call.")] = 4096,
    param: Values = None,
    files: FileOptions = FILE_OPTIONS,
    strict: Strict = True,
) -> None:
    """Measure how fast a model runs on this computer: compile time, and computing time per world of each
    function.
    """
    check_counts(worlds)
    m = model_of(model, files, strict=strict, param=param)
    if not m.nv:
        raise SimulationError(f"{str(model)!r} has no movable joint, so there is nothing to measure")
    rng = np.random.default_rng(0)
    q, v, tau = (
        displaced_configurations(m, worlds, 0.3, rng),
        rng.normal(size=(worlds, m.nv)),
        rng.normal(size=(worlds, m.nv)),
    )
    fast = zw.compile(m)
    table = Table(
        "function",
        "operations",
        escape("first call, with compilation [s]"),
        escape("one world [µs]"),
        escape(f"{worlds:,} worlds [ns per world]"),
        box=None,
    )
    for name, arguments in {
        "forward_dynamics": (q, v, tau),
        "inverse_dynamics": (q, v, tau),
        "mass_matrix": (q,),
    }.items():
        function, one_world = getattr(fast, name), [x[0] for x in arguments]
        began = time.perf_counter()
        function(*arguments)
        first_call = time.perf_counter() - began
        operations = f"{fast.count_operations(name)['total']:,}"
        table.add_row(
            name, operations, f"{first_call:.3f}", f"{_median_time(function, one_world) * 1e6:.2f}",
            f"{_median_time(function, arguments) / worlds * 1e9:.1f}",
        )  # fmt: skip
    out.print(table)


def demo(
    folder: Annotated[Path, Parameter(help="Folder for the web page, the plot and the recording.")] = Path(
        "zwang-demo"
    ),
    *,
    worlds: Annotated[int, Parameter(help="Number of worlds with random parameters.")] = 4096,
) -> None:
    """Run a complete example: Furuta's pendulum, its equations of motion, and thousands of simulated worlds.

    Prints a report, and writes a web page, a plot and a recording.
    """
    check_counts(worlds)
    import_module("zwang.demo").demonstrate(folder, worlds, out)  # late, as it loads heavy libraries


def _median_time(function: Callable[..., Any], arguments: Sequence[Any]) -> float:
    """Median time of a call [s]."""
    times = []
    until = time.perf_counter() + 0.5
    while time.perf_counter() < until or len(times) < 5:
        began = time.perf_counter()
        function(*arguments)
        times.append(time.perf_counter() - began)
    return float(np.median(times))
