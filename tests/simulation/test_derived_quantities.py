"""Derived quantities of recordings equal those recorded during the run and the float reference at each
instant.
"""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

import zwang as zw
from zwang.api.runs.post_processing import DERIVED_QUANTITIES
from zwang.errors import LoadError, ShapeError, UnknownNameError
from zwang.mechanism.samples import double_pendulum, four_bar, furuta

WANTED = dict.fromkeys(DERIVED_QUANTITIES, True)


def swinging(**options) -> xr.Dataset:
    m = four_bar()
    q, v = zw.assemble(m, np.array(m.home or m.neutral, float), [1.0, 0, 0])
    return zw.simulate(m, q, v, duration=0.2, step=0.005, control={"motor": 0.3}, integrator="rk4", **options)


def ball() -> zw.Mechanism:
    body = zw.Body(
        "ball", zw.Free("ball"), mass=2.0, inertia=(0.01, 0.01, 0.01), geometry=[zw.Sphere(0.1, name="s")]
    )
    return zw.Mechanism("ball", [body], geometry=[zw.Plane(name="ground")])


@pytest.fixture(scope="module")
def run() -> xr.Dataset:
    return zw.derived_quantities(swinging(record=4))


def test_the_recorded_zwang_by_body_sums_to_gauss_function(run):
    m = zw.mechanism_of(run)
    for k in range(0, run.sizes["time"], 3):
        at = run.isel(world=0, time=k)
        q, v, u = at["q"].values, at["v"].values, at["control"].values
        tau = [u[0], 0, 0]
        found = zw.constrained_dynamics(m, q, v, tau)
        for name, part in found.bodies.items():
            told = float(at["constraint_zwang"].sel(constraint_zwang_part=name))
            assert told == pytest.approx(part, rel=1e-8, abs=1e-10)
        assert float(at["constraint_zwang"].sum()) == pytest.approx(found.zwang, rel=1e-8)
        parts = zw.zwang_by_body(m, q, v, tau, found.acceleration)
        for name, part in parts.items():
            assert float(at["zwang"].sel(zwang_part=name)) == pytest.approx(part, rel=1e-7, abs=1e-9)
    assert float(run["constraint_zwang"].max()) > 0.01
    assert run["zwang"].attrs["units"] == "W/s"


def test_position_violations_are_the_distances_of_the_connected_points(run):
    m = zw.mechanism_of(run)
    (loop,) = m.constraints
    ends = {name: zw.Frame(name, body, point) for name, (body, point) in {"a": loop.a, "b": loop.b}.items()}
    m = m.replace(frames=tuple(ends.values()))
    moved = run.copy()
    moved["q"] = run["q"] + 0.01 * np.arange(3)
    moved["v"] = run["v"] + 0.02
    moved = zw.derived_quantities(moved, "violations")
    assert (
        list(moved["constraint"].values) == [loop.name]
        and moved["constraint_violation"].attrs["units"] == "m"
    )
    for k in (0, 7):
        q, v = moved["q"].values[0, k], moved["v"].values[0, k]
        a, b = (zw.frame_pose(m, q, name).p for name in "ab")
        assert float(moved["constraint_violation"][0, k, 0]) == pytest.approx(np.linalg.norm(a - b), rel=1e-9)
        Ja, Jb = (zw.frame_jacobian(m, q, name)[:3] for name in "ab")
        assert float(moved["constraint_velocity_residual"][0, k, 0]) == pytest.approx(
            np.linalg.norm((Ja - Jb) @ v), rel=1e-9
        )
    assert float(run["constraint_violation"].max()) < 1e-9


def test_the_violation_of_a_weld_is_a_length_and_an_angle():
    weld = zw.Weld("fixed", "b", "world", torque_scale=0.7)
    body = zw.Body("b", zw.Free("b"), mass=1, inertia=(1, 1, 1))
    m = zw.Mechanism(bodies=[body], constraints=[weld], gravity=(0, 0, 0))
    run = zw.simulate(m, duration=0.01, step=0.005)
    half = 0.5e-3
    run["q"][0, 1] = [0.03, 0.04, 0, np.cos(half), 0, np.sin(half), 0]
    found = zw.derived_quantities(run, "violations")
    np.testing.assert_allclose(found["constraint_violation"][0, 1], [0.05, 2 * half], rtol=1e-6)
    assert list(found["constraint_unit"].values) == ["m", "rad"]
    assert list(found["constraint_speed_unit"].values) == ["m/s", "rad/s"]


def test_velocity_constraints_have_no_position_violation():
    runner = zw.NoSideSlip("blade", "sleigh")
    body = zw.Body("sleigh", zw.Planar("p"), mass=1, inertia=(1, 1, 1))
    m = zw.Mechanism(bodies=[body], constraints=[runner], gravity=(0, 0, 0))
    run = zw.simulate(m, duration=0.01, step=0.005)
    run["v"][0, 1] = [0.2, 0.3, 0]
    found = zw.derived_quantities(run, "violations")
    assert np.isnan(found["constraint_violation"]).all()
    assert float(found["constraint_velocity_residual"][0, 1, 0]) == pytest.approx(0.3)


