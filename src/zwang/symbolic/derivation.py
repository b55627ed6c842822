"""The projection method and three other derivations of the same equations, over a generic scalar.

Step 1  velocities of all bodies, X_dot = [x_dot; omega] for each: linear in world axes, angular in body axes
Step 2  the constraints at velocity level, X_dot = B u
Step 3  the projected equations, B^T M B u_dot = B^T (Gamma - D M X_dot - M B_dot u)
Step 4  numerical integration (see `simulate`)
Step 5  the ideal constraint forces, Q^c = M (B u_dot + B_dot u) + D M X_dot - Gamma
Source: Luchtenburg, Shah, Impelluso, Rykkje, A projection-based derivation of the equations of motion for the
moving frame method for multi-body dynamics, IMECE 2021-72324, Sec. 3.2.2, Eqs. 39-42, 50.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from zwang.algebra import rotations
from zwang.algebra.dual import SecondOrder, derivative_along, values_and_derivatives
from zwang.algebra.inertia import parallel_axis_term
from zwang.algebra.rotations import cross
from zwang.dynamics.crba import armature
from zwang.dynamics.rnea import rnea
from zwang.kinematics.configuration import configuration_rate
from zwang.kinematics.jacobians import placement_jacobian
from zwang.kinematics.poses import Pose, link_pose, placement_pose
from zwang.mechanism.tree import WORLD, Link, Placement, RigidBody, Tree
from zwang.scalar import are_constant, divide

PARALLEL = 1e-10


@dataclass(frozen=True)
class SummedRotation:
    """A rotation R0 Rot(axis, angle), whose angle is the sum of the angles about successive parallel axes.

    joints: the coordinates in the sum.
    """

    R0: np.ndarray
    axis: np.ndarray
    angle: Any
    joints: tuple[int, ...]


def poses_with_summed_angles(tree: Tree, q: Any) -> tuple[list[Pose], list[SummedRotation | None]]:
    """The pose of every link in the world, with angles about parallel axes added."""
    poses: list[Pose] = []
    rotations_: list[SummedRotation | None] = []
    for link in tree.links:
        base = poses[link.parent] if link.parent != WORLD else Pose(np.eye(3, dtype=int), np.zeros(3, int))
        before = rotations_[link.parent] if link.parent != WORLD else None
        p = base.p + base.R @ link_pose(link, q).p
        if link.joint.kind == "ball":
            poses.append(Pose(base.R @ link_pose(link, q).R, p))
            rotations_.append(None)
            continue
        summed = _summed_rotation(link, base.R, before, q)
        rotations_.append(summed)
        if summed is None:
            R = base.R @ link.R
        else:
            R = summed.R0 @ rotations.from_axis_angle(summed.axis, summed.angle)
        poses.append(Pose(R, p))
    return poses, rotations_


def _summed_rotation(
    link: Link, R: np.ndarray, before: SummedRotation | None, q: Any
) -> SummedRotation | None:
    """A link's rotation in the world from its parent's; None where no angle can be added."""
    if link.joint.kind == "prismatic":
        if before is None or not are_constant(*link.R.flat, *before.axis):
            return None
        return SummedRotation(before.R0 @ link.R, link.R.T @ before.axis, before.angle, before.joints)
    axis, angle = np.array(link.joint.axis), q[link.q][0] - link.reference
    sign = 0 if before is None else _alignment(link.R @ axis, before.axis)
    if before is None or not sign:
        return SummedRotation(R @ link.R, axis, angle, (link.q.start,))
    return SummedRotation(
        before.R0 @ link.R, axis, angle + sign * before.angle, (*before.joints, link.q.start)
    )


def _alignment(a: np.ndarray, b: np.ndarray) -> int:
    """1 for parallel numeric axes, -1 for opposite ones, else 0."""
    if not are_constant(*a, *b):
        return 0
    for sign in (1, -1):
        if all(abs(x - sign * y) < PARALLEL for x, y in zip(a, b, strict=True)):
            return sign
    return 0


def summed_angles(tree: Tree) -> set[int]:
    """The coordinates whose angles are added to others, along chains of parallel axes."""
    _, summed = poses_with_summed_angles(tree, np.zeros(tree.nq))
    return {k for r in summed if r is not None and len(r.joints) > 1 for k in r.joints}


def lumped(tree: Tree) -> Tree:
    """The tree with one rigid body for all bodies on the same link, which saves operations."""
    groups: dict[int, list[RigidBody]] = {}
    for body in tree.rigid_bodies:
        groups.setdefault(body.placement.link, []).append(body)
    rigid_bodies = [
        s
        for link, group in groups.items()
        if link != WORLD
        for s in ([_lump(group)] if len(group) > 1 else group)
    ]
    return replace(tree, rigid_bodies=tuple(rigid_bodies))


def _lump(group: list[RigidBody]) -> RigidBody:
    """Several rigid bodies on one link as one, in the link's axes, about the common centre of mass."""
    mass = sum((s.mass for s in group), start=0)
    if are_constant(mass) and mass == 0:
        centre: Any = group[0].placement.p
    else:
        moment: Any = sum(
            (s.mass * s.placement.p for s in group[1:]), start=group[0].mass * group[0].placement.p
        )
        centre = np.array([divide(x, mass) for x in moment])
    parts_ = [
        s.placement.R @ s.inertia @ s.placement.R.T + parallel_axis_term(s.mass, s.placement.p - centre)
        for s in group
    ]
    place = Placement(group[0].placement.link, np.eye(3, dtype=int), centre)
    return RigidBody(group[0].body, place, mass, sum(parts_[1:], start=parts_[0]))


