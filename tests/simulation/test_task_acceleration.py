"""Prescribed accelerations of a frame by Gauss's principle, for one state and for many."""

import numpy as np
import pytest

import zwang as zw
from tests.symbolic.machines import Z
from zwang.errors import ShapeError, SolveError


def arm():
    bodies, parent, at = [], "world", (0, 0, 0)
    for k, length in enumerate((0.5, 0.4, 0.3)):
        bodies.append(
            zw.Body(
                f"link{k}",
                zw.Revolute(f"q{k}", axis=Z),
                parent,
                at,
                mass=1.0,
                com=(length / 2, 0, 0),
                inertia=(0.02,) * 3,
            )
        )
        parent, at = f"link{k}", (length, 0, 0)
    return zw.Mechanism("3R", bodies, gravity=(0, -9.81, 0), frames=[zw.Frame("tool", parent, at)])


def test_each_of_many_states_equals_a_single_state():
    m, rng = arm(), np.random.default_rng(0)
    q, v, tau = rng.normal(size=(3, 20, 3))
    wanted = rng.normal(size=(20, 2))
    many = zw.task_acceleration(m, q, v, tau, "tool", wanted, rows=(0, 1))
    for w in range(20):
        one = zw.task_acceleration(m, q[w], v[w], tau[w], "tool", wanted[w], rows=(0, 1))
        for field, x, y in zip(one._fields, one, many, strict=True):
            np.testing.assert_allclose(y[w], x, rtol=1e-8, atol=1e-8, err_msg=field)
    np.testing.assert_allclose(many.residual, 0, atol=1e-8)
    apart = zw.task_acceleration(m, q[7:8], v[7:8], tau[7:8], "tool", wanted[7:8], rows=(0, 1))
    assert np.array_equal(apart.acceleration[0], many.acceleration[7])


def test_no_other_acceleration_with_the_task_has_a_smaller_zwang():
    m, (q, v, tau) = arm(), np.random.default_rng(1).normal(size=(3, 3))
    wanted = np.array([0.3, -0.2])
    found = zw.task_acceleration(m, np.stack([q, q]), v, tau, "tool", wanted, rows=(0, 1))
    J, M, a = zw.frame_jacobian(m, q, "tool")[:2], zw.mass_matrix(m, q), found.acceleration[1]
    along = np.linalg.svd(J)[2][2]
    np.testing.assert_allclose(along @ M @ (a - found.free[1]), 0, atol=1e-10)
    np.testing.assert_allclose(J @ a + drift(m, q, v), wanted, atol=1e-7)
    np.testing.assert_allclose(M @ (a - found.free[1]), found.generalised_force[1], atol=1e-9)


def drift(m, q, v, h=1e-6):
    """J_dot v by differences along the motion."""
    ahead, behind = (zw.integrate_configuration(m, q, v, s * h) for s in (1, -1))
    return (zw.frame_jacobian(m, ahead, "tool") - zw.frame_jacobian(m, behind, "tool"))[:2] @ v / (2 * h)


def test_states_without_a_solution_are_nan():
    """The tool of a stretched arm at rest cannot accelerate along the arm; for one state that is an error by
    name.
    """
    m, still = arm(), np.zeros(3)
    states = np.array([[0.0, 0, 0], [0.0, 0.7, -0.4]])
    found = zw.task_acceleration(m, states, still, still, "tool", [1.0, 0.0], rows=(0, 1))
    assert np.isnan(found.acceleration[0]).all() and np.isfinite(found.acceleration[1]).all()
    assert found.residual[0, 0] == pytest.approx(-1.0)
    with pytest.raises(SolveError, match="task 0"):
        zw.task_acceleration(m, states[0], still, still, "tool", [1.0, 0.0], rows=(0, 1))
    with pytest.raises(ShapeError, match="desired"):
        zw.task_acceleration(m, states, still, still, "tool", [1.0, 0.0, 2.0], rows=(0, 1))
