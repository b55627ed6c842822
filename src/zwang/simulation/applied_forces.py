"""The applied generalised forces of a step: passive forces, actuator forces, and the activations of
actuators.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from zwang.constraint.bearings import BearingLoads, ReleasedMechanism
from zwang.dynamics.generalised_forces import (
    activation_derivatives,
    actuator_forces_of,
    advance_activation,
    clip_to_actuator_ranges,
    passive_forces_of,
)
from zwang.kinematics.kinematics import Kinematics
from zwang.mechanism.force_elements import Actuator
from zwang.mechanism.mechanism import Mechanism


def applied_forces(mechanism: Mechanism, kinematics: Kinematics, z: Any, control: Any) -> np.ndarray:
    """The applied generalised force tau (nv,) [N m, N]: passive forces plus actuator forces.

    For a mechanism without inputs the control is itself the generalised force of the actuators. Both are
    clipped to the actuator ranges of the joints.
    """
    passive = passive_forces_of(mechanism, kinematics)
    if not mechanism.inputs:
        return passive + clip_to_actuator_ranges(mechanism, np.asarray(control))
    return passive + actuator_forces_of(
        mechanism, kinematics, controls_by_name(mechanism, control), by_name(activations(mechanism), z)
    )


def with_time_step(mechanism: Mechanism, h: Any) -> Mechanism:
    """The mechanism with the time step h [s] in its options, if forces of early activations depend on it."""
    early = any(f.early for f in _actuators_with_activation(mechanism))
    if not early or mechanism.options.timestep == h:
        return mechanism
    return mechanism.replace(options=replace(mechanism.options, timestep=h))


def bearing_loads_of(
    released: ReleasedMechanism | None, q: Any, v: Any, z: Any, control: Any
) -> BearingLoads | None:
    """The applied forces of the released mechanism of the joints with Coulomb friction, if there are any."""
    if released is None:
        return None
    own = np.asarray(control) if released.mechanism.inputs else released.velocities(control)
    kinematics = Kinematics(released.mechanism.tree, released.configuration(q), released.velocities(v))
    applied = applied_forces(released.mechanism, kinematics, z, own)
    return BearingLoads(released, applied)


def controls_by_name(mechanism: Mechanism, control: Any) -> Mapping[str, Any]:
    """The control by the names of the inputs; empty for a mechanism without inputs."""
    return by_name(mechanism.inputs, control) if mechanism.inputs else {}


def activations(mechanism: Mechanism) -> tuple[str, ...]:
    """The names of the actuators with an activation, in the order of the elements of z."""
    return tuple(f.name for f in _actuators_with_activation(mechanism))


def activation_rate(mechanism: Mechanism, z: Any, control: Any) -> np.ndarray:
    """The time derivative z_dot (nz,) of the activations [1/s]."""
    names = activations(mechanism)
    if not names:
        return np.zeros(0)
    rates = activation_derivatives(mechanism, controls_by_name(mechanism, control), by_name(names, z))
    return np.array([rates[name] for name in names])


def next_activation(mechanism: Mechanism, z: Any, z_dot: Any, dt: Any) -> np.ndarray:
    """The activations z (nz,) after the time dt [s], within the ranges of the actuators."""
    rows = zip(_actuators_with_activation(mechanism), z, z_dot, strict=True)
    return np.array([advance_activation(actuator, rate, value, dt) for actuator, value, rate in rows])


def by_name(names: tuple[str, ...], values: Any) -> Mapping[str, Any]:
    """The values as a dictionary by name."""
    return dict(zip(names, values, strict=True))


def _actuators_with_activation(mechanism: Mechanism) -> list[Actuator]:
    return [f for f in mechanism.forces if isinstance(f, Actuator) and f.activation is not None]
