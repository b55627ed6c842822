"""The noslip solver gives MuJoCo's accelerations and forces, on floats and compiled."""

import dataclasses

import mujoco
import numpy as np
import pytest

import zwang as zw
from zwang.errors import SimulationError
from zwang.io.mjcf.read.read_mjcf import read_mjcf

SCENE = """<mujoco><option cone="{cone}" noslip_iterations="{sweeps}" noslip_tolerance="{tolerance}">
  <flag island="{island}"/></option>
<default><geom condim="{condim}" friction=".7 .02 .01"/></default><worldbody>
<geom type="plane" size="3 3 .1" euler="12 8 0"/>
<body pos="0 0 .15"><freejoint/><geom type="box" size=".1 .12 .1"/></body>
<body pos="0.02 0 .37"><freejoint/><geom type="box" size=".1 .12 .1"/></body>
<body pos="1 0 .1"><freejoint/><geom type="capsule" size=".1 .2" euler="90 0 0"/>
  <body pos=".2 0 0"><joint axis="0 1 0" frictionloss=".3"/><geom size=".12"/></body></body>
<body pos="-1 0 .1"><joint axis="1 0 0" frictionloss=".5" damping=".1"/>
  <joint type="slide" axis="0 0 1" frictionloss="3"/>
  <geom type="sphere" size=".17" condim="{last}" priority="1"/></body>
</worldbody></mujoco>"""


def scene(cone="pyramidal", condim=3, island="enable", sweeps=7, tolerance=1e-6, last=None):
    """The scene; last: the condim of the last contact, as that of all others by default."""
    text = SCENE.format(
        cone=cone, condim=condim, island=island, sweeps=sweeps, tolerance=tolerance, last=last or condim
    )
    model = mujoco.MjModel.from_xml_string(text)
    model.opt.tolerance, model.opt.iterations, model.opt.ls_tolerance = 1e-15, 300, 1e-10
    return text, model


def after_steps(model, steps):
    """MuJoCo's data some steps after the start, with the solution of its state."""
    data = mujoco.MjData(model)
    data.qvel[:] = 0.1 * np.random.default_rng(1).normal(size=model.nv)
    for _ in range(steps):
        mujoco.mj_step(model, data)
    for _ in range(4):
        mujoco.mj_forward(model, data)
        data.qacc_warmstart[:] = data.qacc
    return data


@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
@pytest.mark.parametrize("condim", [3, 4, 6])
@pytest.mark.parametrize("island", ["enable", "disable"])
def test_friction_forces_are_those_of_mujoco(cone, condim, island):
    text, model = scene(cone, condim, island)
    m = read_mjcf("scene.xml", text=text)
    data = after_steps(model, 60)
    found = zw.constrained_dynamics(m, data.qpos, data.qvel, np.zeros(model.nv))
    assert data.nefc == len(found.force) > 6
    assert "contacts of two boxes in another order" in " ".join(note.what for note in m.report.notes)
    np.testing.assert_allclose(found.acceleration, data.qacc, atol=1e-10)
    np.testing.assert_allclose(found.force, data.efc_force, atol=1e-10)
    without = m.replace(options=zw.Options(**{**vars(m.options), "noslip_iterations": 0}))
    softer = zw.constrained_dynamics(without, data.qpos, data.qvel, np.zeros(model.nv))
    assert np.abs(softer.acceleration - data.qacc).max() > 1e-4  # the solver has an effect here


