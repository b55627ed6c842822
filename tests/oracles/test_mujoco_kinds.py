"""Every kind of constraint row against MuJoCo in random states: equality, friction, limits, tendons, and
contacts of all dimensions.
"""

import mujoco
import numpy as np
import pytest

import zwang as zw
from tests.oracles.test_mujoco_constraints import matched
from zwang.io.mjcf.read.read_mjcf import read_mjcf

OPTION = (
    '<option timestep="0.003" cone="{cone}" impratio="{impratio}" iterations="300" tolerance="1e-15" '
    'ls_tolerance="1e-10" jacobian="dense"/>'
)

LOOPS = """
<mujoco>{option}
<worldbody>
  <body name="a" pos="0 0 1"><joint name="ja" axis="0 1 0" damping=".1"/>
    <geom size=".05" mass="1" pos=".2 0 0"/>
    <body name="b" pos=".4 0 0"><joint name="jb" type="ball"/>
      <geom type="box" size=".1 .05 .03" mass=".7" pos=".1 0 .02"/>
      <body name="c" pos=".3 0 .1"><joint name="jc" type="slide" axis="1 0 1" ref=".1"/>
        <joint name="jd" axis="0 0 1"/>
        <geom size=".04" mass=".5" pos="0 .03 0"/></body></body></body>
  <body name="f" pos=".3 .4 1.2"><freejoint/><geom type="box" size=".1 .07 .04" mass="1.3" pos=".01 .02 0"/>
    </body>
</worldbody>
<contact><exclude body1="a" body2="b"/><exclude body1="b" body2="c"/><exclude body1="a" body2="c"/>
  <exclude body1="a" body2="f"/>
<exclude body1="b" body2="f"/><exclude body1="c" body2="f"/></contact>
<tendon><fixed name="t1"><joint joint="ja" coef=".7"/><joint joint="jd" coef="-1.2"/></fixed>
<fixed name="t2"><joint joint="jc" coef="1.5"/></fixed></tendon>
<equality>
  <connect name="k1" body1="c" body2="f" anchor=".02 .01 0" solref=".03 .8"/>
  <weld name="w1" body1="b" body2="f" torquescale=".6" solimp=".7 .9 .02 .4 3"/>
  <weld name="w2" body1="f" relpose=".1 .2 .3 .9 .1 .3 -.2" anchor=".1 0 0"/>
  <joint name="e1" joint1="ja" joint2="jd" polycoef=".1 .5 -.3 .2 .1"/>
  <joint name="e2" joint1="jc" polycoef=".05 0 0 0 0" solref="-300 -20"/>
  <tendon name="e3" tendon1="t1" tendon2="t2" polycoef=".1 .8 .3 0 0"/>
</equality></mujoco>"""

LIMITS = """
<mujoco>{option}
<worldbody>
  <site name="s0" pos="0 0 1.5"/><site name="s1" pos=".3 .1 1.4"/>
  <body name="a" pos="0 0 1">
    <joint name="ja" axis="0 1 0" range="-20 30" limited="true" margin=".2" frictionloss=".4"/>
    <geom size=".05" mass="1" pos=".2 0 0" contype="0"/><site name="s2" pos=".1 0 .05"/>
    <body name="b" pos=".4 0 0">
      <joint name="jb" type="ball" range="0 40" limited="true" frictionloss=".2" solreffriction=".05 1"/>
      <geom type="box" size=".1 .05 .03" mass=".7" pos=".1 0 .02" contype="0"/>
      <body name="c" pos=".3 0 .1">
        <joint name="jc" type="slide" axis="1 0 1" range="-.1 .1" limited="true" solreflimit=".01 .5"
          solimplimit=".5 .99 .05 .2 4"/>
        <geom size=".04" mass=".5" pos="0 .03 0" contype="0"/><site name="s3" pos="0 0 .1"/></body></body>
          </body>
</worldbody>
<tendon><fixed name="t1" range="-.2 .3" limited="true" margin=".1" frictionloss=".3">
  <joint joint="ja" coef=".7"/><joint joint="jc" coef="-1.2"/></fixed>
<spatial name="t2" range=".1 .75" limited="true" frictionloss=".25" solimpfriction=".6 .8 .01 .5 2">
  <site site="s0"/><site site="s2"/><pulley divisor="2"/><site site="s1"/><site site="s3"/></spatial></tendon>
</mujoco>"""

CONTACTS = """
<mujoco>{option}
<worldbody>
  <geom name="floor" type="plane" size="5 5 1" friction=".7 .02 .003"/>
  <body name="a" pos="0 0 .1"><freejoint/>
    <geom name="ga" size=".12" mass="1.7" condim="{condim}" friction=".9 .03 .004" margin=".02"
      solref=".03 .7"/></body>
  <body name="b" pos=".2 0 .12"><freejoint/>
    <geom name="gb" type="capsule" size=".1 .15" euler="90 20 0" mass="2" condim="{condim}"
      solimp=".5 .9 .01 .5 2" solmix="3"/></body>
  <body name="c" pos="-.22 .05 .15"><freejoint/>
    <geom name="gc" size=".13" mass=".6" priority="1" condim="{condim}"/></body>
</worldbody>
<contact><pair geom1="ga" geom2="gb" condim="{condim}" friction=".5 .8 .02 .01 .03" solreffriction=".1 1"
  margin=".03"/></contact>
</mujoco>"""


