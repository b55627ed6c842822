"""Assembly (the initial-condition problem): states that satisfy all hard constraints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from zwang.constraint.hard import (
    VelocityLevelRows,
    all_velocity_level_rows,
    depends_on_time,
    hard_constraints,
)
from zwang.constraint.row_sizes import row_tolerances
from zwang.dynamics.crba import crba
from zwang.errors import InconsistentConstraintsError, SolveError
from zwang.kinematics.configuration import integrate_configuration, normalized_configuration
from zwang.kinematics.poses import link_poses
from zwang.mechanism.lengths import displacement_sizes, displacement_tolerances, translations
from zwang.mechanism.mechanism import Mechanism

TOLERANCE = 1e-12  # of the violations, relative to the sizes of their rows
VELOCITY_TOLERANCE = 1e-8  # [1/s] the same of the velocity residuals, and relative to their terms
ROUNDING = 2e-15  # relative error of positions and coordinates, which no step makes smaller
NEAR_ROUNDING = 1e3  # of violations that a message ascribes to rounding, relative to the tolerance
ITERATIONS = 200  # of steps of limited rotation, from a start that may be far from assembled
LARGEST_ROTATION = 0.3  # [rad] of any coordinate, in one iteration
RANK_TOLERANCE = 1e-10  # singular values of redundant rows, relative to the largest
SHOWN_COORDINATES = 12  # coordinates in a message
HELD_SPEED = "held speed "  # before the name of a row


class AssembledState(NamedTuple):
    """q (nq,) and v (nv,) that satisfy all hard constraints."""

    q: np.ndarray
    v: np.ndarray


class HeldValues(NamedTuple):
    """Coordinates and velocities with given values, by name.

    positions: for each held coordinate the number of its generalised velocity. speeds: for each held
    velocity its number and value.
    """

    positions: Mapping[str, int] = {}
    speeds: Mapping[str, tuple[int, float]] = {}


def assemble_state(
    mechanism: Mechanism, q: Any, v: Any = None, t: float = 0.0, held: HeldValues = HeldValues()
) -> AssembledState:
    """A state near (q, v) that satisfies all hard constraints at the time t [s]; floats.

    The configuration is found by Gauss-Newton steps on the configuration manifold, to 1e-12 relative to the
    sizes of the rows (see `row_sizes`), and to rounding where the positions are large. The velocities are
    then projected in the metric of the mass matrix, v - M^-1 A^T (A M^-1 A^T)^+ (A v + a). Rows may be
    redundant. held: coordinates that keep their value in q, and velocities that keep theirs; they are further
    rows.
    Raises SolveError, naming the constraint with the largest violation, if the mechanism cannot be assembled
    from q, or one whose rows are not finite, and InconsistentConstraintsError if no velocities satisfy all
    constraints.
    """
    q = start = np.array(normalized_configuration(mechanism.tree, np.asarray(q, dtype=float)), dtype=float)
    v = np.zeros(mechanism.nv) if v is None else np.array(v, dtype=float)
    for k, value in held.speeds.values():
        v[k] = value

    slides = list(translations(mechanism.tree))
    for _ in range(ITERATIONS):
        rows = _with_held_positions(_rows(mechanism, q, t), held.positions)
        violation, J, names = _position_violation(rows)
        _check_finite(mechanism, (q, t), names, np.column_stack([J, violation]))
        if (np.abs(violation) <= _tolerances(mechanism, q, rows)).all():
            rows = _with_held_speeds(_rows(mechanism, q, t), held)
            return AssembledState(q, _admissible_velocities(mechanism, (q, t), v, rows))
        # Gauss-Newton step dq = -J^+ g(q), of limited rotation, with translations relative to their sizes
        sizes = np.array(displacement_sizes(mechanism), dtype=float)
        step = -sizes * (np.linalg.pinv(J * sizes, rcond=RANK_TOLERANCE) @ violation)
        step[list(held.positions.values())] = 0.0  # but for rounding it is zero already
        rotation = np.abs(np.delete(step, slides)).max(initial=0.0)
        scale = min(1.0, LARGEST_ROTATION / max(rotation, LARGEST_ROTATION))
        before, q = q, np.array(integrate_configuration(mechanism.tree, q, step * scale), dtype=float)
        if np.array_equal(q, before):
            break
    raise _not_assembled(mechanism, start, q, t, held)


def _rows(mechanism: Mechanism, q: np.ndarray, t: float) -> VelocityLevelRows:
    """The rows of all hard constraints at zero velocity, which may not be finite."""
    with np.errstate(all="ignore"):  # reported by _check_finite
        return all_velocity_level_rows(mechanism, q, np.zeros(mechanism.nv), t)


def _check_finite(
    mechanism: Mechanism, at: tuple[np.ndarray, float], names: Sequence[str], rows: np.ndarray
) -> None:
    """Raises SolveError for the first of the rows (k, n) at (q, t) that is not finite, with its name."""
    q, t = at
    timed = {c.name for c in hard_constraints(mechanism) if depends_on_time(c)}
    for name, row in zip(names, rows, strict=True):
        if not np.isfinite(row).all():
            is_timed = name in timed
            time = f" at t = {t:.6g} s" * is_timed
            example = ", or a derivative of sqrt(t) at t = 0," * is_timed
            remedy = " or at another time, or write the formula with powers of t" * is_timed
            raise SolveError(
                f"the rows of constraint {name!r} of mechanism {mechanism.name!r} are not finite in the "
                f"configuration ({_coordinate_text(mechanism, q)}){time}: numbers overflow, or the "
                f"constraint is singular there, as the distance of two coincident points{example} is; start "
                f"from another configuration{remedy}"
            )


def _tolerances(mechanism: Mechanism, q: np.ndarray, rows: VelocityLevelRows) -> np.ndarray:
    """The violation (k,) that each holonomic row may keep: of its size, and at least the rounding errors of
    the positions and coordinates that enter it.
    """
    positions = [p for _, p in link_poses(mechanism.tree, q)]
    farthest = max((np.abs(np.asarray(p, float)).max() for p in positions), default=0.0)
    values = np.array(displacement_sizes(mechanism), dtype=float)
    for link in mechanism.tree.links:
        if link.joint.kind != "ball":
            values[link.v] = np.maximum(values[link.v], abs(q[link.q.start]))
    _, J, _ = _position_violation(rows)
    holonomic = [i for i, r in enumerate(rows.position) if r is not None]
    with np.errstate(all="ignore"):  # velocity-level rows, which are left out, may not be finite here
        sizes = np.asarray(_sizes(mechanism, q, rows), dtype=float)[holonomic]
    return TOLERANCE * sizes + ROUNDING * (farthest + np.abs(J) @ values)


def _sizes(mechanism: Mechanism, q: np.ndarray, rows: VelocityLevelRows) -> np.ndarray:
    """The sizes (k,) of rows for tolerances, of which those of held coordinates and velocities are last."""
    sizes = row_tolerances(mechanism, hard_constraints(mechanism), q, rows.A)
    displacements = np.array(displacement_tolerances(mechanism, q), dtype=float)
    return np.array([*sizes, *(np.asarray(rows.A, dtype=float)[len(sizes) :] @ displacements)], dtype=float)


def _with_held_positions(rows: VelocityLevelRows, positions: Mapping[str, int]) -> VelocityLevelRows:
    """The rows, and one for each held coordinate, which its generalised velocity must not move."""
    return _with_rows(rows, {f"held {name}": k for name, k in positions.items()}, [0.0] * len(positions), 0.0)


def _with_held_speeds(rows: VelocityLevelRows, held: HeldValues) -> VelocityLevelRows:
    """The rows, and v_k - value = 0 for each held velocity."""
    numbers = {f"{HELD_SPEED}{name}": k for name, (k, _) in held.speeds.items()}
    return _with_rows(rows, numbers, [-value for _, value in held.speeds.values()], None)


def _with_rows(
    rows: VelocityLevelRows, numbers: Mapping[str, int], a: list[float], position: float | None
) -> VelocityLevelRows:
    """The rows, and v_k + a = 0 for each name with its number k."""
    if not numbers:
        return rows
    units = np.eye(rows.A.shape[1])[list(numbers.values())]
    return VelocityLevelRows(
        (*rows.names, *numbers),
        np.concatenate([np.asarray(rows.A, dtype=float), units]),
        np.concatenate([np.asarray(rows.a, dtype=float), a]),
        np.concatenate([np.asarray(rows.b, dtype=float), np.zeros(len(numbers))]),
        (*rows.position, *[position] * len(numbers)),
    )


def _coordinate_text(mechanism: Mechanism, q: np.ndarray) -> str:
    """The first coordinates, by name, for messages."""
    pairs = list(zip(mechanism.coordinate_names, q, strict=True))
    return ", ".join(f"{name} = {x:.4g}" for name, x in pairs[:SHOWN_COORDINATES]) + (
        ", ..." if len(pairs) > SHOWN_COORDINATES else ""
    )


def _position_violation(rows: VelocityLevelRows) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Violation of the holonomic rows, their Jacobian, and their names."""
    holonomic = [i for i, r in enumerate(rows.position) if r is not None]
    violation = np.array([rows.position[i] for i in holonomic], dtype=float)
    return violation, np.asarray(rows.A, dtype=float)[holonomic], [rows.names[i] for i in holonomic]


