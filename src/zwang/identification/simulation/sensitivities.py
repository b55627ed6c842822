"""Simulated states of a recorded motion, and their derivatives by the unknowns and by the starts of windows.

A record is divided into windows, which are simulated side by side. The derivatives S = dx/dp of the state
x = (dq, dv) follow the motion,

    S_{k+1} = A_k S_k + P_k,    A = d step / dx,    P = d step / dp.

Where nothing restrains the motion, a step of size h of semi-implicit Euler with implicit damping D solves

    r = ID(q, v, a; p) + h D a - tau(u) = 0,    v' = v + h a,    q' = q + h v',

with the inverse dynamics ID, so that with W = (M + h D)^-1 the derivatives are those of inverse dynamics,

    A_v = (-h W ID_q, 1 - h W ID_v),    P_v = -h W (ID_p + h D_p a).

Otherwise A and P are those of `step_derivatives`, through limits, friction, contacts and loops.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from zwang.api.compilation.compiled import CompiledMechanism, compile
from zwang.identification.simulation.unknowns import Unknowns
from zwang.mechanism.force_elements import Actuator, Damper, GravityCompensation, Motor, Spring
from zwang.mechanism.mechanism import Mechanism
from zwang.scalar import are_constant
from zwang.simulation.constraint_options import describe_constraints

PLAIN_JOINTS = ("revolute", "prismatic")
IMPLICIT = ("euler", "implicitfast")
BLOCK = 4096  # steps whose derivatives are computed at a time


@dataclass(frozen=True)
class Windows:
    """The windows of a record: starts q (W, nq) and v (W, nv), controls (W, steps, nu) and times (W,) [s].

    every: the number of steps between samples; a window has steps // every samples after its start. change
    (W, steps, nu): of the controls from the begin of a step to its end, about the mean in `control`.
    """

    q: np.ndarray
    v: np.ndarray
    control: np.ndarray
    time: np.ndarray
    every: int
    change: np.ndarray

    def moved(self, q: np.ndarray, v: np.ndarray) -> Windows:
        """The windows with other starts."""
        return replace(self, q=q, v=v)

    def halved(self) -> Windows:
        """The windows with two steps for each one."""
        control, change = (np.repeat(x, 2, axis=1) for x in (self.control, self.change / 2))
        control[:, ::2] -= change[:, ::2] / 2
        control[:, 1::2] += change[:, 1::2] / 2
        return replace(self, control=control, every=2 * self.every, change=change)


@dataclass(frozen=True)
class Simulator:
    """The compiled steps of a mechanism whose symbols are the unknowns."""

    unknowns: Unknowns
    mechanism: Mechanism
    h: float
    integrator: str

    @cached_property
    def fast(self) -> CompiledMechanism:
        """The mechanism in machine code."""
        return compile(self.mechanism)

    @cached_property
    def is_smooth(self) -> bool:
        """Whether the derivatives of inverse dynamics are enough."""
        return is_smooth(self.mechanism, self.integrator)

    def trajectory(self, windows: Windows, values: np.ndarray, each: bool = False) -> tuple[np.ndarray, ...]:
        """q (..., W, samples + 1, nq) and v at the samples, the start included; at every step if `each`.

        values (..., n): of the symbols, with axes before those of the windows.
        """
        spread = values[..., None, :]
        q0, v0 = (np.broadcast_to(x, (*values.shape[:-1], *x.shape[-2:])) for x in (windows.q, windows.v))
        control = np.broadcast_to(windows.control, (*values.shape[:-1], *windows.control.shape[-3:]))
        done = self.fast.rollout(
            q0, v0, control, steps=control.shape[-2], every=1 if each else windows.every, step=self.h,
            integrator=self.integrator, time=np.broadcast_to(windows.time, q0.shape[:-1]),
            params=self.unknowns.params(spread),
        )  # fmt: skip
        joined = zip((q0, v0), done[:2], strict=True)
        q, v = (np.concatenate([start[..., None, :], x], axis=-2) for start, x in joined)
        return q, v

    def discretisation(self, windows: Windows, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """q (W, samples + 1, nq) at the samples with steps of the size h, and of h / 2.

        As the error of a method of order p is (1 - 2^-p)^-1 times the difference, twice the difference bounds
        that of all methods (Richardson; Hairer, Norsett, Wanner 1993, Section II.4).
        """
        finer = replace(self, h=self.h / 2)
        return self.trajectory(windows, values)[0], finer.trajectory(windows.halved(), values)[0]

    def derivatives(
        self, windows: Windows, values: np.ndarray, with_starts: bool
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """q, v (W, samples + 1, n), and the derivatives of dq (W, samples + 1, nv, n) by the symbols, and by
        the starts (W, samples + 1, nv, 2 nv); these are empty unless `with_starts`.
        """
        q, v = self.trajectory(windows, values, each=True)
        count, steps, nv = q.shape[0], windows.control.shape[1], v.shape[-1]
        n = len(values) + (2 * nv if with_starts else 0)
        S = np.zeros((count, 2 * nv, n))
        if with_starts:
            S[:, :, len(values) :] = np.eye(2 * nv)
        samples = np.zeros((count, steps // windows.every + 1, nv, n))
        samples[:, 0] = S[:, :nv]
        of_steps = self._smooth if self.is_smooth else self._general
        block = max(windows.every, BLOCK // count // windows.every * windows.every)
        for first in range(0, steps, block):
            span = slice(first, min(first + block, steps))
            A, P = of_steps(windows, q, v, values, span)
            for k in range(A.shape[1]):
                S = self._advanced(A[:, k], P[:, k], S)
                if (first + k + 1) % windows.every == 0:
                    samples[:, (first + k + 1) // windows.every] = S[:, :nv]
        kept = slice(None, None, windows.every)
        by_symbols, by_starts = samples[..., : len(values)], samples[..., len(values) :]
        return q[:, kept], v[:, kept], by_symbols, by_starts

    def _advanced(self, A: np.ndarray, P: np.ndarray, S: np.ndarray) -> np.ndarray:
        """S after one step; the smooth A and P have rows for v alone."""
        after = A @ S
        after[..., : P.shape[-1]] += P
        if self.is_smooth:
            after = np.concatenate([S[:, : A.shape[-2]] + self.h * after, after], axis=1)
        return after

    def _smooth(self, windows: Windows, q: np.ndarray, v: np.ndarray, values: np.ndarray, span: slice
                ) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
        """A_v (W, steps, nv, 2 nv) and P_v (W, steps, nv, n)."""
        before, after = v[:, :-1][:, span], v[:, 1:][:, span]
        a = (after - before) / self.h
        by_q, by_v, M, by_p = self.fast.inverse_dynamics_derivatives(
            q[:, :-1][:, span], before, a, params=self.unknowns.params(values)
        )
        D, by_damping = self._damping(values)
        W = np.linalg.inv(M + self.h * np.diag(D))
        right = np.concatenate([by_q, by_v, by_p[..., self._order]], axis=-1)
        right[..., 2 * len(D) :] += self.h * a[..., None] * by_damping
        found = -self.h * (W @ right)
        found[..., range(len(D)), len(D) + np.arange(len(D))] += 1
        return found[..., : 2 * len(D)], found[..., 2 * len(D) :]

    def _general(self, windows: Windows, q: np.ndarray, v: np.ndarray, values: np.ndarray, span: slice
                 ) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
        """A (W, steps, 2 nv, 2 nv) and P (W, steps, 2 nv, n)."""
        found = self.fast.step_derivatives(
            q[:, :-1][:, span], v[:, :-1][:, span], windows.control[:, span], step=self.h,
            integrator=self.integrator, params=self.unknowns.params(values),
            time=windows.time[:, None] + self.h * np.arange(span.start, span.stop),
        )  # fmt: skip
        return found.A, found.P[..., self._order]

    @cached_property
    def _order(self) -> list[int]:
        """Where the unknowns are among the symbols of the mechanism, which are sorted."""
        return [self.mechanism.symbols.index(name) for name in self.unknowns.names]

    def _damping(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The implicit damping D (nv,), and its derivatives (nv, n) by the symbols."""
        D, by_symbols = np.zeros(self.mechanism.nv), np.zeros((self.mechanism.nv, len(values)))
        for force in self.mechanism.forces:
            if isinstance(force, Damper):
                k = self.mechanism.joint(force.joint).v.start
                if are_constant(force.coefficient):
                    D[k] += float(force.coefficient)
                else:
                    column = self.unknowns.names.index(str(force.coefficient))
                    D[k] += values[column]
                    by_symbols[k, column] += 1
        return D, by_symbols


