"""Constraint forces, limit values, stability and energies of the reference cases of closed loops,
nonholonomic and non-ideal constraints.
"""

import numpy as np
import pytest
import sympy as sp

import zwang as zw
from tests.cases import case
from tests.constraint.test_closed_loops import rod, squeezer, swinging
from tests.constraint.test_nonholonomic import (
    bicycle_eigenvalues,
    bicycle_slopes,
    disc,
    disc_state,
    plane_body,
    rolling_velocities,
    trajectory,
)
from tests.constraint.test_nonideal import coulomb, particle, x, y, z
from tests.symbolic.machines import X, Y, Z, whipple


def test_the_squeezers_accelerations_and_pin_forces_are_the_published_ones():
    c = case("loops", "C03_andrews_squeezer")
    m, order = squeezer()
    published = np.array(c["reference"]["y_ivptestset"])
    q, v = np.zeros(7), np.zeros(7)
    q[order], v[order] = published[:7], published[7:14]
    found = zw.constrained_dynamics(m, q, v, np.zeros(7))
    np.testing.assert_allclose(found.acceleration[order], published[14:21], rtol=2e-6)
    forces = np.concatenate([found.forces[f"pin of {name}"][:2] for name in ("K3", "K4", "K6")])
    np.testing.assert_allclose(forces, -published[21:], rtol=2e-6)  # M a + G^T lambda = f: a force is -lambda


def test_the_initial_energy_of_the_four_bar():
    m, q0, v0 = swinging(2)
    energy = case("loops", "C02_iftomm_A02_nfourbar")["reference"]["energy0_N2"]
    assert sum(zw.energy(m, q0, v0)) == pytest.approx(energy, rel=1e-12)


def test_the_pin_force_of_the_slider_crank():
    c = case("loops", "C06_slider_crank")
    p = c["parameters"]
    bodies = (
        rod("crank", zw.Revolute("crank", axis=Z), mass=p["m_crank"], length=p["r"]),
        rod("rod", zw.Revolute("rod", axis=Z), "crank", (p["r"], 0, 0), p["m_rod"], p["l"]),
        zw.Body("slider", zw.Prismatic("slide", axis=X), mass=p["m_slider"], inertia=(1, 1, 1)),
    )
    m = zw.Mechanism(
        "slider-crank", bodies, gravity=(0, -p["g"], 0),
        forces=(zw.Spring("slide", p["k"], rest=p["x0"]), zw.Wrench("crank", torque=(0, 0, p["tau"]))),
        constraints=(zw.Connect("pin", ("rod", (p["l"], 0, 0)), ("slider", (0, 0, 0))),),
    )  # fmt: skip
    for state, expected in zip(
        c["reference"]["trajectory"], c["reference"]["pin_force_on_slider_xy"], strict=True
    ):
        a, b, s, ad, bd, sd = state
        for coordinate_reduction in (False, True, ["crank"]):
            found = zw.constrained_dynamics(
                m, [a, b - a, s], [ad, bd - ad, sd], np.zeros(3), coordinate_reduction=coordinate_reduction
            )
            np.testing.assert_allclose(-found.forces["pin"][:2], expected, rtol=c["tolerance"])


def test_the_bicycles_matrices_and_eigenvalues_at_every_speed():
    """M a + v C1 rates + (g K0 + v^2 K2) angles = 0 for roll and steer, with the signs of Meijaard et al.
    2007.
    """
    c = case("nonholonomic", "B01_whipple_linear")
    p = {k: value for k, value in c["parameters"].items() if isinstance(value, float | int)}
    ref, near, g = {k: np.array(c["reference"][k]) for k in ("M", "C1", "K0", "K2")}, c["tolerance"], p["g"]
    e = zw.equations(whipple(), ["roll", "steer", "rear"])
    upright = dict.fromkeys(("x", "y", "z", "yaw", "pitch", "rear", "front", "roll", "steer"), 0.0)
    rates = {"roll_dot": 0.0, "steer_dot": 0.0, "rear_dot": 0.0}
    M = np.asarray(e.evaluate({**p, **upright, **rates}, "mass_matrix")[0], float)[:2, :2]

    def equal(found, name):
        assert np.abs(found - ref[name]).max() < near["matrices"] * np.abs(ref[name]).max(), name

    equal(M, "M")
    for speed, pairs in c["reference"]["eigenvalues_re_im"].items():
        v = float(speed)
        slopes = bicycle_slopes(e, p, v)
        stiffness, damping = np.hsplit(-M @ slopes, 2)
        if v == 0:
            equal(stiffness / g, "K0")
            assert np.abs(damping).max() < near["matrices"] * np.abs(ref["C1"]).max()
        else:
            equal((stiffness - g * ref["K0"]) / v**2, "K2")
            equal(damping / v, "C1")
        expected = np.array([complex(*pair) for pair in pairs])
        distance = np.abs(bicycle_eigenvalues(slopes)[:, None] - expected[None, :])
        np.testing.assert_allclose(distance.min(axis=0), 0, atol=near["eigenvalues"])


