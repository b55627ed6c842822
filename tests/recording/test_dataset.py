"""Recordings have labels and units and are the same bit for bit after saving and loading."""

from __future__ import annotations

import datetime
import sys

import numpy as np
import pytest
import xarray as xr

import zwang as zw
from tests.mechanisms import random_mechanism, random_state
from zwang.errors import LoadError, MissingExtraError, ShapeError, SimulationError
from zwang.mechanism.samples import FURUTA, furuta
from zwang.recording.dataset import coordinate_units, speed_units


@pytest.fixture(scope="module")
def run():
    mechanism = random_mechanism(5, bodies=4, kinds=(zw.Revolute, zw.Prismatic, zw.Free))
    q, v, tau, _ = random_state(mechanism, 5)
    return zw.simulate(
        mechanism, q, [v, -v], duration=0.05, step=0.005, control=tau, record={"frames": ["tip"]}
    )


@pytest.mark.parametrize("suffix", [".nc", ".zarr"])
def test_a_saved_recording_equals_the_original(run, suffix, tmp_path):
    zw.save(run, tmp_path / f"run{suffix}")
    back = zw.open_run(tmp_path / f"run{suffix}")
    assert back.identical(run)
    for name, variable in run.variables.items():
        assert back[name].dtype == variable.dtype, name
        if variable.dtype.kind == "f":
            assert back[name].values.tobytes() == variable.values.tobytes(), name
    assert zw.mechanism_of(back) == zw.mechanism_of(run)


@pytest.mark.parametrize("suffix", [".nc", ".zarr"])
def test_labels_without_elements_stay_texts(suffix, tmp_path):
    """No force of a constraint or contact acts, so there are no labels of forces."""
    run = zw.simulate(furuta(**FURUTA), duration=0.02, record={"forces": True})
    assert run.sizes["point_force"] == 0
    zw.save(run, tmp_path / f"run{suffix}")
    back = zw.open_run(tmp_path / f"run{suffix}")
    assert back.identical(run) and back.point_force.dtype.kind == "U"


def test_symbols_and_parameters_survive_a_file(tmp_path):
    run = zw.simulate(furuta(), duration=0.02, params={**FURUTA, "m_p": [0.02, 0.03]})
    zw.save(run, tmp_path / "run.nc")
    back = zw.open_run(tmp_path / "run.nc")
    assert back.identical(run)
    assert zw.mechanism_of(back).symbols == furuta().symbols


NUMBERS_AND_TEXTS = ("x", 2.5, np.int64(3), [1, 2], np.eye(2), ["a", "b"])
OF_JSON = (True, None, {"a": [1, None]}, [True, False], ["a", 1])


@pytest.mark.parametrize(
    ("suffix", "held"), [(".nc", NUMBERS_AND_TEXTS), (".zarr", (*NUMBERS_AND_TEXTS, *OF_JSON))]
)
def test_attributes_that_a_file_holds_are_read_as_written(run, suffix, held, tmp_path):
    noted = run.assign_attrs({f"note{k}": value for k, value in enumerate(held)})
    zw.save(noted, tmp_path / f"run{suffix}")
    assert zw.open_run(tmp_path / f"run{suffix}").identical(noted)


NEITHER = (datetime.date(2026, 1, 2), {1, 2}, [[1], [2, 3]], 10**400, b"x", {1: 2})
REFUSED = [(".nc", x) for x in (*OF_JSON, *NEITHER)] + [(".zarr", x) for x in (*NEITHER, 1j)]


@pytest.mark.parametrize(("suffix", "value"), REFUSED)
def test_other_attributes_are_refused_by_name(run, suffix, value, tmp_path):
    with pytest.raises(SimulationError, match="attribute 'note' of the recording is "):
        zw.save(run.assign_attrs(note=value), tmp_path / f"run{suffix}")
    noted = run.copy()
    noted["q"] = noted["q"].assign_attrs(note=value)
    with pytest.raises(SimulationError, match="attribute 'note' of variable 'q'"):
        zw.save(noted, tmp_path / f"run{suffix}")
    assert not list(tmp_path.iterdir())


def test_xarray_writes_and_reads_a_recording(run, tmp_path):
    run.to_netcdf(tmp_path / "plain.nc", engine="h5netcdf")
    assert zw.open_run(tmp_path / "plain.nc").identical(run)


def test_labels_and_units_are_those_of_the_joints(run):
    mechanism = zw.mechanism_of(run)
    assert run.coordinate.values.tolist() == list(mechanism.coordinate_names)
    assert run.speed.values.tolist() == list(mechanism.speed_names)
    for joint in mechanism.joints:
        here = run.q.isel(coordinate=run.coordinate_joint.values == joint.name)
        np.testing.assert_array_equal(here.values, run.q.values[..., joint.q])
    assert run.energy.attrs["units"] == "J" and run.time.attrs["units"] == "s"


def test_every_kind_of_joint_has_units():
    bodies, parent = [], "world"
    kinds = (zw.Revolute, zw.Prismatic, zw.Screw, zw.Cylindrical, zw.Universal, zw.Planar, zw.Ball, zw.Free)
    for kind in kinds:
        bodies.append(
            zw.Body(kind.__name__, kind(f"j{kind.__name__}"), parent=parent, mass=1, inertia=(1, 1, 1))
        )
        parent = kind.__name__
    mechanism = zw.Mechanism(bodies=bodies)
    rad, m, one = "rad", "m", "1"
    expected = [rad, m, rad, rad, m, rad, rad, m, m, rad, *[one] * 4, m, m, m, *[one] * 4]
    assert coordinate_units(mechanism) == expected
    speeds = [rad, m, rad, rad, m, rad, rad, m, m, rad, *[rad] * 3, m, m, m, *[rad] * 3]
    assert speed_units(mechanism) == [unit + "/s" for unit in speeds]


