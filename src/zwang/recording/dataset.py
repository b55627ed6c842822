"""Recordings: a motion as a labelled xarray.Dataset with units, to and from NetCDF and Zarr without loss.

Variables over (world, time, ...): q, v, tau (the efforts of all that pushes), control, kinetic_energy, potential_energy,
energy; where wanted, frame_position, constraint_effort, force and force_position, zwang and constraint_zwang, constraint_gap and
constraint_miss. Over (world): status (0: ran to the end, 1: stopped early), stop_time and stop_cause (see `faults`). After a stop the rest is NaN.
`mechanism` is the description as JSON text; `mechanism_of(run)` reads it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from zwang.api.control_input import control_names
from zwang.api.initial_conditions import InitialState
from zwang.api.settings_validation import RecordedQuantities, SimulationSettings
from zwang.errors import LoadError, ShapeError
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.type_validation import validated_arguments
from zwang.recording.storage import read_recording, write_recording
from zwang.simulation.constraint_forces import CONSTRAINT, PointForceLabel, point_force_labels
from zwang.simulation.constraint_residuals import FORMULA, constraint_residuals
from zwang.simulation.rollout import Trajectory
from zwang.simulation.status import FAILURE_REASONS, NONE
from zwang.simulation.step import activations

FORMAT = "zwang run 1"
_LENGTHS = ("prismatic",)
_UNITS = {"angle": "rad", "displacement": "m", "x": "m", "y": "m", "z": "m", "vx": "m", "vy": "m", "vz": "m",
          "wx": "rad", "wy": "rad", "wz": "rad", "first": "rad", "second": "rad"}  # fmt: skip


def recording_of(
    mechanism: Mechanism,
    motion: Trajectory,
    observed: dict[str, np.ndarray],
    begin: InitialState,
    settings: SimulationSettings,
    attributes: dict[str, Any],
) -> xr.Dataset:
    """The recording of a motion."""
    stopped = motion.clock[:, -1, 0] < settings.steps
    gone = motion.clock[..., 0] < settings.samples
    per = {
        "q": (("coordinate",), motion.q, "configuration", "coordinate_unit"),
        "v": (("speed",), motion.v, "generalised velocity", "speed_unit"),
        "tau": (
            ("speed",),
            observed["tau"],
            "generalised effort of springs, dampers and drives",
            "effort_unit",
        ),
        "control": (("input",), motion.u, "control", "as driven"),
        "kinetic_energy": ((), observed["energies"][..., 0], "kinetic energy", "J"),
        "potential_energy": ((), observed["energies"][..., 1], "potential energy of height and springs", "J"),
        "energy": ((), observed["energies"].sum(axis=-1), "kinetic and potential energy", "J"),
    }
    if motion.z.shape[2]:
        per["activation"] = (("actuator",), motion.z, "states of actuators", "1")
    more, coordinates = derived_variables(mechanism, settings.wanted, observed)
    per |= more
    variables: dict[str, Any] = {}
    for name, (dims, values, long_name, units) in per.items():
        if gone.any():
            values = np.where(gone.reshape(gone.shape + (1,) * len(dims)), np.nan, values)
        variables[name] = (("world", "time", *dims), values, {"long_name": long_name, "units": units})
    coordinates |= _coordinates(mechanism, begin, settings, motion)
    for _, _, told in variables.values():
        name_units(told, coordinates)
    meanings = {
        "long_name": "how the world ended",
        "flag_values": [0, 1],
        "flag_meanings": "finished stopped",
    }
    variables["status"] = ("world", stopped.astype(np.int8), meanings)
    ends = np.where(stopped, motion.clock[:, -1, 0] * settings.step, settings.times[-1])
    causes = {
        "long_name": "why the world stopped",
        "flag_values": list(range(len(FAILURE_REASONS))),
        "flag_meanings": " ".join(failure.name for failure in FAILURE_REASONS),
    }
    variables["stop_cause"] = ("world", np.where(stopped, motion.failure, NONE).astype(np.int8), causes)
    variables["stop_time"] = ("world", ends, {"long_name": "time of the last good state", "units": "s"})
    variables["mechanism"] = ((), mechanism.to_json(), {"long_name": "description, for zwang.mechanism_of"})
    attributes = {"format": FORMAT, "title": mechanism.name, **attributes}
    return xr.Dataset(variables, coordinates, attributes)


def name_units(attributes: dict[str, str], coordinates: Mapping[str, Any]) -> None:
    """Where a unit is the name of a coordinate: the unit that all elements have; else, where each one's is found."""
    place = attributes["units"]
    if place not in coordinates:
        return
    units = set(coordinates[place][1].tolist())
    attributes["units"] = units.pop() if len(units) == 1 else f"see {place}"


