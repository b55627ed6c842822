"""Proximal policy optimisation (PPO) in JAX, for vectorised environments of Gymnasium.

    python examples/ppo.py [--task zwang/HalfCheetah-v5] [--minutes 5] [--save policy.npz]

Trains a policy on any task of `gymnasium.make_vec` with a box of actions, prints the learning curve, and
saves the policy, which NumPy evaluates. Source: Schulman, Wolski, Dhariwal, Radford, Klimov, "Proximal policy
optimization algorithms" (2017); the advantages are those of Schulman et al., "High-dimensional continuous
control using generalized advantage estimation" (ICLR 2016).
"""

import argparse
import time
from collections import deque
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np

import zwang.gym  # noqa: F401, registers the tasks zwang/...


@dataclass(frozen=True)
class Settings:
    """horizon: steps of each environment between updates. epochs, minibatches: of an update. rate: of Adam,
    falls linearly to zero. discount, trace: gamma and lambda of the advantages. clip: of the probability
    ratio and of the values. deviation: initial standard deviation of the actions. hidden: layer widths.
    """

    horizon: int = 64
    epochs: int = 4
    minibatches: int = 8
    rate: float = 1e-3
    discount: float = 0.99
    trace: float = 0.95
    clip: float = 0.2
    value_weight: float = 1.0
    gradient_norm: float = 1.0
    deviation: float = 0.6
    hidden: tuple[int, ...] = (64, 64)


# ------------------------------------------------------------------------------------------------- networks


def layers(rng, sizes, last):
    """Weights and biases of a network, orthogonal; `last` scales the output layer."""
    made = []
    for k, (n, m) in enumerate(pairwise(sizes)):
        q, r = np.linalg.qr(rng.normal(size=(max(n, m), min(n, m))))
        weights = (q * np.sign(np.diag(r))).T if n < m else q * np.sign(np.diag(r))
        scale = last if k == len(sizes) - 2 else np.sqrt(2)
        made.append((np.float32(scale * weights), np.zeros(m, np.float32)))
    return made


def network(parameters, x, tanh=np.tanh):
    """The output of a network of tanh layers; with `jnp.tanh` for JAX."""
    for weights, bias in parameters[:-1]:
        x = tanh(x @ weights + bias)
    weights, bias = parameters[-1]
    return x @ weights + bias


class RunningStatistics:
    """Mean and variance of all rows so far. Source: Chan, Golub, LeVeque (1979)."""

    def __init__(self, size):
        self.mean, self.variance, self.count = np.zeros(size), np.ones(size), 1e-4

    def update(self, rows):
        mean, variance, count = rows.mean(axis=0), rows.var(axis=0), len(rows)
        total, change = self.count + count, mean - self.mean
        self.variance = (
            self.variance * self.count + variance * count + change**2 * self.count * count / total
        ) / total
        self.mean, self.count = self.mean + change * count / total, total


@dataclass
class Policy:
    """A trained policy, evaluated by NumPy: network, and the statistics that normalise observations.

    center, scale: of the actions, which are center + scale * output, within the bounds of the action space.
    """

    parameters: list
    mean: np.ndarray
    deviation: np.ndarray
    center: np.ndarray
    scale: np.ndarray

    def normalised(self, observation):
        return np.clip((observation - self.mean) / self.deviation, -10, 10).astype(np.float32)

    def actions(self, output):
        return self.center + self.scale * np.clip(output, -1, 1)

    def __call__(self, observation):
        """The most probable actions (n, inputs) for observations (n, size)."""
        return self.actions(network(self.parameters, self.normalised(observation)))

    def save(self, path):
        arrays = [x for layer in self.parameters for x in layer]
        np.savez_compressed(path, self.mean, self.deviation, self.center, self.scale, *arrays)

    @classmethod
    def load(cls, path):
        with np.load(path) as file:
            mean, deviation, center, scale, *arrays = (file[f"arr_{k}"] for k in range(len(file.files)))
        return cls(list(zip(arrays[::2], arrays[1::2], strict=True)), mean, deviation, center, scale)


# --------------------------------------------------------------------------------------------------- update


@partial(jax.jit, static_argnames="settings")
def advantages(critic, x, rewards, terminated, done, settings):
    """Advantages and values (horizon, envs) from observations x (horizon + 1, envs, size).

    The step after the end of an episode only resets the environment. So the observation that follows the end
    is still the last one of the episode, whose value counts unless the episode has terminated.
    """
    values = network(critic, x, jnp.tanh)[..., 0]
    errors = rewards + settings.discount * jnp.where(terminated, 0.0, values[1:]) - values[:-1]

    def backward(later, step):
        error, end = step
        found = error + settings.discount * settings.trace * jnp.where(end, 0.0, later)
        return found, found

    _, found = jax.lax.scan(backward, jnp.zeros_like(errors[0]), (errors, done), reverse=True)
    return found, values[:-1]


