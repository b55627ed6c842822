"""Shapes as triangles, for pictures without a browser: of what a page's scene holds, placed in the world at one configuration."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from zwang.kinematics.poses import link_poses
from zwang.mechanism.mechanism import Mechanism
from zwang.view.scene import picture_of, scene_content
from zwang.view.stick_figures import turned_to

SIDES, RINGS = 48, 10  # of what is round: around, and from its equator to its pole
FEWEST_SIDES, FEWEST_RINGS = 6, 2
MOST_TRIANGLES = 300_000  # of all that is round in a picture; of many shapes each one has fewer
LINE = 0.006  # radius of springs, rods and tendons, by the mechanism's reach
AXES = ((0.80, 0.20, 0.20), (0.25, 0.60, 0.25), (0.20, 0.35, 0.80))  # colours of x, y and z
AXIS = (0.16, 0.006)  # length and radius of the world's axes, by the mechanism's reach
GROUND, GROUND_COLOR = 0.42, (0.90, 0.91, 0.93)  # radius of a plane that is drawn, by the reach
NEAR = 3.0  # how far off the axes may be, by the reach
LINE_COLOR = (0.45, 0.47, 0.51)
QUAD = np.array([[0, 1, 2], [0, 2, 3]])


class Fineness(NamedTuple):
    """How many sides and rings what is round is drawn with."""

    sides: int = SIDES
    rings: int = RINGS


FINE = Fineness()
Painted = tuple[np.ndarray, np.ndarray]  # triangles (n, 3, 3) and their colours (n, 3)


def world_triangles(mechanism: Mechanism, q: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(corners (n, 3, 3) [m], colours (n, 3), up (3, 3)): all that is drawn of a mechanism at q (nq,).

    Planes are discs below it, and the world's axes are there if it is near. `up` turns the world so that gravity points along -z.
    """
    scene = picture_of(scene_content(mechanism))
    model, poses = scene["models"][0], link_poses(mechanism.tree, q)
    reach = model["reach"]
    drawn = [shape for shape in model["shapes"] if not shape["hidden"]]
    fine = fineness(sum(s["kind"] not in ("plane", "box", "mesh") for s in drawn))
    found = [_shape(s, scene["meshes"], poses, fine) for s in drawn if s["kind"] != "plane"]
    for line in model["lines"]:
        points = [_on_link(poses, int(link), np.array(p)) for link, *p in line["points"]]
        found += [_colored(_rod(a, b, LINE * reach), LINE_COLOR) for a, b in pairwise(points)]
    points = np.concatenate([np.zeros((0, 3)), *(corners.reshape(-1, 3) for corners, _ in found)])
    low, high = (points.min(axis=0), points.max(axis=0)) if len(points) else (np.zeros(3), np.zeros(3))
    planes = [s for s in drawn if s["kind"] == "plane"]
    found += [_disc(s, poses, (low + high) / 2, GROUND * reach) for s in planes]
    if np.linalg.norm(np.maximum(np.maximum(low, -high), 0)) <= NEAR * reach:
        found.append(_axes(reach))
    corners, colors = (np.concatenate(part) for part in zip(*found, strict=True))
    return corners, colors, np.reshape(scene["root"], (3, 3))


def fineness(count: int) -> Fineness:
    """How finely so many round shapes are drawn, so that together they have about `MOST_TRIANGLES` at most."""
    share = min(1.0, MOST_TRIANGLES / max(1, 4 * count * SIDES * RINGS)) ** 0.5
    return Fineness(max(FEWEST_SIDES, int(share * SIDES)), max(FEWEST_RINGS, int(share * RINGS)))


def _shape(shape: dict[str, Any], meshes: list[dict[str, np.ndarray]], poses: Any, fine: Fineness) -> Painted:
    corners = _placed(shape["pose"], shape_corners(shape, meshes, 0.0, fine))
    return _colored(_on_link(poses, shape["link"], corners), shape["color"][:3])


