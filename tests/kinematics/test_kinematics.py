"""The record of kinematics: equal bit for bit to the functions of (tree, q, v), and to finite differences."""

from __future__ import annotations

import numpy as np
import pytest

import zwang as zw
from tests.mechanisms import moved, random_mechanism, random_state
from zwang.compiler.frontend.trace import trace
from zwang.compiler.ir.interpreter import interpret
from zwang.dynamics import aba, base_inertial_parameters, crba, energy, forward_dynamics, rnea
from zwang.kinematics import jacobians, poses, velocities
from zwang.kinematics.kinematics import Kinematics

SEEDS = range(6)


@pytest.fixture(params=SEEDS, scope="module")
def state(request):
    m = random_mechanism(request.param)
    return m, *random_state(m, request.param)


def assert_same(found, expected):
    for a, b in zip(found, expected, strict=True):
        for x, y in zip(a, b, strict=True):
            np.testing.assert_array_equal(np.asarray(x, float), np.asarray(y, float))


def test_poses_velocities_and_subspaces_equal_those_of_the_functions(state):
    m, q, v, *_ = state
    k = Kinematics(m.tree, q, v)
    assert_same(k.velocities, velocities.link_velocities(m.tree, q, v))
    assert_same(k.poses, poses.link_poses(m.tree, q))
    assert_same(k.joint_poses, [poses.link_pose(link, q) for link in m.tree.links])
    assert_same(k.motion_subspaces, [poses.motion_subspace(link) for link in m.tree.links])
    assert_same(k.world_motion_subspaces, jacobians.world_motion_subspaces(m.tree, k.poses))


def test_frames_equal_those_of_the_functions(state):
    m, q, v, *_ = state
    k = Kinematics(m.tree, q, v)
    for placement in m.tree.placements.values():
        velocity, bias = jacobians.placement_motion(m.tree, q, v, np.zeros(m.nv, int), placement)
        np.testing.assert_array_equal(k.placement_velocity(placement).astype(float), velocity.astype(float))
        np.testing.assert_array_equal(
            k.placement_bias_acceleration(placement).astype(float), bias.astype(float)
        )
        J = jacobians.placement_jacobian(m.tree, poses.link_poses(m.tree, q), placement)
        np.testing.assert_array_equal(k.placement_jacobian(placement).astype(float), J.astype(float))
        p = k.placement_pose(placement).p
        np.testing.assert_array_equal(k.point_jacobian(placement.link, p), k.placement_jacobian(placement))
    np.testing.assert_array_equal(k.frame_pose("tip").R, k.placement_pose(m.tree.placement("tip")).R)


def test_relative_jacobian_is_the_difference_of_the_point_jacobians(state):
    m, q, *_ = state
    k, p, last = Kinematics(m.tree, q), np.array([0.1, -0.2, 0.3]), len(m.tree.links) - 1
    difference = k.point_jacobian(last, p) - k.point_jacobian(0, p)
    np.testing.assert_allclose(
        k.relative_jacobian(0, last, p).astype(float), difference.astype(float), atol=1e-12
    )


def test_bias_accelerations_are_the_derivative_of_the_velocities_at_constant_v(state):
    m, q, v, *_ = state
    tip, h = m.tree.placement("tip"), 1e-5

    def velocity(t):
        return Kinematics(m.tree, moved(m, q, t * v), v).placement_velocity(tip).astype(float)

    found = Kinematics(m.tree, q, v).placement_bias_acceleration(tip).astype(float)
    expected = (velocity(h) - velocity(-h)) / (2 * h)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6 * max(1.0, abs(expected).max()))


def test_dynamics_of_the_record_equal_those_of_q_and_v(state):
    m, q, v, tau, a = state
    tree, k = m.tree, Kinematics(m.tree, q, v)
    pairs = [
        (rnea.rnea_of(k, a), rnea.rnea(tree, q, v, a)),
        (rnea.bias_forces_of(k), rnea.bias_forces(tree, q, v)),
        (crba.crba_of(k), crba.crba(tree, q)),
        (aba.aba_of(k, tau), aba.aba(tree, q, v, tau)),
        (
            forward_dynamics.free_accelerations_of(k, tau),
            forward_dynamics.free_accelerations(tree, q, v, tau),
        ),
        (energy.kinetic_energy_of(k), energy.kinetic_energy(tree, q, v)),
        (energy.potential_energy_of(k), energy.potential_energy(tree, q)),
    ]
    for found, expected in pairs:
        np.testing.assert_array_equal(np.asarray(found, float), np.asarray(expected, float))


def test_each_quantity_is_computed_once_and_kept_for_other_inertias(state):
    m, q, v, *_ = state
    k = Kinematics(m.tree, q, v)
    assert k.poses is k.poses and k.velocities is k.velocities
    other = k.with_inertias_of(base_inertial_parameters.with_base_parameters(m.tree))
    assert other.poses is k.poses and other.joint_poses[0] is k.joint_poses[0]
    with pytest.raises(ValueError, match="different links"):
        k.with_inertias_of(zw.Mechanism(bodies=[zw.Body("a", joint=zw.Revolute("j"), mass=1.0)]).tree)


def test_velocities_without_v_raise_with_the_remedy(state):
    m, q, *_ = state
    with pytest.raises(ValueError, match="generalised velocities v"):
        _ = Kinematics(m.tree, q).velocities


def test_traced_equals_float(state):
    m, q, v, *_ = state

    def function(q, v):
        k = Kinematics(m.tree, q, v)
        return np.concatenate([np.concatenate(x) for x in (*k.velocities, *k.bias_accelerations)])

    (found,) = interpret(trace(function, {"q": q.shape, "v": v.shape}), {"q": q, "v": v}).values()
    expected = function(q, v).astype(float)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12 * max(1.0, abs(expected).max()))


def test_a_free_joint_moves_its_point_along_the_axes_of_the_placed_body():
    """Under a turned parent, for a body with an orientation and a joint with a position."""
    R, place, point = (
        np.array([[0, -1, 0], [1, 0, 0], [0, 0, 1]]),
        np.array([1, 2, 3]),
        np.array([0.5, 0.1, 0]),
    )
    mechanism = zw.Mechanism(
        bodies=[
            zw.Body("parent", zw.Revolute("turn", axis=(1, 0, 0)), mass=1, inertia=(1, 1, 1)),
            zw.Body("b", zw.Free("f", position=point), "parent", place, R, mass=1, inertia=(1, 1, 1)),
        ],
        frames=[zw.Frame("point", "b", point)],
    )
    x, velocity = np.array([0.3, -0.2, 0.7]), np.array([1, 2, -3])
    q = [0.4, *x, *np.array([5, 1, 2, 3]) / 39**0.5]
    parent, found = (zw.frame_pose(mechanism, q, name) for name in ("parent", "point"))
    np.testing.assert_allclose(parent.R.T @ (found.p - parent.p), place + R @ (point + x), atol=1e-12)
    moved = zw.frame_velocity(mechanism, q, [0, *velocity, 4, 5, 6], "point")
    np.testing.assert_allclose(moved[:3], parent.R @ R @ velocity, atol=1e-12)
