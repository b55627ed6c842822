"""The damping matrix D = -d tau / d v of the applied forces, which implicit integrators evaluate."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from zwang.dynamics.actuators import Drive, actuator_input, drive_of
from zwang.dynamics.ellipsoid_drag import ellipsoid_damping
from zwang.dynamics.fluid_drag import drag_damping
from zwang.dynamics.generalised_forces import actuator_forces_of
from zwang.dynamics.muscles import muscle_damping_slope, muscle_force
from zwang.dynamics.transmissions import transmissions
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
    t: Any = 0,
) -> np.ndarray:
    """D (nv, nv) of joint dampers, tendons, actuators and fluids, without the slope of the bias forces.

    control, activation: by name of the input. full_slopes: the bodies whose slope of the forces of a fluid
    around ellipsoids is complete; that of all others is the symmetric part. t [s]: the time.
    Source: MuJoCo documentation, Computation, "implicitfast".
    """
    D = np.diag(joint_damping(mechanism, kinematics.v))
    # actuators: D -= (d force / d velocity) r r^T, with the moment arm r (nv,)
    own = [f for f in mechanism.forces if isinstance(f, Actuator) and _depends_on_velocity(f)]
    arms = transmissions(mechanism, own, kinematics)
    for force in mechanism.forces:
        if isinstance(force, Actuator):
            if force.name not in arms:
                continue
            length, moment = arms[force.name]
            drive = drive_of(mechanism, force, control, activation, t)
            slope = _force_slope(force, length, moment @ kinematics.v, drive)
            slope = _unless_saturated(mechanism, force, slope, (kinematics, control, activation, t))
            if not is_zero(slope):
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


def _depends_on_velocity(actuator: Actuator) -> bool:
    """Whether the slope of the force of an actuator may be other than zero; MuJoCo takes that of a PID
    controller for zero.
    """
    factors = (actuator.gain[2], actuator.bias[2])
    return actuator.muscle is not None or not all(is_zero(x) for x in factors)


def _force_slope(actuator: Actuator, length: Any, speed: Any, drive: Drive) -> Any:
    """d force / d velocity of an actuator; 0 where the force is at its limit."""
    force, slope = _force_and_slope(actuator, length, speed, actuator_input(actuator, drive))
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
