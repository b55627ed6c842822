"""Sensors of MJCF files: the frames on which they are mounted, and zones that are not supported."""

import mujoco
import numpy as np
import pytest

import zwang as zw
from tests.io.test_mjcf import model, read
from zwang.errors import UnsupportedError


@pytest.mark.parametrize(
    "site", ["g (shape)", "arm (inertial frame)", "eye (camera)", "arm (inertial frame) 2"]
)
def test_the_frame_of_a_sensor_has_no_name_of_a_site_elsewhere(site):
    text = model(
        inside=f'<site name="{site}" pos="1 2 3"/><camera name="eye" pos=".1 0 .2" xyaxes="0 1 0 0 0 1"/>',
        geom='pos=".3 .1 .2" euler="10 20 30"',
        after="<sensor>"
        + "".join(
            f'<frame{what} objtype="{kind}" objname="{name}"/>'
            for kind, name in (("geom", "g"), ("body", "arm"), ("camera", "eye"), ("site", site))
            for what in ("pos", "quat")
        )
        + "</sensor>",
    )
    reference = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(reference)
    data.qpos[0] = 0.7
    mujoco.mj_forward(reference, data)
    m = read(text)
    found = zw.sensors(m, data.qpos, data.qvel, [0.0])
    np.testing.assert_allclose(np.concatenate(list(found.values())), data.sensordata, atol=1e-12)


def test_the_frame_of_a_sensor_is_the_site_of_its_name_there():
    pose = 'pos=".3 .1 .2" euler="10 20 30"'
    sensors = '<framepos objtype="geom" objname="g"/><framequat objtype="site" objname="g (shape)"/>'
    m = read(model(inside=f'<site name="g (shape)" {pose}/>', geom=pose, after=f"<sensor>{sensors}</sensor>"))
    assert [frame.name for frame in m.frames] == ["g (shape)"]


@pytest.mark.parametrize(
    "sensor",
    [
        '<insidesite name="x" objtype="site" objname="s" site="t"/>',
        '<touch name="x" site="t"/>',
        '<contact name="x" site="t"/>',
    ],
)
def test_a_sensor_whose_zone_is_a_mesh_is_refused_or_omitted(sensor):
    text = model(
        before='<asset><mesh name="m" vertex="0 0 0 1 0 0 0 1 0 0 0 1"/></asset>',
        inside='<site name="t" type="mesh" mesh="m"/><site name="s"/>',
        after=f'<sensor>{sensor}<framepos name="y" objtype="site" objname="t"/></sensor>',
    )
    with pytest.raises(UnsupportedError, match=r"line 6.*sensor 'x' with the site 't' of the type mesh"):
        read(text)
    m = read(text, strict=False)
    assert [sensor.name for sensor in m.sensors] == ["y"]
    assert any("site 't' of the type mesh" in note.what for note in m.report.of_kind("unsupported"))
