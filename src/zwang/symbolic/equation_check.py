"""Comparison of published equations of motion with those derived for a mechanism."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple, cast

import numpy as np
import sympy as sp
from sympy.core.function import AppliedUndef

from zwang.api.arguments import validation
from zwang.constraint.hard import hard_constraints
from zwang.deprecation import module_getattr
from zwang.errors import DescriptionError
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.type_validation import validated_arguments
from zwang.symbolic.cancellation import (
    bounded_work,
    cancelled,
    exact_quotient,
    over_common_denominator,
    ratio,
)
from zwang.symbolic.elimination import determinant
from zwang.symbolic.equations import Equations, IndependentVelocities, equations
from zwang.symbolic.linear_combinations import (
    Combination,
    LinearCombinations,
    are_independent,
    random_states,
)
from zwang.symbolic.numeric_probe import constrained_configurations, refined
from zwang.symbolic.polynomial import WIDTH, Polynomial, TooLargeError, readable
from zwang.symbolic.sympy_types import as_expr, free_symbols_in, matrix_entries, replaced

POINTS, DIGITS, FLOAT_DIGITS = (
    8,
    40,
    15,
)  # states at which equations are evaluated, and the digits of exact ones and of floats
FLOAT_TOLERANCE = 1e-12  # of a value relative to its terms, if it contains floats
LARGEST_DENOMINATOR = 1000  # of a factor that is a number
CONSTRAINED_POINTS = 4  # states that satisfy constraints
CONSTRAINED_TOLERANCE = 1e-9  # of a value at states that satisfy constraints to rounding only
Published = Sequence[Any] | sp.MatrixBase | sp.Eq


@dataclass(frozen=True)
class EquationComparison:
    """The comparison of one published equation with the derived equation that is most similar.

    row: the number of the derived equation. factor: of the published equation relative to it.
    difference = published / factor - derived, each as left side minus right side; 0 if they are equal.
    only_on_constraints: whether the difference is 0 only where the hard constraints hold, as that of an
    equation from which they eliminated coordinates, velocities or the time.
    combined: the numbers of the derived equations of which the published one is a linear combination, as
    after solving for the accelerations; empty if it is a multiple of one. `row` is the first of them, and
    factor and difference are 1 and 0.
    solved_for: the acceleration for which the derived equations were solved before the comparison; empty if
    they are compared as they are.
    loads: the symbols N_NAME of the magnitudes of constraint forces and of the loads of joints in the
    difference, if the published equation contains none of them.
    """

    row: int
    factor: sp.Expr
    difference: sp.Expr
    only_on_constraints: bool = False
    combined: tuple[int, ...] = ()
    solved_for: str = ""
    loads: tuple[sp.Symbol, ...] = ()

    @property
    def equal(self) -> bool:
        """Whether the equations are equal in all states that satisfy the hard constraints."""
        return self.difference == 0 or self.only_on_constraints

    @property
    def _derived(self) -> str:
        """What the published equation is compared with."""
        if self.combined:
            return f"a combination of rows {', '.join(str(k + 1) for k in self.combined)} of the derivation"
        solved = f", solved for {self.solved_for}," if self.solved_for else ""
        factor = "" if self.factor == 1 else f" times {self.factor}"
        return f"{'the derivation' if solved else f'row {self.row + 1} of the derivation'}{solved}{factor}"


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
                where = ", but only where the constraints hold" if row.only_on_constraints else ""
                lines.append(f"equation {k}: equal to {row._derived}{where}")
                continue
            terms = sp.Add.make_args(row.difference)
            lines.append(
                f"equation {k} differs from {row._derived} by {len(terms)} term(s), on the side of the "
                "accelerations:"
            )
            lines += [f"    {term}" for term in terms]
            lines += [
                f"    ({load} stands for the magnitude of a constraint force or the load of a joint; write "
                "the equation with this symbol)"
                for load in row.loads
            ]
        return "\n".join(lines)


@validated_arguments()
def check_equations(
    mechanism: Mechanism, expressions: Published, speeds: IndependentVelocities | None = None
) -> Check:
    """Comparison of published equations of motion with those of a mechanism, which may be combined.

    expressions: a sequence of sp.Eq, or of expressions that should be zero; or a column matrix. Symbols are
    identified by name: coordinates have the names of joints, velocities NAME_dot, accelerations NAME_ddot; or
    they are functions of time and their derivatives, theta(t) and Derivative(theta(t), t). A `PointSpeed` u
    has the symbols u and u_dot. speeds: the independent velocities, as in `equations`.
    Forces of friction contain symbols N_NAME for the magnitude of a constraint force or the load of a joint,
    as in `equations`. A formula in place of one, such as the weight of a block, is reported as different.
    An equation is correct if it is linear in the accelerations and those of the derived equations satisfy it:
    it is a derived row times a factor of any parameters, coordinates and velocities, or, as after solving for
    the accelerations, a linear combination of rows. Where the factor vanishes the equation says nothing. An
    equation that follows from correct ones before it is compared with the most similar row that is left.
    They are compared for all values of the coordinates. Where they differ, they are compared in numbers at
    random states near home that satisfy the hard constraints, as a paper may have eliminated a dependent
    coordinate, its velocity or the time: if they are equal there, `only_on_constraints` and the text say so.
    Equations with floats, which may be rounded, are compared to 1e-12 of the coefficient of an acceleration
    or of the other terms, and with exact numbers to 1e-30; where over-constrained loops close to rounding
    only, to 1e-9.
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
    known = _known_symbols(derived)
    return _Comparison(derived, [_in_derived_symbols(x, known, mechanism) for x in published]).check()


