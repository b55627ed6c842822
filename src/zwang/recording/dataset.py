"""Recordings: the motion of a simulation as a labelled xarray.Dataset with units.

Variables over (world, time, ...): q, v, tau (applied generalised forces), control, kinetic_energy,
potential_energy, energy, and activation of actuators; if they are recorded, frame_position,
generalised_constraint_force (generalised constraint forces), force and force_position, reaction_force and
reaction_torque of joints, multiplier (the force of each row of the constraints), zwang and constraint_zwang,
constraint_violation and constraint_velocity_residual, and sensor, whose dimension `sensor_name` repeats the
name of a sensor for each of its elements; and, where steps of fixed size solve for constraint forces,
solver_status, the worst `SolverStatus` since the sample before. Over (world, event, occurrence), if there are
events: event_time, event_q and event_v, NaN where there are fewer occurrences. Over (world): status (0:
simulated to the end, 1: failed, 2: ended by a terminal event), termination_time and failure_reason, which
version 0.1 called stop_time and stop_cause. After a failure or a terminal event all values are NaN.
`mechanism` is the description as JSON; `mechanism_of(run)` reads it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from zwang.errors import LoadError, ShapeError
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.type_validation import validated_arguments
from zwang.recording.description import description_of
from zwang.recording.storage import read_recording, write_recording
from zwang.simulation.applied_forces import activations
from zwang.simulation.controls import control_names
from zwang.simulation.events import EventRecords
from zwang.simulation.initial_state import InitialState
from zwang.simulation.quantities.constraint_forces import CONSTRAINT, PointForceLabel, point_force_labels
from zwang.simulation.quantities.constraint_multipliers import multiplier_labels
from zwang.simulation.quantities.constraint_residuals import FORMULA, constraint_residuals
from zwang.simulation.rollout import Trajectory
from zwang.simulation.settings import RecordedQuantities, SimulationSettings
from zwang.simulation.solver_status import SolverStatus
from zwang.simulation.status import FAILURE_REASONS, NONE, TERMINAL_EVENT

FORMAT = "zwang run 1"
POINT_FORCE = "point_force"
"""The dimension of the forces at points, of constraints and contacts."""


def recording_of(
    mechanism: Mechanism,
    motion: Trajectory,
    observed: dict[str, np.ndarray],
    initial: InitialState,
    settings: SimulationSettings,
    attributes: dict[str, Any],
) -> xr.Dataset:
    """The recording of a motion, with its derived quantities `observed` and the settings as attributes."""
    missing = motion.clock[..., 0] < settings.samples
    per = {
        "q": (("coordinate",), motion.q, "configuration", "coordinate_unit"),
        "v": (("speed",), motion.v, "generalised velocity", "speed_unit"),
        "tau": (
            ("speed",),
            observed["tau"],
            "applied generalised force: passive, of actuators and of controlled wrenches",
            "force_unit",
        ),
        "control": (("input",), motion.u, "control", "unit of each input"),
        "kinetic_energy": ((), observed["energies"][..., 0], "kinetic energy", "J"),
        "potential_energy": (
            (),
            observed["energies"][..., 1],
            "potential energy of gravity and springs",
            "J",
        ),
        "energy": ((), observed["energies"].sum(axis=-1), "kinetic and potential energy", "J"),
    }
    if motion.z.shape[2]:
        per["activation"] = (("actuator",), motion.z, "activations of actuators", "1")
    more, coordinates = derived_variables(mechanism, settings.wanted, observed)
    per |= more
    variables: dict[str, Any] = {}
    for name, (dims, values, long_name, units) in per.items():
        if missing.any():
            values = np.where(missing.reshape(missing.shape + (1,) * len(dims)), np.nan, values)
        variables[name] = (("world", "time", *dims), values, {"long_name": long_name, "units": units})
    coordinates |= _coordinates(mechanism, initial, settings, motion)
    coordinates |= old_labels(coordinates)
    for _, _, described in variables.values():
        name_units(described, coordinates)
    variables |= {old: variables[new] for old, new in NAMES_OF_VERSION_0_1.items() if new in variables}
    if motion.solver is not None:
        variables["solver_status"] = _solver_status(motion.solver[..., 0], missing)
    variables |= _termination(motion, settings)
    if motion.events is not None:
        found, labels = _events(motion.events)
        variables, coordinates = variables | found, coordinates | labels
        for _, _, described in found.values():
            name_units(described, coordinates)
    variables["mechanism"] = ((), mechanism.to_json(), {"long_name": "description, for zwang.mechanism_of"})
    attributes = {"format": FORMAT, "title": mechanism.name, **attributes}
    return xr.Dataset(variables, coordinates, attributes)


def _events(events: EventRecords) -> tuple[dict[str, Any], dict[str, Any]]:
    """The variables of the events' occurrences, and their coordinates."""
    dims = "world", "event", "occurrence"
    variables = {
        "event_time": (dims, events.times, {"long_name": "times of events", "units": "s"}),
        "event_q": (
            (*dims, "coordinate"),
            events.q,
            {"long_name": "configuration at events", "units": "coordinate_unit"},
        ),
        "event_v": ((*dims, "speed"), events.v, {"long_name": "velocity at events", "units": "speed_unit"}),
    }
    occurrence = np.arange(events.times.shape[2])
    return variables, {"event": ("event", _texts(events.names)), "occurrence": ("occurrence", occurrence)}


