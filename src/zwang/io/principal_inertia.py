"""Inertias in principal axes, whose floats satisfy the triangle inequality exactly, as MuJoCo requires."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from zwang.algebra.inertia import LEAST_MOMENT

ROUNDING = 1e-12
"""The relative violation of the triangle inequality that is rounding."""


@dataclass(frozen=True)
class PrincipalInertia:
    """Mass [kg], centre of mass [m], principal moments [kg m^2] and the rotation of the principal axes."""

    mass: float
    com: tuple[float, ...]
    moments: np.ndarray
    R: np.ndarray

    @property
    def violation(self) -> float:
        """The violation of 0 <= a and c <= a + b, relative to the largest moment; 0 for a rounded zero."""
        a, b, c = sorted(self.moments)
        excess = max(c - a - b, -a, 0.0)
        return 0.0 if excess <= LEAST_MOMENT else float(excess / max(c, -a))

    def consistent(self, least: float = 0.0, margin: float = 0.0) -> PrincipalInertia:
        """The inertia with moments of at least this size, the smallest of which is raised until the floats
        satisfy the triangle inequality, by a margin relative to the largest; the mass is not negative.
        """
        moments = np.maximum(self.moments, least)
        a, b, c = np.argsort(moments)
        moments[a] = max(moments[a], moments[c] * (1 + margin) - moments[b])
        while moments[a] + moments[b] < moments[c]:
            moments[a] = np.nextafter(moments[a], np.inf)
        return replace(self, mass=max(self.mass, 0.0), moments=moments)


def principal_inertia(mass: Any, com: Any, inertia: Any, axes: np.ndarray | None = None) -> PrincipalInertia:
    """The principal moments and axes of an inertia matrix; exact if it is diagonal. Given axes are used."""
    I = np.array(inertia, float)
    com = tuple(float(x) for x in com)
    if axes is not None:
        return PrincipalInertia(float(mass), com, np.diag(axes.T @ I @ axes).copy(), axes)
    if not (I - np.diag(np.diag(I))).any():
        return PrincipalInertia(float(mass), com, np.diag(I).copy(), np.eye(3))
    moments, R = np.linalg.eigh(I)
    return PrincipalInertia(float(mass), com, moments, R if np.linalg.det(R) > 0 else -R)
