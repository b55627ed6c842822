"""Plots of manipulability: ellipsoids drawn at a frame of an arm, and maps over a workspace."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from zwang.api.arguments import validation
from zwang.errors import DescriptionError, ShapeError
from zwang.kinematics.poses import link_poses, placement_pose
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.type_validation import validated_arguments
from zwang.robot.manipulability import Manipulability, ManipulabilityEllipsoid, manipulability
from zwang.robot.workspace import Workspace
from zwang.viewer.picture_file import save_picture
from zwang.viewer.plot_style import INK, STYLE, short

STYLE_OPTIONS: Any = STYLE
KINDS = {
    "velocity": ("velocity", "#1b7fbd", lambda w: w.velocity_ellipsoid),
    "force": ("force", "#d95f02", lambda w: w.force_ellipsoid),
    "inertia": ("inertia (Asada)", "#7a5195", lambda w: w.inertia_ellipsoid()),
    "acceleration": ("acceleration", "#1b9e77", lambda w: w.acceleration_ellipsoid()),
}
ELLIPSOID_SIZE = 0.35  # largest semi-axis of the drawn ellipsoids, relative to the arm's size
PLANAR_TOLERANCE = (
    1e-6  # an arm whose extent in one direction is smaller, relative to its size, is drawn in its plane
)
MAP_CELLS = 60  # number of cells of a map along its longer side
INFINITE_LENGTH = 3.0  # drawn length of an infinite semi-axis, relative to the longest finite one
PLANES = {"xy": (0, 1), "xz": (0, 2), "yz": (1, 2)}


@validated_arguments()
def plot_ellipsoids(
    mechanism: Mechanism,
    q: npt.ArrayLike,
    frame: str,
    *,
    kinds: Sequence[str] = ("velocity", "force"),
    path: str | Path | None = None,
    **options: Any,
) -> Figure:
    """A figure of the arm that carries a frame, with the frame's manipulability ellipsoids for its position.

    q: one configuration (nq,) or several (n, nq) [rad or m].
    frame: the name of a frame or body.
    kinds: some of "velocity", "force", "inertia", "acceleration"; each kind has one scale, which the legend
    states.
    path: a file to which the figure is also written.
    options: further arguments of `manipulability`.

    An arm that moves in a coordinate plane is drawn in that plane, any other arm in three dimensions.
    Raises DescriptionError for an unknown kind, and ShapeError for a wrong shape of q.
    """
    m = validation.numeric_mechanism(mechanism)
    unknown = [kind for kind in kinds if kind not in KINDS]
    if unknown:
        raise DescriptionError(f"there is no ellipsoid {unknown[0]!r}; the kinds are {', '.join(KINDS)}")
    configurations = np.atleast_2d(validation.real_values(q, "q"))
    arms = [_chain_points(m, row, frame) for row in configurations]
    found = [manipulability(m, row, frame, part="position", **options) for row in configurations]
    reach = max(np.ptp(np.concatenate(arms), axis=0).max(), 1e-9)
    drawn = {kind: _scaled([KINDS[kind][2](w) for w in found], ELLIPSOID_SIZE * reach) for kind in kinds}
    plane = _plane(np.concatenate(arms), found[0])
    with matplotlib.rc_context(STYLE_OPTIONS):
        figure = plt.figure(figsize=(7, 5.5), layout="constrained")
        axes = figure.add_subplot(projection="3d" if plane is None else None)
        _draw(axes, arms, drawn, plane)
        axes.set_title(short(f"{m.name}: manipulability ellipsoids (position) at {frame!r}", 80), color=INK)
        _save_and_close(figure, path)
    return figure


@validated_arguments()
def plot_manipulability(
    space: Workspace,
    *,
    value: str = "measure",
    plane: str | None = None,
    best: bool = True,
    path: str | Path | None = None,
    **options: Any,
) -> Figure:
    """A map of the manipulability over a workspace, projected to a plane.

    space: samples of the workspace, from `zw.robot.workspace`.
    value: "measure" (the default) or "dexterity".
    plane: "xy", "xz", "yz", or "rz" (distance from the z axis, and height); by default the plane of a planar
        arm, otherwise "rz".
    best: whether a cell shows the largest value of its samples (the default) or their mean.
    path: a file to which the figure is also written.
    options: further arguments of `manipulability`.

    Raises DescriptionError for an unknown value or plane.
    """
    if value not in ("measure", "dexterity"):
        raise DescriptionError(f"value is {value!r}; it must be 'measure' or 'dexterity'")
    plane = plane or _plane_of(space.positions) or "rz"
    if plane not in (*PLANES, "rz"):
        raise DescriptionError(
            f"plane is {plane!r}; it must be one of {', '.join(map(repr, (*PLANES, 'rz')))}"
        )
    w = space.manipulability(**options)
    across, up = _in_plane(space.positions, plane)
    with matplotlib.rc_context(STYLE_OPTIONS):
        figure, axes = plt.subplots(figsize=(7, 5.5), layout="constrained")
        _draw_map(figure, axes, across, up, getattr(w, value), best, _label(value, w))
        names = ("distance from the z axis", "z") if plane == "rz" else tuple(plane)
        axes.set_xlabel(f"{names[0]} [m]")
        axes.set_ylabel(f"{names[1]} [m]")
        statistic = "largest" if best else "mean"
        title = f"{space.mechanism.name}: {statistic} {value} ({w.space.part}) at {space.frame!r}"
        axes.set_title(short(title, 80), color=INK)
        _save_and_close(figure, path)
    return figure


def _label(value: str, w: Manipulability) -> str:
    """The label of the colour bar."""
    return f"manipulability ({w.space.part})" if value == "measure" else "dexterity"


def _save_and_close(figure: Figure, path: str | Path | None) -> None:
    """Write the figure if a path is given, and close it in a notebook."""
    if path is not None:
        save_picture(figure, path)
    if "inline" in matplotlib.get_backend():
        plt.close(figure)  # a notebook displays the returned figure


def _chain_points(m: Mechanism, q: np.ndarray, frame: str) -> np.ndarray:
    """Positions (n, 3) of the world's origin, of the joints on the path to the frame, and of the frame."""
    if q.shape != (m.nq,):
        raise ShapeError(f"q must have the shape ({m.nq},) or (n, {m.nq}); its last axis is {q.shape[-1]}")
    poses, placement = link_poses(m.tree, q), m.tree.placement(frame)
    points = [poses[i].p for i in m.tree.path(placement.link)] + [placement_pose(poses, placement).p]
    return np.array([np.zeros(3), *points], dtype=float)


