"""Limits of actuators act in simulation: the effort limits of a URDF, and the ranges of activations and of
controllers' integrals in continuous time. Compared with closed forms, with MuJoCo's reading of the same file,
and with SciPy's integration of the equations.
"""

from __future__ import annotations

from pathlib import Path

import mujoco
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import zwang as zw
from zwang.errors import FormatError, SimulationError

INERTIA, EFFORT, TIME = 0.4, 5.0, 0.5
ROBOT = """<robot name="r"><link name="base"/>
<link name="wheel"><inertial><mass value="1"/>
  <inertia ixx="0.4" iyy="0.4" izz="0.4" ixy="0" ixz="0" iyz="0"/></inertial></link>
<link name="car"><inertial><mass value="2"/>
  <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<link name="idle"><inertial><mass value="1"/>
  <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="spin" type="continuous"><parent link="base"/><child link="wheel"/><axis xyz="0 0 1"/>
  <limit effort="5" velocity="1"/></joint>
<joint name="drive" type="prismatic"><parent link="base"/><child link="car"/><axis xyz="1 0 0"/>
<limit lower="-100" upper="100" effort="3" velocity="9"/></joint>
<joint name="turn" type="revolute"><parent link="base"/><child link="idle"/><axis xyz="0 0 1"/>
<limit lower="-9" upper="9" effort="0" velocity="9"/></joint>
</robot>"""


@pytest.fixture
def robot(tmp_path: Path) -> zw.Mechanism:
    (tmp_path / "robot.urdf").write_text(ROBOT)
    return zw.load(tmp_path / "robot.urdf")


@pytest.mark.parametrize("integrator", ["euler", "rk4", "dop853"])
@pytest.mark.parametrize("compiled", [True, False])
def test_a_motor_force_is_limited_to_its_effort_limit(robot, integrator, compiled):
    u = np.array([[50.0, -50.0, 50.0], [3.0, 2.0, -7.0]])
    acting = np.array([[5.0, -3.0, 50.0], [3.0, 2.0, -7.0]])  # an effort limit of 0 means none
    run = zw.simulate(
        robot,
        control=u[:, None, :],
        worlds=2,
        duration=TIME,
        step=0.1,
        integrator=integrator,
        compiled=compiled,
        progress=False,
    )
    np.testing.assert_allclose(run.v.values[:, -1], acting / [INERTIA, 2.0, 1.0] * TIME, rtol=1e-9)
    np.testing.assert_allclose(run.tau.values, np.repeat(acting[:, None], 6, axis=1), rtol=1e-12)
    np.testing.assert_array_equal(run.control.values[:, 0], u)


def test_steps_of_compiled_functions_are_limited_too(robot):
    _, v, _ = zw.compile(robot).step(np.zeros(3), np.zeros(3), [50.0, 50.0, 50.0], step=0.1)
    np.testing.assert_allclose(v, [5 / INERTIA * 0.1, 3 / 2 * 0.1, 5.0], rtol=1e-12)


def test_forces_not_driven_by_control_are_not_limited(robot):
    """The limit applies to motors only: the force of a stiff spring exceeds it."""
    sprung = robot.replace(forces=[zw.Spring("spin", 100.0)])
    run = zw.simulate(sprung, {"spin": 1.0}, duration=0.001, step=0.001, progress=False)
    np.testing.assert_allclose(run.v.values[0, -1, 0], -100 / INERTIA * 0.001, rtol=1e-9)


@pytest.mark.parametrize("compiled", [True, False])
def test_wrenches_with_inputs_are_not_limited(robot, compiled):
    """The limits of 5 N m and 3 N apply to the motors only, and the recorded tau contains both."""
    motors = [zw.Motor("spin motor", "spin"), zw.Motor("drive motor", "drive")]
    pushed = zw.with_applied_wrenches(robot.replace(forces=motors), "wheel", "car")
    control = {"spin motor": 9.0, "drive motor": 9.0, "wheel.tz": 4.0, "car.fx": 10.0}
    run = zw.simulate(pushed, control=control, duration=TIME, step=0.1, compiled=compiled, progress=False)
    acting = np.array([5.0 + 4.0, 3.0 + 10.0, 0.0])
    np.testing.assert_allclose(run.v.values[0, -1], acting / [INERTIA, 2.0, 1.0] * TIME, rtol=1e-9)
    np.testing.assert_allclose(run.tau.values[0], np.tile(acting, (6, 1)), rtol=1e-12)


