"""What is possible and hardly meant is said, and nothing is said of what is plain."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import zwang as zw
from zwang.mechanism.mechanism import Mechanism


def arm(joint: Any = None, **changes: Any) -> Mechanism:
    """A hinge with an arm; `changes` of the body."""
    settings = {"mass": 1, "com": (0, 0, -0.5), "inertia": (0.1, 0.1, 0.1), **changes}
    return zw.Mechanism("m", [zw.Body("arm", joint or zw.Revolute("shoulder"), **settings)])


def big_mesh() -> zw.Mesh:
    points = 1000 * np.array([(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)])
    return zw.Mesh(vertices=points, faces=[(0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3)], file="big.stl")


PLAUSIBLE = [
    arm(),
    arm(zw.Revolute("shoulder", limits=(-3.1, 3.1))),
    arm(zw.Revolute("shoulder", limits=(-1e10, 1e10))),
    arm(zw.Prismatic("shoulder", limits=(-90, 90))),
    arm(geometry=(zw.Box(x=0.1, y=0.1, z=0.1),)),
    arm(geometry=(zw.Plane(),)),
]
IMPLAUSIBLE = [
    (arm(mass=1e300), "the mass of body 'arm' is 1e\\+300 kg"),
    (arm(com=(250, 0, 0)), "centre of mass .com. of body 'arm' is 250 m"),
    (arm(inertia=(1e5, 1e5, 1e5)), "inertia of body 'arm'"),
    (arm(zw.Revolute("shoulder", limits=(-90, 90))), "'shoulder'.*degrees"),
    (arm(geometry=(big_mesh(),)), "'big.stl'.*millimetres"),
    (arm(geometry=(zw.Box(x=200, y=1, z=1),)), "200 m large"),
    (arm(mass=1000, geometry=(zw.Box(x=0.01, y=0.01, z=0.01),)), "density of 1e\\+09"),
    (arm().replace(gravity=(0, 0, -9810)), "gravity"),
    (arm().replace(options=zw.Options(timestep=100)), "timestep"),
]


@pytest.mark.parametrize("mechanism", PLAUSIBLE)
def test_nothing_is_said_of_what_is_plain(mechanism: Mechanism) -> None:
    assert zw.lint(mechanism) == ()


@pytest.mark.parametrize(("mechanism", "message"), IMPLAUSIBLE)
def test_what_is_hardly_meant_is_said(mechanism: Mechanism, message: str) -> None:
    (note,) = zw.lint(mechanism)
    assert note.kind == "implausible"
    assert note.where
    assert re.search(message, note.what)


def test_couples_in_a_cycle_are_said() -> None:
    bodies = [
        zw.Body(name, zw.Revolute(f"j{name}"), mass=1, com=(0.1, 0, 0), inertia=(1, 1, 1)) for name in "abc"
    ]
    couples = [zw.Couple(f"{j} follows {k}", f"j{j}", f"j{k}") for j, k in ("ab", "bc", "ca")]
    (note,) = zw.lint(zw.Mechanism("m", bodies, constraints=couples))
    assert "ja -> jb -> jc -> ja" in note.what


def test_symbols_are_left_alone() -> None:
    symbolic = zw.Mechanism("m", arm().bodies)
    heavy = arm(mass=1e9)
    assert zw.lint(heavy)
    assert not zw.lint(_with_symbolic_mass(symbolic))


def _with_symbolic_mass(mechanism: Mechanism) -> Mechanism:
    (body,) = mechanism.bodies
    return mechanism.replace(
        bodies=[zw.Body("arm", body.joint, mass=zw.scalar.symbol("m"), inertia=(1, 1, 1))]
    )
