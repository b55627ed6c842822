"""Rollouts of listed rows by other integrators, where stages remember what those before found, and in single precision."""

import numpy as np
import pytest

import zwang as zw
from tests.solver.large_models import begun, mechanism_of, mujoco_steps, off_by, text_of
from tests.solver.test_compacted_rollout import course


@pytest.mark.parametrize("integrator", ["implicitfast", "rk4"])
def test_a_step_of_other_integrators_is_mujocos(integrator):
    text = text_of("creature")
    mechanism = mechanism_of(text)
    q, v, u, q_after, v_after = course(mechanism, zw.compile(mechanism), integrator=integrator)
    q_there, v_there, _ = mujoco_steps(text, integrator, q, v, u)
    assert off_by(v_there, v_after, v).max() < 1e-10
    assert np.abs(q_there - q_after).max() < 1e-11


def test_single_precision_is_as_near_as_it_can_be():
    """From states on a way that double precision went, by MuJoCo; rows at the brink of acting may differ."""
    text = text_of("creature")
    mechanism = mechanism_of(text)
    single = zw.compile(mechanism, dtype="float32")
    q, v, u = begun(mechanism, 40, seed=3)
    after = single.rollout(q, v, u, steps=60)
    assert after.q.dtype == np.float32 and np.isfinite(after.v).all()
    off = []
    for k in range(9, 59, 10):
        _, v_there, _ = mujoco_steps(text, "euler", after.q[:, k], after.v[:, k], u)
        again = single.rollout(after.q[:, k], after.v[:, k], u, steps=1)
        for v_after in (after.v[:, k + 1], again.v[:, 0]):  # with what is remembered, and without
            off.append(off_by(v_after, v_there, after.v[:, k]))
    assert np.median(off) < 1e-5 and np.quantile(off, 0.95) < 1e-4 and np.max(off) < 1e-2
