"""Inverse kinematics by Levenberg and Marquardt, as one loop over a generic scalar.

With the errors e of the tasks, positions measured in a length L, and the damping lam = mu E, E = |e|^2 / 2, each turn takes the step

    dq = J^T (J J^T + lam 1)^-1 e,

in which joints at a limit that would push on have no part. Damping by the error itself keeps far steps bounded and near ones
quadratic. Source: Levenberg (1944), Marquardt (1963); Chan, Lawrence, IEEE ICRA (1988) 1236, for damping by the error; Bertsekas (1982),
Projected Newton methods, for the limits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from zwang.algebra.linear import cholesky, cholesky_solve
from zwang.kinematics.poses import link_poses, place_pose
from zwang.mechanism.tree import Tree
from zwang.robot.coordinates import Coordinates
from zwang.robot.tasks import Task, task_error, task_jacobian
from zwang.scalar import absolute, logical_and, logical_or, maximum, sqrt, where, while_loop

GOING, CONVERGED, STALLED = 0.0, 1.0, 2.0

DAMPING = 0.1  # mu: of 0.01 to 1 the value with the fewest turns over random poses of three arms
SMALLEST_DAMPING = 1e-9
PATIENCE = 8  # turns before a start that gets no nearer is given up
NO_PROGRESS = 1e-4  # E above which a start that gets no nearer, or hardly moves, is given up
HARDLY = 1e-3  # a step that hardly moves [rad, L]
AT_REST = 1e-10  # a step of a patient search that is over


@dataclass(frozen=True)
class Problem:
    """Tasks for the frames of a tree, the coordinates that may be chosen, and the length L [m] that one radian weighs."""

    tree: Tree
    tasks: tuple[Task, ...]
    coordinates: Coordinates
    length: float
    bounded: bool = True


class Settings(NamedTuple):
    """What a search may do: tolerances [m] and [rad], turns, and whether it is patient: it then steps back whenever the error
    has grown, and only ends where no step helps."""

    position: Any = 1e-6
    orientation: Any = 1e-6
    turns: Any = 20.0
    patient: Any = 0.0


class Search(NamedTuple):
    """A search's state: q and the best q so far, its error E, its residuals [m] and [rad], the last E, damping, turns, status."""

    q: Any
    best: Any
    error: Any
    position: Any
    orientation: Any
    last: Any
    mu: Any
    turns: Any
    status: Any


def residuals(problem: Problem, q: Any, targets: Any) -> tuple[list[np.ndarray], Any, Any]:
    """The tasks' errors, and the largest position error [m] and orientation error [rad] among them."""
    poses = link_poses(problem.tree, q)
    errors, position, orientation = [], 0.0, 0.0
    for task, target in zip(problem.tasks, targets, strict=True):
        e = task_error(task, place_pose(poses, problem.tree.place(task.frame)), target)
        count = sum(row < 3 for row in task.rows)
        errors.append(e)
        if count:
            position = maximum(position, sqrt(e[:count] @ e[:count]))
        if count < len(e):
            orientation = maximum(orientation, sqrt(e[count:] @ e[count:]))
    return errors, position, orientation


def task_rows(problem: Problem, q: Any) -> np.ndarray:
    """J (m, free) of all tasks, one below the other [m, rad]."""
    poses = link_poses(problem.tree, q)
    J = np.concatenate([task_jacobian(problem.tree, poses, task) for task in problem.tasks])
    return problem.coordinates.columns(J, q)


def scales(problem: Problem) -> np.ndarray:
    """What each row counts: a task's weight, and positions per length L."""
    return np.array(
        [t.weight / (problem.length if row < 3 else 1.0) for t in problem.tasks for row in t.rows]
    )