def _termination(motion: Trajectory, settings: SimulationSettings) -> dict[str, Any]:
    """The status, the failure reason and the time of termination of each world.

    stop_cause and stop_time are the names of version 0.1; they are kept for one release.
    """
    ended = motion.failure == TERMINAL_EVENT
    failed = (motion.clock[:, -1, 0] < settings.steps) | ended
    status = {
        "long_name": "termination of the world",
        "flag_values": [0, 1, 2],
        "flag_meanings": "finished stopped terminal_event",
    }
    ends = np.where(failed, motion.clock[:, -1, 0] * settings.step, settings.times[-1])
    reasons = np.where(failed, motion.failure, NONE).astype(np.int8)
    reason = {
        "long_name": "failure reason",
        "flag_values": list(range(len(FAILURE_REASONS))),
        "flag_meanings": " ".join(failure.name for failure in FAILURE_REASONS),
    }
    time = {"long_name": "time of the last valid state", "units": "s"}
    return {
        "status": ("world", np.where(ended, 2, failed).astype(np.int8), status),
        "failure_reason": ("world", reasons, reason),
        "termination_time": ("world", ends, time),
        "stop_cause": ("world", reasons, reason),
        "stop_time": ("world", ends, time),
    }


def _solver_status(statuses: np.ndarray, missing: np.ndarray) -> tuple[Any, ...]:
    """The solver's statuses (worlds, samples), NO_SOLUTION where a sample is missing."""
    described = {
        "long_name": "worst status of the constraint solver in the steps since the sample before",
        "flag_values": [int(status) for status in SolverStatus],
        "flag_meanings": " ".join(status.name.lower() for status in SolverStatus),
    }
    values = np.where(missing, SolverStatus.NO_SOLUTION, statuses).astype(np.int8)
    return ("world", "time"), values, described


NAMES_OF_VERSION_0_1 = {
    "stop_cause": "failure_reason",
    "stop_time": "termination_time",
    "constraint_effort": "generalised_constraint_force",
    "constraint_gap": "constraint_violation",
    "constraint_miss": "constraint_velocity_residual",
}
"""The names of variables that version 0.1 used; both are stored for one release."""

LABELS_OF_VERSION_0_1 = {
    "effort_unit": "force_unit",
    "acting": POINT_FORCE,
    "acting_kind": "point_force_kind",
    "acting_on": "point_force_body",
    "acting_from": "point_force_other_body",
}
"""The names of coordinates that version 0.1 used; both are stored for one release."""

ATTRIBUTES_OF_VERSION_0_1 = {"drift": "stabilization", "embedding": "coordinate_reduction"}


def old_labels(coordinates: Mapping[str, Any]) -> dict[str, Any]:
    """The coordinates that version 0.1 named otherwise, by their old names."""
    return {old: coordinates[new] for old, new in LABELS_OF_VERSION_0_1.items() if new in coordinates}


