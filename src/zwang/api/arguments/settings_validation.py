"""Validation of the settings of a simulation: steps, integrator, stabilisation, recorded quantities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from zwang.api.arguments.initial_conditions import sample_size
from zwang.api.arguments.memory_limit import check_memory
from zwang.collision import candidate_pairs
from zwang.constraint.contact import restitution
from zwang.constraint.context import STABILIZATIONS, StepForm
from zwang.constraint.impact import hard_contact_pairs
from zwang.constraint.independent_velocities import independent_velocities
from zwang.deprecation import warn_of_rename
from zwang.errors import SimulationError, UnknownNameError
from zwang.integrator.adaptive_step import METHODS, WITHOUT_PROJECTION, Adaptive
from zwang.mechanism.mechanism import Mechanism
from zwang.scalar import are_constant, real_number
from zwang.simulation.applied_forces import slew_limited_actuators
from zwang.simulation.constraint_options import contact_enabled
from zwang.simulation.quantities.constraint_forces import point_force_labels
from zwang.simulation.quantities.constraint_multipliers import multiplier_labels
from zwang.simulation.quantities.joint_wrenches import check_reactions
from zwang.simulation.settings import CoordinateReduction, RecordedQuantities, SimulationSettings
from zwang.simulation.step import MULTISTAGE, STEPPERS

RECORDED_NUMBERS = 20_000_000  # recorded at most, by default
MOST_STEPS = 1_000_000_000
FLAGS = ("constraints", "forces", "zwang", "violations", "reactions", "multipliers")
RECORD = ("every", "frames", "sensors", *FLAGS)


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
    """The validated settings of a simulation; arguments that are None take the mechanism's options.

    Raises SimulationError for a time that is not positive, an unknown integrator, too many steps, or a
    recording that does not fit into memory.
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
    every, wanted = recorded_quantities(mechanism, record, h)
    numbers = sample_size(mechanism) + 3 * len(wanted.frames)
    numbers += sum(mechanism.sensor(name).quantity.size for name in wanted.sensors)
    numbers += 6 * len(point_force_labels(mechanism)) if wanted.forces else 0
    numbers += 6 * len(mechanism.joints) if wanted.reactions else 0
    numbers += len(multiplier_labels(mechanism)) if wanted.multipliers else 0
    if every is None:
        every = max(1, -(-worlds * count * numbers // RECORDED_NUMBERS))
    check_memory(worlds, 1 + -(-count // min(every, count)), numbers)
    chosen = chosen_integrator(mechanism, integrator)
    check_restitution(mechanism, chosen)
    check_slew_rates(mechanism, chosen)
    method = chosen_stabilization(stabilization, chosen)
    independent = independent_velocities(mechanism, coordinate_reduction)
    return SimulationSettings(
        h,
        count,
        min(every, count),
        chosen,
        replace(wanted, step=step_form(h, chosen, method)),
        method,
        independent or independent is not None,
    )


def check_restitution(mechanism: Mechanism, integrator: str | Adaptive) -> None:
    """Raises SimulationError for hard surfaces that bounce, with an error-controlled integrator."""
    if not isinstance(integrator, Adaptive) or not contact_enabled(mechanism):
        return
    for pair in hard_contact_pairs(candidate_pairs(mechanism)):
        e = restitution(pair)
        if not (are_constant(e) and e == 0):
            raise SimulationError(
                f"the contact of {pair.a.name} and {pair.b.name} has a restitution, and error-controlled "
                f"integrators such as {integrator.method!r} do not locate impacts; use one of fixed step "
                f"size ({', '.join(STEPPERS)}), which do, or soft contacts, or restitution=0"
            )


def check_slew_rates(mechanism: Mechanism, integrator: str | Adaptive) -> None:
    """Raises SimulationError for set points with a slew rate, with an error-controlled integrator."""
    limited = slew_limited_actuators(mechanism)
    if isinstance(integrator, Adaptive) and limited:
        raise SimulationError(
            f"the PID controller of actuator {limited[0]!r} has a slew_rate, which limits the set point from "
            f"one time step to the next, and error-controlled integrators such as {integrator.method!r} have "
            f"no fixed time steps; use one that does ({', '.join(STEPPERS)}), or slew_rate=None"
        )


def step_form(h: float, integrator: str | Adaptive, stabilization: str = "projection") -> StepForm:
    """How steps of size h [s] of an integrator, or of that of this name, close hard constraints."""
    continuous = isinstance(integrator, Adaptive) or integrator in METHODS
    return StepForm(h, stabilization, continuous or integrator in MULTISTAGE, continuous)


def velocity_names(coordinate_reduction: CoordinateReduction) -> str:
    """A coordinate reduction as text: "none", "automatic", or the names of the independent velocities."""
    if isinstance(coordinate_reduction, bool):
        return "automatic" if coordinate_reduction else "none"
    return " ".join(speed if isinstance(speed, str) else speed.name for speed in coordinate_reduction)


def chosen_stabilization(stabilization: Any, integrator: str | Adaptive) -> str:
    """The stabilisation of hard constraints: "projection", or "baumgarte" for integrators that need their
    history.

    Raises SimulationError for another name, or a projection that the integrator does not allow.
    """
    needs_history = isinstance(integrator, Adaptive) and integrator.method in WITHOUT_PROJECTION
    if stabilization is None:
        return "baumgarte" if needs_history else "projection"
    if isinstance(stabilization, str) and stabilization == "stabilisation":
        warn_of_rename("stabilization='stabilisation'", "stabilization='baumgarte'", stacklevel=7)
        stabilization = "baumgarte"
    if not isinstance(stabilization, str) or stabilization not in STABILIZATIONS:
        raise SimulationError(
            f"stabilization is {stabilization!r}; it must be {' or '.join(map(repr, STABILIZATIONS))}"
        )
    if needs_history and stabilization == "projection":
        raise SimulationError(
            "stabilization='projection' changes the state after each step, which 'lsoda' does not allow; use "
            "'baumgarte', or the integrators 'bdf' or 'radau', which allow both"
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
    """The given integrator, or that of the mechanism's options. Raises SimulationError."""
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


def recorded_quantities(mechanism: Mechanism, record: Any, h: float) -> tuple[int | None, RecordedQuantities]:
    """(every, quantities) from `record`: a whole number, or a dictionary with some of the keys `RECORD`."""
    if not isinstance(record, Mapping):
        return None if record is None else _every(record), RecordedQuantities(step=StepForm(h))
    record = {current_quantity(key): value for key, value in record.items()}
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
    flags = {name: _flag(name, record.get(name, False)) for name in FLAGS}
    sensors = recorded_sensors(mechanism, record.get("sensors", ()))
    wanted = replace(RecordedQuantities(frames, step=StepForm(h), sensors=sensors), **flags)
    if wanted.reactions:
        check_reactions(mechanism)
    return None if every is None else _every(every), wanted


def current_quantity(name: Any) -> Any:
    """The name of a recorded quantity; "gaps", its name in version 0.1, gives a DeprecationWarning."""
    if isinstance(name, str) and name == "gaps":
        warn_of_rename('record={"gaps": True}', 'record={"violations": True}', stacklevel=6)
        return "violations"
    return name


def recorded_sensors(mechanism: Mechanism, value: Any) -> tuple[str, ...]:
    """The names of the sensors in the entry "sensors" of record: True for all, False for none, or names.

    Raises SimulationError for another value, and UnknownNameError.
    """
    if isinstance(value, bool | np.bool_):
        return tuple(sensor.name for sensor in mechanism.sensors) if value else ()
    names = (value,) if isinstance(value, str) else value
    if not isinstance(names, Sequence):
        raise SimulationError(f"sensors of record is {value!r}; give True, or a list of names of sensors")
    return tuple(mechanism.sensor(name).name for name in names)


def _flag(name: str, value: Any) -> bool:
    """Whether a quantity is recorded: True, False, 1 or 0. Raises SimulationError for another value."""
    if not isinstance(value, bool | int | np.bool_ | np.integer) or value not in (0, 1):
        raise SimulationError(f"{name} of record is {value!r}; give True or False")
    return bool(value)


def _every(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
        raise SimulationError(f"record is {value!r}; give a whole number k >= 1 to keep every k-th step")
    return int(value)
