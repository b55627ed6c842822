"""Validation of a mechanism with the parameters of each of many worlds."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from zwang.errors import DescriptionError, ParameterError
from zwang.mechanism.mechanism import Mechanism
from zwang.scalar.world_values import WorldsDiffer, WorldValues


def check_worlds(
    mechanism: Mechanism, params: Mapping[str, np.ndarray], numbers: np.ndarray | None = None
) -> None:
    """Raises ParameterError, with the first world for whose parameters (worlds,) the mechanism is invalid.

    numbers (worlds,): of these worlds, by default 0, 1, ...
    """
    for w in _worlds_to_build(mechanism, params):
        try:
            mechanism.subs({name: float(x[w]) for name, x in params.items()})
        except DescriptionError as error:
            number = w if numbers is None else numbers[w]
            raise ParameterError(f"the parameters of world {number} are invalid: {error}") from None


def _worlds_to_build(mechanism: Mechanism, params: Mapping[str, np.ndarray]) -> list[int]:
    """The worlds of which it is not known that the mechanism is valid, in order.

    The mechanism is built once for each group of worlds that take the same branches of its validation. Where
    that raises, the parameters of the group are invalid, or an operation takes only numbers.
    """
    groups, unknown = [np.arange(len(x)) for x in list(params.values())[:1]], []
    while groups:
        worlds = groups.pop()
        if len(worlds) == 1:
            unknown += worlds.tolist()
            continue
        try:
            mechanism.subs({name: WorldValues(x[worlds]) for name, x in params.items()})
        except WorldsDiffer as difference:
            groups += [worlds[difference.labels == k] for k in np.unique(difference.labels)]
        except Exception:  # of any kind: an operation for numbers only, as SymPy's, or invalid parameters
            unknown += worlds.tolist()
    return sorted(unknown)
