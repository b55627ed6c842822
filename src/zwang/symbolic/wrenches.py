"""Gamma of the projection method: the applied forces and torques on every body, in pairs of action and reaction."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from zwang.algebra.rotations import cross
from zwang.dynamics.free_body_diagram import acts_on_bodies, free_body_diagram
from zwang.dynamics.generalised_forces import actuator_forces, passive_forces
from zwang.kinematics.poses import motion_subspace
from zwang.mechanism.constraints import Tendon
from zwang.mechanism.forces import Actuator, PointSpring
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.tree import WORLD, Link, Tree
from zwang.scalar import are_constant, is_zero
from zwang.symbolic.derivation import BodyMotion, poses_with_summed_angles, weights


def generalized_forces(mechanism: Mechanism, q: Any, v: Any, inputs: Mapping[str, Any]) -> np.ndarray:
    """The generalised forces (nv,) of all that pushes, for these inputs."""
    return passive_forces(mechanism, q, v) + actuator_forces(mechanism, q, v, inputs)


def applied_wrenches(
    mechanism: Mechanism, motion: BodyMotion, q: Any, v: Any, inputs: Mapping[str, Any], more: Any = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Gamma (6 N,) of weights, wrenches on bodies and joint efforts (and `more` efforts), and the efforts (nv,) that are not in it.

    An effort acts on the body that its link moves and, reversed, on the body before it, along one line. Where massless links lie between,
    it is in Gamma if they take no power from it, as those of plane joints do; else it stays an effort. Forces in world axes,
    torques about mass centres in body axes.
    """
    tree = mechanism.tree
    Gamma = wrenches_on_bodies(mechanism, motion, q, v, inputs)
    poses, _ = poses_with_summed_angles(tree, q)
    _, others = _by_place(mechanism, motion)
    rest = np.array(generalized_forces(others, q, v, inputs) + more, dtype=object)
    carried = _bodies_of_links(tree)
    for i, link in enumerate(tree.links):
        ends = _ends(tree, i, carried)
        if ends is None:
            continue
        body, before, at = ends
        R = poses[i].R
        for k, s in zip(range(link.v.start, link.v.stop), motion_subspace(link).T, strict=True):
            if is_zero(rest[k]):
                continue
            force, torque = R @ s[:3] * rest[k], R @ s[3:] * rest[k]
            for end, sign in ((body, 1), (before, -1)):
                if end is not None:
                    _add(Gamma, motion, end, sign * force, sign * torque, poses[at].p)
            rest[k] = 0
    return Gamma, rest


def wrenches_on_bodies(
    mechanism: Mechanism, motion: BodyMotion, q: Any, v: Any, inputs: Mapping[str, Any]
) -> np.ndarray:
    """Weights, wrenches given on bodies, springs between points and tendons along paths (6 N,): what acts on bodies past the joints."""
    Gamma = weights(mechanism.tree)
    placed, _ = _by_place(mechanism, motion)
    if not (placed.forces or placed.tendons):
        return Gamma
    free = free_body_diagram(placed, poses_with_summed_angles(mechanism.tree, q)[0], v)
    first = _bodies_of_links(mechanism.tree)
    for body, load in free.loads(generalized_forces(free.mechanism, free.q, free.v, inputs)).items():
        k = motion.names.index(body) if body in motion.names else first.get(load.link)
        if k is not None:  # not the ground
            _add(Gamma, motion, k, load.force, load.torque, load.p)
    return Gamma


def _by_place(mechanism: Mechanism, motion: BodyMotion) -> tuple[Mechanism, Mechanism]:
    """The mechanism with the forces and tendons that act on bodies with mass, and the one with all others.

    Among the others are tendons around bodies, whose wrenches choose between formulas too long to be written down.
    """
    tree = mechanism.tree
    held = {WORLD, *_bodies_of_links(tree)}

    def placed(part: Any) -> bool:
        return not is_wrapped(mechanism, part) and all(
            name in motion.names or tree.place(name).link in held for name in _frames_of(mechanism, part)
        )

    forces = [f for f in mechanism.forces if acts_on_bodies(mechanism, f) and placed(f)]
    tendons = [t for t in mechanism.tendons if t.path and placed(t)]
    return (
        mechanism.replace(forces=tuple(forces), tendons=tuple(tendons), constraints=()),
        mechanism.replace(
            forces=tuple(f for f in mechanism.forces if f not in forces),
            tendons=tuple(t for t in mechanism.tendons if t not in tendons),
            constraints=(),
        ),
    )


