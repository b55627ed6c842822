"""Derivatives against complex steps (mpmath's differentiation) and SymPy, in both modes."""

import math

import mpmath
import numpy as np
import pytest
import sympy as sp
from hypothesis import given
from hypothesis import strategies as st

from zwang import scalar
from zwang.compiler.derivatives import differentiate
from zwang.compiler.frontend.trace import trace
from zwang.compiler.ir.interpreter import interpret
from zwang.compiler.ir.verify import verify
from zwang.errors import ShapeError, TraceError

SMOOTH = {
    "sqrt": (scalar.sqrt, mpmath.sqrt, 0.7),
    "sin": (scalar.sin, mpmath.sin, 0.7),
    "cos": (scalar.cos, mpmath.cos, 0.7),
    "tan": (scalar.tan, mpmath.tan, 0.7),
    "asin": (scalar.asin, mpmath.asin, -0.7),
    "acos": (scalar.acos, mpmath.acos, 0.7),
    "exp": (scalar.exp, mpmath.exp, -1.3),
    "log": (scalar.log, mpmath.log, 2.3),
    "sinh": (scalar.sinh, mpmath.sinh, -1.3),
    "cosh": (scalar.cosh, mpmath.cosh, -1.3),
    "tanh": (scalar.tanh, mpmath.tanh, -1.3),
    "sech": (scalar.sech, mpmath.sech, -1.3),
    "asinh": (scalar.asinh, mpmath.asinh, -1.3),
    "acosh": (scalar.acosh, mpmath.acosh, 1.3),
    "atanh": (scalar.atanh, mpmath.atanh, -0.7),
    "absolute": (scalar.absolute, abs, -2.3),
    "negative": (lambda x: -x, lambda x: -x, 0.4),
    "cube": (lambda x: x**3, lambda x: x**3, -1.7),
    "half power": (lambda x: scalar.power(x, -1.5), lambda x: x ** mpmath.mpf(-1.5), 1.7),
    "by a constant": (lambda x: 3 / x - x / 7, lambda x: 3 / x - x / 7, 1.7),
    "floor": (lambda x: scalar.floor(x) * x, lambda x: mpmath.floor(x) * x, 2.5),
}
PAIRED = {
    "add": (lambda x, y: x + y,) * 2,
    "subtract": (lambda x, y: x - y,) * 2,
    "multiply": (lambda x, y: x * y,) * 2,
    "divide": (lambda x, y: x / y,) * 2,
    "atan2": (scalar.atan2, mpmath.atan2),
    "power": (scalar.power, mpmath.power),
    "minimum": (scalar.minimum, min),
    "maximum": (scalar.maximum, max),
    "copysign": (scalar.copysign, lambda x, y: abs(x) * mpmath.sign(y)),
    "where": (
        lambda x, y: scalar.where(scalar.less(x, y), x * x, x * y),
        lambda x, y: x * x if x < y else x * y,
    ),
}


def values(function, x):
    program = verify(trace(function, {"x": (len(x),)}))
    out = interpret(program, {"x": x})
    return {port.name: out[port.name].reshape(port.shape) for port in program.outputs}


def in_both_modes(function):
    """The Jacobian by forward mode (columns), by reverse mode (rows), and by `jacobian`."""

    def derived(x):
        y = np.asarray(function(x), dtype=object)
        n, m = len(x), len(y)
        forward = [differentiate.jvp(y, x, [int(i == k) for i in range(n)]) for k in range(n)]
        reverse = [differentiate.vjp(y, x, [int(i == k) for i in range(m)]) for k in range(m)]
        return {
            "forward": np.array(forward).T,
            "reverse": np.array(reverse),
            "jacobian": differentiate.jacobian(y, x),
        }

    return derived


