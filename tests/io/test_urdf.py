"""URDF files: the parts that their elements become, repairs, and the locations of errors."""

from __future__ import annotations

import math
import warnings
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import zwang as zw
from tests.io.urdfs import INERTIAL, joint, link, loaded, pendulum, robot, written
from zwang.errors import (
    LoadError,
    LoadWarning,
    PlausibilityWarning,
    UnsupportedError,
    ZwangError,
    ZwangWarning,
)
from zwang.io.urdf.read_link import nearest_inertia, rotation_of
from zwang.io.urdf.read_urdf import read_urdf
from zwang.mechanism.constraints import JointCoupling
from zwang.mechanism.force_elements import Damper

AXIS = '<axis xyz="0 1 0"/>'


@pytest.mark.parametrize(
    ("kind", "expected", "nq", "nv"),
    [
        ("revolute", zw.Revolute, 1, 1),
        ("continuous", zw.Revolute, 1, 1),
        ("prismatic", zw.Prismatic, 1, 1),
        ("planar", zw.Planar, 3, 3),
        ("floating", zw.Free, 7, 6),
        ("fixed", zw.Fixed, 0, 0),
    ],
)
def test_each_kind_of_joint(tmp_path: Path, kind: str, expected: type, nq: int, nv: int) -> None:
    m = loaded(tmp_path, pendulum(kind=kind))
    assert type(m.body("arm").joint) is expected
    assert (m.nq, m.nv) == (nq, nv)


@pytest.mark.parametrize(("axis", "is_told"), [("0 0 1", False), ("0 0 -1", True), ("1 0 0", True)])
def test_directions_of_a_planar_joint_that_urdf_does_not_define_are_told(
    tmp_path: Path, axis: str, is_told: bool
) -> None:
    path = written(tmp_path, pendulum(inside=f'<axis xyz="{axis}"/>', kind="planar"))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        m = zw.load(path)
    assert m.joint("shoulder").joint.axis == tuple(map(int, axis.split()))
    assert any("does not define its two directions" in str(w.message) for w in caught) == is_told


def test_numbers_of_a_joint(tmp_path: Path) -> None:
    inside = (
        '<origin xyz="1 2 3" rpy="0 0 1.5707963267948966"/><axis xyz="0 3 4"/>'
        '<limit lower="-1" upper="2" effort="10" velocity="5"/><dynamics damping="0.5" friction="0.25"/>'
    )
    m = loaded(tmp_path, pendulum(inside=inside, kind="revolute"))
    arm, shoulder = m.body("arm"), m.joint("shoulder").joint
    assert arm.position == (1, 2, 3)
    assert arm.orientation == ((0, -1, 0), (1, 0, 0), (0, 0, 1))
    assert shoulder.axis == pytest.approx((0, 0.6, 0.8), rel=1e-15)
    assert shoulder.limits == (-1, 2)
    assert (shoulder.effort_limit, shoulder.velocity_limit, shoulder.friction) == (10, 5, 0.25)
    assert shoulder.actuator_range == (-10, 10)
    assert m.forces == (Damper("shoulder", 0.5),)


def test_the_default_axis_is_x(tmp_path: Path) -> None:
    assert loaded(tmp_path, pendulum(inside="")).joint("shoulder").joint.axis == (1, 0, 0)


@pytest.mark.parametrize("turns", range(-5, 6))
def test_quarter_turns_are_exact(turns: int) -> None:
    for axis in range(3):
        rpy = [0.0, 0.0, 0.0]
        rpy[axis] = turns * math.pi / 2
        R = rotation_of(rpy)
        assert all(type(x) is int for row in R for x in row)
        np.testing.assert_allclose(np.array(R, float), _rotation(rpy), atol=1e-14)


@given(st.lists(st.floats(-7, 7), min_size=3, max_size=3))
def test_rpy_is_roll_then_pitch_then_yaw_about_fixed_axes(rpy: list[float]) -> None:
    np.testing.assert_allclose(np.array(rotation_of(rpy), float), _rotation(rpy), atol=3e-12)