def is_wrapped(mechanism: Mechanism, part: Any) -> bool:
    """Is it a tendon that runs around a body, or an actuator on one?"""
    name = part.name if isinstance(part, Tendon) else getattr(part, "tendon", None)
    return any(t.name == name and t.wraps for t in mechanism.tendons)


def _frames_of(mechanism: Mechanism, part: Any) -> list[str]:
    """The bodies and frames at which a force or a tendon acts."""
    if isinstance(part, PointSpring):
        return [part.a[0], part.b[0]]
    if isinstance(part, Actuator) and part.tendon is not None:
        part = next(t for t in mechanism.tendons if t.name == part.tendon)
    if isinstance(part, Tendon):
        return [name for name in part.path if name is not None]
    return [name for key in ("body", "frame", "slider") if (name := getattr(part, key, None)) is not None]


def _ends(tree: Tree, i: int, carried: dict[int, int]) -> tuple[int, int | None, int] | None:
    """The bodies that an effort on link i acts on and reacts on (None: the ground), and the link at whose origin; None if it stays."""
    if tree.links[i].move.kind == "screw":
        return None
    at, turned = i, False
    while at not in carried:  # forwards over massless links, to the body
        children = [k for k, link in enumerate(tree.links) if link.parent == at]
        if len(children) != 1:
            return None
        after = tree.links[children[0]]
        if turned and (after.move.kind == "slide" or not all(is_zero(x) for x in after.p)):
            return None  # the line of action would move
        if not _takes_no_power(tree.links[i], after, adjacent=at == i, forwards=True):
            return None
        turned = turned or after.move.kind != "slide"
        at = children[0]
    back = tree.links[i].parent
    while back != WORLD and back not in carried:
        if not _takes_no_power(
            tree.links[i], tree.links[back], adjacent=tree.links[i].parent == back, forwards=False
        ):
            return None
        back = tree.links[back].parent
    return carried[at], carried.get(back), at


def _takes_no_power(effort: Link, other: Link, *, adjacent: bool, forwards: bool) -> bool:
    """Whether an effort does no work on a massless neighbour's move, so that it may be passed on over it.

    A couple does none on slides, and none on an adjacent turn across it. A force does none on slides across it, nor, forwards, on turns
    about axes through its line of action.
    """
    kinds = effort.move.kind, other.move.kind
    if kinds[0] == "slide" and kinds[1] in ("turn", "ball"):
        return forwards
    if kinds[1] == "slide" and kinds[0] in ("turn", "ball"):
        return True
    if kinds[0] != kinds[1] or kinds[0] == "ball" or (kinds[0] == "turn" and not adjacent):
        return False
    first, second = (effort, other) if forwards else (other, effort)
    a, b = np.array(first.move.axis), second.R @ np.array(second.move.axis)
    return are_constant(*a, *b) and bool(abs(a @ b) == 0)


def _bodies_of_links(tree: Tree) -> dict[int, int]:
    """The first solid on each link."""
    found: dict[int, int] = {}
    for k, solid in enumerate(tree.rigid_bodies):
        found.setdefault(solid.place.link, k)
    return found


def _add(Gamma: np.ndarray, motion: BodyMotion, body: int, force: Any, torque: Any, point: Any) -> None:
    R, x = motion.poses[body]
    Gamma[6 * body : 6 * body + 3] = Gamma[6 * body : 6 * body + 3] + force
    moment = R.T @ (torque + cross(point - x, force))
    Gamma[6 * body + 3 : 6 * body + 6] = Gamma[6 * body + 3 : 6 * body + 6] + moment