def _admissible_velocities(
    mechanism: Mechanism, at: tuple[np.ndarray, float], v: np.ndarray, rows: VelocityLevelRows
) -> np.ndarray:
    """Projection of v onto A v + a = 0 at (q, t) in the metric of the mass matrix."""
    if not len(rows.A):
        return v
    A, a = np.asarray(rows.A, dtype=float), np.asarray(rows.a, dtype=float)
    _check_finite(mechanism, at, rows.names, np.column_stack([A, a]))
    q, _ = at
    # v - M^-1 A^T (A M^-1 A^T)^+ (A v + a), with M = L L^T and A L^-T
    L = np.linalg.cholesky(np.asarray(crba(mechanism.tree, q), dtype=float))
    whitened = np.linalg.solve(L, A.T).T  # A L^-T
    correction = np.linalg.solve(L.T, np.linalg.pinv(whitened, rcond=RANK_TOLERANCE) @ (A @ v + a))
    v = v - correction
    residual = np.abs(A @ v + a)
    allowed = VELOCITY_TOLERANCE * (_sizes(mechanism, q, rows) + np.abs(A) @ np.abs(v) + np.abs(a))
    if (residual > allowed).any():
        name = rows.names[int((residual / allowed).argmax())]
        raise InconsistentConstraintsError(
            f"no velocities satisfy constraint {name!r} together with the others (residual "
            f"{residual.max():.3g}{_held_text(rows)}); "
            f"they contradict each other in this configuration ({_coordinate_text(mechanism, q)}); remove "
            "one, or "
            "start in another configuration"
        )
    return v


