"""Derivatives of a solution by the implicit function theorem.

At a solution a the gradient g(a, x) of the cost vanishes for all parameters x of the problem, so that

    da = -(M + J^T W J)^-1 (dg/dx) dx        with the status of the rows, and the curvature W of cones

This is what one step of Newton's method gives if it starts at the known solution and runs on tangents: its
value is zero, and its derivative is da. Nothing is differentiated through the iterations. Source: Griewank,
Walther, Evaluating Derivatives (2008), Section 15.1.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from zwang.constraint.rows import Rows, scalar_array
from zwang.dynamics.gauss import GaussProblem
from zwang.scalar import MutableArray, zeros
from zwang.solver.hard_rows import solve_hard_rows
from zwang.solver.multipliers import solve_multipliers
from zwang.solver.primal_cost import ForceLaw, PrimalCost
from zwang.solver.solution import Solution
from zwang.solver.warm_start import decode_status, encode_status


class KnownSolutions(NamedTuple):
    """The accelerations (stages nv,) that solve the problems of a step, in the order of its stages; empty
    where nothing constrains the motion.
    """

    accelerations: np.ndarray
    nv: int

    def of_stage(self, k: int) -> KnownSolution | None:
        """The solution of stage k."""
        if not len(self.accelerations):
            return None
        return KnownSolution(self.accelerations[k * self.nv : (k + 1) * self.nv])


class KnownSolution(NamedTuple):
    """The accelerations (nv,) that solve a problem whose data are tangents; None where they are to be found,
    on the values of the data.
    """

    acceleration: np.ndarray | None


TO_BE_FOUND = KnownSolution(None)


def linearised(problem: GaussProblem, rows: Rows, known: KnownSolution) -> Solution:
    """The solution of a problem whose data are tangents, from the known values of its accelerations.

    Hard equalities stay exact: with them the step solves

        M + J^T W J  -A^T     a'      (M + J^T W J) a - g
           A          0       f   =          b

    by the method of multipliers. Hard limits, friction and contacts are solved on values, see
    `hard_derivatives`, and so are other rows whose solution is to be found.
    """
    unilateral = [hard and kind != "equality" for hard, kind in zip(rows.hard, rows.kinds, strict=True)]
    if all(rows.hard) and not any(unilateral) and not rows.row_groups:
        return solve_multipliers(problem, rows, tangents=True)
    if known.acceleration is None or any(unilateral) or any(group.hard for group in rows.row_groups):
        return solve_hard_rows(problem, rows, tangents=True)
    if not any(rows.hard):
        return _with_soft_rows(problem, rows, known)
    return _with_hard_equalities(problem, rows.without_groups(), known)


def _with_soft_rows(problem: GaussProblem, rows: Rows, known: KnownSolution) -> Solution:
    """One step of Newton's method from the known accelerations."""
    linear = _linear_problem(problem, rows, known)
    a = np.array(known.acceleration) + linear.primal.newton_direction(
        linear.y, linear.gradient, linear.force_law
    )
    return _solution(rows, a, linear.primal.forces(a))


def _with_hard_equalities(problem: GaussProblem, rows: Rows, known: KnownSolution) -> Solution:
    """The same step under hard equalities, which stay satisfied."""
    equalities = [i for i, hard in enumerate(rows.hard) if hard]
    rest = [i for i in range(len(rows)) if i not in set(equalities)]
    linear = _linear_problem(problem, rows.select(rest), known)
    direction = linear.primal.newton_direction(linear.y, linear.gradient, linear.force_law)
    hessian = linear.primal.dense_hessian(linear.y, linear.force_law)
    reduced = GaussProblem(hessian, known.acceleration + direction, tuple(range(-1, len(hessian) - 1)))
    found = solve_multipliers(reduced, rows.select(equalities), tangents=True)
    soft = linear.primal.forces(found.acceleration)
    forces = zeros(len(rows))
    for k, i in enumerate(rest):
        forces = forces.set(i, soft[k])
    for k, i in enumerate(equalities):
        forces = forces.set(i, found.force[k])
    return _solution(rows, found.acceleration, forces)


class _LinearProblem(NamedTuple):
    """The cost at the known accelerations: the residual y of the rows, the force law of their status, and the
    gradient.
    """

    primal: PrimalCost
    y: MutableArray
    force_law: ForceLaw
    gradient: np.ndarray


def _linear_problem(problem: GaussProblem, rows: Rows, known: KnownSolution) -> _LinearProblem:
    primal, a = PrimalCost(problem, rows), np.array(known.acceleration)
    y = primal.residual(a)
    force_law = decode_status(encode_status(primal, y, zeros(primal.block_count)))
    gradient = primal.smooth_force(a) - primal.constraint_force(y, force_law)
    return _LinearProblem(primal, y, force_law, gradient)


def _solution(rows: Rows, a: np.ndarray, force: MutableArray) -> Solution:
    return Solution(a, scalar_array([force[i] for i in range(len(rows))]), 1.0, True, row_force=force)
