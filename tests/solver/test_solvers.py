"""All solvers of the convex problem find one solution, which satisfies the laws of contact and friction."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import zwang as zw
from tests.solver.random_problems import elliptic, plain_rows, random_problem
from zwang.constraint.rows import concatenated, no_rows, rows_of_kind
from zwang.dynamics.gauss import GaussProblem
from zwang.errors import SolveError, UnknownNameError
from zwang.solver import hard_contact
from zwang.solver.hard_rows import solve_hard_rows
from zwang.solver.solution import kkt_residual, row_costs
from zwang.solver.solve import SOLVERS, solve

seeds = st.integers(0, 10_000)


def largest(x):
    return float(np.abs(x).max())


@settings(max_examples=3, deadline=None)
@given(seed=seeds)
def test_primal_newton_conjugate_gradients_and_dual_agree(seed):
    problem, rows = random_problem(seed)
    found = {name: solve(problem, rows, solver=name) for name in SOLVERS}
    newton = found["newton"]
    for name, other in found.items():
        assert other.converged, name
        assert largest(other.acceleration - newton.acceleration) < 1e-9 * largest(newton.acceleration), name
        assert largest(other.force - newton.force) < 1e-9 * largest(newton.force), name
        assert kkt_residual(problem, rows, other.acceleration, other.force) < 1e-10, name


@settings(max_examples=15, deadline=None)
@given(seed=seeds)
def test_no_other_acceleration_has_a_lower_cost(seed):
    """The cost of the reduced primal problem, programmed again from its definition, increases in every
    direction.
    """
    problem, rows = random_problem(seed)
    a = solve(problem, rows).acceleration
    rng = np.random.default_rng(seed)
    least = cost(problem, rows, a)
    for _ in range(20):
        assert cost(problem, rows, a + 10.0 ** rng.uniform(-4, 0) * rng.normal(size=len(a))) > least


@settings(max_examples=10, deadline=None)
@given(seed=seeds)
def test_the_cost_is_the_sum_of_the_zwang_and_the_row_costs(seed):
    problem, rows = random_problem(seed)
    found = solve(problem, rows)
    shares = row_costs(rows, found.acceleration, found.force)
    whole = cost(problem, rows, found.acceleration)
    assert problem.zwang(found.acceleration) + shares.sum() == pytest.approx(whole, rel=1e-10)


def cost(problem, rows, a):
    """Z(a) + sum s(J a - aref), where -s(y) is the minimum of y f + R f^2 / 2 over the admissible forces
    f.
    """
    y, total, done = rows.J @ a - rows.aref, problem.zwang(a), set()
    for i, kind in enumerate(rows.kinds):
        R, b = rows.R[i], rows.bound[i]
        if kind == "equality":
            total += y[i] ** 2 / (2 * R)
        elif kind == "friction":
            f = min(max(-y[i] / R, -b), b)
            total -= y[i] * f + R * f * f / 2
        elif kind in ("limit", "contact"):
            f = max(-y[i] / R, 0)
            total -= y[i] * f + R * f * f / 2
        elif i not in done:
            cone = rows.cone_of[i]
            span = slice(cone.start, cone.stop)
            done |= set(range(cone.start, cone.stop))
            f = nearest_in_cone(cone, -y[span] / rows.R[span], rows.R[span])
            total -= y[span] @ f + rows.R[span] @ (f * f) / 2
    return total


def nearest_in_cone(cone, f, R):
    """The projection of f onto the friction cone in the metric R, which lies on the ray of its direction."""
    g, mu = f[1:] / np.array(cone.friction), np.array(cone.friction)
    size = np.linalg.norm(g)
    if f[0] >= 0 and size <= f[0]:
        return f
    direction = g / size if size > 0 else g

    def at(h):
        return np.array([h, *(h * direction * mu)])

    def distance(h):
        return R @ (at(h) - f) ** 2

    slope, curvature = -(R * f) @ at(1.0), R @ at(1.0) ** 2  # distance is a parabola in h
    return at(max(0.0, -slope / curvature))


@settings(max_examples=8, deadline=None)
@given(seed=seeds, solver=st.sampled_from(["newton", "conjugate"]))
def test_duplicated_rows_of_twice_the_softness_share_the_force(seed, solver):
    problem, rows = random_problem(seed)
    whole = solve(problem, rows, solver=solver)
    # two rows of twice the softness are one row
    doubled = concatenated([rows.replaced(R=2 * rows.R, bound=rows.bound / 2)] * 2, len(problem.a_free))
    shared = solve(problem, doubled, solver=solver)
    assert largest(shared.acceleration - whole.acceleration) < 1e-9 * largest(whole.acceleration)
    np.testing.assert_allclose(
        shared.force[: len(rows)], shared.force[len(rows) :], atol=1e-9 * largest(whole.force)
    )
    np.testing.assert_allclose(
        shared.force[: len(rows)] + shared.force[len(rows) :], whole.force, atol=1e-8 * largest(whole.force)
    )


@pytest.mark.parametrize("cone", ["cone 0", "cone 1", "cone 2"])
@settings(max_examples=1, deadline=None)  # it takes a second or two on floats
@given(seed=seeds)
def test_redundant_hard_equalities_are_satisfied_to_rounding_together_with_soft_rows(cone, seed):
    problem, soft = random_problem(seed)
    others = {name for name in soft.names if name.startswith("cone")} - {cone}
    soft = soft.select([i for i, name in enumerate(soft.names) if name not in others])
    rng = np.random.default_rng(seed)
    J, aref = rng.normal(size=(2, 6)), rng.normal(size=2)
    mixture = np.array([[1.0, 0.0], [0.0, 1.0], [0.6, -1.3]])  # the third row follows from the first two
    hard = rows_of_kind(("loop",) * 3, "equality", mixture @ J, mixture @ aref)
    found = solve(problem, concatenated([soft, hard], 6))
    assert largest(J @ found.acceleration - aref) < 1e-11 * max(1, largest(found.acceleration))
    assert kkt_residual(problem, concatenated([soft, hard], 6), found.acceleration, found.force) < 1e-10
    once = solve(problem, concatenated([soft, rows_of_kind(("loop",) * 2, "equality", J, aref)], 6))
    assert largest(once.acceleration - found.acceleration) < 1e-9 * largest(found.acceleration)


def hard_rows_of(problem, rows):
    """The rows as hard rows, with the diagonal of A as inverse_weight; that of a cone from its normal row."""
    inverse_weight = np.einsum("ij,ji->i", rows.J, np.linalg.solve(problem.M, rows.J.T))
    for cone in rows.cones:
        inverse_weight[cone.start + 1 : cone.stop] = (
            inverse_weight[cone.start] * (cone.friction[0] / np.array(cone.friction)) ** 2
        )
    cones = tuple(cone._replace(mu=cone.friction[0]) for cone in rows.cones)
    return rows.replaced(R=np.zeros(len(rows), int), inverse_weight=inverse_weight, cones=cones)


@settings(max_examples=8, deadline=None)
@given(seed=seeds, solver=st.sampled_from(sorted(SOLVERS)))
def test_hard_inequalities_are_the_limit_of_ever_stiffer_ones(seed, solver):
    problem, rows = random_problem(seed, nv=12)
    rows = rows.select([i for i, name in enumerate(rows.names) if name in ("friction", "limit", "contact")])
    rows = hard_rows_of(problem, rows)
    hard = solve(problem, rows, solver=solver)
    assert hard.converged
    assert kkt_residual(problem, rows, hard.acceleration, hard.force) < 1e-10
    errors = [
        largest(
            solve(problem, rows.replaced(R=softness * rows.inverse_weight)).acceleration - hard.acceleration
        )
        for softness in (1e-4, 1e-5, 1e-6)
    ]
    assert errors[2] < 1e-4 * max(1, largest(hard.acceleration))
    assert errors[2] <= 0.2 * errors[1] + 1e-9  # first order in R


@settings(max_examples=10, deadline=None)
@given(seed=seeds, solver=st.sampled_from(["newton", "projected"]))
def test_hard_contacts_stick_or_slip_by_coulombs_law_and_do_not_lift(seed, solver):
    """Open without force, sticking within the cone, or sliding on its surface against the slip, without
    dilation.
    """
    problem, rows = random_problem(seed, nv=12)
    rows = hard_rows_of(problem, rows.select([i for i, name in enumerate(rows.names) if name == "cone 0"]))
    found = solve(problem, rows, solver=solver)
    (n, *f), (yn, *y) = found.force, rows.J @ found.acceleration - rows.aref
    mu = np.array(rows.cones[0].friction)
    scale, slip, load = 1e-8 * max(1, largest(found.acceleration)), mu * y, f / mu
    assert found.converged and n >= 0 and yn > -scale
    if n == 0:
        return
    assert abs(yn) < scale
    if np.linalg.norm(slip) > 10 * scale:
        assert np.linalg.norm(load) == pytest.approx(n, rel=1e-9)
        np.testing.assert_allclose(load / np.linalg.norm(load), -slip / np.linalg.norm(slip), atol=1e-6)
    else:
        assert np.linalg.norm(load) <= n * (1 + 1e-9)


@pytest.mark.parametrize("lean", [-1.2, -0.6, -0.4, 0.0, 0.2, 0.4, 1.0])
@pytest.mark.parametrize("speed", [-3.0, 3.0])
def test_a_jamming_rod_is_solved_in_few_iterations(lean, speed):
    """Painleve's rod slides with friction 2.5; a plain fixed-point iteration of Coulomb's law needs
    hundreds of steps.

    By the Newton-Euler equations at the foot, friction acts against the slip where the normal force of
    sliding is finite. Otherwise no finite force exists, and the status says so; the impact that stops the
    foot within the step, with a force inside the cone, is the acceleration.
    """
    mu, g = 2.5, 9.81
    material = zw.Surface(friction=(mu, 0.005, 0.0001), hard=True)
    joints = (zw.Prismatic("x", axis=(1, 0, 0)), zw.Prismatic("z"), zw.Revolute("lean", axis=(0, 1, 0)))
    foot = zw.Sphere(radius=0.001, position=(0, 0, -0.5), surface=material)
    rod = zw.Body("rod", joint=joints, mass=1.0, inertia=(1 / 12, 1 / 12, 1e-4), geometry=[foot])
    mechanism = zw.Mechanism(bodies=[rod], geometry=[zw.Plane(surface=material)])
    height = 0.5 * np.cos(lean) + 0.001
    found = zw.constrained_dynamics(mechanism, [0, height, lean], [speed, 0, 0], np.zeros(3))
    assert found.iterations < 100 and found.kkt_residual < 1e-10
    foot_x, foot_z = -0.5 * np.sin(lean), -height
    along, up = np.array([1, 0, foot_z]), np.array([0, 1, -foot_x])  # the foot's velocity from (x, z, lean)'s
    inverse = np.diag([1.0, 1.0, 12.0])
    against = -np.sign(speed)
    slope = up @ inverse @ (up + mu * against * along)
    assert found.undetermined == (slope < 0) and found.converged == (slope > 0)
    if slope > 0:
        normal = g / slope
        force = normal * (up + mu * against * along)
    else:
        both, h = np.array([along, up]), mechanism.options.timestep
        tangent, normal = np.linalg.solve(both @ inverse @ both.T, [-speed / h, g])
        force = tangent * along + normal * up
        assert 0 < against * tangent < mu * normal
    assert (slope < 0) == (round(speed * lean, 9) in (-1.8, -1.2, -0.6, -3.0)), (
        "jams for moderate backward angles"
    )
    np.testing.assert_allclose(found.rows.J.T @ found.force, force, rtol=1e-8)


def test_inconsistent_hard_rows_are_named():
    problem = GaussProblem(np.eye(3), np.zeros(3), (-1, 0, 1))
    rows = rows_of_kind(("left loop", "right loop"), "equality", [[1.0, 0, 0], [2.0, 0, 0]], [1.0, 5.0])
    with pytest.raises(SolveError, match=r"left loop.*right loop.*contradict"):
        solve(problem, rows)


@pytest.mark.parametrize("difference", [0.0, 50.0])
@pytest.mark.parametrize("iterations", [1, hard_contact.ITERATIONS])
def test_hard_limits_that_do_not_converge_make_no_contradiction(difference, iterations, monkeypatch):
    """Two equalities, the sum of both with a difference, and limits, against the least squares of the
    equalities: at the iteration limit they contradict each other only if these leave a residual.
    """
    monkeypatch.setattr(hard_contact, "ITERATIONS", iterations)
    for seed in range(3):
        problem, _ = random_problem(seed)
        rng = np.random.default_rng(seed)
        J, aref = rng.normal(size=(2, 6)), 5 * rng.normal(size=2)
        J, aref = np.array([*J, J[0] + J[1]]), np.array([*aref, aref.sum() + difference])
        stops = plain_rows("limit", rng.normal(size=(3, 6)), 5 * rng.normal(size=3), np.zeros(3), "stop")
        rows = concatenated([plain_rows("equality", J, aref, np.zeros(3), "loop"), stops], 6)
        found = solve_hard_rows(problem, rows)
        left = np.abs(J @ np.linalg.lstsq(J, aref, rcond=None)[0] - aref).max()
        assert found.converged == (iterations > 1 and not difference)
        if iterations > 1:
            assert found.inconsistent == (left > 1e-9)
        else:
            assert not found.inconsistent or left > 1e-9


def test_forces_that_cancel_each_other_leave_a_body_at_rest_in_few_iterations(count=40):
    """Shapes that are pressed together and cannot move apart: forces of up to 1e7 N, and nearly no load."""
    for seed in range(count):
        rng, (problem, _) = np.random.default_rng(seed), random_problem(seed)
        problem = problem._replace(a_free=1e-9 * rng.normal(size=6))
        J, D = rng.normal(size=(4, 6)), np.tile(10.0 ** rng.uniform(3, 5, size=4), 2)
        A = np.concatenate([J, -J + 1e-16 * rng.normal(size=(4, 6))])
        found = solve(problem, plain_rows("contact", A, np.full(8, 100.0), 1 / D))
        # all rows exert a force: M (a - a_free) = A^T D (aref - A a)
        load = problem.M @ problem.a_free + 100 * (D[:4] @ (A[:4] + A[4:]))
        expected = np.linalg.solve(problem.M + A.T @ (D[:, None] * A), load)
        assert found.converged and found.iterations <= 4
        assert largest(found.acceleration - expected) < 1e-14 * largest(found.force)


def test_inactive_rows_have_no_force_and_no_effect():
    problem, rows = random_problem(3)
    inactive = rows.replaced(active=np.array([False] * len(rows)))
    for name in SOLVERS:
        found = solve(problem, inactive, solver=name)
        np.testing.assert_allclose(found.acceleration, problem.a_free, atol=1e-14)
        assert not found.force.any()


def test_without_rows_the_motion_is_free():
    problem, _ = random_problem(1)
    assert solve(problem, no_rows(6)).acceleration == pytest.approx(problem.a_free)


def test_an_unknown_solver_is_an_error_that_lists_the_solvers():
    problem, rows = random_problem(1)
    with pytest.raises(UnknownNameError, match="newton"):
        solve(problem, rows, solver="newtom")


def test_sliding_friction_lies_on_the_cone_against_the_slip():
    """A unit mass pressed down with 10 N and drawn sideways with 9 N at friction 0.5 accelerates with 4."""
    problem = GaussProblem(np.eye(3), np.array([9.0, 0, -10.0]), (-1, 0, 1))
    J = np.array([[0.0, 0, 1], [1, 0, 0], [0, 1, 0]])
    rows = elliptic(J, np.zeros(3), 1e-9, (0.5, 0.5), 1.0, "floor")
    force = solve(problem, rows).force
    assert force[1] == pytest.approx(-0.5 * force[0], rel=1e-6)
    assert force[2] == pytest.approx(0, abs=1e-9)


def test_the_force_of_a_single_row_in_closed_form():
    problem = GaussProblem(np.array([[2.0]]), np.array([-9.81]), (-1,))
    rows = plain_rows("limit", np.array([[1.0]]), np.array([3.0]), np.array([0.5]))
    assert solve(problem, rows).force[0] == pytest.approx((3.0 + 9.81) / (1 / 2.0 + 0.5), rel=1e-13)
