"""Tendons wrapped around spheres and cylinders, against MuJoCo's lengths and moment arms and closed forms."""

import mujoco
import numpy as np
import pytest

from zwang.compiler.frontend.trace import trace
from zwang.compiler.ir.interpreter import interpret
from zwang.io.mjcf.read.read_mjcf import read_mjcf
from zwang.kinematics.kinematics import Kinematics
from zwang.kinematics.poses import Pose
from zwang.kinematics.tendon_length import tendon_length
from zwang.kinematics.wrapping import WrapShape, wrap_around


def model(rng, kind, side):
    """A tendon from the world past a moving geom to a moving body, with a side site that is outside of the
    geom.
    """
    a, b, s = rng.normal(size=(3, 3)) * 0.6
    s = s / np.linalg.norm(s[:2]) * 0.8
    sidesite = 'sidesite="s"' if side else ""
    return f"""<mujoco><compiler angle="radian"/><worldbody><site name="a" pos="{a[0]} {a[1]} {a[2]}"/>
    <body pos=".1 .2 .3"><joint axis="1 2 3"/><joint type="slide"/><geom name="g" type="{kind}" size=".4 .3"/>
    <site name="s" pos="{s[0]} {s[1]} {s[2]}"/></body>
    <body><joint axis="3 2 1" pos=".2 0 0"/><geom size=".1" pos="1 0 0"/>
    <site name="b" pos="{b[0]} {b[1]} {b[2]}"/></body>
    </worldbody><tendon><spatial name="t"><site site="a"/><geom geom="g" {sidesite}/>
    <site site="b"/></spatial></tendon></mujoco>"""


@pytest.mark.parametrize("side", [False, True], ids=["shorter way", "by the side"])
@pytest.mark.parametrize("kind", ["sphere", "cylinder"])
def test_lengths_and_moment_arms_equal_mujoco(kind, side):
    rng = np.random.default_rng(8)
    bent = 0
    for _ in range(40):
        xml = model(rng, kind, side)
        reference = mujoco.MjModel.from_xml_string(xml)
        data = mujoco.MjData(reference)
        data.qpos[:] = rng.normal(size=3)
        mujoco.mj_forward(reference, data)
        mechanism = read_mjcf("wrap.xml", text=xml)
        length, moment = tendon_length(
            mechanism, mechanism.tendons[0], Kinematics(mechanism.tree, data.qpos.copy())
        )
        J = np.zeros(reference.nv)
        rows = data.ten_J.ravel()[: len(reference.ten_J_colind)]
        J[reference.ten_J_colind[: len(rows)]] = rows
        assert abs(length - data.ten_length[0]) < 1e-12
        assert np.abs(np.array(moment, float) - J).max() < 1e-12
        bent += data.ten_wrapnum[0] > 2
    assert bent >= 2


def test_a_path_over_a_pulley_is_two_tangents_and_an_arc():
    r, d = 0.5, 2.0
    first, last = np.array([-d, 0, 0.0]), np.array([d, 0, 0.0])
    segment = wrap_around(
        WrapShape("cylinder", r), Pose(np.eye(3), np.zeros(3)), first, last, np.array([0, 1.0, 0])
    )
    tangent = np.arccos(r / d)
    assert segment.touches and segment.length == pytest.approx(r * (np.pi - 2 * tangent))
    assert np.allclose(segment.first, [-r * np.cos(tangent), r * np.sin(tangent), 0])


def test_the_unrolled_path_around_a_cylinder_is_straight():
    first, last = np.array([-1.0, 0.1, 0]), np.array([1.0, 0.1, 1.0])
    segment = wrap_around(WrapShape("cylinder", 0.5), Pose(np.eye(3), np.zeros(3)), first, last, None)
    slopes = []
    for a, b in ((first, segment.first), (segment.first, segment.last), (segment.last, last)):
        flat = (
            np.hypot(*(b - a)[:2]) if b is not segment.last else np.sqrt(segment.length**2 - (b - a)[2] ** 2)
        )
        slopes.append((b - a)[2] / flat)
    assert np.allclose(slopes, slopes[0])


@pytest.mark.parametrize("kind", ["sphere", "cylinder"])
def test_traced_paths_equal_those_of_floats(kind):
    def numbers(x):
        segment = wrap_around(WrapShape(kind, 0.4), Pose(np.eye(3), np.zeros(3)), x[:3], x[3:6], x[6:9])
        return np.array([*segment.first, *segment.last, segment.length], dtype=object)

    program = trace(numbers, {"x": (9,)})
    states = np.random.default_rng(5).normal(size=(30, 9))
    floats = np.array([[float(y) for y in numbers(x)] for x in states])
    assert np.abs(interpret(program, {"x": states})["out"].reshape(floats.shape) - floats).max() < 1e-12


def test_a_path_through_the_centre_is_finite():
    for kind in ("sphere", "cylinder"):
        segment = wrap_around(
            WrapShape(kind, 0.4),
            Pose(np.eye(3), np.zeros(3)),
            np.array([1.0, 0, 0]),
            np.array([-1.0, 0, 0]),
            None,
        )
        assert np.isfinite([*segment.first, *segment.last, segment.length]).all()
