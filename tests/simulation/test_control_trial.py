"""Stateful control functions: trials do not change their state, and each runs as in Python."""

from __future__ import annotations

import functools
import itertools
import math
import types

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


def test_a_function_that_calls_itself_is_tried():
    def depth(n):
        return 0 if n == 0 else 1 + depth(n - 1)

    trial = ControlTrial(depth)
    assert trial.function is not depth and trial.function(3) == 3 and not trial.has_state()


class Counter:
    """Counts in the class, and refuses to be copied."""

    calls = 0
    __slots__ = ("own",)

    def __init__(self):
        self.own = 0

    def __deepcopy__(self, memo):
        raise RuntimeError("no")

    def in_class(self):
        type(self).calls += 1
        return type(self).calls

    def in_slot(self):
        self.own += 1
        return self.own


def in_default(state=[0]):  # noqa: B006
    state[0] += 1
    return state[0]


def in_keyword(*, state={"n": 0}):  # noqa: B006
    state["n"] += 1
    return state["n"]


def in_attribute():
    in_attribute.n = getattr(in_attribute, "n", 0) + 1
    return in_attribute.n


def in_module():
    """A function of another module, which counts in its globals, reached through that module."""
    other = types.ModuleType("other_module_of_the_user")
    exec("n = 0\ndef count():\n    global n\n    n += 1\n    return n", vars(other))
    return lambda: other.count()


def in_generator():
    numbers = (k for k in itertools.count(1))
    return lambda: next(numbers)


def from_numpy():
    np.random.seed(5)
    return lambda: round(1000 * np.random.rand())


HIDDEN = {
    "slot": lambda: Counter().in_slot, "class": lambda: Counter().in_class, "default": lambda: in_default,
    "keyword": lambda: in_keyword, "attribute": lambda: in_attribute, "module": in_module,
    "generator": in_generator, "iterator": lambda: itertools.count(1).__next__, "numpy": from_numpy,
}  # fmt: skip


@pytest.mark.parametrize("fed", [False, True])
@pytest.mark.parametrize("name", HIDDEN)
def test_state_is_as_in_python_wherever_it_is(name, fed):
    """A count of the calls, which is the first one's in the first step; one is multiplied by the position."""

    def control_of(count):
        return lambda t, q, v: {"push": count() * (q[0] if fed else 1.0)}

    make = HIDDEN[name]
    first = control_of(make())(0.0, [1.0], [0.0])["push"]
    ours = run(control_of(make()))
    assert ours.attrs["path"] == "compiled, control called in Python"
    recorded = ours.control.values[0, :2, 0]
    continued = name in (
        "class",
        "default",
        "keyword",
        "attribute",
    )  # one state, which the first call changed
    assert recorded[0] == pytest.approx(first + continued)
    if name != "numpy" and not fed:
        np.testing.assert_array_equal(np.diff(ours.control.values[0, :, 0]), 1)


def test_what_the_position_feeds_is_no_trace():
    """The sum of the positions in a default argument, as an own loop of Euler's steps has it."""

    def control(t, q, v, total=[0.0]):  # noqa: B006
        total[0] += 0.01 * q[0]
        return {"push": -total[0] - q[0]}

    x, v, total = 1.0, 0.0, 0.0
    for _ in range(30):
        total += 0.01 * x
        v += 0.01 * (-total - x)
        x += 0.01 * v
    assert run(control).q.values[0, -1, 0] == pytest.approx(x, rel=1e-12)
