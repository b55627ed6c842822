"""Base parameters: the combinations of parameters that inverse dynamics can tell, by numerical rank.

The columns of the regressor of many random states are examined in the order of the bodies, from the world to
the leaves, and of each body the inertia, the first moment and then the mass. A column that is a linear
combination of columns before it is dependent: Y_d = Y_b K. Then
    tau = Y_b (pi_b + K pi_d) = Y_b beta,
so that no measurement of tau can tell more than beta = pi_b + K pi_d. In this order the parameters of a body
that its parent can carry are counted with those of the parent, as Gautier and Khalil do.
Source: Gautier, J. Robotic Systems 8 (1991) 485; Gautier, Khalil, IEEE Trans. Robotics and Automation 6
(1990) 368.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np

from zwang.api.arguments.validation import checked_mechanism
from zwang.api.compilation.closed_loops import loop_closure
from zwang.errors import DescriptionError, SolveError, StateError
from zwang.identification.natural_units import POWERS_OF_LENGTH, NaturalUnits, natural_units
from zwang.identification.parameters import Parameter, kinds_of, parameters_of
from zwang.identification.regressor import compiled_functions, reduced
from zwang.identification.symbolic_combinations import (
    random_values,
    regressor_by_symbols,
    symbolic_coefficients,
)
from zwang.kinematics.configuration import integrate_configuration
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.type_validation import validated_arguments
from zwang.scalar import are_constant

Status = Literal["alone", "combined", "invisible"]

TOLERANCE = 1e-7  # relative size of a column's independent part, below which it counts as dependent
VERIFIED = 1e-5  # relative error of the combinations in other states, above which the ranks are in doubt
NEGLIGIBLE = 1e-6  # relative size of a term that is not printed: rounded numbers of the geometry in files
ROUNDING = 1e-10  # relative size of a term, below which it is zero
TURNS = 2.0  # standard deviation of the random displacements [rad]


class Combinations(NamedTuple):
    """Linear combinations matrix @ pi (n,) of parameters pi; matrix (n, parameters)."""

    parameters: tuple[Parameter, ...]
    matrix: np.ndarray


@dataclass(frozen=True)
class BaseParameters:
    """The base parameters beta = B pi of a mechanism, with tau = Y[:, independent] beta.

    parameters: pi. independent, dependent, invisible: indices of the parameters with an independent column;
    with a column that is a combination of these; and with a zero column. K (independent, dependent): Y_d =
    Y_b K, of floats, or of SymPy expressions for a mechanism with symbols. singular_values: of the columns
    that are not zero, each scaled to unit length, largest first. lengths (parameters,): of the columns.
    """

    parameters: tuple[Parameter, ...]
    independent: tuple[int, ...]
    dependent: tuple[int, ...]
    invisible: tuple[int, ...]
    K: np.ndarray
    singular_values: np.ndarray
    lengths: np.ndarray

    def __len__(self) -> int:
        return len(self.independent)

    @cached_property
    def matrix(self) -> np.ndarray:
        """B (base parameters, parameters) with beta = B pi."""
        B = np.zeros((len(self), len(self.parameters)), dtype=self.K.dtype)
        B[np.arange(len(self)), list(self.independent)] = 1
        B[:, list(self.dependent)] = self.K
        return B

    @property
    def gap(self) -> float:
        """How clear the rank is: the smallest singular value that counts by the largest that does not."""
        s, n = self.singular_values, len(self)
        return float(s[n - 1] / s[n]) if 0 < n < len(s) and s[n] > 0 else float("inf")

    @property
    def values(self) -> np.ndarray:
        """beta of the mechanism's own parameters."""
        return self.matrix @ np.array([p.value for p in self.parameters], dtype=self.K.dtype)

    def status(self, parameter: int) -> Status:
        """Whether inverse dynamics can tell a parameter "alone", only "combined" with others, or not at all
        ("invisible").
        """
        if parameter in self.invisible:
            return "invisible"
        if parameter in self.dependent:
            return "combined"
        return "combined" if self._terms(self.independent.index(parameter)) else "alone"

    def _terms(self, row: int) -> list[tuple[Any, int]]:
        """The coefficients in a base parameter that are not negligible, each with its parameter."""
        own = self.lengths[self.independent[row]]
        return [
            (k, j)
            for k, j in zip(self.K[row], self.dependent, strict=True)
            if not are_constant(k) or abs(k) * own > NEGLIGIBLE * self.lengths[j]
        ]

    @cached_property
    def combinations(self) -> tuple[str, ...]:
        """Each base parameter in the names of the parameters, such as "I_arm_zz + 0.36 m_hand"."""
        names = [p.name for p in self.parameters]
        return tuple(
            " ".join([names[i], *(_term(k, names[j]) for k, j in self._terms(row))])
            for row, i in enumerate(self.independent)
        )

    def __str__(self) -> str:
        listed = "\n".join(f"  {k + 1:3d}  {text}" for k, text in enumerate(self.combinations))
        hidden = ", ".join(self.parameters[i].name for i in self.invisible) or "none"
        return (
            f"{len(self)} base parameters of {len(self.parameters)} parameters "
            f"(gap of the singular values {self.gap:.1e}):\n{listed}\n  invisible: {hidden}"
        )


