"""Pictures of a recording: histories, phase portraits, energies, drift, forces, the Zwang; for one joint or thirty, one world or thousands.

One world: panels by unit, with a line for each coordinate. A few worlds: a panel for each coordinate, a line for each world. Many:
a panel for each coordinate, with the median and the bands that hold half and nine tenths of the worlds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Any

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from zwang.errors import ShapeError, SimulationError
from zwang.mechanism.type_validation import validated_arguments
from zwang.view.picture_file import save_picture
from zwang.view.plot_series import DRIFT, SUM, WHOLE, Series, energy_drift, series_of

PICTURES = (".png", ".pdf", ".svg")
FEW_WORLDS = 6  # drawn line by line; more, as bands
FEW_LINES = 8  # in one panel can be told apart
FEW_PORTRAITS = 24  # worlds in a phase portrait
MOST_POINTS = 2000  # of a line: more cannot be seen
MOST_PANELS = 96
INK = "#333333"
STYLE: Any = {
    "axes.spines.top": False, "axes.spines.right": False, "axes.edgecolor": "#888888", "axes.grid": True,
    "axes.axisbelow": True, "grid.color": "#e6e6e6", "grid.linewidth": 0.7, "axes.titlesize": 10,
    "axes.titlelocation": "left", "axes.labelsize": 9, "xtick.labelsize": 8, "ytick.labelsize": 8,
    "xtick.color": INK, "ytick.color": INK, "axes.labelcolor": INK, "legend.fontsize": 8, "legend.frameon": False,
    "lines.linewidth": 1.4, "axes.formatter.useoffset": False, "axes.formatter.limits": (-3, 4),
}  # fmt: skip
ENERGIES = {
    "kinetic_energy": ("kinetic", "#d95f02"),
    "potential_energy": ("potential", "#1b9e77"),
    "energy": ("sum", INK),
}


GROUPS = (
    (("angles", "q", "coordinate", "rad"), ("angular velocities", "v", "speed", "rad/s")),
    (("displacements", "q", "coordinate", "m"), ("velocities", "v", "speed", "m/s")),
    (("quaternions", "q", "coordinate", "1"),),
)


@dataclass(frozen=True)
class Panel:
    """One pair of axes: its title, its unit, what draws it, and, if it is not the time, what is across."""

    title: str
    unit: str
    draw: Callable[[Axes], None]
    across: str = ""


@validated_arguments()
def plot(
    run: xr.Dataset,
    path: str | Path | None = None,
    *,
    kind: str = "overview",
    names: str | Sequence[str] | None = None,
) -> Figure:
    """A figure of a recording: coordinates, speeds, energies, and how far the energy has moved from its start.

    kind: "overview"; "time", all that was recorded over time; "phase", speeds against coordinates; "energy"; "drift" of the energy and off
    constraints; "forces" of constraints and contacts; "zwang" by body. Drift, forces and the Zwang are recorded where `simulate` is asked
    to, or found afterwards by `examine`. names: only these coordinates, speeds, constraints or bodies. With `path` it is also
    written to that file (.png, .pdf, .svg). Raises ShapeError for what is no recording or does not hold what is asked for,
    UnknownNameError for a kind or a name, SimulationError for another ending,
    and WriteError for a file that cannot be written, after which an old one is as it was.
    """
    _check(run, path)
    run = run.transpose("world", "time", ...)
    thin = run.isel(time=slice(None, None, max(1, run.sizes["time"] // MOST_POINTS)))
    alone = run.sizes["world"] == 1
    if kind == "overview" and names is None:
        panels = list(_of_one_world(thin) if alone else _of_worlds(thin))[:MOST_PANELS]
    else:
        found = series_of(thin, "time" if kind == "overview" else kind, names)
        panels = [panel for one in found for panel in _panels_of(one, thin["time"].values)][:MOST_PANELS]
    wide = alone or len(panels) <= 10
    most = (2 if len(panels) <= 4 else 4) if kind == "phase" else 2 if wide else 4 if len(panels) <= 32 else 6
    columns = min(max(len(panels), 1), most)
    with matplotlib.rc_context(STYLE):
        figure = _laid_out(panels, columns, wide, kind == "phase")
        figure.suptitle(_title(run, kind == "phase"), fontsize=11, x=0.01, ha="left", color=INK)
        if path is not None:
            save_picture(figure, path)
    if "inline" in matplotlib.get_backend():
        plt.close(figure)  # a notebook shows what is returned
    return figure


def _check(run: Any, path: str | Path | None) -> None:
    if not isinstance(run, xr.Dataset):
        raise ShapeError(f"zw.plot draws a recording of zw.simulate, not a {type(run).__name__}")
    if not {"q", "v", "energy"} <= set(run.data_vars) or not {"world", "time"} <= set(run.dims):
        raise ShapeError(
            "zw.plot draws a recording of zw.simulate; this dataset lacks q, v, energy, worlds or times"
        )
    if path is not None and Path(path).suffix not in PICTURES:
        raise SimulationError(
            f"{str(path)!r} ends in {Path(path).suffix!r}; a picture is written to {', '.join(PICTURES)}"
        )


def _laid_out(panels: Sequence[Panel], columns: int, wide: bool, portraits: bool) -> Figure:
    """A grid of panels, with one time axis, or each with its own."""
    rows = max(-(-len(panels) // columns), 1)
    size = (11, max(2.3 * rows, 3.0)) if wide else (3.4 * columns, 1.75 * rows + 0.8)
    if portraits:
        size = (max(3.6 * columns, 5.5), 3.0 * rows + 0.5)
    figure, grid = plt.subplots(
        rows, columns, figsize=size, sharex=not portraits, squeeze=False, layout="constrained"
    )
    for axes, panel in zip(grid.flat, panels, strict=False):
        panel.draw(axes)
        axes.set_title(short(panel.title, 44 if wide else 26), color=INK)
        axes.set_ylabel(short(panel.unit, 40))
        axes.margins(x=0.05 if panel.across else 0.01)
        if panel.across:
            axes.set_xlabel(short(panel.across, 40))
            axes.locator_params(axis="x", nbins=4)
    for axes in grid.flat[len(panels) :]:
        axes.set_visible(False)
    for column in range(0 if portraits else columns):
        shown = [k for k in range(column, len(panels), columns)]
        if shown:
            last = grid.flat[shown[-1]]
            last.set_xlabel("time [s]")
            last.xaxis.set_tick_params(labelbottom=True)
    return figure


def _title(run: xr.Dataset, portraits: bool = False) -> str:
    worlds, stopped = run.sizes["world"], int(run["status"].sum()) if "status" in run else 0
    text = f"{short(str(run.attrs.get('title', 'run')), 60)}, {run.attrs.get('integrator', '')}, step {run.attrs.get('step', 0):g} s"
    if worlds > 1:
        text += f", {worlds:,} worlds"
    if portraits and worlds > FEW_PORTRAITS:
        text += f", {FEW_PORTRAITS} of them shown"
    elif worlds > FEW_WORLDS and not portraits:
        text += ": median, and bands of 50 % and 90 %"
    return text + (f"; {stopped:,} stopped early" if stopped else "")


# ---------------------------------------------------------------------------------------------- one world


def _of_one_world(run: xr.Dataset) -> Iterator[Panel]:
    time, world = run["time"].values, run.isel(world=0)
    for group in GROUPS:
        chunks = [list(_chunks(world, *kind)) for kind in group]
        for title, unit, values, names in (x for row in zip_longest(*chunks) for x in row if x is not None):
            yield Panel(title, _bracketed(unit), lambda axes, v=values, n=names: _lines(axes, time, v, n))
    energies = {label: (world[name].values, color) for name, (label, color) in ENERGIES.items()}
    yield Panel("energy", "[J]", lambda axes: _energy_lines(axes, time, energies))
    drift = energy_drift(run)[0]
    yield Panel(DRIFT, "[1]", lambda axes: _drift_line(axes, time, drift))


def _chunks(
    world: xr.Dataset, title: str, name: str, axis: str, unit: str
) -> Iterator[tuple[str, str, Any, Any]]:
    """What one panel can show of all that has the unit: title, unit, values (times, n), names."""
    chosen = np.flatnonzero(world[f"{axis}_unit"].values.astype(str) == unit)
    count = -(-len(chosen) // FEW_LINES)
    for k, part in enumerate(np.array_split(chosen, count) if count else []):
        number = f", {k + 1} of {count}" if count > 1 else ""
        yield title + number, unit, world[name].values[:, part], world[axis].values[part]


def _lines(
    axes: Axes, time: np.ndarray, values: np.ndarray, names: Sequence[Any], steep: bool = False
) -> None:
    """A line for each column, named beside the panel; a sum is dark."""
    for k, name in enumerate(names):
        look: Any = {"color": INK, "linewidth": 1.0, "zorder": 1.9} if name == SUM else {"color": f"C{k}"}
        axes.plot(time, values[:, k], label=short(str(name)), **look)
    if list(names) != [WHOLE]:
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), handlelength=1.2, labelspacing=0.3)
    _scaled(axes, values, steep)


def _energy_lines(axes: Axes, time: np.ndarray, energies: dict[str, tuple[np.ndarray, str]]) -> None:
    for label, (values, color) in energies.items():
        axes.plot(time, values, color=color, label=label)
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), handlelength=1.2)


def _drift_line(axes: Axes, time: np.ndarray, drift: np.ndarray) -> None:
    axes.plot(time, drift, color=INK)
    axes.axhline(0, color="#888888", linewidth=0.8)


# --------------------------------------------------------------------------------------------- many worlds


def _of_worlds(run: xr.Dataset) -> Iterator[Panel]:
    time = run["time"].values
    for name, axis, color in (("q", "coordinate", "#1f5fa8"), ("v", "speed", "#b3541e")):
        for k, label in enumerate(run[axis].values):
            values, unit = run[name].values[..., k], str(run[f"{axis}_unit"].values[k])
            title = f"{label}" if name == "q" else f"{label}, speed"
            yield Panel(title, _bracketed(unit), lambda axes, v=values, c=color: _worlds(axes, time, v, c))
    for name, (label, color) in ENERGIES.items():
        values = run[name].values
        title = "energy" if label == "sum" else f"{label} energy"
        yield Panel(title, "[J]", lambda axes, v=values, c=color: _worlds(axes, time, v, c))
    drift = energy_drift(run)
    yield Panel(DRIFT, "[1]", lambda axes: _worlds(axes, time, drift, "#7570b3"))


def _worlds(axes: Axes, time: np.ndarray, values: np.ndarray, color: str) -> None:
    """Lines for a few worlds, bands for many; values (worlds, times), NaN after a stop."""
    if len(values) <= FEW_WORLDS:
        for k, row in enumerate(values):
            axes.plot(time, row, color=color, alpha=1.0 - 0.7 * k / len(values), linewidth=1.1)
        return
    low, quarter, middle, three_quarters, high = percentiles(values, (5, 25, 50, 75, 95))
    axes.fill_between(time, low, high, color=color, alpha=0.16, linewidth=0)
    axes.fill_between(time, quarter, three_quarters, color=color, alpha=0.32, linewidth=0)
    axes.plot(time, middle, color=color, linewidth=1.3)


def percentiles(values: np.ndarray, levels: Sequence[float]) -> np.ndarray:
    """(levels, times) over the worlds that are still there; NaN where none is."""
    alive = np.isfinite(values).any(axis=0)
    found = np.full((len(levels), values.shape[1]), np.nan)
    if alive.any():
        found[:, alive] = np.nanpercentile(values[:, alive], levels, axis=0)
    return found


# --------------------------------------------------------------------------------------------- other kinds


def _panels_of(series: Series, time: np.ndarray) -> Iterator[Panel]:
    """Of one world, lines of one unit together, as many as can be told apart; of several, a panel for each; or a portrait."""
    unit, names = _bracketed(series.unit), series.names
    if series.across is not None:
        yield Panel(
            names[0], f"rate {unit}", partial(_portrait, series=series), f"{names[0]} [{series.across_unit}]"
        )
    elif len(series.values) > 1:
        for k, name in enumerate(names):
            values = _sized(series.values[..., k], series.steep)
            yield Panel(
                f"{name}: {series.title}",
                unit,
                partial(_several, time=time, values=values, steep=series.steep),
            )
    else:
        values = _sized(series.values[0], series.steep)
        count = 1 if series.parts else -(-len(names) // FEW_LINES)
        for k, part in enumerate(np.array_split(np.arange(len(names)), count)):
            number = f", {k + 1} of {count}" if count > 1 else ""
            shown = [names[i] for i in part]
            draw = partial(_lines, time=time, values=values[:, part], names=shown, steep=series.steep)
            yield Panel(series.title + number, unit, draw)


def _sized(values: np.ndarray, steep: bool) -> np.ndarray:
    """The values; on a logarithmic axis, zero is not there."""
    return np.where(values > 0, values, np.nan) if steep else values


def _several(axes: Axes, time: np.ndarray, values: np.ndarray, steep: bool) -> None:
    _worlds(axes, time, values, "#1f5fa8")
    _scaled(axes, values, steep)


def _scaled(axes: Axes, values: np.ndarray, steep: bool) -> None:
    if steep and np.isfinite(values).any():
        axes.set_yscale("log")


def _portrait(axes: Axes, series: Series) -> None:
    """A curve for each world, of many only some; a dot where it begins."""
    worlds = len(series.values)
    chosen = np.unique(np.linspace(0, worlds - 1, min(worlds, FEW_PORTRAITS)).round().astype(int))
    assert series.across is not None
    for w in chosen:
        x, y = series.across[w, :, 0], series.values[w, :, 0]
        faint = 1.0 if worlds == 1 else max(0.25, 1.0 - 0.1 * len(chosen))
        (line,) = axes.plot(x, y, linewidth=1.1, alpha=faint, color="#1f5fa8")
        axes.plot(x[:1], y[:1], "o", markersize=4, color=line.get_color())


def _bracketed(unit: str) -> str:
    return f"[{unit}]"


def short(text: str, length: int = 24) -> str:
    """Text for a label: never read as mathematics, never left out, and not longer than fits."""
    text = "".join(c if c.isprintable() else " " for c in text)
    text = text if len(text) <= length else text[: length - 1] + "…"
    text = text.replace("$", r"\$")
    return f" {text}" if text.startswith("_") else text  # a legend leaves out what begins so
