"""Kinds of actuators, against the motions of MuJoCo."""

from dataclasses import replace

import mujoco
import numpy as np
import pytest

import zwang as zw
from tests.oracles.mujoco_runs import assert_derivatives_are_differences, assert_runs_equal, option
from zwang.errors import ArgumentError, DescriptionError, FormatError, LoadError, ShapeError, UnknownNameError
from zwang.integrator.fixed_step import State
from zwang.simulation.step import step, step_settings

COMPENSATED = """<mujoco>{option}<worldbody>
  <body gravcomp="1.2"><joint name="a" axis="0 1 0" actuatorgravcomp="true" actuatorfrcrange="-3 2"/>
    <geom type="capsule" size=".05" fromto="0 0 0 .3 .1 0"/>
    <body pos=".3 0 0" gravcomp=".7"><joint name="b" type="ball" damping="1" actuatorgravcomp="true"/>
      <geom type="box" size=".1 .2 .05" pos=".1 0 .05"/>
      <body pos=".2 0 .1"><joint name="c" axis="1 0 1"/><geom size=".06" mass="2" pos="0 .1 0"/></body>
    </body></body>
  <body pos="2 0 0" gravcomp=".5"><joint name="d" axis="0 1 0"/><geom size=".1" pos=".2 0 0"/></body>
</worldbody>
<sensor><jointactuatorfrc joint="a"/></sensor>
{actuators}</mujoco>"""


@pytest.mark.parametrize("integrator", ["Euler", "implicitfast", "RK4"])
def test_gravity_compensation_by_actuators_equals_mujoco(integrator, tmp_path):
    actuators = '<actuator><motor joint="a" gear="3"/></actuator>'
    text = COMPENSATED.format(option=option(integrator), actuators=actuators)
    mechanism = assert_runs_equal(text, tmp_path)
    carried = [joint.joint.actuator_gravity_compensation for joint in mechanism.joints]
    assert carried == [True, True, False, False]


def test_gravity_compensation_by_actuators_needs_an_input(tmp_path):
    assert_runs_equal(COMPENSATED.format(option=option("Euler"), actuators=""), tmp_path)


PUSHED = """<mujoco>{option}<worldbody>
  <body name="arm" gravcomp="1.2"><joint name="a" axis="0 1 0" actuatorgravcomp="true" actuatorfrcrange="-3 2"
      stiffness="4" damping=".2"/><geom type="capsule" size=".05" fromto="0 0 0 .3 .1 0"/>
    <body name="hand" pos=".3 0 0" gravcomp=".7"><joint name="b" axis="1 0 1" actuatorfrcrange="-5 4"/>
      <geom type="box" size=".1 .2 .05" pos=".1 0 .05"/></body></body>
</worldbody>
<actuator><motor name="m" joint="a" gear="3"/>
  <general name="g" joint="b" gainprm="1" biastype="affine" biasprm="0 0 -3"/></actuator>
<sensor><jointactuatorfrc joint="a"/><jointactuatorfrc joint="b"/></sensor></mujoco>"""


@pytest.mark.parametrize("integrator", ["Euler", "implicitfast", "implicit"])
@pytest.mark.parametrize("flag", ["", '<flag actuation="disable"/>'])
def test_applied_wrenches_are_not_clipped_as_in_mujoco(integrator, flag):
    """Steps and sensors of the sums of actuator forces, in their ranges and beyond, also with the wrench."""
    text = PUSHED.format(option=f'<option timestep="0.01" integrator="{integrator}">{flag}</option>')
    model = mujoco.MjModel.from_xml_string(text)
    m = zw.with_applied_wrenches(zw.load("pushed.xml", text=text), "hand")
    at, data, rng = (
        step_settings(m, 0.01, m.options.integrator),
        mujoco.MjData(model),
        np.random.default_rng(3),
    )
    for scale in (0.1, 1, 10):
        u, wrench = scale * rng.normal(size=2), 10 * rng.normal(size=6)
        data.qpos, data.qvel, data.ctrl = rng.normal(size=2), 0.3 * rng.normal(size=2), u
        data.xfrc_applied[model.body("hand").id] = wrench
        q, v, control = data.qpos.copy(), data.qvel.copy(), np.concatenate([u, wrench])
        mujoco.mj_step(model, data)
        found = step(at, State(q, v, np.zeros(0)), control, 0.0).state
        np.testing.assert_allclose(np.concatenate(found).astype(float), [*data.qpos, *data.qvel], atol=1e-9)
        sensed = np.concatenate(list(zw.sensors(m, q, v, control).values()))
        np.testing.assert_allclose(sensed, data.sensordata, atol=1e-9)


