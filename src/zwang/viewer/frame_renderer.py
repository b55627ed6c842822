"""Pictures of a moving mechanism as arrays of pixels, drawn without a browser and without a graphics card.

The camera follows the mechanism. Triangles are drawn by Matplotlib from the farthest to the nearest; those
that face away from the camera are left out. A plane is a chequered floor.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure

from zwang.api.arguments import validation
from zwang.errors import ShapeError
from zwang.kinematics.poses import link_poses
from zwang.mechanism.mechanism import Mechanism
from zwang.viewer.scene import scene_content, scene_data_of
from zwang.viewer.thumbnail import AMBIENT, DIFFUSE, LIGHT, view_direction, view_rotation
from zwang.viewer.triangles import (
    LINE_COLOR,
    LINE_RADIUS,
    Resolution,
    cylinder_between,
    shape_corners,
    transformed,
)

DISTANCE = 1.25  # of the camera, relative to the mechanism's size
FOCAL_LENGTH = 1.7  # relative to half the height of the picture
RESOLUTION = Resolution(sides=14, rings=4)
TILES = 12  # of the floor, in each direction from the mechanism
TILE_SIZE = 0.35  # relative to the mechanism's size
FLOOR_COLORS = np.array([[0.86, 0.88, 0.90], [0.76, 0.79, 0.83]])
BACKGROUND = (0.96, 0.97, 0.98)
NEAREST = 0.05  # distance from the camera at which polygons are cut off, relative to the mechanism's size
SEAM = 0.4  # width of the lines that close the gaps between triangles [pixels]


class FrameRenderer:
    """Draws a mechanism without symbols at any configuration, from a camera that follows it.

    size: width and height in pixels. The camera looks at the centre of the mechanism, in the direction in
    which notebooks display it: nearly along the common axis of the joints of a planar mechanism, obliquely
    otherwise.
    Raises ShapeError for a size that is not positive, and ParameterError for symbols without values.
    """

    def __init__(self, mechanism: Mechanism, size: tuple[int, int] = (480, 480)):
        width, height = size
        if not all(isinstance(n, int) and n > 0 for n in size):
            raise ShapeError(f"size is {size!r}; give the width and the height in pixels, positive integers")
        self.mechanism, self.size = validation.numeric_mechanism(mechanism), size
        scene = scene_data_of(scene_content(self.mechanism))
        self._model = scene["models"][0]
        self._extent = float(self._model["extent"])
        self._up = np.reshape(scene["root"], (3, 3))
        home = np.array(mechanism.home or mechanism.neutral, dtype=float)
        self._sight = view_rotation(self._up @ view_direction(self.mechanism, home, self._up)) @ self._up
        self._collect_shapes(scene["meshes"])
        self._figure = Figure(figsize=(width / 100, height / 100), dpi=100, facecolor=BACKGROUND)
        self._canvas = FigureCanvasAgg(self._figure)
        self._axes = self._figure.add_axes((0, 0, 1, 1))
        self._axes.set(xlim=(-width / height, width / height), ylim=(-1, 1))
        self._axes.set_axis_off()
        self._polygons = PolyCollection([], linewidths=SEAM)
        self._axes.add_collection(self._polygons)

    def _collect_shapes(self, meshes: list[dict[str, np.ndarray]]) -> None:
        """The corners of all shapes in the frames of their links, with links and colours; planes apart."""
        drawn = [shape for shape in self._model["shapes"] if not shape["hidden"]]
        self._planes = [shape for shape in drawn if shape["kind"] == "plane"]
        found = [shape for shape in drawn if shape["kind"] != "plane"]
        parts = [transformed(shape["pose"], shape_corners(shape, meshes, 0.0, RESOLUTION)) for shape in found]
        counts = [len(part) for part in parts]
        self._corners = np.concatenate([np.zeros((0, 3, 3)), *parts])
        self._links = np.repeat([shape["link"] for shape in found], counts).astype(int)
        self._colors = np.repeat(np.reshape([shape["color"][:3] for shape in found], (-1, 3)), counts, axis=0)

    def draw(self, q: Any) -> np.ndarray:
        """The picture (height, width, 3) at the configuration q (nq,): red, green, blue, 0 to 255.

        Raises ShapeError and StateError.
        """
        poses = link_poses(self.mechanism.tree, validation.configuration(self.mechanism, q))
        # the pose of the world is the last one: a shape that is fixed to the world has the link -1
        R = np.array([*(np.asarray(pose.R, float) for pose in poses), np.eye(3)])
        p = np.array([*(np.asarray(pose.p, float) for pose in poses), np.zeros(3)])
        corners = np.einsum("nij,nkj->nki", R[self._links], self._corners) + p[self._links][:, None]
        lines, line_colors = self._lines(R, p)
        corners, colors = np.concatenate([corners, lines]), np.concatenate([self._colors, line_colors])
        middle = self._middle(corners, p)
        floor, floor_colors = self._floor(R, p, middle)
        near, near_colors = self._projected(corners, middle, colors)
        far, far_colors = self._projected(floor, middle, floor_colors, shaded=False)
        shown = np.concatenate([far_colors, near_colors])
        self._polygons.set(verts=[*far, *near], facecolors=shown, edgecolors=shown)
        self._canvas.draw()
        return np.array(self._canvas.buffer_rgba())[..., :3]

    def _middle(self, corners: np.ndarray, p: np.ndarray) -> np.ndarray:
        """The centre of the bounding box of all shapes that move."""
        moving = corners[: len(self._links)][self._links >= 0].reshape(-1, 3)
        points = moving if len(moving) else p
        return (points.min(axis=0) + points.max(axis=0)) / 2

    def _lines(self, R: np.ndarray, p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Springs, rods and tendons."""
        rods = [np.zeros((0, 3, 3))]
        for line in self._model["lines"]:
            points = [R[int(link)] @ np.array(x) + p[int(link)] for link, *x in line["points"]]
            rods += [cylinder_between(a, b, LINE_RADIUS * self._extent) for a, b in pairwise(points)]
        corners = np.concatenate(rods)
        return corners, np.tile(LINE_COLOR, (len(corners), 1))

    def _floor(self, R: np.ndarray, p: np.ndarray, middle: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The tiles (n, 4, 3) of all planes around the mechanism, and their colours."""
        tiles: list[np.ndarray] = [np.zeros((0, 4, 3))]
        colors: list[np.ndarray] = [np.zeros((0, 3))]
        side = TILE_SIZE * self._extent
        square = np.array([[0, 0], [1, 0], [1, 1], [0, 1]])
        for plane in self._planes:
            rotation = R[plane["link"]] @ np.reshape(plane["pose"][:9], (3, 3))
            origin = R[plane["link"]] @ np.array(plane["pose"][9:]) + p[plane["link"]]
            across = rotation[:, :2]
            # whole tiles, so that the floor rests while the mechanism moves over it
            centre = np.floor((middle - origin) @ across / side).astype(int)
            grid = np.stack(np.meshgrid(*[np.arange(-TILES, TILES)] * 2), axis=-1).reshape(-1, 2) + centre
            tiles.append(origin + ((grid[:, None] + square) * side) @ across.T)
            colors.append(FLOOR_COLORS[grid.sum(axis=1) % 2])
        return np.concatenate(tiles), np.concatenate(colors)

    def _projected(
        self, corners: np.ndarray, middle: np.ndarray, colors: np.ndarray, shaded: bool = True
    ) -> tuple[np.ndarray, np.ndarray]:
        """The polygons (n, k, 2) in the picture and their colours, from the farthest to the nearest."""
        seen = (corners - middle) @ self._sight.T
        depth = DISTANCE * self._extent - seen[..., 2]
        front = (depth > NEAREST * self._extent).all(axis=1)
        seen, depth, colors = seen[front], depth[front], colors[front]
        flat = FOCAL_LENGTH * seen[..., :2] / depth[..., None]
        if shaded:
            normals = np.cross(seen[:, 1] - seen[:, 0], seen[:, 2] - seen[:, 0])
            normals = normals / np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-12)
            facing = np.einsum("ni,ni->n", normals, [0, 0, DISTANCE * self._extent] - seen[:, 0]) > 0
            bright = AMBIENT + DIFFUSE * np.clip(normals @ LIGHT, 0, None)
            flat, depth = flat[facing], depth[facing]
            colors = np.clip(colors * bright[:, None], 0, 1)[facing]
        order = np.argsort(-depth.mean(axis=1))
        return flat[order], colors[order]
