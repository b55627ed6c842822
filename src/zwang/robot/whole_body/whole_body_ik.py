"""Whole-body inverse kinematics: configurations that bring frames and the centre of mass to their targets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from zwang.api.arguments import validation
from zwang.errors import DescriptionError
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.type_validation import short_repr, validated_arguments
from zwang.robot.inverse_kinematics.ik_solution import Residual
from zwang.robot.sampling import random_configurations
from zwang.robot.task_space import configurations
from zwang.robot.whole_body.differential_ik import DEFAULT_DAMPING, functions_of, problem_of
from zwang.robot.whole_body.problem import tolerance_length
from zwang.robot.whole_body.search import DISTANCE_TOLERANCE, LOOP_TOLERANCE, WholeBodySettings
from zwang.robot.whole_body.task_targets import TargetArrays, read_targets
from zwang.robot.whole_body.weighted_tasks import CollisionAvoidance, WeightedTask
from zwang.robot.whole_body.whole_body_functions import SearchArrays, WholeBodyFunctions

MOST = 1_000_000  # iterations, restarts
STEP_TOLERANCE = 1e-8  # [rad, or of the size of a translation] a search ends at such a step
RESULTS = ("loops", "collision", "merit", "ended", "iterations", "failed", "limited")

REASONS = {
    "converged": "every frame and the centre of mass is at its target within the tolerance",
    "stationary": (
        "no step brings the tasks nearer to their targets: they are out of reach, or compete; give other "
        "targets, another q0, restarts, or a posture a lower priority"
    ),
    "limit": (
        "no step within the joint limits brings the tasks nearer to their targets; give other targets, "
        "another q0 or restarts, or pass limits=False"
    ),
    "collision": "no step brings the tasks nearer to their targets and keeps the distances of avoid",
    "loops": "the loops or couplings of the mechanism cannot be closed from this start; give another q0",
    "iterations": "the search reached its iteration limit; allow more iterations",
    "failed": (
        "the solver of a step failed; the configuration is that before it; give another q0, or a larger "
        "damping"
    ),
}


@dataclass(frozen=True)
class WholeBodySolution:
    """The result of `whole_body_ik` for one target, or for a batch of targets of shape (...).

    q (..., nq): the configuration; where not converged, the best that was found. converged (...): whether all
    tasks but postures are within the tolerance, and limits, loops and distances are kept. reason (...):
    "converged", "stationary", "limit", "collision", "loops", "iterations" or "failed". residual: position
    (..., tasks) [m] and orientation (..., tasks) [rad] of each task, 0 for postures. iterations (...): of the
    search that q is from. starts (...): the number of starts that were tried.
    """

    q: np.ndarray
    converged: np.ndarray | bool
    reason: np.ndarray | str
    residual: Residual
    iterations: np.ndarray | int
    starts: np.ndarray | int

    def explain(self, index: Any = ()) -> str:
        """A sentence on the outcome of one target, with the remedy; index: in the batch."""
        reason = str(np.asarray(self.reason)[index])
        position, orientation = (float(np.max(np.asarray(part)[index])) for part in self.residual)
        return f"{reason}: {REASONS[reason]} (largest residual {position:.3g} m, {orientation:.3g} rad)"

    def __str__(self) -> str:
        if np.ndim(self.converged) == 0:
            return self.explain()
        counts = {name: int(np.sum(self.reason == name)) for name in REASONS}
        shown = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
        return f"{np.size(self.converged)} targets: {shown}"


@validated_arguments("tasks", "targets", "avoid", "tolerance")
def whole_body_ik(
    mechanism: Mechanism,
    tasks: WeightedTask | Sequence[WeightedTask],
    targets: Sequence[Any],
    q0: ArrayLike | Mapping[str, ArrayLike] | str | None = None,
    *,
    damping: float | None = None,
    limits: bool = True,
    avoid: CollisionAvoidance | Sequence[CollisionAvoidance] = (),
    tolerance: float | tuple[float, float] = 1e-6,
    iterations: int = 100,
    restarts: int = 0,
    seed: int = 0,
    threads: int | None = None,
    compiled: bool = True,
) -> WholeBodySolution:
    """Configurations (..., nq) that bring tasks to their targets, by steps of `differential_ik` until the
    step is zero.

    tasks, targets, damping, limits, avoid, threads, compiled: as for `differential_ik`; gains shorten the
    steps. A target of None keeps what q0 has. The default damping is 1e-6, times the square of the largest
    length [m] of mechanisms that are smaller than 1 m.
    q0: the start (nq,) or (..., nq), or by name as for `solve_ik`; by default the home configuration.
    tolerance: of the residuals, one number or (position [m], orientation [rad]), default 1e-6. iterations:
    the limit for each start and all priorities, default 100. restarts: further starts of the targets that
    have not converged, default 0: random joint coordinates within their limits, drawn from `seed`, with the
    free joints and the targets of q0. Among the results the one with the smallest weighted error counts.

    Where the search for tasks of lower priority ends beyond the tolerance of higher ones, the last
    configuration within it is returned.

    Returns a `WholeBodySolution`, which states for each target whether it converged, and otherwise the
    reason. Raises as `differential_ik`.
    Source: Sugihara, IEEE Trans. Robotics 27 (2011) 984, for the damping by the error.
    """
    m = validation.numeric_mechanism(mechanism)
    if damping is None:
        damping = DEFAULT_DAMPING * tolerance_length(m) ** 2
    problem = problem_of(m, tasks, damping, limits, False, avoid)
    for name, value in (("iterations", iterations), ("restarts", restarts), ("seed", seed)):
        if value < 0 or (value > MOST and name != "seed"):
            raise DescriptionError(f"{name} is {short_repr(value)}; it must be from 0 to {MOST:,}")
    both = validation.real_values(tolerance, "tolerance")
    if both.shape not in ((), (2,)) or not (both > 0).all():
        raise DescriptionError(f"tolerance is {short_repr(tolerance)}; give positive numbers [m] and [rad]")
    position, orientation = np.broadcast_to(both, 2).tolist()
    settings = WholeBodySettings(position, orientation, STEP_TOLERANCE, iterations)
    start = configurations(m, (m.home or m.neutral) if q0 is None else q0)
    found = read_targets(m, problem.tasks, targets, start)
    flat = _flattened(start, found)
    search = _WholeBodySearch(functions_of(problem, found.kinds, threads, compiled), settings, *flat)
    search.run(search.reference)
    table = random_configurations(m, restarts, seed) if restarts else np.zeros((0, m.nq))
    for row in table:
        search.restart(row)
    return _solution(search, found.batch)


def _flattened(start: np.ndarray, found: TargetArrays) -> tuple[np.ndarray, list[np.ndarray]]:
    """The starts and the targets of all in the batch, one after the other."""
    count = int(np.prod(found.batch, dtype=int))
    names = [name for names in found.kinds for name in names]
    wide = []
    for array, axes in zip(
        [start, *found.arrays], [1, *(2 if name == "R" else 1 for name in names)], strict=True
    ):
        own = array.shape[array.ndim - axes :]
        wide.append(np.broadcast_to(array, (*found.batch, *own)).reshape(count, *own))
    return wide[0], wide[1:]


class _WholeBodySearch:
    """The best result so far for every target of a batch, and the searches that improve it."""

    def __init__(
        self,
        functions: WholeBodyFunctions,
        settings: WholeBodySettings,
        reference: np.ndarray,
        targets: list[np.ndarray],
    ) -> None:
        self.functions, self.settings = functions, settings
        self.reference, self.targets = reference, targets
        self.best: SearchArrays | None = None
        self.starts = np.zeros(len(reference), int)

    @property
    def metrics(self) -> dict[str, np.ndarray]:
        """The metrics (N,) of the best results by name."""
        assert self.best is not None
        return dict(zip(RESULTS, self.best.metrics.T, strict=True))

    @property
    def reasons(self) -> np.ndarray:
        """The reason (N,) for each target's outcome."""
        assert self.best is not None
        return _reasons(self.best, self.settings)

    def run(self, start: np.ndarray) -> None:
        """Search every target from its own start."""
        self.best = self.functions.search(start, self.reference, self.settings, self.targets)
        self.starts += 1

    def restart(self, row: np.ndarray) -> None:
        """Search the targets that have not converged from these joint coordinates."""
        assert self.best is not None
        which = np.flatnonzero(self.reasons != "converged")
        if not len(which):
            return
        m, reference = self.functions.problem.mechanism, self.reference[which]
        start = np.tile(row, (len(which), 1))
        for index in m.joints:
            if index.kind == "free":
                start[:, index.q] = reference[:, index.q]
        found = self.functions.search(start, reference, self.settings, [x[which] for x in self.targets])
        new, old = _reasons(found, self.settings), self.reasons[which]
        converged = (new == "converged") & (old != "converged")
        kept = (new != "failed") & (found.metrics[:, 0] <= LOOP_TOLERANCE)
        nearer = kept & (found.metrics[:, 2] < self.best.metrics[which, 2])
        take = np.flatnonzero(converged | nearer)
        for mine, other in zip(self.best, found, strict=True):
            mine[which[take]] = other[take]
        self.starts[which] += 1