def test_wrenches_are_no_actuators_that_carry_gravity_compensation():
    """As in MuJoCo without actuators, whose applied wrenches do not make the compensation act."""
    text = COMPENSATED.format(option=option("Euler"), actuators="").replace(
        "<body gr", '<body name="x" gr', 1
    )
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    data.xfrc_applied[model.body("x").id, 2] = 9.0
    mujoco.mj_forward(model, data)
    m = zw.with_applied_wrenches(zw.load("compensated.xml", text=text), "x")
    found = zw.constrained_dynamics(m, data.qpos, data.qvel, control={"x.fz": 9.0}).acceleration
    np.testing.assert_allclose(found, data.qacc, rtol=1e-8)


DRIVEN = """<mujoco>{option}<worldbody><geom type="plane" size="1 1 1"/>
  <body name="arm" pos="0 0 .4"><joint name="a" axis="0 1 0" damping=".1" range="-1 1" limited="true"/>
    <geom type="capsule" size=".05" fromto="0 0 0 .4 0 0"/>
    <body pos=".4 0 0"><joint name="b" axis="0 1 0" actuatorfrcrange="-3 3"/>
      <geom type="capsule" size=".05" fromto="0 0 0 .3 0 -.37"/></body></body>
</worldbody>
<actuator><motor name="m" joint="a" gear="3"/><position name="p" joint="b" kp="40"/>
  <general name="g" joint="b" dyntype="filter" dynprm=".1" gainprm="5"/></actuator></mujoco>"""


def test_the_acceleration_under_a_control_equals_mujoco(tmp_path):
    """In a state with a contact and an active limit, with a motor, a servo and an activation."""
    path = tmp_path / "driven.xml"
    path.write_text(DRIVEN.format(option=option("Euler")))
    model, m = mujoco.MjModel.from_xml_path(str(path)), zw.load(path)
    data, q, v, u, z = mujoco.MjData(model), [1.02, -1.0], [0.3, -0.2], [1.5, -1.2, 0.4], [0.05]
    data.qpos, data.qvel, data.ctrl, data.act = q, v, u, z
    mujoco.mj_forward(model, data)
    assert data.nefc > 1 and data.ncon
    for control in (u, dict(zip(m.inputs, u, strict=True))):
        found = zw.constrained_dynamics(m, q, v, control=control, activation=z).acceleration
        np.testing.assert_allclose(found, data.qacc, rtol=1e-6)
    with pytest.raises(ArgumentError, match=r"either tau, .* or control"):
        zw.constrained_dynamics(m, q, v)
    with pytest.raises(ArgumentError, match=r"either tau, .* or control"):
        zw.constrained_dynamics(m, q, v, [0, 0], control=u)
    with pytest.raises(ShapeError, match="activation is missing"):
        zw.constrained_dynamics(m, q, v, control={"m": 1.0})
    with pytest.raises(UnknownNameError, match="'motor'"):
        zw.constrained_dynamics(m, q, v, control={"motor": 1.0}, activation=z)


def test_reactions_under_gravity_compensation_by_actuators_are_refused():
    joint = zw.Revolute("hinge", actuator_gravity_compensation=True)
    body = zw.Body("arm", joint=joint, mass=1, com=(0.2, 0, 0), inertia=(0.1, 0.1, 0.1))
    mechanism = zw.Mechanism("arm", (body,), forces=(zw.GravityCompensation("arm"),))
    with pytest.raises(DescriptionError, match="joint 'hinge' carry gravity compensation"):
        zw.joint_reactions(mechanism, [0.0], [0.0], [0.0])


