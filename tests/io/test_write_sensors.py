"""Sensors and cameras in MJCF files that zwang writes: MuJoCo's sensor data are those of the first file."""

from __future__ import annotations

from dataclasses import replace

import mujoco
import numpy as np
import pytest

import zwang as zw
from tests.io.round_trip import loaded, rewritten
from tests.oracles import sensor_models
from zwang.errors import FormatError
from zwang.mechanism.samples import FURUTA, furuta

GROUPS = (
    sensor_models.mounted_sensors,
    sensor_models.coordinate_sensors,
    sensor_models.frame_sensors,
    sensor_models.geometry_sensors,
    sensor_models.contact_sensors,
)


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group.__name__)
def test_sensors_of_every_kind_have_the_data_of_mujoco(group, tmp_path):
    first, second = tmp_path / "first.xml", tmp_path / "written.xml"
    first.write_text(sensor_models.model_text(group(), equalities=sensor_models.EQUALITIES))
    m = loaded(first, strict=False)
    n = rewritten(m, tmp_path, strict=False)
    assert [s.name for s in n.sensors] == [s.name for s in m.sensors]
    assert [type(s) for s in n.sensors] == [type(s) for s in m.sensors]
    models = [mujoco.MjModel.from_xml_path(str(path)) for path in (first, second)]
    for seed in range(2):
        old, new = (sensor_models.random_data(model, seed).sensordata for model in models)
        np.testing.assert_allclose(new, old, rtol=1e-9, atol=1e-9 * max(1.0, np.abs(old).max()))
    again = rewritten(n, tmp_path)
    assert again.sensors == n.sensors and len(again.frames) == len(n.frames)


def test_cameras_are_those_of_the_mechanism(tmp_path):
    m = loaded_text(sensor_models.model_text([]), tmp_path)
    cameras = [
        *m.cameras,
        zw.Camera("far", "b", sensor_size=(0.01, 0.02), focal_length=(0.0123, 0.02), resolution=(640, 480)),
        zw.Camera("follower", "a", (1, 2, 3), mode="targetbody", target="f"),
    ]
    m = m.replace(cameras=cameras)
    n = rewritten(m, tmp_path)
    assert {c.name for c in n.cameras} == {c.name for c in cameras}
    for old in m.cameras:
        new = n.camera(old.name)
        assert (old.name, old.body, old.mode, old.target) == (new.name, new.body, new.mode, new.target)
        assert old.resolution == new.resolution
        lens = ("sensor_size", "focal_length") if any(old.sensor_size) else ("fovy",)
        for name in ("position", "orientation", *lens):
            np.testing.assert_allclose(getattr(new, name), getattr(old, name), rtol=2e-7, atol=1e-15)


def loaded_text(text, folder):
    (folder / "model.xml").write_text(text)
    return loaded(folder / "model.xml")


def test_zones_of_one_frame_are_sites_of_their_own(tmp_path):
    m = furuta(**FURUTA).replace(
        sensors=[
            zw.TouchSensor("ball", "pendulum", zw.Sphere(0.1)),
            zw.TouchSensor("box", "pendulum", zw.Box(0.1, 0.2, 0.3)),
            zw.InsideSensor("same", "arm", "pendulum", zw.Box(0.1, 0.2, 0.3)),
        ]
    )
    n = rewritten(m, tmp_path)
    assert [s.zone for s in n.sensors] == [s.zone for s in m.sensors]
    assert len(n.frames) == 2
    for frame in n.frames:
        assert (frame.body, frame.position) == ("pendulum", (0, 0, 0))


def test_a_sensor_of_a_part_that_mjcf_lacks_is_omitted_with_a_note(tmp_path):
    plane = zw.Plane(name="lid")  # which MJCF has in the world only
    body = zw.Body("box", zw.Revolute("turn"), mass=1, inertia=(1, 1, 1), geometry=[plane])
    floor = zw.Sphere(0.1, name="stone", position=(0, 0, -3))
    sensors = [
        zw.DistanceSensor("height", "distance", ("shape", "lid"), ("shape", "stone")),
        zw.GlobalSensor("clock", "time"),
    ]
    m = zw.Mechanism("box", [body], geometry=[floor], sensors=sensors)
    report = zw.write_mjcf(m, tmp_path / "m.xml", strict=False)
    (note,) = (note for note in report.of_kind("ignored") if "sensor" in note.where)
    assert note.where == "sensor 'height'" and note.what == "shape 'lid' is not in the file"
    assert [s.name for s in loaded(tmp_path / "m.xml").sensors] == ["clock"]


