"""Batches of targets by Levenberg and Marquardt with restarts: rounds over those that are not solved yet.

Every target gets the same list of starts: first its q0, then numbers drawn once from the seed. A round gives each target that is
left its next start, or, when few are left, several at a time in parallel lanes; of those that converge the first one in the
list counts. So an answer depends on the target alone, not on the batch around it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from zwang.algebra.rotation import logarithm
from zwang.kinematics.poses import link_poses
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.tree import WORLD, Tree
from zwang.robot.coordinates import Coordinates, joint_limits
from zwang.robot.inverse_kinematics import CONVERGED, STALLED, Settings, errors_of, first_of, turn
from zwang.robot.programs import Found, Programs
from zwang.robot.sampling import ends, random_configurations, spread
from zwang.robot.solution import Residual, Solution, Trace

PARALLEL = 64  # searches that a round has at least
PATIENT_TURNS = 200
UNBOUNDED_STARTS = 20
RANK = 1e-6  # singular values below this part of the largest are zero, where a search came to rest
SAMPLES = 8
WITHIN = 1e-9  # beyond a limit [rad, m]: rounding


@dataclass(frozen=True)
class Options:
    """What the caller wants: see `solve_ik`."""

    method: str = "lm"
    tolerance: tuple[float, float] = (1e-6, 1e-6)
    turns: int = 20
    restarts: int = 100
    seed: int = 0
    alpha: Any = 1.0

    @property
    def hasty(self) -> Settings:
        return Settings(*self.tolerance, float(self.turns), 0.0)

    @property
    def patient(self) -> Settings:
        return Settings(*self.tolerance, float(max(self.turns, PATIENT_TURNS)), 1.0)


@dataclass(frozen=True)
class Limits:
    """The limits of the joints, as whole arrays of configurations are held against them."""

    lower: np.ndarray
    upper: np.ndarray
    middle: np.ndarray
    turning: np.ndarray
    turns: np.ndarray
    balls: tuple[tuple[slice, float], ...]

    @staticmethod
    def of(c: Coordinates, m: Mechanism) -> Limits:
        lower, upper = joint_limits(m)
        low, high = ends(m, c)
        middle = c.completed((low + high) / 2).astype(float)
        middle = np.where(np.isfinite(lower) | np.isfinite(upper), middle, np.array(m.neutral, dtype=float))
        bound = {i for tie in c.ties for i in (tie.this, tie.other)}
        turns = np.zeros(m.nq, bool)
        for link in m.tree.links:
            turns[link.q] = link.move.kind == "turn" and link.q.start not in bound
            if link.move.kind == "ball":
                middle[link.q] = (1, 0, 0, 0)
        balls = tuple(
            (j.q, float(j.joint.limits[1]))
            for j in m.joints
            if j.kind == "ball" and j.joint.limits is not None
        )
        return Limits(lower, upper, middle, np.array(c.turning), turns, balls)

    def wrapped(self, q: np.ndarray, near: np.ndarray) -> np.ndarray:
        """q (N, nq) with turns that are free of limits moved by whole turns, near to `near` and within the limits."""
        turn = 2 * math.pi
        x = q - turn * np.round((q - near) / turn)
        x = np.where(x > self.upper, x - turn * np.ceil((x - self.upper) / turn), x)
        x = np.where(x < self.lower, x + turn * np.ceil((self.lower - x) / turn), x)
        with np.errstate(invalid="ignore"):
            return np.where(self.turns & (self.turning | (x >= self.lower) & (x <= self.upper)), x, q)

    def hold(self, q: np.ndarray) -> np.ndarray:
        """Whether each of q (N, nq) is within the limits."""
        good = ((q >= self.lower - WITHIN) & (q <= self.upper + WITHIN)).all(axis=1)
        for part, largest in self.balls:
            angles = np.array([np.linalg.norm(logarithm(row[part])) for row in q])
            good &= angles <= largest + WITHIN
        return good


@dataclass
class Board:
    """The best so far for every target; arrays over the targets, changed in place."""

    q: np.ndarray
    cost: np.ndarray
    position: np.ndarray
    orientation: np.ndarray
    turns: np.ndarray
    starts: np.ndarray
    status: np.ndarray
    good: np.ndarray

    @staticmethod
    def empty(start: np.ndarray) -> Board:
        n = len(start)
        far = np.full(n, np.inf)
        return Board(
            start.copy(),
            far,
            far.copy(),
            far.copy(),
            np.zeros(n, int),
            np.zeros(n, int),
            np.zeros(n),
            np.zeros(n, bool),
        )

    def enter(self, targets: np.ndarray, found: Found, good: np.ndarray) -> None:
        """Take what was found for these targets where it is good, or nearer than before."""
        take = good | ((found.cost < self.cost[targets]) & ~self.good[targets])
        at = targets[take]
        self.q[at], self.cost[at] = found.q[take], found.cost[take]
        self.position[at], self.orientation[at] = found.position[take], found.orientation[take]
        self.status[at], self.good[at] = found.status[take], good[take]


class Rounds:
    """The rounds of one batch: programs, targets and limits at hand."""

    def __init__(
        self, m: Mechanism, programs: Programs, start: np.ndarray, targets: list[np.ndarray], options: Options
    ):
        self.m, self.programs, self.targets, self.options = m, programs, targets, options
        self.start = start
        self.limits = Limits.of(programs.problem.coordinates, m)
        self.board = Board.empty(start)

    @cached_property
    def starts(self) -> np.ndarray:
        """The list of further starts (restarts, nq), the same for every target."""
        numbers = np.random.default_rng(self.options.seed).random((self.options.restarts, self.m.nq))
        return spread(self.m, self.programs.problem.coordinates, numbers)

    def run(self, which: np.ndarray, start: np.ndarray, settings: Settings) -> tuple[Found, np.ndarray]:
        """Search from these starts for these targets; what was found, wrapped, and whether it is good."""
        found = self.programs.search(start, [x[which] for x in self.targets], settings)
        q = self.limits.wrapped(found.q, self.start[which])
        good = found.status == CONVERGED
        if self.programs.problem.bounded:
            good = good & self.limits.hold(q)
        return found._replace(q=q), good

    def first(self, settings: Settings) -> None:
        """Every target from its own start."""
        everything = np.arange(len(self.start))
        found, good = self.run(everything, self.start, settings)
        self.board.enter(everything, found, good)
        self.board.turns += found.turns.astype(int)
        self.board.starts += 1

    def restart(self) -> None:
        """Rounds from further starts, until all targets are solved or all starts used."""
        used = 0
        while used < len(self.starts):
            left = np.flatnonzero(~self.board.good)
            if not len(left):
                return
            width = min(max(1, PARALLEL // len(left)), len(self.starts) - used)
            starts = self.starts[used : used + width]
            self._round(left, starts)
            used += width

    def _round(self, left: np.ndarray, starts: np.ndarray) -> None:
        width = len(starts)
        which = np.repeat(left, width)
        q = np.tile(starts, (len(left), 1))
        q[:, self._fixed] = self.start[which][:, self._fixed]
        found, good = self.run(which, q, self.options.hasty)
        table = good.reshape(-1, width)
        ranks = np.where(
            table.any(axis=1), table.argmax(axis=1), found.cost.reshape(-1, width).argmin(axis=1)
        )
        chosen = np.arange(len(left)) * width + ranks
        self.board.enter(left, Found(*(x[chosen] for x in found)), good[chosen])
        counted = np.where(table.any(axis=1), table.argmax(axis=1) + 1, width)
        tried = np.arange(width) < counted[:, None]
        self.board.turns[left] += (found.turns.reshape(-1, width) * tried).sum(axis=1).astype(int)
        self.board.starts[left] += counted

    @cached_property
    def _fixed(self) -> np.ndarray:
        """Coordinates that the search leaves alone: they stay as the caller's start has them."""
        tree = self.m.tree
        free = set(self.programs.problem.coordinates.free)
        tied = {tie.this for tie in self.programs.problem.coordinates.ties}
        return np.array(
            [i for link in tree.links if link.v.start not in free for i in range(link.q.start, link.q.stop) if i not in tied],
            dtype=int,
        )  # fmt: skip

    def refine(self) -> None:
        """Patient searches from the best that was found for the targets that are left."""
        left = np.flatnonzero(~self.board.good)
        if len(left):
            found, good = self.run(left, self.board.q[left], self.options.patient)
            self.board.cost[left] = np.inf
            self.board.enter(left, found, good)
            self.board.turns[left] += found.turns.astype(int)


