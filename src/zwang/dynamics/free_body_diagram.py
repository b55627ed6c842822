"""Free-body diagrams: a mechanism whose bodies are all freed of their joints, where they are.

The freed mechanism has the bodies, the frames, and the forces and constraints that act on bodies: wrenches,
springs between points, tendons along paths. Each body has six generalised velocities of its own, the velocity
of its origin and its angular velocity, both in its own axes; its neutral configuration is the pose that it
has in the given mechanism. So generalised forces of the freed mechanism are a force and a torque on each
body, computed by the text that computes the generalised forces J^T f of any mechanism. Forces on joints
(motors, springs and dampers of joints, couplings, formulas) are transmitted by the joints and left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from zwang.algebra.rotations import cross
from zwang.dynamics.transmissions import velocities_of
from zwang.errors import DescriptionError
from zwang.kinematics.jacobians import placement_jacobian
from zwang.kinematics.poses import Pose, placement_pose
from zwang.mechanism.bodies import Body
from zwang.mechanism.constraints import Connect, Distance, NoSideSlip, Rolling, Weld
from zwang.mechanism.force_elements import (
    Actuator,
    EllipsoidDrag,
    FluidDrag,
    GravityCompensation,
    PointSpring,
    Wrench,
)
from zwang.mechanism.joints import Ball, Fixed, Prismatic
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.numbers import exact_array
from zwang.mechanism.tendon_paths import path_segments
from zwang.mechanism.tree import WORLD, Tree
from zwang.scalar import is_zero

BODY_CONSTRAINTS = (Connect, Weld, Distance, NoSideSlip, Rolling)
AXES = {"x": (1, 0, 0), "y": (0, 1, 0), "z": (0, 0, 1)}


class Load(NamedTuple):
    """A force [N] and a torque [N m] about the point p [m], on a link; all (3,), in world axes."""

    link: int
    p: np.ndarray
    force: np.ndarray
    torque: np.ndarray

    def reversed(self) -> Load:
        """The opposite load, at the same point."""
        return self._replace(force=-self.force, torque=-self.torque)


class FreeBodyDiagram(NamedTuple):
    """The freed mechanism with its q and v, and the link and world pose of each body before."""

    mechanism: Mechanism
    q: np.ndarray
    v: np.ndarray
    links: tuple[int, ...]
    poses: tuple[Pose, ...]

    def loads(self, generalised_forces: Any) -> dict[str, Load]:
        """Loads about the origins of the bodies, by body name, from generalised forces (6 n,) of the freed
        mechanism.

        Loads that are zero by structure are left out.
        """
        found = {}
        for k, (body, link, (R, p)) in enumerate(
            zip(self.mechanism.bodies, self.links, self.poses, strict=True)
        ):
            six = np.array(generalised_forces[6 * k : 6 * k + 6])
            if not is_zero(six):
                found[body.name] = Load(link, p, R @ six[:3], R @ six[3:])
        return found


def free_body_diagram(mechanism: Mechanism, poses: Sequence[Pose], v: Any) -> FreeBodyDiagram:
    """The free-body diagram at the world poses of the links and the generalised velocities v (nv,)."""
    tree, poses = mechanism.tree, list(poses)
    body_poses = tuple(placement_pose(poses, tree.placement(body.name)) for body in mechanism.bodies)
    bodies = tuple(_freed_body(body, pose) for body, pose in zip(mechanism.bodies, body_poses, strict=True))
    freed = mechanism.replace(
        bodies=bodies,
        forces=tuple(f for f in mechanism.forces if acts_on_bodies(mechanism, f)),
        tendons=tuple(replace(t, armature=0) for t in mechanism.tendons if t.path),
        constraints=tuple(c for c in mechanism.constraints if isinstance(c, BODY_CONSTRAINTS)),
        contacts=(), keyframes=(), sensors=(), home=None,
    )  # fmt: skip
    velocities = [np.zeros(0, int)]
    for body, (R, _) in zip(mechanism.bodies, body_poses, strict=True):
        J = placement_jacobian(tree, poses, tree.placement(body.name))
        velocities += [R.T @ (J[:3] @ v), R.T @ (J[3:] @ v)]
    links = tuple(tree.placement(body.name).link for body in mechanism.bodies)
    return FreeBodyDiagram(freed, exact_array(freed.neutral), np.concatenate(velocities), links, body_poses)


def _freed_body(body: Body, pose: Pose) -> Body:
    """The body on joints of its own at its pose. Their armature only lets the body have no mass."""
    translations = [Prismatic(f"{body.name} {name}", axis=axis, armature=1) for name, axis in AXES.items()]
    joint = (*translations, Ball(f"{body.name} turn", armature=1))
    return replace(
        body, joint=joint, parent="world", position=tuple(pose.p), orientation=tuple(map(tuple, pose.R)),
        inertia=(0, 0, 0), unchecked_inertia=True, mocap=False, home_pose=None,
    )  # fmt: skip


def acts_on_bodies(mechanism: Mechanism, force: Any) -> bool:
    """Whether a force acts on bodies directly, and not through the coordinates of joints."""
    if isinstance(force, Actuator):
        paths = {tendon.name: tendon.path for tendon in mechanism.tendons}
        return force.frame is not None or bool(force.tendon is not None and paths[force.tendon])
    if isinstance(force, GravityCompensation):
        return not any(j.joint.actuator_gravity_compensation for j in mechanism.joints)
    return isinstance(force, Wrench | PointSpring | FluidDrag | EllipsoidDrag)


def limiting_joint(mechanism: Mechanism, force: Any) -> str | None:
    """The name of a joint whose `actuator_range` limits a force that acts on bodies; None if there is none.

    The limit holds for the generalised force of all actuators on the joint together, and does not determine
    the loads on the bodies.
    """
    if not (isinstance(force, Actuator) and acts_on_bodies(mechanism, force)):
        return None
    moved = [velocities_of(mechanism.tree, link) for link in _links_under_load(mechanism, force)]
    relative = set.union(*moved) - set.intersection(*moved)  # equal and opposite loads, also on the world
    for joint in mechanism.joints:
        if getattr(joint.joint, "actuator_range", None) is not None and joint.v.start in relative:
            return joint.name
    return None


def carrying_joint(mechanism: Mechanism, force: Any) -> str | None:
    """The name of a joint that turns both frames of an actuator with a force between them; None if there is
    none.

    Such a joint has no moment arm, though opposite forces at two frames are a couple about it. What balances
    the couple is not determined. A couple does no work on a translation.
    """
    if not isinstance(force, Actuator) or force.frame is None or force.reference is None:
        return None
    if all(is_zero(x) for x in force.gear[:3]):
        return None
    tree = mechanism.tree
    ends = [velocities_of(tree, tree.placement(end).link) for end in (force.frame, force.reference)]
    common = set.intersection(*ends)
    turning = (j for j in mechanism.joints if not isinstance(j.joint, Prismatic | Fixed))
    return next((joint.name for joint in turning if joint.v.start in common), None)


def has_determined_loads(mechanism: Mechanism, force: Any) -> bool:
    """Whether the generalised forces of a force determine its loads on bodies."""
    return limiting_joint(mechanism, force) is None and carrying_joint(mechanism, force) is None


def check_loads_on_bodies(mechanism: Mechanism) -> None:
    """Raises DescriptionError for an actuator that has a `limiting_joint` or a `carrying_joint`, for the
    loads on bodies.
    """
    for force in mechanism.forces:
        carrying = carrying_joint(mechanism, force)
        if isinstance(force, Actuator) and carrying is not None:
            raise DescriptionError(
                f"actuator {force.name!r} has a force between the frames {force.frame!r} and "
                f"{force.reference!r}, which joint {carrying!r} turns together without a moment arm: this "
                "does not determine the loads on bodies, and no reactions are computed; give the actuator a "
                "gear of torques only, a reference that no joint of its frame turns, or a tendon"
            )
        joint = limiting_joint(mechanism, force)
        if isinstance(force, Actuator) and joint is not None:
            raise DescriptionError(
                f"the actuator_range of joint {joint!r} limits the generalised force of actuator "
                f"{force.name!r}, which acts on bodies: this does not determine the loads on them, and no "
                "reactions are computed; leave out actuator_range of the joint, and give the actuator a "
                "force_range instead"
            )


def _links_under_load(mechanism: Mechanism, actuator: Actuator) -> set[int]:
    """The links on which an actuator acts with opposite loads; WORLD for the reaction of an external load."""
    tree = mechanism.tree
    for tendon in mechanism.tendons:
        if tendon.name == actuator.tendon:
            return set().union(*(segment.links(tree) for segment in path_segments(tree, tendon)))
    ends = actuator.frame, actuator.reference or actuator.slider
    return {WORLD if end is None else tree.placement(end).link for end in ends}


def subtree_loads(tree: Tree, poses: Sequence[Pose], loads: Sequence[Load]) -> list[tuple[Any, Any]]:
    """For each link the resultant of the loads on it and its descendants: force, and torque about its origin;
    world axes.

    For inertial loads minus applied loads it is the wrench that the link's parent exerts on it through the
    joint.
    """
    zero = np.zeros(3, int)
    sums: list[tuple[Any, Any]] = [(zero, zero)] * len(tree.links)
    for link, p, force, torque in loads:  # resultant of the loads on each link alone
        if link != WORLD:
            sums[link] = (
                sums[link][0] + force,
                sums[link][1] + torque + cross(p - poses[link].p, force),
            )
    for i, link in reversed(list(enumerate(tree.links))):  # from the leaves to the world
        if link.parent != WORLD:
            f, t = sums[i]
            force, torque = sums[link.parent]
            sums[link.parent] = (
                force + f,
                torque + t + cross(poses[i].p - poses[link.parent].p, f),
            )
    return sums
