"""Shapes on bodies: for inertia, contact and pictures; with their volume and inertia."""

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
    Vector3,
    boolean,
    bounded,
    checked_solimp,
    checked_solref,
    integer,
    number,
    orientation_of,
    vector,
)
from zwang.mechanism.type_validation import validated
from zwang.scalar import are_constant, real_array

PI = np.pi


@validated
@dataclass(frozen=True)
class Surface:
    """How a shape touches others: MuJoCo's contact attributes, with MuJoCo's defaults.

    friction: (sliding, torsional [m], rolling [m]). contype, conaffinity: bit masks; two shapes may touch if one's
    contype meets the other's conaffinity. margin, gap [m]. solref, solimp: see `Softness`. hard: whatever touches it does so
    exactly, without softness: no penetration that lasts, no creep. restitution, of hard ones: the share of the speed of approach
    with which shapes part after an impact, from 0 to 1 (Newton); of two shapes the larger counts.
    Raises DescriptionError for numbers that are not finite, negative friction or solmix, condim other than 1, 3, 4 or 6, bit masks that are
    not whole, and what `Softness` refuses.
    """

    friction: tuple[Number, ...] = (1.0, 0.005, 0.0001)
    condim: int = 3
    contype: int = 1
    conaffinity: int = 1
    priority: int = 0
    solref: tuple[Number, ...] = (0.02, 1.0)
    solimp: tuple[Number, ...] = (0.9, 0.95, 0.001, 0.5, 2.0)
    solmix: Number = 1.0
    margin: Number = 0.0
    gap: Number = 0.0
    group: int = 0
    hard: bool = False
    restitution: Number = 0

    def __post_init__(self):
        put = object.__setattr__
        put(self, "condim", checked_condim(self.condim, "condim"))
        put(self, "friction", checked_friction(self.friction, 3, "friction of a surface"))
        for name in ("contype", "conaffinity", "priority", "group"):
            put(self, name, integer(getattr(self, name), f"{name} of a surface"))
        put(self, "solref", checked_solref(self.solref, "solref of a surface"))
        put(self, "solimp", checked_solimp(self.solimp, "solimp of a surface"))
        put(self, "solmix", bounded(self.solmix, "solmix of a surface", least=0))
        for name in ("margin", "gap"):
            put(self, name, number(getattr(self, name), f"{name} of a surface"))
        put(self, "hard", boolean(self.hard, "hard of a surface"))
        e = number(self.restitution, "restitution of a surface")
        put(self, "restitution", e)
        if are_constant(e) and not 0 <= e <= 1:
            raise DescriptionError(f"restitution is {e!r}; it must be from 0 to 1")
        if not self.hard and not (are_constant(e) and e == 0):
            raise DescriptionError(
                f"restitution is {e!r} of a surface that is not hard: give hard=True, or let a soft one bounce by little "
                "damping, as solref=(-stiffness, -damping)"
            )


def checked_condim(value: Any, where: str) -> int:
    """The dimension of a contact: 1, 3, 4 or 6. Raises DescriptionError."""
    if value not in (1, 3, 4, 6):
        raise DescriptionError(f"{where} is {value!r}; it must be 1, 3, 4 or 6")
    return integer(value, where)


def checked_friction(values: Any, length: int, where: str) -> tuple[Number, ...]:
    """Coefficients of friction, none negative. Raises DescriptionError."""
    return tuple(bounded(x, f"an element of {where}", least=0) for x in vector(values, length, where))


@dataclass(frozen=True, kw_only=True)
class Geometry:
    """A shape fixed to a body: for inertia, contact and pictures. Its frame is given in the body's frame."""

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
            raise DescriptionError(f"surface of {where} is {self.surface!r}; give zw.Surface")
        for size in self.sizes:
            value = number(getattr(self, size), f"{size} of {where}")
            object.__setattr__(self, size, value)
            if isinstance(value, (int, float)) and value <= 0:
                raise DescriptionError(f"{size} of {where} is {value}; it must be positive")

    sizes: ClassVar[tuple[str, ...]] = ()

    @property
    def solid(self) -> bool:
        """Has it a volume, and so a mass?"""
        return bool(self.sizes) and not self.visual_only

    def unit_properties(self) -> tuple[Number, np.ndarray, np.ndarray]:
        """Volume [m^3], centroid [m] and inertia about it at density 1 [m^5], in the shape's own frame."""
        raise DescriptionError(f"a {type(self).__name__.lower()} has no volume")

    def mass_properties(self, density: Number) -> tuple[Number, np.ndarray, np.ndarray]:
        """Mass [kg], centre of mass [m] and inertia about it [kg m^2], in the body's frame."""
        volume, centroid, inertia = self.unit_properties()
        R = np.array(self.orientation)
        return density * volume, np.array(self.position) + R @ centroid, density * (R @ inertia @ R.T)