def solve_batch(
    m: Mechanism, programs: Programs, start: np.ndarray, targets: list[np.ndarray], options: Options
) -> Solution:
    """The solution for targets (N, ...) from starts (N, nq)."""
    rounds = Rounds(m, programs, start, targets, options)
    if options.restarts:
        rounds.first(options.hasty)
        rounds.restart()
    else:
        rounds.first(options.patient)
    rounds.refine()
    _follow_wish(rounds)
    board = rounds.board
    reasons = _reasons(rounds)
    residual = Residual(board.position, board.orientation)
    record = _trace(rounds) if len(start) == 1 else None
    return Solution(board.q, board.good, reasons, residual, board.turns, board.starts, record)


def solve_path(
    m: Mechanism, programs: Programs, start: np.ndarray, targets: list[np.ndarray], options: Options
) -> Solution:
    """The solution for targets that follow each other, each from the joints of the one before."""
    answers: list[Solution] = []
    q = start[:1]
    for k in range(len(start)):
        answers.append(solve_batch(m, programs, q, [x[k : k + 1] for x in targets], options))
        q = answers[-1].q
    stacked = [np.concatenate([getattr(a, name) for a in answers])
               for name in ("q", "converged", "reason", "iterations", "starts")]  # fmt: skip
    residual = Residual(
        *(np.concatenate(parts) for parts in zip(*(a.residual for a in answers), strict=True))
    )
    return Solution(stacked[0], stacked[1], stacked[2], residual, stacked[3], stacked[4])


