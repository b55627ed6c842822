"""The problem of whole-body inverse kinematics: a mechanism, its tasks by priority, and its limits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from zwang.collision.distances import ShapeDistance, shape_distances
from zwang.collision.pairs import CollisionShape
from zwang.constraint.inverse_weights import InverseWeights, inverse_weights
from zwang.dynamics.energy import positive_total_mass
from zwang.dynamics.forward_dynamics_crba import velocity_parents
from zwang.errors import DescriptionError, ShapeError
from zwang.kinematics.poses import Pose
from zwang.mechanism.lengths import largest_length, translations
from zwang.mechanism.mechanism import Mechanism
from zwang.robot.holonomic_constraints import HolonomicConstraint, holonomic_constraints
from zwang.robot.independent_coordinates import joint_limits
from zwang.robot.whole_body.avoided_pairs import avoided_pairs
from zwang.robot.whole_body.weighted_tasks import (
    CollisionAvoidance,
    ComTask,
    FrameTask,
    PostureTask,
    WeightedTask,
)


@dataclass(frozen=True, eq=False)
class WholeBodyProblem:
    """A mechanism with tasks and limits.

    tasks: in the order of their targets. damping: added to the Hessian's diagonal. limits: whether the
    joint limits apply. speed_limits (nv,) [rad/s, m/s]: infinite where there are none. avoidance: the pairs
    of shapes that keep a distance, with the `CollisionAvoidance` of each.
    """

    mechanism: Mechanism
    tasks: tuple[WeightedTask, ...]
    damping: float
    limits: bool
    speed_limits: np.ndarray
    avoidance: tuple[tuple[CollisionAvoidance, CollisionShape, CollisionShape], ...]

    @cached_property
    def parents(self) -> tuple[int, ...]:
        """The sparsity of the Hessian of tasks that each touch one branch of the tree."""
        return tuple(velocity_parents(self.mechanism.tree))

    @cached_property
    def loops(self) -> tuple[HolonomicConstraint, ...]:
        """The loops, couplings and formulas that act, which every step satisfies."""
        return holonomic_constraints(self.mechanism)

    @cached_property
    def length(self) -> float:
        """See `tolerance_length`."""
        return tolerance_length(self.mechanism)

    @cached_property
    def largest_square(self) -> float:
        """The order of the largest squares in the Jacobian of a position [m^2]."""
        return 1.0 if translations(self.mechanism.tree) else self.length**2

    @cached_property
    def inverse_weights(self) -> InverseWeights:
        return inverse_weights(self.mechanism)

    def distances(self, poses: Sequence[Pose]) -> list[ShapeDistance]:
        """The distance of each pair of shapes that keep one, at the world poses of all links."""
        reaches = [item.distance + item.detection for item, _, _ in self.avoidance]
        return shape_distances([(a, b) for _, a, b in self.avoidance], poses, reaches)

    @cached_property
    def priorities(self) -> list[list[int]]:
        """The numbers of the tasks of each priority, the first priority first."""
        levels = sorted({task.priority for task in self.tasks})
        return [[k for k, task in enumerate(self.tasks) if task.priority == level] for level in levels]

    @cached_property
    def bounds(self) -> dict[int, tuple[int, float, float]]:
        """For each generalised velocity with limits, its coordinate, and the lower and the upper limit.

        Those of a ball joint, which has no such coordinate, have the first one's number, and no limit but
        that of the speed.
        """
        found = {}
        lower, upper = joint_limits(self.mechanism)
        for link in self.mechanism.tree.links:
            i, limited = link.q.start, self.limits and link.joint.kind != "ball"
            low, high = (float(lower[i]), float(upper[i])) if limited else (-np.inf, np.inf)
            for k in _numbers(link.v):
                if np.isfinite(np.array([low, high, float(self.speed_limits[k])])).any():
                    found[k] = i, low, high
        return found

    @cached_property
    def limited_balls(self) -> tuple[tuple[slice, slice, float], ...]:
        """The coordinates and the velocities of each ball joint with a limit below pi, and its largest angle
        [rad].
        """
        if not self.limits:
            return ()
        return tuple(
            (index.q, index.v, float(max(index.joint.limits)))
            for index in self.mechanism.joints
            if index.kind == "ball" and index.joint.limits is not None and max(index.joint.limits) < np.pi
        )

    def posture_weights(self, task: PostureTask) -> np.ndarray:
        """The weight (nv,) of each generalised velocity in a posture task."""
        if isinstance(task.weight, tuple):
            return np.array(task.weight)
        free = {k for index in self.mechanism.joints if index.kind == "free" for k in _numbers(index.v)}
        return np.array([0.0 if k in free else task.weight for k in range(self.mechanism.nv)])


def tolerance_length(m: Mechanism) -> float:
    """The largest length [m] of a mechanism, to which tolerances of distances are relative, at most 1 m; 1 m
    where nothing rotates.
    """
    rotates = len(translations(m.tree)) < m.nv
    return min(1.0, float(largest_length(m))) if rotates else 1.0


def whole_body_problem(
    m: Mechanism,
    tasks: Sequence[WeightedTask],
    damping: float,
    limits: bool,
    speed_limits: np.ndarray | None,
    avoid: Sequence[CollisionAvoidance],
) -> WholeBodyProblem:
    """The problem. Raises DescriptionError, ShapeError and UnknownNameError for tasks that do not fit, and
    DescriptionError for constraints that are not holonomic.
    """
    if not tasks:
        raise DescriptionError("tasks is empty; give one or more of FrameTask, ComTask and PostureTask")
    for task in tasks:
        if isinstance(task, FrameTask):
            m.tree.placement(task.frame)
        elif isinstance(task, ComTask):
            positive_total_mass(m.tree)
        elif isinstance(task, PostureTask):
            if isinstance(task.weight, tuple) and len(task.weight) != m.nv:
                raise ShapeError(f"weight of the posture task has {len(task.weight)} entries; nv is {m.nv}")
        else:
            raise DescriptionError(
                f"tasks has a {type(task).__name__}; give FrameTask, ComTask and PostureTask"
            )
    holonomic_constraints(m)
    speeds = np.full(m.nv, np.inf) if speed_limits is None else speed_limits
    pairs = tuple((item, a, b) for item in avoid for a, b in avoided_pairs(m, item))
    return WholeBodyProblem(m, tuple(tasks), damping, limits, speeds, pairs)


def _numbers(part: slice) -> range:
    return range(part.start, part.stop)
