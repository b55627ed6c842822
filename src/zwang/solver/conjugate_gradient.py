"""The primal problem by nonlinear conjugate gradients, preconditioned with M^-1: no matrix but M is factored."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from zwang.algebra.factorization import sparse_ltdl, sparse_ltdl_solve
from zwang.constraint.rows import Rows
from zwang.dynamics.gauss import GaussProblem
from zwang.scalar import MutableArray, logical_and, logical_not, maximum, where, while_loop
from zwang.solver.primal_cost import PrimalCost
from zwang.solver.solution import SMALLEST, Solution, max_abs

TOLERANCE = 1e-12
ITERATIONS = 2000


class _State(NamedTuple):
    """The accelerations, what the rows miss by, gradient g, z = M^-1 g, direction p, last step length, iterations, done."""

    a: np.ndarray
    y: MutableArray
    g: np.ndarray
    z: np.ndarray
    p: np.ndarray
    length: Any
    iterations: Any
    done: Any


def conjugate_gradient(
    problem: GaussProblem,
    rows: Rows,
    *,
    start: Any = None,
    tolerance: float = TOLERANCE,
    iterations: int = ITERATIONS,
) -> Solution:
    """The accelerations that make Z(a) + sum s_i(J_i a - aref_i) least, by Polak-Ribiere directions and exact steps.

    start: accelerations to begin with, by default the free ones. tolerance: of the gradient, against the largest effort in it.
    Every row must be soft. Source: Nocedal, Wright, Numerical Optimization (2006), Sec. 5.2, "PR+".
    """
    primal, factors = PrimalCost(problem, rows), sparse_ltdl(problem.M)

    def gradient(a: Any, y: MutableArray) -> tuple[Any, Any]:
        effort, push = primal.effort(a), primal.push(y)
        return effort - push, max_abs(effort - push) <= tolerance * (max_abs(effort) + max_abs(push))

    def wanted(s: _State) -> Any:
        return logical_and(logical_not(s.done), s.iterations < iterations)

    def improve(s: _State) -> _State:
        along = primal.along(s.p)
        length = primal.exact_step((s.a, s.y), s.p, along, s.g, first=s.length)
        a, y = s.a + length * s.p, primal.advanced(s.y, length, along)
        g, done = gradient(a, y)
        z = sparse_ltdl_solve(*factors, g)
        beta = maximum((g @ z - g @ s.z) / maximum(s.g @ s.z, SMALLEST), 0.0)
        p = beta * s.p - z
        p = where(p @ g < 0, p, -z)  # begin anew where it does not go down
        return _State(a, y, g, z, p, where(length > 0, length, 1.0), s.iterations + 1, done)

    begin = np.array(problem.a_free if start is None else start)
    y = primal.residual(begin)
    g, done = gradient(begin, y)
    z = sparse_ltdl_solve(*factors, g)
    last = while_loop(wanted, improve, _State(begin, y, g, z, -z, 1.0, 0.0, done))
    return Solution(last.a, primal.forces(last.a), last.iterations, last.done)
