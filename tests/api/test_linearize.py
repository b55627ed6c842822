"""Linear models, against published eigenvalues, closed forms and the simulation itself."""

import importlib.resources
import runpy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.linalg
import sympy as sp
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation

import zwang as zw
from tests.constraint.test_constraint_stabilization import turning_bennett
from zwang.api.analysis import linearize as linear_models
from zwang.errors import (
    DescriptionError,
    MissingExtraError,
    ParameterError,
    ShapeError,
    SimulationError,
    SimulationWarning,
    StateError,
    UnknownNameError,
)
from zwang.io.mjcf.read.read_mjcf import read_mjcf
from zwang.mechanism.samples import FURUTA, furuta

ROOT = Path(__file__).parents[2]
ASSETS = Path(str(importlib.resources.files("gymnasium"))) / "envs" / "mujoco" / "assets"


@pytest.fixture(scope="module")
def bicycle():
    return runpy.run_path(str(ROOT / "examples" / "bicycle.py"))["numbers"]


INDEPENDENT = "x y yaw roll steer rear front roll_dot steer_dot rear_dot".split()


@pytest.mark.parametrize("states", [None, INDEPENDENT])
def test_the_bicycle_has_the_published_eigenvalues(bicycle, states):
    """Meijaard, Papadopoulos, Ruina, Schwab, Proc. R. Soc. A 463 (2007) 1955, Table 2, 5 m/s."""
    q, v = zw.assemble(bicycle, np.zeros(9), [5, 0, 0, 0, 0, 0, -5 / 0.3, 0, -5 / 0.35])
    model = zw.linearize(bicycle, q, v, states=states)
    weave, capsize, castering = -0.77534188219585 + 4.46486771378823j, -0.32286642900409, -14.07838969279822
    expected = [weave, np.conj(weave), capsize, castering]
    assert str(model).startswith(f"<linear model, continuous: states {model.states[0]}, ")
    assert len(model.states) == 10 and model.step is None
    for pole in expected:
        assert np.abs(model.poles - pole).min() < 1e-10
    others = sorted(model.poles, key=abs)[:6]  # position, heading and speed, which nothing restores
    assert np.abs(others).max() < 1e-6


def rolling_disc(m, r, A, C, g):
    axes = np.eye(3, dtype=int).tolist()
    joints = [zw.Prismatic(name, axis=axis) for name, axis in zip("xyz", axes, strict=True)]
    joints += [zw.Revolute(name, axis=axes[k]) for name, k in (("yaw", 2), ("lean", 0), ("spin", 1))]
    disc = zw.Body("disc", tuple(joints), mass=m, inertia=(A, C, A))
    rolling = zw.Rolling("floor", "disc", r, axis=(0, 1, 0))
    return zw.Mechanism("disc", [disc], gravity=(0, 0, -g), constraints=[rolling])


def disc_accelerations(y, m, r, A, C, g):
    """The rates of y = (lean, its rate, yaw rate w, spin rate s) by the equations of Neimark and Fufaev,
    Dynamics of Nonholonomic Systems (1972), Ch. II.
    """
    lean, rate, w, s = y
    sin, cos, D = np.sin(lean), np.cos(lean), C + m * r * r
    acceleration = m * r * g * sin + D * (s + w * sin) * w * cos - A * w * w * sin * cos
    M = [[A * cos**2 + D * sin**2, D * sin], [D * sin, D]]
    forces = [-C * rate * s * cos + rate * w * (A - D) * np.sin(2 * lean), -rate * w * (D + m * r * r) * cos]
    return np.array([rate, acceleration / (A + m * r * r), *np.linalg.solve(M, forces)])


def test_an_over_constrained_loop_has_the_poles_of_its_one_coordinate():
    """-V'' / M of a Bennett loop about its equilibrium, by differences of energies of assembled states."""
    m, start, _ = turning_bennett()
    m = m.replace(gravity=(0, -3, -9.81))
    q0 = zw.robot.equilibrium(m, start).q
    v0 = zw.assemble(m, q0, speeds={"turn 0": 1.0})[1]

    def potential(angle):
        q, _ = zw.assemble(m, q0, positions={"turn 0": q0[0] + angle})
        return float(zw.energy(m, q, 0 * v0).potential)

    h = 1e-3
    stiffness = (potential(h) - 2 * potential(0) + potential(-h)) / h**2
    expected = np.sqrt(complex(-stiffness / (2 * float(zw.energy(m, q0, v0).kinetic))))
    model = zw.linearize(m, q0)
    poles = np.linalg.eigvals(model.A)
    assert model.A.shape == (2, 2) and min(np.abs(poles - expected)) < 1e-4 * abs(expected)
    assert not zw.linearize(m, q0, v0).steady