class _Comparison:
    """Published equations in the symbols of the derived ones, of which the correct ones are found first."""

    def __init__(self, derived: Equations, published: Sequence[sp.Expr]) -> None:
        self._derived, self._published = derived, published
        self._rows = _residuals(derived)
        self._ring = self._rows[0].ring
        self._polynomials = [cancelled(self._polynomial(x)) for x in published]
        self._collected = frozenset[sp.Expr](derived.symbols.collected)
        self._accelerations = [self._ring.numbers["atom", s] for s in derived.symbols.u_dot]

    def check(self) -> Check:
        """The comparisons of all equations."""
        found: dict[int, EquationComparison] = {}
        combinations: list[Combination] = []
        for k in range(len(self._published)):
            for comparison, combination in self._equal(k):
                if are_independent([*combinations, combination]):
                    found[k] = comparison
                    combinations.append(combination)
                    break
        for k in range(len(self._published)):
            if k not in found:
                rows = [(row, self._unit(row)) for row in range(len(self._rows))]
                free = [row for row, unit in rows if are_independent([*combinations, unit])]
                found[k] = self._nearest(k, free)
                combinations.append(self._unit(found[k].row))
        return Check(tuple(found[k] for k in range(len(self._published))))

    def _equal(self, k: int) -> Iterator[tuple[EquationComparison, Combination]]:
        """Rows, or combinations of them, to which published equation k is equal: as polynomials, in numbers
        in all states, and in numbers where the constraints hold.
        """
        for row, derived in enumerate(self._rows if self._is_linear(self._polynomials[k]) else ()):
            for pair in _numerators(self._polynomials[k], derived):
                if (scale := _multiple(pair)) is not None:
                    yield EquationComparison(row, pair.factor(scale), sp.Integer(0)), self._unit(row)
        for constrained in (False, True):
            states = self._on_constraints if constrained else self._anywhere
            combination = states.of(self._published[k])
            if combination is not None and any(combination):
                yield self._combined(k, combination, constrained), combination

    def _unit(self, row: int) -> Combination:
        """The combination that is one row."""
        return tuple(complex(row == j) for j in range(len(self._rows)))

    def _is_linear(self, x: Polynomial) -> bool:
        """Whether the accelerations are in no opaque factor, and of degree 1 in a term at most."""
        symbols, ring = set(self._derived.symbols.u_dot), x.ring
        with_accelerations = {
            n for n, (_, factor) in enumerate(ring.generators)
            if n not in self._accelerations and symbols & factor.free_symbols
        }  # fmt: skip
        for key in x.terms:
            exponents = ring.exponents(key)
            if any(n in with_accelerations for n, _ in exponents):
                return False
            own = [e for n, e in exponents if n in self._accelerations]
            if own not in ([], [1]):
                return False
        return True

    def _combined(self, k: int, combination: Combination, constrained: bool) -> EquationComparison:
        row, *others = (j for j, x in enumerate(combination) if x)
        if others:
            return EquationComparison(row, sp.Integer(1), sp.Integer(0), constrained, (row, *others))
        # the factor is the ratio of the coefficients of an acceleration
        entries = zip(self._derived.symbols.u_dot, self._derived.mass_matrix.row(row), strict=True)
        factor = next(sp.cancel(sp.diff(self._published[k], s) / x) for s, x in entries if x != 0)
        factor = self._rational(factor)
        difference = sp.Integer(0)
        if constrained:
            scaled = self._polynomials[k] / self._polynomial(factor)
            difference = self._shown(scaled - self._rows[row])
        return EquationComparison(row, factor, difference, constrained)

    def _rational(self, x: sp.Expr) -> sp.Expr:
        """A rational number with a small denominator that x is in all of POINTS random states, otherwise x,
        such as (1 - tan(a/2)^2) / (1 + tan(a/2)^2) / cos(a), which is 1.
        """
        symbols = list(free_symbols_in(x))
        states = random_states(symbols, self._ring.units, POINTS)
        numbers = [as_expr(x.xreplace({s: state[s.name] for s in symbols})).evalf() for state in states]
        if not all(number.is_finite for number in numbers):
            return x
        values = np.array(numbers, dtype=complex)
        found = Fraction(values[0].real).limit_denominator(LARGEST_DENOMINATOR)
        is_equal = np.abs(values - float(found)).max() <= FLOAT_TOLERANCE * abs(found)
        return sp.Rational(found.numerator, found.denominator) if is_equal else x

    def _nearest(self, k: int, free: Sequence[int]) -> EquationComparison:
        """The comparison of published equation k with the fewest differing terms: with the rows, and with the
        rows solved for its acceleration if it contains one only.
        """
        candidates = [(row, "", self._rows[row]) for row in free]
        of_one = [j for j, s in enumerate(self._derived.symbols.u_dot) if self._published[k].has(s)]
        if len(of_one) == 1 and len(self._rows) > 1:
            name = self._derived.symbols.u_dot[of_one[0]].name
            row = of_one[0] if of_one[0] in free else free[0]
            candidates += [(row, name, x) for x in self._solved_for(of_one[0])]
        found = []
        for row, solved_for, derived in candidates:
            pairs = _numerators(self._polynomials[k], derived)
            if self._is_linear(self._polynomials[k]):
                pairs += _of_one_coefficient(pairs[-1], self._accelerations)
            else:  # a factor with accelerations is no factor
                pairs = pairs[:1]
            for pair in pairs:
                scale = _scale(pair, frozenset(self._derived.mechanism.symbols))
                difference = pair.published * scale.reciprocal() - pair.derived
                difference = cancelled(difference / pair.denominators[1])
                shown = self._shown(difference)
                comparison = EquationComparison(
                    row, pair.factor(scale), shown, solved_for=solved_for, loads=self._new_loads(k, shown)
                )
                found.append((len(difference.terms), comparison))
        return min(found, key=lambda x: x[0])[1]

    def _new_loads(self, k: int, difference: sp.Expr) -> tuple[sp.Symbol, ...]:
        """The symbols N_NAME in a difference, if published equation k contains none."""
        loads = self._derived.symbols.force_magnitudes.values()
        if any(self._published[k].has(s) for s in loads):
            return ()
        return tuple(s for s in loads if difference.has(s))

    def _solved_for(self, k: int) -> list[Polynomial]:
        """Acceleration k by Cramer's rule, as left side minus right side; empty if it is too long to read."""
        p = self._derived._quantities
        M = np.array(p.mass_matrix, dtype=object)
        with_forces = M.copy()
        with_forces[:, k] = p.right_hand_side
        every = tuple(range(len(M)))
        try:
            with bounded_work(self._ring):
                numerator, denominator = (determinant(A, every, {}) for A in (with_forces, M))
                return [self._polynomial(self._derived.symbols.u_dot[k]) - numerator / denominator]
        except (TooLargeError, ZeroDivisionError):
            return []

    def _polynomial(self, x: sp.Expr) -> Polynomial:
        return self._ring.constant(0) + self._derived._quantities.form.of(x)

    def _shown(self, x: Polynomial) -> sp.Expr:
        return readable(x, self._collected)

    @cached_property
    def _anywhere(self) -> LinearCombinations:
        """At random values of all symbols."""
        rows = [self._shown(x) for x in self._rows]
        every = {s for x in (*rows, *self._published) for s in free_symbols_in(x)}
        states = random_states(list(every), self._ring.units, POINTS)
        return LinearCombinations(rows, self._derived.symbols.u_dot, states, DIGITS, self._tolerance)

    @property
    def _tolerance(self) -> float:
        """Of equations in DIGITS digits, relative to their terms."""
        rows = [self._shown(x) for x in self._rows]
        is_exact = not any(x.has(sp.Float) for x in (*rows, *self._published))
        return 10.0 ** (10 - DIGITS) if is_exact else FLOAT_TOLERANCE

    @cached_property
    def _on_constraints(self) -> LinearCombinations:
        """At random states that satisfy the hard constraints, or at none if fewer than CONSTRAINED_POINTS are
        found. They satisfy them in DIGITS digits, so that small terms count, except where constraints
        contradict each other by rounding.
        """
        derived = self._derived
        rows, s, rng = [self._shown(x) for x in self._rows], derived.symbols, random.Random(POINTS)
        has_constraints = bool(hard_constraints(derived.mechanism))
        count = CONSTRAINED_POINTS
        found = constrained_configurations(derived.mechanism, count) if has_constraints else []
        if len(found) < count:
            return LinearCombinations(rows, s.u_dot, [], FLOAT_DIGITS, CONSTRAINED_TOLERANCE)
        exact = [x for values in found if (x := refined(derived.mechanism, values, DIGITS)) is not None]
        states: list[dict[str, Any]] = [dict(x) for x in (exact if len(exact) == count else found)]
        digits, tolerance = FLOAT_DIGITS, CONSTRAINED_TOLERANCE
        if len(exact) == count:
            digits, tolerance = DIGITS, self._tolerance
        velocities = matrix_entries(derived.velocities)
        for values in states:
            values |= {x.name: rng.uniform(0.5, 1.5) for x in s.force_magnitudes.values()}
            values |= {x.name: rng.uniform(-1.5, 1.5) for x in (*s.u, *s.inputs.values())}
            dependent = [(x.name, v) for x, v in zip(s.v, velocities, strict=True) if x not in s.u]
            values |= {name: _value(v, values, digits) for name, v in dependent}
        return LinearCombinations(rows, s.u_dot, states, digits, tolerance)


