"""Passive forces of springs, dampers and wrenches, and controlled forces, as generalised forces."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from zwang.algebra import rotations
from zwang.dynamics.actuators import Inputs, actuator_outputs
from zwang.dynamics.ellipsoid_drag import ellipsoid_force
from zwang.dynamics.fluid_drag import drag_force
from zwang.dynamics.ranges import clipped
from zwang.dynamics.transmissions import on_joint
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
from zwang.mechanism.numbers import exact_array
from zwang.mechanism.tendon_elements import Tendon
from zwang.mechanism.tree import Placement
from zwang.scalar import absolute, divide, is_zero, maximum, minimum, sqrt


def passive_forces(mechanism: Mechanism, q: Any, v: Any) -> np.ndarray:
    """Generalised forces tau (nv,) [N m or N] of springs, dampers, constant wrenches, gravity
    compensation, unless actuators carry it, fluids and tendons.

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
                tau = tau + _compensation_force(mechanism, force, kinematics, by_actuators=False)
            case FluidDrag():
                tau = tau + drag_force(mechanism, force, kinematics)
            case EllipsoidDrag():
                tau = tau + ellipsoid_force(mechanism, force, kinematics)
    for tendon in mechanism.tendons:
        tau = tau + _tendon_force(mechanism, tendon, kinematics)
    return tau


def controlled_forces(
    mechanism: Mechanism,
    q: Any,
    v: Any,
    control: Mapping[str, Any],
    activation: Mapping[str, Any] | None = None,
    t: Any = 0,
    h: Any = None,
) -> np.ndarray:
    """Generalised forces tau (nv,) [N m or N] that the inputs control: those of actuators and wrenches.

    q (nq,), v (nv,): configuration and generalised velocities. control: the inputs by name, 0 where omitted.
    activation: by the names of the states of actuators, 0 where omitted. t [s]: the time. h [s]: the step
    size, by default that of the options.
    """
    inputs = Inputs(control, activation or {}, t, mechanism.options.timestep if h is None else h)
    return controlled_forces_of(mechanism, Kinematics(mechanism.tree, q, v), inputs)


def controlled_forces_of(mechanism: Mechanism, kinematics: Kinematics, inputs: Inputs) -> np.ndarray:
    """`controlled_forces` at the state of a record of kinematics."""
    tau = actuator_forces_of(mechanism, kinematics, inputs)
    for force in mechanism.forces:
        if isinstance(force, Wrench) and force.input is not None:
            tau = tau + inputs.control.get(force.input, 0) * wrench_force(mechanism, force, kinematics)
    return tau


def actuator_forces_of(mechanism: Mechanism, kinematics: Kinematics, inputs: Inputs) -> np.ndarray:
    """Generalised forces tau (nv,) [N m or N] of motors, actuators, and the gravity compensation that they
    carry, clipped to the `actuator_range` of their joints; zero without motors and actuators, as in MuJoCo.
    """
    if not has_actuators(mechanism):
        return np.array([0] * mechanism.nv)
    return clip_to_actuator_ranges(mechanism, unclipped_actuator_forces(mechanism, kinematics, inputs))


def has_actuators(mechanism: Mechanism) -> bool:
    """Whether there are motors or actuators, without which nothing carries the gravity compensation of
    `actuator_gravity_compensation`.
    """
    return any(isinstance(force, Motor | Actuator) for force in mechanism.forces)


def carried_compensation(mechanism: Mechanism, q: Any, v: Any) -> np.ndarray:
    """Generalised forces tau (nv,) [N m or N] of the gravity compensation that actuators carry, as if it were
    all that they do: clipped to the `actuator_range` of the joints.

    q (nq,), v (nv,): configuration and generalised velocities.
    """
    kinematics = Kinematics(mechanism.tree, q, v)
    own = [f for f in mechanism.forces if isinstance(f, GravityCompensation)]
    parts = [_compensation_force(mechanism, f, kinematics, by_actuators=True) for f in own]
    return clip_to_actuator_ranges(mechanism, sum(parts, start=np.array([0] * mechanism.nv)))


def unclipped_actuator_forces(mechanism: Mechanism, kinematics: Kinematics, inputs: Inputs) -> np.ndarray:
    """`actuator_forces_of` before they are clipped to the `actuator_range` of their joints."""
    tau = np.array([0] * mechanism.nv)
    outputs = actuator_outputs(mechanism, kinematics, inputs)
    for force in mechanism.forces:
        match force:
            case Motor() | Actuator():
                output = outputs[force.name]
                tau = tau + output.force * output.moment
            case GravityCompensation():
                tau = tau + _compensation_force(mechanism, force, kinematics, by_actuators=True)
    return tau