@pytest.mark.parametrize("compiled", [True, False])
def test_derived_quantities_equal_recorded_ones(compiled):
    begin = zw.simulate(ball(), {"ball.z": 0.0995}, duration=0.05, step=0.005, record={"every": 1, **WANTED})
    bare = zw.simulate(ball(), {"ball.z": 0.0995}, duration=0.05, step=0.005)
    found = zw.derived_quantities(bare, *WANTED, compiled=compiled)
    assert {"generalised_constraint_force", "force", "zwang", "constraint_zwang"} <= set(begin.data_vars)
    for name in begin.data_vars:
        if begin[name].dtype.kind == "f":
            np.testing.assert_allclose(found[name], begin[name], rtol=1e-8, atol=1e-8, err_msg=str(name))
    assert float(np.abs(found["force"].sel(axis="z")).max()) > 10
    assert found["force"].attrs == begin["force"].attrs


def test_derived_quantities_of_worlds_with_parameters_and_of_failed_worlds():
    m = furuta(
        **{
            k: x
            for k, x in zip(
                ("L_r", "L_p", "g", "m_r", "J_r1", "J_r2", "J_r3", "J_p1", "J_p2", "J_p3", "B_r", "B_p"),
                (0.1, 0.1, 9.81, 0.1, 1e-4, 1e-4, 1e-4, 1e-4, 1e-4, 1e-5, 0, 0),
                strict=True,
            )
        }
    )
    run = zw.simulate(m, {"alpha": 0.4}, duration=0.05, step=0.005, params={"m_p": [0.02, 0.05]})
    run["q"][1, 6:], run["v"][1, 6:] = np.nan, np.nan
    found = zw.derived_quantities(run, "zwang")
    for w, mass in enumerate((0.02, 0.05)):
        one, at = m.subs({"m_p": mass}), run.isel(world=w, time=4)
        q, v = at["q"].values, at["v"].values
        a = zw.forward_dynamics(one, q, v, [0, 0])
        told = float(found["zwang"].isel(world=w, time=4).sum())
        assert told == pytest.approx(zw.zwang_of(one, q, v, [0, 0], a), rel=1e-9)
    assert np.isnan(found["zwang"][1, 6:]).all() and np.isfinite(found["zwang"][1, :6]).all()
    assert float(np.abs(found["constraint_zwang"]).max()) == 0


def test_derived_quantities_are_saved(tmp_path, run):
    zw.save(run, tmp_path / "run.nc")
    assert zw.open_run(tmp_path / "run.nc").identical(run)


def test_invalid_calls_raise_errors():
    run = zw.simulate(double_pendulum(), duration=0.05, step=0.01)
    with pytest.raises(UnknownNameError, match="violations"):
        zw.derived_quantities(run, "drift")
    with pytest.raises(ShapeError, match=r"isel\(world=\[0\]\)"):
        zw.derived_quantities(run.isel(world=0))
    with pytest.raises(ShapeError, match="control"):
        zw.derived_quantities(run.drop_vars("control"))
    with pytest.raises((ShapeError, LoadError)):
        zw.derived_quantities(3)  # type: ignore[arg-type]
    with pytest.raises(ShapeError, match="empty"):
        zw.derived_quantities(run.isel(time=slice(0, 0)))


LAG = ("filterexact", (0.05,))
DRIVES = {
    "pid": {"pid": zw.Pid(10, 20, 2)},
    "slew": {"pid": zw.Pid(10, 0, 0, slew_rate=1.0)},
    "early": {"gain": (5, 0, 0), "bias": (0, -5, -0.1), "activation": LAG, "early": True},
}


@pytest.mark.parametrize("drive", DRIVES)
def test_recorded_forces_of_actuators_are_those_of_the_steps_at_every_step_size(drive):
    """M dv / h + bias forces = tau, where the step is not that of the options."""
    h = 0.01
    servo = zw.Actuator("servo", joint="hinge", **DRIVES[drive])
    body = zw.Body("arm", zw.Revolute("hinge", (0, 1, 0)), mass=1, com=(0, 0, -0.3))
    m = zw.Mechanism("arm", [body], forces=[servo], sensors=[zw.ActuatorSensor("s", "force", "servo")])
    run = zw.simulate(m, [0.1], [0.2], duration=0.1, step=h, control=[0.5], record={"sensors": True})
    q, v, tau = (run[name].values[0] for name in ("q", "v", "tau"))
    M, bias = zw.compile(m).mass_matrix(q)[:, 0], zw.compile(m).bias_forces(q, v)
    np.testing.assert_allclose(tau[:-1], M[:-1] * np.diff(v, axis=0) / h + bias[:-1], rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(run["sensor"].values[0], tau, rtol=1e-12)
    again = zw.derived_quantities(run, "sensors", compiled=False)
    np.testing.assert_allclose(again["sensor"].values[0], tau, rtol=1e-12)
    worlds = zw.Worlds(m, 1, step=h)
    worlds.set(q=[0.1], v=[0.2], control=[0.5])
    assert worlds.sensors["s"][0, 0] == pytest.approx(tau[0, 0], rel=1e-12)
