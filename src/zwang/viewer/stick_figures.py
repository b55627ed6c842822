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
from zwang.mechanism.geometry import HeightField, Mesh
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
    if isinstance(g, HeightField):
        return float(np.linalg.norm(g.box, axis=1).max())
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
        draw = _StickFigure(m, body, placement, color, size, found)
        draw.body(
            [("anchor", child.name) for child in children.get(body.name, ())], float(body.mass) / heaviest
        )
    return found


StickPoint = tuple[Any, ...]
"""A point of a stick figure: ("joint", body, k), a body's k-th joint; ("anchor", body), a body's first joint
as its parent carries it, at zero coordinates; or ("com", body), a centre of mass.
"""


def link_point(m: Mechanism, point: StickPoint) -> Any:
    """The position (3,) of a point of a stick figure in the frame of the link that carries it.

    The mechanism may contain symbols, or scalars that are traced.
    """
    carrier, p = _body_point(m, point)
    placement = m.tree.placement(carrier)
    return placement.p + placement.R @ p


def _body_point(m: Mechanism, point: StickPoint) -> tuple[str, Any]:
    """The body that carries a point, and the position (3,) of the point in the body's frame."""
    kind, name, *index = point
    body = m.body(name)
    if kind == "com":
        return name, np.array(body.com)
    if kind == "joint":
        return name, np.array(body.joints[index[0]].position)  # type: ignore[attr-defined]
    joint = np.array(body.joints[0].position) if body.joints else np.zeros(3)  # type: ignore[attr-defined]
    return body.parent, np.array(body.position) + np.array(body.orientation) @ joint


class _StickFigure:
    """The stick figure of one body: adds shapes, given in the body's frame, to a list.

    Each shape names its `ends`, the points that it connects or at which it lies.
    """

    def __init__(
        self,
        m: Mechanism,
        body: Body,
        placement: Placement,
        color: list[float],
        size: float,
        found: list[dict[str, Any]],
    ):
        self.m, self.part, self.placement = m, body, placement
        self.color, self.size, self.found = color, size, found

    def body(self, anchors: list[StickPoint], weight: float) -> None:
        """Add sticks from the joint to the children's joints and the centre of mass, and a sphere there.

        A body without sticks is drawn as its ellipsoid of inertia. weight: its mass relative to the heaviest
        body.
        """
        body, com = self.part, ("com", self.part.name)
        joints = [k for k, j in enumerate(body.joints) if not isinstance(j, Free)]
        start = ("joint", body.name, joints[0]) if joints else com
        ends = [self.at(anchor) for anchor in anchors]
        hidden = weight <= 0 or _between(self.at(com), self.at(start), ends, self.size)
        drawn = [self.stick(start, end) for end in (*anchors, *([] if hidden else [com]))]
        for k in joints:
            joint = body.joints[k]
            if hasattr(joint, "axis") and joint.kind != "ball":
                axis = np.array(joint.axis, dtype=float)  # type: ignore[attr-defined]
                self.pin(("joint", body.name, k), axis)
        if weight <= 0:
            return
        if any(drawn):
            radius = SPHERE_RADIUS * self.size * max(weight, 0.02) ** (1 / 3)
            self.add("sphere", [radius], np.eye(3), self.at(com), self.color, [com])
        else:
            axes, R = _ellipsoid(body)
            sizes = np.maximum(axes, 0.01 * self.size).tolist()
            self.add("ellipsoid", sizes, R, self.at(com), self.color, [com])

    def at(self, point: StickPoint) -> np.ndarray:
        """The position of a point in the body's frame."""
        return np.asarray(_body_point(self.m, point)[1], dtype=float)

    def stick(self, start: StickPoint, end: StickPoint) -> bool:
        """Add a capsule between two points. Returns False if they coincide."""
        a, b = self.at(start), self.at(end)
        length = float(np.linalg.norm(b - a))
        if length < 1e-3 * self.size:
            return False
        R = rotation_with_z_axis((b - a) / length)
        self.add("capsule", [STICK_RADIUS * self.size, length], R, (a + b) / 2, self.color, [start, end])
        return True

    def pin(self, joint: StickPoint, axis: np.ndarray) -> None:
        """Add a short dark cylinder along a joint's axis."""
        sizes = [PIN_RADIUS * self.size, 2 * PIN_RADIUS * self.size]
        self.add("cylinder", sizes, rotation_with_z_axis(axis), self.at(joint), INK, [joint])

    def add(
        self,
        kind: str,
        sizes: list[float],
        R: np.ndarray,
        p: np.ndarray,
        color: list[float],
        ends: list[StickPoint],
    ) -> None:
        """Add a shape with rotation R and origin p in the body's frame."""
        R, p = self.placement.R @ R, self.placement.p + self.placement.R @ p
        pose = [float(x) for x in (*R.reshape(-1), *p)]
        link = self.placement.link
        self.found.append({"kind": kind, "size": sizes, "link": link, "pose": pose, "color": color,
                           "hidden": False, "body": self.part.name,
                           "ends": [list(end) for end in ends]})  # fmt: skip


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
    for (kind, ends), points in zip(_lines(m), tendon_and_rod_points(m), strict=True):
        links = [m.tree.placement(frame).link for frame, _ in ends]
        at = [[link, *(float(x) for x in p)] for link, p in zip(links, points, strict=True)]
        found.append({"kind": kind, "points": at})
    return found


def tendon_and_rod_points(m: Mechanism) -> list[list[Any]]:
    """The points (3,) of each of the `lines` in the frames of the links that carry them.

    The mechanism may contain symbols, or scalars that are traced.
    """
    found = []
    for _, ends in _lines(m):
        places = [(m.tree.placement(frame), np.array(point)) for frame, point in ends]
        found.append([place.p + place.R @ point for place, point in places])
    return found


def _lines(m: Mechanism) -> list[tuple[str, list[tuple[str, Any]]]]:
    """Kind and points of each line; a point is a position (3,) in the frame of a body or frame."""
    found: list[tuple[str, list[tuple[str, Any]]]] = []
    for part in (*m.forces, *m.constraints):
        if isinstance(part, PointSpring | Distance):
            found.append(("spring" if isinstance(part, PointSpring) else "rod", [part.a, part.b]))
    for tendon in m.tendons:
        branch: list[tuple[str, Any]] = []
        for name in (*tendon.path, None):
            if name is not None:
                branch.append((name, (0, 0, 0)))
            elif branch:
                found.append(("tendon", branch))
                branch = []
    return found
