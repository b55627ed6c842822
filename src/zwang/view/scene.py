"""A mechanism, and a motion of it, as what a page draws: plain numbers and names, and one pack of bytes for what is long.

The page has the tree of links and does the forward kinematics itself; so a motion is only its q over time, and sliders need no
server. Poses are 12 numbers: the rotation by rows, then the origin.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import xarray as xr

from zwang import door
from zwang.errors import ShapeError
from zwang.mechanism.mechanism import JointIndex, Mechanism
from zwang.mechanism.shapes import Geometry, Mesh, Plane
from zwang.mechanism.tree import Place
from zwang.simulate.record import coordinate_units, mechanism_of
from zwang.view.sticks import lines, reach, sticks

PER_SECOND, MOST_FRAMES = 60, 6000  # of a motion: between them the page interpolates
SHOWN_GROUPS = 2  # MuJoCo's viewer shows the groups 0 to 2; models keep their collision shapes in 3
PALETTE = ("#4c78a8", "#e39c37", "#5a9e6f", "#c8553d", "#6aaeb5", "#8a6fb0", "#d9b84a", "#8c6d5a")
PAINT = (
    (0.83, 0.84, 0.85, 1.0),
    (0.62, 0.66, 0.71, 1.0),
)  # of meshes without a colour, alternating along the tree


class Pack:
    """Arrays, one behind the other, as bytes; each is found by its type, start and count."""

    def __init__(self):
        self._parts: list[bytes] = []
        self._length = 0

    def put(self, values: Any, kind: str = "<f4") -> dict[str, Any]:
        """Add an array; returns where it is."""
        data = np.ascontiguousarray(values, dtype=kind)
        found = {"type": kind[1:], "at": self._length, "count": int(data.size)}
        text = data.tobytes()
        self._parts.append(text + b"\0" * (-len(text) % 4))
        self._length += len(self._parts[-1])
        return found

    def text(self) -> str:
        """All of it, compressed (zlib), in base64."""
        return base64.b64encode(zlib.compress(b"".join(self._parts), 6)).decode("ascii")


def scene_of(what: Mechanism | xr.Dataset, worlds: int = 16, traces: Sequence[str] = ()) -> dict[str, Any]:
    """What the page needs, from a mechanism or from a recording of `zw.simulate`: of that, the first `worlds` worlds.

    traces: frames whose paths are drawn. Raises ParameterError for symbols without values, UnknownNameError for a frame that
    is not there, ShapeError for another dataset.
    """
    pack, meshes = Pack(), {}
    if isinstance(what, Mechanism):
        run, chosen = None, [door.numeric(what)]
    else:
        run = _checked(what).isel(world=slice(0, worlds))
        chosen = _mechanisms(run)
    for name in traces:
        chosen[0].tree.place(name)
    different = list({id(m): m for m in chosen}.values())
    scene: dict[str, Any] = {
        "title": chosen[0].name,
        "models": [_model(m, meshes, pack) for m in different],
        "worlds": [{"model": next(k for k, d in enumerate(different) if d is m)} for m in chosen],
        "meshes": list(meshes.values()),
        "traces": list(traces),
        "root": _upright(different[0]),
        "run": None if run is None else _motion(run, pack),
    }
    if run is not None:
        for world, label in zip(scene["worlds"], run["world"].values, strict=True):
            world["name"] = f"world {label}"
    return {**scene, "pack": pack.text()}


def _checked(run: Any) -> xr.Dataset:
    if not isinstance(run, xr.Dataset) or not {"q", "energy", "mechanism"} <= set(run.data_vars):
        raise ShapeError(
            f"zwang shows a mechanism or a recording of zw.simulate; this is a {type(run).__name__} without q, energy or mechanism"
        )
    if not run.sizes["world"] or not run.sizes["time"]:
        raise ShapeError(f"this recording is empty: {run.sizes['world']} worlds, {run.sizes['time']} times")
    return run


def _mechanisms(run: xr.Dataset) -> list[Mechanism]:
    """The mechanism of each world: one and the same, unless the worlds have parameters of their own."""
    m = mechanism_of(run)
    if "parameters" not in run.coords and "parameters" not in run.data_vars:
        return [door.numeric(m)] * run.sizes["world"]
    names = [str(name) for name in run["parameter"].values]
    return [
        door.numeric(m.subs(dict(zip(names, row, strict=True)))) for row in run["parameters"].values.tolist()
    ]


def _motion(run: xr.Dataset, pack: Pack) -> dict[str, Any]:
    """q and the energies over as many times as an eye can tell apart, (worlds, times, ...) in the pack."""
    times = run["time"].values.astype(float)
    frames = int(min(len(times), MOST_FRAMES, max(2, np.ceil(PER_SECOND * (times[-1] - times[0])) + 1)))
    thin = run.isel(time=np.unique(np.linspace(0, len(times) - 1, frames).round().astype(int)))
    return {
        "times": pack.put(thin["time"].values),
        "q": pack.put(thin["q"].transpose("world", "time", "coordinate").values),
        "energies": {
            label: pack.put(thin[name].transpose("world", "time").values)
            for label, name in (("kinetic", "kinetic_energy"), ("potential", "potential_energy"), ("sum", "energy"))
            if name in thin
        },
        "stopped": [float(t) if s else None for s, t in zip(run["status"].values, run["stop_time"].values, strict=True)]
        if "status" in run else [None] * run.sizes["world"],
    }  # fmt: skip


# ---------------------------------------------------------------------------------------------- a mechanism


def _model(m: Mechanism, meshes: dict[Any, Any], pack: Pack) -> dict[str, Any]:
    """Links, places, shapes, joints and masses of one mechanism with numbers."""
    tree, size = m.tree, reach(m)
    home = np.array(m.home or m.neutral, dtype=float)
    shapes = list(_shapes(m, meshes, pack))
    seen = {s["link"] for s in shapes if s["kind"] != "plane"}
    return {
        "reach": size,
        "links": [
            {
                "parent": link.parent, "kind": link.move.kind, "axis": _floats(link.move.axis), "pitch": float(link.move.pitch),
                "pose": _pose(link), "reference": float(link.reference), "q": link.q.start,
            }
            for link in tree.links
        ],
        "bodies": [_place(b.name, tree.place(b.name)) for b in m.bodies],
        "frames": [_place(f.name, tree.place(f.name)) for f in m.frames],
        "shapes": shapes + sticks(m, seen, size, PALETTE),
        "lines": lines(m),
        "solids": [[s.place.link, *_floats(s.place.p), float(s.mass)] for s in tree.solids],
        "joints": [_joint(j, home, size, coordinate_units(m)) for j in m.joints],
        "home": _floats(home),
        "restricted": len(m.constraints),
    }  # fmt: skip


def _joint(j: JointIndex, home: np.ndarray, size: float, units: list[str]) -> dict[str, Any]:
    """A joint's coordinates with the range of a slider each; `ball` is where its quaternion starts."""
    parts, ball = [], None
    for name, k in zip(j.coordinates, range(j.q.start, j.q.stop), strict=True):
        if units[k] == "1":
            ball = k if ball is None else ball
            continue
        limits = getattr(j.joint, "limits", None) if len(j.coordinates) == 1 else None
        span = np.pi if units[k] == "rad" else size
        low, high = (float(x) for x in limits) if limits else (home[k] - span, home[k] + span)
        low, high = (
            (low if np.isfinite(low) else home[k] - span),
            (high if np.isfinite(high) else home[k] + span),
        )
        limited = bool(limits and np.isfinite([float(x) for x in limits]).all())
        parts.append({"name": name, "q": k, "unit": units[k], "low": float(min(low, home[k])),
                      "high": float(max(high, home[k])), "limited": limited})  # fmt: skip
    return {"name": j.name, "kind": j.kind, "body": j.body, "parts": parts, "ball": ball}


