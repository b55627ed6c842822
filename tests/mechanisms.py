"""Random mechanisms and states of every joint kind, reproducible by seed."""

from __future__ import annotations

import numpy as np

import zwang as zw
from zwang.algebra import rotations

KINDS = (zw.Revolute, zw.Prismatic, zw.Screw, zw.Cylindrical, zw.Universal, zw.Planar, zw.Ball, zw.Free)


def random_inertia(rng: np.random.Generator, mass: float) -> np.ndarray:
    """A physically possible inertia for this mass: that of a random cloud of points."""
    points = rng.normal(size=(8, 3)) * rng.uniform(0.05, 0.4, 3)
    spread = mass * np.cov(points.T)
    return np.trace(spread) * np.eye(3) - spread


def random_joint(rng: np.random.Generator, kind: type, name: str) -> zw.Revolute:
    """A joint about a random axis, or sometimes a coordinate axis."""
    axis = np.eye(3)[rng.integers(3)] if rng.uniform() < 0.4 else rng.normal(size=3)
    extra: dict = {"position": rng.normal(size=3) * 0.2, "armature": rng.uniform(0, 0.1)}
    if kind is zw.Screw:
        extra["pitch"] = rng.normal() * 0.1
    if kind is zw.Universal:
        extra["second_axis"] = rng.normal(size=3)
    if kind in (zw.Revolute, zw.Prismatic):
        extra["reference"] = rng.normal() * 0.3
    return kind(name, **extra) if kind in (zw.Ball, zw.Free) else kind(name, axis=axis, **extra)


def random_mechanism(seed: int, bodies: int = 5, kinds: tuple[type, ...] = KINDS) -> zw.Mechanism:
    """A tree of bodies on joints of random kinds, one body fixed to another, one with two joints."""
    rng = np.random.default_rng(seed)
    made: list[zw.Body] = []
    for k in range(bodies):
        parent = "world" if k == 0 else made[rng.integers(max(0, k - 3), k)].name
        joints = [random_joint(rng, kinds[rng.integers(len(kinds))], f"j{k}")]
        if k == 2:
            joints.append(random_joint(rng, zw.Revolute, f"j{k}b"))
        mass = rng.uniform(0.2, 3.0)
        made.append(
            zw.Body(
                f"b{k}",
                joint=zw.Fixed() if k == 3 else tuple(joints),
                parent=parent,
                position=rng.normal(size=3) * 0.4,
                orientation=random_quaternion(rng),
                mass=mass,
                com=rng.normal(size=3) * 0.2,
                inertia=random_inertia(rng, mass),
            )
        )
    frames = [zw.Frame("tip", made[-1].name, rng.normal(size=3) * 0.3, random_quaternion(rng))]
    return zw.Mechanism(name=f"random {seed}", bodies=made, gravity=rng.normal(size=3) * 9, frames=frames)


def random_quaternion(rng: np.random.Generator) -> np.ndarray:
    q = rng.normal(size=4)
    return q / np.linalg.norm(q)


def random_state(mechanism: zw.Mechanism, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """q, v, tau, a with unit quaternions."""
    rng = np.random.default_rng(seed)
    q = rng.normal(size=mechanism.nq)
    for joint in mechanism.joints:
        if joint.kind in ("ball", "free"):
            part = slice(joint.q.stop - 4, joint.q.stop)
            q[part] /= np.linalg.norm(q[part])
    v, tau, a = rng.normal(size=(3, mechanism.nv))
    return q, v, tau, a


def moved(mechanism: zw.Mechanism, q: np.ndarray, dq: np.ndarray) -> np.ndarray:
    """q after the small motion dq (nv,), by joint kinds and quaternion products: shares no code with the
    package.
    """
    out = q.copy()
    for joint in mechanism.joints:
        step = dq[joint.v]
        if joint.kind in ("ball", "free"):
            n = joint.joint.nq - 4
            out[joint.q.start : joint.q.start + n] += step[:n]
            half = step[n:] / 2
            small = np.array([1 - half @ half / 2, *half])
            turned = rotations.multiply(q[joint.q.stop - 4 : joint.q.stop], small).astype(float)
            out[joint.q.stop - 4 : joint.q.stop] = turned / np.linalg.norm(turned)
        else:
            out[joint.q] += step
    return out
