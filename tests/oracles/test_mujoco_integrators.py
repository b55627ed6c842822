"""Forces that integrators treat implicitly, against the next states of MuJoCo: damping of all kinds,
saturated servos, early activations and gyroscopic terms.
"""

import mujoco
import numpy as np
import pytest

import zwang as zw
from zwang.integrator.fixed_step import State
from zwang.io.mjcf.read.read_mjcf import read_mjcf
from zwang.kinematics.configuration import integrate_configuration
from zwang.simulation.step import step, step_settings

OPTION = (
    '<option timestep="0.01" integrator="{integrator}" tolerance="1e-15" iterations="300">'
    '<flag eulerdamp="{flag}"/></option>'
)

ARM = """<mujoco>{option}<worldbody>
  <body><joint name="a" axis="0 1 0" damping="2 {higher}"/>
    <geom type="capsule" size=".05" fromto="0 0 0 .3 .1 0"/>
    <body pos=".3 0 0"><joint name="b" type="ball" damping="1 {higher}"/>
      <geom type="box" size=".1 .2 .05" pos=".1 0 .05"/>
      <body pos=".2 0 .1"><joint name="c" type="slide" axis="1 0 1" damping="3" {limit}/>
        <geom size=".06" mass="2" pos="0 .1 0"/></body>
    </body>
    <body pos="-.2 0 0"><joint name="d" axis="1 0 0" frictionloss="{friction}"/>
      <geom type="box" size=".1 .2 .05" mass="3" pos="0 .2 .1"/></body></body>
</worldbody></mujoco>"""

FREE = """<mujoco>{option}<worldbody>
  <body name="top" pos="1 2 0" quat="1 .2 .3 .1"><freejoint/><geom type="box" size=".1 .2 .05" mass="2"/>
    </body>
  <body name="offset" pos="1 0 0"><joint type="free" damping=".7" armature=".2"/>
    <geom type="box" size=".1 .2 .3" pos=".1 .05 -.1" mass="1"/><site name="s"/></body>
  <body name="carrier" pos="-1 0 0"><freejoint/><geom type="box" size=".1 .2 .05"/>
    <body pos=".3 0 0"><joint axis="0 1 0" damping="1"/><geom size=".1"/></body></body>
  <body name="welded" pos="-3 0 0"><freejoint/><geom type="box" size=".1 .2 .05"/>
    <body pos=".3 .1 0"><geom size=".1"/></body></body>
</worldbody>
<contact><exclude body1="top" body2="offset"/></contact>
<actuator><general site="s" gear="1 2 0 .3 .1 0" biastype="affine" biasprm="0 0 -4"/></actuator></mujoco>"""

SERVOS = """<mujoco>{option}<worldbody>
  <body><joint name="a" axis="0 1 0" actuatorfrcrange="-3 3"/>
    <geom type="capsule" size=".05" fromto="0 0 0 .3 .1 0"/>
    <body pos=".3 0 0"><joint name="b" axis="0 0 1" actuatorfrcrange="-1 2"/>
      <geom type="capsule" size=".05" fromto="0 0 0 .3 0 0"/></body></body>
</worldbody>
<tendon><fixed name="t"><joint joint="a" coef="1"/><joint joint="b" coef="-.5"/></fixed></tendon>
<actuator><position joint="a" kp="20" kv="4" gear="2"/><motor joint="a"/><velocity joint="b" kv="9"/>
  <position tendon="t" kp="2" kv="3"/></actuator></mujoco>"""


