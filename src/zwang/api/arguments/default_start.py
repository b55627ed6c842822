"""The default start of worlds: the home configuration or a keyframe, evaluated with their parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from zwang.api.arguments.validation import named_keyframe
from zwang.errors import ParameterError
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.numbers import Numbers
from zwang.mechanism.options import Keyframe
from zwang.mechanism.serialization import substitute_symbols, symbol_names
from zwang.simulation.controls import control_names


@dataclass(frozen=True)
class DefaultStart:
    """What the arguments of an initial state leave out, as `Mechanism.subs` with the parameters of each world
    gives it; one row for each world or one for all.

    keyframe: whose numbers these are; those that it does not have are of the home configuration, or the
    neutral one, at rest. params: for each symbol its values (N,) or (1,). Each number is evaluated when it
    is read, which raises ParameterError, with the name of the state, where it is not finite.
    """

    mechanism: Mechanism
    keyframe: Keyframe
    params: Mapping[str, np.ndarray]

    @cached_property
    def q(self) -> np.ndarray:
        """The configuration (..., nq)."""
        m = self.mechanism
        if self.keyframe.q:
            return self._of_keyframe("q", self.keyframe.q)
        numbers, where = (m.home, "home") if m.home else (m.neutral, "references of the joints")
        return _rows_of_worlds(numbers, self.params, where)

    @cached_property
    def v(self) -> np.ndarray:
        """The generalised velocities (..., nv)."""
        return self._of_keyframe("v", self.keyframe.v or (0,) * self.mechanism.nv)

    @cached_property
    def activation(self) -> np.ndarray:
        """The activations (..., nz) of the keyframe, or of size 0."""
        return self._of_keyframe("activation", self.keyframe.activation)

    @cached_property
    def control(self) -> np.ndarray:
        """The control (..., inputs) of the keyframe, or of size 0."""
        return self._of_keyframe("control", self.keyframe.control)

    def _of_keyframe(self, name: str, numbers: Numbers) -> np.ndarray:
        return _rows_of_worlds(numbers, self.params, f"{name} of keyframe {self.keyframe.name!r}")


def default_start(mechanism: Mechanism, q0: Any, params: Mapping[str, np.ndarray]) -> DefaultStart:
    """The start in the keyframe that q0 names, or else in the home configuration.

    params: for each symbol its values (N,) or (1,). Raises UnknownNameError and SimulationError.
    """
    return DefaultStart(mechanism, named_keyframe(mechanism, q0), params)


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
