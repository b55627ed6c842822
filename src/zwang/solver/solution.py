"""What a solver gives, and how far it is from the conditions of Karush, Kuhn and Tucker."""

from __future__ import annotations

from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from zwang.constraint.rows import Cone, Rows, array
from zwang.dynamics.gauss import GaussProblem
from zwang.scalar import MutableArray, absolute, equal, is_zero, logical_not, maximum, sqrt
from zwang.solver.cones import projected

SMALLEST = 1e-300
DOUBLE = 1e-12  # relative differences that double precision tells apart, and single does not


class Solution(NamedTuple):
    """The acceleration (nv,), the rows' forces (n,), how many iterations it took, and whether these converged.

    contradicted: whether exact rows want what no acceleration gives. dependent: whether essential unknowns are none in this state.
    unsettled: whether the acceleration still changed much when the iterations were over; by default, whether they did not converge.
    answers: how the rows answered, to begin a next solution with, where a solver tells: see `memory`.
    """

    acceleration: np.ndarray
    force: np.ndarray
    iterations: Any
    converged: Any
    inconsistent: Any = False
    dependent: Any = False
    unsettled: Any = None
    row_status: MutableArray | None = None

    @property
    def failed(self) -> Any:
        """Whether the acceleration is not to be used."""
        return logical_not(self.converged) if self.unsettled is None else self.unsettled


def is_single_precision(x: Any) -> Any:
    """Whether x is of a precision that does not tell apart what double precision does, or 0."""
    return equal(x + DOUBLE * x, x)


def max_abs(values: Any) -> Any:
    """The largest absolute value, 0 of none."""
    return reduce(maximum, [absolute(x) for x in values], 0.0)


def kkt_residual(problem: GaussProblem, rows: Rows, a: Any, force: Any) -> Any:
    """How far (a, force) is from the solution, as a relative number: the larger of two.

    Balance: M (a - a_free) - J^T f, against the largest of these efforts. Law: f - P(f - w / (A + R)), P the projection on the
    allowed forces, w = J a - aref + R f what the row still misses, A its weight (in a cone that of the normal, over friction^2);
    against the largest force. A hard cone's normal misses by what slips more: see `hard`.
    """
    effort, push = problem.M @ (np.array(a) - problem.a_free), rows.J.T @ force
    scale = maximum(max_abs(problem.M @ problem.a_free), max_abs(push))
    balance = max_abs(effort - push) / maximum(scale, SMALLEST)
    if not len(rows):
        return balance
    missing = rows.J @ a - rows.aref + rows.R * force
    for cone in rows.cones:
        if is_zero(rows.R[cone.start]):
            missing[cone.start] = missing[cone.start] + slip_speed(cone, missing)
    law = force - projected(rows, force - missing * _steps(rows))
    return maximum(balance, max_abs(law) / maximum(max_abs(force), SMALLEST))


def row_costs(rows: Rows, a: Any, force: Any) -> np.ndarray:
    """What every row adds to Z(a): s(y) = -(y f + R f^2 / 2), y = J a - aref; zero of a row that is hard and holds."""
    y = rows.J @ np.array(a) - rows.aref
    return -(y * force + rows.R * force * force / 2)


def slip_speed(cone: Cone, y: Any) -> Any:
    """|(friction_j y_j)| of a cone's rows: how much its contact slips."""
    return sqrt(
        sum((mu * x) * (mu * x) for mu, x in zip(cone.friction, y[cone.start + 1 : cone.stop], strict=True))
    )


def _steps(rows: Rows) -> np.ndarray:
    """1 / (A + R) of every row; in a cone the normal's, times friction^2: one step in the space where the cone is round."""
    steps = list(1 / (rows.weight + rows.R))
    for cone in rows.cones:
        normal = steps[cone.start]
        steps[cone.start + 1 : cone.stop] = [normal * mu * mu for mu in cone.friction]
    return array(steps)