def test_reactions_and_equations_do_not_limit_wrenches(robot):
    """The joint transmits the motor force alone along its axis, and the whole wrench across it."""
    pushed = zw.with_applied_wrenches(
        robot.replace(forces=[zw.Motor("u", "drive")], gravity=(0, 0, 0)), "car"
    )
    control = {"u": 9.0, "car.fx": 10.0, "car.fy": 7.0}
    found = zw.joint_reactions(pushed, [0.0] * 3, [0.0] * 3, [0.0] * 3, control=control)
    np.testing.assert_allclose(found.acceleration, [0, 13.0 / 2, 0], atol=1e-12)
    np.testing.assert_allclose(found.joints["drive"].force, [3.0, -7.0, 0], atol=1e-12)
    e = zw.equations(pushed)
    u = {e.symbols.inputs[name]: control.get(name, 0) for name in pushed.inputs}
    forces = sum(e.generalized_forces.values(), e.mass_matrix[:, 0] * 0)
    assert [float(x) for x in forces.subs(u)] == [0, 13, 0]


def test_the_limits_equal_those_mujoco_reads_from_the_file(robot, tmp_path):
    """In MuJoCo a motor on each joint is limited to the same range, and gives the same accelerations."""
    spec = mujoco.MjSpec.from_string(ROBOT)
    for name in ("spin", "drive", "turn"):
        motor = spec.add_actuator(name=name, trntype=mujoco.mjtTrn.mjTRN_JOINT, target=name)
        motor.gainprm[0] = 1
    model = spec.compile()
    data = mujoco.MjData(model)
    names = [model.joint(k).name for k in range(model.njnt)]
    for u in (50.0, -50.0, 1.5):
        data.ctrl[:] = u
        mujoco.mj_forward(model, data)
        driven = zw.simulate(robot, control=[u] * 3, duration=0.001, step=0.001, progress=False)
        expected = [data.qacc[names.index(name)] for name in robot.speed_names]
        np.testing.assert_allclose(driven.v.values[0, -1] / 0.001, expected, rtol=1e-9)


def test_the_load_report_states_that_effort_limits_act(robot):
    notes = [str(note) for note in robot.report.notes]
    assert any("the effort limits of 2 joints are actuator ranges in simulation" in note for note in notes)
    assert any(
        "effort limit of joint 'turn' has no effect in simulation: 0 stands for no limit" in note
        for note in notes
    )
    assert robot.joint("turn").joint.effort_limit == 0 and robot.joint("turn").joint.actuator_range is None


# ------------------------------------------------------------------------- actuators in continuous time

CART = """<mujoco><option timestep="0.001" integrator="RK4"/><worldbody><body>
<joint name="x" type="slide" axis="1 0 0" damping="2"/><geom size=".1" mass="1"/></body></worldbody>
<actuator><general name="push" joint="x" dyntype="integrator" gainprm="1.5" actrange="-.4 .4"/></actuator>
</mujoco>"""
ADAPTIVE = ("dop853", "rk45", "radau", "bdf", "lsoda")


def cart_in_continuous_time(t: float) -> tuple[float, float]:
    """Activation and position of the cart 1 s + t after a control of 0.8 begins, which is -0.8 from 1 s on:
    the activation is at 0.4 from 0.5 to 1 s.
    """
    x, v = 0.0, 0.0
    for a, slope, time in ((0.0, 0.8, 0.5), (0.4, 0.0, 0.5), (0.4, -0.8, t)):
        # v_dot = 1.5 (a + slope s) - 2 v
        particular = 0.75 * a - 0.375 * slope
        decay = v - particular
        x += particular * time + 0.375 * slope * time**2 + decay / 2 * (1 - np.exp(-2 * time))
        v = particular + 0.75 * slope * time + decay * np.exp(-2 * time)
    return 0.4 - 0.8 * t, x


