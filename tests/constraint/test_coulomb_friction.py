"""Coulomb friction that sticks: blocks, a bead on a rough hoop, bearings, against closed forms, hand-derived
equations and the integration of these by SciPy.
"""

import numpy as np
import pytest
import sympy as sp
from scipy.integrate import solve_ivp
from scipy.optimize import brentq, fsolve

import zwang as zw
from tests.symbolic.machines import X, Y, Z
from zwang.errors import DescriptionError, NonIdealForceError, UnknownNameError
from zwang.simulation.status import FAILURE_REASONS

G = 9.81
MU, MASS = 0.3, 2.0
EXACT = ("rk4", "dop853", "radau")


def simulated(m, q0, v0, duration, step=0.01, integrator="rk4", **more):
    run = zw.simulate(m, q0, v0, duration=duration, step=step, integrator=integrator, progress=False, **more)
    assert not run.failure_reason.any()
    return run.time.values, run.q.values[0], run.v.values[0]


def block(angle=0.0, mu=MU, static=None):
    """A block on an incline, whose x axis points uphill."""
    body = zw.Body("block", zw.Prismatic("x", axis=X), mass=MASS, inertia=(0.1, 0.1, 0.1))
    return zw.Mechanism(
        "block",
        [body],
        gravity=(-G * np.sin(angle), 0, -G * np.cos(angle)),
        constraints=[zw.CoulombFriction("friction", mu, joint="x", static_coefficient=static)],
    )


# ---------------------------------------------------------------------------------------------- block


@pytest.mark.parametrize("integrator", [*EXACT, "rk45", "bdf", "lsoda"])
def test_a_block_stops_at_the_exact_time_and_place_and_stays(integrator):
    v0, rough = 1.0, integrator in ("rk45", "bdf", "lsoda")
    t, q, v = simulated(block(), [0], [v0], 10.5, integrator=integrator)
    near = 2e-6 if rough else 1e-12
    np.testing.assert_allclose(v[:, 0], np.maximum(v0 - MU * G * t, 0), atol=near)
    assert q[-1, 0] == pytest.approx(v0**2 / (2 * MU * G), abs=near)
    assert np.ptp(q[t > 0.5]) < 1e-12


@pytest.mark.parametrize("integrator", ["euler", "implicitfast", "implicit"])
def test_velocity_level_steps_end_at_rest_without_overshoot(integrator):
    v0, h = 1.0, 1e-3
    t, q, v = simulated(block(), [0], [v0], 10.5, h, integrator)
    np.testing.assert_allclose(v[:, 0], np.maximum(v0 - MU * G * t, 0), atol=1e-12)
    assert (v >= 0).all() and abs(q[-1, 0] - v0**2 / (2 * MU * G)) < h * v0
    assert np.ptp(q[t > 0.5]) < 1e-12


@pytest.mark.parametrize("integrator", EXACT)
@pytest.mark.parametrize("static", [None, 0.4])
def test_a_block_slides_up_an_incline_and_down_again_where_it_is_steep(integrator, static):
    v0, angle = 2.0, np.deg2rad(30)
    up, down = G * (np.sin(angle) + MU * np.cos(angle)), G * (np.sin(angle) - MU * np.cos(angle))
    top = v0**2 / (2 * up)
    t, q, v = simulated(block(angle, static=static), [0], [v0], 1.0, integrator=integrator)
    later = np.maximum(t - v0 / up, 0)
    expected = np.where(later > 0, top - down * later**2 / 2, v0 * t - up * t**2 / 2)
    np.testing.assert_allclose(q[:, 0], expected, atol=1e-9)
    assert v[-1, 0] == pytest.approx(-down * later[-1], rel=1e-8)


@pytest.mark.parametrize("integrator", EXACT)
def test_a_block_stays_on_an_incline_below_the_friction_angle(integrator):
    angle = np.deg2rad(15)
    t, q, _ = simulated(block(angle), [0], [2.0], 11.0, integrator=integrator)
    height = 2.0**2 / (2 * G * (np.sin(angle) + MU * np.cos(angle)))
    assert q[-1, 0] == pytest.approx(height, abs=1e-9) and np.ptp(q[t > 1]) < 1e-12


