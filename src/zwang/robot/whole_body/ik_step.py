"""One step of whole-body inverse kinematics as Gauss's problem with rows, on any scalar.

The displacement x (nv,) of the step takes the place of the acceleration. For each priority

    minimise   1/2 (x - x_free)^T M (x - x_free) + sum 1/2 |w (J x - gain e)|^2
    subject to J x = J x_before of the tasks before, J x = -r of loops, and J x >= b of limits

with M = (damping + w_posture^2) 1 and x_free the pull of the posture. Tasks are soft equality rows,
R = 1/w^2, limits are one-sided rows; `zwang.solver.newton` solves the problem by its active-set Newton
method. Rows that must hold have a small R, and their reference is shifted by R f, the method of multipliers,
so that they hold exactly.
Source: Escande, Mansard, Wieber, Int. J. Robotics Research 33 (2014) 1006, for priorities with inequalities;
Rockafellar, Math. Oper. Res. 1 (1976) 97, for the multipliers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from zwang.algebra.norms import max_abs, norm
from zwang.algebra.rotations import logarithm
from zwang.constraint.rows import Rows, concatenated, scalar_array
from zwang.dynamics.gauss import GaussProblem
from zwang.kinematics.configuration import difference_configuration, integrate_configuration
from zwang.kinematics.kinematics import Kinematics
from zwang.robot.whole_body.problem import WholeBodyProblem
from zwang.robot.whole_body.step_rows import (
    StepBounds,
    TaskRows,
    TaskTarget,
    avoidance_rows,
    bound_rows,
    loop_rows,
    plain_rows,
    posture_error,
    rows_of_task,
    step_bounds,
    within_ball_limits,
)
from zwang.robot.whole_body.weighted_tasks import PostureTask
from zwang.scalar import absolute, logical_and, logical_or, maximum, minimum, where, while_loop
from zwang.solver.newton import newton
from zwang.solver.solution import Solution

COMPLIANCE = 1e-4  # R of rows that must hold, relative to that of the row with the largest weight
HOLDING_PASSES = 4  # solutions with shifted references; each multiplies the residual by about COMPLIANCE
FURTHER_PASSES = 20  # at most, while Newton's method ends before the solution
BALANCE = 1e-6  # largest residual of the force balance of a solution, relative to the forces in it
ROUNDING = 1e-14  # of a row's residual, relative to x; its force has the rounding error ROUNDING / R


class Displacement(NamedTuple):
    """The displacement x (nv,) of a step, and whether the solver failed."""

    x: np.ndarray
    failed: Any


class Level(NamedTuple):
    """The tasks of one priority: the soft rows, the diagonal of M, and M x_free (nv,)."""

    rows: list[TaskRows]
    gains: list[float]
    diagonal: list[Any]
    pull: list[Any]


def displacement(
    problem: WholeBodyProblem,
    kinematics: Kinematics,
    targets: Sequence[TaskTarget],
    h: Any,
    damping: Any = 0,
    priorities: int | None = None,
) -> Displacement:
    """The displacement of one step h [s] from the configuration of `kinematics`, with its poses computed.

    targets: one for each task, with "p" and "R" of a frame, "p" of the centre of mass, "q" of a posture.
    damping: added to that of the problem. priorities: how many of them are considered, default all;
    0 for limits, distances and loops alone.
    """
    q = kinematics.q
    considered = problem.priorities[:priorities] or [[]]
    levels = [_level(problem, numbers, kinematics, targets, damping) for numbers in considered]
    scale = max([1.0, *(float(w) ** 2 for level in levels for rows in level.rows for w in rows.weight)])
    R = COMPLIANCE / scale
    bounds = step_bounds(problem, q, h)
    limits = [*bound_rows(problem, bounds, q, R), *avoidance_rows(problem, kinematics, R)]
    held = [(rows.J, rows.e) for rows in loop_rows(problem, kinematics)]
    failed: Any = 0.0 > 1.0
    x = np.zeros(problem.mechanism.nv)
    for number, level in enumerate(levels):
        x, level_failed = _solved(problem, level, held, limits, R)
        failed = logical_or(failed, level_failed)
        if number + 1 < len(levels):
            held += [(rows.J, rows.J @ x) for rows in level.rows]
            held += _held_posture(problem, number, x)
    return Displacement(_within(problem, q, x, bounds), failed)


def _level(
    problem: WholeBodyProblem,
    numbers: list[int],
    kinematics: Kinematics,
    targets: Sequence[TaskTarget],
    damping: Any,
) -> Level:
    """The tasks of one priority at this configuration."""
    nv = problem.mechanism.nv
    rows, gains = [], []
    total = problem.damping + damping
    diagonal: list[Any] = [0] * nv
    pull: list[Any] = [0] * nv
    for number in numbers:
        task = problem.tasks[number]
        if isinstance(task, PostureTask):
            squares = problem.posture_weights(task) ** 2
            e = posture_error(problem, kinematics.q, targets[number])
            diagonal = [d + w if w else d for d, w in zip(diagonal, squares, strict=True)]
            pull = [p + w * task.gain * x if w else p for p, w, x in zip(pull, squares, e, strict=True)]
            continue
        own = rows_of_task(problem, number, kinematics, targets[number])
        rows.append(own)
        gains.append(task.gain)
        if task.damping:
            weighted = own.e * own.weight * task.gain
            total = total + task.damping * (weighted @ weighted)
    return Level(rows, gains, [d + total for d in diagonal], pull)


def _solved(
    problem: WholeBodyProblem,
    level: Level,
    held: list[tuple[np.ndarray, Any]],
    limits: list[Rows],
    R: float,
) -> tuple[np.ndarray, Any]:
    """The displacement of one priority and whether the solver failed."""
    nv = problem.mechanism.nv
    M = np.zeros((nv, nv), int).astype(object)
    for k, d in enumerate(level.diagonal):
        M[k, k] = d
    x_free = scalar_array([p / d for p, d in zip(level.pull, level.diagonal, strict=True)])
    gauss = GaussProblem(M, x_free, problem.parents)
    soft = [
        plain_rows(f"task {k}", "equality", own.J, gain * own.e, list(1 / own.weight**2))
        for k, (own, gain) in enumerate(zip(level.rows, level.gains, strict=True))
    ]
    fixed = [plain_rows(f"held {k}", "equality", J, b, [R] * len(J)) for k, (J, b) in enumerate(held)]
    rows = concatenated([*soft, *fixed, *limits], nv)
    first = sum(len(part) for part in soft)
    if first == len(rows):
        found = newton(gauss, rows)
        return found.acceleration, logical_or(found.failed, _is_unbalanced(gauss, rows, found, R))

    def unfinished(carry: Any) -> Any:
        _, _, failed, passes = carry
        return logical_or(
            passes < HOLDING_PASSES, logical_and(failed, passes < HOLDING_PASSES + FURTHER_PASSES)
        )

    def shifted(carry: Any) -> Any:
        aref, x, _, passes = carry
        now = rows.replaced(aref=np.concatenate([rows.aref[:first], aref]))
        found = newton(gauss, now, start=x)
        failed = logical_or(found.failed, _is_unbalanced(gauss, rows, found, R))
        # the reference of rows that must hold: b + R f
        return rows.aref[first:] + R * found.force[first:], found.acceleration, failed, passes + 1

    start = rows.aref[first:], x_free, 0.0 > 1.0, 0.0
    _, x, failed, _ = while_loop(unfinished, shifted, start)
    return x, failed


def _is_unbalanced(gauss: GaussProblem, rows: Rows, found: Solution, R: float) -> Any:
    """Whether M (x - x_free) differs from J^T f: the solver has ended before the solution."""
    smooth = gauss.M @ (found.acceleration - gauss.a_free)
    rounding = ROUNDING / R * max_abs(found.acceleration)
    allowed = BALANCE * (max_abs(smooth) + max_abs(found.force)) + rounding
    return max_abs(smooth - rows.J.T @ found.force) > allowed


def _held_posture(problem: WholeBodyProblem, number: int, x: np.ndarray) -> list[tuple[np.ndarray, Any]]:
    """The rows that keep the displacements with a weight in posture tasks of one priority."""
    nv, weighted = problem.mechanism.nv, set()
    for k in problem.priorities[number]:
        task = problem.tasks[k]
        if isinstance(task, PostureTask):
            weighted |= set(np.flatnonzero(problem.posture_weights(task)).tolist())
    chosen = sorted(weighted)
    return [(np.eye(nv, dtype=int)[[k]], [x[k]]) for k in chosen]


def _within(problem: WholeBodyProblem, q: Any, x: np.ndarray, bounds: Sequence[StepBounds]) -> np.ndarray:
    """x, with the rounding beyond its bounds removed, and with the rotations of ball joints to which the
    linear row of their limit leads replaced by those to the nearest rotations within it.
    """
    tree, values = problem.mechanism.tree, list(x)
    reach = {k: upper for k, _, upper in bounds}
    after = integrate_configuration(tree, q, x)
    nearest = difference_configuration(tree, within_ball_limits(problem, after), q)
    for coordinates, velocities, limit in problem.limited_balls:
        beyond = norm(logarithm(after[coordinates])) > limit
        numbers = range(velocities.start, velocities.stop)
        # a part of the way to a rotation within the limit is within both limits
        factor: Any = 1.0
        for k in numbers:
            if k in reach:
                factor = minimum(factor, reach[k] / maximum(absolute(nearest[k]), reach[k]))
        for k in numbers:
            values[k] = where(beyond, factor * nearest[k], values[k])
    for k, lower, upper in bounds:
        values[k] = minimum(maximum(values[k], lower), upper)
    return scalar_array(values)
