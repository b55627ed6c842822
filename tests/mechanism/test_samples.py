"""The samples are what they say: closed loops, known limits, symbols where no number is given."""

from __future__ import annotations

import numpy as np
import pytest

import zwang as zw
from zwang.mechanism.samples import FURUTA, SAMPLES, double_pendulum, four_bar, furuta


@pytest.mark.parametrize("name", SAMPLES)
def test_every_sample_has_numbers_goes_to_text_and_back_and_has_something_to_look_at(name):
    sample = SAMPLES[name]()
    assert not sample.symbols
    assert zw.Mechanism.from_json(sample.to_json()) == sample
    assert all(body.geometry for body in sample.bodies)


def test_furuta_has_a_symbol_for_each_number_that_is_not_given():
    assert set(furuta().symbols) == set(FURUTA)
    assert furuta(m_p=0.02).subs({k: x for k, x in FURUTA.items() if k != "m_p"}) == furuta(
        **{**FURUTA, "m_p": 0.02}
    )
    with pytest.raises(TypeError, match="mass"):
        furuta(mass=1)


def test_a_double_pendulum_without_its_second_mass_is_a_simple_one():
    """theta_ddot = -g / l sin theta, as m2 -> 0."""
    simple = double_pendulum(m1=2.0, m2=1e-12, l1=0.7)
    a = zw.forward_dynamics(simple, [0.4, -0.4], [0, 0], [0, 0])
    assert a[0] == pytest.approx(-9.81 / 0.7 * np.sin(0.4), rel=1e-9)


@pytest.mark.parametrize("lengths", [(0.3, 0.8, 0.6, 0.8), (0.2, 0.5, 0.5, 0.4)])
def test_the_four_bar_starts_closed_with_its_pin_above(lengths):
    linkage = four_bar(*lengths)
    loop = linkage.constraints[0]
    ends = [
        R @ np.array(point) + p
        for body, point in (loop.a, loop.b)
        for R, p in [zw.frame_pose(linkage, linkage.home, body)]
    ]
    np.testing.assert_allclose(ends[0], ends[1], atol=1e-12)
    assert ends[0][2] > 0
