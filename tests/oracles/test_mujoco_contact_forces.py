"""Contacts as records against MuJoCo's contacts and mj_contactForce, and the records of many worlds."""

import mujoco
import numpy as np
import pytest

import zwang as zw
from tests.cases import case
from tests.oracles.test_mujoco_kinds import CONTACTS, GAPS, OPTION
from zwang.io.mjcf.read.read_mjcf import read_mjcf


def states(text, count, spread):
    """The mechanism, and for random states MuJoCo's data at a converged solution."""
    mechanism, model = read_mjcf("zoo.xml", text=text), mujoco.MjModel.from_xml_string(text)
    rng, found = np.random.default_rng(5), []
    for _ in range(count):
        data = mujoco.MjData(model)
        mujoco.mj_integratePos(model, data.qpos, spread * rng.normal(size=model.nv), 1.0)
        data.qvel[:] = rng.normal(size=model.nv)
        for _ in range(8):  # restart from its own solution until it has converged
            mujoco.mj_forward(model, data)
            data.qacc_warmstart[:] = data.qacc
        found.append(data)
    return mechanism, model, found


def contact_forces(model, data):
    """MuJoCo's active contacts: (geom numbers, position, distance, frame, mj_contactForce)."""
    found = []
    for k, contact in enumerate(data.contact):
        if contact.efc_address >= 0:
            force = np.zeros(6)
            mujoco.mj_contactForce(model, data, k, force)
            found.append((tuple(contact.geom), contact.pos, contact.dist, contact.frame.reshape(3, 3), force))
    return found


def assert_equal(records, theirs):
    """Assert that the records are MuJoCo's contacts, in any order."""
    assert len(records) == len(theirs)
    scale = max([np.abs(force).max() for *_, force in theirs], default=1.0)
    left = list(theirs)
    for record in records:
        nearest = min(
            left,
            key=lambda c: np.abs(c[1] - record.position).max() + np.abs(c[3] - record.frame).max()
            + abs(c[2] - record.distance),
        )  # fmt: skip
        left = [c for c in left if c is not nearest]
        _, position, distance, frame, force = nearest
        np.testing.assert_allclose(record.position, position, atol=1e-9)
        np.testing.assert_allclose(record.frame, frame, atol=1e-9)
        np.testing.assert_allclose(record.distance, distance, atol=1e-9)
        np.testing.assert_allclose(record.force, force, rtol=0, atol=1e-8 * scale)


@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
@pytest.mark.parametrize("condim", [1, 3, 4, 6])
def test_forces_in_contact_axes_equal_mujoco(cone, condim):
    option = OPTION.format(cone=cone, impratio=3)
    mechanism, model, found = states(CONTACTS.format(option=option, condim=condim), 4, 0.05)
    count = 0
    for data in found:
        theirs = contact_forces(model, data)
        assert_equal(zw.contacts(mechanism, data.qpos, data.qvel, np.zeros(model.nv)), theirs)
        count += len(theirs)
    assert count > 8
    if condim in (3, 4):
        return  # compiled, those of 6 dimensions have all the operations
    states_of_all = [d.qpos for d in found], [d.qvel for d in found], np.zeros((len(found), model.nv))
    many = zw.contacts(mechanism, *states_of_all)
    for w, data in enumerate(found):
        assert_equal(many.records(w), contact_forces(model, data))
    assert np.isnan(many.position[~many.active]).all() and not many.force[~many.active].any()


@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
def test_contacts_within_margins_equal_mujoco(cone):
    mechanism, model, found = states(GAPS.format(option=OPTION.format(cone=cone, impratio=1)), 6, 0.03)
    for data in found:
        records = zw.contacts(mechanism, data.qpos, data.qvel, np.zeros(model.nv))
        assert_equal(records, contact_forces(model, data))


@pytest.mark.parametrize("name", ["ant", "humanoid"])
def test_forces_of_reference_models_equal_mujoco(name):
    """Stored states: bodies, positions, axes and forces."""
    stored = case("mujoco_oracle", name)
    mechanism = read_mjcf(f"{name}.xml", strict=False, text=stored["parameters"]["xml"])
    model, count = mujoco.MjModel.from_xml_string(stored["parameters"]["xml"]), 0
    model.opt.tolerance, model.opt.ls_tolerance, model.opt.iterations = 1e-15, 1e-10, 300
    for state in stored["reference"][::9]:
        data = mujoco.MjData(model)
        model.opt.cone = state["cone"] == "elliptic"
        data.qpos[:], data.qvel[:] = state["qpos"], state["qvel"]
        data.qfrc_applied[:] = state["qfrc_actuator"]
        for _ in range(8):
            mujoco.mj_forward(model, data)
            data.qacc_warmstart[:] = data.qacc
        options = mechanism.options.__class__(**{**vars(mechanism.options), "cone": state["cone"]})
        one = mechanism.replace(options=options)
        records = zw.contacts(one, data.qpos, data.qvel, state["qfrc_actuator"])
        assert_equal(records, contact_forces(model, data))
        numbers = {"world": 0} | {body.name: k + 1 for k, body in enumerate(mechanism.bodies)}
        pairs = {tuple(model.geom_bodyid[c.geom]) for c in data.contact if c.efc_address >= 0}
        assert {tuple(numbers[body] for body in record.bodies) for record in records} == pairs
        count += len(records)
    assert count > 4


