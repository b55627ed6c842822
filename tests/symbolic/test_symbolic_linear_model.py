"""Linear models with symbols: published eigenvalues, closed forms, and the models in numbers."""

from __future__ import annotations

import contextlib
import io
import runpy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import sympy as sp

import zwang as zw
from zwang.errors import DescriptionError, ParameterError, ShapeError, StateError, UnknownNameError
from zwang.symbolic.symbolic_linear_model import SymbolicLinearModel

ROOT = Path(__file__).parents[2]
BICYCLE_STATES = "x y yaw roll steer rear front roll_dot steer_dot rear_dot".split()


def expanded(model: SymbolicLinearModel, entry: sp.Expr) -> sp.Expr:
    """An entry without definitions."""
    for symbol, expression in reversed(model.definitions):
        entry = entry.xreplace({symbol: expression})
    return entry


@pytest.fixture(scope="module")
def bicycle():
    """The Whipple bicycle with 26 symbols, their numbers, and its model at the speed `speed`."""
    with contextlib.redirect_stdout(io.StringIO()):
        space = runpy.run_path(str(ROOT / "examples" / "bicycle.py"))
    s, speed = space["s"], sp.Symbol("speed", real=True)
    v = [speed, 0, 0, 0, 0, 0, -speed / s["rR"], 0, -speed / s["rF"]]
    model = zw.linearize(space["bicycle"], np.zeros(9), v, states=BICYCLE_STATES)
    return space["bicycle"], space["NUMBERS"], model


def test_the_bicycle_with_27_symbols_has_the_published_eigenvalues(bicycle):
    """Meijaard, Papadopoulos, Ruina, Schwab, Proc. R. Soc. A 463 (2007) 1955, Table 2."""
    _, numbers, model = bicycle
    assert len(model.symbols) == 27 and set(model.symbols) == {*numbers, "speed"}
    weave = {0: [3.13164324790656, 5.53094371765393], 5: [-0.77534188219585 + 4.46486771378823j]}
    others = {0: [], 5: [-0.32286642900409, -14.07838969279822]}
    for speed in (0, 5):
        poles = model.poles({**numbers, "speed": float(speed)})
        for pole in (*weave[speed], *others[speed]):
            assert np.abs(poles - pole).min() < 1e-10
        assert np.sum(np.abs(poles) == 0) == 6  # position, heading and speed, which nothing restores, exactly


def test_numbers_for_the_symbols_give_the_model_in_numbers(bicycle):
    m, numbers, model = bicycle
    v = [4, 0, 0, 0, 0, 0, -4 / numbers["rR"], 0, -4 / numbers["rF"]]
    exact = zw.linearize(m, np.zeros(9), v, states=BICYCLE_STATES, params=numbers)
    found = model.at({**numbers, "speed": 4.0})
    for name in ("A", "B", "C", "D", "displacement", "q", "v", "control"):
        scale = 1 + np.abs(getattr(exact, name)).max()
        assert np.abs(getattr(found, name) - getattr(exact, name)).max() < 1e-12 * scale, name
    assert (found.states, found.inputs, found.outputs) == (exact.states, exact.inputs, exact.outputs)
    # and so do the expressions themselves, definition by definition
    values = {s: sp.Float({**numbers, "speed": 4.0}[s.name], 30)
              for _, x in model.definitions for s in x.free_symbols if s.name in model.symbols}  # fmt: skip
    for symbol, expression in model.definitions:
        values[symbol] = expression.xreplace(values)
    written = np.array(model.A.xreplace(values).tolist(), dtype=float)
    np.testing.assert_allclose(written, exact.A, atol=1e-12 * np.abs(exact.A).max())


