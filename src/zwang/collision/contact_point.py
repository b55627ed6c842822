"""The contact point of two surfaces, and its frame."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from zwang.algebra.norms import TINY
from zwang.algebra.rotations import cross
from zwang.scalar import divide, less, logical_and, sqrt, where

# [m] distance of a contact point that does not exist; above every margin, finite in single precision
FAR = 1e10


class ContactPoint(NamedTuple):
    """Contact point of two surfaces: signed distance [m], the midpoint of the nearest points, and the
    contact frame, in the world.

    The rows of the frame are the normal, from the first shape to the second, and two tangents.
    """

    distance: Any
    position: np.ndarray
    frame: np.ndarray


def unit(a: Any, otherwise: Any = (1, 0, 0)) -> tuple[np.ndarray, Any]:
    """The unit vector along a, and the length of a; `otherwise` where a is shorter than 1e-15."""
    square = a[0] * a[0] + a[1] * a[1] + a[2] * a[2]
    small = less(square, TINY * TINY)
    length = sqrt(where(small, 1.0, square))
    scale = divide(1, length)
    direction = [where(small, other, x * scale) for x, other in zip(a, otherwise, strict=True)]
    return np.array(direction), where(small, 0.0, length)


def contact_frame(normal: Any, along: Any | None = None) -> np.ndarray:
    """Contact frame with the rows (normal, first tangent, second tangent) for a unit normal.

    The first tangent is the projection of `along` on the tangent plane; by default that of y, or of z where
    the normal is within 60 degrees of y. Source: MuJoCo, mju_makeFrame.
    """
    n = np.array(normal)
    if along is not None:
        first, _ = unit(along - n * (n @ along))
        return np.array([n, first, cross(n, first)])
    steep = logical_and(less(n[1], 0.5), less(-0.5, n[1]))
    share = where(steep, n[1], n[2])  # of the axis in the normal; at most sqrt(3) / 2
    scale = divide(1, sqrt(1 - share * share))
    across = np.array([-n[0] * share, where(steep, 1, 0) - n[1] * share, where(steep, 0, 1) - n[2] * share])
    first = across * scale
    return np.array([n, first, cross(n, first)])
