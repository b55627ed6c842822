"""The initial states of simulated worlds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import zwang as zw
from zwang.api.arguments.initial_conditions import initial_state
from zwang.cli.inputs import parse_pairs
from zwang.errors import SimulationError, SolveError
from zwang.mechanism.mechanism import Mechanism

SPREAD = 0.1  # default standard deviation of the random initial states of several worlds
ROUNDED = 1e-4  # change of a named value, relative or of 1 rad, m, rad/s or m/s, that may be its rounding


def initial_states(
    m: Mechanism,
    worlds: int,
    spread: float | None,
    seed: int,
    q0: Sequence[str] | None,
    v0: Sequence[str] | None,
) -> tuple[Any, Any]:
    """q0 and v0 for `zw.simulate`: default values, named values, and a random displacement for each world.

    They satisfy the hard constraints. Raises SolveError where these contradict the named values.
    """
    if spread is None:
        spread = SPREAD if worlds > 1 else 0.0
    elif not 0 <= spread < math.inf:
        raise SimulationError(f"--spread is {spread:g}; a standard deviation is a number from 0 on")
    named = parse_pairs(q0), parse_pairs(v0)
    if spread == 0 and not m.constraints:
        return named
    state = initial_state(m, *named)
    q, v = state.q[0], state.v[0]
    is_hard = any(getattr(c, "softness", None) is None for c in m.constraints)
    if is_hard:
        q, v = _assembled(m, q, v, *named)
    if spread == 0:
        return q, v
    rng = np.random.default_rng(seed)
    configurations = displaced_configurations(m, worlds, spread, rng, q)
    velocities = v + spread * rng.normal(size=(worlds, m.nv))
    if is_hard:
        assembled = [zw.assemble(m, *state) for state in zip(configurations, velocities, strict=True)]
        configurations, velocities = (np.array(part) for part in zip(*assembled, strict=True))
    return configurations, velocities


def _assembled(
    m: Mechanism, q: np.ndarray, v: np.ndarray, positions: Mapping[str, float], speeds: Mapping[str, float]
) -> tuple[np.ndarray, np.ndarray]:
    """The state (q, v) with its named values, and others for which the hard constraints are satisfied.

    Named values that contradict each other by rounding may change by as much. Elements of quaternions cannot
    be held. Raises SolveError where the constraints contradict the named values.
    """
    free = {name for j in m.joints if j.joint.nq == j.joint.nv for name in m.coordinate_names[j.q]}
    held = {name: x for name, x in positions.items() if name in free}
    contradiction = None
    try:
        found = zw.assemble(m, q, v, positions=held, speeds=speeds)
    except SolveError as error:
        contradiction, found = error, zw.assemble(m, q, v)
    for names, values, named in zip(
        (m.coordinate_names, m.speed_names), found, (positions, speeds), strict=True
    ):
        for name, x in named.items():
            value = float(values[names.index(name)])
            if abs(value - x) > ROUNDED * max(1.0, abs(x)):
                raise contradiction or SolveError(
                    f"{name} is {x:g}, and {value:g} where the hard constraints are satisfied; elements of "
                    "quaternions cannot be held: give other values of this joint"
                )
    return found


def displaced_configurations(
    m: Mechanism, worlds: int, spread: float, rng: np.random.Generator, home: Any = None
) -> np.ndarray:
    """Configurations (worlds, nq) at random displacements from `home`, by default the default configuration.

    spread: standard deviation of each component of the displacement, on the tangent space [rad or m].
    """
    home = np.array(m.home or m.neutral if home is None else home, dtype=float)
    displacements = spread * rng.normal(size=(worlds, m.nv))
    return np.stack([zw.integrate_configuration(m, home, row, 1.0) for row in displacements])