@pytest.mark.parametrize("integrator", ADAPTIVE)
def test_an_activation_stops_at_its_range_in_continuous_time(integrator):
    cart = zw.load("cart.xml", text=CART)
    control = {"push": np.where(np.arange(15) < 10, 0.8, -0.8)}
    run = zw.simulate(cart, duration=1.5, step=0.1, integrator=integrator, control=control, progress=False)
    activation, x = cart_in_continuous_time(0.5)
    assert run.activation.values.max() < 0.4 + 1e-6
    np.testing.assert_allclose(run.q.values[0, -1], x, atol=3e-7)
    np.testing.assert_allclose(run.activation.values[0, -1], activation, atol=1e-6)
    model = mujoco.MjModel.from_xml_string(CART)
    data = mujoco.MjData(model)
    for k in range(1500):
        data.ctrl[:] = control["push"][k // 100]
        mujoco.mj_step(model, data)
    np.testing.assert_allclose(run.q.values[0, -1], data.qpos, atol=1e-3)  # MuJoCo's activation is Euler's


LINK = zw.Body("link", zw.Revolute("j", axis=(0, 1, 0)), mass=1.0, com=(0, 0, -0.3))
WEIGHT, LINK_INERTIA = 9.81 * 0.3, 0.09


def servo(pid, t, y):
    """The motion of a link under a PID controller, whose integral is y[2]: its force is 2 at most."""
    error = 1 - y[0]
    bound = pid.largest_integral_force or np.inf
    force = 20 * error + np.clip(30 * y[2], -bound, bound) - 2 * y[1]
    stopped = abs(30 * y[2]) >= bound and error * y[2] > 0
    return [y[1], (force - WEIGHT * np.sin(y[0])) / LINK_INERTIA, 0 if stopped else error]


def filtered(t, y):
    """The motion of a link under an actuator with a filter, whose activation is y[2]."""
    return [y[1], (5 * y[2] - WEIGHT * np.sin(y[0])) / LINK_INERTIA, (1 - y[2]) / 0.05]


@pytest.mark.parametrize("step", [0.1, 0.01])
@pytest.mark.parametrize("limit", [None, 2.0])
def test_the_step_of_the_recording_does_not_change_a_controlled_motion(step, limit):
    pid = zw.Pid(20, 30, 2.0, largest_integral_force=limit)
    early = {"gain": (5, 0, 0), "activation": ("filter", (0.05,)), "early": True}
    for options, derivative in (({"pid": pid}, lambda t, y: servo(pid, t, y)), (early, filtered)):
        m = zw.Mechanism("servo", [LINK], forces=[zw.Actuator("a", joint="j", **options)])
        run = zw.simulate(m, duration=1, step=step, integrator="dop853", control=[1.0], progress=False)
        accuracy = {"method": "DOP853", "rtol": 1e-11, "atol": 1e-12, "max_step": 0.02}
        exact = solve_ivp(derivative, (0, 1), [0, 0, 0], **accuracy)
        q, v, z = exact.y[:, -1]
        np.testing.assert_allclose(run.q.values[0, -1, 0], q, atol=3e-7)
        np.testing.assert_allclose(run.activation.values[0, -1, 0], z, atol=3e-7)
        force = (derivative(1, [q, v, z])[1] * LINK_INERTIA) + WEIGHT * np.sin(q)
        np.testing.assert_allclose(run.tau.values[0, -1, 0], force, atol=1e-5)


def test_a_slew_rate_is_refused_in_continuous_time(tmp_path):
    m = zw.Mechanism("servo", [LINK], forces=[zw.Actuator("a", joint="j", pid=zw.Pid(20, slew_rate=0.5))])
    with pytest.raises(SimulationError, match=r"actuator 'a' has a slew_rate, .* 'dop853'"):
        zw.simulate(m, duration=1, integrator="dop853", progress=False)
    with pytest.raises(FormatError, match="a controller with a slew rate"):
        zw.export(m, tmp_path, functions=["state_derivative"])