Variable = tuple[tuple[str, ...], np.ndarray, str, str]


def derived_variables(
    mechanism: Mechanism, wanted: RecordedQuantities, observed: dict[str, np.ndarray]
) -> tuple[dict[str, Variable], dict[str, Any]]:
    """What is wanted beside the usual: variables as dimensions after world and time, values, long name and unit; and coordinates."""
    per: dict[str, Variable] = {}
    found: dict[str, Any] = {}
    if wanted.frames:
        positions = observed["positions"].reshape(*observed["positions"].shape[:2], len(wanted.frames), 3)
        per["frame_position"] = (("frame", "axis"), positions, "positions of frames in the world", "m")
        found["frame"] = ("frame", _texts(wanted.frames))
    if wanted.constraints:
        text = "generalised effort of constraints, limits, friction and contacts"
        per["constraint_effort"] = (("speed",), observed["constraints"], text, "effort_unit")
    if wanted.forces:
        held = _forces(mechanism, observed["forces"], per)
        names = {"acting": "name", "acting_kind": "kind", "acting_on": "body", "acting_from": "other"}
        found |= {label: ("acting", _texts(getattr(a, part) for a in held)) for label, part in names.items()}
    if wanted.frames or wanted.forces:
        found["axis"] = ("axis", _texts("xyz"))
    if wanted.zwang:
        found |= _zwang(mechanism, observed, per)
    if wanted.gaps and constraint_residuals(mechanism):
        found |= _gaps(mechanism, observed["gaps"], per)
    return per, found


def _forces(mechanism: Mechanism, observed: np.ndarray, per: dict[str, Variable]) -> tuple[PointForceLabel, ...]:
    """Adds the forces with a point to the variables; returns which they are: of contacts those that ever push."""
    everything = point_force_labels(mechanism)
    both = observed.reshape(*observed.shape[:2], len(everything), 2, 3)
    pushing = np.asarray(both[..., 1, :].any(axis=-1))
    ever = np.asarray(pushing.any(axis=(0, 1)))
    kept = [k for k, a in enumerate(everything) if a.kind == CONSTRAINT or ever[k]]
    positions = np.where(pushing[..., None], both[..., 0, :], np.nan)[:, :, kept]
    text = "forces of constraints between points, and of contacts, on the bodies `acting_on`"
    per["force"] = (("acting", "axis"), both[:, :, kept, 1], text, "N")
    per["force_position"] = (("acting", "axis"), positions, "where the forces act; NaN without a force", "m")
    return tuple(everything[k] for k in kept)


def _zwang(mechanism: Mechanism, observed: dict[str, np.ndarray], per: dict[str, Variable]) -> dict[str, Any]:
    """Adds the parts of Z to the variables; returns whose they are."""
    bodies = [solid.body for solid in mechanism.tree.rigid_bodies]
    text = "parts of Z(a) as zwang_by_body has them, of bodies, and of efforts and rotors"
    per["zwang"] = (("zwang_part",), observed["zwang"], text, "W/s")
    text = "parts of Z, of the deviation from the motion without constraints, of bodies and rotors"
    per["constraint_zwang"] = (("constraint_zwang_part",), observed["held"], text, "W/s")
    return {
        "zwang_part": ("zwang_part", _texts([*bodies, "efforts"])),
        "constraint_zwang_part": ("constraint_zwang_part", _texts([*bodies, "rotors"])),
    }


