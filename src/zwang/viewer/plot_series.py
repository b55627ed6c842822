"""The series that each kind of plot shows of a recording: recorded values over time, with their names and
units.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import xarray as xr

from zwang.api.arguments.validation import is_restrained
from zwang.errors import ShapeError, UnknownNameError
from zwang.mechanism.mechanism import Mechanism
from zwang.recording.dataset import mechanism_of
from zwang.recording.energy_change import energy_change, energy_drift
from zwang.simulation.quantities.constraint_forces import BETWEEN_POINTS, point_force_labels

SUM, ENERGY = "total", "energy"
DRIFT = "relative energy change"
MAXIMUM_PARTS = 7  # terms of a sum that are shown one by one
RECORD_OPTION = {
    "force": "forces",
    "generalised_constraint_force": "constraints",
    "multiplier": "multipliers",
    "zwang": "zwang",
    "constraint_zwang": "zwang",
    "constraint_violation": "violations",
    "constraint_velocity_residual": "violations",
}
"""For each variable, the name by which `simulate` records it and by which it is computed from the recorded
states.
"""


@dataclass(frozen=True)
class Series:
    """Values (worlds, times, n) of one unit, and their names.

    abscissa: values of the same shape, with names and a unit, against which they are plotted; by default the
    time.
    logarithmic: whether the axis is logarithmic. additive: whether the values are the terms of a sum.
    """

    title: str
    unit: str
    values: np.ndarray
    names: tuple[str, ...]
    abscissa: np.ndarray | None = None
    abscissa_names: tuple[str, ...] = ()
    abscissa_unit: str = ""
    logarithmic: bool = False
    additive: bool = False

    def summed(self) -> Series:
        """The largest terms, the sum of the others, and the total; terms that are always zero are omitted."""
        peaks = np.abs(np.nan_to_num(self.values)).max(axis=(0, 1))
        order = [k for k in np.argsort(-peaks, kind="stable") if peaks[k] > 0]
        cut = len(order) if len(order) <= MAXIMUM_PARTS + 1 else MAXIMUM_PARTS
        first, rest = sorted(order[:cut]), order[cut:]
        lines, names = [self.values[..., k] for k in first], [self.names[k] for k in first]
        if rest:
            lines.append(self.values[..., rest].sum(axis=-1))
            names.append(f"{len(rest)} others")
        values = np.stack([*lines, self.values.sum(axis=-1)], axis=-1)
        return replace(self, values=values, names=(*names, SUM))

    def chosen(self, wanted: Sequence[str]) -> Series:
        """The series restricted to these names."""
        kept = [k for k, name in enumerate(self.names) if name in wanted]
        abscissa = None if self.abscissa is None else self.abscissa[..., kept]
        return replace(
            self, values=self.values[..., kept], names=tuple(self.names[k] for k in kept), abscissa=abscissa,
            abscissa_names=tuple(self.abscissa_names[k] for k in kept) if self.abscissa_names else (),
        )  # fmt: skip


def series_of(run: xr.Dataset, kind: str, names: Sequence[str] | None) -> list[Series]:
    """The series that a kind of plot shows, restricted to `names` if these are given.

    Raises UnknownNameError for an unknown kind or name, and ShapeError if the values were not recorded.
    """
    if kind not in KINDS:
        raise UnknownNameError("kind of plot", kind, ("overview", *KINDS))
    found = [x for x in KINDS[kind](run) if x.names]
    if not found:
        raise ShapeError(f"a plot of kind {kind!r} of this recording would be empty: {NOTHING_TO_SHOW[kind]}")
    if names is None:
        return [x.summed() if x.additive else x for x in found]
    known = dict.fromkeys(name for x in found for name in x.names)
    for name in names:
        if name not in known:
            raise UnknownNameError(f"line of a plot of kind {kind!r}", name, known)
    return [x for x in (one.chosen(names) for one in found) if x.names]


def force_quantities(mechanism: Mechanism) -> tuple[str, ...]:
    """The quantities of `simulate` that record the forces of constraints and contacts: "forces" for those
    with a point of application, "constraints" (generalised forces) for the others; none where neither acts.
    """
    points = bool(point_force_labels(mechanism))
    formulas = any(not isinstance(c, BETWEEN_POINTS) for c in mechanism.constraints)
    generalised = formulas or (not points and is_restrained(mechanism))
    return ("forces",) * points + ("constraints",) * generalised


# ------------------------------------------------------------------------------------------------------ kinds


def _time_histories(run: xr.Dataset) -> Iterator[Series]:
    """All recorded values over time, by variable and unit."""
    yield from _by_unit(
        run, "q", "coordinate", "coordinate_unit", {"rad": "angles", "m": "displacements", "1": "quaternions"}
    )
    yield from _by_unit(run, "v", "speed", "speed_unit", {"rad/s": "angular velocities", "m/s": "velocities"})
    applied = {"N m": "applied torques (passive and actuator)", "N": "applied forces (passive and actuator)"}
    yield from _by_unit(run, "tau", "speed", "force_unit", applied)
    yield Series("control inputs", "unit of the input", run["control"].values, _strings(run["input"]))
    if "activation" in run:
        yield Series("activation", "1", run["activation"].values, _strings(run["actuator"]))
    if "frame_position" in run:
        values = run["frame_position"].values
        for k, frame in enumerate(_strings(run["frame"])):
            names = tuple(f"{frame}.{axis}" for axis in _strings(run["axis"]))
            yield Series(f"position of {frame}", "m", values[:, :, k], names)


def _phase(run: xr.Dataset) -> Iterator[Series]:
    """Velocities against coordinates, for joints with v = dq/dt; joints with quaternions have no phase
    portrait.
    """
    speeds = _strings(run["speed"])
    speed_of = {
        coordinate: speed
        for joint in mechanism_of(run).joints
        for coordinate, speed in zip(joint.coordinates, joint.speeds, strict=False)
    }
    units = _strings(run["coordinate_unit"])
    for k, (name, unit) in enumerate(zip(_strings(run["coordinate"]), units, strict=True)):
        if unit == "1" or speed_of.get(name) not in speeds:
            continue
        at = speeds.index(speed_of[name])
        yield Series(
            name,
            f"{unit}/s",
            run["v"].values[..., at : at + 1],
            (name,),
            run["q"].values[..., k : k + 1],
            (speeds[at],),
            unit,
        )


def _energy(run: xr.Dataset) -> Iterator[Series]:
    """The kinetic, potential and total energy, and the change of the total energy."""
    additive = [run[name].values for name in ("kinetic_energy", "potential_energy", "energy")]
    yield Series("energy", "J", np.stack(additive, axis=-1), ("kinetic", "potential", SUM))
    yield from _energy_drift(run)


def _energy_drift(run: xr.Dataset) -> Iterator[Series]:
    yield Series("change of energy", "J", energy_change(run)[..., None], (ENERGY,))
    yield Series(DRIFT, "1", energy_drift(run)[..., None], (ENERGY,))


def _drift(run: xr.Dataset) -> Iterator[Series]:
    """The energy change, and the violation of the constraints at the position and the velocity level."""
    yield from _energy_drift(run)
    if "constraint_violation" not in run and not mechanism_of(run).constraints:
        return
    _require(run, "constraint_violation", "drift")
    for name, unit, title in (
        ("constraint_violation", "constraint_unit", "constraint violation"),
        ("constraint_velocity_residual", "constraint_speed_unit", "constraint velocity residual"),
    ):
        for one in _by_unit(run, name, "constraint", unit, {}):
            defined = [n for k, n in enumerate(one.names) if np.isfinite(one.values[..., k]).any()]
            yield replace(one.chosen(defined), title=title, logarithmic=True)


def _forces(run: xr.Dataset) -> Iterator[Series]:
    """Magnitudes of the constraint forces and of the net contact force on each body, the generalised
    constraint forces, and the multipliers of the constraints.
    """
    if "generalised_constraint_force" not in run and "multiplier" not in run:
        needed = force_quantities(mechanism_of(run))
        if needed:
            _require(run, "force" if "forces" in needed else "generalised_constraint_force", "forces")
    if "force" in run:
        kinds = np.array(_strings(run["point_force_kind"]))
        force, names = (
            run["force"].transpose("world", "time", "point_force", "axis").values,
            _strings(run["point_force"]),
        )
        each = np.flatnonzero(kinds == "constraint")
        sizes = np.linalg.norm(force[:, :, each], axis=-1)
        yield Series("constraint forces", "N", sizes, tuple(names[k] for k in each))
        yield from _contact_forces_by_body(run, force, kinds == "contact")
    if "generalised_constraint_force" in run:
        titles = {"N m": "generalised constraint forces (torques)", "N": "generalised constraint forces"}
        yield from _by_unit(run, "generalised_constraint_force", "speed", "force_unit", titles)
    if "multiplier" in run:
        titles = {"N m": "multipliers of constraints (torques)", "N": "multipliers of constraints (forces)"}
        yield from _by_unit(run, "multiplier", "constraint_row", "multiplier_unit", titles)


def _contact_forces_by_body(run: xr.Dataset, force: np.ndarray, contact: np.ndarray) -> Iterator[Series]:
    """The magnitude of the net contact force on each body other than the world, reactions included.

    force (worlds, times, n, 3): the forces with a point of application. contact (n,): which are of contacts.
    """
    on, other = (np.array(_strings(run[f"point_force_{end}"])) for end in ("body", "other_body"))
    bodies = [body for body in dict.fromkeys([*on[contact], *other[contact]]) if body != "world"]
    sums = [
        force[:, :, contact & (on == body)].sum(axis=2) - force[:, :, contact & (other == body)].sum(axis=2)
        for body in bodies
    ]
    if sums:
        sizes = np.linalg.norm(np.stack(sums, axis=2), axis=-1)
        yield Series("contact forces by body", "N", sizes, tuple(str(body) for body in bodies))


def _zwang(run: xr.Dataset) -> Iterator[Series]:
    """Gauss's constraint Z by body: relative to the motion without constraints, and relative to free fall."""
    _require(run, "constraint_zwang", "zwang")
    title, by_constraints = "Gauss's constraint Z by body", run["constraint_zwang"].values
    if np.nanmax(np.abs(by_constraints), initial=0) > 0:
        parts = _strings(run["constraint_zwang_part"])
        yield Series(f"{title} (constraints)", "W/s", by_constraints, parts, additive=True)
    parts = _strings(run["zwang_part"])
    yield Series(f"{title} (whole motion)", "W/s", run["zwang"].values, parts, additive=True)