def _rotation(rpy: list[float]) -> np.ndarray:
    turns = []
    for axis, angle in enumerate(rpy):
        i, j = (axis + 1) % 3, (axis + 2) % 3
        R = np.eye(3)
        R[i, i] = R[j, j] = math.cos(angle)
        R[i, j], R[j, i] = -math.sin(angle), math.sin(angle)
        turns.append(R)
    return turns[2] @ turns[1] @ turns[0]


def _quaternion(rpy: list[float]) -> np.ndarray:
    """(x, y, z, w) of the rotation by roll, then pitch, then yaw, from the half angles."""
    (cr, cp, cy), (sr, sp, sy) = np.cos(np.array(rpy) / 2), np.sin(np.array(rpy) / 2)
    return np.array(
        [
            sr * cp * cy - cr * sp * sy,
            cr * sp * cy + sr * cp * sy,
            cr * cp * sy - sr * sp * cy,
            cr * cp * cy + sr * sp * sy,
        ]
    )


def turned(version: str, orientation: str) -> str:
    """A pendulum whose origins of the joint, the inertia and a shape have this orientation."""
    origin = f'<origin xyz="1 2 3" {orientation}/>'
    inertial = INERTIAL.replace('<origin xyz="0 0 -0.25"/>', origin).replace('izz="0.01"', 'izz="0.015"')
    shape = f'<collision>{origin}<geometry><box size="1 2 3"/></geometry></collision>'
    text = pendulum(inertial + shape, origin + AXIS)
    return text.replace("<robot", f'<robot version="{version}"') if version else text


@pytest.mark.parametrize("version", ["1.1", "1.2"])
@pytest.mark.parametrize("rpy", [[0.3, 0.2, -0.7], [math.pi / 2, 0.0, 0.0], [0.0, 0.0, math.pi]])
def test_a_quaternion_is_the_rotation_by_these_angles(tmp_path: Path, version: str, rpy: list[float]) -> None:
    numbers = " ".join(map(repr, (2 * _quaternion(rpy)).tolist()))
    arm = loaded(tmp_path, turned(version, f'quat_xyzw="{numbers}"')).body("arm")
    angles = loaded(tmp_path, turned("", f'rpy="{" ".join(map(repr, rpy))}"')).body("arm")
    np.testing.assert_allclose(np.array(arm.orientation, float), _rotation(rpy), atol=1e-15)
    assert [x for row in arm.orientation for x in row if type(x) is int] == [
        x for row in angles.orientation for x in row if type(x) is int
    ]
    np.testing.assert_allclose(np.array(arm.inertia, float), np.array(angles.inertia, float), atol=1e-16)
    assert arm.geometry[0].orientation == arm.orientation


@pytest.mark.parametrize("size", ["1e-200", "1e200"])
def test_a_quaternion_may_have_any_size(tmp_path: Path, size: str) -> None:
    arm = loaded(tmp_path, turned("1.2", f'quat_xyzw="0 0 {size} {size}"')).body("arm")
    np.testing.assert_allclose(
        np.array(arm.orientation, float), _rotation([0.0, 0.0, math.pi / 2]), atol=1e-15
    )


@pytest.mark.parametrize("version", ["", "1.0", "1"])
def test_a_quaternion_in_a_file_of_a_version_without_them_is_ignored_with_the_remedy(
    tmp_path: Path, version: str
) -> None:
    path = written(tmp_path, turned(version, 'quat_xyzw="1 0 0 1"'))
    with pytest.warns(LoadWarning, match=r'quat_xyzw.*version="1.1"'):
        m = zw.load(path)
    assert m.body("arm").orientation == ((1, 0, 0), (0, 1, 0), (0, 0, 1))


@pytest.mark.parametrize(
    "element",
    [
        '<link name="c"><xacro:box_inertia m="1"/></link>',
        '<link name="c"><inertial><xacro:inertia_of m="1"/></inertial></link>',
        '<xacro:gripper parent="arm"/>',
        '<xacro:if value="true"><link name="c"/></xacro:if>',
        '<link name="c"><x:box_inertia m="1"/></link>',
    ],
)
@pytest.mark.parametrize("strict", [True, False])
def test_xacro_elements_that_stand_for_others_are_errors(tmp_path: Path, element: str, strict: bool) -> None:
    names = '<robot xmlns:xacro="http://www.ros.org/wiki/xacro" xmlns:x="http://ros.org/wiki/xacro"'
    text = pendulum(more=element).replace("<robot", names)
    with pytest.raises(UnsupportedError, match=r"line 5.*convert it to URDF by xacro"):
        loaded(tmp_path, text, strict=strict)
    in_extension = pendulum(more=f"<gazebo>{element}</gazebo>").replace("<robot", names)
    assert len(loaded(tmp_path, in_extension, strict=strict).bodies) == 2


