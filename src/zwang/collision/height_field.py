"""Contacts of height fields: one contact point for each prism of the grid under the other shape.

Each cell of the grid is two triangles, and under each of them is a prism down to the base. The prisms under
the bounding box of the other shape, in the axes of the field, are convex shapes of their own. A pair with a
height field is therefore replaced by several pairs, one for each prism that the box may cover at once; which
prism of the grid each of them is follows from where the other shape is. Source: MuJoCo documentation,
Computation, "Collision detection", and XML reference, "asset/hfield".
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from zwang.collision.contact_point import FAR, ContactPoint, contact_frame
from zwang.collision.convex.nearest_points import nearest_points
from zwang.collision.convex.support_functions import convex_shape_of
from zwang.collision.shapes import PlacedShape
from zwang.mechanism.geometry import HeightField
from zwang.scalar import (
    Table,
    cond,
    equal,
    floor,
    lane_by_lane,
    lane_maximum,
    less,
    less_equal,
    logical_and,
    maximum,
    minimum,
    table,
    where,
    without_derivatives,
)

CORNERS = (((1, 0), (0, 0), (1, 1)), ((0, 0), (1, 1), (0, 1)))
"""The corners (row, column) of the two triangles of a cell, relative to its first corner."""


class Bounds(NamedTuple):
    """The least and the largest coordinates (3,) of a shape in the axes of a height field."""

    low: np.ndarray
    high: np.ndarray


def height_table(field: HeightField) -> Table:
    """The heights (rows columns,) of a field, row by row."""
    return table(np.asarray(field.heights, float).ravel())


def may_be_near(field: HeightField, radius: Any, a: PlacedShape, b: PlacedShape) -> Any:
    """Whether the sphere around b with this radius meets the box around a field."""
    p = a.R.T @ (b.p - a.p)
    near: Any = True
    for x, low, high in zip(p, *field.box, strict=True):
        near = logical_and(near, logical_and(less_equal(low - radius, x), less_equal(x, high + radius)))
    return near


def prism_contact(
    field: HeightField, kind: str, a: PlacedShape, b: PlacedShape, reach: Any = 0
) -> ContactPoint:
    """The contact point of a shape b with one prism, whose number under the shape is in the sizes of a.

    reach: margin and gap [m] of the pair, by which the shape may be outside of the prism.
    """

    def bounds_at(R: np.ndarray, p: np.ndarray, R_b: np.ndarray, p_b: np.ndarray) -> Bounds:
        return _bounds(kind, R, p, PlacedShape(b.sizes, R_b, p_b))  # sizes are constants

    low, high = without_derivatives(bounds_at, a.R, a.p, b.R, b.p)
    exists, corners = _prism(field, a, Bounds(low - reach, high + reach))
    middle = corners.sum(axis=0) / 6
    nothing = [FAR, *b.p, *np.eye(3).ravel()]

    def contact() -> list[Any]:
        prism = PlacedShape(corners - middle, a.R, a.p + a.R @ middle)
        found = nearest_points(convex_shape_of("prism", prism), convex_shape_of(kind, b))
        frame = contact_frame(found.normal)
        return [found.distance, *(found.first + found.second) / 2, *frame.ravel()]

    values = cond(exists, contact, lambda: [1.0 * x for x in nothing])
    return ContactPoint(values[0], np.array(values[1:4]), np.array(values[4:]).reshape(3, 3))


def _bounds(kind: str, R: np.ndarray, p: np.ndarray, b: PlacedShape) -> Bounds:
    """The bounds of shape b in the axes R at p."""
    shape = convex_shape_of(kind, b)
    ends = [
        [axis @ (shape.support(sign * axis) - p) + sign * shape.radius for axis in R.T] for sign in (-1, 1)
    ]
    return Bounds(np.array(ends[0]), np.array(ends[1]))


def _prism(field: HeightField, a: PlacedShape, bounds: Bounds) -> tuple[Any, np.ndarray]:
    """Whether there is such a prism under the shape, and its corners (6, 3) in the axes of the field."""
    rows, columns = field.grid
    dx, dy = (2 * half / (n - 1) for half, n in zip(field.extent, (columns, rows), strict=True))
    r, c, side = a.sizes
    first, inside = [], True
    for k, (number, half, step, n) in enumerate(
        ((c, field.extent[0], dx, columns), (r, field.extent[1], dy, rows))
    ):
        low = maximum(0.0, floor((bounds.low[k] + half) / step))
        end = minimum(1.0 * (n - 1), -floor(-(bounds.high[k] + half) / step))
        inside = logical_and(inside, less(low + number, end))
        first.append(minimum(low + number, n - 2.0))
    assert a.heights is not None
    heights = _heights_of_cell(a.heights, first[1] * columns + first[0], columns)
    top, bottom = [], []
    for one, two in zip(*CORNERS, strict=True):
        row, column = (first[1 - k] + where(equal(side, 0), one[k], two[k]) for k in (0, 1))
        x, y = column * dx - field.extent[0], row * dy - field.extent[1]
        z = where(equal(side, 0), *(heights[2 * corner[0] + corner[1]] for corner in (one, two)))
        top.append([x, y, z])
        bottom.append([x, y, -field.base])
    reached = maximum(maximum(top[0][2], top[1][2]), top[2][2])
    return logical_and(inside, less_equal(bounds.low[2], reached)), np.array(bottom + top)


def _heights_of_cell(heights: Table, first: Any, columns: int) -> Any:
    """The heights of the corners of a cell, row by row. first: the number of its first corner, which may
    differ from lane to lane.
    """

    def of_lane(_: Any) -> list[Any]:
        number = lane_maximum(first, len(heights) - columns - 2)
        return [1.0 * heights[number + k] for k in (0, 1, columns, columns + 1)]

    return lane_by_lane(of_lane, [0.0] * 4)