def _disc(shape: dict[str, Any], poses: Any, middle: np.ndarray, radius: float) -> Painted:
    """The part of a plane that is nearest to a point."""
    corners = _on_link(poses, shape["link"], _placed(shape["pose"], shape_corners(shape, [], radius)))
    origin, along, across = corners[0, 0], corners[0, 1] - corners[0, 0], corners[0, 2] - corners[0, 0]
    normal = np.cross(along, across) / np.linalg.norm(np.cross(along, across))
    away = middle - origin
    return _colored(corners + away - (away @ normal) * normal, GROUND_COLOR)


def _colored(corners: np.ndarray, color: Any) -> Painted:
    return corners, np.tile(color, (len(corners), 1))


def _on_link(poses: Any, link: int, points: np.ndarray) -> np.ndarray:
    """Points of a link in the world; -1 is the world itself."""
    if link < 0:
        return points
    R, p = (np.asarray(part, dtype=float) for part in poses[link])
    return points @ R.T + p


def _placed(pose: list[float], points: np.ndarray) -> np.ndarray:
    """Points moved by a pose of 12 numbers: the rotation by rows, then the origin."""
    return points @ np.reshape(pose[:9], (3, 3)).T + np.array(pose[9:])


def shape_corners(
    shape: dict[str, Any], meshes: list[dict[str, np.ndarray]], ground: float, fine: Fineness = FINE
) -> np.ndarray:
    """Triangles (n, 3, 3) of a shape in its own frame; of a plane a disc of the radius `ground`."""
    size, kind = shape["size"], shape["kind"]
    if kind == "mesh":
        mesh = meshes[shape["mesh"]]
        return mesh["vertices"][mesh["faces"]]
    if kind == "plane":
        return _turned([0.0, ground], [0.0, 0.0])
    if kind == "box":
        return _box() * np.array(size)
    if kind == "cylinder":
        r, l = size
        return _turned([0, r, r, 0], [-l / 2, -l / 2, l / 2, l / 2], fine.sides)
    arc = np.linspace(0, np.pi / 2, fine.rings)
    if kind == "capsule":
        r, l = size
        low, high = (-r * np.cos(arc) - l / 2), (r * np.sin(arc) + l / 2)
        radii = np.concatenate([r * np.sin(arc), r * np.cos(arc)])
        return _turned(radii, np.concatenate([low, high]), fine.sides)
    stretch = np.array(size if kind == "ellipsoid" else 3 * size)
    whole = np.linspace(-np.pi / 2, np.pi / 2, 2 * fine.rings - 1)
    return _turned(np.cos(whole), np.sin(whole), fine.sides) * stretch


def _turned(radii: Any, heights: Any, sides: int = SIDES) -> np.ndarray:
    """The surface that a line of (radius, height) makes when turned about z."""
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
    return triangles[area > 1e-9 * area.max()]  # on the axis, two corners of some meet


def _box() -> np.ndarray:
    """A cube of edge 1."""
    square = np.array([[-0.5, -0.5, 0.5], [0.5, -0.5, 0.5], [0.5, 0.5, 0.5], [-0.5, 0.5, 0.5]])[QUAD]
    faces = [np.roll(square * sign, axis, axis=2)[:, ::sign] for axis in range(3) for sign in (1, -1)]
    return np.concatenate(faces)


def _rod(a: np.ndarray, b: np.ndarray, radius: float) -> np.ndarray:
    """A thin cylinder from a to b."""
    length = float(np.linalg.norm(b - a))
    if length == 0:
        return np.zeros((0, 3, 3))
    return _turned([radius, radius], [0, length]) @ turned_to((b - a) / length).T + a


def _axes(reach: float) -> tuple[np.ndarray, np.ndarray]:
    """The world's axes: x red, y green, z blue."""
    length, radius = AXIS[0] * reach, AXIS[1] * reach
    rods = [_rod(np.zeros(3), length * axis, radius) for axis in np.eye(3)]
    colors = [np.tile(color, (len(rod), 1)) for color, rod in zip(AXES, rods, strict=True)]
    return np.concatenate(rods), np.concatenate(colors)
