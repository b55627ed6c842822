"""Numbers of files whose zeros and ones, but for rounding, become structural ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from zwang.algebra import rotations
from zwang.mechanism.numbers import Matrix3

ROUNDING = 1e-15


def nearest_structural(x: Any) -> Any:
    """x as a float, or as the integer 0, 1 or -1 if it differs from it by rounding only."""
    nearest = round(float(x)) if abs(x) < 2 else 2
    return nearest if abs(nearest) <= 1 and abs(x - nearest) <= ROUNDING else float(x)


def matrix_of(quaternion: Any) -> Matrix3:
    """The rotation matrix of a quaternion (w, x, y, z), with structural zeros and ones."""
    q = np.asarray(quaternion, float)
    q = np.ldexp(q, -np.frexp(np.abs(q).max())[1])  # by a power of two: its square may overflow or underflow
    R = rotations.from_quaternion(q / np.linalg.norm(q))
    return tuple(tuple(nearest_structural(x) for x in row) for row in R)  # type: ignore[return-value]
