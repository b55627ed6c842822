"""Every kind of sensor against MuJoCo's sensordata, in random states with and without contacts."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

import zwang as zw
from tests.oracles.sensor_models import (
    EQUALITIES,
    contact_sensors,
    coordinate_sensors,
    frame_sensors,
    geometry_sensors,
    model_text,
    mounted_sensors,
    random_data,
)
from zwang.errors import DescriptionError, UnsupportedError
from zwang.io.mjcf.read.read_mjcf import read_mjcf

SENSORS = {
    "mounted": mounted_sensors(),
    "coordinate": coordinate_sensors(),
    "frame": frame_sensors(),
    "geometry": geometry_sensors(),
    "contact": contact_sensors(),
}

NEAREST_POINTS = (mujoco.mjtSensor.mjSENS_GEOMNORMAL, mujoco.mjtSensor.mjSENS_GEOMFROMTO)


def values_of(m: zw.Mechanism, data: mujoco.MjData) -> dict[str, np.ndarray]:
    return zw.sensors(m, data.qpos, data.qvel, data.ctrl, data.act, data.time)


def largest_difference(
    m: zw.Mechanism, model: mujoco.MjModel, data: mujoco.MjData
) -> tuple[float, mujoco.mjtSensor]:
    """The largest difference relative to the sensor's size, and the type of its sensor.

    A quaternion and its opposite are the same orientation. Both programs find the nearest points of smooth
    shapes by iteration; at a distance with an error of 1e-14 the direction has one of 1e-7.
    """
    worst = (-1.0, mujoco.mjtSensor.mjSENS_USER)
    for i, found in enumerate(values_of(m, data).values()):
        start, kind = model.sensor_adr[i], mujoco.mjtSensor(model.sensor_type[i])
        expected = data.sensordata[start : start + model.sensor_dim[i]]
        if kind == mujoco.mjtSensor.mjSENS_FRAMEQUAT and found @ expected < 0:
            found = -found
        scale = max(1.0, float(np.abs(expected).max()))
        scale *= 100 if kind in NEAREST_POINTS else 1
        worst = max(worst, (float(np.abs(found - expected).max()) / scale, kind), key=lambda x: x[0])
    return worst


@pytest.mark.parametrize("group", SENSORS)
@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
def test_sensors_are_those_of_mujoco(group, cone):
    text = model_text(SENSORS[group], cone)
    model, m = mujoco.MjModel.from_xml_string(text), read_mjcf("sensors.xml", text=text)
    touching = 0
    for seed in range(4):
        data = random_data(model, seed)
        touching += data.ncon > 0
        error, kind = largest_difference(m, model, data)
        assert error < (1e-7 if cone == "elliptic" else 1e-8), kind
    assert touching >= 2


@pytest.mark.parametrize("seed", range(3))
def test_forces_and_torques_contain_constraints_and_tendons(seed):
    text = model_text(mounted_sensors(), equalities=EQUALITIES)
    model, m = mujoco.MjModel.from_xml_string(text), read_mjcf("sensors.xml", text=text)
    error, kind = largest_difference(m, model, random_data(model, seed))
    assert error < 1e-8, kind


def with_few_pairs(text):
    """The model in which a box and spheres touch the floor and each other; the other shapes, which touch
    nothing in these states, would take most of the time of the compiler.
    """
    for name in ("post", "ge", "gb", "gfix"):
        text = text.replace(f'<geom name="{name}"', f'<geom name="{name}" contype="0" conaffinity="0"')
    return text


def test_compiled_sensors_are_those_on_floats():
    geometric = [s for s in geometry_sensors() if 'cutoff="0"' not in s and "normal" not in s]
    pairs = [s for s in geometric if "geom1=" in s]
    rays = [s for s in geometric if s not in pairs]
    sensors = [*mounted_sensors(), *coordinate_sensors(), *frame_sensors()[::7], *rays[::5], *pairs[::13]]
    text = with_few_pairs(model_text([*sensors, *contact_sensors(("maxforce", "netforce"))[::5]]))
    model, m = mujoco.MjModel.from_xml_string(text), read_mjcf("sensors.xml", text=text)
    states = [random_data(model, seed) for seed in range(3)]
    given = [np.array([getattr(d, name) for d in states]) for name in ("qpos", "qvel", "ctrl", "act")]
    found = zw.compile(m).sensors(*given, 0.7)
    for k, data in enumerate(states):
        for name, expected in values_of(m, data).items():
            scale = max(1.0, float(np.abs(expected).max()))
            assert found[name][k] == pytest.approx(expected, abs=1e-9 * scale), name


def test_velocities_and_accelerations_of_frames_are_those_of_mujoco():
    text = model_text(frame_sensors())
    model, m = mujoco.MjModel.from_xml_string(text), read_mjcf("sensors.xml", text=text)
    data = random_data(model, 3)
    mujoco.mj_rnePostConstraint(model, data)
    for kind, name in (("SITE", "sb"), ("XBODY", "c"), ("XBODY", "f")):
        for axes, local in (("world", 0), ("body", 1)):
            expected, index = np.zeros(6), model.site(name).id if kind == "SITE" else model.body(name).id
            type_ = getattr(mujoco.mjtObj, f"mjOBJ_{kind}")
            mujoco.mj_objectVelocity(model, data, type_, index, expected, local)
            found = zw.frame_velocity(m, data.qpos, data.qvel, name, axes)
            assert found == pytest.approx(np.roll(expected, 3), abs=1e-12)
            mujoco.mj_objectAcceleration(model, data, type_, index, expected, local)
            found = zw.frame_acceleration(m, data.qpos, data.qvel, data.qacc, name, axes)
            gravity = np.array(m.gravity)
            if local:
                gravity = zw.frame_pose(m, data.qpos, name).R.T @ gravity
            scale = np.abs(expected).max()
            assert found[:3] - gravity == pytest.approx(expected[3:], abs=1e-9 * scale)
            assert found[3:] == pytest.approx(expected[:3], abs=1e-9 * scale)


def test_quantities_of_bodies_are_those_of_mjdata():
    text = with_few_pairs(model_text([]))
    model, m = mujoco.MjModel.from_xml_string(text), read_mjcf("sensors.xml", text=text)
    fast, touching = zw.compile(m), 0
    for seed in (0, 3):
        data = random_data(model, seed)
        touching += data.ncon
        mujoco.mj_rnePostConstraint(model, data)
        for found in (
            zw.body_quantities(m, data.qpos, data.qvel),
            fast.body_quantities(data.qpos, data.qvel),
        ):
            assert len(str(found)) < 90
            assert found.com[1:] == pytest.approx(data.xipos[1:], abs=1e-12)
            assert found.subtree_com == pytest.approx(data.subtree_com, abs=1e-12)
            assert found.cinert[1:] == pytest.approx(data.cinert[1:], abs=1e-12)
            assert found.cvel == pytest.approx(data.cvel, abs=1e-12)
        inputs = (data.qpos, data.qvel, data.ctrl, data.act, data.time)
        scale = max(1.0, float(np.abs(data.cfrc_ext).max()))
        for found in (zw.external_wrenches(m, *inputs), fast.external_wrenches(*inputs)):
            assert found == pytest.approx(data.cfrc_ext, abs=1e-8 * scale)
    assert touching


@pytest.mark.parametrize("seed", [0, 2])
def test_applied_wrenches_are_the_xfrc_applied_of_mujoco(seed):
    """The acceleration, the sensors of forces and cfrc_ext, with a wrench on two bodies."""
    text = model_text(mounted_sensors())
    model, m = mujoco.MjModel.from_xml_string(text), read_mjcf("sensors.xml", text=text)
    m = zw.with_applied_wrenches(m, "c", "f")
    data, wrenches = random_data(model, seed), np.random.default_rng(seed).normal(size=(2, 6)) * 3
    for name, wrench in zip(("c", "f"), wrenches, strict=True):
        data.xfrc_applied[model.body(name).id] = wrench
    mujoco.mj_forward(model, data)
    mujoco.mj_rnePostConstraint(model, data)
    assert m.inputs[-12:-10] == ("c.fx", "c.fy")
    given = (data.qpos, data.qvel, np.concatenate([data.ctrl, *wrenches]), data.act, data.time)
    found = np.concatenate(list(zw.sensors(m, *given).values()))
    assert found == pytest.approx(data.sensordata, abs=1e-8 * np.abs(data.sensordata).max())
    scale = np.abs(data.cfrc_ext).max()
    assert zw.external_wrenches(m, *given) == pytest.approx(data.cfrc_ext, abs=1e-8 * scale)
    with pytest.raises(DescriptionError, match=r"has the input 'c\.fx' already"):
        zw.with_applied_wrenches(m, "c")


def test_disabled_sensors_are_zero():
    text = model_text(['<gyro site="sa"/>']).replace(
        "<worldbody>", '<option><flag sensor="disable"/></option><worldbody>', 1
    )
    m = read_mjcf("sensors.xml", text=text)
    assert not values_of(m, random_data(mujoco.MjModel.from_xml_string(text), 0))["sensor0"].any()


@pytest.mark.parametrize(
    ("sensor", "words"),
    [
        ('<torque site="w"/>', "site of the world"),
        ('<rangefinder camera="eye"/>', "depth images"),
        ('<gyro site="sa" delay=".01" nsample="4"/>', "delay"),
        ('<contact data="linvel" geom1="gf"/>', "other data"),
        ('<framepos objtype="camera" objname="moving"/>', "moving camera"),
    ],
)
def test_what_a_sensor_cannot_do_is_rejected_by_name_and_line(sensor, words):
    named = sensor.replace("/>", ' name="mine"/>')
    moving = '<camera name="moving" mode="track"/><site name="sf"'
    text = model_text([named]).replace('<site name="sf"', moving, 1)
    line = 1 + text[: text.index('name="mine"')].count("\n")
    with pytest.raises(UnsupportedError, match=rf"sensors.xml, line {line}: sensor 'mine' .*{words}"):
        read_mjcf("sensors.xml", text=text)
    m = read_mjcf("sensors.xml", text=text, strict=False)
    assert not m.sensors and any("'mine'" in note.what for note in m.report.of_kind("unsupported"))


@pytest.mark.parametrize("count", [1, 30])
@pytest.mark.parametrize(
    "shape", ['size=".1"', 'type="box" size=".1 .1 .1"', 'type="ellipsoid" size=".1 .1 .1"']
)
def test_contacts_in_the_gap_are_sensed(shape, count):
    """By all broad phases: pair by pair, and by a sweep over many bodies."""
    others = "".join(
        f'<body pos="{k} 5 0"><freejoint/><geom {shape} gap=".02"/></body>' for k in range(1, count)
    )
    text = f"""<mujoco><option gravity="0 0 0"/><worldbody><geom {shape} gap=".02" pos="0 0 .21"/>
      <body name="b"><freejoint/><geom {shape}/></body>{others}</worldbody>
      <sensor><contact body1="b" num="1" data="found dist"/></sensor></mujoco>"""
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    assert data.sensordata[0] > 0 and 0.005 < data.sensordata[1] < 0.02
    mechanism = zw.load("gap.xml", text=text)
    values = zw.sensors(mechanism, data.qpos, data.qvel, np.zeros(model.nv))
    np.testing.assert_allclose(
        np.concatenate([np.ravel(x) for x in values.values()]), data.sensordata, atol=1e-9
    )


@pytest.mark.parametrize("reduce", ["none", "maxforce"])
def test_contacts_of_one_pair_are_sensed_before_those_of_the_next(reduce):
    """Also of a box that stands on its high-numbered corners; the forces of contacts that separate are all
    zero.
    """
    text = f"""<mujoco><worldbody><geom name="floor" type="plane" size="0 0 1"/>
      <body pos="0 0 .099" euler="180 0 0"><freejoint/><geom type="box" size=".1 .1 .1"/></body>
      <body pos="1 0 .098"><freejoint/><geom type="box" size=".1 .1 .1"/></body></worldbody>
      <sensor><contact geom1="floor" num="8" data="dist pos" reduce="{reduce}"/></sensor></mujoco>"""
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    data.qvel[[2, 8]] = 5
    mujoco.mj_forward(model, data)
    values = zw.sensors(read_mjcf("boxes.xml", text=text), data.qpos, data.qvel)
    np.testing.assert_allclose(values["sensor0"], data.sensordata, atol=1e-12)


def test_the_centre_of_a_subtree_without_mass_is_that_of_its_body():
    text = """<mujoco><worldbody><body pos="0 0 .3"><joint axis="0 1 0"/><geom size=".1"/>
      <body name="tool" pos=".1 0 0"><inertial pos="0 .2 .1" mass="0" diaginertia="0 0 0"/></body></body>
      </worldbody><sensor><subtreecom body="tool"/></sensor></mujoco>"""
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    data.qpos[:] = 0.3
    mujoco.mj_forward(model, data)
    values = zw.sensors(read_mjcf("tool.xml", text=text), data.qpos, data.qvel)
    np.testing.assert_allclose(values["sensor0"], data.sensordata, atol=1e-12)


WELDED = """<mujoco><option iterations="300" tolerance="1e-15" gravity="1 2 -9"/><worldbody>
<site name="w" pos="0 .2 1"/><site name="w2" pos=".3 .5 .2"/>
<body name="post" pos=".2 .9 .1" euler="10 0 20"><geom size=".02"/><site name="p" pos=".1 0 .2"/></body>
<body name="base" euler="0 20 30"><joint name="j" axis="0 1 .3" damping="1"/><geom size=".1" mass="1"/>
 <site name="b" pos=".1 0 .2"/><site name="b2" pos="-.1 .1 .2"/>
 <body name="arm" pos=".3 0 .1" euler="0 40 0"><geom size=".05" mass="1"/><site name="a" pos="0 0 .1"/>
  <geom name="drum" type="cylinder" size=".08 .1" pos=".1 0 .13" euler="90 0 0" mass=".3"/>
  <body name="tip" pos=".5 0 .1" euler="30 0 10"><geom size=".05" mass=".4"/><site name="t" pos="0 .1 .3"/>
   <body name="end" pos=".2 0 .1"><joint name="k" axis="1 0 0"/><geom size=".05" mass=".6"/>
    <site name="e" pos=".1 .2 0"/></body></body></body></body></worldbody>
