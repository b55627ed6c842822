"""Hard and soft contacts against closed forms of rolling, sliding, tipping, resting and impact."""

import numpy as np
import pytest
from scipy.optimize import brentq

import zwang as zw
from tests.cases import case, references
from zwang.constraint.softness import response

G = 9.81
HOME = [0, 0, 0, 1.0, 0, 0, 0]


def on_floor(shape, height, inertia=0.01, mass=1.3, slope=0.0, **surface):
    """A free body of the given shape on a plane that slopes downwards along x."""
    body = zw.Body(
        "body", position=(0, 0, height), joint=zw.Free("free"), mass=mass, inertia=(inertia,) * 3,
        geometry=[shape(zw.Surface(**surface))],
    )  # fmt: skip
    gravity = (G * np.sin(slope), 0, -G * np.cos(slope))
    return zw.Mechanism(bodies=[body], geometry=[zw.Plane(surface=zw.Surface(**surface))], gravity=gravity)


def ball(radius, k=0.4, mass=1.3, mu=1.0, **more):
    options = {"friction": (mu, 0.005, 0.0001), **more}
    return on_floor(
        lambda s: zw.Sphere(radius=radius, surface=s), radius, k * mass * radius**2, mass, **options
    )


def box(x, z, mu, **more):
    options = {"friction": (mu, 0.005, 0.0001), **more}
    inertia = 1.3 * (x * x + z * z) / 12
    return on_floor(lambda s: zw.Box(x=x, y=x, z=z, surface=s), z / 2, inertia, **options)


def sliding(reference):
    """The test id of a case of a block that slides to rest."""
    return f"v0={reference['v0']}" if reference else "absent"


def velocities_and_positions(mechanism, q0, v0, duration, step):
    run = zw.simulate(mechanism, q0, v0, duration=duration, step=step, progress=False)
    return run.v.values.reshape(-1, mechanism.nv), run.q.values.reshape(-1, mechanism.nq)


@pytest.mark.parametrize("reference", references("contact", "E07_rolling_incline"), ids=lambda r: r["body"])
def test_rolling_and_slipping_down_an_incline(reference):
    mechanism = ball(0.1, reference["k"], mu=reference["mu"], slope=reference["alpha"], hard=True)
    a = zw.constrained_dynamics(mechanism, HOME, np.zeros(6), np.zeros(6)).acceleration
    assert a[0] == pytest.approx(reference["acceleration"], abs=1e-9)
    assert 0.1 * a[4] == pytest.approx(reference["r_times_angular_acceleration"], abs=1e-9)
    assert abs(a[2]) < 1e-9


@pytest.mark.parametrize("reference", references("contact", "E04_box_incline"), ids=lambda r: r["outcome"])
def test_a_box_on_an_incline_rests_slides_or_tips(reference):
    mechanism = box(
        reference["width_b"], reference["height_h"], reference["mu"], slope=reference["alpha"], hard=True
    )
    found = zw.constrained_dynamics(mechanism, HOME, np.zeros(6), np.zeros(6))
    turning = np.abs(found.acceleration[3:]).max()
    if reference["outcome"] == "tips":
        assert found.acceleration[4] > 1e-3
    else:
        assert turning < 1e-9
        assert found.acceleration[0] == pytest.approx(reference["slide_acceleration"], abs=1e-6)


@pytest.mark.parametrize("reference", references("contact", "E01_block_slides_to_rest"), ids=sliding)
def test_a_hard_block_stops_by_coulombs_law_and_does_not_creep(reference):
    """Each Euler step reduces the velocity by mu g h; the final position is v0 h / 2 short of the exact
    one.
    """
    v0, mu = reference["v0"], reference["mu"]
    mechanism = box(0.6, 0.1, mu, hard=True)
    for h in (0.01, 0.005):
        v, q = velocities_and_positions(mechanism, HOME, [v0, 0, 0, 0, 0, 0], 1.0, h)
        speeds = np.maximum(v0 - mu * G * h * np.arange(len(q)), 0)
        np.testing.assert_allclose(v[:, 0], speeds, rtol=0, atol=1e-12)
        np.testing.assert_allclose(q[:, 0], h * (np.cumsum(speeds) - v0), rtol=0, atol=1e-12)
        assert q[-1, 0] == pytest.approx(reference["d_stop"] - v0 * h / 2, abs=mu * G * h**2 / 8 + 1e-12)
        stopped = np.flatnonzero(np.abs(v[:, 0]) < 1e-9)[0] * h
        assert reference["t_stop"] <= stopped <= reference["t_stop"] + h
        assert np.abs(v[round(stopped / h) :]).max() < 1e-12  # the block stays at rest
        assert np.abs(q[:, 1:3]).max() < 1e-12


