"""The result of a solver, and its residual in the Karush-Kuhn-Tucker (KKT) conditions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from zwang.algebra.norms import max_abs, norm
from zwang.constraint.rows import Cone, Rows, scalar_array
from zwang.dynamics.gauss import GaussProblem
from zwang.scalar import MutableArray, divide, logical_not, logical_or, maximum, where
from zwang.solver.cones import projected

SMALLEST_SCALE = 1e-37  # which single precision represents, too


class Solution(NamedTuple):
    """Solution of Gauss's problem: acceleration (nv,), forces of the rows (n,), number of iterations, and
    convergence.

    converged: whether the solver reached its tolerance. inconsistent: whether hard rows contradict each
    other, so that no acceleration satisfies them all. dependent: whether the independent velocities of a
    coordinate reduction are dependent in this state. inaccurate: whether the acceleration still changed by
    too much when the iteration limit was reached; None means that every solution that has not converged is
    inaccurate. row_status: the status of every block of rows, from which the next solution is warm-started,
    or None where a solver does not report it (see `warm_start`). row_force: the forces of all rows, those of
    groups after the n others, or None where there are no groups. stagnated: whether a converged solver
    terminated because rounding prevented further progress, before it reached its tolerance. undetermined:
    whether rigid friction admits no acceleration, or several ones, at a contact that slides or would have to;
    the solution has then not converged. overfull: whether more contacts are active than the solver has
    memory for. near_change: of a solution with hard inequalities, the function `hard_rows.NearChange`.
    """

    acceleration: np.ndarray
    force: np.ndarray
    iterations: Any
    converged: Any
    inconsistent: Any = False
    dependent: Any = False
    inaccurate: Any = None
    row_status: MutableArray | None = None
    stagnated: Any = False
    row_force: MutableArray | None = None
    undetermined: Any = False
    overfull: Any = False
    near_change: Callable[..., Any] | None = None

    def force_of(self, i: Any) -> Any:
        """The force of row i, where the rows of groups follow the others."""
        return self.force[i] if self.row_force is None else self.row_force[i]

    @property
    def failed(self) -> Any:
        """Whether the acceleration must not be used."""
        failed = logical_not(self.converged) if self.inaccurate is None else self.inaccurate
        return logical_or(failed, self.overfull)


def kkt_residual(problem: GaussProblem, rows: Rows, a: Any, force: Any) -> Any:
    """Relative residual of (acceleration, force) in the KKT conditions, the larger of two numbers.

    The first is the residual of the force balance M (a - a_free) = J^T f, relative to the largest
    generalised force in it. The second is the residual of the force law, |f - P(f - w / (A + R))| relative
    to the largest force, where P is the projection onto the admissible forces, w = J a - aref + R f the
    residual of the rows, and A their inverse weight (within a cone that of the normal row over friction^2).
    The normal residual of a hard cone is increased by the slip speed, as in De Saxce's formulation of
    Coulomb's law (see `hard_contact`).
    """
    smooth_force, constraint_force = problem.M @ (np.array(a) - problem.a_free), rows.J.T @ force
    scale = maximum(max_abs(problem.M @ problem.a_free), max_abs(constraint_force))
    # stationarity: M (a - a_free) = J^T f
    balance = max_abs(smooth_force - constraint_force) / maximum(scale, SMALLEST_SCALE)
    if not len(rows):
        return balance
    # force law: f = P(f - (J a - aref + R f) / (A + R))
    residual = rows.J @ a - rows.aref + rows.R * force
    for cone in rows.cones:
        if rows.hard[cone.start]:
            residual[cone.start] = residual[cone.start] + slip_speed(cone, residual)
    projection_error = force - projected(rows, force - residual * _projection_steps(rows))
    return maximum(balance, max_abs(projection_error) / maximum(max_abs(force), SMALLEST_SCALE))


def row_costs(rows: Rows, a: Any, force: Any) -> np.ndarray:
    """Contribution (n,) of every row to the cost, s(y) = -(y f + R f^2 / 2) with y = J a - aref; zero for a
    satisfied hard row.
    """
    y = rows.J @ np.array(a) - rows.aref
    return -(y * force + rows.R * force * force / 2)


def slip_speed(cone: Cone, y: Any) -> Any:
    """|(friction_j y_j)| over the tangential rows of a cone: the weighted slip of its contact."""
    return norm(mu * x for mu, x in zip(cone.friction, y[cone.start + 1 : cone.stop], strict=True))


def _projection_steps(rows: Rows) -> np.ndarray:
    """Step length 1 / (A + R) of every row; within a cone that of the normal row times friction^2, one step
    in the coordinates in which the cone is round. Zero for a row with A + R = 0, whose force moves nothing.
    """
    sums = rows.inverse_weight + rows.R
    steps = [where(x > 0, divide(1, where(x > 0, x, 1.0)), 0.0) for x in sums]
    for cone in rows.cones:
        normal = steps[cone.start]
        steps[cone.start + 1 : cone.stop] = [normal * mu * mu for mu in cone.friction]
    return scalar_array(steps)
