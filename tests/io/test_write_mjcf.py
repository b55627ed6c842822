"""MJCF files that zwang writes: zwang and MuJoCo read the same mechanism, and nothing is dropped silently."""

from __future__ import annotations

import importlib.util
import itertools
import warnings
from collections import Counter
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path

import gymnasium
import mujoco
import numpy as np
import pytest

import zwang as zw
from tests.io.round_trip import (
    assert_same_actuators,
    assert_same_dynamics,
    assert_same_limits,
    close,
    orders,
)
from tests.io.test_urdf import real_robots
from tests.io.written_mechanisms import driven_mechanism, rich_mechanism
from tests.mechanisms import random_mechanism, random_state
from tests.oracles.mujoco_models import RandomModel, RandomTree, full_mass_matrix, state_of
from zwang.errors import ArgumentError, FormatError, ParameterError, WriteError
from zwang.io.export_notes import ExportNotes
from zwang.io.urdf.read_urdf import read_urdf
from zwang.mechanism.geometry import Mesh
from zwang.mechanism.samples import four_bar, furuta
from zwang.scalar import symbol

GYM = sorted((Path(gymnasium.__file__).parent / "envs" / "mujoco" / "assets").glob("*.xml"))


def loaded(path, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return zw.load(path, **settings)


def rewritten(m, folder, **settings):
    """The mechanism that zwang reads from the file that it writes."""
    path = folder / "written.xml"
    zw.write_mjcf(m, path, **settings)
    return loaded(path)


def assert_equal(m, n, seed=0):
    assert_same_dynamics(m, n, seed)
    assert_same_actuators(m, n, seed)
    assert_same_limits(m, n)


# ----------------------------------------------------------------------------------------- round trips


@pytest.mark.parametrize("seed", range(20))
def test_random_mechanisms(seed, tmp_path):
    m = driven_mechanism(seed)
    assert_equal(m, rewritten(m, tmp_path), seed)


@pytest.mark.parametrize("seed", range(8))
def test_mujoco_computes_the_dynamics_of_the_mechanism(seed, tmp_path):
    """MuJoCo's own mass matrix and bias, against CRBA and RNEA on the mechanism that was written."""
    m = driven_mechanism(seed)
    n = rewritten(m, tmp_path)
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "written.xml"))
    iq, iv = orders(m, n)
    q, v, _, _ = random_state(m, seed)
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = q[iq], v[iv]
    mujoco.mj_forward(model, data)
    close(zw.mass_matrix(m, q)[np.ix_(iv, iv)], full_mass_matrix(model, data), "mass matrix")
    close(zw.bias_forces(m, q, v)[iv], data.qfrc_bias, "bias forces")


MODEL_NUMBERS = (
    "body_pos", "body_quat", "body_ipos", "body_mass", "jnt_range", "jnt_actfrcrange", "jnt_solref",
    "jnt_solimp",
    "jnt_margin", "jnt_stiffness", "dof_armature", "dof_damping", "dof_frictionloss", "qpos0",
    "geom_friction", "geom_solref", "geom_solimp", "geom_margin", "geom_gap", "geom_condim", "geom_contype",
    "geom_conaffinity", "geom_priority", "geom_size", "actuator_gear", "actuator_ctrlrange",
    "actuator_forcerange",
    "actuator_gainprm", "actuator_biasprm", "eq_solref", "eq_solimp", "tendon_stiffness", "tendon_range",
    "body_invweight0", "dof_invweight0",
)  # fmt: skip
LIMITED = {
    "jnt_range": "jnt_limited", "jnt_solref": "jnt_limited", "jnt_solimp": "jnt_limited",
    "jnt_margin": "jnt_limited", "jnt_actfrcrange": "jnt_actfrclimited", "tendon_range": "tendon_limited",
    "actuator_ctrlrange": "actuator_ctrllimited", "actuator_forcerange": "actuator_forcelimited",
}  # fmt: skip
SIZES = {0: 0, 2: 1, 3: 2, 4: 3, 5: 2, 6: 3, 7: 0}
"""How many of the sizes of a geom type have a meaning for contacts."""


