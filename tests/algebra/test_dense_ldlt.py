"""Systems with many right-hand sides against NumPy, on floats and compiled."""

import numpy as np
import pytest

from zwang.algebra.dense_ldlt import DenseFactors, empty_system
from zwang.api.compilation.programs import compile_function


def solutions(n, count, matrix, right):
    """The solutions (count, n) for right-hand sides in rows."""
    H, X = empty_system(n, count)
    for (i, j), x in np.ndenumerate(np.reshape(matrix, (n, n))):
        H = H.set((i, j), x) if j <= i else H
    for (k, j), x in np.ndenumerate(np.reshape(right, (count, n))):
        X = X.set((k, j), x)
    X = DenseFactors.of(H).solved(X)
    return np.array([X[k, j] for k in range(count) for j in range(n)])


@pytest.mark.parametrize(("n", "count"), [(1, 1), (4, 3), (7, 2), (9, 5)])
def test_the_solutions_are_those_of_numpy(n, count):
    rng = np.random.default_rng(n)
    A, b = rng.normal(size=(n, 2 * n)), rng.normal(size=(count, n))
    H, expected = A @ A.T, np.linalg.solve(A @ A.T, b.T).T.ravel()
    assert np.allclose(solutions(n, count, H, b), expected, rtol=1e-9, atol=1e-9)
    compiled = compile_function(lambda H, b: solutions(n, count, H, b), {"H": n * n, "b": count * n})
    assert np.allclose(compiled(H.ravel(), b.ravel()), expected, rtol=1e-9, atol=1e-9)
