"""Settings that fits by forces and by simulation have in common, checked: priors, bounds, levels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from zwang.errors import StateError
from zwang.identification.parameters import Parameter, index_of
from zwang.mechanism.type_validation import short_repr
from zwang.scalar import real_array

Priors = Mapping[str, tuple[float, float]]
Bounds = Mapping[str, tuple[float, float]]


def check_level(level: float) -> None:
    """Raises StateError for what is no probability of intervals."""
    if not 0 < level < 1:
        raise StateError(f"level is {level}; it must be between 0 and 1, such as 0.95")


def priors_of(given: Priors | None, parameters: Sequence[Parameter]) -> dict[str, tuple[float, float]]:
    """The values and standard deviations of parameters by name; an infinite deviation tells nothing.

    Raises StateError for other values, and UnknownNameError.
    """
    found = {}
    for name, (value, deviation) in pairs_of(given or {}, "priors"):
        index_of(parameters, name)
        if not deviation > 0:
            raise StateError(f"the standard deviation of the prior of {name!r} is {deviation}; give one > 0")
        if not np.isfinite(value):
            raise StateError(f"the value of the prior of {name!r} is {value}; give a finite one")
        if np.isfinite(deviation):
            found[name] = value, deviation
    return found


def pairs_of(given: Mapping[str, Any], what: str) -> list[tuple[str, tuple[float, float]]]:
    """The pairs of numbers of a dictionary, by name. Raises StateError for other values."""
    found = []
    for name, pair in given.items():
        try:
            first, second = (float(x) for x in real_array(pair))
        except (TypeError, ValueError, OverflowError):
            raise StateError(
                f"{what}[{short_repr(name)}] is {short_repr(pair)}; it must be two numbers"
            ) from None
        found.append((name, (first, second)))
    return found


def bounds_above(least: float, name: str, low: float, high: float) -> tuple[float, float]:
    """The bounds (low, high) of a parameter that is at least `least`, 0 or -inf.

    Raises StateError where there is nothing between them.
    """
    if not low < high:
        raise StateError(f"the bounds of {name!r} are ({low}, {high}); the first must be the smaller one")
    if not least < high:
        raise StateError(
            f"the bounds of {name!r} are ({low}, {high}), but this parameter is not negative; give a "
            "positive upper bound"
        )
    return max(low, least), high
