"""A small PNG picture of a mechanism at one configuration, for displays in notebooks, drawn without a
browser.

The triangles are covered with points whose spacing is smaller than a pixel, and a depth buffer keeps the
nearest point of each pixel. The picture is drawn at twice its size in each direction and then downsampled.
"""

from __future__ import annotations

import io
from typing import Any

import matplotlib.image
import numpy as np

from zwang.api.arguments import validation
from zwang.kinematics.poses import link_poses
from zwang.mechanism.mechanism import Mechanism
from zwang.viewer.triangles import world_triangles

WIDTH, HEIGHT = 560, 420  # of the picture in pixels; a notebook displays it at half this size
SUPERSAMPLING = 2  # computed pixels for each pixel of the picture, in each direction
SPACING = 0.6  # between the points on a triangle, in computed pixels
POINTS_AT_ONCE = 200_000  # points that are processed in one batch
MARGIN = 0.06  # on each side, relative to the picture
DEPTH_LEVELS = 2**30
LIGHT = np.array([0.35, 0.55, 0.75]) / np.linalg.norm(
    [0.35, 0.55, 0.75]
)  # direction to the light: right, up, towards the viewer
AMBIENT, DIFFUSE = 0.55, 0.5
EDGE, EDGE_SHADE = 0.012, 0.62  # relative step in depth that is drawn as an edge, and the brightness there
VIEW_DIRECTION = (1.0, -1.7, 0.75)  # direction to the viewer, for mechanisms that move in space
SIDE_OFFSET, UP_OFFSET = (
    0.35,
    0.3,
)  # deviation of that direction from the common joint axis of a planar mechanism
PARALLEL_COSINE = 0.995


def thumbnail_png(mechanism: Mechanism, q: Any = None, *, size: tuple[int, int] = (WIDTH, HEIGHT)) -> bytes:
    """A PNG picture of a mechanism at q (nq,), by default its default configuration.

    A planar mechanism is viewed along its common joint axis, any other one obliquely from above; gravity
    points down.
    size: width and height in pixels. Raises ParameterError for symbols without values.
    """
    m = validation.numeric_mechanism(mechanism)
    at = np.array(m.home or m.neutral, dtype=float) if q is None else validation.configuration(m, q)
    corners, colors, up = world_triangles(m, at)
    sight = view_rotation(up @ view_direction(m, at, up))
    width, height = size
    placed = _to_pixels(corners @ (sight @ up).T, SUPERSAMPLING * width, SUPERSAMPLING * height)
    image = _rasterised(placed, _shaded(placed, colors), SUPERSAMPLING * width, SUPERSAMPLING * height)
    file = io.BytesIO()
    matplotlib.image.imsave(file, _downsampled(image), format="png")
    return file.getvalue()


def view_direction(m: Mechanism, q: np.ndarray, up: np.ndarray) -> np.ndarray:
    """The direction to the viewer in the world frame: near the common axis of all revolute joints, or
    `AROUND`.
    """
    poses = link_poses(m.tree, q)
    joints = [(link.joint, np.asarray(pose.R, float)) for link, pose in zip(m.tree.links, poses, strict=True)]
    axes = np.array([R @ np.array(joint.axis, float) for joint, R in joints if joint.kind == "revolute"])
    others = any(joint.kind in ("ball", "screw") for joint, _ in joints)
    if not len(axes) or others or not (np.abs(axes @ axes[0]) > PARALLEL_COSINE).all():
        return up.T @ np.array(VIEW_DIRECTION)
    z = up[2]
    axis = axes[0] * (-1 if (up @ axes[0])[1] > PARALLEL_COSINE / 2 else 1)  # horizontal: from the side of -y
    if abs(axis @ z) > PARALLEL_COSINE:
        return abs(axis @ z) * z + SIDE_OFFSET * (up.T @ np.array([0.2, -1.0, 0]))
    return axis + SIDE_OFFSET * np.cross(z, axis) + UP_OFFSET * z


def view_rotation(eye: np.ndarray) -> np.ndarray:
    """The rotation whose rows point right and up in the picture, and towards the viewer."""
    z = eye / np.linalg.norm(eye)
    x = np.cross([0, 0, 1], z)
    x = x / np.linalg.norm(x) if np.linalg.norm(x) > 1e-9 else np.array([1.0, 0, 0])
    return np.stack([x, np.cross(z, x), z])


