"""Reading of the scene data of a page, an independent forward kinematics on them, and a mechanism with all
shapes.
"""

from __future__ import annotations

import base64
import json
import zlib
from html.parser import HTMLParser
from typing import Any

import numpy as np
import sympy as sp
import xarray as xr
from scipy.spatial.transform import Rotation

import zwang as zw

HOSTILE = (
    "</script><script>alert(1)</script>",
    "<!--<script>",
    "\"><img src=x onerror='alert(1)'>",
    "]]>&lt;&amp;",
    "\u2028\u2029{{scene}}",
    "a\\u003cb",
    "Ä 関節 \U0001f916",
    "${alert(1)}`",
)


class Elements(HTMLParser):
    """The elements of a page, with their attributes and text, as a browser's parser has them."""

    def __init__(self, page: str):
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None], list[str]]] = []
        self.open = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.found.append((tag, dict(attrs), []))
        self.open = True

    def handle_endtag(self, tag: str) -> None:
        self.open = False

    def handle_data(self, data: str) -> None:
        if self.open:
            self.found[-1][2].append(data)

    def texts(self, tag: str) -> list[str]:
        return ["".join(text) for name, _, text in self.found if name == tag]


def scene_in(page: str) -> dict[str, Any]:
    """The data of a page."""
    return json.loads(Elements(page).texts("script")[0])


def array(scene: dict[str, Any], spec: dict[str, Any]) -> np.ndarray:
    """One of its arrays."""
    pack = zlib.decompress(base64.b64decode(scene["pack"]))
    return np.frombuffer(pack, "<" + spec["type"], spec["count"], spec["at"])


def pose(numbers: Any) -> np.ndarray:
    """12 numbers as a 4x4 matrix."""
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = np.reshape(numbers[:9], (3, 3)), numbers[9:]
    return T


def link_poses(model: dict[str, Any], q: np.ndarray) -> dict[int, np.ndarray]:
    """Forward kinematics of a page's links, by SciPy's rotations; -1 is the world."""
    poses = {-1: np.eye(4)}
    for k, link in enumerate(model["links"]):
        T, at, axis = np.eye(4), link["q"], np.array(link["axis"])
        if link["kind"] == "ball":
            T[:3, :3] = Rotation.from_quat(np.roll(q[at : at + 4], -1)).as_matrix()
        else:
            x = q[at] - link["reference"]
            if link["kind"] != "prismatic":
                T[:3, :3] = Rotation.from_rotvec(axis * x).as_matrix()
            T[:3, 3] = axis * x * {"prismatic": 1.0, "revolute": 0.0, "screw": link["pitch"]}[link["kind"]]
        poses[k] = poses[link["parent"]] @ pose(link["pose"]) @ T
    return poses


def shapes() -> zw.Mechanism:
    """One body with every kind of shape, on a prismatic joint, above a ground plane."""
    mesh = zw.Mesh(
        vertices=[(0, 0, 0), (1, 0, 0), (0, 2, 0), (0, 0, 3)],
        faces=[(0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3)],
        position=(6, 0, 0),
        color=(0.1, 0.5, 0.4, 1),
    )
    geometry = [
        zw.Box(0.3, 0.4, 0.5),
        zw.Sphere(0.2, position=(1, 0, 0), color=(1, 0, 0, 0.5)),
        zw.Capsule(0.1, 0.6, position=(2, 0, 0)),
        zw.Cylinder(0.1, 0.7, position=(3, 0, 0)),
        zw.Ellipsoid(0.1, 0.2, 0.3, position=(4, 0, 0)),
        mesh,
    ]
    body = zw.Body(
        "body",
        zw.Prismatic("lift", axis=(0, 0, 1), limits=(-0.5, 2)),
        position=(0, 0, 1),
        mass=1,
        geometry=geometry,
    )
    return zw.Mechanism("shapes", [body], geometry=[zw.Plane()])  # fmt: skip


def two_floors() -> xr.Dataset:
    """A recording of three worlds with different masses, each above two planes, at the heights 0 and -0.5."""
    mass = sp.Symbol("mass", positive=True)
    ball = zw.Body("ball", zw.Prismatic("z", axis=(0, 0, 1)), mass=mass, geometry=[zw.Sphere(0.2)])
    m = zw.Mechanism(
        "two floors", [ball], geometry=[zw.Plane(), zw.Plane(position=(0, 0, -0.5))], gravity=(0, 0, -9.81)
    )
    return zw.simulate(
        m, {"z": 1.0}, duration=0.02, step=0.01, params={"mass": [1.0, 2.0, 3.0]}, compiled=False
    )