def loss(parameters, batch, settings):
    """The clipped objective of the policy, and the squared error of the values, of a minibatch."""
    x, actions, log_old, advantage, target, weight = batch
    actor, critic, log_deviation = parameters
    weight = weight / weight.sum()
    centred = advantage - weight @ advantage
    advantage = centred / (jnp.sqrt(weight @ centred**2) + 1e-8)
    log_new = log_density(actions, network(actor, x, jnp.tanh), log_deviation, jnp)
    ratio = jnp.exp(log_new - log_old)
    clipped = jnp.clip(ratio, 1 - settings.clip, 1 + settings.clip)
    gain = jnp.minimum(ratio * advantage, clipped * advantage)
    error = network(critic, x, jnp.tanh)[:, 0] - target
    return -weight @ gain + 0.5 * settings.value_weight * (weight @ error**2)


def log_density(actions, mean, log_deviation, xp=np):
    """The logarithm of the density of independent normal actions, up to a constant."""
    return -(0.5 * ((actions - mean) / xp.exp(log_deviation)) ** 2 + log_deviation).sum(axis=-1)


@partial(jax.jit, static_argnames="settings")
def update(parameters, moments, data, order, rate, settings):
    """Parameters and moments of Adam after all minibatches, whose rows are `order` (minibatches, rows)."""

    def descend(state, rows):
        parameters, (first, second, count) = state
        gradient = jax.grad(loss)(parameters, jax.tree.map(lambda x: x[rows], data), settings)
        norm = jnp.sqrt(sum(jnp.sum(g**2) for g in jax.tree.leaves(gradient)))
        gradient = jax.tree.map(lambda g: g * jnp.minimum(1.0, settings.gradient_norm / norm), gradient)
        count = count + 1
        first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, gradient)
        second = jax.tree.map(lambda m, g: 0.999 * m + 0.001 * g**2, second, gradient)
        step = rate * jnp.sqrt(1 - 0.999**count) / (1 - 0.9**count)
        parameters = jax.tree.map(
            lambda p, m, s: p - step * m / (jnp.sqrt(s) + 1e-5), parameters, first, second
        )
        return (parameters, (first, second, count)), None

    return jax.lax.scan(descend, (parameters, moments), order)[0]


# ------------------------------------------------------------------------------------------------- training


