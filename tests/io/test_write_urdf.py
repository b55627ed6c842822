"""URDF files that zwang writes: zwang, Pinocchio and MuJoCo read the same mechanism; the rest is refused."""

from __future__ import annotations

import warnings
from dataclasses import replace

import mujoco
import numpy as np
import pytest

import zwang as zw
from tests.io.round_trip import assert_same_dynamics, assert_same_limits, close, loaded, orders
from tests.io.test_mjcf_refusals import silent_changes
from tests.io.test_urdf import real_robots
from tests.io.test_write_mjcf import HOSTILE
from tests.io.urdfs import joint, link, robot
from tests.io.written_mechanisms import rich_mechanism
from tests.mechanisms import random_mechanism, random_state
from tests.oracles.mujoco_models import full_mass_matrix
from zwang.algebra.rotations import from_quaternion, from_rpy
from zwang.errors import FormatError, ParameterError
from zwang.io.urdf.read_link import LINK_SURFACE, rotation_of
from zwang.io.urdf.read_urdf import read_urdf
from zwang.io.urdf.write_links import rpy_of
from zwang.mechanism.geometry import Mesh
from zwang.mechanism.samples import double_pendulum, furuta

KINDS = (zw.Revolute, zw.Prismatic, zw.Cylindrical, zw.Universal, zw.Planar, zw.Free)
pinocchio = pytest.importorskip("pinocchio", exc_type=ImportError)


def rewritten(m, folder, **settings):
    """The mechanism that zwang reads from the file that it writes."""
    zw.write_urdf(m, folder / "written.urdf", **settings)
    return loaded(folder / "written.urdf")


def of_urdf(seed):
    """A random mechanism with everything that URDF has."""
    m, rng = random_mechanism(seed, 6, KINDS), np.random.default_rng(seed + 500)

    def plain(joint):
        more = {"armature": 0}
        if joint.nq == 1:
            effort = float(rng.uniform(1, 9))
            more |= {
                "limits": tuple(sorted(rng.normal(size=2).tolist())), "friction": 0.3, "velocity_limit": 2.0,
                "effort_limit": effort, "actuator_range": (-effort, effort),
            }  # fmt: skip
        return replace(joint, **more)

    bodies = [replace(b, joint=tuple(plain(j) for j in b.joints)) if b.joints else b for b in m.bodies]
    dampers = tuple(zw.Damper(j.name, 0.1 + k) for k, j in enumerate(m.joints))
    return m.replace(bodies=bodies, forces=dampers, gravity=(0, 0, -9.81), home=tuple(
        0.0 if j.joint.nq == 1 else x for j in m.joints for x in m.neutral[j.q]))  # fmt: skip


@pytest.mark.parametrize("seed", range(20))
def test_random_mechanisms(seed, tmp_path):
    """All joints that URDF has, with positions, references, several on a body, and frames."""
    m = of_urdf(seed)
    n = rewritten(m, tmp_path)
    assert_same_dynamics(m, n, seed)
    assert_same_limits(m, n)
    velocities = {j.name: j.joint.velocity_limit for j in m.joints if j.joint.nq == 1}
    assert velocities == {j.name: j.joint.velocity_limit for j in n.joints if j.name in velocities}


