"""Tendons with armature and with polynomial springs and dampers, against MuJoCo, and energy conservation."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

import zwang as zw
from zwang.dynamics.aba import aba
from zwang.dynamics.crba import mass_matrix_from_jacobians
from zwang.dynamics.energy import zwang_of
from zwang.errors import DescriptionError, UnsupportedError
from zwang.io.mjcf.read.read_mjcf import read_mjcf
from zwang.kinematics.kinematics import Kinematics
from zwang.kinematics.tendon_length import tendon_length

XML = """<mujoco><option gravity="1 2 -9" integrator="{integrator}" timestep="0.002"/>
<worldbody><site name="w" pos="1 1 1"/>
<body name="base"><joint name="a" axis="0 1 0" damping=".3"/><geom size=".1"/><site name="s0" pos=".1 .1 .1"/>
  <body pos=".3 0 0"><joint name="b" axis="0 1 0"/><joint name="c" type="slide" axis="1 1 0"/>
    <geom size=".1"/><site name="s1" pos=".2 0 0.1"/>
    <body name="end" pos="0 .3 0"><joint name="d" type="ball"/><geom size=".1 .2 .1" type="box"/>
      <site name="s2" pos="0 .2 0.1"/></body></body></body></worldbody>
<tendon>
  <spatial name="t" armature="3" stiffness="4 3 50" springlength=".2 .4" damping="1 .3 .2">
    <site site="w"/><site site="s0"/><site site="s2"/><pulley divisor="2"/><site site="s1"/><site site="s2"/>
  </spatial>
  <fixed name="f" armature=".7" stiffness="0 2">
    <joint joint="a" coef="1.5"/><joint joint="c" coef="-2"/></fixed>
