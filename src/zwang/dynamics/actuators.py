"""The outputs of actuators and the derivatives of their states, at one state of a mechanism."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from zwang.dynamics.muscles import activation_derivatives_of, muscle_forces
from zwang.dynamics.ranges import clipped, rate_within
from zwang.dynamics.transmissions import nearest_set_point, on_joint, transmissions
from zwang.kinematics.kinematics import Kinematics
from zwang.mechanism.controllers import Pid
from zwang.mechanism.force_elements import Actuator, Motor, Muscle
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.numbers import Interval
from zwang.scalar import clip, equal, exp, less, where


class ActuatorOutput(NamedTuple):
    """Length [rad or m], velocity [rad/s or m/s] and force [N m or N] of an actuator, and its moment arms
    (nv,): its generalised force is force * moment.
    """

    length: Any
    velocity: Any
    force: Any
    moment: np.ndarray


class Drive(NamedTuple):
    """What drives an actuator: its control, its states, in the order of `Actuator.states`, the size of a time
    step h [s], None in continuous time, and the time t [s].
    """

    control: Any
    states: tuple[Any, ...]
    h: Any | None
    t: Any = 0


class Inputs(NamedTuple):
    """The inputs of all actuators: controls and states by name, 0 where omitted, the time t [s], and the size
    h [s] of the time step, on which controllers and early activations depend.

    h is None in continuous time: the limit of small steps. No step brings states into their ranges there, so
    forces take the state within its range, and a state at an end of its range does not move outwards.
    """

    control: Mapping[str, Any]
    activation: Mapping[str, Any]
    t: Any
    h: Any | None

    def drive(self, actuator: Actuator) -> Drive:
        """What drives one actuator."""
        states = tuple(self.activation.get(name, 0) for name in actuator.states)
        return Drive(self.control.get(actuator.name, 0), states, self.h, self.t)


def actuator_outputs(
    mechanism: Mechanism, kinematics: Kinematics, inputs: Inputs
) -> dict[str, ActuatorOutput]:
    """By name the output of every actuator and motor."""
    own = [f for f in mechanism.forces if isinstance(f, Actuator)]
    outputs = outputs_of(mechanism, own, kinematics, inputs)
    for force in mechanism.forces:
        if isinstance(force, Motor):
            control = inputs.control.get(force.name, 0)
            outputs[force.name] = _motor_output(mechanism, force, kinematics, control)
    return outputs


def outputs_of(
    mechanism: Mechanism, actuators: Sequence[Actuator], kinematics: Kinematics, inputs: Inputs
) -> dict[str, ActuatorOutput]:
    """By name the outputs of these actuators, which are all or none of those on each tendon with an
    `actuator_range`.
    """
    free = _unlimited_outputs(mechanism, actuators, kinematics, inputs)
    scales = _tendon_scales(mechanism, tendon_forces(actuators, free))
    found = {}
    for actuator in actuators:
        output = free[actuator.name]
        force = clipped(output.force * scales.get(actuator.tendon, 1), actuator.force_range)
        found[actuator.name] = output._replace(force=force)
    return found


def tendon_forces(actuators: Sequence[Actuator], outputs: Mapping[str, ActuatorOutput]) -> dict[str, Any]:
    """By name of the tendon, the sum of the forces of the actuators on it."""
    totals: dict[str, Any] = {}
    for actuator in actuators:
        if actuator.tendon is not None:
            totals[actuator.tendon] = totals.get(actuator.tendon, 0) + outputs[actuator.name].force
    return totals


def _unlimited_outputs(
    mechanism: Mechanism, actuators: Sequence[Actuator], kinematics: Kinematics, inputs: Inputs
) -> dict[str, ActuatorOutput]:
    """`outputs_of` actuators whose forces are within no range."""
    arms, found = transmissions(mechanism, actuators, kinematics), {}
    muscles: dict[str, tuple[Muscle, Any, Any, Any]] = {}
    for actuator in actuators:
        (length, moment), drive, force = arms[actuator.name], inputs.drive(actuator), None
        speed = moment @ kinematics.v
        if actuator.muscle is not None:
            muscles[actuator.name] = actuator.muscle, length, speed, actuator_input(actuator, drive)
        else:
            force = _force_without_muscle(mechanism, actuator, length, speed, drive)
        found[actuator.name] = ActuatorOutput(length, speed, force, moment)
    for name, force in zip(muscles, muscle_forces(list(muscles.values())), strict=True):
        found[name] = found[name]._replace(force=force)
    return found


def _tendon_scales(mechanism: Mechanism, totals: Mapping[str, Any]) -> dict[str | None, Any]:
    """By tendon, the factor on the forces of its actuators that brings their sum into its
    `actuator_range`.
    """
    scales: dict[str | None, Any] = {}
    for tendon in mechanism.tendons:
        if tendon.actuator_range is not None and tendon.name in totals:
            total = totals[tendon.name]
            divisor = where(equal(total, 0), 1, total)
            scales[tendon.name] = where(equal(total, 0), 1, clipped(divisor, tendon.actuator_range) / divisor)
    return scales


def _motor_output(mechanism: Mechanism, motor: Motor, kinematics: Kinematics, control: Any) -> ActuatorOutput:
    joint = mechanism.joint(motor.joint)
    moment = on_joint(mechanism, motor.joint, [motor.gear] * min(1, joint.joint.nv))
    force = clipped(control, motor.control_range)
    return ActuatorOutput(motor.gear * kinematics.q[joint.q.start], moment @ kinematics.v, force, moment)


def _force_without_muscle(
    mechanism: Mechanism, actuator: Actuator, length: Any, speed: Any, drive: Drive
) -> Any:
    """The force of an actuator that is no muscle at its length and its velocity, within no range."""
    if actuator.pid is not None:
        return _pid_force(actuator, actuator.pid, length, speed, drive)
    g0, g1, g2 = actuator.gain
    b0, b1, b2 = actuator.bias
    u = nearest_set_point(mechanism, actuator, length, actuator_input(actuator, drive))
    return (g0 + g1 * length + g2 * speed) * u + b0 + b1 * length + b2 * speed


def actuator_input(actuator: Actuator, drive: Drive) -> Any:
    """The u of an actuator's force: its control within the range, or its activation; if that is early, the
    activation one time step later.
    """
    if actuator.activation is None:
        return clipped(drive.control, actuator.control_range)
    if drive.h is None:
        return clipped(drive.states[-1], actuator.activation_range)
    if not actuator.early:
        return drive.states[-1]
    return advanced_state(actuator, _activation_rate(actuator, drive), drive.states[-1], drive.h)


def activation_derivatives(mechanism: Mechanism, kinematics: Kinematics, inputs: Inputs) -> dict[str, Any]:
    """Time derivative, by name, of every state of an actuator.

    That of an activation is u for an integrator, (u - activation) / time constant for a filter, and
    `activation_derivative` for a muscle. That of a state of a controller is its change over a time step, by
    the step size; in continuous time that of the integral is the error, and a set point has none.
    """
    pids = [f for f in mechanism.forces if isinstance(f, Actuator) and f.pid is not None and f.pid.states]
    lengths = {name: length for name, (length, _) in transmissions(mechanism, pids, kinematics).items()}
    driven = [(f, inputs.drive(f)) for f in mechanism.forces if isinstance(f, Actuator) and f.states]
    activated = [own for own in driven if own[0].activation is not None]
    of_activations = {
        actuator.name: rate
        for (actuator, _), rate in zip(activated, _activation_rates(activated), strict=True)
    }
    found = {}
    for actuator, drive in driven:
        rates = []
        if actuator.name in lengths and actuator.pid is not None:
            rates += _pid_rates(actuator, actuator.pid, lengths[actuator.name], drive)
        if actuator.activation is not None:
            rates.append(of_activations[actuator.name])
        found |= dict(zip(actuator.states, rates, strict=True))
    return found


def _activation_rate(actuator: Actuator, drive: Drive) -> Any:
    """Time derivative of the activation of an actuator."""
    return _activation_rates([(actuator, drive)])[0]


def _activation_rates(driven: Sequence[tuple[Actuator, Drive]]) -> list[Any]:
    """Time derivative of the activation of each actuator."""
    muscles, rates = {}, []
    for number, (actuator, drive) in enumerate(driven):
        assert actuator.activation is not None
        kind, parameters = actuator.activation
        u, activation = clipped(drive.control, actuator.control_range), drive.states[-1]
        if kind == "muscle":
            muscles[number] = parameters, u, activation
        rates.append(u if kind == "integrator" else (u - activation) / parameters[0])
    for number, rate in zip(muscles, activation_derivatives_of(list(muscles.values())), strict=True):
        rates[number] = rate
    return [
        rate if drive.h is not None else rate_within(rate, drive.states[-1], actuator.activation_range)
        for rate, (actuator, drive) in zip(rates, driven, strict=True)
    ]


def advanced_state(actuator: Actuator, rate: Any, state: Any, dt: Any) -> Any:
    """A state of an actuator after the time dt [s], by one Euler step, or exactly for "filterexact"; clipped
    to the range of the activation.
    """
    kind, parameters = actuator.activation or ("integrator", (1,))
    step = dt * rate
    if kind == "filterexact":
        step = rate * parameters[0] * (1 - exp(-dt / parameters[0]))
    return clipped(state + step, actuator.activation_range)


# ------------------------------------------------------------------------------------------ PID controllers


def _pid_force(actuator: Actuator, pid: Pid, length: Any, speed: Any, drive: Drive) -> Any:
    """kp e + kd de/dt + ki (integral of e at the end of the step). Source: MuJoCo, plugin/actuator/pid."""
    error = _set_point(pid, actuator_input(actuator, drive), drive) - length
    rate = 0 if actuator.activation is None else _activation_rate(actuator, drive)
    force = pid.proportional * error + pid.derivative * (rate - speed)
    return force + pid.integral * _next_integral(pid, error, drive) if "integral" in pid.states else force


def _pid_rates(actuator: Actuator, pid: Pid, length: Any, drive: Drive) -> list[Any]:
    """The derivatives of the states of a PID controller; those of an early activation are not early."""
    u = drive.states[-1] if actuator.activation is not None else actuator_input(actuator, drive)
    if drive.h is None:
        error, integral = u - length, drive.states[0]
        rate = rate_within(error, integral, _integral_limits(pid))
        return [rate_within(rate, integral, actuator.activation_range)]
    u = _set_point(pid, u, drive)
    after = {"integral": _next_integral(pid, u - length, drive), "set point": u} if pid.states else {}
    return [(after[name] - old) / drive.h for name, old in zip(pid.states, drive.states, strict=False)]


def _set_point(pid: Pid, u: Any, drive: Drive) -> Any:
    """u within the slew rate from the set point of the step before; u itself at the time 0."""
    if pid.slew_rate is None:
        return u
    before = drive.states[pid.states.index("set point")]
    if drive.h is None:
        return before
    change = pid.slew_rate * drive.h
    return where(less(0, drive.t), clip(u, before - change, before + change), u)


def _next_integral(pid: Pid, error: Any, drive: Drive) -> Any:
    """The integral of the error at the end of the step, within its limit; in continuous time the present
    one.
    """
    if "integral" not in pid.states:
        return 0
    integral = drive.states[0] if drive.h is None else drive.states[0] + error * drive.h
    return clipped(integral, _integral_limits(pid))


def _integral_limits(pid: Pid) -> Interval | None:
    """The limits of the integral of the error, if there are any."""
    if pid.largest_integral_force is None:
        return None
    largest = pid.largest_integral_force / pid.integral
    return -largest, largest