EARLY = """<mujoco>{option}<worldbody>
  <body><joint name="a" axis="0 1 0"/><geom type="capsule" size=".05" fromto="0 0 0 .3 .1 0"/>
    <body pos=".3 0 0"><joint name="b" axis="0 0 1"/>
      <geom type="capsule" size=".05" fromto="0 0 0 .3 0 0"/></body></body>
</worldbody>
<actuator>
  <general joint="a" dyntype="integrator" gainprm="3" actearly="true" actlimited="true" actrange="-.2 .3"/>
  <general joint="b" dyntype="filter" dynprm=".04" gaintype="affine" gainprm="3 1 .5" biastype="affine"
    biasprm=".1 -1 -.4" actearly="true" ctrllimited="true" ctrlrange="-.5 .5"/>
  <general joint="a" dyntype="filterexact" dynprm=".03" gainprm="2" actearly="true"/>
  <general joint="b" dyntype="filter" dynprm=".04" gainprm="2"/>
  <muscle joint="a" lengthrange=".5 1.5" force="3"/><general joint="b" actearly="true"/>
</actuator></mujoco>"""


def compare_steps(text, states=12, spin=2.0):
    """Assert that one step from random states gives the same state as a step of MuJoCo."""
    mechanism, model = read_mjcf("model.xml", text=text), mujoco.MjModel.from_xml_string(text)
    settings = step_settings(mechanism, model.opt.timestep, mechanism.options.integrator)
    data, rng = mujoco.MjData(model), np.random.default_rng(3)
    for _ in range(states):
        mujoco.mj_resetData(model, data)
        mujoco.mj_integratePos(model, data.qpos, 0.4 * rng.normal(size=model.nv), 1.0)
        data.qvel[:] = spin * rng.normal(size=model.nv)
        data.ctrl[:] = rng.normal(size=model.nu)
        data.act[:] = 0.3 * rng.normal(size=model.na)
        control = data.ctrl if model.nu else np.zeros(model.nv)
        state = State(data.qpos.copy(), data.qvel.copy(), data.act.copy())
        after = step(settings, state, control.copy()).state
        for _ in range(3):
            mujoco.mj_forward(model, data)
            data.qacc_warmstart[:] = data.qacc
        mujoco.mj_step(model, data)
        scale = max(1, np.abs(data.qvel).max())
        np.testing.assert_allclose(np.array(after.v, float), data.qvel, rtol=0, atol=1e-9 * scale)
        np.testing.assert_allclose(np.array(after.q, float), data.qpos, rtol=0, atol=1e-9 * scale)
        np.testing.assert_allclose(np.array(after.z, float), data.act, rtol=0, atol=1e-12)


def option(integrator="Euler", flag="enable"):
    return OPTION.format(integrator=integrator, flag=flag)


@pytest.mark.parametrize("limited_joint", [False, True], ids=["free", "limited"])
@pytest.mark.parametrize("higher", ["", ".5 .2"], ids=["linear", "polynomial"])
@pytest.mark.parametrize("flag", ["enable", "disable"])
def test_joint_damping_under_euler_equals_mujoco(flag, higher, limited_joint):
    limit, friction = ('limited="true" range="-.01 .01"', ".3") if limited_joint else ("", "0")
    compare_steps(ARM.format(option=option(flag=flag), higher=higher, limit=limit, friction=friction))


@pytest.mark.parametrize("limited_joint", [False, True], ids=["free", "limited"])
@pytest.mark.parametrize("integrator", ["implicit", "implicitfast"])
def test_damping_and_bias_forces_under_implicit_integrators_equal_mujoco(integrator, limited_joint):
    limit, friction = ('limited="true" range="-.01 .01"', ".3") if limited_joint else ("", "0")
    compare_steps(ARM.format(option=option(integrator), higher=".5 .2", limit=limit, friction=friction))


@pytest.mark.parametrize("integrator", ["Euler", "implicit", "implicitfast"])
def test_the_gyroscopic_term_of_spinning_free_bodies_equals_mujoco(integrator):
    """Under implicitfast only a free body without children on joints has this term."""
    compare_steps(FREE.format(option=option(integrator)), spin=8.0)


