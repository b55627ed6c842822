"""Assembly: consistent initial states of mechanisms with hard constraints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from zwang.api.arguments import validation
from zwang.constraint.assembly import HeldValues, assemble_state
from zwang.errors import DescriptionError, UnknownNameError
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.type_validation import validated_arguments


@validated_arguments("positions", "speeds")
def assemble(
    mechanism: Mechanism,
    q: npt.ArrayLike,
    v: npt.ArrayLike | None = None,
    time: float = 0.0,
    *,
    positions: Mapping[str, npt.ArrayLike] | None = None,
    speeds: Mapping[str, npt.ArrayLike] | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """A state (q, v) near the given one that satisfies all hard constraints, redundant ones included.

    The configuration is found by Gauss-Newton steps from q, and need not be the nearest one. The velocities
    are those nearest to v in the metric of the mass matrix.

    mechanism: a mechanism without symbols.
    q: approximate coordinates (nq,) [rad, m, unit quaternions].
    v: approximate generalised velocities (nv,) [rad/s, m/s], by default zero.
    time: of time-dependent constraints [s], default 0.
    positions: coordinates that are held at a value, by their names or, all of a joint, by that of the joint
        [rad, m], such as {"crank": 0.5}; the elements of quaternions cannot be held.
    speeds: generalised velocities that are held likewise [rad/s, m/s], such as {"crank": 6.0}.

    Returns q (nq,) and v (nv,). Raises SolveError, with the name of a constraint that cannot be satisfied
    with the held values; UnknownNameError for a name; DescriptionError for an element of a quaternion;
    ShapeError, StateError or ParameterError.
    """
    m = validation.numeric_mechanism(mechanism)
    guess = validation.configuration(m, q)
    velocities = np.zeros(m.nv) if v is None else validation.nv_vector(m, v, "v")
    held_positions = {}
    positions = validation.values_of_elements(m, positions, "q", "positions")
    speeds = validation.values_of_elements(m, speeds, "v", "speeds")
    for name, value in _values(positions, "positions", "coordinate", m.coordinate_names).items():
        held_positions[name] = _speed_of(m, name)
        guess[m.coordinate_names.index(name)] = value
    given = _values(speeds, "speeds", "speed", m.speed_names)
    held_speeds = {name: (m.speed_names.index(name), value) for name, value in given.items()}
    found = assemble_state(m, guess, velocities, time, HeldValues(held_positions, held_speeds))
    return found.q, found.v


def _values(given: Any, argument: str, what: str, names: tuple[str, ...]) -> dict[str, float]:
    """The held values by name. Raises DescriptionError, UnknownNameError or StateError."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise DescriptionError(f"{argument} is {given!r}; give a dictionary from names to numbers")
    for name in given:
        if name not in names:
            raise UnknownNameError(what, name, names)
    return {name: validation.real(value, f"{argument}[{name!r}]", what) for name, value in given.items()}


def _speed_of(m: Mechanism, name: str) -> int:
    """The number of the generalised velocity that is the rate of a coordinate. Raises DescriptionError."""
    k = m.coordinate_names.index(name)
    joint = next(j for j in m.joints if j.q.start <= k < j.q.stop)
    offset = k - joint.q.start
    quaternion = joint.joint.nq != joint.joint.nv  # a quaternion comes last
    if quaternion and offset >= joint.joint.nq - 4:
        raise DescriptionError(
            f"coordinate {name!r} is an element of a quaternion, which cannot be held; hold coordinates of "
            "joints without quaternions, or add a constraint"
        )
    return joint.v.start + offset
