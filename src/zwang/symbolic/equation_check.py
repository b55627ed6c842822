"""Somebody's published equations held against a mechanism's own: equal, or which terms differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import sympy as sp

from zwang.api import validation
from zwang.errors import DescriptionError
from zwang.mechanism.constraints import PointSpeed
from zwang.mechanism.declared import checked_arguments
from zwang.mechanism.mechanism import Mechanism
from zwang.symbolic.equations import Equations, equations
from zwang.symbolic.polynomial import Polynomial, readable

CANDIDATES = 60  # factors tried for each pair of equations


@dataclass(frozen=True)
class EquationComparison:
    """One published equation: the row of ours that it is nearest to, by which factor, and what it has too much.

    difference = published / factor - ours, both as (left side - right side); 0 if they are equal.
    """

    row: int
    factor: sp.Expr
    difference: sp.Expr

    @property
    def equal(self) -> bool:
        return self.difference == 0


@dataclass(frozen=True)
class Check:
    """The comparison of published equations with a mechanism's."""

    rows: tuple[EquationComparison, ...]

    @property
    def equal(self) -> bool:
        """Are all equations right?"""
        return all(row.equal for row in self.rows)

    def __bool__(self) -> bool:
        return self.equal

    def __str__(self) -> str:
        lines = []
        for k, row in enumerate(self.rows, 1):
            if row.equal:
                lines.append(
                    f"equation {k}: equal to row {row.row + 1} of the derivation" + _times(row.factor)
                )
                continue
            terms = sp.Add.make_args(row.difference)
            lines.append(f"equation {k} differs from row {row.row + 1} of the derivation{_times(row.factor)} by {len(terms)} term(s), "
                         "on the side of the accelerations:")  # fmt: skip
            lines += [f"    {term}" for term in terms]
        return "\n".join(lines)


def _times(factor: sp.Expr) -> str:
    return "" if factor == 1 else f" times {factor}"


@checked_arguments()
def check_equations(
    mechanism: Mechanism, expressions: Sequence[Any], speeds: Sequence[str | PointSpeed] | None = None
) -> Check:
    """Whether equations of motion are those of the mechanism, each up to a factor, and which terms differ if not.

    expressions: sp.Eq, or expressions that should be zero. Their symbols are taken by name: coordinates as joints, speeds NAME_dot,
    accelerations NAME_ddot, or functions of time and their derivatives: theta(t), Derivative(theta(t), t). For a `PointSpeed` u: u and u_dot.
    Raises DescriptionError for another number of equations than degrees of freedom, for what is no equation, and for a symbol or a function
    that the mechanism has not.
    """
    validation.checked_mechanism(mechanism)
    expressions = [_one_equation(x, k) for k, x in enumerate(_listed(expressions), 1)]
    ours = equations(mechanism, speeds, form="expanded")
    if len(expressions) != len(ours.symbols.u):
        raise DescriptionError(
            f"mechanism {mechanism.name!r} has {len(ours.symbols.u)} equations of motion, but {len(expressions)} were given"
        )
    residuals = _residuals(ours)
    known = _known_symbols(ours)
    parameters = frozenset(mechanism.symbols)
    rows, free = [], list(range(len(residuals)))
    for expression in expressions:
        theirs = ours._form.of(_in_our_symbols(expression, known, mechanism))
        if not isinstance(theirs, Polynomial):
            theirs = residuals[0].ring.constant(0) + theirs
        best = min((_nearest(theirs, residuals[k], k, parameters) for k in free), key=lambda found: found[0])
        _, row, factor, difference = best
        free.remove(row)
        rows.append(EquationComparison(row, factor, readable(difference, ours._form.outer)))
    return Check(tuple(rows))


def _listed(expressions: Any) -> list[Any]:
    """The equations, one by one; also those of a column matrix, or of two that are set equal."""
    if isinstance(expressions, sp.Eq) and isinstance(expressions.lhs, sp.MatrixBase):
        expressions = sp.Matrix(expressions.lhs) - sp.Matrix(expressions.rhs)
    if isinstance(expressions, str) or (
        not hasattr(expressions, "__iter__") and not hasattr(expressions, "__getitem__")
    ):
        raise DescriptionError(
            f"the equations are {expressions!r}; give a list of sp.Eq, or of expressions that should be zero, one for each degree of freedom"
        )
    return list(expressions)


