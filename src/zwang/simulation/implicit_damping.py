"""Accelerations with velocity-dependent forces evaluated implicitly, at the end of the step.

Each integrator linearises some forces about the beginning of the step:

    euler          damping of the joints
    implicitfast   damping of joints, point springs, tendons and actuators, and the bias forces of single free
                   bodies
    implicit       all damping, and all bias forces
    rk4            none

Source: MuJoCo documentation, Computation, "Numerical integration".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from zwang.algebra.factorization import gaussian_elimination
from zwang.dynamics.bias_force_derivative import (
    bias_force_derivative,
    free_body_bias_force_derivative,
    standalone_free_bodies,
)
from zwang.dynamics.crba import crba_of
from zwang.dynamics.forward_dynamics import free_accelerations_of
from zwang.dynamics.forward_dynamics_crba import solve_mass_matrix, velocity_parents
from zwang.dynamics.rnea import bias_forces_of
from zwang.kinematics.kinematics import Kinematics
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.tree import Tree
from zwang.scalar import is_zero
from zwang.simulation.applied_forces import inputs_by_name
from zwang.simulation.constraint_stage import ConstrainedMotion
from zwang.simulation.damping import damping_matrix, is_linear, joint_damping
from zwang.simulation.step_settings import StepSettings


def unconstrained_acceleration(
    s: StepSettings, kinematics: Kinematics, z: Any, control: Any, tau: Any, t: Any = 0
) -> np.ndarray:
    """The acceleration (nv,) under the applied force tau (nv,), without constraints, as the integrator
    defines it. t [s]: the time.
    """
    return ACCELERATIONS[s.integrator](s, kinematics, z, control, tau, t)


def constrained_acceleration(
    s: StepSettings, motion: ConstrainedMotion, kinematics: Kinematics, z: Any, control: Any, t: Any = 0
) -> np.ndarray:
    """The acceleration a (nv,) of (M + h D) a = M a_0, with the constrained acceleration a_0 of `motion`:
    a_0 - (M + h D)^-1 h D a_0.
    """
    D = DAMPING[s.integrator](s, kinematics, z, control, t)
    if (not D.size or is_zero(D)) and not _implicit_bias(s):
        return motion.a
    slope = _implicit_slope(s, kinematics, D)
    return motion.a - _implicit_solution(s, motion.M, slope, slope @ motion.a)


def tree_with_implicit_damping(mechanism: Mechanism, h: Any) -> Tree:
    """The tree with armatures increased by h times the joint damping, which makes constant damping implicit.

    (M + h D) a = tau - D v - h(q, v)  is equivalent to  M a + h(q, v) = tau - D (v + h a).
    Source: MuJoCo documentation, Computation, "Euler".
    """
    D = joint_damping(mechanism, np.zeros(mechanism.nv, int))
    links = [replace(link, armature=link.armature + h * D[link.v.start]) for link in mechanism.tree.links]
    return replace(mechanism.tree, links=tuple(links))


def has_implicit_joint_damping(mechanism: Mechanism) -> bool:
    """Whether Euler's method treats joint damping implicitly: unless the options disable "eulerdamp"."""
    return "eulerdamp" not in mechanism.options.disabled


def _implicit_slope(s: StepSettings, kinematics: Kinematics, D: np.ndarray) -> np.ndarray:
    """h (D + B) (nv, nv), with the slope B of the bias forces.

    B is complete for "implicit", that of free bodies for "implicitfast", and zero otherwise. Elements between
    different branches of the tree are omitted. Source: MuJoCo documentation, Computation, "implicit",
    "implicitfast".
    """
    slope = s.h * D
    if s.integrator == "implicit":
        slope = slope + s.h * bias_force_derivative(kinematics)
    for body in standalone_free_bodies(s.mechanism) if s.integrator == "implicitfast" else ():
        block = slope[body.v, body.v] + s.h * free_body_bias_force_derivative(body, kinematics)
        slope = slope.astype(object)
        slope[body.v, body.v] = block
    return np.where(_same_branch(s.mechanism.tree), slope, 0)


