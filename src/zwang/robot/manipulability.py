"""How well a frame can be moved, held and accelerated at a configuration: manipulability and its ellipsoids.

With J = U S V^T of a task, sigma the singular values: joint speeds of length 1 give task speeds in the ellipsoid with axes U and
lengths sigma; joint torques of length 1 balance task forces in the one with the same axes and lengths 1 / sigma. Lengths and
angles have no common measure: for a pose, rows of position are counted per `length`, 1 m if nothing is said, and every number that mixes them depends
on it. Source: seed 004, Review; Yoshikawa, Int. J. Robotics Research 4(2) (1985) 3; Salisbury, Craig, IJRR 1(1) (1982) 4.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from zwang.api import validation
from zwang.errors import ShapeError
from zwang.mechanism.declared import checked_arguments
from zwang.mechanism.mechanism import Mechanism
from zwang.robot.task_space import TaskSpace, describe, task_space

RANK = 1e-12  # a singular value below this part of the largest is zero


@dataclass(frozen=True)
class ManipulabilityEllipsoid:
    """Axes (..., 6 or 3, k), one a column, in the task's full coordinates, and half lengths (..., k), the largest first."""

    axes: np.ndarray
    lengths: np.ndarray

    @property
    def volume_factor(self) -> Any:
        """The product of the half lengths: the volume but for a constant of the dimension."""
        return np.prod(self.lengths, axis=-1)


