"""Gauss's principle and its consequences, on random mechanisms of every joint kind."""

from __future__ import annotations

import numpy as np
import pytest

import zwang as zw
from tests.mechanisms import KINDS, moved, random_mechanism, random_state
from zwang.dynamics import aba, crba, energy

SEEDS = range(12)


@pytest.fixture(params=SEEDS, scope="module")
def state(request):
    m = random_mechanism(request.param)
    return m, *random_state(m, request.param)


def test_every_joint_kind_is_among_the_random_mechanisms():
    kinds = {j.kind for seed in SEEDS for j in random_mechanism(seed).joints}
    assert kinds == {kind.__name__.lower() for kind in KINDS}


def test_crba_equals_the_sum_over_the_bodies(state):
    m, q, *_ = state
    H = zw.mass_matrix(m, q)
    np.testing.assert_allclose(
        H, crba.mass_matrix_from_jacobians(m.tree, q).astype(float), rtol=0, atol=1e-12 * abs(H).max()
    )
    assert np.linalg.eigvalsh(H).min() > 0


def test_the_acceleration_minimises_the_zwang(state):
    """The forward dynamics equals the minimiser of Z by dense least squares over the deviations of all
    bodies.
    """
    m, q, v, tau, _ = state
    rows, right = [], []
    for solid in m.tree.rigid_bodies:
        body = zw.Mechanism(
            bodies=m.bodies, gravity=m.gravity, frames=[zw.Frame("c", solid.body, m.body(solid.body).com)]
        )
        J, Jdv = zw.frame_jacobian(body, q, "c", axes="world"), zw.frame_jacobian_rate(body, q, v, "c")
        R = zw.frame_pose(body, q, "c").R
        I = R @ np.array(m.body(solid.body).inertia, float) @ R.T
        w = J[3:] @ v
        root = np.linalg.cholesky(
            np.block([[solid.mass * np.eye(3), np.zeros((3, 3))], [np.zeros((3, 3)), I]])
        ).T
        free = np.concatenate([m.gravity, -np.linalg.solve(I, np.cross(w, I @ w))])
        rows.append(root @ J)
        right.append(root @ (free - Jdv))
    armature = np.sqrt(np.array(crba.armature(m.tree), float))
    A, b = np.vstack([*rows, np.diag(armature)]), np.concatenate([*right, np.zeros(m.nv)])
    a = np.linalg.solve(A.T @ A, A.T @ b + tau)
    found = zw.forward_dynamics(m, q, v, tau)
    np.testing.assert_allclose(found, a, rtol=1e-9, atol=1e-9 * abs(a).max())


def test_zwang_is_stationary_and_grows_with_the_mass_matrix(state):
    m, q, v, tau, _ = state
    a = zw.forward_dynamics(m, q, v, tau)
    d = np.random.default_rng(1).normal(size=m.nv)
    least = zw.zwang_of(m, q, v, tau, a)
    for sign in (1, -1):
        excess = zw.zwang_of(m, q, v, tau, a + sign * d) - least
        assert excess == pytest.approx(d @ zw.mass_matrix(m, q) @ d / 2, rel=1e-8)


def test_forward_and_inverse_dynamics_are_inverse(state):
    m, q, v, _, a = state
    np.testing.assert_allclose(
        zw.forward_dynamics(m, q, v, zw.inverse_dynamics(m, q, v, a)), a, rtol=1e-9, atol=1e-9
    )


def test_aba_gives_the_same_accelerations(state):
    m, q, v, tau, _ = state
    a = zw.forward_dynamics(m, q, v, tau)
    found = aba.aba(m.tree, q, v, tau).astype(float)
    np.testing.assert_allclose(found, a, rtol=1e-9, atol=1e-10 * abs(a).max())


def test_kinetic_energy_is_the_mass_matrix_form(state):
    m, q, v, *_ = state
    assert zw.energy(m, q, v).kinetic == pytest.approx(v @ zw.mass_matrix(m, q) @ v / 2, rel=1e-12)


