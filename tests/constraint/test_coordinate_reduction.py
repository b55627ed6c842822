"""Coordinate reduction (embedding) in compiled runs: the motion in independent velocities equals that by
constraint forces within 2e-11 after half a second, in every world.
"""

import numpy as np
import pytest

import zwang as zw
from tests.cases import case
from tests.constraint.test_constraint_stabilization import (
    ball_in_a_weld,
    sleigh,
    swinging_four_bars,
    turning_bennett,
)
from tests.constraint.test_nonholonomic import disc, disc_state, rolling_velocities
from tests.constraint.test_rheonomic import bead_on_a_turning_rod
from tests.symbolic.machines import X, Y, whipple
from zwang.constraint.rows import rows_of_kind
from zwang.dynamics.gauss import GaussProblem
from zwang.errors import DependentVelocitiesError, InconsistentConstraintsError
from zwang.solver.coordinate_reduction import coordinate_reduction, solve_reduced
from zwang.solver.solve import solve


def rolling_disc():
    c = case("nonholonomic", "B03_rolling_disc")
    m, q = disc(c["parameters"]), disc_state(c["parameters"], c["initial_state"])
    return m, q, rolling_velocities(m, q, c["initial_state"][7:10])


def bicycle():
    """Whipple's bicycle at 5 m/s with a small roll rate."""
    p = case("nonholonomic", "B01_whipple_linear")["parameters"]
    m = whipple({k: x for k, x in p.items() if isinstance(x, int | float)})
    speeds = {"x": 5, "rear": -5 / p["rR"], "front": -5 / p["rF"], "roll": 0.2}
    return m, *zw.assemble(m, np.zeros(m.nq), [speeds.get(name, 0) for name in m.speed_names])


def wire():
    """A particle on a rigid wire that passes the positions where the rate of x, or of y, is not
    independent.
    """
    slides = (zw.Prismatic("x", axis=X), zw.Prismatic("y", axis=Y))
    bob = zw.Body("bob", slides, mass=1.0)
    rope = zw.Distance("wire", ("bob", (0, 0, 0)), ("world", (0, 0, 0)), 0.5)
    m = zw.Mechanism("pendulum", (bob,), gravity=(0, -9.81, 0), constraints=(rope,))
    return m, np.array([0.0, -0.5]), np.array([6.0, 0.0])


MACHINES = {
    "four-bars": (swinging_four_bars, ["crank 1"], "rk4"),
    "bennett": (turning_bennett, ["turn 0"], "rk4"),
    "sleigh": (sleigh, [zw.PointSpeed("u", "body", direction=X), "phi"], "rk4"),
    "welds": (ball_in_a_weld, ["crank"], "euler"),
    "disc": (rolling_disc, ["yaw", "lean", "spin"], "euler"),
    "bicycle": (bicycle, ["roll", "steer", "rear"], "euler"),
    "wire": (wire, ["x"], "rk4"),
}


@pytest.mark.parametrize("name", MACHINES)
def test_compiled_coordinate_reduction_gives_the_motion_of_constraint_forces(name):
    """With independent velocities of the user's choice, and with those selected at each step, in all
    worlds.
    """
    make, speeds, integrator = MACHINES[name]
    m, q0, v0 = make()
    v0 = np.array([v0, v0 / 2, v0 / 3])
    runs = {
        str(reduction): zw.simulate(
            m,
            q0,
            v0,
            duration=0.5,
            step=2e-3,
            integrator=integrator,
            coordinate_reduction=reduction,
            record=50,
            progress=False,
        )
        for reduction in (False, True, speeds)
    }
    forces, automatic, chosen = runs.values()
    named = " ".join(speed if isinstance(speed, str) else speed.name for speed in speeds)
    for run, attribute in ((automatic, "automatic"), (chosen, named)):
        assert run.attrs["path"] == "compiled" and not run.status.any()
        assert run.attrs["coordinate_reduction"] == attribute
        np.testing.assert_allclose(run.q, forces.q, atol=2e-11)
        np.testing.assert_allclose(run.v, forces.v, atol=1e-9)
    if name not in ("four-bars", "sleigh", "disc", "wire"):
        return  # another compilation, for one world
    alone = zw.simulate(
        m,
        q0,
        v0[1],
        duration=0.5,
        step=2e-3,
        integrator=integrator,
        coordinate_reduction=True,
        record=50,
        progress=False,
    )
    assert np.array_equal(alone.q.values[0], automatic.q.values[1])


