"""Hulls of meshes in files that zwang writes: MuJoCo has those of the original, also limited ones."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
import trimesh

import zwang as zw
from tests.io.round_trip import loaded, rewritten
from zwang.algebra.convex_hull import convex_hull
from zwang.errors import FormatError, WriteError
from zwang.io.meshes.mesh_export import contact_hull
from zwang.mechanism.geometry import Mesh

BALLS = {"coarse": 8, "fine": 20, "whole": -1}  # the names of balls with the limits of their hulls' vertices


def model_text(sensors: str = "") -> str:
    """Three balls of the same 200 points on a floor, with hulls of different numbers of vertices."""
    points = np.random.default_rng(0).normal(size=(200, 3)) * (1, 0.8, 0.6)
    ball = trimesh.PointCloud(0.1 * points / np.linalg.norm(points, axis=1)[:, None]).convex_hull
    numbers = " ".join(f"{x:.6f}" for x in ball.vertices.ravel())
    faces = " ".join(map(str, ball.faces.ravel()))
    meshes = "".join(
        f'<mesh name="{name}" maxhullvert="{limit}" vertex="{numbers}" face="{faces}"/>'
        for name, limit in BALLS.items()
    )
    bodies = "".join(
        f'<body name="{name}" pos="0 {0.25 * k} 0.08"><freejoint/><geom name="{name}" type="mesh" '
        f'mesh="{name}" mass="1"/></body>'
        for k, name in enumerate(BALLS)
    )
    return (
        f'<mujoco><asset>{meshes}</asset><worldbody><geom name="floor" type="plane" size="1 1 .1"/>{bodies}'
        f"</worldbody><sensor>{sensors}</sensor></mujoco>"
    )


def hull_vertices(model: mujoco.MjModel, name: str) -> np.ndarray:
    """The vertices (n, 3) [m] of MuJoCo's hull of a geom, in the axes of the body, in order of x."""
    geom = model.geom(name).id
    mesh = model.geom_dataid[geom]
    graph, R = model.mesh_graph[model.mesh_graphadr[mesh] :], np.empty(9)
    chosen = model.mesh_vertadr[mesh] + graph[2 + graph[0] : 2 + 2 * graph[0]]
    mujoco.mju_quat2Mat(R, model.geom_quat[geom])
    points = model.mesh_vert[chosen] @ R.reshape(3, 3).T + model.geom_pos[geom]
    return points[np.argsort(points[:, 0])]


def data_of(model: mujoco.MjModel) -> mujoco.MjData:
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    return data


