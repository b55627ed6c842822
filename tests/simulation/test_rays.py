"""Range sensors give MuJoCo's distances, points and normals for every kind of shape."""

import mujoco
import numpy as np
import pytest

import zwang as zw
from zwang.io.mjcf.read.read_mjcf import read_mjcf

ASSETS = """<asset><mesh name="m" vertex="0 0 0 .5 0 0 0 .5 0 0 0 .6 .3 .4 .2"/>
<hfield name="h" nrow="6" ncol="5" size=".6 .7 .4 .2" elevation="1 0 1 0 1 0 2 0 2 0 1 0 1 0 1 3 0 1 0 2 1 2
 1 0 0 1 0 0 1 2"/></asset>"""
SHAPES = {
    "sphere": 'type="sphere" size=".4"',
    "capsule": 'type="capsule" size=".3 .4"',
    "ellipsoid": 'type="ellipsoid" size=".5 .3 .4"',
    "cylinder": 'type="cylinder" size=".4 .3"',
    "box": 'type="box" size=".5 .3 .4"',
    "mesh": 'type="mesh" mesh="m"',
    "hfield": 'type="hfield" hfield="h"',
}
RAYS = 60


def scene(kind):
    """One shape, and sites around and inside it whose rays pass near its centre."""
    rng = np.random.default_rng(3)
    sites, sensors = [], []
    for k in range(RAYS):
        origin = rng.normal(size=3) * rng.choice([0.15, 0.6, 1.0])
        towards = rng.normal(size=3) * 0.3 - origin
        sites.append(f'<site name="s{k}" pos="{_text(origin)}" zaxis="{_text(towards)}"/>')
        sensors.append(f'<rangefinder site="s{k}" data="dist dir origin point normal depth"/>')
    return (
        f'<mujoco>{ASSETS}<worldbody><body><geom {SHAPES[kind]} euler="20 30 40"/></body>'
        f'<body><joint axis="1 2 3"/><geom size=".001" mass="1" contype="0" conaffinity="0"/>{"".join(sites)}'
        f"</body></worldbody><sensor>{''.join(sensors)}</sensor></mujoco>"
    )


def _text(values):
    return " ".join(f"{x:.17g}" for x in values)


def expected(text, q):
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    data.qpos[:] = q
    mujoco.mj_forward(model, data)
    return data.sensordata.reshape(RAYS, -1)


@pytest.mark.parametrize("kind", SHAPES)
def test_rays_meet_shapes_as_in_mujoco(kind):
    text = scene(kind)
    m = read_mjcf("rays.xml", text=text)
    found = zw.sensors(m, [0.3], [0.0], [0.0])
    values = np.array(list(found.values()))
    wanted = expected(text, [0.3])
    assert (wanted[:, 0] > 0).sum() > RAYS / 5
    np.testing.assert_allclose(values, wanted, atol=1e-9)


@pytest.mark.parametrize("kind", ["mesh", "hfield"])
def test_compiled_rays_are_those_of_mujoco(kind):
    text = scene(kind)
    m = read_mjcf("rays.xml", text=text)
    m = m.replace(sensors=m.sensors[:6])
    found = zw.compile(m, threads=1).sensors([0.3], [0.0], [0.0])
    values = np.array([found[s.name] for s in m.sensors])
    np.testing.assert_allclose(values, expected(text, [0.3])[:6], atol=1e-9)
