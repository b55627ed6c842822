"""Derivatives of forward and inverse dynamics against Pinocchio's analytic ones, to a relative 1e-9."""

from __future__ import annotations

import numpy as np
import pytest

import zwang as zw
from tests.oracles.pinocchio_cases import PinocchioCase, State, loaded, relative_error
from zwang.algebra.rotations import skew

TOLERANCE = 1e-9
FORWARD = (
    "F_double_pendulum",
    "F_panda",
    "F_ur5",
    "F_anymal_c",
)  # some arms and one floating base for each direction
INVERSE = ("F_double_pendulum", "F_panda", "F_xarm7", "F_solo12")


def states_of(case: PinocchioCase) -> list[State]:
    """The states with derivatives; every case has some."""
    found = [s for s in case.states if "dqdd_dq" in s.reference]
    assert found
    return found[:3]


def base_rotation_rate(s: State, k: int) -> np.ndarray:
    """K with dT = T K for displacement k of Pinocchio: the linear axes of a floating base rotate with it."""
    K = np.zeros_like(s.T)
    for joint, _, iv in s.of.slots:
        if joint.kind == "free" and iv.start + 3 <= k < iv.start + 6:
            K[iv.start : iv.start + 3, iv.start : iv.start + 3] = skew(np.eye(3)[k - iv.start - 3])
    return K


def drift_in_body(s: State) -> tuple[np.ndarray, np.ndarray]:
    """The drift c = w x v_linear in the axes of Pinocchio, and its derivative by v of Pinocchio."""
    c, slope, v = np.zeros(len(s.v)), np.zeros_like(s.T), s.T.T @ s.v
    for joint, _, iv in s.of.slots:
        if joint.kind == "free":
            linear, angular = slice(iv.start, iv.start + 3), slice(iv.start + 3, iv.start + 6)
            c[linear] = np.cross(v[angular], v[linear])
            slope[linear, linear], slope[linear, angular] = skew(v[angular]), -skew(v[linear])
    return c, slope


@pytest.mark.parametrize("name", FORWARD)
def test_forward_dynamics(name: str) -> None:
    case = loaded(name)
    fast = zw.compile(
        case.mechanism.replace(constraints=())
    )  # Pinocchio's results do not include mimic joints
    for s in states_of(case):
        D = fast.forward_dynamics_derivatives(s.q, s.v, s.tau)
        a = fast.forward_dynamics(s.q, s.v, s.tau)
        c, c_by_v = drift_in_body(s)
        by_q = np.zeros_like(s.T)
        for k in range(len(s.v)):
            K = base_rotation_rate(s, k)
            dT = s.T @ K
            da = D.dq @ s.T[:, k] + D.dv @ dT @ s.T.T @ s.v + D.dtau @ dT @ s.T.T @ s.tau
            by_q[:, k] = s.T.T @ (da - dT @ c) + dT.T @ (a - s.T @ c)
        assert relative_error(by_q, s.reference["dqdd_dq"]) < TOLERANCE
        assert relative_error(s.T.T @ D.dv @ s.T - c_by_v, s.reference["dqdd_dv"]) < TOLERANCE
        assert relative_error(s.matrix(D.dtau), np.linalg.inv(s.reference["M"])) < TOLERANCE


@pytest.mark.parametrize("name", INVERSE)
def test_inverse_dynamics(name: str) -> None:
    case = loaded(name)
    fast = zw.compile(case.mechanism)
    for s in states_of(case):
        D = fast.inverse_dynamics_derivatives(s.q, s.v, s.a)
        tau = zw.inverse_dynamics(case.mechanism, s.q, s.v, s.a)
        _, c_by_v = drift_in_body(s)
        by_q = np.zeros_like(s.T)
        for k in range(len(s.v)):
            dT = s.T @ base_rotation_rate(s, k)
            da = dT @ s.T.T @ s.a  # a = T (a_pin + c)
            dtau = D.dq @ s.T[:, k] + D.dv @ dT @ s.T.T @ s.v + D.dtau @ da
            by_q[:, k] = s.T.T @ dtau + dT.T @ tau
        assert relative_error(by_q, s.reference["dtau_dq"]) < TOLERANCE
        assert (
            relative_error(s.T.T @ (D.dv @ s.T + D.dtau @ s.T @ c_by_v), s.reference["dtau_dv"]) < TOLERANCE
        )
        assert relative_error(s.matrix(D.dtau), s.reference["M"]) < TOLERANCE