def steady_spin(lean, turn, m, r, A, C, g):
    """The spin rate at which the lean stays constant."""
    weight = m * r * g * np.tan(lean) - A * turn**2 * np.sin(lean)
    return -weight / ((C + m * r * r) * turn) - turn * np.sin(lean)


def steady_turn(heading, lean, turn, spin, r):
    """q and v of the disc; its centre moves ahead at r (spin + turn sin(lean))."""
    ahead = r * (spin + turn * np.sin(lean))
    q = [0, 0, r * np.cos(lean), heading, lean, 0]
    return q, [ahead * np.cos(heading), ahead * np.sin(heading), 0, turn, 0, spin]


@pytest.mark.parametrize(("turn", "step"), [(2.5, None), (6.0, None), (6.0, 1e-3)])
def test_a_disc_in_a_steady_turn_has_the_poles_of_its_reduced_equations(turn, step):
    """It topples in a slow turn and wobbles in a fast one, whatever its heading."""
    p, lean, heading = {"m": 2.0, "r": 0.5, "A": 0.125, "C": 0.25, "g": 9.81}, 0.3, 0.7
    r, spin = p["r"], steady_spin(lean, turn, **p)
    y = np.array([lean, 0, turn, spin])
    assert np.abs(disc_accelerations(y, **p)).max() < 1e-12
    moved = [[disc_accelerations(y + s * e, **p) for s in (1, -1)] for e in 1e-6 * np.eye(4)]
    expected = max(np.linalg.eigvals([(a - b) / 2e-6 for a, b in moved]), key=abs)
    q, v = steady_turn(heading, lean, turn, spin, r)
    model = zw.linearize(rolling_disc(**p), q, v, step=step, integrator=step and "rk4")
    poles = model.poles if step is None else np.log(model.poles.astype(complex)) / step
    assert model.steady and min(np.abs(poles - expected).min(), np.abs(poles + expected).min()) < 1e-6
    assert np.sort(np.abs(poles))[:6].max() < 1e-3  # the other two directions of motion, and where it goes
    wrong = ["x", "y", "yaw", "lean", "spin", "x_dot", "yaw_dot", "lean_dot"]
    model = zw.linearize(rolling_disc(**p), q, v, states=wrong, step=step, integrator=step and "rk4")
    with pytest.warns(SimulationWarning, match="depend on the choice of the states .x, y, yaw"):
        _ = model.poles


def test_a_symbolic_model_of_a_steady_turn_has_the_states_of_that_in_numbers():
    p, spin = {"m": 2.0, "A": 0.125, "C": 0.25, "g": 9.81}, sp.Symbol("spin_rate")
    symbolic = zw.linearize(rolling_disc(r=0.5, **dict(zip(p, sp.symbols(list(p)), strict=True))),
                            *steady_turn(0.7, 0.3, 6.0, spin, 0.5))  # fmt: skip
    for rate, steady in ((-2.0, False), (steady_spin(0.3, 6.0, r=0.5, **p), True)):
        numeric = zw.linearize(rolling_disc(r=0.5, **p), *steady_turn(0.7, 0.3, 6.0, rate, 0.5))
        found = symbolic.at({**p, "spin_rate": rate})
        assert found.states == numeric.states and found.steady == numeric.steady == steady
        np.testing.assert_allclose(found.A, numeric.A, atol=1e-10)


