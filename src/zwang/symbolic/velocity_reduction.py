"""Essential speeds: v = V u + v0, from constraints and a choice of speeds; the embedding of seed 003, Eq. 40."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from zwang.algebra.dual import derivative_along
from zwang.constraint.hard import all_velocity_level_rows, is_hard_constraint
from zwang.constraint.independent_velocities import IndependentVelocity, velocity_row
from zwang.errors import DescriptionError, UnknownNameError
from zwang.kinematics.configuration import configuration_rate
from zwang.mechanism.constraints import PointSpeed
from zwang.mechanism.mechanism import Mechanism
from zwang.symbolic.elimination import pivots, solve
from zwang.symbolic.expression_forms import map_expressions
from zwang.symbolic.numeric_probe import (
    NumericProbe,
    independent_rows,
    independent_velocities,
    numeric_rows,
    rank,
    value_near,
)


@dataclass(frozen=True, eq=False)
class VelocityReduction:
    """v = V u + v0 (nv,), and v_rate, the rate of v at constant u; A v + a = 0 are the constraints' rows kept, by name.

    all_names: of all rows, those that depend on others among them; kept: the numbers of the rows kept.
    """

    names: tuple[str, ...]
    all_names: tuple[str, ...]
    kept: tuple[int, ...]
    A: np.ndarray
    V: np.ndarray
    v0: np.ndarray
    v: np.ndarray
    v_rate: np.ndarray
    _again: Any

    @cached_property
    def V_rate(self) -> np.ndarray:
        """dV/dt, column by column."""
        return self._again()

    @property
    def trivial(self) -> bool:
        """Are the essential speeds the mechanism's own?"""
        return not self.names and len(self.V) == self.V.shape[1]

    def multipliers(self, excess: np.ndarray) -> np.ndarray:
        """lambda of A^T lambda = excess."""
        gram = self.A @ self.A.T
        order = pivots(np.array([[_sample(x) for x in row] for row in gram]))
        return solve(gram, (self.A @ excess).reshape(-1, 1), order)[:, 0]


def _sample(x: Any) -> float:
    return 0.0 if type(x) is int and x == 0 else 1.0


def speed_rows(mechanism: Mechanism, speeds: Sequence[IndependentVelocity] | None, twin: NumericProbe) -> list[IndependentVelocity]:
    """The chosen speeds, checked: as many as there are degrees of freedom, and independent at its `numeric_probe`.

    Raises UnknownNameError or DescriptionError.
    """
    if speeds is None and not any(_is_restricting(c) for c in mechanism.constraints):
        return list(mechanism.speed_names)
    numbers, q = twin
    A = numeric_rows(numbers, q)
    if rank(A) == mechanism.nv:
        names = ", ".join(repr(c.name) for c in mechanism.constraints if is_hard_constraint(c))
        raise DescriptionError(
            f"nothing of mechanism {mechanism.name!r} can move: its constraints ({names}) have {rank(A)} independent rows for {mechanism.nv} "
            "speeds near its home; leave one out, or, if it is over-constrained and moves elsewhere, give `home` there"
        )
    if speeds is None:
        return [mechanism.speed_names[k] for k in independent_velocities(A)]
    if isinstance(speeds, str) or not isinstance(speeds, Sequence):
        raise DescriptionError(f"speeds is {speeds!r}; give a list of names of speeds and PointSpeeds")
    chosen = [_checked(mechanism, s) for s in speeds]
    S = np.array([velocity_row(numbers, s, q) for s in (_numeric(s) for s in chosen)], dtype=float).reshape(
        -1, mechanism.nv
    )
    held, both = rank(A), rank(np.concatenate([A, S]))
    free = mechanism.nv - held
    if len(chosen) != free:
        raise DescriptionError(
            f"mechanism {mechanism.name!r} has {free} degrees of freedom in its speeds ({mechanism.nv} speeds, {held} independent "
            f"constraint rows) but {len(chosen)} essential speeds were given; give {free}, such as "
            f"{[mechanism.speed_names[k] for k in independent_velocities(A)]}"
        )
    if both < mechanism.nv:
        raise DescriptionError(
            f"the essential speeds {[_name(s) for s in chosen]} are dependent on each other or fixed by the constraints; "
            f"choose others, such as {[mechanism.speed_names[k] for k in independent_velocities(A)]}"
        )
    return chosen


