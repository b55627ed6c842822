"""Stick figures of bodies without shapes, and the lines of springs, rods and tendons.

A stick connects two joints; a sphere marks a centre of mass.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from zwang.kinematics.poses import link_poses, placement_pose
from zwang.mechanism.bodies import Body
from zwang.mechanism.constraints import Distance
from zwang.mechanism.force_elements import PointSpring
from zwang.mechanism.geometry import Mesh
from zwang.mechanism.joints import Free
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.tree import Placement

STICK_RADIUS, SPHERE_RADIUS, PIN_RADIUS = 0.012, 0.045, 0.02  # relative to the mechanism's size
INK = [0.27, 0.29, 0.33, 1.0]


def extent(m: Mechanism) -> float:
    """The mechanism's size [m]: the diagonal of the bounding box of its bodies and shapes in the default
    configuration.
    """
    poses = link_poses(m.tree, np.array(m.home or m.neutral, dtype=float))
    points = []
    for body in m.bodies:
        R, p = (np.asarray(x, dtype=float) for x in placement_pose(poses, m.tree.placement(body.name)))
        points += [p, p + R @ np.array(body.com, dtype=float)]
        for g in body.geometry:
            centre = p + R @ np.array(g.position, dtype=float)
            r = _radius(g)
            points += [centre - r, centre + r]
    if not points:
        return 1.0
    size = float(np.linalg.norm(np.ptp(points, axis=0)))
    ellipsoids = [2 * _ellipsoid(b)[0].max() for b in m.bodies if float(b.mass) > 0]
    return max([size, *ellipsoids]) or 1.0


def _radius(g: Any) -> float:
    """The radius [m] of a sphere around a shape's origin that approximately bounds it."""
    if isinstance(g, Mesh):
        return float(np.linalg.norm(np.asarray(g.vertices), axis=1).max()) if len(g.vertices) else 0.0
    return max((float(getattr(g, s)) for s in g.sizes), default=0.0) / 2


def sticks(m: Mechanism, seen: set[int], size: float, palette: tuple[str, ...]) -> list[dict[str, Any]]:
    """The stick figures of the bodies on links without shapes.

    seen: indices of the links that have shapes; size: the mechanism's size [m]; palette: colours, used in
    turn.
    """
    heaviest = max((float(b.mass) for b in m.bodies), default=0.0) or 1.0
    children: dict[str, list[Body]] = {}
    for body in m.bodies:
        children.setdefault(body.parent, []).append(body)
    found: list[dict[str, Any]] = []
    for k, body in enumerate(m.bodies):
        placement = m.tree.placement(body.name)
        if placement.link in seen or placement.link < 0:
            continue
        text = palette[k % len(palette)]
        color = [int(text[i : i + 2], 16) / 255 for i in (1, 3, 5)] + [1.0]
        draw = _StickFigure(body.name, placement, color, size, found)
        draw.body(
            body, [_anchor(child) for child in children.get(body.name, ())], float(body.mass) / heaviest
        )
    return found


def _anchor(body: Body) -> np.ndarray:
    """The position of a body's first joint in the frame of its parent, at zero coordinates."""
    joint = np.zeros(3)
    if body.joints:
        joint = np.array(body.joints[0].position, dtype=float)  # type: ignore[attr-defined]
    return np.array(body.position, dtype=float) + np.array(body.orientation, dtype=float) @ joint