def _follow_wish(rounds: Rounds) -> None:
    """Use what freedom the targets leave for the posture or wish; kept only where the targets still hold."""
    which = np.flatnonzero(rounds.board.good)
    if rounds.programs.wish is None or not len(which):
        return
    board, settings = rounds.board, rounds.options.patient
    at = [x[which] for x in rounds.targets]
    q, *_ = rounds.programs.settle(board.q[which], at, settings)
    polished = rounds.programs.search(q, at, settings)
    good = (polished.status == CONVERGED) & rounds.limits.hold(polished.q)
    at_good = which[good]
    board.q[at_good] = polished.q[good]
    board.position[at_good], board.orientation[at_good] = polished.position[good], polished.orientation[good]


def _reasons(rounds: Rounds) -> np.ndarray:
    """Why each target was not reached: by its distance, without limits, and by where the search came to rest."""
    board, options = rounds.board, rounds.options
    reasons = np.where(board.good, "converged", "iterations").astype(object)
    left = np.flatnonzero(~board.good)
    if not len(left):
        return reasons.astype(str)
    rested = board.status[left] == STALLED
    reasons[left[rested]] = "unreachable"
    if not options.restarts:
        reasons[left[rested & singular(rounds, left, board.q[left])]] = "singular"
    reasons[left[_without_limits(rounds, left)]] = "limit"
    reasons[left[out_of_reach(rounds, left)]] = "unreachable"
    return reasons.astype(str)


