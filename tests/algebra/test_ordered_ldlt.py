"""Blocked L^T D L factorisation in the order of minimum degree: against NumPy, with the bits that each world
has alone, and with as little fill-in as the graph needs.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zwang import scalar
from zwang.algebra.blocked_ldlt import BlockedLDLT
from zwang.algebra.ordered_ldlt import OrderedLDLT, blocked_ldlt
from zwang.api.compilation.compiled import compile_function

BODIES, SIDE = 9, 6
N = BODIES * SIDE
INSIDE = [(i, j) for i in range(N) for j in range(i + 1) if i // SIDE == j // SIDE]
PAIRS = [(I, J) for I in range(BODIES) for J in range(I)]


def pattern_of(matrix, flags):
    """The pattern of a matrix in which the pairs (I, J) of bodies with a positive flag are coupled."""
    stored = scalar.empty(len(PAIRS))
    for k in range(len(PAIRS)):
        stored = stored.set(k, flags[k])
    pairs = scalar.table(np.array(PAIRS))
    acting = scalar.ActiveIndices(stored)
    return matrix.pattern(
        lambda marks: matrix.over_active(
            acting, lambda k, marks: matrix.marked(marks, pairs[k, 0], pairs[k, 1]), marks
        )
    )


def solution(matrix, inside, couplings, flags, b):
    """x of A x = b; couplings: A between the first velocities of each pair, where its flag is positive."""
    pattern = pattern_of(matrix, flags)
    A = matrix.cleared(scalar.empty(matrix.size), pattern)
    for (i, j), value in zip(INSIDE, inside, strict=True):
        A = A.set(matrix.place(i, j), value)
    for k, (I, J) in enumerate(PAIRS):
        for e, place in enumerate((matrix.place(SIDE * I, SIDE * J), matrix.place(SIDE * I, SIDE * J + 1))):
            A = scalar.cond(
                flags[k] > 0, lambda A, k=k, e=e, p=place: A.set(p, couplings[2 * k + e]), lambda A: A, A
            )
    return matrix.solve(matrix.factor(A, pattern), b)


def dense(inside, couplings, flags):
    A = np.zeros((N, N))
    for (i, j), value in zip(INSIDE, inside, strict=True):
        A[i, j] = A[j, i] = value
    for k, (I, J) in enumerate(PAIRS):
        for e in range(2):
            A[SIDE * I, SIDE * J + e] = A[SIDE * J + e, SIDE * I] = couplings[2 * k + e] * (flags[k] > 0)
    return A


def problem(seed, worlds):
    rng = np.random.default_rng(seed)
    inside = np.array([rng.normal() + 60 * (i == j) for i, j in INSIDE])
    flags = (rng.random((worlds, len(PAIRS))) < rng.choice([0, 0.1, 0.3, 1], (worlds, 1))).astype(float)
    return inside, rng.normal(size=2 * len(PAIRS)), flags, rng.normal(size=(worlds, N))


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_on_floats(seed):
    inside, couplings, [flags], [b] = problem(seed, 1)
    given_values = (values.tolist() for values in (inside, couplings, flags, b))
    x = solution(OrderedLDLT(N, INSIDE), *given_values).astype(float)
    np.testing.assert_allclose(x, np.linalg.solve(dense(inside, couplings, flags), b), atol=1e-13)


def test_each_world_has_its_own_order_and_the_bits_that_it_has_alone():
    inside, couplings, flags, b = problem(1, 19)
    matrix = OrderedLDLT(N, INSIDE)
    shape = {"inside": len(INSIDE), "couplings": 2 * len(PAIRS), "flags": len(PAIRS), "b": N}
    function = compile_function(lambda *arrays: solution(matrix, *arrays), shape, threads=1)
    found = function(inside, couplings, flags, b)
    for k in range(len(b)):
        expected = np.linalg.solve(dense(inside, couplings, flags[k]), b[k])
        np.testing.assert_allclose(found[k], expected, atol=1e-13)
        assert np.asarray(function(inside, couplings, flags[k], b[k])).tobytes() == found[k].tobytes()


def fill_in(edges):
    """The number of nonzero blocks beside the diagonal after the elimination of a graph."""
    counts = pattern_of(OrderedLDLT(N, INSIDE), [float(pair in edges) for pair in PAIRS]).counts
    return sum(counts[k] for k in range(BODIES))


@pytest.mark.parametrize("centre", range(BODIES))
def test_trees_have_no_fill_in(centre):
    star = {(max(k, centre), min(k, centre)) for k in range(BODIES) if k != centre}
    assert fill_in(star) == len(star)
    rng = np.random.default_rng(centre)
    label = rng.permutation(BODIES)
    edges = [(label[k], label[rng.integers(k)]) for k in range(1, BODIES)]
    assert fill_in({(max(e), min(e)) for e in edges}) == len(edges)


def test_a_grid_has_the_fill_in_of_minimum_degree():
    grid = {(k, k - 1) for k in range(BODIES) if k % 3} | {(k, k - 3) for k in range(3, BODIES)}
    assert fill_in(grid) == len(grid) + 5  # in the order of the file: 8
    assert fill_in(set(PAIRS)) == len(PAIRS) and fill_in(set()) == 0


def test_matrices_whose_blocks_are_always_coupled_keep_their_order():
    assert isinstance(blocked_ldlt(N, INSIDE), OrderedLDLT)
    assert type(blocked_ldlt(N, [*INSIDE, (SIDE, 0)])) is BlockedLDLT
