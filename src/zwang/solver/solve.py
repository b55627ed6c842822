"""Solution of Gauss's problem with all its rows: hard equalities are eliminated, hard inequalities treated
in dual form (see `hard_rows`), and the remaining soft rows solved by the method of the given name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from zwang.constraint.rows import Rows, array
from zwang.dynamics.gauss import GaussProblem
from zwang.errors import UnknownNameError
from zwang.scalar import are_constant
from zwang.solver.conjugate_gradient import conjugate_gradient
from zwang.solver.coordinate_reduction import solve_reduced
from zwang.solver.dual_newton import dual_newton
from zwang.solver.hard_rows import solve_hard_rows
from zwang.solver.multipliers import solve_multipliers
from zwang.solver.newton import newton
from zwang.solver.null_space import null_space_reduction, restricted_problem
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
) -> Solution:
    """Acceleration that minimises Gauss's function with softness, and the forces of the rows, on any scalar.

    solver: "newton", "conjugate" or "projected" (floats only), for the soft rows. start: initial
    accelerations (nv,), or a `WarmStart`, the row status of a similar problem, which only Newton's method
    with soft rows uses. independent: coordinate reduction of the hard equalities (R = 0) by these
    independent velocities; None computes constraint forces instead. Raises UnknownNameError for the solver
    and, on floats, ContradictionError, naming the constraints, for hard equalities that contradict each
    other, and DependentSpeedsError for dependent independent velocities. On other scalars the solution
    reports the last two.
    """
    if solver not in SOLVERS:
        raise UnknownNameError("solver", solver, SOLVERS)
    if rows.compacted is not None:
        return dual_newton(problem, rows.compacted)
    if not len(rows) and not rows.row_groups:
        return Solution(np.array(problem.a_free), np.zeros(0), 0.0, 0.0 < 1.0)
    if as_warm_start(start) and (any(rows.hard) or solver != "newton"):
        start = None
    # soft rows alone
    if not any(rows.hard):
        return SOLVERS[solver](problem, rows, start=start)
    # hard equalities, by coordinate reduction or by the null-space method
    equalities = [i for i, hard in enumerate(rows.hard) if hard and rows.kinds[i] == "equality"]
    if equalities and independent is not None:
        return solve_reduced(problem, rows, independent.S, lambda *reduced: solve(*reduced, solver=solver))
    if equalities and _is_numeric(problem, rows):
        return _solve_in_null_space(problem, rows, equalities, solver)
    # on traced scalars, where ranks cannot be decided, by multipliers
    if len(equalities) == len(rows) and not rows.row_groups:
        return solve_multipliers(problem, rows)
    return solve_hard_rows(problem, rows)


def _is_numeric(problem: GaussProblem, rows: Rows) -> bool:
    """Whether all values are numbers, so that ranks can be decided."""
    return are_constant(*np.ravel(problem.M), *problem.a_free, *np.ravel(rows.J), *rows.aref)


def _solve_in_null_space(problem: GaussProblem, rows: Rows, equalities: list[int], solver: str) -> Solution:
    """Solution in the accelerations that satisfy the hard equalities, and all forces."""
    problem = GaussProblem(np.asarray(problem.M, float), np.asarray(problem.a_free, float), problem.parents)
    rest = [i for i in range(len(rows)) if i not in set(equalities)]
    reduction = null_space_reduction(problem, rows.select(equalities))
    others = rows.select(rest)
    if reduction.basis.shape[1]:
        found = solve(*restricted_problem(problem, others, reduction), solver=solver)
        a = reduction.particular + reduction.basis @ found.acceleration
    else:
        found, a = Solution(np.zeros(0), np.zeros(len(rest)), 0.0, 0.0 < 1.0), reduction.particular
    other_force = np.asarray(others.J, float).T @ found.force
    equality_forces = reduction.force(problem, a, other_force)
    force = dict(zip([*rest, *equalities], [*found.force, *equality_forces], strict=True))
    return Solution(a, array([force[i] for i in range(len(rows))]), found.iterations, found.converged)
