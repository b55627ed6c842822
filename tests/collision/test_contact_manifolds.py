"""Contact manifolds of parallel faces: the vertices of their intersection, which are MuJoCo's where
unique.
"""

import mujoco
import numpy as np
import pytest

from tests.collision.shape_pairs import largest_difference
from zwang.collision import candidate_pairs, contact_points
from zwang.io.mjcf.read_mjcf import read_mjcf
from zwang.kinematics.poses import link_poses

BRICK = " ".join(f"{x} {y} {z}" for x in (-0.2, 0.2) for y in (-0.3, 0.3) for z in (-0.1, 0.1))
TURNED = (np.cos(0.2), 0, 0, np.sin(0.2))
LYING = (np.sqrt(0.5), 0, np.sqrt(0.5), 0)
TABLE, SLAB = 'type="box" size="1 1 .5"', 'type="mesh" mesh="brick"'


def both(below, above, q):
    """The contact points and MuJoCo's contacts of a fixed shape and one that lies on it."""
    xml = (
        f'<mujoco><asset><mesh name="brick" vertex="{BRICK}"/></asset><worldbody><body><geom {below}/></body>'
        f"<body><freejoint/><geom {above}/></body></worldbody></mujoco>"
    )
    model = mujoco.MjModel.from_xml_string(xml)
    data = mujoco.MjData(model)
    data.qpos[:] = q
    mujoco.mj_fwdPosition(model, data)
    mechanism = read_mjcf("manifold.xml", text=xml)
    (pair,) = candidate_pairs(mechanism)
    ours = [
        point
        for point in contact_points(pair, link_poses(mechanism.tree, np.array(q, float)))
        if point.distance < 0
    ]
    return ours, [(c.dist, c.pos.copy(), c.frame.reshape(3, 3).copy()) for c in data.contact]


@pytest.mark.parametrize(
    "below, above, q, count",
    [
        (TABLE, SLAB, (0.1, 0.2, 0.599, 1, 0, 0, 0), 4),
        (TABLE, SLAB, (0.1, 0.2, 0.599, *TURNED), 4),
        ('type="box" size=".1 .1 .5"', SLAB, (0.05, 0.02, 0.599, *TURNED), 4),
        ('type="cylinder" size="1 .5"', SLAB, (0.1, 0.2, 0.599, *TURNED), 4),
        (TABLE, 'type="cylinder" size=".2 .3"', (0.1, 0.2, 0.699, *LYING), 2),
        ('type="cylinder" size="1 .5"', 'type="capsule" size=".2 .3"', (0.1, 0.2, 0.699, *LYING), 2),
        (SLAB, 'type="capsule" size=".05 .1"', (0, 0.1, 0.149, *LYING), 2),
    ],
    ids=[
        "on a table",
        "turned",
        "on a post",
        "on a disc",
        "lying cylinder",
        "lying capsule",
        "capsule on a mesh",
    ],
)
def test_contact_manifolds_of_parallel_faces_are_mujocos(below, above, q, count):
    ours, theirs = both(below, above, q)
    assert len(ours) == len(theirs) == count
    assert largest_difference(ours, theirs) < 3e-4  # lying cylinders: radius times tilt tolerance


def test_a_disc_on_a_table_touches_along_its_rim():
    ours, _ = both(TABLE, 'type="cylinder" size=".2 .1"', (0.1, 0.2, 0.599, *TURNED))
    points = np.array([point.position for point in ours], float)
    assert len(ours) == 4 and np.allclose(np.linalg.norm(points[:, :2] - [0.1, 0.2], axis=1), 0.2)
    assert np.allclose(points[:, :2].mean(axis=0), [0.1, 0.2]) and np.allclose(
        [g.distance for g in ours], -1e-3
    )


