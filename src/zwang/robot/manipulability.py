"""Manipulability of a frame at a configuration, and its ellipsoids.

With the singular value decomposition J = U S V^T of the task Jacobian: joint velocities of unit norm give
task velocities in the ellipsoid with axes U and half lengths sigma. Joint torques of unit norm balance task
forces in the ellipsoid with the same axes and half lengths 1 / sigma. Lengths and angles have no common
measure: for a pose, positions are divided by the characteristic length, and every number that combines both
depends on it.
Source: Fu, ME331 Robot Modeling and Control, Section 11, "Review"; Yoshikawa, Int. J. Robotics Research 4(2)
(1985) 3; Salisbury, Craig, Int. J. Robotics Research 1(1) (1982) 4.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from zwang.api.arguments import validation
from zwang.deprecation import renamed_arguments, renamed_attributes
from zwang.errors import ShapeError, StateError
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.type_validation import validated_arguments
from zwang.robot.task_space import TaskSpace, describe, task_space

RANK = 1e-12  # singular values below this fraction of the largest count as zero


@dataclass(frozen=True)
class ManipulabilityEllipsoid:
    """An ellipsoid of velocities, forces or accelerations, in the full coordinates of the task.

    axes (..., 6 or 3, k): unit vectors, one in each column. lengths (..., k): the half lengths, largest
    first.
    """

    axes: np.ndarray
    lengths: np.ndarray

    @property
    def volume_factor(self) -> Any:
        """The product of the half lengths (...): the volume, up to a constant of the dimension."""
        return np.prod(self.lengths, axis=-1)


@renamed_attributes(speed_error_bounds="velocity_error_bounds")
@dataclass(frozen=True)
class Manipulability:
    """The manipulability of a frame at q (nq,), or at a batch (..., nq), whose axes come first in all arrays.

    jacobian (m, n): from the n independent velocities that move the frame to the m task directions in which
    it can move at any configuration. space: these directions. singular_values (min(m, n),): largest first.
    """

    mechanism: Mechanism
    space: TaskSpace
    q: np.ndarray
    jacobian: np.ndarray

    def __repr__(self) -> str:
        m, n = self.jacobian.shape[-2:]
        name = f"manipulability of the {self.space.part} of {self.space.frame!r}"
        if self.q.ndim != 1:
            return (
                f"<{name} at configurations of the shape {self.q.shape[:-1]}, {m} directions, {n} velocities>"
            )
        return (
            f"<{name}: measure {self.measure:.4g}, condition number {self.condition:.4g}, rank {self.rank}, "
            f"{m} directions, {n} velocities>"
        )

    @cached_property
    def _svd(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        U, s, Vt = np.linalg.svd(self.jacobian, full_matrices=False)
        return U, s, Vt

    @property
    def singular_values(self) -> np.ndarray:
        """The singular values sigma of the Jacobian, largest first."""
        return self._svd[1]

    @property
    def measure(self) -> Any:
        """Manipulability measure mu = sigma_1 ... sigma_m = sqrt det J J^T, or sqrt det J^T J for m > n."""
        return _plain(np.prod(self.singular_values, axis=-1))

    @property
    def determinant(self) -> Any:
        """det J, whose absolute value is the measure. Raises ValueError unless J is square."""
        if self.jacobian.shape[-1] != self.jacobian.shape[-2]:
            raise ValueError(
                f"the Jacobian is {self.jacobian.shape[-2:]}: only a square one has a determinant"
            )
        return _plain(np.linalg.det(self.jacobian))

    @property
    def condition(self) -> Any:
        """Condition number kappa = sigma_max / sigma_min, at least 1; infinite at a singularity."""
        s = self.singular_values
        with np.errstate(divide="ignore", invalid="ignore"):
            return _plain(np.where(self.rank < s.shape[-1], np.inf, s[..., 0] / s[..., -1]))

    @property
    def dexterity(self) -> Any:
        """Dexterity index sigma_min / sigma_max, between 0 (singular, also where J = 0) and 1 (isotropic)."""
        s = self.singular_values
        return _plain(s[..., -1] / np.where(s[..., 0] > 0, s[..., 0], 1.0))

    @property
    def rank(self) -> Any:
        """Rank of the Jacobian: the number of directions in which the frame can move at q."""
        s = self.singular_values
        return _plain((s > RANK * s[..., :1]).sum(axis=-1))

    @property
    def redundancy(self) -> Any:
        """Dimension of the null space of the Jacobian."""
        return _plain(self.jacobian.shape[-1] - np.asarray(self.rank))

    @property
    def velocity_ellipsoid(self) -> ManipulabilityEllipsoid:
        """The task velocities that joint velocities of unit norm give: half lengths sigma [m/s, rad/s]."""
        U, s, _ = self._svd
        return ManipulabilityEllipsoid(self.space.in_components(U), s)

    @property
    def force_ellipsoid(self) -> ManipulabilityEllipsoid:
        """The task forces that joint torques of unit norm balance: half lengths 1 / sigma.

        The half length is infinite along singular directions.
        """
        U, s, _ = self._svd
        with np.errstate(divide="ignore"):
            lengths = np.where(s > RANK * s[..., :1], 1 / s, np.inf)
        return ManipulabilityEllipsoid(self.space.in_components(U[..., ::-1]), lengths[..., ::-1])

    @property
    def velocity_error_bounds(self) -> tuple[Any, Any]:
        """Bounds (1 / sigma_max, 1 / sigma_min) of |joint velocity error| / |task velocity error|."""
        s = self.singular_values
        with np.errstate(divide="ignore"):
            return _plain(1 / s[..., 0]), _plain(np.where(self.rank < s.shape[-1], np.inf, 1 / s[..., -1]))

    def inertia_ellipsoid(self) -> ManipulabilityEllipsoid:
        """Asada's inertia ellipsoid: half lengths 1 / sqrt(apparent mass) along the principal axes.

        The apparent mass at the frame is (J M^-1 J^T)^-1.
        Source: Asada, J. Dynamic Systems, Measurement and Control 105 (1983) 131.
        """
        M, J = (
            self.space.mass_matrix(self.mechanism, self.q),
            self.space.full_jacobian(self.mechanism, self.q),
        )
        inverse = J @ np.linalg.solve(M, J.swapaxes(-1, -2))
        values, axes = np.linalg.eigh(inverse)
        lengths = np.sqrt(np.maximum(values[..., ::-1], 0))
        return ManipulabilityEllipsoid(self.space.in_components(axes[..., ::-1]), lengths)

    def acceleration_ellipsoid(self, torque_limits: ArrayLike | None = None) -> ManipulabilityEllipsoid:
        """Dynamic manipulability ellipsoid: accelerations from rest by joint torques of unit norm.

        torque_limits (nv,) [N m, N]: the scale of each torque, by default 1. Gravity is not included. The
        ellipsoid is that of J M^-1 B^T diag(limits) with v = B u.
        Raises ShapeError, and StateError for limits that are negative or not finite.
        Source: Yoshikawa, J. Robotic Systems 2 (1985) 113.
        """
        nv, B = self.mechanism.nv, self.space.full_transformation.basis(self.q)
        limits = (
            np.ones(nv) if torque_limits is None else validation.real_values(torque_limits, "torque_limits")
        )
        if limits.shape != (nv,):
            raise ShapeError(f"torque_limits must have the shape ({nv},); its shape is {limits.shape}")
        if not (np.isfinite(limits) & (limits >= 0)).all():
            raise StateError(f"torque_limits is {limits.tolist()}; give finite numbers that are not negative")
        M, J = (
            self.space.mass_matrix(self.mechanism, self.q),
            self.space.full_jacobian(self.mechanism, self.q),
        )
        scaled = np.linalg.solve(M, J.swapaxes(-1, -2)).swapaxes(-1, -2) @ B.swapaxes(-1, -2) * limits
        U, s, _ = np.linalg.svd(scaled, full_matrices=False)
        return ManipulabilityEllipsoid(self.space.in_components(U), s)

    def gradient(self) -> np.ndarray:
        """Gradient d mu / dq (..., nv) along the generalised velocities: mu tr(J^+ dJ).

        It is nan at a singularity, where mu is not differentiable.
        """
        dJ = self.space.jacobian_derivative(self.mechanism, self.q)
        U, s, Vt = self._svd
        with np.errstate(divide="ignore", invalid="ignore"):
            inverse = np.einsum("...kn,...k,...mk->...nm", Vt, 1 / s, U)
            change = np.asarray(self.measure)[..., None] * np.einsum("...nm,...mni->...i", inverse, dJ)
        gradient = np.zeros((*change.shape[:-1], self.mechanism.nv))
        gradient[..., list(self.space.transformation.coordinates.free)] = change
        return np.where(np.asarray(self.rank < s.shape[-1])[..., None], np.nan, gradient)

    @renamed_arguments(nearness="tolerance")
    def lost_directions(self, tolerance: float = 1e-6) -> np.ndarray:
        """Directions (6 or 3, k), in the full coordinates of the task, in which the frame cannot move at q.

        They are the left singular vectors whose singular value is at most `tolerance` times the largest.
        Raises ValueError for a batch.
        """
        self._require_single("lost_directions")
        U, s, _ = np.linalg.svd(self.jacobian)
        s = np.concatenate([s, np.zeros(U.shape[-1] - len(s))])
        return self.space.in_components(U[:, s <= tolerance * s[0]])

    def null_space(self) -> np.ndarray:
        """Basis (nv, k) of the joint velocities that leave the frame at rest at q.

        Without couplings and loops the basis is orthonormal. Joints that never move the frame are not
        included.
        """
        self._require_single("null_space")
        _, s, Vt = np.linalg.svd(self.jacobian)
        rank = int((s > RANK * s[0]).sum())
        return self.space.transformation.basis(self.q) @ Vt[rank:].T

    @renamed_arguments(nearness="tolerance")
    def singularity(self, tolerance: float = 1e-3) -> str:
        """A sentence on the distance from a singularity and on the directions of lost motion.

        tolerance: of sigma_min / sigma_max, below which the configuration counts as near a singularity.
        Raises ValueError for a batch.
        """
        self._require_single("singularity")
        s = self.singular_values
        ratio = float(s[-1] / s[0]) if s[0] > 0 else 0.0
        if ratio > tolerance:
            return f"regular: sigma_min / sigma_max = {ratio:.3g}"
        state = "singular" if ratio <= 1e-6 else f"near a singularity (sigma_min / sigma_max = {ratio:.2g})"
        lost = self.lost_directions(max(tolerance, 1e-6))
        names = "; ".join(describe(direction, self.space.part) for direction in lost.T)
        return f"{state}: the frame {self.space.frame!r} cannot {names}"

    def _require_single(self, name: str) -> None:
        if self.q.ndim != 1:
            raise ValueError(f"{name} needs one configuration, not a batch of shape {self.q.shape[:-1]}")


@renamed_arguments(length="characteristic_length")
@validated_arguments()
def manipulability(
    mechanism: Mechanism,
    q: ArrayLike,
    frame: str,
    *,
    part: str | None = None,
    axes: str | ArrayLike = "world",
    components: str | Sequence[str] | None = None,
    joints: Sequence[str] | None = None,
    characteristic_length: float = 1.0,
    compiled: bool = True,
) -> Manipulability:
    """Manipulability of a frame, by the singular value decomposition of its Jacobian.

    q: a configuration (nq,) or a batch (..., nq). frame: the name of a frame or body.
    part: "position", "orientation" or "pose"; by default the pose if there are enough joints for it,
    otherwise the position. axes: "world" (default), "body" (those of the frame), or a rotation (3, 3) whose
    columns are the axes. components: instead of a part, some of "x y z rx ry rz". By default all directions
    in which the frame can move at any configuration, so that the measure of a planar arm is that of the
    plane. joints: names of the joints to consider; by default all.
    characteristic_length [m]: weighs positions against angles in a pose, default 1 m.
    compiled: False evaluates on floats.

    Joint couplings, loops and `Holonomic` constraints that act are satisfied. With loops and formulas, which
    must hold at q, joint velocities of unit norm are those of all joints together.
    Raises UnknownNameError, ShapeError, StateError (a loop is open), ParameterError (symbols without values),
    and DescriptionError for a constraint of velocities, or one that depends on the time.
    Source: Fu, ME331 Robot Modeling and Control, Section 11, "Review"; Yoshikawa (1985).
    """
    space, q = task_space(
        mechanism, q, frame, part, axes, components, joints, characteristic_length, compiled
    )
    return Manipulability(mechanism, space, q, space.jacobian(mechanism, q))


def _plain(x: Any) -> Any:
    return x.item() if np.ndim(x) == 0 else x
