"""Runs of an MJCF model with random inputs, in MuJoCo, on floats, and compiled."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mujoco
import numpy as np

import zwang as zw
from tests.api.test_step_derivatives import differences, relative_error
from zwang.integrator.fixed_step import State
from zwang.io.mjcf.read.read_mjcf import read_mjcf
from zwang.simulation.step import step, step_settings

STEPS = 50
FLOAT_STEPS = 8
"""Steps on floats, which take long."""


def option(integrator: str, more: str = "") -> str:
    """The option element of a model that is solved tightly."""
    return (
        f'<option timestep="0.01" integrator="{integrator}" tolerance="1e-15" iterations="300" '
        f'ls_tolerance="1e-10" {more}/>'
    )


def expected_run(text: str, spin: float = 1.0, amplitude: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """MuJoCo's states (steps + 1, nq + nv + na) from a random start, and the controls (steps, nu)."""
    model, rng = mujoco.MjModel.from_xml_string(text), np.random.default_rng(5)
    data = mujoco.MjData(model)
    data.qvel[:] = spin * rng.normal(size=model.nv)
    u = amplitude * np.repeat(rng.normal(size=(STEPS // 5, model.nu)), 5, axis=0)
    states = [np.concatenate([data.qpos, data.qvel, data.act])]
    for control in u:
        data.ctrl[:] = control
        for _ in range(2):  # the solution does not depend on the start of the solver
            mujoco.mj_forward(model, data)
            data.qacc_warmstart[:] = data.qacc
        mujoco.mj_step(model, data)
        states.append(np.concatenate([data.qpos, data.qvel, data.act]))
    return np.array(states), u


def assert_runs_equal(text: str, tmp_path: Path, tolerance: float = 1e-8, **settings: Any) -> zw.Mechanism:
    """Assert that compiled and float steps give MuJoCo's states, also after the model was written to MJCF and
    to JSON; the mechanism is returned.
    """
    mechanism = read_mjcf("model.xml", text=text)
    states, u = expected_run(text, **settings)
    nq, nv = mechanism.nq, mechanism.nv
    q, v = states[0, :nq], states[0, nq : nq + nv]
    u = u if mechanism.inputs else np.zeros((STEPS, nv))
    run = zw.simulate(mechanism, q0=q, v0=v, duration=STEPS * 0.01, control=u)
    found = [run[name].values[0] for name in ("q", "v", "activation") if name in run]
    np.testing.assert_allclose(np.concatenate(found, axis=1), states, rtol=0, atol=tolerance)
    at = step_settings(mechanism, 0.01, mechanism.options.integrator)
    state = State(q, v, states[0, nq + nv :])
    for k in range(FLOAT_STEPS):
        state = step(at, state, u[k], k * 0.01).state
        np.testing.assert_allclose(np.concatenate(state).astype(float), states[k + 1], rtol=0, atol=tolerance)
    zw.write_mjcf(mechanism, tmp_path / "written.xml")
    assert zw.load(tmp_path / "written.xml").forces == mechanism.forces
    assert zw.Mechanism.from_json(mechanism.to_json()) == mechanism
    return mechanism


def assert_derivatives_are_differences(
    text: str, integrator: str | None = None, tolerance: float = 1e-6
) -> None:
    """Assert that the derivatives of a step along MuJoCo's motion are the limits of its differences."""
    mechanism = read_mjcf("model.xml", text=text)
    states, u = expected_run(text)
    fast, nq, nv = zw.compile(mechanism), mechanism.nq, mechanism.nv
    checked = 0
    for k in range(3, STEPS, 9):
        q, v, z = np.split(states[k], [nq, nq + nv])
        options = {"time": k * 0.01, **({} if integrator is None else {"integrator": integrator})}
        found = fast.step_derivatives(q, v, u[k], activation=z, **options)
        if found.switching:
            continue
        AB = np.concatenate([found.A, found.B], axis=1)
        expected = [differences(fast, q, v, u[k], z, eps=eps, **options) for eps in (1e-5, 1e-6)]
        assert min(relative_error(AB, x) for x in expected) < tolerance
        checked += 1
    assert checked >= 3
