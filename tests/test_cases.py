"""The reference cases state their source, contain no models of third parties, and equal the results of the
installed version of MuJoCo.
"""

from __future__ import annotations

from importlib import metadata

import mujoco
import numpy as np
import pytest

from tests.cases import FOLDER, case, checksum, model_file, stored
from tests.oracles.mujoco_figures import GYMNASIUM, OURS, STATE, STATES, figures_of

FILES = sorted(path for path in FOLDER.rglob("*.json*"))
ANT = GYMNASIUM["ant"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_case_states_its_source(path):
    found = stored(path.parent.name, path.name.split(".")[0])
    assert found["title"] and len(found["source"]) > 9 and found["parameters"]
    assert not {"xml", "urdf"} & set(found["parameters"]), (
        "the text of a model comes from its file or package"
    )
    assert path.parent.name in (FOLDER / "README.md").read_text(encoding="utf-8")


def test_the_cases_are_small():
    assert len(FILES) > 40
    assert sum(path.stat().st_size for path in FOLDER.rglob("*") if path.is_file()) < 6e6


@pytest.mark.parametrize("name", [*GYMNASIUM, *OURS])
def test_stored_figures_equal_those_of_the_installed_mujoco(name):
    found = case("mujoco_oracle", name)
    model = mujoco.MjModel.from_xml_string(found["parameters"]["xml"])
    for reference in found["reference"][STATES // 2 :: STATES]:  # one state, with both cones
        figures, residual = figures_of(model, reference["cone"], {key: reference[key] for key in STATE})
        assert residual < 1e-13
        assert figures["nefc"] == reference["nefc"] and len(figures["contacts"]) == len(reference["contacts"])
        for key in ("qM", "qfrc_bias", "qfrc_actuator", "qacc", "efc_aref", "efc_R", "efc_force"):
            expected = np.array(reference[key])
            scale = max(1.0, np.abs(expected).max(initial=0))
            np.testing.assert_allclose(figures[key], expected, rtol=0, atol=1e-9 * scale)


def test_another_version_of_a_model_is_rejected_by_name(tmp_path):
    model = {"package": "gymnasium", "version": "0.0", "file": ANT, "sha256": "0" * 64}
    with pytest.raises(LookupError, match=rf"ant\.xml of gymnasium {metadata.version('gymnasium')} is not"):
        model_file(model, tmp_path)
    with pytest.raises(LookupError, match=r"no file nowhere\.xml"):
        model_file(model | {"file": "nowhere.xml"}, tmp_path)
    with pytest.raises(LookupError, match="package zwang-absent is missing"):
        model_file(model | {"package": "zwang-absent"}, tmp_path)


def test_line_endings_do_not_change_a_checksum(tmp_path):
    (tmp_path / "unix").write_bytes(b"<a>\n</a>\n")
    (tmp_path / "windows").write_bytes(b"<a>\r\n</a>\r\n")
    (tmp_path / "other").write_bytes(b"<a>\n</b>\n")
    unix, windows, other = (checksum(tmp_path / name) for name in ("unix", "windows", "other"))
    assert unix == windows != other