@pytest.mark.parametrize("seed", range(10))
def test_pinocchio_computes_the_dynamics_of_the_mechanism(seed, tmp_path):
    """Pinocchio's mass matrix and bias of the file, against CRBA and RNEA on the mechanism."""
    m = of_urdf(seed)
    kinds = {"revolute", "prismatic", "cylindrical", "universal"}
    turns = [b for b in m.bodies if {j.kind for j in m.joints if j.body == b.name} <= kinds]
    bodies = [replace(b, joint=b.joint if b in turns else zw.Fixed()) for b in m.bodies]
    m = m.replace(bodies=bodies, home=None, forces=())
    zw.write_urdf(m, tmp_path / "m.urdf", strict=False)
    model = pinocchio.buildModelFromUrdf(str(tmp_path / "m.urdf"))
    data = model.createData()
    assert model.nv == m.nv
    read = loaded(tmp_path / "m.urdf")
    iq, iv = orders(m, read)
    q, v, _, _ = random_state(m, seed)
    names = read.speed_names
    index = [model.joints[model.getJointId(name)].idx_v for name in names]
    their_q = pinocchio.neutral(model)
    their_v = np.zeros(model.nv)
    for k, name in enumerate(names):  # a continuous joint of Pinocchio is (cos, sin)
        at = model.joints[model.getJointId(name)]
        x = q[iq[k]]
        their_q[at.idx_q : at.idx_q + at.nq] = (x,) if at.nq == 1 else (np.cos(x), np.sin(x))
        their_v[at.idx_v] = v[iv[k]]
    M = pinocchio.crba(model, data, their_q)
    M = (np.triu(M) + np.triu(M, 1).T)[np.ix_(index, index)]
    close(zw.mass_matrix(m, q)[np.ix_(iv, iv)], M, "mass matrix")
    bias = pinocchio.nonLinearEffects(model, data, their_q, their_v)[index]
    close(zw.bias_forces(m, q, v)[iv], bias, "bias forces")
    pinocchio.framesForwardKinematics(model, data, their_q)
    pose = data.oMf[model.getFrameId("tip")]
    close(zw.frame_pose(m, q, "tip").p, pose.translation, "frame")
    mujoco.MjModel.from_xml_path(str(tmp_path / "m.urdf"))


def on_a_plane(axis):
    """A plate on a plane that is normal to an axis, with a shape, a frame, and an arm on it."""
    joint = zw.Planar("plane", axis, (0.1, -0.2, 0.3), friction=0.4, velocity_limit=2.0, effort_limit=3.0)
    hinge = zw.Revolute("hinge", (1, 1, 0), limits=(-1, 2), velocity_limit=5.0, effort_limit=4.0,
                        actuator_range=(-4, 4))  # fmt: skip
    mass = {"mass": 0.6, "com": (0.2, 0.3, -0.1), "inertia": (0.1, 0.15, 0.2)}
    tilted = from_rpy(0.3, -0.5, 0.7)
    return zw.Mechanism(
        "sheet",
        bodies=(
            zw.Body("plate", joint, position=(1, 2, 3), orientation=tilted, geometry=(
                zw.Box(0.4, 0.2, 0.1, name="box", position=(0, 0, 0.5), surface=LINK_SURFACE),), **mass),
            zw.Body("arm", hinge, "plate", (0, 0.4, 0), **mass),
        ),
        frames=(zw.Frame("tip", "plate", (0.5, 0, 0), tilted),),
        forces=(zw.Damper("plane", 0.7),),
    )  # fmt: skip


PLANES = ((0, 0, 1), (0, 0, -1), (1, 0, 0), (0, -1, 0), (1, 2, -2))


@pytest.mark.parametrize("axis", PLANES)
def test_a_planar_joint_moves_along_the_same_axes(axis, tmp_path):
    """With the same parts on the body of the same name, which is fixed to a further link."""
    m = on_a_plane(axis)
    n = rewritten(m, tmp_path)
    assert m.coordinate_names == n.coordinate_names and m.speed_names == n.speed_names
    assert_same_dynamics(m, n)
    assert_same_limits(m, n)
    plane, read = m.joints[0].joint, n.joints[0].joint
    for name in ("friction", "velocity_limit", "effort_limit"):
        assert getattr(plane, name) == getattr(read, name)
    assert m.forces == n.forces
    assert [b.name for b in n.bodies if b.geometry] == ["plate"]
    (a,), (b,) = (x.body("plate").geometry for x in (m, n))
    assert (a.name, a.position, a.orientation) == (b.name, b.position, b.orientation)
    assert n.body("arm").parent == "plate"