def test_the_disc_keeps_its_energy_and_stands_upright_from_its_critical_speed_on():
    c = case("nonholonomic", "B03_rolling_disc")
    p, ref = c["parameters"], c["reference"]
    m = disc(p)
    q0 = disc_state(p, c["initial_state"])
    v0 = rolling_velocities(m, q0, c["initial_state"][7:10])
    assert sum(zw.energy(m, q0, v0)) == pytest.approx(ref["energy"], rel=1e-10)
    _, _, run = trajectory(m, q0, v0, c["times"], 1e-3)
    np.testing.assert_allclose(run.energy, ref["energy"], rtol=1e-7)
    near = c["tolerance"]["critical"]
    for share, stable in ((1 - near, False), (1 + near, True)):
        roots = np.linalg.eigvals(leaning(m, p, share * ref["critical_upright_speed"] / p["r"]))
        assert (roots.real.max() < 1e-6) == stable, roots


def leaning(m, p, spin, h=1e-5):
    """Linearisation of d(lean, lean rate, yaw rate)/dt about upright rolling of the disc, by central
    differences.
    """

    def rates(lean, lean_rate, yaw_rate):
        q = disc_state(p, [0, 0, 0.3, lean, 0])
        v = rolling_velocities(m, q, [yaw_rate, lean_rate, spin])
        a = zw.constrained_dynamics(m, q, v, np.zeros(6)).acceleration
        return np.array([lean_rate, a[4], a[3]])

    return np.column_stack([(rates(*h * e) - rates(*-h * e)) / (2 * h) for e in np.eye(3)])


def test_the_contact_point_of_the_coin_after_half_a_second():
    c = case("nonholonomic", "B08_rolling_coin")
    p, m = c["parameters"], disc(c["parameters"])
    q0 = disc_state(p, c["initial_state"])
    run = zw.simulate(
        m, q0, rolling_velocities(m, q0, c["initial_state"][7:10]), duration=0.5, step=0.5,
        integrator=zw.Adaptive("dop853", rtol=1e-11, atol=1e-13), progress=False,
    )  # fmt: skip
    px, _, _, yaw, lean, _ = run.q.values[0, -1]
    assert px - p["r"] * np.sin(yaw) * np.sin(lean) == pytest.approx(
        c["reference"]["contact_x_0p5"], abs=1e-9
    )


def test_the_largest_descent_and_the_drift_speed_of_the_knife_edge():
    c = case("nonholonomic", "B04_knife_edge_incline")
    p, ref = c["parameters"], c["reference"]["a"]
    down = (p["g"] * np.sin(p["alpha"]), 0, -p["g"] * np.cos(p["alpha"]))
    edge = zw.NoSideSlip("edge", "body", direction=Y)
    m = zw.Mechanism("skate", (plane_body(p["m"], p["J"]),), gravity=down, constraints=(edge,))
    period = np.pi / p["omega0"]
    run = zw.simulate(
        m,
        np.zeros(3),
        [0, 0, p["omega0"]],
        duration=2 * period,
        step=period / 500,
        integrator="rk4",
        progress=False,
    )
    px, py, _ = run.q.values[0].T
    assert px.max() == pytest.approx(ref["max_descent"], rel=1e-9)
    assert (py[1000] - py[500]) / period == pytest.approx(ref["drift_speed_y"], rel=1e-9)


def test_the_limit_state_of_the_chaplygin_sleigh():
    c = case("nonholonomic", "B05_chaplygin_sleigh")
    p, s, ref = c["parameters"], c["initial_state"], c["reference"]
    edge = zw.NoSideSlip("edge", "body", direction=Y)
    body = plane_body(p["m"], p["J_com"], (p["a"], 0, 0))
    m = zw.Mechanism("sleigh", (body,), gravity=(0, 0, 0), constraints=(edge,))
    run = zw.simulate(
        m, None, [s["v"], 0, s["omega"]], duration=40.0, step=10.0, integrator="dop853", progress=False
    )
    (_, _, theta), v = run.q.values[0, -1], run.v.values[0, -1]
    near = {"rel": 0, "abs": c["tolerance"]}
    assert theta == pytest.approx(ref["heading_at_infinity"], **near)
    assert v[0] * np.cos(theta) + v[1] * np.sin(theta) == pytest.approx(ref["v_infinity"], **near)


def test_the_bead_on_the_rough_helix_has_no_acceleration_at_its_terminal_speed():
    c = case("nonideal", "D04_rough_helix")
    p, speed = c["parameters"], c["reference"]["v_terminal"]
    r, h = p["radius"], p["height_per_rad"]
    size = float(np.hypot(r, h))
    walls = (sp.sqrt(x**2 + y**2) - r, h / size * (x * sp.sin(z / h) + y * sp.cos(z / h)))
    m = particle(p["m"], (0, 0, -p["g"]), (zw.Holonomic("wire", walls), coulomb("wire", p["mu"])))
    for angle in (0.0, 0.7):
        along = np.array([-r * np.sin(angle), r * np.cos(angle), -h]) / size
        q = [r * np.cos(angle), r * np.sin(angle), -h * angle]
        found = zw.constrained_dynamics(m, q, speed * along, np.zeros(3))
        assert along @ found.acceleration == pytest.approx(0, abs=1e-10)
