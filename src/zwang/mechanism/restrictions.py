"""What restricts: loops, couplings, rolling, tendons, and which shapes may touch. Data only; `constraint` makes rows of them.

A restriction with `softness=None` is exact (hard); with a `Softness` it acts as MuJoCo's of that softness does.
Points are (body name, point in its frame [m]); the body "world" is the ground.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from zwang.errors import DescriptionError
from zwang.mechanism.joint_kinds import Softness
from zwang.mechanism.numbers import IDENTITY, Matrix3, Number, Vector3, number, orientation_of, vector

Point = tuple[str, Vector3]


def _point(value: Any, where: str) -> Point:
    if not (isinstance(value, (tuple, list)) and len(value) == 2 and isinstance(value[0], str)):
        raise DescriptionError(f"{where} is {value!r}; give (body name, (x, y, z))")
    return value[0], vector(value[1], 3, where)


@dataclass(frozen=True)
class Connect:
    """Two points coincide (a ball joint that closes a loop)."""

    name: str
    a: Point
    b: Point
    softness: Softness | None = None

    def __post_init__(self):
        for end in ("a", "b"):
            object.__setattr__(self, end, _point(getattr(self, end), f"{end} of connect {self.name!r}"))


@dataclass(frozen=True)
class Weld:
    """Body b's frame, moved by (position, orientation), coincides with body a's frame.

    T_a * (position, orientation) = T_b at point `anchor` of b: MuJoCo's weld, with its torque_scale [m].
    """

    name: str
    a: str
    b: str
    position: Vector3 = (0, 0, 0)
    orientation: Matrix3 = IDENTITY
    anchor: Vector3 = (0, 0, 0)
    torque_scale: Number = 1.0
    softness: Softness | None = None

    def __post_init__(self):
        where = f"weld {self.name!r}"
        object.__setattr__(self, "position", vector(self.position, 3, f"position of {where}"))
        object.__setattr__(self, "anchor", vector(self.anchor, 3, f"anchor of {where}"))
        object.__setattr__(self, "orientation", orientation_of(self.orientation, f"orientation of {where}"))


@dataclass(frozen=True)
class Distance:
    """Two points keep their distance [m]."""

    name: str
    a: Point
    b: Point
    length: Number
    softness: Softness | None = None

    def __post_init__(self):
        for end in ("a", "b"):
            object.__setattr__(self, end, _point(getattr(self, end), f"{end} of distance {self.name!r}"))
        object.__setattr__(self, "length", number(self.length, f"length of distance {self.name!r}"))


@dataclass(frozen=True)
class Couple:
    """A coordinate is a polynomial of another: q_joint - q0 = c0 + c1 x + c2 x^2 + ..., x = q_to - q_to0.

    Without `to` the joint is held at c0. q0, q_to0 are the joints' `reference`. A URDF's mimic is (offset, multiplier).
    """

    name: str
    joint: str
    to: str | None = None
    coefficients: tuple[Number, ...] = (0, 1)
    softness: Softness | None = None

    def __post_init__(self):
        where = f"coefficients of couple {self.name!r}"
        object.__setattr__(self, "coefficients", vector(self.coefficients, len(self.coefficients), where))
        if self.to == self.joint:
            raise DescriptionError(f"couple {self.name!r} (mimic) ties joint {self.joint!r} to itself")


@dataclass(frozen=True)
class Tendon:
    """A fixed tendon: its length is sum of coefficient * q over joints; or a spatial one: a path through frames.

    joints: ((name, coefficient), ...). path: frame names in order, None where a pulley starts a new branch of
    `divisors`. Springs and dampers pull back to spring_length = (lower, upper); limits and friction as a joint's.
    """

    name: str
    joints: tuple[tuple[str, Number], ...] = ()
    path: tuple[str | None, ...] = ()
    divisors: tuple[Number, ...] = ()
    stiffness: Number = 0
    damping: Number = 0
    spring_length: tuple[Number, Number] = (0, 0)
    limits: tuple[Number, Number] | None = None
    friction: Number = 0
    armature: Number = 0
    limit_softness: Softness | None = Softness()
    friction_softness: Softness | None = Softness()


@dataclass(frozen=True)
class CoupleTendons:
    """A tendon's length (less its length at home) is a polynomial of another's, as `Couple` for joints."""

    name: str
    tendon: str
    to: str | None = None
    coefficients: tuple[Number, ...] = (0, 1)
    softness: Softness | None = None


@dataclass(frozen=True)
class ContactPair:
    """Two shapes, by name, that may touch whatever their bit masks say, with their own numbers."""

    name: str
    geometry: tuple[str, str]
    condim: int = 3
    friction: tuple[Number, ...] = (1.0, 1.0, 0.005, 0.0001, 0.0001)
    solref: tuple[Number, ...] = (0.02, 1.0)
    solreffriction: tuple[Number, ...] = ()
    solimp: tuple[Number, ...] = (0.9, 0.95, 0.001, 0.5, 2.0)
    margin: Number = 0.0
    gap: Number = 0.0


@dataclass(frozen=True)
class ContactExclude:
    """Two bodies whose shapes never touch each other."""

    bodies: tuple[str, str]


@dataclass(frozen=True)
class Options:
    """How a file wants to be simulated (MJCF's option element); arguments of `simulate` go before it."""

    timestep: float = 0.002
    integrator: str = "euler"
    cone: str = "pyramidal"
    impratio: float = 1.0
    solver: str = "newton"
    iterations: int = 100
    tolerance: float = 1e-8
    contact: bool = True
    disabled: tuple[str, ...] = ()
    enabled: tuple[str, ...] = ()

    def __post_init__(self):
        if not self.timestep > 0:
            raise DescriptionError(f"timestep is {self.timestep}; it must be positive (option element)")


@dataclass(frozen=True)
class Keyframe:
    """A named state: q, v, control, time."""

    name: str
    q: tuple[float, ...] = ()
    v: tuple[float, ...] = ()
    control: tuple[float, ...] = ()
    activation: tuple[float, ...] = ()
    time: float = 0.0