def _held_text(rows: VelocityLevelRows) -> str:
    """The held velocities among the rows, for messages."""
    held = [name.removeprefix(HELD_SPEED) for name in rows.names if name.startswith(HELD_SPEED)]
    return f", while the speed {', '.join(held)} is held" if held else ""


def _not_assembled(
    mechanism: Mechanism, start: np.ndarray, q: np.ndarray, t: float, held: HeldValues
) -> SolveError:
    """The error that names the constraint with the largest violation."""
    rows = _rows(mechanism, q, t)
    violation, _, names = _position_violation(rows)
    ratios = np.abs(violation) / np.maximum(_tolerances(mechanism, q, rows), np.finfo(float).tiny)
    worst = int(np.abs(violation).argmax())
    remedy = "start closer to an assembled configuration, or check the lengths"
    if ratios.max() < NEAR_ROUNDING:
        remedy = (
            "it is near the rounding errors of the positions; use a larger unit of length, or an origin "
            "closer to the mechanism"
        )
    fixed = f" while {', '.join(held.positions)} is held" if held.positions else ""
    return SolveError(
        f"constraint {names[worst]!r} of mechanism {mechanism.name!r} cannot be assembled from the initial "
        f"configuration ({_coordinate_text(mechanism, start)}){fixed}: its violation remains "
        f"{abs(violation[worst]):.3g}; {remedy}"
    )
