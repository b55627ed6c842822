"""The reader of URDF files: invalid contents are errors with their line, omitted contents are reported.

Every link becomes a body, also a link on a fixed joint, so that it keeps its name and frame. Bodies are in
the order of the joints of the file, parents first. The root link is fixed to the world, or connected to it by
a free joint. Mimic joints become joint couplings, damping becomes dampers, visuals and collisions become
shapes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from zwang.algebra.rotations import to_quaternion, unit_vector
from zwang.errors import DescriptionError, PlausibilityWarning, UnknownNameError
from zwang.io.findings import Findings
from zwang.io.joint_names import renamed_joints
from zwang.io.massless_joints import SMALL_ARMATURE, joints_without_inertia
from zwang.io.meshes.mesh_files import AssetRoots
from zwang.io.urdf.read_link import (
    ShapeReader,
    check_angles,
    inertia_of,
    inertia_problem,
    nearest_inertia,
    pose_of,
    structural,
)
from zwang.io.urdf.vocabulary import check_vocabulary, drop_unread_quaternions
from zwang.io.xml import Element, parse, read_document
from zwang.mechanism.bodies import Body
from zwang.mechanism.constraints import JointCoupling
from zwang.mechanism.force_elements import Damper
from zwang.mechanism.geometry import Geometry
from zwang.mechanism.joints import Fixed, Free, Joint, Planar, Prismatic, Revolute
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.merged_inertia import bodies_of_impossible_parts
from zwang.mechanism.report import Report

MOST_LINKS = 50_000
MOVING = {
    "revolute": Revolute,
    "continuous": Revolute,
    "prismatic": Prismatic,
    "planar": Planar,
    "floating": Free,
}
KINDS = (*MOVING, "fixed")
FREE_PARTS = (*Free.coordinates, *Free.speeds)
WORLD = "world"


def read_urdf(
    path: Path,
    *,
    text: str | None = None,
    base: Literal["fixed", "free"] = "fixed",
    strict: bool = True,
    package_dirs: Sequence[str] = (),
    meshes: bool = True,
) -> Mechanism:
    """The mechanism in a URDF file, or in `text`, which is read as the content of a file at `path`.

    base: "fixed", or "free" to connect the root link to the world by a free joint. strict: raise errors
    instead of repairs. package_dirs: folders that are searched for packages. meshes: whether shapes are read.
    Raises LoadError with file, line and column for invalid contents.
    """
    robot = read_document(path) if text is None else parse(text.encode(), str(path), encoding="utf-8")
    findings = Findings(strict)
    roots = AssetRoots.of(path, package_dirs) if meshes else None
    return _Robot(robot, base, findings, roots).mechanism(path)


EFFORT_LIMITS = (
    "the effort limits of {} joints are actuator ranges in simulation, to which actuator forces are clipped "
    "as in "
    "MuJoCo; velocity limits are stored and not enforced"
)


class _Robot:
    """A <robot> with its links and joints by name, which form a tree."""

    def __init__(self, robot: Element, base: str, findings: Findings, roots: AssetRoots | None):
        self.robot, self.base, self.findings = robot, base, findings
        if robot.name != "robot":
            raise robot.error(f"a URDF file begins with <robot>, not with <{robot.name}>")
        drop_unread_quaternions(robot, findings)
        check_vocabulary(robot, findings)
        check_angles(robot, findings)
        self.links = _by_name(robot.all("link"))
        self.joints = _with_new_names(_by_name(robot.all("joint")), findings)
        _check_size(robot, self.links)
        self.shapes = ShapeReader(robot, roots, findings) if roots is not None else None
        self.parent_joints = _parent_joints(self.joints, self.links)
        self.root = self._root()
        self.order = self._order()
        # pose of the floating root in the default configuration, if the file specifies it
        self.root_pose: tuple[Any, Any] | None = None
        self.effort_limits = 0  # the number of joints with an effort limit in simulation
        self._check_world()

    def mechanism(self, path: Path) -> Mechanism:
        """The mechanism; errors of its validation are reported with the line of the element."""
        bodies, forces, couplings = [], [], []
        for name in self.order:
            if name == WORLD:
                continue
            joint = self.parent_joints.get(name)
            with _located(joint or self.links[name]):
                bodies.append(self._body(name, joint))
                if joint is not None:
                    forces += self._dampers(joint)
        for joint in self.joints.values():
            couplings += self._coupling(joint)
        self._check_mimic_cycles({coupling.joint: coupling.to for coupling in couplings})
        settings: dict[str, Any] = {
            "name": self.robot.attributes.get("name", path.stem),
            "bodies": self._with_armatures(self._with_consistent_inertias(bodies)),
            "forces": forces,
            "constraints": couplings,
            "geometry": self._ground(),
        }
        counts = (
            f"{len(self.links)} links, {len(self.joints)} joints, {len(couplings)} mimics; shapes "
            "collide with added shapes only"
        )
        self.findings.note("read", counts)
        if self.effort_limits:
            self.findings.note("read", EFFORT_LIMITS.format(self.effort_limits))
        with _located(self.robot):
            return self._with_root_pose(
                Mechanism(**settings, report=Report(str(path), "urdf", self.findings.report()))
            )

    def _with_root_pose(self, mechanism: Mechanism) -> Mechanism:
        """The mechanism with the floating root at the pose of its joint to 'world' by default."""
        if self.root_pose is None:
            return mechanism
        position, orientation = self.root_pose
        coordinates = mechanism.joint(mechanism.body(self.root).joints[0].name).q
        home = list(mechanism.neutral)
        home[coordinates] = [*position, *(float(x) for x in to_quaternion(np.array(orientation, float)))]
        return mechanism.replace(home=tuple(home))

    # ------------------------------------------------------------------------------------------ the tree

    def _root(self) -> str:
        """The link that is the child of no joint."""
        roots = [name for name in self.links if name not in self.parent_joints]
        if not roots:
            cycle = _cycle(next(iter(self.links)), self.parent_joints)
            raise self.parent_joints[cycle[0]].error(
                f"the links {cycle} form a cycle (loop), so that the tree has no root"
            )
        if len(roots) > 1:
            shown = ", ".join(repr(name) for name in roots[:10])
            problem = (
                f"there are {len(roots)} root links, which are the child of no joint: {shown}; a tree "
                "has one root"
            )
            self.findings.repair(self.links[roots[1]], problem, "the others are fixed to the first one")
        return roots[0]

    def _order(self) -> list[str]:
        """The links in the order of the joints of the file, each after its parent."""
        order, placed = [self.root], {self.root}
        for joint in self.joints.values():
            chain: list[str] = []
            link = _end(joint, "child")
            while link not in placed:
                chain.append(link)
                if len(chain) > len(self.links):
                    cycle = _cycle(link, self.parent_joints)
                    message = f"the links {cycle} form a cycle (loop), apart from the root {self.root!r}"
                    raise self.parent_joints[cycle[0]].error(message)
                if link not in self.parent_joints:
                    break
                link = _end(self.parent_joints[link], "parent")
            order += reversed(chain)
            placed.update(chain)
        return order + [name for name in self.links if name not in placed]

    # ------------------------------------------------------------------------------------------ bodies

    def _body(self, name: str, joint: Element | None) -> Body:
        link = self.links[name]
        moves = joint is not None and joint.attributes.get("type") != "fixed"
        parts = inertia_of(link, self.findings, moves)
        if self.shapes is not None:
            parts["geometry"] = self.shapes.shapes_of(link)
        if joint is None:
            return Body(name, self._root_joint(name), WORLD if name == self.root else self.root, **parts)
        position, orientation = pose_of(joint)
        parent = _end(joint, "parent")
        return Body(name, self._joint(joint), parent, position, orientation, **parts)

    def _root_joint(self, name: str) -> Joint:
        if self.base == "fixed" or name != self.root:
            return Fixed()
        joint = "root_joint"
        while joint in self.joints or any(f"{joint}.{part}" in self.joints for part in FREE_PARTS):
            joint += "_"
        return Free(joint)

    def _joint(self, joint: Element) -> Joint:
        name, kind = joint.attributes["name"], joint.required("type")
        if kind not in KINDS:
            message = f"the type of joint {name!r} is {kind!r}; the types are {', '.join(KINDS)}"
            raise joint.error(message)
        if kind == "fixed":
            return Fixed(name)
        settings = {**self._limits(joint, kind), **self._friction(joint)}
        if kind == "floating":
            return Free(name, **settings)
        axis = self._axis(joint)
        if kind == "planar" and axis != (0, 0, 1):
            message = (
                f"the axis of the planar joint {name!r} is {axis}, not z: URDF does not define its two "
                "directions of translation; zwang has those of zw.Planar, MuJoCo has others, and Pinocchio "
                "ignores the axis"
            )
            self.findings.warn(joint, message, "read")
        return MOVING[kind](name, axis=axis, **settings)

    def _axis(self, joint: Element) -> tuple[Any, ...]:
        element = joint.one("axis")
        if element is None:
            return (1, 0, 0)
        with _located(element):
            axis = unit_vector(element.numbers("xyz", 3), f"axis xyz of {element.owner}")
        return tuple(structural(x) for x in axis)

    def _limits(self, joint: Element, kind: str) -> dict[str, Any]:
        element = joint.one("limit")
        if element is None:
            if kind in ("revolute", "prismatic"):
                problem = f"the {kind} joint {joint.attributes['name']!r} has no <limit>, which URDF requires"
                self.findings.warn(joint, f"{problem}; it has no limits", "repaired")
            return {}
        settings: dict[str, Any] = {}
        for name, key in (("velocity", "velocity_limit"), ("effort", "effort_limit")):
            value = self._bound(element, name)
            if value is not None:
                settings[key] = value
        for name in [x for x in ("acceleration", "deceleration", "jerk") if x in element.attributes]:
            self.findings.ignore(element, f"attribute {name!r} of <limit>: without effect on the motion")
        effort = settings.get("effort_limit", 0)
        if effort and kind in ("revolute", "continuous", "prismatic"):
            settings["actuator_range"] = (-effort, effort)
            self.effort_limits += 1
        elif "effort_limit" in settings:
            name = joint.attributes["name"]
            several = f"a {kind} joint has several coordinates"
            reason = several if effort else "0 stands for no limit, as in MuJoCo"
            self.findings.note(
                "ignored", f"effort limit of joint {name!r} has no effect in simulation: {reason}", element
            )
        if kind in ("revolute", "prismatic"):
            lower, upper = element.number("lower", 0), element.number("upper", 0)
            settings["limits"] = self._ordered(element, lower, upper)
        elif "lower" in element.attributes or "upper" in element.attributes:
            self.findings.ignore(element, f"lower and upper of <limit>: a {kind} joint has no limits in URDF")
        return settings

    def _ordered(self, element: Element, lower: float, upper: float) -> tuple[float, float] | None:
        if lower > upper:
            problem = f"limits of {element.owner} are lower = {lower}, upper = {upper}: in the wrong order"
            self.findings.repair(element, problem, "they are exchanged")
            return upper, lower
        if lower == upper:
            self.findings.note(
                "read", f"{element.owner} cannot move: its lower and upper limits are both {lower}", element
            )
        return lower, upper

    def _bound(self, element: Element, name: str) -> float | None:
        """The effort or velocity limit, or None if it is not given."""
        if name not in element.attributes:
            return None
        value = element.number(name)
        if value < 0:
            problem = f"{name} limit of {element.owner} is {value}; it must not be negative"
            self.findings.repair(element, problem, "it is omitted")
            return None
        if value == 0 and name == "velocity":
            message = f"velocity limit of {element.owner} is 0, so that the joint cannot move"
            self.findings.warn(element, message, "read", PlausibilityWarning)
        return value

    def _friction(self, joint: Element) -> dict[str, Any]:
        return {"friction": self._dynamics(joint, "friction")} if joint.one("dynamics") is not None else {}

    def _dynamics(self, joint: Element, name: str) -> float:
        element = joint.one("dynamics")
        value = element.number(name, 0) if element is not None else 0
        if value < 0 and element is not None:
            problem = f"{name} of {element.owner} is {value}; it must not be negative"
            self.findings.repair(element, problem, "0 is used")
            return 0
        return value

    def _dampers(self, joint: Element) -> list[Damper]:
        if joint.required("type") == "fixed":
            return []
        damping = self._dynamics(joint, "damping")
        return [Damper(joint.attributes["name"], damping)] if damping else []

    # -------------------------------------------------------------------------------- joint couplings

    def _coupling(self, joint: Element) -> list[JointCoupling]:
        mimic = joint.one("mimic")
        if mimic is None:
            return []
        name, to = joint.attributes["name"], mimic.required("joint")
        if to == name:
            raise mimic.error(f"the joint {name!r} mimics itself")
        if to not in self.joints:
            problem = f"mimic of joint {name!r}: {UnknownNameError('joint', to, self.joints)}"
            self.findings.repair(mimic, problem, "the mimic is omitted")
            return []
        offset, multiplier = mimic.number("offset", 0), mimic.number("multiplier", 1)
        if joint.attributes.get("type") in ("fixed", "floating", "planar"):
            self.findings.note(
                "ignored", f"the mimic of joint {name!r}, which is {joint.attributes['type']}", mimic
            )
            return []
        kind = self.joints[to].attributes.get("type")
        if kind in ("floating", "planar"):
            raise mimic.error(
                f"the joint {name!r} mimics the {kind} joint {to!r}, which has no single coordinate"
            )
        if kind == "fixed":
            self.findings.warn(
                mimic, f"joint {name!r} mimics the fixed joint {to!r}; it is fixed at {offset}", "read"
            )
            return [JointCoupling(f"mimic {name}", name, None, (offset,))]
        return [JointCoupling(f"mimic {name}", name, to, (offset, multiplier))]

    def _check_mimic_cycles(self, to: dict[str, str | None]) -> None:
        """Raises LoadError if mimic joints form a cycle."""
        acyclic: set[str | None] = {None}
        for start in to:
            path: list[str] = []
            at: str | None = start
            while at in to and at not in acyclic:
                if at in path:
                    chain = " -> ".join([*path[path.index(at) :], at])
                    raise self.joints[at].error(f"mimic joints form a cycle: {chain}")
                path.append(at)
                at = to[at]
            acyclic.update(path)

    # -------------------------------------------------------------------------------- ground, consistency

    def _check_world(self) -> None:
        """A root link named `world` is the ground; the floating base is then its child by a fixed joint."""
        if WORLD not in self.links:
            return
        link = self.links[WORLD]
        if self.root != WORLD:
            raise link.error("the link name 'world' is the ground's; give this link another name")
        if link.one("inertial") is not None:
            self.findings.note("ignored", "the mass of link 'world', which is the ground", link)
        if self.base == "free":
            children = [j for j in self.joints.values() if _end(j, "parent") == WORLD]
            if len(children) != 1 or children[0].attributes.get("type") != "fixed":
                message = (
                    "the root link 'world' is the ground and cannot float: it must have one child, by "
                    "a fixed joint"
                )
                raise link.error(f"{message}; or load the file with base='fixed'")
            self.root = _end(children[0], "child")
            del self.parent_joints[self.root]
            del self.joints[children[0].attributes["name"]]
            self.order.remove(WORLD)
            name = children[0].attributes["name"]
            self.findings.repair(
                children[0],
                f"the joint {name!r} fixes link {self.root!r} to the ground 'world', in contradiction to "
                "base='free'",
                "the joint is replaced by a free joint",
            )
            self.root_pose = pose_of(children[0])

    def _ground(self) -> tuple[Geometry, ...]:
        """The shapes of a root link named `world`, which are fixed to the ground."""
        return (
            self.shapes.shapes_of(self.links[WORLD])
            if self.shapes is not None and WORLD in self.links
            else ()
        )

    def _with_consistent_inertias(self, bodies: list[Body]) -> list[Body]:
        """The bodies, in which the inertia of every moving part is physically consistent.

        An inconsistent inertia of a link is accepted, with a warning, if its sum over the links that are
        fixed to each other is consistent.
        """
        suspects = {body.name: k for k, body in enumerate(bodies) if body.unchecked_inertia}
        impossible = bodies_of_impossible_parts(bodies) if suspects else {}
        for name, k in suspects.items():
            element = self.links[name].one("inertial") or self.links[name]
            problem = inertia_problem(bodies[k].mass, bodies[k].inertia, f"link {name!r}")
            if name in impossible or not self.findings.strict:
                self.findings.repair(element, problem, "the nearest physically consistent inertia is used")
                bodies[k] = replace(
                    bodies[k], inertia=nearest_inertia(bodies[k].inertia), unchecked_inertia=False
                )
            else:
                self.findings.warn(element, f"{problem}; it is accepted", "read")
        return bodies

    def _with_armatures(self, bodies: list[Body]) -> list[Body]:
        """The bodies, in which every joint moves mass or inertia, or has armature."""
        with _located(self.robot):
            massless = joints_without_inertia(bodies)
        return [
            self._with_armature(body, massless) if any(j.name in massless for j in body.joints) else body
            for body in bodies
        ]

    def _with_armature(self, body: Body, massless: dict[str, str]) -> Body:
        (joint,) = body.joints
        element = self.joints.get(joint.name, self.links[body.name])
        problem = f"joint {joint.name!r} moves link {body.name!r}, but {massless[joint.name]}"
        self.findings.repair(element, problem, f"the armature of the joint is set to {SMALL_ARMATURE}")
        return replace(body, joint=replace(joint, armature=SMALL_ARMATURE))


@contextmanager
def _located(element: Element) -> Iterator[None]:
    """Context in which errors of a description become a LoadError with the location of the element."""
    try:
        yield
    except (DescriptionError, UnknownNameError) as error:
        raise element.error(str(error)) from None


def _check_size(robot: Element, links: dict[str, Element]) -> None:
    if not links:
        raise robot.error(f"{robot.title} has no <link>; it needs at least one")
    if len(links) > MOST_LINKS:
        raise robot.error(f"{robot.title} is too large: {len(links)} links; the limit is {MOST_LINKS}")


def _by_name(elements: list[Element]) -> dict[str, Element]:
    found: dict[str, Element] = {}
    for element in elements:
        name = element.required("name")
        if name in found:
            line = found[name].line
            message = (
                f"the {element.name} name {name!r} is used twice (first in line {line}); names must be unique"
            )
            raise element.error(message)
        found[name] = element
    return found


def _with_new_names(joints: dict[str, Element], findings: Findings) -> dict[str, Element]:
    """The joints by name; those with the name of a coordinate or velocity of another one get a new name, also
    in the elements that mimic them.
    """
    types = {name: joint.attributes.get("type", "fixed") for name, joint in joints.items()}
    renamed = renamed_joints({name: MOVING.get(kind, Fixed) for name, kind in types.items()})
    for name, new in renamed.items():
        findings.warn(joints[name], new.message, "repaired")
        joints[name].attributes["name"] = new.name
    mimics = [mimic for joint in joints.values() for mimic in joint.all("mimic")] if renamed else []
    for mimic in mimics:
        if (to := mimic.attributes.get("joint")) in renamed:
            mimic.attributes["joint"] = renamed[to].name
    return {joint.attributes["name"]: joint for joint in joints.values()}


def _end(joint: Element, which: str) -> str:
    """The name of the parent or child link of a joint."""
    element = joint.one(which)
    if element is None:
        raise joint.error(
            f"the joint {joint.attributes['name']!r} has no element <{which}>, which names its {which} link"
        )
    return element.required("link")


def _parent_joints(joints: dict[str, Element], links: dict[str, Element]) -> dict[str, Element]:
    """The joint of which each link is the child.

    Raises LoadError for unknown links, and links with two parents.
    """
    found: dict[str, Element] = {}
    for name, joint in joints.items():
        ends = _end(joint, "parent"), _end(joint, "child")
        for which, end in zip(("parent", "child"), ends, strict=True):
            if end not in links:
                raise joint.error(f"the {which} of joint {name!r}: {UnknownNameError('link', end, links)}")
        if ends[0] == ends[1]:
            raise joint.error(f"the joint {name!r} connects link {ends[0]!r} to itself")
        if ends[1] in found:
            other = found[ends[1]]
            raise joint.error(
                f"link {ends[1]!r} has two parents: joint {name!r} and joint {other.attributes['name']!r} "
                f"(line {other.line}); a URDF is a tree without loops"
            )
        found[ends[1]] = joint
    return found


def _cycle(start: str, parent_joints: dict[str, Element]) -> list[str]:
    """The links of the cycle that is reached from `start` towards the root."""
    path: dict[str, None] = {}
    link = start
    while link not in path:
        path[link] = None
        link = _end(parent_joints[link], "parent")
    names = list(path)
    return names[names.index(link) :]
