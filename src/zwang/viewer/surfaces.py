"""Surface meshes of shapes: normals are smooth where faces meet at a small angle, and split where they meet
at a crease.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from zwang.viewer.triangles import shape_corners

CREASE = np.cos(np.radians(38))  # cosine of the largest angle between faces that are shaded smoothly
MERGE_DISTANCE = 1e-6  # relative to a surface's size: nearer corners are merged


class SurfaceMesh(NamedTuple):
    """Vertices (n, 3) [m] in the frame of a link, faces (m, 3), and a colour (r, g, b, opacity)."""

    link: int
    color: tuple[float, float, float, float]
    hidden: bool
    vertices: np.ndarray
    faces: np.ndarray


def surfaces(model: dict[str, Any], meshes: list[dict[str, np.ndarray]], ground: float) -> list[SurfaceMesh]:
    """The shapes of a model, merged by link and colour; a plane becomes a disc of radius `ground` [m]."""
    groups: dict[tuple[int, Any, bool], list[np.ndarray]] = {}
    for shape in model["shapes"]:
        pose = np.array(shape["pose"])
        corners = shape_corners(shape, meshes, ground) @ pose[:9].reshape(3, 3).T + pose[9:]
        groups.setdefault((shape["link"], tuple(shape["color"]), shape["hidden"]), []).append(corners)
    return [
        SurfaceMesh(link, color, hidden, *split_at_creases(np.concatenate(parts)))
        for (link, color, hidden), parts in groups.items()
    ]


def split_at_creases(corners: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Vertices and faces of triangles (n, 3, 3), such that normals averaged at the vertices keep creases
    sharp.

    Corners of two triangles are merged into one vertex if the triangles share an edge there and the angle
    between their normals is less than 38 degrees.
    """
    n = len(corners)
    step = max(float(np.ptp(corners.reshape(-1, 3), axis=0).max()), 1e-12) * MERGE_DISTANCE
    _, vertex = np.unique(
        (corners.reshape(-1, 3) / step).round().astype(np.int64), axis=0, return_inverse=True
    )
    vertex = vertex.reshape(n, 3)
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    normals = normals / np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-300)
    first, second = _gentle_neighbours(vertex, normals)
    _, group = connected_components(coo_array((np.ones(len(first)), (first, second)), shape=(3 * n, 3 * n)))
    _, chosen, faces = np.unique(group, return_index=True, return_inverse=True)
    return corners.reshape(-1, 3)[chosen], faces.reshape(n, 3)


def _gentle_neighbours(vertex: np.ndarray, normals: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of corner indices to merge: corners of neighbouring triangles whose common edge is
    not a crease.
    """
    n = len(vertex)
    starts, ends = (
        vertex.reshape(-1),
        np.roll(vertex, -1, axis=1).reshape(-1),
    )  # of the three edges of each triangle
    corner = np.arange(3 * n)
    following = np.roll(corner.reshape(n, 3), -1, axis=1).reshape(-1)
    low, high = np.minimum(starts, ends), np.maximum(starts, ends)
    order = np.lexsort((high, low))
    a, b = order[:-1], order[1:]
    same = (low[a] == low[b]) & (high[a] == high[b]) & (low[a] != high[a])
    a, b = a[same], b[same]
    gentle = np.einsum("ij,ij->i", normals[a // 3], normals[b // 3]) >= CREASE
    a, b = a[gentle], b[gentle]
    matching = starts[a] == starts[b]  # whether both triangles traverse the edge in the same direction
    at_start = np.where(matching, corner[b], following[b])
    at_end = np.where(matching, following[b], corner[b])
    return np.concatenate([corner[a], following[a]]), np.concatenate([at_start, at_end])
