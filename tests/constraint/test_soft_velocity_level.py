"""Softness of constraints by formula and at velocity level: closed forms, and the limit of hard ones."""

import numpy as np
import pytest
import sympy as sp

import zwang as zw
from zwang.errors import DescriptionError

SOFT = zw.Softness(solref=(0.05, 0.7), solimp=(0.8, 0.95, 0.01, 0.4, 3))
ALMOST_HARD = zw.Softness(solref=(0.002, 1.0), solimp=(0.9999, 0.9999, 0.001, 0.5, 2))


def particle(*constraints):
    """A particle of 2 kg on three slides, without gravity."""
    joint = tuple(zw.Prismatic(n, axis=a) for n, a in zip("xyz", np.eye(3).tolist(), strict=True))
    body = zw.Body("bob", joint=joint, mass=2.0)
    return zw.Mechanism("particle", [body], constraints=constraints, gravity=(0, 0, 0))


def sled(softness):
    """A knife edge at the centre of mass of a body in the plane."""
    body = zw.Body("sled", zw.Planar("p"), mass=2, inertia=(0.1, 0.1, 0.1))
    return zw.Mechanism("sled", [body], constraints=[zw.NoSideSlip("edge", "sled", softness=softness)])


def disc(softness):
    wheel = zw.Body("wheel", zw.Free("w"), mass=1.5, inertia=(0.02, 0.03, 0.02))
    roll = zw.Rolling("roll", "wheel", radius=0.2, axis=(0, 1, 0), softness=softness)
    return zw.Mechanism("disc", [wheel], constraints=[roll])


def circle(softness):
    x, z = sp.symbols("x z", real=True)
    return particle(zw.Holonomic("ring", sp.sqrt(x**2 + z**2) - 1, softness=softness))


def skate(softness):
    x = sp.Symbol("x", real=True)
    return particle(
        zw.Pfaffian("skate", {"y": 1, "x": -sp.sin(x)}, rate=sp.Symbol("t") / 2, softness=softness)
    )


def state_of(m, seed=0):
    rng = np.random.default_rng(seed)
    q = np.array(m.neutral, float)
    q = zw.integrate_configuration(m, q, 0.3 * rng.normal(size=m.nv), 1.0)
    if m.name == "disc":
        q[:3] = [0.1, 0.2, 0.19]
    return q, rng.normal(size=m.nv)


def test_a_holonomic_formula_is_as_soft_as_the_coupling_with_the_same_meaning():
    """The formula z - x^2 / 2 against MuJoCo's polynomial joint coupling, with Jdot v in both."""
    x, z = sp.symbols("x z", real=True)
    formula = particle(zw.Holonomic("f", z - 0.3 - x**2 / 2, softness=SOFT))
    coupling = particle(zw.JointCoupling("f", "z", "x", (0.3, 0, 0.5), softness=SOFT))
    q, v, tau = np.array([0.2, 0, 0.4]), np.array([0.7, 0, -0.2]), np.array([1.0, 2.0, 3.0])
    ours, theirs = (zw.constrained_dynamics(m, q, v, tau).rows for m in (formula, coupling))
    np.testing.assert_allclose(ours.J, theirs.J, atol=1e-14)
    curvature = v[0] ** 2  # -Jdot v of z - x^2 / 2, which MuJoCo's couplings omit
    np.testing.assert_allclose(ours.aref, theirs.aref + curvature, rtol=1e-12)
    np.testing.assert_allclose(ours.impedance, theirs.impedance, rtol=1e-12)
    assert ours.R[0] == pytest.approx((1 / ours.impedance[0] - 1) * (0.5 + 0.5 * q[0] ** 2), rel=1e-9)


def test_a_soft_knife_edge_slips_and_creeps_as_its_report_says():
    """a1 + d b u = (1 - d) a0: the lateral velocity decays to (1 - d) F / (m d b), in closed form."""
    m, report, force = sled(SOFT), zw.softness(SOFT, mass=2.0, load=3.0), 3.0
    run = zw.simulate(
        m, [0, 0, 0], [0, 0.4, 0], duration=0.3, step=1e-4, control=[0, force, 0], integrator="rk4",
        record=500, progress=False,
    )  # fmt: skip
    u = run.v.isel(world=0).values[:, 1]
    T = report.slip_time_constant
    expected = report.creep + (0.4 - report.creep) * np.exp(-run.time.values / T)
    np.testing.assert_allclose(u, expected, atol=1e-9)
    d, b = 0.8, 2 / (0.95 * 0.05)
    assert pytest.approx(1 / (d * b)) == T and report.creep == pytest.approx(0.2 * 1.5 / (d * b))
    assert f"{report.creep:.3g} m/s" in str(report)


