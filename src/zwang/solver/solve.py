"""Solution of Gauss's problem with all its rows: hard equalities are eliminated, hard inequalities treated
in dual form (see `hard_rows`), and the remaining soft rows solved by the method of the given name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from zwang.constraint.context import StepForm
from zwang.constraint.rows import Rows
from zwang.dynamics.gauss import GaussProblem
from zwang.errors import InconsistentConstraintsError, SolveError, UnknownNameError
from zwang.scalar import logical_not, raise_if
from zwang.solver.conjugate_gradient import conjugate_gradient
from zwang.solver.coordinate_reduction import solve_reduced
from zwang.solver.hard_rows import solve_hard_rows
from zwang.solver.linearised import KnownSolution, linearised
from zwang.solver.multipliers import inconsistent_constraints, solve_multipliers
from zwang.solver.newton import newton
from zwang.solver.projected_gauss_seidel import projected_gauss_seidel
from zwang.solver.solution import Solution
from zwang.solver.warm_start import as_warm_start

SOLVERS: dict[str, Callable[..., Solution]] = {
    "newton": newton,
    "conjugate": conjugate_gradient,
    "projected": projected_gauss_seidel,
}


class ReductionChoice(NamedTuple):
    """Independent velocities of a coordinate reduction: rows S (m, nv), or None to let the elimination
    choose.
    """

    S: Any = None


def solve(
    problem: GaussProblem,
    rows: Rows,
    *,
    solver: str = "newton",
    start: Any = None,
    independent: ReductionChoice | None = None,
    step: StepForm | None = None,
) -> Solution:
    """Acceleration that minimises Gauss's function with softness, and the forces of the rows, on any scalar.

    solver: "newton", "conjugate" or "projected" (floats only), for the soft rows. start: initial
    accelerations (nv,), or a `WarmStart`, the row status of a similar problem, which only Newton's method
    with soft rows uses. independent: coordinate reduction of the hard equalities (R = 0) by these
    independent velocities; None computes constraint forces instead. step: how hard contacts close within a
    step; None where a is a change of the velocity, as in impacts. Raises UnknownNameError for the solver and,
    on floats, InconsistentConstraintsError, naming the constraints, for hard equalities that contradict each
    other, and DependentVelocitiesError for dependent independent velocities. On other scalars the solution
    reports the last two.
    """
    if solver not in SOLVERS:
        raise UnknownNameError("solver", solver, SOLVERS)
    if not len(rows) and not rows.row_groups:
        return Solution(np.array(problem.a_free), np.zeros(0), 0.0, 0.0 < 1.0)
    if isinstance(start, KnownSolution):
        return linearised(problem, rows, start)
    if as_warm_start(start) and (rows.any_hard or solver != "newton"):
        start = None
    # soft rows alone
    if not rows.any_hard:
        return SOLVERS[solver](problem, rows, start=start)
    # hard equalities, by coordinate reduction or with their forces by the method of multipliers
    equalities = [i for i, hard in enumerate(rows.hard) if hard and rows.kinds[i] == "equality"]
    if equalities and independent is not None:
        found = solve_reduced(
            problem, rows, independent.S, lambda *reduced: solve(*reduced, solver=solver, step=step)
        )
        return checked(problem, rows, found)
    if len(equalities) == len(rows) and not rows.row_groups:
        return checked(problem, rows, solve_multipliers(problem, rows))
    return checked(problem, rows, solve_hard_rows(problem, rows, step=step))


def checked(problem: GaussProblem, rows: Rows, found: Solution) -> Solution:
    """The solution. Where it has failed and its values are numbers, raises an error with the reason.

    InconsistentConstraintsError names the constraints with a residual; SolveError is raised for rows or a
    mass matrix without a solution.
    """
    raise_if(logical_not(found.converged), lambda: _reason(problem, rows, found))
    return found


def _reason(problem: GaussProblem, rows: Rows, found: Solution) -> SolveError | None:
    """Why there is no solution; None where the solver has only not converged."""
    active, _ = rows.only_active()
    for name, row, x in zip(active.names, active.J, active.aref, strict=True):
        if not np.isfinite(np.array([*row, x], float)).all():
            return SolveError(
                f"the rows of constraint {name!r} are not finite in this state: numbers overflow, or the "
                "constraint is singular, as the distance of two coincident points is; choose another state"
            )
    if not (np.isfinite(np.asarray(problem.M, float)).all() and _smallest_eigenvalue(problem.M) > 0):
        return SolveError(
            "the mass matrix is not positive definite in this state: a joint moves no inertia, or the masses "
            "differ by more than floating-point numbers resolve; give the bodies an inertia or the joints an "
            "armature"
        )
    worst, size = inconsistent_constraints(problem.M, rows)
    if found.inconsistent and worst:
        return InconsistentConstraintsError(
            f"the hard constraints {', '.join(worst)} contradict each other: no acceleration satisfies them "
            f"all (the largest residual is {size:.3g}); give one of them a softness, remove one, or start in "
            "a configuration where they agree"
        )
    return None


def _smallest_eigenvalue(M: Any) -> float:
    return float(np.linalg.eigvalsh(np.asarray(M, float))[0]) if len(M) else np.inf
