"""The damping matrix D = -d tau / d v of the applied forces, which implicit integrators evaluate."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from zwang.dynamics.actuators import (
    ActuatorOutput,
    Drive,
    Inputs,
    actuator_input,
    outputs_of,
    tendon_forces,
)
from zwang.dynamics.ellipsoid_drag import ellipsoid_damping
from zwang.dynamics.fluid_drag import drag_damping
from zwang.dynamics.generalised_forces import actuator_forces_of, point_spring_damping
from zwang.dynamics.muscles import muscle_damping_slope
from zwang.kinematics.kinematics import Kinematics
from zwang.kinematics.tendon_length import tendon_length
from zwang.mechanism.force_elements import Actuator, Damper, EllipsoidDrag, FluidDrag, PointSpring
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.numbers import Interval
from zwang.scalar import absolute, is_zero, less, logical_and, where

AT_LIMIT = 1e-6  # relative distance from a limit at which a sum of scaled forces is but for rounding


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
    inputs: Inputs,
    full_slopes: Collection[str] = (),
) -> np.ndarray:
    """D (nv, nv) of joint dampers, point springs, tendons, actuators and fluids, without the slope of the
    bias forces.

    full_slopes: the bodies whose slope of the forces of a fluid around ellipsoids is complete; that of all
    others is the symmetric part.
    Source: MuJoCo documentation, Computation, "implicitfast".
    """
    D = np.diag(joint_damping(mechanism, kinematics.v))
    # actuators: D -= (d force / d velocity) r r^T, with the moment arm r (nv,)
    outputs = _outputs(mechanism, kinematics, inputs)
    for force in mechanism.forces:
        if isinstance(force, Actuator):
            if not _depends_on_velocity(force):
                continue
            output = outputs[force.name]
            slope = _force_slope(force, output, inputs.drive(force))
            slope = _unless_saturated(mechanism, force, slope, outputs, (kinematics, inputs))
            if not is_zero(slope):
                D = D - slope * np.outer(output.moment, output.moment)
        elif isinstance(force, PointSpring) and not is_zero(force.damping):
            D = D + point_spring_damping(mechanism, force, kinematics)
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


def _outputs(mechanism: Mechanism, kinematics: Kinematics, inputs: Inputs) -> dict[str, ActuatorOutput]:
    """The outputs of the actuators whose forces depend on the velocity, and of those beside them on tendons
    with an `actuator_range`.
    """
    limited = {t.name for t in mechanism.tendons if t.actuator_range is not None}
    actuators = [f for f in mechanism.forces if isinstance(f, Actuator)]
    needed = [f for f in actuators if _depends_on_velocity(f) or f.tendon in limited]
    return outputs_of(mechanism, needed, kinematics, inputs)


def _unless_saturated(
    mechanism: Mechanism,
    actuator: Actuator,
    slope: Any,
    outputs: Mapping[str, ActuatorOutput],
    at: tuple[Kinematics, Inputs],
) -> Any:
    """The slope; 0 while the total actuator force of its joint or its tendon is at a limit of the
    `actuator_range` there.
    """
    if is_zero(slope):
        return slope
    if actuator.tendon is not None:
        tendon = next(t for t in mechanism.tendons if t.name == actuator.tendon)
        if tendon.actuator_range is None:
            return slope
        own = [f for f in mechanism.forces if isinstance(f, Actuator) and f.tendon == tendon.name]
        lower, upper = tendon.actuator_range
        ends = lower * (1 - AT_LIMIT), upper * (1 - AT_LIMIT)
        return where(_within(tendon_forces(own, outputs)[tendon.name], ends), slope, 0)
    if actuator.joint is None:
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


def _force_slope(actuator: Actuator, output: ActuatorOutput, drive: Drive) -> Any:
    """d force / d velocity of an actuator; 0 where the force is at its limit."""
    u = actuator_input(actuator, drive)
    if actuator.muscle is not None:
        slope = muscle_damping_slope(actuator.muscle, output.length, output.velocity, u)
    else:
        slope = actuator.gain[2] * u + actuator.bias[2]
    if actuator.force_range is None:
        return slope
    return where(_within(output.force, actuator.force_range), slope, 0)


def _velocity_indices(mechanism: Mechanism, joint: str) -> range:
    v = mechanism.joint(joint).v
    return range(v.start, v.stop)
