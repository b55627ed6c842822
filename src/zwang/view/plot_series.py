"""What a plot of each kind shows of a recording: values over time with their names and units, as far as these were recorded."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import xarray as xr

from zwang.errors import ShapeError, UnknownNameError
from zwang.recording.record import mechanism_of

SUM, WHOLE = "sum", "energy"
DRIFT = "change of energy, relative"
MOST_PARTS = 7  # of a sum that are shown one by one
NEEDED = {
    "force": "forces", "constraint_effort": "constraints", "zwang": "zwang", "constraint_zwang": "zwang", "constraint_gap": "gaps",
    "constraint_miss": "gaps",
}  # fmt: skip
"""By variable, the name by which `simulate` records it and `examine` finds it."""


@dataclass(frozen=True)
class Series:
    """Values (worlds, times, n) of one unit, and their names; against `across` (as many, of `across_unit`), or else over time.

    steep: their sizes matter more than their differences, so that the axis is logarithmic. parts: they are parts of a sum.
    """

    title: str
    unit: str
    values: np.ndarray
    names: tuple[str, ...]
    across: np.ndarray | None = None
    across_names: tuple[str, ...] = ()
    across_unit: str = ""
    steep: bool = False
    parts: bool = False

    def summed(self) -> Series:
        """The largest parts, the sum of the others, and the sum; parts that are always zero are left out."""
        peaks = np.abs(np.nan_to_num(self.values)).max(axis=(0, 1))
        order = [k for k in np.argsort(-peaks, kind="stable") if peaks[k] > 0]
        cut = len(order) if len(order) <= MOST_PARTS + 1 else MOST_PARTS
        first, rest = sorted(order[:cut]), order[cut:]
        lines, names = [self.values[..., k] for k in first], [self.names[k] for k in first]
        if rest:
            lines.append(self.values[..., rest].sum(axis=-1))
            names.append(f"{len(rest)} others")
        values = np.stack([*lines, self.values.sum(axis=-1)], axis=-1)
        return replace(self, values=values, names=(*names, SUM))

    def chosen(self, wanted: Sequence[str]) -> Series:
        """Only the values of these names."""
        kept = [k for k, name in enumerate(self.names) if name in wanted]
        across = None if self.across is None else self.across[..., kept]
        return replace(
            self, values=self.values[..., kept], names=tuple(self.names[k] for k in kept), across=across,
            across_names=tuple(self.across_names[k] for k in kept) if self.across_names else (),
        )  # fmt: skip


def series_of(run: xr.Dataset, kind: str, names: str | Sequence[str] | None) -> list[Series]:
    """What a kind of plot shows, less what has other names than those.

    Raises UnknownNameError for a kind or a name that is not there, ShapeError where what it shows was not recorded.
    """
    if kind not in KINDS:
        raise UnknownNameError("kind of plot", kind, ("overview", *KINDS))
    found = [x for x in KINDS[kind](run) if x.names]
    if not found:
        raise ShapeError(f"this recording has nothing that a plot of kind {kind!r} could show: {EMPTY[kind]}")
    if names is None:
        return [x.summed() if x.parts else x for x in found]
    names = (names,) if isinstance(names, str) else names
    known = dict.fromkeys(name for x in found for name in x.names)
    for name in names:
        if name not in known:
            raise UnknownNameError(f"line of a plot of kind {kind!r}", name, known)
    return [x for x in (one.chosen(names) for one in found) if x.names]


def energy_drift(run: xr.Dataset) -> np.ndarray:
    """(worlds, times): the energy less that at the start, over the largest of kinetic energy and of the energies' spread."""
    energy, kinetic = run["energy"].values, run["kinetic_energy"].values
    potential = run["potential_energy"].values
    with np.errstate(all="ignore"):
        spread = np.nanmax(potential, axis=1) - np.nanmin(potential, axis=1)
        scale = np.maximum(np.nanmax(kinetic, axis=1), spread)
    return (energy - energy[:, :1]) / np.where(scale > 0, scale, 1.0)[:, None]


# ------------------------------------------------------------------------------------------------ kinds


def _histories(run: xr.Dataset) -> Iterator[Series]:
    """Everything over time, by variable and unit."""
    yield from _by_unit(
        run, "q", "coordinate", "coordinate_unit", {"rad": "angles", "m": "displacements", "1": "quaternions"}
    )
    yield from _by_unit(run, "v", "speed", "speed_unit", {"rad/s": "angular velocities", "m/s": "velocities"})
    applied = {"N m": "torques of springs, dampers and drives", "N": "forces of springs, dampers and drives"}
    yield from _by_unit(run, "tau", "speed", "effort_unit", applied)
    yield Series("control", "as driven", run["control"].values, _texts(run["input"]))
    if "activation" in run:
        yield Series("activation", "1", run["activation"].values, _texts(run["actuator"]))
    if "frame_position" in run:
        values = run["frame_position"].values
        for k, frame in enumerate(_texts(run["frame"])):
            names = tuple(f"{frame}.{axis}" for axis in _texts(run["axis"]))
            yield Series(f"position of {frame}", "m", values[:, :, k], names)


