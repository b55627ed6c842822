"""One step of a mechanism: every stage by name, in order.

    passive_forces      what pushes by itself: springs, dampers, constant wrenches
    actuator_forces     what is driven: motors and actuators at this control
    constraint_forces   what restricts: loops, couplings, friction, limits, contacts
    accelerations       the motion nearest, in Gauss's sense, to the free one
    activation_rates    the actuators' own states
    advance             along the new speeds to the new configuration

The text runs on floats, and traced it becomes the compiled step.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from zwang.gauss.applied import activation_after, activation_rates, actuator_forces, passive_forces
from zwang.gauss.dynamics import accelerations
from zwang.integrate.fixed import Point, Space, runge_kutta_4, semi_implicit_euler
from zwang.kinematics.configuration import displacement_rate, integrate_configuration
from zwang.mechanism.forces import Actuator, Damper
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.tree import Tree
from zwang.simulate.constraints import Restraint, constraint_forces, restraint_of

STEPPERS = {"euler": semi_implicit_euler, "rk4": runge_kutta_4}


@dataclass(frozen=True)
class Stepping:
    """What does not change from step to step: the mechanism, the step h [s], the integrator, and what these imply.

    tree: with the damping that the integrator takes implicitly. restraint: what restricts the motion, or None.
    """

    mechanism: Mechanism
    h: float
    integrator: str
    tree: Tree
    restraint: Restraint | None


def stepping(mechanism: Mechanism, h: float, integrator: str = "euler") -> Stepping:
    """Steps of h [s] by "euler", semi-implicit with joint damping implicit as MuJoCo's "Euler", or by "rk4"."""
    tree = with_implicit_damping(mechanism, h) if integrator == "euler" else mechanism.tree
    return Stepping(mechanism, h, integrator, tree, restraint_of(mechanism, h))


def step(s: Stepping, at: Point, control: Any) -> Point:
    """The point of the motion one step later, at a control held meanwhile.

    control: for a mechanism with inputs one number an input (nu,), else efforts tau (nv,) [N m or N].
    """
    return STEPPERS[s.integrator](lambda q, v, z: rates(s, q, v, z, control), space(s.mechanism), at, s.h)


def rates(s: Stepping, q: Any, v: Any, z: Any, control: Any) -> tuple[np.ndarray, np.ndarray]:
    """The accelerations v_dot (nv,) and the rates z_dot (nz,) of the actuators' states."""
    tau = applied_efforts(s.mechanism, q, v, z, control)
    tau = tau + constraint_forces(s.restraint, q, v, tau)
    # M a + h(q, v) = tau
    return accelerations(s.tree, q, v, tau), activation_rate(s.mechanism, z, control)


def applied_efforts(mechanism: Mechanism, q: Any, v: Any, z: Any, control: Any) -> np.ndarray:
    """tau (nv,) of all that pushes: springs, dampers, actuators; or, without inputs, the control itself [N m or N]."""
    passive = passive_forces(mechanism, q, v)
    if not mechanism.inputs:
        return passive + np.asarray(control)
    return passive + actuator_forces(
        mechanism, q, v, named(mechanism.inputs, control), named(activations(mechanism), z)
    )


def space(mechanism: Mechanism) -> Space:
    """How a mechanism's configuration, and its actuators' states, move."""

    def advance(at: Point, v: Any, z_dot: Any, dt: Any) -> tuple[Any, Any]:
        return integrate_configuration(mechanism.tree, at.q, v, dt), next_activation(
            mechanism, at.z, z_dot, dt
        )

    return Space(advance, lambda u, v: displacement_rate(mechanism.tree, u, v))


def with_implicit_damping(mechanism: Mechanism, h: Any) -> Tree:
    """The tree whose rotors are heavier by h times the joints' damping: its accelerations belong to damping at the step's end.

    (M + h D) a = tau - D v - h(q, v)  is  M a + h(q, v) = tau - D (v + h a).  Source: MuJoCo, Computation, "Euler".
    """
    damping: dict[str, Any] = {}
    for force in mechanism.forces:
        if isinstance(force, Damper):
            damping[force.joint] = damping.get(force.joint, 0) + force.coefficient
    tree = mechanism.tree
    links = tuple(
        replace(link, armature=link.armature + h * damping.get(link.name, 0)) for link in tree.links
    )
    return replace(tree, links=links)


def activations(mechanism: Mechanism) -> tuple[str, ...]:
    """The names of the actuators with a state of their own, in order: the elements of z."""
    return tuple(f.name for f in mechanism.forces if isinstance(f, Actuator) and f.activation is not None)


def activation_rate(mechanism: Mechanism, z: Any, control: Any) -> np.ndarray:
    """z_dot (nz,) of the actuators' own states [1/s]."""
    names = activations(mechanism)
    if not names:
        return np.zeros(0)
    rates = activation_rates(mechanism, named(mechanism.inputs, control), named(names, z))
    return np.array([rates[name] for name in names])


def next_activation(mechanism: Mechanism, z: Any, z_dot: Any, dt: Any) -> np.ndarray:
    """z (nz,) after dt, within the actuators' ranges."""
    actuators = [f for f in mechanism.forces if isinstance(f, Actuator) and f.activation is not None]
    rows = zip(actuators, z, z_dot, strict=True)
    return np.array([activation_after(actuator, rate, value, dt) for actuator, value, rate in rows])


def named(names: tuple[str, ...], values: Any) -> Mapping[str, Any]:
    """Values by name, in order."""
    return dict(zip(names, values, strict=True))
