"""The five steps of the projection method, and three other ways to the same equations, over a generic scalar.

Step 1  velocities of all bodies, X_dot = [x_dot; omega] for each: linear in world axes, angular in body axes
Step 2  the constraints in velocity form, X_dot = B u
Step 3  the projected equations, B^T M B u_dot = B^T (Gamma - D M X_dot - M B_dot u)
Step 4  (integration: `simulate`)
Step 5  the ideal constraint forces, Q^c = M (B u_dot + B_dot u) + D M X_dot - Gamma
Source: seed 003, Sec. 3.2.2, Eqs. 39-42, 50.
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
    """A rotation as R0 Rot(axis, angle): the turns about parallel axes before it, added up."""

    R0: np.ndarray
    axis: np.ndarray
    angle: Any
    joints: tuple[int, ...]  # the coordinates in the sum


def poses_with_summed_angles(tree: Tree, q: Any) -> tuple[list[Pose], list[SummedRotation | None]]:
    """Every link's pose in the world; turns about parallel axes are one turn by the sum of their angles."""
    poses: list[Pose] = []
    heads: list[SummedRotation | None] = []
    for link in tree.links:
        base = poses[link.parent] if link.parent != WORLD else Pose(np.eye(3, dtype=int), np.zeros(3, int))
        before = heads[link.parent] if link.parent != WORLD else None
        p = base.p + base.R @ link_pose(link, q).p
        if link.move.kind == "ball":
            poses.append(Pose(base.R @ link_pose(link, q).R, p))
            heads.append(None)
            continue
        head = _head(link, base.R, before, q)
        heads.append(head)
        R = base.R @ link.R if head is None else head.R0 @ rotations.from_axis_angle(head.axis, head.angle)
        poses.append(Pose(R, p))
    return poses, heads


def _head(link: Link, R: np.ndarray, before: SummedRotation | None, q: Any) -> SummedRotation | None:
    if link.move.kind == "slide":
        if before is None or not are_constant(*link.R.flat, *before.axis):
            return None
        return SummedRotation(before.R0 @ link.R, link.R.T @ before.axis, before.angle, before.joints)
    axis, angle = np.array(link.move.axis), q[link.q][0] - link.reference
    sign = 0 if before is None else _alignment(link.R @ axis, before.axis)
    if before is None or not sign:
        return SummedRotation(R @ link.R, axis, angle, (link.q.start,))
    return SummedRotation(before.R0 @ link.R, axis, angle + sign * before.angle, (*before.joints, link.q.start))


def _alignment(a: np.ndarray, b: np.ndarray) -> int:
    """1 or -1 for parallel and opposite numeric axes, else 0."""
    if not are_constant(*a, *b):
        return 0
    for sign in (1, -1):
        if all(abs(x - sign * y) < PARALLEL for x, y in zip(a, b, strict=True)):
            return sign
    return 0


def summed_angles(tree: Tree) -> set[int]:
    """The coordinates whose angles are added to others': along a chain of parallel axes."""
    _, heads = poses_with_summed_angles(tree, np.zeros(tree.nq))
    return {k for head in heads if head is not None and len(head.joints) > 1 for k in head.joints}


def lumped(tree: Tree) -> Tree:
    """The same tree with one solid for all bodies that are fixed to one link: fewer operations, the same equations."""
    groups: dict[int, list[RigidBody]] = {}
    for solid in tree.rigid_bodies:
        groups.setdefault(solid.place.link, []).append(solid)
    rigid_bodies = [
        s
        for link, group in groups.items()
        if link != WORLD
        for s in ([_lump(group)] if len(group) > 1 else group)
    ]
    return replace(tree, rigid_bodies=tuple(rigid_bodies))