class Trainer:
    """PPO on a vectorised environment with automatic resets in the next step, which is Gymnasium's default.

    `iterate` collects experience and updates the policy; `returns` are those of the last finished episodes.
    before_step: a function of the environments that is called before each step, for instance to push robots.
    """

    def __init__(self, envs, settings=Settings(), seed=0, before_step=None):
        assert envs.metadata["autoreset_mode"] is gymnasium.vector.AutoresetMode.NEXT_STEP
        self.envs, self.settings, self.before_step = envs, settings, before_step
        self.rng = np.random.default_rng(seed)
        space, size = envs.single_action_space, envs.single_observation_space.shape[0]
        actions = space.shape[0]
        self.center, self.scale = (space.high + space.low) / 2, (space.high - space.low) / 2
        actor = layers(self.rng, (size, *settings.hidden, actions), 0.01)
        critic = layers(self.rng, (size, *settings.hidden, 1), 1.0)
        deviation = np.full(actions, np.log(settings.deviation), np.float32)
        self.parameters = actor, critic, deviation
        zeros = jax.tree.map(np.zeros_like, self.parameters)
        self.moments = zeros, zeros, 0
        self.seen, self.scaled = RunningStatistics(size), RunningStatistics(())
        self.observation, _ = envs.reset(seed=seed)
        self.begins = np.zeros(envs.num_envs, bool)
        self.sums, self.discounted = np.zeros(envs.num_envs), np.zeros(envs.num_envs)
        self.returns: deque[float] = deque(maxlen=100)
        self.steps = 0

    @property
    def policy(self):
        """The policy as it is now."""
        actor = [(np.array(w), np.array(b)) for w, b in self.parameters[0]]
        deviation = np.sqrt(self.seen.variance + 1e-8)
        return Policy(actor, self.seen.mean, deviation, self.center, self.scale)

    def collect(self):
        """Observations, outputs of the policy, log densities, rewards, terminated, done, valid."""
        policy, log_deviation = self.policy, np.array(self.parameters[2])
        deviation, steps = np.exp(log_deviation), []
        for _ in range(self.settings.horizon):
            observation = self.observation
            mean = network(policy.parameters, policy.normalised(observation))
            output = mean + deviation * self.rng.standard_normal(mean.shape, np.float32)
            if self.before_step is not None:
                self.before_step(self.envs)
            self.observation, rewards, terminated, truncated, _ = self.envs.step(policy.actions(output))
            valid, done = ~self.begins, terminated | truncated
            self._count(rewards, done, valid)
            density = log_density(output, mean, log_deviation)
            steps.append((observation, output, density, rewards, terminated, done | self.begins, valid))
            self.begins = done
        parts = [np.array(part) for part in zip(*steps, strict=True)]
        return np.concatenate([parts[0], self.observation[None]]), *parts[1:]

    def _count(self, rewards, done, valid):
        """Keep the returns of finished episodes, and the spread of the discounted sums of rewards."""
        self.sums += rewards
        self.discounted = self.discounted * self.settings.discount + rewards
        self.scaled.update(self.discounted)
        self.returns.extend(self.sums[done])
        self.sums[done], self.discounted[done] = 0, 0
        self.steps += int(valid.sum())

    def iterate(self, progress):
        """Collect experience and improve the policy; progress: from 0 to 1, the fraction that is over."""
        settings = self.settings
        observations, outputs, density, rewards, terminated, done, valid = self.collect()
        x = self.policy.normalised(observations)
        scaled = np.float32(np.clip(rewards / np.sqrt(self.scaled.variance + 1e-8), -10, 10))
        gains, values = advantages(self.parameters[1], x, scaled, terminated, done, settings)
        parts = (x[:-1], outputs, density, gains, gains + values, np.float32(valid))
        data = tuple(jnp.reshape(part, (-1, *part.shape[2:])) for part in parts)
        size = len(data[0]) // settings.minibatches
        order = [
            self.rng.permutation(len(data[0]))[: size * settings.minibatches].reshape(-1, size)
            for _ in range(settings.epochs)
        ]
        rate = settings.rate * (1 - progress)
        self.parameters, self.moments = update(
            self.parameters, self.moments, data, np.concatenate(order), rate, settings
        )
        self.seen.update(observations[1:].reshape(-1, x.shape[-1]))

    def train(self, minutes, report=10.0):
        """Train for a time; the learning curve: rows of seconds, seconds of all cores, steps, mean return."""
        start, curve, shown = time.perf_counter(), [], 0.0
        while (seconds := time.perf_counter() - start) < 60 * minutes:
            self.iterate(seconds / (60 * minutes))
            if self.returns:
                now = time.perf_counter() - start, time.process_time(), self.steps
                curve.append((*now, float(np.mean(self.returns))))
            if curve and seconds >= shown:
                print(
                    "{:6.1f} s {:6.1f} s of all cores {:10,d} steps  return {:8.1f}".format(*curve[-1]),
                    flush=True,
                )
                shown += report
        return np.array(curve)


def evaluate(envs, policy, seed=10_000):
    """The returns (num_envs,) of one episode of each environment under a policy without noise."""
    observation, _ = envs.reset(seed=seed)
    total, running = np.zeros(envs.num_envs), np.ones(envs.num_envs, bool)
    while running.any():
        observation, rewards, terminated, truncated, _ = envs.step(policy(observation))
        total += rewards * running
        running &= ~(terminated | truncated)
    return total


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--task", default="zwang/HalfCheetah-v5")
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--envs", type=int, default=64)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--save", type=Path, help="the policy, a file for NumPy")
    parser.add_argument("--curve", type=Path, help="the learning curve, a file of comma-separated values")
    given = parser.parse_args()
    trainer = Trainer(gymnasium.make_vec(given.task, num_envs=given.envs), seed=given.seed)
    curve = trainer.train(given.minutes)
    trainer.envs.close()
    found = evaluate(gymnasium.make_vec(given.task, num_envs=20), trainer.policy)
    print(
        f"{given.task}: return {found.mean():.0f}, standard deviation {found.std():.0f}, of 20 new episodes"
    )
    if given.save:
        trainer.policy.save(given.save)
    if given.curve:
        np.savetxt(
            given.curve, curve, delimiter=",", header="seconds,cores,steps,return", comments="", fmt="%.6g"
        )


if __name__ == "__main__":
    main()
