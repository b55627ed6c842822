"""Co-design by the cross-entropy method (CEM): the lengths of an arm and the torques with which it throws.

    python examples/co_design.py [--generations 40] [--samples 512]

An arm of 1 m throws a ball. The position of its elbow and the torques of its two motors are found together:
each sample is a world with an elbow of its own, and all throws of a generation are simulated at once. Source:
Rubinstein, Kroese, "The cross-entropy method" (2004), Algorithm 2.3.
"""

import argparse

import numpy as np
import sympy as sp

import zwang as zw
from zwang.scalar import sqrt

LENGTH, DENSITY, BALL = 1.0, 2.0, 0.15  # of the whole arm [m]; of its links [kg/m]; mass of the ball [kg]
HEIGHT, GRAVITY = 1.4, 9.81  # of the shoulder [m]
TORQUE = np.array([40.0, 12.0])  # of shoulder and elbow at rest [N m]
SPEED = np.array([12.0, 20.0])  # of these motors without load [rad/s]: their torque falls linearly to zero
STEP, STEPS, KNOTS = 0.005, 120, 6
ELBOW = (0.2, 0.8)  # distances of the elbow from the shoulder that are possible [m]


def arm():
    """A planar arm that hangs down; the distance of its elbow from the shoulder is the symbol `elbow`."""
    elbow = sp.symbols("elbow", positive=True)
    bodies = []
    for name, parent, length, load, at in (
        ("upper arm", "world", elbow, 0, (0, 0, HEIGHT)),
        ("forearm", "upper arm", LENGTH - elbow, BALL, (0, 0, -elbow)),
    ):
        rod = DENSITY * length
        mass = rod + load
        com = -(rod / 2 + load) * length / mass
        about_joint = (rod / 3 + load) * length**2
        across = about_joint - mass * com**2
        joint = zw.Revolute(f"joint of {name}", axis=(0, -1, 0))
        inertia = (across, across, 0, 0, 0, 0)
        bodies.append(
            zw.Body(name, joint, parent=parent, position=at, mass=mass, com=(0, 0, com), inertia=inertia)
        )
    forces = []
    for body, torque, speed in zip(bodies, TORQUE, SPEED, strict=True):
        forces += [
            zw.Motor(f"motor of {body.name}", body.joint.name),
            zw.Damper(body.joint.name, torque / speed),
        ]
    return zw.Mechanism(
        "throwing arm",
        bodies,
        forces=forces,
        frames=[zw.Frame("hand", "forearm", position=(0, 0, -(LENGTH - elbow)))],
    )


def distance(s):
    """Where a ball that is released now lands [m], after a flight without drag."""
    x, _, z = s.pose("hand").p
    vx, _, vz = s.velocity("hand")[:3]
    return {"distance": x + vx * (vz + sqrt(vz * vz + 2 * GRAVITY * z)) / GRAVITY}


def throws(worlds, designs):
    """The longest throw (samples,) of each design: the distance of the elbow, then the torques at the knots.

    Torques are interpolated linearly; the ball is released at the best instant.
    """
    elbows, knots = designs[:, 0], designs[:, 1:].reshape(-1, KNOTS, 2)
    worlds.set(params={"elbow": elbows})
    worlds.reset()
    at = np.linspace(0, KNOTS - 1, STEPS)
    weights = np.maximum(0, 1 - np.abs(at[:, None] - np.arange(KNOTS)))
    torques = np.einsum("tk,nkm->tnm", weights, knots)
    best = np.zeros(len(designs))
    for torque in torques:
        worlds.step(torque)
        best = np.maximum(best, np.where(worlds.failed, 0, worlds.observation["distance"]))
    return best


def co_design(samples=512, generations=40, elbow=None, seed=0):
    """The best design, its throw [m], and the best throw of each generation.

    elbow: its distance from the shoulder; None to optimise it too. A tenth of the samples is the elite.
    """
    rng = np.random.default_rng(seed)
    torques = np.tile(TORQUE, KNOTS)
    least = np.concatenate([[ELBOW[0] if elbow is None else elbow], -torques])
    most = np.concatenate([[ELBOW[1] if elbow is None else elbow], torques])
    mean, deviation = (least + most) / 2, (most - least) / 3
    worlds = zw.Worlds(arm(), samples, step=STEP, params={"elbow": 0.5}, observe=distance)
    design, longest, history = mean, 0.0, []
    for _ in range(generations):
        tried = np.clip(mean + deviation * rng.normal(size=(samples, len(mean))), least, most)
        tried[0] = design  # the best so far
        found = throws(worlds, tried)
        elite = tried[np.argsort(found)[-samples // 10 :]]
        mean, deviation = elite.mean(axis=0), elite.std(axis=0) + 0.01 * (most - least)
        if found.max() > longest:
            design, longest = tried[found.argmax()], float(found.max())
        history.append(longest)
    return design, longest, np.array(history)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, default=512)
    parser.add_argument("--generations", type=int, default=40)
    given = parser.parse_args()
    for elbow in (0.5, None):
        design, longest, _ = co_design(given.samples, given.generations, elbow)
        kind = "elbow in the middle" if elbow else "elbow optimised too"
        print(f"{kind}: {longest:.2f} m, elbow {design[0]:.3f} m from the shoulder")


if __name__ == "__main__":
    main()
