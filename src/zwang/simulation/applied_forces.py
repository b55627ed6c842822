"""The applied generalised forces of a step: passive forces, controlled forces, and the activations of
actuators.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from zwang.constraint.bearings import BearingLoads, ReleasedMechanism
from zwang.constraint.hard import rheonomic_constraints
from zwang.dynamics.actuators import Inputs, activation_derivatives, advanced_state
from zwang.dynamics.generalised_forces import (
    clip_to_actuator_ranges,
    controlled_forces_of,
    passive_forces_of,
)
from zwang.kinematics.kinematics import Kinematics
from zwang.mechanism.force_elements import Actuator
from zwang.mechanism.mechanism import Mechanism


def applied_forces(
    mechanism: Mechanism, kinematics: Kinematics, z: Any, control: Any, t: Any, h: Any
) -> np.ndarray:
    """The applied generalised force tau (nv,) [N m, N] at the time t [s]: passive and controlled forces.

    h [s]: the size of the time step, for `Inputs`.
    For a mechanism without inputs the control is itself the generalised force of the actuators. The forces
    of actuators alone are clipped to the actuator ranges of the joints.
    """
    passive = passive_forces_of(mechanism, kinematics)
    if not mechanism.inputs:
        return passive + clip_to_actuator_ranges(mechanism, np.asarray(control))
    return passive + controlled_forces_of(mechanism, kinematics, inputs_by_name(mechanism, z, control, t, h))


def time_dependent_parts(mechanism: Mechanism) -> list[str]:
    """The constraints that are enabled and depend on the time t, and the actuators whose force does, as
    "constraint NAME".
    """
    return [
        *(f"constraint {name!r}" for name in rheonomic_constraints(mechanism)),
        *(f"actuator {name!r}" for name in slew_limited_actuators(mechanism)),
    ]


def slew_limited_actuators(mechanism: Mechanism) -> list[str]:
    """The names of the actuators whose PID controllers limit the change of the set point in each step."""
    pids = [f for f in _actuators_with_states(mechanism) if f.pid is not None]
    return [f.name for f in pids if f.pid is not None and f.pid.slew_rate is not None]


def depend_on_step(mechanism: Mechanism) -> bool:
    """Whether an actuator has another force in a time step than in continuous time, see `Inputs`."""
    return any(
        f.early or f.pid is not None or f.activation_range is not None
        for f in _actuators_with_states(mechanism)
    )


def bearing_loads_of(
    released: ReleasedMechanism | None, q: Any, v: Any, z: Any, control: Any, t: Any, h: Any
) -> BearingLoads | None:
    """The applied forces of the released mechanism of the joints with Coulomb friction, if there are any."""
    if released is None:
        return None
    own = np.asarray(control) if released.mechanism.inputs else released.velocities(control)
    kinematics = Kinematics(released.mechanism.tree, released.configuration(q), released.velocities(v))
    applied = applied_forces(released.mechanism, kinematics, z, own, t, h)
    return BearingLoads(released, applied)


def inputs_by_name(mechanism: Mechanism, z: Any, control: Any, t: Any, h: Any) -> Inputs:
    """The inputs of all actuators at the states z (nz,), the control (nu,), the time and the step size."""
    return Inputs(controls_by_name(mechanism, control), by_name(activations(mechanism), z), t, h)


def controls_by_name(mechanism: Mechanism, control: Any) -> Mapping[str, Any]:
    """The control by the names of the inputs; empty for a mechanism without inputs."""
    return by_name(mechanism.inputs, control) if mechanism.inputs else {}


def activations(mechanism: Mechanism) -> tuple[str, ...]:
    """The names of the states of actuators, in the order of the elements of z; an activation has the name of
    its actuator.
    """
    return tuple(name for f in _actuators_with_states(mechanism) for name in f.states)


def activation_rate(
    mechanism: Mechanism, kinematics: Kinematics, z: Any, control: Any, t: Any, h: Any
) -> np.ndarray:
    """The time derivative z_dot (nz,) of the states of actuators [1/s], at the time t [s].

    h [s]: the size of the time step, for `Inputs`.
    """
    names = activations(mechanism)
    if not names:
        return np.zeros(0)
    rates = activation_derivatives(mechanism, kinematics, inputs_by_name(mechanism, z, control, t, h))
    return np.array([rates[name] for name in names])


def next_activation(mechanism: Mechanism, z: Any, z_dot: Any, dt: Any) -> np.ndarray:
    """The states z (nz,) of actuators after the time dt [s], within their ranges."""
    own = [f for f in _actuators_with_states(mechanism) for _ in f.states]
    rows = zip(own, z, z_dot, strict=True)
    return np.array([advanced_state(actuator, rate, value, dt) for actuator, value, rate in rows])


def by_name(names: tuple[str, ...], values: Any) -> Mapping[str, Any]:
    """The values as a dictionary by name."""
    return dict(zip(names, values, strict=True))


def _actuators_with_states(mechanism: Mechanism) -> list[Actuator]:
    return [f for f in mechanism.forces if isinstance(f, Actuator) and f.states]
