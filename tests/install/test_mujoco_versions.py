"""MJCF files are read by any supported version of MuJoCo; old or damaged installations raise."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import mujoco
import numpy as np
import pytest

from tests.install.mujocos import LATER, OLD_BITS, OldModel
from zwang.errors import MissingExtraError
from zwang.io.mjcf.mujoco_library import CompiledModel, checked_bindings, flags_of
from zwang.io.mjcf.read.read_mjcf import read_mjcf
from zwang.mechanism.options import DISABLED

MODEL = """<mujoco><worldbody><body><joint name="j" axis="0 1 0"/><geom size=".1"/>
<body pos="0 0 .3"><joint type="ball"/><geom size=".1"/></body></body></worldbody>
<tendon><fixed name="t"><joint joint="j" coef="1"/></fixed></tendon>
<actuator><motor name="m" joint="j"/><motor name="n" joint="j"/></actuator></mujoco>"""
FOLDER = Path(__file__).parents[2]


def test_fields_of_later_versions_have_their_defaults() -> None:
    """Each default has the shape and the values that the newest MuJoCo uses."""
    model = mujoco.MjModel.from_xml_string(MODEL)
    old = CompiledModel(OldModel(model))
    for name in (name for name in LATER if hasattr(model, name)):
        np.testing.assert_array_equal(getattr(old, name), getattr(model, name), err_msg=name)
    with pytest.raises(AttributeError, match="no_such_field"):
        _ = old.no_such_field


def test_option_flags_are_identified_by_name() -> None:
    """Bit 64 is gravity in MuJoCo 3.3.0, and the damper flag in later versions."""
    assert flags_of(OLD_BITS, 64, DISABLED) == ("gravity",)
    assert flags_of(OLD_BITS, 32 + 65536, DISABLED) == ("spring", "damper", "nativeccd")
    for name in ("spring", "gravity", "multiccd", "eulerdamp", "clampctrl"):
        if f"mjDSBL_{name.upper()}" in mujoco.mjtDisableBit.__members__:
            found = read_mjcf("m.xml", text=f'<mujoco><option><flag {name}="disable"/></option></mujoco>')
            assert found.options.disabled == (name,)


@pytest.mark.skipif(
    "mjDSBL_SPRING" not in mujoco.mjtDisableBit.__members__, reason="this MuJoCo has one flag for both"
)
def test_without_springs_and_dampers_there_is_no_passive_force() -> None:
    """MuJoCo then omits gravity compensation, too."""
    text = """<mujoco><option><flag spring="disable" {}/></option><worldbody><body gravcomp="1">
    <joint axis="0 1 0" stiffness="2" springref="20" damping="1"/><geom size=".1" pos=".3 0 0"/></body>
    </worldbody></mujoco>"""
    for flag in ("", 'damper="disable"'):
        model = mujoco.MjModel.from_xml_string(text.format(flag))
        data = mujoco.MjData(model)
        data.qvel[:] = 1
        mujoco.mj_forward(model, data)
        passive = bool(data.qfrc_passive.any())
        assert passive == bool(read_mjcf("m.xml", text=text.format(flag)).forces) == (flag == "")


@pytest.mark.parametrize("version", ["3.2.7", "2.3.0"])
def test_an_old_version_raises_with_the_remedy(version: str) -> None:
    with pytest.raises(
        MissingExtraError, match=rf"needs MuJoCo 3.3 or newer, and version {version}.*mujoco>=3.3"
    ):
        checked_bindings(SimpleNamespace(__version__=version, MjSpec=1, MjModel=1, mj_versionString=1))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no MjSpec, MjModel, mj_versionString"),
        ("import mujoco._specs", "No module named 'mujoco._specs'"),
        ("raise OSError('libmujoco.so.4.0.0: cannot open')", "libmujoco.so.4.0.0: cannot open"),
        ("__version__ = '3.17.0'; MjModel = 1", "no MjSpec, mj_versionString"),
    ],
    ids=["emptied", "core removed", "library removed", "half replaced"],
)
def test_a_damaged_installation_raises_with_the_remedy(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "mujoco").mkdir()
    (tmp_path / "mujoco" / "__init__.py").write_text(text)
    model = tmp_path / "model.xml"
    model.write_text("<mujoco/>")
    program = (
        f"import zwang as zw\ntry:\n    zw.load({str(model)!r})\nexcept zw.errors.MissingExtraError as "
        f"error:\n    print(error)"
    )
    completed = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(FOLDER / "src")])},
        capture_output=True,
        text=True,
    )
    assert completed.returncode == 0, completed.stderr
    sentence = completed.stdout.strip()
    assert words in sentence and "\n" not in sentence
    assert "pip uninstall --yes mujoco mujoco-core mujoco-studio && pip install mujoco" in sentence
