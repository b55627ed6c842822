"""A figure of a linear model: its poles, and its frequency responses from each input to each output."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from zwang.api.analysis.linearize import LinearModel
from zwang.viewer.picture_file import save_picture
from zwang.viewer.plot_style import INK, STYLE, short

FREQUENCIES = 400  # points of a frequency response
DECADES = 1.5  # shown below the slowest pole and above the fastest one
MAXIMUM_RESPONSES = 10  # lines in one figure
NEUTRAL = 1e-8  # poles this close to the border of stability are neutral up to rounding
STABLE, UNSTABLE = "#2f6db3", "#c04a5e"


def plot_linear_model(model: LinearModel, path: str | Path | None = None) -> Figure:
    """The figure; path: a file to which it is also written. Raises WriteError if that fails."""
    with matplotlib.rc_context(STYLE):
        figure = plt.figure(figsize=(10, 4.5), layout="constrained")
        grid = figure.add_gridspec(2, 2, width_ratios=(1, 1.4))
        poles = model.poles
        _draw_poles(figure.add_subplot(grid[:, 0]), model, poles)
        magnitude = figure.add_subplot(grid[0, 1])
        _draw_responses(magnitude, figure.add_subplot(grid[1, 1], sharex=magnitude), model, poles)
        kind = "continuous time" if model.step is None else f"steps of {model.step:g} s"
        figure.suptitle(f"linear model in {kind}", fontsize=11, x=0.01, ha="left", color=INK)
        if path is not None:
            save_picture(figure, path)
    if "inline" in matplotlib.get_backend():
        plt.close(figure)  # a notebook displays the returned figure
    return figure


def _draw_poles(axes: Axes, model: LinearModel, poles: Any) -> None:
    """The poles in the complex plane, with the border of stability."""
    if model.step is None:
        unstable = poles.real > NEUTRAL
        axes.axvline(0, color=INK, linewidth=0.8)
    else:
        unstable = np.abs(poles) > 1 + NEUTRAL
        angle = np.linspace(0, 2 * np.pi, 200)
        axes.plot(np.cos(angle), np.sin(angle), color=INK, linewidth=0.8)
        axes.set_aspect("equal")
    for chosen, color, label in ((~unstable, STABLE, "stable or neutral"), (unstable, UNSTABLE, "unstable")):
        if chosen.any():
            axes.plot(poles[chosen].real, poles[chosen].imag, "x", color=color, label=label, markersize=7)
    axes.axhline(0, color=INK, linewidth=0.4)
    axes.margins(0.12)
    unit = " [rad/s]" if model.step is None else ""
    axes.set(title="poles", xlabel=f"real part{unit}", ylabel=f"imaginary part{unit}")
    if len(poles):
        axes.legend()


def _draw_responses(magnitude: Axes, phase: Axes, model: LinearModel, poles: Any) -> None:
    """Magnitude and phase of the outputs over the frequency, for inputs of amplitude one."""
    frequencies = _frequencies(model, poles)
    response = model.frequency_response(frequencies)
    pairs = [(p, m) for p in range(len(model.outputs)) for m in range(len(model.inputs))]
    for k, (p, m) in enumerate(pairs[:MAXIMUM_RESPONSES]):
        label = short(f"{model.inputs[m]} to {model.outputs[p]}", 40)
        line = response[:, p, m]
        size = np.where(np.abs(line) > 0, np.abs(line), np.nan)
        magnitude.loglog(frequencies, size, color=f"C{k}", label=label)
        degrees = np.degrees(np.unwrap(np.angle(line)))
        phase.semilogx(frequencies, np.where(np.isnan(size), np.nan, degrees), color=f"C{k}")
    magnitude.set(title="frequency response", ylabel="magnitude")
    phase.set(xlabel="frequency [rad/s]", ylabel="phase [degrees]")
    if pairs:
        left_out = len(pairs) - MAXIMUM_RESPONSES
        magnitude.legend(fontsize="small", title=f"{left_out} more are not shown" if left_out > 0 else None)


def _frequencies(model: LinearModel, poles: Any) -> np.ndarray:
    """Frequencies [rad/s] around the poles; those of steps end at half the sampling frequency."""
    poles = poles.astype(complex)
    if model.step is not None:
        poles = np.log(poles[np.abs(poles) > 0]) / model.step
    sizes = np.abs(poles)
    sizes = sizes[sizes > 1e-6]
    low, high = (sizes.min(), sizes.max()) if len(sizes) else (1.0, 1.0)
    low, high = low / 10**DECADES, high * 10**DECADES
    if model.step is not None:
        high = np.pi / model.step
        low = min(low, high / 10)
    return np.geomspace(low, high, FREQUENCIES)
