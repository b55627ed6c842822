"""Rollouts of large trees with compacted rows: every step equals the compiled step and MuJoCo's from that
state.
"""

import numpy as np
import pytest

import zwang as zw
from tests.solver.large_models import mechanism_of, mujoco_steps, random_states, relative_error, text_of
from zwang.solver import newton

WORLDS, STEPS = 6, 150
EQUALITY, DRY, DRY_TENDON, LIMIT, TENDON, FRICTIONLESS, PYRAMID = range(7)  # MuJoCo's types of rows
CREATURE_ROWS = {EQUALITY, DRY, DRY_TENDON, LIMIT, TENDON, FRICTIONLESS, PYRAMID}
CREATURE_ROWS |= {("contact", dim, False) for dim in (1, 3, 4, 6)} | {("contact", 6, True)}
REQUIRED_ROWS = {"creature": CREATURE_ROWS, "humanoid": {LIMIT, FRICTIONLESS, PYRAMID}}


def rollout_states(mechanism, fast, seed=0, **settings):
    """The states of a rollout before and after each step: q, v, u, and q, v after the step, (worlds
    steps, n).
    """
    q, v, _ = random_states(mechanism, WORLDS, seed)
    u = np.random.default_rng(seed).uniform(-1, 1, size=(WORLDS, STEPS, len(mechanism.inputs)))
    after = fast.rollout(q, v, u, steps=STEPS, **settings)
    before = [np.concatenate([x[:, None], y[:, :-1]], axis=1) for x, y in ((q, after.q), (v, after.v))]
    return [x.reshape(WORLDS * STEPS, -1) for x in (*before, u, after.q, after.v)]


def record_compacted_rows(monkeypatch):
    """A list to which every later use of the dual form appends its compacted rows."""
    calls = []

    def recorded(*given):
        calls.append(given)
        return dual_form(*given)

    dual_form = newton.dual_form
    monkeypatch.setattr(newton, "dual_form", recorded)
    return calls


@pytest.mark.parametrize("name", REQUIRED_ROWS)
def test_every_step_of_a_rollout_equals_the_compiled_step_and_mujocos(name, monkeypatch):
    text, calls = text_of(name), record_compacted_rows(monkeypatch)
    mechanism = mechanism_of(text)
    fast = zw.compile(mechanism)
    q, v, u, q_after, v_after = rollout_states(mechanism, fast, integrator="euler")
    assert calls, "the rows of this model must be compacted"
    alone = fast.step(q, v, u, integrator="euler")
    assert relative_error(alone.v, v_after, v).max() < 1e-11
    assert np.abs(alone.q - q_after).max() < 1e-11
    q_mujoco, v_mujoco, kinds = mujoco_steps(text, "euler", q, v, u)
    assert kinds >= REQUIRED_ROWS[name]
    assert relative_error(v_mujoco, v_after, v).max() < 1e-10
    assert np.abs(q_mujoco - q_after).max() < 1e-11
