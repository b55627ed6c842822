"""A URDF's effort limits act in simulation: the force of a motor is limited. Compared with closed forms and
MuJoCo's reading of the same file.
"""

from __future__ import annotations

from pathlib import Path

import mujoco
import numpy as np
import pytest

import zwang as zw

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
