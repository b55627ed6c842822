"""The generic-scalar functions of one inverse-kinematics problem, evaluated over batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from zwang.kinematics.poses import link_poses
from zwang.robot.batch_functions import BatchFunction, Shapes, compiled_over_batch, floats_over_batch
from zwang.robot.inverse_kinematics.levenberg_marquardt import (
    NullSpaceObjective,
    Problem,
    Settings,
    error_jacobian,
    errors_of,
    follow_null_space,
    levenberg_marquardt,
)
from zwang.robot.inverse_kinematics.tasks import IKTask

COST, POSITION, ORIENTATION, ITERATIONS, STATUS = range(5)


class SearchResult(NamedTuple):
    """Results of a batch of searches.

    q (N, nq); metrics (N, 5): cost, position residual [m], orientation residual [rad], iterations, status.
    """

    q: np.ndarray
    metrics: np.ndarray


@dataclass(frozen=True)
class IKFunctions:
    """The functions of one problem, each compiled at its first call.

    objective: the null-space objective z(q) (free,), if any. threads: by default one for each core.
    compiled: False evaluates the same functions on floats.
    """

    problem: Problem
    objective: NullSpaceObjective | None = None
    threads: int | None = None
    compiled: bool = True
    _inputs: Shapes = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_inputs", _target_inputs(self.problem.tasks))

    def search(self, start: np.ndarray, targets: list[np.ndarray], settings: Settings) -> SearchResult:
        """Searches from start (N, nq) for targets, one array (N, ...) for each input of the tasks."""
        return SearchResult(*self._search(start, *targets, np.array(settings, dtype=float)))

    def errors(
        self, q: np.ndarray, targets: list[np.ndarray]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Errors e (N, m), J (N, m, free), and the residuals [m] and [rad], each (N,), at q (N, nq)."""
        e, J, position, orientation = self._errors(q, *targets)
        return e, J, position, orientation

    def follow_objective(
        self, start: np.ndarray, targets: list[np.ndarray], settings: Settings
    ) -> tuple[np.ndarray, ...]:
        """q, the size of the last step, and the residuals, after following the null-space objective."""
        return self._follow(start, *targets, np.array(settings, dtype=float))

    @cached_property
    def unbounded(self) -> IKFunctions:
        """The functions of the same problem without joint limits."""
        return IKFunctions(replace(self.problem, bounded=False), None, self.threads, self.compiled)

    @property
    def _nq(self) -> int:
        return self.problem.coordinates.tree.nq

    @cached_property
    def _search(self) -> BatchFunction:
        def function(q: Any, *rest: Any) -> Any:
            s = levenberg_marquardt(self.problem, q, self.by_task(rest[:-1]), Settings(*rest[-1]))
            return s.best, np.array([s.cost, s.position, s.orientation, s.iterations, s.status])

        return self._over_batch(
            function, {"q": (self._nq,), **self._inputs, "settings": (len(Settings._fields),)}
        )

    @cached_property
    def _follow(self) -> BatchFunction:
        def function(q: Any, *rest: Any) -> Any:
            assert self.objective is not None
            targets, settings = self.by_task(rest[:-1]), Settings(*rest[-1])
            return follow_null_space(self.problem, q, targets, settings, self.objective)

        return self._over_batch(
            function, {"q": (self._nq,), **self._inputs, "settings": (len(Settings._fields),)}
        )

    @cached_property
    def _errors(self) -> BatchFunction:
        def function(q: Any, *rest: Any) -> Any:
            poses = link_poses(self.problem.coordinates.tree, q)
            found = errors_of(self.problem, poses, q, self.by_task(rest))
            return found.e, error_jacobian(self.problem, poses, q), found.position, found.orientation

        return self._over_batch(function, {"q": (self._nq,), **self._inputs})

    def by_task(self, flat: Iterable[Any]) -> list[dict[str, Any]]:
        """The flat inputs as one dictionary for each task, with the keys "p" and "R"."""
        targets: list[dict[str, Any]] = [{} for _ in self.problem.tasks]
        for name, value in zip(self._inputs, flat, strict=True):
            targets[int(name[1:])][name[0]] = value
        return targets

    def _over_batch(self, function: Callable[..., Any], inputs: Shapes) -> BatchFunction:
        if self.compiled:
            return compiled_over_batch(function, inputs, self.threads)
        return floats_over_batch(function, inputs)


def _target_inputs(tasks: tuple[IKTask, ...]) -> Shapes:
    """The inputs "p0", "R0", ... that the tasks need, with their shapes."""
    inputs: Shapes = {}
    for k, task in enumerate(tasks):
        if task.has_position:
            inputs[f"p{k}"] = (3,)
        if task.has_orientation:
            inputs[f"R{k}"] = (3, 3)
    return inputs
