"""Oracle: hard equalities A a = b by the null-space method on floats, with rows that may be redundant.

Of all accelerations with A a = b, Gauss's principle selects the one nearest to the free acceleration in the
metric of M. With M = L L^T and the singular values of A L^-T it is found whatever the rank, and redundant
rows share their force as evenly as possible. Source: Luchtenburg, Gauss' principle of least constraint;
Udwadia, Kalaba, Analytical Dynamics (1996), Chapter 5, with the pseudoinverse of A M^-1/2.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from zwang.constraint.rows import Rows
from zwang.dynamics.gauss import GaussProblem

ZERO_ROW = 1e-11  # a row this much smaller than the largest counts as zero
# Singular values below this, relative to the largest, count as zero. In the stages of a step, which lie
# slightly off
# the constraints, the singular values of dependent rows are not smaller than this.
RANK_TOLERANCE = 1e-6


class NullSpaceReduction(NamedTuple):
    """All accelerations with A a = b: a = particular + basis @ z, with the factors that give the rows'
    forces.

    particular (nv,), basis (nv, nv - rank). U, s: the singular vectors and values of A L^-T; whitened: V^T
    L^-1.
    """

    particular: np.ndarray
    basis: np.ndarray
    rank: int
    U: np.ndarray
    s: np.ndarray
    whitened: np.ndarray

    def force(self, problem: GaussProblem, a: np.ndarray, other_force: Any = 0) -> np.ndarray:
        """Forces f (n,) of least norm with A^T f = M (a - a_free) - other_force.

        other_force (nv,): the generalised force of all other rows.
        """
        constraint_force = problem.M @ (a - problem.a_free) - other_force
        within = self.whitened[: self.rank] @ constraint_force  # V^T L^-1 (M (a - a_free) - other_force)
        return self.U[:, : self.rank] @ (within / self.s[: self.rank])


def null_space_reduction(problem: GaussProblem, rows: Rows) -> NullSpaceReduction:
    """Accelerations that satisfy hard equalities, by the singular value decomposition of A L^-T."""
    M, A, b = (np.asarray(x, float) for x in (problem.M, rows.J, rows.aref))
    L = np.linalg.cholesky(M)
    # scale the rows of each constraint by its largest: a row that passes through zero is not scaled up
    sizes = np.linalg.norm(np.linalg.solve(L, A.T), axis=0)
    largest = {
        name: max(size for size, n in zip(sizes, rows.names, strict=True) if n == name) for name in rows.names
    }
    sizes = np.array([largest[name] for name in rows.names])
    sizes = np.where(sizes > ZERO_ROW * sizes.max(initial=0), sizes, 1.0)
    white = np.linalg.solve(L, A.T).T / sizes[:, None]  # A L^-T, scaled
    U, s, Vt = np.linalg.svd(white, full_matrices=True)
    rank = int(np.sum(s > RANK_TOLERANCE * max(s[0], 1e-300))) if len(s) and s[0] > 0.5 else 0
    # particular solution: a_free + L^-T V z with U^T (b - A a_free) = S z
    deviation = b / sizes - white @ (L.T @ problem.a_free)
    z = (U[:, :rank].T @ deviation) / s[:rank]
    particular = problem.a_free + np.linalg.solve(L.T, Vt[:rank].T @ z)
    basis = np.linalg.solve(L.T, Vt[rank:].T)
    # the forces belong to the rows without scaling, A L^-T = diag(sizes) white
    U, s, Vt_ = np.linalg.svd(white * sizes[:, None], full_matrices=False)
    whitened = np.linalg.solve(L, np.eye(len(M)))
    return NullSpaceReduction(particular, basis, rank, U, s, Vt_ @ whitened)
