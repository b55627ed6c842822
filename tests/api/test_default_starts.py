"""Default starts with symbols: home, references and keyframes at the parameters of each world."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp

import zwang as zw
from zwang.errors import ParameterError, ShapeError


def symbolic_cart(**changes) -> zw.Mechanism:
    """A cart of 2 kg without gravity, whose reference and keyframe depend on the symbols a and b."""
    a, b = sp.symbols("a b", positive=True)
    body = zw.Body("b", zw.Prismatic("x", axis=(1, 0, 0), reference=sp.sqrt(b)), mass=2.0)
    up = zw.Keyframe("up", q=(a * b,), v=(a,), control=(b**2,))
    cart = zw.Mechanism("cart", [body], gravity=(0, 0, 0), forces=[zw.Motor("push", "x")], keyframes=[up])
    return cart.replace(**changes)


def test_each_world_starts_where_its_parameters_put_home_references_and_keyframes():
    """x = x0 + v0 t + f t^2 / (2 m), where x0, v0 and f depend on the parameters of the world."""
    a, b, T = np.array([0.1, 0.2, 0.3]), np.array([4.0, 9.0, 16.0]), 0.1
    m, settings = symbolic_cart(), {"duration": T, "step": 0.05, "progress": False}

    def ends(m, *state, **more):
        run = zw.simulate(m, *state, params={"a": a, "b": b}, integrator="rk4", **settings, **more)
        return run.q.values[:, [0, -1], 0].T

    np.testing.assert_allclose(ends(m), [np.sqrt(b)] * 2, rtol=1e-15)
    home = m.replace(home=(sp.Symbol("b", positive=True) - 3,))
    np.testing.assert_allclose(ends(home), [b - 3] * 2, rtol=1e-15)
    moved = [a * b, a * b + a * T + b**2 / 2 * T**2 / 2]
    np.testing.assert_allclose(ends(m, "up"), moved, rtol=1e-14)
    np.testing.assert_allclose(ends(m, "up", compiled=False), moved, rtol=1e-14)
    np.testing.assert_allclose(ends(m, "up", {"x": 0.0}, control={}), [moved[0], moved[1] - a * T])
    one = zw.simulate(m.subs({"a": a[1], "b": b[1]}), "up", integrator="rk4", **settings)
    np.testing.assert_array_equal(one.q.values[0, [0, -1], 0], ends(m, "up")[:, 1])


def test_a_start_without_a_value_is_reported_with_its_place():
    m = symbolic_cart()
    with pytest.raises(
        ParameterError, match=r"'b' \(in reference of joint 'x', keyframe 'up'\) has no value"
    ):
        zw.simulate(m, duration=0.1, params={"a": 1.0}, progress=False)
    a = sp.Symbol("a", positive=True)
    with pytest.raises(ParameterError, match=r"home .*log.* is \[-inf\] for a = 0; it must be finite"):
        zw.simulate(m.replace(home=(sp.log(a),)), duration=0.1, params={"a": [1, 0], "b": 1}, progress=False)
    with pytest.raises(ShapeError, match="is for 2 worlds, but there are 3"):
        zw.simulate(m, duration=0.1, params={"a": [1, 2], "b": [1, 2, 3]}, progress=False)


def test_worlds_are_reset_to_the_home_of_their_present_parameters():
    m = symbolic_cart(home=(2 * sp.Symbol("b", positive=True),))
    worlds = zw.Worlds(m, 3, params={"a": 1.0, "b": [0.5, 1.0, 2.0]})
    assert worlds.q.tolist() == [[1.0], [2.0], [4.0]]
    worlds.set([1], params={"b": 0.75})
    worlds.params["b"][2] = 3.0  # the worlds' memory
    worlds.reset([1, 2])
    assert worlds.q.tolist() == [[1.0], [1.5], [6.0]] and not worlds.v.any()
    worlds.set(params={"a": [2.0, 3.0, 4.0]})
    worlds.reset([0, 2], q="up")
    assert worlds.q.tolist() == [[1.0], [1.5], [12.0]] and worlds.v.tolist() == [[2.0], [0.0], [4.0]]
    assert worlds.control.tolist() == [[0.25], [0.0], [9.0]]
    worlds.reset([0], q="up", v={"x": 7.0})
    assert worlds.q[0] == 1 and worlds.v[0] == 7
    assert worlds.with_count(2, params={"a": 1.0, "b": [3.0, 4.0]}).q.tolist() == [[6.0], [8.0]]
    worlds.params["b"][1] = np.inf
    with pytest.raises(ParameterError, match=r"home .* is \[inf\] for b = inf"):
        worlds.reset()
    assert worlds.q[0] == 1


def test_a_keyframe_gives_activations_and_a_quaternion_of_unit_length():
    a = sp.Symbol("a", positive=True)
    body = zw.Body("b", zw.Ball("j"), mass=1.0, inertia=(1, 1, 1))
    slide = zw.Body("s", zw.Prismatic("x", axis=(1, 0, 0)), mass=1.0)
    drive = zw.Actuator("p", joint="x", activation=("filter", (1,)))
    up = zw.Keyframe("up", q=(a, 0, a, 0, 1), activation=(a / 2,))
    m = zw.Mechanism("m", [body, slide], gravity=(0, 0, 0), forces=[drive], keyframes=[up])
    worlds = zw.Worlds(m, 2, params={"a": [1.0, 3.0]})
    worlds.reset(q="up")
    np.testing.assert_allclose(worlds.q, [[0.5**0.5, 0, 0.5**0.5, 0, 1]] * 2, rtol=1e-15)
    assert worlds.activation.tolist() == [[0.5], [1.5]]
    run = zw.simulate(m, "up", duration=0.002, params={"a": [1.0, 3.0]}, compiled=False, progress=False)
    np.testing.assert_array_equal(run.q.values[:, 0], worlds.q)
    assert run.activation.values[:, 0].tolist() == [[0.5], [1.5]]