def tripod():
    """A platform on three telescopic legs, which is free to sway: so large that the elimination is a loop."""
    top = zw.Body("top", zw.Free("top"), mass=3, inertia=(0.3, 0.3, 0.5))
    bodies, pins = [top], []
    for k, angle in enumerate(2 * np.pi / 3 * np.arange(3)):
        foot = np.array([np.cos(angle), np.sin(angle), 0])
        lower, upper = f"lower {k}", f"upper {k}"
        bodies.append(zw.Body(lower, zw.Ball(f"foot {k}"), position=tuple(foot), mass=0.5, com=(0, 0, 0.2),
                              inertia=(0.02, 0.02, 0.01)))  # fmt: skip
        bodies.append(zw.Body(upper, zw.Prismatic(f"slide {k}", axis=(0, 0, 1)), lower, (0, 0, 0.5), mass=0.4,
                              com=(0, 0, 0.1), inertia=(0.01, 0.01, 0.01)))  # fmt: skip
        pins.append(zw.Connect(f"pin {k}", (upper, (0, 0, 0.5)), ("top", tuple(0.6 * foot))))
    m = zw.Mechanism("tripod", bodies, constraints=pins)
    q = np.array(m.neutral, float)
    q[2] = 1.0
    return m, *zw.assemble(m, q, np.random.default_rng(0).normal(size=m.nv))


def test_large_loops_move_as_by_constraint_forces():
    m, q, v = tripod()
    fast, none = zw.compile(m, threads=1), np.zeros(m.nv)
    steps = [
        fast.step(q, v, none, step=1e-3, integrator="euler", coordinate_reduction=reduction)
        for reduction in (False, True)
    ]
    assert np.abs(steps[1].v - v).max() > 1e-3
    np.testing.assert_allclose(steps[1].v, steps[0].v, atol=1e-10)
    reduced, direct = (zw.constrained_dynamics(m, q, v, none, coordinate_reduction=x) for x in (True, False))
    np.testing.assert_allclose(reduced.acceleration, direct.acceleration, atol=1e-9)
    np.testing.assert_allclose(reduced.force, direct.force, atol=1e-8)


def test_the_independent_velocities_are_selected_again_at_singular_positions():
    """On one turn around the wire the rates of x and y alternately cease to be independent; the automatic
    selection stays exact there.
    """
    m, q0, v0 = wire()
    run = zw.simulate(
        m, q0, v0, duration=1.5, step=1e-3, integrator="rk4", coordinate_reduction=True, progress=False
    )
    x, y = run.q.values[0].T
    angle = np.unwrap(np.arctan2(y, x))
    assert angle[-1] - angle[0] > 2 * np.pi
    assert np.abs(run.energy - run.energy[0, 0]).max() < 1e-8
    for q in ([0.5, 0], [0, 0.5]):
        v = [-2 * q[1], 2 * q[0]]
        a, b = (zw.constrained_dynamics(m, q, v, [0.3, 0.2], coordinate_reduction=e) for e in (False, True))
        np.testing.assert_allclose(a.acceleration, b.acceleration, atol=1e-13)
        np.testing.assert_allclose(a.forces["wire"], b.forces["wire"], atol=1e-13)
        with pytest.raises(DependentVelocitiesError, match="independent"):
            zw.constrained_dynamics(m, q, v, [0, 0], coordinate_reduction="x" if q[1] == 0 else "y")


