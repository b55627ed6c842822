"""Soft contact goes to the rigid closed forms as stiffness grows and the step shrinks, with its order; hard contact as the step does."""

import numpy as np
import pytest
from scipy.optimize import brentq

import zwang as zw
from tests.cases import case, references
from tests.constraint.test_contact_laws import HOME, G, ball, box, sliding, speeds_and_places
from zwang.errors import SimulationWarning

TIMES = (0.02, 0.01, 0.005)  # time constants of the softness; ten steps each
STIFF = (0.9999, 0.9999, 0.001, 0.5, 2.0)


def soft(time, impedance=0.99):
    return {"solref": (time, 1.0), "solimp": (impedance, impedance, 0.001, 0.5, 2.0)}


def order(errors, ratio):
    """By how much the error's logarithm falls for one of the parameter's, least squares over all pairs of neighbours."""
    errors = np.abs(errors)
    return float(np.mean(np.log(errors[:-1] / errors[1:]) / np.log(ratio)))


def ends(mechanism, q0, v0, duration, step):
    """Speeds and places at the end, by the elliptic cone."""
    mechanism = mechanism.replace(options=zw.Options(cone="elliptic"))
    v, q = speeds_and_places(mechanism, q0, v0, duration, step)
    return v[-1], q[-1]


def point(mu, **surface):
    """A point on a floor: it slides and does not turn."""
    touch = zw.Surface(friction=(mu, 0.005, 0.0001), **surface)
    joints = tuple(
        zw.Prismatic(name, axis=axis) for name, axis in zip("xyz", np.eye(3, dtype=int).tolist(), strict=True)
    )
    shape = zw.Sphere(radius=0.1, surface=touch)
    body = zw.Body("point", position=(0, 0, 0.1), joint=joints, mass=2.0, geometry=[shape])
    return zw.Mechanism(bodies=[body], geometry=[zw.Plane(surface=touch)])


@pytest.mark.parametrize("reference", references("contact", "E01_block_slides_to_rest"), ids=sliding)
def test_a_soft_block_slides_to_rest_with_an_error_of_first_order_in_its_time_constant(reference):
    found = [
        ends(point(reference["mu"], **soft(T)), np.zeros(3), [reference["v0"], 0, 0], 1.0, T / 10)
        for T in TIMES
    ]
    errors = [q[0] - reference["d_stop"] for _, q in found]
    near = case("contact", "E01_block_slides_to_rest")["tolerance"]["relative"] * reference["d_stop"]
    assert 0.8 < order(errors, 2) < 1.2 and abs(errors[-1]) < near
    assert all(abs(v[0]) < 1e-12 for v, _ in found)  # on level ground what has stopped rests


@pytest.mark.parametrize("reference", references("contact", "E01_block_slides_to_rest"), ids=sliding)
def test_a_hard_point_stops_by_runge_kutta_within_the_cases_tolerance(reference):
    """Constant deceleration is exact for it; what is left is of the one step in which the point stops."""
    start, near = [reference["v0"], 0, 0], case("contact", "E01_block_slides_to_rest")["tolerance"]
    run = zw.simulate(
        point(reference["mu"], hard=True), np.zeros(3), start, duration=1.0, step=2.5e-4, integrator="rk4",
        progress=False,
    )  # fmt: skip
    x = run.q.values[0, :, 0]
    assert x[-1] == pytest.approx(reference["d_stop"], rel=0, abs=near["hard"])
    half = np.interp(reference["t_stop"] / 2, run.time.values, x)
    assert half == pytest.approx(reference["x_at_half_time"], rel=0, abs=near["hard"])


@pytest.mark.parametrize("number", [0, 3])
def test_a_soft_ball_slips_until_it_rolls_with_an_error_of_first_order(number):
    reference = case("contact", "E02_slip_to_roll")["reference"][number]
    mu, rolled = reference["mu"], 0.8 - reference["t_roll"]
    errors = []
    for T in TIMES:
        mechanism = ball(reference["r"], reference["k_inertia"], mu=mu, **soft(T))
        v, q = ends(mechanism, HOME, [reference["v0"], 0, 0, 0, reference["omega0"], 0], 0.8, T / 10)
        assert v[0] == pytest.approx(reference["v_final"], abs=0.05 * T)
        errors.append(q[0] - reference["x_roll"] - rolled * reference["v_final"])
    assert 0.8 < order(errors, 2) < 1.2 and abs(errors[-1]) < 1e-3


@pytest.mark.parametrize("number", range(3))
def test_a_soft_ball_rolls_or_slips_down_an_incline_with_an_error_of_first_order(number):
    reference = case("contact", "E07_rolling_incline")["reference"][number]
    errors = []
    for T in TIMES:
        mechanism = ball(0.1, reference["k"], mu=reference["mu"], slope=reference["alpha"], **soft(T))
        _, q = ends(mechanism, HOME, np.zeros(6), 2.0, T / 10)
        errors.append(q[0] / 2.0 - reference["acceleration"])
    assert order(errors, 2) > 0.7 and abs(errors[-1]) < 2e-3


def test_a_soft_box_slides_down_an_incline_with_an_error_of_first_order():
    reference = next(r for r in case("contact", "E04_box_incline")["reference"] if r["outcome"] == "slides")
    errors = []
    for T in TIMES[:2]:
        mechanism = box(
            reference["width_b"], reference["height_h"], reference["mu"], slope=reference["alpha"], **soft(T)
        )
        _, q = ends(mechanism, HOME, np.zeros(6), 1.0, T / 10)
        errors.append(2 * q[0] - reference["slide_acceleration"])
    assert order(errors, 2) > 0.7 and abs(errors[-1]) < 0.02