def _one_equation(x: Any, number: int) -> sp.Expr:
    """One equation as an expression that should be zero."""
    if isinstance(x, sp.Eq):
        x = x.lhs - x.rhs
    if isinstance(x, int | float) and not isinstance(x, bool):
        x = sp.sympify(x, strict=True)
    if not isinstance(x, sp.Expr) or x.has(sp.nan, sp.zoo, sp.oo, -sp.oo):
        raise DescriptionError(
            f"equation {number} is {x!r}; give an sp.Eq, or an expression of SymPy that should be zero (what SymPy has found to be "
            "true or false is none)"
        )
    if not any(s for s in x.free_symbols) and not x.atoms(sp.core.function.AppliedUndef):
        raise DescriptionError(
            f"equation {number} is {x}: there is no coordinate, speed or acceleration in it"
        )
    return x


def _residuals(e: Equations) -> list[Polynomial]:
    """M u_dot - r."""
    p = e._projected
    u_dot = [e._form.of(s) for s in e.symbols.u_dot]
    return [sum((a * b for a, b in zip(row, u_dot, strict=True)), start=0) - r
            for row, r in zip(p.mass_matrix, p.right_hand_side, strict=True)]  # fmt: skip


def _known_symbols(e: Equations) -> dict[str, sp.Symbol]:
    s = e.symbols
    found = {x.name: x for x in (*s.q, *s.u, *s.u_dot, *s.inputs.values(), s.time)}
    for name, symbol in zip((v.name for v in s.v), s.v, strict=True):
        found.setdefault(name, symbol)
    for matrix in (e.M_blocks, e.mass_matrix, e.right_hand_side, e.B):
        found = {**{x.name: x for x in matrix.free_symbols}, **found}
    return found


def _in_our_symbols(x: sp.Expr, known: dict[str, sp.Symbol], mechanism: Mechanism) -> sp.Expr:
    x = x.xreplace({d: _rate_symbol(d) for d in x.atoms(sp.Derivative)})
    x = x.xreplace({f: sp.Symbol(f.func.__name__) for f in x.atoms(sp.core.function.AppliedUndef)})
    parameters = {n for n in mechanism.symbols if n not in known}
    unknown = sorted(s.name for s in x.free_symbols if s.name not in known and s.name not in parameters)
    if unknown:
        raise DescriptionError(
            f"the symbol {unknown[0]!r} is no coordinate, speed, acceleration, input or parameter of mechanism {mechanism.name!r}; "
            f"those are {sorted(known)}"
        )
    return x.xreplace({s: known[s.name] for s in x.free_symbols if s.name in known})


def _rate_symbol(d: sp.Derivative) -> sp.Symbol:
    """NAME_dot or NAME_ddot of the first or second derivative of a function of one variable, the time."""
    if not isinstance(d.expr, sp.core.function.AppliedUndef) or len(d.expr.args) != 1:
        raise DescriptionError(
            f"the derivative {d} is of no coordinate; work derivatives of products and powers out with .doit()"
        )
    return sp.Symbol(f"{d.expr.func.__name__}_{'d' * d.derivative_count}ot")


def _nearest(
    theirs: Polynomial, ours: Polynomial, row: int, parameters: frozenset[str]
) -> tuple[int, int, sp.Expr, Polynomial]:
    """(number of differing terms, row, factor, theirs / factor - ours) for the factor that leaves the fewest."""
    best: tuple[int, int, sp.Expr, Polynomial] | None = None
    for scale in _factors(theirs, ours, parameters):
        difference = theirs * scale.reciprocal() - ours
        if best is None or len(difference.terms) < best[0]:
            best = (len(difference.terms), row, scale.expression(), difference)
        if not difference.terms:
            break
    assert best is not None
    return best


def _factors(theirs: Polynomial, ours: Polynomial, parameters: frozenset[str]) -> list[Polynomial]:
    """Ratios of one term of theirs to one of ours that are products of parameters; 1 and -1 first."""
    ring = ours.ring
    found = {(0, 1): None, (0, -1): None}
    for a, x in theirs.terms.items():
        for b, y in ours.terms.items():
            plain = all(str(ring.generators[n][1]) in parameters for n, _ in ring.exponents(a - b))
            if plain and len(found) < CANDIDATES:
                found[a - b, _ratio(x, y)] = None
    return [Polynomial(ring, {key: value}) for key, value in found]


def _ratio(x: Any, y: Any) -> Any:
    if isinstance(x, float) or isinstance(y, float):
        return x / y
    value = Fraction(x) / Fraction(y)
    return value.numerator if value.denominator == 1 else value
