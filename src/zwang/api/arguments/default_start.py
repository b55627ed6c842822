"""The default start of worlds: the home configuration or a keyframe, evaluated with their parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from zwang.api.arguments.validation import named_keyframe
from zwang.errors import ParameterError
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.numbers import Numbers
from zwang.mechanism.serialization import substitute_symbols, symbol_names
from zwang.simulation.controls import control_names


class DefaultStart(NamedTuple):
    """What the arguments of an initial state leave out, one row for each world or one for all.

    q (..., nq), v (..., nv). activation (..., nz), control (..., inputs): of a keyframe; of size 0 where it
    has none.
    """

    q: np.ndarray
    v: np.ndarray
    activation: np.ndarray
    control: np.ndarray


def default_start(mechanism: Mechanism, q0: Any, params: Mapping[str, np.ndarray]) -> DefaultStart:
    """The start in the keyframe that q0 names, or else in the home configuration, or the neutral one, at
    rest, as `Mechanism.subs` with the parameters of each world gives it.

    params: for each symbol its values (N,) or (1,). Raises UnknownNameError, SimulationError, and
    ParameterError, with the name of the state, for parameters for which it is not finite.
    """
    keyframe, m = named_keyframe(mechanism, q0), mechanism
    named = f"of keyframe {keyframe.name!r}"
    q, where = (m.home, "home") if m.home else (m.neutral, "references of the joints")
    if keyframe.q:
        q, where = keyframe.q, f"q {named}"
    return DefaultStart(
        _rows_of_worlds(q, params, where),
        _rows_of_worlds(keyframe.v or (0,) * m.nv, params, f"v {named}"),
        _rows_of_worlds(keyframe.activation, params, f"activation {named}"),
        _rows_of_worlds(keyframe.control, params, f"control {named}"),
    )


def control_or_default(mechanism: Mechanism, q0: Any, control: Any, params: Mapping[str, np.ndarray]) -> Any:
    """The control, as `control_input` takes it; in place of None, and of the inputs that a dictionary leaves
    out, that of the keyframe which q0 names, if it has one.

    params: as for `default_start`, whose errors are raised.
    """
    if control is not None and not isinstance(control, Mapping):
        return control
    rows = default_start(mechanism, q0, params).control[:, None]  # (worlds, times, inputs)
    if not rows.size:
        return control
    if control is None:
        return rows
    return {**dict(zip(control_names(mechanism), np.moveaxis(rows, -1, 0), strict=False)), **control}


def _rows_of_worlds(numbers: Numbers, params: Mapping[str, np.ndarray], where: str) -> np.ndarray:
    """The numbers (n,) of a mechanism as rows (N or 1, n) of floats. where: what they are, for errors."""
    names = sorted(symbol_names(tuple(numbers)))
    if not names:
        return np.array([numbers], dtype=float)
    points = np.stack(np.broadcast_arrays(*(params[name] for name in names)), axis=-1, dtype=float)
    found: dict[bytes, np.ndarray] = {}  # many worlds often have the same parameters
    for point in points:
        if (key := point.tobytes()) not in found:
            values = dict(zip(names, point.tolist(), strict=True))
            found[key] = np.array(substitute_symbols(tuple(numbers), values), dtype=float)
            if not np.isfinite(found[key]).all():
                given = ", ".join(f"{name} = {x:g}" for name, x in values.items())
                raise ParameterError(f"{where} {numbers} is {found[key]} for {given}; it must be finite")
    return np.array([found[point.tobytes()] for point in points]).reshape(len(points), len(numbers))
