"""The status of the constraint solver: in recordings, compiled steps and constrained dynamics."""

import numpy as np
import pytest
import xarray as xr

import zwang as zw
from zwang.api.runs.compiled_rollout import compiled_step
from zwang.errors import UnknownNameError
from zwang.scalar import logical_and, logical_not
from zwang.solver import newton

PATHS = pytest.mark.parametrize("compiled", [True, False])


def ball(friction=(1.0, 0.005, 0.0001)):
    """A ball above a floor, which it reaches after 0.1 s."""
    touch = zw.Surface(friction=friction)
    body = zw.Body(
        "ball",
        joint=zw.Free("free"),
        mass=1.0,
        inertia=(0.004,) * 3,
        geometry=[zw.Sphere(radius=0.1, surface=touch)],
    )
    return zw.Mechanism(bodies=[body], geometry=[zw.Plane(surface=touch)])


def pyramid(height=0.099):
    """A ball in contact: position and a velocity along the floor."""
    return np.array([0, 0, height, 1, 0, 0, 0.0]), np.array([1.0, 0.3, 0, 0, 0, 0])


def short_of_iterations(monkeypatch, limit=1):
    """Newton's method with an iteration limit of `limit`, whose iterates all count as usable."""
    monkeypatch.setattr(newton.newton, "__kwdefaults__", newton.newton.__kwdefaults__ | {"iterations": limit})
    monkeypatch.setattr(newton, "USABLE_STEP", np.inf)


@pytest.fixture
def stagnating(monkeypatch):
    """Newton's method with a tolerance that no residual can reach: every solution with rows stagnates."""
    defaults = newton.newton.__kwdefaults__
    monkeypatch.setattr(newton.newton, "__kwdefaults__", defaults | {"tolerance": 1e-30})
    along = newton._Method.along

    def with_another_status(*arguments):
        Jp, same = along(*arguments)
        return Jp, logical_and(same, logical_not(same))  # false on every scalar

    monkeypatch.setattr(newton._Method, "along", with_another_status)
    compiled_step.cache_clear()
    yield
    compiled_step.cache_clear()


def sliding_balls():
    """Two balls on one another on a floor, with elliptic cones: several Newton iterations."""
    touch = zw.Surface(friction=(0.5, 0.005, 0.0001))
    bodies = [
        zw.Body(
            f"ball {k}",
            joint=zw.Free(f"free {k}"),
            mass=10.0**k,
            inertia=(0.004 * 10.0**k,) * 3,
            geometry=[zw.Sphere(radius=0.1, surface=touch)],
        )
        for k in range(2)
    ]
    options = zw.Options(cone="elliptic")
    return zw.Mechanism(bodies=bodies, geometry=[zw.Plane(surface=touch)], options=options)


SLIDING = (
    np.array([0, 0, 0.0999, 1, 0, 0, 0, 0.05, 0, 0.0999 + 0.19, 1, 0, 0, 0]),
    np.array([1.0, 0.5, 0, 0, 3, 0, 0, -0.5, 0, 2, 0, 1]),
)


def test_constrained_dynamics_says_how_its_solver_ended(monkeypatch):
    q, v = SLIDING
    found = zw.constrained_dynamics(sliding_balls(), q, v, np.zeros(12))
    assert found.solver_status == zw.SolverStatus.CONVERGED and found.kkt_residual < 1e-10
    short_of_iterations(monkeypatch)
    poor = zw.constrained_dynamics(sliding_balls(), q, v, np.zeros(12))
    assert poor.solver_status == zw.SolverStatus.NOT_CONVERGED and poor.kkt_residual > 1e-6
    assert not poor.converged and poor.status.startswith("not converged")


@pytest.mark.usefixtures("stagnating")
def test_a_tolerance_below_rounding_is_stagnation():
    """No residual can be below 1e-30 of its terms, so that only rounding ends the iteration."""
    q, v = SLIDING
    found = zw.constrained_dynamics(sliding_balls(), q, v, np.zeros(12))
    assert found.solver_status == zw.SolverStatus.STAGNATED
    assert found.converged and found.status.startswith("stagnated") and found.kkt_residual < 1e-10


