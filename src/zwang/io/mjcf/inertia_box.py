"""MuJoCo's fluid: it surrounds every body with mass as a box with the body's inertia."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from zwang.io.export_notes import ExportNotes
from zwang.mechanism.bodies import Body
from zwang.mechanism.force_elements import FluidDrag
from zwang.mechanism.mechanism import Mechanism

SMALLEST = 1e-15  # kg and kg m^2: MuJoCo's mjMINVAL
TOLERANCE = 1e-10  # of sides and moments, relative to the largest


def inertia_box(mass: float, moments: Sequence[float] | np.ndarray) -> tuple[float, ...]:
    """The sides [m] of the homogeneous box with this mass [kg] and these principal moments [kg m^2].

    I_x = m (b_y^2 + b_z^2) / 12
    """
    I = np.asarray(moments, float)
    squares = [6 * max(SMALLEST, I.sum() - 2 * x) / mass for x in I]
    return tuple(np.sqrt(squares).tolist())


def writable_drags(mechanism: Mechanism, notes: ExportNotes) -> list[FluidDrag]:
    """The drag of the fluid on all bodies, if that is the one of MJCF; otherwise none, which is noted.

    MJCF has one fluid with one wind, and the boxes are those of the inertias.
    """
    drags = [f for f in mechanism.forces if isinstance(f, FluidDrag)]
    bodies = {b.name: b for b in mechanism.bodies if float(b.mass) >= SMALLEST}  # type: ignore[arg-type]
    fluids = {(d.density, d.viscosity, tuple(d.wind)) for d in drags}
    is_one = len(fluids) == 1 and sorted(d.body for d in drags) == sorted(bodies)
    if is_one and all(_is_inertia_box(drag, bodies[drag.body]) for drag in drags):
        return drags
    for drag in drags:
        notes.unsupported(
            f"the fluid drag of body {drag.body!r}",
            "MJCF has one fluid, around boxes with the inertias of all bodies",
        )
    return []


def _is_inertia_box(drag: FluidDrag, body: Body) -> bool:
    """Whether the box of the drag has the inertia of the body, in place and size."""
    R = np.array(drag.orientation, float)
    I = R.T @ np.array(body.inertia, float) @ R
    moments = np.diag(I)
    box, expected = np.array(drag.box, float), np.array(inertia_box(float(body.mass), moments))
    offset = np.array(drag.position, float) - np.array(body.com, float)
    largest = max(1e-300, float(np.abs(I).max()))
    return bool(
        np.abs(I - np.diag(moments)).max() <= TOLERANCE * largest
        and np.abs(box - expected).max() <= TOLERANCE * expected.max()
        and np.abs(offset).max() <= TOLERANCE * expected.max()
    )
