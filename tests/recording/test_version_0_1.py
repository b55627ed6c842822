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
