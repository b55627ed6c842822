"""Rheonomic constraints, with formulas in the time t, against closed forms, on floats and compiled."""

import numpy as np
import pytest
import sympy as sp

import zwang as zw
from tests.cases import case
from tests.symbolic.machines import X, Y, Z
from zwang.errors import SimulationError, SolveError

t = sp.Symbol("t", real=True)


def bead_on_a_turning_rod(m, omega, mu=0.0):
    """A bead on a line through the origin that rotates at the rate omega, with friction against outward
    sliding.
    """
    x, y, N = sp.symbols("x y N", real=True)
    c, s = sp.cos(omega * t), sp.sin(omega * t)
    slides = (zw.Prismatic("x", axis=X), zw.Prismatic("y", axis=Y))
    laws = [zw.Holonomic("rod", y * c - x * s)]
    if mu:
        laws.append(zw.NonIdeal("friction", "rod", {"x": -mu * N * c, "y": -mu * N * s}))
    return zw.Mechanism("bead", (zw.Body("bead", slides, mass=m),), gravity=(0, 0, 0), constraints=laws)


def test_a_bead_on_a_rough_rod_that_turns_at_a_given_rate():
    c = case("nonideal", "D06_bead_rotating_rough_rod")
    p, start = c["parameters"], c["initial_state"]
    m = bead_on_a_turning_rod(p["m"], p["omega"], p["mu"])
    h, times = 1e-3, np.array(c["times"])
    run = zw.simulate(
        m, q0=[start["r"], 0], v0=[start["rd"], p["omega"] * start["r"]], duration=times[-1], step=h,
        integrator="rk4", progress=False,
    )  # fmt: skip
    assert run.attrs["path"] == "compiled"
    k = np.round(times / h).astype(int)
    q, v = run.q.values[0][k], run.v.values[0][k]
    radial = np.column_stack([np.cos(p["omega"] * times), np.sin(p["omega"] * times)])
    np.testing.assert_allclose((q * radial).sum(axis=1), c["reference"]["r"], rtol=c["tolerance"])
    np.testing.assert_allclose((v * radial).sum(axis=1), c["reference"]["rd"], rtol=c["tolerance"])
    tangential = np.column_stack([-radial[:, 1], radial[:, 0]])
    np.testing.assert_allclose((q * tangential).sum(axis=1), 0, atol=1e-12)


@pytest.mark.parametrize(("integrator", "compiled"), [("rk4", True), ("rk4", False), ("dop853", True)])
def test_a_bead_on_a_smooth_rotating_rod(integrator, compiled):
    """r = r0 cosh(omega t), with the normal force 2 m omega r_dot of the rod."""
    mass, omega, r0, T = 0.4, 2.0, 0.2, 0.25
    m = bead_on_a_turning_rod(mass, omega)
    run = zw.simulate(
        m, q0=[r0, 0], v0=[0, omega * r0], duration=T, step=5e-3, integrator=integrator, compiled=compiled,
        record={"constraints": True}, progress=False,
    )  # fmt: skip
    r = r0 * np.cosh(omega * T)
    end = run.q.values[0][-1]
    np.testing.assert_allclose(end, [r * np.cos(omega * T), r * np.sin(omega * T)], rtol=1e-7)
    rate = omega * r0 * np.sinh(omega * T)
    force = 2 * mass * omega * rate * np.array([-np.sin(omega * T), np.cos(omega * T)])
    recorded = [run[name] for name in run.data_vars if "constraint" in str(name)]
    np.testing.assert_allclose(recorded[0].values[0][-1], force, rtol=1e-5)


def driven_wheel(law):
    wheel = zw.Body("wheel", zw.Revolute("turn", axis=Z), mass=1.0, inertia=(0.3,) * 3)
    return zw.Mechanism("driven", (wheel,), gravity=(0, 0, 0), constraints=(law,))


@pytest.mark.parametrize(
    "law",
    [
        zw.Holonomic("drive", sp.Symbol("turn") - sp.sin(3 * t)),
        zw.Pfaffian("drive", {"turn": 1 + t**2}, rate=-3 * (1 + t**2) * sp.cos(3 * t)),
    ],
)
def test_a_wheel_driven_by_a_formula(law):
    """turn = sin 3t by a constraint of position or of velocity; the torque is the inertia times the
    acceleration.
    """
    m = driven_wheel(law)
    run = zw.simulate(m, v0=[3.0], duration=2.0, step=2e-3, integrator="rk4", record=100, progress=False)
    times = run.time.values
    np.testing.assert_allclose(run.q.values[0][:, 0], np.sin(3 * times), atol=1e-9)
    np.testing.assert_allclose(run.v.values[0][:, 0], 3 * np.cos(3 * times), atol=1e-9)
    t0 = 0.4
    found = zw.constrained_dynamics(m, [np.sin(3 * t0)], [3 * np.cos(3 * t0)], [0.0], time=t0)
    np.testing.assert_allclose(found.acceleration, [-9 * np.sin(3 * t0)], rtol=1e-12)
    slope = 1 if isinstance(law, zw.Holonomic) else 1 + t0**2
    np.testing.assert_allclose(found.forces["drive"], [-0.3 * 9 * np.sin(3 * t0) / slope], rtol=1e-9)


def test_states_are_assembled_at_a_time():
    m = bead_on_a_turning_rod(1.0, 2.0)
    q, v = zw.assemble(m, [0.0, 0.5], [0.0, 0.0], time=np.pi / 4)  # the rod stands upright
    np.testing.assert_allclose(q, [0, 0.5], atol=1e-12)
    np.testing.assert_allclose(v, [-1.0, 0], atol=1e-12)


def test_a_step_of_a_rheonomic_constraint_requires_the_time():
    with pytest.raises(SimulationError, match="'rod' depends on the time"):
        zw.compile(bead_on_a_turning_rod(1.0, 2.0)).step([0.2, 0], [0, 0.4], [0, 0])


def test_a_formula_without_a_derivative_at_a_time_is_told_with_the_time():
    """sqrt(t^5) has the derivative 5 t^4 / (2 sqrt(t^5)), 0 / 0 at t = 0, and t^(5/2) has 5/2 t^(3/2)."""
    z, t = sp.symbols("z t")
    body = zw.Body("base", zw.Prismatic("z", axis=(0, 0, 1)), mass=1)
    m = zw.Mechanism("driven", [body], constraints=[zw.Holonomic("drive", z - sp.sqrt(t**5))])
    with pytest.raises(SolveError, match=r"'drive'.* at t = 0 s: .*another time.* powers of t"):
        zw.assemble(m, [0])
    _, v = zw.assemble(m, [0], time=0.25)
    assert v[0] == pytest.approx(2.5 * 0.25**1.5)
    powers = m.replace(constraints=[zw.Holonomic("drive", z - t ** sp.Rational(5, 2))])
    assert zw.assemble(powers, [0])[1][0] == 0
