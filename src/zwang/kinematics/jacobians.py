"""Jacobians of frames, and the acceleration that the speeds alone give."""

from __future__ import annotations

from typing import Any

import numpy as np

from zwang.algebra.rotations import cross, skew
from zwang.kinematics.poses import Pose, link_pose, link_poses, motion_subspace, placement_pose
from zwang.mechanism.tree import Placement, Tree


def placement_jacobian(tree: Tree, poses: list[Pose], place: Placement) -> np.ndarray:
    """J (6, nv): linear velocity of the place's origin and its angular velocity, in world axes, are J v."""
    return point_jacobian(tree, poses, place.link, placement_pose(poses, place).p)


def point_jacobian(tree: Tree, poses: list[Pose], at: int, p: Any) -> np.ndarray:
    """J (6, nv): velocity of the point of link number `at` that is at p in the world, and the link's angular velocity.

    A link's speed turns the point p about the link's origin: v = R S_v + (R S_w) x (p - p_link), w = R S_w.
    """
    columns = [np.zeros(6, int)] * tree.nv
    for i in tree.path(at):
        link, (R, p_link) = tree.links[i], poses[i]
        for k, s in zip(range(link.v.start, link.v.stop), motion_subspace(link).T, strict=True):
            linear, angular = R @ s[:3], R @ s[3:]
            columns[k] = np.concatenate([linear + cross(angular, p - p_link), angular])
    return np.stack(columns, axis=1) if columns else np.zeros((6, 0))


def world_motion_subspaces(tree: Tree, poses: list[Pose]) -> list[np.ndarray]:
    """For each link (6, nv of the link): the velocity at the world's origin, and angular velocity, that its own speeds give
    it and what it carries, in world axes.

    At the origin a link at p that turns by w moves with p x w. Source: Featherstone, RBDA (2008), Sec. 2.8.
    """
    found = []
    for link, (R, p) in zip(tree.links, poses, strict=True):
        S = motion_subspace(link)
        linear, angular = R @ S[:3], R @ S[3:]
        found.append(np.concatenate([linear + skew(p) @ angular, angular]))
    return found


def relative_jacobian(tree: Tree, poses: list[Pose], a: int, b: int, p: Any) -> np.ndarray:
    """J (6, nv): velocity of link b against link a at the point p of the world, and angular velocity, in world axes.

    Links that carry both do not move them against each other, and stay out.
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
    """J (6, nv) of a frame, linear rows first, in "world" or "body" (the frame's own) axes.

    J v = (velocity of the frame's origin [m/s], angular velocity [rad/s]). Source: Siciliano et al., Robotics (2009),
    Sec. 3.1, the geometric Jacobian. Raises UnknownNameError for the frame.
    """
    place = tree.place(frame)
    poses = link_poses(tree, q)
    J = placement_jacobian(tree, poses, place)
    if axes == "world":
        return J
    R = placement_pose(poses, place).R
    return np.concatenate([R.T @ J[:3], R.T @ J[3:]])


def frame_motion(tree: Tree, q: Any, v: Any, a: Any, frame: str) -> tuple[np.ndarray, np.ndarray]:
    """Velocity and acceleration (each 6, linear first, world axes) of a frame's origin, for speeds v and their rates a.

    With a = 0 the acceleration is Jdot v. Raises UnknownNameError for the frame.
    """
    return placement_motion(tree, q, v, a, tree.place(frame))


def placement_motion(tree: Tree, q: Any, v: Any, a: Any, place: Placement) -> tuple[np.ndarray, np.ndarray]:
    """Velocity and acceleration (each 6, linear first, world axes) of a place's origin, for speeds v and their rates a.

    With a = 0 the acceleration is Jdot v. The links' recursion, in link axes: with u the velocity of the link against its parent,
    w' = R^T w + u_w,  wd' = R^T wd + S_w a + (R^T w) x u_w,  and for the origins  ad' = R^T (ad + wd x p + w x (w x p)) +
    S_v a + 2 (R^T w) x u_v.
    """
    zero = np.zeros(3, int)
    R_world, vel, w, acc, wd = np.eye(3, dtype=int), zero, zero, zero, zero
    for i in tree.path(place.link):
        link = tree.links[i]
        R, p = link_pose(link, q)
        S = motion_subspace(link)
        u, s = S @ v[link.v], S @ a[link.v]
        acc = R.T @ (acc + cross(wd, p) + cross(w, cross(w, p))) + s[:3] + 2 * cross(R.T @ w, u[:3])
        vel = R.T @ (vel + cross(w, p)) + u[:3]
        wd = R.T @ wd + s[3:] + cross(R.T @ w, u[3:])
        w = R.T @ w + u[3:]
        R_world = R_world @ R
    p = place.p
    velocity = [R_world @ (vel + cross(w, p)), R_world @ w]
    acceleration = [R_world @ (acc + cross(wd, p) + cross(w, cross(w, p))), R_world @ wd]
    return np.concatenate(velocity), np.concatenate(acceleration)


def frame_jacobian_rate(tree: Tree, q: Any, v: Any, frame: str) -> np.ndarray:
    """Jdot v (6,): the acceleration of a frame's origin and its angular acceleration when a = 0, in world axes."""
    return frame_motion(tree, q, v, np.zeros(tree.nv, int), frame)[1]