def _reasons(found: SearchArrays, settings: WholeBodySettings) -> np.ndarray:
    """The reason (N,) for each outcome."""
    metrics = dict(zip(RESULTS, found.metrics.T, strict=True))
    reached = (found.position.max(axis=1) <= settings.position) & (
        found.orientation.max(axis=1) <= settings.orientation
    )
    reasons = np.full(len(found.q), "stationary", dtype="<U10")
    reasons[metrics["limited"] > 0] = "limit"
    reasons[reached] = "converged"
    reasons[~(metrics["collision"] <= DISTANCE_TOLERANCE)] = "collision"
    reasons[~(metrics["loops"] <= LOOP_TOLERANCE)] = "loops"
    reasons[(metrics["ended"] < 1) & ~reached] = "iterations"
    # where only the step of a lower priority failed, the configuration is one that reaches all targets
    reasons[(metrics["failed"] > 0) & (reasons != "converged")] = "failed"
    return reasons


def _solution(search: _WholeBodySearch, batch: tuple[int, ...]) -> WholeBodySolution:
    """The result, in the shape of the batch."""
    best, reasons = search.best, search.reasons
    assert best is not None

    def shaped(x: np.ndarray) -> Any:
        return x.reshape(*batch, *x.shape[1:]) if batch else x[0]

    return WholeBodySolution(
        shaped(best.q),
        shaped(reasons == "converged"),
        shaped(reasons),
        Residual(shaped(best.position), shaped(best.orientation)),
        shaped(search.metrics["iterations"].astype(int)),
        shaped(search.starts),
    )