@pytest.mark.parametrize("axis", PLANES)
def test_mujoco_and_pinocchio_read_the_axes_of_a_planar_joint(axis, tmp_path):
    """MuJoCo has its own axes in the plane, and Pinocchio always x and y, with velocities T v in the axes of
    the body, so that M = T^T M_P T and h = T^T (M_P dT/dt v + h_P).
    """
    m = on_a_plane(axis)
    q, v = np.array([0.4, 0.7, 0.9, -0.3]), np.array([-0.5, 0.2, 1.3, 0.8])
    M, h = zw.mass_matrix(m, q), zw.bias_forces(m, q, v)
    path = str(tmp_path / "m.urdf")
    zw.write_urdf(m, path)

    spec = mujoco.MjSpec.from_file(path)
    spec.compiler.fusestatic = False  # which would leave out the plate
    model = spec.compile()
    data = mujoco.MjData(model)
    data.qpos, data.qvel = q, v
    mujoco.mj_forward(model, data)
    close(M, full_mass_matrix(model, data), "MuJoCo's mass matrix", 1e-10)
    close(h, data.qfrc_bias, "MuJoCo's bias forces", 1e-10)

    model = pinocchio.buildModelFromUrdf(path)
    own = model.createData()
    c, s, w = np.cos(q[2]), np.sin(q[2]), v[2]
    T, rate = np.eye(4), np.zeros((4, 4))
    T[:2, :2], rate[:2, :2] = [[c, s], [-s, c]], [[-s * w, c * w], [-c * w, -s * w]]
    their_q = np.array([q[0], q[1], c, s, q[3]])
    theirs = pinocchio.crba(model, own, their_q)
    close(M, T.T @ (np.triu(theirs) + np.triu(theirs, 1).T) @ T, "Pinocchio's mass matrix")
    close(h, T.T @ pinocchio.rnea(model, own, their_q, T @ v, rate @ v), "Pinocchio's bias forces")
    pinocchio.framesForwardKinematics(model, own, their_q)
    for name in ("plate", "arm", "tip"):
        pose = zw.frame_pose(m, q, name)
        found = own.oMf[model.getFrameId(name, pinocchio.FrameType.BODY)]
        close(pose.p, found.translation, name)
        close(pose.R, found.rotation, name)
        close(pose.p, data.body(name).xpos, name)
        close(pose.R, data.body(name).xmat.reshape(3, 3), name)


def test_robots_of_example_robot_data(tmp_path):
    found = [path for path in real_robots() if path.stat().st_size < 25_000]
    assert len(found) > 20
    skipped = {"ur3", "romeo", "romeo_laas_small"}  # a xacro; robots to which an armature is added
    for path in (path for path in found if path.stem not in skipped):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            m = read_urdf(path, strict=False, meshes=False)
        n = rewritten(m, tmp_path)
        assert m.coordinate_names == n.coordinate_names and m.constraints == n.constraints
        assert_same_dynamics(m, n)
        assert_same_limits(m, n)
        pinocchio.buildModelFromUrdf(str(tmp_path / "written.urdf"))
        mujoco.MjModel.from_xml_path(str(tmp_path / "written.urdf"))


def test_the_root_link_of_a_urdf_stays_the_root(tmp_path):
    text = robot(link("base"), link("arm"), joint("j", "base", "arm"))
    (tmp_path / "a.urdf").write_text(text)
    n = rewritten(loaded(tmp_path / "a.urdf"), tmp_path)
    assert [b.name for b in n.bodies] == ["base", "arm"]
    assert 'link name="world"' not in (tmp_path / "written.urdf").read_text()
    floating = loaded(tmp_path / "a.urdf", base="free")
    assert_same_dynamics(floating, rewritten(floating, tmp_path))


def test_mimic_joints_and_references(tmp_path):
    """q2 - r2 = 0.1 + 2 (q1 - r1) is, in the coordinates of URDF, q2 = r2 + 0.1 - 2 r1 + 2 q1."""
    kinds = {"mass": 1, "com": (0.1, 0.2, 0.3), "inertia": (1, 1, 1)}
    m = zw.Mechanism(
        bodies=(
            zw.Body("a", zw.Revolute("q1", (1, 2, 3), (0.1, 0, 0), reference=0.3), **kinds),
            zw.Body("b", zw.Prismatic("q2", (0, 1, 1), reference=-0.2), "a", (1, 0, 0), **kinds),
        ),
        constraints=(zw.JointCoupling("c", "q2", "q1", (0.1, 2)),),
        home=(0, 0),
    )
    n = rewritten(m, tmp_path)
    assert_same_dynamics(m, n)
    (c,) = n.constraints
    assert (c.joint, c.to, c.softness) == ("q2", "q1", None)
    close(c.coefficients, (-0.2 + 0.1 - 2 * 0.3, 2), "coefficients")


