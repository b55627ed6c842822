"""Solver parameters outside their ranges are clipped as in MuJoCo, and the report states it; masks."""

from __future__ import annotations

import re
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
    ("numbers", "messages"),
    [
        (
            'solimp="1.2 1.5 -0.001 0.5 2"',
            "solimp of a geom is (1.2, 1.5, -0.001, 0.5, 2); it is mixed with that of the other geom",
        ),
        ('solimp="0.5 0.9 0.01 3 0.2"', "(0.5, 0.9, 0.01, 3, 0.2); it is mixed"),
        ('solref="0.05 -3"', "solref of a geom is (0.05, -3); (0.02, 1) is used instead"),
        ('solref="-500 2"', "solref of a geom is (-500, 2); (0.02, 1) is used instead"),
        ('solref="-500 0"', ""),
    ],
)
def test_a_sphere_on_the_floor_moves_as_in_mujoco(tmp_path, numbers, messages):
    m, model = both(tmp_path, numbers)
    notes = " ".join(str(note) for note in m.report.of_kind("repaired"))
    assert messages in notes and bool(messages) == bool(notes)
    data = mujoco.MjData(model)
    mujoco.mj_step(model, data, 50)
    run = zw.simulate(m, duration=0.05, progress=False)
    np.testing.assert_allclose(run.q.values[0, -1, 2], data.qpos[2], rtol=0, atol=1e-9)
    np.testing.assert_allclose(run.v.values[0, -1, 2], data.qvel[2], rtol=0, atol=1e-7)


def test_solimp_outside_its_ranges_is_mixed_before_it_is_clipped():
    rng = np.random.default_rng(2)
    low, high = (-1, -1, -0.01, -1, 0), (2, 2, 0.02, 2, 4)
    for _ in range(20):
        first, second = (" ".join(f"{x:.6f}" for x in rng.uniform(low, high)) for _ in "ab")
        text = MODEL.replace("{numbers}", f'solimp="{first}"', 1)
        text = text.format(numbers=f'solimp="{second}" solmix="3"')
        model = mujoco.MjModel.from_xml_string(text)
        data = mujoco.MjData(model)
        mujoco.mj_forward(model, data)
        m = zw.load("ball.xml", text=text)
        found = zw.constrained_dynamics(m, data.qpos, data.qvel, np.zeros(6))
        np.testing.assert_allclose(found.acceleration, data.qacc, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        (
            'friction="-1"',
            "ball.xml, line 2, column 1: friction of <geom> 'floor' is '-1'; friction must not be negative",
        ),
        ('solref="0 0"', "ball.xml, line 3: solref of a surface"),
    ],
)
def test_invalid_contact_attributes_raise(tmp_path, attributes, message):
    with pytest.raises(LoadError, match=re.escape(message)):
        both(tmp_path, attributes)


def test_settings_of_iterations_that_are_not_used_are_noted():
    text = MODEL.format(numbers="").replace("<option ", '<option ls_iterations="7" ccd_tolerance="1e-3" ')
    notes = [str(note) for note in zw.load("ball.xml", text=text).report.of_kind("ignored")]
    assert len(notes) == 1 and "'ls_iterations', 'ccd_tolerance'" in notes[0] and "line 1" in notes[0]
    plain = zw.load("ball.xml", text=MODEL.format(numbers=""))
    assert not plain.report.of_kind("ignored")


@pytest.mark.parametrize("mask", [-(2**31), -2, 2**31 - 1])
def test_masks_of_32_bits_are_written(mask, tmp_path):
    text = f"<mujoco><worldbody><geom size='1' contype='{mask}' conaffinity='{mask}'/></worldbody></mujoco>"
    zw.write_mjcf(zw.load("masks.xml", text=text), tmp_path / "masks.xml")
    found = mujoco.MjModel.from_xml_path(str(tmp_path / "masks.xml"))
    expected = mujoco.MjModel.from_xml_string(text)
    assert found.geom_contype == expected.geom_contype and found.geom_conaffinity == expected.geom_conaffinity
