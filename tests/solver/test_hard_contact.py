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