def test_energy_changes_by_the_power_of_the_generalised_forces(state):
    m, q, v, tau, _ = state
    a, h = zw.forward_dynamics(m, q, v, tau), 1e-5

    def total(t: float) -> float:
        return sum(zw.energy(m, moved(m, q, t * v + t * t / 2 * a), v + t * a))

    power = (total(h) - total(-h)) / (2 * h)
    assert power == pytest.approx(tau @ v, rel=1e-5, abs=1e-5 * abs(total(0)))


def test_bias_forces_at_rest_are_the_gradient_of_the_potential_energy(state):
    m, q, *_ = state
    h = 1e-5
    slope = [
        (
            zw.energy(m, moved(m, q, h * e), 0 * e).potential
            - zw.energy(m, moved(m, q, -h * e), 0 * e).potential
        )
        / (2 * h)
        for e in np.eye(m.nv)
    ]
    np.testing.assert_allclose(zw.bias_forces(m, q, np.zeros(m.nv)), slope, rtol=1e-6, atol=1e-6)


def test_frame_jacobian_is_the_derivative_of_the_pose(state):
    m, q, v, *_ = state
    h = 1e-5
    forward, back = (zw.frame_pose(m, moved(m, q, s * v), "tip") for s in (h, -h))
    R = zw.frame_pose(m, q, "tip").R
    W = (forward.R - back.R) / (2 * h) @ R.T
    velocity = np.concatenate([(forward.p - back.p) / (2 * h), [W[2, 1], W[0, 2], W[1, 0]]])
    np.testing.assert_allclose(zw.frame_jacobian(m, q, "tip") @ v, velocity, rtol=1e-6, atol=1e-6)
    body = zw.frame_jacobian(m, q, "tip", axes="body") @ v
    np.testing.assert_allclose(np.concatenate([R @ body[:3], R @ body[3:]]), velocity, rtol=1e-6, atol=1e-6)


def test_jacobian_rate_is_the_derivative_of_the_jacobian(state):
    m, q, v, *_ = state
    h = 1e-5
    J = [zw.frame_jacobian(m, moved(m, q, s * v), "tip") @ v for s in (h, -h)]
    np.testing.assert_allclose(
        zw.frame_jacobian_rate(m, q, v, "tip"), (J[0] - J[1]) / (2 * h), rtol=1e-5, atol=1e-5
    )


def test_linear_momentum_is_mass_times_velocity_of_the_centre_of_mass(state):
    m, q, v, *_ = state
    h = 1e-6
    slope = (zw.mass_centre(m, moved(m, q, h * v)) - zw.mass_centre(m, moved(m, q, -h * v))) / (2 * h)
    linear = zw.momentum(m, q, v)[:3]
    matrix = energy.momentum_matrix(m.tree, q).astype(float)
    np.testing.assert_allclose(zw.momentum(m, q, v), matrix @ v, atol=1e-11 * abs(matrix).max())
    np.testing.assert_allclose(linear, energy.total_mass(m.tree) * slope, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(
        energy.mass_centre_jacobian(m.tree, q).astype(float) @ v, slope, rtol=1e-6, atol=1e-6
    )


@pytest.mark.parametrize("seed", range(4))
def test_a_free_mechanism_conserves_momentum_without_gravity(seed):
    base = random_mechanism(seed, kinds=(zw.Revolute, zw.Ball, zw.Prismatic))
    first = zw.Body("base", joint=zw.Free("free"), mass=2.0, inertia=(0.1, 0.2, 0.25))
    others = [b if b.parent != "world" else b.__class__(**{**vars(b), "parent": "base"}) for b in base.bodies]
    m = zw.Mechanism(bodies=[first, *others], gravity=(0, 0, 0))
    q, v, _, _ = random_state(m, seed)
    a, h = zw.forward_dynamics(m, q, v, np.zeros(m.nv)), 1e-5

    def about_origin(t: float) -> np.ndarray:
        at_q, at_v = moved(m, q, t * v + t * t / 2 * a), v + t * a
        p = zw.momentum(m, at_q, at_v)
        return np.concatenate([p[:3], p[3:] + np.cross(zw.mass_centre(m, at_q), p[:3])])

    np.testing.assert_allclose(
        (about_origin(h) - about_origin(-h)) / (2 * h), 0, atol=2e-5 * abs(about_origin(0)).max()
    )