def test_a_motion_whose_states_all_turn_with_it_is_told():
    """A knife edge on a circle, whose small deviations neither grow nor decay: its velocity in the world
    changes along the motion, at every heading.
    """
    joints = (zw.Prismatic("x", (1, 0, 0)), zw.Prismatic("y", (0, 1, 0)), zw.Revolute("theta", (0, 0, 1)))
    body = zw.Body("blade", joints, mass=1, inertia=(0.1, 0.1, 0.1))
    edge = zw.NoSideSlip("edge", "blade", direction=(0, 1, 0))
    m = zw.Mechanism("blade", [body], gravity=(0, 0, 0), constraints=[edge])
    for heading in (0.0, 0.5):
        model = zw.linearize(m, [0, 0, heading], [2 * np.cos(heading), 2 * np.sin(heading), 3])
        assert not model.steady and model.states[:3] == ("x", "y", "theta")
    for straight in ([0, 0, 0], [2 * np.cos(0.5), 2 * np.sin(0.5), 0]):
        assert zw.linearize(m, [0, 0, 0.5], straight).steady


def parallelogram():
    """A parallelogram of a massless-rod length 1 hung from two pins, with a spring at the crank."""
    axis = (0, 0, 1)
    bodies = [
        zw.Body("crank", zw.Revolute("crank", axis), mass=1, com=(0.5, 0, 0),
                inertia=(1 / 24, 1 / 24, 1 / 12)),
        zw.Body("coupler", zw.Revolute("coupler", axis), "crank", (1, 0, 0), mass=2, com=(0.5, 0, 0),
                inertia=(1 / 12, 1 / 12, 1 / 6)),
        zw.Body("rocker", zw.Revolute("rocker", axis), position=(1, 0, 0), mass=1, com=(0.5, 0, 0),
                inertia=(1 / 24, 1 / 24, 1 / 12)),
    ]  # fmt: skip
    pin = zw.Connect("pin", ("coupler", (1, 0, 0)), ("rocker", (1, 0, 0)))
    return zw.Mechanism("parallelogram", bodies, gravity=(0, -9.81, 0), constraints=[pin])


@pytest.mark.parametrize("step", [None, 0.01, 0.001])
def test_a_state_at_rest_that_accelerates_is_steady_only_if_its_model_stays(step):
    """Then the poles of a four-bar depend on the choice of its states, unlike in equilibrium. A pendulum
    released from 0.3 rad gets other poles as it falls; a falling body keeps its own.
    """
    pin = zw.Connect("pin", ("coupler", (0.8, 0.3, 0)), ("rocker", (1, 0, 0)))
    m = parallelogram().replace(constraints=[pin])
    released, _ = zw.assemble(m, [0.6, 0.1, 1.0])
    for q, steady in ((released, False), (zw.trim(m, released).q, True)):
        models = [zw.linearize(m, q, states=[x, f"{x}_dot"], step=step) for x in ("crank", "coupler")]
        assert [model.steady for model in models] == [steady, steady]
        assert np.allclose(*(np.linalg.eigvals(model.A) for model in models), rtol=1e-6) == steady
    hung, free = zw.Revolute("hinge", (0, 1, 0)), zw.Free("free")
    for joint, q, steady in ((hung, [0.3], False), (hung, [0.0], True), (free, [0, 0, 0, 1, 0, 0, 0], True)):
        body = zw.Body("body", joint, mass=1, com=(0, 0, -1), inertia=(0.1, 0.1, 0.1))
        assert zw.linearize(zw.Mechanism("m", [body]), q, step=step).steady == steady
        if step is None and joint is hung:
            symbolic = zw.Mechanism("m", [replace(body, mass=sp.Symbol("M", positive=True))])
            assert zw.linearize(symbolic, q).at({"M": 1}).steady == steady


def test_a_discrete_model_is_the_exponential_of_the_continuous_one():
    m, states = parallelogram(), ["crank", "crank_dot"]
    q, _ = zw.assemble(m, [-np.pi / 2, np.pi / 2, -np.pi / 2])
    continuous = zw.linearize(m, q, states=states).A
    h = 0.01
    discrete = zw.linearize(m, q, states=states, step=h, integrator="rk4").A
    assert np.allclose(discrete, scipy.linalg.expm(h * continuous), atol=1e-8)
    assert np.abs(discrete - np.eye(2) - h * continuous).max() > 1e-4


