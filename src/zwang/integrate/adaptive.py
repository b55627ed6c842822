"""Error-controlled integration with dense output, by SciPy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp

from zwang.errors import SimulationError

METHODS = {"dop853": "DOP853", "rk45": "RK45", "radau": "Radau", "bdf": "BDF", "lsoda": "LSODA"}


@dataclass(frozen=True)
class Adaptive:
    """An error-controlled integrator: DOP853 for smooth motions, Radau or LSODA for stiff ones.

    rtol, atol: the error of a step may be atol + rtol * |y|, for each coordinate [rad or m] and speed. max_step [s].
    """

    method: str = "dop853"
    rtol: float = 1e-9
    atol: float = 1e-11
    max_step: float = np.inf

    def __post_init__(self):
        if not isinstance(self.method, str) or self.method.lower() not in METHODS:
            raise SimulationError(f"there is no adaptive method {self.method!r}; there are {', '.join(METHODS)}")
        object.__setattr__(self, "method", self.method.lower())
        for name in ("rtol", "atol", "max_step"):
            if not getattr(self, name) > 0:
                raise SimulationError(f"{name} of the integrator is {getattr(self, name)}; it must be positive")


@dataclass(frozen=True)
class Dense:
    """States y (times, n) at the times asked for, up to `end` [s]; `reason` says why it stopped early, or is empty."""

    y: np.ndarray
    end: float
    reason: str = ""


def integrate_adaptively(
    rate: Callable[[float, np.ndarray], np.ndarray],
    y0: np.ndarray,
    times: np.ndarray,
    integrator: Adaptive,
    *,
    blown_up: Callable[[np.ndarray], Any] | None = None,
) -> Dense:
    """y at the `times` [s], the first of which is y0's, for y_dot = rate(t, y); between steps by the method's dense output.

    It ends early where a step gets too small, or where `blown_up(y)` becomes positive.
    """
    events = []
    if blown_up is not None:
        events.append(lambda _, y: blown_up(y))
        events[0].terminal = True
    with np.errstate(all="ignore"):
        solution = solve_ivp(
            rate, (times[0], times[-1]), y0, method=METHODS[integrator.method], t_eval=times, events=events or None,
            rtol=max(integrator.rtol, 3e-14), atol=integrator.atol, max_step=integrator.max_step,
        )  # fmt: skip
    y = solution.y.T if len(solution.t) else np.empty((0, len(y0)))
    if solution.status == 0:
        return Dense(y, float(times[-1]))
    if solution.status == 1:
        return Dense(y, float(solution.t_events[0][0]), "it left every bound")
    last = float(solution.t[-1]) if len(solution.t) else float(times[0])
    return Dense(y, last, str(solution.message))
