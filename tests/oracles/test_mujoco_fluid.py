"""Forces of a fluid on bodies, against MuJoCo's models of boxes and ellipsoids, and against closed forms."""

from __future__ import annotations

import re

import mujoco
import numpy as np
import pytest

import zwang as zw
from zwang.dynamics.ellipsoid_drag import ellipsoid_slope, ellipsoid_wrench
from zwang.dynamics.generalised_forces import passive_forces
from zwang.errors import DescriptionError, LoadWarning
from zwang.io.mjcf.read.read_mjcf import read_mjcf

XML = """<mujoco><option timestep="0.002" wind="0.5 -1 2" integrator="{integrator}" {fluid}>{flag}</option>
<worldbody><body name="a" pos="0 0 1"><freejoint/><geom type="box" size=".1 .2 .3" density="300"/>
  <body name="b" pos=".1 .2 .3" euler="20 30 40"><joint name="j" axis="0 1 1" damping=".1"/>
    <geom type="capsule" size=".05" fromto="0 0 0 .3 .2 .1"/>
    <body name="c" pos=".3 .2 .1"><joint type="ball"/><geom type="ellipsoid" size=".1 .05 .15"/>
</body></body></body></worldbody></mujoco>"""

NO_DAMPERS = '<flag damper="disable"/>'
NO_PASSIVE = '<flag damper="disable" spring="disable"/>'


def text(fluid='density="800" viscosity="2"', flag="", integrator="Euler") -> str:
    return XML.format(fluid=fluid, flag=flag, integrator=integrator)


@pytest.mark.parametrize(
    ("fluid", "flag", "drags"),
    [
        ('density="1000"', "", 3),
        ('viscosity="3"', "", 3),
        ('density="800" viscosity="2"', NO_DAMPERS, 3),
        ('density="800" viscosity="2"', NO_PASSIVE, 0),
    ],
)
def test_passive_forces_equal_mujoco(fluid, flag, drags):
    xml = text(fluid, flag)
    m, model = read_mjcf("fluid.xml", text=xml), mujoco.MjModel.from_xml_string(xml)
    assert sum(isinstance(force, zw.FluidDrag) for force in m.forces) == drags
    data, rng = mujoco.MjData(model), np.random.default_rng(1)
    for _ in range(5):
        data.qpos[:3] = rng.normal(size=3)
        for part in (data.qpos[3:7], data.qpos[8:12]):
            part[:] = rng.normal(size=4)
            part /= np.linalg.norm(part)
        data.qvel[:] = rng.normal(size=model.nv)
        mujoco.mj_forward(model, data)
        tau = np.array(passive_forces(m, data.qpos.copy(), data.qvel.copy()), float)
        np.testing.assert_allclose(tau, data.qfrc_passive, atol=1e-10, rtol=1e-12)
        assert drags == 0 or abs(tau).max() > 1


@pytest.mark.parametrize("integrator", ["Euler", "RK4", "implicit", "implicitfast"])
def test_steps_equal_mujoco(integrator):
    """The implicit integrators include the derivative of the drag."""
    xml = text(integrator=integrator)
    worlds, model = zw.Worlds(read_mjcf("fluid.xml", text=xml)), mujoco.MjModel.from_xml_string(xml)
    data = mujoco.MjData(model)
    data.qvel[:] = np.random.default_rng(2).normal(size=model.nv)
    worlds.set(q=data.qpos, v=data.qvel)
    mujoco.mj_step(model, data, nstep=30)
    worlds.step(substeps=30)
    np.testing.assert_allclose(worlds.q[0], data.qpos, atol=1e-11)
    np.testing.assert_allclose(worlds.v[0], data.qvel, atol=1e-11)


ELLIPSOIDS = """<mujoco><option timestep="0.002" wind="0.5 -1 2" integrator="{integrator}" {fluid}/>
<default><geom fluidshape="ellipsoid" density="300"/></default>
<worldbody><body name="a" pos="0 0 1"><freejoint/><geom type="box" size=".1 .2 .3"/>
  <body name="b" pos=".1 .2 .3" euler="20 30 40"><joint name="j" axis="0 1 1" damping=".1"/>
    <geom type="capsule" size=".05" fromto="0 0 0 .3 .2 .1" fluidcoef=".7 .3 1.1 .4 .2"/>
    <body name="c" pos=".3 .2 .1"><joint type="ball"/><geom type="ellipsoid" size=".1 .05 .15"/>
      <geom size=".02" pos="0 0 .2" fluidshape="none"/>
</body></body></body>
<body name="d" pos="2 0 0"><freejoint/><geom type="cylinder" size=".1 .02"/></body>
<body name="e" pos="4 0 0"><freejoint/><geom type="box" size=".1 .02 .03" fluidshape="none"/></body>
</worldbody></mujoco>"""