def test_limited_hulls_are_those_of_the_original_in_mujoco(tmp_path):
    first = tmp_path / "first.xml"
    distance = '<distance name="d" geom1="coarse" geom2="fine" cutoff="1"/>'
    first.write_text(model_text(distance))
    m = loaded(first)
    report = zw.write_mjcf(m, tmp_path / "written.xml")
    changed = [note.where for note in report.of_kind("changed")]
    assert changed == ["mesh 'coarse'", "mesh 'fine'"]
    models = [mujoco.MjModel.from_xml_path(str(tmp_path / f"{name}.xml")) for name in ("first", "written")]
    for name, limit in BALLS.items():
        old, new = (hull_vertices(model, name) for model in models)
        assert limit in (len(old), -1)
        np.testing.assert_allclose(new, old, atol=1e-7)
    old, new = map(data_of, models)
    assert old.ncon == new.ncon > 3
    np.testing.assert_allclose(new.qacc, old.qacc, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(new.sensordata, old.sensordata, atol=1e-7)
    again = loaded(tmp_path / "written.xml")
    found = zw.constrained_dynamics(again, old.qpos, old.qvel, np.zeros(again.nv)).acceleration
    np.testing.assert_allclose(found, old.qacc, rtol=1e-4, atol=1e-4)


def test_rays_meet_the_triangles_of_meshes_with_limited_hulls(tmp_path):
    """As in MuJoCo, where the hull is the shape in contacts alone."""
    (tmp_path / "first.xml").write_text(model_text())
    zw.write_mjcf(loaded(tmp_path / "first.xml"), tmp_path / "written.xml")
    models = [mujoco.MjModel.from_xml_path(str(tmp_path / f"{name}.xml")) for name in ("first", "written")]
    rng, geom = np.random.default_rng(1), np.zeros(1, np.int32)
    old, new = map(data_of, models)
    for _ in range(40):
        start, toward = np.array([0.3, 0, 0.3]), rng.normal((-0.3, 0.1, -0.2), 0.1)
        rays = [
            mujoco.mj_ray(model, data, start, toward, None, 1, -1, geom)
            for model, data in zip(models, (old, new), strict=True)
        ]
        assert rays[1] == pytest.approx(rays[0], abs=1e-6)


def test_the_distance_of_a_body_with_a_limited_hull_cannot_be_said(tmp_path):
    distance = '<distance name="d" body1="coarse" body2="{}" cutoff="1"/>'
    (tmp_path / "first.xml").write_text(model_text(distance.format("whole")))
    with pytest.raises(FormatError, match=r"sensor 'd'.*body 'coarse' has a mesh whose hull"):
        zw.write_mjcf(loaded(tmp_path / "first.xml"), tmp_path / "written.xml")


def test_the_hull_of_a_mesh_is_a_closed_surface_around_its_volume(tmp_path):
    (tmp_path / "first.xml").write_text(model_text())
    for body in loaded(tmp_path / "first.xml").bodies:
        mesh = body.geometry[0]
        assert isinstance(mesh, Mesh)
        hull = contact_hull(mesh)
        assert (hull is None) == (body.name == "whole")
        if hull is not None and mesh.hull is not None:
            remaining = np.asarray(mesh.vertices)[np.asarray(mesh.hull.vertices)]
            assert hull.unit_properties()[0] == pytest.approx(convex_hull(remaining).volume, rel=1e-12)


def test_urdf_collides_with_the_limited_hull_and_draws_the_triangles(tmp_path):
    """In Pinocchio's reader."""
    pinocchio = pytest.importorskip("pinocchio", exc_type=ImportError)
    (tmp_path / "first.xml").write_text(model_text())
    m = loaded(tmp_path / "first.xml")
    m = m.replace(bodies=[b for b in m.bodies if b.name == "coarse"], geometry=(), home=None)
    path = str(tmp_path / "written.urdf")
    report = zw.write_urdf(m, path, strict=False)
    assert any(note.where == "mesh 'coarse' of body 'coarse'" for note in report.of_kind("changed"))
    model, counts = pinocchio.buildModelFromUrdf(path), []
    for kind in (pinocchio.GeometryType.COLLISION, pinocchio.GeometryType.VISUAL):
        shapes = pinocchio.buildGeomFromUrdf(model, path, kind, [str(tmp_path)]).geometryObjects
        counts += [len(np.unique(np.round(shape.geometry.vertices(), 9), axis=0)) for shape in shapes]
    assert counts == [8, 200]
    solid = next(s for s in rewritten(m, tmp_path, strict=False).bodies[0].geometry if not s.visual_only)
    assert isinstance(solid, Mesh) and len(solid.vertices) == 8


@pytest.mark.parametrize("write", [zw.write_mjcf, zw.write_urdf])
@pytest.mark.parametrize("folder", ["missing", "file"])
def test_a_missing_folder_is_told_as_of_a_model_without_meshes(write, folder, tmp_path):
    """Also where a file has the name of the folder."""
    (tmp_path / "file").touch()
    corners, faces = (
        ((0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)),
        ((0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3)),
    )
    ball = Mesh(corners, faces, name="ball")
    path = tmp_path / folder / "m"
    told = []
    for shape in (zw.Sphere(0.1), ball):
        with pytest.raises(WriteError) as error:
            write(zw.Mechanism("m", [zw.Body("a", mass=1, geometry=(shape,))]), path, strict=False)
        told.append(str(error.value))
    assert told[0] == told[1] and f"there is no folder {str(path.parent)!r}; create it" in told[0]
