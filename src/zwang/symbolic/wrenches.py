"""Applied forces and torques on every body (Gamma of the projection method), and the reactions of joints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from zwang.algebra.rotations import cross
from zwang.constraint.body_loads import constraint_loads
from zwang.dynamics.free_body_diagram import (
    Load,
    acts_on_bodies,
    free_body_diagram,
    has_determined_loads,
    subtree_loads,
)
from zwang.dynamics.generalised_forces import (
    carried_compensation,
    controlled_forces,
    has_actuators,
    passive_forces,
)
from zwang.errors import DescriptionError
from zwang.kinematics.poses import motion_subspace, placement_pose
from zwang.mechanism.force_elements import Actuator, PointSpring
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.tendon_elements import Tendon
from zwang.mechanism.tree import WORLD, Link, Tree
from zwang.scalar import are_constant, is_zero
from zwang.symbolic.derivation import BodyMotion, SymbolicState, poses_with_summed_angles, weights


def generalized_forces(mechanism: Mechanism, q: Any, v: Any, inputs: Mapping[str, Any]) -> np.ndarray:
    """The generalised forces (nv,) of all passive and controlled forces, for these inputs."""
    return passive_forces(mechanism, q, v) + controlled_forces(mechanism, q, v, inputs)


def part_of_generalized_forces(
    part: Mechanism, mechanism: Mechanism, q: Any, v: Any, inputs: Mapping[str, Any]
) -> np.ndarray:
    """`generalized_forces` of a part of the forces of a mechanism, whose actuators carry gravity compensation
    in the part, too.
    """
    Q = generalized_forces(part, q, v, inputs)
    if has_actuators(part) or not has_actuators(mechanism):
        return Q
    return Q + carried_compensation(part, q, v)


def applied_wrenches(
    mechanism: Mechanism, motion: BodyMotion, q: Any, v: Any, inputs: Mapping[str, Any], more: Any = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Gamma (6 N,), and the generalised forces (nv,) that are not part of it.

    Gamma contains weights, wrenches on bodies, and joint forces, to which `more` (nv,) is added. A joint
    force acts on the body that its link moves and, reversed, on the body before it, along one line. Where
    massless links lie between, it is part of Gamma if it does no work on them, as in planar joints. Otherwise
    it remains a generalised force. Forces are in world axes, torques about centres of mass in body axes.
    """
    tree = mechanism.tree
    Gamma = wrenches_on_bodies(mechanism, motion, q, v, inputs)
    poses, _ = poses_with_summed_angles(tree, q)
    _, others = _split_by_bodies(mechanism, motion)
    Q = part_of_generalized_forces(others, mechanism, q, v, inputs)
    remaining = np.array(Q + more, dtype=object)
    body_of_link = _bodies_of_links(tree)
    for i, link in enumerate(tree.links):
        ends = _action_and_reaction(tree, i, body_of_link)
        if ends is None:
            continue
        body, before, origin = ends
        R = poses[i].R
        for k, s in zip(range(link.v.start, link.v.stop), motion_subspace(link).T, strict=True):
            if is_zero(remaining[k]):
                continue
            force, torque = R @ s[:3] * remaining[k], R @ s[3:] * remaining[k]
            for end, sign in ((body, 1), (before, -1)):
                if end is not None:
                    _add(Gamma, motion, end, sign * force, sign * torque, poses[origin].p)
            remaining[k] = 0
    return Gamma, remaining


def wrenches_on_bodies(
    mechanism: Mechanism, motion: BodyMotion, q: Any, v: Any, inputs: Mapping[str, Any]
) -> np.ndarray:
    """The wrenches on bodies (6 N,) of weights, applied wrenches, point springs and tendons."""
    Gamma = weights(mechanism.tree)
    on_bodies, _ = _split_by_bodies(mechanism, motion)
    if not (on_bodies.forces or on_bodies.tendons):
        return Gamma
    free = free_body_diagram(on_bodies, poses_with_summed_angles(mechanism.tree, q)[0], v)
    first = _bodies_of_links(mechanism.tree)
    for body, load in free.loads(generalized_forces(free.mechanism, free.q, free.v, inputs)).items():
        k = motion.names.index(body) if body in motion.names else first.get(load.link)
        if k is not None:  # not the ground
            _add(Gamma, motion, k, load.force, load.torque, load.p)
    return Gamma


def joint_reactions(
    mechanism: Mechanism, state: SymbolicState, wrench: np.ndarray, forces: Mapping[str, list[Any]], time: Any
) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """By joint the force (3,) [N] and the torque (3,) [N m] on what it carries, in world axes.

    wrench (6 N,): M X_ddot + D M X_dot less `wrenches_on_bodies`. forces: those of all constraint rows by
    constraint. They follow from Euler's laws of the bodies that the joint carries. The torque is about the
    origin of the joint's moving frame.
    Raises DescriptionError for tendons that wrap around bodies, for which `zw.joint_reactions` computes
    numbers, and for actuators on bodies that the `actuator_range` of a joint limits.
    """
    tree = mechanism.tree
    for part in (*mechanism.tendons, *mechanism.forces):
        if is_wrapped(mechanism, part):
            raise DescriptionError(
                f"tendon or actuator {getattr(part, 'name', '')!r} wraps around a body, and its forces on "
                "bodies are too long for symbolic expressions; zw.joint_reactions computes numbers"
            )
    poses, _ = poses_with_summed_angles(tree, state.q)
    # what each body needs beyond the applied wrenches, as loads on its link
    loads = []
    for k, body in enumerate(tree.rigid_bodies):
        R, x = placement_pose(poses, body.placement)
        f, t = wrench[6 * k : 6 * k + 3], R @ wrench[6 * k + 3 : 6 * k + 6]
        loads.append(Load(body.placement.link, x, f, t))
    if forces:
        free = free_body_diagram(mechanism, poses, state.v)
        for by_body in constraint_loads(free, forces, time).values():
            loads += [load.reversed() for load in by_body.values()]
    # the sum over the subtree of each joint
    carried = subtree_loads(tree, poses, loads)
    last = {link.name: i for i, link in enumerate(tree.links)}
    return {joint.name: carried[last[joint.name]] for joint in mechanism.joints}


