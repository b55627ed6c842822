"""Render modes of environments, as `gymnasium.make` and `make_vec` offer them."""

from __future__ import annotations

import warnings

import gymnasium
import numpy as np
import pytest

import zwang.gym
from tests.gym.test_vector_env import block_env
from zwang.errors import ArgumentError, SimulationError, ZwangWarning
from zwang.viewer.frame_renderer import FrameRenderer


def test_a_task_gives_pictures_of_its_state():
    env = gymnasium.make("zwang/InvertedPendulum-v5", render_mode="rgb_array", width=160, height=120)
    env.reset(seed=0)
    before = env.render()
    assert before.shape == (120, 160, 3) and before.dtype == np.uint8
    for _ in range(20):
        env.step([3.0])
    world = env.unwrapped.worlds
    after = env.render()
    assert not np.array_equal(before, after)
    assert np.array_equal(after, FrameRenderer(world.mechanism, (160, 120)).draw(world.q[0]))
    assert env.metadata["render_fps"] == round(1 / 0.04)


def test_pictures_of_an_episode_are_collected():
    env = gymnasium.make("zwang/InvertedPendulum-v5", render_mode="rgb_array_list", width=64, height=64)
    env.reset(seed=0)
    for _ in range(3):
        env.step([0.5])
    frames = env.render()
    assert len(frames) == 4 and all(frame.shape == (64, 64, 3) for frame in frames)
    assert not np.array_equal(frames[0], frames[3])


@pytest.mark.parametrize("make", [gymnasium.make, gymnasium.make_vec])
def test_arguments_of_mujocos_renderer_are_reported_where_there_are_pictures(make):
    given = {"camera_name": "no such camera", "default_camera_config": {"distance": 40.0}, "camera_id": None}
    with pytest.warns(ZwangWarning, match="does not use default_camera_config and camera_name") as found:
        make("zwang/InvertedPendulum-v5", render_mode="rgb_array", **given).close()
    assert len([w for w in found if issubclass(w.category, ZwangWarning)]) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error", ZwangWarning)
        make("zwang/InvertedPendulum-v5", **given).close()


def test_a_vector_environment_gives_a_picture_of_each_world():
    envs = block_env(2, render_mode="rgb_array", width=80, height=60, params={"m": 2.0})
    envs.reset(seed=0)
    envs.worlds.set(q={"rail": [0.0, 0.4]})
    frames = envs.render()
    assert len(frames) == 2 and frames[0].shape == (60, 80, 3)
    m = envs.worlds.mechanism.subs({"m": 2.0})
    assert np.array_equal(frames[1], FrameRenderer(m, (80, 60)).draw([0.4]))
    envs.close()


def test_each_step_is_shown_on_a_live_page(monkeypatch):
    """The page is the one of `zw.view`; it is closed with the environment."""
    pages = []

    class Page:
        def __init__(self, mechanism):
            self.shown, self.closed = [], False
            pages.append(self)

        def show(self, q):
            self.shown.append(q.copy())

        def close(self):
            self.closed = True

    monkeypatch.setattr("zwang.viewer.page.live.view", Page)
    env = gymnasium.make("zwang/InvertedPendulum-v5", render_mode="human")
    env.reset(seed=0)
    for _ in range(2):
        env.step([1.0])
    assert env.render() is None
    [page] = pages
    assert len(page.shown) == 3 and np.array_equal(page.shown[-1], env.unwrapped.worlds.q[0])
    env.close()
    assert page.closed


def test_wrong_render_modes_are_named():
    with pytest.raises(ArgumentError, match="rgb_array"):
        zwang.gym.VectorEnv(block_env().environment, render_mode="video")
    env = gymnasium.make("zwang/InvertedPendulum-v5").unwrapped
    env.reset()
    with pytest.raises(SimulationError, match="render_mode"):
        env.render()


@pytest.mark.parametrize("kind", [zwang.gym.VectorEnv, zwang.gym.Env])
@pytest.mark.parametrize("pixels", [0, -3, 2.5, "a", True])
def test_sizes_without_pixels_are_named(kind, pixels):
    for name in ("width", "height"):
        with pytest.raises(ArgumentError, match=f"{name} is {pixels!r}; it must be a whole number of pixels"):
            kind(block_env().environment, render_mode="rgb_array", **{name: pixels})
