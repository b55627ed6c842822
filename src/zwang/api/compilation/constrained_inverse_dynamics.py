"""Inverse dynamics of mechanisms with closed loops and other hard constraints: the forces of motors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from zwang.api.arguments import validation
from zwang.api.arguments.parameter_values import Parameters, parameter_values
from zwang.api.compilation.closed_loops import closed_loop_motion
from zwang.api.functions.function_table import ARGUMENTS, MOTOR_FORCES
from zwang.constraint.hard import equality_enabled, is_hard_constraint
from zwang.errors import (
    DescriptionError,
    ParameterError,
    ShapeError,
    SolveError,
    StateError,
    UnknownNameError,
)
from zwang.mechanism.mechanism import Mechanism
from zwang.scalar import is_zero
from zwang.simulation.quantities.prescribed_motion import (
    PrescribedMotionForces,
    enabled_rows,
    prescribed_motion_forces,
)

TOLERANCE = {"float64": 1e-8, "float32": 1e-3}  # relative, of the residuals
ROWS_AT = 0.0  # [s] at which rows are named


@dataclass(frozen=True)
class ConstrainedInverseDynamics:
    """The forces that a prescribed motion of a mechanism with hard constraints needs.

    actuated: the names of the generalised velocities with motors. forces (..., k): the motor forces, in this
    order [N m, N]. tau (..., nv): the same as generalised forces. constraints: the constraint of each row.
    multipliers (..., rows): the forces of these rows, as those of `constrained_dynamics`. q (..., nq),
    v (..., nv), a (..., nv): the motion of the whole mechanism.
    """

    actuated: tuple[str, ...]
    forces: np.ndarray
    tau: np.ndarray
    constraints: tuple[str, ...]
    multipliers: np.ndarray
    q: np.ndarray
    v: np.ndarray
    a: np.ndarray

    def force(self, actuated: str) -> np.ndarray:
        """The force (...) [N m, N] of one motor. Raises UnknownNameError."""
        if actuated not in self.actuated:
            raise UnknownNameError("actuated velocity", actuated, self.actuated)
        return self.forces[..., self.actuated.index(actuated)]

    def constraint_force(self, constraint: str) -> np.ndarray:
        """The forces (..., n) of the rows of one constraint. Raises UnknownNameError."""
        if constraint not in self.constraints:
            raise UnknownNameError("constraint", constraint, dict.fromkeys(self.constraints))
        return self.multipliers[..., [k for k, name in enumerate(self.constraints) if name == constraint]]


@dataclass(frozen=True)
class PrescribedMotion:
    """The motion of a mechanism, and its motors by number and name; see `prescribed_motion`.

    mechanism: with numbers for its symbols, those of the first world.
    """

    mechanism: Mechanism
    numbers: tuple[int, ...]
    actuated: tuple[str, ...]
    q: Any
    v: Any
    a: Any

    def result(self, found: Sequence[np.ndarray], dtype: str) -> ConstrainedInverseDynamics:
        """The validated result, from the results of `MOTOR_FORCES` with the leading shape of the motion."""
        m = self.mechanism
        forces = PrescribedMotionForces(*found)
        rows = row_names(m)
        q, v, a = (np.asarray(x, dtype=float) for x in (self.q, self.v, self.a))
        _check(m, forces, rows, (v, a), TOLERANCE[dtype])
        tau = np.zeros((*forces.forces.shape[:-1], m.nv))
        tau[..., list(self.numbers)] = forces.forces
        shape = tau.shape[:-1]
        q, v, a = (np.broadcast_to(x, (*shape, x.shape[-1])) for x in (q, v, a))
        return ConstrainedInverseDynamics(
            self.actuated, forces.forces, tau, rows, forces.multipliers, q, v, a
        )


def prescribed_motion(
    mechanism: Mechanism,
    motion: tuple[npt.ArrayLike, npt.ArrayLike, npt.ArrayLike],
    actuated: str | Sequence[str] | None,
    independent: str | Sequence[str] | None,
    start: npt.ArrayLike | None,
    params: Parameters | None = None,
) -> PrescribedMotion:
    """The validated motion of `inverse_dynamics` with motors, completed from that of independent coordinates.

    Raises UnknownNameError for a motor, and DescriptionError for what is not ideal.
    """
    m = _of_first_world(validation.checked_mechanism(mechanism), params)
    chosen = actuated if actuated is not None else independent
    assert chosen is not None
    names = (chosen,) if isinstance(chosen, str) else tuple(chosen)
    for name in names:
        if name not in m.speed_names:
            raise UnknownNameError("actuated velocity", name, m.speed_names)
    if len(set(names)) < len(names):
        raise DescriptionError(f"actuated is {list(names)}; give each motor's velocity once")
    check_ideal(m)
    q, v, a = motion
    if independent is not None:
        _check_single_values(mechanism, params)
        q, v, a = closed_loop_motion(m, q, v, a, independent=independent, start=start)
    elif start is not None:
        raise DescriptionError("start= chooses a branch of the loops for independent=; leave it out")
    else:
        q, v, a = (ARGUMENTS[name].without_labels(m, x, name) for name, x in zip("qva", motion, strict=True))
    return PrescribedMotion(m, tuple(m.speed_names.index(name) for name in names), names, q, v, a)


def _of_first_world(m: Mechanism, params: Parameters | None) -> Mechanism:
    """The mechanism with the first of the values of each symbol."""
    values = parameter_values(m, params)
    return m.subs({name: float(x.flat[0]) for name, x in values.items()}) if values else m


def _check_single_values(m: Mechanism, params: Parameters | None) -> None:
    """Raises ParameterError for several values of a symbol."""
    for name, value in parameter_values(m, params).items():
        if value.size > 1:
            raise ParameterError(
                f"params[{name!r}] has the shape {value.shape}; the loops are closed for independent=... "
                "with one value for each symbol: give one, or the motion q, v, a of the whole mechanism"
            )


def on_floats(motion: PrescribedMotion, time: npt.ArrayLike) -> ConstrainedInverseDynamics:
    """The forces of each state of a motion, by floats; the leading shapes of q, v, a and time broadcast."""
    m = validation.numeric_mechanism(motion.mechanism)
    arrays = [
        validation.real_values(x, name) for x, name in ((motion.q, "q"), (motion.v, "v"), (motion.a, "a"))
    ]
    times = validation.real_values(time, "time")
    try:
        shape = np.broadcast_shapes(*(x.shape[:-1] for x in arrays), times.shape)
    except ValueError:
        raise ShapeError(
            f"q, v, a and time have the shapes {', '.join(str(x.shape) for x in (*arrays, times))}; their "
            "leading shapes must go together"
        ) from None
    stacked = [np.broadcast_to(x, (*shape, *x.shape[-1:])).reshape(-1, *x.shape[-1:]) for x in arrays]
    found = [
        prescribed_motion_forces(
            m,
            motion.numbers,
            validation.configuration(m, q),
            validation.nv_vector(m, v, "v"),
            validation.nv_vector(m, a, "a"),
            t,
        )
        for q, v, a, t in zip(*stacked, np.broadcast_to(times, shape).reshape(-1), strict=True)
    ]
    sizes = (len(motion.numbers), len(row_names(m)), m.nv, *[len(row_names(m))] * 3)
    columns = zip(*found, strict=True) if found else [[]] * len(sizes)
    return motion.result(
        [
            np.array(values, dtype=float).reshape(*shape, size)
            for values, size in zip(columns, sizes, strict=True)
        ],
        "float64",
    )


def compiled(
    motion: PrescribedMotion, call: Callable[..., Any], time: npt.ArrayLike, dtype: str
) -> ConstrainedInverseDynamics:
    """The forces of all states of a motion at once. call(key, arrays): evaluates a compiled function."""
    key = (MOTOR_FORCES.name, motion.numbers)
    found = call(key, (motion.q, motion.v, motion.a, validation.real_values(time, "time")))
    return motion.result([np.asarray(x) for x in found], dtype)


def row_names(m: Mechanism) -> tuple[str, ...]:
    """The constraint of each row."""
    q = np.array(m.neutral if m.home is None else m.home, dtype=object)
    return enabled_rows(m, q, np.zeros(m.nv, int), ROWS_AT).names


def check_ideal(m: Mechanism) -> None:
    """Raises DescriptionError for soft and non-ideal constraints and dry friction, whose forces are not in
    the constraint directions alone.
    """
    wrong = [
        f"constraint {c.name!r} ({type(c).__name__})"
        for c in (m.constraints if equality_enabled(m) else ())
        if not is_hard_constraint(c)
    ]
    elements = (*(index.joint for index in m.joints), *m.tendons)
    wrong += [f"dry friction of {x.name!r}" for x in elements if not is_zero(getattr(x, "friction", 0))]
    if wrong:
        raise DescriptionError(
            f"mechanism {m.name!r} has {wrong[0]}, and inverse dynamics with motors takes hard constraints "
            "without friction: give the constraint softness=None, or leave it out with "
            "mechanism.replace(constraints=...), and add what friction takes to the forces"
        )


def _check(
    m: Mechanism,
    found: PrescribedMotionForces,
    rows: tuple[str, ...],
    motion: tuple[np.ndarray, np.ndarray],
    tolerance: float,
) -> None:
    """Raises StateError for a motion that breaks the constraints, and SolveError for one that the motors
    cannot make. States that are not finite are passed over; their forces are NaN.
    """
    v, a = motion
    largest_v, largest_a = (np.abs(x).max(axis=-1, initial=0.0, keepdims=True) for x in (v, a))
    limits = (
        ("violation", found.violation, 1, "the configuration violates", "start from zw.assemble"),
        ("velocity", found.velocity, 1 + largest_v, "the velocities break", "project v with zw.assemble"),
        (
            "acceleration",
            found.acceleration,
            1 + largest_a + largest_v**2,
            "the accelerations break",
            "give those of all coordinates that belong together",
        ),
    )
    for _, residual, scale, what, remedy in limits:
        place = _largest(residual / scale, tolerance)
        if place is not None:
            *world, row = place
            raise StateError(
                f"{what} constraint {rows[row]!r} of mechanism {m.name!r}{_where(world)}: its residual is "
                f"{residual[place]:.3g}; {remedy}, or give the motion of independent=... alone"
            )
    scale = 1 + np.abs(found.forces).max(axis=-1, initial=0.0, keepdims=True)
    place = _largest(found.remainder / scale, tolerance)
    if place is not None:
        *world, k = place
        raise SolveError(
            f"the motors and constraints of mechanism {m.name!r} cannot exert the forces of this motion"
            f"{_where(world)}: {found.remainder[place]:.3g} [N m, N] remain at {m.speed_names[k]!r}; give "
            "more actuated joints, a motion that these joints determine, or avoid a singular position"
        )


def _largest(ratio: np.ndarray, tolerance: float) -> tuple[int, ...] | None:
    """The index of the largest finite entry above the tolerance; None if there is none."""
    size = np.where(np.isfinite(ratio), np.abs(ratio), 0.0)
    if not size.size or size.max() <= tolerance:
        return None
    return tuple(int(k) for k in np.unravel_index(int(size.argmax()), size.shape))


def _where(world: Sequence[int]) -> str:
    """The place of a state in the batch, for messages."""
    return f" in state {', '.join(map(str, world))}" if world else ""
