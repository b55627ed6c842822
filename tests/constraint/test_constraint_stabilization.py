"""Constraint stabilisation: coordinate projection satisfies hard constraints to rounding over long runs
and does not change the energy.
"""

import numpy as np
import pytest

import zwang as zw
from tests.constraint.test_closed_loops import bennett_loop, bennett_start, four_bars
from tests.constraint.test_nonholonomic import plane_body
from tests.symbolic.machines import Y
from zwang.constraint.coordinate_projection import project_state
from zwang.constraint.hard import all_velocity_level_rows
from zwang.constraint.inverse_weights import inverse_weights
from zwang.errors import SimulationError


def violations(mechanism, q, v, t=0.0):
    """The largest position violation and the largest velocity residual of all hard constraints."""
    rows = all_velocity_level_rows(mechanism, q, v, t)
    positions = [abs(float(r)) for r in rows.position if r is not None]
    return max(positions, default=0.0), np.abs(
        np.asarray(rows.A, float) @ v + np.asarray(rows.a, float)
    ).max()


def swinging_four_bars():
    m = four_bars(2)
    cranks = np.array(["crank" in name for name in m.coordinate_names])
    return m, np.where(cranks, 1, -1) * np.pi / 2, np.where(cranks, -1.0, 1.0)


def turning_bennett():
    m = bennett_loop()
    return m, *zw.assemble(m, bennett_start(m), [1.0, 0.5, -0.5])


def turning_palletiser(coupler_mass=1.0):
    """A four-bar on a turntable, in whose plane the pin moves: its row across the plane acts on the table
    only where the loop is open.
    """

    def bar(name, parent, position, length, mass):
        return zw.Body(
            name, zw.Revolute(name, axis=(0, 1, 0)), parent, position, mass=mass, com=(length / 2, 0, 0),
            inertia=(0.001 * mass, mass * length**2 / 12, mass * length**2 / 12),
        )  # fmt: skip

    bars = (
        zw.Body("table", zw.Revolute("yaw", axis=(0, 0, 1)), mass=5, inertia=(0.1, 0.1, 0.1)),
        bar("crank", "table", (0.1, 0, 0), 0.3, 1.0),
        bar("coupler", "crank", (0.3, 0, 0), 0.5, coupler_mass),
        bar("rocker", "table", (0.6, 0, 0), 0.4, 1.0),
    )
    pin = zw.Connect("pin", ("coupler", (0.5, 0, 0)), ("rocker", (0.4, 0, 0)))
    m = zw.Mechanism("palletiser", bars, gravity=(0, 0, -9.81), constraints=[pin])
    return m, *zw.assemble(m, [0, -1.2, 0.9, -1.5], speeds={"yaw": 1.0, "crank": 2.0})


def sleigh():
    edge = zw.NoSideSlip("edge", "body", direction=Y)
    body = plane_body(1.0, 0.3, (0.2, 0, 0))
    m = zw.Mechanism("sleigh", (body,), gravity=(0, 0, 0), constraints=(edge,))
    return m, np.zeros(3), np.array([0.7, 0, 1.5])


def ball_in_a_weld():
    """A free body, with a quaternion, attached to a crank by two welds, one of which is redundant."""
    crank = zw.Body(
        "crank", zw.Revolute("crank", axis=(0, 1, 0)), mass=1, com=(0.3, 0, 0), inertia=(0.1,) * 3
    )
    bob = zw.Body("bob", zw.Free("bob"), mass=0.5, inertia=(0.01, 0.02, 0.03))
    welds = tuple(zw.Weld(name, "crank", "bob", position=(0.5, 0, 0)) for name in ("glue", "more glue"))
    m = zw.Mechanism("welded", (crank, bob), gravity=(0, 0, -9.81), constraints=welds)
    q, v = zw.assemble(m, [0.2, 0.5, 0, -0.1, 1, 0, 0, 0], [1.0, *[0.0] * 6])
    return m, q, v