def with_current_names(run: xr.Dataset) -> xr.Dataset:
    """A recording with the current names of variables, coordinates and attributes beside those of version
    0.1. The dimension `acting` of version 0.1 becomes `point_force`.
    """
    if "acting" in run.dims:
        run = run.rename_dims(acting=POINT_FORCE).reset_index("acting", drop=False)
    renamed = LABELS_OF_VERSION_0_1.items()
    labels = {new: run[old].variable for old, new in renamed if old in run and new not in run}
    run = run.assign_coords(labels) if labels else run
    new = {new: run[old] for old, new in NAMES_OF_VERSION_0_1.items() if old in run and new not in run}
    attributes = {
        new: run.attrs[old]
        for old, new in ATTRIBUTES_OF_VERSION_0_1.items()
        if old in run.attrs and new not in run.attrs
    }
    if attributes.get("stabilization") == "stabilisation":
        attributes["stabilization"] = "baumgarte"
    return run.assign(new).assign_attrs(attributes) if new or attributes else run


def name_units(attributes: dict[str, str], coordinates: Mapping[str, Any]) -> None:
    """Replaces a unit that is the name of a coordinate by the common unit of all elements, or by a reference
    to it.
    """
    place = attributes["units"]
    if place not in coordinates:
        return
    units = set(coordinates[place][1].tolist())
    attributes["units"] = units.pop() if len(units) == 1 else f"see {place}"


Variable = tuple[tuple[str, ...], np.ndarray, str, str]


def derived_variables(
    mechanism: Mechanism, wanted: RecordedQuantities, observed: dict[str, np.ndarray]
) -> tuple[dict[str, Variable], dict[str, Any]]:
    """The variables of derived quantities, as (dimensions after world and time, values, long name, unit),
    and coordinates.
    """
    per: dict[str, Variable] = {}
    found: dict[str, Any] = {}
    if wanted.frames:
        positions = observed["positions"].reshape(*observed["positions"].shape[:2], len(wanted.frames), 3)
        per["frame_position"] = (("frame", "axis"), positions, "positions of frames in the world", "m")
        found["frame"] = ("frame", _texts(wanted.frames))
    if wanted.constraints:
        text = "generalised force of constraints, limits, friction and contacts"
        per["generalised_constraint_force"] = (("speed",), observed["constraints"], text, "force_unit")
    if wanted.forces:
        held = _forces(mechanism, observed["forces"], per)
        names = {POINT_FORCE: "name", "point_force_kind": "kind", "point_force_body": "body",
                 "point_force_other_body": "other"}  # fmt: skip
        found |= {
            label: (POINT_FORCE, _texts(getattr(a, part) for a in held)) for label, part in names.items()
        }
    if wanted.reactions:
        both = observed["reactions"].reshape(*observed["reactions"].shape[:2], len(mechanism.joints), 2, 3)
        text = "forces of joints on the bodies that they carry, with motors, springs and limits"
        per["reaction_force"] = (("joint", "axis"), both[..., 0, :], text, "N")
        text = "torques of joints on the bodies that they carry, about the origins of their moving frames"
        per["reaction_torque"] = (("joint", "axis"), both[..., 1, :], text, "N m")
        found["joint"] = ("joint", _texts(joint.name for joint in mechanism.joints))
    if wanted.frames or wanted.forces or wanted.reactions:
        found["axis"] = ("axis", _texts("xyz"))
    if wanted.zwang:
        found |= _zwang(mechanism, observed, per)
    if wanted.sensors:
        per["sensor"] = (("sensor_name",), observed["sensors"], "values of sensors", "sensor_unit")
        found |= _sensor_labels(mechanism, wanted.sensors)
    if wanted.multipliers and multiplier_labels(mechanism):
        found |= _multipliers(mechanism, observed["multipliers"], per)
    if wanted.violations and constraint_residuals(mechanism):
        found |= _violations(mechanism, observed["violations"], per)
    return per, found


def _sensor_labels(mechanism: Mechanism, names: tuple[str, ...]) -> dict[str, Any]:
    """For each element the name of its sensor, which is repeated, its component and its unit."""
    sensors = [mechanism.sensor(name) for name in names]
    labels = [(s.name, component, s.quantity.unit) for s in sensors for component in s.components]
    columns = zip(("sensor_name", "sensor_component", "sensor_unit"), zip(*labels, strict=True), strict=True)
    return {name: ("sensor_name", _texts(column)) for name, column in columns}


