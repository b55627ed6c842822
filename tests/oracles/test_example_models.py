"""The models of the examples against MuJoCo in random states on the floor, at their limits, and driven."""

from pathlib import Path

import mujoco
import numpy as np
import pytest

import zwang as zw
from zwang.dynamics.generalised_forces import controlled_forces

MODELS = Path(__file__).parents[2] / "examples" / "models"
HEIGHTS = {"humanoid": (0.1, 0.9), "quadruped": (0.08, 0.3)}


@pytest.mark.parametrize("name", HEIGHTS)
def test_accelerations_of_an_example_model_equal_mujoco(name):
    path = MODELS / f"{name}.xml"
    mechanism, model = zw.load(path), mujoco.MjModel.from_xml_path(str(path))
    model.opt.tolerance, model.opt.ls_tolerance, model.opt.iterations = 1e-14, 1e-9, 1000
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_EULERDAMP
    data, rng, contacts = mujoco.MjData(model), np.random.default_rng(3), 0
    for _ in range(6):
        q = zw.integrate_configuration(
            mechanism, mechanism.neutral, rng.normal(0, 0.6, size=mechanism.nv), 1.0
        )
        q[:3] = 0, 0, rng.uniform(*HEIGHTS[name])
        v, u = rng.normal(size=mechanism.nv), rng.uniform(-1, 1, size=len(mechanism.inputs))
        data.qpos[:], data.qvel[:], data.ctrl[:] = q, v, u
        mujoco.mj_forward(model, data)
        contacts += data.ncon
        tau = controlled_forces(mechanism, q, v, dict(zip(mechanism.inputs, u, strict=True)))
        found = zw.constrained_dynamics(mechanism, q, v, np.array(tau, float))
        assert found.converged
        np.testing.assert_allclose(
            found.acceleration, data.qacc, rtol=1e-6, atol=1e-6 * np.abs(data.qacc).max()
        )
    assert contacts > 10


def test_the_quadruped_stays_near_its_keyframe():
    mechanism = zw.load(MODELS / "quadruped.xml")
    stand = mechanism.keyframes[0]
    run = zw.simulate(mechanism, stand.q, duration=0.4, control=np.array(stand.control), progress=False)
    assert np.abs(run.q.values[0, -1] - stand.q).max() < 0.1
    assert np.abs(run.v.values[0, -1]).max() < 0.2