class _StickFigure:
    """The stick figure of one body: adds shapes, given in the body's frame, to a list."""

    def __init__(
        self, name: str, placement: Placement, color: list[float], size: float, found: list[dict[str, Any]]
    ):
        self.name, self.placement, self.color, self.size, self.found = name, placement, color, size, found

    def body(self, body: Body, ends: list[np.ndarray], weight: float) -> None:
        """Add sticks from the joint to the children's joints and the centre of mass, and a sphere there.

        A body without sticks is drawn as its ellipsoid of inertia. weight: its mass relative to the heaviest
        body.
        """
        com = np.array(body.com, dtype=float)
        joints = [j for j in body.joints if not isinstance(j, Free)]
        start = np.array(joints[0].position, dtype=float) if joints else com  # type: ignore[attr-defined]
        targets = [*ends, *([com] if weight > 0 and not _between(com, start, ends, self.size) else [])]
        drawn = [self.stick(start, end) for end in targets]
        for joint in joints:
            if hasattr(joint, "axis") and joint.kind != "ball":
                position, axis = joint.position, joint.axis  # type: ignore[attr-defined]
                self.pin(np.array(position, dtype=float), np.array(axis, dtype=float))
        if weight <= 0:
            return
        if any(drawn):
            self.add(
                "sphere",
                [SPHERE_RADIUS * self.size * max(weight, 0.02) ** (1 / 3)],
                np.eye(3),
                com,
                self.color,
            )
        else:
            axes, R = _ellipsoid(body)
            self.add("ellipsoid", np.maximum(axes, 0.01 * self.size).tolist(), R, com, self.color)

    def stick(self, a: np.ndarray, b: np.ndarray) -> bool:
        """Add a capsule between two points. Returns False if they coincide."""
        length = float(np.linalg.norm(b - a))
        if length < 1e-3 * self.size:
            return False
        self.add(
            "capsule",
            [STICK_RADIUS * self.size, length],
            rotation_with_z_axis((b - a) / length),
            (a + b) / 2,
            self.color,
        )
        return True

    def pin(self, p: np.ndarray, axis: np.ndarray) -> None:
        """Add a short dark cylinder along a joint's axis."""
        self.add(
            "cylinder",
            [PIN_RADIUS * self.size, 2 * PIN_RADIUS * self.size],
            rotation_with_z_axis(axis),
            p,
            INK,
        )

    def add(self, kind: str, sizes: list[float], R: np.ndarray, p: np.ndarray, color: list[float]) -> None:
        """Add a shape with rotation R and origin p in the body's frame."""
        R, p = self.placement.R @ R, self.placement.p + self.placement.R @ p
        pose = [float(x) for x in (*R.reshape(-1), *p)]
        link = self.placement.link
        self.found.append({"kind": kind, "size": sizes, "link": link, "pose": pose, "color": color,
                           "hidden": False, "body": self.name})  # fmt: skip


def _between(point: np.ndarray, start: np.ndarray, ends: list[np.ndarray], size: float) -> bool:
    """Whether the point lies on one of the sticks from `start` to `ends`."""
    for end in ends:
        d = end - start
        along = float(d @ (point - start)) / max(float(d @ d), 1e-300)
        if 0 <= along <= 1 and np.linalg.norm(start + along * d - point) < STICK_RADIUS * size:
            return True
    return False


def _ellipsoid(body: Body) -> tuple[np.ndarray, np.ndarray]:
    """Semi-axes (3,) [m] and principal axes (3, 3) of the homogeneous ellipsoid with the body's mass and
    inertia.
    """
    I = np.array(body.inertia, dtype=float)
    moments, R = np.linalg.eigh(I)
    if np.linalg.det(R) < 0:
        R = R * np.array([-1, 1, 1])
    mass = float(body.mass) or 1.0
    return np.sqrt(np.maximum(5 / (2 * mass) * (moments.sum() - 2 * moments), 0)), R


def rotation_with_z_axis(z: np.ndarray) -> np.ndarray:
    """A rotation whose third column is the unit vector z."""
    x = np.cross(np.eye(3)[int(np.argmin(np.abs(z)))], z)
    x = x / np.linalg.norm(x)
    return np.stack([x, np.cross(z, x), z], axis=1)


def lines(m: Mechanism) -> list[dict[str, Any]]:
    """Springs and rods between two points, and tendons through frames; each point is (link, x, y, z)."""
    found = []
    for part in (*m.forces, *m.constraints):
        if isinstance(part, PointSpring | Distance):
            kind = "spring" if isinstance(part, PointSpring) else "rod"
            found.append({"kind": kind, "points": [_point(m, *end) for end in (part.a, part.b)]})
    for tendon in m.tendons:
        branch: list[list[float]] = []
        for name in (*tendon.path, None):
            if name is not None:
                branch.append(_point(m, name, (0, 0, 0)))
            elif branch:
                found.append({"kind": "tendon", "points": branch})
                branch = []
    return found


def _point(m: Mechanism, frame: str, point: Any) -> list[float]:
    placement = m.tree.placement(frame)
    return [placement.link, *(float(x) for x in placement.p + placement.R @ np.array(point))]
