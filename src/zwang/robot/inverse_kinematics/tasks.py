"""Tasks of inverse kinematics: position and orientation errors of frames, and their Jacobians.

The error is (target - frame): p_d - p [m] and the rotation vector of R_d R^T [rad], in world axes or in the
frame's own axes. Its time derivative is -J v, up to terms that vanish with the error.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from zwang.errors import DescriptionError
from zwang.kinematics.jacobians import placement_jacobian
from zwang.kinematics.poses import Pose, placement_pose
from zwang.mechanism.tree import Tree
from zwang.scalar import atan2, maximum, sqrt, where

COMPONENTS = ("x", "y", "z", "rx", "ry", "rz")
PARTS = {"pose": COMPONENTS, "position": COMPONENTS[:3], "orientation": COMPONENTS[3:]}


@dataclass(frozen=True)
class IKTask:
    """The task of one frame: which components of its position and its rotation vector shall reach the target.

    components: some of "x y z" (position) and "rx ry rz" (rotation vector). axes: "world", or "body" for the
    frame's own; the components x, y, z, rx, ry in body axes leave the rotation about the tool's z axis free.
    weight: relative to other tasks, where not all can be satisfied.
    """

    frame: str
    components: tuple[str, ...] = COMPONENTS
    axes: str = "world"
    weight: float = 1.0

    def __post_init__(self) -> None:
        unknown = [c for c in self.components if c not in COMPONENTS]
        if unknown or not self.components or len(set(self.components)) < len(self.components):
            raise DescriptionError(
                f"components of the task on frame {self.frame!r} are {self.components!r}; "
                f"give some of {', '.join(COMPONENTS)}, each once"
            )
        if self.axes not in ("world", "body"):
            raise DescriptionError(
                f"axes of the task on frame {self.frame!r} is {self.axes!r}; it must be 'world' or 'body'"
            )
        if not self.weight > 0:
            raise DescriptionError(
                f"weight of the task on frame {self.frame!r} is {self.weight}; it must be positive"
            )

    @property
    def rows(self) -> list[int]:
        """The rows of a spatial vector (6,) that the task includes."""
        return sorted(COMPONENTS.index(c) for c in self.components)

    @property
    def has_position(self) -> bool:
        return self.rows[0] < 3

    @property
    def has_orientation(self) -> bool:
        return self.rows[-1] >= 3


def rotation_vector(R: np.ndarray) -> np.ndarray:
    """The rotation vector (3,) [rad], of length at most pi, of a rotation matrix (3, 3).

    It is w angle / sin(angle), where w is the vector of (R - R^T) / 2. Where the sine is below 1e-10 the
    quotient is set to 1, with a relative error under 1e-20. Near half a revolution, where the sine is below
    1e-6, the axis is computed from the symmetric part, with an error under 1e-6 rad.
    """
    w = np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]]) / 2
    cosine = (R[0, 0] + R[1, 1] + R[2, 2] - 1) / 2
    square = w @ w
    tiny = square < 1e-20
    sine = sqrt(where(tiny, 1.0, square))
    angle = atan2(where(tiny, sqrt(square), sine), cosine)
    near_half_revolution = where(square < 1e-12, where(cosine < 0, 1.0, 0.0), 0.0) > 0.5
    factor = where(tiny, 1.0, angle / sine)
    axis = _half_revolution_axis(R)
    return np.array(
        [where(near_half_revolution, angle * a, factor * x) for a, x in zip(axis, w, strict=True)]
    )


def _half_revolution_axis(R: np.ndarray) -> np.ndarray:
    """The axis a of a rotation by pi.

    It is the normalised longest column of R + R^T + (1 - tr R) 1 = 2 (1 - cos) a a^T.
    """
    S = R + R.T
    trace = R[0, 0] + R[1, 1] + R[2, 2]
    columns = [[S[i, k] + (1 - trace if i == k else 0) for i in range(3)] for k in range(3)]
    # the column with the largest diagonal entry
    best = columns[0]
    largest = columns[0][0]
    for k in (1, 2):
        longer = columns[k][k] > largest
        best = [where(longer, x, y) for x, y in zip(columns[k], best, strict=True)]
        largest = where(longer, columns[k][k], largest)
    length = sqrt(maximum(sum(x * x for x in best), 1e-300))
    return np.array([x / length for x in best])


def task_error(task: IKTask, pose: Pose, target: Mapping[str, Any]) -> np.ndarray:
    """The error (m,) [m, rad] in the task's components.

    target: "p" (3,) [m] and "R" (3, 3), as far as the task needs them.
    """
    zero = np.zeros(3, int)
    linear = np.asarray(target["p"]) - pose.p if task.has_position else zero
    angular = rotation_vector(np.asarray(target["R"]) @ pose.R.T) if task.has_orientation else zero
    if task.axes == "body":
        linear, angular = pose.R.T @ linear, pose.R.T @ angular
    return np.concatenate([linear, angular])[task.rows]


def task_jacobian(tree: Tree, poses: list[Pose], task: IKTask) -> np.ndarray:
    """J (m, nv) of the task's components."""
    placement = tree.placement(task.frame)
    J = placement_jacobian(tree, poses, placement)
    if task.axes == "body":
        R = placement_pose(poses, placement).R
        J = np.concatenate([R.T @ J[:3], R.T @ J[3:]])
    return J[task.rows]
