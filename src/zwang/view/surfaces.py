"""Surfaces of shapes as vertices and faces, smooth where faces meet gently, and with edges where they do not."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from zwang.view.triangles import shape_corners

CREASE = np.cos(np.radians(38))  # faces that meet more sharply keep their edge
SAME = 1e-6  # of a surface's size: corners nearer to each other are one


class Surface(NamedTuple):
    """Vertices (n, 3) [m] and faces (m, 3) on a link, with a colour (r, g, b, opacity)."""

    link: int
    color: tuple[float, float, float, float]
    hidden: bool
    vertices: np.ndarray
    faces: np.ndarray


def surfaces(model: dict[str, Any], meshes: list[dict[str, np.ndarray]], ground: float) -> list[Surface]:
    """The shapes of a model, those of one link and colour as one; planes are discs of the radius `ground`."""
    groups: dict[tuple[int, Any, bool], list[np.ndarray]] = {}
    for shape in model["shapes"]:
        pose = np.array(shape["pose"])
        corners = shape_corners(shape, meshes, ground) @ pose[:9].reshape(3, 3).T + pose[9:]
        groups.setdefault((shape["link"], tuple(shape["color"]), shape["hidden"]), []).append(corners)
    return [
        Surface(link, color, hidden, *creased(np.concatenate(parts)))
        for (link, color, hidden), parts in groups.items()
    ]


def creased(corners: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Triangles (n, 3, 3) as vertices and faces, so that normals averaged at vertices leave edges sharp.

    Corners of two triangles are one vertex if these share an edge there and meet at less than 38 degrees.
    """
    n = len(corners)
    step = max(float(np.ptp(corners.reshape(-1, 3), axis=0).max()), 1e-12) * SAME
    _, place = np.unique(
        (corners.reshape(-1, 3) / step).round().astype(np.int64), axis=0, return_inverse=True
    )
    place = place.reshape(n, 3)
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    normals = normals / np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-300)
    first, second = _gentle_neighbours(place, normals)
    _, group = connected_components(coo_array((np.ones(len(first)), (first, second)), shape=(3 * n, 3 * n)))
    _, chosen, faces = np.unique(group, return_index=True, return_inverse=True)
    return corners.reshape(-1, 3)[chosen], faces.reshape(n, 3)


def _gentle_neighbours(place: np.ndarray, normals: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of corners, by number, of triangles next to each other along an edge that is no crease."""
    n = len(place)
    starts, ends = place.reshape(-1), np.roll(place, -1, axis=1).reshape(-1)  # of the edges, three a triangle
    corner = np.arange(3 * n)
    following = np.roll(corner.reshape(n, 3), -1, axis=1).reshape(-1)
    low, high = np.minimum(starts, ends), np.maximum(starts, ends)
    order = np.lexsort((high, low))
    a, b = order[:-1], order[1:]
    same = (low[a] == low[b]) & (high[a] == high[b]) & (low[a] != high[a])
    a, b = a[same], b[same]
    gentle = np.einsum("ij,ij->i", normals[a // 3], normals[b // 3]) >= CREASE
    a, b = a[gentle], b[gentle]
    matching = starts[a] == starts[b]  # the other triangle may go along the edge the same way or the other
    at_start = np.where(matching, corner[b], following[b])
    at_end = np.where(matching, following[b], corner[b])
    return np.concatenate([corner[a], following[a]]), np.concatenate([at_start, at_end])
