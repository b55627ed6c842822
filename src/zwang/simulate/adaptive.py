"""Motions by error-controlled integrators, world by world."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from zwang.errors import SolveError
from zwang.integrate.adaptive import integrate_adaptively
from zwang.kinematics.configuration import configuration_rate, normalized_configuration
from zwang.mechanism.mechanism import Mechanism
from zwang.scalar import logical_not
from zwang.simulate.constraints import exact_ones, projected
from zwang.simulate.control import Called, Held
from zwang.simulate.faults import CONTROL, LEFT, NONE, OPEN, fault_if, fault_of, worst
from zwang.simulate.rollout import BOUND, Motion, Tick, are_numbers
from zwang.simulate.settings import Settings
from zwang.simulate.start import Start
from zwang.simulate.step import rates, stepping

CONTINUOUS = "rk4"  # of the fixed steps the one whose rates are those of continuous time


class Flow(NamedTuple):
    """A world's motion as functions of t, q, v: (q_dot, v_dot, z_dot, fault) of z and u too, and (q, v, fault) on its exact constraints."""

    rates: Callable[..., Any]
    settled: Callable[..., Any]


def flow(mechanism: Mechanism, h: float, drift: str, embedding: Any) -> Flow:
    """The motion on any scalar. Quaternions need not be unit; h [s] is the time scale on which constraints look ahead or settle."""
    s = stepping(mechanism, h, CONTINUOUS, drift, embedding)

    def found(t: Any, q: Any, v: Any, z: Any, u: Any) -> np.ndarray:
        v_dot, z_dot, fault, _ = rates(s, normalized_configuration(mechanism.tree, q), v, z, u, t)
        fault = worst([fault, fault_if(logical_not(are_numbers(u)), CONTROL)])
        return np.concatenate([configuration_rate(mechanism.tree, q, v), v_dot, z_dot, [fault]])

    def settled(t: Any, q: Any, v: Any) -> np.ndarray:
        q, v, still_open = projected(s.restraint, normalized_configuration(mechanism.tree, q), v, t)
        return np.concatenate([q, v, [fault_if(still_open, OPEN)]])

    return Flow(found, settled)


def flow_in_python(mechanism: Mechanism, begin: Start, plan: Settings, w: int) -> Flow:
    """The flow of world w on floats; what they raise is a fault."""
    row = {name: float(x[w]) for name, x in begin.params.items()}
    plain = flow(mechanism.subs(row) if row else mechanism, plan.step, plan.drift, plan.embedding)

    def found(*at: Any) -> np.ndarray:
        try:
            return plain.rates(*at)
        except SolveError as error:
            size = mechanism.nq + mechanism.nv + len(at[3])
            return np.append(np.full(size, np.nan), fault_of(error))

    return Flow(found, plain.settled)


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
    """(clock, q, v, z, u), each (samples, n), and the cause, of one world; rows after it stopped repeat its last."""
    h, integrator, tree = settings.step, settings.adaptive, mechanism.tree
    assert integrator is not None
    course = _Course(mechanism, flow, control, w, h, begin.worlds, tick)
    settles = settings.drift == "projection" and exact_ones(mechanism)
    solution = integrate_adaptively(
        course.rate, np.concatenate([begin.q[w], begin.v[w], begin.z[w]]), settings.times, integrator,
        breaks=_jumps(control, w, settings), within=lambda y: bool((np.abs(y) < BOUND).all()), tick=course.count,
        settle=course.settle if settles else None,
    )  # fmt: skip
    q, v, z = np.split(solution.y, [mechanism.nq, mechanism.nq + mechanism.nv], axis=1)
    q = np.stack([normalized_configuration(tree, row) for row in q]).astype(float)
    u = np.stack([course.drive(t, *state, since=t) for t, *state in zip(settings.times, q, v, strict=False)])
    clock = settings.samples.astype(float)[:, None]
    rest = len(settings.samples) - len(q)
    if rest:
        clock = np.append(clock[: len(q)], np.full((rest, 1), solution.end / h), axis=0)
    filled = [np.append(x, np.repeat(x[-1:], rest, axis=0), axis=0) for x in (q, v, z, u)]
    return clock, *filled, np.array((course.fault or LEFT) if rest else NONE)


@dataclass
class _Course:
    """What the integrator asks of one world, and the fault met last."""

    mechanism: Mechanism
    flow: Flow
    control: Held | Called
    w: int
    h: float
    worlds: int
    tick: Tick
    fault: int = NONE
    done: int = 0

    def drive(self, t: float, q: Any, v: Any, since: float) -> np.ndarray:
        """The control, held since the last jump where it was given beforehand."""
        if isinstance(self.control, Called):
            return np.asarray(self.control(t, q, v), dtype=float)
        return self.control.during(round(since / self.h), 1, self.worlds)[self.w, 0]

    def rate(self, t: float, y: np.ndarray, since: float) -> np.ndarray:
        """y_dot; no numbers where there is a fault, which the integrator backs away from."""
        q, v, z = self._parts(y)
        u = self.drive(t, normalized_configuration(self.mechanism.tree, q).astype(float), v, since)
        *found, fault = np.asarray(self.flow.rates(t, q, v, z, u), dtype=float)
        self.fault = int(fault)
        return np.array(found) if fault == NONE else np.full(len(found), np.nan)

    def settle(self, t: float, y: np.ndarray) -> np.ndarray:
        """y on the exact constraints; no numbers where they cannot be held."""
        q, v, z = self._parts(y)
        *found, fault = np.asarray(self.flow.settled(t, q, v), dtype=float)
        if fault != NONE:
            self.fault = int(fault)
            return np.full(len(y), np.nan)
        return np.concatenate([found, z])

    def count(self, t: float) -> None:
        """Tell how far it came."""
        self.tick(int(t / self.h) - self.done)
        self.done = int(t / self.h)

    def _parts(self, y: np.ndarray) -> list[np.ndarray]:
        nq = self.mechanism.nq
        return np.split(y, [nq, nq + self.mechanism.nv])


def _jumps(control: Held | Called, w: int, settings: Settings) -> list[float]:
    """The times at which a control given beforehand changes."""
    if isinstance(control, Called):
        return []
    values = control.values[w if len(control.values) > 1 else 0, : settings.steps]
    changes = np.flatnonzero((np.diff(values, axis=0) != 0).any(axis=1)) + 1
    return (changes * settings.step).tolist()
