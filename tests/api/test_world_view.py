"""Quantities of observations: those of the last stage of a step against MuJoCo, and wrong observations."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

import zwang as zw
from zwang.errors import ArgumentError, SimulationError, UnknownNameError
from zwang.io.mjcf.read.read_mjcf import read_mjcf
from zwang.scalar import cond, less

XML = """<mujoco><option timestep="0.004" integrator="{}" tolerance="1e-14" iterations="300"/><worldbody>
<geom type="plane" size="1 1 1"/>
<body name="leg" pos="0 0 0.4"><joint name="z" type="slide" axis="0 0 1"/><joint name="hip" axis="0 1 0"/>
  <geom type="capsule" size=".05" fromto="0 0 0 .2 0 -.2"/>
  <body name="foot" pos=".2 0 -.2"><joint name="knee" axis="0 1 0" damping=".1"/>
    <geom type="capsule" size=".05" fromto="0 0 0 -.2 0 -.1"/><site name="sole" pos="-.2 0 -.1"/>
</body></body></worldbody>
<tendon><fixed name="t"><joint joint="hip" coef="2"/><joint joint="knee" coef="-1"/></fixed></tendon>
<actuator><motor name="m" joint="knee" gear="3"/></actuator>
<sensor><accelerometer name="acc" site="sole"/><framepos name="pos" objtype="site" objname="sole"/></sensor>
</mujoco>"""


def observe(s):
    last = s.last_stage
    return {
        "sole": last.pose("sole").p,
        "before": s.before.last_stage.pose("sole").p,
        "qfrc_constraint": last.constraint_force,
        "qfrc_actuator": last.actuator_force,
        "cfrc_ext": np.zeros((3, 6)) if s.is_initial else last.external_wrenches,
        "cvel": last.body_quantities.cvel,
        "tendon": [*last.tendon("t")],
        "force": last.contact_force("foot"),
        "present": s.sensor("pos"),
        "acc": s.sensor("acc"),
        "a": s.acceleration,
    }


@pytest.mark.parametrize("integrator", ["Euler", "RK4"])
def test_the_last_stage_is_what_mujocos_step_leaves_in_its_data(integrator):
    text = XML.format(integrator)
    worlds, model = zw.Worlds(read_mjcf("leg.xml", text=text), 2, observe=observe), None
    model = mujoco.MjModel.from_xml_string(text)
    data, contacts, previous = mujoco.MjData(model), 0, None
    mujoco.mj_forward(model, data)
    np.testing.assert_allclose(worlds.observation["sole"][1], data.site_xpos[0], atol=1e-14)
    for u in np.random.default_rng(3).uniform(-1, 1, 60):
        data.ctrl[:] = u
        mujoco.mj_step(model, data, nstep=3)
        mujoco.mj_rnePostConstraint(model, data)
        worlds.step([u], substeps=3)
        found = {name: x[1] for name, x in worlds.observation.items()}
        for name in ("qfrc_constraint", "qfrc_actuator", "cfrc_ext", "cvel"):
            np.testing.assert_allclose(found[name], getattr(data, name), atol=1e-6, rtol=1e-6, err_msg=name)
        np.testing.assert_allclose(found["sole"], data.site_xpos[0], atol=1e-9)
        np.testing.assert_allclose(found["tendon"], [data.ten_length[0], data.ten_velocity[0]], atol=1e-8)
        np.testing.assert_allclose(found["force"], data.cfrc_ext[2, 3:], atol=1e-6)
        if previous is not None:
            np.testing.assert_allclose(found["before"], previous, atol=1e-9)
        previous, contacts = data.site_xpos[0].copy(), contacts + data.ncon
        other = mujoco.MjData(model)
        other.qpos[:], other.qvel[:], other.ctrl[:] = data.qpos, data.qvel, data.ctrl
        mujoco.mj_forward(model, other)
        np.testing.assert_allclose(found["present"], other.sensor("pos").data, atol=1e-9)
        np.testing.assert_allclose(found["acc"], other.sensor("acc").data, atol=1e-4, rtol=1e-6)
        np.testing.assert_allclose(found["a"], other.qacc, atol=1e-4, rtol=1e-6)
    assert contacts > 20


def test_the_view_before_a_step_has_the_activation_of_that_time():
    text = """<mujoco><option timestep="0.01"/><worldbody><body><joint name="h" axis="0 1 0"/>
    <geom size=".1" pos="0 0 -.3"/></body></worldbody><actuator><general name="g" joint="h" dyntype="filter"
    dynprm=".05" gainprm="10"/></actuator><sensor><actuatorfrc name="f" actuator="g"/></sensor></mujoco>"""
    mechanism = read_mjcf("filter.xml", text=text)
    worlds = zw.Worlds(
        mechanism, 2, observe=lambda s: {"z": s.before.activation("g"), "f": s.before.sensor("f")}
    )
    worlds.reset(activation=[0.2])
    for u in (1.0, -2.0):
        z = worlds.activation[:, 0].copy()
        worlds.step([u], substeps=5)
        assert np.array_equal(worlds.observation["z"], z)
        np.testing.assert_allclose(worlds.observation["f"], 10 * z, rtol=1e-14)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_view_before_a_step_has_the_time_of_the_beginning_of_the_call(dtype):
    """A body that a constant force accelerates: the mean velocity is that of the mean time, a = 3 m/s^2.

    The symplectic Euler method is ahead by half a step.
    """
    body = zw.Body("b", zw.Prismatic("x", (1, 0, 0)), mass=1)
    mechanism = zw.Mechanism("m", [body], gravity=(3, 0, 0))

    def observed(s):
        passed = s.time - s.before.time
        gained = s.q("x") - s.before.q("x")
        return {"time": [s.before.time, passed], "mean": 0.0 if s.is_initial else gained / passed}

    worlds = zw.Worlds(mechanism, 3, step=0.01, observe=observed, dtype=dtype)
    worlds.step(substeps=7)
    worlds.reset([1])  # world 1 is 0.07 s behind
    for substeps in (5, 1, 20):
        t = worlds.time.copy()
        worlds.step(substeps=substeps)
        np.testing.assert_allclose(worlds.observation["time"][:, 0], t, rtol=1e-6)
        np.testing.assert_allclose(worlds.observation["time"][:, 1], 0.01 * substeps, rtol=1e-4)
        mean = 3 * ((t + worlds.time) / 2 + 0.005)
        np.testing.assert_allclose(worlds.observation["mean"], mean, rtol=1e-4)


@pytest.mark.parametrize("gravity", [-9.81, 9.81])
def test_the_last_stage_of_the_call_before_has_the_control_of_its_step(gravity):
    """With contact, and without."""

    def observed(s):
        last = s.before.last_stage
        return {
            "tau": last.actuator_force,
            "a": last.acceleration,
            "f": last.constraint_force,
            "u": last.control(),
        }

    text = XML.format("Euler").replace("<option", f'<option gravity="0 0 {gravity}"')
    worlds, previous = zw.Worlds(read_mjcf("leg.xml", text=text), 2, observe=observed), None
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    for u in np.random.default_rng(4).uniform(-1, 1, 40):
        data.ctrl[:] = u
        mujoco.mj_step(model, data)
        worlds.step([u])
        if previous is not None:
            for name, x in previous.items():
                np.testing.assert_allclose(worlds.observation[name][1], x, atol=1e-6, rtol=1e-6, err_msg=name)
        previous = {
            "tau": data.qfrc_actuator.copy(),
            "a": data.qacc.copy(),
            "f": data.qfrc_constraint.copy(),
            "u": [u],
        }


def test_forces_of_the_stage_before_a_reset_are_not_a_number():
    mechanism = read_mjcf("leg.xml", text=XML.format("Euler"))
    worlds = zw.Worlds(mechanism, 2, observe=lambda s: {"f": s.before.last_stage.constraint_force})
    worlds.step()
    assert np.isnan(worlds.observation["f"]).all()
    worlds.step()
    assert np.isfinite(worlds.observation["f"]).all()
    worlds.set([1], q={"hip": 0.1})
    worlds.step()
    assert np.isfinite(worlds.observation["f"][0]).all() and np.isnan(worlds.observation["f"][1]).all()


def test_wrong_observations_are_named():
    body = zw.Body("ball", zw.Prismatic("z", axis=(0, 0, 1)), mass=1, geometry=[zw.Sphere(0.1)])
    m = zw.Mechanism("ball", [body])
    for ask, error, named in (
        (lambda s: s.contact_force("bal"), UnknownNameError, "ball"),
        (lambda s: s.sensor("imu"), UnknownNameError, "imu"),
        (lambda s: s.tendon("t"), UnknownNameError, "tendon"),
        (lambda s: [1.0] if s.is_initial else [1.0, 2.0], ArgumentError, "after a step"),
    ):
        with pytest.raises(error, match=named):
            zw.Worlds(m, observe=lambda s, ask=ask: {"x": ask(s)})
    hard = m.replace(geometry=[zw.Plane(surface=zw.Surface(hard=True))])
    zw.Worlds(hard, observe=lambda s: {"x": s.contact_force("ball")}).step()
    with pytest.raises(SimulationError, match="no last stage"):
        zw.Worlds(hard, observe=lambda s: {"x": s.last_stage.contact_force("ball")})


def test_what_a_branch_reads_first_is_read_after_it():
    xml = """<mujoco><worldbody><site name="w" pos="0 0 1"/><body name="bob"><joint name="a" axis="0 1 0"/>
      <geom size=".1"/><site name="s" pos=".3 0 .2"/></body></worldbody>
      <tendon><spatial name="t"><site site="w"/><site site="s"/></spatial></tendon></mujoco>"""

    def observe(s):
        x = cond(less(0, s.q("a")), lambda: s.pose("s").p[0] + s.tendon("t")[0], lambda: 0.0 * s.q("a"))
        return {"x": x, "p": s.pose("s").p, "length": s.tendon("t")[0], "v": s.velocity("s")}

    worlds = zw.Worlds(read_mjcf("bob.xml", text=xml), 2, observe=observe)
    worlds.reset(q=[[0.4], [-0.4]])
    model = mujoco.MjModel.from_xml_string(xml)
    data = mujoco.MjData(model)
    for k, q in enumerate((0.4, -0.4)):
        data.qpos[0] = q
        mujoco.mj_forward(model, data)
        found = {name: x[k] for name, x in worlds.observation.items()}
        np.testing.assert_allclose(found["p"], data.site_xpos[1], atol=1e-14)
        np.testing.assert_allclose(found["length"], data.ten_length[0], atol=1e-14)
        expected = data.site_xpos[1][0] + data.ten_length[0] if q > 0 else 0
        np.testing.assert_allclose(found["x"], expected, atol=1e-14)


def test_arithmetic_in_place_changes_nothing_that_is_read_later():
    def observe(s, scale):
        arrays = (
            s.q(),
            s.v(),
            s.control(),
            s.acceleration,
            s.constraint_force,
            s.command("goal"),
            s.before.q(),
        )
        if scale:
            for x in (*arrays, s.body_quantities.com, s.external_wrenches, s.actuator_force):
                x *= 0.1
        read = {
            "q": s.q(),
            "v": s.v("knee"),
            "a": s.acceleration,
            "p": s.momentum,
            "goal": s.command("goal"),
        }
        return read | {"before": s.before.q(), "com": s.body_quantities.com, "wrenches": s.external_wrenches}

    found = []
    for scale in (True, False):
        made = {"observe": lambda s, scale=scale: observe(s, scale), "commands": {"goal": [1.0, 2.0]}}
        worlds = zw.Worlds(read_mjcf("leg.xml", text=XML.format("Euler")), 2, **made)
        worlds.step(np.full((2, 1), 0.3), substeps=5)
        found.append(worlds.observation)
    for name, values in found[1].items():
        np.testing.assert_array_equal(found[0][name], values, err_msg=name)
    np.testing.assert_array_equal(found[0]["q"], worlds.q)


def test_an_observation_without_a_constant_value_is_refused():
    """A random number, a counter, and a value of the state that the last call kept."""
    rng, calls, kept = np.random.default_rng(0), [], [0.0]

    def counted(s):
        calls.append(1)
        return s.q("z") + len(calls)

    def filtered(s):
        kept[0] = 0.9 * kept[0] + 0.1 * s.q("z")
        return kept[0]

    m = zw.Mechanism("ball", [zw.Body("ball", zw.Prismatic("z", axis=(0, 0, 1)), mass=1)])
    for ask in (
        lambda s: s.q("z") * rng.normal(),
        lambda s: rng.normal() if s.is_initial else 0.0,
        lambda s: 0.0 if s.is_initial else s.q("z") + np.random.normal(),
        counted,
        filtered,
    ):
        with pytest.raises(ArgumentError, match=r"('noisy'|keeps values) .*commands"):
            zw.Worlds(m, observe=lambda s, ask=ask: {"z": s.q("z"), "noisy": ask(s)})
    seen: dict[str, int] = {}
    for ask in (lambda s: float("nan"), lambda s: seen.setdefault("z", len(seen))):
        zw.Worlds(m, observe=lambda s, ask=ask: {"z": ask(s)}).step()
