"""Bodies, joints, shapes and frames of a compiled MJCF model."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any, Literal

import numpy as np

from zwang.io.joint_names import renamed_joints
from zwang.io.mjcf.mujoco_library import SLEEP_POLICY, mujoco, numbers_of
from zwang.io.mjcf.read.compiled_model import MjcfModel
from zwang.io.mjcf.solver_parameters import softness_of, solref_of
from zwang.io.structural_numbers import matrix_of, nearest_structural
from zwang.mechanism.bodies import Body, Frame
from zwang.mechanism.geometry import (
    Box,
    Capsule,
    Cylinder,
    Ellipsoid,
    Geometry,
    HeightField,
    Mesh,
    MeshHull,
    Plane,
    Sphere,
    Surface,
    wrong_faces,
)
from zwang.mechanism.joints import Ball, Fixed, Free, Joint, Prismatic, Revolute
from zwang.mechanism.simple_bodies import simple_bodies

GEOM, JOINT = numbers_of(mujoco.mjtGeom), numbers_of(mujoco.mjtJoint)
KINDS: dict[int, type[Joint]] = {
    JOINT.mjJNT_FREE: Free, JOINT.mjJNT_BALL: Ball, JOINT.mjJNT_HINGE: Revolute, JOINT.mjJNT_SLIDE: Prismatic,
}  # fmt: skip
"""The classes of joints by the numbers of their types."""


def zeroed(values: Any) -> tuple[Any, ...]:
    """The numbers as a tuple in which zeros are integers, that is, structural zeros."""
    return tuple(float(x) if x != 0 else 0 for x in np.asarray(values).reshape(-1))


def bodies(source: MjcfModel) -> tuple[Body, ...]:
    """All bodies other than the world, in the order of the file, with their joints and shapes."""
    found = []
    for i in range(1, source.model.nbody):
        with source.at("body", i):
            found.append(_body(source, i))
    return _with_simple_marks(source, found)


def _with_simple_marks(source: MjcfModel, found: list[Body]) -> tuple[Body, ...]:
    """The bodies, with the field `simple` set where MuJoCo and the rule of `simple_bodies` differ."""
    by_rule, marks = simple_bodies(found), source.model.body_simple[1:] == 2
    return tuple(
        body if bool(simple) == (body.name in by_rule) else replace(body, simple=bool(simple))
        for body, simple in zip(found, marks, strict=True)
    )


def _body(source: MjcfModel, i: int) -> Body:
    m = source.model
    joints = joints_of(source, i)
    free = any(isinstance(joint, Free) for joint in joints)  # the coordinates of a free joint are the pose
    if m.body_mocapid[i] >= 0:
        source.note(
            "ignored",
            f"mocap body {source.name('body', i)!r} is fixed at its pose in the file, unless "
            "zw.with_mocap_parameters makes its pose a parameter",
            source.location("body", i),
        )
    mass = float(m.body_mass[i])
    return Body(
        name=source.name("body", i),
        joint=joints or Fixed(),
        parent=source.name("body", int(m.body_parentid[i])),
        position=(0, 0, 0) if free else zeroed(m.body_pos[i]),
        orientation=matrix_of((1, 0, 0, 0) if free else m.body_quat[i]),
        mass=mass if mass else 0,
        com=zeroed(m.body_ipos[i]),  # where the inverse weight is computed, also without mass
        inertia=_inertia(m.body_inertia[i], m.body_iquat[i]),
        geometry=shapes_of(source, i),
        mocap=bool(m.body_mocapid[i] >= 0),
        sleep=_sleep(m, i),
    )


def _sleep(m: Any, i: int) -> Literal["auto", "never", "allowed", "init"]:
    """The attribute `sleep` of a body, which the first body with joints of a kinematic tree may have."""
    tree = int(m.body_treeid[i])
    if SLEEP_POLICY is None or tree < 0 or m.dof_bodyid[m.tree_dofadr[tree]] != i:
        return "auto"
    policy = int(m.tree_sleep_policy[tree])
    if policy == SLEEP_POLICY.mjSLEEP_NEVER:
        return "never"
    if policy == SLEEP_POLICY.mjSLEEP_INIT:
        return "init"
    return "allowed" if policy == SLEEP_POLICY.mjSLEEP_ALLOWED else "auto"


def _inertia(moments: Any, quaternion: Any) -> tuple[tuple[Any, ...], ...]:
    """The inertia matrix in the axes of the body, exactly symmetric, from principal moments and axes."""
    if moments[0] == moments[1] == moments[2]:
        return tuple(zeroed(row) for row in np.diag(moments))
    R = np.array(matrix_of(quaternion), float)
    inertia = R @ np.diag(moments) @ R.T
    return tuple(zeroed(row) for row in (inertia + inertia.T) / 2)


def rename_joints(source: MjcfModel) -> None:
    """Give joints with the name of a coordinate or velocity of another joint another name, and note it."""
    numbers = {source.name("joint", j): j for j in range(source.model.njnt)}
    kinds = {name: KINDS[int(source.model.jnt_type[j])] for name, j in numbers.items()}
    for name, new in renamed_joints(kinds).items():
        j = numbers[name]
        source.names["joint"][j] = new.name
        source.note("repaired", new.message, source.location("joint", j))


def joints_of(source: MjcfModel, body: int) -> tuple[Joint, ...]:
    """The joints of body number `body`, in their order."""
    m = source.model
    start, count = int(m.body_jntadr[body]), int(m.body_jntnum[body])
    found = []
    for j in range(start, start + count):
        with source.at("joint", j):
            found.append(_joint(source, j))
    return tuple(found)


def _joint(source: MjcfModel, j: int) -> Joint:
    m = source.model
    kind = int(m.jnt_type[j])
    dof = int(m.jnt_dofadr[j])
    where = source.location("joint", j)
    if m.jnt_springyield[j] > 0:
        source.unsupported(f"the plastic spring (springyield) of joint {source.name('joint', j)!r}", where)
    limits = None
    if m.jnt_limited[j] and kind != JOINT.mjJNT_FREE:
        limits = tuple(float(x) for x in m.jnt_range[j])
    numbers = dict(
        armature=_number(m.dof_armature[dof] + _rotor_inertia(source, j)),
        friction=_number(m.dof_frictionloss[dof]),
        friction_softness=softness_of(m.dof_solref[dof], m.dof_solimp[dof]),
        actuator_gravity_compensation=bool(m.jnt_actgravcomp[j]),
        actuator_range=_actuator_range(source, j),
    )
    if kind == JOINT.mjJNT_FREE:
        return Free(source.name("joint", j), **numbers)
    numbers |= dict(
        limits=limits,
        position=zeroed(m.jnt_pos[j]),
        limit_softness=softness_of(m.jnt_solref[j], m.jnt_solimp[j], m.jnt_margin[j]),
    )
    if kind == JOINT.mjJNT_BALL:
        return Ball(source.name("joint", j), **numbers)
    numbers |= dict(axis=_axis(m.jnt_axis[j]), reference=_number(m.qpos0[m.jnt_qposadr[j]]))
    return KINDS[kind](source.name("joint", j), **numbers)


def _actuator_range(source: MjcfModel, j: int) -> tuple[float, ...] | None:
    """The range of the sum of all actuator forces on joint j.

    Without actuation the sum is zero, also that of the gravity compensation that the actuators carry.
    """
    m = source.model
    scalar = m.jnt_type[j] in (JOINT.mjJNT_HINGE, JOINT.mjJNT_SLIDE)
    limits = _numbers(m.jnt_actfrcrange[j]) if scalar and m.jnt_actfrclimited[j] else None
    if source.without_actuation and (m.jnt_actgravcomp[j] or (limits and not limits[0] <= 0 <= limits[1])):
        return (0.0, 0.0)
    return limits


def _rotor_inertia(source: MjcfModel, joint: int) -> float:
    """The armature that actuators add to a joint: the inertia of the rotor times the square of the gear."""
    m = source.model
    actuators = source.actuators_on_joints.get(joint, ())
    return sum(float(m.actuator_armature[k] * m.actuator_gear[k][0] ** 2) for k in actuators)


def _axis(axis: Any) -> tuple[Any, ...]:
    return tuple(nearest_structural(x) for x in axis)


def _number(x: Any) -> Any:
    return float(x) if x != 0 else 0


def _numbers(values: Any) -> tuple[float, ...]:
    return tuple(float(x) for x in values)


def shapes_of(source: MjcfModel, body: int) -> tuple[Geometry, ...]:
    """The shapes of body number `body` (0 is the world), in their order."""
    m = source.model
    start, count = int(m.body_geomadr[body]), int(m.body_geomnum[body])
    found = []
    for g in range(start, start + count):
        with source.at("geom", g):
            shape = _shape(source, g)
        if shape is not None:
            found.append(shape)
    return tuple(found)


def _shape(source: MjcfModel, g: int) -> Geometry | None:
    m = source.model
    kind, where = int(m.geom_type[g]), source.location("geom", g)
    name = m.geom(g).name
    title = f"geom {name!r}" if name else f"geom {g}"
    if kind == GEOM.mjGEOM_SDF:
        what = f"the signed distance field of {title}"
        if m.geom_contype[g] or m.geom_conaffinity[g]:
            source.unsupported(what, where)
        else:
            source.note("ignored", what, where)
        return None
    if np.any(m.geom_adhesion[g]):
        source.unsupported(f"the adhesion of {title}", where)
    common = dict(
        name=name,
        position=zeroed(m.geom_pos[g]),
        orientation=matrix_of(m.geom_quat[g]),
        color=tuple(round(float(x), 6) for x in _color(m, g)),
        surface=_surface(m, g),
    )
    return _of_kind(m, g, kind, [float(x) for x in m.geom_size[g]], common)


def _of_kind(m: Any, g: int, kind: int, size: list[float], common: dict[str, Any]) -> Geometry:
    """The shape of geom g, from the half sizes of MuJoCo."""
    match kind:
        case GEOM.mjGEOM_PLANE:
            return Plane(extent=zeroed(size[:2]), **common)
        case GEOM.mjGEOM_SPHERE:
            return Sphere(radius=size[0], **common)
        case GEOM.mjGEOM_CAPSULE:
            return Capsule(radius=size[0], length=2 * size[1], **common)
        case GEOM.mjGEOM_CYLINDER:
            return Cylinder(radius=size[0], length=2 * size[1], **common)
        case GEOM.mjGEOM_BOX:
            return Box(x=2 * size[0], y=2 * size[1], z=2 * size[2], **common)
        case GEOM.mjGEOM_ELLIPSOID:
            return Ellipsoid(x=size[0], y=size[1], z=size[2], **common)
    if kind == GEOM.mjGEOM_HFIELD:
        return _height_field(m, int(m.geom_dataid[g]), common)
    mesh = int(m.geom_dataid[g])
    first, count = int(m.mesh_vertadr[mesh]), int(m.mesh_vertnum[mesh])
    face, faces = int(m.mesh_faceadr[mesh]), int(m.mesh_facenum[mesh])
    vertices: Any = np.array(m.mesh_vert[first : first + count], float)
    triangles: Any = np.array(m.mesh_face[face : face + faces], int)
    return Mesh(
        vertices=vertices,
        faces=triangles,
        file=m.mesh(mesh).name,
        hull=_hull(m, mesh),
        **common,
    )


def _hull(m: Any, mesh: int) -> MeshHull | None:
    """The convex hull of this mesh that MuJoCo's compiler found, if it was to find any that is not flat.

    Faces of its hull that are slivers, whose normals rounding decides, are left out. The graph of a mesh
    begins with the numbers of its vertices and triangles, then an address for each vertex, then the vertices.
    """
    graph, polygon = int(m.mesh_graphadr[mesh]), int(m.mesh_polyadr[mesh])
    polygons = slice(polygon, polygon + int(m.mesh_polynum[mesh]))
    counts: Any = np.array(m.mesh_polyvertnum[polygons], int)
    if graph < 0 or not len(counts):
        return None
    count, first = int(m.mesh_graph[graph]), int(m.mesh_polyvertadr[polygon])
    vertices: Any = np.sort(m.mesh_graph[graph + 2 + count : graph + 2 + 2 * count])
    corners: Any = np.array(m.mesh_polyvert[first : first + int(counts.sum())], int)
    normals: Any = np.array(m.mesh_polynormal[polygons], float)
    start = int(m.mesh_vertadr[mesh])
    points: Any = np.array(m.mesh_vert[start : start + int(m.mesh_vertnum[mesh])], float)
    kept = ~wrong_faces(points, vertices, normals, counts, corners)
    normals, corners, counts = normals[kept], corners[np.repeat(kept, counts)], counts[kept]
    if len(vertices) < 4 or len(counts) < 4:
        return None
    return MeshHull(vertices=vertices, normals=normals, counts=counts, corners=corners)


def _height_field(m: Any, field: int, common: dict[str, Any]) -> HeightField:
    """The height field with this number; the data of MuJoCo are relative to the largest elevation."""
    x, y, top, base = (float(size) for size in m.hfield_size[field])
    rows, columns = int(m.hfield_nrow[field]), int(m.hfield_ncol[field])
    first = int(m.hfield_adr[field])
    heights: Any = top * np.array(m.hfield_data[first : first + rows * columns], float).reshape(rows, columns)
    return HeightField(heights=heights, extent=(x, y), base=base, **common)


def _color(m: Any, g: int) -> Any:
    material = int(m.geom_matid[g])
    return m.mat_rgba[material] if material >= 0 else m.geom_rgba[g]


def _surface(m: Any, g: int) -> Surface:
    return _surface_of(
        friction=_numbers(m.geom_friction[g]),
        condim=int(m.geom_condim[g]),
        contype=int(m.geom_contype[g]),
        conaffinity=int(m.geom_conaffinity[g]),
        priority=int(m.geom_priority[g]),
        solref=solref_of(m.geom_solref[g]),
        solimp=_numbers(m.geom_solimp[g]),
        solmix=float(m.geom_solmix[g]),
        margin=float(m.geom_margin[g]),
        gap=float(m.geom_gap[g]),
        group=int(m.geom_group[g]),
        velocity=zeroed(m.geom_surfacevel[g]),
    )


@lru_cache  # most shapes of a model have the same surface
def _surface_of(**attributes: Any) -> Surface:
    return Surface(**attributes)


def frames(source: MjcfModel) -> tuple[Frame, ...]:
    """The sites as frames. A site with the name of a body is renamed to `NAME (site)`, and noted."""
    m = source.model
    bodies = {source.name("body", i) for i in range(m.nbody)}
    taken = bodies | {source.name("site", i) for i in range(m.nsite)}
    names = source.names.setdefault("site", [])
    found = []
    for i in range(m.nsite):
        name = source.name("site", i)
        if name in bodies:
            while f"{name} (site)" in taken:
                name += " "
            name = f"{name} (site)"
            taken.add(name)
            source.note(
                "repaired",
                f"site {names[i]!r} has the name of a body; its frame is named {name!r}",
                source.location("site", i),
            )
            names[i] = name
        body = source.name("body", int(m.site_bodyid[i]))
        found.append(Frame(name, body, zeroed(m.site_pos[i]), matrix_of(m.site_quat[i])))
    return tuple(found)
