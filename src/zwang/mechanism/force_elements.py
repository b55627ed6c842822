"""What pushes: motors, actuators, springs, dampers, wrenches. Data only; `gauss.applied` gives their generalised forces.

A force with an `input` (a Motor, an Actuator, a Wrench with an input's name) is driven by `control`; the others act by themselves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from zwang.errors import DescriptionError
from zwang.mechanism.numbers import Number, Vector3, number, vector
from zwang.mechanism.type_validation import validated
from zwang.scalar import are_constant

Point = tuple[str, Vector3]


@validated
@dataclass(frozen=True)
class Motor:
    """An effort u on a joint: tau = gear * u, u clipped to control_range [N m or N]. Its input has the motor's name."""

    name: str
    joint: str
    gear: Number = 1
    control_range: tuple[Number, Number] | None = None

    def __post_init__(self):
        _check_name(self.name, "motor")
        object.__setattr__(self, "gear", number(self.gear, f"gear of motor {self.name!r}"))
        where = f"control_range of motor {self.name!r}"
        object.__setattr__(self, "control_range", _checked_range(self.control_range, where))


@validated
@dataclass(frozen=True)
class Muscle:
    """A muscle's force by length and speed, as MuJoCo has it: -strength * (u * FL(L) * FV(V) + FP(L)), u the activation.

    strength: the peak active force [N]. length_range: the actuator's lengths [m] at which the scaled length L is
    `operating_range`. shortest, longest: L between which there is active force. fastest: shortening speed [L0/s].
    passive: FP at L = longest. lengthening: FV at saturation.
    """

    strength: Number
    length_range: tuple[Number, Number]
    operating_range: tuple[Number, Number] = (0.75, 1.05)
    shortest: Number = 0.5
    longest: Number = 1.6
    fastest: Number = 1.5
    passive: Number = 1.3
    lengthening: Number = 1.2

    def __post_init__(self):
        for name in ("strength", "shortest", "longest", "fastest", "passive", "lengthening"):
            object.__setattr__(self, name, number(getattr(self, name), f"{name} of a muscle"))
        for name in ("length_range", "operating_range"):
            ends = vector(getattr(self, name), 2, f"{name} of a muscle")
            object.__setattr__(self, name, ends)
            if are_constant(*ends) and not ends[0] < ends[1]:
                raise DescriptionError(f"{name} of a muscle is {ends}; the lower must be less than the upper")


ACTIVATIONS = {
    "integrator": (),
    "filter": ("time constant",),
    "filterexact": ("time constant",),
    "muscle": ("activation time", "deactivation time", "width"),
}
"""How an activation follows the control, by kind, with the names of its parameters."""


