"""Order of convergence to the closed forms of rigid contact: of soft contact with growing stiffness, of hard
contact with decreasing step size.
"""

import numpy as np
import pytest
import sympy as sp
from scipy.optimize import brentq

import zwang as zw
from tests.cases import case, references
from tests.constraint.test_contact_laws import HOME, G, ball, box, sliding
from zwang.errors import SimulationWarning

TIMES = (0.02, 0.01, 0.005)  # time constants of the softness; ten steps each
STIFF = (0.9999, 0.9999, 0.001, 0.5, 2.0)
MU, TIME, RESTITUTION, STIFFNESS, DAMPING = sp.symbols("mu time restitution stiffness damping", positive=True)
SOFT = {"solref": (TIME, 1.0), "solimp": (0.99, 0.99, 0.001, 0.5, 2.0)}
"""Symbols, so that a mechanism is compiled once for all of their values."""


def velocities_and_positions(mechanism, q0, v0, duration, step, **params):
    run = zw.simulate(mechanism, q0, v0, duration=duration, step=step, params=params, progress=False)
    return run.v.values.reshape(-1, mechanism.nv), run.q.values.reshape(-1, mechanism.nq)


def order(errors, ratio):
    """The observed order of convergence for parameters in the given ratio, averaged over neighbouring
    pairs.
    """
    errors = np.abs(errors)
    return float(np.mean(np.log(errors[:-1] / errors[1:]) / np.log(ratio)))


def ends(mechanism, q0, v0, duration, time, **params):
    """Final velocities and positions with elliptic friction cones, for a time constant of the softness."""
    mechanism = mechanism.replace(options=zw.Options(cone="elliptic"))
    v, q = velocities_and_positions(mechanism, q0, v0, duration, time / 10, time=time, **params)
    return v[-1], q[-1]


def point(**surface):
    """A point mass on a floor with the friction MU, which slides without rotation."""
    material = zw.Surface(friction=(MU, 0.005, 0.0001), **surface)
    joints = tuple(
        zw.Prismatic(name, axis=axis) for name, axis in zip("xyz", np.eye(3, dtype=int).tolist(), strict=True)
    )
    shape = zw.Sphere(radius=0.1, surface=material)
    body = zw.Body("point", position=(0, 0, 0.1), joint=joints, mass=2.0, geometry=[shape])
    return zw.Mechanism(bodies=[body], geometry=[zw.Plane(surface=material)])


@pytest.mark.parametrize("reference", references("contact", "E01_block_slides_to_rest"), ids=sliding)
def test_a_soft_block_slides_to_rest_with_an_error_of_first_order_in_its_time_constant(reference):
    found = [
        ends(point(**SOFT), np.zeros(3), [reference["v0"], 0, 0], 1.0, T, mu=reference["mu"]) for T in TIMES
    ]
    errors = [q[0] - reference["d_stop"] for _, q in found]
    near = case("contact", "E01_block_slides_to_rest")["tolerance"]["relative"] * reference["d_stop"]
    assert 0.8 < order(errors, 2) < 1.2 and abs(errors[-1]) < near
    assert all(abs(v[0]) < 1e-12 for v, _ in found)  # no creep on level ground


@pytest.mark.parametrize("reference", references("contact", "E01_block_slides_to_rest"), ids=sliding)
def test_a_hard_point_stops_by_runge_kutta_within_the_cases_tolerance(reference):
    """Runge-Kutta integrates a constant deceleration exactly; the error is that of the step in which the
    point stops.
    """
    start, near = [reference["v0"], 0, 0], case("contact", "E01_block_slides_to_rest")["tolerance"]
    run = zw.simulate(
        point(hard=True), np.zeros(3), start, duration=1.0, step=2.5e-4, integrator="rk4",
        params={"mu": reference["mu"]}, progress=False,
    )  # fmt: skip
    x = run.q.values[0, :, 0]
    assert x[-1] == pytest.approx(reference["d_stop"], rel=0, abs=near["hard"])
    half = np.interp(reference["t_stop"] / 2, run.time.values, x)
    assert half == pytest.approx(reference["x_at_half_time"], rel=0, abs=near["hard"])