@validated_arguments()
def base_parameters(
    mechanism: Mechanism,
    *,
    kinds: Sequence[str] | None = None,
    independent: Sequence[str] | None = None,
    tolerance: float = TOLERANCE,
    seed: int = 0,
) -> BaseParameters:
    """The base parameters of a mechanism, by the numerical rank of its regressor at random states.

    kinds, independent: as for `regressor`; with independent joints of a mechanism with closed loops, the base
    parameters are those that the forces at these joints tell.
    tolerance: a column whose independent part is smaller than this fraction of the column counts as
    dependent, and the singular values confirm the rank. Numbers of files are rounded (1.5708 for pi / 2);
    what only their rounding makes visible should not count. seed: of the random states.

    Lengths and other numbers of the geometry may be symbols; the coefficients are then SymPy expressions,
    such as in "mc_upper_z - l1 m_lower".
    The states have joint angles of all sizes, also beyond the limits of the joints, displacements of the size
    of the mechanism, and velocities at which gravity and inertia forces have one size, so that the result
    does not depend on the units. Without independent= constraints are not considered.
    Raises SolveError where the rank is in doubt: the greedy selection of columns and the singular values
    disagree, or the combinations do not hold in other random states; or the coefficients are no polynomials
    of degree two in the symbols of the mechanism. Raises DescriptionError for independent= with symbols, and
    what `regressor` raises.
    Source: Gautier (1991); Gautier, Khalil (1990).
    """
    m = checked_mechanism(mechanism)
    if not 0 < tolerance < 1:
        raise StateError(f"tolerance is {tolerance}; it must be between 0 and 1")
    if seed < 0:
        raise StateError(f"seed is {seed}; it must be 0 or a positive integer")
    tolerance, names = float(tolerance), None if kinds is None else kinds_of(kinds)
    if not parameters_of(m, names):
        kinds_asked = "of inverse dynamics" if names is None else ", ".join(names) or "(none)"
        raise DescriptionError(f"mechanism {m.name!r} has no parameters of the kinds {kinds_asked}")
    if m.symbols:
        if independent is not None:
            raise DescriptionError(
                f"mechanism {m.name!r} has symbols; independent= needs numbers: give them with "
                "mechanism.subs({...})"
            )
        return _with_symbols(m, names, tolerance, seed)
    chosen, rng = compiled_functions(m, names).chosen, np.random.default_rng(seed)
    units = natural_units(m)
    found = selected_columns(_random_regressor(m, names, independent, rng), chosen, units, tolerance)
    _verify(found, _random_regressor(m, names, independent, rng), tolerance)
    return found


