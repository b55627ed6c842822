"""Rollouts of many free bodies, whose Hessian is factorised in the blocks that are nonzero in the present
state: against MuJoCo, against the text on floats, and bit for bit against each world alone.
"""

from functools import cache

import mujoco
import numpy as np
import pytest

import zwang as zw
from tests.solver.large_models import mechanism_of, mujoco_steps, relative_error
from zwang.simulation.step import State, step, step_settings

BODIES, WORLDS, STEPS = 8, 9, 40


@cache
def heap(cone="pyramidal", robot=""):
    """Balls and capsules with 48 velocities, in two layers."""
    bodies = "".join(
        f'<body pos="{0.19 * (k % 2)} {0.19 * (k // 2 % 2)} {0.1 + 0.19 * (k // 4)}"><freejoint/>'
        f'<geom type="{("sphere", "capsule")[k % 2]}" size="{("0.1", "0.06 0.05")[k % 2]}" '
        f'condim="{(3, 1, 3, 4)[k % 4]}" density="{500 + 100 * k}"/></body>'
        for k in range(BODIES)
    )
    return (
        f'<mujoco><option timestep="0.004" cone="{cone}"/><worldbody>'
        f'<geom type="plane" size="5 5 .1"/>{bodies}{robot}</worldbody></mujoco>'
    )


ARM = (
    '<body pos="0.2 0.2 0.6"><joint axis="0 1 0"/>'
    '<geom type="capsule" fromto="0 0 0 0.2 0 -0.1" size="0.04"/>'
    '<body pos="0.2 0 -0.1"><joint axis="0 1 0" range="-60 60"/>'
    '<geom type="capsule" fromto="0 0 0 0.2 0 -0.1" size="0.04"/></body></body>'
)


@cache
def states(text):
    """Heaps, and bodies so far apart that none touches another."""
    mechanism, rng = mechanism_of(text), np.random.default_rng(0)
    home = np.array(mechanism.home or mechanism.neutral, float)
    q = np.tile(home, (WORLDS, 1))
    for k in range(BODIES):
        q[3::4, 7 * k] = 0.5 * k
    v = 0.3 * rng.normal(size=(WORLDS, mechanism.nv))
    return q, v


@cache
def rollout(text):
    q, v = states(text)
    after = zw.compile(mechanism_of(text), threads=1).rollout(q, v, 0 * v, steps=STEPS)
    return after.q, after.v


@pytest.mark.parametrize(
    "text", [heap(), heap("elliptic"), heap(robot=ARM)], ids=["pyramids", "elliptic cones", "with an arm"]
)
def test_rollouts_of_heaps_equal_mujocos_steps(text):
    (q, v), (q_after, v_after) = states(text), rollout(text)
    before = [np.concatenate([x[:, None], y[:, :-1]], axis=1) for x, y in ((q, q_after), (v, v_after))]
    few = [x[:, ::8].reshape(-1, x.shape[2]) for x in (*before, q_after, v_after)]
    found_q, found_v, kinds = mujoco_steps(text, "euler", *few[:2], np.zeros((len(few[0]), 0)))
    assert ("contact", 3, True) in kinds and ("contact", 3, False) in kinds
    # MuJoCo does not reach its tolerance with sliding cones
    assert relative_error(found_v, few[3], few[1]).max() < (1e-6 if "elliptic" in text else 1e-9)
    assert np.abs(found_q - few[2]).max() < 1e-8


def test_the_worlds_differ_in_their_contacts_between_bodies():
    model = mujoco.MjModel.from_xml_string(heap())
    data, counts = mujoco.MjData(model), []
    for q in rollout(heap())[0][:, -1]:
        data.qpos[:] = q
        mujoco.mj_forward(model, data)
        counts.append(sum(bool(model.geom_bodyid[c.geom].all()) for c in data.contact))
    assert min(counts) == 0 and max(counts) >= 4


@pytest.mark.parametrize("settings", [{"lanes": 2}, {"threads": 2}], ids=str)
def test_a_world_has_the_same_bits_among_others_and_alone(settings):
    (q, v), (q_after, v_after) = states(heap()), rollout(heap())
    fast = zw.compile(mechanism_of(heap()), **settings)
    for own in ([3], [0], list(range(WORLDS))[::-1]):
        after = fast.rollout(q[own], v[own], 0 * v[own], steps=STEPS)
        assert after.q.tobytes() == q_after[own].tobytes()
        assert after.v.tobytes() == v_after[own].tobytes()


def test_the_text_on_floats_is_that_of_compiled_steps():
    mechanism = mechanism_of(heap())
    q, v = (x[:1, 20] for x in rollout(heap()))
    compiled = zw.compile(mechanism, threads=1).step(q, v, 0 * v)
    settings = step_settings(mechanism, mechanism.options.timestep)
    after = step(settings, State(q[0], v[0], np.zeros(0)), np.zeros(mechanism.nv)).state
    np.testing.assert_allclose(np.array(after.v, float), compiled.v[0], atol=1e-9)
    np.testing.assert_allclose(np.array(after.q, float), compiled.q[0], atol=1e-11)
