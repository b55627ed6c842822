"""Links of a URDF file: inertia and shapes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from zwang.io.export_notes import ExportNotes
from zwang.io.meshes.mesh_export import MeshExport, contact_hull
from zwang.io.principal_inertia import ROUNDING, principal_inertia
from zwang.io.unique_names import UniqueNames
from zwang.io.urdf.read_link import LINK_SURFACE
from zwang.io.xml_writer import XmlElement, as_xml_text
from zwang.mechanism.bodies import Body
from zwang.mechanism.geometry import Box, Capsule, Cylinder, Geometry, Mesh, Sphere

LEAST_MASS, LEAST_MOMENT = 2e-15, 1.2e-14  # kg, kg m^2: above what MuJoCo requires of a moving link
MARGIN = (
    1e-13  # of the largest moment: MuJoCo adds inertias of links, with rounding, before it checks the sum
)


def rpy_of(R: Any) -> tuple[float, float, float]:
    """Roll, pitch and yaw [rad] of a rotation matrix Rz(yaw) Ry(pitch) Rx(roll).

    Roll and pitch are computed in the axes after the yaw, so that the product is accurate at a pitch of a
    quarter turn, too.
    """
    R = np.array(R, float)
    yaw = math.atan2(R[1, 0], R[0, 0])
    s, c = math.sin(yaw), math.cos(yaw)
    pitch = math.atan2(-R[2, 0], c * R[0, 0] + s * R[1, 0])
    roll = math.atan2(s * R[0, 2] - c * R[1, 2], c * R[1, 1] - s * R[0, 1])
    return roll, pitch, yaw


def origin_node(position: Any, orientation: Any) -> XmlElement | None:
    """The element <origin>; None for the identity."""
    rpy = rpy_of(orientation)
    if not any(position) and not any(rpy):
        return None
    return XmlElement(
        "origin", {"xyz": tuple(position) if any(position) else None, "rpy": rpy if any(rpy) else None}
    )


class LinkWriter:
    """Writes links, with the mesh files, materials and shape names of the model."""

    def __init__(self, notes: ExportNotes, meshes: MeshExport):
        self.notes, self.meshes = notes, meshes
        self.names = UniqueNames()
        self.materials: dict[tuple[float, ...], str] = {}

    def link(self, name: str, body: Body, further: bool) -> XmlElement:
        """The element <link> of a body. further: it is a part of a chain of joints, without mass."""
        node = XmlElement("link", {"name": name})
        mass, inertia = body.mass, np.array(body.inertia, float)
        if body.joints and (not mass or not inertia.any()):
            mass, inertia = max(mass, LEAST_MASS), inertia if inertia.any() else LEAST_MOMENT * np.eye(3)
            if not further:
                self.notes.changed(
                    "other programs require mass and inertia of a moving link; "
                    f"{LEAST_MASS} kg and {LEAST_MOMENT} kg m^2 are written for zero",
                    f"body {body.name!r}",
                )
        if mass or inertia.any():
            node.children.append(_inertial(mass, body.com, inertia))
        node.children += self.shapes(body.name, body.geometry)
        return node

    def shapes(self, body: str, geometry: Any) -> list[XmlElement]:
        """The elements <collision> and <visual>.

        A shape with a colour that is not only visual gives both, as other programs draw visuals alone. So
        does a mesh whose hull lacks some of the outermost vertices: the hull collides, the mesh is drawn.
        """
        found = []
        for shape in geometry:
            parts = self._parts(body, shape)
            drawn = shape.visual_only or _never_collides(shape)
            if not parts:
                continue
            hull = contact_hull(shape) if isinstance(shape, Mesh) and not drawn else None
            if not drawn:
                self._check_surface(body, shape)
                solid = parts if hull is None else self._parts(body, hull)
                found += [self._shape("collision", shape, part) for part in solid]
            if hull is not None:
                self.notes.changed(
                    "its hull has fewer vertices than that of its triangles; the hull is written as "
                    "<collision>, and the triangles as <visual>",
                    _title(body, shape),
                )
            if drawn or hull is not None or shape.color is not None:
                found += [self._shape("visual", shape, part) for part in parts]
        return found

    def _shape(self, tag: str, shape: Geometry, part: tuple[XmlElement, Any]) -> XmlElement:
        form, position = part
        name = self.names.new(as_xml_text(shape.name)) if shape.name.strip() else None
        node = XmlElement(tag, {"name": name})
        origin = origin_node(position, shape.orientation)
        node.children = [*([origin] if origin else []), XmlElement("geometry", {}, [form])]
        if tag == "visual" and shape.color is not None:
            color = tuple(shape.color)
            material = XmlElement("material", {"name": self.materials.setdefault(color, self._material())})
            material.add("color", rgba=color)
            node.children.append(material)
        return node

    def _material(self) -> str:
        return f"color {len(self.materials) + 1}"

    def _parts(self, body: str, shape: Geometry) -> list[tuple[XmlElement, Any]]:
        """The geometry elements that make up a shape, with their positions; none if URDF has none."""
        match shape:
            case Sphere():
                return [(XmlElement("sphere", {"radius": shape.radius}), shape.position)]
            case Cylinder():
                return [(_cylinder(shape.radius, shape.length), shape.position)]
            case Box():
                return [(XmlElement("box", {"size": (shape.x, shape.y, shape.z)}), shape.position)]
            case Capsule():
                return _capsule(shape)
            case Mesh():
                file = self.meshes.add(shape)
                if file:
                    form = XmlElement("mesh", {"filename": f"{self.meshes.folder.name}/{file}.obj"})
                    return [(form, shape.position)]
                self.notes.ignored(f"its triangles were not read (file {shape.file!r})", _title(body, shape))
                return []
        why = f"URDF has no {type(shape).__name__.lower()}"
        if shape.visual_only or _never_collides(shape):
            self.notes.ignored(why, _title(body, shape))
        else:
            self.notes.unsupported(_title(body, shape), why)
        return []

    def _check_surface(self, body: str, shape: Geometry) -> None:
        if shape.surface != LINK_SURFACE:
            self.notes.unsupported(
                _title(body, shape),
                "URDF has no contact attributes",
                "it collides with added shapes alone",
            )


def _never_collides(shape: Geometry) -> bool:
    return not shape.surface.contype and not shape.surface.conaffinity


def _title(body: str, shape: Geometry) -> str:
    kind = type(shape).__name__.lower()
    return f"{kind} {shape.name!r} of body {body!r}" if shape.name else f"a {kind} of body {body!r}"


def _cylinder(radius: Any, length: Any) -> XmlElement:
    return XmlElement("cylinder", {"radius": radius, "length": length})


def _capsule(shape: Capsule) -> list[tuple[XmlElement, Any]]:
    """A cylinder and two spheres, whose union is the capsule: not every reader of URDF knows capsules."""
    at = np.array(shape.position, float)
    half = np.array(shape.orientation, float)[:, 2] * float(shape.length) / 2
    ends = (tuple((at + side * half).tolist()) for side in (-1, 1))
    return [
        (_cylinder(shape.radius, shape.length), shape.position),
        *((XmlElement("sphere", {"radius": shape.radius}), end) for end in ends),
    ]


def _inertial(mass: Any, com: Any, inertia: np.ndarray) -> XmlElement:
    """The element <inertial>. A matrix that is singular, or on the edge of the triangle inequality, is
    written in principal axes: MuJoCo computes moments from it, and refuses those that rounding makes invalid.
    """
    found = principal_inertia(mass, com, inertia)
    a, b, c = sorted(found.moments)
    axes = np.eye(3)
    if (a < LEAST_MOMENT or a + b < c * (1 + ROUNDING)) and found.violation <= ROUNDING:
        axes, inertia = found.R, np.diag(found.consistent(LEAST_MOMENT, MARGIN).moments)
    node = XmlElement("inertial")
    origin = origin_node(com, axes)
    if origin is not None:
        node.children.append(origin)
    node.add("mass", value=mass)
    entries = (("xx", 0, 0), ("yy", 1, 1), ("zz", 2, 2), ("xy", 0, 1), ("xz", 0, 2), ("yz", 1, 2))
    node.add("inertia", **{f"i{name}": float(inertia[i, j]) for name, i, j in entries})
    return node