@pytest.mark.parametrize("number", [0, 3])
def test_a_soft_ball_slips_until_it_rolls_with_an_error_of_first_order(number):
    reference = case("contact", "E02_slip_to_roll")["reference"][number]
    mu, rolled = reference["mu"], 0.8 - reference["t_roll"]
    mechanism, errors = ball(reference["r"], reference["k_inertia"], mu=mu, **SOFT), []
    for T in TIMES:
        v, q = ends(mechanism, HOME, [reference["v0"], 0, 0, 0, reference["omega0"], 0], 0.8, T)
        assert v[0] == pytest.approx(reference["v_final"], abs=0.05 * T)
        errors.append(q[0] - reference["x_roll"] - rolled * reference["v_final"])
    assert 0.8 < order(errors, 2) < 1.2 and abs(errors[-1]) < 1e-3


@pytest.mark.parametrize("number", range(3))
def test_a_soft_ball_rolls_or_slips_down_an_incline_with_an_error_of_first_order(number):
    reference = case("contact", "E07_rolling_incline")["reference"][number]
    mechanism = ball(0.1, reference["k"], mu=reference["mu"], slope=reference["alpha"], **SOFT)
    errors = []
    for T in TIMES:
        _, q = ends(mechanism, HOME, np.zeros(6), 2.0, T)
        errors.append(q[0] / 2.0 - reference["acceleration"])
    assert order(errors, 2) > 0.7 and abs(errors[-1]) < 2e-3


def test_a_soft_box_slides_down_an_incline_with_an_error_of_first_order():
    reference = next(r for r in case("contact", "E04_box_incline")["reference"] if r["outcome"] == "slides")
    mechanism = box(
        reference["width_b"], reference["height_h"], reference["mu"], slope=reference["alpha"], **SOFT
    )
    errors = []
    for T in TIMES[:2]:
        _, q = ends(mechanism, HOME, np.zeros(6), 1.0, T)
        errors.append(2 * q[0] - reference["slide_acceleration"])
    assert order(errors, 2) > 0.7 and abs(errors[-1]) < 0.02


def damping_for(restitution, stiffness):
    """The damping at which a unilateral spring-damper of that stiffness has this restitution.

    Source: Schwager, Poschel, Granular Matter 9 (2007) 465.
    """

    def excess(z):
        w = np.sqrt(1 - z * z)
        return np.exp(-z / w * (np.pi - np.arctan2(2 * z * w, 1 - 2 * z * z))) - restitution

    return 2 * np.sqrt(stiffness) * brentq(excess, 1e-9, 1 - 1e-9)


@pytest.mark.parametrize("number", [0, 1])
def test_a_soft_ball_bounces_with_an_error_of_half_an_order_in_its_stiffness(number):
    """A bounce lasts about pi sqrt(1 / k), while a rigid impact is instantaneous."""
    reference = case("contact", "E03_bouncing_ball")["reference"][number]
    mechanism, delays = ball(0.1, condim=1, solref=(-STIFFNESS, -DAMPING), solimp=STIFF), []
    for k in (1e4, 4e4, 1.6e5):
        h = 0.005 / np.sqrt(k)
        softness = {"stiffness": k, "damping": damping_for(reference["e"], k)}
        start = [0, 0, reference["h"], 1.0, 0, 0, 0]
        duration = 1.15 * reference["impact_times"][1]
        _, q = velocities_and_positions(mechanism, start, np.zeros(6), duration, h, **softness)
        impacts = crossings(q[:, 2], h)
        assert impacts[0] == pytest.approx(reference["impact_times"][0], abs=2 * h)
        delays.append(impacts[1] - reference["impact_times"][1])
    assert 0.35 < order(delays, 4) < 0.65


def crossings(z, h):
    """The times at which z falls through zero."""
    before = np.flatnonzero((z[:-1] > 0) & (z[1:] <= 0))
    return h * (before + z[before] / (z[before] - z[before + 1]))


