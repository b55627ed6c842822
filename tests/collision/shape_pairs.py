"""Pairs of floating shapes, and their contacts here and in MuJoCo."""

from __future__ import annotations

from dataclasses import replace

import mujoco
import numpy as np

from zwang.collision import ContactPoint, candidate_pairs, contact_points
from zwang.io.mjcf.read.read_mjcf import read_mjcf
from zwang.kinematics.poses import link_poses

FIRST = {
    "sphere": ".3",
    "capsule": ".2 .4",
    "ellipsoid": ".2 .3 .5",
    "cylinder": ".25 .35",
    "box": ".2 .3 .4",
}
SECOND = {
    "sphere": ".4",
    "capsule": ".3 .2",
    "ellipsoid": ".4 .3 .2",
    "cylinder": ".35 .2",
    "box": ".5 .25 .3",
}
ROTATIONS = np.array(
    [[1, 0, 0, 0], [0.5, 0.5, 0.5, 0.5], [1, 1, 0, 0], [1, 0, 0, 1], [np.cos(0.3), 0, 0, np.sin(0.3)]]
)


def shape(name: str, kind: str, sizes: dict[str, str], margin: float) -> str:
    """One geom; a mesh is the asset m."""
    size = 'mesh="m"' if kind == "mesh" else f'size="{sizes.get(kind, "1 1 1")}"'
    return f'<geom name="{name}" type="{kind}" {size} margin="{margin / 2}"/>'


class ShapePair:
    """Two shapes of the given kinds on free joints (a plane is fixed), with their contacts."""

    def __init__(self, first: str, second: str, margin: float = 0.3):
        corners = np.random.default_rng(4).normal(size=(20, 3)) * 0.3
        mesh = f'<asset><mesh name="m" vertex="{" ".join(map(str, corners.ravel()))}"/></asset>'
        a, b = shape("a", first, FIRST, margin), shape("b", second, SECOND, margin)
        body = "" if first == "plane" else "<freejoint/>"
        asset = mesh if "mesh" in (first, second) else ""
        xml = (
            f'<mujoco><option ccd_tolerance="1e-10" ccd_iterations="500"/>{asset}<worldbody>'
            f"<body>{body}{a}</body><body><freejoint/>{b}</body></worldbody></mujoco>"
        )
        self.model = mujoco.MjModel.from_xml_string(xml)
        self.data = mujoco.MjData(self.model)
        self.mechanism = read_mjcf("two.xml", text=xml)
        (self.pair,) = candidate_pairs(self.mechanism)
        self.margin = margin

    def configuration(self, rng: np.random.Generator, aligned: bool) -> np.ndarray:
        """Random positions near the origin, with random orientations or, if aligned, those of `ROTATIONS`."""
        poses = []
        for _ in range(self.model.nq // 7):
            rotation = ROTATIONS[rng.integers(len(ROTATIONS))] if aligned else rng.normal(size=4)
            poses += [*(rng.normal(size=3) * 0.4), *(rotation / np.linalg.norm(rotation))]
        return np.array(poses)

    def contact_points(self, q: np.ndarray) -> list[ContactPoint]:
        """The contact points whose signed distance is within the margin."""
        found = contact_points(self.pair, link_poses(self.mechanism.tree, q))
        assert len(found) == self.pair.count
        return [point for point in found if point.distance <= self.margin]

    def nearest(self, q: np.ndarray) -> ContactPoint:
        """The contact point at the nearest points, without a manifold."""
        pair = replace(self.pair, single=True, margin=10.0)
        (point,) = contact_points(pair, link_poses(self.mechanism.tree, q))
        return point

    def contacts(self, q: np.ndarray) -> list[tuple[float, np.ndarray, np.ndarray]]:
        """MuJoCo's contacts: distance, position, frame."""
        self.data.qpos[:] = q
        mujoco.mj_fwdPosition(self.model, self.data)
        return [(c.dist, c.pos.copy(), c.frame.reshape(3, 3).copy()) for c in self.data.contact]

    def distance(self, q: np.ndarray) -> float:
        """MuJoCo's signed distance of the two shapes."""
        self.contacts(q)
        names = (self.pair.a.shape.name, self.pair.b.shape.name)
        ids = [self.model.geom(name).id for name in names]
        return mujoco.mj_geomDistance(self.model, self.data, *ids, 10.0, np.zeros(6))


def contact_difference(point: ContactPoint, contact: tuple[float, np.ndarray, np.ndarray]) -> float:
    """The largest difference of a contact point and a contact of MuJoCo."""
    distance, position, frame = contact
    return max(
        abs(point.distance - distance),
        np.abs(point.position - position).max(),
        np.abs(point.frame - frame).max(),
    )


def largest_difference(ours: list, theirs: list) -> float:
    """The largest difference of two lists of contacts in any order; infinite if their numbers differ."""
    if len(ours) != len(theirs):
        return np.inf
    left, worst = list(theirs), 0.0
    for point in ours:
        errors = [contact_difference(point, contact) for contact in left]
        nearest = int(np.argmin(errors))
        worst = max(worst, errors[nearest])
        left.pop(nearest)
    return worst