@validated
@dataclass(frozen=True)
class Actuator:
    """MuJoCo's general actuator: force = gain * u + b0 + b1 * length + b2 * speed, on a joint, a tendon or a frame.

    gain may depend on the state too: gain = g0 + g1 * length + g2 * speed, with `gain` = (g0, g1, g2). u is `control` clipped to control_range, or
    the activation, if `activation` names its dynamics: ("integrator", ()), ("filter", (time constant,)), ("filterexact", (time constant,)),
    ("muscle", (activation time, deactivation time, width of the change between them)). With `muscle`, the force is that of the muscle.
    The force is clipped to force_range. length = gear times joint position (or tendon length).
    On a joint, `gear` is (g,) or, for ball and free joints, one number a speed; on a frame, it is a wrench (force, torque) in that frame.
    With `slider`, a frame, the frame is the pin of a crank, and a rod of length `rod` [m] leads from it to a slider along
    the z axis of `slider`; the length is the slider's position there, and the effort pushes the slider.
    """

    name: str
    joint: str | None = None
    tendon: str | None = None
    frame: str | None = None
    slider: str | None = None
    rod: Number = 0
    gear: tuple[Number, ...] = (1,)
    gain: tuple[Number, ...] = (1, 0, 0)
    bias: tuple[Number, ...] = (0, 0, 0)
    control_range: tuple[Number, Number] | None = None
    force_range: tuple[Number, Number] | None = None
    activation: tuple[str, tuple[Number, ...]] | None = None
    activation_range: tuple[Number, Number] | None = None
    muscle: Muscle | None = None
    kind: str = "general"

    def __post_init__(self):
        _check_name(self.name, "actuator")
        where = f"actuator {self.name!r}"
        if sum(target is not None for target in (self.joint, self.tendon, self.frame)) != 1:
            raise DescriptionError(f"{where} must have exactly one target: a joint, a tendon or a frame")
        object.__setattr__(self, "rod", number(self.rod, f"rod of {where}"))
        if self.slider is not None and (self.frame is None or (are_constant(self.rod) and self.rod <= 0)):
            raise DescriptionError(
                f"{where} has a slider; give it a frame, the crank's pin, and a rod of positive length"
            )
        for name in ("gear", "gain", "bias"):
            object.__setattr__(self, name, _numbers(getattr(self, name), f"{name} of {where}"))
        for name, length in (("gain", len(self.gain)), ("bias", len(self.bias))):
            if length != 3:
                raise DescriptionError(
                    f"{name} of {where} has {length} numbers; it must have 3: constant, by length, by speed"
                )
        for name in ("control_range", "force_range", "activation_range"):
            object.__setattr__(self, name, _checked_range(getattr(self, name), f"{name} of {where}"))
        if self.activation is not None:
            object.__setattr__(
                self, "activation", _checked_activation(self.activation, f"activation of {where}")
            )


def _checked_activation(value: Any, where: str) -> tuple[str, tuple[Number, ...]]:
    """(kind, its parameters). Raises DescriptionError for a kind that is not there, or other parameters than it has."""
    if not (isinstance(value, tuple | list) and len(value) == 2 and isinstance(value[0], str)):
        raise DescriptionError(f"{where} is {value!r}; give (kind, parameters), such as ('filter', (0.05,))")
    kind, parameters = value[0], _numbers(value[1], where)
    if kind not in ACTIVATIONS:
        raise DescriptionError(f"{where} has the kind {kind!r}; there are {', '.join(ACTIVATIONS)}")
    wanted = ACTIVATIONS[kind]
    if len(parameters) != len(wanted):
        shown = f"({', '.join(wanted)})" if wanted else "none, ()"
        raise DescriptionError(f"{where}, {kind!r}, has {len(parameters)} parameters; it must have {shown}")
    for name, x in zip(wanted, parameters, strict=True):
        if name == "time constant" and are_constant(x) and not x > 0:
            raise DescriptionError(f"the {name} in {where} is {x}; it must be positive")
    return kind, parameters


@validated
@dataclass(frozen=True)
class Damper:
    """A viscous damper on every speed of a joint: tau = -(c v + c2 v |v| + c3 v^3 + c4 v^3 |v| + ...).

    coefficient: c [N m s/rad or N s/m]; higher: (c2, c3, ...).
    """

    joint: str
    coefficient: Number
    higher: tuple[Number, ...] = ()

    def __post_init__(self):
        where = f"coefficient of the damper on joint {self.joint!r}"
        object.__setattr__(self, "coefficient", number(self.coefficient, where))
        object.__setattr__(self, "higher", vector(self.higher, len(self.higher), where))
        if are_constant(self.coefficient) and self.coefficient < 0:
            raise DescriptionError(f"{where} is {self.coefficient}; negative damping feeds the motion")


@validated
@dataclass(frozen=True)
class Spring:
    """A spring on a joint: tau = -(k1 x + k2 x^2 + k3 x^3 + ...) with x = q - rest, or x = q - q_other - rest.

    stiffness is k1, or (k1, k2, ...). With `relative_to`, a torsion spring between two joints, which pushes the other
    one back. On a ball joint (or the turning part of a free one) x is the rotation vector from `rest` = 0, and k2 = k3 = ... = 0; on a free joint the
    sliding part is pulled to the home position.
    """

    joint: str
    stiffness: Number | tuple[Number, ...]
    rest: Number = 0
    relative_to: str | None = None

    def __post_init__(self):
        where = f"stiffness of the spring on joint {self.joint!r}"
        object.__setattr__(self, "stiffness", _numbers(self.stiffness, where))
        if self.relative_to is not None and self.relative_to == self.joint:
            raise DescriptionError(f"the spring on joint {self.joint!r} is relative to that joint itself")
        object.__setattr__(self, "rest", number(self.rest, f"rest of the spring on joint {self.joint!r}"))


