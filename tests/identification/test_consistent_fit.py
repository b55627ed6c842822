"""What is zero in the model, such as friction and offsets, is what the data tell, in any units."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import zwang as zw
from tests.identification.test_fit import motion
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.samples import double_pendulum


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


PENDULUM = double_pendulum(m1=2.0, m2=3.0, l1=0.5, l2=0.7)  # of points, without friction: at all boundaries
ALL = ("inertia", "armature", "damping", "friction")


def fitted(forces: np.ndarray, seed: int, level: float = 0.95) -> zw.identify.Fit:
    """A fit of the pendulum to forces with errors of 0.3 N m along a motion of 300 samples."""
    errors = 0.3 * np.random.default_rng(seed).normal(size=forces.shape)
    samples = zw.identify.Measurements(*motion(2, len(forces)), forces + errors)
    return zw.identify.fit(PENDULUM, samples, kinds=ALL, held_back=0, level=level)


def test_correct_data_contradict_all_consistent_mechanisms_as_rarely_as_the_report_says():
    _, q, v, a = motion(2, 300)
    tau = zw.compile(PENDULUM).inverse_dynamics(q, v, a)
    pi = np.array([float(p.value) for p in zw.identify.parameters(PENDULUM, ALL)])
    alarms, beyond = 0, 0
    for seed in range(30):
        found = fitted(tau, seed, level=0.5)
        error = found.beta - found.base.matrix @ pi
        of_truth = error @ np.linalg.solve(found.estimate.covariance, error)
        assert found.misfit <= of_truth * (1 + 1e-4) + 1e-3  # pi is the nearest consistent mechanism
        beyond += of_truth > found.largest_misfit
        alarms += bool(found.outside)
    # a binomial count of 30 with the probability 1/2 has the standard deviation 2.7
    assert 7 <= beyond <= 23 and alarms <= beyond
    text = str(zw.identify.report(fitted(tau, 0)))
    assert "in doubt" not in text


@pytest.mark.parametrize("wrong", ["sign", "spring", "driving", "swapped", "upside down"])
def test_forces_that_no_consistent_mechanism_exerts_are_told(wrong):
    _, q, v, a = motion(2, 300)
    tau = zw.compile(PENDULUM).inverse_dynamics(q, v, a)
    mounted = PENDULUM.replace(gravity=(0, 0, 9.81))
    forces = {
        "sign": -tau,
        "spring": tau + 30 * q * [0, 1],
        "driving": tau - 0.5 * v,
        "swapped": tau[:, ::-1],
        "upside down": zw.compile(mounted).inverse_dynamics(q, v, a),
    }[wrong]
    for seed in range(2):
        found = fitted(forces, seed)
        assert found.outside and found.misfit > found.largest_misfit and found.is_consistent()
    assert "with a probability of at most 5 %" in str(zw.identify.report(found))