@pytest.mark.parametrize("integrator", EXACT)
def test_rest_needs_a_greater_force_than_sliding(integrator):
    m = block(static=0.5)
    held, pulled = 0.49 * MASS * G, 0.51 * MASS * G
    t, q, _ = simulated(m, [0], [0], 1.0, integrator=integrator, control=[held])
    assert np.ptp(q) < 1e-12
    t, q, _ = simulated(m, [0], [0], 1.0, integrator=integrator, control=[pulled])
    np.testing.assert_allclose(q[:, 0], (pulled / MASS - MU * G) * t**2 / 2, atol=1e-9)


@pytest.mark.parametrize("integrator", ["dop853", "rk45", "radau", "bdf", "lsoda"])
def test_a_block_on_a_vibrating_force_sticks_and_slips(integrator):
    """Against the solution by pieces: x'' = F(t)/m -+ mu g while it slides, and rest while |F| < mu m g.

    At rest the derivative is zero, so that an integrator's own step would become longer than the period.
    """
    amplitude, w = 1.6 * MU * MASS * G, 20.0
    pull = {"control": lambda t, q, v: [amplitude * np.sin(w * t)]}
    t, q, v = simulated(block(), [0], [0], 15 / w, 0.05 / w, integrator, **pull)

    def slide(t0, sign):
        """The end of sliding, and the displacement, from t0 on."""

        def speed(t):
            pulled = amplitude / w * (np.cos(w * t0) - np.cos(w * t)) / MASS
            return pulled * sign - MU * G * (t - t0)

        end = brentq(speed, t0 + 0.3 / w, t0 + (np.pi + 0.9) / w)
        s = np.linspace(t0, end, 4001)
        return end, sign * np.trapezoid(speed(s), s)

    begin = np.arcsin(MU * MASS * G / amplitude) / w
    end, moved = slide(begin, 1)
    assert end < np.pi / w + begin  # it rests before it is pulled back
    for k in range(4):  # it is pulled to and fro
        inside = (w * t > w * end + k * np.pi + 0.01) & (w * t < w * begin + (k + 1) * np.pi - 0.01)
        assert inside.sum() > 5
        np.testing.assert_allclose(q[inside, 0], moved if k % 2 == 0 else 0, atol=1e-6)
        np.testing.assert_allclose(v[inside, 0], 0, atol=1e-12)


def test_a_block_that_is_hit_by_a_ball_stops_at_the_exact_place():
    """The elastic ball of the same mass hands on its velocity."""
    hard, u = zw.Surface(hard=True, restitution=1.0, condim=1), 0.5
    bodies = [
        zw.Body(x, zw.Prismatic(x, axis=X), mass=MASS, position=(at, 0, 0),
                geometry=[zw.Sphere(0.1, surface=hard)])
        for x, at in (("x", 0), ("y", -0.204))
    ]  # fmt: skip
    laws = [zw.CoulombFriction("friction", MU, joint="x")]
    m = zw.Mechanism("billiards", bodies, gravity=(0, 0, -G), constraints=laws)
    _, q, v = simulated(m, [0, 0], [0, u], 0.4, 0.02)
    np.testing.assert_allclose(q[-1], [u**2 / (2 * MU * G), 0.004], atol=1e-12)
    np.testing.assert_allclose(v[-1], 0, atol=1e-12)


def test_a_hard_contact_elsewhere_leaves_a_stop_as_it_is():
    hard = zw.Surface(hard=True, condim=1)
    far = zw.Body("far", zw.Prismatic("z", (0, 0, 1)), position=(50, 0, 0), mass=1,
                  geometry=[zw.Sphere(0.1, surface=hard)])  # fmt: skip
    alone, angle, v0 = block(np.deg2rad(15)), np.deg2rad(15), 2.0
    m = alone.replace(bodies=[*alone.bodies, far], geometry=[zw.Plane(surface=hard)])
    _, q, _ = simulated(m, [0, 1], [v0, 0], 1.0, 0.02)
    exact = v0**2 / (2 * G * (np.sin(angle) + MU * np.cos(angle)))
    np.testing.assert_allclose(q[-1, 0], exact, atol=1e-13)


def oscillator():
    body = zw.Body("block", zw.Prismatic("x", axis=X), mass=MASS, inertia=(0.1, 0.1, 0.1))
    return zw.Mechanism(
        "oscillator",
        [body],
        forces=[zw.Spring("x", 50.0)],
        constraints=[zw.CoulombFriction("friction", 0.1, joint="x")],
    )


