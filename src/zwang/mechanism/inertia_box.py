"""MuJoCo's fluid: it surrounds every body with mass as a box with the body's inertia."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from zwang.mechanism.bodies import Body
from zwang.mechanism.force_elements import FluidDrag
from zwang.scalar import are_constant, maximum, sqrt

SMALLEST = 1e-15  # kg and kg m^2: MuJoCo's mjMINVAL
TOLERANCE = 1e-10  # of sides and moments, relative to the largest


def inertia_box(mass: Any, moments: Sequence[Any]) -> tuple[Any, ...]:
    """The sides [m] of the homogeneous box with this mass [kg] and these principal moments [kg m^2].

    I_x = m (b_y^2 + b_z^2) / 12
    """
    total = sum(moments)
    return tuple(sqrt(6 * maximum(SMALLEST, total - 2 * x) / mass) for x in moments)


def is_inertia_box(drag: FluidDrag, body: Body) -> bool:
    """Whether the box of the drag has the inertia of the body, in place and size."""
    R = np.array(drag.orientation, float)
    I = R.T @ np.array(body.inertia, float) @ R
    moments = np.diag(I)
    box, expected = np.array(drag.box, float), np.array(inertia_box(float(body.mass), moments.tolist()))
    offset = np.array(drag.position, float) - np.array(body.com, float)
    largest = max(1e-300, float(np.abs(I).max()))
    return bool(
        np.abs(I - np.diag(moments)).max() <= TOLERANCE * largest
        and np.abs(box - expected).max() <= TOLERANCE * expected.max()
        and np.abs(offset).max() <= TOLERANCE * expected.max()
    )


def with_inertia_of(drag: FluidDrag, before: Body, body: Body) -> FluidDrag:
    """The drag with the box of a body's inertia, if it is that of the body `before`; its axes stay."""
    if body == before:
        return drag
    given = (before.mass, *before.com, *np.ravel(before.inertia))
    box = (*drag.box, *drag.position, *np.ravel(drag.orientation))
    if not are_constant(*given, *box) or not is_inertia_box(drag, before):
        return drag
    R = np.array(drag.orientation)
    moments = np.diag(R.T @ np.array(body.inertia) @ R).tolist()
    return replace(drag, box=inertia_box(body.mass, moments), position=body.com)
