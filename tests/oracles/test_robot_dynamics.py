"""Robots from URDF against Pinocchio: every quantity of tests/cases/robot_dynamics to a relative 1e-12."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import zwang as zw
from tests.oracles.pinocchio_cases import CASES, State, loaded, relative_error

TOLERANCE = 1e-12


def _still(s: State) -> np.ndarray:
    return np.zeros_like(s.v)


QUANTITIES: dict[str, Any] = {
    "M": lambda m, s: s.matrix(zw.mass_matrix(m, s.q)),
    "nle": lambda m, s: s.forces(zw.inverse_dynamics(m, s.q, s.v, s.drift)),
    "g": lambda m, s: s.forces(zw.bias_forces(m, s.q, _still(s))),
    "rnea": lambda m, s: s.forces(zw.inverse_dynamics(m, s.q, s.v, s.a)),
    "aba": lambda m, s: s.accelerations(zw.forward_dynamics(m, s.q, s.v, s.tau)),
    "com": lambda m, s: zw.mass_centre(m, s.q),
    "hg": lambda m, s: zw.momentum(m, s.q, s.v),
    "kinetic": lambda m, s: [zw.energy(m, s.q, s.v).kinetic],
    "potential": lambda m, s: [zw.energy(m, s.q, s.v).potential],
}


@pytest.mark.parametrize("quantity", QUANTITIES)
@pytest.mark.parametrize("name", CASES)
def test_agrees_with_pinocchio(name: str, quantity: str) -> None:
    case = loaded(name)
    for state in case.states:
        found = QUANTITIES[quantity](case.mechanism, state)
        error = relative_error(found, np.atleast_1d(state.reference[quantity]))
        assert error < TOLERANCE


@pytest.mark.parametrize("name", CASES)
def test_frames_agree_with_pinocchio(name: str) -> None:
    case = loaded(name)
    for state in case.states[:3]:
        for frame, expected in state.reference["frames"].items():
            pose = zw.frame_pose(case.mechanism, state.q, frame)
            assert relative_error(pose.R, expected["R"]) < TOLERANCE
            assert relative_error(pose.p, expected["p"]) < TOLERANCE
            J = zw.frame_jacobian(case.mechanism, state.q, frame)
            assert relative_error(state.columns(J), expected["J_local_world_aligned"]) < TOLERANCE
            rate = zw.frame_jacobian_rate(case.mechanism, state.q, state.v, frame) + J @ state.drift
            assert relative_error(rate, expected["Jdot_v_classical_lwa"]) < TOLERANCE
