"""The generic-scalar algorithms of inverse kinematics as functions over arrays of worlds."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from zwang.api.compiled import compile_function
from zwang.kinematics.poses import link_poses
from zwang.robot.levenberg_marquardt import Problem, Settings, errors_of, follow_null_space, rows_of, search
from zwang.robot.tasks import Task

COST, POSITION, ORIENTATION, TURNS, STATUS = range(5)


class SearchResult(NamedTuple):
    """What a search gives for every world: q (N, nq), and numbers (N, 5): cost, residuals [m] and [rad], turns, status."""

    q: np.ndarray
    numbers: np.ndarray


@dataclass(frozen=True)
class IKFunctions:
    """The functions of one problem, each compiled when first called. wish: a direction to follow in the null space, if any."""

    problem: Problem
    wish: Callable[[Any], Any] | None = None
    threads: int | None = None
    compiled: bool = True
    _inputs: dict[str, tuple[int, ...]] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_inputs", _target_inputs(self.problem.tasks))

    def search(self, start: np.ndarray, targets: list[np.ndarray], settings: Settings) -> SearchResult:
        """Searches from start (N, nq); targets as `flat_targets` gives them."""
        return SearchResult(*self._search(start, *targets, np.array(settings, dtype=float)))

    def errors(
        self, q: np.ndarray, targets: list[np.ndarray]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """e (N, m), J (N, m, free), and the residuals [m] and [rad] (N,), at q (N, nq)."""
        return tuple(self._errors(q, *targets))

    def settle(
        self, start: np.ndarray, targets: list[np.ndarray], settings: Settings
    ) -> tuple[np.ndarray, ...]:
        """q, the last step's size and the residuals, after following the wish in the null space."""
        return tuple(self._settle(start, *targets, np.array(settings, dtype=float)))

    @cached_property
    def unbounded(self) -> IKFunctions:
        """The same without limits."""
        return IKFunctions(replace(self.problem, bounded=False), None, self.threads, self.compiled)

    @property
    def _nq(self) -> int:
        return self.problem.coordinates.tree.nq

    @cached_property
    def _search(self) -> Callable[..., Any]:
        def program(q: Any, *rest: Any) -> Any:
            s = search(self.problem, q, self.named(rest[:-1]), Settings(*rest[-1]))
            return s.best, np.array([s.cost, s.position, s.orientation, s.turns, s.status])

        return self._made(program, {"q": (self._nq,), **self._inputs, "settings": (len(Settings._fields),)})

    @cached_property
    def _settle(self) -> Callable[..., Any]:
        def program(q: Any, *rest: Any) -> Any:
            assert self.wish is not None
            return follow_null_space(self.problem, q, self.named(rest[:-1]), Settings(*rest[-1]), self.wish)

        return self._made(program, {"q": (self._nq,), **self._inputs, "settings": (len(Settings._fields),)})

    @cached_property
    def _errors(self) -> Callable[..., Any]:
        def program(q: Any, *rest: Any) -> Any:
            poses = link_poses(self.problem.coordinates.tree, q)
            found = errors_of(self.problem, poses, q, self.named(rest))
            return found.e, rows_of(self.problem, poses, q), found.position, found.orientation

        return self._made(program, {"q": (self._nq,), **self._inputs})

    def named(self, flat: Any) -> list[dict[str, Any]]:
        """The flat inputs as one dictionary a task."""
        targets: list[dict[str, Any]] = [{} for _ in self.problem.tasks]
        for name, value in zip(self._inputs, flat, strict=True):
            targets[int(name[1:])][name[0]] = value
        return targets

    def _made(self, program: Callable[..., Any], inputs: dict[str, tuple[int, ...]]) -> Callable[..., Any]:
        return shaped(program, inputs, self.threads) if self.compiled else looped(program, inputs)


def _target_inputs(tasks: tuple[Task, ...]) -> dict[str, tuple[int, ...]]:
    """An input "p0", "R0", ... for what each task needs."""
    inputs: dict[str, tuple[int, ...]] = {}
    for k, task in enumerate(tasks):
        if task.has_position:
            inputs[f"p{k}"] = (3,)
        if task.has_orientation:
            inputs[f"R{k}"] = (3, 3)
    return inputs


def shaped(
    program: Callable[..., Any], inputs: dict[str, tuple[int, ...]], threads: int | None = None
) -> Callable[..., Any]:
    """A compiled program whose arrays have the shapes of its inputs and outputs, after the shape of the batch."""
    function = compile_function(program, inputs, threads=threads)
    shapes = list(inputs.values())
    outputs = [port.shape for port in function.program.outputs]

    def run(*arrays: Any) -> tuple[np.ndarray, ...]:
        given = [
            _flat(np.asarray(a, dtype=float), len(shape)) for a, shape in zip(arrays, shapes, strict=True)
        ]
        made = function(*given)
        results = made if isinstance(made, tuple) else (made,)
        return tuple(r.reshape(*r.shape[:-1], *shape) for r, shape in zip(results, outputs, strict=True))

    return run


def _flat(array: np.ndarray, axes: int) -> np.ndarray:
    """The last axes of an array as one."""
    kept = array.ndim - axes
    return array.reshape(*array.shape[:kept], math.prod(array.shape[kept:]))


def looped(program: Callable[..., Any], inputs: dict[str, tuple[int, ...]]) -> Callable[..., Any]:
    """The float reading of a program, one world after the other: slow, and what the compiled one is compared with."""

    def run(*arrays: Any) -> tuple[np.ndarray, ...]:
        arrays = tuple(np.asarray(a, dtype=float) for a in arrays)
        shapes = list(inputs.values())
        batches = [a.shape[: a.ndim - len(shape)] for a, shape in zip(arrays, shapes, strict=True)]
        batch = np.broadcast_shapes(*batches)
        spread = [np.broadcast_to(a, (*batch, *shape)) for a, shape in zip(arrays, shapes, strict=True)]
        results = [program(*(a[index] for a in spread)) for index in np.ndindex(*batch)]
        columns = zip(*results, strict=True)
        stacked = [np.array([np.asarray(x, dtype=float) for x in column]) for column in columns]
        return tuple(x.reshape(*batch, *x.shape[1:]) for x in stacked)

    return run
