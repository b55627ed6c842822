"""Motor forces of closed mechanisms: closed forms, virtual work, forward dynamics, MuJoCo and Pinocchio."""

from __future__ import annotations

import runpy
from dataclasses import replace
from pathlib import Path

import mujoco
import numpy as np
import pytest
import scipy.linalg
import sympy as sp

import zwang as zw
from zwang.errors import DescriptionError, ParameterError, SolveError, StateError, UnknownNameError
from zwang.mechanism.samples import double_pendulum, four_bar

EXAMPLES = Path(__file__).parents[2] / "examples"
R, L, CRANK, ROD, PISTON, G, DAMPING = 0.1, 0.35, (2.0, 0.03, 0.02), (0.8, 0.12, 0.01), 1.5, 9.81, 3.0


def slider_crank(mass=PISTON) -> zw.Mechanism:
    """A crank (R), a connecting rod (L) and a piston along x, which is damped; gravity is -y."""
    bodies = [
        zw.Body("crank", zw.Revolute("crank", (0, 0, 1)), mass=CRANK[0], com=(CRANK[1], 0, 0),
                inertia=(0.01, 0.01, CRANK[2])),
        zw.Body("rod", zw.Revolute("rod", (0, 0, 1)), "crank", (R, 0, 0), mass=ROD[0], com=(ROD[1], 0, 0),
                inertia=(0.001, 0.01, ROD[2])),
        zw.Body("piston", zw.Prismatic("piston", (1, 0, 0)), mass=mass),
    ]  # fmt: skip
    pin = zw.Connect("pin", ("rod", (L, 0, 0)), ("piston", (0, 0, 0)))
    return zw.Mechanism("slider-crank", bodies, gravity=(0, -G, 0), constraints=[pin], home=(0, 0, R + L),
                        forces=[zw.Damper("piston", DAMPING)])  # fmt: skip


def motion(samples=121):
    """Angle, speed and acceleration of a crank over more than a turn."""
    t = np.linspace(0, 1.5, samples)
    return 0.4 + 5 * t + 0.6 * np.sin(3 * t), 5 + 1.8 * np.cos(3 * t), -5.4 * np.sin(3 * t)


def closed_form(angle, speed, rate):
    """I q'' + I' q'^2 / 2 + dV/dq + c x'^2-force by the velocities of the centres of mass, with the piston's
    mass PISTON, by complex steps.
    """

    def points(q):
        s, c = np.sin(q), np.cos(q)
        along = np.sqrt(L**2 - R**2 * s**2)
        direction = np.array([along, -R * s]) / L
        return [CRANK[1] * np.array([c, s]), R * np.array([c, s]) + ROD[1] * direction,
                np.array([R * c + along, 0 * s]), np.arcsin(-R * s / L)]  # fmt: skip

    def inertia(q, h=1e-20):
        """By exact derivatives of the points: sum m |p'|^2 + J phi'^2 (differences of complex steps)."""
        rates = [np.imag(x) / h for x in points(q + 1j * h)]
        p1, p2, p3, phi = rates
        masses = (CRANK[0], ROD[0], PISTON)
        return (
            sum(m * (p @ p) for m, p in zip(masses, (p1, p2, p3), strict=True)) + CRANK[2] + ROD[2] * phi**2
        )

    def potential(q):
        p1, p2, _, _ = points(q)
        return G * (CRANK[0] * p1[1] + ROD[0] * p2[1])

    h = 1e-3
    stencil = ((-2, 1 / 12), (-1, -2 / 3), (1, 2 / 3), (2, -1 / 12))
    slope = sum(w * inertia(angle + k * h) for k, w in stencil) / h
    x_rate = np.imag(points(angle + 1e-20j)[2][0]) / 1e-20
    gravity = np.imag(potential(angle + 1e-20j)) / 1e-20
    return inertia(angle) * rate + slope * speed**2 / 2 + gravity + DAMPING * x_rate**2 * speed


def test_the_motor_torque_of_a_slider_crank_is_its_closed_form():
    m = slider_crank()
    found = zw.inverse_dynamics(m, *motion(), independent="crank")
    expected = [closed_form(*state) for state in zip(*motion(), strict=True)]
    np.testing.assert_allclose(found.force("crank"), expected, rtol=1e-9, atol=1e-8)
    assert found.actuated == ("crank",) and found.constraints == ("pin",) * 3


def test_forward_dynamics_of_the_found_torque_give_the_motion_and_the_constraint_forces():
    for m, name in ((slider_crank(), "crank"), (four_bar(), "drive")):
        found = zw.inverse_dynamics(m, *motion(40), independent=name)
        for k in range(0, 40, 3):
            forward = zw.constrained_dynamics(m, found.q[k], found.v[k], found.tau[k])
            np.testing.assert_allclose(forward.acceleration, found.a[k], rtol=1e-10, atol=1e-10)
            pin = m.constraints[0].name
            np.testing.assert_allclose(
                found.constraint_force(pin)[k], forward.forces[pin], rtol=1e-9, atol=1e-9
            )


