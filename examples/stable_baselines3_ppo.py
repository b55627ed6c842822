"""Stable-Baselines3's PPO on a batch of environments: the pole of MuJoCo's cart stays up.

`gymnasium.make("zwang/...")` gives an environment that Stable-Baselines3 takes as it is. A batch that steps
in one call is faster; `Batch` is the vectorised environment that Stable-Baselines3 expects, on Gymnasium's.
"""

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
        return self.envs.reset()[0].astype(np.float32)

    def step_async(self, actions: np.ndarray) -> None:
        self._actions = actions

    def step_wait(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        observation, reward, terminated, truncated, info = self.envs.step(self._actions)
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        done = terminated | truncated
        for k in np.flatnonzero(done):
            infos[k] = {
                "terminal_observation": info["final_obs"][k].astype(np.float32),
                "TimeLimit.truncated": bool(truncated[k] and not terminated[k]),
            }
        return observation.astype(np.float32), reward.astype(np.float32), done, infos

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


def batch(count: int) -> VecEnv:
    """Environments of the inverted pendulum, whose episodes begin again in the step in which they end."""
    mode = gymnasium.vector.AutoresetMode.SAME_STEP
    task = "zwang/InvertedPendulum-v5"
    return VecMonitor(Batch(gymnasium.make_vec(task, num_envs=count, autoreset_mode=mode)))


envs = VecNormalize(batch(16), norm_reward=True)
model = PPO(
    "MlpPolicy", envs, n_steps=64, batch_size=256, learning_rate=1e-3, gamma=0.98, seed=0, device="cpu"
)
model.learn(40_000)
returns = [episode["r"] for episode in model.ep_info_buffer]
print(
    f"{model.num_timesteps:,} steps; the last {len(returns)} episodes returned {np.mean(returns):.0f} of 1000"
)
assert np.mean(returns) > 100
