"""Gymnasium environments on mechanisms: `VectorEnv`, `Env`, and MuJoCo's tasks as `zwang/HalfCheetah-v5` etc.

Importing this package registers the tasks with Gymnasium. It needs the extra `gym`.
"""

from __future__ import annotations

from zwang.errors import MissingExtraError

try:
    import gymnasium as _gymnasium  # noqa: F401
except ImportError:
    raise MissingExtraError("zwang.gym needs the library gymnasium: pip install 'zwang[gym]'") from None

from zwang.gym.environment import Environment
from zwang.gym.registration import register_tasks
from zwang.gym.single_env import Env
from zwang.gym.task import Task
from zwang.gym.vector_env import VectorEnv

__all__ = ["Env", "Environment", "Task", "VectorEnv"]

register_tasks()


def __dir__() -> list[str]:
    return sorted(__all__)
