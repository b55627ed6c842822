"""Spatial tendons in MJCF files that zwang writes, and the geoms around which they wrap."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np
import pytest

import zwang as zw
from tests.io.round_trip import assert_equal, close, loaded, rewritten
from zwang.algebra.rotations import from_rpy


def pulley(*tendons: zw.Tendon) -> zw.Mechanism:
    """A pendulum whose tendons wrap around one frame of the world."""
    b = zw.Body("b", zw.Revolute("j", axis=(0, 1, 0)), mass=1, com=(0, 0, -0.5), inertia=(0.1, 0.1, 0.1))
    hub = zw.Frame("hub (wrapped)", "world", (0, 0, 0), from_rpy(np.pi / 2, 0, 0))
    ends = [zw.Frame("a", "world", (-0.5, 0, -0.05)), zw.Frame("e", "b", (0.5, 0, -0.05))]
    return zw.Mechanism("pulley", [b], frames=[hub, *ends], tendons=tendons)


def around_hub(name: str, radius: float, kind: Any = "cylinder"):
    return zw.Tendon(name, path=("a", "hub (wrapped)", "e"), wraps=(zw.Wrap(1, radius, kind),))


def test_tendons_around_one_frame_have_their_own_radii_and_shapes(tmp_path):
    tendons = around_hub("small", 0.1), around_hub("large", 0.25), around_hub("ball", 0.2, "sphere")
    tendons = *tendons, around_hub("also", 0.1)
    m = pulley(*tendons).replace(sensors=[zw.TendonSensor(t.name, "position", t.name) for t in tendons])
    n = rewritten(m, tmp_path)
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "written.xml"))
    assert model.ngeom == 3
    data = mujoco.MjData(model)
    data.qpos[:] = 0.2
    mujoco.mj_forward(model, data)
    lengths = [[zw.sensors(x, [0.2], [0.0])[t.name][0] for t in tendons] for x in (m, n)]
    assert len({*np.round(lengths[0], 9)}) == 3
    close(lengths[1], lengths[0], "lengths")
    close(data.ten_length, lengths[0], "lengths in MuJoCo")


@pytest.mark.parametrize("kind", ["cylinder", "sphere"])
def test_the_frame_of_a_wrapping_geom_is_a_site_for_other_elements(kind, tmp_path):
    frame = "hub (wrapped)"
    users = {
        "sensors": [zw.FrameSensor("p", "position", frame)],
        "tendons": [around_hub("t", 0.1, kind), zw.Tendon("u", path=("a", frame, "e"), stiffness=1)],
        "forces": [zw.Actuator("f", frame=frame, gear=(1, 0, 0, 0, 0, 0), reference="e")],
        "constraints": [zw.Connect("c", ("world", (0, 0, 0)), ("b", (0, 0, 0)), zw.Softness())],
    }
    m = pulley(around_hub("t", 0.1, kind))
    (tmp_path / "plain").mkdir()
    assert len(rewritten(m, tmp_path / "plain").frames) == 3
    for field, value in users.items():
        changed = m.replace(**{field: value})
        n = rewritten(changed, tmp_path)
        assert_equal(changed, n)
        assert [f.name for f in n.frames if f.body == "world"] == [frame, "a"]
        assert rewritten(n, tmp_path).frames == n.frames


def test_the_frame_of_a_wrapping_geom_has_no_name_of_a_site_elsewhere(tmp_path):
    (tmp_path / "hub.xml").write_text(
        """<mujoco><worldbody>
        <geom name="hub" type="sphere" size="0.1"/><site name="hub (wrapped)" pos="1 0 0"/>
        <site name="a" pos="-0.5 0 0.3"/>
        <body><joint name="j" axis="0 1 0"/><geom size="0.1" mass="1"/><site name="e" pos="0.3 0 -0.6"/>
        </body></worldbody><tendon><spatial name="t">
        <site site="a"/><geom geom="hub"/><site site="e"/></spatial></tendon></mujoco>"""
    )
    m = loaded(tmp_path / "hub.xml")
    assert m.tendons[0].path == ("a", "hub (wrapped) 2", "e")
    assert {f.name: f.position for f in m.frames}["hub (wrapped) 2"] == (0, 0, 0)
    n = rewritten(m, tmp_path)
    assert_equal(m, n)
    assert len(rewritten(n, tmp_path).frames) == len(n.frames)
