"""Sparse factors and their updates against NumPy: on the tree's sparsity, with fill-in, and by Woodbury's
identity, on floats and compiled.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zwang.algebra.delassus import DelassusMatrix
from zwang.algebra.factorization import ancestors, factor, weighted_transpose
from zwang.algebra.updated_matrix import RowBlocks, UpdatedMatrix, dense_entries
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

    def add(array):
        K = J.T @ np.diag(D) @ J
        for i, j in dense_entries(range(7)):
            array = array.set(matrix.place(i, j), array[matrix.place(i, j)] + K[i, j])
        return array

    np.testing.assert_allclose(matrix.update(add).solve(b), expected, rtol=1e-7, atol=1e-9)


def by_woodbury(parents, J, H, D, chosen, b):
    """(H + J_S^T D_S J_S)^-1 b for the chosen rows S, by the Delassus matrix of all rows."""
    M, k = factor(np.reshape(H, (len(b), -1)), parents), len(J)
    size = -(-k // 4) * 4
    X = stored(np.array([*(M.solve_transposed(row) for row in J), *np.zeros((size - k, len(b)))]))
    delassus = DelassusMatrix.of(M, X, k)
    factors = delassus.update(stored([*D, *np.ones(size - k)]), stored([*chosen, *np.zeros(size - k)]))
    x = M.solve(b)
    y = stored([*(J @ x), *np.zeros(size - k)])
    found = factors.solve(lambda i: y[i])
    f = factors.scattered(found, stored(np.zeros(size)))
    product = factors.with_product(stored(np.zeros(size)), found)
    return np.array([*(x - delassus.accelerations(f)), *(product[i] for i in range(k))])


@pytest.mark.parametrize("k", [1, 4, 7])
def test_woodbury_solves_with_the_chosen_rows_of_each_world(k):
    rng, n, worlds = np.random.default_rng(k), 6, 11
    parents, H = tree_matrix(rng, n)
    J, D = rng.normal(size=(k, n)), rng.uniform(0.1, 5, (worlds, k))
    chosen, b = (rng.random((worlds, k)) < 0.6).astype(float), rng.normal(size=(worlds, n))
    function = compile_function(
        lambda H, D, chosen, b: by_woodbury(parents, J, H, D, chosen, b),
        {"H": n * n, "D": k, "chosen": k, "b": n},
        threads=1,
    )
    compiled = function(H.ravel(), D, chosen, b)
    for w in range(worlds):
        updated = np.linalg.solve(H + J.T @ np.diag(D[w] * chosen[w]) @ J, b[w])
        product = J @ (np.linalg.solve(H, b[w]) - updated)
        expected = np.concatenate([updated, product])
        np.testing.assert_allclose(
            by_woodbury(parents, J, H, D[w], chosen[w], b[w]), expected, rtol=1e-7, atol=1e-9
        )
        np.testing.assert_allclose(compiled[w], expected, rtol=1e-7, atol=1e-9)
