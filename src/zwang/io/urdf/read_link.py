"""A URDF link's parts: its inertia, its shapes and their colours."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from zwang.algebra import inertia as inertias
from zwang.errors import DescriptionError, LoadError, PlausibilityWarning
from zwang.io.findings import Findings
from zwang.io.meshes.mesh_files import FLAT, AssetRoots, MissingAsset, format_of, read_mesh, thickness
from zwang.io.xml import Element
from zwang.mechanism.geometry import Box, Capsule, Cylinder, Geometry, Mesh, Sphere, Surface
from zwang.mechanism.numbers import IDENTITY, Matrix3, Vector3

QUARTER = math.pi / 2
ANGLE_TOLERANCE = 1e-12  # rad
TOUCHED = Surface(contype=0, conaffinity=1)
"""A URDF says nothing of contact, and its shapes overlap at the joints: they touch what is added, and not each other."""
LARGEST_SIZE = 1e100  # m, of a mesh: beyond, its products are no numbers
MOST_TURN = 6.5  # rad; more is no orientation that anybody writes

Color = tuple[float, float, float, float]


def exact(x: Any) -> Any:
    """-1, 0 and 1 as integers, which are exact structure; other numbers unchanged."""
    return int(x) if x in (-1, 0, 1) else x


def sine_and_cosine(angle: float) -> tuple[Any, Any]:
    """Exact at multiples of a quarter turn (to 1e-12 rad), so that zeros stay zeros."""
    turns = round(angle / QUARTER)
    if abs(angle - turns * QUARTER) < ANGLE_TOLERANCE:
        return ((0, 1), (1, 0), (0, -1), (-1, 0))[turns % 4]
    return math.sin(angle), math.cos(angle)


def rotation_of(rpy: Sequence[float]) -> Matrix3:
    """R = Rz(yaw) Ry(pitch) Rx(roll)."""
    (sr, cr), (sp, cp), (sy, cy) = (sine_and_cosine(angle) for angle in rpy)
    rows = (
        (cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr),
        (sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr),
        (-sp, cp * sr, cp * cr),
    )
    return tuple(tuple(exact(x) for x in row) for row in rows)  # type: ignore[return-value]


def check_angles(robot: Element, findings: Findings) -> None:
    """Warn of angles that are degrees."""
    for element in robot.walk():
        if element.name != "origin" or "rpy" not in element.attributes:
            continue
        largest = max(abs(angle) for angle in element.numbers("rpy", 3))
        if largest > MOST_TURN:
            message = (
                f"rpy of {element.title} has an angle of {largest:g} rad; are these degrees? URDF has radians"
            )
            findings.warn(element, message, "read", PlausibilityWarning)


def pose_of(element: Element) -> tuple[Vector3, Matrix3]:
    """Position [m] and rotation that the element's <origin> gives; without one, none."""
    origin = element.one("origin")
    if origin is None:
        return (0, 0, 0), IDENTITY
    position = origin.numbers("xyz", 3, (0, 0, 0))
    return position, rotation_of(origin.numbers("rpy", 3, (0, 0, 0)))  # type: ignore[return-value]


# ---------------------------------------------------------------------------------------------- inertia


def inertia_of(link: Element, findings: Findings, moves: bool) -> dict[str, Any]:
    """Mass [kg], centre of mass [m] and inertia about it [kg m^2], in the link's axes, as `Body` names them.

    moves: a link on a joint of its own, for which a point mass is remarkable.
    """
    inertial = link.one("inertial")
    if inertial is None:
        return {}
    position, R = pose_of(inertial)
    mass = _mass(inertial, findings)
    moments = _moments(inertial, mass, findings, moves)
    if R != IDENTITY:
        turned = np.array(R, object) @ np.array(moments, object) @ np.array(R, object).T
        moments = tuple(tuple(exact(turned[min(i, j), max(i, j)]) for j in range(3)) for i in range(3))
    impossible = bool(inertia_fault(mass, moments, ""))
    return {"mass": mass, "com": position, "inertia": moments, "unchecked_inertia": impossible}