@pytest.mark.parametrize("island", ["enable", "disable"])
def test_bodies_of_different_masses_take_the_sweeps_of_mujoco(island):
    """The tolerance is relative to the mass matrix of an island in its state, not at home."""
    box = """<body pos="{x} 0 .049"><freejoint/><geom type="box" size=".1 .07 .05" condim="4"
    friction=".6 .01 .001" density="{density}"/></body>"""
    text = f"""<mujoco><option noslip_iterations="50" gravity="3 1 -9.81"><flag island="{island}"/></option>
    <worldbody><geom type="plane" size="5 5 1"/>{box.format(x=0, density=200)}{box.format(x=1, density=20000)}
    <body pos="0 3 .1"><joint axis="0 0 1"/><geom type="capsule" size=".02 .1"/><body pos=".5 0 0">
    <joint axis="0 0 1"/><geom type="box" pos=".25 0 0" size=".25 .1 .105"/></body></body>
    </worldbody></mujoco>"""
    model = mujoco.MjModel.from_xml_string(text)
    model.opt.tolerance, model.opt.iterations, model.opt.ls_tolerance = 1e-15, 300, 1e-12
    m, data = read_mjcf("boxes.xml", text=text), mujoco.MjData(model)
    data.qvel[:] = [0.01, 0.02, 0, 0.1, 0.2, 0.05] * 2 + [0.001, -0.1]
    data.qpos[-1] = 2.8
    stopped = set()
    for tolerance in np.geomspace(1e-12, 1, 13):
        model.opt.noslip_tolerance = tolerance
        mujoco.mj_forward(model, data)
        options = dataclasses.replace(m.options, noslip_tolerance=tolerance)
        found = zw.constrained_dynamics(m.replace(options=options), data.qpos, data.qvel, np.zeros(model.nv))
        np.testing.assert_allclose(found.acceleration, data.qacc, atol=1e-9)
        stopped.add(data.qacc.tobytes())
    assert len(stopped) > 5


@pytest.mark.parametrize(("cone", "condim"), [("pyramidal", 3), ("elliptic", 6)])
def test_compiled_steps_are_those_of_mujoco(cone, condim):
    text, model = scene(cone, condim, last=3)
    data = after_steps(model, 60)
    fast = zw.compile(read_mjcf("scene.xml", text=text), threads=1)
    q, v = fast.step(data.qpos.copy(), data.qvel.copy(), np.zeros(model.nv))[:2]
    mujoco.mj_step(model, data)
    np.testing.assert_allclose(v, data.qvel, atol=1e-10)
    np.testing.assert_allclose(q, data.qpos, atol=1e-10)


def test_many_sweeps_hold_a_box_on_a_slope_and_softness_alone_lets_it_creep():
    box = """<mujoco><option cone="elliptic" noslip_iterations="{}" noslip_tolerance="0"/><worldbody>
    <geom type="plane" size="3 3 .1" euler="10 0 0"/>
    <body pos="0 0 .1" euler="10 0 0"><freejoint/><geom type="box" size=".1 .1 .1" friction="1"/></body>
    </worldbody></mujoco>"""
    slips = []
    for sweeps in (0, 100):
        m = read_mjcf("box.xml", text=box.format(sweeps))
        run = zw.simulate(m, duration=1.0)
        slips.append(float(np.linalg.norm(run.v.values[..., -1, :3])))
    assert slips[0] > 1e-4 and slips[1] < 1e-2 * slips[0]


def test_sensors_have_the_forces_of_the_noslip_solver():
    text = """<mujoco><option noslip_iterations="2"/><worldbody>
    <geom type="plane" size="3 3 .1" euler="9 7 0"/>
    <body name="b" pos="0 0 .09"><freejoint/><geom type="box" size=".1 .1 .1"/><site name="s" size=".3"/>
    <body pos=".2 0 0"><joint axis="0 1 0"/><geom size=".1"/><site name="t"/></body></body></worldbody>
    <equality><connect body1="b" anchor="0 0 .1"/></equality>
    <sensor><touch site="s"/><force site="t"/><torque site="t"/><accelerometer site="s"/>
    <force site="s"/></sensor>
    </mujoco>"""
    model = mujoco.MjModel.from_xml_string(text)
    model.opt.tolerance, model.opt.iterations = 1e-15, 300
    data = after_steps(model, 5)
    m = read_mjcf("sensors.xml", text=text)
    found = zw.sensors(m, data.qpos, data.qvel, np.zeros(model.nv))
    assert data.ncon
    np.testing.assert_allclose(np.concatenate(list(found.values())), data.sensordata, rtol=1e-9, atol=1e-9)


def test_hard_constraints_are_refused():
    text, _ = scene()
    m = read_mjcf("scene.xml", text=text)
    ground = m.geometry[0]
    hard = zw.Surface(**{**vars(ground.surface), "hard": True})
    hard_ground = type(ground)(**{**vars(ground), "surface": hard})
    m = m.replace(geometry=(hard_ground,))
    q = np.array(m.home)
    q[2] = 0.1
    with pytest.raises(SimulationError, match="noslip"):
        zw.constrained_dynamics(m, q, np.zeros(m.nv), np.zeros(m.nv))
