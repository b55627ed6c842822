"""Consistency of a mechanism: the types of its parts, names, references, sizes and mass distribution."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

from zwang.errors import DescriptionError, UnknownNameError
from zwang.mechanism.bodies import Body, Frame
from zwang.mechanism.constraints import (
    EXPRESSION_CONSTRAINTS,
    Connect,
    CoulombFriction,
    Distance,
    JointCoupling,
    NonIdeal,
    NoSideSlip,
    Rolling,
    Weld,
)
from zwang.mechanism.contact_pairs import ContactExclude, ContactPair
from zwang.mechanism.force_elements import Actuator, Force, Motor, Spring
from zwang.mechanism.geometry import Geometry
from zwang.mechanism.joint_index import JointIndex, ambiguous_names, joint_indices
from zwang.mechanism.merged_inertia import bodies_of_impossible_parts
from zwang.mechanism.options import Keyframe, Options
from zwang.mechanism.sensor_consistency import check_sensors
from zwang.mechanism.sensors import SENSORS, Camera
from zwang.mechanism.tendon_elements import Tendon, TendonCoupling
from zwang.mechanism.type_validation import short_repr
from zwang.scalar import are_constant

Part = TypeVar("Part")


class MechanismParts(Protocol):
    """The parts of a mechanism between which the references must be consistent."""

    @property
    def bodies(self) -> Sequence[Body]: ...
    @property
    def forces(self) -> Sequence[Force]: ...
    @property
    def constraints(self) -> Sequence[Any]: ...
    @property
    def inactive_constraints(self) -> Sequence[Any]: ...
    @property
    def frames(self) -> Sequence[Frame]: ...
    @property
    def geometry(self) -> Sequence[Geometry]: ...
    @property
    def tendons(self) -> Sequence[Tendon]: ...
    @property
    def contacts(self) -> Sequence[ContactPair | ContactExclude]: ...
    @property
    def keyframes(self) -> Sequence[Keyframe]: ...
    @property
    def sensors(self) -> Sequence[Any]: ...
    @property
    def cameras(self) -> Sequence[Camera]: ...


class PartList(NamedTuple):
    """The classes of which a field of `Mechanism` contains instances, and examples of them for messages."""

    classes: Any
    examples: str


EQUALITIES = (Connect, Weld, Distance, JointCoupling, TendonCoupling)
"""The constraints that can be switched on and off."""
CONSTRAINTS = (
    *EQUALITIES,
    NoSideSlip,
    Rolling,
    *EXPRESSION_CONSTRAINTS,
)
MOTOR_REMEDY = "use an Actuator with one gear for each of them, or a Wrench"
SPRING_REMEDY = "use a PointSpring, or joints of one speed each in its place"
COUPLING_REMEDY = "use a Holonomic constraint, whose formula may contain {}, or joints of one speed each"
TENDON_REMEDY = "use joints of one speed each, such as joint=(zw.Revolute(...), zw.Prismatic(...))"
"""What to do about a part on a joint of several generalised velocities; {}: the joint's coordinates."""
PART_LISTS = {
    "bodies": PartList(Body, "zw.Body"),
    "forces": PartList(Force, "zw.Motor, zw.Spring, zw.Damper, zw.Wrench ..."),
    "constraints": PartList(CONSTRAINTS, "zw.Connect, zw.JointCoupling, zw.Rolling ..."),
    "inactive_constraints": PartList(EQUALITIES, "zw.Connect, zw.Weld, zw.JointCoupling ..."),
    "frames": PartList(Frame, "zw.Frame"),
    "geometry": PartList(Geometry, "zw.Sphere, zw.Box, zw.Mesh ..."),
    "tendons": PartList(Tendon, "zw.Tendon"),
    "contacts": PartList(ContactPair | ContactExclude, "zw.ContactPair or zw.ContactExclude"),
    "keyframes": PartList(Keyframe, "zw.Keyframe"),
    "sensors": PartList(SENSORS, "zw.FrameSensor, zw.SiteSensor, zw.JointSensor ..."),
    "cameras": PartList(Camera, "zw.Camera"),
}


