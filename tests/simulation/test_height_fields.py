"""Contacts with height fields are MuJoCo's, on floats and compiled, with exact derivatives."""

import mujoco
import numpy as np
import pytest

import zwang as zw
from tests.simulation.test_noslip import after_steps
from zwang.api.compilation.programs import program_of
from zwang.errors import DescriptionError, LoadError, UnsupportedError
from zwang.io.mjcf.read.read_mjcf import read_mjcf

FIELD = """<hfield name="h" nrow="6" ncol="5" size="1 1.2 .3 .1" elevation="1 0 1 0 1 0 2 0 2 0 1 0 1 0 1 3
 0 1 0 2 1 2 1 0 0 1 0 0 1 2"/>"""
SHAPES = {
    "sphere": 'size=".2"',
    "capsule": 'type="capsule" size=".12 .2"',
    "ellipsoid": 'type="ellipsoid" size=".2 .15 .1"',
    "cylinder": 'type="cylinder" size=".15 .1"',
}


def scene(geom, more=""):
    return f"""<mujoco><option cone="elliptic"/><asset>{FIELD}</asset><worldbody>
    <geom name="terrain" type="hfield" hfield="h" euler="3 4 5"/>
    <body pos="0.1 0.05 .3" euler="10 20 30"><freejoint/><geom {geom}/></body>
    <body pos="-0.5 0.6 .33" euler="10 20 30"><freejoint/><geom {geom}/></body>{more}
    </worldbody></mujoco>"""


def exact_model(text):
    model = mujoco.MjModel.from_xml_string(text)
    model.opt.tolerance, model.opt.ccd_tolerance, model.opt.ccd_iterations = 1e-15, 1e-12, 200
    return model


@pytest.mark.parametrize("margin", ["", ' margin=".03"', ' margin=".02" gap=".05"'])
@pytest.mark.parametrize("kind", SHAPES)
def test_contacts_are_those_of_mujoco(kind, margin):
    text = scene(SHAPES[kind] + margin)
    model, m = exact_model(text), read_mjcf("terrain.xml", text=text)
    for steps in (0, 20):
        data = after_steps(model, steps)
        found = zw.contacts(m, data.qpos, data.qvel, np.zeros(model.nv))
        active = data.contact.dist < data.contact.includemargin
        assert len(found) == active.sum() > 0
        np.testing.assert_allclose([c.distance for c in found], data.contact.dist[active], atol=2e-6)
        a = zw.constrained_dynamics(m, data.qpos, data.qvel, np.zeros(model.nv)).acceleration
        scale = np.abs(data.qacc).max()
        np.testing.assert_allclose(a, data.qacc, atol=(1e-10 if kind == "sphere" else 1e-5) * scale)


def test_shapes_of_several_kinds_stand_on_a_field():
    other = f'<body pos="0.6 0.05 .3" euler="10 20 30"><freejoint/><geom {SHAPES["ellipsoid"]}/></body>'
    text = scene(SHAPES["capsule"], other)
    model, m = exact_model(text), read_mjcf("terrain.xml", text=text)
    data = after_steps(model, 20)
    assert data.ncon
    q, v, none = data.qpos.copy(), data.qvel.copy(), np.zeros(model.nv)
    a = zw.constrained_dynamics(m, q, v, none).acceleration
    np.testing.assert_allclose(a, data.qacc, atol=1e-5 * np.abs(data.qacc).max())
    compiled = zw.compile(m, threads=1).step(q, v, none)[1]
    mujoco.mj_step(model, data)
    np.testing.assert_allclose(compiled, data.qvel, atol=1e-5 * np.abs(data.qvel).max())


def test_compiled_steps_are_those_of_mujoco_and_have_exact_derivatives():
    text = f"""<mujoco><asset>{FIELD}</asset><worldbody><geom type="hfield" hfield="h"/>
    <body pos="-0.5 0.6 .3"><freejoint/><geom size=".2"/></body></worldbody></mujoco>"""
    model, m = exact_model(text), read_mjcf("terrain.xml", text=text)
    data = after_steps(model, 20)
    assert data.ncon
    q, v, none = data.qpos.copy(), data.qvel.copy(), np.zeros(model.nv)
    fast = zw.compile(m, threads=1)
    derivatives = fast.step_derivatives(q, v, none)
    mujoco.mj_step(model, data)
    np.testing.assert_allclose(derivatives.v, data.qvel, atol=1e-10)
    np.testing.assert_allclose(derivatives.q, data.qpos, atol=1e-10)
    h = 1e-6
    for k in range(3):
        unit = np.eye(m.nv)[k]
        ends = [
            fast.step_derivatives(fast.integrate_configuration(q, s * h * unit, 1.0), v, none).v
            for s in (1, -1)
        ]
        np.testing.assert_allclose(
            (ends[0] - ends[1]) / (2 * h), derivatives.A[m.nv :, k], atol=1e-5, rtol=1e-5
        )