def test_steps_that_are_divided_at_stops_keep_the_order_of_the_method():
    """Each half swing ends 2 mu m g / k nearer to the middle; within mu m g / k the block stays."""
    band, start = 0.1 * MASS * G / 50.0, 0.5
    rest = start
    while abs(rest) > band:
        rest = -np.sign(rest) * (abs(rest) - 2 * band)
    errors = []
    for h in (0.08, 0.04, 0.02):
        _, q, v = simulated(oscillator(), [start], [0], 8.0, h)
        assert v[-1, 0] == pytest.approx(0, abs=1e-12)
        errors.append(abs(q[-1, 0] - rest))
    assert errors[0] / errors[1] > 12 and errors[1] / errors[2] > 12 and errors[2] < 1e-6
    _, q, _ = simulated(oscillator(), [start], [0], 8.0, 0.01, "dop853")
    assert q[-1, 0] == pytest.approx(rest, abs=1e-9)


def test_the_law_is_set_valued_at_rest():
    m = block()
    for pull in (-5.0, 0.0, 3.0):
        found = zw.constrained_dynamics(m, [0], [0], [pull])
        assert found.acceleration[0] == pytest.approx(0, abs=1e-12)
        assert found.forces["friction"][0] == pytest.approx(-pull, abs=1e-10)
    found = zw.constrained_dynamics(m, [0], [0], [8.0])
    assert found.acceleration[0] == pytest.approx(8.0 / MASS - MU * G, rel=1e-12)


# ------------------------------------------------------------------------------------------ bead on a hoop

x, y, N = sp.symbols("x y N", real=True)
vx, vy = sp.symbols("x_dot y_dot", real=True)
R = 0.5


def bead(gravity, friction):
    slides = (zw.Prismatic("x", axis=X), zw.Prismatic("y", axis=Y))
    hoop = zw.Holonomic("hoop", sp.sqrt(x**2 + y**2) - R)
    return zw.Mechanism(
        "bead", [zw.Body("bead", slides, mass=0.4)], gravity=gravity, constraints=[hoop, friction]
    )


def rough_hoop(gravity=(0, -G, 0), mu=MU):
    r = sp.sqrt(x**2 + y**2)
    return bead(
        gravity, zw.CoulombFriction("rough", mu, constraint="hoop", sliding={"x": -y / r, "y": x / r})
    )


def squared_speed(phi, start):
    """v^2 of a bead that slides in the direction of phi, from rest at `start`; phi from the lowest point.

    d(v^2)/dphi = -2 g R sin(phi) - 2 mu (g R cos(phi) + v^2), where the bead presses outwards.
    """
    b = -6 * MU * G * R / (1 + 4 * MU**2)
    a = 2 * G * R + 2 * MU * b
    particular, at_start = a * np.cos(phi) + b * np.sin(phi), a * np.cos(start) + b * np.sin(start)
    return particular - at_start * np.exp(-2 * MU * (phi - start))


def turning_points(start):
    """The angles at which the bead is at rest, up to the one where it stays."""
    found = [start]
    while abs(np.tan(found[-1])) > MU:
        begin = -abs(found[-1])
        end = brentq(lambda p, begin=begin: squared_speed(p, begin), begin + 1e-3, 1.5)
        found.append(end if found[-1] < 0 else -end)
    return found


@pytest.mark.parametrize("integrator", EXACT)
def test_a_bead_on_a_rough_hoop_comes_to_rest_and_does_not_creep(integrator):
    start = -1.2
    t, q, v = simulated(rough_hoop(), [R * np.sin(start), -R * np.cos(start)], [0, 0], 12.0, 2e-3, integrator)
    phi = np.arctan2(q[:, 0], -q[:, 1])
    turns = turning_points(start)
    assert len(turns) == 3 and phi[-1] == pytest.approx(turns[-1], abs=1e-7)
    first = t < t[np.argmax(phi)] - 0.01  # the speed of the first swing
    np.testing.assert_allclose((v[first] ** 2).sum(axis=1), squared_speed(phi[first], start), atol=1e-7)
    assert phi.max() == pytest.approx(turns[1], abs=1e-5)
    assert np.ptp(q[t > 2], axis=0).max() < 1e-12


