"""The tasks of whole-body inverse kinematics: frames, centre of mass, posture, and avoidance of collisions.

A task of priority k does not change what the tasks of the priorities below k have reached. Tasks of the same
priority are weighted: of |w (J x - gain e)|^2 the sum over all of them is minimised, w the weights, e the
errors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from zwang.errors import DescriptionError
from zwang.mechanism.type_validation import validated
from zwang.scalar import real_array

LARGEST_WEIGHT = 1e12
AXES = ("x", "y", "z", "rx", "ry", "rz")


@validated
@dataclass(frozen=True)
class FrameTask:
    """A frame shall reach a pose.

    frame: the name of a body or of a frame. weight: one for all rows, or six, of (x, y, z) [1/m] and of the
    rotation vector (rx, ry, rz) [1/rad]; a row of weight 0 is left out. axes: of the rows, "world" or "body",
    the frame's own. gain in (0, 1]: the part of the error that one step shall remove. damping: times the
    squared weighted gain * error it is added to the Hessian's diagonal (Levenberg-Marquardt). priority: 0 is
    the first. Raises DescriptionError.
    """

    frame: str
    weight: float | Sequence[float] = 1.0
    axes: Literal["world", "body"] = "world"
    gain: float = 1.0
    damping: float = 0.0
    priority: int = 0

    def __post_init__(self) -> None:
        what = f"task of frame {self.frame!r}"
        object.__setattr__(self, "weight", _weights(self.weight, 6, what))
        if self.axes not in ("world", "body"):
            raise DescriptionError(f"axes of the {what} is {self.axes!r}; it must be 'world' or 'body'")
        _check(self, what)

    @property
    def rows(self) -> list[int]:
        """The rows of a spatial vector (6,) that have a weight."""
        return [i for i, w in enumerate(_six(self.weight)) if w > 0]

    @property
    def row_weights(self) -> np.ndarray:
        """The weights of these rows."""
        return np.array([w for w in _six(self.weight) if w > 0])

    @property
    def components(self) -> tuple[str, ...]:
        """The names of these rows."""
        return tuple(AXES[i] for i in self.rows)


@validated
@dataclass(frozen=True)
class ComTask:
    """The centre of mass of all bodies shall reach a position.

    weight [1/m]: one for all rows, or three, of x, y and z in world axes; a row of weight 0 is left out.
    gain, damping, priority: as for `FrameTask`. Raises DescriptionError.
    """

    weight: float | Sequence[float] = 1.0
    gain: float = 1.0
    damping: float = 0.0
    priority: int = 0

    def __post_init__(self) -> None:
        what = "task of the centre of mass"
        object.__setattr__(self, "weight", _weights(self.weight, 3, what))
        _check(self, what)

    @property
    def rows(self) -> list[int]:
        """The axes that have a weight."""
        return [i for i, w in enumerate(_three(self.weight)) if w > 0]

    @property
    def row_weights(self) -> np.ndarray:
        """The weights of these rows."""
        return np.array([w for w in _three(self.weight) if w > 0])


@validated
@dataclass(frozen=True)
class PostureTask:
    """The joints shall approach a configuration.

    weight [1/rad, 1/m]: one for every velocity but those of free joints, or nv, one for each generalised
    velocity. gain: as for `FrameTask`. priority: by default 1, after tasks of frames. Raises
    DescriptionError.
    """

    weight: float | Sequence[float] = 0.1
    gain: float = 1.0
    priority: int = 1

    def __post_init__(self) -> None:
        what = "posture task"
        object.__setattr__(self, "weight", _weights(self.weight, None, what))
        _check(self, what)


@validated
@dataclass(frozen=True)
class CollisionAvoidance:
    """Shapes shall keep a distance from each other, as one-sided rows d + J x >= distance.

    pairs: pairs of names of bodies, with "world" for the obstacles that are fixed to it: every shape of the
    one keeps away from every shape of the other; None for all pairs of shapes that can be in contact.
    distance [m]: to be kept. detection [m]: pairs farther apart than distance + detection have no row.
    gain in (0, 1]: the part of the way to the distance that one step may cover. Raises DescriptionError.
    """

    pairs: tuple[tuple[str, str], ...] | None = None
    distance: float = 0.01
    detection: float = 0.1
    gain: float = 1.0

    def __post_init__(self) -> None:
        if self.pairs is not None and not self.pairs:
            raise DescriptionError("pairs of CollisionAvoidance is empty; give pairs of bodies, or None")
        if not 0 <= self.distance < np.inf:
            raise DescriptionError(
                f"distance of CollisionAvoidance is {self.distance}; give 0 or more metres"
            )
        if not 0 < self.detection < np.inf:
            raise DescriptionError(
                f"detection of CollisionAvoidance is {self.detection}; give a positive number of metres"
            )
        _check_gain(self.gain, "CollisionAvoidance")


WeightedTask = FrameTask | ComTask | PostureTask


def _weights(value: Any, size: int | None, what: str) -> float | tuple[float, ...]:
    """A weight or a tuple of weights, checked."""
    try:
        weights = real_array(value)
    except (TypeError, ValueError, OverflowError):
        weights = np.array(np.nan)
    sizes = "numbers" if size is None else f"{size} numbers"
    if weights.ndim > 1 or (weights.ndim == 1 and size is not None and len(weights) != size):
        raise DescriptionError(
            f"weight of the {what} has the shape {weights.shape}; give one number or {sizes}"
        )
    if not ((weights <= LARGEST_WEIGHT).all() and (weights >= 0).all() and (weights > 0).any()):
        raise DescriptionError(
            f"weight of the {what} is {value!r}; weights are 0 or positive, up to {LARGEST_WEIGHT:g}, and "
            "one of them is positive"
        )
    return float(weights) if weights.ndim == 0 else tuple(float(w) for w in weights)


def _six(weight: Any) -> tuple[float, ...]:
    return weight if isinstance(weight, tuple) else (weight,) * 6


def _three(weight: Any) -> tuple[float, ...]:
    return weight if isinstance(weight, tuple) else (weight,) * 3


def _check(task: Any, what: str) -> None:
    """Raises DescriptionError for a gain, damping or priority out of its range."""
    _check_gain(task.gain, what)
    if not 0 <= getattr(task, "damping", 0.0) < np.inf:
        raise DescriptionError(f"damping of the {what} is {task.damping}; it must be 0 or positive")
    if task.priority < 0:
        raise DescriptionError(f"priority of the {what} is {task.priority}; the first priority is 0")


def _check_gain(gain: float, what: str) -> None:
    if not 0 < gain <= 1:
        raise DescriptionError(f"gain of the {what} is {gain}; it must lie in (0, 1]")
