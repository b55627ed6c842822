"""Rollouts of large trees with compacted rows: every step equals the compiled step and MuJoCo's from that
state.
"""

import numpy as np
import pytest

import zwang as zw
from tests.solver.large_models import mechanism_of, mujoco_steps, random_states, relative_error, text_of
from zwang.constraint.context import row_context
from zwang.constraint.rows_of_mechanism import constraint_rows
from zwang.kinematics.kinematics import Kinematics

WORLDS, STEPS = 6, 150
EQUALITY, DRY, DRY_TENDON, LIMIT, TENDON, FRICTIONLESS, PYRAMID, CONE = range(8)  # MuJoCo's types of rows
CREATURE_ROWS = {EQUALITY, DRY, DRY_TENDON, LIMIT, TENDON, FRICTIONLESS, PYRAMID}
CREATURE_ROWS |= {("contact", dim, False) for dim in (1, 3, 4, 6)} | {("contact", 6, True)}
ELLIPTIC_ROWS = CREATURE_ROWS - {PYRAMID} | {CONE}
REQUIRED_ROWS = {
    "creature": CREATURE_ROWS,
    "elliptic creature": ELLIPTIC_ROWS,
}


def rollout_states(mechanism, fast, seed=0, **settings):
    """The states of a rollout before and after each step: q, v, u, and q, v after the step, (worlds
    steps, n).
    """
    q, v, _ = random_states(mechanism, WORLDS, seed)
    u = np.random.default_rng(seed).uniform(-1, 1, size=(WORLDS, STEPS, len(mechanism.inputs)))
    after = fast.rollout(q, v, u, steps=STEPS, **settings)
    before = [np.concatenate([x[:, None], y[:, :-1]], axis=1) for x, y in ((q, after.q), (v, after.v))]
    return [x.reshape(WORLDS * STEPS, -1) for x in (*before, u, after.q, after.v)]


def keeps_rows_by_world(mechanism):
    """Whether contacts between moving links have their rows by world."""
    q, v, _ = random_states(mechanism, 1)
    context = row_context(mechanism, Kinematics(mechanism.tree, q[0], v[0]))
    return bool(constraint_rows(context, by_world=True).coupled)


@pytest.mark.parametrize("name", REQUIRED_ROWS)
def test_every_step_of_a_rollout_equals_the_compiled_step_and_mujocos(name):
    text = text_of(name)
    mechanism = mechanism_of(text)
    assert keeps_rows_by_world(mechanism)
    fast = zw.compile(mechanism)
    q, v, u, q_after, v_after = rollout_states(mechanism, fast, integrator="euler")
    alone = fast.step(q, v, u, integrator="euler")
    by_cones = CONE in REQUIRED_ROWS[name]
    assert relative_error(alone.v, v_after, v).max() < (1e-9 if by_cones else 1e-11)
    assert np.abs(alone.q - q_after).max() < 1e-11
    q_mujoco, v_mujoco, kinds = mujoco_steps(text, "euler", q, v, u)
    assert kinds >= REQUIRED_ROWS[name]
    # MuJoCo does not reach its tolerance with sliding cones
    assert relative_error(v_mujoco, v_after, v).max() < (1e-6 if by_cones else 1e-10)
    assert np.abs(q_mujoco - q_after).max() < (1e-8 if by_cones else 1e-11)
