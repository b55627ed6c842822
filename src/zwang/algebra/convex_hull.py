"""Convex hulls of points, by Qhull through SciPy."""

from __future__ import annotations

from functools import lru_cache
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
    return _convex_hull(np.ascontiguousarray(points, float).reshape(-1, 3).tobytes())


@lru_cache(maxsize=512)
def _convex_hull(data: bytes) -> Hull:
    """The convex hull of points (n, 3)."""
    try:
        hull = scipy.spatial.ConvexHull(np.frombuffer(data).reshape(-1, 3))
    except (scipy.spatial.QhullError, ValueError):
        return Hull(np.zeros(0, int), np.zeros((0, 4)), 0.0)
    return Hull(np.sort(hull.vertices), hull.equations, float(hull.volume))


def hull_triangles(points: Any) -> np.ndarray:
    """The triangles (m, 3) of the surface of the convex hull of points (n, 3): indices of the points,
    counterclockwise as seen from outside. Empty for coplanar points and for fewer than four.
    """
    points = np.asarray(points, float)
    try:
        hull = scipy.spatial.ConvexHull(points)
    except (scipy.spatial.QhullError, ValueError):
        return np.zeros((0, 3), int)
    return _clockwise_triangles(points, hull)[:, ::-1]


COPLANAR = 5e-3  # [rad] between neighbouring triangles of one face


def hull_polygons(points: Any) -> tuple[np.ndarray, list[np.ndarray]]:
    """The faces of the convex hull of points (n, 3): outward unit normals (m, 3), and for each face the
    indices of its corners, clockwise seen from outside.

    Neighbouring triangles whose normals differ by less than `COPLANAR` are one face, whose normal is that of
    its largest triangle. Both are empty for coplanar points and for fewer than four.
    """
    points = np.asarray(points, float)
    try:
        hull = scipy.spatial.ConvexHull(points)
    except (scipy.spatial.QhullError, ValueError):
        return np.zeros((0, 3)), []
    triangles, normals = points[hull.simplices], hull.equations[:, :3]
    edges = triangles[:, 1:] - triangles[:, :1]
    areas = np.linalg.norm(np.cross(edges[:, 0], edges[:, 1]), axis=1)
    # most triangles of a round shape are faces of their own
    neighbours = np.einsum("ijk,ik->ij", normals[hull.neighbors], normals)
    alone, single = ~(neighbours > np.cos(COPLANAR)).any(axis=1), _clockwise_triangles(points, hull)
    free, faces, polygons = set(range(len(normals))), [], []
    for seed in np.argsort(-areas, kind="stable").tolist():
        if seed not in free:
            continue
        if alone[seed]:
            faces.append(normals[seed])
            polygons.append(single[seed])
            continue
        face, reached = [], [seed]
        free.discard(seed)
        while reached:
            face.append(reached.pop())
            for other in hull.neighbors[face[-1]]:
                if other in free and normals[other] @ normals[seed] > np.cos(COPLANAR):
                    free.discard(other)
                    reached.append(other)
        faces.append(normals[seed])
        polygons.append(_clockwise(points, np.unique(hull.simplices[face]), normals[seed]))
    return np.array(faces), polygons


def _clockwise_triangles(points: np.ndarray, hull: Any) -> np.ndarray:
    """The corners (n, 3) of all triangles, each in the order of `_clockwise`."""
    found = np.sort(hull.simplices, axis=1)
    a, b, c = points[found].transpose(1, 0, 2)
    turned = np.einsum("ij,ij->i", np.cross(b - a, c - a), hull.equations[:, :3]) > 0
    found[turned, 1:] = found[turned, :0:-1]
    return found


def _clockwise(points: np.ndarray, corners: np.ndarray, normal: np.ndarray) -> np.ndarray:
    """The corners of a convex polygon, ordered clockwise as seen against its normal, from the lowest
    index.
    """
    relative = points[corners] - points[corners].mean(axis=0)
    across = relative[0] - normal * (normal @ relative[0])
    angles = np.arctan2(relative @ across, relative @ np.cross(normal, across))
    order = corners[np.argsort(angles, kind="stable")]
    return np.roll(order, -int(np.argmin(order)))
