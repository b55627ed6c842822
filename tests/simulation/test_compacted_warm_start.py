"""The warm start of compacted rows: rollouts in one call or in several, with failing worlds, over thousands
of steps, and at rest.
"""

from functools import cache

import numpy as np
import pytest

import zwang as zw
from tests.solver.large_models import mechanism_of, random_states, text_of
from zwang.errors import SimulationWarning
from zwang.kinematics.kinematics import Kinematics
from zwang.scalar import zeros
from zwang.simulation.constrained import solve_constrained
from zwang.simulation.step import applied_forces

STEP = 0.004


def mechanism():
    return mechanism_of(text_of("creature"))


@cache
def fast():
    return zw.compile(mechanism())


def falling_states():
    """q and v of five worlds above the floor, without overlap."""
    q, v, _ = random_states(mechanism(), 5, seed=8, lift=0.2)
    v[:, 2] -= 2
    return q, v


def warm_start_of(codes):
    """The warm start with these codes, by default the empty one."""

    def warm_start(size, largest):
        status = zeros(size)
        for k in range(size if codes is not None else 0):
            status = status.set(k, float(codes[k]))
        return status

    return warm_start


def solution(at, codes):
    """Gauss's problem at q, v, u, on floats."""
    q, v, u = at
    m, start = mechanism(), None if codes is None else warm_start_of(codes)
    tau = applied_forces(m, Kinematics(m.tree, q, v), np.zeros(0), u, 0, m.options.timestep)
    return solve_constrained(m, q, v, tau, start=start).solution


def row_statuses(found):
    return [found.row_status[k] for k in range(found.row_status.shape[0])]


def test_two_consecutive_rollouts_equal_one_within_the_solver_tolerance():
    q, v, u = random_states(mechanism(), 8, seed=4)
    whole = fast().rollout(q, v, u, steps=60)
    second = fast().rollout(whole.q[:, 39], whole.v[:, 39], u, steps=20)
    size = np.abs(whole.v).max()
    np.testing.assert_allclose(second.v, whole.v[:, 40:], atol=1e-8 * size, rtol=0)
    np.testing.assert_allclose(second.q, whole.q[:, 40:], atol=1e-9, rtol=0)


def test_compacted_rows_give_the_same_accelerations_for_every_warm_start():
    """On floats, compared with rows that are not compacted: without warm start, with its own, with that of
    another state, and with that of inactive rows.
    """
    q, v, u = random_states(mechanism(), 4, seed=5)
    lying = fast().rollout(q, v, u, steps=100, every=100)
    rising = lying.v[:, 0].copy()
    rising[:, 2] += 5
    states = [*zip(lying.q[:, 0], lying.v[:, 0], u, strict=True), *zip(lying.q[:, 0], rising, u, strict=True)]
    zeros = [0.0] * len(row_statuses(solution(states[0], np.zeros(10_000))))
    codes = [row_statuses(solution(at, zeros)) for at in states]
    assert any(1 in found and 2 in found for found in codes)
    for k in (0, 1, 6):
        plain = np.array(solution(states[k], None).acceleration)
        for remembered in (zeros, codes[k], codes[(k + 4) % 8], codes[(k + 3) % 8]):
            found = solution(states[k], remembered)
            np.testing.assert_allclose(found.acceleration, plain, atol=1e-9 * np.abs(plain).max(), rtol=0)
            assert found.converged and not found.failed
            assert row_statuses(found) == codes[k]


def test_a_model_at_rest_needs_one_iteration_a_step():
    q, v, u = random_states(mechanism(), 6, seed=6)
    still, without = fast().rollout(q, v, 0 * u, steps=1500, every=1500), 0
    for k in range(6):
        at = still.q[k, 0], still.v[k, 0], 0 * u[k]
        first = solution(at, np.zeros(10_000))
        second = solution(at, row_statuses(first))
        assert second.iterations == 1
        without += first.iterations
        np.testing.assert_allclose(second.acceleration, first.acceleration, atol=1e-9)
    assert without > 6


