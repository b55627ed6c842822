"""Hard equalities by the method of multipliers have the accelerations and forces of the null-space method."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.solver.null_space import null_space_reduction
from tests.solver.random_problems import random_problem
from zwang.constraint.rows import rows_of_kind
from zwang.errors import InconsistentConstraintsError, SolveError
from zwang.solver.solve import solve


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10_000), count=st.integers(1, 4), redundant=st.integers(0, 3))
def test_redundant_rows_are_solved_as_by_the_singular_value_decomposition(seed, count, redundant):
    problem, _ = random_problem(seed)
    rng = np.random.default_rng(seed)
    J, aref = rng.normal(size=(count, 6)), 5 * rng.normal(size=count)
    mixture = np.concatenate([np.eye(count), rng.normal(size=(redundant, count))])
    A, b = mixture @ J, mixture @ aref
    inverse_weight = np.einsum("ij,ji->i", A, np.linalg.solve(problem.M, A.T))
    rows = rows_of_kind(("loop",) * len(A), "equality", A, b, inverse_weight=inverse_weight)
    found, expected = solve(problem, rows), null_space_reduction(problem, rows)
    a = expected.particular
    assert found.converged
    assert np.abs(found.acceleration - a).max() <= 1e-10 * np.abs(a).max()
    # redundant rows share their force in some way: the generalised force is unique
    force = A.T @ found.force
    expected_force = A.T @ expected.force(problem, a)
    assert np.abs(force - expected_force).max() <= 1e-9 * np.abs(expected_force).max()
    if not redundant:
        own = expected.force(problem, a)
        assert np.abs(found.force - own).max() <= 1e-9 * np.abs(own).max()


def test_rows_that_are_not_finite_are_named():
    problem, _ = random_problem(0)
    rows = rows_of_kind(("good", "bad"), "equality", [np.ones(6), np.full(6, np.nan)], [0.0, 1.0])
    with pytest.raises(SolveError, match="'bad' are not finite"):
        solve(problem, rows)


def test_only_the_constraints_with_a_residual_are_named():
    problem, _ = random_problem(1)
    J = np.eye(6)[[0, 1, 1]]
    rows = rows_of_kind(("fine", "up", "down"), "equality", J, [1.0, 2.0, -2.0])
    with pytest.raises(InconsistentConstraintsError, match="hard constraints down, up contradict"):
        solve(problem, rows)
