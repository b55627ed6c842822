"""Inverse kinematics at the front door: targets in, a Solution out that says converged, or why not."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from zwang.api import validation
from zwang.errors import DescriptionError, ShapeError
from zwang.mechanism.declared import checked_arguments
from zwang.mechanism.mechanism import Mechanism
from zwang.robot import classical_methods
from zwang.robot.batch_solver import solve_batch, solve_path
from zwang.robot.cache_key import IdentityKey
from zwang.robot.characteristic_length import characteristic_length
from zwang.robot.ik_functions import IKFunctions
from zwang.robot.ik_solution import IKSolution
from zwang.robot.independent_coordinates import coordinates_for
from zwang.robot.joint_limits import Limits
from zwang.robot.levenberg_marquardt import Problem
from zwang.robot.loop_constraints import loop_constraints_for
from zwang.robot.restarts import SearchOptions
from zwang.robot.targets import Target, read_target
from zwang.robot.tasks import PARTS, Task

METHODS = {
    "lm": "lm",
    "newton": "newton",
    "jacobian_inverse": "newton",
    "transpose": "transpose",
    "jacobian_transpose": "transpose",
}
RESTARTS = 200
MOST_TURNS = 1_000_000
ITERATIONS = {"lm": 16, "newton": 100, "transpose": 1000}


@checked_arguments("iterations", "restarts")
def solve_ik(
    mechanism: Mechanism,
    frame: str | Sequence[str],
    targets: Any,
    *,
    method: str = "lm",
    q0: Any = None,
    part: str | None = None,
    components: Sequence[str] | None = None,
    axes: str = "world",
    weights: Sequence[float] | None = None,
    length: float | None = None,
    joints: Iterable[str] | None = None,
    limits: bool = True,
    tolerance: float | tuple[float, float] = 1e-6,
    alpha: Any = 1.0,
    iterations: int | None = None,
    restarts: int | None = None,
    posture: Any = None,
    wish: Callable[[Any], Any] | None = None,
    path: bool = False,
    seed: int = 0,
    threads: int | None = None,
    compiled: bool = True,
) -> IKSolution:
    """The joints (..., nq) that bring a frame to its target, or several frames to theirs; one target or a batch.

    frame: a name, or several; then targets has an entry for each. targets: a pose (R, p), with R (..., 3, 3) or quaternions
    (..., 4) and p (..., 3) [m]; matrices (..., 4, 4); positions (..., 3), or (..., 2) in the plane z = any; with
    part="orientation", R alone. part, components: what counts of it, "pose", "position", "orientation", or some of
    "x y z rx ry rz"; axes: in which these are told apart, "world" or "body". weights: of the frames against each other.
    q0 (nq,) or (..., nq): the start; by default the middle of the limits. joints: names of those that may move; the others stay at q0.

    method: "lm", Levenberg-Marquardt with limits and `restarts` from other starts (200; the starts are drawn once from `seed`,
    the same for every target); "newton" (or "jacobian_inverse") and "transpose", as seed 004 has them, with the step `alpha`: a number, a diagonal
    (nq or as many as may move), or a function of the iteration 1, 2, .... iterations: turns from each start (16; 100 and 1000 for seed 004's);
    "lm" takes up to 200 without restarts, and at last from the best that was found.
    length [m]: what weighs as much as one radian; by default the typical lever of the joints. tolerance: [m] and [rad].
    posture (nq,): pulled towards, and wish(q) (nv,): followed, in what freedom the targets leave; it is traced, so
    it uses the functions of zw.scalar; see `away_from_singularities`.
    path: the targets follow each other, each solved from the last one's joints, without restarts. threads: by default one a core.
    compiled=False runs the same text on plain floats: slow, and what the compiled one is compared with.

    Loops and couples of the mechanism stay closed, as part of the residual. The answer is never silent: see `Solution`. Raises
    UnknownNameError for names, ShapeError and StateError for targets and starts, ParameterError for symbols without values.
    Source: seed 004, Numerical Solution to Inverse Kinematics; `inverse_kinematics` for "lm".
    """
    m = validation.numeric_mechanism(mechanism)
    if method not in METHODS:
        raise DescriptionError(f"method is {method!r}; it must be one of {', '.join(map(repr, METHODS))}")
    method = METHODS[method]
    frames, given = _frames_and_targets(frame, targets, part)
    tasks = _tasks(frames, given, part, components, axes, weights)
    named = (joints,) if isinstance(joints, str) else tuple(joints) if joints is not None else None
    programs = _programs(IdentityKey(m), tasks, named, length, limits, _wish(m, posture, wish), threads, compiled)
    batch, count = _batch(given)
    start = _start(m, programs.problem, q0, batch, count)
    options = SearchOptions(
        method=method,
        tolerance=_pair(tolerance),
        turns=_count("iterations", ITERATIONS[method] if iterations is None else iterations),
        restarts=_count("restarts", (0 if path else RESTARTS) if restarts is None else restarts),
        seed=seed,
        alpha=alpha,
    )
    flat = [x for target, task in zip(given, tasks, strict=True) for x in _arrays(target, task, count)]
    answer = _solver(method, path)(m, programs, start, flat, options)
    return _shaped(answer, batch)


def _solver(method: str, path: bool) -> Callable[..., IKSolution]:
    if method == "lm":
        return solve_path if path else solve_batch
    if path:
        raise DescriptionError(f"a path is solved by method 'lm' only, not by {method!r}")
    return classical_methods.solve_classical


@lru_cache(maxsize=64)
def _programs(
    same: IdentityKey,
    tasks: tuple[Task, ...],
    joints: tuple[str, ...] | None,
    length: float | None,
    bounded: bool,
    wish: Any,
    threads: int | None,
    compiled: bool,
) -> IKFunctions:
    """The problem and its functions; kept, so that they are compiled once."""
    mechanism = same.mechanism
    loops, bodies = loop_constraints_for(mechanism, tuple(task.frame for task in tasks))
    coordinates = coordinates_for(mechanism, bodies, joints)
    if not coordinates.free:
        names = ", ".join(repr(task.frame) for task in tasks)
        raise DescriptionError(
            f"no joint that may move carries the frame {names}; name other frames or joints"
        )
    unit = length if length is not None else characteristic_length(mechanism, tuple(task.frame for task in tasks))
    if not unit > 0:
        raise DescriptionError(f"length is {unit}; it must be a positive number of metres")
    problem = Problem(tasks, coordinates, float(unit), loops, bounded)
    return IKFunctions(problem, wish.bound(coordinates) if wish is not None else None, threads, compiled)


def _frames_and_targets(frame: Any, targets: Any, part: str | None) -> tuple[tuple[str, ...], list[Target]]:
    if part is not None and part not in PARTS:
        raise DescriptionError(f"part is {part!r}; it must be one of {', '.join(map(repr, PARTS))}")
    if isinstance(frame, str):
        return (frame,), [read_target(targets, part)]
    frames = tuple(frame)
    if not isinstance(targets, (list, tuple)) or len(targets) != len(frames):
        raise ShapeError(
            f"for {len(frames)} frames, targets must be a list of {len(frames)} entries, one for each"
        )
    return frames, [read_target(target, part) for target in targets]


def _tasks(
    frames: tuple[str, ...], given: list[Target], part: Any, components: Any, axes: str, weights: Any
) -> tuple[Task, ...]:
    counts = [1.0] * len(frames) if weights is None else [float(w) for w in weights]
    if len(counts) != len(frames):
        raise ShapeError(f"weights has {len(counts)} entries for {len(frames)} frames")
    tasks = []
    for frame, target, weight in zip(frames, given, counts, strict=True):
        chosen = tuple(components) if components is not None else PARTS[part or target.part]
        if target.planar:
            chosen = tuple(c for c in chosen if c != "z")
        task = Task(frame, chosen, axes, weight)
        for needed, there, name in (
            (task.has_position, target.p is not None, "position"),
            (task.has_orientation, target.R is not None, "orientation"),
        ):
            if needed and not there:
                raise ShapeError(f"the components {chosen} of frame {frame!r} need a target with a(n) {name}")
        tasks.append(task)
    return tuple(tasks)


def _arrays(target: Target, task: Task, count: int) -> list[np.ndarray]:
    """The target's arrays as the programs want them, repeated if there is one for the whole batch."""
    found = [x for x, wanted in ((target.p, task.has_position), (target.R, task.has_orientation)) if wanted]
    return [np.ascontiguousarray(np.broadcast_to(x, (count, *x.shape[1:]))) for x in found if x is not None]


def _batch(given: list[Target]) -> tuple[tuple[int, ...], int]:
    batches = {target.batch for target in given if target.batch}
    if len(batches) > 1:
        raise ShapeError(f"the frames' targets are batches of different shapes: {sorted(batches)}")
    batch = next(iter(batches), ())
    return batch, int(np.prod(batch, dtype=int))


def _start(m: Mechanism, problem: Problem, q0: Any, batch: tuple[int, ...], count: int) -> np.ndarray:
    """q0 for every target (N, nq)."""
    if q0 is None:
        return np.tile(Limits.of(problem.coordinates, m).middle, (count, 1))
    if np.ndim(q0) <= 1:
        return np.tile(validation.configuration(m, q0), (count, 1))
    q = validation.array(q0, "q0")
    if q.shape != (*batch, m.nq):
        raise ShapeError(f"q0 must have the shape ({m.nq},) or {(*batch, m.nq)}; its shape is {q.shape}")
    return np.array([validation.configuration(m, row) for row in q.reshape(-1, m.nq)])


def _pair(tolerance: Any) -> tuple[float, float]:
    position, orientation = tolerance if isinstance(tolerance, (tuple, list)) else (tolerance, tolerance)
    if not (position > 0 and orientation > 0):
        raise DescriptionError(f"tolerance is {tolerance!r}; give positive numbers [m] and [rad]")
    return float(position), float(orientation)


def _count(name: str, value: Any) -> int:
    if not isinstance(value, int | np.integer) or not 0 <= value <= MOST_TURNS:
        raise DescriptionError(
            f"{name} is {value!r}; it must be 0 or a positive integer, at most {MOST_TURNS:,}"
        )
    return int(value)


@dataclass(frozen=True)
class _Wish:
    """A direction (speeds,) to follow in the null space: towards a posture, or a function of q."""

    speeds: int
    posture: tuple[float, ...] | None
    function: Callable[[Any], Any] | None

    def bound(self, coordinates: Any) -> Callable[[Any], Any]:
        if self.function is not None:
            function = self.function

            def follow(q: Any) -> np.ndarray:
                wanted = np.asarray(function(q))
                if wanted.shape != (self.speeds,):
                    raise ShapeError(
                        f"wish(q) must have the shape ({self.speeds},) (nv); its shape is {wanted.shape}"
                    )
                return wanted[list(coordinates.free)]

            return follow
        rest = self.posture or ()

        def pull(q: Any) -> np.ndarray:
            at = coordinates.coordinate_of_speed
            return np.array([rest[at[k]] - q[at[k]] if k in at else 0 for k in coordinates.free])

        return pull


def _wish(m: Mechanism, posture: Any, wish: Any) -> _Wish | None:
    if posture is not None and wish is not None:
        raise DescriptionError("give either a posture or a wish, not both")
    if posture is not None:
        return _Wish(m.nv, tuple(validation.configuration(m, posture).tolist()), None)
    return _Wish(m.nv, None, wish) if wish is not None else None


def _shaped(answer: IKSolution, batch: tuple[int, ...]) -> IKSolution:
    """The flat answer in the batch's shape; plain numbers for a single target."""

    def shaped(x: Any) -> Any:
        x = np.asarray(x)
        return x.reshape(*batch, *x.shape[1:]) if batch else x[0]

    residual = type(answer.residual)(*(_plain(shaped(x), float) for x in answer.residual))
    return replace(
        answer,
        q=shaped(answer.q),
        converged=_plain(shaped(answer.converged), bool),
        reason=_plain(shaped(answer.reason), str),
        residual=residual,
        iterations=_plain(shaped(answer.iterations), int),
        starts=_plain(shaped(answer.starts), int),
        record=None if batch else answer.record,
    )


def _plain(x: Any, kind: type) -> Any:
    return kind(x) if np.ndim(x) == 0 else x
