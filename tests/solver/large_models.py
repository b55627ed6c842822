"""Large single trees, whose rollouts compact their active rows, with rows of every kind, here and in
MuJoCo.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import mujoco
import numpy as np

import zwang as zw
from zwang.io.mjcf.read.read_mjcf import read_mjcf

INTEGRATORS = {
    "euler": mujoco.mjtIntegrator.mjINT_EULER,
    "implicitfast": mujoco.mjtIntegrator.mjINT_IMPLICITFAST,
    "rk4": mujoco.mjtIntegrator.mjINT_RK4,
}


def _leg(name: str, angle: float, condim: int) -> str:
    x, y = 0.25 * np.cos(angle), 0.25 * np.sin(angle)
    return f"""
    <body name="{name}" pos="{x} {y} -0.05">
      <joint name="{name}_turn" axis="0 0 1" range="-0.5 0.4" damping="0.1"/>
      <joint name="{name}_lift" axis="{-y} {x} 0" range="-0.6 0.7" damping="0.1"/>
      <geom type="capsule" fromto="0 0 0 {x} {y} -0.1" size="0.04" condim="{condim}"/>
      <body name="{name}_shin" pos="{x} {y} -0.1">
        <joint name="{name}_knee" axis="{-y} {x} 0" range="-0.8 0.5" damping="0.1"/>
        <geom type="capsule" fromto="0 0 0 {0.2 * x} {0.2 * y} -0.25" size="0.03" condim="{condim}"
              friction="0.8 0.02 0.003"/>
        <geom type="sphere" pos="{0.2 * x} {0.2 * y} -0.28" size="0.05" condim="{condim}" margin="0.01"
              friction="0.7 0.03 0.002"/>
      </body>
    </body>"""


def creature(cone: str = "pyramidal", extra: str = "") -> str:
    """A floating trunk with three legs (condim 1, 3 and 6), a neck with a ball joint, and a tail with dry
    friction.

    A tendon with friction and limits couples two knees; a joint coupling relates the third knee to the
    tail. extra: further options.
    """
    legs = "".join(_leg(*leg) for leg in (("a", 0.3, 1), ("b", 2.75, 3), ("c", 3.6, 6)))
    motors = "".join(
        f'<motor joint="{leg}_{joint}" gear="10" ctrlrange="-1 1"/>'
        for leg in "abc"
        for joint in ("turn", "lift", "knee")
    )
    return f"""
<mujoco>
  <compiler angle="radian" autolimits="true"/>
  <option timestep="0.004" cone="{cone}" {extra}/>
  <default><geom density="700"/><joint armature="0.01"/></default>
  <worldbody>
    <geom name="floor" type="plane" size="5 5 0.1" condim="1"/>
    <body name="trunk" pos="0 0 0.5">
      <freejoint name="root"/>
      <geom type="capsule" fromto="-0.15 0 0 0.15 0 0" size="0.1" condim="3"/>
      {legs}
      <body name="head" pos="0.25 0 0.15">
        <joint name="neck" type="ball" range="0 0.5" damping="0.05"/>
        <geom type="sphere" pos="0.05 0 0.1" size="0.11" condim="4" friction="0.6 0.02 0.001"/>
      </body>
      <body name="tail" pos="-0.25 0 0">
        <joint name="reach" type="slide" axis="-1 0 0.3" range="-0.05 0.1" frictionloss="2" damping="1"/>
        <geom type="capsule" fromto="0 0 0 -0.2 0 0" size="0.04"/>
        <body name="tip" pos="-0.22 0 0">
          <joint name="wag" axis="0 1 0.5" range="-1.2 1.2" frictionloss="0.3"
                 solimpfriction="0.8 0.9 0.01 0.5 2"/>
          <joint name="curl" axis="0 1 0" range="-1 1" frictionloss="0.1" damping="0.02"/>
          <geom type="capsule" fromto="0 0 0 -0.2 0 -0.1" size="0.03" condim="4"/>
          <geom type="sphere" pos="-0.25 0 -0.12" size="0.05" condim="3"/>
        </body>
      </body>
    </body>
  </worldbody>
  <tendon>
    <fixed name="knees" range="-0.3 0.25" frictionloss="0.2">
      <joint joint="a_knee" coef="1"/><joint joint="b_knee" coef="-0.7"/></fixed>
  </tendon>
  <equality>
    <joint joint1="c_knee" joint2="curl" polycoef="0.05 0.4 0.1 0 0" solref="0.03 1"/>
  </equality>
  <actuator>
    {motors}
    <motor joint="reach" gear="20" ctrlrange="-1 1"/>
    <position joint="wag" kp="3" kv="0.2" ctrlrange="-1 1"/>
    <motor joint="neck" gear="1 0.5 0" ctrlrange="-1 1"/>
  </actuator>
