"""Inverse kinematics by the Levenberg-Marquardt method, as one loop over a generic scalar.

With the task errors e and the displacements dq, in which positions are divided by the characteristic length
L, and the damping lam = mu E, E = |e|^2 / 2, each iteration takes the step

    dq = J^T (J J^T + lam 1)^-1 e.

Columns of joints that are at a limit and would move beyond it are left out. Damping proportional to the error
bounds the steps far from the target and keeps the convergence near it quadratic.
Source: Levenberg (1944), Marquardt (1963); Chan, Lawrence, IEEE ICRA (1988) 1236, for damping by the error;
Bertsekas (1982), Projected Newton methods, for the limits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from zwang.algebra.factorization import cholesky, cholesky_solve
from zwang.constraint.context import RowContext, StepForm
from zwang.constraint.equality import Violation
from zwang.constraint.hard import holonomic_violation
from zwang.constraint.inverse_weights import InverseWeights
from zwang.constraint.row_sizes import row_sizes, row_tolerances
from zwang.kinematics.kinematics import Kinematics
from zwang.kinematics.poses import Pose, link_poses, placement_pose
from zwang.mechanism.constraints import JointCoupling, Weld
from zwang.mechanism.lengths import translations
from zwang.mechanism.mechanism import Mechanism
from zwang.robot.holonomic_constraints import HolonomicConstraint
from zwang.robot.independent_coordinates import IndependentCoordinates
from zwang.robot.inverse_kinematics.tasks import IKTask, task_error, task_jacobian
from zwang.scalar import absolute, logical_and, logical_or, maximum, sqrt, where, while_loop

TaskTarget = Mapping[str, Any]
NullSpaceObjective = Callable[[Any], Any]

RUNNING, CONVERGED, STAGNATED = 0.0, 1.0, 2.0

DAMPING = (
    0.1  # smallest mu; of 0.01 to 1 the value with the fewest iterations over random poses of three arms
)
NULL_SPACE_STEP = 0.2  # [rad, m] largest entry of a step along an objective
SMALLEST_DAMPING = 1e-9
STAGNATION_ITERATIONS = 8  # iterations before a search whose error does not decrease is terminated
STAGNATION_COST = 1e-4  # E above which a search with small steps or without decrease is terminated
SMALLEST_STEP = 1e-3  # [rad, L] a smaller step counts as stagnation
SMALLEST_DECREASE = 1e-10  # a refinement ends below this predicted relative decrease of E
LARGEST_DAMPING = 1e12  # a refinement ends at this mu, where no step decreases E


@dataclass(frozen=True)
class LoopConstraints:
    """Loop constraints that a solution must satisfy, and the inverse weights of their mechanism."""

    mechanism: Mechanism
    constraints: tuple[HolonomicConstraint, ...]
    weights: InverseWeights


@dataclass(frozen=True)
class Problem:
    """An inverse-kinematics problem.

    tasks: of the frames. coordinates: those that may change. length: the characteristic length L [m].
    loops: constraints to keep closed. bounded: whether the joint limits apply.
    """

    tasks: tuple[IKTask, ...]
    coordinates: IndependentCoordinates
    length: float
    loops: LoopConstraints | None = None
    bounded: bool = True

    @property
    def units(self) -> np.ndarray:
        """The unit (free,) of each displacement: 1 rad, and L for translations."""
        slides = translations(self.coordinates.tree)
        return np.array([self.length if k in slides else 1.0 for k in self.coordinates.free])


class Settings(NamedTuple):
    """Settings of one search.

    position, orientation: tolerances [m] and [rad]. iteration_limit: the largest number of iterations.
    refine: 1 for a search that rejects steps which increase the error and ends only where no step decreases
    it; 0 for a search that terminates early when it stagnates, to be restarted elsewhere.
    """

    position: Any = 1e-6
    orientation: Any = 1e-6
    iteration_limit: Any = 16.0
    refine: Any = 0.0


class SearchState(NamedTuple):
    """State of a search.

    q: the current iterate. best: the converged q, otherwise that of the smallest E so far, with its cost E
    and its residuals [m] and [rad]. last: the previous E. predicted: the decrease of E that the linear model
    predicted for the last step. mu: the damping factor. iterations: their number. status: RUNNING, CONVERGED
    or STAGNATED.
    """

    q: Any
    best: Any
    cost: Any
    position: Any
    orientation: Any
    last: Any
    predicted: Any
    mu: Any
    iterations: Any
    status: Any


class Errors(NamedTuple):
    """All errors e (m,) [m, rad], which of them are positions, and the largest of either kind."""

    e: np.ndarray
    linear: tuple[bool, ...]
    position: Any
    orientation: Any


def errors_of(problem: Problem, poses: list[Pose], q: Any, targets: Sequence[TaskTarget]) -> Errors:
    """The errors of all tasks, followed by the negative violations of the loop constraints.

    The violation of a formula counts as a position.
    """
    parts: list[tuple[np.ndarray, int]] = []
    for task, target in zip(problem.tasks, targets, strict=True):
        e = task_error(task, placement_pose(poses, problem.coordinates.tree.placement(task.frame)), target)
        parts.append((e, sum(row < 3 for row in task.rows)))
    for violation, count in _violations(problem, poses, q):
        parts.append((-np.asarray(violation.r), count))
    # the largest position error and the largest orientation error of a task or loop
    position, orientation = 0.0, 0.0
    for e, count in parts:
        if count:
            position = maximum(position, _norm(e[:count]))
        if count < len(e):
            orientation = maximum(orientation, _norm(e[count:]))
    linear = tuple(i < count for e, count in parts for i in range(len(e)))
    return Errors(np.concatenate([e for e, _ in parts]), linear, position, orientation)


def error_jacobian(problem: Problem, poses: list[Pose], q: Any) -> np.ndarray:
    """J (m, free) of all tasks and loop constraints by the independent velocities [m, rad]."""
    tree = problem.coordinates.tree
    parts = [task_jacobian(tree, poses, task) for task in problem.tasks]
    parts += [np.asarray(violation.J) for violation, _ in _violations(problem, poses, q)]
    return problem.coordinates.columns(np.concatenate(parts), q)


def _violations(problem: Problem, poses: list[Pose], q: Any) -> list[tuple[Violation, int]]:
    """The violations of the loop constraints at q, with their Jacobians, and how many of the rows of each are
    positions; the others are angles.
    """
    if problem.loops is None:
        return []
    m, weights = problem.loops.mechanism, problem.loops.weights
    at_rest = np.zeros(m.nv, int)
    kinematics = Kinematics.at_poses(m.tree, q, at_rest, poses)
    context = RowContext(m, q, at_rest, kinematics, weights, StepForm(m.options.timestep))
    found = []
    for constraint in problem.loops.constraints:
        violation, count = holonomic_violation(context, constraint), 0
        if isinstance(constraint, Weld):
            count = 3
        elif not (isinstance(constraint, JointCoupling) and m.joint(constraint.joint).kind != "prismatic"):
            count = len(violation.r)
        found.append((violation, count))
    return found


def loop_sizes(problem: Problem, poses: list[Pose], q: Any) -> tuple[np.ndarray, np.ndarray]:
    """The sizes (k,) of the rows of the loop constraints at q, and the factors (k,) of their tolerances; see
    `row_sizes`.
    """
    if problem.loops is None:
        return np.zeros(0), np.zeros(0)
    m, constraints = problem.loops.mechanism, problem.loops.constraints
    A = np.concatenate([np.asarray(violation.J) for violation, _ in _violations(problem, poses, q)])
    return np.array(row_sizes(m, constraints, A)), np.array(row_tolerances(m, constraints, q, A))


def row_weights(problem: Problem, linear: tuple[bool, ...]) -> np.ndarray:
    """The weight of each row: the task's weight (1 for a loop), divided by L for positions."""
    weights = [task.weight for task in problem.tasks for _ in task.rows]
    weights += [1.0] * (len(linear) - len(weights))
    return np.array(
        [w / (problem.length if is_position else 1.0) for w, is_position in zip(weights, linear, strict=True)]
    )


