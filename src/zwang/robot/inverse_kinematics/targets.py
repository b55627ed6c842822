"""Targets of inverse kinematics: poses, 4x4 matrices, positions or orientations, single or in batches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from zwang.algebra.rotations import ROTATION_TOLERANCE
from zwang.errors import ShapeError, StateError
from zwang.scalar import real_array

TargetLike = np.ndarray | Sequence[Any]


@dataclass(frozen=True)
class PoseTarget:
    """The targets of one frame.

    p: positions (N, 3) [m], or None. R: rotations (N, 3, 3), or None. batch: the shape of the batch, () for a
    single target. planar: whether the positions were given by x and y only.
    """

    p: np.ndarray | None
    R: np.ndarray | None
    batch: tuple[int, ...]
    planar: bool = False

    @property
    def part(self) -> str:
        """The part of a pose that the target contains: "pose", "position" or "orientation"."""
        if self.p is None:
            return "orientation"
        return "position" if self.R is None else "pose"


def read_target(value: TargetLike, part: str | None) -> PoseTarget:
    """The target of one frame, from any accepted form.

    value: a pair (R, p), with R (..., 3, 3) or quaternions (..., 4); a list of such pairs; matrices (..., 4,
    4); positions (..., 3) or (..., 2); for the part "orientation" R alone. part: "pose", "position",
    "orientation" or None.
    Raises ShapeError for arrays of a wrong shape and StateError for invalid rotations or numbers that are not
    finite.
    """
    if _is_pair(value):
        return _target(value[1], value[0], part)
    if isinstance(value, (list, tuple)) and value and all(_is_pair(item) for item in value):
        return _target(
            np.stack([_floats(p) for _, p in value]), np.stack([_rotations(R) for R, _ in value]), part
        )
    array = _floats(value)
    if part == "orientation":
        return _target(None, array, part)
    if array.ndim >= 2 and array.shape[-2:] == (4, 4):
        if not np.allclose(array[..., 3, :], (0, 0, 0, 1)):
            raise StateError("a 4x4 target must end with the row (0, 0, 0, 1)")
        return _target(array[..., :3, 3], array[..., :3, :3], part)
    return _target(array, None, part)


def _is_pair(value: Any) -> bool:
    """Whether a value is a pair (R, p)."""
    if not isinstance(value, (tuple, list)) or len(value) != 2:
        return False
    R, p = (
        np.shape(item) if not isinstance(item, (tuple, list)) or _is_numeric(item) else None for item in value
    )
    return R is not None and p is not None and p[-1:] == (3,) and (R[-2:] == (3, 3) or R[-1:] == (4,))


def _is_numeric(item: Any) -> bool:
    """Whether nested sequences form an array of numbers."""
    try:
        np.asarray(item, dtype=float)
    except (TypeError, ValueError):
        return False
    return True


def _target(p: Any, R: Any, part: str | None) -> PoseTarget:
    """The target with flat arrays of the batch. Raises ShapeError where the part needs what is missing."""
    p = _positions(p) if p is not None and part != "orientation" else None
    R = _rotations(R) if R is not None and part != "position" else None
    if part == "pose" and (p is None or R is None):
        raise ShapeError(
            "for the part 'pose' a target must be (R, p), with R (3, 3) and p (3,), or a 4x4 matrix"
        )
    if part in ("position", None) and p is None and R is None:
        raise ShapeError("a target must be a position (3,) or a pose (R, p)")
    shapes = [x.shape[:-k] for x, k in ((p, 1), (R, 2)) if x is not None]
    batch = np.broadcast_shapes(*shapes)
    planar = p is not None and p.shape[-1] == 2
    if planar and p is not None:
        p = np.concatenate([p, np.zeros((*p.shape[:-1], 1))], axis=-1)
    flat_p = None if p is None else np.broadcast_to(p, (*batch, 3)).reshape(-1, 3)
    flat_R = None if R is None else np.broadcast_to(R, (*batch, 3, 3)).reshape(-1, 3, 3)
    return PoseTarget(flat_p, flat_R, batch, planar)


def _positions(value: Any) -> np.ndarray:
    array = _floats(value)
    if array.shape[-1:] not in ((3,), (2,)):
        raise ShapeError(
            f"positions must have the shape (..., 3), or (..., 2) in the plane; their shape is {array.shape}"
        )
    return array


def _rotations(value: Any) -> np.ndarray:
    """Rotation matrices from matrices (checked) or unit quaternions (w, x, y, z)."""
    array = _floats(value)
    if array.shape[-2:] != (3, 3) and array.shape[-1:] == (4,):
        return _from_quaternions(array)
    if array.shape[-2:] != (3, 3):
        raise ShapeError(
            f"orientations must have the shape (..., 3, 3), or (..., 4) as quaternions; "
            f"their shape is {array.shape}"
        )
    deviation = _rotation_deviation(array)
    if deviation > ROTATION_TOLERANCE:
        raise StateError(
            f"R of a target is not a rotation: R R^T differs from 1 by up to {deviation:.2g}, or det R < 0"
        )
    return array


def _rotation_deviation(R: np.ndarray) -> float:
    """The largest deviation of R (..., 3, 3) from rotations.

    The columns x, y, z of a rotation satisfy |x| = |y| = 1, x . y = 0 and z = x cross y.
    """
    if not R.size:
        return 0.0
    (xx, yx, zx), (xy, yy, zy), (xz, yz, zz) = np.ascontiguousarray(R.reshape(-1, 3, 3).transpose(1, 2, 0))
    deviations = [
        xx * xx + xy * xy + xz * xz - 1,
        yx * yx + yy * yy + yz * yz - 1,
        xx * yx + xy * yy + xz * yz,
        xy * yz - xz * yy - zx,
        xz * yx - xx * yz - zy,
        xx * yy - xy * yx - zz,
    ]
    return max(float(np.abs(part).max()) for part in deviations)


def _from_quaternions(q: np.ndarray) -> np.ndarray:
    """Rotation matrices (..., 3, 3) from quaternions (..., 4), which are normalised."""
    length = np.linalg.norm(q, axis=-1, keepdims=True)
    if not (length > 1e-9).all():
        raise StateError("the quaternion of a target is zero; give a unit quaternion (w, x, y, z)")
    w, x, y, z = np.moveaxis(q / length, -1, 0)
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


def _floats(value: Any) -> np.ndarray:
    try:
        array = real_array(value)
    except (TypeError, ValueError):
        raise ShapeError(
            "a target must be a position (3,), a pose (R, p), a 4x4 matrix, or a batch of these, in real "
            "numbers"
        ) from None
    if not np.isfinite(array).all():
        raise StateError("a target has entries that are not finite")
    return array
