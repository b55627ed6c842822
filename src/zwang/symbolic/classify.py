"""Classification of constraints as holonomic or nonholonomic by Frobenius's theorem.

A velocity-level constraint A(q) v = 0 is integrable, and therefore holonomic, if the distribution of its
allowed velocities is involutive: for vector fields X_i, X_j of allowed velocities the Lie bracket [X_i, X_j]
is allowed too. Brackets are computed by exact differentiation at the numeric probe, a generic numeric
instance of the mechanism.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from zwang.algebra.dual import Dual, SecondOrder, derivative_along
from zwang.api.arguments import validation
from zwang.constraint.hard import (
    all_velocity_level_rows,
    depends_on_time,
    is_hard_constraint,
    velocity_level_rows,
)
from zwang.deprecation import renamed_attributes
from zwang.errors import DescriptionError
from zwang.kinematics.configuration import configuration_rate, velocities_of_rate
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.type_validation import validated_arguments
from zwang.symbolic.elimination import pivots, solve_exactly
from zwang.symbolic.numeric_probe import TIME, independent_columns, independent_rows, numeric_probe

TOLERANCE = 1e-9
VectorFields = Callable[[Any], np.ndarray]


@renamed_attributes(integrable_here="integrable_with_others")
@dataclass(frozen=True)
class ConstraintClassification:
    """The classification of one constraint.

    rows: their number. independent: the number of rows that earlier constraints do not imply. integrable:
    whether the constraint is integrable by itself. integrable_with_others: together with the other
    constraints.
    """

    name: str
    rows: int
    independent: int
    integrable: bool
    integrable_with_others: bool

    def __str__(self) -> str:
        kind = (
            "holonomic"
            if self.integrable
            else "holonomic together with the other constraints"
            if self.integrable_with_others
            else "nonholonomic"
        )
        return f"{self.name}: {kind}, {self.rows} row(s), {self.independent} independent"


@renamed_attributes(freedom="degrees_of_freedom", reachable="reachable_dimension")
@dataclass(frozen=True)
class Classification:
    """The classification of a mechanism's constraints.

    speeds: the number nv of generalised velocities. degrees_of_freedom: the number of independent velocities.
    reachable_dimension: the dimension of the set of reachable configurations, from brackets of up to three
    fields. rheonomic: whether a constraint depends on time. constraints: by name.
    """

    speeds: int
    degrees_of_freedom: int
    reachable_dimension: int
    rheonomic: bool
    constraints: dict[str, ConstraintClassification]

    @property
    def holonomic(self) -> bool:
        """Whether the whole mechanism is holonomic."""
        return self.degrees_of_freedom == self.reachable_dimension

    def __str__(self) -> str:
        head = (
            f"{self.speeds} generalised velocities, {self.degrees_of_freedom} degrees of freedom, "
            f"{self.reachable_dimension} reachable dimensions: "
            f"{'holonomic' if self.holonomic else 'nonholonomic'}{', rheonomic' if self.rheonomic else ''}"
        )
        return "\n".join([head, *(f"  {kind}" for kind in self.constraints.values())])


@validated_arguments()
def classify(mechanism: Mechanism) -> Classification:
    """Which hard constraints are integrable, by Frobenius's theorem, and the remaining degrees of freedom.

    Source: Neimark, Fufaev, Dynamics of Nonholonomic Systems (1972), Ch. I; Bloch, Nonholonomic Mechanics and
    Control, Sec. 2.
    Raises DescriptionError for a mechanism without moving joints, and where the constraints are singular near
    home.
    """
    mechanism = validation.checked_mechanism(mechanism)
    if not mechanism.nv:
        raise DescriptionError(
            f"mechanism {mechanism.name!r} has no joint that moves: there is nothing to constrain"
        )
    numbers, q = numeric_probe(mechanism)
    hard = [c for c in numbers.constraints if is_hard_constraint(c)]
    distribution = _allowed(
        numbers, q, lambda x: all_velocity_level_rows(numbers, x, np.zeros(numbers.nv), TIME).A
    )
    closure = _closure(distribution, q)
    closure_velocities = (
        np.stack([velocities_of_rate(numbers.tree, q, c) for c in closure.T], axis=1).astype(float)
        if closure.size
        else np.zeros((numbers.nv, 0))
    )
    kinds: dict[str, ConstraintClassification] = {}
    rows_before = np.zeros((0, numbers.nv))
    for c in hard:
        A = _rows(numbers, c, q)
        rows_so_far = np.concatenate([rows_before, A])
        gained = len(independent_rows(rows_so_far)) - len(independent_rows(rows_before))
        own = _allowed(
            numbers, q, lambda x, c=c: velocity_level_rows(numbers, c, x, np.zeros(numbers.nv), TIME).A
        )
        kinds[c.name] = ConstraintClassification(
            c.name, len(A), gained, _is_involutive(own, A, numbers, q), _is_zero(A @ closure_velocities)
        )
        rows_before = rows_so_far
    degrees_of_freedom = numbers.nv - len(independent_rows(rows_before))
    rheonomic = any(depends_on_time(c) for c in mechanism.constraints)
    return Classification(numbers.nv, degrees_of_freedom, closure.shape[1], rheonomic, kinds)


def _rows(numbers: Mechanism, constraint: Any, q: Any) -> np.ndarray:
    """A (k, nv) of one constraint."""
    return np.array(velocity_level_rows(numbers, constraint, q, np.zeros(numbers.nv), TIME).A, dtype=float)


def _is_zero(x: np.ndarray) -> bool:
    return float(np.abs(x).max(initial=0.0)) < TOLERANCE


def _allowed(numbers: Mechanism, q: np.ndarray, rows: VectorFields) -> VectorFields:
    """A function x -> allowed coordinate rates (nq, n), smooth near q by fixed pivots."""
    near = np.array(rows(q), dtype=float).reshape(-1, numbers.nv)
    kept, free = independent_rows(near), independent_columns(near)
    if len(kept) + len(free) != numbers.nv:
        raise DescriptionError(
            f"the constraints of mechanism {numbers.name!r} are singular near its home configuration; "
            "give another `home`"
        )
    unit = np.eye(numbers.nv, dtype=int)[free]
    order = pivots(np.concatenate([near[kept], unit]))
    right = np.zeros((numbers.nv, len(free)), int).astype(object)
    right[len(kept) :] = np.eye(len(free), dtype=int)

    def field(x: Any) -> np.ndarray:
        K = np.concatenate([np.asarray(rows(x), dtype=object).reshape(-1, numbers.nv)[kept], unit])
        V = solve_exactly(K, right, order)
        return (
            np.stack([configuration_rate(numbers.tree, x, column) for column in V.T], axis=1)
            if len(free)
            else V
        )

    return field


def _brackets(first: VectorFields, second: VectorFields, x: Any, kind: type) -> np.ndarray:
    """All Lie brackets [X_i, Y_j] = DY_j X_i - DX_i Y_j at x, as columns."""
    X, Y = np.asarray(first(x)), np.asarray(second(x))
    along_X = [derivative_along(second, x, column, kind)[1] for column in X.T]
    along_Y = [derivative_along(first, x, column, kind)[1] for column in Y.T]
    columns = [along_X[i][:, j] - along_Y[j][:, i] for i in range(X.shape[1]) for j in range(Y.shape[1])]
    return np.stack(columns, axis=1) if columns else X


def _closure(field: VectorFields, q: np.ndarray) -> np.ndarray:
    """A basis of the span of the fields, their brackets, and the brackets of these with the fields."""
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


def _is_involutive(field: VectorFields, A: np.ndarray, numbers: Mechanism, q: np.ndarray) -> bool:
    """Whether A annihilates all brackets of the fields."""
    X = np.array(field(q), dtype=float)
    if X.shape[1] < 2:
        return True
    brackets = np.array(_brackets(field, field, q, Dual), dtype=float)
    velocities = np.stack([velocities_of_rate(numbers.tree, q, column) for column in brackets.T], axis=1)
    return _is_zero(A @ velocities)
