"""A small picture of a mechanism at one configuration, as PNG: for tables in notebooks, without a browser.

Triangles are covered with points closer than pixels are; each pixel shows the nearest point (a depth buffer), at twice the picture's
size in each direction, and four pixels give one.
"""

from __future__ import annotations

import io
from typing import Any

import matplotlib.image
import numpy as np

from zwang.api import validation
from zwang.kinematics.poses import link_poses
from zwang.mechanism.mechanism import Mechanism
from zwang.view.triangles import world_triangles

WIDTH, HEIGHT = 560, 420  # of the picture, in its own pixels; shown at half of that
FINER = 2  # pixels that are worked out for each one, in each direction
SPACING = 0.6  # of the points on a triangle, in the finer pixels
POINTS = 200_000  # that are worked out at a time
MARGIN = 0.06  # of the picture, on each side
DEPTHS = 2**30
LIGHT = np.array([0.35, 0.55, 0.75]) / np.linalg.norm(
    [0.35, 0.55, 0.75]
)  # from where, to the right, up, to the eye
AMBIENT, DIFFUSE = 0.55, 0.5
EDGE, EDGE_SHADE = 0.012, 0.62  # a step in depth, of all depth, is an edge; how dark
AROUND = (1.0, -1.7, 0.75)  # where the eye is, for mechanisms that move in space
BESIDE, ABOVE = 0.35, 0.3  # how far it is off the axis about which all turns, for planar ones
ONE_AXIS = 0.995


def portrait(mechanism: Mechanism, q: Any = None, *, size: tuple[int, int] = (WIDTH, HEIGHT)) -> bytes:
    """A picture (PNG) of a mechanism at q (nq,), by default its home or else its neutral configuration.

    Seen along the axis of all its joints if they have one, else from aside and above; up is against gravity. Raises ParameterError
    for symbols without values.
    """
    m = validation.numeric_mechanism(mechanism)
    at = np.array(m.home or m.neutral, dtype=float) if q is None else validation.configuration(m, q)
    corners, colors, up = world_triangles(m, at)
    sight = _sight(up @ _direction(m, at, up))
    width, height = size
    placed = _fitted(corners @ (sight @ up).T, FINER * width, FINER * height)
    image = _painted(placed, _shaded(placed, colors), FINER * width, FINER * height)
    file = io.BytesIO()
    matplotlib.image.imsave(file, _smaller(image), format="png")
    return file.getvalue()


def _direction(m: Mechanism, q: np.ndarray, up: np.ndarray) -> np.ndarray:
    """To the eye, in the world: off the axis that all turning joints share, or `AROUND`."""
    poses = link_poses(m.tree, q)
    moves = [(link.joint, np.asarray(pose.R, float)) for link, pose in zip(m.tree.links, poses, strict=True)]
    axes = np.array([R @ np.array(move.axis, float) for move, R in moves if move.kind == "revolute"])
    others = any(move.kind in ("ball", "screw") for move, _ in moves)
    if not len(axes) or others or not (np.abs(axes @ axes[0]) > ONE_AXIS).all():
        return up.T @ np.array(AROUND)
    z = up[2]
    axis = axes[0] * (-1 if (up @ axes[0])[1] > ONE_AXIS / 2 else 1)  # horizontal: from the side of -y
    if abs(axis @ z) > ONE_AXIS:
        return abs(axis @ z) * z + BESIDE * (up.T @ np.array([0.2, -1.0, 0]))
    return axis + BESIDE * np.cross(z, axis) + ABOVE * z


def _sight(eye: np.ndarray) -> np.ndarray:
    """The rotation whose rows are: to the right, up in the picture, to the eye."""
    z = eye / np.linalg.norm(eye)
    x = np.cross([0, 0, 1], z)
    x = x / np.linalg.norm(x) if np.linalg.norm(x) > 1e-9 else np.array([1.0, 0, 0])
    return np.stack([x, np.cross(z, x), z])


def _fitted(corners: np.ndarray, width: int, height: int) -> np.ndarray:
    """Corners in pixels from below left; depth towards the eye in the same measure."""
    low, high = corners.reshape(-1, 3).min(axis=0), corners.reshape(-1, 3).max(axis=0)
    room = (1 - 2 * MARGIN) * np.array([width, height])
    scale = float(np.min(room / np.maximum(high - low, 1e-12)[:2]))
    shift = np.array([width / 2, height / 2, 0]) - scale * (low + high) / 2
    return corners * scale + shift


