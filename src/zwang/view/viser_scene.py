"""What stands where on viser's page: shapes of all worlds, side by side or over each other, and marks that explain them.

A surface of a link is one node with an instance for each world, so that a frame of many worlds is few messages. Nodes are named by us, never
by files: what names contain is only ever text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from zwang.view.annotations import AXES_LENGTH, Annotations
from zwang.view.playback import Playback, Poses
from zwang.view.server_guard import viser
from zwang.view.surfaces import Surface, surfaces

GHOST, SEEN_THROUGH, FOR_CONTACT = 0.3, 0.5, 0.55  # opacities
PLANE, SPACE = (
    4.0,
    1.12,
)  # radius of a plane that is not the ground, by the reach; distance of worlds, by their extent
SAMPLES, FEW = 24, 4  # of a motion, to see how far it goes
FLAT = 0.999  # the cosine at which a plane is level
ANGLE, AZIMUTH, HEIGHT = 0.7, -1.05, 0.3  # of the camera [rad]
FAR_AWAY = 3.0  # times the usual extent: what flies so far does not make all else small


@dataclass
class DisplayOptions:
    """What is shown beside the shapes; over: all worlds in one place, the chosen one solid. arrows: lengths of forces, by the usual."""

    names: bool = False
    frames: bool = False
    mass: bool = False
    contacts: bool = True
    constraints: bool = True
    ellipsoids: bool = False
    paths: bool = True
    contact_shapes: bool = False
    over: bool = False
    follow: bool = False
    arrows: float = 1.0


class ViserScene:
    """The scene of a viser server, drawn anew by `draw`."""

    def __init__(self, server: viser.ViserServer, picture: dict[str, Any], motion: Playback):
        self.server, self.picture, self.motion = server, picture, motion
        self.root = np.reshape(picture["root"], (3, 3))
        self.models = [picture["models"][world["model"]] for world in picture["worlds"]]
        self.reach = max(float(model["reach"]) for model in picture["models"])
        self.offsets = np.zeros((len(self.models), 3))
        self.floor, self._level = self._ground()
        self._parts = self._surfaces()
        low, high = self.range([0], SAMPLES)
        self._spacing = SPACE * max(min(float((high - low)[:2].max()), 4 * self.reach), 0.6 * self.reach)
        self.floor = min(float(low[2]), 0.0) - 0.02 * self.reach if self.floor is None else self.floor
        self.arrange(False)
        self._nodes = [_Node(server, k, part, worlds) for k, (part, worlds) in enumerate(self._parts)]
        self.marks = Annotations(server, picture, motion, self.reach)
        self._add_grid()

    @property
    def worlds(self) -> int:
        """How many worlds there are."""
        return len(self.models)

    def arrange(self, over: bool) -> None:
        """Put all worlds in one place, or side by side."""
        columns = int(np.ceil(np.sqrt(self.worlds)))
        rows = int(np.ceil(self.worlds / columns))
        for k in range(self.worlds):
            x, y = k % columns - (columns - 1) / 2, (rows - 1) / 2 - k // columns
            self.offsets[k] = 0 if over else (x * self._spacing, y * self._spacing, 0)

    def poses(self, world: int, t: float) -> Poses:
        """Where the links of a world are in the picture, up being z."""
        return self.raised(self.motion.poses(world, t), world)

    def raised(self, poses: Poses, world: int) -> Poses:
        """Poses of a world, turned with up to z and moved to its place in the picture."""
        return self.root @ poses[0], poses[1] @ self.root.T + self.offsets[world]

    def draw(self, t: float, chosen: int, show: DisplayOptions) -> None:
        """All worlds at the time t [s]."""
        poses = [self.poses(world, t) for world in range(self.worlds)]
        self.marks.draw(self, poses, t, chosen, show)
        alpha = SEEN_THROUGH if show.frames or show.mass or self._pushed(show) else 1.0
        ghosts = np.array([GHOST if show.over and w != chosen else 1.0 for w in range(self.worlds)])
        for node in self._nodes:
            node.draw(poses, alpha * ghosts, show.contact_shapes)

    def _pushed(self, show: DisplayOptions) -> bool:
        """Whether forces are to be seen in this motion: shapes would hide them."""
        forces = self.picture["run"] and self.picture["run"]["forces"]
        kinds = set(forces["kinds"]) if forces else set()
        return (show.contacts and "contact" in kinds) or (show.constraints and "constraint" in kinds)

    def range(self, worlds: Any, samples: int) -> tuple[np.ndarray, np.ndarray]:
        """The box around the shapes of some worlds over the whole motion: its lowest and highest corner."""
        times = np.linspace(self.motion.start, self.motion.end, samples if self.motion.run else 1)
        found = []
        for world in worlds:
            boxes = [
                (part.link, _corners(part)) for part, here in self._parts if world in here and part.link >= 0
            ]
            boxes += [(int(s[0]), np.array([s[1:4]])) for s in self.models[world]["solids"]]
            for t in times:
                R, p = self.poses(world, t)
                found += [box @ R[link].T + p[link] for link, box in boxes]
        points = np.concatenate(found) if found else np.array([-np.ones(3), np.ones(3)]) * self.reach / 2
        return points.min(axis=0), points.max(axis=0)

    def camera(self) -> tuple[np.ndarray, np.ndarray]:
        """(position, target) of a camera that sees all worlds over the whole motion."""
        everyone = range(self.worlds)
        low, high = self.range(everyone, FEW if self.worlds > 4 else SAMPLES)
        usual = 2.5 * self.reach + float(np.ptp(self.offsets, axis=0).max())
        if np.linalg.norm(high - low) > FAR_AWAY * usual:
            low, high = self.range(everyone, 1)
        target, distance = (low + high) / 2, 0.6 * float(np.linalg.norm(high - low)) / np.sin(ANGLE / 2)
        back = np.array([np.cos(HEIGHT) * np.cos(AZIMUTH), np.cos(HEIGHT) * np.sin(AZIMUTH), np.sin(HEIGHT)])
        return target + max(distance, 1e-3) * back, target

    # ---------------------------------------------------------------------------------------- what stands still

    def _surfaces(self) -> list[tuple[Surface, list[int]]]:
        """Each surface, with the worlds that have it."""
        found = []
        for k, model in enumerate(self.picture["models"]):
            here = [w for w, world in enumerate(self.picture["worlds"]) if world["model"] == k]
            seen = {**model, "shapes": [s for s in model["shapes"] if s is not self._level]}
            found += [(part, here) for part in surfaces(seen, self.picture["meshes"], PLANE * self.reach)]
        return found

    def _ground(self) -> tuple[float | None, Any]:
        """The height of a level plane of the world, which the grid stands for, and that plane; or nothing."""
        for shape in self.models[0]["shapes"]:
            if shape["kind"] == "plane" and shape["link"] < 0:
                pose = np.array(shape["pose"])
                if (self.root @ pose[:9].reshape(3, 3))[2, 2] > FLAT:
                    return float((self.root @ pose[9:])[2]), shape
        return None, None

    def _add_grid(self) -> None:
        power = 10 ** np.floor(np.log10(self.reach / 4))
        cell = power * max(step for step in (1, 2, 5) if step * power <= self.reach / 4)
        self.server.scene.add_grid(
            "/ground", infinite_grid=True, cell_size=cell, section_size=5 * cell, cell_color=(205, 211, 219),
            section_color=(170, 178, 190), plane_color=(240, 242, 245), plane_opacity=0.9, shadow_opacity=0.3,
            fade_distance=max(25 * self.reach, 12 * self._spacing), position=(0, 0, float(self.floor or 0)),
        )  # fmt: skip
        self.server.scene.world_axes.visible = False
        self.server.scene.add_frame(
            "/origin",
            axes_length=2 * AXES_LENGTH * self.reach,
            axes_radius=0.003 * self.reach,
            origin_radius=0,
        )


def _corners(part: Surface) -> np.ndarray:
    """The eight corners of a surface's box."""
    low, high = part.vertices.min(axis=0), part.vertices.max(axis=0)
    return np.array(
        [
            [(low, high)[i][0], (low, high)[j][1], (low, high)[k][2]]
            for i in (0, 1)
            for j in (0, 1)
            for k in (0, 1)
        ]
    )


