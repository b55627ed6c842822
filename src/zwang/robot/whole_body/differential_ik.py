"""Differential whole-body inverse kinematics: the velocities of one step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from zwang.api.arguments import validation
from zwang.api.compilation.cache_key import IdentityKey
from zwang.errors import DescriptionError, StateError
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.type_validation import validated_arguments
from zwang.robot.inverse_kinematics.ik_solution import Residual
from zwang.robot.task_space import configurations
from zwang.robot.whole_body.problem import WholeBodyProblem, whole_body_problem
from zwang.robot.whole_body.task_targets import read_targets
from zwang.robot.whole_body.weighted_tasks import CollisionAvoidance, WeightedTask
from zwang.robot.whole_body.whole_body_functions import WholeBodyFunctions

DEFAULT_DAMPING = 1e-6


@dataclass(frozen=True)
class IKStep:
    """The result of `differential_ik`; of a batch, arrays have the batch's shape (...) first.

    v (..., nv): the generalised velocities of the step, NaN where the solver failed. q (..., nq): the
    configuration after the step. residual: the errors before it, position (..., tasks) [m] and orientation
    (..., tasks) [rad], 0 for postures. solved (...): whether the solver converged and the rows of limits,
    loops and higher priorities hold, unless they contradict each other. violation (...): of loops, couplings
    and formulas after the step, the largest relative to the sizes of their rows. Of those that agree with
    each other and with the limits it is of second order in the step.
    """

    v: np.ndarray
    q: np.ndarray
    residual: Residual
    solved: np.ndarray | bool
    violation: np.ndarray | float


@validated_arguments("tasks", "targets", "avoid")
def differential_ik(
    mechanism: Mechanism,
    tasks: WeightedTask | Sequence[WeightedTask],
    targets: Sequence[Any],
    q: ArrayLike | Mapping[str, ArrayLike] | str,
    step: float,
    *,
    damping: float = DEFAULT_DAMPING,
    limits: bool = True,
    speed_limits: bool | ArrayLike = True,
    avoid: CollisionAvoidance | Sequence[CollisionAvoidance] = (),
    threads: int | None = None,
    compiled: bool = True,
) -> IKStep:
    """The velocities of one step that bring tasks nearest to their targets, as Gauss's problem with rows.

    tasks: `FrameTask`, `ComTask`, `PostureTask`, one or several. targets: a list with one entry for each: a
    pose (R, p) or a 4x4 matrix of a frame, p (3,) where only its position has weights, R where only its
    orientation has; a position (3,) [m] of the centre of mass; a configuration (nq,) of a posture; or None
    for what q has. Each may be a batch (..., ...).
    q: configuration (nq,), or a batch (..., nq), or by name as for `solve_ik`. step: its duration h [s].

    The displacement x = h v minimises sum |w (J x - gain e)|^2 + damping |x|^2 over the tasks of the first
    priority, then over those of the next with the first ones kept, and so on.
    damping [1/rad^2, 1/m^2 of a unit weight]: positive, default 1e-6. limits: whether joint limits apply to
    the configuration after the step, default True. speed_limits: True (default) for the `velocity_limit` of
    the joints, False for none, or (nv,) [rad/s, m/s], one for each velocity. Both are one-sided rows, and
    hold exactly: the rotation vector of a ball joint, whose limit is linearised at q, is shortened to its
    limit after the step.
    avoid: distances to be kept, as one-sided rows, linearised at q. Loops, couplings and `Holonomic`
    constraints that act are kept, and their violation is removed.
    threads: by default one for each core. compiled: False evaluates the same algorithm on floats.

    Raises UnknownNameError for frames and bodies, DescriptionError for tasks, options and constraints of
    velocities, ShapeError and StateError for arrays, ParameterError for symbols without values.
    Source: Gauss's principle with soft rows, see `zwang.robot.whole_body.ik_step`.
    """
    m = validation.numeric_mechanism(mechanism)
    if not validation.real(step, "step", "a number of seconds") > 0:
        raise StateError(f"step is {step}; it must be a positive number of seconds")
    problem = problem_of(m, tasks, damping, limits, speed_limits, avoid)
    start = configurations(m, q)
    found = read_targets(m, problem.tasks, targets, start)
    functions = functions_of(problem, found.kinds, threads, compiled)
    made = functions.step(start, float(step), found.arrays)
    residual, solved = Residual(made.position, made.orientation), made.failed[..., 0] == 0
    return IKStep(made.v, made.q, residual, solved, made.violation[..., 0])


def problem_of(
    m: Mechanism, tasks: Any, damping: float, limits: bool, speed_limits: Any, avoid: Any
) -> WholeBodyProblem:
    """The problem of these arguments, kept so that its functions are compiled once."""
    if not 0 < damping < np.inf:
        raise DescriptionError(f"damping is {damping}; it must be positive, such as {DEFAULT_DAMPING}")
    chosen = tuple(tasks) if isinstance(tasks, (list, tuple)) else (tasks,)
    for task in chosen:
        if not isinstance(task, WeightedTask):
            raise DescriptionError(
                f"tasks has a {type(task).__name__}; give zw.robot.FrameTask, ComTask or PostureTask"
            )
    kept = tuple(avoid) if isinstance(avoid, (list, tuple)) else (avoid,)
    for item in kept:
        if not isinstance(item, CollisionAvoidance):
            raise DescriptionError(f"avoid has a {type(item).__name__}; give CollisionAvoidance")
    speeds = _speed_limits(m, speed_limits)
    return _problem(IdentityKey(m), chosen, float(damping), bool(limits), tuple(speeds), kept)


@lru_cache(maxsize=64)
def _problem(
    same: IdentityKey,
    tasks: tuple[WeightedTask, ...],
    damping: float,
    limits: bool,
    speeds: tuple[float, ...],
    avoid: tuple[CollisionAvoidance, ...],
) -> WholeBodyProblem:
    return whole_body_problem(same.mechanism, tasks, damping, limits, np.array(speeds), avoid)


@lru_cache(maxsize=64)
def functions_of(
    problem: WholeBodyProblem, kinds: tuple[tuple[str, ...], ...], threads: int | None, compiled: bool
) -> WholeBodyFunctions:
    """The functions of a problem, kept so that they are compiled once."""
    return WholeBodyFunctions(problem, kinds, threads, compiled)


def _speed_limits(m: Mechanism, given: Any) -> np.ndarray:
    """The speed limits (nv,), infinite where there are none."""
    speeds = np.full(m.nv, np.inf)
    if given is False:
        return speeds
    if given is not True:
        speeds = validation.real_values(given, "speed_limits")
        if speeds.shape != (m.nv,) or not (speeds > 0).all():
            raise StateError(
                f"speed_limits must be {m.nv} positive numbers, infinite where there is no limit"
            )
        return speeds
    for index in m.joints:
        limit = getattr(index.joint, "velocity_limit", None)
        if limit is not None:
            speeds[index.v] = float(limit)
    return speeds
