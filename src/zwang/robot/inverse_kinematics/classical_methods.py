"""Inverse kinematics by the Jacobian inverse (Newton-Raphson) and the Jacobian transpose.

    q_k = q_{k-1} + alpha_k J^+(q_{k-1}) (x_d - f(q_{k-1})),      q_k = q_{k-1} + alpha_k J^T(q_{k-1}) (x_d -
    f(q_{k-1}))

J^+ is the inverse of a regular square J, and the pseudo-inverse otherwise. Positions are measured in metres
and angles in radians, without a characteristic length. The iteration ignores the joint limits; a result
outside them does not count as converged.
Source: Fu, ME331 Robot Modeling and Control, Section 11, "Numerical Solution to Inverse Kinematics", the
Jacobian inverse method and the Jacobian transpose method.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from zwang.api.arguments import validation
from zwang.errors import ShapeError, StateError
from zwang.kinematics.configuration import integrate_configuration
from zwang.mechanism.mechanism import Mechanism
from zwang.robot.independent_coordinates import IndependentCoordinates
from zwang.robot.inverse_kinematics.batch_solver import is_out_of_reach, is_singular
from zwang.robot.inverse_kinematics.ik_functions import IKFunctions
from zwang.robot.inverse_kinematics.ik_solution import IKSolution, Residual, Trace
from zwang.robot.inverse_kinematics.restarts import RestartSearch, SearchOptions, StepFactor

PSEUDO_INVERSE_CUTOFF = 1e-9  # singular values below this fraction of the largest count as zero

TraceRow = tuple[np.ndarray, float, float]


def solve_classical(
    m: Mechanism, functions: IKFunctions, start: np.ndarray, targets: list[np.ndarray], options: SearchOptions
) -> IKSolution:
    """Solution for targets (N, ...) from starts (N, nq) by the Jacobian inverse or the Jacobian transpose.

    Each target is iterated until its residual is within the tolerance or the iteration limit is reached.
    """
    coordinates = functions.problem.coordinates
    q = np.array(coordinates.completed(start.T), dtype=float).T
    iterations = np.zeros(len(q), int)
    rows: list[TraceRow] = []
    for k in range(options.iterations + 1):
        e, J, position, orientation = functions.errors(q, targets)
        if len(q) == 1:
            rows.append((q[0].copy(), position[0], orientation[0]))
        reached = (position < options.tolerance[0]) & (orientation < options.tolerance[1])
        active = ~reached & np.isfinite(J).all(axis=(1, 2))
        if k == options.iterations or not active.any():
            break
        # dq = alpha_k J^+ e, or alpha_k J^T e
        step = _step_factor(options.alpha, k + 1, coordinates) * _direction(
            options.method, J[active], e[active]
        )
        q[active] = _stepped(coordinates, q[active], step)
        iterations += active
    q, converged, reasons = _outcome(m, functions, start, targets, options, q, position, orientation)
    trace = partial(_trace, rows, m) if len(start) == 1 else None
    return IKSolution(
        q, converged, reasons, Residual(position, orientation), iterations, np.ones(len(q), int), trace
    )


def _trace(rows: list[TraceRow], m: Mechanism) -> Trace:
    """The iteration table from its rows."""
    q, position, orientation = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    return Trace(q, position, orientation, m.coordinate_names)


def _direction(method: str, J: np.ndarray, e: np.ndarray) -> np.ndarray:
    """J^+ e or J^T e (N, free)."""
    A = np.linalg.pinv(J, rcond=PSEUDO_INVERSE_CUTOFF) if method == "newton" else J.swapaxes(1, 2)
    return (A @ e[:, :, None])[:, :, 0]


def _step_factor(alpha: StepFactor, k: int, c: IndependentCoordinates) -> np.ndarray:
    """The step factor alpha_k of iteration k: a number, or one for each independent velocity.

    Raises ShapeError for an array of another length, and StateError for numbers that are not finite.
    """
    value = validation.real_values(alpha(k) if callable(alpha) else alpha, "alpha")
    if not np.isfinite(value).all():
        raise StateError(f"alpha of iteration {k} is {value.tolist()}; it must hold finite numbers")
    if value.ndim == 2:
        value = np.diagonal(value)
    if value.shape in ((), (len(c.free),)):
        return value
    if value.shape == (c.tree.nv,):
        return value[list(c.free)]
    raise ShapeError(
        f"alpha must be a number, or nv = {c.tree.nv} numbers, one for each generalised velocity, or "
        f"{len(c.free)}, one for each of those that may move; its shape is {value.shape}"
    )


def _stepped(c: IndependentCoordinates, q: np.ndarray, step: np.ndarray) -> np.ndarray:
    """q (N, nq) after steps (N, free) of the independent velocities; coupled coordinates follow."""
    v = np.zeros((c.tree.nv, len(q)))
    v[list(c.free)] = step.T
    return np.array(c.completed(integrate_configuration(c.tree, q.T, v)), dtype=float).T


def _outcome(
    m: Mechanism,
    functions: IKFunctions,
    start: np.ndarray,
    targets: list[np.ndarray],
    options: SearchOptions,
    q: np.ndarray,
    position: np.ndarray,
    orientation: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """q (N, nq), whether it converged (N,), and the reasons (N,).

    Angles beyond a limit are shifted by whole revolutions where that brings them within the limits.
    """
    search = RestartSearch(m, functions, start, targets, options)
    reached = (position < options.tolerance[0]) & (orientation < options.tolerance[1])
    within = search.limits.contain(q)
    wrapped = search.limits.wrapped(q, q, all_revolutions=True)
    q = np.where((within | ~reached)[:, None], q, wrapped)
    within = search.limits.contain(q) if functions.problem.bounded else np.ones(len(q), bool)
    reasons = np.where(reached & within, "converged", np.where(reached, "limit", "iterations")).astype(object)
    unsolved = np.flatnonzero(~reached)
    if len(unsolved):
        reasons[unsolved[is_singular(search, unsolved, q[unsolved])]] = "singular"
        reasons[unsolved[is_out_of_reach(search, unsolved)]] = "unreachable"
    return q, reached & within, reasons.astype(str)
