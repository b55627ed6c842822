"""Tracing: the program computes what the function computes; untraceable code is rejected with its line."""

import math

import numpy as np
import pytest

from zwang import scalar
from zwang.compiler.derivatives.differentiate import jacobian
from zwang.compiler.frontend.trace import trace
from zwang.compiler.ir.interpreter import interpret
from zwang.compiler.ir.verify import verify
from zwang.errors import ShapeError, TraceError


def operations(program):
    return [i.op for i in program.body.instructions if i.op not in ("input", "const")]


def traced(function, **shapes):
    return verify(trace(function, shapes))


def test_matrices_of_traced_scalars_take_numpys_notation():
    def function(q, v):
        c, s = scalar.cos(q[0]), scalar.sin(q[0])
        R = np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]])
        skew = np.array([[0, -v[2], v[1]], [v[2], 0, -v[0]], [-v[1], v[0], 0]])
        blocks = np.block([[R, skew], [np.zeros((3, 3)), R.T]])
        return {
            "product": R @ v,
            "cross": np.cross(R @ v, np.array([1.0, 0, 2])),
            "blocks": blocks @ np.concatenate([v, v]),
            "sum": np.einsum("ij,jk,k->i", R, skew, v),
            "stacked": np.stack([v, R[0]]).sum(axis=0),
            "outer": np.outer(v, v) / np.float64(3.0) + np.eye(3),
            "trace": np.trace(R) - R[0, 0] ** 2 + v @ v,
        }

    program = traced(function, q=(1,), v=(3,))
    q, v = np.array([0.3]), np.array([1.5, -2.0, 0.25])
    out = interpret(program, {"q": q, "v": v})
    expected = function(q.astype(object), v.astype(object))
    for port in program.outputs:
        np.testing.assert_array_equal(
            out[port.name].reshape(port.shape), np.array(expected[port.name], float), err_msg=port.name
        )


def test_numpys_functions_on_arrays_of_traced_scalars_are_traced():
    names = [
        "sin",
        "cos",
        "tan",
        "sqrt",
        "exp",
        "log",
        "arcsin",
        "arccos",
        "sinh",
        "cosh",
        "tanh",
        "arcsinh",
        "arctanh",
        "square",
        "negative",
        "absolute",
        "floor",
    ]

    def function(x):
        return {name: getattr(np, name)(x) for name in names} | {
            "arctan2": np.arctan2(x, np.array([1.0, 2.0]))
        }

    x = np.array([0.3, 0.7])
    out = interpret(traced(function, x=(2,)), {"x": x})
    for name in names:
        np.testing.assert_allclose(out[name], getattr(np, name)(x), rtol=1e-15)
    shifted = interpret(traced(lambda x: {"y": np.arccosh(1 + x)}, x=(2,)), {"x": x})
    np.testing.assert_allclose(shifted["y"], np.arccosh(1 + x), rtol=1e-15)
    np.testing.assert_allclose(out["arctan2"], np.arctan2(x, [1, 2]), rtol=1e-15)


def test_zeros_and_ones_fold_and_common_subexpressions_are_shared():
    def function(x):
        R = np.array([[scalar.cos(0), -scalar.sin(0), 0], [scalar.sin(0), scalar.cos(0), 0], [0, 0, 1]])
        return R @ x + 0 * x, (x[0] + x[1]) * (x[1] + x[0]), 1.0 * x[0], x[0] * -1.0 + x[0] * -1

    program = traced(function, x=(3,))
    assert sorted(operations(program)) == ["add", "add", "mul", "neg"]
    assert operations(trace(lambda x: np.eye(3) @ x, {"x": (3,)})) == []


def test_signs_move_outwards_and_cancel():
    def function(x):
        a, b, c = x
        return [
            a + (-b),
            (-a) * b - c,
            (-a) * (-b),
            -1 * (-a),
            a - (-b),
            (-a) / b + c,
            -(a - b),
            (-a) - b,
            a * -2.0 + c,
        ]

    program = traced(function, x=(3,))
    assert operations(program).count("neg") == 3  # of a*b + c, of a + b and of a - b
    x = [1.7, -0.3, 2.2]
    np.testing.assert_array_equal(interpret(program, {"x": x})["out"], function(x))


def test_names_are_opaque():
    nasty = "q'); import os /* \n"
    program = trace(lambda x: {nasty: x[0] + 1}, {nasty: (1,)})
    assert interpret(program, {nasty: [1.0]})[nasty] == [2.0]


