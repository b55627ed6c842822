"""Shapes as geoms of an MJCF file, and the geoms around which tendons wrap."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from zwang.io.meshes.mesh_export import contact_hull
from zwang.io.meshes.mesh_files import FLAT, thickness
from zwang.io.mjcf.write.mjcf_output import INVISIBLE, WRAPPED, MjcfOutput, pose_attributes, unless
from zwang.io.xml_writer import XmlElement
from zwang.mechanism.bodies import Frame
from zwang.mechanism.geometry import (
    Box,
    Capsule,
    Cylinder,
    Ellipsoid,
    Geometry,
    HeightField,
    Mesh,
    Plane,
    Sphere,
    Surface,
)
from zwang.mechanism.tendon_elements import Wrap

VISUAL_GROUP = 1  # of shapes without contacts, as MuJoCo's own reader of URDF has it
LEAST_VERTICES = 4
LARGEST_MASK = 2**31 - 1
SURFACE = Surface()
MOST_SAMPLES = 1_000_000  # of a height field that is written as text
NUMBERS = (
    "friction", "condim", "contype", "conaffinity", "priority", "solref", "solimp", "solmix", "margin", "gap",
    "group",
)  # fmt: skip


def shape_title(body: str, shape: Geometry) -> str:
    """How messages name a shape."""
    kind = type(shape).__name__.lower()
    return f"{kind} {shape.name!r}" if shape.name else f"a {kind} of body {body!r}"


def geom_nodes(out: MjcfOutput, body: str, shape: Geometry, name: str | None) -> list[XmlElement]:
    """The elements <geom> of a shape; none if MJCF does not have it.

    A mesh whose hull lacks some of the outermost vertices is written as two geoms: the hull with the name and
    the contacts, invisible for the rays of range sensors too, and the triangles without contacts.
    """
    hull = contact_hull(shape) if isinstance(shape, Mesh) and (shape.name or _collides(shape)) else None
    if hull is None:
        nodes = [_geom_node(out, body, shape, name)]
    else:
        out.notes.changed(
            "its hull has fewer vertices than that of its triangles; the hull is written as a geom with the "
            "contacts, and the triangles as another geom without contacts",
            shape_title(body, shape),
        )
        drawn = replace(shape, visual_only=True)
        hull = replace(hull, color=INVISIBLE)
        nodes = [_geom_node(out, body, hull, name), _geom_node(out, body, drawn, None)]
    return [node for node in nodes if node is not None]


def _geom_node(out: MjcfOutput, body: str, shape: Geometry, name: str | None) -> XmlElement | None:
    """One element <geom> of a shape, or None if MJCF does not have it."""
    if isinstance(shape, HeightField):
        shape = _from_zero(shape)
    size = _size(out, body, shape)
    if size is None:
        return None
    color = None if shape.color is None else tuple(shape.color)
    return XmlElement(
        "geom",
        {
            "name": name,
            **size,
            **pose_attributes(shape.position, shape.orientation),
            "rgba": color,
            **_surface(out, body, shape),
        },
    )


def _size(out: MjcfOutput, body: str, shape: Geometry) -> dict[str, Any] | None:
    """The type of a geom and its size: MJCF has radii and half lengths."""
    match shape:
        case Sphere():
            return {"type": "sphere", "size": (shape.radius,)}
        case Capsule():
            return {"type": "capsule", "size": (shape.radius, shape.length / 2)}
        case Cylinder():
            return {"type": "cylinder", "size": (shape.radius, shape.length / 2)}
        case Box():
            return {"type": "box", "size": (shape.x / 2, shape.y / 2, shape.z / 2)}
        case Ellipsoid():
            return {"type": "ellipsoid", "size": (shape.x, shape.y, shape.z)}
        case Plane():
            if _moves(out, body):
                _omit(out, body, shape, "a plane of MJCF is fixed to the world")
                return None
            return {"type": "plane", "size": (*shape.extent, 1)}
        case HeightField():
            if shape.grid[0] * shape.grid[1] > MOST_SAMPLES:
                _omit(out, body, shape, f"it has more than {MOST_SAMPLES} samples")
                return None
            key = (shape.heights, shape.extent, shape.base)
            file = out.height_fields.setdefault(key, f"heights{len(out.height_fields)}")
            return {"type": "hfield", "hfield": file}
        case Mesh():
            if 0 < len(shape.vertices) < LEAST_VERTICES:
                _omit(out, body, shape, f"a mesh of MJCF has at least {LEAST_VERTICES} vertices")
            elif _collides(shape) and len(shape.vertices) and thickness(np.asarray(shape.vertices)) < FLAT:
                _omit(out, body, shape, "a flat mesh of MJCF has no contacts")
            elif file := out.meshes.add(shape):
                return {"type": "mesh", "mesh": file}
            else:
                _omit(out, body, shape, f"its triangles were not read (file {shape.file!r})")
    return None


def _from_zero(shape: HeightField) -> HeightField:
    """The same solid, in a frame in which the least height is 0, as MuJoCo has it."""
    heights = np.asarray(shape.heights, float)
    least = float(heights.min())
    position = np.array(shape.position) + least * np.array(shape.orientation)[:, 2]
    moved: Any = heights - least
    return replace(shape, heights=moved, base=shape.base + least, position=tuple(position.tolist()))


def _omit(out: MjcfOutput, body: str, shape: Geometry, why: str) -> None:
    if _collides(shape) and not (isinstance(shape, Mesh) and not len(shape.faces)):
        out.notes.unsupported(shape_title(body, shape), why)
    else:
        out.notes.ignored(why, shape_title(body, shape))


def _collides(shape: Geometry) -> bool:
    return not shape.visual_only and bool(shape.surface.contype or shape.surface.conaffinity)


def _moves(out: MjcfOutput, body: str) -> bool:
    return body != "world" and out.mechanism.tree.placements[body].link >= 0


def _surface(out: MjcfOutput, body: str, shape: Geometry) -> dict[str, Any]:
    """The contact attributes that differ from the defaults."""
    surface = shape.surface
    found = {name: unless(getattr(surface, name), getattr(SURFACE, name)) for name in NUMBERS}
    found["surfacevel"] = surface.velocity if surface.is_moving else None
    if shape.visual_only:
        group = surface.group or VISUAL_GROUP
        return {"contype": 0, "conaffinity": 0, "group": group}
    if surface.hard:
        out.notes.unsupported(
            shape_title(body, shape), "MJCF has no hard contact or restitution",
            f"its contacts are soft, with solref {tuple(surface.solref)}",
        )  # fmt: skip
    for mask in ("contype", "conaffinity"):
        if not -LARGEST_MASK - 1 <= getattr(surface, mask) <= LARGEST_MASK:
            out.notes.unsupported(
                shape_title(body, shape), f"{mask} of MJCF has 32 bits", "the further bits are omitted"
            )
            found[mask] = getattr(surface, mask) & LARGEST_MASK
    return found


def asset_node(out: MjcfOutput) -> XmlElement:
    """The element <asset> with the meshes. A flat mesh is a shell, as it has no volume."""
    assets = XmlElement("asset")
    for (vertices, _), file in out.meshes.files.items():
        flat = thickness(np.asarray(vertices)) < FLAT
        assets.add("mesh", name=file, file=f"{file}.obj", inertia="shell" if flat else None)
    for (heights, extent, base), file in out.height_fields.items():
        values = np.asarray(heights, float)
        top = float(values.max()) or 1.0
        size = (*extent, top, base)
        rows, columns = values.shape
        elevation = values[::-1].ravel().tolist()  # the first row of a file is the farthest one
        assets.add("hfield", name=file, nrow=rows, ncol=columns, size=size, elevation=elevation)
    return assets


def wrapping_geom(out: MjcfOutput, frame: Frame, wrap: Wrap) -> str:
    """The name of the geom around which a tendon wraps: that of an equal shape, or a new one."""
    wrapped = (frame.name, wrap.radius, wrap.kind)
    if wrapped in out.geom_frames:
        return out.geom_frames[wrapped]
    shapes = out.mechanism.geometry if frame.body == "world" else out.mechanism.body(frame.body).geometry
    kind = Sphere if wrap.kind == "sphere" else Cylinder
    wanted = frame.name.removesuffix(WRAPPED)
    equal = [
        (shape.name != wanted, index, shape)
        for index, shape in enumerate(shapes)
        if isinstance(shape, kind) and shape.radius == wrap.radius and _same_pose(shape, frame, wrap)
    ]
    if equal:
        _, index, shape = min(equal, key=lambda found: found[:2])
        if shape.name:
            name = out.name("shape", shape.name)
        else:
            key = (frame.body, index)
            name = out.shape_names.setdefault(key, out.names["shape"].new(wanted))
    else:
        name = out.names["shape"].new(wanted)
        size = (wrap.radius,) if wrap.kind == "sphere" else (wrap.radius, wrap.radius)
        pose = pose_attributes(frame.position, frame.orientation)
        attributes = {"name": name, "type": wrap.kind, "size": size, "contype": 0, "conaffinity": 0,
                      "group": 4, "rgba": INVISIBLE, **pose}  # fmt: skip
        out.geoms.setdefault(frame.body, []).append(XmlElement("geom", attributes))
    out.geom_frames[wrapped] = name
    return name


def _same_pose(shape: Geometry, frame: Frame, wrap: Wrap) -> bool:
    axes = wrap.kind == "sphere" or shape.orientation == frame.orientation
    return axes and shape.position == frame.position
