"""Mechanisms with the same motion in other words, for file formats with fewer kinds of elements.

Each function returns a mechanism whose coordinates have the same values and the same order, so that mass
matrix, bias forces and poses are the same functions of q and v; exceptions are stated.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from zwang.algebra import rotations
from zwang.io.unique_names import UniqueNames
from zwang.mechanism.bodies import Body
from zwang.mechanism.constraints import JointCoupling
from zwang.mechanism.contact_pairs import ContactExclude
from zwang.mechanism.force_elements import Actuator, Damper, Spring
from zwang.mechanism.joints import (
    Ball,
    Fixed,
    MovingJoint,
    Planar,
    Prismatic,
    Revolute,
    Screw,
)
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.numbers import IDENTITY
from zwang.mechanism.tendon_elements import Tendon

ONE_COORDINATE = (Revolute, Prismatic, Screw)


# ---------------------------------------------------------------------------------- elementary joints


def with_elementary_joints(
    mechanism: Mechanism, keep: Callable[[Body, MovingJoint], bool]
) -> tuple[Mechanism, dict[str, tuple[str, ...]]]:
    """The mechanism with revolute, prismatic and ball joints in place of those that `keep` does not select.

    A screw joint becomes a revolute and a prismatic joint with a hard coupling, and so has one more
    coordinate. Dampers, springs and actuators follow, but for actuators on free joints, which are omitted.
    Returns the mechanism, and the names of the new joints by the name of the old one.
    """
    names = UniqueNames(j.name for j in mechanism.joints)
    parts: dict[str, tuple[MovingJoint, ...]] = {}
    bodies = []
    for body in mechanism.bodies:
        joints: list[MovingJoint] = []
        for joint in body.joints:
            found = (joint,) if keep(body, joint) else _elementary(joint, names)
            if found != (joint,):
                parts[joint.name] = found
            joints += found
        bodies.append(replace(body, joint=tuple(joints)) if joints else body)
    if not parts:
        return mechanism, {}
    renamed = {name: tuple(part.name for part in found) for name, found in parts.items()}
    forces, tendons = _forces_on(mechanism, renamed)
    screws = {j.name: j.joint for j in mechanism.joints if j.name in parts and isinstance(j.joint, Screw)}
    taken = UniqueNames({c.name for c in (*mechanism.constraints, *mechanism.inactive_constraints)})
    couplings = tuple(
        JointCoupling(taken.new(f"pitch of {name}"), renamed[name][1], name, (0, screw.pitch))
        for name, screw in screws.items()
    )
    new = _with_states(mechanism, lambda x, of: _with_screws(mechanism, screws, x, of))
    return mechanism.replace(
        bodies=bodies, forces=forces, tendons=(*mechanism.tendons, *tendons),
        constraints=(*mechanism.constraints, *couplings), **new,
    ), renamed  # fmt: skip


def _elementary(joint: MovingJoint, names: UniqueNames) -> tuple[MovingJoint, ...]:
    """The joints with one coordinate, or of kind ball, of which a joint consists."""
    common: dict[str, Any] = {
        name: getattr(joint, name)
        for name in (
            "position", "armature", "friction", "velocity_limit", "effort_limit", "actuator_range",
            "actuator_gravity_compensation", "limit_softness", "friction_softness",
        )
    }  # fmt: skip

    if isinstance(joint, Screw):
        more: dict[str, Any] = {"limits": joint.limits, "reference": joint.reference}
        turn = Revolute(joint.name, axis=joint.axis, **more, **common)
        plain: dict[str, Any] = dict.fromkeys(("velocity_limit", "effort_limit", "actuator_range"))
        plain |= {"armature": 0, "friction": 0}
        name = names.new(f"{joint.name}.displacement")
        return turn, Prismatic(name, axis=joint.axis, **(common | plain))
    found: list[MovingJoint] = []
    coordinates = iter(joint.coordinates)
    for elementary in joint.elementary_joints:
        if elementary.kind == "ball":
            found.append(Ball(names.new(f"{joint.name}.rotation"), **common))
        else:
            kind = Prismatic if elementary.kind == "prismatic" else Revolute
            found.append(kind(names.new(f"{joint.name}.{next(coordinates)}"), axis=elementary.axis, **common))
    return tuple(found)


def _forces_on(
    mechanism: Mechanism, renamed: Mapping[str, tuple[str, ...]]
) -> tuple[list[Any], list[Tendon]]:
    """The force elements on the new joints, and tendons for actuators that act on several of them."""
    joints = {j.name: j for j in mechanism.joints}
    names = UniqueNames({t.name for t in mechanism.tendons})
    home = mechanism.home or mechanism.neutral
    forces: list[Any] = []
    tendons: list[Tendon] = []
    given: Sequence[Any] = mechanism.forces
    for force in given:
        new = renamed.get(getattr(force, "joint", None) or "")
        kind = joints[force.joint].kind if new else ""
        if new is None or (kind == "screw" and not isinstance(force, Damper)):
            forces.append(force)
        elif isinstance(force, Damper):
            forces += [replace(force, joint=name) for name in (new[:1] if kind == "screw" else new)]
        elif isinstance(force, Spring):  # on a free joint: on each coordinate, from the default pose
            rests = [*home[joints[force.joint].q][:3], 0]
            forces += [replace(force, joint=n, rest=r) for n, r in zip(new, rests, strict=True)]
        elif isinstance(force, Actuator) and kind != "free":
            tendon = Tendon(names.new(force.name), joints=tuple(zip(new, force.gear, strict=True)))
            tendons.append(tendon)
            forces.append(replace(force, joint=None, tendon=tendon.name, gear=(1,)))
    return forces, tendons


def _with_screws(
    mechanism: Mechanism, screws: Mapping[str, Screw], x: Sequence[Any], of: str
) -> tuple[Any, ...]:
    """Coordinates (of="q") or velocities (of="v"), with the displacement of each screw joint."""
    found: list[Any] = []
    for joint in mechanism.joints:
        values = x[getattr(joint, of)]
        found += values
        if joint.name in screws:
            screw = screws[joint.name]
            found.append(screw.pitch * (values[0] - (screw.reference if of == "q" else 0)))
    return tuple(found)


def _with_states(mechanism: Mechanism, change: Callable[[Any, str], tuple[Any, ...]]) -> dict[str, Any]:
    """The fields home and keyframes, with `change` applied to coordinates and velocities."""
    keyframes = [
        replace(
            key,
            q=change(key.q, "q") if key.q else (),
            v=change(key.v, "v") if key.v else (),
        )
        for key in mechanism.keyframes
    ]
    home = None if mechanism.home is None else change(mechanism.home, "q")
    return {"home": home, "keyframes": keyframes}


# ------------------------------------------------------------------------------------- bodies of a chain


Groups = Callable[[Sequence[MovingJoint]], list[list[MovingJoint]]]


def with_split_bodies(
    mechanism: Mechanism, groups: Groups, *, at_joints: bool = False
) -> tuple[Mechanism, dict[str, tuple[str, ...]]]:
    """The mechanism with the joints of a body on a chain of massless bodies, as `groups` divides them.

    at_joints: place the frame of each body with a joint on the axis, and that of one with a planar joint so
    that the axis is its z axis and the joint moves along x and y; the body itself, where its frame is
    another one, is fixed to the last body of the chain. Contacts that are excluded because one shape is
    fixed to the parent of the other still are, explicitly. Returns the mechanism, and the names of the new
    bodies by body.
    """
    names = UniqueNames({"world", *(b.name for b in mechanism.bodies), *(f.name for f in mechanism.frames)})
    bodies: list[Body] = []
    added: dict[str, tuple[str, ...]] = {}
    excludes: list[ContactExclude] = []
    for body in mechanism.bodies:
        chain = _chain(body, groups(body.joints), names, at_joints)
        bodies += chain
        if len(chain) > 1:
            added[body.name] = tuple(b.name for b in chain[:-1])
            excludes += _parent_excludes(mechanism, body)
    if not added:
        return mechanism, {}
    return mechanism.replace(bodies=bodies, contacts=(*mechanism.contacts, *excludes)), added


def _parent_excludes(mechanism: Mechanism, body: Body) -> list[ContactExclude]:
    """The exclusions of contacts between what is fixed to a body and what is fixed to its parent, where the
    parent filter excludes them: the world is no parent, but a mocap body is.
    """
    by_name = {b.name: b for b in mechanism.bodies}
    root = body.parent
    while root in by_name and not by_name[root].joints and not by_name[root].mocap:
        root = by_name[root].parent
    if root not in by_name or "filterparent" in mechanism.options.disabled:
        return []
    given = {frozenset(c.bodies) for c in mechanism.contacts if isinstance(c, ContactExclude)}
    parents, children = (
        [name for name in rigid_group(mechanism.bodies, start) if by_name[name].geometry]
        for start in (root, body.name)
    )
    return [ContactExclude((a, b)) for a in parents for b in children if frozenset((a, b)) not in given]


def _chain(body: Body, groups: list[list[MovingJoint]], names: UniqueNames, at_joints: bool) -> list[Body]:
    """The bodies that replace one body; the last of them has its mass and shapes."""
    if not at_joints and len(groups) <= 1:
        return [body]
    chain: list[Body] = []
    parent, R, p = body.parent, np.array(body.orientation), np.array(body.position)  # R_PB, p_PB
    R_L, p_L = np.array(IDENTITY), np.zeros(3, int)  # of the last body L of the chain, in the frame of B
    for k, group in enumerate(groups):
        if at_joints:
            (joint,) = group
            p_L = p_L if isinstance(joint, Prismatic) else np.array(joint.position)
            joint, R_L = _along_axes(replace(joint, position=(0, 0, 0)))
            group = [joint]
        placed = _placed(R @ R_L, p + R @ p_L)
        if k == len(groups) - 1 and not p_L.any() and (R_L == IDENTITY).all():
            return [*chain, replace(body, parent=parent, joint=tuple(group), **placed)]
        name = names.new(f"{body.name}.{group[-1].name}")
        chain.append(Body(name, tuple(group), parent, **placed))
        parent, R, p = name, R_L.T, -R_L.T @ p_L
    if not chain:
        return [body]
    return [*chain, replace(body, parent=parent, joint=Fixed(), **_placed(R, p))]


def _along_axes(joint: MovingJoint) -> tuple[MovingJoint, np.ndarray]:
    """The joint in a frame L in which a planar joint moves along x and y, and that frame R_BL."""
    if not isinstance(joint, Planar):
        return joint, np.array(IDENTITY)
    axes = (*rotations.perpendicular_axes(joint.axis), joint.axis)
    return replace(joint, axis=(0, 0, 1)), np.transpose(axes)


def _placed(R: np.ndarray, p: np.ndarray) -> dict[str, Any]:
    """The pose of a body in its parent, as arguments of `Body`."""
    return {"position": tuple(p.tolist()), "orientation": tuple(tuple(row) for row in R.tolist())}


# ----------------------------------------------------------------------------------------- references


def with_references(mechanism: Mechanism, references: Mapping[str, Any]) -> Mechanism:
    """The mechanism in which the joints with one coordinate have other references.

    references: by joint. The poses of bodies, the axes of joints and the couplings, active or not, change
    accordingly. On a body, a revolute or screw joint must not follow one with several coordinates.
    """
    old = {j.name: j.joint.reference for j in mechanism.joints}
    moved = {name for name, value in references.items() if value != old[name]}
    if not moved:
        return mechanism
    bodies = [_rereferenced(body, references) for body in mechanism.bodies]
    constraints, inactive = (
        [_shifted_coupling(c, old, references) if isinstance(c, JointCoupling) else c for c in group]
        for group in (mechanism.constraints, mechanism.inactive_constraints)
    )
    return mechanism.replace(bodies=bodies, constraints=constraints, inactive_constraints=inactive)


def _rereferenced(body: Body, references: Mapping[str, Any]) -> Body:
    """The body with new references: X D1 E1 ... Dn En, where the constant motions D move to the front.

    Di is the motion of joint i from the old to the new reference, and Ei that from the new one.
    """
    R, p = np.array(IDENTITY), np.zeros(3, int)  # S = D(i+1) ... Dn
    joints: list[MovingJoint] = []
    for joint in reversed(body.joints):
        target = references.get(joint.name, joint.reference)
        joints.insert(0, replace(_conjugated(joint, R, p), reference=target))
        if isinstance(joint, ONE_COORDINATE) and target != joint.reference:
            R_D, p_D = _motion(joint, target - joint.reference)
            R, p = R_D @ R, p_D + R_D @ p
    R_body = np.array(body.orientation)
    placed = _placed(R_body @ R, np.array(body.position) + R_body @ p)
    return replace(body, joint=tuple(joints) if joints else body.joint, **placed)


def _motion(joint: MovingJoint, x: Any) -> tuple[np.ndarray, np.ndarray]:
    """Rotation and translation of a joint with one coordinate by x, in the frame of the body."""
    axis, a = np.array(joint.axis), np.array(joint.position)
    if isinstance(joint, Prismatic):
        return np.array(IDENTITY), axis * x
    R = rotations.from_axis_angle(joint.axis, x)
    return R, a - R @ a + axis * (getattr(joint, "pitch", 0) * x)


def _conjugated(joint: MovingJoint, R: np.ndarray, p: np.ndarray) -> MovingJoint:
    """The joint S^-1 E S, with S = (R, p): its axis and position in the frame S."""
    position = tuple((R.T @ (np.array(joint.position) - p)).tolist())
    if isinstance(joint, ONE_COORDINATE):
        return replace(joint, axis=tuple((R.T @ np.array(joint.axis)).tolist()), position=position)
    return replace(joint, position=position)


def _shifted_coupling(c: JointCoupling, old: Mapping[str, Any], new: Mapping[str, Any]) -> JointCoupling:
    """The coupling for new references: q - q0 = P(x) with q0 and x relative to these."""
    offset = old[c.joint] - new.get(c.joint, old[c.joint])
    d = 0 if c.to is None else new.get(c.to, old[c.to]) - old[c.to]
    if offset == 0 and d == 0:
        return c
    # P(x + d) by the binomial theorem
    n = len(c.coefficients)
    shifted = [
        sum((c.coefficients[k] * math.comb(k, i) * d ** (k - i) for k in range(i + 1, n)), c.coefficients[i])
        for i in range(n)
    ]
    return replace(c, coefficients=(shifted[0] + offset, *shifted[1:]))


# ------------------------------------------------------------------------------------------------ order


def in_depth_first_order(mechanism: Mechanism) -> Mechanism:
    """The mechanism with every body directly after its parent's earlier children; coordinates follow.

    The order of the coordinates changes unless the bodies are in this order already.
    """
    children: dict[str, list[Body]] = {}
    for body in mechanism.bodies:
        children.setdefault(body.parent, []).append(body)
    order: list[Body] = []
    stack = list(reversed(children.get("world", [])))
    while stack:
        order.append(stack.pop())
        stack.extend(reversed(children.get(order[-1].name, [])))
    if [b.name for b in order] == [b.name for b in mechanism.bodies]:
        return mechanism
    slices = {(j.name, of): getattr(j, of) for j in mechanism.joints for of in ("q", "v")}

    def permuted(x: Sequence[Any], of: str) -> tuple[Any, ...]:
        return tuple(value for b in order for joint in b.joints for value in x[slices[joint.name, of]])

    return mechanism.replace(bodies=order, **_with_states(mechanism, permuted))


def rigid_group(bodies: Iterable[Body], root: str) -> list[str]:
    """The names of the body `root` and of the bodies that are fixed to it, directly or through others."""
    group = [root]
    for body in bodies:
        if body.parent in group and not body.joints and body.name not in group:
            group.append(body.name)
    return group