@pytest.mark.parametrize("joint", [zw.Ball("joint"), zw.Free("joint")])
def test_deviations_of_a_turning_body_are_those_of_its_motion(joint):
    """Euler's equations and R_dot = R [w]x in SciPy; R^T R' is the exponential of the predicted rotation."""
    inertia, w = np.array([0.1, 0.2, 0.25]), np.array([0, 0, 2.0])  # steady about a principal axis
    m = zw.Mechanism("body", [zw.Body("body", joint, mass=1, inertia=inertia)], gravity=(0, 0, 0))
    n, v = m.nv - 3, np.zeros(m.nv)
    v[n:] = w
    model, y0 = zw.linearize(m, m.neutral, v), np.zeros(2 * m.nv)
    y0[n : n + 3], y0[m.nv + n :] = (1e-5, -2e-5, 1e-5), (3e-5, 1e-5, -1e-5)

    def rates(t, x):
        R, w = x[:9].reshape(3, 3), x[9:]
        R_dot = R @ np.cross(np.eye(3), w)  # the rows e_k x w are those of [w]x
        return np.concatenate([R_dot.ravel(), np.cross(inertia * w, w) / inertia])

    def end(y):
        R = Rotation.from_rotvec(y[n : n + 3]).as_matrix()
        start = np.concatenate([R.ravel(), w + y[m.nv + n :]])
        x = solve_ivp(rates, (0, 1), start, method="DOP853", rtol=1e-12, atol=1e-14).y[:, -1]
        return x[:9].reshape(3, 3), x[9:]

    (R, w_end), (R_moved, w_moved) = end(0 * y0), end(y0)
    found = scipy.linalg.expm(model.A) @ y0
    assert np.allclose(found[n : n + 3], Rotation.from_matrix(R.T @ R_moved).as_rotvec(), atol=1e-8)
    assert np.allclose(found[m.nv + n :], w_moved - w_end, atol=1e-8)


def test_a_top_sleeps_above_the_published_spin():
    """Lagrange's top upright: A u'' - i C s u' - m g l u = 0 for its tilt u = x + i y in space, which turns
    back at the spin s in body axes. It is stable for C^2 s^2 > 4 A m g l.
    """
    mass, length, A, C, g = 0.5, 0.2, 0.03, 0.01, 9.81
    inertia = (A - mass * length**2, A - mass * length**2, C)
    top = zw.Body("top", zw.Ball("tip"), mass=mass, com=(0, 0, length), inertia=inertia)
    m, least = zw.Mechanism("top", [top], gravity=(0, 0, -g)), np.sqrt(4 * A * mass * g * length) / C
    for spin in (0.9 * least, 1.1 * least):
        found = zw.linearize(m, m.neutral, [0, 0, spin]).poles
        for pole in np.roots([A, -1j * C * spin, -mass * g * length]) - 1j * spin:
            assert np.abs(found - pole).min() < 1e-6 and np.abs(found - np.conj(pole)).min() < 1e-6
        assert (found.real.max() > 1) == (spin < least)


def test_the_continuous_model_is_the_limit_of_that_of_a_short_step():
    """A turning rod on a ball joint, with a tip that slides in a plane or that carries a hinged arm."""
    rod = zw.Body("rod", zw.Ball("rod"), mass=1, com=(0.1, 0.2, 0.5), inertia=(0.1, 0.2, 0.15))
    table = [zw.Body("x", zw.Prismatic("x", (1, 0, 0)), position=(0, 0, 0.7), mass=1),
             zw.Body("y", zw.Prismatic("y", (0, 1, 0)), "x", mass=2)]  # fmt: skip
    pin = zw.Connect("tip", ("rod", (0, 0, 1)), ("y", (0, 0, 0)))
    arm = zw.Body("arm", zw.Revolute("arm", (0, 1, 0)), "rod", (0, 0, 1), mass=1, com=(0.3, 0, 0.1),
                  inertia=(0.1, 0.1, 0.1))  # fmt: skip
    loop, chain = zw.Mechanism("loop", [rod, *table], constraints=[pin]), zw.Mechanism("chain", [rod, arm])
    for m, v in ((loop, [1, -2, 3, 1, 1]), (chain, [1, -2, 3, 2])):
        q = zw.integrate_configuration(m, m.neutral, np.array([0.7, 0.1, 0.3, 0, 0][: m.nv]), 1)
        q, v = zw.assemble(m, q, v)
        model = zw.linearize(m, q, v)
        assert np.linalg.norm(v[:3]) > 3
        # (A_h - 1) / h = A + O(h), by Richardson's extrapolation
        short, long = (
            (zw.linearize(m, q, v, states=model.states, step=h, integrator="rk4").A - np.eye(len(model.A)))
            / h
            for h in (1e-4, 2e-4)
        )
        assert np.abs(2 * short - long - model.A).max() < 1e-6 * np.abs(model.A).max()