def _implicit_solution(s: StepSettings, M: Any, slope: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The solution a (nv,) of (M + slope) a = b, with a slope of `_implicit_slope`."""
    A = np.where(_same_branch(s.mechanism.tree), M + slope, 0)
    if s.integrator == "implicit":
        return gaussian_elimination(A, b)
    a = list(solve_mass_matrix(s.mechanism.tree, A, b))
    for body in _implicit_bias(s):  # the matrix of a free body is not symmetric
        a[body.v] = gaussian_elimination(A[body.v, body.v], b[body.v])
    return np.array(a)


def _implicit_bias(s: StepSettings) -> tuple[Any, ...]:
    """The links whose bias forces are implicit: all ("implicit"), free bodies ("implicitfast"), or none."""
    if s.integrator == "implicit":
        return s.tree.links
    return standalone_free_bodies(s.mechanism) if s.integrator == "implicitfast" else ()


def _same_branch(tree: Tree) -> np.ndarray:
    """For each pair of generalised velocities (nv, nv), whether they are on one branch of the tree."""
    parents = velocity_parents(tree)
    found = np.eye(tree.nv, dtype=bool)
    for i in range(tree.nv):
        k = parents[i]
        while k >= 0:  # the ancestors of i
            found[i, k] = found[k, i] = True
            k = parents[k]
    return found


def _tree_acceleration(
    s: StepSettings, kinematics: Kinematics, z: Any, control: Any, tau: Any, t: Any = 0
) -> np.ndarray:
    """a of M a + h(q, v) = tau, with the armatures of the settings."""
    return free_accelerations_of(kinematics.with_inertias_of(s.tree), tau)


def _euler_acceleration(
    s: StepSettings, kinematics: Kinematics, z: Any, control: Any, tau: Any, t: Any = 0
) -> np.ndarray:
    """a with constant joint damping in the armatures; with D(v) where a damper is nonlinear."""
    if is_linear(s.mechanism) or not has_implicit_joint_damping(s.mechanism):
        return _tree_acceleration(s, kinematics, z, control, tau, t)
    return _implicit_acceleration(s, kinematics, z, control, tau, t)


def _implicit_acceleration(
    s: StepSettings, kinematics: Kinematics, z: Any, control: Any, tau: Any, t: Any = 0
) -> np.ndarray:
    """a of (M + h (D + B)) a = tau - h(q, v), with the damping D = -d tau / d v of the integrator."""
    D = DAMPING[s.integrator](s, kinematics, z, control, t)
    slope = _implicit_slope(s, kinematics, D)
    return _implicit_solution(s, crba_of(kinematics), slope, tau - bias_forces_of(kinematics))


def _no_damping(s: StepSettings, kinematics: Kinematics, z: Any, control: Any, t: Any) -> np.ndarray:
    """An empty array: no damping is implicit."""
    return np.zeros(0)


def _damping_of_joints(s: StepSettings, kinematics: Kinematics, z: Any, control: Any, t: Any) -> np.ndarray:
    """D (nv, nv) of the joint dampers; (0,) if their damping is explicit."""
    return (
        np.diag(joint_damping(s.mechanism, kinematics.v))
        if has_implicit_joint_damping(s.mechanism)
        else np.zeros(0)
    )


def _damping_of_all_forces(
    s: StepSettings, kinematics: Kinematics, z: Any, control: Any, t: Any
) -> np.ndarray:
    """D (nv, nv) of joint dampers, point springs, tendons, actuators and fluids."""
    inputs = inputs_by_name(s.mechanism, z, control, t, s.h)
    if s.integrator == "implicit":
        full_slopes = {body.name for body in s.mechanism.bodies}
    else:  # the matrix is symmetric, but for single free bodies
        links = {free.number for free in standalone_free_bodies(s.mechanism)}
        placement = s.mechanism.tree.placement
        full_slopes = {body.name for body in s.mechanism.bodies if placement(body.name).link in links}
    return damping_matrix(s.mechanism, kinematics, inputs, full_slopes)


ACCELERATIONS: dict[str, Callable[..., np.ndarray]] = {
    "euler": _euler_acceleration,
    "rk4": _tree_acceleration,
    "implicitfast": _implicit_acceleration,
    "implicit": _implicit_acceleration,
}

DAMPING: dict[str, Callable[..., np.ndarray]] = {
    "euler": _damping_of_joints,
    "rk4": _no_damping,
    "implicitfast": _damping_of_all_forces,
    "implicit": _damping_of_all_forces,
}
