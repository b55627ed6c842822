"""Gather and scatter at positions that differ between lanes, and loops with variable bounds, give the same
results on floats, in the interpreter, compiled, and in C.

Every function below masks the iterations that a lane does not need, so that the result of a lane does not
depend on the other lanes.
"""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.compiler.test_c import called, many, needs_cc
from tests.compiler.test_widths import run_body
from zwang import scalar
from zwang.compiler.backends.llvm.lanes import WIDTHS, Lanes
from zwang.compiler.backends.ptx import ptx
from zwang.compiler.derivatives.differentiate import jacobian
from zwang.compiler.frontend.trace import trace
from zwang.compiler.ir.interpreter import interpret
from zwang.compiler.ir.program import Block, For, Instruction, Program
from zwang.compiler.ir.verify import verify
from zwang.compiler.pipeline import count_operations, optimise
from zwang.compiler.runtime.cache import key
from zwang.errors import CompileError, TraceError
from zwang.scalar import (
    ActiveIndices,
    AppendedIndices,
    cond,
    empty,
    for_each,
    fori_loop,
    lane_by_lane,
    lane_maximum,
    logical_and,
    where,
    while_loop,
    zeros,
)

SIZE = 8
TYPES = ("float64", "float32")

# ---------------------------------------------------------------------------------- functions of x (SIZE,)


def filled(values):
    array = empty(len(values))
    for k, value in enumerate(values):
        array = array.set(k, value)
    return array


def permuted(x):
    """Six values, scattered to positions shifted by x[6], and gathered from positions shifted by x[7]."""
    shift = scalar.floor(scalar.clip(scalar.absolute(x[6]), 0.0, 5.0))
    scattered = fori_loop(
        0, 6, lambda k, a: a.scatter(wrapped(1.0 * k + shift, 6), x[0] + k), zeros(6), unroll=False
    )
    offset = scalar.floor(scalar.clip(scalar.absolute(x[7]), 0.0, 5.0))
    return fori_loop(
        0, 6, lambda k, s: 2 * s + scattered.gather(wrapped(1.0 * k + offset, 6)), 0.0, unroll=False
    )


def wrapped(position, length):
    return where(position >= length, position - length, position)


def counted(x):
    """Histogram of the values in three bins."""

    def add(k, bins):
        position = where(values[k] < -0.5, 0.0, where(values[k] < 0.5, 1.0, 2.0))
        return bins.scatter(position, bins.gather(position) + 1)

    values = filled(x)
    bins = fori_loop(0, SIZE, add, zeros(3), unroll=False)
    return bins[0] + 10 * bins[1] + 100 * bins[2]


def out_of_range(x):
    """Reads and writes at positions that are out of range or NaN."""
    array = filled([x[0], x[1], x[2]])
    found = [array.gather(p) for p in (x[3] * 1e30, -1 - scalar.absolute(x[4]), x[5] / 0.0 * 0.0, x[6] * 2)]
    array = fori_loop(
        0, 1, lambda k, a: a.scatter(x[7] * 1e30, 5.0).scatter(x[7] * np.nan, 7.0), array, unroll=False
    )
    return sum(c * y for c, y in zip([1.0, 3.0, 7.0, 11.0], [*found, array[0] - array[2]], strict=False))


def compacted(x):
    """The positive values in order, combined like digits: each lane compacts its own values, in a branch."""

    def keep(k, carry):
        def append(kept, n):
            return kept.scatter(n, values[k]), n + 1

        return cond(values[k] > 0, append, lambda kept, n: (kept, n), *carry)

    values = filled(x)
    kept, n = fori_loop(0, SIZE, keep, (zeros(SIZE), 0.0), unroll=False)

    def read(k, total):
        return where(1.0 * k < n, 0.5 * total + kept[k], total)

    return fori_loop(0, lane_maximum(n, SIZE), read, 0.0) + 100 * n