@pytest.mark.parametrize("options", [{"coordinate_reduction": True}, {"stabilization": "baumgarte"}])
def test_a_bead_comes_to_rest_however_the_hoop_is_enforced(options):
    start = -1.2
    _, q, _ = simulated(rough_hoop(), [R * np.sin(start), -R * np.cos(start)], [0, 0], 2.0, 2e-3, **options)
    assert np.arctan2(q[-1, 0], -q[-1, 1]) == pytest.approx(turning_points(start)[-1], abs=1e-5)


def test_the_capstan_equation():
    """Without gravity v = v0 exp(-mu theta), as the tensions at the ends of a rope about a bollard."""
    _, q, v = simulated(rough_hoop(gravity=(0, 0, 0)), [R, 0], [0, 3.0], 1.5, 5e-3)
    theta = np.unwrap(np.arctan2(q[:, 1], q[:, 0]))
    np.testing.assert_allclose(np.linalg.norm(v, axis=1), 3.0 * np.exp(-MU * theta), rtol=1e-7)


def test_a_thousand_worlds_equal_the_float_path_and_each_world_alone():
    m, step = rough_hoop(mu=sp.Symbol("mu")), 0.01
    mu = np.linspace(0.05, 0.9, 1000)
    start = ([R * np.sin(1.0), -R * np.cos(1.0)], [0.0, 0.0])
    given = {"duration": 0.6, "step": step, "integrator": "rk4", "progress": False}
    run = zw.simulate(m, *start, params={"mu": mu}, **given)
    assert not run.failure_reason.any()
    for k in (0, 999):
        alone = zw.simulate(m, *start, params={"mu": mu[k : k + 1]}, **given)
        np.testing.assert_array_equal(run.q.values[k], alone.q.values[0])
    floats = zw.simulate(m.subs({"mu": mu[411]}), *start, compiled=False, **(given | {"duration": 0.2}))
    np.testing.assert_allclose(run.q.values[411][:21], floats.q.values[0], atol=1e-12)


# ------------------------------------------------------------------------------------------- bearings


def pendulum(mu, r, length, mass, inertia):
    body = zw.Body("bob", zw.Revolute("phi", axis=Y), mass=mass, com=(0, 0, -length), inertia=(inertia,) * 3)
    return zw.Mechanism(
        "pendulum", [body], constraints=[zw.CoulombFriction("bearing", mu, joint="phi", radius=r)]
    )


@pytest.mark.parametrize("integrator", EXACT)
def test_the_loss_of_a_pendulum_in_its_bearing(integrator):
    """I w' = -m g l sin - s mu r |F|, with the bearing force F = m (l w^2 + g cos, l w' + g sin)."""
    mu, r, length, mass, inertia, start = 0.3, 0.05, 0.4, 1.5, 0.02, 1.0

    def derivative(t, state, sign):
        phi, w = state
        radial = mass * (length * w**2 + G * np.cos(phi))

        def balance(a):
            friction = mu * r * np.hypot(radial, mass * (length * a + G * np.sin(phi)))
            return (inertia + mass * length**2) * a + mass * G * length * np.sin(phi) + sign * friction

        return [w, brentq(balance, -500, 500, xtol=1e-13)]

    times, expected, phi, begin, end = np.arange(0, 1.5, 0.01), [], start, 0.0, 0.0
    while begin < times[-1]:
        sign = -np.sign(phi)

        def stop(t, state, sign, begin=begin):
            return state[1] * sign if t > begin + 1e-6 else 1.0

        stop.terminal, stop.direction = True, -1
        part = solve_ivp(derivative, (begin, 3), [phi, 1e-14 * sign], "DOP853", events=stop, args=(sign,),
                         dense_output=True, rtol=1e-10, atol=1e-12)  # fmt: skip
        end = part.t[-1]
        expected += [part.sol(t)[0] for t in times if begin <= t < end]
        begin, phi = end, part.y[0, -1]
    _, q, _ = simulated(pendulum(mu, r, length, mass, inertia), [start], [0], times[-1], 0.01 / 4, integrator)
    np.testing.assert_allclose(q[::4, 0], expected[: len(q[::4])], atol=2e-8)


def arm(mu=(0.3, 0.2)):
    links = [
        zw.Body("one", zw.Revolute("q1", axis=Y), mass=2.0, com=(0, 0, -0.25), inertia=(0.02, 0.03, 0.01)),
        zw.Body("two", zw.Revolute("q2", axis=Y), "one", (0, 0, -0.5), mass=1.0, com=(0, 0, -0.2),
                inertia=(0.01, 0.015, 0.01)),
    ]  # fmt: skip
    laws = [
        zw.CoulombFriction(f"f{k}", c, joint=f"q{k}", radius=r)
        for k, c, r in ((1, mu[0], 0.04), (2, mu[1], 0.03))
    ]
    return zw.Mechanism("arm", links, constraints=laws)


