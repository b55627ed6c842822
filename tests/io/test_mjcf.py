"""MJCF files: supported features, unsupported features, messages and malicious files."""

import os
import warnings

import mujoco
import numpy as np
import pytest

import zwang as zw
from tests.work import call_count
from zwang.errors import DescriptionError, LoadError, PlausibilityWarning, UnsupportedError
from zwang.io.mjcf.read.read_mjcf import read_mjcf
from zwang.mechanism.constraints import Connect, JointCoupling, Weld
from zwang.mechanism.contact_pairs import ContactExclude, ContactPair
from zwang.mechanism.force_elements import Actuator, Damper, GravityCompensation, Spring
from zwang.mechanism.geometry import Box, Capsule, Cylinder, Ellipsoid, Mesh, Plane, Sphere
from zwang.mechanism.joints import Ball, Free, Prismatic, Revolute
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.tendon_elements import TendonCoupling

ARM = (
    '<body name="arm"><joint name="shoulder" axis="0 1 0" {joint}/>'
    '<geom name="g" size=".1" {geom}/>{inside}</body>'
)


def model(world="", *, before="", after="", joint="", geom="", inside=""):
    arm = ARM.format(joint=joint, geom=geom, inside=inside)
    return f"<mujoco model='test'>\n{before}\n<worldbody>\n{arm}{world}\n</worldbody>\n{after}\n</mujoco>"


def read(text, folder="", **options):
    return read_mjcf(os.path.join(folder, "test.xml"), text=text, **options)


# ----------------------------------------------------------------------------------------- supported features


def test_joints_of_every_kind():
    m = read(
        """<mujoco><compiler angle="radian"/><worldbody>
        <body name="a" pos="1 2 3"><freejoint name="free"/><geom size="1"/>
          <body name="b"><joint name="ball" type="ball" range="0 2" pos=".1 0 0"/><geom size="1"/>
            <body name="c"><joint name="slide" type="slide" axis="3 0 0" range="-1 2" ref=".5"/>
              <joint name="hinge" axis="0 3 4" armature=".1" frictionloss=".2" margin=".01"
                solreflimit=".1 .9"
                solimpfriction=".8 .9 .01 .4 3" actuatorfrcrange="-5 5"/><geom size="1"/></body></body></body>
        </worldbody></mujoco>"""
    )
    free, ball, slide, hinge = (j.joint for j in m.joints)
    assert isinstance(free, Free) and isinstance(ball, Ball)
    assert isinstance(slide, Prismatic) and isinstance(hinge, Revolute)
    assert ball.limits == (0, 2) and ball.position == (0.1, 0, 0)
    assert slide.axis == (1, 0, 0) and slide.limits == (-1, 2) and slide.reference == 0.5
    assert hinge.axis == (0, 0.6, 0.8) and hinge.armature == 0.1 and hinge.friction == 0.2
    assert hinge.limit_softness.solref == (0.1, 0.9) and hinge.limit_softness.margin == 0.01
    assert hinge.friction_softness.solimp == (0.8, 0.9, 0.01, 0.4, 3) and hinge.actuator_range == (-5, 5)
    assert m.home == (1, 2, 3, 1, 0, 0, 0, 1, 0, 0, 0, 0.5, 0)
    assert m.body("a").position == (0, 0, 0)  # the coordinates of the free joint are the pose


