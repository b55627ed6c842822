"""Many spatial tendons, whose segments run in loops, against MuJoCo and differences."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np
import pytest

import zwang as zw
from zwang.io.mjcf.read.read_mjcf import read_mjcf
from zwang.kinematics.kinematics import Kinematics
from zwang.kinematics.tendon_length import tendon_bias, tendon_length


def words(values: Any) -> str:
    return " ".join(map(repr, np.asarray(values, float).tolist()))


def model_with_tendons(seed: int, count: int, sides: str) -> str:
    """A random tree of hinges, slides and a ball, with tendons along random paths around random bodies.

    sides: "o" for side frames outside of the bodies, "i" for some inside.
    """
    rng = np.random.default_rng(seed)
    bodies, frames, around = "", [], []
    for b in range(6):
        joints = (
            f"<joint name='j{b}' axis='{words(rng.normal(size=3))}' type='{'slide' if b == 2 else 'hinge'}'/>"
        )
        if b == 4:
            joints = "<joint type='ball'/>"
        inner = ""
        for k in range(5):
            name = f"s{b}_{k}"
            frames.append(name)
            inner += f"<site name='{name}' pos='{words(rng.normal(size=3) * 0.4)}'/>"
        for kind in ("sphere", "cylinder"):
            name = f"{kind}{b}"
            at, turn = rng.normal(size=3) * 0.2, rng.normal(size=4)
            size = [0.15] if kind == "sphere" else [0.12, 0.3]
            place = f"pos='{words(at)}' quat='{words(turn)}'"
            place += " contype='0' conaffinity='0'"
            inner += f"<geom name='{name}' type='{kind}' size='{words(size)}' {place}/>"
            beside, within = at + np.array([0.4, 0, 0]), at + np.array([0.02, 0.03, 0])
            inner += (
                f"<site name='{name}o' pos='{words(beside)}'/><site name='{name}i' pos='{words(within)}'/>"
            )
            around.append(name)
        place = words(rng.normal(size=3) * 0.3)
        bodies += f"<body pos='{place}'>{joints}{inner}" + ("</body>" if b in (1, 3) else "")
    bodies += "</body>" * 4
    tendons = actuators = sensors = ""
    for t in range(count):
        path, previous = "", rng.choice(frames)
        path += f"<site site='{previous}'/>"
        for k in range(rng.integers(1, 5)):
            if k and rng.random() < 0.2:
                previous = rng.choice(frames)
                path += f"<pulley divisor='{rng.uniform(1, 3)}'/><site site='{previous}'/>"
            elif rng.random() < 0.4:
                body, side = rng.choice(around), rng.choice(["", *sides])
                path += f"<geom geom='{body}'" + (f" sidesite='{body}{side}'/>" if side else "/>")
            other = rng.choice([frame for frame in frames if frame != previous])
            path, previous = path + f"<site site='{other}'/>", other
        tendons += f"<spatial name='t{t}' stiffness='{rng.uniform(0, 3)}' damping='.2'>{path}</spatial>"
        actuators += f"<muscle tendon='t{t}' lengthrange='.2 3' force='20'/>"
        sensors += f"<tendonpos tendon='t{t}'/><tendonvel tendon='t{t}'/>"
    return (
        "<mujoco><option timestep='0.001' integrator='RK4'/><worldbody>"
        f"<site name='w' pos='0 0 1'/>{bodies}</worldbody><tendon>{tendons}</tendon>"
        f"<actuator>{actuators}</actuator><sensor>{sensors}<force site='s0_0'/></sensor></mujoco>"
    )


# MuJoCo ends its iteration for paths through a body at 1e-6 of their plane
@pytest.mark.parametrize(("seed", "sides", "tolerance"), [(0, "o", 1e-12), (1, "o", 1e-12), (2, "oi", 1e-5)])
def test_many_tendons_equal_mujoco(seed, sides, tolerance):
    xml, rng = model_with_tendons(seed, 10, sides), np.random.default_rng(seed)
    m, model = read_mjcf("tendons.xml", text=xml), mujoco.MjModel.from_xml_string(xml)
    data, fast, bent = mujoco.MjData(model), zw.compile(m), 0
    for _ in range(3):
        data.qpos[:], data.qvel[:] = rng.normal(size=model.nq), rng.normal(size=model.nv)
        data.ctrl[:], data.act[:] = rng.random(model.nu), rng.random(model.na)
        mujoco.mj_normalizeQuat(model, data.qpos)
        mujoco.mj_forward(model, data)
        q, v, u, z = (x.copy() for x in (data.qpos, data.qvel, data.ctrl, data.act))
        kinematics = Kinematics(m.tree, q, v)
        for k, tendon in enumerate(m.tendons):
            J, start = np.zeros(model.nv), model.ten_J_rowadr[k]
            stop = start + model.ten_J_rownnz[k]
            J[model.ten_J_colind[start:stop]] = data.ten_J.ravel()[start:stop]
            length, moment = tendon_length(m, tendon, kinematics)
            assert abs(length - data.ten_length[k]) < max(1e-12, tolerance**2)
            np.testing.assert_allclose(np.array(moment, float), J, atol=tolerance)
        bent += (data.wrap_obj.ravel() >= 0).sum()
        values = np.concatenate(list(fast.sensors(q, v, u, activation=z).values()))
        np.testing.assert_allclose(values, data.sensordata, rtol=1e3 * tolerance, atol=1e3 * tolerance)
        after = fast.step(q, v, u, activation=z)
        mujoco.mj_step(model, data)
        np.testing.assert_allclose(after[1], data.qvel, rtol=1e3 * tolerance, atol=1e3 * tolerance)
    assert bent > 10


def test_derivatives_with_many_tendons_are_the_limit_of_differences():
    m = read_mjcf("tendons.xml", text=model_with_tendons(4, 6, "oi"))
    fast, rng, eps = zw.compile(m), np.random.default_rng(4), 1e-6
    q = fast.integrate_configuration(np.array(m.neutral, float), rng.normal(size=m.nv), 1.0)
    v, z, u = rng.normal(size=m.nv), rng.random(len(m.inputs)), rng.random((4, len(m.inputs)))

    def cotangents(run):
        v = run[1]
        return np.concatenate([0 * v, v, np.zeros((*v.shape[:-1], len(z)))], axis=-1)

    found = fast.rollout_gradient(cotangents, q, v, u, activation=z, integrator="euler")
    direction = rng.normal(size=2 * m.nv)

    def loss(step):
        start = fast.integrate_configuration(q, step * direction[: m.nv], 1.0)
        run = fast.rollout(start, v + step * direction[m.nv :], u, activation=z, steps=4, integrator="euler")
        return 0.5 * (run[1] ** 2).sum()

    slope = (loss(eps) - loss(-eps)) / (2 * eps)
    assert found.start[: 2 * m.nv] @ direction == pytest.approx(slope, rel=1e-5)


def test_a_tendon_on_one_body_and_one_that_does_not_touch_pull_no_joint():
    xml = """<mujoco><worldbody><site name="w" pos="0 0 1"/><body pos="0 0 -3"><joint name="a" axis="0 1 0"/>
      <geom name="g" size=".2"/><site name="s"/></body>
      <body pos="1 0 0"><joint name="b" axis="0 1 0"/><geom size=".1"/>
      <site name="x" pos="0.3 0 .2"/><site name="y" pos=".1 .5 .3"/></body></worldbody>
      <tendon><spatial name="rigid" stiffness="100"><site site="x"/><site site="y"/></spatial>
      <spatial name="free"><site site="x"/><geom geom="g"/><site site="y"/></spatial></tendon>
      <sensor><tendonpos tendon="rigid"/><tendonpos tendon="free"/></sensor></mujoco>"""
    m, model = read_mjcf("tendons.xml", text=xml), mujoco.MjModel.from_xml_string(xml)
    data, fast = mujoco.MjData(model), zw.compile(m)
    data.qpos[:] = 0.3, 0.7
    mujoco.mj_forward(model, data)
    values = np.concatenate(list(fast.sensors(data.qpos, data.qvel).values()))
    np.testing.assert_allclose(values, data.sensordata, rtol=1e-14)
    for tendon in m.tendons:
        assert not np.any(tendon_length(m, tendon, Kinematics(m.tree, np.array(data.qpos)))[1])
    _, v = fast.step(data.qpos, data.qvel, np.zeros(m.nv))[:2]
    mujoco.mj_step(model, data)
    np.testing.assert_allclose(v, data.qvel, rtol=1e-12)


@pytest.mark.parametrize("seed", [1, 2])
def test_the_bias_is_the_second_derivative_of_the_length_at_constant_velocity(seed):
    m = read_mjcf("model.xml", text=model_with_tendons(seed, 8, "o"))
    rng = np.random.default_rng(seed)
    q = zw.integrate_configuration(m, np.array(m.neutral, float), rng.normal(size=m.nv) * 0.3, 1.0)
    v, h, biases = 4 * rng.normal(size=m.nv), 1e-4, []
    ends = [Kinematics(m.tree, zw.integrate_configuration(m, q, v, dt), v) for dt in (-h, 0.0, h)]
    for tendon in m.tendons:
        before, now, after = (tendon_length(m, tendon, k)[0] for k in ends)
        biases.append(tendon_bias(m, tendon, ends[1]))
        assert biases[-1] == pytest.approx((after - 2 * now + before) / h**2, abs=1e-5, rel=1e-5)
    assert np.abs(biases).max() > 1
