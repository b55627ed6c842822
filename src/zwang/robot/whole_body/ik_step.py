"""One step of whole-body inverse kinematics as Gauss's problem with rows, on any scalar.

The displacement x (nv,) of the step takes the place of the acceleration. For each priority

    minimise   1/2 (x - x_free)^T M (x - x_free) + sum 1/2 |w (J x - gain e)|^2
    subject to J x = J x_before of the tasks before, J x = -r of loops, and J x >= b of limits

with M = (damping + w_posture^2) 1 and x_free the pull of the posture. Tasks are soft equality rows,
R = 1/w^2, limits are one-sided rows; `zwang.solver.newton` solves the problem by its active-set Newton
method. Rows that must hold have an R that is small against J H^-1 J^T, H the Hessian of the tasks, and their
reference is shifted by R f, the method of multipliers, until they hold. Rows that contradict each other, or
do so nearly, at a singular configuration with joints at their limits, keep the residuals at which x settles.
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
from zwang.robot.whole_body.held_rows import (
    SMALLEST_DENOMINATOR,
    SMALLEST_DISPLACEMENT,
    SMALLEST_ROW,
    HeldRows,
    feasible,
    pressed_velocities,
)
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
from zwang.scalar import (
    absolute,
    cond,
    logical_and,
    logical_not,
    logical_or,
    maximum,
    minimum,
    where,
    while_loop,
)
from zwang.solver.newton import newton
from zwang.solver.solution import Solution

TASK_COMPLIANCE = 1e-4  # R of rows that must hold, relative to J H^-1 J^T of the tasks of the priority
FREE_COMPLIANCE = 1e-8  # the same of damping and postures; rounding errors of x grow as its inverse
HELD = 1e-11  # residual of rows that hold, relative to |J| |x|
SETTLED = 1e-7  # relative change of x in a pass, below which rows that do not hold contradict each other
PASSES = 40  # solutions with shifted references, at most
DECREASE = 0.1  # of the residual in a pass, above which R becomes smaller by this factor
SMALLEST_FACTOR = 1e-4  # of R, in all
LARGEST_RESIDUAL = 1e-6  # relative to |J| |x|, above which the rows do not hold after the last pass
BALANCE = 1e-6  # largest residual of the force balance of a solution, relative to the forces in it
ROUNDING = 1e-14  # of a row's residual, relative to |J| |x|; its force has the rounding error ROUNDING / R


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
    priorities: Any = np.inf,
) -> Displacement:
    """The displacement of one step h [s] from the configuration of `kinematics`, with its poses computed.

    targets: one for each task, with "p" and "R" of a frame, "p" of the centre of mass, "q" of a posture.
    damping: added to that of the problem. priorities: how many of them are considered, default all;
    0 for limits, distances and loops alone.
    """
    q = kinematics.q
    levels = [_level(problem, numbers, kinematics, targets, damping) for numbers in problem.priorities]
    bounds = step_bounds(problem, q, h)
    limits = [*bound_rows(problem, bounds, q), *avoidance_rows(problem, kinematics)]
    held = HeldRows.of(loop_rows(problem, kinematics))
    never = 0.0 > 1.0
    nothing = np.zeros(problem.mechanism.nv), np.zeros(sum(map(len, limits))), never
    x, _, failed = nothing
    if problem.loops or problem.avoidance:
        without_tasks = _level(problem, [], kinematics, targets, damping)
        x, _, failed = cond(
            priorities < 1, lambda: _solved(problem, without_tasks, held, limits), lambda: nothing
        )
    for number, level in enumerate(levels):
        before = x, nothing[1], never
        x, force, level_failed = cond(
            number < priorities,
            lambda own=(level, held, limits): _solved(problem, *own),
            lambda before=before: before,
        )
        failed = logical_or(failed, level_failed)
        if number + 1 < len(levels):
            pressed = pressed_velocities(bounds, force, level.diagonal, x)
            held = held.after(level.rows, _posture_velocities(problem, number), pressed, x)
            limits = feasible(limits, x)
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
    problem: WholeBodyProblem, level: Level, held: HeldRows, limits: list[Rows]
) -> tuple[np.ndarray, np.ndarray, Any]:
    """The displacement of one priority, the forces of the limits, and whether the solver failed."""
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
    tasks = concatenated(soft, nv)
    inverse = _compliance(level, tasks)
    fixed = concatenated(held.as_rows(inverse), nv)
    strict = concatenated([fixed, *limits], nv)
    if not len(strict):
        found = newton(gauss, tasks)
        failed = logical_or(found.failed, _Balance.of(gauss, tasks).is_violated(found))
        return found.acceleration, np.zeros(0), failed
    x, force, failed = _held(gauss, tasks, strict.replaced(R=_compliances(inverse, strict)))
    return x, force[len(fixed) :], failed


def _compliance(level: Level, tasks: Rows) -> list[Any]:
    """1 / (S_k / TASK_COMPLIANCE + M_k / FREE_COMPLIANCE) of each velocity, with the diagonals S of the
    Hessian of the tasks and M of that of damping and postures.
    """
    S = [sum((J * J / R for J, R in zip(J_k, tasks.R, strict=True)), start=0.0) for J_k in tasks.J.T]
    stiffness = [s / TASK_COMPLIANCE + d / FREE_COMPLIANCE for s, d in zip(S, level.diagonal, strict=True)]
    return [1 / k for k in stiffness]


def _compliances(inverse: Sequence[Any], strict: Rows) -> np.ndarray:
    """R of rows that must hold: sum_k J_k^2 inverse_k, with the compliance of each velocity."""
    R = [sum((J * J * w for J, w in zip(row, inverse, strict=True)), start=0.0) for row in strict.J]
    largest = maximum(max_abs(R), SMALLEST_DENOMINATOR)
    return scalar_array([where(value > SMALLEST_ROW**2 * largest, value, largest) for value in R])


class _Pass(NamedTuple):
    """A solution x (nv,) of the method of multipliers, and the forces f (n,) of the rows that must hold.

    factor: of R. largest: the largest displacement so far, at least `SMALLEST_DISPLACEMENT`. residual: b -
    J x of these rows, of inactive ones R times their change of force, relative to |J| and `largest`. change:
    of x in this pass, relative to `largest`. failed: whether Newton's method has ended before the solution.
    passes: their number.
    """

    x: np.ndarray
    f: np.ndarray
    factor: Any
    largest: Any
    residual: Any
    change: Any
    failed: Any
    passes: Any


def _held(gauss: GaussProblem, tasks: Rows, strict: Rows) -> tuple[np.ndarray, np.ndarray, Any]:
    """The displacement for which the rows `strict` hold, their forces, and whether the solver failed."""
    rows, first = concatenated([tasks, strict], len(gauss.a_free)), len(tasks)
    balance = _Balance.of(gauss, rows)
    sizes = balance.sizes[first:]
    smallest = maximum(SMALLEST_ROW * max_abs(sizes), SMALLEST_DENOMINATOR)
    weights = [1 / maximum(size, smallest) for size in sizes]

    def is_settled(s: _Pass) -> Any:
        return logical_and(s.change <= SETTLED, DECREASE * s.factor < SMALLEST_FACTOR)

    def unfinished(s: _Pass) -> Any:
        over = logical_or(s.residual <= HELD, is_settled(s))
        return logical_and(logical_or(logical_not(over), s.failed), s.passes < PASSES)

    def shifted(s: _Pass) -> _Pass:
        R = s.factor * strict.R
        # the reference of rows that must hold: b + R f
        aref = np.concatenate([tasks.aref, strict.aref + R * s.f])
        found = newton(gauss, rows.replaced(aref=aref, R=np.concatenate([tasks.R, R])), start=s.x)
        x, f = found.acceleration, found.force[first:]
        largest = maximum(s.largest, max_abs(x))
        residual = max_abs(R * (f - s.f) * weights) / largest
        slow = residual > DECREASE * s.residual
        factor = where(slow, maximum(DECREASE * s.factor, SMALLEST_FACTOR), s.factor)
        failed = logical_or(found.failed, balance.is_violated(found, s.factor))
        return _Pass(x, f, factor, largest, residual, max_abs(x - s.x) / largest, failed, s.passes + 1)

    never, x = 0.0 > 1.0, gauss.a_free
    largest = maximum(max_abs(x), SMALLEST_DISPLACEMENT)
    start = _Pass(x, np.zeros(len(strict)), 1.0, largest, np.inf, np.inf, never, 0.0)
    last = while_loop(unfinished, shifted, start)
    lost = logical_and(last.residual > LARGEST_RESIDUAL, logical_not(is_settled(last)))
    return last.x, last.f, logical_or(last.failed, lost)


class _Balance(NamedTuple):
    """The balance M (x - x_free) = J^T f of rows of the size |J| (n,).

    rounding: the error of J^T f for a unit x.
    """

    gauss: GaussProblem
    J: np.ndarray
    sizes: list[Any]
    rounding: Any

    @staticmethod
    def of(gauss: GaussProblem, rows: Rows) -> _Balance:
        sizes = [sum((absolute(J) for J in row), start=0.0) for row in rows.J]
        stiffness = [size * size / R for size, R in zip(sizes, rows.R, strict=True)]
        return _Balance(gauss, rows.J, sizes, ROUNDING * max_abs(stiffness))

    def is_violated(self, found: Solution, factor: Any = 1) -> Any:
        """Whether the solver has ended before the solution, where R is `factor` times that of the rows."""
        smooth = self.gauss.M @ (found.acceleration - self.gauss.a_free)
        force = max_abs(found.force * self.sizes)
        allowed = BALANCE * (max_abs(smooth) + force) + self.rounding / factor * max_abs(found.acceleration)
        return max_abs(smooth - self.J.T @ found.force) > allowed


def _posture_velocities(problem: WholeBodyProblem, number: int) -> list[int]:
    """The velocities that have a weight in posture tasks of one priority."""
    weighted = set[int]()
    for k in problem.priorities[number]:
        task = problem.tasks[k]
        if isinstance(task, PostureTask):
            weighted |= set(np.flatnonzero(problem.posture_weights(task)).tolist())
    return sorted(weighted)


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