def test_shapes_have_full_sizes_and_surfaces():
    m = read(
        """<mujoco><asset><mesh name="m" vertex="0 0 0 1 0 0 0 1 0 0 0 1"/></asset><worldbody>
        <geom type="plane" size="1 1 1" friction="2 .1 .2" condim="4" priority="3" margin=".1" gap=".2"
          solmix="2"
          contype="3" conaffinity="5" solref="-100 -10" solimp=".1 .2 .3 .4 5" group="2" name="p"/>
        <body><freejoint/><geom type="sphere" size="1"/><geom type="capsule" size="1 2"/>
        <geom type="cylinder" size="1 2"/>
          <geom type="box" size="1 2 3"/><geom type="ellipsoid" size="1 2 3"/><geom type="mesh" mesh="m"/>
          <geom type="capsule" fromto="0 0 0 0 0 1" size=".1"/></body></worldbody></mujoco>"""
    )
    (plane,) = m.geometry
    s = plane.surface
    assert isinstance(plane, Plane) and plane.name == "p"
    assert (s.friction, s.condim, s.priority, s.margin, s.gap, s.solmix) == ((2, 0.1, 0.2), 4, 3, 0.1, 0.2, 2)
    assert (s.contype, s.conaffinity, s.solref, s.solimp, s.group) == (
        3,
        5,
        (-100, -10),
        (0.1, 0.2, 0.3, 0.4, 5),
        2,
    )
    sphere, capsule, cylinder, box, ellipsoid, mesh, second = m.bodies[0].geometry
    assert isinstance(sphere, Sphere) and sphere.radius == 1
    assert isinstance(capsule, Capsule) and (capsule.radius, capsule.length) == (1, 4)
    assert isinstance(cylinder, Cylinder) and (cylinder.radius, cylinder.length) == (1, 4)
    assert isinstance(box, Box) and (box.x, box.y, box.z) == (2, 4, 6)
    assert isinstance(ellipsoid, Ellipsoid) and (ellipsoid.x, ellipsoid.y, ellipsoid.z) == (1, 2, 3)
    assert isinstance(mesh, Mesh) and len(mesh.vertices) == 4 and len(mesh.faces) == 4
    assert second.length == 1 and second.position == (0, 0, 0.5)


def test_defaults_classes_frames_and_replicates_follow_mujoco():
    m = read(
        """<mujoco><default><default class="c"><joint damping="3"/><geom size=".3"/></default></default>
        <worldbody>
        <frame pos="0 0 1"><replicate count="3" offset="1 0 0" sep="_"><body name="b" childclass="c">
        <joint name="j"/>
        <geom/></body></replicate></frame></worldbody></mujoco>"""
    )
    assert [body.name for body in m.bodies] == ["b_0", "b_1", "b_2"]
    assert [body.position for body in m.bodies] == [(0, 0, 1), (1, 0, 1), (2, 0, 1)]
    assert [f.coefficient for f in m.forces if isinstance(f, Damper)] == [3, 3, 3]
    assert m.bodies[0].geometry[0].radius == 0.3


def test_includes_and_attached_models(tmp_path):
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "leg.xml").write_text(
        '<mujoco><worldbody><body name="leg"><geom size="1"/></body></worldbody></mujoco>'
    )
    (tmp_path / "hand.xml").write_text(
        '<mujoco model="hand"><worldbody><body name="palm"><joint name="j"/><geom size="1"/>'
        "</body></worldbody></mujoco>"
    )
    m = read(
        '<mujoco><include file="parts/leg.xml"/><asset><model name="hand" file="hand.xml"/>'
        "</asset><worldbody>"
        '<body name="root"><joint name="j"/><geom size="1"/>'
        '<attach model="hand" body="palm" prefix="left_"/></body>'
        "</worldbody></mujoco>",
        tmp_path,
    )
    assert {body.name for body in m.bodies} == {"leg", "root", "left_palm"}
    assert [j.name for j in m.joints] == ["j", "left_j"]


def test_springs_dampers_and_gravity_compensation():
    m = read(
        '<mujoco><compiler angle="radian"/><worldbody><body name="a" gravcomp=".5">'
        '<joint name="j" stiffness="1 2 3" springref=".2" '
        'damping="4 5 6"/><geom size="1"/></body></worldbody><actuator>'
        '<motor joint="j" gear="2" damping="1" armature="3"/>'
        "</actuator></mujoco>"
    )
    spring, damper, compensation = m.forces[:3]
    assert isinstance(spring, Spring) and spring.stiffness == (1, 2, 3) and spring.rest == 0.2
    assert isinstance(damper, Damper) and damper.coefficient == 8 and damper.higher == (5, 6)
    assert isinstance(compensation, GravityCompensation) and compensation.factor == 0.5
    assert m.joint("j").joint.armature == 12


