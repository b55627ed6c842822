"""Embedding in compiled runs: the motion in essential speeds is that of constraint forces, to 2e-11 in half a second, world by world."""

import numpy as np
import pytest

import zwang as zw
from tests.cases import case
from tests.constraint.test_constraint_stabilization import ball_in_a_weld, sleigh, swinging_four_bars, turning_bennett
from tests.constraint.test_nonholonomic import disc, disc_state, rolling_speeds
from tests.constraint.test_rheonomic import bead_on_a_turning_rod
from tests.symbolic.machines import X, Y, whipple
from zwang.constraint.rows import hard_rows
from zwang.dynamics.gauss import GaussProblem
from zwang.errors import DependentVelocitiesError, InconsistentConstraintsError
from zwang.solver.coordinate_reduction import coordinate_reduction, solve_reduced
from zwang.solver.solve import solve


def rolling_disc():
    c = case("nonholonomic", "B03_rolling_disc")
    m, q = disc(c["parameters"]), disc_state(c["parameters"], c["initial_state"])
    return m, q, rolling_speeds(m, q, c["initial_state"][7:10])


def bicycle():
    """Whipple's bicycle at 5 m/s, pushed over a little."""
    p = case("nonholonomic", "B01_whipple_linear")["parameters"]
    m = whipple({k: x for k, x in p.items() if isinstance(x, int | float)})
    speeds = {"x": 5, "rear": -5 / p["rR"], "front": -5 / p["rF"], "roll": 0.2}
    return m, *zw.assemble(m, np.zeros(m.nq), [speeds.get(name, 0) for name in m.speed_names])


def wire():
    """A particle on a rigid wire, started so that it passes the places where x, or y, is no essential speed."""
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
def test_compiled_embedding_is_the_motion_of_constraint_forces(name):
    """Essential speeds of the user's choice, and chosen at each step: the same in all worlds, in machine code."""
    make, speeds, integrator = MACHINES[name]
    m, q0, v0 = make()
    v0 = np.array([v0, v0 / 2, v0 / 3])
    runs = {
        str(embedding): zw.simulate(
            m,
            q0,
            v0,
            duration=0.5,
            step=2e-3,
            integrator=integrator,
            embedding=embedding,
            record=50,
            progress=False,
        )
        for embedding in (False, True, speeds)
    }
    forces, automatic, chosen = runs.values()
    named = " ".join(speed if isinstance(speed, str) else speed.name for speed in speeds)
    for run, way in ((automatic, "automatic"), (chosen, named)):
        assert run.attrs["path"] == "compiled" and not run.status.any()
        assert run.attrs["embedding"] == way
        np.testing.assert_allclose(run.q, forces.q, atol=2e-11)
        np.testing.assert_allclose(run.v, forces.v, atol=1e-9)
    alone = zw.simulate(
        m,
        q0,
        v0[1],
        duration=0.5,
        step=2e-3,
        integrator=integrator,
        embedding=True,
        record=50,
        progress=False,
    )
    assert np.array_equal(alone.q.values[0], automatic.q.values[1])


def test_the_choice_is_made_anew_where_it_becomes_singular():
    """Once round the wire x and y in turn fail as essential speed; the automatic choice is exact even where one is none at all."""
    m, q0, v0 = wire()
    run = zw.simulate(m, q0, v0, duration=1.5, step=1e-3, integrator="rk4", embedding=True, progress=False)
    x, y = run.q.values[0].T
    angle = np.unwrap(np.arctan2(y, x))
    assert angle[-1] - angle[0] > 2 * np.pi
    assert np.abs(run.energy - run.energy[0, 0]).max() < 1e-8
    for q in ([0.5, 0], [0, 0.5]):
        v = [-2 * q[1], 2 * q[0]]
        a, b = (zw.constrained_dynamics(m, q, v, [0.3, 0.2], embedding=e) for e in (False, True))
        np.testing.assert_allclose(a.acceleration, b.acceleration, atol=1e-13)
        np.testing.assert_allclose(a.forces["wire"], b.forces["wire"], atol=1e-13)
        with pytest.raises(DependentVelocitiesError, match="independent"):
            zw.constrained_dynamics(m, q, v, [0, 0], embedding="x" if q[1] == 0 else "y")


@pytest.mark.parametrize(("make", "h"), [(turning_bennett, 1e-2), (swinging_four_bars, 5e-3)])
def test_fast_worlds_pass_singular_positions_and_redundant_rows_at_coarse_steps(make, h):
    """Off the constraints, as stages of a step are, redundant rows disagree and rows that pass through zero are little known: none stops."""
    m, q0, v0 = make()
    v0 = v0 * np.linspace(0.2, 4, 60)[:, None]
    for embedding, error in ((True, 1e-7), (False, 5e-2)):
        run = zw.simulate(
            m, q0, v0, duration=2.0, step=h, integrator="rk4", embedding=embedding, record=20, progress=False
        )
        assert not run.status.any()
        assert np.abs(run.energy.values / run.energy.values[:, :1] - 1).max() < error


