"""Consistent states: configurations that close all loops, and speeds that all exact constraints allow."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from zwang.constraint.hard import VelocityLevelRows, all_velocity_level_rows
from zwang.dynamics.crba import crba
from zwang.errors import ContradictionError, SolveError
from zwang.kinematics.configuration import integrate_configuration, normalized_configuration
from zwang.mechanism.mechanism import Mechanism

TOLERANCE = 1e-12
ITERATIONS = 200
LONGEST_STEP = 0.3  # of any coordinate, in one iteration [rad or m]
RANK = 1e-10
SHOWN = 12  # coordinates in a message


class AssembledState(NamedTuple):
    """q (nq,) and v (nv,) that hold all exact constraints."""

    q: np.ndarray
    v: np.ndarray


def assemble_state(mechanism: Mechanism, q: Any, v: Any = None, t: float = 0.0) -> AssembledState:
    """The state nearest to (q, v) that holds all exact constraints, at the time t [s]; floats.

    Positions by Gauss-Newton steps on the configuration manifold; speeds by one projection that changes the kinetic energy of the difference
    least, v - M^-1 A^T (A M^-1 A^T)^+ (A v + a). Redundant rows do no harm. Raises SolveError, naming the constraint that stays open.
    """
    q = begin = np.array(normalized_configuration(mechanism.tree, np.asarray(q, dtype=float)), dtype=float)
    v = np.zeros(mechanism.nv) if v is None else np.asarray(v, dtype=float)
    for _ in range(ITERATIONS):
        rows = all_velocity_level_rows(mechanism, q, np.zeros(mechanism.nv), t)
        gap, J, _ = _positions(rows)
        if not len(gap) or np.abs(gap).max() < TOLERANCE:
            return AssembledState(q, _allowed_speeds(mechanism, q, v, rows))
        step = -np.linalg.pinv(J, rcond=RANK) @ gap
        longest = np.abs(step).max(initial=0.0)
        if longest < 1e-15:
            break
        q = np.array(
            integrate_configuration(mechanism.tree, q, step * min(1.0, LONGEST_STEP / longest)), dtype=float
        )
    raise _open(mechanism, begin, q, t)


def _shown(mechanism: Mechanism, q: np.ndarray) -> str:
    """The first coordinates, by name."""
    pairs = list(zip(mechanism.coordinate_names, q, strict=True))
    return ", ".join(f"{name} = {x:.4g}" for name, x in pairs[:SHOWN]) + (
        ", ..." if len(pairs) > SHOWN else ""
    )


def _positions(rows: VelocityLevelRows) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """How far the holonomic rows are from holding, their Jacobian, and their names."""
    chosen = [i for i, r in enumerate(rows.position) if r is not None]
    gap = np.array([rows.position[i] for i in chosen], dtype=float)
    return gap, np.asarray(rows.A, dtype=float)[chosen], [rows.names[i] for i in chosen]


def _allowed_speeds(mechanism: Mechanism, q: np.ndarray, v: np.ndarray, rows: VelocityLevelRows) -> np.ndarray:
    if not len(rows.A):
        return v
    A, a = np.asarray(rows.A, dtype=float), np.asarray(rows.a, dtype=float)
    L = np.linalg.cholesky(np.asarray(crba(mechanism.tree, q), dtype=float))
    white = np.linalg.solve(L, A.T).T  # A L^-T
    change = np.linalg.solve(L.T, np.linalg.pinv(white, rcond=RANK) @ (A @ v + a))
    v = v - change
    residual = np.abs(A @ v + a)
    if residual.max() > 1e-8 * (1 + np.abs(a).max()):
        name = rows.names[int(residual.argmax())]
        raise ContradictionError(f"no speeds hold constraint {name!r} together with the others (it misses by {residual.max():.3g}); "
                         f"they contradict each other in this configuration ({_shown(mechanism, q)}); leave one out, or start elsewhere")  # fmt: skip
    return v


def _open(mechanism: Mechanism, begin: np.ndarray, q: np.ndarray, t: float) -> SolveError:
    gap, _, names = _positions(all_velocity_level_rows(mechanism, q, np.zeros(mechanism.nv), t))
    worst = int(np.abs(gap).argmax())
    return SolveError(
        f"constraint {names[worst]!r} of mechanism {mechanism.name!r} cannot be closed from this start ({_shown(mechanism, begin)}): "
        f"it stays open by {abs(gap[worst]):.3g}; start nearer, or check the lengths"
    )
