"""What explains a picture on viser's page: names, frames, centres of mass, forces, paths, ellipsoids, springs and rods."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.spatial.transform import Rotation

from zwang.view.playback import Playback, Poses, placed, solid_centres, velocity_ellipsoid
from zwang.view.scene import PALETTE
from zwang.view.server_guard import viser
from zwang.view.surfaces import creased
from zwang.view.triangles import shape_corners

if TYPE_CHECKING:
    from zwang.view.viser_scene import DisplayOptions, ViserScene

AXES_LENGTH = 0.065  # of frames, by the reach
LINES = {"spring": (115, 128, 143), "rod": (77, 84, 94), "tendon": (184, 77, 69)}
SOLID, CENTRE = (64, 71, 82), (237, 184, 33)  # colours of centres of mass, and of the whole one
KINDS = {"contact": (214, 84, 40), "constraint": (138, 84, 178)}
ELLIPSOID, SHARE = (51, 140, 191), 0.2  # colour, and size for speeds of one
LONGEST = 1.5  # of an arrow, by the reach
ON_PATH = 400  # points of a path


class Annotations:
    """Nodes that are shown or not; each is made when it is first shown."""

    def __init__(self, server: viser.ViserServer, picture: dict[str, Any], motion: Playback, reach: float):
        self.server, self.picture, self.motion, self.reach = server, picture, motion, reach
        self._nodes: dict[str, list[Any]] = {}
        self._labels: list[Any] = []
        self._placed: Any = None

    def draw(self, stage: ViserScene, poses: list[Poses], t: float, chosen: int, show: DisplayOptions) -> None:
        """All marks at the time t [s]."""
        named = [*stage.models[chosen]["bodies"], *stage.models[chosen]["frames"]]
        self._names(named if show.names else [], poses[chosen])
        self._frames(named if show.frames else [], poses[chosen])
        self._lines(stage, poses)
        self._masses(stage, poses if show.mass else [])
        self._ellipsoids(stage, poses if show.ellipsoids else [])
        self._paths(stage, show)
        for kind, wanted in (("contact", show.contacts), ("constraint", show.constraints)):
            if self._on(f"force {kind}", wanted):
                self._forces(stage, t, kind, show.arrows)

    def _on(self, name: str, wanted: Any) -> bool:
        """Hides a node that is not wanted; whether it is."""
        for node in self._nodes.get(name, ()) if not wanted else ():
            node.visible = False
        return bool(wanted)

    def _names(self, named: list[dict[str, Any]], poses: Poses) -> None:
        while len(self._labels) < len(named):
            self._labels.append(
                self.server.scene.add_label(f"/name/{len(self._labels)}", "", font_screen_scale=0.9)
            )
        for k, label in enumerate(self._labels):
            label.visible = k < len(named)
            if label.visible:
                label.position = placed(poses, named[k])[1]
                label.text = named[k]["name"]

    def _frames(self, named: list[dict[str, Any]], poses: Poses) -> None:
        if not self._on("frames", named):
            return
        R, p = (np.stack(part) for part in zip(*(placed(poses, place) for place in named), strict=True))
        self._batch("frames", R, p)

    def _lines(self, stage: ViserScene, poses: list[Poses]) -> None:
        """Springs, rods and tendons: segments between points on links."""
        points, colors = [], []
        for model, (R, p) in zip(stage.models, poses, strict=True):
            for line in model["lines"]:
                at = [p[int(link)] + R[int(link)] @ np.array(x) for link, *x in line["points"]]
                pieces = list(pairwise(at))
                points += pieces
                colors += [[LINES[line["kind"]]] * 2] * len(pieces)
        if not points:
            return
        if "lines" not in self._nodes:
            shape = np.array(points, dtype=np.float32), np.array(colors, dtype=np.uint8)
            self._nodes["lines"] = [
                self.server.scene.add_line_segments("/lines", *shape, thickness=4, thickness_units="screen")
            ]
        self._nodes["lines"][0].points = np.array(points, dtype=np.float32)

    def _masses(self, stage: ViserScene, poses: list[Poses]) -> None:
        """Balls at centres of mass, as large as the cube root of the mass; the whole one in gold."""
        if not self._on("masses", poses):
            return
        centres, sizes, colors = [], [], []
        for model, at in zip(stage.models, poses, strict=True):
            points, masses = solid_centres(model, at)
            if masses.sum() > 0:
                centres += [*points, masses @ points / masses.sum()]
                sizes += [*(0.017 * np.cbrt(masses / masses.max())), 0.024]
                colors += [SOLID] * len(masses) + [CENTRE]
        if centres:
            R = np.tile(np.eye(3), (len(centres), 1, 1))
            self._batch(
                "masses",
                R,
                np.array(centres),
                self.reach * np.array(sizes)[:, None] * np.ones(3),
                np.array(colors),
            )

    def _ellipsoids(self, stage: ViserScene, poses: list[Poses]) -> None:
        """Velocities of the traced frames at unit joint speeds."""
        if not self._on("ellipsoids", poses):
            return
        found = []
        for w, at in enumerate(poses):
            known = {
                place["name"]: place for place in (*stage.models[w]["bodies"], *stage.models[w]["frames"])
            }
            for name in self.picture["traces"]:
                R, axes = velocity_ellipsoid(self.motion.mechanisms[w], at, known[name])
                found.append((R, placed(at, known[name])[1], np.maximum(SHARE * axes, 0.002 * self.reach)))
        if found:
            R, p, size = (np.stack(part) for part in zip(*found, strict=True))
            self._batch("ellipsoids", R, p, size, np.tile(ELLIPSOID, (len(p), 1)), opacity=0.4)

    def _batch(
        self,
        name: str,
        R: np.ndarray,
        p: np.ndarray,
        size: np.ndarray | None = None,
        colors: Any = None,
        opacity: float | None = None,
    ) -> None:
        """Balls, or axes where no size is given, at these poses."""
        turned = np.roll(Rotation.from_matrix(R).as_quat(), 1, axis=1)
        if name not in self._nodes:
            if size is None:
                length = AXES_LENGTH * self.reach
                node = self.server.scene.add_batched_axes(
                    f"/{name}", turned, p, axes_length=length, axes_radius=0.05 * length
                )
            else:
                node = self.server.scene.add_batched_meshes_simple(
                    f"/{name}", *_ball(), turned, p, batched_scales=size, batched_colors=colors, opacity=opacity, lod="off",
                    cast_shadow=False, receive_shadow=False,
                )  # fmt: skip
            self._nodes[name] = [node]
        (node,) = self._nodes[name]
        node.visible = True
        node.batched_wxyzs, node.batched_positions = turned.astype(np.float32), p.astype(np.float32)
        if size is not None:
            node.batched_scales = size.astype(np.float32)

    def _forces(self, stage: ViserScene, t: float, kind: str, length: float) -> None:
        """Arrows of all worlds, of one kind, and dots where they act."""
        name, recorded = f"force {kind}", self.picture["run"] and self.picture["run"]["forces"]
        found = [self.motion.forces(w, t, kind) for w in range(stage.worlds)] if recorded else []
        starts = [at @ stage.root.T + stage.offsets[w] for w, (at, _) in enumerate(found)]
        if not sum(len(at) for at in starts):
            self._on(name, False)
            return
        arrows = np.concatenate([f for _, f in found]) @ stage.root.T * (recorded["scale"] * length)
        size = np.linalg.norm(arrows, axis=1, keepdims=True)
        arrows = arrows * np.minimum(1, LONGEST * self.reach / np.maximum(size, 1e-300))
        start = np.concatenate(starts)
        points = np.stack([start, start + arrows], axis=1).astype(np.float32)
        if name not in self._nodes:
            r = 0.008 * self.reach
            self._nodes[name] = [
                self.server.scene.add_arrows(f"/force/{kind}", points, KINDS[kind], shaft_radius=r, head_radius=2.5 * r, head_length=6 * r),
                self.server.scene.add_point_cloud(f"/point/{kind}", points[:, 0], KINDS[kind], point_size=2.5 * r, point_shape="circle",
                                                  precision="float32"),
            ]  # fmt: skip
        arrow, dots = self._nodes[name]
        arrow.points, dots.points = points, points[:, 0]
        arrow.visible = dots.visible = True

    def _paths(self, stage: ViserScene, show: DisplayOptions) -> None:
        """Where the traced frames go, over the whole motion; they stand still."""
        wanted = show.paths and self.motion.run is not None and bool(self.picture["traces"])
        if not self._on("paths", wanted):
            return
        if self._placed is None or not np.array_equal(self._placed, stage.offsets):
            self._placed = stage.offsets.copy()
            points, colors = self._all_paths(stage)
            if len(points):
                self._nodes["paths"] = [
                    self.server.scene.add_line_segments(
                        "/paths", points, colors, thickness=1.5, thickness_units="screen"
                    )
                ]
        for node in self._nodes.get("paths", ()):
            node.visible = True

    def _all_paths(self, stage: ViserScene) -> tuple[np.ndarray, np.ndarray]:
        points, colors = [np.zeros((0, 2, 3))], [np.zeros((0, 2, 3))]
        for w, model in enumerate(stage.models):
            known = {place["name"]: place for place in (*model["bodies"], *model["frames"])}
            moments = [stage.raised(poses, w) for poses in self.motion.recorded_poses(w, ON_PATH)]
            for k, name in enumerate(self.picture["traces"]):
                line = np.array([placed(poses, known[name])[1] for poses in moments]).reshape(-1, 3)
                text = PALETTE[k % len(PALETTE)]
                color = [int(text[i : i + 2], 16) for i in (1, 3, 5)]
                pieces = np.stack([line[:-1], line[1:]], axis=1)
                pieces = pieces[
                    np.linalg.norm(pieces[:, 1] - pieces[:, 0], axis=1) > 1e-5 * self.reach
                ]  # viser draws no dots
                points.append(pieces)
                colors.append(np.tile(color, (len(pieces), 2, 1)))
        return np.concatenate(points).astype(np.float32), np.concatenate(colors).astype(np.uint8)


def _ball() -> tuple[np.ndarray, np.ndarray]:
    """A ball of radius 1."""
    return creased(shape_corners({"kind": "sphere", "size": [1.0]}, [], 1.0))