def inertia_fault(mass: float, inertia: Any, where: str) -> str:
    """Why no body can have this inertia; empty if one can."""
    try:
        inertias.check_inertia(mass, inertia, where)
    except DescriptionError as error:
        return str(error)
    return ""


def _mass(inertial: Element, findings: Findings) -> float:
    element = inertial.one("mass")
    if element is None:
        findings.repair(inertial, f"{inertial.title} has no <mass>", "mass 0 is taken")
        return 0
    mass = element.number("value")
    if mass < 0:
        findings.repair(
            element, f"mass of {inertial.owner} is {mass} kg; it must not be negative", "mass 0 is taken"
        )
        return 0
    return mass


def _moments(inertial: Element, mass: float, findings: Findings, moves: bool) -> Matrix3:
    element = inertial.one("inertia")
    if element is None:
        if mass > 0:
            findings.warn(
                inertial, f"{inertial.title} has no <inertia>; its inertia is taken as zero", "repaired"
            )
        return ((0, 0, 0), (0, 0, 0), (0, 0, 0))
    xx, yy, zz = (element.number(name) for name in ("ixx", "iyy", "izz"))
    xy, xz, yz = (element.number(name, 0) for name in ("ixy", "ixz", "iyz"))
    moments = inertias.inertia_matrix((xx, yy, zz, xy, xz, yz), element.owner)
    if moves and mass > 0 and not any((xx, yy, zz, xy, xz, yz)):
        findings.warn(
            element, f"inertia of {element.owner} is zero although its mass is {mass} kg: a point mass"
        )
    return moments


def nearest_inertia(inertia: Matrix3) -> Matrix3:
    """The inertia nearest to the given one (in the sum of squares) that a body can have; its axes stay."""
    moments, axes = np.linalg.eigh(np.array(inertia, float))
    a, b, c = moments
    for _ in range(
        50
    ):  # to and fro between the two conditions (Dykstra would be exact; this ends within both)
        a, b, c = max(a, 0.0), max(b, 0.0), max(c, 0.0)
        excess = max(0.0, c - a - b) / 3
        if excess == 0:
            break
        a, b, c = a + excess, b + excess, c - excess
    repaired = axes @ np.diag([a, b, c]) @ axes.T
    return tuple(tuple(float(repaired[min(i, j), max(i, j)]) for j in range(3)) for i in range(3))  # type: ignore


# ---------------------------------------------------------------------------------------------- shapes


