"""Least squares by blocks of rows, its condition numbers, and those of planned motions."""

from __future__ import annotations

import tracemalloc

import mpmath
import numpy as np
import pytest
from scipy.signal import butter, lfilter, sosfiltfilt
from scipy.stats import t as student

import zwang as zw
from zwang.identification.linear_estimation import CHUNK, estimate
from zwang.mechanism.samples import double_pendulum


def random_problem(samples: int, joints: int = 3, columns: int = 20) -> tuple[np.ndarray, np.ndarray]:
    """W (samples, joints, columns), with columns of very different lengths, and tau with errors."""
    rng = np.random.default_rng(0)
    W = rng.normal(size=(samples, joints, columns)) * np.logspace(-3, 3, columns)
    return W, W @ (1 / np.logspace(-3, 3, columns)) + rng.normal(size=(samples, joints))


def test_many_blocks_of_rows_give_numpys_least_squares_and_condition_numbers():
    W, tau = random_problem(2 * CHUNK + 500)
    names = tuple(map(str, range(W.shape[2])))
    found, rows = estimate(W, tau, "ordinary", "linear", names), W.reshape(-1, W.shape[2])
    np.testing.assert_allclose(found.beta, np.linalg.lstsq(rows, tau.ravel(), rcond=None)[0], rtol=1e-9)
    assert found.condition == pytest.approx(np.linalg.cond(rows), rel=1e-6)
    scaled = rows / np.linalg.norm(rows, axis=0)
    assert found.scaled_condition == pytest.approx(np.linalg.cond(scaled), rel=1e-9)
    # independent errors of variance 1: C = (W^T W)^-1
    expected = np.sqrt(np.diag(np.linalg.inv(scaled.T @ scaled))) / np.linalg.norm(rows, axis=0)
    np.testing.assert_allclose(np.sqrt(np.diag(found.covariance)), expected, rtol=0.1)


def test_the_memory_of_an_estimate_is_small_beside_the_regressor():
    W, tau = random_problem(40_000)
    tracemalloc.start()
    estimate(W, tau, "weighted", "linear", tuple(map(str, range(W.shape[2]))))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < W.nbytes / 2


def test_many_columns_are_filtered_as_by_scipy():
    x = np.random.default_rng(0).normal(size=(400, 3, 15))
    samples = zw.identify.Measurements(np.arange(400) * 0.01, *np.zeros((4, 400, 1)), cutoff=10.0)
    expected = sosfiltfilt(butter(4, 10.0, fs=100.0, output="sos"), x, axis=0)
    np.testing.assert_array_equal(samples.filtered(x), expected[samples.inner])


def test_planned_and_measured_motions_have_the_same_condition_numbers():
    m = double_pendulum(m1=2.0, m2=3.0, l1=0.5, l2=0.7)
    kinds = ("inertia", "damping")
    planned = zw.identify.excitation(m, kinds=kinds, harmonics=3, starts=2, perturbations=0)
    t = np.arange(1000) * 0.01
    q, v, a = planned.motion(t)
    tau = zw.compile(m).inverse_dynamics(q, v, a) + 0.01 * np.random.default_rng(0).normal(size=q.shape)
    fit = zw.identify.fit(m, zw.identify.Measurements(t, q, v, a, tau), kinds=kinds, held_back=0)
    Y = zw.identify.regressor(m, q, v, a, kinds=kinds)[..., list(fit.base.independent)].reshape(
        -1, len(fit.base)
    )
    for W, measured, plan in (
        (Y, fit.estimate.condition, planned.condition),
        (Y / np.linalg.norm(Y, axis=0), fit.estimate.scaled_condition, planned.scaled_condition),
    ):
        assert measured == pytest.approx(np.linalg.cond(W), rel=1e-6) and plan == pytest.approx(
            measured, rel=1e-3
        )
    numbers = fit.estimate.condition, fit.estimate.scaled_condition
    assert "is {:.3g}, and with its columns scaled to unit length {:.3g}.".format(*numbers) in str(
        zw.identify.report(fit)
    )


def test_hubers_deviations_hold_for_errors_with_correlation_and_outliers():
    """A mean of errors x_k = r x_(k-1) + e_k with outliers: the estimates scatter by these deviations."""
    rng, r, trials = np.random.default_rng(0), 0.8, 100
    noise = np.sqrt(1 - r**2) * rng.normal(size=(trials, 700))
    x = np.asarray(lfilter([1], [1, -r], noise))[:, 100:]
    x += (rng.random(x.shape) < 0.02) * 25 * rng.normal(size=x.shape)
    W = np.ones((600, 1, 1))
    found = [estimate(W, tau[:, None], "weighted", "huber", ("mean",)) for tau in x]
    ratio = [float(e.beta[0]) / np.sqrt(e.covariance[0, 0]) for e in found]
    assert 0.8 < np.sqrt(np.mean(np.square(ratio))) < 1.25  # of 100 standard normal numbers, +-0.07


