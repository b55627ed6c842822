"""Identification: accuracy and rate of the regressor, coverage of the intervals, consistency, excitation.

    python benchmarks/identification.py [--repetitions 200] [--states 100000] [--starts 1000]
    python benchmarks/identification.py --excitation 3

The regressor is compared with inverse dynamics, and with Pinocchio's computeJointTorqueRegressor, which is
called from Python state by state. Coverage: forces of a simulated robot with noise of 3 % of the largest
force of each joint are fitted with a model whose masses, centres of mass and inertias are wrong and that has
no friction; the table gives the fraction of the true base parameters within their 95 % intervals, over all
repetitions. The motion of an arm is a sum of sines, that of a quadruped's floating base random.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace

import numpy as np

import zwang as zw
from tests.identification.robots import robot, urdf, with_friction
from tests.identification.test_excitation import search_of
from tests.identification.test_fit import motion
from zwang.identification.base_parameters import random_states
from zwang.identification.consistent_fit import consistent_parameters
from zwang.identification.excitation_search import random_motion
from zwang.identification.pseudo_inertia import inertial_parameters, is_consistent
from zwang.mechanism.mechanism import Mechanism

try:
    import pinocchio as pin
except ImportError:  # the comparison is then omitted
    pin = None

ROBOTS = {
    "ur10": "fixed",
    "panda": "fixed",
    "double_pendulum": "fixed",
    "kinova": "fixed",
    "xarm7": "fixed",
    "z1": "fixed",
    "solo12": "free",
    "anymal": "free",
    "go1": "free",
    "hyq": "free",
}
ARMS = ("panda", "xarm7")  # of seven axes, whose motions are planned
KINDS = ("inertia", "armature", "damping", "friction")
BATCH = 512


def regressor_line(name: str, base: str, states: int) -> None:
    """Error of Y pi by inverse dynamics, relative; error and rate by Pinocchio."""
    m = robot(name, base)
    rng = np.random.default_rng(0)
    pi = np.array([float(p.value) for p in zw.identify.parameters(m)])
    compiled, error = zw.compile(m), 0.0
    for _ in range(-(-states // 10_000)):
        q = compiled.integrate_configuration(m.neutral, 2 * rng.normal(size=(10_000, m.nv)), 1.0)
        v, a = 2 * rng.normal(size=(2, 10_000, m.nv))
        tau = compiled.inverse_dynamics(q, v, a)
        Y = zw.identify.regressor(m, q, v, a)
        error = max(error, abs(Y @ pi - tau).max() / abs(tau).max())
    q, v, a = random_states(m, BATCH, rng)
    ours = []
    Y = zw.identify.regressor(m, q, v, a)
    for _ in range(50):
        start = time.perf_counter()
        zw.identify.regressor(m, q, v, a, out=Y)
        ours.append((time.perf_counter() - start) / BATCH)
    line = f"{name:16} nv {m.nv:3d}   error {error:.1e}   {1e9 * np.median(ours):8.0f} ns"
    print(line + (f"   {peer(m, name, base, q, v, a, float(np.median(ours)))}" if pin else ""), flush=True)


def peer(m: Mechanism, name: str, base: str, q, v, a, ours: float) -> str:
    """Pinocchio's time for one state, and for arms with the same coordinates the columns' difference."""
    arguments = [str(urdf(name)), *([pin.JointModelFreeFlyer()] if base == "free" else [])]
    model = pin.buildModelFromUrdf(*arguments)
    locked = [model.getJointId(n) for n in model.names if "finger" in n]
    if locked:
        model = pin.buildReducedModel(model, locked, pin.neutral(model))
    data, note = model.createData(), ""
    rng = np.random.default_rng(0)
    if base == "fixed" and model.nq == m.nq:
        Y = zw.identify.regressor(m, q[:50], v[:50], a[:50], kinds="inertia")
        states = list(zip(q[:50], v[:50], a[:50], strict=True))
        columns = [pin.computeJointTorqueRegressor(model, data, *state) for state in states]
        note = f"   columns differ by {abs(np.array(columns) - Y).max():.0e}"
    else:
        turned = [pin.integrate(model, pin.neutral(model), rng.normal(size=model.nv)) for _ in range(50)]
        states = [(x, rng.normal(size=model.nv), rng.normal(size=model.nv)) for x in turned]
    times = []
    for state in states:
        start = time.perf_counter()
        pin.computeJointTorqueRegressor(model, data, *state)
        times.append(time.perf_counter() - start)
    theirs = float(np.median(times))
    return f"Pinocchio {1e9 * theirs:8.0f} ns   ratio {theirs / ours:4.0f}{note}"


def wrong_model(m: Mechanism) -> Mechanism:
    """The mechanism with wrong masses, centres of mass and inertias."""
    rng = np.random.default_rng(5)
    bodies = [
        replace(
            b,
            mass=b.mass * rng.uniform(0.5, 2),
            com=tuple(np.array(b.com) + 0.02 * rng.normal(size=3)),
            inertia=np.array(b.inertia) * rng.uniform(0.5, 2),
            unchecked_inertia=True,
        )
        for b in m.bodies
    ]
    return m.replace(bodies=bodies)


def coverage_line(name: str, base: str, repetitions: int, samples: int) -> None:
    """The fraction of true base parameters within their intervals."""
    m = robot(name, base)
    kinds = KINDS if base == "fixed" else ("inertia",)
    true = with_friction(m, 0.1, 0.3, 0.5) if base == "fixed" else m
    t = np.arange(samples) * 0.01
    if base == "fixed":
        _, q, v, a = motion(m.nv, samples)
    else:
        q, v, a = random_states(m, samples, np.random.default_rng(1))
    pi = np.array([float(p.value) for p in zw.identify.parameters(true, kinds)])
    tau = zw.identify.regressor(true, q, v, a, kinds=kinds) @ pi
    noise = 0.03 * np.abs(tau).max(axis=0)
    model, inside, consistent, began = wrong_model(m), [], 0, time.perf_counter()
    for k in range(repetitions):
        noisy = tau + noise * np.random.default_rng(k).normal(size=tau.shape)
        found = zw.identify.fit(model, zw.identify.Measurements(t, q, v, a, noisy), kinds=kinds)
        beta, (lower, upper) = found.base.matrix @ pi, found.interval.T
        inside.append(np.mean((lower <= beta) & (beta <= upper)))
        consistent += found.is_consistent()
    seconds = (time.perf_counter() - began) / repetitions
    print(
        f"{name:10} {len(found.base):3d} base parameters   {samples} samples   condition "
        f"{found.estimate.scaled_condition:5.1f}   within the intervals {100 * np.mean(inside):.2f} %   "
        f"consistent {consistent} of {repetitions}   {seconds:.2f} s a fit",
        flush=True,
    )


def starts_line(starts: int) -> None:
    """Random starts of the consistent fit of a UR10: consistent results, and their largest difference."""
    m = robot("ur10")
    _, q, v, a = motion(6, 1000)
    tau = zw.compile(m).inverse_dynamics(q, v, a)
    tau = tau + 0.03 * np.abs(tau).max(axis=0) * np.random.default_rng(0).normal(size=tau.shape)
    samples = zw.identify.Measurements(np.arange(1000) * 0.01, q, v, a, tau)
    found = zw.identify.fit(wrong_model(m), samples, kinds="inertia")
    prior = np.array([float(p.value) for p in found.base.parameters])
    free = (np.full(60, -np.inf), np.full(60, np.inf))
    rng, consistent, largest = np.random.default_rng(0), 0, 0.0
    for _ in range(starts):
        start = np.concatenate([inertial_parameters(rng.normal(size=10))[0] for _ in range(6)])
        again = consistent_parameters(
            found.base, found.beta, found.estimate.covariance, prior, free, start=start
        )
        consistent += again.converged and all(is_consistent(part) for part in again.pi.reshape(-1, 10))
        largest = max(largest, float(np.abs(again.pi - found.pi).max()))
    print(f"random starts: {consistent} of {starts} consistent; parameters differ by at most {largest:.1e}")


def excitation_lines(name: str, seeds: int) -> None:
    """Condition numbers of planned motions of a robot, and of the best of 1,000 random ones."""
    m = robot(name)
    search = search_of(m, samples=672)  # between which a motion exceeds its limits by a thousandth at most
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        random = [random_motion(search, rng) for _ in range(1000)]
        best = min(search.condition(z) for z in random if search.is_within(z))
        began, start = time.process_time(), time.perf_counter()
        planned = zw.identify.excitation(m, kinds="inertia", seed=seed)
        print(
            f"excitation of {name}, {seed}: condition {planned.condition:.2f}, best of 1,000 random motions "
            f"{best:.2f}, ratio {best / planned.condition:.2f}, {time.process_time() - began:.1f} s of the "
            f"processor, {time.perf_counter() - start:.1f} s",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repetitions", type=int, default=200)
    parser.add_argument("--states", type=int, default=100_000)
    parser.add_argument("--starts", type=int, default=1000)
    parser.add_argument(
        "--excitation", type=int, metavar="COUNT", help="only planned motions, COUNT of each arm"
    )
    options = parser.parse_args()
    if options.excitation:
        for name in ARMS:
            excitation_lines(name, options.excitation)
        return
    for name, base in ROBOTS.items():
        regressor_line(name, base, options.states)
    for name, base, samples in (("ur10", "fixed", 1500), ("panda", "fixed", 1500), ("solo12", "free", 1000)):
        coverage_line(name, base, options.repetitions, samples)
    starts_line(options.starts)
    for name in ARMS:
        excitation_lines(name, 3)


if __name__ == "__main__":
    main()
