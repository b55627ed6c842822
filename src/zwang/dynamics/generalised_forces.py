"""Passive forces of springs, dampers and wrenches, and actuator forces, as generalised forces; activation
dynamics.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from zwang.algebra import rotations
from zwang.dynamics.ellipsoid_drag import ellipsoid_force
from zwang.dynamics.fluid_drag import drag_force
from zwang.dynamics.muscles import activation_derivative, muscle_force
from zwang.dynamics.transmissions import nearest_set_point, on_joint, transmission
from zwang.kinematics.kinematics import Kinematics
from zwang.kinematics.tendon_length import tendon_length
from zwang.mechanism.force_elements import (
    Actuator,
    Damper,
    EllipsoidDrag,
    FluidDrag,
    GravityCompensation,
    Motor,
    PointSpring,
    Spring,
    Wrench,
)
from zwang.mechanism.mechanism import JointIndex, Mechanism
from zwang.mechanism.numbers import Interval
from zwang.mechanism.tendon_elements import Tendon
from zwang.mechanism.tree import Placement
from zwang.scalar import absolute, clip, divide, exp, maximum, minimum, sqrt


class ActuatorOutput(NamedTuple):
    """Length [rad or m], velocity [rad/s or m/s] and force [N m or N] of an actuator, and its moment arms
    (nv,): its generalised force is force * moment.
    """

    length: Any
    velocity: Any
    force: Any
    moment: np.ndarray


def passive_forces(mechanism: Mechanism, q: Any, v: Any) -> np.ndarray:
    """Generalised forces tau (nv,) [N m or N] of springs, dampers, constant wrenches, gravity
    compensation, fluids and tendons.

    q (nq,), v (nv,): configuration and generalised velocities.
    """
    return passive_forces_of(mechanism, Kinematics(mechanism.tree, q, v))


def passive_forces_of(mechanism: Mechanism, kinematics: Kinematics) -> np.ndarray:
    """`passive_forces` at the state of a record of kinematics."""
    q, v = kinematics.q, kinematics.v
    tau = np.array([0] * mechanism.nv)
    for force in mechanism.forces:
        match force:
            case Damper():
                velocities = v[mechanism.joint(force.joint).v]
                tau = tau + on_joint(mechanism, force.joint, [damper_force(force, x) for x in velocities])
            case Spring():
                tau = tau + spring_force(mechanism, force, q)
            case PointSpring():
                tau = tau + _point_spring_force(mechanism, force, kinematics)
            case Wrench(input=None):
                tau = tau + wrench_force(mechanism, force, kinematics)
            case GravityCompensation():
                body = mechanism.body(force.body)
                weight = tuple(force.factor * body.mass * g for g in mechanism.gravity)
                tau = tau - wrench_force(mechanism, Wrench(body.name, weight, point=body.com), kinematics)
            case FluidDrag():
                tau = tau + drag_force(mechanism, force, kinematics)
            case EllipsoidDrag():
                tau = tau + ellipsoid_force(mechanism, force, kinematics)
    for tendon in mechanism.tendons:
        tau = tau + _tendon_force(mechanism, tendon, kinematics)
    return tau


def actuator_forces(
    mechanism: Mechanism,
    q: Any,
    v: Any,
    control: Mapping[str, Any],
    activation: Mapping[str, Any] | None = None,
) -> np.ndarray:
    """Generalised forces tau (nv,) [N m or N] of motors, actuators and wrenches with an input.

    q (nq,), v (nv,): configuration and generalised velocities. control: the inputs by name, 0 where omitted.
    activation: by actuator name, for actuators with activation dynamics, 0 where omitted.
    """
    return actuator_forces_of(mechanism, Kinematics(mechanism.tree, q, v), control, activation)


def actuator_forces_of(
    mechanism: Mechanism,
    kinematics: Kinematics,
    control: Mapping[str, Any],
    activation: Mapping[str, Any] | None = None,
) -> np.ndarray:
    """`actuator_forces` at the state of a record of kinematics."""
    tau = unclipped_actuator_forces(mechanism, kinematics, control, activation)
    return clip_to_actuator_ranges(mechanism, tau)


def unclipped_actuator_forces(
    mechanism: Mechanism,
    kinematics: Kinematics,
    control: Mapping[str, Any],
    activation: Mapping[str, Any] | None = None,
) -> np.ndarray:
    """`actuator_forces` before they are clipped to the `actuator_range` of their joints."""
    tau = np.array([0] * mechanism.nv)
    for force in mechanism.forces:
        match force:
            case Motor():
                u = _clipped(control.get(force.name, 0), force.control_range)
                joint = mechanism.joint(force.joint)
                tau = tau + on_joint(mechanism, force.joint, [force.gear * u] * min(1, joint.joint.nv))
            case Actuator():
                state = (activation or {}).get(force.name, 0)
                tau = tau + _actuator_force(mechanism, force, kinematics, control.get(force.name, 0), state)
            case Wrench(input=str() as name):
                tau = tau + control.get(name, 0) * wrench_force(mechanism, force, kinematics)
    return tau


def clip_to_actuator_ranges(mechanism: Mechanism, tau: Any) -> np.ndarray:
    """Generalised forces tau (nv,) [N m or N] of all actuators together, each clipped to its joint's
    `actuator_range`.
    """
    clipped = list(tau)
    for joint in mechanism.joints:
        limits = getattr(joint.joint, "actuator_range", None)
        clipped[joint.v] = [_clipped(x, limits) for x in clipped[joint.v]]
    return np.array(clipped)


def damper_force(damper: Damper, v: Any) -> Any:
    """Generalised force of a damper on one generalised velocity v: -(c1 v + c2 v |v| + c3 v^3 + ...)."""
    force: Any = damper.coefficient * v
    for power, c in enumerate(damper.higher, start=2):
        force = force + c * odd_power(v, power)
    return -force


def activation_derivatives(
    mechanism: Mechanism, control: Mapping[str, Any], activation: Mapping[str, Any]
) -> dict[str, Any]:
    """Time derivative of the activation, by name, of every actuator with activation dynamics.

    It is u for an integrator, (u - activation) / time constant for a filter, and `activation_derivative` for
    a muscle.
    """
    derivatives = {}
    for force in mechanism.forces:
        if isinstance(force, Actuator) and force.activation is not None:
            derivatives[force.name] = _activation_rate(
                force, control.get(force.name, 0), activation[force.name]
            )
    return derivatives


def _activation_rate(force: Actuator, control: Any, activation: Any) -> Any:
    """Time derivative of the activation of an actuator."""
    assert force.activation is not None
    kind, parameters = force.activation
    u = _clipped(control, force.control_range)
    if kind == "muscle":
        return activation_derivative(parameters, u, activation)
    return u if kind == "integrator" else (u - activation) / parameters[0]


def actuator_input(mechanism: Mechanism, actuator: Actuator, control: Any, activation: Any) -> Any:
    """The u of an actuator's force: its control within the range, or its activation; if that is early, the
    activation one time step of the options later.
    """
    if actuator.activation is None:
        return _clipped(control, actuator.control_range)
    if not actuator.early:
        return activation
    rate = _activation_rate(actuator, control, activation)
    return advance_activation(actuator, rate, activation, mechanism.options.timestep)


def advance_activation(force: Actuator, derivative: Any, activation: Any, dt: Any) -> Any:
    """The activation after the time dt [s], by one Euler step, or exactly for "filterexact"; clipped to its
    range.
    """
    kind, parameters = force.activation or ("integrator", (1,))
    step = dt * derivative
    if kind == "filterexact":
        step = derivative * parameters[0] * (1 - exp(-dt / parameters[0]))
    return _clipped(activation + step, force.activation_range)


def spring_force(mechanism: Mechanism, spring: Spring, q: Any) -> np.ndarray:
    """Generalised forces tau (nv,) of the spring of a joint: -sum_k stiffness_k x^k at the deflection x."""
    joint = mechanism.joint(spring.joint)
    if joint.kind in ("ball", "free"):
        return on_joint(
            mechanism, spring.joint, [-spring.stiffness[0] * x for x in _displacement(mechanism, joint, q)]
        )
    x = _deflection(mechanism, spring, q)
    force = -sum((k * x ** (i + 1) for i, k in enumerate(spring.stiffness)), start=0)
    tau = on_joint(mechanism, spring.joint, [force])
    return tau if spring.relative_to is None else tau + on_joint(mechanism, spring.relative_to, [-force])


def spring_energy(mechanism: Mechanism, q: Any) -> Any:
    """Potential energy [J] of all springs: of joints, between points, and of tendons."""
    return spring_energy_of(mechanism, Kinematics(mechanism.tree, q))


def spring_energy_of(mechanism: Mechanism, kinematics: Kinematics) -> Any:
    """`spring_energy` at the configuration of a record of kinematics."""
    total: Any = 0
    q = kinematics.q
    for force in mechanism.forces:
        if isinstance(force, Spring):
            joint = mechanism.joint(force.joint)
            if joint.kind in ("ball", "free"):
                total = (
                    total + force.stiffness[0] * sum(x * x for x in _displacement(mechanism, joint, q)) / 2
                )
            else:
                x = _deflection(mechanism, force, q)
                total = total + sum(k * x ** (i + 2) / (i + 2) for i, k in enumerate(force.stiffness))
        elif isinstance(force, PointSpring):
            distance, _ = _end_distance(mechanism, force, kinematics)
            stretch = distance - force.length
            total = total + force.stiffness * stretch * stretch / 2
    for tendon in mechanism.tendons:
        if tendon.has_spring:
            stretch = _tendon_stretch(tendon, tendon_length(mechanism, tendon, kinematics)[0])
            stiffness = (tendon.stiffness, *tendon.higher_stiffness)
            total = total + sum(k * stretch ** (i + 2) / (i + 2) for i, k in enumerate(stiffness))
    return total


def wrench_force(mechanism: Mechanism, wrench: Wrench, kinematics: Kinematics) -> np.ndarray:
    """Generalised forces tau (nv,) = J^T (force, torque), with J the Jacobian of the wrench's point of
    application.
    """
    base = mechanism.tree.placement(wrench.body)
    placement = Placement(base.link, base.R, base.p + base.R @ np.array(wrench.point))
    f = np.concatenate([np.array(wrench.force), np.array(wrench.torque)])
    if wrench.axes == "body":
        R = kinematics.placement_pose(placement).R
        f = np.concatenate([R @ f[:3], R @ f[3:]])
    return kinematics.placement_jacobian(placement).T @ f


def _deflection(mechanism: Mechanism, spring: Spring, q: Any) -> Any:
    """Coordinate of the spring's joint relative to the rest position, and to the other joint if any."""
    x = q[mechanism.joint(spring.joint).q.start] - spring.rest
    return x if spring.relative_to is None else x - q[mechanism.joint(spring.relative_to).q.start]


