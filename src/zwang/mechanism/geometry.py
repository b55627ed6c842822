"""Shapes on bodies, for contact, visualisation and mass properties."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from zwang.algebra import inertia as inertias
from zwang.errors import DescriptionError
from zwang.mechanism.numbers import (
    IDENTITY,
    LARGEST_INTEGER,
    FrozenArray,
    Matrix3,
    Number,
    Numbers,
    Vector3,
    boolean,
    bounded,
    checked_solref,
    integer,
    number,
    orientation_of,
    vector,
)
from zwang.mechanism.type_validation import validated
from zwang.scalar import are_constant, is_zero, real_array

PI = np.pi


@validated
@dataclass(frozen=True)
class Surface:
    """The contact attributes of a shape, with the names and defaults of MuJoCo.

    friction: coefficients (sliding, torsional [m], rolling [m]); those below 1e-5 act as 1e-5, as in MuJoCo.
    condim: dimension of the contact force, 1 without friction, 3, 4 or 6.
    contype, conaffinity: bit masks. Two shapes can touch if the contype of one and the conaffinity of the
        other have a common bit.
    priority, solmix: how the attributes of two shapes are combined.
    solref, solimp: see `Softness`. Those of two shapes are mixed as they are; numbers of solimp outside their
        ranges are clamped afterwards, as in MuJoCo.
    margin, gap [m]: a contact is active, and may have a force, at a signed distance below margin. It is
        detected, and felt by adhesion, below margin + gap.
    group: group for visualisation.
    hard: contacts with this shape are hard constraints, without softness.
    restitution: coefficient of restitution (Newton), from 0 to 1, of a hard surface; of two shapes the larger
        coefficient applies.
    velocity: of the material of the surface in the shape's axes, linear [m/s] and angular [rad/s] (6,), as of
        a conveyor belt. It acts on the tangential and torsional friction of soft contacts.
    Raises DescriptionError for a velocity of a hard surface, for numbers that are not finite, for negative
    friction or solmix, for another condim, for bit masks that are not integers, and for a solref that
    `Softness` does not accept.
    Source: MuJoCo documentation, XML reference, "geom".
    """

    friction: Numbers = (1.0, 0.005, 0.0001)
    condim: int = 3
    contype: int = 1
    conaffinity: int = 1
    priority: int = 0
    solref: Numbers = (0.02, 1.0)
    solimp: Numbers = (0.9, 0.95, 0.001, 0.5, 2.0)
    solmix: Number = 1.0
    margin: Number = 0.0
    gap: Number = 0.0
    group: int = 0
    hard: bool = False
    restitution: Number = 0
    velocity: Numbers = (0, 0, 0, 0, 0, 0)

    def __post_init__(self):
        put = object.__setattr__
        put(self, "velocity", vector(self.velocity, 6, "velocity of a surface"))
        put(self, "condim", checked_condim(self.condim, "condim"))
        put(self, "friction", checked_friction(self.friction, 3, "friction of a surface"))
        for name in ("contype", "conaffinity", "priority", "group"):
            put(self, name, integer(getattr(self, name), f"{name} of a surface"))
        put(self, "solref", checked_solref(self.solref, "solref of a surface"))
        put(self, "solimp", vector(self.solimp, 5, "solimp of a surface"))
        put(self, "solmix", bounded(self.solmix, "solmix of a surface", least=0))
        for name in ("margin", "gap"):
            put(self, name, number(getattr(self, name), f"{name} of a surface"))
        put(self, "hard", boolean(self.hard, "hard of a surface"))
        if self.hard and self.is_moving:
            raise DescriptionError("a hard surface has a velocity, which only soft surfaces may have")
        e = number(self.restitution, "restitution of a surface")
        put(self, "restitution", e)
        if are_constant(e) and not 0 <= e <= 1:
            raise DescriptionError(f"restitution is {e!r}; it must be from 0 to 1")
        if not self.hard and not (are_constant(e) and e == 0):
            raise DescriptionError(
                f"restitution is {e!r} for a surface that is not hard: give hard=True, or model the rebound "
                "of a soft "
                "surface by a low damping, solref=(-stiffness, -damping)"
            )

    @property
    def is_moving(self) -> bool:
        """Whether the surface has a velocity of its own."""
        return not all(is_zero(x) for x in self.velocity)


def checked_condim(value: Any, where: str) -> int:
    """`value` as the dimension of a contact. Raises DescriptionError unless it is 1, 3, 4 or 6."""
    if value not in (1, 3, 4, 6):
        raise DescriptionError(f"{where} is {value!r}; it must be 1, 3, 4 or 6")
    return integer(value, where)


def checked_friction(values: Any, length: int, where: str) -> tuple[Number, ...]:
    """`values` as `length` friction coefficients. Raises DescriptionError for a negative coefficient."""
    return tuple(bounded(x, f"an element of {where}", least=0) for x in vector(values, length, where))


@dataclass(frozen=True, kw_only=True)
class Geometry:
    """The base class of all shapes.

    position [m], orientation: pose of the shape frame in the body frame. color: red, green, blue and opacity,
    from 0 to 1. visual_only: the shape has no mass and no contacts.
    """

    name: str = ""
    position: Vector3 = (0, 0, 0)
    orientation: Matrix3 = IDENTITY
    color: tuple[float, float, float, float] | None = None
    surface: Surface = Surface()
    visual_only: bool = False

    def __post_init__(self):
        where = f"{type(self).__name__.lower()} {self.name!r}"
        object.__setattr__(self, "position", vector(self.position, 3, f"position of {where}"))
        object.__setattr__(self, "orientation", orientation_of(self.orientation, f"orientation of {where}"))
        object.__setattr__(self, "visual_only", boolean(self.visual_only, f"visual_only of {where}"))
        if self.color is not None:
            color = vector(self.color, 4, f"color (red, green, blue, opacity) of {where}")
            object.__setattr__(self, "color", color)
        if not isinstance(self.surface, Surface):
            raise DescriptionError(f"surface of {where} is {self.surface!r}; give a zw.Surface")
        for size in self.sizes:
            value = number(getattr(self, size), f"{size} of {where}")
            object.__setattr__(self, size, value)
            if are_constant(value) and value <= 0:
                raise DescriptionError(f"{size} of {where} is {value}; it must be positive")

    sizes: ClassVar[tuple[str, ...]] = ()

    @property
    def solid(self) -> bool:
        """Whether the shape has a volume, and so contributes to the mass of its body."""
        return bool(self.sizes) and not self.visual_only

    def unit_properties(self) -> tuple[Number, np.ndarray, np.ndarray]:
        """Volume [m^3], centroid [m], and inertia about it for unit density [m^5], in the shape frame."""
        raise DescriptionError(f"a {type(self).__name__.lower()} has no volume")

    def mass_properties(self, density: Number) -> tuple[Number, np.ndarray, np.ndarray]:
        """Mass [kg], centre of mass [m] and inertia about it [kg m^2] in the body frame; density [kg/m^3]."""
        volume, centroid, inertia = self.unit_properties()
        R = np.array(self.orientation)
        return density * volume, np.array(self.position) + R @ centroid, density * (R @ inertia @ R.T)


@validated
@dataclass(frozen=True)
class Sphere(Geometry):
    """A sphere of the given radius [m]."""

    radius: Number
    sizes: ClassVar[tuple[str, ...]] = ("radius",)

    def unit_properties(self):
        volume = 4 * PI / 3 * self.radius**3
        return volume, np.zeros(3, int), volume * self.radius**2 * 2 / 5 * np.eye(3, dtype=int)


@validated
@dataclass(frozen=True)
class Capsule(Geometry):
    """A capsule along z; `length` [m] is the length of its cylindrical part."""

    radius: Number
    length: Number
    sizes: ClassVar[tuple[str, ...]] = ("radius", "length")

    def unit_properties(self):
        r, l = self.radius, self.length
        tube, ends = PI * r**2 * l, 4 * PI / 3 * r**3
        across = tube * (r**2 / 4 + l**2 / 12) + ends * (2 * r**2 / 5 + l**2 / 4 + 3 * l * r / 8)
        along = tube * r**2 / 2 + ends * 2 * r**2 / 5
        return tube + ends, np.zeros(3, int), _diagonal(across, across, along)


@validated
@dataclass(frozen=True)
class Cylinder(Geometry):
    """A cylinder along z; radius and length [m]."""

    radius: Number
    length: Number
    sizes: ClassVar[tuple[str, ...]] = ("radius", "length")

    def unit_properties(self):
        r, l = self.radius, self.length
        volume = PI * r**2 * l
        across = volume * (r**2 / 4 + l**2 / 12)
        return volume, np.zeros(3, int), _diagonal(across, across, volume * r**2 / 2)


@validated
@dataclass(frozen=True)
class Box(Geometry):
    """A box with the edge lengths x, y, z [m]."""

    x: Number
    y: Number
    z: Number
    sizes: ClassVar[tuple[str, ...]] = ("x", "y", "z")

    def unit_properties(self):
        volume = self.x * self.y * self.z
        xx, yy, zz = (volume * size**2 / 12 for size in (self.x, self.y, self.z))
        return volume, np.zeros(3, int), _diagonal(yy + zz, zz + xx, xx + yy)


@validated
@dataclass(frozen=True)
class Ellipsoid(Geometry):
    """An ellipsoid with semi-axes x, y, z [m]."""

    x: Number
    y: Number
    z: Number
    sizes: ClassVar[tuple[str, ...]] = ("x", "y", "z")

    def unit_properties(self):
        volume = 4 * PI / 3 * self.x * self.y * self.z
        xx, yy, zz = (volume * size**2 / 5 for size in (self.x, self.y, self.z))
        return volume, np.zeros(3, int), _diagonal(yy + zz, zz + xx, xx + yy)


@validated
@dataclass(frozen=True)
class Plane(Geometry):
    """A half-space, bounded by the plane z = 0 of the shape frame; its outward normal is the z axis.

    extent: half lengths along x and y [m], outside which the rays of range sensors pass; 0 where it is
    unlimited. Contacts are not limited by it.
    """

    extent: tuple[Number, ...] = (0, 0)

    def __post_init__(self):
        super().__post_init__()
        ends = vector(self.extent, 2, f"extent of plane {self.name!r}")
        where = f"extent of plane {self.name!r}"
        object.__setattr__(self, "extent", tuple(bounded(x, where, least=0) for x in ends))


HULL_TOLERANCE = 0.01
"""The largest distance of a vertex in front of a face, or of a corner from its face, relative to the size of
the hull: faces may consist of triangles that are nearly coplanar.
"""


@validated
@dataclass(frozen=True)
class MeshHull:
    """The convex hull of a mesh: its vertices (n,), as indices of the mesh's vertices, and its faces.

    The vertices are stored in increasing order.
    normals (m, 3): the outward unit normal of each face. counts (m,): the number of its corners. corners
    (k,): indices of the mesh's vertices, face after face, counterclockwise as seen from outside. A face may
    consist of several triangles that are nearly coplanar. Raises DescriptionError for numbers that contradict
    each other.
    """

    vertices: FrozenArray | tuple[int, ...]
    normals: FrozenArray | tuple[tuple[float, float, float], ...]
    counts: FrozenArray | tuple[int, ...]
    corners: FrozenArray | tuple[int, ...]

    def __post_init__(self):
        for name in ("vertices", "counts", "corners"):
            numbers = _frozen_indices(getattr(self, name), f"{name} of a mesh's hull")
            object.__setattr__(self, name, numbers)
        object.__setattr__(self, "vertices", FrozenArray(np.unique(np.asarray(self.vertices)), 0, int))
        object.__setattr__(self, "normals", _frozen_rows(self.normals, float, "normals of a mesh's hull"))
        counts, corners = np.asarray(self.counts), np.asarray(self.corners)
        if len(self.vertices) < 4 or len(counts) < 4:
            raise DescriptionError("a mesh's hull must have at least four vertices and four faces")
        if len(counts) != len(self.normals) or counts.sum() != len(corners) or (counts < 3).any():
            raise DescriptionError(
                "the faces of a mesh's hull need a normal and at least three corners each, and counts that "
                f"add up to the number of corners, {len(corners)}"
            )
        if abs(np.linalg.norm(np.asarray(self.normals), axis=-1) - 1).max(initial=0.0) > 1e-6:
            raise DescriptionError("the normals of a mesh's hull must have unit length")
        of_faces = np.stack([np.repeat(np.arange(len(counts)), counts), corners], axis=1)
        if len(np.unique(of_faces, axis=0)) != len(corners):
            raise DescriptionError("a face of a mesh's hull has the same corner twice")
        if not np.isin(corners, np.asarray(self.vertices)).all():
            raise DescriptionError("the corners of a mesh's hull must be among its vertices")


@validated
@dataclass(frozen=True)
class Mesh(Geometry):
    """A triangle mesh: vertices (n, 3) [m] and faces (m, 3), which are indices of vertices.

    Both are empty if the file was not read. file: file name as the model has it. scale: factors by which the
    coordinates in the file were multiplied. hull: the convex hull, which is the shape in contacts; None if it
    is to be computed.
    """

    vertices: FrozenArray | tuple[tuple[float, float, float], ...] = ()
    faces: FrozenArray | tuple[tuple[int, int, int], ...] = ()
    file: str = ""
    scale: tuple[float, float, float] = (1.0, 1.0, 1.0)
    hull: MeshHull | None = None

    def __post_init__(self):
        super().__post_init__()
        where = f"mesh {self.name or self.file!r}"
        vertices = _frozen_rows(self.vertices, float, f"vertices of {where}")
        faces = _frozen_rows(self.faces, int, f"faces of {where}")
        numbers = np.asarray(faces)
        if len(faces) and (numbers.min() < 0 or numbers.max() >= len(vertices)):
            raise DescriptionError(
                f"a face of {where} has a vertex index out of range; there are {len(vertices)} vertices"
            )
        if self.hull is not None:
            _check_hull(self.hull, np.asarray(vertices, float), where)
        object.__setattr__(self, "vertices", vertices)
        object.__setattr__(self, "faces", faces)
        object.__setattr__(self, "scale", vector(self.scale, 3, f"scale of {where}"))

    @property
    def solid(self) -> bool:
        return len(self.faces) > 0 and not self.visual_only

    def unit_properties(self):
        """Volume, centroid and inertia, as sums over signed tetrahedra with a common vertex at the origin.

        The mesh must be closed, with faces wound outward. Raises DescriptionError for a volume that is not
        positive.
        """
        corners = np.asarray(self.vertices)[np.asarray(self.faces)]
        volumes = np.linalg.det(corners) / 6
        volume = float(volumes.sum())
        if volume <= 0:
            raise DescriptionError(
                f"the volume of mesh {self.name or self.file!r} is {volume:.3g}; the mesh must be closed, "
                "with its faces "
                "wound outward"
            )
        sums = corners.sum(axis=1)
        centroid = volumes @ sums / (4 * volume)
        second = np.einsum("t,tia,tib->ab", volumes, corners, corners) + np.einsum(
            "t,ta,tb->ab", volumes, sums, sums
        )
        spread = second / 20 - volume * np.outer(centroid, centroid)
        return volume, centroid, np.trace(spread) * np.eye(3) - spread


@validated
@dataclass(frozen=True)
class HeightField(Geometry):
    """A surface over a grid: heights (rows, columns) [m] above the plane z = 0 of the shape frame.

    The columns are along x, from -extent[0] to extent[0], and the rows along y, from -extent[1] to extent[1]
    [m]; each cell of the grid is two triangles. base [m]: the thickness of the solid below z = 0. Contacts
    are those of the prisms under the triangles, as in MuJoCo; a height field has no mass.
    Raises DescriptionError for fewer than two rows or columns, negative heights, and an extent or a base that
    is not positive.
    """

    heights: FrozenArray | tuple[tuple[float, ...], ...] = ((0.0, 0.0), (0.0, 0.0))
    extent: tuple[float, float] = (1.0, 1.0)
    base: float = 0.1

    def __post_init__(self):
        super().__post_init__()
        where = f"height field {self.name!r}"
        heights = np.atleast_2d(real_array(np.asarray(self.heights)))
        if heights.ndim != 2 or min(heights.shape) < 2:
            raise DescriptionError(f"heights of {where} have the shape {heights.shape}; give 2 x 2 or more")
        if not (np.isfinite(heights).all() and heights.min() >= 0):
            raise DescriptionError(f"heights of {where} must be finite and not negative")
        object.__setattr__(self, "heights", FrozenArray(heights, heights.shape[1]))
        extent = vector(self.extent, 2, f"extent of {where}")
        object.__setattr__(self, "extent", tuple(bounded(x, f"extent of {where}", above=0) for x in extent))
        object.__setattr__(self, "base", bounded(self.base, f"base of {where}", above=0))

    @property
    def grid(self) -> tuple[int, int]:
        """The number of rows and of columns."""
        rows, columns = np.asarray(self.heights).shape
        return rows, columns

    @property
    def box(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """The least and the largest coordinates of the solid in the shape frame."""
        x, y = self.extent
        return (-x, -y, -self.base), (x, y, float(np.asarray(self.heights).max()))

    def surface_triangles(self) -> tuple[np.ndarray, np.ndarray]:
        """The vertices (n, 3) [m] and the faces (m, 3) of the surface, wound counterclockwise from above."""
        rows, columns = self.grid
        x, y = (np.linspace(-half, half, n) for half, n in zip(self.extent, (columns, rows), strict=True))
        across, along = np.meshgrid(x, y)
        vertices = np.stack([across, along, np.asarray(self.heights, float)], axis=-1).reshape(-1, 3)
        first = (np.arange(rows - 1)[:, None] * columns + np.arange(columns - 1)).ravel()
        one = np.stack([first, first + columns + 1, first + columns], axis=1)
        two = np.stack([first, first + 1, first + columns + 1], axis=1)
        return vertices, np.concatenate([one, two])


def wrong_faces(
    points: np.ndarray, vertices: np.ndarray, normals: np.ndarray, counts: np.ndarray, corners: np.ndarray
) -> np.ndarray:
    """For each face of a hull (m,) whether a vertex of the hull is in front of it, or a corner is not on it.

    points (n, 3): of the mesh; the others: as in `MeshHull`.
    """
    at, first = points[corners], np.cumsum([0, *counts[:-1]])
    offsets = np.einsum("ij,ij->i", normals, at[first])
    off = abs(np.einsum("ij,ij->i", np.repeat(normals, counts, axis=0), at) - np.repeat(offsets, counts))
    outside = (normals @ points[vertices].T).max(axis=1) - offsets
    allowed = HULL_TOLERANCE * np.ptp(points[vertices], axis=0).max()
    return np.maximum(np.maximum.reduceat(off, first), outside) > allowed


def _check_hull(hull: MeshHull, vertices: np.ndarray, where: str) -> None:
    """Raises DescriptionError if a hull is not that of a mesh with these vertices (n, 3)."""
    chosen = np.asarray(hull.vertices)
    if chosen.min() < 0 or chosen.max() >= len(vertices):
        raise DescriptionError(
            f"the hull of {where} has a vertex index out of range; there are {len(vertices)} vertices"
        )
    faces = (np.asarray(x) for x in (hull.normals, hull.counts, hull.corners))
    if wrong_faces(vertices, chosen, *faces).any():
        raise DescriptionError(
            f"the hull of {where} is not that of its vertices; compute it again, or leave it out"
        )


def _frozen_indices(values: Any, where: str) -> FrozenArray:
    """Integers (n,), or a column (n, 1) of them, as a frozen array (n,). Raises DescriptionError."""
    try:
        array = _rows(values, int)
    except (TypeError, ValueError, OverflowError):
        raise DescriptionError(f"{where} must be integers") from None
    if array.ndim == 2 and array.shape[1] == 1:  # as in earlier versions
        array = array[:, 0]
    if array.ndim != 1:
        raise DescriptionError(f"{where} have the shape {array.shape}; they must be a list of integers")
    return FrozenArray(array, 0, int)


def _frozen_rows(values: Any, kind: type, where: str) -> FrozenArray:
    """`values` (n, 3) as a frozen array of floats or integers. Raises DescriptionError."""
    try:
        rows = values if isinstance(values, FrozenArray) else FrozenArray(_rows(values, kind), 3, kind)
    except (TypeError, ValueError, OverflowError):
        expected = "real numbers" if kind is float else "integers"
        raise DescriptionError(f"{where} must be rows of three {expected}") from None
    if len(rows.shape) != 2 or rows.shape[1] != 3:
        raise DescriptionError(f"{where} have the shape {rows.shape}; they must be rows of three numbers")
    if not np.isfinite(np.asarray(rows)).all():
        raise DescriptionError(f"{where} must be finite")
    return rows


def _rows(values: Any, kind: type) -> np.ndarray:
    """`values` as an array of real numbers or, for kind int, integers. Raises TypeError or ValueError."""
    array = real_array(values)
    if kind is int and not ((np.abs(array) < LARGEST_INTEGER).all() and (array == np.round(array)).all()):
        raise ValueError
    return array


def _diagonal(a: Number, b: Number, c: Number) -> np.ndarray:
    return np.array([[a, 0, 0], [0, b, 0], [0, 0, c]])


def mass_properties(
    geometry: Iterable[Geometry], density: Number, where: str
) -> tuple[Number, np.ndarray, np.ndarray]:
    """Mass [kg], centre of mass [m] and inertia about it [kg m^2] of shapes of uniform density [kg/m^3].

    Where shapes overlap, both are counted.

    Raises DescriptionError if no shape has a volume, or the density is not positive.
    """
    density = number(density, f"density of {where}")
    if are_constant(density) and density <= 0:
        raise DescriptionError(f"density of {where} is {density}; it must be positive")
    solids = [shape for shape in geometry if shape.solid]
    if not solids:
        raise DescriptionError(
            f"{where} has a density but no shape with a volume; give it such a shape, or a mass"
        )
    parts = [shape.mass_properties(density) for shape in solids]
    mass: Any = sum(m for m, _, _ in parts)
    com = sum(m * c for m, c, _ in parts) / mass
    inertia: Any = sum(I + inertias.parallel_axis_term(m, c - com) for m, c, I in parts)
    return mass, com, inertia