MACHINES = [
    (swinging_four_bars, 1e-8),
    (turning_bennett, 1e-9),
    (turning_palletiser, 1e-7),
    (sleigh, 1e-9),
    (ball_in_a_weld, 1e-7),
]


@pytest.mark.parametrize(("make", "energy_error"), MACHINES)
def test_constraints_and_energy_over_long_runs(make, energy_error):
    m, q0, v0 = make()
    runs = {
        stabilization: zw.simulate(
            m, q0=q0, v0=v0, duration=5, step=1e-3, integrator="rk4", stabilization=stabilization,
            record=500, progress=False,
        )
        for stabilization in ("projection", "baumgarte")
    }  # fmt: skip
    errors = {}
    for stabilization, run in runs.items():
        states = list(zip(run.q.values[0], run.v.values[0], strict=True))
        energies = [sum(zw.energy(m, *state)) for state in states]
        errors[stabilization] = np.abs(np.array(energies) - energies[0]).max()
        worst = np.max([violations(m, *state) for state in states], axis=0)
        bound = 1e-10 if stabilization == "projection" else 1e-6
        assert (worst < bound).all(), f"{stabilization}: position {worst[0]:.1e}, velocity {worst[1]:.1e}"
        assert run.attrs["stabilization"] == stabilization
    assert errors["projection"] < energy_error
    assert errors["projection"] <= 2 * errors["baumgarte"] + 1e-10, "projection must not cost energy"


def test_rows_that_only_the_violation_makes_independent_are_told_beside_light_links():
    m, q0, v0 = turning_palletiser(coupler_mass=1e-5)
    ends = [
        zw.simulate(
            m,
            q0,
            v0,
            duration=0.4,
            step=5e-3,
            integrator="rk4",
            coordinate_reduction=reduction,
            progress=False,
        ).q.values[0, -1]
        for reduction in (True, False)
    ]
    np.testing.assert_allclose(ends[1], ends[0], atol=2e-6)


def test_a_projected_state_differs_by_the_least_change_in_the_metric_of_the_mass_matrix():
    """The change is M-orthogonal to all velocities that the constraints allow."""
    m, q0, v0 = swinging_four_bars()
    q0, v0 = zw.assemble(m, [1.2, -1.2, 1.2, -1.2, 1.2], v0)
    rng = np.random.default_rng(1)
    dq, dv = 1e-4 * rng.normal(size=(2, m.nv))
    q, v = (np.asarray(x, float) for x in project_state(m, inverse_weights(m), q0 + dq, v0 + dv)[:2])
    position, velocity = violations(m, q, v)
    assert position < 1e-12 and velocity < 1e-12
    A = np.asarray(all_velocity_level_rows(m, q, v).A, float)
    free = np.linalg.svd(A)[2][np.linalg.matrix_rank(A, tol=1e-8) :]
    M = zw.mass_matrix(m, q)
    np.testing.assert_allclose(free @ M @ (v - v0 - dv), 0, atol=1e-7)
    np.testing.assert_allclose(free @ M @ (q - q0 - dq), 0, atol=1e-7)


@pytest.mark.parametrize("make", [swinging_four_bars, ball_in_a_weld])
def test_compiled_projection_equals_projection_on_floats(make):
    m, q0, v0 = make()
    ran = [
        zw.simulate(
            m, q0=q0, v0=v0, duration=0.02, step=2e-3, integrator="rk4", compiled=compiled, progress=False
        )
        for compiled in (True, False)
    ]
    assert ran[0].attrs["path"] == "compiled"
    np.testing.assert_allclose(ran[0].q.values, ran[1].q.values, atol=1e-11)
    np.testing.assert_allclose(ran[0].v.values, ran[1].v.values, atol=1e-9)


