"""A mechanism with every kind of part, and mechanisms with force elements on random joints, for writers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import zwang as zw
from tests.mechanisms import random_mechanism
from zwang.mechanism.mechanism import Mechanism

INERTIA = (0.02, 0.03, 0.04, 0.001, 0.002, -0.001)
SOFT = zw.Softness((0.03, 0.9), (0.8, 0.9, 0.002, 0.4, 3), 0.01)


def rich_forces() -> tuple:
    """Forces of every kind on the parts of `rich_mechanism`."""
    return (
        zw.Motor("motor", "turn", 3, (-1, 2)),
        zw.Actuator("servo", "lean", gear=(2,), gain=(5, 0, 0), bias=(0, -5, -1), force_range=(-9, 8)),
        zw.Actuator("winch", tendon="rope", activation=("filter", (0.1,)), activation_range=(0, 1)),
        zw.Actuator("muscle", tendon="belt", activation=("muscle", (0.01, 0.04, 0)), control_range=(0, 1),
                    muscle=zw.Muscle(100, (0.1, 2), (0.7, 1.1), 0.6, 1.5, 1.4, 1.2, 1.3)),
        zw.Actuator("jet", frame="eye", gear=(1, 2, 3, 4, 5, 6), gain=(1, 2, 3)),
        zw.Actuator("crank", frame="eye", slider="tail", rod=3),
        zw.Actuator("gimbal", "wrist", gear=(1, 2, 3)),
        zw.Actuator("grip", body="hand", gain=(3, 0, 0), control_range=(0, 1)),
        zw.Actuator("tracker", "turn", pid=zw.Pid(2, 3, 0.5, 0.7, 4), activation=("filter", (0.2,))),
        zw.Damper("turn", 0.3, (0.1, 0.05)), zw.Damper("base", 0.2), zw.Damper("wrist", 0.1),
        zw.Spring("turn", (2, 0.3, 0.1), 0.4), zw.Spring("wrist", 1.5), zw.Spring("x", 3, 0.1),
        zw.Spring("lean", 2, 0.3, relative_to="turn"),
        zw.PointSpring(("arm", (0.1, 0, 0)), ("cart", (0, 0.1, 0)), 5, 0.4, 0.2),
        zw.Wrench("cart", (1, 2, 3), (4, 5, 6), (0.1, 0.2, 0.3), axes="body", input="push"),
        zw.GravityCompensation("arm", 0.5),
    )  # fmt: skip


def rich_mechanism() -> Mechanism:
    """A mechanism with every part that MJCF has: each kind of joint, force, constraint, tendon and shape."""
    surface = zw.Surface(
        (0.7, 0.01, 0.001), 4, 3, 5, 2, (0.03, 0.8), (0.8, 0.9, 0.002, 0.4, 3), 0.7, 0.02, 0.01, 2
    )
    turn = zw.Revolute(
        "turn", (1, 2, 2), (0.1, 0.2, 0.3), armature=0.1, limits=(-1, 2), friction=0.2, reference=0.3,
        actuator_range=(-3, 4), limit_softness=SOFT, friction_softness=replace(SOFT, margin=0),
    )  # fmt: skip
    bodies = (
        zw.Body("base", zw.Free("base"), mass=2, com=(0.1, 0, 0.2), inertia=INERTIA, geometry=(
            zw.Sphere(0.1, name="ball", position=(0, 0, 0.1), color=(1, 0, 0, 0.5), surface=surface),
            zw.Box(0.1, 0.2, 0.3, name="box", orientation=(0.5, 0.5, 0.5, 0.5)),
            zw.Mesh(name="cone", file="cone.stl", vertices=((0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)),
                    faces=((0, 2, 1), (0, 1, 3), (1, 2, 3), (0, 3, 2))),
        )),
        zw.Body("arm", turn, "base", (0.1, 0.2, 0.3), (0.9, 0.1, 0.2, 0.3), 1.5, (0, 0.1, 0), INERTIA,
                geometry=(zw.Capsule(0.1, 0.4, name="tube"), zw.Ellipsoid(0.1, 0.2, 0.3, visual_only=True))),
        zw.Body("hand", zw.Ball("wrist", limits=(0, 1.5), friction=0.1), "arm", (0, 0, 1), mass=0.5,
                inertia=INERTIA, geometry=(zw.Cylinder(0.05, 0.3, name="drum"),)),
        zw.Body("tip", zw.Fixed(), "hand", (0, 0.3, 0), mass=0.1, inertia=(1e-3, 1e-3, 1e-3)),
        zw.Body("cart", (zw.Prismatic("x", (1, 0, 0), limits=(-1, 1)), zw.Revolute("lean", (0, 1, 0))),
                mass=1, inertia=INERTIA),
    )  # fmt: skip
    tendons = (
        zw.Tendon("belt", joints=(("turn", 1.5), ("lean", -0.5)), stiffness=2, damping=0.3,
                  spring_length=(0.1, 0.2), limits=(-1, 2), friction=0.1, limit_softness=SOFT,
                  friction_softness=replace(SOFT, margin=0)),
        zw.Tendon("rope", path=("eye", "hub", "tail", None, "tail", "knee"), divisors=(1, 2),
                  wraps=(zw.Wrap(1, 0.05, "cylinder", "knee"),)),
    )  # fmt: skip
    constraints = (
        zw.Connect("pin", ("hand", (0, 0, 0.1)), ("cart", (0, 0.2, 0)), SOFT),
        zw.Weld("glue", "arm", "cart", (0.1, 0, 0), (0.6, 0.8, 0, 0), (0, 0.1, 0), 0.7, SOFT),
        zw.JointCoupling("gear", "lean", "turn", (0.1, 2, 0.3), SOFT),
        zw.JointCoupling("stop", "x", None, (0.2,), SOFT),
        zw.TendonCoupling("pulley", "rope", "belt", (0.1, 0.5), SOFT),
    )
    frames = (zw.Frame("eye", "hand", (0.1, 0.1, 0), (0.8, 0.6, 0, 0)), zw.Frame("tail", "cart", (0, 0, 0.4)),
              zw.Frame("knee", "arm", (0.3, 0, 0)), zw.Frame("hub", "arm", (0.1, 0, 0)))  # fmt: skip
    contacts = (
        zw.ContactPair("touch", ("ball", "tube"), 4, (0.5, 0.6, 0.01, 0.001, 0.002), (0.03, 0.8), (0.04, 0.7),
                       (0.8, 0.9, 0.002, 0.4, 3), 0.02, 0.01),
        zw.ContactExclude(("hand", "cart")),
    )  # fmt: skip
    q = (0.1, 0.2, 0.3, 1, 0, 0, 0, 0.4, 1, 0, 0, 0, 0.5, 0.6)
    v = tuple(np.linspace(0.1, 1.2, 12).tolist())
    keyframe = zw.Keyframe("start", q, v, tuple(np.arange(10.0).tolist()), (0.3, 0.4, 0.1, 0.2, 0.5), 1.5)
    options = zw.Options(
        0.003, "implicitfast", "elliptic", 2.0, "cg", 50, 1e-7, True, ("refsafe",), ("energy",)
    )
    return Mechanism(
        "rich", bodies, (0.1, 0.2, -9.7), rich_forces(), constraints, frames,
        (zw.Plane(name="floor", position=(0, 0, -2)),), tendons, contacts,
        home=(1, 2, 3, 0.6, 0.8, 0, 0, 0.7, 1, 0, 0, 0, 0.1, 0.2), keyframes=(keyframe,), options=options,
    )  # fmt: skip


def driven_mechanism(seed: int) -> Mechanism:
    """A random mechanism without screws, with limits, springs, dampers, friction and actuators."""
    kinds = (zw.Revolute, zw.Prismatic, zw.Cylindrical, zw.Universal, zw.Planar, zw.Ball, zw.Free)
    m, rng = random_mechanism(seed, 6, kinds), np.random.default_rng(seed + 1000)
    forces: list = []
    for joint in m.joints:
        forces.append(zw.Damper(joint.name, rng.uniform(0, 1)))
        if joint.joint.nv == 1:
            forces.append(zw.Motor(f"motor {joint.name}", joint.name, rng.normal()))
            forces += [zw.Spring(joint.name, rng.uniform(0, 3), rng.normal()) for _ in range(2)]
        elif joint.kind == "ball":
            forces.append(zw.Spring(joint.name, rng.uniform(0, 3)))
        if joint.kind != "free":
            gear = tuple(rng.normal(size=joint.joint.nv).tolist())
            forces.append(zw.Actuator(f"act {joint.name}", joint.name, gear=gear, gain=(2, 0, 0)))

    def limited(joint):
        if joint.nq > 1:
            return replace(joint, friction=0.1)
        ends = tuple(sorted(rng.normal(size=2).tolist()))
        return replace(joint, limits=ends, friction=0.2, actuator_range=(-5.0, 7.0))

    bodies = [replace(b, joint=tuple(limited(j) for j in b.joints)) if b.joints else b for b in m.bodies]
    frames = [*m.frames, zw.Frame("other", m.bodies[0].name, (0.1, 0.2, 0.3))]
    spring = zw.PointSpring((m.bodies[0].name, (0.1, 0, 0)), ("world", (0.5, 0, 1)), 3, 0.2, 0.1)
    return m.replace(bodies=bodies, forces=(*forces, spring), frames=frames)
