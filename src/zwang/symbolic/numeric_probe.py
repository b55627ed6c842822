"""A mechanism with numbers for its symbols, where it is nothing special: what ranks and pivots are looked at on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from zwang.constraint.hard import is_hard_constraint, velocity_level_rows_at
from zwang.kinematics.configuration import integrate_configuration, normalized_configuration
from zwang.mechanism.mechanism import Mechanism
from zwang.symbolic.expression_forms import mechanism_in_scalars
from zwang.symbolic.sympy_backend import substitute_in

RANK = 1e-9
TIME = 0.37  # [s], at which constraints that depend on it are looked at
SIZES = (1.0, 0.6, -1.3)  # of the steps away from home
STEPS, LONGEST, CLOSED = 60, 0.3, 1e-13  # of the assembly: steps, the longest, and gaps that are none
NumericProbe = tuple[Mechanism, np.ndarray]

_VALUES = [0.93, 1.07, 0.98, 1.03, 0.91, 1.01, 1.09, 0.96]


def value_near(expression: Any) -> float:
    """A number for an expression, its symbols at values near 1 so that inertias can be."""
    return float(
        substitute_in(expression, {s: _VALUES[sum(map(ord, s.name)) % 8] for s in expression.free_symbols})
    )


def numeric_probe(mechanism: Mechanism) -> NumericProbe:
    """The mechanism with numbers for its symbols, and a configuration near home that is nothing special.

    Where the constraints can be assembled there, it is one that they allow, so that loops that are over-constrained are
    seen to move; of several the one with the most independent rows, as positions may be singular.
    """
    massless = tuple(
        replace(body, mass=1, inertia=(1, 1, 1)) for body in mechanism.bodies
    )  # no part in kinematics
    numbers = mechanism_in_scalars(mechanism.replace(bodies=massless), value_near)
    generic = _near_home(numbers, 1.0)
    if not any(is_hard_constraint(c) for c in numbers.constraints):
        return numbers, generic
    assembled = [_assembled(numbers, _near_home(numbers, size)) for size in SIZES]
    allowed = [q for q in assembled if q is not None]
    return numbers, max(allowed, key=lambda q: rank(numeric_rows(numbers, q)), default=generic)


def _near_home(numbers: Mechanism, size: float) -> np.ndarray:
    q = np.array([float(x) for x in (numbers.home or numbers.neutral)], dtype=float)
    for joint in numbers.joints:
        for k, part in zip(range(joint.q.start, joint.q.stop), joint.joint.coordinates, strict=True):
            q[k] += 0.0 if part == "qw" else size * (0.11 + 0.037 * ((7 * k) % 5))
    return normalized_configuration(numbers.tree, q).astype(float)


def _assembled(numbers: Mechanism, q: np.ndarray) -> np.ndarray | None:
    """The configuration on the constraints that Newton's steps of least size reach from q; None where they reach none."""
    for _ in range(STEPS):
        A, _, gaps = (np.asarray(x, dtype=float) for x in velocity_level_rows_at(numbers, q, TIME))
        if not (np.isfinite(A).all() and np.isfinite(gaps).all()):
            return None
        if np.abs(gaps).max(initial=0.0) < CLOSED:
            return q
        step = -np.linalg.pinv(A, rcond=1e-10) @ gaps
        size = np.abs(step).max()
        q = integrate_configuration(numbers.tree, q, step * min(1.0, LONGEST / max(size, LONGEST))).astype(
            float
        )
    return None


def numeric_rows(numbers: Mechanism, q: np.ndarray) -> np.ndarray:
    """A (k, nv) of all exact constraints, in numbers."""
    if not any(is_hard_constraint(c) for c in numbers.constraints):
        return np.zeros((0, numbers.nv))
    return np.array(velocity_level_rows_at(numbers, q, TIME)[0], dtype=float)


def rank(A: np.ndarray) -> int:
    """The number of independent rows."""
    return int(np.linalg.matrix_rank(A, tol=RANK * max(1.0, np.abs(A).max(initial=0)))) if A.size else 0


def independent_velocities(A: np.ndarray) -> list[int]:
    """The speeds that stay free, in order: those that a pivoted elimination of A leaves."""
    R = A.copy()
    dependent: list[int] = []
    while R.size and np.abs(R).max() > RANK:
        i, j = np.unravel_index(np.argmax(np.abs(R)), R.shape)
        row = R[i] / R[i, j]
        R = np.delete(R - np.outer(R[:, j], row), i, axis=0)
        dependent.append(int(j))
    return [k for k in range(A.shape[1]) if k not in dependent]


def independent_rows(A: np.ndarray) -> list[int]:
    """The rows of A that are independent, the first of those that depend on each other."""
    kept: list[int] = []
    for i in range(len(A)):
        if rank(A[[*kept, i]]) > len(kept):
            kept.append(i)
    return kept