def _split_by_bodies(mechanism: Mechanism, motion: BodyMotion) -> tuple[Mechanism, Mechanism]:
    """The mechanism with the forces and tendons that act on bodies with mass only, and with all others only.

    Tendons that wrap around bodies are among the others, since their wrenches need case distinctions that are
    too long for symbolic expressions, and so are actuators that the `actuator_range` of a joint limits, with
    all others of this joint, and those between two frames that a joint moves together.
    """
    tree = mechanism.tree
    with_mass = {WORLD, *_bodies_of_links(tree)}

    def acts_on_mass(part: Any) -> bool:
        determined = not is_wrapped(mechanism, part) and has_determined_loads(mechanism, part)
        return determined and all(
            name in motion.names or tree.placement(name).link in with_mass
            for name in _frames_of(mechanism, part)
        )

    forces = [f for f in mechanism.forces if acts_on_bodies(mechanism, f) and acts_on_mass(f)]
    # a tendon stays with its actuators
    left = {getattr(f, "tendon", None) for f in mechanism.forces if f not in forces}
    tendons = [t for t in mechanism.tendons if t.path and acts_on_mass(t) and t.name not in left]
    return (
        mechanism.replace(forces=tuple(forces), tendons=tuple(tendons), constraints=(), sensors=()),
        mechanism.replace(
            forces=tuple(f for f in mechanism.forces if f not in forces),
            tendons=tuple(t for t in mechanism.tendons if t not in tendons),
            constraints=(),
            sensors=(),
        ),
    )


def is_wrapped(mechanism: Mechanism, part: Any) -> bool:
    """Whether a part is a tendon that wraps around a body, or an actuator on one."""
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


def _action_and_reaction(
    tree: Tree, i: int, body_of_link: dict[int, int]
) -> tuple[int, int | None, int] | None:
    """The body on which a joint force acts, that on which it reacts, and the link at whose origin.

    i: the link of the joint. The second is None for the ground. The result is None where the force remains a
    generalised force.
    """
    if tree.links[i].joint.kind == "screw":
        return None
    # forwards over massless links, to the body on which the force acts
    current, rotated = i, False
    while current not in body_of_link:
        children = [k for k, link in enumerate(tree.links) if link.parent == current]
        if len(children) != 1:
            return None
        after = tree.links[children[0]]
        if rotated and (after.joint.kind == "prismatic" or not all(is_zero(x) for x in after.p)):
            return None  # the line of action would move
        if not _does_no_work(tree.links[i], after, adjacent=current == i, forwards=True):
            return None
        rotated = rotated or after.joint.kind != "prismatic"
        current = children[0]
    # backwards over massless links, to the body on which it reacts
    back = tree.links[i].parent
    while back != WORLD and back not in body_of_link:
        if not _does_no_work(
            tree.links[i], tree.links[back], adjacent=tree.links[i].parent == back, forwards=False
        ):
            return None
        back = tree.links[back].parent
    return body_of_link[current], body_of_link.get(back), current


def _does_no_work(driven: Link, other: Link, *, adjacent: bool, forwards: bool) -> bool:
    """Whether the force of a driven link does no work on a massless neighbour, and acts beyond it.

    A torque does no work on translations, nor on an adjacent rotation about a perpendicular axis. A force
    does no work on perpendicular translations, nor, forwards, on rotations about axes through its line of
    action.
    """
    kinds = driven.joint.kind, other.joint.kind
    if kinds[0] == "prismatic" and kinds[1] in ("revolute", "ball"):
        return forwards
    if kinds[1] == "prismatic" and kinds[0] in ("revolute", "ball"):
        return True
    if kinds[0] != kinds[1] or kinds[0] == "ball" or (kinds[0] == "revolute" and not adjacent):
        return False
    first, second = (driven, other) if forwards else (other, driven)
    a, b = np.array(first.joint.axis), second.R @ np.array(second.joint.axis)
    return are_constant(*a, *b) and bool(abs(a @ b) == 0)


def _bodies_of_links(tree: Tree) -> dict[int, int]:
    """The number of the first body on each link with mass."""
    found: dict[int, int] = {}
    for k, body in enumerate(tree.rigid_bodies):
        found.setdefault(body.placement.link, k)
    return found


def _add(Gamma: np.ndarray, motion: BodyMotion, body: int, force: Any, torque: Any, point: Any) -> None:
    """Add a force at a point and a torque, in world axes, to the wrench on a body."""
    R, x = motion.poses[body]
    Gamma[6 * body : 6 * body + 3] = Gamma[6 * body : 6 * body + 3] + force
    moment = R.T @ (torque + cross(point - x, force))
    Gamma[6 * body + 3 : 6 * body + 6] = Gamma[6 * body + 3 : 6 * body + 6] + moment