KINDS: dict[str, Callable[[xr.Dataset], Iterator[Series]]] = {
    "time": _time_histories,
    "phase": _phase,
    "energy": _energy,
    "drift": _drift,
    "forces": _forces,
    "zwang": _zwang,
}


NOTHING_TO_SHOW = {
    **dict.fromkeys(KINDS, "the mechanism has no joints"),
    "phase": "no generalised velocity is the derivative of a coordinate",
    "forces": "the mechanism has neither constraints nor contacts, limits or dry friction",
}

# --------------------------------------------------------------------------------------------------- together


def _require(run: xr.Dataset, variable: str, kind: str) -> None:
    if variable not in run:
        name = RECORD_OPTION[variable]
        raise ShapeError(
            f"a plot of kind {kind!r} needs {variable!r}, which this recording does not contain. Record it, "
            f"zw.simulate(..., record={{{name!r}: True}}), or compute it now, "
            f"zw.plot(zw.derived_quantities(run, {name!r}), kind={kind!r})"
        )


def _by_unit(run: xr.Dataset, name: str, axis: str, units: str, titles: dict[str, str]) -> Iterator[Series]:
    """The elements of a variable, a series for each unit."""
    unit_of = np.array(_strings(run[units]))
    values, names = run[name].values, _strings(run[axis])
    for unit in dict.fromkeys(unit_of.tolist()):
        kept = np.flatnonzero(unit_of == unit)
        yield Series(titles.get(unit, name), unit, values[..., kept], tuple(names[k] for k in kept))


def _strings(values: xr.DataArray) -> tuple[str, ...]:
    return tuple(str(x) for x in values.values)
