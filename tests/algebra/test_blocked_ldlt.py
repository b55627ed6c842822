"""Blocked L^T D L factorisation against NumPy, on floats and compiled, of dense and sparse matrices of any
size, with blocks that are nonzero in some worlds only.
"""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zwang import scalar
from zwang.algebra.blocked_ldlt import BlockedLDLT
from zwang.api.compilation.compiled import compile_function


def solution(matrix, entries, values, b, coupling=(), further=(), acts=True):
    """x of A x = b, from the values of the entries of A; `further` are those of `coupling`, if these act."""

    def mark(marks):
        def both(marks):
            for entry in coupling:
                for I, J in matrix.block_pairs(entry):
                    marks = matrix.marked(marks, I, J)
            return marks

        some = scalar.lane_maximum(scalar.where(acts, 1.0, 0.0), 1)
        return scalar.fori_loop(0, some, lambda _, marks: both(marks), marks)

    pattern = matrix.pattern(mark)
    A = matrix.cleared(scalar.empty(matrix.size), pattern)
    for (i, j), value in zip(entries, values, strict=True):
        A = A.set(matrix.place(i, j), value)
    if coupling:

        def add(A):
            for (i, j), value in zip(coupling, further, strict=True):
                A = A.set(matrix.place(i, j), value)
            return A

        A = scalar.cond(acts, add, lambda A: A, A)
    return matrix.solve(matrix.factor(A, pattern), b)


def problem(n, share, seed):
    """The entries (i >= j) that are not zero, their values, the matrix, and a right-hand side."""
    rng = np.random.default_rng(seed)
    kept = np.tril(rng.random((n, n)) < share) | np.eye(n, dtype=bool)
    A = np.where(kept, rng.normal(size=(n, n)), 0)
    A = A + A.T + 2 * n * np.eye(n)
    entries = [(int(i), int(j)) for i, j in zip(*np.nonzero(kept), strict=True)]
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


@pytest.mark.parametrize("sizes", [[6] * 7, [7, 6, 2, 1, 9, 6]])
def test_coupling_of_some_worlds(sizes):
    """Diagonal blocks that other entries couple in some worlds: against NumPy, and with the bits that each
    world has alone, coupled or not.
    """
    n, rng = sum(sizes), np.random.default_rng(len(sizes))
    starts = np.cumsum([0, *sizes])
    inside = [(i, j) for a, b in pairwise(starts) for i in range(a, b) for j in range(a, i + 1)]
    inside = [(int(i), int(j)) for i, j in inside]
    coupling = [(int(starts[b]), int(starts[a])) for a, b in [(0, 3), (1, 5), (3, 5), (2, 4)]]
    matrix = BlockedLDLT(n, inside)
    values, further = rng.normal(size=len(inside)), rng.normal(size=len(coupling))
    values = [x + 2 * n * (i == j) for x, (i, j) in zip(values, inside, strict=True)]
    acts, b = (rng.random(13) < 0.4).astype(float), rng.normal(size=(13, n))

    def text(a, f, b, acts):
        return solution(matrix, inside, a, b, coupling, f, acts[0] > 0)

    shape = {"a": len(inside), "f": len(coupling), "b": n, "acts": 1}
    function = compile_function(text, shape, threads=1)
    found = function(np.array(values), further, b, acts[:, None])
    for k in range(13):
        A = np.zeros((n, n))
        for (i, j), x in zip([*inside, *coupling], [*values, *(acts[k] * further)], strict=True):
            A[i, j] = A[j, i] = x
        np.testing.assert_allclose(found[k], np.linalg.solve(A, b[k]), atol=1e-12)
        alone = function(np.array(values), further, b[k], acts[k : k + 1])
        assert np.asarray(alone).tobytes() == found[k].tobytes()


def test_only_nonzero_blocks_are_in_the_pattern():
    diagonal = [(k, k) for k in range(24)]
    arrow = [(23, j) for j in range(24)] + diagonal  # fills in completely: the last row is eliminated first
    chain = [(k, k - 1) for k in range(1, 24)] + diagonal  # nothing fills in
    for entries, expected in ((arrow, 6), (chain, 3), (diagonal, 0)):
        pattern = BlockedLDLT(24, entries).pattern(lambda marks: marks)
        assert sum(pattern.counts[k] for k in range(pattern.counts.shape[0])) == expected
