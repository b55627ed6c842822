"""Parts of a mechanism that an MJCF file cannot say are refused by name, and nothing is dropped silently."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import fields, is_dataclass, replace

import mujoco
import numpy as np
import pytest

import zwang as zw
from tests.io.round_trip import (
    assert_equal,
    close,
    loaded,
    rewritten,
)
from tests.io.written_mechanisms import rich_mechanism
from zwang.errors import ArgumentError, FormatError, ParameterError, WriteError
from zwang.mechanism.geometry import Mesh
from zwang.mechanism.samples import furuta
from zwang.scalar import symbol

# ------------------------------------------------------------------------------- nothing silently dropped


HARDLY = ("softness", "friction_softness")  # the fields of which the margin has no meaning


def has_meaning(part, name):
    """Whether a field of this part has a meaning of its own."""
    if name in ("scale", "report", "simple", "unchecked_inertia"):
        return False
    if isinstance(part, zw.Prismatic) and name == "position":
        return False
    if isinstance(part, zw.Actuator):
        affine = part.muscle is None and part.pid is None
        return part.slider is not None if name == "rod" else affine or name not in ("gain", "bias")
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
    "the fluid drag of body 'a'": zw.FluidDrag("a", (1, 1, 1), density=1),
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
    (note,) = report.of_kind("unsupported")
    assert "strict=False" not in note.what  # which was given
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
    with pytest.raises(ParameterError, match=r"symbols without values, .*subs\(.*'J_p1': ..., "):
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


def test_a_weld_of_two_points_of_one_body_is_written_between_sites(tmp_path):
    """MuJoCo reads no weld of a body with itself."""
    text = """<mujoco><worldbody><body name="b"><freejoint/><geom size=".1"/><site name="s" pos=".1 0 0"/>
      <site name="u" pos="0 .1 0" euler="10 20 30"/></body></worldbody>
      <equality><weld name="w" site1="s" site2="u" torquescale=".7"/></equality></mujoco>"""
    mechanism = zw.load("one.xml", text=text)
    again = rewritten(mechanism, tmp_path)
    models = mujoco.MjModel.from_xml_string(text), mujoco.MjModel.from_xml_path(str(tmp_path / "written.xml"))
    data = [mujoco.MjData(model) for model in models]
    for model, d in zip(models, data, strict=True):
        mujoco.mj_forward(model, d)
    close(data[1].efc_pos, data[0].efc_pos, "residuals")
    found, original = again.constraints[0], mechanism.constraints[0]
    close(found.orientation, original.orientation, "orientation")
    assert replace(found, orientation=original.orientation) == original
