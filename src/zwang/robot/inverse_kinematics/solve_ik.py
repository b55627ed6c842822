"""Inverse kinematics: `solve_ik` and the validation of its arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from zwang.api.arguments import validation
from zwang.api.compilation.cache_key import IdentityKey
from zwang.deprecation import renamed_arguments
from zwang.errors import DescriptionError, ShapeError
from zwang.kinematics.configuration import difference_configuration
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.type_validation import validated_arguments
from zwang.robot.characteristic_length import characteristic_length as default_characteristic_length
from zwang.robot.independent_coordinates import IndependentCoordinates, coordinates_for
from zwang.robot.inverse_kinematics import classical_methods
from zwang.robot.inverse_kinematics.batch_solver import solve_batch, solve_path
from zwang.robot.inverse_kinematics.ik_functions import IKFunctions
from zwang.robot.inverse_kinematics.ik_solution import IKSolution, Residual
from zwang.robot.inverse_kinematics.levenberg_marquardt import NullSpaceObjective, Problem
from zwang.robot.inverse_kinematics.restarts import SearchOptions, StepFactor
from zwang.robot.inverse_kinematics.targets import PoseTarget, TargetLike, read_target
from zwang.robot.inverse_kinematics.tasks import PARTS, IKTask
from zwang.robot.joint_limits import JointLimits
from zwang.robot.loop_constraints import loop_constraints_for
from zwang.scalar.real import real_number

METHODS = {
    "lm": "lm",
    "newton": "newton",
    "jacobian_inverse": "newton",
    "transpose": "transpose",
    "jacobian_transpose": "transpose",
}
RESTARTS = 200
LARGEST_COUNT = 1_000_000
DEFAULT_ITERATIONS = {"lm": 16, "newton": 100, "transpose": 1000}


@renamed_arguments(wish="null_space_objective", length="characteristic_length")
@validated_arguments("iterations", "restarts")
def solve_ik(
    mechanism: Mechanism,
    frame: str | Sequence[str],
    targets: TargetLike,
    *,
    method: str = "lm",
    q0: ArrayLike | Mapping[str, ArrayLike] | str | None = None,
    part: str | None = None,
    components: str | Sequence[str] | None = None,
    axes: str = "world",
    weights: Sequence[float] | None = None,
    characteristic_length: float | None = None,
    joints: Iterable[str] | None = None,
    limits: bool = True,
    tolerance: float | tuple[float, float] = 1e-6,
    alpha: StepFactor | ArrayLike | None = None,
    iterations: int | None = None,
    restarts: int | None = None,
    posture: ArrayLike | None = None,
    null_space_objective: NullSpaceObjective | None = None,
    path: bool = False,
    seed: int = 0,
    threads: int | None = None,
    compiled: bool = True,
) -> IKSolution:
    """Joint coordinates (..., nq) that bring frames to their targets, by Levenberg-Marquardt with restarts.

    frame: the name of a frame or body, or several names; then `targets` has one entry for each frame.
    targets: one target or a batch (...): a pose (R, p), with R (..., 3, 3) or unit quaternions (..., 4) and
    p (..., 3) [m]; matrices (..., 4, 4); positions (..., 3), or (..., 2), whose z is left free; with
    part="orientation", R alone.
    method: "lm", Levenberg-Marquardt with joint limits and restarts (default); "newton" (or
    "jacobian_inverse") and "transpose" (or "jacobian_transpose"), the classical iterations without restarts.
    q0 (nq,) or (..., nq): the start, or that of each target, or several starts of one target; or the name of
    a keyframe, or a dictionary by the names of coordinates or joints, of which the others are those at home;
    by default the middle between the joint limits.
    part: "pose", "position" or "orientation"; by default what the targets contain.
    components: instead of a part, some of "x y z rx ry rz". axes: the axes of the components, "world"
    (default) or "body", those of the frame.
    weights: of the frames relative to each other; by default 1.
    characteristic_length [m]: weighs position errors against orientation errors; an error of this length
    counts as much as 1 rad. By default the typical distance of the frames from the joint axes.
    joints: names of the joints that may move; by default all. The others stay at q0.
    limits: whether the joint limits apply, default True. tolerance: of the residual, [m] and [rad], default
    1e-6.

    alpha: the step factor of the classical iterations, not of "lm": a number (default 1), the diagonal of a
    matrix by the generalised velocities (nv,) or with one number for each of those that may move, or a
    function of the iteration number 1, 2, ....
    iterations: the iteration limit for each start; by default 16 for "lm", 100 for "newton", 1000 for
    "transpose". Without restarts, and in the final refinement of the best result, "lm" uses at least 200.
    restarts: the number of further starts, default 200; they are drawn once from `seed` (default 0) and are
    the same for every target.
    posture (nq,): a configuration to approach in the null space of the targets, by "lm"; ball and free joints
    turn by the shortest rotation.
    null_space_objective: instead, a function of q (nq,) that returns velocities (nv,) to follow in the null
    space, written with the functions of `zwang.scalar`; see `away_from_singularities`.
    path: whether the targets form a sequence, in which each search starts from the solution before, the first
    from q0 (nq,), without restarts. threads: by default one for each core. compiled: False evaluates the same
    algorithm on floats, which is slow.

    Closed loops, couplings and `Holonomic` constraints that act and affect the frames are satisfied; their
    violation is part of the residual, where that of a formula counts as a position. Constraints of
    velocities (`NoSideSlip`, `Rolling`, `Pfaffian`) and formulas with the time are refused.
    Returns an `IKSolution`, which states for each target whether it converged, and otherwise the reason.
    Raises UnknownNameError for names, ShapeError and StateError for targets and starts, DescriptionError for
    options and for constraints that are refused, and ParameterError for symbols without values.
    Source: `zwang.robot.inverse_kinematics.levenberg_marquardt` for "lm"; Fu, ME331 Robot Modeling and
    Control, Section 11, "Numerical Solution to Inverse Kinematics", for the classical iterations.
    """
    m = validation.numeric_mechanism(mechanism)
    if method not in METHODS:
        raise DescriptionError(f"method is {method!r}; it must be one of {', '.join(map(repr, METHODS))}")
    method = METHODS[method]
    further = None if restarts is None else _count("restarts", restarts)
    own = {"posture": posture, "null_space_objective": null_space_objective, "restarts": further or None}
    _check_unused(method, {"alpha": alpha} if method == "lm" else own)
    frames, given = _frames_and_targets(frame, targets, part)
    tasks = _tasks(frames, given, part, components, axes, weights)
    names = None if joints is None else tuple(joints)
    functions = _functions(
        IdentityKey(m), tasks, names, characteristic_length, limits,
        _objective(m, posture, null_space_objective), threads, compiled,
    )  # fmt: skip
    start, batch = _start(m, functions.problem, q0, _batch(given), path)
    count = len(start)
    options = SearchOptions(
        method=method,
        tolerance=_pair(tolerance),
        iterations=_count("iterations", DEFAULT_ITERATIONS[method] if iterations is None else iterations),
        restarts=(0 if path else RESTARTS) if further is None else further,
        seed=_seed(seed),
        alpha=1.0 if alpha is None else alpha,  # type: ignore[arg-type]
    )
    flat = [x for target, task in zip(given, tasks, strict=True) for x in _arrays(target, task, count)]
    solver = _solver(method, path)
    return _shaped(solver(m, functions, start, flat, options) if count else _nothing(start), batch)


def _nothing(start: np.ndarray) -> IKSolution:
    """The solution for no targets, from starts (0, nq)."""
    numbers, counts = np.zeros(0), np.zeros(0, int)
    return IKSolution(start, np.zeros(0, bool), np.zeros(0, str), Residual(numbers, numbers), counts, counts)


def _check_unused(method: str, options: Mapping[str, Any]) -> None:
    """Raises DescriptionError for an option of the other methods that is given."""
    others = "'newton' or 'transpose'" if method == "lm" else "'lm'"
    for name, value in options.items():
        if value is not None:
            raise DescriptionError(f"method {method!r} has no {name}; leave it out, or use method {others}")


def _solver(method: str, path: bool) -> Callable[..., IKSolution]:
    if method == "lm":
        return solve_path if path else solve_batch
    if path:
        raise DescriptionError(f"a path is solved by method 'lm' only, not by {method!r}")
    return classical_methods.solve_classical


@lru_cache(maxsize=64)
def _functions(
    same: IdentityKey,
    tasks: tuple[IKTask, ...],
    joints: tuple[str, ...] | None,
    length: float | None,
    bounded: bool,
    objective: _Objective | None,
    threads: int | None,
    compiled: bool,
) -> IKFunctions:
    """The problem and its functions, cached so that they are compiled once."""
    mechanism = same.mechanism
    frames = tuple(task.frame for task in tasks)
    loops, bodies = loop_constraints_for(mechanism, frames)
    coordinates = coordinates_for(mechanism, bodies, joints)
    if not coordinates.free:
        names = ", ".join(map(repr, frames))
        raise DescriptionError(
            f"no joint that may move affects the frame {names}; give other frames or joints"
        )
    unit = length if length is not None else default_characteristic_length(mechanism, frames)
    if not unit > 0:
        raise DescriptionError(f"characteristic_length is {unit}; it must be a positive number of metres")
    problem = Problem(tasks, coordinates, float(unit), loops, bounded)
    return IKFunctions(
        problem, objective.of(coordinates) if objective is not None else None, threads, compiled
    )


def _frames_and_targets(
    frame: str | Sequence[str], targets: TargetLike, part: str | None
) -> tuple[tuple[str, ...], list[PoseTarget]]:
    """The names of the frames, and a target for each."""
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
    frames: tuple[str, ...],
    given: list[PoseTarget],
    part: str | None,
    components: str | Sequence[str] | None,
    axes: str,
    weights: Sequence[float] | None,
) -> tuple[IKTask, ...]:
    """One task for each frame. Raises ShapeError where a target lacks a position or an orientation."""
    factors = [1.0] * len(frames) if weights is None else [float(w) for w in weights]
    if len(factors) != len(frames):
        raise ShapeError(f"weights has {len(factors)} entries for {len(frames)} frames")
    tasks = []
    for frame, target, weight in zip(frames, given, factors, strict=True):
        chosen = tuple(components) if components is not None else PARTS[part or target.part]
        if target.planar:
            chosen = tuple(c for c in chosen if c != "z")
        task = IKTask(frame, chosen, axes, weight)
        for needed, present, name in (
            (task.has_position, target.p is not None, "position"),
            (task.has_orientation, target.R is not None, "orientation"),
        ):
            if needed and not present:
                raise ShapeError(f"the components {chosen} of frame {frame!r} need a target with a(n) {name}")
        tasks.append(task)
    return tuple(tasks)


def _arrays(target: PoseTarget, task: IKTask, count: int) -> list[np.ndarray]:
    """The target's arrays in the order of the task's inputs, repeated if there is one for the whole batch."""
    found = [x for x, needed in ((target.p, task.has_position), (target.R, task.has_orientation)) if needed]
    return [np.ascontiguousarray(np.broadcast_to(x, (count, *x.shape[1:]))) for x in found if x is not None]


def _batch(given: list[PoseTarget]) -> tuple[int, ...]:
    """The shape of the batch of targets."""
    batches = {target.batch for target in given if target.batch}
    if len(batches) > 1:
        raise ShapeError(f"the frames' targets are batches of different shapes: {sorted(batches)}")
    return next(iter(batches), ())


def _start(
    m: Mechanism, problem: Problem, q0: Any, batch: tuple[int, ...], path: bool
) -> tuple[np.ndarray, tuple[int, ...]]:
    """The start of every target (N, nq), and the shape of the batch: that of the targets, or for one target
    that of q0.
    """
    count = int(np.prod(batch, dtype=int))
    if q0 is None:
        return np.tile(JointLimits.of(problem.coordinates, m).middle, (count, 1)), batch
    q = validation.real_values(validation.coordinates(m, q0, "q0"), "q0")
    if q.ndim <= 1:
        return np.tile(validation.configuration(m, q), (count, 1)), batch
    if path:
        raise ShapeError(
            f"q0 of a path must have the shape ({m.nq},), since each search starts from the solution before; "
            f"its shape is {q.shape}: give the start of the first target"
        )
    if q.shape != (*(batch or q.shape[:-1]), m.nq):
        wide = (*batch, m.nq) if batch else f"(..., {m.nq})"
        raise ShapeError(f"q0 must have the shape ({m.nq},) or {wide}; its shape is {q.shape}")
    rows = [validation.configuration(m, row) for row in q.reshape(-1, m.nq)]
    return np.array(rows, dtype=float).reshape(-1, m.nq), q.shape[:-1]


def _pair(tolerance: float | tuple[float, float]) -> tuple[float, float]:
    """The tolerances of position and orientation."""
    position, orientation = tolerance if isinstance(tolerance, (tuple, list)) else (tolerance, tolerance)
    try:
        bounds = real_number(position), real_number(orientation)
    except (TypeError, ValueError):
        bounds = 0.0, 0.0
    if not 0 < min(bounds) <= max(bounds) < np.inf:
        raise DescriptionError(f"tolerance is {tolerance!r}; give positive, finite numbers [m] and [rad]")
    return bounds


def _seed(value: Any) -> int:
    if not isinstance(value, int | np.integer) or value < 0:
        raise DescriptionError(f"seed is {value!r}; it must be 0 or a positive integer")
    return int(value)


def _count(name: str, value: Any) -> int:
    if not isinstance(value, int | np.integer) or not 0 <= value <= LARGEST_COUNT:
        raise DescriptionError(
            f"{name} is {value!r}; it must be 0 or a positive integer, at most {LARGEST_COUNT:,}"
        )
    return int(value)


@dataclass(frozen=True)
class _Objective:
    """A null-space objective: a posture to approach, or a function of q that returns velocities (nv,)."""

    nv: int
    posture: tuple[float, ...] | None
    function: NullSpaceObjective | None

    def of(self, coordinates: IndependentCoordinates) -> NullSpaceObjective:
        """The objective in the independent velocities (free,)."""
        if self.function is not None:
            function = self.function

            def follow(q: Any) -> np.ndarray:
                z = np.asarray(function(q))
                if z.shape != (self.nv,):
                    raise ShapeError(
                        f"null_space_objective(q) must have the shape ({self.nv},); its shape is {z.shape}"
                    )
                return z[list(coordinates.free)]

            return follow
        posture = np.array(self.posture)
        return lambda q: difference_configuration(coordinates.tree, posture, q)[list(coordinates.free)]


def _objective(
    m: Mechanism, posture: ArrayLike | None, function: NullSpaceObjective | None
) -> _Objective | None:
    if posture is not None and function is not None:
        raise DescriptionError("give either a posture or a null_space_objective, not both")
    if posture is not None:
        return _Objective(m.nv, tuple(validation.configuration(m, posture).tolist()), None)
    return _Objective(m.nv, None, function) if function is not None else None


def _shaped(solution: IKSolution, batch: tuple[int, ...]) -> IKSolution:
    """The solution with arrays in the shape of the batch, and plain numbers for a single target."""

    def shaped(x: Any) -> Any:
        x = np.asarray(x)
        return x.reshape(*batch, *x.shape[1:]) if batch else x[0]

    residual = type(solution.residual)(*(_plain(shaped(x), float) for x in solution.residual))
    return replace(
        solution,
        q=shaped(solution.q),
        converged=_plain(shaped(solution.converged), bool),
        reason=_plain(shaped(solution.reason), str),
        residual=residual,
        iterations=_plain(shaped(solution.iterations), int),
        starts=_plain(shaped(solution.starts), int),
        make_trace=None if batch else solution.make_trace,
    )


def _plain(x: Any, kind: type) -> Any:
    return kind(x) if np.ndim(x) == 0 else x
