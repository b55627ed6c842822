"""Every primitive gives the same result by every backend: floats, traces, machine code, symbols, dual
numbers.
"""

import inspect

import numpy as np
import pytest
import sympy as sp

from zwang import scalar
from zwang.algebra.dual import Dual
from zwang.compiler.derivatives.differentiate import jacobian
from zwang.compiler.frontend.trace import trace
from zwang.compiler.ir.interpreter import interpret
from zwang.compiler.ir.verify import verify
from zwang.compiler.pipeline import optimise
from zwang.compiler.runtime.compiled_function import CompiledFunction
from zwang.symbolic import sympy_backend  # noqa: F401  (registers the backend of symbols)

INSIDE = [(0.5, 0.25), (0.75, 1.5), (0.125, 0.125)]
ANYWHERE = [*INSIDE, (-0.75, 0.5), (-2.5, -1.25), (3.0, -0.5)]


def quotients(x, y):
    return [
        x % y,
        x // y,
        *divmod(x, y),
        2.5 % y,
        2.5 // y,
        *divmod(-2.5, y),
        x % 0.25,
        np.float64(-0.75) % y,
    ]


def truth(condition):
    return scalar.where(condition, 1.0, 0.0)


PRIMITIVES = {
    "sqrt": (lambda x, y: scalar.sqrt(x), INSIDE),
    "sin": (lambda x, y: scalar.sin(x), ANYWHERE),
    "cos": (lambda x, y: scalar.cos(x), ANYWHERE),
    "tan": (lambda x, y: scalar.tan(x), ANYWHERE),
    "asin": (lambda x, y: scalar.asin(x), INSIDE),
    "acos": (lambda x, y: scalar.acos(x), INSIDE),
    "atan2": (lambda x, y: scalar.atan2(x, y), ANYWHERE),
    "exp": (lambda x, y: scalar.exp(x), ANYWHERE),
    "log": (lambda x, y: scalar.log(x), INSIDE),
    "sinh": (lambda x, y: scalar.sinh(x), ANYWHERE),
    "cosh": (lambda x, y: scalar.cosh(x), ANYWHERE),
    "tanh": (lambda x, y: scalar.tanh(x), ANYWHERE),
    "sech": (lambda x, y: scalar.sech(x), ANYWHERE),
    "asinh": (lambda x, y: scalar.asinh(x), ANYWHERE),
    "acosh": (lambda x, y: scalar.acosh(1 + x), INSIDE),
    "atanh": (lambda x, y: scalar.atanh(x), INSIDE),
    "power": (lambda x, y: scalar.power(x, y) + scalar.power(x, 3) + scalar.power(x, -0.5), INSIDE),
    "divide": (lambda x, y: scalar.divide(x, y), ANYWHERE),
    "absolute": (lambda x, y: scalar.absolute(x), ANYWHERE),
    "minimum": (lambda x, y: scalar.minimum(x, y), ANYWHERE),
    "maximum": (lambda x, y: scalar.maximum(x, y), ANYWHERE),
    "clip": (lambda x, y: scalar.clip(x, -1.0, y + 2), ANYWHERE),
    "floor": (lambda x, y: scalar.floor(3 * x), ANYWHERE),
    "copysign": (lambda x, y: scalar.copysign(x, y), ANYWHERE),
    "sign": (lambda x, y: scalar.sign(x), ANYWHERE),
    "less": (lambda x, y: truth(scalar.less(x, y)), ANYWHERE),
    "less_equal": (lambda x, y: truth(scalar.less_equal(x, y)), ANYWHERE),
    "equal": (lambda x, y: truth(scalar.equal(x, y)), ANYWHERE),
    "not_equal": (lambda x, y: truth(scalar.not_equal(x, y)), ANYWHERE),
    "logical_and": (lambda x, y: truth(scalar.logical_and(x < y, y < 1)), ANYWHERE),
    "logical_or": (lambda x, y: truth(scalar.logical_or(x < y, y < 0)), ANYWHERE),
    "logical_not": (lambda x, y: truth(scalar.logical_not(x < y)), ANYWHERE),
    "where": (lambda x, y: scalar.where(x < y, x * x, 2 * y), ANYWHERE),
    "operators": (lambda x, y: -x + y * 2 - x / 4 + x**2 / (1 + y * y), ANYWHERE),
    "modulo": (lambda x, y: x % y + 8 * (x // y) + 2.5 % y - 8 * (-3 // x) + divmod(y, 0.5)[1], ANYWHERE),
    "for_each": (lambda x, y: scalar.for_each([0.5, -1.0, 2.0], lambda t, c: c * x + t, y), ANYWHERE),
    "cond": (lambda x, y: scalar.cond(x < y, lambda z: z * y, lambda z: z - y, x), ANYWHERE),
    "without_derivatives": (
        lambda x, y: x * scalar.without_derivatives(lambda a, b: scalar.sin(a) + b, x, y),
        ANYWHERE,
    ),
    "while_loop": (
        lambda x, y: scalar.while_loop(lambda c: c < 9, lambda c: 2 * c + y * y, 1 + x * x),
        ANYWHERE,
    ),
    "table": (
        lambda x, y: scalar.fori_loop(0, 2, lambda i, c: c + TABLE[i, 0] * x + TABLE[i, 1], y),
        ANYWHERE,
    ),
    "zeros": (lambda x, y: fill(x, y)[1] + fill(x, y)[0], ANYWHERE),
}
TABLE = scalar.table([[1.5, 0.0], [-0.5, 2.0]])
NO_PRIMITIVES = {
    "mutable_array",
    *(
        "raise_if",
        "register",
        "register_lazily",
        "register_decoder",
        "backend_of",
        "use_backend",
        "value_is_constant",
        "are_constant",
        "lane_maximum",
        "lane_by_lane",
        "fori_loop",
        "zeros",
        "empty",
        "compact",  # these three: see test_compaction
        "pack_signs",
        "unpack_signs",
    ),
    *("is_scalar", "is_truth", "is_zero", "substitute", "symbols_of", "to_data", "from_data", "symbol"),
    "flat_position",
    *("leaves_of", "rebuild", "structure_of", "real_array", "real_number", "reason_not_real"),
    *("exact_value", "number_of_constant", "unit_vector"),  # of descriptions: see test_symbolic_numbers
}
CONTROL = {"cond", "while_loop"}
"""Primitives that symbols and dual numbers do not support, or that branch on the value."""


def fill(x, y):
    return scalar.fori_loop(0, 2, lambda i, a: a.set(i, x + i * y), scalar.zeros(2), unroll=None)


def expected(name):
    function, points = PRIMITIVES[name]
    return np.array([float(function(*point)) for point in points])


def program_of(name):
    return verify(trace(lambda p: [PRIMITIVES[name][0](p[0], p[1])], {"p": (2,)}))


def test_every_primitive_is_in_the_table():
    public = {
        name
        for name, member in vars(scalar).items()
        if inspect.isfunction(member)
        and not name.startswith("_")
        and member.__module__.startswith("zwang.scalar")
    }
    assert public - NO_PRIMITIVES <= set(PRIMITIVES)


@pytest.mark.parametrize("name", PRIMITIVES)
def test_traced_equals_float(name):
    got = interpret(program_of(name), {"p": PRIMITIVES[name][1]})["out"][:, 0]
    np.testing.assert_array_equal(got, expected(name))


@pytest.mark.parametrize("name", PRIMITIVES)
@pytest.mark.parametrize(("dtype", "ulps"), [("float64", 6), ("float32", 12)])
def test_compiled_equals_float(name, dtype, ulps):
    worlds = np.array(PRIMITIVES[name][1], dtype)
    fast = CompiledFunction(optimise(program_of(name)), dtype=dtype, threads=1)
    got = fast(worlds)
    np.testing.assert_allclose(
        got[:, 0], expected(name), rtol=ulps * np.finfo(dtype).eps, atol=np.finfo(dtype).tiny
    )
    np.testing.assert_array_equal(got, [fast(world) for world in worlds])


def test_remainders_are_those_of_pythons_floats():
    rng = np.random.default_rng(0)
    points = np.concatenate([rng.normal(size=(500, 2)) * [20, 1], rng.integers(-40, 40, (500, 2)) / 8])
    points = points[points[:, 1] != 0]
    program = trace(lambda p: quotients(p[0], p[1]), {"p": (2,)})
    expected = np.array([quotients(*point) for point in points.tolist()])
    for found in (
        interpret(program, {"p": points})["out"],
        CompiledFunction(optimise(program), threads=1)(points),
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13)
    angle = np.array([-9.0, -np.pi, 0.0, 3.0, 3.2, 9.0])
    wrapped = trace(lambda q: (q + np.pi) % (2 * np.pi) - np.pi, {"q": (6,)})
    expected = np.arctan2(np.sin(angle), np.cos(angle))
    np.testing.assert_allclose(interpret(wrapped, {"q": angle})["out"], expected, atol=1e-14)


def test_the_derivatives_of_a_remainder():
    program = trace(lambda p: jacobian([p[0] % p[1], p[0] // p[1]], p), {"p": (2,)})
    for x, y in ANYWHERE:
        slopes = [[1, -(x // y)], [0, 0]]
        np.testing.assert_array_equal(interpret(program, {"p": [x, y]})["out"].reshape(2, 2), slopes)
        assert (Dual(x, 1.0) % Dual(y, 0.0)).derivative == 1 and (x % Dual(y, 1.0)).derivative == -(x // y)


@pytest.mark.parametrize("name", sorted(set(PRIMITIVES) - CONTROL))
def test_symbols_equal_float(name):
    function, points = PRIMITIVES[name]
    x, y = sp.symbols("x y", real=True)
    expression = sp.sympify(function(x, y), strict=True)
    got = [float(scalar.substitute(expression, {x: a, y: b})) for a, b in points]
    np.testing.assert_allclose(got, expected(name), rtol=1e-14, atol=1e-15)


@pytest.mark.parametrize("name", sorted(set(PRIMITIVES) - {"while_loop"}))
def test_the_value_in_a_dual_equals_float(name):
    function, points = PRIMITIVES[name]
    results = [function(Dual(a, 1.0), Dual(b, 0.0)) for a, b in points]
    values = [result.value if isinstance(result, Dual) else result for result in results]
    np.testing.assert_allclose(np.array(values, float), expected(name), rtol=1e-15)
