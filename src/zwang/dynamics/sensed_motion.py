"""Values of sensors that follow from the kinematics of one state and its accelerations, on any scalar.

Accelerations are those of MuJoCo's `mj_rnePostConstraint`: the world accelerates by -g, which stands for
gravity. Source: MuJoCo documentation, XML reference, "sensor".
"""

from __future__ import annotations

from typing import Any

import numpy as np

from zwang.algebra import rotations
from zwang.algebra.norms import TINY
from zwang.algebra.rotations import cross
from zwang.kinematics.kinematics import Kinematics
from zwang.kinematics.poses import Pose
from zwang.kinematics.velocities import SpatialVector, propagate_accelerations
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.sensors import Camera, FrameSensor, SiteSensor, SubtreeSensor
from zwang.mechanism.tree import WORLD, Placement
from zwang.scalar import absolute, are_constant, cos, divide, less, less_equal, sin, tan, where

AXES = ("x_axis", "y_axis", "z_axis")


# ------------------------------------------------------------------------------------ accelerations, wrenches


def link_accelerations(kinematics: Kinematics, a: Any) -> list[SpatialVector]:
    """Acceleration of every link's origin and angular acceleration, in the link's axes, at the generalised
    accelerations a (nv,); without gravity.
    """
    return propagate_accelerations(
        kinematics.tree,
        kinematics.joint_poses,
        kinematics.motion_subspaces,
        kinematics.velocities,
        kinematics.v,
        a,
    )


def placement_acceleration(
    kinematics: Kinematics, accelerations: list[SpatialVector], placement: Placement
) -> np.ndarray:
    """Acceleration (6,) of the origin of a frame fixed to a link, and its angular acceleration, in world
    axes, without gravity.
    """
    if placement.link == WORLD:
        return np.zeros(6, int)
    R, p = kinematics.poses[placement.link].R, placement.p
    acc, wd = accelerations[placement.link]
    w = kinematics.velocities[placement.link].angular
    return np.concatenate([R @ (acc + cross(wd, p) + cross(w, cross(w, p))), R @ wd])


def proper_acceleration(
    kinematics: Kinematics, accelerations: list[SpatialVector], placement: Placement
) -> np.ndarray:
    """The acceleration of `placement_acceleration` less that of gravity, which an accelerometer measures."""
    found = placement_acceleration(kinematics, accelerations, placement)
    return np.concatenate([found[:3] - kinematics.tree.gravity, found[3:]])


def inertial_wrenches(kinematics: Kinematics, accelerations: list[SpatialVector]) -> dict[str, np.ndarray]:
    """Inertial wrench less weight (6,) of every body with mass, by name: force, and moment about the world's
    origin.

    f = m (a_c - g), n = I wd + w x I w + c x f, in world axes, with the centre of mass c.
    """
    found = {}
    for solid in kinematics.tree.rigid_bodies:
        R, c = kinematics.placement_pose(solid.placement)
        w = kinematics.placement_velocity(solid.placement)[3:]
        acceleration = proper_acceleration(kinematics, accelerations, solid.placement)
        I = R @ solid.inertia @ R.T
        force = solid.mass * acceleration[:3]
        moment = I @ acceleration[3:] + cross(w, I @ w) + cross(c, force)
        found[solid.body] = np.concatenate([force, moment])
    return found


def moved_wrench(wrench: np.ndarray, p: Any) -> np.ndarray:
    """The wrench (6,) with its moment about the point p (3,) instead of about the world's origin."""
    return np.concatenate([wrench[:3], wrench[3:] - cross(p, wrench[:3])])


# -------------------------------------------------------------------------------------------------- frames


def frame_quaternion(kinematics: Kinematics, placement: Placement) -> np.ndarray:
    """Unit quaternion (w, x, y, z) of a frame fixed to a link, as the product of those of the joints on its
    path.

    It is continuous in the configuration, as MuJoCo's is; a constant rotation has w >= 0.
    """
    found, i = _constant_quaternion(placement.R), placement.link
    while i != WORLD:
        link = kinematics.tree.links[i]
        kind, axis, *_ = link.joint
        if kind == "ball":
            found = rotations.multiply(kinematics.q[link.q], found)
        elif kind != "prismatic":
            half = (kinematics.q[link.q][0] - link.reference) / 2
            turn = np.array([cos(half), *(x * sin(half) for x in axis)])
            found = rotations.multiply(turn, found)
        found = rotations.multiply(_constant_quaternion(link.R), found)
        i = link.parent
    return found


def _constant_quaternion(R: np.ndarray) -> np.ndarray:
    """Quaternion of a constant rotation; exact for the identity."""
    if are_constant(*R.flat) and np.array_equal(R, np.eye(3)):
        return np.array([1, 0, 0, 0])
    return rotations.to_quaternion_generic(np.asarray(R))


def frame_pose_value(kinematics: Kinematics, sensor: FrameSensor) -> np.ndarray:
    """Position, axis or quaternion of a frame, relative to another one if the sensor has one."""
    placement = kinematics.tree.placement(sensor.frame)
    pose = kinematics.placement_pose(placement)
    base = None if sensor.relative_to is None else kinematics.tree.placement(sensor.relative_to)
    if sensor.kind == "quaternion":
        found = frame_quaternion(kinematics, placement)
        if base is None:
            return found
        w, x, y, z = frame_quaternion(kinematics, base)
        return rotations.multiply(np.array([w, -x, -y, -z]), found)
    value = pose.p if sensor.kind == "position" else pose.R[:, AXES.index(sensor.kind)]
    if base is None:
        return value
    R, p = kinematics.placement_pose(base)
    return R.T @ (value - p if sensor.kind == "position" else value)