def test_a_hanging_parallelogram_swings_at_its_closed_form_frequency():
    """Two rods of 1 kg, and a coupler of 2 kg that only translates, all of length 1:
    J = 2 / 3 + 2, k = g (2 (1 / 2) + 2).
    """
    m = parallelogram()
    q, _ = zw.assemble(m, [-np.pi / 2, np.pi / 2, -np.pi / 2])
    model = zw.linearize(m, q, states=["crank", "crank_dot"])
    omega = np.sqrt(9.81 * 3 / (2 / 3 + 2))
    assert model.A.shape == (2, 2) and np.allclose(np.sort(model.poles.imag), [-omega, omega])
    assert np.abs(model.poles.real).max() < 1e-9
    # the coupler only translates: its angle to the crank is opposite to that of the crank
    assert np.allclose(model.displacement[:3, 0], [1, -1, 1]) and model.outputs == ("crank", "crank_dot")
    with pytest.raises(DescriptionError, match="the constraints leave 2 free"):
        zw.linearize(m, q, states=["crank"])
    with pytest.raises(UnknownNameError, match="hand"):
        zw.linearize(m, q, outputs=["hand"])


def test_states_that_violate_hard_constraints_have_no_linear_model():
    """A position, and a velocity, off the loop; both in continuous time and of a step."""
    m = parallelogram()
    q, v = zw.assemble(m, [-1.2, 1.1, -1.1])
    away = np.eye(len(v))[0]
    for step in (None, 1e-3):
        zw.linearize(m, q, v, step=step)
        with pytest.raises(StateError, match="is violated by"):
            zw.linearize(m, q + 0.1 * away, step=step)
        with pytest.raises(StateError, match="velocities of this state violate"):
            zw.linearize(m, q, v + away, step=step)


def test_models_have_named_inputs_and_positions_of_frames_as_outputs():
    m = zw.load(ASSETS / "inverted_pendulum.xml")
    model = zw.linearize(m, zw.trim(m, [0, 0]).q, outputs=["hinge", "pole"])
    assert model.states == ("slider", "hinge", "slider_dot", "hinge_dot") and model.inputs == tuple(m.inputs)
    assert model.outputs == ("hinge", "pole.x", "pole.y", "pole.z")
    assert np.allclose(model.C[1], [1, 0, 0, 0]) and not model.D.any() and model.poles[0].real > 1


SERVOS = """<mujoco><worldbody><body><joint name="a" axis="0 1 0"/><geom type="capsule" fromto="0 0 0 .4 0 0"
size=".03"/><body pos=".4 0 0"><joint name="b" axis="0 1 0"/><geom type="capsule" fromto="0 0 0 .3 0 0"
size=".02"/></body></body></worldbody><actuator><position joint="a" kp="200" kv="9" forcerange="-30 30"/>
<general joint="b" gaintype="fixed" gainprm="40" biastype="affine" biasprm="0 -40 -3" dyntype="filter"
dynprm=".1"/></actuator><sensor><actuatorfrc actuator="actuator0"/></sensor>
<keyframe><key name="raised" qpos="-1.2 .5" qvel=".1 -.2" ctrl="-1.25 .45" act=".4"/></keyframe></mujoco>"""


def test_the_name_of_a_keyframe_stands_for_its_whole_state():
    """Its control, without which a servo is saturated and has no stiffness; velocities and activations."""
    m = read_mjcf("servos.xml", text=SERVOS.replace('kv="9"', 'kv="9" name="actuator0"'))
    key = m.keyframe("raised")
    named = zw.linearize(m, "raised")
    whole = zw.linearize(m, key.q, key.v, key.control, activation=key.activation)
    assert np.array_equal(named.A, whole.A) and np.array_equal(named.B, whole.B)
    assert np.abs(named.A - zw.linearize(m, key.q).A).max() > 1
    given = zw.linearize(m, "raised", control=[-1.2, 0.4], v=[0, 0])
    assert np.array_equal(given.control, [-1.2, 0.4]) and not given.v.any()
    found = zw.trim(m, "raised")
    assert found.residual < 1e-9 and np.abs(found.q - key.q).max() < 0.3
    sensed = zw.sensors(m, "raised", key.v)
    expected = zw.sensors(m, key.q, key.v, key.control, key.activation)
    assert {k: x.tolist() for k, x in sensed.items()} == {k: x.tolist() for k, x in expected.items()}