@validated
@dataclass(frozen=True)
class Sphere(Geometry):
    """A ball of the given radius [m]."""

    radius: Number
    sizes: ClassVar[tuple[str, ...]] = ("radius",)

    def unit_properties(self):
        volume = 4 * PI / 3 * self.radius**3
        return volume, np.zeros(3, int), volume * self.radius**2 * 2 / 5 * np.eye(3, dtype=int)


@validated
@dataclass(frozen=True)
class Capsule(Geometry):
    """A cylinder along z with half balls on its ends; `length` [m] is that of the cylinder alone."""

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
    """A cylinder along z, `length` [m] in all."""

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
    """A box with full edge lengths x, y, z [m]."""

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
    """An infinite plane through the frame's origin, normal along z; the solid side is below."""


@validated
@dataclass(frozen=True)
class Mesh(Geometry):
    """A triangle mesh: vertices (n, 3) [m], scaled, and faces (m, 3) of vertex numbers; both empty if it was not read.

    file: its name as the model has it; scale: what its numbers were multiplied with.
    """

    vertices: FrozenArray | tuple[tuple[float, float, float], ...] = ()
    faces: FrozenArray | tuple[tuple[int, int, int], ...] = ()
    file: str = ""
    scale: tuple[float, float, float] = (1.0, 1.0, 1.0)

    def __post_init__(self):
        super().__post_init__()
        where = f"mesh {self.name or self.file!r}"
        vertices = _block(self.vertices, float, f"vertices of {where}")
        faces = _block(self.faces, int, f"faces of {where}")
        numbers = np.asarray(faces)
        if len(faces) and (numbers.min() < 0 or numbers.max() >= len(vertices)):
            raise DescriptionError(
                f"a face of {where} has a vertex number out of range; there are {len(vertices)} vertices"
            )
        object.__setattr__(self, "vertices", vertices)
        object.__setattr__(self, "faces", faces)
        object.__setattr__(self, "scale", vector(self.scale, 3, f"scale of {where}"))

    @property
    def solid(self) -> bool:
        return len(self.faces) > 0 and not self.visual_only

    def unit_properties(self):
        """By signed tetrahedra from the origin; right for a closed mesh whose faces are wound outward."""
        corners = np.asarray(self.vertices)[np.asarray(self.faces)]
        volumes = np.linalg.det(corners) / 6
        volume = float(volumes.sum())
        if volume <= 0:
            raise DescriptionError(
                f"mesh {self.name or self.file!r} encloses the volume {volume:.3g}; it must be closed, faces wound outward"
            )
        sums = corners.sum(axis=1)
        centroid = volumes @ sums / (4 * volume)
        second = np.einsum("t,tia,tib->ab", volumes, corners, corners) + np.einsum(
            "t,ta,tb->ab", volumes, sums, sums
        )
        spread = second / 20 - volume * np.outer(centroid, centroid)
        return volume, centroid, np.trace(spread) * np.eye(3) - spread


def _block(values: Any, kind: type, where: str) -> FrozenArray:
    try:
        block = values if isinstance(values, FrozenArray) else FrozenArray(_rows(values, kind), 3, kind)
    except (TypeError, ValueError, OverflowError):
        wanted = "real" if kind is float else "whole"
        raise DescriptionError(f"{where} must be rows of three {wanted} numbers") from None
    if len(block.shape) != 2 or block.shape[1] != 3:
        raise DescriptionError(f"{where} have the shape {block.shape}; they must be rows of three numbers")
    if not np.isfinite(np.asarray(block)).all():
        raise DescriptionError(f"{where} must be finite")
    return block


def _rows(values: Any, kind: type) -> np.ndarray:
    """Real numbers, or whole ones. Raises TypeError or ValueError."""
    array = real_array(values)
    if kind is int and not ((np.abs(array) < LARGEST_INTEGER).all() and (array == np.round(array)).all()):
        raise ValueError
    return array


def _diagonal(a: Number, b: Number, c: Number) -> np.ndarray:
    return np.array([[a, 0, 0], [0, b, 0], [0, 0, c]])


def mass_properties(
    geometry: Iterable[Geometry], density: Number, where: str
) -> tuple[Number, np.ndarray, np.ndarray]:
    """Mass [kg], centre of mass [m] and inertia about it [kg m^2] of homogeneous shapes; overlaps count twice.

    Raises DescriptionError if there is no shape with a volume, or the density is not positive.
    """
    density = number(density, f"density of {where}")
    if isinstance(density, (int, float)) and density <= 0:
        raise DescriptionError(f"density of {where} is {density}; it must be positive")
    rigid_bodies = [shape for shape in geometry if shape.solid]
    if not rigid_bodies:
        raise DescriptionError(
            f"{where} has a density but no shape with a volume; give it geometry, or a mass"
        )
    parts = [shape.mass_properties(density) for shape in rigid_bodies]
    mass: Any = sum(m for m, _, _ in parts)
    com = sum(m * c for m, c, _ in parts) / mass
    inertia: Any = sum(I + inertias.parallel_axis_term(m, c - com) for m, c, I in parts)
    return mass, com, inertia
