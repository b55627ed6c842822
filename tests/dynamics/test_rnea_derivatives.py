"""Derivatives of inverse dynamics from sums over the subtrees: against differences of RNEA, and compiled."""

from __future__ import annotations

import numpy as np
import pytest

import zwang as zw
from tests.mechanisms import moved, random_mechanism, random_state
from zwang.dynamics.bias_force_derivative import bias_force_derivative
from zwang.dynamics.crba import crba
from zwang.dynamics.rnea import bias_forces, rnea
from zwang.dynamics.rnea_derivatives import RneaDerivatives
from zwang.kinematics.kinematics import Kinematics

STEP = 1e-5


def differences(function, nv: int) -> np.ndarray:
    """Central differences of function(displacement (nv,)), a column for each direction."""
    columns = [(function(STEP * d) - function(-STEP * d)) / (2 * STEP) for d in np.eye(nv)]
    return np.stack(columns, axis=1)


def derivatives(mechanism: zw.Mechanism, q, v, a) -> list[np.ndarray]:
    """By displacements, velocities and accelerations, on floats."""
    own = RneaDerivatives(Kinematics(mechanism.tree, q, v), a)
    arrays = own.by_displacement(), own.by_velocity(), own.by_acceleration()
    return [own.dense(array).astype(float) for array in arrays]


def assert_close(found, expected, tolerance: float) -> None:
    assert np.abs(found - expected).max() <= tolerance * max(1, np.abs(expected).max())


@pytest.mark.parametrize("seed", range(8))
def test_derivatives_of_random_mechanisms_are_those_of_rnea(seed):
    m = random_mechanism(seed)
    q, v, _, a = random_state(m, seed)
    by_q, by_v, M = derivatives(m, q, v, a)
    assert_close(by_q, differences(lambda d: rnea(m.tree, moved(m, q, d), v, a), m.nv), 2e-9)
    assert_close(by_v, differences(lambda d: rnea(m.tree, q, v + d, a), m.nv), 2e-9)
    assert_close(M, crba(m.tree, q), 1e-13)
    slope = bias_force_derivative(Kinematics(m.tree, q, v)).astype(float)
    assert_close(slope, differences(lambda d: bias_forces(m.tree, q, v + d), m.nv), 2e-9)


def many_branches(limbs: int = 2, length: int = 6) -> zw.Mechanism:
    """A free body with limbs of joints about alternating axes: so many pairs that loops visit them."""
    bodies = [zw.Body("base", zw.Free("base"), mass=3.0, inertia=(0.1, 0.2, 0.15), com=(0.01, 0, 0.02))]
    for limb in range(limbs):
        for k in range(length):
            name = f"l{limb}_{k}"
            joint = zw.Revolute(name, axis=[(1, 0, 0), (0, 1, 0), (0, 0, 1)][(k + limb) % 3], armature=0.02)
            parent = f"l{limb}_{k - 1}" if k else "base"
            position = (0.1, 0.2 * limb, -0.1) if k == 0 else (0, 0.05, -0.3)
            bodies.append(
                zw.Body(
                    name,
                    joint,
                    parent,
                    position,
                    mass=0.5 + 0.1 * k,
                    com=(0.02, 0, -0.15),
                    inertia=(0.01, 0.012, 0.003),
                )
            )
    return zw.Mechanism("limbs", bodies, forces=[zw.Damper("l1_2", 0.3), zw.Spring("l0_1", 2.0)])


def test_compiled_derivatives_of_many_velocities_are_those_on_floats():
    m = many_branches()
    fast = zw.compile(m)
    q, v, _, a = random_state(m, 5)
    by_q, by_v, M = derivatives(m, q, v, a)
    damping, stiffness = m.joint("l1_2").v.start, m.joint("l0_1").v.start
    by_v[damping, damping] += 0.3
    by_q[stiffness, stiffness] += 2.0
    found = fast.inverse_dynamics_derivatives(q, v, a)
    for result, expected in ((found.dq, by_q), (found.dv, by_v), (found.dtau, M)):
        assert_close(result, expected, 1e-12)
    forward = fast.forward_dynamics_derivatives(q, v, fast.inverse_dynamics(q, v, a))
    for result, expected in ((forward.dq, -by_q), (forward.dv, -by_v), (forward.dtau, np.eye(m.nv))):
        assert_close(result, np.linalg.solve(M, expected), 1e-11)


def test_a_distance_from_the_world_costs_no_accuracy():
    m = many_branches()
    q, v, _, a = random_state(m, 2)
    here = derivatives(m, q, v, a)
    q[:3] += (1e6, -2e6, 3e6)
    for found, expected in zip(derivatives(m, q, v, a), here, strict=True):
        assert_close(found, expected, 1e-8)  # the positions of the links have an error of 1e-10


def test_a_mechanism_without_velocities_has_empty_derivatives():
    m = zw.Mechanism("fixed", [zw.Body("block", mass=1.0)])
    assert [x.shape for x in derivatives(m, np.zeros(0), np.zeros(0), np.zeros(0))] == [(0, 0)] * 3