class ShapeReader:
    """Reads <visual> and <collision> elements; knows the model's materials, folders and the shapes' names so far."""

    def __init__(self, robot: Element, roots: AssetRoots, findings: Findings):
        self.roots, self.findings = roots, findings
        self.names: set[str] = set()
        self.meshes: dict[str, Any] = {}
        self.colors: dict[str, Color | None] = {}
        for element in robot.walk():
            if (
                element.name == "material"
                and "name" in element.attributes
                and element.one("color") is not None
            ):
                self.colors.setdefault(element.attributes["name"], self._rgba(element))

    def shapes_of(self, link: Element) -> tuple[Geometry, ...]:
        """All shapes of a link: collisions, then visuals (which touch nothing)."""
        elements = [*link.all("collision"), *link.all("visual")]
        found = [self._shape(element) for element in elements]
        return tuple(shape for shape in found if shape is not None)

    def _shape(self, element: Element) -> Geometry | None:
        geometry = element.one("geometry")
        if geometry is None or not geometry.children:
            raise (geometry or element).error(
                f"{element.title} has no geometry; give a box, cylinder, sphere or mesh"
            )
        form = geometry.children[0]
        if form.name not in _FORMS:
            known = ", ".join(_FORMS)
            fault = f"unknown geometry <{form.name}> of {element.title}; known are {known}"
            self.findings.repair(form, fault, "the shape is left out")
            return None
        position, orientation = pose_of(element)
        settings = {
            "name": self._name(element),
            "position": position,
            "orientation": orientation,
            "color": self._color(element),
            "visual_only": element.name == "visual",
            "surface": TOUCHED,
        }
        try:
            return _FORMS[form.name](self, form, settings)
        except DescriptionError as error:
            self.findings.repair(form, f"{error} (geometry of {element.owner})", "the shape is left out")
            return None

    def _name(self, element: Element) -> str:
        """The element's name, made unique by the link's."""
        name = element.attributes.get("name", "").strip()
        if not name:
            return ""
        unique, count = name, 1
        while unique in self.names:
            count += 1
            unique = f"{name} {count}"
        self.names.add(unique)
        return unique

    def _color(self, element: Element) -> Color | None:
        material = element.one("material")
        if material is None:
            return None
        if material.one("color") is not None:
            return self._rgba(material)
        return self.colors.get(material.attributes.get("name", ""))

    def _rgba(self, material: Element) -> Color | None:
        color = material.one("color")
        if color is None or "rgba" not in color.attributes:
            return None
        values = color.numbers("rgba", 4)
        if not all(0 <= x <= 1 for x in values):
            self.findings.warn(color, f"rgba of {color.title} is {values}; its parts are cut to 0 ... 1")
        return tuple(float(min(max(x, 0), 1)) for x in values)  # type: ignore[return-value]

    def box(self, form: Element, settings: dict[str, Any]) -> Geometry:
        x, y, z = form.numbers("size", 3)
        return Box(x=x, y=y, z=z, **settings)

    def cylinder(self, form: Element, settings: dict[str, Any]) -> Geometry:
        return Cylinder(radius=form.number("radius"), length=form.number("length"), **settings)

    def capsule(self, form: Element, settings: dict[str, Any]) -> Geometry:
        return Capsule(radius=form.number("radius"), length=form.number("length"), **settings)

    def sphere(self, form: Element, settings: dict[str, Any]) -> Geometry:
        return Sphere(radius=form.number("radius"), **settings)

    def mesh(self, form: Element, settings: dict[str, Any]) -> Geometry:
        scale: Any = form.numbers("scale", 3, (1.0, 1.0, 1.0))
        if not all(scale):
            raise form.error(f"scale of {form.title} is {scale}; no part may be zero")
        name = form.attributes.get("filename")
        if name is None or not name.strip():
            raise form.error(f"the file name (attribute 'filename') of {form.title} is empty")
        vertices: Any
        vertices, faces = self._triangles(form, name, settings["visual_only"])
        if len(vertices):
            with np.errstate(over="ignore"):
                vertices = np.asarray(vertices) * np.array(scale, float)
            if not np.abs(vertices).max() <= LARGEST_SIZE:
                raise form.error(
                    f"scale of {form.title} is {scale}: the mesh is larger than {LARGEST_SIZE:g} m"
                )
            faces = faces[:, ::-1] if np.prod(np.sign(scale)) < 0 else faces
            self._check_volume(form, name, vertices)
        return Mesh(vertices=vertices, faces=faces, file=name, scale=scale, **settings)

    def _triangles(self, form: Element, name: str, visual_only: bool) -> tuple[Any, Any]:
        """The mesh's numbers; none if its file is missing, with a warning where it is only seen, else as a repair."""
        if name not in self.meshes:
            where = f"{form.location}: {form.title}"
            try:
                format_of(name, where)
                self.meshes[name] = read_mesh(self.roots.find(name, where), where)
            except MissingAsset as error:
                fault = str(error).removeprefix(f"{form.location}: ")
                if visual_only:
                    self.findings.warn(
                        form, f"{fault}; it is only visual: nothing is shown for it", "unsupported"
                    )
                    return (), ()
                self.findings.repair(form, f"{fault}; it is a collision shape", "nothing touches it")
                return (), ()
            except LoadError as error:
                self.findings.repair(form, str(error).removeprefix(f"{form.location}: "), "the mesh is left out")
                self.meshes[name] = ((), ())
        return self.meshes[name]

    def _check_volume(self, form: Element, name: str, vertices: np.ndarray) -> None:
        if thickness(vertices) < FLAT:
            self.findings.warn(
                form, f"the mesh {name!r} of {form.owner} is flat (degenerate): it has no volume"
            )


_FORMS: dict[str, Any] = {
    "box": ShapeReader.box,
    "cylinder": ShapeReader.cylinder,
    "capsule": ShapeReader.capsule,
    "sphere": ShapeReader.sphere,
    "mesh": ShapeReader.mesh,
}
