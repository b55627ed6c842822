"""MJCF files that zwang writes: zwang and MuJoCo read the same mechanism, and nothing is dropped silently."""

from __future__ import annotations

import importlib.util
import warnings
from dataclasses import dataclass, replace
from pathlib import Path

import gymnasium
import mujoco
import numpy as np
import pytest

import zwang as zw
from tests.io.round_trip import (
    assert_equal,
    assert_same_dynamics,
    close,
    loaded,
    orders,
    rewritten,
)
from tests.io.test_urdf import real_robots
from tests.io.written_mechanisms import driven_mechanism, rich_mechanism
from tests.mechanisms import random_mechanism, random_state
from tests.oracles.mujoco_models import RandomModel, RandomTree, full_mass_matrix, state_of
from zwang.algebra.rotations import from_rpy
from zwang.dynamics.generalised_forces import passive_forces
from zwang.errors import FormatError
from zwang.io.export_notes import ExportNotes
from zwang.io.mjcf.read.read_mjcf import read_mjcf
from zwang.io.urdf.read_urdf import read_urdf
from zwang.mechanism.geometry import Mesh
from zwang.mechanism.samples import four_bar

GYM = sorted((Path(gymnasium.__file__).parent / "envs" / "mujoco" / "assets").glob("*.xml"))


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
SIZES = {0: 0, 1: 0, 2: 1, 3: 2, 4: 3, 5: 2, 6: 3, 7: 0}
"""How many of the sizes of a geom type have a meaning for contacts."""


def assert_same_in_mujoco(old, new, seed, shapes=1e-12):
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
    for name in ("timestep", "density", "viscosity", "wind", "integrator", "cone", "impratio", "solver",
                 "iterations", "tolerance", "disableflags", "enableflags"):  # fmt: skip
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
        ours, theirs = getattr(a, name), getattr(b, name)
        if name == "site_xpos":  # sensors of geoms become those of sites
            names = [new.site(k).name.removesuffix(" (site)") for k in range(new.nsite)]
            theirs = theirs[[names.index(old.site(k).name) for k in range(old.nsite)]]
        close(ours, theirs, name, shapes if name == "geom_xpos" else 1e-12)
    assert a.ncon == b.ncon and a.nefc == b.nefc
    scale = max(1.0, np.abs(a.qacc).max(initial=0))
    close(a.qacc / scale, b.qacc / scale, "accelerations with contacts", 1e-6)
    scale = max(1.0, np.abs(a.sensordata).max(initial=0))
    close(a.sensordata / scale, b.sensordata / scale, "sensor data", 1e-6)


@pytest.mark.parametrize("path", GYM, ids=lambda path: path.stem)
def test_models_of_gymnasium(path, tmp_path):
    m = loaded(path)
    drags = [force for force in m.forces if isinstance(force, zw.FluidDrag)]
    assert len(drags) == (3 if path.stem == "swimmer" else 0)
    n = rewritten(m, tmp_path)
    assert_equal(m, n)
    assert m.options == n.options and len(m.keyframes) == len(n.keyframes)
    old = mujoco.MjModel.from_xml_path(str(path))
    assert_same_in_mujoco(old, mujoco.MjModel.from_xml_path(str(tmp_path / "written.xml")), 1)


def test_models_of_dm_control(tmp_path):
    package = importlib.util.find_spec("dm_control")
    if package is None or package.origin is None:
        pytest.skip("dm_control is not installed")
    paths = sorted((Path(package.origin).parent / "suite").glob("*.xml"))
    assert len(paths) > 15
    for path in paths:
        m = loaded(path)
        assert_equal(m, rewritten(m, tmp_path))
        old, new = (mujoco.MjModel.from_xml_path(str(p)) for p in (path, tmp_path / "written.xml"))
        # the vertices of meshes are in single precision
        assert_same_in_mujoco(old, new, 1, shapes=1e-12 if path.stem != "dog" else 1e-6)


