"""What is zero in the model, such as friction and offsets, is what the data tell, in any units."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import zwang as zw
from tests.identification.test_fit import motion
from zwang.mechanism.mechanism import Mechanism


def gantry(mass: float = 500.0) -> Mechanism:
    return zw.Mechanism("gantry", [zw.Body("b", zw.Prismatic("x", axis=(1, 0, 0)), mass=mass)])


def of_gantry(noise: float, seed: int = 0, samples: int = 1000) -> zw.identify.Measurements:
    """500 kg with a damping of 5000 N s/m and a friction of 800 N, neither of which the model has."""
    t = seed + 0.01 * np.arange(samples)
    q, v, a = (x[:, None] for x in (np.sin(3 * t), 3 * np.cos(3 * t), -9 * np.sin(3 * t)))
    errors = noise * np.random.default_rng(seed).normal(size=a.shape)
    return zw.identify.Measurements(t, q, v, a, 500 * a + 5000 * v + 800 * np.sign(v) + errors)


def least_squares(data: zw.identify.Measurements) -> np.ndarray:
    """Mass, damping and friction by numpy."""
    columns = np.hstack([data.a, data.v, np.sign(data.v)])
    return np.linalg.lstsq(columns, data.tau[:, 0], rcond=None)[0]


@pytest.mark.parametrize("consistent", [True, False, "lmi"])
@pytest.mark.parametrize("bounds", [None, {"damping_x": (0, 1e5)}], ids=["free", "bounded"])
def test_data_alone_tell_what_is_zero_in_the_model(consistent, bounds):
    """Forces of 1 kN, the same ones in MN and um, and the offset of a pendulum with a gravity term."""
    data, kinds = of_gantry(2000.0), ("inertia", "damping", "friction")
    for unit in (1.0, 1e-6):
        found = zw.identify.fit(
            gantry(500 * unit), replace(data, tau=unit * data.tau), kinds=kinds, held_back=0, bounds=bounds,
            consistent=consistent,
        )  # fmt: skip
        error = found.pi[[0, 10, 11]] - unit * least_squares(data)
        assert (np.abs(error) < 0.01 * found.standard_deviation).all() and not found.outside


@pytest.mark.parametrize("consistent", [True, "lmi"])
def test_the_offset_of_a_sensor_leaves_gravity_as_it_is(consistent):
    body = zw.Body("b", zw.Revolute("j", axis=(0, 1, 0)), mass=10, com=(0.5, 0, 0), inertia=(0.1, 1, 1))
    m, (t, q, v, a) = zw.Mechanism("pendulum", [body]), motion(1, 1000)
    tau = (1 + 10 * 0.25) * a - 9.81 * 10 * 0.5 * np.cos(q) + 20
    tau += 10 * np.random.default_rng(0).normal(size=tau.shape)
    samples = zw.identify.Measurements(t, q, v, a, tau)
    found = zw.identify.fit(m, samples, kinds=("inertia", "offset"), consistent=consistent)
    error = found.base.matrix @ found.pi - found.beta
    assert (np.abs(error) < 0.01 * found.standard_deviation).all() and not found.outside
    assert abs(found.pi[-1] - 20) < 4 * found.standard_deviation[-1]
