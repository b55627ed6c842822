"""Afterwards, what a recording holds no record of: constraints' efforts and forces, the Zwang by body, and gaps, from its states."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import xarray as xr

from zwang.api.compiled_rollout import derived_quantities_compiled
from zwang.api.initial_conditions import InitialState
from zwang.api.settings_validation import RecordedQuantities
from zwang.errors import ShapeError, SimulationWarning, TraceError, UnknownNameError
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.type_validation import validated_arguments
from zwang.recording.dataset import derived_variables, mechanism_of, name_units
from zwang.simulation.rollout import Trajectory
from zwang.simulation.state_quantities import state_quantities_in_python
from zwang.simulation.status import NONE

DERIVED_QUANTITIES = ("constraints", "forces", "zwang", "gaps")
STATES = ("q", "v", "control", "mechanism")


@validated_arguments()
def derived_quantities(run: xr.Dataset, *wanted: str, compiled: bool = True) -> xr.Dataset:
    """The recording with what `record` would have kept of it, worked out from its states and controls.

    wanted: some of "constraints", "forces", "zwang" and "gaps", by default all (see `simulate`). All are functions of one instant, so a
    recording that kept few instants gets the same numbers there. compiled=False works them out by the float reference.
    Raises ShapeError for what is no recording, UnknownNameError for another name.
    """
    for name in wanted:
        if name not in DERIVED_QUANTITIES:
            raise UnknownNameError("what examine finds", name, DERIVED_QUANTITIES)
    m = mechanism_of(_checked(run))
    chosen = {name: True for name in wanted or DERIVED_QUANTITIES}
    asked = RecordedQuantities(**chosen, h=float(run.attrs["step"]), stabilization=str(run.attrs.get("drift", "projection")))  # type: ignore[arg-type]
    begin, motion = _motion_of(run)
    with np.errstate(all="ignore"):
        variables, coordinates = derived_variables(m, asked, _observed(m, begin, asked, motion, compiled))
    lost = np.isnan(run["q"].values).any(axis=-1)
    units = {**coordinates, "effort_unit": ("speed", run["effort_unit"].values)}
    found: dict[str, Any] = {}
    for name, (dims, values, long_name, unit) in variables.items():
        told = {"long_name": long_name, "units": unit}
        name_units(told, units)
        gone = lost.reshape(lost.shape + (1,) * len(dims))
        found[name] = (("world", "time", *dims), np.where(gone, np.nan, values), told)
    fresh = run.drop_dims([d for d in ("acting",) if "forces" in chosen and d in run.dims])
    return fresh.assign_coords(coordinates).assign(found)


def _checked(run: Any) -> xr.Dataset:
    """A recording with worlds and times. Raises ShapeError."""
    if not isinstance(run, xr.Dataset) or not set(run.data_vars) >= set(STATES) or "step" not in run.attrs:
        raise ShapeError(f"zw.examine takes a recording of zw.simulate with {', '.join(STATES)}")
    if not {"world", "time"} <= set(run["q"].dims):
        raise ShapeError(
            "zw.examine takes a recording with worlds and times; of one world, select run.isel(world=[0])"
        )
    if not run.sizes["world"] or not run.sizes["time"]:
        raise ShapeError(f"this recording is empty: {run.sizes['world']} worlds, {run.sizes['time']} times")
    return run.transpose("world", "time", ...)


def _observed(
    m: Mechanism, begin: InitialState, asked: RecordedQuantities, motion: Trajectory, compiled: bool
) -> dict[str, np.ndarray]:
    if compiled:
        try:
            return derived_quantities_compiled(m, begin, asked, motion)
        except TraceError as error:
            warnings.warn(f"this runs in Python, slowly: {error}", SimulationWarning, stacklevel=4)
    return state_quantities_in_python(m, begin, asked, motion)


def _motion_of(run: xr.Dataset) -> tuple[InitialState, Trajectory]:
    """The recorded motion; where a world has stopped, its last good state stands still."""
    run = run.transpose("world", "time", ...)
    worlds, times = run.sizes["world"], run.sizes["time"]
    good = np.isfinite(run["q"].values).all(axis=-1)
    last = np.maximum.accumulate(np.where(good, np.arange(times), 0), axis=1)

    def kept(name: str) -> np.ndarray:
        values = run[name].values
        return np.take_along_axis(values, last[..., None], axis=1)

    steps = np.take(run["time"].values, last)[..., None] / float(run.attrs["step"])
    z = kept("activation") if "activation" in run else np.zeros((worlds, times, 0))
    motion = Trajectory(steps, kept("q"), kept("v"), z, kept("control"), np.full(worlds, NONE))
    names = [str(name) for name in run["parameter"].values] if "parameters" in run.coords else []
    params = {name: np.array(run["parameters"].values[:, k], dtype=float) for k, name in enumerate(names)}
    return InitialState(motion.q[:, 0], motion.v[:, 0], z[:, 0], params), motion
