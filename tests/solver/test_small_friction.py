"""Pyramidal cones with little friction: stiff edges, whose kinks stop the line search, against MuJoCo."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

import zwang as zw

TEXT = """<mujoco><option tolerance="1e-15" iterations="300" ls_iterations="100" cone="{cone}"/><worldbody>
<geom name="floor" type="plane" size="3 3 1" friction="{mu} 0 0"/><body pos="0 0 .05"><freejoint/>
<geom name="box" type="box" size=".1 .08 .05" friction="{mu} 0 0"/></body></worldbody></mujoco>"""


@pytest.mark.parametrize("mu", [0, 1e-4, 1e-3])
def test_accelerations_and_steps_are_mujocos(mu):
    text = TEXT.format(mu=mu, cone="pyramidal")
    model, mechanism, rng = (
        mujoco.MjModel.from_xml_string(text),
        zw.load("box.xml", text=text),
        np.random.default_rng(0),
    )
    data, worlds, touching = mujoco.MjData(model), zw.Worlds(mechanism, threads=1), 0
    for _ in range(100):
        mujoco.mj_resetData(model, data)
        mujoco.mj_integratePos(model, data.qpos, 0.1 * rng.normal(size=6), 1.0)
        data.qvel[:] = rng.normal(size=6)
        for _ in range(5):  # to MuJoCo's own minimum
            mujoco.mj_forward(model, data)
            data.qacc_warmstart[:] = data.qacc
        q, v = data.qpos.copy(), data.qvel.copy()
        found, size = zw.constrained_dynamics(mechanism, q, v, np.zeros(6)), max(1.0, np.abs(data.qacc).max())
        assert found.converged and np.abs(found.acceleration - data.qacc).max() < 1e-8 * size
        touching += data.ncon > 0
        worlds.reset(q=q, v=v)
        worlds.step()
        mujoco.mj_step(model, data)
        np.testing.assert_allclose(worlds.v[0], data.qvel, atol=1e-8)
    assert touching > 30


def test_single_precision_tells_of_friction_that_it_does_not_resolve():
    small, enough, elliptic = (
        zw.load("box.xml", text=TEXT.format(mu=mu, cone=cone))
        for mu, cone in ((0, "pyramidal"), (0.02, "pyramidal"), (0, "elliptic"))
    )
    for make in (zw.Worlds, zw.compile):
        with pytest.warns(zw.errors.SimulationWarning, match="friction of 'floor' with 'box' is 1e-05"):
            make(small, dtype="float32")
        for mechanism, dtype in ((small, "float64"), (enough, "float32"), (elliptic, "float32")):
            make(mechanism, dtype=dtype)  # warnings are errors in the tests
    worlds = zw.Worlds(elliptic, 100, dtype="float32")
    exact = zw.Worlds(elliptic, 100)
    rng = np.random.default_rng(1)
    q = np.tile(np.array(elliptic.neutral, float), (100, 1))
    q[:, 2] += rng.uniform(-0.002, 0.001, 100)
    for each in (worlds, exact):
        each.reset(q=q, v=np.zeros(6))
        each.step()
    np.testing.assert_allclose(worlds.v, exact.v, atol=1e-6)