@dataclass(frozen=True)
class BodyMotion:
    """The poses of all bodies with mass, by name, and B (6 N, nv), the matrix of X_dot = B v."""

    names: tuple[str, ...]
    poses: tuple[Pose, ...]
    B: np.ndarray


def body_motion(tree: Tree, q: Any) -> BodyMotion:
    """Poses of the bodies' centres of mass, and B (6 N, nv) of X_dot = B v (IMECE 2021-72324, Eq. 40)."""
    poses, _ = poses_with_summed_angles(tree, q)
    body_poses = tuple(placement_pose(poses, body.placement) for body in tree.rigid_bodies)
    blocks = []
    for body, pose in zip(tree.rigid_bodies, body_poses, strict=True):
        J = placement_jacobian(tree, poses, body.placement)
        blocks.append(np.concatenate([J[:3], pose.R.T @ J[3:]]))
    B = np.concatenate(blocks) if blocks else np.zeros((0, tree.nv), int)
    return BodyMotion(tuple(s.body for s in tree.rigid_bodies), body_poses, B)


def mass_blocks(tree: Tree) -> np.ndarray:
    """M (6 N, 6 N) = diag(m 1, I) of all bodies (IMECE 2021-72324, Eq. 39)."""
    n = len(tree.rigid_bodies)
    M = np.zeros((6 * n, 6 * n), int).astype(object)
    for k, body in enumerate(tree.rigid_bodies):
        for i in range(3):
            M[6 * k + i, 6 * k + i] = body.mass
        M[6 * k + 3 : 6 * k + 6, 6 * k + 3 : 6 * k + 6] = body.inertia
    return M


def gyroscopic_blocks(X_dot: np.ndarray) -> np.ndarray:
    """D (6 N, 6 N) = diag(0, [omega]x) of the bodies (IMECE 2021-72324, Eq. 39)."""
    D = np.zeros((len(X_dot), len(X_dot)), int).astype(object)
    for k in range(0, len(X_dot), 6):
        D[k + 3 : k + 6, k + 3 : k + 6] = rotations.skew(X_dot[k + 3 : k + 6])
    return D


def weights(tree: Tree) -> np.ndarray:
    """The weights in Gamma (6 N,): m g on every body, in world axes."""
    forces = [(*(s.mass * g for g in tree.gravity), 0, 0, 0) for s in tree.rigid_bodies]
    return np.array(forces, dtype=object).reshape(-1)


@dataclass(frozen=True)
class ProjectedEquations:
    """The projected equations mass_matrix u_dot = right_hand_side."""

    mass_matrix: np.ndarray
    right_hand_side: np.ndarray


@dataclass(frozen=True)
class SymbolicState:
    """The state of a mechanism over a generic scalar.

    q (nq,). v (nv,) = V u + v0. V (nv, n). v_rate (nv,): the rate of v at constant u. generalized_forces Q
    (nv,).
    """

    tree: Tree
    q: np.ndarray
    v: np.ndarray
    V: np.ndarray
    v_rate: np.ndarray
    generalized_forces: np.ndarray


def _block_product(tree: Tree, X: np.ndarray) -> np.ndarray:
    """M X, block by block."""
    parts_ = [np.zeros(0, int)]
    for k, body in enumerate(tree.rigid_bodies):
        x = X[6 * k : 6 * k + 6]
        parts_ += [body.mass * x[:3], np.array(body.inertia) @ x[3:]]
    return np.concatenate(parts_) if parts_ else X


def symmetric_product(A: np.ndarray, C: np.ndarray) -> np.ndarray:
    """A^T C that is known to be symmetric; only its upper half is computed."""
    m = A.shape[1]
    columns = [[k for k in range(len(A)) if not _absent(A[k, i])] for i in range(m)]
    upper = {(i, j): sum((A[k, i] * C[k, j] for k in columns[i] if not _absent(C[k, j])), start=0)
             for i in range(m) for j in range(i, m)}  # fmt: skip
    return np.array(
        [[upper[min(i, j), max(i, j)] for j in range(m)] for i in range(m)], dtype=object
    ).reshape(m, m)


