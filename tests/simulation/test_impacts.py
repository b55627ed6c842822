"""Impacts of hard contacts: closed forms of bouncing, billiards and rows of balls, independent of the grid of
steps.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

import zwang as zw

G, RADIUS = 9.81, 0.1
INTEGRATORS = ("euler", "implicitfast", "implicit", "rk4")


def surface(e=1.0, friction=None):
    given = {} if friction is None else {"friction": (friction, 0, 0)}
    return zw.Surface(condim=1 if friction is None else 3, hard=True, restitution=e, **given)


def ball_on_floor(material, gravity=(0, 0, -G)):
    """A solid ball of 1 kg above a floor."""
    ball = zw.Body("ball", zw.Free("free"), mass=1, inertia=(0.4 * RADIUS**2,) * 3,
                   geometry=(zw.Sphere(RADIUS, surface=material),))  # fmt: skip
    return zw.Mechanism("ball", (ball,), geometry=(zw.Plane(surface=material),), gravity=gravity)


def pose(height, x=0.0):
    return [x, 0, RADIUS + height, 1, 0, 0, 0]


def run_of(mechanism, q0, v0=None, **options):
    return zw.simulate(mechanism, q0, v0, progress=False, **options)


def apexes(run):
    """The heights of the tops of the bounces: parabolas through the three highest samples of each."""
    z = run.q.values[0, :, 2] - RADIUS
    tops = np.flatnonzero((z[1:-1] >= z[:-2]) & (z[1:-1] > z[2:])) + 1
    before, top, after = z[tops - 1], z[tops], z[tops + 1]
    return top + (after - before) ** 2 / (8 * (2 * top - before - after))


@pytest.mark.parametrize("compiled", [True, False])
def test_the_energy_of_an_elastic_ball_is_kept_by_rk4_over_many_bounces(compiled):
    """The free motion is a parabola, which the method integrates exactly; so is the impact."""
    duration = 30.0 if compiled else 1.5
    mechanism = ball_on_floor(surface())
    run = run_of(mechanism, pose(1.0), duration=duration, step=0.01, integrator="rk4", compiled=compiled)
    np.testing.assert_allclose(run.energy, run.energy[0, 0], rtol=1e-12)
    assert run.q.values[0, :, 2].min() > RADIUS - 1e-12
    # the height at any time, by the closed form of period 2 sqrt(2 h / g)
    period = 2 * math.sqrt(2 / G)
    since_impact = (run.time.values + period / 2) % period
    height = math.sqrt(2 * G) * since_impact - G / 2 * since_impact**2
    np.testing.assert_allclose(run.q.values[0, :, 2], RADIUS + height, atol=1e-10)


@pytest.mark.parametrize("integrator", ["euler", "implicitfast", "implicit"])
def test_the_apex_of_an_elastic_ball_does_not_depend_on_the_phase_of_the_impacts(integrator):
    """The apex of Euler's method is that of the leapfrog method, 1 + g h^2 / 8, at every bounce."""
    mechanism = ball_on_floor(surface())
    heights = np.array([1.0, 0.93, 0.87])
    for h in (0.01, 0.005):
        run = run_of(mechanism, [pose(z) for z in heights], duration=9.0, step=h, integrator=integrator)
        for w, height in enumerate(heights):
            found = apexes(run.isel(world=[w]))
            assert len(found) >= 9
            np.testing.assert_allclose(found, height + G * h * h / 8, atol=1e-10)


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_the_error_after_bounces_has_the_order_of_the_free_motion_at_any_phase(integrator):
    """A ball with a drag: the state 1 s later, after two bounces, against a fine reference."""
    material = surface(0.9)
    body = zw.Body("ball", zw.Prismatic("z", axis=(0, 0, 1)), mass=1, inertia=(0.1,) * 3,
                   geometry=(zw.Sphere(RADIUS, surface=material),))  # fmt: skip
    mechanism = zw.Mechanism(
        "ball", (body,), geometry=(zw.Plane(surface=material),), forces=(zw.Damper("z", 0.8),)
    )
    expected = closed_form_with_drag(0.3 + RADIUS, 0.8, 0.9, 1.0)
    errors = []
    for steps in (50, 200):
        run = run_of(mechanism, [0.3 + RADIUS], duration=1.0, step=1 / steps, integrator=integrator)
        errors.append(abs(run.q.values[0, -1, 0] - expected[0]))
    order = math.log2(errors[0] / errors[1]) / 2
    assert order > (3.2 if integrator == "rk4" else 0.9)
    assert integrator != "rk4" or errors[-1] < 1e-9


