"""Rollouts with compacted rows by other integrators, whose stages are warm-started, and in single
precision.
"""

import numpy as np
import pytest

import zwang as zw
from tests.solver.large_models import mechanism_of, mujoco_steps, random_states, relative_error, text_of
from tests.solver.test_compacted_rollout import (
    FRICTIONLESS,
    LIMIT,
    PYRAMID,
    keeps_rows_by_world,
    rollout_states,
)


@pytest.mark.parametrize("integrator", ["implicitfast", "rk4"])
def test_a_step_of_other_integrators_is_mujocos(integrator):
    text = text_of("crawler")
    mechanism = mechanism_of(text)
    assert keeps_rows_by_world(mechanism)
    q, v, u, q_after, v_after = rollout_states(mechanism, zw.compile(mechanism), integrator=integrator)
    q_mujoco, v_mujoco, kinds = mujoco_steps(text, integrator, q, v, u)
    assert kinds >= {LIMIT, FRICTIONLESS, PYRAMID, ("contact", 6, True)}
    assert relative_error(v_mujoco, v_after, v).max() < 1e-10
    assert np.abs(q_mujoco - q_after).max() < 1e-11


def test_steps_in_single_precision_equal_mujocos_within_rounding():
    """Steps from the same states as MuJoCo's in double precision; rows near activation may differ in
    status.
    """
    text = text_of("creature")
    mechanism = mechanism_of(text)
    single = zw.compile(mechanism, dtype="float32")
    q, v, u = random_states(mechanism, 40, seed=3)
    after = single.rollout(q, v, u, steps=60)
    assert after.q.dtype == np.float32 and np.isfinite(after.v).all()
    errors = []
    for k in range(9, 59, 10):
        _, v_mujoco, _ = mujoco_steps(text, "euler", after.q[:, k], after.v[:, k], u)
        again = single.rollout(after.q[:, k], after.v[:, k], u, steps=1)
        for v_after in (after.v[:, k + 1], again.v[:, 0]):  # with a warm start, and without
            errors.append(relative_error(v_after, v_mujoco, after.v[:, k]))
    assert np.median(errors) < 1e-5 and np.quantile(errors, 0.95) < 1e-4 and np.max(errors) < 1e-2
