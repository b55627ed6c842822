"""How efforts fall with the speeds, D = -d tau / d v: what implicit integrators take at the step's end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from zwang.dynamics.forces import transmission
from zwang.dynamics.muscles import muscle_damping_slope, muscle_force
from zwang.kinematics.tendons import tendon_length
from zwang.mechanism.forces import Actuator, Damper
from zwang.mechanism.mechanism import Mechanism
from zwang.scalar import absolute, clip, is_zero, less, logical_and, where


def joint_damping(mechanism: Mechanism) -> np.ndarray:
    """The linear coefficients of the joints' dampers, (nv,) [N m s/rad or N s/m]."""
    D: list[Any] = [0] * mechanism.nv
    for force in mechanism.forces:
        if isinstance(force, Damper):
            for k in _speeds(mechanism, force.joint):
                D[k] = D[k] + force.coefficient
    return np.array(D)


def damping_matrix(
    mechanism: Mechanism, q: Any, v: Any, control: Mapping[str, Any], activation: Mapping[str, Any]
) -> np.ndarray:
    """D (nv, nv) of dampers, tendons and actuators; gyroscopic efforts are left out. Source: MuJoCo's "implicitfast"."""
    D = np.diag(joint_damping(mechanism))
    for force in mechanism.forces:
        if isinstance(force, Damper) and force.higher:
            D = D + np.diag(_of_higher_powers(mechanism, force, v))
        if isinstance(force, Actuator):
            slope = _slope(mechanism, force, q, v, control.get(force.name, 0), activation.get(force.name, 0))
            if not is_zero(slope):
                moment = transmission(mechanism, force, q)[1]
                D = D - slope * np.outer(moment, moment)
    for tendon in mechanism.tendons:
        if not is_zero(tendon.damping):
            moment = tendon_length(mechanism, tendon, q)[1]
            D = D + tendon.damping * np.outer(moment, moment)
    return D


def _of_higher_powers(mechanism: Mechanism, damper: Damper, v: Any) -> np.ndarray:
    """d/dv of c2 v |v| + c3 v^3 + ... for each speed of the joint."""
    D: list[Any] = [0] * mechanism.nv
    for k in _speeds(mechanism, damper.joint):
        for power, c in enumerate(damper.higher, start=2):
            D[k] = D[k] + c * power * absolute(v[k]) ** (power - 1)
    return np.array(D)


def _slope(mechanism: Mechanism, actuator: Actuator, q: Any, v: Any, control: Any, activation: Any) -> Any:
    """d force / d speed of an actuator: a muscle's, or its bias's and its gain's; none where the force is at its limit."""
    if actuator.muscle is None and is_zero(actuator.gain[2]) and is_zero(actuator.bias[2]):
        return 0
    u = activation
    if actuator.activation is None:
        u = control if actuator.control_range is None else clip(control, *actuator.control_range)
    length, moment = transmission(mechanism, actuator, q)
    force, slope = _law(actuator, length, moment @ v, u)
    if actuator.force_range is None:
        return slope
    low, high = actuator.force_range
    return where(logical_and(less(low, force), less(force, high)), slope, 0)


def _law(actuator: Actuator, length: Any, speed: Any, u: Any) -> tuple[Any, Any]:
    """The force before limits, and its derivative by the speed."""
    if actuator.muscle is not None:
        at = actuator.muscle, length, speed, u
        return muscle_force(*at), muscle_damping_slope(*at)
    (g0, g1, g2), (b0, b1, b2) = actuator.gain, actuator.bias
    return (g0 + g1 * length + g2 * speed) * u + b0 + b1 * length + b2 * speed, g2 * u + b2


def _speeds(mechanism: Mechanism, joint: str) -> range:
    v = mechanism.joint(joint).v
    return range(v.start, v.stop)
