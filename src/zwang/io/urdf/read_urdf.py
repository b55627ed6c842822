"""URDF to a Mechanism, strictly: what cannot be is refused with its line, what is left out is said.

Links become bodies; a link on a fixed joint too, on a Fixed joint, so that each keeps its name and frame. Bodies and
joints stand in the order of the file's joints, parents first. The root stands on the world, or floats. Mimics become
couples, damping becomes dampers; visuals and collisions become shapes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from zwang.algebra.rotations import to_quaternion, unit_vector
from zwang.errors import DescriptionError, PlausibilityWarning, UnknownNameError, UnsupportedError
from zwang.io.findings import Findings
from zwang.io.massless_joints import SMALL_ARMATURE, joints_without_inertia
from zwang.io.meshes.mesh_files import AssetRoots
from zwang.io.urdf.read_link import (
    ShapeReader,
    check_angles,
    exact,
    inertia_fault,
    inertia_of,
    nearest_inertia,
    pose_of,
)
from zwang.io.urdf.vocabulary import check_words
from zwang.io.xml import Element, read_document
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
WORLD = "world"


def read_urdf(
    path: Path,
    *,
    base: Literal["fixed", "free"] = "fixed",
    strict: bool = True,
    package_dirs: Sequence[str] = (),
    meshes: bool = True,
) -> Mechanism:
    """The mechanism of a URDF file. Raises LoadError with file, line and column for what cannot be."""
    robot = read_document(path)
    findings = Findings(strict)
    return _Robot(robot, base, findings, AssetRoots.of(path, package_dirs) if meshes else None).mechanism(path)


EFFORTS = (
    "the effort limits of {} joints act in simulation, as actuator ranges: what control asks of a joint is clipped to them, as in "
    "MuJoCo; velocity limits are kept and do not act"
)


class _Robot:
    """A <robot>: its links and joints by name, checked to be a tree."""

    def __init__(self, robot: Element, base: str, findings: Findings, roots: AssetRoots | None):
        self.robot, self.base, self.findings = robot, base, findings
        _check_root(robot)
        check_words(robot, findings)
        check_angles(robot, findings)
        self.links = _by_name(robot.all("link"))
        self.joints = _by_name(robot.all("joint"))
        _check_size(robot, self.links)
        self.shapes = ShapeReader(robot, roots, findings) if roots is not None else None
        self.above = _joints_above(self.joints, self.links)
        self.root = self._root()
        self.order = self._order()
        self.start: tuple[Any, Any] | None = (
            None  # the floating root's pose at home, where the file gives one
        )
        self.efforts = 0  # joints whose effort limit acts
        self._check_world()

    def mechanism(self, path: Path) -> Mechanism:
        """Everything together; an error of the parts' own checks gets the element's line."""
        bodies, forces, couples = [], [], []
        for name in self.order:
            if name == WORLD:
                continue
            joint = self.above.get(name)
            with _placed(joint or self.links[name]):
                bodies.append(self._body(name, joint))
                if joint is not None:
                    forces += self._dampers(joint)
        for joint in self.joints.values():
            couples += self._couple(joint)
        self._check_couples({couple.joint: couple.to for couple in couples})
        settings: dict[str, Any] = {
            "name": self.robot.attributes.get("name", path.stem),
            "bodies": self._movable(self._possible(bodies)),
            "forces": forces,
            "constraints": couples,
            "geometry": self._ground(),
        }
        counts = f"{len(self.links)} links, {len(self.joints)} joints, {len(couples)} mimics; its shapes touch what is added, not each other"
        self.findings.note("read", counts)
        if self.efforts:
            self.findings.note("read", EFFORTS.format(self.efforts))
        with _placed(self.robot):
            return self._started(
                Mechanism(**settings, report=Report(str(path), "urdf", self.findings.report()))
            )

    def _started(self, mechanism: Mechanism) -> Mechanism:
        """The mechanism whose floating root stands at home where its joint to 'world' had it."""
        if self.start is None:
            return mechanism
        position, orientation = self.start
        at = mechanism.joint(mechanism.body(self.root).joints[0].name).q
        home = list(mechanism.neutral)
        home[at] = [*position, *(float(x) for x in to_quaternion(np.array(orientation, float)))]
        return mechanism.replace(home=tuple(home))

    # ------------------------------------------------------------------------------------------ the tree

    def _root(self) -> str:
        """The one link without a joint above it."""
        roots = [name for name in self.links if name not in self.above]
        if not roots:
            cycle = _cycle(next(iter(self.links)), self.above)
            raise self.above[cycle[0]].error(
                f"the links {cycle} form a cycle (loop): no link is the root of a tree"
            )
        if len(roots) > 1:
            shown = ", ".join(repr(name) for name in roots[:10])
            fault = (
                f"there are {len(roots)} root links without a joint above them: {shown}; a tree has one root"
            )
            self.findings.repair(self.links[roots[1]], fault, "the others are fixed to the first one")
        return roots[0]

    def _order(self) -> list[str]:
        """The links in the order of the file's joints, each after its parent."""
        order, placed = [self.root], {self.root}
        for joint in self.joints.values():
            chain: list[str] = []
            at = _end(joint, "child")
            while at not in placed:
                chain.append(at)
                if len(chain) > len(self.links):
                    cycle = _cycle(at, self.above)
                    fault = f"the links {cycle} form a cycle (loop), apart from the root {self.root!r}"
                    raise self.above[cycle[0]].error(fault)
                if at not in self.above:
                    break
                at = _end(self.above[at], "parent")
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
        above = _end(joint, "parent")
        return Body(name, self._joint(joint), above, position, orientation, **parts)

    def _root_joint(self, name: str) -> Joint:
        if self.base == "fixed" or name != self.root:
            return Fixed()
        joint = "root_joint"
        while joint in self.joints:
            joint += "_"
        return Free(joint)

    def _joint(self, joint: Element) -> Joint:
        name, kind = joint.attributes["name"], joint.required("type")
        if kind not in KINDS:
            fault = f"the type of joint {name!r} is {kind!r}; known types are {', '.join(KINDS)}"
            raise joint.error(fault)
        if kind == "fixed":
            return Fixed(name)
        settings = {**self._limits(joint, kind), **self._friction(joint)}
        if kind == "floating":
            return Free(name, friction=settings.get("friction", 0))
        return MOVING[kind](name, axis=self._axis(joint), **settings)

    def _axis(self, joint: Element) -> tuple[Any, ...]:
        element = joint.one("axis")
        if element is None:
            return (1, 0, 0)
        with _placed(element):
            axis = unit_vector(element.numbers("xyz", 3), f"axis xyz of {element.owner}")
        return tuple(exact(x) for x in axis)

    def _limits(self, joint: Element, kind: str) -> dict[str, Any]:
        element = joint.one("limit")
        if element is None:
            if kind in ("revolute", "prismatic"):
                fault = f"the {kind} joint {joint.attributes['name']!r} has no <limit>, which URDF asks for"
                self.findings.warn(joint, f"{fault}; it moves without limits", "repaired")
            return {}
        settings: dict[str, Any] = {}
        for name, key in (("velocity", "velocity_limit"), ("effort", "effort_limit")):
            value = self._bound(element, name)
            if value is not None:
                settings[key] = value
        effort = settings.get("effort_limit", 0)
        if effort and kind in ("revolute", "continuous", "prismatic"):
            settings["actuator_range"] = (-effort, effort)
            self.efforts += 1
        elif "effort_limit" in settings:
            name = joint.attributes["name"]
            why = (
                "it is 0, which stands for none, as in MuJoCo"
                if not effort
                else f"a {kind} joint has several speeds"
            )
            self.findings.note(
                "ignored", f"effort limit of joint {name!r} does not act in simulation: {why}", element
            )
        if kind in ("revolute", "prismatic"):
            lower, upper = element.number("lower", 0), element.number("upper", 0)
            settings["limits"] = self._ordered(element, lower, upper)
        return settings

    def _ordered(self, element: Element, lower: float, upper: float) -> tuple[float, float] | None:
        if lower > upper:
            fault = f"limits of {element.owner} are lower = {lower}, upper = {upper}: in the wrong order"
            self.findings.repair(element, fault, "they are exchanged")
            return upper, lower
        if lower == upper:
            self.findings.note(
                "read", f"{element.owner} cannot move: its lower and upper limits are both {lower}", element
            )
        return lower, upper

    def _bound(self, element: Element, name: str) -> float | None:
        """A limit of effort or velocity; none if it is not given."""
        if name not in element.attributes:
            return None
        value = element.number(name)
        if value < 0:
            fault = f"{name} limit of {element.owner} is {value}; it must not be negative"
            self.findings.repair(element, fault, "there is none")
            return None
        if value == 0 and name == "velocity":
            message = f"velocity limit of {element.owner} is 0: it may not move at all"
            self.findings.warn(element, message, "read", PlausibilityWarning)
        return value

    def _friction(self, joint: Element) -> dict[str, Any]:
        return {"friction": self._dynamics(joint, "friction")} if joint.one("dynamics") is not None else {}

    def _dynamics(self, joint: Element, name: str) -> float:
        element = joint.one("dynamics")
        value = element.number(name, 0) if element is not None else 0
        if value < 0 and element is not None:
            fault = f"{name} of {element.owner} is {value}; it must not be negative"
            self.findings.repair(element, fault, "it is taken as 0")
            return 0
        return value

    def _dampers(self, joint: Element) -> list[Damper]:
        if joint.required("type") == "fixed":
            return []
        damping = self._dynamics(joint, "damping")
        return [Damper(joint.attributes["name"], damping)] if damping else []

    # ------------------------------------------------------------------------------------------ couples

    def _couple(self, joint: Element) -> list[JointCoupling]:
        mimic = joint.one("mimic")
        if mimic is None:
            return []
        name, to = joint.attributes["name"], mimic.required("joint")
        if to == name:
            raise mimic.error(f"the joint {name!r} mimics itself")
        if to not in self.joints:
            fault = f"mimic of joint {name!r}: {UnknownNameError('joint', to, self.joints)}"
            self.findings.repair(mimic, fault, "the mimic is left out")
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
                mimic, f"joint {name!r} mimics the fixed joint {to!r}: it is held at {offset}", "read"
            )
            return [JointCoupling(f"mimic {name}", name, None, (offset,))]
        return [JointCoupling(f"mimic {name}", name, to, (offset, multiplier))]

    def _check_couples(self, to: dict[str, str | None]) -> None:
        """No joint mimics itself by way of others."""
        cleared: set[str | None] = {None}
        for start in to:
            path: list[str] = []
            at: str | None = start
            while at in to and at not in cleared:
                if at in path:
                    chain = " -> ".join([*path[path.index(at) :], at])
                    raise self.joints[at].error(f"joints mimic each other in a cycle: {chain}")
                path.append(at)
                at = to[at]
            cleared.update(path)

    # ------------------------------------------------------------------------------------------ the ground and the whole

    def _check_world(self) -> None:
        """A root named `world` is the ground itself; a floating base then is what it holds by a fixed joint."""
        if WORLD not in self.links:
            return
        link = self.links[WORLD]
        if self.root != WORLD:
            raise link.error("the link name 'world' is the ground's; give this link another name")
        if link.one("inertial") is not None:
            self.findings.note("ignored", "the mass of link 'world', which is the ground", link)
        if self.base == "free":
            held = [j for j in self.joints.values() if _end(j, "parent") == WORLD]
            if len(held) != 1 or held[0].attributes.get("type") != "fixed":
                fault = "the root link 'world' is the ground and cannot float: it must hold one link, by a fixed joint"
                raise link.error(f"{fault}; or load it with base='fixed'")
            self.root = _end(held[0], "child")
            del self.above[self.root]
            del self.joints[held[0].attributes["name"]]
            self.order.remove(WORLD)
            name = held[0].attributes["name"]
            self.findings.repair(
                held[0],
                f"the joint {name!r} fixes link {self.root!r} to the ground 'world', and base='free' asks that link to float",
                "the joint is left out, and the link floats from there",
            )
            self.start = pose_of(held[0])

    def _ground(self) -> tuple[Geometry, ...]:
        """The shapes of a root link named `world`."""
        return (
            self.shapes.shapes_of(self.links[WORLD])
            if self.shapes is not None and WORLD in self.links
            else ()
        )

    def _possible(self, bodies: list[Body]) -> list[Body]:
        """The bodies, once no moving part has a negative inertia.

        An inertia that no body can have is kept, with a warning, if the links fixed together have a possible one.
        """
        suspects = {body.name: k for k, body in enumerate(bodies) if body.unchecked_inertia}
        impossible = bodies_of_impossible_parts(bodies) if suspects else {}
        for name, k in suspects.items():
            element = self.links[name].one("inertial") or self.links[name]
            fault = inertia_fault(bodies[k].mass, bodies[k].inertia, f"link {name!r}")
            if name in impossible or not self.findings.strict:
                self.findings.repair(element, fault, "the nearest inertia that a body can have is taken")
                bodies[k] = replace(
                    bodies[k], inertia=nearest_inertia(bodies[k].inertia), unchecked_inertia=False
                )
            else:
                self.findings.warn(element, f"{fault}; it is kept as it is", "read")
        return bodies

    def _movable(self, bodies: list[Body]) -> list[Body]:
        """The bodies, once every joint moves some mass or inertia."""
        with _placed(self.robot):
            idle = joints_without_inertia(bodies)
        return [
            self._mended(body, idle) if any(j.name in idle for j in body.joints) else body for body in bodies
        ]

    def _mended(self, body: Body, idle: dict[str, str]) -> Body:
        (joint,) = body.joints
        element = self.joints.get(joint.name, self.links[body.name])
        fault = f"joint {joint.name!r} moves link {body.name!r}, but {idle[joint.name]}"
        self.findings.repair(element, fault, f"the joint gets an armature of {SMALL_ARMATURE}")
        return replace(body, joint=replace(joint, armature=SMALL_ARMATURE))