def test_outputs_are_named_by_key_or_position():
    assert [p.name for p in trace(lambda x: x, {"x": ()}).outputs] == ["out"]
    assert [p.name for p in trace(lambda x: (x, [x, 2 * x]), {"x": ()}).outputs] == ["out0", "out1"]
    program = trace(lambda x: {"m": np.outer(x, x)}, {"x": (2,)})
    assert (program.outputs[0].size, program.outputs[0].shape) == (4, (2, 2))


def line_of(error):
    return str(error.value).split("line ")[1].split(":")[0]


def test_a_python_if_is_rejected_with_its_line_and_the_alternative():
    def function(x):
        if x[0] > 0:
            return x
        return -x

    with pytest.raises(TraceError, match=r"test_trace.py, line \d+: if x\[0\] > 0:.*where") as error:
        trace(function, {"x": (1,)})
    assert int(line_of(error)) == function.__code__.co_firstlineno + 1


def test_the_line_of_an_error_in_a_primitive_is_that_of_the_users_code():
    def function(x):
        return [scalar.where(x[0], 1.0, 2.0)]

    with pytest.raises(TraceError, match=r"test_trace.py, line \d+: return \[scalar.where") as error:
        trace(function, {"x": (1,)})
    assert int(line_of(error)) == function.__code__.co_firstlineno + 1


@pytest.mark.parametrize(
    ("function", "advice"),
    [
        (lambda x: math.sin(x[0]), r"math\.sin.*zwang\.scalar"),
        (lambda x: float(x[0]), "zwang.scalar"),
        (lambda x: int(x[0]), "floor"),
        (lambda x: [1.0, 2.0][x[0]], "for_each"),
        (lambda x: range(x[0]), "for_each"),
        (lambda x: x[0] > 0 and x[1] > 0, "logical_and"),
        (lambda x: not x[0], "where"),
        (lambda x: max(x[0], x[1]), "where"),
        (lambda x: np.maximum(x, 0.0), "where"),
        (lambda x: x < 1.0, "less"),
        (lambda x: np.asarray(x, dtype=float), "zwang.scalar"),
        (lambda x: (x[0] < 1) * 2.0, r"where\(condition, 1, 0\)"),
        (lambda x: x[0] * (x[0] < 1), r"where\(condition, 1, 0\)"),
        (lambda x: scalar.where(~(x[0] < 1), 1, 2), "logical_not"),
        (lambda x: scalar.where(x[0], 1, 2), "truth value"),
        (lambda x: [x[0] < 1], "where"),
        (lambda x: ["text"], "str"),
        (lambda x: scalar.table([1.0, 2.0])[x[0]], "lane"),
        (lambda x: np.cbrt(x), r"test_trace\.py, line \d+: .*np\.cbrt.*zwang\.scalar"),
        (lambda x: np.linalg.norm(np.expm1(x)), r"test_trace\.py, line \d+: .*np\.expm1.*zwang\.scalar"),
        (lambda x: np.hypot(x[0], x[1]), r"test_trace\.py, line \d+: .*np\.hypot.*zwang\.scalar"),
        (lambda x: np.isfinite(x[0]), r"test_trace\.py, line \d+: .*np\.isfinite.*zwang\.scalar"),
    ],
)
def test_code_that_needs_the_value_is_rejected_with_advice(function, advice):
    with pytest.raises((TraceError, TypeError), match=advice):
        trace(function, {"x": (2,)})


def test_values_of_two_traces_cannot_be_combined():
    kept = []
    trace(lambda x: (kept.append(x), x[0])[1], {"x": (2,)})
    with pytest.raises(TraceError, match="two different traces"):
        trace(lambda x: x[0] * kept[0][1], {"x": (2,)})
    with pytest.raises(TraceError, match="another trace"):
        trace(lambda x: kept[0], {"x": (2,)})


def test_inputs_of_the_wrong_size_are_named():
    program = trace(lambda x: x, {"speed": (3,)})
    with pytest.raises(ShapeError, match=r"'speed'.*\(2,\).*\(3,\)"):
        interpret(program, {"speed": [1.0, 2.0]})


def test_the_jacobian_is_part_of_the_same_trace():
    program = traced(lambda x: jacobian([x[0] * x[1], scalar.sin(x[0])], x), x=(2,))
    out = interpret(program, {"x": [0.5, 3.0]})["out"].reshape(2, 2)
    np.testing.assert_array_equal(out, [[3.0, 0.5], [math.cos(0.5), 0.0]])
