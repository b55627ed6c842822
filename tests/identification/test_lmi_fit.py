"""Consistent parameters by linear matrix inequalities: as near to the data as possible, and within bounds."""

from __future__ import annotations

import numpy as np
import pytest

import zwang as zw
from tests.identification.test_simulation_fit import arm
from zwang.errors import DescriptionError
from zwang.identification.pseudo_inertia import is_consistent

pytest.importorskip("cvxpy", reason="cvxpy is not installed")


def samples(noise: float = 0.2) -> zw.identify.Measurements:
    t = np.arange(400) * 0.01
    phases = np.array([0.0, 1.0])
    q = np.sin(3 * t[:, None] + phases) + 0.5 * np.sin(7 * t[:, None] + 2 * phases)
    v = 3 * np.cos(3 * t[:, None] + phases) + 3.5 * np.cos(7 * t[:, None] + 2 * phases)
    a = -9 * np.sin(3 * t[:, None] + phases) - 24.5 * np.sin(7 * t[:, None] + 2 * phases)
    tau = zw.compile(arm()).inverse_dynamics(q, v, a)
    return zw.identify.Measurements(t, q, v, a, tau + noise * np.random.default_rng(0).normal(size=tau.shape))


def distance(fit: zw.identify.Fit) -> float:
    """|C^-1/2 (B pi - beta)|."""
    error = fit.base.matrix @ fit.pi - fit.beta
    return float(np.sqrt(error @ np.linalg.solve(fit.estimate.covariance, error)))


@pytest.mark.parametrize("noise", [0.0, 1e-6, 0.2, 3.0])
def test_no_consistent_parameters_are_nearer_to_the_data(noise):
    data, kinds = samples(noise), ("inertia", "damping")
    lmi = zw.identify.fit(arm(0.6), data, kinds=kinds, consistent="lmi")
    entropic = zw.identify.fit(arm(0.6), data, kinds=kinds)
    assert lmi.is_consistent() and all(is_consistent(lmi.pi[k : k + 10]) for k in (0, 10))
    assert np.allclose(lmi.beta, entropic.beta) and np.allclose(lmi.interval, entropic.interval)
    assert distance(lmi) < distance(entropic) + 0.05
    assert lmi.mechanism.bodies[1].mass > 0


@pytest.mark.parametrize(
    "bounds", [None, {"m_upper": (0.0, 0.5), "m_lower": (0.0, 2.0)}], ids=["none", "apart"]
)
def test_the_prior_or_the_bounds_may_be_far_from_exact_data(bounds):
    """The arm that is measured has other masses than a model of 1 g, or than the bounds allow."""
    found = zw.identify.fit(
        arm(0.001), samples(1e-3), kinds=("inertia", "damping"), consistent="lmi", bounds=bounds
    )
    assert found.is_consistent()
    assert bounds or distance(found) < 0.05


@pytest.mark.parametrize("noise", [0.0, 1e-6])
def test_exact_data_are_reproduced_from_a_model_of_1_g(noise):
    found = zw.identify.fit(arm(0.001), samples(noise), kinds=("inertia", "damping"), consistent="lmi")
    assert found.is_consistent()
    state = [0.3, -0.4], [1.0, -2.0], [3.0, 1.0]
    exact = zw.inverse_dynamics(arm(), *state)
    np.testing.assert_allclose(zw.inverse_dynamics(found.mechanism, *state), exact, atol=1e-5)


@pytest.mark.parametrize(
    "bounds", [{"m_upper": (0.0, 0.5), "m_lower": (0.0, 2.0)}, {"damping_hip": (0.2, 0.5)}], ids=list
)
@pytest.mark.parametrize("noise", [0.0, 1e-6])
def test_bounds_may_contradict_exact_data(noise, bounds):
    """The upper link has 1.2 kg, and the hip a damping of 0.1."""
    found = zw.identify.fit(
        arm(0.6), samples(noise), kinds=("inertia", "damping"), consistent="lmi", bounds=bounds
    )
    assert found.is_consistent()
    value = dict(zip((p.name for p in found.base.parameters), found.pi, strict=True))
    assert all(low <= value[name] <= high for name, (low, high) in bounds.items())
    name, nearest = next((n, b[0] if n == "damping_hip" else b[1]) for n, b in bounds.items())
    assert abs(value[name] - nearest) < 1e-3  # the bound that is nearest to the truth


def test_inertial_parameters_have_bounds():
    data = samples()
    found = zw.identify.fit(
        arm(0.6),
        data,
        kinds="inertia",
        consistent="lmi",
        bounds={"m_upper": (1.1, 1.15), "m_lower": (1.0, 1.5)},
    )
    names = [p.name for p in found.base.parameters]
    assert 1.1 <= found.pi[names.index("m_upper")] <= 1.15
    assert 1.0 <= found.pi[names.index("m_lower")] <= 1.5
    assert found.is_consistent()
    with pytest.raises(DescriptionError, match="lmi"):
        zw.identify.fit(arm(0.6), data, kinds="inertia", bounds={"m_upper": (1, 2)})