def closed_form_with_drag(z, c, e, end):
    """(height, velocity) of a ball with z_ddot = -g - c z_dot that bounces at z = RADIUS, by bisection."""
    t, v = 0.0, 0.0

    def at(s):
        u = (v + G / c) * math.exp(-c * s)
        return z - G / c * s + (v + G / c) * (1 - math.exp(-c * s)) / c, u - G / c

    while True:
        low = max(v, 0.0) / G
        high = next(s for s in (low + 0.05 * k for k in range(1, 1000)) if at(s)[0] < RADIUS)
        for _ in range(100):
            middle = (low + high) / 2
            low, high = (middle, high) if at(middle)[0] > RADIUS else (low, middle)
        if t + low > end:
            return at(end - t)
        t, (z, v) = t + low, at(low)
        z, v = RADIUS, -e * v


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_a_bouncing_ball_comes_to_rest_at_the_end_of_its_infinitely_many_bounces(integrator):
    h, start, restitutions = 0.005, math.sqrt(2 / G), np.array([0.0, 0.5, 0.8])
    ends = start * (1 + restitutions) / (1 - restitutions)
    worlds = run_of(
        ball_on_floor(surface(zw.scalar.symbol("e"))), pose(1.0), params={"e": restitutions},
        duration=ends.max() + 1.0, step=h, integrator=integrator,
    )  # fmt: skip
    for w, (e, end) in enumerate(zip(restitutions, ends, strict=True)):
        run = worlds.isel(world=[w], time=worlds.time.values < end + 1.0)
        z, speed = run.q.values[0, :, 2] - RADIUS, run.v.values[0, :, 2]
        assert z.min() > -G * h * h / 2
        resting = run.time.values > end + 0.5
        assert resting.any() and np.abs(z[resting]).max() < 1e-9 and np.abs(speed[resting]).max() < 1e-9
        # the tops of the bounces are e^2 times those before
        tops = apexes(run)
        expected = e ** (2 * np.arange(1, 1 + len(tops)))
        visible = expected > 0.005
        np.testing.assert_allclose(tops[visible], expected[visible], atol=3 * G * h * h)


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_an_oblique_impact_follows_coulombs_law_of_impulses(integrator):
    """The tangential impulse is mu (1 + e) u while the ball slides; at most 2/7 of the slip, where it
    grips.
    """
    e, u, slip, friction = 0.8, math.sqrt(2 * G), 1.0, np.array([0.05, 0.1, 0.6])
    run = run_of(
        ball_on_floor(surface(e, zw.scalar.symbol("mu"))), pose(1.0), [slip, 0, 0, 0, 0, 0],
        params={"mu": friction}, duration=0.6, step=0.01, integrator=integrator,
    )  # fmt: skip
    impulse = np.minimum(friction * (1 + e) * u, 2 / 7 * slip)
    v, zero = run.v.values[:, -1], np.zeros(3)
    np.testing.assert_allclose(v[:, [0, 1, 3, 5]].T, [slip - impulse, zero, zero, zero], atol=1e-9)
    np.testing.assert_allclose(v[:, 4], impulse / (0.4 * RADIUS), atol=1e-8)


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_a_billiard_ball_is_reflected_by_walls_as_light_is(integrator):
    """In a square table the unfolded path is a straight line."""
    material = surface()
    ball = zw.Body("ball", (zw.Prismatic("x", axis=(1, 0, 0)), zw.Prismatic("y", axis=(0, 1, 0))), mass=1,
                   inertia=(0.1,) * 3, geometry=(zw.Sphere(RADIUS, surface=material),))  # fmt: skip
    turns = [[math.sqrt(0.5), 0, s * math.sqrt(0.5), 0] for s in (1, -1)]
    turns += [[math.sqrt(0.5), s * math.sqrt(0.5), 0, 0] for s in (-1, 1)]
    places = [(-1, 0, 0), (1, 0, 0), (0, -1, 0), (0, 1, 0)]
    walls = tuple(
        zw.Plane(position=p, orientation=turn, surface=material)
        for p, turn in zip(places, turns, strict=True)
    )  # fmt: skip
    mechanism = zw.Mechanism("billiards", (ball,), geometry=walls, gravity=(0, 0, 0))
    start, v, t = np.array([0.2, -0.1]), np.array([3.1, 1.7]), 5.0
    run = run_of(mechanism, start, v, duration=t, step=0.01, integrator=integrator)
    side = 2 * (1 - RADIUS)
    unfolded = (start + v * t + side / 2) / side
    folded = side * np.abs(unfolded - 2 * np.round(unfolded / 2)) - side / 2
    np.testing.assert_allclose(run.q.values[0, -1], folded, atol=1e-9)
    np.testing.assert_allclose(np.abs(run.v.values[0, -1]), v, atol=1e-9)


