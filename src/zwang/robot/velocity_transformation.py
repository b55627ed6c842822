"""The velocity transformation v = B u of joint couplings and loop constraints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from zwang.errors import DescriptionError, StateError
from zwang.kinematics.poses import link_poses
from zwang.mechanism.lengths import displacement_sizes, largest_length, tolerance_factor
from zwang.mechanism.mechanism import Mechanism
from zwang.robot.independent_coordinates import IndependentCoordinates, coordinates_for
from zwang.robot.inverse_kinematics.levenberg_marquardt import (
    CONVERGED,
    Problem,
    Settings,
    error_jacobian,
    errors_of,
    levenberg_marquardt,
    loop_sizes,
)
from zwang.robot.loop_constraints import loop_constraints_for
from zwang.robot.sampling import random_configurations

RANK = (
    1e-5  # singular values below this fraction of the largest count as zero: redundant loops have some where
)
# the configuration closes them to `CLOSURE_TOLERANCE`
CLOSURE_TOLERANCE = 1e-6  # of the sizes of the rows
SAMPLE_TOLERANCES = 1e-12, 1e-9  # the same: redundant loops of rounded numbers may not close to the first
STARTS_PER_SAMPLE = 10  # random starts for each configuration that satisfies the loop constraints


@dataclass(frozen=True)
class VelocityTransformation:
    """The velocity transformation v = B(q) u that satisfies couplings and loop constraints.

    coordinates: the independent coordinates. problem: the loop constraints as a problem without tasks.
    """

    coordinates: IndependentCoordinates
    problem: Problem

    @property
    def has_loops(self) -> bool:
        return self.problem.loops is not None

    def basis(self, q: np.ndarray) -> np.ndarray:
        """B (..., nv, n) with v = B u at q (..., nq); with loop constraints B is orthonormal.

        Raises StateError if q violates the loop constraints, or if their rank differs between configurations.
        """
        B = np.moveaxis(self.coordinates.basis(q.reshape(-1, q.shape[-1]).T), -1, 0).astype(float)
        if not self.has_loops:
            return B.reshape(*q.shape[:-1], *B.shape[1:])
        bases = [self._with_loops(*row) for row in zip(q.reshape(-1, q.shape[-1]), B, strict=True)]
        if len({basis.shape for basis in bases}) > 1:
            raise StateError(
                "the loop constraints leave different numbers of degrees of freedom at these configurations; "
                "pass the configurations one by one"
            )
        return np.array(bases).reshape(*q.shape[:-1], *bases[0].shape)

    def basis_derivative(self, q: np.ndarray) -> np.ndarray:
        """dB (..., nv, n, n) at q (..., nq): the derivatives of B along the independent velocities, without
        loop constraints.
        """
        dB = np.moveaxis(self.coordinates.basis_derivative(q.reshape(-1, q.shape[-1]).T), -1, 0)
        return dB.reshape(*q.shape[:-1], *dB.shape[1:]).astype(float)

    def _with_loops(self, q: np.ndarray, B: np.ndarray) -> np.ndarray:
        """An orthonormal basis of the velocities B u with A B u = 0, A the loop Jacobian."""
        rows = rows_of_loops(self.problem, q)
        if rows.violation > CLOSURE_TOLERANCE:
            raise StateError(
                f"q violates a loop, coupling or formula by {np.abs(rows.g).max():.3g} m or rad; "
                "satisfy it first, with solve_ik or equilibrium, or one of hard constraints with assemble"
            )
        return np.linalg.qr(B @ rows.null_space)[0]


class LoopRows(NamedTuple):
    """The rows of the loop constraints of a problem without tasks: violations g (k,), Jacobian A (k, free),
    the sizes and the factors of tolerances (k,) of the rows, and the sizes of the independent displacements
    (free,).
    """

    g: np.ndarray
    A: np.ndarray
    sizes: np.ndarray
    tolerances: np.ndarray
    displacements: np.ndarray

    @property
    def violation(self) -> float:
        """The largest violation relative to the size of its row for tolerances, 0 without loops."""
        return float((np.abs(self.g) / self.tolerances).max(initial=0))

    @property
    def null_space(self) -> np.ndarray:
        """An orthonormal basis (free, n) of the displacements u with A u = 0, whose rank does not depend on
        the unit of length.
        """
        return np.linalg.qr(self.displacements[:, None] * null_space(self._scaled))[0]

    @property
    def correction(self) -> np.ndarray:
        """The smallest displacement (free,) that removes the violations to first order."""
        return -self.displacements * (np.linalg.pinv(self._scaled, rcond=RANK) @ (self.g / self.sizes))

    @property
    def _scaled(self) -> np.ndarray:
        """A in units of the sizes."""
        return self.A * self.displacements / self.sizes[:, None]


def rows_of_loops(problem: Problem, q: np.ndarray) -> LoopRows:
    """The rows of the loop constraints of a problem without tasks at q (nq,)."""
    free = list(problem.coordinates.free)
    if problem.loops is None:
        none = np.zeros(0)
        return LoopRows(none, np.zeros((0, len(free))), none, none, np.ones(len(free)))
    poses = link_poses(problem.coordinates.tree, q)
    sizes, tolerances = loop_sizes(problem, poses, q)
    displacements = np.array(displacement_sizes(problem.loops.mechanism), dtype=float)
    return LoopRows(
        -np.asarray(errors_of(problem, poses, q, ()).e, dtype=float),
        np.asarray(error_jacobian(problem, poses, q), dtype=float),
        sizes.astype(float),
        tolerances.astype(float),
        displacements[free],
    )


def velocity_transformation(
    m: Mechanism, frames: Sequence[str], joints: Sequence[str] | None
) -> VelocityTransformation:
    """The velocity transformation of the joints that move these frames, or of those named.

    Raises DescriptionError if joints are named and a loop, a formula or a further coupling restricts a frame.
    """
    loops, bodies = loop_constraints_for(m, tuple(frames))
    if loops is not None and joints is not None:
        raise DescriptionError(
            "joints cannot be selected where a loop, a formula or a further coupling restricts the frame; "
            "omit joints"
        )
    coordinates = coordinates_for(m, bodies, joints)
    return VelocityTransformation(
        coordinates, Problem((), coordinates, float(largest_length(m)), loops, bounded=False)
    )


def samples(m: Mechanism, transformation: VelocityTransformation, count: int) -> np.ndarray:
    """Random configurations (n, nq), n up to `count`, that satisfy the loop constraints.

    Raises StateError if the loops close from none of the random starts.
    """
    if not transformation.has_loops:
        return random_configurations(m, count)
    starts = random_configurations(m, STARTS_PER_SAMPLE * count)
    length = tolerance_factor(largest_length(m), 0)
    for tolerance in SAMPLE_TOLERANCES:
        settings, found = Settings(tolerance * length, tolerance, 50.0, 1.0), []
        for start in starts:
            end = levenberg_marquardt(transformation.problem, start, [], settings)
            if end.status == CONVERGED:
                found.append(end.q)
            if len(found) == count:
                break
        if found:
            return np.array(found, dtype=float)
    raise StateError(
        f"the loops of mechanism {m.name!r} did not close from {STARTS_PER_SAMPLE * count} random starts"
    )


def null_space(A: np.ndarray) -> np.ndarray:
    """An orthonormal basis (n, k) of the null space of A (m, n), by singular value decomposition."""
    if not len(A):
        return np.eye(A.shape[1])
    _, s, Vt = np.linalg.svd(A)
    return Vt[int((s > RANK * max(s[0], 1e-300)).sum()) :].T