def test_a_time_dependent_soft_constraint_follows_its_rate():
    """The residual velocity u = y' + t / 2 of a Pfaffian constraint decays, as that of a constant one."""
    t = sp.Symbol("t")
    m = particle(zw.Pfaffian("drive", {"y": 1}, rate=t / 2 - 1, softness=SOFT))
    run = zw.simulate(m, duration=0.5, step=1e-4, integrator="rk4", record=5000, progress=False)
    # u' = -d b u + (1 - d) / 2, from u(0) = -1: the free residual acceleration is the rate's, 1/2
    d, b = 0.8, 2 / (0.95 * 0.05)
    end = (1 - d) * 0.5 / (d * b)
    u = float(run.v[0, -1, 1]) + 0.25 - 1
    assert u == pytest.approx(end + (-1 - end) * np.exp(-d * b * 0.5), abs=1e-8)


@pytest.mark.parametrize("build", [sled, disc, circle, skate])
def test_the_stiffest_softness_comes_near_the_hard_constraint(build):
    hard, soft = build(None), build(ALMOST_HARD)
    q, v = state_of(hard)
    q, v = zw.assemble(hard, q, v)
    tau = np.linspace(-1, 2, hard.nv)
    one, two = (zw.constrained_dynamics(m, q, v, tau) for m in (hard, soft))
    np.testing.assert_allclose(two.acceleration, one.acceleration, atol=2e-3 * np.abs(one.acceleration).max())
    for name, forces in one.forces.items():
        np.testing.assert_allclose(two.forces[name], forces, atol=2e-3 * max(1, np.abs(forces).max()))


@pytest.mark.parametrize("build", [sled, disc, circle, skate])
def test_soft_rows_are_the_same_compiled_in_a_file_and_for_all_solvers(build):
    m = build(SOFT)
    assert zw.Mechanism.from_json(m.to_json()) == m
    assert "softness" in m.to_json() and "softness" not in build(None).to_json()
    q, v = state_of(m)
    tau = np.linspace(-1, 2, m.nv)
    found = zw.constrained_dynamics(m, q, v, tau, time=0.3)
    for solver in ("conjugate", "projected"):
        other = zw.constrained_dynamics(m, q, v, tau, time=0.3, solver=solver)
        np.testing.assert_allclose(other.acceleration, found.acceleration, atol=1e-7)
    after = zw.compile(m).step(q, v, tau, step=1e-3, time=0.3, integrator="euler")
    np.testing.assert_allclose(after.v, v + 1e-3 * found.acceleration, atol=1e-11)
    soft = zw.simulate(m, q, v, duration=0.02, step=1e-3, progress=False, record={"violations": True})
    python = zw.simulate(m, q, v, duration=0.02, step=1e-3, progress=False, compiled=False)
    np.testing.assert_allclose(soft.q.values, python.q.values, atol=1e-10)
    assert soft.constraint_velocity_residual.shape[-1] == 1


@pytest.mark.parametrize("build", [sled, disc])
def test_forces_of_soft_constraints_are_recorded(build):
    m = build(SOFT)
    q, v = state_of(m)
    run = zw.simulate(
        m, q, v, duration=0.005, step=1e-3, progress=False, record={"forces": True, "constraints": True}
    )
    at = run.isel(world=0, time=0)
    found = zw.constrained_dynamics(m, q, v, np.zeros(m.nv))
    edge = m.constraints[0]
    expected = found.forces[edge.name]
    if isinstance(edge, zw.NoSideSlip):  # along its direction, which the body carries
        expected = expected * (zw.frame_pose(m, q, edge.body).R @ edge.direction)
    force = at.force.sel(point_force=at.point_force_kind == "constraint").values
    np.testing.assert_allclose(force, [expected], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(at.generalised_constraint_force, found.rows.J.T @ found.force, atol=1e-9)


def test_a_softness_of_another_type_is_refused():
    for build in (sled, disc, circle, skate):
        with pytest.raises(DescriptionError, match="softness of"):
            build(0.3)
