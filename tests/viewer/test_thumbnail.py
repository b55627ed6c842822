"""Thumbnails: triangles have the positions and areas of their shapes, are covered completely, and hide each
other.
"""

from __future__ import annotations

import io

import matplotlib.image
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import zwang as zw
from tests.viewer.scenes import shapes
from zwang.errors import ParameterError
from zwang.mechanism.samples import furuta
from zwang.viewer.thumbnail import HEIGHT, WIDTH, _rasterised, thumbnail_png
from zwang.viewer.triangles import AXES, GROUND_COLOR, world_triangles

RED, BLUE = (1.0, 0.0, 0.0), (0.0, 0.0, 1.0)


def pixels(png: bytes) -> np.ndarray:
    return matplotlib.image.imread(io.BytesIO(png), format="png")


def part(corners: np.ndarray, x: float) -> np.ndarray:
    """The triangles of `shapes()` whose centres are about x."""
    return corners[np.abs(corners.mean(axis=1)[:, 0] - x) < 0.45]


def area(corners: np.ndarray) -> float:
    sides = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    return float(np.linalg.norm(sides, axis=1).sum() / 2)


def test_every_shape_has_its_position_and_area():
    lift = 1.5
    corners, colors, _ = world_triangles(shapes(), np.array([lift]))
    raised = corners[:, :, 2].min(axis=1) > 0.7
    corners = corners[raised]
    height = 1 + lift
    np.testing.assert_allclose(part(corners, 0).reshape(-1, 3).max(0), [0.15, 0.2, height + 0.25], atol=1e-9)
    np.testing.assert_allclose(part(corners, 1).reshape(-1, 3).min(0), [0.8, -0.2, height - 0.2], atol=1e-3)
    np.testing.assert_allclose(part(corners, 2)[:, :, 2].max(), height + 0.4, atol=1e-9)
    expected = {
        0: 2 * (0.3 * 0.4 + 0.4 * 0.5 + 0.5 * 0.3),
        1: 4 * np.pi * 0.2**2,
        2: 4 * np.pi * 0.1**2 + 2 * np.pi * 0.1 * 0.6,
        3: 2 * np.pi * 0.1**2 + 2 * np.pi * 0.1 * 0.7,
    }
    for x, size in expected.items():
        assert area(part(corners, x)) == pytest.approx(size, rel=0.02), x
    red = colors[raised][np.abs(corners.mean(axis=1)[:, 0] - 1) < 0.3]
    np.testing.assert_array_equal(red, np.tile(RED, (len(red), 1)))


def test_the_ground_is_below_the_mechanism_and_axes_are_drawn_near_the_origin():
    def drawn(x: float) -> tuple[np.ndarray, np.ndarray]:
        body = zw.Body(
            "b", zw.Prismatic("j", axis=(0, 0, 1)), position=(x, 0, 1), mass=1, geometry=[zw.Sphere(0.2)]
        )
        m = zw.Mechanism(bodies=[body], geometry=[zw.Plane(position=(0, 0, -0.5))])
        corners, colors, _ = world_triangles(m, np.array([0.0]))
        return corners, colors

    for x, near in ((0.0, True), (100.0, False)):
        corners, colors = drawn(x)
        ground = corners[np.all(colors == GROUND_COLOR, axis=1)].reshape(-1, 3)
        np.testing.assert_allclose((ground.min(0) + ground.max(0)) / 2, [x, 0, -0.5], atol=1e-9)
        assert any(np.array_equal(color, AXES[0]) for color in colors) == near


def test_a_mesh_is_drawn_with_its_own_vertices():
    corners, _, _ = world_triangles(shapes(), np.array([0.0]))
    mesh = corners[corners[:, :, 0].min(axis=1) > 5.5]
    found = {tuple(np.round(p - [6, 0, 1], 3) + 0.0) for p in mesh.reshape(-1, 3)}
    assert found == {(0, 0, 0), (1, 0, 0), (0, 2, 0), (0, 0, 3)}


@settings(max_examples=40, deadline=None)
@given(arrays(float, (3, 3), elements=st.floats(2, 58)))
def test_a_triangle_covers_the_pixels_whose_centres_it_contains(triangle):
    seen = _rasterised(triangle[None], np.array([RED]), 60, 60)[::-1, :, 3] > 0
    a, b, c = triangle[:, :2]
    x, y = np.meshgrid(np.arange(60) + 0.5, np.arange(60) + 0.5)
    sides = [
        ((q[0] - p[0]) * (y - p[1]) - (q[1] - p[1]) * (x - p[0])) / max(np.hypot(*(q - p)), 1e-9)
        for p, q in ((a, b), (b, c), (c, a))
    ]
    turn = 1 if (b - a)[0] * (c - a)[1] - (b - a)[1] * (c - a)[0] >= 0 else -1
    distance = np.min([turn * s for s in sides], axis=0)
    assert seen[distance > 0.2].all()
    assert not seen[distance < -0.75].any()


def test_the_nearer_of_two_triangles_is_visible():
    flat = np.array([[5.0, 5, 0], [35, 5, 0], [5, 35, 0]])
    both = np.stack([flat + np.array([0, 0, z]) for z in (3, 1)])
    image = _rasterised(both, np.array([RED, BLUE]), 40, 40)
    assert np.all(image[image[..., 3] > 0][:, 2] == 0) and image[..., 0].max() > 0
    image = _rasterised(both[::-1], np.array([BLUE, RED]), 40, 40)
    assert np.all(image[image[..., 3] > 0][:, 2] == 0)


def pendulum(axis=(0, 1, 0), gravity=(0, 0, -9.81), com=(0, 0, -1)) -> zw.Mechanism:
    body = zw.Body("rod", zw.Revolute("turn", axis=axis), mass=1, com=com)
    return zw.Mechanism(bodies=[body], gravity=gravity)


def bob(image: np.ndarray) -> np.ndarray:
    """Where the ball's blue is, as (right, down) of the picture's centre, in parts of its width."""
    rows, columns = np.nonzero(
        (image[..., 3] > 0.9) & (np.abs(image[..., 2] / (image[..., 0] + 1e-9) - 2.2) < 0.3)
    )
    return (np.array([columns.mean(), rows.mean()]) - [WIDTH / 2, HEIGHT / 2]) / WIDTH


def test_gravity_points_down_in_the_picture():
    hanging, raised = pendulum(), pixels(thumbnail_png(pendulum(), [np.pi / 2]))
    still = pixels(thumbnail_png(hanging))
    assert still.shape == (HEIGHT, WIDTH, 4) and still[0, 0, 3] == 0
    assert bob(still)[1] > 0.06
    assert bob(raised)[0] < -0.06  # turned about +y, down goes to -x, and x is to the right
    np.testing.assert_array_equal(pixels(thumbnail_png(hanging.replace(home=(np.pi / 2,)))), raised)
    along_y = pixels(thumbnail_png(pendulum((0, 0, 1), (0, -9.81, 0), (0, -1, 0))))
    assert bob(along_y)[1] > 0.06


def test_symbols_without_values_raise_an_error():
    with pytest.raises(ParameterError, match="symbols"):
        thumbnail_png(furuta())
