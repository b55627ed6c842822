"""The motions that couples and loops leave to a mechanism: v = B u."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from zwang.errors import DescriptionError, StateError
from zwang.kinematics.poses import link_poses
from zwang.mechanism.mechanism import Mechanism
from zwang.robot.independent_coordinates import IndependentCoordinates, coordinates_for
from zwang.robot.levenberg_marquardt import CONVERGED, Problem, Settings, errors_of, rows_of, search
from zwang.robot.loop_constraints import loop_constraints_for
from zwang.robot.sampling import random_configurations

RANK = 1e-9  # a row of the loops below this part of the largest restricts nothing
CLOSED = 1e-6  # [m, rad]
TRIES = 10  # random starts for each configuration with closed loops


@dataclass(frozen=True)
class VelocityTransformation:
    """The speeds of some joints, as far as couples of constant slope and loops leave them free.

    problem: the loops, as a problem of inverse kinematics without tasks.
    """

    coordinates: IndependentCoordinates
    problem: Problem

    @property
    def has_loops(self) -> bool:
        return self.problem.loops is not None

    def basis(self, q: np.ndarray) -> np.ndarray:
        """B (nv, n) with v = B u; with loops orthonormal, and (..., nv, n) for q (..., nq).

        Raises StateError if q does not close the loops, or if the loops leave different freedom at different q.
        """
        B = speeds_matrix(self.coordinates)
        if not self.has_loops:
            return B
        bases = [self._of_loops(row, B) for row in q.reshape(-1, q.shape[-1])]
        if len({basis.shape for basis in bases}) > 1:
            raise StateError(
                "the loops leave different numbers of motions free at these q; take them one at a time"
            )
        return np.array(bases).reshape(*q.shape[:-1], *bases[0].shape)

    def _of_loops(self, q: np.ndarray, B: np.ndarray) -> np.ndarray:
        poses = link_poses(self.coordinates.tree, q)
        opening = np.abs(np.asarray(errors_of(self.problem, poses, q, ()).e, dtype=float)).max()
        if opening > CLOSED:
            raise StateError(
                f"q leaves a loop open by {opening:.3g} m or rad; close it first, with solve_ik, equilibrium or assemble"
            )
        A = np.asarray(rows_of(self.problem, poses, q), dtype=float)
        return np.linalg.qr(B @ null_space(A))[0]


def velocity_transformation(m: Mechanism, frames: Sequence[str], joints: Sequence[str] | None) -> VelocityTransformation:
    """The motions of the joints, or of those named, that move these frames. Raises DescriptionError for joints of loops."""
    loops, bodies = loop_constraints_for(m, tuple(frames))
    if loops is not None and joints is not None:
        raise DescriptionError(
            "joints cannot be picked where the frame is carried by a closed loop: leave joints out"
        )
    coordinates = coordinates_for(m, bodies, joints)
    return VelocityTransformation(coordinates, Problem((), coordinates, 1.0, loops, bounded=False))


def samples(m: Mechanism, motions: VelocityTransformation, count: int) -> np.ndarray:
    """Random configurations (n, nq), n up to `count`, with closed loops. Raises StateError if the loops never close."""
    if not motions.has_loops:
        return random_configurations(m, count)
    found = []
    for start in random_configurations(m, TRIES * count):
        end = search(motions.problem, start, [], Settings(1e-9, 1e-9, 50.0, 1.0))
        if end.status == CONVERGED:
            found.append(end.q)
        if len(found) == count:
            break
    if not found:
        raise StateError(
            f"the loops of mechanism {m.name!r} did not close from {TRIES * count} random starts"
        )
    return np.array(found, dtype=float)


def speeds_matrix(c: IndependentCoordinates) -> np.ndarray:
    """B (nv, free) with v = B u. Raises DescriptionError for a couple whose slope is not constant."""
    for tie in c.ties:
        if any(float(x) != 0 for x in tie.coefficients[2:]):
            raise DescriptionError(
                "a joint is coupled by a polynomial: this analysis knows couples of constant slope only"
            )
    return np.asarray(c.columns(np.eye(c.tree.nv), np.zeros(c.tree.nq)), dtype=float)


def null_space(A: np.ndarray) -> np.ndarray:
    """An orthonormal basis (n, k) of what A (m, n) maps to zero."""
    if not len(A):
        return np.eye(A.shape[1])
    _, s, Vt = np.linalg.svd(A)
    return Vt[int((s > RANK * max(s[0], 1e-300)).sum()) :].T
