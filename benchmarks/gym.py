"""Steps of environments a second: zwang.gym, Gymnasium's own environments, one after another (sync) and in
a process each (async), and EnvPool if it is installed.

    python -m benchmarks.gym [--envs 64] [--seconds 1.0] [--repeats 5] [--threads 1] [task ...]

All step the same number of environments with the same random actions, observations and automatic resets
included. The measurements are interleaved: each repeat runs one part of every candidate, and the figure is
that of the best repeat, so that other loads of the machine strike all alike.
"""

from __future__ import annotations

import argparse
import importlib.util
import time
import warnings
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np

from zwang.gym.registration import TASKS


def candidates(task: str, envs: int, threads: int) -> dict[str, Callable[[], Any]]:
    """The environments to compare, by name; each is made by a function."""
    made = {
        "zwang": lambda: gymnasium.make_vec(f"zwang/{task}-v5", num_envs=envs, threads=threads),
        "sync": lambda: gymnasium.make_vec(f"{task}-v5", num_envs=envs, vectorization_mode="sync"),
        "async": lambda: gymnasium.make_vec(f"{task}-v5", num_envs=envs, vectorization_mode="async"),
    }
    if importlib.util.find_spec("envpool") is not None:
        envpool = importlib.import_module("envpool")
        made["envpool"] = lambda: envpool.make_gymnasium(
            f"{task}-v5", num_envs=envs, num_threads=threads, seed=0
        )
    return made


def rate(env: Any, actions: np.ndarray, seconds: float) -> float:
    """Steps of environments a second, over at least this time."""
    count, start = 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        for action in actions:
            env.step(action)
        count += len(actions) * actions.shape[1]
    return count / (time.perf_counter() - start)


def compare(task: str, envs: int, seconds: float, repeats: int, threads: int) -> dict[str, float]:
    """The best rate of each candidate."""
    made = {name: make() for name, make in candidates(task, envs, threads).items()}
    space = made["zwang"].single_action_space
    rng = np.random.default_rng(0)
    actions = rng.uniform(space.low, space.high, (20, envs, *space.shape)).astype(np.float32)
    best = dict.fromkeys(made, 0.0)
    for env in made.values():
        env.reset()
    for _ in range(repeats):
        for name, env in made.items():
            best[name] = max(best[name], rate(env, actions, seconds))
    for name, env in made.items():
        if name != "envpool":
            env.close()
    return best


def main() -> None:
    """Print a table of the rates."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tasks", nargs="*", default=list(TASKS))
    parser.add_argument("--envs", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    print(f"steps of environments a second, {given.envs} environments, {given.threads} thread(s)")
    for task in given.tasks:
        rates = compare(task, given.envs, given.seconds, given.repeats, given.threads)
        shown = "  ".join(f"{name} {x:10,.0f}" for name, x in rates.items())
        ratios = [f"{rates['zwang'] / x:.1f} times {name}" for name, x in rates.items() if name != "zwang"]
        print(f"{task:24} {shown}   {', '.join(ratios)}", flush=True)


if __name__ == "__main__":
    main()