def _without_limits(rounds: Rounds, left: np.ndarray) -> np.ndarray:
    """Which of these targets can be reached if limits do not count."""
    problem = rounds.programs.problem
    limited = (
        np.isfinite(rounds.limits.lower).any()
        or np.isfinite(rounds.limits.upper).any()
        or rounds.limits.balls
    )
    if not (problem.bounded and limited):
        return np.zeros(len(left), bool)
    options = replace(rounds.options, restarts=min(rounds.options.restarts, UNBOUNDED_STARTS))
    free = Rounds(
        rounds.m, rounds.programs.unbounded, rounds.board.q[left], [x[left] for x in rounds.targets], options
    )
    free.first(options.hasty if options.restarts else options.patient)
    free.restart()
    return free.board.good


def singular(rounds: Rounds, left: np.ndarray, q: np.ndarray) -> np.ndarray:
    """For which of these targets, at q, the Jacobian has a lower rank than it has elsewhere."""
    sampled = random_configurations(rounds.m, SAMPLES)
    elsewhere = rounds.programs.errors(sampled, [x[:1] for x in rounds.targets])[1]
    here = rounds.programs.errors(q, [x[left] for x in rounds.targets])[1]
    return _rank(here) < _rank(elsewhere).max()


def _rank(J: np.ndarray) -> np.ndarray:
    """The rank of each J (N, m, n); 0 where it is not finite."""
    finite = np.isfinite(J).all(axis=(1, 2))
    s = np.linalg.svd(np.where(finite[:, None, None], J, 0), compute_uv=False)
    return (s > RANK * s[:, :1]).sum(axis=1)


def out_of_reach(rounds: Rounds, left: np.ndarray) -> np.ndarray:
    """Which targets are surely too far: beyond the sum of the lengths of the links."""
    far = np.zeros(len(left), bool)
    position = 0
    for task in rounds.programs.problem.tasks:
        rows = [row for row in task.rows if row < 3]
        if len(rows) == 3 or (rows and task.axes == "world"):
            centre, reach = reach_of(rounds.m.tree, task.frame, rounds.limits)
            distance = np.linalg.norm((rounds.targets[position][left] - centre)[:, rows], axis=1)
            far |= distance > reach + rounds.options.tolerance[0]
        position += task.has_position + task.has_orientation
    return far


def reach_of(tree: Tree, frame: str, limits: Limits) -> tuple[np.ndarray, float]:
    """The first joint's place (3,) and a distance from it [m] that the frame's origin never exceeds; infinite for free slides."""
    place = tree.place(frame)
    path = [tree.links[i] for i in tree.path(place.link)]
    if not path:
        return np.asarray(place.p, dtype=float), 0.0
    reach = float(np.linalg.norm(np.asarray(place.p, dtype=float)))
    for link in path:
        if link.parent != WORLD:
            reach += float(np.linalg.norm(np.asarray(link.p, dtype=float)))
        if link.move.kind in ("slide", "screw"):
            i = link.q.start
            travel = max(
                abs(limits.lower[i] - float(link.reference)), abs(limits.upper[i] - float(link.reference))
            )
            reach += travel * (1.0 if link.move.kind == "slide" else abs(float(link.move.pitch)))
    return np.asarray(path[0].p, dtype=float), reach


def _trace(rounds: Rounds) -> Trace:
    """The turns of a single target from its own start, by the float reading."""
    problem, options = rounds.programs.problem, rounds.options
    settings = options.hasty if options.restarts else options.patient
    targets = rounds.programs.named([x[0] for x in rounds.targets])
    s = first_of(problem, rounds.start[0])
    record: list[tuple[Any, Any, Any]] = []
    while s.status < 0.5 and s.turns <= settings.turns:
        errors = errors_of(problem, link_poses(rounds.m.tree, s.q), s.q, targets)
        record.append((s.q, errors.position, errors.orientation))
        s = turn(problem, s, targets, settings)
    columns = [np.array(column, dtype=float) for column in zip(*record, strict=True)]
    return Trace(*columns, rounds.m.coordinate_names)
