"""Derivatives where the norm of a violation, of a bearing's load or of a rotation is exactly zero."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import sympy as sp

import zwang as zw
from tests.api.test_step_derivatives import differences, relative_error
from zwang.algebra.dual import derivative_along
from zwang.algebra.norms import norm
from zwang.control import Quadratic, ilqr
from zwang.errors import SimulationError
from zwang.io.mjcf.read.read_mjcf import read_mjcf

mujoco = pytest.importorskip("mujoco")

CLOSED = """<mujoco><option timestep="0.002"/><worldbody><body name="a">
  <joint name="x" type="slide" axis="1 0 0"/><joint name="z" type="slide" axis="0 0 1"/>
  <joint name="r" axis="0 1 0"/>
  <geom type="box" size=".2 .1 .1" pos=".2 0 0" mass="1" contype="0" conaffinity="0"/></body></worldbody>
 <equality>{}</equality><actuator><motor name="m" joint="r"/></actuator></mujoco>"""
CONNECT = '<connect body1="a" anchor="0 0 0" solimp=".9 .95 .001 .5 {}"/>'
WELD = '<weld body1="a" relpose="0 0 0 1 0 0 0"/>'
EQUALITIES = {"connect": CONNECT.format(2), "connect of power 1": CONNECT.format(1), "weld": WELD}
U = np.array([0.1])


def test_the_norm_of_zero_has_the_derivative_zero_and_that_of_nan_is_nan():
    value, derivative = derivative_along(norm, [0.0, 0.0], [1.0, 2.0])
    assert (float(value), float(derivative)) == (0, 0)
    assert np.isnan(norm([np.nan, 1.0])) and norm([]) == 0 and norm([3.0, 4.0]) == 5


@pytest.mark.parametrize("name", EQUALITIES)
def test_a_closed_soft_loop_has_the_derivatives_of_mujoco(name):
    xml = CLOSED.format(EQUALITIES[name])
    model = mujoco.MjModel.from_xml_string(xml)
    data = mujoco.MjData(model)
    data.ctrl[:] = U
    A, B = np.zeros((6, 6)), np.zeros((6, 1))
    mujoco.mjd_transitionFD(model, data, 1e-6, True, A, B, None, None)
    fast = zw.compile(read_mjcf("model.xml", text=xml))
    found = fast.step_derivatives(np.zeros(3), np.zeros(3), U)
    # the error of differences over 1e-6, also at the kink of a violation of power 1 over the width 1e-3
    assert relative_error(found.A, A) < 1e-4 and relative_error(found.B, B) < 1e-5
    u = np.tile(U, (4, 1))
    cotangents = np.linspace(-1, 1, 24).reshape(4, 6)
    gradient = fast.rollout_gradient(cotangents, np.zeros(3), np.zeros(3), u)
    along = fast.rollout_tangents(np.zeros(3), np.zeros(3), u, start_direction=np.eye(6))
    expected = (cotangents * along.tangents).sum(axis=(1, 2))
    np.testing.assert_allclose(gradient.start, expected, rtol=1e-9, atol=1e-12)


def test_a_closed_loop_has_derivatives_where_the_power_of_its_impedance_is_a_symbol():
    m = read_mjcf("model.xml", text=CLOSED.format(EQUALITIES["connect"]))
    (loop,) = m.constraints
    *others, power = loop.softness.solimp
    softness = replace(loop.softness, solimp=(*others, zw.scalar.symbol("p", positive=True)))
    by_symbol = zw.compile(m.replace(constraints=[replace(loop, softness=softness)]))
    found = by_symbol.step_derivatives(np.zeros(3), np.zeros(3), U, params={"p": power})
    expected = zw.compile(m).step_derivatives(np.zeros(3), np.zeros(3), U)
    np.testing.assert_allclose(found.A, expected.A, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(found.P, 0)  # d(0) is that of every power


def test_several_soft_formulas_that_are_satisfied():
    bodies = [zw.Body(n, zw.Prismatic(n, axis), mass=1) for n, axis in (("x", (1, 0, 0)), ("y", (0, 1, 0)))]
    x, y = sp.symbols("x y")
    held = zw.Holonomic("held", [x + y**2, y], softness=zw.Softness())
    m = zw.Mechanism("m", bodies, forces=[zw.Motor("u", "x")], constraints=[held])
    fast, (q, v) = zw.compile(m), np.zeros((2, 2))
    expected = differences(fast, q, v, U)
    found = fast.step_derivatives(q, v, U)
    assert relative_error(np.hstack([found.A, found.B]), expected) < 1e-6


@pytest.mark.parametrize("speed", [0.0, 1.0])
def test_the_friction_of_a_bearing_without_load(speed):
    """A disc on its axis of symmetry without gravity turns freely."""
    law = zw.CoulombFriction("dry", 0.3, joint="a", radius=0.1)
    disc = zw.Body("disc", zw.Revolute("a", (0, 0, 1)), mass=1, inertia=(0.1, 0.1, 0.2))
    m = zw.Mechanism("disc", [disc], gravity=(0, 0, 0), forces=[zw.Motor("u", "a")], constraints=[law])
    found = zw.compile(m).step_derivatives([0.0], [speed], U, step=1e-3, integrator="euler")
    np.testing.assert_allclose(found.B, [[5e-6], [5e-3]], rtol=1e-12)
    np.testing.assert_allclose(found.A, [[1, 1e-3], [0, 1]], atol=1e-14)


def test_ilqr_keeps_a_closed_soft_connect_and_tells_of_steps_without_derivatives():
    cost = Quadratic(q=[0, 0, 1], state=[0, 0, 1, 0, 0, 0.1], control=[1e-4], final=[0, 0, 10, 0, 0, 1])
    fast = zw.compile(read_mjcf("model.xml", text=CLOSED.format(EQUALITIES["connect"])))
    closed, open_ = (ilqr(fast, [x, 0, 0], np.zeros(3), np.zeros((20, 1)), cost) for x in (0, 1e-9))
    assert closed.converged and closed.cost == pytest.approx(open_.cost, rel=1e-6)
    rough = zw.Holonomic("rough", [sp.Symbol("x") ** sp.Rational(5, 2)], softness=zw.Softness())
    body = zw.Body("x", zw.Prismatic("x", (1, 0, 0)), mass=1)
    m = zw.Mechanism("m", [body], forces=[zw.Motor("u", "x")], constraints=[rough])
    with pytest.raises(SimulationError, match="step 0 of the trajectory has derivatives that are not finite"):
        ilqr(zw.compile(m), [0], [0], np.zeros((3, 1)), Quadratic([0], [1, 1], [1], [1, 1]))


def test_coincident_points_of_a_tendon_are_switching():
    """But not those on the axis of the joint between their bodies, which coincide at all configurations."""
    slide = zw.Body("a", zw.Prismatic("z", axis=(0, 0, 1)), mass=1)
    ends = zw.Tendon("t", path=("o", "p"), stiffness=5.0, spring_length=(0, 0))
    frames = [zw.Frame("o", "world"), zw.Frame("p", "a")]
    fast = zw.compile(zw.Mechanism("slide", [slide], gravity=(0, 0, 0), frames=frames, tendons=[ends]))
    marked = [bool(fast.step_derivatives([z], [0.0], [0.0], step=0.01).switching) for z in (0, 1e-3)]
    assert marked == [True, False]
    upper = zw.Body("u", zw.Revolute("s", axis=(0, 1, 0)), mass=1, com=(0, 0, -0.2))
    lower = zw.Body(
        "l", zw.Revolute("e", axis=(0, 1, 0)), parent="u", position=(0, 0, -0.4), mass=1, com=(0, 0, -0.2)
    )
    frames = [
        zw.Frame("start", "world", position=(0.3, 0, 0)),
        zw.Frame("elbow of u", "u", position=(0, 0, -0.4)),
        zw.Frame("elbow of l", "l"),
        zw.Frame("end", "l", position=(0.1, 0, -0.1)),
    ]
    path = zw.Tendon("t", path=tuple(f.name for f in frames), stiffness=5.0, spring_length=(0, 0))
    fast = zw.compile(zw.Mechanism("arm", [upper, lower], frames=frames, tendons=[path]))
    q, v, u = np.array([0.3, 0.4]), np.array([0.5, -1.0]), np.zeros(2)
    found = fast.step_derivatives(q, v, u, step=0.01)
    assert not found.switching
    assert relative_error(np.hstack([found.A, found.B]), differences(fast, q, v, u, step=0.01)) < 1e-7
