"""The simulation of a recording as a WebAssembly module, which a page repeats with other parameters.

Beside the step the module has the energies and, for a mechanism with symbols, the placements of everything
that is drawn: a length that is a parameter moves the joints that depend on it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from zwang.api.compilation.programs import PARAMETERS, traced_program
from zwang.errors import ShapeError, SimulationError, UnknownNameError
from zwang.interop.export_settings import STEP, ExportSettings, export_settings
from zwang.interop.exported_functions import ExportedArgument, ExportedFunction
from zwang.interop.wasm import javascript, wasm_module
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.type_validation import short_repr
from zwang.recording.dataset import mechanism_of
from zwang.recording.mechanism_order import in_mechanism_order, parameters_of
from zwang.scalar import real_array
from zwang.simulation.controls import control_names
from zwang.viewer.stick_figures import link_point, tendon_and_rod_points

PLACEMENTS, ENERGY = "placements", "energy"
NARROWEST, WIDEST = 0.2, 3.0  # the default range of a parameter, as multiples of its recorded value

SCRIPT = javascript()
"""The JavaScript function that loads the module."""

Ranges = Mapping[str, tuple[float, float]]


def browser_simulation(
    run: xr.Dataset, model: Mapping[str, Any], names: bool | Sequence[str] | Ranges, times: np.ndarray
) -> dict[str, Any]:
    """The data from which a page repeats the simulation of a recording of one world.

    model: the scene data of its mechanism. names: the parameters and inputs that get sliders, or the ranges
    of the sliders by name; True for all. times: the times [s] at which the page needs the state.
    Raises ShapeError for several worlds, UnknownNameError, SimulationError for a recording whose simulation a
    page cannot repeat, and MissingExtraError without the package ziglang.
    """
    mechanism = mechanism_of(run)
    run = in_mechanism_order(run, mechanism, "coordinate", "speed", "input")
    _check(run)
    settings = _settings(mechanism, run)
    figure = list(dict.fromkeys(tuple(end) for shape in model["shapes"] for end in shape.get("ends", ())))
    more = [_placements(settings, figure)] if mechanism.symbols else []
    module = wasm_module(settings, more)
    values = [float(x[0]) for x in settings.initial.params.values()]
    controls = run["control"].values[0, 0].tolist() if "control" in run else []
    known = {**dict(zip(mechanism.symbols, values, strict=True)), **_inputs(mechanism, controls)}
    return {
        "module": np.frombuffer(module.code, dtype=np.uint8),
        "layout": module.layout,
        "steps": np.round(times / settings.h).astype(int).tolist(),
        "parameters": values,
        "control": controls,
        "figure": [list(end) for end in figure],
        "sliders": _sliders(mechanism, known, names),
    }


def _check(run: xr.Dataset) -> None:
    """Raises ShapeError or SimulationError for a recording whose simulation a page does not repeat."""
    if run.sizes["world"] != 1:
        raise ShapeError(
            f"a page simulates one world, and this recording has {run.sizes['world']}; select one by "
            "run.isel(world=[0]), with the brackets"
        )
    reason = None
    if "step" not in run.attrs or "control" not in run.attrs:
        reason = "it does not contain its step size or its control"
    elif run.attrs["control"] != "held":
        reason = "its control is computed by a Python function"
    elif "control" in run and (np.ptp(run["control"].values, axis=1) > 0).any():
        reason = "its control changes with time, and the page holds the control constant"
    elif (run["status"] == 2).any():
        reason = "it ended at a terminal event, which the page does not know"
    if reason is not None:
        raise SimulationError(
            f"the page cannot repeat the simulation of this recording: {reason}; record the motion with a "
            "constant control and without terminal events, or omit resimulate="
        )


def _settings(mechanism: Mechanism, run: xr.Dataset) -> ExportSettings:
    """The settings of the simulation, as of an export. Raises SimulationError for error-controlled steps."""
    first = run.isel(world=0, time=0)
    reduction = str(run.attrs.get("coordinate_reduction", "none"))
    params = {name: float(x[0]) for name, x in parameters_of(run, mechanism).items()} or None
    return export_settings(
        mechanism,
        name="model",
        step=float(run.attrs["step"]),
        integrator=str(run.attrs["integrator"]),
        stabilization=str(run.attrs["stabilization"]),
        coordinate_reduction={"none": False, "automatic": True}.get(reduction, reduction.split()),
        functions=[STEP, ENERGY],
        frames=(),
        q0=first["q"].values,
        v0=first["v"].values,
        params=params,
    )


# ------------------------------------------------------------------------------------------------ placements


def _placements(settings: ExportSettings, figure: Sequence[tuple[Any, ...]]) -> ExportedFunction:
    """The function of the parameters that computes everything of the scene that depends on them.

    figure: the points of stick figures, see `stick_figures.link_point`. Its result is one array: the poses of
    links in their parents, of bodies and of frames in their links (12 numbers each, the rotation by rows and
    the origin), mass and centre of mass (4) of the rigid bodies, and points (3) of lines and stick figures.
    """

    def text(m: Mechanism, _: Any, __: Any) -> dict[str, Any]:
        tree = m.tree
        places = [*tree.links, *(tree.placement(part.name) for part in (*m.bodies, *m.frames))]
        parts = [part for place in places for part in (place.R, place.p)]
        parts += [part for body in tree.rigid_bodies for part in (body.placement.p, [body.mass])]
        parts += [p for line in tendon_and_rod_points(m) for p in line]
        parts += [link_point(m, end) for end in figure]
        return {"values": np.concatenate([np.asarray(x, dtype=object).reshape(-1) for x in parts])}

    mechanism = settings.mechanism
    program = traced_program(mechanism, text, {}, set())
    given = ExportedArgument(
        PARAMETERS, len(mechanism.symbols), "SI", "values of the symbols, in their order"
    )
    found = ExportedArgument(
        "values", program.outputs[0].size, "SI", "placements of links, bodies, frames, points"
    )
    return ExportedFunction(
        f"{settings.name}_{PLACEMENTS}", program, (given,), (found,), "Placements of all that is drawn."
    )


# --------------------------------------------------------------------------------------------------- sliders


def _inputs(mechanism: Mechanism, controls: Sequence[float]) -> dict[str, float]:
    return dict(zip(control_names(mechanism), controls, strict=True)) if mechanism.inputs else {}


def _sliders(
    mechanism: Mechanism, known: Mapping[str, float], names: bool | Sequence[str] | Ranges
) -> list[dict[str, Any]]:
    """Name, kind, index, value and range of each slider.

    Raises UnknownNameError, SimulationError for a range that is no interval, and DescriptionError for an end
    of a range that is no value of the parameter.
    """
    if names is True:
        chosen = list(known)
    else:
        chosen = [] if names is False else list(names)
    ranges = names if isinstance(names, Mapping) else {}
    inputs = _input_ranges(mechanism)
    found = []
    for name in chosen:
        if name not in known:
            raise UnknownNameError("parameter or input", name, tuple(known))
        value, is_symbol = known[name], name in mechanism.symbols
        low, high = _range(value) if is_symbol else inputs.get(name) or _symmetric(value)
        if name in ranges:
            low, high = _checked_range(name, ranges[name])
            for end in (low, high) if is_symbol else ():  # such as a negative mass
                mechanism.subs({symbol: known[symbol] for symbol in mechanism.symbols} | {name: end})
        order = mechanism.symbols if is_symbol else control_names(mechanism)
        found.append({"name": name, "kind": "parameter" if is_symbol else "control",
                      "index": order.index(name), "value": value, "low": min(low, value),
                      "high": max(high, value)})  # fmt: skip
    return found


def _checked_range(name: str, given: Any) -> tuple[float, float]:
    try:
        values = real_array(given).reshape(-1)
    except (TypeError, ValueError, OverflowError):
        values = np.zeros(0)
    if values.size != 2 or not np.isfinite(values).all() or not values[0] < values[1]:
        raise SimulationError(
            f"the range of {name!r} in resimulate= is {short_repr(given)}; it must be two finite numbers "
            "(low, high), the lower one first"
        )
    return float(values[0]), float(values[1])


def _range(value: float) -> tuple[float, float]:
    """The default range of a parameter: numbers of the same sign."""
    if value == 0:
        return -1.0, 1.0
    low, high = sorted((NARROWEST * value, WIDEST * value))
    return low, high


def _symmetric(value: float) -> tuple[float, float]:
    most = WIDEST * abs(value) or 1.0
    return -most, most


def _input_ranges(mechanism: Mechanism) -> dict[str, tuple[float, float]]:
    """The finite control ranges of actuators and motors, by the name of the input."""
    found = {}
    for part in mechanism.forces:
        given = getattr(part, "control_range", None)
        if given is not None and np.isfinite(np.asarray(given, dtype=float)).all():
            found[getattr(part, "name", "")] = (float(given[0]), float(given[1]))
    return found