def test_the_sleighs_own_speed():
    """Seed 003's u, the runner's speed, as essential speed of a compiled run: the stored trajectory."""
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
        embedding=[u, "phi"], progress=False,
    )  # fmt: skip
    k = np.round(np.array(c["times"]) / h).astype(int)
    q, v = run.q.values[0][k], run.v.values[0][k]
    assert run.attrs["embedding"] == "u phi"
    near = {"rtol": 0, "atol": c["tolerance"]}
    np.testing.assert_allclose(v[:, 0] * np.cos(q[:, 2]) + v[:, 1] * np.sin(q[:, 2]), ref["v"], **near)
    np.testing.assert_allclose(q[:, :2], ref["xy_P"], **near)
    np.testing.assert_allclose(q[:, 2], ref["theta"], **near)
    np.testing.assert_allclose(v[:, 2], ref["omega"], **near)


@pytest.mark.parametrize("embedding", [False, True, ["x"]])
def test_steps_and_rollouts_know_the_time(embedding):
    """The bead on the turning rod, r = r0 cosh(omega t), by rollout; steps with their times are the rollout bit for bit."""
    omega, r0, h = 2.0, 0.2, 5e-3
    fast = zw.compile(bead_on_a_turning_rod(0.4, omega))
    begin = np.array([0.0, 0.3])
    out = np.stack([np.cos(omega * begin), np.sin(omega * begin)], axis=1)
    across = np.stack([-out[:, 1], out[:, 0]], axis=1)
    how = {"step": h, "integrator": "rk4", "embedding": embedding}
    run = fast.rollout(r0 * out, omega * r0 * across, np.zeros((2, 2)), steps=50, time=begin, **how)
    end = begin + 50 * h
    expected = r0 * np.cosh(50 * h * omega) * np.stack([np.cos(omega * end), np.sin(omega * end)])
    np.testing.assert_allclose(run.q[:, -1], expected.T, rtol=1e-7)
    at, t = (r0 * out, omega * r0 * across), begin
    for _ in range(50):
        at, t = fast.step(*at[:2], np.zeros((2, 2)), time=t, **how), t + h
    assert np.array_equal(at.q, run.q[:, -1])
    zero = fast.rollout(r0 * out[0], omega * r0 * across[0], np.zeros(2), steps=50, **how)
    assert np.array_equal(zero.q, run.q[0])


def test_limits_friction_and_soft_loops_stay_beside_embedded_constraints():
    """What is no exact equality is solved in the essential accelerations."""
    joints = (zw.Prismatic("x", axis=X, limits=(-0.3, 0.3)), zw.Prismatic("y", axis=Y, friction=0.5))
    bob = zw.Body("bob", joints, mass=1.0)
    rod = zw.Body(
        "rod", zw.Revolute("turn", limits=(-0.4, 2.0)), mass=0.5, com=(0.2, 0, 0), inertia=(0.02,) * 3
    )
    m = zw.Mechanism(
        "mixed", (bob, rod), gravity=(0, -9.81, 0),
        constraints=(zw.Connect("pin", ("rod", (0.4, 0, 0)), ("bob", (0, 0, 0))),
                     zw.Connect("rubber", ("rod", (0.2, 0, 0)), ("world", (0.1, 0.1, 0)), softness=zw.Softness())),
    )  # fmt: skip
    q0, v0 = zw.assemble(m, [0.2, 0.3, 1.0], [0, 0, -1.0])
    ran = [
        zw.simulate(m, q0, v0, duration=0.4, step=2e-3, embedding=e, progress=False)
        for e in (False, True, "turn")
    ]
    for run in ran[1:]:
        assert not run.status.any()
        np.testing.assert_allclose(run.q, ran[0].q, atol=1e-9)
    assert ran[0].q.values[0, :, 2].min() < 0.8


@pytest.mark.parametrize("hard", [False, True])
def test_contacts_stay_beside_embedded_constraints(hard):
    """Two balls on a rigid rod fall on the floor, one first."""
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
        zw.simulate(m, q0, duration=0.3, step=2e-3, embedding=e, progress=False)
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
    return hard_rows([f"row {i}" for i in range(len(A))], A, A @ a)


@pytest.mark.parametrize("seed", range(6))
def test_embedding_equals_the_pseudoinverse_on_random_problems(seed):
    rng = np.random.default_rng(seed)
    n, k = 7, int(rng.integers(1, 6))
    L = rng.normal(size=(n, n))
    problem = GaussProblem(L @ L.T + np.eye(n), rng.normal(size=n), tuple(range(-1, n - 1)))
    rows = random_rows(rng, n, k, redundant=seed % 3)
    wanted = solve(problem, rows)
    for S in (None, rng.normal(size=(n - k, n))):
        found = solve_reduced(problem, rows, S)
        np.testing.assert_allclose(found.acceleration, wanted.acceleration, rtol=1e-8, atol=1e-9)
        np.testing.assert_allclose(found.force, wanted.force, rtol=1e-6, atol=1e-7)
        V = coordinate_reduction(rows, S).V
        np.testing.assert_allclose(rows.J @ V, 0, atol=1e-9)


def test_contradicting_rows_are_named_by_embedding_too():
    rows = hard_rows(("left loop", "right loop"), [[1.0, 0, 0], [2.0, 0, 0]], [1.0, 5.0])
    with pytest.raises(InconsistentConstraintsError, match=r"left loop.*right loop.*contradict"):
        coordinate_reduction(rows)