def _lump(group: list[RigidBody]) -> RigidBody:
    """Several solids on one link as one, in the link's axes, about the common mass centre."""
    mass = sum((s.mass for s in group), start=0)
    if are_constant(mass) and mass == 0:
        centre: Any = group[0].place.p
    else:
        moment: Any = sum((s.mass * s.place.p for s in group[1:]), start=group[0].mass * group[0].place.p)
        centre = np.array([divide(x, mass) for x in moment])
    parts_ = [s.place.R @ s.inertia @ s.place.R.T + parallel_axis_term(s.mass, s.place.p - centre) for s in group]
    place = Placement(group[0].place.link, np.eye(3, dtype=int), centre)
    return RigidBody(group[0].body, place, mass, sum(parts_[1:], start=parts_[0]))


@dataclass(frozen=True)
class BodyMotion:
    """Where the bodies are and how they move: for each solid R, x, and the rows of B; X_dot = B v."""

    names: tuple[str, ...]
    poses: tuple[Pose, ...]
    B: np.ndarray


def body_motion(tree: Tree, q: Any) -> BodyMotion:
    """Poses of the solids (at their mass centres) and B (6 N, nv) for the speeds v: X_dot = B v (seed 003, Eq. 40)."""
    poses, _ = poses_with_summed_angles(tree, q)
    at = tuple(placement_pose(poses, solid.place) for solid in tree.rigid_bodies)
    blocks = []
    for solid, pose in zip(tree.rigid_bodies, at, strict=True):
        J = placement_jacobian(tree, poses, solid.place)
        blocks.append(np.concatenate([J[:3], pose.R.T @ J[3:]]))
    B = np.concatenate(blocks) if blocks else np.zeros((0, tree.nv), int)
    return BodyMotion(tuple(s.body for s in tree.rigid_bodies), at, B)


def mass_blocks(tree: Tree) -> np.ndarray:
    """M (6 N, 6 N) = diag(m 1, I) of all solids (seed 003, Eq. 39)."""
    n = len(tree.rigid_bodies)
    M = np.zeros((6 * n, 6 * n), int).astype(object)
    for k, solid in enumerate(tree.rigid_bodies):
        for i in range(3):
            M[6 * k + i, 6 * k + i] = solid.mass
        M[6 * k + 3 : 6 * k + 6, 6 * k + 3 : 6 * k + 6] = solid.inertia
    return M


def gyroscopic_blocks(X_dot: np.ndarray) -> np.ndarray:
    """D (6 N, 6 N) = diag(0, [omega]x) of the bodies (seed 003, Eq. 39)."""
    D = np.zeros((len(X_dot), len(X_dot)), int).astype(object)
    for k in range(0, len(X_dot), 6):
        D[k + 3 : k + 6, k + 3 : k + 6] = rotations.skew(X_dot[k + 3 : k + 6])
    return D


def weights(tree: Tree) -> np.ndarray:
    """Gravity's part of Gamma (6 N,): m g on every body, in world axes."""
    return np.concatenate(
        [np.array([*(s.mass * g for g in tree.gravity), 0, 0, 0], dtype=object) for s in tree.rigid_bodies]
    )


@dataclass(frozen=True)
class ProjectedEquations:
    """mass_matrix u_dot = right_hand_side, and what they are made of."""

    mass_matrix: np.ndarray
    right_hand_side: np.ndarray


@dataclass(frozen=True)
class SymbolicState:
    """A mechanism's state in scalars: tree, q, v = V u + v0 and the rate of V u + v0 at constant u; efforts Q (nv,)."""

    tree: Tree
    q: np.ndarray
    v: np.ndarray
    V: np.ndarray
    v_rate: np.ndarray
    efforts: np.ndarray


def _block_product(tree: Tree, X: np.ndarray) -> np.ndarray:
    """M X without the zeros of M."""
    parts_ = []
    for k, solid in enumerate(tree.rigid_bodies):
        x = X[6 * k : 6 * k + 6]
        parts_ += [solid.mass * x[:3], np.array(solid.inertia) @ x[3:]]
    return np.concatenate(parts_) if parts_ else X


