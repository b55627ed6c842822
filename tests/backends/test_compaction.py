"""Compaction keeps the items of a list comprehension, on floats, interpreted and compiled."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zwang.compiler.ir.interpreter import interpret
from zwang.compiler.pipeline import trace_and_optimise
from zwang.compiler.runtime.compiled_function import CompiledFunction
from zwang.scalar import compact, cond, empty, fori_loop, pack_signs, unpack_signs, where, zeros

ITEMS = 7


def kept(x):
    """The number of items with x > 0, and of each (number, x, 2 x) plus one."""
    values, pairs = empty(ITEMS), empty((ITEMS, 2))
    for k in range(ITEMS):
        values = values.set(k, x[k])
        pairs = pairs.set((k, 0), x[k]).set((k, 1), 2 * x[k])

    def visit(i, appender):
        return cond(values[i] > 0, lambda a: a.append(i), lambda a: a, appender)

    def fill(appender):
        return fori_loop(0, ITEMS, visit, appender, unroll=False), "other"

    found, other = compact(ITEMS, fill)
    assert other == "other"

    def copy(k, out):
        first, second = found.read(pairs, k, 2)
        for c, value in enumerate((found.numbers[k], first, second)):
            out = out.set((k, c), where(found.has(k), value + 1, 0.0))
        return out

    out = fori_loop(0, found.lane_count, copy, zeros((ITEMS, 3)))
    return [found.count, *(out[k, c] for k in range(ITEMS) for c in range(3))]


def expected(x):
    numbers = [k for k in range(ITEMS) if x[k] > 0]
    records = [[k + 1, x[k] + 1, 2 * x[k] + 1] for k in numbers]
    return np.array([len(numbers), *np.ravel(records), *[0.0] * (3 * (ITEMS - len(numbers)))])


WORLDS = np.random.default_rng(0).integers(-3, 5, size=(11, ITEMS)) / 2.0  # exact in both precisions


def test_on_floats_the_items_are_those_of_a_list_comprehension():
    for x in WORLDS:
        np.testing.assert_array_equal(np.array(kept(x), float), expected(x))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_interpreted_and_compiled_worlds_keep_their_own_items(dtype):
    program = trace_and_optimise(lambda x: np.array(kept(x)), {"x": ITEMS})
    wanted = [expected(x) for x in WORLDS]
    np.testing.assert_array_equal(interpret(program, {"x": WORLDS}, dtype)["out"], wanted)
    for lanes in (1, 4, 16):
        found = CompiledFunction(program, dtype=dtype, lanes=lanes, threads=1, cache=False)(WORLDS)
        np.testing.assert_array_equal(found, wanted)


@given(st.lists(st.sampled_from([-1.0, 0.0, 1.0]), min_size=1, max_size=60))
def test_packed_signs_are_unpacked_in_both_precisions(signs):
    words = pack_signs(signs)
    assert len(words) == -(-len(signs) // 12)
    for precision in (float, np.float32):
        stored = [float(precision(word)) for word in words]
        assert unpack_signs(stored, len(signs)) == signs
