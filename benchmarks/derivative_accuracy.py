"""The exact derivatives of a step against differences, at many random states of many models.

    python benchmarks/derivative_accuracy.py [name ...] [--states 1000] [--integrators euler implicitfast rk4]

Needs `pip install '.[test]'`, and for the humanoid ZWANG_HUMANOID, see `contact.py`. Robots are placed so
that they touch the floor; closed mechanisms are assembled. The derivatives [A B] of a step by state and
control are compared with Richardson's extrapolation of central differences of the step, for six widths; the
error is the largest difference relative to the largest derivative, with the width that agrees best:
differences of a large width pass over the kinks near a state, and those of a small one contain the rounding
of the step. The steps that are differenced are projected onto hard constraints with a larger compliance, in
more iterations, since the usual one leaves rounding of the relative size 1e-8.

The script prints the median and the 99th percentile of the errors of the states that are not marked as
switching, how many are marked, and how many errors of the others are above 1e-6.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

import numpy as np

import zwang as zw
from benchmarks.contact import text_of
from zwang.api.compilation.compiled import CompiledMechanism
from zwang.constraint import coordinate_projection
from zwang.errors import LoadWarning
from zwang.io.mjcf.read.read_mjcf import read_mjcf
from zwang.mechanism.samples import four_bar

QUADRUPED = Path(__file__).parents[1] / "examples" / "models" / "quadruped.xml"
LOWERED = {"hopper": 0.15, "walker2d": 0.2, "half_cheetah": 0.3, "ant": 0.4, "humanoid": 0.25,
           "quadruped": 0.15}  # fmt: skip
"""How far a model is lowered at most, so that it touches the floor [m]."""
NAMES = (*LOWERED, "panda", "four_bar", "sleigh")
INTEGRATORS = ("euler", "implicitfast", "rk4")
WIDTHS = (1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8)
LIMIT = 1e-6
COMPLIANCE = 1e-5  # of the projection onto hard constraints in the steps that are differenced
BATCH = 100  # states at a time


class States(NamedTuple):
    """Configurations (n, nq), velocities (n, nv) and controls (n, nu)."""

    q: np.ndarray
    v: np.ndarray
    u: np.ndarray


def sleigh() -> zw.Mechanism:
    """A sleigh on a knife edge, with a force forwards and a torque."""
    edge = zw.NoSideSlip("edge", "sleigh", direction=(0, 1, 0), point=(-0.2, 0, 0))
    body = zw.Body("sleigh", zw.Planar("sleigh"), mass=2, com=(0.1, 0, 0), inertia=(0.1,) * 3)
    return zw.Mechanism("sleigh", [body], gravity=(0, 0, 0), constraints=[edge])


def mechanism_of(name: str) -> zw.Mechanism:
    """The mechanism of this name. Raises SystemExit."""
    if name in ("four_bar", "sleigh"):
        return four_bar() if name == "four_bar" else sleigh()
    if name == "quadruped":
        return zw.load(QUADRUPED)
    return read_mjcf(f"{name}.xml", text=text_of(name))


def random_states(name: str, m: zw.Mechanism, count: int, rng: np.random.Generator) -> States:
    """Random states: robots at the floor, Panda about the middle of its limits, others assembled."""
    u = rng.uniform(-0.5, 0.5, (count, len(m.inputs) or m.nv))
    v = rng.normal(size=(count, m.nv))
    home = np.array(m.home or m.neutral, float)
    if name in LOWERED:
        moved = rng.normal(size=(count, m.nv)) * 0.2
        q = np.stack([zw.integrate_configuration(m, home, d, 1.0) for d in moved])
        height = 2 if m.nq > m.nv else 1
        q[:, height] -= LOWERED[name] * rng.uniform(size=count)
        return States(q, v, u)
    if name == "panda":
        limits = np.array([index.joint.limits for index in m.joints])
        middle, half = limits.mean(axis=1), np.ptp(limits, axis=1) / 2
        return States(middle + 1.05 * half * rng.uniform(-1, 1, (count, m.nv)), v, u)
    moved = rng.normal(size=(count, m.nq)) * 0.4
    both = [zw.assemble(m, home + d, x) for d, x in zip(moved, v, strict=True)]
    return States(*(np.stack(x) for x in zip(*both, strict=True)), u)


def differences(fast: CompiledMechanism, s: States, width: float, integrator: str) -> np.ndarray:
    """[A B] (n, 2 nv, 2 nv + nu) of the states by Richardson's extrapolation of central differences."""
    nv, n = s.v.shape[1], 2 * s.v.shape[1] + s.u.shape[1]
    D = np.concatenate([scale * width * np.eye(n) for scale in (1, -1, 2, -2)])
    dq, dv, du = np.split(D, [nv, 2 * nv], axis=1)
    at = [x[:, None, :] for x in s]
    moved = fast.integrate_configuration(at[0], dq, 1.0)
    with patch.object(coordinate_projection, "COMPLIANCE", COMPLIANCE):
        after = fast.step(moved, at[1] + dv, at[2] + du, integrator=integrator)
    parts = [np.split(x, 4, axis=1) for x in (after[0], after[1])]

    def central(k: int) -> np.ndarray:
        dq = fast.difference_configuration(parts[0][k], parts[0][k + 1])
        return np.concatenate([dq, parts[1][k] - parts[1][k + 1]], axis=-1)

    fine, coarse = central(0) / (2 * width), central(2) / (4 * width)
    return np.swapaxes((4 * fine - coarse) / 3, -1, -2)


def errors_of(
    fast: CompiledMechanism, reference: CompiledMechanism, s: States, integrator: str
) -> tuple[np.ndarray, np.ndarray]:
    """The relative errors (n,) of the derivatives, and whether (n,) the states are marked as switching.

    reference: the mechanism of the steps that are differenced.
    """
    found = fast.step_derivatives(*s, integrator=integrator)
    AB = np.concatenate([found.A, found.B], axis=-1)
    errors = []
    for width in WIDTHS:
        expected = differences(reference, s, width, integrator)
        scale = np.abs(expected).max(axis=(1, 2))
        errors.append(np.abs(AB - expected).max(axis=(1, 2)) / scale)
    return np.min(errors, axis=0), found.switching


def measure(name: str, count: int, integrator: str) -> None:
    start = time.perf_counter()
    m, rng = mechanism_of(name), np.random.default_rng(0)
    fast, reference = (zw.compile(m, threads=1) for _ in range(2))
    s = random_states(name, m, count, rng)
    parts = [
        errors_of(fast, reference, States(*(x[k : k + BATCH] for x in s)), integrator)
        for k in range(0, count, BATCH)
    ]
    errors, switching = (np.concatenate(x) for x in zip(*parts, strict=True))
    own = errors[~switching]
    n = 2 * m.nv + s.u.shape[1]
    print(
        f"| {name} | {integrator} | {2 * m.nv} x {n} | {np.median(own):.0e} | {np.quantile(own, 0.99):.0e} "
        f"| {own.max():.0e} | {int((own > LIMIT).sum())} | {int(switching.sum())} of {count} "
        f"| {time.perf_counter() - start:.0f} |",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", default=list(NAMES))
    parser.add_argument("--states", type=int, default=1000)
    parser.add_argument("--integrators", nargs="*", default=list(INTEGRATORS))
    given = parser.parse_args()
    warnings.simplefilter("ignore", LoadWarning)
    print("| model | integrator | [A B] | median | 99 % | largest | above 1e-6 | marked | s |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for name in given.names:
        for integrator in given.integrators:
            measure(name, given.states, integrator)


if __name__ == "__main__":
    main()
