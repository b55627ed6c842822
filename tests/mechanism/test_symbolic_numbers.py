"""Symbols in a description: results do not depend on when their values are given."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp

import zwang as zw
from zwang.mechanism.constraints import PointSpeed

s = sp.Symbol("s", positive=True)
a, b = sp.symbols("a b", real=True)


def test_a_symbolic_axis_has_length_1_in_every_backend():
    m = zw.Mechanism("m", [zw.Body("b", zw.Prismatic("x", (1, 0, s)), mass=1)], gravity=(-9.81, 0, 0))
    e, zero = zw.equations(m), np.zeros((1, 1))
    expected = -9.81 / np.sqrt(1 + 2.0**2)
    assert zw.forward_dynamics(m.subs({s: 2.0}), [0], [0], [0]) == pytest.approx(expected)
    assert zw.compile(m).forward_dynamics(zero, zero, zero, params={"s": 2.0})[0] == pytest.approx(expected)
    assert float(e.accelerations[0].subs({s: 2})) == pytest.approx(expected)


@pytest.mark.parametrize("form", ["expanded", "cse"])
@pytest.mark.parametrize("method", ["projection", "lagrange"])
def test_equations_about_symbolic_axes_equal_those_about_numbers(form, method):
    fork = zw.Body("fork", zw.Universal("u", (1, a, b), second_axis=(b, 0, 1)), mass=2, com=(0, 0.3, -1))
    wheel = zw.Body(
        "wheel", zw.Revolute("w", (0, 1, a)), "fork", mass=1, com=(0.2, 0, -1), inertia=(0.1, 0.2, 0.25)
    )
    m = zw.Mechanism("m", [fork, wheel])
    e, values = zw.equations(m, method=method, form=form), {a: 0.75, b: -0.5}
    q, v = [0.4, -0.3, 0.2], [0.5, 0.1, -0.6]
    M, r = e.evaluate(values | dict(zip((*e.q, *e.speeds), (*q, *v), strict=True)))
    expected = zw.forward_dynamics(m.subs(values), q, v, [0, 0, 0])
    np.testing.assert_allclose(np.linalg.solve(M, r), expected, rtol=1e-10)


def test_a_unit_axis_and_the_equations_about_it_remain_short():
    for axis in ((sp.cos(a), sp.sin(a), 0), (sp.cos(a) * sp.cos(b), sp.sin(a) * sp.cos(b), sp.sin(b))):
        assert zw.Revolute("j", axis).axis == axis
    assert zw.Revolute("j", (2 * sp.cos(a), 0, 2 * sp.sin(a))).axis == (sp.cos(a), 0, sp.sin(a))
    axis = zw.Revolute("j", (0, 1, s)).axis
    assert zw.Revolute("j", axis).axis == axis
    bob = zw.Body("b", zw.Revolute("j", (0, 1, s)), mass=1, com=(0, 0, -1))
    (torque,) = zw.equations(zw.Mechanism("m", [bob])).right_hand_side
    assert sp.simplify(torque + 9.81 * sp.sin(sp.Symbol("j", real=True)) / (1 + s**2)) == 0


def test_the_direction_of_a_speed_is_normalised_only_in_numbers():
    assert PointSpeed("u", "b", (0, 1, s)).direction == (0, 1, s)
    assert PointSpeed("u", "b", (0, 3, 4)).direction == (0, 0.6, 0.8)