def test_the_deviation_of_a_turning_body_follows_its_angular_velocity():
    """theta_dot = dw - w x theta, as of the model in numbers."""
    inertia, w = sp.Symbol("inertia", positive=True), sp.symbols("wx wy wz", real=True)
    body = zw.Body("body", zw.Ball("joint"), mass=1, com=(0.1, 0, 0.2), inertia=(inertia, 0.2, 0.25))
    m = zw.Mechanism("body", [body])
    model = zw.linearize(m, [1, 0, 0, 0], w)
    block = model.A[:3, :].applyfunc(lambda x: expanded(model, x))
    cross = sp.Matrix([[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0]])
    assert sp.simplify(block - sp.Matrix.hstack(-cross, sp.eye(3))) == sp.zeros(3, 6)
    numbers = {"inertia": 0.3, "wx": 1.0, "wy": -2.0, "wz": 3.0}
    exact = zw.linearize(m, [1, 0, 0, 0], [1.0, -2.0, 3.0], params={"inertia": 0.3})
    np.testing.assert_allclose(model.at(numbers).A, exact.A, atol=1e-12)


def test_many_points_at_once_are_the_single_ones(bicycle):
    _, numbers, model = bicycle
    speeds = np.linspace(0, 10, 50)
    poles = model.poles({**numbers, "speed": speeds})
    A = model.matrices({**numbers, "speed": speeds}).A
    assert poles.shape == (50, 10) and A.shape == (50, 10, 10)
    for k in (0, 17, 49):
        single = {**numbers, "speed": speeds[k]}
        np.testing.assert_array_equal(model.matrices(single).A, A[k])
        np.testing.assert_array_equal(model.poles(single), poles[k])
        dense = np.linalg.eigvals(A[k])
        for pole in poles[k]:
            assert np.abs(dense - pole).min() < 1e-6


def test_a_cart_pole_has_its_closed_form():
    """x'' = (u - m g th) / M, th'' = ((M + m) g th - u) / (M l) about the upright pole, a point mass."""
    M, m, l, g, c = sp.symbols("M m l g c", positive=True)
    cart_pole = zw.Mechanism(
        "cart pole",
        [zw.Body("cart", zw.Prismatic("x", (1, 0, 0)), mass=M),
         zw.Body("pole", zw.Revolute("th", (0, 1, 0)), "cart", mass=m, com=(0, 0, l))],
        gravity=(0, 0, -g),
        forces=[zw.Motor("u", "x"), zw.Damper("x", c)],
    )  # fmt: skip
    model = zw.linearize(cart_pole, [0, 0], outputs=["th", "pole"])
    assert model.states == ("x", "th", "x_dot", "th_dot") and model.inputs == ("u",)
    A = sp.Matrix([[0, 0, 1, 0], [0, 0, 0, 1], [0, -m * g / M, -c / M, 0],
                   [0, (M + m) * g / (M * l), c / (M * l), 0]])  # fmt: skip
    B = sp.Matrix([0, 0, 1 / M, -1 / (M * l)])
    assert (model.A - A).applyfunc(lambda x: sp.simplify(expanded(model, x))) == sp.zeros(4, 4)
    assert (model.B - B).applyfunc(lambda x: sp.simplify(expanded(model, x))) == sp.zeros(4, 1)
    assert model.outputs == ("th", "pole.x", "pole.y", "pole.z")
    assert sp.Matrix([[0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]]) == model.C
    assert r"\begin{aligned}" in model.latex() and "cart pole" in repr(model)


def test_a_hanging_four_bar_swings_at_its_closed_form_frequency():
    """A parallelogram: two rods of mass m, length l, and a coupler of mass c: J = 2 m l^2 / 3 + c l^2."""
    m, c, l, g = sp.symbols("m c l g", positive=True)
    axis, J = (0, 0, 1), m * l**2 / 12
    bodies = [
        zw.Body("crank", zw.Revolute("crank", axis), mass=m, com=(l / 2, 0, 0), inertia=(J, J, J)),
        zw.Body("coupler", zw.Revolute("coupler", axis), "crank", (l, 0, 0), mass=c, com=(0.5, 0, 0),
                inertia=(0.1, 0.1, 0.1)),
        zw.Body("rocker", zw.Revolute("rocker", axis), position=(1, 0, 0), mass=m, com=(l / 2, 0, 0),
                inertia=(J, J, J)),
    ]  # fmt: skip
    pin = zw.Connect("pin", ("coupler", (1, 0, 0)), ("rocker", (l, 0, 0)))
    four_bar = zw.Mechanism("four-bar", bodies, gravity=(0, -g, 0), constraints=[pin])
    half = sp.pi / 2
    model = zw.linearize(four_bar, [-half, half, -half], states=["crank", "crank_dot"])
    values = dict(zip("mclg", np.random.default_rng(0).uniform(0.5, 2, (4, 20)), strict=True))
    m, c, l, g = values.values()
    expected = -g * (m + c) / (l * (2 * m / 3 + c))
    np.testing.assert_allclose(model.matrices(values).A[:, 1, 0], expected, rtol=1e-12)
    swing = np.sqrt(-expected)
    np.testing.assert_allclose(model.poles(values).imag, np.stack([-swing, swing], axis=1), rtol=1e-12)
    assert model.A[0, 0] == model.A[1, 1] == 0 and model.A[0, 1] == 1


