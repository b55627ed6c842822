"""Annotations of the scene on viser's page: names, frames, centres of mass, forces, paths, ellipsoids,
springs, rods.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from zwang.viewer.page.display_options import DisplayOptions, WorldArrangement
from zwang.viewer.page.server_guard import viser
from zwang.viewer.playback import Playback, Poses, frame_in_world, rigid_body_centres, velocity_ellipsoid
from zwang.viewer.scene import PALETTE
from zwang.viewer.surfaces import split_at_creases
from zwang.viewer.triangles import shape_corners

AXES_LENGTH = 0.065  # length of a frame's axes, relative to the mechanism's size
LINE_COLORS = {"spring": (115, 128, 143), "rod": (77, 84, 94), "tendon": (184, 77, 69)}
BODY_COLOR, TOTAL_COLOR = (
    (64, 71, 82),
    (237, 184, 33),
)  # colours of the bodies' centres of mass, and of the total one
FORCE_COLORS = {"contact": (214, 84, 40), "constraint": (138, 84, 178)}
ELLIPSOID_COLOR, ELLIPSOID_SCALE = (51, 140, 191), 0.2  # colour, and length [m] drawn for 1 m/s
MAXIMUM_ARROW = 1.5  # length of an arrow, relative to the mechanism's size
PATH_POINTS = 400  # number of points of a path


class Annotations:
    """The scene nodes of all annotations; each node is created when it is first shown, and hidden when it is
    switched off.
    """

    def __init__(
        self, server: viser.ViserServer, scene_data: dict[str, Any], playback: Playback, extent: float
    ):
        self.server, self.scene_data, self.playback, self.extent = server, scene_data, playback, extent
        self._nodes: dict[str, list[Any]] = {}
        self._labels: list[Any] = []
        self._path_offsets: Any = None

    def draw(
        self, scene: WorldArrangement, poses: list[Poses], t: float, chosen: int, show: DisplayOptions
    ) -> None:
        """Draw the annotations that `show` selects, at the time t [s]."""
        named = [*scene.models[chosen]["bodies"], *scene.models[chosen]["frames"]]
        self._draw_names(named if show.names else [], poses[chosen])
        self._draw_frames(named if show.frames else [], poses[chosen])
        self._draw_lines(scene, poses)
        self._draw_masses(scene, poses if show.mass else [])
        self._draw_ellipsoids(scene, poses if show.ellipsoids else [])
        self._draw_paths(scene, show)
        for kind, wanted in (("contact", show.contacts), ("constraint", show.constraints)):
            if self._show_or_hide(f"force {kind}", wanted):
                self._draw_forces(scene, t, kind, show.arrow_scale)

    def _show_or_hide(self, name: str, wanted: Any) -> bool:
        """Hide a node that is not wanted. Returns whether it is wanted."""
        for node in self._nodes.get(name, ()) if not wanted else ():
            node.visible = False
        return bool(wanted)

    def _draw_names(self, named: list[dict[str, Any]], poses: Poses) -> None:
        while len(self._labels) < len(named):
            self._labels.append(
                self.server.scene.add_label(f"/name/{len(self._labels)}", "", font_screen_scale=0.9)
            )
        for k, label in enumerate(self._labels):
            label.visible = k < len(named)
            if label.visible:
                label.position = frame_in_world(poses, named[k])[1]
                label.text = named[k]["name"]

    def _draw_frames(self, named: list[dict[str, Any]], poses: Poses) -> None:
        if not self._show_or_hide("frames", named):
            return
        R, p = (
            np.stack(part)
            for part in zip(*(frame_in_world(poses, placement) for placement in named), strict=True)
        )
        self._draw_batch("frames", R, p)

    def _draw_lines(self, scene: WorldArrangement, poses: list[Poses]) -> None:
        """Draw springs, rods and tendons as segments between points on links."""
        points, colors = [], []
        for model, (R, p) in zip(scene.models, poses, strict=True):
            for line in model["lines"]:
                at = [p[int(link)] + R[int(link)] @ np.array(x) for link, *x in line["points"]]
                pieces = list(pairwise(at))
                points += pieces
                colors += [[LINE_COLORS[line["kind"]]] * 2] * len(pieces)
        if not points:
            return
        if "lines" not in self._nodes:
            shape = np.array(points, dtype=np.float32), np.array(colors, dtype=np.uint8)
            self._nodes["lines"] = [
                self.server.scene.add_line_segments("/lines", *shape, thickness=4, thickness_units="screen")
            ]
        self._nodes["lines"][0].points = np.array(points, dtype=np.float32)

    def _draw_masses(self, scene: WorldArrangement, poses: list[Poses]) -> None:
        """Draw spheres at the centres of mass, with radii proportional to the cube root of the mass; the
        total one in gold.
        """
        if not self._show_or_hide("masses", poses):
            return
        centres, sizes, colors = [], [], []
        for model, at in zip(scene.models, poses, strict=True):
            points, masses = rigid_body_centres(model, at)
            if masses.sum() > 0:
                centres += [*points, masses @ points / masses.sum()]
                sizes += [*(0.017 * np.cbrt(masses / masses.max())), 0.024]
                colors += [BODY_COLOR] * len(masses) + [TOTAL_COLOR]
        if centres:
            R = np.tile(np.eye(3), (len(centres), 1, 1))
            self._draw_batch(
                "masses",
                R,
                np.array(centres),
                self.extent * np.array(sizes)[:, None] * np.ones(3),
                np.array(colors),
            )

    def _draw_ellipsoids(self, scene: WorldArrangement, poses: list[Poses]) -> None:
        """Draw the velocity ellipsoids of the traced frames: their velocities at |v| = 1."""
        if not self._show_or_hide("ellipsoids", poses):
            return
        found = []
        for w, at in enumerate(poses):
            known = {
                placement["name"]: placement
                for placement in (*scene.models[w]["bodies"], *scene.models[w]["frames"])
            }
            for name in self.scene_data["traces"]:
                R, axes = velocity_ellipsoid(self.playback.mechanisms[w], at, known[name])
                found.append(
                    (
                        R,
                        frame_in_world(at, known[name])[1],
                        np.maximum(ELLIPSOID_SCALE * axes, 0.002 * self.extent),
                    )
                )
        if found:
            R, p, size = (np.stack(part) for part in zip(*found, strict=True))
            self._draw_batch("ellipsoids", R, p, size, np.tile(ELLIPSOID_COLOR, (len(p), 1)), opacity=0.4)

    def _draw_batch(
        self,
        name: str,
        R: np.ndarray,
        p: np.ndarray,
        size: np.ndarray | None = None,
        colors: Any = None,
        opacity: float | None = None,
    ) -> None:
        """Draw spheres of these sizes, or frame axes where no size is given, with rotations R
        and centres p.
        """
        quaternions = np.roll(Rotation.from_matrix(R).as_quat(), 1, axis=1)
        if name not in self._nodes:
            if size is None:
                length = AXES_LENGTH * self.extent
                node = self.server.scene.add_batched_axes(
                    f"/{name}", quaternions, p, axes_length=length, axes_radius=0.05 * length
                )
            else:
                node = self.server.scene.add_batched_meshes_simple(
                    f"/{name}",
                    *_unit_sphere(),
                    quaternions,
                    p,
                    batched_scales=size,
                    batched_colors=colors,
                    opacity=opacity,
                    lod="off",
                    cast_shadow=False,
                    receive_shadow=False,
                )
            self._nodes[name] = [node]
        (node,) = self._nodes[name]
        node.visible = True
        node.batched_wxyzs, node.batched_positions = quaternions.astype(np.float32), p.astype(np.float32)
        if size is not None:
            node.batched_scales = size.astype(np.float32)

    def _draw_forces(self, scene: WorldArrangement, t: float, kind: str, length: float) -> None:
        """Draw the forces of one kind in all worlds as arrows, with a dot at each point of application."""
        name, recorded = f"force {kind}", self.scene_data["run"] and self.scene_data["run"]["forces"]
        found = [self.playback.forces(w, t, kind) for w in range(scene.worlds)] if recorded else []
        starts = [at @ scene.root.T + scene.offsets[w] for w, (at, _) in enumerate(found)]
        if not sum(len(at) for at in starts):
            self._show_or_hide(name, False)
            return
        arrows = np.concatenate([f for _, f in found]) @ scene.root.T * (recorded["scale"] * length)
        size = np.linalg.norm(arrows, axis=1, keepdims=True)
        arrows = arrows * np.minimum(1, MAXIMUM_ARROW * self.extent / np.maximum(size, 1e-300))
        start = np.concatenate(starts)
        points = np.stack([start, start + arrows], axis=1).astype(np.float32)
        if name not in self._nodes:
            r = 0.008 * self.extent
            self._nodes[name] = [
                self.server.scene.add_arrows(
                    f"/force/{kind}",
                    points,
                    FORCE_COLORS[kind],
                    shaft_radius=r,
                    head_radius=2.5 * r,
                    head_length=6 * r,
                ),
                self.server.scene.add_point_cloud(
                    f"/point/{kind}",
                    points[:, 0],
                    FORCE_COLORS[kind],
                    point_size=2.5 * r,
                    point_shape="circle",
                    precision="float32",
                ),
            ]
        arrow, dots = self._nodes[name]
        arrow.points, dots.points = points, points[:, 0]
        arrow.visible = dots.visible = True

    def _draw_paths(self, scene: WorldArrangement, show: DisplayOptions) -> None:
        """Draw the paths of the traced frames over the whole motion."""
        wanted = show.paths and self.playback.run is not None and bool(self.scene_data["traces"])
        if not self._show_or_hide("paths", wanted):
            return
        if self._path_offsets is None or not np.array_equal(self._path_offsets, scene.offsets):
            self._path_offsets = scene.offsets.copy()
            points, colors = self._path_segments(scene)
            if len(points):
                self._nodes["paths"] = [
                    self.server.scene.add_line_segments(
                        "/paths", points, colors, thickness=1.5, thickness_units="screen"
                    )
                ]
        for node in self._nodes.get("paths", ()):
            node.visible = True

    def _path_segments(self, scene: WorldArrangement) -> tuple[np.ndarray, np.ndarray]:
        """The segments (n, 2, 3) of all paths and the colours (n, 2, 3) of their ends."""
        points, colors = [np.zeros((0, 2, 3))], [np.zeros((0, 2, 3))]
        for w, model in enumerate(scene.models):
            known = {placement["name"]: placement for placement in (*model["bodies"], *model["frames"])}
            moments = [scene.to_display(poses, w) for poses in self.playback.recorded_poses(w, PATH_POINTS)]
            for k, name in enumerate(self.scene_data["traces"]):
                line = np.array([frame_in_world(poses, known[name])[1] for poses in moments]).reshape(-1, 3)
                text = PALETTE[k % len(PALETTE)]
                color = [int(text[i : i + 2], 16) for i in (1, 3, 5)]
                pieces = np.stack([line[:-1], line[1:]], axis=1)
                pieces = pieces[
                    np.linalg.norm(pieces[:, 1] - pieces[:, 0], axis=1) > 1e-5 * self.extent
                ]  # viser cannot draw segments of zero length
                points.append(pieces)
                colors.append(np.tile(color, (len(pieces), 2, 1)))
        return np.concatenate(points).astype(np.float32), np.concatenate(colors).astype(np.uint8)


def _unit_sphere() -> tuple[np.ndarray, np.ndarray]:
    """Vertices and faces of a sphere of radius 1."""
    return split_at_creases(shape_corners({"kind": "sphere", "size": [1.0]}, [], 1.0))