def _displacement(mechanism: Mechanism, joint: JointIndex, q: Any) -> np.ndarray:
    """Displacement of a ball or free joint from home: (translation,) rotation vector in body axes."""
    home = np.array((mechanism.home or mechanism.neutral)[joint.q])
    now = q[joint.q]
    w, x, y, z = home[-4:]
    rotation = rotations.logarithm(rotations.multiply(np.array([w, -x, -y, -z]), now[-4:]))
    return rotation if joint.kind == "ball" else np.concatenate([now[:3] - home[:3], rotation])


def _end_distance(
    mechanism: Mechanism, spring: PointSpring, kinematics: Kinematics
) -> tuple[Any, np.ndarray]:
    """Distance [m] between the ends of a spring, and its Jacobian (nv,)."""
    ends = []
    for body, point in (spring.a, spring.b):
        base = mechanism.tree.placement(body)
        ends.append(Placement(base.link, base.R, base.p + base.R @ np.array(point)))
    d = kinematics.placement_pose(ends[1]).p - kinematics.placement_pose(ends[0]).p
    distance = sqrt(d @ d)
    J = kinematics.placement_jacobian(ends[1])[:3] - kinematics.placement_jacobian(ends[0])[:3]
    return distance, np.array([divide(x, distance) for x in d]) @ J