def test_a_hard_ball_slips_until_it_rolls():
    for reference in case("contact", "E02_slip_to_roll")["reference"][:2]:
        mechanism = ball(reference["r"], reference["k_inertia"], mu=reference["mu"], hard=True)
        h = 0.002
        start = [reference["v0"], 0, 0, 0, reference["omega0"], 0]
        v, q = velocities_and_positions(mechanism, HOME, start, 0.8, h)
        assert v[-1, 0] == pytest.approx(reference["v_final"], rel=1e-9)
        assert v[-1, 4] == pytest.approx(reference["omega_final"], rel=1e-9)
        rolls = np.abs(v[:, 0] - reference["r"] * v[:, 4]) < 1e-9
        assert abs(np.flatnonzero(rolls)[0] * h - reference["t_roll"]) <= h
        at = round(reference["t_roll"] / h)
        assert q[at, 0] == pytest.approx(reference["x_roll"], rel=0.01)


def test_the_penetration_of_a_soft_contact_at_rest():
    """At rest aref = K d |r| and d aref = (1 - d) g, hence K d(r)^2 |r| = (1 - d(r)) g."""
    softness = zw.Softness((0.03, 1.0), (0.5, 0.9, 0.01, 0.5, 2.0))
    mechanism = ball(0.1, condim=1, solref=softness.solref, solimp=softness.solimp)

    def excess(r):
        K, d = response(softness, r).K, response(softness, r).d
        return K * d**2 * r - (1 - d) * G

    r = brentq(excess, 1e-9, 0.1, xtol=1e-15)
    v, q = velocities_and_positions(mechanism, HOME, np.zeros(6), 3.0, 0.005)
    assert q[-1, 2] == pytest.approx(-r, rel=1e-9)
    assert np.abs(v[-1]).max() < 1e-12


def test_the_creep_velocity_of_a_soft_contact_on_a_slope():
    """A soft sticking friction row is a damper without a spring: d b v = (1 - d) g sin(slope)."""
    d, slope = 0.9, 0.3
    surface = zw.Surface(friction=(1.0, 0.005, 0.0001), solimp=(d, d, 0.001, 0.5, 2.0))
    joints = tuple(
        zw.Prismatic(name, axis=axis) for name, axis in zip("xyz", np.eye(3, dtype=int).tolist(), strict=True)
    )
    point = zw.Body(
        "point",
        position=(0, 0, 0.1),
        joint=joints,
        mass=2.0,
        geometry=[zw.Sphere(radius=0.1, surface=surface)],
    )
    mechanism = zw.Mechanism(
        bodies=[point], geometry=[zw.Plane(surface=surface)],
        gravity=(G * np.sin(slope), 0, -G * np.cos(slope)),
        options=zw.Options(cone="elliptic"),
    )  # fmt: skip
    v, _ = velocities_and_positions(mechanism, np.zeros(3), np.zeros(3), 2.0, 0.005)
    b = 2 / (d * 0.02)
    assert v[-1, 0] == pytest.approx((1 - d) * G * np.sin(slope) / (d * b), rel=1e-9)


def test_an_undamped_soft_contact_conserves_the_energy():
    stiffness = 4e4
    mechanism = ball(0.1, condim=1, solref=(-stiffness, 0.0), solimp=(0.9999, 0.9999, 0.001, 0.5, 2.0))
    start = [0, 0, 0.2, 1.0, 0, 0, 0]
    v, q = velocities_and_positions(mechanism, start, np.zeros(6), 0.5, 1e-5)
    before, after = G * 0.2, (v[-1, 2] ** 2 / 2 + G * q[-1, 2])
    assert q[:, 2].min() < -0.005  # the ball has bounced
    assert after == pytest.approx(before, rel=1e-4)


@pytest.mark.parametrize("number", [0, 1, 4])
def test_newtons_cradle_of_stiff_undamped_balls_transfers_the_momentum(number):
    """Balls with clearance collide pair by pair; with growing stiffness the motion tends to that of rigid
    balls.
    """
    reference = case("contact", "E05_newtons_cradle")["reference"][number]
    surface = zw.Surface(condim=1, solref=(-4e6, 0.0), solimp=(0.9999, 0.9999, 0.001, 0.5, 2.0))
    bodies = [
        zw.Body(f"ball {k}", position=(0.22 * k, 0, 0), joint=zw.Prismatic(f"x{k}", axis=(1, 0, 0)), mass=m,
                geometry=[zw.Sphere(radius=0.1, surface=surface)])
        for k, m in enumerate(reference["masses"])
    ]  # fmt: skip
    mechanism = zw.Mechanism(bodies=bodies, gravity=(0, 0, 0))
    v, _ = velocities_and_positions(mechanism, np.zeros(len(bodies)), reference["v_before"], 0.3, 2e-5)
    np.testing.assert_allclose(v[-1], reference["sequential_from_the_left"], atol=2e-3)