@PATHS
@pytest.mark.usefixtures("stagnating")
def test_recordings_have_the_worst_status_since_the_sample_before(compiled):
    """A ball that falls and lands: only steps in contact stagnate."""
    m = ball()
    q, v = pyramid(0.1 + 0.005)  # falls 5 mm: 32 ms
    run = zw.simulate(m, q, v, duration=0.06, step=0.001, compiled=compiled, progress=False)
    status = run.solver_status.isel(world=0).values
    height = run.q.isel(world=0).values[:, 2]
    touching = height < 0.1
    assert status[0] == zw.SolverStatus.NO_SOLUTION and status.dtype == np.int8
    bad = status == zw.SolverStatus.STAGNATED
    assert np.array_equal(bad[1:], touching[:-1]) and touching.any()  # the step begins at the sample before
    rare = zw.simulate(m, q, v, duration=0.06, step=0.001, compiled=compiled, progress=False, record=7)
    expected = [status[1 + 7 * k : 8 + 7 * k].max() for k in range(8)] + [status[57:].max()]
    assert rare.solver_status.isel(world=0).values[1:].tolist() == expected
    called = zw.simulate(
        m, q, v, duration=0.06, step=0.001, compiled=compiled, progress=False, record=7,
        control=lambda t, q, v: np.array(list(np.zeros(6))) + float(str(0 * float(q[0]))),
    )  # fmt: skip
    assert called.solver_status.isel(world=0).values[1:].tolist() == expected


def test_recordings_keep_the_statuses_of_stopped_worlds_and_files(tmp_path):
    m = ball()
    q, v = pyramid()
    u = np.zeros((2, 20, 6))
    u[1, 7] = np.nan
    with pytest.warns(zw.errors.SimulationWarning):
        run = zw.simulate(m, q, v, worlds=2, control=u, duration=0.02, step=0.001, progress=False)
    assert (run.solver_status.isel(world=0).values[1:] >= 0).all()
    assert (run.solver_status.isel(world=1).values[8:] == zw.SolverStatus.NO_SOLUTION).all()
    assert run.solver_status.attrs["flag_meanings"] == "no_solution converged stagnated not_converged"
    zw.save(run, tmp_path / "run.nc")
    assert zw.open_run(tmp_path / "run.nc").solver_status.equals(run.solver_status)


def test_an_unconstrained_motion_has_no_solver_status():
    rod = zw.Mechanism(bodies=[zw.Body("rod", joint=zw.Revolute("turn"), mass=1.0, inertia=(1, 1, 1))])
    run = zw.simulate(rod, duration=0.01, progress=False)
    assert isinstance(run, xr.Dataset) and "solver_status" not in run


def test_a_compiled_step_reports_its_solver(monkeypatch):
    m, (q, v) = ball(), pyramid()
    qs, vs = np.stack([q, q + np.eye(7)[2]]), np.stack([v, v])
    fast = zw.compile(m, cache=False)
    plain = fast.step(qs, vs, np.zeros(6))
    asked = fast.step(qs, vs, np.zeros(6), outputs=["solver_status"])
    assert all(np.array_equal(x, y) for x, y in zip(plain, asked[:3], strict=True))
    assert asked.solver_status.tolist() == [0, 0] and asked.force is None
    short_of_iterations(monkeypatch, 0)
    poor = zw.compile(m, cache=False).step(qs, vs, np.zeros(6), outputs=["solver_status", "force"])
    assert poor.solver_status.tolist() == [2, 0] and np.isnan(poor.force[0]).all()


@pytest.mark.usefixtures("stagnating")
def test_a_compiled_rollout_reports_the_worst_of_the_steps_between_records():
    q, v = pyramid(0.1001)
    qs, vs = np.stack([q, q + np.eye(7)[2]]), np.stack([v, v - [0, 0, 0.02, 0, 0, 0]])
    poor = zw.compile(ball(), cache=False)
    rolled = poor.rollout(qs, vs, np.zeros(6), steps=9, every=3, outputs=["solver_status"])
    single = poor.rollout(qs, vs, np.zeros(6), steps=9, outputs=["solver_status"])
    assert rolled.solver_status.tolist() == single.solver_status.reshape(2, 3, 3).max(axis=2).tolist()
    assert set(single.solver_status[0].tolist()) == {0, 1} and not single.solver_status[1].any()


def test_other_outputs_of_a_step_do_not_exist():
    fast = zw.compile(ball())
    q, v = pyramid()
    with pytest.raises(UnknownNameError, match="solver_status"):
        fast.step(q, v, np.zeros(6), outputs=["status"])


def test_outputs_cost_nothing_where_they_are_not_asked_for():
    """The program of a step without outputs has no instruction more than the state needs."""
    fast = zw.compile(ball(), cache=False)
    options = fast.mechanism.options
    key = (options.timestep, options.integrator)
    plain = fast.count_operations(("step", *key))["total"]
    asked = fast.count_operations(("step_outputs", ("solver_status",), *key))["total"]
    assert plain < asked