def assert_same_in_mujoco(old, new, seed):
    """The numbers of two models of MuJoCo, and the forces and accelerations that it computes for a state."""
    for name in MODEL_NUMBERS:
        a, b = getattr(old, name), getattr(new, name)
        if name in LIMITED:  # the number has a meaning where there is a limit
            used = getattr(old, LIMITED[name]).astype(bool)
            assert np.array_equal(used, getattr(new, LIMITED[name])), LIMITED[name]
            a, b = a[used], b[used]
        if name == "body_quat":  # q and -q are the same rotation
            b = b * np.sign((a * b).sum(axis=1, keepdims=True))
        if name == "geom_size":
            used = np.array([SIZES[int(kind)] for kind in old.geom_type])[:, None] > np.arange(3)
            a, b = a[used], b[used]
        close(a, b, name, 1e-9 if "invweight" in name else 1e-12)
    gravity = 0 if old.opt.disableflags & mujoco.mjtDisableBit.mjDSBL_GRAVITY else old.opt.gravity
    close(np.zeros(3) + gravity, new.opt.gravity, "gravity")
    for name in ("timestep", "integrator", "cone", "impratio", "solver", "iterations", "tolerance",
                 "disableflags", "enableflags"):  # fmt: skip
        assert np.array_equal(getattr(old.opt, name), getattr(new.opt, name)), name
    rng = np.random.default_rng(seed)
    a, b = state_of(old, rng), state_of(new, np.random.default_rng(seed))
    close(full_mass_matrix(old, a), full_mass_matrix(new, b), "mass matrix")
    for name in (
        "qfrc_bias",
        "qfrc_passive",
        "qfrc_actuator",
        "act_dot",
        "xpos",
        "xmat",
        "site_xpos",
        "geom_xpos",
    ):
        close(getattr(a, name), getattr(b, name), name)
    assert a.ncon == b.ncon and a.nefc == b.nefc
    scale = max(1.0, np.abs(a.qacc).max(initial=0))
    close(a.qacc / scale, b.qacc / scale, "accelerations with contacts", 1e-6)


@pytest.mark.parametrize("path", GYM, ids=lambda path: path.stem)
def test_models_of_gymnasium(path, tmp_path):
    m = loaded(path, strict=False)  # the swimmer has a fluid around it, which zwang omits
    n = rewritten(m, tmp_path)
    assert_equal(m, n)
    assert m.options == n.options and len(m.keyframes) == len(n.keyframes)
    old = mujoco.MjModel.from_xml_path(str(path))
    old.opt.density = old.opt.viscosity = 0
    assert_same_in_mujoco(old, mujoco.MjModel.from_xml_path(str(tmp_path / "written.xml")), 1)


@pytest.mark.parametrize(
    "name",
    ["acrobot", "ball_in_cup", "cheetah", "finger", "humanoid_CMU", "manipulator", "stacker", "walker"],
)
def test_models_of_dm_control(name, tmp_path):
    package = importlib.util.find_spec("dm_control")
    if package is None or package.origin is None:
        pytest.skip("dm_control is not installed")
    path = Path(package.origin).parent / "suite" / f"{name}.xml"
    m = loaded(path)
    assert_equal(m, rewritten(m, tmp_path))
    old, new = (mujoco.MjModel.from_xml_path(str(p)) for p in (path, tmp_path / "written.xml"))
    assert_same_in_mujoco(old, new, 1)


@pytest.mark.parametrize("make", [RandomModel, RandomTree])
@pytest.mark.parametrize("seed", range(12))
def test_random_models_of_mujoco(make, seed, tmp_path):
    model = make(seed)
    text = model.xml if make is RandomModel else model.text
    path = tmp_path / "model.xml"
    path.write_text(text)
    m = loaded(path)
    n = rewritten(m, tmp_path)
    assert_equal(m, n, seed)
    a, b = (mujoco.MjModel.from_xml_path(str(tmp_path / name)) for name in ("model.xml", "written.xml"))
    assert np.array_equal(a.body_simple == 2, b.body_simple == 2)
    close(a.body_invweight0, b.body_invweight0, "inverse weights", 1e-10)