def test_a_run_does_not_depend_on_recording_or_on_who_evaluates_the_control():
    """Segments of a run, and single steps between which a Python function is called, keep the warm start."""
    m, (q, v) = mechanism(), (x[:3] for x in falling_states())
    steps, names = 56, m.inputs
    wave = np.sin(np.arange(steps)[:, None] * STEP * 9 + np.arange(len(names)))

    def control(t, q, v):
        return dict(zip(names, wave[round(float(t) / STEP) % steps], strict=True))

    held = np.tile(wave, (3, 1, 1))
    how = {"duration": steps * STEP, "step": STEP, "worlds": 3}
    run = zw.simulate(m, q, v, control=held, record=1, **how)
    coarse = zw.simulate(m, q, v, control=held, record=7, **how)
    asked = zw.simulate(m, q, v, control=control, record=1, **how)
    assert run.attrs["path"] == "compiled" and "Python" in asked.attrs["path"]
    assert np.array_equal(coarse.q.values, run.q.values[:, ::7])
    assert np.array_equal(asked.q.values, run.q.values)
    rolled = fast().rollout(q, v, held, steps=steps)
    np.testing.assert_allclose(run.q.values[:, 1:], rolled.q, atol=1e-8, rtol=0)
    python = zw.simulate(m, q[:1], v[:1], control=held[:1, :3], duration=3 * STEP, step=STEP, compiled=False)
    np.testing.assert_allclose(python.q.values[0], run.q.values[0, :4], atol=1e-11, rtol=0)
    np.testing.assert_allclose(python.v.values[0], run.v.values[0, :4], atol=1e-9, rtol=0)


def test_failed_worlds_are_reported_and_do_not_change_others():
    m, (q, v) = mechanism(), falling_states()
    u = np.random.default_rng(8).uniform(-1, 1, size=(5, 30, len(m.inputs)))
    how = {"duration": 30 * STEP, "step": STEP, "worlds": 5}
    good = zw.simulate(m, q, v, control=u, **how)
    bad, away = u.copy(), v.copy()
    bad[1, 11, 3] = np.nan
    away[3, 8] = 1e12
    with pytest.warns(SimulationWarning) as told_of:
        run = zw.simulate(m, q, away, control=bad, **how)
    said = " ".join(str(warning.message) for warning in told_of)
    assert "the control is not a finite number" in said
    assert run.status.values.tolist() == [0, 1, 0, 1, 0]
    np.testing.assert_allclose(run.stop_time.values[[1, 3]], [11 * STEP, 0], atol=1e-12)
    assert np.array_equal(run.q.values[[0, 2, 4]], good.q.values[[0, 2, 4]])
    assert np.array_equal(run.q.values[1, :12], good.q.values[1, :12])


def test_no_world_fails_in_two_thousand_steps_with_large_torques():
    m, rng = mechanism(), np.random.default_rng(9)
    q, v, _ = random_states(m, 24, seed=9)
    u = np.repeat(rng.choice([-3.0, -1.0, 1.0, 3.0], size=(24, 100, len(m.inputs))), 20, axis=1)
    run = fast().rollout(q, 10 * v, u, steps=2000, every=10)
    assert np.isfinite(run.q).all() and np.isfinite(run.v).all()
    assert np.abs(run.v).max() > 20
    single = zw.compile(m, dtype="float32").rollout(q, 10 * v, u, steps=2000, every=10)
    assert np.isfinite(single.q).all()
    assert single.q[..., 2].min() > -0.3 and run.q[..., 2].min() > -0.3


def test_bodies_at_rest_stay_at_rest():
    """Except for the creep of soft contacts, one of which has no friction."""
    q, v, u = random_states(mechanism(), 6, seed=10)
    run = fast().rollout(q, v, 0 * u, steps=20_000, every=100)
    assert np.abs(run.v[:, 0]).max() > 0.5
    assert np.abs(run.v[:, -20:]).max() < 1e-2
    assert np.ptp(run.q[:, -20:, 2], axis=1).max() < 1e-3
