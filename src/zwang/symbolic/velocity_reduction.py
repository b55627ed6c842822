"""Velocity reduction: v = V u + v0 with independent velocities u, from the constraints.

Source: Luchtenburg, Shah, Impelluso, Rykkje, IMECE 2021-72324, Eq. 40.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from zwang.algebra.dual import derivative_along
from zwang.constraint.hard import hard_constraints
from zwang.constraint.independent_velocities import IndependentVelocity, velocity_row
from zwang.errors import DescriptionError, UnknownNameError
from zwang.kinematics.configuration import configuration_rate
from zwang.mechanism.constraints import PointSpeed
from zwang.mechanism.mechanism import Mechanism
from zwang.symbolic.closed_rows import closed_rows
from zwang.symbolic.elimination import solve_exactly, solve_transposed
from zwang.symbolic.expression_forms import map_expressions
from zwang.symbolic.numeric_probe import (
    NumericProbe,
    independent_columns,
    independent_rows,
    numeric_rows,
    rank,
    relative_rows,
    rows_at_home,
    value_near,
)


@dataclass(frozen=True, eq=False)
class VelocityReduction:
    """v = V u + v0 (nv,), from the independent rows A v + a = 0 of the constraints.

    names: the constraints of the independent rows. all_names: those of all rows. kept: the numbers of the
    independent rows among all. A (k, nv): the independent rows. S (n, nv): u = S v. V (nv, n), v0 (nv,).
    v (nv,): the generalised velocities in u. v_rate (nv,): their rate at constant u. near: (A; S)
    at the numeric probe, by which pivots are chosen. make_V_rate: computes V_rate.
    """

    names: tuple[str, ...]
    all_names: tuple[str, ...]
    kept: tuple[int, ...]
    A: np.ndarray
    S: np.ndarray
    V: np.ndarray
    v0: np.ndarray
    v: np.ndarray
    v_rate: np.ndarray
    near: np.ndarray
    make_V_rate: Callable[[], np.ndarray]

    @cached_property
    def V_rate(self) -> np.ndarray:
        """dV/dt (nv, n)."""
        return self.make_V_rate()

    @property
    def trivial(self) -> bool:
        """Whether u is v: there are no constraints and no other velocities were chosen."""
        return not self.names and len(self.V) == self.V.shape[1]

    def multipliers(self, excess: np.ndarray) -> np.ndarray:
        """lambda (k,) of A^T lambda + S^T f = excess; the forces f (n,) along the independent velocities are
        zero if the excess is that of the motion.
        """
        K = np.concatenate([self.A, self.S])
        return solve_transposed(K, excess.reshape(-1, 1), self.near)[: len(self.A), 0]


def chosen_velocities(
    mechanism: Mechanism, speeds: Sequence[IndependentVelocity] | None, probe: NumericProbe
) -> list[IndependentVelocity]:
    """The independent velocities: those given, or a choice by complete pivoting if None.

    Raises UnknownNameError for an unknown velocity, and DescriptionError unless they are as many as the
    degrees of freedom and independent at the numeric probe.
    """
    if speeds is None and not hard_constraints(mechanism):
        return list(mechanism.speed_names)
    numbers, q, _ = probe
    A = numeric_rows(numbers, q)
    if rank(A) == mechanism.nv:
        names = ", ".join(repr(c.name) for c in hard_constraints(mechanism))
        raise DescriptionError(
            f"mechanism {mechanism.name!r} cannot move: its constraints ({names}) have {rank(A)} independent "
            f"rows for {mechanism.nv} velocities near its home configuration; remove a constraint, or, if "
            "the mechanism is over-constrained and moves elsewhere, give a `home` there"
        )
    if speeds is None:
        return [mechanism.speed_names[k] for k in independent_columns(rows_at_home(probe))]
    if isinstance(speeds, str) or not isinstance(speeds, Sequence):
        raise DescriptionError(f"speeds is {speeds!r}; give a list of velocity names and PointSpeeds")
    chosen = [_checked(mechanism, s) for s in speeds]
    S = _numeric_velocity_rows(numbers, [_numeric(s) for s in chosen], q)
    constrained, total = rank(A), rank(np.concatenate([A, S]))
    free = mechanism.nv - constrained
    if len(chosen) != free:
        raise DescriptionError(
            f"mechanism {mechanism.name!r} has {free} degrees of freedom ({mechanism.nv} velocities, "
            f"{constrained} independent constraint rows) but {len(chosen)} velocities were given; "
            f"give {free}, such as "
            f"{[mechanism.speed_names[k] for k in independent_columns(rows_at_home(probe))]}"
        )
    if total < mechanism.nv:
        raise DescriptionError(
            f"the velocities {[_name(s) for s in chosen]} are linearly dependent under the constraints; "
            "choose others, such as "
            f"{[mechanism.speed_names[k] for k in independent_columns(rows_at_home(probe))]}"
        )
    return chosen


def _name(speed: IndependentVelocity) -> str:
    return speed if isinstance(speed, str) else speed.name


def _checked(mechanism: Mechanism, speed: Any) -> IndependentVelocity:
    if isinstance(speed, PointSpeed):
        mechanism.tree.placement(speed.body)
        return speed
    if speed not in mechanism.speed_names:
        raise UnknownNameError("speed", speed, mechanism.speed_names)
    return speed


def _numeric(speed: IndependentVelocity) -> IndependentVelocity:
    return speed if isinstance(speed, str) else map_expressions(speed, value_near)


def velocity_reduction(
    mechanism: Mechanism,
    near: tuple[Mechanism, np.ndarray, list[IndependentVelocity]],
    q: Any,
    u: Any,
    t: Any,
    speeds: list[IndependentVelocity],
) -> VelocityReduction:
    """V, v0 and v_rate over a generic scalar, from A v + a = 0, S v = u and their time derivatives.

    near: the numeric probe and the velocities in its numbers, from which rows and pivots are chosen.
    """
    nv = mechanism.nv
    numbers, q_near, speeds_near = near
    A_near = numeric_rows(numbers, q_near)
    kept = independent_rows(A_near)
    if not kept and all(isinstance(s, str) for s in speeds):
        unit = np.eye(nv, dtype=int)
        zero = np.zeros(nv, int)
        return VelocityReduction(
            (), (), (), unit[:0], unit, unit, zero, np.asarray(u), zero, unit, partial(np.zeros_like, unit)
        )
    K_near = np.concatenate([A_near[kept], _numeric_velocity_rows(numbers, speeds_near, q_near)])
    known = closed_rows(mechanism, q, np.zeros(nv, int), t)
    k, m = len(kept), len(speeds)
    S = _velocity_rows(mechanism, speeds, q)
    K = np.concatenate([known.A[kept], S])
    right = np.zeros((k + m, m + 1), int).astype(object)
    right[k:, :m] = np.eye(m, dtype=int)
    right[:k, m] = -known.a[kept]
    solved = solve_exactly(K, right, K_near)
    V, v0 = solved[:, :m], solved[:, m]
    v = V @ np.asarray(u) + v0
    rates = np.array([*configuration_rate(mechanism.tree, q, v), 1], dtype=object)
    b = closed_rows(mechanism, q, v, t).b[kept] if k else np.zeros(0, int)
    _, S_rate = derivative_along(lambda x: _velocity_rows(mechanism, speeds, x[:-1]) @ v, [*q, t], rates)
    v_rate = solve_exactly(K, np.concatenate([b, -S_rate]).reshape(-1, 1), K_near)[:, 0]
    V_rate = partial(_transformation_rate, mechanism, (kept, speeds), ([*q, t], rates), (K, K_near), V)
    names = tuple(known.names[i] for i in kept)
    return VelocityReduction(
        names, known.names, tuple(kept), known.A[kept], S, V, v0, v, v_rate, K_near, V_rate
    )


def _numeric_velocity_rows(
    numbers: Mechanism, speeds: Sequence[IndependentVelocity], q: np.ndarray
) -> np.ndarray:
    """S (m, nv) in numbers, relative to the largest entries of its rows; see `relative_rows`."""
    S = relative_rows(numbers, _velocity_rows(numbers, speeds, q).astype(float), np.ones(len(speeds)))
    largest = np.abs(S).max(axis=1, keepdims=True)
    return S / np.where(largest > 0, largest, 1)


def _velocity_rows(mechanism: Mechanism, speeds: Sequence[IndependentVelocity], q: Any) -> np.ndarray:
    """S (m, nv) with S v = u."""
    return np.array([velocity_row(mechanism, s, q) for s in speeds], dtype=object).reshape(-1, mechanism.nv)


def _transformation_rate(
    mechanism: Mechanism,
    rows: tuple[Sequence[int], Sequence[IndependentVelocity]],
    motion: tuple[Sequence[Any], np.ndarray],
    matrices: tuple[np.ndarray, np.ndarray],
    V: np.ndarray,
) -> np.ndarray:
    """V_dot (nv, n) from K V = (0; 1): K V_dot = -K_dot V.

    rows: the numbers of the independent rows, and the independent velocities. motion: (q, t) and its rate.
    matrices: K and its numbers at the probe. (No local function, so that equations can be pickled.)
    """
    (kept, speeds), (K, near) = rows, matrices
    zero = np.zeros(mechanism.nv, int)

    def stacked(x: Any) -> np.ndarray:
        S = _velocity_rows(mechanism, speeds, x[:-1])
        return np.concatenate([closed_rows(mechanism, x[:-1], zero, x[-1]).A[kept], S]) if kept else S

    _, K_rate = derivative_along(stacked, *motion)
    return solve_exactly(K, -(K_rate @ V), near)
