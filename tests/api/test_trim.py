"""Equilibria, against other engines, closed forms and the simulation itself."""

import importlib.resources
from dataclasses import replace
from pathlib import Path

import mujoco
import numpy as np
import pytest
import sympy as sp

import zwang as zw
from zwang.errors import UnknownNameError
from zwang.io.mjcf.read.read_mjcf import read_mjcf
from zwang.mechanism.samples import four_bar, furuta

ROOT = Path(__file__).parents[2]
ASSETS = Path(str(importlib.resources.files("gymnasium"))) / "envs" / "mujoco" / "assets"


def lowered(m, index):
    """The home configuration a millimetre below the first touch, by bisection."""
    q, low, high = np.array(m.home or m.neutral, float), 0.0, 2.0
    for _ in range(40):
        middle = (low + high) / 2
        trial = q.copy()
        trial[index] -= middle
        touches = len(zw.contacts(m, trial, np.zeros(m.nv), np.zeros(m.nv))) > 0
        low, high = (low, middle) if touches else (middle, high)
    q[index] -= high + 1e-3
    return q


def test_a_standing_robot_stays_where_trim_puts_it():
    m = zw.load(ASSETS / "hopper.xml")
    found = zw.trim(m, lowered(m, 1))
    assert found.residual < 1e-9
    fast = zw.compile(m)
    after = fast.step(found.q, np.zeros(m.nv), found.control)
    assert np.abs(after[1]).max() < 1e-10 and np.abs(after[0] - found.q).max() < 1e-12


def test_a_humanoid_stands_on_both_feet_from_a_rough_guess():
    """MuJoCo, with the same contacts, has no accelerations there; only the feet may touch the floor."""
    text = (ROOT / "examples" / "models" / "humanoid.xml").read_text()
    text = text.replace('conaffinity="1" density', 'conaffinity="0" density')
    text = text.replace('_foot" type="capsule"', '_foot" conaffinity="1" type="capsule"')
    m, model = read_mjcf("humanoid.xml", text=text), mujoco.MjModel.from_xml_string(text)
    guess = lowered(m, 2)
    guess[2] -= 0.015
    found = zw.trim(m, guess)
    data = mujoco.MjData(model)
    data.qpos[:], data.ctrl[:] = found.q, found.control
    mujoco.mj_forward(model, data)
    assert found.residual <= 1e-12 and np.abs(data.qacc).max() < 1e-7
    assert np.abs(found.q - guess).max() < 0.03
    standing = {model.geom_bodyid[g] for c in data.contact for g in c.geom} - {0}
    assert len(standing) == 2


def test_at_an_equilibrium_with_a_loop_and_a_spring_the_energy_is_stationary():
    axis = (0, 0, 1)
    bodies = [
        zw.Body("crank", zw.Revolute("crank", axis), mass=1, com=(0.1, 0, 0), inertia=(0.01,) * 3),
        zw.Body("rod", zw.Revolute("rod", axis), "crank", (0.2, 0, 0), mass=1, com=(0.3, 0, 0),
                inertia=(0.05,) * 3),
        zw.Body("slider", zw.Prismatic("slider", (1, 0, 0)), mass=0.5),
    ]  # fmt: skip
    pin = zw.Connect("pin", ("rod", (0.6, 0, 0)), ("slider", (0, 0, 0)))
    spring = zw.Spring("slider", 80.0, rest=0.6)
    m = zw.Mechanism("press", bodies, gravity=(0, -9.81, 0), constraints=[pin], forces=[spring])
    q, _ = zw.assemble(m, [0.8, -1.0, 0.7])
    found = zw.trim(m, q)

    def energy(crank):
        q, _ = zw.assemble(m, found.q, positions={"crank": crank})
        return zw.energy(m, q, np.zeros(3)).potential

    low, high = (energy(found.q[0] + d) for d in (-1e-4, 1e-4))
    assert found.residual < 1e-9 and abs(high - low) / 2e-4 < 1e-7
    assert abs(energy(found.q[0] + 0.1) - low) > 1e-3