def test_actuators():
    m = read(
        model(
            after="""<tendon><fixed name="t"><joint joint="shoulder" coef="2"/></fixed></tendon><actuator>
            <position name="p" joint="shoulder" kp="3" kv="1" ctrlrange="-1 1" forcerange="-2 2"/>
            <intvelocity name="i" joint="shoulder" kp="2" actrange="-3 3"/>
            <motor name="c" cranksite="tip" slidersite="base" cranklength="2" gear="3"/>
            <motor name="t" tendon="t" gear="4"/><general name="s" site="tip" gear="1 2 3 4 5 6"
              dyntype="filter" dynprm=".1"/>
            </actuator>""",
            inside='<site name="tip"/><site name="base" pos="0 0 1"/>',
        )
    )
    p, i, c, t, s = (f for f in m.forces if isinstance(f, Actuator))
    assert m.inputs == ("p", "i", "c", "t", "s")
    assert (c.frame, c.slider, c.rod, c.gear) == ("tip", "base", 2, (3,))
    assert (p.gain, p.bias, p.control_range, p.force_range) == ((3, 0, 0), (0, -3, -1), (-1, 1), (-2, 2))
    assert i.activation == ("integrator", ()) and i.activation_range == (-3, 3)
    assert t.tendon == "t" and t.gear == (4,)
    assert s.frame == "tip" and s.gear == (1, 2, 3, 4, 5, 6) and s.activation == ("filter", (0.1,))


EQUALITIES = """<equality><connect name="c" body1="arm" body2="b" anchor="0 0 1" solref=".1 1"/>
    <weld name="w" body1="arm" body2="b" anchor="1 0 0" torquescale="2"/><weld name="s" site1="x" site2="y"/>
    <joint name="j" joint1="shoulder" joint2="k" polycoef=".1 2 3 0 0"/>
    <joint name="one" joint1="k" polycoef=".5 0 0 0 0"/>
    <tendon name="t" tendon1="u" tendon2="v"/><connect name="off" body1="arm" anchor="0 0 0"
      active="false"/></equality>"""


def equalities():
    return model(
        '<body name="b" pos="1 0 0"><joint name="k" ref="10"/><geom size=".1"/>'
        '<site name="y" euler="90 0 0"/></body>',
        inside='<site name="x" pos="0 0 2"/>',
        after='<tendon><fixed name="u"><joint joint="shoulder" coef="1"/></fixed><fixed name="v">'
        '<joint joint="k" coef="1"/></fixed>'
        f"</tendon>{EQUALITIES}",
    )


def test_equalities():
    m = read(equalities())
    connect, weld, sites, coupling, single, tendons = m.constraints
    assert isinstance(connect, Connect) and connect.a == ("arm", (0, 0, 1)) and connect.b == ("b", (-1, 0, 1))
    assert connect.softness.solref == (0.1, 1)
    assert (
        isinstance(weld, Weld)
        and weld.position == (2, 0, 0)
        and weld.anchor == (1, 0, 0)
        and weld.torque_scale == 2
    )
    assert isinstance(sites, Weld) and sites.position == (0, 0, 2) and sites.anchor == (0, 0, 0)
    assert np.allclose(sites.orientation, [[1, 0, 0], [0, 0, 1], [0, -1, 0]])
    assert isinstance(coupling, JointCoupling) and (coupling.joint, coupling.to, coupling.coefficients) == (
        "shoulder",
        "k",
        (0.1, 2, 3),
    )
    assert (single.joint, single.to, single.coefficients) == ("k", None, (0.5, 0))
    assert isinstance(tendons, TendonCoupling) and (tendons.tendon, tendons.to) == ("u", "v")
    assert any("'off' is not active" in note.what for note in m.report.notes)


def test_tendons():
    m = read(
        model(
            '<site name="a"/><site name="b" pos="0 0 1"/>',
            inside='<site name="c" pos="0 0 -1"/>',
            after="""<tendon><fixed name="f" stiffness="2" damping="1" range="-1 1" frictionloss=".5"
              springlength=".1 .2">
            <joint joint="shoulder" coef="3"/></fixed>
            <spatial name="s"><site site="a"/><site site="c"/><pulley divisor="2"/><site site="c"/>
            <site site="b"/></spatial>
            </tendon>""",
        )
    )
    fixed, spatial = m.tendons
    assert fixed.joints == (("shoulder", 3),) and (fixed.stiffness, fixed.damping, fixed.friction) == (
        2,
        1,
        0.5,
    )
    assert fixed.limits == (-1, 1) and fixed.spring_length == (0.1, 0.2)
    assert spatial.path == ("a", "c", None, "c", "b") and spatial.divisors == (1, 2)