def _absent(x: Any) -> bool:
    """Whether x is an exact zero."""
    return type(x) is int and x == 0


def by_projection(state: SymbolicState) -> ProjectedEquations:
    """Euler's laws of all bodies projected by B (IMECE 2021-72324, Eq. 42).

    Rotor inertias and generalised forces act on the generalised velocities.
    """
    tree = state.tree
    J = body_motion(tree, state.q).B
    _, J_rate = derivative_along(
        lambda q: body_motion(tree, q).B @ state.v, state.q, configuration_rate(tree, state.q, state.v)
    )
    B = J @ state.V
    X_dot = J @ state.v
    X_rate = J_rate + J @ state.v_rate  # B_dot u
    rotors = armature(tree)
    MB = np.stack([_block_product(tree, column) for column in B.T], axis=1)
    mass = symmetric_product(B, MB) + symmetric_product(state.V, rotors[:, None] * state.V)
    inertial = weights(tree) - _block_product(tree, X_rate) - gyroscopic_forces(tree, X_dot)
    return ProjectedEquations(
        mass, B.T @ inertial + state.V.T @ (state.generalized_forces - rotors * state.v_rate)
    )


def gyroscopic_forces(tree: Tree, X_dot: np.ndarray) -> np.ndarray:
    """D M X_dot: (0, omega x I omega) of every body."""
    parts_ = [np.zeros(0, int)]
    for k, body in enumerate(tree.rigid_bodies):
        w = X_dot[6 * k + 3 : 6 * k + 6]
        parts_ += [np.zeros(3, int), cross(w, np.array(body.inertia) @ w)]
    return np.concatenate(parts_)


def by_gauss(state: SymbolicState) -> ProjectedEquations:
    """The minimum of Z over u_dot: the gradient and the Hessian of Z by exact differentiation.

    Source: Gauss, Über ein neues allgemeines Grundgesetz der Mechanik (1829).
    """
    tree, rotors = state.tree, armature(state.tree)
    J = body_motion(tree, state.q).B
    _, J_rate = derivative_along(
        lambda q: body_motion(tree, q).B @ state.v, state.q, configuration_rate(tree, state.q, state.v)
    )
    B, bias = J @ state.V, J_rate + J @ state.v_rate
    wrench = weights(tree) - gyroscopic_forces(tree, J @ state.v)

    def zwang(u_dot: Any) -> Any:
        """Z up to terms without u_dot: 1/2 a^T M a - a^T (w - n), rotor inertias, generalised forces."""
        a, v_dot = B @ u_dot + bias, state.V @ u_dot + state.v_rate
        bodies = a @ (_block_product(tree, a)) / 2 - a @ wrench
        return bodies + v_dot @ (rotors * v_dot) / 2 - v_dot @ state.generalized_forces

    m = state.V.shape[1]
    rest = np.zeros(m, int)
    gradient = _gradient(zwang, m)
    rhs, mass = -gradient(rest), []
    for k in range(m):
        mass.append(derivative_along(gradient, rest, _unit(m, k))[1])
    return ProjectedEquations(np.array(mass, dtype=object).reshape(m, m), rhs)


def _unit(n: int, k: int) -> list[int]:
    """Unit vector k of n."""
    return [1 if i == k else 0 for i in range(n)]


def _gradient(function: Callable[[Any], Any], n: int) -> Callable[[Any], np.ndarray]:
    """The gradient of a function of n scalars, which may be dual numbers."""

    def gradient(x: Any) -> np.ndarray:
        rates = []
        for k in range(n):
            duals = np.empty(n, dtype=object)
            duals[:] = [SecondOrder(a, 1 if i == k else 0) for i, a in enumerate(x)]
            rates.append(values_and_derivatives(function(duals), SecondOrder)[1].item())
        return np.array(rates, dtype=object)

    return gradient


def by_newton_euler(state: SymbolicState) -> ProjectedEquations:
    """M(q) V column by column, and h, by the recursive Newton-Euler algorithm (Featherstone 2008, Table
    5.1).
    """
    tree = state.tree
    # h + M(q) v_rate, then the columns M(q) V without gravity and velocity
    bias = rnea(tree, state.q, state.v, state.v_rate)
    without_gravity = replace(tree, gravity=np.zeros(3, int))
    columns = [rnea(without_gravity, state.q, np.zeros(tree.nv, int), c) for c in state.V.T]
    mass = symmetric_product(state.V, np.stack(columns, axis=1))
    return ProjectedEquations(mass, state.V.T @ (state.generalized_forces - bias))