def row_of_balls(count, material):
    """Balls of 1 kg on a line without gravity."""
    balls = tuple(
        zw.Body(f"ball {k}", zw.Prismatic(f"x{k}", axis=(1, 0, 0)), mass=1, inertia=(0.1,) * 3,
                geometry=(zw.Sphere(RADIUS, surface=material),))
        for k in range(count)
    )  # fmt: skip
    return zw.Mechanism("row", balls, gravity=(0, 0, 0))


@pytest.mark.parametrize("clearance", [0.0, 1e-4])
def test_touching_balls_pass_the_momentum_on_as_in_newtons_cradle(clearance):
    q0 = [-0.2, *(k * (2 * RADIUS + clearance) for k in range(1, 5))]
    run = run_of(row_of_balls(5, surface()), q0, [1.0, 0, 0, 0, 0], duration=0.8, step=0.01)
    np.testing.assert_allclose(run.v.values[0, -1], [0, 0, 0, 0, 1], atol=1e-9)


@pytest.mark.parametrize("integrator", ["euler", "rk4"])
def test_plastic_balls_end_at_the_velocity_of_their_centre_of_mass(integrator):
    """Without gravity: the rounding that an impact leaves is no approach."""
    gap = 1e-3
    q0 = np.arange(5) * (2 * RADIUS + gap) - [0.05, 0.05, 0, 0, 0]
    run = run_of(
        row_of_balls(5, surface(0.0)), q0, [1.0, 1.0, 0, 0, 0], duration=0.08, step=0.004,
        integrator=integrator,
    )  # fmt: skip
    np.testing.assert_allclose(run.v.values[0, -1], 0.4, atol=1e-12)
    assert np.diff(run.q.values[0], axis=1).min() > 2 * RADIUS - 1e-14
    assert run.solver_status.max() == zw.SolverStatus.CONVERGED


def test_a_step_says_when_it_has_more_impacts_than_it_resolves():
    """Equal elastic balls exchange velocities: all pairs of paths cross, the last ball's in one world only;
    this is 15 and 21 impacts.
    """
    x, sizes = np.array([0.0, 1.0, 2.3, 3.1, 4.6, 5.7, 6.5]), 2 * RADIUS * np.arange(7)
    v = np.array([[8.0, 6.9, 5.1, 3.9, 3.2, 1.7, last] for last in (9.0, 0.8)])
    run = run_of(row_of_balls(7, surface()), x + sizes, v, duration=6, step=6)
    assert run.solver_status.max("time").values.tolist() == [0, zw.SolverStatus.NOT_CONVERGED]
    exact = [np.allclose(run.q.values[w, -1], np.sort(x + 6 * v[w]) + sizes) for w in (0, 1)]
    assert exact == [True, False]