def _scaled(ellipsoids: list[ManipulabilityEllipsoid], size: float) -> tuple[list[np.ndarray], float]:
    """The semi-axes (3, k) of each ellipsoid, scaled such that the longest one is `size` [m],
    and the scale.
    """
    finite = [e.lengths[np.isfinite(e.lengths)] for e in ellipsoids]
    longest = max((x.max() for x in finite if len(x)), default=1.0) or 1.0
    scale = size / longest
    lengths = [np.minimum(e.lengths, INFINITE_LENGTH * longest) * scale for e in ellipsoids]
    return [e.axes * x for e, x in zip(ellipsoids, lengths, strict=True)], scale


def _plane(points: np.ndarray, w: Manipulability) -> tuple[int, int] | None:
    """The two coordinates of the plane in which the arm moves; None if it moves in space."""
    name = _plane_of(points)
    moved = np.abs(w.space.basis).sum(axis=1) > 0
    if name is None or any(moved[k] for k in range(3) if k not in PLANES[name]):
        return None
    return PLANES[name]


def _plane_of(points: np.ndarray) -> str | None:
    """The name of the coordinate plane that contains the points; None if there is none."""
    spread = np.ptp(points, axis=0)
    flat = spread < PLANAR_TOLERANCE * max(spread.max(), 1e-9)
    return next(
        (name for name, kept in PLANES.items() if flat.sum() == 1 and not flat[list(kept)].any()), None
    )


