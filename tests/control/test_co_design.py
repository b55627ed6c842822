"""The throwing arm of the example, whose dimensions are symbols, against MuJoCo."""

from __future__ import annotations

import sys
from pathlib import Path

import mujoco
import numpy as np

import zwang as zw

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))

import co_design


def test_a_throw_is_that_of_mujoco(tmp_path):
    """The best throw of two designs, by MuJoCo's steps and Galilei's parabola from its hand."""
    rng = np.random.default_rng(0)
    designs = np.column_stack([[0.35, 0.65], rng.uniform(-1, 1, (2, 2 * co_design.KNOTS)) * 12])
    worlds = zw.Worlds(
        co_design.arm(), 2, step=co_design.STEP, params={"elbow": 0.5}, observe=co_design.distance
    )
    found = co_design.throws(worlds, designs)
    for design, throw in zip(designs, found, strict=True):
        file = tmp_path / "arm.xml"
        zw.write_mjcf(co_design.arm().subs({"elbow": design[0]}), file)
        model = mujoco.MjModel.from_xml_path(str(file))
        model.opt.timestep = co_design.STEP
        data, knots, distances = mujoco.MjData(model), design[1:].reshape(-1, 2), [0.0]
        forearm = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_BODY, "forearm")
        for t in np.linspace(0, co_design.KNOTS - 1, co_design.STEPS):
            data.ctrl[:] = [np.interp(t, np.arange(co_design.KNOTS), u) for u in knots.T]
            mujoco.mj_step(model, data)
            mujoco.mj_forward(model, data)
            velocity = np.zeros(6)  # angular velocity, then that of the body's origin, in world axes
            mujoco.mj_objectVelocity(model, data, mujoco.mjtObj.mjOBJ_XBODY, forearm, velocity, 0)
            arm = data.xmat[forearm].reshape(3, 3) @ [0, 0, design[0] - co_design.LENGTH]
            (x, _, z), (vx, _, vz) = data.xpos[forearm] + arm, velocity[3:] + np.cross(velocity[:3], arm)
            distances.append(x + vx * (vz + np.sqrt(vz**2 + 2 * 9.81 * z)) / 9.81)
        np.testing.assert_allclose(throw, max(distances), rtol=1e-6)
