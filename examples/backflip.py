"""A quadruped finds a backflip by the cross-entropy method (CEM): sampling, without derivatives.

    python examples/backflip.py [--generations 30] [--samples 512]

A motion consists of the target angles of the servos at a few instants, the same for left and right. All
samples of a generation are simulated at once; the next ones are drawn around the best tenth. Source:
Rubinstein, Kroese, "The cross-entropy method" (2004), Algorithm 2.3.
"""

import argparse
from dataclasses import replace

import numpy as np
from walking_quadruped import MODEL

import zwang as zw
from zwang.scalar import atan2

TORQUE = 25.0  # largest one of a servo [N m]; the quadruped has a mass of 10 kg
STEP, SUBSTEPS = 0.004, 5
KNOTS, KNOT_EVERY = 9, 0.1  # instants and the time between them [s]
SECONDS, LANDED = 1.8, 1.2  # simulated; from when on it has to stand [s]
STAND = np.array([0.75, -1.5, 0.75, -1.5])  # thighs and knees in front, then in the rear [rad]
LEAST, MOST = np.tile([-1.2, -2.6], 2), np.tile([2.2, -0.4], 2)


def quadruped():
    """The quadruped with limited torques."""
    m = zw.load(MODEL)
    limited = [
        replace(f, force_range=(-TORQUE, TORQUE)) if isinstance(f, zw.Actuator) else f for f in m.forces
    ]
    return m.replace(forces=limited)


def observe(s):
    """How far the trunk has pitched in this call, and how far it is from standing still where it began."""
    R, before, velocity = s.pose("trunk").R, s.before.pose("trunk").R, s.velocity("trunk")
    turned = before.T @ R
    tilt = R[2, 0] ** 2 + R[2, 1] ** 2 + (1 - R[2, 2]) ** 2
    place = s.pose("trunk").p - [0, 0, 0.3]
    return {
        "pitch": atan2(turned[0, 2], turned[0, 0]),
        "unlike standing": tilt + 4 * place @ place + 0.02 * velocity @ velocity,
    }


def servo_targets(motions):
    """The targets (times, samples, 12) of all servos for motions (samples, KNOTS, 4): linear between the
    knots, and standing after the last one.
    """
    times = np.arange(0, SECONDS, STEP * SUBSTEPS)
    knots = np.concatenate([motions, np.tile(STAND, (len(motions), 2, 1))], axis=1)
    at = np.minimum(times / KNOT_EVERY, KNOTS)
    first = np.minimum(at.astype(int), KNOTS)
    part = (at - first)[:, None, None]
    legs = np.moveaxis(knots, 1, 0)
    between = (1 - part) * legs[first] + part * legs[first + 1]
    front, rear = between[..., :2], between[..., 2:]
    hips = np.zeros((*between.shape[:2], 1))
    return np.concatenate([hips, front, hips, front, hips, rear, hips, rear], axis=-1)


def costs(worlds, motions):
    """The cost (samples,) of each motion: the trunk turns backwards once, and stands afterwards."""
    worlds.reset(q=worlds.mechanism.keyframes[0].q)
    pitch, cost = np.zeros(len(motions)), np.zeros(len(motions))
    for k, targets in enumerate(servo_targets(motions)):
        worlds.step(targets, SUBSTEPS)
        pitch += worlds.observation["pitch"]
        if k * STEP * SUBSTEPS >= LANDED:
            cost += STEP * SUBSTEPS * worlds.observation["unlike standing"]
    return np.where(worlds.failed, np.inf, (pitch + 2 * np.pi) ** 2 + 10 * cost)


def backflip(samples=512, generations=30, seed=0):
    """The best motion (KNOTS, 4) [rad], and the least cost of each generation."""
    rng = np.random.default_rng(seed)
    worlds = zw.Worlds(quadruped(), samples, step=STEP, observe=observe)
    mean, deviation = np.tile(STAND, (KNOTS, 1)), np.full((KNOTS, 4), 0.8)
    best, least, history = mean, np.inf, []
    for _ in range(generations):
        tried = np.clip(mean + deviation * rng.normal(size=(samples, KNOTS, 4)), LEAST, MOST)
        tried[0] = best
        found = costs(worlds, tried)
        elite = tried[np.argsort(found)[: samples // 10]]
        mean, deviation = elite.mean(axis=0), elite.std(axis=0) + 0.02
        if found.min() < least:
            best, least = tried[found.argmin()], float(found.min())
        history.append(least)
    return best, np.array(history)


def performed(motion):
    """The configurations (times, 19) of a motion, and the angles by which the trunk has pitched [rad]."""
    worlds = zw.Worlds(quadruped(), 1, step=STEP, observe=observe)
    worlds.reset(q=worlds.mechanism.keyframes[0].q)
    q, pitch = [], []
    for targets in servo_targets(motion[None]):
        worlds.step(targets, SUBSTEPS)
        q.append(worlds.q[0].copy())
        pitch.append(worlds.observation["pitch"][0])
    return np.array(q), np.cumsum(pitch)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, default=512)
    parser.add_argument("--generations", type=int, default=30)
    given = parser.parse_args()
    motion, history = backflip(given.samples, given.generations)
    q, pitch = performed(motion)
    print(f"least cost of the first generation {history[0]:.3f}, of the last {history[-1]:.4f}")
    print(f"pitch {np.degrees(pitch[-1]):.0f} degrees, height of the trunk up to {q[:, 2].max():.2f} m")


if __name__ == "__main__":
    main()
