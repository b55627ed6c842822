"""The writer of URDF files."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

from zwang.atomic import write_file
from zwang.io.export_notes import ExportNotes, check_values
from zwang.io.meshes.mesh_export import MeshExport
from zwang.io.unique_names import UniqueNames
from zwang.io.urdf.urdf_equivalent import DEFAULT, urdf_equivalent
from zwang.io.urdf.write_links import LinkWriter, origin_node
from zwang.io.xml_writer import XmlElement, as_xml_text, document, is_xml_text
from zwang.mechanism.bodies import Body
from zwang.mechanism.force_elements import Damper
from zwang.mechanism.joints import Fixed, Joint, MovingJoint, Prismatic, Revolute
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.numbers import IDENTITY
from zwang.mechanism.report import Report
from zwang.mechanism.type_validation import validated_arguments

WORLD = "world"
UNLIMITED = 1e10  # rad, m, N m, N or their rates: URDF requires a number
TYPES = {"prismatic": "prismatic", "planar": "planar", "free": "floating"}


@validated_arguments()
def write_urdf(mechanism: Mechanism, path: str | os.PathLike[str], *, strict: bool = True) -> Report:
    """Write a mechanism to a URDF file, and its meshes to OBJ files in the folder STEM_meshes beside it.

    `zw.load` and Pinocchio read a mechanism with the same mass matrix, bias forces, poses and limits. URDF
    has links, joints, dampers, dry friction, mimic joints and shapes; it has no springs, actuators, tendons,
    loops, contact attributes or options. Frames become links without mass. Files are replaced completely or
    not at all.
    path: the file, usually with the ending .urdf.
    strict: raise FormatError for parts that URDF cannot say; with strict=False they are omitted, or written
        as the report says.

    Returns a report, whose notes have the kinds "written", "changed" (said in other words, with the same
    motion), "ignored" (omitted, without effect on the motion) and "unsupported" (not said by the file).
    Raises FormatError, ParameterError for a mechanism with symbols, and WriteError.
    """
    check_values(mechanism, "URDF")
    notes = ExportNotes(mechanism, "URDF")
    notes.other_parts()
    for body in mechanism.bodies:
        if body.mocap:
            notes.ignored("URDF has no mocap bodies; it is fixed at its pose", f"body {body.name!r}")
    file = Path(path)
    writer = _UrdfWriter(mechanism, notes, MeshExport(file))
    root = writer.robot()
    notes.check(strict)
    links, joints = (sum(node.name == tag for node in root.children) for tag in ("link", "joint"))
    writer.meshes.write()
    write_file(file, document(root))
    return notes.report(str(file), f"{links} links, {joints} joints, {len(writer.meshes.files)} mesh files")


class _UrdfWriter:
    """The names of links and joints, the dampers and the mimics, from which a URDF is made."""

    def __init__(self, mechanism: Mechanism, notes: ExportNotes, meshes: MeshExport):
        self.original, self.notes, self.meshes = mechanism, notes, meshes
        self.m = urdf_equivalent(mechanism, notes)
        self.links, self.joints = UniqueNames([WORLD]), UniqueNames()
        self.links.assign_reserved(WORLD)
        for table, kind, names in (
            (self.links, "body", [b.name for b in self.m.bodies] + [f.name for f in self.m.frames]),
            (self.joints, "joint", [j.name for j in self.m.joints]),
        ):
            for name in sorted(names, key=lambda name: not _is_name(name)):
                table.assign(name if name.strip() else f"{kind}{name}")
                if not _is_name(name):
                    written = table[name] if name.strip() else table[f"{kind}{name}"]
                    table.assign_as(name, written)
                    notes.unsupported(
                        f"{kind} {name!r}", "URDF cannot contain such a name", f"its name is {written!r}"
                    )
        self.dampers: dict[str, Any] = {}
        for force in self.m.forces:
            if isinstance(force, Damper):
                self.dampers[force.joint] = self.dampers.get(force.joint, 0) + force.coefficient
        self.mimics = {c.joint: c for c in self.m.constraints}
        self.unlimited: list[str] = []

    def robot(self) -> XmlElement:
        """The element <robot>."""
        m = self.m
        if not is_xml_text(m.name) or not m.name.strip():
            self.notes.unsupported("the name of the mechanism", "URDF cannot contain it", "it is changed")
        root = XmlElement("robot", {"name": as_xml_text(m.name).strip() or "mechanism"})
        writer = LinkWriter(self.notes, self.meshes)
        has_world = self._has_world()
        if has_world:
            world = root.add("link", name=WORLD)
            world.children += writer.shapes(WORLD, m.geometry)
        own = {b.name for b in self.original.bodies}
        for body in m.bodies:
            root.children.append(writer.link(self.links[body.name], body, body.name not in own))
        root.children += [XmlElement("link", {"name": self.links[f.name]}) for f in m.frames]
        for body in m.bodies:
            if has_world or body.parent != WORLD:
                root.children.append(self._joint(body))
        for frame in m.frames:
            self.notes.changed("it is written as a link without mass", f"frame {frame.name!r}")
            body = Body(frame.name, Fixed(), frame.body, frame.position, frame.orientation)
            root.children.append(self._joint(body))
        if self.meshes.files:  # an extension that MuJoCo reads, which otherwise drops the folders of files
            root.children.append(XmlElement("mujoco", {}, [XmlElement("compiler", {"strippath": "false"})]))
        if self.unlimited:
            names = ", ".join(map(repr, self.unlimited[:8])) + (", ..." if len(self.unlimited) > 8 else "")
            self.notes.changed(f"URDF requires numbers: {UNLIMITED:g} stands for no limit", f"joints {names}")
        return root

    def _has_world(self) -> bool:
        """Whether the root is the ground, and not a body that is fixed to it at the origin."""
        roots = [b for b in self.m.bodies if b.parent == WORLD]
        plain = len(roots) == 1 and not roots[0].joints and roots[0].orientation == IDENTITY
        on_ground = bool(self.m.geometry) or any(f.body == WORLD for f in self.m.frames)
        return on_ground or not plain or any(roots[0].position)

    def _joint(self, body: Body) -> XmlElement:
        joint = body.joint
        assert isinstance(joint, Joint)
        moving = joint if isinstance(joint, MovingJoint) else None
        name = (
            self.joints[joint.name] if moving else self.joints.new(as_xml_text(joint.name).strip()
                                                                  or f"{self.links[body.name]} fixed")
        )  # fmt: skip
        limit, kind = (None, "fixed") if moving is None else self._limit(moving)
        node = XmlElement("joint", {"name": name, "type": kind})
        node.add("parent", link=self.links[body.parent])
        node.add("child", link=self.links[body.name])
        origin = origin_node(body.position, body.orientation)
        if origin is not None:
            node.children.append(origin)
        if moving is None:
            return node
        if kind != "floating":
            node.add("axis", xyz=moving.axis)
        if limit is not None:
            node.children.append(limit)
        damping = self.dampers.get(joint.name, 0)
        if damping or moving.friction:
            node.add("dynamics", damping=damping, friction=moving.friction)
        if joint.name in self.mimics:
            c = self.mimics[joint.name]
            offset, multiplier = c.coefficients
            node.add("mimic", joint=self.joints[c.to], multiplier=multiplier, offset=offset)
        self._note_rest(moving)
        return node

    def _limit(self, joint: MovingJoint) -> tuple[XmlElement | None, str]:
        """The element <limit>, if there is one, and the type of the joint."""
        effort = self._effort(joint)
        if joint.actuator_gravity_compensation:
            self.notes.unsupported(
                f"joint {joint.name!r}", "URDF has no gravity compensation by actuators", "it is omitted"
            )
        ends = joint.limits
        kind = TYPES.get(joint.kind, "continuous" if ends is None else "revolute")
        given = {"effort": effort, "velocity": joint.velocity_limit}
        needed = kind in ("revolute", "prismatic")
        if not needed and all(value is None for value in given.values()):
            return None, kind
        numbers: dict[str, Any] = {}
        if needed:
            lower, upper = (-math.inf, math.inf) if ends is None else ends
            numbers = {"lower": lower, "upper": upper}
        numbers |= {name: math.inf if value is None else value for name, value in given.items()}
        if any(math.isinf(value) for value in numbers.values()):
            self.unlimited.append(joint.name)
            numbers = {name: min(max(value, -UNLIMITED), UNLIMITED) if math.isinf(value) else value
                       for name, value in numbers.items()}  # fmt: skip
        return XmlElement("limit", numbers), kind

    def _effort(self, joint: MovingJoint) -> Any:
        """The effort limit of a joint, which readers make its actuator range, unless it is 0 or infinite."""
        own = joint.actuator_range if joint.actuator_range != (-math.inf, math.inf) else None
        effort = joint.effort_limit
        if effort is None and joint.actuator_range is not None:
            effort = joint.actuator_range[1]
        read = None if effort is None or effort in (0, math.inf) or joint.nq > 1 else (-effort, effort)
        if own != read:
            self.notes.unsupported(
                f"joint {joint.name!r}",
                f"a URDF has one effort limit, which is read as the actuator range {read}, and that of the "
                f"joint is {own}",
                f"the effort limit is {effort}",
            )
        return effort

    def _note_rest(self, joint: MovingJoint) -> None:
        """Notes on the numbers of a joint that URDF does not have."""
        where = f"joint {joint.name!r}"
        if joint.armature:
            self.notes.unsupported(where, f"URDF has no armature ({joint.armature})")
        limited = joint.limits is not None and isinstance(joint, Revolute | Prismatic)
        for used, softness, what in (
            (limited, joint.limit_softness, "limit"), (joint.friction, joint.friction_softness, "friction"),
        ):  # fmt: skip
            if used and softness != DEFAULT:
                self.notes.unsupported(
                    where, f"URDF has no softness of the {what}", "it has the default of zwang"
                )


def _is_name(name: str) -> bool:
    return is_xml_text(name) and bool(name.strip())