MANIFOLDS = {
    "on a table": (TABLE, SLAB, (0.1, 0.2, 0.6), (1, 0, 0, 0)),
    "turned": (TABLE, SLAB, (0.1, 0.2, 0.6), TURNED),
    "on a post": ('type="box" size=".1 .1 .5"', SLAB, (0.05, 0.02, 0.6), TURNED),
    "on a disc": ('type="cylinder" size="1 .5"', SLAB, (0.1, 0.2, 0.6), TURNED),
    "lying cylinder": (TABLE, 'type="cylinder" size=".2 .3"', (0.1, 0.2, 0.7), LYING),
    "lying capsule": ('type="cylinder" size="1 .5"', 'type="capsule" size=".2 .3"', (0.1, 0.2, 0.7), LYING),
    "capsule on a mesh": (SLAB, 'type="capsule" size=".05 .1"', (0, 0.1, 0.15), LYING),
}


def tilted(name, tilt):
    """Contact points and MuJoCo's contacts of a manifold with the upper shape tilted about (0.6, 0.8, 0)."""
    below, above, (x, y, z), (w, *turn) = MANIFOLDS[name]
    c, s = np.cos(tilt / 2), np.sin(tilt / 2) * np.array([0.6, 0.8, 0])
    q = (x, y, z - 0.003 - 0.25 * tilt, c * w - s @ turn, *(c * np.array(turn) + w * s + np.cross(s, turn)))
    return both(below, above, q)


@pytest.mark.parametrize("tilt", [3e-4, 6e-4])
@pytest.mark.parametrize("name", MANIFOLDS)
def test_contact_points_of_slightly_tilted_faces_are_mujocos(name, tilt):
    """MuJoCo may use the normal of the other face, which differs by the tilt; its points are displaced
    accordingly.
    """
    ours, theirs = tilted(name, tilt)
    assert len(ours) == len(theirs) >= 2
    for point in ours:
        distance, position, frame = min(theirs, key=lambda contact: np.abs(point.position - contact[1]).max())
        assert abs(point.distance - distance) < 1e-6
        # the bound is the radius of a lying cylinder times the tilt below which faces count as parallel
        assert np.abs(point.position - position).max() < 3e-4
        assert np.linalg.norm(point.frame[0] - frame[0]) < tilt * (1 + 1e-3)


@pytest.mark.parametrize("tilt", [3e-3, 1e-2, 3e-2])
@pytest.mark.parametrize("name", MANIFOLDS)
def test_the_deepest_contact_point_of_tilted_faces_is_mujocos(name, tilt):
    ours, theirs = tilted(name, tilt)
    deepest, (distance, position, frame) = (
        min(ours, key=lambda g: g.distance),
        min(theirs, key=lambda c: c[0]),
    )
    # m: along a normal that differs by the tilt, lengths change with its cosine, points with its sine
    size = 0.3
    assert abs(deepest.distance - distance) < tilt**2 / 2 * size + 1e-6
    assert np.abs(deepest.position - position).max() < tilt * size
    assert np.linalg.norm(deepest.frame[0] - frame[0]) < tilt * (1 + 1e-3)


@pytest.mark.xfail(
    strict=True,
    reason="faces tilted by more than the tolerance of `collision.manifold` have one contact point",
)
@pytest.mark.parametrize("tilt", [3e-3, 1e-2])
def test_a_tilted_brick_has_as_many_contact_points_as_in_mujoco(tilt):
    ours, theirs = tilted("on a table", tilt)
    assert len(ours) == len(theirs)


def test_crossed_bricks_have_several_contact_points_in_the_intersection_of_their_faces():
    for half_angle in (0.2, 0.5, np.pi / 4):
        q = (0.02, 0.01, 0.199, np.cos(half_angle), 0, 0, np.sin(half_angle))
        ours, _ = both(SLAB, SLAB, q)
        points = np.array([point.position for point in ours], float)[:, :2]
        c, s = np.cos(2 * half_angle), np.sin(2 * half_angle)
        within = (points - q[:2]) @ np.array([[c, -s], [s, c]])
        assert len(ours) >= 3 and np.allclose([point.distance for point in ours], -1e-3)
        assert (np.abs(points) <= [0.2 + 1e-6, 0.3 + 1e-6]).all() and (
            np.abs(within) <= [0.2 + 1e-6, 0.3 + 1e-6]
        ).all()
