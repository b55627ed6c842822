"""The mechanism as the algorithms want it: links in a tree, one move each, with fixed bodies merged into them.

A joint of several moves becomes as many links, all but the last without mass. So every algorithm has one loop and
one kind of step, and a free joint is no special case. A link's frame sits on its joint's axis and moves with the link.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
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
    """One move and what it carries.

    parent: number of the parent link, or -1 for the world. R, p: this link's frame in its parent's before the move.
    reference: the coordinate at which it is there. q, v: ranges of its coordinates and speeds. armature: added to
    each of its speeds. mass; h = mass * com; J: the second moment of mass about the origin, J = integral r r^T dm,
    so that the inertia about the origin is tr(J) 1 - J. All in the link's axes.
    """

    name: str
    parent: int
    move: ElementaryJoint
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
    """A frame fixed to a link (or, with link -1, to the world): its rotation and origin in the link's frame."""

    link: int
    R: np.ndarray
    p: np.ndarray


@dataclass(frozen=True)
class RigidBody:
    """One body's mass: where its centre of mass is (a Place with the body's axes) and its inertia there."""

    body: str
    placement: Placement
    mass: Any
    inertia: np.ndarray


@dataclass(frozen=True)
class Tree:
    """Links in topological order, the bodies' and frames' places on them, the solids, and gravity."""

    links: tuple[Link, ...]
    placements: dict[str, Placement]
    rigid_bodies: tuple[RigidBody, ...]
    gravity: np.ndarray
    nq: int
    nv: int

    def place(self, frame: str) -> Placement:
        """Where a body's or a frame's frame is fixed. Raises UnknownNameError."""
        if not isinstance(frame, str) or frame not in self.placements:
            raise UnknownNameError("frame", frame, self.placements)
        return self.placements[frame]

    def path(self, link: int) -> list[int]:
        """The links from the world to `link`, that one included."""
        path = []
        while link != WORLD:
            path.append(link)
            link = self.links[link].parent
        return path[::-1]


@np.errstate(over="ignore", invalid="ignore")  # of masses beyond all numbers, which those who check tell
def build_tree(bodies: Iterable[Body], frames: Iterable[Frame] = (), gravity: Any = (0, 0, 0)) -> Tree:
    """The tree of bodies, parents first; masses of merged bodies are added up."""
    placements = {"world": Placement(WORLD, np.array(IDENTITY), np.zeros(3, int))}
    links: list[Link] = []
    rigid_bodies: list[RigidBody] = []
    moments: list[list[Any]] = []
    for body in bodies:
        placements[body.name] = _add_links(body, placements[body.parent], links, moments)
        place = placements[body.name]
        if not is_zero(body.mass) or not is_zero(np.array(body.inertia)):
            centre = Placement(place.link, place.R, place.p + place.R @ np.array(body.com))
            rigid_bodies.append(RigidBody(body.name, centre, body.mass, np.array(body.inertia)))
            if place.link != WORLD:
                moments[place.link].append(_moments(rigid_bodies[-1]))
    for frame in frames:
        base = placements[frame.body]
        R = base.R @ np.array(frame.orientation)
        placements.setdefault(frame.name, Placement(base.link, R, base.p + base.R @ np.array(frame.position)))
    filled = tuple(_with_mass(link, parts) for link, parts in zip(links, moments, strict=True))
    nq, nv = (links[-1].q.stop, links[-1].v.stop) if links else (0, 0)
    return Tree(filled, placements, tuple(rigid_bodies), np.array(gravity), nq, nv)


def _add_links(body: Body, base: Placement, links: list[Link], moments: list[list[Any]]) -> Placement:
    """One link for each move of the body's joints; returns where the body's frame is fixed."""
    link, R = base.link, base.R @ np.array(body.orientation)
    p = base.p + base.R @ np.array(body.position)
    for joint in body.joints:
        p = p + R @ np.array(joint.position)  # from the last frame to a point on the axis
        reference = joint.reference
        for move in joint.elementary_joints:
            iq, iv = (links[-1].q.stop, links[-1].v.stop) if links else (0, 0)
            q, v = slice(iq, iq + move.nq), slice(iv, iv + move.nv)
            links.append(Link(joint.name, link, move, R, p, reference, q, v, joint.armature))
            moments.append([])
            link, R, p, reference = len(links) - 1, np.array(IDENTITY), np.zeros(3, int), 0
        p = -np.array(joint.position)  # back to the body's frame
    return Placement(link, R, p)


def _moments(solid: RigidBody) -> tuple[Any, np.ndarray, np.ndarray]:
    """Mass and its first and second moments about the link's origin, in the link's axes."""
    R, c, I = solid.placement.R, solid.placement.p, solid.inertia
    second = (I[0, 0] + I[1, 1] + I[2, 2]) * np.array(IDENTITY) - 2 * I  # 2 J, as I = tr(J) 1 - J
    return solid.mass, solid.mass * c, (R @ second @ R.T) / 2 + solid.mass * np.outer(c, c)


def _with_mass(link: Link, parts: list[Any]) -> Link:
    if not parts:
        return link
    mass, h, J = (sum(part[k] for part in parts[1:]) + parts[0][k] for k in range(3))
    return Link(link.name, link.parent, link.joint, link.R, link.p, link.reference, link.q, link.v, link.armature,
                mass, h, J)  # fmt: skip
