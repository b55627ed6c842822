"""Sensors and cameras of an MJCF file."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

from zwang.io.meshes.mesh_export import contact_hull
from zwang.io.mjcf.inexact_in_mujoco import WORLD_TORQUE, is_torque_of_world
from zwang.io.mjcf.sensor_kinds import SENSOR_KINDS
from zwang.io.mjcf.write.mjcf_output import MjcfOutput, pose_attributes, unless
from zwang.io.xml_writer import XmlElement
from zwang.mechanism.bodies import Frame
from zwang.mechanism.geometry import Box, Capsule, Cylinder, Ellipsoid, Geometry, Mesh, Sphere
from zwang.mechanism.sensors import (
    ActuatorSensor,
    Camera,
    CameraSensor,
    ContactSensor,
    DistanceSensor,
    FrameSensor,
    GlobalSensor,
    InsideSensor,
    JointSensor,
    RangeSensor,
    Sensor,
    SiteSensor,
    SubtreeSensor,
    TendonSensor,
    TouchSensor,
    UserSensor,
)

OTHER_TAGS = {
    "JOINTACTFRC": "jointactuatorfrc", "TENDONACTFRC": "tendonactuatorfrc", "GEOMDIST": "distance",
    "GEOMNORMAL": "normal", "GEOMFROMTO": "fromto",
}  # fmt: skip
"""The elements whose names are not those of their types."""
FIELDS = {"distance": "dist", "direction": "dir", "position": "pos"}
"""The names of fields of data that MJCF abbreviates."""
SINGLE = 2.0**-22  # relative error of two numbers in single precision
PARTS = {"shape": "geom", "body": "body", "subtree": "subtree"}


class _MissingPart(Exception):
    """A part to which a sensor refers, and which is not in the file."""


def sensor_nodes(out: MjcfOutput, sensors: Iterable[Sensor]) -> list[XmlElement]:
    """The elements of the section <sensor>; a sensor of a part that is not written is omitted and noted, and
    one that MuJoCo does not have as well.
    """
    found = []
    bodies = {frame.name: frame.body for frame in out.mechanism.frames}
    for sensor in sensors:
        if isinstance(sensor, SiteSensor):
            if is_torque_of_world(sensor.kind, bodies.get(sensor.frame, sensor.frame)):
                out.notes.unsupported(f"sensor {sensor.name!r}", WORLD_TORQUE)
                continue
        try:
            attributes = _ATTRIBUTES[type(sensor)](out, sensor)
        except _MissingPart as missing:
            out.notes.ignored(f"{missing} is not in the file", f"sensor {sensor.name!r}")
            continue
        _note_added_geoms(out, sensor)
        names = {kind: name for name, kind in SENSOR_KINDS[type(sensor)].items()}
        name = names[getattr(sensor, "kind", "")]
        node = XmlElement(OTHER_TAGS.get(name, name.lower()), {"name": out.name("sensor", sensor.name)})
        node.attributes |= {**attributes, "cutoff": unless(sensor.cutoff, 0)}
        found.append(node)
    return found


def _note_added_geoms(out: MjcfOutput, sensor: Sensor) -> None:
    """Note the distance of a body to which the file adds geoms that are not its shapes."""
    if isinstance(sensor, DistanceSensor):
        shapes = {body.name: body.geometry for body in out.mechanism.bodies}
        shapes["world"] = out.mechanism.geometry
        for kind, name in (sensor.a, sensor.b):
            if kind == "body" and name in out.geoms:
                out.notes.unsupported(
                    f"sensor {sensor.name!r}",
                    f"body {name!r} has further geoms, around which tendons wrap or a fluid flows",
                    "it measures the distance of these, too",
                )
            elif kind == "body" and any(map(_has_smaller_hull, shapes.get(name, ()))):
                out.notes.unsupported(
                    f"sensor {sensor.name!r}",
                    f"body {name!r} has a mesh whose hull has fewer vertices than that of its triangles",
                    "it measures the distance of the triangles, too",
                )


def _has_smaller_hull(shape: Geometry) -> bool:
    return isinstance(shape, Mesh) and contact_hull(shape) is not None


def check_shapes(out: MjcfOutput, sensors: list[XmlElement], world: XmlElement) -> list[XmlElement]:
    """The elements of sensors without those of shapes that are not in the file, which are noted."""
    names = _geom_names(world)
    found = []
    for node in sensors:
        missing = [x for k in "12" if (x := node.attributes.get(f"geom{k}")) is not None and x not in names]
        if missing:
            out.notes.ignored(
                f"shape {missing[0]!r} is not in the file", f"sensor {node.attributes['name']!r}"
            )
        else:
            found.append(node)
    return found


def _geom_names(node: XmlElement) -> set[Any]:
    """The names of all geoms of a body and its descendants."""
    own = {child.attributes.get("name") for child in node.children if child.name == "geom"}
    return own.union(*(_geom_names(child) for child in node.children if child.name == "body"))


def camera_nodes(out: MjcfOutput, cameras: Iterable[Camera]) -> dict[str, list[XmlElement]]:
    """The elements <camera> of each body."""
    found: dict[str, list[XmlElement]] = {}
    for camera in cameras:
        has_sensor = any(camera.sensor_size)
        attributes = {
            "name": out.name("camera", camera.name),
            **pose_attributes(camera.position, camera.orientation),
            "mode": unless(camera.mode, "fixed"),
            "target": None if camera.target is None else out.name("body", camera.target),
            "fovy": None if has_sensor else math.degrees(camera.fovy),
            "resolution": unless(tuple(camera.resolution), (1, 1)),
            "sensorsize": tuple(camera.sensor_size) if has_sensor else None,
            **(_focal_length(camera) if has_sensor else {}),
        }
        found.setdefault(camera.body, []).append(XmlElement("camera", attributes))
    return found


def _focal_length(camera: Camera) -> dict[str, Any]:
    """The attribute for the focal lengths: in pixels, which MJCF has as integers, or in metres, which MuJoCo
    rounds to single precision.
    """
    pairs = zip(camera.focal_length, camera.resolution, camera.sensor_size, strict=True)
    pixels = [length * count / size if size else 0.5 for length, count, size in pairs]
    whole = tuple(round(x) for x in pixels)
    if all(abs(x - n) <= SINGLE * n for x, n in zip(pixels, whole, strict=True)):
        return {"focalpixel": whole}
    return {"focal": tuple(camera.focal_length)}


def _name(out: MjcfOutput, kind: str, name: str) -> str:
    """The name of a part in the file. Raises _MissingPart."""
    if name not in out.names[kind]:
        raise _MissingPart(f"{kind} {name!r}")
    return out.name(kind, name)


def _part(out: MjcfOutput, part: tuple[str, str] | None, number: str = "") -> dict[str, Any]:
    """The attribute for a shape, a body or a subtree, such as geom1."""
    if part is None:
        return {}
    kind, name = part
    return {f"{PARTS[kind]}{number}": _name(out, "shape" if kind == "shape" else "body", name)}


def _object(out: MjcfOutput, frame: str | None, prefix: str = "obj") -> dict[str, Any]:
    """The attributes for a frame or body, such as objtype and objname."""
    if frame is None:
        return {}
    if frame in out.names["frame"]:
        return {f"{prefix}type": "site", f"{prefix}name": out.site(frame)}
    return {f"{prefix}type": "xbody", f"{prefix}name": _name(out, "body", frame)}


def _zone(out: MjcfOutput, frame: str, zone: Geometry) -> str:
    """The name of the site at a frame that has the shape of the zone."""
    match zone:
        case Capsule() | Cylinder():
            size: tuple[Any, ...] = (zone.radius, zone.length / 2)
        case Box():
            size = (zone.x / 2, zone.y / 2, zone.z / 2)
        case Ellipsoid():
            size = (zone.x, zone.y, zone.z)
        case _:
            assert isinstance(zone, Sphere)
            size = (zone.radius,)
    shape = {"type": unless(type(zone).__name__.lower(), "sphere"), "size": size}
    name = out.site(frame)
    if out.site_shapes.setdefault(name, shape) == shape:
        return name
    own = {other.name: other for other in out.mechanism.frames}.get(frame) or Frame("origin", frame)
    return out.shaped_site(own, f"{frame} (zone)", shape)


def _data(names: Iterable[str]) -> str:
    return " ".join(FIELDS.get(name, name) for name in names)


def _contact(out: MjcfOutput, s: ContactSensor) -> dict[str, Any]:
    first = _part(out, s.first, "1")
    if s.frame is not None and s.zone is not None:
        first = {"site": _zone(out, s.frame, s.zone)}
    return {
        **first, **_part(out, s.second, "2"), "data": _data(s.data), "num": unless(s.count, 1),
        "reduce": unless(s.reduce, "none"),
    }  # fmt: skip


_ATTRIBUTES: dict[type[Sensor], Callable[[MjcfOutput, Any], dict[str, Any]]] = {
    SiteSensor: lambda out, s: {"site": out.site(s.frame)},
    JointSensor: lambda out, s: {"joint": _name(out, "joint", s.joint)},
    TendonSensor: lambda out, s: {"tendon": _name(out, "tendon", s.tendon)},
    ActuatorSensor: lambda out, s: {"actuator": _name(out, "actuator", s.actuator)},
    FrameSensor: lambda out, s: _object(out, s.frame) | _object(out, s.relative_to, "ref"),
    SubtreeSensor: lambda out, s: {"body": _name(out, "body", s.body)},
    DistanceSensor: lambda out, s: _part(out, s.a, "1") | _part(out, s.b, "2"),
    TouchSensor: lambda out, s: {"site": _zone(out, s.frame, s.zone)},
    InsideSensor: lambda out, s: {"site": _zone(out, s.zone_frame, s.zone), **_object(out, s.frame)},
    RangeSensor: lambda out, s: {
        "site": out.site(s.frame),
        "data": None if s.data == ("distance",) else _data(s.data),
    },
    CameraSensor: lambda out, s: {
        "site": out.site(s.frame),
        "camera": _name(out, "camera", s.camera),
    },
    ContactSensor: _contact,
    GlobalSensor: lambda out, s: {},
    UserSensor: lambda out, s: {"dim": s.size},
}
"""The attributes of the elements of each class, beside name and cutoff."""
