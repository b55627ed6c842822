"""Constraint rows, forces and accelerations against stored states of MuJoCo 4.0.0 at tight tolerance."""

from dataclasses import replace

import numpy as np
import pytest

import zwang as zw
from tests.cases import case
from zwang.io.mjcf.read.read_mjcf import read_mjcf

MODELS = ["ant", "half_cheetah", "hopper", "humanoid", "car", "muscle_arm", "slider_crank"]


@pytest.fixture(scope="module", params=MODELS)
def model(request):
    """The model with each friction cone, and the states."""
    stored = case("mujoco_oracle", request.param)
    states = stored["reference"]
    m = read_mjcf(f"{request.param}.xml", strict=False, text=stored["parameters"]["xml"])
    cones = {state["cone"] for state in states}
    return {cone: m.replace(options=replace(m.options, cone=cone)) for cone in cones}, states


def solved(mechanisms, state, **options):
    tau = np.array(state["qfrc_actuator"])
    return zw.constrained_dynamics(mechanisms[state["cone"]], state["qpos"], state["qvel"], tau, **options)


def matched(rows, state):
    """The order in which our rows equal those of MuJoCo: the order of rows has no meaning."""
    ours = np.column_stack([rows.J, rows.aref, rows.R])
    theirs = np.column_stack([state["efc_J"], state["efc_aref"], state["efc_R"]])
    free, order = list(range(len(ours))), []
    for row in theirs:
        nearest = min(free, key=lambda i: np.abs(ours[i] - row).max())
        order.append(nearest)
        free.remove(nearest)
    return order


def test_rows_forces_and_accelerations_equal_mujoco(model):
    mechanisms, states = model
    for state in states:
        found = solved(mechanisms, state)
        qacc = np.array(state["qacc"])
        np.testing.assert_allclose(found.acceleration, qacc, rtol=0, atol=1e-8 * max(1, np.abs(qacc).max()))
        assert found.kkt_residual < 1e-10, found.status
        assert len(found.rows) == state["nefc"]
        if state["nefc"]:
            order = matched(found.rows, state)
            for name, ours in (
                ("J", found.rows.J),
                ("aref", found.rows.aref),
                ("R", found.rows.R),
                ("force", found.force),
            ):
                theirs = np.array(state[f"efc_{name}"])
                np.testing.assert_allclose(ours[order], theirs, rtol=1e-9, atol=1e-9 * np.abs(theirs).max())


def test_three_solvers_give_the_same_acceleration(model):
    mechanisms, states = model
    for state in states[::13]:
        newton = solved(mechanisms, state)
        for solver in ("conjugate", "projected"):
            other = solved(mechanisms, state, solver=solver)
            scale = max(1, np.abs(newton.acceleration).max())
            assert np.abs(other.acceleration - newton.acceleration).max() < 1e-8 * scale, (
                solver,
                state["state"],
            )