def test_a_keyframe_with_symbols_is_the_state_of_a_model_with_symbols():
    """A pendulum held at the angle a: A = [[0, 1], [-g cos(a) / l, 0]]."""
    a, l = sp.symbols("a l", positive=True)
    rod = zw.Body("rod", zw.Revolute("hinge", axis=(0, 1, 0)), mass=1.0, com=(0, 0, -l))
    key = zw.Keyframe("held", q=(a,), control=(9.81 * l * sp.sin(a),))
    m = zw.Mechanism("pendulum", [rod], forces=[zw.Motor("motor", "hinge")], keyframes=[key])
    values = {"a": 0.4, "l": 0.5}
    expected = [[0, 1], [-9.81 * np.cos(0.4) / 0.5, 0]]
    symbolic = zw.linearize(m, "held")
    assert symbolic.q == sp.Matrix([a]) and symbolic.control == sp.Matrix(key.control)
    np.testing.assert_allclose(symbolic.at(values).A, expected, rtol=1e-12)
    np.testing.assert_allclose(zw.linearize(m, "held", params=values).A, expected, rtol=1e-9, atol=1e-12)


def test_an_integrator_without_a_step_and_unknown_parameters_are_refused():
    m = zw.load(ASSETS / "inverted_pendulum.xml")
    with pytest.raises(DescriptionError, match="but a linear model of continuous time has no"):
        zw.linearize(m, [0, 0], integrator="rk4")
    with pytest.raises(ParameterError, match="mass"):
        zw.linearize(m, [0, 0], params={"mass": 1.0})
    symbolic = furuta()
    several = dict.fromkeys(symbolic.symbols, 1.0) | {"g": [9.8, 9.9]}
    for function in (zw.linearize, zw.trim):
        with pytest.raises(ParameterError, match=r"'g', has the shape \(2,\); give one number"):
            function(symbolic, [0, 0], params=several)


def test_frequency_responses_are_those_of_a_mass_on_a_spring(tmp_path):
    """1 / (k - m w^2 + i c w), drawn over the frequencies around its poles."""
    mass, damping, stiffness = 2.0, 0.6, 8.0
    oscillator = zw.Mechanism(
        "oscillator",
        [zw.Body("block", zw.Prismatic("x", (1, 0, 0)), mass=mass)],
        forces=[zw.Motor("push", "x"), zw.Damper("x", damping), zw.Spring("x", stiffness)],
        gravity=(0, 0, 0),
    )
    model = zw.linearize(oscillator, [0.0], outputs=["x"])
    w = np.array([0.1, 1.0, 2.0, 30.0])
    exact = 1 / (stiffness - mass * w**2 + 1j * damping * w)
    np.testing.assert_allclose(model.frequency_response(w)[:, 0, 0], exact, rtol=1e-12)
    discrete = zw.linearize(oscillator, [0.0], outputs=["x"], step=1e-3, integrator="rk4")
    # a held control lags by half a step
    lagging = exact * np.exp(-0.5j * w * 1e-3) * np.sinc(w * 1e-3 / 2 / np.pi)
    np.testing.assert_allclose(discrete.frequency_response(w)[:, 0, 0], lagging, rtol=1e-5)
    figure = zw.plot(model, tmp_path / "model.png")
    poles, magnitude, phase = figure.axes
    marks = [line for line in poles.lines if line.get_marker() == "x"]
    assert len(marks) == 1 and marks[0].get_label() == "stable or neutral"
    np.testing.assert_allclose(marks[0].get_xdata(), -damping / mass / 2)
    x, y = magnitude.lines[0].get_data()
    np.testing.assert_allclose(y, np.abs(1 / (stiffness - mass * x**2 + 1j * damping * x)), rtol=1e-9)
    assert -180 <= phase.lines[0].get_ydata().min() < -150 and phase.lines[0].get_ydata().max() < 0
    assert (tmp_path / "model.png").stat().st_size > 10_000
    steps = zw.plot(discrete).axes[1].lines[0].get_xdata()
    assert steps[-1] == pytest.approx(np.pi / 1e-3)


