"""Loops, branches and mutable arrays give the same results on floats and in programs, lane by lane."""

import math

import numpy as np
import pytest

from zwang import scalar
from zwang.api.compilation.compiled import compile_function
from zwang.compiler.frontend.trace import trace
from zwang.compiler.ir.interpreter import interpret
from zwang.compiler.ir.verify import verify
from zwang.compiler.pipeline import optimise
from zwang.compiler.runtime.compiled_function import CompiledFunction
from zwang.errors import TraceError

# ---------------------------------------------------------------------------------- algorithms


def newton_root(a):
    """Square root of a[0] by Newton's method, and the number of iterations."""

    def step(carry):
        x, n = carry
        return (x + a[0] / x) / 2, n + 1

    def not_converged(carry):
        x, n = carry
        return scalar.logical_and(scalar.absolute(x * x - a[0]) > 1e-12 * a[0], n < 50)

    return list(scalar.while_loop(not_converged, step, (1 + a[0], 0)))


def kepler(a):
    """Solution E of Kepler's equation E - e sin E = M by bisection, to 1e-12; M, e = a."""

    def halve(carry):
        low, high = carry["low"], carry["high"]
        middle = (low + high) / 2
        above = middle - a[1] * scalar.sin(middle) > a[0]
        return {"low": scalar.where(above, low, middle), "high": scalar.where(above, middle, high)}

    found = scalar.while_loop(
        lambda c: c["high"] - c["low"] > 1e-12, halve, {"low": a[0] - 1, "high": a[0] + 1}
    )
    return [(found["low"] + found["high"]) / 2]


SIZE = 4
PAIRS = [(i, j) for j in range(SIZE) for i in range(j, SIZE)]
TRIPLES = [(i, j, k) for j in range(SIZE) for i in range(j, SIZE) for k in range(j)]


def cholesky(a, unroll):
    """L of A = L L^T, column by column, in three loops over mutable arrays, then det A by its diagonal."""
    A = np.reshape(a, (SIZE, SIZE))
    L = scalar.zeros((SIZE, SIZE))
    for i, j in PAIRS:
        L = L.set((i, j), A[i, j])

    def column(j, L):
        L = L.set((j, j), scalar.sqrt(L[j, j]))
        L = scalar.fori_loop(0, SIZE, lambda i, L: scale(i, j, L), L, unroll=unroll)
        return scalar.fori_loop(
            0, SIZE * SIZE, lambda n, L: reduce(ROWS[n], COLUMNS[n], j, L), L, unroll=unroll
        )

    def scale(i, j, L):
        return L.set((i, j), scalar.where(scalar.less(j, i), L[i, j] / L[j, j], L[i, j]))

    def reduce(i, k, j, L):
        below = scalar.logical_and(scalar.less(j, k), scalar.less_equal(k, i))
        return L.set((i, k), scalar.where(below, L[i, k] - L[i, j] * L[k, j], L[i, k]))

    L = scalar.fori_loop(0, SIZE, column, L, unroll=unroll)
    det = scalar.fori_loop(0, SIZE, lambda i, d: d * L[i, i] * L[i, i], 1, unroll=unroll)
    return [L[i, j] for i in range(SIZE) for j in range(SIZE)] + [det]


