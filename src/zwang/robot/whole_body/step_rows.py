"""The rows of one step of whole-body inverse kinematics: tasks, loops, limits, distances.

The unknown x (nv,) is the displacement of the configuration in one step. A task is J x = gain e, a limit
J x >= b, a loop of violation r is J x = -r.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from zwang.algebra.norms import norm
from zwang.algebra.rotations import exponential, logarithm
from zwang.constraint.context import RowContext, StepForm
from zwang.constraint.hard import holonomic_violation
from zwang.constraint.rows import Rows, rows_of_kind
from zwang.dynamics.energy import mass_centre_with_jacobian
from zwang.kinematics.configuration import difference_configuration
from zwang.kinematics.kinematics import Kinematics
from zwang.robot.inverse_kinematics.tasks import IKTask, task_error, task_jacobian
from zwang.robot.whole_body.avoided_pairs import distance_jacobian
from zwang.robot.whole_body.problem import WholeBodyProblem
from zwang.robot.whole_body.weighted_tasks import ComTask, FrameTask
from zwang.scalar import less, maximum, minimum, sqrt, where

TaskTarget = Mapping[str, Any]


class TaskRows(NamedTuple):
    """J (m, nv) and the error e (m,) of one task, target minus value, with the weight of each row."""

    J: np.ndarray
    e: np.ndarray
    weight: np.ndarray


class StepBounds(NamedTuple):
    """For each bounded velocity the smallest and the largest displacement in one step."""

    velocity: int
    lower: Any
    upper: Any


def rows_of_task(
    problem: WholeBodyProblem, number: int, kinematics: Kinematics, target: TaskTarget
) -> TaskRows:
    """The rows of a task on a frame or on the centre of mass."""
    task, tree = problem.tasks[number], problem.mechanism.tree
    if isinstance(task, FrameTask):
        chosen = IKTask(task.frame, task.components, task.axes)
        e = task_error(chosen, kinematics.frame_pose(task.frame), target)
        return TaskRows(task_jacobian(tree, kinematics.poses, chosen), e, task.row_weights)
    assert isinstance(task, ComTask)
    c, J = mass_centre_with_jacobian(kinematics)
    return TaskRows(J[task.rows], (np.asarray(target["p"]) - c)[task.rows], task.row_weights)


def posture_error(problem: WholeBodyProblem, q: Any, target: TaskTarget) -> np.ndarray:
    """The displacement (nv,) from q to the target configuration."""
    return difference_configuration(problem.mechanism.tree, target["q"], q)


def loop_rows(problem: WholeBodyProblem, kinematics: Kinematics) -> list[TaskRows]:
    """The rows J x = -r of the loops and couplings."""
    m, q = problem.mechanism, kinematics.q
    if not problem.loops:
        return []
    at_rest = kinematics.with_velocities(np.zeros(m.nv, int))
    context = RowContext(m, q, at_rest.v, at_rest, problem.inverse_weights, StepForm(m.options.timestep))
    violations = [holonomic_violation(context, constraint) for constraint in problem.loops]
    return [TaskRows(np.asarray(v.J), -np.asarray(v.r), np.ones(len(v.r))) for v in violations]


def step_bounds(problem: WholeBodyProblem, q: Any, h: Any) -> list[StepBounds]:
    """The displacements that the limits of joints and of their speeds allow in one step h [s].

    A joint beyond its limit returns at its largest speed.
    """
    found = []
    for k, (i, lower, upper) in problem.bounds.items():
        speed = float(problem.speed_limits[k])
        low, high = (limit - q[i] if np.isfinite(limit) else limit for limit in (lower, upper))
        if np.isfinite(speed):
            reach = speed * h
            low = -reach if np.isinf(lower) else minimum(maximum(low, -reach), reach)
            high = reach if np.isinf(upper) else maximum(minimum(high, reach), -reach)
        found.append(StepBounds(k, low, high))
    return found


def bounded_ends(lower: Any, upper: Any) -> list[tuple[int, Any]]:
    """(sign, b) of the rows sign x >= b of one velocity, without those of infinite bounds."""
    ends = [(1, lower), (-1, -upper)]
    return [(sign, b) for sign, b in ends if not (isinstance(b, float) and np.isinf(b))]


def bound_rows(problem: WholeBodyProblem, bounds: Sequence[StepBounds], q: Any) -> list[Rows]:
    """One-sided rows of the bounds, x_k >= lower and -x_k >= -upper, and of the angles of ball joints."""
    nv, parts = problem.mechanism.nv, []
    unit = np.eye(nv, dtype=int)
    for k, lower, upper in bounds:
        ends = bounded_ends(lower, upper)
        if ends:
            sign, b = zip(*ends, strict=True)
            parts.append(plain_rows(f"limit {k}", "limit", np.outer(sign, unit[k]), list(b)))
    for coordinates, velocities, largest in problem.limited_balls:
        # largest - |phi| - (phi / |phi|) . x >= 0 with the rotation vector phi
        phi = logarithm(q[coordinates])
        angle = sqrt(maximum(phi @ phi, 1e-300))
        J = np.zeros((1, nv), int).astype(object)
        J[0, velocities] = [-x / angle for x in phi]
        parts.append(plain_rows(f"limit of {coordinates}", "limit", J, [angle - largest]))
    return parts


def within_ball_limits(problem: WholeBodyProblem, q: Any) -> np.ndarray:
    """q, with the rotation vectors of ball joints that are longer than their limits shortened to these."""
    values = np.array(q)
    for coordinates, _, largest in problem.limited_balls:
        phi = logarithm(q[coordinates])
        angle = norm(phi)
        beyond = angle > largest
        shortened = exponential(phi * (largest / where(beyond, angle, 1.0)))
        values[coordinates] = [
            where(beyond, x, old) for x, old in zip(shortened, values[coordinates], strict=True)
        ]
    return values


def avoidance_rows(problem: WholeBodyProblem, kinematics: Kinematics) -> list[Rows]:
    """One-sided rows J x >= gain (distance - d) of the pairs of shapes that keep a distance."""
    parts = []
    found = zip(problem.avoidance, problem.distances(kinematics.poses), strict=True)
    for number, ((item, a, b), near) in enumerate(found):
        detected = item.distance + item.detection
        d, J = near.distance, distance_jacobian(kinematics, a, b, near)
        missing = item.distance - d
        # a pair that is too near has the whole way to go
        aref = where(missing > 0, missing, item.gain * missing)
        row = plain_rows(f"distance {number}", "limit", J.reshape(1, -1), [aref])
        parts.append(row.replaced(active=np.array([less(d, detected)])))
    return parts


def plain_rows(name: str, kind: str, J: np.ndarray, aref: Any, R: Sequence[float] | float = 0) -> Rows:
    """Rows without stabilisation: J x = aref, or J x >= aref, with the regularisation R, by default none."""
    return rows_of_kind(name, kind, J, list(aref), R=R)
