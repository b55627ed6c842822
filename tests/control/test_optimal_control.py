"""Regulators, optimised trajectories and plans, against closed forms and the simulation itself."""

import importlib.resources
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.optimize
import sympy as sp

import zwang as zw
from zwang.control import Quadratic, ilqr, lqr, predictive_sampling
from zwang.errors import ArgumentError, ShapeError, SimulationError, SimulationWarning, SolveError, StateError
from zwang.io.mjcf.read.read_mjcf import read_mjcf

ASSETS = Path(str(importlib.resources.files("gymnasium"))) / "envs" / "mujoco" / "assets"


def cart_pole():
    text = """<mujoco><option timestep="0.02" integrator="RK4"/><worldbody>
      <body><joint name="cart" type="slide" axis="1 0 0"/><geom size=".1" mass="1" contype="0"/>
        <body><joint name="pole" axis="0 1 0"/><geom type="capsule" fromto="0 0 0 0 0 .6" size=".03" mass=".2"
          contype="0"/></body></body></worldbody>
      <actuator><motor name="push" joint="cart"/></actuator></mujoco>"""
    return read_mjcf("cart_pole.xml", text=text)


def double_integrator():
    """A mass on a rail, x'' = u."""
    body = zw.Body("cart", zw.Prismatic("x", (1, 0, 0)), mass=1)
    return zw.Mechanism("rail", [body], gravity=(0, 0, 0), forces=[zw.Motor("push", "x")])


def test_the_regulator_of_a_double_integrator_is_that_of_the_textbook():
    """Q = diag(1, 0), R = 1: K = (1, sqrt 2), poles (-1 +- i) / sqrt 2."""
    model = zw.linearize(double_integrator(), [0.0])
    found = lqr(model, [1, 0], [1])
    assert model.states == ("x", "x_dot") and model.inputs == ("push",)
    assert np.allclose(found.K, [[1, np.sqrt(2)]]) and np.allclose(found.cost[0, 0], np.sqrt(2))
    assert np.allclose(np.sort_complex(found.poles), np.array([-1 - 1j, -1 + 1j]) / np.sqrt(2))


@pytest.mark.parametrize("step", [None, 0.02])
@pytest.mark.parametrize("weight", [1e-8, 1e-10, 1e-12, 1e-20])
def test_the_least_control_that_stabilises_mirrors_the_poles(weight, step):
    """For small weights of the states, the unstable poles s become -s, and those z of discrete models 1 / z.
    Source: Kwakernaak, Sivan, Linear Optimal Control Systems (1972), Section 3.8.
    """
    links = [
        zw.Body(name, zw.Revolute(name, (0, 1, 0)), parent, (0, 0, z), mass=1, com=(0, 0, 0.5),
                inertia=(0.1, 0.1, 0.1))
        for name, parent, z in (("x", "world", 0), ("y", "x", 1), ("z", "y", 1))
    ]  # fmt: skip
    m = zw.Mechanism("upright", links, forces=[zw.Motor("m", "y"), zw.Motor("n", "z")])
    model = zw.linearize(m, [0, 0, 0], step=step, integrator=step and "rk4")
    own = model.poles
    mirrored = np.where(own.real > 0, -own, own) if step is None else np.where(abs(own) > 1, 1 / own, own)
    expected = np.poly(mirrored).real  # of the double poles, the coefficients are well conditioned
    found = np.poly(lqr(model, np.full(6, weight), [1, 1]).poles).real
    np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.parametrize("step", [None, 0.05])
