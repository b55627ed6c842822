"""Example mechanisms. Every number is an argument, and may be a symbol."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from zwang.mechanism.bodies import Body
from zwang.mechanism.constraints import Connect
from zwang.mechanism.force_elements import Damper, Motor
from zwang.mechanism.geometry import Box, Capsule
from zwang.mechanism.joints import Revolute
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.numbers import IDENTITY, Matrix3
from zwang.scalar import are_constant, symbol

X, Z, DOWN = (1, 0, 0), (0, 0, 1), (0, 0, -1)
COLORS = {"steel": (0.35, 0.37, 0.42, 1.0), "red": (0.8, 0.3, 0.15, 1.0)}
FURUTA = {
    "m_r": 0.095, "L_r": 0.085, "m_p": 0.024, "L_p": 0.129, "g": 9.81, "B_r": 0.0015, "B_p": 0.0005,
    "J_r1": 1e-6, "J_r2": 5.72e-5, "J_r3": 5.72e-5, "J_p1": 3.33e-5, "J_p2": 3.33e-5, "J_p3": 1e-6,
}  # fmt: skip
"""Numbers of a desktop rotary pendulum: masses [kg], lengths [m], inertias [kg m^2], damping [N m s/rad]."""


def furuta(**numbers: Any) -> Mechanism:
    """The Furuta pendulum: a driven horizontal arm (theta) carries a pendulum (alpha).

    The pendulum is upright at alpha = 0. The arguments are the names in `FURUTA`; those that are not given
    are symbols.
    Raises TypeError for another name.
    Source: Furuta, Yamakita, Kobayashi, "Swing-up control of inverted pendulum", IECON 1991.
    """
    n = {name: numbers.pop(name, symbol(name, positive=True)) for name in FURUTA}
    if numbers:
        raise TypeError(
            f"furuta() has no argument {next(iter(numbers))!r}; the arguments are {', '.join(FURUTA)}"
        )
    return Mechanism(
        name="furuta",
        gravity=(0, 0, -n["g"]),
        bodies=(
            Body("arm", Revolute("theta", axis=(0, 0, 1)), mass=n["m_r"], com=(n["L_r"] / 2, 0, 0),
                 inertia=(n["J_r1"], n["J_r2"], n["J_r3"]),
                 geometry=_rod_shape(n["L_r"], X, "steel")),
            Body("pendulum", Revolute("alpha", axis=(1, 0, 0)), parent="arm", position=(n["L_r"], 0, 0),
                 mass=n["m_p"], com=(0, 0, n["L_p"] / 2), inertia=(n["J_p1"], n["J_p2"], n["J_p3"]),
                 geometry=_rod_shape(n["L_p"], Z, "red")),
        ),
        forces=(Motor("tau", "theta"), Damper("theta", n["B_r"]), Damper("alpha", n["B_p"])),
    )  # fmt: skip


def double_pendulum(m1: Any = 1, m2: Any = 1, l1: Any = 1, l2: Any = 1, g: Any = 9.81) -> Mechanism:
    """A planar double pendulum: point masses [kg] on massless rods [m]; elbow is the relative angle."""
    return Mechanism(
        name="double pendulum",
        gravity=(0, 0, -g),
        bodies=(
            Body("upper", Revolute("shoulder", axis=(0, 1, 0)), mass=m1, com=(0, 0, -l1),
                 geometry=_rod_shape(l1, DOWN, "steel")),
            Body("lower", Revolute("elbow", axis=(0, 1, 0)), parent="upper", position=(0, 0, -l1), mass=m2,
                 com=(0, 0, -l2), geometry=_rod_shape(l2, DOWN, "red")),
        ),
    )  # fmt: skip


def _rod_shape(l: Any, direction: tuple[int, int, int], color: str) -> tuple[Capsule, ...]:
    """A capsule of length l [m] from the origin along a coordinate axis, for visualisation.

    None for a symbolic length: the body is then drawn as sticks, which follow the value of the symbol.
    """
    if not are_constant(l):
        return ()
    x, y, z = direction
    orientation: Matrix3 = ((0, 0, 1), (0, 1, 0), (-1, 0, 0)) if x else IDENTITY
    middle = (x * l / 2, y * l / 2, z * l / 2)
    return (
        Capsule(
            radius=0.04 * l,
            length=l,
            position=middle,
            orientation=orientation,
            color=COLORS[color],
            visual_only=True,
        ),
    )


def four_bar(
    crank: float = 0.3, coupler: float = 0.8, rocker: float = 0.6, ground: float = 0.8, g: Any = 9.81
) -> Mechanism:
    """A four-bar linkage of uniform rods in a vertical plane, closed by a hard constraint.

    The arguments are lengths [m]; the rods have 1 kg/m. With the default lengths the crank rotates fully
    (Grashof condition). In the default configuration the crank is upright and the loop is closed.
    """
    home = _closed_configuration(crank, coupler, rocker, ground, math.pi / 2)
    bodies = (
        _rod("crank", "world", (0, 0, 0), "drive", crank),
        _rod("coupler", "crank", (crank, 0, 0), "first", coupler),
        _rod("rocker", "world", (ground, 0, 0), "second", rocker),
    )
    loop = Connect("loop", ("coupler", (coupler, 0, 0)), ("rocker", (rocker, 0, 0)))
    return Mechanism(
        name="four-bar",
        gravity=(0, 0, -g),
        bodies=bodies,
        constraints=(loop,),
        home=home,
        forces=(Motor("motor", "drive"),),
    )


def _rod(name: str, parent: str, position: tuple[float, float, float], joint: str, length: float) -> Body:
    """A uniform rod along x of 1 kg/m that rotates about -y: its angle is measured from x towards z."""
    inertia = length**3 / 12
    bar = Box(x=length, y=0.02, z=0.02, position=(length / 2, 0, 0), visual_only=True)
    return Body(name, Revolute(joint, axis=(0, -1, 0)), parent=parent, position=position, mass=length,
                com=(length / 2, 0, 0), inertia=(1e-6, inertia, inertia), geometry=(bar,))  # fmt: skip


def _closed_configuration(
    crank: float, coupler: float, rocker: float, ground: float, angle: float
) -> tuple[float, float, float]:
    """The joint angles that close the loop at the given crank angle, with the pin above the diagonal."""
    tip = crank * complex(math.cos(angle), math.sin(angle))
    to_ground = ground - tip
    distance = abs(to_ground)
    opening = math.acos((coupler**2 + distance**2 - rocker**2) / (2 * coupler * distance))
    direction = math.atan2(to_ground.imag, to_ground.real) + opening
    pin = tip + coupler * complex(math.cos(direction), math.sin(direction)) - ground
    return angle, direction - angle, math.atan2(pin.imag, pin.real)


SAMPLES: dict[str, Callable[[], Mechanism]] = {
    "furuta": lambda: furuta(**FURUTA),
    "double_pendulum": double_pendulum,
    "four_bar": four_bar,
}
"""The examples of the command line, by name."""