def frame_velocity_value(kinematics: Kinematics, sensor: FrameSensor) -> np.ndarray:
    """Linear or angular velocity of a frame, as it is seen in the frame `relative_to`, if there is one."""
    part = slice(0, 3) if sensor.kind == "linear_velocity" else slice(3, 6)
    placement = kinematics.tree.placement(sensor.frame)
    velocity = kinematics.placement_velocity(placement)
    if sensor.relative_to is None:
        return velocity[part]
    base = kinematics.tree.placement(sensor.relative_to)
    (R, p), moving = kinematics.placement_pose(base), kinematics.placement_velocity(base)
    relative = velocity - moving
    # u - u_ref - w_ref x r, in the axes of the reference frame
    r = kinematics.placement_pose(placement).p - p
    relative = np.concatenate([relative[:3] - cross(moving[3:], r), relative[3:]])
    return R.T @ relative[part]


def site_velocity_value(kinematics: Kinematics, sensor: SiteSensor) -> np.ndarray:
    """Linear velocity (velocimeter) or angular velocity (gyro) of a frame, in its own axes."""
    placement = kinematics.tree.placement(sensor.frame)
    velocity = kinematics.placement_velocity(placement)
    R = kinematics.placement_pose(placement).R
    return R.T @ (velocity[:3] if sensor.kind == "velocimeter" else velocity[3:])


# -------------------------------------------------------------------------------------------------- subtrees


def subtree_bodies(mechanism: Mechanism, body: str) -> set[str]:
    """The names of a body and its descendants; of "world", of all bodies."""
    found = {body}
    for other in mechanism.bodies:  # parents stand before their children
        if other.parent in found:
            found.add(other.name)
    return found


def subtree_value(mechanism: Mechanism, kinematics: Kinematics, sensor: SubtreeSensor) -> np.ndarray:
    """Centre of mass of a subtree, its velocity, or the angular momentum about it, in world axes.

    Where the subtree has less than 1e-15 kg, the centre is that of the body alone, where its `com` has it,
    and the velocity is zero.
    """
    names = subtree_bodies(mechanism, sensor.body)
    solids = [s for s in kinematics.tree.rigid_bodies if s.body in names]
    mass: Any = sum((s.mass for s in solids), start=0)
    centres = [kinematics.placement_pose(s.placement).p for s in solids]
    has_mass = less_equal(TINY, mass)
    per_mass = divide(1, where(has_mass, mass, 1))
    centre = (
        sum((s.mass * c for s, c in zip(solids, centres, strict=True)), start=np.zeros(3, int)) * per_mass
    )
    of_body = _body_centre(mechanism, kinematics, sensor.body)
    centre = np.array([where(has_mass, x, y) for x, y in zip(centre, of_body, strict=True)])
    if sensor.kind == "mass_centre":
        return centre
    velocities = [kinematics.placement_velocity(s.placement) for s in solids]
    momenta = [s.mass * u[:3] for s, u in zip(solids, velocities, strict=True)]
    if sensor.kind == "linear_velocity":
        momentum = sum(momenta, start=np.zeros(3, int)) * per_mass
        return np.array([where(has_mass, x, 0) for x in momentum])
    total: Any = np.zeros(3, int)
    for solid, c, u, momentum in zip(solids, centres, velocities, momenta, strict=True):
        R = kinematics.placement_pose(solid.placement).R
        total = total + R @ solid.inertia @ R.T @ u[3:] + cross(c - centre, momentum)
    return total


def _body_centre(mechanism: Mechanism, kinematics: Kinematics, body: str) -> np.ndarray:
    """Where the `com` of a body is in the world; of "world", its origin."""
    R, p = kinematics.frame_pose(body)
    return p if body == "world" else p + R @ np.array(mechanism.body(body).com)


# --------------------------------------------------------------------------------------------------- cameras


def camera_value(kinematics: Kinematics, camera: Camera, point: np.ndarray) -> np.ndarray:
    """Image coordinates (2,) of a world point, in pixels from the upper left corner.

    With the point (x, y, z) in the axes of the camera, which looks along -z, and the focal lengths f in
    pixels, they are (width / 2 - f_x x / z, height / 2 + f_y y / z).
    """
    R, p = kinematics.placement_pose(kinematics.tree.placement(camera.body))
    pose = Pose(R @ np.array(camera.orientation), p + R @ np.array(camera.position))
    x, y, z = pose.R.T @ (point - pose.p)
    width, height = camera.resolution
    if all(camera.sensor_size):
        f_x, f_y = (
            focal / size * pixels
            for focal, size, pixels in zip(
                camera.focal_length, camera.sensor_size, camera.resolution, strict=True
            )
        )
    else:
        f_x = f_y = height / (2 * tan(camera.fovy / 2))
    depth = where(less(absolute(z), TINY), where(less(z, 0), -TINY, TINY), z)
    return np.array([width / 2 - f_x * divide(x, depth), height / 2 + f_y * divide(y, depth)])
