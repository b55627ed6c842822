"""Derivatives by dual numbers against SymPy's, on floats and on symbols, of first and second order."""

import numpy as np
import pytest
import sympy as sp

from zwang import scalar
from zwang.algebra.dual import SecondOrder, derivative_along, dual_kind, values_and_derivatives
from zwang.symbolic import sympy_backend  # noqa: F401  (registers the symbols used below)

x, y = sp.symbols("x y", real=True)
FUNCTIONS = {
    "products": lambda a, b: a * b - b / a + 3 * a - (2 - a) * b,
    "circle": lambda a, b: scalar.sin(a) * scalar.cos(b) + scalar.tan(a * b),
    "inverse": lambda a, b: scalar.asin(a / 3) + scalar.acos(b / 4) + scalar.atan2(b, a),
    "powers": lambda a, b: (
        scalar.sqrt(a) + scalar.power(b, 3) + a**2 + scalar.power(a, b) + scalar.power(b, 2.5)
    ),
    "growth": lambda a, b: scalar.exp(a) * scalar.log(b) + scalar.absolute(a - b),
    "choice": lambda a, b: scalar.where(a < b, a * a, b) + scalar.minimum(a, b) + scalar.maximum(2 * a, b),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_derivative_is_the_directional_derivative(name):
    f = FUNCTIONS[name]
    at = {x: sp.Rational(7, 10), y: sp.Rational(13, 10)}
    _, derivative = derivative_along(lambda s: f(*s), [0.7, 1.3], [2.0, -0.5])
    expression = f(x, y)
    exact = 2 * sp.diff(expression, x) - sp.diff(expression, y) / 2
    assert float(derivative) == pytest.approx(float(exact.subs(at).doit()), rel=1e-13)
    _, symbolic = derivative_along(lambda s: f(*s), [x, y], [2, -sp.Rational(1, 2)])
    assert float(symbolic.item().subs(at)) == pytest.approx(float(derivative), rel=1e-13)


@pytest.mark.parametrize(("exponent", "slope"), [(1, 1), (1.5, 0), (2, 0), (2.5, 0), (2.7, 0), (3, 0)])
def test_powers_have_their_derivative_at_zero(exponent, slope):
    value, derivative = derivative_along(lambda s: scalar.power(s[0], exponent), [0.0], [1.0])
    assert (float(value), float(derivative)) == (0, slope)


def test_nested_dual_numbers_give_the_second_derivative():
    def slope(a):
        return values_and_derivatives(scalar.sin(SecondOrder(a, 1)) * a, SecondOrder)[1].item()

    value, derivative = derivative_along(lambda s: slope(s[0]), [0.4], [1])
    assert float(value) == pytest.approx(0.4 * np.cos(0.4), rel=1e-15)
    assert float(derivative) == pytest.approx(np.cos(0.4) - 0.4 * np.sin(0.4), rel=1e-15)


def test_dual_numbers_of_any_depth_give_higher_derivatives():
    def derivative(order, a, depth=0):
        if not order:
            return scalar.sin(a) * scalar.exp(2 * a)
        kind = dual_kind(depth)
        inner = derivative(order - 1, kind(a, 1), depth + 1)
        return values_and_derivatives(inner, kind)[1].item()

    for order in range(5):
        exact = sp.diff(sp.sin(x) * sp.exp(2 * x), x, order).subs(x, 0.4)
        assert float(derivative(order, 0.4)) == pytest.approx(float(exact), rel=1e-13)
