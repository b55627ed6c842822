"""Forces of hard contacts, given a Delassus matrix: closed forms, enumeration and the laws of contact."""

import numpy as np
import pytest

import zwang as zw
from tests.solver.contact_problems import (
    bodies,
    planar_solutions,
    random_problem,
    random_stack,
    stack,
    violations,
)
from zwang.errors import ArgumentError, ShapeError, StateError


@pytest.mark.parametrize("kind", [random_problem, bodies, random_stack], ids=lambda kind: kind.__name__)
def test_the_laws_of_contact_hold_on_random_problems(kind):
    """With redundant rows and mass ratios up to 1e6; benchmarks/hard_contact.py solves 10,000."""
    rng = np.random.default_rng(1)
    for _ in range(40):
        G, g, mu = kind(rng)
        found = zw.solve_contact(G, g, mu)
        assert found.status in ("converged", "several") and found.residual < 1e-11
        assert max(violations(G, g, mu, found.force)) < 1e-11


def test_they_hold_in_stacks_with_any_friction():
    rng = np.random.default_rng(2)
    for mu in (10.0, 100.0, 1e4):
        for _ in range(5):
            G, g, _ = random_stack(rng)
            found = zw.solve_contact(G, g, mu)
            assert found.status in ("converged", "several") and found.residual < 1e-11
            assert max(violations(G, g, np.full(len(g) // 3, mu), found.force)) < 1e-11


@pytest.mark.parametrize("ratio", [1e-6, 1e-4, 1, 1e3, 1e4, 1e5, 1e6])
def test_two_cubes_of_any_mass_ratio_rest_on_each_other(ratio):
    """The normal forces balance the weights; a light cube may be below or above."""
    velocity = np.tile([0, 0, -9.81e-3, 0, 0, 0], 2)
    found = zw.solve_contact(*stack([1.0, ratio], 0.9, velocity))
    assert found.converged and found.iterations < 60
    np.testing.assert_allclose(found.force[:4, 0].sum(), 9.81e-3 * (1 + ratio), rtol=1e-8)
    np.testing.assert_allclose(found.force[4:, 0].sum(), 9.81e-3 * ratio, rtol=1e-8)
    assert np.abs(found.velocity).max() < 1e-10 and found.residual < 1e-12


def test_a_block_with_sixteen_points_slides_by_coulombs_law():
    """Velocity after the impulse: 1 - mu 9.81e-3; the height of its centre does not tip it."""
    velocity = np.array([1.0, 0, -9.81e-3, 0, 0, 0])
    found = zw.solve_contact(*stack([2.0], 0.3, velocity, points=16))
    assert found.converged
    np.testing.assert_allclose(found.velocity[:, 1], 1 - 0.3 * 9.81e-3, rtol=1e-12)
    np.testing.assert_allclose(found.force.sum(axis=0), [2 * 9.81e-3, -0.6 * 9.81e-3, 0], atol=1e-13)


def test_a_wedge_jams_or_slips_at_the_angle_of_friction():
    """A wedge of half angle 0.3 between two fixed walls: the velocity along its axis is zero if pressed in;
    pulled out, it is held where mu > 0 cannot (no force of its own presses it).
    """
    a, rows = 0.3, []
    for side in (1, -1):
        n, t = np.array([side * np.cos(a), np.sin(a), 0]), np.array([-side * np.sin(a), np.cos(a), 0])
        rows += [n, t, np.array([0, 0, 1])]
    J = np.array(rows)
    for mu in (0.2, 0.5):
        pressed = zw.solve_contact(J @ J.T, J @ [0, -1.0, 0], mu)
        pulled = zw.solve_contact(J @ J.T, J @ [0, 1.0, 0], mu)
        assert np.abs(pressed.velocity).max() < 1e-12 and np.abs(pulled.force).max() == 0
        assert (
            np.abs(pressed.force[:, 0].sum() * np.sin(a) + pressed.force[:, 1].sum() * np.cos(a) - 1) < 1e-12
        )


def test_planar_problems_agree_with_the_enumeration_of_all_modes():
    rng, unique = np.random.default_rng(4), 0
    for _ in range(60):
        n = rng.integers(1, 4)
        J = rng.normal(size=(2 * n, 2 * n + 1))
        G, g, mu = J @ J.T, rng.normal(size=2 * n), rng.uniform(0, 1, n)
        solutions = planar_solutions(G, g, mu)
        spatial, free = np.zeros((3 * n, 3 * n)), np.zeros(3 * n)
        rows = [3 * i + j for i in range(n) for j in (0, 1)]
        spatial[np.ix_(rows, rows)], free[rows] = G, g
        found = zw.solve_contact(spatial, free, mu)
        c = found.velocity[:, :2].ravel()
        assert min(np.abs(c - other).max() for other in solutions) < 1e-9
        unique += len(solutions) == 1
        assert found.converged or len(solutions) > 1
    assert unique > 40


def rod_matrix(angle, mass=1.0, length=1.0):
    """Delassus matrix of the lower tip of a thin rod at an angle to the ground."""
    x, z = length / 2 * np.cos(angle), -length / 2 * np.sin(angle)
    J = np.array([[0, 1, x], [1, 0, -z], [0, 0, 0]])
    return J / np.array([mass, mass, mass * length**2 / 12]) @ J.T


def test_a_rod_that_lifts_off_or_jams_is_reported_as_undetermined():
    """Painleve's rod has a tip that its own friction presses down where mu > (1 + 3 cos^2) / (3 sin cos).

    With c_n > 0 without force it may lift off, or be held at rest; the least mu for both is 4/3.
    """
    angle, mu = 0.6, 2.5
    G = rod_matrix(angle)
    assert mu > (1 + 3 * np.cos(angle) ** 2) / (3 * np.sin(angle) * np.cos(angle)) > 4 / 3
    towards = np.sign(G[0, 1])  # friction against this velocity presses the tip down
    both = zw.solve_contact(G, [0.1, 5 * towards, 0], mu)
    assert both.status == "several" and not both.converged and "Painleve" in both.message
    away = zw.solve_contact(G, [0.1, -5 * towards, 0], mu)
    assert away.status == "converged" and not away.force.any()
    held = zw.solve_contact(G, [-0.1, 5 * towards, 0], mu)  # the impulse that stops it is the only solution
    assert held.status == "converged" and np.abs(held.velocity).max() < 1e-12


def test_a_contact_that_cannot_move_and_approaches_has_no_solution():
    found = zw.solve_contact(np.zeros((3, 3)), [-1.0, 0, 0], 0.5)
    assert found.status == "not_converged" and "cannot move" in found.message


def test_normals_may_be_first_or_last():
    rng = np.random.default_rng(0)
    G, g, mu = bodies(rng)
    order = np.arange(len(g)).reshape(-1, 3)[:, [1, 2, 0]].ravel()
    first, last = (
        zw.solve_contact(G, g, mu),
        zw.solve_contact(G[np.ix_(order, order)], g[order], mu, normal="last"),
    )
    np.testing.assert_array_equal(first.force.ravel()[order], last.force.ravel())


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ((np.eye(4), np.zeros(4), 0.5), ShapeError, "three rows for each contact"),
        ((np.eye(6), np.zeros(3), 0.5), ShapeError, r"G has shape \(3, 3\)"),
        ((np.eye(3), np.zeros(3), [0.5, 0.5]), ShapeError, "one for each contact"),
        ((np.eye(3), np.zeros(3), -0.5), ArgumentError, "not negative"),
        ((np.triu(np.ones((3, 3))), np.zeros(3), 0.5), ArgumentError, "symmetric"),
        ((np.eye(3), [0, np.nan, 0], 0.5), StateError, "every element of g must be finite"),
    ],
)
def test_wrong_arguments_are_refused(arguments, error, text):
    with pytest.raises(error, match=text):
        zw.solve_contact(*arguments)


def test_an_unknown_place_of_the_normal_is_refused():
    with pytest.raises(ArgumentError, match="'first' or 'last'"):
        zw.solve_contact(np.eye(3), np.zeros(3), 0.5, normal="middle")


def geared_arm(mu, height):
    """An arm whose tip touches a floor of this height, and whose elbow turns a wheel by a hard coupling."""
    surface = zw.Surface(friction=(mu, 0.005, 1e-4))
    tip = zw.Sphere(radius=0.05, position=(0.3, 0, 0), surface=surface)
    link = {"mass": 1, "com": (0.15, 0, 0), "inertia": (0.002, 0.01, 0.01)}
    bodies = [
        zw.Body("base", zw.Revolute("base", axis=(0, 0, 1)), mass=1, inertia=(0.01, 0.01, 0.01)),
        zw.Body("upper", zw.Revolute("shoulder", axis=(0, 1, 0)), "base", **link),
        zw.Body("lower", zw.Revolute("elbow", axis=(0, 1, 0)), "upper", (0.3, 0, 0), geometry=[tip], **link),
        zw.Body("wheel", zw.Revolute("wheel", axis=(0, 1, 0)), "base", mass=0.2, inertia=(0.001,) * 3),
    ]
    return zw.Mechanism(
        "arm", bodies, geometry=[zw.Plane(position=(0, 0, height), surface=surface)],
        constraints=[zw.JointCoupling("gear", "wheel", "elbow", coefficients=(0, 5.0))],
        options=zw.Options(cone="elliptic"),
    )  # fmt: skip


@pytest.mark.parametrize("mu", [0.7, 1.5])
def test_soft_cones_beside_a_hard_row_are_those_of_the_problem_without_it(mu, count=2000):
    """Coordinate reduction leaves a problem with soft rows alone, which Newton's method solves."""
    rng, z = np.random.default_rng(0), zw.scalar.symbol("z")
    q, v = rng.normal(size=(count, 3)), 0.5 * rng.normal(size=(count, 3))
    height = (
        -0.3 * np.sin(q[:, 1]) - 0.3 * np.sin(q[:, 1] + q[:, 2]) - 0.049
    )  # 1 mm above the tip's lowest point
    start = [np.column_stack([x, 5 * x[:, 2]]) for x in (q, v)]
    found = []
    for reduction in (False, True):
        worlds = zw.Worlds(geared_arm(mu, z), count, step=1e-3, params={"z": height},
                           coordinate_reduction=reduction)  # fmt: skip
        worlds.set(q=start[0], v=start[1])
        worlds.step()
        assert not worlds.failed.any()
        found.append(np.array(worlds.v))
    assert np.abs(found[0] - found[1]).max() < 1e-9


@pytest.mark.parametrize("mu", [0.5, 1.5])
def test_soft_and_hard_cones_of_one_body_satisfy_their_laws(mu):
    """A soft cone: w = J a - aref + R f lies in the dual cone, and f^T w = 0; a hard one: Coulomb's law."""
    hard, soft = [zw.Surface(friction=(mu, 0, 0), hard=x, priority=int(x)) for x in (True, False)]
    places = ((0.2, 0, 0), hard), ((-0.2, 0.1, 0), soft), ((-0.2, -0.1, 0), soft)
    geometry = [zw.Sphere(radius=0.05, position=p, surface=s) for p, s in places]
    body = zw.Body("body", zw.Free("body"), mass=1, inertia=(0.02, 0.03, 0.04), geometry=geometry)
    m = zw.Mechanism("tripod", [body], geometry=[zw.Plane(surface=soft)], options=zw.Options(cone="elliptic"))
    rng, slid = np.random.default_rng(1), 0
    for _ in range(40):
        v = rng.normal(size=6) * [1, 1, 0.3, 1, 1, 1]
        found = zw.constrained_dynamics(m, [0, 0, 0.0495, 1, 0, 0, 0], v, np.zeros(6))
        assert found.converged
        for cone in found.rows.cones:
            own = slice(cone.start, cone.stop)
            f, rows = found.force[own], found.rows
            w = rows.J[own] @ found.acceleration - rows.aref[own] + rows.R[own] * f
            size, slip = np.abs(w).max() + 9.81, np.linalg.norm(w[1:])
            slid += slip > 1e-3
            assert np.linalg.norm(f[1:]) <= mu * f[0] + 1e-9
            w_n = w[0] - (0 if rows.hard[cone.start] else mu * slip)
            assert w_n > -1e-9 * size and abs(f[0] * w_n) < 1e-8 * size
            # maximum dissipation
            assert abs(f[1:] @ w[1:] + mu * f[0] * slip) < 1e-8 * size
    assert slid > 10
