"""The functions that formulas may contain: each SymPy function as primitives on scalars of any backend."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import reduce
from typing import Any

import sympy as sp
from sympy.core.function import Application
from sympy.logic.boolalg import Boolean

from zwang import scalar
from zwang.scalar.primitives import floored_division

SINC_SERIES = tuple((-1) ** k / math.factorial(2 * k + 1) for k in range(10))
"""Coefficients of sin(x)/x in x^2; up to |x| = 1 the rest of the series is below 1e-19."""


def _sum(*terms: Any) -> Any:
    return reduce(lambda a, b: a + b, terms)


def _product(*factors: Any) -> Any:
    return reduce(lambda a, b: a * b, factors)


def _power(x: Any, y: Any) -> Any:
    return scalar.power(x, float(y) if isinstance(y, sp.Number | Fraction) else y)


def _own_or(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The operation `name` of the backend of the first argument where it has one, which keeps the function as
    it was written, else `function`.
    """

    def evaluate(x: Any, *others: Any) -> Any:
        own = getattr(scalar.backend_of(x), name, None)
        return function(x, *others) if own is None else own(x, *others)

    return evaluate


def _heaviside(x: Any, at_zero: Any) -> Any:
    # of NaN it is NaN
    at_rest = scalar.where(scalar.equal(x, 0), at_zero, x)
    return scalar.where(scalar.less(x, 0), 0, scalar.where(scalar.less(0, x), 1, at_rest))


def _sinc(x: Any) -> Any:
    """sin(x)/x; up to |x| = 1 its series, so that its derivatives at 0 are those of the series."""
    near = scalar.less(scalar.absolute(x), 1)
    square = scalar.where(near, x * x, 0)
    series = reduce(lambda total, c: total * square + c, reversed(SINC_SERIES))
    far = scalar.where(near, 1, x)
    return scalar.where(near, series, scalar.divide(scalar.sin(far), far))


PRIMITIVES: dict[Any, Callable[..., Any]] = {
    sp.Add: _sum, sp.Mul: _product, sp.Pow: _power,
    sp.sin: scalar.sin, sp.cos: scalar.cos, sp.tan: scalar.tan,
    sp.sec: lambda x: scalar.divide(1, scalar.cos(x)), sp.csc: lambda x: scalar.divide(1, scalar.sin(x)),
    sp.cot: lambda x: scalar.divide(scalar.cos(x), scalar.sin(x)), sp.sinc: _own_or("sinc", _sinc),
    sp.asin: scalar.asin, sp.acos: scalar.acos, sp.atan: lambda x: scalar.atan2(x, 1),
    sp.atan2: scalar.atan2,
    sp.exp: scalar.exp, sp.log: scalar.log,
    sp.sinh: scalar.sinh, sp.cosh: scalar.cosh, sp.tanh: scalar.tanh, sp.sech: scalar.sech,
    sp.csch: lambda x: scalar.divide(scalar.sech(x), scalar.tanh(x)),  # 1 / sinh has no derivative far away
    sp.coth: lambda x: scalar.divide(1, scalar.tanh(x)),
    sp.asinh: scalar.asinh, sp.acosh: scalar.acosh, sp.atanh: scalar.atanh,
    sp.Abs: scalar.absolute, sp.sign: _own_or("sign", scalar.sign),
    sp.Heaviside: _own_or("heaviside", _heaviside),
    sp.floor: scalar.floor, sp.ceiling: lambda x: -scalar.floor(-x), sp.frac: lambda x: x - scalar.floor(x),
    sp.Mod: lambda x, y: floored_division(x, y)[1],
    sp.Min: lambda *a: reduce(scalar.minimum, a), sp.Max: lambda *a: reduce(scalar.maximum, a),
    sp.StrictLessThan: scalar.less, sp.LessThan: scalar.less_equal, sp.Eq: scalar.equal,
    sp.Ne: scalar.not_equal, sp.StrictGreaterThan: lambda a, b: scalar.less(b, a),
    sp.GreaterThan: lambda a, b: scalar.less_equal(b, a),
    sp.And: lambda *a: reduce(scalar.logical_and, a), sp.Or: lambda *a: reduce(scalar.logical_or, a),
    sp.Not: scalar.logical_not,
    sp.ITE: lambda p, a, b: scalar.logical_or(
        scalar.logical_and(p, a), scalar.logical_and(scalar.logical_not(p), b)
    ),
}  # fmt: skip
"""The operations and functions of SymPy, besides `Piecewise`."""

FUNCTION_NAMES = sorted(
    f.__name__
    for f in (*PRIMITIVES, sp.Piecewise)
    if issubclass(f, Application) and not issubclass(f, Boolean)
)
"""The names of the functions that formulas may contain."""