def arm_accelerations(q, v, mu=(0.3, 0.2), radius=(0.04, 0.03)):
    """Newton's and Euler's laws of both links; positions (sin, -cos) along absolute angles."""
    m, c, l1, I = (2.0, 1.0), (0.25, 0.2), 0.5, (0.03, 0.015)
    a1, a2 = q[0], q[0] + q[1]
    e = [np.array([np.sin(a), -np.cos(a)]) for a in (a1, a2)]
    n = [np.array([np.cos(a), np.sin(a)]) for a in (a1, a2)]
    w1, w2 = v[0], v[0] + v[1]

    def forces(acc):
        b1, b2 = acc[0], acc[0] + acc[1]
        elbow = l1 * (b1 * n[0] - w1**2 * e[0])
        f2 = m[1] * (elbow + c[1] * (b2 * n[1] - w2**2 * e[1]) + [0, G])
        f1 = m[0] * (c[0] * (b1 * n[0] - w1**2 * e[0]) + [0, G]) + f2
        return b1, b2, f1, f2

    def moment(p, f):
        return p[0] * f[1] - p[1] * f[0]

    def balance(acc):
        b1, b2, f1, f2 = forces(acc)
        t1, t2 = (
            -s * k * r * np.linalg.norm(f)
            for s, k, r, f in zip(np.sign(v), mu, radius, (f1, f2), strict=True)
        )
        two = I[1] * b2 - (t2 + moment(-c[1] * e[1], f2))
        one = I[0] * b1 - (t1 - t2 + moment(-c[0] * e[0], f1) - moment((l1 - c[0]) * e[0], f2))
        return [one, two]

    return fsolve(balance, np.zeros(2), xtol=1e-13)


def test_two_joints_whose_friction_depends_on_each_other():
    m = arm()
    q, v = np.array([0.5, 0.8]), np.array([1.0, -2.0])
    found = zw.constrained_dynamics(m, q, v, [0, 0])
    np.testing.assert_allclose(found.acceleration, arm_accelerations(q, v), rtol=1e-9)
    until = 0.05
    reference = solve_ivp(
        lambda t, s: [*s[2:], *arm_accelerations(s[:2], s[2:])], (0, until), [*q, *v], rtol=1e-10, atol=1e-10
    )
    assert (np.sign(reference.y[2:]) == np.sign(v)[:, None]).all()
    for integrator in EXACT:
        _, end, _ = simulated(m, q, v, until, 2e-3, integrator)
        np.testing.assert_allclose(end[-1], reference.y[:2, -1], atol=1e-8)


def test_the_arm_comes_to_rest_with_the_same_numbers_compiled_and_on_floats():
    given = {"q0": [0.5, 0.8], "v0": [1.0, -2.0], "duration": 0.1, "step": 0.01, "progress": False}
    for integrator in ("rk4", "euler", "dop853"):
        compiled, floats = (
            zw.simulate(arm(), integrator=integrator, compiled=c, **given) for c in (True, False)
        )
        np.testing.assert_allclose(compiled.q, floats.q, atol=1e-11)
    _, q, v = simulated(arm((2.0, 2.5)), [0.5, 0.8], [1.0, -2.0], 30.0, 0.01)
    assert abs(v[-1]).max() < 1e-12 and np.ptp(q[2500:], axis=0).max() < 1e-12


def reaction_at_start(m, tau, law, coefficient):
    """The friction torque of a law over its coefficient, where tau overcomes it at rest."""
    return abs(zw.constrained_dynamics(m, [0] * m.nq, [0] * m.nv, tau).forces[law][0]) / coefficient


def test_two_bearings_carry_a_moment():
    """A weight W on a horizontal shaft, at the distance a beyond the middle of bearings at the distance L:
    they carry W (a / L +- 1/2).
    """
    W, a, L, r = 3.0 * G, 0.4, 0.5, 0.02
    body = zw.Body("wheel", zw.Revolute("shaft", axis=X), mass=3.0, com=(a, 0, 0), inertia=(0.1, 0.1, 0.1))
    for distance, load in ((L, 2 * W * a / L), (10.0, W), (None, W)):
        law = zw.CoulombFriction("bearings", 0.1, joint="shaft", radius=r, bearing_distance=distance)
        m = zw.Mechanism("shaft", [body], constraints=[law])
        assert reaction_at_start(m, [5.0], "bearings", 0.1) == pytest.approx(r * load, rel=1e-10)