WRAPS = """
<mujoco>{option}
<worldbody>
  <site name="s0" pos="-.3 .05 1.4"/><site name="side" pos="0 0 1.45"/>
  <geom name="pulley" type="cylinder" size=".08 .2" pos="0 0 1.3" euler="90 0 0" contype="0" conaffinity="0"/>
  <body name="a" pos="0 0 1"><joint name="ja" axis="0 1 0"/>
    <geom size=".05" mass="1" pos=".2 0 0" contype="0"/><site name="s1" pos=".3 .02 .1"/>
    <geom name="ball" type="sphere" size=".06" pos=".35 0 0" contype="0" conaffinity="0"/>
    <body name="b" pos=".4 0 0"><joint name="jb" type="ball"/>
      <geom type="box" size=".1 .05 .03" mass=".7" pos=".1 0 .02" contype="0"/>
      <site name="s2" pos=".1 .02 -.05"/></body></body>
</worldbody>
<tendon>
  <spatial name="over" range="0 .6" limited="true" frictionloss=".4">
    <site site="s0"/><geom geom="pulley" sidesite="side"/><site site="s1"/><geom geom="ball"/>
      <site site="s2"/></spatial>
  <spatial name="other" range=".2 .5" limited="true" margin=".2"><site site="s0"/><geom geom="pulley"/>
    <site site="s2"/></spatial>
</tendon>
<equality><tendon tendon1="other" tendon2="over" polycoef="0 .5 0 0 0"/></equality></mujoco>"""

SITES = """
<mujoco>{option}
<worldbody>
  <site name="w" pos=".3 0 1.1" euler="10 20 30"/>
  <body name="a" pos="0 0 1"><joint name="ja" axis="0 1 0"/>
    <geom size=".05" mass="1" pos=".2 0 0" contype="0"/>
    <site name="sa" pos=".3 .01 .02" euler="0 30 0"/>
    <body name="b" pos=".4 0 0"><joint name="jb" type="ball"/>
      <geom type="box" size=".1 .05 .03" mass=".7" pos=".1 0 .02" contype="0"/>
      <site name="sb" pos=".1 0 0" euler="50 0 10"/></body></body>
  <body name="f" pos=".3 .4 1.2"><freejoint/><geom type="box" size=".1 .07 .04" mass="1.3" contype="0"/>
    <site name="sf" pos="0 .02 0" euler="0 10 40"/></body>
</worldbody>
<equality><connect site1="sb" site2="sf"/><weld site1="sf" site2="w" torquescale=".3"/>
  <weld site1="sa" site2="w"/>
<connect site1="sa" site2="w" active="false"/><joint joint1="ja" active="false"/></equality></mujoco>"""

GAPS = """
<mujoco>{option}
<worldbody>
  <geom name="floor" type="plane" size="5 5 1" margin=".05" gap=".03"/>
  <body pos="0 0 .11"><freejoint/><geom size=".1" mass="1" margin=".1" gap=".04"/></body>
  <body pos=".21 0 .12"><freejoint/><geom type="capsule" size=".1 .1" mass="1" margin=".02" gap="0"/></body>
  <body pos=".05 .22 .1"><freejoint/><geom type="box" size=".1 .1 .1" mass="1" margin=".05" gap=".05"/></body>
</worldbody></mujoco>"""

SWITCHED = """
<mujoco><option timestep="0.02" cone="{cone}" iterations="300" tolerance="1e-15" ls_tolerance="1e-10"
  jacobian="dense"><flag {flag}/></option>{option}
<worldbody>
  <geom name="floor" type="plane" size="5 5 1"/>
  <body pos="0 0 .09"><joint type="slide" axis="0 0 1" range="-.1 .1" limited="true" frictionloss="2"/>
    <joint type="hinge" axis="0 1 0" range="-5 5" limited="true"/>
      <geom type="capsule" size=".1 .1" mass="1" solref=".01 1"/></body>
</worldbody></mujoco>"""


