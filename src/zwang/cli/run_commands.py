"""Commands that simulate, plot and display a motion: `zwang simulate`, `zwang plot` and `zwang view`."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import xarray as xr
from cyclopts import Parameter
from rich.markup import escape
from rich.table import Table

import zwang as zw
from zwang.api.arguments.initial_conditions import initial_state
from zwang.cli.application import INTERRUPTED, app
from zwang.cli.command_options import (
    Base,
    Compiled,
    Coordinates,
    Duration,
    Inputs,
    Integrator,
    Keyframe,
    Kind,
    Model,
    Names,
    PageFile,
    PlotFile,
    RecordEvery,
    RecordForces,
    RecordingFile,
    Seed,
    Spread,
    Step,
    Strict,
    Values,
    Velocities,
    Worlds,
    WorldsShown,
    examples,
)
from zwang.cli.console import out, print_to_stderr
from zwang.cli.inputs import (
    EXPORTS,
    PAGES,
    PICTURES,
    RECORDINGS,
    check_counts,
    check_keyframe,
    check_output_files,
    model_of,
    parse_pairs,
    recording_from_file,
)
from zwang.errors import SimulationError, SimulationInterrupted
from zwang.mechanism.mechanism import Mechanism
from zwang.recording.energy_change import energy_summary
from zwang.simulation.quantities.constraint_forces import point_force_labels
from zwang.viewer.plot_series import force_quantities

SPREAD = 0.1  # default standard deviation of the random initial states of several worlds
DERIVED = {"drift": ("violations",), "zwang": ("zwang",)}
"""For some kinds of plots, the quantities that `zw.derived_quantities` computes for them; for forces these
are `force_quantities`.
"""


@app.command(
    help_epilogue=examples(
        "zwang simulate furuta --duration 2 --q0 alpha=0.1 --plot run.png",
        "zwang simulate four_bar --plot zwang.png --kind zwang",
        "zwang simulate robot.urdf --duration 2 --worlds 16 --out run.nc --html run.html",
        "zwang simulate robot.xml --keyframe home --html run.html",
        "zwang simulate four_bar --integrator rk4 --control motor=0.5 --out run.zarr",
    )
)
def simulate(
    model: Model,
    *,
    duration: Duration = 2.0,
    step: Step = None,
    integrator: Integrator = None,
    worlds: Worlds = 1,
    spread: Spread = None,
    seed: Seed = 0,
    q0: Coordinates = None,
    v0: Velocities = None,
    keyframe: Keyframe = None,
    control: Inputs = None,
    param: Values = None,
    record: RecordEvery = None,
    forces: RecordForces = None,
    out_file: RecordingFile = None,
    plot: PlotFile = None,
    kind: Kind = "overview",
    html: PageFile = None,
    base: Base = "fixed",
    strict: Strict = True,
    compiled: Compiled = True,
) -> int:
    """Simulate a model. Write the motion as a recording, a plot or a web page.

    Ctrl-C ends the run; what was recorded is still written, and the exit status is 130.
    """
    check_output_files({"--out": (out_file, EXPORTS), "--plot": (plot, PICTURES), "--html": (html, PAGES)})
    check_counts(worlds, seed)
    m = model_of(model, base=base, strict=strict, param=param, keyframe=keyframe)
    if not m.nv:
        raise SimulationError(
            f"{str(model)!r} has no movable joint, so there is nothing to simulate; "
            "`zwang info` lists its bodies"
        )
    check_keyframe(keyframe, {"--q0": q0, "--v0": v0, "--spread": spread})
    start = (keyframe, None) if keyframe else _random_initial_states(m, worlds, spread, seed, q0, v0)
    recorded = {"every": record, "forces": html is not None and forces is None}
    recorded |= dict.fromkeys(force_quantities(m) if forces else (), True)
    began = time.perf_counter()
    status = 0
    try:
        run = zw.simulate(
            m,
            *start,
            duration=duration,
            step=step,
            integrator=integrator,
            control=parse_pairs(control) or None,
            worlds=worlds,
            record=recorded,
            compiled=compiled,
        )
    except SimulationInterrupted as error:
        if not any((out_file, plot, html)):
            raise
        print_to_stderr("interrupted", "yellow", str(error))
        run, status = error.recording, INTERRUPTED
    out.print(_summary(run, time.perf_counter() - began))
    _write_results(run, out_file, plot, html, kind)
    return status


def _write_results(
    run: xr.Dataset, recording: Path | None, plot: Path | None, page: Path | None, kind: str
) -> None:
    """Write a run to those of the files whose paths are given, and print their paths."""
    if recording is not None:
        zw.save(run, recording)
    if plot is not None:
        _draw(run, plot, kind)
    if page is not None:
        zw.save_html(run, page)
    for path in (recording, plot, page):
        if path is not None:
            out.print(f"wrote {escape(str(path))}")


@app.command(
    name="plot",
    help_epilogue=examples(
        "zwang plot run.nc", "zwang plot run.nc --kind phase --name alpha --out phase.png"
    ),
)
def plot_run(
    recording: Annotated[Path, Parameter(help="Path of a recording (.nc or .zarr).")],
    *,
    kind: Kind = "overview",
    name: Names = None,
    out_file: Annotated[
        Path | None,
        Parameter(name="--out", help="File to write (.png, .pdf or .svg); by default RECORDING_KIND.png."),
    ] = None,
) -> None:
    """Plot a recording: time histories, phase portraits, energies, drift, forces, or Gauss's constraint Z."""
    path = Path(f"{recording.stem}_{kind}.png") if out_file is None else out_file
    check_output_files({"--out": (path, PICTURES)})
    _draw(recording_from_file(recording), path, kind, name)
    out.print(f"wrote {escape(str(path))}")


