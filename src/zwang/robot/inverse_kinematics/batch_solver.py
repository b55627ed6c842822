"""Inverse kinematics of batches and paths by Levenberg-Marquardt with restarts, and reasons for failure."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from zwang.kinematics.poses import link_poses
from zwang.mechanism.mechanism import Mechanism
from zwang.robot.inverse_kinematics.ik_functions import ORIENTATION, POSITION, STATUS, IKFunctions
from zwang.robot.inverse_kinematics.ik_solution import IKSolution, Residual, Trace
from zwang.robot.inverse_kinematics.levenberg_marquardt import (
    CONVERGED,
    STAGNATED,
    errors_of,
    initial_search,
    iterate,
)
from zwang.robot.inverse_kinematics.restarts import RestartSearch, SearchOptions
from zwang.robot.joint_limits import reach_bound
from zwang.robot.sampling import random_configurations

RESTARTS_WITHOUT_LIMITS = 20
RANK = 1e-6  # singular values below this fraction of the largest count as zero where a search has stagnated
SAMPLES = 8


def solve_batch(
    m: Mechanism, functions: IKFunctions, start: np.ndarray, targets: list[np.ndarray], options: SearchOptions
) -> IKSolution:
    """Solution for targets (N, ...) from starts (N, nq) by Levenberg-Marquardt with restarts."""
    search = RestartSearch(m, functions, start, targets, options)
    if options.restarts:
        search.search_from_start(options.restart_settings)
        search.restart()
    else:
        search.search_from_start(options.refinement_settings)
    search.refine()
    _follow_objective(search)
    reasons = _reasons(search)
    residual = Residual(search.metrics[:, POSITION], search.metrics[:, ORIENTATION])
    trace = partial(_trace, search) if len(start) == 1 else None
    return IKSolution(
        search.q, search.converged, reasons, residual, search.iterations.astype(int), search.starts, trace
    )


def solve_path(
    m: Mechanism, functions: IKFunctions, start: np.ndarray, targets: list[np.ndarray], options: SearchOptions
) -> IKSolution:
    """Solution for a sequence of targets (N, ...), each started from the solution of the target before it."""
    solutions: list[IKSolution] = []
    q = start[:1]
    for k in range(len(start)):
        solutions.append(solve_batch(m, functions, q, [x[k : k + 1] for x in targets], options))
        q = solutions[-1].q
    stacked = [np.concatenate([getattr(s, name) for s in solutions])
               for name in ("q", "converged", "reason", "iterations", "starts")]  # fmt: skip
    residual = Residual(
        *(np.concatenate(parts) for parts in zip(*(s.residual for s in solutions), strict=True))
    )
    return IKSolution(stacked[0], stacked[1], stacked[2], residual, stacked[3], stacked[4])


def _follow_objective(search: RestartSearch) -> None:
    """Follow the null-space objective from every solution; keep the result only where it still converges."""
    which = np.flatnonzero(search.converged)
    if search.functions.objective is None or not len(which):
        return
    settings, targets = search.options.refinement_settings, [x[which] for x in search.targets]
    q, *_ = search.functions.follow_objective(search.q[which], targets, settings)
    found = search.functions.search(q, targets, settings)
    converged = (found.metrics[:, STATUS] == CONVERGED) & search.limits.contain(found.q)
    search.q[which[converged]] = found.q[converged]
    search.metrics[which[converged]] = found.metrics[converged]


def _reasons(search: RestartSearch) -> np.ndarray:
    """The reason (N,) for each target's outcome.

    It follows from the target's distance, from a search without joint limits, and from the rank of the
    Jacobian where the search stagnated.
    """
    reasons = np.full(len(search.converged), "converged", dtype="<U11")
    unsolved = search.unsolved
    if not len(unsolved):
        return reasons
    stagnated = search.metrics[unsolved, STATUS] == STAGNATED
    reasons[unsolved] = np.where(stagnated, "unreachable", "iterations")
    if not search.options.restarts:
        reasons[unsolved[stagnated & is_singular(search, unsolved, search.q[unsolved])]] = "singular"
    reasons[unsolved[_converges_without_limits(search, unsolved)]] = "limit"
    reasons[unsolved[is_out_of_reach(search, unsolved)]] = "unreachable"
    return reasons


def _converges_without_limits(search: RestartSearch, unsolved: np.ndarray) -> np.ndarray:
    """Whether each of these targets can be reached when the joint limits are ignored."""
    problem = search.functions.problem
    limits = search.limits
    limited = np.isfinite(limits.lower).any() or np.isfinite(limits.upper).any() or limits.balls
    if not (problem.bounded and limited):
        return np.zeros(len(unsolved), bool)
    options = replace(search.options, restarts=min(search.options.restarts, RESTARTS_WITHOUT_LIMITS))
    unlimited = RestartSearch(
        search.m,
        search.functions.unbounded,
        search.q[unsolved],
        [x[unsolved] for x in search.targets],
        options,
    )
    unlimited.search_from_start(options.restart_settings if options.restarts else options.refinement_settings)
    unlimited.restart()
    return unlimited.converged


def is_singular(search: RestartSearch, unsolved: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Whether the Jacobian of each of these targets has a lower rank at q than at random configurations."""
    sampled = random_configurations(search.m, SAMPLES)
    elsewhere = search.functions.errors(sampled, [x[:1] for x in search.targets])[1]
    here = search.functions.errors(q, [x[unsolved] for x in search.targets])[1]
    return _rank(here) < _rank(elsewhere).max()


def _rank(J: np.ndarray) -> np.ndarray:
    """The rank of each J (N, m, n); 0 where J is not finite."""
    finite = np.asarray(np.isfinite(J).all(axis=(1, 2))).reshape(-1, 1, 1)
    s = np.linalg.svd(np.where(finite, J, 0), compute_uv=False)
    return (s > RANK * s[:, :1]).sum(axis=1)


def is_out_of_reach(search: RestartSearch, unsolved: np.ndarray) -> np.ndarray:
    """Whether each of these targets is farther away than the sum of the link lengths."""
    far = np.zeros(len(unsolved), bool)
    position = 0
    for task in search.functions.problem.tasks:
        rows = [row for row in task.rows if row < 3]
        if len(rows) == 3 or (rows and task.axes == "world"):
            centre, reach = reach_bound(search.m.tree, task.frame, search.limits)
            offset = search.targets[position][unsolved][:, rows] - centre[rows]
            distance = np.sqrt(np.sum(offset * offset, axis=1))
            far |= distance > reach + search.options.tolerance[0]
        position += task.has_position + task.has_orientation
    return far


def _trace(search: RestartSearch) -> Trace:
    """The iteration table of a single target from its own start, evaluated on floats."""
    problem, options = search.functions.problem, search.options
    settings = options.restart_settings if options.restarts else options.refinement_settings
    targets = search.functions.by_task([x[0] for x in search.targets])
    s = initial_search(problem, search.start[0])
    rows: list[tuple[Any, Any, Any]] = []
    while s.status < 0.5 and s.iterations <= settings.iteration_limit:
        errors = errors_of(problem, link_poses(search.m.tree, s.q), s.q, targets)
        rows.append((s.q, errors.position, errors.orientation))
        s = iterate(problem, s, targets, settings)
    q, position, orientation = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    return Trace(q, position, orientation, search.m.coordinate_names)