def test_a_fluid_has_the_forces_of_mujoco(tmp_path):
    """Wind and fluid around bodies with inertias in any axes, one of them with two equal moments."""
    R = np.array(from_rpy(0.3, -0.5, 1.1), float)
    bodies, drags = [], []
    for name, moments in (("a", (0.02, 0.03, 0.04)), ("b", (0.03, 0.03, 0.04))):
        I = R @ np.diag(moments) @ R.T
        bodies.append(
            zw.Body(name, zw.Free(f"{name}.free"), mass=2.0, com=(0.1, 0, 0.2), inertia=(I + I.T) / 2)
        )
        box = np.sqrt([6 * (sum(moments) - 2 * x) / 2.0 for x in moments])
        drags.append(zw.FluidDrag(name, tuple(box), 1.2, 0.4, (0.1, 0, 0.2), R, (1, -2, 3)))
    m = zw.Mechanism("kites", bodies, forces=drags)
    assert_equal(m, rewritten(m, tmp_path))
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "written.xml"))
    data = state_of(model, np.random.default_rng(1))
    assert np.abs(data.qfrc_passive).max() > 0.1
    with pytest.raises(FormatError, match="MJCF has one fluid"):
        zw.write_mjcf(m.replace(forces=drags[:1]), tmp_path / "one.xml")
    with pytest.raises(FormatError, match="MJCF has one fluid"):
        zw.write_mjcf(m.replace(forces=(drags[0], replace(drags[1], density=2.0))), tmp_path / "two.xml")


def test_a_fluid_around_ellipsoids_has_the_forces_of_mujoco(tmp_path):
    """Around shapes of every kind, around an ellipsoid that is no shape, and around the box of an inertia."""
    geoms = ("sphere .1", "capsule .05 .1", "cylinder .06 .1", "box .1 .05 .02", "ellipsoid .1 .05 .2")
    bodies = ""
    for k, (kind, size) in enumerate(geom.split(" ", 1) for geom in geoms):
        shape = f"type='{kind}' size='{size}' pos='.1 0 {0.1 * k}' euler='20 30 {k}'"
        fluid = f"fluidshape='ellipsoid' fluidcoef='.4 {0.1 * k} 1.5 1 .9'"
        joint_and_shapes = f"<freejoint/><geom {shape} {fluid}/><geom size='.05' pos='0 .2 0'/>"
        bodies += f"<body pos='{k} 0 1'>{joint_and_shapes}</body>"
    plain = "<body pos='0 1 1'><freejoint/><geom type='box' size='.1 .2 .3'/></body>"
    option = "<option density='1.2' viscosity='.1' wind='1 2 0'/>"
    text = f"<mujoco>{option}<worldbody>{bodies}{plain}</worldbody></mujoco>"
    path = tmp_path / "fluid.xml"
    path.write_text(text)
    m = loaded(path)
    drags = [force for force in m.forces if isinstance(force, zw.EllipsoidDrag)]
    assert len(drags) == len(geoms)
    n = rewritten(m, tmp_path)
    assert_equal(m, n)
    assert [len(b.geometry) for b in n.bodies] == [len(b.geometry) for b in m.bodies]
    old, new = (mujoco.MjModel.from_xml_path(str(p)) for p in (path, tmp_path / "written.xml"))
    assert_same_in_mujoco(old, new, 1)
    bare = m.replace(bodies=[replace(body, geometry=()) for body in m.bodies])
    q, v = bare.neutral, np.random.default_rng(2).normal(size=bare.nv)
    close(passive_forces(rewritten(bare, tmp_path), q, v), passive_forces(m, q, v), "fluid", 1e-14)
    with pytest.raises(FormatError, match="virtual masses"):
        other = replace(drags[0], virtual_mass=(1, 1, 1))
        zw.write_mjcf(m.replace(forces=[other, *m.forces[1:]]), tmp_path / "other.xml")


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
    found = [path for path in real_robots() if path.stem != "ur3"]  # a xacro
    assert len(found) > 60
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


@pytest.mark.parametrize("integrator, order", [("euler", np.inf), ("implicitfast", 2)])
def test_steps_of_a_free_joint_away_from_the_origin_differ_by_their_error_alone(integrator, order, tmp_path):
    body = zw.Body("b", zw.Free("f"), position=(1, 0, 0), mass=1, com=(0.1, 0, 0), inertia=(0.1, 0.2, 0.25))
    q, v = [0, 0, 0, 1, 0, 0, 0], [0.1, 0.2, 0.3, 1, 2, 3]
    steps = []
    for h in (2e-3, 1e-3):
        m = zw.Mechanism("m", [body], options=zw.Options(integrator=integrator, timestep=h))
        report = zw.write_mjcf(m, tmp_path / "m.xml")
        assert ("implicitfast" in str(report)) == (integrator == "implicitfast")
        old, new = (
            zw.simulate(x, q, v, duration=h, progress=False).v.values[0, -1]
            for x in (m, loaded(tmp_path / "m.xml"))
        )
        steps.append(np.abs(old - new).max())
    if order == np.inf:
        assert max(steps) < 1e-13
    else:
        assert np.log2(steps[0] / steps[1]) == pytest.approx(order, abs=0.05)


