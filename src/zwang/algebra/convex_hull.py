"""Convex hulls of points, by Qhull through SciPy."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy


class Hull(NamedTuple):
    """A convex hull.

    corners (n,): indices of the points that are vertices, ascending. planes (m, 4): outward unit normal of
    each face and minus its distance from the origin. volume [m^3]. All are empty or zero for coplanar points
    and for fewer than four.
    """

    corners: np.ndarray
    planes: np.ndarray
    volume: float


def convex_hull(points: Any) -> Hull:
    """The convex hull of points (n, 3). Source: Barber, Dobkin, Huhdanpaa, ACM TOMS 22 (1996) 469."""
    try:
        hull = scipy.spatial.ConvexHull(np.asarray(points, float))
    except (scipy.spatial.QhullError, ValueError):
        return Hull(np.zeros(0, int), np.zeros((0, 4)), 0.0)
    return Hull(np.sort(hull.vertices), hull.equations, float(hull.volume))