@pytest.mark.parametrize("e", [0.0, 0.4, 1.0])
@pytest.mark.parametrize("integrator", ["euler", "rk4"])
def test_two_balls_of_unequal_masses_collide_by_the_textbook(integrator, e):
    material, masses, v0 = surface(e), np.array([1.0, 3.0]), np.array([2.0, -1.0])
    balls = tuple(
        zw.Body(f"ball {k}", zw.Prismatic(f"x{k}", axis=(1, 0, 0)), mass=float(mass), inertia=(0.1,) * 3,
                geometry=(zw.Sphere(RADIUS, surface=material),))
        for k, mass in enumerate(masses)
    )  # fmt: skip
    mechanism = zw.Mechanism("balls", balls, gravity=(0, 0, 0))
    run = run_of(mechanism, [0.0, 0.5], v0, duration=0.2, step=0.01, integrator=integrator)
    common = masses @ v0 / masses.sum()
    np.testing.assert_allclose(run.v.values[0, -1], common + e * (common - v0), atol=1e-10)
    # no earlier and no later than at t = 0.1: positions by the closed form
    expected = np.array([0.0, 0.5]) + 0.1 * v0 + 0.1 * (common + e * (common - v0))
    np.testing.assert_allclose(run.q.values[0, -1], expected, atol=1e-9)


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_an_elastic_bounce_mirrors_perturbations_of_the_height(integrator):
    """Without gravity y(T) = 2 r - (y0 + v T): dy(T)/dy0 = -1 and dy(T)/dv = -T, at every phase of the
    step.
    """
    mechanism = ball_on_floor(surface(), gravity=(0, 0, 0))
    T, d = 0.5, 1e-4

    starts = [
        (height + dz, 1.5 + dv)
        for height in (0.3, 0.307, 0.3199)
        for dz, dv in ((d, 0), (-d, 0), (0, d), (0, -d))
    ]
    q0, v0 = [pose(z) for z, _ in starts], [[0, 0, -speed, 0, 0, 0] for _, speed in starts]
    run = run_of(mechanism, q0, v0, duration=T, step=0.02, integrator=integrator)
    ends = run.q.values[:, -1, 2].reshape(3, 4)
    np.testing.assert_allclose((ends[:, 0] - ends[:, 1]) / (2 * d), -1, rtol=0, atol=1e-8)
    np.testing.assert_allclose((ends[:, 2] - ends[:, 3]) / (2 * d), T, rtol=0, atol=1e-8)


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("integrator", ["euler", "rk4"])
def test_a_pendulum_on_a_hard_constraint_bounces_off_a_wall_as_one_on_a_joint(integrator, compiled):
    material, run = surface(0.7), {"duration": 0.2, "step": 0.005, "integrator": integrator}
    shape = zw.Sphere(RADIUS, surface=material)
    wall = zw.Plane(position=(-RADIUS, 0, 0), surface=material,
                    orientation=[math.sqrt(0.5), 0, math.sqrt(0.5), 0])  # fmt: skip
    point = zw.Body("point", (zw.Prismatic("x", axis=(1, 0, 0)), zw.Prismatic("z", axis=(0, 0, 1))), mass=1,
                    inertia=(0.1,) * 3, geometry=(shape,))  # fmt: skip
    rod = zw.Distance("rod", ("point", (0, 0, 0)), ("world", (0, 0, 0)), 1.0)
    loop = zw.Mechanism("loop", (point,), constraints=(rod,), geometry=(wall,))
    bob = zw.Body("bob", zw.Revolute("turn", axis=(0, 1, 0)), mass=1, com=(0, 0, -1),
                  geometry=(zw.Sphere(RADIUS, position=(0, 0, -1), surface=material),))  # fmt: skip
    joint = zw.Mechanism("joint", (bob,), geometry=(wall,))
    angle, rate = 0.15, -1.5  # it meets the wall at the bottom, where x = 0
    start = [math.sin(angle), -math.cos(angle)], [rate * math.cos(angle), rate * math.sin(angle)]
    found = run_of(loop, *start, compiled=compiled, **run).q.values[0]
    turn = run_of(joint, [-angle], [-rate], compiled=compiled, **run).q.values[0, :, 0]
    assert found[:, 0].min() > -2e-4 and found[-1, 0] > 0.01
    np.testing.assert_allclose(found[:, 0], -np.sin(turn), atol=1e-6 if integrator == "rk4" else 5e-3)


