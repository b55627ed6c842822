"""The damping matrix D = -d tau / d v of the applied forces, which implicit integrators evaluate."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from zwang.dynamics.ellipsoid_drag import ellipsoid_damping
from zwang.dynamics.fluid_drag import drag_damping
from zwang.dynamics.generalised_forces import actuator_forces_of, actuator_input
from zwang.dynamics.muscles import muscle_damping_slope, muscle_force
from zwang.dynamics.transmissions import transmission
from zwang.kinematics.kinematics import Kinematics
from zwang.kinematics.tendon_length import tendon_length
from zwang.mechanism.force_elements import Actuator, Damper, EllipsoidDrag, FluidDrag
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.numbers import Interval
from zwang.scalar import absolute, is_zero, less, logical_and, where


def joint_damping(mechanism: Mechanism, v: Any) -> np.ndarray:
    """The diagonal of D (nv,) for the joint dampers at the velocities v [N m s/rad, N s/m].

    For a damper with coefficients c, c2, c3, ... it is c + 2 c2 |v| + 3 c3 v^2 + ...
    """
    D: list[Any] = [0] * mechanism.nv
    for force in mechanism.forces:
        if isinstance(force, Damper):
            for k in _velocity_indices(mechanism, force.joint):
                D[k] = D[k] + force.coefficient
                for power, c in enumerate(force.higher, start=2):
                    D[k] = D[k] + c * power * absolute(v[k]) ** (power - 1)
    return np.array(D)


def is_linear(mechanism: Mechanism) -> bool:
    """Whether all joint dampers are linear in the velocity."""
    return all(is_zero(c) for f in mechanism.forces if isinstance(f, Damper) for c in f.higher)


def damping_matrix(
    mechanism: Mechanism,
    kinematics: Kinematics,
    control: Mapping[str, Any],
    activation: Mapping[str, Any],
    full_slopes: Collection[str] = (),
) -> np.ndarray:
    """D (nv, nv) of joint dampers, tendons, actuators and fluids, without the slope of the bias forces.

    control, activation: by name of the input. full_slopes: the bodies whose slope of the forces of a fluid
    around ellipsoids is complete; that of all others is the symmetric part.
    Source: MuJoCo documentation, Computation, "implicitfast".
    """
    D = np.diag(joint_damping(mechanism, kinematics.v))
    # actuators: D -= (d force / d velocity) r r^T, with the moment arm r (nv,)
    for force in mechanism.forces:
        if isinstance(force, Actuator):
            slope = _force_slope(
                mechanism, force, kinematics, control.get(force.name, 0), activation.get(force.name, 0)
            )
            slope = _unless_saturated(mechanism, force, slope, (kinematics, control, activation))
            if not is_zero(slope):
                moment = transmission(mechanism, force, kinematics)[1]
                D = D - slope * np.outer(moment, moment)
        elif isinstance(force, FluidDrag):
            D = D + drag_damping(mechanism, force, kinematics)
        elif isinstance(force, EllipsoidDrag):
            symmetric = force.body not in full_slopes
            D = D + ellipsoid_damping(mechanism, force, kinematics, symmetric=symmetric)
    # tendons: D += c r r^T
    for tendon in mechanism.tendons:
        if tendon.has_damper:
            moment = tendon_length(mechanism, tendon, kinematics)[1]
            speed, slope = absolute(moment @ kinematics.v), tendon.damping
            for power, c in enumerate(tendon.higher_damping, start=2):
                slope = slope + c * power * speed ** (power - 1)
            D = D + slope * np.outer(moment, moment)
    return D


def _unless_saturated(mechanism: Mechanism, actuator: Actuator, slope: Any, at: tuple[Any, ...]) -> Any:
    """The slope; 0 while the total actuator force of its joint is at a limit of the joint's
    `actuator_range`.
    """
    if actuator.joint is None or is_zero(slope):
        return slope
    joint = mechanism.joint(actuator.joint)
    ends = getattr(joint.joint, "actuator_range", None)
    if ends is None:
        return slope
    total = actuator_forces_of(mechanism, *at)[joint.v][0]
    return where(_within(total, ends), slope, 0)


def _within(x: Any, ends: Interval) -> Any:
    return logical_and(less(ends[0], x), less(x, ends[1]))


def _force_slope(
    mechanism: Mechanism, actuator: Actuator, kinematics: Kinematics, control: Any, activation: Any
) -> Any:
    """d force / d velocity of an actuator; 0 where the force is at its limit."""
    if actuator.muscle is None and is_zero(actuator.gain[2]) and is_zero(actuator.bias[2]):
        return 0
    u = actuator_input(mechanism, actuator, control, activation)
    length, moment = transmission(mechanism, actuator, kinematics)
    force, slope = _force_and_slope(actuator, length, moment @ kinematics.v, u)
    if actuator.force_range is None:
        return slope
    return where(_within(force, actuator.force_range), slope, 0)


def _force_and_slope(actuator: Actuator, length: Any, velocity: Any, u: Any) -> tuple[Any, Any]:
    """The force of an actuator before clipping, gain * u + bias, and its derivative by the velocity."""
    if actuator.muscle is not None:
        at = actuator.muscle, length, velocity, u
        return muscle_force(*at), muscle_damping_slope(*at)
    (g0, g1, g2), (b0, b1, b2) = actuator.gain, actuator.bias
    return (g0 + g1 * length + g2 * velocity) * u + b0 + b1 * length + b2 * velocity, g2 * u + b2


def _velocity_indices(mechanism: Mechanism, joint: str) -> range:
    v = mechanism.joint(joint).v
    return range(v.start, v.stop)
