"""Playback and surface meshes, compared with zwang's kinematics and with closed forms."""

from __future__ import annotations

import numpy as np
import pytest

import zwang as zw
from tests.mechanisms import random_mechanism, random_quaternion
from tests.viewer.scenes import shapes
from zwang.mechanism.samples import double_pendulum
from zwang.viewer.playback import Playback, frame_in_world, rigid_body_centres, velocity_ellipsoid
from zwang.viewer.scene import scene_content, scene_data_of
from zwang.viewer.surfaces import split_at_creases, surfaces
from zwang.viewer.triangles import shape_corners


def random_configuration(m, seed):
    rng = np.random.default_rng(seed)
    return np.asarray(zw.integrate_configuration(m, m.neutral, rng.normal(size=m.nv), 1), dtype=float)


@pytest.mark.parametrize("seed", range(4))
def test_frames_and_centres_of_mass_agree_with_forward_kinematics(seed):
    m = random_mechanism(seed, bodies=7)
    q = random_configuration(m, seed)
    playback, model = Playback([m], None), scene_data_of(scene_content(m))["models"][0]
    playback.manual_configurations[0] = q
    poses = playback.poses(0, 0.0)
    for placement in (*model["bodies"], *model["frames"]):
        R, p = zw.frame_pose(m, q, placement["name"])
        np.testing.assert_allclose(frame_in_world(poses, placement)[0], R, atol=1e-12)
        np.testing.assert_allclose(frame_in_world(poses, placement)[1], p, atol=1e-12)
    points, masses = rigid_body_centres(model, poses)
    np.testing.assert_allclose(masses @ points / masses.sum(), zw.mass_centre(m, q), atol=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_the_velocity_ellipsoid_is_that_of_the_jacobian(seed):
    """R diag(axes^2) R^T = J J^T."""
    m = random_mechanism(seed, bodies=6)
    q = random_configuration(m, seed)
    playback, model = Playback([m], None), scene_data_of(scene_content(m))["models"][0]
    playback.manual_configurations[0] = q
    tip = next(placement for placement in (*model["bodies"], *model["frames"]) if placement["name"] == "tip")
    R, axes = velocity_ellipsoid(m, playback.poses(0, 0.0), tip)
    J = zw.frame_jacobian(m, q, "tip")[:3]
    assert np.linalg.det(R) == pytest.approx(1)
    np.testing.assert_allclose(R @ np.diag(axes**2) @ R.T, J @ J.T, atol=1e-10)


def test_configurations_between_samples_lie_between_them():
    run = zw.simulate(double_pendulum(), [[2.0, 1.0], [1.0, 0.0]], duration=1, step=0.01, integrator="rk4")
    what = scene_content(run)
    playback = Playback(what.mechanisms, scene_data_of(what)["run"])
    assert (playback.start, playback.end) == (0.0, pytest.approx(1.0))
    for t in (0.0, 0.333, 0.5, 1.0, 1.5):
        expected = run.q.isel(world=1).interp(time=min(t, 1.0)).values
        np.testing.assert_allclose(playback.configuration(1, t), expected, atol=2e-3)
    playback.manual_configurations[1] = np.array([5.0, 6.0])
    np.testing.assert_array_equal(playback.configuration(1, 0.3), [5.0, 6.0])


def test_quaternions_follow_the_shorter_arc_and_stay_normalised():
    m = zw.Mechanism(bodies=[zw.Body("b", zw.Ball("ball"), mass=1, inertia=(1, 1, 1))])
    a = np.array(random_quaternion(np.random.default_rng(1)))
    b = np.asarray(zw.integrate_configuration(m, a, [0.2, 0, 0], 1), dtype=float)
    run = {"times": np.array([0.0, 1.0]), "q": np.array([[a, -b]]), "forces": None}
    q = Playback([m], run).configuration(0, 0.5)
    middle = np.asarray(zw.integrate_configuration(m, a, [0.1, 0, 0], 1), dtype=float)
    np.testing.assert_allclose(q, middle, atol=1e-12)


def test_a_world_that_stopped_keeps_its_last_valid_state():
    run = zw.simulate(double_pendulum(), [1.0, 0], duration=1, step=0.02)
    run["q"][0, 30:] = np.nan
    what = scene_content(run)
    playback = Playback(what.mechanisms, scene_data_of(what)["run"])
    for t in (0.7, 1.0):
        np.testing.assert_array_equal(playback.configuration(0, t), run.q.values[0, 29])


def test_the_last_valid_state_is_kept_in_gaps_of_a_recording():
    """As of recordings joined in time, the first of which has stopped; also in a gap at the start."""
    run = zw.simulate(double_pendulum(), [1.0, 0], duration=1, step=0.02)
    run["q"][0, 20:30], run["q"][0, :3] = np.nan, np.nan
    what = scene_content(run)
    playback = Playback(what.mechanisms, scene_data_of(what)["run"])
    for t, sample in ((0.0, 3), (0.05, 3), (0.385, 19), (0.5, 19), (0.59, 19), (0.6, 30), (1.0, 50)):
        np.testing.assert_array_equal(playback.configuration(0, t), run.q.values[0, sample])
    between = (run.q.values[0, 30] + run.q.values[0, 31]) / 2
    np.testing.assert_allclose(playback.configuration(0, 0.61), between, rtol=1e-12)
    poses = playback.recorded_poses(0, 100)
    assert len(poses) == 38 and np.isfinite([p for _, p in poses]).all()


def test_forces_are_the_recorded_ones_and_none_after_a_manual_change():
    ball = zw.Body("ball", zw.Prismatic("z"), position=(0, 0, 0.1), mass=2, geometry=[zw.Sphere(0.1)])
    m = zw.Mechanism("ball", [ball], geometry=[zw.Plane()])
    run = zw.simulate(m, duration=1.0, step=0.005, record={"forces": True}, compiled=False)
    what = scene_content(run)
    playback = Playback(what.mechanisms, scene_data_of(what)["run"])
    points, forces = playback.forces(0, 1.0, "contact")
    np.testing.assert_allclose(forces, [[0, 0, 2 * 9.81]], atol=1e-3)
    np.testing.assert_allclose(points, [[0, 0, 0]], atol=2e-3)
    assert len(playback.forces(0, 1.0, "constraint")[0]) == 0
    playback.manual_configurations[0] = np.zeros(1)
    assert len(playback.forces(0, 1.0, "contact")[0]) == 0


def volume(vertices, faces):
    a, b, c = (vertices[faces[:, k]] for k in range(3))
    return float(np.einsum("ij,ij->i", a, np.cross(b, c)).sum() / 6)


VOLUMES = {
    "box": 0.3 * 0.4 * 0.5,
    "sphere": 4 / 3 * np.pi * 0.2**3,
    "capsule": np.pi * 0.01 * 0.6 + 4 / 3 * np.pi * 0.1**3,
    "cylinder": np.pi * 0.01 * 0.7,
    "ellipsoid": 4 / 3 * np.pi * 0.1 * 0.2 * 0.3,
    "mesh": 1.0,
}


def test_surface_meshes_enclose_the_volume_of_their_shape():
    scene_data = scene_data_of(scene_content(shapes()))
    for shape in scene_data["models"][0]["shapes"]:
        vertices, faces = split_at_creases(shape_corners(shape, scene_data["meshes"], 1.0))
        if shape["kind"] in VOLUMES:
            assert volume(vertices, faces) == pytest.approx(VOLUMES[shape["kind"]], rel=0.02), shape["kind"]


def test_edges_stay_sharp_and_round_shapes_smooth():
    """A vertex belongs to faces of about one direction; and what is round has no vertex twice."""
    scene_data = scene_data_of(scene_content(shapes()))
    for shape in scene_data["models"][0]["shapes"]:
        vertices, faces = split_at_creases(shape_corners(shape, scene_data["meshes"], 1.0))
        normals = np.cross(
            vertices[faces[:, 1]] - vertices[faces[:, 0]], vertices[faces[:, 2]] - vertices[faces[:, 0]]
        )
        normals /= np.linalg.norm(normals, axis=1, keepdims=True)
        twice = len(vertices) - len(np.unique(vertices.round(9), axis=0))
        if shape["kind"] in ("sphere", "ellipsoid", "capsule"):
            assert twice == 0, shape["kind"]
        if shape["kind"] == "box":
            assert len(vertices) == 24
            for k in range(24):
                around = normals[(faces == k).any(axis=1)]
                np.testing.assert_allclose(around, np.broadcast_to(around[0], around.shape), atol=1e-12)
        if shape["kind"] == "cylinder":
            assert twice == 48 * 2


def test_shapes_of_one_link_and_colour_are_one_surface():
    m = zw.Mechanism(
        bodies=[
            zw.Body(
                "b",
                zw.Revolute("j"),
                mass=1,
                inertia=(1, 1, 1),
                geometry=[
                    zw.Box(1, 1, 1),
                    zw.Box(1, 1, 1, position=(2, 0, 0)),
                    zw.Sphere(1, color=(1, 0, 0, 1)),
                ],
            )
        ]
    )
    scene_data = scene_data_of(scene_content(m))
    found = surfaces(scene_data["models"][0], scene_data["meshes"], 1.0)
    assert [len(part.faces) for part in found][:1] == [24] and len(found) == 2
