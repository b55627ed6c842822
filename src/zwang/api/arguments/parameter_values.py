"""The values of a mechanism's symbols, as users give them: validated, by symbol."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from zwang.errors import ParameterError, ShapeError
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.symbols import states_with_symbol
from zwang.scalar import real_array

Parameters = Mapping[Any, npt.ArrayLike]
"""Values by symbol, or by the name of a symbol: a number, or one for each world."""


def parameter_values(mechanism: Mechanism, params: Parameters | None) -> dict[str, np.ndarray]:
    """The values of all symbols as arrays of any shape, in the order of the symbols.

    Raises ParameterError, with the name, for a missing value, an unknown symbol or a value that is not real.
    """
    given = values_by_name(mechanism, params)
    return {name: parameter_value(name, value) for name, value in given.items()}


def values_by_name(mechanism: Mechanism, params: Mapping[Any, Any] | None) -> dict[str, Any]:
    """The values of all symbols by name, as they are given, in the order of the symbols.

    Raises ParameterError, with the name, for a missing value or an unknown symbol.
    """
    given = given_values(mechanism, params)
    missing = [name for name in mechanism.symbols if name not in given]
    if missing:
        remedy = ", ".join(f"{name!r}: ..." for name in missing)
        states = ", ".join(states_with_symbol(mechanism, missing[0]))
        use = f" (in {states})" if states else ""
        raise ParameterError(
            f"the parameter {missing[0]!r}{use} has no value: mechanism {mechanism.name!r} needs a value for "
            f"{', '.join(map(repr, missing))}; give params={{{remedy}}}"
        )
    return {name: given[name] for name in mechanism.symbols}


def given_values(mechanism: Mechanism, params: Mapping[Any, Any] | None) -> dict[str, Any]:
    """The values of some symbols by name, as they are given.

    Raises ParameterError for an object that is no dictionary, or an unknown symbol.
    """
    if params is not None and not isinstance(params, Mapping):
        raise ParameterError(
            f"params is {str(params)[:60]!r}, a {type(params).__name__}; give a dictionary from symbols "
            "to a number, or one a world"
        )
    given = {str(name): value for name, value in (params or {}).items()}
    for name in given:
        if name not in mechanism.symbols:
            raise ParameterError(
                f"there is no parameter {name!r}: mechanism {mechanism.name!r} has no symbol {name!r}; "
                f"the symbols are: {', '.join(mechanism.symbols) or 'none'}"
            )
    return given


def with_numbers(mechanism: Mechanism, params: Parameters | None) -> Mechanism:
    """The mechanism with one number for each symbol. Raises what `parameter_values` does, and ParameterError
    for several values.
    """
    values = parameter_values(mechanism, params)
    for name, value in values.items():
        if value.size != 1:
            raise ParameterError(
                f"params[{name!r}], the parameter {name!r}, has the shape {value.shape}; give one number, as "
                "this is a function of one mechanism"
            )
    return mechanism.subs({name: float(x.flat[0]) for name, x in values.items()}) if values else mechanism


def parameter_array(mechanism: Mechanism, params: Parameters | None) -> np.ndarray:
    """The values of all symbols (..., symbols), in the order of the symbols; shapes are broadcast.

    Raises what `parameter_values` does, and ShapeError for shapes that cannot be broadcast.
    """
    values = parameter_values(mechanism, params)
    return stacked_values(values)


def stacked_values(values: Mapping[str, np.ndarray]) -> np.ndarray:
    """The values (..., symbols) of all symbols. Raises ShapeError for shapes that cannot be broadcast."""
    arrays: Iterable[np.ndarray] = list(values.values()) or [np.zeros(0)]
    try:
        return np.stack(np.broadcast_arrays(*arrays), axis=-1)
    except ValueError:
        shapes = ", ".join(f"{name!r} {x.shape}" for name, x in values.items())
        raise ShapeError(
            f"the shapes of the parameters do not go together: {shapes}; one value, or one a world"
        ) from None


def parameter_value(name: str, value: npt.ArrayLike) -> np.ndarray:
    """The values of one symbol. Raises ParameterError, with the name, for what is not a real number."""
    try:
        return real_array(value)
    except (TypeError, ValueError):
        raise ParameterError(
            f"params[{name!r}], the parameter {name!r}, is {str(value)[:60]!r}; "
            "it must be a finite real number, or one a world"
        ) from None