<tendon><spatial name="t" {attributes}><site site="w"/><site site="p"/><site site="w2"/><site site="b"/>
  <site site="b2"/><geom geom="drum"/><site site="t"/><site site="e"/>
  <pulley divisor="2"/><site site="e"/><site site="t"/><site site="a"/></spatial></tendon>
<actuator><motor joint="k"/>{actuator}</actuator><equality>{equality}</equality>
<sensor>{sensors}</sensor></mujoco>"""


@pytest.mark.parametrize(
    ("attributes", "elements"),
    [
        ('stiffness="100" damping="7" springlength=".5"', {}),
        ('limited="true" range="0 .5"', {}),
        ('frictionloss="2"', {}),
        ('armature="3"', {}),
        ("", {"equality": '<tendon tendon1="t" polycoef=".1 0 0 0 0"/>'}),
        ("", {"actuator": '<general tendon="t" gear="2"/>'}),
    ],
    ids=["spring and damper", "limit", "friction", "armature", "coupling", "actuator"],
)
def test_tendons_pull_bodies_that_are_fixed_to_each_other(attributes, elements):
    sensors = "".join(f'<{kind} site="{site}"/>' for kind in ("force", "torque") for site in "pbate")
    parts = {"actuator": "", "equality": "", "sensors": sensors} | elements
    text = WELDED.format(attributes=attributes, **parts)
    if "armature" in attributes:  # MuJoCo refuses it on a tendon that wraps
        text = text.replace('<geom geom="drum"/>', "")
    model, m = mujoco.MjModel.from_xml_string(text), read_mjcf("welded.xml", text=text)
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:], data.ctrl[:] = (0.3, -0.4), (1.2, 0.7), 1.5
    mujoco.mj_forward(model, data)
    mujoco.mj_rnePostConstraint(model, data)
    error, kind = largest_difference(m, model, data)
    assert error < 1e-10, kind
    state, scale = (data.qpos, data.qvel, data.ctrl), np.abs(data.cfrc_ext).max()
    for found in (zw.external_wrenches(m, *state), zw.compile(m).external_wrenches(*state)):
        np.testing.assert_allclose(found[1:], data.cfrc_ext[1:], atol=1e-10 * scale)