@pytest.mark.parametrize(("make", "h"), [(turning_bennett, 1e-2), (swinging_four_bars, 5e-3)])
def test_fast_worlds_pass_singular_positions_and_redundant_rows_at_coarse_steps(make, h):
    """The stages of a step violate the constraints: redundant rows are inconsistent and nearly zero rows
    inaccurate there, and all worlds conserve their energy.
    """
    m, q0, v0 = make()
    v0 = v0 * np.linspace(0.2, 4, 60)[:, None]
    for reduction, error in ((True, 1e-7), (False, 1e-5)):
        run = zw.simulate(
            m,
            q0,
            v0,
            duration=2.0,
            step=h,
            integrator="rk4",
            coordinate_reduction=reduction,
            record=20,
            progress=False,
        )
        assert not run.status.any()
        assert np.abs(run.energy.values / run.energy.values[:, :1] - 1).max() < error


def test_the_forward_speed_of_the_sleigh_as_independent_velocity():
    """The speed u of the knife edge along its direction, as in "Projection-based derivation for the
    moving frame method" (IMECE 2021-72324), is an independent velocity of a compiled run, which follows
    the reference trajectory.
    """
    c = case("nonholonomic", "B05_chaplygin_sleigh")
    p, s, ref = c["parameters"], c["initial_state"], c["reference"]
    joints = (zw.Prismatic("x", axis=X), zw.Prismatic("y", axis=Y), zw.Revolute("phi"))
    body = zw.Body("body", joints, mass=p["m"], com=(p["a"], 0, 0), inertia=(p["J_com"],) * 3)
    edge = zw.NoSideSlip("edge", "body", direction=Y)
    m = zw.Mechanism("sleigh", (body,), gravity=(0, 0, 0), constraints=(edge,))
    u = zw.PointSpeed("u", "body", direction=X)
    h = 2e-3
    run = zw.simulate(
        m, np.zeros(3), [s["v"], 0, s["omega"]], duration=c["times"][-1], step=h, integrator="rk4",
        coordinate_reduction=[u, "phi"], progress=False,
    )  # fmt: skip
    k = np.round(np.array(c["times"]) / h).astype(int)
    q, v = run.q.values[0][k], run.v.values[0][k]
    assert run.attrs["coordinate_reduction"] == "u phi"
    near = {"rtol": 0, "atol": c["tolerance"]}
    np.testing.assert_allclose(v[:, 0] * np.cos(q[:, 2]) + v[:, 1] * np.sin(q[:, 2]), ref["v"], **near)
    np.testing.assert_allclose(q[:, :2], ref["xy_P"], **near)
    np.testing.assert_allclose(q[:, 2], ref["theta"], **near)
    np.testing.assert_allclose(v[:, 2], ref["omega"], **near)


@pytest.mark.parametrize("reduction", [False, True, ["x"]])
def test_steps_and_rollouts_of_time_dependent_constraints(reduction):
    """The bead on the rotating rod, r = r0 cosh(omega t); steps with their times equal the rollout bit for
    bit.
    """
    omega, r0, h = 2.0, 0.2, 5e-3
    fast = zw.compile(bead_on_a_turning_rod(0.4, omega))
    start = np.array([0.0, 0.3])
    radial = np.stack([np.cos(omega * start), np.sin(omega * start)], axis=1)
    tangential = np.stack([-radial[:, 1], radial[:, 0]], axis=1)
    settings = {"step": h, "integrator": "rk4", "coordinate_reduction": reduction}
    run = fast.rollout(
        r0 * radial, omega * r0 * tangential, np.zeros((2, 2)), steps=50, time=start, **settings
    )
    end = start + 50 * h
    expected = r0 * np.cosh(50 * h * omega) * np.stack([np.cos(omega * end), np.sin(omega * end)])
    np.testing.assert_allclose(run.q[:, -1], expected.T, rtol=1e-7)
    state = r0 * radial, omega * r0 * tangential
    for k in range(50):
        state = fast.step(*state[:2], np.zeros((2, 2)), time=start + k * h, **settings)
    assert np.array_equal(state.q, run.q[:, -1])
    zero = fast.rollout(r0 * radial[0], omega * r0 * tangential[0], np.zeros(2), steps=50, **settings)
    assert np.array_equal(zero.q, run.q[0])