ROWS = scalar.table([n // SIZE for n in range(SIZE * SIZE)])
COLUMNS = scalar.table([n % SIZE for n in range(SIZE * SIZE)])


def in_lanes(function, inputs, size):
    """Program of a function, and its outputs over lanes: interpreted, optimised, and on floats."""
    program = verify(trace(function, {"x": (size,)}))
    expected = np.array([[float(y) for y in function(row)] for row in np.asarray(inputs).tolist()])
    got = interpret(program, {"x": inputs})["out"]
    return program, got, interpret(optimise(program), {"x": inputs})["out"], expected


def test_newtons_method_in_lanes_that_finish_at_different_times():
    inputs = np.array([[2.0], [1e-3], [1e6], [4.0], [math.nan], [0.25]])
    _, got, optimised, expected = in_lanes(newton_root, inputs, 1)
    np.testing.assert_array_equal(got, expected)
    assert len(set(got[:, 1])) >= 4  # the number of iterations differs between lanes
    good = np.isfinite(inputs[:, 0])
    np.testing.assert_allclose(optimised[good, 0], np.sqrt(inputs[good, 0]), rtol=1e-12)


def test_bisection_solves_keplers_equation():
    inputs = np.array([[0.1, 0.9], [3.0, 0.5], [1.0, 0.0]])
    _, got, optimised, expected = in_lanes(kepler, inputs, 2)
    np.testing.assert_array_equal(got, expected)
    for E in (got[:, 0], optimised[:, 0]):
        np.testing.assert_allclose(E - inputs[:, 1] * np.sin(E), inputs[:, 0], atol=1e-11)


@pytest.mark.parametrize("unroll", [True, False, None])
def test_cholesky_in_loops_over_mutable_arrays(unroll):
    B = np.random.default_rng(1).normal(size=(3, SIZE, SIZE))
    A = (B @ B.transpose(0, 2, 1) + np.eye(SIZE)).reshape(3, -1)
    program, got, optimised, expected = in_lanes(lambda a: cholesky(a, unroll), A, SIZE * SIZE)
    loops = [i for i in program.body.instructions if i.op == "for"]
    assert bool(loops) == (unroll is False)
    np.testing.assert_array_equal(got, expected)
    L = optimised[:, :-1].reshape(3, SIZE, SIZE)
    np.testing.assert_allclose(L @ L.transpose(0, 2, 1), A.reshape(3, SIZE, SIZE), rtol=1e-12)
    np.testing.assert_allclose(optimised[:, -1], np.linalg.det(A.reshape(3, SIZE, SIZE)), rtol=1e-10)


# ---------------------------------------------------------------------------------- semantics


def test_a_loop_over_active_indices_visits_those_of_each_lane_in_order():
    def function(x):
        flags = scalar.empty(4)
        for k in range(4):
            flags = flags.set(k, x[k])
        return list(
            scalar.for_each(
                scalar.ActiveIndices(flags), lambda i, c: (10 * c[0] + i, c[1] + flags[i]), (0, 0)
            )
        )

    inputs = np.array(
        [[1.0, 0.0, 2.0, 3.0], [-1.0, -2.0, 0.0, -3.0], [0.0, 5.0, -1.0, math.nan], [1.0, 1.0, 1.0, 1.0]]
    )
    _, got, optimised, expected = in_lanes(function, inputs, 4)
    np.testing.assert_array_equal(expected, [[23, 6], [0, 0], [1, 5], [123, 4]])
    np.testing.assert_array_equal(got, expected)
    np.testing.assert_array_equal(optimised, expected)


def test_an_empty_array_has_no_values_until_they_are_set():
    with pytest.raises(TraceError, match="never set"):
        trace(lambda x: [scalar.empty(2).set(0, x[0])[1]], {"x": (1,)})
    assert math.isnan(scalar.empty(2)[1])


def test_a_segment_of_an_array_has_its_elements():
    def segments(x):
        array = scalar.empty(4)
        for k in range(4):
            array = array.set(k, x[k])

        def add(k, total):
            return total + np.array(array.segment(k, 3))

        return scalar.fori_loop(0, 2, add, np.array(array.segment(1, 3)), unroll=False)

    x, expected = [1.0, 2.0, 4.0, 8.0], [2.0 + 1 + 2, 4.0 + 2 + 4, 8.0 + 4 + 8]
    assert segments(x).tolist() == expected
    assert compile_function(segments, {"x": 4})(np.array(x)).tolist() == expected
    assert scalar.zeros(4).segment(4, 0) == []
    for start, count in ((2, 3), (-1, 2)):
        with pytest.raises(IndexError, match="outside"):
            scalar.zeros(4).segment(start, count)


def test_a_branch_captures_values_and_may_change_an_array_that_is_an_operand():
    def function(x):
        table = scalar.zeros(3).set(0, x[1]).set(1, 7.0)

        def up(a, y):
            return y + scalar.sqrt(x[0]), a.set(2, a[1] * x[0])

        def down(a, y):
            return 0, a.set(2, -1.0)

        y, table = scalar.cond(scalar.less(0, x[0]), up, down, table, x[1])
        return [y, table[0], table[1], table[2]]

    inputs = np.array([[4.0, 1.0], [-4.0, 2.0], [0.0, 3.0]])
    _, got, optimised, expected = in_lanes(function, inputs, 2)
    np.testing.assert_array_equal(got, expected)
    np.testing.assert_array_equal(optimised, expected)
    np.testing.assert_array_equal(expected[0], [3.0, 1.0, 7.0, 28.0])


def test_operations_stay_in_branches_and_loop_invariant_ones_leave_loops():
    def function(x):
        total = scalar.fori_loop(0, 100, lambda i, t: t + scalar.sin(x[0]) * i, 0, unroll=False)
        return [total + scalar.cond(x[1] > 0, lambda: scalar.exp(x[0]), lambda: 0)]

    program = verify(trace(function, {"x": (2,)}))
    outside = [i.op for i in program.body.instructions]
    assert "sin" in outside and "exp" not in outside
    [loop] = [i for i in program.body.instructions if i.op == "for"]
    assert "sin" not in [i.op for i in loop.data.body.instructions]
    x = [0.3, 1.0]
    assert interpret(program, {"x": x})["out"][0] == pytest.approx(
        4950 * math.sin(0.3) + math.exp(0.3), rel=1e-13
    )


def test_nested_loops_capture_values_of_all_levels():
    def function(x):
        def outer(i, carry):
            y, total = carry

            def inner(c):
                z, n = c
                return z * x[1] + y + i, n + 1

            z, n = scalar.while_loop(lambda c: scalar.logical_and(c[0] < x[2], c[1] < 20), inner, (y, 0))
            return y + 1, total + z + scalar.cond(n > i, lambda: n * x[0], lambda: -n)

        return list(scalar.fori_loop(0, 6, outer, (x[0], 0), unroll=False))

    inputs = np.array([[0.5, 1.1, 30.0], [1.0, 2.0, 5.0], [2.0, 0.5, 1.0]])
    _, got, _, expected = in_lanes(function, inputs, 3)
    np.testing.assert_array_equal(got, expected)


def test_truth_values_are_carried():
    def function(x):
        def step(carry):
            found, y = carry
            return scalar.logical_or(found, y > 10), y * x[0]

        found, y = scalar.while_loop(lambda c: scalar.logical_not(c[0]), step, (False, x[0]))
        return [scalar.where(found, y, -1)]

    _, got, _, expected = in_lanes(function, np.array([[1.5], [3.0], [20.0]]), 1)
    np.testing.assert_array_equal(got, expected)


def test_loops_over_the_rows_of_tables():
    rows = [[0.5, 0.0, 1.0], [0.0, 2.0, 0.0], [0.0, 0.0, 0.0]]

    def function(x, unroll):
        return [scalar.for_each(rows, lambda row, t: t + row @ x, 0, unroll=unroll)]

    x = np.array([1.0, 2.0, 3.0])
    rolled = verify(trace(lambda x: function(x, False), {"x": (3,)}))
    unrolled = verify(trace(lambda x: function(x, True), {"x": (3,)}))
    assert interpret(rolled, {"x": x})["out"] == interpret(unrolled, {"x": x})["out"] == [7.5]
    assert len([i for i in unrolled.body.instructions if i.op in ("mul", "add")]) == 4  # zeros fold away


def test_a_table_of_integers_is_an_index_into_another():
    order = [2, 0, 1]
    values = scalar.table([10.0, 20.0, 30.0])

    def function(x):
        positions = scalar.table(order)
        return [scalar.fori_loop(0, 3, lambda i, t: 2 * t + values[positions[i]] * x[0], 0, unroll=False)]

    [got] = interpret(verify(trace(function, {"x": (1,)})), {"x": [1.0]})["out"]
    assert got == 2 * (2 * 30.0 + 10.0) + 20.0


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_long_tables_keep_every_bit(dtype):
    """Of indices and reals, also where two tables differ only by the signs of zeros."""
    rng, count = np.random.default_rng(0), 700
    signs = np.copysign(0.0, rng.normal(size=count))
    order = rng.permutation(count)

    def function(x):
        tables = [scalar.table(values) for values in (signs, np.abs(signs), np.arange(count) / 7)]
        positions = scalar.table(order)

        def add(i, total):
            a, b, c = (t[positions[i]] for t in tables)
            return total + scalar.copysign(x[0], a) + 2 * scalar.copysign(x[0], b) * c

        return [scalar.fori_loop(0, count, add, 0, unroll=False)]

    x = np.arange(1.0, 17.0)[:, None].astype(dtype)
    got = CompiledFunction(optimise(trace(function, {"x": (1,)})), dtype=dtype)(x)[:, 0]
    expected = (np.copysign(1, signs).sum() + 2 * np.arange(count).sum() / 7) * x[:, 0]
    np.testing.assert_allclose(got, expected, rtol=1e-12 if dtype == "float64" else 1e-4)


def test_computed_indices_may_be_used_if_they_are_in_range():
    def function(x):
        t = scalar.table(np.arange(12.0))
        pick = scalar.table([2, 0, 1])
        return [
            scalar.fori_loop(
                0, 3, lambda i, c: c + t[11 - 4 * i] * x[0] + t[pick[2 - i] + 4 * i], 0, unroll=False
            )
        ]

    _, got, _, expected = in_lanes(function, np.array([[1.0], [2.0]]), 1)
    np.testing.assert_array_equal(got, expected)


def test_long_loops_stay_loops_and_short_ones_are_unrolled():
    def function(count):
        return lambda x: [scalar.fori_loop(0, count, lambda i, t: t * x[0] + i, 0)]

    def has_loop(count, **settings):
        return any(i.op == "for" for i in trace(function(count), {"x": (1,)}, **settings).body.instructions)

    assert not has_loop(40) and has_loop(100_000)
    assert has_loop(40, unroll=30) and not has_loop(2, unroll=0)
    [got] = interpret(trace(function(40), {"x": (1,)}, unroll=30), {"x": [0.5]})["out"]
    assert got == interpret(trace(function(40), {"x": (1,)}), {"x": [0.5]})["out"]


def test_an_array_made_before_a_loop_and_read_in_it_is_captured():
    def function(x):
        a = scalar.zeros(4)
        for i in range(4):
            a = a.set(i, x[0] + i)
        return [scalar.fori_loop(0, 4, lambda i, t: t + a[i] * a[i], 0, unroll=False), a[3]]

    _, got, optimised, expected = in_lanes(function, np.array([[1.0], [2.0]]), 1)
    np.testing.assert_array_equal(got, expected)
    np.testing.assert_array_equal(optimised, expected)


def test_unused_values_are_removed_from_the_loop():
    def function(x):
        def body(i, c):
            used, unused, fixed = c
            return used + fixed * x[0], unused * scalar.exp(used), fixed

        return [scalar.fori_loop(0, 50, body, (0, 1.0, x[1]), unroll=False)[0]]

    program = optimise(trace(function, {"x": (2,)}))
    [loop] = [i for i in program.body.instructions if i.op == "for"]
    assert loop.data.carried == 1 and "exp" not in [i.op for i in loop.data.body.instructions]
    assert interpret(program, {"x": [0.5, 2.0]})["out"] == [50.0]


# ---------------------------------------------------------------------------------- errors


def leaking(x):
    leaked = []
    scalar.while_loop(lambda c: c < 1, lambda c: leaked.append(c) or c + 1, x[0])
    return [leaked[0] + 1]


def leaking_output(x):
    leaked = []
    scalar.while_loop(lambda c: c < 1, lambda c: leaked.append(c) or c + 1, x[0])
    return leaked


def leaking_from_a_branch(x):
    found = []

    def then():
        found.append(2.0 * scalar.cos(x[0]))  # which does not depend on the branch
        return found[0]

    return [scalar.cond(x[0] > 0, then, lambda: 0.0 * x[0]), found[0]]


def set_from_outside(x):
    a = scalar.zeros(2)
    return [scalar.fori_loop(0, 2, lambda i, t: t + a.set(i, t)[0], x[0], unroll=False)]


def used_after_set(x):
    a = scalar.zeros(2)
    a.set(0, x[0])
    return [a[0]]


def swapped(x):
    pair = (scalar.zeros(2).set(0, x[0]), scalar.zeros(2))
    a, _ = scalar.fori_loop(0, 3, lambda i, c: (c[1], c[0]), pair, unroll=False)
    return [a[0]]


def changed_in_a_branch_only(x):
    a = scalar.zeros(2).set(0, x[0])
    y = scalar.cond(x[0] > 0, lambda a: a.set(1, 1.0)[1], lambda a: a[0], a)
    return [y + a[1]]


def read_at(index, x):
    t = scalar.table([1.0, 2.0, 3.0])
    return scalar.fori_loop(0, 3, lambda i, c: c + t[index(i)], x[0], unroll=False)


def set_at(index, x):
    return scalar.fori_loop(0, 3, lambda i, a: a.set(index(i), x[0]), scalar.zeros(3), unroll=False)[0]


@pytest.mark.parametrize(
    ("function", "advice"),
    [
        (leaking, "return it from the body"),
        (leaking_output, "return it from the body"),
        (leaking_from_a_branch, "return it from the body"),
        (set_from_outside, "carry the array"),
        (used_after_set, "use the array that set"),
        (swapped, "own position of the carry"),
        (changed_in_a_branch_only, "does not return it"),
        (
            lambda x: [scalar.while_loop(lambda c: c < 1, lambda c: (c, c), x[0])],
            "has to return the structure",
        ),
        (lambda x: [scalar.cond(x[0] > 0, lambda: (1, 2), lambda: 1)], "same structure"),
        (lambda x: [scalar.while_loop(lambda c: c, lambda c: c, x[0])], "truth value is required"),
        (
            lambda x: [scalar.while_loop(lambda c: c[0], lambda c: (c[1], c[1]), (x[0] > 0, x[0]))[1]],
            "comparison",
        ),
        (lambda x: [scalar.zeros(3)[x[0]]], "index of for_each"),
        (lambda x: [read_at(lambda i: i + 1, x)], r"may be 1 \.\.\. 3.*3 entries"),
        (lambda x: [read_at(lambda i: 1 - i, x)], r"may be -1 \.\.\. 1"),
        (lambda x: [read_at(lambda i: 2 * i, x)], r"may be 0 \.\.\. 4"),
        (lambda x: [read_at(lambda i: scalar.table([0, 7, 1])[i], x)], r"may be 0 \.\.\. 7"),
        (lambda x: [set_at(lambda i: i - 1, x)], r"may be -1 \.\.\. 1"),
        (lambda x: [scalar.fori_loop(0, 2, lambda i, c: i, x[0], unroll=False) + "1"], "unsupported operand"),
    ],
)
def test_operations_without_a_meaning_in_lanes_are_rejected(function, advice):
    with pytest.raises((TraceError, TypeError), match=advice):
        trace(function, {"x": (2,)})
