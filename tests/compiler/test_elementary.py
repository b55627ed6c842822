"""Elementary functions of compiled programs against mpmath, and against the conventions of C for special
values.
"""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest

from tests.compiler.elementary_cases import BINARY, HYPERBOLIC, INVERSE, UNARY, arguments, pairs, program_of
from zwang.compiler.ir.interpreter import interpret
from zwang.compiler.ir.program import Block, Instruction, Port, Program
from zwang.compiler.passes.expand import ELEMENTARY, expand
from zwang.compiler.runtime.compiled_function import CompiledFunction

TYPES = ("float64", "float32")
ULPS = dict.fromkeys(UNARY + BINARY, 2.0) | dict.fromkeys(("sinh", "tanh", "sech", "acosh"), 3.0)
IN_NUMPY = {
    **{op: getattr(np, op.replace("a", "arc", 1)) for op in ("asin", "acos", *INVERSE)},
    "sech": lambda x: 2 * np.exp(-abs(x)) / (1 + np.exp(-2 * abs(x))),
}


def compiled(*ops: str, dtype: str, lanes: int | None = None) -> CompiledFunction:
    return CompiledFunction(program_of(*ops), dtype=dtype, lanes=lanes, threads=1, cache=False)


def exact(op: str, *x: float) -> mp.mpf:
    """The value of the function with a precision far above that of a double."""
    big = any(abs(a) > 1e9 or 0 < abs(a) < 1e-9 for a in x)
    with mp.workprec(2300 if big else 250):
        name = {"pow": "power"}.get(op, op)
        value = getattr(mp, name)(*(mp.mpf(float(a)) for a in x))
        return mp.mpf(value.real)


def ulps(op: str, dtype: str, y: float, *x: float) -> float:
    """Error of y in units in the last place of the correct result."""
    right = exact(op, *x)
    kind = np.dtype(dtype).type
    if abs(right) > mp.mpf(float(np.finfo(dtype).max)):
        return 0.0 if abs(y) >= np.finfo(dtype).max and (y > 0) == (right > 0) else math.inf
    unit = mp.mpf(float(np.spacing(abs(kind(float(right))))))
    with mp.workprec(250):
        return float(abs(mp.mpf(float(y)) - right) / unit)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("op", UNARY)
def test_functions_of_one_argument_are_correct_to_two_or_three_ulps(op: str, dtype: str) -> None:
    x = arguments(op, dtype)
    y = compiled(op, dtype=dtype)(x[:, None])[:, 0]
    errors = [ulps(op, dtype, b, a) for a, b in zip(x, y, strict=True)]
    worst = int(np.argmax(errors))
    assert errors[worst] <= ULPS[op], (x[worst], y[worst])


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("op", BINARY)
def test_functions_of_two_arguments_are_correct_to_two_ulps(op: str, dtype: str) -> None:
    x = pairs(op, dtype)
    y = compiled(op, dtype=dtype)(x)[:, 0]
    errors = [ulps(op, dtype, b, *a) for a, b in zip(x, y, strict=True)]
    worst = int(np.argmax(errors))
    assert errors[worst] <= ULPS[op], (x[worst], y[worst])


@pytest.mark.parametrize("op", UNARY)
def test_single_precision_is_correct_to_two_or_three_ulps_everywhere(op: str) -> None:
    """A million floats of all magnitudes, against double precision."""
    bits = np.arange(0, 2**32, 4099, dtype=np.uint64).astype(np.uint32)
    x = bits.view(np.float32)
    with np.errstate(all="ignore"):
        right = IN_NUMPY.get(op, getattr(np, op, None))(x.astype(np.float64))
        y = compiled(op, dtype="float32")(x[:, None])[:, 0]
        rounded = right.astype(np.float32)
        finite = np.isfinite(rounded)
        errors = abs(y[finite] - right[finite]) / np.spacing(abs(rounded[finite]))
    assert errors.max() <= ULPS[op], x[finite][np.argmax(errors)]
    assert np.array_equal(y[~finite], rounded[~finite], equal_nan=True)


@pytest.mark.parametrize("dtype", TYPES)
def test_functions_of_one_argument_at_zero_infinity_and_nan(dtype: str) -> None:
    inf, nan = math.inf, math.nan
    special = [0.0, -0.0, inf, -inf, nan, 1.0, -1.0, 2.0, -2.0]
    right = {
        "sin": [0.0, -0.0, nan, nan, nan],
        "tan": [0.0, -0.0, nan, nan, nan],
        "cos": [1.0, 1.0, nan, nan, nan],
        "asin": [0.0, -0.0, nan, nan, nan, math.pi / 2, -math.pi / 2, nan, nan],
        "acos": [math.pi / 2, math.pi / 2, nan, nan, nan, 0.0, math.pi, nan, nan],
        "exp": [1.0, 1.0, inf, 0.0, nan],
        "log": [-inf, -inf, inf, nan, nan, 0.0, nan, math.log(2), nan],
        "sinh": [0.0, -0.0, inf, -inf, nan],
        "cosh": [1.0, 1.0, inf, inf, nan],
        "tanh": [0.0, -0.0, 1.0, -1.0, nan],
        "sech": [1.0, 1.0, 0.0, 0.0, nan],
        "asinh": [0.0, -0.0, inf, -inf, nan],
        "acosh": [nan, nan, inf, nan, nan, 0.0, nan],
        "atanh": [0.0, -0.0, nan, nan, nan, inf, -inf, nan, nan],
    }
    for op, values in right.items():
        x = np.array(special[: len(values)], dtype)
        for together in ([op], ["tan", op]):  # the reduction of an angle differs if there is a tangent
            y = compiled(*together, dtype=dtype)(x[:, None])[:, -1]
            expected = np.array(values, dtype)
            assert np.array_equal(y, expected, equal_nan=True), (op, y)
            if not np.isnan(expected[0]):
                assert np.array_equal(np.signbit(y[:2]), np.signbit(expected[:2])), op


