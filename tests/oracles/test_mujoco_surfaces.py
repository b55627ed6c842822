"""Contacts of surfaces whose material moves, against MuJoCo, and the speed of a box on a conveyor belt."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

import zwang as zw
from zwang.errors import DescriptionError, UnsupportedError
from zwang.io.mjcf.read.read_mjcf import read_mjcf

XML = """<mujoco><option cone="{cone}" tolerance="1e-14" iterations="200" timestep="0.002"/>
<default><geom condim="{condim}" friction=".6 .02 .01"/></default>
<worldbody>
<geom name="belt" type="box" size="2 1 .1" pos="0 0 -.1" euler="0 0 20" surfacevel=".5 .3 2 0 0 .7"/>
<geom name="floor" type="plane" size="5 5 .1" pos="0 0 -.3"/>
<body name="a" pos="0 0 .095"><freejoint/><geom type="box" size=".1 .2 .1"/></body>
<body name="b" pos=".5 .2 .099"><freejoint/><geom name="ball" size=".1" surfacevel="0 .2 0 1 2 3"/></body>
<body name="c" pos="-.5 0 .049"><joint type="slide" axis="1 0 0"/><joint axis="0 1 0"/>
  <joint type="slide" axis="0 0 1"/>
  <geom type="capsule" size=".05 .1" euler="90 0 0"/>
  <body name="d" pos="0 0 .4"><joint type="ball"/><geom size=".05"/></body></body>
<body name="e" pos=".5 .2 .297"><freejoint/><geom size=".1" surfacevel="0 0 0 0 .4 0"/></body>
</worldbody></mujoco>"""


@pytest.mark.parametrize(("cone", "condim"), [("pyramidal", 3), ("pyramidal", 6), ("elliptic", 4)])
def test_accelerations_equal_mujoco(cone, condim):
    xml = XML.format(cone=cone, condim=condim)
    m, model = read_mjcf("belt.xml", text=xml), mujoco.MjModel.from_xml_string(xml)
    model.opt.tolerance, model.opt.iterations = 1e-15, 300
    rng = np.random.default_rng(1)
    for _ in range(2):
        data = mujoco.MjData(model)
        data.qvel[:] = 0.1 * rng.normal(size=model.nv)
        mujoco.mj_forward(model, data)
        assert data.ncon >= 7
        found = zw.constrained_dynamics(m, data.qpos.copy(), data.qvel.copy(), np.zeros(m.nv))
        np.testing.assert_allclose(found.acceleration, data.qacc, rtol=1e-7, atol=1e-7)


def test_compiled_steps_equal_mujoco():
    xml = XML.format(cone="pyramidal", condim=3)
    m, model = read_mjcf("belt.xml", text=xml), mujoco.MjModel.from_xml_string(xml)
    data, fast = mujoco.MjData(model), zw.compile(m)
    end = fast.rollout(data.qpos.copy(), data.qvel.copy(), np.zeros(m.nv), steps=20)
    mujoco.mj_step(model, data, nstep=20)
    assert abs(data.qvel).max() > 0.05
    np.testing.assert_allclose(end[0][-1], data.qpos, atol=1e-8)
    np.testing.assert_allclose(end[1][-1], data.qvel, atol=1e-7)


def test_a_box_moves_with_the_belt(tmp_path):
    """The friction brings the box to the velocity of the belt."""
    belt = zw.Box(4, 2, 0.2, position=(0, 0, -0.1), surface=zw.Surface(velocity=(0.5, 0, 0, 0, 0, 0)))
    box = zw.Body("box", zw.Free("f"), position=(0, 0, 0.1), geometry=[zw.Box(0.2, 0.2, 0.2)], mass=1,
                  inertia=(0.01, 0.01, 0.01))  # fmt: skip
    m = zw.Mechanism("belt", [box], geometry=[belt])
    q, v = np.array(m.neutral, float), np.zeros(6)
    q[2] = 0.1
    end = zw.compile(m).rollout(q, v, np.zeros(6), steps=1000)
    speed = (end[0][-1][0] - end[0][-2][0]) / m.options.timestep
    np.testing.assert_allclose(speed, 0.5, atol=1e-3)
    zw.write_mjcf(m, tmp_path / "belt.xml")
    assert zw.load(tmp_path / "belt.xml").geometry[0].surface == belt.surface


def test_hard_surfaces_do_not_move():
    with pytest.raises(DescriptionError, match="hard surface has a velocity"):
        zw.Surface(hard=True, velocity=(1, 0, 0, 0, 0, 0))
    ball = zw.Body("ball", zw.Free("f"), mass=1, inertia=(1, 1, 1),
                   geometry=[zw.Sphere(0.1, surface=zw.Surface(hard=True))])  # fmt: skip
    m = zw.Mechanism(bodies=[ball], geometry=[zw.Plane(surface=zw.Surface(velocity=(1, 0, 0, 0, 0, 0)))])
    with pytest.raises(UnsupportedError, match="is hard, and one surface has a velocity"):
        zw.constrained_dynamics(m, m.neutral, np.zeros(6), np.zeros(6))