def _to_pixels(corners: np.ndarray, width: int, height: int) -> np.ndarray:
    """The corners in pixels from the lower left corner, with the depth towards the viewer in
    the same unit.
    """
    low, high = corners.reshape(-1, 3).min(axis=0), corners.reshape(-1, 3).max(axis=0)
    available = (1 - 2 * MARGIN) * np.array([width, height])
    scale = float(np.min(available / np.maximum(high - low, 1e-12)[:2]))
    shift = np.array([width / 2, height / 2, 0]) - scale * (low + high) / 2
    return corners * scale + shift


def _shaded(corners: np.ndarray, colors: np.ndarray) -> np.ndarray:
    """The colour of each triangle under diffuse light; both of its sides are lit equally."""
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    normals = normals / np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-12)
    normals = normals * np.where(normals[:, 2:] < 0, -1, 1)
    bright = AMBIENT + DIFFUSE * np.clip(normals @ LIGHT, 0, None)
    return np.clip(colors * bright[:, None], 0, 1)


def _rasterised(corners: np.ndarray, colors: np.ndarray, width: int, height: int) -> np.ndarray:
    """The rasterised picture (height, width, 4): red, green, blue and coverage, with the top row first."""
    nearest = np.full(width * height, np.iinfo(np.int64).max)
    z = corners[:, :, 2]
    low, span = z.min(), max(np.ptp(z), 1e-12)
    first, longest, across = _longest_edge_first(corners)
    counts = (np.ceil(longest / SPACING).astype(int), np.ceil(across / SPACING).astype(int))
    ends = np.cumsum((counts[0] + 1) * (counts[1] + 1))
    for part in np.split(
        np.arange(len(corners)), np.searchsorted(ends, np.arange(POINTS_AT_ONCE, ends[-1], POINTS_AT_ONCE))
    ):
        points, owner = _points(first[part], counts[0][part], counts[1][part])
        column, row = points[:, 0].astype(int), points[:, 1].astype(int)
        depth = ((1 - (points[:, 2] - low) / span) * (DEPTH_LEVELS - 1)).astype(np.int64)
        np.minimum.at(nearest, (height - 1 - row) * width + column, (depth << 32) | part[owner])
    seen = (nearest < np.iinfo(np.int64).max).reshape(height, width)
    depth = np.where(seen, (nearest >> 32).reshape(height, width) / DEPTH_LEVELS, 2.0)
    shade = np.where(_edges(depth), EDGE_SHADE, 1.0)[..., None]
    shown = colors[np.where(seen.reshape(-1), nearest & 0xFFFFFFFF, 0)].reshape(height, width, 3)
    return np.concatenate([shown * shade * seen[..., None], seen[..., None]], axis=2)


def _longest_edge_first(corners: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The triangles with their longest projected edge first, the lengths of these edges, and the heights over
    them.
    """
    edges = np.linalg.norm((np.roll(corners, -1, axis=1) - corners)[..., :2], axis=2)
    turn = (np.argmax(edges, axis=1)[:, None] + np.arange(3)) % 3
    first = np.take_along_axis(corners, turn[..., None], axis=1)
    a, b = first[:, 1, :2] - first[:, 0, :2], first[:, 2, :2] - first[:, 0, :2]
    longest = edges.max(axis=1)
    return first, longest, np.abs(a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0]) / np.maximum(longest, 1e-12)


def _points(corners: np.ndarray, along: np.ndarray, across: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Points in rows over each triangle, and for each point the index of its triangle."""
    counts = (along + 1) * (across + 1)
    owner = np.repeat(np.arange(len(corners)), counts)
    number = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)
    row, column = np.divmod(number, along[owner] + 1)
    s, t = column / np.maximum(along, 1)[owner], row / np.maximum(across, 1)[owner]
    a, b, c = corners[owner].transpose(1, 0, 2)
    return a + (s * (1 - t))[:, None] * (b - a) + t[:, None] * (c - a), owner


def _edges(depth: np.ndarray) -> np.ndarray:
    """Whether each pixel is nearer than one of its neighbours by more than `EDGE`."""
    found = np.zeros(depth.shape, dtype=bool)
    for axis in (0, 1):
        for shift in (1, -1):
            found |= np.roll(depth, shift, axis) - depth > EDGE
    return found


def _downsampled(image: np.ndarray) -> np.ndarray:
    """The mean of each block of pixels; colours are weighted by coverage, such that edges have no fringe."""
    height, width = image.shape[0] // SUPERSAMPLING, image.shape[1] // SUPERSAMPLING
    means = image.reshape(height, SUPERSAMPLING, width, SUPERSAMPLING, 4).mean(axis=(1, 3))
    cover = means[..., 3:]
    return np.concatenate([means[..., :3] / np.maximum(cover, 1e-12), cover], axis=2).clip(0, 1)
