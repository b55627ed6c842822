"""Blocked L D L^T factorisation of matrices of dynamic size against NumPy, on floats and compiled."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.compiler.test_widths import run_body
from zwang.algebra.dynamic_ldlt import SIDE, solve_dynamic_ldlt
from zwang.api.compilation.compiled import compile_function
from zwang.compiler.backends.llvm.lanes import WIDTHS, Lanes
from zwang.compiler.pipeline import trace_and_optimise
from zwang.scalar import equal, floor, lane_maximum, logical_and, where, zeros

MOST = 4  # blocks a side
FULL = SIDE * MOST


def padded(B, b, n):
    """B and b (FULL,), whose first n rows are used, as functions of indices: the rest is the identity, and
    zero.
    """

    def entry(i, j):
        inside = logical_and(1.0 * i < n, 1.0 * j < n)
        return where(inside, B[i, j], where(equal(1.0 * i, 1.0 * j), 1.0, 0.0))

    return entry, lambda i: where(1.0 * i < n, b[i], 0.0)


def solution(entries, b, n):
    """x (FULL,) of the upper left n x n part of B (FULL^2,), and zeros."""
    B, right_hand = zeros((FULL, FULL)), zeros(FULL)
    for k, value in enumerate(entries):
        B = B.set(divmod(k, FULL), value)
    for k, value in enumerate(b):
        right_hand = right_hand.set(k, value)
    block_rows = lane_maximum(floor((n + SIDE - 1) / SIDE), MOST)
    x = solve_dynamic_ldlt(block_rows, MOST, *padded(B, right_hand, n))
    return np.array([where(k < n, x[k], 0.0) for k in range(FULL)])


def problem(n, seed):
    """B (FULL, FULL), positive definite in its first n rows and nan beyond, and b."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(n, n))
    B = np.full((FULL, FULL), np.nan)
    B[:n, :n] = A @ A.T + np.eye(n)
    return B, np.concatenate([rng.normal(size=n), np.full(FULL - n, np.nan)])


def expected(B, b, n):
    return np.concatenate([np.linalg.solve(B[:n, :n], b[:n]), np.zeros(FULL - n)])


@settings(max_examples=40, deadline=None)
@given(st.integers(0, FULL), st.integers(0, 2**32 - 1))
def test_on_floats(n, seed):
    B, b = problem(n, seed)
    x = solution(B.ravel().tolist(), b.tolist(), n).astype(float)
    np.testing.assert_allclose(x, expected(B, b, n), rtol=1e-9, atol=1e-11)


@pytest.fixture(scope="module")
def program():
    def function(given):
        return solution(given[: FULL * FULL], given[FULL * FULL : -1], given[-1])

    return trace_and_optimise(function, {"given": FULL * FULL + FULL + 1})


def rows(sizes):
    problems = [problem(n, 7 * k + n) for k, n in enumerate(sizes)]
    given = np.array([[*B.ravel(), *b, n] for (B, b), n in zip(problems, sizes, strict=True)])
    return given, np.array([expected(B, b, n) for (B, b), n in zip(problems, sizes, strict=True)])


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_compiled_with_a_different_size_in_every_lane(program, dtype):
    given, wanted = rows([*range(14), 3, 16, 0, 13, 4, 1, 8, 8, 5, 16, 2, 12, 0, 0, 1, 15, 9, 14])
    tolerance = 1e-9 if dtype == "float64" else 2e-2
    for width in WIDTHS:
        got = run_body(program, given.astype(dtype), Lanes(dtype, width), 10**6)
        np.testing.assert_allclose(got, wanted, rtol=tolerance, atol=tolerance)


def test_the_bits_of_a_world_do_not_depend_on_the_sizes_of_other_worlds(program):
    given, _ = rows([3, 1, 5, 8, 13, 0, 2, 4] * 2)
    alone = run_body(program, given, Lanes("float64", 1), 10**6)
    together = run_body(program, given, Lanes("float64", 8), 10**6)
    mixed = run_body(program, given[::-1].copy(), Lanes("float64", 4), 10**6)[::-1]
    assert np.array_equal(alone, together) and np.array_equal(alone, mixed)


def test_additional_identity_rows_change_no_bit():
    """Identity rows move the others to other blocks; the sums are still computed in the same order."""
    rng = np.random.default_rng(5)
    A = rng.normal(size=(9, 9))
    B, b = A @ A.T + np.eye(9), rng.normal(size=9)
    spread = np.sort(rng.choice(FULL, 9, replace=False))
    wide, right = np.eye(FULL), np.zeros(FULL)
    wide[np.ix_(spread, spread)], right[spread] = B, b
    close, behind = np.eye(FULL), np.zeros(FULL)
    close[:9, :9], behind[:9] = B, b
    function = compile_function(
        lambda B, b: solution(B, b, 1.0 * FULL), {"B": FULL * FULL, "b": FULL}, threads=1
    )
    x = function(np.array([wide.ravel(), close.ravel()]), np.array([right, behind]))
    np.testing.assert_allclose(x[0, spread], np.linalg.solve(B, b), rtol=1e-10)
    assert np.array_equal(x[0, spread], x[1, :9])


def test_no_block_and_one_block_at_most():
    assert solve_dynamic_ldlt(0, 0, None, None).shape == (0,)

    def one(a, b):
        return solve_dynamic_ldlt(
            lane_maximum(b[0] * 0 + 1, 1), 1, lambda i, j: a[0] if i is j else 0.0, lambda i: b[0]
        )

    def as_array(a, b):
        x = one(a, b)
        return np.array([x[k] for k in range(SIDE)])

    function = compile_function(as_array, {"a": 1, "b": 1})
    np.testing.assert_array_equal(function([2.0], [3.0]), np.full(SIDE, 1.5))
