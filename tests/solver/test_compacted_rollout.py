"""Rollouts of large trees, whose rows are listed: every step is the compiled step's and MuJoCo's from the same state."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import zwang as zw
from tests.solver.large_models import begun, mechanism_of, mujoco_steps, off_by, text_of
from zwang.constraint.compacted_rows import decode_signs, encode_signs
from zwang.solver import solve as solve_module

WORLDS, STEPS = 6, 150
EQUALITY, DRY, DRY_TENDON, LIMIT, TENDON, FRICTIONLESS, PYRAMID = range(7)  # MuJoCo's types of rows
OF_A_CREATURE = {EQUALITY, DRY, DRY_TENDON, LIMIT, TENDON, FRICTIONLESS, PYRAMID}
OF_A_CREATURE |= {("contact", dim, False) for dim in (1, 3, 4, 6)} | {("contact", 6, True)}
LEAST = {"creature": OF_A_CREATURE, "humanoid": {LIMIT, FRICTIONLESS, PYRAMID}}


def course(mechanism, fast, seed=0, **how):
    """A rollout, as states before and after each step: q, v, u, and q, v after, (worlds steps, n)."""
    q, v, _ = begun(mechanism, WORLDS, seed)
    u = np.random.default_rng(seed).uniform(-1, 1, size=(WORLDS, STEPS, len(mechanism.inputs)))
    after = fast.rollout(q, v, u, steps=STEPS, **how)
    before = [np.concatenate([x[:, None], y[:, :-1]], axis=1) for x, y in ((q, after.q), (v, after.v))]
    return [x.reshape(WORLDS * STEPS, -1) for x in (*before, u, after.q, after.v)]


def record_compacted_rows(monkeypatch):
    """The lists of rows that were solved for, from now on."""
    lists = []

    def solved(problem, compacted):
        lists.append(compacted)
        return dual_newton(problem, compacted)

    dual_newton = solve_module.dual_newton
    monkeypatch.setattr(solve_module, "dual_newton", solved)
    return lists


@pytest.mark.parametrize("name", LEAST)
def test_every_step_of_a_rollout_is_the_step_and_mujocos_step(name, monkeypatch):
    text, lists = text_of(name), record_compacted_rows(monkeypatch)
    mechanism = mechanism_of(text)
    fast = zw.compile(mechanism)
    q, v, u, q_after, v_after = course(mechanism, fast, integrator="euler")
    assert lists, "the rows of this model must be compacted"
    alone = fast.step(q, v, u, integrator="euler")
    assert off_by(alone.v, v_after, v).max() < 1e-11
    assert np.abs(alone.q - q_after).max() < 1e-11
    q_there, v_there, kinds = mujoco_steps(text, "euler", q, v, u)
    assert kinds >= LEAST[name]
    assert off_by(v_there, v_after, v).max() < 1e-10
    assert np.abs(q_there - q_after).max() < 1e-11


@given(st.lists(st.sampled_from([-1.0, 0.0, 1.0]), min_size=1, max_size=60))
def test_words_of_signs_are_read_back_in_both_precisions(signs):
    words = encode_signs(signs)
    for number in (float, np.float32):
        held = [float(number(word)) for word in words]
        assert decode_signs(held, len(signs)) == signs
