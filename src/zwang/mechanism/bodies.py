"""Bodies and frames: immutable values that are validated when they are built.

Every number may be a SymPy expression. Units are SI units and radians; frames are right-handed. An
orientation is given as a unit quaternion (w, x, y, z) or as a rotation matrix, and stored as a matrix whose
columns are the axes of the new frame.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from zwang.algebra import inertia as inertias
from zwang.errors import DescriptionError
from zwang.mechanism.geometry import Geometry, mass_properties
from zwang.mechanism.joints import Fixed, Joint, MovingJoint
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
    """A named frame fixed to a body, for example of a tool, a sensor or an MJCF site.

    position [m], orientation (a quaternion (w, x, y, z) or a rotation matrix): pose in the frame of `body`;
    the body "world" is the ground. Raises DescriptionError.
    """

    name: str
    body: str = "world"
    position: Vector3 = (0, 0, 0)
    orientation: Matrix3 = IDENTITY

    def __post_init__(self):
        if not isinstance(self.name, str) or not self.name:
            raise DescriptionError(f"a frame's name is {self.name!r}; it must be a non-empty string")
        object.__setattr__(self, "position", vector(self.position, 3, f"position of frame {self.name!r}"))
        object.__setattr__(
            self, "orientation", orientation_of(self.orientation, f"orientation of frame {self.name!r}")
        )


@validated
@dataclass(frozen=True)
class Body:
    """A rigid body with the joint, or the sequence of joints, that connects it to its parent.

    position [m], orientation: pose of the body frame in the frame of the parent at the reference of the
    joints. mass [kg]; com [m]: centre of mass in the body frame.
    inertia [kg m^2]: about the centre of mass, in the axes of the body, as 3 principal moments, as 6 numbers
        (xx, yy, zz, xy, xz, yz) or as a 3x3 matrix; stored as a matrix.
    density [kg/m^3]: if given, mass, com and inertia are computed from the geometry.
    unchecked_inertia: accept an inertia that is not physically consistent, as some files contain; only the
        sum over the bodies that are rigidly attached to each other has to be consistent.
    simple: whether MuJoCo's special case for bodies with prismatic joints alone applies, in which the inverse
        weight is 1 / mass; by default, `simple_bodies` decides.
    mocap: whether the pose may be prescribed from outside, see `zw.with_mocap_parameters`; only for a body
        without joints whose parent is the world.
    home_pose: of a mocap body, its position [m] and orientation in the home configuration, where the lengths
        and inverse weights of tendons are computed; by default its pose. `zw.with_mocap_parameters` sets it.
    sleep: whether the kinematic tree of the body may sleep, if the options enable "sleep"; see
        `zwang.mechanism.sleep_policy`. Only for the first body with joints.
    Raises DescriptionError for a negative mass, or an inertia that is not physically consistent (negative
    principal moments, or principal moments that violate the triangle inequality).
    """

    name: str
    joint: Joint | Sequence[Joint] = Fixed()
    parent: str = "world"
    position: Vector3 = (0, 0, 0)
    orientation: Matrix3 = IDENTITY
    mass: Number = 0
    com: Vector3 = (0, 0, 0)
    inertia: Any = (0, 0, 0)
    geometry: Sequence[Geometry] = ()
    density: Number | None = None
    unchecked_inertia: bool = False
    simple: bool | None = None
    mocap: bool = False
    home_pose: tuple[Vector3, Matrix3] | None = None
    sleep: Literal["auto", "never", "allowed", "init"] = "auto"

    def __post_init__(self):
        where = f"body {self.name!r}"
        if not isinstance(self.name, str) or not self.name:
            raise DescriptionError(f"a body's name is {self.name!r}; it must be a non-empty string")
        joints = self.joint if isinstance(self.joint, (tuple, list)) else (self.joint,)
        for joint in joints:
            if not isinstance(joint, Joint):
                raise DescriptionError(
                    f"joint of {where} is {joint!r}; give a joint, such as zw.Revolute('name')"
                )
        put = object.__setattr__
        put(self, "joint", joints[0] if len(joints) == 1 else tuple(joints))
        if self.mocap and (self.parent != "world" or self.joints):
            raise DescriptionError(
                f"{where} has mocap=True; it must then have no joints, and the world as its parent"
            )
        put(self, "position", vector(self.position, 3, f"position of {where}"))
        put(self, "orientation", orientation_of(self.orientation, f"orientation of {where}"))
        if self.home_pose is not None:
            put(self, "home_pose", self._checked_home_pose(where))
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

    def _checked_home_pose(self, where: str) -> tuple[Vector3, Matrix3]:
        if not self.mocap or self.home_pose is None:
            raise DescriptionError(f"{where} has a home_pose, which is for bodies with mocap=True only")
        position, orientation = self.home_pose
        return (
            vector(position, 3, f"position in home_pose of {where}"),
            orientation_of(orientation, f"orientation in home_pose of {where}"),
        )

    @property
    def joints(self) -> tuple[MovingJoint, ...]:
        """The joints that are not fixed, in their order."""
        joints = self.joint if isinstance(self.joint, tuple) else (self.joint,)
        return tuple(cast(MovingJoint, j) for j in joints if not isinstance(j, Fixed))


def _shapes(values: Any, where: str) -> tuple[Geometry, ...]:
    """`values` as a tuple of shapes. Raises DescriptionError."""
    items = tuple(values) if isinstance(values, tuple | list) else (values,)
    for item in items:
        if not isinstance(item, Geometry):
            raise DescriptionError(
                f"geometry of {where} contains {item!r}; give shapes, such as zw.Sphere(0.1)"
            )
    return items
