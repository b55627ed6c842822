"""The step and the search of one whole-body problem, evaluated over batches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from zwang.algebra.norms import max_abs
from zwang.kinematics.configuration import integrate_configuration
from zwang.kinematics.kinematics import Kinematics
from zwang.robot.batch_functions import BatchFunction, Shapes, compiled_over_batch, floats_over_batch
from zwang.robot.whole_body.ik_step import displacement
from zwang.robot.whole_body.problem import WholeBodyProblem
from zwang.robot.whole_body.search import (
    WholeBodySettings,
    at_a_limit,
    completed_targets,
    search,
    task_errors,
)
from zwang.robot.whole_body.task_targets import target_shapes
from zwang.scalar import logical_or, where

LIMIT_TOLERANCE = 1e-9  # [rad, m] of a joint that is at a limit


class StepArrays(NamedTuple):
    """A step: v (..., nv), q after it (..., nq), errors before it (..., tasks), 1 where it failed, and the
    violation of loops after it.
    """

    v: np.ndarray
    q: np.ndarray
    position: np.ndarray
    orientation: np.ndarray
    failed: np.ndarray
    violation: np.ndarray


class SearchArrays(NamedTuple):
    """A search: q (..., nq), errors (..., tasks), and metrics (..., 7): the violation of loops, by how much
    shapes are too near, the merit, whether the search has ended, iterations, whether a step failed, and
    whether a joint is at a limit.
    """

    q: np.ndarray
    position: np.ndarray
    orientation: np.ndarray
    metrics: np.ndarray


@dataclass(frozen=True, eq=False)
class WholeBodyFunctions:
    """The functions of a problem, each compiled at its first call.

    kinds: see `TargetArrays`. threads: by default one for each core. compiled: False evaluates the same
    functions on floats.
    """

    problem: WholeBodyProblem
    kinds: tuple[tuple[str, ...], ...]
    threads: int | None
    compiled: bool

    def step(self, q: np.ndarray, h: float, targets: Sequence[np.ndarray]) -> StepArrays:
        """One step h [s] from q (..., nq)."""
        return StepArrays(*self._step(q, np.array([h]), *targets))

    def search(
        self,
        start: np.ndarray,
        reference: np.ndarray,
        settings: WholeBodySettings,
        targets: Sequence[np.ndarray],
    ) -> SearchArrays:
        """The search from `start` (..., nq); targets not given are what `reference` (..., nq) has."""
        return SearchArrays(*self._search(start, reference, np.array(settings, dtype=float), *targets))

    @cached_property
    def _step(self) -> BatchFunction:
        problem = self.problem

        def function(q: Any, h: Any, *flat: Any) -> StepArrays:
            targets = completed_targets(problem, q, self._by_task(flat))
            kinematics = Kinematics(problem.mechanism.tree, q).with_computed_poses()
            found = displacement(problem, kinematics, targets, h[0])
            failed = logical_or(found.failed, not_finite(found.x))
            x = np.array([where(failed, np.nan, value) for value in found.x])
            errors = task_errors(problem, q, targets)
            after = integrate_configuration(problem.mechanism.tree, q, x)
            violation = task_errors(problem, after, targets).loops
            return StepArrays(
                x / h[0], after, errors.position, errors.orientation,
                np.array([where(failed, 1.0, 0.0)]), np.array([violation]),
            )  # fmt: skip

        return self._over_batch(function, {"q": (self._nq,), "h": (1,)})

    @cached_property
    def _search(self) -> BatchFunction:
        problem = self.problem

        def function(start: Any, reference: Any, settings: Any, *flat: Any) -> SearchArrays:
            targets = completed_targets(problem, reference, self._by_task(flat))
            s = search(problem, start, targets, WholeBodySettings(*settings))
            errors = task_errors(problem, s.q, targets)
            merit = errors.merit(len(problem.priorities))
            limited = at_a_limit(problem, s.q, LIMIT_TOLERANCE)
            metrics = (
                errors.loops, errors.collision, merit, where(s.ended, 1.0, 0.0), s.iterations,
                where(s.failed, 1.0, 0.0), where(limited, 1.0, 0.0),
            )  # fmt: skip
            return SearchArrays(s.q, errors.position, errors.orientation, np.array(metrics))

        shapes = {
            "start": (self._nq,),
            "reference": (self._nq,),
            "settings": (len(WholeBodySettings._fields),),
        }
        return self._over_batch(function, shapes)

    @property
    def _nq(self) -> int:
        return self.problem.mechanism.nq

    def _by_task(self, flat: Sequence[Any]) -> list[dict[str, Any]]:
        """The flat inputs as one dictionary for each task."""
        values = iter(flat)
        return [{name: next(values) for name in names} for names in self.kinds]

    def _over_batch(self, function: Any, inputs: Shapes) -> BatchFunction:
        shapes = {**inputs, **target_shapes(self.problem.mechanism, self.kinds)}
        if self.compiled:
            return compiled_over_batch(function, shapes, self.threads)
        return floats_over_batch(function, shapes)


def not_finite(values: Any) -> Any:
    """Whether one of the values is infinite or no number."""
    return max_abs([x - x for x in values]) != 0
