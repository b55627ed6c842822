"""A quadruped learns to follow a joystick: commanded velocities forwards and sideways, and a turning rate.

    python examples/joystick_quadruped.py [--minutes 2] [--save policy.npz]

A trot that follows the command on a floor without slip is prescribed in closed form. Fifty times a second the
policy adds corrections to the angles of its twelve servos, so that trunk and command agree (PPO; residual
policy learning, Johannink et al., ICRA 2019). Commands change at random times. The friction of the floor is
drawn at random in each episode.
"""

import argparse
from dataclasses import replace
from pathlib import Path

import gymnasium
import numpy as np
from gymnasium.vector.utils import batch_space
from ppo import Settings, Trainer
from walking_quadruped import MODEL

import zwang as zw
import zwang.gym
from zwang.scalar import acos, atan2, cos, exp, less, logical_or, maximum, minimum, sin, sqrt, symbol

FASTEST = np.array([1.0, 0.5, 1.0])  # command: forwards and to the left [m/s], to the left [rad/s]
SECONDS, CHANGE_EVERY = 10.0, 3.0  # of an episode; mean time between two commands [s]
PERIOD, LIFT, HEIGHT = 0.4, 0.06, 0.30  # of the trot [s]; of a foot [m]; of the hips above the floor [m]
LINK, OFFSET = 0.2, 0.07  # length of thigh and shin; of the thigh from the axis of the hip [m]
HIPS = np.array([(0.19, 0.06), (0.19, -0.06), (-0.19, 0.06), (-0.19, -0.06)])  # front left, front right, ...
PHASES = np.pi * np.array([0, 1, 1, 0])
ANGLE = 0.3  # largest correction of a servo [rad]
STEP, FRAME_SKIP = 0.004, 5
DT = STEP * FRAME_SKIP


def trot(time, command):
    """The twelve angles of the servos [rad] at a time [s], for a command (3,).

    A foot on the floor moves against the trunk, whose velocity at the foot is v + w x r; so does an angle of
    its hip, its thigh and its knee.
    """
    forwards, sideways, turn = command
    lift = LIFT * minimum(1.0, 5 * sqrt(forwards**2 + sideways**2 + (0.3 * turn) ** 2 + 1e-12))
    angles = []
    for (x, y), phase in zip(HIPS, PHASES, strict=True):
        p = 2 * np.pi / PERIOD * time + phase
        side = OFFSET * np.sign(y)
        half = PERIOD / 4 * -cos(p)
        dx, dy = half * (forwards - turn * (y + side)), half * (sideways + turn * x)
        dz = lift * maximum(sin(p), 0) - HEIGHT
        leg = sqrt((side + dy) ** 2 + dz**2 - side**2)  # in the plane of thigh and shin
        hip = atan2(side + dy, -dz) - atan2(0 * dy + side, leg)
        bend = acos(minimum(0.999, sqrt(dx**2 + leg**2) / (2 * LINK)))
        angles += [hip, bend + atan2(-dx, leg), -2 * bend]
    return np.array(angles)


class Corrections(gymnasium.vector.VectorActionWrapper):
    """Actions are corrections of the trot, which the compiled observation computes for the next step."""

    def __init__(self, envs):
        super().__init__(envs)
        self.single_action_space = gymnasium.spaces.Box(-ANGLE, ANGLE, (12,))
        self.action_space = batch_space(self.single_action_space, envs.num_envs)

    def actions(self, actions):
        worlds = self.env.worlds
        worlds.commands["corrections"][:] = actions
        return worlds.observation["info trot"] + actions


def quadruped():
    """The quadruped on a floor whose friction is a symbol."""
    m = zw.load(MODEL)
    friction = (symbol("friction", positive=True), 0.01, 0.0005)
    floor = next(g for g in m.geometry if g.name == "floor")
    surface = replace(floor.surface, friction=friction, priority=1)
    return m.replace(geometry=[replace(g, surface=surface) if g is floor else g for g in m.geometry])


QUADRUPED = quadruped()
STAND = np.array(QUADRUPED.keyframes[0].q)


def motion(s):
    """Velocity and angular velocity of the trunk in its own axes, and the vertical in these axes."""
    R, velocity = s.pose("trunk").R, s.velocity("trunk")
    return R.T @ velocity[:3], R.T @ velocity[3:], R[2]


def observation(s):
    """The trunk's motion, the joints, the command and the phase of the trot."""
    clock = [sin(2 * np.pi / PERIOD * s.time + phase) for phase in (0, np.pi / 2)]
    return [*motion(s), s.q()[7:] - STAND[7:], 0.1 * s.v()[6:], s.command("joystick"), clock]