@dataclass(frozen=True)
class Manipulability:
    """What a frame can do at q; q (nq,), or (..., nq) for a batch, whose axes then come first in all arrays.

    jacobian (m, n): of the task's m directions, in which the frame can ever move, by the speeds that move it. singular_values
    (min(m, n),), the largest first.
    """

    mechanism: Mechanism
    space: TaskSpace
    q: np.ndarray
    jacobian: np.ndarray

    @cached_property
    def _svd(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        U, s, Vt = np.linalg.svd(self.jacobian, full_matrices=False)
        return U, s, Vt

    @property
    def singular_values(self) -> np.ndarray:
        return self._svd[1]

    @property
    def measure(self) -> Any:
        """mu = sigma_1 ... sigma_m = sqrt det J J^T; with fewer joints than directions, sqrt det J^T J."""
        return _plain(np.prod(self.singular_values, axis=-1))

    @property
    def determinant(self) -> Any:
        """det J with its sign, of a square J; |det J| is the measure. Raises ValueError for another shape."""
        if self.jacobian.shape[-1] != self.jacobian.shape[-2]:
            raise ValueError(
                f"the Jacobian is {self.jacobian.shape[-2:]}: only a square one has a determinant"
            )
        return _plain(np.linalg.det(self.jacobian))

    @property
    def condition(self) -> Any:
        """kappa = sigma_max / sigma_min, at least 1; infinite where it is singular."""
        s = self.singular_values
        with np.errstate(divide="ignore"):
            return _plain(np.where(self.rank < s.shape[-1], np.inf, s[..., 0] / s[..., -1]))

    @property
    def dexterity(self) -> Any:
        """sigma_min / sigma_max, between 0 and 1 (isotropic)."""
        s = self.singular_values
        return _plain(s[..., -1] / s[..., 0])

    @property
    def rank(self) -> Any:
        """The number of directions in which the frame can move here."""
        s = self.singular_values
        return _plain((s > RANK * s[..., :1]).sum(axis=-1))

    @property
    def redundancy(self) -> Any:
        """How many independent joint speeds leave the frame at rest."""
        return _plain(self.jacobian.shape[-1] - np.asarray(self.rank))

    @property
    def velocity_ellipsoid(self) -> ManipulabilityEllipsoid:
        """The task speeds that joint speeds of length 1 give: half lengths sigma [m/s, rad/s]."""
        U, s, _ = self._svd
        return ManipulabilityEllipsoid(self.space.embedded(U), s)

    @property
    def force_ellipsoid(self) -> ManipulabilityEllipsoid:
        """The forces that joint torques of length 1 balance: half lengths 1 / sigma, infinite along lost directions."""
        U, s, _ = self._svd
        with np.errstate(divide="ignore"):
            lengths = np.where(s > RANK * s[..., :1], 1 / s, np.inf)
        return ManipulabilityEllipsoid(self.space.embedded(U[..., ::-1]), lengths[..., ::-1])

    @property
    def velocity_error_bounds(self) -> tuple[Any, Any]:
        """(1 / sigma_max, 1 / sigma_min): between these lies |error of joint speeds| / |error of task speeds|."""
        s = self.singular_values
        with np.errstate(divide="ignore"):
            return _plain(1 / s[..., 0]), _plain(np.where(self.rank < s.shape[-1], np.inf, 1 / s[..., -1]))

    def inertia_ellipsoid(self) -> ManipulabilityEllipsoid:
        """Asada's: half lengths 1 / sqrt(apparent mass), along axes in which a push at the frame meets no other mass.

        The apparent mass is (J H^-1 J^T)^-1. Source: Asada, J. Dynamic Systems, Measurement and Control 105 (1983) 131.
        """
        H, J = (
            self.space.mass_matrix(self.mechanism, self.q),
            self.space.dynamic_jacobian(self.mechanism, self.q),
        )
        inverse = J @ np.linalg.solve(H, J.swapaxes(-1, -2))
        values, axes = np.linalg.eigh(inverse)
        lengths = np.sqrt(np.maximum(values[..., ::-1], 0))
        return ManipulabilityEllipsoid(self.space.embedded(axes[..., ::-1]), lengths)

    def acceleration_ellipsoid(self, torque_limits: Any = None) -> ManipulabilityEllipsoid:
        """The frame's accelerations from rest, by joint torques of length 1, or of length 1 measured by `torque_limits` (nv,).

        Beyond what gravity gives: U and the singular values of J H^-1 B^T diag(limits), v = B u. Source: Yoshikawa, J. Robotic
        Systems 2 (1985) 113, the dynamic manipulability ellipsoid.
        """
        nv, B = self.mechanism.nv, self.space.every.basis(self.q)
        limits = np.ones(nv) if torque_limits is None else validation.array(torque_limits, "torque_limits")
        if limits.shape != (nv,):
            raise ShapeError(f"torque_limits must have the shape ({nv},); its shape is {limits.shape}")
        H, J = (
            self.space.mass_matrix(self.mechanism, self.q),
            self.space.dynamic_jacobian(self.mechanism, self.q),
        )
        reach = np.linalg.solve(H, J.swapaxes(-1, -2)).swapaxes(-1, -2) @ B.swapaxes(-1, -2) * limits
        U, s, _ = np.linalg.svd(reach, full_matrices=False)
        return ManipulabilityEllipsoid(self.space.embedded(U), s)

    def gradient(self) -> np.ndarray:
        """d mu / dq (..., nv) along the speeds: mu tr(J^+ dJ); nan where the frame is singular, as mu has an edge there."""
        dJ = self.space.jacobian_derivative(self.mechanism, self.q)
        U, s, Vt = self._svd
        with np.errstate(divide="ignore", invalid="ignore"):
            inverse = np.einsum("...kn,...k,...mk->...nm", Vt, 1 / s, U)
            change = np.asarray(self.measure)[..., None] * np.einsum("...nm,...mni->...i", inverse, dJ)
        gradient = np.zeros((*change.shape[:-1], self.mechanism.nv))
        gradient[..., list(self.space.motions.coordinates.free)] = change
        return np.where(np.asarray(self.rank < s.shape[-1])[..., None], np.nan, gradient)

    def lost_directions(self, nearness: float = 1e-6) -> np.ndarray:
        """The directions (6 or 3, k), in the task's full coordinates, in which the frame cannot move at one q.

        Those with a singular value up to `nearness` times the largest. Raises ValueError for a batch.
        """
        self._one("lost_directions")
        U, s, _ = np.linalg.svd(self.jacobian)
        s = np.concatenate([s, np.zeros(U.shape[-1] - len(s))])
        return self.space.embedded(U[:, s <= nearness * s[0]])

    def null_space(self) -> np.ndarray:
        """An orthonormal basis (nv, k) of the joint speeds that leave the frame at rest at one q (of joints that move it)."""
        self._one("null_space")
        _, s, Vt = np.linalg.svd(self.jacobian)
        rank = int((s > RANK * s[0]).sum())
        return self.space.motions.basis(self.q) @ Vt[rank:].T

    def singularity(self, nearness: float = 1e-3) -> str:
        """One sentence: how far from singular it is, and which motion is lost or hard."""
        self._one("singularity")
        s = self.singular_values
        ratio = float(s[-1] / s[0]) if s[0] > 0 else 0.0
        if ratio > nearness:
            return f"regular: the hardest direction is {ratio:.3g} times as easy as the easiest one"
        state = "singular" if ratio <= 1e-6 else f"near a singularity (sigma_min / sigma_max = {ratio:.2g})"
        lost = self.lost_directions(max(nearness, 1e-6))
        names = "; ".join(describe(direction, self.space.part) for direction in lost.T)
        return f"{state}: the frame {self.space.frame!r} cannot {names}"

    def _one(self, name: str) -> None:
        if self.q.ndim != 1:
            raise ValueError(f"{name} is for one configuration, not for a batch of shape {self.q.shape[:-1]}")


@checked_arguments()
def manipulability(
    mechanism: Mechanism,
    q: Any,
    frame: str,
    *,
    part: str | None = None,
    axes: Any = "world",
    components: Sequence[str] | None = None,
    joints: Sequence[str] | None = None,
    length: float = 1.0,
    compiled: bool = True,
) -> Manipulability:
    """The manipulability of a frame at q (nq,) or at a batch (..., nq).

    part: "position", "orientation" or "pose"; by default the pose, where there are joints enough for it, else the
    position. axes: "world", "body" (the frame's own) or a rotation (3, 3) whose columns are the axes. components: some of "x y z rx ry rz" instead; by
    default all directions in which the frame can ever move, so that a planar arm's measure is that of the plane.
    joints: names of those that count, by default all. length [m]: what weighs as much as one radian in a pose. Couples and loops
    are respected: with loops, which q must close, speeds of length 1 are those of all joints together.
    Raises UnknownNameError, ShapeError, StateError, ParameterError. Source: seed 004, Review.
    """
    space, q = task_space(mechanism, q, frame, part, axes, components, joints, length, compiled)
    return Manipulability(mechanism, space, q, space.jacobian(mechanism, q))


def _plain(x: Any) -> Any:
    return x.item() if np.ndim(x) == 0 else x
