"""Inertias: of shapes, about other points, and whether a body can have them."""

from __future__ import annotations

from typing import Any

import numpy as np

from zwang.algebra.rotations import skew
from zwang.errors import DescriptionError
from zwang.scalar import are_constant

TRIANGLE_TOLERANCE = 1e-6  # relative to the largest moment: files print their numbers rounded

SYMMETRY_TOLERANCE = 1e-12  # relative to the largest entry: products of rotations are rounded

LEAST_MOMENT = 1e-15  # kg m^2: under it a moment is a rounded zero


def inertia_matrix(inertia: Any, where: str) -> Any:
    """The 3x3 inertia from 3 principal moments, 6 numbers (xx, yy, zz, xy, xz, yz) or a matrix.

    A matrix is symmetric, of floats to rounding: then the mean of both halves is taken. Raises DescriptionError for others.
    """
    items = list(inertia)
    if len(items) == 3 and all(np.ndim(row) == 1 and len(row) == 3 for row in items):
        return _symmetric(items, where)
    if len(items) == 3:
        a, b, c = items
        return ((a, 0, 0), (0, b, 0), (0, 0, c))
    if len(items) == 6:
        xx, yy, zz, xy, xz, yz = items
        return ((xx, xy, xz), (xy, yy, yz), (xz, yz, zz))
    raise DescriptionError(
        f"inertia of {where} is {inertia!r}; give 3 principal moments, 6 numbers (xx, yy, zz, xy, xz, yz) or a 3x3 matrix"
    )


def _symmetric(rows: Any, where: str) -> Any:
    """The matrix, exactly symmetric. Raises DescriptionError where it is not so but for rounding."""
    pairs = [(i, j) for i in range(3) for j in range(i) if _differ(rows[i][j], rows[j][i])]
    if not pairs:
        return tuple(tuple(row) for row in rows)
    numbers = [x for row in rows for x in row]
    rounding = SYMMETRY_TOLERANCE * max(map(abs, numbers)) if are_constant(*numbers) else 0
    result = [list(row) for row in rows]
    for i, j in pairs:
        if not (are_constant(rows[i][j], rows[j][i]) and abs(rows[i][j] - rows[j][i]) <= rounding):
            shown = [[x.item() if isinstance(x, np.generic) else x for x in row] for row in rows]
            raise DescriptionError(f"inertia of {where} is not symmetric: {shown!r}")
        result[i][j] = result[j][i] = (rows[i][j] + rows[j][i]) / 2
    return tuple(tuple(row) for row in result)


def _differ(a: Any, b: Any) -> bool:
    """Are two numbers or expressions different? Of traced scalars nothing is known yet."""
    answer = a != b
    return bool(answer) if isinstance(answer, bool | np.bool_) else False


def check_inertia(mass: Any, inertia: Any, where: str) -> None:
    """Raises DescriptionError unless a body can have this mass and this inertia about its centre of mass."""
    if are_constant(mass) and mass < 0:
        raise DescriptionError(f"mass of {where} is {mass}; it must not be negative")
    if not are_constant(*(x for row in inertia for x in row)):
        return
    moments = np.linalg.eigvalsh(np.asarray(inertia, dtype=float))
    slack = TRIANGLE_TOLERANCE * max(abs(moments)) + LEAST_MOMENT
    if moments[0] < -slack:
        raise DescriptionError(
            f"inertia of {where} has the principal moments {moments.tolist()}; none may be negative (not positive definite)"
        )
    if moments[0] + moments[1] < moments[2] - slack:
        raise DescriptionError(
            f"inertia of {where} has the principal moments {moments.tolist()}: the largest exceeds the sum of the others, "
            "which no body can have (triangle inequality)"
        )


def parallel_axis_term(mass: Any, offset: Any) -> np.ndarray:
    """What a mass at `offset` from a point adds to the inertia about that point: m (c.c 1 - c c^T) (Steiner)."""
    c = skew(offset)
    return mass * (c @ c.T)