# pairs: the floor and all parts but the trunk, the wall and the tail, the foot and the stone
ADHESION = """<mujoco>{option}<worldbody>
  <geom type="plane" size="3 3 .1" contype="0"/>
  <geom name="wall" type="box" size=".05 1 1" pos="-.44 0 0" contype="0" conaffinity="4"/>
  <body name="lizard" pos="0 0 .15"><freejoint/>
    <geom name="trunk" type="capsule" size=".03" fromto="-.1 0 0 .1 0 0" contype="0" conaffinity="0"/>
    <body name="foot" pos=".1 0 0"><joint name="ankle" axis="0 1 0" damping=".1" stiffness="2"/>
      <geom size=".03" pos="0 .05 -.1" gap=".03" condim="{condim}" contype="3" conaffinity="0"/>
      <geom type="box" size=".02 .02 .02" pos="0 -.05 -.1" gap=".02" conaffinity="0"/></body>
    <body name="tail" pos="-.1 0 0"><joint name="hip" axis="0 0 1" damping=".1"/>
      <geom type="capsule" size=".02" fromto="0 0 0 -.25 0 0" margin=".04" contype="5"
        conaffinity="0"/></body>
  </body>
  <body name="stone" pos=".1 .1 .04"><freejoint/><geom size=".04" gap=".01" conaffinity="2"/></body>
</worldbody>
<actuator><adhesion name="stick" body="foot" ctrlrange="0 1" gain="{gain}"/>
  <general name="cling" body="tail" gainprm="3" biastype="affine" biasprm=".5 0 -.3" dyntype="filter"
    dynprm=".05" forcerange="-1 2"/><motor joint="hip"/></actuator>
<sensor><actuatorvel actuator="cling"/><actuatorfrc actuator="stick"/></sensor></mujoco>"""


@pytest.mark.parametrize(
    ("integrator", "more", "condim"), [("implicitfast", 'cone="elliptic"', 4), ("Euler", "", 1)]
)
def test_adhesion_equals_mujoco(integrator, more, condim, tmp_path):
    text = ADHESION.format(option=option(integrator, more), condim=condim, gain=8)
    assert_runs_equal(text, tmp_path, tolerance=1e-7, spin=0.1)


FOOT = """<mujoco>{option}<worldbody><geom type="plane" size="3 3 .1"/>
  <body name="foot" pos="0 0 .12"><joint axis="1 0 0" type="slide"/><joint axis="0 1 0" damping=".1"/>
    <geom size=".03" pos=".05 0 -.08" gap=".03" condim="1"/><geom size=".03" pos="-.05 .02 -.08" gap=".03"
      condim="1"/></body></worldbody>
<actuator><general body="foot" gainprm="3" biastype="affine" biasprm=".5 0 -.3"/></actuator></mujoco>"""


def test_adhesion_in_the_stages_of_rk4_equals_mujoco(tmp_path):
    assert_runs_equal(FOOT.format(option=option("RK4")), tmp_path, tolerance=1e-7)


@pytest.mark.parametrize("integrator", ["euler", "rk4"])
def test_the_derivatives_of_adhesion_are_the_limits_of_differences(integrator):
    assert_derivatives_are_differences(FOOT.format(option=option("Euler")), integrator)


PID = """<mujoco>{option}
<extension><plugin plugin="mujoco.pid">
  <instance name="whole"><config key="kp" value="20"/><config key="ki" value="30"/>
    <config key="kd" value=".5"/><config key="imax" value=".4"/><config key="slewmax" value="2"/></instance>
  <instance name="plain"><config key="kp" value="4"/><config key="kd" value=".4"/></instance>
</plugin></extension>
<worldbody>
  <body><joint name="a" axis="0 1 0"/><geom type="capsule" size=".05" fromto="0 0 0 .3 .1 0"/>
    <body pos=".3 0 0"><joint name="b" axis="0 0 1" actuatorfrcrange="-1 1"/>
      <geom type="capsule" size=".05" fromto="0 0 0 .3 0 0"/></body></body>
</worldbody>
<tendon><fixed name="t"><joint joint="a" coef="1"/><joint joint="b" coef="-.5"/></fixed></tendon>
<actuator>
  <plugin name="p" joint="a" plugin="mujoco.pid" instance="whole" actdim="2" ctrllimited="true"
    ctrlrange="-.8 .8"/>
  <plugin name="q" joint="b" plugin="mujoco.pid" instance="plain"/>
  <plugin name="r" tendon="t" plugin="mujoco.pid" actdim="2" dyntype="filter" dynprm=".05" gear="2"
    forcelimited="true" forcerange="-2 2" actearly="{early}"><config key="kp" value="3"/>
    <config key="kd" value=".2"/><config key="ki" value="1"/></plugin>
  <plugin name="s" joint="b" plugin="mujoco.pid" actdim="2" dyntype="{kind}" {parameters}>
    <config key="kp" value="5"/><config key="slewmax" value="1.5"/></plugin>
  <velocity joint="b" kv="1"/>
</actuator>
<sensor><actuatorfrc actuator="p"/></sensor></mujoco>"""