@pytest.mark.parametrize("name", SMOOTH)
def test_the_derivative_of_a_function(name):
    function, reference, x = SMOOTH[name]
    expected = float(mpmath.diff(reference, mpmath.mpf(x)))
    for got in values(in_both_modes(lambda x: [function(x[0])]), [x]).values():
        assert got[0, 0] == pytest.approx(expected, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("name", PAIRED)
@pytest.mark.parametrize("point", [(0.7, 1.9), (1.9, 0.7), (1.4, -0.6)])
def test_the_derivatives_of_a_function_of_two_arguments(name, point):
    if name == "power" and point[0] < 0:
        return
    function, reference = PAIRED[name]
    expected = [float(mpmath.diff(reference, point, order)) for order in ((1, 0), (0, 1))]
    for got in values(in_both_modes(lambda x: [function(*x)]), point).values():
        np.testing.assert_allclose(got[0], expected, rtol=1e-10, atol=1e-10)


def pendulum(x, sin, cos, sqrt):
    """Functions with common subexpressions: energy and geometry of a double pendulum."""
    a, b, u, w = x
    reach = sqrt(1 + cos(a - b) ** 2 / 4)
    kinetic = u * u + w * w / 2 + u * w * cos(a - b)
    return [kinetic - 2 * cos(a) - cos(b), reach * sin(a + b), a * u / (2 + sin(b)), sin(a) * sin(a)]


def test_jacobians_against_sympy():
    symbols = sp.symbols("a b u w")
    expression = sp.Matrix(pendulum(symbols, sp.sin, sp.cos, sp.sqrt)).jacobian(symbols)
    x = [0.3, -1.2, 2.0, 0.7]
    expected = np.array(expression.subs(dict(zip(symbols, x, strict=True))).evalf(30), float)
    for got in values(in_both_modes(lambda x: pendulum(x, scalar.sin, scalar.cos, scalar.sqrt)), x).values():
        np.testing.assert_allclose(got, expected, rtol=1e-13, atol=1e-14)


def test_second_derivatives_are_derivatives_of_derivatives():
    def hessian(x):
        energy = pendulum(x, scalar.sin, scalar.cos, scalar.sqrt)[0]
        return {"H": differentiate.jacobian(differentiate.jacobian([energy], x)[0], x)}

    symbols = sp.symbols("a b u w")
    expression = sp.hessian(pendulum(symbols, sp.sin, sp.cos, sp.sqrt)[0], symbols)
    x = [0.3, -1.2, 2.0, 0.7]
    expected = np.array(expression.subs(dict(zip(symbols, x, strict=True))).evalf(30), float)
    np.testing.assert_allclose(values(hessian, x)["H"], expected, rtol=1e-13, atol=1e-13)


@given(st.integers(0, 10**6))
def test_both_modes_agree_with_differences_on_random_networks(seed):
    rng = np.random.default_rng(seed)
    A, B = rng.normal(size=(5, 4)) * (rng.random((5, 4)) < 0.5), rng.normal(size=(3, 5))

    def function(x):
        hidden = scalar.sin(A @ x) + scalar.sqrt(1 + (A @ x) ** 2)
        return B @ hidden / (2 + scalar.cos(x[0]))

    x = rng.normal(size=4)
    step = 1e-6
    differences = np.array(
        [(function(x + step * e) - function(x - step * e)) / (2 * step) for e in np.eye(4)]
    ).T
    for got in values(in_both_modes(function), x).values():
        np.testing.assert_allclose(got, differences.astype(float), atol=1e-7)


def test_structural_zeros_are_not_computed():
    def chain(x):
        return [scalar.sin(x[k]) * x[k + 1] for k in range(len(x) - 1)]

    def count(function, n):
        program = trace(function, {"x": (n,)})
        return len([i for i in program.body.instructions if i.op not in ("const", "input")])

    def derived(x):
        J = differentiate.jacobian(chain(x), x)
        assert all(
            type(J[i, j]) is int and J[i, j] == 0 for i in range(19) for j in range(20) if j not in (i, i + 1)
        )
        return {"J": J}

    assert count(derived, 20) == 3 * 19  # sin, cos and one product each


@pytest.mark.parametrize(("rows", "columns"), [(1, 40), (40, 1)])
def test_the_cheaper_mode_is_used(rows, columns):
    """Reverse mode for one row and forward mode for one column cost about as much as the function itself."""
    rng = np.random.default_rng(0)
    A, B = rng.normal(size=(10, columns)), rng.normal(size=(rows, 10))

    def function(x):
        return B @ scalar.sin(A @ x)

    def count(function):
        return len(trace(function, {"x": (columns,)}).body.instructions)

    assert count(lambda x: {"J": differentiate.jacobian(function(x), x)}) < 3 * count(function)


def test_derivatives_by_any_values_of_the_trace():
    def function(x):
        y = scalar.exp(x[0])
        return differentiate.jacobian([y * y * x[1]], [y, x[1]])[0]

    got = values(lambda x: {"J": function(x)}, [0.5, 3.0])["J"]
    np.testing.assert_allclose(got, [6 * math.exp(0.5), math.exp(1.0)], rtol=1e-15)


def test_the_derivative_as_a_function():
    derivative = differentiate.jacobian_function(lambda x: [x[0] * x[1], x[1]])
    got = values(lambda x: {"J": derivative(x)}, [2.0, 5.0])["J"]
    np.testing.assert_array_equal(got, [[5.0, 2.0], [0.0, 1.0]])


def test_loops_have_no_derivative_unless_unrolled():
    def power(x, unroll):
        return [scalar.fori_loop(0, 5, lambda i, y: y * x[0], 1, unroll=unroll)]

    got = values(lambda x: {"J": differentiate.jacobian(power(x, True), x)}, [2.0])["J"]
    assert got == [[80.0]]
    with pytest.raises(TraceError, match=r"unroll the loop"):
        trace(lambda x: differentiate.jacobian(power(x, False), x), {"x": (1,)})


def test_a_loop_that_does_not_depend_on_the_inputs_is_a_constant():
    def function(x):
        scale = scalar.fori_loop(0, 5, lambda i, y: y * x[1], 1, unroll=False)
        return {"J": differentiate.jacobian([scale * x[0]], x[:1])}

    assert values(function, [2.0, 3.0])["J"] == [[243.0]]


def test_wrong_tangents_and_inputs_are_rejected():
    def trace_it(function):
        trace(lambda x: function(x), {"x": (2,)})

    with pytest.raises(ShapeError, match="2 inputs and 1 tangents"):
        trace_it(lambda x: differentiate.jvp([x[0]], x, [1]))
    with pytest.raises(ShapeError, match="1 outputs and 2 cotangents"):
        trace_it(lambda x: differentiate.vjp([x[0]], x, [1, 2]))
    with pytest.raises(TraceError, match=r"input 1 of a derivative is 2\.0"):
        trace_it(lambda x: differentiate.jacobian([x[0]], [x[0], 2.0]))
    with pytest.raises(TraceError, match="different scalars"):
        trace_it(lambda x: differentiate.jacobian([x[0]], [x[0], x[0]]))
