"""What is computed from a recording takes its elements by their labels, in whatever order they are."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp
import xarray as xr

import zwang as zw
from zwang.errors import ParameterError, ShapeError
from zwang.mechanism.samples import FURUTA, furuta
from zwang.recording.mcap_export import messages
from zwang.viewer.plot_series import series_of
from zwang.viewer.scene import scene_content, scene_data_of


@pytest.fixture(scope="module")
def run():
    """Two worlds of a pendulum beyond its limit, with a sliding cart, two motors and a parameter."""
    bob = zw.Body("bob", zw.Revolute("turn", axis=(0, 1, 0), limits=(-0.15, 0.15)), mass=1.0, com=(0, 0, -1))
    cart = zw.Body(
        "cart",
        zw.Prismatic("along", axis=(1, 0, 0)),
        mass=sp.Symbol("m_c"),
        parent="bob",
        position=(0, 0, -1),
    )
    mechanism = zw.Mechanism(
        "p",
        [bob, cart],
        forces=(zw.Motor("z", "turn"), zw.Motor("a", "along")),
        sensors=[zw.FrameSensor("pos", "position", "cart")],
    )
    return zw.simulate(
        mechanism,
        {"turn": [0.3, 0.2], "along": 0.1},
        duration=0.1,
        control={"z": 0.5, "a": 2.0},
        params={"m_c": [1.0, 2.0]},
        record={"every": 25, "sensors": True, "constraints": True, "multipliers": True},
        progress=False,
    )


@pytest.fixture(scope="module")
def reordered(run):
    return run.sortby("coordinate").sortby("speed").sortby("input").transpose("time", "world", ...)


def test_derived_quantities_of_a_reordered_recording_equal_the_recorded_ones(run, reordered):
    derived = zw.derived_quantities(reordered, "sensors", "constraints")
    for name in ("sensor", "generalised_constraint_force"):
        found = derived[name].transpose(*run[name].dims)
        np.testing.assert_allclose(found.values, run[name].values, rtol=1e-9, atol=1e-9)
    assert abs(run["generalised_constraint_force"].values).max() > 1


def test_pages_and_exports_of_a_reordered_recording_are_the_same(run, reordered):
    assert list(messages(reordered)) == list(messages(run))
    same, first = (scene_data_of(scene_content(r))["run"]["q"] for r in (reordered, run))
    np.testing.assert_array_equal(same, first)


def test_derived_quantities_of_a_transposed_recording_mask_the_failed_samples():
    bob = zw.Body("bob", zw.Revolute("turn", axis=(0, 1, 0)), mass=1.0, com=(0, 0, -1))
    mechanism = zw.Mechanism("p", [bob], sensors=[zw.FrameSensor("pos", "position", "bob")])
    end = zw.Event(lambda t, q, v: q[0] - 0.25, terminal=True, direction=1)
    run = zw.simulate(
        mechanism, {"turn": [0.1, 0.2, 0.3, 0.1]}, {"turn": [0, 5, 0, 0]}, duration=0.04, events={"e": end},
        record={"every": 10, "sensors": True}, progress=False,
    )  # fmt: skip
    derived = zw.derived_quantities(run.transpose("time", "world", ...), "sensors")
    assert np.isnan(run["sensor"].values).any()
    np.testing.assert_allclose(derived["sensor"].values, run["sensor"].values)


@pytest.mark.parametrize("read", [zw.derived_quantities, scene_content, lambda r: list(messages(r))])
def test_missing_elements_are_named(read, run):
    with pytest.raises(ShapeError, match="the recording lacks the coordinate 'along'"):
        read(run.sel(coordinate=["turn"]))
    with pytest.raises(ShapeError, match="more than once the coordinate 'turn'"):
        read(run.sel(coordinate=["turn", "turn", "along"]))
    with pytest.raises(ShapeError, match="lacks the coordinate 'along'"):
        read(run.sel(coordinate="turn"))


@pytest.mark.parametrize("read", [zw.derived_quantities, scene_content, lambda r: list(messages(r))])
def test_symbols_without_values_are_named(read):
    run = zw.simulate(furuta(), duration=0.01, params=FURUTA, progress=False)
    missing = str(run["parameter"].values[-1])
    with pytest.raises(ParameterError, match=f"lacks the parameter '{missing}'"):
        read(run.isel(parameter=slice(0, -1)))
    with pytest.raises(ParameterError, match="lacks the parameters"):
        read(run.drop_vars(["parameters", "parameter"]))


def test_a_phase_portrait_takes_the_speed_of_its_coordinate():
    bob = zw.Body("bob", zw.Planar("j"), mass=1.0, inertia=(1, 1, 1))
    run = zw.simulate(zw.Mechanism("p", [bob]), v0=[1, 2, 3], duration=0.01, progress=False)
    whole = {s.names: s.values for s in series_of(run, "phase", None)}
    part = list(series_of(run.isel(coordinate=[2, 1]), "phase", None))
    assert len(part) == 2
    for series in part:
        np.testing.assert_array_equal(series.values, whole[series.names])


def test_labelled_arrays_continue_a_simulation(run):
    mechanism = zw.mechanism_of(run).subs({"m_c": 1.0})
    last, settings = run.isel(time=-1), {"duration": 0.004, "progress": False}

    def final(q, v, control):
        return zw.simulate(mechanism, q, v, control=control, **settings).q.values

    plain = final(last.q.values, last.v.values, run.control.values[:, :2])
    two = run.control.isel(time=slice(0, 2))
    other = final(last.q[:, ::-1].T, last.v[:, ::-1].T, two[..., ::-1].transpose("input", "time", "world"))
    np.testing.assert_array_equal(other, plain)
    with pytest.raises(ShapeError, match="q0 lacks the coordinate 'along'"):
        zw.simulate(mechanism, last.q.sel(coordinate=["turn"]), **settings)
    held = run.control.isel(time=0).assign_coords(input=["a", "z"]) * xr.DataArray([1.0, 3.0], dims="world")
    continued = zw.simulate(mechanism, last.q, control=held, **settings)
    np.testing.assert_array_equal(continued.control.values[:, -1], [[2.0, 0.5], [6.0, 1.5]])
    worlds = zw.Worlds(mechanism, 2)
    worlds.reset(q=last.q[:, ::-1], v=last.v[:, ::-1])
    np.testing.assert_array_equal(worlds.q, last.q.values)
    worlds.step(run.control.isel(time=0)[:, ::-1])
    np.testing.assert_array_equal(worlds.control, run.control.values[:, 0])
    q = last.q.isel(world=0)
    np.testing.assert_array_equal(zw.mass_matrix(mechanism, q[::-1]), zw.mass_matrix(mechanism, q.values))