def _compensation_force(
    mechanism: Mechanism, force: GravityCompensation, kinematics: Kinematics, *, by_actuators: bool
) -> np.ndarray:
    """Generalised forces (nv,) of gravity compensation: of the joints whose actuators carry it, or of all
    others.
    """
    joints = [j for j in mechanism.joints if j.joint.actuator_gravity_compensation == by_actuators]
    own = {k for joint in joints for k in range(joint.v.start, joint.v.stop)}
    if not own:
        return np.array([0] * mechanism.nv)
    body = mechanism.body(force.body)
    weight = tuple(force.factor * body.mass * g for g in mechanism.gravity)
    tau = wrench_force(mechanism, Wrench(body.name, weight, point=body.com), kinematics)
    return np.array([-x if k in own else 0 for k, x in enumerate(tau)])


def clip_to_actuator_ranges(mechanism: Mechanism, tau: Any) -> np.ndarray:
    """Generalised forces tau (nv,) [N m or N] of all actuators together, each clipped to its joint's
    `actuator_range`.
    """
    total = list(tau)
    for joint in mechanism.joints:
        limits = getattr(joint.joint, "actuator_range", None)
        total[joint.v] = [clipped(x, limits) for x in total[joint.v]]
    return np.array(total)


def damper_force(damper: Damper, v: Any) -> Any:
    """Generalised force of a damper on one generalised velocity v: -(c1 v + c2 v |v| + c3 v^3 + ...)."""
    force: Any = damper.coefficient * v
    for power, c in enumerate(damper.higher, start=2):
        force = force + c * odd_power(v, power)
    return -force


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
            d, _ = _end_difference(mechanism, force, kinematics)
            stretch = None if force.is_linear else sqrt(d @ d) - force.length
            total = total + force.stiffness * (d @ d if stretch is None else stretch * stretch) / 2
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
    home = exact_array((mechanism.home or mechanism.neutral)[joint.q])
    now = q[joint.q]
    w, x, y, z = home[-4:]
    rotation = rotations.logarithm(rotations.multiply(np.array([w, -x, -y, -z]), now[-4:]))
    return rotation if joint.kind == "ball" else np.concatenate([now[:3] - home[:3], rotation])


def _end_difference(
    mechanism: Mechanism, spring: PointSpring, kinematics: Kinematics
) -> tuple[np.ndarray, np.ndarray]:
    """Difference (3,) of the ends of a spring [m], and its Jacobian (3, nv)."""
    ends = []
    for body, point in (spring.a, spring.b):
        base = mechanism.tree.placement(body)
        ends.append(Placement(base.link, base.R, base.p + base.R @ np.array(point)))
    d = kinematics.placement_pose(ends[1]).p - kinematics.placement_pose(ends[0]).p
    return d, kinematics.placement_jacobian(ends[1])[:3] - kinematics.placement_jacobian(ends[0])[:3]


def _point_spring_force(mechanism: Mechanism, spring: PointSpring, kinematics: Kinematics) -> np.ndarray:
    d, J = _end_difference(mechanism, spring, kinematics)
    return -point_spring_pull(spring, d, lambda: J @ kinematics.v) @ J


def point_spring_damping(mechanism: Mechanism, spring: PointSpring, kinematics: Kinematics) -> np.ndarray:
    """D (nv, nv) = c r r^T of a spring with the damping c, where r (nv,) is the gradient of its length."""
    d, J = _end_difference(mechanism, spring, kinematics)
    distance = sqrt(d @ d)
    r = np.array([divide(x, distance) for x in d]) @ J
    return spring.damping * np.outer(r, r)


def point_spring_pull(spring: PointSpring, d: np.ndarray, speed: Callable[[], np.ndarray]) -> np.ndarray:
    """The force (3,) [N] of a spring on its first end, at the difference d (3,) [m] of its ends.

    speed: the time derivative (3,) of d [m/s], which only damping asks for.
    """
    if spring.is_linear:
        return spring.stiffness * d
    distance = sqrt(d @ d)
    direction = np.array([divide(x, distance) for x in d])
    tension = spring.stiffness * (distance - spring.length)
    if not is_zero(spring.damping):
        tension = tension + spring.damping * (direction @ speed())
    return tension * direction


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
    if is_zero(upper - lower):
        return length - lower
    return maximum(length - upper, 0) + minimum(length - lower, 0)
