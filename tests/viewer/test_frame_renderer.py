"""Pictures of a moving mechanism: pixels by the equations of a pinhole camera, visibility, floor."""

from __future__ import annotations

import numpy as np
import pytest

import zwang as zw
from zwang.errors import ParameterError, ShapeError, StateError
from zwang.viewer.frame_renderer import BACKGROUND, DISTANCE, FOCAL_LENGTH, FrameRenderer
from zwang.viewer.stick_figures import extent

RED, BLUE = (1.0, 0.0, 0.0, 1.0), (0.0, 0.0, 1.0, 1.0)
EYE = np.array([1.0, -1.7, 0.75]) / np.linalg.norm([1.0, -1.7, 0.75])
RIGHT = np.array([1.7, 1.0, 0.0]) / np.hypot(1.7, 1.0)
UP = np.cross(EYE, RIGHT)


def beads(axis=(1, 0, 0), sizes=(0.05, 0.05), floor=()) -> zw.Mechanism:
    """Two spheres, red and blue, on sliders along an axis."""
    bodies = [
        zw.Body(
            name,
            zw.Prismatic(f"slide of {name}", axis=axis),
            mass=1.0,
            geometry=[zw.Sphere(radius=r, color=color, visual_only=True)],
        )
        for name, color, r in (("red", RED, sizes[0]), ("blue", BLUE, sizes[1]))
    ]
    return zw.Mechanism("beads", bodies, geometry=floor, home=(-0.5, 0.5))


def pixels(picture: np.ndarray, color: tuple[float, ...]) -> np.ndarray:
    """The rows and columns (n, 2) of pixels in which this colour dominates."""
    channel = int(np.argmax(color[:3]))
    others = np.delete(picture.astype(int), channel, axis=2).max(axis=2)
    return np.argwhere(picture[..., channel].astype(int) > others + 60)


@pytest.mark.parametrize("q", [(-0.5, 0.5), (0.1, 0.8), (7.0, 6.5)])
def test_a_sphere_is_where_a_pinhole_camera_sees_it(q):
    """The camera looks at the middle of the two spheres, at a distance proportional to the size for q = 0."""
    m = beads()
    width, height = 360, 240
    picture = FrameRenderer(m, (width, height)).draw(q)
    assert picture.shape == (height, width, 3) and picture.dtype == np.uint8
    for x, color in zip(q, (RED, BLUE), strict=True):
        p = np.array([x - sum(q) / 2, 0, 0])
        depth = DISTANCE * extent(m) - p @ EYE
        u, v = FOCAL_LENGTH * (p @ RIGHT) / depth, FOCAL_LENGTH * (p @ UP) / depth
        column, row = width / 2 + u * height / 2, height / 2 - v * height / 2
        found = pixels(picture, color)
        np.testing.assert_allclose(found.mean(axis=0) + 0.5, [row, column], atol=0.7)
        # a sphere covers a disc of its radius, up to the pixels at its rim
        radius = FOCAL_LENGTH * 0.05 / depth * height / 2
        assert abs(np.sqrt(len(found) / np.pi) - radius) < 0.5 + 0.05 * radius


def test_what_is_nearer_hides_what_is_behind():
    m = beads(axis=tuple(EYE), sizes=(0.1, 0.1))
    draw = FrameRenderer(m, (120, 120)).draw
    assert len(pixels(draw([0.5, -0.5]), BLUE)) == 0 < len(pixels(draw([0.5, -0.5]), RED))
    assert len(pixels(draw([-0.5, 0.5]), RED)) == 0 < len(pixels(draw([-0.5, 0.5]), BLUE))


def test_the_floor_rests_while_the_mechanism_moves():
    """Half a tile to the side the pattern differs; two tiles to the side it is the same."""
    m = beads(floor=[zw.Plane(position=(0, 0, -0.2))])
    renderer = FrameRenderer(m, (200, 200))
    side = 0.35 * extent(m)
    first, half, whole = (
        renderer.draw([x - 0.5, x + 0.5]).astype(int) for x in (0.1, 0.1 + side / 2, 0.1 + 2 * side)
    )
    assert (abs(first - whole).max(axis=2) > 30).mean() < 0.01
    assert (abs(first - half).max(axis=2) > 10).mean() > 0.1
    empty = FrameRenderer(beads(), (200, 200)).draw([-0.5, 0.5])
    assert np.allclose(empty[0, 0] / 255, BACKGROUND, atol=0.01)


def test_wrong_arguments_are_named():
    with pytest.raises(ShapeError, match="pixels"):
        FrameRenderer(beads(), (0, 100))
    with pytest.raises(ParameterError, match="symbols"):
        FrameRenderer(zw.Mechanism("s", [zw.Body("b", zw.Prismatic("j"), mass=zw.scalar.symbol("m"))]))
    with pytest.raises(StateError, match="finite"):
        FrameRenderer(beads(), (40, 40)).draw([np.nan, 0])
