"""Proximal policy optimisation (PPO) in PyTorch, in the single-file form of CleanRL's scripts.

    python examples/torch_ppo.py [--env-id zwang/HalfCheetah-v5] [--total-timesteps 1000000]

Only the name of the task tells zwang's environments from Gymnasium's: with `--env-id HalfCheetah-v5` the same
lines train on MuJoCo. The wrappers and the order of computation are those of CleanRL's
`ppo_continuous_action.py` (Huang et al., JMLR 23 (2022) 274), with larger batches for more environments.
Source: Schulman, Wolski, Dhariwal, Radford, Klimov, "Proximal policy optimization algorithms" (2017).
"""

import argparse
import time

import gymnasium
import numpy as np
import torch
from gymnasium.wrappers import vector as wrappers
from torch import nn
from torch.distributions import Normal

import zwang.gym  # noqa: F401, registers the tasks zwang/...

parser = argparse.ArgumentParser()
parser.add_argument("--env-id", default="zwang/HalfCheetah-v5")
parser.add_argument("--total-timesteps", type=int, default=1_000_000)
parser.add_argument("--num-envs", type=int, default=64)
parser.add_argument("--num-steps", type=int, default=64, help="of each environment between updates")
parser.add_argument("--num-minibatches", type=int, default=8)
parser.add_argument("--update-epochs", type=int, default=4)
parser.add_argument("--learning-rate", type=float, default=1e-3)
parser.add_argument("--gamma", type=float, default=0.99)
parser.add_argument("--gae-lambda", type=float, default=0.95)
parser.add_argument("--clip-coef", type=float, default=0.2)
parser.add_argument("--vf-coef", type=float, default=0.5)
parser.add_argument("--max-grad-norm", type=float, default=0.5)
parser.add_argument("--seed", type=int, default=1)
args = parser.parse_args()


def make_envs():
    """The vectorised environment: actions within their bounds, normalised observations and rewards."""
    envs = gymnasium.make_vec(args.env_id, num_envs=args.num_envs)
    envs = wrappers.RecordEpisodeStatistics(envs)
    envs = wrappers.ClipAction(envs)
    envs = wrappers.NormalizeObservation(envs)
    envs = wrappers.TransformObservation(envs, lambda x: np.clip(x, -10, 10))
    envs = wrappers.NormalizeReward(envs, gamma=args.gamma)
    return wrappers.TransformReward(envs, lambda x: np.clip(x, -10, 10))


def layer(inputs, outputs, gain=np.sqrt(2)):
    """A linear layer with orthogonal weights."""
    made = nn.Linear(inputs, outputs)
    nn.init.orthogonal_(made.weight, gain)
    nn.init.zeros_(made.bias)
    return made


class Agent(nn.Module):
    """A policy with normal actions of constant deviation, and the value of observations."""

    def __init__(self, size, actions):
        super().__init__()
        self.critic = nn.Sequential(layer(size, 64), nn.Tanh(), layer(64, 64), nn.Tanh(), layer(64, 1, 1.0))
        self.mean = nn.Sequential(
            layer(size, 64), nn.Tanh(), layer(64, 64), nn.Tanh(), layer(64, actions, 0.01)
        )
        self.log_deviation = nn.Parameter(torch.zeros(actions))

    def value(self, x):
        return self.critic(x)[:, 0]

    def act(self, x, action=None):
        """An action, drawn unless it is given, with the logarithm of its density and the value."""
        normal = Normal(self.mean(x), self.log_deviation.exp())
        action = normal.sample() if action is None else action
        return action, normal.log_prob(action).sum(1), self.value(x)


