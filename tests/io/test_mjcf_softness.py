"""Numbers of softness outside MuJoCo's ranges mean what MuJoCo's engine takes them for, and the report says so."""

from __future__ import annotations

from pathlib import Path

import mujoco
import numpy as np
import pytest

import zwang as zw
from zwang.errors import LoadError

MODEL = """<mujoco><option timestep="0.001"/><worldbody>
<geom name="floor" type="plane" size="1 1 1" {numbers}/>
<body pos="0 0 0.095"><freejoint/><geom name="ball" type="sphere" size="0.1" mass="1" {numbers}/></body>
</worldbody></mujoco>"""


def both(tmp_path: Path, numbers: str) -> tuple[zw.Mechanism, mujoco.MjModel]:
    text = MODEL.format(numbers=numbers)
    (tmp_path / "ball.xml").write_text(text)
    return zw.load(tmp_path / "ball.xml"), mujoco.MjModel.from_xml_string(text)


@pytest.mark.parametrize(
    ("numbers", "said"),
    [
        ('solimp="1.2 1.5 -0.001 0.5 2"', "solimp of a geom is (1.2, 1.5, -0.001, 0.5, 2); it is taken as (1, 1, 0, 0.5, 2)"),
        ('solimp="0.5 0.9 0.01 3 0.2"', "it is taken as (0.5, 0.9, 0.01, 1, 1)"),
        ('solref="0.05 -3"', "solref of a geom is (0.05, -3); it is taken as (0.02, 1)"),
        ('solref="-500 2"', "solref of a geom is (-500, 2); it is taken as (0.02, 1)"),
        ('solref="-500 0"', ""),
    ],
)  # fmt: skip
def test_a_ball_on_the_floor_moves_as_in_mujoco(tmp_path, numbers, said):
    m, model = both(tmp_path, numbers)
    notes = " ".join(str(note) for note in m.report.of_kind("repaired"))
    assert said in notes and bool(said) == bool(notes)
    data = mujoco.MjData(model)
    mujoco.mj_step(model, data, 50)
    run = zw.simulate(m, duration=0.05, progress=False)
    np.testing.assert_allclose(run.q.values[0, -1, 2], data.qpos[2], rtol=0, atol=1e-9)
    np.testing.assert_allclose(run.v.values[0, -1, 2], data.qvel[2], rtol=0, atol=1e-7)


@pytest.mark.parametrize(("numbers", "named"), [('friction="-1"', "friction"), ('solref="0 0"', "solref")])
def test_numbers_without_a_meaning_are_refused(tmp_path, numbers, named):
    with pytest.raises(LoadError, match=rf"ball\.xml, line 3: .*{named} of a surface"):
        both(tmp_path, numbers)
