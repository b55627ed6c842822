"""Equality constraints that are switched on and off during a motion, against MuJoCo's `eq_active`."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

import zwang as zw
from zwang.errors import DescriptionError
from zwang.io.mjcf.read.read_mjcf import read_mjcf

MODEL = """
<mujoco><option timestep="0.003" iterations="200" tolerance="1e-15" ls_tolerance="1e-10"/>
<worldbody><geom name="floor" type="plane" size="5 5 1"/>
  <body name="arm" pos="0 0 .6"><joint name="shoulder" axis="0 1 0"/>
    <geom size=".05" mass="1" pos=".2 0 0" contype="0" conaffinity="0"/>
    <body name="hand" pos=".4 0 0"><joint name="wrist" axis="0 1 0"/>
      <geom size=".05" mass=".5" contype="0" conaffinity="0"/></body></body>
  <body name="box" pos=".5 .1 .3"><freejoint/>
    <geom type="box" size=".1 .07 .08" mass=".3"/></body></worldbody>
<tendon><fixed name="t"><joint joint="shoulder" coef="1.2"/></fixed>
  <fixed name="u"><joint joint="wrist" coef=".8"/></fixed></tendon>
<equality><weld name="grip" body1="hand" body2="box" active="false"/>
  <connect name="pin" body1="box" body2="world" anchor=".05 0 .1"/>
  <joint name="couple" joint1="wrist" joint2="shoulder" polycoef=".1 .5 0 0 0" active="false"/>
  <tendon name="pull" tendon1="t" tendon2="u" active="false"/></equality></mujoco>"""
NAMES = ("grip", "pin", "couple", "pull")  # in the order of the file
PATTERN = ((0, 1, 0, 0), (1, 0, 0, 0), (1, 1, 1, 0), (0, 0, 0, 1), (0, 0, 0, 0))


def models() -> tuple[mujoco.MjModel, zw.Mechanism]:
    return mujoco.MjModel.from_xml_string(MODEL), read_mjcf("switches.xml", text=MODEL)


def switches(pattern: tuple[int, ...]) -> dict[str, float]:
    return {f"{name}.active": float(on) for name, on in zip(NAMES, pattern, strict=True)}


def test_inactive_equalities_have_no_effect_until_they_are_switched_on():
    model, m = models()
    assert [c.name for c in m.constraints] == ["pin"]
    assert [c.name for c in m.inactive_constraints] == ["grip", "couple", "pull"]
    assert zw.Mechanism.from_json(m.to_json()) == m
    switched, values = zw.with_equality_parameters(m)
    assert values == switches(PATTERN[0])
    data = mujoco.MjData(model)
    data.qvel[:] = 0.3
    mujoco.mj_forward(model, data)
    for mechanism in (m, switched.subs(values)):
        found = zw.constrained_dynamics(mechanism, data.qpos, data.qvel, np.zeros(m.nv))
        assert found.acceleration == pytest.approx(data.qacc, abs=1e-8)


@pytest.mark.parametrize("pattern", PATTERN)
def test_accelerations_are_those_of_mujoco(pattern):
    model, m = models()
    m, _ = zw.with_equality_parameters(m)
    data = mujoco.MjData(model)
    data.qvel[:] = np.linspace(-1, 1, model.nv)
    data.eq_active[:] = pattern
    for _ in range(4):
        mujoco.mj_forward(model, data)
        data.qacc_warmstart[:] = data.qacc
    found = zw.constrained_dynamics(m.subs(switches(pattern)), data.qpos, data.qvel, np.zeros(m.nv))
    scale = max(1.0, np.abs(data.qacc).max())
    assert found.acceleration == pytest.approx(data.qacc, abs=1e-8 * scale)


def test_worlds_switch_constraints_between_steps():
    """Two worlds with the switches in opposite order."""
    model, m = models()
    m, values = zw.with_equality_parameters(m)
    worlds = zw.Worlds(m, 2, params=values)
    engines = [mujoco.MjData(model) for _ in range(2)]
    for k in range(len(PATTERN)):
        chosen = PATTERN[k], PATTERN[-1 - k]
        for w, (data, pattern) in enumerate(zip(engines, chosen, strict=True)):
            data.eq_active[:] = pattern
            worlds.set([w], params=switches(pattern))
            mujoco.mj_step(model, data, 6)
        worlds.step(substeps=6)
        for w, data in enumerate(engines):
            assert worlds.q[w] == pytest.approx(data.qpos, abs=1e-8)
            assert worlds.v[w] == pytest.approx(data.qvel, abs=1e-6)


def test_hard_constraints_are_not_switched():
    _, m = models()
    with pytest.raises(
        DescriptionError, match=r"'pin' is hard and cannot be switched; give it a zw.Softness"
    ):
        zw.Connect("pin", ("box", (0, 0, 0)), ("world", (0, 0, 0)), active=0)
    with pytest.raises(DescriptionError, match="must be 1, 0 or a symbol"):
        zw.JointCoupling("c", "wrist", "shoulder", softness=zw.Softness(), active=0.5)
    with pytest.raises(DescriptionError, match="no soft loop or coupling"):
        zw.with_equality_parameters(m.replace(constraints=(), inactive_constraints=()))