@pytest.mark.parametrize("op", BINARY)
def test_functions_of_two_arguments_follow_c_at_special_arguments(op: str) -> None:
    inf, nan = math.inf, math.nan
    some = [
        0.0,
        -0.0,
        0.5,
        -0.5,
        1.0,
        -1.0,
        2.0,
        -2.0,
        3.0,
        -3.0,
        1e300,
        -1e300,
        5e-324,
        -5e-324,
        inf,
        -inf,
        nan,
    ]
    x = np.array([(a, b) for a in some for b in some])
    y = compiled(op, dtype="float64")(x)[:, 0]
    with np.errstate(all="ignore"):
        right = (np.arctan2 if op == "atan2" else np.power)(x[:, 0], x[:, 1])
        near = abs(y - right) <= 2 * np.spacing(abs(right))
    same = (y == right) | (np.isnan(y) & np.isnan(right)) | near
    assert same.all(), x[~same]
    signed = ~np.isnan(right)
    assert np.array_equal(np.signbit(y[signed]), np.signbit(right[signed]))


def test_arguments_that_are_subnormal_or_give_subnormal_results() -> None:
    x = np.array([5e-324, -5e-324, 1e-310, 2.2e-308])
    y = compiled("sin", "tan", "asin", dtype="float64")(x[:, None])
    assert np.array_equal(y, np.repeat(x[:, None], 3, axis=1))
    x = np.array([-708.5, -720.25, -740.0, -745.0])
    assert np.allclose(compiled("exp", dtype="float64")(x[:, None])[:, 0], np.exp(x), rtol=0, atol=5e-324)
    x = np.array([5e-324, 1e-310])
    assert np.array_equal(compiled("log", dtype="float64")(x[:, None])[:, 0], np.log(x))


@pytest.mark.parametrize("dtype", TYPES)
def test_a_huge_angle_does_not_change_other_lanes(dtype: str) -> None:
    x = np.linspace(-3, 3, 32, dtype=dtype)[:, None]
    function = compiled("sin", "cos", "tan", dtype=dtype, lanes=8)
    alone = function(x)
    with_huge = x.copy()
    with_huge[::5] = 1e30
    mixed = function(with_huge)
    untouched = np.arange(32) % 5 != 0
    assert np.array_equal(alone[untouched], mixed[untouched])
    assert abs(mixed[0, 0] - float(exact("sin", with_huge[0, 0]))) < 1e-6


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(
    "ops",
    [("sin", "cos"), ("tan",), ("exp", "log"), ("asin", "acos"), HYPERBOLIC, INVERSE, ("pow",), ("atan2",)],
)
def test_expanded_functions_are_basic_operations_with_the_same_bits_everywhere(
    ops: tuple[str, ...], dtype: str
) -> None:
    program = program_of(*ops)
    expanded = expand(program, dtype)
    assert not ELEMENTARY & {instruction.op for instruction in expanded.body.instructions}
    x = (
        pairs(ops[0], dtype, 5)
        if ops[0] in BINARY
        else np.concatenate([arguments(op, dtype, 4) for op in ops])[:, None]
    )
    reference = interpret(expanded, {"x": x}, np.dtype(dtype))["y"]
    for lanes in (1, 2, 8, 16):
        assert np.array_equal(compiled(*ops, dtype=dtype, lanes=lanes)(x), reference, equal_nan=True)


def test_independent_angles_share_one_test_for_huge_arguments() -> None:
    size = 6
    instructions = [Instruction("input", (), (k,), (0, k)) for k in range(size)]
    instructions += [
        Instruction(op, (k,), (size + 2 * k + n,)) for k in range(size) for n, op in enumerate(("sin", "cos"))
    ]
    body = Block((), tuple(instructions), tuple(range(size, 3 * size)))
    kinds = dict.fromkeys(range(3 * size), "real")
    many = Program((Port("x", size),), (Port("y", 2 * size),), body, kinds, {})
    ops = [i.op for i in expand(many, "float64").body.instructions]
    assert ops.count("cond") == 1
    assert sum(op in ("fma", "fnma", "mul", "add", "sub") for op in ops) <= 25 * size
    x = np.linspace(-4, 4, 5 * size).reshape(5, size)
    both = np.stack([np.sin(x), np.cos(x)], axis=-1).reshape(5, 2 * size)
    assert np.allclose(CompiledFunction(many, cache=False)(x), both, rtol=1e-15, atol=1e-15)
