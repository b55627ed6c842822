"""Validation of initial states and of the parameters of worlds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from zwang.api.arguments import validation
from zwang.api.arguments.default_start import default_start
from zwang.api.arguments.memory_limit import check_memory
from zwang.api.arguments.parameter_values import Parameters, parameter_values
from zwang.api.arguments.parameters_of_worlds import check_worlds
from zwang.errors import (
    ArgumentError,
    ParameterError,
    ShapeError,
    SimulationError,
    StateError,
)
from zwang.mechanism.mechanism import Mechanism
from zwang.scalar import real_array
from zwang.simulation.applied_forces import activations
from zwang.simulation.initial_state import InitialState


def initial_state(
    mechanism: Mechanism,
    q0: Any = None,
    v0: Any = None,
    worlds: int | None = None,
    params: Parameters | None = None,
) -> InitialState:
    """The validated initial states of all worlds; by default the home configuration, or the neutral one, at
    rest, with the parameters of each world.

    q0: (nq,), (N, nq), or a dictionary of coordinates by their names or those of joints, of which the others
    take their default; v0 likewise. q0 may also be the name of a keyframe, which then gives q0, the defaults
    of v0, and the activations.
    worlds: N, if it does not follow from the other arguments. params: a number or (N,) for each symbol, by
    symbol or by name. Raises ShapeError, StateError, ParameterError or SimulationError, with the name of
    the argument.
    """
    if not isinstance(mechanism, Mechanism):
        raise ArgumentError(
            f"zw.simulate needs a zw.Mechanism, as zw.load(path) returns; it got a {type(mechanism).__name__}"
        )
    values = _parameters(mechanism, params)
    lengths = {f"params[{name!r}]": len(x) for name, x in values.items()}
    _count(worlds, lengths)
    start = default_start(mechanism, q0, values)
    v0 = validation.values_of_elements(mechanism, v0, "v", "v0")
    q0 = validation.values_of_elements(mechanism, None if isinstance(q0, str) else q0, "q", "q0")
    q = _rows(q0, lambda: start.q, mechanism.coordinate_names, "q0")
    v = _rows(v0, lambda: start.v, mechanism.speed_names, "v0")
    N = _count(worlds, {"q0": len(q), "v0": len(v), **lengths})
    check_memory(N, 2, sample_size(mechanism) + len(values))
    validation.normalise_quaternions(mechanism, q)
    spread = {name: np.broadcast_to(x, (N,)).copy() for name, x in values.items()}
    check_worlds(mechanism, spread)
    z = np.zeros((N, len(activations(mechanism))))
    if start.activation.size:
        validation.vector(start.activation[0], z.shape[1], "activation of the keyframe", "one each")
        z = z + start.activation
    return InitialState(_spread(q, N), _spread(v, N), z, spread)


def sample_size(mechanism: Mechanism) -> int:
    """The size of one sample of one world: q, v, tau, constraint forces, control and energies."""
    return mechanism.nq + 3 * mechanism.nv + len(mechanism.inputs) + 3


def _rows(value: Any, default: Callable[[], np.ndarray], names: tuple[str, ...], name: str) -> np.ndarray:
    """(worlds or 1, n) floats; those of `default`, also (worlds or 1, n), in place of what is not given."""
    others = default() if value is None or isinstance(value, Mapping) else np.zeros((1, len(names)))
    value = validation.values_by_name(value, others.T, names, "coordinate or speed", name)
    try:
        array = real_array(others if value is None else value)
    except (TypeError, ValueError, OverflowError):
        raise StateError(f"{name} must hold real numbers; it is {str(value)[:60]!r}") from None
    if array.ndim not in (1, 2) or array.shape[-1] != len(names):
        raise ShapeError(
            f"{name} must have the shape ({len(names)},) or (worlds, {len(names)}); its shape is "
            f"{array.shape}"
        )
    if not np.isfinite(array).all():
        first = tuple(int(k) for k in np.argwhere(~np.isfinite(array))[0])
        index = ", ".join(map(str, first))
        raise StateError(f"{name}[{index}] is {array[first]}; every element of {name} must be finite")
    return np.atleast_2d(array)


def _parameters(mechanism: Mechanism, params: Parameters | None) -> dict[str, np.ndarray]:
    """The values (1,) or (worlds,) of each symbol. Raises ParameterError."""
    return {
        name: _one_axis(name, np.atleast_1d(x)) for name, x in parameter_values(mechanism, params).items()
    }


def _one_axis(name: str, values: np.ndarray) -> np.ndarray:
    if values.ndim != 1 or not np.isfinite(values).all():
        raise ParameterError(f"params[{name!r}] must be a finite real number, or one a world; it is {values}")
    return values


def _count(worlds: Any, lengths: dict[str, int]) -> int:
    """The number of worlds that all arguments agree on."""
    if worlds is not None and (
        isinstance(worlds, bool) or not isinstance(worlds, (int, np.integer)) or worlds < 1
    ):
        raise SimulationError(f"worlds is {worlds!r}; it must be a whole number, at least 1")
    N = worlds if worlds is not None else max(lengths.values(), default=1)
    for name, length in lengths.items():
        if not length:
            raise ShapeError(f"{name} is for no world; give it for at least one")
        if length not in (1, N):
            raise ShapeError(
                f"{name} is for {length} worlds, but there are {N}; give it for one world or for all"
            )
    return int(N)


def _spread(rows: np.ndarray, worlds: int) -> np.ndarray:
    return np.ascontiguousarray(np.broadcast_to(rows, (worlds, rows.shape[1])))