def collect(agent, envs, x, begins):
    """Experience (steps, envs, ...), the last observation, and which episodes begin with it.

    The step after the end of an episode only resets the environment; `valid` is False there.
    """
    rows, returns = [], []
    for _ in range(args.num_steps):
        with torch.no_grad():
            action, log_density, value = agent.act(x)
        following, reward, terminated, truncated, info = envs.step(action.numpy())
        done = terminated | truncated
        reward, stop, end = (torch.as_tensor(part) for part in (np.float32(reward), terminated, done))
        rows.append((x, action, log_density, value, reward, stop, end | begins, ~begins))
        x, begins = torch.as_tensor(np.float32(following)), end
        if "episode" in info:
            returns += [float(r) for r in info["episode"]["r"][info["_episode"]]]
    return [torch.stack(part) for part in zip(*rows, strict=True)], x, begins, returns


def advantages(agent, values, rewards, terminated, done, last):
    """Generalised advantage estimates (steps, envs); Schulman et al. (2016), equation 16."""
    with torch.no_grad():
        following = torch.cat([values[1:], agent.value(last)[None]])
    errors = rewards + args.gamma * following * ~terminated - values
    found, later = torch.zeros_like(errors), torch.zeros_like(errors[0])
    for t in reversed(range(len(errors))):
        found[t] = later = errors[t] + args.gamma * args.gae_lambda * later * ~done[t]
    return found


def improve(agent, optimiser, data):
    """Gradient steps on the clipped objective over the rows of experience."""
    x, actions, old, old_values, gains, targets = data
    size = max(1, len(x) // args.num_minibatches)
    for _ in range(args.update_epochs):
        for rows in torch.randperm(len(x)).split(size):
            if len(rows) < 2:
                continue
            _, new, value = agent.act(x[rows], actions[rows])
            ratio = (new - old[rows]).exp()
            gain = (gains[rows] - gains[rows].mean()) / (gains[rows].std() + 1e-8)
            clipped = ratio.clamp(1 - args.clip_coef, 1 + args.clip_coef)
            policy_loss = torch.max(-gain * ratio, -gain * clipped).mean()
            near = old_values[rows] + (value - old_values[rows]).clamp(-args.clip_coef, args.clip_coef)
            target = targets[rows]
            value_loss = 0.5 * torch.max((value - target) ** 2, (near - target) ** 2).mean()
            optimiser.zero_grad()
            (policy_loss + args.vf_coef * value_loss).backward()
            nn.utils.clip_grad_norm_(agent.parameters(), args.max_grad_norm)
            optimiser.step()


torch.manual_seed(args.seed)
torch.set_num_threads(1)  # the networks are small
envs = make_envs()
agent = Agent(envs.single_observation_space.shape[0], envs.single_action_space.shape[0])
optimiser = torch.optim.Adam(agent.parameters(), lr=args.learning_rate, eps=1e-5)
x, begins = torch.as_tensor(np.float32(envs.reset(seed=args.seed)[0])), torch.zeros(args.num_envs, dtype=bool)
steps, start, shown, stepping, recent = 0, time.perf_counter(), 0.0, 0.0, []
while steps < args.total_timesteps:
    optimiser.param_groups[0]["lr"] = args.learning_rate * (1 - steps / args.total_timesteps)
    began = time.perf_counter()
    experience, x, begins, returns = collect(agent, envs, x, begins)
    stepping += time.perf_counter() - began
    observations, actions, log_density, values, rewards, terminated, done, valid = experience
    gains = advantages(agent, values, rewards, terminated, done, x)
    improve(
        agent,
        optimiser,
        [part[valid] for part in (observations, actions, log_density, values, gains, gains + values)],
    )
    steps += int(valid.sum())
    recent = (recent + returns)[-50:]
    seconds = time.perf_counter() - start
    if recent and (seconds > shown or steps >= args.total_timesteps):
        print(
            f"{seconds:6.1f} s, {time.process_time():6.1f} s of all cores {steps:10,d} steps  "
            f"return of {len(recent)} episodes {np.mean(recent):8.1f}",
            flush=True,
        )
        shown = seconds + 10
envs.close()
print(f"{steps / seconds:,.0f} steps a second, {steps / stepping:,.0f} while experience is collected")