def test_an_inertia_is_rotated_by_its_origin(tmp_path: Path) -> None:
    inertial = (
        '<inertial><origin xyz="1 2 3" rpy="0.3 0.2 -0.7"/><mass value="2"/>'
        '<inertia ixx="0.3" iyy="0.4" izz="0.5" ixy="0.01" ixz="0.02" iyz="0.03"/></inertial>'
    )
    arm = loaded(tmp_path, pendulum(inertial)).body("arm")
    I = np.array([[0.3, 0.01, 0.02], [0.01, 0.4, 0.03], [0.02, 0.03, 0.5]])
    R = _rotation([0.3, 0.2, -0.7])
    assert (arm.mass, arm.com) == (2, (1, 2, 3))
    np.testing.assert_allclose(np.array(arm.inertia, float), R @ I @ R.T, rtol=1e-14)


@pytest.mark.parametrize("tag", ["visual", "collision"])
@pytest.mark.parametrize("strict", [True, False])
def test_a_second_shape_in_a_geometry_is_an_error(tmp_path: Path, tag: str, strict: bool) -> None:
    """No shape is dropped without a word: the other is not that of the link; extensions are no shapes."""
    box, sphere = '<box size="1 1 1"/>', '<sphere radius="3"/>'
    text = pendulum(INERTIAL + f"<{tag}><geometry>{{}}</geometry></{tag}>")
    with pytest.raises(LoadError, match=rf"line 3.*has 2 shapes \(<box>, <sphere>\).*a <{tag}> of its own"):
        loaded(tmp_path, text.format(box + sphere), strict=strict)
    with pytest.raises(LoadError, match="has 3 shapes"):
        loaded(tmp_path, text.format(box + sphere + box), strict=strict)
    for inside in (box, box + "<drake:declare_convex/>", "<drake:declare_convex/>" + box):
        (shape,) = loaded(tmp_path, text.format(inside), strict=strict).body("arm").geometry
        assert isinstance(shape, zw.Box)


def test_bodies_are_in_the_order_of_the_joints_parents_first(tmp_path: Path) -> None:
    text = robot(
        joint("late", "b", "c"),
        joint("side", "base", "z"),
        joint("early", "base", "b"),
        link("c"),
        link("b"),
        link("base"),
        link("z"),
    )
    m = loaded(tmp_path, text)
    assert [j.name for j in m.joints] == ["early", "late", "side"]
    assert [b.name for b in m.bodies] == ["base", "b", "c", "z"]


def test_links_on_fixed_joints_keep_their_frames(tmp_path: Path) -> None:
    tool = link("tool", "") + joint("grip", "arm", "tool", "fixed", '<origin xyz="0 0 -1"/>')
    m = loaded(tmp_path, pendulum(more=tool))
    assert m.nv == 1
    np.testing.assert_allclose(zw.frame_pose(m, [math.pi / 2], "tool").p, [-1, 0, 0], atol=1e-15)


def test_a_floating_base_has_a_root_joint(tmp_path: Path) -> None:
    m = loaded(tmp_path, pendulum(), base="free")
    assert (m.nq, m.nv) == (8, 7)
    assert m.joints[0].name == "root_joint"
    assert m.neutral[:7] == (0, 0, 0, 1, 0, 0, 0)


def test_a_root_named_world_is_the_ground(tmp_path: Path) -> None:
    text = robot(
        link("world", ""), link("base"), joint("bolt", "world", "base", "fixed", '<origin xyz="0 0 1"/>')
    )
    fixed = loaded(tmp_path, text)
    assert [b.name for b in fixed.bodies] == ["base"]
    assert fixed.body("base").position == (0, 0, 1)
    assert fixed.nv == 0


