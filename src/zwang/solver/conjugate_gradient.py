"""Nonlinear conjugate gradients on the primal problem, preconditioned with M^-1: only M is factored."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from zwang.algebra.factorization import factor
from zwang.algebra.norms import max_abs
from zwang.constraint.rows import Rows, scalar_array
from zwang.dynamics.gauss import GaussProblem
from zwang.scalar import MutableArray, logical_and, logical_not, maximum, where, while_loop
from zwang.solver.primal_cost import PrimalCost
from zwang.solver.solution import SMALLEST_SCALE, Solution

TOLERANCE = 1e-12  # of the gradient, relative to the largest force in it
ITERATIONS = 2000  # the limit
SMALLEST_STEP = 1e-15  # relative to the accelerations, also free ones; a smaller step changes nothing
MOST_EMPTY_STEPS = 10  # such steps in a row, after which the method ends without convergence


class _ConjugateGradientState(NamedTuple):
    """Acceleration a, residual y of the rows, gradient g, preconditioned gradient z = M^-1 g, direction p,
    last step length, iterations, the number of last steps that changed nothing, and whether the method has
    converged.
    """

    a: np.ndarray
    y: MutableArray
    g: np.ndarray
    z: np.ndarray
    p: np.ndarray
    length: Any
    iterations: Any
    empty_steps: Any
    done: Any


def conjugate_gradient(
    problem: GaussProblem,
    rows: Rows,
    *,
    start: Any = None,
    tolerance: float = TOLERANCE,
    iterations: int = ITERATIONS,
) -> Solution:
    """Minimiser of Z(a) + sum s_i(J_i a - aref_i) by Polak-Ribiere conjugate gradients with an exact line
    search.

    start: initial acceleration (nv,), by default the free acceleration. tolerance: of the gradient, relative
    to the largest generalised force in it. iterations: the iteration limit. The method also ends, without
    convergence, where rounding errors of stiff rows leave no step. Every row must be soft (R > 0).
    Source: Nocedal, Wright, Numerical Optimization (2006), Section 5.2, method "PR+".
    """
    primal, factors = PrimalCost(problem, rows), factor(problem.M, problem.parents)

    def gradient(a: Any, y: MutableArray) -> tuple[Any, Any]:
        smooth_force, constraint_force = primal.smooth_force(a), primal.constraint_force(y)
        return smooth_force - constraint_force, max_abs(smooth_force - constraint_force) <= tolerance * (
            max_abs(smooth_force) + max_abs(constraint_force)
        )

    def unfinished(s: _ConjugateGradientState) -> Any:
        moves = logical_and(s.iterations < iterations, s.empty_steps < MOST_EMPTY_STEPS)
        return logical_and(logical_not(s.done), moves)

    def iterate(s: _ConjugateGradientState) -> _ConjugateGradientState:
        at = primal.smooth_force(s.a), s.y
        Mp, Jp = problem.force_of(s.p), primal.jacobian_product(s.p)
        length = primal.exact_line_search(at, s.p, Mp, Jp, s.g, first_step=s.length)
        a = s.a + length * s.p
        y = primal.over_active_blocks(
            lambda block, y: block.with_values(y, block.read(y) + length * block.read(Jp)), s.y
        )
        g, done = gradient(a, y)
        z = factors.solve(g)
        # Polak-Ribiere with restart: beta = max(0, g^T (z - z_old) / g_old^T z_old), p = beta p - z
        beta = maximum((g @ z - g @ s.z) / maximum(s.g @ s.z, SMALLEST_SCALE), 0.0)
        p = beta * s.p - z
        p = where(p @ g < 0, p, -z)  # restart with the steepest descent where p is no descent direction
        is_empty = max_abs(length * s.p) <= SMALLEST_STEP * maximum(max_abs(a), free_scale)
        empty_steps = where(is_empty, s.empty_steps + 1, 0.0)
        length = where(length > 0, length, 1.0)
        return _ConjugateGradientState(a, y, g, z, p, length, s.iterations + 1, empty_steps, done)

    initial = np.array(problem.a_free if start is None else start)
    y = primal.residual(initial)
    g, done = gradient(initial, y)
    z = factors.solve(g)
    free_scale = max_abs(problem.a_free)
    first = _ConjugateGradientState(initial, y, g, z, -z, 1.0, 0.0, 0.0, done)
    last = while_loop(unfinished, iterate, first)
    f = primal.forces(last.a)
    own = scalar_array([f[i] for i in range(len(rows))])
    return Solution(last.a, own, last.iterations, last.done, row_force=f)
