"""The transmissions of actuators: length and moment arms."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from zwang.algebra import rotations
from zwang.algebra.rotations import cross
from zwang.dynamics.adhesion import adhesion_moments
from zwang.kinematics.kinematics import Kinematics
from zwang.kinematics.tendon_length import tendon_length
from zwang.mechanism.force_elements import Actuator
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.tree import Tree
from zwang.scalar import floor, is_zero, less, sqrt, where


def transmissions(
    mechanism: Mechanism, actuators: Iterable[Actuator], kinematics: Kinematics
) -> dict[str, tuple[Any, np.ndarray]]:
    """By name the `transmission` of each of these actuators; the contacts of all adhesions are found
    together.
    """
    chosen = list(actuators)
    bodies = list(dict.fromkeys(a.body for a in chosen if a.body is not None))
    adhesions = adhesion_moments(mechanism, kinematics, bodies)
    return {
        a.name: transmission(mechanism, a, kinematics) if a.body is None else (0, adhesions[a.body])
        for a in chosen
    }


def transmission(mechanism: Mechanism, actuator: Actuator, kinematics: Kinematics) -> tuple[Any, np.ndarray]:
    """Length and moment arms (nv,) of an actuator: its velocity is moment @ v, its generalised force is force
    * moment.

    Source: MuJoCo documentation, "Actuation model".
    """
    gear = actuator.gear
    if actuator.tendon is not None:
        tendon = next(t for t in mechanism.tendons if t.name == actuator.tendon)
        length, moment = tendon_length(mechanism, tendon, kinematics)
        return gear[0] * length, gear[0] * moment
    if actuator.slider is not None:
        length, moment = _slider_crank(mechanism, actuator, kinematics)
        return gear[0] * length, gear[0] * moment
    if actuator.frame is not None and actuator.reference is not None:
        return _between_frames(mechanism, actuator, kinematics)
    if actuator.frame is not None:
        placement = mechanism.tree.placement(actuator.frame)
        R, J = kinematics.placement_pose(placement).R, kinematics.placement_jacobian(placement)
        wrench = np.array([*gear, *[0] * (6 - len(gear))])
        return 0, np.concatenate([R @ wrench[:3], R @ wrench[3:]]) @ J
    if actuator.body is not None:
        return 0, adhesion_moments(mechanism, kinematics, [actuator.body])[actuator.body]
    return _of_joint(mechanism, actuator, kinematics.q)


def _of_joint(mechanism: Mechanism, actuator: Actuator, q: Any) -> tuple[Any, np.ndarray]:
    """On a joint. The gear of a ball or free joint is in the axes of the body, or in those of its parent."""
    assert actuator.joint is not None
    joint, gear = mechanism.joint(actuator.joint), np.array(actuator.gear)
    if joint.kind in ("ball", "free"):
        rotation = q[joint.q][-4:]
        turned = gear[:3] if joint.kind == "ball" else gear[3:6]
        if actuator.in_parent:
            turned = rotations.from_quaternion(rotation).T @ turned
        if joint.kind == "ball":
            return rotations.logarithm(rotation) @ turned, on_joint(mechanism, joint.name, turned)
        return 0, on_joint(mechanism, joint.name, [*gear[:3], *turned])
    length = sum(g * x for g, x in zip(gear, q[joint.q], strict=True))
    return length, on_joint(mechanism, joint.name, gear)


def _between_frames(
    mechanism: Mechanism, actuator: Actuator, kinematics: Kinematics
) -> tuple[Any, np.ndarray]:
    """Displacement p and rotation vector of a frame in its reference frame, times the gear.

    The moment arms are those of the gear as a wrench in the axes of the reference frame, at the origin of
    each frame; joints that move both frames have none.
    """
    tree = mechanism.tree
    frame, reference = tree.placement(str(actuator.frame)), tree.placement(str(actuator.reference))
    a, b = kinematics.placement_pose(reference), kinematics.placement_pose(frame)
    gear = np.array([*actuator.gear, *[0] * (6 - len(actuator.gear))])
    length: Any = 0
    if not all(is_zero(g) for g in gear[:3]):
        length = length + gear[:3] @ (a.R.T @ (b.p - a.p))
    if not all(is_zero(g) for g in gear[3:]):
        rotation = rotations.to_quaternion_generic(a.R.T @ b.R)
        length = length + gear[3:] @ rotations.logarithm(rotation)
    J = kinematics.placement_jacobian(frame) - kinematics.placement_jacobian(reference)
    moment = np.concatenate([a.R @ gear[:3], a.R @ gear[3:]]) @ J
    common = velocities_of(tree, frame.link) & velocities_of(tree, reference.link)
    return length, np.array([0 if k in common else x for k, x in enumerate(moment)])


def velocities_of(tree: Tree, link: int) -> set[int]:
    """The indices of the generalised velocities that move a link."""
    return {k for i in tree.path(link) for k in range(tree.links[i].v.start, tree.links[i].v.stop)}


def nearest_set_point(mechanism: Mechanism, actuator: Actuator, length: Any, u: Any) -> Any:
    """The set point u of a rotational servo, up to full turns the one nearest to the length; u for others.

    A rotational servo has no activation and the force k (u - length) + b0 + b2 velocity, on a ball joint or
    between the orientations of two frames. Source: MuJoCo documentation, "Actuation model".
    """
    (k, g1, g2), bias = actuator.gain, actuator.bias
    is_servo = actuator.activation is None and is_zero(g1) and is_zero(g2) and is_zero(k + bias[1])
    if not is_servo or is_zero(k) or actuator.muscle is not None:
        return u
    gear = np.array(actuator.gear)
    if actuator.reference is not None:
        turned = gear[3:] if all(is_zero(g) for g in gear[:3]) else gear[:0]
    else:
        is_ball = actuator.joint is not None and mechanism.joint(actuator.joint).kind == "ball"
        turned = gear[:3] if is_ball else gear[:0]
    if not len(turned):
        return u
    period = 2 * np.pi * sqrt(turned @ turned)
    return u - period * floor((u - length) / period + 0.5)


def _slider_crank(mechanism: Mechanism, actuator: Actuator, kinematics: Kinematics) -> tuple[Any, np.ndarray]:
    """Position x of the slider of a slider-crank along its axis u, and its Jacobian (nv,).

    With d from the slider's origin to the crank pin and the rod length r, x = u.d - s, s = sqrt((u.d)^2 + r^2
    - d.d). Where the rod is too short, x = u.d. Source: MuJoCo documentation, "Actuation model".
    """
    tree = mechanism.tree
    pin, slider = tree.placement(str(actuator.frame)), tree.placement(str(actuator.slider))
    d = kinematics.placement_pose(pin).p - kinematics.placement_pose(slider).p
    u = kinematics.placement_pose(slider).R[:, 2]
    J, J_slider = kinematics.placement_jacobian(pin), kinematics.placement_jacobian(slider)
    along = u @ d
    square = along * along + actuator.rod * actuator.rod - d @ d
    reaches = less(0, square)
    s = sqrt(where(reaches, square, 1.0))
    factor = where(reaches, 1 - along / s, 1.0)  # dx = factor (du.d + u.dd) + (d.dd) / s
    axis_moment = cross(u, d)  # du.d = w.(u x d)
    moment = factor * (u @ (J[:3] - J_slider[:3]) + axis_moment @ J_slider[3:])
    moment = moment + where(reaches, 1 / s, 0.0) * (d @ (J[:3] - J_slider[:3]))
    return along - where(reaches, s, 0.0), moment


def on_joint(mechanism: Mechanism, joint: str, values: Any) -> np.ndarray:
    """Generalised forces (nv,) that are `values` for one joint and zero for the others."""
    tau: list[Any] = [0] * mechanism.nv
    start = mechanism.joint(joint).v.start
    for k, value in enumerate(values):
        tau[start + k] = value
    return np.array(tau)
