"""The problem of Newton's method with the accelerations as unknowns, and the Hessian M + J^T W J."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from zwang.algebra.norms import max_abs
from zwang.constraint.rows import Rows, WarmStart, scalar_array
from zwang.dynamics.gauss import GaussProblem
from zwang.scalar import MutableArray, equal, logical_and, logical_not
from zwang.solver.primal_cost import PrimalCost, RowBlock
from zwang.solver.solution import Solution
from zwang.solver.warm_start import (
    StatusStorage,
    as_warm_start,
    decode_status,
    encode_status,
    status_code,
)

LINE_SEARCH_TOLERANCE = (
    0.01  # of the slope, relative to its initial value, as in MuJoCo; the last step has length 1
)


class _Point(NamedTuple):
    """Accelerations a (nv,), and the residual y of the rows."""

    a: np.ndarray
    y: MutableArray


class _Direction(NamedTuple):
    """A direction p (nv,), and J p."""

    p: np.ndarray
    Jp: MutableArray


class PrimalForm(NamedTuple):
    """The cost, the accelerations or the row status to start from, and the number of rows outside groups."""

    primal: PrimalCost
    start: np.ndarray
    warm_start: WarmStart | None
    count: int

    @property
    def storage(self) -> StatusStorage:
        """How the row status is kept for the next problem."""
        return StatusStorage.of(self.primal)

    @property
    def is_warm(self) -> bool:
        """Whether the row status of a similar problem is known."""
        return self.warm_start is not None

    def initial(self) -> tuple[_Point, MutableArray]:
        """The initial point, and the row status there or that of the warm start."""
        primal = self.primal
        y, storage = primal.residual(self.start), self.storage
        known = None if self.warm_start is None else storage.known(primal, self.warm_start(storage.size))
        return _Point(self.start, y), encode_status(primal, y, storage.unknown(), known)

    def has_no_rows(self) -> Any:
        """Whether no row is active."""
        return logical_not(self.primal.any_active())

    def initial_gradient(self, point: _Point, status: MutableArray) -> np.ndarray:
        """The gradient at the free acceleration, -J^T f."""
        return -self.primal.constraint_force(point.y, decode_status(status))

    def gradient(self, point: _Point, status: MutableArray) -> tuple[np.ndarray, Any, Any, Any]:
        """Gradient g = M (a - a_free) - J^T f, its largest entry, the largest force in it, and the largest
        acceleration.
        """
        smooth_force = self.primal.smooth_force(point.a)
        constraint_force = self.primal.constraint_force(point.y, decode_status(status))
        gradient = smooth_force - constraint_force
        largest = max_abs(smooth_force) + max_abs(constraint_force)
        return gradient, max_abs(gradient), largest, max_abs(point.a)

    def direction(self, point: _Point, gradient: np.ndarray, status: MutableArray) -> _Direction:
        """p = -(M + J^T W J)^-1 g, with the forces and curvatures of this status, and J p."""
        p = self.primal.newton_direction(point.y, gradient, decode_status(status))
        return _Direction(p, self.primal.jacobian_product(p))

    def status_is_unchanged(self, point: _Point, direction: _Direction, status: MutableArray) -> Any:
        """Whether no active row changes its status over a full step: then the cost is quadratic along it."""

        def compare(block: RowBlock, same: Any) -> Any:
            code = status_code(block, block.read(point.y) + block.read(direction.Jp))
            alike = equal(code, status[block.number])
            return logical_and(same, alike if block.cone is None else logical_and(alike, code > 0))

        return self.primal.over_active_blocks(compare, True)

    def step_length(self, point: _Point, direction: _Direction, gradient: np.ndarray) -> Any:
        """The step length that minimises the cost."""
        return self.primal.exact_line_search(
            point, direction.p, direction.Jp, gradient, tolerance=LINE_SEARCH_TOLERANCE
        )

    def advanced(
        self, point: _Point, direction: _Direction, length: Any, status: MutableArray
    ) -> tuple[_Point, MutableArray, Any]:
        """The point after a step, the status there, and the largest change of an acceleration."""
        y, step = self.primal.advanced_residual(point.y, length, direction.Jp), length * direction.p
        return _Point(point.a + step, y), encode_status(self.primal, y, status), max_abs(step)

    def solution(self, point: _Point, status: MutableArray) -> Solution:
        """The acceleration, and the force and the status of every row."""
        f = self.primal.forces(point.a)
        own = scalar_array([f[i] for i in range(self.count)])
        row_status = self.storage.kept(self.primal, status) if self.is_warm else None
        return Solution(point.a, own, 0.0, True, row_status=row_status, row_force=f)


def primal_form(problem: GaussProblem, rows: Rows, start: Any) -> PrimalForm:
    """The primal form; start: initial accelerations (nv,), a warm start, or None for the free ones."""
    warm_start = as_warm_start(start)
    a = np.array(problem.a_free if start is None or warm_start is not None else start)
    return PrimalForm(PrimalCost(problem, rows), a, warm_start, len(rows))
