"""Plots show the recorded values, for any number of joints and worlds."""

from __future__ import annotations

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr

import zwang as zw
from zwang.errors import ShapeError, SimulationError
from zwang.mechanism.samples import double_pendulum
from zwang.recording.energy_change import energy_drift
from zwang.viewer.plot import percentiles

matplotlib.use("Agg")


@pytest.fixture(autouse=True)
def _closed():
    yield
    plt.close("all")


def chain(n: int) -> zw.Mechanism:
    bodies = [
        zw.Body(f"b{k}", zw.Revolute(f"joint_{k}", axis=(0, 1, 0)), parent=f"b{k - 1}" if k else "world",
                position=(0, 0, -0.2), mass=1, com=(0, 0, -0.1), inertia=(0.01, 0.01, 0.01))
        for k in range(n)
    ]  # fmt: skip
    return zw.Mechanism(name="chain_of $n$ links", bodies=bodies)


def visible(figure) -> list:
    return [axes for axes in figure.axes if axes.get_visible()]


@pytest.mark.parametrize(("joints", "panels"), [(1, 4), (12, 6), (30, 10)])
def test_one_world_has_a_line_for_every_coordinate(joints, panels, tmp_path):
    run = zw.simulate(chain(joints), np.full(joints, 0.1), duration=0.05, step=0.005, compiled=False)
    figure = zw.plot(run, tmp_path / "run.png")
    axes = visible(figure)
    assert len(axes) == panels
    drawn = {
        line.get_label(): line.get_ydata()
        for a in axes
        for line in a.lines
        if "angles" in a.get_title(loc="left")
    }
    for name in run.coordinate.values:
        np.testing.assert_array_equal(drawn[name], run.q.sel(world=0, coordinate=name))
    assert (tmp_path / "run.png").stat().st_size > 10_000


def test_many_worlds_are_drawn_as_bands():
    q0 = np.random.default_rng(0).normal(size=(200, 2))
    run = zw.simulate(double_pendulum(), q0, duration=0.5, step=0.01)
    first = visible(zw.plot(run))[0]
    middle = first.lines[0].get_ydata()
    np.testing.assert_allclose(middle, np.median(run.q.values[:, :, 0], axis=0))
    assert len(first.collections) == 2


def test_percentiles_ignore_worlds_that_stopped():
    values = np.array([[1.0, 2, np.nan], [3, np.nan, np.nan], [5, 6, np.nan]])
    np.testing.assert_allclose(percentiles(values, (50,)), [[3, 4, np.nan]])


def test_the_title_counts_worlds_that_stopped_early():
    run = zw.simulate(double_pendulum(), [[0.1, 0], [0.2, 0]], duration=0.05, step=0.01)
    run["status"][1] = 1
    assert "1 stopped early" in zw.plot(run).get_suptitle()


def test_the_energy_change_is_relative_to_the_kinetic_energy():
    run = zw.simulate(double_pendulum(), [0.5, 0], duration=1, step=0.01, integrator="rk4")
    assert np.abs(energy_drift(run)).max() < 1e-6
    rest = zw.simulate(double_pendulum(), duration=0.05, step=0.01)
    assert np.isfinite(energy_drift(rest)).all()


def test_selections_without_worlds_or_times_are_told():
    run = zw.simulate(double_pendulum(), duration=0.1)
    for empty in (run.isel(time=[]), run.sel(time=slice(3, 4)), run.isel(world=[])):
        with pytest.raises(ShapeError, match="at least one world and one time"):
            zw.plot(empty)
    with pytest.raises(ShapeError, match=r"run\.isel\(world=\[0\]\)"):
        zw.plot(run.isel(world=0))


@pytest.mark.parametrize("kind", ["overview", "time", "energy", "phase"])
def test_recordings_joined_in_a_dimension_of_their_own_are_told(kind):
    runs = [zw.simulate(double_pendulum(), q, duration=0.05, step=0.01) for q in ([0.1, 0], [0.2, 0])]
    joined = xr.concat(runs, "case")
    with pytest.raises(ShapeError, match=r"dimension 'case' .* run\.isel\(case=0\)"):
        zw.plot(joined, kind=kind)
    zw.plot(xr.concat(runs, "world"), kind=kind)


def test_other_arguments_raise_errors():
    run = zw.simulate(double_pendulum(), duration=0.05, step=0.01)
    with pytest.raises(ShapeError, match="recording"):
        zw.plot(run[["q"]])
    with pytest.raises(ShapeError, match="not a int"):
        zw.plot(3)  # type: ignore[arg-type]
    with pytest.raises(SimulationError, match=r"\.png"):
        zw.plot(run, "run.gif")
