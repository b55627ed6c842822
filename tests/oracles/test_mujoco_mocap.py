"""Mocap bodies as parameters against MuJoCo: contact, weld and joints at a moved body, and keyframes."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

import zwang as zw
from zwang.errors import DescriptionError, FormatError, SimulationError, UnknownNameError
from zwang.io.mjcf.read.read_mjcf import read_mjcf

MODEL = """
<mujoco><option timestep="0.003" iterations="200" tolerance="1e-15" ls_tolerance="1e-10"/>
<worldbody><geom name="floor" type="plane" size="5 5 1"/>
  <body name="target" mocap="true" pos=".3 .1 .5" euler="10 20 30">
    <geom name="table" type="box" size=".1 .1 .1"/><site name="corner" pos=".1 .1 .1"/>
    <body name="child" pos="0 0 .2"><joint name="hinge" axis="0 1 0"/>
      <geom size=".05" mass=".2" pos=".1 0 0" contype="0" conaffinity="0"/></body></body>
  <body name="box" pos=".3 .1 .68"><freejoint/><geom type="box" size=".1 .07 .08" mass="1.3"/></body>
  <body name="held" pos=".8 .1 .5"><freejoint/><geom size=".1" mass="1"/></body></worldbody>
<equality><weld body1="held" body2="target"/></equality>
<sensor><framepos objtype="site" objname="corner"/><gyro site="corner"/>
  <framequat objtype="body" objname="target"/>
  <framequat objtype="body" objname="box" reftype="body" refname="target"/></sensor>