def test_contacts_options_and_keyframes():
    m = read(
        model(
            '<body name="b"><joint/><geom name="h" size="1"/></body>',
            before='<option timestep=".01" integrator="RK4" cone="elliptic" impratio="3" solver="CG" '
            'gravity="0 1 2">'
            '<flag eulerdamp="disable"/></option>',
            after='<contact><pair name="p" geom1="g" geom2="h" condim="1" friction="1 2 3 4 5" margin=".1"/>'
            '<exclude body1="arm" body2="b"/></contact><keyframe>'
            '<key name="k" qpos="1 2" qvel="3 4" time="5"/></keyframe>',
        )
    )
    pair, exclude = m.contacts
    assert isinstance(pair, ContactPair) and pair.geometry == ("g", "h") and pair.friction == (1, 2, 3, 4, 5)
    assert isinstance(exclude, ContactExclude) and exclude.bodies == ("arm", "b")
    o = m.options
    assert (o.timestep, o.integrator, o.cone, o.impratio, o.solver) == (0.01, "rk4", "elliptic", 3, "cg")
    assert o.disabled == ("eulerdamp",) and m.gravity == (0, 1, 2)
    assert (m.keyframes[0].name, m.keyframes[0].q, m.keyframes[0].v, m.keyframes[0].time) == (
        "k",
        (1, 2),
        (3, 4),
        5,
    )


def test_flags_disable_forces():
    m = read(
        model(
            joint='stiffness="1" damping="1"',
            before='<option><flag spring="disable" gravity="disable"/></option>',
        )
    )
    assert [type(force) for force in m.forces] == [Damper] and m.gravity == (0, 0, 0)


def test_frames_that_nearly_equal_those_of_their_body_are_these():
    """MuJoCo computes with the body's frame, or its inertial frame, where another is equal up to 1e-6."""
    text = (
        "<mujoco><worldbody><body><freejoint/><geom type='box' size='.1 .2 .3' euler='20 30 40'/>"
        "<geom type='sphere' size='.001' pos='.1 .1 .2' mass='2e-5'/><site name='s' euler='0 0 1e-5'/>"
        "<site name='t' euler='0 0 1e-3'/></body></worldbody></mujoco>"
    )
    m, model = read(text), mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    box, inertial = np.array(m.bodies[0].geometry[0].orientation), model.body_iquat[1]
    assert 1e-8 < np.abs(model.geom_quat[0] - inertial).max() < 1e-6
    assert np.allclose(box, data.geom_xmat[0].reshape(3, 3), rtol=0, atol=1e-14)
    for frame, R in zip(m.frames, data.site_xmat, strict=True):
        assert np.allclose(frame.orientation, R.reshape(3, 3), rtol=0, atol=1e-14)


def test_zeros_and_ones_are_structural():
    m = read(
        '<mujoco><worldbody><body euler="90 0 0"><joint axis="0 0 -2"/><geom size=".1"/>'
        '<body quat=".707107 0 0 .707107" '
        'pos="0 0 1"><joint type="slide"/><geom type="capsule" size=".1 .2"/></body></body>'
        "</worldbody></mujoco>"
    )
    for body in m.bodies:
        assert all(isinstance(x, int) for row in body.orientation for x in row)
    assert m.bodies[0].orientation == ((1, 0, 0), (0, 0, -1), (0, 1, 0))
    assert m.bodies[1].orientation == ((0, -1, 0), (1, 0, 0), (0, 0, 1))
    inertia = m.bodies[1].inertia
    assert inertia[0][1] == 0 and isinstance(inertia[0][1], int) and inertia[0][0] == inertia[1][1]


def test_a_site_with_the_name_of_a_body_is_renamed():
    m = read(model(inside='<site name="arm" pos="0 0 1"/>'))
    assert [frame.name for frame in m.frames] == ["arm (site)"]
    assert m.report.of_kind("repaired")


def test_elements_without_names_get_unique_names():
    m = read(
        "<mujoco><worldbody><body><joint/><geom size='1'/></body><body name='body1'><joint/>"
        "<geom size='1'/></body></worldbody></mujoco>"
    )
    assert len({body.name for body in m.bodies}) == 2 and len({j.name for j in m.joints}) == 2


