"""Inverse kinematics by Levenberg and Marquardt, as one loop over a generic scalar.

With the errors e of the tasks, positions measured in a length L, and the damping lam = mu E, E = |e|^2 / 2, each turn takes the step

    dq = J^T (J J^T + lam 1)^-1 e,

in which joints at a limit that would push on have no part. Damping by the error itself keeps far steps bounded and near ones
quadratic. Source: Levenberg (1944), Marquardt (1963); Chan, Lawrence, IEEE ICRA (1988) 1236, for damping by the error; Bertsekas (1982),
Projected Newton methods, for the limits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from zwang.algebra.factorization import cholesky, cholesky_solve
from zwang.constraint.context import RowContext
from zwang.constraint.equality import violation_of
from zwang.constraint.inverse_weights import InverseWeights
from zwang.kinematics.poses import Pose, link_poses, placement_pose
from zwang.mechanism.mechanism import Mechanism
from zwang.robot.independent_coordinates import IndependentCoordinates
from zwang.robot.tasks import Task, task_error, task_jacobian
from zwang.scalar import absolute, logical_and, logical_or, maximum, sqrt, where, while_loop

GOING, CONVERGED, STALLED = 0.0, 1.0, 2.0

DAMPING = 0.1  # mu: of 0.01 to 1 the value with the fewest turns over random poses of three arms
SMALLEST_DAMPING = 1e-9
PATIENCE = 8  # turns before a start that gets no nearer is given up
NO_PROGRESS = 1e-4  # E above which a start that gets no nearer, or hardly moves, is given up
HARDLY = 1e-3  # a step that hardly moves [rad, L]
AT_REST = 1e-10  # the part of E that the next step promises to save, below which a patient search is over
FIRM = 1e12  # the damping at which a patient search sees that no step helps


@dataclass(frozen=True)
class LoopConstraints:
    """The loops and couplings that have to stay closed, with the weights that `constraint` knows of the mechanism."""

    mechanism: Mechanism
    constraints: tuple[Any, ...]
    weights: InverseWeights


@dataclass(frozen=True)
class Problem:
    """Tasks for frames, loops to keep closed, the coordinates that may be chosen, and the length L [m] that weighs one radian.

    bounded: whether the limits of the joints hold.
    """

    tasks: tuple[Task, ...]
    coordinates: IndependentCoordinates
    length: float
    loops: LoopConstraints | None = None
    bounded: bool = True


class Settings(NamedTuple):
    """What a search may do: tolerances [m] and [rad], turns, and whether it is patient: it then steps back whenever the error
    has grown, and ends only where no step helps."""

    position: Any = 1e-6
    orientation: Any = 1e-6
    turns: Any = 16.0
    patient: Any = 0.0


class Search(NamedTuple):
    """A search's state: q; the best q so far, its cost E, its residuals [m] and [rad]; the last E, what the step from there
    promised to save of it, damping, turns, status."""

    q: Any
    best: Any
    cost: Any
    position: Any
    orientation: Any
    last: Any
    promised: Any
    mu: Any
    turns: Any
    status: Any


class Errors(NamedTuple):
    """All errors e (m,) [m, rad], which of them are positions, and the largest position and orientation error of a task."""

    e: np.ndarray
    linear: tuple[bool, ...]
    position: Any
    orientation: Any


def errors_of(problem: Problem, poses: list[Pose], q: Any, targets: Any) -> Errors:
    """The tasks' errors, then what the loops are open by."""
    parts: list[tuple[np.ndarray, int]] = []
    for task, target in zip(problem.tasks, targets, strict=True):
        e = task_error(task, placement_pose(poses, problem.coordinates.tree.place(task.frame)), target)
        parts.append((e, sum(row < 3 for row in task.rows)))
    for violation in _violations(problem, poses, q):
        parts.append((-np.asarray(violation.r), min(3, len(violation.r))))
    position, orientation = 0.0, 0.0
    for e, count in parts:
        if count:
            position = maximum(position, _norm(e[:count]))
        if count < len(e):
            orientation = maximum(orientation, _norm(e[count:]))
    linear = tuple(i < count for e, count in parts for i in range(len(e)))
    return Errors(np.concatenate([e for e, _ in parts]), linear, position, orientation)


