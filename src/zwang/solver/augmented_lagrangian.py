"""Hard rows beside soft ones by the augmented Lagrangian method (method of multipliers).

Each outer iteration solves a problem in which hard rows have a small regularisation R = rho and the
reference acceleration aref + rho f_k, where f_k are the forces found before. On the dual this is the
proximal point method. It converges to forces of the problem with R = 0 by a factor rho / (rho + A) in each
iteration. It needs no rank decision: the part of redundant rows' forces that is not determined stays at its
initial value, an even share. Source: Rockafellar, Math. Oper. Res. 1 (1976) 97.

Hard contacts obey Coulomb's law exactly. The convex problem lets a sliding contact separate with the normal
velocity y_0 = |(friction_j y_j)|, because its residual lies in the dual cone. The reference acceleration of
the normal is therefore lowered by this slip in each iteration. Source: De Saxce, Feng, Math. Comput.
Modelling 28 (1998) 225. Where a body is about to jam this fixed-point iteration is slow, and is accelerated
by Anderson's method of depth one. Source: Anderson, J. ACM 12 (1965) 547.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from zwang.constraint.rows import Cone, Rows, array
from zwang.dynamics.gauss import GaussProblem
from zwang.scalar import clip, cond, logical_and, logical_not, logical_or, maximum, where, while_loop
from zwang.solver.null_space import is_inconsistent
from zwang.solver.solution import SMALLEST_SCALE, Solution, max_abs, slip_speed

INEQUALITY_COMPLIANCE = 1e-3  # rho of inequalities, relative to a row's inverse weight
EQUALITY_COMPLIANCE = 1e-5  # rho of equalities, whose rows are nearly dependent near singular configurations
ITERATIONS = 200
TOLERANCE = 1e-11  # of the change of the forces; rounding leaves 1e-12, because 1 / rho is large
USABLE_CHANGE = 1e-5  # of the accelerations, which are accurate to this where dependent forces still change
LONGEST_EXTRAPOLATION = 100.0  # of Anderson's method, in differences of the last two iterates
ROUNDING = 1e-11  # of the slip residuals, relative to the accelerations
INNER_TOLERANCE = 1e-13  # of the soft problems


class _AugmentedLagrangianState(NamedTuple):
    """State of the outer iteration.

    slips: the slips assumed in the next iteration, one for each hard cone. found_slips: those found in the
    last one. slip_residuals: found minus assumed slips of the last one. iterations: of all inner solvers.
    done: whether the method has converged. usable: whether the accelerations hardly changed in the last
    iteration.
    """

    a: np.ndarray
    force: np.ndarray
    slips: list[Any]
    found_slips: list[Any]
    slip_residuals: list[Any]
    outer_iterations: Any
    iterations: Any
    done: Any
    usable: Any


def augmented_lagrangian(
    problem: GaussProblem,
    rows: Rows,
    solver: Callable[..., Solution],
    *,
    start: Any = None,
    tolerance: float = TOLERANCE,
) -> Solution:
    """Solution of a problem some of whose rows are hard (R = 0), by the augmented Lagrangian method.

    solver: solves the soft problem of each outer iteration, such as `newton`. start: initial accelerations
    (nv,), by default the free ones. tolerance: of the relative change of the forces in one iteration, and of
    the slip residuals relative to the accelerations.
    """
    hard = rows.hard
    compliance = [EQUALITY_COMPLIANCE if kind == "equality" else INEQUALITY_COMPLIANCE for kind in rows.kinds]
    rho = array([s * w if h else 0 for s, w, h in zip(compliance, rows.inverse_weight, hard, strict=True)])
    cones = [cone for cone in rows.cones if hard[cone.start]]

    def unfinished(s: _AugmentedLagrangianState) -> Any:
        return logical_and(logical_not(s.done), s.outer_iterations < ITERATIONS)

    def iterate(s: _AugmentedLagrangianState) -> _AugmentedLagrangianState:
        return _iterate(problem, rows, rho, cones, solver, tolerance, s)

    initial = np.array(problem.a_free if start is None else start)
    none, no = [0.0] * len(cones), 0.0 > 1.0
    zero = _AugmentedLagrangianState(initial, np.zeros(len(rows)), none, none, none, 0.0, 0.0, no, no)
    last = while_loop(unfinished, iterate, zero)
    inconsistent = cond(last.done, lambda: False, lambda: is_inconsistent(rows, last.a))
    inaccurate = logical_or(inconsistent, logical_not(logical_or(last.done, last.usable)))
    return Solution(last.a, last.force, last.iterations, last.done, inconsistent, inaccurate=inaccurate)


def _iterate(
    problem: GaussProblem,
    rows: Rows,
    rho: np.ndarray,
    cones: list[Cone],
    solver: Callable[..., Solution],
    tolerance: float,
    s: _AugmentedLagrangianState,
) -> _AugmentedLagrangianState:
    """One outer iteration: solve with R + rho and aref + rho f, the normals lowered by the slips; update
    both.
    """
    aref = list(rows.aref + rho * s.force)
    for cone, slip in zip(cones, s.slips, strict=True):
        aref[cone.start] = aref[cone.start] - slip
    found = solver(
        problem, rows.replaced(R=rows.R + rho, aref=array(aref)), start=s.a, tolerance=INNER_TOLERANCE
    )
    a = found.acceleration
    slips = [slip_speed(cone, rows.J @ a - rows.aref) for cone in cones]
    residuals = [x - y for x, y in zip(slips, s.slips, strict=True)]
    steady = max_abs(found.force - s.force) <= tolerance * max_abs(found.force)
    done = logical_and(steady, max_abs(residuals) <= tolerance * max_abs(a))
    usable = max_abs(a - s.a) <= USABLE_CHANGE * max_abs(a)
    extrapolated = _extrapolated(slips, residuals, s, ROUNDING * max_abs(a)) if cones else slips
    outer_iterations, iterations = s.outer_iterations + 1, s.iterations + found.iterations
    return _AugmentedLagrangianState(
        a, found.force, extrapolated, slips, residuals, outer_iterations, iterations, done, usable
    )


def _extrapolated(
    slips: list[Any], residuals: list[Any], before: _AugmentedLagrangianState, rounding: Any
) -> list[Any]:
    """Slips for the next iteration by Anderson's method of depth one.

    They are the slips at which the linear interpolant of the last two residuals is least. Extrapolation
    beyond the two iterates is used only if the residuals decrease; residuals below `rounding` are not used
    at all.
    """
    change = [x - y for x, y in zip(residuals, before.slip_residuals, strict=True)]
    size = sum(x * x for x in residuals)
    last = sum(x * x for x in before.slip_residuals)
    length = sum(x * x for x in change)
    share = sum(x * y for x, y in zip(residuals, change, strict=True)) / maximum(length, SMALLEST_SCALE)
    between = logical_and(share > 0, share < 1)
    trusted = logical_and(logical_or(between, size < last), size > rounding * rounding)
    share = where(trusted, clip(share, -LONGEST_EXTRAPOLATION, LONGEST_EXTRAPOLATION), 0.0)
    return [maximum(x - share * (x - y), 0.0) for x, y in zip(slips, before.found_slips, strict=True)]