def test_a_mechanism_from_mjcf_is_serialisable():
    m = read(equalities())
    assert m.report.notes
    assert Mechanism.from_json(m.to_json()) == m


# ---------------------------------------------------------------------------------------------- messages


def test_elements_without_effect_are_noted():
    m = read(
        model(
            "<light/>",
            before='<asset><texture name="t" type="2d" builtin="flat" width="8" height="8"/>'
            '<material name="m" texture="t"/></asset>'
            '<custom><numeric name="n" data="1"/></custom>',
        )
    )
    notes = " ".join(note.what for note in m.report.of_kind("ignored"))
    for words in (
        "1 lights",
        "1 textures ('t')",
        "1 materials",
        "1 numerics",
    ):
        assert words in notes


UNSUPPORTED = {
    "adhesion": model('<geom size=".1" adhesion="1"/>'),
    "dcmotor": model(after='<actuator><dcmotor joint="shoulder" motorconst=".1" resistance="2"/></actuator>'),
    "pid": model(after='<actuator><pid joint="shoulder" kp="2" ki="1"/></actuator>'),
    "springyield": model(joint='stiffness="1" springyield="1"'),
    "flex": model('<flexcomp name="f" type="grid" count="2 2 1" spacing=".1 .1 .1" dim="2" mass="1"/>'),
    "signed distance field": model(
        '<geom type="sdf" mesh="m"/>',
        before='<asset><mesh name="m" vertex="0 0 0 1 0 0 0 1 0 0 0 1"/></asset>',
    ),
    "delay": model(after='<actuator><motor joint="shoulder" delay=".01" nsample="3"/></actuator>'),
    "override": model(before='<option><flag override="enable"/></option>'),
    "fixed to each other": model(
        '<geom name="a" size=".1"/><geom name="b" size=".1"/>',
        after='<contact><pair geom1="a" geom2="b"/></contact><sensor><contact geom1="a"/></sensor>',
    ),
}


PLUGIN = """<actuator><plugin joint="shoulder" plugin="{name}" {more}>{config}</plugin></actuator>"""


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"config": '<config key="kq" value="1"/>'}, ("kq", "kp, ki, kd, imax, slewmax")),
        ({"config": '<config key="kp" value="high"/>'}, ("high",)),
        ({"config": '<config key="ki" value="2"/>'}, ("no actdim", "1 states", "actdim='1'")),
        ({"more": 'actdim="2"', "config": '<config key="slewmax" value="2"/>'}, ("actdim 2", "1 states")),
        ({"config": '<config key="slewmax" value="-2"/>'}, ("slew_rate", "-2")),
        ({"more": 'instance="x"'}, ("instance 'x'",)),
        ({"name": "mujoco.other"}, ("is a plugin",)),
    ],
)
def test_a_plugin_that_is_no_pid_controller_is_refused_with_its_line(values, words):
    text = model(after=PLUGIN.format(**{"name": "mujoco.pid", "more": "", "config": ""} | values))
    with pytest.raises((LoadError, UnsupportedError)) as caught:
        read(text)
    assert all(word in str(caught.value) for word in ("line", *words))


def test_pid_controllers_of_a_default_class_with_activations_are_refused():
    default = '<default><general dyntype="filter" dynprm=".1"/></default>'
    plugin = PLUGIN.format(name="mujoco.pid", more="", config='<config key="kp" value="1"/>')
    with pytest.raises(LoadError, match=r"line.*give it a dyntype"):
        read(model(before=default, after=plugin))


@pytest.mark.parametrize("word", UNSUPPORTED)
def test_unsupported_features_raise_or_are_noted(word):
    with pytest.raises(UnsupportedError) as caught:
        read(UNSUPPORTED[word])
    assert word in str(caught.value) and "line" in str(caught.value)
    m = read(UNSUPPORTED[word], strict=False)
    assert any(word in note.what for note in m.report.of_kind("unsupported"))
    assert m.nv == 1


@pytest.mark.parametrize(
    "text, word",
    [
        (model(before='<option timestep="1"/>'), "timestep"),
        (model(joint='stiffness="1e9"'), "stiff"),
        (model(joint='range="-3.1416 3.1416"'), "radian"),
        (model(geom='mass="1e10"'), "mass"),
    ],
)
def test_implausible_numbers_warn(text, word):
    with pytest.warns(PlausibilityWarning, match=word):
        read(text)


