"""Roots inside a step: closed forms, SciPy's brentq, and traced values."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import brentq

from zwang.api.compilation.programs import compile_function
from zwang.integrator.root_location import Crossing, crosses, locate_crossings, locate_root
from zwang.scalar import cos, exp

FUNCTIONS = {
    "linear": (lambda x: x - 0.3, 0.0, 1.0),
    "cubic": (lambda x: x * x * x - 2.0, 0.0, 2.0),
    "cosine": (lambda x: cos(x) - x, 0.0, 1.0),
    "steep": (lambda x: exp(20 * x) - 5.0, 0.0, 1.0),
    "triple root": (lambda x: (x - 0.7) * (x - 0.7) * (x - 0.7), 0.0, 1.0),
    "reversed": (lambda x: 2.0 - x * x, 1.0, 2.0),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_roots_are_those_of_brentq_on_floats_and_compiled(name):
    function, lower, upper = FUNCTIONS[name]
    calls = []

    def counted(x):
        calls.append(x)
        return function(x)

    root = locate_root(counted, lower, upper, function(lower), function(upper))
    reference = 0.7 if name == "triple root" else brentq(function, lower, upper, xtol=1e-16, rtol=1e-15)
    accuracy = 1e-5 if name == "triple root" else 1e-14  # its values underflow
    assert root == pytest.approx(reference, abs=accuracy)
    assert name == "triple root" or len(calls) <= 20

    def traced(x):
        return np.array([locate_root(function, x[0], x[1], function(x[0]), function(x[1]))])

    compiled = compile_function(traced, {"ends": 2})
    assert compiled(np.array([lower, upper]))[0] == pytest.approx(root, abs=1e-15 + accuracy * 1e-2)


def test_many_worlds_find_each_its_own_root():
    def traced(x):
        def function(y):
            return y * y - x[0]

        return np.array([locate_root(function, 0.0, 10.0, function(0.0), function(10.0))])

    squares = np.linspace(0.1, 90, 13)[:, None]
    compiled = compile_function(traced, {"square": 1})
    np.testing.assert_allclose(compiled(squares), np.sqrt(squares), rtol=1e-14)
    assert np.array_equal(compiled(squares)[5], compiled(squares[5]))


def test_a_zero_at_the_end_of_a_step_counts_once():
    assert crosses(-1.0, 0.0) and not crosses(0.0, 1.0)
    assert crosses(0.0, 1.0, 1, first=True) and not crosses(0.0, 1.0, -1, first=True)
    assert crosses(1.0, 0.0, -1) and not crosses(1.0, -1.0, 1) and not crosses(-1.0, 1.0, -1)


def test_crossings_are_ordered_in_time_and_filtered_by_direction():
    functions = [lambda t: math.cos(t), lambda t: math.sin(t - 0.5), lambda t: math.cos(t)]
    before, after = ([f(t) for f in functions] for t in (0.0, 2.0))
    found = locate_crossings(functions, [0, 0, 1], 0.0, 2.0, before, after)
    assert found == [Crossing(pytest.approx(0.5), 1, True), Crossing(pytest.approx(math.pi / 2), 0, False)]