def _phase(run: xr.Dataset) -> Iterator[Series]:
    """Speeds against their coordinates, where a speed is a coordinate's rate: not for turns in space."""
    joints, parts = _texts(run["coordinate_joint"]), _texts(run["coordinate"])
    speeds, of = _texts(run["speed"]), _texts(run["speed_joint"])
    for k, (name, joint, unit) in enumerate(zip(parts, joints, _texts(run["coordinate_unit"]), strict=True)):
        own = [i for i, other in enumerate(of) if other == joint]
        here = [i for i, other in enumerate(joints) if other == joint]
        if unit == "1" or here.index(k) >= len(own):
            continue
        at = own[here.index(k)]
        yield Series(
            name, f"{unit}/s", run["v"].values[..., at : at + 1], (name,), run["q"].values[..., k : k + 1], (speeds[at],), unit
        )  # fmt: skip


def _energy(run: xr.Dataset) -> Iterator[Series]:
    """Energies, and the change of their sum."""
    parts = [run[name].values for name in ("kinetic_energy", "potential_energy", "energy")]
    yield Series("energy", "J", np.stack(parts, axis=-1), ("kinetic", "potential", SUM))
    yield from _energy_drift(run)


def _energy_drift(run: xr.Dataset) -> Iterator[Series]:
    energy = run["energy"].values
    yield Series("change of energy", "J", (energy - energy[:, :1])[..., None], (WHOLE,))
    yield Series(DRIFT, "1", energy_drift(run)[..., None], (WHOLE,))


def _drift(run: xr.Dataset) -> Iterator[Series]:
    """The change of energy, and how far constraints are open and speeds miss them."""
    yield from _energy_drift(run)
    if "constraint_gap" not in run and not mechanism_of(run).constraints:
        return
    _need(run, "constraint_gap", "drift")
    for name, unit, title in (
        ("constraint_gap", "constraint_unit", "gaps of constraints"),
        ("constraint_miss", "constraint_speed_unit", "speeds off constraints"),
    ):
        for one in _by_unit(run, name, "constraint", unit, {}):
            told = [n for k, n in enumerate(one.names) if np.isfinite(one.values[..., k]).any()]
            yield replace(one.chosen(told), title=title, steep=True)


def _forces(run: xr.Dataset) -> Iterator[Series]:
    """The sizes of constraints' forces, and of contacts' sums by body; and the efforts of all constraints by speed."""
    if "constraint_effort" not in run:
        _need(run, "force", "forces")
    if "force" in run:
        kinds, on = np.array(_texts(run["acting_kind"])), np.array(_texts(run["acting_on"]))
        force, names = run["force"].transpose("world", "time", "acting", "axis").values, _texts(run["acting"])
        each = np.flatnonzero(kinds == "constraint")
        sizes = np.linalg.norm(force[:, :, each], axis=-1)
        yield Series("forces of constraints", "N", sizes, tuple(names[k] for k in each))
        bodies = tuple(dict.fromkeys(on[kinds == "contact"].tolist()))
        sums = [force[:, :, (kinds == "contact") & (on == body)].sum(axis=2) for body in bodies]
        if sums:
            yield Series(
                "forces of contacts, by body", "N", np.linalg.norm(np.stack(sums, axis=2), axis=-1), bodies
            )
    if "constraint_effort" in run:
        titles = {"N m": "torques of all constraints at joints", "N": "forces of all constraints at joints"}
        yield from _by_unit(run, "constraint_effort", "speed", "effort_unit", titles)


def _zwang(run: xr.Dataset) -> Iterator[Series]:
    """The parts of the Zwang that constraints make, and of all of it, against free fall."""
    _need(run, "constraint_zwang", "zwang")
    held = run["constraint_zwang"].values
    if np.nanmax(np.abs(held), initial=0) > 0:
        yield Series(
            "Zwang by constraints, by body", "W/s", held, _texts(run["constraint_zwang_part"]), parts=True
        )
    yield Series(
        "Z of the motion, by body", "W/s", run["zwang"].values, _texts(run["zwang_part"]), parts=True
    )


KINDS: dict[str, Callable[[xr.Dataset], Iterator[Series]]] = {
    "time": _histories, "phase": _phase, "energy": _energy, "drift": _drift, "forces": _forces, "zwang": _zwang,
}  # fmt: skip


EMPTY = {
    **dict.fromkeys(KINDS, "nothing moves"),
    "phase": "no coordinate's rate is a speed",
    "forces": "nothing restricts, and nothing touches",
}

# --------------------------------------------------------------------------------------------- together


def _need(run: xr.Dataset, variable: str, kind: str) -> None:
    if variable not in run:
        name = NEEDED[variable]
        raise ShapeError(
            f"a plot of kind {kind!r} shows {variable!r}, which this recording does not hold: record it, "
            f"zw.simulate(..., record={{{name!r}: True}}), or find it now, zw.plot(zw.examine(run, {name!r}), kind={kind!r})"
        )


def _by_unit(run: xr.Dataset, name: str, axis: str, units: str, titles: dict[str, str]) -> Iterator[Series]:
    """A variable's elements, those of one unit together."""
    unit_of = np.array(_texts(run[units]))
    values, names = run[name].values, _texts(run[axis])
    for unit in dict.fromkeys(unit_of.tolist()):
        kept = np.flatnonzero(unit_of == unit)
        yield Series(titles.get(unit, name), unit, values[..., kept], tuple(names[k] for k in kept))


def _texts(values: xr.DataArray) -> tuple[str, ...]:
    return tuple(str(x) for x in values.values)