def test_infinite_limits_are_large_numbers_and_a_capsule_is_three_shapes(tmp_path):
    m = zw.Mechanism(
        bodies=(
            zw.Body("a", zw.Prismatic("x"), mass=1, inertia=(1, 1, 1), geometry=(
                zw.Capsule(0.1, 0.4, color=(1, 0, 0, 1), position=(0, 0, 1), orientation=(0.5, 0.5, 0.5, 0.5),
                           surface=zw.Surface(contype=0)),)),
        )
    )  # fmt: skip
    n = rewritten(m, tmp_path)
    assert n.joints[0].joint.limits == (-1e10, 1e10) and n.joints[0].joint.velocity_limit == 1e10
    shapes = n.bodies[0].geometry
    assert [type(s).__name__ for s in shapes] == ["Cylinder", "Sphere", "Sphere"] * 2
    assert [s.visual_only for s in shapes] == [False] * 3 + [True] * 3
    ends = sorted(tuple(np.round(s.position, 12)) for s in shapes[1:3])
    assert ends == [(-0.2, 0, 1), (0.2, 0, 1)]  # the z axis of the capsule is the x axis of the body


def test_massless_and_point_bodies_are_read_by_mujoco(tmp_path):
    m = double_pendulum()
    assert_same_dynamics(m, rewritten(m, tmp_path))
    mujoco.MjModel.from_xml_path(str(tmp_path / "written.urdf"))


@pytest.mark.parametrize("seed", range(20))
def test_inertias_on_the_edge_of_the_triangle_inequality_are_read_by_mujoco(seed, tmp_path):
    """Rods, plates and points in any attitude, with others fixed to them, whose inertias MuJoCo adds."""
    rng = np.random.default_rng(seed)
    bodies = []
    for k in range(6):
        a, b = rng.uniform(size=2) * 10.0 ** rng.uniform(-7, 1)
        moments = [(a, b, a + b), (0, a, a), (a, a, a), (0, 0, 0)][k % 4]
        R = from_rpy(*rng.normal(size=3))
        bodies.append(
            zw.Body(
                f"b{k}",
                zw.Fixed() if k % 2 else zw.Revolute(f"j{k}", tuple(rng.normal(size=3))),
                f"b{k - 1}" if k else "world",
                tuple(rng.normal(size=3)),
                mass=float(rng.uniform(0.1, 2)),
                com=tuple(rng.normal(size=3)) if k > 2 else (0, 0, 0),
                inertia=R @ np.diag(moments) @ R.T,
            )
        )
    m = zw.Mechanism("edges", bodies)
    assert_same_dynamics(m, rewritten(m, tmp_path), seed)
    mujoco.MjModel.from_xml_path(str(tmp_path / "written.urdf"))


@pytest.mark.parametrize("seed", range(300))
def test_roll_pitch_and_yaw_of_every_rotation(seed):
    """Also near a pitch of a quarter turn, where the formula with asin is accurate to 1e-8 only."""
    rng = np.random.default_rng(seed)
    q = rng.normal(size=4)
    R = from_quaternion(q / np.linalg.norm(q))
    if seed % 3:
        near = np.pi / 2 + rng.choice([0, 1e-9, -1e-6, 1e-4]) * rng.normal()
        R = from_rpy(rng.normal(), rng.choice([-1, 1]) * near, rng.normal()).astype(float)
    close(R, from_rpy(*rpy_of(R)), "rotation", 1e-14)


def test_quarter_turns_are_exact():
    for axes in ((1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 1, 0), (1, 1, 1)):
        R = rotation_of([x * np.pi / 2 for x in axes])
        assert rotation_of(rpy_of(R)) == R


# ------------------------------------------------------------------------------- what URDF cannot say