def test_warnings_of_mujoco_are_python_warnings_without_a_log(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = mujoco.get_mju_user_warning()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        read(model(joint='armature="1e-30"'))
    assert mujoco.get_mju_user_warning() is before
    assert not list(tmp_path.iterdir())


# -------------------------------------------------------------------------------------------- malicious files


def test_files_outside_the_folder_of_the_model_are_not_opened(tmp_path):
    inner = tmp_path / "model"
    inner.mkdir()
    (tmp_path / "secret.xml").write_text("<mujoco><worldbody><body name='leak'/></worldbody></mujoco>")
    (tmp_path / "secret.stl").write_bytes(b"solid leak")
    (inner / "link.xml").symlink_to(tmp_path / "secret.xml")
    outside = (
        '<include file="../secret.xml"/>',
        f'<include file="{tmp_path / "secret.xml"}"/>',
        '<include file="link.xml"/>',
        '<asset><mesh name="m" file="../secret.stl"/></asset>',
        '<compiler meshdir=".."/><asset><mesh name="m" file="secret.stl"/></asset>',
        '<asset><model name="m" file="../secret.xml"/></asset>',
    )
    for part in outside:
        with pytest.raises(LoadError, match=r"outside|lies"):
            read(model(before=part), inner)


def test_pipes_do_not_block(tmp_path):
    os.mkfifo(tmp_path / "pipe.stl")
    with pytest.raises(LoadError, match="pipe"):
        read(model(before='<asset><mesh name="m" file="pipe.stl"/></asset>'), tmp_path)


def test_image_files_are_not_opened(tmp_path):
    m = read(model(before='<asset><texture name="t" type="2d" file="../../nowhere.png"/></asset>'), tmp_path)
    assert m.nv == 1


def test_cyclic_includes_and_exponential_models_raise(tmp_path):
    (tmp_path / "a.xml").write_text('<mujoco><include file="b.xml"/></mujoco>')
    (tmp_path / "b.xml").write_text('<mujoco><include file="a.xml"/></mujoco>')
    with pytest.raises(LoadError, match="cycle"):
        read_mjcf(tmp_path / "a.xml")
    for nested in (replicated(100, times=5), replicated(10_002), replicated(101, times=2)):
        with pytest.raises(LoadError, match=r"line 4, .*: too many .*replicates may make 10,000 copies"):
            read(model(nested))
    with pytest.raises(LoadError, match="too large"):
        read(model(before='<asset><hfield name="h" nrow="100000" ncol="100000" size="1 1 1 1"/></asset>'))


def replicated(count, inside='<geom size="1"/>', *, times=1):
    """An element in nested replicates."""
    return f'<replicate count="{count}">' * times + inside + "</replicate>" * times


def test_the_work_for_replicates_is_linear_in_the_copies():
    """Five times the copies, five times the calls: some ten thousand copies take a second, not minutes."""
    body = '<body><joint/><geom size="1"/><site/></body>'
    read(model(replicated(2, body)))
    few, many = (call_count(lambda n=n: read(model(replicated(n, body)))) for n in (40, 200))
    assert many < 5.5 * few


def test_meshes_in_the_folder_of_the_model_are_read(tmp_path):
    (tmp_path / "meshes").mkdir()
    corners = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])
    lines = [f"v {x} {y} {z}" for x, y, z in corners] + ["f 1 3 2", "f 1 2 4", "f 1 4 3", "f 2 3 4"]
    (tmp_path / "meshes" / "t.obj").write_text("\n".join(lines))
    m = read(
        model(
            '<body><freejoint/><geom type="mesh" mesh="t"/></body>',
            before='<compiler meshdir="meshes"/><asset><mesh name="t" file="t.obj"/></asset>',
        ),
        tmp_path,
    )
    mesh = m.bodies[1].geometry[0]
    placed = np.asarray(mesh.vertices) @ np.array(mesh.orientation).T + np.array(mesh.position)
    assert np.allclose(sorted(placed.round(6).tolist()), sorted(corners.tolist()), atol=1e-6)


