"""Stateful control functions: trials with copies do not change their state, and each runs as in Python."""

from __future__ import annotations

import functools
import math

import numpy as np
import pytest

import zwang as zw
from zwang.api.arguments.control_trial import ControlTrial

SLED = zw.Mechanism(
    "sled",
    [zw.Body("sled", joint=zw.Prismatic("x", axis=(1, 0, 0)), mass=1.0)],
    forces=[zw.Motor("push", "x")],
)
LOG: list = []
DICE = np.random.default_rng(3)
COUNT = 0


class Integral:
    """A PI controller."""

    def __init__(self):
        self.sum, self.inner = 0.0, {"last": [0.0]}

    def __call__(self, t, q, v):
        self.sum = self.sum + 0.01 * q[0]
        self.inner["last"][0] = q[0]
        return {"push": -2 * q[0] - v[0] - self.sum}

    def method(self, t, q, v):
        return self(t, q, v)


def closure():
    total = 0.0

    def control(t, q, v):
        nonlocal total
        total = total + 0.01 * q[0]
        return {"push": -2 * q[0] - v[0] - total}

    return control


def logs(t, q, v):
    LOG.append(q[0])
    return {"push": -2 * q[0] - v[0]}


def counts(t, q, v):
    global COUNT
    COUNT += 1
    return {"push": -2 * q[0] - v[0]}


def throws(t, q, v):
    return {"push": -2 * q[0] + DICE.normal()}


def helped(t, q, v):
    return logs(t, q, v)


def with_gain(gain, t, q, v):
    return {"push": -gain * q[0] - v[0]}


class Gains:
    """Holds numbers and has no state."""

    def __init__(self):
        self.K, self.model = np.array([2.0, 1.0]), zw.compile(SLED)

    def __call__(self, t, q, v):
        return {"push": -self.K[0] * q[0] - self.K[1] * v[0]}


REMEMBERING = [Integral, lambda: Integral().method, closure, lambda: logs, lambda: counts, lambda: helped]
FORGETFUL = [
    Gains,
    lambda: functools.partial(with_gain, 2.0),
    lambda: lambda t, q, v: {"push": -2 * q[0] - math.pi * v[0]},
]


def run(control, **more):
    return zw.simulate(SLED, [1.0], duration=0.3, step=0.01, control=control, progress=False, **more)


@pytest.mark.parametrize("make", REMEMBERING)
def test_a_stateful_control_is_called_with_numbers_only(make):
    LOG.clear()
    ours = run(make())
    assert ours.attrs["path"] == "compiled, control called in Python"
    assert all(isinstance(x, float) for x in LOG) and len(LOG) in (0, 31)
    np.testing.assert_allclose(ours.q.values, run(make(), compiled=False).q.values, rtol=1e-12)


@pytest.mark.parametrize("make", FORGETFUL)
def test_a_stateless_control_is_compiled(make):
    assert run(make()).attrs["path"] == "compiled"


def test_a_random_control_keeps_its_generator_state():
    before = str(DICE.bit_generator.state)
    ControlTrial(throws).function(0.0, [1.0], [0.0])
    assert str(DICE.bit_generator.state) == before
    assert run(throws).attrs["path"] == "compiled, control called in Python"


def test_a_trial_detects_changes_of_state():
    integral = Integral()
    trial = ControlTrial(integral)
    assert not trial.has_state()
    trial.function(0.0, [1.0], [0.0])
    assert trial.has_state() and integral.sum == 0.0 and integral.inner == {"last": [0.0]}


def test_objects_that_cannot_be_copied_are_shared():
    class Stubborn:
        def __deepcopy__(self, memo):
            raise RuntimeError("no")

        def __call__(self, t, q, v):
            return {"push": -q[0]}

    stubborn = Stubborn()
    assert ControlTrial(stubborn).function is stubborn


def test_a_function_that_calls_itself_is_copied_once():
    def depth(n):
        return 0 if n == 0 else 1 + depth(n - 1)

    trial = ControlTrial(depth)
    assert trial.function is not depth and trial.function(3) == 3 and not trial.has_state()
