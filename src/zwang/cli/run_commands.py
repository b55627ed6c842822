"""Commands that simulate, plot and display a motion: `zwang simulate`, `zwang plot` and `zwang view`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import xarray as xr
from cyclopts import Parameter
from rich.markup import escape
from rich.table import Table

import zwang as zw
from zwang.cli.application import INTERRUPTED
from zwang.cli.command_options import (
    FILE_OPTIONS,
    Compiled,
    Coordinates,
    Duration,
    FileOptions,
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
)
from zwang.cli.console import out, print_to_stderr
from zwang.cli.initial_states import initial_states
from zwang.cli.inputs import check_counts, check_keyframe, model_of, parse_pairs
from zwang.cli.result_files import (
    EXPORTS,
    PAGES,
    PICTURES,
    RECORDINGS,
    check_output_files,
    recording_from_file,
)
from zwang.errors import SimulationError, SimulationInterrupted
from zwang.recording.energy_change import energy_summary
from zwang.simulation.quantities.constraint_forces import point_force_labels
from zwang.viewer.plot_series import force_quantities

DERIVED = {"drift": ("violations",), "zwang": ("zwang",)}
"""For some kinds of plots, the quantities that `zw.derived_quantities` computes for them; for forces these
are `force_quantities`.
"""


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
    files: FileOptions = FILE_OPTIONS,
    strict: Strict = True,
    compiled: Compiled = True,
) -> int:
    """Simulate a model. Write the motion as a recording, a plot or a web page.

    Closed loops and other hard constraints are closed at the start, with the values of --q0 and --v0 held.
    Ctrl-C ends the run; what was recorded is still written, and the exit status is 130.
    """
    check_output_files({"--out": (out_file, EXPORTS), "--plot": (plot, PICTURES), "--html": (html, PAGES)})
    check_counts(worlds, seed)
    m = model_of(model, files, strict=strict, param=param, keyframe=keyframe)
    if not m.nv:
        raise SimulationError(
            f"{str(model)!r} has no movable joint, so there is nothing to simulate; "
            "`zwang info` lists its bodies"
        )
    check_keyframe(keyframe, {"--q0": q0, "--v0": v0, "--spread": spread})
    start = (keyframe, None) if keyframe else initial_states(m, worlds, spread, seed, q0, v0)
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


def plot(
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
    files: FileOptions = FILE_OPTIONS,
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
    what: Any = recording_from_file(model) if recorded else model_of(model, files, strict=strict, param=param)
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
