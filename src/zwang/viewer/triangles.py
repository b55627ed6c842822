"""Triangle meshes of all shapes of a scene at one configuration, for pictures that are drawn without a
browser.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from zwang.kinematics.poses import link_poses
from zwang.mechanism.mechanism import Mechanism
from zwang.viewer.scene import scene_content, scene_data_of
from zwang.viewer.stick_figures import rotation_with_z_axis

SIDES, RINGS = 48, 10  # of a round shape: subdivisions around its axis, and from its equator to its pole
MINIMUM_SIDES, MINIMUM_RINGS = 6, 2
MAXIMUM_TRIANGLES = (
    300_000  # of all round shapes in a picture; with many shapes each one is drawn more coarsely
)
LINE_RADIUS = 0.006  # radius of springs, rods and tendons, relative to the mechanism's size
AXES = ((0.80, 0.20, 0.20), (0.25, 0.60, 0.25), (0.20, 0.35, 0.80))  # colours of x, y and z
AXIS_SIZE = (0.16, 0.006)  # length and radius of the world's axes, relative to the mechanism's size
GROUND_RADIUS, GROUND_COLOR = (
    0.42,
    (0.90, 0.91, 0.93),
)  # radius of a drawn plane, relative to the mechanism's size, and its colour
AXES_RANGE = 3.0  # the world's axes are drawn within this distance, relative to the mechanism's size
LINE_COLOR = (0.45, 0.47, 0.51)
QUAD = np.array([[0, 1, 2], [0, 2, 3]])


class Resolution(NamedTuple):
    """The numbers of sides and rings with which round shapes are drawn."""

    sides: int = SIDES
    rings: int = RINGS


FULL_RESOLUTION = Resolution()
ColoredTriangles = tuple[np.ndarray, np.ndarray]  # triangles (n, 3, 3) and their colours (n, 3)


def world_triangles(mechanism: Mechanism, q: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """All triangles of a mechanism at q (nq,): corners (n, 3, 3) [m] and colours (n, 3), and a rotation `up`
    (3, 3).

    A plane is drawn as a disc below the mechanism. The world's axes are drawn if the mechanism is near the
    origin. `up` rotates the world such that gravity points along -z.
    """
    scene = scene_data_of(scene_content(mechanism))
    model, poses = scene["models"][0], link_poses(mechanism.tree, q)
    extent = model["extent"]
    drawn = [shape for shape in model["shapes"] if not shape["hidden"]]
    fine = resolution_for(sum(s["kind"] not in ("plane", "box", "mesh") for s in drawn))
    found = [_shape(s, scene["meshes"], poses, fine) for s in drawn if s["kind"] != "plane"]
    for line in model["lines"]:
        points = [_on_link(poses, int(link), np.array(p)) for link, *p in line["points"]]
        found += [
            _colored(cylinder_between(a, b, LINE_RADIUS * extent), LINE_COLOR) for a, b in pairwise(points)
        ]
    points = np.concatenate([np.zeros((0, 3)), *(corners.reshape(-1, 3) for corners, _ in found)])
    low, high = (points.min(axis=0), points.max(axis=0)) if len(points) else (np.zeros(3), np.zeros(3))
    planes = [s for s in drawn if s["kind"] == "plane"]
    found += [_ground_disc(s, poses, (low + high) / 2, GROUND_RADIUS * extent) for s in planes]
    if np.linalg.norm(np.maximum(np.maximum(low, -high), 0)) <= AXES_RANGE * extent:
        found.append(_axes(extent))
    corners, colors = (np.concatenate(part) for part in zip(*found, strict=True))
    return corners, colors, np.reshape(scene["root"], (3, 3))


def resolution_for(count: int) -> Resolution:
    """The resolution at which `count` round shapes together have about `MAXIMUM_TRIANGLES`
    triangles at most.
    """
    share = min(1.0, MAXIMUM_TRIANGLES / max(1, 4 * count * SIDES * RINGS)) ** 0.5
    return Resolution(max(MINIMUM_SIDES, int(share * SIDES)), max(MINIMUM_RINGS, int(share * RINGS)))


def _shape(
    shape: dict[str, Any], meshes: list[dict[str, np.ndarray]], poses: Any, fine: Resolution
) -> ColoredTriangles:
    corners = transformed(shape["pose"], shape_corners(shape, meshes, 0.0, fine))
    return _colored(_on_link(poses, shape["link"], corners), shape["color"][:3])


def _ground_disc(shape: dict[str, Any], poses: Any, middle: np.ndarray, radius: float) -> ColoredTriangles:
    """A disc in a plane, centred at the point of the plane that is nearest to `middle`."""
    corners = _on_link(poses, shape["link"], transformed(shape["pose"], shape_corners(shape, [], radius)))
    origin, along, across = corners[0, 0], corners[0, 1] - corners[0, 0], corners[0, 2] - corners[0, 0]
    normal = np.cross(along, across) / np.linalg.norm(np.cross(along, across))
    away = middle - origin
    return _colored(corners + away - (away @ normal) * normal, GROUND_COLOR)


def _colored(corners: np.ndarray, color: Any) -> ColoredTriangles:
    return corners, np.tile(color, (len(corners), 1))


def _on_link(poses: Any, link: int, points: np.ndarray) -> np.ndarray:
    """The points, given in the frame of a link, in the world frame; link -1 is the world itself."""
    if link < 0:
        return points
    R, p = (np.asarray(part, dtype=float) for part in poses[link])
    return points @ R.T + p


def transformed(pose: list[float], points: np.ndarray) -> np.ndarray:
    """The points transformed by a pose of 12 numbers: the rotation by rows, then the origin."""
    return points @ np.reshape(pose[:9], (3, 3)).T + np.array(pose[9:])


def shape_corners(
    shape: dict[str, Any],
    meshes: list[dict[str, np.ndarray]],
    ground: float,
    fine: Resolution = FULL_RESOLUTION,
) -> np.ndarray:
    """Triangles (n, 3, 3) of a shape in its own frame; a plane becomes a disc of radius `ground` [m]."""
    size, kind = shape["size"], shape["kind"]
    if kind == "mesh":
        mesh = meshes[shape["mesh"]]
        return mesh["vertices"][mesh["faces"]]
    if kind == "plane":
        return _surface_of_revolution([0.0, ground], [0.0, 0.0])
    if kind == "box":
        return _box() * np.array(size)
    if kind == "cylinder":
        r, l = size
        return _surface_of_revolution([0, r, r, 0], [-l / 2, -l / 2, l / 2, l / 2], fine.sides)
    arc = np.linspace(0, np.pi / 2, fine.rings)
    if kind == "capsule":
        r, l = size
        low, high = (-r * np.cos(arc) - l / 2), (r * np.sin(arc) + l / 2)
        radii = np.concatenate([r * np.sin(arc), r * np.cos(arc)])
        return _surface_of_revolution(radii, np.concatenate([low, high]), fine.sides)
    stretch = np.array(size if kind == "ellipsoid" else 3 * size)
    whole = np.linspace(-np.pi / 2, np.pi / 2, 2 * fine.rings - 1)
    return _surface_of_revolution(np.cos(whole), np.sin(whole), fine.sides) * stretch


def _surface_of_revolution(radii: Any, heights: Any, sides: int = SIDES) -> np.ndarray:
    """The surface of revolution about z of a polygonal line through the points (radius, height)."""
    r, z = np.asarray(radii, dtype=float), np.asarray(heights, dtype=float)
    angle = np.linspace(0, 2 * np.pi, sides + 1)
    grid = np.stack(
        [np.outer(r, np.cos(angle)), np.outer(r, np.sin(angle)), np.repeat(z[:, None], sides + 1, 1)], axis=-1
    )
    corners = np.stack([grid[:-1, :-1], grid[:-1, 1:], grid[1:, 1:], grid[1:, :-1]], axis=2).reshape(-1, 4, 3)
    triangles = corners[:, QUAD].reshape(-1, 3, 3)
    area = np.linalg.norm(
        np.cross(triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0]), axis=1
    )
    return triangles[area > 1e-9 * area.max()]  # triangles at the axis may be degenerate


def _box() -> np.ndarray:
    """The triangles of a cube with edges of length 1."""
    square = np.array([[-0.5, -0.5, 0.5], [0.5, -0.5, 0.5], [0.5, 0.5, 0.5], [-0.5, 0.5, 0.5]])[QUAD]
    faces = [np.roll(square * sign, axis, axis=2)[:, ::sign] for axis in range(3) for sign in (1, -1)]
    return np.concatenate(faces)


def cylinder_between(a: np.ndarray, b: np.ndarray, radius: float) -> np.ndarray:
    """A thin cylinder from a to b."""
    length = float(np.linalg.norm(b - a))
    if length == 0:
        return np.zeros((0, 3, 3))
    return (
        _surface_of_revolution([radius, radius], [0, length]) @ rotation_with_z_axis((b - a) / length).T + a
    )


def _axes(extent: float) -> tuple[np.ndarray, np.ndarray]:
    """The axes of the world frame: x red, y green, z blue."""
    length, radius = AXIS_SIZE[0] * extent, AXIS_SIZE[1] * extent
    rods = [cylinder_between(np.zeros(3), length * axis, radius) for axis in np.eye(3)]
    colors = [np.tile(color, (len(rod), 1)) for color, rod in zip(AXES, rods, strict=True)]
    return np.concatenate(rods), np.concatenate(colors)