def test_no_number_is_dropped_silently(tmp_path, monkeypatch):
    """Every number of a mechanism is in the file, or a note names its part."""
    monkeypatch.setattr("os.fsync", lambda file: None)
    m = rich_mechanism()
    joint = replace(m.bodies[1].joint, actuator_range=None, effort_limit=3.0, velocity_limit=2.0)
    body = replace(m.bodies[1], joint=joint)
    coupling = zw.JointCoupling("mimic x", "x", "turn", (0.1, 2))
    m = m.replace(bodies=(m.bodies[0], body, *m.bodies[2:]), constraints=(*m.constraints, coupling))
    found, tried = silent_changes(m, tmp_path, zw.write_urdf, ".urdf")
    # parts that are not written, and are named in the report with or without the change
    omitted = {name for name, _ in found}
    assert omitted <= {
        "Actuator", "Muscle", "Pid", "Motor", "Spring", "PointSpring", "Wrench", "GravityCompensation",
        "FluidDrag",
        "Tendon",
        "Wrap", "Connect", "Weld", "TendonCoupling", "ContactPair", "Keyframe", "Softness", "Surface",
        "Ellipsoid", "Ball", "Plane", "Mechanism", "JointCoupling", "Damper",
    }  # fmt: skip
    assert {field for name, field in found if name == "Mechanism"} <= {"gravity", "home"}
    report = zw.write_urdf(m, tmp_path / "m.urdf", strict=False)
    named = " ".join(str(note) for note in report.notes)
    for part in (*m.forces, *m.tendons, *m.constraints, *m.keyframes):
        name = getattr(part, "name", None) or getattr(part, "joint", None) or getattr(part, "body", None)
        assert name is None or repr(name) in named or isinstance(part, zw.Damper) or part is coupling
    assert tried > 100


def test_a_refusal_names_every_part_and_writes_nothing(tmp_path):
    m = rich_mechanism()
    with pytest.raises(FormatError) as error:
        zw.write_urdf(m, tmp_path / "m.urdf")
    text = str(error.value)
    for words in ("Motor 'motor'", "tendon 'rope'", "Connect 'pin'", "keyframe 'start'", "gravity", "options",
                  "joint 'wrist': URDF has no ball joint", "armature (0.1)", "contact pair 'ball' and 'tube'",
                  "box 'box'", "strict=False"):  # fmt: skip
        assert words in text, words
    assert not list(tmp_path.iterdir())
    n = rewritten(m, tmp_path, strict=False)
    assert {b.name for b in m.bodies} | {f.name for f in m.frames} <= {b.name for b in n.bodies}


def test_a_joint_has_one_mimic_and_no_cycle(tmp_path):
    kinds = {"mass": 1, "inertia": (1, 1, 1)}
    bodies = tuple(zw.Body(x, zw.Revolute(x, limits=(0, 1)), **kinds) for x in "abc")
    couplings = (
        zw.JointCoupling("1", "a", "b"),
        zw.JointCoupling("2", "a", "c"),
        zw.JointCoupling("3", "b", "a"),
    )
    m = zw.Mechanism(bodies=bodies, constraints=couplings)
    with pytest.raises(FormatError, match=r"(?s)'2'.*has one mimic.*'3'.*cannot follow itself"):
        zw.write_urdf(m, tmp_path / "m.urdf")
    assert len(rewritten(m, tmp_path, strict=False).constraints) == 1


@pytest.mark.parametrize(
    ("effort", "given", "read"),
    [
        (2.0, (-2, 2), (-2, 2)), (None, (-2, 2), (-2, 2)), (0, None, None), (np.inf, None, None),
        (2.0, None, (-2, 2)), (2.0, (-1, 3), (-2, 2)), (None, (0, 0), None), (0, (0, 0), None),
    ],
)  # fmt: skip
def test_effort_limits_are_the_actuator_ranges_that_mujoco_reads(effort, given, read, tmp_path):
    """An effort limit that does not act on the joint, or a range of other ends, is refused."""
    joint = zw.Revolute("j", limits=(-1, 1), velocity_limit=3.0, effort_limit=effort, actuator_range=given)
    m = zw.Mechanism(bodies=(zw.Body("b", joint, mass=1, inertia=(1, 1, 1)),))
    if given != read:
        with pytest.raises(FormatError, match="joint 'j': a URDF has one effort limit"):
            zw.write_urdf(m, tmp_path / "m.urdf")
    zw.write_urdf(m, tmp_path / "m.urdf", strict=given == read)
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "m.urdf"))
    limited = model.jnt_actfrclimited[0] and model.jnt_actfrcrange[0, 1] < 1e10
    assert (tuple(model.jnt_actfrcrange[0]) if limited else None) == read


