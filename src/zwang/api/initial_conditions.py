"""Where worlds start, and their parameters, checked at the door."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from zwang.api import validation
from zwang.api.memory_limit import check_memory
from zwang.errors import (
    ArgumentError,
    DescriptionError,
    ParameterError,
    ShapeError,
    SimulationError,
    StateError,
    UnknownNameError,
)
from zwang.mechanism.mechanism import Mechanism
from zwang.scalar import real_array
from zwang.simulation.step import activations

MOST_WORLDS = 10_000_000
"""Of one call: more would not fit into any memory that there is; several calls, one after another, do as well."""


@dataclass(frozen=True)
class InitialState:
    """Worlds at time zero: q (N, nq), v (N, nv), the actuators' states z (N, nz), and parameters by name, each (N,)."""

    q: np.ndarray
    v: np.ndarray
    z: np.ndarray
    params: dict[str, np.ndarray]

    @property
    def worlds(self) -> int:
        return len(self.q)


def initial_state(
    mechanism: Mechanism,
    q0: Any = None,
    v0: Any = None,
    worlds: int | None = None,
    params: Mapping[Any, Any] | None = None,
) -> InitialState:
    """Worlds from what the user gave: by default at home and at rest; one world's values are everyone's.

    q0: (nq,), (N, nq), or a dictionary of coordinates by name, the others at home; v0 likewise. params: a number or (N,) for
    each symbol, by symbol or by name. Raises ShapeError, StateError, ParameterError or SimulationError, naming the argument.
    """
    if not isinstance(mechanism, Mechanism):
        raise ArgumentError(
            f"zw.simulate needs a zw.Mechanism, as zw.load(path) returns; it got a {type(mechanism).__name__}"
        )
    q = _rows(q0, mechanism.home or mechanism.neutral, mechanism.coordinate_names, "q0")
    v = _rows(v0, (0,) * mechanism.nv, mechanism.speed_names, "v0")
    if params is not None and not isinstance(params, Mapping):
        raise ParameterError(
            f"params is {str(params)[:60]!r}; give a dictionary from symbols to a number, or one a world"
        )
    values = _parameters(mechanism, params)
    N = _count(worlds, {"q0": len(q), "v0": len(v), **{f"params[{k!r}]": len(x) for k, x in values.items()}})
    check_memory(N, 2, sample_size(mechanism) + len(values))
    q = np.stack([validation.configuration(mechanism, row) for row in q])
    v = np.stack([validation.nv_vector(mechanism, row, "v0") for row in v])
    spread = {name: np.broadcast_to(x, (N,)).copy() for name, x in values.items()}
    _check_extremes(mechanism, spread)
    z = np.zeros((N, len(activations(mechanism))))
    return InitialState(_spread(q, N), _spread(v, N), z, spread)


def sample_size(mechanism: Mechanism) -> int:
    """How many numbers a recording keeps of a world at a time: q, v, tau, constraint efforts, control, energies ..."""
    return mechanism.nq + 3 * mechanism.nv + len(mechanism.inputs) + 3


def _rows(value: Any, default: Any, names: tuple[str, ...], name: str) -> np.ndarray:
    """(worlds or 1, n) floats."""
    if isinstance(value, Mapping):
        value = _filled(value, default, names, name)
    try:
        array = real_array(default if value is None else value)
    except (TypeError, ValueError, OverflowError):
        raise StateError(f"{name} must hold real numbers; it is {str(value)[:60]!r}") from None
    if array.ndim not in (1, 2) or array.shape[-1] != len(names):
        raise ShapeError(
            f"{name} must have the shape ({len(names)},) or (worlds, {len(names)}); its shape is {array.shape}"
        )
    return np.atleast_2d(array)


def _filled(values: Mapping, default: Any, names: tuple[str, ...], where: str) -> np.ndarray:
    """A row (or one a world) with the values given by name, the others as in `default`."""
    for key in values:
        if key not in names:
            raise UnknownNameError("coordinate or speed", key, names)
    columns = []
    for name, x in zip(names, default, strict=True):
        try:
            columns.append(real_array(values.get(name, x)))
        except (TypeError, ValueError):
            shown = str(values[name])[:60]
            raise StateError(f"{where}[{name!r}] must hold real numbers; it is {shown!r}") from None
    return np.stack(np.broadcast_arrays(*columns), axis=-1)


def _parameters(mechanism: Mechanism, params: Mapping[Any, Any] | None) -> dict[str, np.ndarray]:
    given = {str(key): value for key, value in (params or {}).items()}
    for name in given:
        if name not in mechanism.symbols:
            raise ParameterError(
                f"mechanism {mechanism.name!r} has no symbol {name!r}; it has {list(mechanism.symbols)}"
            )
    missing = [name for name in mechanism.symbols if name not in given]
    if missing:
        raise ParameterError(
            f"mechanism {mechanism.name!r} needs a value for {', '.join(missing)}: give params={{{missing[0]!r}: ...}}"
        )
    return {name: _parameter(name, value) for name, value in given.items()}


def _parameter(name: str, value: Any) -> np.ndarray:
    """The values (1,) or (worlds,) of one symbol."""
    try:
        values = np.atleast_1d(real_array(value))
    except (TypeError, ValueError):
        raise ParameterError(
            f"params[{name!r}] must be a finite real number, or one a world; it is {str(value)[:60]!r}"
        ) from None
    if values.ndim != 1 or not np.isfinite(values).all():
        raise ParameterError(f"params[{name!r}] must be a finite real number, or one a world; it is {values}")
    return values


def _check_extremes(mechanism: Mechanism, params: dict[str, np.ndarray]) -> None:
    """Build the mechanism, and so check it, for the worlds in which some parameter is smallest or largest."""
    for w in sorted({int(find(x)) for x in params.values() for find in (np.argmin, np.argmax)}):
        try:
            mechanism.subs({name: float(x[w]) for name, x in params.items()})
        except DescriptionError as error:
            raise ParameterError(f"the parameters of world {w} cannot be: {error}") from None


def _count(worlds: Any, lengths: dict[str, int]) -> int:
    """The number of worlds that all arguments agree on."""
    if worlds is not None and (
        isinstance(worlds, bool) or not isinstance(worlds, (int, np.integer)) or worlds < 1
    ):
        raise SimulationError(f"worlds is {worlds!r}; it must be a whole number, at least 1")
    N = worlds if worlds is not None else max(lengths.values())
    if N > MOST_WORLDS:
        raise SimulationError(f"worlds is {N}; at most {MOST_WORLDS:,} are run at once")
    for name, length in lengths.items():
        if length not in (1, N):
            raise ShapeError(
                f"{name} is for {length} worlds, but there are {N}; give it for one world or for all"
            )
    return int(N)


def _spread(rows: np.ndarray, worlds: int) -> np.ndarray:
    return np.ascontiguousarray(np.broadcast_to(rows, (worlds, rows.shape[1])))
