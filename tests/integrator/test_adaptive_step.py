"""Error-controlled integration: tolerances, discontinuities, and the report of failures."""

from __future__ import annotations

import numpy as np
import pytest

from zwang.errors import SimulationError
from zwang.integrator.adaptive_step import METHODS, Adaptive, integrate_error_controlled

TIMES = np.linspace(0, 2, 41)


@pytest.mark.parametrize("method", METHODS)
def test_the_dense_output_equals_the_closed_form(method):
    solution = integrate_error_controlled(
        lambda t, y, since: np.array([y[1], -y[0]]),
        [1.0, 0.0],
        TIMES,
        Adaptive(method, rtol=1e-9, atol=1e-11),
    )
    assert solution.failure == "" and solution.end == 2.0
    np.testing.assert_allclose(solution.y[:, 0], np.cos(TIMES), atol=3e-7)


def test_a_discontinuous_derivative_is_integrated_exactly():
    solution = integrate_error_controlled(
        lambda t, y, since: np.array([1.0 if since < 0.777 else -1.0]),
        [0.0],
        TIMES,
        Adaptive(),
        discontinuities=[0.777],
    )
    np.testing.assert_allclose(
        solution.y[:, 0], np.where(TIMES < 0.777, TIMES, 2 * 0.777 - TIMES), atol=1e-12
    )


def test_a_diverging_solution_ends_with_the_finite_samples():
    """y_dot = y^2 from 1 is 1 / (1 - t): it diverges at t = 1."""
    solution = integrate_error_controlled(
        lambda t, y, since: y * y,
        [1.0],
        TIMES,
        Adaptive(),
        is_admissible=lambda y: bool((np.abs(y) < 1e10).all()),
    )
    assert solution.failure and solution.end == pytest.approx(1.0, abs=1e-6)
    known = TIMES[: len(solution.y)]
    assert known[-1] == pytest.approx(0.95)
    np.testing.assert_allclose(solution.y[:, 0], 1 / (1 - known), rtol=1e-6)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [({"method": "magic"}, "dop853"), ({"rtol": 0.0}, "rtol"), ({"atol": -1.0}, "atol")],
)
def test_invalid_settings_are_rejected_by_name(arguments, named):
    with pytest.raises(SimulationError, match=named):
        Adaptive(**arguments)
