"""Loop rolling changes no bit, and the size of a program of equal parts does not grow with their number."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import zwang as zw
from tests.compiler.random_functions import SIZE, random_function, random_inputs
from tests.compiler.test_c import called, compiled, needs_cc, same_bits
from zwang.compiler.backends.c import source
from zwang.compiler.frontend.trace import trace
from zwang.compiler.ir.interpreter import interpret
from zwang.compiler.ir.program import blocks_of
from zwang.compiler.ir.verify import verify
from zwang.compiler.passes.dead_code import remove_dead_code
from zwang.compiler.passes.fused_multiply_add import fuse
from zwang.compiler.passes.loop_rolling import roll_loops
from zwang.compiler.passes.rolling_limits import RollingLimits
from zwang.compiler.passes.schedule import schedule
from zwang.compiler.runtime.compiled_function import CompiledFunction
from zwang.scalar import cond, empty, fori_loop, less, logical_and, maximum, sin, where, while_loop, zeros

EVERYTHING = RollingLimits(0, 0, np.inf, np.inf, 2, 1, 4, 8, 4, 1)
"""Limits that roll whatever can be rolled, worthwhile or not."""
MANY = RollingLimits(0, 0, 1.0, 1.0, 4, 8, 8, 40, 8, 1)


def size(block):
    return sum(1 + sum(map(size, blocks_of(i))) for i in block.instructions)


def both(function, inputs, limits=MANY):
    """The program of a function before and after loop rolling."""
    program = fuse(remove_dead_code(trace(function, {name: x.shape[1] for name, x in inputs.items()})))
    return program, verify(schedule(roll_loops(program, limits)))


def assert_same_bits(programs, inputs):
    before, after = (interpret(p, inputs) for p in programs)
    for name, expected in before.items():
        np.testing.assert_array_equal(after[name], expected)


@given(st.integers(0, 10**9))
def test_rolling_random_functions_with_control_flow_changes_no_bit(seed):
    inputs = {"x": random_inputs(seed, 5)}
    assert inputs["x"].shape[1] == SIZE
    assert_same_bits(both(random_function(seed), inputs, EVERYTHING), inputs)


# --------------------------------------------------------------------------------- functions of equal parts


def independent(x, y):
    """Parts of three numbers each, whose constants differ, beside parts of another kind."""
    n = len(x) // 3
    parts = [
        [sin(x[3 * k] * (1 + 0.1 * k)) + x[3 * k + 1], x[3 * k + 1] * x[3 * k + 2] - y[k], 2.0 - y[k]]
        for k in range(n)
    ]
    return {"a": np.array([p for part in parts for p in part]), "b": np.array([z * z for z in y])}


def coupled(x, y):
    """Sums, maxima and truth values over all parts, and what each part makes of them."""
    n = len(y)
    norm, largest, small = 0.0, y[0], True
    for k in range(n):
        norm = norm + x[k] * y[k]
        largest = maximum(largest, x[k] - y[k])
        small = logical_and(less(y[k] * y[k], 4.0 + k), small)
    scaled = [where(small, x[k] / norm, largest * y[k]) for k in range(n)]
    return {"a": np.array(scaled), "b": np.array([norm, largest, where(small, 1, 0)])}


def with_loops(x, y):
    """Carried and captured numbers, branches, and arrays that are overwritten in place."""
    n = len(y)
    array = empty(n)
    for k in range(n):
        array = array.set(k, x[k] + 1.0)

    def body(carry):
        values, array, count = carry
        for k in range(n):
            array = array.set(k, array[k] + values[k] * y[k])
        values = [0.5 * values[k] + array[k] for k in range(n)]
        return values, array, count + 1.0

    values, array, _ = while_loop(lambda c: less(c[2], 2.0 + y[0]), body, (list(x[:n]), array, 0.0))
    taken = cond(
        less(values[0], y[1]),
        lambda: [v * 2.0 for v in values],
        lambda: [a - b for a, b in zip(values, y, strict=True)],
    )
    return {"a": np.array(taken), "b": np.array([array[k] * y[k] for k in range(n)])}


def shifted(x, y):
    """Parts that read what the part before them overwrites: these are no loop."""
    n, array = len(y), zeros(len(y) + 1)
    for k in range(n):
        array = array.set(k, x[k])

    def body(_, array):
        for k in range(n):
            array = array.set(k + 1, array[k] * y[k] + 1.0)
        return array

    array = fori_loop(0, 3, body, array, unroll=False)
    return {"a": np.array([array[k] for k in range(n + 1)])}


def rows(x, y):
    """Rows of a matrix, which begin at an index that is known only in a loop."""
    n, matrix = len(y), empty((4, len(y)))

    def fill(i, matrix):
        for k in range(n):
            matrix = matrix.set((i, k), x[k] * (1.0 * i) - y[k])
        return matrix

    matrix = fori_loop(0, 4, fill, matrix, unroll=False)

    def product(i, total):
        return total + sum(matrix[i, k] * y[k] for k in range(n))

    return {"a": np.array([fori_loop(0, 4, product, 0.0, unroll=False)])}


FUNCTIONS = [independent, coupled, with_loops, shifted, rows]


def inputs_of(n, worlds=3):
    rng = np.random.default_rng(n)
    return {"x": rng.normal(size=(worlds, 3 * n)), "y": rng.normal(size=(worlds, n))}


@pytest.mark.parametrize("limits", [MANY, EVERYTHING], ids=["many", "everything"])
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_rolling_equal_parts_changes_no_bit(function, limits):
    inputs = inputs_of(30)
    programs = both(function, inputs, limits)
    assert_same_bits(programs, inputs)
    before, after = (
        np.hstack(CompiledFunction(p, cache=False, threads=1)(*inputs.values())) for p in programs
    )
    np.testing.assert_array_equal(after, before)


@pytest.mark.parametrize("function", [f for f in FUNCTIONS if f is not shifted], ids=lambda f: f.__name__)
def test_the_size_of_a_program_of_equal_parts_does_not_grow_with_their_number(function):
    (short, _), (long, rolled) = (both(function, inputs_of(n)) for n in (20, 40))
    _, few = both(function, inputs_of(20))
    assert size(long.body) > 1.7 * size(short.body)
    assert size(rolled.body) == size(few.body) < size(short.body)


@needs_cc
def test_rolled_programs_give_the_same_bits_in_c(tmp_path):
    inputs = inputs_of(30, worlds=1)
    world = {name: x[0] for name, x in inputs.items()}
    for function in FUNCTIONS:
        folder = tmp_path / function.__name__
        folder.mkdir()
        before, after = both(function, inputs, EVERYTHING)
        call = compiled(folder, [source(after, "f")]).f
        expected = CompiledFunction(before, cache=False, threads=1)(*world.values())
        same_bits(called(call, after, world, "float64"), np.hstack(expected))


def test_rolled_programs_are_loops_in_c():
    lengths = [len(re.findall("\n", source(both(with_loops, inputs_of(n))[1]))) for n in (20, 40)]
    assert lengths[0] == lengths[1]


# ------------------------------------------------------------------------------------------------ bodies


def free_bodies(numbers):
    """Free bodies whose masses and inertias differ."""
    return zw.Mechanism(
        bodies=[
            zw.Body(
                f"b{k}", joint=zw.Free(f"j{k}"), mass=1 + 0.3 * k, com=(0.1, 0.02 * k, 0.3),
                inertia=(1.0 + k, 2.0 + k, 2.5 + k),
            )
            for k in numbers
        ]
    )  # fmt: skip


def test_each_of_many_free_bodies_moves_as_it_does_alone():
    n = 30
    mechanism = free_bodies(range(n))
    rng = np.random.default_rng(1)
    q, v = rng.normal(size=7 * n), rng.normal(size=6 * n)
    for k in range(n):
        q[7 * k + 3 : 7 * k + 7] /= np.linalg.norm(q[7 * k + 3 : 7 * k + 7])
    force = rng.normal(size=6 * n)
    together = zw.compile(mechanism).rollout(q, v, force, steps=5, step=0.01)
    for k in (0, 7, n - 1):
        own = slice(7 * k, 7 * k + 7), slice(6 * k, 6 * k + 6)
        alone = zw.compile(free_bodies([k])).rollout(q[own[0]], v[own[1]], force[own[1]], steps=5, step=0.01)
        np.testing.assert_array_equal(together.q[..., own[0]], alone.q)
        np.testing.assert_array_equal(together.v[..., own[1]], alone.v)