def test_the_hull_of_a_mesh_is_that_of_mujocos_compiler():
    points = np.random.default_rng(1).normal(size=(40, 3)).round(3)
    vertices = " ".join(map(str, points.ravel()))
    m = read(
        f"<mujoco><asset><mesh name='m' vertex='{vertices}'/></asset><worldbody>"
        "<geom type='mesh' mesh='m'/></worldbody></mujoco>"
    )
    (mesh,) = m.geometry
    corners, normals = np.asarray(mesh.hull.corners), np.asarray(mesh.hull.normals)
    counts, vertices = np.asarray(mesh.hull.counts), np.asarray(mesh.vertices)
    centre = vertices.mean(axis=0)
    for normal, polygon in zip(normals, np.split(corners, np.cumsum(counts)[:-1]), strict=True):
        x = vertices[polygon]
        assert normal @ np.cross(x[1] - x[0], x[2] - x[0]) > 0 < normal @ (x[0] - centre)
    assert ((vertices - vertices[corners[0]]) @ normals[0] < 1e-3).all()
    assert Mechanism.from_json(m.to_json()) == m
    with pytest.raises(DescriptionError, match="at least three corners each"):
        zw.MeshHull(mesh.hull.vertices, mesh.hull.normals, mesh.hull.counts, [0])
    with pytest.raises(DescriptionError, match="they must be a list of integers"):
        zw.MeshHull(mesh.hull.vertices, mesh.hull.normals, mesh.hull.counts, [(0, 1, 2)])
    counts, corners = counts[:, None], corners[:, None]  # columns, as in earlier versions
    assert zw.MeshHull(np.asarray(mesh.hull.vertices)[::-1], normals, counts, corners) == mesh.hull
    with pytest.raises(DescriptionError, match="out of range; there are 4 vertices"):
        zw.Mesh(vertices=vertices[:4], hull=mesh.hull)
    with pytest.raises(DescriptionError, match="not that of its vertices"):
        zw.Mesh(vertices=vertices * (1, 1, 2), hull=mesh.hull)


def test_a_mesh_that_no_geom_uses_needs_no_hull():
    """MuJoCo up to 3.16 ends the process where such a mesh asks for the inertia of its convex hull."""
    mesh = (
        '<mesh name="orphan" inertia="convex" vertex="0 0 1 1 0 0 0 1 0 -1 0 0 0 -1 0" '
        'face="0 1 2 0 2 3 0 3 4 0 4 1 1 4 3 1 3 2"/>'
    )
    body = '<body name="ball"><freejoint/><geom size=".1"/></body>'
    read = read_mjcf("m.xml", text=f"<mujoco><asset>{mesh}</asset><worldbody>{body}</worldbody></mujoco>")
    assert [b.name for b in read.bodies] == ["ball"]


def ball_and_slide(first: str, second: str) -> str:
    """A body on two joints, held by a connect constraint."""
    return f"""<mujoco><worldbody><body name="a">{first}{second}
        <geom type="box" size=".1 .05 .03" pos=".1 0 .1"/></body></worldbody>
        <equality><connect name="hold" body1="a" anchor=".2 .1 .05"/></equality></mujoco>"""


def test_constraints_on_a_slide_that_turns_with_a_ball_are_refused():
    """MuJoCo leaves the turn of the slide out of the derivative of the Jacobian; it is exact in the other
    order of the joints.
    """
    ball, slide = '<joint name="ball" type="ball"/>', '<joint name="slide" type="slide" axis="1 0 .2"/>'
    rng, turned = np.random.default_rng(0), ball_and_slide(ball, slide)
    with pytest.raises(
        UnsupportedError, match=r"test\.xml, line 3: equality 'hold' with a ball joint before"
    ):
        read(turned)
    assert "has the exact term" in str(read(turned, strict=False).report)
    if mujoco.mj_versionString().startswith("3.3."):
        return  # whose derivative of the Jacobian is wrong in the other order, too
    text = ball_and_slide(slide, ball)
    ours, theirs = read(text), mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(theirs)
    mujoco.mj_integratePos(theirs, data.qpos, 0.3 * rng.normal(size=theirs.nv), 1.0)
    data.qvel[:] = rng.normal(size=theirs.nv)
    mujoco.mj_forward(theirs, data)
    found = zw.constrained_dynamics(ours, data.qpos, data.qvel, np.zeros(theirs.nv)).acceleration
    np.testing.assert_allclose(found, data.qacc, rtol=1e-9, atol=1e-9)
