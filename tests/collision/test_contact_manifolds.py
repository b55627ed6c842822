"""Flat sides on each other touch at the corners of their common part: MuJoCo's points where these are unique."""

import mujoco
import numpy as np
import pytest

from tests.collision.shape_pairs import unmatched
from zwang.collision import candidate_pairs, contact_points
from zwang.io.mjcf.read_mjcf import read_mjcf
from zwang.kinematics.poses import link_poses

BRICK = " ".join(f"{x} {y} {z}" for x in (-0.2, 0.2) for y in (-0.3, 0.3) for z in (-0.1, 0.1))
TURNED = (np.cos(0.2), 0, 0, np.sin(0.2))
LYING = (np.sqrt(0.5), 0, np.sqrt(0.5), 0)
TABLE, SLAB = 'type="box" size="1 1 .5"', 'type="mesh" mesh="brick"'


def both(below, above, q):
    """Our gaps and MuJoCo's contacts of a fixed shape and one on it."""
    xml = (
        f'<mujoco><asset><mesh name="brick" vertex="{BRICK}"/></asset><worldbody><body><geom {below}/></body>'
        f"<body><freejoint/><geom {above}/></body></worldbody></mujoco>"
    )
    model = mujoco.MjModel.from_xml_string(xml)
    data = mujoco.MjData(model)
    data.qpos[:] = q
    mujoco.mj_fwdPosition(model, data)
    mechanism = read_mjcf("patch.xml", text=xml)
    (pair,) = candidate_pairs(mechanism)
    ours = [
        gap
        for gap in contact_points(pair, link_poses(mechanism.tree, np.array(q, float)))
        if gap.distance < 0
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
def test_contacts_of_flat_sides_are_mujocos(below, above, q, count):
    ours, theirs = both(below, above, q)
    assert len(ours) == len(theirs) == count
    assert unmatched(ours, theirs) < 3e-4  # a lying cylinder's points may be off by its radius times the lean


def test_a_disc_on_a_table_touches_along_its_rim():
    ours, _ = both(TABLE, 'type="cylinder" size=".2 .1"', (0.1, 0.2, 0.599, *TURNED))
    points = np.array([gap.position for gap in ours], float)
    assert len(ours) == 4 and np.allclose(np.linalg.norm(points[:, :2] - [0.1, 0.2], axis=1), 0.2)
    assert np.allclose(points[:, :2].mean(axis=0), [0.1, 0.2]) and np.allclose(
        [g.distance for g in ours], -1e-3
    )


PATCHES = {
    "on a table": (TABLE, SLAB, (0.1, 0.2, 0.6), (1, 0, 0, 0)),
    "turned": (TABLE, SLAB, (0.1, 0.2, 0.6), TURNED),
    "on a post": ('type="box" size=".1 .1 .5"', SLAB, (0.05, 0.02, 0.6), TURNED),
    "on a disc": ('type="cylinder" size="1 .5"', SLAB, (0.1, 0.2, 0.6), TURNED),
    "lying cylinder": (TABLE, 'type="cylinder" size=".2 .3"', (0.1, 0.2, 0.7), LYING),
    "lying capsule": ('type="cylinder" size="1 .5"', 'type="capsule" size=".2 .3"', (0.1, 0.2, 0.7), LYING),
    "capsule on a mesh": (SLAB, 'type="capsule" size=".05 .1"', (0, 0.1, 0.15), LYING),
}


def leaning(name, tilt):
    """Our gaps and MuJoCo's contacts of one of the patches, its upper shape pressed in and turned by `tilt` about (0.6, 0.8, 0)."""
    below, above, (x, y, z), (w, *turn) = PATCHES[name]
    c, s = np.cos(tilt / 2), np.sin(tilt / 2) * np.array([0.6, 0.8, 0])
    q = (x, y, z - 0.003 - 0.25 * tilt, c * w - s @ turn, *(c * np.array(turn) + w * s + np.cross(s, turn)))
    return both(below, above, q)


@pytest.mark.parametrize("tilt", [3e-4, 6e-4])
@pytest.mark.parametrize("name", PATCHES)
def test_sides_that_lean_a_little_touch_where_and_as_deep_as_in_mujoco(name, tilt):
    """MuJoCo may take the normal of the other side, which leans by the tilt, and its points move by as much of their depth."""
    ours, theirs = leaning(name, tilt)
    assert len(ours) == len(theirs) >= 2
    for gap in ours:
        distance, position, frame = min(theirs, key=lambda contact: np.abs(gap.position - contact[1]).max())
        assert abs(gap.distance - distance) < 1e-6
        assert (
            np.abs(gap.position - position).max() < 3e-4
        )  # a lying cylinder's radius times the lean that counts as none
        assert np.linalg.norm(gap.frame[0] - frame[0]) < tilt * (1 + 1e-3)


@pytest.mark.parametrize("tilt", [3e-3, 1e-2, 3e-2])
@pytest.mark.parametrize("name", PATCHES)
def test_of_sides_that_lean_more_the_deepest_point_is_mujocos(name, tilt):
    ours, theirs = leaning(name, tilt)
    deepest, (distance, position, frame) = (
        min(ours, key=lambda g: g.distance),
        min(theirs, key=lambda c: c[0]),
    )
    size = 0.3  # m: along MuJoCo's normal, which may lean by the tilt, lengths are less by its cosine, and points beside by its sine
    assert abs(deepest.distance - distance) < tilt**2 / 2 * size + 1e-6
    assert np.abs(deepest.position - position).max() < tilt * size
    assert np.linalg.norm(deepest.frame[0] - frame[0]) < tilt * (1 + 1e-3)


@pytest.mark.xfail(
    strict=True, reason="sides that lean by more than contact.patch.LEAN touch at one point only"
)
@pytest.mark.parametrize("tilt", [3e-3, 1e-2])
def test_a_brick_that_leans_more_touches_at_as_many_points_as_in_mujoco(tilt):
    ours, theirs = leaning("on a table", tilt)
    assert len(ours) == len(theirs)


def test_bricks_across_each_other_touch_at_several_points_of_the_common_part():
    for turn in (0.2, 0.5, np.pi / 4):
        q = (0.02, 0.01, 0.199, np.cos(turn), 0, 0, np.sin(turn))
        ours, _ = both(SLAB, SLAB, q)
        points = np.array([gap.position for gap in ours], float)[:, :2]
        c, s = np.cos(2 * turn), np.sin(2 * turn)
        within = (points - q[:2]) @ np.array([[c, -s], [s, c]])
        assert len(ours) >= 3 and np.allclose([gap.distance for gap in ours], -1e-3)
        assert (np.abs(points) <= [0.2 + 1e-6, 0.3 + 1e-6]).all() and (
            np.abs(within) <= [0.2 + 1e-6, 0.3 + 1e-6]
        ).all()
