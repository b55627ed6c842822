"""The node rules never change a value: random expressions give the same results as programs and in Python."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zwang import scalar
from zwang.compiler.frontend.trace import trace
from zwang.compiler.ir.graph import Graph, Index, Real
from zwang.compiler.ir.interpreter import interpret
from zwang.compiler.ir.node_rules import RULES
from zwang.compiler.ir.verify import verify

SIZE = 3
NUMBERS = st.one_of(
    st.sampled_from([0, 1, -1, 2, 0.5, -0.25, 3.7, -1e3]), st.floats(-4, 4, allow_subnormal=False)
)
UNARY = ["negative", "sin", "cos", "tan", "sqrt", "exp", "log", "absolute", "floor", "asin", "acos", "sign",
         "sinh", "cosh", "tanh", "sech", "asinh", "acosh", "atanh"]  # fmt: skip
BINARY = ["+", "-", "*", "/", "minimum", "maximum", "atan2", "copysign", "where"]


def expressions(leaves):
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.tuples(st.sampled_from(UNARY), inner),
            st.tuples(st.sampled_from(BINARY), inner, inner),
            st.tuples(st.just("power"), inner, st.sampled_from([2, 3, -1, 0.5, 1.5, 0])),
        ),
        max_leaves=24,
    )


EXPRESSIONS = expressions(st.one_of(NUMBERS, st.sampled_from(["x0", "x1", "x2"])))


def evaluate_expression(expression, x):
    """The value of an expression for scalars x of any backend."""
    if isinstance(expression, str):
        return x[int(expression[1])]
    if not isinstance(expression, tuple):
        return expression
    name, *args = expression
    a, *rest = [evaluate_expression(arg, x) for arg in args]
    if name == "negative":
        return -a
    if name in UNARY:
        return getattr(scalar, name)(a)
    [b] = rest
    if name == "where":
        return scalar.where(scalar.less(a, b), a + 1, b)
    return operate(name, a, b)


def operate(name, a, b):
    if name == "+":
        return a + b
    if name == "-":
        return a - b
    if name == "*":
        return a * b
    return scalar.divide(a, b) if name == "/" else getattr(scalar, name)(a, b)


def is_exempt(expression, x):
    """Whether it has 0*inf, 0/0, or a zero or nan whose sign matters: here the rules may change the value."""
    if not isinstance(expression, tuple):
        return False
    name, *args = expression
    if any(is_exempt(arg, x) for arg in args):
        return True
    values = [float(evaluate_expression(arg, x)) for arg in args]
    if name in ("*", "/") and 0 in values and not all(map(math.isfinite, values)):
        return True
    if name == "copysign" and math.isnan(values[1]):
        return True
    return name in ("/", "atan2", "copysign", "power", "log") and 0 in values


@settings(max_examples=100)
@given(EXPRESSIONS, st.lists(st.floats(-4, 4, allow_subnormal=False), min_size=SIZE, max_size=SIZE))
def test_traced_equals_float_exactly(expression, x):
    if is_exempt(expression, x):
        return
    program = verify(trace(lambda x: [evaluate_expression(expression, x)], {"x": (SIZE,)}))
    [got] = interpret(program, {"x": x})["out"]
    np.testing.assert_array_equal(got, float(evaluate_expression(expression, x)))


@given(EXPRESSIONS, st.sampled_from([math.nan, math.inf, -math.inf]))
def test_no_rule_turns_nan_or_infinity_into_a_number(expression, special):
    x = [special, 1.5, -0.5]
    if is_exempt(expression, x):
        return
    program = trace(lambda x: [evaluate_expression(expression, x)], {"x": (SIZE,)})
    [got] = interpret(program, {"x": x})["out"]
    np.testing.assert_array_equal(got, float(evaluate_expression(expression, x)))


def operations_of(function, shape=(2,)):
    """The operations of a traced function with one output."""
    program = trace(function, {"x": shape})
    return [i.op for i in program.body.instructions if i.op not in ("input", "const")]


@pytest.mark.parametrize(
    ("function", "remaining"),
    [
        (lambda x: x[0] + 0, []),
        (lambda x: 0 * x[0], []),
        (lambda x: 0 / x[0], []),
        (lambda x: x[0] * 1.0, []),
        (lambda x: x[0] / 4, ["mul"]),
        (lambda x: x[0] / 3, ["div"]),
        (lambda x: x[0] - x[0], ["sub"]),
        (lambda x: x[0] / x[0], ["div"]),
        (lambda x: -(x[0] - x[1]) + (x[1] - x[0]) * 3, ["sub", "mul", "add", "neg"]),
        (lambda x: scalar.sin(-x[0]) + scalar.sin(x[0]), ["sin", "sub"]),
        (lambda x: scalar.cos(-x[0]) - scalar.cos(x[0]), ["cos", "sub"]),
        (lambda x: x[0] ** 2, ["mul"]),
        (lambda x: x[0] ** 0.5, ["sqrt"]),
        (lambda x: x[0] ** -1, ["div"]),
        (lambda x: x[0] ** 4, ["mul", "mul"]),
        (lambda x: 2.0 ** x[0], ["pow"]),
        (lambda x: abs(-x[0]), ["abs"]),
        (lambda x: scalar.minimum(x[0], x[0]), []),
        (lambda x: scalar.where(x[0] < x[0], x[1], 3.0), []),
        (lambda x: scalar.where(x[0] != x[0], x[1], 3.0), ["ne", "select"]),
        (lambda x: scalar.where(scalar.logical_not(x[0] == x[1]), 1, 0), ["ne", "select"]),
        (lambda x: scalar.where((x[0] < 1) & True, 1, 0), ["lt", "select"]),
        (lambda x: scalar.where((x[0] < 1) ^ True, 1, 0), ["lt", "select"]),
        (lambda x: scalar.where(scalar.logical_or(x[0] < 1, True), x[1], 0), []),
        (lambda x: scalar.where(x[0] < 1, x[1], x[1]), []),
    ],
)
def test_operations_that_remain_after_folding(function, remaining):
    assert operations_of(lambda x: [function(x)]) == remaining


def test_equal_constants_are_one_node_but_minus_zero_is_another():
    graph = Graph()
    assert graph.constant(2) is graph.constant(2.0)
    assert graph.constant(0.0) is not graph.constant(-0.0)
    assert graph.constant(math.nan) is graph.constant(math.nan)


def test_truth_values_are_combined_as_in_python():
    for p in (-1.0, 1.0):
        for q in (-1.0, 1.0):

            def function(x):
                a, b = x[0] > 0, x[1] > 0
                cases = [
                    a & b,
                    a | b,
                    a ^ b,
                    scalar.logical_not(a),
                    scalar.logical_and(a, scalar.logical_not(b)),
                ]
                cases.append(scalar.where(a, b, scalar.logical_not(b)))
                return [scalar.where(c, 1, 0) for c in cases]

            a, b = p > 0, q > 0
            expected = [a and b, a or b, a != b, not a, a and not b, b if a else not b]
            np.testing.assert_array_equal(
                interpret(trace(function, {"x": (2,)}), {"x": [p, q]})["out"], expected
            )


def test_indices_are_integers_until_they_are_combined_with_a_real():
    def body(i, total, x):
        assert isinstance(2 * i + 1 - i, Index) and isinstance(i / 2, Real) and isinstance(i + 0.5, Real)
        return total + (2 * i + 1) * x + scalar.where(i >= 3, 100, i) + (3 - i) * i

    def function(x):
        return scalar.fori_loop(0, 5, lambda i, total: body(i, total, x[0]), 0, unroll=False)

    got = interpret(verify(trace(function, {"x": (1,)})), {"x": [0.5]})["out"]
    assert got == sum((2 * i + 1) * 0.5 + (100 if i >= 3 else i) + (3 - i) * i for i in range(5))


def test_every_rule_is_an_operation_of_the_program():
    from_programs = {
        "add",
        "sub",
        "mul",
        "div",
        "neg",
        "abs",
        "pow",
        "atan2",
        "copysign",
        "min",
        "max",
        "select",
    }
    assert from_programs <= set(RULES)
