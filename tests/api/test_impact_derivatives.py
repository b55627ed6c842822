"""The exact derivatives of steps with hard contacts and impacts, against closed forms and differences.

The three gradient tasks are those of Zhong, Han, Dey, Brikis, Differentiable Physics Simulations with
Contacts: Do They Have Correct Gradients w.r.t. Position, Velocity and Control? (2022, arXiv 2207.05060).
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import zwang as zw
from tests.api.test_step_derivatives import differences, displaced, linkage, relative_error
from zwang.api.derivatives.step_derivatives import step_tangents

G, RADIUS = 9.8, 0.2


def surface(e=0.5, friction=None):
    given = {} if friction is None else {"friction": (friction, 0.01, 0.02)}
    return zw.Surface(condim=1 if friction is None else 3, hard=True, restitution=e, **given)


def disc(name, material, radius=RADIUS):
    """A ball of 1 kg that moves in the plane x, z."""
    return [
        zw.Body(f"{name} carriage", zw.Prismatic(f"{name}.x", (1, 0, 0))),
        zw.Body(f"{name}", zw.Prismatic(f"{name}.z", (0, 0, 1)), f"{name} carriage", mass=1,
                geometry=(zw.Sphere(radius, surface=material),)),
    ]  # fmt: skip


# ------------------------------------------------------------------------------- the three gradient tasks


@pytest.mark.parametrize("integrator", ["euler", "rk4"])
def test_a_ball_that_bounces_once_without_gravity(integrator, e=0.8):
    """Task 1: the height at the end, by the first height, velocity and force.

    With the velocity v < 0 after the first step, the height z_1 there, and the impact at the time
    t* = dt + (r - z_1) / v, the height at the end is

        z = r - e v (T - t*) = r - e (v (T - dt) + z_1 - r)

    The force u of the first step, on 1 kg, gives v = v_0 + u dt and z_1 = z_0 + v_0 dt + u dt^2 / 2; by
    Euler's method, z_1 = z_0 + v_0 dt + u dt^2. So dz/dv_0 = -e T, and dz/dz_0 = -e, where steps that do not
    locate the impact give +1.
    """
    ball = zw.Body("ball", zw.Prismatic("z", (0, 0, 1)), mass=1, geometry=(zw.Sphere(RADIUS),))
    floor = zw.Plane(surface=surface(e))
    fast = zw.compile(zw.Mechanism("bounce once", [ball], geometry=[floor], gravity=(0, 0, 0)))
    steps, dt = 48, 1 / 48
    by_state = np.zeros((steps, 2))
    by_state[-1, 0] = 1
    found = fast.rollout_gradient(
        by_state, [0.7], [-1.03], np.zeros((steps, 1)), step=dt, integrator=integrator
    )
    by_height = dt**2 * (0.5 if integrator == "rk4" else 1.0)
    np.testing.assert_allclose(found.start, [-e, -e], rtol=1e-10)
    np.testing.assert_allclose(found.control[0], -e * (dt * (1 - dt) + by_height), rtol=1e-10)
    assert not found.switching.any()


def test_a_ball_that_bounces_off_the_floor_and_a_wall():
    """Task 2: the square distance from a target at the end, by the first position and velocity.

    The fall takes t_1 = (v_z + s) / g and ends with the speed s = sqrt(v_z^2 + 2 g (z_0 - r)), so that
    z = r + e s (T - t_1) - g (T - t_1)^2 / 2. The wall reflects x = X - e (x_0 + v_x T - X), where X is the
    position of the centre at the wall. Hence, with d = T - t_1,

        dx/dx_0 = -e, dx/dv_x = -e T,    dz/dp = e d ds/dp - (e s - g d) dt_1/dp
        ds/dz_0 = g / s, ds/dv_z = v_z / s, dt_1/dz_0 = 1 / s, dt_1/dv_z = (1 + v_z / s) / g
    """
    e, wall, target, T, steps = 0.9, 2.0, np.array([-1.0, 1.5]), 1.0, 40
    material = surface(e)
    shapes = [zw.Plane(surface=material), zw.Box(0.2, 9, 9, surface=material, position=(wall + 0.1, 0, 0))]
    fast = zw.compile(
        zw.Mechanism("floor and wall", disc("ball", material), geometry=shapes, gravity=(0, 0, -G))
    )
    (x0, z0), (vx, vz), X = q0, v0, _ = np.array([-0.4, 1.0]), np.array([3.1, -2.3]), wall - RADIUS

    def by_state(run):
        out = np.zeros((steps, 4))
        out[-1, :2] = 2 * (run[0][-1] - target)
        return out

    found = fast.rollout_gradient(by_state, q0, v0, np.zeros((steps, 2)), step=T / steps, integrator="rk4")
    s = np.sqrt(vz**2 + 2 * G * (z0 - RADIUS))
    d = T - (vz + s) / G
    end = np.array([X - e * (x0 + vx * T - X), RADIUS + e * s * d - G * d**2 / 2])
    np.testing.assert_allclose(found.q[-1], end, rtol=1e-10)
    by_z0 = e * d * G / s - (e * s - G * d) / s
    by_vz = e * d * vz / s - (e * s - G * d) * (1 + vz / s) / G
    by_x, by_z = 2 * (end - target)
    expected = [-e * by_x, by_z0 * by_z, -e * T * by_x, by_vz * by_z]
    np.testing.assert_allclose(found.start, expected, rtol=1e-9)
    assert not found.switching.any()


def test_a_ball_that_is_pushed_against_another():
    """Task 3: the square distance of the second ball from the origin at the end, by the control of the first.

    The force a along the line n of the centres closes the distance L at t* = sqrt(2 L / a) with the speed
    w = a t*; then the second ball has the velocity (1 + e) / 2 (v_1 . n) n. A change du of the control during
    tau seconds, which end at t_e, changes the velocity of the first ball at t* by dv = du tau and its
    position by dx = du tau (t* - t_e + tau / 2). Therefore

        dt* = -dx . n / w,   dn = -(dx - (dx . n) n) / 2 r   (the line of the centres turns)
        dv_2 = (1 + e) / 2 ((dv . n + a dt*) n + w dn),   dx_2 = dv_2 (T - t*) - v_2 dt*
    """
    e, a, T, steps = 0.8, 3 * np.sqrt(2), 1.0, 30
    bodies = disc("first", surface(e)) + disc("second", surface(e))
    fast = zw.compile(zw.Mechanism("two balls", bodies, gravity=(0, 0, 0)))
    dt, n = T / steps, np.array([1, 1]) / np.sqrt(2)
    impact = np.sqrt(2 * (np.sqrt(2) - 2 * RADIUS) / a)
    w = a * impact
    v_2 = (1 + e) / 2 * w * n
    x_2 = np.array([-1, -1]) + v_2 * (T - impact)
    expected = np.zeros((steps, 2))
    for k in range(steps):
        ends = min((k + 1) * dt, impact)
        tau = max(ends - k * dt, 0.0)
        for i, du in enumerate(np.eye(2)):
            dv, dx = du * tau, du * tau * (impact - ends + tau / 2)
            later, turned = -dx @ n / w, -(dx - (dx @ n) * n) / (2 * RADIUS)
            dv_2 = (1 + e) / 2 * ((dv @ n + a * later) * n + w * turned)
            expected[k, i] = 2 * x_2 @ (dv_2 * (T - impact) - v_2 * later)

    def by_state(run):
        out = np.zeros((steps, 8))
        out[-1, 2:4] = 2 * run[0][-1, 2:]
        return out

    control = np.tile([3.0, 3.0, 0.0, 0.0], (steps, 1))
    q0 = np.array([-2.0, -2.0, -1.0, -1.0])
    found = fast.rollout_gradient(by_state, q0, np.zeros(4), control, step=dt, integrator="rk4")
    np.testing.assert_allclose(found.q[-1, 2:], x_2, rtol=1e-10)
    np.testing.assert_allclose(found.control[:, :2], expected, rtol=1e-9, atol=1e-12)
    assert not found.switching.any()


# ------------------------------------------------------------------------------- random states of scenes


def ball(rng):
    """A ball that is in contact with the floor, or closes it within the step, sticks or slides."""
    body = zw.Body("ball", zw.Free("ball"), mass=1, inertia=(0.004, 0.005, 0.006),
                   geometry=(zw.Sphere(0.1, surface=surface(0.5, 0.4)),))  # fmt: skip
    m = zw.Mechanism("ball", [body], geometry=[zw.Plane()])

    def state():
        q, v = displaced(m, np.array(m.neutral, float), rng.normal(size=6)), rng.normal(size=6)
        q[2] = 0.1 + rng.choice([1, -1]) * 10 ** rng.uniform(-5, -3.3)
        v[2] = rng.choice([-0.3, 0.02, -0.02])
        return q, v * [*(rng.choice([0.01, 1]),) * 2, 1, *(rng.choice([0.01, 1]),) * 3]

    return m, state


def box(rng):
    """A box that rests, slides, tips, or falls on the floor."""
    body = zw.Body("box", zw.Free("box"), mass=1, inertia=(0.01, 0.012, 0.009),
                   geometry=(zw.Box(0.2, 0.3, 0.16, surface=surface(0.5, 0.4)),))  # fmt: skip
    m = zw.Mechanism("box", [body], geometry=[zw.Plane()])
    signs = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])

    def state():
        tilt = rng.choice([1e-4, 1e-3, 0.5])
        turned = np.array([0, 0, 0, *rng.normal(size=2) * tilt, rng.normal()])
        q, v = displaced(m, np.array(m.neutral, float), turned), rng.normal(size=6) * rng.choice([0.02, 0.5])
        corners = signs * [0.1, 0.15, 0.08] @ zw.frame_pose(m, q, "box")[0].T
        q[2] = -corners[:, 2].min() + rng.choice([1, -1]) * 10 ** rng.uniform(-5, -4)
        v[2] = rng.choice([-0.3, 0.02, -0.02])
        return q, v

    return m, state


def balls(rng):
    """Two balls that touch, or collide within the step."""
    material = surface(0.5, 0.4)
    bodies = [
        zw.Body(
            name, zw.Free(name), mass=mass, inertia=(inertia,) * 3, geometry=(zw.Sphere(r, surface=material),)
        )
        for name, mass, inertia, r in (("a", 1.0, 0.01, 0.1), ("b", 0.3, 0.002, 0.07))
    ]
    m = zw.Mechanism("balls", bodies, gravity=(0, 0, -1))

    def state():
        q, v, n = np.array(m.neutral, float), rng.normal(size=12), rng.normal(size=3)
        n /= np.linalg.norm(n)
        q[7:10] = q[:3] + n * (0.17 + rng.choice([1, -1]) * 10 ** rng.uniform(-5, -3))
        v[6:9] -= rng.choice([3, 0]) * n
        return q, v

    return m, state


def stops(rng):
    """A double pendulum at its hard stops."""
    arms = [
        zw.Body(name, zw.Revolute(name, (0, 1, 0), limits=(-0.5, 0.7), limit_softness=None), parent,
                position, mass=1, com=(0, 0, -0.3), inertia=(0.02,) * 3)
        for name, parent, position in (("a", "world", (0, 0, 0)), ("b", "a", (0, 0, -0.6)))
    ]  # fmt: skip
    m = zw.Mechanism("stops", arms)

    def state():
        near = np.array([rng.choice([0.7, -0.5, 0]), rng.choice([0.7, -0.5])])
        return near + rng.choice([1, -1], 2) * 10 ** rng.uniform(-5, -3, 2), rng.normal(size=2)

    return m, state


@cache
def compiled(scene):
    return zw.compile(scene(None)[0])


@pytest.mark.parametrize("scene", [ball, box, balls, stops])
def test_derivatives_with_hard_contacts_are_the_limit_of_differences(scene):
    rng, h, errors = np.random.default_rng(7), 0.005, []
    m, state = scene(rng)
    fast = compiled(scene)
    options, states = {"step": h, "integrator": "euler"}, []
    for _ in range(40):
        states.append((*state(), rng.normal(size=m.nv) * 0.3))
    found = fast.step_derivatives(*(np.array(x) for x in zip(*states, strict=True)), **options)
    for k, at in enumerate(states):
        if not found.switching[k]:
            expected = [differences(fast, *at, eps=eps, **options) for eps in (1e-4, 1e-5, 1e-6, 1e-7)]
            AB = np.concatenate([found.A[k], found.B[k]], axis=1)
            errors.append(min(relative_error(AB, difference) for difference in expected))
    assert len(errors) >= 25
    assert np.median(errors) < 1e-9 and max(errors) < 1e-8


def test_a_loop_may_hit_a_wall():
    """The slider of a slider-crank hits a wall by a hard contact: hard equalities in the impact."""
    m = linkage()
    crank, rod, slider = m.bodies
    q, _ = zw.assemble(m, [0.5, -0.3, 0.7], [2, 0, 0])
    slider = replace(slider, geometry=(zw.Sphere(0.05, surface=surface(0.5)),))
    wall = zw.Box(0.02, 1, 1, position=(q[2] + 0.0601, 0, 0))
    m = m.replace(bodies=(crank, rod, slider), geometry=(wall,))
    fast, u = zw.compile(m, lanes=1), np.zeros(m.nv)
    q, v = zw.assemble(m, q, [-2, 0, 0])
    options = {"step": 1e-3, "integrator": "euler"}
    found = fast.step_derivatives(q, v, u, **options)
    assert found.v[2] * v[2] < 0 and not found.switching
    expected = differences(fast, q, v, u, eps=1e-5, **options)
    assert relative_error(np.concatenate([found.A, found.B], axis=1), expected) < 1e-8


# ----------------------------------------------------------------------------- rollouts, symbols, marks


def test_the_adjoint_of_a_rollout_with_bounces_is_the_product_of_its_steps():
    rng, steps = np.random.default_rng(3), 120
    m, _ = ball(rng)
    fast, options = compiled(ball), {"step": 0.005, "integrator": "euler"}
    q, v, u = displaced(m, np.array(m.neutral, float), [0, 0, 0.25, 0, 0, 0]), rng.normal(size=6), np.zeros(6)
    by_state = rng.normal(size=(steps, 12))
    found = fast.rollout_gradient(by_state, q, v, np.tile(u, (steps, 1)), **options)
    product, expected, bounces = np.eye(12), np.zeros(12), 0
    for k in range(steps):
        before = v[2]
        one = fast.step_derivatives(q, v, u, **options)
        product = one.A @ product
        expected += product.T @ by_state[k]
        q, v = one.q, one.v
        bounces += before < 0 < v[2]
    assert bounces >= 2
    np.testing.assert_allclose(found.start, expected, rtol=1e-10, atol=1e-10 * np.abs(expected).max())


def test_derivatives_by_restitution_and_friction():
    """An oblique impact without spin, between two steps of free motion: v_z' = -e v_z, and while it slides
    v_x' = v_x + mu (1 + e) v_z (v_z < 0), in the middle of a step without gravity.
    """
    e, mu = zw.scalar.symbol("e", positive=True), zw.scalar.symbol("mu", positive=True)
    material = zw.Surface(condim=3, hard=True, restitution=e, friction=(mu, 0, 0))
    body = zw.Body(
        "ball", zw.Free("ball"), mass=1, inertia=(0.004,) * 3, geometry=(zw.Sphere(0.1, surface=material),)
    )
    floor = zw.Plane(surface=zw.Surface(condim=3, hard=True, friction=(0, 0, 0)))
    fast = zw.compile(zw.Mechanism("oblique", [body], geometry=[floor], gravity=(0, 0, 0)))
    values, h, vx, vz = {"e": 0.6, "mu": 0.1}, 0.01, 3.0, -2.0
    q = np.array([0, 0, 0.1 - vz * h / 2, 1, 0, 0, 0])
    found = fast.step_derivatives(
        q, [vx, 0, vz, 0, 0, 0], np.zeros(6), step=h, integrator="euler", params=values
    )
    by = {"e": [values["mu"] * vz, -vz], "mu": [(1 + values["e"]) * vz, 0]}
    names = [str(name) for name in fast.mechanism.symbols]
    expected = np.array([by[name] for name in names]).T
    np.testing.assert_allclose(found.P[[6, 8]], expected, atol=1e-12)
    np.testing.assert_allclose(found.P[[0, 2]], expected * h / 2, atol=1e-12)  # for the rest of the step
    assert not found.switching


def test_steps_whose_contacts_are_about_to_change_are_marked():
    """An impact at the end of a step, one of two balls at once, and a ball that touches the floor."""
    fast, h = compiled(ball), 0.005

    def marked(height, vz):
        q = np.array([0, 0, 0.1 + height, 1, 0, 0, 0])
        return bool(
            fast.step_derivatives(q, [0.5, 0, vz, 0, 0, 0], np.zeros(6), step=h, integrator="euler").switching
        )

    at_end = h + 9.81 * h * h  # the height that is covered in a step of Euler's method
    assert marked(at_end, -1) and not marked(at_end - 1e-4, -1) and not marked(at_end + 1e-4, -1)
    assert marked(0.0, 0.0) and not marked(1e-4, 0.0) and not marked(-1e-4, 0.0)
    bodies = disc("a", surface(), radius=0.1) + disc("b", surface(), radius=0.07)
    fast = zw.compile(zw.Mechanism("discs", bodies, geometry=[zw.Plane()], gravity=(0, 0, -1)))
    q, v = np.array([0, 0.1 + h / 2, 1, 0.07 + h / 2]), np.array([0, -1.0, 0, -1])
    options = {"step": h, "integrator": "euler"}
    assert fast.step_derivatives(q, v, np.zeros(4), **options).switching
    q[1] += 1e-4
    assert not fast.step_derivatives(q, v, np.zeros(4), **options).switching


def test_a_box_whose_friction_is_not_determined_is_marked():
    """Flat on the floor, a box that slides and turns has several distributions of its weight on four corners,
    and friction with a different resultant for each.
    """
    fast, q, u = compiled(box), np.array([0, 0, 0.0799, 1, 0, 0, 0]), np.zeros(6)
    options = {"step": 0.005, "integrator": "euler"}
    for v, expected in (([0] * 6, False), ([1, 0.3, 0, 0, 0, 0], False), ([1, 0.3, 0, 0, 0, 2], True)):
        assert fast.step_derivatives(q, v, u, **options).switching == expected


def test_sensors_feel_a_hard_contact():
    """The acceleration of a ball on the floor, where all contacts act over the timestep of the options."""
    m, _ = ball(np.random.default_rng(0))
    frame = zw.Frame("rim", "ball", position=(0.1, 0, 0))
    m = m.replace(frames=(frame,), sensors=(zw.FrameSensor("acceleration", "linear_acceleration", "rim"),))
    fast, u = zw.compile(m), np.zeros(6)
    q, v = np.array([0, 0, 0.09999, 1, 0, 0, 0]), np.array([1, 0.2, 0, 1, 2, 3])
    found = fast.sensor_derivatives(q, v, u)
    assert np.linalg.norm(found.values) > 9.81 and not found.switching

    def values(d):
        return fast.sensors(displaced(m, q, d[:6]), v + d[6:], u)["acceleration"]

    difference = np.array([(values(1e-7 * e) - values(-1e-7 * e)) / 2e-7 for e in np.eye(12)]).T
    assert relative_error(found.C, difference) < 1e-7


def test_compiled_derivatives_are_those_of_the_text_on_floats():
    m = compiled(ball).mechanism
    q, v, u = np.array([0, 0, 0.1008, 1, 0, 0, 0]), np.array([0.4, 0.1, -0.6, 1, 2, 3]), np.ones(6) * 0.1
    found = compiled(ball).step_derivatives(q, v, u, step=0.005, integrator="euler")
    assert found.v[2] > 0
    for k in (2, 6, 8, 10, 15):
        values = {"q": q, "v": v, "activation": np.zeros(0), "control": u, "acceleration": np.zeros(0),
                  "direction": np.eye(18)[k]}  # fmt: skip
        with np.errstate(invalid="ignore"):  # derivatives of infinite bounds, which are not used
            rates = step_tangents(m, "step_tangent", (0.005, "euler"), np.zeros(0), values)
        column = np.concatenate([np.asarray(rates[name], float) for name in ("dq", "dv", "dz")])
        AB = np.concatenate([found.A, found.B], axis=1)
        np.testing.assert_allclose(AB[:, k], column, atol=1e-13 * np.abs(AB).max())