def _random_regressor(
    m: Mechanism,
    kinds: tuple[str, ...] | None,
    independent: Sequence[str] | None,
    rng: np.random.Generator,
) -> np.ndarray:
    """The rows of random states, of which there are several times as many as are needed, as of
    `rows_of_work`.
    """
    functions, units = compiled_functions(m, kinds), natural_units(m)
    columns = len(functions.chosen)
    if independent is None:
        states = random_states(m, 20 + 6 * columns // max(m.nv, 1), rng)
        return rows_of_work(functions.regressor(*states), units.displacements)
    closure = loop_closure(m, independent)
    count = 20 + 6 * columns // len(closure.names)
    states = closure.random_states(count, rng, units.rate, units.displacements)
    Y = functions.regressor(*map(np.ascontiguousarray, states))
    return rows_of_work(reduced(m, independent, states[0], Y), units.displacements[list(closure.numbers)])


def rows_of_work(Y: np.ndarray, displacements: np.ndarray) -> np.ndarray:
    """The rows (states * n, parameters) of a regressor Y (states, n, parameters), those of forces and those
    of torques each times a displacement (n,) of the mechanism's size, whose work they then are.
    """
    return (Y * displacements[:, None]).reshape(-1, Y.shape[-1])


def with_independent(found: BaseParameters, others: Sequence[Parameter]) -> BaseParameters:
    """The base parameters with further ones, each of which is independent of all others."""
    n, k = len(found.parameters), len(others)
    K = np.concatenate([found.K, np.zeros((k, found.K.shape[1]))])
    return BaseParameters((*found.parameters, *others), (*found.independent, *range(n, n + k)),
                          found.dependent, found.invisible, K, found.singular_values,
                          np.concatenate([found.lengths, np.ones(k)]))  # fmt: skip


def _with_symbols(m: Mechanism, kinds: tuple[str, ...] | None, tolerance: float, seed: int
                  ) -> BaseParameters:  # fmt: skip
    """The base parameters of a mechanism with symbols, with symbolic coefficients."""
    chosen, rng = parameters_of(m, kinds), np.random.default_rng(seed)
    states, units = random_states(m, 20 + 6 * len(chosen) // max(m.nv, 1), rng), natural_units(m)
    at = regressor_by_symbols(m, kinds, states)
    Y = at(random_values(m, rng)).reshape(-1, m.nv, len(chosen))
    numeric = selected_columns(rows_of_work(Y, units.displacements), chosen, units, tolerance)
    K = symbolic_coefficients(m, at, numeric.independent, numeric.dependent, seed)
    return replace(numeric, K=K)


def random_states(m: Mechanism, count: int, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """Random q (count, nq), v and a (count, nv) in natural units; angles of all sizes, quaternions of unit
    length.
    """
    _, rate, displacements = natural_units(m)
    home = np.array([x if are_constant(x) else 0 for x in m.neutral], dtype=float)
    turns = TURNS * displacements * rng.normal(size=(count, m.nv))
    q = np.array([integrate_configuration(m.tree, home, row) for row in turns], dtype=float)
    v = rate * displacements * rng.normal(size=(count, m.nv))
    return q, v, rate**2 * displacements * rng.normal(size=(count, m.nv))


def selected_columns(
    Y: np.ndarray, parameters: tuple[Parameter, ...], units: NaturalUnits, tolerance: float
) -> BaseParameters:
    """The independent columns of Y (rows, parameters) in their order, by Gram-Schmidt orthogonalisation, and
    K. A column is invisible where it is small beside those of its unit, and the inertial ones are compared
    with each other in natural units.
    """
    lengths = np.linalg.norm(Y, axis=0)
    hidden = _is_small(lengths, parameters, units.length, tolerance)
    scaled = np.where(hidden, 0, Y) / np.where(hidden, 1, lengths)
    Q = np.zeros((len(Y), 0))
    independent: list[int] = []
    for j in _order(parameters):
        if hidden[j]:
            continue
        column = scaled[:, j]
        for _ in range(2):  # the second pass removes the rounding of the first
            column = column - Q @ (Q.T @ column)
        if np.linalg.norm(column) > tolerance:
            independent.append(j)
            Q = np.column_stack([Q, column / np.linalg.norm(column)])
    independent.sort()
    dependent = [int(j) for j in np.flatnonzero(~hidden) if j not in independent]
    K = np.linalg.lstsq(scaled[:, independent], scaled[:, dependent], rcond=None)[0]
    K = np.where(np.abs(K) < ROUNDING, 0, K) * lengths[dependent] / lengths[independent][:, None]
    s = np.linalg.svd(scaled[:, ~hidden], compute_uv=False) if (~hidden).any() else np.zeros(0)
    return BaseParameters(parameters, tuple(independent), tuple(dependent),
                          tuple(int(j) for j in np.flatnonzero(hidden)), K, s, lengths)  # fmt: skip


def _is_small(
    lengths: np.ndarray, parameters: tuple[Parameter, ...], length: float, tolerance: float
) -> np.ndarray:
    """Which columns (parameters,) are small, relative to the largest whose parameter has the same unit."""
    groups = ["inertial" if p.kind in POWERS_OF_LENGTH else p.unit for p in parameters]
    sizes = lengths * [length ** POWERS_OF_LENGTH.get(p.kind, 0) for p in parameters]
    largest = {g: max(x for x, h in zip(sizes, groups, strict=True) if h == g) for g in groups}
    return sizes <= tolerance * np.array([largest[g] for g in groups])


def _order(parameters: tuple[Parameter, ...]) -> list[int]:
    """The order in which columns are examined: of each body the inertia, then the first moment, then the
    mass, so that masses are counted with moments, and these with inertias: "I + l^2 m", not "m + I / l^2".
    """
    bodies = sum(p.kind == "mass" for p in parameters)
    order = [10 * k + i for k in range(bodies) for i in (*range(4, 10), *range(1, 4), 0)]
    return order + list(range(len(order), len(parameters)))


def _verify(found: BaseParameters, Y: np.ndarray, tolerance: float) -> None:
    """Raises SolveError unless the combinations hold in other states Y, and the rank is that of the
    singular values.
    """
    rank = int((found.singular_values > tolerance * found.singular_values.max(initial=0.0)).sum())
    error = Y[:, list(found.dependent)] - Y[:, list(found.independent)] @ found.K
    size = np.linalg.norm(Y[:, list(found.dependent)], axis=0)
    worst = float((np.linalg.norm(error, axis=0) / np.where(size > 0, size, 1)).max(initial=0.0))
    if rank != len(found) or worst > max(VERIFIED, 100 * tolerance):
        raise SolveError(
            f"the number of base parameters is in doubt: {len(found)} columns are independent, {rank} "
            f"singular values count, and elsewhere the combinations have a residual of {worst:.1e}; give "
            f"another tolerance (it is {tolerance:g}), or more exact numbers in the model"
        )


def _term(coefficient: Any, name: str) -> str:
    """A term of a sum with its sign: "+ 0.36 m_hand", "- I_arm_xx", "+ l1^2 m_hand"."""
    if not are_constant(coefficient):
        text = str(coefficient).replace("**", "^").replace("*", " ")
        if " + " in text or " - " in text:
            return f"+ ({text}) {name}"
        return f"- {text[1:]} {name}" if text.startswith("-") else f"+ {text} {name}"
    size = abs(coefficient)
    number = "" if abs(size - 1) < NEGLIGIBLE else f"{size:.6g} "
    return f"{'-' if coefficient < 0 else '+'} {number}{name}"
