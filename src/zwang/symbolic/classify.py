"""Which constraints are holonomic: Frobenius's test, and the degrees of freedom.

A constraint A(q) v = 0 is integrable, hence holonomic in disguise, if the motions that it allows stay within themselves when they are
combined: for fields X_i, X_j of allowed speeds also their bracket [X_i, X_j] is allowed. Brackets are worked out by exact
differentiation at configurations that are nothing special, with numbers for symbols.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from zwang.algebra.dual import Dual, SecondOrder, derivative_along
from zwang.api import validation
from zwang.constraint.hard import (
    all_velocity_level_rows,
    depends_on_time,
    is_hard_constraint,
    velocity_level_rows,
)
from zwang.errors import DescriptionError
from zwang.kinematics.configuration import configuration_rate, velocities_of_rate
from zwang.mechanism.declared import checked_arguments
from zwang.mechanism.mechanism import Mechanism
from zwang.symbolic.elimination import pivots, solve
from zwang.symbolic.numeric_probe import TIME, independent_rows, independent_velocities, numeric_probe

ALLOWED = 1e-9
Field = Callable[[Any], np.ndarray]


@dataclass(frozen=True)
class ConstraintClassification:
    """One constraint: rows; independent: how many of them the constraints before it do not imply; integrable by itself, and here:
    together with the others."""

    name: str
    rows: int
    independent: int
    integrable: bool
    integrable_with_others: bool

    def __str__(self) -> str:
        kind = (
            "holonomic"
            if self.integrable
            else "holonomic here, with the other constraints"
            if self.integrable_with_others
            else "nonholonomic"
        )
        return f"{self.name}: {kind}, {self.rows} row(s), {self.independent} independent"


@dataclass(frozen=True)
class Classification:
    """speeds: nv. freedom: degrees of freedom in speeds. reachable: dimension of the configurations that can be reached.

    rheonomic: whether a constraint depends on time. `reachable` counts brackets of three fields.
    """

    speeds: int
    degrees_of_freedom: int
    reachable_dimension: int
    rheonomic: bool
    constraints: dict[str, ConstraintClassification]

    @property
    def holonomic(self) -> bool:
        """Is the whole mechanism holonomic?"""
        return self.degrees_of_freedom == self.reachable_dimension

    def __str__(self) -> str:
        head = (
            f"{self.speeds} speeds, {self.degrees_of_freedom} degrees of freedom in speeds, {self.reachable_dimension} dimensions of configurations: "
            f"{'holonomic' if self.holonomic else 'nonholonomic'}{', rheonomic' if self.rheonomic else ''}"
        )
        return "\n".join([head, *(f"  {kind}" for kind in self.constraints.values())])


@checked_arguments()
def classify(mechanism: Mechanism) -> Classification:
    """Which exact constraints are integrable (Frobenius), and how many degrees of freedom they leave.

    Source: Neimark, Fufaev, Dynamics of Nonholonomic Systems (1972), Ch. I; Bloch, Nonholonomic Mechanics and Control, Sec. 2.
    Raises DescriptionError for constraints by numbers of joints that do not move, and where nothing moves.
    """
    mechanism = validation.checked_mechanism(mechanism)
    if not mechanism.nv:
        raise DescriptionError(
            f"mechanism {mechanism.name!r} has no joint that moves: nothing is constrained"
        )
    numbers, q = numeric_probe(mechanism)
    exact = [c for c in numbers.constraints if is_hard_constraint(c)]
    everything = _allowed(numbers, q, lambda x: all_velocity_level_rows(numbers, x, np.zeros(numbers.nv), TIME).A)
    reach = _closure(everything, q)
    reach_speeds = (
        np.stack([velocities_of_rate(numbers.tree, q, c) for c in reach.T], axis=1).astype(float)
        if reach.size
        else np.zeros((numbers.nv, 0))
    )
    kinds: dict[str, ConstraintClassification] = {}
    rows_before = np.zeros((0, numbers.nv))
    for c in exact:
        A = _rows(numbers, c, q)
        both = np.concatenate([rows_before, A])
        gained = len(independent_rows(both)) - len(independent_rows(rows_before))
        own = _allowed(numbers, q, lambda x, c=c: velocity_level_rows(numbers, c, x, np.zeros(numbers.nv), TIME).A)
        kinds[c.name] = ConstraintClassification(
            c.name, len(A), gained, _is_involutive(own, A, numbers, q), _is_zero(A @ reach_speeds)
        )
        rows_before = both
    degrees_of_freedom = numbers.nv - len(independent_rows(rows_before))
    rheonomic = any(depends_on_time(c) for c in mechanism.constraints)
    return Classification(numbers.nv, degrees_of_freedom, reach.shape[1], rheonomic, kinds)


def _rows(numbers: Mechanism, constraint: Any, q: Any) -> np.ndarray:
    return np.array(velocity_level_rows(numbers, constraint, q, np.zeros(numbers.nv), TIME).A, dtype=float)


def _is_zero(x: np.ndarray) -> bool:
    return float(np.abs(x).max(initial=0.0)) < ALLOWED


def _allowed(numbers: Mechanism, q: np.ndarray, rows: Field) -> Field:
    """The field of allowed coordinate rates (nq, freedom), smooth near q: pivots are chosen once."""
    near = np.array(rows(q), dtype=float).reshape(-1, numbers.nv)
    kept, free = independent_rows(near), independent_velocities(near)
    if len(kept) + len(free) != numbers.nv:
        raise DescriptionError(
            f"the constraints of mechanism {numbers.name!r} are singular near its home; give another `home`"
        )
    unit = np.eye(numbers.nv, dtype=int)[free]
    order = pivots(np.concatenate([near[kept], unit]))
    right = np.zeros((numbers.nv, len(free)), int).astype(object)
    right[len(kept) :] = np.eye(len(free), dtype=int)

    def field(x: Any) -> np.ndarray:
        K = np.concatenate([np.asarray(rows(x), dtype=object).reshape(-1, numbers.nv)[kept], unit])
        V = solve(K, right, order)
        return (
            np.stack([configuration_rate(numbers.tree, x, column) for column in V.T], axis=1)
            if len(free)
            else V
        )

    return field


def _brackets(first: Field, second: Field, x: Any, kind: type) -> np.ndarray:
    """All [X_i, Y_j] at x, as columns: the derivative of Y_j along X_i less that of X_i along Y_j."""
    X, Y = np.asarray(first(x)), np.asarray(second(x))
    along_X = [derivative_along(second, x, column, kind)[1] for column in X.T]
    along_Y = [derivative_along(first, x, column, kind)[1] for column in Y.T]
    columns = [along_X[i][:, j] - along_Y[j][:, i] for i in range(X.shape[1]) for j in range(Y.shape[1])]
    return np.stack(columns, axis=1) if columns else X


def _closure(field: Field, q: np.ndarray) -> np.ndarray:
    """An independent set of columns of the fields, their brackets, and the brackets of these with the fields."""
    X = np.array(field(q), dtype=float)
    if X.shape[1] < 2:
        return X

    def once(x: Any) -> np.ndarray:
        return _brackets(field, field, x, SecondOrder)

    found = _independent(np.concatenate([X, np.array(once(q), dtype=float)], axis=1))
    if found.shape[1] == X.shape[1]:
        return found
    twice = np.array(_brackets(field, once, q, Dual), dtype=float)
    return _independent(np.concatenate([found, twice], axis=1))


def _independent(columns: np.ndarray) -> np.ndarray:
    return columns[:, independent_rows(columns.T)]


def _is_involutive(field: Field, A: np.ndarray, numbers: Mechanism, q: np.ndarray) -> bool:
    X = np.array(field(q), dtype=float)
    if X.shape[1] < 2:
        return True
    brackets = np.array(_brackets(field, field, q, Dual), dtype=float)
    speeds = np.stack([velocities_of_rate(numbers.tree, q, column) for column in brackets.T], axis=1)
    return _is_zero(A @ speeds)