@pytest.mark.parametrize(("estimator", "error"), [("ordinary", 1e-6), ("total", 1e-10)])
def test_the_covariance_of_nearly_dependent_columns_is_that_of_exact_arithmetic(estimator, error):
    """The formulas of the docstrings in 60 digits, where W^T W has a condition number of 1e15."""
    rng = np.random.default_rng(0)
    W = rng.normal(size=(80, 1, 3))
    W[..., 2] = W[..., 0] - W[..., 1] + 3e-8 * rng.normal(size=(80, 1))
    tau = W.sum(axis=2) + error * rng.normal(size=(80, 1))
    found = estimate(W, tau, estimator, "linear", ("a", "b", "c"))
    with mpmath.workdps(60):
        A, y = mpmath.matrix(W[:, 0].tolist()), mpmath.matrix(tau.tolist())
        if estimator == "ordinary":  # C = T sigma^2 (W^T W)^-1
            beta = mpmath.lu_solve(A, y)
            C = mpmath.norm(y - A * beta) ** 2 / (80 - 3) * mpmath.inverse(A.T * A)
        else:  # C = T s^2 (1 + |x|^2) / (N - n) (Z^T Z - s^2)^-1 of columns as long as tau
            scale = mpmath.diag([mpmath.norm(y) / mpmath.norm(A[:, k]) for k in range(3)])
            Z = A * scale
            joined = mpmath.matrix(80, 4)
            joined[:, :3], joined[:, 3] = Z, y
            least = min(mpmath.eigsy(joined.T * joined, eigvals_only=True))
            gram = Z.T * Z - least * mpmath.eye(3)
            x = mpmath.lu_solve(gram, Z.T * y)
            beta = scale * x
            C = least / (80 - 3) * (1 + mpmath.norm(x) ** 2) * scale * mpmath.inverse(gram) * scale
        expected = np.array([float(mpmath.sqrt(C[k, k])) for k in range(3)])
        expected *= np.sqrt(found.correlation.max())
    np.testing.assert_allclose(found.beta, [float(b) for b in beta], rtol=1e-6)
    np.testing.assert_allclose(np.sqrt(np.diag(found.covariance)), expected, rtol=1e-5)


def test_intervals_of_short_records_of_white_errors_are_not_wider_than_they_have_to_be():
    """Against the deviations under known errors; N - p is 40, and T is near one by chance."""
    rng, N, n, widths = np.random.default_rng(0), 60, 20, []
    for _ in range(100):
        W, e = rng.normal(size=(N, 1, n)), rng.normal(size=(N, 1))
        found = estimate(W, e, "weighted", "linear", tuple(map(str, range(n))))
        known = np.sqrt(np.diag(np.linalg.inv(W[:, 0].T @ W[:, 0])))
        widths.append(np.mean(np.sqrt(np.diag(found.covariance)) / known))
    assert 0.9 < np.median(widths) < 1.15 and np.quantile(widths, 0.9) < 1.7


@pytest.mark.parametrize(("r", "least"), [(0.0, 0.92), (0.9, 0.85)])
def test_intervals_hold_where_parameters_take_slow_errors_from_the_residuals(r, least):
    """Errors x_k = r x_(k-1) + e_k, and columns of the lowest frequencies alone, of which nothing is left
    in the residuals: the worst case, in which intervals of 95 % still contain fewer, about 88 %, for r = 0.9.
    """
    rng, N, n, inside = np.random.default_rng(1), 1000, 12, []
    t = np.arange(N) / N
    W = np.stack([f(2 * np.pi * k * t) for k in range(1, n // 2 + 1) for f in (np.sin, np.cos)], axis=-1)
    for _ in range(60):
        noise = np.sqrt(1 - r**2) * rng.normal(size=N + 100)
        x = np.asarray(lfilter([1], [1, -r], noise))[100:]
        found = estimate(W[:, None], x[:, None], "weighted", "linear", tuple(map(str, range(n))))
        freedom = (N - n) / found.correlation.max()
        half = student.ppf(0.975, freedom) * np.sqrt(np.diag(found.covariance))
        inside.append(np.abs(found.beta) < half)
    assert least < np.mean(inside) < 0.98