def test_residuals_of_equilibria_are_rounding():
    """Pendula that hang or stand, and a four-bar with a spring, whose accelerations are then zero."""
    m = furuta()
    pendulum = m.subs({name: 9.81 if name == "g" else 0.1 for name in m.symbols})
    bar = four_bar()
    spring = bar.replace(forces=[*bar.forces, zw.Spring("drive", 5.0, rest=1.0)])
    cart_pole = zw.load(ASSETS / "inverted_pendulum.xml")
    for m, guess in ((pendulum, [0.3, 3.0]), (pendulum, [0.3, 0.1]), (cart_pole, [0.1, 0.1]),
                     (spring, zw.assemble(bar, bar.home)[0])):  # fmt: skip
        found = zw.trim(m, guess)
        assert found.residual <= 1e-12
        fast = zw.compile(m)
        rates = fast.constrained_dynamics_derivatives(found.q, np.zeros(m.nv), found.control)
        assert np.abs(rates.v_dot).max() <= 1e-12


def test_no_equilibrium_is_told_with_the_joint_that_moves():
    m = zw.load(ASSETS / "inverted_pendulum.xml")
    with pytest.raises(zw.errors.SolveError, match="'hinge' keeps accelerating"):
        zw.trim(m, [0, 0.1], fixed=["hinge"])
    hopper = zw.load(ASSETS / "hopper.xml")
    with pytest.raises(zw.errors.SolveError, match="no contact is closed"):
        zw.trim(hopper, np.array(hopper.home or hopper.neutral) + np.eye(6)[1])
    with pytest.raises(UnknownNameError, match="wheel"):
        zw.trim(m, [0, 0.1], fixed=["wheel"])


def test_a_state_without_derivatives_is_no_way_to_an_equilibrium():
    """The third derivative of x^(5/2), which the derivative of a soft formula contains, is infinite at 0."""
    rough = zw.Holonomic("rough", [sp.Symbol("x") ** sp.Rational(5, 2)], softness=zw.Softness())
    body = zw.Body("x", zw.Prismatic("x", (1, 0, 0)), mass=1)
    m = zw.Mechanism("m", [body], gravity=(1, 0, 0), forces=[zw.Motor("u", "x")], constraints=[rough])
    with pytest.raises(zw.errors.SolveError, match="has no derivative at a state"):
        zw.trim(m, [0.0], fixed=["x"])
    assert zw.trim(m, [0.0]).residual < 1e-8  # beside it there are some


def test_a_trimmed_control_is_within_its_range():
    """The shoulder carries both links: the arm hangs down until its range suffices."""
    m = arm(zw.Motor("s", "shoulder", control_range=(-3, 3)), zw.Motor("e", "elbow"))
    found = zw.trim(m, [0.1, 0.2])
    assert -3 <= found.control[0] < -2.9 and found.residual < 1e-9
    rates = zw.compile(m).constrained_dynamics_derivatives(found.q, [0, 0], found.control)
    assert np.abs(rates.v_dot).max() < 1e-9
    saturated = r"'shoulder' keeps .*\('s' at the end of the control range\)"
    with pytest.raises(zw.errors.SolveError, match=saturated):
        zw.trim(m, [0.1, 0.2], fixed=["shoulder", "elbow"])


@pytest.mark.parametrize("guess", [None, [-4.0], [0.0], [20.0], [99.0]])
def test_a_control_is_found_from_an_end_of_its_range_and_from_beyond(guess):
    """A thruster carries the weight m g = 9.81 N; at the ends of its range dv_dot / du = 1 / m, too."""
    body = zw.Body("drone", zw.Prismatic("z", (0, 0, 1)), mass=1)
    mass, thruster = sp.Symbol("mass", positive=True), zw.Motor("u", "z", control_range=(0, 20))
    m = zw.Mechanism("drone", [body], forces=[thruster])
    np.testing.assert_allclose(zw.trim(m, [0.0], control=guess).control, 9.81, rtol=1e-12)
    u = [0.0] if guess is None else guess
    expected = [[0], [1 if 0 <= u[0] <= 20 else 0]]
    np.testing.assert_array_equal(zw.linearize(m, [0.0], control=u).B, expected)
    symbolic = zw.linearize(zw.Mechanism("d", [replace(body, mass=mass)], forces=[thruster]), [0], control=u)
    np.testing.assert_array_equal(np.array(symbolic.B.subs(mass, 1), float), expected)