def test_inactive_constraints_are_named_in_the_report(tmp_path):
    """Also those of tendons, which URDF does not have either."""
    body = zw.Body("a", zw.Revolute("a"), mass=1, inertia=(1, 1, 1))
    coupling = zw.TendonCoupling("wire", "t", None, (0.1,), zw.Softness())
    m = zw.Mechanism(bodies=(body,), tendons=(zw.Tendon("t", {"a": 1}),), inactive_constraints=(coupling,))
    report = zw.write_urdf(m, tmp_path / "m.urdf", strict=False)
    assert "inactive_constraints: 'wire'" in {note.where for note in report.of_kind("ignored")}
    mujoco.MjModel.from_xml_path(str(tmp_path / "m.urdf"))


def test_symbols_without_values_are_named(tmp_path):
    with pytest.raises(ParameterError, match="URDF contains numbers only"):
        zw.write_urdf(furuta(), tmp_path / "m.urdf", strict=False)


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names(name, tmp_path):
    shape = zw.Sphere(0.1, name=name.strip(), visual_only=True)
    m = zw.Mechanism(
        name=name.strip(),
        bodies=(zw.Body(name, zw.Revolute(name), mass=1, inertia=(1, 1, 1), geometry=(shape,)),),
    )
    n = rewritten(m, tmp_path)
    assert (n.name, n.bodies[0].name, n.joints[0].name) == (name.strip(), name, name)
    assert n.bodies[0].geometry[0].name == shape.name
    if name.isprintable() and name.strip() == name:
        assert name in pinocchio.buildModelFromUrdf(str(tmp_path / "written.urdf")).names


@pytest.mark.parametrize("name", ["a\x00b", "\x1b[31m", "a\ud800", " "])
def test_names_that_urdf_cannot_contain(name, tmp_path):
    m = zw.Mechanism(bodies=(zw.Body(name, zw.Revolute("j"), mass=1, inertia=(1, 1, 1)),))
    with pytest.raises(FormatError, match="URDF cannot contain such a name"):
        zw.write_urdf(m, tmp_path / "m.urdf")
    assert rewritten(m, tmp_path, strict=False).bodies[0].name.strip()


def test_meshes_are_copied_with_all_digits(tmp_path):
    vertices = np.random.default_rng(0).normal(size=(4, 3))
    faces = ((0, 1, 2), (0, 2, 3), (0, 3, 1), (1, 3, 2))
    mesh = Mesh(
        file="package://p/hand.dae", vertices=vertices, faces=faces, scale=(2.0, 2.0, 2.0), visual_only=True
    )
    m = zw.Mechanism(bodies=(zw.Body("b", zw.Revolute("j"), mass=1, inertia=(1, 1, 1), geometry=(mesh,)),))
    n = rewritten(m, tmp_path)
    (read,) = n.bodies[0].geometry
    assert read.file == "written_meshes/hand.obj"
    assert read.vertices == mesh.vertices and read.faces == mesh.faces
    path = str(tmp_path / "written.urdf")
    model = pinocchio.buildModelFromUrdf(path)
    geometry = pinocchio.buildGeomFromUrdf(model, path, pinocchio.GeometryType.VISUAL, [str(tmp_path)])
    assert geometry.ngeoms == 1
    mujoco.MjModel.from_xml_path(path)


@pytest.mark.parametrize("seed", range(5))
def test_yourdfpy_computes_the_poses_of_the_mechanism(seed, tmp_path):
    yourdfpy = pytest.importorskip("yourdfpy")
    m = of_urdf(seed)
    two_or_more = {j.body for j in m.joints if j.kind in ("planar", "free")}
    bodies = [replace(b, joint=zw.Fixed()) if b.name in two_or_more else b for b in m.bodies]
    m = m.replace(bodies=bodies, home=None, forces=())
    n = rewritten(m, tmp_path, strict=False)
    read = yourdfpy.URDF.load(str(tmp_path / "written.urdf"))
    q = np.random.default_rng(seed).normal(size=n.nq)
    read.update_cfg(dict(zip(n.coordinate_names, q.tolist(), strict=True)))
    at = np.empty(m.nq)
    at[orders(m, n)[0]] = q
    for body in m.bodies:
        pose, found = zw.frame_pose(m, at, body.name), read.get_transform(body.name, "world")
        close(found[:3, :3], pose.R, body.name)
        close(found[:3, 3], pose.p, body.name)
