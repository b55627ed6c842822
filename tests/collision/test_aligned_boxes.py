"""Boxes whose edges coincide: the corners of the rectangle that both faces share, for every rounding."""

import mujoco
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import zwang as zw
from zwang.collision.box_box import box_box
from zwang.collision.shapes import PlacedShape
from zwang.io.mjcf.read.read_mjcf import read_mjcf

QUARTER_TURNS = Rotation.create_group("O")
SIZES = ((0.05, 0.03, 0.02), (0.05, 0.03, 0.02)), ((0.05, 0.03, 0.02), (0.1, 0.03, 0.2))
DEPTH = 1e-4


def aligned(rng, first, second):
    """Two boxes with parallel axes and sides that coincide, one on the other, in a random frame; and the
    corners of the rectangle that their faces share.
    """
    frame, origin, turn = (
        Rotation.random(random_state=rng),
        rng.normal(size=3),
        QUARTER_TURNS[rng.integers(24)],
    )
    first, half = np.array(first), np.abs(turn.as_matrix()) @ second
    up = rng.integers(3)
    # in the middle, one side on a side of the other, and a side through the other's middle
    choices = np.array([0 * half, first - half, half - first, np.minimum(first, half)])
    offset = np.array([choices[rng.integers(4), k] for k in range(3)])
    offset[up] = first[up] + half[up] - DEPTH
    low, high = np.maximum(-first, offset - half), np.minimum(first, offset + half)
    low[up] = high[up] = first[up] - DEPTH / 2
    corners = [[(low, high)[k >> i & 1][i] for i in range(3)] for k in range(8) if not k >> up & 1]
    poses = (frame, origin), (frame * turn, origin + frame.apply(offset))
    return poses, origin + frame.apply(corners)


@pytest.mark.parametrize("sizes", SIZES)
def test_contact_points_are_the_corners_of_the_common_rectangle(sizes):
    rng = np.random.default_rng(0)
    for _ in range(60):
        poses, corners = aligned(rng, *sizes)
        placed = [PlacedShape(s, R.as_matrix(), p) for s, (R, p) in zip(sizes, poses, strict=True)]
        found = [point for point in box_box(*placed, 0.0) if point.distance < 0]
        assert len(found) == 4
        np.testing.assert_allclose([point.distance for point in found], -DEPTH, rtol=0, atol=1e-14)
        distances = np.linalg.norm(corners[:, None] - [point.position for point in found], axis=2)
        assert distances.min(axis=0).max() < 1e-14 and distances.min(axis=1).max() < 1e-14


def two_boxes(sizes):
    """The MJCF of two free boxes."""
    bodies = "".join(
        f"<body><freejoint/><geom type='box' size='{' '.join(map(str, s))}'/></body>" for s in sizes
    )
    return f"<mujoco><worldbody>{bodies}</worldbody></mujoco>"


def coordinates(poses):
    return np.concatenate([[*p, *np.roll(R.as_quat(), 1)] for R, p in poses])


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_compiled_worlds_have_these_four_contacts(dtype):
    rng = np.random.default_rng(1)
    for sizes in SIZES:
        q = np.array([coordinates(aligned(rng, *sizes)[0]) for _ in range(400)])
        worlds = zw.Worlds(read_mjcf("boxes.xml", text=two_boxes(sizes)), len(q), threads=1, dtype=dtype)
        worlds.reset(q=q)
        assert (worlds.contacts.active.sum(axis=1) == 4).all()


def test_contacts_of_nearly_aligned_boxes_are_mujocos():
    """Turned about the normal, so that an octagon remains, up to angles at which corners nearly coincide."""
    model = mujoco.MjModel.from_xml_string(two_boxes(SIZES[0]))
    data, rng = mujoco.MjData(model), np.random.default_rng(2)
    mechanism = read_mjcf("boxes.xml", text=two_boxes(SIZES[0]))
    for exponent in (-10, -8, -7, -6, -4, -2):
        for offset in ((0, 0), (0.013, 0.02)):
            R, p = Rotation.random(random_state=rng), rng.normal(size=3)
            turn = R * Rotation.from_rotvec([0, 0, 10.0**exponent])
            data.qpos[:] = coordinates([(R, p), (turn, p + R.apply([*offset, 0.04 - DEPTH]))])
            mujoco.mj_forward(model, data)
            found = zw.contacts(mechanism, data.qpos, data.qvel, np.zeros(12))
            assert len(found) == data.ncon
            for point in found:
                nearest = np.linalg.norm(data.contact.pos - point.position, axis=1).argmin()
                error = np.abs(data.contact.pos[nearest] - point.position).max()
                assert error < 1e-14 + 1e-15 / 10.0**exponent  # along edges that are nearly parallel
                assert data.contact.dist[nearest] == pytest.approx(point.distance, abs=1e-14)


def test_overlaps_that_are_equal_are_those_of_faces():
    """Two cubes that overlap by the same depth along two axes: a face, as in MuJoCo, not the edge between."""
    sizes = (0.1, 0.1, 0.1), (0.1, 0.1, 0.1)
    model, rng = mujoco.MjModel.from_xml_string(two_boxes(sizes)), np.random.default_rng(3)
    data = mujoco.MjData(model)
    for _ in range(60):
        R, p = Rotation.random(random_state=rng), rng.normal(size=3)
        tilted = R * Rotation.from_rotvec([0, 1e-3, 0])
        data.qpos[:] = coordinates([(R, p), (tilted, p + R.apply([0.198, 0, 0.198]))])
        mujoco.mj_forward(model, data)
        boxes = [
            PlacedShape(s, data.geom_xmat[k].reshape(3, 3), data.geom_xpos[k]) for k, s in enumerate(sizes)
        ]
        assert sum(point.distance < 0 for point in box_box(*boxes, 0.0)) == data.ncon
