"""Several trials are fitted together, and nothing straddles their ends."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import zwang as zw
from tests.identification.test_consistent_fit import gantry, least_squares, of_gantry
from zwang.errors import StateError
from zwang.identification.linear_estimation import autocorrelation_times


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