def reward(s):
    """The trunk moves as commanded, is level and steady, and corrections are small."""
    v, w, up = motion(s)
    command = s.command("joystick")
    errors = (v[0] - command[0]) ** 2 + (v[1] - command[1]) ** 2, (w[2] - command[2]) ** 2
    unsteady = 2 * (up[0] ** 2 + up[1] ** 2) + 0.5 * v[2] ** 2 + 0.05 * (w[0] ** 2 + w[1] ** 2)
    corrections = s.command("corrections")
    followed = exp(-8 * errors[0]) + 0.5 * exp(-4 * errors[1])
    return 0.5 + followed - unsteady - 0.1 * corrections @ corrections


def fallen(s):
    trunk = s.pose("trunk")
    return logical_or(less(trunk.p[2], 0.18), less(trunk.R[2, 2], 0.7))


def infos(s):
    """The velocities that the command is about, and the trot at this time."""
    v, w, _ = motion(s)
    return {"velocity": [v[0], v[1], w[2]], "trot": trot(s.time, s.command("joystick"))}


def initial_state(random):
    """The standing pose with noise."""
    q = STAND.copy()
    q[7:] += random.uniform(-0.1, 0.1, 12)
    return q, random.uniform(-0.1, 0.1, 18)


WALK = zwang.gym.Environment(
    QUADRUPED,
    observation,
    reward,
    fallen,
    infos=infos,
    initial_state=initial_state,
    random_parameters=lambda random: {"friction": random.uniform(0.5, 1.2)},
    params={"friction": 0.8},
    commands={"joystick": np.zeros(3), "corrections": np.zeros(12)},
    step=STEP,
    frame_skip=FRAME_SKIP,
)


class Joystick:
    """Draws new commands at random times; one in five is to stand still."""

    def __init__(self, seed=0):
        self.random = np.random.default_rng(seed)

    def __call__(self, envs):
        worlds = envs.unwrapped.worlds
        chosen = np.flatnonzero((self.random.random(worlds.count) < DT / CHANGE_EVERY) | (worlds.time == 0))
        moves = self.random.random((len(chosen), 1)) < 0.8
        worlds.commands["joystick"][chosen] = FASTEST * self.random.uniform(-1, 1, (len(chosen), 3)) * moves


def follow(policy, commands, seconds=4.0, seed=1):
    """Mean velocities (periods, n, 3) under commands (periods, n, 3), each of which is held for a time, after
    its first second; whether each world has fallen; and all configurations (steps, n, 19).
    """
    commands = np.asarray(commands, float)
    envs = Corrections(zwang.gym.VectorEnv(WALK, num_envs=commands.shape[1]))
    worlds = envs.unwrapped.worlds
    seen, _ = envs.reset(seed=seed)
    fell, velocities, configurations = np.zeros(len(seen), bool), [], []
    for command in np.repeat(commands, round(seconds / DT), axis=0):
        worlds.commands["joystick"][:] = command
        seen, _, terminated, _, infos = envs.step(policy(seen))
        fell |= terminated
        velocities.append(infos["velocity"])
        configurations.append(worlds.q.copy())
    periods = np.reshape(velocities, (len(commands), -1, *commands.shape[1:]))
    return periods[:, round(1 / DT) :].mean(axis=1), fell, np.array(configurations)


def errors(policy, count=64):
    """Root mean square errors (3,) of the velocities under random commands, and whether each world fell."""
    commands = FASTEST * np.random.default_rng(7).uniform(-1, 1, (1, count, 3))
    found, fell, _ = follow(policy, commands)
    return np.sqrt(np.mean((found - commands)[0, ~fell] ** 2, axis=0)), fell


SETTINGS = Settings(horizon=32, epochs=4, minibatches=8, rate=1e-3, deviation=0.2)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=2.0)
    parser.add_argument("--envs", type=int, default=256)
    parser.add_argument("--tested", type=int, default=64, help="in so many worlds, before and after")
    parser.add_argument("--save", type=Path, help="the policy, a file for NumPy")
    given = parser.parse_args()
    limit = round(SECONDS / DT)
    envs = zwang.gym.VectorEnv(WALK, num_envs=given.envs, max_episode_steps=limit, dtype="float32")
    trainer = Trainer(Corrections(envs), SETTINGS, before_step=Joystick())
    print("before:", summary(lambda x: np.zeros((len(x), 12)), given.tested))
    trainer.train(given.minutes)
    print("after:", summary(trainer.policy, given.tested))
    if given.save:
        trainer.policy.save(given.save)


def summary(policy, count):
    """How well random commands are followed in `count` worlds."""
    found, fell = errors(policy, count)
    x, y, turn = found
    return f"{fell.sum()} of {len(fell)} fell; errors {x:.3f} m/s, {y:.3f} m/s, {turn:.3f} rad/s"


if __name__ == "__main__":
    main()
