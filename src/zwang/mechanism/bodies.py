"""Bodies and frames: frozen data, checked when built.

Every number may be a SymPy expression. SI units, radians, right-handed frames. An orientation is given as a unit
quaternion (w, x, y, z) or as a rotation matrix and is kept as a matrix: the columns are the axes of the new frame.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from zwang.algebra import inertia as inertias
from zwang.errors import DescriptionError
from zwang.mechanism.geometry import Geometry, mass_properties
from zwang.mechanism.joints import Fixed, Joint
from zwang.mechanism.numbers import (
    IDENTITY,
    Matrix3,
    Number,
    Vector3,
    matrix3,
    number,
    orientation_of,
    vector,
)
from zwang.mechanism.type_validation import validated


@validated
@dataclass(frozen=True)
class Frame:
    """A named frame fixed to a body (a tool, a sensor, a merged link, a site)."""

    name: str
    body: str = "world"
    position: Vector3 = (0, 0, 0)
    orientation: Matrix3 = IDENTITY

    def __post_init__(self):
        if not isinstance(self.name, str) or not self.name:
            raise DescriptionError(f"a frame's name is {self.name!r}; it must be a text that is not empty")
        object.__setattr__(self, "position", vector(self.position, 3, f"position of frame {self.name!r}"))
        object.__setattr__(
            self, "orientation", orientation_of(self.orientation, f"orientation of frame {self.name!r}")
        )


@validated
@dataclass(frozen=True)
class Body:
    """A rigid body and the joint, or the joints in their order, by which it moves against its parent.

    position, orientation: the body's frame in the parent's frame while its joints are at rest.
    mass [kg]; com [m]: centre of mass in the body's frame; inertia [kg m^2]: about the centre of mass, in the body's
    axes, as 3 principal moments, as 6 numbers (xx, yy, zz, xy, xz, yz) or as a 3x3 matrix (kept so).
    density [kg/m^3]: if given, mass, com and inertia come from the geometry instead.
    unchecked_inertia: keep an inertia that no single body can have, as files have them; what counts is the sum over
    the bodies that are fixed to each other.
    simple: whether MuJoCo's shortcut for the inverse weight of a body on slides alone holds, 1 / mass; by default as
    `simple_bodies` has it.
    Raises DescriptionError for a mass or an inertia that no body can have (the triangle inequality holds).
    """

    name: str
    joint: Joint | tuple[Joint, ...] = Fixed()
    parent: str = "world"
    position: Vector3 = (0, 0, 0)
    orientation: Matrix3 = IDENTITY
    mass: Number = 0
    com: Vector3 = (0, 0, 0)
    inertia: Any = (0, 0, 0)
    geometry: tuple[Geometry, ...] = ()
    density: Number | None = None
    unchecked_inertia: bool = False
    simple: bool | None = None

    def __post_init__(self):
        where = f"body {self.name!r}"
        if not isinstance(self.name, str) or not self.name:
            raise DescriptionError(f"a body's name is {self.name!r}; it must be a text that is not empty")
        joints = self.joint if isinstance(self.joint, (tuple, list)) else (self.joint,)
        for joint in joints:
            if not isinstance(joint, Joint):
                raise DescriptionError(
                    f"joint of {where} is {joint!r}; give a joint such as zw.Revolute('name')"
                )
        put = object.__setattr__
        put(self, "joint", joints[0] if len(joints) == 1 else tuple(joints))
        put(self, "position", vector(self.position, 3, f"position of {where}"))
        put(self, "orientation", orientation_of(self.orientation, f"orientation of {where}"))
        put(self, "geometry", _shapes(self.geometry, where))
        if self.density is not None:
            mass, com, inertia = mass_properties(self.geometry, self.density, where)
            put(self, "mass", mass)
            put(self, "com", com)
            put(self, "inertia", inertia)
            put(self, "density", None)
        put(self, "mass", number(self.mass, f"mass of {where}"))
        put(self, "com", vector(self.com, 3, f"com of {where}"))
        put(self, "inertia", matrix3(inertias.inertia_matrix(self.inertia, where), f"inertia of {where}"))
        if not self.unchecked_inertia:
            inertias.check_inertia(self.mass, self.inertia, where)

    @property
    def joints(self) -> tuple[Joint, ...]:
        """The body's joints that move, in their order (a Fixed one is none)."""
        joints = self.joint if isinstance(self.joint, tuple) else (self.joint,)
        return tuple(j for j in joints if not isinstance(j, Fixed))


def _shapes(values: Any, where: str) -> tuple[Geometry, ...]:
    """The shapes of a body, each of them one."""
    items = tuple(values) if isinstance(values, tuple | list) else (values,)
    for item in items:
        if not isinstance(item, Geometry):
            raise DescriptionError(f"geometry of {where} holds {item!r}; give shapes such as zw.Sphere(0.1)")
    return items
