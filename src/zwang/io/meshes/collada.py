"""Collada files (.dae): the triangles of their scenes, read by the strict XML parser, without external files.

The unit of the file is applied, its up axis is not, as in ROS. Lines and splines have no surface and are
ignored. Source: COLLADA 1.4.1 specification (Khronos 2008), chapter 5.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from zwang.algebra.rotations import from_axis_angle
from zwang.errors import LoadError
from zwang.io.xml import Element, parse

MOST_PARTS = 20_000
MOST_NODES = 100_000  # counted once for each instance
MOST_FACES = 2_000_000
DEEPEST = 64
LARGEST_COUNT = 100_000_000  # of numbers in an array
AXES = ("X", "Y", "Z")
_PRIMITIVES = ("triangles", "tristrips", "trifans", "polylist", "polygons")
_OTHER_SURFACES = ("convex_mesh", "brep")  # in place of the <mesh> of a <geometry>


def read_collada(data: bytes, source: str) -> tuple[np.ndarray, np.ndarray]:
    """Vertices (n, 3) [m] and faces (m, 3) of all geometry in the scenes. Raises LoadError."""
    root = parse(data, source)
    if root.name != "COLLADA":
        raise root.error(f"a Collada file begins with <COLLADA>, not <{root.name}>")
    return _Scene(root).triangles()


class _Scene:
    """A Collada document with its elements by id, and the triangles found so far."""

    def __init__(self, root: Element):
        self.root = root
        self.by_id = {e.attributes["id"]: e for e in root.walk() if "id" in e.attributes}
        self.parts: list[tuple[np.ndarray, np.ndarray]] = []
        self.face_count = self.node_count = 0
        self.meshes: dict[int, list[tuple[np.ndarray, np.ndarray]]] = {}

    def triangles(self) -> tuple[np.ndarray, np.ndarray]:
        """Vertices and faces of all scenes or, without a scene, of all geometries."""
        unit = next((e for e in self.root.walk() if e.name == "unit"), None)
        metre = unit.number("meter", 1.0) if unit is not None else 1.0
        scenes = [
            e for library in self.root.all("library_visual_scenes") for e in library.all("visual_scene")
        ]
        for scene in scenes:
            for node in scene.all("node"):
                self.visit(node, np.diag([metre, metre, metre, 1.0]), 0)
        if not scenes:
            for library in self.root.all("library_geometries"):
                for geometry in library.all("geometry"):
                    self.add(geometry, np.diag([metre, metre, metre, 1.0]))
        if not self.parts:
            return np.zeros((0, 3)), np.zeros((0, 3), int)
        starts = np.cumsum([0, *(len(vertices) for vertices, _ in self.parts)])
        faces = [faces + start for (_, faces), start in zip(self.parts, starts, strict=False)]
        return np.concatenate([vertices for vertices, _ in self.parts]), np.concatenate(faces)

    def visit(self, node: Element, T: np.ndarray, depth: int) -> None:
        """Add the geometry of a node and its descendants; T is the transformation of its parent, (4, 4)."""
        self.node_count += 1
        if self.node_count > MOST_NODES:
            raise node.error(f"the Collada scene is too large: the limit is {MOST_NODES} nodes")
        if depth > DEEPEST:
            raise node.error(f"Collada nodes are nested deeper than {DEEPEST}, or form a cycle")
        for child in node.children:
            if child.name in _TRANSFORMS:
                T = T @ _TRANSFORMS[child.name](child)
        for child in node.children:
            if child.name == "node":
                self.visit(child, T, depth + 1)
            elif child.name == "instance_node":
                self.visit(self.follow(child, "url", "node"), T, depth + 1)
            elif child.name == "instance_geometry":
                self.add(self.follow(child, "url", "geometry"), T)
            elif child.name == "instance_controller":
                raise child.error(
                    "<instance_controller> deforms a mesh by a skeleton or by morphing, which is not "
                    "supported; apply the deformation to the mesh in the program that wrote the file, and "
                    "save it again"
                )

    def follow(self, element: Element, attribute: str, kind: str) -> Element:
        """The element with the id that `#id` names. Raises LoadError for references to other files."""
        name = element.required(attribute)
        target = self.by_id.get(name[1:]) if name.startswith("#") else None
        if target is None or target.name != kind:
            raise element.error(
                f"{attribute} of <{element.name}> is {name!r}: the file has no <{kind}> with this id"
            )
        return target

    def add(self, geometry: Element, T: np.ndarray) -> None:
        """Add the triangles of a geometry, transformed by T; a reflection reverses the order of corners."""
        if id(geometry) not in self.meshes:
            for other in (child for child in geometry.children if child.name in _OTHER_SURFACES):
                raise other.error(
                    f"<{other.name}> of a <geometry> is not supported; save the mesh as triangles"
                )
            mesh = geometry.one("mesh")
            blocks = [c for c in mesh.children if c.name in _PRIMITIVES] if mesh is not None else []
            self.meshes[id(geometry)] = [self.block(block) for block in blocks]
        mirrored = np.linalg.det(T[:3, :3]) < 0
        for vertices, faces in self.meshes[id(geometry)]:
            faces = faces[:, ::-1] if mirrored else faces
            self.parts.append((vertices @ T[:3, :3].T + T[:3, 3], faces))
            self.face_count += len(faces)
        if len(self.parts) > MOST_PARTS or self.face_count > MOST_FACES:
            message = (
                f"the Collada scene is too large: the limit is {MOST_PARTS} parts and {MOST_FACES} faces"
            )
            raise geometry.error(message)

    def block(self, block: Element) -> tuple[np.ndarray, np.ndarray]:
        """Vertices and faces of one of the elements `_PRIMITIVES`."""
        if holes := block.all("ph"):
            raise holes[0].error(
                "<ph>, a polygon with holes, is not supported; divide the faces into triangles in the "
                "program that wrote the file, and save it again"
            )
        inputs = block.all("input")
        stride = 1 + max((_small_integer(i, "offset") for i in inputs), default=0)
        entry = next((i for i in inputs if i.attributes.get("semantic") == "VERTEX"), None)
        if entry is None:
            raise block.error(f"<{block.name}> has no input VERTEX")
        vertices = self.positions(self.follow(entry, "source", "vertices"))
        corners = [_integers(p) for p in block.all("p")]
        if any(len(c) % stride for c in corners):
            raise block.error(
                f"the number of indices of <{block.name}> is not a multiple of its {stride} inputs"
            )
        indices = [c.reshape(-1, stride)[:, _small_integer(entry, "offset")] for c in corners]
        faces = self.faces(block, indices)
        if len(faces) and (faces.min() < 0 or faces.max() >= len(vertices)):
            raise block.error(f"<{block.name}> has a face whose vertex index is out of range")
        return vertices, faces

    def faces(self, block: Element, indices: list[np.ndarray]) -> np.ndarray:
        """The triangles (m, 3) of a block with these vertex indices."""
        if block.name in ("polygons", "trifans"):
            return _fans(indices)
        if block.name == "tristrips":
            return np.concatenate([np.zeros((0, 3), int), *map(_strip, indices)])
        flat = np.concatenate(indices) if indices else np.zeros(0, int)
        if block.name == "triangles":
            if len(flat) % 3:
                raise block.error("the number of indices of <triangles> is not a multiple of three")
            return flat.reshape(-1, 3)
        counts = block.one("vcount")
        sizes = _integers(counts) if counts is not None else np.zeros(0, int)
        if (sizes < 0).any() or sizes.sum() != len(flat):
            raise block.error("the <vcount> of <polylist> does not match the number of its indices")
        if (sizes == 3).all():
            return flat.reshape(-1, 3)
        return _fans(np.split(flat, np.cumsum(sizes)[:-1]))

    def positions(self, vertices: Element) -> np.ndarray:
        """The coordinates (n, 3) to which a <vertices> element refers."""
        entry = next((i for i in vertices.all("input") if i.attributes.get("semantic") == "POSITION"), None)
        if entry is None:
            raise vertices.error("<vertices> has no input POSITION")
        source = self.follow(entry, "source", "source")
        accessor = next((e for e in source.walk() if e.name == "accessor"), None)
        array = source.one("float_array")
        if accessor is not None and (array is None or not _is_named(array, accessor.required("source"))):
            array = self.follow(accessor, "source", "float_array")
        if array is None:
            raise source.error("<source> of positions has no <float_array>")
        values = _values(array, float)
        if accessor is None:
            if len(values) % 3:
                raise array.error(f"the {len(values)} numbers of <float_array> are not a multiple of three")
            return values.reshape(-1, 3)
        return _accessed(accessor, values)


def _is_named(element: Element, reference: str) -> bool:
    return reference == f"#{element.attributes.get('id')}"


def _accessed(accessor: Element, values: np.ndarray) -> np.ndarray:
    """The coordinates (n, 3) of an <accessor> to the numbers of an array.

    Its n groups of `stride` numbers begin at number `offset`. The numbers of a group have the names of the
    <param>s, and those without a name are skipped; a file without <param>s has x, y and z.
    """
    stride, offset = _small_integer(accessor, "stride", 3), _integer(accessor, "offset", 0)
    names = [param.attributes.get("name") for param in accessor.all("param")] or list(AXES)
    named = [k for k, name in enumerate(names) if name]
    columns = [names.index(axis) for axis in AXES] if set(AXES) <= set(names) else named[:3]
    if len(columns) < 3 or len(names) > stride:
        raise accessor.error(
            f"<accessor> of positions has stride {stride} and the <param>s {names}; it needs X, Y and Z"
        )
    count = _integer(accessor, "count", max(len(values) - offset, 0) // stride)
    if count and offset + (count - 1) * stride + max(columns) >= len(values):
        raise accessor.error(
            f"<accessor> with count {count}, stride {stride} and offset {offset} exceeds the {len(values)} "
            "numbers of its <float_array>"
        )
    return values[offset + stride * np.arange(count)[:, None] + columns]


def _strip(strip: np.ndarray) -> np.ndarray:
    """The triangles (m, 3) of a strip of vertices ABCDEF...: ABC, CBD, CDE, EDF, ...

    Those with a vertex twice, which join strips, are left out.
    """
    found = np.stack([strip[:-2], strip[1:-1], strip[2:]], axis=1)
    found[1::2, :2] = found[1::2, 1::-1]
    a, b, c = found.T
    return found[(a != b) & (b != c) & (c != a)]


def _fans(polygons: Any) -> np.ndarray:
    """The triangles of convex polygons, all with the first vertex of the polygon."""
    triangles = [(p[0], p[k], p[k + 1]) for p in polygons for k in range(1, len(p) - 1)]
    return np.array(triangles, int).reshape(-1, 3)


def _values(element: Element, kind: type) -> np.ndarray:
    try:
        return np.array(element.text.split(), dtype=kind)
    except (ValueError, OverflowError) as error:
        raise element.error(f"<{element.name}> contains text that is not a number: {error}") from None


def _integers(element: Element) -> np.ndarray:
    return _values(element, int)


def _small_integer(element: Element, attribute: str, default: int = 0) -> int:
    return _integer(element, attribute, default, 999)


def _integer(element: Element, attribute: str, default: int, largest: int = LARGEST_COUNT) -> int:
    value = element.number(attribute, default)
    if value != int(value) or not 0 <= value <= largest:
        raise element.error(
            f"{attribute} of <{element.name}> is {value}; it must be an integer from 0 to {largest}"
        )
    return int(value)


def _numbers(element: Element, count: int) -> np.ndarray:
    values = _values(element, float)
    if len(values) != count:
        raise LoadError(f"{element.location}: <{element.name}> must have {count} numbers, not {len(values)}")
    return values


def _transform(R: Any, p: Any) -> np.ndarray:
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = R, p
    return T


def _unit(element: Element, axis: np.ndarray) -> np.ndarray:
    length = float(np.linalg.norm(axis))
    if not length > 0:
        raise element.error(f"<{element.name}> has a zero axis")
    return axis / length


def _rotation(element: Element) -> np.ndarray:
    *axis, degrees = _numbers(element, 4)
    R = from_axis_angle(_unit(element, np.array(axis)), float(np.radians(degrees)))
    return _transform(R, np.zeros(3))


def _lookat(element: Element) -> np.ndarray:
    """The pose at the eye whose -z axis points at the point of interest, and whose y axis is nearest to the
    direction up.
    """
    eye, interest, up = _numbers(element, 9).reshape(3, 3)
    back = _unit(element, eye - interest)
    right = np.cross(up, back)
    if not np.linalg.norm(right) > 1e-9 * np.linalg.norm(up):
        raise element.error("<lookat> has an up direction along its line of sight, or of zero length")
    right = _unit(element, right)
    return _transform(np.stack([right, np.cross(back, right), back], axis=1), eye)


def _skew(element: Element) -> np.ndarray:
    """The shear of RenderMan's RiSkew: points along the axis a are shifted along the axis b, which is
    perpendicular to it, so that a turns by the angle towards b.

    M = 1 + tan(angle) b a^T
    """
    degrees, *axes = _numbers(element, 7)
    a, b = (_unit(element, axis) for axis in np.reshape(axes, (2, 3)))
    if abs(a @ b) > 1e-6 or abs(degrees) >= 90:
        raise element.error(
            "<skew> is supported for perpendicular axes and an angle between -90 and 90 degrees; write the "
            "transformation as a <matrix>"
        )
    return _transform(np.eye(3) + np.tan(np.radians(degrees)) * np.outer(b, a), np.zeros(3))


_TRANSFORMS: dict[str, Any] = {
    "matrix": lambda e: _numbers(e, 16).reshape(4, 4),
    "translate": lambda e: _transform(np.eye(3), _numbers(e, 3)),
    "rotate": _rotation,
    "lookat": _lookat,
    "skew": _skew,
    "scale": lambda e: _transform(np.diag(_numbers(e, 3)), np.zeros(3)),
}