def levenberg_marquardt(
    problem: Problem, start: Any, targets: Sequence[TaskTarget], settings: Settings
) -> SearchState:
    """Levenberg-Marquardt from `start` until the search converges, stagnates or reaches its limit."""

    def running(s: SearchState) -> Any:
        return logical_and(s.status < 0.5, s.iterations <= settings.iteration_limit)

    return while_loop(
        running, lambda s: iterate(problem, s, targets, settings), initial_search(problem, start)
    )


def initial_search(problem: Problem, start: Any) -> SearchState:
    """The state before the first iteration."""
    q = problem.coordinates.completed(start)
    return SearchState(q, q, 1e300, 1e300, 1e300, 1e300, 0.0, DAMPING, 0.0, RUNNING)


def iterate(
    problem: Problem, s: SearchState, targets: Sequence[TaskTarget], settings: Settings
) -> SearchState:
    """One iteration: the errors at s.q, the status, and the next iterate."""
    poses = link_poses(problem.coordinates.tree, s.q)
    errors = errors_of(problem, poses, s.q, targets)
    weights = row_weights(problem, errors.linear)
    e = errors.e * weights
    cost = e @ e / 2
    converged = logical_and(errors.position < settings.position, errors.orientation < settings.orientation)
    # E weighs positions against angles, so that it may be larger at the first iterate within both tolerances
    better = logical_or(converged, cost < s.cost)
    # the damping factor: 4 mu after a rejected step, 2 mu after a poor one, else mu / 2
    refine = settings.refine > 0.5
    rejected = logical_and(refine, cost > s.cost)
    poor = logical_and(refine, s.last - cost < s.predicted / 4)
    mu = where(rejected, 4 * s.mu, where(poor, 2 * s.mu, maximum(s.mu / 2, DAMPING)))
    # dq = J^T (J J^T + mu E 1)^-1 e, with translations divided by L
    J = error_jacobian(problem, poses, s.q) * weights[:, None] * problem.units
    J = without_blocked_columns(problem, s.q, J, e)
    step = damped_step(J, e, mu * cost + SMALLEST_DAMPING)
    predicted = (J @ step) @ e
    status = _status(s, settings, converged, cost, mu, step, predicted)
    stepped = problem.coordinates.stepped(s.q, problem.units * step, bounded=problem.bounded)
    ended = status > 0.5
    return SearchState(
        q=select_array(ended, s.q, select_array(rejected, s.best, stepped)),
        best=select_array(better, s.q, s.best),
        cost=where(better, cost, s.cost),
        position=where(better, errors.position, s.position),
        orientation=where(better, errors.orientation, s.orientation),
        last=cost,
        predicted=where(rejected, 0.0, predicted),
        mu=mu,
        iterations=where(ended, s.iterations, s.iterations + 1),
        status=status,
    )