def test_a_trimmed_control_of_a_muscle_is_between_0_and_1():
    """A spring holds the joint against the muscle. MuJoCo is at rest there, too."""
    text = """<mujoco><worldbody><body><joint name="j" axis="0 1 0" stiffness="5"/><geom size=".1"/></body>
      </worldbody><actuator><muscle name="m" joint="j" lengthrange="-1 1" force="20"/></actuator></mujoco>"""
    m = zw.load("muscle.xml", text=text)
    for guess, fixed, least, largest in (
        (3, ["m"], 1, 1),
        (3, [], 0.01, 1),
        (-2, ["m"], 0, 0),
        (-2, [], 0, 0),
    ):
        found = zw.trim(m, [0.0], control=[guess], fixed=fixed)
        assert least <= found.control <= largest and found.activation == pytest.approx(
            found.control, abs=1e-8
        )
        model = mujoco.MjModel.from_xml_string(text)
        data = mujoco.MjData(model)
        data.qpos[:], data.ctrl[:], data.act[:] = found.q, found.control, found.activation
        mujoco.mj_forward(model, data)
        assert max(abs(data.qacc[0]), abs(data.act_dot[0])) < 1e-6


@pytest.mark.parametrize("kind", ["integrator", "filter"])
def test_a_trimmed_activation_is_within_its_range(kind):
    """A servo that carries 1 kg needs the set point z + 0.1962, and its activation reaches 0.1."""
    weight = zw.Body("b", zw.Prismatic("z", (0, 0, 1)), mass=1)
    servo = zw.Actuator(
        "servo", joint="z", gain=(50, 0, 0), bias=(0, -50, 0), activation_range=(-0.1, 0.1),
        activation=(kind, (0.1,) if kind == "filter" else ()),
    )  # fmt: skip
    m = zw.Mechanism("lift", [weight], gravity=(0, 0, -9.81), forces=[servo])
    with pytest.raises(zw.errors.SolveError, match="'servo' at the end of the activation range"):
        zw.trim(m, [0.0], fixed=["z"])
    fast = zw.compile(m)
    for fixed, control in ((["servo"], [1.0]), ([], None)):
        found = zw.trim(m, [0.5], control=control, fixed=fixed)
        run = fast.rollout(found.q, [0.0], found.control, steps=500, activation=found.activation)
        np.testing.assert_allclose(run.q[-1], found.q, atol=1e-9)
        assert abs(found.activation[0]) <= 0.1 and found.q == pytest.approx(found.activation - 0.1962)


def arm(*forces):
    """Two links that stretch out along x, in gravity."""
    links = [
        zw.Body(name, zw.Revolute(name, (0, 1, 0)), parent, (x, 0, 0), mass=1, com=(0.5, 0, 0),
                inertia=(0.1, 0.1, 0.1))
        for name, parent, x in (("shoulder", "world", 0), ("elbow", "shoulder", 1))
    ]  # fmt: skip
    return zw.Mechanism("arm", links, gravity=(0, 0, -9.81), forces=forces)


def test_coordinates_are_fixed_by_name_also_beside_controls_of_that_name_and_without_any():
    """Springs that hold the links at the angles 1 and 0.3 against the torques of their weights."""
    outer = 9.81 * 0.5 * np.cos(1.3)
    sprung = arm(
        zw.Spring("elbow", outer / 0.3), zw.Spring("shoulder", outer + 9.81 * 1.5 * np.cos(1.0))
    )  # fmt: skip
    found = zw.trim(sprung, [0.8, 0.3], fixed="elbow")
    assert found.q[0] == pytest.approx(1) and found.q[1] == 0.3
    for fixed, text in ((["elbow"], "1 unknowns are free"), (["elbow", "shoulder"], "no unknown is free")):
        with pytest.raises(zw.errors.SolveError, match=text):
            zw.trim(sprung, [0.8, 0.5], fixed=fixed)
    driven = arm(zw.Motor("shoulder", "shoulder"), zw.Motor("elbow", "elbow"))
    found = zw.trim(driven, [0.1, 0.2], fixed=["shoulder (coordinate)", "elbow (coordinate)"])
    assert np.array_equal(found.q, [0.1, 0.2])
    outer = -9.81 * 0.5 * np.cos(0.3)
    np.testing.assert_allclose(found.control, [outer - 9.81 * 1.5 * np.cos(0.1), outer])
    found = zw.trim(driven, [0.1, 0.2], control=[-1, 0], fixed=["shoulder (control)", "elbow (control)"])
    assert np.array_equal(found.control, [-1, 0])
    for name, error, text in (
        ("elbow", zw.errors.ArgumentError, r"give 'elbow \(coordinate\)' or 'elbow \(control\)', or both"),
        ("wrist", UnknownNameError, "no coordinate or control 'wrist'"),
    ):
        with pytest.raises(error, match=text):
            zw.trim(driven, [0.1, 0.2], fixed=[name])