@validated
@dataclass(frozen=True)
class PointSpring:
    """A spring (and damper) between two points, each (body name, point in its frame [m]).

    Pull along the line: k (l - length) + c dl/dt; stiffness [N/m], length [m], damping [N s/m].
    """

    a: Point
    b: Point
    stiffness: Number
    length: Number = 0
    damping: Number = 0

    def __post_init__(self):
        for end in ("a", "b"):
            object.__setattr__(self, end, _point(getattr(self, end), f"point {end} of a point spring"))
        for name in ("stiffness", "length", "damping"):
            object.__setattr__(self, name, number(getattr(self, name), f"{name} of a point spring"))
        if are_constant(self.damping) and self.damping < 0:
            raise DescriptionError(
                f"damping of a point spring is {self.damping}; negative damping feeds the motion"
            )


@validated
@dataclass(frozen=True)
class Wrench:
    """A force [N] and a torque [N m] on a body at a point of its frame, in world or body axes.

    Constant; or, with `input`, multiplied by the control of that name.
    """

    body: str
    force: Vector3 = (0, 0, 0)
    torque: Vector3 = (0, 0, 0)
    point: Vector3 = (0, 0, 0)
    axes: Literal["world", "body"] = "world"
    input: str | None = None

    def __post_init__(self):
        for name in ("force", "torque", "point"):
            value = vector(getattr(self, name), 3, f"{name} of the wrench on body {self.body!r}")
            object.__setattr__(self, name, value)
        if self.input is not None:
            _check_name(self.input, "wrench's input")
        if self.axes not in ("world", "body"):
            raise DescriptionError(
                f"axes of the wrench on body {self.body!r} is {self.axes!r}; it is 'world' or 'body'"
            )


@validated
@dataclass(frozen=True)
class GravityCompensation:
    """A force at a body's centre of mass against gravity: -factor * mass * gravity; 1 makes the body weightless.

    As in MuJoCo it is a drive: its work is no part of the potential energy.
    """

    body: str
    factor: Number = 1

    def __post_init__(self):
        object.__setattr__(
            self, "factor", number(self.factor, f"factor of the compensation of {self.body!r}")
        )


Force = Motor | Actuator | Damper | Spring | PointSpring | Wrench | GravityCompensation


def _check_name(name: object, what: str) -> None:
    if not isinstance(name, str) or not name:
        raise DescriptionError(f"a {what} has the name {name!r}; it must be a text that is not empty")


def _numbers(values: Any, where: str) -> tuple[Number, ...]:
    """One number, or several, as a tuple."""
    several = isinstance(values, tuple | list) or getattr(values, "ndim", 0) == 1
    return vector(values, len(values), where) if several else (number(values, where),)


def _point(value: Any, where: str) -> Point:
    if not (isinstance(value, tuple | list) and len(value) == 2 and isinstance(value[0], str)):
        raise DescriptionError(f"{where} is {value!r}; give (body name, (x, y, z))")
    return value[0], vector(value[1], 3, f"{where} on {value[0]!r}")


def _checked_range(ends: Any, where: str) -> tuple[Number, Number] | None:
    if ends is None:
        return None
    if isinstance(ends, str) or not hasattr(ends, "__len__") or len(ends) != 2:
        raise DescriptionError(f"{where} is {ends!r}; give (lower, upper)")
    lower, upper = (number(end, where, infinite=True) for end in ends)
    if are_constant(lower, upper) and lower > upper:
        raise DescriptionError(f"{where} is ({lower}, {upper}); the lower must not exceed the upper")
    return lower, upper
