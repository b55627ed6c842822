"""The coefficients of polynomials: integers, fractions and floats, which remain exact where they are."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import sympy as sp

from zwang.symbolic.sympy_backend import plain

ROUNDING = 1e-14  # a sum of floats that is smaller than its terms by this factor is rounding


def added(a: Any, b: Any) -> Any:
    """The sum of two coefficients, without rounding and as an integer where it is one."""
    total = a + b
    if type(total) is float:
        return 0 if abs(total) <= ROUNDING * abs(a) else total
    if type(total) is Fraction and total.denominator == 1:
        return total.numerator
    return total


def exact_coefficient(number: sp.Expr) -> Any:
    """A SymPy number as a coefficient."""
    if number.is_Rational:
        p, q = number.as_numer_denom()
        p, q = int(p), int(q)
        return p if q == 1 else Fraction(p, q)
    return plain(number)


def normalised(value: Any) -> Any:
    """A coefficient as an integer where it is one."""
    if type(value) is Fraction and value.denominator == 1:
        return value.numerator
    if isinstance(value, float | int | Fraction):
        return value if type(value) in (int, Fraction) else float(value)
    return value


def number_of(coefficient: Any) -> sp.Expr:
    """A coefficient as a SymPy number."""
    if isinstance(coefficient, Fraction):
        return sp.Rational(coefficient.numerator, coefficient.denominator)
    return sp.Integer(coefficient) if isinstance(coefficient, int) else sp.Float(coefficient)
