"""The status of constraint rows, encoded for a warm start; with any warm start the solution is the same."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.solver.random_problems import plain_rows, random_problem
from zwang.constraint.rows import concatenated
from zwang.dynamics.gauss import GaussProblem
from zwang.scalar import zeros
from zwang.solver.newton import newton
from zwang.solver.primal_cost import PrimalCost, RowBlock
from zwang.solver.warm_start import decode_status, encode_status

SEEDS = st.integers(0, 10_000)


def warm_start_from(codes):
    """A warm start from the given codes of row status."""

    def warm_start(size, largest):
        assert size == len(codes) and max(codes, default=0) <= largest
        stored = zeros(size)
        for k, code in enumerate(codes):
            stored = stored.set(k, float(code))
        return stored

    return warm_start


def as_list(codes):
    return [codes[k] for k in range(codes.shape[0])]


def blocks_of(primal):
    return [RowBlock(group, 0) for group in primal.groups]


def status_at(problem, rows, a):
    """The codes of the row status at the acceleration a."""
    primal = PrimalCost(problem, rows)
    return as_list(encode_status(primal, primal.residual(a), zeros(primal.block_count)))


def without_cones(problem, rows):
    return problem, rows.select([i for i, kind in enumerate(rows.kinds) if kind != "cone"])


@pytest.mark.parametrize("kind", ["limit", "friction"])
def test_many_rows_of_one_name_each_have_a_status(kind, n=70):
    """M = J = 1, so that the rows are independent: R f = aref - a, with f limited, and a = a_free + f."""
    rng = np.random.default_rng(0)
    a_free, aref, R = rng.normal(size=n), rng.normal(size=n), rng.uniform(0.1, 1, n)
    problem = GaussProblem(np.eye(n), a_free, (-1,) * n)
    rows = plain_rows(kind, np.eye(n), aref, R, "many", bound=0.3)
    f = (aref - a_free) / (1 + R)
    expected = a_free + (np.maximum(f, 0) if kind == "limit" else np.clip(f, -0.3, 0.3))
    found = newton(problem, rows)
    assert found.converged
    np.testing.assert_allclose(found.acceleration, expected, rtol=0, atol=1e-12)


@given(SEEDS, st.sampled_from([0.0, 0.1, 1.0, 20.0]))
def test_the_decoded_status_reproduces_forces_and_curvatures(seed, size):
    problem, rows = random_problem(seed)
    primal, rng = PrimalCost(problem, rows), np.random.default_rng(seed)
    y = primal.residual(problem.a_free + size * rng.normal(size=primal.nv))
    codes = encode_status(primal, y, zeros(primal.block_count))
    for block in blocks_of(primal):
        residual = block.read(y)
        for decoded, expected in zip(
            decode_status(codes)(block, residual), block.force_and_curvature(residual), strict=True
        ):
            np.testing.assert_array_equal(decoded, expected)
        between = block.cone is not None and block.value_in(codes) == 0
        assert between or block.value_in(codes) >= 1


@pytest.mark.parametrize("kind", ["friction", "limit", "contact"])
def test_the_status_of_rows_at_a_boundary_is_reproduced(kind):
    """Residuals y of 0, and those at which dry friction just reaches its bound."""
    edges = np.array([0.0, -0.0, 0.5, -0.5, np.nextafter(0.5, 1), -np.nextafter(0.5, 1), 1e-300])
    n = len(edges)
    rows = plain_rows(kind, np.eye(n), -edges, np.full(n, 0.25), bound=2.0)
    primal = PrimalCost(GaussProblem(np.eye(n), np.zeros(n), (-1,) * n), rows)
    y = primal.residual(np.zeros(n))
    codes = encode_status(primal, y, zeros(primal.block_count))
    for block in blocks_of(primal):
        residual = block.read(y)
        force, W = decode_status(codes)(block, residual)
        expected, curvature = block.force_and_curvature(residual)
        np.testing.assert_array_equal(force, expected)
        if kind != "friction":  # at the bound of friction both one-sided curvatures are valid
            np.testing.assert_array_equal(W, curvature)


@given(SEEDS)
def test_a_block_of_many_rows_encodes_the_status_of_each(seed):
    """The status of ten rows of friction takes twenty bits of one number."""
    rng, n = np.random.default_rng(seed), 10
    kind = ("friction", "limit", "contact")[seed % 3]
    rows = plain_rows(
        kind, rng.normal(size=(n, 4)), rng.normal(size=n), 10.0 ** rng.uniform(-2, 0, n), bound=1.0
    )
    primal = PrimalCost(GaussProblem(np.eye(4), rng.normal(size=4), (-1, 0, 1, 2)), rows)
    assert primal.block_count == 1
    y = primal.residual(3 * rng.normal(size=4))
    codes, (block,) = encode_status(primal, y, zeros(1)), blocks_of(primal)
    for decoded, expected in zip(
        decode_status(codes)(block, block.read(y)), block.force_and_curvature(block.read(y)), strict=True
    ):
        np.testing.assert_array_equal(decoded, expected)


@given(SEEDS, st.sampled_from(["unknown", "inactive", "elsewhere", "solution"]), st.booleans())
def test_the_solution_does_not_depend_on_the_warm_start(seed, start, cones):
    problem, rows = random_problem(seed)
    if not cones:
        problem, rows = without_cones(problem, rows)
    plain = newton(problem, rows)
    groups, rng = PrimalCost(problem, rows).block_count, np.random.default_rng(seed)
    codes = {
        "unknown": lambda: [0] * groups,
        "inactive": lambda: [1] * groups,
        "elsewhere": lambda: status_at(problem, rows, 30 * rng.normal(size=len(problem.a_free))),
        "solution": lambda: status_at(problem, rows, plain.acceleration),
    }[start]()
    found = newton(problem, rows, start=warm_start_from(codes))
    size = np.abs(plain.acceleration).max()
    np.testing.assert_allclose(found.acceleration, plain.acceleration, atol=1e-9 * size, rtol=0)
    np.testing.assert_allclose(found.force, plain.force, atol=1e-7 * np.abs(plain.force).max(), rtol=0)
    assert found.converged and not found.failed
    status = as_list(found.row_status)
    if start != "solution":
        assert status == status_at(problem, rows, found.acceleration)


def test_a_row_that_was_inactive_and_becomes_active_is_found():
    """The first step with the status of the warm start changes nothing, and the iteration does not end
    there.
    """
    problem = GaussProblem(np.eye(2), np.array([-9.0, 0.0]), (-1, -1))
    rows = plain_rows("limit", np.eye(2)[:1], np.array([3.0]), np.array([0.1]))
    found = newton(problem, rows, start=warm_start_from([1]))
    np.testing.assert_allclose(found.acceleration, [(-9 + 30) / 11, 0], atol=1e-12)  # a + 9 = 10 (3 - a)


@given(SEEDS)
def test_one_iteration_is_enough_with_the_same_row_status(seed):
    problem, rows = without_cones(*random_problem(seed))
    first = newton(problem, rows, start=warm_start_from([0] * PrimalCost(problem, rows).block_count))
    again = newton(problem, rows, start=warm_start_from(as_list(first.row_status)))
    assert again.iterations == 1 <= first.iterations
    nearby = GaussProblem(problem.M, problem.a_free + 1e-9, problem.parents)
    assert newton(nearby, rows, start=warm_start_from(as_list(first.row_status))).iterations == 1
    size = np.abs(first.acceleration).max()
    np.testing.assert_allclose(again.acceleration, first.acceleration, atol=1e-10 * size)


def test_a_warm_start_with_sliding_cones_does_not_need_more_iterations_on_average():
    """The status of sliding cones is not stored."""
    counts = []
    for seed in range(20):
        problem, rows = random_problem(seed)
        first = newton(problem, rows, start=warm_start_from([0] * PrimalCost(problem, rows).block_count))
        again = newton(problem, rows, start=warm_start_from(as_list(first.row_status)))
        counts.append((first.iterations, again.iterations))
    first, again = np.sum(counts, axis=0)
    assert again <= first


def test_inactive_rows_have_the_status_inactive():
    problem, _ = random_problem(0)
    rng = np.random.default_rng(0)
    parts = [
        plain_rows("limit", rng.normal(size=(1, 6)), np.array([5.0]), np.array([0.1]), name).replaced(
            active=np.array([name != "off"])
        )
        for name in ("a", "off", "b")
    ]
    rows = concatenated(parts, 6)
    for codes in ([0, 0, 0], [2, 2, 2]):
        found = newton(problem, rows, start=warm_start_from(codes))
        plain = newton(problem, rows)
        np.testing.assert_allclose(found.acceleration, plain.acceleration, atol=1e-9)
        assert as_list(found.row_status)[1] == 0 and found.force[1] == 0