def test_height_fields_survive_writing_and_json(tmp_path):
    field = zw.HeightField(heights=((0.5, 0.1, 0.2), (0.3, 0.4, 0.2)), extent=(1, 2), base=0.3)
    ball = zw.Body("ball", zw.Free("ball"), mass=1, inertia=(1, 1, 1), geometry=(zw.Sphere(0.1),))
    m = zw.Mechanism(bodies=(ball,), geometry=(field,), home=(0.2, 0.3, 0.3, 1, 0, 0, 0))
    assert zw.Mechanism.from_json(m.to_json()) == m
    zw.write_mjcf(m, tmp_path / "hills.xml")
    other = zw.load(tmp_path / "hills.xml")
    q, v = np.array(m.home), np.zeros(6)
    one, two = (zw.contacts(x, q, v, v) for x in (m, other))
    assert len(one) == len(two) > 0
    np.testing.assert_allclose([c.distance for c in one], [c.distance for c in two], atol=1e-6)
    np.testing.assert_allclose([c.position for c in one], [c.position for c in two], atol=1e-6)


def test_images_and_binary_files_are_read(tmp_path):
    heights = np.array([[0, 1, 2], [1, 3, 0]], np.float32)
    (tmp_path / "h.bin").write_bytes(np.array([2, 3], "<i4").tobytes() + heights.tobytes())
    text = """<mujoco><asset><hfield name="h" file="h.bin" size="1 1 3 .1"/></asset><worldbody>
    <geom type="hfield" hfield="h"/></worldbody></mujoco>"""
    (field,) = read_mjcf(str(tmp_path / "t.xml"), text=text).geometry
    np.testing.assert_allclose(np.asarray(field.heights), heights)
    (tmp_path / "h.bin").write_bytes(np.array([2, 3], "<i4").tobytes() + heights.tobytes()[:-1])
    with pytest.raises(LoadError, match="bytes, and not those of 2 x 3 samples"):
        read_mjcf(str(tmp_path / "t.xml"), text=text)


def test_what_mujoco_finds_otherwise_is_refused():
    with pytest.raises(UnsupportedError, match=r"line 4: the contact of a height field with geom 1, a box"):
        read_mjcf("terrain.xml", text=scene('type="box" size=".1 .1 .1"'))
    lenient = read_mjcf("terrain.xml", text=scene('type="box" size=".1 .1 .1"'), strict=False)
    assert any("exact depth" in note.what for note in lenient.report.notes)
    with pytest.raises(DescriptionError, match="2 x 2"):
        zw.HeightField(heights=((1.0, 2.0),))


LARGE = """<mujoco><asset><hfield name="h" nrow="120" ncol="90" size="3 4 .4 .1"/></asset><worldbody>
    <geom type="hfield" hfield="h"/><body><freejoint/><geom size=".09"/></body></worldbody></mujoco>"""


def test_worlds_stand_on_different_cells_of_a_large_field():
    """The heights are constants of the program, whose length does not depend on their number."""
    spec = mujoco.MjSpec.from_string(LARGE)
    y, x = np.meshgrid(np.linspace(-4, 4, 120), np.linspace(-3, 3, 90), indexing="ij")
    heights = (1 + np.sin(2 * x) * np.cos(3 * y)) / 2
    spec.hfields[0].userdata = heights.ravel()
    model = spec.compile()
    model.opt.tolerance, model.opt.ccd_tolerance = 1e-15, 1e-12
    mechanism = read_mjcf("large.xml", text=spec.to_xml())
    worlds, rng = zw.Worlds(mechanism, 19), np.random.default_rng(2)
    q = np.tile(np.array([0, 0, 0, 1.0, 0, 0, 0]), (19, 1))
    q[:, :2] = rng.uniform((-2.9, -3.9), (2.9, 3.9), (19, 2))
    q[:, 2] = 0.2 * (1 + np.sin(2 * q[:, 0]) * np.cos(3 * q[:, 1])) + 0.086
    worlds.reset(q=q)
    worlds.step(substeps=3)
    touching = 0
    for k, x in enumerate(q):
        data = mujoco.MjData(model)
        data.qpos[:] = x
        for _ in range(3):
            mujoco.mj_step(model, data)
        touching += data.ncon > 0
        np.testing.assert_allclose(worlds.q[k], data.qpos, atol=1e-6)
    assert touching > 10
    small = read_mjcf("small.xml", text=LARGE.replace('nrow="120" ncol="90"', 'nrow="12" ncol="9"'))
    programs = [program_of(m, ("step", 0.002, "euler")) for m in (mechanism, small)]
    sizes = [len(program.body.instructions) for program in programs]
    assert max(sizes) < 1.5 * min(sizes)
