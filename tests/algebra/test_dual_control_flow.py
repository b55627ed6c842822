"""Tangents through loops, branches and arrays, on floats and compiled, against closed forms."""

import numpy as np
import pytest

from zwang.algebra.dual import Dual
from zwang.algebra.dual_control_flow import Tangent, linear_response, parts, tangents
from zwang.compiler.frontend.trace import trace
from zwang.compiler.pipeline import optimise
from zwang.compiler.runtime.compiled_function import CompiledFunction
from zwang.scalar import (
    ActiveIndices,
    absolute,
    compact,
    cond,
    cos,
    empty,
    for_each,
    fori_loop,
    logical_and,
    sin,
    sqrt,
    where,
    while_loop,
    without_derivatives,
    zeros,
)


def square_root(x):
    """sqrt(x) by Newton's iteration: the derivative is 1 / (2 sqrt(x))."""

    def unfinished(s):
        return logical_and(absolute(s[0] * s[0] - x) > 1e-13 * x, s[1] < 60)

    y, _ = while_loop(unfinished, lambda s: ((s[0] + x / s[0]) / 2, s[1] + 1), (x + 1.0, 0.0))
    return (y + x / y) / 2


def power_sum(x):
    """x + x^2 + ... + x^6, by a loop over an array."""
    powers = fori_loop(1, 7, lambda i, a: a.set(i, a[i - 1] * x), zeros(7).set(0, 1.0 + 0 * x), unroll=False)
    return fori_loop(1, 7, lambda i, total: total + powers[i], 0.0 * x, unroll=False)


def branches(x):
    """sin x below 1, x^2 above it, and the same selected at random places of an array."""
    y = cond(x < 1, lambda z: sin(z), lambda z: z * z, x)
    places = empty(2).set(0, 1.0).set(1, 0.0)
    array = empty(2).scatter(places[0], y).scatter(places[1], cos(x))
    return array.gather(where(x < 1, 1.0, 0.0) * 1.0) + array.gather(places[1])


def compacted(x):
    """The sum of k^2 x^k over the k = 0 ... 4 with an odd k, through compaction and active indices."""
    flags = zeros(5)
    for k in range(5):
        flags = flags.set(k, 1.0 if k % 2 else 0.0)

    def power(k):
        return fori_loop(0, 4, lambda i, y: where(1.0 * i < 1.0 * k, y * x, y), 1.0 + 0 * x, unroll=False)

    def fill(appender):
        def append(k, carry):
            appender, powers = carry
            return appender.append(k), powers.set(k, power(k))

        start = appender, empty(5)
        return fori_loop(0, 5, lambda k, c: cond(flags[k] > 0, lambda c: append(k, c), lambda c: c, c), start)

    listed, powers = compact(5, fill)
    total = fori_loop(
        0, listed.lane_count, lambda k, s: s + listed.numbers[k] * listed.read(powers, k, 1)[0], 0.0 * x
    )
    return for_each(ActiveIndices(flags), lambda k, s: s + (1.0 * k) * (1.0 * k - 1) * power(k), total)


def slope_of_branches(x):
    return (np.cos(x) if x < 1 else -np.sin(x)) - np.sin(x)


CASES = {
    "square root": (square_root, np.sqrt, lambda x: 0.5 / np.sqrt(x)),
    "power sum": (
        power_sum,
        lambda x: sum(x**k for k in range(1, 7)),
        lambda x: sum(k * x ** (k - 1) for k in range(1, 7)),
    ),
    "branches": (branches, lambda x: (np.sin(x) if x < 1 else np.cos(x)) + np.cos(x), slope_of_branches),
    "compacted": (compacted, lambda x: x + 9 * x**3, lambda x: 1 + 27 * x**2),
    "guarded root": (
        lambda x: sqrt(where(x > 0, x, 1.0)), lambda x: np.sqrt(x), lambda x: 0.5 / np.sqrt(x)
    ),
    "selected condition": (
        lambda x: where(where(x > 2, x < 3, x < 1), sin(x), x * x),
        lambda x: np.sin(x) if x < 1 or 2 < x < 3 else x * x,
        lambda x: np.cos(x) if x < 1 or 2 < x < 3 else 2 * x,
    ),
}  # fmt: skip


