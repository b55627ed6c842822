"""The example mechanisms: closed loops, limiting cases, and symbols for omitted numbers."""

from __future__ import annotations

import numpy as np
import pytest

import zwang as zw
from zwang.mechanism.samples import FURUTA, SAMPLES, double_pendulum, four_bar, furuta


@pytest.mark.parametrize("name", SAMPLES)
def test_every_sample_is_numeric_serialisable_and_visible(name):
    sample = SAMPLES[name]()
    assert not sample.symbols
    assert zw.Mechanism.from_json(sample.to_json()) == sample
    assert all(body.geometry for body in sample.bodies)


def test_furuta_has_symbols_for_omitted_numbers():
    assert set(furuta().symbols) == set(FURUTA)
    numbers = {"m_p": 0.02, "L_r": FURUTA["L_r"], "L_p": FURUTA["L_p"]}
    rest = {k: x for k, x in FURUTA.items() if k not in numbers}
    assert furuta(**numbers).subs(rest) == furuta(**{**FURUTA, "m_p": 0.02})
    assert not any(body.geometry for body in furuta().bodies), "a symbolic length has no picture"
    with pytest.raises(TypeError, match="mass"):
        furuta(mass=1)


def test_a_double_pendulum_without_second_mass_is_a_simple_pendulum():
    """theta_ddot = -g / l sin theta, as m2 -> 0."""
    simple = double_pendulum(m1=2.0, m2=1e-12, l1=0.7)
    a = zw.forward_dynamics(simple, [0.4, -0.4], [0, 0], [0, 0])
    assert a[0] == pytest.approx(-9.81 / 0.7 * np.sin(0.4), rel=1e-9)


@pytest.mark.parametrize("lengths", [(0.3, 0.8, 0.6, 0.8), (0.2, 0.5, 0.5, 0.4)])
def test_the_four_bar_is_closed_by_default(lengths):
    linkage = four_bar(*lengths)
    loop = linkage.constraints[0]
    ends = [
        R @ np.array(point) + p
        for body, point in (loop.a, loop.b)
        for R, p in [zw.frame_pose(linkage, linkage.home, body)]
    ]
    np.testing.assert_allclose(ends[0], ends[1], atol=1e-12)
    assert ends[0][2] > 0
