"""Random problems of Gauss's principle with constraint rows of every kind."""

from __future__ import annotations

import numpy as np

from zwang.constraint.rows import Cone, Rows, concatenated, rows_of_kind
from zwang.dynamics.gauss import GaussProblem


def plain_rows(
    kind: str, J: np.ndarray, aref: np.ndarray, R: np.ndarray, name: str = "row", bound: float = 0.0
) -> Rows:
    """Rows of one kind with the fields that a solver uses."""
    return rows_of_kind(name, kind, J, aref, R=R, impedance=0, bound=bound)


def elliptic(
    J: np.ndarray, aref: np.ndarray, R0: float, friction: tuple[float, ...], impratio: float, name: str
) -> Rows:
    """An elliptic friction cone, with the R that MuJoCo assigns to its rows."""
    f = np.array(friction)
    R = np.array([R0, *(R0 / impratio * f[0] ** 2 / f**2)])
    return plain_rows("cone", J, aref, R, name).as_cone(
        Cone(0, tuple(friction), friction[0] / np.sqrt(impratio))
    )


def random_problem(seed: int, nv: int = 6) -> tuple[GaussProblem, Rows]:
    """A mass matrix, a free acceleration, and one or more rows of every kind."""
    rng = np.random.default_rng(seed)
    half = rng.normal(size=(nv, nv))
    problem = GaussProblem(
        half @ half.T + 0.5 * np.eye(nv), 5 * rng.normal(size=nv), tuple(range(-1, nv - 1))
    )
    parts = []
    for kind, count in (("equality", 1), ("friction", 2), ("limit", 2), ("contact", 2)):
        R = 10.0 ** rng.uniform(-2, 0, size=count)
        J, aref = rng.normal(size=(count, nv)), 5 * rng.normal(size=count)
        parts.append(plain_rows(kind, J, aref, R, kind, bound=float(rng.uniform(0.2, 3))))
    for k, dim in enumerate((3, 4, 6)):
        friction = tuple(rng.uniform(0.2, 1.2, size=dim - 1))
        J, aref = rng.normal(size=(dim, nv)), 5 * rng.normal(size=dim)
        parts.append(
            elliptic(J, aref, 10.0 ** rng.uniform(-2, 0), friction, rng.uniform(0.5, 4), f"cone {k}")
        )
    return problem, concatenated(parts, nv)
