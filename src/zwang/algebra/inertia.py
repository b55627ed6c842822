"""Inertia matrices: conversion, validation, and the parallel-axis theorem."""

from __future__ import annotations

from typing import Any

import numpy as np

from zwang.algebra.rotations import elements, skew
from zwang.errors import DescriptionError
from zwang.scalar import are_constant, maximum, value_is_constant
from zwang.scalar.primitives import symmetric_eigenvalues

TRIANGLE_TOLERANCE = 1e-6  # relative to the largest moment: numbers in files are rounded

SYMMETRY_TOLERANCE = 1e-12  # relative to the largest entry: products of rotations are rounded

LEAST_MOMENT = 1e-15  # kg m^2: a smaller moment is a rounded zero


def inertia_matrix(inertia: Any, where: str) -> Any:
    """The inertia matrix (3, 3) from 3 principal moments, 6 numbers (xx, yy, zz, xy, xz, yz) or a matrix [kg
    m^2].

    where: what the inertia belongs to, for errors. A matrix of floats that is symmetric up to rounding is
    replaced by its symmetric part. Raises DescriptionError for a matrix that is not symmetric and for any
    other shape.
    """
    items = elements(inertia)
    if len(items) == 3 and all(np.ndim(row) == 1 and len(row) == 3 for row in items):
        return _symmetric(items, where)
    if len(items) == 3:
        a, b, c = items
        return ((a, 0, 0), (0, b, 0), (0, 0, c))
    if len(items) == 6:
        xx, yy, zz, xy, xz, yz = items
        return ((xx, xy, xz), (xy, yy, yz), (xz, yz, zz))
    raise DescriptionError(
        f"inertia of {where} is {inertia!r}; "
        "give 3 principal moments, 6 numbers (xx, yy, zz, xy, xz, yz) or a 3x3 matrix"
    )


def _symmetric(rows: Any, where: str) -> Any:
    """The symmetric part of a matrix. Raises DescriptionError where its asymmetry is more than rounding."""
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
    """Whether two numbers or expressions are known to differ; traced values are not."""
    different = a != b
    return bool(different) if value_is_constant(different) else False


def check_inertia(mass: Any, inertia: Any, where: str) -> None:
    """Raise DescriptionError unless the mass and the inertia about the centre of mass are physically
    possible.
    """
    if are_constant(mass) and mass < 0:
        raise DescriptionError(f"mass of {where} is {mass}; it must not be negative")
    if not are_constant(*(x for row in inertia for x in row)):
        return
    moments = symmetric_eigenvalues(inertia)
    slack = TRIANGLE_TOLERANCE * maximum(abs(moments[0]), abs(moments[2])) + LEAST_MOMENT
    if moments[0] < -slack:
        raise DescriptionError(
            f"inertia of {where} has the principal moments {list(moments)}; "
            "none may be negative (not positive definite)"
        )
    if moments[0] + moments[1] < moments[2] - slack:
        raise DescriptionError(
            f"inertia of {where} has the principal moments {list(moments)}: "
            "the largest exceeds the sum of the others, "
            "which no body can have (triangle inequality)"
        )


def parallel_axis_term(mass: Any, offset: Any) -> np.ndarray:
    """Term m (c.c 1 - c c^T) of the parallel-axis theorem, for a mass at `offset` c (3,) [kg m^2]."""
    c = skew(offset)
    return mass * (c @ c.T)
