"""MJCF models against MuJoCo: mass matrix, bias forces, passive and actuator forces, and accelerations
without constraints.
"""

import mujoco
import numpy as np
import pytest

import zwang as zw
from tests.cases import case
from tests.oracles.mujoco_models import RandomModel, full_mass_matrix, state_of, written
from zwang.dynamics.actuators import Inputs, activation_derivatives
from zwang.dynamics.crba import crba
from zwang.dynamics.generalised_forces import controlled_forces, passive_forces
from zwang.dynamics.rnea import bias_forces
from zwang.io.mjcf.read.read_mjcf import read_mjcf
from zwang.kinematics.kinematics import Kinematics
from zwang.kinematics.poses import frame_pose
from zwang.kinematics.tendon_length import tendon_length

MODELS = ["ant", "muscle_arm", "car", "half_cheetah", "hopper", "humanoid", "slider_crank"]
TOLERANCE = 1e-10


def close(ours, theirs, tolerance=TOLERANCE):
    """Equal relative to the largest entry."""
    theirs = np.asarray(theirs, float)
    assert np.abs(np.asarray(ours, float) - theirs).max() <= tolerance * max(1.0, np.abs(theirs).max())


@pytest.fixture(scope="module", params=MODELS)
def stored(request):
    data = case("mujoco_oracle", request.param)
    path = f"{request.param}.xml"
    mechanism = read_mjcf(path, text=data["parameters"]["xml"])
    return mechanism, [state for state in data["reference"] if state["cone"] == "pyramidal"]


def test_sizes_equal_mujoco(stored):
    mechanism, states = stored
    assert mechanism.nq == len(states[0]["qpos"])
    assert mechanism.nv == len(states[0]["qvel"])


def test_mass_matrix_and_bias(stored):
    mechanism, states = stored
    for state in states:
        q, v = np.array(state["qpos"]), np.array(state["qvel"])
        close(crba(mechanism.tree, q), state["qM"])
        close(bias_forces(mechanism.tree, q, v), state["qfrc_bias"])


def test_passive_forces(stored):
    mechanism, states = stored
    for state in states:
        close(
            passive_forces(mechanism, np.array(state["qpos"]), np.array(state["qvel"])), state["qfrc_passive"]
        )


def test_actuator_forces(stored):
    mechanism, states = stored
    for state in states:
        control = dict(zip(mechanism.inputs, state["ctrl"], strict=True))
        activation = dict(zip(mechanism.inputs, state["act"], strict=True)) if state["act"] else {}
        forces = controlled_forces(
            mechanism, np.array(state["qpos"]), np.array(state["qvel"]), control, activation
        )
        close(forces, state["qfrc_actuator"])


def test_lengths_of_tendons(stored):
    mechanism, states = stored
    for state in states:
        lengths = [
            tendon_length(mechanism, tendon, Kinematics(mechanism.tree, np.array(state["qpos"])))[0]
            for tendon in mechanism.tendons
        ]
        close(lengths, state["ten_length"]) if lengths else None


def test_unconstrained_acceleration(stored):
    mechanism, states = stored
    for state in states[:6]:
        acceleration = zw.forward_dynamics(
            mechanism, state["qpos"], state["qvel"], np.array(state["qfrc_actuator"])
        )
        close(acceleration, state["qacc_smooth"], 1e-9)


def test_poses_of_bodies(stored):
    mechanism, states = stored
    for state in states[:4]:
        for body, position in zip(mechanism.bodies, np.array(state["xpos"]).reshape(-1, 3)[1:], strict=True):
            close(frame_pose(mechanism.tree, np.array(state["qpos"]), body.name).p, position)


@pytest.mark.parametrize("seed", range(40))
def test_random_models(seed, tmp_path):
    path = written(RandomModel(seed).xml, tmp_path)
    model = mujoco.MjModel.from_xml_path(str(path))
    mechanism = read_mjcf(path)
    rng = np.random.default_rng(seed)
    for _ in range(2):
        data = state_of(model, rng)
        q, v = data.qpos.copy(), data.qvel.copy()
        close(crba(mechanism.tree, q), full_mass_matrix(model, data))
        close(bias_forces(mechanism.tree, q, v), data.qfrc_bias)
        close(passive_forces(mechanism, q, v), data.qfrc_passive)
        control = dict(zip(mechanism.inputs, data.ctrl, strict=True))
        names = [name for i, name in enumerate(mechanism.inputs) if model.actuator_actadr[i] >= 0]
        activation = dict(zip(names, data.act, strict=True))
        close(controlled_forces(mechanism, q, v, control, activation), data.qfrc_actuator)
        inputs = Inputs(control, activation, 0, mechanism.options.timestep)
        rates = activation_derivatives(mechanism, Kinematics(mechanism.tree, q, v), inputs)
        close([rates[name] for name in names], data.act_dot) if names else None
        for site in range(model.nsite):
            pose = frame_pose(mechanism.tree, q, model.site(site).name)
            close(pose.p, data.site_xpos[site])
            close(pose.R.ravel(), data.site_xmat[site])