def _status(
    s: SearchState, settings: Settings, converged: Any, cost: Any, mu: Any, step: np.ndarray, predicted: Any
) -> Any:
    """CONVERGED within the tolerances, STAGNATED by the criterion of the settings, otherwise RUNNING."""
    far = cost > STAGNATION_COST
    slow = logical_and(cost >= s.last, s.iterations >= STAGNATION_ITERATIONS)
    no_progress = logical_and(far, logical_or(_largest(step) < SMALLEST_STEP, slow))
    stationary = logical_or(predicted < SMALLEST_DECREASE * cost, mu > LARGEST_DAMPING)
    refine = settings.refine > 0.5
    stagnated = logical_or(logical_and(refine, stationary), logical_and(settings.refine < 0.5, no_progress))
    return where(converged, CONVERGED, where(stagnated, STAGNATED, RUNNING))


def damped_step(J: np.ndarray, e: np.ndarray, damping: Any) -> np.ndarray:
    """Damped least-squares step dq (n,) = J^T (J J^T + damping 1)^-1 e for J (m, n).

    For m > n it is computed as (J^T J + damping 1)^-1 J^T e, which is the same.
    """
    if J.shape[0] <= J.shape[1]:
        return J.T @ cholesky_solve(cholesky(_gram(J, damping)), e)
    return cholesky_solve(cholesky(_gram(J.T, damping)), J.T @ e)