def test_robots_of_example_robot_data(tmp_path):
    names = {
        "laikago",
        "panda",
        "hyq_no_sensors",
        "human",
        "talos_reduced",
        "icub_reduced",
        "romeo",
        "finger_edu",
    }
    found = [path for path in real_robots() if path.stem in names]
    assert len(found) == len(names)
    for path in found:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            m = read_urdf(path, strict=False, meshes=False)
        n = rewritten(m, tmp_path, strict=False)
        assert_equal(m, n)


def test_a_mechanism_with_every_part(tmp_path):
    m = rich_mechanism()
    n = rewritten(m, tmp_path)
    assert_equal(m, n)
    assert m.options == n.options and m.home == n.home and m.gravity == n.gravity
    assert {type(c) for c in n.constraints} == {type(c) for c in m.constraints}
    assert n.contacts == m.contacts
    assert n.keyframes[0] == m.keyframes[0]
    again = tmp_path / "again.xml"
    zw.write_mjcf(n, again)
    assert_equal(n, loaded(again))


@pytest.mark.parametrize("name", ["ant", "humanoid", "pusher_v5"])
def test_writing_what_was_written_gives_the_same_elements(name, tmp_path):
    m = loaded(next(path for path in GYM if path.stem == name))
    first, second = tmp_path / "a.xml", tmp_path / "b.xml"
    zw.write_mjcf(m, first)
    zw.write_mjcf(loaded(first), second)
    lines = [[line.split()[0] for line in path.read_text().splitlines()] for path in (first, second)]
    assert lines[0] == lines[1]


# ------------------------------------------------------------------------------- said in other words


def test_the_default_configuration_becomes_the_reference(tmp_path):
    """The crank of the four-bar is upright by default; poses at equal q are equal."""
    m = four_bar()
    loop = replace(m.constraints[0], softness=zw.Softness())
    coupling = zw.JointCoupling("c", "first", "drive", (0.1, 0.5, 0.25), zw.Softness())
    m = m.replace(constraints=(loop, coupling))
    n = rewritten(m, tmp_path)
    assert_same_dynamics(m, n)
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "written.xml"))
    close(m.home, model.qpos0, "default configuration")
    data = mujoco.MjData(model)
    data.qpos[:] = q = np.array([0.3, -0.4, 0.9])
    mujoco.mj_forward(model, data)
    positions = data.efc_pos[: data.ne]
    expected = q[1] - (0.1 + 0.5 * q[0] + 0.25 * q[0] ** 2)  # the coupling is in the neutral configuration
    assert abs(positions[3] - expected) < 1e-12
    data.qpos[:] = m.home
    mujoco.mj_forward(model, data)
    assert np.abs(data.efc_pos[:3]).max() < 1e-12  # the loop is closed


def test_bodies_are_numbered_depth_first_and_keyframes_follow(tmp_path):
    kinds = {"mass": 1, "inertia": (1, 1, 1)}
    m = zw.Mechanism(
        bodies=(
            zw.Body("a", zw.Revolute("a"), **kinds),
            zw.Body("b", zw.Revolute("b"), **kinds),
            zw.Body("c", zw.Revolute("c"), "a", (1, 0, 0), **kinds),
        ),
        keyframes=(zw.Keyframe("k", (1, 2, 3), (4, 5, 6)),),
    )  # fmt: skip
    report = zw.write_mjcf(m, tmp_path / "m.xml")
    n = loaded(tmp_path / "m.xml")
    assert n.coordinate_names == ("a", "c", "b")
    assert n.keyframes[0].q == (1, 3, 2) and n.keyframes[0].v == (4, 6, 5)
    assert any("depth first" in note.what for note in report.of_kind("changed"))


