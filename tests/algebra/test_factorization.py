"""Sparse factors and their updates against NumPy: on the tree's sparsity, with fill-in, and by Woodbury's
identity, on floats and compiled.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zwang.algebra.factorization import ancestors, factor, weighted_transpose
from zwang.algebra.updated_matrix import RowBlocks, UpdatedFactors, UpdatedMatrix, dense_entries
from zwang.algebra.woodbury import RowRoots, Woodbury, upper_root
from zwang.api.compilation.compiled import compile_function
from zwang.scalar import empty
from zwang.scalar.compact_loop import SingleIndex

SEEDS = st.integers(0, 2**32 - 1)
cases = settings(max_examples=25, deadline=None)


def tree_matrix(rng, n):
    """The parents of a random tree, and a positive definite matrix with its sparsity."""
    parents = [-1, *(int(rng.integers(-1, k)) for k in range(1, n))]
    L = np.eye(n)
    for k in range(n):
        L[k, ancestors(parents, k)] = rng.normal(size=len(ancestors(parents, k)))
    return parents, L.T @ np.diag(rng.uniform(0.5, 2, n)) @ L


def rows_of(rng, n, k):
    """J (k, n) with zeros, and D (k,)."""
    return rng.normal(size=(k, n)) * (rng.random((k, n)) < 0.4), rng.uniform(0.1, 5, k)


def stored(values):
    """Numbers in an array."""
    values = np.array(values)
    found = empty(values.shape)
    for index, x in np.ndenumerate(values):
        found = found.set(index, x)
    return found


@cases
@given(SEEDS)
def test_the_factors_of_a_tree_have_no_fill_in(seed):
    rng = np.random.default_rng(seed)
    parents, H = tree_matrix(rng, 9)
    factors, b = factor(H, parents), rng.normal(size=9)
    L = np.eye(9)
    for k, own in enumerate(factors.columns):
        assert set(own) == set(ancestors(parents, k))
        L[k, own] = [factors.L[k][i] for i in own]
    np.testing.assert_allclose(L.T @ np.diag(1 / factors.reciprocals) @ L, H, atol=1e-9)
    np.testing.assert_allclose(factors.solve(b), np.linalg.solve(H, b), rtol=1e-7, atol=1e-9)
    x = factors.solve_transposed(b)
    np.testing.assert_allclose(x * factors.reciprocals @ x, b @ np.linalg.solve(H, b), rtol=1e-7)


@cases
@given(SEEDS)
def test_the_sparsity_of_a_matrix_fills_in_where_it_must(seed):
    rng = np.random.default_rng(seed)
    J, D = rows_of(rng, 8, 6)
    H, b = np.eye(8) + J.T @ np.diag(D) @ J, rng.normal(size=8)
    factors = factor(H)
    np.testing.assert_allclose(factors.solve(b), np.linalg.solve(H, b), rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(weighted_transpose(J, D, D), J.T @ (D * D), atol=1e-12)
    assert all(not own for own in factor(np.diag(D)).columns)


@cases
@given(SEEDS)
def test_an_update_solves_with_the_rows_added(seed):
    rng = np.random.default_rng(seed)
    parents, H = tree_matrix(rng, 7)
    (J, D), b = rows_of(rng, 7, 4), rng.normal(size=7)
    expected = np.linalg.solve(H + J.T @ np.diag(D) @ J, b)
    np.testing.assert_allclose(factor(H, parents).update(J, D).solve(b), expected, rtol=1e-7, atol=1e-9)
    entries = {(i, j) for i, j in dense_entries(range(7)) if H[i, j]}
    matrix = UpdatedMatrix(H, parents, entries, [RowBlocks([tuple(range(7))], SingleIndex(True), True)])

    array, K = matrix.array(), J.T @ np.diag(D) @ J
    for i, j in dense_entries(range(7)):
        array = array.set(matrix.place(i, j), array[matrix.place(i, j)] + K[i, j])
    np.testing.assert_allclose(UpdatedFactors(matrix, array).solve(b), expected, rtol=1e-7, atol=1e-9)


def long_tree(rng, n):
    """The parents of a tree with a long trunk, and a positive definite matrix with its sparsity."""
    parents = [-1, *(k - 1 if rng.random() < 0.95 else int(rng.integers(-1, k)) for k in range(1, n))]
    M = np.zeros((n, n))
    for k in range(n):
        own = [k, *ancestors(parents, k)]
        row = rng.normal(size=len(own))
        M[np.ix_(own, own)] += np.outer(row, row) + np.eye(len(own))
    return parents, M


@settings(max_examples=8, deadline=None)
@given(SEEDS, st.integers(45, 70))
def test_a_large_matrix_is_factorised_in_blocks(seed, n):
    rng = np.random.default_rng(seed)
    parents, H = long_tree(rng, n)
    (J, D), b, inverse = rows_of(rng, n, 3), rng.normal(size=n), np.linalg.inv(H)
    # the Schur complements of the rows below
    pivots = [1 / np.linalg.inv(H[k:, k:])[0, 0] for k in range(n)]
    for found in (factor(H, parents), factor(H)):
        np.testing.assert_allclose(found.solve(b), inverse @ b, rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(found.inverse_diagonal(J), np.diag(J @ inverse @ J.T), rtol=1e-9)
        x = found.solve_transposed(b)
        np.testing.assert_allclose(x * found.reciprocals @ x, b @ inverse @ b, rtol=1e-9)
        np.testing.assert_allclose(found.solve_scaled(x), inverse @ b, rtol=1e-8, atol=1e-10)
        updated = np.linalg.solve(H + J.T @ np.diag(D) @ J, b)
        np.testing.assert_allclose(found.update(J, D).solve(b), updated, rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(found.pivots(), pivots, rtol=1e-9)


def with_a_short_tree(rng, n):
    """The parents of a chain and of a short tree after it, and a matrix with their sparsity."""
    parents, H = [*range(-1, n - 3), -1, n - 2], np.zeros((n, n))
    for part in (slice(0, n - 2), slice(n - 2, n)):
        A = rng.normal(size=(part.stop - part.start, 2 * n))
        H[part, part] = A @ A.T / n
    return parents, H


@pytest.mark.parametrize("build", [long_tree, with_a_short_tree])
def test_compiled_blocks_solve_as_floats(build):
    rng = np.random.default_rng(3)
    parents, H = build(rng, 45)
    J, D = rows_of(rng, 45, 2)

    def both(H, b):
        found = factor(H.reshape(45, 45), parents)
        solutions = found.solve(b), found.inverse_diagonal(J), found.update(J, D).solve(b)
        return np.concatenate(solutions)

    compiled = compile_function(both, {"H": 45 * 45, "b": 45})
    worlds = np.stack([H + 0.1 * k * np.eye(45) for k in range(5)])
    b = rng.normal(size=(5, 45))
    found = compiled(worlds.reshape(5, -1), b)
    expected = [both(own.ravel(), x) for own, x in zip(worlds, b, strict=True)]
    np.testing.assert_allclose(found, np.array(expected), rtol=1e-9, atol=1e-12)


def in_blocks(H):
    """The factors of a matrix of a chain, which is so large that they are computed in blocks."""
    n = len(H)
    matrix = UpdatedMatrix(H, range(-1, n - 1), dense_entries(range(n)), [])
    return matrix.factors(matrix.array())


def in_blocks_by_lane(H):
    """The factors of the matrix of a body and of a chain of bodies that a row couples, in an order of each
    world.
    """
    n = len(H)
    parents = [-1 if k % 6 == 0 else k - 1 for k in range(n)]
    coupled = RowBlocks([tuple(range(6, n))], SingleIndex(True), True)
    own = {(i, j) for k in range(0, n, 6) for i, j in dense_entries(range(k, k + 6))}
    M = [[H[i][j] if (i, j) in own or (j, i) in own else 0 for j in range(n)] for i in range(n)]
    matrix = UpdatedMatrix(M, parents, own, [coupled])
    array = matrix.array()
    for i, j in dense_entries(range(6, n)):
        if (i, j) not in own:
            array = array.set(matrix.place(i, j), H[i][j])
    return matrix.factors(array)


def reader(rows, n):
    """The function of a block and of a row in it to this row (n,) of an array."""
    return lambda k, i: np.array([rows[k, i, j] for j in range(n)])


def tree_of_four(H):
    """The factors of a matrix with the sparsity of a small tree."""
    return factor(H, [-1, 0, 1, 1])


FACTORS = {tree_of_four: 4, in_blocks: 45, in_blocks_by_lane: 48}


def sparse_matrix(rng, factors):
    """A positive definite matrix with the sparsity that these factors have."""
    n = FACTORS[factors]
    if factors is tree_of_four:
        L = np.eye(4)
        L[1, 0], L[2, :2], L[3, :2] = rng.normal(), rng.normal(size=2), rng.normal(size=2)
        return L.T @ np.diag(rng.uniform(0.5, 2, 4)) @ L
    J = rng.normal(size=(n, n)) / np.sqrt(n)
    H = np.eye(n) + J @ J.T
    if factors is in_blocks_by_lane:
        H[:6, 6:] = H[6:, :6] = 0
    return H


@pytest.mark.parametrize("factors", FACTORS)
@pytest.mark.parametrize("blocks", [(1, 0), (5, 4), (30, 25)])
def test_woodbury_solves_with_the_rows_that_count_in_each_world(blocks, factors):
    """Rows in blocks of two and of three, some of which count in no world. Some worlds have few, others many
    more than H, which they solve for in a form of their own.
    """
    rng, n, worlds = np.random.default_rng(sum(blocks)), FACTORS[factors], 11
    H, sizes = sparse_matrix(rng, factors), (2, 3)
    C = [rng.normal(size=(k, m, n)) for k, m in zip(blocks, sizes, strict=True)]
    numbers = [rng.integers(0, k + 1, (worlds, 1)) for k in blocks]
    counts = [
        1.0 * ((rng.random((worlds, k)) < 0.6) & (np.arange(k) < own))
        for k, own in zip(blocks, numbers, strict=True)
    ]
    counts[0][:, -1] = 0
    b = rng.normal(size=(worlds, n))

    def solution(count, number, b):
        roots = []
        for k, m, own, start, present in zip(blocks, sizes, C, (0, blocks[0]), number, strict=True):
            if k:
                rows, flags = stored(own), stored(list(count[start : start + k]))
                roots.append(RowRoots(m, flags, present, k, reader(rows, n)))
        return Woodbury.of(factors(H), roots).solve(b)

    all_counts = np.concatenate(counts, axis=1)
    number = np.concatenate(numbers, axis=1) * 1.0
    inputs = {"count": sum(blocks), "number": 2, "b": n}
    compiled = compile_function(solution, inputs, threads=1)(all_counts, number, b)
    for w in range(worlds):
        chosen = np.concatenate(
            [own[flags[w] > 0].reshape(-1, n) for own, flags in zip(C, counts, strict=True)]
        )
        expected = np.linalg.solve(H + chosen.T @ chosen, b[w])
        np.testing.assert_allclose(compiled[w], expected, rtol=1e-7, atol=1e-9)
        if w < 3:
            np.testing.assert_allclose(
                solution(all_counts[w], number[w], b[w]), expected, rtol=1e-7, atol=1e-9
            )


@cases
@given(SEEDS, st.integers(1, 4), st.integers(1, 4))
def test_the_upper_root_of_a_curvature_may_be_singular(seed, n, rank):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(rank, n)) * 10.0 ** rng.uniform(-3, 3)
    W, C = A.T @ A, np.zeros((n, n))
    for index, x in upper_root(W).items():
        C[index] = x
    assert np.array_equal(C, np.triu(C))
    np.testing.assert_allclose(C.T @ C, W, atol=1e-6 * np.abs(W).max())