<keyframe><key name="moved" mpos=".2 .3 .6" mquat="0 2 0 0"/><key name="home"/></keyframe></mujoco>"""


def models() -> tuple[mujoco.MjModel, zw.Mechanism]:
    return mujoco.MjModel.from_xml_string(MODEL), read_mjcf("mocap.xml", text=MODEL)


def test_steps_follow_a_moving_mocap_body():
    """A pose that changes at each step, with a quaternion that does not have unit length."""
    model, m = models()
    data, (m, values) = mujoco.MjData(model), zw.with_mocap_parameters(m)
    fast, control, touching = zw.compile(m), np.zeros(m.nv), 0
    q, v = data.qpos.copy(), data.qvel.copy()
    for k in range(8):
        data.mocap_pos[0] += (0.004, 0.002, 0.003)
        data.mocap_quat[0] = (1.4, 0.1 + 0.01 * k, 0.3, 0.2)
        pose = (*data.mocap_pos[0], *data.mocap_quat[0])
        params = dict(zip(values, pose, strict=True))
        found = fast.sensors(q, v, params=params)
        q, v, _ = fast.step(q, v, control, params=params)
        mujoco.mj_step(model, data)
        touching += data.ncon > 0
        assert np.concatenate(list(found.values())) == pytest.approx(data.sensordata, abs=1e-9)
        assert q == pytest.approx(data.qpos, abs=1e-9)
        assert v == pytest.approx(data.qvel, abs=1e-7)
    assert touching


def test_the_poses_of_a_keyframe_are_values():
    _, m = models()
    moved, values = zw.with_mocap_parameters(m, "moved")
    assert list(values.values()) == pytest.approx([0.2, 0.3, 0.6, 0, 1, 0, 0])
    run = zw.simulate(moved, "moved", duration=0.003, params=values, progress=False)
    assert run.sizes["time"] == 2
    with pytest.raises(SimulationError, match=r"'moved' moves mocap body 'target'.*with_mocap_param"):
        zw.simulate(m, "moved", duration=0.003, progress=False)
    assert zw.simulate(m, "home", duration=0.003, progress=False).sizes["time"] == 2
    assert zw.Mechanism.from_json(m.to_json()) == m


def test_the_values_are_those_of_the_file():
    _, m = models()
    moved, values = zw.with_mocap_parameters(m)
    assert set(values) == set(moved.symbols)
    pose = zw.frame_pose(moved.subs(values), np.array(m.home), "corner")
    assert pose.p == pytest.approx(zw.frame_pose(m, np.array(m.home), "corner").p, abs=1e-14)


def test_a_mocap_body_is_fixed_to_the_world():
    with pytest.raises(DescriptionError, match="no joints, and the world as its parent"):
        zw.Body("a", joint=zw.Revolute("j"), mass=1, inertia=(1, 1, 1), mocap=True)
    with pytest.raises(DescriptionError, match="home_pose, which is for bodies with mocap=True only"):
        zw.Body("a", home_pose=((0, 0, 0), (1, 0, 0, 0)))
    with pytest.raises(DescriptionError, match="has no mocap bodies"):
        zw.with_mocap_parameters(zw.Mechanism(bodies=(zw.Body("a"),)))
    once = zw.with_mocap_parameters(zw.Mechanism(bodies=(zw.Body("a", mocap=True),)))
    with pytest.raises(DescriptionError, match="the pose of mocap body 'a' already contains symbols"):
        zw.with_mocap_parameters(once.mechanism)
    pose = ("b", (0, 0, 0), (1, 0, 0, 0))
    with pytest.raises(UnknownNameError, match="no mocap body 'b'"):
        zw.Mechanism(bodies=(zw.Body("a", mocap=True),), keyframes=(zw.Keyframe("k", mocap=(pose,)),))


def test_mocap_bodies_do_not_touch_what_they_carry():
    """A mocap body is a parent, unlike other bodies without joints, whose children touch the world."""
    text = """<mujoco><worldbody><geom name="ground" size="1"/>
      <body name="hand" mocap="true" pos="5 0 0"><geom size="1"/>
        <body name="wrist" pos="0 0 1"><geom size=".5"/>
          <body name="finger" pos="0 0 .9"><joint type="slide"/><geom size="1"/></body></body></body>
      <body name="post" pos="-5 0 0"><geom size="1"/>
        <body name="tip" pos="0 0 1.9"><joint type="slide"/><geom size="1"/></body></body>
    </worldbody></mujoco>"""
    model, m = mujoco.MjModel.from_xml_string(text), read_mjcf("carried.xml", text=text)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    assert data.ncon == 1 and [c.bodies for c in zw.contacts(m, m.home, [0, 0], [0, 0])] == [("post", "tip")]
    found = zw.constrained_dynamics(m, m.home, [0, 0], [0, 0]).acceleration
    assert found == pytest.approx(data.qacc, rel=1e-9)


POINTER = """<mujoco><worldbody><body name="target" mocap="true" pos="0 0 2"><geom size=".1"/></body>
  <body name="arm"><joint name="h" axis="0 1 0"/><geom size=".1" pos=".3 0 0"/></body></worldbody></mujoco>"""


def test_reactions_in_a_mechanism_with_a_mocap_body():
    """The hinge carries what the ball weighs less what it accelerates."""
    mechanism = read_mjcf("pointer.xml", text=POINTER)
    found = zw.joint_reactions(mechanism, [0], [0], [0])
    mass = mechanism.bodies[1].mass
    expected = mass * (9.81 - 0.3 * found.acceleration[0])
    np.testing.assert_allclose(found.joints["h"].force, (0, 0, expected), atol=1e-9)


LEASH = """<mujoco><option gravity="0 0 0" tolerance="1e-15"/><worldbody>
  <body name="hand" mocap="true" pos="0 0 1" euler="10 20 30"><site name="h" pos=".1 0 0"/></body>
  <body name="b" pos=".3 0 0"><joint name="j" axis="0 1 0"/>
    <geom size=".1" pos=".5 0 0" mass="1" contype="0" conaffinity="0"/><site name="s" pos=".5 0 0"/></body>
  </worldbody><tendon><spatial name="t" {tendon}><site site="h"/><site site="s"/></spatial></tendon>
  <equality>{equality}</equality></mujoco>"""


@pytest.mark.parametrize(
    "parts",
    [
        {"tendon": "", "equality": '<tendon tendon1="t"/>'},
        {"tendon": 'limited="true" range="0 .8"', "equality": ""},
        {"tendon": 'frictionloss=".5"', "equality": ""},
    ],
    ids=["equality", "limit", "friction"],
)
def test_a_tendon_on_a_moved_mocap_body_keeps_its_length_and_inverse_weight_at_home(parts, tmp_path):
    text = LEASH.format(**parts)
    model, m = mujoco.MjModel.from_xml_string(text), read_mjcf("leash.xml", text=text)
    data, (moved, values) = mujoco.MjData(model), zw.with_mocap_parameters(m)
    data.mocap_pos[0], data.mocap_quat[0], data.qvel[:] = (0.9, 0, 0.8), (0.8, 0.6, 0, 0), 0.3
    mujoco.mj_forward(model, data)
    params = dict(zip(values, np.hstack([data.mocap_pos, data.mocap_quat]).ravel().tolist(), strict=True))
    placed = zw.Mechanism.from_json(moved.to_json()).subs(params)
    found = zw.constrained_dynamics(placed, data.qpos, data.qvel, [0])
    assert found.acceleration == pytest.approx(data.qacc, rel=1e-9)
    assert np.array(found.rows.R) == pytest.approx(data.efc_R, rel=1e-9)
    q, v, _ = zw.compile(moved).step(data.qpos, data.qvel, [0], params=params)
    mujoco.mj_step(model, data)
    assert (q, v) == (pytest.approx(data.qpos, abs=1e-12), pytest.approx(data.qvel, abs=1e-9))
    with pytest.raises(FormatError, match="the home_pose of body 'hand'"):
        zw.write_mjcf(placed, tmp_path / "placed.xml")
    assert zw.write_mjcf(moved.subs(values), tmp_path / "home.xml")