def test_the_motor_of_a_four_bar_has_the_power_of_its_energy():
    m = four_bar()
    angle, speed, rate = motion(30)
    found = zw.inverse_dynamics(m, angle, speed, rate, independent="drive")
    h = 1e-5

    def energy(k, s):
        """At the time s after the sample k."""
        q = zw.integrate_configuration(m, found.q[k], found.v[k] + s * found.a[k] / 2, s)
        return sum(zw.energy(m, q, found.v[k] + s * found.a[k]))

    for k in range(30):
        power = (energy(k, h) - energy(k, -h)) / (2 * h)
        assert abs(found.force("drive")[k] * speed[k] - power) < 1e-6 * (1 + abs(power))


def test_compiled_forces_are_those_on_floats_also_for_symbols_and_single_precision():
    m, given = slider_crank(), motion(30)
    expected = zw.inverse_dynamics(m, *given, independent="crank")
    found = zw.compile(m).inverse_dynamics(*given, independent="crank")
    np.testing.assert_allclose(found.forces, expected.forces, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(found.multipliers, expected.multipliers, rtol=1e-11, atol=1e-10)
    single = zw.compile(m, dtype="float32").inverse_dynamics(*given, independent="crank")
    np.testing.assert_allclose(single.forces, expected.forces, rtol=1e-3, atol=1e-3)
    fast, states = zw.compile(slider_crank(sp.Symbol("mass"))), (expected.q, expected.v, expected.a)
    masses = np.linspace(0.5, 3, 30)
    many = fast.inverse_dynamics(*states, actuated="crank", params={"mass": masses})
    for k in (0, 13, 29):
        one = zw.inverse_dynamics(slider_crank(masses[k]), *(x[k] for x in states), actuated="crank")
        np.testing.assert_allclose(many.forces[k], one.forces, rtol=1e-11)
    with pytest.raises(ParameterError, match="the loops are closed"):
        fast.inverse_dynamics(*given, independent="crank", params={"mass": masses})
    q = expected.q.copy()
    q[3] = np.nan  # a world that is not finite concerns itself alone
    lost = zw.compile(m).inverse_dynamics(q, *states[1:], actuated="crank").forces
    assert np.isnan(lost[3]).all() and np.isfinite(np.delete(lost, 3, axis=0)).all()


def test_redundant_motors_and_rows_share_by_the_least_norm():
    """Against null spaces and pseudo-inverses of SciPy, with the mass matrix and bias forces."""
    m, names = four_bar(), ("drive", "first", "second")
    whole = zw.inverse_dynamics(m, *motion(8), independent="drive")
    found = zw.inverse_dynamics(m, whole.q, whole.v, whole.a, actuated=names[:2])
    for k in range(8):
        q, v, a = whole.q[k], whole.v[k], whole.a[k]
        tau = zw.mass_matrix(m, q) @ a + zw.bias_forces(m, q, v)
        ends = (("coupler", (0.8, 0, 0)), ("rocker", (0.6, 0, 0)))
        frames = [zw.Frame(f"end {i}", body, point) for i, (body, point) in enumerate(ends)]
        jacobians = [zw.frame_jacobian(m.replace(frames=frames), q, f.name)[:3] for f in frames]
        A = jacobians[0] - jacobians[1]
        B, S = scipy.linalg.null_space(A, rcond=1e-10), np.eye(3)[:2]
        forces = np.linalg.pinv((S @ B).T) @ B.T @ tau
        np.testing.assert_allclose(found.forces[k], forces, rtol=1e-9, atol=1e-10)
        multipliers = np.linalg.pinv(A.T, rcond=1e-10) @ (tau - S.T @ forces)
        np.testing.assert_allclose(found.multipliers[k], multipliers, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize(
    ("example", "name", "actuated"),
    [("bicycle", "numbers", ("roll", "steer", "rear")), ("rolling_disc", "disc", None)],
)
def test_rolling_wheels(example, name, actuated):
    """Forces act, forward dynamics give the accelerations, and these the forces."""
    space = runpy.run_path(str(EXAMPLES / f"{example}.py"))
    m = space[name]
    m = m.subs(dict.fromkeys(m.symbols, 0.7)) if m.symbols else m
    rng = np.random.default_rng(0)
    q0 = np.array(m.home or m.neutral, float) + 0.1 * rng.normal(size=m.nq)
    q, v = zw.assemble(m, q0, rng.normal(size=m.nv))
    rows = len(zw.constrained_dynamics(m, q, v, np.zeros(m.nv)).force)
    actuated = actuated or m.speed_names[-(m.nv - rows):]  # fmt: skip
    tau = np.zeros(m.nv)
    tau[[m.speed_names.index(x) for x in actuated]] = rng.normal(size=len(actuated))
    forward = zw.constrained_dynamics(m, q, v, tau)
    found = zw.inverse_dynamics(m, q, v, forward.acceleration, actuated=actuated)
    np.testing.assert_allclose(found.tau, tau, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(found.multipliers, forward.force, rtol=1e-8, atol=1e-8)
    compiled = zw.compile(m).inverse_dynamics(q, v, forward.acceleration, actuated=actuated)
    np.testing.assert_allclose(compiled.forces, found.forces, rtol=1e-10, atol=1e-10)


def test_a_driven_constraint_has_the_torque_of_the_motor():
    """crank = w t as a constraint: its multiplier is the torque that a motor needs at its time."""
    m, t, w = slider_crank(), 0.3, 4.0
    q, v, a = zw.identify.closed_loop_motion(m, [w * t], [w], independent="crank")
    drive = zw.Holonomic("drive", sp.Symbol("crank") - w * sp.Symbol("t"))
    driven = m.replace(constraints=[*m.constraints, drive])
    motor = zw.inverse_dynamics(m, q[0], v[0], a[0], actuated=["crank"])
    times, states = np.array([t, t]), [np.repeat(x, 2, axis=0) for x in (q, v, a)]
    for solve in (lambda *x, **k: zw.inverse_dynamics(driven, *x, **k), zw.compile(driven).inverse_dynamics):
        held = solve(*states, actuated=[], time=times)
        np.testing.assert_allclose(held.constraint_force("drive")[:, 0], motor.forces[0], rtol=1e-9)
        # a motor of the piston could do all of it, or any part: the least norm is none
        shared = solve(*states, actuated=["piston"], time=times)
        np.testing.assert_allclose(shared.forces, 0, atol=1e-12)
        np.testing.assert_allclose(shared.multipliers, held.multipliers, rtol=1e-9, atol=1e-9)
        with pytest.raises(StateError, match=r"violates constraint 'drive'.*in state 1"):
            solve(*states, actuated=[], time=[t, t + 0.1])


def test_mujocos_matrices_give_the_same_torque(tmp_path):
    m = four_bar()
    path = tmp_path / "four_bar.xml"
    zw.write_mjcf(m, path, strict=False)
    model = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(model)
    found = zw.inverse_dynamics(m, *motion(7), independent="drive")
    for k in range(7):
        data.qpos[:], data.qvel[:] = found.q[k], found.v[k]
        mujoco.mj_forward(model, data)
        M = np.zeros((3, 3))
        mujoco.mj_fullM(model, data, M)
        J = data.efc_J.reshape(-1, 3)[:3]
        B = scipy.linalg.null_space(J, rcond=1e-9)[:, 0]
        tau = B @ (M @ found.a[k] + data.qfrc_bias) / B[0]
        np.testing.assert_allclose(found.forces[k], tau, rtol=1e-8, atol=1e-8)


def test_what_has_no_answer_is_told():
    m = slider_crank()
    found = zw.inverse_dynamics(m, *motion(5), independent="crank")
    states = (found.q, found.v, found.a)
    for wrong, text in ((2, "the accelerations break"), (1, "the velocities break"), (0, "violates")):
        broken = list(states)
        broken[wrong] = broken[wrong] + [0, 0, 0.01]
        with pytest.raises(StateError, match=rf"{text} constraint 'pin'.* its residual is -?0\.01"):
            zw.inverse_dynamics(m, *broken, actuated="crank")
    with pytest.raises(SolveError, match="cannot exert the forces of this motion"):
        zw.inverse_dynamics(double_pendulum(), [0.3, 0], [0, 0], [0, 0], actuated="elbow")
    with pytest.raises(SolveError, match="singular position"):  # at the dead centre the piston is powerless
        zw.inverse_dynamics(m, [0, 0, R + L], [0, 0, 0], [0, 0, 0], actuated="piston")
    with pytest.raises(UnknownNameError, match="actuated velocity"):
        zw.inverse_dynamics(m, *states, actuated="wheel")
    with pytest.raises(UnknownNameError, match="'pin'"):
        found.constraint_force("loop")
    soft = m.replace(constraints=[replace(m.constraints[0], softness=zw.Softness())])
    with pytest.raises(DescriptionError, match=r"constraint 'pin'.*softness=None"):
        zw.inverse_dynamics(soft, *states, actuated="crank")
    edge = m.replace(constraints=[*m.constraints, zw.NoSideSlip("edge", "rod")])
    with pytest.raises(DescriptionError, match="'edge' is one of velocities"):
        zw.inverse_dynamics(edge, *motion(5), independent="crank")