def _draw(axes: Any, arms: list[np.ndarray], drawn: dict[str, Any], plane: tuple[int, int] | None) -> None:
    kept = list(plane) if plane is not None else [0, 1, 2]
    for arm in arms:
        axes.plot(
            *arm[:, kept].T, "-o", color=INK, linewidth=2.5, markersize=5, markerfacecolor="white", zorder=5
        )
    for kind, (shapes, scale) in drawn.items():
        name, color, _ = KINDS[kind]
        label = f"{name}, 1 unit is drawn as {scale:.3g} m"
        for arm, shape in zip(arms, shapes, strict=True):
            draw = _draw_ellipse if plane is not None else _draw_ellipsoid
            draw(axes, arm[-1][kept], shape[kept], color, label)
            label = "_"
    axes.set_aspect("equal")
    for name, k in zip(("xlabel", "ylabel", "zlabel"), kept, strict=False):
        axes.set(**{name: f"{'xyz'[k]} [m]"})
    axes.legend(loc="best" if plane is not None else "upper left")


def _draw_ellipse(axes: Axes, centre: np.ndarray, shape: np.ndarray, color: str, label: str) -> None:
    t = np.linspace(0, 2 * np.pi, 200)
    circle = np.stack([np.cos(t), np.sin(t)])[: shape.shape[1]]
    x, y = centre[:, None] + shape[:, :2] @ circle
    axes.fill(x, y, color=color, alpha=0.18, linewidth=0)
    axes.plot(x, y, color=color, label=label)
    for half in shape.T:
        axes.plot(*np.stack([centre - half, centre + half], axis=1), color=color, linewidth=0.7)


def _draw_ellipsoid(axes: Any, centre: np.ndarray, shape: np.ndarray, color: str, label: str) -> None:
    u, v = np.meshgrid(np.linspace(0, 2 * np.pi, 41), np.linspace(0, np.pi, 21))
    ball = np.stack([np.cos(u) * np.sin(v), np.sin(u) * np.sin(v), np.cos(v)])[: shape.shape[1]]
    points = centre[:, None, None] + np.tensordot(shape, ball, axes=1)
    axes.plot_surface(*points, color=color, alpha=0.22, linewidth=0, shade=False)
    axes.plot_wireframe(*points, color=color, linewidth=0.35, rstride=5, cstride=5)
    for k, half in enumerate(shape.T):
        ends = np.stack([centre - half, centre + half], axis=1)
        axes.plot(*ends, color=color, linewidth=1.2, label=label if k == 0 else "_")


def _in_plane(p: np.ndarray, plane: str) -> tuple[np.ndarray, np.ndarray]:
    if plane == "rz":
        return np.hypot(p[:, 0], p[:, 1]), p[:, 2]
    first, second = PLANES[plane]
    return p[:, first], p[:, second]


def _draw_map(
    figure: Figure, axes: Axes, across: np.ndarray, up: np.ndarray, values: np.ndarray, best: bool, label: str
) -> None:
    """Draw a map whose cells show the largest or mean value of the samples in them; empty cells
    stay white.
    """
    cell = max(np.ptp(across), np.ptp(up)) / MAP_CELLS
    columns, rows = ((x - x.min()) / cell for x in (across, up))
    shape = int(rows.max()) + 1, int(columns.max()) + 1
    at = rows.astype(int), columns.astype(int)
    grid, count = np.full(shape, -np.inf if best else 0.0), np.zeros(shape)
    np.add.at(count, at, 1)
    if best:
        np.maximum.at(grid, at, values)
    else:
        np.add.at(grid, at, values)
        grid = grid / np.maximum(count, 1)
    shown = np.ma.masked_where(count == 0, grid)
    extent = (across.min(), across.min() + shape[1] * cell, up.min(), up.min() + shape[0] * cell)
    image = axes.imshow(shown, origin="lower", extent=extent, cmap="viridis", interpolation="nearest", vmin=0)
    axes.grid(False)
    figure.colorbar(image, ax=axes, label=label)
