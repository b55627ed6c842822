"""The parts of a URDF link: its inertia, its shapes and their colours."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from zwang.algebra import inertia as inertias
from zwang.errors import DescriptionError, LoadError, PlausibilityWarning
from zwang.io.findings import Findings
from zwang.io.meshes.mesh_files import FLAT, AssetRoots, MissingAsset, format_of, read_mesh, thickness
from zwang.io.structural_numbers import matrix_of
from zwang.io.urdf.vocabulary import QUATERNION, is_without_effect
from zwang.io.xml import Element
from zwang.mechanism.geometry import Box, Capsule, Cylinder, Geometry, Mesh, Sphere, Surface
from zwang.mechanism.numbers import IDENTITY, Matrix3, Vector3

QUARTER = math.pi / 2
ANGLE_TOLERANCE = 1e-12  # rad
LINK_SURFACE = Surface(contype=0, conaffinity=1)
"""URDF has no contact attributes, and its shapes overlap at joints: they collide with added shapes alone."""
LARGEST_SIZE = 1e100  # m, of a mesh, to avoid overflow
LARGEST_ANGLE = 6.5  # rad; larger angles are probably in degrees

Color = tuple[float, float, float, float]


def structural(x: Any) -> Any:
    """-1, 0 and 1 as integers, which are structural; other numbers unchanged."""
    return int(x) if x in (-1, 0, 1) else x


def sine_and_cosine(angle: float) -> tuple[Any, Any]:
    """(sin, cos) of an angle [rad], exact at multiples of a quarter turn (within 1e-12 rad)."""
    quarters = round(angle / QUARTER)
    if abs(angle - quarters * QUARTER) < ANGLE_TOLERANCE:
        return ((0, 1), (1, 0), (0, -1), (-1, 0))[quarters % 4]
    return math.sin(angle), math.cos(angle)


def rotation_of(rpy: Sequence[float]) -> Matrix3:
    """The rotation matrix R = Rz(yaw) Ry(pitch) Rx(roll), with rpy = (roll, pitch, yaw) [rad]."""
    (sr, cr), (sp, cp), (sy, cy) = (sine_and_cosine(angle) for angle in rpy)
    rows = (
        (cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr),
        (sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr),
        (-sp, cp * sr, cp * cr),
    )
    return tuple(tuple(structural(x) for x in row) for row in rows)  # type: ignore[return-value]


def check_angles(robot: Element, findings: Findings) -> None:
    """Warn of angles that are probably in degrees."""
    for element in robot.walk():
        if element.name != "origin" or "rpy" not in element.attributes:
            continue
        largest = max(abs(angle) for angle in element.numbers("rpy", 3))
        if largest > LARGEST_ANGLE:
            message = (
                f"rpy of {element.title} has an angle of {largest:g} rad; is it in degrees? The unit of "
                "URDF is rad"
            )
            findings.warn(element, message, "read", PlausibilityWarning)


def pose_of(element: Element) -> tuple[Vector3, Matrix3]:
    """Position [m] and rotation matrix of the <origin> of an element; the identity if it has none.

    Raises LoadError for an origin with rpy and a quaternion, or with a quaternion of length zero.
    """
    origin = element.one("origin")
    if origin is None:
        return (0, 0, 0), IDENTITY
    position: Any = origin.numbers("xyz", 3, (0, 0, 0))
    if QUATERNION not in origin.attributes:
        return position, rotation_of(origin.numbers("rpy", 3, (0, 0, 0)))
    if "rpy" in origin.attributes:
        raise origin.error(f"{origin.title} has both rpy and {QUATERNION}; give one of them")
    x, y, z, w = origin.numbers(QUATERNION, 4)
    if not any((x, y, z, w)):
        raise origin.error(f"{QUATERNION} of {origin.title} is zero; the identity is '0 0 0 1'")
    return position, matrix_of((w, x, y, z))


# ---------------------------------------------------------------------------------------------- inertia


def inertia_of(link: Element, findings: Findings, moves: bool) -> dict[str, Any]:
    """The arguments mass [kg], com [m], inertia [kg m^2] and unchecked_inertia of `Body`, in link axes.

    moves: whether the joint of the link is not fixed; a warning is then issued for a point mass.
    """
    inertial = link.one("inertial")
    if inertial is None:
        return {}
    position, R = pose_of(inertial)
    mass = _mass(inertial, findings)
    moments = _moments(inertial, mass, findings, moves)
    if R != IDENTITY:
        rotated = np.array(R, object) @ np.array(moments, object) @ np.array(R, object).T
        moments = tuple(tuple(structural(rotated[min(i, j), max(i, j)]) for j in range(3)) for i in range(3))
    impossible = bool(inertia_problem(mass, moments, ""))
    return {"mass": mass, "com": position, "inertia": moments, "unchecked_inertia": impossible}


def inertia_problem(mass: float, inertia: Any, where: str) -> str:
    """Why the inertia is not physically consistent; empty if it is."""
    try:
        inertias.check_inertia(mass, inertia, where)
    except DescriptionError as error:
        return str(error)
    return ""


def _mass(inertial: Element, findings: Findings) -> float:
    element = inertial.one("mass")
    if element is None:
        findings.repair(inertial, f"{inertial.title} has no <mass>", "mass 0 is used")
        return 0
    mass = element.number("value")
    if mass < 0:
        findings.repair(
            element, f"mass of {inertial.owner} is {mass} kg; it must not be negative", "mass 0 is used"
        )
        return 0
    return mass


def _moments(inertial: Element, mass: float, findings: Findings, moves: bool) -> Matrix3:
    element = inertial.one("inertia")
    if element is None:
        if mass > 0:
            findings.warn(inertial, f"{inertial.title} has no <inertia>; zero inertia is used", "repaired")
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
    """A physically consistent inertia near the given one, with the same principal axes."""
    moments, axes = np.linalg.eigh(np.array(inertia, float))
    a, b, c = moments
    # alternating projections onto non-negative moments and onto the triangle inequality
    for _ in range(50):
        a, b, c = max(a, 0.0), max(b, 0.0), max(c, 0.0)
        excess = max(0.0, c - a - b) / 3
        if excess == 0:
            break
        a, b, c = a + excess, b + excess, c - excess
    repaired = axes @ np.diag([a, b, c]) @ axes.T
    rows = [[float(repaired[min(i, j), max(i, j)]) for j in range(3)] for i in range(3)]
    return tuple(tuple(row) for row in rows)  # type: ignore[return-value]


# ---------------------------------------------------------------------------------------------- shapes


class ShapeReader:
    """The reader of <visual> and <collision> elements, with the materials and shape names of the model."""

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
        """All shapes of a link: those of collisions, then visuals, which have no contacts."""
        elements = [*link.all("collision"), *link.all("visual")]
        found = [self._shape(element) for element in elements]
        return tuple(shape for shape in found if shape is not None)

    def _shape(self, element: Element) -> Geometry | None:
        geometry = element.one("geometry")
        if geometry is None or not geometry.children:
            raise (geometry or element).error(
                f"{element.title} has no geometry; give a box, cylinder, sphere or mesh"
            )
        forms = [form for form in geometry.children if not is_without_effect(form)] or geometry.children[:1]
        if len(forms) > 1:
            given = ", ".join(f"<{form.name}>" for form in forms)
            raise forms[1].error(
                f"{geometry.title} has {len(forms)} shapes ({given}); it must have one: give each a "
                f"<{element.name}> of its own"
            )
        form = forms[0]
        if form.name not in _GEOMETRIES:
            known = ", ".join(_GEOMETRIES)
            problem = f"unknown geometry <{form.name}> of {element.title}; the geometries are {known}"
            self.findings.repair(form, problem, "the shape is omitted")
            return None
        position, orientation = pose_of(element)
        settings = {
            "name": self._name(element),
            "position": position,
            "orientation": orientation,
            "color": self._color(element),
            "visual_only": element.name == "visual",
            "surface": LINK_SURFACE,
        }
        try:
            return _GEOMETRIES[form.name](self, form, settings)
        except DescriptionError as error:
            self.findings.repair(form, f"{error} (geometry of {element.owner})", "the shape is omitted")
            return None

    def _name(self, element: Element) -> str:
        """The name of the element, made unique by a number."""
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
            self.findings.warn(
                color, f"rgba of {color.title} is {values}; its components are clipped to the range 0 to 1"
            )
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
            raise form.error(f"scale of {form.title} is {scale}; no component may be zero")
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
        """Vertices and faces of a mesh; empty if its file is missing, which is a warning or a repair."""
        if name not in self.meshes:
            where = f"{form.location}: {form.title}"
            try:
                format_of(name, where)
                self.meshes[name] = read_mesh(self.roots.find(name, where), where)
            except MissingAsset as error:
                problem = str(error).removeprefix(f"{form.location}: ")
                if visual_only:
                    self.findings.warn(
                        form, f"{problem}; the shape is only visual and is not displayed", "unsupported"
                    )
                    return (), ()
                self.findings.repair(form, f"{problem}; it is a collision shape", "the shape has no contacts")
                return (), ()
            except LoadError as error:
                self.findings.repair(
                    form, str(error).removeprefix(f"{form.location}: "), "the mesh is omitted"
                )
                self.meshes[name] = ((), ())
        return self.meshes[name]

    def _check_volume(self, form: Element, name: str, vertices: np.ndarray) -> None:
        if thickness(vertices) < FLAT:
            self.findings.warn(
                form, f"the mesh {name!r} of {form.owner} is flat (degenerate) and has no volume"
            )


_GEOMETRIES: dict[str, Any] = {
    "box": ShapeReader.box,
    "cylinder": ShapeReader.cylinder,
    "capsule": ShapeReader.capsule,
    "sphere": ShapeReader.sphere,
    "mesh": ShapeReader.mesh,
}
