"""Plots of ellipsoids and workspaces, compared with the computed values."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pytest

import zwang as zw
from tests.robot import dh


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def test_the_ellipse_of_velocities_is_drawn_at_the_tip_with_its_axes():
    m, q = dh.two_link(), (0.3, 1.2)
    figure = zw.plot_ellipsoids(m, q, "tip", kinds=("velocity",))
    (axes,) = figure.axes
    label = axes.get_legend().get_texts()[0].get_text()
    scale = float(label.split("drawn as ")[1].split()[0])
    outline = next(line for line in axes.lines if len(line.get_xdata()) == 200)
    x = np.stack(outline.get_data()) - zw.frame_pose(m, q, "tip").p[:2, None]
    w = zw.robot.manipulability(m, q, "tip")
    inside = np.linalg.norm(w.velocity_ellipsoid.axes[:2].T @ x / w.singular_values[:, None], axis=0)
    np.testing.assert_allclose(inside, scale, rtol=2e-3)


def test_an_arm_in_space_is_drawn_in_space(tmp_path):
    q = [[0, -0.3, 0, -2.2, 0, 2, 0.8], [0.5, 0.3, 0, -1.2, 0, 2, 0.8]]
    path = tmp_path / "panda.png"
    figure = zw.plot_ellipsoids(dh.arm("panda"), q, "tip", kinds=("velocity", "force"), path=path)
    assert figure.axes[0].name == "3d" and path.stat().st_size > 10_000


def test_a_singular_arm_has_a_long_force_ellipse_but_a_finite_one():
    figure = zw.plot_ellipsoids(dh.two_link(), (0.5, 0.0), "tip")
    limits = np.array([figure.axes[0].get_xlim(), figure.axes[0].get_ylim()])
    assert np.isfinite(limits).all() and np.abs(limits).max() < 10


def test_the_map_of_the_two_link_arm_is_its_closed_form():
    """In every cell the best of mu = |sin theta2| with 2 cos theta2 = r^2 - 2."""
    space = zw.robot.workspace(dh.two_link(), "tip", samples=40_000)
    figure = zw.plot_manipulability(space)
    image = figure.axes[0].images[0]
    grid = image.get_array()
    left, right, low, high = image.get_extent()
    x = left + (np.arange(grid.shape[1]) + 0.5) * (right - left) / grid.shape[1]
    y = low + (np.arange(grid.shape[0]) + 0.5) * (high - low) / grid.shape[0]
    r = np.hypot(*np.meshgrid(x, y))
    expected = np.sqrt(np.clip(1 - ((r**2 - 2) / 2) ** 2, 0, 1))
    clear = (r > 0.5) & (r < 1.8) & ~np.ma.getmaskarray(grid)
    assert np.abs(grid - expected)[clear].max() < 0.12  # across a cell the measure changes by so much


def test_maps_of_a_plane_and_of_a_section(tmp_path):
    space = zw.robot.workspace(dh.arm("ur5"), "tip", samples=3000)
    assert zw.plot_manipulability(space, part="position").axes[0].get_xlabel().startswith("distance")
    path = tmp_path / "map.png"
    zw.plot_manipulability(space, plane="xy", value="dexterity", best=False, part="position", path=path)
    assert path.exists()


def test_wrong_arguments_raise_errors():
    space = zw.robot.workspace(dh.two_link(), "tip", samples=10)
    with pytest.raises(zw.errors.DescriptionError, match="velocity"):
        zw.plot_ellipsoids(dh.two_link(), (0, 1), "tip", kinds=("speed",))
    with pytest.raises(zw.errors.DescriptionError, match="dexterity"):
        zw.plot_manipulability(space, value="beauty")
    with pytest.raises(zw.errors.DescriptionError, match="'rz'"):
        zw.plot_manipulability(space, plane="zz")
    with pytest.raises(zw.errors.ShapeError, match="shape"):
        zw.plot_ellipsoids(dh.two_link(), (0, 1, 2), "tip")
