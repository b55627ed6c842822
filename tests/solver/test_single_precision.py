"""Contacts in single precision: the solver converges to rounding, near the solution in double precision."""

from pathlib import Path

import numpy as np

import zwang as zw

WALKER = Path(__file__).parents[2] / "examples" / "models" / "walker2d.xml"


def test_a_walker_falls_in_single_precision_as_in_double():
    mechanism, rng = zw.load(WALKER), np.random.default_rng(3)
    q = np.array(mechanism.home or mechanism.neutral) + 0.05 * rng.normal(size=(128, mechanism.nq))
    v, u = 0.1 * rng.normal(size=(128, mechanism.nv)), rng.uniform(-1, 1, size=(128, 6))
    ends = [
        zw.compile(mechanism, dtype=dtype).rollout(q, v, u, steps=200, every=100)
        for dtype in ("float64", "float32")
    ]
    assert all(np.isfinite(end.q).all() for end in ends)
    difference = np.abs(ends[0].q - ends[1].q).max(axis=(1, 2))
    assert np.median(difference) < 1e-4  # in a few worlds another contact is made first