def _value(x: sp.Expr, known: dict[str, Any], digits: int) -> sp.Expr:
    """The value of an expression, for values of its symbols by name."""
    return sp.N(x.xreplace({s: sp.Float(known[s.name], digits) for s in free_symbols_in(x)}), digits)


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
    p = e._quantities
    u_dot = [p.form.of(s) for s in e.symbols.u_dot]
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


class _Numerators(NamedTuple):
    """A published and a derived equation as polynomials, and what they were multiplied with."""

    published: Polynomial
    derived: Polynomial
    denominators: tuple[Polynomial, Polynomial]

    def factor(self, scale: Polynomial) -> sp.Expr:
        """The factor of the published equation, for that of the polynomials."""
        theirs, ours = self.denominators
        return as_expr(sp.cancel((scale * ours).expression() / theirs.expression()))


def _numerators(published: Polynomial, derived: Polynomial) -> list[_Numerators]:
    """The two equations as they are, and without their denominators if there are any."""
    one = derived.ring.constant(1)
    found = [_Numerators(published, derived, (one, one))]
    theirs, ours = over_common_denominator(published), over_common_denominator(derived)
    if one != theirs[1] or one != ours[1]:
        found.append(_Numerators(theirs[0], ours[0], (theirs[1], ours[1])))
    return found