def test_a_collar_carries_the_axial_force():
    body = zw.Body("wheel", zw.Revolute("shaft", axis=Z), mass=3.0, inertia=(0.1, 0.1, 0.1))
    law = zw.CoulombFriction("collar", 0.1, joint="shaft", radius=0.02, collar_radius=0.05)
    push = zw.Wrench("wheel", force=(7.0, 0, -11.0))
    m = zw.Mechanism("shaft", [body], constraints=[law], forces=[push])
    expected = 0.02 * 7.0 + 0.05 * (3.0 * G + 11.0)
    assert reaction_at_start(m, [5.0], "collar", 0.1) == pytest.approx(expected, rel=1e-10)


def test_a_cantilever_jams_its_slide():
    """A bracket on a column: pushed down at the arm a it slides only if 2 mu a / L < 1."""
    a, L, push = 0.3, 0.2, 50.0

    def bracket(mu):
        body = zw.Body("bracket", zw.Prismatic("slide", axis=Z), mass=1.0, inertia=(0.1, 0.1, 0.1))
        force = zw.Wrench("bracket", force=(0, 0, -push), point=(a, 0, 0))
        law = zw.CoulombFriction("guide", mu, joint="slide", bearing_distance=L)
        return zw.Mechanism("bracket", [body], gravity=(0, 0, 0), constraints=[law], forces=[force])

    slides = zw.constrained_dynamics(bracket(0.25), [0], [0], [0])
    assert slides.acceleration[0] == pytest.approx(-push * (1 - 2 * 0.25 * a / L), rel=1e-9)
    holds = zw.constrained_dynamics(bracket(0.35), [0], [0], [0])
    assert holds.acceleration[0] == pytest.approx(0, abs=1e-9)


def test_a_controlled_wrench_loads_the_bearing_of_a_rotor():
    """It presses through the axis: N = F, torque = -mu r F, in the reactions as in a step."""
    rotor = zw.Body("rotor", zw.Revolute("a", axis=(0, 0, 1)), mass=1, inertia=(0.1, 0.1, 0.1))
    m = zw.Mechanism(
        "press",
        [rotor],
        gravity=(0, 0, 0),
        forces=[zw.Wrench("rotor", force=(0, 1, 0), input="press")],
        constraints=[zw.CoulombFriction("f", 0.3, joint="a", radius=0.02)],
    )
    found = zw.joint_reactions(m, [0], [50.0], [0], control={"press": 100.0})
    assert found.acceleration[0] == pytest.approx(-0.3 * 0.02 * 100 / 0.1, rel=1e-9)
    assert found.power["f"] == pytest.approx(-0.3 * 0.02 * 100 * 50, rel=1e-9)
    after = zw.compile(m).step([0.0], [50.0], [100.0], step=1e-3)
    assert (after.v[0] - 50) / 1e-3 == pytest.approx(found.acceleration[0], rel=1e-9)


