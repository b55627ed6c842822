"""The initial states of simulated worlds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import zwang as zw
from zwang.api.arguments.initial_conditions import initial_state
from zwang.cli.inputs import parse_pairs
from zwang.errors import SimulationError
from zwang.mechanism.mechanism import Mechanism

SPREAD = 0.1  # default standard deviation of the random initial states of several worlds
CONSISTENT = (
    1e-6  # change [rad, m, rad/s, m/s] by which the assembly of a consistent state changes it at most
)


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
    """The state (q, v) with its named values, and others for which the hard constraints are satisfied."""
    near = zw.assemble(m, q, v)
    changes = zw.difference_configuration(m, near[0], q), near[1] - v
    if max(np.abs(change).max(initial=0.0) for change in changes) <= CONSISTENT:
        return near
    return zw.assemble(m, q, v, positions=positions, speeds=speeds)


def displaced_configurations(
    m: Mechanism, worlds: int, spread: float, rng: np.random.Generator, home: Any = None
) -> np.ndarray:
    """Configurations (worlds, nq) at random displacements from `home`, by default the default configuration.

    spread: standard deviation of each component of the displacement, on the tangent space [rad or m].
    """
    home = np.array(m.home or m.neutral if home is None else home, dtype=float)
    displacements = spread * rng.normal(size=(worlds, m.nv))
    return np.stack([zw.integrate_configuration(m, home, row, 1.0) for row in displacements])
