"""Branches: values that one branch alone needs are computed in it, and branches that all lanes take alike."""

import numpy as np
import pytest

from zwang import scalar
from zwang.compiler.frontend.trace import trace
from zwang.compiler.ir.interpreter import interpret
from zwang.compiler.ir.program import blocks_of
from zwang.compiler.ir.uniformity import uniform_values
from zwang.compiler.pipeline import optimise
from zwang.compiler.runtime.compiled_function import CompiledFunction
from zwang.scalar import cond, empty, fori_loop, table, zeros

WEIGHTS = [0.5, 2.0, -1.0, 3.0, -0.25]


def operations(block):
    """The operations of a block, and of the blocks in it by their depth."""
    return [
        (i.op, [operations(inner) for inner in blocks_of(i)] if blocks_of(i) else None)
        for i in block.instructions
    ]


def flat(listed):
    """The names of all operations."""
    names = []
    for op, inner in listed:
        names.append(op)
        for block in inner or ():
            names += flat(block)
    return names


def early(x):
    """A sine that one branch needs, a cosine that both need, and a root that the condition needs."""
    sine, cosine, root = scalar.sin(x[1]), scalar.cos(x[1]), scalar.sqrt(x[0])
    return cond(root < 1, lambda: sine * cosine + root, lambda: cosine)


def before_loop(x):
    """A sine that only a loop in a branch needs."""
    sine = scalar.sin(x[1])

    def total(_):
        return fori_loop(0, 50, lambda k, t: t * sine + 1.0 * k, 0.0, unroll=False)

    return cond(x[0] < 1, total, lambda y: y, x[0])


def overwritten(x):
    """Elements that are read before they are overwritten, and that only a later branch needs."""

    def body(k, carry):
        array, total = carry
        old = array[k]
        array = array.set(k, x[0] + 1.0 * k)
        return array, cond(x[1] < total, lambda: total + old, lambda: total + 1)

    array = zeros(4)
    for k in range(4):
        array = array.set(k, x[1] * k)
    return fori_loop(0, 4, body, (array, x[0]), unroll=False)[1]


def chosen(x):
    """Branches by a table, some within a branch that differs from lane to lane, with stores in them."""
    weights = table(WEIGHTS)

    def body(k, carry):
        array, total = carry

        def positive(array, total):
            return array.set(k, total * weights[k]), total + weights[k]

        def negative(array, total):
            return array.set(k, -total), total - x[1]

        def either(array, total):
            return cond(weights[k] > 0, positive, negative, array, total)

        return cond(x[0] < total, either, lambda array, total: (array, total + 0.25), array, total)

    array, total = fori_loop(0, len(WEIGHTS), body, (zeros(len(WEIGHTS)), x[1] * 0.5), unroll=False)
    return [total, *(array[k] for k in range(len(WEIGHTS)))]


def by_number(x):
    """The results of branches without instructions, by a table."""
    weights = table(WEIGHTS)

    def body(k, pair):
        swapped = cond(weights[k] > 0, lambda a, b: (b, a), lambda a, b: (a, b), *pair)
        return cond(weights[k] > 2, lambda a, b: (a + x[0], b), lambda a, b: (a, b), *swapped)

    return list(fori_loop(0, len(WEIGHTS), body, (x[0], x[1]), unroll=False))


def test_a_value_that_one_branch_needs_is_computed_in_it():
    listed = operations(trace(early, {"x": (2,)}).body)
    outer = [op for op, _ in listed]
    assert "sin" not in outer and {"cos", "sqrt"} <= set(outer) and flat(listed).count("sin") == 1


def test_nothing_moves_into_a_loop():
    listed = operations(trace(before_loop, {"x": (2,)}).body)
    (branches,) = (inner for op, inner in listed if op == "cond")
    taken = branches[0]
    assert "sin" in [op for op, _ in taken] and "sin" not in [op for op, _ in listed]


def test_values_from_tables_are_alike_in_all_lanes():
    program = optimise(trace(chosen, {"x": (2,)}))
    uniform, found = uniform_values(program), []

    def visit(block):
        for i in block.instructions:
            if i.op == "cond":
                found.append(i.args[0] in uniform)
            for inner in blocks_of(i):
                visit(inner)

    visit(program.body)
    assert sorted(found) == [False, True]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("function", [early, before_loop, overwritten, chosen, by_number])
def test_compiled_equals_interpreted_and_floats_in_any_number_of_worlds(function, dtype):
    x = np.random.default_rng(2).uniform(0, 2, (37, 2)).astype(dtype)
    program = optimise(trace(function, {"x": (2,)}))
    compiled = CompiledFunction(program, dtype=dtype, cache=False, threads=1)
    found = np.reshape(compiled(x), (37, -1))
    expected = np.array([np.ravel(function([float(y) for y in row])) for row in x], float)
    np.testing.assert_allclose(found, expected, rtol=1e-14 if dtype == "float64" else 1e-5, atol=1e-6)
    np.testing.assert_allclose(
        np.reshape(interpret(program, {"x": x}, dtype)["out"], (37, -1)), expected, rtol=1e-5, atol=1e-6
    )
    for k in (0, 5, 36):
        assert np.array_equal(np.ravel(compiled(x[k])), found[k])


def test_an_array_that_is_new_in_both_branches():
    def function(x):
        def filled(value):
            return empty(2).set(0, value).set(1, 2 * value)

        def body(k, total):
            array = cond(table(WEIGHTS)[k] > 0, lambda: filled(x[0]), lambda: filled(-x[1]))
            return total + array[0] * array[1]

        return fori_loop(0, len(WEIGHTS), body, 0.0, unroll=False)

    x = np.random.default_rng(3).uniform(0, 2, (19, 2))
    compiled = CompiledFunction(optimise(trace(function, {"x": (2,)})), cache=False, threads=1)
    np.testing.assert_allclose(np.ravel(compiled(x)), 6 * x[:, 0] ** 2 + 4 * x[:, 1] ** 2, rtol=1e-14)