def checked_parts(name: str, values: Any, where: str) -> tuple[Any, ...]:
    """`values` as the tuple of the parts of the field `name`. Raises DescriptionError for other objects."""
    classes, examples = PART_LISTS[name]
    try:
        items = tuple(values)
    except TypeError:
        message = f"{name} of {where} is {short_repr(values)}; give a list of {examples}"
        raise DescriptionError(message) from None
    for item in items:
        if not isinstance(item, classes):
            other = next(
                (field for field, known in PART_LISTS.items() if isinstance(item, known.classes)), None
            )
            hint = f"; a {type(item).__name__} belongs in {other}=" if other else ""
            raise DescriptionError(f"{name} of {where} contains {short_repr(item)}{hint}; give {examples}")
    return items


def check_options(options: Any, where: str) -> None:
    """Raises DescriptionError unless `options` is a zw.Options."""
    if not isinstance(options, Options):
        raise DescriptionError(f"options of {where} is {short_repr(options)}; give zw.Options")


def check_mechanism(mechanism: MechanismParts) -> None:
    """Raises DescriptionError or UnknownNameError unless the parts of the mechanism are consistent."""
    _check_tree(mechanism.bodies)
    _check_names(mechanism)
    _check_references(mechanism)
    _check_single_velocities(mechanism)
    check_sensors(mechanism)
    _check_masses(mechanism)
    _check_unchecked_inertias(mechanism)
    _check_sleep(mechanism.bodies)


def check_keyframes(keyframes: Sequence[Keyframe], nq: int, nv: int) -> None:
    """Raises DescriptionError unless q and v of each keyframe are empty or have the sizes nq and nv."""
    for frame in keyframes:
        for name, values, size in (("q", frame.q, nq), ("v", frame.v, nv)):
            if values and len(values) != size:
                raise DescriptionError(
                    f"{name} of keyframe {frame.name!r} has {len(values)} numbers; it must have {size} "
                    f"(n{name}), "
                    "or none"
                )


def check_mocap(keyframes: Sequence[Keyframe], bodies: Iterable[Body]) -> None:
    """Raises UnknownNameError unless the mocap poses of each keyframe are of mocap bodies."""
    known = [body.name for body in bodies if body.mocap]
    for name in (pose[0] for frame in keyframes for pose in frame.mocap):
        if name not in known:
            raise UnknownNameError("mocap body", name, known)


def check_quaternions(q: Any, joints: Iterable[JointIndex], where: str) -> None:
    """Raises DescriptionError if a quaternion in the configuration q is zero."""
    for joint in joints:
        if joint.kind in ("ball", "free"):
            quaternion = q[joint.q.stop - 4 : joint.q.stop]
            if are_constant(*quaternion) and not any(quaternion):
                raise DescriptionError(f"{where}: the quaternion of joint {joint.name!r} is zero")


def find(kind: str, name: Any, table: Mapping[str, Part]) -> Part:
    """The element `name` of the table.

    Raises UnknownNameError with the valid names, which are of that kind.
    """
    if not isinstance(name, str) or name not in table:
        raise UnknownNameError(kind, name, table)
    return table[name]


def _check_tree(bodies: Sequence[Body]) -> None:
    """Every parent is the world or an earlier body."""
    seen = {"world"}
    names = {body.name for body in bodies}
    for body in bodies:
        if body.parent == body.name:
            raise DescriptionError(f"body {body.name!r} is its own parent")
        if body.parent not in seen:
            if body.parent not in names:
                raise UnknownNameError("body", body.parent, ["world", *names])
            if _is_own_ancestor(body, {b.name: b for b in bodies}):
                raise DescriptionError(
                    f"body {body.name!r} is part of a cycle: it is an ancestor of its own parent"
                )
            raise DescriptionError(
                f"body {body.name!r} stands before its parent {body.parent!r}; put the parent first"
            )
        seen.add(body.name)


