"""Draw the pictures of the pages about learning and planning:

    PYTHONPATH=.:examples python docs/pictures/learning.py [NAME ...]

learning_curves: the returns of two runs of examples/ppo.py (its option --curve), on the environments of zwang
and of Gymnasium. The other pictures are drawn of motions that this script computes, with the policies in
examples/policies and with examples/predictive_control.py.
"""

from __future__ import annotations

import sys
from pathlib import Path

import backflip as flip
import gymnasium
import joystick_quadruped as joystick
import matplotlib.image
import matplotlib.pyplot as plt
import numpy as np
import predictive_control
import walking_quadruped as walking
from ppo import Policy

import zwang as zw
import zwang.gym
from zwang.viewer.frame_renderer import FrameRenderer

PICTURES = Path(__file__).parent
POLICIES = PICTURES.parents[1] / "examples" / "policies"
FRAME = (300, 260)


def strip(name: str, mechanism: zw.Mechanism, states: np.ndarray, columns: int = 4) -> None:
    """Write the pictures of some states, in rows."""
    draw = FrameRenderer(mechanism, FRAME).draw
    frames = [draw(q) for q in states]
    rows = [np.concatenate(frames[k : k + columns], axis=1) for k in range(0, len(frames), columns)]
    matplotlib.image.imsave(PICTURES / f"{name}.png", np.concatenate(rows))


def learning_curves() -> None:
    """Mean return against time."""
    figure, axes = plt.subplots(figsize=(7, 3.6), layout="constrained")
    for name, label in (("zwang", "zwang/HalfCheetah-v5"), ("gymnasium", "HalfCheetah-v5 of Gymnasium")):
        _, seconds, steps, found = np.loadtxt(
            PICTURES / f"half_cheetah_{name}.csv", delimiter=",", skiprows=1
        ).T
        axes.plot(seconds, found, label=f"{label}: {steps[-1] / 1e6:.1f} million steps")
    axes.axhline(3000, color="0.6", linewidth=0.8, linestyle="--")
    axes.set(xlabel="time of all cores [s]", ylabel="return", xlim=(0, None))
    axes.legend(frameon=False)
    figure.savefig(PICTURES / "learning_curves.png", dpi=150)


def half_cheetah() -> None:
    """The trained half-cheetah, every 0.1 s after two seconds."""
    policy = Policy.load(POLICIES / "half_cheetah.npz")
    envs = gymnasium.make_vec("zwang/HalfCheetah-v5", num_envs=1)
    seen, _ = envs.reset(seed=0)
    states = []
    for _ in range(60):
        seen, *_ = envs.step(policy(seen))
        states.append(envs.unwrapped.worlds.q[0].copy())
    strip("half_cheetah", envs.unwrapped.worlds.mechanism, np.array(states)[40:56:2])


def walking_quadruped() -> None:
    """The quadruped in two seconds, in whose middle it is pushed to the left."""
    policy = Policy.load(POLICIES / "quadruped.npz")
    envs = walking.Corrections(zwang.gym.VectorEnv(walking.WALK, num_envs=1))
    seen, _ = envs.reset(seed=3)
    worlds, states = envs.unwrapped.worlds, []
    for k in range(200):
        if k == 125:
            worlds.v[:, 1] += walking.PUSH
        seen, *_ = envs.step(policy(seen))
        states.append(worlds.q[0].copy())
    values = {name: float(x[0]) for name, x in worlds.params.items()}
    strip("walking_quadruped", worlds.mechanism.subs(values), np.array(states)[112:160:6])


def joystick_quadruped() -> None:
    """The quadruped under four commands of three seconds each: its path from above, and pictures of it."""
    policy = Policy.load(POLICIES / "joystick_quadruped.npz")
    commands = np.array([[[0.8, 0, 0]], [[0.5, 0, 0.8]], [[0, 0.4, 0]], [[0.5, 0, -1.0]]])
    _, _, q = joystick.follow(policy, commands, seconds=3.0)
    draw = FrameRenderer(joystick.QUADRUPED.subs({"friction": 0.8}), FRAME).draw
    figure, axes = plt.subplot_mosaic(
        [["path"] * 4, list("0123")], figsize=(9, 4.2), height_ratios=(1, 1.2), layout="constrained"
    )
    path = axes["path"]
    for k, (forwards, sideways, turn) in enumerate(commands[:, 0]):
        part, color = q[150 * k : 150 * (k + 1), 0], f"C{k}"
        path.plot(part[:, 0], part[:, 1], color=color)
        axes[str(k)].imshow(draw(part[100]))
        axes[str(k)].set_axis_off()
        axes[str(k)].set_title(f"{forwards:g} m/s, {sideways:g} m/s, {turn:g} rad/s", fontsize=9, color=color)
    path.set(xlabel="x [m]", ylabel="y [m]", aspect="equal")
    figure.savefig(PICTURES / "joystick_quadruped.png", dpi=110)


def backflip() -> None:
    """The quadruped every 0.12 s of a backflip."""
    motion, _ = flip.backflip()
    q, _ = flip.performed(motion)
    strip("backflip", flip.quadruped(), q[3:51:6])


def planned_motions() -> None:
    """The swing-up of the acrobot, and the humanoid after a push."""
    for name, times in (("acrobot", np.arange(0, 4.7, 0.6)), ("humanoid", np.arange(1.0, 2.15, 0.15))):
        problem = predictive_control.PROBLEMS[name]()
        fast = zw.compile(problem.mechanism)
        states, _ = predictive_control.control(problem, fast, 5.0, np.random.default_rng(0))
        strip(f"planned_{name}", problem.mechanism, states[(times / problem.step).astype(int)])


PARTS = (learning_curves, half_cheetah, walking_quadruped, joystick_quadruped, backflip, planned_motions)
DRAWN = {f.__name__: f for f in PARTS}

if __name__ == "__main__":
    for chosen in sys.argv[1:] or DRAWN:
        DRAWN[chosen]()
        print(chosen)
