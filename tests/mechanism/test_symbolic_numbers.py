"""Symbols in a description: results do not depend on when their values are given."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
import sympy as sp

import zwang as zw
from zwang import Mechanism
from zwang.errors import DescriptionError
from zwang.mechanism.constraints import PointSpeed

s = sp.Symbol("s", positive=True)
a, b = sp.symbols("a b", real=True)


def test_a_symbolic_axis_has_length_1_in_every_backend():
    m = zw.Mechanism("m", [zw.Body("b", zw.Prismatic("x", (1, 0, s)), mass=1)], gravity=(-9.81, 0, 0))
    e, zero = zw.equations(m), np.zeros((1, 1))
    expected = -9.81 / np.sqrt(1 + 2.0**2)
    assert zw.forward_dynamics(m.subs({s: 2.0}), [0], [0], [0]) == pytest.approx(expected)
    assert zw.compile(m).forward_dynamics(zero, zero, zero, params={"s": 2.0})[0] == pytest.approx(expected)
    assert float(e.accelerations.subs({s: 2})[0]) == pytest.approx(expected)


@pytest.mark.parametrize("form", ["expanded", "cse"])
@pytest.mark.parametrize("method", ["projection", "lagrange"])
def test_equations_about_symbolic_axes_equal_those_about_numbers(form, method):
    fork = zw.Body("fork", zw.Universal("u", (1, a, b), second_axis=(b, 0, 1)), mass=2, com=(0, 0.3, -1))
    wheel = zw.Body(
        "wheel", zw.Revolute("w", (0, 1, a)), "fork", mass=1, com=(0.2, 0, -1), inertia=(0.1, 0.2, 0.25)
    )
    m = zw.Mechanism("m", [fork] if form == "expanded" else [fork, wheel])
    e, values = zw.equations(m, method=method, form=form), {a: 0.75, b: -0.5}
    q, v = [0.4, -0.3, 0.2][: m.nv], [0.5, 0.1, -0.6][: m.nv]
    M, r = e.evaluate(values | dict(zip((*e.q, *e.speeds), (*q, *v), strict=True)))
    expected = zw.forward_dynamics(m.subs(values), q, v, np.zeros(m.nv))
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


def test_symbolic_directions_of_constraints_and_speeds_have_length_1():
    """The lateral force on a sleigh is m u omega, for every length of the symbolic direction of its edge."""
    joints = (zw.Prismatic("x", (1, 0, 0)), zw.Prismatic("y", (0, 1, 0)), zw.Revolute("phi"))
    hull = zw.Body("hull", joints, mass=2, inertia=(1, 1, 0.5))
    edge = zw.NoSideSlip("edge", "hull", direction=(a, b, 0))
    m = zw.Mechanism("sleigh", [hull], constraints=[edge], gravity=(0, 0, 0))
    along = PointSpeed("u", "hull", direction=(2 * b, -2 * a, 0))
    e, values = zw.equations(m, [along, "phi"], form="expanded"), {a: 1.5, b: 2.0}
    M, r = e.evaluate(values | {"u": 0.7, "phi_dot": 1.1, "phi": 0.4})
    np.testing.assert_allclose(np.linalg.solve(M, r), [0, 0], atol=1e-12)
    np.testing.assert_allclose(M, np.diag([2, 0.5]), atol=1e-12)
    rest = {"u": 0.7, "phi_dot": 1.1, "phi": 0.4, "u_dot": 0, "phi_ddot": 0}
    (force,) = e.multipliers["edge"].subs({s: (values | rest).get(s, rest.get(str(s))) for s in symbols(e)})
    assert abs(float(force)) == pytest.approx(2 * 0.7 * 1.1)


def symbols(e):
    return set().union(*(x.free_symbols for x in e.multipliers["edge"]))


@pytest.mark.parametrize("softness", [None, zw.Softness(solref=(0.1, 1))])
def test_a_symbolic_direction_acts_as_its_numbers(softness):
    joints = (zw.Prismatic("x", (1, 0, 0)), zw.Prismatic("y", (0, 1, 0)), zw.Revolute("phi"))
    hull = zw.Body("hull", joints, mass=2, inertia=(1, 1, 0.5))

    def run(direction, **params):
        edge = zw.NoSideSlip("edge", "hull", direction=direction, softness=softness)
        m = zw.Mechanism("sleigh", [hull], constraints=[edge], gravity=(0, -9.81, 0))
        start = {"v0": [1, 0, 0.5], "duration": 0.1, "params": params}
        found = zw.simulate(m, progress=False, record={"multipliers": True, "violations": True}, **start)
        return [found[name].values[0] for name in ("v", "multiplier", "constraint_velocity_residual")]

    expected = run((0.0, 2.0, 0.0))
    for given, wanted in zip(run((0, a, 0), a=2.0), expected, strict=True):
        np.testing.assert_allclose(given, wanted, atol=1e-12)


def test_unit_directions_and_the_equations_remain_short():
    for direction in ((sp.cos(a), sp.sin(a), 0), (0, sp.cos(a), -sp.sin(a)), (0, 1, 0)):
        assert PointSpeed("u", "b", direction).direction == direction
        assert zw.NoSideSlip("c", "b", direction).direction == direction
    assert PointSpeed("u", "b", (0, 1, s)).direction == (0, 1 / sp.sqrt(1 + s**2), s / sp.sqrt(1 + s**2))
    assert PointSpeed("u", "b", (0, 3, 4)).direction == (0, 0.6, 0.8)
    with pytest.raises(DescriptionError, match=r"direction of speed 'u' .* no direction"):
        PointSpeed("u", "b", (0, 0, 0))
    slides = (zw.Prismatic("x", (1, 0, 0)), zw.Prismatic("y", (0, 1, 0)))
    edge = zw.NoSideSlip("edge", "b", direction=(a, b, 0))
    m = zw.Mechanism("m", [zw.Body("b", slides, mass=s)], constraints=[edge], gravity=(0, -9.81, 0))
    e = zw.equations(m, [PointSpeed("u", "b", direction=(b, -a, 0))])
    (mass,) = e.mass_matrix
    assert sp.simplify(mass - s) == 0


def exact_arm(half, angle):
    """An arm whose numbers are `half` = 1/2 and `angle` = pi/6, in many parts that simulation reads."""
    joint = zw.Revolute(
        "j", (half, 1, 0), limits=(-half, half), friction=half / 10, actuator_range=(-9, 4 * angle)
    )
    drive = zw.Motor("u", "j", gear=half, control_range=(-angle, angle))
    parts = {"com": (0, 0, -half), "inertia": (0.1, 0.1, half / 5), "geometry": [zw.Sphere(half / 4)]}
    arm = zw.Body("b", joint, mass=half, orientation=((1, 0, 0), (0, 1, 0), (0, 0, 1)), **parts)
    wrench = zw.Wrench("b", force=(half, 0, angle))
    soft = zw.JointCoupling("c", "j", None, (half,), softness=zw.Softness(solref=(half / 20, 1)))
    return zw.Mechanism("m", [arm], forces=[drive, wrench], constraints=[soft])


def test_exact_numbers_simulate_as_their_floats(recwarn):
    exact, floats = exact_arm(sp.Rational(1, 2), sp.pi / 6), exact_arm(0.5, np.pi / 6)
    assert Mechanism.from_json(exact.to_json()) == exact == pickle.loads(pickle.dumps(exact))
    found, expected = (
        zw.simulate(m, q0=[0.6], duration=0.1, control=[1.0], progress=False).v.values
        for m in (exact, floats)
    )
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert not [w for w in recwarn if "Python" in str(w.message)]  # compiled


def test_exact_values_of_symbols_are_numbers():
    joint = zw.Revolute("j", limits=(-s, s), friction=s)
    m = zw.Mechanism("m", [zw.Body("b", joint, mass=s, inertia=(s, s, s))])
    zero = np.zeros((1, 1))
    found = zw.compile(m.subs({s: sp.Rational(1, 2)})).forward_dynamics(zero, zero, zero + 1)
    assert found == pytest.approx(2.0)


def test_equations_keep_exact_numbers():
    turn: Any = (sp.cos(sp.pi / 8), sp.sin(sp.pi / 8), 0, 0)  # by pi/4 about x
    body = zw.Body("b", zw.Prismatic("z"), mass=sp.pi, orientation=turn)
    e = zw.equations(zw.Mechanism("m", [body], gravity=(0, 0, -s), forces=[zw.Spring("z", sp.sqrt(3))]))
    assert sp.simplify(e.mass_matrix[0] - sp.pi) == 0
    (z,) = e.q
    assert sp.simplify(e.right_hand_side[0] - (-sp.pi * s * sp.sqrt(2) / 2 - sp.sqrt(3) * z)) == 0
    assert e.sympy().count("sqrt(3)") == 1


@pytest.mark.parametrize("value", [-sp.Rational(1, 2), sp.asin(2), 10 ** sp.Integer(400)], ids=str)
def test_exact_numbers_are_validated_as_floats(value):
    with pytest.raises(DescriptionError, match="mass of body 'b'"):
        zw.Body("b", zw.Prismatic("z"), mass=value)


def test_two_symbols_of_one_name_have_no_equations():
    mass, other = sp.Symbol("m", positive=True), sp.Symbol("m")
    bob = zw.Body("b", zw.Revolute("j", axis=(0, 1, 0)), mass=mass, com=(0, 0, -1))
    m = zw.Mechanism("m", [bob], forces=[zw.Spring("j", 9.81 * other)], gravity=(0, 0, 9.81))
    for derive in (zw.equations, lambda m: zw.linearize(m, [0])):
        with pytest.raises(DescriptionError, match="two symbols named 'm', with different assumptions"):
            derive(m)
    assert zw.forward_dynamics(m.subs({"m": 2}), [0], [0], [0]) == 0  # one parameter