def _gram(J: np.ndarray, damping: Any) -> list[list[Any]]:
    """The lower half of J J^T + damping 1."""
    return [[J[i] @ J[j] + (damping if i == j else 0) for j in range(i + 1)] for i in range(len(J))]


def without_blocked_columns(problem: Problem, q: Any, J: np.ndarray, e: np.ndarray) -> np.ndarray:
    """J with zero columns for joints that are at a limit and that the gradient J^T e drives beyond it."""
    if not problem.bounded:
        return J
    gradient = J.T @ e
    velocities = problem.coordinates.free
    columns = [
        _unless_blocked(problem.coordinates, q, k, g, c)
        for k, g, c in zip(velocities, gradient, J.T, strict=True)
    ]
    return np.stack(columns, axis=1)


def _unless_blocked(
    c: IndependentCoordinates, q: Any, velocity: int, gradient: Any, column: np.ndarray
) -> np.ndarray:
    """`column`, or zeros if the joint of this velocity is at a limit and the gradient points beyond it."""
    i = c.coordinate_of_speed.get(velocity)
    if i is None or not c.limited(i):
        return column
    at_lower = logical_and(q[i] <= float(c.lower[i]), gradient < 0)
    at_upper = logical_and(q[i] >= float(c.upper[i]), gradient > 0)
    blocked = logical_or(at_lower, at_upper)
    return np.array([where(blocked, 0.0, x) for x in column])


def follow_null_space(
    problem: Problem,
    start: Any,
    targets: Sequence[TaskTarget],
    settings: Settings,
    objective: NullSpaceObjective,
) -> tuple[Any, Any, Any, Any]:
    """q, the size of the last step, and the residuals, after following a null-space objective.

    The iteration dq = J^+ e + (1 - J^+ J) z with z = objective(q) (free,), at most `NULL_SPACE_STEP`, ends
    when the step is smaller than the position tolerance. Source: Liegeois, IEEE Trans. SMC 7 (1977) 868.
    """

    def running(state: Any) -> Any:
        return logical_and(state[1] > settings.position, state[4] <= settings.iteration_limit)

    def body(state: Any) -> Any:
        q, _, _, _, iterations = state
        poses = link_poses(problem.coordinates.tree, q)
        errors = errors_of(problem, poses, q, targets)
        weights = row_weights(problem, errors.linear)
        e = errors.e * weights
        J = without_blocked_columns(problem, q, error_jacobian(problem, poses, q) * weights[:, None], e)
        z = without_blocked_columns(problem, q, np.asarray(objective(q)).reshape(1, -1), np.array([1]))[0]
        z = z * (NULL_SPACE_STEP / maximum(NULL_SPACE_STEP, _largest(z)))
        # dq = J^+ e + z - J^+ J z
        step = damped_step(J, e, SMALLEST_DAMPING) + z - damped_step(J, J @ z, SMALLEST_DAMPING)
        stepped = problem.coordinates.stepped(q, step, bounded=problem.bounded)
        return stepped, _largest(step), errors.position, errors.orientation, iterations + 1

    q, size, position, orientation, _ = while_loop(running, body, (start, 1.0, 0.0, 0.0, 0.0))
    return q, size, position, orientation


def _norm(x: np.ndarray) -> Any:
    return sqrt(x @ x)


def _largest(step: np.ndarray) -> Any:
    """The largest absolute entry."""
    size: Any = 0.0
    for x in step:
        size = maximum(size, absolute(x))
    return size


def select_array(condition: Any, x: Any, y: Any) -> np.ndarray:
    """x where the condition is true, else y, element by element."""
    return np.array([where(condition, a, b) for a, b in zip(x, y, strict=True)])