def test_undamped_poles_have_the_same_order_at_all_points():
    """A spring pendulum on a free turntable: two poles at 0, and +-i sqrt(k / m - w^2 + 4 w^2 m r^2 / J)
    with the angular momentum of J = 1 + m r^2.
    """
    m, l, k, w = sp.symbols("m l k w", positive=True)
    bodies = [
        zw.Body("table", zw.Revolute("turn", (0, 0, 1)), mass=1, inertia=(1, 1, 1)),
        zw.Body("mass", zw.Prismatic("slide", (1, 0, 0)), "table", mass=m),
    ]
    table = zw.Mechanism("governor", bodies, gravity=(0, 0, 0), forces=[zw.Spring("slide", k, rest=l)])
    model = zw.linearize(table, [0, k * l / (k - m * w**2)], [w, 0])
    values = {"m": 0.5, "l": 0.2, "w": 1.5, "k": np.linspace(2, 30, 300)}
    radius = values["k"] * 0.2 / (values["k"] - 0.5 * 1.5**2)
    J = 1 + 0.5 * radius**2
    swing = np.sqrt(values["k"] / 0.5 - 1.5**2 + 4 * 1.5**2 * 0.5 * radius**2 / J)
    poles = model.poles(values)
    assert np.abs(poles.real).max() < 1e-9
    np.testing.assert_allclose(poles.imag, np.stack([-swing, 0 * J, 0 * J, swing], axis=1), atol=1e-9)
    np.testing.assert_allclose(
        model.at({**values, "k": 10.0}).poles, model.poles({**values, "k": 10.0}), atol=1e-9
    )


def spinning_top() -> zw.Mechanism:
    """A ball joint with an eccentric mass, a rotor and an actuator with an activation."""
    m, c = sp.symbols("m c")
    return zw.Mechanism(
        "top",
        [zw.Body("top", zw.Ball("ball"), mass=m, com=(0.1, 0.05, 0.3), inertia=(0.4, 0.5, 0.3)),
         zw.Body("rotor", zw.Revolute("spin", (0, 0, 1)), "top", (0, 0, 0.2), mass=1, com=(c, 0, 0),
                 inertia=(0.1, 0.1, 0.1))],
        forces=[zw.Motor("drive", "spin"), zw.Damper("spin", c)],
    )  # fmt: skip


def test_a_turning_ball_joint_and_a_state_of_symbols():
    m, rate = spinning_top(), sp.Symbol("rate")
    q = np.array([0.5, 0.5, 0.5, 0.5, 0.3])
    model = zw.linearize(m, q, [0.4, -0.2, rate, 3], [rate / 2])
    values = {"m": 2.0, "c": 0.1, "rate": 1.7}
    exact = zw.linearize(m.subs({"m": 2.0, "c": 0.1}), q, [0.4, -0.2, 1.7, 3], [0.85])
    found = model.at(values)
    for name in ("A", "B", "C", "v", "control"):
        np.testing.assert_allclose(getattr(found, name), getattr(exact, name), rtol=1e-12, atol=1e-12)