def test_a_block_at_a_hard_limit_is_a_wall_for_what_hits_it():
    material = surface(0.6)
    ball, block = (
        zw.Body(name, zw.Prismatic(name, axis=(1, 0, 0), limits=limits, limit_softness=None), mass=mass,
                inertia=(0.1,) * 3, geometry=(zw.Sphere(RADIUS, surface=material),))
        for name, mass, limits in (("ball", 1.0, None), ("block", 5.0, (-1.0, 0.0)))
    )  # fmt: skip
    mechanism = zw.Mechanism("limit", (ball, block), gravity=(0, 0, 0))
    run = run_of(mechanism, [-1.0, 0.0], [2.0, 0.0], duration=0.6, step=0.01)
    np.testing.assert_allclose(run.v.values[0, -1], [-1.2, 0.0], atol=1e-9)
    impact = (1.0 - 2 * RADIUS) / 2
    assert run.q.values[0, -1, 0] == pytest.approx(-2 * RADIUS - 1.2 * (0.6 - impact), abs=1e-9)


def test_a_fast_ball_does_not_pass_through_a_thin_plate_within_a_step():
    material = surface(0.5)
    ball = zw.Body("ball", zw.Prismatic("z", axis=(0, 0, 1)), mass=1, inertia=(0.1,) * 3,
                   geometry=(zw.Sphere(0.01, surface=material),))  # fmt: skip
    plate = zw.Box(1, 1, 0.004, surface=material)
    mechanism = zw.Mechanism("plate", (ball,), geometry=(plate,), gravity=(0, 0, 0))
    run = run_of(mechanism, [0.055], [-20.0], duration=0.02, step=0.01)
    assert run.v.values[0, -1, 0] == pytest.approx(10.0)
    impact = (0.055 - 0.012) / 20
    assert run.q.values[0, -1, 0] == pytest.approx(0.012 + 10 * (0.02 - impact), abs=1e-9)


def test_a_box_that_lands_on_a_face_stops_there_without_rotation():
    material = surface(0.0)
    body = zw.Body("box", zw.Free("free"), mass=1, inertia=(0.01,) * 3,
                   geometry=(zw.Box(0.2, 0.2, 0.2, surface=material),))  # fmt: skip
    mechanism = zw.Mechanism("box", (body,), geometry=(zw.Plane(surface=material),))
    for integrator in ("euler", "rk4"):
        run = run_of(mechanism, pose(0.5), duration=0.6, step=0.01, integrator=integrator)
        np.testing.assert_allclose(run.q.values[0, -1], pose(0.0), atol=1e-9)
        np.testing.assert_allclose(run.v.values[0, -1], np.zeros(6), atol=1e-9)


def test_an_impact_in_single_precision_is_that_in_double():
    mechanism = ball_on_floor(surface(0.8, 0.3))
    ends = [
        zw.compile(mechanism, dtype=dtype)
        .rollout(pose(1.0), [1.0, 0, 0, 0, 0, 0], np.zeros(6), steps=90, step=0.01, integrator="rk4")
        .q
        for dtype in ("float64", "float32")
    ]
    np.testing.assert_allclose(ends[1], ends[0], atol=2e-5)


def test_worlds_with_different_impacts_are_equal_to_single_ones_to_the_bit():
    mechanism = ball_on_floor(surface(0.7, 0.3))
    heights = np.linspace(0.05, 1.0, 13)
    q0 = np.array([pose(height) for height in heights])
    v0 = np.array([[1.0, 0.2 * k, 0, 0, 0, 3.0] for k in range(13)])
    options = {"duration": 0.8, "step": 0.01}
    together = run_of(mechanism, q0, v0, **options)
    for w in (0, 5, 12):
        alone = run_of(mechanism, q0[w], v0[w], **options)
        assert np.array_equal(together.q.values[w], alone.q.values[0])
    floats = run_of(mechanism, q0[5], v0[5], compiled=False, **options)
    np.testing.assert_allclose(together.q.values[5], floats.q.values[0], atol=1e-9)