def rows_of(problem: Problem, poses: list[Pose], q: Any) -> np.ndarray:
    """J (m, free) of all tasks and loops, one below the other [m, rad]."""
    tree = problem.coordinates.tree
    parts = [task_jacobian(tree, poses, task) for task in problem.tasks]
    parts += [np.asarray(violation.J) for violation in _violations(problem, poses, q)]
    return problem.coordinates.columns(np.concatenate(parts), q)


def _violations(problem: Problem, poses: list[Pose], q: Any) -> list[Any]:
    if problem.loops is None:
        return []
    m, weights = problem.loops.mechanism, problem.loops.weights
    instant = RowContext(m, q, np.zeros(m.nv, int), poses, weights, m.options.timestep)
    return [violation_of(instant, constraint) for constraint in problem.loops.constraints]


def scales(problem: Problem, linear: tuple[bool, ...]) -> np.ndarray:
    """What each row counts: a task's weight (a loop's is 1), and positions per length L."""
    weights = [task.weight for task in problem.tasks for _ in task.rows]
    weights += [1.0] * (len(linear) - len(weights))
    return np.array(
        [w / (problem.length if is_position else 1.0) for w, is_position in zip(weights, linear, strict=True)]
    )


def search(problem: Problem, start: Any, targets: Sequence[Mapping[str, Any]], settings: Settings) -> Search:
    """Turns of Levenberg and Marquardt from `start` until converged, given up, or out of turns."""

    def going(s: Search) -> Any:
        return logical_and(s.status < 0.5, s.turns <= settings.turns)

    return while_loop(going, lambda s: iterate(problem, s, targets, settings), initial_search(problem, start))


def initial_search(problem: Problem, start: Any) -> Search:
    """The state before the first turn."""
    q = problem.coordinates.completed(start)
    return Search(q, q, 1e300, 1e300, 1e300, 1e300, 0.0, DAMPING, 0.0, GOING)


def iterate(problem: Problem, s: Search, targets: Any, settings: Settings) -> Search:
    """One turn: the errors at s.q, whether to end there, and the next q."""
    poses = link_poses(problem.coordinates.tree, s.q)
    errors = errors_of(problem, poses, s.q, targets)
    weights = scales(problem, errors.linear)
    e = errors.e * weights
    cost = e @ e / 2
    better = cost < s.cost
    patient = settings.patient > 0.5
    back = logical_and(patient, cost > s.cost)
    poor = logical_and(patient, s.last - cost < s.promised / 4)
    mu = where(back, 4 * s.mu, where(poor, 2 * s.mu, maximum(s.mu / 2, DAMPING)))
    J = without_blocked_columns(problem, s.q, rows_of(problem, poses, s.q) * weights[:, None], e)
    step = damped_step(J, e, mu * cost + SMALLEST_DAMPING)
    saved = (J @ step) @ e
    status = _status(s, settings, errors, cost, mu, step, saved)
    moved = problem.coordinates.stepped(s.q, step, bounded=problem.bounded)
    ended = status > 0.5
    return Search(
        q=select_array(ended, s.q, select_array(back, s.best, moved)),
        best=select_array(better, s.q, s.best),
        cost=where(better, cost, s.cost),
        position=where(better, errors.position, s.position),
        orientation=where(better, errors.orientation, s.orientation),
        last=cost,
        promised=where(back, 0.0, saved),
        mu=mu,
        turns=where(ended, s.turns, s.turns + 1),
        status=status,
    )


def _status(
    s: Search, settings: Settings, errors: Errors, cost: Any, mu: Any, step: np.ndarray, saved: Any
) -> Any:
    """Converged; stalled, where a patient search rests and another one is slow or hardly moves; or going."""
    converged = logical_and(errors.position < settings.position, errors.orientation < settings.orientation)
    far = cost > NO_PROGRESS
    slow = logical_and(cost >= s.last, s.turns >= PATIENCE)
    given_up = logical_and(far, logical_or(_largest(step) < HARDLY, slow))
    at_rest = logical_or(saved < AT_REST * cost, mu > FIRM)
    patient = settings.patient > 0.5
    over = logical_or(logical_and(patient, at_rest), logical_and(settings.patient < 0.5, given_up))
    return where(converged, CONVERGED, where(over, STALLED, GOING))


