"""Newton's method on the reduced primal problem.

    cost       Z(a) + sum s_i(y_i),    y = J a - aref
    gradient   g = M (a - a_free) - J^T f(y)
    step       p = -(M + J^T W J)^-1 g,    W = -df/dy
    iterate    a <- a + t p,    t by an exact line search

The cost is quadratic wherever the status of the rows does not change, so that one step of length 1 is exact
there and few iterations are needed. How the step is computed is left to the form of the problem:
`primal_form` has the accelerations as unknowns and the Hessian M + J^T W J, with the sparsity of M where each
row touches one branch of the tree only; `dual_form` has the forces as unknowns and the Delassus matrix
J M^-1 J^T. Source: MuJoCo documentation, Computation, "Reduced primal problem"; Todorov, "Convex and
analytically-invertible dynamics with contacts and constraints" (ICRA 2014).
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

from zwang.algebra.norms import is_single_precision
from zwang.constraint.rows import Rows
from zwang.dynamics.gauss import GaussProblem
from zwang.scalar import MutableArray, cond, logical_and, logical_not, logical_or, where, while_loop
from zwang.solver.dual_form import dual_form
from zwang.solver.primal_form import primal_form
from zwang.solver.solution import Solution

TOLERANCE = 1e-11  # of the error, relative to the largest force in it
ITERATIONS = 100  # the limit, as in MuJoCo
SMALLEST_STEP = 1e-14  # relative to the unknowns; a smaller step changes nothing
STAGNATION_STEP = 1e-9  # below this step an error that is no longer halved consists of rounding errors
SINGLE_PRECISION_STEP = 1e-5  # the same in single precision, ...
SINGLE_PRECISION_STAGNATIONS = 3  # ... after this many such steps
USABLE_STEP = 1e-3  # at the iteration limit, accelerations that still change by more are not to be used


class ProblemForm(Protocol):
    """A form of the problem, `PrimalForm` or `DualForm`; its points, directions and gradients are its own."""

    @property
    def is_warm(self) -> bool:
        """Whether the row status of a similar problem is known."""
        ...

    def initial(self) -> tuple[Any, MutableArray]:
        """The initial point and row status."""
        ...

    def has_no_rows(self) -> Any:
        """Whether no row is active."""
        ...

    def initial_gradient(self, point: Any, status: MutableArray) -> Any:
        """The gradient at the initial point."""
        ...

    def gradient(self, point: Any, status: MutableArray) -> tuple[Any, Any, Any, Any]:
        """The gradient, its size (the error), the largest force in it, and the largest unknown."""
        ...

    def direction(self, point: Any, gradient: Any, status: MutableArray) -> Any:
        """The Newton step of this row status."""
        ...

    def status_is_unchanged(self, point: Any, direction: Any, status: MutableArray) -> Any:
        """Whether no active row changes its status over a full step."""
        ...

    def step_length(self, point: Any, direction: Any, gradient: Any) -> Any:
        """The step length that minimises the cost."""
        ...

    def advanced(
        self, point: Any, direction: Any, length: Any, status: MutableArray
    ) -> tuple[Any, MutableArray, Any]:
        """The point after a step, the status there, and the largest change of an unknown."""
        ...

    def solution(self, point: Any, status: MutableArray) -> Solution:
        """The solution at a point."""
        ...


class _NewtonState(NamedTuple):
    """State of the iteration.

    point: the unknowns and the residual y of the rows. status: of every row or block of rows. gradient: as
    the form needs it. error: its size. stagnations: single-precision steps without progress. done: whether
    the method has terminated. usable: whether the last step was small enough for the point to be used.
    stagnated: whether the method has terminated above its tolerance, because of rounding.
    """

    point: Any
    status: MutableArray
    gradient: Any
    error: Any
    iterations: Any
    stagnations: Any
    done: Any
    usable: Any
    stagnated: Any = 0.0 > 1.0


def newton(
    problem: GaussProblem,
    rows: Rows,
    *,
    start: Any = None,
    tolerance: float = TOLERANCE,
    iterations: int = ITERATIONS,
) -> Solution:
    """Minimiser of Z(a) + sum s_i(J_i a - aref_i), by Newton's method with an exact line search.

    start: the initial accelerations (nv,), by default the free ones; or a `WarmStart`, the row status of a
    similar problem. With a warm start the first step assumes that status, and the solution reports the final
    one. tolerance: of the error, relative to the largest force in it. The method also terminates when no row
    changes its status over a full step, because that step is exact. Every row must be soft (R > 0).
    """
    own = rows.of_worlds
    form: ProblemForm = (
        primal_form(problem, rows, start) if own is None else dual_form(problem, own, len(rows))
    )
    method = _Method(form, tolerance)

    def unfinished(s: _NewtonState) -> Any:
        return logical_and(logical_not(s.done), s.iterations < iterations)

    last = while_loop(unfinished, method.iterate, method.initial_state())
    inaccurate = logical_not(logical_or(last.done, last.usable))
    found = form.solution(last.point, last.status)
    return found._replace(
        iterations=last.iterations, converged=last.done, inaccurate=inaccurate, stagnated=last.stagnated
    )


class _Method(NamedTuple):
    """The problem in one of its forms, and the tolerance of the error."""

    form: ProblemForm
    tolerance: float

    def initial_state(self) -> _NewtonState:
        """State at the initial point, with the row status there or that of the warm start."""
        point, status = self.form.initial()
        if self.form.is_warm:
            gradient, error, done = self.form.initial_gradient(point, status), 0.0, self.form.has_no_rows()
        else:
            gradient, error, largest, _ = self.form.gradient(point, status)
            done = error <= self.tolerance * largest
        return _NewtonState(point, status, gradient, error, 0.0, 0.0, done, done)

    def iterate(self, s: _NewtonState) -> _NewtonState:
        """State after one iteration: direction, line search, new point, status, termination."""
        form = self.form
        # direction p, with the forces and curvatures of the current status
        direction = form.direction(s.point, s.gradient, s.status)
        same = form.status_is_unchanged(s.point, direction, s.status)
        # step length: 1 where no row changes its status, and in the first step of a warm start
        full = logical_or(same, s.iterations < 1) if form.is_warm else same
        length = cond(full, lambda: 1.0, lambda: form.step_length(s.point, direction, s.gradient))
        point, status, step = form.advanced(s.point, direction, length, s.status)
        # termination: a full step without a change of status is exact
        exact = s.gradient, s.error, s.stagnations, same, same, logical_not(same)
        gradient, error, stagnations, done, usable, stagnated = cond(
            same, lambda: exact, lambda: self.termination(s, point, status, step)
        )
        return _NewtonState(
            point, status, gradient, error, s.iterations + 1, stagnations, done, usable, stagnated
        )

    def termination(self, s: _NewtonState, point: Any, status: MutableArray, step: Any) -> Any:
        """Gradient, error, stagnations, whether the method has terminated, whether the point is usable, and
        whether the method has stagnated, after a step of this size from s.
        """
        gradient, error, largest, scale = self.form.gradient(point, status)
        # the first step of a wrong warm start may be zero, and is no sign of termination
        counts = s.iterations >= (1 if self.form.is_warm else 0)
        stagnant = logical_and(counts, error > s.error / 2)
        no_step = logical_and(counts, step <= SMALLEST_STEP * scale)
        coarse = logical_and(is_single_precision(scale), step <= SINGLE_PRECISION_STEP * scale)
        stagnations = s.stagnations + where(logical_and(stagnant, coarse), 1.0, 0.0)
        rounding = logical_or(
            logical_and(stagnant, step <= STAGNATION_STEP * scale),
            stagnations >= SINGLE_PRECISION_STAGNATIONS,
        )
        small = error <= self.tolerance * largest
        stagnated = logical_and(logical_or(no_step, rounding), logical_not(small))
        done = logical_or(logical_or(small, no_step), rounding)
        return gradient, error, stagnations, done, step <= USABLE_STEP * scale, stagnated