def _check_sleep(bodies: Sequence[Body]) -> None:
    """Only the first body with joints of a kinematic tree has a rule for its sleep."""
    moved: set[str] = set()
    for body in bodies:
        if body.sleep != "auto" and (not body.joints or body.parent in moved):
            raise DescriptionError(
                f"body {body.name!r} has sleep={body.sleep!r}; give it to the first body with joints of the "
                "kinematic tree, which sleeps as a whole"
            )
        if body.joints or body.parent in moved:
            moved.add(body.name)


def _is_own_ancestor(body: Body, table: Mapping[str, Body]) -> bool:
    visited, ancestor = {body.name}, body.parent
    while ancestor in table and ancestor not in visited:
        visited.add(ancestor)
        ancestor = table[ancestor].parent
    return ancestor == body.name


def _joints_by_name(m: MechanismParts) -> dict[str, JointIndex]:
    return {joint.name: joint for joint in joint_indices(m.bodies)}


def _check_names(m: MechanismParts) -> None:
    _check_unique("body", ["world", *(b.name for b in m.bodies)])
    joints = joint_indices(m.bodies)
    _check_unique("joint", [j.name for j in joints])
    _check_coordinate_names(joints)
    _check_unique("frame", ["world", *(b.name for b in m.bodies), *(f.name for f in m.frames)])
    _check_unique("constraint", [c.name for c in (*m.constraints, *m.inactive_constraints) if c.name])
    _check_unique("tendon", [t.name for t in m.tendons])
    _check_unique("keyframe", [k.name for k in m.keyframes if k.name])
    _check_unique("motor or actuator", [f.name for f in m.forces if isinstance(f, Motor | Actuator)])
    shapes = [g.name for b in m.bodies for g in b.geometry] + [g.name for g in m.geometry]
    _check_unique("shape", [name for name in shapes if name])


