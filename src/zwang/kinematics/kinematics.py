"""The kinematics of one state (q, v): a record whose quantities are computed once, at first use."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from zwang.algebra.rotations import cross
from zwang.kinematics.jacobians import (
    placement_jacobian,
    point_jacobian,
    relative_jacobian,
    world_motion_subspaces,
)
from zwang.kinematics.poses import Pose, compose_poses, link_pose, motion_subspace, placement_pose
from zwang.kinematics.velocities import SpatialVector, propagate_accelerations, propagate_velocities
from zwang.mechanism.tree import WORLD, Placement, Tree

T = TypeVar("T")

CACHED = (
    "joint_poses",
    "motion_subspaces",
    "poses",
    "velocities",
    "bias_accelerations",
    "world_motion_subspaces",
)


@dataclass(frozen=True, eq=False)
class Kinematics:
    """Poses, velocities and bias accelerations of all links of a tree at one state, as in MuJoCo's
    mjData.

    tree: the links. q: configuration (nq,), with unit quaternions. v: generalised velocities (nv,); None
    where only poses and Jacobians are needed, and then velocities and bias accelerations raise ValueError.
    The entries of q and v are scalars of any backend. Each quantity is computed when it is first read, and
    kept. The operations and their order are those of `link_poses`, `link_velocities` and `placement_motion`,
    so that the numbers are the same bit for bit. The record is no pytree to be carried through a loop: build
    one from the carried q and v.
    """

    tree: Tree
    q: Any
    v: Any = None

    @classmethod
    def at_poses(cls, tree: Tree, q: Any, v: Any, poses: list[Pose]) -> Kinematics:
        """The record of a state whose world poses of all links are already computed."""
        found = cls(tree, q, v)
        found.__dict__["poses"] = poses
        return found

    def with_velocities(self, v: Any) -> Kinematics:
        """The record at the same configuration with other generalised velocities v (nv,); the poses are
        kept.
        """
        other = replace(self, v=v)
        other.__dict__.update(_joint_pose_of=self._joint_pose_of, _kept=self._kept)
        known = ("joint_poses", "poses", "motion_subspaces", "world_motion_subspaces")
        other.__dict__.update({name: self.__dict__[name] for name in known if name in self.__dict__})
        return other

    def with_computed_poses(self) -> Kinematics:
        """This record, with its poses and motion subspaces computed now.

        A traced program may then read them in branches and loops: what is first computed in a branch is not
        defined outside of it.
        """
        for name in ("joint_poses", "poses", "motion_subspaces"):
            getattr(self, name)
        return self

    @cached_property
    def _joint_pose_of(self) -> dict[int, Pose]:
        return {}

    @cached_property
    def _kept(self) -> dict[Hashable, Any]:
        return {}

    def kept(self, key: Hashable, compute: Callable[[], T]) -> T:
        """What `compute` returns, a function of the configuration alone that is called once for each key."""
        if key not in self._kept:
            self._kept[key] = compute()
        return self._kept[key]

    def _each_joint_pose(self) -> Iterator[Pose]:
        """The pose of each link in its parent, computed where it is not known yet just before it is used."""
        known = self._joint_pose_of
        for i, link in enumerate(self.tree.links):
            if i not in known:
                known[i] = link_pose(link, self.q)
            yield known[i]

    @cached_property
    def joint_poses(self) -> list[Pose]:
        """Pose of each link in its parent link."""
        return list(self._each_joint_pose())

    @cached_property
    def motion_subspaces(self) -> list[np.ndarray]:
        """Motion subspace S (6, nv of the link) of each link, linear rows first, in the link's axes."""
        return [motion_subspace(link) for link in self.tree.links]

    @cached_property
    def poses(self) -> list[Pose]:
        """World pose of each link."""
        return compose_poses(self.tree, self._each_joint_pose())

    @cached_property
    def velocities(self) -> list[SpatialVector]:
        """Velocity of each link's origin [m/s] and its angular velocity [rad/s], in the link's axes."""
        return propagate_velocities(
            self.tree, self._each_joint_pose(), self.motion_subspaces, self._known_v()
        )

    @cached_property
    def bias_accelerations(self) -> list[SpatialVector]:
        """Acceleration of each link's origin [m/s^2] and its angular acceleration [rad/s^2] at zero
        generalised acceleration, in the link's axes. Gravity is not included."""
        v, rest = self._known_v(), np.zeros(self.tree.nv, int)
        return propagate_accelerations(
            self.tree, self._each_joint_pose(), self.motion_subspaces, self.velocities, v, rest
        )

    @cached_property
    def world_motion_subspaces(self) -> list[np.ndarray]:
        """Motion subspace (6, nv of the link) of each link, in world axes and at the world's origin."""
        return world_motion_subspaces(self.tree, self.poses)

    def _known_v(self) -> Any:
        if self.v is None:
            raise ValueError(
                "this record of kinematics has no velocities: build it with the generalised velocities v"
            )
        return self.v

    def placement_pose(self, placement: Placement) -> Pose:
        """World pose of a frame that is fixed to a link."""
        return placement_pose(self.poses, placement)

    def frame_pose(self, frame: str) -> Pose:
        """World pose of a body's frame or of a named frame. Raises UnknownNameError for an unknown frame."""
        return self.placement_pose(self.tree.placement(frame))

    def placement_jacobian(self, placement: Placement) -> np.ndarray:
        """J (6, nv) of a frame that is fixed to a link, linear rows first, in world axes."""
        return placement_jacobian(self.tree, self.poses, placement)

    def point_jacobian(self, link: int, p: Any) -> np.ndarray:
        """J (6, nv) of the point of a link at the world point p (3,), linear rows first, in world axes."""
        return point_jacobian(self.tree, self.poses, link, p)

    def relative_jacobian(self, a: int, b: int, p: Any) -> np.ndarray:
        """J (6, nv) of link b relative to link a at the world point p (3,), linear first, in world axes."""
        return relative_jacobian(self.tree, self.poses, a, b, p)

    def placement_velocity(self, placement: Placement) -> np.ndarray:
        """J v (6,): velocity of the origin of a frame fixed to a link, and its angular velocity, in world
        axes.
        """
        if placement.link == WORLD:
            return np.zeros(6, int)
        R, (u, w) = self.poses[placement.link].R, self.velocities[placement.link]
        return np.concatenate([R @ (u + cross(w, placement.p)), R @ w])

    def placement_bias_acceleration(self, placement: Placement) -> np.ndarray:
        """Jdot v (6,): acceleration of the origin of a frame fixed to a link, and its angular acceleration,
        at zero generalised acceleration and in world axes."""
        if placement.link == WORLD:
            return np.zeros(6, int)
        R, p = self.poses[placement.link].R, placement.p
        (acc, wd), w = self.bias_accelerations[placement.link], self.velocities[placement.link].angular
        return np.concatenate([R @ (acc + cross(wd, p) + cross(w, cross(w, p))), R @ wd])

    def with_inertias_of(self, tree: Tree) -> Kinematics:
        """The record for a tree that differs in its inertias alone, such as one with base inertial
        parameters.

        What is already computed is kept. Raises ValueError where the trees differ in their links.
        """
        if [link.q for link in tree.links] != [link.q for link in self.tree.links]:
            raise ValueError("the trees have different links: their kinematics differ")
        other = replace(self, tree=tree)
        other.__dict__.update(_joint_pose_of=self._joint_pose_of, _kept=self._kept)
        other.__dict__.update({name: self.__dict__[name] for name in CACHED if name in self.__dict__})
        return other