@pytest.mark.parametrize("integrator", ["implicit", "implicitfast"])
def test_actuators_of_a_saturated_joint_do_not_damp(integrator):
    """If the sum of its actuator forces is outside actuatorfrcrange, the actuators on the joint have no
    derivative; an actuator on a tendon keeps its own.
    """
    compare_steps(SERVOS.format(option=option(integrator)), states=25)


@pytest.mark.parametrize("integrator", ["Euler", "implicitfast", "RK4"])
def test_early_activations_act_as_at_the_end_of_the_step(integrator, tmp_path):
    text = EARLY.format(option=option(integrator))
    compare_steps(text, spin=0.5)
    mechanism = read_mjcf("model.xml", text=text)
    assert [force.early for force in mechanism.forces if hasattr(force, "early")] == [True] * 3 + [False] * 3
    zw.write_mjcf(mechanism, tmp_path / "early.xml")
    assert zw.load(tmp_path / "early.xml").forces == mechanism.forces


@pytest.mark.parametrize(
    ("text", "integrator"),
    [(FREE, "implicitfast"), (SERVOS, "implicitfast"), (SERVOS, "implicit"), (ARM, "Euler")],
)
def test_compiled_steps_equal_float(text, integrator):
    text = text.format(option=option(integrator), higher=".5 .2", limit="", friction="0")
    mechanism, rng = read_mjcf("model.xml", text=text), np.random.default_rng(7)
    q = np.array(
        integrate_configuration(mechanism.tree, np.array(mechanism.home), rng.normal(size=mechanism.nv), 0.4),
        float,
    )
    v = 4 * rng.normal(size=mechanism.nv)
    control = rng.normal(size=len(mechanism.inputs) or mechanism.nv)
    name = mechanism.options.integrator
    expected = step(step_settings(mechanism, 0.01, name), State(q, v, np.zeros(0)), control).state
    found = zw.compile(mechanism).step(q, v, control, step=0.01, integrator=name)
    np.testing.assert_allclose(found[0], np.array(expected.q, float), rtol=0, atol=1e-12)
    np.testing.assert_allclose(found[1], np.array(expected.v, float), rtol=0, atol=1e-11)


@pytest.mark.parametrize("integrator", ["implicitfast", "implicit"])
def test_damped_point_springs_are_implicit_as_the_tendons_that_are_written(integrator, tmp_path):
    """A stiff damper between two links of an arm, and one to the world, of which MuJoCo knows the tendons."""
    link = {"mass": 1, "com": (0.3, 0, 0), "inertia": (0.01, 0.02, 0.02)}
    mechanism = zw.Mechanism(
        bodies=[
            zw.Body("a", zw.Revolute("a", axis=(0, 1, 0)), **link),
            zw.Body("b", zw.Ball("b"), "a", position=(0.6, 0, 0), **link),
        ],
        forces=[
            zw.PointSpring(("a", (0.1, 0, 0.1)), ("b", (0.2, 0.1, 0)), 30, 0.4, 200),
            zw.PointSpring(("b", (0.3, 0, 0)), ("world", (0, 0.2, 1)), 5, 0.5, 300),
        ],
    )
    path = tmp_path / "springs.xml"
    zw.write_mjcf(mechanism, path)
    model = mujoco.MjModel.from_xml_path(str(path))
    model.opt.timestep = 0.01
    model.opt.integrator = getattr(mujoco.mjtIntegrator, f"mjINT_{integrator.upper()}")
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = [0.3, *np.array([5, 1, 2, 3]) / 39**0.5], [1, 2, -1, 3]
    start = data.qpos.copy(), data.qvel.copy()
    mujoco.mj_step(model, data)
    found = step(step_settings(mechanism, 0.01, integrator), State(*start, np.zeros(0)), np.zeros(4)).state
    np.testing.assert_allclose(np.array(found.v, float), data.qvel, rtol=1e-9)
    compiled = zw.compile(mechanism).step(*start, np.zeros(4), step=0.01, integrator=integrator)
    np.testing.assert_allclose(compiled[1], data.qvel, rtol=1e-9)
