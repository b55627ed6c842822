"""Recordings of version 0.1, with its names of variables and attributes, can be opened and processed."""

from __future__ import annotations

import numpy as np
import pytest

import zwang as zw
from zwang.mechanism.samples import four_bar

OLD_VARIABLES = {
    "failure_reason": "stop_cause",
    "termination_time": "stop_time",
    "generalised_constraint_force": "constraint_effort",
    "constraint_violation": "constraint_gap",
    "constraint_velocity_residual": "constraint_miss",
}
OLD_ATTRIBUTES = {"stabilization": "drift", "coordinate_reduction": "embedding"}


def recording_of_version_0_1(path, stabilization: str):
    """A recording as version 0.1 wrote it: without the names that this version has added."""
    m = four_bar()
    record = {"constraints": True, "violations": True}
    q, v = zw.assemble(m, m.home, [1.0, 0, 0])
    run = zw.simulate(
        m, q, v, duration=0.02, step=0.01, stabilization=stabilization, record=record, progress=False
    )
    old = run.drop_vars(list(OLD_VARIABLES))
    for name in OLD_ATTRIBUTES:
        del old.attrs[name]
    zw.save(old, path)
    return run


@pytest.mark.parametrize("stabilization", ["projection", "baumgarte"])
def test_a_recording_of_version_0_1_gets_the_current_names(tmp_path, stabilization):
    run = recording_of_version_0_1(tmp_path / "old.nc", stabilization)
    opened = zw.open_run(tmp_path / "old.nc")
    for new, old in OLD_VARIABLES.items():
        np.testing.assert_array_equal(opened[new], opened[old])
    assert opened.attrs["stabilization"] == stabilization == run.attrs["stabilization"]
    assert opened.attrs["coordinate_reduction"] == "none"
    assert zw.mechanism_of(opened) == zw.mechanism_of(run)
    assert "zwang" in zw.derived_quantities(opened, "zwang")


LABELS = {
    "force_unit": "effort_unit",
    "point_force": "acting",
    "point_force_kind": "acting_kind",
    "point_force_body": "acting_on",
    "point_force_other_body": "acting_from",
}


def recording_with_forces():
    """A box that lies on the ground, with its contact forces."""
    box = zw.Body("box", zw.Free("f"), mass=2, inertia=(0.1, 0.1, 0.1), geometry=[zw.Box(0.4, 0.4, 0.4)])
    m = zw.Mechanism("crate", [box], geometry=[zw.Plane()])
    record = {"forces": True, "constraints": True}
    return zw.simulate(m, [0, 0, 0.2, 1, 0, 0, 0], duration=0.05, record=record, progress=False)


def test_labels_have_both_names():
    run = recording_with_forces()
    assert run.sizes["point_force"] == 4 and "acting" not in run.dims
    for new, old in LABELS.items():
        np.testing.assert_array_equal(run[new], run[old])


def test_a_recording_of_version_0_1_gets_the_current_labels(tmp_path):
    """In version 0.1 the dimension of the forces was `acting`."""
    run = recording_with_forces()
    old = run.drop_vars(LABELS.values()).rename({new: old for new, old in LABELS.items()})
    assert old.force.dims == ("world", "time", "acting", "axis")
    zw.save(old, tmp_path / "old.nc")
    opened = zw.open_run(tmp_path / "old.nc")
    for new, name in LABELS.items():
        np.testing.assert_array_equal(opened[new], run[new])
        np.testing.assert_array_equal(opened[name], run[new])
    name = str(run.point_force.values[0])
    np.testing.assert_array_equal(opened.force.sel(point_force=name), run.force.sel(point_force=name))
    again = zw.derived_quantities(opened, "forces")
    np.testing.assert_allclose(again.force, run.force, atol=1e-6)


def test_the_part_of_generalised_forces_is_found_by_its_old_name():
    m = zw.Mechanism(bodies=[zw.Body("b", joint=zw.Revolute("j", axis=(0, 1, 0)), mass=1, com=(0, 0, -0.5))])
    parts = zw.zwang_by_body(m, [0.3], [1.0], [2.0], [0.5])
    with pytest.warns(DeprecationWarning, match="generalised forces"):
        assert parts["efforts"] == parts["generalised forces"] == -1.0
    assert list(parts) == ["b", "generalised forces"]
    with pytest.raises(KeyError, match="elbow"):
        parts["elbow"]


def test_old_argument_names_still_work():
    m = zw.Mechanism(bodies=[zw.Body("b", joint=zw.Revolute("j", axis=(0, 1, 0)), mass=1, com=(0, 0, -0.5))])
    with pytest.warns(DeprecationWarning, match="stabilization"):
        old = zw.simulate(m, duration=0.02, step=0.01, drift="stabilisation", progress=False)
    with pytest.warns(DeprecationWarning, match="coordinate_reduction"):
        zw.simulate(m, duration=0.02, step=0.01, embedding=False, progress=False)
    assert old.attrs["stabilization"] == "baumgarte"
    with pytest.warns(DeprecationWarning, match="violations"):
        run = zw.simulate(m, duration=0.02, step=0.01, record={"gaps": True}, progress=False)
    with pytest.warns(DeprecationWarning, match="violations"):
        zw.derived_quantities(run, "gaps")
    with pytest.raises(TypeError, match="both"):
        zw.simulate(m, duration=0.02, drift="projection", stabilization="projection")
