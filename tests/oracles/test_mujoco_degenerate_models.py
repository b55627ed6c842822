"""Agreement with MuJoCo where a number that counts is zero or nearly zero."""

import mujoco
import numpy as np
import pytest

import zwang as zw
from zwang.io.mjcf.read.read_mjcf import read_mjcf

TENDON = """<mujoco><worldbody><site name='p' pos='0 0 1'/><site name='q' pos='1 0 1'/>
<body><joint type='slide'/><geom name='g' size='.1'/></body></worldbody>
<tendon><spatial name='t' range='0 .5' limited='true' frictionloss='1'>
<site site='p'/><geom geom='g'/><site site='q'/></spatial></tendon>
<equality><tendon tendon1='t' polycoef='.1 0 0 0 0'/></equality>
<sensor><tendonlimitfrc tendon='t'/></sensor></mujoco>"""
SUBTREE = """<mujoco><worldbody><body><freejoint/><geom size='.1'/><body name='b' pos='.3 0 0'>
<inertial pos='.1 0 0' mass='0' diaginertia='.01 .01 .01'/></body></body></worldbody>
<sensor><subtreecom body='b'/><subtreelinvel body='b'/><subtreeangmom body='b'/></sensor></mujoco>"""
SURFACES = """<mujoco><worldbody><geom type='plane' size='1 1 1' solmix='{}'/>
<body pos='0 0 .09'><freejoint/><geom type='box' size='.1 .1 .1' solmix='{}' solref='.05 1'/></body>
</worldbody></mujoco>"""


def both(text):
    model = mujoco.MjModel.from_xml_string(text)
    model.opt.tolerance = 1e-15
    data = mujoco.MjData(model)
    data.qvel[:] = [1, 2, 3, 0.1, 0.2, 0.3][: model.nv]
    mujoco.mj_forward(model, data)
    return read_mjcf("model.xml", text=text), data


@pytest.mark.parametrize("height", [0.0, 1.0])
def test_rows_of_a_tendon_without_a_moment_arm_are_inactive(height):
    """The tendon between fixed points, and around a ball on a joint, which it touches at the height 1."""
    mechanism, data = both(TENDON)
    data.qpos[0] = height
    mujoco.mj_forward(data.model, data)
    found = zw.constrained_dynamics(mechanism, data.qpos, data.qvel, np.zeros(1))
    np.testing.assert_allclose(found.acceleration, data.qacc, rtol=1e-9)
    if height == 0:
        assert data.nefc == 0 and all(np.all(force == 0) for force in found.forces.values())
    worlds = zw.Worlds(mechanism, 1, threads=1)
    worlds.set(q=data.qpos, v=data.qvel)
    (sensed,) = worlds.sensors.values()
    np.testing.assert_allclose(sensed[0], data.sensordata, rtol=1e-9)


def test_subtree_without_mass_has_angular_momentum():
    mechanism, data = both(SUBTREE)
    found = zw.sensors(mechanism, data.qpos, data.qvel, np.zeros(6))
    np.testing.assert_allclose(np.concatenate(list(found.values())), data.sensordata, atol=1e-15)
    worlds = zw.Worlds(mechanism, 1, threads=1)
    worlds.set(v=data.qvel)
    compiled = np.concatenate([value[0] for value in worlds.sensors.values()])
    np.testing.assert_allclose(compiled, data.sensordata, atol=1e-15)


@pytest.mark.parametrize(
    "mixes", [(1e-16, 0), (1e-16, 2e-16), (1e-16, 1), (1, 1e-16), (1e-14, 3e-14), (0, 0)]
)
def test_surfaces_with_tiny_weights_mix_as_in_mujoco(mixes):
    mechanism, data = both(SURFACES.format(*mixes))
    found = zw.constrained_dynamics(mechanism, data.qpos, data.qvel, np.zeros(6)).acceleration
    np.testing.assert_allclose(found, data.qacc, rtol=1e-8, atol=1e-8)