def _shapes(m: Mechanism, meshes: dict[Any, Any], pack: Pack) -> Iterator[dict[str, Any]]:
    """Every shape that can be drawn; `hidden` are those that are for contact, where others are for the eye."""
    bodies = [("world", m.geometry), *((b.name, b.geometry) for b in m.bodies)]
    for k, (body, geometry) in enumerate(bodies):
        place = m.tree.place(body)
        pictured = any(g.visual_only and _drawable(g) for g in geometry)
        for g in filter(_drawable, geometry):
            R = place.R @ np.array(g.orientation)
            p = place.p + place.R @ np.array(g.position)
            hidden = g.surface.group > SHOWN_GROUPS or (pictured and not g.visual_only)
            shape = {"kind": type(g).__name__.lower(), "size": [float(getattr(g, s)) for s in g.sizes], "link": place.link,
                     "pose": _floats(R) + _floats(p), "color": _color(g, k), "hidden": hidden, "body": body}  # fmt: skip
            if isinstance(g, Mesh):
                key = (g.vertices, g.faces)
                if key not in meshes:
                    meshes[key] = {"number": len(meshes), **_mesh(g, pack)}
                shape["mesh"] = meshes[key]["number"]
            yield shape


def _drawable(g: Geometry) -> bool:
    return len(g.faces) > 0 if isinstance(g, Mesh) else bool(g.sizes) or isinstance(g, Plane)


def _mesh(g: Mesh, pack: Pack) -> dict[str, Any]:
    """Vertices as 16-bit steps through their box, a 65,535th of its edge each, and faces."""
    vertices, faces = np.asarray(g.vertices), np.asarray(g.faces)
    low, high = vertices.min(axis=0), vertices.max(axis=0)
    span = np.where(high > low, high - low, 1.0)
    return {"low": _floats(low), "span": _floats(span), "faces": pack.put(faces, "<u4"),
            "vertices": pack.put(((vertices - low) / span * 65535).round(), "<u2")}  # fmt: skip


def _color(g: Geometry, body: int) -> list[float]:
    if g.color is not None:
        return [min(1.0, max(0.0, float(x))) for x in g.color]
    if isinstance(g, Mesh):
        return list(PAINT[body % 2])
    text = PALETTE[(body - 1) % len(PALETTE)] if body else "#b9bdc4"
    return [int(text[k : k + 2], 16) / 255 for k in (1, 3, 5)] + [1.0]


def _upright(m: Mechanism) -> list[float]:
    """The rotation that brings up, against gravity's main axis, to z."""
    g = np.array(m.gravity, dtype=float)
    axis = int(np.argmax(np.abs(g))) if g.any() else 2
    if axis == 2:
        return [1.0, 0, 0, 0, 1, 0, 0, 0, 1]
    up = -np.sign(g[axis])
    if axis == 1:
        return [1.0, 0, 0, 0, 0, -up, 0, up, 0]
    return [0, -up, 0, 0, 0, -1.0, up, 0, 0]


def _place(name: str, place: Place) -> dict[str, Any]:
    return {"name": name, "link": place.link, "pose": _pose(place)}


def _pose(place: Any) -> list[float]:
    return _floats(place.R) + _floats(place.p)


def _floats(values: Any) -> list[float]:
    return np.asarray(values, dtype=float).reshape(-1).tolist()