</tendon>
<actuator><general tendon="t" gear="2" armature=".3" damping=".4 .1"/></actuator>
<sensor><force site="s1"/><torque site="s0"/><e_kinetic/><e_potential/></sensor></mujoco>"""


def random_state(model: mujoco.MjModel, rng: np.random.Generator) -> mujoco.MjData:
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:], data.ctrl[:] = rng.normal(size=model.nq), rng.normal(size=model.nv), 1.5
    mujoco.mj_normalizeQuat(model, data.qpos)
    mujoco.mj_forward(model, data)
    return data


def test_dynamics_equal_mujoco():
    xml, rng = XML.format(integrator="Euler"), np.random.default_rng(1)
    m, model = read_mjcf("tendons.xml", text=xml), mujoco.MjModel.from_xml_string(xml)
    for _ in range(4):
        data = random_state(model, rng)
        q, v, a, control = data.qpos, data.qvel, data.qacc, data.ctrl
        M = np.zeros((model.nv, model.nv))
        mujoco.mj_fullM(model, data, M)
        np.testing.assert_allclose(zw.mass_matrix(m, q), M, atol=1e-12)
        np.testing.assert_allclose(np.array(mass_matrix_from_jacobians(m.tree, q), float), M, atol=1e-12)
        np.testing.assert_allclose(zw.bias_forces(m, q, v), data.qfrc_bias, atol=1e-10)
        tau = data.qfrc_actuator
        np.testing.assert_allclose(zw.forward_dynamics(m, q, v, tau), a, atol=1e-9)
        np.testing.assert_allclose(zw.inverse_dynamics(m, q, v, a), tau, atol=1e-9)
        np.testing.assert_allclose(zw.energy(m, q, v)[0], v @ M @ v / 2, rtol=1e-12)
        values = np.concatenate(list(zw.sensors(m, q, v, control, np.zeros(0), 0.0).values()))
        np.testing.assert_allclose(values, data.sensordata, rtol=1e-10, atol=1e-9)


@pytest.mark.parametrize("integrator", ["Euler", "RK4", "implicit", "implicitfast"])
def test_compiled_steps_equal_mujoco(integrator):
    xml = XML.format(integrator=integrator)
    m, model = read_mjcf("tendons.xml", text=xml), mujoco.MjModel.from_xml_string(xml)
    data, fast = random_state(model, np.random.default_rng(2)), zw.compile(m)
    end = fast.rollout(data.qpos.copy(), data.qvel.copy(), data.ctrl.copy(), steps=20)
    mujoco.mj_step(model, data, nstep=20)
    np.testing.assert_allclose(end[0][-1], data.qpos, atol=1e-10)
    np.testing.assert_allclose(end[1][-1], data.qvel, atol=1e-10)


def test_written_tendons_are_read_back(tmp_path):
    m = read_mjcf("tendons.xml", text=XML.format(integrator="Euler"))
    zw.write_mjcf(m, tmp_path / "m.xml")
    again = zw.load(tmp_path / "m.xml")
    for name in ("armature", "stiffness", "damping", "higher_stiffness", "higher_damping"):
        found = [getattr(tendon, name) for tendon in again.tendons]
        assert found == [getattr(tendon, name) for tendon in m.tendons]


def test_gauss_measure_is_least_at_the_true_acceleration():
    m, rng = read_mjcf("tendons.xml", text=XML.format(integrator="Euler")), np.random.default_rng(3)
    q, v = np.array(m.neutral, float), rng.normal(size=m.nv)
    tau = rng.normal(size=m.nv)
    M, h = zw.mass_matrix(m, q), zw.bias_forces(m, q, v)
    a = np.linalg.solve(M, tau - h)
    d = rng.normal(size=m.nv)
    excess = zwang_of(m.tree, q, v, tau, a + d) - zwang_of(m.tree, q, v, tau, a)
    np.testing.assert_allclose(float(excess), d @ M @ d / 2, rtol=1e-9)


def arm(tendon: zw.Tendon) -> zw.Mechanism:
    bodies = [
        zw.Body(name, zw.Revolute(f"q_{name}", axis=(0, 1, 0)), parent=parent, position=(1, 0, 0), mass=1,
                inertia=(1, 1, 1))
        for name, parent in (("a", "world"), ("b", "a"), ("c", "a"))
    ]  # fmt: skip
    return zw.Mechanism("arm", bodies, tendons=[tendon])


def test_what_is_not_supported_is_named(tmp_path):
    with pytest.raises(DescriptionError, match="tendon 't' is 2, and joints on different branches"):
        arm(zw.Tendon("t", path=("b", "c"), armature=2))
    with pytest.raises(DescriptionError, match="tendon 't' is 2; it must be 0 for a tendon with wraps"):
        zw.Tendon("t", path=("a", "b", "c"), wraps=[zw.Wrap(1, 0.1)], armature=2)
    m = arm(zw.Tendon("t", joints=(("q_a", 1), ("q_b", 2)), armature=2))
    with pytest.raises(DescriptionError, match="tendon with armature"):
        zw.equations(m)
    with pytest.raises(DescriptionError, match="tendon 't' has an armature"):
        zw.identify.parameters(m)
    with pytest.raises(DescriptionError, match="tendons with armature"):
        aba(m.tree, np.zeros(3), np.zeros(3), np.zeros(3))
    with pytest.raises(UnsupportedError, match="tendon 't' with armature and joints on different branches"):
        read_mjcf("branches.xml", text=BRANCHES)


BRANCHES = """<mujoco><worldbody><body name="a"><joint/><geom size=".1"/><site name="a" pos=".1 0 0"/></body>
<body name="b"><joint/><geom size=".1"/><site name="b" pos=".2 .1 0"/></body></worldbody>
<tendon><spatial name="t" armature="1"><site site="a"/><site site="b"/></spatial></tendon></mujoco>"""
WRAPS = """<mujoco><option><flag contact="disable"/></option><worldbody>
<site name="w" pos="1 .2 .4"/><site name="out" pos="0 0 .4"/><site name="in" pos=".05 .01 .02"/>
<geom name="s" size=".1" pos=".05 0 0"/>
<body name="a"><joint type="ball"/><geom size=".05" pos=".4 .2 0"/><site name="a" pos=".3 .3 .1"/>
  <site name="ina" pos=".01 0 .02"/><geom name="c" type="cylinder" size=".08 .2"/></body>
