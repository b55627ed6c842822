"""Error-controlled integration with dense output, by SciPy's solvers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy  # its integrators load when they are first used

from zwang.errors import SimulationError
from zwang.scalar import real_number

METHODS = {
    "dop853": "DOP853",
    "rk45": "RK45",
    "radau": "Radau",
    "bdf": "BDF",
    "lsoda": "LSODA",
}
WITHOUT_PROJECTION = ("lsoda",)  # they keep their past to themselves, so that a state cannot be changed between steps
LEAST_RTOL = 3e-14  # SciPy's solvers accept no less


@dataclass(frozen=True)
class Adaptive:
    """An error-controlled integrator: "dop853" or "rk45" for smooth motions, "radau", "bdf" or "lsoda" for stiff ones.

    A step's error is kept under atol + rtol * |y|, for each coordinate [rad or m] and each speed. max_step [s].
    Raises SimulationError for another method, or tolerances that are not positive.
    """

    method: str = "dop853"
    rtol: float = 1e-9
    atol: float = 1e-11
    max_step: float = np.inf

    def __post_init__(self):
        for name in ("rtol", "atol", "max_step"):
            if not isinstance(getattr(self, name), int | float | np.number):
                raise SimulationError(f"{name} of the integrator is {getattr(self, name)!r}; it must be a number")
        if str(self.method).lower() not in METHODS:
            raise SimulationError(
                f"there is no adaptive method {self.method!r}; there are {', '.join(METHODS)}"
            )
        object.__setattr__(self, "method", self.method.lower())
        for name in ("rtol", "atol", "max_step"):
            try:
                value = real_number(getattr(self, name))
            except (TypeError, ValueError):
                value = np.nan
            if not value > 0:
                raise SimulationError(
                    f"{name} of the integrator is {getattr(self, name)!r}; it must be a positive number"
                )
            object.__setattr__(self, name, value)


@dataclass(frozen=True)
class DenseTrajectory:
    """y (n, size) at the first n of the times asked for; `end` [s]: how far it came; `failure`: why no further, or empty."""

    y: np.ndarray
    end: float
    failure: str = ""


class IntegrationInterrupted(KeyboardInterrupt):
    """An integration was interrupted; `solution` is how far it came."""

    def __init__(self, trajectory: DenseTrajectory):
        super().__init__()
        self.trajectory = trajectory


def integrate_error_controlled(
    rate: Callable[[float, np.ndarray, float], np.ndarray],
    y0: np.ndarray,
    times: np.ndarray | Sequence[float],
    integrator: Adaptive,
    *,
    discontinuities: Sequence[float] = (),
    is_admissible: Callable[[np.ndarray], Any] = lambda y: np.isfinite(y).all(),
    tick: Callable[[float], None] = lambda t: None,
    project: Callable[[float, np.ndarray], np.ndarray] | None = None,
) -> DenseTrajectory:
    """y at the `times` [s] (rising; y0 at the first) for y_dot = rate(t, y, since); between steps by the method's dense output.

    It starts anew at the `breaks`, where the rate jumps; `since` is the last of them. It stops where `within(y)` fails. tick(t) is told after every step.
    settle(t, y): what y becomes after every step, such as its projection on an invariant set; not with `UNSETTLED` methods.
    Raises IntegrationInterrupted for KeyboardInterrupt.
    """
    rows = [np.array(y0, dtype=float)]
    try:
        return _integrated(rate, rows, times, integrator, discontinuities, is_admissible, tick, project)
    except KeyboardInterrupt:
        reached = DenseTrajectory(np.array(rows), float(times[len(rows) - 1]), "it was interrupted")
        raise IntegrationInterrupted(reached) from None


def _integrated(
    rate: Callable[[float, np.ndarray, float], np.ndarray],
    rows: list[np.ndarray],
    times: np.ndarray | Sequence[float],
    integrator: Adaptive,
    discontinuities: Sequence[float],
    is_admissible: Callable[[np.ndarray], Any],
    tick: Callable[[float], None],
    project: Callable[[float, np.ndarray], np.ndarray] | None,
) -> DenseTrajectory:
    """`integrate_error_controlled`; y at the times goes into `rows`, which begins with y0, as it is found."""
    y = rows[0].copy()
    ends = [t for t in discontinuities if times[0] < t < times[-1]] + [times[-1]]
    begin = times[0]
    for end in ends:
        if not np.isfinite(rate(begin, y, begin)).all():  # from such a slope no method finds its first step
            return DenseTrajectory(np.array(rows), float(begin), "the slope is no number")
        solver = getattr(scipy.integrate, METHODS[integrator.method])(
            partial(_after_break, rate, begin), begin, y, end,
            rtol=max(integrator.rtol, LEAST_RTOL), atol=integrator.atol, max_step=integrator.max_step,
        )  # fmt: skip
        while solver.status == "running":
            message = _step(solver)
            if solver.status == "failed" or not is_admissible(solver.y):
                return DenseTrajectory(
                    np.array(rows), float(solver.t_old or begin), message or "it left every bound"
                )
            settled = solver.y if project is None else project(solver.t, solver.y)
            if not is_admissible(settled):
                return DenseTrajectory(np.array(rows), float(solver.t_old), "it left what it has to stay on")
            dense = solver.dense_output()
            while len(rows) < len(times) and times[len(rows)] <= solver.t:
                t = times[len(rows)]
                rows.append(dense(t) if project is None else project(t, dense(t)))
            tick(solver.t)
            _change(solver, settled)
        begin, y = end, solver.y
    return DenseTrajectory(np.array(rows), float(times[-1]))


def _step(solver: Any) -> str | None:
    """One step; why there was none. Implicit methods refuse numbers that are none by raising."""
    try:
        with np.errstate(all="ignore"):
            return solver.step()
    except (ValueError, np.linalg.LinAlgError) as error:
        solver.status = "failed"
        return str(error)


def _change(solver: Any, y: np.ndarray) -> None:
    """Go on from another y: the slope there, and the newest difference of methods with a history, are those of y."""
    if y is solver.y or np.array_equal(y, solver.y):
        return
    if isinstance(solver, scipy.integrate.BDF):
        solver.D[0] = y
    else:
        solver.f = solver.fun(solver.t, y)
    solver.y = y


def _after_break(rate: Callable[..., np.ndarray], since: float, t: float, y: np.ndarray) -> np.ndarray:
    return rate(t, y, since)