def _is_restricting(c: Any) -> bool:
    return not hasattr(c, "forces") and getattr(c, "softness", None) is None


def _name(speed: IndependentVelocity) -> str:
    return speed if isinstance(speed, str) else speed.name


def _checked(mechanism: Mechanism, speed: Any) -> IndependentVelocity:
    if isinstance(speed, PointSpeed):
        mechanism.tree.place(speed.body)
        return speed
    if speed not in mechanism.speed_names:
        raise UnknownNameError("speed", speed, mechanism.speed_names)
    return speed


def _numeric(speed: IndependentVelocity) -> IndependentVelocity:
    return speed if isinstance(speed, str) else map_expressions(speed, value_near)


def velocity_reduction(
    mechanism: Mechanism,
    twin: tuple[Mechanism, np.ndarray, list[IndependentVelocity]],
    q: Any,
    u: Any,
    t: Any,
    speeds: list[IndependentVelocity],
) -> VelocityReduction:
    """V, v0 and v_rate, from A v + a = 0, S v = u and their derivatives, on scalars of any reading."""
    nv = mechanism.nv
    numbers, q_near, speeds_near = twin
    A_near = numeric_rows(numbers, q_near)
    kept = independent_rows(A_near)
    if not kept and all(isinstance(s, str) for s in speeds):
        unit = np.eye(nv, dtype=int)
        zero = np.zeros(nv, int)
        return VelocityReduction(
            (), (), (), np.zeros((0, nv), int), unit, zero, np.asarray(u), zero, lambda: 0 * unit
        )
    K_near = np.concatenate(
        [A_near[kept], *[velocity_row(numbers, s, q_near).reshape(1, -1) for s in speeds_near]]
    ).astype(float)
    order = pivots(K_near)
    known = all_velocity_level_rows(mechanism, q, np.zeros(nv, int), t)
    k, m = len(kept), len(speeds)

    def stacked(q: Any, t: Any) -> np.ndarray:
        A = all_velocity_level_rows(mechanism, q, np.zeros(nv, int), t).A[kept] if k else np.zeros((0, nv), int)
        return np.concatenate([A, *[velocity_row(mechanism, s, q).reshape(1, -1) for s in speeds]])

    K = np.concatenate([known.A[kept], *[velocity_row(mechanism, s, q).reshape(1, -1) for s in speeds]])
    right = np.zeros((k + m, m + 1), int).astype(object)
    right[k:, :m] = np.eye(m, dtype=int)
    right[:k, m] = -known.a[kept]
    solved = solve(K, right, order)
    V, v0 = solved[:, :m], solved[:, m]
    v = V @ np.asarray(u) + v0
    rates = np.array([*configuration_rate(mechanism.tree, q, v), 1], dtype=object)
    b = all_velocity_level_rows(mechanism, q, v, t).b[kept] if k else np.zeros(0, int)
    _, S_rate = derivative_along(
        lambda x: np.array([velocity_row(mechanism, s, x[:-1]) for s in speeds], dtype=object) @ v,
        [*q, t],
        rates,
    )
    v_rate = solve(K, np.concatenate([b, -S_rate]).reshape(-1, 1), order)[:, 0]

    def V_rate() -> np.ndarray:
        """From K V = (0; 1): K V_dot = -K_dot V."""
        _, K_rate = derivative_along(lambda x: stacked(x[:-1], x[-1]), [*q, t], rates)
        return solve(K, -(K_rate @ V), order)

    names = tuple(known.names[i] for i in kept)
    return VelocityReduction(names, known.names, tuple(kept), known.A[kept], V, v0, v, v_rate, V_rate)
