"""Jacobians of frames and points, and the velocity and acceleration of a frame."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from zwang.algebra.rotations import cross, skew
from zwang.kinematics.poses import Pose, link_pose, link_poses, motion_subspace, placement_pose
from zwang.mechanism.tree import Placement, Tree


def placement_jacobian(tree: Tree, poses: Sequence[Pose], placement: Placement) -> np.ndarray:
    """Geometric Jacobian J (6, nv) of a frame that is fixed to a link, linear rows first, in world axes.

    J v is the velocity of the frame's origin [m/s] and the angular velocity [rad/s]. poses: world poses of
    the links.
    """
    return point_jacobian(tree, poses, placement.link, placement_pose(poses, placement).p)


def point_jacobian(tree: Tree, poses: Sequence[Pose], link: int, p: Any) -> np.ndarray:
    """Geometric Jacobian J (6, nv) of the point of a link that is at p (3,) in the world, in world axes.

    J v is the velocity of that point and the link's angular velocity. link: the link's number, or -1 for the
    world.
    """
    columns = [np.zeros(6, int)] * tree.nv
    for k, column in path_columns(tree, poses, link, p).items():
        columns[k] = column
    return np.stack(columns, axis=1) if columns else np.zeros((6, 0))


def path_columns(tree: Tree, poses: Sequence[Pose], link: int, p: Any) -> dict[int, np.ndarray]:
    """The columns (6,) of `point_jacobian` by the numbers of the velocities on the path from the world to the
    link, which alone move it.
    """
    columns = dict[int, np.ndarray]()
    for i in tree.path(link):
        # column k: w = R S_w, linear velocity R S_u + w x (p - p_i)
        joint, (R, p_link) = tree.links[i], poses[i]
        for k, s in zip(range(joint.v.start, joint.v.stop), motion_subspace(joint).T, strict=True):
            linear, angular = R @ s[:3], R @ s[3:]
            columns[k] = np.concatenate([linear + cross(angular, p - p_link), angular])
    return columns


def world_motion_subspaces(tree: Tree, poses: Sequence[Pose]) -> list[np.ndarray]:
    """Motion subspace (6, nv of the link) of each link in world axes, at the world's origin (Featherstone
    2008, Sec. 2.8).

    Its columns are the velocity of the body point at the world's origin, and the angular velocity, that a
    unit generalised velocity of the joint gives the link and its descendants.
    """
    found = []
    for link, (R, p) in zip(tree.links, poses, strict=True):
        # X S = (R S_u + p x R S_w, R S_w)
        S = motion_subspace(link)
        linear, angular = R @ S[:3], R @ S[3:]
        found.append(np.concatenate([linear + skew(p) @ angular, angular]))
    return found


def relative_jacobian(tree: Tree, poses: Sequence[Pose], a: int, b: int, p: Any) -> np.ndarray:
    """Jacobian J (6, nv) of link b relative to link a at the world point p (3,), linear rows first, in world
    axes.

    The joints on the path of both links do not move them relative to each other: their columns are exactly
    zero.
    """
    columns = [np.zeros(6, int)] * tree.nv
    path_a, path_b = tree.path(a), tree.path(b)
    for sign, path, other in ((-1, path_a, path_b), (1, path_b, path_a)):
        for i in path:
            if i in other:
                continue
            link, (R, p_link) = tree.links[i], poses[i]
            for k, s in zip(range(link.v.start, link.v.stop), motion_subspace(link).T, strict=True):
                linear, angular = R @ s[:3], R @ s[3:]
                columns[k] = sign * np.concatenate([linear + cross(angular, p - p_link), angular])
    return np.stack(columns, axis=1) if columns else np.zeros((6, 0))


def frame_jacobian(tree: Tree, q: Any, frame: str, axes: str = "world") -> np.ndarray:
    """Geometric Jacobian J (6, nv) of a frame, linear rows first (Siciliano et al., Robotics, 2009, Sec.
    3.1).

    J v is the velocity of the frame's origin [m/s] and the angular velocity [rad/s]. axes: "world" (default)
    or "body", the frame's own. Raises UnknownNameError for an unknown frame.
    """
    placement = tree.placement(frame)
    poses = link_poses(tree, q)
    J = placement_jacobian(tree, poses, placement)
    if axes == "world":
        return J
    R = placement_pose(poses, placement).R
    return np.concatenate([R.T @ J[:3], R.T @ J[3:]])


def frame_motion(tree: Tree, q: Any, v: Any, a: Any, frame: str) -> tuple[np.ndarray, np.ndarray]:
    """Velocity and acceleration, each (6,), linear first, in world axes, of a frame given by its name.

    See `placement_motion`. Raises UnknownNameError for an unknown frame.
    """
    return placement_motion(tree, q, v, a, tree.placement(frame))


def placement_motion(
    tree: Tree, q: Any, v: Any, a: Any, placement: Placement
) -> tuple[np.ndarray, np.ndarray]:
    """Velocity and acceleration, each (6,), linear first, in world axes, of a frame that is fixed to a link.

    q, v, a: configuration (nq,), generalised velocities and accelerations (nv,). The linear parts are those
    of the frame's origin [m/s, m/s^2]. With a = 0 the acceleration is the bias acceleration Jdot v. Only the
    links between the frame and the world are evaluated. Source: Featherstone 2008, Eq. 5.14 and 5.15, for
    classical accelerations.
    """
    zero = np.zeros(3, int)
    R_world, vel, w, acc, wd = np.eye(3, dtype=int), zero, zero, zero, zero
    for i in tree.path(placement.link):
        link = tree.links[i]
        R, p = link_pose(link, q)
        S = motion_subspace(link)
        u, s = S @ v[link.v], S @ a[link.v]
        # a_i = R^T (a + wd x p + w x (w x p)) + S_u a_i + 2 (R^T w) x S_u v_i
        acc = R.T @ (acc + cross(wd, p) + cross(w, cross(w, p))) + s[:3] + 2 * cross(R.T @ w, u[:3])
        # u_i = R^T (u + w x p) + S_u v_i
        vel = R.T @ (vel + cross(w, p)) + u[:3]
        # wd_i = R^T wd + S_w a_i + (R^T w) x S_w v_i,  w_i = R^T w + S_w v_i
        wd = R.T @ wd + s[3:] + cross(R.T @ w, u[3:])
        w = R.T @ w + u[3:]
        R_world = R_world @ R
    p = placement.p
    velocity = [R_world @ (vel + cross(w, p)), R_world @ w]
    acceleration = [R_world @ (acc + cross(wd, p) + cross(w, cross(w, p))), R_world @ wd]
    return np.concatenate(velocity), np.concatenate(acceleration)


def frame_jacobian_rate(tree: Tree, q: Any, v: Any, frame: str) -> np.ndarray:
    """Bias acceleration Jdot v (6,) of a frame: linear and angular acceleration at a = 0, in world axes."""
    return frame_motion(tree, q, v, np.zeros(tree.nv, int), frame)[1]
