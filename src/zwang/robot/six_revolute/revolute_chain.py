"""A chain of six revolute joints, T = B_0 Z(t_1) B_1 Z(t_2) ... Z(t_6) B_6, with Z rotations about z.

Poses are homogeneous matrices (..., 4, 4), so that many joint angles are evaluated at once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from zwang.constraint.hard import acting_constraints
from zwang.errors import DescriptionError
from zwang.mechanism.constraints import JointCoupling
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.tree import Link

JOINTS = 6
NEWTON_ITERATIONS = 30
SMALLEST_SINGULAR_VALUE = 1e-10  # of the Jacobian, relative to the largest; smaller ones count as zero


@dataclass(frozen=True)
class RevoluteChain:
    """Six revolute joints. B (7, 4, 4): the constant poses between them. coordinates: the numbers of their
    coordinates in q. reference (6,): the coordinates at t = 0.
    """

    B: np.ndarray
    coordinates: tuple[int, ...]
    reference: np.ndarray

    @property
    def length(self) -> float:
        """The sum of the distances between neighbouring joint frames [m]."""
        return float(np.linalg.norm(self.B[:, :3, 3], axis=1).sum())

    def scaled(self, factor: float) -> RevoluteChain:
        """The chain with all lengths multiplied by a factor."""
        B = self.B.copy()
        B[:, :3, 3] *= factor
        return RevoluteChain(B, self.coordinates, self.reference)

    def pose(self, t: np.ndarray) -> np.ndarray:
        """T (..., 4, 4) at the angles t (..., 6)."""
        return self._poses(t)[-1]

    def jacobian(self, t: np.ndarray) -> np.ndarray:
        """J (..., 6, 6) of the last frame, linear rows first, in world axes."""
        *joints, end = self._poses(t)
        columns = []
        for frame in joints:
            axis, arm = frame[..., :3, 2], end[..., :3, 3] - frame[..., :3, 3]
            columns.append(np.concatenate([np.cross(axis, arm), axis], axis=-1))
        return np.stack(columns, axis=-1)

    def _poses(self, t: np.ndarray) -> list[np.ndarray]:
        """The frames of the joints before their rotation, and the last frame."""
        T, found = np.broadcast_to(self.B[0], (*t.shape[:-1], 4, 4)), []
        for k in range(JOINTS):
            found.append(T)
            T = T @ about_z(t[..., k]) @ self.B[k + 1]
        return [*found, T]

    def refined(self, t: np.ndarray, T: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Angles (N, 6) after Newton's method for the pose T, and their residuals (N,) [m, rad].

        Where the Jacobian is singular its pseudo-inverse is used.
        """
        for _ in range(NEWTON_ITERATIONS):
            e = pose_error(self.pose(t), T)
            J = self.jacobian(t)
            step = (np.linalg.pinv(J, rcond=SMALLEST_SINGULAR_VALUE) @ e[..., None])[..., 0]
            size = np.abs(step).max(axis=-1, keepdims=True)
            t = t + step * np.minimum(1.0, 0.3 / np.maximum(size, 1e-300))
            if size.max(initial=0.0) < 1e-14:
                break
        return t, np.linalg.norm(pose_error(self.pose(t), T), axis=-1)


def about_z(t: np.ndarray | float) -> np.ndarray:
    """Rotations (..., 4, 4) about the z axis by the angles t (...)."""
    t = np.asarray(t, dtype=float)
    Z = np.zeros((*t.shape, 4, 4))
    Z[..., 0, 0] = Z[..., 1, 1] = np.cos(t)
    Z[..., 1, 0] = np.sin(t)
    Z[..., 0, 1] = -Z[..., 1, 0]
    Z[..., 2, 2] = Z[..., 3, 3] = 1
    return Z


def inverse_pose(T: np.ndarray) -> np.ndarray:
    """T^-1 (..., 4, 4)."""
    R = np.swapaxes(T[..., :3, :3], -1, -2)
    return homogeneous(R, -(R @ T[..., :3, 3:])[..., 0])


def homogeneous(R: np.ndarray, p: np.ndarray) -> np.ndarray:
    """The matrix (..., 4, 4) of the pose (R, p)."""
    T = np.zeros((*p.shape[:-1], 4, 4))
    T[..., :3, :3], T[..., :3, 3], T[..., 3, 3] = R, p, 1
    return T


def pose_error(T: np.ndarray, target: np.ndarray) -> np.ndarray:
    """p_d - p and the rotation vector of R_d R^T, (..., 6), in world axes; the latter by its sine."""
    difference = target[..., :3, :3] @ np.swapaxes(T[..., :3, :3], -1, -2)
    w = np.stack(
        [
            difference[..., 2, 1] - difference[..., 1, 2],
            difference[..., 0, 2] - difference[..., 2, 0],
            difference[..., 1, 0] - difference[..., 0, 1],
        ],
        axis=-1,
    )
    # 1 + 2 cos(angle) is the trace: half a revolution is an error, too
    cosine = np.clip((np.trace(difference, axis1=-2, axis2=-1) - 1) / 2, -1.0, 1.0)
    away = np.where(cosine[..., None] < 0, np.sign(w + 1e-300) * (1 - cosine[..., None]), 0.0)
    return np.concatenate([target[..., :3, 3] - T[..., :3, 3], w / 2 + away], axis=-1)


def revolute_chain(m: Mechanism, frame: str) -> RevoluteChain:
    """The chain of the joints that carry a frame.

    Raises UnknownNameError for an unknown frame, and DescriptionError unless six revolute joints carry it,
    none of which a coupling or loop restricts.
    """
    placement = m.tree.placement(frame)
    links = [m.tree.links[i] for i in m.tree.path(placement.link)]
    kinds = [link.joint.kind for link in links]
    if kinds != ["revolute"] * JOINTS:
        raise DescriptionError(
            f"frame {frame!r} is carried by {len(links)} joints ({', '.join(kinds) or 'none'}); all "
            "solutions are found for six revolute joints; use solve_ik"
        )
    names = {index.name for index in m.joints for link in links if index.q.start == link.q.start}
    for c in acting_constraints(m):
        joined = {c.joint, c.to} if isinstance(c, JointCoupling) else names
        if joined & names:
            raise DescriptionError(
                f"the constraint {c.name!r} restricts the joints of frame {frame!r}; use solve_ik, or remove "
                "it with mechanism.replace(constraints=...)"
            )
    axes = [_turned_to(np.array(link.joint.axis, dtype=float)) for link in links]
    poses = [_pose_of(link) for link in links]
    end = homogeneous(np.array(placement.R, dtype=float), np.array(placement.p, dtype=float))
    B = [poses[0] @ axes[0]]
    B += [inverse_pose(axes[k]) @ poses[k + 1] @ axes[k + 1] for k in range(JOINTS - 1)]
    B.append(inverse_pose(axes[-1]) @ end)
    reference = np.array([float(link.reference) for link in links])
    return RevoluteChain(np.array(B), tuple(link.q.start for link in links), reference)


def _pose_of(link: Link) -> np.ndarray:
    return homogeneous(np.array(link.R, dtype=float), np.array(link.p, dtype=float))


def _turned_to(axis: np.ndarray) -> np.ndarray:
    """A rotation (4, 4) whose z axis is this unit vector."""
    other = np.eye(3)[np.argmin(np.abs(axis))]
    x = np.cross(other, axis)
    x /= np.linalg.norm(x)
    return homogeneous(np.stack([x, np.cross(axis, x), axis], axis=1), np.zeros(3))
