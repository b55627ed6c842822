"""The scene data of a mechanism and its recorded motion: numbers, names and arrays, from which the pages
draw.

The data contain the tree of links, from which a page computes the forward kinematics itself. Therefore a
motion is stored as q over time only, and the sliders need no server. A pose is 12 numbers: the rotation by
rows, then the origin.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from zwang.api.arguments import validation
from zwang.errors import ShapeError, SimulationWarning
from zwang.mechanism.geometry import Geometry, HeightField, Mesh, Plane
from zwang.mechanism.mechanism import JointIndex, Mechanism
from zwang.mechanism.tree import Placement
from zwang.recording.dataset import coordinate_units, mechanism_of, with_current_names
from zwang.recording.mechanism_order import in_mechanism_order, parameters_of
from zwang.viewer.array_packing import NUMBER_BYTES, TIME_BYTES
from zwang.viewer.motion_samples import motion_samples
from zwang.viewer.stick_figures import extent, lines, sticks

LAST_VISIBLE_GROUP = (
    2  # like MuJoCo's viewer, show the groups 0 to 2; models usually have their collision shapes in group 3
)
WEIGHT_ARROW_LENGTH = 0.35  # length of the arrow of the total weight, relative to the mechanism's size
PALETTE = ("#4c78a8", "#e39c37", "#5a9e6f", "#c8553d", "#6aaeb5", "#8a6fb0", "#d9b84a", "#8c6d5a")
MESH_COLORS = ((0.83, 0.84, 0.85, 1.0), (0.62, 0.66, 0.71, 1.0))
"""Colours of meshes without a colour of their own, alternating along the tree."""


class SceneContent(NamedTuple):
    """The content of a scene: a numeric mechanism for each world, the recording if there is one, and the
    traced frames.
    """

    mechanisms: list[Mechanism]
    run: xr.Dataset | None
    traces: tuple[str, ...]


def scene_content(what: Mechanism | xr.Dataset, worlds: int = 16, traces: Sequence[str] = ()) -> SceneContent:
    """The scene content of a mechanism, or of the first `worlds` worlds of a recording of `zw.simulate`.

    traces: names of the frames whose paths are drawn. Raises ParameterError for symbols without values,
    UnknownNameError for an unknown frame, and ShapeError for a dataset that is not a recording.
    """
    if worlds < 1:
        raise ShapeError(f"worlds is {worlds}; at least one world is shown")
    if isinstance(what, Mechanism):
        run, mechanisms = None, [validation.numeric_mechanism(what)]
    else:
        run = _checked(what).isel(world=slice(0, worlds))
        run = in_mechanism_order(run, mechanism_of(run), "coordinate")
        mechanisms = _mechanisms(run)
    for name in traces:
        mechanisms[0].tree.placement(name)
    return SceneContent(mechanisms, run, tuple(traces))


def scene_data_of(what: SceneContent) -> dict[str, Any]:
    """The scene data: models, worlds, meshes, the motion, and the rotation after which z points up."""
    meshes: dict[Any, Any] = {}
    different = list({id(m): m for m in what.mechanisms}.values())
    models = [_model(m, meshes) for m in different]
    scene: dict[str, Any] = {
        "title": different[0].name,
        "models": models,
        "worlds": [{"model": next(k for k, d in enumerate(different) if d is m)} for m in what.mechanisms],
        "meshes": [mesh for _, mesh in meshes.values()],
        "traces": list(what.traces),
        "root": _rotation_to_z_up(different[0]),
        "run": None if what.run is None else _recorded_motion(what.run, different[0], models[0]["extent"]),
    }
    if what.run is not None:
        for world, label in zip(scene["worlds"], what.run["world"].values, strict=True):
            world["name"] = f"world {label}"
    return scene


def _checked(run: Any) -> xr.Dataset:
    if not isinstance(run, xr.Dataset) or not {"q", "energy", "mechanism"} <= set(run.data_vars):
        raise ShapeError(
            "the viewer shows a mechanism or a recording of zw.simulate; "
            f"this is a {type(run).__name__} without q, energy or mechanism"
        )
    if not {"world", "time"} <= set(run["q"].dims):
        raise ShapeError(
            "the viewer needs a recording with the dimensions world and time; "
            "select one world by run.isel(world=[0]), with the brackets"
        )
    if not run.sizes["world"] or not run.sizes["time"]:
        raise ShapeError(f"this recording is empty: {run.sizes['world']} worlds, {run.sizes['time']} times")
    return run


def _mechanisms(run: xr.Dataset) -> list[Mechanism]:
    """The mechanism of each world; it is the same object for all worlds unless their parameters differ."""
    m = mechanism_of(run)
    values = parameters_of(run, m)
    if not values:
        return [m] * run.sizes["world"]
    return [
        m.subs({name: float(x[world]) for name, x in values.items()}) for world in range(run.sizes["world"])
    ]


def _recorded_motion(run: xr.Dataset, m: Mechanism, extent: float) -> dict[str, Any]:
    """q, energies and forces (worlds, times, ...) in the order of time, at the samples that represent the
    motion, and a sentence about what they do not represent. Raises ShapeError; warns with that sentence.
    """
    if np.any(np.diff(run["time"].values) < 0):
        run = run.sortby("time")
    energies = {
        label: name
        for label, name in (
            ("kinetic", "kinetic_energy"),
            ("potential", "potential_energy"),
            ("total", "energy"),
        )
        if name in run
    }
    forces = {"force", "force_position"} <= set(run.data_vars)
    numbers = run.sizes["coordinate"] + len(energies) + forces * 6 * run.sizes.get("point_force", 0)
    samples = motion_samples(run, m, extent, NUMBER_BYTES * run.sizes["world"] * numbers + TIME_BYTES)
    if samples.warning:
        warnings.warn(samples.warning, SimulationWarning, stacklevel=6)
    kept = run.isel(time=samples.indices)
    return {
        "times": kept["time"].values.astype(float),
        "q": kept["q"].values,
        "energies": {label: kept[name].transpose("world", "time").values for label, name in energies.items()},
        "stopped": _termination_times(run),
        "forces": _forces(kept, _force_scale(m, extent)) if forces else None,
        "note": samples.warning,
    }


def _termination_times(run: xr.Dataset) -> list[float | None]:
    """The time at which each world was terminated, None for those that reached the end. Raises ShapeError."""
    run = with_current_names(run)
    if not {"status", "termination_time"} <= set(run.variables):
        return [None] * run.sizes["world"]
    for name in ("status", "termination_time"):
        if run[name].dims != ("world",):
            raise ShapeError(
                f"the variable {name!r} has the dimensions {run[name].dims}, and must have one value for "
                "each world; join recordings over time by xarray.concat(runs, 'time', data_vars='minimal')"
            )
    both = zip(run["status"].values, run["termination_time"].values, strict=True)
    return [float(t) if s else None for s, t in both]


def _forces(run: xr.Dataset, scale: float) -> dict[str, Any]:
    """Forces and their points of application (worlds, times, forces, 3); scale: the drawn length of one
    newton [m].
    """
    order = ("world", "time", "point_force", "axis")
    return {
        "names": [str(name) for name in run["point_force"].values],
        "kinds": [str(kind) for kind in run["point_force_kind"].values],
        "position": run["force_position"].transpose(*order).values,
        "force": run["force"].transpose(*order).values,
        "scale": scale,
    }


def _force_scale(m: Mechanism, size: float) -> float:
    """The drawn length of one newton [m], such that the total weight has the length `WEIGHT_ARROW_LENGTH`.

    Without gravity, a force of one newton for each kilogram has that length.
    """
    mass = sum(float(body.mass) for body in m.bodies) or 1.0
    return (
        WEIGHT_ARROW_LENGTH * size / (mass * (float(np.linalg.norm(np.array(m.gravity, dtype=float))) or 1.0))
    )


# ------------------------------------------------------------------------------------------------ a mechanism


def _model(m: Mechanism, meshes: dict[Any, Any]) -> dict[str, Any]:
    """The data of one numeric mechanism: links, placements of bodies and frames, shapes, joints
    and masses.
    """
    tree, size = m.tree, extent(m)
    home = np.array(m.home or m.neutral, dtype=float)
    units = coordinate_units(m)
    shapes = list(_shapes(m, meshes))
    seen = {s["link"] for s in shapes if s["kind"] != "plane"}
    return {
        "extent": size,
        "links": [
            {
                "parent": link.parent,
                "kind": link.joint.kind,
                "axis": _floats(link.joint.axis),
                "pitch": float(link.joint.pitch),
                "pose": _pose(link),
                "reference": float(link.reference),
                "q": link.q.start,
            }
            for link in tree.links
        ],
        "bodies": [_placement_data(b.name, tree.placement(b.name)) for b in m.bodies],
        "frames": [_placement_data(f.name, tree.placement(f.name)) for f in m.frames],
        "shapes": shapes + sticks(m, seen, size, PALETTE),
        "lines": lines(m),
        "rigid_bodies": [
            [s.placement.link, *_floats(s.placement.p), float(s.mass)] for s in tree.rigid_bodies
        ],
        "joints": [_joint(j, home, size, units) for j in m.joints],
        "home": _floats(home),
        "constraints": len(m.constraints),
    }


def _joint(j: JointIndex, home: np.ndarray, size: float, units: list[str]) -> dict[str, Any]:
    """A joint's coordinates, each with the range of its slider; `ball` is the index of its quaternion in q,
    or None.
    """
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


def _shapes(m: Mechanism, meshes: dict[Any, Any]) -> Iterator[dict[str, Any]]:
    """Every shape that can be drawn; `hidden` marks collision shapes of bodies that also have
    visual shapes.
    """
    bodies = [("world", m.geometry), *((b.name, b.geometry) for b in m.bodies)]
    for k, (body, geometry) in enumerate(bodies):
        placement = m.tree.placement(body)
        pictured = any(g.visual_only and _drawable(g) for g in geometry)
        for g in filter(_drawable, geometry):
            R = placement.R @ np.array(g.orientation)
            p = placement.p + placement.R @ np.array(g.position)
            hidden = g.surface.group > LAST_VISIBLE_GROUP or (pictured and not g.visual_only)
            shape = {
                "kind": type(g).__name__.lower(),
                "size": [float(getattr(g, s)) for s in g.sizes],
                "link": placement.link,
                "pose": _floats(R) + _floats(p),
                "color": _color(g, k),
                "hidden": hidden,
                "body": body,
            }
            if isinstance(g, HeightField):
                vertices, faces = g.surface_triangles()
                mesh = {"vertices": vertices, "faces": faces}
                key = (g.heights, g.extent)
                shape["kind"], (shape["mesh"], _) = "mesh", meshes.setdefault(key, (len(meshes), mesh))
            if isinstance(g, Mesh):
                mesh = {"vertices": np.asarray(g.vertices, dtype=float), "faces": np.asarray(g.faces)}
                shape["mesh"], _ = meshes.setdefault((g.vertices, g.faces), (len(meshes), mesh))
            yield shape


def _drawable(g: Geometry) -> bool:
    return len(g.faces) > 0 if isinstance(g, Mesh) else bool(g.sizes) or isinstance(g, Plane | HeightField)


def _color(g: Geometry, body: int) -> list[float]:
    if g.color is not None:
        return [min(1.0, max(0.0, float(x))) for x in g.color]
    if isinstance(g, Mesh):
        return list(MESH_COLORS[body % 2])
    text = PALETTE[(body - 1) % len(PALETTE)] if body else "#b9bdc4"
    return [int(text[k : k + 2], 16) / 255 for k in (1, 3, 5)] + [1.0]


def _rotation_to_z_up(m: Mechanism) -> list[float]:
    """The rotation (9 numbers, by rows) after which z points against the main axis of gravity."""
    g = np.array(m.gravity, dtype=float)
    axis = int(np.argmax(np.abs(g))) if g.any() else 2
    if axis == 2:
        return [1.0, 0, 0, 0, 1, 0, 0, 0, 1]
    up = -np.sign(g[axis])
    if axis == 1:
        return [1.0, 0, 0, 0, 0, -up, 0, up, 0]
    return [0, -up, 0, 0, 0, -1.0, up, 0, 0]


def _placement_data(name: str, placement: Placement) -> dict[str, Any]:
    return {"name": name, "link": placement.link, "pose": _pose(placement)}


def _pose(placement: Any) -> list[float]:
    return _floats(placement.R) + _floats(placement.p)


def _floats(values: Any) -> list[float]:
    return np.asarray(values, dtype=float).reshape(-1).tolist()
