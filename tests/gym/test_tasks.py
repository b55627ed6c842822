"""The tasks beside Gymnasium's own environments, which run MuJoCo."""

from __future__ import annotations

import pickle

import gymnasium
import mujoco
import numpy as np
import pytest
from gymnasium.envs.registration import registry
from gymnasium.utils.env_checker import check_env

from zwang.api.batch.world_view import WorldView
from zwang.constraint.context import StepForm
from zwang.errors import ArgumentError, UnknownNameError
from zwang.gym.registration import TASKS

QUICK = {
    "HalfCheetah": {},
    "Hopper": {"terminate_when_unhealthy": False, "exclude_current_positions_from_observation": False},
    "Walker2d": {"healthy_reward": 0.5, "ctrl_cost_weight": 0.1, "frame_skip": 3},
    "InvertedPendulum": {"reset_noise_scale": 0.1},
    "InvertedDoublePendulum": {},
    "Reacher": {},
    "Swimmer": {"ctrl_cost_weight": 1e-2},
    "Pusher": {"reward_near_weight": 0.7},
    "Ant": {"contact_force_range": (-3.0, 2.0)},
}
"""Arguments of the tasks in the comparison; the humanoids are compared below."""


def reference(name: str, **arguments) -> gymnasium.Env:
    """Gymnasium's environment with an exact solver."""
    env = gymnasium.make(f"{name}-v5", **arguments).unwrapped
    option = env.model.opt
    option.solver, option.tolerance, option.iterations = mujoco.mjtSolver.mjSOL_NEWTON, 1e-16, 1000
    option.ls_tolerance, option.ls_iterations = 1e-12, 200
    return env


def compare(ours: gymnasium.Env, theirs: gymnasium.Env, steps: int, tolerance: float) -> int:
    """Step both with random actions and compare all results; returns the number of contacts seen."""
    rng, contacts = np.random.default_rng(1), 0
    for _ in range(steps):
        action = rng.uniform(theirs.action_space.low, theirs.action_space.high).astype(float)
        found, expected = ours.step(action), theirs.step(action)
        np.testing.assert_allclose(found[0], expected[0], atol=tolerance, rtol=tolerance)
        np.testing.assert_allclose(found[1], expected[1], atol=tolerance, rtol=tolerance)
        assert found[2:4] == expected[2:4] and type(found[2]) is bool
        assert set(found[4]) == set(expected[4])
        for key, value in expected[4].items():
            np.testing.assert_allclose(found[4][key], value, atol=tolerance, rtol=tolerance)
        contacts += theirs.data.ncon
    return contacts


@pytest.mark.parametrize("name", [*QUICK, "Humanoid"])
def test_a_task_equals_gymnasiums(name):
    arguments = QUICK.get(name, {})
    ours = gymnasium.make(f"zwang/{name}-v5", disable_env_checker=True, **arguments).unwrapped
    theirs = reference(name, **arguments)
    assert ours.observation_space == theirs.observation_space and ours.action_space == theirs.action_space
    assert ours.dt == theirs.dt
    for seed in (5, None, None):
        (found, infos), (expected, others) = ours.reset(seed=seed), theirs.reset(seed=seed)
        # the states are equal bit for bit; what is computed from them may differ by rounding
        assert np.array_equal(ours.worlds.v[0], theirs.data.qvel)
        if name not in ("Reacher", "Humanoid"):
            assert np.array_equal(found, expected)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-13)
        assert set(infos) == set(others)
        for key, value in others.items():
            np.testing.assert_allclose(infos[key], value, atol=1e-13)
    compare(ours, theirs, 1, 1e-9)
    compare(ours, theirs, 20, 1e-6)
    contacts = 0
    for _ in range(6):  # again and again from MuJoCo's state
        ours.worlds.set(q=theirs.data.qpos, v=theirs.data.qvel)
        theirs.set_state(theirs.data.qpos.copy(), theirs.data.qvel.copy())
        contacts += compare(ours, theirs, 1, 1e-9)
    assert contacts > 0 or name in ("InvertedPendulum", "InvertedDoublePendulum", "Reacher", "Swimmer")


