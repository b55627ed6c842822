"""Whole arrays as inputs and outputs: copies of an input, arrays that are an output, arrays of branches."""

import ctypes

import numpy as np
import pytest

from tests.compiler.test_c import CC, FLAGS, called, compiled, needs_cc
from zwang import scalar
from zwang.compiler.backends import c
from zwang.compiler.derivatives.differentiate import jacobian
from zwang.compiler.frontend.trace import trace
from zwang.compiler.ir.interpreter import interpret
from zwang.compiler.pipeline import optimise
from zwang.compiler.runtime.compiled_function import CompiledFunction
from zwang.errors import TraceError

SIZE, LAST = 50, 3
SIZES = {"x": (3,)}


def running_sum(x, carried):
    """The sum of x[2] and the kept values; those kept next are reversed if x[1] > 0, else scaled by x[0], and
    the fourth one is the sum.
    """
    before = carried.warm_start(SIZE)
    after = scalar.cond(x[1] > 0, lambda: reversed_copy(before), lambda: scaled_copy(before, x[0]))

    def add(k, total):
        return total + before[k]

    total = scalar.fori_loop(0, SIZE, add, x[2], unroll=False)
    carried.keep(after.set(LAST, total))
    return {"total": [total, x[0]]}


def reversed_copy(values):
    return scalar.fori_loop(
        0, SIZE, lambda k, new: new.set(SIZE - 1 - k, values[k]), scalar.empty(SIZE), unroll=False
    )


def scaled_copy(values, factor):
    return scalar.fori_loop(
        0, SIZE, lambda k, new: new.set(k, factor * values[k]), scalar.empty(SIZE), unroll=False
    )


def expected(x, kept):
    total = x[2]
    for value in kept:
        total = total + value
    new = kept[::-1].copy() if x[1] > 0 else x[0] * kept
    new[LAST] = total
    return np.array([total, x[0]]), new


def program():
    return optimise(trace(running_sum, SIZES, carried="kept"))


def worlds(count):
    rng = np.random.default_rng(0)
    return rng.normal(size=(count, 3)), rng.normal(size=(count, SIZE))


def test_carried_values_are_copied_as_a_whole() -> None:
    ops = [i.op for i in program().body.instructions]
    assert ops.count("input_array") == 1 and ops.count("input") <= 3


@pytest.mark.parametrize("count", [1, 11])
def test_whole_arrays_compiled_and_interpreted(count: int) -> None:
    x, kept = worlds(count)
    totals, after = CompiledFunction(program(), cache=False)(x, kept)
    interpreted = interpret(program(), {"x": x, "kept": kept})
    for k in range(count):
        total, new = expected(x[k], kept[k])
        assert np.array_equal(totals[k], total) and np.array_equal(after[k], new)
    assert np.array_equal(interpreted["total"], totals) and np.array_equal(interpreted["kept"], after)


@needs_cc
@pytest.mark.parametrize("longest", [None, 8])
def test_whole_arrays_in_c(tmp_path, longest) -> None:
    assert CC and FLAGS
    function = c.c_function(program(), "whole", longest_on_stack=longest)
    library = compiled(tmp_path, [c.preamble("float64"), function.text])
    x, kept = worlds(4)
    work = np.full(function.work, np.nan)
    for k in range(4):
        total, new = expected(x[k], kept[k])
        if longest is None:
            found = called(library.whole, program(), {"x": x[k], "kept": kept[k]}, "float64")
        else:
            outputs = np.full(2, np.nan), np.full(SIZE, np.nan)
            library.whole(*(ctypes.c_void_p(a.ctypes.data) for a in (x[k], kept[k], *outputs, work)))
            found = np.concatenate(outputs)
        assert np.array_equal(found, np.concatenate([total, new]))


def test_a_copied_input_is_not_differentiated() -> None:
    def function(x):
        array = scalar.empty(3)
        for k in range(3):
            array = array.set(k, x[k])
        total = scalar.fori_loop(0, 3, lambda k, total: total + array[k], 0.0, unroll=False)
        return jacobian([total], x)

    with pytest.raises(TraceError, match="only straight-line code can be differentiated"):
        trace(function, {"x": (3,)})