def test_a_model_in_python_control_has_the_same_poles_names_and_responses(monkeypatch):
    control = pytest.importorskip("control")
    m = furuta(**FURUTA)
    for step in (None, 0.01):
        model = zw.linearize(m, [0.3, 0.0], step=step, outputs=["alpha"])
        space = model.to_control()
        assert isinstance(space, control.StateSpace)
        assert space.dt == (0 if step is None else step)
        assert (space.state_labels, space.input_labels) == (list(model.states), list(model.inputs))
        np.testing.assert_allclose(np.sort_complex(space.poles()), np.sort_complex(model.poles), atol=1e-9)
        w = np.array([0.3, 2.0, 20.0])
        found = space(1j * w if step is None else np.exp(1j * w * step))
        np.testing.assert_allclose(np.ravel(found), model.frequency_response(w)[:, 0, 0], rtol=1e-9)
    for wrong, error in ((np.nan, StateError), ([1, np.inf], StateError), (np.ones((1, 2)), ShapeError)):
        with pytest.raises(error, match="frequencies"):
            model.frequency_response(wrong)
    free = zw.Body("root", zw.Free("root"), mass=1, inertia=(1, 2, 3))
    m = zw.Mechanism("body", [free], gravity=(0, 0, 0))
    assert zw.linearize(m, m.neutral).to_control().state_labels[:3] == ["root_x", "root_y", "root_z"]
    monkeypatch.setattr(linear_models, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"pip install 'zwang\[control\]'"):
        model.to_control()


def test_hard_contacts_have_a_linear_model_of_a_step_only():
    """A puck that slides on a floor: the friction of a step does not depend on the speed."""
    material = zw.Surface(condim=3, hard=True, friction=(0.2, 0, 0))
    joints = [zw.Body("carriage", zw.Prismatic("x", (1, 0, 0)))]
    puck = zw.Body(
        "puck", zw.Prismatic("z", (0, 0, 1)), "carriage", mass=2, geometry=(zw.Sphere(0.1, surface=material),)
    )
    m = zw.Mechanism(
        "puck", [*joints, puck], geometry=[zw.Plane(surface=material)], forces=[zw.Motor("push", "x")]
    )
    with pytest.raises(
        SimulationError, match="hard contacts, limits or friction, which act over a time step"
    ):
        zw.linearize(m, [0.0, 0.1])
    h = 0.01
    model = zw.linearize(m, [0.0, 0.1], [1.0, 0.0], step=h, integrator="euler", states=None)
    x, v = model.states.index("x"), model.states.index("x_dot")
    assert np.allclose(model.A[np.ix_([x, v], [x, v])], [[1, h], [0, 1]])
    assert np.allclose(model.B[v], h / 2)


@pytest.mark.parametrize("mass", [1, sp.Symbol("m")])
def test_states_of_equal_names_are_refused(mass):
    bodies = [zw.Body("first", zw.Prismatic("a", axis=(1, 0, 0)), mass=mass),
              zw.Body("second", zw.Prismatic("a_dot", axis=(1, 0, 0)), "first", mass=1)]  # fmt: skip
    with pytest.raises(DescriptionError, match=r"two states of the linear model .* have the name 'a_dot'"):
        zw.linearize(zw.Mechanism("m", bodies), [0, 0])


@pytest.mark.parametrize("mass", [1e-12, 1e-9, 1.0, 1e8])
def test_the_force_that_holds_a_mass_is_its_weight_however_small(mass):
    body = zw.Body("a", zw.Prismatic("x", axis=(0, 0, 1)), mass=mass)
    m = zw.Mechanism("lift", [body], forces=[zw.Motor("u", "x")], gravity=(0, 0, -9.81))
    found = zw.trim(m, [0.3], fixed=["x"])
    np.testing.assert_allclose(found.control, [9.81 * mass], rtol=1e-8)


@pytest.mark.parametrize("length", [1.0, 1e-3, 1e-5])
def test_a_released_pendulum_of_any_length_is_not_steady_and_a_hanging_one_is(length):
    body = zw.Body("bob", zw.Revolute("a", (0, 1, 0)), mass=1, com=(0, 0, -length))
    m = zw.Mechanism("pendulum", [body])
    assert [zw.linearize(m, [angle]).steady for angle in (0, 0.5, 1.2)] == [True, False, False]
