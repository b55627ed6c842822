"""`zw.plot`: figures of a recording, for any number of joints and worlds.

The kinds are time histories, phase portraits, energies, drift, forces and Gauss's constraint Z. For one world
there is a panel for each unit, with a line for each coordinate. For a few worlds there is a panel for each
coordinate, with a line for each world. For many worlds each panel shows the median, and the bands that
contain 50 % and 90 % of the worlds.
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

from zwang.api.analysis.linearize import LinearModel
from zwang.errors import ShapeError, SimulationError
from zwang.mechanism.type_validation import validated_arguments
from zwang.recording.energy_change import energy_drift
from zwang.recording.mechanism_order import check_not_joined
from zwang.viewer.linear_model_plot import plot_linear_model
from zwang.viewer.picture_file import save_picture
from zwang.viewer.plot_series import DRIFT, ENERGY, SUM, Series, series_of
from zwang.viewer.plot_style import INK, STYLE, short

PICTURES = (".png", ".pdf", ".svg")
MAXIMUM_WORLD_LINES = 6  # worlds that are drawn as lines; more are drawn as bands
MAXIMUM_PANEL_LINES = 8  # lines of one panel that can be distinguished
MAXIMUM_PHASE_CURVES = 24  # worlds that a phase portrait shows
MAXIMUM_POINTS = 2000  # points of a line; more are not visible
MAXIMUM_PANELS = 96
ENERGIES = {
    "kinetic_energy": ("kinetic", "#d95f02"),
    "potential_energy": ("potential", "#1b9e77"),
    "energy": ("total", INK),
}


GROUPS = (
    (("angles", "q", "coordinate", "rad"), ("angular velocities", "v", "speed", "rad/s")),
    (("displacements", "q", "coordinate", "m"), ("velocities", "v", "speed", "m/s")),
    (("quaternions", "q", "coordinate", "1"),),
)


@dataclass(frozen=True)
class Panel:
    """One pair of axes: its title, the label of its ordinate, a function that draws it, and the label of its
    abscissa.
    """

    title: str
    unit: str
    draw: Callable[[Axes], None]
    abscissa: str = ""


@validated_arguments()
def plot(
    run: xr.Dataset | LinearModel,
    path: str | Path | None = None,
    *,
    kind: str = "overview",
    names: Sequence[str] | None = None,
) -> Figure:
    """A figure of a recording of `zw.simulate`, or of a linear model of `zw.linearize`.

    run: the recording; or the linear model, of which the figure shows the poles, and magnitude and phase of
        the frequency responses from each input to each output, at most ten; kind and names are then left out.
    path: a file to which the figure is also written (.png, .pdf or .svg).
    kind: "overview": coordinates, velocities, energies and the relative energy change (the default); "time":
        all recorded values over time; "phase": velocities against coordinates; "energy": kinetic, potential
        and total energy; "drift": energy change and constraint violation; "forces": constraint and contact
        forces, the latter summed by body with their reactions; "zwang": Gauss's constraint Z by body. The
        last three need values that `simulate` records on request, or that `derived_quantities` computes from
        a recording.
    names: only these coordinates, velocities, constraints or bodies are shown; by default all.

    Raises ShapeError for a dataset that is not a recording, lacks the values or has several recordings in a
    dimension of their own; UnknownNameError for an unknown kind or name, SimulationError for another file
    suffix, and WriteError if the file cannot be written; an existing file is then unchanged.
    """
    if isinstance(run, LinearModel):
        _check_path(path)
        if kind != "overview" or names is not None:
            raise ShapeError("the figure of a linear model has one kind and no names; omit kind= and names=")
        return plot_linear_model(run, path)
    _check(run, path)
    run = run.transpose("world", "time", ...)
    thin = run.isel(time=slice(None, None, max(1, run.sizes["time"] // MAXIMUM_POINTS)))
    single_world = run.sizes["world"] == 1
    if kind == "overview" and names is None:
        panels = list(_panels_of_one_world(thin) if single_world else _panels_of_worlds(thin))[
            :MAXIMUM_PANELS
        ]
    else:
        found = series_of(thin, "time" if kind == "overview" else kind, names)
        panels = [panel for one in found for panel in _panels_of_series(one, thin["time"].values)][
            :MAXIMUM_PANELS
        ]
    wide = single_world or len(panels) <= 10
    most = (2 if len(panels) <= 4 else 4) if kind == "phase" else 2 if wide else 4 if len(panels) <= 32 else 6
    columns = min(max(len(panels), 1), most)
    with matplotlib.rc_context(STYLE):
        figure = _layout(panels, columns, wide, kind == "phase")
        figure.suptitle(_title(run, kind == "phase"), fontsize=11, x=0.01, ha="left", color=INK)
        if path is not None:
            save_picture(figure, path)
    if "inline" in matplotlib.get_backend():
        plt.close(figure)  # a notebook displays the returned figure
    return figure


def _check(run: Any, path: str | Path | None) -> None:
    if not isinstance(run, xr.Dataset):
        raise ShapeError(
            f"zw.plot draws a recording of zw.simulate or a linear model, not a {type(run).__name__}"
        )
    if not {"q", "v", "energy"} <= set(run.data_vars) or not {"world", "time"} <= set(run.dims):
        raise ShapeError(
            "zw.plot draws a recording of zw.simulate; this dataset lacks q, v, energy, worlds or times; "
            "select a world as run.isel(world=[0])"
        )
    check_not_joined(run)
    if not run.sizes["world"] or not run.sizes["time"]:
        raise ShapeError("zw.plot needs at least one world and one time, and this selection has none")
    _check_path(path)


def _check_path(path: str | Path | None) -> None:
    """Raises SimulationError for the suffix of another file."""
    if path is not None and Path(path).suffix not in PICTURES:
        raise SimulationError(
            f"{str(path)!r} has the suffix {Path(path).suffix!r}; a plot is written to {', '.join(PICTURES)}"
        )


def _layout(panels: Sequence[Panel], columns: int, wide: bool, portraits: bool) -> Figure:
    """A figure with a grid of panels, which share the time axis unless they are phase portraits."""
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
        axes.margins(x=0.05 if panel.abscissa else 0.01)
        if panel.abscissa:
            axes.set_xlabel(short(panel.abscissa, 40))
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
    """The title of the figure: name, integrator, step size, and how many worlds are shown and
    stopped early.
    """
    worlds, stopped = run.sizes["world"], int((run["status"] == 1).sum()) if "status" in run else 0
    name, integrator = short(str(run.attrs.get("title", "run")), 60), run.attrs.get("integrator", "")
    text = f"{name}, {integrator}, step size {run.attrs.get('step', 0):g} s"
    if worlds > 1:
        text += f", {worlds:,} worlds"
    if portraits and worlds > MAXIMUM_PHASE_CURVES:
        text += f", {MAXIMUM_PHASE_CURVES} of them shown"
    elif worlds > MAXIMUM_WORLD_LINES and not portraits:
        text += ": median, and bands of 50 % and 90 %"
    return text + (f"; {stopped:,} stopped early" if stopped else "")


# -------------------------------------------------------------------------------------------------- one world


def _panels_of_one_world(run: xr.Dataset) -> Iterator[Panel]:
    time, world = run["time"].values, run.isel(world=0)
    for group in GROUPS:
        chunks = [list(_chunks(world, *kind)) for kind in group]
        for title, unit, values, names in (x for row in zip_longest(*chunks) for x in row if x is not None):
            yield Panel(
                title, _unit_label(unit), lambda axes, v=values, n=names: _draw_lines(axes, time, v, n)
            )
    energies = {label: (world[name].values, color) for name, (label, color) in ENERGIES.items()}
    yield Panel("energy", "[J]", lambda axes: _energy_lines(axes, time, energies))
    drift = energy_drift(run)[0]
    yield Panel(DRIFT, "[1]", lambda axes: _drift_line(axes, time, drift))


def _chunks(
    world: xr.Dataset, title: str, name: str, axis: str, unit: str
) -> Iterator[tuple[str, str, Any, Any]]:
    """The elements of a variable that have the unit, in groups that fit into a panel: title, unit, values
    (times, n), names.
    """
    chosen = np.flatnonzero(world[f"{axis}_unit"].values.astype(str) == unit)
    count = -(-len(chosen) // MAXIMUM_PANEL_LINES)
    for k, part in enumerate(np.array_split(chosen, count) if count else []):
        number = f", {k + 1} of {count}" if count > 1 else ""
        yield title + number, unit, world[name].values[:, part], world[axis].values[part]


def _draw_lines(
    axes: Axes, time: np.ndarray, values: np.ndarray, names: Sequence[Any], logarithmic: bool = False
) -> None:
    """Draw a line for each column, with a legend beside the panel; the sum is dark."""
    for k, name in enumerate(names):
        look: Any = {"color": INK, "linewidth": 1.0, "zorder": 1.9} if name == SUM else {"color": f"C{k}"}
        axes.plot(time, values[:, k], label=short(str(name)), **look)
    if list(names) != [ENERGY]:
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), handlelength=1.2, labelspacing=0.3)
    _set_scale(axes, values, logarithmic)


def _energy_lines(axes: Axes, time: np.ndarray, energies: dict[str, tuple[np.ndarray, str]]) -> None:
    """Draw the energies, given by label with their colours, and a legend."""
    for label, (values, color) in energies.items():
        axes.plot(time, values, color=color, label=label)
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), handlelength=1.2)


def _drift_line(axes: Axes, time: np.ndarray, drift: np.ndarray) -> None:
    """Draw the relative energy change and the line of zero."""
    axes.plot(time, drift, color=INK)
    axes.axhline(0, color="#888888", linewidth=0.8)


# ------------------------------------------------------------------------------------------------ many worlds


def _panels_of_worlds(run: xr.Dataset) -> Iterator[Panel]:
    time = run["time"].values
    for name, axis, color in (("q", "coordinate", "#1f5fa8"), ("v", "speed", "#b3541e")):
        for k, label in enumerate(run[axis].values):
            values, unit = run[name].values[..., k], str(run[f"{axis}_unit"].values[k])
            title = f"{label}" if name == "q" else f"velocity of {label}"
            yield Panel(
                title, _unit_label(unit), lambda axes, v=values, c=color: _draw_worlds(axes, time, v, c)
            )
    for name, (label, color) in ENERGIES.items():
        values = run[name].values
        title = f"{label} energy"
        yield Panel(title, "[J]", lambda axes, v=values, c=color: _draw_worlds(axes, time, v, c))
    drift = energy_drift(run)
    yield Panel(DRIFT, "[1]", lambda axes: _draw_worlds(axes, time, drift, "#7570b3"))


def _draw_worlds(axes: Axes, time: np.ndarray, values: np.ndarray, color: str) -> None:
    """Draw lines for a few worlds, bands for many; values (worlds, times), NaN after a world has stopped."""
    if len(values) <= MAXIMUM_WORLD_LINES:
        for k, row in enumerate(values):
            axes.plot(time, row, color=color, alpha=1.0 - 0.7 * k / len(values), linewidth=1.1)
        return
    low, quarter, middle, three_quarters, high = percentiles(values, (5, 25, 50, 75, 95))
    axes.fill_between(time, low, high, color=color, alpha=0.16, linewidth=0)
    axes.fill_between(time, quarter, three_quarters, color=color, alpha=0.32, linewidth=0)
    axes.plot(time, middle, color=color, linewidth=1.3)


def percentiles(values: np.ndarray, levels: Sequence[float]) -> np.ndarray:
    """Percentiles (levels, times) of values (worlds, times) over the worlds that have not stopped; NaN where
    there is none.
    """
    alive = np.isfinite(values).any(axis=0)
    found = np.full((len(levels), values.shape[1]), np.nan)
    if alive.any():
        found[:, alive] = np.nanpercentile(values[:, alive], levels, axis=0)
    return found


# ------------------------------------------------------------------------------------------------ other kinds


def _panels_of_series(series: Series, time: np.ndarray) -> Iterator[Panel]:
    """The panels of a series: a phase portrait, a panel for each name (several worlds), or groups of lines
    (one world).
    """
    unit, names = _unit_label(series.unit), series.names
    if series.abscissa is not None:
        yield Panel(
            names[0],
            f"velocity {unit}",
            partial(_draw_phase_portrait, series=series),
            f"{names[0]} [{series.abscissa_unit}]",
        )
    elif len(series.values) > 1:
        for k, name in enumerate(names):
            values = _positive_if_logarithmic(series.values[..., k], series.logarithmic)
            yield Panel(
                f"{name}: {series.title}",
                unit,
                partial(_draw_series_of_worlds, time=time, values=values, logarithmic=series.logarithmic),
            )
    else:
        values = _positive_if_logarithmic(series.values[0], series.logarithmic)
        count = 1 if series.additive else -(-len(names) // MAXIMUM_PANEL_LINES)
        for k, part in enumerate(np.array_split(np.arange(len(names)), count)):
            number = f", {k + 1} of {count}" if count > 1 else ""
            shown = [names[i] for i in part]
            draw = partial(
                _draw_lines, time=time, values=values[:, part], names=shown, logarithmic=series.logarithmic
            )
            yield Panel(series.title + number, unit, draw)


def _positive_if_logarithmic(values: np.ndarray, logarithmic: bool) -> np.ndarray:
    """The values, with NaN in place of those that a logarithmic axis cannot show."""
    return np.where(values > 0, values, np.nan) if logarithmic else values


def _draw_series_of_worlds(axes: Axes, time: np.ndarray, values: np.ndarray, logarithmic: bool) -> None:
    _draw_worlds(axes, time, values, "#1f5fa8")
    _set_scale(axes, values, logarithmic)


def _set_scale(axes: Axes, values: np.ndarray, logarithmic: bool) -> None:
    if logarithmic and np.isfinite(values).any():
        axes.set_yscale("log")


def _draw_phase_portrait(axes: Axes, series: Series) -> None:
    """Draw a phase portrait: a curve for each world (at most `MAXIMUM_PHASE_CURVES`), with a dot at its
    initial state.
    """
    worlds = len(series.values)
    chosen = np.unique(np.linspace(0, worlds - 1, min(worlds, MAXIMUM_PHASE_CURVES)).round().astype(int))
    assert series.abscissa is not None
    for w in chosen:
        x, y = series.abscissa[w, :, 0], series.values[w, :, 0]
        faint = 1.0 if worlds == 1 else max(0.25, 1.0 - 0.1 * len(chosen))
        (line,) = axes.plot(x, y, linewidth=1.1, alpha=faint, color="#1f5fa8")
        axes.plot(x[:1], y[:1], "o", markersize=4, color=line.get_color())


def _unit_label(unit: str) -> str:
    return f"[{unit}]"
