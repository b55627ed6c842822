"""A quadruped learns to walk at a commanded speed with random friction and mass, and to stay up when pushed.

    python examples/walking_quadruped.py [--minutes 5] [--save policy.npz]

A trot is prescribed in closed form. Fifty times a second the policy adds corrections to the angles of its
twelve servos (residual policy learning; Johannink et al., "Residual reinforcement learning for robot
control", ICRA 2019). The friction of the floor and the mass of the trunk are drawn at random in each episode,
and the trunk is pushed at random times.
"""

import argparse
import os
from dataclasses import replace
from pathlib import Path

import gymnasium
import numpy as np
from gymnasium.vector.utils import batch_space
from ppo import Settings, Trainer

import zwang as zw
import zwang.gym
from zwang.scalar import acos, atan2, cos, exp, less, logical_or, maximum, minimum, sin, sqrt, symbol

SPEED = 0.5  # commanded, along x [m/s]
FRICTION, PAYLOAD = (0.5, 1.2), (-1.0, 2.0)  # of the floor; mass on the trunk [kg]
PUSH, PUSHES_EVERY = 0.8, 2.0  # change of the trunk's velocity [m/s], mean time between [s]
STRIDE, LIFT, PERIOD = 0.07, 0.06, 0.45  # of the trot: half length [m], height [m], duration [s]
ANGLE = 0.3  # largest correction of a servo [rad]
STEP, FRAME_SKIP = 0.004, 5
SECONDS = 10.0  # of an episode
PHASES = (0, np.pi, np.pi, 0)  # of the legs: front left, front right, rear left, rear right
MODEL = Path(os.environ.get("ZWANG_ROOT", Path(__file__).parents[1])) / "examples/models/quadruped.xml"


def randomised_quadruped():
    """The quadruped with symbols for the friction of the floor and the mass of the trunk, and that mass."""
    m = zw.load(MODEL)
    friction, mass = symbol("friction", positive=True), symbol("mass", positive=True)
    bodies = [replace(b, mass=mass) if b.name == "trunk" else b for b in m.bodies]
    floor = [
        replace(g, surface=replace(g.surface, friction=(friction, 0.01, 0.0005), priority=1))
        for g in m.geometry
    ]
    return m.replace(bodies=bodies, geometry=floor), float(m.body("trunk").mass)


QUADRUPED, TRUNK_MASS = randomised_quadruped()
STAND = QUADRUPED.keyframes[0]


def trot(time):
    """The twelve angles of the servos [rad] in a trot at a time [s]; both links of a leg are 0.2 m long."""
    angles, stride = [], STRIDE * minimum(time, 1.0)
    for phase in PHASES:
        p = 2 * np.pi / PERIOD * time + phase
        x, z = -stride * cos(p) - 0.01, -0.30 + LIFT * maximum(sin(p), 0)
        half = acos(sqrt(x * x + z * z) / 0.4)
        angles += [0 * time, half + atan2(-x, -z), -2 * half]
    return np.array(angles)


class Corrections(gymnasium.vector.VectorActionWrapper):
    """Actions are corrections of the trot."""

    def __init__(self, envs):
        super().__init__(envs)
        self.single_action_space = gymnasium.spaces.Box(-ANGLE, ANGLE, (12,))
        self.action_space = batch_space(self.single_action_space, envs.num_envs)

    def actions(self, actions):
        return trot(self.env.worlds.time).T + actions


def observation(s):
    """The trunk's orientation and velocities in its own frame, the joints, the corrections and the phase."""
    R, velocity = s.pose("trunk").R, s.velocity("trunk")
    clock = [sin(2 * np.pi / PERIOD * s.time + phase) for phase in (0, np.pi / 2)]
    joints = [s.q()[7:] - STAND.q[7:], 0.1 * s.v()[6:]]
    return [R[0], R[2], R.T @ velocity[:3], R.T @ velocity[3:], s.pose("trunk").p[2], *joints, clock]