def test_a_screw_is_refused_or_said_by_two_joints_and_a_coupling(tmp_path):
    """With x = p q, the kinetic energy of hinge and slide is that of the screw."""
    m = zw.Mechanism(
        bodies=(zw.Body("nut", zw.Screw("s", (0, 1, 0), pitch=0.2, reference=0.5), position=(1, 2, 3), mass=2,
                        com=(0.1, 0.2, 0.3), inertia=(0.1, 0.2, 0.25)),),
        keyframes=(zw.Keyframe("k", (0.7,), (2.0,)),),
    )  # fmt: skip
    with pytest.raises(FormatError, match="joint 's': MJCF has no screw joint"):
        zw.write_mjcf(m, tmp_path / "m.xml")
    n = rewritten(m, tmp_path, strict=False)
    q, v = n.keyframes[0].q, n.keyframes[0].v
    close(q, (0.7, 0.2 * 0.2), "coordinates")
    close(v, (2, 0.4), "velocities")
    B = np.array([[1], [0.2]])
    close(zw.mass_matrix(m, [0.7]), B.T @ zw.mass_matrix(n, q) @ B, "mass matrix")
    close(zw.frame_pose(m, [0.7], "nut").p, zw.frame_pose(n, q, "nut").p, "pose")


def test_bodies_with_joints_that_a_body_of_mjcf_cannot_have(tmp_path):
    joints = (zw.Ball("ball"), zw.Revolute("turn", (0, 1, 0), (0.1, 0, 0)), zw.Cylindrical("tube", (1, 0, 0)))
    m = zw.Mechanism(
        bodies=(
            zw.Body("a", zw.Free("free"), mass=1, inertia=(1, 1, 1), geometry=(zw.Sphere(0.1),)),
            zw.Body("b", joints, "a", (0, 0, 1), mass=1, inertia=(1, 1, 1), geometry=(zw.Sphere(0.1),)),
        )
    )
    n = rewritten(m, tmp_path)
    assert_same_dynamics(m, n)
    assert zw.ContactExclude(("a", "b")) in n.contacts  # they are parent and child no longer


def test_equal_ends_of_a_range_differ_by_a_rounding_error(tmp_path):
    joint = zw.Revolute("j", limits=(0.5, 0.5), actuator_range=(0, 0))
    m = zw.Mechanism(bodies=(zw.Body("b", joint, mass=1, inertia=(1, 1, 1)),))
    (read,) = rewritten(m, tmp_path).joints
    assert 0 < read.joint.limits[1] - read.joint.limits[0] < 1e-15
    assert 0 < read.joint.actuator_range[1] < 1e-15


def test_point_masses_and_thin_rods(tmp_path):
    """MuJoCo requires a moment of inertia of every moving body, and the triangle inequality exactly."""
    bodies = (
        zw.Body("point", zw.Revolute("a", (0, 1, 0)), mass=1, com=(0, 0, -1)),
        zw.Body("rod", zw.Revolute("b", (0, 1, 0)), "point", mass=1, com=(0, 0, -1), inertia=(0.1, 0.1, 0)),
        zw.Body("none", zw.Revolute("c", (1, 0, 0)), "rod"),
        zw.Body(
            "plate", zw.Revolute("d", (0, 0, 1)), "none", mass=1, inertia=(0.1, 0.2, 0.30000000000000004)
        ),
    )
    assert_same_dynamics(zw.Mechanism(bodies=bodies), rewritten(zw.Mechanism(bodies=bodies), tmp_path))


# ------------------------------------------------------------------------------- nothing silently dropped


HARDLY = ("softness", "friction_softness")  # the fields of which the margin has no meaning