@pytest.mark.parametrize("fluid", ['density="1000"', 'viscosity="3"', 'density="800" viscosity="2"'])
def test_forces_on_ellipsoids_equal_mujoco(fluid):
    xml = ELLIPSOIDS.format(fluid=fluid, integrator="Euler")
    m, model = read_mjcf("fluid.xml", text=xml), mujoco.MjModel.from_xml_string(xml)
    kinds = [type(force).__name__ for force in m.forces if not isinstance(force, zw.Damper)]
    assert kinds == [*["EllipsoidDrag"] * 4, "FluidDrag"]
    data, rng = mujoco.MjData(model), np.random.default_rng(1)
    for _ in range(5):
        data.qpos[:] = rng.normal(size=model.nq)
        mujoco.mj_normalizeQuat(model, data.qpos)
        data.qvel[:] = rng.normal(size=model.nv)
        mujoco.mj_forward(model, data)
        q, v = data.qpos.copy(), data.qvel.copy()
        tau = np.array(passive_forces(m, q, v), float)
        np.testing.assert_allclose(tau, data.qfrc_passive, atol=1e-10, rtol=1e-12)


@pytest.mark.parametrize("integrator", ["implicit", "implicitfast"])
def test_steps_of_ellipsoids_equal_mujoco(integrator):
    """With the derivative of the drag; other integrators know the forces alone, which are MuJoCo's above."""
    xml = ELLIPSOIDS.format(fluid='density="800" viscosity="2"', integrator=integrator)
    xml = re.sub('<body name="[de]".*?</body>', "", xml)  # their shapes have no other derivative
    worlds, model = zw.Worlds(read_mjcf("fluid.xml", text=xml)), mujoco.MjModel.from_xml_string(xml)
    data = mujoco.MjData(model)
    data.qvel[:] = np.random.default_rng(2).normal(size=model.nv)
    worlds.set(q=data.qpos, v=data.qvel)
    mujoco.mj_step(model, data, nstep=30)
    worlds.step(substeps=30)
    np.testing.assert_allclose(worlds.q[0], data.qpos, atol=1e-11)
    np.testing.assert_allclose(worlds.v[0], data.qvel, atol=1e-11)


CARD = """<mujoco><option density="1225" timestep="0.01" integrator="{integrator}"/><worldbody><body>
<freejoint/><geom type="box" size=".000125 .032 .047" mass="1.84e-4" fluidshape="ellipsoid"/></body>
</worldbody></mujoco>"""


@pytest.mark.parametrize("integrator", ["implicit", "implicitfast"])
def test_a_step_of_a_thin_card_equals_mujoco(integrator):
    """The semi-axes differ by a factor of 400, and the velocities are small or zero."""
    xml = CARD.format(integrator=integrator)
    worlds, model = zw.Worlds(read_mjcf("card.xml", text=xml)), mujoco.MjModel.from_xml_string(xml)
    for v in ((0.01, 0.02, 0.03, 0.01, 0.02, 0.03), (1e-6, 0.02, 0.03, 0.1, 0.2, 0.3), (0,) * 6):
        data = mujoco.MjData(model)
        data.qvel[:] = v
        worlds.set(q=data.qpos, v=data.qvel)
        mujoco.mj_step(model, data)
        worlds.step()
        np.testing.assert_allclose(worlds.v[0], data.qvel, atol=1e-12)


@pytest.mark.parametrize("integrator", ["implicit", "implicitfast"])
def test_a_step_of_a_free_body_with_a_welded_part_equals_mujoco(integrator):
    """The drag of the part belongs to the free body."""
    xml = f"""<mujoco><option integrator="{integrator}" density="38"/><worldbody><body><freejoint/>
    <geom type="capsule" size=".05 .07" pos=".02 .1 0"/><body pos=".2 .1 0">
    <geom size=".05" pos=".02 .1 0" fluidshape="ellipsoid"/></body></body></worldbody></mujoco>"""
    worlds, model = zw.Worlds(read_mjcf("welded.xml", text=xml)), mujoco.MjModel.from_xml_string(xml)
    data = mujoco.MjData(model)
    data.qvel[:] = [1, -2, 3, 2, 1, -3]
    worlds.set(q=data.qpos, v=data.qvel)
    mujoco.mj_step(model, data)
    worlds.step()
    np.testing.assert_allclose(worlds.v[0], data.qvel, atol=1e-13)


def test_the_slope_of_the_wrench_is_its_derivative():
    drag = zw.EllipsoidDrag(
        "a", (0.3, 0.1, 0.2), 1000, 4, 0.6, 0.3, 1.2, 0.7, 0.4, (0.01, 0.02, 0.03), (0.01, 0.02, 0.04)
    )
    velocity, h = np.random.default_rng(3).normal(size=6), 1e-6
    columns = [
        (ellipsoid_wrench(drag, velocity + h * e) - ellipsoid_wrench(drag, velocity - h * e)) / (2 * h)
        for e in np.eye(6)
    ]
    slope = np.array(ellipsoid_slope(drag, velocity), float)
    np.testing.assert_allclose(slope, np.stack(columns, axis=1), rtol=1e-6, atol=1e-5)
    at_rest = np.array(ellipsoid_slope(drag, np.zeros(6)), float)
    assert np.isfinite(at_rest).all() and (np.diag(at_rest) < 0).all()


