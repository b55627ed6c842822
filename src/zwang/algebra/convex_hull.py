"""Convex hulls of points, by Qhull through SciPy (which loads it when it is first needed)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy


class Hull(NamedTuple):
    """corners: numbers of the points that are corners (n,), ascending; planes (m, 4): of the faces, outward normals and minus their
    distances from the origin; volume [m^3]. Flat points, and fewer than four, have no hull: no corners, no planes, no volume."""

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
