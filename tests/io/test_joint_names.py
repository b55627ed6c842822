"""Coordinates and velocities have unique names, so that a value by name is that of one of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest

import zwang as zw
from tests.io.urdfs import joint, link, loaded, robot
from zwang.errors import DescriptionError, LoadWarning

MJCF = """<mujoco>
<worldbody>
  <body name="a"><freejoint name="r"/><geom size=".1"/></body>
  <body name="b" pos="1 0 0"><joint name="r.{part}" axis="0 1 0"/><geom size=".1" pos=".1 0 0"/>
    <body name="c" pos=".2 0 0"><joint name="r.{part} (joint)" axis="1 0 0"/>
      <geom size=".1" pos="0 .1 0"/></body></body>
</worldbody>
<equality><joint joint1="r.{part}" joint2="r.{part} (joint)" active="true"/></equality>
<actuator><position name="servo" joint="r.{part}" kp="3"/></actuator>
<sensor><jointpos joint="r.{part}"/></sensor>
</mujoco>"""


@pytest.mark.parametrize("part", ["x", "qw", "vx", "wy"])
def test_a_joint_of_a_file_with_the_name_of_a_coordinate_gets_another_one(part: str) -> None:
    """The motion, the coupling, the servo and the sensor of the renamed joint are those of MuJoCo."""
    text, name = MJCF.format(part=part), f"r.{part} (joint) 2"
    m = zw.load("model.xml", text=text)
    assert [index.name for index in m.joints] == ["r", name, f"r.{part} (joint)"]
    (note,) = [note for note in m.report.notes if note.kind == "repaired"]
    assert (f"joint 'r.{part}'" in note.what, "'r'" in note.what, name in note.what) == (True, True, True)
    assert note.where == "model.xml, line 4"
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    data.qpos[7], data.ctrl[0] = 0.3, 0.7
    worlds = zw.Worlds(m, 1)
    worlds.reset(q={name: 0.3})
    np.testing.assert_array_equal(worlds.q[0], data.qpos)
    mujoco.mj_forward(model, data)
    assert zw.sensors(m, data.qpos, data.qvel)[m.sensors[0].name] == pytest.approx(data.sensordata)
    run = zw.simulate(m, {name: 0.3}, control={"servo": 0.7}, duration=0.01, progress=False)
    for _ in range(round(0.01 / model.opt.timestep)):
        mujoco.mj_step(model, data)
    np.testing.assert_allclose(run.q.values[0, -1], data.qpos, atol=1e-9)


def test_values_by_the_name_in_a_file_are_those_of_the_free_joint() -> None:
    """`zw.simulate` and `zw.Worlds` set the same coordinate and velocity by one name."""
    states: tuple[tuple[str, dict[str, Any]], ...] = (
        ("x", {"q": {"r.x": 0.3}}),
        ("vx", {"v": {"r.vx": 0.3}}),
    )
    for part, state in states:
        m = zw.load("model.xml", text=MJCF.format(part=part))
        worlds = zw.Worlds(m, 1)
        worlds.reset(**state)
        run = zw.simulate(m, state.get("q"), state.get("v"), duration=0.002, progress=False)
        np.testing.assert_array_equal(run.q.values[0, 0], worlds.q[0])
        np.testing.assert_array_equal(run.v.values[0, 0], worlds.v[0])
        assert np.count_nonzero(worlds.q[0] - np.array(m.neutral)) + np.count_nonzero(worlds.v[0]) == 1


def test_a_joint_of_a_urdf_with_the_name_of_a_coordinate_gets_another_one(tmp_path: Path) -> None:
    mimic = '<axis xyz="0 1 0"/><mimic joint="base.x" multiplier="2"/>'
    text = robot(
        link("w"),
        *(link(name) for name in "abc"),
        joint("base", "w", "a", "planar", '<axis xyz="0 0 1"/>'),
        joint("base.x", "a", "b", inside='<axis xyz="0 1 0"/><dynamics damping=".5"/>'),
        joint("follower", "b", "c", inside=mimic),
    )
    m = loaded(tmp_path, text)
    names = ("base.x", "base.y", "base.angle", "base.x (joint)", "follower")
    assert m.coordinate_names == m.speed_names == names
    assert [(c.joint, c.to) for c in m.constraints] == [("follower", "base.x (joint)")]
    assert m.forces == (zw.Damper("base.x (joint)", 0.5),)
    (tmp_path / "model.urdf").write_text(text)
    with pytest.warns(LoadWarning, match=r"line 7.*joint 'base\.x' has the name of a coordinate.*'base'"):
        zw.load(tmp_path / "model.urdf")


def test_the_root_joint_of_a_urdf_gets_a_name_that_is_free(tmp_path: Path) -> None:
    m = loaded(tmp_path, robot(link("a"), link("b"), joint("root_joint.qx", "a", "b")), base="free")
    assert [index.name for index in m.joints] == ["root_joint_", "root_joint.qx"]


@pytest.mark.parametrize("names", [("p", "p.x"), ("p", "p.angle")])
def test_a_joint_with_the_name_of_a_coordinate_is_an_error(names: tuple[str, str]) -> None:
    planar = zw.Body("a", zw.Planar(names[0], axis=(0, 0, 1)), mass=1, inertia=(1, 1, 1))
    hinge = zw.Body("b", zw.Revolute(names[1], axis=(0, 1, 0)), mass=1, inertia=(1, 1, 1))
    for bodies in ([planar, hinge], [hinge, planar]):
        with pytest.raises(DescriptionError, match=rf"revolute joint '{names[1]}'.*planar joint 'p'.*rename"):
            zw.Mechanism("m", bodies)
    ball = zw.Body("b", zw.Ball(names[1]), mass=1, inertia=(1, 1, 1))  # its coordinates are p.x.qw, ...
    assert len(set(zw.Mechanism("m", [planar, ball]).coordinate_names)) == 7