def followed(x):
    """Follow a chain of positions in each lane and mark each position with the iteration number. Lanes that
    have finished do not write.
    """
    following = filled([scalar.floor(scalar.clip(scalar.absolute(y) * 4, 0.0, 7.0)) for y in x])

    def not_finished(carry):
        marks, position, iteration = carry
        return logical_and(marks.gather(position) < 1, iteration < 20)

    def step(carry):
        marks, position, iteration = carry
        return marks.scatter(position, iteration + 1), following.gather(position), iteration + 1

    marks, position, iteration = while_loop(not_finished, step, (zeros(SIZE), 0.0 * x[0], 0.0))
    return [fori_loop(0, SIZE, lambda k, s: 3 * s + marks[k], 0.0, unroll=False), position, iteration]


def bounded(x):
    """Nested loops up to the largest bound of all lanes, one of them in reverse order."""
    values, wanted = filled(x), scalar.absolute(scalar.floor(x[0] * 3))

    def outer(k, total):
        inner = fori_loop(0, k, lambda j, s: s + values[j], 0.0)
        above = fori_loop(
            k, most, lambda j, s: where(1.0 * j < wanted, s / 2 + values[j], s), 0.0, reverse=True
        )
        return where(1.0 * k < wanted, 2 * total + inner - above, total)

    most = lane_maximum(wanted, SIZE)
    last = fori_loop(1, most, lambda k, s: where(1.0 * k < wanted, s + values[k - 1] * k, s), 0.0)
    return [fori_loop(0, most, outer, 0.0), last]


def bounded_in_a_loop(x):
    """A loop in a `cond` in a `while_loop`, with another upper bound in each iteration."""
    values = filled(x)

    def not_finished(carry):
        return logical_and(carry[1] < 4, carry[0] < 30)

    def step(carry):
        total, iteration, marks = carry
        n = iteration * scalar.floor(scalar.clip(scalar.absolute(x[1]) * 2, 0.0, 2.0))

        def add(total, marks):
            def body(k, c):
                return cond(
                    1.0 * k < n, lambda s, m: (s + values[k], m.scatter(n, s)), lambda s, m: (s, m), *c
                )

            return fori_loop(0, lane_maximum(n, SIZE), body, (total, marks), reverse=True)

        total, marks = cond(values.gather(iteration) > -0.5, add, lambda s, m: (s + 1, m), total, marks)
        return total, iteration + 1, marks

    total, iteration, marks = while_loop(not_finished, step, (0.0 * x[0], 0.0, zeros(SIZE)))
    return [total, iteration, fori_loop(0, SIZE, lambda k, s: 3 * s + marks[k], 0.0, unroll=False)]


def active_pairs(x):
    """Sum of products of all pairs of positive values with an index below a bound, and their number."""
    values = filled(x)
    active = ActiveIndices(filled([*x[:-1], 1.0]), lane_maximum(scalar.absolute(x[-1]) * 3, SIZE))
    wanted = scalar.floor(scalar.absolute(x[-1]) * 3)

    def is_active(i):
        return logical_and(values[active[i]] > 0, 1.0 * active[i] < wanted)

    def each(i, total):
        def pair(j, s):
            return where(
                logical_and(is_active(i), is_active(j)), s + values[active[i]] * values[active[j]], s
            )

        return total + fori_loop(0, i, pair, 0.0)

    pairs = fori_loop(0, active.count, each, 0.0)
    number = for_each(active, lambda k, n: where(1.0 * k < wanted, n + 1, n), 0.0)
    return [pairs, number]


def lane_by_lane_sums(x):
    """A loop whose bound is that of the lane itself, unmasked, and a chain of positions that lanes read
    together; some lanes skip both.
    """
    values = filled(x)

    def own(carry):
        total, marks = carry
        wanted = lane_maximum(scalar.floor(scalar.absolute(x[1]) * 4), SIZE - 1)
        total = fori_loop(0, wanted, lambda k, s: s / 2 + values[k], total)

        def follow(k, c):
            place = lane_maximum(scalar.absolute(values[k]) * 4, SIZE - 1)
            return c[0] + values[place], c[1].set(place, 1.0 * k)

        return fori_loop(0, wanted, follow, (total, marks))

    def both(total, marks):
        return lane_by_lane(own, (total, marks))

    total, marks = cond(x[0] > -0.8, both, lambda *carry: carry, x[2], zeros(SIZE))
    return [total, fori_loop(0, SIZE, lambda k, s: 3 * s + marks[k], 0.0, unroll=False)]


