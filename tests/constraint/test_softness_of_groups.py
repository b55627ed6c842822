"""Convex pairs of different softness in one loop have the accelerations of MuJoCo."""

import mujoco
import numpy as np
import pytest

import zwang as zw
from zwang.io.mjcf.read.read_mjcf import read_mjcf

SOFTNESS = (
    'solref="0.01 1"',
    'solref="-2000 -30"',
    'solref="0.03 0.5" solimp="0.5 0.95 0.01 0.5 2"',
    'solimp="0.8 0.9 0.002 0.4 3" margin="0.01"',
)


@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
def test_pairs_of_different_softness_have_the_accelerations_of_mujoco(cone: str) -> None:
    bodies = "".join(
        f'<body pos="{k} 0 -0.005"><freejoint/><geom type="mesh" mesh="roof" mass="1" conaffinity="0" '
        f"{softness}/></body>"
        for k, softness in enumerate(SOFTNESS)
    )
    text = (
        f'<mujoco><option cone="{cone}" tolerance="1e-15" ccd_tolerance="1e-12"/>'
        '<default><geom conaffinity="0"/></default><asset>'
        '<mesh name="roof" vertex="-.2 -.1 0  .2 -.1 0  .1 .1 0  0 0 .2"/></asset><worldbody>'
        '<geom type="box" size="9 9 1" pos="0 0 -1" priority="-1" conaffinity="1"/>'
        f"{bodies}</worldbody></mujoco>"
    )
    m, model = read_mjcf("model.xml", text=text), mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    data.qvel[:] = np.tile([0.1, -0.2, -0.3, 0.2, 0.1, 0.3], len(SOFTNESS))
    mujoco.mj_forward(model, data)
    assert data.ncon == 3 * len(SOFTNESS)
    tau = np.zeros(m.nv)
    found = zw.constrained_dynamics(m, data.qpos, data.qvel, tau).acceleration
    np.testing.assert_allclose(found, data.qacc, rtol=1e-6, atol=1e-5)
    v = zw.compile(m).step(data.qpos, data.qvel, tau, integrator="euler")[1]
    np.testing.assert_allclose((v - data.qvel) / m.options.timestep, found, rtol=1e-8, atol=1e-8)
