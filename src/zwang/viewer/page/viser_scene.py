"""The scene on viser's page: the shapes of all worlds, side by side or overlaid, and their annotations.

A surface of a link is one node with an instance for each world, so that many worlds need few messages per
frame. Node names never contain names from files, which are displayed as text only.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from zwang.viewer.page.annotations import AXES_LENGTH, Annotations
from zwang.viewer.page.display_options import DisplayOptions
from zwang.viewer.page.server_guard import viser
from zwang.viewer.playback import Playback, Poses
from zwang.viewer.surfaces import SurfaceMesh, surfaces

GHOST_OPACITY, TRANSPARENT_OPACITY, CONTACT_SHAPE_OPACITY = 0.3, 0.5, 0.55  # opacities
PLANE_RADIUS = 4.0  # radius of a plane other than the ground, relative to the mechanism's size
WORLD_SPACING = 1.12  # distance between worlds, relative to the range of their motion
RANGE_SAMPLES, FEW_SAMPLES = 24, 4  # numbers of samples from which the range of a motion is determined
LEVEL_COSINE = 0.999  # a plane is horizontal if the cosine of its inclination exceeds this
SAME_HEIGHT = 1e-4  # a plane is at the height of the ground within this, relative to the mechanism's size
FIELD_OF_VIEW, AZIMUTH, ELEVATION = 0.7, -1.05, 0.3  # of the initial camera [rad]
MAXIMUM_EXTENT = (
    3.0  # a motion that ranges further, relative to the usual extent, does not determine the camera
)


class ViserScene:
    """The scene of a viser server, which `draw` updates."""

    def __init__(self, server: viser.ViserServer, scene_data: dict[str, Any], playback: Playback):
        self.server, self.scene_data, self.playback = server, scene_data, playback
        self.root = np.reshape(scene_data["root"], (3, 3))
        self.models = [scene_data["models"][world["model"]] for world in scene_data["worlds"]]
        self.extent = max(float(model["extent"]) for model in scene_data["models"])
        self.offsets = np.zeros((len(self.models), 3))
        self.floor = next((z for _, z in self._horizontal_planes(self.models[0])), None)
        self._parts = self._surfaces()
        low, high = self.range([0], RANGE_SAMPLES)
        self._spacing = WORLD_SPACING * max(
            min(float((high - low)[:2].max()), 4 * self.extent), 0.6 * self.extent
        )
        self.floor = min(float(low[2]), 0.0) - 0.02 * self.extent if self.floor is None else self.floor
        self.arrange(False)
        self._nodes = [_SurfaceNode(server, k, part, worlds) for k, (part, worlds) in enumerate(self._parts)]
        self.annotations = Annotations(server, scene_data, playback, self.extent)
        self._add_grid()

    @property
    def worlds(self) -> int:
        """The number of worlds."""
        return len(self.models)

    def arrange(self, overlay: bool) -> None:
        """Arrange all worlds at the same position, or side by side on a grid."""
        columns = int(np.ceil(np.sqrt(self.worlds)))
        rows = int(np.ceil(self.worlds / columns))
        for k in range(self.worlds):
            x, y = k % columns - (columns - 1) / 2, (rows - 1) / 2 - k // columns
            self.offsets[k] = 0 if overlay else (x * self._spacing, y * self._spacing, 0)

    def poses(self, world: int, t: float) -> Poses:
        """The link poses of a world in the displayed scene, whose z axis points up."""
        return self.to_display(self.playback.poses(world, t), world)

    def to_display(self, poses: Poses, world: int) -> Poses:
        """The poses of a world, rotated such that z points up, and shifted to the world's position
        in the scene.
        """
        return self.root @ poses[0], poses[1] @ self.root.T + self.offsets[world]

    def draw(self, t: float, chosen: int, show: DisplayOptions) -> None:
        """Draw all worlds at the time t [s]."""
        poses = [self.poses(world, t) for world in range(self.worlds)]
        self.annotations.draw(self, poses, t, chosen, show)
        alpha = TRANSPARENT_OPACITY if show.frames or show.mass or self._forces_shown(show) else 1.0
        ghosts = np.array(
            [GHOST_OPACITY if show.overlay and w != chosen else 1.0 for w in range(self.worlds)]
        )
        for node in self._nodes:
            node.draw(poses, alpha * ghosts, show.contact_shapes)

    def _forces_shown(self, show: DisplayOptions) -> bool:
        """Whether forces are displayed; the shapes are then transparent, as they would hide the arrows."""
        forces = self.scene_data["run"] and self.scene_data["run"]["forces"]
        kinds = set(forces["kinds"]) if forces else set()
        return (show.contacts and "contact" in kinds) or (show.constraints and "constraint" in kinds)

    def range(self, worlds: Any, samples: int) -> tuple[np.ndarray, np.ndarray]:
        """The bounding box of the shapes of some worlds over the whole motion: its lower and upper corner."""
        times = np.linspace(self.playback.start, self.playback.end, samples if self.playback.run else 1)
        found = []
        for world in worlds:
            boxes = [
                (part.link, _box_corners(part))
                for part, here in self._parts
                if world in here and part.link >= 0
            ]
            boxes += [(int(s[0]), np.array([s[1:4]])) for s in self.models[world]["rigid_bodies"]]
            for t in times:
                R, p = self.poses(world, t)
                found += [box @ R[link].T + p[link] for link, box in boxes]
        points = np.concatenate(found) if found else np.array([-np.ones(3), np.ones(3)]) * self.extent / 2
        return points.min(axis=0), points.max(axis=0)

    def camera(self) -> tuple[np.ndarray, np.ndarray]:
        """Position and target of a camera that shows all worlds over the whole motion."""
        everyone = range(self.worlds)
        low, high = self.range(everyone, FEW_SAMPLES if self.worlds > 4 else RANGE_SAMPLES)
        usual = 2.5 * self.extent + float(np.ptp(self.offsets, axis=0).max())
        if np.linalg.norm(high - low) > MAXIMUM_EXTENT * usual:
            low, high = self.range(everyone, 1)
        target, distance = (
            (low + high) / 2,
            0.6 * float(np.linalg.norm(high - low)) / np.sin(FIELD_OF_VIEW / 2),
        )
        back = np.array(
            [np.cos(ELEVATION) * np.cos(AZIMUTH), np.cos(ELEVATION) * np.sin(AZIMUTH), np.sin(ELEVATION)]
        )
        return target + max(distance, 1e-3) * back, target

    # -------------------------------------------------------------------------------------------- fixed parts

    def _surfaces(self) -> list[tuple[SurfaceMesh, list[int]]]:
        """Each surface mesh, with the indices of the worlds that have it."""
        found = []
        for k, model in enumerate(self.scene_data["models"]):
            here = [w for w, world in enumerate(self.scene_data["worlds"]) if world["model"] == k]
            ground = [s for s, z in self._horizontal_planes(model) if self._is_ground(z)]
            seen = {**model, "shapes": [s for s in model["shapes"] if not any(s is g for g in ground)]}
            found += [
                (part, here) for part in surfaces(seen, self.scene_data["meshes"], PLANE_RADIUS * self.extent)
            ]
        return found

    def _horizontal_planes(self, model: dict[str, Any]) -> list[tuple[dict[str, Any], float]]:
        """The horizontal planes of the world, each with its height [m]; the first one is the ground."""
        planes = [s for s in model["shapes"] if s["kind"] == "plane" and s["link"] < 0]
        up = self.root[2]
        return [(s, float(up @ s["pose"][9:])) for s in planes if up @ s["pose"][2:9:3] > LEVEL_COSINE]

    def _is_ground(self, height: float) -> bool:
        """Whether a horizontal plane is at the height of the ground; the grid replaces it."""
        return self.floor is not None and abs(height - self.floor) <= SAME_HEIGHT * self.extent

    def _add_grid(self) -> None:
        power = 10 ** np.floor(np.log10(self.extent / 4))
        cell = power * max(step for step in (1, 2, 5) if step * power <= self.extent / 4)
        self.server.scene.add_grid(
            "/ground", infinite_grid=True, cell_size=cell, section_size=5 * cell, cell_color=(205, 211, 219),
            section_color=(170, 178, 190), plane_color=(240, 242, 245), plane_opacity=0.9, shadow_opacity=0.3,
            fade_distance=max(25 * self.extent, 12 * self._spacing), position=(0, 0, float(self.floor or 0)),
        )  # fmt: skip
        self.server.scene.world_axes.visible = False
        self.server.scene.add_frame(
            "/origin",
            axes_length=2 * AXES_LENGTH * self.extent,
            axes_radius=0.003 * self.extent,
            origin_radius=0,
        )


def _box_corners(part: SurfaceMesh) -> np.ndarray:
    """The eight corners of a surface's bounding box."""
    low, high = part.vertices.min(axis=0), part.vertices.max(axis=0)
    return np.array(
        [
            [(low, high)[i][0], (low, high)[j][1], (low, high)[k][2]]
            for i in (0, 1)
            for j in (0, 1)
            for k in (0, 1)
        ]
    )


