"""Classification of constraints as holonomic or nonholonomic by Frobenius's theorem.

A velocity-level constraint A(q, t) v + a(q, t) = 0 is integrable, and therefore holonomic, if the
distribution of its allowed velocities is involutive: for vector fields X_i, X_j of allowed velocities the Lie
bracket [X_i, X_j] is allowed too. The fields are those in the space of (q, t): (V_i, 0) with A V_i = 0, and
(v_0, 1) with A v_0 + a = 0. Brackets are computed by exact differentiation at the numeric probe, a generic
numeric instance of the mechanism.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from zwang.algebra.dual import derivative_along, dual_kind
from zwang.api.arguments import validation
from zwang.constraint.hard import depends_on_time, hard_constraints, velocity_level_rows_at
from zwang.deprecation import renamed_attributes
from zwang.errors import DescriptionError
from zwang.kinematics.configuration import configuration_rate, velocities_of_rate
from zwang.mechanism.lengths import displacement_sizes, largest_length, translations
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.type_validation import validated_arguments
from zwang.symbolic.constraint_agreement import check_agreement
from zwang.symbolic.elimination import solve_exactly
from zwang.symbolic.numeric_probe import (
    TIME,
    independent_columns,
    independent_rows,
    numeric_probe,
    relative_rows,
    row_sizes_near,
    warn_of_branches,
)
from zwang.symbolic.vanishing_gradients import check_gradients

TOLERANCE = 1e-10  # of brackets, without unit; rounding errors of nested ones are up to 1e-12
VectorFields = Callable[[Any], np.ndarray]
NestedFields = Callable[..., np.ndarray]  # of x and the depth of the dual numbers that x may consist of
Pairs = list[tuple[int, int]]


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
    reachable_dimension: the dimension of the set of configurations that are reachable at one time.
    rheonomic: whether a constraint depends on time. constraints: by name.
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
    Gives a ZwangWarning where no `home` tells which of several branches (assembly modes) with different
    degrees of freedom is meant, and takes that with the fewest; and where the constraints cannot be closed.
    Raises DescriptionError for a mechanism without moving joints, where the constraints are singular near
    home, and for a formula whose gradient vanishes where it holds, such as z**2;
    InconsistentConstraintsError where hard constraints without symbols contradict each other.
    """
    mechanism = validation.checked_mechanism(mechanism)
    if not mechanism.nv:
        raise DescriptionError(
            f"mechanism {mechanism.name!r} has no joint that moves: there is nothing to constrain"
        )
    numbers, q, _ = probe = numeric_probe(mechanism)
    check_gradients(probe)
    check_agreement(mechanism, probe)
    warn_of_branches(probe)
    at = np.array([*q, TIME])
    hard = hard_constraints(numbers)
    closure = _closure(_allowed(numbers, at, _rows_of(numbers, hard)), at, numbers)
    kinds: dict[str, ConstraintClassification] = {}
    rows_before = np.zeros((0, numbers.nv))
    for c in hard:
        rows_of_c = _rows_of(numbers, [c])
        rows = _floats(rows_of_c(at))
        rows_so_far = np.concatenate([rows_before, _without_unit(numbers, rows)])
        gained = len(independent_rows(rows_so_far)) - len(independent_rows(rows_before))
        own = _allowed(numbers, at, rows_of_c)
        integrable = _is_involutive(own, rows, numbers, at)
        with_others = _annihilates(rows, numbers, at, closure)
        kinds[c.name] = ConstraintClassification(c.name, len(rows), gained, integrable, with_others)
        rows_before = rows_so_far
    degrees_of_freedom = numbers.nv - len(independent_rows(rows_before))
    rheonomic = any(depends_on_time(c) for c in mechanism.constraints)
    return Classification(numbers.nv, degrees_of_freedom, closure.shape[1] - 1, rheonomic, kinds)


def _rows_of(numbers: Mechanism, constraints: Sequence[Any]) -> VectorFields:
    """A function x = (q, t) -> (A, a) (k, nv + 1) of constraints, relative to the sizes of their rows."""
    sizes = row_sizes_near(numbers, constraints)

    def rows(x: Any) -> np.ndarray:
        A, a, _ = velocity_level_rows_at(numbers, x[:-1], x[-1], constraints)
        return np.concatenate([A, a[:, None]], axis=1) / sizes[:, None]

    return rows


def _without_unit(numbers: Mechanism, rows: np.ndarray) -> np.ndarray:
    """A (k, nv) of rows (A, a), for displacements relative to large ones."""
    return relative_rows(numbers, rows[:, :-1], np.ones(len(rows)))


def _floats(x: Any) -> np.ndarray:
    return np.array(x, dtype=float)


def _annihilates(rows: np.ndarray, numbers: Mechanism, at: np.ndarray, fields: np.ndarray) -> bool:
    """Whether A v + a t_dot = 0 for the rates (q_dot, t_dot) in the columns of `fields`."""
    velocities = [[*velocities_of_rate(numbers.tree, at[:-1], x[:-1]), x[-1]] for x in fields.T]
    V = _floats(velocities).reshape(fields.shape[1], rows.shape[1]).T
    return bool((np.abs(rows @ V) < TOLERANCE * (1 + np.abs(rows) @ np.abs(V))).all())


