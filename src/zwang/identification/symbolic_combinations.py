"""Base parameters of a mechanism with symbols, such as lengths: combinations with symbolic coefficients.

The coefficients of base parameters follow from moving mass from a body to its parent (parallel-axis theorem),
so that they are polynomials of degree two in the lengths. They are found by interpolation: the numerical
coefficients for many random values of the symbols determine the polynomials, and others confirm them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import combinations_with_replacement
from typing import Any

import numpy as np

from zwang.api.compilation.compiled import compile_function
from zwang.errors import SolveError
from zwang.identification.parameters import parameters_of
from zwang.identification.regressor import symbolic_regressor
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.serialization import symbols_in

DEGREE = 2
MOST_SYMBOLS = 16  # on which the coefficients depend
LARGEST_DENOMINATOR = 64
ROUNDING = 1e-7  # of interpolated coefficients

Regressors = Callable[[np.ndarray], np.ndarray]


def regressor_by_symbols(
    m: Mechanism, kinds: tuple[str, ...] | None, states: tuple[np.ndarray, ...]
) -> Regressors:
    """The function from values of the symbols (n,) to the regressor (rows, parameters) at these states."""

    def text(q: Any, v: Any, a: Any, values: Any) -> Any:
        valued = m.subs(dict(zip(m.symbols, values, strict=True)))
        return symbolic_regressor(valued, parameters_of(valued, kinds), q, v, a)

    inputs = {"q": m.nq, "v": m.nv, "a": m.nv, "symbols": len(m.symbols)}
    compiled, columns = compile_function(text, inputs), len(parameters_of(m, kinds))
    return lambda values: np.asarray(compiled(*states, values)).reshape(-1, columns)


def random_values(m: Mechanism, rng: np.random.Generator) -> np.ndarray:
    """Random positive values of the symbols (n,)."""
    return rng.uniform(0.5, 1.5, len(m.symbols))


def symbolic_coefficients(
    m: Mechanism, at: Regressors, independent: Sequence[int], dependent: Sequence[int], seed: int
) -> np.ndarray:
    """K (independent, dependent) of SymPy expressions and numbers, by interpolation.

    Raises SolveError where the coefficients are no polynomials of degree 2 in at most `MOST_SYMBOLS` symbols.
    """
    rng = np.random.default_rng(seed)
    first = random_values(m, rng)
    K = _coefficients(at(first), independent, dependent)
    moved = [first + 0.37 * unit for unit in np.eye(len(first))]
    changes = [np.abs(_coefficients(at(x), independent, dependent) - K).max(initial=0.0) for x in moved]
    relevant = [k for k, change in enumerate(changes) if change > ROUNDING]
    if len(relevant) > MOST_SYMBOLS:
        raise SolveError(
            f"the combinations of base parameters depend on {len(relevant)} symbols, and at most "
            f"{MOST_SYMBOLS} are possible; give some of them numbers with mechanism.subs({...})"
        )
    monomials = [c for d in range(DEGREE + 1) for c in combinations_with_replacement(relevant, d)]
    points = np.array([random_values(m, rng) for _ in range(2 * len(monomials) + 8)])
    table = np.array([[np.prod(x[list(c)]) for c in monomials] for x in points])
    values = np.array([_coefficients(at(x), independent, dependent).ravel() for x in points])
    found = np.linalg.lstsq(table, values, rcond=None)[0]
    error = np.abs(table @ found - values).max(initial=0.0)
    if error > ROUNDING * max(1.0, float(np.abs(values).max(initial=0.0))):
        names = ", ".join(m.symbols[k] for k in relevant)
        raise SolveError(
            f"the combinations of base parameters are no polynomials of degree {DEGREE} in {names}; give the "
            "angles among them numbers with mechanism.subs({...})"
        )
    own = {str(s): s for s in symbols_in(m)}
    symbols = [[own[m.symbols[k]] for k in c] for c in monomials]
    expressions = [_expression(column, symbols) for column in found.T]
    filled = np.empty(len(expressions), dtype=object)
    filled[:] = expressions
    return filled.reshape(len(independent), len(dependent))


def _coefficients(Y: np.ndarray, independent: Sequence[int], dependent: Sequence[int]) -> np.ndarray:
    """K with Y_d = Y_b K. Raises SolveError where the columns are not dependent for these values."""
    Y_b, Y_d = Y[:, list(independent)], Y[:, list(dependent)]
    K = np.linalg.lstsq(Y_b, Y_d, rcond=None)[0]
    if np.abs(Y_d - Y_b @ K).max(initial=0.0) > ROUNDING * max(1.0, float(np.abs(Y_d).max(initial=0.0))):
        raise SolveError(
            "the base parameters differ between values of the symbols; give the symbols numbers with "
            "mechanism.subs({...})"
        )
    return K


def _expression(coefficients: np.ndarray, monomials: Sequence[Sequence[Any]]) -> Any:
    """The polynomial; a coefficient near a simple fraction is that fraction."""
    total: Any = 0
    for c, factors in zip(coefficients, monomials, strict=True):
        if abs(c) <= ROUNDING:
            continue
        near = Fraction(float(c)).limit_denominator(LARGEST_DENOMINATOR)
        exact = abs(float(near) - c) <= ROUNDING
        term: Any = (int(near) if near.denominator == 1 else near) if exact else float(f"{c:.9g}")
        for factor in factors:
            term = factor * term
        total = total + term
    return float(total) if isinstance(total, Fraction) else total