def test_a_root_fixed_to_the_world_floats_only_as_a_repair(tmp_path: Path) -> None:
    text = robot(
        link("world", ""),
        link("base"),
        joint("bolt", "world", "base", "fixed", '<origin xyz="0 0 1" rpy="0 0 .5"/>'),
    )
    with pytest.raises(LoadError, match=r"line \d+.*'bolt' fixes link 'base' to the ground"):
        loaded(tmp_path, text, base="free")
    with pytest.warns(LoadWarning, match="'bolt' fixes link 'base'"):
        free = read_urdf(written(tmp_path, text), base="free", strict=False)
    assert free.nv == 6 and free.home is not None
    np.testing.assert_allclose(free.home, (0, 0, 1, np.cos(0.25), 0, 0, np.sin(0.25)), atol=1e-15)


def test_mimics_are_joint_couplings(tmp_path: Path) -> None:
    more = link("c") + joint(
        "elbow", "arm", "c", inside=AXIS + '<mimic joint="shoulder" multiplier="2" offset="0.5"/>'
    )
    m = loaded(tmp_path, pendulum(more=more))
    assert m.constraints == (JointCoupling("mimic elbow", "elbow", "shoulder", (0.5, 2.0)),)


def test_a_mimic_of_a_fixed_joint_is_fixed_at_its_offset(tmp_path: Path) -> None:
    more = link("c") + joint("elbow", "base", "c", inside=AXIS + '<mimic joint="shoulder" offset="0.5"/>')
    m = loaded(tmp_path, pendulum(kind="fixed", more=more))
    assert m.constraints == (JointCoupling("mimic elbow", "elbow", None, (0.5,)),)


def test_cyclic_mimics_raise(tmp_path: Path) -> None:
    more = link("c") + joint("elbow", "arm", "c", inside=AXIS + '<mimic joint="shoulder"/>')
    text = pendulum(inside=AXIS + '<mimic joint="elbow"/>', more=more)
    with pytest.raises(LoadError, match=r"cycle: .*shoulder"):
        zw.load(written(tmp_path, text))


def test_shapes_and_colours_are_read(tmp_path: Path) -> None:
    arm = INERTIAL + (
        '<visual name="v"><origin xyz="0 0 1"/><geometry><box size="1 2 3"/></geometry>'
        '<material name="red"/></visual>'
        '<collision><geometry><sphere radius="0.5"/></geometry></collision>'
        '<collision name="v"><geometry><cylinder radius="0.1" length="2"/></geometry></collision>'
    )
    more = '<material name="red"><color rgba="1 0 0 1"/></material>'
    ball, tube, box = loaded(tmp_path, pendulum(arm, more=more)).body("arm").geometry
    assert (ball.radius, ball.visual_only) == (0.5, False)
    assert (tube.radius, tube.length, tube.name) == (0.1, 2, "v")
    assert (box.x, box.y, box.z, box.visual_only, box.position) == (1, 2, 3, True, (0, 0, 1))
    assert box.color == (1, 0, 0, 1)
    assert box.name == "v 2"


def test_ignored_elements_are_noted(tmp_path: Path) -> None:
    more = '<transmission name="t"/><gazebo><plugin name="x"/></gazebo><gazebo/>'
    notes = [str(note) for note in loaded(tmp_path, pendulum(more=more)).report.of_kind("ignored")]
    assert any("1 x <transmission>:" in note for note in notes)
    assert any("2 x <gazebo>:" in note for note in notes)