@pytest.mark.parametrize("active", [True, False])
def test_a_slide_joint_after_a_ball_joint_that_a_constraint_moves_has_its_own_body(active, tmp_path):
    """MuJoCo's accelerations, which are inexact in a file with both joints on one body."""
    joints = zw.Ball("turn"), zw.Prismatic("slide", axis=(1, 0, 0))
    body = zw.Body("b", joints, com=(0.1, 0.2, 0.3), mass=1, inertia=(0.1, 0.2, 0.25))
    leaf = zw.Body("c", zw.Revolute("j", axis=(0, 1, 0)), "b", (0, 0, 1), mass=1, inertia=(0.1, 0.2, 0.25))
    c = zw.Connect("c", ("c", (0.1, 0, 0.5)), ("world", (0.1, 0, 1.5)), zw.Softness())
    m = zw.Mechanism("m", [body, leaf], **{"constraints" if active else "inactive_constraints": [c]})
    n = rewritten(m, tmp_path)
    assert_equal(m, n)
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "written.xml"))
    data = mujoco.MjData(model)
    q, v, _, _ = random_state(m, 1)
    data.qpos[:], data.qvel[:] = q, v
    mujoco.mj_forward(model, data)
    expected = zw.constrained_dynamics(m, q, v, np.zeros(5)).acceleration
    close(data.qacc, expected, "accelerations", 1e-7 * np.abs(expected).max())
    free = m.replace(constraints=(), inactive_constraints=())
    assert len(rewritten(free, tmp_path).bodies) == 2


@pytest.mark.parametrize("flags", [(), ("filterparent",)])
def test_bodies_on_a_chain_have_the_contacts_that_mujoco_finds_without_it(flags, tmp_path):
    """Spheres around one point, on bodies that are fixed to a moving parent, to a mocap body, to the world,
    and to their children, which move by a ball joint, or by a ball and a hinge that need two bodies.
    """
    kinds = {"mass": 1, "inertia": (1, 1, 1)}

    def contacts(*more):
        bodies = []
        for root, joint in (("p", zw.Revolute("p")), ("m", zw.Fixed()), ("w", zw.Fixed())):
            child, name = (zw.Ball(f"{root}.ball"), *(zw.Revolute(f"{root}.{x}") for x in more)), f"{root}2"
            bodies += [
                zw.Body(root, joint, geometry=(zw.Sphere(0.1),), mocap=root == "m", **kinds),
                zw.Body(f"{root}1", parent=root, geometry=(zw.Sphere(0.2, name=f"{root}1"),), **kinds),
                zw.Body(name, child, root, geometry=(zw.Sphere(0.3),), **kinds),
                zw.Body(f"{root}3", parent=name, geometry=(zw.Sphere(0.4, name=f"{root}3"),), **kinds),
            ]
        given = (zw.ContactPair("pair", ("p1", "p3")), zw.ContactExclude(("p2", "p")))
        options = zw.Options(disabled=flags)
        zw.write_mjcf(zw.Mechanism("m", bodies, contacts=given, options=options), tmp_path / "m.xml")
        model = mujoco.MjModel.from_xml_path(str(tmp_path / "m.xml"))
        data = mujoco.MjData(model)
        mujoco.mj_forward(model, data)
        found = [[model.body(model.geom_bodyid[g]).name for g in c.geom] for c in data.contact]
        return sorted(map(sorted, found))

    found = contacts("hinge")
    assert found == contacts() and ["p1", "p3"] in found and ["w", "w2"] in found
    assert (["p", "p3"] in found) == bool(flags)