def search(problem: Problem, start: Any, targets: list[Mapping[str, Any]], settings: Settings) -> Search:
    """Turns of Levenberg and Marquardt from `start` until converged, given up, or out of turns."""
    first = Search(start, start, 1e300, 1e300, 1e300, 1e300, DAMPING, 0.0, GOING)

    def going(s: Search) -> Any:
        return logical_and(s.status < 0.5, s.turns <= settings.turns)

    return while_loop(going, lambda s: _turn(problem, s, targets, settings), first)


def _turn(problem: Problem, s: Search, targets: Any, settings: Settings) -> Search:
    errors, position, orientation = residuals(problem, s.q, targets)
    weights = scales(problem)
    e = np.concatenate(errors) * weights
    E = e @ e / 2
    patient = settings.patient > 0.5
    better = E < s.error
    back = logical_and(patient, E >= s.error)
    mu = where(back, 4 * s.mu, maximum(s.mu / 2, DAMPING))
    J = task_rows(problem, s.q) * weights[:, None]
    step = damped_step(problem, s.q, J, e, mu * E + SMALLEST_DAMPING)
    converged = logical_and(position < settings.position, orientation < settings.orientation)
    size = _largest(step)
    stuck = logical_and(size < HARDLY, E > NO_PROGRESS)
    slow = logical_and(logical_and(E >= s.last, E > NO_PROGRESS), s.turns >= PATIENCE)
    over = where(
        patient,
        where(size < AT_REST, 1.0, where(mu > 1e12, 1.0, 0.0)),
        where(logical_or(stuck, slow), 1.0, 0.0),
    )
    status = where(converged, CONVERGED, where(over > 0.5, STALLED, GOING))
    moved = problem.coordinates.stepped(s.q, step, bounded=problem.bounded)
    q = _choose(status > 0.5, s.q, _choose(back, s.best, moved))
    return Search(
        q,
        _choose(better, s.q, s.best),
        where(better, E, s.error),
        where(better, position, s.position),
        where(better, orientation, s.orientation),
        E,
        mu,
        where(status > 0.5, s.turns, s.turns + 1),
        status,
    )


def damped_step(problem: Problem, q: Any, J: np.ndarray, e: np.ndarray, damping: Any) -> np.ndarray:
    """dq (free,) = J^T (J J^T + damping 1)^-1 e over the joints that do not push against a limit.

    The same as (J^T J + damping 1)^-1 J^T e, which is taken where there are more rows than joints.
    """
    gradient = J.T @ e
    if problem.bounded:
        J = np.stack(
            [
                _held(problem, q, k, g, column)
                for k, g, column in zip(problem.coordinates.free, gradient, J.T)
            ],
            axis=1,
        )
    m, n = J.shape
    if m <= n:
        return J.T @ cholesky_solve(cholesky(_gram(J, damping)), e)
    return cholesky_solve(cholesky(_gram(J.T, damping)), J.T @ e)


def _gram(J: np.ndarray, damping: Any) -> list[list[Any]]:
    """J J^T + damping 1, its lower half."""
    return [[J[i] @ J[j] + (damping if i == j else 0) for j in range(i + 1)] for i in range(len(J))]


def _held(problem: Problem, q: Any, speed: int, gradient: Any, column: np.ndarray) -> np.ndarray:
    """A joint's column of J: zero while the joint stands at a limit and the error pushes it out."""
    c = problem.coordinates
    i = c.coordinate_of_speed.get(speed)
    if i is None or not c.limited(i):
        return column
    at_lower = logical_and(q[i] <= float(c.lower[i]), gradient < 0)
    at_upper = logical_and(q[i] >= float(c.upper[i]), gradient > 0)
    held = logical_or(at_lower, at_upper)
    return np.array([where(held, 0.0, x) for x in column])


def _largest(step: np.ndarray) -> Any:
    size: Any = 0.0
    for x in step:
        size = maximum(size, absolute(x))
    return size


def _choose(condition: Any, x: Any, y: Any) -> np.ndarray:
    return np.array([where(condition, a, b) for a, b in zip(x, y, strict=True)])