@pytest.mark.parametrize("kind", ["continuous", "planar", "floating"])
def test_limits_of_joints_without_limits_are_noted_and_the_others_kept(tmp_path: Path, kind: str) -> None:
    limit = '<axis xyz="0 1 0"/><limit lower="-1" upper="1" velocity="2" effort="3" jerk="9"/>'
    m = loaded(tmp_path, pendulum(inside=limit, kind=kind))
    joint = m.joints[0].joint
    assert (joint.limits, joint.velocity_limit, joint.effort_limit) == (None, 2, 3)
    notes = [note.what for note in m.report.of_kind("ignored")]
    assert f"1 x lower and upper of <limit>: a {kind} joint has no limits in URDF" in notes
    assert "1 x attribute 'jerk' of <limit>: without effect on the motion" in notes
    plain = loaded(tmp_path, pendulum(inside=limit.replace('lower="-1" upper="1" ', ""), kind=kind))
    assert not any("lower" in note.what for note in plain.report.of_kind("ignored"))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (pendulum(inside=AXIS + '<dynamic damping="5"/>'), ("<dynamic>", "'dynamics'", "line 4")),
        (pendulum(inside=AXIS + '<dynamics dampin="5"/>'), ("'dampin'", "'damping'")),
        (pendulum(INERTIAL.replace("inertial", "inertail")), ("<inertail>", "'inertial'")),
        (pendulum(kind="revolute"), ("limit", "shoulder")),
    ],
)
def test_misspelt_elements_and_attributes_warn(tmp_path: Path, text: str, words: tuple[str, ...]) -> None:
    with pytest.warns(LoadWarning) as caught:
        zw.load(written(tmp_path, text), strict=False)
    messages = "\n".join(str(w.message) for w in caught)
    assert all(word in messages for word in words)


