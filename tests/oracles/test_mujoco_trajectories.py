"""Trajectories of 1,000 steps without contact against MuJoCo, with every joint type of MuJoCo."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

import zwang as zw

STEPS, H = 1000, 0.002
MJCF = """
<mujoco>
  <option timestep="0.002" integrator="{integrator}" gravity="0.3 -0.2 -9.81"/>
  <worldbody>
    <body name="cart" pos="0 0 1">
      <joint name="slide" type="slide" axis="1 0 0.2" damping="0.7" stiffness="3" springref="0.1"/>
      <inertial pos="0.02 0 0.01" mass="1.2" diaginertia="0.02 0.03 0.04"/>
      <body name="arm" pos="0 0.1 0" quat="0.9 0.1 -0.3 0.2">
        <joint name="hinge" type="hinge" axis="0.2 1 0" pos="0.01 0 0.02" damping="0.05" armature="0.01"/>
        <inertial pos="0.2 0 -0.1" mass="0.8" diaginertia="0.012 0.013 0.014"/>
        <body name="bob" pos="0.4 0 0">
          <joint name="ball" type="ball" damping="0.02"/>
          <inertial pos="0 0.1 -0.2" mass="0.5" diaginertia="0.01 0.02 0.015"/>
        </body>
      </body>
    </body>
    <body name="floater" pos="1 1 1">
      <freejoint name="free"/>
      <inertial pos="0.1 0 0" mass="0.7" diaginertia="0.01 0.02 0.015"/>
    </body>
  </worldbody>
  <actuator><motor name="push" joint="slide" gear="2" ctrlrange="-1 1" ctrllimited="true"/></actuator>
</mujoco>
"""


def described() -> zw.Mechanism:
    """The same mechanism, described with the classes of zwang."""
    return zw.Mechanism(
        gravity=(0.3, -0.2, -9.81),
        bodies=[
            zw.Body("cart", zw.Prismatic("slide", axis=(1, 0, 0.2)), position=(0, 0, 1), mass=1.2,
                    com=(0.02, 0, 0.01), inertia=(0.02, 0.03, 0.04)),
            zw.Body("arm", zw.Revolute("hinge", axis=(0.2, 1, 0), position=(0.01, 0, 0.02), armature=0.01),
                    parent="cart", position=(0, 0.1, 0), orientation=(0.9, 0.1, -0.3, 0.2), mass=0.8,
                    com=(0.2, 0, -0.1), inertia=(0.012, 0.013, 0.014)),
            zw.Body("bob", zw.Ball("ball"), parent="arm", position=(0.4, 0, 0), mass=0.5, com=(0, 0.1, -0.2),
                    inertia=(0.01, 0.02, 0.015)),
            zw.Body("floater", zw.Free("free"), mass=0.7, com=(0.1, 0, 0), inertia=(0.01, 0.02, 0.015)),
        ],
        forces=[
            zw.Damper("slide", 0.7), zw.Spring("slide", 3, rest=0.1), zw.Damper("hinge", 0.05),
            zw.Damper("ball", 0.02),
            zw.Motor("push", "slide", gear=2, control_range=(-1, 1)),
        ],
    )  # fmt: skip


def by_mujoco(integrator: str, q: np.ndarray, v: np.ndarray, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    model = mujoco.MjModel.from_xml_string(MJCF.format(integrator=integrator))
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = q, v
    states = [(q, v)]
    for control in u:
        data.ctrl[:] = control
        mujoco.mj_step(model, data)
        states.append((data.qpos.copy(), data.qvel.copy()))
    return tuple(np.array(x) for x in zip(*states, strict=True))


@pytest.fixture
def start() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """q0, v0, and a control that is outside its range at some times."""
    rng = np.random.default_rng(5)
    q = np.array([0.1, -0.4, *[0.5] * 4, 1.0, 1.0, 1.0, 0.6, 0, 0.8, 0])
    return q, rng.normal(size=11), 1.4 * np.sin(np.arange(STEPS)[:, None] * 0.02)


@pytest.mark.parametrize(
    ("name", "integrator"), [("Euler", "euler"), ("RK4", "rk4"), ("implicitfast", "implicitfast")]
)
@pytest.mark.parametrize("compiled", [True, False])
def test_a_thousand_steps_equal_mujoco(name, integrator, compiled, start):
    q, v, u = start
    steps = STEPS if compiled else 100
    expected = by_mujoco(name, q, v, u[:steps])
    run = zw.simulate(
        described(),
        q,
        v,
        duration=steps * H,
        step=H,
        integrator=integrator,
        control=u[:steps],
        compiled=compiled,
    )
    np.testing.assert_allclose(run.q.values[0], expected[0], atol=1e-9)
    np.testing.assert_allclose(run.v.values[0], expected[1], atol=1e-9)


DRIVEN = """
<mujoco>
  <compiler angle="radian"/>
  <option timestep="0.005" integrator="{integrator}"><flag contact="disable"/></option>
  <worldbody>
    <body name="a" pos="0 0 1">
      <joint name="j1" axis="0 1 0" damping="0.3" stiffness="1"/>
      <inertial pos="0.2 0 -0.1" mass="1.5" diaginertia="0.02 0.03 0.04"/>
      <body name="b" pos="0.4 0 0">
        <joint name="j2" axis="1 0 0" damping="0.1"/>
        <inertial pos="0 0.1 -0.2" mass="0.7" diaginertia="0.01 0.02 0.015"/>
      </body>
    </body>
    <body name="c" pos="0 1 1">
      <joint name="j3" axis="0 1 0"/>
      <inertial pos="0.1 0 -0.1" mass="0.5" diaginertia="0.02 0.03 0.04"/>
    </body>
  </worldbody>
  <tendon><fixed name="t" damping="0.4" stiffness="2"><joint joint="j1" coef="1"/>
    <joint joint="j2" coef="-0.5"/></fixed></tendon>
  <actuator>
    <position name="servo" joint="j1" kp="30" kv="4" forcerange="-8 8"/>
    <velocity name="speed" joint="j2" kv="5"/>
    <general name="slow" joint="j3" gainprm="3" biastype="affine" biasprm="0 -2 -1.5" dyntype="filterexact"
      dynprm="0.05"/>
  </actuator>
</mujoco>
"""


@pytest.mark.parametrize("integrator", ["Euler", "RK4", "implicitfast"])
def test_servos_tendons_and_activations_equal_mujoco(integrator, tmp_path):
    file = tmp_path / "driven.xml"
    file.write_text(DRIVEN.format(integrator=integrator))
    model = mujoco.MjModel.from_xml_string(file.read_text())
    data = mujoco.MjData(model)
    data.qvel[:] = 0.5, -1, 2
    u = np.stack([np.sin(0.05 * np.arange(400)), 2 * np.cos(0.03 * np.arange(400)), np.ones(400)], axis=1)
    expected = []
    for control in u:
        data.ctrl[:] = control
        mujoco.mj_step(model, data)
        expected.append(np.concatenate([data.qpos, data.qvel, data.act]))
    run = zw.simulate(zw.load(file), v0=[0.5, -1, 2], duration=2.0, control=u)
    assert run.attrs["integrator"] == integrator.lower() and run.attrs["step"] == 0.005
    found = np.concatenate([run.q.values[0], run.v.values[0], run.activation.values[0]], axis=1)[1:]
    np.testing.assert_allclose(found, expected, atol=1e-9)