class _Node:
    """One surface in all its worlds."""

    def __init__(self, server: viser.ViserServer, number: int, part: Surface, worlds: list[int]):
        self.part, self.worlds = part, worlds
        n = len(worlds)
        self.node = server.scene.add_batched_meshes_simple(
            f"/surface/{number}", part.vertices, part.faces, np.tile([1.0, 0, 0, 0], (n, 1)), np.zeros((n, 3)),
            batched_colors=tuple(round(255 * c) for c in part.color[:3]), lod="off", side="double",  # type: ignore[arg-type]
            visible=not part.hidden,
        )  # fmt: skip
        self._alpha = np.ones(n)

    def draw(self, poses: list[Poses], alpha: np.ndarray, contact_shapes: bool) -> None:
        """Put it where its link is, as solid as each world is."""
        node, part = self.node, self.part
        node.visible = contact_shapes or not part.hidden
        if not node.visible:
            return
        R, p = (np.stack([poses[w][i][part.link] for w in self.worlds]) for i in (0, 1))
        node.batched_wxyzs = wxyz(R)
        node.batched_positions = p.astype(np.float32)
        alpha = alpha[self.worlds] * part.color[3] * (FOR_CONTACT if part.hidden else 1)
        if not np.array_equal(alpha, self._alpha):
            self._alpha = alpha
            node.batched_opacities = alpha.astype(np.float32)


def wxyz(R: np.ndarray) -> np.ndarray:
    """Quaternions (n, 4), w first, of rotations (n, 3, 3)."""
    return np.roll(Rotation.from_matrix(R).as_quat(), 1, axis=1).astype(np.float32)