# -------------------------------------------------- hard limits and contacts that close without an impact


@pytest.mark.parametrize("integrator", ["euler", "implicit", "rk4", "dop853", "bdf"])
@pytest.mark.parametrize("h", [0.01, 0.002])
def test_a_hard_limit_stops_a_mass_without_rebound(integrator, h):
    """The distance closes within a few steps, whatever its phase in the step is; the exact end is at rest."""
    stop = zw.Prismatic("x", (1, 0, 0), limits=(-9, 0.5003), limit_softness=None)
    m = zw.Mechanism("m", [zw.Body("b", stop, mass=1.0)], gravity=(0, 0, 0))
    run = zw.simulate(m, [0.0], [1.0], duration=1.0, step=h, integrator=integrator, progress=False)
    x, t = run.q.values[0, :, 0], run.time.values
    assert x.max() < 0.5003 + 1e-9 and x[-1] == pytest.approx(0.5003, abs=1e-7)
    assert abs(run.v.values[0, -1, 0]) < 1e-7
    np.testing.assert_allclose(x, np.minimum(t, 0.5003), atol=2 * h)


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_recorded_forces_do_not_include_impacts(integrator, compiled):
    """The ball falls freely to the impact, which takes its momentum, and carries its weight afterwards; all
    samples of its forces and sensors are those of one of these motions.
    """
    m, h = ball_on_floor(surface(0.0)), 2e-3
    m = m.replace(
        sensors=(
            zw.SiteSensor("felt", "accelerometer", "ball"),
            zw.TouchSensor("touch", "ball", zw.Sphere(0.2)),
        )
    )
    wanted = {"constraints": True, "forces": True, "reactions": True, "sensors": True}
    run = run_of(
        m, pose(0.01), duration=0.06, step=h, integrator=integrator, record=wanted, compiled=compiled
    )
    lands = math.ceil(math.sqrt(0.02 / G) / h)
    expected = np.where(np.arange(31) < lands, 0.0, G)
    assert run.generalised_constraint_force[0, :, 2].values == pytest.approx(expected, abs=1e-6)
    assert run.force[0, :, 0, 2].values == pytest.approx(expected, abs=1e-6)
    assert run.sensor[0, :, 2].values == pytest.approx(expected, abs=1e-6)
    assert run.sensor[0, :, 3].values == pytest.approx(expected, abs=1e-6)
    assert np.abs(run.reaction_force.values).max() < 1e-6  # of a free joint


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_the_recorded_reaction_of_a_hinge_does_not_include_an_impact(integrator):
    """An arm swings down onto the floor: up to the sample before the impact its hinge has the reaction of the
    free arm, by the laws of Newton and Euler.
    """
    hard, mass, length, inertia = surface(0.5), 1.0, 0.25, 0.02
    ball = zw.Sphere(0.05, position=(0.5, 0, 0), surface=hard)
    arm = zw.Body("arm", zw.Revolute("hinge", axis=(0, 1, 0)), position=(0, 0, 0.05), mass=mass,
                  com=(length, 0, 0), inertia=(inertia,) * 3, geometry=[ball])  # fmt: skip
    m = zw.Mechanism("arm", [arm], geometry=[zw.Plane(surface=hard)])
    run = run_of(m, [-0.5], duration=0.4, step=1e-3, integrator=integrator, record={"reactions": True})
    q, v = run.q.values[0, :, 0], run.v.values[0, :, 0]
    struck = int(np.argmax(np.diff(v) < -0.1))
    assert v[struck] > 1 and v[struck + 1] < -0.4
    a = mass * G * length * np.cos(q) / (inertia + mass * length**2)
    reaction = mass * (G - length * (np.cos(q) * a - np.sin(q) * v**2))
    found = run.reaction_force.values[0, :, 0, 2]
    assert found[: struck + 1] == pytest.approx(reaction[: struck + 1], abs=1e-6)


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_a_ball_that_is_pressed_down_without_gravity_has_this_force(integrator, compiled):
    """Rounding gives it a velocity downwards, which is no impact."""
    hard, push = surface(0.0), 5.0
    ball = zw.Body("ball", zw.Prismatic("z"), mass=1.0, geometry=[zw.Sphere(0.1, surface=hard)])
    m = zw.Mechanism("m", [ball], geometry=[zw.Plane(surface=hard)], gravity=(0, 0, 0),
                     forces=[zw.Wrench("ball", force=(0, 0, -push))],
                     sensors=[zw.TouchSensor("touch", "ball", zw.Sphere(0.2))])  # fmt: skip
    wanted = {"forces": True, "sensors": True}
    run = run_of(m, [0.1], duration=0.02, step=1e-3, integrator=integrator, record=wanted, compiled=compiled)
    assert not run.solver_status[0, 1:].any()
    assert run.force[0, :, 0, 2].values == pytest.approx(push, abs=1e-9)
    assert run.sensor[0, :, 0].values == pytest.approx(push, abs=1e-9)
    for v in (-1e-18, 0.0, 1e-18):
        (contact,) = zw.contacts(m, [0.1], [v], [0])
        assert contact.force[0] == pytest.approx(push, abs=1e-9)
        assert zw.joint_reactions(m, [0.1], [v], [0]).acceleration == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_a_follower_on_a_fast_cam_has_the_force_of_its_spring_and_acceleration(integrator):
    """f = m (g + z'') + k z + F of a roller that a spring presses on an eccentric disc, which turns once in
    0.16 s: the velocity of the contact is off by more than |g| h.
    """
    hard, eccentric, distance, mass, w, h = surface(0.0), 0.05, 0.3, 1.0, 40.0, 5e-3
    disc = zw.Sphere(0.2, position=(eccentric, 0, 0), surface=hard)
    cam = zw.Body("cam", zw.Revolute("cam", axis=(0, 1, 0)), mass=1e4, inertia=(1e4,) * 3, geometry=[disc])
    roller = zw.Body("roller", zw.Prismatic("z"), mass=mass, geometry=[zw.Sphere(0.1, surface=hard)])
    push = zw.Wrench("roller", force=(0, 0, -300.0))
    m = zw.Mechanism("m", [cam, roller], forces=[push, zw.Spring("z", stiffness=1000.0)])

    def height(angle):
        x = eccentric * np.cos(angle)
        return -eccentric * np.sin(angle) + np.sqrt(distance**2 - x**2)

    run = run_of(m, [0.0, height(0.0)], [w, -eccentric * w], duration=0.3, step=h, integrator=integrator,
                 record={"constraints": True})  # fmt: skip
    angle, d = run.q.values[0, :, 0], 1e-4
    z2 = (height(angle + d) - 2 * height(angle) + height(angle - d)) / d**2 * w**2
    expected = mass * (G + z2) + 1000.0 * height(angle) + 300.0
    found = run.generalised_constraint_force.values[0, :, 1]
    assert expected.min() > 100 and np.abs(found / expected - 1)[1:].max() < 0.2


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_contacts_of_a_fall_and_of_a_landed_ball_have_its_weight_or_nothing(integrator):
    m = ball_on_floor(surface(0.5))
    for height, speed, expected in ((0.001, -2.0, 0.0), (0.0, 0.0, G)):
        at = pose(height), [0, 0, speed, 0, 0, 0]
        forces = [contact.force[0] for contact in zw.contacts(m, *at, np.zeros(6))]
        assert sum(forces) == pytest.approx(expected, abs=1e-9)
        assert zw.joint_reactions(m, *at, np.zeros(6)).joints["free"].force == pytest.approx(0, abs=1e-9)
        worlds = zw.Worlds(m, 2, step=1e-3, integrator=integrator)
        worlds.reset(q=at[0], v=at[1])
        assert np.nansum(worlds.contacts.force[..., 0], axis=-1) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("integrator", ["dop853", "rk45", "bdf", "lsoda"])
