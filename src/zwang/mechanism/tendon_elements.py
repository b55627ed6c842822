"""Tendons, the bodies around which they wrap, and couplings of tendons, as data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from zwang.errors import DescriptionError
from zwang.mechanism.constraints import checked_switch, named_numbers
from zwang.mechanism.joints import Softness, check_softness, checked_range
from zwang.mechanism.numbers import Interval, Number, Numbers, bounded, integer, number, number_tuple, vector
from zwang.mechanism.type_validation import validated
from zwang.scalar import are_constant, is_zero


@validated
@dataclass(frozen=True)
class Wrap:
    """A sphere, or a cylinder along z, around which a spatial tendon wraps.

    at: index of the frame of the wrapping body in the path of the tendon. radius [m]. side: a frame outside
    the wrapping body; the tendon wraps around on the side of that frame. Without it, the tendon takes the
    shorter way. If that frame is within the radius from the wrapping frame, the tendon runs through the body,
    and touches it from inside.
    """

    at: int
    radius: Number
    kind: Literal["sphere", "cylinder"] = "sphere"
    side: str | None = None

    def __post_init__(self):
        object.__setattr__(self, "at", integer(self.at, "at of a wrap", least=0))
        object.__setattr__(self, "radius", bounded(self.radius, "radius of a wrap", above=0))
        if self.kind not in ("sphere", "cylinder"):
            raise DescriptionError(f"kind of a wrap is {self.kind!r}; give 'sphere' or 'cylinder'")
        if self.side is not None and not isinstance(self.side, str):
            raise DescriptionError(f"side of a wrap is {self.side!r}; give the name of a frame, or None")


@validated
@dataclass(frozen=True)
class Tendon:
    """A fixed tendon, whose length is a linear combination of coordinates, or a spatial tendon along a path.

    joints: ((joint, coefficient), ...) of a fixed tendon; its length is the sum of coefficient * q.
    path: names of frames along a spatial tendon, with None where a pulley starts a new branch.
    divisors: for each branch, the number by which its length is divided.
    wraps: the frames of the path that belong to wrapping bodies.
    stiffness, damping: of a spring and damper; the spring acts outside the lengths spring_length = (lower,
    upper). higher_stiffness: (k2, k3, ...) of the tension k x + k2 x^2 + k3 x^3 + ... at the elongation x.
    higher_damping: (c2, c3, ...) of c w + c2 w |w| + c3 w^3 + ... at the velocity w of the length.
    limits, friction, softness: as for a joint, with the length in place of the coordinate.
    armature: inertia a of the kinetic energy a/2 (dl/dt)^2 with the length l, for a tendon without wraps
    whose length is changed by joints on one branch of the tree.
    actuator_range: (lower, upper) of the sum of the forces of all actuators on the tendon; outside it they
    are multiplied by one factor, before the force_range of each applies. It must contain 0.
    Units are m and N or, for a fixed tendon, those of its joints. Raises DescriptionError for a negative
    damping, friction or armature, for an armature with wraps, and unless there are either joints or a path.
    """

    name: str
    joints: Sequence[tuple[str, Number]] = ()
    path: Sequence[str | None] = ()
    divisors: Numbers = ()
    wraps: Sequence[Wrap] = ()
    stiffness: Number = 0
    damping: Number = 0
    spring_length: Interval = (0, 0)
    limits: Interval | None = None
    friction: Number = 0
    armature: Number = 0
    limit_softness: Softness | None = Softness()
    friction_softness: Softness | None = Softness()
    higher_stiffness: Numbers = ()
    higher_damping: Numbers = ()
    actuator_range: Interval | None = None

    def __post_init__(self):
        where = f"tendon {self.name!r}"
        items = self.joints.items() if isinstance(self.joints, Mapping) else self.joints
        object.__setattr__(self, "joints", named_numbers(items, f"joints of {where}"))
        object.__setattr__(self, "path", tuple(self.path))
        if bool(self.joints) == bool(self.path):
            raise DescriptionError(f"{where} must have either joints or a path, and not both")
        put = object.__setattr__
        put(self, "stiffness", number(self.stiffness, f"stiffness of {where}"))
        for name in ("damping", "friction", "armature"):
            put(self, name, bounded(getattr(self, name), f"{name} of {where}", least=0))
        if not is_zero(self.armature) and self.wraps:
            raise DescriptionError(
                f"armature of {where} is {self.armature}; it must be 0 for a tendon with wraps"
            )
        divisors = number_tuple(self.divisors, f"divisors of {where}", least=0)
        put(self, "divisors", tuple(bounded(x, f"a divisor of {where}", above=0) for x in divisors))
        put(self, "spring_length", checked_range(self.spring_length, f"spring_length of {where}"))
        for name in ("higher_stiffness", "higher_damping"):
            values = getattr(self, name)
            put(self, name, vector(values, len(values), f"{name} of {where}"))
        for name in ("limits", "actuator_range"):
            if getattr(self, name) is not None:
                put(self, name, checked_range(getattr(self, name), f"{name} of {where}"))
        if self.actuator_range is not None and are_constant(*self.actuator_range):
            lower, upper = self.actuator_range
            if lower > 0 or upper < 0:
                raise DescriptionError(
                    f"actuator_range of {where} is {self.actuator_range}; the lower bound must not be "
                    "above 0, and the upper bound not below it"
                )
        for name in ("limit_softness", "friction_softness"):
            check_softness(getattr(self, name), f"{name} of {where}")
        put(self, "wraps", tuple(self.wraps))
        for wrap in self.wraps:
            if not isinstance(wrap, Wrap):
                raise DescriptionError(f"wraps of {where} contains {wrap!r}; give zw.Wrap")

    @property
    def has_spring(self) -> bool:
        """Whether the tendon has a spring."""
        return not all(is_zero(k) for k in (self.stiffness, *self.higher_stiffness))

    @property
    def has_damper(self) -> bool:
        """Whether the tendon has a damper."""
        return not all(is_zero(c) for c in (self.damping, *self.higher_damping))


@validated
@dataclass(frozen=True)
class TendonCoupling:
    """The length of a tendon is a polynomial of that of another one, as for coordinates in `JointCoupling`.

    Lengths are relative to those in the default configuration of the mechanism.
    """

    name: str
    tendon: str
    to: str | None = None
    coefficients: Numbers = (0, 1)
    softness: Softness | None = None
    active: Number = 1

    def __post_init__(self):
        where = f"tendon coupling {self.name!r}"
        object.__setattr__(self, "coefficients", number_tuple(self.coefficients, f"coefficients of {where}"))
        check_softness(self.softness, f"softness of {where}")
        object.__setattr__(self, "active", checked_switch(self.active, self.softness, where))