def _gaps(mechanism: Mechanism, observed: np.ndarray, per: dict[str, Variable]) -> dict[str, Any]:
    """Adds the gaps to the variables, NaN for constraints of speeds alone; returns whose they are, and their units."""
    gaps = constraint_residuals(mechanism)
    placed = np.array([bool(gap.placed) for gap in gaps])
    positions, speeds = np.split(observed, 2, axis=-1)
    text = "how far constraints are open"
    per["constraint_gap"] = (("constraint",), np.where(placed, positions, np.nan), text, "constraint_unit")
    text = "how far speeds miss the constraints"
    per["constraint_miss"] = (("constraint",), speeds, text, "constraint_speed_unit")
    rates = [gap.unit if gap.unit == FORMULA else f"{gap.unit}/s" for gap in gaps]
    return {
        "constraint": ("constraint", _texts(gap.name for gap in gaps)),
        "constraint_unit": ("constraint", _texts(gap.unit for gap in gaps)),
        "constraint_speed_unit": ("constraint", _texts(rates)),
    }


def _coordinates(mechanism: Mechanism, begin: InitialState, settings: SimulationSettings, motion: Trajectory) -> dict[str, Any]:
    joints = mechanism.joints
    found: dict[str, Any] = {
        "world": ("world", np.arange(begin.worlds)),
        "time": ("time", settings.times, {"long_name": "time", "units": "s"}),
        "coordinate": ("coordinate", _texts(mechanism.coordinate_names)),
        "speed": ("speed", _texts(mechanism.speed_names)),
        "input": ("input", _texts(control_names(mechanism))),
        "coordinate_unit": ("coordinate", _texts(coordinate_units(mechanism))),
        "speed_unit": ("speed", _texts(speed_units(mechanism))),
        "effort_unit": ("speed", _texts("N" if u == "m/s" else "N m" for u in speed_units(mechanism))),
        "coordinate_joint": ("coordinate", _texts([j.name for j in joints for _ in j.coordinates])),
        "speed_joint": ("speed", _texts([j.name for j in joints for _ in j.speeds])),
        "coordinate_body": ("coordinate", _texts([j.body for j in joints for _ in j.coordinates])),
    }
    if motion.z.shape[2]:
        found["actuator"] = ("actuator", _texts(activations(mechanism)))
    if begin.params:
        found["parameter"] = ("parameter", _texts(begin.params))
        table = np.stack(list(begin.params.values()), axis=1)
        found["parameters"] = (("world", "parameter"), table, {"long_name": "parameters of each world"})
    return found


def _texts(names: Any) -> np.ndarray:
    return np.array([str(name) for name in names], dtype=str)


def coordinate_units(mechanism: Mechanism) -> list[str]:
    """The unit of each coordinate: "rad", "m", or "1" for a quaternion's part."""
    return [_unit(j.kind, part, "1") for j in mechanism.joints for part in j.joint.coordinates]


def speed_units(mechanism: Mechanism) -> list[str]:
    """The unit of each speed: "rad/s" or "m/s"."""
    return [_unit(j.kind, part, "rad") + "/s" for j in mechanism.joints for part in j.joint.speeds]


def _unit(kind: str, part: str, otherwise: str) -> str:
    if part == "":
        return "m" if kind in _LENGTHS else "rad"
    return _UNITS.get(part, otherwise)


@validated_arguments()
def mechanism_of(run: xr.Dataset) -> Mechanism:
    """The mechanism whose motion a recording holds. Raises LoadError for another dataset."""
    if not isinstance(run, xr.Dataset):
        raise ShapeError(
            f"zwang reads the mechanism of a recording of zw.simulate; this is a {type(run).__name__}"
        )
    if "mechanism" not in run:
        raise LoadError("this dataset holds no recording of zwang: it has no variable 'mechanism'")
    return Mechanism.from_json(str(run["mechanism"].item()))


@validated_arguments()
def save(run: xr.Dataset, path: str | Path) -> None:
    """Write a recording without loss: to a NetCDF file (.nc) or a Zarr folder (.zarr).

    It is written whole or not at all, with a checksum that `open_run` looks at. Raises ShapeError for what is no recording, SimulationError for other endings and for
    a folder that holds foreign files, WriteError for what cannot be written, after which an old recording is as it was, and
    MissingExtraError where the library zarr is wanted and not installed.
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
    """The recording that `save` wrote, in memory.

    Raises LoadError for files that hold none, or another one than was written, and MissingExtraError.
    """
    run = read_recording(path)
    if run.attrs.get("format") != FORMAT:
        raise LoadError(
            f"{str(path)!r} holds no recording of zwang: its attribute 'format' is {run.attrs.get('format')!r}"
        )
    return run
