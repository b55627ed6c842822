"""What a simulation is asked for, checked: steps, integrator, what is recorded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from zwang.api.initial_conditions import sample_size
from zwang.api.memory_limit import check_memory
from zwang.constraint.independent_velocities import independent_velocities
from zwang.errors import SimulationError, UnknownNameError
from zwang.integrator.adaptive_step import METHODS, WITHOUT_PROJECTION, Adaptive
from zwang.mechanism.mechanism import Mechanism
from zwang.scalar import real_number
from zwang.simulation.constraint_forces import point_force_labels
from zwang.simulation.constraint_stage import DRIFTS
from zwang.simulation.step import STEPPERS

RECORDED_NUMBERS = 20_000_000  # with no `record`, a run keeps at most so many
MOST_STEPS = 1_000_000_000
RECORD = ("every", "frames", "constraints", "forces", "zwang", "gaps")


@dataclass(frozen=True)
class RecordedQuantities:
    """What is recorded beside the usual, at the step h [s] and with drift held so.

    Frames' positions; the efforts of constraints; the forces with a point of these and of contacts; the Zwang by body; and by how much
    constraints are open.
    """

    frames: tuple[str, ...] = ()
    constraints: bool = False
    forces: bool = False
    zwang: bool = False
    gaps: bool = False
    h: float = 0.0
    stabilization: str = "projection"


@dataclass(frozen=True)
class SimulationSettings:
    """duration = steps * step [s]; every `every`-th step is recorded, and the last; what is wanted beside the usual."""

    step: float
    steps: int
    every: int
    integrator: str | Adaptive
    wanted: RecordedQuantities = RecordedQuantities()
    stabilization: str = "projection"
    coordinate_reduction: Any = False

    @cached_property
    def samples(self) -> np.ndarray:
        """The numbers of the steps after which the state is recorded, from 0 on."""
        regular = np.arange(0, self.steps + 1, self.every)
        return regular if regular[-1] == self.steps else np.append(regular, self.steps)

    @property
    def times(self) -> np.ndarray:
        """The recorded times [s]."""
        return self.samples * self.step

    @property
    def adaptive(self) -> Adaptive | None:
        """The error-controlled integrator, or None for one of fixed steps."""
        return self.integrator if isinstance(self.integrator, Adaptive) else None


def simulation_settings(
    mechanism: Mechanism,
    worlds: int,
    duration: Any,
    step: Any,
    integrator: Any,
    record: Any,
    stabilization: Any = None,
    coordinate_reduction: Any = False,
) -> SimulationSettings:
    """The settings of a run; what is not given comes from the mechanism's options.

    Raises SimulationError for times that are not positive, unknown integrators, more steps than can be meant, or a recording without
    memory for it.
    """
    h = positive(mechanism.options.timestep if step is None else step, "step")
    steps = positive(duration, "duration") / h
    if steps > MOST_STEPS:
        raise SimulationError(
            f"duration / step is {steps:.3g} steps; at most {MOST_STEPS:,} are run: give a larger step"
        )
    count = round(steps)
    if count < 1:
        raise SimulationError(f"duration is {duration} s, less than half of one step of {h} s")
    every, wanted = recording(mechanism, record, h)
    numbers = sample_size(mechanism) + 3 * len(wanted.frames)
    numbers += 6 * len(point_force_labels(mechanism)) if wanted.forces else 0
    if every is None:
        every = max(1, -(-worlds * count * numbers // RECORDED_NUMBERS))
    check_memory(worlds, 1 + -(-count // min(every, count)), numbers)
    chosen = chosen_integrator(mechanism, integrator)
    held = chosen_drift(stabilization, chosen)
    speeds = independent_velocities(mechanism, coordinate_reduction)
    return SimulationSettings(
        h, count, min(every, count), chosen, replace(wanted, stabilization=held), held, speeds or speeds is not None
    )


def named_speeds(coordinate_reduction: Any) -> str:
    """An embedding as text: "none", "automatic", or the essential speeds' names."""
    if isinstance(coordinate_reduction, bool):
        return "automatic" if coordinate_reduction else "none"
    return " ".join(speed if isinstance(speed, str) else speed.name for speed in coordinate_reduction)


def chosen_drift(stabilization: Any, integrator: str | Adaptive) -> str:
    """How drift off exact constraints is held: by projection after steps, but for integrators whose history cannot be changed."""
    fixed_history = isinstance(integrator, Adaptive) and integrator.method in WITHOUT_PROJECTION
    if stabilization is None:
        return "stabilisation" if fixed_history else "projection"
    if not isinstance(stabilization, str) or stabilization not in DRIFTS:
        raise SimulationError(f"drift is {stabilization!r}; it is held by {' or '.join(map(repr, DRIFTS))}")
    if fixed_history and stabilization == "projection":
        raise SimulationError(
            "drift='projection' changes the state after each step, which 'lsoda' does not let; it has 'stabilisation', and 'bdf' or "
            "'radau' have both"
        )
    return stabilization


def positive(value: Any, name: str) -> float:
    """A time [s] above zero. Raises SimulationError."""
    try:
        number = real_number(value)
    except (TypeError, ValueError, OverflowError):
        raise SimulationError(f"{name} is {value!r}; it must be a time in seconds, a real number") from None
    if isinstance(value, bool | np.bool_) or not 0 < number < np.inf:
        raise SimulationError(f"{name} is {value!r}; it must be a positive, finite time in seconds")
    return number


def chosen_integrator(mechanism: Mechanism, integrator: Any) -> str | Adaptive:
    """The integrator asked for, or that of the mechanism's options. Raises SimulationError."""
    if isinstance(integrator, Adaptive):
        return integrator
    name = mechanism.options.integrator if integrator is None else integrator
    key = str(name).lower()
    if key in METHODS:
        return Adaptive(key)
    if key not in STEPPERS:
        raise SimulationError(
            f"there is no integrator {name!r}; of fixed step there are {', '.join(STEPPERS)}, "
            f"error-controlled {', '.join(METHODS)} (or zw.Adaptive(method, rtol=..., atol=...))"
        )
    return key


def recording(mechanism: Mechanism, record: Any, h: float) -> tuple[int | None, RecordedQuantities]:
    """(every, wanted) from `record`: a whole number, or a dictionary with some of `RECORD`."""
    if not isinstance(record, Mapping):
        return None if record is None else _every(record), RecordedQuantities(h=h)
    for key in record:
        if key not in RECORD:
            raise UnknownNameError("entry of record", key, RECORD)
    frames = record.get("frames", ())
    frames = (frames,) if isinstance(frames, str) else frames
    if not isinstance(frames, Sequence):
        raise SimulationError(f"frames of record is {frames!r}; give a list of names of bodies and frames")
    frames = tuple(frames)
    for frame in frames:
        mechanism.tree.placement(frame)
    every = record.get("every")
    constraints, forces, zwang, gaps = (bool(record.get(name)) for name in RECORD[2:])
    wanted = RecordedQuantities(frames, constraints, forces, zwang, gaps, h)
    return None if every is None else _every(every), wanted


def _every(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
        raise SimulationError(f"record is {value!r}; give a whole number k >= 1 to keep every k-th step")
    return int(value)
