"""One step of every integrator against the stored next states of MuJoCo, with contacts, limits, friction,
tendons and muscles.
"""

from dataclasses import replace

import numpy as np
import pytest

from tests.cases import case
from zwang.integrator.fixed_step import State
from zwang.io.mjcf.read.read_mjcf import read_mjcf
from zwang.simulation.step import step, step_settings

MODELS = ["ant", "half_cheetah", "hopper", "humanoid", "car", "muscle_arm", "slider_crank"]


@pytest.mark.parametrize("integrator", ["Euler", "RK4", "implicitfast"])
@pytest.mark.parametrize("name", MODELS)
def test_next_states_equal_mujoco(name, integrator):
    stored = case("mujoco_oracle", name)
    mechanism = read_mjcf(f"{name}.xml", strict=False, text=stored["parameters"]["xml"])
    for state in stored["reference"][::8]:
        one = mechanism.replace(options=replace(mechanism.options, cone=state["cone"]))
        settings = step_settings(one, stored["parameters"]["timestep"], integrator.lower())
        state_before = State(*(np.array(state[key]) for key in ("qpos", "qvel", "act")))
        after, expected = (
            step(settings, state_before, np.array(state["ctrl"])).state,
            state["next"][integrator],
        )
        for ours, key in ((after.q, "qpos"), (after.v, "qvel")):
            scale = max(1, np.abs(expected[key]).max())
            np.testing.assert_allclose(ours, expected[key], rtol=0, atol=2e-9 * scale)
