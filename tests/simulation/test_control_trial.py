"""Stateful control functions: trials do not change their state, and each runs as in Python."""

from __future__ import annotations

import ctypes
import functools
import io
import itertools
import math
import os
import random
import types
import weakref
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
import pandas as pd
import pytest

import zwang as zw
import zwang.gym  # registers its environments
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


@dataclass(frozen=True, slots=True, weakref_slot=True)
class SlottedGains:
    """Holds numbers in slots, and calls functions of NumPy."""

    K: types.SimpleNamespace
    norm = staticmethod(np.linalg.norm)

    def __call__(self, t, q, v):
        return {"push": -self.norm(self.K.gains) * q[0] - v[0]}


REMEMBERING = [Integral, lambda: Integral().method, closure, lambda: logs, lambda: counts, lambda: helped]
FORGETFUL = [
    Gains,
    lambda: SlottedGains(types.SimpleNamespace(gains=np.array([2.0, 1.0]))),
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
    __slots__ = ("__weakref__", "own")

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


def in_worlds():
    """The internal model of a controller."""
    worlds = zw.Worlds(SLED, 1, step=0.01)

    def count():
        worlds.step([0.0])
        return round(worlds.time[0] / 0.01)

    return count


def in_table():
    table = pd.DataFrame({"a": [0.0]})

    def count():
        table.loc[len(table)] = 1.0
        return len(table) - 1

    return count


def in_variable():
    os.environ["ZWANG_TEST_COUNT"] = "0"

    def count():
        os.environ["ZWANG_TEST_COUNT"] = str(int(os.environ["ZWANG_TEST_COUNT"]) + 1)
        return int(os.environ["ZWANG_TEST_COUNT"])

    return count


def in_number_of_c():
    number = ctypes.c_long(0)

    def count():
        number.value += 1
        return number.value

    return count


def in_cache():
    kept = functools.lru_cache(lambda k: k)

    def count():
        kept(kept.cache_info().currsize)
        return kept.cache_info().currsize

    return count


def in_referent():
    counter = Counter()
    KEPT.append(counter)
    reference: Any = weakref.WeakMethod(counter.in_slot)
    return lambda: reference()()


KEPT: list = []
LINES = "\n".join(map(str, range(1, 100)))
HIDDEN = {
    "slot": lambda: Counter().in_slot, "class": lambda: Counter().in_class, "default": lambda: in_default,
    "keyword": lambda: in_keyword, "attribute": lambda: in_attribute, "module": in_module,
    "generator": in_generator, "iterator": lambda: itertools.count(1).__next__, "numpy": from_numpy,
    "worlds": in_worlds, "table": in_table, "variable": in_variable, "number of C": in_number_of_c,
    "cache": in_cache, "referent": in_referent,
    "text": lambda: lambda f=io.StringIO(LINES): int(f.readline()),
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


def test_a_file_is_read_from_its_start(tmp_path):
    (tmp_path / "set points.txt").write_text(LINES)
    with (tmp_path / "set points.txt").open() as file:
        ours = run(lambda t, q, v: [float(file.readline())])
    np.testing.assert_array_equal(ours.control.values[0, :, 0], np.arange(1, 32))


def test_an_environment_is_not_stepped_before_the_run():
    env: Any = gymnasium.make("zwang/InvertedPendulum-v5")
    env.reset(seed=0)

    def control(t, q, v):
        env.step(np.zeros(1, np.float32))
        return [env.unwrapped.worlds.time[0]]

    period = 0.04  # of the environment [s]
    np.testing.assert_allclose(run(control).control.values[0, :, 0], period * np.arange(1, 32))


def test_a_late_change_of_state_is_no_constant():
    """The controller pushes once its own model, which it steps in each call, has passed 0.045 s."""
    model = zw.Worlds(SLED, 1, step=0.01)

    def control(t, q, v):
        model.step([1.0])
        return {"push": 1.0 if model.time[0] > 0.045 else 0.0}

    np.testing.assert_array_equal(run(control).control.values[0, :, 0], [0.0] * 4 + [1.0] * 27)


def test_a_control_may_ask_the_system_for_random_numbers():
    dice = random.SystemRandom()
    ours = run(lambda t, q, v: [dice.random()])
    assert len(set(ours.control.values[0, :, 0])) == 31