@pytest.mark.parametrize("x", [0.7, -0.7])
def test_polynomial_springs_on_differences_of_joints_are_tendons_in_mujoco(x, tmp_path):
    """tau = -(k1 x + k2 x^2 + k3 x^3) for x of either sign, also of a second spring on a joint."""
    bodies = [zw.Body(n, zw.Prismatic(n, (1, 0, 0)), mass=1, inertia=(1, 1, 1)) for n in "abc"]
    k, c = (3.0, 0.5, 2.0), (1.0, -0.4)
    springs = (zw.Spring("b", k, 0.2, relative_to="a"), zw.Spring("c", 5.0), zw.Spring("c", c, -0.3))
    m = zw.Mechanism("m", bodies, forces=springs)
    n = rewritten(m, tmp_path)
    assert [t.higher_stiffness for t in n.tendons] == [k[1:], c[1:]]
    q = 0.1, 0.1 + 0.2 + x, -0.3 + x
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "written.xml"))
    data = mujoco.MjData(model)
    data.qpos[:] = q
    mujoco.mj_forward(model, data)
    f, g = (sum(k * x**p for p, k in enumerate(ks, 1)) for ks in (k, c))
    close(data.qfrc_passive, (f, -f, -g - 5 * q[2]), "passive forces")
    with pytest.raises(FormatError, match="the spring on joint 'b': a spring of MJCF has at most 3 coeff"):
        zw.write_mjcf(m.replace(forces=[replace(springs[0], stiffness=(1, 2, 3, 4))]), tmp_path / "m.xml")


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


def test_inactive_equalities_keep_their_names(tmp_path):
    text = """<mujoco><worldbody><body name="a"><freejoint/><geom size=".1"/></body>
      <body name="b" pos="1 0 0"><freejoint/><geom size=".1"/></body></worldbody>
      <equality><connect name="point" body1="a" body2="b" anchor=".5 0 0" active="false"/>
      <weld name="pose" body1="a" body2="b"/></equality></mujoco>"""
    mechanism = read_mjcf("pair.xml", text=text)
    report = zw.write_mjcf(mechanism, tmp_path / "pair.xml")
    assert "2 equalities" in str(report) and "ignored" not in str(report)
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "pair.xml"))
    assert {model.equality(k).name: model.eq_active0[k] for k in range(model.neq)} == {"point": 0, "pose": 1}
    again = zw.load(tmp_path / "pair.xml")
    assert [c.name for c in again.inactive_constraints] == ["point"]


def test_couplings_that_are_switched_on_in_mujoco_hold_at_the_written_default_configuration(tmp_path):
    """The references move to `home`, and an inactive coupling with them: b = 0.1 + 0.7 a in MuJoCo, too."""
    kinds = {"mass": 1, "com": (0.3, 0, 0), "inertia": (0.1, 0.1, 0.1)}
    bodies = [zw.Body(x, zw.Revolute(x, (0, 1, 0)), **kinds) for x in "abc"]
    same = {"joint": "b", "to": "a", "coefficients": (0.1, 0.7), "softness": zw.Softness()}
    m = zw.Mechanism("m", bodies, constraints=[zw.JointCoupling("", **same)],
                     inactive_constraints=[zw.JointCoupling("", **same)], home=(0.4, -0.6, 0))  # fmt: skip
    n = rewritten(m, tmp_path)
    assert (len(n.constraints), len(n.inactive_constraints)) == (1, 1)
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "written.xml"))
    data = mujoco.MjData(model)
    data.eq_active[:] = 1
    data.qpos[:] = 0.2, 0.1 + 0.7 * 0.2, 0
    mujoco.mj_forward(model, data)
    close(data.efc_pos[:2], (0, 0), "residuals")


def test_inactive_constraints_that_mjcf_cannot_say_are_refused(tmp_path):
    """As active ones are: something else would act where `eq_active` or a parameter switches them on."""
    bodies = [zw.Body(x, zw.Revolute(x, (0, 1, 0)), mass=1, inertia=(1, 1, 1)) for x in "ab"]
    soft = zw.Softness((0.03, 0.9))
    unknown = (
        zw.JointCoupling("sextic", "b", "a", (0, 1, 0, 0, 0, 2.0), soft),
        zw.Distance("rod", ("a", (0, 0, 0)), ("b", (1, 0, 0)), 1, soft),
    )
    hard = zw.JointCoupling("hard", "b", "a", (0, 1, 0, 0, 0, 0))
    m = zw.Mechanism("m", bodies, inactive_constraints=(*unknown, hard))
    with pytest.raises(FormatError, match=r"(?s)'sextic': a polynomial.*'rod': MJCF has no.*'hard'.*hard"):
        zw.write_mjcf(m, tmp_path / "m.xml")
    assert [c.name for c in rewritten(m, tmp_path, strict=False).inactive_constraints] == ["hard"]
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "written.xml"))
    assert [model.equality(k).name for k in range(model.neq)] == ["hard"] and not model.eq_active0[0]
