"""Blocked L^T D L factorisation against NumPy, on floats and compiled, of dense and sparse matrices of any
size.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zwang import scalar
from zwang.algebra.blocked_ldlt import BlockedLDLT
from zwang.api.compiled import compile_function


def solution(matrix, entries, values, b):
    """x of A x = b, from the values of the stored entries of A."""
    A = scalar.zeros(matrix.size)
    for (i, j), value in zip(entries, values, strict=True):
        A = A.set(matrix.place(i, j), value)
    return matrix.solve(matrix.factor(A), b)


def problem(n, share, seed):
    """The entries (i >= j) that are not zero, their values, the matrix, and a right-hand side."""
    rng = np.random.default_rng(seed)
    kept = np.tril(rng.random((n, n)) < share) | np.eye(n, dtype=bool)
    A = np.where(kept, rng.normal(size=(n, n)), 0)
    A = A + A.T + 2 * n * np.eye(n)
    entries = list(zip(*np.nonzero(kept), strict=True))
    return entries, np.array([A[e] for e in entries]), A, rng.normal(size=n)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 23), st.sampled_from([0.05, 0.3, 1.0]), st.integers(0, 2**32 - 1))
def test_on_floats(n, share, seed):
    entries, values, A, b = problem(n, share, seed)
    x = solution(BlockedLDLT(n, entries), entries, values.tolist(), b.tolist())
    np.testing.assert_allclose(x.astype(float), np.linalg.solve(A, b), atol=1e-12)


@pytest.mark.parametrize(("n", "share"), [(9, 1.0), (21, 0.1), (30, 1.0)])
def test_compiled_in_lanes(n, share):
    entries, values, A, _ = problem(n, share, n)
    matrix, b = BlockedLDLT(n, entries), np.random.default_rng(0).normal(size=(11, n))
    function = compile_function(
        lambda a, b: solution(matrix, entries, a, b), {"a": len(entries), "b": n}, threads=1
    )
    np.testing.assert_allclose(function(np.tile(values, (11, 1)), b), np.linalg.solve(A, b.T).T, atol=1e-12)


def test_blocks_that_stay_zero_are_not_stored():
    arrow = [(11, j) for j in range(12)] + [
        (k, k) for k in range(12)
    ]  # fills in completely, because the last row is eliminated first
    assert BlockedLDLT(12, arrow).size == 6 * 16
    assert BlockedLDLT(12, [(i, 0) for i in range(12)]).size == 5 * 16  # nothing fills in
