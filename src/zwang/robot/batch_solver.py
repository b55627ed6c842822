"""Batches and paths of targets by Levenberg and Marquardt with restarts, and why a target was not reached."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from zwang.kinematics.poses import link_poses
from zwang.mechanism.mechanism import Mechanism
from zwang.robot.ik_functions import ORIENTATION, POSITION, STATUS, IKFunctions
from zwang.robot.ik_solution import IKSolution, Residual, Trace
from zwang.robot.joint_limits import reach_of
from zwang.robot.levenberg_marquardt import CONVERGED, STALLED, errors_of, initial_search, iterate
from zwang.robot.restarts import RestartSearch, SearchOptions
from zwang.robot.sampling import random_configurations

UNBOUNDED_STARTS = 20
RANK = 1e-6  # singular values below this part of the largest are zero, where a search came to rest
SAMPLES = 8


def solve_batch(
    m: Mechanism, programs: IKFunctions, start: np.ndarray, targets: list[np.ndarray], options: SearchOptions
) -> IKSolution:
    """The solution for targets (N, ...) from starts (N, nq)."""
    rounds = RestartSearch(m, programs, start, targets, options)
    if options.restarts:
        rounds.first(options.hasty)
        rounds.restart()
    else:
        rounds.first(options.patient)
    rounds.refine()
    _follow_wish(rounds)
    reasons = _reasons(rounds)
    residual = Residual(rounds.numbers[:, POSITION], rounds.numbers[:, ORIENTATION])
    record = partial(_trace, rounds) if len(start) == 1 else None
    return IKSolution(rounds.q, rounds.good, reasons, residual, rounds.turns.astype(int), rounds.starts, record)


def solve_path(
    m: Mechanism, programs: IKFunctions, start: np.ndarray, targets: list[np.ndarray], options: SearchOptions
) -> IKSolution:
    """The solution for targets that follow each other, each from the joints of the one before."""
    answers: list[IKSolution] = []
    q = start[:1]
    for k in range(len(start)):
        answers.append(solve_batch(m, programs, q, [x[k : k + 1] for x in targets], options))
        q = answers[-1].q
    stacked = [np.concatenate([getattr(a, name) for a in answers])
               for name in ("q", "converged", "reason", "iterations", "starts")]  # fmt: skip
    residual = Residual(
        *(np.concatenate(parts) for parts in zip(*(a.residual for a in answers), strict=True))
    )
    return IKSolution(stacked[0], stacked[1], stacked[2], residual, stacked[3], stacked[4])


def _follow_wish(rounds: RestartSearch) -> None:
    """Use what freedom the targets leave for the posture or wish; kept only where the targets still hold."""
    which = np.flatnonzero(rounds.good)
    if rounds.programs.wish is None or not len(which):
        return
    settings, targets = rounds.options.patient, [x[which] for x in rounds.targets]
    q, *_ = rounds.programs.settle(rounds.q[which], targets, settings)
    found = rounds.programs.search(q, targets, settings)
    good = (found.numbers[:, STATUS] == CONVERGED) & rounds.limits.hold(found.q)
    rounds.q[which[good]], rounds.numbers[which[good]] = found.q[good], found.numbers[good]


def _reasons(rounds: RestartSearch) -> np.ndarray:
    """Why each target was not reached: by its distance, without limits, and by where the search came to rest."""
    reasons = np.full(len(rounds.good), "converged", dtype="<U11")
    left = rounds.left
    if not len(left):
        return reasons
    rested = rounds.numbers[left, STATUS] == STALLED
    reasons[left] = np.where(rested, "unreachable", "iterations")
    if not rounds.options.restarts:
        reasons[left[rested & singular(rounds, left, rounds.q[left])]] = "singular"
    reasons[left[_without_limits(rounds, left)]] = "limit"
    reasons[left[out_of_reach(rounds, left)]] = "unreachable"
    return reasons


def _without_limits(rounds: RestartSearch, left: np.ndarray) -> np.ndarray:
    """Which of these targets can be reached if limits do not count."""
    problem = rounds.programs.problem
    limits = rounds.limits
    limited = np.isfinite(limits.lower).any() or np.isfinite(limits.upper).any() or limits.balls
    if not (problem.bounded and limited):
        return np.zeros(len(left), bool)
    options = replace(rounds.options, restarts=min(rounds.options.restarts, UNBOUNDED_STARTS))
    free = RestartSearch(
        rounds.m, rounds.programs.unbounded, rounds.q[left], [x[left] for x in rounds.targets], options
    )
    free.first(options.hasty if options.restarts else options.patient)
    free.restart()
    return free.good


def singular(rounds: RestartSearch, left: np.ndarray, q: np.ndarray) -> np.ndarray:
    """For which of these targets, at q, the Jacobian has a lower rank than it has elsewhere."""
    sampled = random_configurations(rounds.m, SAMPLES)
    elsewhere = rounds.programs.errors(sampled, [x[:1] for x in rounds.targets])[1]
    here = rounds.programs.errors(q, [x[left] for x in rounds.targets])[1]
    return _rank(here) < _rank(elsewhere).max()


def _rank(J: np.ndarray) -> np.ndarray:
    """The rank of each J (N, m, n); 0 where it is not finite."""
    finite = np.asarray(np.isfinite(J).all(axis=(1, 2))).reshape(-1, 1, 1)
    s = np.linalg.svd(np.where(finite, J, 0), compute_uv=False)
    return (s > RANK * s[:, :1]).sum(axis=1)


def out_of_reach(rounds: RestartSearch, left: np.ndarray) -> np.ndarray:
    """Which targets are surely too far: beyond the sum of the lengths of the links."""
    far = np.zeros(len(left), bool)
    position = 0
    for task in rounds.programs.problem.tasks:
        rows = [row for row in task.rows if row < 3]
        if len(rows) == 3 or (rows and task.axes == "world"):
            centre, reach = reach_of(rounds.m.tree, task.frame, rounds.limits)
            offset = rounds.targets[position][left][:, rows] - centre[rows]
            distance = np.sqrt(np.sum(offset * offset, axis=1))
            far |= distance > reach + rounds.options.tolerance[0]
        position += task.has_position + task.has_orientation
    return far


def _trace(rounds: RestartSearch) -> Trace:
    """The turns of a single target from its own start, by the float reading."""
    problem, options = rounds.programs.problem, rounds.options
    settings = options.hasty if options.restarts else options.patient
    targets = rounds.programs.named([x[0] for x in rounds.targets])
    s = initial_search(problem, rounds.start[0])
    record: list[tuple[Any, Any, Any]] = []
    while s.status < 0.5 and s.turns <= settings.turns:
        errors = errors_of(problem, link_poses(rounds.m.tree, s.q), s.q, targets)
        record.append((s.q, errors.position, errors.orientation))
        s = iterate(problem, s, targets, settings)
    q, position, orientation = (np.array(column, dtype=float) for column in zip(*record, strict=True))
    return Trace(q, position, orientation, rounds.m.coordinate_names)