@contextmanager
def _placed(element: Element) -> Iterator[None]:
    """Errors of the description's own checks get the element's line."""
    try:
        yield
    except (DescriptionError, UnknownNameError) as error:
        raise element.error(str(error)) from None


def _check_root(robot: Element) -> None:
    if robot.name != "robot":
        raise robot.error(f"a URDF file begins with <robot>, not with <{robot.name}>")
    for element in robot.children:
        if element.name in ("xacro:include", "xacro:macro", "xacro:property", "xacro:arg"):
            raise UnsupportedError(
                f"{element.location}: this is a xacro file (<{element.name}>), not yet a URDF; expand it with xacro first"
            )


def _check_size(robot: Element, links: dict[str, Element]) -> None:
    if not links:
        xacro = any(child.name.startswith("xacro:") for child in robot.children)
        hint = "; this is a xacro file, expand it with xacro first" if xacro else "; a robot has one at least"
        raise robot.error(f"{robot.title} has no <link>{hint}")
    if len(links) > MOST_LINKS:
        raise robot.error(f"{robot.title} is too large: {len(links)} links; the limit is {MOST_LINKS}")


def _by_name(elements: list[Element]) -> dict[str, Element]:
    found: dict[str, Element] = {}
    for element in elements:
        name = element.required("name")
        if name in found:
            line = found[name].line
            fault = f"the {element.name} name {name!r} is used twice (already in line {line}); names must be unique"
            raise element.error(fault)
        found[name] = element
    return found