def test_error_controlled_steps_do_not_pass_through_hard_contacts(integrator):
    """A thin wall stops a sphere, at the recorded times between the steps, too."""
    s, h = zw.Surface(hard=True, condim=1), 0.005
    ball = zw.Body("b", zw.Prismatic("x", (1, 0, 0)), mass=1.0, geometry=[zw.Sphere(0.1, surface=s)])
    wall = zw.Box(0.02, 1, 1, position=(0.51, 0, 0), surface=s)
    m = zw.Mechanism("m", [ball], geometry=[wall], gravity=(0, 0, 0))
    run = zw.simulate(m, [0.0], [1.0], duration=0.6, step=h, integrator=integrator, progress=False)
    np.testing.assert_allclose(run.q.values[0, :, 0], np.minimum(run.time.values, 0.4), atol=2 * h)
    assert run.q.values.max() < 0.4 + 1e-9 and abs(run.v.values[0, -1, 0]) < 1e-7


def test_an_error_controlled_fall_ends_at_rest_and_slides_by_coulombs_law():
    """A sphere on prismatic joints falls, lands without rebound, and slides until friction stops it."""
    s, mu, u, z0, h = zw.Surface(hard=True, friction=(0.3, 0.005, 0.0001)), 0.3, 1.0, 0.05, 0.001
    joints = tuple(zw.Prismatic(n, a) for n, a in zip("xyz", np.eye(3), strict=True))
    body = zw.Body("b", joints, mass=2.0, geometry=[zw.Sphere(0.1, surface=s)])
    m = zw.Mechanism("m", [body], geometry=[zw.Plane(position=(0, 0, -0.1), surface=s)])
    run = zw.simulate(m, [0, 0, z0], [u, 0, 0], duration=0.5, step=h, integrator="dop853", progress=False)
    x, _, z = run.q.values[0].T
    t = run.time.values
    np.testing.assert_allclose(z, np.maximum(z0 - 9.81 / 2 * t**2, 0), atol=3 * h)
    # the impulse of the landing takes mu sqrt(2 g z0) of the speed, and the weight mu g t
    landing = np.sqrt(2 * z0 / 9.81)
    rest = u - mu * 9.81 * landing
    assert x[-1] == pytest.approx(u * landing + rest**2 / (2 * mu * 9.81), abs=2 * h)
    assert np.abs(run.v.values[0, -1]).max() < 1e-7 and z.min() > -1e-6