def _of_one_coefficient(pair: _Numerators, u_dot: Sequence[int]) -> list[_Numerators]:
    """The two equations with the same coefficient of an acceleration, where one of them divides the other.

    u_dot: the generators of the accelerations.
    """
    theirs, ours = pair.denominators
    for number in u_dot:
        E, M = (_coefficient(x, number) for x in (pair.published, pair.derived))
        if not (E.terms and M.terms) or any(n in u_dot for key in E.terms for n, _ in E.ring.exponents(key)):
            continue
        if (factor := exact_quotient(E, M)) is not None:
            return [pair._replace(derived=pair.derived * factor, denominators=(theirs, ours * factor))]
        if (factor := exact_quotient(M, E)) is not None:
            return [pair._replace(published=pair.published * factor, denominators=(theirs * factor, ours))]
    return []


def _coefficient(x: Polynomial, number: int) -> Polynomial:
    """The coefficient of a generator in the terms that are linear in it."""
    linear = {key: value for key, value in x.terms.items() if (number, 1) in x.ring.exponents(key)}
    return Polynomial(x.ring, {key - (1 << (WIDTH * number)): value for key, value in linear.items()})


def _multiple(pair: _Numerators) -> Polynomial | None:
    """The product of invertible factors by which the published equation is the derived one, None without."""
    published, derived, ring = pair.published.terms, pair.derived.terms, pair.derived.ring
    if len(published) != len(derived):
        return None
    a, b = max(published), max(derived)  # the order of monomials is that of their products with a factor
    if not all(ring.invertible(n) for n, _ in ring.exponents(a - b)):
        return None
    scale = Polynomial(ring, {a - b: ratio(published[a], derived[b])})
    return None if (pair.published - pair.derived * scale).terms else scale


def _scale(pair: _Numerators, parameters: frozenset[str]) -> Polynomial:
    """The product of parameters for which the fewest terms differ, 1 or -1 of several.

    Counted for the ratios of all pairs of a published and a derived term.
    """
    ring, one = pair.derived.ring, {(0, 1): 0, (0, -1): 0}
    monomials: Counter[int] = Counter()
    ratios: Counter[tuple[int, Any]] = Counter(one)
    for a, x in pair.published.terms.items():
        for b, y in pair.derived.terms.items():
            monomials[a - b] += 1
            ratios[a - b, ratio(x, y)] += 1
    every = monomials.keys()
    parametric = {
        m for m in every if all(str(ring.generators[n][1]) in parameters for n, _ in ring.exponents(m))
    }
    # a pair of terms with this ratio leaves no difference, one with another coefficient leaves one term
    best = max(
        (x for x in ratios if x in one or x[0] in parametric), key=lambda x: ratios[x] + monomials[x[0]]
    )
    return Polynomial(ring, {best[0]: best[1]})


__getattr__ = module_getattr(__name__, {"Compared": "EquationComparison"})