def appended_indices(x):
    """Sum over the active indices that are appended, among those of even number, and how many are active."""
    values = filled(x)

    def visit(k, appended):
        return appended.set(2 * k, where(values[2 * k] > 0, 1.0, 0.0)).append(2 * k)

    active = fori_loop(0, SIZE // 2, visit, AppendedIndices.none(SIZE), unroll=False)
    total, number = active.for_each(lambda k, c: (c[0] / 2 + values[k], c[1] + 1), (0.0 * x[0], 0.0))
    positions = fori_loop(
        0, active.count, lambda p, s: s + where(values[active[p]] > 0, 1.0 * active[p], 0.0), 0.0
    )
    return [total, number, positions]


FUNCTIONS = {
    f.__name__: f
    for f in (
        permuted,
        counted,
        out_of_range,
        compacted,
        followed,
        bounded,
        bounded_in_a_loop,
        active_pairs,
        lane_by_lane_sums,
        appended_indices,
    )
}


def flattened(function):
    def as_list(x):
        return [*np.ravel(np.asarray(function(x), dtype=object))]

    return as_list


def program_of(name: str) -> Program:
    return verify(trace(flattened(FUNCTIONS[name]), {"x": (SIZE,)}))


PROGRAMS = {name: program_of(name) for name in FUNCTIONS}
OPTIMISED = {name: optimise(program) for name, program in PROGRAMS.items()}


def worlds(seed: int, count: int = 32) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.where(rng.random((count, SIZE)) < 0.1, 0.0, rng.normal(size=(count, SIZE)))


def on_floats(name: str, x: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        return np.array([[float(y) for y in flattened(FUNCTIONS[name])(row)] for row in x])


# ---------------------------------------------------------------------------------- equality of all backends


@pytest.mark.parametrize("name", FUNCTIONS)
def test_traced_equals_float(name: str) -> None:
    x = worlds(0)
    np.testing.assert_array_equal(interpret(PROGRAMS[name], {"x": x})["out"], on_floats(name, x))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_compiled_equals_interpreted_at_every_width_in_any_order_of_worlds_split_or_not(
    name: str, dtype: str
) -> None:
    program, x = OPTIMISED[name], worlds(1).astype(dtype)
    reference = interpret(program, {"x": x}, dtype)["out"]
    order = np.random.default_rng(2).permutation(len(x))
    for width in WIDTHS:
        for limit in (5, 10**6):
            got = run_body(program, x, Lanes(dtype, width), limit)
            np.testing.assert_array_equal(got, reference, err_msg=f"{width} lanes, split at {limit}")
        np.testing.assert_array_equal(run_body(program, x[order], Lanes(dtype, width), 40), reference[order])


@needs_cc
@pytest.mark.parametrize("dtype", TYPES)
def test_the_c_source_gives_the_same_bits(tmp_path: Path, dtype: str) -> None:
    functions = [flattened(f) for f in FUNCTIONS.values()]
    for (program, call), name in zip(many(tmp_path, functions, SIZE, dtype), FUNCTIONS, strict=True):
        for x in worlds(3, 12):
            expected = interpret(program, {"x": x}, dtype)["out"]
            np.testing.assert_array_equal(called(call, program, {"x": x}, dtype), expected, err_msg=name)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_ptx_is_generated(name: str, dtype: str, tmp_path: Path) -> None:
    text = ptx(OPTIMISED[name], dtype)
    assert ".entry zwang(" in text
    if shutil.which("ptxas"):
        (tmp_path / "program.ptx").write_text(text)
        command = [
            "ptxas",
            "-arch=sm_80",
            str(tmp_path / "program.ptx"),
            "-o",
            str(tmp_path / "program.cubin"),
        ]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        assert run.returncode == 0, run.stderr


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from(sorted(FUNCTIONS)))
def test_no_world_depends_on_other_worlds(seed: int, name: str) -> None:
    x = worlds(seed, 16)
    alone = interpret(OPTIMISED[name], {"x": x})["out"]
    np.testing.assert_array_equal(run_body(OPTIMISED[name], x, Lanes("float64", 16), 10**6), alone)


# ---------------------------------------------------------------------------------- against NumPy


def test_results_equal_numpy() -> None:
    x = worlds(4)
    for row, bins in zip(x, on_floats("counted", x), strict=True):
        first, second = np.sum(row < -0.5), np.sum((row >= -0.5) & (row < 0.5))
        assert bins == first + 10 * second + 100 * (SIZE - first - second)
    for row, [kept] in zip(x, on_floats("compacted", x), strict=True):
        total = 0.0
        for y in row[row > 0]:
            total = total / 2 + y
        assert kept == total + 100 * np.sum(row > 0)
    for row, [pairs, number] in zip(x, on_floats("active_pairs", x), strict=True):
        end = min(int(abs(row[-1]) * 3), SIZE)
        flags = np.array([*row[:-1], 1.0])[:end]
        own = np.where(flags > 0, row[:end], 0.0).clip(min=0)
        np.testing.assert_allclose(pairs, (own.sum() ** 2 - own @ own) / 2, atol=1e-12)
        assert number == np.sum(flags > 0)


def test_appended_indices_equal_numpy() -> None:
    x = worlds(5)
    for row, [total, number, positions] in zip(x, on_floats("appended_indices", x), strict=True):
        active = [k for k in range(0, SIZE, 2) if row[k] > 0]
        expected = 0.0
        for k in active:
            expected = expected / 2 + row[k]
        assert (total, number, positions) == (expected, len(active), sum(active))


BOUNDS = {
    "forward": (lambda n: (2, n, False), range(2, 5)),
    "reverse": (lambda n: (2, n, True), range(4, 1, -1)),
    "empty": (lambda n: (n, n, False), range(0)),
    "upper below lower": (lambda n: (n, 3, False), range(0)),
    "constant": (lambda n: (1, 4, False), range(1, 4)),
    "constant reverse": (lambda n: (1, np.int64(4), True), range(3, 0, -1)),
    "constant and empty": (lambda n: (4, 4, False), range(0)),
    "zero to zero": (lambda n: (0, 0, True), range(0)),
}


@pytest.mark.parametrize("name", BOUNDS)
def test_loop_indices_equal_pythons_range(name: str) -> None:
    bounds, expected = BOUNDS[name]

    def function(x):
        lower, upper, reverse = bounds(lane_maximum(x[0], 7))
        return [fori_loop(lower, upper, lambda k, s: 10 * s + k, x[1], reverse=reverse)]

    digits = 3.0
    for k in expected:
        digits = 10 * digits + k
    x = np.array([[5.0, 3.0]] * 16)
    assert function(x[0].tolist()) == [digits]
    program = optimise(trace(function, {"x": (2,)}))
    for width in WIDTHS:
        assert set(run_body(program, x, Lanes("float64", width), 10**6).ravel()) == {digits}


@pytest.mark.parametrize("dtype", TYPES)
def test_the_lane_maximum_is_clamped_and_ignores_nan(dtype: str) -> None:
    values = [-3.0, np.nan, 2.75, -np.inf, 0.0, np.inf, 1e30, 6.0, -0.0, 1.0, np.nan, np.nan]
    expected = [0, 0, 2, 0, 0, 6, 6, 6, 0, 1, 0, 0]
    assert [lane_maximum(x, 6) for x in values] == expected
    program = optimise(trace(lambda x: [lane_maximum(x[0], 6) * 1.0], {"x": (1,)}))
    x = np.array(values * 4)[:, None].astype(dtype)
    np.testing.assert_array_equal(interpret(program, {"x": x}, dtype)["out"].ravel(), expected * 4)
    for width in WIDTHS:
        got = run_body(program, x, Lanes(dtype, width), 10**6).reshape(-1, width)
        assert np.array_equal(
            got, np.broadcast_to(np.array(expected * 4).reshape(-1, width).max(1)[:, None], got.shape)
        )


def test_the_lane_maximum_in_a_branch_is_that_of_active_lanes_or_of_all() -> None:
    def function(x):
        return [cond(x[0] > 0, lambda: 1.0 * lane_maximum(x[1], 9) + 0 * x[0], lambda: -1.0)]

    x = np.array([[1.0, 2.0], [0.0, 8.0], [1.0, 3.0], [0.0, 7.0]] * 4)
    program = optimise(trace(function, {"x": (2,)}))
    for width in (4, 8, 16):
        got = run_body(program, x, Lanes("float64", width), 10**6).ravel()
        assert set(got[1::2]) == {-1.0} and set(got[::2]) <= {3.0, 8.0}


@pytest.mark.parametrize("many", range(6))
def test_entries_after_the_last_active_index_are_zero(many: int) -> None:
    def function(x):
        active = ActiveIndices(filled(x))
        return [1.0 * active.count, *(1.0 * active[k] for k in range(5))]

    flags = [1.0 if k >= 5 - many else 0.0 for k in range(5)]
    expected = [many, *range(5 - many, 5), *[0] * (5 - many)]
    assert function(flags) == expected
    program = optimise(trace(function, {"x": (5,)}))
    assert list(interpret(program, {"x": flags})["out"]) == expected
    for width in WIDTHS:
        assert (run_body(program, np.array([flags] * 16), Lanes("float64", width), 10**6) == expected).all()


def test_a_hoisted_gather_is_safe_in_lanes_that_do_not_enter_the_loop() -> None:
    """The element is computed before the loop, also for lanes that never enter it."""

    def function(x):
        array = filled([x[0], 2.0, 3.0])
        return [while_loop(lambda c: c < x[1], lambda c: c + array.gather(x[2]), x[0])]

    x = np.array([[1.0, 0.0, 1e300], [1.0, 5.0, 2.0], [2.0, -1.0, np.nan], [1.0, 2.0, 1.0]] * 4)
    program = optimise(trace(function, {"x": (3,)}))
    for width in WIDTHS:
        got = run_body(program, x, Lanes("float64", width), 10**6)
        np.testing.assert_array_equal(got.ravel(), [1.0, 7.0, 2.0, 3.0] * 4)


# ---------------------------------------------------------------------------------- passes


def test_a_loop_with_constant_bounds_is_unrolled_unless_it_is_long_or_unroll_is_false() -> None:
    def loops(**settings):
        program = trace(
            lambda x: [fori_loop(3, 6, lambda k, s: s * x[0] + k, 0, **settings, reverse=True)], {"x": (1,)}
        )
        assert interpret(program, {"x": [10.0]})["out"] == [543.0]
        return sum(i.op == "for" for i in program.body.instructions)

    assert loops() == 0 and loops(unroll=False) == 1


def test_the_lane_maximum_of_a_constant_is_a_constant() -> None:
    program = trace(lambda x: [fori_loop(0, lane_maximum(2.0, 4), lambda k, s: s + k, x[0])], {"x": (1,)})
    assert {i.op for i in program.body.instructions} == {"input", "const", "add"}


def test_a_loop_with_an_invalid_range_is_rejected() -> None:
    def with_active(block: Block) -> Block:
        return replace(block, instructions=tuple(map(over_active, block.instructions)))

    def over_active(instruction: Instruction) -> Instruction:
        data = instruction.data
        return (
            replace(instruction, data=replace(data, over_active=True, dynamic=False))
            if isinstance(data, For)
            else instruction
        )

    program = OPTIMISED["bounded"]
    with pytest.raises(CompileError, match="the range of a loop is given by"):
        verify(replace(program, body=with_active(program.body)))


def test_a_constant_position_needs_no_array() -> None:
    program = trace(lambda x: [filled(x).scatter(1.0, x[0]).gather(1.0)], {"x": (2,)})
    assert {i.op for i in program.body.instructions} == {"input"}


def test_operations_of_a_loop_are_counted_for_its_largest_number_of_iterations() -> None:
    def function(x):
        n = lane_maximum(x[1], 9)
        return [fori_loop(2, n, lambda k, s: s * x[0], 1.0)]

    assert count_operations(optimise(trace(function, {"x": (2,)})))["mul"] == 7


def test_the_cache_key_depends_on_the_direction_of_a_loop() -> None:
    def looped(reverse):
        return optimise(
            trace(lambda x: [fori_loop(0, 6, lambda k, s: 2 * s + k, x[0], reverse=reverse)], {"x": (1,)})
        )

    assert key(looped(False)) != key(looped(True)) and key(looped(True)) == key(looped(True))


def test_an_index_has_zero_derivative_and_a_gather_at_a_traced_position_is_rejected() -> None:
    def rounded(x):
        return jacobian([x[0] * lane_maximum(x[1], 5)], x)

    program = trace(rounded, {"x": (2,)})
    np.testing.assert_array_equal(interpret(program, {"x": [2.0, 3.0]})["out"], [3.0, 0.0])
    with pytest.raises(TraceError, match=r"\(gather\)"):
        trace(lambda x: jacobian([filled([1.0, 2.0]).gather(x[0])], x), {"x": (1,)})


# ---------------------------------------------------------------------------------- errors


def scattered_from_outside(x):
    a = zeros(2)
    return [fori_loop(0, 2, lambda i, t: t + a.scatter(x[0], t).gather(x[1]), x[0], unroll=False)]


def scattered_in_a_branch_only(x):
    a = zeros(2)
    return [cond(x[0] > 0, lambda a: a.scatter(x[0], 1.0)[0], lambda a: 0.0, a) + a[0]]


def used_after_scatter(x):
    a = zeros(2)
    a.scatter(x[0], 1.0)
    return [a.gather(x[0])]


def active_index_at(position):
    return lambda x: [
        fori_loop(0, 3, lambda i, s: s + ActiveIndices(filled(x))[position(i)], 0.0, unroll=False)
    ]


@pytest.mark.parametrize(
    ("function", "advice"),
    [
        (scattered_from_outside, "carry the array"),
        (scattered_in_a_branch_only, "does not return it"),
        (used_after_scatter, "use the array that set"),
        (lambda x: [zeros(0).gather(x[0])], "0 entries"),
        (
            lambda x: [fori_loop(0, lane_maximum(x[0], 4), lambda i, s: s + filled(x)[i], 0.0)],
            r"may be 0 \.\.\. 3",
        ),
        (
            lambda x: [fori_loop(1, lane_maximum(x[0], 3), lambda i, s: s + filled(x)[i - 2], 0.0)],
            r"may be -1",
        ),
        (lambda x: [fori_loop(-1, lane_maximum(x[0], 2), lambda i, s: s + i, 0.0)], "begin it at 0"),
        (lambda x: [fori_loop(0, x[0], lambda i, s: s + i, 0.0)], "index of for_each"),
        (lambda x: [1.0 * ActiveIndices(filled(x), 4).count], r"may be 4 \.\.\. 4"),
        (lambda x: [1.0 * ActiveIndices(filled(x), lane_maximum(x[0], 4)).count], r"may be 0 \.\.\. 4"),
        (active_index_at(lambda i: i + 1), r"may be 1 \.\.\. 3"),
        (lambda x: [ActiveIndices(filled(x))[x[0]]], "lane to lane"),
        (lambda x: [filled(x).gather("first")], "number is required"),
    ],
)
def test_indices_out_of_range_and_changes_from_outside_are_rejected(function, advice) -> None:
    with pytest.raises(TraceError, match=advice):
        trace(function, {"x": (3,)})


def test_active_indices_on_floats_check_their_range() -> None:
    with pytest.raises(IndexError):
        ActiveIndices(filled([1.0, 1.0]))[2]
    with pytest.raises(IndexError):
        ActiveIndices(filled([1.0, 1.0]))[-1]