@pytest.mark.parametrize(
    ("integrator", "early", "kind", "parameters"),
    [
        ("Euler", "false", "integrator", ""),
        ("implicitfast", "true", "filterexact", 'dynprm=".04"'),
        ("RK4", "false", "filter", 'dynprm=".04"'),
    ],
)
def test_pid_controllers_equal_those_of_mujoco(integrator, early, kind, parameters, tmp_path):
    text = PID.format(option=option(integrator), early=early, kind=kind, parameters=parameters)
    mechanism = assert_runs_equal(text, tmp_path)
    actuators = {f.name: f for f in mechanism.forces if isinstance(f, zw.Actuator)}
    assert actuators["p"].states == ("p integral", "p set point") and actuators["q"].states == ()
    assert actuators["s"].states == ("s set point", "s")


PULLED = """<mujoco>{option}<extension><plugin plugin="mujoco.pid"/></extension><worldbody>
  <body><joint name="a" axis="0 1 0"/><geom size=".1" pos="0 0 .3"/></body>
  <body pos="1 0 0"><joint name="b" axis="0 1 0"/><geom size=".1" pos="0 0 .3"/></body></worldbody>
<tendon>
  <fixed name="t" actuatorfrclimited="true" actuatorfrcrange="-.5 .5"><joint joint="a" coef="1"/></fixed>
  <fixed name="u" actuatorfrclimited="true" actuatorfrcrange="-9 9"><joint joint="b" coef="1"/></fixed>
</tendon>
<actuator>
  <plugin name="p" tendon="t" plugin="mujoco.pid"><config key="kp" value="10"/></plugin>{more}
</actuator>
</mujoco>"""


@pytest.mark.parametrize(("more", "limits"), [("", None), ('<motor name="m" tendon="u"/>', (-0.5, 0.5))])
def test_the_force_range_of_a_tendon_with_a_pid_controller_is_that_of_mujoco(more, limits, tmp_path):
    """MuJoCo clamps to it only beside another actuator of a tendon with such a range."""
    mechanism = assert_runs_equal(PULLED.format(option=option("Euler"), more=more), tmp_path)
    pulled, other = mechanism.tendons
    assert pulled.actuator_range == limits
    if limits is None:
        limited = mechanism.replace(tendons=(replace(pulled, actuator_range=(-0.5, 0.5)), other))
        with pytest.raises(FormatError, match="MuJoCo does not clamp plugins"):
            zw.write_mjcf(limited, tmp_path / "limited.xml")


@pytest.mark.parametrize("integrator", ["euler", "implicitfast", "rk4"])
def test_the_derivatives_of_pid_controllers_are_the_limits_of_differences(integrator):
    text = PID.format(option=option("Euler"), early="true", kind="filter", parameters='dynprm=".04"')
    assert_derivatives_are_differences(text, integrator)


def test_equations_refuse_adhesion_and_states_of_controllers():
    arm = zw.Body("arm", zw.Revolute("elbow"), mass=1, inertia=(1, 1, 1))
    for actuator, words in (
        (zw.Actuator("grip", body="arm"), "'grip' is an adhesion"),
        (
            zw.Actuator("servo", "elbow", pid=zw.Pid(1, 2)),
            "'servo' has a PID controller with the states servo",
        ),
    ):
        with pytest.raises(DescriptionError, match=words):
            zw.equations(zw.Mechanism("m", (arm,), forces=(actuator,)))
    plain = zw.Actuator("servo", "elbow", pid=zw.Pid(3, 0, 2))
    found = zw.equations(zw.Mechanism("m", (arm,), forces=(plain,))).right_hand_side
    assert str(found[0]) == "-3*elbow - 2*elbow_dot + 3*servo"  # 3 (u - q) - 2 v