def _point_spring_force(mechanism: Mechanism, spring: PointSpring, kinematics: Kinematics) -> np.ndarray:
    distance, moment = _end_distance(mechanism, spring, kinematics)
    tension = spring.stiffness * (distance - spring.length) + spring.damping * (moment @ kinematics.v)
    return -tension * moment


def _tendon_force(mechanism: Mechanism, tendon: Tendon, kinematics: Kinematics) -> np.ndarray:
    if not tendon.has_spring and not tendon.has_damper:
        return np.array([0] * mechanism.nv)
    length, moment = tendon_length(mechanism, tendon, kinematics)
    return -tendon_tension(tendon, length, moment @ kinematics.v) * moment


def tendon_tension(tendon: Tendon, length: Any, velocity: Any) -> Any:
    """The tension [N] of a tendon's spring and damper at a length [m] and velocity [m/s]."""
    stretch = _tendon_stretch(tendon, length)
    tension = tendon.stiffness * stretch + tendon.damping * velocity
    for power, k in enumerate(tendon.higher_stiffness, start=2):
        tension = tension + k * stretch**power
    for power, c in enumerate(tendon.higher_damping, start=2):
        tension = tension + c * odd_power(velocity, power)
    return tension


def odd_power(v: Any, power: int) -> Any:
    """v^power with the sign of v."""
    return v**power if power % 2 else v ** (power - 1) * absolute(v)


