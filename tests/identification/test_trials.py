"""Several trials are fitted together, and nothing straddles their ends."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.signal import lfilter

import zwang as zw
from tests.identification.test_consistent_fit import gantry, least_squares, of_gantry
from zwang.errors import StateError
from zwang.identification.linear_estimation import autocorrelation_times, estimate


def test_several_trials_are_fitted_together():
    """As numpy fits all of their samples; the filter, what is held back and correlations end with each."""
    trials = [of_gantry(20.0, seed, 400 + 100 * seed) for seed in range(3)]
    rows = [replace(x, **{n: getattr(x, n)[: round(0.8 * len(x))] for n in ("time", "q", "v", "a", "tau")})
            for x in trials]  # fmt: skip
    found = zw.identify.fit(gantry(), trials, kinds=("inertia", "damping", "friction"), estimator="ordinary")
    whole = zw.identify.Measurements.joined(rows)
    np.testing.assert_allclose(found.beta, least_squares(whole), rtol=1e-10)
    assert found.train.lengths == (320, 400, 480) and found.test.lengths == (80, 100, 120)
    assert "1200 samples of 3 trials" in str(zw.identify.report(found))
    smooth = [replace(x, cutoff=10.0) for x in trials]
    joined = zw.identify.Measurements.joined(smooth)
    parts = [x.filtered(x.tau) for x in smooth]
    np.testing.assert_array_equal(joined.filtered(joined.tau), np.concatenate(parts))
    np.testing.assert_array_equal(
        joined.time[joined.inner], np.concatenate([x.time[x.inner] for x in smooth])
    )
    rng = np.random.default_rng(0)
    x = np.cumsum(
        rng.normal(size=(20, 50, 1)), axis=1
    )  # random walks: every trial is correlated within itself
    shuffled = x[rng.permutation(20)]
    times = [autocorrelation_times(y.reshape(-1, 1), (50,) * 20) for y in (x, shuffled)]
    np.testing.assert_allclose(*times, rtol=1e-12)
    with pytest.raises(StateError, match=r"the trials have the cutoffs 10\.0, None"):
        zw.identify.fit(gantry(), [smooth[0], trials[1]])
    with pytest.raises(StateError, match="samples has no trials"):
        zw.identify.fit(gantry(), [])


@pytest.mark.parametrize("loss", ["linear", "huber"])
def test_the_information_of_trials_with_different_errors_adds(loss):
    """Gauss and Markov: C^-1 is the sum of those of the trials alone, and beta their weighted mean."""
    rng, lengths, n = np.random.default_rng(0), (4000, 1500), 5
    W = rng.normal(size=(sum(lengths), 2, n))
    W[4000:] *= 3
    sizes = np.repeat([[0.1, 1.0], [2.0, 0.3]], lengths, axis=0)  # by trial and joint
    tau = W.sum(axis=2) + sizes * rng.normal(size=sizes.shape)

    def fitted(rows, *trials):
        return estimate(W[rows], tau[rows], "weighted", loss, tuple("abcde"), trials)

    both, parts = fitted(slice(None), *lengths), [fitted(slice(4000)), fitted(slice(4000, None))]
    inverses = [np.linalg.inv(x.covariance) for x in parts]
    information = inverses[0] + inverses[1]
    np.testing.assert_allclose(np.linalg.inv(both.covariance), information, atol=0.1 * information.max())
    mean = np.linalg.solve(information, sum(C @ x.beta for C, x in zip(inverses, parts, strict=True)))
    np.testing.assert_allclose(both.beta, mean, atol=0.3 * np.sqrt(np.diag(both.covariance)).min())


def test_intervals_hold_where_the_errors_of_one_trial_are_correlated():
    """Errors x_k = r x_(k-1) + e_k, r = 0.9, in the shorter one of two trials."""
    rng, lengths, ratios = np.random.default_rng(0), (3000, 1500), []
    t = np.arange(sum(lengths)) / 100
    W = np.stack([np.sin(f * t) for f in (2.0, 3.1, 4.7)], axis=-1)[:, None]
    W[3000:] *= 3
    for _ in range(100):
        e = rng.normal(size=len(t) + 100)
        slow = np.asarray(lfilter([np.sqrt(1 - 0.9**2)], [1, -0.9], e))[100:]
        tau = np.where(t < 30, e[100:], slow)[:, None]
        found = estimate(W, tau, "weighted", "linear", ("a", "b", "c"), lengths)
        ratios.append(found.beta / np.sqrt(np.diag(found.covariance)))
    assert 0.85 < np.sqrt(np.mean(np.square(ratios))) < 1.15  # of 300 standard normal numbers, +-0.04
