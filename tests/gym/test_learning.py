"""The examples that learn: advantages against their definition, and returns that rise within seconds."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import zwang as zw
import zwang.gym

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def ppo(monkeypatch):
    pytest.importorskip("jax")
    monkeypatch.syspath_prepend(str(EXAMPLES))
    import ppo  # noqa: PLC0415, a script

    return ppo


def test_advantages_are_those_of_their_definition(ppo):
    """A_t = sum_k (gamma lambda)^k delta_{t+k} up to the end of the episode, delta_t = r_t + gamma V_{t+1} -
    V_t, without V_{t+1} where the episode terminates. Source: Schulman et al. (ICLR 2016), Eqs. 10, 16.
    """
    rng = np.random.default_rng(0)
    critic = ppo.layers(rng, (3, 8, 1), 1.0)
    x = rng.normal(size=(13, 2, 3)).astype(np.float32)
    rewards = rng.normal(size=(12, 2)).astype(np.float32)
    terminated, done = np.zeros((12, 2), bool), np.zeros((12, 2), bool)
    terminated[4, 0] = done[4, 0] = done[5, 0] = done[8, 1] = done[9, 1] = True
    settings = ppo.Settings(discount=0.9, trace=0.7)
    found, values = ppo.advantages(critic, x, rewards, terminated, done, settings)
    V = ppo.network(critic, x)[..., 0]
    np.testing.assert_allclose(values, V[:-1], rtol=1e-5)
    for w in range(2):
        for t in range(12):
            expected, factor = 0.0, 1.0
            for k in range(t, 12):
                after = 0.0 if terminated[k, w] else V[k + 1, w]
                expected += factor * (rewards[k, w] + 0.9 * after - V[k, w])
                factor *= 0.9 * 0.7
                if done[k, w]:
                    break
            assert abs(found[t, w] - expected) < 1e-4


def test_an_inverted_pendulum_learns_to_balance(ppo, tmp_path):
    """The return of a random policy is about 6; the saved policy, read again, balances far longer."""
    envs = gymnasium.make_vec("zwang/InvertedPendulum-v5", num_envs=16)
    trainer = ppo.Trainer(envs, ppo.Settings(horizon=64, rate=3e-3, discount=0.98, deviation=0.3))
    untrained = ppo.evaluate(envs, trainer.policy).mean()
    trainer = ppo.Trainer(envs, trainer.settings)
    for k in range(25):
        trainer.iterate(k / 25)
    trainer.policy.save(tmp_path / "policy.npz")
    policy = ppo.Policy.load(tmp_path / "policy.npz")
    trained = ppo.evaluate(envs, policy).mean()
    assert untrained < 50 and trained > 300, (untrained, trained)


def test_a_batch_for_stable_baselines_gives_what_its_own_environments_give(monkeypatch):
    """Observations from a seed on, rewards, ends and infos, also those of the last step of an episode."""
    pytest.importorskip("stable_baselines3")
    monkeypatch.syspath_prepend(str(EXAMPLES))
    from stable_baselines3.common.env_util import make_vec_env  # noqa: PLC0415
    from stable_baselines3_ppo import Batch  # noqa: PLC0415, a script

    task, limit, mode = "zwang/InvertedPendulum-v5", {"max_episode_steps": 7}, {"autoreset_mode": "SameStep"}
    batch = Batch(gymnasium.make_vec(task, num_envs=3, render_mode="rgb_array", **limit, **mode))
    theirs = make_vec_env(task, 3, env_kwargs=limit)
    rng, done = np.random.default_rng(0), []
    for env in (batch, theirs):
        env.seed(5)
    for _ in range(2):  # only the first one has the seeds
        np.testing.assert_array_equal(batch.reset(), theirs.reset().astype(np.float32))
        for _ in range(20):
            actions = rng.uniform(-3, 3, (3, 1)).astype(np.float32)
            *found, infos = batch.step(actions)
            *expected, their_infos = theirs.step(actions)
            for x, y in zip(found, expected, strict=True):
                np.testing.assert_array_equal(x, np.asarray(y, x.dtype))
            for mine, other in zip(infos, their_infos, strict=True):
                other.pop("episode", None)  # of the monitor
                assert set(mine) == set(other)
                for name, value in other.items():
                    np.testing.assert_array_equal(mine[name], np.asarray(value, np.asarray(mine[name]).dtype))
                done.append((other["TimeLimit.truncated"], "terminal_observation" in other))
    assert {(True, True), (False, True), (False, False)} == set(done)
    assert batch.get_images()[2].shape == (480, 480, 3)


def test_the_environments_for_cleanrl_report_the_return_of_each_episode_that_ends():
    page = (EXAMPLES.parent / "docs" / "howto" / "train_with_ppo.md").read_text("utf-8")
    block = next(
        x for x in re.findall(r"^```{code-block} python\n(.*?)^```", page, re.M | re.S) if "runpy" in x
    )
    names: dict[str, Any] = {}
    exec(block[: block.index("wrapper =")], names)

    def make():
        return gymnasium.wrappers.RecordEpisodeStatistics(gymnasium.make("zwang/InvertedPendulum-v5"))

    envs, rng = names["Environments"]([make] * 3), np.random.default_rng(0)
    envs.reset(seed=0)
    returns, ended = np.zeros(3), 0
    for _ in range(20):
        _, rewards, terminated, _, infos = envs.step(rng.uniform(-3, 3, (3, 1)).astype(np.float32))
        returns += rewards
        final = infos.get("final_info", [None] * 3)
        assert [info is not None for info in final] == terminated.tolist()
        for k in np.flatnonzero(terminated):
            assert final[k]["episode"]["r"] == returns[k] > 0
            returns[k], ended = 0, ended + 1
    assert ended > 3


def test_the_corrected_trot_of_the_quadruped_is_the_trot_without_corrections(ppo):
    """The servos of a policy that does nothing are those of the trot, with which no world falls unpushed."""
    sys.modules.pop("walking_quadruped", None)
    import walking_quadruped as walking  # noqa: PLC0415, a script

    envs = walking.Corrections(zwang.gym.VectorEnv(walking.WALK, num_envs=4))
    envs.reset(seed=0)
    for _ in range(20):
        time = envs.unwrapped.worlds.time
        _, rewards, terminated, _, _ = envs.step(np.zeros((4, 12)))
        assert np.array_equal(envs.unwrapped.worlds.control, walking.trot(time).T)
    assert not terminated.any() and np.isfinite(rewards).all()
    params = envs.unwrapped.worlds.params
    assert len(set(params["friction"])) == 4 and np.ptp(params["mass"]) > 0.1


def test_feet_of_the_commanded_trot_move_against_the_trunk(ppo):
    """In its half period on the floor a foot stays at its height and moves by -(v + w x r) of this time."""
    import joystick_quadruped as joystick  # noqa: PLC0415, a script

    command, robot = np.array([0.6, -0.3, 0.7]), joystick.QUADRUPED.subs({"friction": 0.8})
    legs = ("front_left", "front_right", "rear_left", "rear_right")

    def feet(time: float) -> np.ndarray:
        q = np.array([0, 0, 0, 1, 0, 0, 0, *joystick.trot(time, command)], float)
        poses = [zw.frame_pose(robot, q, f"{leg}_shin") for leg in legs]
        return np.array([np.array(p.p + p.R @ [0, 0, -0.2], float) for p in poses])

    period = joystick.PERIOD
    for k, start in enumerate((0.5, 0, 0, 0.5)):  # of the time on the floor, in periods
        first, middle, last = (feet(period * (start + x))[k] for x in (0, 0.25, 0.5))
        r = middle - [0, 0, middle[2]]
        velocity = np.cross([0, 0, command[2]], r) + np.array([*command[:2], 0])
        np.testing.assert_allclose(last - first, -period / 2 * velocity, atol=1e-12)
        np.testing.assert_allclose([first[2], middle[2], last[2]], -joystick.HEIGHT, atol=1e-12)
        lifted = feet(period * (start + 0.75))[k][2]
        np.testing.assert_allclose(lifted + joystick.HEIGHT, joystick.LIFT, atol=1e-12)