def test_the_observation_of_the_humanoid_that_stands_up():
    """On floats, for Euler's method, whose last stage is the state before the last step."""
    theirs = reference("HumanoidStandup")
    assert TASKS["HumanoidStandup"].environment().dt == theirs.dt
    theirs.reset(seed=0)
    theirs.model.opt.integrator = mujoco.mjtIntegrator.mjINT_EULER
    action = np.random.default_rng(0).uniform(-0.4, 0.4, 17)
    theirs.do_simulation(action, 1)
    while theirs.data.ncon < 5:
        theirs.do_simulation(action, 1)
    before = theirs.data.qpos.copy(), theirs.data.qvel.copy()
    theirs.frame_skip = 1
    found, reward, *_, infos = theirs.step(action)
    environment = TASKS["HumanoidStandup"].environment(frame_skip=1)
    m, t, h = environment.mechanism, theirs.data.time, 0.003
    first = WorldView(m, (t - h, *before, np.zeros(0), action), {}, StepForm(h))
    after = theirs.data.qpos.copy(), theirs.data.qvel.copy()
    view = WorldView(m, (t, *after, np.zeros(0), action), {}, StepForm(h), first, lambda: first)
    values = environment.observe(view)
    assert theirs.data.ncon >= 3
    np.testing.assert_allclose(np.array(values["observation"], float), found, atol=1e-7, rtol=1e-7)
    np.testing.assert_allclose(float(values["reward"]), reward, rtol=1e-9)
    for key, value in infos.items():
        np.testing.assert_allclose(np.array(values["info " + key], float), value, atol=1e-8)


def test_registration_follows_gymnasium():
    for name in TASKS:
        known, ours = registry[f"{name}-v5"], registry[f"zwang/{name}-v5"]
        assert ours.max_episode_steps == known.max_episode_steps and ours.max_episode_steps
        assert ours.reward_threshold == known.reward_threshold
    env = gymnasium.make("zwang.gym:zwang/InvertedPendulum-v5", max_episode_steps=3)
    env.reset(seed=0)
    assert [env.step([0.0])[3] for _ in range(3)] == [False, False, True]


@pytest.mark.parametrize("name", ["InvertedPendulum", "Reacher"])
def test_gymnasiums_checker_accepts_the_environments(name):
    check_env(gymnasium.make(f"zwang/{name}-v5", render_mode="rgb_array").unwrapped, skip_render_check=True)


def test_wrong_arguments_are_named():
    with pytest.raises(UnknownNameError, match="forward_reward_wait"):
        gymnasium.make("zwang/HalfCheetah-v5", forward_reward_wait=1.0)


@pytest.mark.parametrize("make", [gymnasium.make, lambda *a, **k: gymnasium.make_vec(*a, num_envs=2, **k)])
@pytest.mark.parametrize(
    ("name", "value", "remedy"),
    [
        ("ctrl_cost_weight", "a", "a finite number, such as 0.001"),
        ("healthy_reward", None, "a finite number, such as 1.0"),
        ("reset_noise_scale", np.nan, "a finite number"),
        ("healthy_z_range", 0.7, r"the two ends of an interval, such as \(0.7, inf\)"),
        ("healthy_z_range", (0.7, np.nan), "the two ends of an interval"),
        ("healthy_angle_range", ("a", "b"), "the two ends of an interval"),
        ("terminate_when_unhealthy", "yes", "True or False"),
        ("terminate_when_unhealthy", 2, "True or False"),
        ("xml_file", 5, "the name of a file, such as 'hopper.xml'"),
        ("frame_skip", "four", "such as 4"),
        ("frame_skip", 2.5, "a whole number of steps, at least 1"),
    ],
)
def test_arguments_of_another_kind_are_named(make, name, value, remedy):
    with pytest.raises(ArgumentError, match=f"{name} is .*; it must be .*{remedy}"):
        make("zwang/Hopper-v5", **{name: value})


def test_numbers_of_numpy_and_lists_are_arguments_as_well():
    given = {"healthy_z_range": [0.7, 3], "ctrl_cost_weight": np.float32(0.5), "frame_skip": np.int64(2),
             "terminate_when_unhealthy": 1}  # fmt: skip
    found = TASKS["Hopper"].environment(**given, exclude_current_positions_from_observation=np.True_)
    assert found.frame_skip == 2 and found.worlds(1).observation["observation"].shape == (1, 11)


@pytest.mark.parametrize("name", TASKS)
def test_every_task_can_be_pickled(name):
    environment = TASKS[name].environment()
    copied = pickle.loads(pickle.dumps(environment))
    assert copied.mechanism == environment.mechanism
    found, expected = (e.initial_state(np.random.default_rng(2)) for e in (copied, environment))
    assert all(np.array_equal(x, y) for x, y in zip(found, expected, strict=True))


@pytest.mark.parametrize("make", [gymnasium.make, lambda name: gymnasium.make_vec(name, num_envs=2)])
def test_a_pickled_task_goes_on_with_the_same_bits(make):
    env = make("zwang/InvertedPendulum-v5")
    env.reset(seed=3)
    action = np.full(env.action_space.shape, 0.1)
    env.step(action)
    copied = pickle.loads(pickle.dumps(env))
    for _ in range(3):
        for found, expected in zip(copied.step(action)[:4], env.step(action)[:4], strict=True):
            assert np.array_equal(found, expected)
    assert np.array_equal(copied.reset()[0], env.reset()[0])  # the generators are copied, too