def _tendon_stretch(tendon: Tendon, length: Any) -> Any:
    """Signed distance of the length from the slack range, zero inside it."""
    lower, upper = tendon.spring_length
    if lower == upper:
        return length - lower
    return maximum(length - upper, 0) + minimum(length - lower, 0)


def _actuator_force(
    mechanism: Mechanism, actuator: Actuator, kinematics: Kinematics, control: Any, activation: Any
) -> np.ndarray:
    output = actuator_output(mechanism, actuator, kinematics, control, activation)
    return output.force * output.moment


def actuator_output(
    mechanism: Mechanism, actuator: Actuator | Motor, kinematics: Kinematics, control: Any, activation: Any
) -> ActuatorOutput:
    """Length, velocity, force and moment arms of an actuator or a motor, at its input and its activation."""
    q, v = kinematics.q, kinematics.v
    if isinstance(actuator, Motor):
        joint = mechanism.joint(actuator.joint)
        moment = on_joint(mechanism, actuator.joint, [actuator.gear])
        u = _clipped(control, actuator.control_range)
        return ActuatorOutput(actuator.gear * q[joint.q.start], moment @ v, u, moment)
    length, moment = transmission(mechanism, actuator, kinematics)
    speed = moment @ v
    u = actuator_input(mechanism, actuator, control, activation)
    u = nearest_set_point(mechanism, actuator, length, u)
    if actuator.muscle is not None:
        force = muscle_force(actuator.muscle, length, speed, u)
    else:
        g0, g1, g2 = actuator.gain
        b0, b1, b2 = actuator.bias
        force = (g0 + g1 * length + g2 * speed) * u + b0 + b1 * length + b2 * speed
    return ActuatorOutput(length, speed, _clipped(force, actuator.force_range), moment)


def _clipped(x: Any, limits: Interval | None) -> Any:
    return x if limits is None else clip(x, *limits)