def test_coordinate_reduction_with_limits_friction_and_soft_loops():
    """All rows but hard equalities are solved in the accelerations of the independent velocities."""
    joints = (zw.Prismatic("x", axis=X, limits=(-0.3, 0.3)), zw.Prismatic("y", axis=Y, friction=0.5))
    bob = zw.Body("bob", joints, mass=1.0)
    rod = zw.Body(
        "rod", zw.Revolute("turn", limits=(-0.4, 2.0)), mass=0.5, com=(0.2, 0, 0), inertia=(0.02,) * 3
    )
    m = zw.Mechanism(
        "mixed", (bob, rod), gravity=(0, -9.81, 0),
        constraints=(zw.Connect("pin", ("rod", (0.4, 0, 0)), ("bob", (0, 0, 0))),
                     zw.Connect("rubber", ("rod", (0.2, 0, 0)), ("world", (0.1, 0.1, 0)),
                                softness=zw.Softness())),
    )  # fmt: skip
    q0, v0 = zw.assemble(m, [0.2, 0.3, 1.0], [0, 0, -1.0])
    ran = [
        zw.simulate(m, q0, v0, duration=0.4, step=2e-3, coordinate_reduction=e, progress=False)
        for e in (False, True, "turn")
    ]
    for run in ran[1:]:
        assert not run.status.any()
        np.testing.assert_allclose(run.q, ran[0].q, atol=1e-9)
    assert ran[0].q.values[0, :, 2].min() < 0.8


@pytest.mark.parametrize("hard", [False, True])
def test_coordinate_reduction_with_contacts(hard):
    """Two balls on a rigid rod fall on the floor, one before the other."""
    surface = zw.Surface(hard=hard)
    balls = tuple(
        zw.Body(name, (zw.Prismatic(f"{name} x", axis=X), zw.Prismatic(f"{name} z")), mass=1.0,
                geometry=(zw.Sphere(radius=0.1, surface=surface),))
        for name in ("a", "b")
    )  # fmt: skip
    rod = zw.Distance("rod", ("a", (0, 0, 0)), ("b", (0, 0, 0)), 0.5)
    m = zw.Mechanism(
        "dumbbell", balls, gravity=(0, 0, -9.81), constraints=(rod,), geometry=(zw.Plane(surface=surface),)
    )
    q0 = [0, 0.12, 0.4, 0.42]
    ran = [
        zw.simulate(m, q0, duration=0.3, step=2e-3, coordinate_reduction=e, progress=False)
        for e in (False, True, ["a x", "a z", "b z"])
    ]
    assert ran[0].q.values[0, -1, 1] < 0.11
    for run in ran[1:]:
        assert not run.status.any()
        np.testing.assert_allclose(run.q, ran[0].q, atol=1e-7)


def random_rows(rng, n, k, redundant):
    A = rng.normal(size=(k, n))
    a = rng.normal(size=n)
    if redundant:
        A = np.concatenate([A, rng.normal(size=(redundant, k)) @ A])
    return rows_of_kind([f"row {i}" for i in range(len(A))], "equality", A, A @ a)


@pytest.mark.parametrize("seed", range(6))
def test_coordinate_reduction_equals_the_pseudoinverse_on_random_problems(seed):
    rng = np.random.default_rng(seed)
    n, k = 7, int(rng.integers(1, 6))
    L = rng.normal(size=(n, n))
    problem = GaussProblem(L @ L.T + np.eye(n), rng.normal(size=n), tuple(range(-1, n - 1)))
    rows = random_rows(rng, n, k, redundant=seed % 3)
    expected = solve(problem, rows)
    for S in (None, rng.normal(size=(n - k, n))):
        found = solve_reduced(problem, rows, S)
        np.testing.assert_allclose(found.acceleration, expected.acceleration, rtol=1e-8, atol=1e-9)
        np.testing.assert_allclose(found.force, expected.force, rtol=1e-6, atol=1e-7)
        V = coordinate_reduction(rows, S).V
        np.testing.assert_allclose(rows.J @ V, 0, atol=1e-9)


def test_coordinate_reduction_names_inconsistent_rows():
    rows = rows_of_kind(("left loop", "right loop"), "equality", [[1.0, 0, 0], [2.0, 0, 0]], [1.0, 5.0])
    with pytest.raises(InconsistentConstraintsError, match=r"left loop.*right loop.*contradict"):
        coordinate_reduction(rows)
