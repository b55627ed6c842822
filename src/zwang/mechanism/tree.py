"""The kinematic tree: links with one elementary joint each, into which rigidly attached bodies are merged.

A joint that consists of several elementary joints becomes as many links, all but the last without mass. Every
recursive algorithm therefore has one loop, in which a free joint is no special case. The frame of a link has
its origin on the joint axis and moves with the link.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from zwang.errors import UnknownNameError
from zwang.mechanism.bodies import Body, Frame
from zwang.mechanism.joints import ElementaryJoint
from zwang.mechanism.numbers import IDENTITY
from zwang.scalar import is_zero

WORLD = -1


@dataclass(frozen=True)
class Link:
    """A link: an elementary joint and the rigid body that it moves.

    parent: index of the parent link, or -1 for the world.
    joint: the elementary joint between the parent link and this link.
    R, p: rotation and origin of the link frame in the frame of the parent link where the coordinate is
    `reference`.
    q, v: slices of the coordinates and of the generalised velocities.
    armature: rotor inertia, added to the diagonal of the mass matrix.
    mass [kg]; h = mass * com [kg m]; J [kg m^2]: second moment of mass about the origin, J = integral of r
        r^T dm, so that the inertia about the origin is tr(J) 1 - J. All of them are in the axes of the link.
    """

    name: str
    parent: int
    joint: ElementaryJoint
    R: np.ndarray
    p: np.ndarray
    reference: Any
    q: slice
    v: slice
    armature: Any
    mass: Any = 0
    h: np.ndarray = field(default_factory=lambda: np.zeros(3, int))
    J: np.ndarray = field(default_factory=lambda: np.zeros((3, 3), int))


@dataclass(frozen=True)
class Placement:
    """A frame fixed to a link (or, with link -1, to the world): rotation R and origin p in the link frame."""

    link: int
    R: np.ndarray
    p: np.ndarray


@dataclass(frozen=True)
class RigidBody:
    """The mass properties of one body.

    placement: frame with origin at the centre of mass and the axes of the body frame. mass [kg]. inertia [kg
    m^2]: about the centre of mass, in these axes.
    """

    body: str
    placement: Placement
    mass: Any
    inertia: np.ndarray


@dataclass(frozen=True)
class Tree:
    """A kinematic tree: links in topological order, placements of frames, rigid bodies, and gravity.

    tendon_inertias: a `TendonInertia` for each tendon with armature.
    """

    links: tuple[Link, ...]
    placements: dict[str, Placement]
    rigid_bodies: tuple[RigidBody, ...]
    gravity: np.ndarray
    nq: int
    nv: int
    tendon_inertias: tuple[Any, ...] = ()

    def placement(self, frame: str) -> Placement:
        """The placement of the frame of that name (of a body or a frame). Raises UnknownNameError."""
        if not isinstance(frame, str) or frame not in self.placements:
            raise UnknownNameError("frame", frame, self.placements)
        return self.placements[frame]

    @cached_property
    def kinematic_trees(self) -> tuple[int, ...]:
        """For each generalised velocity the number of its kinematic tree: the links that one link on the
        world carries.
        """
        trees: list[int] = []
        count = 0
        for link in self.links:
            if link.parent == WORLD:
                count += 1
            own = count - 1 if link.parent == WORLD else trees[self.links[link.parent].v.start]
            trees += [own] * (link.v.stop - link.v.start)
        return tuple(trees)

    def path(self, link: int) -> list[int]:
        """The links on the path from the world to `link`, inclusive."""
        path = []
        while link != WORLD:
            path.append(link)
            link = self.links[link].parent
        return path[::-1]


@np.errstate(
    over="ignore", invalid="ignore"
)  # inertias that overflow are reported by the checks of the callers
def build_tree(bodies: Iterable[Body], frames: Iterable[Frame] = (), gravity: Any = (0, 0, 0)) -> Tree:
    """The kinematic tree of `bodies`, whose parents stand before their children.

    The mass and the moments of mass of bodies that are rigidly attached to each other are added up on one
    link.
    """
    placements = {"world": Placement(WORLD, np.array(IDENTITY), np.zeros(3, int))}
    links: list[Link] = []
    rigid_bodies: list[RigidBody] = []
    moments: list[list[Any]] = []
    for body in bodies:
        placements[body.name] = _add_links(body, placements[body.parent], links, moments)
        placement = placements[body.name]
        if not is_zero(body.mass) or not is_zero(np.array(body.inertia)):
            centre = Placement(placement.link, placement.R, placement.p + placement.R @ np.array(body.com))
            rigid_bodies.append(RigidBody(body.name, centre, body.mass, np.array(body.inertia)))
            if placement.link != WORLD:
                moments[placement.link].append(_moments(rigid_bodies[-1]))
    for frame in frames:
        base = placements[frame.body]
        R = base.R @ np.array(frame.orientation)
        placements.setdefault(frame.name, Placement(base.link, R, base.p + base.R @ np.array(frame.position)))
    filled = tuple(_with_mass(link, parts) for link, parts in zip(links, moments, strict=True))
    nq, nv = (links[-1].q.stop, links[-1].v.stop) if links else (0, 0)
    return Tree(filled, placements, tuple(rigid_bodies), np.array(gravity), nq, nv)


def _add_links(body: Body, base: Placement, links: list[Link], moments: list[list[Any]]) -> Placement:
    """Append one link for each elementary joint of the body; returns the placement of the body frame."""
    link, R = base.link, base.R @ np.array(body.orientation)
    p = base.p + base.R @ np.array(body.position)
    for joint in body.joints:
        p = p + R @ np.array(joint.position)  # from the previous frame to a point on the axis
        reference = joint.reference
        for elementary in joint.elementary_joints:
            iq, iv = (links[-1].q.stop, links[-1].v.stop) if links else (0, 0)
            q, v = slice(iq, iq + elementary.nq), slice(iv, iv + elementary.nv)
            links.append(Link(joint.name, link, elementary, R, p, reference, q, v, joint.armature))
            moments.append([])
            link, R, p, reference = len(links) - 1, np.array(IDENTITY), np.zeros(3, int), 0
        p = -np.array(joint.position)  # back to the body frame
    return Placement(link, R, p)


def _moments(body: RigidBody) -> tuple[Any, np.ndarray, np.ndarray]:
    """Mass, first and second moment of mass about the origin of the link, in its axes."""
    R, c, I = body.placement.R, body.placement.p, body.inertia
    second = (I[0, 0] + I[1, 1] + I[2, 2]) * np.array(IDENTITY) - 2 * I  # 2 J, as I = tr(J) 1 - J
    return body.mass, body.mass * c, (R @ second @ R.T) / 2 + body.mass * np.outer(c, c)


def _with_mass(link: Link, parts: list[Any]) -> Link:
    """The link with the sum of the moments of mass of its rigid bodies."""
    if not parts:
        return link
    mass, h, J = (sum(part[k] for part in parts[1:]) + parts[0][k] for k in range(3))
    return replace(link, mass=mass, h=h, J=J)