def tangent_of(function, x, dx):
    with tangents():
        return parts(function(Tangent(x, dx)))


@pytest.mark.parametrize("name", CASES)
def test_tangents_follow_loops_branches_and_arrays(name):
    function, value, slope = CASES[name]
    points = np.array([0.3, 0.7, 1.2, 2.5])

    def traced(x):
        return np.array(tangent_of(function, x[0], x[1]), dtype=object)

    compiled = CompiledFunction(optimise(trace(traced, {"x": 2})), threads=1, cache=False)
    fast = compiled(np.stack([points, np.full(4, 2.0)], axis=1))
    for k, x in enumerate(points):
        y, dy = tangent_of(function, x, 2.0)
        assert np.isclose(y, value(x), rtol=1e-13) and np.isclose(dy, 2 * slope(x), rtol=1e-12)
        assert np.allclose(fast[k], [y, dy], rtol=1e-13)


def test_arrays_outside_of_tangents_are_plain():
    assert not hasattr(zeros(2), "derivatives")


def test_a_newton_step_from_an_iteration_without_derivatives_has_the_derivative():
    """x^(1/3), whose derivative is x^(-2/3) / 3; the iteration itself runs on plain numbers."""

    def cube_root(x):
        def iterate(value):
            assert not isinstance(value, Tangent)
            return fori_loop(0, 60, lambda i, y: y - (y * y * y - value) / (3 * y * y), value)

        y = without_derivatives(iterate, x)
        return y - (y * y * y - x) / (3 * y * y)

    def both(x):
        with tangents():
            return np.array(parts(cube_root(Tangent(x[0], 1.0))), dtype=object)

    expected = [2 ** (1 / 3), 2 ** (-2 / 3) / 3]
    assert np.allclose(both([2.0]).astype(float), expected, rtol=1e-14)
    program = optimise(trace(both, {"x": (1,)}))
    compiled = CompiledFunction(program, threads=1, cache=False)
    assert np.allclose(compiled(np.array([[2.0]]))[0], expected, rtol=1e-14)
    assert without_derivatives(lambda x: x, Tangent(2.0, 1.0)) == 2.0


def test_a_solution_found_on_values_has_the_derivative_of_its_equation():
    """x^3 = a by Newton's method on values; then dx = da / (3 x^2)."""

    def root(a):
        start = empty(1).set(0, a[0])
        return while_loop(
            lambda x: abs(x[0] ** 3 - a[0]) > 1e-12,
            lambda x: x.set(0, x[0] - (x[0] ** 3 - a[0]) / (3 * x[0] ** 2)),
            start,
        )

    def response(rates, x):
        return empty(1).set(0, rates[0] / (3 * x[0] ** 2))

    with tangents():
        a = empty(1).set(0, Tangent(8.0, 2.0))
        x = without_derivatives(root, a)
        assert x[0].value == pytest.approx(2, abs=1e-12) and x[0].derivative == 0
        x = linear_response(response, a, x, x)
        assert x[0].derivative == pytest.approx(2 / 12, abs=1e-12)
    with pytest.raises(TypeError, match="within tangents"):
        linear_response(response, [], zeros(1))


def test_branches_may_return_dual_numbers_of_tangents():
    """The value, its rate along a motion, and the derivatives of both."""
    for x0 in (2.0, -2.0):
        with tangents():
            x = Dual(Tangent(np.float64(x0), 1.0), Tangent(3.0, 0.5))
            found = cond(x.value > 0, lambda y: y * y, lambda y: -y, x)
        value, rate = found.value, found.derivative
        if x0 > 0:
            assert (value.value, value.derivative) == (4, 4) and (rate.value, rate.derivative) == (12, 8)
        else:
            assert (value.value, value.derivative) == (2, -1) and (rate.value, rate.derivative) == (-3, -0.5)


def test_dual_numbers_take_the_branch_of_their_value():
    for x0, expected in ((2.0, (4.0, 4.0)), (-2.0, (2.0, -1.0))):
        found = cond(Dual(np.float64(x0), 1.0) > 0, lambda y: y * y, lambda y: -y, Dual(x0, 1.0))
        assert (found.value, found.derivative) == expected
