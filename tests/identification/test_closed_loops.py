"""Regressors and fits of mechanisms with loops, by closed forms and energy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import sympy as sp
import xarray as xr

import zwang as zw
from zwang.api.compilation.closed_loops import closed_loops
from zwang.errors import DependentVelocitiesError, DescriptionError, ShapeError, SolveError, UnknownNameError
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.samples import double_pendulum, four_bar

GROUND, LENGTHS, MASSES = 0.4, (0.3, 0.5, 0.35, 0.45), (0.8, 0.6, 0.9, 0.5)
DRIVES = ("left", "right")


def rod(name: str, parent: str, x: float, joint: str, length: float, mass: float) -> zw.Body:
    inertia = mass * length**2 / 12
    return zw.Body(name, zw.Revolute(joint, axis=(0, -1, 0)), parent=parent, position=(x, 0, 0), mass=mass,
                   com=(length / 2, 0, 0), inertia=(inertia / 1e3, inertia, inertia))  # fmt: skip


def five_bar(scale: float = 1.0) -> Mechanism:
    """Two cranks and two couplers of uniform rods in a vertical plane, angles from x towards z."""
    a, b, c, d, ground = (scale * x for x in (*LENGTHS, GROUND))
    bodies = (
        rod("crank1", "world", 0, "left", a, MASSES[0]),
        rod("coupler1", "crank1", a, "first", b, MASSES[1]),
        rod("crank2", "world", ground, "right", c, MASSES[2]),
        rod("coupler2", "crank2", c, "second", d, MASSES[3]),
    )
    loop = zw.Connect("loop", ("coupler1", (b, 0, 0)), ("coupler2", (d, 0, 0)))
    start = (1.8, -1.2, 1.2, 1.2)
    home = zw.assemble(zw.Mechanism("five-bar", bodies, constraints=(loop,)), start)[0]
    return zw.Mechanism(
        "five-bar", bodies, constraints=(loop,), home=tuple(home), gravity=(0, 0, -9.81 * scale)
    )


def lagrangian(q, v) -> float:
    """Kinetic less potential energy of the five-bar by the angles and velocities of its cranks.

    The tip is the intersection of two circles, velocities are complex-step derivatives, and a rod with ends A
    and B has the kinetic energy m (vA^2 + vA vB + vB^2) / 6.
    """
    a, b, c, d = LENGTHS
    f, g = np.asarray(q) + 1e-30j * np.asarray(v)
    P = np.array([a * np.cos(f), a * np.sin(f)])
    Q = np.array([GROUND + c * np.cos(g), c * np.sin(g)])
    D = Q - P
    square = D @ D
    along = (b**2 - d**2 + square) / (2 * square)
    tip = P + along * D + np.sqrt(b**2 / square - along**2) * np.array([-D[1], D[0]])
    ends = ((np.zeros(2), P), (P, tip), (np.array([GROUND, 0]), Q), (Q, tip))
    L = 0.0
    for mass, (A, B) in zip(MASSES, ends, strict=True):
        u, w = A.imag / 1e-30, B.imag / 1e-30
        L += mass * (u @ u + u @ w + w @ w) / 6 - mass * 9.81 * (A[1] + B[1]).real / 2
    return L


def lagrange_forces(q, v, a) -> np.ndarray:
    """d/dt dL/dv - dL/dq at one state, by differences."""
    h, unit = 1e-3, np.eye(2)

    def momentum(q, v):
        return np.array([(lagrangian(q, v + h * e) - lagrangian(q, v - h * e)) / (2 * h) for e in unit])

    rate = (momentum(q + h * v, v + h * a) - momentum(q - h * v, v - h * a)) / (2 * h)
    by_q = [(lagrangian(q + h * e, v) - lagrangian(q - h * e, v)) / (2 * h) for e in unit]
    return rate - by_q


def values(m: Mechanism) -> np.ndarray:
    return np.array([float(p.value) for p in zw.identify.parameters(m)])


def drive(samples: int, seed: int = 0) -> tuple[np.ndarray, ...]:
    """time, q, v, a of the five-bar's cranks."""
    t = np.arange(samples) * 0.01
    rng = np.random.default_rng(seed)
    q, v, a = np.zeros((3, samples, 2))
    for j, middle in enumerate((1.8, 1.2)):
        q[:, j] = middle
        for w in (1.7, 3.1, 5.3):
            size, phase = 0.15 * rng.normal(), 6.28 * rng.uniform()
            q[:, j] += size * np.sin(w * t + phase)
            v[:, j] += size * w * np.cos(w * t + phase)
            a[:, j] -= size * w**2 * np.sin(w * t + phase)
    return t, q, v, a


