"""Transmissions between sites, in the axes of the parent, rotational servos and disabled groups of actuators,
against MuJoCo.
"""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

import zwang as zw
from zwang.errors import DescriptionError, UnknownNameError, UnsupportedError
from zwang.io.mjcf.read.read_mjcf import read_mjcf

MODEL = """
<mujoco><option timestep="0.002" integrator="{integrator}" actuatorgroupdisable="2 5"/>
<worldbody><site name="world" pos=".3 .1 .2" euler="10 50 -20"/>
  <body pos="0 0 1"><joint name="base" axis="1 1 0"/><geom size=".1"/>
    <body pos="0 .2 0"><joint name="first" type="ball"/><geom size=".1"/>
      <site name="r" pos=".1 .2 0" euler="20 30 40"/>
      <body pos=".3 0 0"><joint name="middle" axis="0 1 0"/><geom size=".1"/>
        <body pos=".2 .1 0"><joint name="last" type="ball"/><geom size=".1" pos=".05 0 0"/>
          <site name="s" pos=".1 0 .2" euler="50 10 -30"/></body></body></body></body>
  <body name="flying" pos="0 3 0"><freejoint name="free"/><geom type="box" size=".1 .2 .3"/>
    <site name="f" pos=".1 0 0" euler="0 30 0"/></body></worldbody>
<actuator>
  <general name="turn" site="s" refsite="r" gear="0 0 0 .3 -.2 .5"/>
  <general name="reach" site="s" refsite="r" gear="1 2 3 0 0 0" gaintype="affine" gainprm="1 2 .3"
    biastype="affine" biasprm="1 -2 -.4"/>
  <general name="both" site="f" refsite="world" gear="1 -1 2 .5 .1 .3" biastype="affine" biasprm="0 -3 -.2"/>
  <position name="orient" site="s" refsite="r" gear="0 0 0 0 1 0" kp="2" kv=".3"/>
  <position name="ball" joint="last" gear=".4 .5 .6" kp="3"/>
  <position name="swing" jointinparent="first" gear="-.2 .5 .4" kp="4"/>
  <general name="parent" jointinparent="first" gear="1 2 3" biastype="affine" biasprm="0 -1 -.5"/>
  <general name="thrust" jointinparent="free" gear="1 2 3 4 5 6"/>
  <general name="hinge" jointinparent="middle" gear="2" biastype="affine" biasprm="0 -1 -.5"/>
  <position name="off" joint="middle" kp="50" kv="2" group="2"/>
  <intvelocity name="held" joint="base" kp="9" group="5" forcerange="1 2"/>
</actuator></mujoco>"""


def drawn(model: mujoco.MjModel, seed: int) -> mujoco.MjData:
    """A random state, with set points far outside one turn."""
    rng, data = np.random.default_rng(seed), mujoco.MjData(model)
    data.qpos[:] = rng.normal(size=model.nq)
    mujoco.mj_normalizeQuat(model, data.qpos)
    data.qvel[:] = rng.normal(size=model.nv)
    data.ctrl[:], data.act[:] = 9 * rng.normal(size=model.nu), 9 * rng.normal(size=model.na)
    mujoco.mj_forward(model, data)
    return data


@pytest.mark.parametrize("integrator", ["Euler", "implicitfast"])
def test_forces_and_steps_are_those_of_mujoco(integrator):
    text = MODEL.format(integrator=integrator)
    model, m = mujoco.MjModel.from_xml_string(text), read_mjcf("transmissions.xml", text=text)
    sensors = [zw.ActuatorSensor(f"{k} {n}", k, n) for k in ("position", "force") for n in m.inputs]
    fast = zw.compile(m.replace(sensors=sensors))
    for seed in range(3):
        data = drawn(model, seed)
        values = zw.sensors(fast.mechanism, data.qpos, data.qvel, data.ctrl, data.act)
        expected = [*data.actuator_length, *data.actuator_force]
        assert np.ravel(list(values.values())) == pytest.approx(expected, abs=1e-12, rel=1e-12)
        q, v, z = data.qpos.copy(), data.qvel.copy(), data.act.copy()
        for _ in range(5):
            q, v, z = fast.step(q, v, data.ctrl, activation=z)
            mujoco.mj_step(model, data)
        for found, wanted in ((q, data.qpos), (v, data.qvel), (z, data.act)):
            scale = max(1.0, np.abs(wanted).max())
            assert found == pytest.approx(wanted, abs=1e-8 * scale)


def test_transmissions_are_written_and_read_again(tmp_path):
    text = MODEL.format(integrator="Euler")
    m = read_mjcf("transmissions.xml", text=text)
    zw.write_mjcf(m, tmp_path / "again.xml", strict=False)
    again = mujoco.MjModel.from_xml_path(str(tmp_path / "again.xml"))
    data, model = drawn(again, 1), mujoco.MjModel.from_xml_string(text)
    assert data.qfrc_actuator == pytest.approx(drawn(model, 1).qfrc_actuator, abs=1e-9)
    assert zw.Mechanism.from_json(m.to_json()) == m


def test_rotational_servos_with_an_activation_are_rejected():
    text = MODEL.format(integrator="Euler").replace('position name="ball"', 'intvelocity name="ball"')
    with pytest.raises(
        UnsupportedError, match="actuator 'ball' with a rotational set point with an activation"
    ):
        read_mjcf("transmissions.xml", text=text)