@pytest.mark.parametrize("hard", [True, False])
def test_contact_forces_hold_a_box_on_a_slope(hard):
    """Newton's law: at rest the sum of all contact forces is minus the weight; floats and compiled agree."""
    touch = zw.Surface(hard=hard, friction=(1.0, 0.005, 0.0001))
    box = zw.Body(
        "box",
        zw.Free("free"),
        mass=2,
        inertia=(0.03, 0.04, 0.05),
        geometry=[zw.Box(0.3, 0.3, 0.3, surface=touch)],
    )
    slope = zw.Mechanism(
        "slope", [box], geometry=[zw.Plane(surface=touch)], gravity=(3.0, 0, -9.0), options=zw.Options()
    )
    q, v = np.array([0, 0, 0.15, 1, 0, 0, 0.0]), np.zeros(6)
    if not hard:
        run = zw.simulate(slope, q, v, duration=1.5, step=0.002, progress=False, record=750)
        q, v = run.q.values[0, -1], run.v.values[0, -1]
    records = zw.contacts(slope, q, v, np.zeros(6))
    assert len(records) == 4 and {r.bodies for r in records} == {("world", "box")}
    total = sum(record.world_force for record in records)
    np.testing.assert_allclose(total, [-6.0, 0, 18.0], atol=1e-8 if hard else 0.1)
    a = zw.constrained_dynamics(slope, q, v, np.zeros(6)).acceleration
    np.testing.assert_allclose(total + 2 * np.array([3.0, 0, -9.0]), 2 * a[:3], atol=1e-8)
    many = zw.contacts(slope, np.stack([q, q + np.eye(7)[2]]), np.stack([v, v]), np.zeros((2, 6)))
    assert many.records(1) == () and many.names[:4] == tuple(r.name for r in records)
    for one, other in zip(records, many.records(0), strict=True):
        np.testing.assert_allclose(one.force, other.force, atol=1e-8)
        np.testing.assert_allclose(one.position, other.position, atol=1e-12)


def test_a_mechanism_without_shapes_has_no_contacts():
    rod = zw.Mechanism(bodies=[zw.Body("rod", zw.Revolute("turn"), mass=1.0, inertia=(1, 1, 1))])
    assert zw.contacts(rod, [0.0], [0.0], [0.0]) == ()
    many = zw.contacts(rod, np.zeros((3, 1)), np.zeros((3, 1)), np.zeros((3, 1)))
    assert many.active.shape == (3, 0) and many.force.shape == (3, 0, 6)


@pytest.mark.parametrize("noslip", [0, 3])
@pytest.mark.parametrize(
    ("geom", "height"),
    [
        ('type="box" size=".1 .2 .1"', 0.1),
        ('type="sphere" size=".25"', 0.25),
        ('type="sphere" size=".25" margin=".25"', 0.5),
        ('type="capsule" size=".25 .25"', 0.5),
        ('type="sphere" size=".25"', 0.2505),
    ],
)
def test_contacts_at_exactly_the_margin_are_listed_without_force(geom, height, noslip):
    """Shapes that touch at the distance zero, as in home configurations of round numbers; and one that does
    not.
    """
    text = f"""<mujoco><option noslip_iterations="{noslip}"/><worldbody>
      <geom name="f" type="plane" size="1 1 1"/>
      <body name="b" pos="0 0 {height}"><freejoint/><geom {geom}/></body></worldbody>
      <sensor><contact name="c" geom1="f" data="found force dist" num="4"/></sensor></mujoco>"""
    m = mujoco.MjModel.from_xml_string(text)
    d = mujoco.MjData(m)
    mujoco.mj_forward(m, d)
    z = zw.load("touch.xml", text=text)
    contacts = zw.contacts(z, d.qpos, d.qvel, np.zeros(6))
    assert [c.distance for c in contacts] == pytest.approx([c.dist for c in d.contact], abs=1e-12)
    assert len(contacts) == d.ncon
    forces = np.zeros(6)
    for k, contact in enumerate(contacts):
        mujoco.mj_contactForce(m, d, k, forces)
        np.testing.assert_allclose(contact.force, forces, atol=1e-12)
    found = np.ravel(zw.sensors(z, d.qpos, d.qvel, np.zeros(6))["c"])
    np.testing.assert_allclose(found, d.sensordata, atol=1e-12)
    compiled = zw.compile(z).sensors([d.qpos], [d.qvel])["c"]
    np.testing.assert_allclose(np.ravel(compiled), d.sensordata, atol=1e-12)
