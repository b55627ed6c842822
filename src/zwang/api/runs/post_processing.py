"""Derived quantities of a recording, computed after the simulation from the recorded states and controls."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import xarray as xr

from zwang.api.arguments.settings_validation import current_quantity, step_form
from zwang.api.runs.compiled_rollout import derived_quantities_compiled
from zwang.errors import ShapeError, SimulationWarning, TraceError, UnknownNameError
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.type_validation import validated_arguments
from zwang.recording.dataset import (
    NAMES_OF_VERSION_0_1,
    POINT_FORCE,
    derived_variables,
    mechanism_of,
    name_units,
    old_labels,
    with_current_names,
)
from zwang.recording.mechanism_order import in_mechanism_order, parameters_of
from zwang.simulation.initial_state import InitialState
from zwang.simulation.quantities.joint_wrenches import check_reactions
from zwang.simulation.quantities.state_quantities import state_quantities_in_python
from zwang.simulation.rollout import Trajectory
from zwang.simulation.settings import RecordedQuantities
from zwang.simulation.status import NONE

DEFAULT_QUANTITIES = ("constraints", "forces", "zwang", "violations")
DERIVED_QUANTITIES = (*DEFAULT_QUANTITIES, "reactions", "multipliers", "sensors")
STATES = ("q", "v", "control", "mechanism")


@validated_arguments()
def derived_quantities(run: xr.Dataset, *wanted: str, compiled: bool = True) -> xr.Dataset:
    """The recording with derived quantities, computed from its states and controls.

    run: a recording of `zw.simulate`.
    wanted: some of "constraints", "forces", "zwang", "violations", "reactions", "multipliers" and
        "sensors" (see `zw.simulate`), by default the first four. All are functions of the state at one
        time, so that they do not depend on how many samples were recorded.
    compiled: False to compute them on floats in Python, default True.

    Returns a new dataset, in which worlds and times are the first dimensions, and coordinates, speeds and
    inputs have the order of the mechanism. Raises ShapeError for a dataset that is not a recording or lacks
    some of its elements, ParameterError for symbols without values, UnknownNameError for other names, and
    DescriptionError as `zw.joint_reactions`.
    """
    wanted = tuple(map(current_quantity, wanted))
    for name in wanted:
        if name not in DERIVED_QUANTITIES:
            raise UnknownNameError("derived quantity", name, DERIVED_QUANTITIES)
    m = mechanism_of(_checked(run))
    run = in_mechanism_order(with_current_names(run), m, "coordinate", "speed", "input", "actuator")
    chosen = wanted or DEFAULT_QUANTITIES
    if "reactions" in chosen:
        check_reactions(m)
    settings = run.attrs
    stabilization = str(settings.get("stabilization", "projection"))
    quantities = RecordedQuantities(
        constraints="constraints" in chosen,
        forces="forces" in chosen,
        zwang="zwang" in chosen,
        violations="violations" in chosen,
        reactions="reactions" in chosen,
        multipliers="multipliers" in chosen,
        step=step_form(float(settings["step"]), str(settings.get("integrator")), stabilization),
        sensors=tuple(sensor.name for sensor in m.sensors) if "sensors" in chosen else (),
    )
    initial, motion = _motion_of(run, m)
    with np.errstate(all="ignore"):
        variables, coordinates = derived_variables(
            m, quantities, _observed(m, initial, quantities, motion, compiled)
        )
    failed = np.isnan(run["q"].values).any(axis=-1)
    units = {**coordinates, "force_unit": ("speed", run["force_unit"].values)}
    found: dict[str, Any] = {}
    for name, (dims, values, long_name, unit) in variables.items():
        attributes = {"long_name": long_name, "units": unit}
        name_units(attributes, units)
        missing = failed.reshape(failed.shape + (1,) * len(dims))
        found[name] = (("world", "time", *dims), np.where(missing, np.nan, values), attributes)
    found |= {old: found[new] for old, new in NAMES_OF_VERSION_0_1.items() if new in found}
    coordinates |= old_labels(coordinates)
    replaced = {POINT_FORCE: "forces", "sensor_name": "sensors"}
    fresh = run.drop_dims([d for d, name in replaced.items() if name in chosen and d in run.dims])
    return fresh.assign_coords(coordinates).assign(found)


def _checked(run: Any) -> xr.Dataset:
    """The recording, if it has worlds, times and the states. Raises ShapeError."""
    if not isinstance(run, xr.Dataset) or not set(run.data_vars) >= set(STATES) or "step" not in run.attrs:
        raise ShapeError(f"zw.derived_quantities takes a recording of zw.simulate with {', '.join(STATES)}")
    if not {"world", "time"} <= set(run["q"].dims):
        raise ShapeError(
            "zw.derived_quantities takes a recording with worlds and times; of one world, select "
            "run.isel(world=[0])"
        )
    if not run.sizes["world"] or not run.sizes["time"]:
        raise ShapeError(f"this recording is empty: {run.sizes['world']} worlds, {run.sizes['time']} times")
    return run


def _observed(
    m: Mechanism, initial: InitialState, quantities: RecordedQuantities, motion: Trajectory, compiled: bool
) -> dict[str, np.ndarray]:
    if compiled:
        try:
            return derived_quantities_compiled(m, initial, quantities, motion)
        except TraceError as error:
            warnings.warn(f"this runs in Python, slowly: {error}", SimulationWarning, stacklevel=4)
    return state_quantities_in_python(m, initial, quantities, motion)


def _motion_of(run: xr.Dataset, m: Mechanism) -> tuple[InitialState, Trajectory]:
    """The motion of a recording in the order of its mechanism; where a world has stopped, its last good
    state stands.
    """
    worlds, times = run.sizes["world"], run.sizes["time"]
    good = np.isfinite(run["q"].values).all(axis=-1)
    last = np.maximum.accumulate(np.where(good, np.arange(times), 0), axis=1)

    def kept(name: str) -> np.ndarray:
        values = run[name].values
        return np.take_along_axis(values, last[..., None], axis=1)

    steps = np.take(run["time"].values, last)[..., None] / float(run.attrs["step"])
    z = kept("activation") if "activation" in run else np.zeros((worlds, times, 0))
    motion = Trajectory(steps, kept("q"), kept("v"), z, kept("control"), np.full(worlds, NONE))
    return InitialState(motion.q[:, 0], motion.v[:, 0], z[:, 0], parameters_of(run, m)), motion
