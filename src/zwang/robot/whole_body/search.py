"""Whole-body inverse kinematics of a target, as a loop of steps over a generic scalar.

Each iteration takes the step of `zwang.robot.whole_body.ik_step`, damped by mu and no longer than
`LARGEST_ROTATION`, from the best configuration so far. A step that does not decrease the merit

    |E_0| + nu |r| + kappa c_1 + kappa^2 c_2 + ...,    c_k = 1/2 |E_k|^2

of the weighted errors E_k of the priorities k, and of the violations r of loops and distances, is rejected,
and mu becomes larger; otherwise it becomes smaller. The norms are exact penalties.
Source: Levenberg (1944), Marquardt (1963); Nocedal, Wright, Numerical Optimization (2006), Sections 17.2,
for exact penalties, and 18.3, for the second-order correction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from zwang.algebra.norms import max_abs, norm
from zwang.algebra.rotations import logarithm
from zwang.constraint.row_sizes import row_tolerances
from zwang.dynamics.energy import mass_centre_with_jacobian
from zwang.kinematics.configuration import integrate_configuration
from zwang.kinematics.kinematics import Kinematics
from zwang.mechanism.lengths import displacement_sizes, translations
from zwang.robot.inverse_kinematics.levenberg_marquardt import select_array
from zwang.robot.whole_body.ik_step import displacement
from zwang.robot.whole_body.problem import WholeBodyProblem
from zwang.robot.whole_body.step_rows import (
    TaskRows,
    TaskTarget,
    loop_rows,
    posture_error,
    rows_of_task,
    within_ball_limits,
)
from zwang.robot.whole_body.weighted_tasks import ComTask, FrameTask, PostureTask
from zwang.scalar import (
    absolute,
    equal,
    fori_loop,
    logical_and,
    logical_not,
    logical_or,
    maximum,
    minimum,
    sqrt,
    where,
    while_loop,
)

INITIAL_DAMPING = 1e-3  # mu at the start, relative to the squared weighted error there
SMALLEST_REJECTED = 1e-4  # mu after a rejected step is at least this, by the largest squares of J
LARGEST_DAMPING = 1e8  # a search ends at this mu, by it too, where no step decreases the merit
KAPPA = 0.01  # of the merit
PENALTY = 5.0  # nu of the merit, relative to the largest weight
KEPT = 1e-8  # penalty of loops and distances within the tolerance
SMALLEST_DECREASE = 1e-7  # a search ends at this relative change of the merit
LARGEST_ROTATION = 0.5  # [rad] of a step; translations are not limited
LOOP_TOLERANCE = 1e-6  # of violations of loops and couplings, relative to the sizes of their rows
DISTANCE_TOLERANCE = 1e-6  # of distances to be kept, relative to the largest length of the mechanism


class WholeBodySettings(NamedTuple):
    """Settings of a search: tolerances [m] and [rad], the step at which it ends [rad, or relative to the size
    of a translation], and its limit.
    """

    position: Any
    orientation: Any
    step: Any
    iteration_limit: Any


class WholeBodySearch(NamedTuple):
    """State of a search: q, its merit, and how many priorities it reaches; the last q that reaches the most,
    and how many; the damping mu, iterations, whether it has ended, and whether the solver of a step failed.
    """

    q: Any
    merit: Any
    reached: Any
    best: Any
    most_reached: Any
    mu: Any
    iterations: Any
    ended: Any
    failed: Any


class TaskErrors(NamedTuple):
    """The errors of each task but postures, as norms: position (tasks,) [m] and orientation (tasks,) [rad];
    the largest violation of loops and couplings, and by how much pairs of shapes are too near, both relative
    to sizes; and the costs c_k of the priorities, and the penalty of loops and distances that are not kept.
    """

    position: np.ndarray
    orientation: np.ndarray
    loops: Any
    collision: Any
    costs: list[Any]
    penalty: Any

    def reached(self, problem: WholeBodyProblem, settings: WholeBodySettings) -> Any:
        """How many priorities, from the first one on, have errors within the tolerances; 0 where loops or
        distances are not.
        """
        total: Any = 0.0
        so_far = logical_and(self.loops <= LOOP_TOLERANCE, self.collision <= DISTANCE_TOLERANCE)
        for numbers in problem.priorities:
            for number in numbers:
                so_far = logical_and(so_far, self.position[number] <= settings.position)
                so_far = logical_and(so_far, self.orientation[number] <= settings.orientation)
            total = total + where(so_far, 1.0, 0.0)
        return total

    def merit(self, count: Any) -> Any:
        """The merit of the errors of the first `count` priorities."""
        lower: Any = 0.0
        for k, c in enumerate(self.costs):
            if k:
                lower = lower + where(k < count, KAPPA**k * c, 0.0)
        return sqrt(2 * self.costs[0]) + self.penalty + lower


def completed_targets(
    problem: WholeBodyProblem, start: Any, given: Sequence[Mapping[str, Any]]
) -> list[TaskTarget]:
    """The targets, where those that are not given are what `start` (nq,) has."""
    kinematics = Kinematics(problem.mechanism.tree, start)
    found: list[TaskTarget] = []
    for task, target in zip(problem.tasks, given, strict=True):
        if target:
            found.append(target)
        elif isinstance(task, FrameTask):
            pose = kinematics.frame_pose(task.frame)
            found.append({"p": pose.p, "R": pose.R})
        elif isinstance(task, ComTask):
            found.append({"p": mass_centre_with_jacobian(kinematics)[0]})
        else:
            found.append({"q": start})
    return found


def task_errors(problem: WholeBodyProblem, q: Any, targets: Sequence[TaskTarget]) -> TaskErrors:
    """The errors at q."""
    kinematics = Kinematics(problem.mechanism.tree, q)
    position, orientation = ([0.0] * len(problem.tasks) for _ in range(2))
    costs: list[Any] = []
    for numbers in problem.priorities:
        cost: Any = 0.0
        for number in numbers:
            task = problem.tasks[number]
            if isinstance(task, PostureTask):
                weighted = posture_error(problem, q, targets[number]) * problem.posture_weights(task)
            else:
                rows = rows_of_task(problem, number, kinematics, targets[number])
                linear = sum(i < 3 for i in task.rows)
                position[number], orientation[number] = _norm(rows.e[:linear]), _norm(rows.e[linear:])
                weighted = rows.e * rows.weight
            cost = cost + weighted @ weighted / 2
        costs.append(cost)
    loops = loop_rows(problem, kinematics)
    violations, relative = [x for rows in loops for x in rows.e], _relative_violations(problem, q, loops)
    found = zip(problem.avoidance, problem.distances(kinematics.poses), strict=True)
    nearer = [maximum(item.distance - near.distance, 0.0) for (item, _, _), near in found]
    penalty = (
        PENALTY * largest_weight(problem) * sum((absolute(x) for x in [*violations, *nearer]), start=0.0)
    )
    return TaskErrors(
        np.array(position), np.array(orientation), max_abs(relative),
        max_abs(nearer) / problem.length, costs, penalty,
    )  # fmt: skip


def _relative_violations(problem: WholeBodyProblem, q: Any, loops: Sequence[TaskRows]) -> list[Any]:
    """The violations of loops, relative to the sizes of their rows for tolerances."""
    if not loops:
        return []
    A = np.concatenate([rows.J for rows in loops])
    factors = row_tolerances(problem.mechanism, problem.loops, q, A)
    return [x / factor for x, factor in zip([x for rows in loops for x in rows.e], factors, strict=True)]


def search(
    problem: WholeBodyProblem, start: Any, targets: Sequence[TaskTarget], settings: WholeBodySettings
) -> WholeBodySearch:
    """Steps from `start` (nq,) until no step decreases the merit or the iteration limit is reached: first for
    the tasks of the first priority, then for those of the first two, and so on.

    So a task need not begin before those of higher priority are at their targets, which a step for several
    priorities keeps to first order only. Where a search ends with fewer priorities within the tolerances than
    before, q is the last with more.
    """
    q, total, never = within_limits(problem, start), len(problem.priorities), 0.0 > 1.0
    nothing = WholeBodySearch(q, 0.0, 0.0, q, 0.0, 0.0, 0.0, never, never)

    def continued(k: Any, before: WholeBodySearch) -> WholeBodySearch:
        return search_priorities(problem, before, targets, settings, 1.0 * (k + 1))

    return fori_loop(0, total, continued, nothing, unroll=total == 1)


def search_priorities(
    problem: WholeBodyProblem,
    last: WholeBodySearch,
    targets: Sequence[TaskTarget],
    settings: WholeBodySettings,
    count: Any,
) -> WholeBodySearch:
    """The search for the tasks of the first `count` priorities, after that for one fewer."""
    square, total = problem.largest_square, len(problem.priorities)

    def running(s: WholeBodySearch) -> Any:
        return logical_and(logical_not(s.ended), s.iterations < settings.iteration_limit)

    def iterate(s: WholeBodySearch) -> WholeBodySearch:
        step = step_of_search(problem, s, targets, count)
        errors = task_errors(problem, step.q, targets)
        merit = errors.merit(count)
        usable = logical_and(logical_not(step.failed), merit < np.inf)
        accepted = logical_and(usable, merit <= s.merit)
        mu = where(accepted, s.mu / 4, maximum(4 * s.mu, SMALLEST_REJECTED * square))
        unchanged = absolute(merit - s.merit) <= SMALLEST_DECREASE * s.merit
        stationary = logical_or(step.size <= settings.step, unchanged)
        stationary = logical_or(stationary, mu > LARGEST_DAMPING * square)
        reached = errors.reached(problem, settings)
        done = logical_and(reached > total - 0.5, errors.penalty <= KEPT * problem.length)
        # the search for all of several priorities goes on to the least error of the last one
        done = logical_and(done, logical_or(count < total, count <= 1))
        stationary = logical_or(stationary, logical_and(accepted, done))
        as_many = logical_and(accepted, reached >= s.most_reached)
        return WholeBodySearch(
            select_array(accepted, step.q, s.q),
            where(accepted, merit, s.merit),
            where(accepted, reached, s.reached),
            select_array(as_many, step.q, s.best),
            where(as_many, reached, s.most_reached),
            mu,
            s.iterations + 1,
            logical_or(logical_not(usable), stationary),
            logical_not(usable),
        )

    start = last.q
    errors = task_errors(problem, start, targets)
    mu, never = INITIAL_DAMPING * errors.costs[0], 0.0 > 1.0
    reached = errors.reached(problem, settings)
    before = WholeBodySearch(
        start, errors.merit(count), reached, start, reached, mu, last.iterations, never, never
    )
    found = while_loop(running, iterate, before)
    fewer = logical_and(count > 1, found.reached < found.most_reached)
    q = select_array(fewer, found.best, found.q)
    return found._replace(q=q, failed=logical_or(last.failed, found.failed))


class SearchStep(NamedTuple):
    """A step of a search: the configuration q (nq,) after it, its size, as `WholeBodySettings.step`, and
    whether the solver failed.
    """

    q: np.ndarray
    size: Any
    failed: Any


def step_of_search(
    problem: WholeBodyProblem, s: WholeBodySearch, targets: Sequence[TaskTarget], count: Any
) -> SearchStep:
    """The step for the first `count` priorities, no longer than `LARGEST_ROTATION`, and one for the
    priorities before the last one, or for loops and distances alone, which the first step keeps to first
    order only. The second one is omitted where it is longer.
    """
    tree, sizes = problem.mechanism.tree, displacement_sizes(problem.mechanism)
    is_corrected = len(problem.priorities) > 1 or problem.avoidance or problem.loops

    def move(k: Any, before: SearchStep) -> SearchStep:
        is_first = equal(1.0 * k, 0.0)
        kinematics = Kinematics(tree, before.q).with_computed_poses()
        found = displacement(problem, kinematics, targets, 1.0, where(is_first, s.mu, 0.0), count - 1.0 * k)
        rotation = largest_rotation(problem, found.x)
        shortened = LARGEST_ROTATION / maximum(rotation, LARGEST_ROTATION)
        factor = where(is_first, shortened, where(rotation < LARGEST_ROTATION, 1.0, 0.0))
        x = [where(factor > 0, factor * value, 0.0) for value in found.x]
        size = max_abs([value / own for value, own in zip(found.x, sizes, strict=True)])
        return SearchStep(
            within_limits(problem, integrate_configuration(tree, before.q, np.array(x))),
            where(is_first, size, before.size),
            where(is_first, where(found.failed, 1.0, 0.0), before.failed),
        )

    nothing = SearchStep(s.q, 0.0, 0.0)
    step = fori_loop(0, 2, move, nothing, unroll=False) if is_corrected else move(0, nothing)
    return step._replace(failed=step.failed > 0)


def largest_rotation(problem: WholeBodyProblem, x: np.ndarray) -> Any:
    """The largest absolute value [rad] of a displacement (nv,) but for translations."""
    slides = translations(problem.mechanism.tree)
    return max_abs([value for k, value in enumerate(x) if k not in slides])


def largest_weight(problem: WholeBodyProblem) -> float:
    """The largest weight of a row."""
    weights = [task.row_weights.max() for task in problem.tasks if not isinstance(task, PostureTask)]
    return float(max([1.0, *weights]))


def within_limits(problem: WholeBodyProblem, q: Any) -> np.ndarray:
    """q, with the coordinates and the rotations of ball joints that are beyond their limits moved to them."""
    values = list(within_ball_limits(problem, q))
    for i, lower, upper in problem.bounds.values():
        if np.isfinite(lower):
            values[i] = maximum(values[i], lower)
        if np.isfinite(upper):
            values[i] = minimum(values[i], upper)
    return np.array(values)


def at_a_limit(problem: WholeBodyProblem, q: Any, tolerance: float) -> Any:
    """Whether a joint is at one of its limits."""
    found: Any = 0.0 > 1.0
    for i, lower, upper in problem.bounds.values():
        for limit in (lower, upper):
            if np.isfinite(limit):
                found = logical_or(found, absolute(q[i] - limit) <= tolerance)
    for coordinates, _, largest in problem.limited_balls:
        found = logical_or(found, norm(logarithm(q[coordinates])) >= largest - tolerance)
    return found


def _norm(x: np.ndarray) -> Any:
    return sqrt(x @ x) if len(x) else 0.0
