"""Consistency of constraints given by formulas: the meaning of their symbols, and that they constrain."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from zwang.errors import MOST_NAMES, DescriptionError, did_you_mean
from zwang.mechanism.constraints import EXPRESSION_CONSTRAINTS, Holonomic, NonIdeal, Pfaffian
from zwang.mechanism.serialization import symbol_names
from zwang.mechanism.type_validation import short_repr
from zwang.scalar import are_constant, is_zero


def rates_and_magnitude(constraint: Any, velocities: Iterable[str]) -> set[str]:
    """The names of velocities, NAME_dot, and N of the force, which have a meaning only in a `NonIdeal`."""
    return {*_rates(velocities), "N"} if isinstance(constraint, NonIdeal) else set()


def check_formulas(
    constraints: Iterable[Any],
    coordinates: Sequence[str],
    velocities: Sequence[str],
    parameters: Sequence[str],
) -> None:
    """The symbols in the formulas of constraints have one meaning, and the formulas constrain something.

    parameters: the names of the symbolic parameters of the mechanism. Raises DescriptionError for a symbol
    that stands for two quantities, for a velocity NAME_dot outside a `NonIdeal`, for a `Holonomic` without a
    coordinate and a `Pfaffian` without a velocity.
    """
    for c in (c for c in constraints if isinstance(c, EXPRESSION_CONSTRAINTS)):
        _check_meanings(c, coordinates, velocities, parameters)
        if isinstance(c, Holonomic):
            for expression in c.expressions:
                _check_coordinates(c, expression, coordinates)
        if isinstance(c, Pfaffian):
            _check_velocities(c, velocities)


def _rates(velocities: Iterable[str]) -> dict[str, str]:
    """The velocities by the names of their symbols."""
    return {f"{name}_dot": name for name in velocities}


def _check_meanings(
    c: Any, coordinates: Sequence[str], velocities: Sequence[str], parameters: Sequence[str]
) -> None:
    """Raises DescriptionError for a symbol with two meanings, and for a velocity where none has a meaning."""
    rates = _rates(velocities)
    meanings = {"a coordinate": coordinates, "the time": ["t"], "a parameter": parameters}
    if isinstance(c, NonIdeal):
        meanings |= {"a velocity": list(rates), "the magnitude of the constraint force": ["N"]}
    for name in sorted(symbol_names(c)):
        found = [meaning for meaning, names in meanings.items() if name in names]
        if len(found) > 1:
            raise DescriptionError(
                f"the symbol {name!r} has two meanings in the formula of constraint {c.name!r}: it is "
                f"{' and '.join(found)} of the mechanism; coordinates are named after their joints, "
                "velocities NAME_dot, the time t and the magnitude of the force N: rename the joint or "
                "the parameter of this name"
            )
        if name in rates and not isinstance(c, NonIdeal) and name not in coordinates:
            raise DescriptionError(
                f"the formula of the {type(c).__name__} {c.name!r} contains {name!r}, the velocity of "
                f"{rates[name]!r}; it may contain coordinates, parameters and the time t. A constraint that "
                "is linear in velocities is a zw.Pfaffian with their coefficients, such as "
                f"{{{rates[name]!r}: 1}}; a force that depends on them is a zw.NonIdeal"
            )


def _check_coordinates(c: Holonomic, expression: Any, coordinates: Sequence[str]) -> None:
    """Raises DescriptionError for a formula that no coordinate enters, unless it is 0.

    A formula becomes 0 where a parameter that multiplies it does: the constraint is then switched off.
    """
    names = symbol_names(expression)
    if names.isdisjoint(coordinates) and (names or are_constant(expression)) and not is_zero(expression):
        questions = "".join(f" {q}" for name in sorted(names) if (q := did_you_mean(name, coordinates)))
        raise DescriptionError(
            f"the formula {short_repr(expression)} of the Holonomic {c.name!r} contains no coordinate, so "
            f"that it constrains nothing.{questions} Coordinates are the symbols with the names of the "
            f"joints' coordinates{_listed(coordinates)}"
        )


def _check_velocities(c: Pfaffian, velocities: Sequence[str]) -> None:
    """Raises DescriptionError for a Pfaffian without a coefficient, or a rate where all of them are 0.

    All become 0 where a parameter that multiplies them does: the constraint is then switched off.
    """
    if all(is_zero(x) for _, x in c.coefficients) and not (c.coefficients and is_zero(c.rate)):
        raise DescriptionError(
            f"the coefficients of the Pfaffian {c.name!r} are {dict(c.coefficients)}, so that it constrains "
            "nothing; give the coefficient of at least one generalised velocity, by its name"
            f"{_listed(velocities)}"
        )


def _listed(names: Sequence[str]) -> str:
    """The first names, for messages."""
    shown = ", ".join(map(repr, names[:MOST_NAMES]))
    return f": {shown}{', ...' * (len(names) > MOST_NAMES)}" if names else ""