def _forces(
    mechanism: Mechanism, observed: np.ndarray, per: dict[str, Variable]
) -> tuple[PointForceLabel, ...]:
    """Adds the point forces to the variables; returns their labels, of contacts only those that are ever
    active.
    """
    everything = point_force_labels(mechanism)
    both = observed.reshape(*observed.shape[:2], len(everything), 2, 3)
    active = np.asarray(both[..., 1, :].any(axis=-1))
    ever = np.asarray(active.any(axis=(0, 1)))
    kept = [k for k, a in enumerate(everything) if a.kind == CONSTRAINT or ever[k]]
    positions = np.where(active[..., None], both[..., 0, :], np.nan)[:, :, kept]
    text = "forces of constraints between points, and of contacts, on the bodies `point_force_body`"
    per["force"] = ((POINT_FORCE, "axis"), both[:, :, kept, 1], text, "N")
    per["force_position"] = (
        (POINT_FORCE, "axis"),
        positions,
        "points of application; NaN without a force",
        "m",
    )
    return tuple(everything[k] for k in kept)


def _zwang(mechanism: Mechanism, observed: dict[str, np.ndarray], per: dict[str, Variable]) -> dict[str, Any]:
    """Adds the parts of Z to the variables; returns their coordinates."""
    bodies = [solid.body for solid in mechanism.tree.rigid_bodies]
    text = "parts of Z(a) by zwang_by_body, of bodies, and of generalised forces and rotors"
    per["zwang"] = (("zwang_part",), observed["zwang"], text, "W/s")
    text = "parts of Z of the deviation from the unconstrained motion, of bodies and rotors"
    per["constraint_zwang"] = (("constraint_zwang_part",), observed["held"], text, "W/s")
    return {
        "zwang_part": ("zwang_part", _texts([*bodies, "generalised forces"])),
        "constraint_zwang_part": ("constraint_zwang_part", _texts([*bodies, "rotors"])),
    }


def _multipliers(mechanism: Mechanism, observed: np.ndarray, per: dict[str, Variable]) -> dict[str, Any]:
    """Adds the multipliers of the constraints; returns their coordinates."""
    text = "multipliers of the constraints, such as the torque of a prescribed motion"
    per["multiplier"] = (("constraint_row",), observed, text, "multiplier_unit")
    columns = zip(*multiplier_labels(mechanism), strict=True)
    names = ("constraint_row", "row_constraint", "multiplier_unit")
    return {name: ("constraint_row", _texts(column)) for name, column in zip(names, columns, strict=True)}


def _violations(mechanism: Mechanism, observed: np.ndarray, per: dict[str, Variable]) -> dict[str, Any]:
    """Adds violations and residuals, NaN for violations of velocity-level constraints; returns their
    coordinates.
    """
    residuals = constraint_residuals(mechanism)
    placed = np.array([bool(r.position_rows) for r in residuals])
    positions, speeds = np.split(observed, 2, axis=-1)
    text = "constraint violations"
    per["constraint_violation"] = (
        ("constraint",),
        np.where(placed, positions, np.nan),
        text,
        "constraint_unit",
    )
    text = "velocity residuals of the constraints"
    per["constraint_velocity_residual"] = (("constraint",), speeds, text, "constraint_speed_unit")
    rates = [r.unit if r.unit == FORMULA else f"{r.unit}/s" for r in residuals]
    return {
        "constraint": ("constraint", _texts(r.name for r in residuals)),
        "constraint_unit": ("constraint", _texts(r.unit for r in residuals)),
        "constraint_speed_unit": ("constraint", _texts(rates)),
    }


