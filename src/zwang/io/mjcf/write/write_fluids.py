"""The fluid of an MJCF file: around boxes with the inertias of bodies, or around ellipsoids at geoms."""

from __future__ import annotations

from typing import Any

import numpy as np

from zwang.io.export_notes import ExportNotes
from zwang.io.mjcf.mujoco_library import mujoco
from zwang.io.mjcf.write.mjcf_output import INVISIBLE, MjcfOutput, pose_attributes
from zwang.io.xml_writer import XmlElement
from zwang.mechanism.force_elements import EllipsoidDrag, FluidDrag
from zwang.mechanism.geometry import Box, Capsule, Cylinder, Ellipsoid, Geometry, Sphere
from zwang.mechanism.inertia_box import SMALLEST, TOLERANCE, is_inertia_box
from zwang.mechanism.mechanism import Mechanism

Drag = FluidDrag | EllipsoidDrag


def writable_drags(mechanism: Mechanism, notes: ExportNotes) -> list[Drag]:
    """The drags of all bodies, if they are those of MJCF; otherwise none, which is noted.

    MJCF has one fluid with one wind. It surrounds each body with mass as a box with its inertia, or as the
    ellipsoids of its geoms, whose virtual masses follow from their semi-axes.
    """
    drags = [f for f in mechanism.forces if isinstance(f, Drag)]
    bodies = {b.name: b for b in mechanism.bodies if float(b.mass) >= SMALLEST}  # type: ignore[arg-type]
    fluids = {(d.density, d.viscosity, tuple(d.wind)) for d in drags}
    boxes = [d.body for d in drags if isinstance(d, FluidDrag)]
    ellipsoids = {d.body for d in drags if isinstance(d, EllipsoidDrag)}
    is_one = len(fluids) == 1 and sorted([*boxes, *ellipsoids]) == sorted(bodies)
    if is_one and all(_is_of_mjcf(drag, mechanism) for drag in drags):
        return drags
    for drag in drags:
        notes.unsupported(
            f"the fluid drag of body {drag.body!r}",
            "MJCF has one fluid, around boxes with the inertias of all bodies or around ellipsoids with the "
            "virtual masses of their semi-axes",
        )
    return []


def _is_of_mjcf(drag: Drag, mechanism: Mechanism) -> bool:
    """Whether MJCF has this drag."""
    if isinstance(drag, FluidDrag):
        return is_inertia_box(drag, mechanism.body(drag.body))
    found = np.array([*drag.virtual_mass, *drag.virtual_inertia], float)
    expected = virtual_inertias(drag.semiaxes)
    return bool(np.abs(found - expected).max() <= TOLERANCE * np.abs(expected).max())


def virtual_inertias(semiaxes: Any) -> np.ndarray:
    """The virtual masses (3,) [m^3] and virtual inertias (3,) [m^5] that MuJoCo computes for an ellipsoid."""
    spec = mujoco.MjSpec()
    geom = spec.worldbody.add_body().add_geom(type=mujoco.mjtGeom.mjGEOM_ELLIPSOID, size=list(semiaxes))
    geom.fluid_ellipsoid = 1
    return np.array(spec.compile().geom_fluid[0][6:12])


def add_fluid_geoms(out: MjcfOutput) -> None:
    """Mark the geoms around which the fluid flows as around ellipsoids: equal shapes, or new ones."""
    for drag in out.mechanism.forces:
        if not isinstance(drag, EllipsoidDrag):
            continue
        coefficients = (drag.blunt, drag.slender, drag.angular, drag.kutta, drag.magnus)
        fluid = {"fluidshape": "ellipsoid", "fluidcoef": coefficients}
        shapes = out.mechanism.body(drag.body).geometry
        free = [k for k in range(len(shapes)) if (drag.body, k) not in out.fluid_attributes]
        equal = [k for k in free if _is_shape_of(drag, shapes[k])]
        if equal:
            out.fluid_attributes[drag.body, equal[0]] = fluid
        else:
            attributes = {
                "type": "ellipsoid", "size": drag.semiaxes, "mass": 0, "contype": 0, "conaffinity": 0,
                "group": 4, "rgba": INVISIBLE, **pose_attributes(drag.position, drag.orientation), **fluid,
            }  # fmt: skip
            out.geoms.setdefault(drag.body, []).append(XmlElement("geom", attributes))


def _is_shape_of(drag: EllipsoidDrag, shape: Geometry) -> bool:
    """Whether a shape has the pose of the drag, and its semi-axes as MuJoCo assigns them."""
    match shape:
        case Sphere():
            semiaxes = (shape.radius,) * 3
        case Capsule():
            semiaxes = (shape.radius, shape.radius, shape.length / 2 + shape.radius)
        case Cylinder():
            semiaxes = (shape.radius, shape.radius, shape.length / 2)
        case Box():
            semiaxes = (shape.x / 2, shape.y / 2, shape.z / 2)
        case Ellipsoid():
            semiaxes = (shape.x, shape.y, shape.z)
        case _:
            return False
    same_pose = tuple(shape.position) == drag.position and shape.orientation == drag.orientation
    return same_pose and np.allclose(semiaxes, drag.semiaxes, rtol=1e-15, atol=0)