def damping_for(restitution, stiffness):
    """The damper of a spring that pushes only, which gives this restitution. Source: Schwager, Poschel, Granular Matter 9 (2007) 465."""

    def excess(z):
        w = np.sqrt(1 - z * z)
        return np.exp(-z / w * (np.pi - np.arctan2(2 * z * w, 1 - 2 * z * z))) - restitution

    return 2 * np.sqrt(stiffness) * brentq(excess, 1e-9, 1 - 1e-9)


@pytest.mark.parametrize("number", [0, 1])
def test_a_soft_ball_bounces_with_an_error_of_half_an_order_in_its_stiffness(number):
    """Each bounce takes the time pi sqrt(1 / k) or so, which the rigid one does not."""
    reference = case("contact", "E03_bouncing_ball")["reference"][number]
    late = []
    for k in (1e4, 4e4, 1.6e5):
        h = 0.005 / np.sqrt(k)
        softness = {"solref": (-k, -damping_for(reference["e"], k)), "solimp": STIFF}
        start = [0, 0, reference["h"], 1.0, 0, 0, 0]
        duration = 1.15 * reference["impact_times"][1]
        _, q = speeds_and_places(ball(0.1, condim=1, **softness), start, np.zeros(6), duration, h)
        impacts = crossings(q[:, 2], h)
        assert impacts[0] == pytest.approx(reference["impact_times"][0], abs=2 * h)
        late.append(impacts[1] - reference["impact_times"][1])
    assert 0.35 < order(late, 4) < 0.65


def crossings(z, h):
    """The times at which z falls through zero."""
    before = np.flatnonzero((z[:-1] > 0) & (z[1:] <= 0))
    return h * (before + z[before] / (z[before] - z[before + 1]))


@pytest.mark.parametrize("reference", references("contact", "E03_bouncing_ball"), ids=lambda r: f"e={r['e']}")
def test_a_hard_ball_bounces_by_newtons_law_with_an_error_of_first_order_in_the_step(reference):
    """Impact times, peaks and path; after infinitely many bounces in finite time it rests."""
    paths = []
    for h in (4e-3, 1e-3):
        mechanism = ball(0.1, hard=True, restitution=reference["e"])
        start, duration = [0, 0, reference["h"], 1.0, 0, 0, 0], 1.4 * reference["T_total"]
        v, q = speeds_and_places(mechanism, start, np.zeros(6), duration, h)
        z, w = q[:, 2], v[:, 2]
        bounces = h * (1 + np.flatnonzero(np.diff(w) > 0)[:2])
        np.testing.assert_allclose(bounces, reference["impact_times"][:2], atol=5 * h)
        at = np.round(bounces / h).astype(int)
        peak, speed = z[at[0] : at[1]].max(), np.sqrt(2 * G * reference["h"])
        assert peak == pytest.approx(reference["peak_heights"][0], abs=2 * speed * h)
        assert z.min() > -1e-12 and abs(z[-1]) < 1e-6 and abs(w[-1]) < 1e-6
        paths.append(np.abs(np.diff(z)).sum() - reference["path_length"])
    assert 0.7 < order(paths, 4) < 1.4


@pytest.mark.parametrize("number", range(6))
def test_hard_balls_of_a_cradle_pass_the_momentum_on_to_rounding(number):
    reference = case("contact", "E05_newtons_cradle")["reference"][number]
    touch = zw.Surface(condim=1, hard=True, restitution=reference["e"])
    v, _ = speeds_and_places(cradle(reference, touch), *cradled(reference), 0.5, 1e-3)
    np.testing.assert_allclose(v[-1], reference["sequential_from_the_left"], atol=1e-12)


def test_soft_balls_of_a_cradle_pass_the_momentum_on_with_an_error_that_the_step_makes():
    reference = case("contact", "E05_newtons_cradle")["reference"][4]
    touch = zw.Surface(condim=1, solref=(-1e6, 0.0), solimp=STIFF)
    errors = []
    for h in (8e-5, 4e-5, 2e-5):
        v, _ = speeds_and_places(cradle(reference, touch), *cradled(reference), 0.2, h)
        errors.append(np.abs(v[-1] - reference["sequential_from_the_left"]).max())
    assert order(errors, 2) > 0.7 and errors[-1] < 5e-3


def cradle(reference, touch):
    """Balls in a row, a tenth of a diameter apart."""
    bodies = [
        zw.Body(f"ball {k}", position=(0.22 * k, 0, 0), joint=zw.Prismatic(f"x{k}", axis=(1, 0, 0)), mass=m,
                geometry=[zw.Sphere(radius=0.1, surface=touch)])
        for k, m in enumerate(reference["masses"])
    ]  # fmt: skip
    return zw.Mechanism(bodies=bodies, gravity=(0, 0, 0))


def cradled(reference):
    return np.zeros(len(reference["masses"])), reference["v_before"]


def test_a_hard_block_rests_on_a_slope_below_its_cone_without_creep():
    mechanism = box(0.6, 0.1, 0.5, slope=0.3, hard=True)
    v, q = speeds_and_places(mechanism, HOME, np.zeros(6), 20.0, 0.01)
    assert np.abs(v).max() < 1e-12 and np.abs(q - HOME).max() < 1e-12


def test_hard_bodies_that_overlap_deeply_come_apart_slowly():
    with pytest.warns(SimulationWarning, match=r"overlap by 0\.5 m"):
        v, q = speeds_and_places(ball(0.1, hard=True), [0, 0, -0.5, 1.0, 0, 0, 0], np.zeros(6), 1.5, 0.002)
    assert np.abs(v).max() < 1 + 1e-9
    assert q[-1, 2] == pytest.approx(0, abs=1e-3)