def test_units_say_what_each_element_has():
    link = zw.Body("link", zw.Revolute("turn"), mass=1, com=(1, 0, 0))
    cart = zw.Body("cart", zw.Prismatic("slide"), parent="link", mass=1)
    alone = zw.simulate(zw.Mechanism(bodies=[link]), duration=0.002)
    assert [alone[name].attrs["units"] for name in ("q", "v", "tau")] == ["rad", "rad/s", "N m"]
    both = zw.simulate(zw.Mechanism(bodies=[link, cart]), duration=0.002)
    assert both.tau.attrs["units"] == "see force_unit"
    assert both.force_unit.values.tolist() == ["N m", "N"]


def test_the_recorded_energy_equals_the_reference(run):
    mechanism = zw.mechanism_of(run)
    for w, t in ((0, 0), (1, 7), (0, 10)):
        expected = zw.energy(mechanism, run.q.values[w, t], run.v.values[w, t])
        assert run.kinetic_energy.values[w, t] == pytest.approx(expected.kinetic, rel=1e-12)
        assert run.potential_energy.values[w, t] == pytest.approx(expected.potential, rel=1e-12)
        np.testing.assert_allclose(
            run.frame_position.values[w, t, 0],
            zw.frame_pose(mechanism, run.q.values[w, t], "tip").p,
            atol=1e-12,
        )


def test_files_without_a_recording_are_rejected(tmp_path, run):
    for name, words in (("no.nc", "damaged"), ("no.mcap", "export.*to .nc"), ("no.xml", "`zwang simulate`")):
        (tmp_path / name).write_text("this is no NetCDF")
        with pytest.raises(LoadError, match=f"{name}.*{words}"):
            zw.open_run(tmp_path / name)
    run[["q"]].assign_attrs(format="other").to_netcdf(tmp_path / "other.nc", engine="h5netcdf")
    with pytest.raises(LoadError, match="format"):
        zw.open_run(tmp_path / "other.nc")
    with pytest.raises(LoadError):
        zw.open_run(tmp_path / "missing.nc")
    with pytest.raises(SimulationError, match=r"\.nc"):
        zw.save(run, tmp_path / "run.csv")


def test_without_zarr_the_error_names_the_package_to_install(tmp_path, run, monkeypatch):
    monkeypatch.setitem(sys.modules, "zarr", None)
    for attempt in (lambda: zw.save(run, tmp_path / "a.zarr"), lambda: zw.open_run(tmp_path / "a.zarr")):
        with pytest.raises(MissingExtraError, match="pip install 'zarr"):
            attempt()


@pytest.mark.parametrize("suffix", [".nc", ".zarr"])
@pytest.mark.parametrize("values", [["good", None], ["good", np.nan], [1, 2.5], [b"a", "b"]])
def test_objects_that_are_no_texts_are_refused_by_name(run, suffix, values, tmp_path):
    path = tmp_path / f"run{suffix}"
    with pytest.raises(SimulationError, match="the variable 'note' holds"):
        zw.save(run.assign(note=("world", np.array(values, object))), path)
    assert not path.exists()
    noted = run.assign(note=("world", np.array(["good", ""], object)))
    zw.save(noted, path)
    assert zw.open_run(path).note.values.tolist() == ["good", ""]


def test_recordings_of_one_mechanism_may_be_joined(run, tmp_path):
    """`xr.concat` repeats the description of the mechanism for each world."""
    both = xr.concat([run, run], "world", data_vars="all")
    assert both.mechanism.dims == ("world",) and zw.mechanism_of(both) == zw.mechanism_of(run)
    zw.save(both, tmp_path / "both.nc")
    assert zw.mechanism_of(zw.open_run(tmp_path / "both.nc")) == zw.mechanism_of(run)
    zw.save_html(both, tmp_path / "both.html")
    assert zw.derived_quantities(both, "forces").sizes["world"] == 4
    with pytest.raises(ShapeError, match="dimension 'trial'"):
        zw.derived_quantities(xr.concat([run, run], "trial", data_vars="all"))
    others = run.assign(mechanism=zw.mechanism_of(run).replace(name="other").to_json())
    mixed = xr.concat([run, others], "world", data_vars="all")
    for refused in (zw.mechanism_of, zw.derived_quantities, lambda x: zw.save(x, tmp_path / "mixed.nc")):
        with pytest.raises(ShapeError, match="'mechanism' holds 2 different"):
            refused(mixed)


@pytest.mark.parametrize("name", ["a\x00", "a\x00b", "a\ud800"])
@pytest.mark.parametrize("suffix", [".nc", ".zarr"])
def test_names_that_no_file_holds_are_refused_by_name(name, suffix, tmp_path):
    if suffix == ".zarr":
        pytest.importorskip("zarr")
    for joint, event in ((name, "e"), ("turn", name)):
        bob = zw.Body("bob", zw.Revolute(joint, axis=(0, 1, 0)), mass=1, com=(0, 0, -1))
        m = zw.Mechanism("m", [bob], frames=[zw.Frame("tip", "bob")])
        found = zw.simulate(m, duration=0.01, progress=False, events={event: lambda t, q, v: q[0] + 1})
        path = tmp_path / f"run{suffix}"
        if event == "a\x00":  # NumPy's texts end before trailing NUL characters
            continue
        with pytest.raises(SimulationError) as error:
            zw.save(found, path)
        assert repr(name) in str(error.value) and "disk" not in str(error.value)
        assert not path.exists()