@app.command(
    help_epilogue=examples(
        "zwang view robot.urdf", "zwang view run.nc", "zwang view robot.urdf --html robot.html"
    )
)
def view(
    model: Annotated[
        Path,
        Parameter(
            help="Path of a URDF, MJCF or JSON file or of a recording (.nc, .zarr), or a sample's name."
        ),
    ],
    *,
    worlds: WorldsShown = 16,
    trace: Annotated[
        list[str] | None,
        Parameter(help="Draw the path of this body or frame. May be given several times.", negative=()),
    ] = None,
    forces: Annotated[
        bool,
        Parameter(help="Compute the forces from the recorded states if the recording has none."),
    ] = True,
    html: Annotated[
        Path | None, Parameter(help="Write an offline web page (.html) to this file instead.")
    ] = None,
    browser: Annotated[bool, Parameter(help="Open the page in the browser.")] = True,
    param: Values = None,
    base: Base = "fixed",
    strict: Strict = True,
) -> None:
    """Show a model with a slider for each joint, or play a recording, in the browser.

    The page is served on the loopback address, so only this computer can open it.
    """
    check_output_files({"--html": (html, PAGES)})
    check_counts(worlds)
    recorded = model.suffix in RECORDINGS
    if recorded and param:
        raise SimulationError(f"a recording has the values of its symbols; leave out --param {param[0]}")
    what: Any = (
        recording_from_file(model) if recorded else model_of(model, base=base, strict=strict, param=param)
    )
    if recorded and forces and "force" not in what and point_force_labels(zw.mechanism_of(what)):
        what = zw.derived_quantities(what.isel(world=slice(0, worlds)), "forces")
    if html is not None:
        zw.save_html(what, html, worlds=worlds, traces=trace or ())
        out.print(f"wrote {escape(str(html))}")
        return
    with zw.view(what, worlds=worlds, traces=trace or (), browser=browser) as page:
        out.print(f"{escape(page.url)}\nPress Ctrl-C to stop.")
        page.wait()


def _draw(run: xr.Dataset, path: Path, kind: str, names: Sequence[str] | None = None) -> None:
    """Write a plot; derived quantities that the recording lacks are computed first."""
    needed = force_quantities(zw.mechanism_of(run)) if kind == "forces" else DERIVED.get(kind)
    zw.plot(zw.derived_quantities(run, *needed) if needed else run, path, kind=kind, names=names)


def _random_initial_states(
    m: Mechanism,
    worlds: int,
    spread: float | None,
    seed: int,
    q0: Sequence[str] | None,
    v0: Sequence[str] | None,
) -> tuple[Any, Any]:
    """q0 and v0 for `zw.simulate`: default values, named values, and a random displacement for each world."""
    if spread is None:
        spread = SPREAD if worlds > 1 else 0.0
    elif not 0 <= spread < math.inf:
        raise SimulationError(f"--spread is {spread:g}; a standard deviation is a number from 0 on")
    q, v = parse_pairs(q0), parse_pairs(v0)
    if spread == 0 and not m.constraints:
        return q, v
    nominal = initial_state(m, q, v)
    rng = np.random.default_rng(seed)
    configurations = displaced_configurations(m, worlds, spread, rng, nominal.q[0])
    velocities = nominal.v[0] + spread * rng.normal(size=(worlds, m.nv))
    if any(
        getattr(c, "softness", None) is None for c in m.constraints
    ):  # hard constraints: assemble each world
        assembled = [zw.assemble(m, *state) for state in zip(configurations, velocities, strict=True)]
        configurations, velocities = (np.array(part) for part in zip(*assembled, strict=True))
    return configurations, velocities


def displaced_configurations(
    m: Mechanism, worlds: int, spread: float, rng: np.random.Generator, home: Any = None
) -> np.ndarray:
    """Configurations (worlds, nq) at random displacements from `home`, by default the default configuration.

    spread: standard deviation of each component of the displacement, on the tangent space [rad or m].
    """
    home = np.array(m.home or m.neutral if home is None else home, dtype=float)
    displacements = spread * rng.normal(size=(worlds, m.nv))
    return np.stack([zw.integrate_configuration(m, home, row, 1.0) for row in displacements])


def _summary(run: xr.Dataset, seconds: float) -> Table:
    """A table of a few lines: simulated time, computing time, energy, and worlds that stopped early."""
    steps = round(run.attrs["duration"] / run.attrs["step"])
    worlds, stopped = run.sizes["world"], int((run["status"] == 1).sum())
    table = Table.grid(padding=(0, 2))
    table.add_row(
        "simulated",
        f"{worlds:,} world{'s' * (worlds != 1)}, {steps:,} steps of {run.attrs['step']:g} s, "
        f"integrator {run.attrs['integrator']}",
    )
    table.add_row("computed in", f"{seconds:.2f} s, including compilation; {run.attrs['path']}")
    table.add_row("energy", energy_summary(run))
    if stopped:
        first = float(run["termination_time"].where(run["status"] == 1).min())
        table.add_row(
            "[red]stopped early[/]", f"{stopped:,} of {worlds:,} worlds, the first at {first:.4g} s"
        )
    return table
