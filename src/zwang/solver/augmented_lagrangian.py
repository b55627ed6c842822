"""Exact rows beside soft ones, by the method of multipliers: solve softly, add the force found to what is wanted, repeat.

With f_k the last forces a row of small R = rho wants aref + rho f_k. In the dual this is the proximal point method: it converges to
forces of the problem with R = 0, by a factor rho / (rho + A) a round, and needs no rank: what rows that depend on each other cannot
agree on stays as it began, at an even share. Source: Rockafellar, Math. Oper. Res. 1 (1976) 97.

A hard contact follows Coulomb's law to the letter. The convex problem lifts what slips, as it lets a cone's rows leave within the dual cone:
y_0 = |(friction_j y_j)|. What is wanted of the normal is lowered by just that, round by round. Source: De Saxce, Feng, Math. Comput.
Modelling 28 (1998) 225. Where a body is about to jam these rounds are slow, so each looks ahead along the last two. Source: Anderson, J. ACM 12
(1965) 547, of depth one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from zwang.constraint.rows import Rows, array
from zwang.dynamics.gauss import GaussProblem
from zwang.scalar import clip, cond, logical_and, logical_not, logical_or, maximum, where, while_loop
from zwang.solver.null_space import is_contradictory
from zwang.solver.solution import SMALLEST, Solution, max_abs, slip_speed

SOFTENING = 1e-3  # of inequalities, relative to a row's weight
EQUALITY_SOFTENING = (
    1e-5  # of equalities: their rows nearly depend on each other where loops pass singular positions
)
ROUNDS = 200
TOLERANCE = 1e-11  # of the forces' change; rounding leaves 1e-12, as 1 / rho is large
SETTLED = 1e-5  # of the accelerations' change: what they are good for where the forces go on sliding from row to row
FARTHEST = 100.0  # rounds that one looks ahead
BLUR = 1e-11  # of misses, relative to the accelerations: their line is rounding
INNER = 1e-13  # of the soft problems, which only approach the hard one


class _State(NamedTuple):
    """Accelerations, forces, what slips by how much in each hard cone, rounds and iterations so far; done, or nearly.

    slips: what the round to come takes them for. replies, missed: what the last round found, and by how much that was more than taken.
    """

    a: np.ndarray
    force: np.ndarray
    slips: list[Any]
    replies: list[Any]
    residual: list[Any]
    rounds: Any
    iterations: Any
    done: Any
    settled: Any


def augmented_lagrangian(
    problem: GaussProblem,
    rows: Rows,
    solver: Callable[..., Solution],
    *,
    start: Any = None,
    tolerance: float = TOLERANCE,
) -> Solution:
    """The solution of a problem some of whose rows have R = 0, by rounds of `solver` on soft rows."""
    hard = rows.hard
    softening = [EQUALITY_SOFTENING if kind == "equality" else SOFTENING for kind in rows.kinds]
    rho = array([s * w if h else 0 for s, w, h in zip(softening, rows.weight, hard, strict=True)])
    cones = [cone for cone in rows.cones if hard[cone.start]]

    def slips(a: Any) -> list[Any]:
        return [slip_speed(cone, rows.J @ a - rows.aref) for cone in cones]

    def wanted(s: _State) -> Any:
        return logical_and(logical_not(s.done), s.rounds < ROUNDS)

    def improve(s: _State) -> _State:
        aref = list(rows.aref + rho * s.force)
        for cone, size in zip(cones, s.slips, strict=True):
            aref[cone.start] = aref[cone.start] - size
        found = solver(problem, rows.replaced(R=rows.R + rho, aref=array(aref)), start=s.a, tolerance=INNER)
        a, now = found.acceleration, slips(found.acceleration)
        residual = [x - y for x, y in zip(now, s.slips, strict=True)]
        steady = max_abs(found.force - s.force) <= tolerance * max_abs(found.force)
        done = logical_and(steady, max_abs(residual) <= tolerance * max_abs(a))
        settled = max_abs(a - s.a) <= SETTLED * max_abs(a)
        ahead = _ahead(now, residual, s, BLUR * max_abs(a)) if cones else now
        rounds, iterations = s.rounds + 1, s.iterations + found.iterations
        return _State(a, found.force, ahead, now, residual, rounds, iterations, done, settled)

    begin = np.array(problem.a_free if start is None else start)
    none = [0.0] * len(cones)
    zero = _State(begin, np.zeros(len(rows)), none, none, none, 0.0, 0.0, 0.0 > 1.0, 0.0 > 1.0)
    last = while_loop(wanted, improve, zero)
    inconsistent = cond(last.done, lambda: False, lambda: is_contradictory(rows, last.a))
    unsettled = logical_not(logical_or(last.done, last.settled))
    return Solution(
        last.a,
        last.force,
        last.iterations,
        last.done,
        inconsistent,
        unsettled=logical_or(inconsistent, unsettled),
    )


def _ahead(now: list[Any], residual: list[Any], before: _State, blur: Any) -> list[Any]:
    """The slips at which the last two rounds' misses, continued on a line, are least: between them, or beyond if misses shrink; else, or where they are a blur, just what was found."""
    turn = [x - y for x, y in zip(residual, before.residual, strict=True)]
    size, last = sum(x * x for x in residual), sum(x * x for x in before.residual)
    length = sum(x * x for x in turn)
    share = sum(x * y for x, y in zip(residual, turn, strict=True)) / maximum(length, SMALLEST)
    between = logical_and(share > 0, share < 1)
    trusted = logical_and(logical_or(between, size < last), size > blur * blur)
    share = where(trusted, clip(share, -FARTHEST, FARTHEST), 0.0)
    return [maximum(x - share * (x - y), 0.0) for x, y in zip(now, before.replies, strict=True)]
