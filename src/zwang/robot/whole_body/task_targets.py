"""The targets of whole-body inverse kinematics, validated, in arrays over the batch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from zwang.api.arguments import validation
from zwang.errors import ShapeError, StateError
from zwang.mechanism.mechanism import Mechanism
from zwang.robot.batch_functions import Shapes
from zwang.robot.inverse_kinematics.targets import read_target
from zwang.robot.task_space import configurations
from zwang.robot.whole_body.weighted_tasks import ComTask, FrameTask, WeightedTask


@dataclass(frozen=True)
class TargetArrays:
    """The targets of all tasks.

    kinds: for each task the names of its arrays, "p" and "R" of a frame, "p" of the centre of mass, "q" of a
    posture; none where the target is not given. arrays: those of all tasks in order, each of the batch's
    shape or without it, followed by the shape of one. batch: the shape of the batch.
    """

    kinds: tuple[tuple[str, ...], ...]
    arrays: list[np.ndarray]
    batch: tuple[int, ...]


def read_targets(
    m: Mechanism, tasks: Sequence[WeightedTask], targets: Sequence[Any], q: np.ndarray
) -> TargetArrays:
    """The targets of the tasks for configurations q (..., nq).

    Raises ShapeError for targets of a wrong number or shape, and StateError for values that are not finite.
    """
    if not isinstance(targets, (list, tuple)) or len(targets) != len(tasks):
        raise ShapeError(
            f"targets must be a list with one entry for each of the {len(tasks)} tasks; None keeps what q has"
        )
    kinds: list[tuple[str, ...]] = []
    arrays: list[np.ndarray] = []
    batches = [q.shape[:-1]]
    for number, (task, target) in enumerate(zip(tasks, targets, strict=True)):
        found = {} if target is None else _of_task(m, task, target, f"the target of task {number}")
        kinds.append(tuple(found))
        for name, array in found.items():
            arrays.append(array)
            batches.append(array.shape[: array.ndim - (2 if name == "R" else 1)])
    full = {batch for batch in batches if batch}
    if len(full) > 1:
        raise ShapeError(f"q and the targets are batches of different shapes: {sorted(full)}")
    return TargetArrays(tuple(kinds), arrays, next(iter(full), ()))


def target_shapes(m: Mechanism, kinds: Iterable[tuple[str, ...]]) -> Shapes:
    """The shape of one target's arrays by their names "p0", "R0", "q2", ..., with the number of the task."""
    shapes = {"p": (3,), "R": (3, 3), "q": (m.nq,)}
    return {f"{name}{k}": shapes[name] for k, names in enumerate(kinds) for name in names}


def _of_task(m: Mechanism, task: WeightedTask, target: Any, what: str) -> dict[str, np.ndarray]:
    """The arrays of one task's target by name."""
    if isinstance(task, FrameTask):
        return _of_frame(task, target, what)
    if isinstance(task, ComTask):
        position = validation.real_values(target, what)
        if position.shape[-1:] != (3,):
            raise ShapeError(
                f"{what}, of the centre of mass, must have the shape (..., 3); its shape is {position.shape}"
            )
        return {"p": _finite(position, what)}
    return {"q": configurations(m, target)}


def _of_frame(task: FrameTask, target: Any, what: str) -> dict[str, np.ndarray]:
    """The position and the rotation of a frame's target, as far as its rows need them."""
    linear, angular = task.rows[0] < 3, task.rows[-1] >= 3
    read = read_target(target, "pose" if linear and angular else "position" if linear else "orientation")
    if read.planar:
        raise ShapeError(
            f"{what}, of frame {task.frame!r}, is a position (2,); give (3,), and z the weight 0"
        )
    found = {}
    for name, array, needed, size in (("p", read.p, linear, 1), ("R", read.R, angular, 2)):
        if needed:
            assert array is not None
            found[name] = array.reshape(*read.batch, *array.shape[array.ndim - size :])
    return found


def _finite(array: np.ndarray, what: str) -> np.ndarray:
    if not np.isfinite(array).all():
        raise StateError(f"{what} has entries that are not finite")
    return array