def is_smooth(m: Mechanism, integrator: str) -> bool:
    """Whether nothing restrains the motion, and a step is that of semi-implicit Euler with the damping of
    joints alone implicit.
    """
    return (
        integrator in IMPLICIT
        and not describe_constraints(m)
        and not m.tendons
        and "eulerdamp" not in m.options.disabled
        and all(j.kind in PLAIN_JOINTS for j in m.joints)
        and all(_is_plain(m, f) for f in m.forces)
        and all(getattr(j.joint, "actuator_range", None) is None or not m.inputs for j in m.joints)
    )


def _is_plain(m: Mechanism, force: Any) -> bool:
    """Whether a force is one of inverse dynamics, a linear damper, or that of a motor without feedback,
    symbols and states.
    """
    if isinstance(force, Damper):
        known = are_constant(force.coefficient) or str(force.coefficient) in m.symbols
        return known and not force.higher
    if isinstance(force, Motor | Actuator) and not are_constant(*(force.control_range or ())):
        return False
    if isinstance(force, Actuator):
        others = (force.activation, force.muscle, force.pid, force.force_range)
        feedback = (*force.gain[1:], *force.bias[1:])
        return (
            force.joint is not None
            and all(x is None for x in others)
            and are_constant(*force.gain, *force.bias, *force.gear)
            and not any(feedback)
        )
    if isinstance(force, Motor):
        return are_constant(force.gear)
    return isinstance(force, Spring | GravityCompensation)
