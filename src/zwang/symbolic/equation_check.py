"""Comparison of published equations of motion with those derived for a mechanism."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, cast

import sympy as sp
from sympy.core.function import AppliedUndef

from zwang.api.arguments import validation
from zwang.constraint.hard import hard_constraints
from zwang.deprecation import module_getattr
from zwang.errors import DescriptionError
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.type_validation import validated_arguments
from zwang.symbolic.equations import Equations, IndependentVelocities, equations
from zwang.symbolic.numeric_probe import constrained_configurations
from zwang.symbolic.polynomial import Polynomial, readable
from zwang.symbolic.sympy_types import as_expr, free_symbols_in, matrix_entries, replaced

CANDIDATES = 60  # largest number of factors that are tried for a pair of equations
POINTS, DIGITS = 8, 40  # at which a difference of expressions is evaluated
FLOAT_TOLERANCE = 1e-12  # of its value relative to its terms, if it contains floats
CONSTRAINED_TOLERANCE = 1e-9  # the same at states that satisfy constraints to rounding
Value = tuple[complex, float]
"""Of an expression in one state, with the sum of the magnitudes of its terms."""
Published = Sequence[Any] | sp.MatrixBase | sp.Eq


@dataclass(frozen=True)
class EquationComparison:
    """The comparison of one published equation with the derived equation that is most similar.

    row: the number of the derived equation. factor: of the published equation relative to it.
    difference = published / factor - derived, each as left side minus right side; 0 if they are equal.
    only_on_constraints: whether the difference is 0 only where the hard constraints hold, as that of an
    equation from which they eliminated coordinates, velocities or the time.
    """

    row: int
    factor: sp.Expr
    difference: sp.Expr
    only_on_constraints: bool = False

    @property
    def equal(self) -> bool:
        """Whether the equations are equal in all states that satisfy the hard constraints."""
        return self.difference == 0 or self.only_on_constraints


@dataclass(frozen=True)
class Check:
    """The comparison of published equations with those derived; true if all are equal.

    rows: one comparison for each published equation. print(check) shows the differing terms.
    """

    rows: tuple[EquationComparison, ...]

    @property
    def equal(self) -> bool:
        """Whether all equations are equal to derived ones."""
        return all(row.equal for row in self.rows)

    def __bool__(self) -> bool:
        return self.equal

    def __str__(self) -> str:
        lines = []
        for k, row in enumerate(self.rows, 1):
            if row.equal:
                lines.append(
                    f"equation {k}: equal to row {row.row + 1} of the derivation{_times(row.factor)}"
                    + (", but only where the constraints hold" if row.only_on_constraints else "")
                )
                continue
            terms = sp.Add.make_args(row.difference)
            lines.append(
                f"equation {k} differs from row {row.row + 1} of the derivation{_times(row.factor)} "
                f"by {len(terms)} term(s), on the side of the accelerations:"
            )
            lines += [f"    {term}" for term in terms]
        return "\n".join(lines)


def _times(factor: sp.Expr) -> str:
    return "" if factor == 1 else f" times {factor}"


@validated_arguments()
def check_equations(
    mechanism: Mechanism, expressions: Published, speeds: IndependentVelocities | None = None
) -> Check:
    """Comparison of published equations of motion with those of a mechanism, each up to a factor.

    expressions: a sequence of sp.Eq, or of expressions that should be zero; or a column matrix. Symbols are
    identified by name: coordinates have the names of joints, velocities NAME_dot, accelerations NAME_ddot; or
    they are functions of time and their derivatives, theta(t) and Derivative(theta(t), t). A `PointSpeed` u
    has the symbols u and u_dot. speeds: the independent velocities, as in `equations`.
    They are compared for all values of the coordinates. Where they differ, they are compared in numbers at
    random states near home that satisfy the hard constraints, as a paper may have eliminated a dependent
    coordinate, its velocity or the time: if they are equal there, `only_on_constraints` and the text say so.
    Raises DescriptionError if there are not as many equations as degrees of freedom, for objects that are not
    equations, and for symbols and functions that the mechanism does not have.
    """
    validation.checked_mechanism(mechanism)
    published = [_one_equation(x, k) for k, x in enumerate(_as_list(expressions), 1)]
    derived = equations(mechanism, speeds, form="expanded")
    if len(published) != len(derived.symbols.u):
        raise DescriptionError(
            f"mechanism {mechanism.name!r} has {len(derived.symbols.u)} equations of motion, "
            f"but {len(published)} were given"
        )
    residuals = _residuals(derived)
    known = _known_symbols(derived)
    collected = frozenset[sp.Expr](derived.symbols.collected)
    parameters = frozenset(mechanism.symbols)
    rows, free = [], list(range(len(residuals)))
    states = _ConstrainedStates(mechanism, derived, residuals)
    for expression in published:
        theirs = derived._form.of(_in_derived_symbols(expression, known, mechanism))
        if not isinstance(theirs, Polynomial):
            theirs = residuals[0].ring.constant(0) + theirs
        best = min((_nearest(theirs, residuals[k], k, parameters) for k in free), key=lambda found: found[0])
        _, row, factor, difference = best
        shown = readable(difference, collected)
        found = EquationComparison(row, factor, sp.Integer(0) if _vanishes(shown) else shown)
        if not found.equal:
            found = states.comparison(theirs, free, parameters) or found
        free.remove(found.row)
        rows.append(found)
    return Check(tuple(rows))


class _ConstrainedStates:
    """Random states that satisfy the hard constraints, and the values of the derived equations there.

    residuals: the derived equations, each as left side minus right side.
    """

    def __init__(self, mechanism: Mechanism, derived: Equations, residuals: Sequence[Polynomial]) -> None:
        self._mechanism, self._derived, self._residuals = mechanism, derived, residuals
        self._collected = frozenset[sp.Expr](derived.symbols.collected)

    def comparison(
        self, published: Polynomial, rows: Iterable[int], parameters: frozenset[str]
    ) -> EquationComparison | None:
        """That of a published equation with the first of these rows to which it is equal in all states, up to
        a factor; None if there is none, or without states.
        """
        theirs = self._values(published)
        for row in rows if self._states else ():
            for scale in _factors(published, self._residuals[row], parameters):
                factor = scale.expression()
                values = zip(theirs, self._derived_values[row], self._numbers(factor), strict=True)
                if all(_is_equal(x, y, f) for x, y, f in values):
                    difference = published * scale.reciprocal() - self._residuals[row]
                    shown = readable(difference, self._collected)
                    return EquationComparison(row, factor, shown, only_on_constraints=True)
        return None

    @cached_property
    def _states(self) -> list[dict[str, float]]:
        """The values of the symbols by name; fewer states than POINTS are none."""
        if not hard_constraints(self._mechanism):
            return []
        states, rng = constrained_configurations(self._mechanism, POINTS), random.Random(POINTS)
        s = self._derived.symbols
        velocities = [self._derived._form.show(x) for x in self._derived._reduction.v]
        for values in states:
            values |= {x.name: rng.uniform(0.5, 1.5) for x in s.force_magnitudes.values()}
            values |= {x.name: rng.uniform(-1.5, 1.5) for x in (*s.u, *s.u_dot, *s.inputs.values())}
            dependent = [(x.name, v) for x, v in zip(s.v, velocities, strict=True) if x not in s.u]
            values |= {name: _number(v, values).real for name, v in dependent}
        return states if len(states) == POINTS else []

    @cached_property
    def _derived_values(self) -> list[list[Value]]:
        """By row the values in all states."""
        return [self._values(x) for x in self._residuals]

    def _values(self, equation: Polynomial) -> list[Value]:
        terms = [self._numbers(x) for x in sp.Add.make_args(readable(equation, self._collected))]
        return [(sum(values), sum(map(abs, values))) for values in zip(*terms, strict=True)]

    def _numbers(self, expression: sp.Expr) -> list[complex]:
        return [_number(expression, values) for values in self._states]


def _number(expression: sp.Expr, values: Mapping[str, float]) -> complex:
    found = sp.N(replaced(expression, {s: sp.Float(values[s.name]) for s in free_symbols_in(expression)}))
    return complex(found) if found.is_finite else complex("nan")


def _is_equal(published: Value, derived: Value, factor: complex) -> bool:
    """Whether the published equation is the derived one times the factor, relative to their terms."""
    (x, x_terms), (y, y_terms) = published, derived
    return abs(x / factor - y) <= CONSTRAINED_TOLERANCE * (x_terms / abs(factor) + y_terms)


def _vanishes(difference: sp.Expr) -> bool:
    """Whether a difference is zero at random points of both signs, as by identities of functions that the
    polynomials do not have, such as tan(a) cos(a) = sin(a); relative to its terms.
    """
    rng = random.Random(POINTS)
    terms, symbols = sp.Add.make_args(difference), sorted(free_symbols_in(difference), key=str)
    tolerance = FLOAT_TOLERANCE if difference.has(sp.Float) else 10.0 ** (10 - DIGITS)
    for _ in range(POINTS):
        at = {s: sp.Rational(_random_sign(rng, s) * rng.randint(50, 150), 101) for s in symbols}
        values = [sp.N(replaced(x, at), DIGITS) for x in terms]
        if not abs(complex(sp.Add(*values))) <= tolerance * sum(abs(complex(x)) for x in values):
            return False
    return True


def _random_sign(rng: random.Random, symbol: sp.Symbol) -> int:
    return 1 if symbol.is_positive else rng.choice((1, -1))


def _as_list(expressions: Published) -> list[Any]:
    """The equations as a list, also those of a column matrix or of an equation between two columns."""
    if isinstance(expressions, sp.Eq) and isinstance(expressions.lhs, sp.MatrixBase):
        expressions = matrix_entries(sp.Matrix(expressions.lhs) - sp.Matrix(expressions.rhs))
    if isinstance(expressions, str) or (
        not hasattr(expressions, "__iter__") and not hasattr(expressions, "__getitem__")
    ):
        raise DescriptionError(
            f"the equations are {expressions!r}; give a list of sp.Eq, or of expressions that should be "
            "zero, one for each degree of freedom"
        )
    return list(cast(Any, expressions))


def _one_equation(x: Any, number: int) -> sp.Expr:
    """One equation as an expression that should be zero."""
    if isinstance(x, sp.Eq):
        x = as_expr(x.lhs) - as_expr(x.rhs)
    if isinstance(x, int | float) and not isinstance(x, bool):
        x = sp.sympify(x, strict=True)
    if not isinstance(x, sp.Expr) or x.has(sp.nan, sp.zoo, sp.oo, -sp.oo):
        raise DescriptionError(
            f"equation {number} is {x!r}; give an sp.Eq, or a SymPy expression that should be zero "
            "(not a relation that SymPy has evaluated to true or false)"
        )
    if not any(s for s in x.free_symbols) and not x.atoms(AppliedUndef):
        raise DescriptionError(
            f"equation {number} is {x}, which contains no coordinate, velocity or acceleration"
        )
    return x


def _residuals(e: Equations) -> list[Polynomial]:
    """M u_dot - r, row by row."""
    p = e._projected
    u_dot = [e._form.of(s) for s in e.symbols.u_dot]
    return [sum((a * b for a, b in zip(row, u_dot, strict=True)), start=0) - r
            for row, r in zip(p.mass_matrix, p.right_hand_side, strict=True)]  # fmt: skip


def _known_symbols(e: Equations) -> dict[str, sp.Symbol]:
    """All symbols of the derived equations by name."""
    s = e.symbols
    found = {x.name: x for x in (*s.q, *s.u, *s.u_dot, *s.inputs.values(), s.time)}
    for name, symbol in zip((v.name for v in s.v), s.v, strict=True):
        found.setdefault(name, symbol)
    for matrix in (e.M_blocks, e.mass_matrix, e.right_hand_side, e.B):
        found = {**{x.name: x for x in free_symbols_in(matrix)}, **found}
    return found


def _in_derived_symbols(x: sp.Expr, known: dict[str, sp.Symbol], mechanism: Mechanism) -> sp.Expr:
    """A published expression in the symbols of the derived equations."""
    x = replaced(x, {d: _rate_symbol(d) for d in x.atoms(sp.Derivative)})
    x = replaced(x, {f: sp.Symbol(f.func.__name__) for f in x.atoms(AppliedUndef)})
    symbols = free_symbols_in(x)
    parameters = {n for n in mechanism.symbols if n not in known}
    unknown = sorted(s.name for s in symbols if s.name not in known and s.name not in parameters)
    if unknown:
        raise DescriptionError(
            f"the symbol {unknown[0]!r} is not a coordinate, velocity, acceleration, input or parameter of "
            f"mechanism {mechanism.name!r}; those are {sorted(known)}"
        )
    return replaced(x, {s: known[s.name] for s in symbols if s.name in known})


def _rate_symbol(d: sp.Derivative) -> sp.Symbol:
    """NAME_dot or NAME_ddot of the first or second derivative of a function of one variable, the time."""
    if not isinstance(d.expr, AppliedUndef) or len(d.expr.args) != 1:
        raise DescriptionError(
            f"{d} is not the time derivative of a coordinate; "
            "expand derivatives of products and powers with .doit()"
        )
    return sp.Symbol(f"{d.expr.func.__name__}_{'d' * d.derivative_count}ot")


def _nearest(
    published: Polynomial, derived: Polynomial, row: int, parameters: frozenset[str]
) -> tuple[int, int, sp.Expr, Polynomial]:
    """(number of differing terms, row, factor, difference) for the factor with the fewest terms."""
    best: tuple[int, int, sp.Expr, Polynomial] | None = None
    for scale in _factors(published, derived, parameters):
        difference = published * scale.reciprocal() - derived
        if best is None or len(difference.terms) < best[0]:
            best = (len(difference.terms), row, scale.expression(), difference)
        if not difference.terms:
            break
    assert best is not None
    return best


def _factors(published: Polynomial, derived: Polynomial, parameters: frozenset[str]) -> list[Polynomial]:
    """Ratios of a published to a derived term that are products of parameters, after 1 and -1."""
    ring = derived.ring
    found: dict[tuple[int, Any], None] = {(0, 1): None, (0, -1): None}
    for a, x in published.terms.items():
        for b, y in derived.terms.items():
            parametric = all(str(ring.generators[n][1]) in parameters for n, _ in ring.exponents(a - b))
            if parametric and len(found) < CANDIDATES:
                found[a - b, _ratio(x, y)] = None
    return [Polynomial(ring, {key: value}) for key, value in found]


def _ratio(x: Any, y: Any) -> Any:
    if isinstance(x, float) or isinstance(y, float):
        return x / y
    value = Fraction(x) / Fraction(y)
    return value.numerator if value.denominator == 1 else value


__getattr__ = module_getattr(__name__, {"Compared": "EquationComparison"})