def symmetric_product(A: np.ndarray, C: np.ndarray) -> np.ndarray:
    """A^T C, known to be symmetric: the upper half only is worked out."""
    m = A.shape[1]
    columns = [[k for k in range(len(A)) if not _absent(A[k, i])] for i in range(m)]
    upper = {(i, j): sum((A[k, i] * C[k, j] for k in columns[i] if not _absent(C[k, j])), start=0)
             for i in range(m) for j in range(i, m)}  # fmt: skip
    return np.array(
        [[upper[min(i, j), max(i, j)] for j in range(m)] for i in range(m)], dtype=object
    ).reshape(m, m)


def _absent(x: Any) -> bool:
    return type(x) is int and x == 0


def by_projection(state: SymbolicState) -> ProjectedEquations:
    """Euler's laws of all bodies, projected by B (seed 003, Eq. 42); rotors and joint efforts act on the speeds."""
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
    return ProjectedEquations(mass, B.T @ inertial + state.V.T @ (state.efforts - rotors * state.v_rate))


def gyroscopic_forces(tree: Tree, X_dot: np.ndarray) -> np.ndarray:
    """D M X_dot: (0, omega x I omega) of every body."""
    parts_ = []
    for k, solid in enumerate(tree.rigid_bodies):
        w = X_dot[6 * k + 3 : 6 * k + 6]
        parts_ += [np.zeros(3, int), cross(w, np.array(solid.inertia) @ w)]
    return np.concatenate(parts_)


def by_gauss(state: SymbolicState) -> ProjectedEquations:
    """The accelerations that make Z least: the gradient of Z and its own derivative, by differentiation (seed 000)."""
    tree, rotors = state.tree, armature(state.tree)
    J = body_motion(tree, state.q).B
    _, J_rate = derivative_along(
        lambda q: body_motion(tree, q).B @ state.v, state.q, configuration_rate(tree, state.q, state.v)
    )
    B, drift = J @ state.V, J_rate + J @ state.v_rate
    wrench = weights(tree) - gyroscopic_forces(tree, J @ state.v)

    def zwang(u_dot: Any) -> Any:
        """Z, but for terms without u_dot: 1/2 a^T M a - a^T (w - n), with rotors and efforts on the speeds."""
        a, v_dot = B @ u_dot + drift, state.V @ u_dot + state.v_rate
        bodies = a @ (_block_product(tree, a)) / 2 - a @ wrench
        return bodies + v_dot @ (rotors * v_dot) / 2 - v_dot @ state.efforts

    m = state.V.shape[1]
    rest = np.zeros(m, int)
    gradient = _gradient(zwang, m)
    rhs, mass = -gradient(rest), []
    for k in range(m):
        mass.append(derivative_along(gradient, rest, _unit(m, k))[1])
    return ProjectedEquations(np.array(mass, dtype=object).reshape(m, m), rhs)


def _unit(n: int, k: int) -> list[int]:
    return [1 if i == k else 0 for i in range(n)]


def _gradient(function: Callable[[Any], Any], n: int) -> Callable[[Any], np.ndarray]:
    """The gradient of a function of n scalars, which may be duals."""

    def gradient(x: Any) -> np.ndarray:
        rates = []
        for k in range(n):
            seeds = np.empty(n, dtype=object)
            seeds[:] = [SecondOrder(a, 1 if i == k else 0) for i, a in enumerate(x)]
            rates.append(values_and_derivatives(function(seeds), SecondOrder)[1].item())
        return np.array(rates, dtype=object)

    return gradient


def by_newton_euler(state: SymbolicState) -> ProjectedEquations:
    """The recursion of Newton and Euler over the links: H e_k and h from efforts that motions ask for."""
    tree = state.tree
    bias = rnea(tree, state.q, state.v, state.v_rate)
    still = Tree(tree.links, tree.placements, tree.rigid_bodies, np.zeros(3, int), tree.nq, tree.nv)
    columns = [rnea(still, state.q, np.zeros(tree.nv, int), c) for c in state.V.T]
    mass = symmetric_product(state.V, np.stack(columns, axis=1))
    return ProjectedEquations(mass, state.V.T @ (state.efforts - bias))