def test_degrees_in_an_origin_warn(tmp_path: Path) -> None:
    with pytest.warns(PlausibilityWarning, match="degrees"):
        zw.load(written(tmp_path, pendulum(inside='<origin rpy="0 0 90"/>' + AXIS)))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (pendulum(INERTIAL.replace('"1"', '"-1"')), ("line 3", "mass", "arm")),
        (pendulum(INERTIAL.replace('"1"', '"1_0"')), ("line 3", "'1_0'", "arm")),
        (pendulum(INERTIAL.replace('"1"', '"\u0661"')), ("line 3", "arm")),
        (pendulum(INERTIAL.replace('"1"', '"1e999"')), ("line 3", "'1e999'")),
        (pendulum(INERTIAL * 2), ("line 3", "2 elements <inertial>", "arm")),
        (
            pendulum(inside=AXIS + '<limit lower="2" upper="1"/>', kind="revolute"),
            ("line 4", "shoulder", "order"),
        ),
        (pendulum(inside=AXIS + '<limit effort="-1"/>'), ("effort", "shoulder", "negative")),
        (pendulum(inside=AXIS + '<dynamics damping="-1"/>'), ("damping", "shoulder", "negative")),
        (pendulum(more=link("alone")), ("alone", "root")),
        (pendulum(more=link("x") + joint("j", "x", "x")), ("connects link 'x' to itself",)),
        (pendulum(more=link("world") + joint("j", "arm", "world")), ("'world'", "ground")),
        (robot('<xacro:include filename="x"/>', link("a")), ("xacro",)),
        (
            pendulum(INERTIAL.replace('value="1"', 'value="1e300"').replace("-0.25", "1e200")),
            ("shoulder", "overflow"),
        ),
        (turned("1.2", 'rpy="0 0 1" quat_xyzw="1 0 0 0"'), ("both rpy and quat_xyzw", "line 3")),
        (turned("1.2", 'quat_xyzw="0 0 0 0"'), ("quat_xyzw", "zero")),
        (turned("1.2", 'quat_xyzw="0 0 1"'), ("quat_xyzw", "4 numbers")),
        ("<robot/>", ("no <link>",)),
        ("<sdf/>", ("SDF",)),
    ],
)
def test_errors_state_location_and_problem(tmp_path: Path, text: str, words: tuple[str, ...]) -> None:
    with pytest.raises(LoadError) as caught:
        zw.load(written(tmp_path, text))
    assert all(word in str(caught.value) for word in words), str(caught.value)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (pendulum(INERTIAL.replace('ixx="0.01"', 'ixx="-0.01"')), "nearest physically consistent inertia"),
        (pendulum(""), "armature"),
        (pendulum(inside=AXIS + '<limit lower="2" upper="1"/>', kind="revolute"), "exchanged"),
        (pendulum(inside=AXIS + '<mimic joint="elbow"/>'), "mimic is omitted"),
        (pendulum(INERTIAL.replace('"1"', '"-1"')), "mass 0"),
        (pendulum(INERTIAL + "<visual><geometry><cone/></geometry></visual>"), "shape is omitted"),
        (pendulum(more=link("alone")), "fixed to the first one"),
    ],
)
def test_repairs_are_in_the_report(tmp_path: Path, text: str, what: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(LoadError, match="strict=False"):
        zw.load(path)
    repaired = loaded(tmp_path, text, strict=False)
    assert any(what in note.what for note in repaired.report.of_kind("repaired"))
    H = zw.mass_matrix(repaired, repaired.neutral)
    assert np.linalg.eigvalsh(H).min() > 0


def test_a_point_mass_on_the_axis_raises(tmp_path: Path) -> None:
    on_axis = (
        '<inertial><mass value="1"/><inertia ixx="0" iyy="0" izz="0" ixy="0" ixz="0" iyz="0"/></inertial>'
    )
    with (
        pytest.warns(LoadWarning, match="point mass"),
        pytest.raises(LoadError, match="inertia about its axis"),
    ):
        zw.load(written(tmp_path, pendulum(on_axis)))
    beside = on_axis.replace("<mass", '<origin xyz="0 0 1"/><mass')
    assert zw.mass_matrix(loaded(tmp_path, pendulum(beside)), [0.0])[0, 0] == 1


@given(st.lists(st.floats(-1, 1), min_size=6, max_size=6))
def test_the_nearest_inertia_is_physically_consistent(numbers: list[float]) -> None:
    xx, yy, zz, xy, xz, yz = numbers
    given_inertia = ((xx, xy, xz), (xy, yy, yz), (xz, yz, zz))
    a, b, c = np.linalg.eigvalsh(np.array(nearest_inertia(given_inertia)))
    assert a > -1e-12
    assert a + b > c - 1e-12
    x, y, z = np.linalg.eigvalsh(np.array(given_inertia))
    if x >= 0 and x + y >= z:
        np.testing.assert_allclose(nearest_inertia(given_inertia), given_inertia, atol=1e-14)


def real_robots() -> list[Path]:
    """The URDF files of example-robot-data, if it is installed."""
    try:
        files = metadata.files("example-robot-data") or ()
    except metadata.PackageNotFoundError:
        pytest.skip("example-robot-data is not installed")
    return [Path(str(file.locate())) for file in files if file.suffix == ".urdf"]


def test_every_real_robot_is_read() -> None:
    """All files of example-robot-data load with strict=False; strictly, only invalid ones raise."""
    files = real_robots()
    assert len(files) > 60
    refused = {True: set(), False: set()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ZwangWarning)
        for strict in (True, False):
            for file in files:
                try:
                    read_urdf(file, strict=strict, meshes=False)
                except LoadError:
                    refused[strict].add(file.name)
    assert refused[False] == {"ur3.urdf"}, "a file without a single link"
    # They have a mimic of an unknown joint, a hand without mass, and a negative inertia.
    assert refused[True] == {"ur3.urdf", "alex_psyonic_hands.urdf", "romeo.urdf", "romeo_laas_small.urdf"}


PLAIN = pendulum(inside='<origin xyz="0 0 1" rpy="0 0 1"/><axis xyz="0 1 0"/><limit lower="-1" upper="1"/>')


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_damaged_text_loads_or_raises(data: st.DataObject, tmp_path: Path) -> None:
    """A file with deletions, duplications or replacements gives a mechanism or an error of zwang."""
    begin = data.draw(st.integers(0, len(PLAIN)))
    end = data.draw(st.integers(begin, min(len(PLAIN), begin + 40)))
    replacement = data.draw(
        st.text(max_size=6) | st.sampled_from([PLAIN[begin:end] * 2, "nan", "-1", "<", '"', "\0", "1e400"])
    )
    path = tmp_path / "damaged.urdf"
    path.write_bytes((PLAIN[:begin] + replacement + PLAIN[end:]).encode("utf-8", "surrogatepass"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ZwangWarning)
        try:
            m = zw.load(path)
        except ZwangError:
            return
    assert np.isfinite(np.array(zw.mass_matrix(m, m.neutral))).all()