def test_the_load_contains_springs_wrenches_loops_and_contacts():
    """The bearing force of a linkage in space that touches the ground, against zw.joint_reactions."""
    ball = zw.Sphere(0.05, position=(0.5, 0, 0), surface=zw.Surface())
    crank = zw.Body("crank", zw.Revolute("a", axis=Y), position=(0, 0, 0.3), mass=1.0, com=(0.2, 0.1, 0),
                    inertia=(0.02, 0.03, 0.02))  # fmt: skip
    rod = zw.Body("rod", zw.Revolute("b", axis=(0, 0.6, 0.8)), "crank", (0.4, 0, 0), mass=0.7,
                  com=(0.2, 0, 0.05), inertia=(0.01, 0.02, 0.02), geometry=(ball,))  # fmt: skip
    m = zw.Mechanism(
        "linkage",
        [crank, rod],
        geometry=(zw.Plane(name="ground"),),
        forces=[
            zw.PointSpring(("rod", (0.3, 0, 0)), ("world", (0, 0.5, 0)), stiffness=40.0, length=0.1),
            zw.Wrench("crank", force=(3.0, -2.0, 1.0), torque=(0.1, 0.2, 0.3), point=(0.1, 0, 0)),
        ],
        constraints=[
            zw.Distance("tie", ("rod", (0.2, 0, 0)), ("world", (0.6, 0.1, 0.5)), 0.45, zw.Softness()),
            zw.CoulombFriction("fa", 0.2, joint="a", radius=0.03),
            zw.CoulombFriction("fb", 0.1, joint="b", radius=0.02, collar_radius=0.01),
        ],
    )
    q, v = [0.55, -0.2], [1.5, -2.0]
    found, reaction = zw.constrained_dynamics(m, q, v, [0, 0]), zw.joint_reactions(m, q, v, [0, 0])
    assert any("ground" in name for name in found.active) and "tie" in found.active
    for law, joint, axis, radius, collar, mu, speed in (
        ("fa", "a", np.array([0, 1.0, 0]), 0.03, 0.0, 0.2, v[0]), ("fb", "b", None, 0.02, 0.01, 0.1, v[1]),
    ):  # fmt: skip
        force = reaction.joints[joint].force
        if axis is None:
            axis = zw.frame_pose(m, q, "rod")[0] @ np.array([0, 0.6, 0.8])
        axial = force @ axis
        load = radius * np.linalg.norm(force - axial * axis) + collar * abs(axial)
        assert found.forces[law][0] == pytest.approx(-np.sign(speed) * mu * load, rel=1e-8)


# ------------------------------------------------------------------------------------- paradoxes and errors


def painleve(mu):
    """Painleve's rod, whose tip slides on the ground; the sliding speed is that of the tip."""
    turn = sp.Symbol("turn", real=True)
    joints = (zw.Prismatic("x", axis=X), zw.Prismatic("y", axis=Y), zw.Revolute("turn", axis=Z))
    rod = zw.Body("rod", joints, mass=1, inertia=(1 / 12,) * 3)
    tip = zw.Holonomic("tip", y - sp.sin(turn) / 2)
    rough = zw.CoulombFriction("rough", mu, constraint="tip", sliding={"x": 1, "turn": sp.sin(turn) / 2})
    return zw.Mechanism("rod", [rod], gravity=(0, -G, 0), constraints=[tip, rough])


def test_painleves_paradox_is_an_error_or_a_status_by_name():
    q, s, c = [0, np.sin(0.9) / 2, 0.9], np.sin(0.9) / 2, np.cos(0.9) / 2
    for speed in (1.0, -1.0):
        found = zw.constrained_dynamics(painleve(0.3), q, [speed, 0, 0], [0, 0, 0])
        expected = G / (1 + 12 * c * (c + np.sign(speed) * 0.3 * s))
        assert found.forces["tip"][0] == pytest.approx(expected, rel=1e-10)
    with pytest.raises(NonIdealForceError, match=r"'rough'.*Painleve"):
        zw.constrained_dynamics(painleve(8.0), q, [-1.0, 0, 0], [0, 0, 0])
    for compiled in (True, False):
        with pytest.warns(zw.errors.SimulationWarning):
            run = zw.simulate(painleve(8.0), q, [-1.0, 0, 0], duration=0.01, step=1e-3, integrator="rk4",
                              compiled=compiled, progress=False)  # fmt: skip
        assert FAILURE_REASONS[int(run.failure_reason[0])].name == "no_working_force"


def formula_law():
    speed = sp.sqrt(vx**2 + vy**2)
    return bead(
        (0, -G, 0), zw.NonIdeal("friction", "hoop", {"x": -MU * N * vx / speed, "y": -MU * N * vy / speed})
    )


def test_a_formula_without_a_value_at_rest_names_the_ready_made_law():
    with pytest.raises(NonIdealForceError, match=r"no value at rest.*zw\.CoulombFriction"):
        zw.constrained_dynamics(formula_law(), [R, 0], [0, 0], [0, 0])
    for integrator in ("rk4", "dop853"):
        with pytest.warns(zw.errors.SimulationWarning, match="CoulombFriction"):
            zw.simulate(formula_law(), [R, 0], [0, 0], duration=0.1, step=0.01, integrator=integrator,
                        progress=False)  # fmt: skip