def test_references_are_checked():
    m = read_mjcf("transmissions.xml", text=MODEL.format(integrator="Euler"))
    with pytest.raises(DescriptionError, match="has a reference; give also frame"):
        zw.Actuator("a", joint="middle", reference="r")
    with pytest.raises(UnknownNameError, match="no frame 'nowhere'"):
        m.replace(forces=[zw.Actuator("a", frame="s", gear=(1,), reference="nowhere")])


UNACTUATED = """
<mujoco><option timestep="0.002" integrator="{integrator}"><flag actuation="disable"/></option>
<worldbody><body gravcomp=".7"><joint name="base" axis="1 1 0" damping=".1"/><geom size=".1"/>
  <body pos="0 .2 0" gravcomp=".5">
    <joint name="ball" type="ball" actuatorgravcomp="true"/><geom size=".1"/>
    <body pos=".3 0 0" gravcomp=".9"><joint name="last" axis="0 1 0" actuatorgravcomp="true"
      actuatorfrcrange="1 2"/><geom size=".1" pos=".1 0 0"/></body></body></body></worldbody>
<tendon><fixed name="t"><joint joint="base" coef="2"/></fixed></tendon>
<actuator>
  <position name="servo" joint="last" kp="30" kv="2" forcerange="1 3"/>
  <motor name="motor" joint="base" gear="5"/>
  <intvelocity name="integrated" joint="base" kp="9" actrange=".1 .2"/>
  <muscle name="muscle" tendon="t" lengthrange="-1 1"/>
</actuator>
<sensor><actuatorfrc actuator="servo"/><actuatorpos actuator="servo"/><actuatorvel actuator="muscle"/>
  <actuatorfrc actuator="muscle"/><jointactuatorfrc joint="last"/><tendonactuatorfrc tendon="t"/></sensor>
<keyframe><key name="up" qpos=".3 1 0 0 0 .2" ctrl=".3 .1 .2 .4" act=".7 .6"/></keyframe></mujoco>"""


@pytest.mark.parametrize("integrator", ["Euler", "implicitfast", "RK4"])
def test_actuators_without_actuation_are_those_of_mujoco(integrator):
    """Actuators have inputs, lengths and activations, and no force, also not that of compensated gravity."""
    text = UNACTUATED.format(integrator=integrator)
    model, m = mujoco.MjModel.from_xml_string(text), read_mjcf("unactuated.xml", text=text)
    fast = zw.compile(m)
    assert (len(m.inputs), m.keyframe("up").control) == (model.nu, (0.3, 0.1, 0.2, 0.4))
    for seed in range(3):
        data = drawn(model, seed)
        values = zw.sensors(m, data.qpos, data.qvel, data.ctrl, data.act)
        assert np.ravel(list(values.values())) == pytest.approx(data.sensordata, abs=1e-12)
        q, v, z = data.qpos.copy(), data.qvel.copy(), data.act.copy()
        for _ in range(5):
            q, v, z = fast.step(q, v, data.ctrl, activation=z)
            mujoco.mj_step(model, data)
        for found, wanted in ((q, data.qpos), (v, data.qvel), (z, data.act)):
            assert found == pytest.approx(wanted, abs=1e-8)


def test_actuators_without_actuation_are_written_and_read_again(tmp_path):
    text = UNACTUATED.format(integrator="Euler").replace('actuatorgravcomp="true"/>', "/>")
    m = read_mjcf("unactuated.xml", text=text)
    zw.write_mjcf(m, tmp_path / "again.xml")
    model, again = (
        mujoco.MjModel.from_xml_string(text),
        mujoco.MjModel.from_xml_path(str(tmp_path / "again.xml")),
    )
    data, other = drawn(model, 1), drawn(again, 1)
    assert other.qacc == pytest.approx(data.qacc, abs=1e-9)
    assert other.sensordata == pytest.approx(data.sensordata, abs=1e-9)
    read = zw.load(tmp_path / "again.xml")
    assert (read.forces, read.options.disabled) == (m.forces, m.options.disabled)


@pytest.mark.parametrize("joint", ["ball", "free"])
def test_gravity_compensation_by_actuators_without_actuation_is_written_and_read_again(tmp_path, joint):
    """The flag leaves it out on joints of several speeds, too, where MJCF has no range of actuator forces."""
    (tmp_path / "first.xml").write_text(
        f"""<mujoco><option><flag actuation="disable"/></option><worldbody>
        <body pos="0 0 1" gravcomp="1"><joint type="{joint}" actuatorgravcomp="true"/>
        <geom size=".1" mass="1" pos=".3 0 0"/></body></worldbody></mujoco>"""
    )
    zw.write_mjcf(zw.load(tmp_path / "first.xml"), tmp_path / "again.xml")
    accelerations = []
    for name in ("first", "again"):
        m = mujoco.MjModel.from_xml_path(str(tmp_path / f"{name}.xml"))
        d = mujoco.MjData(m)
        mujoco.mj_forward(m, d)
        fast = zw.compile(zw.load(tmp_path / f"{name}.xml"))
        after = fast.step(d.qpos, d.qvel, np.zeros(m.nv), step=1e-3, integrator="euler")[1] / 1e-3
        accelerations += [d.qacc.copy(), after]
    for found in accelerations[1:]:
        np.testing.assert_allclose(found, accelerations[0], atol=1e-9)
    assert np.abs(accelerations[0]).max() > 9