def wrench_on_a_tool(point=(0, 0, 0), torque=(0, 0, 0), sensors=()):
    """A pendulum with a tool, on which an input acts, and its sensors at the tool or at its parent."""
    arm = zw.Body("arm", zw.Revolute("j", axis=(0, 1, 0)), mass=1, com=(0, 0, -1), inertia=(0.1, 0.1, 0.1))
    tool = zw.Body("tool", zw.Fixed(), "arm", (0, 0, -1), mass=1, inertia=(0.1, 0.1, 0.1))
    wrench = zw.Wrench("tool", (10.0, 0, 0), torque, point, axes="body", input="push")
    frames = [zw.Frame("at tool", "tool"), zw.Frame("at arm", "arm", (0, 0, -0.5))]
    return zw.Mechanism("m", [arm, tool], forces=[wrench], frames=frames, sensors=sensors)


@pytest.mark.parametrize(
    "kind, frame, point, torque",
    [
        ("accelerometer", "at tool", (0, 0, 1), (0, 0, 0)),
        ("force", "at tool", (0, 0, 0), (0, 0, 0)),
        ("torque", "at tool", (0, 0, 0), (0, 0, 0)),
        ("torque", "at tool", (0.1, 0, 0), (0, 0, 0)),
        ("torque", "at tool", (0, 0, 0.1), (0, 0, 0)),
        ("torque", "at arm", (0, 0, 0), (0, 0, 0)),
        ("torque", "at tool", (0, 0, 0), (0, 0, 1)),
        ("force", "world", (0, 0, 0), (0, 0, 0)),
    ],
)
def test_a_wrench_is_refused_where_a_sensor_of_mujoco_leaves_out_the_actuator(
    kind, frame, point, torque, tmp_path
):
    m = wrench_on_a_tool(point, torque, [zw.SiteSensor("s", kind, frame)])
    path = tmp_path / "m.xml"
    report = zw.write_mjcf(m, path, strict=False)
    model = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(model)
    data.qpos[:], data.ctrl[:] = 0.3, 1.0
    mujoco.mj_forward(model, data)
    differs = not np.allclose(data.sensordata, zw.sensors(m, [0.3], [0.0], [1.0])["s"], atol=1e-9)
    assert len(report.of_kind("unsupported")) == differs
    assert len(report.of_kind("changed")) == (not differs)


@pytest.mark.parametrize("ends, is_read", [(None, False), ((-1, 1), False), (None, True), ((-20, 20), True)])
def test_a_wrench_is_refused_where_mujoco_takes_its_actuator_for_one_on_the_joint(ends, is_read, tmp_path):
    """In the range of the joint's actuator forces, and in the value of a sensor of their sum."""
    m = wrench_on_a_tool(sensors=[zw.JointSensor("s", "actuator_force", "j")] * is_read)
    arm = replace(m.bodies[0], joint=replace(m.bodies[0].joint, actuator_range=ends))
    m = m.replace(bodies=(arm, m.bodies[1]))
    path = tmp_path / "m.xml"
    refused = " ".join(note.what for note in zw.write_mjcf(m, path, strict=False).of_kind("unsupported"))
    model = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(model)
    data.qpos[:], data.ctrl[:] = 0.3, 1.0
    mujoco.mj_forward(model, data)
    exact = zw.constrained_dynamics(m, [0.3], [0.0], control=[1.0]).acceleration
    assert np.allclose(data.qacc, exact) == (ends != (-1, 1))
    assert ("actuatorfrcrange of joint 'j'" in refused) == (ends is not None)  # also where it is not reached
    sensed = zw.sensors(m, [0.3], [0.0], [1.0])
    assert all(sensed[name] == 0 and data.sensordata != 0 for name in sensed)
    assert ("in the value of sensor 's'" in refused) == is_read


@pytest.mark.parametrize("has_motor", [False, True])
def test_a_wrench_is_refused_where_its_actuator_would_switch_gravity_compensation_on(has_motor, tmp_path):
    joint = zw.Prismatic("x", axis=(0, 0, 1), actuator_gravity_compensation=True)
    body = zw.Body("b", joint, mass=1.0, inertia=(1, 1, 1))
    wrench = zw.Wrench("b", (1, 0, 0), axes="body", input="push")
    m = zw.Mechanism(
        "m", [body], forces=[zw.GravityCompensation("b", 1.0), wrench, *[zw.Motor("motor", "x")] * has_motor]
    )
    path = tmp_path / "m.xml"
    refused = " ".join(note.what for note in zw.write_mjcf(m, path, strict=False).of_kind("unsupported"))
    model = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    exact = zw.constrained_dynamics(m, [0.0], [0.0], control=np.zeros(1 + has_motor)).acceleration
    assert np.allclose(data.qacc, exact, atol=1e-12) == has_motor
    assert ("compensates gravity" in refused) == (not has_motor)


