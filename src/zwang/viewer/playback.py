"""Playback of a recording: configurations interpolated between samples, link poses, forces and velocity
ellipsoids.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from zwang.kinematics.configuration import normalized_configuration
from zwang.kinematics.jacobians import point_jacobian
from zwang.kinematics.poses import Pose, link_poses
from zwang.mechanism.mechanism import Mechanism

Poses = tuple[np.ndarray, np.ndarray]
"""Rotations (n, 3, 3) and origins (n, 3) of the links in the world frame; the last is that of the world
itself.
"""


class Playback:
    """The configuration (nq,) of each world: set manually, or else recorded at a given time, or else the
    default one.
    """

    def __init__(self, mechanisms: list[Mechanism], run: dict[str, Any] | None):
        self.mechanisms, self.run = mechanisms, run
        self.manual_configurations: dict[int, np.ndarray] = {}
        self.times = np.zeros(1) if run is None else np.asarray(run["times"], dtype=float)
        self._balls = ball_coordinates(mechanisms[0])
        self._held = [] if run is None else [held_samples(q) for q in run["q"]]

    @property
    def start(self) -> float:
        """The time of the first sample [s]."""
        return float(self.times[0])

    @property
    def end(self) -> float:
        """The time of the last sample [s]."""
        return float(self.times[-1])

    def configuration(self, world: int, t: float) -> np.ndarray:
        """q (nq,) of a world at the time t [s], by linear interpolation between samples.

        A quaternion is interpolated along the shorter arc and normalised. Where samples are not finite, as
        after a world has stopped, it keeps its last valid configuration.
        """
        m = self.mechanisms[world]
        if world in self.manual_configurations:
            return self.manual_configurations[world]
        if self.run is None:
            return np.array(m.home or m.neutral, dtype=float)
        k, share = self._between(t)
        held = self._held[world]
        if len(held) < 2 or held[k] != k or held[k + 1] != k + 1:
            return self.run["q"][world, held[k + (share >= 1)]]
        a, b = self.run["q"][world, k : k + 2]
        q = interpolated_configuration(a, b, share, self._balls)
        return np.asarray(normalized_configuration(m.tree, q), dtype=float)

    def poses(self, world: int, t: float) -> Poses:
        """The link poses of a world at the time t [s]."""
        return _poses(self.mechanisms[world], self.configuration(world, t))

    def recorded_poses(self, world: int, most: int) -> list[Poses]:
        """The link poses at up to `most` of the valid samples, evenly spaced."""
        if self.run is None:
            return []
        valid = np.unique(self._held[world])
        chosen = np.unique(np.linspace(0, len(valid) - 1, most).round().astype(int))
        return [_poses(self.mechanisms[world], self.run["q"][world, k]) for k in valid[chosen]]

    def forces(self, world: int, t: float, kind: str) -> tuple[np.ndarray, np.ndarray]:
        """Points of application [m] and forces [N] of one kind, (n, 3) each, at the last sample before t [s].

        There are none for a configuration set manually, for a world that stopped, and in a recording without
        forces.
        """
        recorded = None if self.run is None else self.run["forces"]
        if recorded is None or world in self.manual_configurations:
            return np.zeros((0, 3)), np.zeros((0, 3))
        k = self._between(t)[0] + (t >= self.end and len(self.times) > 1)
        chosen = [i for i, this in enumerate(recorded["kinds"]) if this == kind]
        points, forces = recorded["position"][world, k, chosen], recorded["force"][world, k, chosen]
        there = np.isfinite(points).all(axis=1) & np.isfinite(forces).all(axis=1)
        return points[there], forces[there]

    def _between(self, t: float) -> tuple[int, float]:
        """The last sample before t, and the elapsed fraction of the interval to the next one."""
        if len(self.times) < 2:
            return 0, 0.0
        k = int(np.clip(np.searchsorted(self.times, t, side="right") - 1, 0, len(self.times) - 2))
        return k, float(np.clip((t - self.times[k]) / (self.times[k + 1] - self.times[k]), 0, 1))


def ball_coordinates(m: Mechanism) -> list[int]:
    """The index in q of the first coordinate of each quaternion."""
    return [link.q.start for link in m.tree.links if link.joint.kind == "ball"]


def interpolated_configuration(a: np.ndarray, b: np.ndarray, share: Any, balls: list[int]) -> np.ndarray:
    """a + share (b - a) of samples a and b (..., nq), with quaternions along the shorter arc, not normalised.

    share: the elapsed fraction of the interval, of a shape that broadcasts with a. balls: the index of the
    first coordinate of each quaternion.
    """
    signs = np.ones_like(b)
    for i in balls:
        same = np.sum(a[..., i : i + 4] * b[..., i : i + 4], axis=-1, keepdims=True) >= 0
        signs[..., i : i + 4] = np.where(same, 1.0, -1.0)
    return a + share * (signs * b - a)


def held_samples(q: np.ndarray) -> np.ndarray:
    """For each sample of q (times, nq) the last one up to it that is finite, or the first finite one.

    A world that stopped has NaN afterwards; of recordings that were joined in time also in between.
    """
    good = np.isfinite(q).all(axis=1)
    first = int(good.argmax())  # 0 without any
    return np.maximum.accumulate(np.where(good, np.arange(len(q)), first))


def _poses(m: Mechanism, q: np.ndarray) -> Poses:
    poses = [*link_poses(m.tree, q), (np.eye(3), np.zeros(3))]
    R, p = zip(*poses, strict=True)
    return np.asarray(R, dtype=float), np.asarray(p, dtype=float)


def frame_in_world(poses: Poses, placement: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    """Rotation (3, 3) and origin (3,) of a frame in the world, from its link and its pose of 12 numbers on
    that link.
    """
    R, p = poses[0][placement["link"]], poses[1][placement["link"]]
    pose = np.array(placement["pose"])
    return R @ pose[:9].reshape(3, 3), p + R @ pose[9:]


def rigid_body_centres(model: dict[str, Any], poses: Poses) -> tuple[np.ndarray, np.ndarray]:
    """Centres of mass (n, 3) [m] of the rigid bodies in the world frame, and their masses (n,) [kg]."""
    if not model["rigid_bodies"]:
        return np.zeros((0, 3)), np.zeros(0)
    table = np.array(model["rigid_bodies"])
    links = table[:, 0].astype(int)
    return poses[1][links] + np.einsum("nij,nj->ni", poses[0][links], table[:, 1:4]), table[:, 4]


def velocity_ellipsoid(
    m: Mechanism, poses: Poses, placement: dict[str, Any]
) -> tuple[np.ndarray, np.ndarray]:
    """The velocity (manipulability) ellipsoid of a frame's origin: the velocities J v with |v| = 1.

    Returns the principal directions U (3, 3) as columns of a right-handed rotation, and the semi-axes (3,),
    from J J^T = U diag(axes^2) U^T with the linear part J (3, nv) of the frame's Jacobian.
    """
    _, p = frame_in_world(poses, placement)
    J = np.asarray(
        point_jacobian(m.tree, [Pose(*pose) for pose in zip(*poses, strict=True)], placement["link"], p),
        dtype=float,
    )[:3]
    squares, U = np.linalg.eigh(J @ J.T)
    return U * np.array([1, 1, np.sign(np.linalg.det(U))]), np.sqrt(np.maximum(squares, 0))