def damped_step(J: np.ndarray, e: np.ndarray, damping: Any) -> np.ndarray:
    """dq (n,) = J^T (J J^T + damping 1)^-1 e; the same as (J^T J + damping 1)^-1 J^T e, if J (m, n) has more rows than columns."""
    if J.shape[0] <= J.shape[1]:
        return J.T @ cholesky_solve(cholesky(_gram(J, damping)), e)
    return cholesky_solve(cholesky(_gram(J.T, damping)), J.T @ e)


def _gram(J: np.ndarray, damping: Any) -> list[list[Any]]:
    """J J^T + damping 1, its lower half."""
    return [[J[i] @ J[j] + (damping if i == j else 0) for j in range(i + 1)] for i in range(len(J))]


def without_blocked_columns(problem: Problem, q: Any, J: np.ndarray, e: np.ndarray) -> np.ndarray:
    """J without the columns of joints that stand at a limit and that the errors e push out."""
    if not problem.bounded:
        return J
    push = J.T @ e
    speeds = problem.coordinates.free
    columns = [
        column_held(problem.coordinates, q, k, g, c) for k, g, c in zip(speeds, push, J.T, strict=True)
    ]
    return np.stack(columns, axis=1)


def column_held(c: IndependentCoordinates, q: Any, speed: int, push: Any, column: np.ndarray) -> np.ndarray:
    """`column`, or zeros if the speed's joint stands at a limit and is pushed out."""
    i = c.coordinate_of_speed.get(speed)
    if i is None or not c.limited(i):
        return column
    at_lower = logical_and(q[i] <= float(c.lower[i]), push < 0)
    at_upper = logical_and(q[i] >= float(c.upper[i]), push > 0)
    stuck = logical_or(at_lower, at_upper)
    return np.array([where(stuck, 0.0, x) for x in column])


def follow_null_space(
    problem: Problem, start: Any, targets: Any, settings: Settings, wish: Callable[[Any], Any]
) -> tuple[Any, Any, Any, Any]:
    """q, the size of the last step and the residuals, after turns that follow wish(q) (free,) in the tasks' null space.

    dq = J^+ e + (1 - J^+ J) wish, until it moves less than the tolerance. Source: Liegeois, IEEE Trans. SMC 7 (1977) 868.
    """

    def going(state: Any) -> Any:
        return logical_and(state[1] > settings.position, state[4] <= settings.turns)

    def body(state: Any) -> Any:
        q, _, _, _, turns = state
        poses = link_poses(problem.coordinates.tree, q)
        errors = errors_of(problem, poses, q, targets)
        weights = scales(problem, errors.linear)
        e = errors.e * weights
        J = without_blocked_columns(problem, q, rows_of(problem, poses, q) * weights[:, None], e)
        z = without_blocked_columns(problem, q, np.asarray(wish(q)).reshape(1, -1), np.array([1]))[0]
        step = damped_step(J, e, SMALLEST_DAMPING) + z - damped_step(J, J @ z, SMALLEST_DAMPING)
        moved = problem.coordinates.stepped(q, step, bounded=problem.bounded)
        return moved, _largest(step), errors.position, errors.orientation, turns + 1

    q, size, position, orientation, _ = while_loop(going, body, (start, 1.0, 0.0, 0.0, 0.0))
    return q, size, position, orientation


def _norm(x: np.ndarray) -> Any:
    return sqrt(x @ x)


def _largest(step: np.ndarray) -> Any:
    size: Any = 0.0
    for x in step:
        size = maximum(size, absolute(x))
    return size


def select_array(condition: Any, x: Any, y: Any) -> np.ndarray:
    """x where the condition holds, else y, element by element."""
    return np.array([where(condition, a, b) for a, b in zip(x, y, strict=True)])
