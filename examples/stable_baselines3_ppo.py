"""Stable-Baselines3's PPO on a batch of environments: the pole of MuJoCo's cart stays up.

`gymnasium.make("zwang/...")` gives an environment that Stable-Baselines3 takes as it is. A batch that steps
in one call is faster; `Batch` is the vectorised environment that Stable-Baselines3 expects, on Gymnasium's.
"""

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import VecEnv, VecMonitor, VecNormalize

import zwang.gym  # noqa: F401, its import registers the environments


class Batch(VecEnv):
    """A vectorised environment of Gymnasium, with autoreset mode SAME_STEP, as one of Stable-Baselines3."""

    def __init__(self, envs: gymnasium.vector.VectorEnv):
        self.envs, self._actions = envs, np.zeros(0)
        super().__init__(envs.num_envs, envs.single_observation_space, envs.single_action_space)

    def reset(self) -> np.ndarray:
        observation, infos = self.envs.reset(seed=self._seeds)
        self._reset_seeds()  # those of `seed` are for one reset
        self.reset_infos = of_each(infos, self.num_envs)
        return observation.astype(np.float32)

    def step_async(self, actions: np.ndarray) -> None:
        self._actions = actions

    def step_wait(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        observation, reward, terminated, truncated, given = self.envs.step(self._actions)
        infos = of_each(given, self.num_envs)
        done = terminated | truncated
        for k in np.flatnonzero(done):  # the other infos are those of the episode that begins
            ended, last = infos[k].pop("final_info", {}), infos[k].pop("final_obs")
            self.reset_infos[k] = infos[k]
            infos[k] = {**ended, "terminal_observation": last.astype(np.float32)}
        for k in range(self.num_envs):
            infos[k]["TimeLimit.truncated"] = bool(truncated[k] and not terminated[k])
        return observation.astype(np.float32), reward.astype(np.float32), done, infos

    def get_images(self) -> Sequence[np.ndarray | None]:
        return self.envs.render() or ()

    def close(self) -> None:
        self.envs.close()

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        return [getattr(self.envs, attr_name, None) for _ in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        raise NotImplementedError("the environments of a batch have no attributes of their own")

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> list[Any]:
        raise NotImplementedError("the environments of a batch have no methods of their own")

    def env_is_wrapped(self, wrapper_class: type, indices: Any = None) -> list[bool]:
        return [False for _ in self._get_indices(indices)]


def of_each(infos: dict[str, Any], count: int) -> list[dict[str, Any]]:
    """The infos of each environment, from Gymnasium's arrays by name and their masks by "_" and the name."""
    found: list[dict[str, Any]] = [{} for _ in range(count)]
    for name, values in infos.items():
        parts = of_each(values, count) if isinstance(values, dict) else values
        for k in np.flatnonzero(infos.get(f"_{name}", False)):
            found[k][name] = parts[k]
    return found


def batch(count: int) -> VecEnv:
    """Environments of the inverted pendulum, whose episodes begin again in the step in which they end."""
    mode = gymnasium.vector.AutoresetMode.SAME_STEP
    task = "zwang/InvertedPendulum-v5"
    return VecMonitor(Batch(gymnasium.make_vec(task, num_envs=count, autoreset_mode=mode)))


if __name__ == "__main__":
    envs = VecNormalize(batch(16), norm_reward=True)
    model = PPO(
        "MlpPolicy", envs, n_steps=64, batch_size=256, learning_rate=1e-3, gamma=0.98, seed=0, device="cpu"
    )
    model.learn(40_000)
    returns = [episode["r"] for episode in model.ep_info_buffer]
    episodes = f"the last {len(returns)} episodes returned {np.mean(returns):.0f} of 1000"
    print(f"{model.num_timesteps:,} steps; {episodes}")
    assert np.mean(returns) > 100
