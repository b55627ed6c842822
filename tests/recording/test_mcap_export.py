"""MCAP files: what another reader finds in them, against the recording and the kinematics."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest

import zwang as zw
from tests.mechanisms import random_mechanism
from zwang.algebra.rotations import from_quaternion
from zwang.errors import MissingExtraError, ShapeError, SimulationError, SimulationWarning
from zwang.mechanism.samples import FURUTA, furuta
from zwang.recording.mcap_export import SCHEMAS


def simulated(m, q0=None, **settings):
    return zw.simulate(m, q0, duration=0.02, step=0.005, progress=False, compiled=False, **settings)


@pytest.fixture
def read(tmp_path):
    """Writes a recording and gives (schema, topic, time [ns], content) of every message, in file order."""
    reader = pytest.importorskip("mcap.reader")

    def messages(run, name="run.mcap"):
        zw.save(run, tmp_path / name)
        with open(tmp_path / name, "rb") as file:
            found = reader.make_reader(file, validate_crcs=True).iter_messages(log_time_order=False)
            return [(s.name, c.topic, m.log_time, json.loads(m.data)) for s, c, m in found]

    return messages


def matches(schema, value) -> bool:
    """Whether a value has the types and the required properties of a JSON schema."""
    match schema.get("type"):
        case "object":
            parts = schema.get("properties", {})
            return set(schema.get("required", ())) <= set(value) <= set(parts) and all(
                matches(parts[name], part) for name, part in value.items()
            )
        case "array":
            return all(matches(schema["items"], item) for item in value)
        case "integer":
            return isinstance(value, int) and value >= schema.get("minimum", value)
        case "number":
            return isinstance(value, int | float)
    return isinstance(value, str)


def poses_of(transforms):
    """The world pose (R, p) of every frame, by composing the transforms of the tree."""
    table = {t["child_frame_id"]: t for t in transforms}

    def pose(name):
        if name == "world":
            return np.eye(3), np.zeros(3)
        t = table[name]
        R, p = pose(t["parent_frame_id"])
        d = np.array([t["translation"][x] for x in "xyz"])
        q = np.array([t["rotation"][x] for x in "wxyz"])
        return R @ from_quaternion(q), p + R @ d

    return {name: pose(name) for name in table}


def test_joint_states_and_transforms_are_those_of_the_recording(read):
    m = random_mechanism(4)
    run = simulated(m)
    found = read(run)
    schemas = {schema["title"]: schema for schema in SCHEMAS}
    assert all(matches(schemas[schema], content) for schema, _, _, content in found)
    times = [time for *_, time, _ in found]
    assert times == sorted(times)
    static = [t for _, topic, _, content in found if topic == "/tf_static" for t in content["transforms"]]
    states = [c for _, topic, _, c in found if topic == "/joint_states"]
    moving = [c for _, topic, _, c in found if topic == "/tf"]
    assert len(states) == len(moving) == run.sizes["time"]
    for k, (state, transforms) in enumerate(zip(states, moving, strict=True)):
        stamp = state["timestamp"]
        assert stamp["sec"] + stamp["nsec"] * 1e-9 == pytest.approx(float(run.time[k]), abs=1e-9)
        for joint in state["joints"]:
            name = joint["name"]
            assert joint["position"] == float(run.q.sel(coordinate=name)[0, k])
            assert joint["velocity"] == float(run.v.sel(speed=name)[0, k])
            assert joint["effort"] == float(run.tau.sel(speed=name)[0, k])
        poses = poses_of([*transforms["transforms"], *static])
        assert set(poses) == {b.name for b in m.bodies} | {f.name for f in m.frames}
        for name, (R, p) in poses.items():
            expected = zw.frame_pose(m, run.q.values[0, k], name)
            assert np.abs(R - expected.R).max() < 1e-12 and np.abs(p - expected.p).max() < 1e-12


def test_each_world_has_its_topics_its_frames_and_its_parameters(read):
    numbers = {name: value for name, value in FURUTA.items() if name != "L_r"}
    run = simulated(furuta(), {"alpha": [0.1, 0.2]}, params={**numbers, "L_r": [0.1, 0.3]})
    found = read(run)
    assert {topic for _, topic, *_ in found} == {
        f"/world_{k}/{topic}" for k in (0, 1) for topic in ("joint_states", "tf")
    }
    lengths = {}
    for _, topic, _, content in found:
        for t in content.get("transforms", ()) if topic.endswith("/tf") else ():
            if t["child_frame_id"].endswith("/pendulum"):
                lengths[t["parent_frame_id"]] = t["translation"]["x"]
    assert lengths == pytest.approx({"world_0/arm": 0.1, "world_1/arm": 0.3})
    one = read(run.isel(world=[1]), "one.mcap")
    assert {topic for _, topic, *_ in one} == {"/joint_states", "/tf"}


def test_states_after_a_failure_are_omitted(read):
    run = simulated(furuta(**FURUTA))
    run["q"][:, 2:] = np.nan
    assert max(time for *_, time, _ in read(run)) == round(float(run.time[1]) * 1e9)


def test_a_control_that_fails_leaves_out_its_effort(read):
    body = zw.Body("cart", zw.Prismatic("x"), mass=2.0, inertia=(1, 1, 1))
    m = zw.Mechanism("cart", [body], forces=[zw.Motor("push", "x")])
    with pytest.warns(SimulationWarning, match="the control is not a finite number"):
        run = simulated(m, integrator="rk4", control=lambda t, q, v: {"push": 1.0 if t < 0.008 else np.nan})
    assert run.status.values.any()
    states = [content["joints"][0] for _, topic, _, content in read(run) if topic == "/joint_states"]
    assert states[0]["effort"] == 1.0 and all(np.isfinite(list(x.values())[1:]).all() for x in states)
    assert "effort" not in states[-1]


def test_a_recording_of_one_world_without_its_dimension_is_refused(tmp_path):
    pytest.importorskip("mcap")
    with pytest.raises(ShapeError, match=r"isel\(world=\[0\]\)"):
        zw.save(simulated(furuta(**FURUTA)).isel(world=0), tmp_path / "a.mcap")


@pytest.mark.parametrize(
    ("times", "named"),
    [
        ([-0.5, 0, 0.5], r"time\[0\] is -0\.5 s"),
        ([0, -1e-9, 1], r"time\[1\] is -1e-09 s"),
        ([0, 1, 2**64 * 1e-9], r"time\[2\] is 18446744073\.\d+ s"),
    ],
)
def test_times_outside_the_range_of_the_format_are_shifted_into_it(read, tmp_path, times, named):
    """That of an unsigned integer of 64 bits, in nanoseconds; the advice of the error is followed."""
    run = simulated(furuta(**FURUTA)).isel(time=[0, 1, 2]).assign_coords(time=times)
    (tmp_path / "run.mcap").write_bytes(b"earlier")
    with pytest.raises(SimulationError, match=f"{named}; .* from 0 to 1.84e\\+10 s: shift the times"):
        zw.save(run, tmp_path / "run.mcap")
    assert (tmp_path / "run.mcap").read_bytes() == b"earlier"
    if min(times) < 0:
        found = read(run.assign_coords(time=run.time - run.time.min()))
        expected = [round((t - min(times)) * 1e9) for t in times]
        assert sorted({time for _, _, time, _ in found}) == sorted(expected)


def test_the_largest_time_of_the_format_is_written(read):
    last = np.nextafter(2**64 * 1e-9, 0)
    found = read(simulated(furuta(**FURUTA)).isel(time=[0, 1]).assign_coords(time=[-1e-10, last]))
    assert [{time for *_, time, _ in found}] == [{0, round(last * 1e9)}]


@pytest.mark.parametrize("time", [np.nan, np.inf])
def test_times_that_are_not_finite_are_named(tmp_path, time):
    run = simulated(furuta(**FURUTA)).isel(time=[0, 1]).assign_coords(time=[0, time])
    with pytest.raises(SimulationError, match=rf"time\[1\] is {time} s; .*finite times"):
        zw.save(run, tmp_path / "run.mcap")
    assert not list(tmp_path.iterdir())


def test_without_mcap_the_fix_is_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "mcap", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'zwang\[mcap\]'"):
        zw.save(simulated(furuta(**FURUTA)), tmp_path / "a.mcap")
    assert not list(tmp_path.iterdir())


def test_the_error_for_another_ending_names_the_formats(tmp_path):
    with pytest.raises(SimulationError, match=r"\.nc.*\.zarr.*\.mcap"):
        zw.save(simulated(furuta(**FURUTA)), tmp_path / "a.csv")