LIMITED_TENDONS = """<mujoco>{option}<worldbody>
  <body><joint name="a" axis="0 1 0"/><geom type="capsule" size=".05" fromto="0 0 0 .3 .1 0"/>
    <site name="s" pos=".1 0 .1"/>
    <body pos=".3 0 0"><joint name="b" axis="0 0 1"/><geom type="capsule" size=".05" fromto="0 0 0 .3 0 0"/>
      <site name="r" pos=".2 0 .1"/></body></body>
</worldbody>
<tendon>
  <fixed name="t" actuatorfrcrange="-.5 .8"><joint joint="a" coef="1"/><joint joint="b" coef="-.5"/></fixed>
  <spatial name="u" actuatorfrcrange="-.05 .1"><site site="s"/><site site="r"/></spatial>
  <fixed name="w" actuatorfrcrange="0 1"><joint joint="b" coef="1"/></fixed>
</tendon>
<actuator>
  <motor tendon="t"/><position tendon="t" kp="5" kv=".3" gear="2" forcerange="-.4 .4"/>
  <general tendon="t" dyntype="filter" dynprm=".05" gainprm="2" biastype="affine" biasprm="0 0 -.2"/>
  <motor tendon="u"/><motor tendon="w"/><velocity tendon="w" kv=".5" forcerange="-.3 .3"/><motor joint="a"/>
</actuator>
<sensor><tendonactuatorfrc tendon="t"/><tendonactuatorfrc tendon="u"/></sensor></mujoco>"""


@pytest.mark.parametrize("integrator", ["Euler", "implicitfast", "RK4"])
def test_the_total_actuator_force_of_a_tendon_is_limited_as_in_mujoco(integrator, tmp_path):
    mechanism = assert_runs_equal(LIMITED_TENDONS.format(option=option(integrator)), tmp_path)
    assert [t.actuator_range for t in mechanism.tendons] == [(-0.5, 0.8), (-0.05, 0.1), (0, 1)]
    assert zw.load(tmp_path / "written.xml").tendons == mechanism.tendons


@pytest.mark.parametrize("integrator", ["euler", "implicitfast", "rk4"])
def test_the_derivatives_of_limited_tendons_are_the_limits_of_differences(integrator):
    assert_derivatives_are_differences(LIMITED_TENDONS.format(option=option("Euler")), integrator)


def test_identification_refuses_a_tendon_with_an_actuator_range():
    link = zw.Body("link", zw.Revolute("a", (0, 1, 0)), mass=1, com=(0, 0, -0.3))
    tendon = zw.Tendon("t", joints={"a": 1}, actuator_range=(-1, 1))
    mechanism = zw.Mechanism("arm", (link,), tendons=(tendon,), forces=(zw.Actuator("m", tendon="t"),))
    with pytest.raises(DescriptionError, match="actuator 'm' has a tendon with an actuator_range"):
        zw.identify.regressor(mechanism, [0.1], [0.2], [0.3], control=[0.4], kinds=["motor"])


@pytest.mark.parametrize("ends", [(0.1, 1), (-1, -0.1), (1, -1)])
def test_the_actuator_range_of_a_tendon_contains_zero(ends):
    with pytest.raises(DescriptionError, match="actuator_range of tendon 't'"):
        zw.Tendon("t", joints={"a": 1}, actuator_range=ends)


LENGTH_RANGES = """<mujoco><compiler>
  <lengthrange accel=".1" timeconst=".6" {options}/></compiler>
  <worldbody><body><joint name="j" type="slide" axis="1 0 0" range="-1 1"/><geom size=".1"/></body>
  </worldbody>
  <actuator><muscle joint="j" force="100"/><muscle joint="j" lengthrange="0 1"/></actuator></mujoco>"""


@pytest.mark.parametrize(
    "options", ['inttotal="60" interval="3"', 'inttotal="60" timestep="5e-4" interval="1"']
)
def test_length_ranges_are_found_with_the_options_of_the_file(options):
    text = LENGTH_RANGES.format(options=options)
    expected = mujoco.MjModel.from_xml_string(text).actuator_lengthrange
    assert expected[0] == pytest.approx([-1, 1], abs=1e-3)
    found = [force.muscle.length_range for force in zw.load("arm.xml", text=text).forces]
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("options", ['inttotal="inf"', 'inttotal="1e6"', 'timestep="1e-9"'])
def test_length_ranges_that_take_hours_are_refused(options):
    text = LENGTH_RANGES.format(options=options)
    with pytest.raises(
        LoadError, match=r"arm.xml, line 2.*<lengthrange>: the length ranges .*2 x 1 x inttotal"
    ):
        zw.load("arm.xml", text=text)
    no_muscle = text.replace('<muscle joint="j" force="100"/>', "")
    assert zw.load("arm.xml", text=no_muscle).forces[0].muscle.length_range == (0, 1)