@pytest.mark.parametrize("reference", references("contact", "E03_bouncing_ball"), ids=lambda r: f"e={r['e']}")
def test_a_hard_ball_bounces_by_newtons_law_with_an_error_of_at_least_first_order_in_the_step(reference):
    """Impact times, peak heights and path length; the ball rests after infinitely many bounces in finite
    time.
    """
    mechanism, paths = ball(0.1, hard=True, restitution=RESTITUTION), []
    for h in (4e-3, 1e-3):
        start, duration = [0, 0, reference["h"], 1.0, 0, 0, 0], 1.4 * reference["T_total"]
        v, q = velocities_and_positions(
            mechanism, start, np.zeros(6), duration, h, restitution=reference["e"]
        )
        z, w = q[:, 2], v[:, 2]
        bounces = h * (1 + np.flatnonzero(np.diff(w) > 0)[:2])
        np.testing.assert_allclose(bounces, reference["impact_times"][:2], atol=2 * h)
        at = np.round(bounces / h).astype(int)
        peak = z[at[0] : at[1]].max()
        assert peak == pytest.approx(reference["peak_heights"][0], abs=G * h * h)
        assert z.min() > -1e-12 and abs(z[-1]) < 1e-6 and abs(w[-1]) < 1e-6
        paths.append(np.abs(np.diff(z)).sum() - reference["path_length"])
    assert order(paths, 4) > 0.9


@pytest.mark.parametrize("number", range(6))
def test_hard_balls_of_a_cradle_transfer_the_momentum_to_rounding(number):
    reference = case("contact", "E05_newtons_cradle")["reference"][number]
    material = zw.Surface(condim=1, hard=True, restitution=reference["e"])
    v, _ = velocities_and_positions(cradle(reference, material), *initial_state(reference), 0.5, 1e-3)
    np.testing.assert_allclose(v[-1], reference["sequential_from_the_left"], atol=1e-12)


def test_soft_balls_of_a_cradle_transfer_the_momentum_with_an_error_of_first_order_in_the_step():
    reference = case("contact", "E05_newtons_cradle")["reference"][4]
    material = zw.Surface(condim=1, solref=(-1e6, 0.0), solimp=STIFF)
    errors = []
    for h in (8e-5, 4e-5, 2e-5):
        v, _ = velocities_and_positions(cradle(reference, material), *initial_state(reference), 0.2, h)
        errors.append(np.abs(v[-1] - reference["sequential_from_the_left"]).max())
    assert order(errors, 2) > 0.7 and errors[-1] < 5e-3


def cradle(reference, material):
    """Balls in a row with a clearance of a tenth of a diameter."""
    bodies = [
        zw.Body(f"ball {k}", position=(0.22 * k, 0, 0), joint=zw.Prismatic(f"x{k}", axis=(1, 0, 0)), mass=m,
                geometry=[zw.Sphere(radius=0.1, surface=material)])
        for k, m in enumerate(reference["masses"])
    ]  # fmt: skip
    return zw.Mechanism(bodies=bodies, gravity=(0, 0, 0))


def initial_state(reference):
    return np.zeros(len(reference["masses"])), reference["v_before"]


def test_a_hard_block_rests_on_a_slope_within_its_friction_cone_without_creep():
    mechanism = box(0.6, 0.1, 0.5, slope=0.3, hard=True)
    v, q = velocities_and_positions(mechanism, HOME, np.zeros(6), 20.0, 0.01)
    assert np.abs(v).max() < 1e-12 and np.abs(q - HOME).max() < 1e-12


def test_hard_bodies_with_a_deep_overlap_separate_slowly():
    with pytest.warns(SimulationWarning, match=r"overlap by 0\.5 m"):
        v, q = velocities_and_positions(
            ball(0.1, hard=True), [0, 0, -0.5, 1.0, 0, 0, 0], np.zeros(6), 1.5, 0.002
        )
    assert np.abs(v).max() < 1 + 1e-9
    assert q[-1, 2] == pytest.approx(0, abs=1e-3)