</mujoco>"""


def crawler() -> str:
    """A floating trunk with two legs, with limits, pyramids, and contacts between its legs."""
    legs = _leg("a", 0.3, 3) + _leg("b", 0.9, 6)
    motors = "".join(
        f'<motor joint="{leg}_{joint}" gear="10" ctrlrange="-1 1"/>'
        for leg in "ab"
        for joint in ("turn", "lift", "knee")
    )
    return f"""
<mujoco>
  <compiler angle="radian" autolimits="true"/>
  <option timestep="0.004"/>
  <default><geom density="700"/><joint armature="0.01"/></default>
  <worldbody>
    <geom type="plane" size="5 5 0.1" condim="1"/>
    <body name="trunk" pos="0 0 0.5">
      <freejoint name="root"/>
      <geom type="capsule" fromto="-0.15 0 0 0.15 0 0" size="0.1" condim="1"/>
      {legs}
    </body>
  </worldbody>
  <actuator>{motors}</actuator>
</mujoco>"""


TEXTS = {"creature": creature, "elliptic creature": lambda: creature("elliptic"), "crawler": crawler}


@cache
def text_of(name: str) -> str:
    return TEXTS[name]()


@cache
def mechanism_of(text: str) -> zw.Mechanism:
    return read_mjcf("model.xml", strict=False, text=text)


def random_states(
    mechanism: zw.Mechanism, worlds: int, seed: int = 0, lift: float = 0.0
) -> tuple[np.ndarray, ...]:
    """Random q, v and controls of the given number of worlds about the home position."""
    rng = np.random.default_rng(seed)
    home = np.tile(np.array(mechanism.home or mechanism.neutral, float), (worlds, 1))
    home[:, 2] += lift
    displacement = 0.15 * rng.normal(size=(worlds, mechanism.nv))
    displacement[:, :3] *= 0.1
    q = np.array(
        [zw.integrate_configuration(mechanism, a, b, 1.0) for a, b in zip(home, displacement, strict=True)]
    )
    v = 0.5 * rng.normal(size=(worlds, mechanism.nv))
    return q, v, rng.uniform(-1, 1, size=(worlds, len(mechanism.inputs)))


def mujoco_steps(
    text: str, integrator: str, q: np.ndarray, v: np.ndarray, u: np.ndarray
) -> tuple[np.ndarray, np.ndarray, set[Any]]:
    """q and v (states, n) one step of MuJoCo after each of these states, and the types of all its
    constraint rows.

    A contact is given as ('contact', dimension, whether both geoms belong to bodies).
    """
    model = mujoco.MjModel.from_xml_string(text)
    model.opt.integrator = INTEGRATORS[integrator]
    model.opt.tolerance, model.opt.ls_tolerance = 1e-14, 1e-9
    model.opt.iterations, model.opt.ls_iterations = 1000, 500
    data, after, kinds = mujoco.MjData(model), [], set()
    for state in zip(q, v, u, strict=True):
        mujoco.mj_resetData(model, data)
        data.qpos[:], data.qvel[:], data.ctrl[:] = state
        mujoco.mj_step(model, data)
        after.append((data.qpos.copy(), data.qvel.copy()))
        kinds |= {int(kind) for kind in data.efc_type}
        kinds |= {("contact", int(c.dim), bool(model.geom_bodyid[c.geom].all())) for c in data.contact}
    positions, velocities = zip(*after, strict=True)
    return np.array(positions), np.array(velocities), kinds


def relative_error(found: np.ndarray, expected: np.ndarray, before: np.ndarray) -> np.ndarray:
    """The difference (states,) of velocities after a step, relative to the larger of 1 and their largest
    change.
    """
    return np.abs(found - expected).max(axis=-1) / np.maximum(1, np.abs(expected - before).max(axis=-1))