@pytest.mark.parametrize("integrator", ["euler", "implicit"])
def test_a_wobbling_disc_is_no_series_of_impacts(integrator):
    """A thin disc rolls in place at the inclination alpha, its centre at rest, at the rate of precession
    Omega^2 = 4 g / (R sin alpha) (Moffatt, Nature 404 (2000) 833); the contact bends its path by nearly 4 g.
    """
    R, g, alpha, thickness = 0.04, 9.81, 0.3, 1e-5
    surface = zw.Surface(hard=True, friction=(0.8, 0, 0))
    moment = R * R / 4
    disc = zw.Body("disc", zw.Free("f"), mass=1, inertia=(moment, moment, 2 * moment),
                   geometry=[zw.Cylinder(R, thickness, surface=surface)])  # fmt: skip
    m = zw.Mechanism("m", [disc], geometry=[zw.Plane(surface=surface)])
    height = R * np.sin(alpha) + thickness / 2 * np.cos(alpha)
    q = np.array([0, 0, height, np.cos(alpha / 2), np.sin(alpha / 2), 0, 0])
    v = np.array([0, 0, 0, 0, np.sqrt(4 * g / (R * np.sin(alpha))) * np.sin(alpha), 0])
    fast, errors = zw.compile(m), []
    for h in (2e-4, 1e-4):
        n = round(0.05 / h)
        end = fast.rollout(q, v, np.zeros((n, 6)), steps=n, step=h, integrator=integrator).q[-1]
        errors.append(np.arccos(1 - 2 * (end[4] ** 2 + end[5] ** 2)) - alpha)
        assert np.abs(end[:2]).max() < 1e-4
    assert abs(errors[0]) < 1e-3 and errors[1] == pytest.approx(errors[0] / 2, rel=0.1)
