"""Small mechanisms with everything that an exported step contains."""

import numpy as np
import sympy as sp

import zwang as zw
from zwang.mechanism.samples import FURUTA, four_bar, furuta

SOFT = zw.Surface(friction=(0.8, 0.005, 0.0001))
HARD = zw.Surface(friction=(0.5, 0, 0), hard=True, restitution=0.5)


def symbolic_furuta() -> zw.Mechanism:
    """A rotary pendulum with one mass as a parameter."""
    return furuta(**{**FURUTA, "m_p": sp.Symbol("m_p", positive=True)})


def furuta_of_two_symbols() -> zw.Mechanism:
    """A rotary pendulum with a length and a mass as parameters."""
    symbols = {name: sp.Symbol(name, positive=True) for name in ("m_p", "L_r")}
    return furuta(**{**FURUTA, **symbols})


def arm() -> zw.Mechanism:
    """Two joints, one of them a ball joint, with a filtered actuator, limits, friction and sensors."""
    upper = zw.Body(
        "upper",
        joint=zw.Revolute("shoulder", axis=(0, 1, 0), limits=(-0.4, 0.4), friction=0.05),
        mass=2.0,
        com=(0, 0, -0.2),
        inertia=(0.03, 0.03, 0.002),
    )
    lower = zw.Body(
        "lower", parent="upper", position=(0, 0, -0.4), joint=zw.Ball("wrist"), mass=1.0,
        com=(0.02, 0, -0.15), inertia=(0.01, 0.012, 0.004),
    )  # fmt: skip
    return zw.Mechanism(
        name="arm",
        bodies=[upper, lower],
        frames=[zw.Frame("hand", "lower", (0, 0, -0.3)), zw.Frame("elbow/*", "upper", (0, 0, -0.4))],
        forces=[zw.Actuator("drive", joint="shoulder", gear=(3,), activation=("filter", (0.05,)))],
        sensors=[zw.SiteSensor("gyro", "gyro", "hand"), zw.SiteSensor("imu", "accelerometer", "hand")],
    )


def dropped(surface: zw.Surface) -> zw.Mechanism:
    """A tilted box above a plane, with a sensor of its acceleration."""
    box = zw.Body(
        "box",
        joint=zw.Free("base"),
        mass=1.0,
        inertia=(0.01, 0.02, 0.03),
        geometry=[zw.Box(0.1, 0.08, 0.05, surface=surface)],
    )
    home = (0, 0, 0.13, *np.array([0.9, 0.3, 0.2, 0.1]) / np.sqrt(0.95))
    return zw.Mechanism(
        "dropped box", [box], geometry=[zw.Plane(surface=surface)], home=home,
        sensors=[zw.SiteSensor("imu", "accelerometer", "box")],
    )  # fmt: skip


def driven_loop() -> zw.Mechanism:
    """A point on a circle whose radius changes with time: a constraint that depends on time."""
    x, z, t = sp.symbols("x z t")
    bodies = [
        zw.Body("slide", joint=zw.Prismatic("x", axis=(1, 0, 0)), mass=0.1),
        zw.Body("point", parent="slide", joint=zw.Prismatic("z", axis=(0, 0, 1)), mass=1.0),
    ]
    ring = zw.Holonomic("ring", x**2 + z**2 - (1 + t**2 / 5) ** 2)
    return zw.Mechanism("driven", bodies, constraints=[ring], home=(1, 0))


def woken(falling: type[zw.Box] | type[zw.Sphere] = zw.Box) -> zw.Mechanism:
    """A box that sleeps on a plane until another one, or a ball, falls on it."""
    box = zw.Box(0.1, 0.1, 0.1, surface=SOFT)
    shape = box if falling is zw.Box else zw.Sphere(0.06, surface=SOFT)
    bodies = [
        zw.Body("lower", zw.Free("lower"), sleep="init", geometry=[box], density=1000),
        zw.Body("upper", zw.Free("upper"), geometry=[shape], density=1000),
    ]
    home = (0, 0, 0.05, 1, 0, 0, 0, 0, 0, 0.2, *np.array([0.9, 0.3, 0.2, 0.1]) / np.sqrt(0.95))
    options = zw.Options(enabled=("sleep",))
    return zw.Mechanism("woken box", bodies, geometry=[zw.Plane(surface=SOFT)], home=home, options=options)


def servo() -> zw.Mechanism:
    """A pendulum with a position servo, and a keyframe of its state and set point."""
    body = zw.Body("a", zw.Revolute("j", (0, 1, 0)), mass=1, com=(0.2, 0, 0), inertia=(0.004,) * 3)
    drive = zw.Actuator("p", joint="j", gain=(30, 0, 0), bias=(0, -30, 0))
    return zw.Mechanism(
        "servo", [body], forces=[drive], keyframes=[zw.Keyframe("up", q=(0.5,), v=(1,), control=(0.7,))]
    )


MODELS = {
    "furuta": lambda: furuta(**FURUTA),
    "symbols": furuta_of_two_symbols,
    "arm": arm,
    "soft contact": lambda: dropped(SOFT),
    "impacts": lambda: dropped(HARD),
    "loop": four_bar,
    "time": driven_loop,
    "sleep": woken,
}
PARAMS = {"symbols": {"m_p": 0.03, "L_r": 0.1}}
"""Values of parameters, in another order than that of the mechanism's symbols."""
