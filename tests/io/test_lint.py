"""Plausibility checks: implausible values are noted, plausible ones are not."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import zwang as zw
from zwang.mechanism.mechanism import Mechanism


def arm(joint: Any = None, **changes: Any) -> Mechanism:
    """An arm on a revolute joint; `changes` are fields of the body."""
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
def test_plausible_mechanisms_have_no_notes(mechanism: Mechanism) -> None:
    assert zw.lint(mechanism) == ()


@pytest.mark.parametrize(("mechanism", "message"), IMPLAUSIBLE)
def test_implausible_values_are_noted(mechanism: Mechanism, message: str) -> None:
    (note,) = zw.lint(mechanism)
    assert note.kind == "implausible"
    assert note.where
    assert re.search(message, note.what)


def test_cyclic_joint_couplings_are_noted() -> None:
    bodies = [
        zw.Body(name, zw.Revolute(f"j{name}"), mass=1, com=(0.1, 0, 0), inertia=(1, 1, 1)) for name in "abc"
    ]
    couplings = [zw.JointCoupling(f"{j} follows {k}", f"j{j}", f"j{k}") for j, k in ("ab", "bc", "ca")]
    (note,) = zw.lint(zw.Mechanism("m", bodies, constraints=couplings))
    assert "ja -> jb -> jc -> ja" in note.what


def test_symbolic_values_are_not_checked() -> None:
    symbolic = zw.Mechanism("m", arm().bodies)
    heavy = arm(mass=1e9)
    assert zw.lint(heavy)
    assert not zw.lint(_with_symbolic_mass(symbolic))


def _with_symbolic_mass(mechanism: Mechanism) -> Mechanism:
    (body,) = mechanism.bodies
    return mechanism.replace(
        bodies=[zw.Body("arm", body.joint, mass=zw.scalar.symbol("m"), inertia=(1, 1, 1))]
    )


# ----------------------------------------------------------------------------- contradictions and conventions


def pair(**changes: Any) -> Mechanism:
    """Two revolute joints on the world."""
    solid = {"mass": 1, "com": (0.1, 0, 0), "inertia": (1, 1, 1)}
    bodies = [zw.Body(name, zw.Revolute(f"j{name}", limits=(-1, 1)), **solid) for name in "ab"]
    return zw.Mechanism("pair", bodies, **changes)


A, B, OFF = ("a", (0.1, 0, 0)), ("b", (0, 0, 0)), ("a", (0.3, 0, 0))
CONTRADICTING = [
    (
        [zw.JointCoupling("c", "ja", "jb", (0, 1)), zw.JointCoupling("d", "ja", "jb", (0, 2))],
        "'c' and 'd' contradict",
    ),
    (
        [zw.JointCoupling("c", "ja", None, (0.1,)), zw.JointCoupling("d", "ja", None, (0.2,))],
        "'c' and 'd' contradict",
    ),
    ([zw.JointCoupling("c", "ja", None, (1.5,))], "'c' requires joint 'ja' at 1.5"),
    ([zw.JointCoupling("c", "ja", "jb", (5, 1))], "'c' requires joint 'ja' between 4 and 6"),
    ([zw.Distance("c", A, B, 1.0), zw.Distance("d", B, A, 2.0)], "'c' and 'd' contradict"),
    ([zw.Distance("c", A, B, 1.0), zw.Connect("d", A, B)], "'c' and 'd' contradict"),
    ([zw.Distance("c", A, OFF, 0.3)], "'c' cannot be satisfied.*0.2 m apart"),
    ([zw.Connect("c", A, OFF)], "'c' cannot be satisfied.*0.2 m apart"),
    ([zw.Weld("c", "a", "b"), zw.Weld("d", "a", "b", position=(0, 0, 1))], "'c' and 'd' contradict"),
]
CONSISTENT = [
    [zw.JointCoupling("c", "ja", "jb", (0, 1)), zw.JointCoupling("d", "ja", "jb", (0, 1, 0))],
    [zw.JointCoupling("c", "ja", "jb", (1.9, 1)), zw.Distance("d", A, B, 1.0), zw.Distance("e", A, B, 1.0)],
    [
        zw.Distance("c", A, OFF, 0.2),
        zw.Connect("d", A, A),
        zw.Connect("e", A, B),
        zw.JointCoupling("f", "ja", None, (1.0,)),
    ],
    [zw.Distance("c", A, B, zw.scalar.symbol("L")), zw.Distance("d", A, B, 1.0)],
]


@pytest.mark.parametrize(("constraints", "message"), CONTRADICTING)
def test_contradictory_constraints_are_noted(constraints: list[Any], message: str) -> None:
    (note,) = zw.lint(pair(constraints=constraints))
    assert re.search(message, note.what) and note.where


@pytest.mark.parametrize("constraints", CONSISTENT)
def test_consistent_constraints_have_no_notes(constraints: list[Any]) -> None:
    assert zw.lint(pair(constraints=constraints)) == ()


def test_mirrored_meshes_are_noted() -> None:
    mesh = big_mesh()
    small = {"vertices": np.asarray(mesh.vertices) / 1000, "faces": mesh.faces, "file": "small.stl"}
    for scale, mirrored in (
        ((1, 1, 1), False),
        ((-1, 1, 1), True),
        ((-1, -1, 1), False),
        ((-1, -1, -1), True),
    ):
        messages = [note.what for note in zw.lint(arm(geometry=(zw.Mesh(**small, scale=scale),)))]
        assert bool(messages) == mirrored and all(
            "'small.stl'" in what and "mirrored" in what for what in messages
        )


def test_quaternions_in_another_order_are_noted() -> None:
    free = arm(zw.Free("root"))
    assert not zw.lint(free.replace(home=(0, 0, 1, 1, 0, 0, 0)))
    (note,) = zw.lint(free.replace(home=(0, 0, 1, 0, 0, 0, 1)))
    assert "(w, x, y, z)" in note.what and note.where == "home"
    (note,) = zw.lint(free.replace(keyframes=[zw.Keyframe("up", q=(0, 0, 1, 0, 0, 0, 1))]))
    assert note.where == "keyframe 'up'"


def test_plausibility_warnings_of_files_state_the_line(
    tmp_path: Any,
) -> None:
    path = tmp_path / "a.xml"
    path.write_text(
        '<mujoco><asset>\n<mesh name="m" vertex="0 0 0 1 0 0 0 1 0 0 0 1" scale="-1 1 1"/>'
        "</asset><worldbody>\n"
        '<body quat="0 0 0 1"><freejoint/><geom type="mesh" mesh="m"/></body></worldbody></mujoco>'
    )
    with pytest.warns(zw.errors.PlausibilityWarning) as caught:
        zw.load(path)
    messages = [str(warning.message) for warning in caught]
    assert any("line 2" in text and "mirrored" in text for text in messages)
    assert any("line 3" in text and "(x, y, z, w)" in text for text in messages)