def _shaded(corners: np.ndarray, colors: np.ndarray) -> np.ndarray:
    """The colour of each triangle under the light; both sides are alike."""
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    normals = normals / np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-12)
    normals = normals * np.where(normals[:, 2:] < 0, -1, 1)
    bright = AMBIENT + DIFFUSE * np.clip(normals @ LIGHT, 0, None)
    return np.clip(colors * bright[:, None], 0, 1)


def _painted(corners: np.ndarray, colors: np.ndarray, width: int, height: int) -> np.ndarray:
    """The picture (height, width, 4), red, green, blue and cover, first row above."""
    nearest = np.full(width * height, np.iinfo(np.int64).max)
    z = corners[:, :, 2]
    low, span = z.min(), max(np.ptp(z), 1e-12)
    first, longest, across = _measured(corners)
    counts = (np.ceil(longest / SPACING).astype(int), np.ceil(across / SPACING).astype(int))
    ends = np.cumsum((counts[0] + 1) * (counts[1] + 1))
    for part in np.split(np.arange(len(corners)), np.searchsorted(ends, np.arange(POINTS, ends[-1], POINTS))):
        points, owner = _points(first[part], counts[0][part], counts[1][part])
        column, row = points[:, 0].astype(int), points[:, 1].astype(int)
        depth = ((1 - (points[:, 2] - low) / span) * (DEPTHS - 1)).astype(np.int64)
        np.minimum.at(nearest, (height - 1 - row) * width + column, (depth << 32) | part[owner])
    seen = (nearest < np.iinfo(np.int64).max).reshape(height, width)
    depth = np.where(seen, (nearest >> 32).reshape(height, width) / DEPTHS, 2.0)
    shade = np.where(_edges(depth), EDGE_SHADE, 1.0)[..., None]
    shown = colors[np.where(seen.reshape(-1), nearest & 0xFFFFFFFF, 0)].reshape(height, width, 3)
    return np.concatenate([shown * shade * seen[..., None], seen[..., None]], axis=2)


def _measured(corners: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Triangles with their longest edge first, its length, and the height over it, as the picture has them."""
    edges = np.linalg.norm((np.roll(corners, -1, axis=1) - corners)[..., :2], axis=2)
    turn = (np.argmax(edges, axis=1)[:, None] + np.arange(3)) % 3
    first = np.take_along_axis(corners, turn[..., None], axis=1)
    a, b = first[:, 1, :2] - first[:, 0, :2], first[:, 2, :2] - first[:, 0, :2]
    longest = edges.max(axis=1)
    return first, longest, np.abs(a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0]) / np.maximum(longest, 1e-12)


def _points(corners: np.ndarray, along: np.ndarray, across: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Points in rows over each triangle, and whose they are."""
    counts = (along + 1) * (across + 1)
    owner = np.repeat(np.arange(len(corners)), counts)
    number = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)
    row, column = np.divmod(number, along[owner] + 1)
    s, t = column / np.maximum(along, 1)[owner], row / np.maximum(across, 1)[owner]
    a, b, c = corners[owner].transpose(1, 0, 2)
    return a + (s * (1 - t))[:, None] * (b - a) + t[:, None] * (c - a), owner


def _edges(depth: np.ndarray) -> np.ndarray:
    """Pixels that lie in front of a neighbour by a step."""
    found = np.zeros(depth.shape, dtype=bool)
    for axis in (0, 1):
        for shift in (1, -1):
            found |= np.roll(depth, shift, axis) - depth > EDGE
    return found


def _smaller(image: np.ndarray) -> np.ndarray:
    """The means of blocks of pixels; colours by their cover, so that edges have no fringe."""
    height, width = image.shape[0] // FINER, image.shape[1] // FINER
    means = image.reshape(height, FINER, width, FINER, 4).mean(axis=(1, 3))
    cover = means[..., 3:]
    return np.concatenate([means[..., :3] / np.maximum(cover, 1e-12), cover], axis=2).clip(0, 1)
