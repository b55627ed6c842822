"""Gauss's problem with all its rows: hard equalities taken out, hard inequalities by multipliers, the rest by a solver's name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from zwang.constraint.rows import Rows, array
from zwang.dynamics.gauss import GaussProblem
from zwang.errors import UnknownNameError
from zwang.scalar import are_constant
from zwang.solver.augmented_lagrangian import augmented_lagrangian
from zwang.solver.conjugate_gradient import conjugate_gradient
from zwang.solver.coordinate_reduction import solve_reduced
from zwang.solver.dual_newton import dual_newton
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
    """Exact equalities are to be embedded: rows S (m, nv) of the speeds that stay, or None where the elimination chooses."""

    S: Any = None


def solve(
    problem: GaussProblem,
    rows: Rows,
    *,
    solver: str = "newton",
    start: Any = None,
    independent: ReductionChoice | None = None,
) -> Solution:
    """The acceleration that Gauss's principle with softness picks, and the rows' forces, on any scalar.

    solver: "newton", "conjugate" or "projected" (floats only). start: accelerations to begin with or, which Newton's method alone
    on soft rows makes use of, how rows answered last, a `Recall`. Rows with R = 0 are held exactly, equalities by constraint forces or,
    with `essential`, by embedding. Raises UnknownNameError for the solver; ContradictionError, with their names, for hard equalities
    that contradict each other, DependentSpeedsError (floats; elsewhere the solution says so).
    """
    if solver not in SOLVERS:
        raise UnknownNameError("solver", solver, SOLVERS)
    if rows.listed is not None:
        return dual_newton(problem, rows.listed)
    if not len(rows) and not rows.row_groups:
        return Solution(np.array(problem.a_free), np.zeros(0), 0.0, 0.0 < 1.0)
    if as_warm_start(start) and (any(rows.hard) or solver != "newton"):
        start = None
    if not any(rows.hard):
        return SOLVERS[solver](problem, rows, start=start)
    equalities = [i for i, hard in enumerate(rows.hard) if hard and rows.kinds[i] == "equality"]
    if equalities and independent is not None:
        return solve_reduced(problem, rows, independent.S, lambda *small: solve(*small, solver=solver))
    if equalities and _plain(problem, rows):
        return _eliminated(problem, rows, equalities, solver)
    if len(equalities) == len(rows) and not rows.row_groups:
        return solve_multipliers(problem, rows)
    return augmented_lagrangian(problem, rows, SOLVERS[solver], start=start)


def _plain(problem: GaussProblem, rows: Rows) -> bool:
    """Whether all are plain numbers, so that ranks can be asked for."""
    return are_constant(*np.ravel(problem.M), *problem.a_free, *np.ravel(rows.J), *rows.aref)


def _eliminated(problem: GaussProblem, rows: Rows, equalities: list[int], solver: str) -> Solution:
    """The solution in the accelerations that the hard equalities leave, and all forces."""
    problem = GaussProblem(np.asarray(problem.M, float), np.asarray(problem.a_free, float), problem.parents)
    rest = [i for i in range(len(rows)) if i not in set(equalities)]
    reduction = null_space_reduction(problem, rows.select(equalities))
    others = rows.select(rest)
    if reduction.basis.shape[1]:
        found = solve(*restricted_problem(problem, others, reduction), solver=solver)
        a = reduction.particular + reduction.basis @ found.acceleration
    else:
        found, a = Solution(np.zeros(0), np.zeros(len(rest)), 0.0, 0.0 < 1.0), reduction.particular
    push = np.asarray(others.J, float).T @ found.force
    held = reduction.force(problem, a, push)
    force = dict(zip([*rest, *equalities], [*found.force, *held], strict=True))
    return Solution(a, array([force[i] for i in range(len(rows))]), found.iterations, found.converged)
