"""Compiled steps, which are kept for other worlds of an equal mechanism with the same settings."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

import zwang as zw

WALKER = Path(__file__).parents[2] / "examples" / "models" / "walker2d.xml"


def test_worlds_of_an_equal_mechanism_are_made_without_tracing_its_step_again():
    times = []
    for _ in range(2):
        begun = time.process_time()
        zw.Worlds(zw.load(WALKER).replace(gravity=(0, 0, -9.7)))
        times.append(time.process_time() - begun)
    assert times[1] < times[0] / 4


def test_worlds_differ_by_their_settings():
    """Mass points that fall: g h^2 n (n + 1) / 2 after n semi-implicit steps, and g (n h)^2 / 2 by rk4."""
    n = 10
    for g in (9.81, 1.62):
        body = zw.Body("ball", zw.Prismatic("z", axis=(0, 0, 1)), mass=1)
        m = zw.Mechanism("ball", [body], gravity=(0, 0, -g))
        for h in (0.01, 0.02):
            for integrator, fall in (("euler", g * h**2 * n * (n + 1) / 2), ("rk4", g * (n * h) ** 2 / 2)):
                for dtype, rtol in (("float64", 1e-13), ("float32", 1e-6)):
                    worlds = zw.Worlds(m, step=h, integrator=integrator, dtype=dtype)
                    worlds.step(substeps=n)
                    assert worlds.q.dtype == dtype and worlds.q[0, 0] == pytest.approx(-fall, rel=rtol)