def test_dictionaries_by_name_may_hold_expressions():
    """A pendulum on a spinning ball joint with a motor, against the model in numbers."""
    w, p, T = sp.symbols("w p T", real=True)
    bob = zw.Body("bob", zw.Ball("wrist"), mass=2, com=(0, 0, -1), inertia=(0.1, 0.2, 0.3))
    arm = zw.Body("arm", zw.Revolute("hinge", axis=(0, 1, 0)), "bob", mass=1, com=(0.4, 0, 0))
    drive = zw.Actuator("drive", "hinge", gain=(1, 0.5, 0))  # with a stiffness by the control
    m = zw.Mechanism("arm", (bob, arm), forces=(drive,))
    named = {"q": {"hinge": p}, "v": {"wrist": [0, w, 1], "hinge": -w}, "control": {"drive": 2 * T}}
    values = {"w": 0.7, "p": 0.3, "T": 1.5}
    found = zw.linearize(m, **named).at(values)
    numbers = zw.linearize(m, [1, 0, 0, 0, 0.3], [0, 0.7, 1, -0.7], [3.0])
    np.testing.assert_allclose(found.A, numbers.A, atol=1e-9)
    np.testing.assert_allclose(found.B, numbers.B, atol=1e-9)
    assert zw.linearize(m, {"hinge": p}, {"wrist.wy": w}).v.T.tolist() == [[0, w, 0, 0]]
    with pytest.raises(UnknownNameError, match="hing"):
        zw.linearize(m, {"hinge": p}, {"hing": w})
    with pytest.raises(UnknownNameError, match="motor"):
        zw.linearize(m, {"hinge": p}, control={"motor": 1})
    with pytest.raises(ShapeError, match=r"'wrist'.*wrist\.wx"):
        zw.linearize(m, {"hinge": p}, {"wrist": [w, 0]})


def test_what_has_no_symbolic_model_is_told(bicycle):
    m, numbers, model = bicycle
    with pytest.raises(StateError, match="does not satisfy the constraints"):
        zw.linearize(m, np.zeros(9), [1, *[0] * 8])
    with pytest.raises(DescriptionError, match="continuous time"):
        zw.linearize(m, np.zeros(9), step=0.01)
    soft = m.replace(constraints=[replace(c, softness=zw.Softness()) for c in m.constraints])
    with pytest.raises(DescriptionError, match=r"constraint 'rear contact'.*params="):
        zw.linearize(soft, np.zeros(9))
    with pytest.raises(UnknownNameError, match="hand"):
        zw.linearize(m, np.zeros(9), outputs=["hand"])
    with pytest.raises(ShapeError, match="q must have 9 elements"):
        zw.linearize(m, np.zeros(8))
    with pytest.raises(ParameterError, match="missing are speed"):
        model.poles(numbers)
    with pytest.raises(ParameterError, match="unknown are wheel"):
        model.poles({**numbers, "speed": 1.0, "wheel": 1.0})
    with pytest.raises(ShapeError, match=r"these are \(3,\) points"):
        model.at({**numbers, "speed": [1.0, 2.0, 3.0]})
    limited = spinning_top()
    rotor = replace(limited.bodies[1], joint=zw.Revolute("spin", (0, 0, 1), limits=(-1, 1)))
    with pytest.raises(DescriptionError, match="limits of 'spin'"):
        zw.linearize(limited.replace(bodies=[limited.bodies[0], rotor]), [1, 0, 0, 0, 0])


def test_a_singular_mass_matrix_is_refused_with_the_name_of_the_velocity():
    k, q, v = sp.Symbol("k", positive=True), [0.3, 0.1, 0.2], [0.3, 0.2, 0.1]
    joints = (zw.Cylindrical("c", (3, 0, -4)), zw.Revolute("r", (3, 0, -4)))  # both turn about one axis
    body = zw.Body("b", joints, mass=0.7, com=(0.1, 0.2, 0.3), inertia=(0.3, 0.3, 0.35))
    m = zw.Mechanism("m", [body], forces=[zw.Spring("r", k)])
    n, model = m.subs({"k": 1.0}), zw.linearize(m, q, v)
    calls = (
        lambda: zw.forward_dynamics(n, q, v, [0, 0, 0]),
        lambda: zw.linearize(n, q, v),
        lambda: zw.linearize(n, q, v, step=0.01),
        lambda: model.at({"k": 1.0}),
    )
    for call in calls:
        with pytest.raises(StateError, match=r"the mass matrix is singular.*'c.angle'"):
            call()
