"""Dead-code elimination and scheduling change no result; fusion changes only the rounding of a product."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.compiler.random_functions import SIZE, random_function, random_inputs
from zwang import scalar
from zwang.compiler.frontend.trace import trace
from zwang.compiler.ir.interpreter import fused, interpret
from zwang.compiler.ir.program import Instruction
from zwang.compiler.ir.verify import verify
from zwang.compiler.passes.dead_code import remove_dead_code
from zwang.compiler.passes.fused_multiply_add import fuse
from zwang.compiler.passes.schedule import _Graph, schedule, traffic
from zwang.compiler.pipeline import count_operations, optimise
from zwang.errors import CompileError

SEEDS = st.integers(0, 10**9)


def program_of(function, size=2):
    return trace(function, {"x": (size,)})


@given(SEEDS)
def test_traced_equals_float_on_random_functions_with_control_flow(seed):
    function, inputs = random_function(seed), random_inputs(seed, 5)
    got = interpret(verify(program_of(function, SIZE)), {"x": inputs})["out"]
    expected = [[float(y) for y in function(row)] for row in inputs.tolist()]
    np.testing.assert_array_equal(got, expected)


@given(SEEDS)
def test_dead_code_elimination_and_scheduling_change_no_bit(seed):
    program, inputs = program_of(random_function(seed), SIZE), {"x": random_inputs(seed, 5)}
    expected = interpret(program, inputs)["out"]
    for changed in (remove_dead_code(program), schedule(program), schedule(remove_dead_code(program))):
        np.testing.assert_array_equal(interpret(verify(changed), inputs)["out"], expected)


@given(SEEDS)
def test_optimisation_is_idempotent_and_deterministic(seed):
    program = program_of(random_function(seed), SIZE)
    once = optimise(program)
    assert optimise(program) == once == optimise(program_of(random_function(seed), SIZE))
    assert count_operations(optimise(once)) == count_operations(once)


# ---------------------------------------------------------------------------------- fused multiply-adds


def operations(program):
    return [i.op for i in program.body.instructions if i.op not in ("const", "input")]


@pytest.mark.parametrize(
    ("function", "remaining"),
    [
        (lambda x: x[0] * x[1] + 3, ["fma"]),
        (lambda x: x[0] * x[1] - x[0], ["fms"]),
        (lambda x: x[0] - x[0] * x[1], ["fnma"]),
        (lambda x: x[0] * x[0] + x[1] * x[1], ["mul", "fma"]),
        (lambda x: -(x[0] * x[1]) - x[1], ["fma", "neg"]),
        (lambda x: -(x[0] * x[1] - x[1]), ["fnma"]),
        (lambda x: -(x[1] - x[0] * x[1]), ["fms"]),
        (lambda x: -(x[0] - x[1]), ["sub"]),
        (lambda x: scalar.sin(x[1] - x[0]) + (x[1] - x[0]) ** 2, ["sub", "sin", "fms"]),
        (lambda x: scalar.exp(x[0] - x[1]) + scalar.exp(x[1] - x[0]), ["sub", "exp", "neg", "exp", "add"]),
        (lambda x: 3 - x[0] * x[1], ["fnma"]),
        (lambda x: -(x[0] * 2.5) + 3, ["fnma"]),
        (lambda x: -(3 - x[0]), ["add"]),
        (lambda x: x[0] * x[1] + scalar.sin(x[0] * x[1]), ["mul", "sin", "add"]),
        (lambda x: (x[0] * x[1] + 1) * (x[0] * x[1] - 1), ["fma", "fma", "mul"]),
    ],
)
def test_products_fuse_into_sums(function, remaining):
    program = fuse(program_of(lambda x: [function(x)]))
    assert operations(program) == remaining
    x = [1.1, -2.7]
    assert interpret(program, {"x": x})["out"][0] == pytest.approx(float(function(x)), rel=1e-15)


def test_a_fused_operation_rounds_once():
    program = fuse(program_of(lambda x: [x[0] * x[0] - x[1]]))
    a = 1 + 2.0**-30
    exact = Fraction(a) ** 2 - Fraction(1 + 2.0**-29)
    assert interpret(program, {"x": [a, 1 + 2.0**-29]})["out"][0] == float(exact) == 2.0**-60


@given(*[st.floats(allow_nan=False, allow_infinity=False)] * 3)
def test_the_fused_operation_of_the_interpreter_is_correctly_rounded(a, b, c):
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    got = fused(a, b, c)
    if math.isinf(got):
        assert abs(exact) > Fraction(2) ** 1023
    else:
        below, above = math.nextafter(got, -math.inf), math.nextafter(got, math.inf)
        error = abs(Fraction(got) - exact)
        assert all(error <= abs(Fraction(x) - exact) for x in (below, above) if math.isfinite(x))


@given(
    *[st.floats(width=32, allow_nan=False, allow_infinity=False, min_value=-(2.0**60), max_value=2.0**60)] * 3
)
def test_the_single_precision_fused_operation_of_the_interpreter_is_correctly_rounded(a, b, c):
    program = fuse(program_of(lambda x: [x[0] * x[1] + x[2]], 3))
    got = np.float32(interpret(program, {"x": [a, b, c]}, "float32")["out"][0])
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    error = abs(Fraction(float(got)) - exact)
    for x in (np.nextafter(got, np.float32(-np.inf)), np.nextafter(got, np.float32(np.inf))):
        assert error <= abs(Fraction(float(x)) - exact)


# ---------------------------------------------------------------------------------- scheduling


def test_scheduling_keeps_fewer_values_live():
    """All products before all sums is the worst order for a matrix product."""

    def function(x):
        A, b = x[:100].reshape(10, 10), x[100:]
        products = [[scalar.sin(A[i, j]) * b[j] for j in range(10)] for i in range(10)]
        return [sum(row[1:], row[0]) for row in products]

    def memory_traffic(program):
        graph = _Graph(program.body.instructions, program.body.results)
        return traffic(graph, range(len(program.body.instructions)))

    program = program_of(function, 110)
    assert memory_traffic(program) > 100
    assert memory_traffic(schedule(program)) < 10


def test_reads_of_an_array_stay_before_its_change():
    def function(x):
        a = scalar.zeros(2).set(0, x[0])
        total = scalar.fori_loop(
            0, 2, lambda i, t: t + a[i], 0, unroll=False
        )  # the array is read at a loop index
        first = a[0]
        a = a.set(0, x[1] * 100)
        return [a[0] + total, first * total]

    program = program_of(function)
    assert list(interpret(verify(schedule(fuse(program))), {"x": [2.0, 3.0]})["out"]) == [302.0, 4.0]


# ---------------------------------------------------------------------------------- counting


def test_operations_are_counted_by_kind():
    def function(x):
        y = scalar.fori_loop(0, 10, lambda i, y: y * x[0] + x[1], 1.5, unroll=False)
        return [scalar.where(y < 2, scalar.sqrt(y), x[0] / 3.0)]

    counts = count_operations(optimise(program_of(function)))
    assert counts == {"div": 1, "fma": 10, "lt": 1, "select": 1, "sqrt": 1, "total": 14, "flops": 22}


# ---------------------------------------------------------------------------------- verification


@pytest.mark.parametrize(
    ("instruction", "message"),
    [
        (Instruction("add", (0, 99), (50,)), "reads 99"),
        (Instruction("add", (0, 0), (0,)), "defined twice"),
        (Instruction("lt", (0, 0), (50,)), "should have the kind bool"),
        (Instruction("add", (0,), (50,)), "add of"),
        (Instruction("frobnicate", (0, 0), (50,)), "frobnicate"),
    ],
)
def test_an_invalid_program_is_rejected(instruction, message):
    program = program_of(lambda x: [x[0]])
    body = replace(program.body, instructions=(*program.body.instructions, instruction))
    with pytest.raises(CompileError, match=message):
        verify(replace(program, body=body, kinds={**program.kinds, 50: "real"}))


def test_an_array_is_not_read_after_its_change():
    def function(x):
        a = scalar.zeros(2).set(0, x[0])
        scalar.fori_loop(0, 2, lambda i, t: t + a[i], 0, unroll=False)
        return [a.set(0, x[1])[0] + scalar.fori_loop(0, 2, lambda i, t: t + 1, x[0], unroll=False)]

    def late(x):
        a = scalar.zeros(2).set(scalar.table([1, 0])[0], x[0])
        first = scalar.fori_loop(0, 2, lambda i, t: t + a[i], 0, unroll=False)
        return [first, a.set(0, x[1])[0]]

    program = verify(program_of(late))
    positions = {i.op: k for k, i in enumerate(program.body.instructions)}
    moved = list(program.body.instructions)
    moved.append(moved.pop(positions["for"]))
    with pytest.raises(CompileError, match="after it was overwritten"):
        verify(replace(program, body=replace(program.body, instructions=tuple(moved))))