@pytest.mark.parametrize("weights", [1e-10, 1.0, 1e10])
def test_a_regulator_does_not_depend_on_the_units_of_inputs_and_cost(step, weights):
    """u = S w is the same feedback for the weight S R S of w, and K for all weights times a number."""
    R = np.array([[1, 0.5], [0.5, 1]])

    def feedback(units, weights):
        bodies = [
            zw.Body("a", joint=zw.Prismatic("x", axis=(1, 0, 0)), mass=1.0),
            zw.Body("b", joint=zw.Prismatic("y", axis=(1, 1, 0)), parent="a", mass=2.0),
        ]
        forces = [zw.Motor(name, name, gear=float(s)) for name, s in zip("xy", units, strict=True)]
        m = zw.Mechanism("m", bodies, forces=forces, gravity=(0, 0, 0))
        S = np.diag(units)
        found = lqr(
            zw.linearize(m, [0, 0], step=step), weights * np.array([1, 1, 0.1, 0.1]), weights * S @ R @ S
        )
        return S @ found.K, found.cost / weights, found.poles

    for units in ([1.0, 1.0], [1e-3, 1e6], [1.0, 1e-9], [1e-5, 1e-5]):
        for value, expected in zip(feedback(units, weights), feedback([1.0, 1.0], 1.0), strict=True):
            np.testing.assert_allclose(value, expected, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize(
    ("Q", "R", "message"),
    [
        ([1, -1], [1], "Q must have no negative eigenvalue"),
        ([[1, 1], [0, 1]], [1], "Q must be symmetric"),
        ([1, np.nan], [1], "Q must hold finite numbers"),
        ([1, 1], [0], "R must be positive definite"),
    ],
)
def test_weights_without_a_minimum_are_told(Q, R, message):
    with pytest.raises((ArgumentError, StateError), match=message):
        lqr(zw.linearize(double_integrator(), [0.0]), Q, R)


def test_a_regulator_of_a_state_that_accelerates_is_told():
    m = cart_pole()
    lqr(zw.linearize(m, [0, 0]), np.ones(4), [1])
    with pytest.warns(SimulationWarning, match="changes along the motion: its feedback"):
        lqr(zw.linearize(m, [0, 0.5]), np.ones(4), [1])


def test_a_regulator_needs_a_linear_model():
    with pytest.raises(ArgumentError, match=r"zw.linearize\(mechanism, q\)"):
        lqr(double_integrator(), [1, 1], [1])
    with pytest.raises(ArgumentError, match="the model has no inputs"):
        lqr(zw.linearize(double_integrator(), [0.0], inputs=[]), [1, 1], [])


@pytest.mark.parametrize("step", [None, 0.02])
def test_the_regulator_holds_a_cart_pole_up(step):
    m = cart_pole()
    model = zw.linearize(m, [0, 0], step=step)
    gain = lqr(model, [1, 10, 1, 1], [0.1]).K
    fast, q, v = zw.compile(m), np.array([0.3, 0.2]), np.zeros(2)
    for _ in range(400):
        u = -gain @ np.concatenate([q, v])
        q, v, _ = fast.step(q, v, u, step=0.02)
    assert np.abs(np.concatenate([q, v])).max() < 1e-3


def test_a_model_that_cannot_be_stabilised_is_told():
    text = """<mujoco><worldbody><body pos="0 0 1"><joint name="pole" axis="0 1 0"/>
      <geom type="capsule" fromto="0 0 0 0 0 .5" size=".03"/></body>
      <body><joint name="cart" type="slide" axis="1 0 0"/><geom size=".1"/></body></worldbody>
      <actuator><motor name="push" joint="cart"/></actuator></mujoco>"""
    model = zw.linearize(read_mjcf("apart.xml", text=text), [0, 0])
    with pytest.raises(SolveError, match="no feedback stabilises"):
        lqr(model, np.ones(4), [1])
    with pytest.raises(ShapeError, match=r"Q must have the shape \(4, 4\)"):
        lqr(model, np.ones(3), [1])


def test_states_that_stay_or_oscillate_without_feedback_are_told():
    """An undamped oscillator without a motor, and a rail whose position has no weight, are not stabilised."""
    bodies = [zw.Body(name, zw.Prismatic(f"{name}x", (1, 0, 0)), mass=1) for name in ("cart", "mass")]
    forces = [zw.Motor("push", "cartx"), zw.Spring("massx", stiffness=4.0)]
    apart = zw.Mechanism("apart", bodies, gravity=(0, 0, 0), forces=forces)
    for step in (None, 0.01):
        for scale in (0.5, 1, 2):
            with pytest.raises(SolveError, match="no feedback stabilises"):
                lqr(zw.linearize(apart, [0, 0], step=step), scale * np.ones(4), [1])
        rail = zw.linearize(double_integrator(), [0.0], step=step)
        for Q in ([0, 1], [0, 0]):
            with pytest.raises(SolveError, match="Q does not see"):
                lqr(rail, Q, [1])
    slow = lqr(zw.linearize(double_integrator(), [0.0]), [1e-12, 0], [1])  # |poles|^4 = Q / R
    np.testing.assert_allclose(np.abs(slow.poles), 1e-3)


def test_ilqr_of_a_linear_problem_is_the_least_squares_solution():
    """For a mass on a rail the cost is quadratic in the controls, so that its minimum is a linear system."""
    fast, steps, h = zw.compile(double_integrator()), 30, 0.05
    cost = Quadratic(q=[1.0], state=[0.1, 0.2], control=[0.01], final=[10.0, 5.0])
    found = ilqr(fast, [0.0], [0.0], np.zeros((steps, 1)), cost, step=h, integrator="euler")

    def total(u):
        run = fast.rollout(np.zeros(1), np.zeros(1), u[:, None], steps=steps, step=h, integrator="euler")
        q, v = (np.concatenate([np.zeros((1, 1)), x]) for x in run[:2])
        x = np.concatenate([q - 1, v], axis=1)
        return ((x[:-1] ** 2 @ [0.1, 0.2]).sum() + 0.01 * (u**2).sum() + x[-1] ** 2 @ [10.0, 5.0]) / 2

    best = scipy.optimize.minimize(total, np.zeros(steps), method="BFGS", options={"gtol": 1e-9})
    assert np.isclose(found.cost, best.fun, rtol=1e-8) and np.allclose(found.control[:, 0], best.x, atol=1e-4)
    assert found.converged and found.iterations <= 3


def test_ilqr_from_the_optimum_has_converged_with_the_feedback_of_riccatis_recursion():
    """P = W + A^T P (A - B K), K = (R + B^T P B)^-1 B^T P A, from the end; also where a bound is reached."""
    fast, steps, h = zw.compile(double_integrator()), 20, 0.05
    cost = Quadratic(q=[0.0], state=[1.0, 1.0], control=[0.1], final=[10.0, 1.0])
    found = ilqr(fast, [0.0], [0.0], np.zeros((steps, 1)), cost, step=h)
    model = fast.step_derivatives([0.0], [0.0], [0.0], step=h)
    A, B, P, gains = model.A, model.B, np.diag([10.0, 1.0]), []
    for _ in range(steps):
        K = np.linalg.solve(0.1 + B.T @ P @ B, B.T @ P @ A)
        P = np.eye(2) + A.T @ P @ (A - B @ K)
        gains.insert(0, -K)
    assert found.converged and found.cost == 0 and found.iterations == 0
    np.testing.assert_allclose(found.gain, gains, rtol=1e-5)
    bounded = ilqr(fast, [1.0], [0.0], np.zeros((steps, 1)), cost, step=h, bounds=(-0.5, 0.4))
    again = ilqr(fast, [1.0], [0.0], bounded.control, cost, step=h, bounds=(-0.5, 0.4))
    assert again.converged and np.isclose(again.cost, bounded.cost, rtol=1e-12)
    np.testing.assert_allclose(again.gain, bounded.gain, atol=1e-3)


def heavy_cart_pole(unit):
    """The cart-pole with masses `unit` times as large: it moves alike under forces as many times as large."""
    m = cart_pole()
    bodies = [
        replace(b, mass=unit * b.mass, inertia=(unit * np.array(b.inertia, float)).tolist()) for b in m.bodies
    ]
    return replace(m, bodies=bodies)


@pytest.mark.parametrize(
    ("unit", "weights"), [(1.0, 1e-10), (1.0, 1e10), (1e-4, 1.0), (1e4, 1.0), (1e4, 1e-10)]
)
def test_neither_the_unit_of_the_force_nor_a_factor_of_the_weights_changes_the_plan(unit, weights):
    """The motion is the same for u = unit u_1, the cost for R / unit^2, so that gain / unit is the same."""
    steps, guess = 60, 2 * np.sin(np.arange(60) * 0.12)[:, None]

    def plan(unit, weights):
        W, last = np.array([0.05, 0.05, 0.01, 0.01]), np.array([50.0, 200, 10, 20])
        cost = Quadratic([0, 0], weights * W, [weights * 1e-3 / unit**2], weights * last)
        bounds = (-8 * unit, 8 * unit)
        fast = zw.compile(heavy_cart_pole(unit))
        return ilqr(fast, [0, np.pi], [0, 0], guess * unit, cost, bounds=bounds, iterations=20)

    first, found = plan(1.0, 1.0), plan(unit, weights)
    assert len(found.control) == steps and found.iterations == first.iterations
    np.testing.assert_allclose(np.array(found.costs) / weights, first.costs, rtol=1e-6)
    np.testing.assert_allclose(found.control / unit, first.control, atol=1e-5)
    np.testing.assert_allclose(found.gain / unit, first.gain, atol=1e-6 * np.abs(first.gain).max())


@pytest.mark.parametrize("units", [(1.0, 1.0), (1e-3, 1e3), (1e5, 1e-2)])
@pytest.mark.parametrize("weights", [1e-10, 1.0])
def test_the_feedback_for_controls_of_different_units_is_that_of_riccatis_recursion(units, weights):
    """A force in kN and one in mN, say, on a mass that moves along two axes."""
    steps, h, units = 30, 0.05, np.array(units)
    bodies = [
        zw.Body("a", joint=zw.Prismatic("x", axis=(1, 0, 0)), mass=1.0),
        zw.Body("b", joint=zw.Prismatic("y", axis=(1, 1, 0)), parent="a", mass=2.0),
    ]
    forces = [zw.Motor("X", "x", gear=units[0]), zw.Motor("Y", "y", gear=units[1])]
    fast = zw.compile(zw.Mechanism("m", bodies, forces=forces, gravity=(0, 0, 0)))
    W, R, last = (weights * np.array(x) for x in ([1, 1, 0.1, 0.1], 0.01 * units**2, [10, 10, 1, 1]))
    cost = Quadratic([1.0, -0.5], W, R, last)
    found = ilqr(fast, [0, 0], [0, 0], np.zeros((steps, 2)), cost, step=h, integrator="euler")
    d = fast.step_derivatives([0, 0], [0, 0], [0, 0], step=h, integrator="euler")
    P, gains = np.diag(last), []
    for _ in range(steps):
        K = np.linalg.solve(np.diag(R) + d.B.T @ P @ d.B, d.B.T @ P @ d.A)
        P = np.diag(W) + d.A.T @ P @ (d.A - d.B @ K)
        gains.insert(0, -K)
    x = np.array([-1, 0.5, 0, 0])
    assert found.converged and found.iterations <= 3
    np.testing.assert_allclose(found.cost, x @ P @ x / 2, rtol=1e-9)
    np.testing.assert_allclose(found.gain, gains, rtol=1e-7, atol=1e-9 * np.abs(gains).max(axis=(0, 2)).min())


def test_the_feedback_of_redundant_and_of_idle_controls_without_cost_is_regularised():
    """Two equal motors without cost share the force: Q_uu is singular, and a gain without bound would do."""
    steps, h = 20, 0.05
    m = replace(
        double_integrator(), forces=[zw.Motor("A", "x"), zw.Motor("B", "x"), zw.Motor("C", "x", gear=0.0)]
    )
    cost = Quadratic([1.0], [1.0, 0.1], [0.0] * 3, [10.0, 1.0])
    found = ilqr(zw.compile(m), [0], [0], np.zeros((steps, 3)), cost, step=h, integrator="euler")
    alone = ilqr(
        zw.compile(double_integrator()), [0], [0], np.zeros((steps, 1)),
        Quadratic([1.0], [1.0, 0.1], [0.0], [10.0, 1.0]), step=h, integrator="euler",
    )  # fmt: skip
    assert found.converged and np.isclose(found.cost, alone.cost, rtol=1e-6)
    np.testing.assert_allclose(found.gain[:, 0], found.gain[:, 1], rtol=1e-6)
    np.testing.assert_allclose(found.gain[:, :2].sum(axis=1), alone.gain[:, 0], rtol=1e-4, atol=1e-4)
    assert not found.gain[:, 2].any() and not found.control[:, 2].any()


def test_ilqr_follows_a_moving_goal_with_weights_of_its_own_at_each_step():
    """The rail once more: the minimum by normal equations, as x = S u + x0 is linear."""
    fast, steps, h, rng = zw.compile(double_integrator()), 12, 0.1, np.random.default_rng(1)
    goal_q, goal_v = rng.normal(size=(steps + 1, 1)), rng.normal(size=(steps + 1, 1))
    W, R, rest = rng.uniform(1, 2, (steps, 2)), rng.uniform(0.1, 1, (steps, 1)), rng.normal(size=(steps, 1))
    cost = Quadratic(goal_q, W, R, [3.0, 4.0], v=goal_v, rest=rest)
    found = ilqr(fast, [0.2], [0.1], np.zeros((steps, 1)), cost, step=h, integrator="euler")

    def states(u):
        v = 0.1 + h * np.cumsum(u)
        return np.stack([0.2 + h * np.cumsum(v), v], axis=1)

    S = np.stack([(states(e) - states(np.zeros(steps))).ravel() for e in np.eye(steps)], axis=1)
    w = np.concatenate([W[1:].ravel(), [3.0, 4.0]])
    target = np.concatenate([goal_q, goal_v], axis=1)[1:].ravel() - states(np.zeros(steps)).ravel()
    best = np.linalg.solve(
        S.T @ (w[:, None] * S) + np.diag(R[:, 0]), S.T @ (w * target) + R[:, 0] * rest[:, 0]
    )
    assert np.allclose(found.control[:, 0], best, atol=1e-6)


@pytest.mark.parametrize("weights", [(10, 0, 0), (0, 3, 1)])
def test_ilqr_of_a_ball_joint_is_stationary_for_weights_that_differ_between_axes(weights):
    """The gradient by central differences of the cost of the rollout, 2 rad from the goal."""
    text = """<mujoco><option timestep="0.1" gravity="0 0 0"/><worldbody><body><joint name="b" type="ball"/>
      <geom type="box" size=".2 .1 .05" mass="1"/></body></worldbody><actuator><motor joint="b" gear="1 0 0"/>
      <motor joint="b" gear="0 1 0"/><motor joint="b" gear="0 0 1"/></actuator></mujoco>"""
    fast, steps = zw.compile(read_mjcf("ball.xml", text=text)), 6
    start, goal, W = (
        np.array([1.0, 0, 0, 0]),
        np.array([np.cos(1), *(np.sin(1) / 3 * np.array([1, 2, 2]))]),
        weights,
    )
    cost = Quadratic(goal, np.r_[W, 0, 0, 0], np.full(3, 0.5), np.r_[W, 0, 0, 0])
    found = ilqr(fast, start, np.zeros(3), np.zeros((steps, 3)), cost, tolerance=1e-12, iterations=500)

    def total(u):
        q = fast.rollout(start, np.zeros(3), u, steps=steps)[0]
        return ((fast.difference_configuration(q, goal) ** 2 @ W).sum() + 0.5 * (u**2).sum()) / 2

    changes = 1e-5 * np.eye(3 * steps).reshape(-1, steps, 3)
    gradient = [(total(found.control + d) - total(found.control - d)) / 2e-5 for d in changes]
    assert found.converged and total(found.control) < 0.9 * total(np.zeros((steps, 3)))
    assert np.abs(gradient).max() < 1e-5


def test_ilqr_swings_a_cart_pole_up_within_its_bounds():
    m = cart_pole()
    fast, steps = zw.compile(m), 120
    cost = Quadratic(q=[0, 0], state=[0.05, 0.05, 0.01, 0.01], control=[1e-3], final=[50, 200, 10, 20])
    guess = 2 * np.sin(np.arange(steps) * 0.12)[:, None]
    found = ilqr(fast, [0, np.pi], [0, 0], guess, cost, bounds=(-8, 8), iterations=200)
    assert np.abs(found.control).max() <= 8
    assert abs(np.cos(found.q[-1, 1]) - 1) < 0.01 and np.abs(found.v[-1]).max() < 0.5
    assert np.all(np.diff(found.costs) < 0) and found.cost < 0.05 * found.costs[0]

    # the trajectory is that of the simulation under its controls
    def follow(t, q, v):
        return found.control[min(round(t / 0.02), steps - 1)]

    run = zw.simulate(m, [0, np.pi], duration=steps * 0.02, control=follow, compiled=False, progress=False)
    assert np.allclose(run.q.values[0, -1], found.q[-1], atol=1e-6)


@pytest.mark.parametrize("bounds", [None, (0, 20), (-5, 30)])
@pytest.mark.parametrize("guess", [-3.0, 0.0, 25.0])
def test_the_control_range_of_a_motor_bounds_the_controls(guess, bounds):
    """As bounds of a motor without range do, also from guesses at its ends and beyond."""
    body = zw.Body("load", zw.Prismatic("z", (0, 0, 1)), mass=1)
    free, limited = (
        zw.compile(zw.Mechanism("lift", [body], forces=[zw.Motor("u", "z", control_range=ends)]))
        for ends in (None, (0, 20))
    )
    cost = Quadratic(q=[1], state=[1, 0.1], control=[1e-3], final=[100, 10])
    options = {"step": 0.02, "integrator": "euler"}
    found = ilqr(limited, [0], [0], np.full((50, 1), guess), cost, bounds=bounds, **options)
    expected = ilqr(free, [0], [0], np.full((50, 1), 5.0), cost, bounds=(0, 20), **options)
    assert found.converged and found.cost == pytest.approx(expected.cost, rel=1e-6)
    np.testing.assert_allclose(found.control, expected.control, atol=1e-3)
    assert (found.control == 20).any()


def test_ilqr_through_contact_makes_a_hopper_hop_higher():
    fast, steps = zw.compile(zw.load(ASSETS / "hopper.xml")), 40
    q0 = np.array([0, 1.2, 0, 0, 0, 0.0])
    cost = Quadratic(
        q=[0, 1.35, 0, 0, 0, 0.0],
        state=np.zeros(12), control=np.full(3, 1e-4), final=[0, 100, 10, 0.1, 0.1, 0.1, *[0.01] * 6],
    )  # fmt: skip
    options = {"step": 0.004, "integrator": "implicitfast"}
    still = fast.rollout(q0, np.zeros(6), np.zeros((steps, 3)), steps=steps, **options)
    found = ilqr(fast, q0, np.zeros(6), np.zeros((steps, 3)), cost, bounds=(-1, 1), iterations=60, **options)
    forces = fast.rollout(q0, np.zeros(6), found.control, steps=steps, outputs=["force"], **options).force
    assert np.abs(forces).max() > 10  # it pushes against the floor
    assert found.q[-1, 1] > still[0][-1, 1] + 0.02 and found.cost < 0.8 * found.costs[0]


def test_predictive_sampling_swings_a_cart_pole_up_from_its_own_noise():
    m = cart_pole()
    fast, rng = zw.compile(m), np.random.default_rng(0)

    def cost(q, v, u):
        away = 0.1 * (q[..., 0] ** 2).sum(axis=1) + 1e-3 * (u[..., 0] ** 2).sum(axis=1)
        return (1 - np.cos(q[..., 1])).sum(axis=1) + away

    q, v, knots, costs = np.array([0, np.pi]), np.zeros(2), np.zeros((6, 1)), []
    for _ in range(80):
        plan = predictive_sampling(
            fast,
            q,
            v,
            knots,
            cost,
            steps=50,
            noise=4.0,
            samples=64,
            temperature=0.1,
            seed=rng,
            bounds=(-10, 10),
        )
        knots = plan.knots
        costs.append(plan.cost)
        for k in range(3):
            q, v, _ = fast.step(q, v, plan.control[k])
    assert np.cos(q[1]) > 0.9 and costs[-1] < 0.7 * costs[0]
    assert np.isfinite(costs).all() and np.abs(plan.control).max() <= 10


def test_ilqr_follows_constraints_that_depend_on_time():
    """A mass on a driven rail: x'' of the rail is prescribed, the mass is pushed to the goal."""
    rail = zw.Body("rail", zw.Prismatic("rail", (1, 0, 0)), mass=1)
    mass = zw.Body("mass", zw.Prismatic("mass", (1, 0, 0)), "rail", mass=1)
    x, t = zw.scalar.symbol("rail"), zw.scalar.symbol("t")
    m = zw.Mechanism(
        "driven", [rail, mass], gravity=(0, 0, 0), forces=[zw.Motor("push", "mass")],
        constraints=[zw.Holonomic("drive", x - t**3)],
    )  # fmt: skip
    fast, steps = zw.compile(m), 20
    cost = Quadratic([0, 1.0], [0, 0.1, 0, 0.1], [0.01], [0, 10, 0, 5])
    found = ilqr(fast, [0, 0], [0, 0], np.zeros((steps, 1)), cost, step=0.05, integrator="rk4")
    run = fast.rollout([0.0, 0], [0.0, 0], found.control, steps=steps, step=0.05, integrator="rk4")
    assert np.allclose(found.q[1:], run[0], atol=1e-9)
    assert np.allclose(found.q[1:, 0], (0.05 * np.arange(1, steps + 1)) ** 3, atol=1e-6)
    assert found.converged and found.iterations <= 5


def shaken_arm():
    """An arm on a slide that is shaken by a given law; forces act on the arm alone."""
    s, t = zw.scalar.symbol("s"), zw.scalar.symbol("t")
    slide = zw.Body("slide", zw.Prismatic("s", (1, 0, 0)), mass=1)
    arm = zw.Body("arm", zw.Revolute("j", (0, 1, 0)), "slide", mass=1, com=(0, 0, 0.3), inertia=(0.02,) * 3)
    return zw.Mechanism(
        "shaken arm", [slide, arm], forces=[zw.Motor("torque", "j")],
        constraints=[zw.Holonomic("shake", s - 0.2 * zw.scalar.sin(5 * t))],
    )  # fmt: skip


def test_a_plan_from_a_later_time_is_that_of_the_simulation_from_then_on():
    fast, start, steps, n = zw.compile(shaken_arm()), 0.3, 30, 8
    q, v = np.array([0.2 * np.sin(1.5), 0.1]), np.array([np.cos(1.5), 0.0])
    options = {"step": 0.02, "integrator": "rk4", "time": start}
    cost = Quadratic([0, 0], [0, 1, 0, 0.1], [0.01], [0, 50, 0, 5])
    found = ilqr(fast, q, v, np.zeros((steps, 1)), cost, **options)
    run = fast.rollout(q, v, found.control, steps=steps, **options)
    np.testing.assert_allclose(found.q[1:], run.q, atol=1e-9)
    assert found.converged and found.iterations <= 6  # its derivatives are those at the same times

    def tilt(q, v, u):
        return (q[..., 1] ** 2).sum(axis=1)

    plan = predictive_sampling(
        fast, q, v, np.zeros((4, 1)), tilt, steps=steps, noise=0.5, samples=n, **options
    )
    run = fast.rollout(q, v, plan.control, steps=steps, **options)
    assert plan.cost == pytest.approx((run.q[:, 1] ** 2).sum(), rel=1e-9)


@pytest.mark.parametrize(("bounds", "highest"), [(None, 1), ((-3, 0.5), 0.5)])
def test_samples_stop_at_the_control_range_where_their_mean_is_that_of_what_acts(bounds, highest):
    """Beyond its range a motor acts as at the end: 10 and 1 N move alike, the mean of 10 and -1 does not."""
    motor = zw.Motor("push", "x", control_range=(-1, 1))
    fast = zw.compile(double_integrator().replace(forces=[motor]))
    seen = []

    def far(q, v, u):
        seen.append(u)
        return -q[:, -1, 0]

    plan = predictive_sampling(
        fast, [0], [0], np.zeros((2, 1)), far, steps=4, noise=20, samples=200, temperature=0.3, step=0.1,
        integrator="euler", bounds=bounds,
    )  # fmt: skip
    assert max(u.max() for u in seen) == highest and min(u.min() for u in seen) == -1
    np.testing.assert_allclose(plan.control, highest)
    # x after 4 steps of 0.1 s under a constant force F: F h^2 (1 + 2 + 3 + 4)
    assert plan.cost == pytest.approx(-highest * 0.01 * 10)


def test_a_plan_in_a_running_loop_keeps_the_slew_rate_from_its_first_step_on():
    """The set point of a controller jumps at the time 0 only."""
    arm = zw.Body("arm", zw.Revolute("j", (0, 1, 0)), mass=1, inertia=(0.1,) * 3)
    servo = zw.Actuator("servo", joint="j", pid=zw.Pid(5, 0, 1, slew_rate=0.5))
    fast = zw.compile(zw.Mechanism("servo", [arm], gravity=(0, 0, 0), forces=[servo]))
    cost, guess = Quadratic([0.0], [0.0] * 3, [0.0], [0.0] * 3), np.ones((1, 1))
    first, later = (ilqr(fast, [0], [0], guess, cost, activation=[0], step=0.02, time=t) for t in (0.0, 1.0))
    assert first.activation[1, 0] == 1 and later.activation[1, 0] == pytest.approx(0.01)


def gains_by_the_recursion(fast, at, cost, bounds, **options):
    """K of Tassa et al. (2014), Eqs. (5) to (11), for one control, about a trajectory."""
    found = fast.step_derivatives(at.q[:-1], at.v[:-1], at.control, **options)
    W, R, P = np.diag(cost.state), cost.control[0], np.diag(cost.final).astype(float)
    p, gains = P @ np.r_[at.q[-1], at.v[-1]], np.zeros((len(at.control), 1, len(W)))
    for k in reversed(range(len(at.control))):
        A, B, u = found.A[k], found.B[k], at.control[k, 0]
        Q_u = R * u + B[:, 0] @ p
        Q_x, Q_xx = W @ np.r_[at.q[k], at.v[k]] + A.T @ p, W + A.T @ P @ A
        if (u <= bounds[0] and Q_u > 0) or (u >= bounds[1] and Q_u < 0):
            p, P = Q_x, Q_xx
            continue
        Q_ux, Q_uu = B.T @ P @ A, R + B[:, 0] @ P @ B[:, 0]
        gains[k] = -Q_ux / Q_uu
        p, P = Q_x - Q_ux[0] * Q_u / Q_uu, Q_xx - Q_ux.T @ Q_ux / Q_uu
    return gains


def test_the_feedback_of_a_plan_of_few_iterations_is_that_about_the_plan():
    fast, steps, bounds = zw.compile(cart_pole()), 60, (-8.0, 8.0)
    cost = Quadratic([0, 0], [0.05, 0.05, 0.01, 0.01], [1e-3], [50, 200, 10, 20])
    guess = 2 * np.sin(np.arange(steps) * 0.12)[:, None]
    for iterations in (0, 1, 4):
        start = fast, [0, np.pi], [0, 0], guess, cost
        found = ilqr(*start, bounds=bounds, iterations=iterations)
        expected = gains_by_the_recursion(fast, found, cost, bounds)
        np.testing.assert_allclose(found.gain, expected, atol=1e-4 * np.abs(expected).max())
        quick = ilqr(*start, bounds=bounds, iterations=iterations, feedback=False)
        assert np.array_equal(quick.control, found.control) and quick.costs == found.costs
        assert np.abs(quick.gain - expected).max() > 0.1 * np.abs(expected).max()


def test_a_temperature_is_relative_to_the_spread_of_the_costs():
    """The mean with the weights exp(-(cost - least) / (T s)), whatever the unit of the cost."""
    fast, steps, n, T = zw.compile(double_integrator()), 20, 64, 0.05
    knots, u = np.array([[7.3], [-1.2], [0.4]]), np.zeros((n, steps, 1))
    noise = np.random.default_rng(0).normal(size=(n, 3, 1)) * 0.3
    noise[0] = 0
    for k in range(n):
        u[k, :, 0] = np.interp(np.linspace(0, 2, steps), np.arange(3), (knots + noise[k])[:, 0])

    def cost(q, v, u):
        return ((q[..., 0] - 1) ** 2).sum(axis=1) + 0.01 * (u[..., 0] ** 2).sum(axis=1)

    run = fast.rollout(np.zeros((n, 1)), np.zeros((n, 1)), u, steps=steps, step=0.05)
    costs = cost(run.q, run.v, u)
    w = np.exp(-(costs - costs.min()) / (T * np.std(costs)))
    expected = knots + np.einsum("n,nku->ku", w / w.sum(), noise)
    for scale in (1.0, 1000.0):
        plan = predictive_sampling(
            fast, [0.0], [0.0], knots, lambda q, v, u, scale=scale: scale * cost(q, v, u),
            steps=steps, noise=0.3, samples=n, temperature=T, seed=0, step=0.05,
        )  # fmt: skip
        assert plan.cost < plan.least
        np.testing.assert_allclose(plan.knots, expected, atol=1e-9)


def test_quaternions_of_starts_and_goals_are_unit_or_told():
    ball = zw.Body("a", zw.Ball("ball"), mass=1, com=(0, 0, 0.1), inertia=(0.01, 0.02, 0.03))
    fast = zw.compile(zw.Mechanism("b", [ball], gravity=(0, 0, 0)))
    goal = np.array([np.cos(0.2), np.sin(0.2), 0, 0])

    def plan(q0, goal):
        cost = Quadratic(goal, np.ones(6), [0.01] * 3, [10] * 6)
        return ilqr(fast, q0, [0, 0, 0], np.zeros((5, 3)), cost, step=0.02)

    unit, scaled = plan([1, 0, 0, 0], goal), plan([2, 0, 0, 0], np.tile(3 * goal, (6, 1)))
    np.testing.assert_allclose(scaled.q, unit.q, atol=1e-12)
    for wrong in (0.0, [0, 0, 0, 0]):
        with pytest.raises(StateError, match=r"'ball', q\[0:4\] of the cost, is zero"):
            plan([1, 0, 0, 0], wrong)
    with pytest.raises(StateError, match="q of the cost must hold finite numbers"):
        plan([1, 0, 0, 0], [np.nan, 0, 0, 0])
    with pytest.raises(StateError, match="quaternion of joint 'ball'"):
        plan([0, 0, 0, 0], goal)
    with pytest.raises(StateError, match="quaternion of joint 'ball'"):
        predictive_sampling(
            fast, np.zeros(4), np.zeros(3), np.zeros((2, 3)), lambda q, v, u: 0.0, steps=2, noise=1
        )


def test_bad_arguments_are_told():
    fast = zw.compile(cart_pole())
    cost = Quadratic(q=[0, 0], state=np.ones(4), control=[1], final=np.ones(4))
    with pytest.raises(ShapeError, match="control must have the shape"):
        ilqr(fast, [0, 0], [0, 0], np.zeros(5), cost)
    with pytest.raises(ArgumentError, match="below the highest"):
        ilqr(fast, [0, 0], [0, 0], np.zeros((5, 1)), cost, bounds=(1, -1))
    pushed = zw.Motor("push", "x", control_range=(0, 20))
    limited = zw.compile(double_integrator().replace(forces=[pushed]))
    with pytest.raises(ArgumentError, match="20 and 30 of 'push' leave no room within its control range"):
        ilqr(limited, [0], [0], np.zeros((5, 1)), Quadratic([0], [1, 1], [1], [1, 1]), bounds=(20, 30))
    with pytest.raises(ShapeError, match=r"activation must have the shape \(0,\)"):
        ilqr(fast, [0, 0], [0, 0], np.zeros((5, 1)), cost, activation=[1.0])
    with pytest.raises(ShapeError, match=r"control must have the shape \(steps, 1 inputs\)"):
        ilqr(fast, [0, 0], [0, 0], np.zeros((5, 2)), cost)
    with pytest.raises(ShapeError, match=r"final of the cost must have the shape \(4,\)"):
        ilqr(fast, [0, 0], [0, 0], np.zeros((5, 1)), Quadratic([0, 0], np.ones(4), [1], 1.0))
    with pytest.raises(ShapeError, match=r"q of the cost must have the shape \(2,\) or \(6, 2\)"):
        ilqr(fast, [0, 0], [0, 0], np.zeros((5, 1)), Quadratic(np.zeros((5, 2)), np.ones(4), [1], np.ones(4)))
    with pytest.raises(SimulationError, match="first guess fails"):
        ilqr(fast, [0, 0], [0, 0], np.full((5, 1), np.nan), cost)
    for wrong in ({"iterations": -3}, {"tolerance": -1.0}, {"tolerance": np.inf}):
        with pytest.raises(ArgumentError, match=r"iterations \(.*\) must not be negative, and tolerance"):
            ilqr(fast, [0, 0], [0, 0], np.zeros((5, 1)), cost, **wrong)
    for noise in (np.inf, [np.inf], -1.0):
        with pytest.raises(
            ShapeError, match=r"noise is .*; give a number or 1 numbers, finite and not negative"
        ):
            predictive_sampling(
                fast, [0, 0], [0, 0], np.zeros((3, 1)), lambda q, v, u: 0.0, steps=5, noise=noise
            )
    with pytest.raises(ShapeError, match="cost must return"):
        predictive_sampling(fast, [0, 0], [0, 0], np.zeros((3, 1)), lambda q, v, u: 0.0, steps=5, noise=1)
    ranged = limited.mechanism.replace(forces=[zw.Motor("push", "x", control_range=(0, sp.Symbol("F")))])
    with pytest.raises(zw.errors.ParameterError, match="symbols without values"):
        predictive_sampling(zw.compile(ranged), [0], [0], [[0], [0]], lambda q, v, u: 0.0, steps=5, noise=1)
    with pytest.raises(ShapeError, match=r"knots must have the shape \(2 or more, 1 inputs\)"):
        predictive_sampling(fast, [0, 0], [0, 0], np.zeros((3, 2)), lambda q, v, u: 0.0, steps=5, noise=1)
    with pytest.raises(StateError, match="knots must hold finite numbers"):
        predictive_sampling(
            fast, [0, 0], [0, 0], np.full((3, 1), np.nan), lambda q, v, u: 0.0, steps=5, noise=1
        )