@pytest.mark.parametrize("guess", [-1.0, 0.0, 0.2, 0.25, 1.5, 3.1])
def test_the_equilibrium_of_a_pendulum_is_the_nearest(guess):
    """It hangs at pi / 2 and stands at -pi / 2; at 0 the torque of the weight has no slope."""
    body = zw.Body("rod", zw.Revolute("rod", (0, 1, 0)), mass=1, com=(0.5, 0, 0), inertia=(0.1, 0.1, 0.1))
    m = zw.Mechanism("pendulum", [body])
    expected = np.pi / 2 if guess >= 0 else -np.pi / 2
    assert zw.trim(m, [guess]).q == pytest.approx(expected, abs=1e-12)
    # a torque of -m g / 4 holds it at 60 degrees from either
    held = zw.trim(m, [guess], control=[-9.81 / 4]).q
    assert held == pytest.approx(np.pi / 3 if guess >= 0 else -np.pi / 3, abs=1e-9)


@pytest.mark.parametrize("shape", ["box", "sphere"])
def test_a_body_that_just_touches_the_floor_sinks_in_until_it_rests(shape):
    text = f"""<mujoco><worldbody><geom type="plane" size="1 1 1"/><body pos="0 0 .1"><freejoint/>
      <geom type="{shape}" size=".1 .1 .1" mass="1"/></body></worldbody></mujoco>"""
    m, model = read_mjcf("body.xml", text=text), mujoco.MjModel.from_xml_string(text)
    found = zw.trim(m, m.home)
    data = mujoco.MjData(model)
    data.qpos[:] = found.q
    mujoco.mj_forward(model, data)
    assert 0.099 < found.q[2] < 0.1 and np.abs(data.qacc).max() < 1e-7


def test_constraints_that_forbid_rest_are_told():
    """x_dot = 1, x = 2 t, and x_dot = x - 3, which allows rest at x = 3 only."""
    cart, x = zw.Body("cart", zw.Prismatic("x", (1, 0, 0)), mass=1), sp.Symbol("x")
    belt, drive = zw.Pfaffian("belt", {"x": 1}, rate=-1), zw.Holonomic("drive", x - 2 * sp.Symbol("t"))
    for constraint, name in ((belt, "belt"), (drive, "drive")):
        m = zw.Mechanism("m", [cart], constraints=[constraint])
        with pytest.raises(zw.errors.SolveError, match=f"constraint '{name}' forbids rest"):
            zw.trim(m, [0.0])
    away = zw.Pfaffian("away", {"x": 1}, rate=3 - x)
    assert zw.trim(zw.Mechanism("m", [cart], constraints=[away]), [0.0]).q == pytest.approx(3)


@pytest.mark.parametrize("rest", [2.0, 200.0])
def test_an_equilibrium_many_turns_away_is_found_where_the_forces_are_linear(rest):
    rotor = zw.Body("rotor", zw.Revolute("a", (0, 0, 1)), mass=1, com=(0.5, 0, 0), inertia=(0.1,) * 3)
    m = zw.Mechanism("rotor", [rotor], forces=[zw.Spring("a", 1, rest=rest)])
    assert zw.trim(m, [0.0]).q[0] == pytest.approx(rest)
