"""The writer of MJCF files."""

from __future__ import annotations

import os
from pathlib import Path

from zwang.atomic import write_file
from zwang.errors import FormatError
from zwang.io.export_notes import ExportNotes, check_values
from zwang.io.mjcf.read.pid_plugins import PLUGIN
from zwang.io.mjcf.write.mjcf_equivalent import mjcf_equivalent
from zwang.io.mjcf.write.mjcf_output import MjcfOutput
from zwang.io.mjcf.write.write_bodies import world_node
from zwang.io.mjcf.write.write_constraints import contact_nodes, equality_nodes
from zwang.io.mjcf.write.write_fluids import add_fluid_geoms
from zwang.io.mjcf.write.write_forces import actuator_nodes, tendon_nodes
from zwang.io.mjcf.write.write_geoms import asset_node
from zwang.io.mjcf.write.write_options import keyframe_nodes, option_node
from zwang.io.mjcf.write.write_sensors import camera_nodes, check_shapes, sensor_nodes
from zwang.io.xml_writer import XmlElement, as_xml_text, document, is_xml_text
from zwang.mechanism.force_elements import Actuator
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.report import Report
from zwang.mechanism.type_validation import validated_arguments

WRITTEN = ("sensors", "cameras", "inactive_constraints")  # in addition to what each writer writes
LONGEST_CHAIN = 240  # of bodies, for readers that limit how deep elements are nested


@validated_arguments()
def write_mjcf(mechanism: Mechanism, path: str | os.PathLike[str], *, strict: bool = True) -> Report:
    """Write a mechanism to an MJCF file, and its meshes to OBJ files in the folder STEM_meshes beside it.

    `zw.load` and MuJoCo read a mechanism with the same mass matrix, bias forces, poses, limits, actuator
    forces and sensors. Angles are in radians, and numbers have all digits. Files are replaced completely or
    not at all.
    path: the file, usually with the ending .xml.
    strict: raise FormatError for parts that MJCF cannot say, such as hard constraints; with strict=False they
        are omitted, or written as the report says.

    Returns a report, whose notes have the kinds "written", "changed" (said in other words, with the same
    motion, but for errors of steps that they name), "ignored" (omitted, without effect on the motion) and
    "unsupported" (not said by the file).
    Raises FormatError, ParameterError for a mechanism with symbols, and WriteError.
    """
    check_values(mechanism, "MJCF")
    _check_depth(mechanism)
    notes = ExportNotes(mechanism, "MJCF")
    notes.other_parts(WRITTEN)
    file = Path(path)
    plain = mechanism.replace(sensors=(), cameras=())  # of whose parts they may name some that MJCF lacks
    out = MjcfOutput.of(mjcf_equivalent(plain, notes, mechanism.sensors), mechanism, notes, file)
    root = _root(out, mechanism)
    notes.check(strict)
    m = out.mechanism
    equalities = len(m.constraints) + len(m.inactive_constraints)
    counts = (
        f"{len(m.bodies)} bodies, {len(m.joints)} joints, {len(m.inputs)} actuators, "
        f"{len(m.tendons)} tendons, {equalities} equalities, {len(out.meshes.files)} mesh files"
    )
    out.meshes.write()
    write_file(file, document(root))
    return notes.report(str(file), counts)


def _check_depth(mechanism: Mechanism) -> None:
    """Raises FormatError for a chain of bodies that is too long, as MJCF nests the elements of bodies."""
    depths = {"world": 0}
    for body in mechanism.bodies:
        depth = depths[body.name] = depths[body.parent] + max(1, len(body.joints))
        if depth > LONGEST_CHAIN:
            raise FormatError(
                f"MJCF nests a body in its parent, and body {body.name!r} is at the end of a chain of "
                f"{depth} bodies; the limit is {LONGEST_CHAIN}: write it by zw.write_urdf or to_json"
            )


def _root(out: MjcfOutput, original: Mechanism) -> XmlElement:
    """The element <mujoco>."""
    name = out.mechanism.name
    if not is_xml_text(name):
        out.notes.unsupported("the name of the mechanism", "XML cannot contain a character of it",
                              f"it is {as_xml_text(name)!r}")  # fmt: skip
    # elements that refer to sites and geoms come first, as they may add some
    add_fluid_geoms(out)
    sections = {
        "contact": contact_nodes(out, original.sensors),
        "tendon": tendon_nodes(out),
        "equality": equality_nodes(out),
        "actuator": actuator_nodes(out),
        "keyframe": keyframe_nodes(out, original.inputs),
    }
    sensors = sensor_nodes(out, original.sensors)
    out.cameras = camera_nodes(out, original.cameras)
    world, option = world_node(out), option_node(out)
    sections["sensor"] = check_shapes(out, sensors, world)
    assets = asset_node(out)
    root = XmlElement("mujoco", {"model": as_xml_text(name)})
    root.add(
        "compiler",
        angle="radian",
        inertiafromgeom="false",
        meshdir=out.meshes.folder.name if assets.children else None,
    )
    if any(isinstance(f, Actuator) and f.pid is not None for f in out.mechanism.forces):
        root.children.append(XmlElement("extension", {}, [XmlElement("plugin", {"plugin": PLUGIN})]))
    root.children += [option, *([assets] if assets.children else []), world]
    root.children += [XmlElement(section, {}, nodes) for section, nodes in sections.items() if nodes]
    return root