def test_the_forces_of_a_five_bar_are_those_of_lagrange():
    m = five_bar()
    _, q, v, a = drive(200)
    states = zw.identify.closed_loop_motion(m, q, v, a, independent=DRIVES)
    tau = zw.identify.regressor(m, *states, independent=DRIVES) @ values(m)
    for k in (0, 70, 150):
        np.testing.assert_allclose(tau[k], lagrange_forces(q[k], v[k], a[k]), rtol=1e-4, atol=1e-4)


def test_random_motions_of_a_five_bar_keep_its_loop_closed():
    """The gap of the loop along q + e v + e^2 a / 2 is of third order, and two motions are independent."""
    m, (a, b, c, d) = five_bar(), LENGTHS
    q, v, acceleration, N = closed_loops(m).random_motions(20, np.random.default_rng(0), 2.0, np.ones(4))

    def gap(q):
        angles = np.exp(1j * np.cumsum(q.reshape(-1, 2, 2), axis=-1))
        return angles[:, 0] @ [a, b] - angles[:, 1] @ [c, d] - GROUND

    assert np.abs(gap(q)).max() < 1e-9 and N.shape[1:] == (4, 2)
    for motion in (1e-6 * N[..., 0], 1e-6 * N[..., 1], 1e-6 * v):
        assert np.abs(gap(q + motion) - gap(q - motion)).max() < 1e-13
    for e in (1e-3, 1e-4):
        assert np.abs(gap(q + e * v + e**2 * acceleration / 2)).max() < 1e4 * e**3
    np.testing.assert_allclose(np.linalg.matrix_rank(np.concatenate([N, v[..., None]], axis=-1)), 2)


def test_the_power_of_a_four_bars_motor_is_the_rate_of_its_energy():
    m, t = four_bar(), np.linspace(0, 3, 3001)
    angle = 3 * t + 0.3 * np.sin(4 * t)  # whole turns
    speed, rate = 3 + 1.2 * np.cos(4 * t), -4.8 * np.sin(4 * t)
    start = zw.assemble(m, m.home, positions={"drive": float(angle[0])})[0]
    q, v, a = zw.identify.closed_loop_motion(
        m, angle[:, None], speed[:, None], rate[:, None], independent="drive", start=start
    )
    tau = zw.identify.regressor(m, q, v, a, independent=["drive"]) @ values(m)
    energy = np.array([sum(zw.energy(m, *state)) for state in zip(q, v, strict=True)])
    power = np.gradient(energy, t, edge_order=2)
    np.testing.assert_allclose((tau[:, 0] * v[:, 0])[5:-5], power[5:-5], atol=2e-4 * abs(power).max())
    # and applied to the motor, it gives the acceleration
    for k in (100, 1500):
        found = zw.constrained_dynamics(m, q[k], v[k], [tau[k, 0], 0, 0])
        np.testing.assert_allclose(found.acceleration, a[k], atol=1e-9)


def test_velocities_and_accelerations_follow_the_coordinates():
    m = five_bar()
    t, *given = drive(300)
    q, v, a = zw.identify.closed_loop_motion(m, *given, independent=DRIVES)
    np.testing.assert_allclose(np.gradient(q, t, axis=0)[2:-2], v[2:-2], atol=5e-3)
    np.testing.assert_allclose(np.gradient(v, t, axis=0)[2:-2], a[2:-2], atol=5e-2)


def test_labelled_coordinates_of_a_loop_are_read_by_their_labels():
    _, q, v, a = drive(20)
    labelled = [xr.DataArray(x, dims=("time", d), coords={d: list(DRIVES)})[:, ::-1]
                for x, d in ((q, "coordinate"), (v, "speed"), (a, "speed"))]  # fmt: skip
    plain, named = (
        zw.identify.closed_loop_motion(five_bar(), *x, independent=DRIVES) for x in ((q, v, a), labelled)
    )
    for x, y in zip(plain, named, strict=True):
        np.testing.assert_array_equal(y, x)


def test_base_parameters_of_loops():
    """A planar four-bar has 8 (two of each first moment, and the inertias, less one combination), and the
    forces at the motor of a fit are those of beta, in millimetres, too. The mass of the first coupler acts by
    the parallel axis theorem.
    """
    base = zw.identify.base_parameters(four_bar(), independent=["drive"])
    assert len(base) == 8 and base.gap > 1e8
    m = five_bar(scale=1e-3)
    base = zw.identify.base_parameters(m, independent=DRIVES)
    assert base.combinations[0].startswith("mc_crank1_x + 0.0003 m_coupler1 + ")
    assert base.combinations[2].startswith("I_crank1_yy + 9e-08 m_coupler1 + ")
    assert len(base) < len(zw.identify.base_parameters(m))
    _, q, v, a = drive(100, seed=3)
    Y = zw.identify.regressor(
        m, *zw.identify.closed_loop_motion(m, q, v, a, independent=DRIVES), independent=DRIVES
    )
    forces = Y @ values(m)
    found = Y[..., list(base.independent)] @ base.values
    np.testing.assert_allclose(found, forces, rtol=0, atol=1e-9 * np.abs(forces).max())