def test_the_torque_at_a_site_of_the_world_is_refused_as_the_reader_does(tmp_path):
    b = zw.Body("b", zw.Revolute("j"), mass=1, inertia=(1, 1, 1))
    frames = [zw.Frame("site", "world", (0, 0, 1))]
    for frame in ("site", "world"):
        m = zw.Mechanism("m", [b], frames=frames, sensors=[zw.SiteSensor("s", "torque", frame)])
        with pytest.raises(FormatError, match="sensor 's': MuJoCo refers the torque at a site of the world"):
            zw.write_mjcf(m, tmp_path / "m.xml")
        assert rewritten(m, tmp_path, strict=False).sensors == ()


def sensed_pulley(*sensors):
    """A sphere with a frame around which a tendon wraps, and the sensors."""
    ball = zw.Sphere(0.1, name="ball", position=(0, 0, -1))
    body = zw.Body("b", zw.Revolute("j", axis=(0, 1, 0)), mass=1, inertia=(1, 1, 1), geometry=[ball])
    down = ((1, 0, 0), (0, -1, 0), (0, 0, -1))
    frames = [
        zw.Frame("hub", "b"),
        zw.Frame("a", "world", (-0.5, 0, -0.1)),
        zw.Frame("e", "b", (0.5, 0, -0.1)),
        zw.Frame("eye", "world", (0, 0, 2), down),
    ]
    tendon = zw.Tendon("t", path=("a", "hub", "e"), wraps=(zw.Wrap(1, 0.05, "sphere"),))
    floor = zw.Sphere(0.1, name="stone", position=(0, 0, 0.5))
    return zw.Mechanism("m", [body], frames=frames, geometry=[floor], tendons=[tendon], sensors=sensors)


def test_the_geom_of_a_tendon_is_no_shape_for_rays_and_is_noted_for_distances(tmp_path):
    eye = zw.RangeSensor("eye", "eye")
    m = sensed_pulley(eye).replace(geometry=())
    rewritten(m, tmp_path)
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "written.xml"))
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    np.testing.assert_allclose(data.sensordata, 2.9, atol=1e-12)
    for part, refused in ((("body", "b"), True), (("shape", "ball"), False)):
        m = sensed_pulley(zw.DistanceSensor("d", "distance", part, ("body", "world"), cutoff=5))
        assert len(zw.write_mjcf(m, tmp_path / "m.xml", strict=False).of_kind("unsupported")) == refused
        new, old = (zw.sensors(x, [0.0], [0.0])["d"][0] for x in (loaded(tmp_path / "m.xml"), m))
        assert (abs(new - old) > 0.1) == refused


def test_a_contact_pair_of_shapes_fixed_to_each_other_is_refused_with_contact_sensors(tmp_path):
    shapes = [zw.Sphere(0.1, name=name) for name in ("one", "two")]
    body = zw.Body("b", zw.Revolute("j"), mass=1, inertia=(1, 1, 1), geometry=shapes[:1])
    tool = zw.Body("tool", zw.Fixed(), "b", (0, 0, 0.1), geometry=shapes[1:])
    pair = zw.ContactPair("p", ("one", "two"))
    m = zw.Mechanism("m", [body, tool], contacts=[pair])
    assert len(rewritten(m, tmp_path).contacts) == 1
    m = m.replace(sensors=[zw.ContactSensor("c", ("body", "b"), data=("found",))])
    with pytest.raises(FormatError, match="contact pair 'p': its shapes are fixed to each other"):
        zw.write_mjcf(m, tmp_path / "m.xml")
    assert rewritten(m, tmp_path, strict=False).contacts == ()


def test_the_mass_centre_of_a_body_without_mass_is_that_of_the_mechanism(tmp_path):
    target = zw.Body("target", position=(0.1, 0.2, 0.3), mocap=True, geometry=[zw.Sphere(0.1)])
    arm = zw.Body("arm", zw.Revolute("j"), mass=1, inertia=(1, 1, 1))
    m = zw.Mechanism("m", [target, arm], sensors=[zw.SubtreeSensor("c", "mass_centre", "target")])
    rewritten(m, tmp_path)
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "written.xml"))
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    np.testing.assert_allclose(data.sensordata, zw.sensors(m, [0.0], [0.0])["c"], atol=1e-12)
    np.testing.assert_allclose(data.sensordata, (0.1, 0.2, 0.3), atol=1e-12)


def test_urdf_has_no_sensors(tmp_path):
    motor = zw.Motor("push", "j")
    body = zw.Body("b", zw.Revolute("j"), mass=1, inertia=(1, 1, 1))
    m = zw.Mechanism("m", [body], forces=[motor], sensors=[zw.ActuatorSensor("force", "force", "push")])
    report = zw.write_urdf(m, tmp_path / "m.urdf", strict=False)
    assert [note.where for note in report.of_kind("ignored")] == ["sensors: 'force'"]