def test_terminal_velocities():
    """A falling body reaches the velocity u with 3 pi mu d u = m g, or rho/2 b_x b_y u^2 = m g."""
    body = zw.Body("stone", zw.Prismatic("z", axis=(0, 0, 1)), mass=0.5)
    box = (0.1, 0.2, 0.3)
    for fluid, expected in (
        ({"viscosity": 4.0}, 0.5 * 9.81 / (3 * np.pi * 4.0 * 0.2)),
        ({"density": 1000.0}, np.sqrt(0.5 * 9.81 / (500 * 0.1 * 0.2))),
    ):
        m = zw.Mechanism("stone", [body], forces=[zw.FluidDrag("stone", box, **fluid)])
        worlds = zw.Worlds(m, step=1e-3)
        worlds.step(substeps=4000)
        np.testing.assert_allclose(worlds.v[0, 0], -expected, rtol=1e-6)


def test_wrong_fluids_are_named():
    with pytest.raises(DescriptionError, match="viscosity of the fluid drag of body 'a'"):
        zw.FluidDrag("a", (1, 1, 1), viscosity=-1)
    with pytest.raises(DescriptionError, match="a side of the box"):
        zw.FluidDrag("a", (1, -1, 1))
    with pytest.raises(DescriptionError, match="a semi-axis of the ellipsoid drag of body 'a'"):
        zw.EllipsoidDrag("a", (1, 0, 1))


@pytest.mark.parametrize("integrator", ["euler", "implicitfast", "implicit", "rk4"])
def test_the_derivatives_at_rest_are_the_limits_of_differences(integrator):
    """The drag is of second order there, whatever the direction of the flow."""
    drag = zw.EllipsoidDrag("a", (0.1, 0.05, 0.2), density=1000, viscosity=0.1)
    body = zw.Body("a", zw.Planar("p", (0, 0, 1)), mass=1, inertia=(0.01, 0.01, 0.01))
    fast = zw.compile(zw.Mechanism("fish", [body], gravity=(0, 0, 0), forces=[drag]))
    rest, h = np.zeros(3), 1e-7
    found = fast.step_derivatives(rest, rest, rest, integrator=integrator)

    def after(v):
        return fast.step(rest, v, rest, integrator=integrator).v

    differences = [(after(d) - after(-d)) / (2 * h) for d in h * np.eye(3)]
    np.testing.assert_allclose(found.A[3:, 3:], np.transpose(differences), atol=1e-7)
    assert not found.switching


@pytest.mark.parametrize(
    ("kinds", "values"),
    [
        (["mass"], {"m_b": 2.5}),
        (["com"], {"c_b_x": 0.3, "c_b_y": 0.1, "c_b_z": 0}),
        (["com", "inertia", "mass"], {"m_b": 1.5, "c_b_x": 0.3, "c_b_y": 0.1, "c_b_z": 0}),
    ],
)
def test_the_box_of_a_fluid_follows_the_symbols_of_its_body(kinds, values):
    """As in MuJoCo, whose box is that of `body_mass`, `body_ipos` and `body_inertia`."""
    text = """<mujoco><option density="800" viscosity=".1"/><worldbody><body name="b"><joint type="slide"/>
      <joint axis="0 1 0"/><inertial pos=".1 0 0" euler="20 30 40" mass="1" diaginertia=".02 .03 .04"/>
      </body></worldbody></mujoco>"""
    model = mujoco.MjModel.from_xml_string(text)
    if "inertia" in kinds:
        model.body_inertia[1] *= 2
        with pytest.warns(LoadWarning, match=r"boxes around 'b' follow .* their axes do not"):
            m = zw.load("b.xml", text=text, symbolic=kinds)
        I = 2 * np.array(read_mjcf("b.xml", text=text).bodies[0].inertia)
        values = values | {f"I_b_{'xyz'[i]}{'xyz'[j]}": I[i, j] for i in range(3) for j in range(i, 3)}
    else:
        m = zw.load("b.xml", text=text, symbolic=kinds)
    model.body_mass[1] = values.get("m_b", 1)
    model.body_ipos[1] = [values.get(f"c_b_{x}", at) for x, at in zip("xyz", (0.1, 0, 0), strict=True)]
    mujoco.mj_setConst(model, mujoco.MjData(model))
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = (0.1, 0.2), (0.8, 1.5)
    mujoco.mj_forward(model, data)
    m = zw.Mechanism.from_json(m.to_json())
    found = zw.compile(m).forward_dynamics(data.qpos, data.qvel, [0, 0], params=values)
    assert found == pytest.approx(data.qacc, rel=1e-9)


def test_a_box_of_its_own_stays_where_the_mass_is_a_symbol():
    body = zw.Body("b", zw.Free("f"), mass=2, inertia=(0.1, 0.1, 0.1))
    drag = zw.FluidDrag("b", (1, 2, 3), density=1)
    text = zw.Mechanism("m", [body], forces=[drag]).to_json()
    assert zw.load("b.json", text=text, symbolic=["mass"]).forces == (drag,)