def _allowed(numbers: Mechanism, at: np.ndarray, rows: VectorFields) -> VectorFields:
    """A function (q, t) -> allowed rates (nq + 1, n + 1) of q and t, smooth near `at` by fixed pivots."""
    near = _without_unit(numbers, _floats(rows(at)))
    kept, free = independent_rows(near), independent_columns(near)
    if len(kept) + len(free) != numbers.nv:
        raise DescriptionError(
            f"the constraints of mechanism {numbers.name!r} are singular near its home configuration; "
            "give another `home`"
        )
    unit, sizes = np.eye(numbers.nv, dtype=int)[free], np.array(displacement_sizes(numbers), dtype=float)
    near = np.concatenate([near[kept], unit])

    def field(x: Any) -> np.ndarray:
        # (A, S) (V, v_0) = ((0, -a), (d, 0)) with the independent velocities S v, of large displacements d
        Aa = np.asarray(rows(x), dtype=object)[kept]
        right = np.zeros((numbers.nv, len(free) + 1), int).astype(object)
        right[len(kept) :, :-1], right[: len(kept), -1] = np.diag(sizes[free]), -Aa[:, -1]
        V = solve_exactly(np.concatenate([Aa[:, :-1], unit]), right, near)
        rates = [[*configuration_rate(numbers.tree, x[:-1], v), 0] for v in V.T]
        rates[-1][-1] = 1
        return np.array(rates, dtype=object).T

    return field


def _brackets(field: VectorFields, other: NestedFields, pairs: Pairs, x: Any, depth: int = 0) -> np.ndarray:
    """The Lie brackets [X_i, Y_j] = DY_j X_i - DX_i Y_j at x, as columns, for the pairs (i, j) of the columns
    of `field` and of `other`. depth: of the dual numbers with which they are differentiated.
    """
    kind, deeper, X = dual_kind(depth), partial(other, depth=depth + 1), np.asarray(field(x))
    along_X = {i: derivative_along(deeper, x, X[:, i], kind) for i in {i for i, _ in pairs}}
    Y = next((value for value, _ in along_X.values()), X)
    along_Y = {j: derivative_along(field, x, Y[:, j], kind)[1] for j in {j for _, j in pairs}}
    columns = [along_X[i][1][:, j] - along_Y[j][:, i] for i, j in pairs]
    return np.stack(columns, axis=1) if columns else X[:, :0]


def _undifferentiated(field: VectorFields) -> NestedFields:
    return lambda x, depth: field(x)


def _pairs_of_fields(count: int) -> Pairs:
    return [(i, j) for j in range(count) for i in range(j)]


def _closure(field: VectorFields, at: np.ndarray, numbers: Mechanism) -> np.ndarray:
    """A basis of the span of the fields, their brackets, the brackets of these with the fields, and so on,
    until the span no longer grows.

    Near a generic point, a bracket in the span of others is a combination of them with smooth coefficients,
    and so are its own brackets: only those that enlarge the span are bracketed again.
    """
    sizes = np.ones(len(at))
    sizes[[*translations(numbers.tree).values()]] = largest_length(numbers)
    found, newest = _floats(field(at)), _undifferentiated(field)
    basis, _ = np.linalg.qr(found / sizes[:, None])
    count, pairs = found.shape[1], _pairs_of_fields(found.shape[1])
    while found.shape[1] <= numbers.nv:
        brackets = _floats(_brackets(field, newest, pairs, at))
        basis, kept = _enlarged(basis, brackets / sizes[:, None])
        if not kept:
            break
        found = np.concatenate([found, brackets[:, kept]], axis=1)
        newest = partial(_brackets, field, newest, [pairs[k] for k in kept])
        pairs = [(i, j) for i in range(count) for j in range(len(kept))]
    return found


def _enlarged(basis: np.ndarray, columns: np.ndarray) -> tuple[np.ndarray, list[int]]:
    """An orthonormal basis with the columns outside its span, and their numbers, by Gram-Schmidt."""
    kept = []
    for k, column in enumerate(columns.T):
        rest = column - basis @ (basis.T @ column)
        rest = rest - basis @ (basis.T @ rest)
        if (size := np.linalg.norm(rest)) > TOLERANCE * (1 + np.linalg.norm(column)):
            basis = np.concatenate([basis, rest[:, None] / size], axis=1)
            kept.append(k)
    return basis, kept


def _is_involutive(field: VectorFields, rows: np.ndarray, numbers: Mechanism, at: np.ndarray) -> bool:
    """Whether the rows (A, a) annihilate all brackets of the fields."""
    pairs = _pairs_of_fields(field(at).shape[1])
    brackets = _brackets(field, _undifferentiated(field), pairs, at)
    return _annihilates(rows, numbers, at, _floats(brackets))
