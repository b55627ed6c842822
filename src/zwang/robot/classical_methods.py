"""Newton-Raphson with the Jacobian's inverse, and the Jacobian's transpose, exactly as seed 004 writes them.

    q_k = q_{k-1} + alpha_k J^+(q_{k-1}) (x_d - f(q_{k-1})),      q_k = q_{k-1} + alpha_k J^T(q_{k-1}) (x_d - f(q_{k-1}))

J^+ is the inverse where there is one, else the pseudo-inverse. Positions count in metres and angles in radians, as they are; limits do not
act, but an answer outside them is none. Source: seed 004, Numerical Solution to Inverse Kinematics, 1) and 2).
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from zwang.api import validation
from zwang.errors import ShapeError
from zwang.kinematics.configuration import integrate_configuration
from zwang.mechanism.mechanism import Mechanism
from zwang.robot.batch_solver import out_of_reach, singular
from zwang.robot.ik_functions import IKFunctions
from zwang.robot.ik_solution import IKSolution, Residual, Trace
from zwang.robot.independent_coordinates import IndependentCoordinates
from zwang.robot.restarts import RestartSearch, SearchOptions

PSEUDO = 1e-9  # singular values below this part of the largest are zero


def solve_classical(
    m: Mechanism, programs: IKFunctions, start: np.ndarray, targets: list[np.ndarray], options: SearchOptions
) -> IKSolution:
    """The iterates for targets (N, ...) from starts (N, nq), until within the tolerance or out of turns; each for itself."""
    coordinates = programs.problem.coordinates
    q = np.array(coordinates.completed(start.T), dtype=float).T
    turns = np.zeros(len(q), int)
    record = []
    for k in range(options.turns + 1):
        e, J, position, orientation = programs.errors(q, targets)
        if len(q) == 1:
            record.append((q[0].copy(), position[0], orientation[0]))
        arrived = (position < options.tolerance[0]) & (orientation < options.tolerance[1])
        going = ~arrived & np.isfinite(J).all(axis=(1, 2))
        if k == options.turns or not going.any():
            break
        step = _alpha(options.alpha, k + 1, coordinates, m.nq) * _direction(
            options.method, J[going], e[going]
        )
        q[going] = _stepped(coordinates, q[going], step)
        turns += going
    q, good, reasons = _judged(m, programs, start, targets, options, q, (position, orientation))
    table = partial(_table, record, m) if len(start) == 1 else None
    return IKSolution(q, good, reasons, Residual(position, orientation), turns, np.ones(len(q), int), table)


def _table(record: list[Any], m: Mechanism) -> Trace:
    q, position, orientation = (np.array(column, dtype=float) for column in zip(*record, strict=True))
    return Trace(q, position, orientation, m.coordinate_names)


def _direction(method: str, J: np.ndarray, e: np.ndarray) -> np.ndarray:
    """J^+ e or J^T e (N, free)."""
    A = np.linalg.pinv(J, rcond=PSEUDO) if method == "newton" else J.swapaxes(1, 2)
    return (A @ e[:, :, None])[:, :, 0]


def _alpha(alpha: Any, k: int, c: IndependentCoordinates, nq: int) -> np.ndarray:
    """The step of turn k: a number, or one for each free speed. Raises ShapeError for another length."""
    value = validation.array(alpha(k) if callable(alpha) else alpha, "alpha")
    if value.ndim == 2:
        value = np.diagonal(value)
    if value.shape in ((), (len(c.free),)):
        return value
    if value.shape == (nq,):
        return value[[c.coordinate_of_speed[k] for k in c.free]]
    raise ShapeError(
        f"alpha must be a number, or {len(c.free)} numbers (one a joint that may move); its shape is {value.shape}"
    )


def _stepped(c: IndependentCoordinates, q: np.ndarray, step: np.ndarray) -> np.ndarray:
    """q (N, nq) after steps (N, free), the tied joints with them."""
    v = np.zeros((c.tree.nv, len(q)))
    v[list(c.free)] = step.T
    return np.array(c.completed(integrate_configuration(c.tree, q.T, v)), dtype=float).T


def _judged(
    m: Mechanism,
    programs: IKFunctions,
    start: np.ndarray,
    targets: Any,
    options: SearchOptions,
    q: np.ndarray,
    last: Any,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """q within the limits where whole turns bring it there; whether it is an answer; and if not, why."""
    position, orientation = last
    rounds = RestartSearch(m, programs, start, targets, options)
    arrived = (position < options.tolerance[0]) & (orientation < options.tolerance[1])
    within = rounds.limits.hold(q)
    wrapped = rounds.limits.wrapped(q, q, all_turns=True)
    q = np.where((within | ~arrived)[:, None], q, wrapped)
    within = rounds.limits.hold(q) if programs.problem.bounded else np.ones(len(q), bool)
    reasons = np.where(arrived & within, "converged", np.where(arrived, "limit", "iterations")).astype(object)
    left = np.flatnonzero(~arrived)
    if len(left):
        reasons[left[singular(rounds, left, q[left])]] = "singular"
        reasons[left[out_of_reach(rounds, left)]] = "unreachable"
    return q, arrived & within, reasons.astype(str)