class _SurfaceNode:
    """The scene node of one surface, with an instance for each of its worlds."""

    def __init__(self, server: viser.ViserServer, number: int, part: SurfaceMesh, worlds: list[int]):
        self.part, self.worlds = part, worlds
        n = len(worlds)
        self.node = server.scene.add_batched_meshes_simple(
            f"/surface/{number}",
            part.vertices,
            part.faces,
            np.tile([1.0, 0, 0, 0], (n, 1)),
            np.zeros((n, 3)),
            batched_colors=np.round(255 * np.asarray(part.color[:3])).astype(np.uint8),
            lod="off",
            side="double",  # type: ignore[arg-type]
            visible=not part.hidden,
        )
        self._alpha = np.ones(n)

    def draw(self, poses: list[Poses], alpha: np.ndarray, contact_shapes: bool) -> None:
        """Move each instance to the pose of its link, with the opacity of its world."""
        node, part = self.node, self.part
        node.visible = contact_shapes or not part.hidden
        if not node.visible:
            return
        R, p = (np.stack([poses[w][i][part.link] for w in self.worlds]) for i in (0, 1))
        node.batched_wxyzs = wxyz(R)
        node.batched_positions = p.astype(np.float32)
        alpha = alpha[self.worlds] * part.color[3] * (CONTACT_SHAPE_OPACITY if part.hidden else 1)
        if not np.array_equal(alpha, self._alpha):
            self._alpha = alpha
            node.batched_opacities = alpha.astype(np.float32)


def wxyz(R: np.ndarray) -> np.ndarray:
    """Quaternions (n, 4), ordered (w, x, y, z), of rotations (n, 3, 3)."""
    return np.roll(Rotation.from_matrix(R).as_quat(), 1, axis=1).astype(np.float32)