def _coordinates(
    mechanism: Mechanism, initial: InitialState, settings: SimulationSettings, motion: Trajectory
) -> dict[str, Any]:
    """The labels, units, joints and bodies of all elements, and the parameters of the worlds."""
    joints = mechanism.joints
    found: dict[str, Any] = {
        "world": ("world", np.arange(initial.worlds)),
        "time": ("time", settings.times, {"long_name": "time", "units": "s"}),
        "coordinate": ("coordinate", _texts(mechanism.coordinate_names)),
        "speed": ("speed", _texts(mechanism.speed_names)),
        "input": ("input", _texts(control_names(mechanism))),
        "coordinate_unit": ("coordinate", _texts(coordinate_units(mechanism))),
        "speed_unit": ("speed", _texts(speed_units(mechanism))),
        "force_unit": ("speed", _texts("N" if u == "m/s" else "N m" for u in speed_units(mechanism))),
        "coordinate_joint": ("coordinate", _texts([j.name for j in joints for _ in j.coordinates])),
        "speed_joint": ("speed", _texts([j.name for j in joints for _ in j.speeds])),
        "coordinate_body": ("coordinate", _texts([j.body for j in joints for _ in j.coordinates])),
    }
    if motion.z.shape[2]:
        found["actuator"] = ("actuator", _texts(activations(mechanism)))
    if initial.params:
        found["parameter"] = ("parameter", _texts(initial.params))
        table = np.stack(list(initial.params.values()), axis=1)
        found["parameters"] = (("world", "parameter"), table, {"long_name": "parameters of each world"})
    return found


def _texts(names: Any) -> np.ndarray:
    return np.array([str(name) for name in names], dtype=str)


def coordinate_units(mechanism: Mechanism) -> list[str]:
    """The unit of each coordinate: "rad", "m", or "1" for an element of a quaternion."""
    return [unit for j in mechanism.joints for unit in j.coordinate_units]


def speed_units(mechanism: Mechanism) -> list[str]:
    """The unit of each generalised velocity: "rad/s" or "m/s"."""
    return [f"{unit}/s" for j in mechanism.joints for unit in j.displacement_units]


@validated_arguments()
def mechanism_of(run: xr.Dataset) -> Mechanism:
    """The mechanism of a recording.

    run: a recording of `zw.simulate`, one that `zw.open_run` returns, or several of one mechanism, joined by
        `xarray.concat`.
    Raises LoadError for another dataset, ShapeError for another object and for recordings of different
    mechanisms.
    """
    if not isinstance(run, xr.Dataset):
        raise ShapeError(
            f"zwang reads the mechanism of a recording of zw.simulate; this is a {type(run).__name__}"
        )
    return Mechanism.from_json(description_of(run))


@validated_arguments()
def save(run: xr.Dataset, path: str | Path) -> None:
    """Write a recording to a NetCDF file (.nc) or a Zarr folder (.zarr), without loss, or export it to MCAP.

    run: a recording of `zw.simulate`. path: ends in .nc or .zarr; or in .mcap, for joint states and
        transforms that Foxglove displays, which `open_run` does not read (extra `mcap`).
    The file is written completely or not at all, with a checksum that `open_run` verifies. Attributes that
    you add may be numbers, arrays of numbers, texts and lists of texts; in a Zarr folder also truth values,
    None, and lists and dictionaries of all these. Raises ShapeError for a dataset that is not a recording, or
    of different mechanisms; SimulationError for other endings, other attributes and variables of Python
    objects that are not texts, by name, times that an MCAP file does not have, as negative ones, and a folder
    with other files in it; WriteError if the file cannot be written, after which an existing recording is
    unchanged; and MissingExtraError if the library zarr or mcap is required and not installed.
    """
    if not isinstance(run, xr.Dataset):
        hint = (
            "; a mechanism is written by Path(path).write_text(mechanism.to_json())"
            if isinstance(run, Mechanism)
            else ""
        )
        raise ShapeError(f"zw.save writes a recording of zw.simulate; this is a {type(run).__name__}{hint}")
    write_recording(run, path)


@validated_arguments()
def open_run(path: str | Path) -> xr.Dataset:
    """The recording in a file that `save` wrote, loaded into memory.

    path: a NetCDF file (.nc) or a Zarr folder (.zarr); files of version 0.1 get the current names, too.
    Raises LoadError for files that are not recordings, or that were damaged or changed; MissingExtraError
    without zarr.
    """
    run = read_recording(path)
    if run.attrs.get("format") != FORMAT:
        raise LoadError(
            f"{str(path)!r} is not a recording of zwang: its attribute 'format' is "
            f"{run.attrs.get('format')!r}"
        )
    return with_current_names(run)