def test_error_control_ends_where_a_formula_stops_instead_of_shrinking_its_step():
    with pytest.warns(zw.errors.SimulationWarning, match="CoulombFriction"):
        run = zw.simulate(formula_law(), [0, -R], [0.5, 0], duration=3, step=0.01, integrator="dop853",
                          progress=False)  # fmt: skip
    # near the lowest point v' = -g sin(phi) - mu (g cos(phi) + v^2 / R), by the closed form
    assert 0.1 < float(run.termination_time[0]) < 0.2


def test_disabled_friction_and_json():
    m = block(static=0.4)
    off = m.replace(options=zw.Options(disabled=("frictionloss",)))
    _, q, _ = simulated(off, [0], [1.0], 1.0)
    assert q[-1, 0] == pytest.approx(1.0, rel=1e-12)
    for mechanism in (m, rough_hoop(mu=sp.Symbol("mu")), arm()):
        assert zw.Mechanism.from_json(mechanism.to_json()) == mechanism


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "give exactly one"),
        ({"joint": "x", "constraint": "wire"}, "give exactly one"),
        ({"joint": "x", "radius": 0.1}, "has no radius"),
        ({"joint": "phi"}, "needs radius="),
        ({"joint": "ball"}, "defined for revolute and prismatic"),
        ({"joint": "x", "static_coefficient": 0.1}, "at least the coefficient of sliding"),
        ({"joint": "x", "bearing_distance": 0.0}, "must be positive"),
        ({"joint": "x", "sliding": {"x": 1}}, "belongs to that of a constraint"),
        ({"constraint": "wire"}, "needs sliding="),
        ({"constraint": "wire", "sliding": {"x": 1}, "radius": 1.0}, "belong to that of a joint"),
        ({"constraint": "work", "sliding": {"x": 1}}, "itself a non-ideal force"),
    ],
)
def test_what_does_not_belong_together_is_refused(given, message):
    bodies = [
        zw.Body("a", zw.Prismatic("x", axis=X), mass=1, inertia=(1, 1, 1)),
        zw.Body("b", zw.Revolute("phi", axis=X), mass=1, inertia=(1, 1, 1)),
        zw.Body("c", zw.Ball("ball"), mass=1, inertia=(1, 1, 1)),
    ]
    others = [zw.Holonomic("wire", x), zw.NonIdeal("work", "wire", {"x": 1.0})]
    with pytest.raises(DescriptionError, match=message):
        zw.Mechanism("m", bodies, constraints=[*others, zw.CoulombFriction("f", 0.3, **given)])


def test_unknown_names_are_answered_with_the_valid_ones():
    for given in ({"joint": "z"}, {"constraint": "z", "sliding": {"x": 1}}):
        with pytest.raises(UnknownNameError, match="'z'"):
            block().replace(constraints=[zw.CoulombFriction("f", 0.3, **given)])


# ---------------------------------------------------------------------------------------------- equations


def test_symbolic_equations_contain_the_friction_of_sliding():
    m, r, mu, length = sp.symbols("m r mu l", positive=True)
    body = zw.Body("bob", zw.Revolute("phi", axis=Y), mass=m, com=(0, 0, -length))
    law = zw.CoulombFriction("bearing", mu, joint="phi", radius=r)
    e = zw.equations(zw.Mechanism("pendulum", [body], constraints=[law]))
    load, (rate,), (phi,) = e.symbols.force_magnitudes["phi"], e.symbols.v, e.symbols.q
    expected = -sp.Float(G) * m * length * sp.sin(phi) - mu * r * load * sp.sign(rate)
    assert sp.simplify(e.right_hand_side[0] - expected) == 0
    R0 = sp.Symbol("R0", positive=True)
    joints = (zw.Revolute("theta", axis=Z), zw.Prismatic("rho", axis=X))
    ring = zw.Holonomic("ring", sp.Symbol("rho", real=True) - R0)
    rough = zw.CoulombFriction("rough", mu, constraint="ring", sliding={"theta": sp.Symbol("rho", real=True)})
    e = zw.equations(
        zw.Mechanism("bead", [zw.Body("bead", joints, mass=m)], gravity=(0, 0, 0), constraints=[ring, rough]),
        ["theta"],
    )
    (rate,), load = e.symbols.u, e.symbols.force_magnitudes["ring"]
    found = e.accelerations[0].subs({load: sp.Abs(e.multipliers["ring"][0]), e.q[1]: R0, rate: 3})
    assert sp.simplify(found + mu * 9) == 0
