"""Free-body diagrams: every body cut free where it is, so that generalised forces on it are a force and a torque.

The cut mechanism has the bodies, frames and whatever acts between bodies (wrenches, springs between points, tendons along paths); each
body has six speeds of its own, the velocity of its origin and its angular velocity, both in its own axes, and stands at its place with
q = neutral. What acts on joints' speeds (motors, springs and dampers of joints, couplings, formulas) is passed on by the joints, and
is no part of it. So whatever gives efforts J^T f on a mechanism, gives wrenches on its bodies here, without a second text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from zwang.algebra.rotations import cross
from zwang.kinematics.jacobians import placement_jacobian
from zwang.kinematics.poses import Pose, placement_pose
from zwang.mechanism.bodies import Body
from zwang.mechanism.constraints import Connect, Distance, NoSideSlip, Rolling, Weld
from zwang.mechanism.forces import Actuator, GravityCompensation, PointSpring, Wrench
from zwang.mechanism.joints import Ball, Prismatic
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.tree import WORLD, Tree
from zwang.scalar import is_zero

BODY_CONSTRAINTS = (Connect, Weld, Distance, NoSideSlip, Rolling)
_AXES = {"x": (1, 0, 0), "y": (0, 1, 0), "z": (0, 0, 1)}


class Load(NamedTuple):
    """A force and a torque about the point p, on a link; all in world axes [N, N m, m]."""

    link: int
    p: np.ndarray
    force: np.ndarray
    torque: np.ndarray

    def reversed(self) -> Load:
        """The same, the other way."""
        return self._replace(force=-self.force, torque=-self.torque)


class FreeBodyDiagram(NamedTuple):
    """The cut mechanism with its q and v, and where the bodies of the whole one are: for each its link and pose."""

    mechanism: Mechanism
    q: np.ndarray
    v: np.ndarray
    links: tuple[int, ...]
    poses: tuple[Pose, ...]

    def loads(self, efforts: Any) -> dict[str, Load]:
        """Efforts on the cut mechanism (6 n,) as loads about the bodies' origins, by body; those that are zero everywhere left out."""
        found = {}
        for k, (body, link, (R, p)) in enumerate(
            zip(self.mechanism.bodies, self.links, self.poses, strict=True)
        ):
            six = np.array(efforts[6 * k : 6 * k + 6])
            if not is_zero(six):
                found[body.name] = Load(link, p, R @ six[:3], R @ six[3:])
        return found


def free_body_diagram(mechanism: Mechanism, poses: Sequence[Pose], v: Any) -> FreeBodyDiagram:
    """All bodies cut free where the links' poses put them, at the velocities that the speeds v give them."""
    tree, poses = mechanism.tree, list(poses)
    at = tuple(placement_pose(poses, tree.place(body.name)) for body in mechanism.bodies)
    bodies = tuple(_cut(body, pose) for body, pose in zip(mechanism.bodies, at, strict=True))
    cut = mechanism.replace(
        bodies=bodies,
        forces=tuple(f for f in mechanism.forces if acts_on_bodies(mechanism, f)),
        tendons=tuple(t for t in mechanism.tendons if t.path),
        constraints=tuple(c for c in mechanism.constraints if isinstance(c, BODY_CONSTRAINTS)),
        contacts=(), keyframes=(), home=None,
    )  # fmt: skip
    speeds = [np.zeros(0, int)]
    for body, (R, _) in zip(mechanism.bodies, at, strict=True):
        J = placement_jacobian(tree, poses, tree.place(body.name))
        speeds += [R.T @ (J[:3] @ v), R.T @ (J[3:] @ v)]
    links = tuple(tree.place(body.name).link for body in mechanism.bodies)
    return FreeBodyDiagram(cut, np.array(cut.neutral), np.concatenate(speeds), links, at)


def _cut(body: Body, pose: Pose) -> Body:
    """The body with joints of its own at its place. Their armature lets it have no mass; it plays no part."""
    slides = [Prismatic(f"{body.name} {name}", axis=axis, armature=1) for name, axis in _AXES.items()]
    joint = (*slides, Ball(f"{body.name} turn", armature=1))
    return replace(
        body, joint=joint, parent="world", position=tuple(pose.p), orientation=tuple(map(tuple, pose.R)),
        inertia=(0, 0, 0), unchecked_inertia=True,
    )  # fmt: skip


def acts_on_bodies(mechanism: Mechanism, force: Any) -> bool:
    """Whether a force acts on bodies by itself, and not on the speeds of joints."""
    if isinstance(force, Actuator):
        paths = {tendon.name: tendon.path for tendon in mechanism.tendons}
        return force.frame is not None or bool(force.tendon is not None and paths[force.tendon])
    return isinstance(force, Wrench | PointSpring | GravityCompensation)


def subtree_loads(tree: Tree, poses: Sequence[Pose], loads: Sequence[Load]) -> list[tuple[Any, Any]]:
    """For each link the sum of the loads on it and on what it carries: force, and torque about its origin; world axes.

    From the leaves to the world. With inertial loads less applied ones it is what the link gets from the one before.
    """
    zero = np.zeros(3, int)
    sums: list[tuple[Any, Any]] = [(zero, zero)] * len(tree.links)
    for link, p, force, torque in loads:
        if link != WORLD:
            sums[link] = (
                sums[link][0] + force,
                sums[link][1] + torque + cross(p - poses[link].p, force),
            )
    for i, link in reversed(list(enumerate(tree.links))):
        if link.parent != WORLD:
            f, t = sums[i]
            force, torque = sums[link.parent]
            sums[link.parent] = (
                force + f,
                torque + t + cross(poses[i].p - poses[link.parent].p, f),
            )
    return sums
