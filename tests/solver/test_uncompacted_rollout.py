"""Rollouts of models whose rows are not compacted: many small trees, hard contacts."""

from functools import cache

import mujoco
import numpy as np
import pytest

import zwang as zw
from tests.solver.large_models import mechanism_of, mujoco_steps, random_states, relative_error
from tests.solver.test_compacted_rollout import keeps_rows_by_world

WORLDS, STEPS = 6, 120


@cache
def heap(cone):
    """Four free bodies, with 24 velocities, that fall on each other."""
    bodies = "".join(
        f'<body pos="{0.1 * k} {0.04 * (k % 2)} {0.12 + 0.2 * k}"><freejoint/>'
        f'<geom type="{("sphere", "capsule")[k % 2]}" size="{("0.1", "0.06 0.08")[k % 2]}" '
        f'condim="{(3, 4, 6, 1)[k % 4]}"/></body>'
        for k in range(4)
    )
    return (
        f'<mujoco><option timestep="0.004" cone="{cone}"/><worldbody>'
        f'<geom type="plane" size="5 5 .1"/>{bodies}</worldbody></mujoco>'
    )


def rollout_states(mechanism, fast):
    """States before and after each step of a rollout, (worlds steps, n)."""
    q, v, u = random_states(mechanism, WORLDS)
    u = u if mechanism.inputs else np.zeros((WORLDS, mechanism.nv))
    after = fast.rollout(q, v, u, steps=STEPS)
    before = [np.concatenate([x[:, None], y[:, :-1]], axis=1) for x, y in ((q, after.q), (v, after.v))]
    states = [x.reshape(WORLDS * STEPS, -1) for x in (*before, after.q, after.v)]
    return [*states, np.repeat(u, STEPS, axis=0)]


@pytest.mark.parametrize(("cone", "tolerance"), [("elliptic", 1e-6), ("pyramidal", 1e-10)])
def test_rollouts_without_compaction_equal_mujocos_steps(cone, tolerance):
    text = heap(cone)
    mechanism = mechanism_of(text)
    assert not keeps_rows_by_world(mechanism)
    fast = zw.compile(mechanism)
    q, v, q_after, v_after, u = rollout_states(mechanism, fast)
    alone = fast.rollout(q, v, u, steps=1)  # without a warm start
    assert relative_error(alone.v[:, 0], v_after, v).max() < 1e-9
    q_mujoco, v_mujoco, kinds = mujoco_steps(text, "euler", q, v, u[:, : len(mechanism.inputs)])
    rows = mujoco.mjtConstraint
    cones = rows.mjCNSTR_CONTACT_ELLIPTIC if cone == "elliptic" else rows.mjCNSTR_CONTACT_PYRAMIDAL
    assert int(cones) in kinds
    # MuJoCo does not reach its tolerance with sliding cones
    assert relative_error(v_mujoco, v_after, v).max() < tolerance
    assert np.abs(q_mujoco - q_after).max() < 1e-8


def test_rollouts_with_hard_contacts_of_a_large_tree_equal_single_steps():
    """A chain with one prismatic and ten revolute joints over hard ground, with soft limits."""
    hard = zw.Surface(hard=True, friction=(0.5, 0.005, 0.0001))
    bodies = [zw.Body("b0", joint=zw.Prismatic("j0", axis=(0, 0, 1)), mass=0.5, position=(0, 0, 0.3))]
    for k in range(1, 11):
        joint = zw.Revolute(f"j{k}", axis=((0, 1, 0), (0, 0, 1))[k % 2], limits=(-0.4, 0.4), friction=0.01)
        shapes = [zw.Sphere(0.05, surface=hard)] if k % 5 == 0 else []
        bodies.append(
            zw.Body(f"b{k}", parent=f"b{k - 1}", position=(0.1, 0, 0), joint=joint, mass=0.1,
                    inertia=(1e-3,) * 3, geometry=shapes)
        )  # fmt: skip
    mechanism = zw.Mechanism(bodies=bodies, geometry=[zw.Plane(surface=hard)])
    fast, rng = zw.compile(mechanism), np.random.default_rng(0)
    q, v = 0.1 * rng.normal(size=(2, 4, mechanism.nv))
    u, h = np.zeros((4, mechanism.nv)), 0.002
    after = fast.rollout(q, v, u, steps=150, step=h)
    assert not keeps_rows_by_world(mechanism) and np.isfinite(after.v).all() and after.q[:, -1].min() < -0.1
    for k in range(0, 149, 8):
        alone = fast.step(after.q[:, k], after.v[:, k], u, step=h)
        assert relative_error(after.v[:, k + 1], alone.v, after.v[:, k]).max() < 1e-9