def test_true_parameters_of_a_five_bar_lie_within_their_intervals():
    true = five_bar()
    model = true.replace(
        bodies=[replace(b, mass=2 * b.mass, inertia=2 * np.array(b.inertia)) for b in true.bodies]
    )
    t, *given = drive(1500)
    q, v, a = zw.identify.closed_loop_motion(true, *given, independent=DRIVES)
    Y = zw.identify.regressor(true, q, v, a, independent=DRIVES)
    tau = np.zeros_like(q)
    tau[:, [true.joint(n).v.start for n in DRIVES]] = Y @ values(true)
    inside = []
    for seed in range(6):
        noisy = tau.copy()
        noisy[:, [0, 2]] += 0.05 * np.random.default_rng(seed).normal(size=(len(t), 2))
        found = zw.identify.fit(model, zw.identify.Measurements(t, q, v, a, noisy), independent=DRIVES)
        expected, (lower, upper) = found.base.matrix @ values(true), found.interval.T
        inside.append(np.mean((lower <= expected) & (expected <= upper)))
        assert found.is_consistent()
    assert np.mean(inside) > 0.85
    assert "left" in str(zw.identify.report(found)) and found.force_names == DRIVES


def test_wrong_arguments_name_the_remedy():
    m, zero = four_bar(), np.zeros(3)
    with pytest.raises(UnknownNameError, match="joint"):
        zw.identify.regressor(m, zero, zero, zero, independent=["motor"])
    with pytest.raises(DescriptionError, match="has no constraints"):
        zw.identify.regressor(double_pendulum(), [0, 0], [0, 0], [0, 0], independent=["elbow"])
    with pytest.raises(DescriptionError, match="give each independent velocity once"):
        zw.identify.regressor(m, zero, zero, zero, independent=["drive", "drive"])
    soft = m.replace(constraints=[replace(m.constraints[0], softness=zw.Softness())])
    with pytest.raises(DescriptionError, match="is soft"):
        zw.identify.regressor(soft, zero, zero, zero, independent=["drive"])
    with pytest.raises(DependentVelocitiesError, match="do not determine all others"):
        zw.identify.regressor(five_bar(), *np.zeros((3, 4)), independent=["left"])
    with pytest.raises(SolveError, match="cannot be closed at"):
        zw.identify.closed_loop_motion(five_bar(), [[3.14, 0.0]], independent=DRIVES)
    with pytest.raises(ShapeError, match=r"q must have the shape \(N, 2\)"):
        zw.identify.closed_loop_motion(five_bar(), [0.0, 1.0], independent=DRIVES)
    with pytest.raises(DescriptionError, match="independent= needs"):
        x = sp.symbols("x1:4")
        zw.identify.regressor(m, x, x, x, independent=["drive"])


def test_coupled_joints_are_found_by_the_sums_that_move_them():
    """A gripper whose right finger moves by -2 times the left one: (m_l + 4 m_r) a + (d_l + 4 d_r) v + k x +
    (f_l + 2 f_r) sign v = u. The dry friction acts at the right finger, and that of the model at both.
    """

    def gripper(mass, damping, friction):
        fingers = [
            zw.Body(f"finger_{x}", zw.Prismatic(x, axis=(1, 0, 0), friction=f), mass=m)
            for x, m, f in zip("lr", mass, friction, strict=True)
        ]
        forces = [zw.Spring("l", 30), *map(zw.Damper, "lr", damping)]
        coupling = zw.JointCoupling("coupling", "r", "l", (0, -2))
        return zw.Mechanism("gripper", fingers, constraints=[coupling], forces=forces)

    t, middles = np.arange(201) * 0.01, (np.arange(800) + 0.5) * 0.0025
    push = 3 * np.sin(4 * t) + 3 * np.sin(9.3 * t + 1)
    acting = np.outer(np.interp(middles, t, push), [1, 0])
    settings = {"step": 0.0025, "integrator": "rk4"}
    q, *_ = zw.compile(gripper((0.2, 0.1), (1.2, 0.2), (0, 0.2))).rollout(
        [0, 0], [0, 0], acting, steps=800, every=4, **settings
    )
    q = np.concatenate([[[0, 0]], q]) + 1e-4 * np.random.default_rng(0).normal(size=(201, 2))
    model, kinds = gripper((0.15, 0.15), (1.0, 0.5), (0.2, 0.1)), ("inertia", "damping", "friction")
    fit = zw.identify.fit_by_simulation(model, t, q, np.outer(push, [1, 0]), kinds=kinds, **settings)
    true = {"m_finger_l + 4 m_finger_r": 0.6, "damping_l + 4 damping_r": 2, "friction_l + 2 friction_r": 0.4}
    assert set(true) == set(fit.known.combinations)
    for name, (low, high) in zip(fit.known.combinations, fit.interval, strict=True):
        assert low < true[name] < high and high - low < 0.02 * true[name]