def compare(text, states, spread, **numbers):
    """Assert that rows, forces and accelerations equal those of MuJoCo in random states around home.

    Returns the number of rows of all states.
    """
    text = text.format(
        option=OPTION.format(cone=numbers.pop("cone", "pyramidal"), impratio=numbers.pop("impratio", 1)),
        **numbers,
    )
    mechanism, model = read_mjcf("zoo.xml", text=text), mujoco.MjModel.from_xml_string(text)
    data, rng, count = mujoco.MjData(model), np.random.default_rng(5), 0
    for _ in range(states):
        mujoco.mj_resetData(model, data)
        mujoco.mj_integratePos(model, data.qpos, spread * rng.normal(size=model.nv), 1.0)
        data.qvel[:] = rng.normal(size=model.nv)
        for _ in range(4):  # restart from its own solution until it has converged
            mujoco.mj_forward(model, data)
            data.qacc_warmstart[:] = data.qacc
        found = zw.constrained_dynamics(mechanism, data.qpos, data.qvel, np.zeros(model.nv))
        assert len(found.rows) == data.nefc
        if not data.nefc:
            continue
        state = {"efc_J": data.efc_J.reshape(-1, model.nv), "efc_aref": data.efc_aref, "efc_R": data.efc_R}
        order = matched(found.rows, state)
        for ours, theirs in (
            (found.rows.J, state["efc_J"]),
            (found.rows.aref, data.efc_aref),
            (found.rows.R, data.efc_R),
        ):
            np.testing.assert_allclose(ours[order], theirs, rtol=1e-9, atol=1e-9 * np.abs(theirs).max())
        assert found.kkt_residual < 1e-10
        np.testing.assert_allclose(found.acceleration, data.qacc, atol=1e-6 * np.abs(data.qacc).max())
        np.testing.assert_allclose(
            found.force[order], data.efc_force, atol=1e-6 * np.abs(data.efc_force).max()
        )
        count += data.nefc
    return count


@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
def test_loops_and_couplings(cone):
    assert compare(LOOPS, 6, 0.3, cone=cone) == 6 * (3 + 6 + 6 + 3)


def test_limits_and_dry_friction_of_joints_and_tendons():
    assert compare(LIMITS, 30, 0.5) > 30 * 6


@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
@pytest.mark.parametrize("condim", [1, 3, 4, 6])
@pytest.mark.parametrize("impratio", [1, 7])
def test_contacts_of_every_dimension(cone, condim, impratio):
    assert compare(CONTACTS, 4, 0.05, cone=cone, condim=condim, impratio=impratio) > 8


def test_limits_friction_and_couplings_of_tendons_that_wrap():
    assert compare(WRAPS, 15, 0.6) == 15 * 4


@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
def test_contacts_with_margins_and_gaps(cone):
    assert compare(GAPS, 12, 0.03, cone=cone) > 12 * 10


@pytest.mark.parametrize("flag", ["refsafe", "limit", "frictionloss", "contact", "constraint"])
def test_disabled_features_of_a_file(flag):
    text = (
        SWITCHED.replace("{option}", "").replace("{cone}", "elliptic").replace("{flag}", f'{flag}="disable"')
    )
    assert (compare(text, 6, 0.1) > 0) == (flag != "constraint")


def test_accelerations_with_loops_between_sites_equal_mujoco():
    """The rotational rows of a weld are in the axes of the body here and in those of the site in MuJoCo;
    both span the same constraint.
    """
    text = SITES.format(option=OPTION.format(cone="pyramidal", impratio=1))
    mechanism, model = read_mjcf("sites.xml", text=text), mujoco.MjModel.from_xml_string(text)
    data, rng = mujoco.MjData(model), np.random.default_rng(0)
    for _ in range(5):
        mujoco.mj_resetData(model, data)
        mujoco.mj_integratePos(model, data.qpos, 0.3 * rng.normal(size=model.nv), 1.0)
        data.qvel[:] = rng.normal(size=model.nv)
        for _ in range(4):
            mujoco.mj_forward(model, data)
            data.qacc_warmstart[:] = data.qacc
        found = zw.constrained_dynamics(mechanism, data.qpos, data.qvel, np.zeros(model.nv))
        assert len(found.rows) == data.nefc == 15
        np.testing.assert_allclose(found.acceleration, data.qacc, atol=1e-9 * np.abs(data.qacc).max())


@pytest.mark.parametrize("other", ["0", "-.5", ".5"])
def test_negative_gravity_compensation_equals_mujoco(other):
    """MuJoCo ignores negative gravcomp unless a body has a positive one; the load report says so."""
    slide = '<joint type="slide" axis="0 0 1"/><geom size=".1" mass="1"/>'
    text = (
        f'<mujoco><worldbody><body name="a" gravcomp="-1">{slide}</body>'
        f'<body pos="2 0 0" gravcomp="{other}">{slide}</body></worldbody></mujoco>'
    )
    mechanism, model = read_mjcf("lift.xml", text=text), mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    found = zw.constrained_dynamics(mechanism, data.qpos, data.qvel, np.zeros(2))
    np.testing.assert_allclose(found.acceleration, data.qacc, atol=1e-12)
    noted = [note for note in mechanism.report.notes if "gravcomp -1 of body 'a'" in str(note)]
    assert len(noted) == (0 if float(other) > 0 else 1)
