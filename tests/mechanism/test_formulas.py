"""Constraints by formulas: the meaning of their symbols, and formulas that constrain nothing."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp

import zwang as zw
from zwang.errors import DescriptionError

x, y, t, N, k, X, rate = sp.symbols("x y t N k X x_dot")
gravity = (-1, -10, 0)


def point(*constraints):
    slides = (zw.Prismatic("x", (1, 0, 0)), zw.Prismatic("y", (0, 1, 0)))
    return zw.Mechanism("m", [zw.Body("b", slides, mass=1)], constraints=constraints, gravity=gravity)


@pytest.mark.parametrize(
    "gear", [zw.Holonomic("gear", N * x - y), zw.Pfaffian("gear", {"x": N, "y": -1})], ids=["q", "v"]
)
def test_n_is_a_parameter_outside_of_nonideal_forces(gear):
    """With y = N x, (1 + N^2) x'' = -1 - 10 N, by parameters, by substitution and in the equations."""
    m = point(gear)
    assert m.symbols == ("N",)
    e = zw.equations(m, ["x"])
    for ratio in (0.5, 2.0):
        expected = -(1 + 10 * ratio) / (1 + ratio**2)
        by_params = zw.simulate(m, duration=0.1, params={"N": ratio}, progress=False)
        by_subs = zw.simulate(m.subs({"N": ratio}), duration=0.1, progress=False)
        for run in (by_params, by_subs):
            assert run.v.values[0, -1] == pytest.approx([0.1 * expected, 0.1 * ratio * expected])
        M, r = e.evaluate({"N": ratio, "x": 0, "y": 0, "x_dot": 0})
        assert r[0] / M[0, 0] == pytest.approx(expected)


def test_the_coefficient_of_friction_may_be_named_n():
    wall = zw.Holonomic("wall", x)
    friction = zw.CoulombFriction("f", N, constraint="wall", sliding={"y": 1})
    m = point(wall, friction)
    assert m.symbols == ("N",)
    run = zw.simulate(m, v0=[0, -1], duration=0.1, params={"N": 0.3}, progress=False)
    assert run.v.values[0, -1, 1] == pytest.approx(-1 + 0.1 * (-10 + 0.3 * 1))


def test_n_is_not_both_a_parameter_and_the_magnitude_of_a_force():
    with pytest.raises(DescriptionError, match=r"'N' has two meanings in the formula of constraint 'rub'"):
        point(zw.Holonomic("gear", N * x - y), zw.NonIdeal("rub", "gear", {"x": -N}))
    assert point(zw.Holonomic("c", y), zw.NonIdeal("rub", "c", {"x": -N * rate})).symbols == ()


@pytest.mark.parametrize(
    "constraint",
    [
        zw.Holonomic("c", x * rate - 1),
        zw.Pfaffian("c", {"x": rate, "y": 1}),
        zw.Pfaffian("c", {"x": 1}, rate=rate),
        zw.CoulombFriction("c", rate, joint="x"),
    ],
    ids=lambda c: type(c).__name__,
)
def test_velocities_are_refused_outside_of_nonideal_forces(constraint):
    with pytest.raises(DescriptionError, match=r"'c' contains 'x_dot', .*zw.Pfaffian with .*zw.NonIdeal"):
        point(constraint)


@pytest.mark.parametrize(
    "constraint, question",
    [
        (zw.Holonomic("c", X**2 - 1), r"Did you mean 'x'\?"),
        (zw.Holonomic("c", [x, X - 1]), r"Did you mean 'x'\?"),
        (zw.Holonomic("c", 1.0), "'x', 'y'"),
        (zw.Holonomic("c", t - 1), "'x', 'y'"),
        (zw.Pfaffian("c", {}), "'x', 'y'"),
        (zw.Pfaffian("c", {}, rate=1), "'x', 'y'"),
        (zw.Pfaffian("c", {"x": 0}, rate=t), "'x', 'y'"),
    ],
)
def test_formulas_without_a_coordinate_are_refused(constraint, question):
    with pytest.raises(DescriptionError, match=f"'c'.*constrains nothing.*{question}"):
        point(constraint)


def test_a_parameter_of_value_0_switches_a_formula_off():
    """In all ways to give it a value, and in a saved mechanism."""
    m = point(zw.Holonomic("c", k * x), zw.Pfaffian("d", {"x": k}), zw.Pfaffian("e", {"y": 1, "x": 0}))
    off = zw.Mechanism.from_json(m.subs({"k": 0}).to_json())
    for run in (
        zw.simulate(m, duration=0.1, params={"k": 0.0}, progress=False),
        zw.simulate(off, duration=0.1, progress=False),
    ):
        np.testing.assert_allclose(run.v.values[0, -1], [-0.1, 0], atol=1e-12)
    assert zw.equations(off).right_hand_side == sp.Matrix([-1])


def test_a_function_of_time_is_refused_with_the_symbol_to_use():
    """A function has no value, wherever it is; published equations may contain it."""
    for build in (
        lambda f: zw.Holonomic("c", f - k),
        lambda f: zw.Pfaffian("c", {"x": f}),
        lambda f: zw.Body("b", zw.Revolute("j"), mass=f),
    ):
        with pytest.raises(DescriptionError, match=r"undefined function x\(t\) \(use the symbol x instead\)"):
            build(sp.Function("x")(t))
