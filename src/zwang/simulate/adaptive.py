"""Motions by error-controlled integrators, world by world."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from zwang.integrate.adaptive import integrate_adaptively
from zwang.kinematics.configuration import configuration_rate, normalized_configuration
from zwang.mechanism.mechanism import Mechanism
from zwang.simulate.control import Called, Held
from zwang.simulate.rollout import BOUND, Motion, Tick
from zwang.simulate.settings import Settings
from zwang.simulate.start import Start
from zwang.simulate.step import rates, stepping

CONTINUOUS = "rk4"  # of the fixed steps the one whose rates are those of continuous time

Flow = Callable[..., Any]


def flow(mechanism: Mechanism, h: float) -> Flow:
    """(q_dot, v_dot, z_dot) as one array, as a function of t, q, v, z, u; on any scalar. Quaternions need not be unit.

    h [s]: the time scale on which constraints settle; drift is held by stabilisation.
    """
    s = stepping(mechanism, h, CONTINUOUS, "stabilisation")

    def function(t: Any, q: Any, v: Any, z: Any, u: Any) -> np.ndarray:
        v_dot, z_dot = rates(s, normalized_configuration(mechanism.tree, q), v, z, u, t)
        return np.concatenate([configuration_rate(mechanism.tree, q, v), v_dot, z_dot])

    return function


def flow_in_python(mechanism: Mechanism, begin: Start, h: float, w: int) -> Flow:
    """The flow of world w on floats."""
    row = {name: float(x[w]) for name, x in begin.params.items()}
    return flow(mechanism.subs(row) if row else mechanism, h)


def continuous(
    mechanism: Mechanism,
    begin: Start,
    flows: Callable[[int], Flow],
    control: Held | Called,
    settings: Settings,
    tick: Tick,
) -> Motion:
    """The motion of all worlds, world w by flows(w); a function for control is asked whenever the integrator wants."""
    worlds = [_one_world(mechanism, begin, w, flows(w), control, settings, tick) for w in range(begin.worlds)]
    return Motion(*(np.stack(parts) for parts in zip(*worlds, strict=True)))


def _one_world(
    mechanism: Mechanism,
    begin: Start,
    w: int,
    flow: Flow,
    control: Held | Called,
    settings: Settings,
    tick: Tick,
) -> tuple[np.ndarray, ...]:
    """(clock, q, v, z, u), each (samples, n), of one world; rows after it stopped repeat its last."""
    nq, nv, h = mechanism.nq, mechanism.nv, settings.step
    integrator = settings.adaptive
    assert integrator is not None
    done = 0

    def drive(t: float, q: Any, v: Any, since: float) -> np.ndarray:
        if isinstance(control, Called):
            return np.asarray(control(t, q, v), dtype=float)
        return control.during(round(since / h), 1, begin.worlds)[w, 0]

    def rate(t: float, y: np.ndarray, since: float) -> np.ndarray:
        q, v, z = np.split(y, [nq, nq + nv])
        u = drive(t, normalized_configuration(mechanism.tree, q).astype(float), v, since)
        return np.asarray(flow(t, q, v, z, u), dtype=float)

    def count(t: float) -> None:
        nonlocal done
        tick(int(t / h) - done)
        done = int(t / h)

    solution = integrate_adaptively(
        rate, np.concatenate([begin.q[w], begin.v[w], begin.z[w]]), settings.times, integrator,
        breaks=_jumps(control, w, settings), within=lambda y: bool((np.abs(y) < BOUND).all()), tick=count,
    )  # fmt: skip
    q, v, z = np.split(solution.y, [nq, nq + nv], axis=1)
    q = np.stack([normalized_configuration(mechanism.tree, row) for row in q]).astype(float)
    u = np.stack([drive(t, *state, since=t) for t, *state in zip(settings.times, q, v, strict=False)])
    clock = settings.samples.astype(float)[:, None]
    rest = len(settings.samples) - len(q)
    if rest:
        clock = np.append(clock[: len(q)], np.full((rest, 1), solution.end / h), axis=0)
    filled = [np.append(x, np.repeat(x[-1:], rest, axis=0), axis=0) for x in (q, v, z, u)]
    return clock, *filled


def _jumps(control: Held | Called, w: int, settings: Settings) -> list[float]:
    """The times at which a control given beforehand changes."""
    if isinstance(control, Called):
        return []
    values = control.values[w if len(control.values) > 1 else 0, : settings.steps]
    changes = np.flatnonzero((np.diff(values, axis=0) != 0).any(axis=1)) + 1
    return (changes * settings.step).tolist()
