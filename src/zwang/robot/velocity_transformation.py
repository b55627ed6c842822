"""The velocity transformation v = B u of joint couplings and loop constraints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from zwang.errors import DescriptionError, StateError
from zwang.kinematics.poses import link_poses
from zwang.mechanism.mechanism import Mechanism
from zwang.robot.independent_coordinates import IndependentCoordinates, coordinates_for
from zwang.robot.inverse_kinematics.levenberg_marquardt import (
    CONVERGED,
    Problem,
    Settings,
    error_jacobian,
    errors_of,
    levenberg_marquardt,
)
from zwang.robot.loop_constraints import loop_constraints_for
from zwang.robot.sampling import random_configurations

RANK = (
    1e-5  # singular values below this fraction of the largest count as zero: redundant loops have some where
)
# the configuration closes them to `CLOSURE_TOLERANCE`
CLOSURE_TOLERANCE = 1e-6  # [m, rad]
SAMPLE_TOLERANCES = 1e-12, 1e-9  # [m, rad]: redundant loops of rounded numbers may not close to the first
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
        """B (nv, n) with v = B u; with loop constraints B is orthonormal, and (..., nv, n) for q (..., nq).

        Raises StateError if q violates the loop constraints, or if their rank differs between configurations.
        """
        B = coupling_matrix(self.coordinates)
        if not self.has_loops:
            return B
        bases = [self._with_loops(row, B) for row in q.reshape(-1, q.shape[-1])]
        if len({basis.shape for basis in bases}) > 1:
            raise StateError(
                "the loop constraints leave different numbers of degrees of freedom at these configurations; "
                "pass the configurations one by one"
            )
        return np.array(bases).reshape(*q.shape[:-1], *bases[0].shape)

    def _with_loops(self, q: np.ndarray, B: np.ndarray) -> np.ndarray:
        """An orthonormal basis of the velocities B u with A B u = 0, A the loop Jacobian."""
        poses = link_poses(self.coordinates.tree, q)
        violation = np.abs(np.asarray(errors_of(self.problem, poses, q, ()).e, dtype=float)).max()
        if violation > CLOSURE_TOLERANCE:
            raise StateError(
                f"q violates a loop, coupling or formula by {violation:.3g} m or rad; "
                "satisfy it first, with solve_ik or equilibrium, or one of hard constraints with assemble"
            )
        A = np.asarray(error_jacobian(self.problem, poses, q), dtype=float)
        return np.linalg.qr(B @ null_space(A))[0]


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
    return VelocityTransformation(coordinates, Problem((), coordinates, 1.0, loops, bounded=False))


def samples(m: Mechanism, transformation: VelocityTransformation, count: int) -> np.ndarray:
    """Random configurations (n, nq), n up to `count`, that satisfy the loop constraints.

    Raises StateError if the loops close from none of the random starts.
    """
    if not transformation.has_loops:
        return random_configurations(m, count)
    starts = random_configurations(m, STARTS_PER_SAMPLE * count)
    for tolerance in SAMPLE_TOLERANCES:
        settings, found = Settings(tolerance, tolerance, 50.0, 1.0), []
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


def coupling_matrix(c: IndependentCoordinates) -> np.ndarray:
    """B (nv, free) with v = B u of the joint couplings.

    Raises DescriptionError for a coupling whose slope is not constant.
    """
    check_linear_couplings(c)
    return np.asarray(c.columns(np.eye(c.tree.nv), np.zeros(c.tree.nq)), dtype=float)


def check_linear_couplings(c: IndependentCoordinates) -> None:
    """Raises DescriptionError for a coupling whose slope is not constant."""
    for coupling in c.couplings:
        if any(float(x) != 0 for x in coupling.coefficients[2:]):
            raise DescriptionError(
                "a joint is coupled by a polynomial; this analysis supports linear couplings only"
            )


def null_space(A: np.ndarray) -> np.ndarray:
    """An orthonormal basis (n, k) of the null space of A (m, n), by singular value decomposition."""
    if not len(A):
        return np.eye(A.shape[1])
    _, s, Vt = np.linalg.svd(A)
    return Vt[int((s > RANK * max(s[0], 1e-300)).sum()) :].T