<body name="b"><freejoint/><geom size=".05"/><site name="b" pos=".1 -.2 .3"/></body></worldbody>
<tendon>
  <spatial name="t" stiffness="1"><site site="w"/><geom geom="s" sidesite="in"/><site site="b"/></spatial>
  <spatial name="u" stiffness="2"><site site="w"/><geom geom="c" sidesite="ina"/><site site="b"/></spatial>
  <spatial name="v" stiffness="3"><site site="b"/><geom geom="s" sidesite="ina"/><site site="a"/></spatial>
</tendon></mujoco>"""


def test_tendons_through_bodies_equal_mujoco():
    """The side site is inside the wrapping body; of the last tendon it is so in some configurations only."""
    m, model = read_mjcf("wraps.xml", text=WRAPS), mujoco.MjModel.from_xml_string(WRAPS)
    fast = zw.compile(m)
    data, rng, touching = mujoco.MjData(model), np.random.default_rng(5), np.zeros(3, int)
    for _ in range(40):
        data.qpos[:] = rng.normal(size=model.nq)
        data.qpos[4:7] *= 0.3
        mujoco.mj_normalizeQuat(model, data.qpos)
        mujoco.mj_forward(model, data)
        kinematics = Kinematics(m.tree, data.qpos.copy())
        J = np.zeros((3, model.nv))
        for t in range(3):
            start, count = model.ten_J_rowadr[t], model.ten_J_rownnz[t]
            J[t, model.ten_J_colind[start : start + count]] = data.ten_J[start : start + count]
            length, moment = tendon_length(m, m.tendons[t], kinematics)
            np.testing.assert_allclose(float(length), data.ten_length[t], atol=1e-12)
            # MuJoCo's search for the point of contact ends at about 1e-8
            np.testing.assert_allclose(np.array(moment, float), J[t], atol=1e-7)
        a = fast.forward_dynamics(data.qpos.copy(), data.qvel.copy(), np.zeros(m.nv))
        np.testing.assert_allclose(a, data.qacc, atol=1e-4, rtol=1e-6)
        touching += data.ten_wrapnum == 4
    assert (touching > 5).all() and (touching < 40).all()


@pytest.mark.parametrize("direction", ["1 0 0", "0 1 0", "0 0 1", ".6 0 .8", ".3 .7 .2"])
def test_points_in_line_with_the_centre_have_mujocos_plane(direction):
    d = np.array([float(x) for x in direction.split()])
    first, last = (" ".join(map(str, 0.5 * x)) for x in (d, -d))
    xml = f"""<mujoco><option gravity="0 0 0"/><worldbody><geom name="s" size=".1"/>
    <site name="a" pos="{first}"/>
    <body><freejoint/><geom size=".01" pos="{last}"/><site name="b" pos="{last}"/></body></worldbody>
    <tendon><spatial><site site="a"/><geom geom="s"/><site site="b"/></spatial></tendon></mujoco>"""
    m, model = read_mjcf("line.xml", text=xml), mujoco.MjModel.from_xml_string(xml)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    length, moment = tendon_length(m, m.tendons[0], Kinematics(m.tree, data.qpos.copy()))
    np.testing.assert_allclose(float(length), data.ten_length[0], atol=1e-12)
    expected = np.zeros(6)
    expected[model.ten_J_colind[:6]] = data.ten_J[:6]
    np.testing.assert_allclose(np.array(moment, float), expected, atol=1e-9)


STILL = """<mujoco><option noslip_iterations="2"/><worldbody>
  <site name="w" pos="0 0 1"/><site name="x" pos="1 0 1"/>
  <body name="mover" mocap="true" pos="0 1 1"><site name="m"/></body>
  <body pos="0 0 2"><freejoint/><geom name="ball" size=".1"/><site name="o"/><site name="p" pos="0 0 .9"/>
  <body pos="0 .3 0"><joint name="h" frictionloss=".1"/><geom size=".05"/><site name="q" pos="0 .2 0"/></body>
  </body>
  </worldbody>
  <tendon>{}<spatial name="moved"><site site="o"/><site site="q"/><pulley divisor="2"/><site site="o"/>
    <site site="p"/></spatial></tendon>
  <equality>{}</equality>
  <sensor><tendonlimitpos tendon="t"/><tendonlimitfrc tendon="t"/><tendonpos tendon="t"/></sensor></mujoco>"""
PATHS = {
    "one body": '<site site="o"/><site site="p"/>',
    "wraps itself": '<site site="o"/><geom geom="ball"/><site site="p"/>',
    "world": '<site site="w"/><site site="x"/>',
    "mocap": '<site site="w"/><site site="m"/>',
}


@pytest.mark.parametrize("path", PATHS.values(), ids=PATHS)
@pytest.mark.parametrize(
    ("attributes", "equality"),
    [
        ('range="0 .05" frictionloss=".2"', ""),
        ('range="0 .05" stiffness="30" damping="3"', ""),
        ('range="0 9"', '<tendon tendon1="t" polycoef=".3 0 0 0 0"/>'),
    ],
    ids=["limit and friction", "spring", "coupling"],
)
def test_a_tendon_whose_length_no_joint_changes_has_no_force(path, attributes, equality):
    text = STILL.format(f'<spatial name="t" limited="true" {attributes}>{path}</spatial>', equality)
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    rng = np.random.default_rng(5)
    mujoco.mj_integratePos(model, data.qpos, rng.normal(size=model.nv), 1.0)
    data.qvel[:] = rng.normal(size=model.nv)
    mujoco.mj_forward(model, data)
    mechanism, zero = zw.load("still.xml", text=text), np.zeros(model.nv)
    found = zw.constrained_dynamics(mechanism, data.qpos, data.qvel, zero)
    np.testing.assert_allclose(found.acceleration, data.qacc, atol=1e-8)
    values = zw.sensors(mechanism, data.qpos, data.qvel, zero)
    np.testing.assert_allclose(np.ravel([*values.values()]), data.sensordata, atol=1e-10)
    worlds = zw.Worlds(mechanism, 9)
    worlds.reset(q=data.qpos.copy(), v=data.qvel.copy())
    worlds.step(substeps=3)
    for _ in range(3):
        mujoco.mj_step(model, data)
    np.testing.assert_allclose(worlds.q[8], data.qpos, atol=1e-9)


@pytest.mark.parametrize(
    "attributes",
    [
        'limited="true" range="0 .05"',
        'frictionloss=".5"',
        'stiffness="20" springlength=".1" armature=".5"',
    ],
    ids=["limit", "friction", "spring and armature"],
)
def test_a_tendon_without_length_at_home_has_a_direction(attributes):
    """MuJoCo's direction of a segment without length is (1, 0, 0), so that the inverse weight is not 0."""
    text = f"""<mujoco><option tolerance="1e-15"/><worldbody><site name="w"/><body><joint type="slide"/>
      <joint type="slide" axis="1 0 1"/><geom size=".1" mass="1" contype="0" conaffinity="0"/>
      <site name="s"/></body></worldbody>
      <tendon><spatial {attributes}><site site="w"/><site site="s"/></spatial></tendon></mujoco>"""
    model, m = mujoco.MjModel.from_xml_string(text), read_mjcf("point.xml", text=text)
    data = mujoco.MjData(model)
    for q in ((0, 0), (0.06, 0.01)):
        data.qpos[:], data.qvel[:] = q, (0.3, 0.2)
        mujoco.mj_forward(model, data)
        found = zw.constrained_dynamics(m, data.qpos, data.qvel, [0, 0])
        assert found.acceleration == pytest.approx(data.qacc, abs=1e-9)
        assert np.array(found.rows.R) == pytest.approx(data.efc_R, rel=1e-9)
    mujoco.mj_resetData(model, data)
    q = zw.compile(m).rollout(data.qpos, data.qvel, np.zeros(2), steps=100)[0]
    for _ in range(100):
        mujoco.mj_step(model, data)
    assert q[-1] == pytest.approx(data.qpos, abs=1e-9)
