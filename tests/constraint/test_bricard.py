"""Bricard's trihedral loop: six unit bars with twists of 90 degrees; overconstrained, one degree of
freedom.
"""

from functools import cache

import numpy as np
import pytest

import zwang as zw
from tests.symbolic.machines import Z

TWISTS = np.array([1, -1, 1, -1, 1, -1]) * np.pi / 2
INERTIA = np.diag([1e-4, 1 / 12, 1 / 12])
GRAVITY = 9.81


def rotation_x(angle):
    s, c = np.sin(angle), np.cos(angle)
    return np.array([[1, 0, 0], [0, c, -s], [0, s, c]])


def rotation_z(angle):
    s, c = np.sin(angle), np.cos(angle)
    return np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]])


def bricard():
    bodies, parent, position, rotation = [], "world", (0, 0, 0), np.eye(3)
    for k in range(5):
        bodies.append(
            zw.Body(f"bar {k}", zw.Revolute(f"hinge {k}", axis=Z), parent, position, rotation,
                    mass=1.0, com=(0.5, 0, 0), inertia=np.diag(INERTIA))
        )  # fmt: skip
        parent, position, rotation = f"bar {k}", (1, 0, 0), rotation_x(TWISTS[k])
    point_on_axis = np.array(position) + rotation @ Z
    ground = np.array([-1, 0, 0])
    axis = rotation_x(TWISTS[5]).T @ Z
    hinge = (zw.Connect("hinge", (parent, position), ("world", ground)),
             zw.Connect("hinge axis", (parent, point_on_axis), ("world", ground + axis)))  # fmt: skip
    return zw.Mechanism("bricard", tuple(bodies), gravity=(0, -GRAVITY, 0), constraints=hinge)


@cache
def motion(signs):
    """The motion of ten seconds under gravity, which starts with the bars along the edges of a cube."""
    m = bricard()
    q0, v0 = zw.assemble(m, np.array(signs) * np.pi / 2, [0.1] * 5)
    run = zw.simulate(m, q0=q0, v0=v0, duration=10, step=1e-3, integrator="rk4", record=20, progress=False)
    return m, run.q.values[0], run.v.values[0]


STARTS = [(1, -1, 1, -1, 1), (-1, 1, -1, 1, -1)]


def bars(q):
    """Centres and orientations of the bars, by products of rotations."""
    R, p, poses = np.eye(3), np.zeros(3), []
    for angle, twist in zip(q, TWISTS[:5], strict=True):
        R = R @ rotation_z(angle)
        poses.append((p + R @ (0.5, 0, 0), R))
        p, R = p + R @ (1, 0, 0), R @ rotation_x(twist)
    return poses


def energy(q, v, dt=1e-5):
    """The total energy by central differences of the bars' poses, independent of the package's dynamics."""
    total = 0.0
    for (p0, R0), (p, R), (p1, R1) in zip(bars(q - v * dt), bars(q), bars(q + v * dt), strict=True):
        u, W = (p1 - p0) / (2 * dt), R.T @ (R1 - R0) / (2 * dt)
        w = np.array([W[2, 1] - W[1, 2], W[0, 2] - W[2, 0], W[1, 0] - W[0, 1]]) / 2
        total += u @ u / 2 + w @ INERTIA @ w / 2 + GRAVITY * p[1]
    return total


def test_the_overconstrained_loop_has_one_degree_of_freedom_in_every_position():
    m, q, v = motion(STARTS[0])
    for state in zip(q[::50], v[::50], strict=True):
        J = zw.constrained_dynamics(m, *state, np.zeros(5)).rows.J
        assert J.shape == (6, 5) and np.linalg.matrix_rank(J, tol=1e-9) == 4
    # Gruebler's formula for six bars and six hinges gives 6 (6 - 1) - 5 * 6 = 0 degrees of freedom
    assert np.ptp(q[:, 1]) > np.radians(239), "from -120 to 120 degrees: inside out"


@pytest.mark.parametrize("signs", STARTS)
def test_the_hinge_angles_satisfy_the_closure_equation(signs):
    """Every other angle is equal, and cos a + cos b + cos a cos b = 0.

    Source: Chen, You, Tarnai, Int. J. Solids Struct. 42 (2005) 2287.
    """
    _, q, v = motion(signs)
    np.testing.assert_allclose(q[:, [2, 4]], q[:, [0, 0]], atol=1e-12)
    np.testing.assert_allclose(q[:, 3], q[:, 1], atol=1e-12)
    a, b = np.cos(q[:, 0]), np.cos(q[:, 1])
    np.testing.assert_allclose(a + b + a * b, 0, atol=1e-12)
    np.testing.assert_allclose(v[:, [2, 4]], v[:, [0, 0]], atol=1e-10)


@pytest.mark.parametrize("signs", STARTS)
def test_the_total_energy_is_conserved(signs):
    _, q, v = motion(signs)
    energies = [energy(*state) for state in zip(q, v, strict=True)]
    np.testing.assert_allclose(energies, energies[0], atol=2e-7)
    assert np.abs(v).max() > 1, "it moves"