def has_meaning(part, name):
    """Whether a field of this part has a meaning of its own."""
    if name in ("scale", "report", "simple", "unchecked_inertia"):
        return False
    if isinstance(part, zw.Prismatic) and name == "position":
        return False
    if isinstance(part, zw.Actuator):
        return (
            part.slider is not None if name == "rod" else part.muscle is None or name not in ("gain", "bias")
        )
    needed = {"limit_softness": "limits", "friction_softness": "friction", "spring_length": "stiffness"}
    if name in needed and not getattr(part, needed[name]):
        return False
    return not (name == "surface" and part.visual_only)


def variants(part, under=""):
    """(class and field, changed part) for every number and choice in a part of a mechanism.

    under: the field of which it is the value.
    """
    for field in fields(part):
        value = getattr(part, field.name)
        if not has_meaning(part, field.name) or (field.name == "margin" and under in HARDLY):
            continue
        for new in changed(value):
            yield (type(part).__name__, field.name), part, field.name, new
        items = value if isinstance(value, tuple) else (value,)
        for index, item in enumerate(items):
            if is_dataclass(item):
                for label, *rest in variants(item, field.name):
                    yield label, part, field.name, (index, rest)


def changed(value):
    """Other values of the same kind."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, float | int):
        return [value + 1 if isinstance(value, int) else value * 0.75 + 0.01]
    if isinstance(value, tuple) and value and all(isinstance(x, float | int) for x in value):
        return [tuple(x * 0.75 + (0.01 if isinstance(x, float) else 0.125) for x in value)]
    return []


def rebuilt(part, name, new):
    """The part with a field, or a field of a part of it, replaced."""
    if isinstance(new, tuple) and len(new) == 2 and isinstance(new[1], list):
        index, (inner, field, value) = new
        changed_part = rebuilt(inner, field, value)
        old = getattr(part, name)
        new = (*old[:index], changed_part, *old[index + 1 :]) if isinstance(old, tuple) else changed_part
    return replace(part, **{name: new})


def said(m, path, write=zw.write_mjcf):
    """The text of the file, without its names of meshes, and the notes of the report."""
    report = write(m, path, strict=False)
    meshes = [file.read_text() for file in sorted(path.parent.glob("*_meshes/*"))]
    return path.read_text(), meshes, [str(note) for note in report.notes[1:]]


def silent_changes(m, folder, write, suffix):
    """The fields whose change changes neither the file nor the report."""
    before = said(m, folder / f"m{suffix}", write)
    found, tried = set(), Counter()
    for label, part, name, new in variants(m):
        if tried[label] == 2:  # each field is changed in two parts
            continue
        try:
            other = rebuilt(part, name, new)
        except zw.errors.ZwangError:
            continue  # not a valid mechanism
        tried[label] += 1
        if said(other, folder / f"m{suffix}", write) == before:
            found.add(label)
    return found, len(tried)


def test_no_number_is_dropped_silently(tmp_path, monkeypatch):
    """Every number of a mechanism is in the file, or a note names its part."""
    monkeypatch.setattr("os.fsync", lambda file: None)
    found, tried = silent_changes(rich_mechanism(), tmp_path, zw.write_mjcf, ".xml")
    assert tried > 100
    assert not found


def test_mocap_bodies_their_poses_in_keyframes_and_the_magnetic_field(tmp_path):
    half = np.sqrt(0.5)
    m = zw.Mechanism(
        bodies=(
            zw.Body("a", zw.Revolute("j"), mass=1, inertia=(1, 1, 1)),
            zw.Body("hand", position=(1, 2, 3), mocap=True),
            zw.Body("head", position=(3, 2, 1), mocap=True),
        ),
        geometry=(zw.Plane(name="floor", extent=(2, 3)),),
        keyframes=(zw.Keyframe("reach", q=(0.5,), mocap=(("head", (4, 5, 6), (half, 0, half, 0)),)),),
        options=zw.Options(magnetic_field=(0.1, 0.2, 0.3)),
    )
    file = tmp_path / "m.xml"
    zw.write_mjcf(m, file)
    read, theirs = zw.load(file), mujoco.MjModel.from_xml_path(str(file))
    assert [body.mocap for body in read.bodies] == [False, True, True]
    hand, head = read.keyframe("reach").mocap
    assert hand == ("hand", (1, 2, 3), (1, 0, 0, 0))
    assert head[:2] == ("head", (4, 5, 6))
    np.testing.assert_allclose(head[2], (half, 0, half, 0), atol=1e-15)
    np.testing.assert_array_equal(theirs.opt.magnetic, (0.1, 0.2, 0.3))
    np.testing.assert_array_equal(theirs.geom_size[0, :2], (2, 3))
    assert read.options.magnetic_field == (0.1, 0.2, 0.3) and read.geometry[0].extent == (2, 3)


UNSAYABLE = {
    "Connect 'c'": zw.Connect("c", ("a", (0, 0, 0)), ("world", (0, 0, 0))),
    "Distance 'c'": zw.Distance("c", ("a", (0, 0, 0)), ("world", (0, 0, 0)), 1),
    "NoSideSlip 'c'": zw.NoSideSlip("c", "a"),
    "Rolling 'c'": zw.Rolling("c", "a", 0.1),
    "Holonomic 'c'": zw.Holonomic("c", symbol("j") - symbol("t")),
    "Pfaffian 'c'": zw.Pfaffian("c", {"j": 1}),
    "JointCoupling 'c'": zw.JointCoupling("c", "j", None, (0, 0, 0, 0, 0, 1), zw.Softness()),
    "wrench on body 'a'": zw.Wrench("a", (1, 0, 0)),
    "damper on joint 'j'": zw.Damper("j", 1, (1, 1, 1)),
    "spring on joint 'j'": zw.Spring("j", (1, 1, 1, 1)),
    "gravity compensation of body 'a'": zw.GravityCompensation("a", -1),
}  # fmt: skip


@pytest.mark.parametrize("named", UNSAYABLE)
def test_what_mjcf_cannot_say_is_refused_by_name(named, tmp_path):
    part = UNSAYABLE[named]
    kind = "constraints" if type(part).__module__.endswith("constraints") else "forces"
    m = zw.Mechanism(bodies=(zw.Body("a", zw.Revolute("j"), mass=1, inertia=(1, 1, 1)),), **{kind: (part,)})
    with pytest.raises(FormatError, match=f"{named}: .*strict=False"):
        zw.write_mjcf(m, tmp_path / "m.xml")
    assert not list(tmp_path.iterdir())
    report = zw.write_mjcf(m, tmp_path / "m.xml", strict=False)
    assert len(report.of_kind("unsupported")) == 1
    mujoco.MjModel.from_xml_path(str(tmp_path / "m.xml"))


def test_hard_limits_friction_and_contacts_and_other_integrators_are_refused(tmp_path):
    joint = zw.Revolute("j", limits=(0, 1), friction=1, limit_softness=None, friction_softness=None)
    shape = zw.Sphere(0.1, name="s", surface=zw.Surface(hard=True, restitution=0.5))
    m = zw.Mechanism(
        bodies=(zw.Body("a", joint, mass=1, inertia=(1, 1, 1), geometry=(shape, zw.Plane(name="p"))),),
        options=zw.Options(integrator="dop853"),
    )
    with pytest.raises(FormatError) as error:
        zw.write_mjcf(m, tmp_path / "m.xml")
    for words in ("hard joint limit", "hard dry friction", "sphere 's'", "plane 'p'", "'dop853'", "5 parts"):
        assert words in str(error.value)


def test_symbols_without_values_are_named(tmp_path):
    with pytest.raises(ParameterError, match=r"symbols without values .*J_p1.*subs"):
        zw.write_mjcf(furuta(), tmp_path / "m.xml", strict=False)


@pytest.mark.parametrize("write", [zw.write_mjcf, zw.write_urdf])
def test_a_file_that_cannot_be_written(write, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    m = zw.Mechanism(bodies=(zw.Body("b", zw.Revolute("j"), mass=1, geometry=(cone(),)),))
    for path in (tmp_path / "nowhere" / "m.xml", tmp_path, f"{tmp_path}/a\0b", ""):
        with pytest.raises(WriteError):
            write(m, path)
    for wrong in (None, 3, b"m.xml"):
        with pytest.raises(ArgumentError, match="path"):
            write(m, wrong)
    with pytest.raises(ArgumentError, match="strict"):
        write(m, tmp_path / "m.xml", strict="no")


def cone():
    return Mesh(
        vertices=((0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)),
        faces=((0, 2, 1), (0, 1, 3), (1, 2, 3), (0, 3, 2)),
        visual_only=True,
    )


@pytest.mark.parametrize("write", [zw.write_mjcf, zw.write_urdf])
def test_a_mechanism_without_bodies_and_one_with_a_long_chain(write, tmp_path):
    empty = zw.Mechanism(name="nothing")
    write(empty, tmp_path / "m.xml")
    assert loaded(tmp_path / "m.xml").nv == 0
    names = ["world", *(f"b{k}" for k in range(300))]
    bodies = [
        zw.Body(name, zw.Revolute(name), parent, (0.1, 0, 0), mass=1, inertia=(1, 1, 1))
        for parent, name in itertools.pairwise(names)
    ]
    chain = zw.Mechanism(bodies=bodies)
    if write is zw.write_mjcf:
        with pytest.raises(FormatError, match=r"chain of 241 bodies.*write_urdf"):
            write(chain, tmp_path / "m.xml")
    else:
        write(chain, tmp_path / "m.xml")
        assert loaded(tmp_path / "m.xml").nv == 300


def test_an_actuator_on_a_free_joint_away_from_the_origin_is_refused(tmp_path):
    """MJCF has free joints at the origin of the world only; elsewhere they are three slides and a ball."""
    jet = zw.Actuator("jet", "f", gear=(1, 2, 3, 4, 5, 6))
    body = zw.Body("a", zw.Free("f"), position=(1, 2, 3), mass=1, inertia=(1, 2, 2))
    m = zw.Mechanism(bodies=(body,), forces=(zw.Damper("f", 1), zw.Spring("f", 2)))
    assert_equal(m, rewritten(m, tmp_path))
    with pytest.raises(FormatError, match="actuator 'jet'"):
        zw.write_mjcf(m.replace(forces=(jet,)), tmp_path / "m.xml")
    at_origin = m.replace(bodies=(replace(body, position=(0, 0, 0)),), forces=(jet,))
    assert_equal(at_origin, rewritten(at_origin, tmp_path))


def test_the_inputs_keep_their_order(tmp_path):
    m = zw.Mechanism(
        bodies=(zw.Body("a", zw.Revolute("j"), mass=1, inertia=(1, 1, 1)),),
        forces=(zw.Wrench("a", (1, 2, 3), axes="body", input="push"), zw.Motor("motor", "j")),
    )
    assert_equal(m, rewritten(m, tmp_path))


# ---------------------------------------------------------------------------------- names and meshes


HOSTILE = [
    'a"b',
    "<a>",
    "a&b;&amp;",
    " a ",
    "a\tb\nc",
    "Größe é 😀",
    "'",
    "a/b\\c",
    "-->",
    "]]>",
    "\u202eabc",
    "nan",
]


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names(name, tmp_path):
    shape = zw.Sphere(0.1, name=name)
    m = zw.Mechanism(
        name=name,
        bodies=(zw.Body(name, zw.Revolute(name), mass=1, inertia=(1, 1, 1), geometry=(shape,)),),
        forces=(zw.Motor(name, name),),
        frames=(zw.Frame(f"{name} ", name),),
    )  # fmt: skip
    n = rewritten(m, tmp_path)
    assert (n.name, n.bodies[0].name, n.joints[0].name, n.inputs) == (name, name, name, (name,))
    assert n.bodies[0].geometry[0].name == name and n.frames[0].name == f"{name} "
    assert mujoco.MjModel.from_xml_path(str(tmp_path / "written.xml")).body(1).name == name


@pytest.mark.parametrize("name", ["a\x00b", "\x1b[31m", "a\ud800", "\uffff"])
def test_names_that_xml_cannot_contain(name, tmp_path):
    m = zw.Mechanism(bodies=(zw.Body(name, zw.Revolute("j"), mass=1, inertia=(1, 1, 1)),),
                     forces=(zw.GravityCompensation(name),))  # fmt: skip
    with pytest.raises(FormatError, match="XML cannot contain"):
        zw.write_mjcf(m, tmp_path / "m.xml")
    n = rewritten(m, tmp_path, strict=False)
    assert n.bodies[0].name.isprintable() and "\\" in n.bodies[0].name
    assert n.forces[0].body == n.bodies[0].name


def test_meshes_are_copied_once_with_all_digits(tmp_path):
    rng = np.random.default_rng(0)
    vertices = rng.normal(size=(4, 3))
    faces = ((0, 1, 2), (0, 2, 3), (0, 3, 1), (1, 3, 2))
    one = Mesh(name="one", file="package://x/Part 1.dae", vertices=vertices, faces=faces)
    other = Mesh(name="two", file="elsewhere/part_1.stl", vertices=vertices * 2, faces=faces)
    same = Mesh(name="three", file="third.stl", vertices=vertices, faces=faces)
    flat = Mesh(
        name="flat",
        vertices=((0, 0, 0), (1, 0, 0), (0, 1, 0), (1, 1, 0)),
        faces=((0, 1, 2), (1, 3, 2)),
        visual_only=True,
    )
    empty = Mesh(name="empty", file="gone.stl", visual_only=True)
    m = zw.Mechanism(
        bodies=(
            zw.Body(
                "b", zw.Revolute("j"), mass=1, inertia=(1, 1, 1), geometry=(one, other, same, flat, empty)
            ),
        )
    )
    report = zw.write_mjcf(m, tmp_path / "model.xml")
    files = sorted(path.name for path in (tmp_path / "model_meshes").iterdir())
    assert files == ["Part_1.obj", "flat.obj", "part_1_2.obj"]
    rows = [line.split() for line in (tmp_path / "model_meshes" / "Part_1.obj").read_text().splitlines()]
    assert np.array_equal(np.array([row[1:] for row in rows if row[0] == "v"], float), vertices)
    assert any("gone.stl" in note.what for note in report.of_kind("ignored"))
    n = loaded(tmp_path / "model.xml")
    for old, new in zip(m.bodies[0].geometry, n.bodies[0].geometry, strict=False):
        R, p = np.array(new.orientation, float), np.array(new.position, float)
        placed = np.asarray(new.vertices) @ R.T + p
        # MuJoCo keeps vertices in single precision, in the frame of the mesh's inertia, in another order
        distances = np.abs(placed[:, None] - np.asarray(old.vertices)[None]).max(axis=2)
        assert distances.min(axis=0).max() < 1e-6 and distances.min(axis=1).max() < 1e-6


def test_random_mechanisms_of_the_whole_suite_are_written_or_refused(tmp_path):
    """With screws: nothing but a screw is refused."""
    for seed in range(10):
        m = random_mechanism(seed)
        screws = {j.name for j in m.joints if j.kind == "screw"}
        report = zw.write_mjcf(m, tmp_path / "m.xml", strict=False)
        assert {note.where for note in report.of_kind("unsupported")} == {
            f"joint {name!r}" for name in screws
        }
        mujoco.MjModel.from_xml_path(str(tmp_path / "m.xml"))


def test_parts_that_no_writer_has_are_named():
    """As of a newer version of `Mechanism`, with a further field."""

    @dataclass
    class Newer:
        name: str
        bodies: tuple
        sensors: tuple

    m = Newer("m", (zw.Body("b"),), (zw.Frame("gyro"),))
    notes = ExportNotes(m, "MJCF")
    notes.other_parts()
    assert [str(note) for note in notes.notes] == ["ignored: it is not written to MJCF (sensors: 'gyro')"]