def _end(joint: Element, which: str) -> str:
    """The name of a joint's parent or child link."""
    element = joint.one(which)
    if element is None:
        raise joint.error(
            f"the joint {joint.attributes['name']!r} has no <{which}> element, which names its {which} link"
        )
    return element.required("link")


def _joints_above(joints: dict[str, Element], links: dict[str, Element]) -> dict[str, Element]:
    """The joint above each link; the names are checked, and that there is one at most."""
    above: dict[str, Element] = {}
    for name, joint in joints.items():
        ends = _end(joint, "parent"), _end(joint, "child")
        for which, end in zip(("parent", "child"), ends, strict=True):
            if end not in links:
                raise joint.error(f"the {which} of joint {name!r}: {UnknownNameError('link', end, links)}")
        if ends[0] == ends[1]:
            raise joint.error(f"the joint {name!r} joins link {ends[0]!r} to itself")
        if ends[1] in above:
            other = above[ends[1]]
            raise joint.error(
                f"link {ends[1]!r} has two parents: joint {name!r} and already joint {other.attributes['name']!r} "
                f"(line {other.line}); a URDF is a tree without loops"
            )
        above[ends[1]] = joint
    return above


def _cycle(start: str, above: dict[str, Element]) -> list[str]:
    """The links of the cycle that `start` leads up to."""
    path: dict[str, None] = {}
    at = start
    while at not in path:
        path[at] = None
        at = _end(above[at], "parent")
    names = list(path)
    return names[names.index(at) :]