def reward(s):
    """The velocity is the commanded one, the trunk is level and steady, and corrections are small."""
    R, velocity = s.pose("trunk").R, s.velocity("trunk")
    error = (velocity[0] - SPEED) ** 2 + velocity[1] ** 2
    tilt = R[2, 0] ** 2 + R[2, 1] ** 2 + R[1, 0] ** 2
    unsteady = 2 * tilt + 0.3 * velocity[2] ** 2 + 0.02 * velocity[3:] @ velocity[3:]
    corrections = s.control() - trot(s.time - STEP * FRAME_SKIP)
    return 0.5 + exp(-8 * error) - unsteady - 0.3 * corrections @ corrections


def fallen(s):
    trunk = s.pose("trunk")
    return logical_or(less(trunk.p[2], 0.18), less(trunk.R[2, 2], 0.7))


def initial_state(random):
    """The standing pose with noise."""
    q = np.array(STAND.q)
    q[7:] += random.uniform(-0.1, 0.1, 12)
    return q, random.uniform(-0.1, 0.1, 18)


def random_parameters(random):
    """The friction of the floor, and the mass of the trunk [kg], of one episode."""
    return {"friction": random.uniform(*FRICTION), "mass": TRUNK_MASS + random.uniform(*PAYLOAD)}


WALK = zwang.gym.Environment(
    QUADRUPED,
    observation,
    reward,
    fallen,
    initial_state=initial_state,
    random_parameters=random_parameters,
    params={"friction": 0.8, "mass": TRUNK_MASS},
    step=STEP,
    frame_skip=FRAME_SKIP,
)


class Pusher:
    """Pushes trunks at random times, in random horizontal directions."""

    def __init__(self, seed=0):
        self.random = np.random.default_rng(seed)

    def __call__(self, envs):
        worlds = envs.unwrapped.worlds
        pushed = np.flatnonzero(self.random.random(worlds.count) < WALK.dt / PUSHES_EVERY)
        direction = self.random.uniform(0, 2 * np.pi, len(pushed))
        worlds.v[pushed, :2] += PUSH * np.stack([np.cos(direction), np.sin(direction)], axis=-1)


def walk(policy, count=64, push=0.0, seed=1):
    """Mean speeds (count,) [m/s] along x after the first second, in worlds with random friction and mass, and
    whether each has fallen. push: change of the velocity to the left or right every two seconds [m/s].
    """
    envs = Corrections(zwang.gym.VectorEnv(WALK, num_envs=count))
    worlds = envs.unwrapped.worlds
    seen, _ = envs.reset(seed=seed)
    fell, start = np.zeros(count, bool), np.zeros(count)
    second = round(1 / WALK.dt)
    for k in range(round(SECONDS) * second):
        if k == second:
            start = worlds.q[:, 0].copy()
        if k and k % (2 * second) == 0:
            worlds.v[:, 1] += push * (-1) ** (k // (2 * second))
        seen, _, terminated, _, _ = envs.step(policy(seen))
        fell |= terminated
    return (worlds.q[:, 0] - start) / (SECONDS - 1), fell


SETTINGS = Settings(horizon=32, epochs=4, minibatches=8, rate=1e-3, deviation=0.25)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--envs", type=int, default=256)
    parser.add_argument("--tested", type=int, default=64, help="in so many worlds, before and after")
    parser.add_argument("--save", type=Path, help="the policy, a file for NumPy")
    given = parser.parse_args()
    limit = round(SECONDS / WALK.dt)
    envs = zwang.gym.VectorEnv(WALK, num_envs=given.envs, max_episode_steps=limit, dtype="float32")
    trainer = Trainer(Corrections(envs), SETTINGS, before_step=Pusher())
    for push in (0.0, PUSH):
        print("before:", summary(lambda x: np.zeros((len(x), 12)), given.tested, push))
    trainer.train(given.minutes)
    for push in (0.0, PUSH):
        print("after:", summary(trainer.policy, given.tested, push))
    if given.save:
        trainer.policy.save(given.save)


def summary(policy, count, push):
    """What `count` worlds do under a policy."""
    speed, fell = walk(policy, count, push)
    return (
        f"pushed by {push} m/s: {fell.sum()} of {len(fell)} fell; speed of the others "
        f"{speed[~fell].mean():.3f} m/s, from {speed[~fell].min():.3f} to {speed[~fell].max():.3f}"
    )


if __name__ == "__main__":
    main()
