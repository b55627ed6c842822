"""What is remembered of a solution tells how its rows answered; whatever is remembered, the next solution is the right one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.solver.random_problems import plain_rows, random_problem
from zwang.constraint.rows import concatenated
from zwang.dynamics.gauss import GaussProblem
from zwang.scalar import zeros
from zwang.solver.newton import newton
from zwang.solver.primal_cost import PrimalCost
from zwang.solver.warm_start import decode_status, encode_status

SEEDS = st.integers(0, 10_000)


def warm_start_from(codes):
    """These codes, as a warm start."""

    def warm_start(size):
        assert size == len(codes)
        kept = zeros(size)
        for k, code in enumerate(codes):
            kept = kept.set(k, float(code))
        return kept

    return warm_start


def as_list(codes):
    return [codes[k] for k in range(codes.shape[0])]


def status_at(problem, rows, a):
    """The codes where the rows answer to accelerations a."""
    primal = PrimalCost(problem, rows)
    return as_list(encode_status(primal, primal.residual(a), zeros(primal.block_count)))


def without_cones(problem, rows):
    return problem, rows.select([i for i, kind in enumerate(rows.kinds) if kind != "cone"])


@given(SEEDS, st.sampled_from([0.0, 0.1, 1.0, 20.0]))
def test_rows_answer_as_remembered_where_they_were(seed, size):
    problem, rows = random_problem(seed)
    primal, rng = PrimalCost(problem, rows), np.random.default_rng(seed)
    y = primal.residual(problem.a_free + size * rng.normal(size=primal.nv))
    codes = encode_status(primal, y, zeros(primal.block_count))
    for block in primal.blocks:
        residual = block.read(y)
        for got, wanted in zip(
            decode_status(codes)(block, residual), block.force_and_curvature(residual), strict=True
        ):
            np.testing.assert_array_equal(got, wanted)
        between = block.cone is not None and codes[block.number] == 0
        assert between or codes[block.number] >= 1


@pytest.mark.parametrize("kind", ["friction", "limit", "contact"])
def test_rows_at_the_very_brink_are_remembered_as_they_are(kind):
    """y of 0, and where dry friction just reaches its bound."""
    edges = np.array([0.0, -0.0, 0.5, -0.5, np.nextafter(0.5, 1), -np.nextafter(0.5, 1), 1e-300])
    n = len(edges)
    rows = plain_rows(kind, np.eye(n), -edges, np.full(n, 0.25), bound=2.0)
    primal = PrimalCost(GaussProblem(np.eye(n), np.zeros(n), (-1,) * n), rows)
    y = primal.residual(np.zeros(n))
    codes = encode_status(primal, y, zeros(primal.block_count))
    for block in primal.blocks:
        residual = block.read(y)
        force, W = decode_status(codes)(block, residual)
        wanted, slope = block.force_and_curvature(residual)
        np.testing.assert_array_equal(force, wanted)
        if kind != "friction":  # where friction just reaches its bound either slope is one
            np.testing.assert_array_equal(W, slope)


@given(SEEDS)
def test_a_group_of_many_rows_keeps_each_ones_answer(seed):
    """Twenty rows of friction or limits that act together: forty binary digits in one number."""
    rng, n = np.random.default_rng(seed), 20
    kind = ("friction", "limit", "contact")[seed % 3]
    rows = plain_rows(
        kind, rng.normal(size=(n, 4)), rng.normal(size=n), 10.0 ** rng.uniform(-2, 0, n), bound=1.0
    )
    primal = PrimalCost(GaussProblem(np.eye(4), rng.normal(size=4), (-1, 0, 1, 2)), rows)
    assert primal.block_count == 1
    y = primal.residual(3 * rng.normal(size=4))
    codes, (block,) = encode_status(primal, y, zeros(1)), primal.blocks
    for got, wanted in zip(
        decode_status(codes)(block, block.read(y)), block.force_and_curvature(block.read(y)), strict=True
    ):
        np.testing.assert_array_equal(got, wanted)


@given(SEEDS, st.sampled_from(["nothing", "no force", "elsewhere", "here"]), st.booleans())
def test_whatever_is_remembered_the_solution_is_the_same(seed, what, cones):
    problem, rows = random_problem(seed)
    if not cones:
        problem, rows = without_cones(problem, rows)
    plain = newton(problem, rows)
    groups, rng = PrimalCost(problem, rows).block_count, np.random.default_rng(seed)
    codes = {
        "nothing": lambda: [0] * groups,
        "no force": lambda: [1] * groups,
        "elsewhere": lambda: status_at(problem, rows, 30 * rng.normal(size=len(problem.a_free))),
        "here": lambda: status_at(problem, rows, plain.acceleration),
    }[what]()
    found = newton(problem, rows, start=warm_start_from(codes))
    size = np.abs(plain.acceleration).max()
    np.testing.assert_allclose(found.acceleration, plain.acceleration, atol=1e-9 * size, rtol=0)
    np.testing.assert_allclose(found.force, plain.force, atol=1e-7 * np.abs(plain.force).max(), rtol=0)
    assert found.converged and not found.failed
    told = as_list(found.row_status)
    if what != "here":
        assert told == status_at(problem, rows, found.acceleration)


def test_rows_that_were_idle_and_push_now_are_seen():
    """A mass falls on what nothing had touched: the first step, as remembered, changes nothing, and is not the end."""
    problem = GaussProblem(np.eye(2), np.array([-9.0, 0.0]), (-1, -1))
    rows = plain_rows("limit", np.eye(2)[:1], np.array([3.0]), np.array([0.1]))
    found = newton(problem, rows, start=warm_start_from([1]))
    np.testing.assert_allclose(found.acceleration, [(-9 + 30) / 11, 0], atol=1e-12)  # a + 9 = 10 (3 - a)


@given(SEEDS)
def test_one_iteration_is_enough_where_rows_answer_as_before(seed):
    problem, rows = without_cones(*random_problem(seed))
    first = newton(problem, rows, start=warm_start_from([0] * PrimalCost(problem, rows).block_count))
    again = newton(problem, rows, start=warm_start_from(as_list(first.row_status)))
    assert again.iterations == 1 <= first.iterations
    nearby = GaussProblem(problem.M, problem.a_free + 1e-9, problem.parents)
    assert newton(nearby, rows, start=warm_start_from(as_list(first.row_status))).iterations == 1
    size = np.abs(first.acceleration).max()
    np.testing.assert_allclose(again.acceleration, first.acceleration, atol=1e-10 * size)


def test_with_cones_that_slide_it_takes_no_more_iterations_on_the_whole():
    """Of these nothing is remembered."""
    counts = []
    for seed in range(20):
        problem, rows = random_problem(seed)
        first = newton(problem, rows, start=warm_start_from([0] * PrimalCost(problem, rows).block_count))
        again = newton(problem, rows, start=warm_start_from(as_list(first.row_status)))
        counts.append((first.iterations, again.iterations))
    first, again = np.sum(counts, axis=0)
    assert again <= first


def test_rows_that_do_not_act_are_remembered_as_such():
    problem, _ = random_problem(0)
    rng = np.random.default_rng(0)
    parts = [
        plain_rows("limit", rng.normal(size=(1, 6)), np.array([5.0]), np.array([0.1]), name).replaced(
            active=np.array([name != "off"])
        )
        for name in ("a", "off", "b")
    ]
    rows = concatenated(parts, 6)
    for begin in ([0, 0, 0], [2, 2, 2]):
        found = newton(problem, rows, start=warm_start_from(begin))
        plain = newton(problem, rows)
        np.testing.assert_allclose(found.acceleration, plain.acceleration, atol=1e-9)
        assert as_list(found.row_status)[1] == 0 and found.force[1] == 0
