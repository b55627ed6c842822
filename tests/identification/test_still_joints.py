"""A joint that does not move is told by its name, whatever the noise of its encoder; one that moves never."""

from __future__ import annotations

import numpy as np
import pytest

import zwang as zw
from zwang.errors import StateError
from zwang.mechanism.samples import double_pendulum

M = double_pendulum(m1=2.0, m2=3.0, l1=0.5, l2=0.7)
T = np.arange(0, 4, 0.002)


def record(
    elbow: np.ndarray,
    rate: np.ndarray,
    noise: float,
    cutoff: float | None = None,
    **given: float | np.ndarray,
) -> zw.identify.Measurements:
    """Measurements in which the shoulder swings, and the elbow moves as given, with noise of both."""
    q, v = np.stack([np.sin(T), elbow], axis=1), np.stack([np.cos(T), rate], axis=1)
    tau = zw.compile(M).inverse_dynamics(q, v, np.stack([-np.sin(T), 0 * T], axis=1))
    rates = {name: v + x for name, x in given.items()}
    errors = noise * np.random.default_rng(0).normal(size=q.shape)
    return zw.identify.measurements(M, T, q + errors, tau, cutoff=cutoff, **rates)


@pytest.mark.parametrize("noise", [0.0, 1e-5, 2e-5, 1e-4, 1e-3])
@pytest.mark.parametrize("given", ["nothing", "exact v", "noisy v", "differences"])
def test_a_still_joint_with_noise_is_told(noise, given):
    rng, still = np.random.default_rng(1), np.full(len(T), 0.5)
    v = {"nothing": {}, "exact v": {"v": 0.0}, "noisy v": {"v": noise * rng.normal(size=(len(T), 2))},
         "differences": {"v": np.gradient(noise * rng.normal(size=(len(T), 2)), 0.002, axis=0)}}  # fmt: skip
    message = r"joints 'elbow' never move: .* zw.identify.with_fixed_joints \(zwang identify --fix\)"
    with pytest.raises(StateError, match=message):
        record(still, 0 * T, noise, **v[given])


@pytest.mark.parametrize("noise", [0.0, 1e-5, 1e-3])
@pytest.mark.parametrize("w", [0.5, 3.0, 50.0, 300.0])  # down to 10 samples for a period
def test_a_moving_joint_is_accepted(noise, w):
    """Amplitudes of 1 mrad, as large as the noise, and of 0.3 rad; without v nothing is said about v."""
    for amplitude in (1e-3, 0.3):
        elbow, rate = 0.5 + amplitude * np.sin(w * T), amplitude * w * np.cos(w * T)
        assert len(record(elbow, rate, noise, cutoff=100.0 if noise else None))


def test_motions_between_samples_are_accepted():
    """Fast vibrations with three samples a period, by their velocities; and postures in random order."""
    w = 2 * np.pi / 3 / 0.002
    assert len(record(0.5 + 0.004 * np.sin(w * T), 0.004 * w * np.cos(w * T), 1e-6, v=0.0, a=0.0))
    postures = np.random.default_rng(0).uniform(-1, 1, len(T))
    q = np.stack([postures, postures[::-1]], axis=1)
    tau, zero = zw.compile(M).inverse_dynamics(q, 0 * q, 0 * q), np.zeros(q.shape)
    assert len(zw.identify.measurements(M, T, q, tau, v=zero, a=zero, check_units=False))