@pytest.mark.parametrize("make", [make for make, _ in MACHINES])
def test_states_in_single_precision_satisfy_the_constraints_to_its_rounding(make):
    m, q, v = make()
    rollout = zw.compile(m, dtype="float32").rollout(q, v, np.zeros(m.nv), steps=300, step=1e-3)
    for k in (0, 99, 299):
        position, velocity = violations(m, np.asarray(rollout.q[k], float), np.asarray(rollout.v[k], float))
        assert position < 1e-6 and velocity < 1e-5


def test_an_initial_position_violation_is_reported_and_projected_in_the_first_step():
    m, q0, v0 = swinging_four_bars()
    with pytest.warns(zw.errors.SimulationWarning, match=r"'pin 1' is violated by 0\.05"):
        run = zw.simulate(m, q0=q0 + np.eye(5)[0] * 0.05, v0=0 * v0, duration=0.01, step=1e-3, progress=False)
    assert violations(m, run.q.values[0][1], run.v.values[0][1])[0] < 1e-10


def test_an_initial_velocity_violation_is_reported_and_projected_in_the_first_step():
    m, q0, v0 = sleigh()
    with pytest.warns(zw.errors.SimulationWarning, match="violate 'edge' by 0.4"):
        run = zw.simulate(m, q0=q0, v0=v0 + np.eye(3)[1] * 0.4, duration=0.01, step=1e-3, progress=False)
    assert violations(m, run.q.values[0][1], run.v.values[0][1])[1] < 1e-10


def test_the_stabilization_methods_are_named_in_errors():
    m, q0, v0 = sleigh()
    with pytest.raises(SimulationError, match="'projection' or 'baumgarte'"):
        zw.simulate(m, q0=q0, v0=v0, duration=0.1, stabilization="glue")
    with pytest.raises(SimulationError, match=r"'projection'.*'lsoda' does not allow.*'radau'"):
        zw.simulate(m, q0=q0, v0=v0, duration=0.1, integrator="lsoda", stabilization="projection")
    for integrator, stabilization in (("lsoda", "baumgarte"), ("dop853", "projection")):
        run = zw.simulate(m, q0=q0, v0=v0, duration=0.1, integrator=integrator, progress=False)
        assert run.attrs["stabilization"] == stabilization


@pytest.mark.parametrize("integrator", ["dop853", "rk45", "radau", "bdf"])
@pytest.mark.parametrize("make", [swinging_four_bars, sleigh, ball_in_a_weld])
def test_error_controlled_steps_are_projected_too(make, integrator):
    """All samples, also those between steps, satisfy the constraints; the motion equals that of fixed
    steps.
    """
    m, q0, v0 = make()
    T, tight = 0.4, zw.Adaptive(integrator, rtol=1e-7, atol=1e-9)
    if integrator == "bdf":
        tight = zw.Adaptive(integrator, rtol=1e-6, atol=1e-8)
    run = zw.simulate(m, q0=q0, v0=v0, duration=T, step=0.05, integrator=tight, progress=False)
    worst = np.max([violations(m, *s) for s in zip(run.q.values[0], run.v.values[0], strict=True)], axis=0)
    assert (worst < 1e-11).all(), f"position {worst[0]:.1e}, velocity {worst[1]:.1e}"
    fixed = zw.simulate(m, q0=q0, v0=v0, duration=T, step=1e-3, integrator="rk4", record=400, progress=False)
    np.testing.assert_allclose(run.q.values[0][-1], fixed.q.values[0][-1], atol=2e-4)


def test_compiled_and_float_runs_with_a_control_function_project_the_same_states():
    m, q0, v0 = sleigh()
    ran = [
        zw.simulate(
            m, q0=q0, v0=v0, duration=0.2, step=0.05, integrator="dop853", compiled=compiled, progress=False,
            control=lambda t, q, v: [0.0, 0.0, float(np.cos(3 * t))],
        )
        for compiled in (True, False)
    ]  # fmt: skip
    np.testing.assert_allclose(ran[0].v.values, ran[1].v.values, atol=1e-9)
    assert violations(m, ran[0].q.values[0][-1], ran[0].v.values[0][-1])[1] < 1e-12