def _check_unique(kind: str, names: Sequence[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            reserved = " (it denotes the ground)" if kind == "body" and name == "world" else ""
            raise DescriptionError(f"the {kind} name {name!r} is used twice{reserved}; names must be unique")
        seen.add(name)


def _check_coordinate_names(joints: Sequence[JointIndex]) -> None:
    """No two coordinates, and no two generalised velocities, have one name."""
    table = {joint.name: joint for joint in joints}
    for name, other in ambiguous_names({joint.name: type(joint.joint) for joint in joints}).items():
        raise DescriptionError(
            f"the {table[name].kind} joint {name!r} has the name of a coordinate or velocity of the "
            f"{table[other].kind} joint {other!r}: a value by this name would be that of both; rename one of "
            "the two joints"
        )


def _check_references(m: MechanismParts) -> None:
    """Every name that a part refers to exists."""
    bodies = {"world": None, **{b.name: b for b in m.bodies}}
    frames = {**bodies, **{f.name: f for f in m.frames}}
    tables: dict[str, Mapping[str, Any]] = {
        "joint": _joints_by_name(m),
        "body": bodies,
        "frame": frames,
        "tendon": {t.name: t for t in m.tendons},
    }
    for frame in m.frames:
        find("body", frame.body, bodies)
    for tendon in m.tendons:
        for name, _ in tendon.joints:
            find("joint", name, tables["joint"])
        for name in (*tendon.path, *(wrap.side for wrap in tendon.wraps)):
            if name is not None:
                find("frame", name, frames)
    _check_expressions(m)
    shapes = dict.fromkeys(g.name for g in (*(g for b in m.bodies for g in b.geometry), *m.geometry))
    _check_contacts(m.contacts, bodies, shapes)
    for part in (*m.forces, *m.constraints, *m.inactive_constraints):
        for kind, name in references(part):
            find(kind, name, tables[kind])


def _check_expressions(m: MechanismParts) -> None:
    """The generalised velocities and constraints that constraints given by expressions refer to exist."""
    velocities, constraints = (
        dict.fromkeys(name for j in joint_indices(m.bodies) for name in j.speeds),
        {c.name: c for c in m.constraints},
    )
    for constraint in (c for c in m.constraints if isinstance(c, EXPRESSION_CONSTRAINTS)):
        for field in ("coefficients", "forces", "sliding"):
            for name, _ in getattr(constraint, field, None) or ():
                find("speed", name, velocities)
        if isinstance(constraint, NonIdeal | CoulombFriction) and constraint.constraint is not None:
            find("constraint", constraint.constraint, constraints)
        if isinstance(constraint, CoulombFriction):
            _check_friction(constraint, _joints_by_name(m), constraints)


def _check_friction(
    friction: CoulombFriction, joints: Mapping[str, Any], constraints: Mapping[str, Any]
) -> None:
    """The joint of Coulomb friction is revolute, with a radius, or prismatic, without; its constraint has a
    force.
    """
    where = f"Coulomb friction {friction.name!r}"
    if friction.constraint is not None:
        if isinstance(constraints[friction.constraint], NonIdeal | CoulombFriction):
            raise DescriptionError(
                f"{where} names the constraint {friction.constraint!r}, which is itself a non-ideal force; "
                "name the constraint whose force is the load"
            )
        return
    kind = find("joint", friction.joint, joints).kind
    if kind not in ("revolute", "prismatic"):
        raise DescriptionError(
            f"{where} is that of the {kind} joint {friction.joint!r}; it is defined for revolute and "
            "prismatic joints: replace the joint by a sequence of these"
        )
    if kind == "revolute" and friction.radius is None:
        raise DescriptionError(
            f"{where} is that of the revolute joint {friction.joint!r} and needs radius=, that of its pin [m]"
        )
    if kind == "prismatic" and (friction.radius is not None or friction.has_collar):
        raise DescriptionError(
            f"{where} is that of the prismatic joint {friction.joint!r}, which has no radius; omit "
            "radius= and collar_radius="
        )


def _check_contacts(
    contacts: Sequence[ContactPair | ContactExclude], bodies: Mapping[str, Any], shapes: Mapping[str, Any]
) -> None:
    """The shapes of contact pairs and the bodies of contact exclusions exist."""
    for contact in contacts:
        if isinstance(contact, ContactPair):
            kind, names, valid = "shape", contact.geometry, shapes
        else:
            kind, names, valid = "body", contact.bodies, bodies
        for name in names:
            if name not in valid:
                raise UnknownNameError(kind, name, [known for known in valid if known])


def references(part: Any) -> list[tuple[str, str]]:
    """(kind, name) of everything that a force element or a constraint refers to."""
    found = []
    for field, kind in (
        ("joint", "joint"),
        ("relative_to", "joint"),
        ("tendon", "tendon"),
        ("frame", "frame"),
        ("slider", "frame"),
        ("reference", "frame"),
        ("body", "body"),
        ("on", "body"),
    ):
        name = getattr(part, field, None)
        if name is not None:
            found.append((kind, name))
    if getattr(part, "to", None) is not None:
        found.append(("tendon" if hasattr(part, "tendon") else "joint", part.to))
    for end in ("a", "b"):
        point = getattr(part, end, None)
        if point is not None:
            found.append(("body", point if isinstance(point, str) else point[0]))
    return found


def _check_single_velocities(m: MechanismParts) -> None:
    """Parts that act along one coordinate refer to joints with one generalised velocity."""
    references: list[tuple[str, str, str]] = []
    joints = _joints_by_name(m)
    for force in m.forces:
        if isinstance(force, Motor):
            references.append((f"motor {force.name!r}", force.joint, MOTOR_REMEDY))
        elif isinstance(force, Spring) and joints[force.joint].kind in ("ball", "free"):
            _check_rotational_spring(force)
        elif isinstance(force, Spring):
            references += [
                ("a spring", name, SPRING_REMEDY)
                for name in (force.joint, force.relative_to)
                if name is not None
            ]
    for coupling in (*m.constraints, *m.inactive_constraints):
        if isinstance(coupling, JointCoupling):
            what = f"joint coupling {coupling.name!r}"
            references += [
                (what, name, COUPLING_REMEDY) for name in (coupling.joint, coupling.to) if name is not None
            ]
    references += [
        (f"tendon {tendon.name!r}", name, TENDON_REMEDY) for tendon in m.tendons for name, _ in tendon.joints
    ]
    for force in m.forces:
        if isinstance(force, Actuator):
            _check_gear(joints, force)
    for what, name, remedy in references:
        joint = joints[name]
        if joint.joint.nv != 1:
            raise DescriptionError(
                f"{what} is on joint {name!r}, which is {joint.kind} and has {joint.joint.nv} speeds; it "
                f"must have one ({remedy.format(', '.join(joint.coordinates))})"
            )


def _check_rotational_spring(spring: Spring) -> None:
    """A spring on a ball or free joint is linear and has neither a rest nor a second joint."""
    one_stiffness = isinstance(spring.stiffness, tuple) and len(spring.stiffness) == 1
    if spring.rest != 0 or not one_stiffness or spring.relative_to is not None:
        raise DescriptionError(
            f"the spring on joint {spring.joint!r}, a ball or free joint, must have one stiffness, "
            "and neither rest nor relative_to"
        )


def _check_gear(joints: Mapping[str, JointIndex], actuator: Actuator) -> None:
    """gear has one number for each velocity of a joint, one for a tendon, and one to six for a frame."""
    size = len(actuator.gear)
    if actuator.frame is not None and actuator.slider is None:
        allowed = range(1, 7)
    else:
        allowed = (1,) if actuator.joint is None else (joints[actuator.joint].joint.nv,)
    if size not in allowed:
        raise DescriptionError(
            f"gear of actuator {actuator.name!r} has {size} numbers; it must have {max(allowed)}, one for "
            "each "
            "generalised velocity that it acts on"
        )


def _check_masses(m: MechanismParts) -> None:
    """The subtree that a joint moves has mass, or all of its joints have armature.

    The mass matrix would otherwise be singular.
    """
    children: dict[str, list[str]] = {}
    for body in m.bodies:
        children.setdefault(body.parent, []).append(body.name)
    table = {b.name: b for b in m.bodies}
    # from the leaves to the root: whether the subtree of each body has mass or inertia
    has_mass: dict[str, bool] = {}
    for body in reversed(m.bodies):
        own = not are_constant(body.mass) or body.mass > 0 or any(x != 0 for row in body.inertia for x in row)
        has_mass[body.name] = own or any(has_mass[c] for c in children.get(body.name, ()))
    for body in m.bodies:
        if not body.joints or has_mass[body.name]:
            continue
        if all(_has_armature(table[name]) for name in _subtree(body.name, children)):
            continue
        raise DescriptionError(
            f"body {body.name!r} moves by joint {body.joints[0].name!r}, but neither it nor its descendants "
            "have "
            "mass; give it a mass (or inertia), or make its joint fixed"
        )


def _has_armature(body: Body) -> bool:
    return all(not are_constant(j.armature) or j.armature > 0 for j in body.joints)


def _subtree(name: str, children: Mapping[str, Sequence[str]]) -> list[str]:
    found = [name]
    for ancestor in found:
        found.extend(children.get(ancestor, ()))
    return found


def _check_unchecked_inertias(m: MechanismParts) -> None:
    """Bodies with unchecked_inertia have a consistent inertia in sum with those fixed to them."""
    unchecked = [body.name for body in m.bodies if body.unchecked_inertia]
    impossible = bodies_of_impossible_parts(m.bodies) if unchecked else frozenset()
    for name in unchecked:
        if name in impossible:
            raise DescriptionError(
                f"body {name!r} has unchecked_inertia, and the sum over it and the bodies that are fixed to "
                "it has a "
                "negative mass or principal moment of inertia; give inertias with a physically consistent sum"
            )
